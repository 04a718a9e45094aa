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
# # Fast attention: the same numbers, without the matrix
#
# Attention compares every token with every token. For n tokens that makes n × n scores for each head. In a story of 40 words nobody minds; in a text
# of 100,000 words it decides what fits into memory. In this lesson you compute the same context vectors from small tiles and never hold the matrix.
# That idea is called **FlashAttention**, and PyTorch's own function uses it where it can. You write the forward pass only; part 4 shows what training
# would also need.
#
# **You will be able to**
# - compute a softmax while reading its row block by block;
# - write attention from tiles, and say what it saves and what it does not;
# - call PyTorch's two attention APIs without mixing up their masks, and hand your trained layer to PyTorch;
# - limit attention to a sliding window, and say how far information still travels.
#
# **It builds on** lesson 01 (softmax, scale), 03 (masks) and 06 (`MultiHeadAttention`).
#
# | part | minutes, estimated |
# |---|---|
# | 1 What the model makes and throws away | 5 |
# | 2 A softmax in blocks | 20 |
# | 3 Attention in tiles | 25 |
# | 4 What is saved | 10 |
# | 5 PyTorch's way | 20 |
# | 6 A sliding window | 10 |
# | 7 What goes wrong in practice, summary | 5 |
# | total | 95 |
#
# *Run the cells from top to bottom, fill in the exercises, and ask for `hint`, `why` and `progress()` when you need them.* As before,
# float64 in gives float64 out; let gradients through and don't modify the arguments.
#
# *Using Colab or another hosted service?* Get the file `attention_notebooks-….whl` from where you got this lesson, put
# it beside the notebook, and run `%pip install attention_notebooks-*.whl` in a new cell above the others.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
import os
import time

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from attention_course import (
    answers, attention_of, begin, beside, case, chart, course_model, encode, explore, heatmap, hint, pairs,
    panels, progress, rubric, show, stories, table, why, write,
)
from attention_course import MultiHeadAttention  # lesson 06's layer, as the trained model has it

# "cuda" runs the exercises and the measurements on a GPU
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


def future(n):
    """Lesson 03's mask (n, n): True above the diagonal, hidden."""
    return torch.ones(n, n, dtype=torch.bool, device=device).triu(diagonal=1)


def plain_attention(q, k, v, causal=False):
    """Lessons 01 to 03 in three lines: the scores, their softmax, the context vectors, (..., n, d) each."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # (..., n, n)
    if causal:
        scores = scores.masked_fill(future(q.shape[-2]).to(q.device), -math.inf)
    return scores.softmax(dim=-1) @ v


# %% [markdown]
# ## 1 What the model makes and throws away
#
# The course's trained model reads a story and answers the question at its end. How many attention weights does it compute to read the story once, and
# how many numbers leave its heads?

# %%
model = course_model()  # trained: two layers of four heads, width 48
story = "Lucy has two books . Ben has a cake . he eats it upstairs . she reads them downstairs . where is Ben ?"
words = begin(story)
weights = attention_of(model, words)  # (2, 4, n, n)
visible = ~future(len(words)).cpu()
answer = " ".join(write(model, words)[len(words) :])
print(answer[: answer.index(".") + 1])
print(f"{len(words)} words, {weights.numel():,} weights in eight heads, {2 * len(words) * 48:,} numbers leave the heads")
print(f"of the weights, {1 - visible.float().mean():.0%} belong to the future and are 0")

# %% jupyter={"source_hidden": true}
# draws the figure
show(
    panels(
        heatmap(weights[1, 1], words, words, title="head 2.2: all weights, made at once", hidden=~visible, limits=(0, 1)),
        heatmap(weights[1, 1, 16:17], [words[16]], words, title=f"what “{words[16]}” took from it", row_name="", limits=(0, 1), bar=False),
        size=(7.6, 7.4),
        in_a_row=1,
    ),
    "Above, a heatmap of the weights of one trained head for a story of 25 words, the upper right half hidden. Below, the one row of the "
    "matrix that the word she needs: nearly all of its weight is on books.",
)

# %% [markdown]
# The matrix is written to memory, used to mix the values, and forgotten. Each row is needed by one word only.
#
# **Predict, then run.** A text of 100,000 words, one head, 4 bytes for a float32 number. How many gigabytes does the matrix take?

# %%
my_guess = None  # gigabytes

# %%
beside(my_guess, 100_000**2 * 4 / 1e9)

# %% [markdown]
# That is for one head of one layer. The context vectors of that head, with 64 numbers a word, take 0.03 GB. Twice the text means four times
# the matrix: memory grows with n².
#
# So do not make the matrix. Take a few keys at a time, use their scores, and forget them. One thing stands in the way: the softmax. Each exponential
# is divided by a sum over the *whole* row.
#
# ## 2 A softmax in blocks
#
# Lesson 01 subtracts the largest number of the row before `exp`, so that nothing overflows:
#
# $$\text{softmax}(x)_i = \frac{e^{x_i - m}}{\sum_j e^{x_j - m}}, \qquad m = \max_j x_j$$
#
# It needs the maximum before the sum, and the sum before the first result. Now suppose that the row arrives in blocks, and that you may look at one
# block at a time. The figure shows twelve numbers in three blocks. Each column is one moment. The upper bars are the numbers, grey where not yet read;
# the line is m, the largest number *so far*. The lower bars are $e^{x - m}$ of what has been read, and the dashed outlines are the same bars one block
# earlier.

# %% jupyter={"source_hidden": true}
# draws the figure
row = torch.tensor([1.0, 3.0, 0.5, 2.0, 2.5, 4.2, 1.5, 3.5, 0.3, 4.0, 5.0, 4.6], device=device)  # three blocks of 4


def moments(row, block):
    ends = range(block, len(row) + 1, block)
    figure, axes = plt.subplots(2, len(ends), figsize=(11, 4.8), layout="constrained", sharex=True, height_ratios=(1, 1.2))
    places, earlier = torch.arange(len(row)), None
    for (above, below), end in zip(axes.T, ends):
        largest = row[:end].max()
        above.bar(places[:end], row[:end], color="#1f6f8b")
        above.bar(places[end:], row[end:], color="#e3e3e3")
        above.axhline(largest, color="#b5541c", linewidth=2)
        above.set(title=f"{end} of {len(row)} read, maximum {largest:.1f}", ylim=(0, 5.6))
        exps = torch.exp(row[:end] - largest)
        for edge in ends:
            above.axvline(edge - 0.5, color="0.8", linewidth=0.8)
            below.axvline(edge - 0.5, color="0.8", linewidth=0.8)
        below.bar(places[:end], exps, color="#1f6f8b", label="exp(x - maximum)")
        if earlier is not None:
            below.bar(places[: len(earlier)], earlier, fill=False, edgecolor="#b5541c", linestyle="--", label="one block earlier")
        below.legend(loc="upper left", fontsize=8)
        below.set(ylim=(0, 1.35), xlabel="number", title=f"sum so far {exps.sum():.3f}")
        earlier = exps
    axes[0][0].set_ylabel("x")
    return figure


show(
    chart(moments, row.cpu(), 4),
    "Three moments. The maximum so far is a line that rises from 3.0 to 4.2 to 5.0. Below, the bars of exp(x minus maximum): each time the line "
    "rises, all earlier bars shrink by the same factor, drawn as dashed outlines around them.",
)

# %% [markdown]
# When the maximum rises from 3.0 to 4.2, every earlier bar shrinks from its dashed outline, and all of them by the same factor. Their *sum* shrinks by
# that factor, too, so you need not go back to them.
#
# **Predict, then run.** By which factor do the first four bars shrink when the maximum rises from 3.0 to 4.2?

# %%
my_guess = None  # a number between 0 and 1

# %%
first = row[:4]
beside(my_guess, round((torch.exp(first - 4.2).sum() / torch.exp(first - 3.0).sum()).item(), 4))

# %% [markdown]
# ### Exercise: `online_softmax` (4 points)
#
# ```
# x (n,)   ──read `block` numbers at a time, the last block may be shorter──►   softmax of x (n,)
# ```
#
# Keep a running maximum and a running sum. No operation that compares or adds up the numbers within a tensor (a maximum, sum, mean, sort, or a matrix
# product) may read more at once than one block and, with it, the running maximum or sum; the rubric watches every operation. Once the maximum and the
# sum of the whole row are known, you may compute all results in one go. Do not use PyTorch's `softmax`, `log_softmax` or `logsumexp`, or a function
# that contains one. The result is right for numbers up to ±10,000, in any order.

# %% nbgrader={"grade": false, "grade_id": "online_softmax", "locked": false, "schema_version": 3, "solution": true, "task": false}
def online_softmax(x, block):
    """Softmax of a 1-D tensor, read block by block with a running maximum and sum."""
    ### BEGIN SOLUTION
    largest = x.new_tensor(-math.inf)  # of what has been read
    total = x.new_tensor(0.0)  # of exp(x - largest)
    for part in x.split(block):
        larger = torch.maximum(largest, part.amax())
        total = total * torch.exp(largest - larger) + torch.exp(part - larger).sum()
        largest = larger
    return torch.exp(x - largest) / total
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_online_softmax", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
# The contract as a checklist; open this cell to read it.
@rubric("online_softmax", forbids=["softmax", "softmin", "logsumexp", "cross_entropy", "scaled_dot_product_attention"])
def _(r):
    rising, steep, far = 3 * r.normal(12).sort().values, 1e3 * torch.arange(9.0, device=device) + r.uniform(9), 12 * r.normal(8).argsort().float() - 1e4
    r.idea.each("the softmax of the whole row, in any order and for ±10,000", online_softmax, (rising.flip(0), 4), (rising, 4), (3 * r.normal(23), 5), (steep, 2), (steep.flip(0), 2), (far, 3), (rising[:4].repeat(3), 4))
    r.each("blocks of one number, a short last block, a block longer than x", online_softmax, (2 * r.normal(7), 1), (2 * r.normal(11), 4), (2000 * r.normal(3), 8))
    r.sums_in_blocks("no maximum or sum reads more than a block and one running number", online_softmax, (3 * r.normal(12), 4), (3 * r.normal(23), 2))
    r.forbids("does without PyTorch's softmax, logsumexp and what contains them", online_softmax)
    r.conventions(online_softmax, 2 * r.normal(10), 3)

# %% [markdown]
# Here is what your function makes of the twelve numbers, in blocks of 1, 4 and 12, and whether it agrees with PyTorch's softmax on a longer row.

# %% tags=["raises-exception"]
for block in (1, 4, 12):
    print(f"block {block:>2}:", " ".join(f"{weight:.3f}" for weight in online_softmax(row, block).tolist()))
torch.manual_seed(123)
long_row = 5 * torch.randn(1000, dtype=torch.float64).to(device)
for dtype, limit in ((torch.float32, 1e-6), (torch.float64, 1e-12)):
    apart = (online_softmax(long_row.to(dtype), 64) - long_row.to(dtype).softmax(dim=-1)).abs().max().item()
    print(f"1,000 numbers in {dtype}: differs by less than {limit}: {apart < limit}")

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
def results(by_block, wanted):
    figure, axes = plt.subplots(figsize=(9, 3), layout="constrained")
    places = torch.arange(len(wanted))
    for number, ((block, weights), colour) in enumerate(zip(by_block.items(), ("#1f6f8b", "#d9a441", "#7a5195"))):
        axes.bar(places + 0.26 * (number - 1), weights, width=0.26, color=colour, label=f"yours, blocks of {block}")
    axes.plot(places, wanted, "k_", markersize=22, label="PyTorch")
    axes.set(xlabel="number", ylabel="weight", title="The same softmax, whatever the block")
    axes.legend()
    return figure


show(
    chart(results, {block: online_softmax(row, block).detach().cpu() for block in (1, 4, 12)}, row.softmax(dim=-1).cpu()),
    "Bars of your softmax of the twelve numbers for blocks of 1, 4 and 12, three side by side at each place, with a line where PyTorch's result "
    "lies. If they are right, all bars end at the lines.",
)

# %% [markdown]
# ## 3 Attention in tiles
#
# A context vector is also made of sums over keys:
#
# $$\text{context} = \frac{\sum_j e^{s_j - m}\, v_j}{\sum_j e^{s_j - m}}$$
#
# The numerator is a mixture of values, not yet divided. It is made of the same exponentials as the sum in the denominator. So the trick carries over:
# for each query keep **three things**, the maximum so far, the sum so far, and the mixture so far. When the maximum rises, the sum and the mixture
# shrink by the same factor. Divide once, at the end.
#
# Do this for a block of queries at once, and the scores come in **tiles**: a few queries against a few keys.
#
# ```
# queries (..., r, d)   @   keys of one block (..., d, c)   =   one tile of scores (..., r, c)
# kept for these queries: maximum (..., r, 1), sum (..., r, 1), mixture (..., r, d)
# ```
#
# With a causal mask there is more to gain. On the left, all scores are in memory at once, the hidden ones (hatched) too. On the right, move the
# slider: the orange tile is the only one in memory (the bars at the edges mark its keys and queries), blue tiles are done, grey ones are still to
# come, and white hatched ones are never computed. (The hatched corners of the tiles on the diagonal are computed and then masked.)

# %% jupyter={"source_hidden": true}
# draws the figure
TILES = [(top, left) for top in range(0, 12, 3) for left in range(0, top + 1, 3)]  # causal, 12 tokens in blocks of 3


def draw_tiles(tile):
    figure, (matrix, axes) = plt.subplots(1, 2, figsize=(10, 4.7), layout="constrained")
    for i in range(12):
        for j in range(12):
            hatch = {"edgecolor": "white", "hatch": "//"} if j > i else {"edgecolor": "white"}
            matrix.add_patch(plt.Rectangle((j, i), 1, 1, facecolor="#e08a2b", linewidth=0.5, **hatch))
    for number, (top, left) in enumerate(TILES, start=1):
        colour = "#1f6f8b" if number < tile else "#e08a2b" if number == tile else "#d9d9d9"
        axes.add_patch(plt.Rectangle((left, top), 3, 3, facecolor=colour, edgecolor="white", linewidth=3))
        for i, j in ((0, 1), (0, 2), (1, 2)) if top == left else ():
            axes.add_patch(plt.Rectangle((left + j, top + i), 1, 1, fill=False, edgecolor="white", hatch="//", linewidth=0))
    for top, left in [(top, left) for top in range(0, 12, 3) for left in range(top + 3, 12, 3)]:
        axes.add_patch(plt.Rectangle((left, top), 3, 3, facecolor="white", edgecolor="#b8b8b8", hatch="//", linewidth=0))
    top, left = TILES[tile - 1]
    axes.add_patch(plt.Rectangle((left, -0.7), 3, 0.5, color="#e08a2b"))
    axes.add_patch(plt.Rectangle((-0.7, top), 0.5, 3, color="#e08a2b"))
    for one, title in ((matrix, "the matrix: 144 scores in memory"), (axes, f"tile {tile} of {len(TILES)}: 9 scores in memory")):
        one.set(xlim=(-0.8, 12), ylim=(12, -0.8), xticks=range(0, 12, 3), yticks=range(0, 12, 3), xlabel="key", ylabel="query", title=title, aspect="equal")
    return figure


def at_work(tile):
    top, left = TILES[tile - 1]
    masked = "its upper triangle is masked" if top == left else "nothing in it is hidden"
    said = f"Queries {top} to {top + 2}, keys {left} to {left + 2}: 9 scores in memory instead of 144; {masked}. 6 of 16 tiles are skipped."
    return chart(draw_tiles, tile), said


explore(
    at_work,
    alt="Left, the 12 by 12 scores, all in memory, the future hatched. Right, the same in tiles of 3 by 3: one is being computed, and those in the future are skipped.",
    tile=[8, 9, 10, 1, 2, 3, 4, 5, 6, 7],
)

# %% [markdown]
# ### Exercise: `tiled_attention` (6 points)
#
# ```
# q, k, v (..., n, d) each   ──►   context vectors (..., n, d); scores are divided by the root of d
# ```
#
# - At most `block` keys take part in any product; the last block may be shorter. A tile may have any number of queries.
# - When `block` is smaller than n, never make a tensor with as many numbers as the n × n scores of all heads have. (In the rubric n is larger than d, so
#   the result is smaller than that.) The rubric watches the size of every tensor that your answer makes. A mask of n × n is allowed.
# - With `causal=True` no token sees a later one. Cut the queries into blocks, too, and skip the tiles that lie wholly in the future: about half of the
#   scores are then computed.
# - The result is right for scores up to ±10,000.

# %% nbgrader={"grade": false, "grade_id": "tiled_attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
def tiled_attention(q, k, v, block, causal=False):
    """Attention from tiles of at most block keys, (..., n, d) each."""
    ### BEGIN SOLUTION
    n, d = q.shape[-2:]
    outputs = []
    for top in range(0, n, block):
        queries = q[..., top : top + block, :] / math.sqrt(d)  # (..., r, d), r rows of this tile
        largest = queries.new_full((*queries.shape[:-1], 1), -math.inf)  # (..., r, 1)
        total, mixture = torch.zeros_like(largest), 0.0  # (..., r, 1), (..., r, d)
        for left in range(0, top + 1 if causal else n, block):
            keys, values = k[..., left : left + block, :], v[..., left : left + block, :]  # (..., c, d)
            scores = queries @ keys.mT  # (..., r, c)
            if causal and left == top:
                scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(diagonal=1), -math.inf)
            larger = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))
            shrink, exps = torch.exp(largest - larger), torch.exp(scores - larger)
            total = total * shrink + exps.sum(dim=-1, keepdim=True)
            mixture = mixture * shrink + exps @ values
            largest = larger
        outputs.append(mixture / total)
    return torch.cat(outputs, dim=-2)
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_tiled_attention", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("tiled_attention")  # the contract as a checklist; open this cell to read it
def _(r):
    small, pairs = [r.normal(5, 3) for _ in range(3)], [2 * r.normal(2, 3, 9, 4) for _ in range(3)]
    large, deep = [r.normal(40, 4) for _ in range(3)], [r.normal(2, 43, 4) for _ in range(3)]
    whole = *[(100 * r.normal(40, 4)).round() for _ in range(2)], r.normal(40, 4)  # scores of ±10,000
    v = r.normal(40, 4).double()
    low = torch.full_like(v, 100), torch.full_like(v, -50), v  # scores of -10,000
    r.idea.each("full attention, for one sentence, for heads, for scores of ±10,000", tiled_attention, (*small, 2), (*pairs, 2), (*whole, 9))
    r.idea.each("causal: every token sees itself and those before it", tiled_attention, (*small, 2, True), (*pairs, 3, True), (*pairs, 4, True), (*low, 8, True))
    r.each("blocks of one token, one block, a block longer than the sentence", tiled_attention, (*small, 1, True), (*small, 5), (*small, 5, True), (*pairs, 20, True))
    r.attends_in_blocks("at most block keys at a time, and never n x n scores", tiled_attention, (*large, 7), (*(x[:16] for x in large), 3), (*deep, 8, True), (*whole, 8, True))
    r.skips_the_future("causal: blocks wholly in the future are left out", tiled_attention, (*large, 8), (*deep, 8))
    r.conventions(tiled_attention, *pairs, 2, True)

# %% [markdown]
# Here are the six tokens of the course, with the matrices of lesson 05, in blocks of two keys. You know the table from there.

# %% tags=["raises-exception"]
torch.manual_seed(123)
W_query, W_key, W_value = (nn.Linear(3, 2, bias=False).to(device) for _ in range(3))
q, k, v = W_query(inputs), W_key(inputs), W_value(inputs)  # (6, 2) each
table(tiled_attention(q, k, v, block=2, causal=True), rows=tokens, columns=["0", "1"])

# %% [markdown]
# "The same numbers" means the same up to rounding, because sums are taken in another order. How large is the difference? The baseline is tiles without a
# running maximum.

# %% tags=["raises-exception"]
def without_maximum(q, k, v, block):
    """Tiles that add up exp(score) as it is."""
    total = mixture = 0.0
    for keys, values in zip(k.split(block, dim=-2), v.split(block, dim=-2)):
        exps = torch.exp(q @ keys.mT / math.sqrt(q.shape[-1]))
        total, mixture = total + exps.sum(dim=-1, keepdim=True), mixture + exps @ values
    return mixture / total


torch.manual_seed(123)
heads = torch.randn(3, 4, 100, 16, dtype=torch.float64).to(device)  # q, k, v: 4 heads, 100 tokens
for size, factor in (("scores of ±5", 1.0), ("scores of ±10,000", 45.0)):
    large = (factor * heads[:2]).round() if factor > 1 else heads[:2]  # whole numbers: their scores are exact
    for dtype, limit in ((torch.float32, 1e-5), (torch.float64, 1e-12)):
        q, k, v = (one.to(dtype) for one in (*large, heads[2]))
        wanted = plain_attention(q, k, v)
        apart = [(got - wanted).abs().max().item() for got in (tiled_attention(q, k, v, 16), without_maximum(q, k, v, 16))]
        yours, plain = ("nan" if math.isnan(one) else f"within {limit:.0e}" if one < limit else "further off" for one in apart)
        print(f"{size:>18}, {dtype}: yours {yours}, without a maximum {plain}")

# %% [markdown]
# With moderate scores both are right. With large ones `exp` overflows without a maximum, and the result is `nan`. (The large q and k are whole
# numbers, so that their scores are exact. Otherwise a float32 score near 10,000 is off by about 0.001, whichever way attention is computed, and a
# softmax shows it.)
#
# ## 4 What is saved
#
# Without a mask no arithmetic is saved: the tiles multiply the same numbers, and a few corrections come on top. (Causal tiles skip up to half.) What is
# saved is **memory** and the traffic to and from it. A processor has little fast memory (cache, or on a GPU shared memory) and much slow memory. Count
# the numbers that cross between the two in the forward pass, for one head that is not causal:
#
# | | reads and writes | numbers |
# |---|---|---|
# | the matrix way | q, k, v read, context written | 4nd |
# | | scores written, then read and written twice (scale, softmax), then read to mix | 6n² |
# | tiles of B queries | q read, context written, once | 2nd |
# | | k and v read once for each of the n / B blocks of queries | 2n²d / B |
#
# For long texts tiles win as soon as B is larger than d / 3. A larger B is better as long as the tile and its mixture fit into fast memory; on GPUs B
# is usually 64 or 128.
#
# Both counts still grow with n². What grows only with n is the memory that the forward pass *holds*: a few times nd numbers, in place of one or two n
# × n matrices.
#
# **Predict, then run.** n = 4,096, d = 64, B = 256. How many times fewer bytes do the tiles move?

# %%
my_guess = None  # times fewer

# %%
def bytes_moved(n, d, block=None):
    """Bytes between slow and fast memory for one head in float32: with the matrix, or in tiles."""
    return 4 * (4 * n * d + 6 * n**2) if block is None else 4 * (2 * n * d + 2 * n**2 * d // block)


beside(my_guess, round(bytes_moved(4096, 64) / bytes_moved(4096, 64, 256), 1))

# %% [markdown]
# That is a count on paper. Now measure the most memory held at once: for the matrix, for your tiles, and for PyTorch's
# `scaled_dot_product_attention`, which does the same in compiled code. The last number in each line is for a forward *and* a backward pass, as in
# training. The figure below has the other lengths.

# %% tags=["raises-exception", "nbval-ignore-output"]
# demonstration: measures memory
os.environ["KINETO_LOG_LEVEL"] = "9"  # PyTorch's profiler would note each start and stop


def most_memory(attend, *args):
    """The most bytes held at once while attend runs, beyond its arguments."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        held = torch.cuda.memory_allocated()
        attend(*args)
        return torch.cuda.max_memory_allocated() - held
    with torch.autograd.profiler.profile(profile_memory=True) as profile:
        attend(*args)
    changes = [event.nbytes() for event in profile.kineto_results.events() if event.name() == "[memory]"]
    return torch.tensor(changes).cumsum(dim=0).max().item()


ways = {
    "the matrix": plain_attention,
    "your tiles of 256": lambda q, k, v: tiled_attention(q, k, v, 256),
    "PyTorch": scaled_dot_product_attention,
}
lengths = [256, 512, 1024, 2048, 4096]
held = {name: [] for name in ways}
for n in lengths:
    qkv = torch.randn(3, 1, 1, n, 64, device=device).unbind()
    for name, attend in ways.items():
        held[name].append(most_memory(attend, *qkv) / 2**20)
qkv = [one.clone().requires_grad_() for one in qkv]
for name, attend in ways.items():
    training = most_memory(lambda *args: torch.autograd.grad(attend(*args).sum(), args), *qkv) / 2**20
    print(f"{name:>17}, n = {n:,}: forward {held[name][-1]:5.1f} MiB, with gradients {training:5.1f} MiB")

# %% jupyter={"source_hidden": true} tags=["raises-exception", "nbval-ignore-output"]
# demonstration: draws the figure
def costs(lengths, moved, held):
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    named = (axes[0], moved, "forward: bytes moved (counted)"), (axes[1], held, "forward: most memory held (measured)")
    styles = {"the matrix": ("#b5541c", "o-"), "your tiles of 256": ("#1f6f8b", "s-"), "tiles of 256 that stay in fast memory": ("#1f6f8b", "s-"), "PyTorch": ("#7a5195", "^--")}
    for ax, values, title in named:
        for name, curve in values.items():
            colour, style = styles[name]
            ax.loglog(lengths, curve, style, color=colour, label=name)
        ax.set(xlabel="tokens n", ylabel="MiB", title=title)
        ax.set_xticks(lengths[::2], [f"{n:,}" for n in lengths[::2]])
        ax.minorticks_off()
        ax.grid(alpha=0.3)
        ax.legend()
    return figure


moved = {"the matrix": [bytes_moved(n, 64) / 2**20 for n in lengths], "tiles of 256 that stay in fast memory": [bytes_moved(n, 64, 256) / 2**20 for n in lengths]}
show(
    chart(costs, lengths, moved, {name: [round(one, 3) for one in curve] for name, curve in held.items()}),
    "Two log-log charts of the forward pass against the number of tokens from 256 to 4,096. Bytes counted: both curves rise nearly with the square of n, at 4,096 "
    "the tiles are eleven times lower. Memory held: the matrix rises with the square of n, your tiles and PyTorch far more slowly.",
)

# %% [markdown]
# The left chart counts tiles that stay in fast memory. Yours are tensors like all others, and PyTorch writes each one out; compiled code need not.
# The right chart is the point: from 1,024 to 4,096 tokens the memory of the matrix grows sixteenfold. That of your tiles about doubles, because the
# output grows; the tile itself stays as large as it was. At 256 tokens you have one tile, which is the whole matrix, so nothing is saved. (On a CPU,
# PyTorch takes larger tiles from 768 tokens on, hence the step in its curve.)
#
# This is true of the forward pass without gradients. With gradients autograd keeps every tile for the backward pass, and your tiles grow with n²
# again, as the matrix does. FlashAttention keeps the maximum and the sum of each row, and computes the tiles again in the backward pass. (FlashAttention-2
# keeps one number for each row, made from the two.) PyTorch's function computes the tiles again, too.
#
# And the time? It depends on the machine. The next cell takes a few seconds.

# %% tags=["raises-exception", "nbval-ignore-output", "unsteady-output"]
# demonstration: measures time
def seconds(attend, *args):
    """The shortest of three runs."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        attend(*args)
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return min(times)


for n in lengths:
    qkv = torch.randn(3, 1, 1, n, 64, device=device).unbind()
    print(f"n = {n:5,}:", ", ".join(f"{name} {1000 * seconds(attend, *qkv):.1f} ms" for name, attend in ways.items()))

# %% [markdown]
# Each of your tiles costs one pass through a Python loop, whatever its size, so smaller tiles would mean more passes for the same work. PyTorch's loop
# is compiled. At n = 256 there is one tile, as large as the matrix, so nothing can be gained. On a GPU, moving the matrix to and from slow memory takes
# most of the time of plain attention (Dao et al., below). With `AUTOGRADE_DEVICE=cuda` the cell runs there. But its numbers are float32, and on a GPU
# PyTorch's FlashAttention takes float16 and bfloat16 only. Nor does it take an `attn_mask`; for the causal mask it has `is_causal`. For float32 PyTorch
# takes another kernel, which works in tiles, too. We measured causal attention on an H200, with eight heads of 64 and 16,384 tokens:
#
# | | the matrix | PyTorch's function |
# |---|---|---|
# | bfloat16 | 18.5 ms, 12,544 MiB | 0.72 ms, 16 MiB |
# | float32 | 35.6 ms, 24,832 MiB | 8.95 ms, 32 MiB |
#
# **Does the trained model still answer?** Here your tiles are inside it, in place of the matrix. The baseline is a layer in which each block of words
# attends to itself only.

# %% tags=["raises-exception"]
# demonstration: asks three models
class TiledHeads(MultiHeadAttention):
    """Lesson 06's layer with your tiles in the middle."""

    def heads(self, x):
        q, k, v = (self.split(layer(x)) for layer in (self.W_query, self.W_key, self.W_value))  # (b, h, n, d/h)
        return tiled_attention(q, k, v, block=8, causal=True)


class BlocksAlone(MultiHeadAttention):
    """The baseline: attention within each block of 8 tokens, and none between them."""

    def heads(self, x):
        q, k, v = (self.split(layer(x)).split(8, dim=2) for layer in (self.W_query, self.W_key, self.W_value))
        return torch.cat([plain_attention(*block, causal=True) for block in zip(q, k, v)], dim=2)


def with_layer(kind):
    """The trained model with every attention layer replaced by one of this kind, which carries the same weights."""
    changed = course_model()
    for block in changed.layers():
        layer = kind(48, 48, 48, 0.0, 4)
        layer.load_state_dict(block.attention.state_dict())
        block.attention = layer
    return changed.eval()


told = stories(100, seed=5)
for name, kind in {"the matrix": MultiHeadAttention, "your tiles": TiledHeads, "each block alone": BlocksAlone}.items():
    print(f"{name:>16}: {answers(with_layer(kind), told)['all']:.0%} of the questions in 100 stories answered correctly")
scores = [one(torch.tensor([encode(words)])) for one in (model, with_layer(TiledHeads))]
print("largest difference of a score below 0.0001:", (scores[0] - scores[1]).abs().max().item() < 1e-4)

# %% [markdown]
# ## 5 PyTorch's way
#
# `scaled_dot_product_attention(q, k, v)` reads `(..., n, d)`, divides the scores by the root of d, and takes a mask as `attn_mask`. PyTorch has a
# second API, the layer `nn.MultiheadAttention`, and it takes a boolean `attn_mask`, too. The two read it in opposite ways:
#
# | | True in the mask means |
# |---|---|
# | `nn.MultiheadAttention` | **hidden** |
# | `scaled_dot_product_attention` | **takes part** |
#
# **Predict, then run.** `future(6)` is True above the diagonal. What does the *function* give the last token when it gets that mask as it is?

# %%
my_guess = None  # "the right vector", "an error", "nan" or "zeros"

# %%
torch.manual_seed(123)
q, k, v = torch.randn(3, 6, 4).to(device).unbind()
right, swapped = plain_attention(q, k, v, causal=True), scaled_dot_product_attention(q, k, v, attn_mask=future(6))
outcome = "zeros" if (swapped[-1] == 0).all() else "nan" if swapped[-1].isnan().any() else "the right vector" if torch.allclose(swapped[-1], right[-1]) else "another vector"
beside(my_guess, outcome)
print("tokens with the right vector:", int(((swapped - right).abs().amax(dim=-1) < 1e-5).sum()), "of 6")

# %% jupyter={"source_hidden": true}
# draws the figure
# with the identity matrix as values, the output is the weights themselves
seen = [scaled_dot_product_attention(q, k, torch.eye(6, device=device), attn_mask=mask) for mask in (~future(6), future(6))]
show(
    panels(
        heatmap(seen[0], tokens, tokens, title="attn_mask=~future(6): right", hidden=future(6), limits=(0, 1), bar=False),
        heatmap(seen[1], tokens, tokens, title="attn_mask=future(6): only the future", hidden=~future(6) & (torch.arange(6, device=device) < 5)[:, None], limits=(0, 1)),
        size=(11, 4.5),
    ),
    "Two heatmaps of weights from PyTorch's function. Left, with the mask inverted, the lower triangle is filled. Right, with the mask as it is, the "
    "upper triangle is filled without the diagonal, and the last row holds zeros.",
)

# %% [markdown]
# There is no error and no `nan`. Every token sees the future and nothing else, not even itself. The last token has no future, and this version of
# PyTorch gives it zeros, without a warning (older versions gave nan). A test of shapes alone would not notice.
#
# ### Exercise: `with_sdpa` (2 points)
#
# Return the context vectors, computed by PyTorch's function, without a softmax or exponentials of your own. `mask` is bool, and as everywhere in this
# course **True = hidden**. A hidden key gets no weight, whatever the scores are. The mask has two dimensions or more, in any shape that broadcasts to
# `(..., n, n)`, and every row has a visible key.

# %% nbgrader={"grade": false, "grade_id": "with_sdpa", "locked": false, "schema_version": 3, "solution": true, "task": false}
def with_sdpa(q, k, v, mask):
    """Attention from PyTorch's function, for a mask where True = hidden."""
    ### BEGIN SOLUTION
    return scaled_dot_product_attention(q, k, v, attn_mask=~mask)
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_with_sdpa", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("with_sdpa", forbids=["softmax", "exp"])  # the contract as a checklist; open this cell to read it
def _(r):
    causal = torch.ones(6, 6, dtype=torch.bool, device=device).triu(diagonal=1)
    one, heads = [2 * r.normal(6, 3) for _ in range(3)], [2 * r.normal(4, 4, 6, 5) for _ in range(3)]
    rising = torch.full((6, 3), 1e5, device=device), 2e5 * torch.arange(6.0, device=device).repeat(3, 1).T, one[2]  # each score 35 billion above the last
    r.idea.each("True hides, whatever the scores: no token sees the future", with_sdpa, (*one, causal), (*heads, causal), (*rising, causal))
    r.idea.each("any other mask: for each sentence or head, or hiding nothing", with_sdpa, (*one, r.mask(6, 6)), (*one, causal.triu(2)), (*heads, r.mask(4, 1, 6, 6)), (*heads, r.mask(4, 6, 6)), (*heads, r.mask(4, 1, 1, 6)), (*heads, torch.zeros_like(causal)), (*(x[:1] for x in one), causal[:1, :1]))
    r.conventions(with_sdpa, *one, r.mask(6, 6))
    r.forbids("leaves the softmax to PyTorch's function", with_sdpa)

# %% tags=["raises-exception"]
print("the causal mask, within 0.00001 of the matrix:", (with_sdpa(q, k, v, future(6)) - right).abs().max().item() < 1e-5)

# %% [markdown]
# ### From your layer to PyTorch's
#
# Other people will want to use your trained layer without your class. `nn.MultiheadAttention` holds the same numbers under other names:
#
# ```
# mha                                       nn.MultiheadAttention(d, heads, batch_first=True)
#   W_query.weight   (d, d) ─┐
#   W_key.weight     (d, d) ─┼─ stacked ─►    in_proj_weight    (3d, d)
#   W_value.weight   (d, d) ─┘
#   their biases, if any    ── stacked ─►     in_proj_bias      (3d,)
#   out_proj                       ─►         out_proj
# ```
#
# ### Exercise: `to_torch` (3 points)
#
# Return an `nn.MultiheadAttention` with `batch_first=True` that gives the output of `mha`. With both in `eval()`,
# `result(x, x, x, attn_mask=future(n))[0]` has to equal `mha(x)` for x `(b, n, d)`. `mha` is a `MultiHeadAttention` with `d_in` equal to `d_out`,
# `mha.num_heads` heads, with or without `qkv_bias`. The result has the dtype and device of `mha`; its dropout is up to you, and it may share tensors
# with `mha`. `mha` stays as it was, its mode and `requires_grad` included.

# %% nbgrader={"grade": false, "grade_id": "to_torch", "locked": false, "schema_version": 3, "solution": true, "task": false}
def to_torch(mha):
    """PyTorch's own layer with the numbers of mha."""
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


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_to_torch", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("to_torch")  # the contract as a checklist; open this cell to read it
def _(r):
    mha = r.layer(MultiHeadAttention, d_in=6, d_out=6, context_length=9, dropout=0.0, num_heads=3, qkv_bias=False)
    mha.linear("W_query W_key W_value", "d_in -> d_out", bias="qkv_bias")
    mha.linear("out_proj", "d_out -> d_out", bias="always")
    torchs = r.converts(to_torch, mha)
    torchs.idea.outputs("gives the output of mha, with the causal mask", r.normal(1, 2, 6), r.normal(2, 7, 6), r.normal(3, 9, 6))
    torchs.outputs("with a bias in queries, keys and values", r.normal(2, 7, 6), qkv_bias=True)
    torchs.outputs("one head, and a layer with dropout", r.normal(3, 6, 6), num_heads=1, dropout=0.5)
    torchs.outputs("float64", r.normal(2, 7, 6, dtype=torch.float64))
    torchs.keeps_source("mha is as it was", r.normal(2, 4, 6))

# %% [markdown]
# Here the trained second attention layer of the course's model becomes PyTorch's. First it gets the mask in both senses.

# %% tags=["raises-exception"]
ours = model.layers()[1].attention
theirs = to_torch(ours).eval()
with torch.no_grad():
    x = model.layers()[1].norm1(model.layers()[0](model.embed(torch.tensor([encode(words)]))))  # (1, n, 48): what the layer reads
    hidden = future(len(words)).cpu()
    for name, mask in {"attn_mask=future(n)": hidden, "attn_mask=~future(n)": ~hidden}.items():
        apart = (theirs(x, x, x, attn_mask=mask)[0] - ours(x)).abs().max().item()
        print(f"{name}: {'the same output' if apart < 1e-4 else 'another output'}")

# %% [markdown]
# Both the function and the layer have an argument `is_causal`. With `is_causal=True` the function makes the mask itself. The layer takes it only as
# your word that the mask you pass is the causal one; you still have to pass that mask.

# %% tags=["raises-exception"]
apart = (scaled_dot_product_attention(q, k, v, is_causal=True) - right).abs().max().item()
print("the function with is_causal=True, within 0.00001 of the causal matrix:", apart < 1e-5)

# %% [markdown]
# That is so because there are as many queries as keys. PyTorch puts the corner of its triangle at the **top left**: query 0 sees key 0 only, whatever
# the number of keys. When a model writes, there is one query, that of the last word, and it may see every key. What does it get?

# %%
last = scaled_dot_product_attention(q[-1:], k, v, is_causal=True)[0]  # one query, six keys
print("one query, six keys, is_causal=True: the right vector:", torch.allclose(last, right[-1]))
print("one query, six keys, is_causal=True: exactly the first token's value:", torch.equal(last, v[0]))
without = scaled_dot_product_attention(q[-1:], k, v)[0]
print("one query, six keys, no mask: the right vector:", torch.allclose(without, right[-1], atol=1e-5))

# %% [markdown]
# There is no error. So use `is_causal=True` only with as many queries as keys. One query that may see everything needs no mask. Several new queries
# need the last rows of the causal mask, as `attn_mask`; lesson 09 makes them.

# %% [markdown]
# **Predict, then run.** What does the layer do with `is_causal=True` and no mask, without gradients, in `train()` and in `eval()`?

# %%
my_guess = None  # a pair, each "hides the future", "raises an error" or "sees the future"

# %% tags=["raises-exception"]
def without_a_mask(layer):
    """What the layer does with is_causal=True and no mask."""
    try:
        got = layer(x, x, x, is_causal=True)[0]
    except RuntimeError as error:
        print(f"{'train()' if layer.training else 'eval()'}: {type(error).__name__}: {str(error).split('. ')[0]}")
        return "raises an error"
    return "hides the future" if torch.allclose(got, ours(x), atol=1e-4) else "sees the future" if torch.allclose(got, layer(x, x, x)[0]) else "something else"


with torch.no_grad():
    found = without_a_mask(theirs.train()), without_a_mask(theirs.eval())
beside(my_guess, found)

# %% [markdown]
# In training there is an error. In `eval()` under `no_grad()` PyTorch takes a faster path that does not look at `is_causal`: there is no error, and
# every word sees the future. So give the layer its mask, always.
#
# ## 6 A sliding window
#
# Tiles save memory; the work still grows with n². To save work, too, let each token see only the last `window` tokens, itself included. A mask alone
# saves nothing: the scores are computed and then hidden. Work is saved where a tile lies wholly outside the window: it is skipped, like the tiles in
# the future.
#
# ### Exercise: `sliding_window_mask` (2 points)
#
# Return an `(n, n)` bool mask, True = hidden, on `device`, the variable from the cell with the imports. It hides the future, and every key that is
# `window` or more tokens back. So with a window of 1 each token sees only itself. Raise a `ValueError` for a window below 1.

# %% nbgrader={"grade": false, "grade_id": "sliding_window_mask", "locked": false, "schema_version": 3, "solution": true, "task": false}
def sliding_window_mask(n, window):
    """True where hidden: the future, and everything window or more tokens back, (n, n)."""
    ### BEGIN SOLUTION
    if window < 1:
        raise ValueError(f"window must be at least 1, got {window}")
    place = torch.arange(n, device=device)
    back = place[:, None] - place  # (n, n): so many tokens back is key j for query i
    return (back < 0) | (back >= window)
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_sliding_window_mask", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("sliding_window_mask")  # the contract as a checklist; open this cell to read it
def _(r):
    n = r.integer(9, 20)
    r.idea.each("hides the future, and what is window or more tokens back", sliding_window_mask, (4, 2), (n, 3), (n, r.integer(4, 8)))
    r.each("a window of 1 shows each token itself, a wide one everything before it", sliding_window_mask, (3, 1), (n, 1), (n, n), (n, n + 5))
    r.call("a single token", sliding_window_mask, 1, r.integer(1, 3))
    r.refuses("raises ValueError when window is below 1", sliding_window_mask, (4, 0), (5, -2), (1, 0))

# %% [markdown]
# How much work is that? Your mask tells which tiles hold anything visible. Here are tiles of 256 × 256 and a window of 512.

# %% tags=["raises-exception"]
# demonstration: counts tiles
for n in (1024, 2048, 4096):
    seen = (~sliding_window_mask(n, 512)).unflatten(1, (-1, 256)).any(dim=2).unflatten(0, (-1, 256)).any(dim=1)  # (n / 256, n / 256)
    print(f"n = {n:,}: {seen.numel():3} tiles, {torch.ones_like(seen).tril().sum():3} of them causal, {seen.sum():2} in the window")

# %% [markdown]
# The causal tiles grow with n², those in the window with n. (This lesson's cells hand the mask to `with_sdpa`, which computes all of the scores. So
# they show what a window costs in answers, not what it saves in work.)
#
# Does a token then know nothing of what is further back? In one layer, nothing. But the second layer reads what the first one has mixed.
#
# **Predict, then run.** The window is 4, and there are three layers. How many tokens back is the furthest token from which information can arrive?

# %%
my_guess = None  # tokens back

# %% tags=["raises-exception"]
def reach(layers, window, n=24):
    """How many tokens back a change still reaches the last token through some layers, measured with gradients."""
    torch.manual_seed(123)
    start = torch.randn(n, 8, dtype=torch.float64, device=device, requires_grad=True)
    x = start
    for _ in range(layers):
        x = x + with_sdpa(x, x, x, sliding_window_mask(n, window))
    x[-1].sum().backward()
    return n - 1 - int((start.grad.abs().amax(dim=-1) > 0).nonzero()[0])


beside(my_guess, reach(3, 4))
print("window 4:", ", ".join(f"{layers} layers {reach(layers, 4)}" for layers in (1, 2, 3, 4)))
print("no window:", ", ".join(f"{layers} layers {reach(layers, 24)}" for layers in (1, 2, 3, 4)))

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
sees = (~sliding_window_mask(24, 4)).double().cpu()  # (24, 24): 1 where visible
names = [str(i) for i in range(24)]
maps = []
for layers in (1, 2, 3, 6):
    paths = torch.linalg.matrix_power(sees, layers)  # how many ways lead from key to query
    share = paths / paths.sum(dim=-1, keepdim=True)
    maps.append(heatmap(share, names, names, title=f"{layers} layer{'s' if layers > 1 else ''}", row_name="token", column_name="its sources",
                        hidden=paths == 0, limits=(0, 0.25), bar=layers == 6))
show(
    panels(*maps, size=(11.5, 3.3)),
    "Four maps of 24 by 24: which tokens a token hears of through 1, 2, 3 and 6 layers with a window of 4. The visible band below the diagonal grows "
    "from 4 to 7, 10 and 19 tokens wide, and fades towards its far edge, where fewer ways lead.",
)

# %% [markdown]
# Each layer adds `window - 1` tokens. A square's row is the token, its column a source, and its colour the share of all ways into the token that start
# at that source. (All shares above 0.25 have the same colour.) Only one path reaches the token from the far edge, and only one from the token
# itself. (The figure leaves out the sum x + attention, which keeps each token's own vector.) So a message *can* travel far, if the layers have learned
# to pass it on. The course's model was trained with everything visible, so it never had to. What does a window cost it?

# %% tags=["raises-exception"]
# demonstration: asks eight models
def windowed(window):
    class WindowHeads(MultiHeadAttention):
        def heads(self, x):
            q, k, v = (self.split(layer(x)) for layer in (self.W_query, self.W_key, self.W_value))
            return with_sdpa(q, k, v, sliding_window_mask(x.shape[1], window).to(x.device))

    return with_layer(WindowHeads)


windows = [2, 4, 8, 12, 16, 24, 32, 48]
by_window = [answers(windowed(window), told) for window in windows]
kinds = [kind for kind in by_window[-1] if kind != "all"]
for window, right_ones in zip(windows, by_window):
    print(f"window {window:>2}: {right_ones['all']:4.0%} right")

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: draws the figure
def price(windows, curves, full):
    figure, axes = plt.subplots(figsize=(8.5, 4), layout="constrained")
    for (kind, curve), style in zip(curves.items(), ("o-", "s--", "^:", "d-.")):
        axes.plot(windows, curve, style, label=kind)
    axes.axhline(full, color="black", linewidth=1, label="no window, all questions")
    axes.set(xlabel="window", ylabel="share answered correctly", ylim=(-0.03, 1.05), title="The trained model with your window")
    axes.set_xticks(windows)
    axes.legend()
    return figure


show(
    chart(price, windows, {kind: [found[kind] for found in by_window] for kind in kinds}, answers(model, told)["all"]),
    "The share of questions answered correctly against the window, a curve for each kind of question. All rise from about zero at a window of 2 "
    "to one at 48; a horizontal line marks the model without a window.",
)

# %% [markdown]
# At a window of 16 two layers reach 30 words back, nearly the length of an average story (32 words), and still four answers in ten are wrong. Which
# ones? Each answer depends on one or more words further up in the story. Sort the answers by how far back the furthest of these words is.

# %% tags=["raises-exception"]
# demonstration: asks the model with a window of 16 again
inputs_told, targets = pairs(told)  # (b, n)
with torch.no_grad():
    good = windowed(16)(inputs_told).argmax(dim=-1) == targets  # (b, n)
by_place = {"inside the window": [], "within two layers' reach": [], "further back": []}
for number, story_told in enumerate(told):
    for asked in story_told.notes.answers:
        back = max(link.at - link.own for link in story_told.notes.links if asked.start - 1 <= link.at < asked.stop)
        place = "inside the window" if back < 16 else "within two layers' reach" if back <= 2 * 15 else "further back"
        by_place[place].append(bool(good[number, asked.start : asked.stop].all()))
for place, ones in by_place.items():
    print(f"{place:>24}: {sum(ones):2} of {len(ones):2} answers right")

# %% [markdown]
# Where all of these words are inside the window, the answer is nearly always right. Where one of them is outside the window but within two layers'
# reach, most answers are wrong: the words in between could have passed it on, but mostly it does not arrive in a usable form. (From beyond that reach
# it cannot arrive at all; an answer there can only be right by luck.) So it is not enough that information *can* get through. This model never had to
# pass it on in training; we have not trained one with a window. Models that use windows are *trained* with them, and some keep a few layers without
# one.
#
# ## 7 What goes wrong in practice
#
# **The fast function makes the matrix after all.** PyTorch chooses between several ways of computing the same thing. On a CPU the tiled way needs four
# dimensions, `(b, heads, n, d)`. With two, PyTorch makes the matrix, without a warning.

# %% tags=["nbval-ignore-output"]
# demonstration: measures memory
q, k, v = torch.randn(3, 1024, 64, device=device).unbind()
for shape, args in {"(n, d)": (q, k, v), "(1, 1, n, d)": (q[None, None], k[None, None], v[None, None])}.items():
    print(f"{shape:>12}: {most_memory(scaled_dot_product_attention, *args) / 2**20:.1f} MiB")

# %% [markdown]
# **Dropout in `eval()`.** The function has a `dropout_p` and knows no mode. Pass `dropout_p=self.dropout.p if self.training else 0.0`.
#
# **Asking for the weights.** `nn.MultiheadAttention` returns them unless you say `need_weights=False`. To return them it has to make the matrix.
#
# **The correction is forgotten, and the test does not notice.** If the largest score is in the first block, nothing has to be corrected. Test with
# rising scores.
#
# **Sums in float16.** A float16 number has about three digits. Add up 4,096 ones, one by one:

# %%
total = torch.zeros((), dtype=torch.float16)
for _ in range(4096):
    total += 1
print(f"the sum in float16: {total:,.0f}")

# %% [markdown]
# The next float16 number after 2,048 is 2,050, so adding 1 changes nothing any more. Keep the running sum in float32.
#
# ## Summary
#
# - A softmax can be read in blocks: keep the maximum and the sum, and shrink the sum when the maximum rises.
# - Attention from **tiles** keeps a third thing, the mixture. It gives the same context vectors, up to rounding.
# - The arithmetic stays. What is saved is **memory traffic**, and in the forward pass the memory held grows with n instead of n². In training this
#   holds only if the backward pass computes the tiles again. Causal tiles also skip about half of the work.
# - In `nn.MultiheadAttention` True hides, in `scaled_dot_product_attention` True takes part. `is_causal=True` alone is enough for the function only,
#   and only with as many queries as keys.
# - With a **sliding window** the tiles that are left grow with n; each layer carries information `window - 1` tokens further.
#
# **A loose end.** To write one more word, the model computes everything about the words before it again. Lesson 09 keeps those results.
#
# ## Further reading
#
# - Milakov and Gimelshein, *Online normalizer calculation for softmax*, 2018: the running maximum and sum.
# - Rabe and Staats, *Self-attention Does Not Need O(n²) Memory*, 2021: attention in blocks.
# - Dao et al., *FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness*, 2022, section 3: tiles, and the count of bytes.
# - Beltagy et al., *Longformer: The Long-Document Transformer*, 2020, section 3.1: sliding windows.
