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

from autograde.notebook import beside, chart, explore, heatmap, hint, panels, progress, show, table, why

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


# %% nbgrader={"grade": true, "grade_id": "test_MultiHeadAttentionWrapper", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
from autograde.notebook import rubric


@rubric("MultiHeadAttentionWrapper")
def _rubric(r):
    from autograde.rubric.probes import load
    from builtins import isinstance, len, range, sorted, sum, type

    def drawn(d_in, d_out, heads, bias=False, **kind):
        names = [f"heads.{h}.{name}" for h in range(heads) for name in ("W_query", "W_key", "W_value")]
        weights = {f"{name}.weight": 0.5 * r.normal(d_out, d_in, **kind) for name in names}
        return weights | {f"{name}.bias": r.normal(d_out, **kind) for name in names if bias}

    # The inputs are far from 0, the weights such that queries and keys do not see it, and values keep it.
    # So what float64 knows and float32 does not is large in the result.
    def far_from_zero(d_in, d_out, heads):
        weights = {name: w - w.mean(dim=1, keepdim=True) for name, w in drawn(d_in, d_out, heads, dtype=torch.float64).items()}
        return {name: w + (1 / d_in if "W_value" in name else 0) for name, w in weights.items()}

    def less_the_offset(wrapper, x):
        return wrapper(x + 1e5) - 1e5

    def in_eval(weights, x, other):
        wrapper = load(MultiHeadAttentionWrapper(5, 3, 8, 0.5, 2), weights).eval()
        return [wrapper(x), wrapper(other), wrapper(x)]

    # Token t has a 1 at its own place t, and each head hands that on, twice: the output is its weights.
    def showing_weights(n, heads):
        eye, size = torch.eye(n, device=device), 2 * n * heads
        x = torch.cat([eye.expand(4, n, n), r.normal(4, n, 3)], dim=-1)  # (4, n, n + 3)
        weights = {f"{name}.weight": 0.5 * r.normal(size, n + 3) for name in ("W_query", "W_key")}
        return weights | {"W_value.weight": nn.functional.pad(eye.repeat(2 * heads, 1), (0, 3))}, x

    def in_training(weights, x, p, heads):
        n = x.shape[1]
        cut = {name: weight.chunk(heads) for name, weight in weights.items()}
        own = {f"heads.{h}.{name}": pieces[h] for name, pieces in cut.items() for h in range(heads)}
        wrapper = load(MultiHeadAttentionWrapper(n + 3, 2 * n, n + 1, p, heads), own)
        return [wrapper(x) for _ in range(4)]

    def kinds():
        def name(value, wanted, called):
            return called if isinstance(value, wanted) else type(value).__name__

        heads = MultiHeadAttentionWrapper(5, 3, 8, 0.1, 4).heads
        each = " and ".join(sorted({name(head, CausalAttention, "CausalAttention") for head in heads}))
        return f"{name(heads, nn.ModuleList, 'nn.ModuleList')} of {len(heads)} {each}"

    def same_starts():
        one, two = MultiHeadAttentionWrapper(5, 3, 8, 0.1, 2).heads
        return [torch.equal(one.W_query.weight, two.W_query.weight), torch.equal(one.W_value.weight, two.W_value.weight)]

    def learned():
        return sum(p.numel() for p in MultiHeadAttentionWrapper(5, 3, 8, 0.1, 4).parameters() if p.requires_grad)

    def run(x):
        return MultiHeadAttentionWrapper(5, 3, 7, 0.0, 2).to(x)(x)

    # the only line of numbers with more than two heads
    r.forward("three heads, two sentences", MultiHeadAttentionWrapper, (5, 4, 9, 0.0, 3), drawn(5, 4, 3), r.normal(2, 7, 5))
    r.forward("one head", MultiHeadAttentionWrapper, (6, 6, 8, 0.0, 1), drawn(6, 6, 1), r.normal(3, 5, 6))
    r.forward("as many heads as sentences, tokens and numbers", MultiHeadAttentionWrapper, (2, 2, 4, 0.0, 2),
              drawn(2, 2, 2), r.normal(2, 2, 2))
    # the only line of numbers on which a sentence is as long as the context
    r.forward("one token, and as many as the context allows", MultiHeadAttentionWrapper, (5, 2, 8, 0.0, 2), drawn(5, 2, 2),
              r.normal(3, 1, 5), r.normal(2, 8, 5))
    r.forward("with a bias", MultiHeadAttentionWrapper, (6, 3, 9, 0.0, 2), drawn(6, 3, 2, bias=True), r.normal(2, 7, 6),
              qkv_bias=True)
    r.module("float64, stored by columns", MultiHeadAttentionWrapper, (6, 5, 11, 0.0, 2), far_from_zero(6, 5, 2), less_the_offset,
             r.normal(3, 6, 9, dtype=torch.float64).mT)
    r.call("nothing is dropped in eval()", in_eval, drawn(5, 3, 2), r.normal(2, 7, 5), r.normal(2, 7, 5))
    r.backward("every head learns", MultiHeadAttentionWrapper, (5, 4, 8, 0.0, 2), drawn(5, 4, 2), r.normal(3, 7, 5))
    r.check("in training every head drops weights of its own", "drops_weights", in_training, *showing_weights(8, 2), 0.3, 2)
    r.call("each head starts from its own numbers", same_starts)
    r.call("heads is an nn.ModuleList of CausalAttention", kinds)
    r.call("the heads' matrices to learn and nothing else", learned)
    r.refuses("more tokens than the context", run, (r.normal(2, 6, 5),), (r.normal(2, 8, 5),), (r.normal(1, 3, 5),))
    r.arguments("leaves its arguments as they were")

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


# %% nbgrader={"grade": true, "grade_id": "test_split_heads", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
from autograde.notebook import rubric


@rubric("split_heads")
def _rubric(r):
    def both(x, other, num_heads):
        return [split_heads(x, num_heads), split_heads(other, num_heads)]

    def less_the_offset(x, num_heads):  # an offset that leaves float32 few digits
        return split_heads(x + 1e5, num_heads) - 1e5

    r.call("three heads, two sentences, then two others", both, r.normal(2, 5, 12), r.normal(2, 5, 12), 3)
    r.call("one head", split_heads, r.normal(3, 4, 7), 1)
    r.call("heads of one number", split_heads, r.normal(2, 7, 5), 5)
    r.call("as many heads as tokens and sentences", split_heads, r.normal(4, 4, 12), 4)
    r.call("one token alone", split_heads, r.normal(3, 1, 8), 2)
    r.call("one sentence alone, more heads than tokens", split_heads, r.normal(1, 3, 14), 7)
    r.call("float64, stored by columns", less_the_offset, r.normal(2, 12, 7, dtype=torch.float64).mT, 4)
    r.gradient("lets gradients through", split_heads, r.normal(2, 5, 6), 3)
    r.refuses("d that num_heads does not divide", split_heads, (r.normal(2, 6, 10), 3), (r.normal(2, 6, 10), 4),
              (r.normal(2, 6, 10), 5), (r.normal(2, 3, 4), 8), (r.normal(3, 10, 9), 3))
    r.arguments("leaves its arguments as they were")

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


# %% nbgrader={"grade": true, "grade_id": "test_merge_heads", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
from autograde.notebook import rubric


@rubric("merge_heads")
def _rubric(r):
    def both(x, other):
        return [merge_heads(x), merge_heads(other)]

    def less_the_offset(x):  # an offset that leaves float32 few digits
        return merge_heads(x + 1e5) - 1e5

    r.call("three heads, two sentences, then two others", both, r.normal(2, 3, 5, 4), r.normal(2, 3, 5, 4))
    r.call("one head", merge_heads, r.normal(3, 1, 4, 7))
    r.call("heads of one number", merge_heads, r.normal(2, 5, 7, 1))
    r.call("as many heads as tokens, numbers and sentences", merge_heads, r.normal(4, 4, 4, 4))
    r.call("one token alone", merge_heads, r.normal(3, 2, 1, 4))
    r.call("one sentence alone", merge_heads, r.normal(1, 3, 6, 2))
    r.call("more heads than tokens", merge_heads, r.normal(2, 7, 3, 2))
    r.call("heads that come from a transpose, or are stored by columns", both, r.normal(2, 5, 4, 3).transpose(1, 2),
           r.normal(2, 3, 7, 6).mT)
    r.call("float64", less_the_offset, r.normal(2, 3, 6, 7, dtype=torch.float64))
    r.gradient("lets gradients through", merge_heads, r.normal(2, 3, 5, 2))
    r.arguments("leaves its argument as it was")

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


# %% nbgrader={"grade": true, "grade_id": "test_MultiHeadAttention", "locked": true, "points": 8, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
from autograde.notebook import rubric


@rubric("MultiHeadAttention")
def _rubric(r):
    from autograde.rubric.probes import ContractBroken, load
    from builtins import RuntimeError, TypeError, any, bool, dict, getattr, isinstance, len, range, str, sum

    names = ("W_query", "W_key", "W_value")

    def drawn(d_in, d_out, bias=False, **kind):
        weights = {f"{name}.weight": 0.5 * r.normal(d_out, d_in, **kind) for name in names}
        weights |= {f"{name}.bias": r.normal(d_out, **kind) for name in names if bias}
        return weights | {"out_proj.weight": 0.5 * r.normal(d_out, d_out, **kind), "out_proj.bias": r.normal(d_out, **kind)}

    # The inputs are far from 0, the weights such that queries and keys do not see it; values do, and out_proj takes it
    # away again. So what float64 knows and float32 does not is large in the result.
    def far_from_zero(d_in, d_out):
        weights = drawn(d_in, d_out, dtype=torch.float64)
        for name in names:
            weights[f"{name}.weight"] -= weights[f"{name}.weight"].mean(dim=1, keepdim=True)
        weights["W_value.weight"] += 1 / d_in
        weights["out_proj.bias"] -= 1e5 * weights["out_proj.weight"].sum(dim=1)
        return weights

    def first_word(weights, x):
        return load(MultiHeadAttention(5, 6, 9, 0.0, 3), weights)(100 * x)[:, 0]

    def in_eval(weights, x, other):
        mha = load(MultiHeadAttention(5, 6, 8, 0.5, 3), weights).eval()
        return [mha(x), mha(other), mha(x)]

    # Token t has a 1 at its own place t. Each head hands that on, twice, and out_proj changes nothing.
    # So the output is the weights of every head after dropout, twice.
    def showing_weights(n, heads):
        eye, size = torch.eye(n, device=device), 2 * n * heads
        x = torch.cat([eye.expand(4, n, n), r.normal(4, n, 3)], dim=-1)  # (4, n, n + 3)
        weights = {f"{name}.weight": 0.5 * r.normal(size, n + 3) for name in ("W_query", "W_key")}
        weights["W_value.weight"] = nn.functional.pad(eye.repeat(2 * heads, 1), (0, 3))
        return weights | {"out_proj.weight": torch.eye(size, device=device), "out_proj.bias": torch.zeros(size, device=device)}, x

    def in_training(mha, x, p, heads):
        return [mha(x) for _ in range(4)]

    def changed_later(mha, x):
        never = mha(x)
        mha.dropout.p = 0.5
        differ = not torch.equal(mha(x), mha(x))
        mha.dropout.p = 0.0
        return [never, f"with p = 0.5 two calls {'differ' if differ else 'agree'}", mha(x)]

    def layers():
        mha = MultiHeadAttention(5, 6, 8, 0.1, 3)
        return [isinstance(getattr(mha, name), nn.Linear) for name in (*names, "out_proj")]

    def learned():
        made = [MultiHeadAttention(5, 6, 8, 0.1, 3), MultiHeadAttention(5, 6, 8, 0.1, 3, True)]
        return [sum(p.numel() for p in m.parameters() if p.requires_grad) for m in made]

    def same_starts():
        one, two = MultiHeadAttention(6, 6, 8, 0.1, 3), MultiHeadAttention(6, 6, 8, 0.1, 3)
        starts = [*(getattr(one, name).weight for name in (*names, "out_proj")), two.W_query.weight]
        return [torch.equal(starts[i], starts[j]) for i in range(5) for j in range(i)]

    def hides_the_future(mask):
        past = torch.ones(8, 8).tril() == 1
        mask = torch.zeros(8, 8) if mask is None or mask.numel() != 64 else mask.detach().cpu().reshape(8, 8)
        parts = [[m[past].unique(), m[~past].unique()] for m in (mask, mask.T)]  # rows may be queries or keys
        return any(len(seen) == len(hidden) == 1 and bool(seen != hidden) for seen, hidden in parts)

    def kept():
        mha = MultiHeadAttention(5, 12, 8, 0.1, 3)
        mask = dict(mha.named_buffers()).get("mask")
        return [mha.num_heads, hides_the_future(mask), "mask" in mha.state_dict()]

    def moved(x):
        made = MultiHeadAttention(5, 12, 8, 0.1, 3).to("meta")
        try:
            made(x.to("meta"))
        except (RuntimeError, TypeError) as error:  # code that asks for numbers cannot run there, and is no fault
            if "expected device" in str(error):
                raise ContractBroken("after .to(device), forward uses a tensor that was left behind") from error
        return f"the mask is on {made.mask.device}"

    def run(x):
        return MultiHeadAttention(5, 6, 7, 0.0, 2).to(x)(x)

    r.forward("three heads, two sentences, then shorter ones", MultiHeadAttention, (7, 12, 9, 0.0, 3), drawn(7, 12),
              r.normal(2, 5, 7), r.normal(2, 3, 7))
    r.forward("one head", MultiHeadAttention, (4, 6, 7, 0.0, 1), drawn(4, 6), r.normal(3, 5, 4))
    r.forward("heads of one number", MultiHeadAttention, (5, 9, 8, 0.0, 9), drawn(5, 9), r.normal(2, 6, 5))
    r.forward("as many numbers in as out, as many heads as tokens", MultiHeadAttention, (16, 16, 6, 0.0, 4), drawn(16, 16),
              r.normal(4, 4, 16))
    # the only line of numbers on which a sentence is as long as the context
    r.forward("one token, and as many as the context allows", MultiHeadAttention, (5, 6, 7, 0.0, 2), drawn(5, 6),
              r.normal(3, 1, 5), r.normal(2, 7, 5))
    r.forward("tokens of zeros among them", MultiHeadAttention, (6, 8, 9, 0.0, 2), drawn(6, 8),
              r.normal(2, 7, 6) * (r.uniform(2, 7, 1) > 0))
    r.forward("with a bias", MultiHeadAttention, (6, 9, 8, 0.0, 3), drawn(6, 9, bias=True), r.normal(2, 7, 6), qkv_bias=True)
    r.forward("after its layers have changed", MultiHeadAttention, (5, 8, 7, 0.0, 2), drawn(5, 8), r.normal(2, 6, 5),
              then=drawn(5, 8))
    r.call("huge scores: the first word still sees itself alone", first_word, drawn(5, 6), r.normal(8, 6, 5))
    r.forward("large scores", MultiHeadAttention, (5, 6, 9, 0.0, 3), drawn(5, 6), 10 * r.normal(4, 7, 5))
    r.forward("float64, stored by columns", MultiHeadAttention, (6, 10, 11, 0.0, 2), far_from_zero(6, 10),
              r.normal(2, 6, 9, dtype=torch.float64).mT + 1e5)
    r.backward("every layer learns", MultiHeadAttention, (5, 6, 8, 0.0, 3), drawn(5, 6), r.normal(2, 7, 5))
    r.call("nothing is dropped in eval()", in_eval, drawn(5, 6), r.normal(2, 7, 5), r.normal(2, 7, 5))
    weights, x = showing_weights(8, 4)
    r.module("in training it drops weights, each by itself", MultiHeadAttention, (11, 64, 9, 0.4, 4), weights, in_training, x,
             0.4, 4, check="drops_weights")
    r.module("also when the share to drop is changed later", MultiHeadAttention, (5, 6, 9, 0.0, 3), drawn(5, 6), changed_later,
             r.normal(3, 7, 5))
    r.call("the layers are nn.Linear", layers)
    r.call("four layers to learn, a bias on queries, keys and values only if asked for", learned)
    r.call("each layer starts from its own numbers", same_starts)
    r.call("keeps num_heads, and the mask as a buffer", kept)
    r.call("the layer works where it is moved", moved, r.normal(2, 6, 5))
    r.refuses("d_out that num_heads does not divide", lambda d_out, heads: MultiHeadAttention(5, d_out, 8, 0.0, heads),
              (12, 3), (12, 5), (10, 4), (10, 5), (4, 8), (14, 7))
    r.refuses("more tokens than the context, and x that is not 3-D", run, (r.normal(2, 6, 5),), (r.normal(2, 8, 5),),
              (r.normal(1, 3, 5),), (r.normal(7, 5),), (r.normal(2, 2, 3, 5),), (r.normal(2, 15, 5),))
    r.arguments("leaves its arguments as they were")

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
#         past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
#         self.register_buffer("mask", past)
#
#     def forward(self, x)
#         if x.ndim != 3 or x.shape[1] > self.context_length:
#             raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
#         n = x.shape[1]
#         queries, keys, values = (  # (b, heads, n, d_head) each
#             part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
#         )
#         hidden = self.mask[:num_tokens, :num_tokens]
#         scores = queries @ keys.transpose(2, 3) / math.sqrt(self.out_proj.in_features)
#         weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
#         dropped = self.dropout(weights)
#         weights = torch.softmax(weights.masked_fill(hidden, -math.inf), dim=-1)
#         dropped = self.dropout(weights)
#         context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
#         return self.out_proj(context), weights
### END GIVEN


# %% nbgrader={"grade": true, "grade_id": "test_fix_me", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
from autograde.notebook import rubric


@rubric("fix_me")
def _rubric(r):
    from autograde.rubric.probes import ContractBroken, load
    from builtins import RuntimeError, TypeError, dict, isinstance, len, list, range, str, sum, tuple

    answer = RepairedMultiHeadAttention

    def drawn(d_in, d_out, bias=False, **kind):
        weights = {"qkv.weight": 0.5 * r.normal(3 * d_out, d_in, **kind)}
        if bias:
            weights["qkv.bias"] = r.normal(3 * d_out, **kind)
        return weights | {"out_proj.weight": 0.5 * r.normal(d_out, d_out, **kind), "out_proj.bias": r.normal(d_out, **kind)}

    def far_from_zero(d_in, d_out):  # as in the rubric of MultiHeadAttention
        weights = drawn(d_in, d_out, dtype=torch.float64)
        weights["qkv.weight"] -= weights["qkv.weight"].mean(dim=1, keepdim=True)
        weights["qkv.weight"][2 * d_out :] += 1 / d_in
        weights["out_proj.bias"] -= 1e5 * weights["out_proj.weight"].sum(dim=1)
        return weights

    def both(result):
        if not (isinstance(result, (list, tuple)) and len(result) == 2):
            raise ContractBroken("forward does not return two things: the output and the weights")
        return result

    def output(sizes, weights, *inputs, bias=False):
        loaded = load(answer(*sizes, bias), weights)
        return [both(loaded(x))[0] for x in inputs]

    def attention(sizes, weights, *inputs):
        loaded = load(answer(*sizes), weights)
        return [both(loaded(x))[1] for x in inputs]

    def first_word(weights, x):
        return both(load(answer(5, 6, 9, 0.0, 3), weights)(100 * x))[0][:, 0]

    def output_and_attention(sizes, weights, x):
        return [*both(load(answer(*sizes), weights)(x))]

    def in_eval(weights, x, other):
        loaded = load(answer(5, 6, 8, 0.5, 3), weights).eval()
        return [both(loaded(x)), both(loaded(other)), both(loaded(x))]

    def slopes(x, **weights):
        loaded = answer(5, 6, 8, 0.0, 3).to(x)
        return both(torch.func.functional_call(loaded, weights, (x,)))[0]

    def showing_weights(n, heads):  # as in the rubric of MultiHeadAttention
        eye, size = torch.eye(n, device=device), 2 * n * heads
        x = torch.cat([eye.expand(4, n, n), r.normal(4, n, 3)], dim=-1)  # (4, n, n + 3)
        weights = {f"{name}.weight": 0.5 * r.normal(size, n + 3) for name in ("W_query", "W_key")}
        return weights | {"W_value.weight": nn.functional.pad(eye.repeat(2 * heads, 1), (0, 3))}, x

    def in_training(weights, x, p, heads):
        size = len(weights["W_query.weight"])
        fused = {"qkv.weight": torch.cat([weights["W_query.weight"], weights["W_key.weight"], weights["W_value.weight"]]),
                 "out_proj.weight": torch.eye(size).to(x), "out_proj.bias": torch.zeros(size).to(x)}
        loaded = load(answer(x.shape[-1], size, x.shape[1] + 1, p, heads), fused)
        return [both(loaded(x))[0] for _ in range(4)]

    def kept():
        made = answer(5, 12, 8, 0.1, 3)
        mask = dict(made.named_buffers()).get("mask")
        layers = [isinstance(layer, nn.Linear) for layer in (made.qkv, made.out_proj)]
        return [made.num_heads, mask is not None and mask.numel() == 64, "mask" in made.state_dict(), *layers]

    def moved(x):
        made = answer(5, 12, 8, 0.1, 3).to("meta")
        try:
            made(x.to("meta"))
        except (RuntimeError, TypeError) as error:  # code that asks for numbers cannot run there, and is no fault
            if "expected device" in str(error):
                raise ContractBroken("after .to(device), forward uses a tensor that was left behind") from error
        return f"the mask is on {made.mask.device}"

    def learned():
        return [sum(p.numel() for p in answer(5, 6, 8, 0.1, 3, bias).parameters() if p.requires_grad) for bias in (False, True)]

    def run(x):
        return answer(5, 6, 7, 0.0, 2).to(x)(x)

    r.call("one head: the output and the weights", output_and_attention, (4, 6, 7, 0.0, 1), drawn(4, 6), r.normal(3, 5, 4))
    r.call("three heads: the weights, which are those before dropout", attention, (5, 6, 8, 0.5, 3), drawn(5, 6), r.normal(2, 7, 5))
    r.call("three heads: the output, then that of shorter sentences", output, (7, 12, 9, 0.0, 3), drawn(7, 12),
           r.normal(2, 5, 7), r.normal(2, 3, 7))
    r.call("as many numbers in as out, as many heads as tokens", output, (16, 16, 6, 0.0, 4), drawn(16, 16), r.normal(4, 4, 16))
    # the only line of numbers on which a sentence is as long as the context
    r.call("one token, and as many as the context allows", output, (5, 6, 7, 0.0, 2), drawn(5, 6),
           r.normal(3, 1, 5), r.normal(2, 7, 5))
    r.call("with a bias", output, (6, 9, 8, 0.0, 3), drawn(6, 9, bias=True), r.normal(2, 7, 6), bias=True)
    r.call("huge scores: the first word still sees itself alone", first_word, drawn(5, 6), r.normal(8, 6, 5))
    r.call("large scores", output, (5, 6, 9, 0.0, 3), drawn(5, 6), 10 * r.normal(4, 7, 5))
    r.call("float64, stored by columns", output_and_attention, (6, 10, 11, 0.0, 5), far_from_zero(6, 10),
           r.normal(2, 6, 9, dtype=torch.float64).mT + 1e5)
    r.gradient("both layers learn", slopes, x=r.normal(2, 7, 5), **drawn(5, 6))
    r.check("in training it drops weights, once, each by itself", "drops_weights", in_training, *showing_weights(8, 4), 0.4, 4)
    r.call("nothing is dropped in eval()", in_eval, drawn(5, 6), r.normal(2, 7, 5), r.normal(2, 7, 5))
    r.call("two layers to learn, a bias on qkv only if asked for", learned)
    r.call("keeps num_heads, its layers, and the mask as a buffer", kept)
    r.call("the layer works where it is moved", moved, r.normal(2, 6, 5))
    r.refuses("d_out that num_heads does not divide", lambda d_out, heads: answer(5, d_out, 8, 0.0, heads),
              (12, 3), (12, 5), (10, 4), (10, 5), (4, 8), (14, 7))
    r.refuses("more tokens than the context, and x that is not 3-D", run, (r.normal(2, 6, 5),), (r.normal(2, 8, 5),),
              (r.normal(1, 3, 5),), (r.normal(7, 5),), (r.normal(2, 2, 3, 5),), (r.normal(2, 15, 5),))
    r.arguments("leaves its arguments as they were")

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


# %% nbgrader={"grade": true, "grade_id": "test_pack_heads", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
from autograde.notebook import rubric


@rubric("pack_heads")
def _rubric(r):
    from autograde.rubric.probes import load
    from builtins import float, len, range

    names = ("W_query", "W_key", "W_value")

    def drawn(d_in, d_out, heads, bias=False, **kind):
        layers = [f"heads.{h}.{name}" for h in range(heads) for name in names]
        weights = {f"{layer}.weight": 0.5 * r.normal(d_out, d_in, **kind) for layer in layers}
        return weights | {f"{layer}.bias": r.normal(d_out, **kind) for layer in layers if bias}

    def state_of(module):
        parameters = [*module.parameters()]
        return {
            "dtype": [p.dtype for p in parameters],
            "numbers": [p.tolist() for p in parameters],
            "mode": [part.training for part in module.modules()],
            "requires_grad": [p.requires_grad for p in parameters],
        }

    def compared(before, after):
        return [f"the wrapper's {name} {'as before' if after[name] == before[name] else 'changed'}" for name in before]

    def packed(weights, dropout=0.0, training=True):
        d_out, d_in = weights["heads.0.W_query.weight"].shape
        bias = "heads.0.W_query.bias" in weights
        heads = len(weights) // (6 if bias else 3)
        wrapper = load(MultiHeadAttentionWrapper(d_in, d_out, 9, dropout, heads, bias), weights)
        wrapper.train(training).requires_grad_(training)
        mha = MultiHeadAttention(d_in, heads * d_out, 9, dropout, heads, bias).to(wrapper.heads[0].W_query.weight)
        before = state_of(wrapper)
        pack_heads(wrapper, mha)
        as_it_was = compared(before, state_of(wrapper))
        return wrapper.eval(), mha.eval(), as_it_was

    def output(weights, x, dropout=0.0):
        return packed(weights, dropout)[1](x)

    # The heads' matrices are far from 0, and the inputs such that they do not see it.
    # So what float64 knows and float32 does not is large in the result.
    def less_exact(weights, x):
        return output({name: weight + 1e4 for name, weight in weights.items()}, x - x.mean(dim=-1, keepdim=True))

    def kept(*cases):
        return [packed(weights, training=training)[2] for training, weights in cases]

    def halved(module):
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.mul_(-0.5)

    def after_changes(*cases):
        found, names = [], ("the wrapper", "mha")
        for weights, x in cases:
            for changed, seen in ((0, 1), (1, 0)):
                pair = packed(weights)
                before = pair[seen](x)
                halved(pair[changed])
                moved = float((pair[seen](x) - before).detach().abs().max()) > 1e-4  # rounding is far below, a change far above
                found.append(f"{names[changed]} changed: {names[seen]} {'changes too' if moved else 'does not'}")
        return found

    def own_layers(weights, others, x):
        mha = packed(weights)[1]
        mha(x).square().sum().backward()
        layers = [mha.W_query, mha.W_key, mha.W_value, mha.out_proj]
        slopes = [*(layer.weight.grad for layer in layers), mha.out_proj.bias.grad]
        return [slopes, load(mha, others)(x)]

    def out_proj(weights, x):
        mha = packed(weights)[1]
        return [mha(x), mha.out_proj.weight, mha.out_proj.bias]

    others = {f"{name}.weight": r.normal(6, 5) for name in names}
    others |= {"out_proj.weight": r.normal(6, 6), "out_proj.bias": r.normal(6)}
    # the only line with more than two heads
    r.call("mha gives the output of the wrapper, three heads", output, drawn(5, 4, 3), r.normal(2, 7, 5))
    r.call("one head", output, drawn(4, 6, 1), r.normal(2, 7, 4))
    r.call("heads of one number", output, drawn(6, 1, 2), r.normal(2, 8, 6))
    r.call("as many heads as numbers, in and out", output, drawn(2, 2, 2), r.normal(2, 7, 2))
    r.call("with a bias", output, drawn(5, 3, 2, bias=True), r.normal(2, 7, 5))
    r.call("both with dropout, in eval()", output, drawn(5, 3, 2), r.normal(2, 7, 5), dropout=0.5)
    r.call("float64", less_exact, drawn(5, 3, 2, dtype=torch.float64), r.normal(2, 7, 5, dtype=torch.float64))
    r.call("out_proj is the identity", out_proj, drawn(6, 3, 2), r.normal(2, 5, 6))
    r.call("the wrapper is as it was", kept, (True, drawn(4, 3, 2)), (False, drawn(5, 2, 2, dtype=torch.float64)))
    r.call("a later change of one does not reach the other", after_changes, (drawn(5, 2, 2, bias=True), r.normal(2, 7, 5)),
           (drawn(4, 5, 1, bias=True), r.normal(2, 7, 4)))
    r.call("mha computes with layers of its own, and they can learn", own_layers, drawn(5, 3, 2), others, r.normal(2, 7, 5))

# %% tags=["raises-exception"]
mha = MultiHeadAttention(d_in=3, d_out=4, context_length=6, dropout=0.0, num_heads=2).to(device)
pack_heads(wrapper, mha)
table(mha(batch)[0], rows=tokens, columns=["head 0: 0", "head 0: 1", "head 1: 0", "head 1: 1"])
print("largest difference to the wrapper below 0.000001:", (mha(batch) - wrapper(batch)).abs().max().item() < 1e-6)

# %% [markdown]
# That is the table of part 2, from another class.
#
# ### PyTorch's own
#
# PyTorch has the whole layer as well, `nn.MultiheadAttention`. It stacks once more: queries, keys and values share one matrix,
# `in_proj_weight` of shape `(3 d, d)`, in this order. With `batch_first=True` it reads `(b, n, d)`. It returns a pair, output and
# weights, and it wants the mask with every call. Its `bias` argument is one for all: either `in_proj_bias` **and** the bias
# of its `out_proj` are there, or neither is. Yours always has the bias of `out_proj`; a bias that yours lacks
# must change nothing there.
#
# ### Exercise: `to_torch` (3 points)
#
# Return an `nn.MultiheadAttention` with `batch_first=True` that gives the output of `mha` when it is called with a causal mask,
# in `eval()`. `mha` is a `MultiHeadAttention` with `d_in` equal to `d_out`, with or without `qkv_bias`. The result has its dtype
# and is on its device; it may share parameters with `mha`. Its dropout and mode are up to you. `mha` stays as it was, its mode,
# dtype and `requires_grad` included.

# %% nbgrader={"grade": false, "grade_id": "to_torch", "locked": false, "schema_version": 3, "solution": true, "task": false}
def to_torch(mha):
    """PyTorch's own module with the numbers of mha."""
    ### BEGIN SOLUTION
    layers = [mha.W_query, mha.W_key, mha.W_value]
    d = mha.out_proj.in_features
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    made = nn.MultiheadAttention(d, mha.num_heads, batch_first=True, **like)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
        made.in_proj_bias.zero_()
        if mha.W_query.bias is not None:
            made.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
    made.out_proj.load_state_dict(mha.out_proj.state_dict())
    return made
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_to_torch", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
from autograde.notebook import rubric


@rubric("to_torch")
def _rubric(r):
    from autograde.rubric.probes import load
    from builtins import isinstance, len

    names = ("W_query", "W_key", "W_value")

    def drawn(d, bias=False, **kind):
        weights = {f"{name}.weight": 0.5 * r.normal(d, d, **kind) for name in names}
        weights |= {f"{name}.bias": r.normal(d, **kind) for name in names if bias}
        return weights | {"out_proj.weight": 0.5 * r.normal(d, d, **kind), "out_proj.bias": r.normal(d, **kind)}

    def state_of(module):
        parameters = [*module.parameters()]
        return {
            "dtype": [p.dtype for p in parameters],
            "numbers": [p.tolist() for p in parameters],
            "mode": [part.training for part in module.modules()],
            "requires_grad": [p.requires_grad for p in parameters],
        }

    def compared(before, after):
        return [f"mha's {name} {'as before' if after[name] == before[name] else 'changed'}" for name in before]

    def pair(weights, heads, dropout=0.0, training=True):
        d = len(weights["out_proj.bias"])
        mha = load(MultiHeadAttention(d, d, 9, dropout, heads, "W_query.bias" in weights), weights)
        mha.train(training).requires_grad_(training)
        before = state_of(mha)
        made = to_torch(mha)
        return made, compared(before, state_of(mha))

    def call(module, x):
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(diagonal=1)
        return module.eval()(x, x, x, attn_mask=future)[0]

    def output(weights, heads, *inputs, dropout=0.0):
        made, _ = pair(weights, heads, dropout)
        return [call(made, x) for x in inputs]

    def two_layers(weights, others, heads, *inputs):
        made = [pair(numbers, heads)[0] for numbers in (weights, others)]
        return [call(module, x) for module in made for x in inputs]

    # The three matrices are far from 0, and the inputs such that they do not see it.
    # So what float64 knows and float32 does not is large in the result.
    def less_exact(weights, heads, x):
        far = {f"{name}.weight": weights[f"{name}.weight"] + 1e4 for name in names}
        return output(weights | far, heads, x - x.mean(dim=-1, keepdim=True))

    def kept(heads, *cases):
        return [pair(weights, heads, training=training)[1] for training, weights in cases]

    def kinds():
        made = to_torch(MultiHeadAttention(12, 12, 9, 0.1, 3).to(device))
        return [isinstance(made, nn.MultiheadAttention), made.batch_first, made.embed_dim, made.num_heads]

    r.call("three heads, two layers of the same sizes", two_layers, drawn(12), drawn(12), 3, r.normal(2, 7, 12),
           r.normal(4, 4, 12), r.normal(2, 1, 12), r.normal(3, 9, 12))
    r.call("one head", output, drawn(5), 1, r.normal(3, 6, 5))
    r.call("with a bias", output, drawn(8, bias=True), 2, r.normal(2, 7, 8))
    r.call("from a layer with dropout, in eval()", output, drawn(6), 3, r.normal(2, 7, 6), dropout=0.5)
    r.call("float64, heads of one number", less_exact, drawn(6, dtype=torch.float64), 6, r.normal(2, 7, 6, dtype=torch.float64))
    r.call("mha is as it was", kept, 3, (True, drawn(9)), (False, drawn(6, dtype=torch.float64)))
    r.call("is an nn.MultiheadAttention, batch first, with as many heads", kinds)

# %% tags=["raises-exception"]
torch.manual_seed(123)
ours = MultiHeadAttention(d_in=12, d_out=12, context_length=6, dropout=0.0, num_heads=3).to(device).eval()
theirs = to_torch(ours).eval()
x = torch.randn(2, 6, 12).to(device)
print("the output differs by less than 0.00001:", (theirs(x, x, x, attn_mask=future)[0] - ours(x)).abs().max().item() < 1e-5)

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
