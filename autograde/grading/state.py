"""What a run has finished, kept in the course so that the next run goes on from there.

`.autograde/done/KEY` holds the result of a job, under a digest of all that decides it.
`.autograde/graded/LESSON/STUDENT.json` says what a submission was last graded by. Each file is
put in place whole: a killed run leaves either the old one or the new one.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from autograde.grading.job import Result
from autograde.grading.seeds import state_folder

FRESH = ".fresh"


@dataclass(frozen=True)
class Entry:
    """How a submission was graded.

    `graded` is a digest of all that decided its scores, `scores` of the automatic scores that
    were saved, `page` of all that is on its feedback page, and `result` the key of what ran.
    """

    graded: str
    scores: str
    page: str
    result: str
    problem: str
    walled: bool
    seconds: float
    version: str


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{os.getpid()}{FRESH}")
    try:
        fresh.write_bytes(content)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def sweep(root: Path) -> None:
    """Remove results and entries that a killed run was writing; for who alone holds the course."""
    for folder in ("done", "graded"):
        for left in (state_folder(root) / folder).rglob(f".*{FRESH}"):
            left.unlink()


def stored_result(root: Path, key: str) -> Result | None:
    """The result kept under a key; nothing if there is none or it cannot be read."""
    kept = stored_bytes(root, key)
    return Result.readable(kept) if kept else None


def stored_bytes(root: Path, key: str) -> bytes:
    """The same as bytes, which may be cut short; none if there is no file."""
    try:
        return _done(root, key).read_bytes()
    except OSError:
        return b""


def keep_result(root: Path, key: str, result: bytes) -> None:
    write_whole(_done(root, key), result)


def forget_result(root: Path, key: str) -> None:
    _done(root, key).unlink(missing_ok=True)


def _done(root: Path, key: str) -> Path:
    return state_folder(root) / "done" / key


def read_entry(root: Path, lesson: str, student: str) -> Entry | None:
    """How a submission was last graded; nothing if it never was or that cannot be read."""
    try:
        return Entry(**json.loads(_entry(root, lesson, student).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def keep_entry(root: Path, lesson: str, student: str, entry: Entry) -> None:
    """Keep it; the result that the submission had before it was changed goes."""
    before = read_entry(root, lesson, student)
    write_whole(_entry(root, lesson, student), json.dumps(asdict(entry)).encode())
    if before is not None and before.result not in ("", entry.result):
        forget_result(root, before.result)


def _entry(root: Path, lesson: str, student: str) -> Path:
    return state_folder(root) / "graded" / lesson / f"{student}.json"
