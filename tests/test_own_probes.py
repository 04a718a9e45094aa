"""The examples of docs/recipes.md for rubrics of one's own, each as it stands there."""

import random
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from conftest import HERE

from autograde.authoring.marks import own_answer, without_solution
from autograde.course.lessons import CURRICULUM, CourseError, lessons
from autograde.grading.running.reference import Program, load, right_recording, run
from autograde.rubric.checks import Reading, share_of
from autograde.rubric.kinds import KINDS, outcomes_of, wrong_cases
from autograde.values.base import unrecordable
from autograde.values.dispatch import to_plain

PAGE = (HERE / "docs" / "recipes.md").read_text()
OTHERS = {
    "two helpers": """
from functools import wraps
from autograde.notebook import rubric

def twice(function):
    @wraps(function)
    def called(x):
        return function(function(x))
    return called

@twice
def two_steps(x):
    return newton(x)

class Steps:
    def __call__(self, steps, x):
        return two_steps(x) if steps == 3 else newton(x)

after = Steps()
""",
}
"""Helpers that are no plain functions."""


def block(label: str) -> str:
    (found,) = re.findall(rf"```python {label}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def program(root: Path, exercise: str, setup: str, answer: str, rubric: str) -> Program:
    """A lesson of one exercise, as `check` runs it."""
    folder = root / "source" / "01_own"
    folder.mkdir(parents=True)
    (root / CURRICULUM).write_text(
        '[[lesson]]\nname = "01_own"\nnotebook = "own"\ntitle = "Own"\n'
        'about = "it"\nminutes = 5\n\n'
        f"[lesson.points]\n{exercise} = 1\n"
    )
    cells = {"setup": setup, exercise: answer, f"test_{exercise}": rubric}
    heads = (f'# %% grade_id="{name}"\n{code}' for name, code in cells.items())
    (folder / "own.py").write_text("\n".join(heads))
    return load(lessons(root)["01_own"])


def wrong_lines(reference: Program, exercise: str, answer: str) -> list[str]:
    """The lines that an answer gets wrong, after the reference has got them all right."""
    expected = reference.record(exercise, 1)
    assert expected.stopped is None
    assert [c for line in expected.lines for c in line.cases if c.outcome.error] == []
    got = outcomes_of(reference.with_answer(answer).record(exercise, 1), expected)
    pairs = zip(expected.lines, got, strict=True)
    return [
        line.name
        for line, outcomes in pairs
        if any(wrong_cases(line, outcomes, KINDS[line.kind].tolerance or 1e-4))
    ]


TORCH = "import torch\nfrom torch import nn\nfrom autograde.notebook import rubric\n"
CROSS = {
    ("self.W_value(y)", "self.W_value(y)"): [],
    ("self.W_value(y)", "self.W_value(x)[:1]"): ["x asks, y answers"],
    ("forward(self, x, y):", "forward(self, x, y):\n        y = y.detach()"): [
        "everything it holds learns"
    ],
    ("forward(self, x, y):", "forward(self, x, y):\n        y += 1"): [
        "x asks, y answers",
        "leaves its input as it was",
    ],
}
"""Changes of the answer, and lines that these fail, perhaps among others."""


@pytest.mark.parametrize(("change", "fails"), CROSS.items())
def test_a_layer_of_two_inputs_is_judged_and_both_learn(
    change: tuple[str, str], fails: list[str], tmp_path: Path
) -> None:
    answer, rubric = block("cross answer"), block("cross rubric")
    reference = program(tmp_path, "CrossAttention", TORCH, answer, rubric)
    wrong = answer.replace(*change)
    found = wrong_lines(reference, "CrossAttention", wrong)
    assert set(fails) <= set(found)
    assert bool(fails) == bool(found)
    first, *_ = reference.record("CrossAttention", 1).lines
    assert first.cases[0].call == "layer = CrossAttention(d_in=4, d_out=3)\nlayer(x, y)"


def test_the_call_that_fails_of_the_lessons_own_layer_is_one_line(tmp_path: Path) -> None:
    answer, rubric = block("cross answer"), block("cross rubric").replace("W_query W", "W_q W")
    reference = program(tmp_path, "CrossAttention", TORCH, answer, rubric)
    with pytest.raises(CourseError) as raised:
        right_recording(reference, reference.lesson.exercises[0], 1)
    assert str(raised.value) == (
        "CrossAttention: the lesson's own answer fails “x asks, y answers”: `layer = "
        "CrossAttention(d_in=4, d_out=3); layer(x, y)` breaks the contract: there is no parameter "
        "called W_q.weight"
    )


@pytest.mark.parametrize("setup", [block("helper setup"), *OTHERS.values()])
def test_a_helper_calls_the_answer_that_is_judged(setup: str, tmp_path: Path) -> None:
    answer, rubric = block("helper answer"), block("helper rubric")
    reference = program(tmp_path, "newton", setup, answer, rubric)
    assert wrong_lines(reference, "newton", answer) == []
    wrong = "def newton(x):\n    return x"
    assert wrong_lines(reference, "newton", wrong) == ["one step, three steps"]
    assert wrong_lines(reference, "newton", answer) == []  # the other answer is gone again
    assert wrong_lines(reference, "newton", "def newton(x:") == ["one step, three steps"]


CLASS = {
    ("raise ValueError", "print"): ["an overdraft"],
    ("amount > self.balance", "amount >= self.balance"): ["all of it can be withdrawn"],
    ("self.balance = opening", "type(self).balance = 0"): [
        "the balance after each step",
        "all of it can be withdrawn",
    ],
}


@pytest.mark.parametrize(("change", "fails"), CLASS.items())
def test_a_class_is_judged_by_what_its_methods_return(
    change: tuple[str, str], fails: list[str], tmp_path: Path
) -> None:
    answer = block("class answer")
    setup, rubric = block("class setup"), block("class rubric")
    reference = program(tmp_path, "Account", setup, answer, rubric)
    assert wrong_lines(reference, "Account", answer) == []
    assert change[0] in answer
    assert wrong_lines(reference, "Account", answer.replace(*change)) == fails
    stub = reference.with_answer(without_solution(answer)).record("Account", 1)
    outcomes = [case.outcome for line in stub.lines for case in line.cases]
    assert all(outcome.not_attempted for outcome in outcomes)


GIVEN_CLASS = """\
### BEGIN SOLUTION
{solution}### END SOLUTION
{given}"""


def test_students_may_write_the_whole_class(tmp_path: Path) -> None:
    solution = own_answer(block("class answer"))
    answer = GIVEN_CLASS.format(solution=solution, given=block("class given"))
    setup, rubric = block("class setup"), block("class rubric")
    reference = program(tmp_path, "Account", setup, answer, rubric)
    assert wrong_lines(reference, "Account", answer) == []
    students = without_solution(answer)
    assert "deposit" not in students
    assert len(wrong_lines(reference, "Account", students)) == 3


STACK = """
class EmptyStack(IndexError):
    pass

class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)

    def pop(self):
        if not self.items:
            raise EmptyStack("nothing is left")
        return self.items.pop()
"""
STACKS = {
    ("items.pop()", "items.pop(0)"): ["last in, first out"],
    ("def __init__(self):\n        self.items = []", "items = []"): ["two stacks share nothing"],
    ("raise EmptyStack", "raise IndexError"): ["an empty one raises EmptyStack"],
    ("EmptyStack", "IndexError"): ["an empty one raises EmptyStack"],
    ("(IndexError)", "(ValueError)"): ["last in, first out", "two stacks share nothing"],
    ("return self.items.pop()", "self.items.pop()"): [
        "last in, first out",
        "two stacks share nothing",
    ],
    ('raise EmptyStack("nothing is left")', "return None"): [
        "last in, first out",
        "two stacks share nothing",
        "an empty one raises EmptyStack",
    ],
    ("class Stack", "class Other(EmptyStack):\n    pass\n\nclass Stack"): [],
    ('EmptyStack("nothing is left")', 'type("Own", (EmptyStack,), {})()'): [],
}
"""Changes of a class, and the lines that these fail."""


@pytest.mark.parametrize(("change", "fails"), STACKS.items())
def test_errors_between_results_and_two_objects_are_judged(
    change: tuple[str, str], fails: list[str], tmp_path: Path
) -> None:
    setup, rubric = block("objects setup"), block("objects rubric")
    reference = program(tmp_path, "Stack", setup, STACK, rubric)
    assert change[0] in STACK
    assert wrong_lines(reference, "Stack", STACK.replace(*change)) == fails


def test_a_step_that_is_wrong_has_a_name(tmp_path: Path) -> None:
    setup, rubric = block("objects setup"), block("objects rubric")
    reference = program(tmp_path, "Stack", setup, STACK, rubric)
    answer = STACK.replace("items.pop()", "items.pop(0)")
    (line, *_), (got, *_) = (
        it.record("Stack", 1).lines for it in (reference, reference.with_answer(answer))
    )
    found = KINDS["call"].compare(got.cases[1].outcome, line.cases[1])
    assert found.at == ", 3. pop"


SORTS = """
def digit_sum(n):
    return n if n < 10 else n % 10 + digit_sum(n // 10)

def merge_sort(numbers):
    if len(numbers) < 2:
        return list(numbers)
    middle = len(numbers) // 2
    one, other = merge_sort(numbers[:middle]), merge_sort(numbers[middle:])
    result = []
    while one and other:
        result.append(one.pop(0) if one[0] <= other[0] else other.pop(0))
    return result + one + other
"""
QUADRATIC = """
def merge_sort(numbers):
    result = []
    for x in numbers:
        result.insert(sum(y < x for y in result), x)
    return result
"""


def test_comparisons_and_loops_are_counted(tmp_path: Path) -> None:
    setup, rubric = block("cost setup"), block("cost rubric")
    reference = program(tmp_path, "merge_sort", setup, SORTS, rubric)
    slow = ["at most 6,000 comparisons for 300 numbers"]
    assert wrong_lines(reference, "merge_sort", QUADRATIC) == slow
    wrong = "def merge_sort(numbers):\n    return numbers"
    assert wrong_lines(reference, "merge_sort", wrong) == ["a sorted list", *slow]
    heap = "from heapq import merge\n" + SORTS.replace("result = []", "return [*merge(one, other)]")
    assert wrong_lines(reference, "merge_sort", heap) == []
    assert wrong_lines(reference, "merge_sort", "merge_sort = sorted") == []
    assert reference.names["without_loops"](123) == {"sum": 6, "loops": []}
    run("def digit_sum(n):\n    return sum(int(d) for d in str(n))", reference.names)
    assert reference.names["without_loops"](123) == {"sum": 6, "loops": ["comprehension"]}
    run("def merge_sort(numbers):\n    numbers.sort()\n", reference.names)
    answer = reference.names["merge_sort"]
    assert reference.names["used"](answer, "sort", "sorted") == ["sort"]


DEEDS = """
def stairs(n):
    for i in range(1, n + 1):
        print("#" * i)

def drop_negatives(numbers):
    numbers[:] = [x for x in numbers if x >= 0]

def countdown(n):
    while True:
        yield n
        n -= 1

def number_lines(source, target):
    lines = Path(source).read_text().splitlines(keepends=True)
    Path(target).write_text("".join(f"{i}: {line}" for i, line in enumerate(lines, 1)))

def bars(scores):
    figure, ax = plt.subplots()
    ax.bar(list(scores), list(scores.values()))
    ax.set_title("Scores")
    plt.show()
    return plt.gcf()

def ask_age():
    return int(input("age? "))
"""


def test_what_an_answer_does_is_recorded_through_helpers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plt, "show", lambda: plt.close("all"))  # as Jupyter's own does
    answer, rubric = DEEDS, block("deeds rubric")
    reference = program(tmp_path, "stairs", block("deeds setup"), answer, rubric)
    helpers = reference.names
    assert helpers["printed"](2) == "#\n##\n"
    assert helpers["left"]([3, -1, 0]) == [3, 0]
    assert helpers["first"](5, 3) == [5, 4, 3]
    assert helpers["written"]("a\nb\n") == "1: a\n2: b\n"
    assert helpers["shown"]({"Ada": 3, "Bo": 5}) == {
        "names": ["Ada", "Bo"],
        "heights": [3.0, 5.0],
        "title": "Scores",
    }
    assert helpers["told"]("42") == 42
    silent = "def stairs(n):\n    return '#\\n' * n\n"
    assert wrong_lines(reference, "stairs", silent) == ["one more in each line"]
    assert wrong_lines(reference, "stairs", answer) == []


def test_a_share_is_read_off_an_array_as_off_a_tensor() -> None:
    hits = [[True, False], [False, False]]
    of_both = [share_of("heads", each, 0.5) for each in (np.array(hits), torch.tensor(hits))]
    assert of_both == [Reading("heads", 0.25, 0.5, 1.5)] * 2


BOOTSTRAPS = {
    "return rng.choice(values, size=(times, len(values))).mean(axis=1)": [],
    "return [rng.choice(values, len(values)).mean() for _ in range(times)]": [],
    "return rng.choice(values, size=times)": ["the means scatter as they should"],
    "return [values.mean()] * times": [
        "the means scatter as they should",
        "the same seed gives the same means, another one others",
    ],
    "return None": [
        "the means scatter as they should",
        "the same seed gives the same means, another one others",
    ],
    "return object()": [
        "the means scatter as they should",
        "the same seed gives the same means, another one others",
    ],
}
"""Other last lines of the answer, and the lines that these fail."""


@pytest.mark.parametrize(("last", "fails"), BOOTSTRAPS.items())
def test_an_answer_that_draws_random_numbers_is_judged_by_a_check_of_ones_own(
    last: str, fails: list[str], tmp_path: Path
) -> None:
    exec(block("random check"), {"__name__": "statistics_course"})  # noqa: S102 (the page's own)
    setup, answer, rubric = (block(f"random {part}") for part in ("setup", "answer", "rubric"))
    reference = program(tmp_path, "bootstrap_means", setup, answer, rubric)
    lines = answer.strip().splitlines()
    other = "\n".join([*lines[:-1], f"    {last}"])
    assert wrong_lines(reference, "bootstrap_means", other) == fails


@pytest.mark.parametrize(
    ("draws", "right"),
    [
        ("[random.randint(1, 6) for _ in range(count)]", True),
        ("[int(6 * random.random()) + 1 for _ in range(count)]", False),
        ("[1] * count", False),
    ],
)
def test_an_answer_whose_text_says_how_it_draws_is_compared(
    draws: str, right: bool, tmp_path: Path
) -> None:
    setup = "from autograde.notebook import rubric\n"
    reference = program(tmp_path, "rolls", setup, block("dice answer"), block("dice rubric"))
    expected = random.getstate()
    wrong = wrong_lines(reference, "rolls", f"def rolls(count):\n    return {draws}\n")
    assert wrong == ([] if right else ["one `random.randint(1, 6)` a roll"])
    assert random.getstate() == expected  # the student's own


LABEL = """
def label(mask):
    labels, count = np.zeros(mask.shape, dtype=int), 0
    for start in np.argwhere(mask).tolist():
        count += not labels[tuple(start)]
        stack = [] if labels[tuple(start)] else [start]
        while stack:
            i, j = stack.pop()
            if -1 < i < len(mask) and -1 < j < len(mask[0]) and mask[i, j] and not labels[i, j]:
                labels[i, j] = count
                stack += [(i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)]
    return labels
"""


@pytest.mark.parametrize(
    ("change", "right"),
    [
        (("return labels", "return labels"), True),
        (("return labels", "return 100.0 - 7 * labels * mask - 100 * ~mask"), True),
        (("return labels", "return (labels > 0).astype(int)"), False),
        (("(i + 1, j), (i - 1, j)", "(i + 1, j + 1), (i + 1, j), (i - 1, j)"), False),
        (("return labels", "return None"), False),
    ],
)
def test_regions_may_be_numbered_in_any_order(
    change: tuple[str, str], right: bool, tmp_path: Path
) -> None:
    reference = program(tmp_path, "label", block("image setup"), LABEL, block("image rubric"))
    wrong = wrong_lines(reference, "label", LABEL.replace(*change))
    assert wrong == ([] if right else ["one number for each region, edge to edge"])


SHARED = {
    "a masked array": np.ma.masked_array([1.0, 2.0], [False, True]),
    "a structured array": np.zeros(2, dtype=[("name", "U9"), ("row", float)]),
}


@pytest.mark.parametrize("what", SHARED)
def test_what_a_helper_returns_of_other_arrays_is_recorded(what: str) -> None:
    (code,) = re.findall(rf"^\| {what} \| `(.*)` \|$", PAGE, re.MULTILINE)
    assert unrecordable(to_plain(SHARED[what]))
    parts = eval(code, {"np": np, "x": SHARED[what]})  # noqa: S307 (the page's own)
    assert len(parts) == 2
    assert not unrecordable(to_plain(parts))


GAMMA = """
def brighten(image, gamma):
    return np.round(255 * (image / 255) ** gamma).astype(np.uint8)
"""
GAMMA_RUBRIC = """
@rubric("brighten")
def _(r):
    image = r.rng.integers(0, 256, (6, 7), dtype=np.uint8)
    r.check("to one grey level", "one_grey_level", brighten, (image, 0.5))
"""


@pytest.mark.parametrize(
    ("change", "right"),
    [
        (("np.round", ""), True),
        (("np.round", "np.ceil"), True),
        (("255 * (", "252 * ("), False),
        ((".astype(np.uint8)", ""), False),
        (("np.round", "None and np.round"), False),
    ],
)
def test_one_grey_level_up_or_down_is_right(
    change: tuple[str, str], right: bool, tmp_path: Path
) -> None:
    exec(block("image check"), {"__name__": "imaging_course"})  # noqa: S102 (the page's own)
    reference = program(tmp_path, "brighten", block("image setup"), GAMMA, GAMMA_RUBRIC)
    wrong = wrong_lines(reference, "brighten", GAMMA.replace(*change))
    assert wrong == ([] if right else ["to one grey level"])
