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
# # Several heads: first stacked, then cut from one matrix
#
# The layer of lesson 05 gives each word one row of weights. A row adds up to 1, so it is one mixture of the words before. A word
# that needs two things from two places gets them stirred together. In this lesson you put several such layers, called **heads**,
# side by side. Then you make one layer of them that does the same with three matrices. You prove that it is the same, and hand
# the result to PyTorch's own module.
#
# **You will be able to**
# - say what several heads can do that one wide head cannot, and show it;
# - cut a matrix into heads and put the heads together again, with the right transpose;
# - write multi-head attention, repair it, and read PyTorch's two ways of calling it without mixing up their masks.
#
# **It builds on** lesson 05: batches, the causal mask as a buffer, dropout on weights. `CausalAttention` is given below.
#
# | part | minutes |
# |---|---|
# | 1 One row, one mixture | 8 |
# | 2 Heads side by side | 10 |
# | 3 One matrix, cut into heads | 17 |
# | 4 The whole layer | 20 |
# | 5 Somebody else's layer | 10 |
# | 6 The same numbers, twice | 15 |
# | 7 What the heads learn | 5 |
# | 8 What goes wrong in practice, summary | 5 |
#
# *Run cells, fill in exercises, ask `hint`, `why` and `progress()`* as before. Float64 in gives float64 out, computed in float64, gradients pass,
# and arguments are left as they were. Here `b` is the batch and `n` the tokens; what `d_out` counts is said each time.
#
# *Opened alone, in a hosted notebook service?* Get the file `attention_notebooks-….whl` from where you got this lesson, put
# it beside the notebook, and run `%pip install attention_notebooks-*.whl` in a new cell above the others.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
import os
import time

import matplotlib.pyplot as plt
import torch
from torch import nn

from autograde.notebook import beside, chart, explore, heatmap, hint, panels, progress, rubric, show, table, why

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
# A small wish: every word shall get two vectors, that of the word before it and that of the word before
# that. One row of weights can look at both, half and half. What comes out is their average.

# %% jupyter={"source_hidden": true}
# draws the figure
before = torch.eye(6, device=device)[[0, 0, 1, 2, 3, 4]]  # (6, 6): all weight on the word before
two_before = torch.eye(6, device=device)[[0, 0, 0, 1, 2, 3]]  # (6, 6): on the one before that
half_half = (before + two_before) / 2
future = torch.ones(6, 6, device=device).triu(diagonal=1) == 1
titles = {"one head must share": half_half, "two heads: the word before": before, "and the one before that": two_before}
maps = [
    heatmap(weights, tokens, tokens, title=title, hidden=future, limits=(0, 1), bar=False)
    for title, weights in titles.items()
]
show(
    panels(*maps, size=(13, 4.2)),
    "Three heatmaps of weights. With one head each row has 0.5 on the word before and 0.5 on the one before that. "
    "With two heads the first has weight 1 on the word before, the second weight 1 on the one before that.",
)

# %% [markdown]
# **Predict, then run.** Swap the first two words: *journey Your starts*. *starts* still takes half of each. By how much does
# an entry of its context vector change, at most, with one head? And with two heads, one for each place?

# %%
my_guess = None  # two numbers: (one head, two heads)

# %%
swapped = inputs[[1, 0, 2, 3, 4, 5]]
one_head = (half_half @ swapped - half_half @ inputs)[2].abs().max().item()
two_heads = torch.cat([before @ swapped - before @ inputs, two_before @ swapped - two_before @ inputs], dim=-1)[2]
beside(my_guess, (round(one_head, 2), round(two_heads.abs().max().item(), 2)))

# %% [markdown]
# One head cannot tell *Your journey* from *journey Your* when it takes half of each. Other shares do not help: 0.7 of one and 0.3
# of the other is still one vector of three numbers, and six are wanted. Longer vectors do not help either: each of their numbers
# is made from that one mixture.
#
# Two rows of weights for each word do help. That is all there is to several heads.
#
# ## 2 Heads side by side
#
# The plain way: several `CausalAttention` layers, each with three matrices of its own, all reading the same x. Their outputs
# are put side by side.
#
# ```
#                ┌─ head 0 ─►  (b, n, d_out) ─┐
# x (b, n, d_in) ┼─ head 1 ─►  (b, n, d_out) ─┼─►  (b, n, num_heads * d_out)
#                └─ head 2 ─►  (b, n, d_out) ─┘
# ```
#
# ### Exercise: `MultiHeadAttentionWrapper` (3 points)
#
# Keep the heads in `self.heads`, an `nn.ModuleList` of `CausalAttention`; there is nothing else to learn. Each head gets the
# constructor's arguments but for `num_heads`, and refuses longer input. Here `d_out` is the size of **one head**.

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
# The rubric of `MultiHeadAttentionWrapper`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("MultiHeadAttentionWrapper")
def _(r):
    layer = r.layer(MultiHeadAttentionWrapper, d_in=4, d_out=3, context_length=8, dropout=0.0, num_heads=2, qkv_bias=False)
    layer.linear("heads.*.W_query heads.*.W_key heads.*.W_value", "d_in -> d_out", bias="qkv_bias")
    layer.outputs("the heads' outputs side by side", r.normal(1, 2, 4), r.normal(2, 8, 4), r.normal(2, 8, 4), r.normal(3, 1, 4))
    layer.outputs("three heads, with a bias", r.normal(3, 5, 4), num_heads=3, qkv_bias=True)
    layer.outputs("as many heads as sentences, tokens and numbers", r.normal(2, 2, 4), d_out=2)
    layer.drops_weights("in training every head drops weights of its own, in eval() none", p=0.3)
    layer.refuses("raises ValueError for more tokens than context_length", r.normal(2, 9, 4))
    layer.made_of("heads is an nn.ModuleList of CausalAttention", {"heads": nn.ModuleList, "heads.*": CausalAttention})
    layer.conventions(r.normal(3, 7, 4))

# %% tags=["raises-exception"]
torch.manual_seed(123)
wrapper = MultiHeadAttentionWrapper(d_in=3, d_out=2, context_length=6, dropout=0.0, num_heads=2).to(device)
print("batch", tuple(batch.shape), "-> context vectors", tuple(wrapper(batch).shape))
table(wrapper(batch)[0], rows=tokens, columns=["head 0: 0", "head 0: 1", "head 1: 0", "head 1: 1"])

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
maps = [
    heatmap(head.weights(batch)[0], tokens, tokens, title=f"Weights of head {h}", hidden=future, limits=(0, 1), bar=h == 1)
    for h, head in enumerate(wrapper.heads)
]
show(
    panels(*maps, size=(10.5, 4.4)),
    "Two heatmaps of causal weights, one for each head of your wrapper. Their rows differ a little: "
    "each head has matrices of its own, and neither is trained.",
)

# %% [markdown]
# ## 3 One matrix, cut into heads
#
# Two heads mean six small products where three large ones would do, and a loop in Python. So stack the matrices. `nn.Linear`
# keeps a row of its weight for each number it puts out. Head 0 has rows 0 and 1, head 1 rows 2 and 3. One product gives
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
    figure, axes = plt.subplots(1, 4, figsize=(13, 4.2), layout="constrained", width_ratios=(3, 4, 2, 2))
    for ax, one in zip(axes, maps):
        one.on(ax)
    axes[0].axhline(2, color="black", linewidth=2.5)
    axes[1].axvline(2, color="black", linewidth=2.5)
    return figure


show(
    chart(cut_chart, maps),
    "Four heatmaps with the same numbers throughout. A matrix of 4 rows and 3 columns, a line between rows 0, 1 of head 0 and "
    "rows 2, 3 of head 1; the 6 by 4 queries it makes, a line between features 0, 1 and 2, 3; and the two halves alone.",
)

# %% [markdown]
# **Predict, then run.** Are features 2 and 3 of the large product exactly the queries that head 1 of your wrapper makes?

# %%
my_guess = None  # "yes" or "no"

# %% tags=["raises-exception"]
apart = (both_queries[:, 2:] - wrapper.heads[1].W_query(inputs)).abs().max().item()
beside(my_guess, "yes" if apart < 1e-6 else "no")

# %% [markdown]
# "One large query matrix is not multi-head", some say. It is: a head is a block of its rows. What makes the heads is the cut,
# because scores and softmax are computed for each block alone.
#
# So the features have to be cut, and the heads have to stand beside the batch, where `@` treats every one alone:
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
# Head h gets the features `h * d / num_heads` up to, and without, `(h + 1) * d / num_heads` of every token. When `d` cannot
# be divided by `num_heads`, raise a `ValueError` that names both. You may return a view of x.

# %% nbgrader={"grade": false, "grade_id": "split_heads", "locked": false, "schema_version": 3, "solution": true, "task": false}
def split_heads(x, num_heads):
    """The features cut into heads: (b, n, d) -> (b, num_heads, n, d // num_heads)."""
    ### BEGIN SOLUTION
    if x.shape[-1] % num_heads != 0:
        raise ValueError(f"d must be divisible by num_heads, got d = {x.shape[-1]} and num_heads = {num_heads}")
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_split_heads", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
# The rubric of `split_heads`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("split_heads")
def _(r):
    r.idea.each("head h gets its share of every token's features", split_heads, (r.normal(1, 2, 4), 2), (r.normal(2, 5, 12), 3), (r.normal(2, 5, 12), 3))
    r.each("one head, heads of one number", split_heads, (r.normal(3, 4, 5), 1), (r.normal(2, 7, 5), 5))
    r.each("as many heads as tokens and sentences, one token alone", split_heads, (r.normal(4, 4, 12), 4), (r.normal(3, 1, 8), 2))
    r.refuses("raises ValueError when num_heads does not divide d", split_heads, (r.normal(2, 6, 10), 3), (r.normal(2, 6, 10), 4), (r.normal(2, 3, 4), 8))
    r.conventions(split_heads, r.normal(2, 3, 6, dtype=torch.float64), 3)

# %% [markdown]
# The transpose looks like a detail. `x.view(b, num_heads, n, d // num_heads)` has the right shape at once. Below, every entry
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
    panels(*maps, size=(13, 4.6)),
    "Five heatmaps of entries named after token and feature. Yours: head 0 holds features 0 and 1 of each token in its own row, "
    "head 1 features 2 and 3. With view alone head 0 holds tokens 0 to 2 and head 1 tokens 3 to 5, each on two rows.",
)

# %% [markdown]
# With `view` alone the row of *Your* in head 1 holds features of *with*, the fourth word. No mask helps against that: it hides
# rows by their place. Change *with*, and see who notices.

# %% tags=["raises-exception"]
def who_notices(split):
    """The words whose context vector changes when *with* does; queries, keys and values are x itself."""
    def attend(x):  # (1, n, d) -> (1, n, d)
        heads = split(x)  # (1, 2, n, d / 2)
        scores = (heads @ heads.mT).masked_fill(future, -math.inf)
        return (scores.softmax(dim=-1) @ heads).transpose(1, 2).flatten(2)

    torch.manual_seed(123)
    x = torch.randn(1, 6, 4).to(device)
    changed = x.clone()
    changed[:, 3] += 1  # with
    moved = (attend(changed) - attend(x)).abs().amax(dim=(0, 2)) > 1e-6  # (6,)
    return [token for token, notices in zip(tokens, moved.tolist()) if notices]


print("split_heads:", who_notices(lambda x: split_heads(x, 2)))
print("view alone: ", who_notices(lambda x: x.view(1, 2, 6, 2)))

# %% [markdown]
# Cut rightly, *with* reaches itself and the words after it. With `view` alone it reaches every word, the first one included.
#
# ### Exercise: `merge_heads` (2 points)
#
# The way back: `(b, num_heads, n, d_head)` to `(b, n, num_heads * d_head)`, so that `merge_heads(split_heads(x, num_heads))` is x.
# `view` can cut any dimension, but it cannot join these two: a transposed tensor is not contiguous, its numbers do not lie in
# memory in the order in which you read them. `reshape` and `flatten` copy where they must.

# %% nbgrader={"grade": false, "grade_id": "merge_heads", "locked": false, "schema_version": 3, "solution": true, "task": false}
def merge_heads(x):
    """The heads side by side again: (b, num_heads, n, d_head) -> (b, n, num_heads * d_head)."""
    ### BEGIN SOLUTION
    return x.transpose(1, 2).flatten(2)
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_merge_heads", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
# The rubric of `merge_heads`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("merge_heads")
def _(r):
    r.idea.each("the inverse of split_heads", merge_heads, (r.normal(1, 2, 2, 2),), (r.normal(2, 3, 5, 4),), (r.normal(2, 3, 5, 4),))
    r.each("one head, heads of one number, more heads than tokens", merge_heads, (r.normal(3, 1, 4, 5),), (r.normal(2, 5, 7, 1),), (r.normal(2, 6, 3, 2),))
    r.each("as many heads as tokens and sentences, one token alone", merge_heads, (r.normal(4, 4, 4, 4),), (r.normal(3, 2, 1, 4),))
    r.call("heads that come from a transpose", merge_heads, r.normal(2, 5, 4, 3).transpose(1, 2))
    r.conventions(merge_heads, r.normal(2, 3, 4, 2, dtype=torch.float64))

# %% tags=["raises-exception"]
torch.manual_seed(123)
x = torch.randn(2, 5, 12).to(device)
for num_heads in (1, 2, 3, 4, 6, 12):
    heads = split_heads(x, num_heads)
    print(f"{num_heads:>2} heads: {tuple(heads.shape)}, merged again it is x: {torch.equal(merge_heads(heads), x)}")

# %% [markdown]
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
# `out_proj` is new: a linear layer at the end. Without it the numbers of head 0 stay in the first places of the output, those of
# head 1 in the next. `out_proj` mixes what the heads have found.
#
# **Predict, then run.** `d_out` is 12, and there are 3 heads. By the square root of which number are the scores divided?

# %%
my_guess = None  # a number

# %%
beside(my_guess, 12 // 3)

# %% [markdown]
# A score is a dot product of as many numbers as a **head** has. Lesson 01: its spread grows with the root of that number.
#
# ### Exercise: `MultiHeadAttention` (8 points)
#
# - `W_query`, `W_key`, `W_value`: `nn.Linear` from `d_in` to `d_out`, with a bias only if `qkv_bias`. Here `d_out` is the size of
#   **all heads together**. Each starts from its own numbers.
# - `out_proj`: `nn.Linear` from `d_out` to `d_out`, with a bias.
# - `num_heads`, an attribute; `mask`, a buffer in `state_dict()` as in `CausalAttention`; `dropout`, an `nn.Dropout` for the
#   weights, of each head independently, with the p it has at that call. The layer works where `.to()` moves it.
# - `forward`: `(b, n, d_in)` to `(b, n, d_out)` for n up to `context_length`.
# - A `ValueError` when `num_heads` does not divide `d_out` (in `__init__`), and for longer input or input that is not 3-D (in
#   `forward`).

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
# The rubric of `MultiHeadAttention`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("MultiHeadAttention")
def _(r):
    layer = r.layer(MultiHeadAttention, d_in=4, d_out=6, context_length=8, dropout=0.0, num_heads=2, qkv_bias=False)
    layer.linear("W_query W_key W_value", "d_in -> d_out", bias="qkv_bias")
    layer.linear("out_proj", "d_out -> d_out", bias="always")
    layer.outputs("two heads, sentences of any length, a token of zeros among them", r.normal(1, 2, 4), r.normal(2, 8, 4), r.normal(2, 8, 4), r.normal(3, 1, 4), r.normal(3, 7, 4) * (r.uniform(3, 7, 1) > 0))
    layer.outputs("as many heads as sentences, tokens and numbers in a head; with a bias", r.normal(4, 4, 16), d_in=16, d_out=16, num_heads=4, qkv_bias=True)
    layer.first_token("the first token sees itself alone, however large the scores", 1000 * r.normal(8, 6, 4))
    layer.drops_weights("in training each head drops its own weights, in eval() none", p=0.4, num_heads=4)
    layer.rereads_dropout("dropout.p is read at each call", r.normal(3, 7, 4))
    layer.keeps_mask("keeps num_heads, and mask as a buffer that is saved", num_heads=2)
    layer.moves("works after .to(device)", r.normal(2, 5, 4))
    r.refuses("raises ValueError when num_heads does not divide d_out", MultiHeadAttention, (5, 10, 8, 0.0, 4), (5, 4, 8, 0.0, 8))
    layer.refuses("raises ValueError for too many tokens, and for input that is not 3-D", r.normal(2, 9, 4), r.normal(5, 4), r.normal(1, 2, 5, 4))
    layer.conventions(r.normal(3, 7, 4))

# %% [markdown]
# Move the slider: the same matrices, cut into more and more heads. Each gets fewer numbers to compare by, and finds another
# mixture.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
def weights_of(mha, x):
    """The attention weights of every head, (b, heads, n, n)."""
    with torch.no_grad():
        queries, keys = (split_heads(layer(x), mha.num_heads) for layer in (mha.W_query, mha.W_key))
        scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
        hidden = torch.ones_like(scores).triu(diagonal=1) == 1
        return scores.masked_fill(hidden, -math.inf).softmax(dim=-1)


def cut_into(heads):
    torch.manual_seed(123)
    mha = MultiHeadAttention(3, 12, 6, 0.0, heads).to(device)
    found = weights_of(mha, 6 * inputs[None] - 3)[0]  # (heads, 6, 6), of inputs spread out, so that one sees more
    lines, columns = {1: (1, 1), 2: (1, 2), 3: (1, 3), 4: (2, 2), 6: (2, 3)}[heads]
    maps = [
        heatmap(weights, tokens, tokens, title=f"head {h} of {heads}: {12 // heads} numbers", hidden=future, limits=(0, 1), bar=False)
        for h, weights in enumerate(found)
    ]
    figure = panels(*maps, size=(0.6 + 4.1 * columns, 4.2 * lines), in_a_row=columns)
    most = [tokens[int(row[-1].argmax())] for row in found]
    return figure, f"{heads} heads. What step, the last word, looks at most: {', '.join(most)}."


explore(cut_into, alt="One heatmap of causal weights for each head, for 1, 2, 3, 4 or 6 heads.", heads=[3, 1, 2, 4, 6])

# %% [markdown]
# Which is faster on your machine, the heads side by side or the one that is cut?

# %% jupyter={"source_hidden": true} tags=["raises-exception", "nbval-ignore-output", "unsteady-output"]
# draws the figure
def milliseconds(module, x):
    """The shortest of seven runs."""
    def run():
        start = time.perf_counter()
        with torch.no_grad():
            module(x)
        if x.is_cuda:
            torch.cuda.synchronize()
        return time.perf_counter() - start

    return 1000 * min(run() for _ in range(7))


lengths = [4, 8, 16, 32, 64, 128, 256]
side_by_side, cut = [], []
for n in lengths:
    x = torch.randn(4, n, 96).to(device)
    side_by_side.append(milliseconds(MultiHeadAttentionWrapper(96, 8, n, 0.0, 12).to(device), x))
    cut.append(milliseconds(MultiHeadAttention(96, 96, n, 0.0, 12).to(device), x))


def time_chart(lengths, side_by_side, cut):
    figure, axes = plt.subplots(figsize=(6.5, 3.6))
    axes.plot(lengths, side_by_side, "--o", color="#b5541c", label="12 heads side by side")
    axes.plot(lengths, cut, "-o", color="#1f6f8b", label="one layer, cut into 12 heads")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(lengths, [str(n) for n in lengths])
    axes.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    axes.minorticks_off()
    axes.set(xlabel="tokens", ylabel="milliseconds", title="Time of one forward pass")
    axes.legend()
    return figure


show(
    chart(time_chart, lengths, side_by_side, cut),
    "Time of a forward pass against the number of tokens, for heads side by side and for one layer cut into heads.",
)

# %% [markdown]
# On short sentences the wrapper's time goes into starting many small products, so the one layer wins by far. On long ones most
# time goes into the n × n matrices. Both compute the same ones, and the lead is gone. On a CPU the wrapper may even win there:
# its matrices are smaller, and fit into fast memory. While the machine is busy with something else, the lines may cross
# anywhere: run the cell again. Lesson 08 makes a method of that.
#
# ## 5 Somebody else's layer
#
# ### Exercise: `fix_me` (3 points)
#
# The class below was written in a hurry. It makes queries, keys and values with **one** layer, `qkv`: of its `3 * d_out` numbers
# the first third are the queries, then come keys, then values. It returns a tuple or list of two: the output, and the weights
# before dropout, `(b, num_heads, n, n)`. Otherwise it shall do what `MultiHeadAttention` does.
#
# It has five faults of the kind people ship; one of them takes two lines. Run the cell. Python names two, one after the other;
# the rubric helps to find the rest. What the class does is graded, not how little you change.

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
# The rubric of `fix_me`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("fix_me")
def _(r):
    layer = r.layer(RepairedMultiHeadAttention, d_in=4, d_out=6, context_length=8, dropout=0.0, num_heads=2, qkv_bias=False)
    layer.linear("qkv", "d_in -> 3*d_out", bias="qkv_bias")
    layer.linear("out_proj", "d_out -> d_out", bias="always")
    layer.outputs("one head, a sentence as long as the context", r.normal(2, 8, 4), num_heads=1)
    layer.outputs("one head, shorter sentences", r.normal(1, 2, 4), r.normal(2, 7, 4), r.normal(2, 7, 4), r.normal(3, 1, 4), num_heads=1)
    layer.weights_before_dropout("two heads: the weights, before dropout", r.normal(2, 8, 4), dropout=0.5)
    layer.idea.outputs("as many heads as sentences, tokens and numbers in a head; with a bias", r.normal(4, 4, 16), d_in=16, d_out=16, num_heads=4, qkv_bias=True)
    layer.first_token("the first token sees itself alone, however large the scores", 1000 * r.normal(8, 6, 4), num_heads=1)
    layer.drops_weights("in training each head drops its own weights, in eval() none", p=0.4, num_heads=4)
    layer.keeps_mask("keeps num_heads, and mask as a buffer that is saved", num_heads=2)
    r.refuses("raises ValueError when num_heads does not divide d_out", RepairedMultiHeadAttention, (5, 10, 8, 0.0, 4), (5, 4, 8, 0.0, 8))
    layer.refuses("raises ValueError for too many tokens, and for input that is not 3-D", r.normal(2, 9, 4), r.normal(5, 4))
    layer.conventions(r.normal(3, 7, 4))

# %% [markdown]
# Now look at its second result. Each row adds up to 1, and no word looks at a later one.

# %% tags=["raises-exception"]
torch.manual_seed(123)
repaired = RepairedMultiHeadAttention(3, 4, 6, 0.0, 2).to(device).eval()
_, seen = repaired(batch)  # (2, 2, 6, 6)
print("weights:", tuple(seen.shape))
print("every row adds up to 1:  ", bool((seen.sum(dim=-1) - 1).abs().max() < 1e-6))
print("largest weight above the diagonal:", round(seen.triu(diagonal=1).max().item(), 2))

# %% [markdown]
# ## 6 The same numbers, twice
#
# Is the layer that is cut really the same as heads side by side? Prove it: give it the numbers of the wrapper, and compare.
# Head h of the wrapper is a block of rows, as in the figure of part 3. The biases, if there are any, are cut the same way.
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
# Copy the heads of `wrapper` into `mha`, and make `mha.out_proj` change nothing: the identity matrix and a bias of zeros. Then
# both give the same output in `eval()`. Both were built with the same `qkv_bias` and context length, and their sizes fit.
# Afterwards nothing is shared. `wrapper` stays as it was, mode, dtype and `requires_grad` included. `mha` can still learn; you may
# replace its parameters. What you return does not matter.
#
# The rubric calls your `MultiHeadAttentionWrapper` and `MultiHeadAttention`, so they must be right first.

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
# The rubric of `pack_heads`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("pack_heads")
def _(r):
    wrapper = r.layer(MultiHeadAttentionWrapper, d_in=4, d_out=2, context_length=8, dropout=0.0, num_heads=3, qkv_bias=False)
    wrapper.linear("heads.*.W_query heads.*.W_key heads.*.W_value", "d_in -> d_out", bias="qkv_bias")
    mha = r.layer(MultiHeadAttention, d_in=4, d_out=6, context_length=8, dropout=0.0, num_heads=3, qkv_bias=False)
    mha.linear("W_query W_key W_value", "d_in -> d_out", bias="qkv_bias")
    copy = r.copies(pack_heads, wrapper, mha, source=wrapper)
    copy.outputs("mha gives the output of the wrapper", r.normal(1, 2, 4), r.normal(2, 7, 4))
    copy.outputs("with a bias, and with dropout, both in eval()", r.normal(2, 5, 2), d_in=2, qkv_bias=True, dropout=0.5)
    copy.outputs("one head", r.normal(2, 5, 4), d_out=6, num_heads=1)
    copy.outputs("float64", r.normal(2, 5, 4, dtype=torch.float64))
    copy.gives("out_proj is the identity, its bias zero", r.normal(2, 3, 4), "out_proj.weight", "out_proj.bias")
    copy.shares_nothing("a later change of one does not reach the other", r.normal(2, 5, 4), qkv_bias=True)
    copy.keeps_source("the wrapper is unchanged", r.normal(2, 4, 4))
    copy.learns("mha computes with layers of its own, and they can learn", r.normal(2, 5, 4))

# %% tags=["raises-exception"]
mha = MultiHeadAttention(d_in=3, d_out=4, context_length=6, dropout=0.0, num_heads=2).to(device)
pack_heads(wrapper, mha)
table(mha(batch)[0], rows=tokens, columns=["head 0: 0", "head 0: 1", "head 1: 0", "head 1: 1"])
print("largest difference to the wrapper below 0.000001:", (mha(batch) - wrapper(batch)).abs().max().item() < 1e-6)

# %% [markdown]
# That is the table of part 2, from another class.

# %% [markdown]
# ### True is not True
#
# PyTorch has a function for the middle part as well, `scaled_dot_product_attention(queries, keys, values)`. It reads heads
# `(b, heads, n, d_head)` and takes a boolean mask, too.
#
# | | True in the mask means |
# |---|---|
# | `nn.MultiheadAttention`, `attn_mask` | hidden |
# | `scaled_dot_product_attention`, `attn_mask` | takes part |
#
# **Predict, then run.** `future` is True above the diagonal. What does the *function* give the last word when it gets `future` as it is?

# %%
my_guess = None  # "the right vector", "an error", "nan" or "zeros"

# %% tags=["raises-exception"]
def with_mask(mask):
    """Context vectors of the three heads from PyTorch's function, (2, 3, 6, 4)."""
    with torch.no_grad():
        heads = [split_heads(layer(x), 3) for layer in (ours.W_query, ours.W_key, ours.W_value)]
        return nn.functional.scaled_dot_product_attention(*heads, attn_mask=mask)


right_way, swapped_way = with_mask(~future), with_mask(future)
first_alone = split_heads(ours.W_value(x), 3)[:, :, 0]  # the first word sees itself alone, so this is its context vector
apart = (ours.out_proj(merge_heads(right_way)) - ours(x)).abs().max().item()
print("with True = takes part, it differs from yours by less than 0.00001:", apart < 1e-5)
print("the first word gets its own value, right way:    ", bool((right_way[:, :, 0] - first_alone).abs().max() < 1e-5))
print("the first word gets its own value, mask as it is:", bool((swapped_way[:, :, 0] - first_alone).abs().max() < 1e-5))
print("the last word is all zeros, mask as it is:       ", bool((swapped_way[:, :, -1] == 0).all()))
beside(my_guess, "zeros")

# %% [markdown]
# No error, and no `nan`. With the mask swapped every word sees the future and nothing else, not even itself. The last word has no
# future, and gets zeros in silence. A test on shapes passes; only a comparison of numbers shows it. One more trap:
# `is_causal=True` is enough for the function:

# %% tags=["raises-exception"]
with torch.no_grad():
    heads = [split_heads(layer(x), 3) for layer in (ours.W_query, ours.W_key, ours.W_value)]
    causal = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
print("the function with is_causal=True:", "right" if (causal - right_way).abs().max() < 1e-5 else "wrong")
try:
    theirs(x, x, x, is_causal=True)
except RuntimeError as error:
    print("the module with is_causal=True:  ", str(error).split(". ")[0])

# %% [markdown]
# The module takes `is_causal` for a promise about a mask that it wants to have all the same.
#
# ## 7 What the heads learn
#
# Back to the wish of part 1: the word before, and the one before that, side by side. Train your `MultiHeadAttention` on random
# sentences, once with one head and once with two. Both have equally many numbers to learn. Each input holds a word's
# three numbers and, as six more, its place. The values are kept: each head hands on the three numbers of what it looks at.
# `W_query` and `W_key` learn.

# %% tags=["raises-exception"]
def with_places(words):
    """(b, 6, 3) -> (b, 6, 9): a word's numbers, and a 1 at its place."""
    places = torch.eye(6, device=device).expand(len(words), 6, 6)
    return torch.cat([words, places], dim=-1)


def train(num_heads):
    torch.manual_seed(123)
    mha = MultiHeadAttention(9, 6, 6, 0.0, num_heads)
    with torch.no_grad():
        mha.W_value.weight.copy_(torch.eye(3, 9).repeat(2, 1))  # a word's three numbers, twice
    nn.init.eye_(mha.out_proj.weight)
    nn.init.zeros_(mha.out_proj.bias)
    words = torch.randn(64, 6, 3).to(device)
    wanted = torch.cat([words[:, 1:-1], words[:, :-2]], dim=-1)  # (64, 4, 6): for the third word and those after it
    mha.to(device)
    optimizer = torch.optim.Adam([*mha.W_query.parameters(), *mha.W_key.parameters()], lr=0.1)
    losses = []
    for _ in range(150):
        loss = (mha(with_places(words))[:, 2:] - wanted).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return mha, losses


trained = {num_heads: train(num_heads) for num_heads in (1, 2)}
for num_heads, (_, losses) in trained.items():
    print(f"{num_heads} head{'s' if num_heads > 1 else ' '}: loss before {losses[0]:.1f}, after {losses[-1]:.1f}")

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
maps = [weights_of(trained[num_heads][0], with_places(inputs[None]))[0] for num_heads in (1, 2)]
found = {"the only head": maps[0][0], "two heads: head 0": maps[1][0], "two heads: head 1": maps[1][1]}


def stuck_chart(losses, maps):
    figure, axes = plt.subplots(1, 4, figsize=(16, 4), layout="constrained", width_ratios=(1.15, 1, 1, 1))
    for (name, curve), style, colour in zip(losses.items(), ("--", "-"), ("#b5541c", "#1f6f8b")):
        axes[0].plot(curve, style, color=colour, label=name)
    axes[0].set(xlabel="step", ylabel="loss", title="One head gets stuck", ylim=(0, None))
    axes[0].legend()
    for ax, one in zip(axes[1:], maps):
        one.on(ax)
    return figure


losses = {"1 head": trained[1][1], "2 heads": trained[2][1]}
show(
    chart(stuck_chart, losses, [
        heatmap(weights, tokens, tokens, title=title, hidden=future, limits=(0, 1), bar=False) for title, weights in found.items()
    ]),
    "Left, two loss curves: with one head the loss stays at about half a unit, with two it falls to zero. Right, three heatmaps "
    "from the third word on: the only head gives about half to each of the two words before; of the two heads, head 0 gives 1 "
    "to the word before and head 1 gives 1 to the one before that.",
)

# %% [markdown]
# These are the figures of part 1, found by training. Nobody told head 0 to look one word back: it follows from what its numbers
# are used for.

# %% [markdown] nbgrader={"grade": false, "grade_id": "question_heads_written", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### In your own words: `heads_written` (2 points)
#
# A friend says: "Why several heads? Take one head that is twice as wide. It has as many numbers to learn." Answer in three to
# five sentences: what can several heads do that one wide head cannot? Give an example.
#
# <!-- BEGIN MARK SCHEME -->
# **1 point** for the reason: one head has one row of weights for each word, which adds up to 1. Whatever the width, everything it
# hands on is made from that one mixture. Several heads have several rows, hence several mixtures at the same time.
# Half a point when it only says that heads "look at different things" without naming weights or mixtures.
#
# **1 point** for an example in which two things must be kept apart: the word before and the one before that, the subject
# and the verb, a near and a far word. Half a point when the example could be done with one mixture.
#
# No points off for saying that heads cost no more parameters, or that out_proj mixes them. That heads are faster is no answer.
# <!-- END MARK SCHEME -->

# %% [markdown] nbgrader={"grade": true, "grade_id": "heads_written", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# <!-- BEGIN SOLUTION -->
# For each word a head has one row of weights, and the row adds up to 1. So it computes one mixture of the values. A wider head
# has longer values, but all of their numbers are mixed with the same weights. Two heads have two rows, and can mix in two ways at the
# same time. In part 7 each word needed the word before and the one before that, side by side. One head could only give the
# average of both, in which their order is lost; two heads gave each one in full.
# <!-- END SOLUTION -->

# %% [markdown]
# ## 8 What goes wrong in practice
#
# **`view` without a transpose.** Right shape, scrambled content, and it leaks, as in part 3. The way back has the same trap.
#
# **The scale is taken from `d_out`.** The scores belong to heads. With small inputs one hardly sees it:

# %% tags=["raises-exception"]
with torch.no_grad():
    queries, keys, values = (split_heads(layer(inputs[None]), 2) for layer in (mha.W_query, mha.W_key, mha.W_value))

    def output(size):
        scores = (queries @ keys.mT / math.sqrt(size)).masked_fill(future, -math.inf)
        return mha.out_proj(merge_heads(scores.softmax(dim=-1) @ values))

    print(f"d_out instead of the head's size: the output moves by at most {(output(4) - output(2)).abs().max().item():.3f}")

# %% [markdown]
# **`d_out` means two things.** For a head of the wrapper it is the size of one head, for `MultiHeadAttention` the size of all.
# With `d_out=4` and two heads the wrapper gives 8 numbers.
#
# **The mask is repeated for every head.** It need not be: `(n, n)` broadcasts to `(b, heads, n, n)`.
#
# **More heads are taken for more parameters.** Cutting costs nothing: `MultiHeadAttention(3, 12, …)` has equally many numbers to learn
# with 1 head and with 6. What changes is how many numbers a head has to compare by.
#
# ## Summary
#
# - One head gives one mixture a word. **Several heads** give several, and `out_proj` mixes what they found.
# - A head is a **block of rows** of `nn.Linear.weight`, and a block of features: cut with `view`, then **transpose**.
# - The scale is the root of the **head's** size.
# - Heads side by side and one layer cut into heads are the same function: you have packed one into the other.
# - In PyTorch, True hides in `nn.MultiheadAttention` and shows in `scaled_dot_product_attention`.
#
# **A loose end.** The layer is finished, and it has predicted nothing yet. Lesson 07 puts it into a model that writes.
#
# ## Further reading
#
# - Vaswani et al., *Attention Is All You Need*, 2017, section 3.2.2: multi-head attention, with the sizes of its heads.
# - Michel, Levy and Neubig, *Are Sixteen Heads Really Better than One?*, 2019, section 3: how many heads can be taken out of a trained model.
# - Voita et al., *Analyzing Multi-Head Self-Attention*, 2019, section 4: heads that look at neighbouring words, as yours do.
