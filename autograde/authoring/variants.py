"""Variants of an exercise: right answers written another way, wrong ones with their belief.

Each exercise has one Markdown file of them; docs/authoring.md shows one.
"""

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Literal, cast

from autograde.authoring.marks import own_answer
from autograde.course import CourseError, Exercise, Lesson, grade_id, lessons, read_text
from autograde.grading.running.reference import no_python
from autograde.rubric.names import names_of

Kind = Literal["right", "wrong", "near miss"]

HINT = re.compile(r"^\d+\.\s+(.+)$", re.MULTILINE)
VARIANT = re.compile(
    r"## (?P<kind>right|wrong|near miss): (?P<name>[a-z0-9_]+) *\n"
    r"(?P<words>(?:(?!```|## ).*\n)*)"
    r"```(?:python|diff (?P<base>\w+)) *\n(?P<code>(?:(?!```).*\n)*)```[ \n]*"
)
FORM = (
    "'## right: name', '## wrong: name' or '## near miss: name' (small letters, digits and _), "
    "its words, and one block that is ```python or ```diff NAME"
)
REFERENCE = "reference"
"""The name by which a diff edits the lesson's own answer."""


@dataclass(frozen=True)
class Variant:
    """One answer to an exercise; only a wrong one has a misconception and a hint.

    A near miss is wrong in something other than the idea of the exercise.
    """

    exercise: str
    name: str
    kind: Kind
    code: str
    misconception: str = ""
    hint: str = ""

    @property
    def right(self) -> bool:
        return self.kind == "right"


@dataclass(frozen=True)
class Variants:
    """The hints of an exercise and its variants."""

    hints: tuple[str, ...]
    variants: tuple[Variant, ...]

    @property
    def right(self) -> tuple[Variant, ...]:
        return tuple(variant for variant in self.variants if variant.right)

    @property
    def wrong(self) -> tuple[Variant, ...]:
        """The wrong variants, near misses among them."""
        return tuple(variant for variant in self.variants if not variant.right)


def read_variants(lesson: Lesson, exercise: Exercise) -> Variants:
    """Read `variants/EXERCISE.md`: numbered hints, then variants, each an answer or an edit of one.

    Raises:
        CourseError: the file is missing, a part of it is malformed, an edit does not apply, or a
            variant is no answer to the exercise.
    """
    path = lesson.folder / "variants" / f"{exercise.name}.md"
    if not path.is_file():
        raise CourseError(
            f"{exercise.name} has no variants: {path} is missing. It holds hints and right and "
            "wrong answers; docs/authoring.md shows one."
        )
    about, heading, rest = path.read_text(encoding="utf-8").partition("\n## ")
    answers = {REFERENCE: _reference(lesson, exercise)}
    wanted = names_of(answers[REFERENCE]).bound
    variants: list[Variant] = []
    for found in _sections(path, heading.lstrip() + rest):
        variant = _variant(path, exercise, found, answers)
        if variant.name in {other.name for other in variants}:
            raise CourseError(f"{path}: two variants are called {variant.name}")
        _require_answer(path, variant, wanted)
        if variant.right:
            answers[variant.name] = variant.code
        variants.append(variant)
    hints = HINT.findall(re.sub(r"\n(?!\n|\d+\.)\s*", " ", about.strip()))
    return Variants(hints=tuple(hints), variants=tuple(variants))


def find_variant(root: Path, exercise: str, name: str) -> Variant:
    """Return the variant of this name.

    Raises:
        CourseError: there is no such exercise or variant; the message names the nearest.
    """
    places = {e.name: (lesson, e) for lesson in lessons(root).values() for e in lesson.exercises}
    if exercise not in places:
        raise CourseError(f"there is no exercise {exercise}; {_nearest(exercise, places)}")
    known = {variant.name: variant for variant in read_variants(*places[exercise]).variants}
    if name not in known:
        raise CourseError(f"{exercise} has no variant {name}; {_nearest(name, known)}")
    return known[name]


def _nearest(name: str, known: Iterable[str]) -> str:
    if near := difflib.get_close_matches(name, list(known), n=1):
        return f"did you mean {near[0]}?"
    return f"there are: {', '.join(known)}"


def _sections(path: Path, text: str) -> Iterator[re.Match[str]]:
    """Yield each variant's part of the text; nothing may be left between two of them."""
    end = 0
    while end < len(text):
        found = VARIANT.match(text, end)
        if found is None:
            raise CourseError(f"{path}: expected {FORM}, found {text[end:].splitlines()[0]!r}")
        yield found
        end = found.end()


def _variant(
    path: Path, exercise: Exercise, found: re.Match[str], answers: dict[str, str]
) -> Variant:
    name, base, code = found["name"], found["base"], found["code"]
    if base is not None:
        if base not in answers:
            raise CourseError(f"{path}: {name} edits {base}, which is no right answer above it")
        try:
            code = apply_edit(answers[base], code)
        except BadEdit as error:
            raise CourseError(f"{path}: {name} cannot edit {base}: {error}") from error
    kind = cast(Kind, found["kind"])
    if kind == "right":
        return Variant(exercise.name, name, kind, code)
    words = found["words"].splitlines()
    belief = [line[1:] for line in words if line.startswith(">")]
    hint = [line for line in words if not line.startswith(">")]
    return Variant(exercise.name, name, kind, code, _joined(belief), _joined(hint))


def _require_answer(path: Path, variant: Variant, wanted: frozenset[str]) -> None:
    """Raises CourseError when a variant is not Python or binds no name that the reference does."""
    try:
        compile(variant.code, variant.name, "exec")
    except SyntaxError as error:
        raise CourseError(f"{path}: {variant.name} {no_python(error)}") from error
    if wanted and not wanted & names_of(variant.code).bound:
        raise CourseError(f"{path}: {variant.name} defines no {' or '.join(sorted(wanted))}")


def _joined(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())


def _reference(lesson: Lesson, exercise: Exercise) -> str:
    """Return the lesson's own answer without the marks around it and the code given to be repaired.

    Raises:
        CourseError: the lesson has no cell of this name.
    """
    for cell in read_text(lesson).cells:
        if grade_id(cell) == exercise.name:
            return own_answer(cell.source)
    raise CourseError(f"{lesson.text.name} has no cell {exercise.name}")


class BadEdit(Exception):
    """An edit does not fit the answer; the message says why and quotes the lines."""


def apply_edit(answer: str, edit: str) -> str:
    """Return the answer with each hunk of the edit applied.

    A hunk is a run of lines that begin with a space (kept), `-` (removed) or `+` (added); a line
    with @@ separates two hunks. What a hunk keeps and removes must occur exactly once.

    >>> apply_edit("a = 1\\nb = 2\\n", "-b = 2\\n+b = 3\\n")
    'a = 1\\nb = 3\\n'

    Raises:
        BadEdit: a line has no sign, or a hunk does not occur once or begins before another ends.
    """
    lines, done, written = _lines(answer), 0, list[str]()
    for hunk in _hunks(edit):
        before = [line for sign, line in hunk if sign != "+"]
        start = _place(before, lines)
        if start < done:
            raise BadEdit(f"the hunks are not in the order of the answer:\n{_quoted(before)}")
        written += lines[done:start] + [line for sign, line in hunk if sign != "-"]
        done = start + len(before)
    return "\n".join(written + lines[done:]) + "\n"


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.removesuffix("\n").split("\n")]


def _hunks(edit: str) -> list[list[tuple[str, str]]]:
    """Return the hunks, each line split into its sign and its text; an empty line is kept."""
    signed = [(line[:1] or " ", line[1:]) for line in _lines(edit)]
    if bad := [sign + line for sign, line in signed if sign not in " +-@"]:
        raise BadEdit(f"a line of a diff begins with a space, - or +:\n{_quoted(bad)}")
    parts = groupby(signed, key=lambda part: part[0] == "@")
    return [list(hunk) for separates, hunk in parts if not separates]


def _place(wanted: list[str], lines: list[str]) -> int:
    """Return the number of the line at which these lines begin."""
    ends = range(len(lines) - len(wanted) + 1)
    found = [start for start in ends if lines[start : start + len(wanted)] == wanted]
    if not wanted:
        raise BadEdit("a hunk that only adds lines needs a line beside them, to say where")
    if len(found) != 1:
        raise BadEdit(f"lines that occur {len(found)} times in the answer:\n{_quoted(wanted)}")
    return found[0]


def _quoted(lines: list[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)
