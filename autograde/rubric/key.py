"""The key of an exercise: what the reference does on one seed, and what known mistakes do."""

import gzip
from dataclasses import asdict, dataclass

from autograde.rubric.packing import BadData, Plain, pack, unpack
from autograde.rubric.recording import Outcome, Recording, read_outcome


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
    entry for each line; a claim counts in grading only beside a right line that is none.
    `mistakes` are there on the practice seed alone.
    """

    exercise: str
    points: float
    needs: tuple[str, ...]
    hints: tuple[str, ...]
    expected: Recording
    tolerances: tuple[float, ...]
    claims: tuple[bool, ...]
    mistakes: tuple[Mistake, ...] = ()

    def to_plain(self) -> Plain:
        return {
            "exercise": self.exercise,
            "points": self.points,
            "needs": list(self.needs),
            "hints": list(self.hints),
            "expected": self.expected.to_plain(),
            "tolerances": list(self.tolerances),
            "claims": list(self.claims),
            "mistakes": [_mistake_to_plain(mistake) for mistake in self.mistakes],
        }

    @classmethod
    def from_plain(cls, plain: Plain) -> "Key":
        """Return the key that `to_plain` described; for files of this project alone."""
        return cls(
            exercise=plain["exercise"],
            points=plain["points"],
            needs=tuple(plain["needs"]),
            hints=tuple(plain["hints"]),
            expected=Recording.from_plain(plain["expected"]),
            tolerances=tuple(plain["tolerances"]),
            claims=tuple(plain["claims"]),
            mistakes=tuple(_mistake_from_plain(mistake) for mistake in plain["mistakes"]),
        )


def _mistake_to_plain(mistake: Mistake) -> Plain:
    failed = {str(i): [asdict(o) for o in outcomes] for i, outcomes in mistake.failed.items()}
    return {**vars(mistake), "failed": failed}


def _mistake_from_plain(plain: Plain) -> Mistake:
    failed = {int(i): tuple(map(read_outcome, found)) for i, found in plain["failed"].items()}
    return Mistake(**{**plain, "failed": failed})


def pack_keys(keys: dict[str, Key]) -> bytes:
    """Return keys as bytes; the same keys give the same bytes."""
    return gzip.compress(pack([key.to_plain() for key in keys.values()]), mtime=0)


def unpack_keys(data: bytes) -> dict[str, Key]:
    """Return the keys that `pack_keys` made bytes of, by exercise; for files of this project alone.

    Raises:
        BadData, OSError, EOFError: the bytes were cut short or changed, or are an older version's.
    """
    plain = unpack(gzip.decompress(data))
    try:
        return {key["exercise"]: Key.from_plain(key) for key in plain}
    except KeyError as error:
        raise BadData(f"a key lacks {error}") from error
