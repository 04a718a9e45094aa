"""A course's own package: its probes, checks and way to a grade; what is said without it."""

import re
import sys
from pathlib import Path

import pytest
from conftest import HERE

from autograde.course.lessons import CURRICULUM, CourseError, Lesson, lessons, read_course
from autograde.course.package import NAMED, bring_in, files_of
from autograde.grader import digest_of, grader_of
from autograde.grading.running.reference import load
from autograde.rubric.kinds import KINDS
from autograde.rubric.probes import lines
from autograde.sandbox.wall import INSIDE, _own_files
from autograde.workspace.project import find_project, read_lesson

PACKAGE = "statistics_course"
PAGE = (HERE / "docs" / "recipes.md").read_text()
(EXAMPLE,) = re.findall(r"```python\n(from autograde\.notebook .*?)```", PAGE, re.DOTALL)
CHECK = """
from autograde.rubric.checks import Reading, check

@check
def in_order(value, before):
    return [Reading("the order", value == sorted(value), True, 0.1)]

def tidy(x):
    return sorted(x)
"""
TEXT = """\
# %% grade_id="setup"
from statistics_course import rubric

# %% grade_id="ordered"
def ordered(x):
    return sorted(x)

# %% grade_id="test_ordered"
@rubric("ordered")
def _(r):
    r.sorts("puts them in order", ordered, ([3, 1],))
    r.check("it is in order", "in_order", ordered, ([3, 1],))
"""


@pytest.fixture
def lesson(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lesson:
    """The lesson of a course whose package is the example of docs/recipes.md and a check."""
    monkeypatch.setattr(lines, "_probes", {})
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, PACKAGE, raising=False)
    (tmp_path / PACKAGE).mkdir()
    (tmp_path / PACKAGE / "__init__.py").write_text(EXAMPLE + CHECK)
    root = tmp_path / "course"
    (root / "source" / "01_order").mkdir(parents=True)
    (root / CURRICULUM).write_text(
        f'[course]\ntitle = "Statistics"\npackage = "{PACKAGE}"\n\n[[lesson]]\nname = "01_order"\n'
        'notebook = "order"\ntitle = "Order"\nabout = "lists"\nminutes = 5\n\n'
        "[lesson.points]\nordered = 1\n"
    )
    (root / "source" / "01_order" / "order.py").write_text(TEXT)
    return lessons(root)["01_order"]


def test_its_rubric_asks_and_its_check_decides(lesson: Lesson) -> None:
    assert (lesson.package, read_course(lesson.root).title) == (PACKAGE, "Statistics")
    recording = load(lesson).record("ordered", 1)
    assert recording.stopped is None
    called, checked = recording.lines
    assert called.cases[0].outcome.value == [1, 3]
    for value, distance in (([1, 3], 0), ([3, 1], 10)):
        (case,) = checked.cases
        outcome = KINDS[checked.kind].read(type(case.outcome)(value=value), case)
        assert KINDS[checked.kind].compare(outcome, case).distance == distance


def test_an_answer_from_it_is_no_answer(lesson: Lesson) -> None:
    answer = f"from {PACKAGE} import tidy as ordered"
    recording = load(lesson).with_answer(answer).record("ordered", 1)
    assert recording.lines == ()
    assert recording.stopped is not None
    assert f"tidy is from {PACKAGE}" in recording.stopped.message


def test_a_rubric_of_another_course_does_not_ask_what_it_asks(lesson: Lesson) -> None:
    text = TEXT.replace(f"from {PACKAGE}", "from autograde.notebook")
    lesson.text.write_text(text)
    curriculum = lesson.root / CURRICULUM
    curriculum.write_text(curriculum.read_text().replace(f'package = "{PACKAGE}"', ""))
    bring_in(PACKAGE)
    stopped = load(lessons(lesson.root)["01_order"]).record("ordered", 1).stopped
    assert stopped is not None
    assert "sorts" in stopped.message


def forget_graders() -> None:
    grader_of.cache_clear()
    digest_of.cache_clear()


def test_its_files_travel_and_count(lesson: Lesson) -> None:
    (file,) = files_of(PACKAGE)
    assert Path(INSIDE, PACKAGE, "__init__.py") in _own_files(PACKAGE)
    assert not any(PACKAGE in path.parts for path in _own_files(""))
    before = grader_of(PACKAGE)
    assert before != grader_of("")
    forget_graders()
    file.with_name("due.toml").write_text("")  # `autograde dist` puts it into the students'
    (file.parent / "lessons").mkdir()
    (file.parent / "lessons" / "order.ipynb").write_text("{}")
    assert grader_of(PACKAGE) == before
    forget_graders()
    file.with_name("prices.csv").write_text("1.0")  # data decide, too
    assert grader_of(PACKAGE) != before
    forget_graders()


def test_a_student_has_the_name_of_the_package_in_the_notebook() -> None:
    project = find_project(HERE / "notebooks")
    for path in project.released():
        lesson, nb = read_lesson(project, path)
        assert nb.metadata[NAMED] == lesson.package == "attention_course"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('package = "no_such_course"', "package no_such_course is not installed here. Run pip"),
        ('package = "no course"', "[course] cannot be read: package = 'no course' names no"),
        ("name = 3", "[course] cannot be read: "),
    ],
)
def test_a_package_that_cannot_be_used_is_named(lesson: Lesson, written: str, said: str) -> None:
    curriculum = lesson.root / CURRICULUM
    curriculum.write_text(curriculum.read_text().replace(f'package = "{PACKAGE}"', written))
    with pytest.raises(CourseError, match=re.escape(said)):
        load(lessons(lesson.root)["01_order"])
