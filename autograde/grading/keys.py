"""Answer keys for grading, computed once for each seed of a lesson and kept in the course."""

from functools import lru_cache
from pathlib import Path

from autograde.authoring.expected import digest, make_keys
from autograde.course import Lesson
from autograde.grading.seeds import POOL, state_folder
from autograde.grading.state import write_whole
from autograde.rubric.key import Key, pack_keys, unpack_keys
from autograde.rubric.packing import BadData


def keys_for(lesson: Lesson, seed: int) -> dict[str, Key]:
    """The answer keys of a lesson for one seed, by exercise."""
    path = _path(lesson, seed)
    if path.is_file():
        try:
            return _read(path)
        except (BadData, OSError, EOFError):
            path.unlink(missing_ok=True)  # cut short, or an older version's; made again below
    keys = make_keys(lesson, seed)
    write_whole(path, pack_keys(keys))
    return keys


@lru_cache(maxsize=POOL)
def _read(path: Path) -> dict[str, Key]:
    """A file never changes: its name holds what its content was made from."""
    return unpack_keys(path.read_bytes())


def _path(lesson: Lesson, seed: int) -> Path:
    folder = state_folder(lesson.root) / "keys" / f"{lesson.name}-{digest(lesson)[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{seed}.safetensors.gz"
