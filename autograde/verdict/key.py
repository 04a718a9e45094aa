"""The answer key of an exercise: expected outcomes, tolerances, and known wrong outcomes."""

import gzip
from dataclasses import dataclass

from autograde.verdict.packing import Plain, pack, unpack
from autograde.verdict.recording import Outcome, Recording


@dataclass(frozen=True)
class Wrong:
    """A known wrong answer: the misconception behind it, a hint, and its outcome on each line."""

    name: str
    misconception: str
    hint: str
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True)
class Key:
    """What one exercise is judged by, for one seed; data made by running the reference.

    `needs` names earlier exercises that this one's lines may call.
    """

    exercise: str
    points: float
    needs: tuple[str, ...]
    hints: tuple[str, ...]
    expected: Recording
    tolerances: tuple[float, ...]
    wrong: tuple[Wrong, ...]

    def to_plain(self) -> Plain:
        return {
            **vars(self),
            "needs": list(self.needs),
            "hints": list(self.hints),
            "expected": self.expected.to_plain(),
            "tolerances": list(self.tolerances),
            "wrong": [
                {**vars(wrong), "outcomes": [dict(vars(o)) for o in wrong.outcomes]}
                for wrong in self.wrong
            ],
        }

    @classmethod
    def from_plain(cls, plain: Plain) -> "Key":
        """The key that `to_plain` described; for files of this project, not for untrusted ones."""
        return cls(
            exercise=plain["exercise"],
            points=plain["points"],
            needs=tuple(plain["needs"]),
            hints=tuple(plain["hints"]),
            expected=Recording.from_plain(plain["expected"]),
            tolerances=tuple(plain["tolerances"]),
            wrong=tuple(
                Wrong(**{**wrong, "outcomes": tuple(Outcome(**o) for o in wrong["outcomes"])})
                for wrong in plain["wrong"]
            ),
        )


def pack_keys(keys: dict[str, Key]) -> bytes:
    """Answer keys as bytes; the same keys give the same bytes."""
    return gzip.compress(pack([key.to_plain() for key in keys.values()]), mtime=0)


def unpack_keys(data: bytes) -> dict[str, Key]:
    """The keys that `pack_keys` made bytes of; for files of this project alone.

    Raises:
        BadData, OSError, EOFError: the bytes were cut short or changed.
    """
    return {plain["exercise"]: Key.from_plain(plain) for plain in unpack(gzip.decompress(data))}
