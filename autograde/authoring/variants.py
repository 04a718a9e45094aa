"""Variants of an exercise: right answers written another way, and wrong ones with their reason."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import jupytext

from autograde.course import CourseError, Exercise, Lesson

HEADING = re.compile(r"## (right|wrong): ([a-z0-9_]+)\s*$", re.MULTILINE)
HINT = re.compile(r"^\d+\.\s+(.+)$", re.MULTILINE)
NEVER_ALONE = re.compile(r"^\*\*Never alone\.\*\* “(.+?)”: (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Variant:
    """One answer to an exercise; the two texts are there for wrong ones only."""

    exercise: str
    name: str
    right: bool
    code: str
    misconception: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Variants:
    """The hints of an exercise and its variants, as one file beside the lesson holds them.

    `never_alone` gives the reason for each rubric line that no wrong answer can fail alone.
    """

    hints: tuple[str, ...]
    variants: tuple[Variant, ...]
    never_alone: Mapping[str, str] = field(default_factory=dict)

    @property
    def right(self) -> tuple[Variant, ...]:
        return tuple(variant for variant in self.variants if variant.right)

    @property
    def wrong(self) -> tuple[Variant, ...]:
        return tuple(variant for variant in self.variants if not variant.right)


def path_of(lesson: Lesson, exercise: Exercise) -> Path:
    return lesson.folder / "variants" / f"{exercise.name}.py"


def read_variants(lesson: Lesson, exercise: Exercise) -> Variants:
    """Read `variants/EXERCISE.py`: a cell of hints, then pairs of a heading and a code cell.

    Raises:
        CourseError: the file is missing or a cell is not of that form; the message says which.
    """
    path = path_of(lesson, exercise)
    if not path.is_file():
        raise CourseError(
            f"{exercise.name} has no variants: {path} is missing. It holds hints and right and "
            "wrong answers; docs/authoring.md shows one."
        )
    cells = jupytext.read(path, fmt="py:percent").cells
    if not cells or cells[0].cell_type != "markdown":
        raise CourseError(f"{path}: the first cell must be Markdown with the hints as 1. 2. 3.")
    about = _unwrapped(cells[0].source)
    pairs = list(zip(cells[1::2], cells[2::2], strict=False))
    if len(cells) % 2 == 0:
        raise CourseError(f"{path}: every variant is one Markdown cell and one code cell")
    return Variants(
        hints=tuple(HINT.findall(about)),
        variants=tuple(_variant(path, exercise, text, code) for text, code in pairs),
        never_alone=dict(NEVER_ALONE.findall(about)),
    )


def _variant(path: Path, exercise: Exercise, text: dict[str, str], code: dict[str, str]) -> Variant:
    heading = HEADING.search(text["source"])
    if text["cell_type"] != "markdown" or code["cell_type"] != "code" or heading is None:
        raise CourseError(
            f"{path}: expected '## right: name' or '## wrong: name' (small letters, digits and _) "
            f"and a code cell, found {text['source'].splitlines()[:1]}"
        )
    right = heading[1] == "right"
    return Variant(
        exercise=exercise.name,
        name=heading[2],
        right=right,
        code=code["source"],
        misconception="" if right else _paragraph(text["source"], "Misconception"),
        hint="" if right else _paragraph(text["source"], "Hint"),
    )


def _unwrapped(text: str) -> str:
    """Lines that continue a list item or a paragraph, joined to it."""
    return re.sub(r"\n(?!\n|\d+\.|\*\*|#)\s*", " ", text)


def _paragraph(text: str, title: str) -> str:
    """The paragraph that begins with a bold title; a line of it may begin with a number."""
    found = re.search(rf"\*\*{title}\.\*\*\s*(.+?)(?:\n\s*\n|\Z)", text, re.DOTALL)
    return " ".join(found[1].split()) if found else ""
