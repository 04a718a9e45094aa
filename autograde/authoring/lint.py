"""The rules of a lesson. Each function yields every fault that it finds."""

import ast
import re
from collections import Counter
from collections.abc import Iterator

from nbformat import NotebookNode

from autograde.authoring.expected import practice_keys
from autograde.authoring.marks import (
    BEGIN,
    END,
    GIVEN,
    SCHEME_BEGIN,
    STUB,
    WRITTEN_STUB,
    code_of,
    given_lines,
    solution_lines,
    without_solution,
)
from autograde.authoring.variants import Variants, read_variants
from autograde.course import (
    CURRICULUM,
    CourseError,
    Exercise,
    Lesson,
    Written,
    grade_id,
    named_cells,
)
from autograde.grading.running.reference import load, no_python
from autograde.notebook.demonstrations import is_demonstration
from autograde.rubric.judge import judge
from autograde.rubric.key import Key
from autograde.rubric.names import names_of
from autograde.rubric.session import PRACTICE_SEED

LONGEST_RUBRIC = 15
HEADING = re.compile(r"^#+ .*`(\w+)` \((\d+(?:\.\d+)?) point", re.MULTILINE)
"""The heading of an exercise or a question, with its name and points."""


def lint_source(lesson: Lesson, nb: NotebookNode) -> Iterator[str]:
    """Yield faults in the names, points and rubric cells of a lesson's source."""
    names = [name for cell in nb.cells if (name := grade_id(cell))]
    for name, n in Counter(names).items():
        if n > 1:
            yield f"grade_id {name!r} is used {n} times"
    yield from _unnamed(nb)
    cells = named_cells(nb)
    known = {name for e in lesson.exercises for name in (e.name, e.rubric_cell)}
    known |= {written.name for written in lesson.written}
    for name, cell in cells.items():
        kind = cell.metadata["nbgrader"]
        if (kind.get("grade") or kind.get("solution")) and name not in known:
            yield (
                f"{name!r} is graded or a solution, but not in the curriculum; an exercise stands "
                f"below [lesson.points] in {CURRICULUM}, its rubric is called test_EXERCISE"
            )
    for exercise in lesson.exercises:
        yield from _lint_exercise(exercise, cells, names)
    for written in lesson.written:
        yield from _lint_written(lesson, written, cells, names)
    text = "\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")
    for name, points in HEADING.findall(text):
        if float(points) != lesson.worth.get(name, float(points)):
            wanted = f"{lesson.worth[name]:g}"
            yield f"the heading of {name} says {points} points, the curriculum {wanted}"
    questions = {written.question_cell for written in lesson.written}
    for number, cell in enumerate(nb.cells):
        if SCHEME_BEGIN in cell.source and grade_id(cell) not in questions:
            yield f"cell {number} holds a marking scheme, but is not a question of the curriculum"
    yield from _lint_demonstrations(nb)


def _lint_demonstrations(nb: NotebookNode) -> Iterator[str]:
    """Yield faults of cells that are skipped in grading."""
    code = [cell for cell in nb.cells if cell.cell_type == "code" and not _no_python(cell.source)]
    named = [cell for cell in code if grade_id(cell)]
    for cell in code:
        if not is_demonstration(cell.source):
            continue
        if grade_id(cell):
            yield f"{grade_id(cell)} is a demonstration, but grading needs it; remove its name"
            continue
        made = names_of(cell.source).bound
        for other in named:
            if needed := sorted(made & names_of(other.source).needed):
                yield (
                    f"{grade_id(other)} needs {', '.join(needed)} from {_place(cell)}, which is a "
                    "demonstration and not run in grading"
                )


def _unnamed(nb: NotebookNode) -> Iterator[str]:
    for number, cell in enumerate(nb.cells):
        kind = cell.metadata.get("nbgrader", {})
        marked = kind.get("grade") or kind.get("solution") or kind.get("locked")
        if (marked or BEGIN in cell.source) and grade_id(cell) is None:
            yield f"cell {number} needs a grade_id: {cell.source[:40]!r}"


def _lint_exercise(
    exercise: Exercise, cells: dict[str, NotebookNode], names: list[str]
) -> Iterator[str]:
    solution, rubric = cells.get(exercise.name), cells.get(exercise.rubric_cell)
    if solution is None or not solution.metadata["nbgrader"].get("solution"):
        yield (
            f"{exercise.name} has no solution cell: no cell of this ID whose type is "
            "Autograded answer"
        )
    elif not 0 < solution.source.count(BEGIN) == solution.source.count(END):
        yield f"{exercise.name} needs each answer between ### {BEGIN} and ### {END}"
    if rubric is None or not rubric.metadata["nbgrader"].get("grade"):
        yield (
            f"{exercise.name} has no rubric: no cell of the ID {exercise.rubric_cell} whose type "
            "is Autograded tests"
        )
        return
    points = rubric.metadata["nbgrader"].get("points")
    if points != exercise.points:
        yield (
            f"{exercise.rubric_cell} has {points} points, the curriculum {exercise.points:g}; "
            "give both the same"
        )
    if f'rubric("{exercise.name}"' not in rubric.source:
        yield f'{exercise.rubric_cell} does not open rubric("{exercise.name}")'
    if problem := _no_python(rubric.source):
        yield f"{exercise.rubric_cell} {problem}"
    else:
        yield from _lint_rubric(exercise, rubric.source)
    if "raises-exception" not in rubric.metadata.get("tags", []):
        yield f"{exercise.rubric_cell} needs the tag raises-exception, so that Run All goes on"
    if solution is not None and names.index(exercise.rubric_cell) < names.index(exercise.name):
        yield f"{exercise.rubric_cell} stands before its exercise"


def _lint_written(
    lesson: Lesson, written: Written, cells: dict[str, NotebookNode], names: list[str]
) -> Iterator[str]:
    answer, question = cells.get(written.name), cells.get(written.question_cell)
    if question is None or SCHEME_BEGIN not in question.source:
        yield f"{written.name} has no marking scheme: no such part in {written.question_cell!r}"
    elif question.cell_type != "markdown" or not question.metadata["nbgrader"].get("locked"):
        yield f"{written.question_cell} must be a locked Markdown cell"
    elif answer is not None and names.index(written.name) < names.index(written.question_cell):
        yield f"{written.question_cell} stands after its answer"
    if (
        f"test_{written.name}" in cells
        or (lesson.folder / "variants" / f"{written.name}.md").exists()
    ):
        yield f"{written.name} is graded by hand, so it has neither a rubric nor variants"
    if answer is None or answer.cell_type != "markdown":
        yield f"{written.name} has no Markdown cell for the answer"
        return
    kind = answer.metadata["nbgrader"]
    if not kind.get("grade") or not kind.get("solution") or kind.get("locked"):
        yield f"{written.name} must be a manually graded answer: grade, solution, not locked"
    if kind.get("points") != written.points:
        yield f"{written.name} has {kind.get('points')} points, the curriculum {written.points:g}"
    if BEGIN not in answer.source:
        yield f"{written.name} has no instructor's answer between solution marks"


def _no_python(source: str) -> str:
    """Return why the text of a cell cannot be read, or ""."""
    try:
        ast.parse(source)
    except SyntaxError as error:
        return no_python(error)
    return ""


def _lint_rubric(exercise: Exercise, source: str) -> Iterator[str]:
    """Yield faults of a rubric that is more than a list of calls; students read it."""
    tree = ast.parse(source)
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    if len(tree.body) != 1 or names != ["_"]:
        yield (
            f"{exercise.rubric_cell} holds more than its lines; put them into one function: "
            f'@rubric("{exercise.name}") def _(r): …'
        )
    heavy = (ast.Lambda, ast.ClassDef, ast.Import, ast.ImportFrom, ast.FunctionDef)
    inside = [node for statement in tree.body for node in ast.walk(statement)]
    if sum(isinstance(node, heavy) for node in inside) > len(names):
        yield (
            f"{exercise.rubric_cell} defines or imports something; whatever a line needs besides "
            "calls belongs in a probe of the package"
        )
    code = [line for line in source.splitlines() if line.strip() and line.strip()[0] != "#"]
    if len(code) > LONGEST_RUBRIC:
        yield f"{exercise.rubric_cell} has {len(code)} lines of code, at most {LONGEST_RUBRIC}"


def shown_on_purpose(nb: NotebookNode) -> set[str]:
    """Return the stripped lines of given code: locked cells except rubrics, and GIVEN blocks."""
    lines: list[str] = []
    for cell in nb.cells:
        kind = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and kind.get("locked") and not kind.get("grade"):
            lines += cell.source.splitlines()
        lines += given_lines(cell.source)
    return {code_of(line) for line in lines}


def lint_student(nb: NotebookNode, student: NotebookNode) -> Iterator[str]:
    """Yield faults of the student version: every cell is its source minus the solution."""
    if len(nb.cells) != len(student.cells):
        yield f"the student version has {len(student.cells)} cells, the source {len(nb.cells)}"
        return
    for cell, released in zip(nb.cells, student.cells, strict=True):
        stub = STUB if cell.cell_type == "code" else WRITTEN_STUB
        if released.source != without_solution(cell.source, stub):
            yield f"{_place(cell)}: the student's cell is not its source minus the solution"
        if released.get("outputs"):
            yield f"{_place(cell)}: the student's cell holds an output"
    secret = {line for cell in nb.cells for line in solution_lines(cell.source) if _tells(line)}
    secret -= shown_on_purpose(nb)
    for cell in student.cells:
        for line in cell.source.splitlines():
            if code_of(line) in secret:
                yield f"{_place(cell)}: a solution line survives: {line.strip()!r}"


def _tells(line: str) -> bool:
    """Return whether a line gives something away: a call or an operation, not a name."""
    if line.endswith(":"):
        return False
    try:
        tree = ast.parse(line)
    except SyntaxError:
        return True
    return any(isinstance(node, ast.Call | ast.BinOp) for node in ast.walk(tree))


def lint_outputs(executed: NotebookNode) -> Iterator[str]:
    """Yield faults of the executed reference: errors, warnings, pictures without words."""
    for cell in executed.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                yield f"{_place(cell)}: the reference raises {output.ename}: {output.evalue}"
            if output.get("name") == "stderr":  # it differs from machine to machine
                yield f"{_place(cell)}: the reference warns: {output.text.strip()[:200]}"
            data, metadata = output.get("data", {}), output.get("metadata", {})
            for kind in data:
                if kind.startswith("image/") and not metadata.get(kind, {}).get("alt"):
                    yield f"{_place(cell)}: a figure without a text alternative; use show()"


def _place(cell: NotebookNode) -> str:
    """Return words by which an author finds a cell."""
    if name := grade_id(cell):
        return name
    lines = [line.strip() for line in cell.source.splitlines()]
    code = " ".join(line for line in lines if not line.startswith("#"))
    return f"the cell {(code or cell.source)[:60]!r}"


def lint_variants(lesson: Lesson) -> Iterator[str]:
    """Yield faults of hints, variants and rubric lines."""
    try:
        keys = practice_keys(lesson)
    except CourseError as error:
        yield from str(error).splitlines()
        return
    for exercise in lesson.exercises:
        yield from _lint_variants(read_variants(lesson, exercise), keys[exercise.name])


def _lint_variants(variants: Variants, key: Key) -> Iterator[str]:
    name = key.exercise
    if not 2 <= len(variants.hints) <= 3:
        yield f"{name} has {len(variants.hints)} hints, it needs 2 or 3"
    for wrong in variants.wrong:
        if not wrong.misconception or not wrong.hint:
            yield f"{name}: {wrong.name} lacks a misconception or a hint"
    failed = {number for mistake in key.mistakes for number in mistake.failed}
    for number, line in enumerate(key.expected.lines):
        if number not in failed:
            yield f"{name}: no wrong variant fails the line “{line.name}”"


def lint_stubs(lesson: Lesson, nb: NotebookNode) -> Iterator[str]:
    """Yield faults of the stubs: an untouched exercise counts as not attempted.

    Code that is given to be repaired earns nothing as it is.
    """
    reference, keys = load(lesson), practice_keys(lesson)
    cells = named_cells(nb)
    for exercise in lesson.exercises:
        cell = cells[exercise.name]
        stub = reference.with_answer(without_solution(cell.source))
        recording = stub.record(exercise.name, PRACTICE_SEED)
        verdict = judge(recording, keys[exercise.name])
        if GIVEN in cell.source:
            if verdict.points:
                yield f"{exercise.name}: the given code earns {verdict.points:g} points"
        elif verdict.attempted:
            yield f"{exercise.name}: the untouched exercise counts as attempted"
