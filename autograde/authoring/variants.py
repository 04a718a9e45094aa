"""Variants of an exercise: right answers written another way, wrong ones with their belief.

Each exercise has one Markdown file of them; docs/authoring.md shows one.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autograde.authoring.marks import own_answer
from autograde.authoring.mutants import MUTATIONS, mutant
from autograde.course.cells import named_cells
from autograde.course.lesson_files import read_text, read_utf8
from autograde.course.lessons import CourseError, Exercise, Lesson, lessons, pick
from autograde.grading.running.reference import no_python
from autograde.installed import manual
from autograde.rubric.names import names_of

HINT = re.compile(r"^\d+\.\s+(.+)$", re.MULTILINE)
VARIANT = re.compile(
    r"## (?P<heading>right|wrong|near miss): (?P<name>[a-z0-9_]+) *\n"
    r"(?P<words>(?:(?!```|## ).*\n)*)"
    r"```(?:python|diff (?P<base>\w+)) *\n(?P<code>(?:(?!```).*\n)*)```[ \n]*"
)
MADE = re.compile(r"## near misses: (?P<names>.*)\n\s*")
FORM = (
    "'## right: name', '## wrong: name' or '## near miss: name' (small letters, digits and _), "
    "its words, and one block that is ```python or ```diff NAME; or '## near misses: name, name' "
    "of those that are made from your answer"
)
REFERENCE = "reference"
"""The name by which a diff edits the lesson's own answer."""
OTHER_WAYS = 2
"""The most right variants of an exercise that are shown to students who have solved it."""


@dataclass(frozen=True)
class Variant:
    """One answer to an exercise: right, wrong, or a near miss, which is wrong beside the idea.

    A wrong one has a misconception and a hint; the words of a right one say how it is done. A near
    miss is written, or made from the lesson's own answer.
    """

    exercise: str
    name: str
    heading: str
    code: str
    misconception: str
    hint: str
    made: bool = False


@dataclass(frozen=True)
class Variants:
    """The hints of an exercise and its variants; near misses are among the wrong ones."""

    hints: tuple[str, ...]
    right: tuple[Variant, ...]
    wrong: tuple[Variant, ...]


def read_variants(lesson: Lesson, exercise: Exercise) -> Variants:
    """Read `variants/EXERCISE.md`: numbered hints, then variants, each an answer or an edit of one.

    Raises:
        CourseError: the file is missing or not UTF-8, a part of it is malformed, an edit does not
            apply, or a variant is no answer to the exercise.
    """
    path = lesson.folder / "variants" / f"{exercise.name}.md"
    if not path.is_file():
        raise CourseError(
            f"{exercise.name} has no variants: {path} is missing. It holds hints and right and "
            f"wrong answers; {manual() / 'authoring.md'} shows one."
        )
    about, heading, rest = read_utf8(path).partition("\n## ")
    answers = {REFERENCE: _reference(lesson, exercise)}
    wanted = names_of(answers[REFERENCE]).bound
    variants: dict[str, Variant] = {}
    try:
        for variant in _variants(exercise.name, heading.lstrip() + rest, answers):
            if variant.name in variants:
                raise ValueError(f"two variants are called {variant.name}")
            _require_answer(variant, wanted)
            variants[variant.name] = variant
            if variant.heading == "right":
                answers[variant.name] = variant.code
    except ValueError as error:
        raise CourseError(f"{path}: {error}") from error
    hints = HINT.findall(re.sub(r"\n(?!\n|\d+\.)\s*", " ", about.strip()))
    right = tuple(each for each in variants.values() if each.heading == "right")
    wrong = tuple(each for each in variants.values() if each.heading != "right")
    return Variants(tuple(hints), right, wrong)


def find_variant(root: Path, exercise: str, name: str) -> Variant:
    """Return the variant of this name."""
    places = {e.name: (lesson, e) for lesson in lessons(root).values() for e in lesson.exercises}
    variants = read_variants(*pick("exercise", exercise, places))
    known = {variant.name: variant for variant in (*variants.right, *variants.wrong)}
    return pick("variant", name, known)


def _variants(exercise: str, text: str, answers: dict[str, str]) -> Iterator[Variant]:
    """Yield the variants of a text; nothing may be left between two of them."""
    end = 0
    while end < len(text):
        if found := VARIANT.match(text, end):
            yield _variant(exercise, found, answers)
        elif found := MADE.match(text, end):
            for name in found["names"].split(","):
                yield _made(exercise, name.strip(), answers[REFERENCE])
        else:
            raise ValueError(f"expected {FORM}, found {text[end:].splitlines()[0]!r}")
        end = found.end()


def _made(exercise: str, name: str, answer: str) -> Variant:
    """Return the near miss of this name that is made from the lesson's own answer."""
    if name not in MUTATIONS:
        raise ValueError(
            f"no near miss called {name!r} can be made; there are {', '.join(MUTATIONS)}"
        )
    mutation = MUTATIONS[name]
    try:
        code = mutant(answer, mutation)
    except ValueError as error:
        raise ValueError(f"{name} cannot be made: {error}") from error
    return Variant(exercise, name, "near miss", code, mutation.belief, mutation.hint, made=True)


def _variant(exercise: str, found: re.Match[str], answers: dict[str, str]) -> Variant:
    name, base, code = found["name"], found["base"], found["code"]
    if base is not None:
        if base not in answers:
            raise ValueError(f"{name} edits {base}, which is no right answer above it")
        try:
            code = apply_edit(answers[base], code)
        except ValueError as error:
            raise ValueError(f"{name} cannot edit {base}: {error}") from error
    words = found["words"].splitlines()
    belief = [line[1:] for line in words if line.startswith(">")]
    hint = [line for line in words if not line.startswith(">")]
    return Variant(exercise, name, found["heading"], code, _joined(belief), _joined(hint))


def _require_answer(variant: Variant, wanted: frozenset[str]) -> None:
    """Raises ValueError when a variant is not Python or binds no name that the reference does."""
    try:
        compile(variant.code, variant.name, "exec")
    except SyntaxError as error:
        raise ValueError(f"{variant.name} {no_python(error)}") from error
    if wanted and not wanted & names_of(variant.code).bound:
        raise ValueError(f"{variant.name} defines no {' or '.join(sorted(wanted))}")


def _joined(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())


def _reference(lesson: Lesson, exercise: Exercise) -> str:
    """Return the lesson's own answer without marks and without code given to be repaired."""
    cell = named_cells(read_text(lesson)).get(exercise.name)
    if cell is None:
        raise CourseError(f"{lesson.text.name} has no cell {exercise.name}")
    return own_answer(cell.source)


def apply_edit(answer: str, edit: str) -> str:
    """Return the answer with each hunk of the edit applied.

    A hunk is a run of lines that begin with a space (kept), `-` (removed) or `+` (added); a line
    with @@ separates two hunks. What a hunk keeps and removes must occur exactly once.

    >>> apply_edit("a = 1\\nb = 2\\n", "-b = 2\\n+b = 3\\n")
    'a = 1\\nb = 3\\n'

    Raises:
        ValueError: what a hunk keeps and removes does not occur once.
    """
    answer, found = re.sub(r"[ \t]+$", "", f"\n{answer}", flags=re.MULTILINE), []
    for hunk in filter(None, re.split("^@@.*\n", edit, flags=re.MULTILINE)):
        lines = [line.rstrip() for line in hunk.splitlines()]
        before, after = (
            "".join(f"\n{line[1:]}" for line in lines if line[:1] != sign) for sign in "+-"
        )
        places = [match.start() for match in re.finditer(f"(?={re.escape(before)}\n)", answer)]
        if len(places) != 1:
            quoted = before.replace("\n", "\n    ")  # indented, so that it is read as one fault
            fault = f"occur {len(places)} times in the answer"
            if not places and all(f"{line}\n" in answer + "\n" for line in before[1:].split("\n")):
                fault = "do not follow each other in the answer (a line @@ goes between two places)"
            raise ValueError(f"lines that {fault}:{quoted}")
        found.append((places[0], before, after))
    for place, before, after in sorted(found, reverse=True):
        answer = answer[:place] + after + answer[place + len(before) :]
    return answer.removeprefix("\n")


def other_ways(lesson: Lesson) -> bytes:
    """Return the first right variants of each exercise, as JSON, for feedback pages."""
    ways = {
        exercise.name: [
            {"words": each.hint, "code": each.code}
            for each in read_variants(lesson, exercise).right[:OTHER_WAYS]
        ]
        for exercise in lesson.exercises
    }
    return json.dumps(ways).encode()
