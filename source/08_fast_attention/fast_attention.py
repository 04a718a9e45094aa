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
# Attention compares every token with every token: n tokens make n × n scores. Take 4,096 tokens and one head, and make the context vectors twice: with
# the matrix of scores, as in lessons 01 to 06, and with PyTorch's own function. Run the next two cells.

# %% grade_id="setup" seconds=3 jupyter={"source_hidden": true}
# the set-up: imports, and what this lesson starts from
import math
import os
import time

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from attention_course import (
    answers, attention_of, begin, beside, case, chart, course_model, encode, explore, hint, pairs, progress,
    rubric, show, stories, table, train, why, write,
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


# %% jupyter={"source_hidden": true} tags=["nbval-ignore-output"]
# demonstration: the same context vectors twice, and the most memory that each way holds
import gc

os.environ["KINETO_LOG_LEVEL"] = "9"  # PyTorch's profiler would note each start and stop


def most_memory(attend, *args):
    """The most MiB held at once while attend runs, beyond its arguments."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        held = torch.cuda.memory_allocated()
        attend(*args)
        return (torch.cuda.max_memory_allocated() - held) / 2**20
    gc.collect()  # what earlier cells left must not be freed in between
    with torch.autograd.profiler.profile(profile_memory=True) as profile:
        attend(*args)
    changes = [event.nbytes() for event in profile.kineto_results.events() if event.name() == "[memory]"]
    return torch.tensor(changes).cumsum(dim=0).max().item() / 2**20


torch.manual_seed(123)
long = torch.randn(3, 1, 1, 4096, 64, device=device).unbind()  # q, k, v: one text, one head, 4,096 tokens of 64 numbers
apart = (plain_attention(*long) - scaled_dot_product_attention(*long)).abs().max().item()
print("largest difference below 0.00001:", apart < 1e-5)
print(f"memory: the matrix {most_memory(plain_attention, *long):.1f} MiB, PyTorch {most_memory(scaled_dot_product_attention, *long):.1f} MiB")

# %% [markdown]
# The numbers are the same, the memory is not. A matrix of 4,096 × 4,096 takes 64 MiB, and two are held at once, scores and weights. The result takes
# 1 MiB: PyTorch never held either. How can one take a softmax over 4,096 scores without holding all at once? You build the answer:
# **FlashAttention**.
#
# - You read a softmax in blocks, and merge attention over parts of the keys.
# - You write attention in tiles, and measure what that saves and what it does not.
# - You call PyTorch's own functions without mixing up their masks, and limit attention to a window.
#
# *About 95 minutes. It builds on lesson 01 (softmax, scale), 03 (masks) and 06 (heads). Run cells, solve exercises and ask for `hint()`, `why()` and
# `progress()` as in lesson 01.*

# %%
# demonstration: three questions on earlier lessons, without points
from attention_course import recall

recall()

# %% [markdown]
# ## 1 What is made and thrown away
#
# The course's trained model reads a story and answers the question at its end.

# %%
model = course_model()  # trained: two layers of four heads, width 48
story = "Lucy has two books . Ben has a cake . he eats it upstairs . she reads them downstairs . where is Ben ?"
words = begin(story)
weights = attention_of(model, words)  # (2, 4, n, n)
answer = " ".join(write(model, words)[len(words) :])
print(answer[: answer.index(".") + 1])
print(f"{len(words)} words: {weights.numel():,} attention weights are made, {2 * len(words) * 48:,} numbers leave the heads")

# %% [markdown]
# The weights are used once and forgotten.
#
# **Predict, then run.** A text of 100,000 words, one head of one layer, 4 bytes a number. How many gigabytes does the matrix take?

# %%
my_guess = None  # gigabytes

# %%
beside(my_guess, 100_000**2 * 4 / 1e9)

# %% [markdown]
# The context vectors of that head (64 numbers a word) take 0.03 GB. A processor has two kinds of memory, here an NVIDIA A100's (Dao et al. 2022,
# figure 1):
#
# | | holds | moves |
# |---|---|---|
# | fast memory, on the chip | 20 MB | 19 TB a second |
# | slow memory, beside it | 40 GB | 1.5 TB a second |
#
# The matrix fits into the slow one at best: written, read for the softmax, written again, read to mix the values. So do not make it. Take a few keys at
# a time, use their scores, forget them. One thing stands in the way: a softmax divides by a sum over the *whole* row.
#
# ## 2 A softmax in blocks
#
# Lesson 01's softmax subtracts the largest number m first, so that nothing overflows:
#
# $$\text{softmax}(x)_i = \frac{e^{x_i - m}}{\sum_j e^{x_j - m}}, \qquad m = \max_j x_j$$
#
# Suppose that the row arrives in blocks: twelve numbers in three blocks of four. Each column is one moment. Above, the numbers read so far, and the line
# of m, the largest *so far*. Below, their $e^{x - m}$; dashed, the same bars one block earlier.

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
        above.set(title=f"{end} of {len(row)} read, maximum {largest:.1f}", ylim=(0, 1.12 * row.max()))
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
    f"Three moments. The maximum so far is a line, at {' then '.join(f'{row[:end].max():.1f}' for end in (4, 8, 12))}. Below, the bars of exp(x minus maximum): each time the line "
    "rises, all earlier bars shrink by the same factor, drawn as dashed outlines around them.",
)

# %% [markdown]
# When the maximum rises, all earlier bars shrink by the same factor. So their *sum* shrinks by it, too, and nobody has to go back to them.
#
# **Predict, then run.** By which factor do the first four bars shrink when the maximum rises from 3.0 to 4.2?

# %%
my_guess = None  # a number between 0 and 1

# %%
first = row[:4]
beside(my_guess, round((torch.exp(first - 4.2).sum() / torch.exp(first - 3.0).sum()).item(), 4))

# %% [markdown]
# ### Exercise: `online_softmax` (3 points)
#
# ```
# x (n,)   ──read `block` numbers at a time──►   softmax of x (n,)
# ```
#
# - Keep a running maximum and a running sum; no maximum or sum reads more than one block. The last block may be shorter.
# - Once both are known, compute all results in one go.
# - Do without PyTorch's `softmax`, `logsumexp`, and functions that contain one.

# %% grade_id="online_softmax"
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


# %% grade_id="test_online_softmax"
# The contract as a checklist; open this cell to read it.
@rubric("online_softmax", forbids=["softmax", "softmin", "logsumexp", "cross_entropy", "scaled_dot_product_attention"])
def _(r):
    rising, steep, far = 3 * r.normal(12).sort().values, 1e3 * torch.arange(9.0, device=device) + r.uniform(9), 12 * r.normal(8).argsort().float() - 1e4
    r.idea.each("the softmax of the whole row, in any order and for ±10,000", online_softmax, (rising.flip(0), 4), (rising, 4), (3 * r.normal(23), 5), (steep, 2), (steep.flip(0), 2), (far, 3), (rising[:4].repeat(3), 4))
    r.each("blocks of one number, a short last block, a block longer than x", online_softmax, (2 * r.normal(7), 1), (2 * r.normal(11), 4), (2000 * r.normal(3), 8))
    r.sums_in_blocks("no maximum or sum reads more than a block and one running number", online_softmax, (3 * r.normal(12), 4), (3 * r.normal(23), 2))
    r.forbids("does without PyTorch's softmax, logsumexp and what contains them", online_softmax)
    r.conventions(online_softmax, 2 * r.normal(10), 3)

# %% tags=["raises-exception"]
for block in (1, 4, 12):
    print(f"block {block:>2}:", " ".join(f"{weight:.3f}" for weight in online_softmax(row, block).tolist()))
print("PyTorch: ", " ".join(f"{weight:.3f}" for weight in row.softmax(dim=-1).tolist()))

# %% [markdown]
# A pass for m and one for the sum give this as well, but read everything twice. In part 3 the scores are gone.
#
# ## 3 Partial results merge
#
# A context vector is made of two sums of the same exponentials:
#
# $$\text{context} = \frac{\sum_j e^{s_j - m}\, v_j}{\sum_j e^{s_j - m}}$$
#
# So all that a query has to remember of some keys are **three things**: m, the largest of their scores; l, the sum of $e^{s - m}$; and o, the values
# mixed with $e^{s - m}$ and not yet divided.
#
# ### Exercise: `partial_attention` (2 points)
#
# ```
# q (..., n, d)   k (..., c, d)   v (..., c, e)   hidden (n, c), bool, or None
#            ──►   m (..., n)     l (..., n)      o (..., n, e)
# ```
#
# - Scores are dot products divided by the root of d; where `hidden` is True, a key does not count.
# - A row with every key hidden gives -inf, 0 and zeros, without `nan`.

# %% grade_id="partial_attention"
def partial_attention(q, k, v, hidden=None):
    """Return (m, l, o) of queries over some keys: the largest score, the sum of exps, the mixture."""
    ### BEGIN SOLUTION
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # (..., n, c)
    if hidden is not None:
        scores = scores.masked_fill(hidden, -math.inf)
    m = scores.amax(dim=-1)  # (..., n)
    shift = m.masked_fill(m == -math.inf, 0.0)  # -inf - -inf would be nan
    exps = torch.exp(scores - shift[..., None])  # (..., n, c)
    return m, exps.sum(dim=-1), exps @ v
    ### END SOLUTION


# %% grade_id="test_partial_attention"
@rubric("partial_attention")  # the contract as a checklist; open this cell to read it
def _(r):
    small, heads = [r.normal(*size) for size in ((2, 4), (3, 4), (3, 2))], [2 * r.normal(2, 3, *size) for size in ((4, 9), (6, 9), (6, 5))]
    large, square = [(100 * r.normal(*size)).round() for size in ((5, 9), (7, 9), (7, 2))], [2 * r.normal(5, 5) for _ in range(3)]
    r.idea.each("the largest visible score, the sum and the mixture, for one sentence and for heads", partial_attention, small, heads, (*small, r.mask(2, 3)), (*heads, r.mask(4, 6)), (*square, torch.ones_like(square[0]).triu(1) == 1))
    r.each("scores of ±10,000, visible or hidden", partial_attention, large, (*large, r.mask(5, 7)), (large[0].abs(), -large[1].abs(), large[2], r.mask(5, 7)))
    r.each("a row with every key hidden gives -inf, 0 and zeros", partial_attention, (*small, torch.ones_like(small[0][:, :3]) == 1), (*heads, r.mask(4, 6, empty_rows=True)))
    r.conventions(r.finished(partial_attention), *heads)

# %% [markdown]
# Now cut the keys in two. Each part gives its three things, on its own scale. **Merging** brings both to the larger maximum, as before, and adds up.
#
# ### Exercise: `merge` (3 points)
#
# `a` and `b` are such triples (m, l, o), of the same queries over different keys. Return the triple over both.
#
# - The order does not matter.
# - A row may be empty (-inf, 0, zeros) in one part, which then changes nothing, or in both. No `nan`.

# %% grade_id="merge"
def merge(a, b):
    """The triple (m, l, o) over the keys of both parts."""
    ### BEGIN SOLUTION
    (m_a, l_a, o_a), (m_b, l_b, o_b) = a, b
    m = torch.maximum(m_a, m_b)  # (..., n)
    shift = m.masked_fill(m == -math.inf, 0.0)
    shrink_a, shrink_b = torch.exp(m_a - shift), torch.exp(m_b - shift)
    return m, l_a * shrink_a + l_b * shrink_b, o_a * shrink_a[..., None] + o_b * shrink_b[..., None]
    ### END SOLUTION


# %% grade_id="test_merge"
@rubric("merge")  # the contract as a checklist; open this cell to read it
def _(r):
    (a, b), heads, square = [r.part(4, 3) for _ in range(2)], [r.part(2, 3, 5, 4) for _ in range(2)], [r.part(3, 3) for _ in range(2)]
    low, high, none = (a[0] - 1e4, *a[1:]), (b[0] + 1e4, *b[1:]), (torch.full_like(a[0], -math.inf), 0 * a[1], 0 * a[2])
    some, others = r.part(7, 2, empty_rows=True), [x.flip(0) for x in r.part(7, 2, empty_rows=True)]
    r.idea.each("the triple over both, whichever comes first, for one sentence and for heads", merge, (a, b), (b, a), heads, square)
    r.idea.each("maxima 20,000 apart, equal maxima, both very low", merge, (low, high), (high, low), (a, (a[0], *b[1:])), (low, (b[0] - 1e4, *b[1:])))
    r.each("an empty part changes nothing", merge, (a, none), (none, a))
    r.each("rows that are empty in one part, or in both", merge, (some, others), (some, some), (none, none))
    r.conventions(r.merged(merge), r.normal(2, 4, 3), r.normal(2, 6, 3), r.normal(2, 6, 5))

# %% [markdown]
# Your two functions in the trained model. In head 2.2 the word *she*, after *upstairs .*, has 17 words to look at. Cut them into the first nine
# (`<end>` *Lucy has two books . Ben has a*) and the last eight (*cake . he eats it upstairs . she*).
#
# **Predict, then run.** Within each part the weights add up to 1. After the merge, what share of *she*'s weight is the first part's?

# %%
my_guess = None  # a number between 0 and 1
cut = 9  # then others, from 1 to 16: where does the share change hands?

# %% tags=["raises-exception"]
# queries, keys and values of head 2.2; then your partial results
words = begin("Lucy has two books . Ben has a cake . he eats it upstairs . she reads them downstairs . where is Ben ?")
second = model.layers()[1]
with torch.no_grad():
    x = second.norm1(model.layers()[0](model.embed(torch.tensor([encode(words)]))))  # (1, n, 48): what layer 2 reads
    q, k, v = (second.attention.split(W(x))[0, 1] for W in (second.attention.W_query, second.attention.W_key, second.attention.W_value))  # (n, 12)
she = words.index("she")
parts = {
    f"first {cut}": partial_attention(q[[she]], k[:cut], v[:cut]),
    f"last {she + 1 - cut}": partial_attention(q[[she]], k[cut : she + 1], v[cut : she + 1]),
}
m, l, o = merge(*parts.values())
shares = {name: (part[1] * torch.exp(part[0] - m) / l).item() for name, part in parts.items()}
beside(my_guess, round(shares[f"first {cut}"], 2))

# %% tags=["raises-exception"]
for name, part in parts.items():
    print(f"{name:>8}: m {part[0].item():5.2f}, l {part[1].item():.2f}, share {shares[name]:.2f}")
looks = attention_of(model, words)[1, 1, she]  # (n,)
print(f"the weight of {words[looks.argmax()]} alone, from all words at once: {looks.max():.2f}")
whole = plain_attention(q[[she]], k[: she + 1], v[: she + 1])
average = sum(o / l[..., None] for _, l, o in parts.values()) / 2
print("merged and divided, within 0.00001 of all words at once:", (o / l[..., None] - whole).abs().max().item() < 1e-5)
print(f"a plain average of both context vectors: numbers of up to {whole.abs().max():.1f} are off by up to {(average - whole).abs().max():.1f}")

# %% [markdown]
# *She* looks at *books*, in the first part, so a plain average is far off. There may be any number of parts, of any size, in any order. Here are eight:

# %% tags=["raises-exception"]
torch.manual_seed(123)
q, k, v = torch.randn(3, 2, 4, 300, 16, dtype=torch.float64).to(device).unbind()  # 2 texts, 4 heads, 300 tokens
cuts = [7, 100, 1, 42, 50, 3, 90, 7]
pieces = [partial_attention(q, *piece) for piece in zip(k.split(cuts, dim=-2), v.split(cuts, dim=-2))]
whole = pieces.pop(len(pieces) // 2)
for piece in reversed(pieces):
    whole = merge(whole, piece)
apart = (whole[2] / whole[1][..., None] - scaled_dot_product_attention(q, k, v)).abs().max().item()
print(len(cuts), "parts merged, within 0.000000000001 of PyTorch:", apart < 1e-12)

# %% [markdown]
# ## 4 Attention in tiles
#
# Take `block` queries at a time, too, and the scores come in **tiles** of `block` × `block`. Move the slider. Orange is what fast memory has to hold: a
# few queries, keys and values, one tile, and the triple of these queries. The tile is forgotten, its triple merged with the next tile's, and at the end
# of the row divided and written out.

# %% jupyter={"source_hidden": true}
# draws the figure
TILES = [(top, left) for top in range(0, 12, 3) for left in range(0, top + 1, 3)]  # causal, 12 tokens in blocks of 3


def draw_tiles(tile):
    now, done, later = "#e08a2b", "#1f6f8b", "#d9d9d9"
    figure, axes = plt.subplots(figsize=(8.8, 5.9), layout="constrained")

    def box(x, y, width, height, colour, text="", low=False):
        axes.add_patch(plt.Rectangle((x, y), width, height, facecolor=colour, edgecolor="white", linewidth=2.5))
        axes.text(x + width / 2, y + height * (0.84 if low else 0.5), text, ha="center", va="center", fontsize=10, color="white" if colour == done else "#222222")

    top, left = TILES[tile - 1]
    for number, (i, j) in enumerate(TILES, start=1):
        box(j, i, 3, 3, done if number < tile else now if number == tile else later, f"tile {number}", low=i == j)
        for row_, column in ((0, 1), (0, 2), (1, 2)) if i == j else ():
            axes.add_patch(plt.Rectangle((j + column, i + row_), 1, 1, fill=False, edgecolor="white", hatch="///", linewidth=0))
    for i, j in [(i, j) for i in range(0, 12, 3) for j in range(i + 3, 12, 3)]:
        axes.add_patch(plt.Rectangle((j, i), 3, 3, facecolor="white", edgecolor="#b8b8b8", hatch="//", linewidth=0))
    for at in range(0, 12, 3):
        box(at, -2.3, 3, 1, now if at == left else later, "keys")
        box(at, -1.3, 3, 1, now if at == left else later, "values")
        box(-2.6, at, 2.2, 3, now if at == top else later, "queries")
        box(12.5, at, 2.6, 3, done if at < top else now if at == top else later, "o / l\nwritten" if at < top else "m, l, o" if at == top else "")
    for colour, text, at in ((now, "in fast memory", 0), (done, "done", 4.6), (later, "to come", 7.0)):
        axes.add_patch(plt.Rectangle((at, 12.7), 0.7, 0.7, facecolor=colour))
        axes.text(at + 0.9, 13.05, text, va="center", fontsize=10)
    axes.add_patch(plt.Rectangle((10.0, 12.7), 0.7, 0.7, facecolor="white", edgecolor="#b8b8b8", hatch="//", linewidth=0))
    axes.text(10.9, 13.05, "never made", va="center", fontsize=10)
    axes.text(13.8, -0.4, "context\nvectors", ha="center", va="bottom", fontsize=10)
    axes.set(xlim=(-2.8, 15.3), ylim=(13.6, -2.5), aspect="equal")
    axes.axis("off")
    return figure


def at_work(tile):
    top, left = TILES[tile - 1]
    masked = "the upper triangle of the tile is masked" if top == left else "nothing in the tile is hidden"
    said = f"Queries {top} to {top + 2} meet keys {left} to {left + 2}: 9 scores instead of 144; {masked}. 6 of 16 tiles are never made."
    return chart(draw_tiles, tile), said


explore(
    at_work,
    alt="Scores of 12 by 12 in tiles of 3 by 3. Keys and values along the top, queries at the left, context vectors at the right. One tile, its queries, keys and values and "
    "the triple m, l, o are in fast memory; the tiles before it are done; those in the future are never made.",
    tile=[8, 9, 10, 1, 2, 3, 4, 5, 6, 7],
)

# %% [markdown]
# ### Exercise: `tiled_attention` (4 points)
#
# ```
# q, k, v (..., n, d) each   ──►   context vectors (..., n, d)
# ```
#
# - Your two functions do the work; what is left is two loops. The last block may be shorter.
# - At most `block` keys at a time, and never a tensor of n × n scores.
# - With `causal=True` no token sees a later one, and tiles wholly in the future are skipped.

# %% grade_id="tiled_attention"
def tiled_attention(q, k, v, block, causal=False):
    """Attention from tiles of block queries and keys, (..., n, d) each."""
    ### BEGIN SOLUTION
    n = q.shape[-2]
    contexts = []
    for top in range(0, n, block):
        queries, so_far = q[..., top : top + block, :], None
        for left in range(0, top + 1 if causal else n, block):
            keys, values = k[..., left : left + block, :], v[..., left : left + block, :]
            hidden = future(keys.shape[-2]).to(q.device) if causal and left == top else None
            tile = partial_attention(queries, keys, values, hidden)
            so_far = tile if so_far is None else merge(so_far, tile)
        _, total, mixture = so_far
        contexts.append(mixture / total[..., None])
    return torch.cat(contexts, dim=-2)
    ### END SOLUTION


# %% grade_id="test_tiled_attention"
@rubric("tiled_attention")  # the contract as a checklist; open this cell to read it
def _(r):
    small, pairs = [r.normal(5, 3) for _ in range(3)], [2 * r.normal(3, 2, 9, 4) for _ in range(3)]
    large, deep = [r.normal(40, 4) for _ in range(3)], [r.normal(2, 43, 4) for _ in range(3)]
    whole = *[(100 * r.normal(40, 4)).round() for _ in range(2)], r.normal(40, 4)  # scores of ±10,000
    v = r.normal(40, 4).double()
    low = torch.full_like(v, 100), torch.full_like(v, -50), v  # scores of -10,000
    r.idea.each("full attention, for one sentence, for heads, for scores of ±10,000", tiled_attention, (*small, 2), (*pairs, 2), (*whole, 9))
    r.idea.each("causal: every token sees itself and those before it", tiled_attention, (*small, 2, True), (*pairs, 2, True), (*pairs, 4, True), (*low, 8, True))
    r.each("blocks of one token, one block, a block longer than the sentence", tiled_attention, (*small, 1, True), (*small, 5), (*small, 5, True), (*pairs, 20, True))
    r.attends_in_blocks("at most block keys at a time, and never n x n scores", tiled_attention, (*large, 7), (*(x[:16] for x in large), 3), (*deep, 8, True), (*whole, 8, True))
    r.skips_the_future("causal: blocks wholly in the future are left out", tiled_attention, (*large, 8), (*deep, 8))
    r.conventions(tiled_attention, *pairs, 2, True)

# %% [markdown]
# The six tokens with head 0 of lesson 06, in blocks of two.

# %% tags=["raises-exception"]
block = 2  # then others: which numbers change?
torch.manual_seed(123)
W_query, W_key, W_value = (nn.Linear(3, 2, bias=False).to(device) for _ in range(3))
table(tiled_attention(W_query(inputs), W_key(inputs), W_value(inputs), block, causal=True), rows=tokens, columns=["0", "1"])

# %% [markdown]
# ## 5 What is saved
#
# Not arithmetic: the tiles multiply the same numbers. (Causal ones skip nearly half.) What is saved is memory, and the traffic to and from it. Count the
# numbers that cross between slow and fast memory, for one head, not causal:
#
# | | reads and writes | numbers |
# |---|---|---|
# | the matrix | q, k, v read, context written | 4nd |
# | | scores written, read and written twice (scale, softmax), read to mix | 6n² |
# | tiles | q read, context written | 2nd |
# | | k and v read once for each of n / block blocks of queries | 2n²d / block |
#
# **Predict, then run.** n = 4,096, d = 64, block = 128. How many times more does the matrix move?

# %%
my_guess = None  # times more

# %%
def times_more(block, n=4096, d=64):
    return (4 * n * d + 6 * n**2) / (2 * n * d + 2 * n**2 * d / block)


beside(my_guess, round(times_more(128), 1))
print("the matrix moves, by block of the tiles:", ", ".join(f"{block}: {times_more(block):.1f} times as much" for block in (8, 16, 64, 256, 512)))

# %% [markdown]
# Small tiles move *more* than the matrix. Large ones move less, but must fit into fast memory. Measure, also with gradients.

# %% seconds=15 jupyter={"source_hidden": true} tags=["raises-exception", "nbval-ignore-output", "unsteady-output"]
# demonstration: measures memory and time; on a GPU in bfloat16, for longer texts
on_gpu = device.type == "cuda"
ways = {"the matrix": plain_attention, "your tiles": lambda q, k, v: tiled_attention(q, k, v, 512), "PyTorch": scaled_dot_product_attention}


def milliseconds(attend, *args):
    """The shortest of three runs."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        attend(*args)
        if on_gpu:
            torch.cuda.synchronize()
        times.append(1000 * (time.perf_counter() - start))
    return min(times)


def measured(attend, *args):
    try:
        return f"{most_memory(attend, *args):8,.1f} MiB {milliseconds(attend, *args):8.2f} ms"
    except torch.OutOfMemoryError:
        return "out of memory".rjust(24)


def with_gradients(attend):
    return lambda *args: torch.autograd.grad(attend(*args).sum(), args)


print(f"{'':24}" + "".join(f"{name:>25}" for name in ways))
for n in (1024, 4096, 16384, 32768, 65536) if on_gpu else (1024, 2048, 4096):
    qkv = torch.randn(3, 1, 8 if on_gpu else 1, n, 64, device=device, dtype=torch.bfloat16 if on_gpu else torch.float32).unbind()
    print(f"{n:6,} tokens, forward:  ", *(measured(attend, *qkv) for attend in ways.values()))
qkv = [x[..., :4096, :].clone().requires_grad_() for x in qkv]
print(" 4,096, with gradients:  ", *(measured(with_gradients(attend), *qkv) for attend in ways.values()))

# %% [markdown]
# On one thread of our machine, 4,096 tokens: the matrix 184 ms, our tiles 113 ms and 4.3 MiB, PyTorch 65 ms.
#
# With gradients our tiles held 146 MiB, the matrix 193, because autograd keeps every tile for the backward pass. FlashAttention makes the tiles again,
# from one number kept for each row, m + log l. The appendix shows it.
#
# On a GPU, in bfloat16, 16 bits a number (this notebook uses yours with `AUTOGRADE_DEVICE=cuda`):

# %% jupyter={"source_hidden": true}
# draws the figure
H200 = {  # NVIDIA H200, torch 2.11, forward pass: milliseconds and MiB, as in docs/gpu.md
    "the matrix": ([0.419, 0.457, 1.42, 5.75, 18.4, 58.1], [49, 196, 784, 3136, 12544, 50176]),
    "tiles of 512, a Python loop": ([2.45, 4.4, 17.9, 40.1, 141, 670], [34, 35, 37, 41, 49, 81]),
    "PyTorch": ([0.0483, 0.0516, 0.125, 0.234, 0.685, 2.46, 9.17, 38.1], [1, 2, 4, 8, 16, 32, 64, 128]),
}


def costs(measured):
    figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.4), layout="constrained")
    lengths = [2**i for i in range(10, 18)]
    for ax, column, unit in ((axes[0], 1, "MiB"), (axes[1], 0, "milliseconds")):
        for (name, found), colour, style in zip(measured.items(), ("#b5541c", "#1f6f8b", "#7a5195"), ("o-", "s-", "^--")):
            ax.loglog(lengths[: len(found[column])], found[column], style, color=colour, label=name)
        ax.set_yticks([10**i for i in range(-1, 6)], ["0.1", "1", "10", "100", "1,000", "10,000", "100,000"])
        ax.set_ylim(*((0.6, 4e5) if column else (0.02, 900)))
        ax.set(xlabel="tokens", ylabel=unit, title="most memory held" if column else "time")
        ax.set_xticks(lengths[::2], [f"{n:,}" for n in lengths[::2]])
        ax.minorticks_off()
        ax.grid(alpha=0.3)
    beyond = 4 * measured["the matrix"][1][-1]  # what twice the tokens would need
    axes[0].plot(lengths[6], beyond, "x", color="#b5541c", markersize=11, markeredgewidth=3)
    axes[0].annotate("out of memory", (lengths[6], beyond), (-8, 0), textcoords="offset points", ha="right", va="center", color="#b5541c")
    axes[0].legend(loc="upper left")
    figure.suptitle("Causal attention on an NVIDIA H200, eight heads of 64, bfloat16")
    return figure


show(
    chart(costs, H200),
    "Two log-log charts against 1,024 to 131,072 tokens, measured on an NVIDIA H200. Memory: the matrix rises from 49 MiB to 50,176 MiB at 32,768 tokens and is out of "
    "memory at 65,536; tiles in a Python loop stay between 34 and 81 MiB, PyTorch between 1 and 128. Time at 32,768: the matrix 58 ms, the Python loop 670 ms, PyTorch 2.5 ms.",
)

# %% [markdown]
# At 32,768 tokens the matrix takes 49 GiB and 58 ms, PyTorch 32 MiB and 2.5 ms. The Python loop saves the memory and loses the time:
# 670 ms. It sends 2,080 tiles to the GPU one by one, and each of a tile's twenty steps writes its result out. **The idea saves
# memory; a kernel, a compiled program that keeps a tile in fast memory, saves time.**
#
# ## 6 PyTorch's way
#
# PyTorch has a function, `scaled_dot_product_attention`, and a layer, `nn.MultiheadAttention`. Both take a boolean `attn_mask`, and read it in opposite
# ways:
#
# | | True means |
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
beside(my_guess, "zeros" if (swapped[-1] == 0).all() else "nan" if swapped[-1].isnan().any() else "another vector")

# %%
print("tokens with the right vector:", int(((swapped - right).abs().amax(dim=-1) < 1e-5).sum()), "of 6")

# %% [markdown]
# No error, no `nan`: every token sees the future and nothing else. The last one has no future.
#
# ### Exercise: `with_sdpa` (1 point)
#
# Return the context vectors from PyTorch's function. In `mask`, as everywhere in this course, **True = hidden**.

# %% grade_id="with_sdpa"
def with_sdpa(q, k, v, mask):
    """Attention from PyTorch's function, for a mask where True = hidden."""
    ### BEGIN SOLUTION
    return scaled_dot_product_attention(q, k, v, attn_mask=~mask)
    ### END SOLUTION


# %% grade_id="test_with_sdpa"
@rubric("with_sdpa", forbids=["softmax", "exp"])  # the contract as a checklist; open this cell to read it
def _(r):
    causal = torch.ones(6, 6, dtype=torch.bool, device=device).triu(diagonal=1)
    one, heads = [2 * r.normal(6, 3) for _ in range(3)], [2 * r.normal(4, 4, 6, 5) for _ in range(3)]
    rising = torch.full((6, 3), 1e5, device=device), 2e5 * torch.arange(6.0, device=device).repeat(3, 1).T, one[2]  # each score 35 billion above the last
    r.idea.each("True hides, whatever the scores: no token sees the future", with_sdpa, (*one, causal), (*heads, causal), (*rising, causal))
    r.idea.each("any other mask: for each sentence or head, or hiding nothing", with_sdpa,
        (*one, r.mask(6, 6)), (*one, causal.triu(2)), (*heads, r.mask(4, 1, 6, 6)), (*heads, r.mask(4, 6, 6)), (*heads, r.mask(4, 1, 1, 6)),
        (*heads, torch.zeros_like(causal)), (*(x[:1] for x in one), causal[:1, :1]))
    r.conventions(with_sdpa, *one, r.mask(6, 6))
    r.forbids("leaves the softmax to PyTorch's function", with_sdpa)

# %% [markdown]
# For the causal mask `is_causal=True` will do. But when a model *writes*, there is one query, that of the last word, and it may see all keys.
#
# **Predict, then run.** One query, six keys, `is_causal=True`: which of the six values does the query get?

# %%
my_guess = None  # "a mixture of all six", "the last alone", "the first alone" or "an error"

# %%
last = scaled_dot_product_attention(q[-1:], k, v, is_causal=True)[0]
beside(my_guess, "the first alone" if torch.equal(last, v[0]) else "the last alone" if torch.equal(last, v[-1]) else "a mixture")

# %% tags=["raises-exception"]
# demonstration: the masks that are right
from torch.nn.attention.bias import causal_lower_right  # slow to import, so only here

print("exactly v[0]:", torch.equal(last, v[0]))
print("six queries, is_causal=True, the right vectors:", torch.allclose(scaled_dot_product_attention(q, k, v, is_causal=True), with_sdpa(q, k, v, future(6)), atol=1e-5))
print("one query, no mask, the right vector:", torch.allclose(scaled_dot_product_attention(q[-1:], k, v)[0], right[-1], atol=1e-5))
lower = scaled_dot_product_attention(q[-2:], k, v, attn_mask=causal_lower_right(2, 6))
print("two queries, causal_lower_right, the right vectors:", torch.allclose(lower, right[-2:], atol=1e-5))

# %% [markdown]
# PyTorch puts the corner of its triangle at the **top left**: query 0 sees key 0 alone, however many keys there are. **`is_causal` is for square scores.**
# One query needs no mask; several new ones need the last rows of the causal mask (lesson 09), which `causal_lower_right` stands for.
#
# **What reaches FlashAttention?** PyTorch chooses among several kernels. The next cell allows FlashAttention alone.
#
# **Predict, then run.** Which of these causal calls does it refuse on this processor: bfloat16, float32, the mask as `attn_mask`, or
# `(n, d)` in place of `(1, 1, n, d)`?

# %%
my_guess = None  # some of: "bfloat16", "float32", "attn_mask", "(n, d)"

# %% jupyter={"source_hidden": true} tags=["raises-exception", "nbval-ignore-output"]
# demonstration: asks FlashAttention alone; then the memory of two calls when PyTorch may choose
import warnings

from torch.nn.attention import SDPBackend, sdpa_kernel


def is_causal(q, k, v):
    return scaled_dot_product_attention(q, k, v, is_causal=True)


def with_a_mask(q, k, v):
    return with_sdpa(q, k, v, future(q.shape[-2]))


def refused(attend, *args):
    try:
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION), warnings.catch_warnings(action="ignore"):
            attend(*args)
    except RuntimeError:
        return True
    return False


some = torch.randn(3, 1, 1, 1024, 64, device=device)  # (1, 1, n, d) each
half = some.bfloat16()
calls = {"bfloat16": (is_causal, half), "float32": (is_causal, some), "attn_mask": (with_a_mask, half), "(n, d)": (is_causal, half[:, 0, 0])}
beside(my_guess, [name for name, (attend, qkv) in calls.items() if refused(attend, *qkv)])
for name in ("bfloat16", "(n, d)"):
    attend, qkv = calls[name]
    print(f"{name:>8}, any kernel allowed: {most_memory(attend, *qkv):.1f} MiB")

# %% [markdown]
# On a CPU it takes all that have four dimensions; on a GPU it refuses float32 and `attn_mask`, too. With `(n, d)` PyTorch makes the matrix, without a word.
# On the H200 (eight heads, 4,096 tokens, causal) FlashAttention took 0.17 ms, PyTorch's own choice 0.12, like cuDNN's tiles (0.29 with a mask). In
# float32 other tiles take over: 0.87.
#
# ## 7 A sliding window, and your code in the trained model
#
# The work still grows with n². To save work, let each token see only the last `window` tokens, and skip the tiles that lie wholly outside.
#
# ### Exercise: `sliding_window_mask` (2 points)
#
# Return an `(n, n)` bool mask on `device`, True = hidden: the future, and keys `window` or more tokens back. A window of 1 shows each token itself alone;
# below 1, raise a `ValueError`.

# %% grade_id="sliding_window_mask"
def sliding_window_mask(n, window):
    """True where hidden: the future, and everything window or more tokens back, (n, n)."""
    ### BEGIN SOLUTION
    if window < 1:
        raise ValueError(f"window must be at least 1, got {window}")
    place = torch.arange(n, device=device)
    back = place[:, None] - place  # (n, n): so many tokens back is key j for query i
    return (back < 0) | (back >= window)
    ### END SOLUTION


# %% grade_id="test_sliding_window_mask"
@rubric("sliding_window_mask")  # the contract as a checklist; open this cell to read it
def _(r):
    n = r.integer(9, 20)
    r.idea.each("hides the future, and what is window or more tokens back", sliding_window_mask, (4, 2), (n, 3), (n, r.integer(4, 8)))
    r.each("a window of 1 shows each token itself, a wide one everything before it", sliding_window_mask, (3, 1), (n, 1), (n, n), (n, n + 5))
    r.each("a single token", sliding_window_mask, (1, 1), (1, r.integer(2, 4)))
    r.refuses("raises ValueError when window is below 1", sliding_window_mask, (4, 0), (5, -2), (1, 0))

# %% tags=["raises-exception"]
# demonstration: counts tiles of 256 for a window of 512
for n in (1024, 2048, 4096):
    seen = (~sliding_window_mask(n, 512)).unflatten(1, (-1, 256)).any(dim=2).unflatten(0, (-1, 256)).any(dim=1)  # (n / 256, n / 256)
    print(f"n = {n:,}: {seen.numel():3} tiles, {torch.ones_like(seen).tril().sum():3} of them causal, {seen.sum():2} in the window")

# %% [markdown]
# The causal tiles grow with n², those in the window with n. In one layer a token is cut off from what is further back. But the next layer reads what
# this one has mixed.
#
# **Predict, then run.** The window is 4, and there are three layers. From how many tokens back can information arrive?

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

# %% [markdown]
# Each layer adds `window - 1`. That is what *can* arrive. Now your tiles and your window in the trained model, on the questions in 100 stories.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: asks the model with your tiles, with each block alone, and with eight windows
def with_layer(attend):
    """The trained model with its weights, and attention by a function of q, k, v (b, h, n, 12)."""

    class Other(MultiHeadAttention):
        def forward(self, x):
            heads = attend(*(self.split(layer(x)) for layer in (self.W_query, self.W_key, self.W_value)))  # (b, h, n, 12)
            return self.out_proj(heads.transpose(1, 2).flatten(2))

    changed = course_model()
    for block in changed.layers():
        layer = Other(48, 48, 48, 0.0, 4)
        layer.load_state_dict(block.attention.state_dict())
        block.attention = layer
    return changed.eval()


def on_cpu(mask):
    return mask.cpu()


def blocks_alone(q, k, v):
    return torch.cat([plain_attention(*block, causal=True) for block in zip(*(x.split(8, dim=2) for x in (q, k, v)))], dim=2)


def in_window(window):
    return with_layer(lambda q, k, v: with_sdpa(q, k, v, on_cpu(sliding_window_mask(q.shape[2], window))))


told = stories(100, seed=5)
windows = [2, 4, 8, 12, 16, 24, 32, 48]
for name, changed in {
    "the matrix": model,
    "your tiles of 8": with_layer(lambda q, k, v: tiled_attention(q, k, v, 8, causal=True)),
    "each block of 8 alone": with_layer(blocks_alone),
}.items():
    print(f"{name:>21}: {answers(changed, told)['all']:.0%} of the questions answered correctly")
by_window = [answers(in_window(window), told) for window in windows]

# %% [markdown]
# And what does it write? Turn the window down to 4, and up to 24.

# %% tags=["raises-exception"]
window = 16  # then others
for start in ("Anna has a ball . Tom has", "Tom is in the gym ."):
    print(" ".join(write(in_window(window), begin(start))[1:]), "\n")

# %% [markdown]
# **Predict, then run.** With a window of 24, which kind of question suffers most?

# %%
my_guess = None  # "who", "where", "what" or "alive"

# %% tags=["raises-exception"]
at_24 = by_window[windows.index(24)]
beside(my_guess, min(at_24, key=at_24.get))

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: draws the figure
def price(windows, curves):
    figure, axes = plt.subplots(figsize=(8.5, 4), layout="constrained")
    for (kind, curve), style in zip(curves.items(), ("k-", "o-", "s--", "^:", "d-.")):
        axes.plot(windows, curve, style, label=kind, linewidth=3 if kind == "all" else 1.5)
    axes.set(xlabel="window", ylabel="share answered correctly", ylim=(-0.03, 1.05), title="The trained model with your window")
    axes.set_xticks(windows)
    axes.legend()
    return figure


show(
    chart(price, windows, {kind: [found[kind] for found in by_window] for kind in by_window[0]}),
    "The share of questions answered correctly against the window, all and by kind of question. All, with a window of"
    + ";".join(f" {window}: {found['all']:.1%}" for window, found in zip(windows, by_window)) + ".",
)

# %% [markdown]
# **Your tiles change nothing.** A window does: a Lucy is asked for who never came up. At 16, two layers reach 30 words back, nearly an average story (32),
# and still four answers in ten are wrong. Which? Sort them by how far back the furthest word lies that an answer depends on.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: asks the model with a window of 16 again
inputs_told, targets = pairs(told)  # (b, n)


def by_distance(window, changed=None):
    """For each distance of the furthest word that an answer depends on: right or wrong, answer by answer."""
    with torch.no_grad():
        good = (changed or in_window(window))(inputs_told).argmax(dim=-1) == targets  # (b, n)
    found = {"inside the window": [], "within two layers' reach": [], "further back": []}
    for number, story_told in enumerate(told):
        for asked in story_told.notes.answers:
            back = max(link.at - link.own for link in story_told.notes.links if asked.start - 1 <= link.at < asked.stop)
            place = "inside the window" if back < window else "within two layers' reach" if back <= 2 * (window - 1) else "further back"
            found[place].append(bool(good[number, asked.start : asked.stop].all()))
    return found


for place, ones in by_distance(16).items():
    print(f"{place:>24}: {sum(ones):2} of {len(ones):2} answers right")

# %% [markdown]
# Inside the window nearly all are right. Beyond it, within reach, most are wrong, though the words between could pass the message on. Can they learn to?
# Train 250 more steps with the window or, as the baseline, without; then ask both with it.
#
# **Predict, then run.** How many of the 98 within reach does each answer?

# %%
my_guess = None  # two numbers from 0 to 98

# %% seconds=15 tags=["raises-exception", "nbval-ignore-output"]
# demonstration: trains the model twice, about 15 seconds
after = {}
for name, window in {"with the window": 16, "without it": 48}.items():
    learner, asked_in_window = in_window(window), in_window(16)
    list(train(learner, *pairs(stories(4000, seed=1)), steps=250, lr=1e-3))
    asked_in_window.load_state_dict(learner.state_dict())
    after[name] = by_distance(16, asked_in_window)
beside(my_guess, tuple(sum(found["within two layers' reach"]) for found in after.values()))
for name, found in after.items():
    print(f"trained {name}: " + ", ".join(f"{place} {sum(ones)} of {len(ones)}" for place, ones in found.items()))

# %% [markdown]
# The words between learn to pass on what they see (three runs: 53, 51 and 59; without the window 27 to 29). Models that use windows are *trained* with
# them.
#
# ## 8 What goes wrong in practice
#
# **The correction is forgotten, and the test does not notice.** If the largest score is in the first block, nothing has to be corrected. Test with
# rising scores.
#
# **Asking for the weights.** `nn.MultiheadAttention` returns them unless you say `need_weights=False`, and for that makes the matrix.
#
# **`is_causal` in the layer.** `nn.MultiheadAttention` holds `W_query`, `W_key` and `W_value` stacked, in this order, as `in_proj_weight`. The trained
# second layer as PyTorch's:

# %%
# demonstration: the trained second layer as PyTorch's
ours = model.layers()[1].attention
theirs = nn.MultiheadAttention(48, 4, batch_first=True)
with torch.no_grad():
    theirs.in_proj_weight.copy_(torch.cat([ours.W_query.weight, ours.W_key.weight, ours.W_value.weight]))
theirs.out_proj.load_state_dict(ours.out_proj.state_dict())
apart = (theirs.eval()(x, x, x, attn_mask=future(len(words)).cpu(), need_weights=False)[0] - ours(x)).abs().max().item()
print("PyTorch's layer, within 0.0001 of the trained one:", apart < 1e-4)

# %% [markdown]
# **Predict, then run.** And with `is_causal=True` in place of the mask, under `no_grad()`?

# %%
my_guess = None  # for train() and for eval(), each "hides the future", "sees the future" or "an error"

# %%
said = {}
with torch.no_grad():
    for mode in (theirs.train, theirs.eval):
        layer = mode()
        try:
            said[mode.__name__] = "sees the future" if torch.allclose(layer(x, x, x, is_causal=True)[0], layer(x, x, x)[0]) else "hides the future"
        except RuntimeError as error:
            said[mode.__name__] = f"an error, {str(error).split('. ')[0]}"
beside(my_guess, said)

# %% [markdown]
# There it makes no mask; you have to pass one as well. Without it the layer raises an error, except in `eval()` under `no_grad()`: there it silently
# sees the future.
#
# ## Summary
#
# - Attention over some keys is three things, m, l and o. **Partial results merge** exactly, in any order.
# - In **tiles** the memory grows with n, the arithmetic with n². Time is saved by compiled kernels that keep a tile in fast memory.
# - In `nn.MultiheadAttention` True hides, in `scaled_dot_product_attention` True takes part. `is_causal=True` is for square scores.
# - With a **sliding window** the work grows with n; each layer carries information `window - 1` tokens further.
#
# **Next.** For each word that it writes, the model reads its whole text again. Would once be enough? Lesson 09.

# %%
# demonstration: this lesson on a card; write a line of your own between the quotes
from attention_course import remember

remember("")

# %% [markdown]
# ## Appendix, without points
#
# **The backward pass makes the tiles again.** From q, k, v, the context vectors, and m + log l of each row: a weight is exp(score - (m + log l)).

# %% tags=["raises-exception"]
# demonstration: gradients by recomputation, against autograd
def tiled_backward(q, k, v, context, log_sum, arriving, block):
    """Gradients at q, k, v (n, d) from the one that arrives at the context vectors."""
    at_q, at_k, at_v = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    mean = (arriving * context).sum(dim=-1, keepdim=True)  # (n, 1): what a row's weights have in common, as they add up to 1
    for rows in torch.arange(len(q)).split(block):
        for columns in torch.arange(len(k)).split(block):
            weights = torch.exp(q[rows] @ k[columns].T / math.sqrt(q.shape[-1]) - log_sum[rows, None])
            at_v[columns] += weights.T @ arriving[rows]
            at_scores = weights * (arriving[rows] @ v[columns].T - mean[rows]) / math.sqrt(q.shape[-1])
            at_q[rows] += at_scores @ k[columns]
            at_k[columns] += at_scores.T @ q[rows]
    return at_q, at_k, at_v


torch.manual_seed(123)
q, k, v, arriving = (x.requires_grad_() for x in torch.randn(4, 50, 8, dtype=torch.float64).unbind())
m, l, o = partial_attention(q, k, v)
wanted = torch.autograd.grad((plain_attention(q, k, v) * arriving).sum(), (q, k, v))
with torch.no_grad():
    found = tiled_backward(q, k, v, o / l[:, None], m + l.log(), arriving, block=8)
print("within 0.000000000001 of autograd:", all((one - other).abs().max().item() < 1e-12 for one, other in zip(found, wanted)))

# %% [markdown]
# **The forward pass as a kernel**, in Triton, a Python that compiles for GPUs: one program for each head and block of queries.
# (On the H200 PyTorch's FlashAttention took 3.99 ms for 32,768 tokens, the Python loop 670.)

# %% tags=["nbval-ignore-output"]
# demonstration: the same tiles, compiled; needs a GPU
if device.type == "cuda":
    import triton
    import triton.language as tl

    @triton.jit
    def tiles_kernel(q_at, k_at, v_at, out_at, n, scale, D: tl.constexpr, BLOCK: tl.constexpr):
        top, first = tl.program_id(0) * BLOCK, tl.program_id(1) * n * D  # of this block of queries, of this head
        rows, numbers = top + tl.arange(0, BLOCK), tl.arange(0, D)
        places = first + rows[:, None] * D + numbers[None, :]
        q = tl.load(q_at + places, mask=rows[:, None] < n, other=0.0)  # stays in fast memory
        m = tl.full((BLOCK,), float("-inf"), tl.float32)
        l = tl.zeros((BLOCK,), tl.float32)
        o = tl.zeros((BLOCK, D), tl.float32)
        for left in range(0, top + BLOCK, BLOCK):  # causal: no tile in the future
            columns = left + tl.arange(0, BLOCK)
            keys = first + columns[:, None] * D + numbers[None, :]
            k = tl.load(k_at + keys, mask=columns[:, None] < n, other=0.0)
            v = tl.load(v_at + keys, mask=columns[:, None] < n, other=0.0)
            scores = tl.where(columns[None, :] <= rows[:, None], tl.dot(q, tl.trans(k)) * scale, float("-inf"))
            larger = tl.maximum(m, tl.max(scores, axis=1))
            exps, shrink = tl.exp(scores - larger[:, None]), tl.exp(m - larger)
            l = l * shrink + tl.sum(exps, axis=1)
            o = o * shrink[:, None] + tl.dot(exps.to(v.dtype), v)
            m = larger
        tl.store(out_at + places, (o / l[:, None]).to(q.dtype), mask=rows[:, None] < n)

    def compiled_tiles(q, k, v, block=64):
        """Causal attention (b, h, n, d) in bfloat16, d a power of two."""
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        b, h, n, d = q.shape
        out = torch.empty_like(q)
        tiles_kernel[(math.ceil(n / block), b * h)](q, k, v, out, n, d**-0.5, D=d, BLOCK=block)
        return out

    qkv = torch.randn(3, 1, 8, 4096, 64, device=device, dtype=torch.bfloat16).unbind()
    apart = (compiled_tiles(*qkv).float() - plain_attention(*(x.float() for x in qkv), causal=True)).abs().max().item()
    print("within 0.02 of the matrix in float32:", apart < 0.02)
    print(f"{milliseconds(compiled_tiles, *qkv):.3f} ms, {most_memory(compiled_tiles, *qkv):.0f} MiB; PyTorch "
          f"{milliseconds(lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=True), *qkv):.3f} ms")
else:
    print("no GPU here: read it beside your tiled_attention")

# %% [markdown]
# ## Further reading
#
# - Milakov and Gimelshein, *Online normalizer calculation for softmax*, 2018: the running maximum and sum.
# - Rabe and Staats, *Self-attention Does Not Need O(n²) Memory*, 2021: attention in blocks.
# - Dao et al., *FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness*, 2022: tiles, and the count of bytes. Dao,
#   *FlashAttention-2*, 2023: one number for each row.
# - Beltagy et al., *Longformer: The Long-Document Transformer*, 2020, section 3.1: sliding windows.
# - The six tokens, their vectors and seed 123: Sebastian Raschka, *Build a Large Language Model (From Scratch)*, 2024, chapter 3.
#
# *Using Colab or another hosted service?* Get `attention_notebooks-….whl` where you got the lesson, put it beside the notebook, run
# `%pip install attention_notebooks-*.whl` in a new cell above the others, and restart the kernel.
