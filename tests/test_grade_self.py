"""`autograde self`: a saved notebook graded on the student's machine, from practice data alone."""

from pathlib import Path

import nbformat
import pytest
from classes import wrong_answer
from click.testing import Result
from conftest import HERE, run
from screen_reader import outline_of
from working_copy import LESSON, answer_all, change, make_project, mine, released

from autograde.commands import for_students
from autograde.course.lessons import lessons
from autograde.grading import pipeline
from autograde.grading.limits import LIMITS
from autograde.grading.running.job import Job, Ran
from autograde.grading.running.run import Look
from autograde.workspace.grade_self import REMARK
from autograde.workspace.project import Project


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Result, list[str]]:
    """One mistake, one exercise left out, and a rubric that was made to say yes."""
    project = make_project(tmp_path_factory.mktemp("alone"))
    stub = nbformat.read(released(project), as_version=4)
    untouched = next(cell.source for cell in stub.cells if cell.id == "future_influence")
    wrong = wrong_answer(lessons(HERE)[LESSON], "causal_mask", "one_too_many")
    answer_all(mine(project), causal_mask=wrong.code, future_influence=untouched)
    change(mine(project), lambda cells: cells["test_causal_mask"].update(source="print('right')"))
    opened: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(for_students.webbrowser, "open", opened.append)
        result = run(project.work, "self", LESSON)
    return project, result, opened


def test_it_says_what_each_exercise_earned(graded: tuple[Project, Result, list[str]]) -> None:
    _, result, _ = graded
    assert result.exit_code == 0, result.output
    said = result.output.splitlines()
    assert "apply_mask: 1 of 1 point" in said
    assert "future_influence: 0 of 3 points" in said
    assert "causal_mask: 1 of 1 point" not in said  # the rubric was put back


def test_it_opens_the_page_that_it_names(graded: tuple[Project, Result, list[str]]) -> None:
    project, result, opened = graded
    page = project.work / "feedback" / LESSON / "causal_mask.html"
    assert f"feedback: {page}" in result.output
    assert opened == [page.as_uri()]


def test_the_page_is_that_of_grading(graded: tuple[Project, Result, list[str]]) -> None:
    project, _, _ = graded
    html = (project.work / "feedback" / LESSON / "causal_mask.html").read_text()
    page = outline_of(html)
    assert page.faults() == []
    assert REMARK in page.text
    assert "This result usually comes from assuming that" in page.text
    assert "Rubric cell: the cell was changed; the original is used." in page.text
    assert "Not written yet" in page.text
    assert "wall" not in page.text.lower()
    assert "http" not in html.split("</style>")[1]


def test_the_notebook_and_the_folder_stay_as_they_were(
    graded: tuple[Project, Result, list[str]],
) -> None:
    project, _, _ = graded
    assert "print('right')" in mine(project).read_text()
    assert sorted(path.name for path in (project.work / LESSON).iterdir()) == [
        "card.toml",
        "causal_mask.ipynb",
        "practice.safetensors.gz",
    ]


def test_a_large_file_beside_the_notebook_is_left_out_as_in_grading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[Job] = []

    def run_job(job: Job, look: Look, *, alone: bool) -> Ran:
        jobs.append(job)
        return Ran(job.key, [{"outputs": [], "execution_count": 1}] * len(job.cells), None, {}, 0.1)

    monkeypatch.setattr(pipeline, "run_job", run_job)
    project = make_project(tmp_path)
    with (mine(project).parent / "film.mp4").open("wb") as film:
        film.truncate(LIMITS.together_bytes)
    result = run(project.work, "self", LESSON, "--no-open")
    assert result.exit_code == 0, result.output
    assert [name for name, _ in jobs[0].files] == ["card.toml", "practice.safetensors.gz"]
    page = project.work / "feedback" / LESSON / "causal_mask.html"
    assert "Too large, so left out: &#39;film.mp4&#39;." in page.read_text()


def test_a_file_that_is_no_notebook_is_named(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    mine(project).write_bytes(b"no notebook")
    result = run(project.work, "self", str(mine(project)))
    assert result.exit_code == 1
    assert f"{mine(project)}: The file is not JSON" in result.output


def test_a_notebook_of_no_lesson_is_named(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    other = project.work / "other.ipynb"
    nbformat.write(nbformat.v4.new_notebook(), other)
    result = run(project.work, "self", str(other))
    assert result.exit_code == 1
    assert f"other.ipynb belongs to none of these lessons: {LESSON}" in result.output


def test_a_notebook_of_another_version_is_named(tmp_path: Path) -> None:
    project = make_project(tmp_path)

    def points(cells: dict[str, nbformat.NotebookNode]) -> None:
        cells["test_apply_mask"].metadata["nbgrader"]["checksum"] = "another"

    change(mine(project), points)
    result = run(project.work, "self", str(mine(project)))
    assert result.exit_code == 1
    assert "the rubric of apply_mask has changed. Run: autograde update" in result.output


def test_a_misspelt_lesson_is_named(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    said = run(project.work, "self", "02_causal").output
    assert "02_causal is neither a lesson here nor a saved notebook" in said
