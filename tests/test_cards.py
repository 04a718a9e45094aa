"""Questions on earlier lessons, a lesson's card, and the page of notes that grows from cards."""

import errno
import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from conftest import HERE, run
from working_copy import LESSON, make_project

from autograde.authoring.compare_builds import keep_same, other_files
from autograde.cards import CARD_FILE, Card, read_card, write_notes
from autograde.course.cells import named_cells
from autograde.course.lessons import Lesson, lessons
from autograde.installed import Installed
from autograde.notebook import lesson_here, recall, remember
from autograde.progress import NOTES, PAGE, keep_attempt, write_page
from autograde.rubric import runs
from autograde.rubric.lesson_names import PLACE, Given
from autograde.rubric.panel import plain
from autograde.rubric.session import CellEnded
from autograde.workspace.project import Project
from autograde.workspace.update import prepare

LONGEST = 125
"""Words of three questions with their choices and answers, and of a card."""


def card_of(lesson: Lesson) -> Card:
    card = read_card(lesson.folder)
    assert card is not None
    return card


@pytest.mark.parametrize("name", lessons(HERE))
def test_every_lesson_has_a_short_card_and_asks_three_questions(name: str) -> None:
    card = card_of(lessons(HERE)[name])
    assert [*card.lines] == ["Formula", "Shapes", "Mistake to avoid"]
    assert len(card.questions) == (0 if name == next(iter(lessons(HERE))) else 3)
    asked = (f"{each.asks} {' '.join(each.choices)} {each.because}" for each in card.questions)
    assert sum(len(text.split()) for text in asked) <= LONGEST
    assert sum(len(line.split()) for line in card.lines.values()) <= LONGEST


def test_the_right_choice_is_not_always_in_one_place() -> None:
    right = [q.right for lesson in lessons(HERE).values() for q in card_of(lesson).questions]
    assert max(right.count(place) for place in right) <= len(right) / 2


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Two lessons; this process is the kernel of the first."""
    project = make_project(tmp_path, (LESSON, "03_inf_mask"))
    monkeypatch.chdir(project.work / LESSON)
    return project


class Folded(HTMLParser):
    """The replies of a page's folded parts, by the choice that unfolds them."""

    def __init__(self) -> None:
        super().__init__()
        self.replies: dict[str, str] = {}
        self.inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("summary", "details"):
            self.inside = tag

    def handle_endtag(self, tag: str) -> None:
        self.inside = {"summary": "reply", "details": ""}.get(tag, self.inside)

    def handle_data(self, data: str) -> None:
        if self.inside == "summary":
            self.choice = data
        elif self.inside == "reply":
            self.replies[self.choice] = self.replies.get(self.choice, "") + data


def shown(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


def test_each_choice_unfolds_into_its_answer(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, str]] = []
    monkeypatch.setattr(
        "autograde.notebook.remembering.display", lambda data, raw: seen.append(data)
    )
    (project.work / LESSON / CARD_FILE).write_text(
        '[[question]]\nasks = "2 + 2 < ?"\nchoices = ["4", "5", "`3`"]\nright = 2\n'
        'because = "4 is below 5."\n[card]\nFormula = "a"\n'
    )
    recall()
    folded = Folded()
    folded.feed(seen[0]["text/html"])
    assert folded.replies == {
        "4": "✗ No: 5. 4 is below 5.",
        "5": "✓ Right. 4 is below 5.",
        "3": "✗ No: 5. 4 is below 5.",
    }
    assert "2 + 2 &lt; ?" in seen[0]["text/html"]
    assert seen[0]["text/plain"].splitlines() == [
        "Do you remember? (no points)",
        *("1. 2 + 2 < ?", "   4", "   5", "   3"),
        "1: ✓ Right. 4 is below 5.",
    ]


def solve(project: Project, *, but: str = "") -> None:
    for exercise in lessons(HERE)[LESSON].exercises:
        points = 0 if exercise.name == but else exercise.points
        keep_attempt(project.work / LESSON, exercise.name, points, "")
    write_notes(project.work)
    write_page(project.work)


def test_a_card_joins_the_notes_when_the_last_exercise_is_right(project: Project) -> None:
    exercises = [each.name for each in lessons(HERE)[LESSON].exercises]
    solve(project, but=exercises[-1])
    assert not (project.work / NOTES).exists()
    assert "My notes" not in (project.work / PAGE).read_text()
    solve(project, but=exercises[0])
    page = (project.work / NOTES).read_text()
    assert re.findall("<h2>(.*?)</h2>", page) == ["02 The causal mask: hiding the future"]
    assert "Mistake to avoid" in page
    assert "[My notes](My%20notes.html)" in (project.work / PAGE).read_text()


def test_the_notes_hold_a_line_of_the_students_own(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    solve(project)
    remember("rows < columns")
    assert "Formula: for keys j" in shown(capsys)
    page = project.work / NOTES
    assert ">rows &lt; columns</dd>" in page.read_text()
    prepare(project)
    assert "rows &lt; columns" in page.read_text()
    remember("")
    assert "My own line" not in page.read_text()


def test_the_card_says_whether_the_notes_have_it(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    remember("")
    assert "The card joins My notes when the last exercise is right." in shown(capsys)
    solve(project)
    remember("")
    assert 'The card is in <a href="../My%20notes.html">My notes</a>.' in shown(capsys)


def test_a_full_disk_is_one_sentence_below_the_card(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "notes")

    monkeypatch.setattr("autograde.notebook.remembering.keep_line", full)
    remember("mine")
    said = shown(capsys)
    assert "Formula: for keys j" in said
    assert "The card could not be put into My notes: No space left on device." in said


def test_outside_a_working_copy_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    recall()
    remember("mine")
    assert shown(capsys).count("not beside this notebook.'") == 2
    assert [*tmp_path.iterdir()] == []


def test_a_notebook_alone_asks_the_questions_of_its_lesson(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lesson = lessons(HERE)["03_inf_mask"]
    nb = nbformat.read(lesson.released_notebook, as_version=4)
    values = {PLACE: Given(named_cells(nb)["setup"].source)}
    kernel = SimpleNamespace(user_ns=values, starting_dir=str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for module in (lesson_here, runs):
        monkeypatch.setattr(module, "get_ipython", lambda: kernel)
    brought = Installed("this-course", lesson.released_notebook.parent.parent)
    monkeypatch.setattr(lesson_here, "installed", lambda: (brought,))
    recall()
    remember("mine")
    said = shown(capsys)
    card = card_of(lesson)
    assert plain(card.questions[0].asks) in said
    assert "Mistake to avoid" in said
    assert {*lesson_here.lesson_keys()} == {*lesson.worth}
    assert [*tmp_path.iterdir()] == []


DAMAGED = {
    "not toml": "[card",
    "no card": "",
    "no choice 3": (
        '[[question]]\nasks = "a"\nchoices = ["b"]\nright = 3\nbecause = "c"\n[card]\nF = "a"'
    ),
    "something else": '[card]\nF = "a"\n[other]\n',
    "a misspelt name": '[[question]]\nask = "a"\nchoices = ["b"]\nright = 1\n[card]\nF = "a"',
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_card_is_named(project: Project, text: str) -> None:
    path = project.work / LESSON / CARD_FILE
    path.write_text(text)
    with pytest.raises(CellEnded, match=re.escape(str(path))):
        recall()
    solve(project)
    assert not (project.work / NOTES).exists()


def test_a_build_refuses_a_damaged_card(mine: Lesson) -> None:
    (mine.folder / CARD_FILE).write_text("[card]\n")
    for command in ("build", "check"):
        result = run(mine.root, command, mine.name)
        assert result.exit_code == 1
        assert CARD_FILE in result.output


def test_a_build_compares_data_files_by_what_is_in_them(tmp_path: Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    for folder in (new, old):
        folder.mkdir()
        (folder / "data.csv").write_text("1,2\n")
    assert [*other_files(new, old)] == []
    (new / "data.csv").write_text("1,3\n")
    assert [*other_files(new, old)] == [f"{old / 'data.csv'}: other content"]
    keep_same(new, old)
    assert (new / "data.csv").read_text() == "1,3\n"
