"""What an author is told: the slip, the place, and what to do. And what the manual names."""

import json
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from conftest import HERE, run
from nightly import few

from attention_course.probes.rubric import Rubric
from autograde.authoring import check, expected, lint
from autograde.authoring.measure import measure
from autograde.authoring.new import new
from autograde.course.lesson_files import parse_text, read_measured
from autograde.course.lessons import CourseError, Lesson, choose_exercises, lessons
from autograde.grading.limits import Limits
from autograde.grading.running import reference
from autograde.grading.running.reference import load
from autograde.installed import manual
from autograde.rubric.kinds import KINDS
from autograde.sandbox.both_sides import KernelLimits

NAME = "07_my_lesson"
TEXT, VARIANTS, TOLERANCES = "my_lesson.py", "variants/center_rows.md", "tolerances.json"
PAGES = [(HERE / "docs" / f"{name}.md").read_text() for name in ("authoring", "rubric", "recipes")]


def test_who_changes_a_notebook_changes_it_for_nobody_else() -> None:
    lesson = lessons(HERE)["02_causal_mask"]
    parse_text(lesson, "# %%\nx = 1\n").cells[0].source = "x = 2"
    assert parse_text(lesson, "# %%\nx = 1\n").cells[0].source == "x = 1"


@dataclass(frozen=True)
class Slip:
    """What somebody writes by mistake in a file of the lesson, and what `build` says to it."""

    file: str
    right: str
    wrong: str
    said: str


SLIPS = {
    "no end of a bracket": Slip(
        TEXT, "return x - x.mean(dim=-1, keepdim=True)", "return x - x.mean(",
        "my_lesson.py: the cell center_rows is not Python: '(' was never closed, in line 4: "
        "return x - x.mean(",
    ),
    "no colon in the rubric": Slip(
        TEXT, "def _(r):", "def _(r)",
        "test_center_rows is not Python: expected ':', in line 2: def _(r)",
    ),
    "an unknown name in the rubric": Slip(
        TEXT, "r.normal(1, 8)", "s.normal(1, 8)",
        "the rubric of center_rows fails on the reference, after the line “every row has the mean "
        "0”: NameError: name 's' is not defined (in line 4: r.call(\"one row\", center_rows, "
        "3 + s.normal(1, 8)))",
    ),
    "an unknown name in the first line": Slip(
        TEXT, "3 + r.normal(2, 3)", "3 + r.norm(2, 3)",
        "the rubric of center_rows fails on the reference, before its first line is done: "
        "AttributeError",
    ),
    "another decorator": Slip(
        TEXT, '@rubric("center_rows")', '@rubrik("center_rows")',
        "test_center_rows fails: NameError: name 'rubrik' is not defined",
    ),
    "the rubric of another exercise": Slip(
        TEXT, '@rubric("center_rows")', '@rubric("center_row")',
        'test_center_rows does not open rubric("center_rows")',
    ),
    "two lines of one name": Slip(
        TEXT, "    r.conventions(", '    r.call("one row", center_rows, r.normal(2, 3))\n'
        "    r.conventions(",
        "test_center_rows has two lines called “one row”; reword one of them",
    ),
    "an answer that raises on some inputs": Slip(
        TEXT, "    return x - x.mean(dim=-1, keepdim=True)",
        "    if len(x) == 4:\n        raise KeyError(4)\n"
        "    return x - x.mean(dim=-1, keepdim=True)",
        "center_rows: the lesson's own answer fails “float64 in, float64 out, for any layout in "
        "memory”: `center_rows(x)` raises KeyError: 4",
    ),
    "marks around a part of a statement": Slip(
        TEXT, "    ### BEGIN SOLUTION\n", "    if x.ndim:\n    ### BEGIN SOLUTION\n        pass\n",
        "center_rows: what students get in its place is not Python: expected an indented block "
        "after 'if' statement on line 3, in line 5: raise NotImplementedError(). Put the "
        "solution's marks around whole statements, indented as the stub should be",
    ),
    "marks around all of a cell": Slip(
        TEXT, 'def center_rows(x):\n    """Every row of x minus its own mean: (..., n) -> (..., '
        'n)."""\n    ### BEGIN SOLUTION\n',
        "### BEGIN SOLUTION\ndef center_rows(x):\n",
        "center_rows: what students get in its place raises NotImplementedError as soon as the "
        "cell is run, so that the name is missing: put the solution's marks inside a function, in "
        "a class inside each method",
    ),
    "an answer that changes its arguments": Slip(
        TEXT, "    return x - x.mean(dim=-1, keepdim=True)",
        "    with torch.no_grad():\n        x += 1\n"
        "    return x - x.mean(dim=-1, keepdim=True)",
        "center_rows: the lesson's own answer fails “leaves its arguments as they were”: ",
    ),
    "a right variant that is wrong": Slip(
        VARIANTS, "/ x.shape[-1]", "/ x.shape[0]",
        "center_rows: the right variant sum_over_count fails “every row has the mean 0”: ",
    ),
    "a right variant that runs at once": Slip(
        VARIANTS, "    return x - x.sum(dim=-1, keepdim=True) / x.shape[-1]\n",
        "    return x - x.sum(dim=-1, keepdim=True) / x.shape[-1]\n\nfoo()\n",
        "the variant sum_over_count of center_rows fails: NameError",
    ),
    "a wrong variant that is right": Slip(
        VARIANTS, "keepdim=True).detach()", "keepdim=True)",
        "center_rows: the wrong variant cut_off passes every line.",
    ),
    "a wrong variant that has the idea": Slip(
        VARIANTS, "## near miss: cut_off", "## wrong: cut_off",
        "center_rows: the wrong variant cut_off earns 94% of the points; at most 50%",
    ),
    "a near miss that nothing makes": Slip(
        VARIANTS, "misses: float32_returned,", "misses: float16_returned,",
        "no near miss called 'float16_returned' can be made; there are detached, ",
    ),
    "a near miss that is made and passes": Slip(
        TEXT, '    r.call("one row", center_rows, 3 + r.normal(1, 8))\n', "",
        "center_rows: the wrong variant squeezed passes every line.",
    ),
    "a near miss that is made and misses the idea": Slip(
        TEXT, "center_rows, (3 + r.normal(2, 3),)", "center_rows, (3 + r.normal(2, 3).double(),)",
        "center_rows: the near miss float32_returned that is made from the lesson's own answer "
        "earns 25% of the points; at least 50%",
    ),
    "one name for two variants": Slip(
        VARIANTS, "## wrong: over_columns", "## wrong: second_dimension",
        "two variants are called second_dimension",
    ),
    "no hint": Slip(
        VARIANTS, "`dim` names the dimension that is summed away. Counting from the end, along "
        "which dimension do the\nnumbers of one row lie?\n", "",
        "center_rows: over_columns lacks a hint, below the misconception",
    ),
    "an unknown name in a cell for all": Slip(
        TEXT, "import os\n", "import os\nfoo()\n",
        "my_lesson.py: the cell setup fails: NameError: name 'foo' is not defined",
    ),
    "an unknown name in a figure": Slip(
        TEXT, "chart(draw, center_rows(inputs)", "chart(draw, center_rows(inpust)",
        "the cell 'def draw(rows):",
    ),
    "an answer that a cell of no name replaces": Slip(
        TEXT, '# %% grade_id="test_center_rows"',
        '# %%\ncenter_rows = torch.abs\n\n# %% grade_id="test_center_rows"',
        "test_center_rows: the lesson's own answer is not right in a notebook: center_rows: ",
    ),
    "another name": Slip(
        TEXT, 'grade_id="center_rows"', 'grade_id="centre_rows"',
        "the cell centre_rows is of no exercise and no question in source/curriculum.toml",
    ),
    "an answer without a name": Slip(
        TEXT, '# %% grade_id="center_rows"', "# %%",
        "the cell center_rows is missing: source/curriculum.toml wants it, my_lesson.py lacks it",
    ),
    "a name used twice": Slip(
        TEXT, 'grade_id="test_center_rows"', 'grade_id="center_rows"',
        "grade_id 'center_rows' is used 2 times",
    ),
    "a rubric in a Markdown cell": Slip(
        TEXT, '# %% grade_id="test_center_rows"', '# %% [markdown] grade_id="test_center_rows"',
        "test_center_rows is a markdown cell; it should be a code cell",
    ),
    "a helper in the rubric": Slip(
        TEXT, "    r.conventions(", "    twice = lambda x: 2 * x\n    r.conventions(",
        "test_center_rows holds more than its lines",
    ),
    "code outside the rubric's function": Slip(
        TEXT, "@rubric(\"center_rows\")", "n = 5\n\n\n@rubric(\"center_rows\")",
        "test_center_rows holds more than its lines",
    ),
    "a new line": Slip(
        TEXT, "    r.conventions(", '    r.call("two", center_rows, r.normal(2, 3))\n'
        "    r.conventions(",
        "no tolerance was measured for center_rows: two. Run: autograde check --measure",
    ),
    "a heading in other words": Slip(
        VARIANTS, "## right: sum_over_count", "## Right: sum over count",
        "expected '## right: name', '## wrong: name' or '## near miss: name' (small letters,",
    ),
    "a variant that runs at once": Slip(
        VARIANTS, "+    return x - x.mean()\n", "+    return x - x.mean()\n+\n+foo()\n",
        "the variant mean_of_everything of center_rows fails: NameError",
    ),
    "an edit of lines that are not there": Slip(
        VARIANTS, "-    return x - x.mean(dim=-1, keepdim=True)\n", "-    return x\n",
        "center_rows.md: mean_of_everything cannot edit reference: lines that occur 0 times in the "
        "answer: return x",
    ),
    "an edit of two places in one piece": Slip(
        VARIANTS, "+    return x - x.mean()\n",
        "+    return x - x.mean()\n-def center_rows(x):\n+def center_rows(x, y=0):\n",
        "mean_of_everything cannot edit reference: lines that do not follow each other in the "
        "answer (a line @@ goes between two places): return x",
    ),
    "an edit of nothing": Slip(
        VARIANTS, "```diff reference", "```diff column_of_mean",
        "mean_of_everything edits column_of_mean, which is no right answer above it",
    ),
    "an exercise without cells": Slip(
        "../curriculum.toml", "center_rows = 2", "center_rows = 2\nrow_ranges = 2",
        "the cell test_row_ranges is missing: source/curriculum.toml wants it, my_lesson.py lacks",
    ),
    "a curriculum that is no TOML": Slip(
        "../curriculum.toml", "center_rows = 2", "center_rows == 2",
        "cannot be read: Invalid value (at line",
    ),
    "points in words": Slip(
        "../curriculum.toml", "center_rows = 2", 'center_rows = "two"',
        "07_my_lesson: center_rows needs a number above 0, not 'two'",
    ),
    "memory in words": Slip(
        "../curriculum.toml", "minutes = ", 'memory_gb = "4 GB"\nminutes = ',
        "memory_gb needs a number above 0, not '4 GB'",
    ),
    "no points": Slip(
        "../curriculum.toml", "center_rows = 2", "center_rows = 0",
        "center_rows needs a number above 0, not 0",
    ),
    "a need of nothing here": Slip(
        "../curriculum.toml", "center_rows = 2",
        'center_rows = 2\n[lesson.needs]\ncenter_rows = ["scores"]',
        "needs: center_rows = ['scores'] is no list of exercises here",
    ),
    "a need that is no list": Slip(
        "../curriculum.toml", "center_rows = 2",
        'center_rows = 2\n[lesson.needs]\ncenter_rows = "center_rows"',
        "needs: center_rows = 'center_rows' is no list of exercises here",
    ),
    "an exercise named as a rubric": Slip(
        "../curriculum.toml", "center_rows = 2", "center_rows = 2\ntest_rows = 2",
        "07_my_lesson: test_rows may not begin with test_ or question_",
    ),
    "an exercise named as a question": Slip(
        "../curriculum.toml", "center_rows = 2",
        "center_rows = 2\n[lesson.written]\ncenter_rows = 1",
        "center_rows is the name of an exercise and of a question",
    ),
    "a withdrawn line that is no list": Slip(
        "../curriculum.toml", "center_rows = 2",
        'center_rows = 2\n[lesson.withdrawn]\ncenter_rows = "one row"',
        "withdrawn: center_rows = 'one row' is no list of lines of an exercise here",
    ),
    "a text that is not UTF-8": Slip(
        TEXT, "import os\n", "import os  # caf\udce9\n",
        "my_lesson.py: line 20 is not UTF-8; save the file as UTF-8",
    ),
    "variants that are not UTF-8": Slip(
        VARIANTS, "Counting from", "Caf\udce9, from",
        "center_rows.md: line 37 is not UTF-8; save the file as UTF-8",
    ),
    "tolerances that a merge has damaged": Slip(
        TOLERANCES, "{\n", "<<<<<<< HEAD\n{\n",
        "Delete it, then run: autograde check --measure 07_my_lesson",
    ),
    "a lesson without minutes": Slip(
        "../curriculum.toml", "minutes = 60\n", "", "a lesson lacks 'minutes'"
    ),
}  # fmt: skip
"""Adding a slip is adding a row."""


def said(lesson: Lesson, *command: str) -> str:
    """What a command says that fails as it should: with a message, not with a traceback."""
    result = run(lesson.root, *command)
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code in (1, 2)
    return " ".join(result.output.split())


ONLY_WHEN_RUN = {"an unknown name in a figure", "an answer that a cell of no name replaces"}
"""A build runs the cells without a name, which takes as long as the lesson; `check` does not."""


def test_two_lessons_of_one_name_are_refused(mine: Lesson) -> None:
    curriculum = mine.folder / "../curriculum.toml"
    text = curriculum.read_text()
    curriculum.write_text(text + "[[lesson]]" + text.rpartition("[[lesson]]")[2])
    assert f"two lessons have the name '{NAME}'" in said(mine, "build", NAME)


def make_slip(lesson: Lesson, name: str) -> Slip:
    slip = SLIPS[name]
    path = lesson.folder / slip.file
    text = path.read_text()
    assert slip.right in text
    path.write_text(text.replace(slip.right, slip.wrong, 1), errors="surrogateescape")
    return slip


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_is_named_with_its_place_and_once(mine: Lesson, name: str) -> None:
    slip = make_slip(mine, name)
    assert said(mine, "build", NAME).count(slip.said) == 1


SAID_BY_CHECK = "an unknown name in a figure", "a right variant that is wrong", "points in words"


@pytest.mark.parametrize("name", few(SLIPS.keys(), *SAID_BY_CHECK))
def test_check_names_the_same_slips(mine: Lesson, name: str) -> None:
    """Build and check ask one function for the faults of a lesson."""
    slip = make_slip(mine, name)
    if name in ONLY_WHEN_RUN:
        checked = run(mine.root, "check", NAME)
        assert checked.exit_code == 0, checked.output
        assert checked.output.splitlines()[-1].endswith("are run by autograde build.")
    else:
        assert said(mine, "check", NAME).count(slip.said) == 1


MISSING: dict[str, tuple[str, str]] = {
    TOLERANCES: ("no tolerance was measured", "Run: autograde check --measure"),
    VARIANTS: ("center_rows has no variants", f"{manual() / 'authoring.md'} shows one"),
}


@pytest.mark.parametrize("file", MISSING)
@pytest.mark.parametrize("command", ["build", "check"])
def test_a_missing_file_is_named(mine: Lesson, file: str, command: str) -> None:
    (mine.folder / file).unlink()
    for words in MISSING[file]:
        assert words in said(mine, command, NAME)


def with_next_rows(lesson: Lesson) -> Lesson:
    """Add an exercise that calls the first one. It has no variants yet."""
    text, heads = lesson.text.read_text(), re.compile(r"(?=^# %%)", re.M)
    cells = [cell for cell in heads.split(text) if 'grade_id="center' in cell or "test_cen" in cell]
    added = "".join(cells).replace("center_rows", "next_rows")
    added = added.replace("return x - x.mean(dim=-1, keepdim=True)", "return center_rows(x)")
    lesson.text.write_text(f"{text}\n{added}")
    curriculum = lesson.root / "source" / "curriculum.toml"
    points = "center_rows = 2\nnext_rows = 2\n[lesson.needs]\nnext_rows = ['center_rows']"
    curriculum.write_text(curriculum.read_text().replace("center_rows = 2", points))
    return lessons(lesson.root)[lesson.name]


@pytest.mark.usefixtures("run_before")
def test_an_exercise_is_checked_alone_before_the_next_one_has_variants(mine: Lesson) -> None:
    mine = with_next_rows(mine)
    assert "next_rows has no variants" in said(mine, "check", NAME)
    result = run(mine.root, "check", "center_rows")
    assert result.exit_code == 0, result.output


SCALED = """
## right: scaled
Near enough.
```python
def center_rows(x):
    return 1.00001 * (x - x.mean(dim=-1, keepdim=True))
```
"""


def test_what_is_near_enough_in_one_exercise_costs_nothing_in_the_next(mine: Lesson) -> None:
    mine = with_next_rows(mine)
    first, following = mine.exercises
    path = mine.folder / VARIANTS
    text = path.read_text()
    path.with_name("next_rows.md").write_text(
        text.replace("center_rows", "next_rows").replace(
            "-    return x - x.mean(dim=-1, keepdim=True)", "-    return center_rows(x)"
        )
    )
    measure(mine, (following,), seeds=range(20))
    path.write_text(text.replace("\n## wrong", SCALED + "\n## wrong", 1))
    measure(mine, (first,), seeds=range(20))
    (checked,) = check.check(mine, (following,))
    (fault,) = checked.faults
    assert fault.startswith(
        "the lesson's own answer, beside scaled of center_rows, fails “every row has the mean 0”: "
    )
    assert fault.endswith("run: autograde check --measure next_rows")
    measure(mine, (following,), seeds=range(20))
    assert [result.faults for result in check.check(mine)] == [(), ()]


def without(lesson: Lesson, heading: str) -> None:
    """Leave out the variants whose heading matches."""
    path = lesson.folder / VARIANTS
    first, *others = re.split(r"(?=^## )", path.read_text(), flags=re.M)
    path.write_text(first + "".join(o for o in others if not re.search(heading, o)))


DRAFT = (
    f"{NAME}: center_rows is a draft: 1 right and 3 wrong variants; write at least 2 and 4 "
    "before students get it\n"
)


@pytest.mark.usefixtures("run_before")
@pytest.mark.parametrize("command", ["build", "check"])
def test_a_draft_has_few_variants_and_is_accepted_and_named(mine: Lesson, command: str) -> None:
    without(mine, "right: sum|mean_of_everything|second")
    path = mine.folder / VARIANTS
    path.write_text(path.read_text().replace("misses: float32_returned, squeezed,", "misses:"))
    assert list(lint.lint_variants(mine)) == []
    result = run(mine.root, command, NAME)
    assert result.exit_code == 0, result.output
    assert DRAFT in result.output


def test_who_hands_out_a_draft_is_told_so(mine: Lesson) -> None:
    texts = [*mine.root.glob("*/*/my_lesson.*"), *mine.folder.glob("variants/*.md")]
    for path in (mine.root / "source" / "curriculum.toml", *texts):
        path.write_text(path.read_text().replace("REPLACE", "About"))
    without(mine, "right: sum|mean_of_everything|second")
    path = mine.folder / VARIANTS
    path.write_text(path.read_text().replace("misses: float32_returned, squeezed,", "misses:"))
    result = run(mine.root, "release", "out")
    assert result.exit_code == 0, result.output
    assert DRAFT in result.output


def test_an_exercise_that_two_lessons_have_is_checked_in_both(mine: Lesson) -> None:
    new(mine.root, "08_another")
    curriculum = mine.root / "source" / "curriculum.toml"
    curriculum.write_text(curriculum.read_text().replace("center_rows_08", "center_rows"))
    found = choose_exercises(mine.root, ("center_rows",))
    assert {lesson.name: [each.name for each in of] for lesson, of in found.items()} == {
        NAME: ["center_rows"],
        "08_another": ["center_rows"],
    }


def test_a_line_that_nothing_fails_is_named(mine: Lesson) -> None:
    path = mine.folder / VARIANTS
    path.write_text(path.read_text().replace(", changed_in_place", ""))
    assert list(lint.lint_variants(mine)) == [
        "center_rows: no wrong variant fails the line “leaves its arguments as they were”. Add one "
        "that does, or change the line"
    ]


WEAK: dict[str, Callable[[str], str]] = {
    "the wrong variant cut_off passes every line": lambda text: text.replace(".detach()", ""),
    "the wrong variant cut_off passes every line on 3 of 4 seeds: draw": lambda text: text.replace(
        ".detach()", " + (x.shape == (1, 8) and bool(x[0, 0] > 3))"
    ),
    "tolerances, 10 are needed: draw larger": lambda text: text.replace(
        ".detach()", " * (1 + 1e-5 * (x.dtype == torch.float32))"
    ),
}


@pytest.mark.parametrize("words", WEAK)
def test_a_wrong_variant_that_is_not_told_apart(mine: Lesson, words: str) -> None:
    path = mine.folder / VARIANTS
    path.write_text(WEAK[words](path.read_text()))
    (checked,) = check.check(mine)
    (fault,) = (fault for fault in checked.faults if "cut_off" in fault)
    assert words in fault


ENDLESS = """
## {heading}: endless
> a loop ends by itself.

What changes in it?
```python
def center_rows(x):
    while True:
        pass
```
"""
FULL = ENDLESS.replace("while True:\n        pass", "rows = []\n    while True: rows += [x] * 9**7")


@pytest.mark.parametrize("heading", ["wrong", "right"])
def test_an_answer_that_does_not_end_is_interrupted_as_in_grading(
    heading: str, mine: Lesson, monkeypatch: pytest.MonkeyPatch
) -> None:
    if heading == "right":
        monkeypatch.setattr(reference, "Limits", lambda: Limits(cell_seconds=1))
    monkeypatch.setattr(expected, "ENDLESS_SECONDS", 1)  # of a processor, for a wrong one
    path = mine.folder / VARIANTS
    path.write_text(path.read_text() + ENDLESS.format(heading=heading))
    began = time.monotonic()
    faults = check.judge_variants(mine, mine.exercise("center_rows")).faults
    assert time.monotonic() - began < Limits.cell_seconds
    if heading == "wrong":
        assert faults == ()
    else:
        (fault,) = faults
        assert fault.startswith("the right variant endless fails “every row has the mean 0”: The")
        assert "was interrupted: `center_rows(x)` did not end (in line " in fault
        with pytest.raises(CourseError, match="right variant endless fails"):
            measure(mine, seeds=[1])


def test_an_answer_that_loses_an_interrupt_gets_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "AGAIN_SECONDS", 0.1)
    lost, until = 0, time.monotonic() + 10
    with reference.interrupted_after(0.1):
        while lost < 2 and time.monotonic() < until:
            try:
                while time.monotonic() < until:
                    pass
            except KeyboardInterrupt:
                lost += 1
    assert lost == 2


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone limits it")
def test_a_variant_that_fills_a_list_without_end_does_not_fill_the_machine(
    mine: Lesson, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = KernelLimits(memory_bytes=2**28)
    monkeypatch.setattr(reference, "Limits", lambda: Limits(kernel=kernel))
    path = mine.folder / VARIANTS
    path.write_text(path.read_text() + FULL.format(heading="right"))
    (fault,) = check.judge_variants(mine, mine.exercise("center_rows"), [1]).faults
    assert "raises MemoryError" in fault


@pytest.mark.parametrize(("tolerance", "todo"), [(2e-6, "--measure"), (0.01, "from rounding")])
def test_who_has_measured_what_no_tolerance_fits_is_not_sent_to_measure_again(
    mine: Lesson, tolerance: float, todo: str
) -> None:
    measured = read_measured(mine)
    measured["center_rows"]["every row has the mean 0"]["tolerance"] = tolerance
    mine.tolerance_file.write_text(json.dumps(measured))
    path = mine.folder / VARIANTS
    path.write_text(path.read_text().replace("/ x.shape[-1]", "/ x.shape[0]"))
    (fault,) = check.judge_variants(mine, mine.exercise("center_rows"), [1]).faults
    assert fault.startswith("the right variant sum_over_count fails “every row has the mean 0”")
    assert todo in fault


def test_right_answers_that_differed_when_measured_are_judged_on_all_those_inputs(
    mine: Lesson,
) -> None:
    measured = read_measured(mine)
    measured["center_rows"]["one row"]["tolerance"] = 0.01
    path = mine.folder / VARIANTS
    path.write_text(
        path.read_text().replace(
            "/ x.shape[-1]", "/ (x.shape[-1] + (x.shape == (1, 8) and bool(x.max() > 5.5)))"
        )
    )
    assert check.check(mine)[0].faults == ()
    mine.tolerance_file.write_text(json.dumps(measured))
    (fault,) = check.check(mine)[0].faults
    assert re.match(
        "the right variant sum_over_count fails “one row” on [1-9]+ of 54 seeds: .*"
        "compare only what right answers share",
        fault,
    )


def test_a_line_that_only_lacks_another_is_not_what_a_right_variant_fails(mine: Lesson) -> None:
    first, constant = "def _(r):\n", '    r.call("a constant", center_rows, torch.ones(2, 3))\n'
    mine.text.write_text(mine.text.read_text().replace(first, first + constant))
    path = mine.folder / VARIANTS
    by_hand = "x.sum(dim=-1, keepdim=True) / x.shape[-1]"
    path.write_text(path.read_text().replace(by_hand, "x.sum(dim=0) / x.shape[0]"))
    measure(mine, seeds=range(1000, 1012))
    assert read_measured(mine)["center_rows"]["a constant"]["claim"]
    faults = " ".join(check.judge_variants(mine, mine.exercise("center_rows"), [1]).faults)
    assert "the right variant sum_over_count fails “every row has the mean 0”" in faults
    assert "“a constant”" not in faults


CATCHING = """

def safely(x):
    try:
        return center_rows(x)
    except RuntimeError:
        return None
"""


def test_a_helper_that_catches_what_an_unwritten_answer_raises_is_named(mine: Lesson) -> None:
    text = mine.text.read_text().replace('"one row", center_rows', '"one row", safely')
    mine.text.write_text(
        re.sub("(?m)^(from autograde.notebook .*\n)", rf"\1{CATCHING}", text, count=1)
    )
    measure(mine, seeds=[1000, 1001])
    caught = "NotImplementedError does not reach “one row”. A helper that catches errors has to"
    assert caught in said(mine, "check", NAME)


def test_inputs_that_are_not_drawn_from_the_seed_are_named(mine: Lesson) -> None:
    text = mine.text.read_text().replace("r.normal(1, 8)", "torch.tensor(np.random.rand(1, 8))")
    mine.text.write_text(text.replace("import torch\n", "import numpy as np\nimport torch\n", 1))
    measure(mine, seeds=[1000, 1001])
    assert "center_rows: the line “one row” has other inputs each time" in said(mine, "build", NAME)


ONE_ROW = """
## wrong: only_several
> one row is no matrix.

How many rows?
```diff reference
-    return x - x.mean(dim=-1, keepdim=True)
+    return (x - x.mean(dim=-1, keepdim=True)) * (1 + (x.shape == (1, 8)))
```
"""


@pytest.mark.parametrize("before", ["", "idea."])
def test_a_wrong_variant_that_earns_too_much_is_named(mine: Lesson, before: str) -> None:
    text = mine.text.read_text().replace('r.call("one row"', f'r.{before}call("one row"')
    mine.text.write_text(text)
    path = mine.folder / VARIANTS
    path.write_text(path.read_text() + ONE_ROW)
    measure(mine)
    (fault,) = (each for each in check.check(mine)[0].faults if "only_several earns" in each)
    assert "before no others" in fault


def test_answers_that_return_nothing_are_to_be_called_through_a_helper(mine: Lesson) -> None:
    text = mine.text.read_text()
    mine.text.write_text(text.replace("    return x - x.mean(", "    x - x.mean("))
    (mine.folder / VARIANTS).write_text("# center_rows\n\n1. Look.\n2. Look again.\n")
    mine.text.write_text(
        re.sub(r"    r\.(conventions|gradient|unchanged)\(.*\n", "", mine.text.read_text())
    )
    measure(mine)
    (faults,) = (each.faults for each in check.check(mine))
    assert any("every call returns None, so nothing is compared" in fault for fault in faults)


def test_a_right_variant_is_not_blamed_for_what_the_references_answer_fails(mine: Lesson) -> None:
    changing = r"    with torch.no_grad():\n        x += 1\n\1"
    for path in (mine.text, mine.folder / VARIANTS):  # in an edit each line has a sign before it
        path.write_text(re.sub(r"^(    return x - x\.)", changing, path.read_text(), flags=re.M))
    faults = " ".join(check.check(mine)[0].faults)
    assert faults.count("the lesson's own answer fails “leaves its arguments as they were”") == 1
    assert "the right variant" not in faults


def test_lines_that_watch_how_an_answer_works_carry_a_fifth_at_most(
    mine: Lesson, monkeypatch: pytest.MonkeyPatch
) -> None:
    (exercise,) = mine.exercises
    for kind, share in {"gradient": 0.08, "call": 0.9}.items():
        monkeypatch.setattr(KINDS[kind], "watched", True)
        faults = " ".join(check.judge_variants(mine, exercise, [1]).faults)
        assert ("lines that watch how an answer works carry" in faults) is (share > 0.2)


def test_a_margin_is_a_number_that_says_something(mine: Lesson) -> None:
    (checked,) = check.check(mine)
    assert checked.margin > 1000
    assert checked.least == "over 1000"
    assert replace(checked, margin=12.3).least == "12"
    assert replace(checked, wrong=0).least == "-"


def test_the_rubric_methods_of_the_manual_exist() -> None:
    named, r = set(re.findall(r"`r\.(\w+)", "".join(PAGES))), Rubric("it", seed=1)
    assert {"call", "gradient", "normal"} <= named
    assert [name for name in named if not hasattr(r, name)] == []


def test_a_lesson_without_one_of_its_rubrics_says_so(mine: Lesson) -> None:
    mine.text.write_text(mine.text.read_text().replace("test_center_rows", "test_rows"))
    assert "the cell test_center_rows is missing" in said(mine, "check", NAME)
    assert load(mine).rubrics == {}
