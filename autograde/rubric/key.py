"""The answer key of an exercise: expected outcomes, tolerances, and known wrong outcomes."""

import gzip
from dataclasses import dataclass
from functools import cached_property

import torch

from autograde.rubric.packing import BadData, Plain, pack, unpack
from autograde.rubric.recording import Outcome, Recording


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

    `needs` names earlier exercises that this one's lines may call. `known` are the known wrong
    answers as bytes: they are most of a key, and nobody looks at them while an answer is right.
    """

    exercise: str
    points: float
    needs: tuple[str, ...]
    hints: tuple[str, ...]
    expected: Recording
    tolerances: tuple[float, ...]
    known: bytes

    @cached_property
    def wrong(self) -> tuple[Wrong, ...]:
        """The known wrong answers."""
        return tuple(
            Wrong(**{**wrong, "outcomes": tuple(Outcome(**o) for o in wrong["outcomes"])})
            for wrong in unpack(self.known)
        )

    def to_plain(self) -> Plain:
        return {
            "exercise": self.exercise,
            "points": self.points,
            "needs": list(self.needs),
            "hints": list(self.hints),
            "expected": self.expected.to_plain(),
            "tolerances": list(self.tolerances),
            "known": torch.frombuffer(bytearray(self.known), dtype=torch.uint8),
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
            known=plain["known"].numpy().tobytes(),
        )


def pack_wrong(wrong: tuple[Wrong, ...]) -> bytes:
    """Known wrong answers as a key holds them."""
    return pack([{**vars(w), "outcomes": [dict(vars(o)) for o in w.outcomes]} for w in wrong])


def pack_keys(keys: dict[str, Key]) -> bytes:
    """Answer keys as bytes; the same keys give the same bytes."""
    return gzip.compress(pack([key.to_plain() for key in keys.values()]), mtime=0)


def unpack_keys(data: bytes) -> dict[str, Key]:
    """The keys that `pack_keys` made bytes of; for files of this project alone.

    Raises:
        BadData, OSError, EOFError: the bytes were cut short or changed, or are an older version's.
    """
    plain = unpack(gzip.decompress(data))
    try:
        return {key["exercise"]: Key.from_plain(key) for key in plain}
    except KeyError as error:
        raise BadData(f"a key lacks {error}") from error
