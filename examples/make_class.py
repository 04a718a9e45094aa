"""A sample class: submissions of a lesson, made from its variants; one seed, one class.

Some are perfect, some partly wrong, some unfinished, and some are what an instructor dreads. That
makes 24; a small class has four of them, which run quickly.
"""

import copy
import json
import random
from collections.abc import Callable
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograde.authoring.variants import Variants, read_variants
from autograde.course.cells import grade_id
from autograde.course.lessons import Exercise, Lesson

SEED = 7


def reference_answers(lesson: Lesson) -> dict[str, str]:
    """The instructor's own answers, by exercise; the written ones as well."""
    nb = nbformat.read(lesson.solution_notebook, as_version=4)
    names = {task.name for task in (*lesson.exercises, *lesson.written)}
    return {name: cell.source for cell in nb.cells if (name := grade_id(cell)) in names}


def fill(lesson: Lesson, answers: dict[str, str]) -> NotebookNode:
    """The student version with these answers in it; other exercises stay untouched."""
    nb = nbformat.read(lesson.released_notebook, as_version=4)
    for cell in nb.cells:
        cell.source = answers.get(grade_id(cell) or "", cell.source)
    return nb


def mixed(variants: dict[str, Variants], rng: random.Random, wrong: int) -> dict[str, str]:
    """Answers that are right variants, but for `wrong` exercises that get a wrong one."""
    failing = rng.sample(list(variants), min(wrong, len(variants)))
    return {
        name: rng.choice(each.wrong if name in failing else each.right).code
        for name, each in variants.items()
    }


def _position(nb: NotebookNode, name: str) -> int:
    return next(i for i, cell in enumerate(nb.cells) if grade_id(cell) == name)


def deleted_rubric(nb: NotebookNode, last: Exercise) -> None:
    del nb.cells[_position(nb, last.rubric_cell)]


def doubled_rubric(nb: NotebookNode, last: Exercise) -> None:
    place = _position(nb, last.rubric_cell)
    nb.cells.insert(place, copy.deepcopy(nb.cells[place]))
    nb.cells[place]["id"] = "copied"


def edited_rubric(nb: NotebookNode, last: Exercise) -> None:
    nb.cells[_position(nb, last.rubric_cell)].source = "print('all right')"


def answer_as_markdown(nb: NotebookNode, last: Exercise) -> None:
    place = _position(nb, last.name)
    old = nb.cells[place]
    nb.cells[place] = nbformat.v4.new_markdown_cell(old.source, metadata=old.metadata, id=old.id)


def answer(code: str) -> Callable[[NotebookNode, Exercise], None]:
    """Replace the last exercise's answer by this code."""

    def change(nb: NotebookNode, last: Exercise) -> None:
        nb.cells[_position(nb, last.name)].source = code.replace("NAME", last.name)

    return change


CHANGES: dict[str, Callable[[NotebookNode, Exercise], None]] = {
    "deleted_rubric": deleted_rubric,
    "doubled_rubric": doubled_rubric,
    "edited_rubric": edited_rubric,
    "answer_as_markdown": answer_as_markdown,
    "syntax_error": answer("def NAME(*args)\n    return None"),
    "process_ended": answer("import os\n\nos._exit(0)"),
    "out_of_memory": answer(
        "import os, signal\n\n"
        "os.kill(os.getpid(), signal.SIGKILL)  # what the system does when memory runs out"
    ),
    "megabytes_of_output": answer("for _ in range(200_000):\n    print('x' * 100)"),
}
"""What goes wrong inside a notebook that is right otherwise; it befalls the last exercise."""

FILES: dict[str, bytes] = {
    "not_json": b"PK\x03\x04 this is a zip file",
    "not_a_notebook": json.dumps({"name": "my homework"}).encode(),
    "empty_file": b"",
}
"""Files that are no notebooks."""


SMALL = {"perfect_1", "partly_1", "partly_3", "unfinished_half"}
"""The students of a small class, in which nothing goes wrong that the large one does not show."""


def make_class(lesson: Lesson, folder: Path, *, small: bool = False) -> list[str]:
    """Write submitted/STUDENT/LESSON below `folder`; returns the ids of the lesson's students."""
    rng = random.Random(SEED)  # noqa: S311 (a sample class, no secret)
    right, names = reference_answers(lesson), [exercise.name for exercise in lesson.exercises]
    variants = {each.name: read_variants(lesson, each) for each in lesson.exercises}
    wrong = {"perfect_1": 0, "perfect_2": 0, **{f"partly_{n}": n for n in range(1, 5)}}
    done = {"untouched": 0, "half": len(names) // 2, "nearly": len(names) - 1}
    notebooks = {
        "perfect_reference": fill(lesson, right),
        **{name: fill(lesson, right | mixed(variants, rng, n)) for name, n in wrong.items()},
        **{
            f"unfinished_{name}": fill(lesson, {each: right[each] for each in names[:n]})
            for name, n in done.items()
        },
    }
    for name, change in CHANGES.items():
        notebooks[name] = fill(lesson, right)
        change(notebooks[name], lesson.exercises[-1])
    files = {
        student: (f"{lesson.notebook}.ipynb", nbformat.writes(nb).encode())
        for student, nb in notebooks.items()
        if not small or student in SMALL
    }
    for student, content in FILES.items():
        files[student] = (f"{lesson.notebook}.ipynb", content)
    files["wrong_name"] = ("homework (1).ipynb", files["perfect_1"][1])
    files["no_notebook"] = ("notes.txt", b"I did it on paper.")
    students = sorted(name for name in files if not small or name in SMALL)
    for student in students:
        name, content = files[student]
        place = folder / "submitted" / student / lesson.name
        place.mkdir(parents=True)
        (place / name).write_bytes(content)
    return students
