"""From an executed notebook to verdicts: whatever a recording or an answer cell holds."""

import base64
import linecache
from dataclasses import replace

import pytest
from classes import fill
from conftest import HERE
from nbformat import NotebookNode
from nightly import nightly

from autograde.authoring.expected import practice_keys
from autograde.authoring.sources import source_notebook
from autograde.authoring.variants import read_variants
from autograde.course.cells import grade_id, named_cells
from autograde.course.lessons import Exercise, Lesson, lessons
from autograde.course.versions import Version, notebook_of, versions
from autograde.grading.reading.restore import restore
from autograde.grading.record import Record
from autograde.grading.running.job import Ran, job_of, put_outputs
from autograde.grading.running.reference import keys_of, load, practice_of
from autograde.grading.running.run import run_job
from autograde.grading.submission import Place, Problem, Submission, Task
from autograde.grading.verdicts import UNJUDGED, FirstLook, judge_notebook
from autograde.rubric.key import Key
from autograde.rubric.recording import MIME, PRACTICE_MIME
from autograde.rubric.session import PRACTICE_SEED
from autograde.sandbox.wall import missing
from autograde.values.packing import pack

HALF_RIGHT = "def renormalise(weights):\n    return weights / weights.sum(-1, keepdim=True)"


@pytest.fixture(scope="module")
def lesson() -> Lesson:
    return lessons(HERE)["02_causal_mask"]


@pytest.fixture(scope="module")
def keys(lesson: Lesson) -> dict[str, Key]:
    return practice_keys(lesson)


@pytest.fixture
def executed(lesson: Lesson) -> NotebookNode:
    """The reference as it leaves a kernel: every rubric cell has handed over its recording."""
    nb, reference = source_notebook(lesson), load(lesson)
    cells = named_cells(nb)
    for exercise in lesson.exercises:
        recording = pack(reference.record(exercise.name, PRACTICE_SEED))
        data = {MIME: base64.b64encode(recording).decode()}
        cells[exercise.rubric_cell].outputs = [
            NotebookNode(output_type="display_data", data=data, metadata={})
        ]
    return nb


def test_a_worker_keeps_the_text_of_a_rubric_once(lesson: Lesson) -> None:
    reference, exercise = load(lesson), lesson.exercises[0].name
    texts = []
    for seed in (1, 2):
        reference.record(exercise, seed)
        texts.append(len(linecache.cache))
    assert texts[0] == texts[1]


@pytest.fixture(scope="module")
def now(lesson: Lesson) -> Version:
    return versions(lesson)[0]


def points(version: Version, nb: NotebookNode, keys: dict[str, Key]) -> dict[str, float]:
    verdicts = judge_notebook(Record(nb), version, keys, {}, {}).verdicts
    return {name: verdict.points for name, verdict in verdicts.items()}


def test_a_judge_that_fails_on_one_exercise_keeps_the_others(
    lesson: Lesson, keys: dict[str, Key], executed: NotebookNode, now: Version
) -> None:
    broken = {**keys, "renormalise": replace(keys["renormalise"], tolerances=())}
    judged = judge_notebook(Record(executed), now, broken, {}, {})
    verdicts = judged.verdicts
    assert judged.problem
    assert judged.problem.words == "The judge failed on renormalise: look at the feedback."
    outputs = named_cells(executed)["test_renormalise"].outputs
    look = FirstLook(lambda: broken)
    assert not look("renormalise", outputs)
    assert not look.verdicts
    assert not FirstLook(lambda: {})("renormalise", outputs)  # keys that cannot be made
    assert judged.fault.count("Traceback") == 1
    assert UNJUDGED in verdicts["renormalise"].note
    assert "ValueError" in verdicts["renormalise"].note
    others = sum(verdict.points for name, verdict in verdicts.items() if name != "renormalise")
    assert others == lesson.points - 2


def test_a_second_recording_costs_the_exercise(
    lesson: Lesson, keys: dict[str, Key], executed: NotebookNode, now: Version
) -> None:
    named_cells(executed)["test_renormalise"].outputs *= 2
    found = points(now, executed, keys)
    assert found.pop("renormalise") == 0
    assert sum(found.values()) == lesson.points - 2


def recorded(lesson: Lesson, exercise: Exercise, answer: str) -> dict[str, str]:
    """What a rubric cell displays of another answer."""
    answers = load(lesson).with_answer(answer)
    recording = pack(answers.record(exercise.name, PRACTICE_SEED))
    return {MIME: base64.b64encode(recording).decode()}


@pytest.mark.parametrize("ran", [True, False])
def test_to_repair_the_earlier_exercise_first_is_said_of_what_was_judged(
    ran: bool, lesson: Lesson, keys: dict[str, Key], executed: NotebookNode, now: Version
) -> None:
    later = next(exercise for exercise in lesson.exercises if exercise.needs)
    needed, cells = later.needs[-1], named_cells(executed)
    cells[f"test_{needed}"].outputs = []
    cells[later.rubric_cell].outputs[0].data = recorded(lesson, later, f"del {later.name}")
    record = Record(executed)
    if not ran:
        cells[later.rubric_cell].outputs = []
        record = replace(record, problem=Problem("the file is empty", "The file is empty."))
    verdict = judge_notebook(record, now, keys, {}, {}).verdicts[later.name]
    assert not verdict.passed
    assert (f"Fix `{needed}` first" in verdict.note) == ran


def test_an_earlier_exercise_that_nothing_calls_is_not_blamed(
    lesson: Lesson, keys: dict[str, Key], executed: NotebookNode, now: Version
) -> None:
    later = next(exercise for exercise in lesson.exercises if exercise.needs)
    cells = named_cells(executed)
    for name in later.needs:
        cells[f"test_{name}"].outputs = []
    cells[later.name].source = f"def {later.name}(*_):\n    return 3"
    data = recorded(lesson, later, cells[later.name].source)
    cells[later.rubric_cell].outputs[0].data = data
    verdict = judge_notebook(Record(executed), now, keys, {}, {}).verdicts[later.name]
    assert not verdict.passed
    assert "Fix" not in verdict.note


def run_on(
    version: Version, answers: dict[str, str], look: FirstLook, seed: int = 7
) -> tuple[Record, Ran]:
    """A notebook with these answers, run on this seed; behind a wall where there is one."""
    record = restore(Record(fill(version.lesson, answers)), notebook_of(version))
    submission = Submission(Place("student", version.lesson), {})
    record, job = job_of(record, version, Task(submission, not missing()))
    ran = run_job(replace(job, seed=seed), look)
    return put_outputs(record, ran), ran


def test_practice_keys_that_do_not_fit_leave_the_points(lesson: Lesson, now: Version) -> None:
    keys, practice = keys_of(now, 7), practice_of(now)
    record, _ = run_on(now, {"renormalise": HALF_RIGHT}, FirstLook(lambda: keys))
    broken = practice | {"renormalise": replace(practice["renormalise"], tolerances=())}
    fair = judge_notebook(record, now, keys, practice, {}).verdicts
    found = judge_notebook(record, now, keys, broken, {})
    assert found.problem
    assert found.problem.words.startswith("The judge failed on renormalise:")
    assert 0 < found.verdicts["renormalise"].points == fair["renormalise"].points


@nightly
def test_a_misconception_that_explains_no_wrong_line_is_not_named(
    lesson: Lesson, now: Version
) -> None:
    """Of a notebook whose answer is wrong in another way than it claims to be in practice."""
    keys, practice = keys_of(now, 7), practice_of(now)
    exercise = lesson.exercise("renormalise")
    reference, variants = load(lesson), read_variants(lesson, exercise)
    found = set()
    for graded in variants.wrong:
        mine = reference.with_answer(graded.code).record(exercise.name, 7)
        for forged in variants.wrong:
            theirs = reference.with_answer(forged.code).record(exercise.name, PRACTICE_SEED)
            nb = source_notebook(lesson)
            outputs = [(MIME, mine), (PRACTICE_MIME, theirs)]
            named_cells(nb)[exercise.rubric_cell].outputs = [
                NotebookNode(
                    output_type="display_data",
                    data={mime: base64.b64encode(pack(each)).decode()},
                )
                for mime, each in outputs
            ]
            judged = judge_notebook(Record(nb), now, keys, practice, {})
            verdict = judged.verdicts[exercise.name]
            wrong = {line.name for line in verdict.lines if not line.passed}
            assert all(wrong.intersection(belief.lines) for belief in verdict.beliefs)
            found |= {belief.name for belief in verdict.beliefs}
    assert found <= {mistake.name for mistake in practice[exercise.name].mistakes}
    assert found


@pytest.mark.parametrize("deed", ["os._exit(0)", "os.kill(os.getpid(), 2)"])
def test_the_second_recording_costs_nothing(lesson: Lesson, deed: str, now: Version) -> None:
    trap = f"if session.current().seed == session.PRACTICE_SEED: {deed}"
    answer = HALF_RIGHT.replace("\n", f"\n    {trap}\n", 1)
    imports = "import os\nfrom autograde.rubric import session\n"
    solved = {e.name: named_cells(source_notebook(lesson))[e.name].source for e in lesson.exercises}
    keys = keys_of(now, 7)
    look = FirstLook(lambda: keys)
    record, ran = run_on(now, solved | {"renormalise": imports + answer}, look)
    assert ran.problem is None
    assert not ran.notes
    practice = practice_of(now)
    verdicts = judge_notebook(record, now, keys, practice, look.verdicts).verdicts
    assert 0 < verdicts.pop("renormalise").points < 3
    assert all(verdict.passed for verdict in verdicts.values())


REMEMBERS = """
def renormalise(weights, columns=renormalise, calls=[]):
    calls.append(weights)
    return columns(weights) + (len(calls) > {})
"""
"""Below an answer: one that gives other results once it was called so often."""


@pytest.mark.parametrize("kept", ["", REMEMBERS])
def test_only_what_is_wrong_is_recorded_again_and_its_misconception_named(
    lesson: Lesson, now: Version, keys: dict[str, Key], kept: str
) -> None:
    wrong = read_variants(lesson, lesson.exercise("renormalise")).wrong
    calls = sum(len(line.cases) for line in keys["renormalise"].expected.lines)
    columns = next(each.code for each in wrong if each.name == "columns")
    answers = {"renormalise": columns + kept.format(calls)}
    keys = keys_of(now, 7)
    look = FirstLook(lambda: keys)
    record, _ = run_on(now, answers, look)
    again = [
        grade_id(cell)
        for cell in record.nb.cells
        if any(PRACTICE_MIME in output.get("data", {}) for output in cell.get("outputs", []))
    ]
    assert again == ["test_renormalise"]
    practice = practice_of(now)
    found = judge_notebook(record, now, keys, practice, look.verdicts)
    assert found.verdicts == judge_notebook(record, now, keys, practice, {}).verdicts
    assert found.verdicts["renormalise"].beliefs
    assert not found.problem
