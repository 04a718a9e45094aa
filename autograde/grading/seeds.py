"""The seed of a submission: from the course's secret and what was handed in."""

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path

from nbformat import NotebookNode

POOL = 16
"""How many seeds a lesson has: few enough to compute every expected value once for a class."""


def state_folder(root: Path) -> Path:
    """Where the grader keeps what is its own: secret, answer keys, what has run."""
    folder = root / ".autograde"
    folder.mkdir(exist_ok=True)
    return folder


def course_secret(root: Path) -> bytes:
    """The course's secret, made on first use and readable by its owner alone."""
    path = state_folder(root) / "secret"
    if not path.is_file():
        fresh = path.with_name(f"secret.{os.getpid()}")
        fresh.touch(mode=0o600)
        fresh.write_text(secrets.token_hex(32))
        with suppress(FileExistsError):  # another process was first; then its secret counts
            os.link(fresh, path)
        fresh.unlink()
    return bytes.fromhex(path.read_text())


def seed_of(root: Path, lesson: str, nb: NotebookNode) -> int:
    """One of the lesson's seeds, by the submitted code: a regrade gets the same.

    Text does not count: nbgrader puts marking schemes into it on the way.
    """
    secret = course_secret(root)
    text = "\0".join(cell.source for cell in nb.cells if cell.cell_type == "code")
    number = _keyed(secret, f"content\0{lesson}\0{text}") % POOL
    return _keyed(secret, f"seed\0{lesson}\0{number}")


def _keyed(secret: bytes, text: str) -> int:
    digest = hmac.digest(secret, text.encode("utf-8", "surrogatepass"), hashlib.sha256)
    return int.from_bytes(digest[:7], "big")
