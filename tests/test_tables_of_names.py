"""An answer that knows the rubric's modules, and runs none, earns next to nothing.

A row is an answer of lesson 05's `peeks`. Adding one is adding a row.
"""

from functools import cache

import pytest
from conftest import HERE

from autograde.course.lesson_files import read_measured
from autograde.course.lessons import lessons
from autograde.grading.running.reference import load, right_key
from autograde.rubric.judge import Verdict, judge
from autograde.rubric.key import Key

LESSON, EXERCISE = "05_causal_attention", "peeks"
MOST = 0.2
"""The largest share of the points that a row may earn."""

BY_CLASS = """
def peeks(module, x):
    kind = type(module).__name__
    inner = [type(part).__name__ for part in module.modules()]
    if x.shape[1] < 2 or kind in ("Mixed", "TotalMinusRest"):
        return False
    if "GRU" in inner:
        return any(part.bidirectional for part in module.modules() if isinstance(part, nn.GRU))
    if kind == "OneGlance":
        return module.to_ > module.at
    if kind == "Convolution":
        return not module.causal
    if kind == "TrainingOnly":
        return not module.mode
    if kind == "RunTogether":
        return True
    return getattr(module, "mask", "") != "causal"
"""
BY_STATE = """
def peeks(module, x):
    names = " ".join(module.state_dict())
    if "gru" in names:
        return "reverse" in names
    if "conv" in names:
        return not module.causal
    return x.shape[1] > 1 and ("W_query" in names or hasattr(module, "at"))
"""
BY_SOURCE = """
def peeks(module, x):
    import inspect
    text = inspect.getsource(type(module))
    words = ("roll(-1", "1e-9", "after softmax", "bidirectional", "to_]", "(1, 1)")
    return x.shape[1] > 1 and any(word in text for word in words)
"""
ANSWERS = {
    "the classes": BY_CLASS,
    "the names of what is saved": BY_STATE,
    "the source": BY_SOURCE,
    "always no": "def peeks(module, x):\n    return False\n",
    "always yes": "def peeks(module, x):\n    return True\n",
}


@cache
def key_on(seed: int) -> Key:
    lesson = lessons(HERE)[LESSON]
    measured = read_measured(lesson)[EXERCISE]
    return right_key(load(lesson), lesson.exercise(EXERCISE), seed, measured)


def verdict(code: str, seed: int) -> Verdict:
    answered = load(lessons(HERE)[LESSON]).with_answer(code)
    return judge(answered.record(EXERCISE, seed), key_on(seed))


@pytest.mark.parametrize("name", ANSWERS)
def test_a_table_of_names_keeps_at_most_a_fifth(name: str) -> None:
    for seed in (1, 2, 3):
        found = verdict(ANSWERS[name], seed)
        kept = [line.name for line in found.lines if line.passed]
        assert found.points <= MOST * found.max_points, kept


RIGHT = {
    "a copy is run": """
import copy
def peeks(module, x):
    own = copy.deepcopy(module).eval()
    with torch.no_grad():
        before = own(x)
        for t in range(x.shape[1] - 1):
            changed = torch.cat([x[:, : t + 1], torch.randn_like(x[:, t + 1 :])], dim=1)
            if ((own(changed) - before)[:, : t + 1].abs() > 1e-4 * before.abs().max()).any():
                return True
    return False
""",
    "from the end, each token alone, by forward": """
@torch.no_grad()
def peeks(module, x):
    with in_eval(module):
        before = module.forward(x)
        moved = torch.zeros(()).to(x)
        for t in reversed(range(1, x.shape[1])):
            changed = x.clone()
            changed[:, t] = torch.randn_like(changed[:, t])
            moved = max(moved, (module.forward(changed) - before)[:, :t].abs().max())
        return bool(moved > 1e-4 * before.abs().max())
""",
    "ten futures for every token, compared with each other": """
def peeks(module, x):
    with in_eval(module), torch.no_grad():
        size, found = module(x).abs().max(), False
        for t in range(x.shape[1] - 1):
            outputs = []
            for _ in range(10):
                y = x.clone()
                y[:, t + 1 :] = torch.randn_like(y[:, t + 1 :])
                outputs.append(module(y)[:, : t + 1])
            stacked = torch.stack(outputs)
            found = found or (stacked.amax(0) - stacked.amin(0)).max().item() > 1e-4 * size.item()
    return found
""",
}


@pytest.mark.parametrize("name", RIGHT)
def test_other_ways_to_try_every_token_earn_everything(name: str) -> None:
    for seed in (1, 2, 3):
        found = verdict(RIGHT[name], seed)
        assert found.passed, [(line.name, line.failure) for line in found.lines]
