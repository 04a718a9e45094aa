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
# # The -inf mask: hiding before the softmax
#
# Lesson 02 let the softmax see every score and put zeros into the weights afterwards. That does not leak, but it
# costs precision. In this lesson the mask moves before the softmax. After that come sentences of different lengths,
# and rows in which nothing is left to look at.
#
# **You will be able to**
# - hide scores with minus infinity, and say why nothing of them is left;
# - combine a causal mask with a padding mask for a batch of sentences;
# - say how one row of `nan` ruins a whole model in one step, and prevent it.
#
# **It builds on** lesson 01 (scores, weights, softmax) and lesson 02 (the causal mask).
#
# | part | minutes |
# |---|---|
# | 1 What the softmax loses | 10 |
# | 2 Minus infinity | 15 |
# | 3 The mask moves | 15 |
# | 4 Sentences of different lengths | 15 |
# | 5 A row with nothing to look at | 15 |
# | 6 Zeros instead of `nan` | 15 |
# | 7 What goes wrong in practice, summary | 5 |
#
# *Run cells, fill in exercises, ask `hint`, `why` and `progress()`* as in lesson 01. Float64 in gives float64 out, gradients pass,
# and arguments are left as they were. Scores are `(..., n, n)`: the last two dimensions are queries and keys.
#
# *Opened alone, in a hosted notebook service?* Get the file `attention_notebooks-….whl` from where you got this lesson, put
# it beside the notebook, and run `%pip install attention_notebooks-*.whl` in a new cell above the others.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
import os

import matplotlib.pyplot as plt
import torch
from torch import nn

from autograde.notebook import attention_picture, beside, chart, explore, heatmap, hint, panels, progress, rubric, show, table, why

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


def lesson_01(seed):
    """The three linear layers of lesson 01's SelfAttention_v2(3, 2), from a seed."""
    torch.manual_seed(seed)
    return [nn.Linear(3, 2, bias=False).to(device) for _ in range(3)]


def scores_of(seed, x=inputs):
    """The scores (..., n, n) in that layer of tokens x (..., n, 3)."""
    with torch.no_grad():
        W_query, W_key, _ = lesson_01(seed)
        return W_query(x) @ W_key(x).mT  # mT swaps the last two dimensions


def tril_causal_weights(scores, d_k):
    """Lesson 02: softmax, tril, renormalise; here without the guard, so that 0 / 0 shows."""
    weights = torch.softmax(scores / math.sqrt(d_k), dim=-1).tril()
    return weights / weights.sum(dim=-1, keepdim=True)


# %% [markdown]
# ## 1 What the softmax loses
#
# One row of scores: three visible keys and a hidden one. The hidden score lies above the largest visible one by
# a growing gap. In float16, which models use to save memory, this is what lesson 02's way makes of it.

# %%
def with_gap(gap):
    """Scores (4, 4); row 2 sees keys 0 to 2, and its hidden score lies above them by the gap."""
    scores = torch.zeros(4, 4)
    scores[2] = torch.tensor([0.3, -0.4, 0.1, 0.3 + gap])
    return scores


keys = ["key 0", "key 1", "key 2"]
gaps = [0, 8, 12, 14, 16, 17, 18]
broken = torch.stack([tril_causal_weights(with_gap(gap).half(), 1)[2, :3].float() for gap in gaps])  # (7, 3)
right = torch.softmax(with_gap(0)[2, :3], dim=-1).repeat(len(gaps), 1)  # (7, 3): over visible keys alone
table(broken, rows=[f"gap {gap}" for gap in gaps], columns=keys)

# %% jupyter={"source_hidden": true}
# draws the figure
rows = [str(gap) for gap in gaps]
show(
    panels(
        heatmap(broken, rows, keys, title="softmax, then mask", row_name="gap", column_name="", limits=(0, 0.6), bar=False),
        heatmap(right, rows, keys, title="what it should be", row_name="gap", column_name="", limits=(0, 0.6)),
        size=(5.6, 4.2),
    ),
    "Two heatmaps of the three visible weights, one row for each gap from 0 to 18. On the right every row is 0.43, "
    "0.21 and 0.35. On the left the weights drift from a gap of 12; at 17 they are 0.50, 0.00 and 0.50, at 18 nan.",
)

# %% [markdown]
# The visible scores are the same in every row, so the visible weights should be, too. They are not. At a gap of 8 all
# is well. At 16 two different weights have become equal, at 17 one is lost, and at 18 all three are 0, and 0 / 0 is
# `nan`.
#
# Lesson 02 found the reason. The weights of a row share one whole. The hidden key takes nearly all of it, and what is
# left for the visible ones is too small for float16. Zeros afterwards come too late: the hidden key must get no
# weight in the first place.
#
# ## 2 Minus infinity
#
# Which score gets no weight at all? Not 0: `exp(0)` is 1.
#
# **Predict, then run.** What does the softmax give for the scores 1, 2 and minus infinity?

# %%
my_guess = None  # a list of three numbers

# %%
beside(my_guess, [round(w, 2) for w in torch.softmax(torch.tensor([1.0, 2.0, float("-inf")]), dim=-1).tolist()])
print("exp(-inf) =", torch.tensor(float("-inf")).exp().item())

# %% [markdown]
# `exp(-inf)` is exactly 0. The third key adds nothing to the sum below the fraction bar either: 0.27 and 0.73 are the
# softmax of 1 and 2 alone. It is as if the third key were not there.
#
# So the mask has to say what is *hidden*. Lesson 02's mask had a 1 where a query may look. This one is turned round:
# it is a tensor of True and False, and **True means hidden**.
#
# ```
#            key 0   1   2
# query 0        F   T   T
# query 1        F   F   T        F: may look      T: hidden
# query 2        F   F   F
# ```
#
# ### Exercise: `future_mask` (1 point)
#
# Return this mask for n tokens: bool, True strictly above the diagonal, on the CPU. For n below 1 raise a
# `ValueError` that names n and its value.

# %% nbgrader={"grade": false, "grade_id": "future_mask", "locked": false, "schema_version": 3, "solution": true, "task": false}
def future_mask(n):
    """True where a key is later than the query: (n, n) bool."""
    ### BEGIN SOLUTION
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.ones(n, n, dtype=torch.bool).triu(diagonal=1)
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_future_mask", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
# The rubric of `future_mask`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("future_mask")
def _(r):
    r.idea.each("bool, True strictly above the diagonal", future_mask, (2,), (3,), (r.integer(5, 40),), (r.integer(100, 200),))
    r.call("one token", future_mask, 1)
    r.refuses("raises ValueError when n is below 1", future_mask, (0,), (-r.integer(1, 9),))

# %% tags=["raises-exception"]
mask = future_mask(6).to(device)  # (6, 6)
table(mask, rows=tokens, columns=tokens)
print("hidden in each row:", mask.sum(dim=-1).tolist())

# %% [markdown]
# The table shows 1 for True. *Your* has five keys hidden, *step* none.
#
# ### Exercise: `mask_scores` (2 points)
#
# Put minus infinity where the mask is True, and leave the other scores as they are.
#
# ```
# scores (..., n, n)      mask, bool      result (..., n, n)
# ```
#
# The mask may have any shape that broadcasts to the scores: `(n, n)` for all sentences and heads, `(b, 1, n, n)` for
# b sentences with several heads, `(1, n)` for all queries, `(n, 1)` for all keys. The result has the shape of the
# scores. In Python minus infinity is written `float("-inf")` or `-math.inf`.

# %% nbgrader={"grade": false, "grade_id": "mask_scores", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mask_scores(scores, mask):
    """-inf where mask is True, the score itself elsewhere: same shape as scores."""
    ### BEGIN SOLUTION
    return scores.masked_fill(mask, float("-inf"))
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_mask_scores", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
# The rubric of `mask_scores`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("mask_scores")
def _(r):
    rounded, x = r.normal(4, 4).round(), r.normal(2, 3, 4, 4)
    r.idea.each("-inf where the mask is True, the score elsewhere", mask_scores, (r.normal(3, 3), r.mask(3, 3)), (rounded, r.mask(4, 4)))
    r.each("one mask for all sentences and heads", mask_scores, (r.normal(1, 5, 5), r.mask(5, 5)), (x, r.mask(4, 4)))
    r.each("a mask for each sentence, a mask for each head", mask_scores, (x, r.mask(2, 1, 4, 4)), (x, r.mask(3, 4, 4)), (r.normal(3, 3, 4, 4), r.mask(3, 1, 4, 4)))
    r.each("the same keys for every query, the same queries for every key", mask_scores, (r.normal(5, 5), r.mask(1, 5)), (r.normal(5, 5), r.mask(1, 5).mT))
    r.each("nothing hidden, everything hidden", mask_scores, (r.normal(3, 3), torch.zeros(3, 3) == 1), (r.normal(3, 3), torch.ones(3, 3) == 1))
    r.conventions(r.visible(mask_scores), r.normal(3, 5, 5, dtype=torch.float64), r.mask(5, 5))

# %% tags=["raises-exception"]
masked = mask_scores(scores_of(789), mask)  # (6, 6)
table(masked, rows=tokens, columns=tokens)

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
ends = (-0.47, 0.47)
show(
    panels(
        heatmap(scores_of(789), tokens, tokens, title="All scores", limits=ends, bar=False),
        heatmap(masked, tokens, tokens, title="The future is -inf (hatched)", limits=ends, hidden=masked.isinf()),
        size=(11, 4.6),
    ),
    "Two heatmaps of the scores on one colour scale. Left all 36 scores. Right the 15 scores above the diagonal are "
    "hatched: they are minus infinity. The other 21 are unchanged, some of them close to 0.",
)

# %% [markdown]
# Look at *with*, row 3. Its own score is 0.02, nearly 0, and it is visible. Hidden is not the same as small.
#
# ## 3 The mask moves
#
# ### Exercise: `causal_weights` (3 points)
#
# Mask the future, divide by the square root of `d_k`, softmax over the keys.
#
# ```
# scores (..., n, n), d_k      weights (..., n, n), 0 above the diagonal, rows sum to 1
# ```
#
# In float32 and float64 it must be right, up to rounding, where lesson 02's way is not: for scores up to ±10,000,
# also when the hidden ones are far above the visible ones. Hide as you like. A visible score may be exactly
# 0.

# %% nbgrader={"grade": false, "grade_id": "causal_weights", "locked": false, "schema_version": 3, "solution": true, "task": false}
def causal_weights(scores, d_k):
    """Softmax over the visible keys of scores / sqrt(d_k): (..., n, n) -> (..., n, n)."""
    ### BEGIN SOLUTION
    hidden = future_mask(scores.shape[-1]).to(scores.device)
    return torch.softmax(mask_scores(scores, hidden) / math.sqrt(d_k), dim=-1)
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_causal_weights", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
# The rubric of `causal_weights`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("causal_weights")
def _(r):
    upper, rounded = torch.ones(6, 6).triu(diagonal=1), (2 * r.normal(2, 6, 6)).round()
    r.each("the future masked, scaled by sqrt(d_k), softmax over keys", causal_weights, (2 * r.normal(3, 3), 4), (2 * r.normal(7, 7).round(), 3))
    r.each("a batch, a batch of heads", causal_weights, (2 * r.normal(6, 6, 6), 5), (2 * r.normal(2, 3, 5, 5), 12))
    r.each("one token, a key of one number", causal_weights, (r.normal(2, 1, 1), 6), (r.normal(4, 4), 1))
    r.call("many tokens", causal_weights, r.normal(100, 100), 9)
    r.idea.each("hidden scores 20,000 above the visible, or below", causal_weights, (rounded + 2e4 * upper - 1e4, 1), (rounded - 2e4 * upper + 1e4, 4))
    r.call("scores scattered over ±10,000", causal_weights, 1e4 * r.uniform(3, 7, 7), 64)
    r.conventions(causal_weights, r.normal(2, 6, 6) + 1e3 * upper, 9)

# %% tags=["raises-exception"]
print("seed 789")
table(causal_weights(scores_of(789), 2), rows=tokens, columns=tokens)
print("seed 123")
table(causal_weights(scores_of(123), 2), rows=tokens, columns=tokens)

# %% [markdown]
# The numbers are those of lesson 02, to the last digit shown. What has changed is below: gaps in float32, up to
# 10,000, first the old way and then yours.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
wide = [0, 90, 100, 103, 104, 10000]
old = torch.stack([tril_causal_weights(with_gap(gap), 1)[2, :3] for gap in wide])  # (6, 3)
new = torch.stack([causal_weights(with_gap(gap).to(device), 1)[2, :3] for gap in wide])  # (6, 3)
rows = [str(gap) for gap in wide]
show(
    panels(
        heatmap(old, rows, keys, title="softmax, then mask", row_name="gap", column_name="", limits=(0, 0.6), bar=False),
        heatmap(new, rows, keys, title="yours", row_name="gap", column_name="", limits=(0, 0.6)),
        size=(6.4, 4),
    ),
    "Two heatmaps of the three visible weights in float32 for gaps from 0 to 10,000. Left the old way: off by 0.01 at a "
    "gap of 100, all three 0.33 at 103, nan from 104. Right yours: 0.43, 0.21 and 0.35 in every row.",
)

# %% [markdown]
# The stable softmax of lesson 01 subtracts the largest score of the row. Now that is the largest *visible* one,
# however large the hidden one was. The whole precision is spent on what is visible.
#
# Move the query, and take the mask off and on.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
def picture(query, mask):
    scores = scores_of(789)
    weights = causal_weights(scores, 2) if mask == "on" else torch.softmax(scores / math.sqrt(2), dim=-1)
    row = weights[tokens.index(query)]  # (6,)
    values = lesson_01(789)[2](inputs)  # (6, 2)
    parts = ", ".join(f"{token} {float(w):.2f}" for token, w in zip(tokens, row))
    title = f"What “{query}” attends to, mask {mask}"
    return attention_picture(row, values, tokens, query, title=title, widest=1.0), f"Query {query}, mask {mask}: {parts}."


explore(
    picture,
    alt="For one query, with or without the mask: bars of its six weights, and its values and context vector.",
    query=tokens[1:] + tokens[:1],
    mask=["on", "off"],
)

# %% [markdown]
# Without the mask the star, the context vector, stays in the middle, whoever asks. With it, *Your* has only itself to
# look at, and its star lies on its own value. With each word one more value comes in.
#
# ## 4 Sentences of different lengths
#
# A model works on many sentences at once, in one tensor. All rows of a tensor are equally long, so short sentences
# are filled up with a made-up token, the **pad**. Here its input is three zeros.

# %%
sentences = [tokens, tokens[:3], tokens[4:]]
lengths = [len(sentence) for sentence in sentences]
padded = [sentence + ["pad"] * (6 - len(sentence)) for sentence in sentences]
vector = dict(zip(tokens, inputs), pad=torch.zeros(3, device=device))
batch = torch.stack([torch.stack([vector[word] for word in sentence]) for sentence in padded])  # (3, 6, 3)
for sentence, length in zip(padded, lengths):
    print(f"length {length}:", " ".join(sentence))

# %% [markdown]
# The scores of a pad are exactly 0. That hides nothing: `exp(0)` is 1. Without a mask the pads get their share of
# each row. A real token must not take anything from them.
#
# **Predict, then run.** *One* and *step* in the last sentence give some of their weight to the four pads. How much,
# on average, without any mask, and how much with the causal mask alone?

# %%
my_guess = None  # a pair of numbers from 0 to 1

# %% tags=["raises-exception"]
batch_scores = scores_of(789, batch)  # (3, 6, 6)
unmasked = torch.softmax(batch_scores / math.sqrt(2), dim=-1)[2, :2, 2:].sum(dim=-1).mean().item()
causal_only = causal_weights(batch_scores, 2)  # (3, 6, 6)
beside(my_guess, (round(unmasked, 2), round(causal_only[2, :2, 2:].sum().item(), 2)))
print("what the last pad gives to pads:", round(causal_only[2, 5, 2:].sum().item(), 2))

# %% [markdown]
# When the pads come after the sentence, the causal mask happens to protect the real tokens: pads are in their future.
# It does not protect them in a layer without a causal mask, nor when the pads stand in front. And the pads themselves
# look at pads. So the mask says it outright: **no query looks at a pad.**
#
# ```
#  sentence of length 2, n = 4          key 0   1   pad  pad
#                            query 0        F   T    T    T
#                            query 1        F   F    T    T
#                            pad            F   F    T    T
#                            pad            F   F    T    T
# ```
#
# ### Exercise: `padding_and_causal` (3 points)
#
# Put both masks together for a batch of b sentences. Hidden is the future, and in every row each key at or past the
# sentence's length. For tensors of bool, `|` means *or*.
#
# ```
# lengths: list or 1-D tensor (any integer type) of b numbers, n      mask (b, n, n), bool, True = hidden
# ```
#
# The rows of pads follow the same rule; they are not hidden as a whole. The mask is on the device of a tensor
# `lengths`, on the CPU for a list. A length is from 0 to n; for any other raise a `ValueError` that names it.

# %% nbgrader={"grade": false, "grade_id": "padding_and_causal", "locked": false, "schema_version": 3, "solution": true, "task": false}
def padding_and_causal(lengths, n):
    """True where a key is in the future or a pad: b lengths -> (b, n, n) bool."""
    ### BEGIN SOLUTION
    lengths = torch.as_tensor(lengths)  # (b,)
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError(f"lengths must be from 0 to n = {n}, got {lengths.tolist()}")
    pads = torch.arange(n, device=lengths.device) >= lengths[:, None]  # (b, n)
    return future_mask(n).to(lengths.device) | pads[:, None, :]
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_padding_and_causal", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
# The rubric of `padding_and_causal`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("padding_and_causal")
def _(r):
    length = r.integer(2, 5)
    r.idea.each("hides the future, and keys at or past the length", padding_and_causal, ([2, 1], 3), ([1, length, 7, 3], 7), ([length], 6), ([length, 70], 80))
    r.each("full length, and no token at all", padding_and_causal, ([4, 0], 4), ([6, 0, length, 0], 6))
    r.each("as many sentences as tokens, or more", padding_and_causal, ([1, 3, 2], 3), ([length, 1, 4, 0, 5, 2, 3, 3], 5))
    r.each("a tensor of lengths, int64, int32 or uint8", padding_and_causal, (torch.tensor([length, 3]), 6), (torch.tensor([4, 1, 0], dtype=torch.int32), 5), (torch.tensor([2, 4], dtype=torch.uint8), 5))
    r.refuses("raises ValueError for a length above n or below 0", padding_and_causal, ([4 + length], 5), ([3, 8, 1], 7), (torch.tensor([2, -1]), 4))
    r.unchanged("leaves its arguments as they were")

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
batch_mask = padding_and_causal(lengths, 6).to(device)  # (3, 6, 6)
batch_weights = torch.softmax(mask_scores(batch_scores, batch_mask) / math.sqrt(2), dim=-1)  # (3, 6, 6)
maps = [
    heatmap(part, words, words, title=f"length {length}", hidden=veil, limits=(0, 1), bar=length == lengths[-1])
    for words, length, part, veil in zip(padded, lengths, batch_weights, batch_mask)
]
show(
    panels(*maps, size=(14, 4.6)),
    "Three heatmaps of weights for sentences of length 6, 3 and 2, padded to 6. The future is hatched in all of them. In the second "
    "the last three columns are hatched from top to bottom, in the third the last four: nobody looks at a pad. "
    "The rows of pads divide their weight among the real tokens.",
)

# %% [markdown]
# Follow the columns: those of the pads are hatched from top to bottom. The rows of the pads still hold weights.
# Nobody asks for their context vectors, so they do no harm. But they must hold *something*, and that is the next
# problem.
#
# ## 5 A row with nothing to look at
#
# A length of 0 is a blank line in a file of text. Every key of it is a pad, so every row is hidden altogether. It
# also happens with padding in front: the first pad sees nothing before it, and is itself a pad. Forgetting
# `diagonal=1` does it to the first word.
#
# **Predict, then run.** What is the softmax of three scores of minus infinity?

# %%
my_guess = None  # a list of three numbers

# %%
beside(my_guess, torch.softmax(torch.full((3,), float("-inf")), dim=-1).tolist())

# %% [markdown]
# The largest score of the row is minus infinity, and -inf minus -inf is `nan`. It looks harmless: one row, of a pad,
# for which nobody asks. A loss that leaves this row out is a decent number. But look at the gradients. Below, row 0
# is hidden altogether, and the loss is one weight of row 1.
#
# There are two ways to hide. You fill the scores. Many programs keep the mask as numbers instead, 0 where visible and
# -inf where hidden, and add it. The weights are the same.

# %%
def added(scores, mask):
    return torch.softmax(scores + torch.zeros_like(scores).masked_fill(mask, float("-inf")), dim=-1)


def filled(scores, mask):
    return torch.softmax(torch.where(mask, float("-inf"), scores), dim=-1)


two_rows = torch.tensor([[True, True, True], [False, False, True]])  # (2, 3), row 0 is hidden altogether
for way in (added, filled):
    some_scores = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], requires_grad=True)
    loss = way(some_scores, two_rows)[1, 0]  # nothing of row 0 is in it
    loss.backward()
    print(f"{way.__name__}: the loss is {loss.item():.2f}, the gradients at the scores are")
    table(some_scores.grad, rows=["row 0", "row 1"], columns=["key 0", "key 1", "key 2"])

# %% [markdown]
# The gradient that arrives at the weights of row 0 is 0. On the way back through the softmax it is multiplied by
# these weights, and 0 times `nan` is `nan`. An added mask hands that on to the scores. A fill has chosen -inf instead
# of the score, so nothing goes back to it.
#
# Now a whole layer, on a sentence with one pad in front. It is the layer of lesson 01, with a fourth matrix that turns
# context vectors back into three numbers, and learns to give out its own input. The loss **leaves the pad's row
# out**. You have seen such training in lesson 01; the code is folded.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# the layer and its training
front = ["pad", *tokens[1:]]
x = inputs.clone()
x[0] = 0  # the pad
front_mask = future_mask(6).to(device).clone()
front_mask[:, 0] = True  # (6, 6): the future and the pad; row 0 is hidden altogether


def attend(matrices, weights_of, mask):
    """Weights (6, 6) and loss of a small layer on the padded sentence; the pad's row does not count."""
    W_query, W_key, W_value, W_out = matrices
    weights = weights_of((x @ W_query.T) @ (x @ W_key.T).T / math.sqrt(4), mask)
    output = weights @ (x @ W_value.T) @ W_out.T  # (6, 3)
    return weights, (output - x)[1:].square().mean()


def train(weights_of, steps):
    """Train the layer; return its four matrices, 12 numbers each, and the losses."""
    torch.manual_seed(123)
    layers = [nn.Linear(3, 4, bias=False).to(device) for _ in range(3)] + [nn.Linear(4, 3, bias=False).to(device)]
    matrices = [layer.weight for layer in layers]
    optimizer = torch.optim.Adam(matrices, lr=0.02)
    losses = []
    for _ in range(steps):
        _, loss = attend(matrices, weights_of, front_mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [matrix.detach() for matrix in matrices], losses


def count_nan(matrices):
    return sum(int(matrix.isnan().sum()) for matrix in matrices)


# %% [markdown]
# **Predict, then run.** Of the six rows of weights one is `nan`, and the loss does not look at it. After one step,
# with the mask added, how many of the layer's 48 numbers are `nan`?

# %%
my_guess = None  # a number from 0 to 48

# %% tags=["raises-exception"]
table(added(scores_of(789, x), front_mask), rows=front, columns=front)
beside(my_guess, count_nan(train(added, 1)[0]))
print(f"the loss of that step: {train(added, 1)[1][0]:.2f}")

# %% [markdown]
# All of them, while the loss is a decent number. The gradient of a matrix is a sum over all rows, so one row of `nan`
# is enough. The figure shows the four matrices before and after, for both ways to hide.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
names = ["W_query", "W_key", "W_value", "W_out"]
states = {
    "before": train(added, 0)[0],
    "mask added, one step": train(added, 1)[0],
    "mask filled in, one step": train(filled, 1)[0],
    "mask filled in, two steps": train(filled, 2)[0],
}
maps = []
for state, matrices in states.items():
    numbers = torch.stack([matrix.flatten() for matrix in matrices])  # (4, 12)
    maps.append(heatmap(numbers, names, None, title=f"{state}: {count_nan(matrices)} of 48 are nan", row_name="",
                        column_name="number", limits=(-0.6, 0.6), bar=False))
show(
    panels(*maps, size=(7.5, 10), in_a_row=1),
    "Four heatmaps, one row a matrix of the layer and one column a number. Before, all 48 numbers are there. With the mask added, "
    "all 48 are nan after one step. With the mask filled in, W_value and W_out are nan after one step, 24 numbers, "
    "and all four matrices after two.",
)

# %% [markdown]
# A fill is kinder for one step. No gradient reaches a hidden score, so `W_query` and `W_key` are spared. `W_value` and
# `W_out` are not: they meet the `nan` weights themselves. After the second step they are gone as well. There is no way back. Nothing was printed, nothing raised, and
# the first loss looked fine.
#
# Would a large finite number be better than minus infinity? People write `-1e9`. With it such a row has no `nan`.

# %%
three = torch.full((3,), -1e9)
print("float32, a row of -1e9:", [round(w, 2) for w in torch.softmax(three, dim=-1).tolist()])
try:
    torch.zeros(3).half().masked_fill(torch.tensor([True, False, False]), -1e9)
except RuntimeError as error:
    print("float16, filled with -1e9: RuntimeError,", "overflow" if "overflow" in str(error) else error)

# %% [markdown]
# The row is not `nan`, but it gives every hidden key an equal share. And in float16 there is no -1e9. The type ends
# at -65,504. So people take a number nearer to 0. That goes wrong, too:

# %%
visible_scores = [0.0, -10.0, -100.0]
fills = [-5.0, -10.0, -100.0, -65504.0]
shares = [
    [torch.softmax(torch.tensor([score] + 5 * [fill]), dim=-1)[1:].sum().item() for fill in fills]
    for score in visible_scores
]
print("what five hidden keys get together, beside one visible key")
table(torch.tensor(shares), rows=[f"visible score {s:g}" for s in visible_scores], columns=[f"fill {f:g}" for f in fills])

# %% [markdown]
# A small finite fill still attends. It hides a key only where the visible scores lie far above it. In the second row
# a fill of -10 hides nothing: six equal scores, and five sixths go to what should be hidden. If a finite number is
# needed, take the lowest the type has, and only for rows with something visible.
#
# `torch.finfo(dtype).min` is that number.

# %% tags=["raises-exception"]
for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
    print(f"{str(dtype):>14}  {torch.finfo(dtype).min:.5g}")
lowest = torch.full((6, 6), torch.finfo(torch.float32).min, device=device)
share = torch.softmax(torch.where(front_mask, lowest, scores_of(789, x)), dim=-1)
print("the pad's row, filled with the lowest number:", [round(w, 2) for w in share[0].tolist()])

# %% [markdown]
# So the lowest finite number hides as well as minus infinity does, as long as something is visible. Where nothing is,
# the pad gives a sixth of its weight to every token, the whole future included. No `nan` is left to tell you. Neither
# number is the answer for such a row.
#
# ## 6 Zeros instead of `nan`
#
# A query that may look at nothing should get nothing: a row of zeros, and a context vector of zeros. And no gradient
# should come back to its scores.
#
# ### Exercise: `masked_softmax` (5 points, a challenge)
#
# ```
# scores (..., n, n)      mask, bool, True = hidden      weights (..., n, n)
# ```
#
# The softmax over the visible keys, over the last dimension, without a scale. A row with every entry hidden gives
# zeros. The gradient at every hidden score, in any row, is 0, not `nan`. The mask may have any shape `mask_scores`
# takes; scores are as in `causal_weights`.
#
# Where a *visible* score is `nan`, the visible entries of its row are `nan` too: a guard must not hide a failure, so
# `nan_to_num` at the end is no answer. It is simplest when no `nan` arises at all.

# %% nbgrader={"grade": false, "grade_id": "masked_softmax", "locked": false, "schema_version": 3, "solution": true, "task": false}
def masked_softmax(scores, mask):
    """Softmax over the visible keys; zeros where a row has none: (..., n, n) -> (..., n, n)."""
    ### BEGIN SOLUTION
    mask = mask.expand(scores.shape)
    empty = mask.all(dim=-1, keepdim=True)  # (..., n, 1)
    weights = torch.softmax(scores.masked_fill(mask & ~empty, float("-inf")), dim=-1)
    return weights.masked_fill(empty, 0.0)
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_masked_softmax", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
# The rubric of `masked_softmax`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("masked_softmax")
def _(r):
    hidden, x, big = r.mask(6, 6, empty_rows=True), 2 * r.normal(2, 3, 4, 4), r.mask(8, 8)
    rounded, part = (2 * r.normal(2, 6, 6)).round(), torch.ones(4, 4).triu(diagonal=1) == 1
    part[1] = True
    spoiled = r.normal(2, 4, 4) + 200 * part
    spoiled[r.integer(0, 1), 3, r.integer(0, 3)] = float("nan")
    r.each("softmax over the visible keys", masked_softmax, (2 * r.normal(3, 3).round(), r.mask(3, 3)), (2 * r.normal(8, 8) + 200 * big, big))
    r.each("any mask that broadcasts", masked_softmax, (x, r.mask(4, 4)), (x, r.mask(2, 1, 4, 4)), (x, r.mask(3, 4, 4)), (2 * r.normal(3, 3, 4, 4), r.mask(3, 1, 4, 4)), (r.normal(4, 6), r.mask(1, 6)), (r.normal(2, 6, 4), r.mask(1, 6).mT))
    r.idea.each("a row with everything hidden gives zeros, a row with a visible nan does not", masked_softmax, (r.normal(2, 3), torch.ones(2, 3) == 1), (r.normal(6, 6), hidden), (spoiled, part))
    r.call("where a visible score is nan, the visible weights of its row are nan", r.visible(masked_softmax), spoiled.mT, part.mT)
    r.each("hidden scores 20,000 above the visible, visible ones at ±10,000", masked_softmax, (rounded + torch.where(hidden, 1e4, -1e4), hidden), ((1e4 * r.uniform(3, 5, 5)).round(), r.mask(5, 5)))
    r.call("float64 in, float64 out, for any layout in memory", masked_softmax, r.normal(2, 6, 6, dtype=torch.float64).mT, hidden)
    r.gradient("gradients pass; at every hidden score, in any row, the gradient is 0", masked_softmax, r.normal(2, 6, 6) + 200 * hidden, hidden)
    r.unchanged("leaves its arguments as they were")

# %% [markdown]
# Now the small layer again, same sentence, same pad, with your softmax.

# %% tags=["raises-exception"]
matrices, losses = train(masked_softmax, 400)
print("nan after 400 steps:", count_nan(matrices), "of 48")
print(f"loss at first: {losses[0]:.2f}    at last: {losses[-1]:.2f}")

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
def training_chart(losses, ruined, weights):
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    left.plot(losses, color="#1f6f8b")
    left.text(len(losses), losses[-1] + 0.012, "masked_softmax", color="#1f6f8b", ha="right")
    left.plot(range(len(ruined)), ruined, "x", color="#b5541c", markersize=9, markeredgewidth=2)
    left.annotate(f"softmax of -inf:\nnan after {len(ruined)} step", (0, ruined[0]), (30, ruined[0] - 0.03), color="#b5541c")
    left.set(xlabel="step", ylabel="loss", ylim=(0, None), title="The layer learns")
    weights.on(right)
    return figure


trained, _ = attend(matrices, masked_softmax, front_mask)  # (6, 6)
ruined = [loss for loss in train(filled, 400)[1] if not math.isnan(loss)]
trained_map = heatmap(trained, front, front, title="Its weights: the pad's row is empty", hidden=front_mask, limits=(0, 1))
show(
    chart(training_chart, losses, ruined, trained_map),
    "Left the loss over 400 steps: with masked_softmax it falls to nearly 0; with the softmax of minus infinity there is one point, then nan. "
    "Right a heatmap of the trained weights: the row and the column of the pad are hatched, the other rows add up to 1.",
)

# %% [markdown]
# The layer has learned its one sentence by heart. Its weights show how: *with*, *one* and *step* give most of theirs
# to a single key. A mask can also ask what that is worth. Hide from each of the last four queries the one key it
# likes best, and compute the loss again.

# %% tags=["raises-exception"]
favourites = attend(matrices, masked_softmax, front_mask)[0].argmax(dim=-1)  # (6,)
harder = front_mask.clone()
harder[torch.arange(2, 6), favourites[2:]] = True
print(f"loss: {attend(matrices, masked_softmax, front_mask)[1].item():.2f}")
print(f"loss without the favourite keys: {attend(matrices, masked_softmax, harder)[1].item():.2f}")

# %% [markdown]
# ## 7 What goes wrong in practice
#
# Five mistakes that people really make, each on the scores of our sentence, rounded to one decimal. Only two show up
# as `nan`.
#
# - **`triu` without `diagonal=1`.** The diagonal is hidden too, and the first row has nothing to look at.
# - **The result is dropped.** `masked_fill` returns a new tensor. As a line of its own it does nothing.
# - **The mask is made of scores**: `scores.triu(diagonal=1).bool()`. A score that is exactly 0 is False, and stays
#   visible.
# - **The mask is multiplied by -inf** and added. 0 times -inf is `nan`, so every visible score is `nan`.
# - **A mask of 0 and 1 is added.** It raises the hidden scores by 1. With the sign turned it would still be only a
#   weak bias.

# %%
def no_diagonal(scores):
    return scores.masked_fill(torch.ones_like(scores).triu() == 1, float("-inf"))


def result_dropped(scores):
    scores.masked_fill(torch.ones_like(scores).triu(diagonal=1) == 1, float("-inf"))
    return scores


def mask_of_scores(scores):
    return scores.masked_fill(scores.triu(diagonal=1).bool(), float("-inf"))


def times_inf(scores):
    return scores + torch.ones_like(scores).triu(diagonal=1) * float("-inf")


def ones_added(scores):
    return scores + torch.ones_like(scores).triu(diagonal=1)


rounded = scores_of(789).round(decimals=1)  # some are exactly 0
mistakes = {
    wrong.__name__: torch.softmax(wrong(rounded) / math.sqrt(2), dim=-1)
    for wrong in (no_diagonal, result_dropped, mask_of_scores, times_inf, ones_added)
}
for name, weights in mistakes.items():
    future = int((weights.triu(diagonal=1) > 0).sum())
    print(f"{name:>14}: {future:>2} of 15 future weights are above 0, {int(weights.isnan().sum()):>2} of 36 weights are nan")

# %% jupyter={"source_hidden": true}
# draws the figure
maps = [heatmap(weights, None, None, title=name, limits=(0, 1), bar=False) for name, weights in mistakes.items()]
show(
    panels(*maps, size=(10, 7), in_a_row=3),
    "Five heatmaps of weights, one for each mistake. Without diagonal=1 the first row is nan. With the dropped result and the "
    "added ones all 36 weights are there. With the mask made of scores, some future weights are left. With "
    "the product by minus infinity every row is nan.",
)

# %% [markdown]
# Two quick tests find all five: the weights above the diagonal are 0, and each row adds up to 1.
#
# ## Summary
#
# - A score of **minus infinity** gets a weight of exactly 0, and the softmax spends its precision on the visible keys
#   alone.
# - Here **True means hidden**. Other code means the opposite: look before you use a mask.
# - A **padding mask** hides whole columns, a causal mask a triangle. Put together with `|`, they serve a batch of any
#   lengths.
# - A row with **everything hidden** is `nan`. Left in, it reaches every parameter, even when the loss leaves that row
#   out.
# - A **finite fill** must be the lowest number of its type. It avoids the `nan`, but a row with everything hidden
#   then attends to everything.
#
# **A loose end.** The layer of part 6 leans on a few keys, and without them it is lost. A layer that had to do
# without some keys now and then could not lean on them like that. Lesson 04 takes weights away at random.
#
# ## Further reading
#
# - Vaswani et al., *Attention Is All You Need*, 2017, section 3.2.3: illegal connections are set to minus infinity
#   before the softmax.
# - Micikevicius et al., *Mixed Precision Training*, 2018, section 3: what float16 can hold and what it loses.
