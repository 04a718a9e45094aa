"""Files that others read while they are written."""

import os
from pathlib import Path

FRESH = ".fresh"
"""The end of a file's name while it is being written."""


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all; the last of two writers wins."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{os.urandom(8).hex()}{FRESH}")
    try:
        fresh.write_bytes(content)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
