"""Variants as text: what the file beside a lesson says is read whole, and edits apply exactly."""

import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import HERE, run
from nightly import nightly

from autograde.authoring.check import CHECKED_SEEDS, judge_variants
from autograde.authoring.mutants import MUTATIONS, mutant
from autograde.authoring.variants import Variants, apply_edit, read_variants
from autograde.course.lessons import CourseError, Exercise, Lesson, lessons

EXERCISE = "attention_scores"
FILE = """\
# attention_scores

1. One hint that goes on
   in a second line.
2. Another.

## right: other_way_round
The product, turned.
```python
def attention_scores(queries, keys):
    ## a heading in code is a comment
    return (keys @ queries.T).T
```

## wrong: not_turned
> one belief,
> in two lines.

{hint}
```diff other_way_round
-    return (keys @ queries.T).T
+    return keys @ queries.T
```

## near miss: always_float32
> every tensor is float32.

Are they?
```diff reference
-    return queries @ keys.T
+    return (queries @ keys.T).float()
```
"""
OTHER_WAY_ROUND = """\
def attention_scores(queries, keys):
    ## a heading in code is a comment
    return (keys @ queries.T).T
"""


def read(text: str, lesson: Lesson, tmp_path: Path) -> Variants:
    """Read a variants file beside a copy of the lesson's text."""
    moved = replace(lesson, root=tmp_path)
    (moved.folder / "variants").mkdir(parents=True)
    (moved.folder / "variants" / f"{EXERCISE}.md").write_text(text)
    moved.text.write_text(lesson.text.read_text())
    return read_variants(moved, moved.exercise(EXERCISE))


HINTS = {
    "one line": ("It is so.", "It is so."),
    "two lines": ("It is\nso.", "It is so."),
    "numbers at the beginning": ("A tenth is\n0. The rest\n1.", "A tenth is 0. The rest 1."),
    "a line that begins with code": ("Use\n`out_proj`.", "Use `out_proj`."),
    "another paragraph": ("It is so.\n\nSee?", "It is so. See?"),
}  # fmt: skip


@pytest.mark.parametrize(("written", "hint"), HINTS.values(), ids=HINTS)
def test_texts_are_read_whole(written: str, hint: str, lesson: Lesson, tmp_path: Path) -> None:
    found = read(FILE.format(hint=written), lesson, tmp_path)
    assert found.hints == ("One hint that goes on in a second line.", "Another.")
    (right,), (wrong, near) = found.right, found.wrong
    assert (wrong.misconception, wrong.hint) == ("one belief, in two lines.", hint)
    assert [v.heading for v in (right, wrong, near)] == ["right", "wrong", "near miss"]


def test_answers_are_whole_and_edits_applied(lesson: Lesson, tmp_path: Path) -> None:
    found = read(FILE.format(hint="Why?"), lesson, tmp_path)
    right, wrong, near = (*found.right, *found.wrong)
    assert right.code == OTHER_WAY_ROUND
    assert wrong.code == OTHER_WAY_ROUND.replace("(keys @ queries.T).T", "keys @ queries.T")
    assert near.code.endswith("    return (queries @ keys.T).float()\n")
    assert near.code.startswith("def attention_scores(queries, keys):\n")
    assert "SOLUTION" not in near.code


SLIPS = {
    "a heading in other words": ("## right:", "## Right:", "found '## Right: other_way_round'"),
    "text after the code": ("```\n\n## near", "```\nMore.\n## near", "found 'More.'"),
    "no code": ("```diff reference", "reference", "found '## near miss: always_float32'"),
    "no answer of that name": (
        "```diff other_way_round", "```diff not_turned",
        "attention_scores.md: not_turned edits not_turned, which is no right answer above it",
    ),
    "lines that are not there": (
        "-    return queries @ keys.T\n", "-    return keys\n",
        "always_float32 cannot edit reference: lines that occur 0 times in the answer:\n"
        "        return keys",
    ),
    "no Python": ("return (keys @ queries.T).T\n```\n\n## wrong", "return (keys @\n```\n\n## wrong",
        "other_way_round is not Python"),
    "another function": ("```python\ndef attention_scores(", "```python\ndef scores(",
        "other_way_round defines no attention_scores"),
    "one name twice": ("near miss: always_float32", "near miss: not_turned",
        "two variants are called not_turned"),
}  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "said"), SLIPS.values(), ids=SLIPS)
def test_a_slip_is_named(right: str, wrong: str, said: str, lesson: Lesson, tmp_path: Path) -> None:
    text = FILE.format(hint="Why?")
    assert text.count(right) == 1
    with pytest.raises(CourseError) as caught:
        read(text.replace(right, wrong), lesson, tmp_path)
    assert said in str(caught.value)


LAYER = """
class Layer:
    def __init__(self):
        return None

    def forward(self, x, y):
        if y is None:
            return x / 2
        return (x, y + 1)
"""


def made(answer: str, slip: str) -> dict[str, Any]:
    """The names that an answer with a slip binds."""
    names: dict[str, Any] = {}
    exec(mutant(answer, MUTATIONS[slip]), names)  # noqa: S102
    return names


def test_a_near_miss_is_made_around_a_function() -> None:
    slipped = made("def double(x, times=2):\n    return times * x", "float32_inside")["double"]
    third = torch.tensor(1 / 3, dtype=torch.float64)
    for result in (slipped(third), slipped(x=third, times=2)):
        assert result.dtype == torch.float64
        assert result == (2 * third).float() != 2 * third
    assert [*inspect.signature(slipped).parameters] == ["x", "times"]


def test_a_near_miss_is_made_around_forward_and_in_each_part_of_a_result() -> None:
    layer, x = made(LAYER, "detached")["Layer"](), torch.ones(2, requires_grad=True)
    assert not layer.forward(x, None).requires_grad
    assert [each.requires_grad for each in layer.forward(x, x)] == [False, False]


def test_an_argument_is_changed_after_the_result_is_there() -> None:
    x = torch.ones(2)
    assert torch.equal(made("def same(x):\n    return x", "changed_in_place")["same"](x), x + 1)
    assert not x.any()


def test_a_near_miss_that_is_made_has_its_own_belief(lesson: Lesson, tmp_path: Path) -> None:
    text = FILE.format(hint="Why?") + "\n## near misses: detached, squeezed\n"
    *_, detached, squeezed = read(text, lesson, tmp_path).wrong
    assert [each.heading for each in (detached, squeezed)] == ["near miss", "near miss"]
    assert detached.misconception != squeezed.misconception
    assert squeezed.code.endswith("\nattention_scores = with_slip(attention_scores)\n")


def test_an_answer_that_no_slip_fits_is_refused() -> None:
    with pytest.raises(ValueError, match="defines no function and no class"):
        mutant("x = 1", MUTATIONS["detached"])


ANSWER = "a  \nb\n    \n  c\nb\n  d\n"  # spaces at the end of a line do not count
EDITS = {
    "a line is changed": ("-a\n+x", "x\nb\n\n  c\nb\n  d\n"),
    "a line is added after another": (" a\n+x", "a\nx\nb\n\n  c\nb\n  d\n"),
    "what repeats is told apart by its neighbour": ("-b\n   d", "a\nb\n\n  c\n  d\n"),
    "two places": ("-a\n@@\n-  d\n+  e", "b\n\n  c\nb\n  e\n"),
    "an empty line stays": (" a\n-b\n\n-  c", "a\n\nb\n  d\n"),
}


@pytest.mark.parametrize(("edit", "result"), EDITS.values(), ids=EDITS)
def test_an_edit_applies(edit: str, result: str) -> None:
    assert apply_edit(ANSWER, edit) == result


BAD_EDITS = {
    "-b\n+x": "lines that occur 2 times in the answer:\n    b",
    "-e": "lines that occur 0 times in the answer:\n    e",
    "+x": "lines that occur 7 times in the answer:",
}


@pytest.mark.parametrize(("edit", "said"), BAD_EDITS.items())
def test_an_edit_that_does_not_fit_is_refused(edit: str, said: str) -> None:
    with pytest.raises(ValueError, match="^" + said):
        apply_edit(ANSWER, edit)


def test_a_variant_is_printed_in_full() -> None:
    result = run(HERE, "variant", "causal_mask", "one_too_many")
    assert result.exit_code == 0
    assert result.output.startswith("def causal_mask(")


MISSPELT = {
    ("causal_mas", "one_too_many"): "there is no exercise 'causal_mas'; there are: ",
    ("causal_mask", "one_to_many"): "there is no variant 'one_to_many'; there are: ",
}


@pytest.mark.parametrize(("names", "said"), MISSPELT.items())
def test_a_misspelt_name_is_answered_with_the_others(names: tuple[str, str], said: str) -> None:
    result = run(HERE, "variant", *names)
    assert result.exit_code == 1
    assert said in result.output


@nightly
@pytest.mark.parametrize(
    ("lesson", "exercise"),
    [
        pytest.param(lesson, exercise, id=f"{lesson.name}-{exercise.name}")
        for lesson in lessons(HERE).values()
        for exercise in lesson.exercises
    ],
)
def test_every_variant_is_judged_as_it_should_be_on_other_seeds(
    lesson: Lesson, exercise: Exercise
) -> None:
    """What an answer earns depends on the inputs drawn; tests/test_lesson.py has the one before."""
    assert judge_variants(lesson, exercise, seeds=CHECKED_SEEDS[2:]).faults == ()
