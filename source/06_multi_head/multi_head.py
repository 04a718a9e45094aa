# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---
# %% [markdown]
# # Several heads: side by side, then cut from one matrix
#
# Your layer from lesson 05 gives each word one row of weights, so each word receives one mixture of what came before. In this lesson you run several
# such layers, called **heads**, next to each other. Then you build one layer that makes the queries, keys and values of all heads with three
# matrices, and check with numbers that it gives the same output. You also repair somebody else's layer. At the end your class runs inside the
# course's model.
#
# **You will be able to**
# - say what several heads can do that one wide head cannot, and show it;
# - split a matrix into heads and merge them again, with the right transpose;
# - write multi-head attention, and find faults in it that raise no error;
# - measure what each head of a trained model looks at, and what is lost without it.
#
# **It builds on** lesson 05: batches, the causal mask as a buffer, dropout on weights. A `CausalAttention` is given below.
#
# | part | minutes, estimated |
# |---|---|
# | 1 One row, one mixture | 10 |
# | 2 Heads side by side | 10 |
# | 3 One matrix, split into heads | 18 |
# | 4 The whole layer | 20 |
# | 5 Somebody else's layer | 15 |
# | 6 The same numbers, twice | 10 |
# | 7 What heads are good for | 12 |
# | 8 What goes wrong in practice, summary | 5 |
# | total | 100 |
#
# *Run the cells from top to bottom, fill in the exercises, and ask for `hint`, `why` and `progress()` when you need them.* As before, float64 in
# gives float64 out (a layer computes in float64 after `.double()`); let gradients through and don't modify the arguments. `b` is the number of
# sentences, `n` the number of tokens in each. `d_out` has two meanings, and each exercise says which one it uses.
#
# *Using Colab or another hosted service?* Get the file `attention_notebooks-….whl` from where you got this lesson, put
# it beside the notebook, and run `%pip install attention_notebooks-*.whl` in a new cell above the others.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
import os

import matplotlib.pyplot as plt
import torch
from torch import nn

from attention_course import (
    answers, begin, beside, card, case, chart, course_model, encode, explore, heatmap, hint, jobs, model_card,
    next_words, panels, progress, rubric, show, stories, table, why, without_head,
)

# "cuda" runs the lesson on a GPU
device = torch.device(os.environ.get("AUTOGRADE_DEVICE", "cpu"))

tokens = ["Your", "journey", "starts", "with", "one", "step"]
inputs = torch.tensor(
    [
        [0.43, 0.15, 0.89],
        [0.55, 0.87, 0.66],
        [0.57, 0.85, 0.64],
        [0.22, 0.58, 0.33],
        [0.77, 0.25, 0.10],
        [0.05, 0.80, 0.55],
    ],
    device=device,
)  # (6, 3): one row for each token
batch = torch.stack([inputs, inputs.flip(0)])  # (2, 6, 3): the sentence, and the sentence backwards


class CausalAttention(nn.Module):
    """Lesson 05: one head, (b, n, d_in) -> (b, n, d_out)."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        future = torch.ones(context_length, context_length, dtype=torch.bool).triu(diagonal=1)
        self.register_buffer("mask", future)  # True: hidden

    def weights(self, x):
        """The attention weights, (b, n, n), before dropout."""
        if x.ndim != 3 or x.shape[1] > len(self.mask):
            raise ValueError(f"x must be (b, n, d_in) with n up to {len(self.mask)}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys = self.W_query(x), self.W_key(x)  # (b, n, d_out)
        scores = queries @ keys.transpose(1, 2) / math.sqrt(keys.shape[-1])  # (b, n, n)
        return scores.masked_fill(self.mask[:n, :n], -math.inf).softmax(dim=-1)

    def forward(self, x):
        return self.dropout(self.weights(x)) @ self.W_value(x)


# %% [markdown]
# ## 1 One row, one mixture
#
# Here are two models of the course's language. They have the same layers, equally many trained numbers, and the same training, from different random
# starts (more on that below). One has one head in each layer, the other has four. Both read a story and a question.

# %%
one_head, four_heads = course_model(1), course_model(4)
question = begin("Anna has a ball . Tom has two books . he reads them upstairs . she's outside . where is Anna ? she's")
for name, model in {"1 head": one_head, "4 heads": four_heads}.items():
    best = list(next_words(model, question).items())[:3]
    size = sum(parameter.numel() for parameter in model.parameters())
    print(f"{name:>7}, {size} numbers:", ", ".join(f"{word} {chance:.2f}" for word, chance in best))

# %%
told = stories(100, seed=5)
results = {name: answers(model, told) for name, model in {"1 head": one_head, "4 heads": four_heads}.items()}
for kind in ("who", "what", "where"):
    print(f"right answers to “{kind}”:", ", ".join(f"{name} {shares[kind]:.0%}" for name, shares in results.items()))
two_people = [story for story in told if len(story.notes.people) == 2]
results = {name: answers(model, two_people)["where"] for name, model in {"1 head": one_head, "4 heads": four_heads}.items()}
print("right answers to “where”, two people in the story:", ", ".join(f"{name} {share:.0%}" for name, share in results.items()))

# %% [markdown]
# One head in each layer answers *who* and *what*. But with two people in a story it answers *where* no better than by guessing among the four places.
# Is one head to blame? These are two trained models, and luck plays a part in training. Here is how the same training ended from several random
# starts, those two among them (from the model's card, which `model_card()` shows; its questions come from 1,500 stories, not 100, so the model with
# one head from start 0 has 39% there and 35% above). The two models above were not chosen in the same way: the one with one head is start 0, the one
# with four heads is start 1, the first that learned to answer all questions.

# %%
for heads, runs in card()["seeds"].items():
    print(f"{heads}: right answers to “where” from start 0, 1, …:", ", ".join(f"{run['answers']['where']:.0%}" for run in runs))

# %% [markdown]
# So 35% against 100% is the luck of two starts. One head *can* learn it (99% from start 2), and four heads can fail (68% from start 0). Eight runs are
# too few to say which goes well more often. What, then, can several heads do that one cannot?
#
# Suppose each word needs **two** things: the vector of the word before it, and the vector of the one before that. One row of
# weights can look at both, half and half. What it passes on is their average.

# %% jupyter={"source_hidden": true}
# draws the figure
before = torch.eye(6, device=device)[[0, 0, 1, 2, 3, 4]]  # (6, 6): all weight on the word before
two_before = torch.eye(6, device=device)[[0, 0, 0, 1, 2, 3]]  # (6, 6): on the one before that
half_half = (before + two_before) / 2
future = torch.ones(6, 6, device=device).triu(diagonal=1) == 1
titles = {"one head has to share": half_half, "two heads: the word before": before, "and the one before that": two_before}
maps = [
    heatmap(weights, tokens, tokens, title=title, hidden=future, limits=(0, 1), bar=False)
    for title, weights in titles.items()
]
show(
    panels(*maps, size=(11.5, 3.9)),
    "Three heatmaps of weights. With one head each row from the third on has 0.5 on the word before and 0.5 on the one before that; the first two rows have 1 on Your. "
    "With two heads the first has weight 1 on the word before, the second weight 1 on the one before that.",
)

# %% [markdown]
# **Predict, then run.** Swap the first two words: *journey Your starts*. *starts* still takes half of each. The values are the inputs themselves.
# One number in the context vector of *starts* changes most. By how much, with one head? And with two heads, one for the word before and one
# for the word before that?

# %%
my_guess = None  # two numbers: (one head, two heads)

# %%
swapped = inputs[[1, 0, 2, 3, 4, 5]]
change = {name: (weights @ swapped - weights @ inputs)[2].abs().max().item() for name, weights in
          {"half and half": half_half, "before": before, "two before": two_before, "0.7 and 0.3": 0.7 * before + 0.3 * two_before}.items()}
beside(my_guess, (round(change["half and half"], 2), round(max(change["before"], change["two before"]), 2)))

# %% [markdown]
# Half and half cannot tell *Your journey* from *journey Your*. Unequal shares can, but they do not pass on both vectors either: many
# different pairs of vectors have the same mixture. (If only a few vectors can occur, later layers may work out which two were mixed. The head itself
# passes on one mixture.) And a *wider* head does not help: its values are the
# inputs times a wider matrix, and all of them are mixed with the same row of weights. So mixing the wide values gives no more than widening
# the mixture.

# %%
print(f"0.7 and 0.3: the swap moves “starts” by {change['0.7 and 0.3']:.3f}")
shift = torch.tensor([1.0, -2.0, 0.5], device=device)
other_pair = torch.stack([inputs[0] - 0.7 * shift, inputs[1] + 0.3 * shift])  # two other words
mixture, same = 0.3 * inputs[0] + 0.7 * inputs[1], 0.3 * other_pair[0] + 0.7 * other_pair[1]
print(f"two other words, same mixture: {(mixture - same).abs().max().item():.4f} apart")
wide = torch.randn(3, 12, generator=torch.Generator().manual_seed(0)).to(device)  # values of 12 numbers instead of 3
print(f"widen the mixture, or mix the wide values: {(half_half @ (inputs @ wide) - (half_half @ inputs) @ wide).abs().max().item():.4f} apart")

# %% [markdown]
# With such values one head **cannot pass on both unmixed**. (It can where the two vectors lie in different directions: a person's thing in some
# numbers, her place in others. The mixture then still holds both, each in numbers of its own.) Two rows of weights for each word can, and that is
# what several heads are for. Part 7 tries it by training.
#
# ## 2 Heads side by side
#
# The plain way: several `CausalAttention` layers read the same x, each with three matrices of its own. Their outputs are **concatenated**:
# put next to each other, head 0 first.
#
# ```
#                ┌─ head 0 ─►  (b, n, d_out) ─┐
# x (b, n, d_in) ┼─ head 1 ─►  (b, n, d_out) ─┼─►  (b, n, num_heads * d_out)
#                └─ head 2 ─►  (b, n, d_out) ─┘
# ```
#
# ### Exercise: `MultiHeadAttentionWrapper` (3 points)
#
# Keep the heads in `self.heads`, an `nn.ModuleList` of `CausalAttention`. Each head gets the constructor's arguments except `num_heads`, so it
# also drops weights of its own. Here `d_out` is the size of **one head**. `forward` returns the heads' outputs side by side. For more tokens
# than `context_length` the heads raise a `ValueError`; you need not check.

# %% nbgrader={"grade": false, "grade_id": "MultiHeadAttentionWrapper", "locked": false, "schema_version": 3, "solution": true, "task": false}
class MultiHeadAttentionWrapper(nn.Module):
    """Heads side by side: (b, n, d_in) -> (b, n, num_heads * d_out)."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        ### BEGIN SOLUTION
        self.heads = nn.ModuleList(
            [CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)]
        )
        ### END SOLUTION

    def forward(self, x):
        ### BEGIN SOLUTION
        return torch.cat([head(x) for head in self.heads], dim=-1)
        ### END SOLUTION

# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_MultiHeadAttentionWrapper", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("MultiHeadAttentionWrapper")  # the contract as a checklist; open this cell to read it
def _(r):
    layer = r.layer(MultiHeadAttentionWrapper, d_in=4, d_out=3, context_length=8, dropout=0.0, num_heads=2, qkv_bias=False)
    layer.linear("heads.*.W_query heads.*.W_key heads.*.W_value", "d_in -> d_out", bias="qkv_bias")
    layer.made_of("heads is an nn.ModuleList")
    layer.outputs("the heads' outputs side by side", r.normal(1, 2, 4), r.normal(2, 8, 4), r.normal(2, 8, 4), r.normal(3, 1, 4))
    layer.outputs("as many heads as sentences, tokens and numbers; with a bias", r.normal(4, 4, 16), d_in=16, d_out=4, num_heads=4, qkv_bias=True)
    layer.drops_weights("in training every head drops weights of its own, in eval() none", p=0.3)
    layer.refuses("raises ValueError for more tokens than context_length", r.normal(2, 9, 4))
    layer.conventions(r.normal(3, 7, 4))

# %% tags=["raises-exception"]
torch.manual_seed(123)
wrapper = MultiHeadAttentionWrapper(d_in=3, d_out=2, context_length=6, dropout=0.0, num_heads=2).to(device)
print("batch", tuple(batch.shape), "-> context vectors", tuple(wrapper(batch).shape))
table(wrapper(batch)[0], rows=tokens, columns=["head 0: 0", "head 0: 1", "head 1: 0", "head 1: 1"])

# %% [markdown]
# ## 3 One matrix, split into heads
#
# Two heads mean six small products where three large ones would do, and a loop in Python. So stack the matrices. `nn.Linear`
# has one row of its weight for each number that it returns. Give rows 0 and 1 to head 0, rows 2 and 3 to head 1. Then one product makes
# the queries of both heads, side by side.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
with torch.no_grad():
    stacked = torch.cat([head.W_query.weight for head in wrapper.heads])  # (4, 3): rows 0, 1 head 0; rows 2, 3 head 1
    both_queries = inputs @ stacked.T  # (6, 4)
row_names = ["head 0, row 0", "head 0, row 1", "head 1, row 2", "head 1, row 3"]
numbers = ["0", "1", "2", "3"]
maps = [
    heatmap(stacked, row_names, numbers[:3], title="one W_query", row_name="number out", column_name="number in",
            limits=(-1, 1), bar=False),
    heatmap(both_queries, tokens, numbers, title="queries", row_name="token", column_name="feature", limits=(-1, 1), bar=False),
]
for h in range(2):
    maps.append(heatmap(both_queries[:, 2 * h : 2 * h + 2], tokens, numbers[2 * h : 2 * h + 2], title=f"head {h}",
                        row_name="", column_name="feature", limits=(-1, 1), bar=False))


def cut_chart(maps):
    figure, axes = plt.subplots(1, 4, figsize=(11.5, 4.1), layout="constrained", width_ratios=(3, 4, 2, 2))
    for ax, one in zip(axes, maps):
        one.on(ax)
    axes[0].axhline(2, color="black", linewidth=2.5)
    axes[1].axvline(2, color="black", linewidth=2.5)
    return figure


show(
    chart(cut_chart, maps),
    "Four heatmaps. A matrix of 4 rows and 3 columns, a line between rows 0, 1 of head 0 and "
    "rows 2, 3 of head 1; the 6 by 4 queries it makes, a line between features 0, 1 and 2, 3; and the two halves alone.",
)

# %% [markdown]
# **Predict, then run.** Are features 2 and 3 of the large product the same numbers as the queries that head 1 of your wrapper makes?

# %%
my_guess = None  # "yes" or "no"

# %% tags=["raises-exception"]
apart = (both_queries[:, 2:] - wrapper.heads[1].W_query(inputs)).abs().max().item()
beside(my_guess, "yes" if apart < 1e-6 else "no")

# %% [markdown]
# So one large query matrix *is* several heads, as long as you split its result: each block of features needs scores and a softmax of its own.
# For that, the heads become a dimension next to the batch. There `@` multiplies each head's matrix separately:
#
# ```
# (b, n, d)   ──view──►   (b, n, heads, d / heads)   ──transpose 1, 2──►   (b, heads, n, d / heads)
#
# token 0:  0 1 2 3   ──►   token 0:  0 1 | 2 3        ──►   head 0:  token 0:  0 1      head 1:  token 0:  2 3
# token 1:  4 5 6 7         token 1:  4 5 | 6 7                       token 1:  4 5               token 1:  6 7
# ```
#
# ### Exercise: `split_heads` (2 points)
#
# Head h gets features `h * d / num_heads` up to, but not including, `(h + 1) * d / num_heads` of every token. If `num_heads` does not divide
# `d`, raise a `ValueError`; a good message names both numbers. You may return a view of x.

# %% nbgrader={"grade": false, "grade_id": "split_heads", "locked": false, "schema_version": 3, "solution": true, "task": false}
def split_heads(x, num_heads):
    """The features cut into heads: (b, n, d) -> (b, num_heads, n, d // num_heads)."""
    ### BEGIN SOLUTION
    if x.shape[-1] % num_heads != 0:
        raise ValueError(f"d must be divisible by num_heads, got d = {x.shape[-1]} and num_heads = {num_heads}")
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)
    ### END SOLUTION

# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_split_heads", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("split_heads")  # the contract as a checklist; open this cell to read it
def _(r):
    r.idea.each("head h gets its share of every token's features", split_heads, (r.normal(1, 2, 4), 2), (r.normal(2, 5, 12), 3), (r.normal(2, 5, 12), 3))
    r.each("one head, heads of one number, as many heads as tokens, one token alone", split_heads, (r.normal(3, 4, 5), 1), (r.normal(2, 7, 5), 5), (r.normal(4, 4, 12), 4), (r.normal(3, 1, 8), 2))
    r.refuses("raises ValueError when num_heads does not divide d", split_heads, (r.normal(2, 6, 10), 3), (r.normal(2, 4, 10), 4), (r.normal(2, 3, 4), 8))
    r.conventions(split_heads, r.normal(2, 3, 6, dtype=torch.float64), 3)

# %% [markdown]
# Why the transpose? `x.view(b, num_heads, n, d // num_heads)` has the right shape in one step. Below, every entry
# says what it is: 3.10 is token 3, feature 1.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
labelled = torch.arange(6.0)[:, None] + torch.arange(4.0) / 10  # (6, 4): 3.10 is token 3, feature 1
cut = split_heads(labelled[None], 2)[0]  # (2, 6, 2)
scrambled = labelled.view(2, 6, 2)
parts = {"x": labelled, "yours:\nhead 0": cut[0], "yours:\nhead 1": cut[1],
         "view alone:\nhead 0": scrambled[0], "view alone:\nhead 1": scrambled[1]}
maps = [
    heatmap(part, tokens, None, title=title, row_name="token" if title == "x" else "", column_name="feature",
            limits=(0, 5.3), bar=False)
    for title, part in parts.items()
]
show(
    panels(*maps, size=(11.5, 4.4)),
    "Five heatmaps of entries named after token and feature. Yours: head 0 holds features 0 and 1 of each token in its own row, "
    "head 1 features 2 and 3. With view alone head 0 holds tokens 0 to 2 and head 1 tokens 3 to 5, each on two rows.",
)

# %% [markdown]
# With `view` alone, the row of *Your* in head 1 holds features of *with*, the fourth word. The mask cannot help: it hides
# keys by their place. Change *with*, and see whose context vector moves.

# %% tags=["raises-exception"]
def who_notices(split):
    """The words whose context vector changes when *with* does; queries, keys and values are x itself."""
    def attend(x):  # (1, n, d) -> (1, 2, n, d / 2)
        heads = split(x)
        scores = (heads @ heads.mT).masked_fill(future, -math.inf)
        return scores.softmax(dim=-1) @ heads

    torch.manual_seed(123)
    x = torch.randn(1, 6, 4).to(device)
    changed = x.clone()
    changed[:, 3] += 1  # with
    moved = (attend(changed) - attend(x)).abs().amax(dim=(0, 1, 3)) > 1e-6  # (6,)
    return [token for token, notices in zip(tokens, moved.tolist()) if notices]


print("split_heads:", who_notices(lambda x: split_heads(x, 2)))
print("view alone: ", who_notices(lambda x: x.view(1, 2, 6, 2)))

# %% [markdown]
# Split correctly, *with* reaches itself and the words after it. With `view` alone it reaches every word, including the first.
#
# ### Exercise: `merge_heads` (2 points)
#
# The way back: `(b, num_heads, n, d_head)` to `(b, n, num_heads * d_head)`, so that `merge_heads(split_heads(x, num_heads))` is x again.
# `view` can split any dimension, but after a transpose it cannot join the heads again. A transposed tensor is not contiguous: its numbers do not lie in memory in the
# order in which you read them. `reshape` and `flatten` copy where they have to.

# %% nbgrader={"grade": false, "grade_id": "merge_heads", "locked": false, "schema_version": 3, "solution": true, "task": false}
def merge_heads(x):
    """The heads side by side again: (b, num_heads, n, d_head) -> (b, n, num_heads * d_head)."""
    ### BEGIN SOLUTION
    return x.transpose(1, 2).flatten(2)
    ### END SOLUTION

# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_merge_heads", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("merge_heads")  # the contract as a checklist; open this cell to read it
def _(r):
    r.idea.each("the inverse of split_heads", merge_heads, (r.normal(1, 2, 2, 2),), (r.normal(2, 3, 5, 4),), (r.normal(2, 3, 5, 4),))
    r.each("one head, heads of one number, as many heads as tokens, one token alone", merge_heads, (r.normal(3, 1, 4, 5),), (r.normal(2, 7, 5, 1),), (r.normal(4, 4, 4, 4),), (r.normal(3, 2, 1, 4),))
    r.conventions(merge_heads, r.normal(2, 3, 4, 2, dtype=torch.float64))

# %% tags=["raises-exception"]
torch.manual_seed(123)
x = torch.randn(2, 5, 12).to(device)
for num_heads in (1, 2, 3, 4, 6, 12):
    heads = split_heads(x, num_heads)
    print(f"{num_heads:>2} heads: {tuple(heads.shape)}, merged again it is x: {torch.equal(merge_heads(heads), x)}")

# %% [markdown]
# There and back proves little by itself: two mistakes can cancel. The rubrics look at each way alone.
#
# ## 4 The whole layer
#
# ```
# x (b, n, d_in)
#   queries, keys, values    three layers, then split_heads     (b, heads, n, d_head)      d_head = d_out / num_heads
#   scores                   queries @ keys.transpose(2, 3)     (b, heads, n, n)
#   weights                  mask and scale, softmax, dropout   (b, heads, n, n)
#   context vectors          weights @ values, merge_heads      (b, n, d_out)
#   output                   out_proj                           (b, n, d_out)
# ```
#
# `out_proj`, a linear layer at the end, is new in your class; in lesson 05 you used the model's own. Without it, the first
# features of the output would always come from head 0, and the next ones from head 1. `out_proj` mixes what the heads have found.
#
# **Predict, then run.** `d_out` is 12, and there are 3 heads. The scores are divided by the square root of a number. Which one?

# %%
my_guess = None  # a number

# %% tags=["raises-exception"]
torch.manual_seed(0)
queries, keys = (split_heads(torch.randn(1, 2000, 12), 3) for _ in range(2))  # every number has a spread of 1
spread = (queries @ keys.mT).std().item()
beside(my_guess, f"{spread**2:.1f}: the spread of the scores is {spread:.2f}")

# %% [markdown]
# A score is a dot product of as many numbers as **one head** has, and its spread grows with the root of that number (lesson 01).
#
# ### Exercise: `MultiHeadAttention` (8 points)
#
# - `W_query`, `W_key`, `W_value`: `nn.Linear` from `d_in` to `d_out`, with a bias only if `qkv_bias`. Here `d_out` is the size of
#   **all heads together**.
# - `out_proj`: `nn.Linear` from `d_out` to `d_out`, with a bias.
# - `num_heads` is kept as an attribute. `mask` is a buffer in `state_dict()`, as in `CausalAttention`. The layer works wherever `.to()` moves it.
# - `dropout` is an `nn.Dropout`. In training each head drops weights of its own, with the probability that `dropout.p` holds when `forward` is called.
#   In `eval()` nothing is dropped.
# - `forward`: `(b, n, d_in)` to `(b, n, d_out)` for n from 1 to `context_length`. A token sees itself and the tokens before it and nothing else,
#   however large the scores are. A token of zeros is a token like any other. Heads are cut as `split_heads` cuts them.
# - A `ValueError` when `num_heads` does not divide `d_out` (in `__init__`), and for longer input or input that is not 3-D (in `forward`).

# %% nbgrader={"grade": false, "grade_id": "MultiHeadAttention", "locked": false, "schema_version": 3, "solution": true, "task": false}
class MultiHeadAttention(nn.Module):
    """Causal attention with several heads, (b, n, d_in) -> (b, n, d_out)."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        ### BEGIN SOLUTION
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())
        ### END SOLUTION

    def forward(self, x):
        ### BEGIN SOLUTION
        if x.ndim != 3:
            raise ValueError(f"x must be (b, n, d_in), got {tuple(x.shape)}")
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        queries = split_heads(self.W_query(x), self.num_heads)  # (b, heads, n, d_head)
        keys = split_heads(self.W_key(x), self.num_heads)
        values = split_heads(self.W_value(x), self.num_heads)
        scores = queries @ keys.transpose(2, 3)  # (b, heads, n, n)
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = torch.softmax(scores / math.sqrt(keys.shape[-1]), dim=-1)
        context = merge_heads(self.dropout(weights) @ values)  # (b, n, d_out)
        return self.out_proj(context)
        ### END SOLUTION

# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_MultiHeadAttention", "locked": true, "points": 8, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("MultiHeadAttention")  # the contract as a checklist; open this cell to read it
def _(r):
    layer = r.layer(MultiHeadAttention, d_in=4, d_out=6, context_length=8, dropout=0.0, num_heads=2, qkv_bias=False)
    layer.linear("W_query W_key W_value", "d_in -> d_out", bias="qkv_bias")
    layer.linear("out_proj", "d_out -> d_out", bias="always")
    layer.outputs("two heads, sentences of any length, a token of zeros among them", r.normal(1, 2, 4), r.normal(2, 8, 4), r.normal(2, 8, 4), r.normal(3, 1, 4), r.normal(3, 7, 4) * (r.uniform(3, 7, 1) > 0))
    layer.outputs("as many heads as sentences, tokens and numbers in a head; with a bias", r.normal(4, 4, 16), d_in=16, d_out=16, num_heads=4, qkv_bias=True)
    layer.first_token("the first token sees itself alone, however large the scores", 1e6 * r.normal(20, 6, 4), num_heads=1)
    layer.drops_weights("in training each head drops its own weights, in eval() none", p=0.4, num_heads=4)
    layer.rereads_dropout("dropout.p is read at each call", r.normal(3, 7, 4))
    layer.keeps_mask("keeps num_heads, and mask as a buffer: saved, moved by .to(device) with all else that forward uses", r.normal(2, 5, 4), num_heads=2)
    r.refuses("raises ValueError when num_heads does not divide d_out", MultiHeadAttention, (5, 10, 8, 0.0, 4), (5, 4, 8, 0.0, 8))
    layer.refuses("raises ValueError for too many tokens, and for input that is not 3-D", r.normal(2, 9, 4), r.normal(5, 4), r.normal(1, 2, 5, 4))
    layer.conventions(r.normal(3, 7, 4))

# %% [markdown]
# ## 5 Somebody else's layer
#
# ### Exercise: `fix_me` (3 points)
#
# The class below makes queries, keys and values with **one** layer, `qkv`. Of its `3 * d_out` numbers
# the first third are the queries, then come the keys, then the values. It returns two things: the output, and the weights
# before dropout, `(b, num_heads, n, n)`. They are only to be looked at, so you may detach them. Otherwise it should give
# what `MultiHeadAttention` gives, keep `num_heads` and `mask` as it does, and refuse what it refuses.
#
# It runs, the shapes are right, and it has **five faults**. None of them raises an error. Let the rubric
# guide you: which of its lines fail with one head, which only with several, which only for short sentences? Your class is graded by what it
# does, not by how little you change.

# %% nbgrader={"grade": false, "grade_id": "fix_me", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["raises-exception"]
### BEGIN SOLUTION
class RepairedMultiHeadAttention(nn.Module):
    """Several heads from one fused layer: (b, n, d_in) -> ((b, n, d_out), (b, num_heads, n, n))."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        future = torch.ones(context_length, context_length, dtype=torch.bool).triu(diagonal=1)
        self.register_buffer("mask", future)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights
### END SOLUTION
### BEGIN GIVEN
# class RepairedMultiHeadAttention(nn.Module):
#     """Several heads from one fused layer: (b, n, d_in) -> ((b, n, d_out), (b, num_heads, n, n))."""
#
#     def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
#         super().__init__()
#         if d_out % num_heads != 0:
#             raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
#         self.num_heads = num_heads
#         self.context_length = context_length
#         self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
#         self.out_proj = nn.Linear(d_out, d_out)
#         self.dropout = nn.Dropout(dropout)
#         future = torch.ones(context_length, context_length, dtype=torch.bool).triu(diagonal=1)
#         self.register_buffer("mask", future)
#
#     def forward(self, x):
#         if x.ndim != 3 or x.shape[1] > self.context_length:
#             raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
#         n = x.shape[1]
#         queries, keys, values = (  # (b, heads, n, d_head) each
#             part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
#         )
#         hidden = self.mask[-n:, :n]
#         scores = queries @ keys.transpose(2, 3) / math.sqrt(self.out_proj.in_features)
#         weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=2)
#         dropped = nn.functional.dropout(weights, self.dropout.p)
#         context = (dropped @ values).reshape(*x.shape[:2], -1)  # (b, n, d_out)
#         return self.out_proj(context), weights
### END GIVEN

# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_fix_me", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("fix_me")  # the contract as a checklist; open this cell to read it
def _(r):
    layer = r.layer(RepairedMultiHeadAttention, d_in=4, d_out=6, context_length=8, dropout=0.0, num_heads=2, qkv_bias=False)
    layer.linear("qkv", "d_in -> 3*d_out", bias="qkv_bias")
    layer.linear("out_proj", "d_out -> d_out", bias="always")
    layer.outputs("one head, a sentence as long as the context", r.normal(2, 8, 4), num_heads=1)
    layer.outputs("one head, shorter sentences, a token of zeros among them", r.normal(1, 2, 4), r.normal(2, 7, 4), r.normal(3, 1, 4), r.normal(3, 7, 4) * (r.uniform(3, 7, 1) > 0), num_heads=1)
    layer.weights_before_dropout("two heads: the weights, before dropout", r.normal(2, 8, 4), dropout=0.5)
    layer.idea.outputs("as many heads as sentences, tokens and numbers in a head; with a bias", r.normal(4, 4, 16), d_in=16, d_out=16, num_heads=4, qkv_bias=True)
    layer.first_token("the first token sees itself alone, however large the scores", 1e6 * r.normal(20, 6, 4), num_heads=1)
    layer.drops_weights("in training each head drops its own weights, in eval() none", p=0.4, num_heads=4)
    layer.keeps_mask("keeps num_heads, and mask as a buffer: saved, moved by .to(device) with all else that forward uses", r.normal(2, 5, 4), num_heads=2)
    r.refuses("raises ValueError when num_heads does not divide d_out", RepairedMultiHeadAttention, (5, 10, 8, 0.0, 4), (5, 4, 8, 0.0, 8))
    layer.refuses("raises ValueError for too many tokens, and for input that is not 3-D", r.normal(2, 9, 4), r.normal(5, 4))
    layer.conventions(r.normal(3, 7, 4))

# %% [markdown]
# Three of the five faults change the second result, the weights. Of these three, two break a rule that can be checked without knowing the right
# weights: every row adds up to 1, and nothing lies above the diagonal. The next cell checks both rules. Run these checks on any causal attention
# weights that you are given, taken before dropout.

# %% tags=["raises-exception"]
torch.manual_seed(123)
repaired = RepairedMultiHeadAttention(3, 4, 6, 0.0, 2).to(device).eval()
_, seen = repaired(batch[:, :4])  # (2, 2, 4, 4), a sentence shorter than the context
print("weights:", tuple(seen.shape))
print("every row adds up to 1:", bool((seen.sum(dim=-1) - 1).abs().max() < 1e-6))
print("largest weight above the diagonal:", round(seen.triu(diagonal=1).max().item(), 2))

# %% [markdown]
# ## 6 The same numbers, twice
#
# Does the split layer compute the same as heads side by side? Give it the wrapper's numbers and compare.
# Head h of the wrapper becomes a block of rows, as in the figure of part 3. Biases, if there are any, are stacked the same way.
#
# ```
# wrapper, d_out = 2 a head, 2 heads            mha, d_out = 4 in total, 2 heads
#   heads.0.W_query.weight   (2, d_in)   ──►    W_query.weight rows 0, 1   (4, d_in)
#   heads.1.W_query.weight   (2, d_in)   ──►    W_query.weight rows 2, 3
#   nothing                                     out_proj.weight            (4, 4)       must change nothing
# ```
#
# ### Exercise: `pack_heads` (3 points)
#
# Copy the heads of `wrapper` into `mha`, and make `mha.out_proj` change nothing: the identity matrix as weight, zeros as bias. Then both give the same
# output in `eval()`. Both were built with the same `d_in`, `num_heads`, `qkv_bias` and context length, and both have the same dtype. `mha`'s `d_out` is
# `num_heads` times the wrapper's. Afterwards the two share nothing, and `wrapper` is as it was, including mode, dtype and `requires_grad`. `mha` can
# still learn; you may replace its parameters. The return value is ignored.
#
# The rubric uses your `MultiHeadAttentionWrapper` and `MultiHeadAttention`, so get those right first.

# %% nbgrader={"grade": false, "grade_id": "pack_heads", "locked": false, "schema_version": 3, "solution": true, "task": false}
def pack_heads(wrapper, mha):
    """Give mha the heads of wrapper, so that mha(x) equals wrapper(x) in eval()."""
    ### BEGIN SOLUTION
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            packed = getattr(mha, name)
            packed.weight.copy_(torch.cat([layer.weight for layer in layers]))
            if packed.bias is not None:
                packed.bias.copy_(torch.cat([layer.bias for layer in layers]))
        mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))
        mha.out_proj.bias.zero_()
    ### END SOLUTION

# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_pack_heads", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("pack_heads")  # the contract as a checklist; open this cell to read it
def _(r):
    wrapper = r.layer(MultiHeadAttentionWrapper, d_in=4, d_out=2, context_length=8, dropout=0.0, num_heads=3, qkv_bias=False)
    wrapper.linear("heads.*.W_query heads.*.W_key heads.*.W_value", "d_in -> d_out", bias="qkv_bias")
    mha = r.layer(MultiHeadAttention, d_in=4, d_out=6, context_length=8, dropout=0.0, num_heads=3, qkv_bias=False)
    mha.linear("W_query W_key W_value", "d_in -> d_out", bias="qkv_bias")
    copy = r.copies(pack_heads, wrapper, mha, source=wrapper)
    copy.outputs("mha gives the output of the wrapper", r.normal(1, 2, 4), r.normal(2, 7, 4))
    copy.outputs("with a bias, and with dropout, both in eval()", r.normal(2, 5, 2), d_in=2, qkv_bias=True, dropout=0.5)
    copy.outputs("one head; float64", r.normal(2, 5, 4, dtype=torch.float64), d_out=6, num_heads=1)
    copy.gives("out_proj is the identity, its bias zero", r.normal(2, 3, 4), "out_proj.weight", "out_proj.bias")
    copy.shares_nothing("a later change of one does not reach the other", r.normal(2, 5, 4), qkv_bias=True)
    copy.shares_nothing("nor with one head", r.normal(2, 5, 4), d_out=6, num_heads=1, qkv_bias=True)
    copy.keeps_source("the wrapper is unchanged", r.normal(2, 4, 4))
    copy.learns("mha computes with layers of its own, and they can learn", r.normal(2, 5, 4))

# %% tags=["raises-exception"]
mha = MultiHeadAttention(d_in=3, d_out=4, context_length=6, dropout=0.0, num_heads=2).to(device)
pack_heads(wrapper, mha)
table(mha(batch)[0], rows=tokens, columns=["head 0: 0", "head 0: 1", "head 1: 0", "head 1: 1"])
print("largest difference to the wrapper below 0.000001:", (mha(batch) - wrapper(batch)).abs().max().item() < 1e-6)

# %% [markdown]
# That is the table of part 2, from another class.
#
# ## 7 What heads are good for
#
# First the task of part 1: pass on the word before and the one before that. The next cell trains your `MultiHeadAttention` on random sentences, with
# 1, 2 and 6 heads. All three layers have equally many numbers to learn. Each word comes with its three numbers and six more that give its position.
# The error is measured on new sentences. A layer that always answers 0 has an error of 1. The best that one row of *fixed* weights allows is 0.5: it
# mixes two independent vectors into one, and half of what was in them is lost. A fourth layer has one head whose scores do not see the words, so its
# weights are fixed.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: trains four layers, about four seconds
def weights_of(mha, x):
    """The attention weights of every head, (b, heads, n, n)."""
    with torch.no_grad():
        queries, keys = (split_heads(layer(x), mha.num_heads) for layer in (mha.W_query, mha.W_key))
        scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
        hidden = torch.ones_like(scores).triu(diagonal=1) == 1
        return scores.masked_fill(hidden, -math.inf).softmax(dim=-1)


def sentences(count):
    """Random sentences (count, 6, 9), and the two words before each word from the third on, (count, 4, 6)."""
    words, places = torch.randn(count, 6, 3), torch.eye(6).expand(count, 6, 6)
    return torch.cat([words, places], dim=-1), torch.cat([words[:, 1:-1], words[:, :-2]], dim=-1)


def trained(num_heads, places_only=False):
    """Train a layer; with places_only its scores do not see the words."""
    torch.manual_seed(123)
    mha = MultiHeadAttention(9, 6, 6, 0.0, num_heads)
    optimizer = torch.optim.Adam(mha.parameters(), lr=0.03)
    for _ in range(400):
        if places_only:
            mha.W_query.weight.data[:, :3] = mha.W_key.weight.data[:, :3] = 0
        x, wanted = sentences(64)
        loss = (mha(x)[:, 2:] - wanted).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if places_only:  # the last step moved them
        mha.W_query.weight.data[:, :3] = mha.W_key.weight.data[:, :3] = 0
    x, wanted = sentences(2000)
    with torch.no_grad():
        error = (mha(x)[:, 2:] - wanted).square().mean().item()
    weights = weights_of(mha, x)  # (2000, heads, 6, 6)
    spread = weights.diagonal(-1, 2, 3)[:, :, 1:].std(dim=0).mean(dim=-1).max()
    print(f"{num_heads} head{'s' if num_heads > 1 else ' '} of {6 // num_heads}{', places only' * places_only}: error on new sentences {error:.2f}; "
          f"from sentence to sentence a weight on the word before varies by {spread:.2f}")
    return weights.mean(dim=0)  # (heads, 6, 6)


by_number = {num_heads: trained(num_heads) for num_heads in (1, 2, 6)}
trained(1, places_only=True)
maps = {"the only head": by_number[1][0], "two heads: head 0": by_number[2][0], "two heads: head 1": by_number[2][1]}
show(
    panels(*(heatmap(weights, tokens, tokens, title=title, hidden=future.cpu(), limits=(0, 1), bar=False) for title, weights in maps.items()),
           size=(11.5, 3.9)),
    "Three heatmaps of mean weights after training. From the third word on, the only head gives about half to each of the two "
    "words before; of the two heads one gives nearly all to the word before, the other to the one before that.",
)

# %% [markdown]
# In our run one head does not pass on both. It gives about half of its weight to each. Its error is 0.35, below the 0.5 of fixed weights, because
# its weights change a little with the words: the layer whose scores do not see the words ends at 0.50. Two heads take one word
# each. Nothing in the loss says which head takes which. But more heads are not always better: after the same training, six heads of one number each
# do worse than two of three. With one number in a query and in a key, a score is the product of two numbers. So the largest or the smallest key wins,
# whatever the query. We trained six heads whose queries and keys had two numbers, with values of one: from three random starts the error was below
# 0.01. With one number it was 0.13, 0.19 and 0.17.
#
# Now put **your** class into the course's model, with the trained weights. The baseline is your class with fresh random ones.

# %% tags=["raises-exception"]
yours, untrained = course_model(4), course_model(4)
torch.manual_seed(123)
for block, other in zip(yours.blocks, untrained.blocks):
    own = MultiHeadAttention(48, 48, 48, 0.0, num_heads=4)
    own.load_state_dict(block.attention.state_dict(), strict=False)  # the file holds no mask
    block.attention = own
    other.attention = MultiHeadAttention(48, 48, 48, 0.0, num_heads=4)
for name, one in {"the model as it came": four_heads, "with your layers": yours, "your layers, untrained": untrained}.items():
    print(f"{name:>22}: she's outside {next_words(one, question)['outside']:.2f}, {answers(one, told)['all']:.0%} of the questions right")

# %% [markdown]
# What does each head look at? Choose where the story stops. Each row is one head: 1.1 to 1.4 in the first layer, 2.1 to 2.4 in the second.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: draws the figure
stops = {
    "… she's": "Anna has a ball . Tom has two books . he reads them upstairs . she's outside . where is Anna ? she's",
    "… he's": "Anna has a ball . Tom has two books . he reads them upstairs . she's outside . where is Tom ? he's",
    "… she": "Anna has a ball . Tom has two books . she",
    "… he": "Anna has a ball . Tom has two books . he",
}


def last_rows(model, words):
    """What the last word looks at, a row for each head of both layers, (8, n)."""
    rows = []
    with torch.no_grad():
        x = model.embed(torch.tensor([encode(words)]))  # (1, n, 48)
        for block in model.blocks:
            mha, normed = block.attention, block.norm1(x)
            queries, keys = (split_heads(layer(normed), mha.num_heads) for layer in (mha.W_query, mha.W_key))
            rows.append((queries[:, :, -1:] @ keys.mT / math.sqrt(queries.shape[-1])).softmax(dim=-1)[0, :, 0])
            x = block(x)
    return torch.cat(rows)


def looks(story):
    words = begin(stops[story])
    rows, names = last_rows(yours, words), [f"{layer}.{head}" for layer in (1, 2) for head in range(1, 5)]
    following, chance = next(iter(next_words(yours, words).items()))
    most = ", ".join(f"{name} at {words[int(row.argmax())]} ({row.max():.2f})" for name, row in zip(names[4:], rows[4:]))
    pictures = [
        heatmap(weights, names, words, title=title, row_name="head", column_name="", limits=(0, 1))
        for weights, title in ((rows, f"What “{words[-1]}” looks at in your trained layers"), (last_rows(untrained, words), "in your untrained layers"))
    ]
    return panels(*pictures, size=(11, 7.2), in_a_row=1), f"Second layer: {most}. Next word: {following} ({chance:.2f})."


explore(looks, alt="For the last word of a story: what each of the eight heads looks at, trained and untrained.", story=list(stops))

# %% [markdown]
# That is one story. It can be measured over many, because the rules of the language say which earlier word decides what comes next. Each row of the
# table names the word that is read and, after the colon, the word that it has to find. *she* is the word in the story, *answer, she* the same word in
# an answer. *she* and *she's* stand for *he* and *he's*, too. In the last row the word that is read is the question mark of *who is she ?*. The column
# *head* names the head that looks most at the word to be found, *right word* is its mean weight there, and *other* its mean weight on the matching word
# of the other person. *alike* is the mean weight of a head that looks at every word alike.

# %%
measured = jobs(four_heads, told)
print("the word: what must be found   head   right word  other  alike")
for job in ("she: own thing", "answer, she: own thing", "she's: own place", "who is she ?: her name"):
    found = measured[job]
    layer, head = divmod(int(found["own"].argmax()), 4)
    numbers = [found["own"][layer, head], found["other"][layer, head], found["uniform"]]
    print(f"{job:30} {layer + 1}.{head + 1}  " + "  ".join(f"{float(number):9.2f}" for number in numbers))

# %% [markdown]
# Which head does which job depends on the random start (`model_card()` has a table for five starts). And the table shows only one word at a time: a
# head may do its work at another word.
#
# **Predict, then run.** In the first story above (the one that ends with *she's*), 2.3 and 2.4 look most at the place. Over 1,000 stories, 2.4 and
# 2.1 do. Switch off each of the eight heads in turn. Apart from 2.1 and 2.4, which head costs the most right answers to
# *where* when it is off?

# %%
my_guess = None  # a head, such as "1.1"

# %% tags=["raises-exception"]
# demonstration: asks nine models the questions in 1,000 stories
many = stories(1000, seed=5)
places = jobs(four_heads, many)["she's: own place"]["own"]  # (2, 4): the weight on the place
heads = {f"{layer + 1}.{head + 1}": (layer, head) for layer in range(2) for head in range(4)}
shares = {name: answers(without_head(yours, *place), many) for name, place in heads.items()}
beside(my_guess, min(set(heads) - {"2.1", "2.4"}, key=lambda name: shares[name]["where"]))

# %% tags=["raises-exception"]
# demonstration: what was measured
print("head   looks at the place   right answers without it")
for name, right in {**shares, "none": answers(yours, many)}.items():
    seen = f"{places[heads[name]].item():.2f}" if name in heads else ""
    print(f"{name:>4}   {seen:>18}   " + "  ".join(f"{kind} {right[kind]:4.0%}" for kind in ("who", "what", "where")))

# %% [markdown]
# Without 2.1, or without 2.4, about half of the answers to *where* are wrong. Head 1.3 does not look at the place from the answering word, and yet
# without it a quarter of them are wrong. What does it do, and where? The next cell changes what it passes on at some words only. It takes the answers
# in stories that name the places of both people, and counts how often the model's first choice is the right place, and how often the other person's.
# Head
# 1.1 is the comparison.

# %% tags=["raises-exception"]
# demonstration: one head of the first layer changed at some words
ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(encode(begin(str(story)))) for story in many], True)  # (b, n)
links = [(row, link.at + 1, link.own + 1, link.other + 1) for row, story in enumerate(many) for link in story.notes.links
         if link.job == "she's: own place" and link.other is not None and story.words[link.own] != story.words[link.other]]
row, at, own, other = torch.tensor(links).T  # the answering word, the right place, the other person's place


@torch.no_grad()
def first_choices(head, change):
    """How often the model's first choice is the right place, and the other person's, when a head's output (b, n, 12) is changed."""
    model = course_model(4)
    model.layers()[0].attention.out_proj.register_forward_pre_hook(lambda layer, given: change(given[0][..., 12 * head : 12 * head + 12]))
    chosen = model(ids[:, :48])[row, at].argmax(dim=-1)
    return [(chosen == ids[row, place]).double().mean().item() for place in (own, other)]


def off_at_answer(out):
    out[row, at] = 0


def off_at_places(out):
    out[row, own] = out[row, other] = 0


def swapped(out):
    out[row, own], out[row, other] = out[row, other], out[row, own]


print(f"{len(links)} answers:".rjust(26) + " head 1.3".ljust(27) + "head 1.1")
for name, change in {"off at the answering word": off_at_answer, "off at the two places": off_at_places, "swapped at the two places": swapped}.items():
    print(f"{name:>25}: " + "   ".join("right {:4.0%}, other {:4.0%}".format(*first_choices(head, change)) for head in (2, 0)))

# %% [markdown]
# Switched off at the answering word, head 1.3 costs next to nothing. Switched off at the two places, it costs a quarter of the answers. And where the
# two places exchange what head 1.3 passes on, twelve numbers each, most answers name the other person's place. (Four in ten still name the right one,
# so head 1.3 does not do this alone.) With head 1.1 next to nothing changes. So the two layers work in two steps. In the first layer, at the word
# *outside*, head
# 1.3 **marks the place with its person**. In the second layer *she's* **fetches** the place that carries the mark. To see what a head is for, look at
# the words at which it works, not only at the last one.
#
# *Who* depends most on another head: without 1.4 only a third of the answers are right. And one head can serve two kinds: *what* also depends most on
# 2.1; without it fewer than half of these answers are right.

# %% [markdown] nbgrader={"grade": false, "grade_id": "question_heads_written", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### In your own words: `heads_written` (2 points, a person reads it)
#
# A friend says: "Why several heads? Take one head that is twice as wide. It has as many numbers to learn." Answer in three to
# five sentences. What can several heads do that one wide head cannot, and why? Give an example in which a word needs two vectors of the same kind.
#
# <!-- BEGIN MARK SCHEME -->
# **1 point** for the reason: one head has one row of weights for each word. Whatever its width, it applies that same row to all of its
# numbers. Several heads have several rows, hence several mixtures at the same time. One head loses what two vectors have in the same directions.
# Half a point when it only says that heads "look at different things" without naming weights or mixtures.
#
# **1 point** for an example in which two vectors of the same kind must be kept apart: the word before and the one before that, the things of
# two people. Half a point for two vectors of different kinds, such as a person's thing and her place: if they lie in different directions, one
# mixture keeps both. Half a point when the example could be done with one mixture for another reason.
#
# No points off for saying that heads cost no more parameters, that out_proj mixes them, or that more heads are narrower. It is wrong to
# say that one head cannot see the order of two words (with unequal weights it can): half a point off. That heads are faster is no answer.
# <!-- END MARK SCHEME -->

# %% [markdown] nbgrader={"grade": true, "grade_id": "heads_written", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# <!-- BEGIN SOLUTION --> For each word a head has one row of weights, and everything it passes on is mixed with that row. A wider head has longer
# values, but all of their numbers are mixed alike, so from two vectors of the same kind it makes one, and which was which is lost. Two heads have two
# rows and make two mixtures at the same time. In part 7 each word needed the word before and the one before that. One head passed on a mixture of
# both, with an error of about a third; two heads passed on each in full. <!-- END SOLUTION -->

# %% [markdown]
# ## 8 What goes wrong in practice
#
# **`view` without a transpose.** The shape is right and the content is scrambled. If one of the two ways is wrong and the other right, the future
# leaks, as in part 3. If both are wrong, each head sees only a part of the sentence.
#
# **The scale is taken from `d_out`.** Each score is a dot product within one head, so it is divided by the root of that head's size. Small inputs
# hide the mistake:

# %% tags=["raises-exception"]
with torch.no_grad():
    for name, x in {"the six tokens": inputs[None], "spread out": 6 * inputs[None] - 3}.items():
        queries, keys, values = (split_heads(layer(x), 2) for layer in (mha.W_query, mha.W_key, mha.W_value))
        scores = queries @ keys.mT
        right, wrong = ((scores / math.sqrt(size)).masked_fill(future, -math.inf).softmax(dim=-1) @ values for size in (2, 4))
        moved = (right - wrong).abs().max().item() / right.abs().max().item()
        print(f"{name}: with d_out for the head's size the context moves by up to {moved:.1%} of its largest number")

# %% [markdown]
# **`d_out` means two things.** In the wrapper it is the size of one head, in `MultiHeadAttention` the size of all of them.
# With `d_out=4` and two heads the wrapper puts out 8 numbers.
#
# **The mask is repeated for every head.** It need not be: `(n, n)` broadcasts to `(b, heads, n, n)`.
#
# **Believing that more heads means more parameters.** Splitting adds none, as part 1 showed. What changes is how many numbers
# each head has for comparing words.
#
# ## Summary
#
# - One head gives one mixture for each word. **Several heads** give several, and `out_proj` mixes what they found.
# - A head is a **block of rows** of `nn.Linear.weight`, and a block of features: split with `view`, then **transpose**.
# - The scale is the root of **one head's** size.
# - Heads side by side and one layer split into heads are the same function: your numbers agreed.
# - Compare a head's weights with a baseline, and measure what is lost without the head, and at which words.
#
# **A loose end.** The attention is yours; the rest of the model is not yet. Lesson 07 builds and trains all of it.
#
# ## Further reading
#
# - Vaswani et al., *Attention Is All You Need*, 2017, section 3.2.2: multi-head attention, with the sizes of its heads.
# - Michel, Levy and Neubig, *Are Sixteen Heads Really Better than One?*, 2019, sections 3 and 4: heads taken out of trained models, one at a time and
#   many together.
# - Voita et al., *Analyzing Multi-Head Self-Attention*, 2019: heads with jobs, found in translation models.
