"""Each lesson: its rubrics against every variant, and what a student first sees."""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import nbformat
import pytest
import torch
from conftest import HERE
from nightly import few
from torch.utils._pytree import tree_map

from autograde.authoring import check
from autograde.authoring.expected import practice_keys, record
from autograde.authoring.measure import measure
from autograde.authoring.variants import read_variants
from autograde.course.lesson_files import read_measured, read_text
from autograde.course.lessons import Exercise, Lesson, lessons
from autograde.grading.running.reference import load, right_key
from autograde.rubric.judge import judge
from autograde.rubric.key import Key, unpack_keys
from autograde.rubric.kinds import KINDS
from autograde.rubric.recording import Outcome, Recording
from autograde.rubric.session import PRACTICE_SEED

LESSONS = lessons(HERE)
EXERCISES = {
    f"{lesson.name}-{exercise.name}": (lesson, exercise)
    for lesson in LESSONS.values()
    for exercise in lesson.exercises
}
AT_ONCE = [name for name in EXERCISES if name < "05"]
"""Those whose variants `make test` judges, too."""


@pytest.mark.parametrize("name", few(EXERCISES.keys(), *AT_ONCE))
def test_every_variant_is_judged_as_it_should_be(name: str) -> None:
    """On one seed; a build takes the practice inputs, tests/test_variants.py the other seeds."""
    checked = check.judge_variants(*EXERCISES[name], seeds=check.CHECKED_SEEDS[1:2])
    assert checked.faults == ()
    assert checked.right >= 2
    assert checked.wrong >= 4


LOCKED = re.findall(r"^torch==(\S+)", (HERE / "requirements.lock").read_text(), re.MULTILINE)
ELSEWHERE = {"both_masks", "mask_as_index_in_place"}
"""Mistakes whose outcome itself is another one since PyTorch 2.15."""


@pytest.mark.skipif(torch.__version__.partition("+")[0] in LOCKED, reason="test_build.py does it")
@pytest.mark.parametrize("lesson", LESSONS)
def test_practice_data_name_mistakes_with_another_pytorch_too(lesson: str) -> None:
    """Students install the newest; practice data were made with the one in requirements.lock."""
    made, lost = unpack_keys(LESSONS[lesson].practice_file.read_bytes()), set()
    for name, key in practice_keys(LESSONS[lesson]).items():
        exercise = LESSONS[lesson].exercise(name)
        for wrong in read_variants(LESSONS[lesson], exercise).wrong:
            recording = record(load(LESSONS[lesson]), exercise, [wrong], PRACTICE_SEED)
            here, there = (judge(recording, each, trusted=True) for each in (key, made[name]))
            if here.beliefs and here.beliefs != there.beliefs:
                lost.add(wrong.name)
    assert lost <= ELSEWHERE


@pytest.mark.parametrize("lesson", LESSONS)
def test_shapes_and_drawings_of_characters_are_seen_whole(lesson: str) -> None:
    """In a window of 1,280 pixels beside the file browser; what is longer has to be scrolled."""
    texts = [cell.source for cell in read_text(LESSONS[lesson]).cells]
    blocks = [block for text in texts for block in re.findall(r"(?s)^```.*?^```", text, re.M)]
    assert [line for block in blocks for line in block.splitlines() if len(line) > 86] == []


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_hook_is_taken_off_also_after_an_error(lesson: str) -> None:
    """One that stays, after an interruption or with a wrong answer, spoils every later number."""
    left = r"= .*\.register_\w*hook\(.*\n(?!\s*try:)"
    assert [cell for cell in read_text(LESSONS[lesson]).cells if re.search(left, cell.source)] == []


@pytest.mark.parametrize("lesson", LESSONS)
def test_reference_passes_every_rubric_line(lesson: str) -> None:
    nb = nbformat.read(LESSONS[lesson].solution_notebook, as_version=4)
    panels = [
        output.data["text/plain"]
        for cell in nb.cells
        for output in cell.get("outputs", [])
        if 'class="rubric' in output.get("data", {}).get("text/html", "")
    ]
    assert len(panels) == len(LESSONS[lesson].exercises)
    for panel in panels:
        assert "WRONG" not in panel


@cache
def of_reference(lesson: str, seed: int) -> dict[str, tuple[Recording, Key]]:
    """What the reference records on a seed, and the key, made from another run; by exercise."""
    program, measured = load(LESSONS[lesson]), read_measured(LESSONS[lesson])
    return {
        each.name: (
            program.record(each.name, seed),
            right_key(program, each, seed, measured[each.name]),
        )
        for each in LESSONS[lesson].exercises
    }


@pytest.mark.parametrize("lesson", LESSONS)
def test_reference_passes_on_other_seeds(lesson: str) -> None:
    for seed in (11, 12):
        for recording, key in of_reference(lesson, seed).values():
            assert judge(recording, key).passed


MADE_UP = (
    Outcome(error="ValueError", message="refused"),
    *map(Outcome, (None, True, 0, 0.0, torch.zeros(0), torch.tensor(0.0), torch.tensor(True))),
)
# A mask that keeps nothing, or everything, is a mask.
RIGHT_IN_PART = {("keep_mask", 0.0), ("keep_mask", 1.0)}


@pytest.mark.parametrize("lesson", LESSONS)
def test_what_is_copied_or_made_up_earns_nothing(lesson: str) -> None:
    for name, (right, key) in of_reference(lesson, 11).items():
        if any(case.before for line in right.lines for case in line.cases):
            copied, _ = of_reference(lesson, 12)[name]
            assert judge(copied, key).points == 0, name
        for outcome in MADE_UP:
            made_up = changed(right, lambda _, outcome=outcome: outcome)
            assert judge(made_up, key).points == 0, (name, outcome)
        for number in (0.0, 1.0, math.nan, math.inf):
            made_up = changed(right, lambda known, x=number: filled(known, x))
            earned = judge(made_up, key).points > 0
            assert earned == ((name, number) in RIGHT_IN_PART), (name, number)


def changed(right: Recording, change: Callable[[Outcome], Outcome]) -> Recording:
    """Return a recording with the right inputs and other outcomes."""
    lines = (
        replace(line, cases=tuple(replace(c, outcome=change(c.outcome)) for c in line.cases))
        for line in right.lines
    )
    return replace(right, lines=tuple(lines))


def filled(known: Outcome, number: float) -> Outcome:
    """Return an outcome with the right shapes and dtypes, and one number everywhere."""

    def fill(value: object) -> object:
        if isinstance(value, torch.Tensor):
            return torch.full(value.shape, number).to(value.dtype)
        return number

    return replace(known, value=tree_map(fill, known.value))


@pytest.mark.parametrize("lesson", LESSONS)
def test_lines_of_kinds_that_compute_nothing_are_claims_and_never_all_are(lesson: str) -> None:
    reference, measured = load(LESSONS[lesson]), read_measured(LESSONS[lesson])
    for exercise in LESSONS[lesson].exercises:
        lines = measured[exercise.name]
        key = right_key(reference, exercise, PRACTICE_SEED, lines)
        assert not all(key.claims), f"no line of {exercise.name} can vouch for its claims"
        for line, claim in zip(key.expected.lines, key.claims, strict=True):
            assert claim or not KINDS[line.kind].claim, (exercise.name, line.name)


TEXT = """\
# %% grade_id="setup"
from autograde.rubric.probes.lines import rubric

# %% grade_id="ends"
def ends(x):
    return [x[0], x[-1]]

# %% grade_id="test_ends"
@rubric("ends")
def _(r):
    r.call("the ends", ends, r.normal(5))
"""
VARIANT = """\
# ends

## right: one_more
It is not.
```python
def ends(x):
    return [x[0], x[1], x[-1]]
```
"""


def test_a_right_variant_of_another_length_is_measured_then_named(tmp_path: Path) -> None:
    exercise = Exercise("ends", 1.0)
    lesson = Lesson(tmp_path, "01_ends", "ends", "Ends", "", 1, (exercise,))
    (lesson.folder / "variants").mkdir(parents=True)
    lesson.text.write_text(TEXT)
    (lesson.folder / "variants" / "ends.md").write_text(VARIANT)
    measure(lesson)
    faults = check.judge_variants(lesson, exercise).faults
    assert any("the right variant one_more fails “the ends”" in fault for fault in faults)
