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
# A trained model answers a question correctly when it reads one story. Give it the same story in a batch, beside
# longer ones, and it says the opposite. Nothing in the model has changed; the mask is wrong. In this lesson you
# write a mask that hides a score completely, use it for sentences of different lengths, and deal with a row that
# has nothing left to look at. At the end your code runs inside the model, and the answer is right again.
#
# **You will be able to**
# - hide scores with minus infinity, and say why nothing of them is left;
# - combine a causal mask with a padding mask for a batch of sentences;
# - explain how one row of `nan` ruins a whole model, and prevent it without hiding other failures.
#
# **It builds on** lesson 01 (scores, weights, softmax) and lesson 02 (the causal mask).
#
# | part | minutes, estimated |
# |---|---|
# | 1 A model that changes its mind | 8 |
# | 2 Minus infinity | 12 |
# | 3 The mask moves | 12 |
# | 4 Sentences of different lengths | 13 |
# | 5 A row with nothing to look at | 10 |
# | 6 Zeros instead of `nan` | 15 |
# | 7 What goes wrong in practice, summary | 10 |
# | total | 80 |
#
# *Run cells, solve exercises, and ask for `hint`, `why` and `progress()`* as in lesson 01. A function of scores
# returns float64 for float64, lets gradients through, and leaves its arguments unchanged. Scores are `(..., n, n)`: the last two
# dimensions are queries and keys.
#
# *Using Colab or another hosted service?* Get the file `attention_notebooks-….whl` from where you
# got the lesson, put it beside the notebook, and run `%pip install attention_notebooks-*.whl` in a new cell above
# the others.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
import os

import torch
from torch import nn

from autograde.notebook import beside, case, explore, heatmap, hint, panels, progress, rubric, show, table, why
from autograde.notebook.course_model import attention_of, begin, course_model, model_card, next_words
from autograde.notebook.language import END, VOCABULARY, decode, encode, stories
from autograde.notebook.training import pairs

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
# ## 1 A model that changes its mind
#
# The course's model has read thousands of small stories. In its world a bat in a cave is an animal, and a bat in
# the gym is a piece of wood. The model reads everything up to some word and gives a probability to every word that may
# come next.

# %%
model = course_model()
texts = [
    "Mia is in the cave . she sees a bat . is it alive ?",
    "Anna has a hat . Max has a cake . he eats it downstairs . she",
    "Tom has two kites . Lucy has a cake . she's inside . he flies them outside . where is Lucy ? she's",
]
words = [begin(text) for text in texts]  # the model reads <end> before the first word
for each in words:
    likely = next_words(model, each)
    first = next(iter(likely))
    print(" ".join(each[1:]), "→", first, f"{likely[first]:.3f}")

# %% [markdown]
# All three are right. Nobody wants to wait for one story at a time, so programs put many into one tensor, a **batch**. All rows of a tensor are
# equally long. Short stories are filled up with a token that is not part of the story, the **pad** (here `<end>` again, as often as needed). Here the
# pads stand in front: the model writes after the last word, and so all last words line up.
#
# The folded cell builds the batch and runs the model's two layers step by step, with a mask that you hand it. Real
# words keep the positions that they have without pads. The mask is that of lesson 02 and nothing more: a query does not
# see the future, but it does see the pads.

# %% jupyter={"source_hidden": true}
# a batch of stories, and the model's layers with a mask of your own
lengths = [len(each) for each in words]
longest = max(lengths)
padded_words = [["pad"] * (longest - len(each)) + each for each in words]
ids = torch.tensor([encode([END] * (longest - len(each)) + each) for each in words])  # (3, n)
pad = torch.tensor([[word == "pad" for word in each] for each in padded_words])  # (3, n), True = a pad
places = (~pad).cumsum(dim=-1).sub(1).clamp(min=0)  # (3, n): real words have the positions that they have alone
not_yet = torch.arange(longest)[None, :] > torch.arange(longest)[:, None]  # (n, n), True = the future


def added(scores, hidden):
    """Softmax of the scores, with -inf added where hidden is True."""
    bias = torch.zeros(hidden.shape, device=hidden.device)
    bias[hidden] = -math.inf
    return torch.softmax(scores + bias, dim=-1)


@torch.no_grad()
def think(ids, places, hidden, weights_of):
    """Next-word probabilities (b, n, v), and the weights of both layers, (b, 4, n, n) each.

    weights_of(scores, hidden) gets scores (b, 4, n, n) and hidden (b, 1, n, n).
    """
    x = model.token_embedding(ids) + model.position_embedding(places)  # (b, n, 48)
    maps = []
    for block in model.layers():
        heads, y = block.attention, block.norm1(x)
        queries, keys, values = (heads.split(W(y)) for W in (heads.W_query, heads.W_key, heads.W_value))  # (b, 4, n, 12)
        weights = weights_of(queries @ keys.mT / math.sqrt(12), hidden[:, None])
        maps.append(weights)
        x = x + heads.out_proj((weights @ values).transpose(1, 2).flatten(2))
        x = x + block.feed_forward(block.norm2(x))
    return model.head(model.norm(x)).softmax(dim=-1), maps


def say(chances):
    """For each story the likeliest next word and its probability."""
    for each, last in zip(words, chances[:, -1]):
        word = VOCABULARY[int(last.argmax())]
        print(f"{' '.join(each[-4:]):>22} → {word if last.isfinite().all() else 'nan':<7} {last.max().item():.3f}")


# %% [markdown]
# **Predict, then run.** When the model reads the first story alone, it gives *yes* a probability of 0.999. What does it
# give to *yes* in the batch, where eight pads stand before the story?

# %%
my_guess = None  # a number from 0 to 1

# %%
seeing_pads, maps = think(ids, places, not_yet.expand(3, longest, longest), added)
beside(my_guess, round(seeing_pads[0, -1, encode(["yes"])[0]].item(), 2))

# %%
say(seeing_pads)

# %% jupyter={"source_hidden": true}
# draws the figure
count = longest - lengths[0]  # pads before the first story
with torch.no_grad():
    alone = model.attention_weights(torch.tensor([encode(words[0])]))[1, 0, 3, -1]  # head 4 of layer 2, the last word
beside_others = maps[1][0, 3, -1]  # (n,)
in_batch = torch.cat([beside_others[:count].sum()[None], beside_others[count:]])  # all pads in one cell
rows = torch.stack([torch.cat([torch.zeros(1), alone]), in_batch])  # (2, 1 + words)
nobody = torch.zeros(rows.shape) == 1
nobody[0, 0] = True
show(
    panels(
        heatmap(rows, ["alone", "in a batch"], [f"{count} pads", *words[0]], title="What the last “?” looks at, head 4 of layer 2",
                row_name="", hidden=nobody, limits=(0, 0.6)),
        size=(9.5, 2.6),
    ),
    "A heatmap of two rows, one column for all pads together and one for each word of the story. Alone, the question mark looks most at "
    "she, with 0.36. In the batch more than half of its weight lies on the eight pads.",
)

# %% [markdown]
# It now says *no*, with a probability of 0.915. In the head of the figure, the last question mark spends more than half of its weight on tokens that
# are not part of the story. It is one of eight heads, and all of them see the pads. The second story has pads too and keeps its answer; the third is
# the longest and has none. The model and the question are the same, and the answer differs, only because of the stories beside it.
#
# The pads have to be hidden. Lesson 02 put zeros into the weights after the softmax, and you have seen where that
# fails: a hidden key takes nearly the whole of a row, and what is left for the visible ones underflows. A hidden
# key must get no weight in the first place.
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

# %%
print("the softmax of 1 and 2:", [round(w, 2) for w in torch.softmax(torch.tensor([1.0, 2.0]), dim=-1).tolist()])
print("exp(-inf) =", torch.tensor(float("-inf")).exp().item())

# %% [markdown]
# `exp(-inf)` is exactly 0. The third key adds nothing to the sum either: the other two share the row as if it were
# not there.
#
# From here on a mask says what is *hidden*. Lesson 02's mask had a 1 where a query may look. This one holds True and
# False, and **True means hidden**.
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
# `ValueError`.

# %% nbgrader={"grade": false, "grade_id": "future_mask", "locked": false, "schema_version": 3, "solution": true, "task": false}
def future_mask(n):
    """True where a key is later than the query: (n, n) bool."""
    ### BEGIN SOLUTION
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.ones(n, n, dtype=torch.bool).triu(diagonal=1)
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_future_mask", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("future_mask")  # the contract as a checklist; open this cell to read it
def _(r):
    r.idea.each("bool, True strictly above the diagonal", future_mask, (2,), (3,), (r.integer(5, 40),), (r.integer(100, 200),))
    r.call("one token", future_mask, 1)
    r.refuses("raises ValueError when n is below 1", future_mask, (0,), (-r.integer(1, 9),))

# %% tags=["raises-exception"]
mask = future_mask(6).to(device)  # (6, 6)
table(mask, rows=tokens, columns=tokens)  # 1 is True

# %% [markdown]
# ### Exercise: `mask_scores` (2 points)
#
# Put minus infinity where the mask is True, and leave the other scores as they are.
#
# ```
# scores (..., n, n)      mask, bool      result (..., n, n)
# ```
#
# The mask may have any shape that broadcasts to the scores: `(n, n)` for all sentences and heads, `(b, 1, n, n)` for
# b sentences with several heads, `(1, n)` to hide the same keys from every query, `(n, 1)` to hide every key from some
# queries. The result has the shape of the
# scores. In Python minus infinity is written `float("-inf")` or `-math.inf`.

# %% nbgrader={"grade": false, "grade_id": "mask_scores", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mask_scores(scores, mask):
    """-inf where mask is True, the score itself elsewhere: same shape as scores."""
    ### BEGIN SOLUTION
    return scores.masked_fill(mask, float("-inf"))
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_mask_scores", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("mask_scores")  # the contract as a checklist; open this cell to read it
def _(r):
    rounded, x = r.normal(4, 4).round(), r.normal(2, 3, 4, 4)
    r.idea.each("-inf where the mask is True, the score elsewhere", mask_scores, (r.normal(3, 3), r.mask(3, 3)), (rounded, r.mask(4, 4)))
    r.each("one mask for all sentences and heads, one for each sentence, one for each head", mask_scores, (r.normal(1, 5, 5), r.mask(5, 5)), (x, r.mask(4, 4)), (x, r.mask(2, 1, 4, 4)), (x, r.mask(3, 4, 4)), (r.normal(4, 4, 3, 3), r.mask(4, 1, 3, 3)), (r.normal(3, 3, 4, 4), r.mask(3, 4, 4)))
    r.each("the same keys for every query, the same queries for every key", mask_scores, (r.normal(5, 5), r.mask(1, 5)), (r.normal(5, 5), r.mask(1, 5).mT))
    r.each("nothing hidden, everything hidden", mask_scores, (rounded, torch.zeros_like(rounded) == 1), (rounded, torch.ones_like(rounded) == 1))
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
    "Two heatmaps of the scores of the six tokens on one colour scale. Left all 36 scores. Right the 15 scores above the "
    "diagonal are hatched: they are minus infinity. The other 21 are unchanged, some of them close to 0.",
)

# %% [markdown]
# Look at *with*, the fourth row. Its own score is 0.02, nearly 0, and it is visible. Hidden is not the same as small.
#
# ## 3 The mask moves
#
# In lesson 02 the mask came after the softmax. Now it comes before, and no row has to be renormalised.
#
# ### Exercise: `causal_weights` (3 points)
#
# Mask the future, divide by the square root of `d_k`, softmax over the keys.
#
# ```
# scores (..., n, n), d_k      weights (..., n, n), 0 above the diagonal, rows sum to 1
# ```
#
# It must be right, up to rounding, where lesson 02's way is not: for scores up to ±10,000 in float32 and float64,
# also when the hidden ones lie far above the visible ones. How you hide is up to you. Any score, visible or hidden, may be exactly 0.

# %% nbgrader={"grade": false, "grade_id": "causal_weights", "locked": false, "schema_version": 3, "solution": true, "task": false}
def causal_weights(scores, d_k):
    """Softmax over the visible keys of scores / sqrt(d_k): (..., n, n) -> (..., n, n)."""
    ### BEGIN SOLUTION
    hidden = future_mask(scores.shape[-1]).to(scores.device)
    return torch.softmax(mask_scores(scores, hidden) / math.sqrt(d_k), dim=-1)
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_causal_weights", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("causal_weights")  # the contract as a checklist; open this cell to read it
def _(r):
    rounded = (2 * r.normal(2, 6, 6)).round()
    upper = torch.ones_like(rounded).triu(diagonal=1)
    r.each("the future masked, scaled by sqrt(d_k), softmax over keys", causal_weights, (2 * r.normal(3, 3), 4), (2 * r.normal(7, 7).round(), 3))
    r.each("a batch, a batch of heads", causal_weights, (2 * r.normal(6, 6, 6), 5), (2 * r.normal(2, 3, 5, 5), 12))
    r.each("one token, a key of one number", causal_weights, (r.normal(1, 1, 1), 6), (r.normal(4, 4), 1))
    r.call("many tokens, keys of many numbers", causal_weights, 9 * r.normal(100, 100), 1024)
    r.idea.each("scores exactly 0; hidden ones 20,000 above the visible, or below", causal_weights, (rounded, 4), (rounded + 2e4 * upper - 1e4, 1), (rounded - 2e4 * upper + 1e4, 4))
    r.call("scores scattered over ±10,000", causal_weights, 1e4 * r.uniform(3, 7, 7), 64)
    r.conventions(causal_weights, r.normal(2, 6, 6) + 1e3 * upper, 9)

# %% tags=["raises-exception"]
print("seed 789")
table(causal_weights(scores_of(789), 2), rows=tokens, columns=tokens)
print("seed 123")
table(causal_weights(scores_of(123), 2), rows=tokens, columns=tokens)

# %% [markdown]
# For these scores the numbers are those of lesson 02, to the last digit shown. Now take one row with three visible keys, and let the hidden score
# rise above them. `tril_causal_weights` sees it, yours does not. *Pure* float16 and bfloat16 mean that scores and weights are stored in that type.
# (Mixed precision on a GPU keeps the weights in float32.) If your answer hides with a number such as -1e9, float16 cannot hold it, and the cell ends
# with an error; part 5 comes back to that.

# %% tags=["raises-exception"]
def with_gap(gap):
    """Scores (4, 4); row 2 sees keys 0 to 2, and its hidden score lies above them by the gap."""
    scores = torch.zeros(4, 4)
    scores[2] = torch.tensor([0.3, -0.4, 0.1, 0.3 + gap])
    return scores


def error_of(weights_of, gap, dtype):
    """The largest error of the three visible weights."""
    right = torch.softmax(with_gap(0)[2, :3], dim=-1)
    return (weights_of(with_gap(gap).to(dtype), 1)[2, :3].float() - right).abs().max()


gaps = [0, 10, 17, 18, 90, 100, 104, 10000]
ways = {
    "lesson 02, pure float16": (tril_causal_weights, torch.float16),
    "lesson 02, pure bfloat16": (tril_causal_weights, torch.bfloat16),
    "lesson 02, float32": (tril_causal_weights, torch.float32),
    "yours, float32": (causal_weights, torch.float32),
    "yours, pure float16": (causal_weights, torch.float16),
    "yours, pure bfloat16": (causal_weights, torch.bfloat16),
}
errors = torch.stack([torch.stack([error_of(way, gap, dtype) for gap in gaps]) for way, dtype in ways.values()])  # (6, 8)
table(errors, rows=list(ways), columns=[f"gap {gap}" for gap in gaps])

# %% [markdown]
# Lesson 02's way loses the row in each type, only at different gaps. Yours is off by rounding alone, the same at every gap: the stable softmax of
# lesson 01 subtracts the largest score of the row, and that is now the largest *visible* one. What the hidden score was no longer matters.
#
# ## 4 Sentences of different lengths
#
# Back to batches, first with numbers that you can check by hand. Three sentences, filled up to six tokens; the
# input of a pad is three zeros. This time the pads come last, as they usually do in training.

# %%
sentences = [tokens, tokens[:3], tokens[4:]]
real = [len(sentence) for sentence in sentences]
padded = [sentence + ["pad"] * (6 - len(sentence)) for sentence in sentences]
vector = dict(zip(tokens, inputs), pad=torch.zeros(3, device=device))
batch = torch.stack([torch.stack([vector[word] for word in sentence]) for sentence in padded])  # (3, 6, 3)
for sentence, length in zip(padded, real):
    print(f"length {length}:", " ".join(sentence))

# %% [markdown]
# A score with a pad is exactly 0, and that hides nothing.
#
# **Predict, then run.** *One* and *step* in the last sentence give some of their weight to the four pads. How much,
# on average, without any mask, and how much with the causal mask alone?

# %%
my_guess = None  # a pair of numbers from 0 to 1

# %% tags=["raises-exception"]
batch_scores = scores_of(789, batch)  # (3, 6, 6)
unmasked = torch.softmax(batch_scores / math.sqrt(2), dim=-1)[2, :2, 2:].sum(dim=-1).mean().item()
causal_only = causal_weights(batch_scores, 2)  # (3, 6, 6)
beside(my_guess, (round(unmasked, 2), round(causal_only[2, :2, 2:].sum(dim=-1).mean().item(), 2)))

# %% tags=["raises-exception"]
print("what the last pad gives to pads:", round(causal_only[2, 5, 2:].sum().item(), 2))

# %% [markdown]
# When pads come last, the causal mask happens to protect the real tokens: the pads are in their future. Only the pads look at pads. The causal mask
# does not protect real tokens when pads come first, as in part 1, nor in a layer without a causal mask. So the mask says it outright: **no query looks
# at a pad.** Such a mask is called a **padding mask**.
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
# Put both masks together for a batch of b sentences with the pads last. In every row, hide all later keys and all
# pads: the keys whose index is the sentence's length or more. For tensors of bool, `|` means *or*.
#
# ```
# lengths     a list of b numbers, or a 1-D tensor of any integer type that can hold n
# mask        (b, n, n), bool, True = hidden
# ```
#
# The rows of pads follow the same rule; they are not hidden as a whole. If `lengths` is a tensor, the mask is
# on its device; if it is a list, the mask is on the CPU. A length is from 0 to n; for any other raise a `ValueError`.

# %% nbgrader={"grade": false, "grade_id": "padding_and_causal", "locked": false, "schema_version": 3, "solution": true, "task": false}
def padding_and_causal(lengths, n):
    """True where a key is in the future or a pad: b lengths -> (b, n, n) bool."""
    ### BEGIN SOLUTION
    lengths = torch.as_tensor(lengths).long()  # (b,); a uint8 counts only to 255
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError(f"lengths must be from 0 to n = {n}, got {lengths.tolist()}")
    pads = torch.arange(n, device=lengths.device) >= lengths[:, None]  # (b, n)
    return future_mask(n).to(lengths.device) | pads[:, None, :]
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_padding_and_causal", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("padding_and_causal")  # the contract as a checklist; open this cell to read it
def _(r):
    length = r.integer(2, 5)
    r.idea.each("hides the future, and keys at or past the length", padding_and_causal, ([2, 1], 3), ([1, length, 7, 3], 7), ([length], 6), ([length, r.integer(10, 79)], 80))
    r.each("full length, no token at all, more sentences than tokens", padding_and_causal, ([4, 0], 4), ([6, 0, length, 0], 6), ([1, 3, 2], 3), ([length, 1, 4, 0, 5, 2, 3, 3], 5))
    r.each("a tensor of lengths, int64, int32 or uint8", padding_and_causal, (torch.tensor([length, 3]), 6), (torch.tensor([4, 1, 0], dtype=torch.int32), 5), (torch.tensor([2, 0, 4], dtype=torch.uint8), 5))
    r.refuses("raises ValueError for a length above n or below 0", padding_and_causal, ([4 + length], 5), ([3, 8, 1], 7), (torch.tensor([2, -1]), 4))
    r.unchanged("leaves its arguments as they were")

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
batch_mask = padding_and_causal(real, 6).to(device)  # (3, 6, 6)
batch_weights = torch.softmax(mask_scores(batch_scores, batch_mask) / math.sqrt(2), dim=-1)  # (3, 6, 6)
maps_of_batch = [
    heatmap(part, row, row, title=f"length {length}", hidden=veil, limits=(0, 1), bar=length == real[-1])
    for row, length, part, veil in zip(padded, real, batch_weights, batch_mask)
]
show(
    panels(*maps_of_batch, size=(11.5, 4)),
    "Three heatmaps of weights for sentences of length 6, 3 and 2, padded to 6. The future is hatched in all of them. In the second "
    "the last three columns are hatched from top to bottom, in the third the last four: nobody looks at a pad. "
    "The rows of pads divide their weight among the real tokens.",
)

# %% [markdown]
# Follow the columns of the pads: they are hatched from top to bottom. The *rows* of the pads still hold weights.
# Nobody asks for their context vectors, so they do no harm, as long as the loss leaves them out. But when the pads come first, they see nothing before
# them but pads.
#
# ## 5 A row with nothing to look at
#
# Here is the batch of part 1 again, with the pads in front and hidden now. Story 3 has no pads, the others do.
#
# **Predict, then run.** For how many of the three stories are the probabilities of the next word `nan`?

# %%
my_guess = None  # a number from 0 to 3

# %%
hidden = not_yet | pad[:, None, :]  # (3, n, n): the future, and every key that is a pad
ruined, _ = think(ids, places, hidden, added)
beside(my_guess, int(ruined[:, -1].isnan().any(dim=-1).sum()))

# %%
say(ruined)

# %% [markdown]
# A pad in front has only itself and other pads before it, so every key in its row is hidden. The largest
# score of such a row is minus infinity, and -inf minus -inf is `nan`. But the real words gave those pads no weight!
# How does their `nan` get through all the same?

# %%
print("softmax of three -inf:", torch.softmax(torch.full((3,), float("-inf")), dim=-1).tolist())
print("a score of nan, plus -inf:", float("nan") + float("-inf"))
print("a weight of 0, times a value of nan:", 0.0 * float("nan"))

# %% [markdown]
# In layer 1 the pad's row becomes `nan`, and so does its vector. In layer 2 that vector makes a key and a value.
# The scores at this key are `nan`, and adding -inf does not help. Where a score is *replaced* by -inf the weight
# is 0, but the value is multiplied by it, and **0 · nan is nan**. One bad row in layer 1 spoils the whole story in
# layer 2.
#
# Training is hit too, in the backward pass. Below, row 0 is hidden altogether, and the loss is one weight of row 1, so
# nothing of row 0 is in it. There are two ways to hide: *add* a tensor of 0 and -inf, as the cell in part 1 does, or
# *fill* the scores, as you do.

# %%
def filled(scores, hidden):
    return torch.softmax(torch.where(hidden, float("-inf"), scores), dim=-1)


two_rows = torch.tensor([[True, True, True], [False, False, True]])  # (2, 3), row 0 is hidden altogether
for way in (added, filled):
    some_scores = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], requires_grad=True)
    loss = way(some_scores, two_rows)[1, 0]
    loss.backward()
    print(f"{way.__name__}: the loss is {loss.item():.2f}, the gradients at the scores are")
    table(some_scores.grad, rows=["row 0", "row 1"], columns=["key 0", "key 1", "key 2"])
also_ruined, _ = think(ids, places, hidden, filled)
print("stories with nan when the model fills:", int(also_ruined[:, -1].isnan().any(dim=-1).sum()))

# %% [markdown]
# The loss is fine both times. The gradient of a softmax multiplies what the loss sends back by the weights. To row 0 the loss
# sends back 0, but its weights are `nan`, and 0 · nan is `nan`.
#
# - *Added*: this `nan` passes on to the scores.
# - *Filled*: the fill has put -inf in place of the score, so no gradient reaches the score.
#
# In the model of part 1 a fill helps no story: there the values spread the `nan`.
#
# Does filling at least save the training of a layer? The folded cell trains a small one on our six tokens, of which the first is now a pad in
# front. The loss leaves the pad's row out. Four matrices of 12 numbers each learn to give the layer's own input
# back.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# the layer and its training
x = inputs.clone()
x[0] = 0  # the pad
front_mask = torch.ones(6, 6, device=device).triu(diagonal=1) == 1
front_mask[:, 0] = True  # (6, 6): the future and the pad; row 0 is hidden altogether


def train(weights_of, steps):
    """Train the layer; return its four matrices, 12 numbers each, and the losses."""
    torch.manual_seed(123)
    layers = [nn.Linear(3, 4, bias=False).to(device) for _ in range(3)] + [nn.Linear(4, 3, bias=False).to(device)]
    W_query, W_key, W_value, W_out = matrices = [layer.weight for layer in layers]
    optimizer = torch.optim.Adam(matrices, lr=0.02)
    losses = []
    for _ in range(steps):
        weights = weights_of((x @ W_query.T) @ (x @ W_key.T).T / math.sqrt(4), front_mask)  # (6, 6)
        loss = (weights @ (x @ W_value.T) @ W_out.T - x)[1:].square().mean()  # the pad's row does not count
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [matrix.detach() for matrix in matrices], losses


def count_nan(matrices):
    return sum(int(matrix.isnan().sum()) for matrix in matrices)


# %% [markdown]
# **Predict, then run.** How many of the 48 numbers are `nan` after one step, with the mask added, and with the mask
# filled in?

# %%
my_guess = None  # a pair of numbers from 0 to 48

# %%
beside(my_guess, tuple(count_nan(train(way, 1)[0]) for way in (added, filled)))

# %%
print("after two steps:", [count_nan(train(way, 2)[0]) for way in (added, filled)])
print(f"the loss of the first step: {train(added, 1)[1][0]:.2f}")

# %% [markdown]
# A fill spares `W_query` and `W_key` for one step, because no gradient reaches a hidden score: 24 numbers stay. The gradients of `W_value` and
# `W_out` are products with the `nan` weights, so those 24 are lost. After two steps everything is gone, for good, and the first loss looked fine.
#
# Would a finite number far below zero be better? People write `-1e9`, or the lowest number of the type,
# `torch.finfo(dtype).min`.

# %%
for dtype in (torch.float16, torch.bfloat16, torch.float32):
    print(f"{str(dtype):>14}: the lowest number is {torch.finfo(dtype).min:.5g}")
print("a row of nothing but -1e9:", [round(w, 2) for w in torch.softmax(torch.full((3,), -1e9), dim=-1).tolist()])
try:
    torch.zeros(3).half().masked_fill(torch.tensor([True, False, False]), -1e9)
except RuntimeError as error:
    print("-1e9 in float16: RuntimeError,", "overflow" if "overflow" in str(error) else error)
for fill in (-10.0, -100.0, -65504.0):
    share = torch.softmax(torch.tensor([-10.0] + 5 * [fill]), dim=-1)[1:].sum().item()
    print(f"one visible score of -10, five hidden ones filled with {fill:g}: the hidden get {share:.2f} of the row")
print("the batch of part 1, filled with the lowest number:")
say(think(ids, places, hidden, lambda scores, hidden: torch.softmax(torch.where(hidden, torch.finfo(scores.dtype).min, scores), dim=-1))[0])

# %% [markdown]
# If the fill is not far enough below the visible scores, hidden keys still get weight: with -10 the five hidden keys take five sixths. The lowest
# number hides well wherever something is visible. Where nothing is, the row has no `nan`, but it gives equal shares to every hidden key, the future
# included, without a warning. Here that does no harm, because nobody reads the rows of the pads. It is still not the answer for such a row.
#
# ## 6 Zeros instead of `nan`
#
# A query that may look at nothing should get nothing: a row of zeros, a context vector of zeros, and no gradient
# back to its scores.
#
# ### Exercise: `masked_softmax` (5 points, a challenge)
#
# ```
# scores (..., n, m)      mask, bool, True = hidden      weights (..., n, m)
# ```
#
# The softmax over the visible keys, over the last dimension, without a scale. There are n queries and m keys. A row with every entry hidden gives
# zeros. The gradient at every hidden score, in any row, is 0, not `nan`. The mask may have any shape that broadcasts
# to the scores. Scores are up to ±10,000, in float32 or float64; hidden ones are finite.
#
# Where a *visible* score is `nan`, the visible entries of its row are `nan` too; its hidden ones may be 0 or `nan`.
# A score that is `nan` means that something broke earlier, and a guard must not hide that. So turning every `nan`
# into 0 at the end is no answer. It is simplest when no `nan` arises at all.

# %% nbgrader={"grade": false, "grade_id": "masked_softmax", "locked": false, "schema_version": 3, "solution": true, "task": false}
def masked_softmax(scores, mask):
    """Softmax over the visible keys; zeros where a row has none: (..., n, m) -> (..., n, m)."""
    ### BEGIN SOLUTION
    mask = mask.expand(scores.shape)
    empty = mask.all(dim=-1, keepdim=True)  # (..., n, 1)
    weights = torch.softmax(scores.masked_fill(mask & ~empty, float("-inf")), dim=-1)
    return weights.masked_fill(empty, 0.0)
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_masked_softmax", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("masked_softmax")  # the contract as a checklist; open this cell to read it
def _(r):
    hidden, x, big = r.mask(6, 6, empty_rows=True), 2 * r.normal(2, 3, 4, 4), r.mask(8, 8)
    rounded, part = (2 * r.normal(2, 6, 6)).round(), torch.ones_like(x[0, 0]).triu(diagonal=1) == 1
    part[1] = True
    spoiled = r.normal(2, 4, 4) + 200 * part
    spoiled[r.integer(0, 1), 3, r.integer(0, 3)] = float("nan")
    r.each("softmax over the visible keys", masked_softmax, (2 * r.normal(3, 3).round(), r.mask(3, 3)), (2 * r.normal(8, 8) + 200 * big, big))
    r.each("any mask that broadcasts", masked_softmax, (x, r.mask(4, 4)), (x, r.mask(2, 1, 4, 4)), (x, r.mask(3, 4, 4)), (2 * r.normal(3, 3, 4, 4), r.mask(3, 1, 4, 4)), (2 * r.normal(3, 3, 4, 4), r.mask(3, 4, 4)), (r.normal(4, 6), r.mask(1, 6)), (r.normal(2, 6, 4), r.mask(1, 6).mT))
    r.idea.each("a row with everything hidden gives zeros, a row with a visible nan does not", masked_softmax, (r.normal(2, 6), torch.ones_like(hidden[:2])), (r.normal(6, 6), hidden), (r.normal(2, 4, 4), r.mask(2, 4, 4, empty_rows=True)), (spoiled, part))
    r.call("where a visible score is nan, the visible weights of its row are nan", r.visible(masked_softmax), spoiled.mT, part.mT)
    r.each("hidden scores 20,000 above the visible, visible ones at ±10,000", masked_softmax, (rounded + torch.where(hidden, 1e4, -1e4), hidden), ((1e4 * r.uniform(3, 5, 5)).round(), r.mask(5, 5)))
    r.call("float64 in, float64 out, for any layout in memory", masked_softmax, r.normal(2, 6, 6, dtype=torch.float64).mT, hidden)
    r.gradient("gradients pass; at every hidden score, in any row, the gradient is 0", masked_softmax, r.normal(2, 6, 6) + 200 * hidden, hidden)
    r.unchanged("leaves its arguments as they were")

# %% [markdown]
# First the small layer: same sentence, same pad, your softmax.

# %% tags=["raises-exception"]
matrices, losses = train(masked_softmax, 400)
always_mean = (x[1:] - x[1:].mean(dim=0)).square().mean().item()
print("nan after 400 steps:", count_nan(matrices), "of 48")
print(f"loss at first {losses[0]:.2f}, at last {losses[-1]:.4f}; always answering the mean of the five words: {always_mean:.2f}")

# %% [markdown]
# It trains, and its loss is far below that of always answering the mean. Now the batch of stories, with your function in all eight
# heads of the model.

# %% tags=["raises-exception"]
mended, maps = think(ids, places, hidden, masked_softmax)
say(mended)
for story, each in enumerate(words):
    by_itself = next_words(model, each)
    off = (mended[story, -1] - torch.tensor([by_itself[word] for word in VOCABULARY])).abs().max().item()
    print(f"story {story + 1}: every probability within 0.00001 of the one alone: {off < 1e-5}")

# %% [markdown]
# The model no longer notices that its story is in a batch. Choose a story and a head. On the left is the story in the
# batch. Your function hides the hatched cells: the future above the diagonal, and the pads, whose own rows are
# empty. On the right the model reads the same story alone. Both should show the same weights.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: draws the figure
def head_map(story, head):
    layer, number = (int(part) - 1 for part in head.split("."))
    weights = maps[layer][int(story) - 1, number]  # (n, n)
    veil, row = hidden[int(story) - 1], padded_words[int(story) - 1]
    at = int(weights[-1].argmax())
    each = words[int(story) - 1]
    alone = attention_of(model, each)[layer, number]  # (m, m), m words without pads
    future = torch.ones(len(each), len(each)).triu(diagonal=1) == 1
    return (
        panels(
            heatmap(weights, row, row, title=f"story {story} in the batch, head {head}", hidden=veil, limits=(0, 1), bar=False),
            heatmap(alone, each, each, title="the story alone", row_name="", hidden=future, limits=(0, 1)),
            size=(11, 6),
        ),
        f"Story {story}, head {head}: the last word looks most at “{row[at]}”, {weights[-1, at].item():.2f}.",
    )


explore(
    head_map,
    alt="Heatmaps of one trained head: on one padded story of the batch, where the future and the pads are hatched, and on the story alone.",
    story=["2", "1", "3"],
    head=["2.2", "1.1", "1.2", "1.3", "1.4", "2.1", "2.3", "2.4"],
)

# %% [markdown]
# In the story shown first, *she* has to be followed by what Anna does with her hat, and head 2.2 looks at the
# *hat*, not at the *cake*. Over 500 stories this head gives, at such a *she* or *he*, 0.85 of its weight to the person's own thing and 0.03
# to the other's (`model_card()` shows the list).
#
# ## 7 What goes wrong in practice
#
# Five mistakes that people really make. Each is tried on random scores, on scores with exact zeros among them,
# and in the trained model: its loss on 100 freshly drawn stories, and what it writes.
#
# - **`triu` without `diagonal=1`.** The diagonal is hidden too, and the first row has nothing to look at.
# - **The result is dropped.** `masked_fill` returns a new tensor. As a line of its own it does nothing.
# - **The mask is made of scores**: `scores.triu(diagonal=1).bool()`. A score that is exactly 0 is False, and stays
#   visible.
# - **The mask is multiplied by -inf** and added. 0 times -inf is `nan`, so every visible score is `nan`.
# - **A mask of 0 and 1 is added.** It raises the hidden scores by 1.

# %%
def right(scores):
    return mask_scores(scores, future_mask(scores.shape[-1]))


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


# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: two quick tests, the loss in the model, and what it writes
new_ids, targets = pairs(stories(100, seed=99))  # (100, n) each
places_of_new = torch.arange(new_ids.shape[1]).expand(new_ids.shape)
nothing = torch.zeros(1, 1, 1) == 1
plain = torch.randn(6, 6, generator=torch.Generator().manual_seed(1))
with_zeros = plain.round()


def passes(way, scores):
    """Both quick tests: no weight above the diagonal, and rows that add up to 1."""
    weights = torch.softmax(way(scores), dim=-1)
    no_future = bool((weights.triu(diagonal=1) == 0).all())
    return no_future and torch.allclose(weights.sum(dim=-1), torch.ones(6))


def written(way):
    """The start of a story, and twelve words that the model finds likeliest with this mask."""
    ids = encode(begin("Anna has a hat . Max has two"))
    for _ in range(12):
        chances, _ = think(torch.tensor([ids]), torch.arange(len(ids))[None], nothing, lambda s, _: torch.softmax(way(s), dim=-1))
        ids.append(int(chances[0, -1].argmax()))
    return " ".join(decode(ids[8:]))


for way in (right, no_diagonal, result_dropped, mask_of_scores, times_inf, ones_added):
    chances, _ = think(new_ids, places_of_new, nothing, lambda s, _: torch.softmax(way(s), dim=-1))
    loss = nn.functional.nll_loss(chances.log().flatten(0, 1), targets.flatten()).item()
    tests = ["passes" if passes(way, scores) else "caught" for scores in (plain, with_zeros)]
    print(f"{way.__name__:>15}: with random scores {tests[0]}, with zeros {tests[1]}, loss {loss:.2f}\n{'':>17}… {written(way)}")

future, zeros = right(torch.zeros(new_ids.shape[1:] * 2)) < 0, []


def counting(scores, _):
    zeros.append(int((scores[..., future] == 0).sum()))
    return torch.softmax(right(scores), dim=-1)


think(new_ids, places_of_new, nothing, counting)
print(f"scores above the diagonal that are exactly 0, in both layers: {sum(zeros)}")

# %% [markdown]
# Two things are worth remembering. The quick tests (nothing above the diagonal, rows that add up to 1) find a mask made of scores only if some score
# above the diagonal is exactly 0. In the trained model none is, and the loss is the right one. (*Anna Anna* means nothing: `argmax` of nothing but
# `nan` is 0, and *Anna* is word 0.) And with `result_dropped` and `ones_added` the story above looks right, while the loss is five to seven times as
# high: one sample does not show the mistake. Look at the loss.
#
# **True does not always mean hidden.** PyTorch itself uses both conventions:

# %%
one = torch.eye(3)[None]  # (1, 3, 3): queries, keys and values
first_only = torch.tensor([[True, False, False]]).expand(3, 3)
as_sdpa = nn.functional.scaled_dot_product_attention(torch.zeros(1, 3, 3), one, one, attn_mask=first_only)
print("scaled_dot_product_attention, True at key 0: the weights are", [round(w, 2) for w in as_sdpa[0, 0].tolist()])
torch.manual_seed(123)
_, as_module = nn.MultiheadAttention(3, 1, batch_first=True)(torch.zeros(1, 3, 3), one, one, attn_mask=first_only)
print("nn.MultiheadAttention, True at key 0: the weights are       ", [round(w, 2) for w in as_module[0, 0].tolist()])

# %% [markdown]
# To the function True means *take part*, to the module it means *hidden*. Read the documentation of a mask before
# you use it, and look at the weights for a mask that hides a single key.
#
# ## Summary
#
# - A score of **minus infinity** gets a weight of exactly 0, and the softmax subtracts the largest *visible* score, so a hidden one cannot make the
#   others underflow.
# - A **padding mask** hides columns, a causal mask a triangle. Joined with `|` they serve a batch of any lengths.
#   Without a padding mask an answer depends on how far its sentence is padded, unless the pads come last and the mask is causal.
# - A row with **everything hidden** is `nan`. 0 · nan is `nan`, so it spreads to every token in the next layer, and
#   to every parameter in training, even when the loss leaves that row out.
# - A **finite fill** must lie far below every visible score, as the lowest number of the type does. It avoids the
#   `nan`, but a row with everything hidden then attends to everything.
# - A good guard corrects only the case it is meant for, and leaves every other failure visible.
#
# **A loose end.** With the right mask the model can be trained on batches of stories, thousands in all. What if it has
# only fifty? It learns them by heart. Lesson 04 shows the two curves that give this away. Its remedy is to drop weights
# at random.
#
# ## Further reading
#
# - Vaswani et al., *Attention Is All You Need*, 2017, section 3.2.3: illegal connections are set to minus infinity
#   before the softmax.
# - Micikevicius et al., *Mixed Precision Training*, 2018, section 3: what float16 can hold and what it loses.
