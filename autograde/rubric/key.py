"""The key of an exercise: what the reference does on one seed, and what known mistakes do."""

import gzip
import zlib
from dataclasses import dataclass

from autograde.rubric.recording import Outcome, Recording
from autograde.values.base import BadData
from autograde.values.packing import from_plain, pack, unpack


@dataclass(frozen=True)
class Mistake:
    """A known wrong answer: the belief behind it, a hint, and its outcomes on the lines it fails.

    `failed` maps a line's place in the rubric to one outcome for each of its cases.
    """

    name: str
    belief: str
    hint: str
    failed: dict[int, tuple[Outcome, ...]]


@dataclass(frozen=True)
class Key:
    """The data that judge one exercise on one seed, made by running the reference.

    `needs` names earlier exercises that the lines may call. `tolerances` and `claims` have one
    entry for each line. In grading, a claim counts only if a line that is not a claim is right.
    `mistakes` is empty except on the practice seed. Lines that a teacher has `withdrawn` count as
    right, whatever an answer does.
    """

    exercise: str
    points: float
    needs: tuple[str, ...]
    hints: tuple[str, ...]
    expected: Recording
    tolerances: tuple[float, ...]
    claims: tuple[bool, ...]
    mistakes: tuple[Mistake, ...] = ()
    withdrawn: tuple[str, ...] = ()


def pack_keys(keys: dict[str, Key]) -> bytes:
    """Return keys as bytes; the same keys give the same bytes."""
    return gzip.compress(pack([*keys.values()]), mtime=0)


def unpack_keys(data: bytes) -> dict[str, Key]:
    """Return the keys that `pack_keys` packed, by exercise; only for this project's own files.

    Raises:
        BadData: the bytes were cut short or changed, or are an older version's.
    """
    try:
        packed = gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise BadData(f"not compressed by gzip: {error}") from error
    keys = from_plain(tuple[Key, ...], unpack(packed))
    return {key.exercise: key for key in keys}
