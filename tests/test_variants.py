"""Variants as text: what the file beside a lesson says is read whole, and edits apply exactly."""

import ast
from dataclasses import replace
from pathlib import Path

import pytest
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


CLASS = """\
class Layer:
    def __init__(self):
        return None

    def forward(self, x, y):
        def half(z):
            return z / 2
        if y is None:
            return half(x)
        return (x, y + 1)
"""
MADE = {
    "detached": ("half(x).detach()", "x.detach(), (y + 1).detach()"),
    "float32_inside": (
        "half(x).float().to(x.dtype)", "x.float().to(x.dtype), (y + 1).float().to(x.dtype)",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "returned"), MADE.items())
def test_a_near_miss_is_made_at_each_return_of_forward(
    name: str, returned: tuple[str, str]
) -> None:
    code = CLASS
    for right, slip in zip(("half(x)\n", "(x, y + 1)\n"), returned, strict=True):
        code = code.replace(f"return {right}", f"return {slip}\n")
    assert ast.dump(ast.parse(mutant(CLASS, MUTATIONS[name]))) == ast.dump(ast.parse(code))


def test_a_near_miss_that_is_made_has_its_own_belief(lesson: Lesson, tmp_path: Path) -> None:
    text = FILE.format(hint="Why?") + "\n## near misses: detached, squeezed\n"
    *_, detached, squeezed = read(text, lesson, tmp_path).wrong
    assert [each.heading for each in (detached, squeezed)] == ["near miss", "near miss"]
    assert detached.misconception != squeezed.misconception
    assert squeezed.code.endswith("    return (queries @ keys.T).squeeze()\n")


def test_the_names_of_an_answer_stay_its_own() -> None:
    code = mutant("def f(x):\n    given = 2 * x\n    return given", MUTATIONS["float32_inside"])
    assert code == "def f(x):\n    given = 2 * x\n    return given.float().to(x.dtype)\n"


@pytest.mark.parametrize(
    ("returned", "made"),
    [("x[1:], *x", "(x[1:].detach(), *x)"), ("()", "()"), ("x,", "(x.detach(),)")],
)
def test_each_value_of_a_tuple_gets_the_slip(returned: str, made: str) -> None:
    code = mutant(f"def f(x):\n    return {returned}", MUTATIONS["detached"])
    assert ast.dump(ast.parse(code)) == ast.dump(ast.parse(f"def f(x):\n    return {made}"))


NOT_MADE = {
    "class Layer:\n    pass": "the answer ends with no function and with no class that has `forw",
    "def f():\n    return 1": "f takes no argument",
    "x = 1": "the answer ends with no function",
}


@pytest.mark.parametrize(("answer", "said"), NOT_MADE.items())
def test_an_answer_that_no_slip_fits_is_refused(answer: str, said: str) -> None:
    with pytest.raises(ValueError, match="^" + said):
        mutant(answer, MUTATIONS["detached"])


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
