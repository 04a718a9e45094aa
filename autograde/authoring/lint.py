"""The rules of a lesson. Each function yields every fault that it finds."""

import ast
import builtins
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence

from nbformat import NotebookNode

from autograde.authoring.expected import practice_keys
from autograde.authoring.marks import (
    BEGIN,
    END,
    GIVEN,
    SCHEME_BEGIN,
    code_of,
    given_lines,
    kept_back,
    students_version,
    without_solution,
)
from autograde.authoring.variants import read_variants
from autograde.cards import read_card
from autograde.course.cells import (
    OTHER,
    code_cells,
    exercise_of,
    grade_id,
    listed_cells,
    named_cells,
)
from autograde.course.lesson_files import read_utf8, text_of
from autograde.course.lessons import CURRICULUM, Exercise, Lesson
from autograde.grading.running.reference import DEFINED, load, no_python
from autograde.notebook.explaining import is_demonstration
from autograde.rubric.judge import judge, with_other_inputs
from autograde.rubric.kinds import KINDS
from autograde.rubric.names import names_of
from autograde.rubric.recording import Recording
from autograde.rubric.session import PRACTICE_SEED

NAMED_BRIEFLY = re.compile(r"^# %%.* grade_id=", re.MULTILINE)


def lint_source(lesson: Lesson, nb: NotebookNode) -> Iterator[str]:
    """Yield faults in a lesson's card, and in the names, the order and the rubrics of its text."""
    cells = named_cells(nb)
    yield from _lint_filter(lesson)
    yield from _lint_cells(lesson, nb)
    for exercise in lesson.exercises:
        if rubric := cells.get(exercise.rubric_cell):
            yield from _lint_rubric(exercise, rubric)
    yield from _lint_order(lesson, nb)
    yield from _lint_marks(lesson, nb)
    yield from _lint_demonstrations(nb)
    yield from _lint_names(lesson, cells)
    yield from _lint_needs(lesson, cells)
    try:
        read_card(lesson.folder)
    except ValueError as error:
        yield str(error)


def _lint_filter(lesson: Lesson) -> Iterator[str]:
    """Yield the fault of a course whose jupytext would drop the names of cells when it saves."""
    path = lesson.root / "jupytext.toml"
    if not path.is_file() or not NAMED_BRIEFLY.search(text_of(lesson)):
        return
    kept = tomllib.loads(read_utf8(path)).get("cell_metadata_filter", "all")
    if not {"grade_id", "all"}.intersection(kept.split(",")):
        yield (
            f"{path}: with this filter a text loses its cells' names when JupyterLab saves it. "
            f'Write cell_metadata_filter = "grade_id,{kept}"'
        )


def _lint_cells(lesson: Lesson, nb: NotebookNode) -> Iterator[str]:
    """Yield names that are used twice, and cells that the text or the curriculum lacks."""
    listed, found = listed_cells(lesson), [name for cell in nb.cells if (name := grade_id(cell))]
    for name, n in Counter(found).items():
        if n > 1:
            yield f"grade_id {name!r} is used {n} times"
    for name in listed:
        if name not in found:
            yield f"the cell {name} is missing: {CURRICULUM} wants it, {lesson.text.name} lacks it"
    by_hand = {question.name for question in lesson.written}  # in words or in code
    answers = {f"question_{grade_id(cell)}" for cell in nb.cells if BEGIN in cell.source}
    for number, cell in enumerate(nb.cells):
        name = grade_id(cell)
        if name in listed:
            kind = "markdown" if listed[name] is OTHER else "code"
            if cell.cell_type != kind and name not in by_hand:
                yield f"{name} is a {cell.cell_type} cell; it should be a {kind} cell"
        elif name and (
            exercise_of(cell)
            or BEGIN in cell.source
            or (SCHEME_BEGIN in cell.source and name not in answers)  # else its answer is named
        ):
            yield f"the cell {name} is of no exercise and no question in {CURRICULUM}"
        elif BEGIN in cell.source:
            yield f"cell {number} needs a grade_id: {cell.source[:40]!r}"


def _lint_order(lesson: Lesson, nb: NotebookNode) -> Iterator[str]:
    """Yield cells that stand before others that they should follow."""
    names = [name for cell in nb.cells if (name := grade_id(cell))]
    pairs = [(exercise.name, exercise.rubric_cell) for exercise in lesson.exercises]
    pairs += [(written.question_cell, written.name) for written in lesson.written]
    for first, second in pairs:
        if {first, second} <= {*names} and names.index(second) < names.index(first):
            yield f"{second} stands before {first}; it should come after"
    listed = [each.name for each in lesson.exercises if each.name in names]
    stand = sorted(listed, key=names.index)
    if listed != stand:  # "Next:" goes by the curriculum
        yield (
            f"{CURRICULUM} has the exercises in the order {', '.join(listed)}; {lesson.text.name} "
            f"in the order {', '.join(stand)}. Give both the same order"
        )


def _lint_marks(lesson: Lesson, nb: NotebookNode) -> Iterator[str]:
    """Yield answers and marking schemes whose marks are missing or in the wrong cell."""
    cells = named_cells(nb)
    for name in filter(cells.__contains__, lesson.worth):
        if not 0 < cells[name].source.count(BEGIN) == cells[name].source.count(END):
            yield f"{name} needs each answer between {BEGIN} and {END}"
    questions = {written.question_cell for written in lesson.written}
    schemes = {grade_id(c) or _place(c) for c in nb.cells if SCHEME_BEGIN in c.source}
    # those of cells that the curriculum does not list: _lint_cells names these
    unlisted = {f"question_{name}" for name in cells.keys() - listed_cells(lesson).keys()}
    for name in sorted((questions ^ schemes) - unlisted):
        yield f"{name}: a marking scheme belongs in each question's cell, and in no other"


def _lint_demonstrations(nb: NotebookNode) -> Iterator[str]:
    """Yield faults of cells that are skipped in grading."""
    named = [cell for cell in code_cells(nb) if grade_id(cell)]
    for cell in code_cells(nb):
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


def _lint_rubric(exercise: Exercise, cell: NotebookNode) -> Iterator[str]:
    """Yield faults of a rubric that is more than a list of calls; students read it."""
    name = exercise.rubric_cell
    try:
        body = ast.parse(cell.source).body
    except SyntaxError:
        return  # named when the reference runs
    heavy = (ast.Lambda, ast.ClassDef, ast.Import, ast.ImportFrom, ast.FunctionDef)
    if len(body) != 1 or sum(isinstance(node, heavy) for node in ast.walk(body[0])) > 1:
        yield (
            f"{name} holds more than its lines: one function of calls, without lambda, helpers or "
            "imports. Whatever else a line needs belongs in a function in the cell that imports "
            "rubric, or in a probe of the package"
        )


def _lint_names(lesson: Lesson, cells: dict[str, NotebookNode]) -> Iterator[str]:
    """Yield names that a rubric reads and cannot tell from others: see `rubric.lesson_names`."""
    code = {name: cell for name, cell in cells.items() if cell.cell_type == "code"}
    others = code.keys() - listed_cells(lesson).keys()
    given = {n: names_of(code[n].source).bound for n in code if n in others}
    setup = next((name for name, bound in given.items() if "rubric" in bound), "")
    answers = {
        defined
        for name in filter(code.__contains__, lesson.worth)
        for defined in DEFINED.findall(code[name].source)
    }
    for rubric in (exercise.rubric_cell for exercise in lesson.exercises):
        if rubric not in code:
            continue
        read = names_of(code[rubric].source).needed
        owners = {"Python": frozenset(vars(builtins)), setup: given.get(setup, frozenset())}
        for owner, bound in owners.items():
            for name in sorted(read & answers & bound):
                yield f"{rubric} reads {name}, which {owner} has too; give the answer another name"
        for other in given.keys() - {setup}:
            for name in sorted((read & given[other]) - answers):
                yield (
                    f"{rubric} reads {name} of {other}, which a student's cell may bind again; "
                    "bind it in the cell that imports rubric"
                )


def _lint_needs(lesson: Lesson, cells: dict[str, NotebookNode]) -> Iterator[str]:
    """Yield earlier exercises that an answer calls and the curriculum does not say."""
    earlier = set[str]()
    for exercise in lesson.exercises:
        if exercise.name in cells:
            called = names_of(cells[exercise.name].source).used & earlier - {*exercise.needs}
            if called:
                needs = json.dumps([*exercise.needs, *sorted(called)])
                yield (
                    f"{exercise.name} calls {', '.join(sorted(called))}; in {CURRICULUM} write, "
                    f"below [lesson.needs]: {exercise.name} = {needs}"
                )
        earlier.add(exercise.name)


def shown_on_purpose(nb: NotebookNode) -> set[str]:
    """Return the stripped lines of given code: locked cells except rubrics, and GIVEN blocks."""
    lines: list[str] = []
    for cell in nb.cells:
        about = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and about.get("locked") and not about.get("grade"):
            lines += cell.source.splitlines()
        lines += given_lines(cell.source)
    return {code_of(line) for line in lines}


def lint_student(nb: NotebookNode, student: NotebookNode) -> Iterator[str]:
    """Yield faults of the student version: every cell is its source minus the solution."""
    if len(nb.cells) != len(student.cells):
        yield f"the student version has {len(student.cells)} cells, the source {len(nb.cells)}"
        return
    for wanted, released in zip(students_version(nb).cells, student.cells, strict=True):
        if released.source != wanted.source:
            yield f"{_place(wanted)}: the student's cell is not its source minus the solution"
        if released.get("outputs"):
            yield f"{_place(wanted)}: the student's cell holds an output"
    pairs = zip(nb.cells, student.cells, strict=True)
    hidden = {line for cell, released in pairs for line in kept_back(cell.source, released.source)}
    secret = set(filter(_tells, hidden)) - shown_on_purpose(nb)
    for cell in student.cells:
        for line in cell.source.splitlines():
            if code_of(line) in secret:
                yield f"{_place(cell)}: a solution line survives: {line.strip()!r}"


def _tells(line: str) -> bool:
    """Return whether a line gives something away: a call or an operation, not a name or a `)`."""
    if line.endswith(":") or not re.search(r"\w", line):
        return False
    try:
        tree = ast.parse(line)
    except SyntaxError:
        return True
    return any(isinstance(node, ast.Call | ast.BinOp) for node in ast.walk(tree))


def lint_outputs(executed: NotebookNode, failed: Sequence[NotebookNode] = ()) -> Iterator[str]:
    """Yield faults of the executed reference: errors, warnings, pictures without words.

    Args:
        failed: the cells that ended in an error. Where it is not shown, a rubric is not right.
    """
    for cell in executed.cells:
        raised = [output for output in cell.get("outputs", []) if output.output_type == "error"]
        for error in raised:
            yield f"{_place(cell)}: the reference raises {error.ename}: {error.evalue}"
        if cell in failed and not raised:
            said = "".join(output.get("data", {}).get("text/plain", "") for output in cell.outputs)
            yield f"{_place(cell)}: the lesson's own answer is not right in a notebook:\n{said}"
        for output in cell.get("outputs", []):
            if output.get("name") == "stderr":  # it differs from machine to machine
                yield f"{_place(cell)}: the reference warns: {output.text.strip()[:200]}"
            data, metadata = output.get("data", {}), output.get("metadata", {})
            for mime in data:
                if mime.startswith("image/") and not metadata.get(mime, {}).get("alt"):
                    yield f"{_place(cell)}: a figure without a text alternative; use show()"


def _place(cell: NotebookNode) -> str:
    """Return words by which an author finds a cell."""
    if name := grade_id(cell):
        return name
    lines = [line.strip() for line in cell.source.splitlines()]
    code = " ".join(line for line in lines if not line.startswith("#"))
    return f"the cell {(code or cell.source)[:60]!r}"


def lint_variants(lesson: Lesson, named: tuple[Exercise, ...] = ()) -> Iterator[str]:
    """Yield faults of hints, variants and rubric lines."""
    for name, key in practice_keys(lesson, named).items():
        variants = read_variants(lesson, lesson.exercise(name))
        if not 2 <= len(variants.hints) <= 3:
            yield (
                f"{name} has {len(variants.hints)} numbered hints at the top of "
                f"variants/{name}.md; it needs 2 or 3"
            )
        for wrong in variants.wrong:
            if not wrong.misconception:
                yield f"{name}: {wrong.name} lacks a misconception, in lines that begin with >"
            if not wrong.hint:
                yield f"{name}: {wrong.name} lacks a hint, below the misconception"
        failed = {number for mistake in key.mistakes for number in mistake.failed}
        for number, line in enumerate(key.expected.lines):
            if number not in failed:
                yield (
                    f"{name}: no wrong variant fails the line “{line.name}”. Add one that does, or "
                    "change the line"
                )


def _caught(recording: Recording) -> str:
    """Return the first line that has a result of an exercise that is not written."""
    return next(
        f"“{line.name}”"
        for line in recording.lines
        if not KINDS[line.kind].looks_back
        and not all(case.outcome.not_attempted for case in line.cases)
    )


def lint_stubs(lesson: Lesson, nb: NotebookNode, named: tuple[Exercise, ...] = ()) -> Iterator[str]:
    """Yield faults of the stubs: an untouched exercise counts as not attempted.

    Code that is given to be repaired earns nothing as it is.
    """
    reference, cells = load(lesson), named_cells(nb)
    for name, key in practice_keys(lesson, named).items():
        source = without_solution(cells[name].source)
        try:
            if GIVEN not in cells[name].source:  # which may have syntax errors to be repaired
                compile(source, name, "exec")
            stub = reference.with_answer(source)
        except SyntaxError as error:
            yield (
                f"{name}: what students get in its place {no_python(error)}. Put the solution's "
                "marks around whole statements, indented as the stub should be"
            )
            continue
        except Exception as error:  # where the answer ends the cell, Run All ends too
            yield (
                f"{name}: what students get in its place raises {type(error).__name__} as soon as "
                "the cell is run, so that the name is missing: put the solution's marks inside a "
                "function, in a class inside each method; or give students a beginning of their "
                "own, between ### BEGIN GIVEN and ### END GIVEN"
            )
            continue
        recording = stub.record(name, PRACTICE_SEED)
        if line := with_other_inputs(recording, key):
            yield (
                f"{name}: the line “{line}” has other inputs each time the rubric runs. Draw them "
                "from r, such as with r.rng, not with random or np.random"
            )
            continue
        verdict = judge(recording, key)
        if GIVEN in cells[name].source:
            if verdict.points:
                yield f"{name}: the given code earns {verdict.points:g} points"
        elif verdict.attempted:
            yield (
                f"{name}: the untouched exercise counts as attempted, because its "
                f"NotImplementedError does not reach {_caught(recording)}. A helper that catches "
                "errors has to raise this one again; it is a RuntimeError"
            )
