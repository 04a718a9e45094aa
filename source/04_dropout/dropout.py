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
# # Dropout: a head that does not rely on one token
#
# Since lesson 03 the weights are right: the future is hidden, and each row adds up to 1. But a softmax may give one
# key nearly everything, and a head that is trained often learns to. Then it relies on one token. In this lesson you
# take weights away at random while the head is trained, so that it cannot. That is **dropout**.
#
# **You will be able to**
# - drop entries at random, independently of each other, and say how many zeros to expect;
# - say what is scaled, by how much, and when, and why rows no longer add up to 1;
# - switch dropout off when the model is used, and name two ways that look right and are not.
#
# **It builds on** lesson 03: causal weights. `nn.Module` is from lesson 01.
#
# | part | minutes |
# |---|---|
# | 1 A head that relies on one token | 10 |
# | 2 A mask of coin tosses | 15 |
# | 3 What is scaled, and when | 20 |
# | 4 `train()` and `eval()` | 15 |
# | 5 Dropping attention weights | 10 |
# | 6 The mean of many copies: a challenge | 10 |
# | 7 What goes wrong in practice, summary | 5 |
#
# *Run cells, fill in exercises, ask `hint`, `why` and `progress()`* as before. Float64 in gives float64 out, gradients pass, and
# arguments are left as they were.
#
# *Opened alone, in a hosted notebook service?* Get the file `attention_notebooks-….whl` from where you got this lesson, put
# it beside the notebook, and run `%pip install attention_notebooks-*.whl` in a new cell above the others.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
import os

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
future = torch.ones(6, 6, device=device).triu(diagonal=1) == 1  # (6, 6), True = hidden


def causal_weights(scores, d_k):
    """From lesson 03: mask, scale, softmax."""
    n = scores.shape[-1]
    hidden = torch.ones(n, n, device=scores.device).triu(diagonal=1) == 1
    return torch.softmax(scores.masked_fill(hidden, float("-inf")) / math.sqrt(d_k), dim=-1)


def sentence_weights():
    """The causal weights (6, 6) of the sentence, with the layers of lesson 01 from seed 789."""
    torch.manual_seed(789)
    W_query, W_key = (nn.Linear(3, 2, bias=False).to(device) for _ in range(2))
    with torch.no_grad():
        return causal_weights(W_query(inputs) @ W_key(inputs).T, 2)


# %% [markdown]
# ## 1 A head that relies on one token
#
# Here is a head as small as can be: one query, six keys, and six scores that it learns. The value of each word is a
# guess at the answer. *Your* guesses well: its error has a standard deviation of 0.1, so that about two of three
# guesses are off by less than 0.1. The other five have 0.5. What the head gives out is the sum of weight times value,
# and it learns scores that make the mean of the squared error as small as possible.
#
# The head has a place for dropout. `nn.Identity()` there means none: it hands on what it gets.

# %% nbgrader={"grade": false, "grade_id": "head", "locked": true, "schema_version": 3, "solution": false, "task": false}
class Head(nn.Module):
    """Learns six scores; gives the sum of weight times value."""

    def __init__(self, dropout):
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(6))
        self.dropout = dropout

    def weights(self):
        return torch.softmax(self.scores, dim=-1)  # (6,)

    def forward(self, values):  # (sentences, 6)
        weights = self.weights().expand(values.shape)  # (sentences, 6)
        return (self.dropout(weights) * values).sum(dim=-1)  # (sentences,)


def guesses(sentences, seed):
    """Answers (sentences,), and six guesses at each: (sentences, 6)."""
    torch.manual_seed(seed)
    answers = torch.randn(sentences)
    errors = torch.tensor([0.1, 0.5, 0.5, 0.5, 0.5, 0.5]) * torch.randn(sentences, 6)
    return answers, answers.unsqueeze(1) + errors


def trained(head):
    """The head after 300 steps on 1000 sentences."""
    answers, values = guesses(1000, seed=123)
    optimizer = torch.optim.Adam(head.parameters(), lr=0.05)
    for _ in range(300):
        loss = (head(values) - answers).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return head


# %% [markdown]
# **Predict, then run.** At first all six weights are 0.17. How much does *Your* have after training?

# %%
my_guess = None  # a number from 0 to 1

# %%
plain = trained(Head(nn.Identity()))
beside(my_guess, round(plain.weights()[0].item(), 2))


# %%
def error_of(head, missing):
    """Mean squared error on new sentences, also when the value of Your is 0 in all of them."""
    answers, values = guesses(2000, seed=789)
    if missing:
        values[:, 0] = 0
    with torch.no_grad():
        return (head.eval()(values) - answers).square().mean().item()


answers, values = guesses(2000, seed=789)
print(f"error with all six words:            {error_of(plain, missing=False):.2f}")
print(f"error when Your is missing:          {error_of(plain, missing=True):.2f}")
print(f"error of the mean of the other five: {(values[:, 1:].mean(dim=1) - answers).square().mean().item():.2f}")

# %% jupyter={"source_hidden": true}
# draws the figure
def weight_bars(tokens, found):
    figure, grid = plt.subplots(
        1, len(found), figsize=(0.5 + 4.4 * len(found), 3.2), layout="constrained", sharey=True, squeeze=False
    )
    for axes, (title, (weights, errors)) in zip(grid[0], found.items()):
        bars = axes.bar(tokens, weights, color=["#b5541c"] + ["#1f6f8b"] * 5)
        axes.bar_label(bars, [f"{w:.2f}" for w in weights], padding=2)
        axes.set_title(f"{title}\nerror {errors[0]:.2f}, without Your {errors[1]:.2f}")
        axes.set(ylim=(0, 1), ylabel="weight")
    return figure


def learned(head):
    """A head's weights, and its errors with all words and without Your."""
    return head.weights().tolist(), [error_of(head, missing) for missing in (False, True)]


show(
    chart(weight_bars, tokens, {"What the head has learned": learned(plain)}),
    "Bar chart of six weights. Your has 0.83, each of the other five words 0.03 or 0.04. The error is 0.01, and 0.66 "
    "when Your is missing.",
)

# %% [markdown]
# The head is right to prefer *Your*. But it has bet nearly everything on one word. The other five together are not bad:
# each has a mean squared error of 0.5² = 0.25, but their errors are independent and partly cancel, and the mean of
# five has a fifth of that, 0.05. The head has not learned to listen to them. When *Your* is missing, or means
# something else than in training, the head is lost: always answering 0 would give an error of 1, and its own is 0.66.
#
# The remedy: in training, let any weight be missing at any time. Then no weight can be relied on.
#
# ## 2 A mask of coin tosses
#
# For every weight a coin is tossed. With probability p the weight is dropped, that is, set to 0; otherwise it is
# kept. The coins are independent of each other, and every call tosses them anew.
#
# ### Exercise: `keep_mask` (2 points)
#
# ```
# shape, a tuple such as (6, 6)      mask (6, 6): 0 drop, with probability p      1 keep
# ```
#
# `torch.rand(shape, generator=generator)` draws numbers spread evenly from 0 to 1; 0 may come up, 1 never. What share
# of them lies below p? The mask is float32. p = 0 keeps all and p = 1 drops all, without exception. For p outside 0
# to 1 raise a `ValueError` that names p and its value.
#
# All random numbers come from `generator`, as in lesson 01. `None` means PyTorch's own, and `torch.rand` knows that.
# The mask lies where the generator lies (on a GPU add `device=generator.device`), and with `None` on the CPU.

# %% nbgrader={"grade": false, "grade_id": "keep_mask", "locked": false, "schema_version": 3, "solution": true, "task": false}
def keep_mask(shape, p, generator=None):
    """Float32 of this shape, each entry 0 with probability p, independently, otherwise 1."""
    ### BEGIN SOLUTION
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    place = None if generator is None else generator.device
    return (torch.rand(shape, generator=generator, device=place) >= p).float()
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_keep_mask", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
# The rubric of `keep_mask`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("keep_mask")
def _(r):
    small, large = r.probability(0.1, 0.3), r.probability(0.7, 0.9)
    r.check("float32, nothing but 0 and 1, of the shape asked for", "zeros_and_ones", keep_mask, ((5,), 0.5), ((2, 3, 4), small))
    r.check("a share p of the entries is 0", "share_of_zeros", keep_mask, ((90, 50), small), ((90, 50), large), ((90, 50), 0.5))
    r.idea.drops_independently("each entry is 0 with probability p, by itself, anew at each call", keep_mask, (6, 5, 10, 4), 0.45)
    r.each("p = 0 keeps all, p = 1 drops all", keep_mask, ((2, 3), 0), ((20, 30), 0.0), ((2, 3), 1), ((20, 30), 1.0))
    r.follows_generator("draws from its generator alone, from torch's own for None", keep_mask, (6, 7), 0.5)
    r.refuses("raises ValueError when p is outside 0 to 1", keep_mask, ((3, 4), -small), ((3, 4), 1 + small), ((3, 4), 2))

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
generator = torch.Generator().manual_seed(123)
mask = keep_mask((6, 6), 0.5, generator)
show(
    heatmap(mask, tokens, tokens, title="A mask of yours, p = 0.5: 1 keep, 0 drop", limits=(0, 1)),
    "Heatmap of a random mask of zeros and ones, about half of each, without any pattern.",
)

# %% [markdown]
# PyTorch has all this in one module, `nn.Dropout`. Handed 36 ones, it shows its mask. (It has 2 where you have 1: see
# part 3.)
#
# **Predict, then run.** With p = 0.5, how many of the 36 are 0?

# %%
my_guess = None  # a number from 0 to 36

# %% tags=["nbval-ignore-output"]
torch.manual_seed(123)
ones = nn.Dropout(0.5)(torch.ones(6, 6))
table(ones, rows=tokens, columns=tokens)
beside(my_guess, int((ones == 0).sum()))

# %% [markdown]
# On the computer that made these pages there are 15, not 18. With another version of PyTorch, another processor or a
# GPU the same seed may give another number; part 7 says why. p is the probability for each entry, not the share of
# zeros: 36 coins rarely show heads exactly 18 times. How rarely? Count the zeros in 5000 masks of yours.

# %% tags=["raises-exception"]
counts = [int((keep_mask((6, 6), 0.5, generator) == 0).sum()) for _ in range(5000)]
exactly = {zeros: math.comb(36, zeros) / 2**36 for zeros in range(37)}
print(f"probability of exactly 18: {exactly[18]:.2f}, of exactly 15: {exactly[15]:.2f}")

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
def zeros_chart(heights, exactly, above):
    figure, axes = plt.subplots(figsize=(6, 3.3))
    bars = axes.bar(range(37), heights, color="#1f6f8b", label="5000 masks of yours")
    bars[above].set_color("#b5541c")
    axes.plot(list(exactly), list(exactly.values()), "k.", label="probability")
    axes.annotate(f"{above}: nn.Dropout above", (above, heights[above]), (5, 0.1), arrowprops={"arrowstyle": "->"})
    axes.set(xlabel="zeros in a mask of 36 entries, p = 0.5", ylabel="share of the masks", xlim=(4, 32),
             title="Each entry independently: the number of zeros varies")
    axes.legend()
    return figure


heights = [counts.count(zeros) / len(counts) for zeros in range(37)]
show(
    chart(zeros_chart, heights, exactly, int((ones == 0).sum())),
    "Histogram of the number of zeros in 5000 masks. It peaks at 18 with a share of 0.13 and reaches from about 8 to "
    "28. The dots of the probabilities lie on the bars. The bar of the mask of nn.Dropout above is marked.",
)

# %% [markdown]
# ## 3 What is scaled, and when
#
# Six weights of one row add up to 1. Drop about half of them, and about half of the sum is left. A context vector in
# training would be about half as long as in use, when nothing is dropped. The layers after it would be trained on one
# size and used on another. So what is kept is made larger: divided by 1 - p.
#
# ```
# dropped:   0              with probability p
# kept:      x / (1 - p)    with probability 1 - p
#
# mean:      p · 0  +  (1 - p) · x / (1 - p)  =  x
# ```
#
# With p = 0.5 what is kept is doubled: hence the 2 above. This is right on average only. A single row may add up to
# more than 1 or to less. **Nobody divides by the sum afterwards.** When the model is used, nothing is dropped and
# nothing is scaled.
#
# | | in training | in use |
# |---|---|---|
# | inverted dropout, the usual way | drop, divide what is kept by 1 - p | nothing |
# | the older way | drop | multiply everything by 1 - p |
#
# Both agree on average. Inverted dropout leaves the model alone when it is used. Never mix the two.
#
# **Predict, then run.** With p = 0.9, what is a kept weight of 0.2 afterwards?

# %%
my_guess = None  # a number

# %%
beside(my_guess, round(0.2 / (1 - 0.9), 4))

# %% [markdown]
# ### Exercise: `inverted_dropout` (3 points)
#
# ```
# x, any shape, p, training      result, same shape: 0 or x / (1 - p) when training, x when not
# ```
#
# Your `keep_mask` helps; `mask.to(x)` gives it the type and the device of x. When p = 1 everything is dropped, and
# the result is zeros: mind 0 / 0. When not training, x itself or a copy will do. A p outside 0 to 1 is refused in
# training and in use, where it would have no effect: a mistake should show at once.

# %% nbgrader={"grade": false, "grade_id": "inverted_dropout", "locked": false, "schema_version": 3, "solution": true, "task": false}
def inverted_dropout(x, p, training, generator=None):
    """Entries dropped with probability p, kept ones divided by 1 - p; x when not training."""
    ### BEGIN SOLUTION
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    if p == 1:
        return torch.zeros_like(x)
    return x * keep_mask(x.shape, p, generator).to(x) / (1 - p)
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_inverted_dropout", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
# The rubric of `inverted_dropout`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("inverted_dropout")
def _(r):
    x, p = r.nonzero(3, 4), r.probability(0.1, 0.4)
    r.idea.drops_in_training("in training a share p is 0, the rest x / (1 - p); else x as it is", inverted_dropout, r.nonzero(40, 50), p)
    r.drops("float64 in, float64 out, another p", inverted_dropout, r.nonzero(30, 40, dtype=torch.float64).T, 0.9 - p, True)
    r.drops_independently("each entry is dropped by itself, anew at each call", inverted_dropout, r.nonzero(6, 5, 10, 4), 0.45, True)
    r.each("equals x when not training", inverted_dropout, (x, p, False), (x, 1, False), (r.nonzero(2, 3, 4), 0.0, False))
    r.each("p = 0 changes nothing, p = 1 gives zeros, not nan", inverted_dropout, (x, 0, True), (r.nonzero(5), 0.0, True), (x, 1, True), (r.nonzero(9, 9), 1.0, True))
    r.drop_gradient("the gradient is what each entry was multiplied by", inverted_dropout, r.nonzero(15, 16), 0.4, True)
    r.follows_generator("draws from its generator alone, from torch's own for None", inverted_dropout, r.nonzero(6, 7), 0.5, True)
    r.refuses("raises ValueError when p is outside 0 to 1, in either mode", inverted_dropout, (x, -p, True), (x, 1 + p, True), (x, -p, False), (x, 1 + p, False))
    r.unchanged("leaves its arguments as they were")

# %% [markdown]
# Now the weights of the sentence. First as lesson 03 left them, then after `nn.Dropout(0.5)`.

# %%
weights = sentence_weights().cpu()  # (6, 6)
table(weights, rows=tokens, columns=tokens)

# %% tags=["nbval-ignore-output"]
torch.manual_seed(123)
dropped_weights = nn.Dropout(0.5)(weights)
table(dropped_weights, rows=tokens, columns=tokens)
print("sums of the rows:", [round(s, 2) for s in dropped_weights.sum(dim=-1).tolist()])

# %% [markdown]
# In our draw (yours may differ, see part 7) *Your* kept its one weight, 1, which is now 2. *journey* lost both of its
# weights and gets a context vector of zeros. None of the six sums is 1. The next step draws anew.
#
# Move the slider. Hatched cells are the future, and framed ones are dropped. Every p starts from the same seed, so
# usually more and more weights go, and the rest grow.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
def dropping(p):
    after = inverted_dropout(weights, p, True, torch.Generator().manual_seed(11))
    lost = ((after == 0) & (weights > 0)).nonzero().tolist()
    figure = heatmap(
        after, tokens, tokens, title=f"Weights after dropout with p = {p:g}", hidden=future.cpu(), limits=(0, 2)
    ).figure()
    for i, j in lost:
        figure.axes[0].add_patch(plt.Rectangle((j + 0.08, i + 0.08), 0.84, 0.84, fill=False, edgecolor="white", lw=2))
    sums = ", ".join(f"{s:.2f}" for s in after.sum(dim=-1).tolist())
    return figure, f"{len(lost)} of 21 weights dropped, the others times {1 / (1 - p):.2f}. Sums of the rows: {sums}."


about = "Heatmap of the weights after dropout; dropped ones are framed, the future is hatched."
explore(dropping, alt=about, p=[0.1, 0.2, 0.3, 0.5, 0.7, 0.9])

# %% [markdown]
# ## 4 `train()` and `eval()`
#
# Who tells the function that training is over? Every `nn.Module` keeps a switch, `self.training`. It is True at
# first. `module.eval()` sets it to False, `module.train()` to True, and in all modules inside as well. So
# `model.eval()` reaches every layer of a model. All a layer has to do is look.
#
# ### Exercise: `Dropout` (2 points)
#
# ```python
# layer = Dropout(0.1)      # refuses p outside 0 to 1, on construction
# layer(x)                  # in training: dropped anew at every call
# layer.eval()
# layer(x)                  # x
# ```
#
# Random numbers come from PyTorch's own generator. There is nothing to learn or save: no parameters, nothing in
# `state_dict()`.

# %% nbgrader={"grade": false, "grade_id": "Dropout", "locked": false, "schema_version": 3, "solution": true, "task": false}
class Dropout(nn.Module):
    """Inverted dropout that obeys train() and eval()."""

    def __init__(self, p):
        super().__init__()
        ### BEGIN SOLUTION
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p
        ### END SOLUTION

    def forward(self, x):
        ### BEGIN SOLUTION
        return inverted_dropout(x, self.p, self.training)
        ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_Dropout", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
# The rubric of `Dropout`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("Dropout")
def _(r):
    x, p = r.nonzero(3, 4), r.probability(0.1, 0.4)
    r.idea.drops_in_training("after train() a share p is 0, the rest x / (1 - p), anew at each call; after eval() x", r.switched(Dropout), r.nonzero(40, 50), p)
    r.drops("float64 in, float64 out, another p", r.switched(Dropout), r.nonzero(30, 40, dtype=torch.float64), 0.9 - p, True)
    r.drops_independently("each entry is dropped by itself", r.switched(Dropout), r.nonzero(6, 5, 10, 4), 0.45, True)
    r.each("x as it is after eval()", r.switched(Dropout), (x, p, False), (x, 1, False))
    r.each("p = 0 changes nothing, p = 1 gives zeros", r.switched(Dropout), (r.nonzero(5), 0, True), (x, 1, True))
    r.drop_gradient("the gradient is what each entry was multiplied by", r.switched(Dropout), r.nonzero(15, 16), 0.4, True)
    r.layer(Dropout, p=0.5).saves_nothing("nothing in parameters() or state_dict()", x)
    r.refuses("raises ValueError when p is outside 0 to 1, on construction", Dropout, (-p,), (1 + p,), (2,))
    r.unchanged("leaves its input as it was")

# %% [markdown]
# **Predict, then run.** `torch.no_grad()` is what one writes around code that only uses a model. Does a `Dropout` in
# training mode drop under `no_grad()`? Does it drop after `eval()`, without `no_grad()`?

# %%
my_guess = None  # two words: ("yes" or "no", "yes" or "no")

# %% tags=["raises-exception"]
layer, many = Dropout(0.5), torch.ones(1000)
with torch.no_grad():
    under_no_grad = layer(many)
layer.eval()
after_eval = layer(many)
beside(my_guess, tuple("yes" if (y == 0).any() else "no" for y in (under_no_grad, after_eval)))

# %% [markdown]
# **`no_grad()` does not switch dropout off; `eval()` does.** One saves gradients, the other changes what the layers
# compute. To use a model you want both.
#
# ## 5 Dropping attention weights
#
# In a head, dropout comes after the softmax: on the weights, before they meet the values. On scores it would be
# something else: a score of 0 is an ordinary score, and after -inf the softmax makes the row add up to 1 again.
#
# `inverted_dropout` does it as it is: every entry of every query, head and sentence has a coin of its own, and the rows are
# **not** renormalised.

# %% [markdown]
# Two sentences with two heads each, all weights 1/6, and your function. Each has zeros of its own.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
even = torch.full((2, 2, 6, 6), 1 / 6)
four = inverted_dropout(even, 0.5, True, torch.Generator().manual_seed(5))
maps = [
    heatmap(four[sentence, head], None, None, title=f"sentence {sentence}, head {head}", limits=(0, 1 / 3), bar=False)
    for sentence in range(2)
    for head in range(2)
]
show(
    panels(*maps, size=(7.2, 7), in_a_row=2),
    "Four heatmaps of dropped weights, two sentences with two heads each. About half of the entries are 0, the others "
    "0.33. No row or column is treated as a whole, and no two of the four are the same.",
)

# %% [markdown]
# Now back to the head of part 1. It gets your `Dropout(0.5)` and is trained again on the same sentences.

# %% tags=["raises-exception"]
torch.manual_seed(123)
dropping_head = trained(Head(Dropout(0.5)))
print(f"error with all six words:   {error_of(dropping_head, missing=False):.2f}")
print(f"error when Your is missing: {error_of(dropping_head, missing=True):.2f}")

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
found = {"trained without dropout": learned(plain), "trained with your Dropout(0.5)": learned(dropping_head)}
show(
    chart(weight_bars, tokens, found),
    "Two bar charts of six weights. Left, without dropout: Your has 0.83, the others 0.03 or 0.04. Right, with "
    "dropout: Your has about 0.25, the others about 0.15 each.",
)

# %% [markdown]
# The weights are spread, *Your* still leads, and when it is missing the error is a fraction of what it was. The
# price: with all six words the error is larger than before. p says how much of one you pay for the other. 0.5 is a
# lot. The first GPT was trained with 0.1, and large models that see every text only once often use none.
#
# ## 6 How much it shakes: a challenge
#
# Dropout is noise. How large is it? Take one context vector, the sum of w · v over the keys. Each weight is kept with
# probability 1 - p and then divided by 1 - p. So the factor of each term has mean 1 and variance p / (1 - p), and the
# coins are independent: the variances of the terms add up.
#
# ### Exercise: `spread_after_dropout` (4 points)
#
# ```
# weights (n, m), values (m, d), 0 ≤ p < 1      standard deviation of each entry of the context vectors (n, d)
# ```
#
# Return the exact standard deviation, sqrt(p / (1 - p) · Σ_j w_ij² v_jd²), without drawing anything.

# %% nbgrader={"grade": false, "grade_id": "spread_after_dropout", "locked": false, "schema_version": 3, "solution": true, "task": false}
def spread_after_dropout(weights, values, p):
    """Standard deviation of weights after dropout times values: (n, m), (m, d) -> (n, d)."""
    ### BEGIN SOLUTION
    return (p / (1 - p) * weights.square() @ values.square()).sqrt()
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_spread_after_dropout", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
# The rubric of `spread_after_dropout`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("spread_after_dropout")
def _(r):
    weights, values, p = torch.softmax(r.normal(4, 6), dim=-1), r.normal(6, 3), r.probability(0.2, 0.8)
    r.each("the standard deviation of each entry of the context vectors", spread_after_dropout, (torch.tensor([[0.2, 0.8]]), torch.tensor([[1.0], [2.0]]), 0.5), (weights, values, p))
    r.call("as many queries as keys as numbers in a value", spread_after_dropout, torch.softmax(r.normal(4, 4), dim=-1), r.normal(4, 4), 0.1)
    r.call("weights that do not sum to 1", spread_after_dropout, r.normal(3, 5), r.normal(5, 2), p)
    r.call("zeros when p is 0", spread_after_dropout, weights, values, 0)
    r.conventions(spread_after_dropout, r.normal(2, 3), r.normal(3, 4), p)

# %% [markdown]
# How far does such a mean scatter? Take one entry x. After dropout it is 0 with probability p and x / (1 - p)
# otherwise. Its variance is the mean of its square, minus the square of its mean x:
#
# ```
# mean of the square     p · 0  +  (1 - p) · x² / (1 - p)²  =  x² / (1 - p)
# variance               x² / (1 - p)  -  x²                =  x² · p / (1 - p)
# mean of n copies       n variances add up, divided by n²  =  x² · p / (1 - p) / n
# ```
#
# The copies are independent, so their variances add, as those of the products did in lesson 01. With x = 0.33 and
# p = 0.5 the variance is x² / n, and the standard deviation 0.33 divided by the square root of n. That is the band
# below. Each point is a mean of yours.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
generator = torch.Generator().manual_seed(123)
one_row, some_values = torch.softmax(torch.randn(1, 6, generator=generator), dim=-1), torch.randn(6, 1, generator=generator)
rates = [0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8]
drawn = [
    torch.stack([inverted_dropout(one_row, p, True, generator) @ some_values for _ in range(2000)]).std().item() for p in rates
]
derived = [spread_after_dropout(one_row, some_values, p).item() for p in rates]


def spread_chart(rates, drawn, derived):
    figure, axes = plt.subplots(figsize=(6.5, 3.6))
    axes.plot(rates, derived, color="0.4", label="yours, derived")
    axes.plot(rates, drawn, "o", color="#1f6f8b", label="2,000 draws")
    axes.set_xlabel("p")
    axes.set_ylabel("standard deviation of the context")
    axes.legend()
    return figure


show(
    chart(spread_chart, rates, drawn, derived),
    "A chart of the standard deviation of one entry of a context vector against p, from 0.05 to 0.8. The points, measured on "
    "2,000 draws each, lie on the derived curve, which rises faster and faster.",
)

# %% [markdown]
# With one copy, as in a step of training, the weight is 0 or twice itself: never right. It takes four times as many
# copies to halve the error. Training takes thousands of steps and follows the mean over them.
#
# ## 7 What goes wrong in practice
#
# **The functional form does not look.** `nn.functional.dropout(x, p)` is a function: no switch, and `training=True`
# unless told otherwise. A module has to hand on its own: `training=self.training`. PyTorch's attention function has
# no switch either, not even as an argument: it drops whenever `dropout_p` is above 0.

# %%
class Forgets(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(x, 0.5)


class Tells(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(x, 0.5, training=self.training)


class Attends(nn.Module):
    def forward(self, x):
        return nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.5)


ones = torch.ones(2, 50, 8)
for layer in (Forgets(), Attends(), Tells()):
    layer.eval()
    print(f"{type(layer).__name__:>7} after eval(), the same answer twice:", torch.equal(layer(ones), layer(ones)))

# %% [markdown]
# The remedy for the second is `dropout_p=self.p if self.training else 0.0`.
#
# **`eval()` is forgotten** before a model is tested. Then its answers change from call to call, and are worse than
# they need to be. Here is a head trained with dropout, in both modes.

# %%
torch.manual_seed(123)
head = trained(Head(nn.Dropout(0.5)))
answers, values = guesses(2000, seed=789)
for mode in (True, False):
    head.train(mode)
    error = (head(values) - answers).square().mean().item()
    print("train():" if mode else "eval(): ", "error above 0.1" if error > 0.1 else "error below 0.1")

# %% [markdown]
# **p is taken for the probability to keep.** In some older libraries it was. Here p = 0.1 drops a tenth.
#
# **Masks are compared.** The same seed, p = 0.5, and two ways to toss 36 coins, on the same machine:

# %% tags=["nbval-ignore-output"]
torch.manual_seed(123)
by_rand = torch.rand(6, 6) >= 0.5
torch.manual_seed(123)
by_dropout = nn.Dropout(0.5)(torch.ones(6, 6)) != 0
print("zeros:", int((~by_rand).sum()), "and", int((~by_dropout).sum()))
print("the same mask:", torch.equal(by_rand, by_dropout))

# %% [markdown]
# A seed fixes a stream of random numbers. How coins are made from the stream is up to each function, each processor
# and each kind of device. So masks differ between a CPU and a GPU, and that is no error. Nobody can say which mask is
# right; one can say whether it has the right share of zeros, and whether its entries are independent. The rubrics of
# this lesson do that. To repeat an experiment on another device, draw the mask on the CPU and move it.
#
# ## Summary
#
# - **Dropout** sets each entry to 0 with probability p, independently, anew at every call. The number of zeros
#   varies: with p = 0.5 and 36 entries we met 15, and exactly 18 comes up in one mask of eight.
# - What is kept is divided by 1 - p, **in training only**. On average nothing changes; a single row no longer adds
#   up to 1.
# - In use nothing is dropped and nothing is scaled. **`eval()`** says so, `no_grad()` does not, and functional
#   dropout has to be told.
# - A head trained with it spreads its weights. That costs a little when all is well, and saves much when a token is
#   missing.
# - Random results are judged by their properties, never by their draws.
#
# **A loose end.** Layers, mask, softmax, dropout: the parts lie about as functions, and each has been handed one
# sentence or scores made by hand. Lesson 05 puts them into one class that takes a batch of sentences. On the way
# `keys.T` breaks.
#
# ## Further reading
#
# - Srivastava et al., *Dropout: A Simple Way to Prevent Neural Networks from Overfitting*, 2014, section 4: the
#   model, with the scaling in use. There p is the probability to keep.
# - Vaswani et al., *Attention Is All You Need*, 2017, section 5.4: where a transformer uses dropout.
# - Radford et al., *Improving Language Understanding by Generative Pre-Training*, 2018, section 4.1: dropout of 0.1 on
#   residuals, embeddings and attention.
