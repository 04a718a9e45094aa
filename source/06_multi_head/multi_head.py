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
# # Several heads: one word looks in several places
#
# *Anna has a ball . Tom has two books . he reads them upstairs . she's outside . where is …* With one head a layer, the course's model only guessed at
# such questions. With **four small heads** it knows: Anna is outside, Tom upstairs. Now let one head of layer 1 exchange its output, twelve numbers,
# between two of these words. Of 840 such exchanges, how many change an answer? Run the next two cells.

# %% grade_id="setup" seconds=3 jupyter={"source_hidden": true}
# the set-up: imports, and what this lesson starts from
import itertools
import math
import os

import matplotlib.pyplot as plt
import torch
from torch import nn

from attention_course import (
    answers, begin, beside, case, chart, course_model, decode, encode, explore_story, heatmap, hint, jobs, new_model, pairs,
    panels, progress, rubric, show, show_live, stories, table, train, why,
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

# %% jupyter={"source_hidden": true}
# demonstration: what every exchange of one head between two words does
four_heads = course_model(4)
told = "Anna has a ball . Tom has two books . he reads them upstairs . she's outside . where is"
asked = torch.tensor([encode(begin(f"{told} {end}")) for end in ("Anna ? she's", "Tom ? he's")])  # (2, n)


@torch.no_grad()
def after(head, one, two):
    """The places that the model names, and a sentence about them, when the numbers of a head of layer 1 at two positions change places."""
    numbers = slice(12 * head, 12 * head + 12)

    def exchange(_, given):
        outputs = given[0].clone()  # (2, n, 48): 12 numbers from each head
        outputs[:, [one, two], numbers] = outputs[:, [two, one], numbers]
        return (outputs,)

    with four_heads.blocks[0].attention.out_proj.register_forward_pre_hook(exchange):
        sure, first = four_heads(asked)[:, -1].softmax(dim=-1).max(dim=-1)
    anna, tom = decode(first.tolist())
    return (anna, tom), f"Anna is {anna} ({sure[0]:.2f}), Tom is {tom} ({sure[1]:.2f})"


named, as_told = after(0, 0, 0)  # a word with itself
ways = [(head, *two) for head in range(4) for two in itertools.combinations(range(len(begin(told))), 2)]
exchanges = [((f"1.{head + 1}", begin(told)[one], begin(told)[two]), *after(head, one, two)) for head, one, two in ways]
changed = [(way, said) for way, places, said in exchanges if places != named]
print(f"nothing exchanged: {as_told}")
print(f"{len(exchanges)} exchanges; answers change in {len(changed)} of them")
for _, said in changed:
    print(f"   after that one: {said}")

# %% [markdown]
# One, and it moves both people. **Which head was it, at which two words?** You track it down in part 6. And why four small heads, not a large one?
#
# - You find what one head loses, and when it loses nothing.
# - You cut one matrix into heads, build the layer, and repair somebody else's.
# - You switch heads off in the trained model, word by word, and find that exchange.
#
# *About 100 minutes. It builds on lesson 05. Run cells, solve exercises and ask for `hint()`, `why()` and `progress()` as before; let gradients through
# and don't modify the arguments.*

# %%
# demonstration: three questions on earlier lessons, without points
from attention_course import recall

recall()

# %% [markdown]
# ## 1 One row of weights
#
# A head gives each word one row of weights, and mixes **all** numbers of the values with that row. Suppose a word needs two vectors, a and b, of three
# numbers each. The head passes on a mixture, and the best linear layer reads a and b back from it. An error of 0 means that it recovers both,
# an error of 1 that it recovers nothing.
#
# **Predict, then run.** From half of a and half of b the error is 0.50. What is it from 0.7 of a and 0.3 of b? From a head whose values are twice as
# wide? From two heads, one for a and one for b?

# %%
my_guess = None  # three numbers

# %%
torch.manual_seed(0)
a, b = torch.randn(2, 20_000, 3)  # 20,000 pairs of vectors
nothing, wider = torch.zeros_like(a), torch.randn(3, 6)


def error_of(passed_on):
    """The mean squared error with which the best linear layer reads a and b back; they have a spread of 1."""
    wanted = torch.cat([a, b], dim=-1)
    return (passed_on @ torch.linalg.lstsq(passed_on, wanted).solution - wanted).square().mean().item()


errors = {
    "one head, half and half": error_of(0.5 * a + 0.5 * b),
    "one head, 0.7 and 0.3": error_of(0.7 * a + 0.3 * b),
    "one head, values of six numbers": error_of((0.5 * a + 0.5 * b) @ wider),
    "two heads": error_of(torch.cat([a, b], dim=-1)),
    "one head, a in numbers 0 to 2 of its values, b in 3 to 5": error_of(0.5 * torch.cat([a, nothing], dim=-1) + 0.5 * torch.cat([nothing, b], dim=-1)),
}
beside(my_guess, tuple(round(abs(error), 1) for error in list(errors.values())[1:4]))
for name, error in errors.items():
    print(f"{abs(error):.2f}  {name}")

# %% [markdown]
# Unequal shares only move the error from one vector to the other. A wider head widens the mixture, and no number in it is new. **Two rows of weights
# pass on both.**
#
# The last line is the exception. Where a and b use *different* numbers of the values, say a person's thing and her place, one row loses nothing. One row
# loses half where both are of **the same kind**, and so use the same numbers: two people, or two neighbouring words. (Where few vectors can occur,
# later layers may guess both.)
#
# ## 2 Heads side by side
#
# The plain way: several `CausalAttention` layers read the same x, and their outputs are **concatenated**, put side by side.
#
# ```
#                ┌─ head 0 ─►  (b, n, d_out) ─┐
# x (b, n, d_in) ┼─ head 1 ─►  (b, n, d_out) ─┼─►  (b, n, num_heads * d_out)
#                └─ head 2 ─►  (b, n, d_out) ─┘
# ```
#
# ### Exercise: `MultiHeadAttentionWrapper` (2 points)
#
# `self.heads` is an `nn.ModuleList` of `CausalAttention` layers, each built with the constructor's arguments except `num_heads`. Here `d_out` is the
# size of **one head**. `forward` returns their outputs side by side, head 0 first.

# %% grade_id="MultiHeadAttentionWrapper"
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

# %% grade_id="test_MultiHeadAttentionWrapper"
@rubric("MultiHeadAttentionWrapper")  # the contract as a checklist; open this cell to read it
def _(r):
    layer = r.layer(MultiHeadAttentionWrapper, d_in=4, d_out=3, context_length=8, dropout=0.0, num_heads=2, qkv_bias=False)
    layer.linear("heads.*.W_query heads.*.W_key heads.*.W_value", "d_in -> d_out", bias="qkv_bias")
    layer.made_of("heads is an nn.ModuleList")
    layer.outputs("the heads' outputs side by side", r.normal(1, 2, 4), r.normal(2, 8, 4), r.normal(2, 8, 4), r.normal(3, 1, 4))
    layer.outputs("as many heads as sentences, tokens and numbers; with a bias", r.normal(4, 4, 16), d_in=16, d_out=4, num_heads=4, qkv_bias=True)
    layer.drops_weights("in training every head drops weights of its own, in eval() none", p=0.3)
    layer.refuses("raises ValueError for more tokens than context_length", r.normal(2, 9, 4))
    layer.conventions(r.normal(3, 7, 4), d_out=9)

# %% tags=["raises-exception"]
torch.manual_seed(123)
wrapper = MultiHeadAttentionWrapper(d_in=3, d_out=2, context_length=6, dropout=0.0, num_heads=2).to(device)
print("batch", tuple(batch.shape), "-> context vectors", tuple(wrapper(batch).shape))
table(wrapper(batch)[0], rows=tokens, columns=["head 0: 0", "head 0: 1", "head 1: 0", "head 1: 1"])

# %% [markdown]
# Does training find the two rows by itself? In random sentences a word is three numbers and a position. Each is to end up with two vectors of the
# same kind: the word before it, and the one before that. Your wrapper and a linear layer learn it, with six numbers shared out among 1, 2 or 6 heads.
#
# **Predict, then run.** Two heads of three end with an error near 0. And one head of six? Six heads of one?

# %%
my_guess = None  # two numbers from 0 to 1

# %% seconds=6 jupyter={"source_hidden": true} tags=["raises-exception", "nbval-ignore-output"]
# demonstration: trains five layers, about six seconds
def sentences(count):
    """Random sentences (count, 6, 9), and the two words before each word from the third on, (count, 4, 6)."""
    words, places = torch.randn(count, 6, 3), torch.eye(6).expand(count, 6, 6)
    return torch.cat([words, places], dim=-1), torch.cat([words[:, 1:-1], words[:, :-2]], dim=-1)


@torch.no_grad()
def blind(heads):
    """Scores that do not see the three numbers of a word, only its position."""
    for head in heads.heads:
        head.W_query.weight[:, :3] = head.W_key.weight[:, :3] = 0


def trained(num_heads, wider_keys=False, after_each_step=lambda heads: None):
    """Train heads that have six numbers in all; return them and the error on new sentences."""
    torch.manual_seed(123)
    heads = MultiHeadAttentionWrapper(9, 2 if wider_keys else 6 // num_heads, 6, 0.0, num_heads)
    if wider_keys:  # queries and keys of two numbers, values of one
        for head in heads.heads:
            head.W_value = nn.Linear(9, 1, bias=False)
    model = nn.Sequential(heads, nn.Linear(6, 6))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    for _ in range(400):
        x, wanted = sentences(64)
        loss = (model(x)[:, 2:] - wanted).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        after_each_step(heads)
    x, wanted = sentences(2000)
    with torch.no_grad():
        return heads, (model(x)[:, 2:] - wanted).square().mean().item(), x


learned = {number: trained(number) for number in (1, 2, 6)}
beside(my_guess, tuple(round(learned[number][1], 2) for number in (1, 6)))
for number, (_, error, _) in learned.items():
    print(f"{number} head{'s' if number > 1 else ' '} of {6 // number}: error {error:.2f}")
print(f"1 head  of 6, its scores blind to the words: error {trained(1, after_each_step=blind)[1]:.2f}")
print(f"6 heads of 1, but with queries and keys of 2: error {trained(6, wider_keys=True)[1]:.2f}")

# %% jupyter={"source_hidden": true} tags=["raises-exception", "nbval-ignore-output"]
# demonstration: draws the figure
with torch.no_grad():
    rows = {number: [head.weights(learned[number][2]).mean(dim=0) for head in learned[number][0].heads] for number in (1, 2)}
later = torch.ones(6, 6).triu(diagonal=1) == 1
maps = {"the only head": rows[1][0], "the first of two": rows[2][0], "the second of two": rows[2][1]}
show(
    panels(*(heatmap(weights, tokens, tokens, title=title, hidden=later, limits=(0, 1), bar=False) for title, weights in maps.items()), size=(11.5, 3.9)),
    "Three heatmaps of mean weights after training. What the last word gives to the word before it, and to the one before that: "
    + "; ".join(f"{title} {weights[-1, -2]:.2f} and {weights[-1, -3]:.2f}" for title, weights in maps.items()) + ".",
)

# %% [markdown]
# One head halves its weight. (Its error is below 0.50 because its weights change a little with the words.) Two heads take one word each.
#
# Why do six heads of one number do worse? With one number in a query and a key, a score is their product. As the query grows, the largest key wins;
# as it falls, the smallest; never a key between them. Queries and keys of two numbers cure it.

# %% jupyter={"source_hidden": true}
# draws the figure
def who_wins(line, circle):
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 2.9), layout="constrained", sharey=True)
    for axes, (at, weights) in zip((left, right), (line, circle)):
        for j, colour in enumerate(("#b5541c", "#d9a441", "0.45", "#56a3bd", "#1f4f6b")):
            axes.plot(at, weights[:, j], color=colour, label=f"key {j}")
    left.set(title="keys of one number: -2, -1, 0, 1, 2", xlabel="query", ylabel="weight", ylim=(0, 1))
    right.set(title="keys of two numbers: five directions", xlabel="direction of the query, in degrees")
    left.legend(fontsize=8, loc="upper center")
    return figure


query = torch.linspace(-3, 3, 121)[:, None]
line = (query * torch.linspace(-2, 2, 5)).softmax(dim=-1)
turn = torch.linspace(0, 360, 121).deg2rad()[:, None]
circle = (6 * torch.cos(turn - torch.arange(5) * 2 * math.pi / 5)).softmax(dim=-1)  # dot products of vectors on a circle
show(
    chart(who_wins, (query, line), (turn.rad2deg(), circle)),
    "Weights of five keys against the query. Left, keys of one number: the smallest key has most of the weight for queries below -1, the largest for queries "
    "above 1, the other three never come near it. Right, keys of two numbers: as the query turns, each key has most of the weight in turn.",
)

# %% [markdown]
# ## 3 One matrix, cut into heads
#
# Two heads mean six small products and a loop in Python. `nn.Linear` has one row of its weight for each number that it returns. So stack the rows of
# all heads: one product makes the queries of both.
#
# Are features 2 and 3 the queries of your wrapper's head 1?

# %%
with torch.no_grad():
    stacked = torch.cat([head.W_query.weight for head in wrapper.heads])  # (4, 3): rows 0, 1 for head 0; rows 2, 3 for head 1
    both = inputs @ stacked.T  # (6, 4)
    print("features 2 and 3 are head 1's queries:", torch.allclose(both[:, 2:], wrapper.heads[1].W_query(inputs), atol=1e-6))

# %% [markdown]
# So one large matrix *is* several heads, if you cut its result: each block of features needs a softmax of its own. The heads become a dimension
# next to the batch, and `@` multiplies each head's matrix separately.
#
# ```
# x                 (b, n, d)                   token 0:  0 1 2 3
#                                               token 1:  4 5 6 7
# cut               (b, n, heads, d / heads)    token 0:  0 1 | 2 3
#                                               token 1:  4 5 | 6 7
# heads in front    (b, heads, n, d / heads)    head 0:  token 0:  0 1
#                                                        token 1:  4 5
#                                               head 1:  token 0:  2 3
#                                                        token 1:  6 7
# ```
#
# ### Exercise: `split_heads` (2 points)
#
# Return `(b, num_heads, n, d / num_heads)` for x `(b, n, d)`. Head h gets features `h * d / num_heads` up to, but not including,
# `(h + 1) * d / num_heads` of every token. If `num_heads` does not divide d, raise a `ValueError`.

# %% grade_id="split_heads"
def split_heads(x, num_heads):
    """The features cut into heads: (b, n, d) -> (b, num_heads, n, d // num_heads)."""
    ### BEGIN SOLUTION
    if x.shape[-1] % num_heads != 0:
        raise ValueError(f"d must be divisible by num_heads, got d = {x.shape[-1]} and num_heads = {num_heads}")
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)
    ### END SOLUTION

# %% grade_id="test_split_heads"
@rubric("split_heads")  # the contract as a checklist; open this cell to read it
def _(r):
    r.idea.each("head h gets its share of every token's features", split_heads, (r.normal(1, 2, 4), 2), (r.normal(2, 5, 12), 3), (r.normal(2, 5, 12), 3))
    r.each("one head, heads of one number, as many heads as tokens, one token alone", split_heads, (r.normal(3, 4, 5), 1), (r.normal(2, 7, 5), 5), (r.normal(4, 4, 12), 4), (r.normal(3, 1, 8), 2))
    r.refuses("raises ValueError when num_heads does not divide d", split_heads, (r.normal(2, 6, 10), 3), (r.normal(2, 4, 10), 4), (r.normal(2, 3, 4), 8))
    r.conventions(split_heads, r.normal(2, 3, 6, dtype=torch.float64), 3)

# %% [markdown]
# Why the transpose? `x.view(b, num_heads, n, d // num_heads)` has the right shape in one step. Here 3:1 is token 3, feature 1.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
def labelled(parts):
    figure, grid = plt.subplots(1, len(parts), figsize=(11, 2.9), layout="constrained", width_ratios=[len(part[0]) for part in parts.values()])
    for axes, (title, part) in zip(grid, parts.items()):
        axes.imshow([[int(entry) // 10 for entry in row] for row in part], cmap="Blues", vmin=-2, vmax=9, aspect="auto")
        for i, row in enumerate(part):
            for j, entry in enumerate(row):
                axes.text(j, i, f"{int(entry) // 10}:{int(entry) % 10}", ha="center", va="center", fontsize=9)
        axes.set(title=title, xticks=[], yticks=range(6), yticklabels=tokens if title == "x" else [])
        axes.tick_params(length=0)
    return figure


x = 10.0 * torch.arange(6)[:, None] + torch.arange(4)  # (6, 4): 31 is token 3, feature 1
cut, scrambled = split_heads(x[None], 2)[0].tolist(), x.view(2, 6, 2).tolist()
parts = {"x": x.tolist(), "yours: head 0": cut[0], "yours: head 1": cut[1], "view alone: head 0": scrambled[0], "view alone: head 1": scrambled[1]}
show(
    chart(labelled, parts),
    "Five tables whose entries say token and feature. Row 1 of yours, token 1: " + ", ".join(f"{int(entry) // 10}:{int(entry) % 10}" for entry in cut[0][1] + cut[1][1])
    + ". With view alone head 0 holds tokens 0 to 2 and head 1 tokens 3 to 5, each on two rows.",
)

# %% [markdown]
# With `view` alone head 1 holds features of *with* in the row of *Your*, and the mask hides keys by their place only.
#
# **Predict, then run.** Change *with*. Whose context vectors move, with your cut and with `view` alone?

# %%
my_guess = None  # two lists of words

# %% tags=["raises-exception"]
def who_notices(split):
    """The words whose context vector changes when *with* does; queries, keys and values are x itself."""
    def attend(x):  # (1, n, d) -> (1, 2, n, d / 2)
        heads = split(x)
        future = torch.ones(6, 6, device=device).triu(diagonal=1) == 1
        return (heads @ heads.mT).masked_fill(future, -math.inf).softmax(dim=-1) @ heads

    torch.manual_seed(123)
    x = torch.randn(1, 6, 4).to(device)
    changed = x.clone()
    changed[:, 3] += 1  # with
    moved = (attend(changed) - attend(x)).abs().amax(dim=(0, 1, 3)) > 1e-6  # (6,)
    return [token for token, notices in zip(tokens, moved.tolist()) if notices]


beside(my_guess, [who_notices(lambda x: split_heads(x, 2)), who_notices(lambda x: x.view(1, 2, 6, 2))])

# %% [markdown]
# With `view` alone every word notices, the first one too: the future leaks, and no shape shows it.
#
# ### Exercise: `merge_heads` (2 points)
#
# The way back, `(b, num_heads, n, d_head)` to `(b, n, num_heads * d_head)`. After a transpose the numbers lie in memory in another order, so `view`
# refuses; `reshape` and `flatten` copy where they have to.

# %% grade_id="merge_heads"
def merge_heads(x):
    """The heads side by side again: (b, num_heads, n, d_head) -> (b, n, num_heads * d_head)."""
    ### BEGIN SOLUTION
    return x.transpose(1, 2).flatten(2)
    ### END SOLUTION

# %% grade_id="test_merge_heads"
@rubric("merge_heads")  # the contract as a checklist; open this cell to read it
def _(r):
    r.idea.each("the inverse of split_heads", merge_heads, (r.normal(1, 2, 2, 2),), (r.normal(2, 3, 5, 4),), (r.normal(2, 3, 5, 4),))
    r.each("one head, heads of one number, as many heads as tokens, one token alone", merge_heads, (r.normal(3, 1, 4, 5),), (r.normal(2, 7, 5, 1),), (r.normal(4, 4, 4, 4),), (r.normal(3, 2, 1, 4),))
    r.conventions(merge_heads, r.normal(2, 3, 4, 2, dtype=torch.float64))

# %% [markdown]
# ## 4 Each head writes to the stream
#
# What an attention layer returns is **added** to the word's vector, which runs through the model like a stream (the **residual stream**). Four heads of
# 12 numbers, side by side, would fit a stream of 48, but head 0 could only ever reach its first 12. So a last linear layer, `out_proj`, follows. Cut its
# weight as you cut the features, and it is one matrix for each head: every head **writes** to the whole stream, which adds up what they write.

# %% jupyter={"source_hidden": true}
# draws the figure
def stream():
    figure, axes = plt.subplots(figsize=(11, 4.2), layout="constrained")
    axes.annotate("", (10.9, 0.9), (0.1, 0.9), arrowprops={"arrowstyle": "-|>", "lw": 9, "color": "0.75", "shrinkA": 0, "shrinkB": 0})
    axes.text(0.1, 0.45, "a word's vector, 48 numbers", fontsize=10)
    axes.text(10.9, 0.45, "to the next layer", fontsize=10, ha="right")
    for h, colour in enumerate(("#b5541c", "#8a6d00", "#1f6f8b", "#6a4c93")):
        height = 4.5 - 0.95 * h
        axes.plot([1.2, 1.2, 1.8], [0.9, height, height], color=colour, lw=1.8)
        for left, width, text in ((1.8, 2.6, f"head {h}: a row of weights"), (5.6, 2.6, f"out_proj, columns {12 * h} to {12 * h + 11}")):
            axes.add_patch(plt.Rectangle((left, height - 0.3), width, 0.6, color=colour, linewidth=0))
            axes.text(left + width / 2, height, text, ha="center", va="center", color="white", fontsize=10)
        axes.annotate("", (5.6, height), (4.4, height), arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 1.8, "shrinkA": 0, "shrinkB": 0})
        axes.text(4.95, height + 0.13, "12 numbers", ha="center", fontsize=9, color=colour)
        axes.plot([8.2, 9.6, 9.6], [height, height, 0.9], color=colour, lw=1.8)
        axes.text(8.9, height + 0.13, "48 numbers", ha="center", fontsize=9, color=colour)
    axes.text(9.6, 0.9, "+", ha="center", va="center", fontsize=16, weight="bold", bbox={"boxstyle": "circle,pad=0.15", "facecolor": "white", "edgecolor": "black"})
    axes.set(xlim=(0, 11), ylim=(0.25, 4.95))
    axes.set_axis_off()
    return figure


show(
    chart(stream),
    "A grey arrow from left to right is the word's vector, 48 numbers. Four heads read from it. Each has a row of weights of its own, passes 12 numbers to its "
    "own 12 columns of out_proj, and the 48 numbers that come out are added to the arrow.",
)

# %%
torch.manual_seed(0)
out_proj, merged = nn.Linear(48, 48), torch.randn(1, 6, 48)
with torch.no_grad():
    written = [merged[..., 12 * h : 12 * h + 12] @ out_proj.weight[:, 12 * h : 12 * h + 12].T for h in range(4)]  # four times (1, 6, 48)
    print("out_proj is the sum of what four heads write:", torch.allclose(out_proj(merged), sum(written) + out_proj.bias, atol=1e-5))

# %% [markdown]
# The layer:
#
# ```
# x (b, n, d_in)                                   d_head = d_out / num_heads
#   queries, keys, values    three layers, then split_heads     (b, heads, n, d_head)
#   scores                   queries @ keys.transpose(2, 3)     (b, heads, n, n)
#   weights                  mask and scale, softmax, dropout   (b, heads, n, n)
#   context vectors          weights @ values, merge_heads      (b, n, d_out)
#   output                   out_proj                           (b, n, d_out)
# ```
#
# **Predict, then run.** `d_out` is 12, and there are 3 heads. The scores are divided by the square root of which number?

# %%
my_guess = None  # a number

# %% tags=["raises-exception"]
torch.manual_seed(0)
queries, keys = (split_heads(torch.randn(1, 2000, 12), 3) for _ in range(2))  # every number has a spread of 1
spread = (queries @ keys.mT).std().item()
beside(my_guess, round(spread**2, 1))
print(f"the scores have a spread of {spread:.2f}, the square root of {spread**2:.1f}: divided by it, they have a spread of 1")

# %% [markdown]
# A score is a dot product of as many numbers as **one head** has (lesson 01).
#
# ### Exercise: `MultiHeadAttention` (7 points)
#
# Lesson 05's layer with heads, `(b, n, d_in)` to `(b, n, d_out)`. Here `d_out` is the size of **all heads together**.
#
# - `W_query`, `W_key`, `W_value`, `dropout` and the buffer `mask` as in `CausalAttention`. `out_proj` is an `nn.Linear` from `d_out` to `d_out`.
# - Keep `num_heads` as an attribute.
# - A `ValueError` in `__init__` when `num_heads` does not divide `d_out`, and in `forward` for what `CausalAttention` refuses.

# %% grade_id="MultiHeadAttention"
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

# %% grade_id="test_MultiHeadAttention"
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
    layer.conventions(r.normal(3, 7, 4), d_out=18)

# %% [markdown]
# ### The same numbers, twice
#
# Is that the same as heads side by side?
#
# ```
# wrapper, d_out = 2 a head, 2 heads            mha, d_out = 4 in total, 2 heads
#   heads.0.W_query.weight   (2, d_in)   ──►    W_query.weight rows 0, 1   (4, d_in)
#   heads.1.W_query.weight   (2, d_in)   ──►    W_query.weight rows 2, 3
#                                               out_proj.weight must change nothing
# ```
#
# ### Exercise: `pack_heads` (3 points)
#
# Copy the heads of `wrapper` into `mha`, biases too if there are any, and make `mha.out_proj` change nothing. Then both give the same output in `eval()`.
#
# - Copy the numbers: the two share nothing afterwards, and `wrapper` stays as it was.
# - The rubric uses your two classes, so get those right first.

# %% grade_id="pack_heads"
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

# %% grade_id="test_pack_heads"
@rubric("pack_heads")  # the contract as a checklist; open this cell to read it
def _(r):
    wrapper = r.layer(MultiHeadAttentionWrapper, d_in=4, d_out=2, context_length=8, dropout=0.0, num_heads=3, qkv_bias=False)
    wrapper.linear("heads.*.W_query heads.*.W_key heads.*.W_value", "d_in -> d_out", bias="qkv_bias")
    mha = r.layer(MultiHeadAttention, d_in=4, d_out=6, context_length=8, dropout=0.0, num_heads=3, qkv_bias=False)
    mha.linear("W_query W_key W_value", "d_in -> d_out", bias="qkv_bias")
    copy = r.copies(pack_heads, wrapper, mha)
    copy.outputs("mha gives the output of the wrapper", r.normal(1, 2, 4), r.normal(2, 7, 4))
    copy.outputs("with a bias, and with dropout, both in eval()", r.normal(2, 5, 2), d_in=2, qkv_bias=True, dropout=0.5)
    copy.outputs("one head; float64", r.normal(2, 5, 4, dtype=torch.float64), d_out=9, num_heads=1)
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
# ## 5 What goes wrong in practice
#
# ### Exercise: `fix_me` (3 points)
#
# The class below is somebody else's. It runs, its shapes are right, and it has **five faults**. None raises an error. One layer `qkv` makes queries,
# keys and values, in this order. It returns two things: the output, and the weights before dropout, `(b, num_heads, n, n)`. Otherwise it should do
# what `MultiHeadAttention` does.
#
# Let the rubric guide you: which lines fail with one head, which only with several?

# %% grade_id="fix_me" tags=["raises-exception"]
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
#         C = self.out_proj.in_features
#         scores = queries @ keys.transpose(2, 3) * C**-0.5
#         weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=2)
#         dropped = nn.functional.dropout(weights, self.dropout.p)
#         context = (dropped @ values).reshape(*x.shape[:2], -1)  # (b, n, d_out)
#         return self.out_proj(context), weights
### END GIVEN

# %% grade_id="test_fix_me"
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
    layer.conventions(r.normal(3, 7, 4), d_out=18)

# %% [markdown]
# One of the five is famous. Karpathy's *Let's build GPT* scaled by `C**-0.5` at first, with C the width of the whole model; a note below the
# video corrects it.
#
# **Predict, then run.** The trained model answers every question in 1,000 stories. How many with that scale?

# %%
my_guess = None  # a percentage, such as 50

# %%
# demonstration: the trained model with the scale of all heads together
many = stories(1000, seed=5)
early = course_model(4)
for block in early.layers():
    block.attention.W_query.weight.data *= math.sqrt(12) / math.sqrt(48)  # 12 numbers a head, 48 in all
beside(my_guess, f"{answers(early, many)['all']:.0%}; with the right scale {answers(four_heads, many)['all']:.0%}")

# %% [markdown]
# *Trained* with that scale, a model may make up for it.
#
# ## 6 Two steps
#
# Put **your** class into the trained model. The baseline is your class with fresh weights.

# %% tags=["raises-exception"]
# demonstration: your layers in the trained model
def with_your_layers(model, keep=True):
    """The model with your MultiHeadAttention in both layers; it keeps the weights."""
    for block in model.blocks:
        own = MultiHeadAttention(48, 48, 48, 0.0, num_heads=block.attention.num_heads)
        if keep:
            own.load_state_dict(block.attention.state_dict(), strict=False)  # the file holds no mask
        block.attention = own
    return model.eval()


torch.manual_seed(123)
yours, untrained = with_your_layers(course_model()), with_your_layers(course_model(), keep=False)
for name, model in {"as it came": four_heads, "your layers": yours, "your layers, untrained": untrained}.items():
    print(f"{name:>22}: {answers(model, many)['all']:.0%} of the questions right")

# %% [markdown]
# Here it answers *where is Anna ?* Which heads of layer 2 look at her place from the last word? Switch them off.

# %% tags=["raises-exception"]
explore_story(yours, f"{told} Anna ? she's", f"{told} Tom ? he's", head="2.4")

# %% [markdown]
# ### Exercise: `silence` (2 points)
#
# Switch off one head: set what it passes on to 0, everywhere or at some words.
#
# ```
# outputs (b, h, n, d) of h heads, head, at      result (b, h, n, d), a new tensor
# ```
#
# - `at` is a list of one or more positions. With `at=None` the head is off everywhere.
# - Heads and positions count from 0: head 1.3 has `head=2`.

# %% grade_id="silence"
def silence(outputs, head, at=None):
    """The heads' outputs (b, h, n, d), zero for this head: everywhere, or at the positions in `at`."""
    ### BEGIN SOLUTION
    silenced = outputs.clone()
    silenced[:, head, slice(None) if at is None else at] = 0
    return silenced
    ### END SOLUTION


# %% grade_id="test_silence"
@rubric("silence")  # the contract as a checklist; open this cell to read it
def _(r):
    x, one = r.nonzero(3, 4, 5, 2), r.nonzero(1, 2, 3, 1)
    r.each("without at: zero at every position, the other heads as they were", silence, (r.nonzero(1, 2, 2, 1), 1), (x, 0), (r.nonzero(4, 4, 4, 4), 3), (r.nonzero(2, 1, 3, 2), 0))
    r.idea.each("with at: there and nowhere else; with None: everywhere", silence, (one, 1, [0]), (one, 1, None), (x, 0, [1, 3]), (x, r.integer(1, 2), [4, 0]), (r.nonzero(4, 4, 4, 4), 1, [3]), (r.nonzero(2, 3, 1, 4), 2, [0]))
    r.conventions(silence, r.nonzero(2, 3, 5, 4, dtype=torch.float64), 1, [2, 3])

# %% [markdown]
# Ask *where* in 1,000 stories, wherever the two are in different places. Switch off each head everywhere.
#
# **Predict, then run.** Head 2.4 looks most at the right place, and costs most. Which head comes second?

# %%
my_guess = None  # a head, such as "1.1"

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: eight heads of your layers, each switched off by your function
links = [(story, link) for story in many for link in story.notes.links
         if link.job == "she's: own place" and link.other is not None and story.words[link.own] != story.words[link.other]]
ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(encode(begin(str(story)))) for story, _ in links], True)  # (b, n); <end> stands first
at, own, other = torch.tensor([(link.at + 1, link.own + 1, link.other + 1) for _, link in links]).T  # the answering word, the two places
row = torch.arange(len(ids))


@torch.no_grad()
def scores_with(change, layer, ids, model=yours):
    """The scores (b, n, v) of the next words when the outputs of a layer's heads are changed."""
    attention, called = model.blocks[layer].attention, []

    def before_out_proj(_, given):
        called.append(layer)
        return merge_heads(change(split_heads(given[0], attention.num_heads)))

    with attention.out_proj.register_forward_pre_hook(before_out_proj):  # it ends with the block, also by an error
        scores = model(ids)
    assert called, "forward does not call self.out_proj"
    return scores


def places_named(layer=0, change=lambda heads: heads, model=yours):
    """The shares of answers that name the right place, and the other person's."""
    chosen = scores_with(change, layer, ids, model)[row, at].argmax(dim=-1)
    return tuple(round(100 * (chosen == ids[row, place]).double().mean().item(), 1) for place in (own, other))


heads = {f"{layer + 1}.{head + 1}": (layer, head) for layer in range(2) for head in range(4)}
off = {name: places_named(layer, lambda outputs: silence(outputs, head))[0] for name, (layer, head) in heads.items()}
seen = jobs(four_heads, many)["she's: own place"]["own"]  # (2, 4): mean weight of the answering word on the right place
beside(my_guess, sorted(off, key=off.get)[1])
print(f"all heads on: {places_named()[0]:.1f}% of {len(links)} places right")
for name, share in off.items():
    print(f"{name} off: {share:5.1f}%; it looks at the right place by {seen[heads[name]].item():.2f}")

# %% [markdown]
# Head 1.3 hardly looks at the place, and yet a third of the answers need it. So look for the words **at which it works**: switch it off at one kind of
# word at a time.
#
# **Predict, then run.** Off at which kind does it cost most?

# %%
my_guess = None  # one of: "names", "pronouns", "two places", "question", "answering word"

# %% seconds=10 jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: each head off at one kind of word
def kinds_of(story, end, places):
    """The positions of each kind of word before the answering word at `end`, and that word's."""
    told, names = begin(str(story))[: end - 4], [person["name"] for person in story.notes.people]  # up to the question
    return {
        "names": [t for t, word in enumerate(told) if word in names],
        "pronouns": [t for t, word in enumerate(told) if word in ("she", "she's", "he", "he's")],
        "two places": places,
        "question": list(range(end - 4, end)),
        "answering word": [end],
        "all but the two places": [t for t in range(end + 1) if t not in places],
    }


def off_at(head, kind):
    """Your silence, at this kind of word in each story."""
    return lambda heads: torch.cat([silence(one[None], head, words[kind]) for one, words in zip(heads, positions)])


positions = [kinds_of(story, end, [a, b]) for (story, _), end, a, b in zip(links, at.tolist(), own.tolist(), other.tolist())]
kinds = list(positions[0])[:5]
wrong = {name: [100 - places_named(layer, off_at(head, kind))[0] for kind in kinds] for name, (layer, head) in heads.items()}
beside(my_guess, kinds[wrong["1.3"].index(max(wrong["1.3"]))])
print(f"head 1.3 off at all words but the two places: {places_named(0, off_at(2, 'all but the two places'))[0]}% right")

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: draws the figure
def circuit(wrong, columns):
    figure, axes = plt.subplots(figsize=(9, 3.9), layout="constrained")
    axes.imshow(list(wrong.values()), cmap="Oranges", vmin=0, vmax=80, aspect="auto")
    for i, shares in enumerate(wrong.values()):
        for j, share in enumerate(shares):
            axes.text(j, i, f"{share:.1f}", ha="center", va="center", fontsize=10)
    axes.axhline(3.5, color="black", lw=1.5)
    axes.set(title="Percent of wrong places, with one head off at one kind of word", xticks=range(len(columns)), xticklabels=columns, yticks=range(8), yticklabels=list(wrong))
    axes.set_ylabel("layer 2                 layer 1")
    return figure


show(
    chart(circuit, wrong, kinds),
    f"Wrong places in percent, with one head off at one kind of word ({', '.join(kinds)}). "
    + "; ".join(f"{name}: {', '.join(f'{share:.1f}' for share in shares)}" for name, shares in wrong.items()) + ".",
)

# %% [markdown]
# It works there, long before anyone asks, and hardly anywhere else. **Which exchange was it, at the top?**

# %%
my_guess = None  # a head and two words, such as ("1.1", "ball", "books")

# %% tags=["raises-exception"]
for (head, one, two), _, said in exchanges:
    if my_guess in [kind(way) for way in ((head, one, two), (head, two, one)) for kind in (tuple, list)]:
        print("yours:", said)
beside(my_guess, changed[0][0])

# %% [markdown]
# Perhaps head 1.3 notes *whose* place this is. Try it at *outside*: switch it off, then let it take its result from the other story, where *she's*
# outside. Where is Tom, and where does the last word look in head 2.4? What does 1.3 look at from *outside*, in either story?

# %% tags=["raises-exception"]
things = "Anna has a ball . Tom has two books ."
whose = "he's outside . she's upstairs", "she's outside . he's upstairs"
explore_story(yours, *(f"{things} {acts} . where is Tom ? he's" for acts in whose), head="1.3", word="outside")

# %% [markdown]
# Off, the answer stays. With the other story's result Tom is upstairs, and 2.4 looks away from *outside*. From there 1.3 looks at *she's*, hardly
# at *he's*. Does a boy's place need it?
#
# **Predict, then run.** What percentage stays right with 1.3 off at the girl's place alone? At the boy's?

# %%
my_guess = None  # two percentages, such as (50, 50)

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: head 1.3 off at one of the two places; what the heads of layer 1 pass on exchanged; what they look at from there
of_her = (ids[row, at] == encode(["she's"])[0])[:, None]  # the question is about her
her_place, his_place = torch.where(of_her[:, 0], own, other), torch.where(of_her[:, 0], other, own)


def off_there(place):
    """Your silence, for head 1.3 at one place of each story."""
    return lambda heads: torch.cat([silence(one[None], 2, [where]) for one, where in zip(heads, place.tolist())])


def exchanged(*heads):
    """What these heads pass on at the two places changes places."""
    def change(outputs):
        changed = outputs.clone()
        for head in heads:
            changed[row, head, own], changed[row, head, other] = outputs[row, head, other], outputs[row, head, own]
        return changed

    return change


off_at_hers, off_at_his = places_named(0, off_there(her_place)), places_named(0, off_there(his_place))
beside(my_guess, (off_at_hers[0], off_at_his[0]))
changes = {f"exchanged {name}": exchanged(*some) for name, some in {"1.3": [2], "1.1": [0], "1.1 to 1.4": [0, 1, 2, 3]}.items()}
for name, named in {"1.3 off at hers": off_at_hers, "1.3 off at his": off_at_his, **{name: places_named(0, change) for name, change in changes.items()}}.items():
    print(f"{name:>20}: right {{:5}}%, the other person's place {{:4}}%".format(*named))
she, he = (torch.isin(ids, torch.tensor(encode(words))) for words in (["she", "she's"], ["he", "he's"]))  # (b, n)
with torch.no_grad():
    looks = four_heads.attention_weights(ids)[0]  # (b, 4, n, n)
print("looks, from her place at she, she's   from his at he, he's")
for head in range(4):
    print(f"1.{head + 1} {(looks[row, head, her_place] * she).sum(dim=-1).mean():32.2f} {(looks[row, head, his_place] * he).sum(dim=-1).mean():22.2f}")

# %% [markdown]
# **Two steps.** In layer 1, at the girl's place, head 1.3 reads *she* and **marks the place**. The boy's place hardly needs one: it is the other. (As
# lesson 01's bat is an animal without head 1.1.) In layer 2 the answering word **fetches** its place, by 2.4, with help from 2.1. Exchange the
# marks, and most answers name the other person's place; exchange what 1.1 passes on, and hardly any do. (The mark is not all: even with all four heads
# exchanged, a third stay right.)
#
# What does the mark say, *Anna* or only *she*? Give both places the marks of a story about two other people.
#
# **Predict, then run.** What percentage of the answers stays right?

# %%
my_guess = None  # a percentage, such as 50

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: both places get what head 1.3 passes on in another story
people = [{person["name"] for person in story.notes.people} for story, _ in links]


def marks_of(fit, turned=False):
    """The marks of the next story whose people fit; turned: his mark at her place, hers at his."""
    later = [[*range(i + 1, len(links)), *range(i)] for i in range(len(links))]
    donor = torch.tensor([next(j for j in others if fit(people[i], people[j])) for i, others in enumerate(later)])
    hers, his = (his_place, her_place) if turned else (her_place, his_place)

    def change(outputs):
        changed = outputs.clone()
        changed[row, 2, her_place], changed[row, 2, his_place] = outputs[donor, 2, hers[donor]], outputs[donor, 2, his[donor]]
        return changed

    return change


of_strangers = places_named(0, marks_of(set.isdisjoint))
beside(my_guess, of_strangers[0])
for name, named in {
    "two other people": of_strangers,
    "the same two": places_named(0, marks_of(set.__eq__)),
    "two others, turned": places_named(0, marks_of(set.isdisjoint, turned=True)),
}.items():
    print(f"marks of {name:>18}: right {{:4}}%, the other person's place {{:4}}%".format(*named))

# %% [markdown]
# Strangers' marks serve nearly as well as those of the same two people; turned, they mislead. **The mark says *she*, not who.** That is enough: no story
# has two girls.
#
# How does a model come to this? Sixteen were trained on 20,000 stories, from random starts: eight with one head a layer, eight with two of half its size.
#
# **Predict, then run.** How many of the eight with one head answer more than 95%? With two?

# %%
my_guess = None  # two numbers from 0 to 8

# %% jupyter={"source_hidden": true}
# draws the figure: right answers to “where” in percent, 1,500 new stories, two people in each;
# from benchmarks/heads.py, about 50 s for each start
starts = {"one head": [33, 53, 100, 65, 26, 26, 100, 100], "two heads": [87, 50, 100, 100, 50, 100, 76, 100]}


def dots(starts):
    figure, axes = plt.subplots(figsize=(9, 2.1), layout="constrained")
    for row, (name, shares) in enumerate(starts.items()):
        stacked = [sorted(shares)[:i].count(share) for i, share in enumerate(sorted(shares))]
        axes.plot(sorted(shares), [-row - 0.16 * up for up in stacked], "o", ms=9, alpha=0.8, color=("#b5541c", "#1f6f8b")[row])
    axes.axvline(25, color="0.4", ls=":")
    axes.text(25.7, 0.33, "guessing one of four places", fontsize=9, color="0.35")
    axes.set(xlim=(0, 103), ylim=(-1.8, 0.6), yticks=[0, -1], yticklabels=list(starts), xlabel="right answers to “where”, in percent; a dot for each start")
    return figure


beside(my_guess, tuple(sum(share > 95 for share in shares) for shares in starts.values()))
show(chart(dots, starts), "Two rows of eight dots. " + "; ".join(f"{name}: {sorted(shares)} percent" for name, shares in starts.items()) + ".")
for name, shares in starts.items():
    print(f"{name:>9}: mean {sum(shares) / 8:.0f}%, above 95% in {sum(share > 95 for share in shares)} of 8 starts")
all_shares, ahead = sum(starts.values(), []), sum(starts["two heads"])
deals = [sum(eight) >= ahead for eight in itertools.combinations(all_shares, 8)]
print(f"the sixteen results dealt out at random: two heads are as far ahead in {sum(deals) / len(deals):.0%} of the deals")

# %% [markdown]
# Three starts with one head reach 100%: one head *can*. Two heads do better on average, but chance alone gives such a lead one time in ten. Train
# your own.
#
# **Predict, then run.** Which does it learn first, to mark or to fetch? Or only one?

# %%
my_guess = None  # "marking", "fetching", "both at once" or "only …"
my_start, my_heads = 8, 2  # others are other starts; 0 to 7 gave the dots, but a rerun may differ

# %% seconds=60 jupyter={"source_hidden": true} tags=["raises-exception", "nbval-ignore-output"]
# demonstration: trains one start, about a minute; interrupt the kernel to stop
def learning(steps, named):
    figure, axes = plt.subplots(figsize=(9, 3.4), layout="constrained")
    for shares, label, colour in zip(zip(*named), ("the right place", "the other person's place"), ("#1f6f8b", "#b5541c")):
        axes.plot(steps, shares, marker="o", ms=3, color=colour, label=label)
    axes.axhline(25, color="0.4", ls=":", label="guessing one of four places")
    axes.set(xlim=(0, 2500), ylim=(-2, 103), xlabel="step, of 2,500", ylabel="answers, in percent", title=f"What the answer to “where” names: start {my_start}, {my_heads} head{'s' * (my_heads > 1)}")
    axes.legend(loc="center right")
    return figure


torch.manual_seed(my_start)
mine = with_your_layers(new_model(my_heads))
draw = show_live("Percent of answers that name the right place, and the other person's, against the step. The last ones are printed below.")
to_learn, steps, named = pairs(stories(20_000, seed=1)), [], []


def look(step):
    steps.append(step)
    named.append(places_named(model=mine))
    draw(chart(learning, steps, named))


try:
    for step, _ in enumerate(train(mine, *to_learn, steps=2500, seed=my_start)):
        if step % 100 == 0:
            look(step)
except KeyboardInterrupt:
    print("stopped")
look(step + 1)
mine.eval()
moments = {
    "one of the story's two places": [step for step, (right, others) in zip(steps, named) if right + others > 75],
    "the right one": [step for step, (right, _) in zip(steps, named) if right > 75],
}
beside(my_guess, "; ".join(f"{what}: " + (f"after {reached[0]:,} steps" if reached else f"not in {steps[-1]:,} steps") for what, reached in moments.items()))
for name, change in {"as it is": lambda heads: heads, "exchanged in layer 1": exchanged(*range(my_heads))}.items():
    print(f"{name:>20}: right {{:4}}%, the other person's place {{:4}}%".format(*places_named(0, change, mine)))

# %% [markdown]
# Ours learned to fetch first. Until step 500 it guessed among four places. From 600 it named one of the story's two, at first as often the
# wrong one as the right: a fetch without marks. By 1,200 it marked; at the end 94% were right, on another processor all. Start 11 never marked.

# %% [markdown] grade_id="question_heads_written"
# ### In your own words: `heads_written` (2 points, a person reads it)
#
# A friend says: "Why several heads? Take one head twice as wide." Answer in three to five sentences. One head applies one row of weights to all of its
# numbers: give a case with **the same kind of vector twice** in which that loses something, and say how two heads keep it.
#
# <!-- BEGIN MARK SCHEME -->
# **1 point** for a case in which one mixture loses something: a word needs two vectors of the same kind, and which is which, or both in full. The word
# before and the one before that, two people, the things of two people, the two neighbours of a word. Half a point for two vectors of different kinds,
# such as a person's thing and her place: where these lie in different numbers of the values (in different directions), one mixture keeps both, as part 1
# shows. Half a point where no loss is named.
#
# **1 point** for how two heads keep it: they have two rows of weights, so each passes on one of the two vectors, next to each other. Half a point for
# "heads look at different things" without weights, rows or mixtures. Half a point where nothing says that width does not help: however wide, all numbers
# are mixed with the same row.
#
# No points off for saying that the heads cost no more parameters, that `out_proj` mixes what they found, that more heads are narrower, or that one head
# may still succeed where few vectors can occur (some starts in part 6 did). Half a point off for "one head cannot see two words" (it can, it mixes them), and
# for "one head cannot tell the order of two words" (with unequal weights it may). That heads are faster is no answer.
# <!-- END MARK SCHEME -->

# %% [markdown] grade_id="heads_written"
# <!-- BEGIN SOLUTION --> A word may need the word before it and the one before that: two vectors of the same kind, in the same numbers. One head has one
# row of weights, so it passes on one mixture of the two, and half of what was in them is lost, whatever the shares. A wider head mixes more numbers, but
# with the same row. Two heads have two rows: one passes on the word before, the other the one before that, each in full and side by side. In part 2 the
# error fell from about 0.35 to 0. <!-- END SOLUTION -->

# %% [markdown]
# ## Summary
#
# - One head applies **one row of weights** to all its numbers. From two vectors in the same numbers it passes on one mixture; two heads pass on both.
# - A head is a **block of rows** of `nn.Linear.weight` and a block of features: cut with `view`, then **transpose**. The scale is the root of **one
#   head's** size.
# - `out_proj` is one matrix for each head, by which it **writes to the stream**.
# - One head marks, another fetches. You found them by switching heads off **at some words only**.
#
# **Next.** The attention is yours, the rest of the model is not. What else does a model need before it can write? In lesson 07 you build and train all
# of it.

# %%
# demonstration: this lesson on a card; write a line of your own between the quotes
from attention_course import remember

remember("")

# %% [markdown]
# ## Further reading
#
# - Vaswani et al., *Attention Is All You Need*, 2017, section 3.2.2.
# - Elhage et al., *A Mathematical Framework for Transformer Circuits*, 2021: heads that write to the residual stream, and circuits of two layers.
# - Michel, Levy and Neubig, *Are Sixteen Heads Really Better than One?*, 2019: heads taken out of trained models.
# - The six tokens, their vectors, seed 123 and the wrapper: Sebastian Raschka, *Build a Large Language Model (From Scratch)*, 2024, chapter 3.
#
# *Using Colab or another hosted service?* Get `attention_notebooks-….whl` where you got the lesson, put it beside the notebook, run
# `%pip install attention_notebooks-*.whl` in a new cell above the others, and restart the kernel.
