"""Variants as text: what the file beside a lesson says is read whole."""

from dataclasses import replace
from pathlib import Path

import pytest

from autograde.authoring.variants import read_variants
from autograde.course import Lesson

FILE = """\
# %% [markdown]
# # attention_scores
#
# 1. One hint that goes on
#    in a second line.
# 2. Another.

# %% [markdown]
# ## wrong: a_variant
#
# **Misconception.** One belief,
# in two lines.
#
# **Hint.** {hint}

# %%
def attention_scores():
    pass
"""

HINTS = {
    "one line": ("It is so.", "It is so."),
    "two lines": ("It is\n# so.", "It is so."),
    "numbers at the beginning": ("A tenth is\n# 0. The rest\n# 1.", "A tenth is 0. The rest 1."),
    "a line that begins with code": ("Use\n# `out_proj`.", "Use `out_proj`."),
    "another paragraph": ("It is so.\n#\n# Not of the hint.", "It is so."),
}  # fmt: skip


@pytest.mark.parametrize(("written", "read"), HINTS.values(), ids=HINTS)
def test_texts_of_variants_are_read_whole(
    written: str, read: str, lesson: Lesson, tmp_path: Path
) -> None:
    moved = replace(lesson, root=tmp_path)
    (moved.folder / "variants").mkdir(parents=True)
    (moved.folder / "variants" / "attention_scores.py").write_text(FILE.format(hint=written))
    found = read_variants(moved, moved.exercise("attention_scores"))
    assert found.hints == ("One hint that goes on in a second line.", "Another.")
    (wrong,) = found.wrong
    assert (wrong.misconception, wrong.hint) == ("One belief, in two lines.", read)
