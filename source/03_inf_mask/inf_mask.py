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
# A trained model reads a story and answers a question about it. To save time, a program reads many stories in one batch and fills up the short ones
# with **pads**: each is one more `<end>`, the token that begins every story anyway. They stand in front, so that all stories end in the last column,
# where the answer is read. Nothing in the model changes. How many of 400 answers change? Run the next two cells.

# %% grade_id="setup" seconds=3 jupyter={"source_hidden": true}
# the set-up: imports, and what this lesson starts from
import math
import os

import matplotlib.pyplot as plt
import torch
from torch import nn

from attention_course import (
    END, VOCABULARY, begin, beside, case, chart, course_model, decode, encode, explore, heatmap, hint, pairs,
    panels, progress, rubric, show, stories, table, why,
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


def scores_of(seed, x=inputs):
    """The scores (..., n, n) of tokens x (..., n, 3) in lesson 01's SelfAttention_v2(3, 2), from a seed."""
    torch.manual_seed(seed)
    W_query, W_key, _ = (nn.Linear(3, 2, bias=False).to(device) for _ in range(3))
    with torch.no_grad():
        return W_query(x) @ W_key(x).mT  # mT swaps the last two dimensions


def renormalise(weights):
    """Lesson 02: every row divided by its sum; a row of zeros stays zeros."""
    total = weights.sum(dim=-1, keepdim=True)
    return weights / torch.where(total == 0, 1.0, total)


# %% seconds=3 jupyter={"source_hidden": true}
# reads 400 stories with pads in front of them
model = course_model()
asked = [(begin(" ".join(story.words[: story.notes.answers[0].start])), story.words[story.notes.answers[0].start]) for story in stories(400, seed=99)]


def in_a_batch(words, pads=0):
    """Stories with pads in front: ids (b, n), True where a pad is (b, n), and positions (b, n)."""
    longest = max(map(len, words)) + pads
    ids = torch.tensor([encode([END] * (longest - len(each)) + each) for each in words])
    pad = torch.tensor([[True] * (longest - len(each)) + [False] * len(each) for each in words])
    return ids, pad, (~pad).cumsum(dim=-1).sub(1).clamp(min=0)  # real words keep the positions that they have alone


def the_future(n):
    return torch.arange(n) > torch.arange(n)[:, None]  # (n, n)


def minus_infinity(scores, hidden):
    return torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)


@torch.no_grad()
def think(ids, positions, hidden, weights_of=minus_infinity):
    """The model's next-word probabilities (b, n, v), with a mask and a softmax of your own.

    weights_of(scores, hidden) gets scores (b, 4, n, n), for 4 heads, and hidden (b, 1, n, n).
    """
    x = model.token_embedding(ids) + model.position_embedding(positions)  # (b, n, 48)
    for block in model.layers():
        heads, y = block.attention, block.norm1(x)
        queries, keys, values = (heads.split(W(y)) for W in (heads.W_query, heads.W_key, heads.W_value))  # (b, 4, n, 12)
        weights = weights_of(queries @ keys.mT / math.sqrt(12), hidden[:, None])
        x = x + heads.out_proj((weights @ values).transpose(1, 2).flatten(2))
        x = x + block.feed_forward(block.norm2(x))
    return model.head(model.norm(x)).softmax(dim=-1)


def wrong_answers(pads, hide_pads=False, weights_of=minus_infinity):
    """How many of the 400 first answer words are wrong, with so many pads in front of each story."""
    wrong = 0
    for words, right in asked:
        ids, pad, positions = in_a_batch([words], pads)
        hidden = the_future(ids.shape[1]) | (pad[:, None, :] & hide_pads)  # (1, n, n)
        wrong += VOCABULARY[int(think(ids, positions, hidden, weights_of)[0, -1].argmax())] != right
    return wrong


for pads in (0, 2, 4, 6, 8):
    print(f"{pads} pads: {wrong_answers(pads):2} of 400 answers are wrong")

# %% [markdown]
# Alone the model makes no mistake. With two pads no answer is wrong, with eight about one in twenty. **That is worse than spoiling all of them**: a
# test of ten stories passes more often than not, and the mistake reaches the users. (The folded cell holds `think`, the model of lesson 07 with a mask
# and a softmax passed in.)
#
# Here you build the mask that brings this number back to 0.
#
# - You hide a score so that nothing of it is left, and say why.
# - You join a causal mask and a padding mask for a whole batch.
# - You find out how one row of `nan` ruins a model, and prevent it without hiding other failures.
#
# *About 80 minutes. It builds on lesson 01 (scores, softmax) and 02 (the causal mask). Run cells, solve exercises and ask for `hint()`, `why()` and
# `progress()` as in lesson 01.* Scores are `(..., n, n)`: the last two dimensions are queries and keys.

# %%
# demonstration: three questions on earlier lessons, without points
from attention_course import recall

recall()

# %% [markdown]
# ## 1 What the pads do
#
# Three stories in one batch, with eight, four and no pads in front. The mask is that of lesson 02 and nothing more: a word does not see the future,
# but it does see the pads.
#
# **Predict, then run.** Alone, the first story gets *yes* with 0.999. What does *yes* get in the batch?

# %%
my_guess = None  # a number from 0 to 1

# %%
texts = [
    "Mia is in the cave . she sees a bat . is it alive ?",
    "Anna has a hat . Max has a cake . he eats it downstairs . she",
    "Tom has two kites . Lucy has a cake . she's inside . he flies them outside . where is Lucy ? she's",
]
words = [begin(text) for text in texts]  # the model reads <end> before the first word
ids, pad, positions = in_a_batch(words)
n = ids.shape[1]
seeing_pads = think(ids, positions, the_future(n)[None])  # (3, n, v)
beside(my_guess, round(seeing_pads[0, -1, encode(["yes"])[0]].item(), 2))

# %%
def say(chances):
    """For each story the likeliest next word and its probability."""
    for each, last in zip(words, chances[:, -1]):
        word = VOCABULARY[int(last.argmax())] if last.isfinite().all() else "nan"
        print(f"{' '.join(each[-4:]):>22} → {word:<7} {last.max().item():.3f}")


say(seeing_pads)

# %% [markdown]
# The pads have turned the bat into wood. What do they do? Each is one more `<end>` at
# position 0: the same key, the same value, the same weight as the real one. So `<end>` counts nine times. If that is all, subtracting ln 9 from each of
# the nine scores must undo it, because exp(s - ln 9) is exp(s) / 9.

# %%
times = pad.sum(dim=-1, keepdim=True) + 1  # (3, 1): so often <end> counts: 9, 5, 1
too_much = (positions == 0) * times.log()  # (3, n): at <end> and at its copies
say(think(ids, positions, the_future(n)[None], lambda scores, hidden: minus_infinity(scores - too_much[:, None, None], hidden)))

# %% [markdown]
# All three are as sure as when each story is read alone. **Nothing was wrong but a word that counted too often.** Where a head gives it little, nine
# times little is still little: so few answers change. But pads need not be copies of a word, so hide them. Can lesson 02 do that: softmax first, then
# zeros in the hidden places, then every row divided by its sum?

# %%
def lesson_02(scores, hidden):
    """Softmax, zeros where hidden, renormalise."""
    return renormalise(torch.softmax(scores, dim=-1) * ~hidden)


hidden = the_future(n) | pad[:, None, :]  # (3, n, n), True = hidden: the future, and every pad
say(think(ids, positions, hidden, lesson_02))

# %% [markdown]
# It can. Then why does nearly every model do it in another way? Because there is a way to hide *before* the softmax. It needs no second division, and
# has no gap at which it fails.
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
# `exp(-inf)` is exactly 0. The third key adds nothing to the sum either: the other two share the row as if it were not there.
#
# In lesson 02's mask a 1 let a weight through. This mask says **where to write minus infinity**, so it is the other way round: it is bool, and
# **True means hidden**.
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
# Return this mask for n tokens, on the CPU.

# %% grade_id="future_mask"
def future_mask(n):
    """True where a key is later than the query: (n, n) bool."""
    ### BEGIN SOLUTION
    return torch.ones(n, n, dtype=torch.bool).triu(diagonal=1)
    ### END SOLUTION


# %% grade_id="test_future_mask"
@rubric("future_mask")  # the contract as a checklist; open this cell to read it
def _(r):
    r.idea.each("bool, True strictly above the diagonal", future_mask, (2,), (3,), (r.integer(5, 40),), (r.integer(100, 200),))
    r.call("one token", future_mask, 1)

# %% tags=["raises-exception"]
mask = future_mask(6).to(device)  # (6, 6)
table(mask, rows=tokens, columns=tokens)  # 1 is True

# %% [markdown]
# ### Exercise: `mask_scores` (2 points)
#
# Return new scores: minus infinity where the mask is True, the others as they are.
#
# ```
# scores (..., n, n)      mask, bool      result (..., n, n)
# ```
#
# - The mask **broadcasts**: PyTorch repeats a dimension of size 1, or one that is missing in front. So `(n, n)` serves all sentences and heads,
#   `(b, 1, n, n)` is one mask for each sentence, `(1, n)` hides the same keys from every query, and `(n, 1)` hides every key from some queries.
# - In Python minus infinity is `float("-inf")`.

# %% grade_id="mask_scores"
def mask_scores(scores, mask):
    """-inf where mask is True, the score itself elsewhere: same shape as scores."""
    ### BEGIN SOLUTION
    return scores.masked_fill(mask, float("-inf"))
    ### END SOLUTION


# %% grade_id="test_mask_scores"
@rubric("mask_scores")  # the contract as a checklist; open this cell to read it
def _(r):
    rounded, x = r.normal(4, 4).round(), r.normal(2, 3, 4, 4)
    r.idea.each("-inf where the mask is True, the score elsewhere", mask_scores, (r.normal(3, 3), r.mask(3, 3)), (rounded, r.mask(4, 4)))
    r.each("one mask for all sentences and heads, one for each sentence, one for each head", mask_scores,
        (r.normal(1, 5, 5), r.mask(5, 5)), (x, r.mask(4, 4)), (x, r.mask(2, 1, 4, 4)), (x, r.mask(3, 4, 4)), (r.normal(4, 4, 3, 3), r.mask(4, 1, 3, 3)),
        (r.normal(3, 3, 4, 4), r.mask(3, 4, 4)))
    r.each("the same keys for every query, the same queries for every key", mask_scores, (r.normal(5, 5), r.mask(1, 5)), (r.normal(5, 5), r.mask(1, 5).mT))
    r.each("nothing hidden, everything hidden", mask_scores, (rounded, torch.zeros_like(rounded) == 1), (rounded, torch.ones_like(rounded) == 1))
    r.conventions(r.visible(mask_scores), r.normal(3, 5, 5, dtype=torch.float64), r.mask(5, 5))

# %% tags=["raises-exception"]
masked = mask_scores(scores_of(789), mask)  # (6, 6)
table(masked, rows=tokens, columns=tokens)

# %% [markdown]
# ### One entry
#
# *Tom is in the gym . he sees a bat . is it alive ?* The trained model answers *no*. The causal mask of these 16 words has 16 × 16 entries: 120 hide the
# future, 136 are False. Hide one entry more, in all heads, with your `mask_scores`.
#
# **Predict, then run.** Which entry turns the answer into *yes*?

# %%
my_guess = None  # two words: ("the word that looks", "the word that it no longer sees")

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: the trained model with your mask_scores, and one entry more hidden
gym = "Tom is in the gym . he sees a bat . is it alive ?"


def alive(sentence, *more):
    """The chance of *yes*, with the future hidden and more entries, each (row, column)."""
    told_ids, _, told_positions = in_a_batch([begin(sentence)])
    hidden = the_future(told_ids.shape[1])[None]  # (1, n, n)
    for row, column in more:
        hidden[0, row, column] = True
    chances = think(told_ids, told_positions, hidden, lambda scores, hidden: torch.softmax(mask_scores(scores, hidden), dim=-1))
    return chances[0, -1, encode(["yes"])[0]].item()


read = begin(gym)
yes = {(row, column): alive(gym, (row, column)) for row in range(1, len(read)) for column in range(row + 1)}  # row 0 would be empty
ranked = sorted(yes, key=yes.get, reverse=True)
for row, column in yes:
    if my_guess in ((read[row], read[column]), [read[row], read[column]]):
        print(f"your entry hidden: yes {yes[row, column]:.3f}")
print(f"the future alone hidden: yes {alive(gym):.3f}")
for row, column in ranked[:2]:
    print(f"and {read[row]} → {read[column]}: {yes[row, column]:.3f}")
print(f"and both: {alive(gym, *ranked[:2]):.3f}")
print(f"the other {len(ranked) - 2} entries, one at a time: at most {yes[ranked[2]]:.3f}")
beside(my_guess, tuple(read[at] for at in ranked[0]))

# %% [markdown]
# **One True in place of a False, and it is not *bat* → *gym*.** The question mark, where the answer is read, looks at the gym itself. What *bat* brings from
# there weighs too little alone. Hide both, and the bat is as alive as in a cave.
#
# **Predict, then run.** In the cave the answer is *yes*. What is its chance when the question mark no longer sees the cave?

# %%
my_guess = None  # a number from 0 to 1

# %% tags=["raises-exception"]
no_place = {}
for place in ("cave", "barn", "gym", "shop"):
    sentence = gym.replace("gym", place)
    no_place[place] = alive(sentence, (15, 5))  # word 15, ?, and word 5, the place
    print(f"{place}: yes {alive(sentence):.3f}; and ? → {place} hidden: {no_place[place]:.3f}")
beside(my_guess, round(no_place["cave"], 2))

# %% [markdown]
# **A bat that nobody places is an animal.** *Gym* and *shop* make a thing of it. *Cave* and *barn* tell the question nothing new.
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
# - It must be right where lesson 02's way is not: for scores up to ±10,000, also when hidden scores lie far above the visible ones.
# - A score may be exactly 0, visible or hidden.

# %% grade_id="causal_weights"
def causal_weights(scores, d_k):
    """Softmax over the visible keys of scores / sqrt(d_k): (..., n, n) -> (..., n, n)."""
    ### BEGIN SOLUTION
    hidden = future_mask(scores.shape[-1]).to(scores.device)
    return torch.softmax(mask_scores(scores, hidden) / math.sqrt(d_k), dim=-1)
    ### END SOLUTION


# %% grade_id="test_causal_weights"
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
table(causal_weights(scores_of(789), 2), rows=tokens, columns=tokens)

# %% [markdown]
# The numbers are those of lesson 02, to the last digit shown. Now take one row with three visible keys, and move the slider: the hidden score rises
# above the visible ones. At which gap does lesson 02's way lose the row, in float32 and in float16?

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: draws the figure
def with_gap(gap):
    """Scores (4, 4); row 2 sees keys 0 to 2, and its hidden score lies above them by the gap."""
    scores = torch.zeros(4, 4)
    scores[2] = torch.tensor([0.3, -0.4, 0.1, 0.3 + gap])
    return scores


def tril_causal_weights(scores, d_k):
    return lesson_02(scores / math.sqrt(d_k), the_future(scores.shape[-1]))


ways = {
    "lesson 02, float16": (tril_causal_weights, torch.float16),
    "lesson 02, float32": (tril_causal_weights, torch.float32),
    "yours, float16": (causal_weights, torch.float16),
    "yours, float32": (causal_weights, torch.float32),
}


def bars(rows, gap):
    figure, axes = plt.subplots(1, 4, figsize=(10, 2.6), sharey=True, layout="constrained")
    for ax, (name, row) in zip(axes, rows.items()):
        ax.bar(["key 0", "key 1", "key 2", "hidden"], row, color=["#0072B2"] * 3 + ["0.6"])
        ax.set(title=name, ylim=(0, 1))
    axes[0].set_ylabel("weight")
    return figure


def row_at(gap):
    rows = {name: [round(w, 3) for w in way(with_gap(gap).to(dtype), 1)[2].float().tolist()] for name, (way, dtype) in ways.items()}
    lost = [name for name, row in rows.items() if not any(row)]
    return chart(bars, rows, gap), f"Hidden score {gap} above the visible ones. Rows that are lost: {', '.join(lost) or 'none'}."


explore(row_at, alt="Four bar charts of one row of weights, by lesson 02's way and by yours, in float16 and float32.", gap=[17, 0, 10, 16, 18, 100, 103, 104, 10000])

# %% [markdown]
# Lesson 02's way loses its row at 18 in float16, and at 104 in float32. Shortly before, its weights are already wrong. Yours shows the
# same three weights at every gap: the stable softmax of lesson 01 subtracts the largest score of the row, and that is now the largest *visible* one.
#
# ## 4 Sentences of different lengths
#
# In training, pads usually come *last*. Three sentences of 6, 3 and 2 tokens, filled up to six; the input of a pad is three zeros, so every score with it
# is 0. That hides nothing.

# %%
sentences = [tokens, tokens[:3], tokens[4:]]
lengths = torch.tensor([len(sentence) for sentence in sentences], device=device)
padded = [sentence + ["pad"] * (6 - len(sentence)) for sentence in sentences]
vector = dict(zip(tokens, inputs), pad=torch.zeros(3, device=device))
batch = torch.stack([torch.stack([vector[word] for word in sentence]) for sentence in padded])  # (3, 6, 3)
batch_scores = scores_of(789, batch)  # (3, 6, 6)
print(padded[2])

# %% [markdown]
# When pads come last, the causal mask happens to protect the real words: the pads are in their future. It protects nobody when pads come first, nor in
# a layer without a causal mask. So say it outright: **no query looks at a pad.** That is a **padding mask**.
#
# ### Exercise: `padding_mask` (1 point)
#
# `lengths` is a 1-D tensor of b whole numbers, the real length of each sentence. Return `(b, n)`, bool, on its device: True for the pads, that is at
# and after a sentence's length.
#
# ```
# lengths 3 and 1, n = 4      F  F  F  T
#                             F  T  T  T
# ```

# %% grade_id="padding_mask"
def padding_mask(lengths, n):
    """True where a token is a pad: lengths (b,) -> (b, n) bool."""
    ### BEGIN SOLUTION
    return torch.arange(n, device=lengths.device) >= lengths[:, None]
    ### END SOLUTION


# %% grade_id="test_padding_mask"
@rubric("padding_mask")  # the contract as a checklist; open this cell to read it
def _(r):
    length, other = r.integer(2, 5), r.integer(2, 6)
    r.idea.each("bool, True at and after each sentence's length", padding_mask, (torch.tensor([2, 1]), 3), (torch.tensor([1, length, 7, 3]), 7), (torch.tensor([length, r.integer(10, 79)]), 80))
    r.each("one sentence, more sentences than tokens, as many", padding_mask, (torch.tensor([length]), 6), (torch.tensor([other, 1, 3, length, 6, 2, 4, 1]), 6), (torch.tensor([3, other, 1, 6, length, 2]), 6))
    r.unchanged("leaves the lengths as they were")

# %% [markdown]
# ### Exercise: `padding_and_causal` (2 points)
#
# Put both masks together: `(b, n, n)`, on the device of `lengths`, True where a key is in the future *or* a pad. For bool tensors, `|` means *or*.
#
# ```
#  a sentence of length 2, n = 4        key 0   1   pad  pad
#                            query 0        F   T    T    T
#                            query 1        F   F    T    T
#                            pad            F   F    T    T
#                            pad            F   F    T    T
# ```
#
# - The rows of pads follow the same rule. A length may be 0.
# - A length that is not from 0 to n raises a `ValueError`.

# %% grade_id="padding_and_causal"
def padding_and_causal(lengths, n):
    """True where a key is in the future or a pad: lengths (b,) -> (b, n, n) bool."""
    ### BEGIN SOLUTION
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError(f"lengths must be from 0 to n = {n}, got {lengths.tolist()}")
    return future_mask(n).to(lengths.device) | padding_mask(lengths, n)[:, None, :]
    ### END SOLUTION


# %% grade_id="test_padding_and_causal"
@rubric("padding_and_causal")  # the contract as a checklist; open this cell to read it
def _(r):
    length = r.integer(2, 5)
    r.idea.each("hides the future, and keys at or past the length", padding_and_causal, (torch.tensor([2, 1]), 3), (torch.tensor([1, length, 7, 3]), 7), (torch.tensor([length]), 6), (torch.tensor([length, r.integer(10, 79)]), 80))
    r.each("full length, no token at all, more sentences than tokens", padding_and_causal, (torch.tensor([4, 0]), 4), (torch.tensor([6, 0, length, 0]), 6), (torch.tensor([1, 3, 2]), 3), (torch.tensor([length, 1, 4, 0, 5, 2, 3, 3]), 5))
    r.refuses("raises ValueError for a length above n or below 0", padding_and_causal, (torch.tensor([4 + length]), 5), (torch.tensor([3, 8, 1]), 7), (torch.tensor([2, -1]), 4))
    r.unchanged("leaves its arguments as they were")

# %% [markdown]
# Both masks over the weights of our three sentences:

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
batch_mask = padding_and_causal(lengths, 6)  # (3, 6, 6)
batch_weights = torch.softmax(mask_scores(batch_scores, batch_mask) / math.sqrt(2), dim=-1)  # (3, 6, 6)
maps_of_batch = [
    heatmap(part, row, row, title=f"length {len(sentence)}", hidden=veil, limits=(0, 1), bar=len(sentence) == 2)
    for row, sentence, part, veil in zip(padded, sentences, batch_weights, batch_mask)
]
show(
    panels(*maps_of_batch, size=(9.4, 3.5)),
    "Three heatmaps of weights for sentences of length 6, 3 and 2, padded to 6. The future is hatched in all of them. In the second "
    "the last three columns are hatched from top to bottom, in the third the last four: nobody looks at a pad. "
    "The rows of pads divide their weight among the real tokens.",
)

# %% [markdown]
# The rows of pads divide their weight among the real words. Nobody uses those context vectors, so they do no harm as long as the loss leaves them out.
# But what does a pad see that comes *first*?
#
# ## 5 The price: a row with nothing to look at
#
# The batch of part 1 again, pads in front, hidden by minus infinity this time. The third story has no pads.
#
# **Predict, then run.** For how many of the three stories are the probabilities of the next word `nan`?

# %%
my_guess = None  # a number from 0 to 3

# %%
ruined = think(ids, positions, hidden)  # (3, n, v)
beside(my_guess, int(ruined[:, -1].isnan().any(dim=-1).sum()))

# %%
say(ruined)
print("softmax of three -inf:", torch.softmax(torch.full((3,), float("-inf")), dim=-1).tolist())
print("a weight of 0 times a value of nan:", 0.0 * float("nan"))

# %% [markdown]
# A pad in front has only itself and other pads before it, so its whole row is hidden. The largest score of such a row is minus infinity, and -inf minus
# -inf is `nan`. Lesson 02's way gave that row zeros. **The empty row is the price of minus infinity.**
#
# But the real words give the pads no weight! In layer 1 that is enough: only the pads' own vectors become `nan`. In layer 2 such a vector makes a
# value, the value is multiplied by a weight of 0, and **0 · nan is nan**. One bad row spoils the story.
#
# Training is hit as well. The folded cell trains a small layer to give back the vectors of our six tokens, of which the first is now a pad. The loss
# is the mean squared error, and it leaves the pad's row out.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# the layer and its training
x = inputs.clone()
x[0] = 0  # the pad
front_mask = the_future(6).to(device)
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
# **Predict, then run.** How many of the layer's 48 numbers are `nan` after one step, and after two?

# %%
my_guess = None  # a pair of numbers from 0 to 48

# %%
beside(my_guess, tuple(count_nan(train(minus_infinity, steps)[0]) for steps in (1, 2)))

# %%
print(f"the loss of the first step: {train(minus_infinity, 1)[1][0]:.2f}")

# %% [markdown]
# After two steps every number is `nan`, for good, and the first loss looked fine. (`W_query` and `W_key` survive the first step: no gradient reaches
# a score that was overwritten.)
#
# Would a finite number far below zero be better? People write `-1e9`, or the lowest number of the type.

# %%
lowest = torch.finfo(torch.float32).min
print("a row of nothing but the lowest number:", [round(w, 2) for w in torch.softmax(torch.full((3,), lowest), dim=-1).tolist()])
try:
    torch.zeros(3).half().masked_fill(torch.tensor([True, False, False]), -1e9)
except RuntimeError as error:
    print("-1e9 in float16: RuntimeError,", "overflow" if "overflow" in str(error) else error)
share = torch.softmax(torch.tensor([-10.0] + 5 * [-10.0]), dim=-1)[1:].sum().item()
print(f"a visible score of -10, five hidden ones filled with -10: the hidden get {share:.2f} of the row")

# %% [markdown]
# A fill that visible scores can reach, like -10 here, hides nothing. In float16 `-1e9` does not fit. The lowest number hides well wherever something
# is visible. Where nothing is, it gives equal shares to every hidden key, the future included, without a warning.
#
# ## 6 Zeros instead of `nan`
#
# A query that may look at nothing should get nothing: a row of zeros, and no gradient back to its scores.
#
# ### Exercise: `masked_softmax` (5 points, a challenge)
#
# ```
# scores (..., n, m)      mask, bool, True = hidden      weights (..., n, m)
# ```
#
# Softmax over the visible keys, without a scale. A row with every entry hidden gives zeros.
#
# - The gradient at every hidden score is 0, not `nan`.
# - A *visible* score of `nan` means that something broke earlier. It must stay visible as `nan` in its row: a guard must not hide another failure.

# %% grade_id="masked_softmax"
def masked_softmax(scores, mask):
    """Softmax over the visible keys; zeros where a row has none: (..., n, m) -> (..., n, m)."""
    ### BEGIN SOLUTION
    mask = mask.expand(scores.shape)
    empty = mask.all(dim=-1, keepdim=True)  # (..., n, 1)
    weights = torch.softmax(scores.masked_fill(mask & ~empty, float("-inf")), dim=-1)
    return weights.masked_fill(empty, 0.0)
    ### END SOLUTION


# %% grade_id="test_masked_softmax"
@rubric("masked_softmax")  # the contract as a checklist; open this cell to read it
def _(r):
    hidden, x, big = r.mask(6, 6, empty_rows=True), 2 * r.normal(2, 3, 4, 4), r.mask(8, 8)
    rounded, part = (2 * r.normal(2, 6, 6)).round(), torch.ones_like(x[0, 0]).triu(diagonal=1) == 1
    part[1] = True
    spoiled = r.normal(2, 4, 4) + 200 * part
    spoiled[r.integer(0, 1), 3, r.integer(0, 3)] = float("nan")
    r.each("softmax over the visible keys", masked_softmax, (2 * r.normal(3, 3).round(), r.mask(3, 3)), (2 * r.normal(8, 8) + 200 * big, big), (rounded.clamp(max=0), r.mask(6, 6)))
    r.each("any mask that broadcasts", masked_softmax, (x, r.mask(4, 4)), (x, r.mask(2, 1, 4, 4)), (x, r.mask(3, 4, 4)), (2 * r.normal(3, 3, 4, 4), r.mask(3, 1, 4, 4)), (2 * r.normal(3, 3, 4, 4), r.mask(3, 4, 4)), (r.normal(4, 6), r.mask(1, 6)), (r.normal(2, 6, 4), r.mask(1, 6).mT))
    r.idea.each("a row with everything hidden gives zeros, a row with a visible nan does not", masked_softmax, (r.normal(2, 6), torch.ones_like(hidden[:2])), (r.normal(6, 6), hidden), (r.normal(2, 4, 4), r.mask(2, 4, 4, empty_rows=True)), (spoiled, part))
    r.call("where a visible score is nan, the visible weights of its row are nan", r.visible(masked_softmax), spoiled.mT, part.mT)
    r.each("hidden scores 20,000 above the visible, visible ones at ±10,000", masked_softmax, (rounded + torch.where(hidden, 1e4, -1e4), hidden), ((1e4 * r.uniform(3, 5, 5)).round(), r.mask(5, 5)))
    r.call("float64 in, float64 out, for any layout in memory", masked_softmax, r.normal(2, 6, 6, dtype=torch.float64).mT, hidden)
    r.gradient("gradients pass; at every hidden score, in any row, the gradient is 0", masked_softmax, r.normal(2, 6, 6) + 200 * hidden, hidden)
    r.unchanged("leaves its arguments as they were")

# %% [markdown]
# Your softmax in the small layer, then in all eight heads of the trained model.

# %% tags=["raises-exception"]
matrices, losses = train(masked_softmax, 400)
always_mean = (x[1:] - x[1:].mean(dim=0)).square().mean().item()
print("nan after 400 steps:", count_nan(matrices), "of 48")
print(f"loss at first {losses[0]:.2f}, at last {losses[-1]:.4f}; always answering the mean of the five words: {always_mean:.2f}")
say(think(ids, positions, hidden, masked_softmax))

# %% [markdown]
# And the 400 stories of the beginning, their pads hidden by your code:

# %% tags=["raises-exception"]
for pads in (0, 2, 4, 6, 8):
    print(f"{pads} pads, hidden: {wrong_answers(pads, hide_pads=True, weights_of=masked_softmax)} of 400 answers are wrong")

# %% [markdown]
# From 19 to none. PyTorch's own ways disagree about an empty row: its function `scaled_dot_product_attention` gives zeros, as yours does (before
# PyTorch 2.5 it was `nan`), its layer `nn.MultiheadAttention` gives `nan`.
#
# ## 7 What goes wrong in practice
#
# Five common mistakes. Each is tried by a quick test (nothing above the diagonal, rows that sum to 1) on random scores and on scores with exact
# zeros, and then in the trained model: its loss on 100 new stories, and what it writes. A good test lets none of them pass.

# %%
def right(scores):
    return mask_scores(scores, future_mask(scores.shape[-1]))


def no_diagonal(scores):  # hides the word itself, too
    return scores.masked_fill(torch.ones_like(scores).triu() == 1, float("-inf"))


def result_dropped(scores):  # masked_fill returns a new tensor
    scores.masked_fill(torch.ones_like(scores).triu(diagonal=1) == 1, float("-inf"))
    return scores


def mask_of_scores(scores):
    return scores.masked_fill(scores.triu(diagonal=1).bool(), float("-inf"))


def times_inf(scores):  # 0 times -inf is nan
    return scores + torch.ones_like(scores).triu(diagonal=1) * float("-inf")


def ones_added(scores):  # a mask of 0 and 1 only nudges
    return scores + torch.ones_like(scores).triu(diagonal=1)


# %% [markdown]
# **Predict, then run.** One of the five passes on random scores. Which?

# %%
my_guess = None  # its name, such as "times_inf"

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: two quick tests, the loss in the model, and what it writes
new_ids, targets = pairs(stories(100, seed=99))  # (100, n) each
positions_of_new = torch.arange(new_ids.shape[1]).expand(new_ids.shape)
nothing = torch.zeros(1, 1, 1) == 1
plain = torch.randn(6, 6, generator=torch.Generator().manual_seed(1))


def passes(way, scores):
    """Both quick tests: no weight above the diagonal, and rows that add up to 1."""
    weights = torch.softmax(way(scores), dim=-1)
    return bool((weights.triu(diagonal=1) == 0).all()) and torch.allclose(weights.sum(dim=-1), torch.ones(6))


def written(way):
    """The start of a story, and twelve words that the model finds likeliest with this mask."""
    so_far = encode(begin("Anna has a hat . Max has two"))
    for _ in range(12):
        chances = think(torch.tensor([so_far]), torch.arange(len(so_far))[None], nothing, lambda s, _: torch.softmax(way(s), dim=-1))
        so_far.append(int(chances[0, -1].argmax()))
    return " ".join(decode(so_far[8:]))


def tried(*ways):
    """Print what both tests, the loss and a story say of each way."""
    print(f"{'':>15}    random     zeros    loss")
    for way in ways:
        chances = think(new_ids, positions_of_new, nothing, lambda s, _: torch.softmax(way(s), dim=-1))
        loss = nn.functional.nll_loss(chances.log().flatten(0, 1), targets.flatten()).item()
        at_random, with_zeros = ("passes" if passes(way, scores) else "fails" for scores in (plain, plain.round()))
        print(f"{way.__name__:>15}   {at_random:>7}   {with_zeros:>7}   {loss:5.2f}\n{'':>18}… {written(way)}")


mistakes = no_diagonal, result_dropped, mask_of_scores, times_inf, ones_added
beside(my_guess, ", ".join(way.__name__ for way in mistakes if passes(way, plain)))
tried(right, *mistakes)

# %% [markdown]
# (*Anna Anna* is the `argmax` of nothing but `nan`: word 0.) `mask_of_scores` takes a score of exactly 0 for False. The quick test finds it only where
# there is such a score above the diagonal; in the trained model it makes no difference. With `result_dropped` and `ones_added` this story looks
# right, while the loss is five to seven times as high. One story proves little. So look at the loss, and test a mask on scores that contain
# zeros: only that test catches all five.
#
# **Does it catch yours?** Write a sixth mistake, one that passes both tests. How high can you drive the loss?

# %% tags=["raises-exception"]
def sixth(scores):
    return right(scores)  # change this line


tried(sixth)

# %% [markdown]
# ## Summary
#
# - **Minus infinity** before the softmax gives a weight of exactly 0, needs no second division, and works at any gap.
# - A **padding mask** hides columns, a causal mask a triangle; `|` joins them. Without it an answer depends on what else is in the batch, rarely
#   enough that tests miss it.
# - **The price is the empty row**: `nan`, and 0 · nan is `nan`, so in the next layer it spreads to every token of that story, and in training to
#   every parameter.
# - A **finite fill** avoids the `nan`, but an empty row then attends to everything. A good guard corrects only the case it is meant for.
#
# **Next.** With the right mask the model can be trained on thousands of stories. What does it learn from only fifty, if it sees each of them about 200
# times? Lesson 04 trains it, and asks.

# %%
# demonstration: this lesson on a card; write a line of your own between the quotes
from attention_course import remember

remember("")

# %% [markdown]
# ## Further reading
#
# - Vaswani et al., *Attention Is All You Need*, 2017, section 3.2.3: illegal connections are set to minus infinity before the softmax.
# - The six tokens, their vectors and the seeds 123 and 789: Sebastian Raschka, *Build a Large Language Model (From Scratch)*, 2024, chapter 3.
#
# *Using Colab or another hosted service?* Get `attention_notebooks-….whl` where you got the lesson, put it beside the notebook, run
# `%pip install attention_notebooks-*.whl` in a new cell above the others, and restart the kernel.
