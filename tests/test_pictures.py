"""Cells that only draw are left out of grading, unless something else needs what they give."""

import nbformat
import pytest
from nbformat import NotebookNode

from autograde.course import Lesson
from autograde.grader.pictures import only_drawing

PICTURE = "figure = draw(scores)\nshow(figure, 'Scores.')"


def notebook(*sources: str, hidden: str = PICTURE) -> NotebookNode:
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(s) for s in sources])
    for cell in nb.cells:
        if cell.source == hidden:
            cell.metadata.jupyter = {"source_hidden": True}
    return nb


@pytest.mark.parametrize(
    ("sources", "left_out"),
    [
        (["scores = 1", PICTURE, "print(scores)"], {1}),
        (["scores = 1", PICTURE, "figure.savefig('mine.png')"], set()),
        (["scores = 1", PICTURE + "\nanswer = 42"], set()),
        (["scores = 1", PICTURE, "def answer(x):\n    return x + figure"], set()),
        (["scores = 1", PICTURE, "def answer(figure):\n    return figure  # a figure"], {1}),
        (["figure = figure + 1", PICTURE], set()),
        (["figure = 1\nfigure + 1", PICTURE], {1}),
        (["[figure for figure in range(3)]", PICTURE], {1}),
        (["for figure in range(3):\n    print(figure)", PICTURE], {1}),
        (["%magic", PICTURE, "def broken("], {1}),
        ([PICTURE, PICTURE], {0, 1}),
    ],
)
def test_a_picture_is_left_out(sources: list[str], left_out: set[int]) -> None:
    assert only_drawing(notebook(*sources), notebook(PICTURE)) == left_out


def test_the_lesson_has_some(lesson: Lesson) -> None:
    released = nbformat.read(lesson.released_notebook, as_version=4)
    assert len(only_drawing(released, released)) > 5
