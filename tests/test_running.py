"""Running a class: the same gradebook however it is run, and nothing done twice."""

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import nbformat
import pytest
from classes import (
    LESSON,
    NO_WALL,
    contents,
    file_of,
    forget,
    grade,
    grade_all,
    gradebook_of,
    hand_in,
    make_course,
    scores,
)
from conftest import HERE, run
from nbgrader.converters import Autograde, GenerateFeedback
from nightly import nightly

from autograde.course.config import convert, course_config
from autograde.course.lessons import Lesson, lessons
from autograde.grading import coordinator, feedback, pipeline, workers
from autograde.grading.batch import How, grade_class
from autograde.grading.coordinator import by_lesson, next_for
from autograde.grading.running import job as job_module
from autograde.grading.running.job import Job, Ran
from autograde.grading.running.run import Look
from autograde.grading.state import read_ran
from autograde.grading.submission import (
    FAILED,
    UNCHANGED,
    Disturbed,
    Done,
    Place,
    Submission,
    Task,
    submissions,
)
from autograde.sandbox import template
from autograde.sandbox.wall import missing

STUDENTS = ("perfect", "process_ended", "not_json", "untouched")
NOTEBOOK = "causal_mask"
WALL = not missing()


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course whose class was graded by two workers."""
    root = tmp_path_factory.mktemp("class") / "course"
    make_course(root, STUDENTS)
    own = file(root, "perfect")
    shutil.copy(own, own.with_name("copy.ipynb"))  # our way renames it, nbgrader's does not
    for name in ("index.html", "more/drawing.svg", "more/run.js"):
        path = own.parent / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("<script>evil()</script>")
    result = grade(root, "--workers", "2")
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stderr == ""
    return root


@pytest.fixture
def course(graded: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    shutil.copytree(graded, tmp_path / "course")
    return tmp_path / "course"


def the_lesson(root: Path) -> Lesson:
    return lessons(root)[LESSON]


def file(root: Path, student: str, kind: str = "submitted") -> Path:
    return file_of(the_lesson(root), student, kind)


def ran(root: Path, student: str) -> Ran:
    found = Ran.from_bytes(read_ran(Place(student, the_lesson(root))))
    assert found
    return found


def test_every_student_has_a_score_and_a_page(graded: Path) -> None:
    assert scores(graded) == {"perfect": 13, "process_ended": 11, "not_json": 0, "untouched": 0}
    assert all(file(graded, student, "feedback").is_file() for student in STUDENTS)


def test_a_worker_stays_with_its_lesson_then_begins_another_then_helps() -> None:
    first, second, third = list(lessons(HERE).values())[:3]
    places = [Place(str(n), each) for each, n in [(first, 1), (second, 1), (third, 1)] * 2]
    todo, lesson_of = by_lesson([*places, Place("last", third)]), {}
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        taken = [next_for(each, todo, lesson_of).lesson for each in (one, other, one, other)]
        assert taken == [first, second, first, second]
        assert next_for(one, todo, lesson_of) == places[2]  # in the order given
        assert next_for(other, todo, lesson_of).lesson == third
        assert next_for(one, todo, lesson_of).student == "last"
    assert not todo


def test_a_run_with_nothing_to_do_starts_no_kernels(
    graded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    monkeypatch.setattr(workers, "start_template", lambda *given: started.append(given))
    found = submissions(graded, [the_lesson(graded)], None)
    done = grade_all(found, How(workers=1, wall=WALL))
    assert {each.outcome for each in done} == {UNCHANGED}
    assert not started


@nightly
def test_one_worker_that_is_killed_gives_the_same_gradebook(course: Path, graded: Path) -> None:
    forget(course, results=True)
    assert contents(course) != contents(graded)
    found = submissions(course, [the_lesson(course)], None)
    killed: list[int | None] = []

    def kill(done: Done) -> None:
        if not killed:
            (worker,) = multiprocessing.active_children()
            killed.append(worker.pid)
            os.kill(worker.pid or 0, signal.SIGKILL)

    grade_class(found, How(workers=1, wall=WALL), kill)
    assert killed
    assert contents(course) == contents(graded)


def test_nbgraders_own_commands_give_the_same_gradebook_files_and_pages(
    course: Path, graded: Path
) -> None:
    forget(course)
    config = course_config(course)
    config.CourseDirectory.assignment_id = LESSON
    config.Run.wall = WALL
    convert(Autograde, config)
    convert(GenerateFeedback, config)
    assert contents(course) == contents(graded)
    assert ran(course, "perfect").key == ran(graded, "perfect").key
    for student in STUDENTS:
        for kind in ("autograded", "feedback"):
            ours, theirs = (file(root, student, kind) for root in (graded, course))
            assert ours.stat().st_mode == theirs.stat().st_mode
            assert ours.read_bytes() == theirs.read_bytes()


def test_no_page_of_a_students_own_lies_beside_the_feedback(course: Path, graded: Path) -> None:
    config = course_config(course)
    config.CourseDirectory.assignment_id = LESSON
    config.GenerateFeedback.force = True
    convert(GenerateFeedback, config)
    for root in (course, graded):
        page = file(root, "perfect", "feedback")
        beside = {path.name for path in page.parent.rglob("*") if path.is_file()}
        assert beside == {page.name}


@nightly
def test_killed_before_any_change_it_goes_on_to_the_same_gradebook(graded: Path) -> None:
    command = [sys.executable, str(Path(__file__).with_name("kill_coordinator.py")), str(graded)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    counts = json.loads(result.stdout)
    assert counts["kills"] > 30
    assert counts["different"] == []


class Quick:
    """A run whose jobs have run before, and whose pages say nothing; it counts what is done."""

    def __init__(self, ran: dict[str, Ran], monkeypatch: pytest.MonkeyPatch) -> None:
        self.ran, self.done = ran, Counter[str]()
        save = coordinator.book.save

        def counted(*arguments: Any) -> Any:
            self.done["saved"] += 1
            return save(*arguments)

        monkeypatch.setattr(workers, "Worker", lambda *_: ThreadPoolExecutor(1))
        monkeypatch.setattr(workers, "start_template", lambda *_: None)
        monkeypatch.setattr(template, "prepare", lambda *_: None)
        monkeypatch.setattr(feedback, "warm_up", lambda version: None)
        monkeypatch.setattr(pipeline, "run_job", self.run_job)
        monkeypatch.setattr(coordinator.book, "save", counted)
        monkeypatch.setattr(feedback, "page", lambda notebook, marks: b"a page")

    def run_job(self, job: Job, look: Look, *, alone: bool) -> Ran:
        self.done["run"] += 1
        # what was not handed in before is taken for the perfect answers
        return replace(self.ran.get(job.key, self.ran["perfect"]), key=job.key)

    def __call__(self, root: Path, **how: Any) -> list[Done]:
        self.done.clear()
        found = submissions(root, [the_lesson(root)], None)
        return grade_all(found, How(1, wall=WALL, **how))


@pytest.fixture
def quick(graded: Path, monkeypatch: pytest.MonkeyPatch) -> Quick:
    kept = {path.name: path.read_bytes() for path in (graded / ".autograde/ran" / LESSON).iterdir()}
    ran = {student: found for student, data in kept.items() if (found := Ran.from_bytes(data))}
    return Quick({**{each.key: each for each in ran.values()}, **ran}, monkeypatch)


def nothing(root: Path) -> None:
    pass


def other_code(root: Path) -> None:
    hand_in(the_lesson(root), "perfect", code="print('better')")


def other_text(root: Path) -> None:
    path = file(root, "perfect")
    nb = nbformat.read(path, as_version=4)
    nb.cells.append(nbformat.v4.new_markdown_cell("what I think of it", id="more"))
    nbformat.write(nb, path)


def handed_in_at(
    root: Path, student: str = "perfect", when: str = "2026-02-03 12:00:00 UTC"
) -> None:
    (root / "submitted" / student / LESSON / "timestamp.txt").write_text(when)


def other_seed(root: Path) -> None:
    (root / ".autograde" / "secret").write_text("00" * 32)


def due(root: Path, day: int = 1) -> None:
    with gradebook_of(root) as book:
        book.update_or_create_assignment(LESSON, duedate=datetime(2026, 2, day))


def comment(root: Path) -> None:
    with gradebook_of(root) as book:
        found = book.find_comment("causal_mask", NOTEBOOK, LESSON, "perfect")
        found.manual_comment = "Well done."
        book.db.commit()


def other_score(root: Path) -> None:
    with gradebook_of(root) as book:
        book.find_grade("test_causal_mask", NOTEBOOK, LESSON, "perfect").auto_score = 0
        book.db.commit()


def longer(root: Path) -> None:
    with gradebook_of(root) as book:
        book.find_submission(LESSON, "perfect").extension = timedelta(days=3)
        book.db.commit()


def mended(root: Path) -> None:
    """What was no notebook is handed in again, as somebody else's that has run."""
    shutil.copy(file(root, "perfect"), file(root, "not_json"))


def no_page(root: Path) -> None:
    shutil.rmtree(root / "feedback" / "perfect")


def no_notebook(root: Path) -> None:
    shutil.rmtree(root / "autograded" / "perfect")


@pytest.mark.parametrize(
    ("change", "run", "saved"),
    [
        (nothing, 0, 0),
        (other_code, 1, 1),
        (other_text, 0, 1),
        (mended, 1, 1),
        (handed_in_at, 0, 1),
        (other_seed, 3, 4),
        (due, 0, 4),
        (longer, 0, 1),
        (comment, 0, 1),
        (other_score, 0, 1),
        (no_page, 0, 1),
        (no_notebook, 0, 1),
    ],
)
def test_only_what_changed_is_graded_again(
    course: Path, quick: Quick, change: Callable[[Path], None], run: int, saved: int
) -> None:
    change(course)
    result = quick(course)
    assert [g.problem for g in result if g.outcome == FAILED] == []
    assert (quick.done["run"], quick.done["saved"]) == (run, saved)
    assert sum(g.outcome == UNCHANGED for g in result) == 4 - saved
    assert {g.outcome for g in quick(course)} == {UNCHANGED}


def test_another_grader_runs_all_again(
    course: Path, quick: Quick, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (coordinator, job_module, workers):
        monkeypatch.setattr(module, "grader_of", lambda package: "another")
    quick(course)
    assert (quick.done["run"], quick.done["saved"]) == (3, 4)
    assert {g.outcome for g in quick(course)} == {UNCHANGED}


def test_regrade_runs_all_again(course: Path, quick: Quick, graded: Path) -> None:
    quick(course, regrade=True)
    assert (quick.done["run"], quick.done["saved"]) == (3, 4)
    assert contents(course) == contents(graded)


def test_scores_and_comments_by_hand_survive(course: Path, quick: Quick) -> None:
    cells, place = ("test_causal_mask", "test_apply_mask"), (NOTEBOOK, LESSON, "perfect")
    with gradebook_of(course) as book:
        moved, same = (book.find_grade(cell, *place) for cell in cells)
        moved.auto_score, moved.manual_score, same.manual_score = 0, 1.5, 0.5
        book.db.commit()
    comment(course)
    quick(course, regrade=True)
    with gradebook_of(course) as book:
        moved, same = (book.find_grade(cell, *place) for cell in cells)
        assert (moved.manual_score, moved.needs_manual_grade) == (1.5, True)
        assert (same.manual_score, same.needs_manual_grade) == (0.5, False)
        assert book.find_comment("causal_mask", *place).manual_comment == "Well done."
    quick(course, regrade=True)
    with gradebook_of(course) as book:  # nobody has looked yet
        assert book.find_grade("test_causal_mask", *place).needs_manual_grade


def test_late_work_loses_what_the_policy_takes_unless_there_is_an_extension(
    course: Path, quick: Quick
) -> None:
    with (course / "nbgrader_config.py").open("a") as config:
        config.write('\nc.LatePolicy.penalty_method = "zero"\n')
    for student in ("perfect", "process_ended"):
        handed_in_at(course, student)  # on the third
    due(course, day=1)
    longer(course)  # for "perfect" alone
    quick(course)
    with gradebook_of(course) as book:
        penalties = {
            s.student.id: s.late_submission_penalty for s in book.assignment_submissions(LESSON)
        }
    assert penalties["perfect"] == 0
    assert penalties["process_ended"] == 11
    (course / "submitted" / "process_ended" / LESSON / "timestamp.txt").unlink()
    quick(course)  # as from Canvas, which no longer calls it late
    assert what_counts(course, "process_ended") == 11
    assert quick.done["run"] == 0


def what_counts(root: Path, student: str) -> float:
    with gradebook_of(root) as book:
        found = book.find_submission(LESSON, student)
        return float(found.score - (found.late_submission_penalty or 0))


def test_a_penalty_follows_a_score_given_by_hand(course: Path, quick: Quick) -> None:
    with (course / "nbgrader_config.py").open("a") as config:
        config.write('\nc.LatePolicy.penalty_method = "zero"\n')
    handed_in_at(course)
    due(course)
    quick(course)
    assert what_counts(course, "perfect") == 0
    with gradebook_of(course) as book:
        row = book.find_grade("test_causal_mask", NOTEBOOK, LESSON, "perfect")
        row.manual_score = row.auto_score + 1
        book.db.commit()
    assert what_counts(course, "perfect") == 1
    quick(course)
    assert what_counts(course, "perfect") == 0


def test_a_copy_of_the_gradebook_is_kept_before_each_run(course: Path, quick: Quick) -> None:
    other_score(course)
    before = contents(course)
    quick(course)
    copies = sorted((course / ".autograde" / "gradebooks").iterdir())
    assert contents(course, f"sqlite:///{copies[-1]}") == before != contents(course)
    for _ in range(6):
        quick(course)
    assert len(list((course / ".autograde" / "gradebooks").iterdir())) == 5


@pytest.fixture(params=[signal.default_int_handler, signal.SIG_IGN])
def on_ctrl_c(request: pytest.FixtureRequest) -> Iterator[None]:
    """Ctrl-C as in a terminal, and as in what a script has begun with `&`."""
    before = signal.signal(signal.SIGINT, request.param)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("on_ctrl_c")
def test_sigterm_keeps_what_is_done_and_says_how_to_go_on_as_ctrl_c_does(
    course: Path, graded: Path, quick: Quick, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget(course, results=True)
    run_job = quick.run_job

    begun: list[Job] = []

    def interrupted(job: Job, look: Look, *, alone: bool) -> Ran:
        begun.append(job)
        if len(begun) == 2:  # one thread runs them, so the first is done
            os.kill(os.getpid(), signal.SIGTERM)  # which raises SIGINT, as Ctrl-C does
            time.sleep(0.5)
        return run_job(job, look, alone=alone)

    command = ["grade", LESSON, "--workers", "1", *NO_WALL]
    monkeypatch.setattr(pipeline, "run_job", interrupted)
    result = run(course, *command)
    assert result.exit_code == 130
    assert "Run autograde grade again to go on" in result.output
    assert any((course / ".autograde" / "ran").iterdir())
    assert contents(course) != contents(graded)
    monkeypatch.setattr(pipeline, "run_job", run_job)
    result = run(course, *command)
    assert result.exit_code == 0
    assert contents(course) == contents(graded)


class Among:
    """Runs that fail among others, or always; `alone` says of each whether it was."""

    def __init__(self, quick: Quick, error: Exception, always: bool) -> None:
        self.quick, self.error, self.always = quick, error, always
        self.alone: list[bool] = []

    def run_job(self, job: Job, look: Look, *, alone: bool) -> Ran:
        self.alone.append(alone)
        if self.always or not alone:
            raise self.error
        return self.quick.run_job(job, look, alone=alone)


@pytest.mark.parametrize("error", [Disturbed("by others"), workers.WorkerDied("of others")])
def test_what_others_disturbed_is_graded_after_them_alone(
    course: Path, graded: Path, quick: Quick, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    forget(course, results=True)
    among = Among(quick, error, always=False)
    monkeypatch.setattr(pipeline, "run_job", among.run_job)
    result = quick(course)
    assert [g.problem for g in result if g.outcome == FAILED] == []
    assert len(result) == len(STUDENTS)
    assert contents(course) == contents(graded)
    assert among.alone == [False] * 3 + [True] * 3  # one of the four has nothing to run
    assert {g.outcome for g in quick(course)} == {UNCHANGED}


@pytest.mark.parametrize(
    ("error", "times"), [(Disturbed("by the machine"), 6), (workers.WorkerHung("too long"), 3)]
)
def test_what_fails_alone_too_and_what_hung_has_no_score(
    course: Path, quick: Quick, monkeypatch: pytest.MonkeyPatch, error: Exception, times: int
) -> None:
    forget(course, results=True)
    among = Among(quick, error, always=True)
    monkeypatch.setattr(pipeline, "run_job", among.run_job)
    failed = [g.problem for g in quick(course) if g.outcome == FAILED]
    assert failed == [str(error)] * 3
    assert len(among.alone) == times


def test_without_a_coordinator_a_disturbed_run_is_repeated_at_once(course: Path) -> None:
    told: list[bool] = []

    def work(task: Task) -> str:
        told.append(task.alone)
        if not task.alone:
            raise Disturbed
        return "done"

    submission = Submission(Place("perfect", the_lesson(course)), {})
    assert pipeline.at_most_twice(work, Task(submission, wall=False)) == "done"
    assert told == [False, True]
