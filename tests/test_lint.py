"""The linter: each fault of a lesson's text, and of what a build makes of it, is named."""

import re
from collections.abc import Callable

import nbformat
import pytest
from nbformat import NotebookNode

from autograde.authoring import lint
from autograde.authoring.sources import source_notebook
from autograde.course.cells import named_cells
from autograde.course.lessons import Lesson


def doubled(nb: NotebookNode) -> None:
    named_cells(nb)["context_vectors"].metadata["nbgrader"]["grade_id"] = "attention_weights"


def unnamed(nb: NotebookNode) -> None:
    del named_cells(nb)["context_vectors"].metadata["nbgrader"]


def in_words(nb: NotebookNode) -> None:
    named_cells(nb)["test_context_vectors"].cell_type = "markdown"


def no_rubric(nb: NotebookNode) -> None:
    nb.cells.remove(named_cells(nb)["test_context_vectors"])


def unknown(nb: NotebookNode) -> None:
    named_cells(nb)["context_vectors"].metadata["nbgrader"]["grade_id"] = "contexts"


def forgotten_question(nb: NotebookNode) -> None:
    about = {"grade_id": "question_why", "locked": True, "grade": False, "solution": False}
    source = "Why?\n\n=== BEGIN MARK SCHEME ===\n\n=== END MARK SCHEME ==="
    nb.cells.append(nbformat.v4.new_markdown_cell(source, metadata={"nbgrader": about}))


def without_end(nb: NotebookNode) -> None:
    cell = named_cells(nb)["context_vectors"]
    cell.source = cell.source.replace("### END SOLUTION", "")


def rubric_first(nb: NotebookNode) -> None:
    rubric = named_cells(nb)["test_context_vectors"]
    nb.cells.remove(rubric)
    nb.cells.insert(0, rubric)


def order(nb: NotebookNode) -> None:
    answer = named_cells(nb)["attention_scores"]
    nb.cells.remove(answer)
    nb.cells.insert(nb.cells.index(named_cells(nb)["test_context_vectors"]), answer)


def pythons(nb: NotebookNode) -> None:
    for cell in nb.cells:
        cell.source = re.sub(r"\bcontext_vectors\b(?=\()", "sum", cell.source)
    named_cells(nb)[
        "test_context_vectors"
    ].source += "\n    r.call('as Python', sum, r.normal(2, 3))"


def given_too(nb: NotebookNode) -> None:
    named_cells(nb)["setup"].source += "\nfrom elsewhere import context_vectors"


def given_elsewhere(nb: NotebookNode) -> None:
    about = {"grade_id": "sizes", "locked": True, "grade": False, "solution": False}
    cell = nbformat.v4.new_code_cell("SIZES = (2, 3)", metadata={"nbgrader": about})
    nb.cells.insert(3, cell)
    named_cells(nb)["test_context_vectors"].source += "\n    r.each('sizes', print, *SIZES)"


def calls_another(nb: NotebookNode) -> None:
    cell = named_cells(nb)["context_vectors"]
    cell.source = cell.source.replace("return ", "attention_scores\n    return ")


FAULTS: dict[Callable[[NotebookNode], None], str] = {
    calls_another: (
        "context_vectors calls attention_scores; in source/curriculum.toml write, below "
        '[lesson.needs]: context_vectors = ["attention_scores"]'
    ),
    doubled: "grade_id 'attention_weights' is used 2 times",
    unnamed: "needs a grade_id: 'def context_vectors(",
    no_rubric: "the cell test_context_vectors is missing",
    unknown: "the cell contexts is of no exercise and no question in source/curriculum.toml",
    forgotten_question: "the cell question_why is of no exercise and no question in source/",
    in_words: "test_context_vectors is a markdown cell; it should be a code cell",
    without_end: "needs each answer between BEGIN SOLUTION and END SOLUTION",
    pythons: "test_context_vectors reads sum, which Python has too; give the answer another name",
    given_too: "test_context_vectors reads context_vectors, which setup has too; give the answer",
    given_elsewhere: "test_context_vectors reads SIZES of sizes, which a student's cell may bind",
    order: (
        "source/curriculum.toml has the exercises in the order attention_scores, stable_softmax, "
        "dot_product_std, attention_weights, context_vectors, SelfAttention_v1, SelfAttention_v2, "
        "transplant; self_attention.py in the order stable_softmax, dot_product_std, "
        "attention_weights, context_vectors, attention_scores, "
    ),
    rubric_first: "test_context_vectors stands before context_vectors",
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_linter_refuses_a_source(lesson: Lesson, fault: Callable[[NotebookNode], None]) -> None:
    nb = source_notebook(lesson)
    assert list(lint.lint_source(lesson, nb)) == []
    fault(nb)
    assert FAULTS[fault] in "\n".join(lint.lint_source(lesson, nb))


def test_linter_refuses_a_solution_that_survives(lesson: Lesson) -> None:
    nb = source_notebook(lesson)
    student = nbformat.read(lesson.released_notebook, as_version=4)
    assert list(lint.lint_student(nb, student)) == []
    named_cells(student)["context_vectors"].source += "\n    return weights @ values"
    student.cells[0].source += "\nreturn queries @ keys.T"
    named_cells(nb)["attention_weights"].source += "\n})"
    student.cells[0].source += "\n})"
    named_cells(student)["setup"].outputs = [nbformat.v4.new_output("stream", text="1")]
    faults = "\n".join(lint.lint_student(nb, student))
    assert "context_vectors: the student's cell is not its source minus the solution" in faults
    assert "a solution line survives: 'return queries @ keys.T'" in faults
    assert "a solution line survives: '})'" not in faults
    assert "setup: the student's cell holds an output" in faults


def test_linter_refuses_a_figure_without_text(lesson: Lesson) -> None:
    executed = nbformat.read(lesson.solution_notebook, as_version=4)
    assert list(lint.lint_outputs(executed)) == []
    figure = next(
        output
        for cell in executed.cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    )
    figure.metadata = {}
    assert "a figure without a text alternative" in next(lint.lint_outputs(executed))


def test_linter_refuses_a_warning(lesson: Lesson) -> None:
    executed = nbformat.read(lesson.solution_notebook, as_version=4)
    cell = next(cell for cell in executed.cells if cell.get("outputs"))
    cell.outputs.append(nbformat.v4.new_output("stream", name="stderr", text="careful\n"))
    (fault,) = lint.lint_outputs(executed)
    assert "the reference warns: careful" in fault
