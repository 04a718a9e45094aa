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


# %% nbgrader={"grade": true, "grade_id": "test_keep_mask", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
from autograde.notebook import rubric


@rubric("keep_mask")
def _rubric(r):
    from builtins import enumerate, float, range, tuple

    first, second = r.integer(1, 10**6), r.integer(10**6 + 1, 10**7)
    small, middle, large = r.integer(10, 30) / 100, r.integer(40, 60) / 100, r.integer(70, 90) / 100

    def generator(seed):
        return torch.Generator().manual_seed(seed)

    def not_0_or_1(*shapes):
        masks = [keep_mask(shape, 0.5, generator(first)) for shape in shapes]
        return [mask * (1 - mask) for mask in masks]

    def zeros(p, shape, seed):
        return [keep_mask(shape, q, generator(seed)) == 0 for q in p]

    def draws(p, shape, calls, drawn):
        return torch.stack([keep_mask(shape, p, drawn) == 0 for _ in range(calls)])

    def sum_of_kept(numbers, seed, drawn):
        torch.manual_seed(seed)
        return float((keep_mask(tuple(numbers.shape), 0.5, drawn).to(numbers) * numbers).sum())

    def one_state(numbers, seed):
        used, fresh = generator(seed), generator(seed)
        return [sum_of_kept(numbers, i, drawn) for i, drawn in enumerate((used, fresh, used))]

    def no_generator(numbers, seeds):
        return [sum_of_kept(numbers, seed, None) for seed in seeds]

    def leaves_state(seed):
        state = torch.get_rng_state()
        keep_mask((5, 7), 0.5, generator(seed))
        return torch.equal(torch.get_rng_state(), state)

    r.call("float32, nothing but 0 and 1, of the shape asked for", not_0_or_1, (7,), (5, 8), (2, 3, 4, 6))
    r.check("the share of zeros is p", "drops_share", zeros, p=[small, middle, large], shape=(200, 150), seed=first)
    r.check("entries are dropped independently, anew at each call", "drops_independently",
            lambda p, shape, calls, seed: draws(p, shape, calls, generator(seed)),
            p=middle, shape=(6, 5, 10, 4), calls=60, seed=second)
    r.check("an entry alone is dropped as well", "drops_share",
            lambda p, shape, calls, seed: [draws(q, shape, calls, generator(seed)) for q in p],
            p=[small, large], shape=(1, 1), calls=250, seed=second)
    r.check("without a generator as well", "drops_independently",
            lambda p, shape, calls: draws(p, shape, calls, None), p=middle, shape=(9, 8), calls=200)
    r.call("p = 0 keeps all", lambda *ps: [keep_mask((30, 40), p, generator(first)) for p in ps], 0, 0.0)
    r.call("p = 1 drops all", lambda *ps: [keep_mask((30, 40), p, generator(first)) for p in ps], 1, 1.0)
    r.check("same generator state, same mask", "follows_generator", one_state, r.normal(8, 9), first)
    r.check("generator=None draws from torch's own", "follows_generator", no_generator,
            r.normal(8, 9), [first, first, second])
    r.call("leaves PyTorch's own random state alone", leaves_state, first)
    r.refuses("p outside 0 to 1", lambda p: keep_mask((3, 4), p), (-r.integer(1, 99) / 100,),
              (1 + r.integer(1, 99) / 100,), (middle,), (0,), (1,), (2,))

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


# %% nbgrader={"grade": true, "grade_id": "test_inverted_dropout", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
from autograde.notebook import rubric


@rubric("inverted_dropout")
def _rubric(r):
    from builtins import enumerate, float, range

    first, second = r.integer(1, 10**6), r.integer(10**6 + 1, 10**7)
    small, middle, large = r.integer(10, 30) / 100, r.integer(40, 60) / 100, r.integer(70, 90) / 100

    def generator(seed):
        return torch.Generator(device=device).manual_seed(seed)

    def no_zeros(*shape, **kind):
        x = r.normal(*shape, **kind)
        return torch.where(x < 0, x - 0.5, x + 0.5)

    def dropped(x, p, seed):
        return inverted_dropout(x, p, True, generator(seed))

    def zeros(x, p, seed):
        return [dropped(x.clone(), q, seed) == 0 for q in p]

    def draws(x, p, calls, drawn):
        return torch.stack([inverted_dropout(x.clone(), p, True, drawn) == 0 for _ in range(calls)])

    def with_gradient(x, p, direction, seed):
        leaf = x.clone().requires_grad_()
        y = dropped(1 * leaf, p, seed)
        if not y.requires_grad:
            return [y, None]
        (y * direction).sum().backward()
        return [y, leaf.grad]

    def in_use(x, ps):
        return [inverted_dropout(x.clone(), p, False, generator(first)) for p in ps]

    def in_training(x, ps):
        return [inverted_dropout(x.clone(), p, True, generator(first)) for p in ps]

    def sum_of_kept(x, seed, drawn):
        torch.manual_seed(seed)
        return float(inverted_dropout(x.clone(), 0.5, True, drawn).sum())

    def one_state(x, seed):
        used, fresh = generator(seed), generator(seed)
        return [sum_of_kept(x, i, drawn) for i, drawn in enumerate((used, fresh, used))]

    def no_generator(x, seeds):
        return [sum_of_kept(x, seed, None) for seed in seeds]

    def leaves_state(x, seed):
        torch.manual_seed(seed)
        dropped(x, 0.5, seed)
        after = torch.rand(5, device=device)
        torch.manual_seed(seed)
        return torch.equal(torch.rand(5, device=device), after)

    r.check("a vector: entries are 0 or x / (1 - p)", "keeps_scaled", dropped, x=no_zeros(204), p=small, seed=first)
    r.check("float64, stored by columns, another p", "keeps_scaled", dropped,
            x=no_zeros(23, 31, dtype=torch.float64).T, p=large, seed=second)
    r.check("the share of zeros is p", "drops_share", zeros, x=no_zeros(90, 50), p=[small, middle, large], seed=first)
    r.check("entries are dropped independently, anew at each call", "drops_independently",
            lambda x, p, calls, seed: draws(x, p, calls, generator(seed)),
            x=no_zeros(6, 5, 10, 4), p=middle, calls=60, seed=second)
    r.check("without a generator as well", "drops_independently",
            lambda x, p, calls: draws(x, p, calls, None), x=no_zeros(9, 8), p=middle, calls=200)
    r.call("x itself when not training", in_use, r.normal(5, 7), [small, large, 0, 1])
    r.call("p = 0 drops nothing", in_training, r.normal(12, 17), [0, 0.0])
    r.call("p = 1 gives zeros", in_training, r.normal(3, 8), [1, 1.0])
    r.check("gradients: what each entry was multiplied by", "passes_gradients", with_gradient,
            x=no_zeros(15, 16), p=middle, direction=r.normal(15, 16), seed=first)
    r.gradient("gradients pass when not training", lambda x: inverted_dropout(x, middle, False), r.normal(6, 7))
    r.check("same generator state, same zeros", "follows_generator", one_state, no_zeros(8, 9), first)
    r.check("generator=None draws from torch's own", "follows_generator", no_generator,
            no_zeros(8, 9), [first, first, second])
    r.call("leaves PyTorch's own random state alone", leaves_state, r.normal(5, 7), first)
    r.refuses("p outside 0 to 1, in either mode", lambda p, training: inverted_dropout(inputs, p, training),
              (-r.integer(1, 99) / 100, True), (1 + r.integer(1, 99) / 100, True), (-0.1, False), (1.5, False),
              (middle, True), (1, True), (0, True), (small, False))
    r.arguments("leaves its arguments as they were")

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


# %% nbgrader={"grade": true, "grade_id": "test_Dropout", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
from autograde.notebook import rubric


@rubric("Dropout")
def _rubric(r):
    from builtins import len, list, range

    small, middle, large = r.integer(10, 30) / 100, r.integer(40, 60) / 100, r.integer(70, 90) / 100

    def no_zeros(*shape, **kind):
        x = r.normal(*shape, **kind)
        return torch.where(x < 0, x - 0.5, x + 0.5)

    def zeros(x, p):
        return [Dropout(q)(x.clone()) == 0 for q in p]

    def draws(x, p, calls):
        layers = Dropout(p), Dropout(p)
        return torch.stack([layers[i % 2](x.clone()) == 0 for i in range(calls)])

    def after_eval(x, ps):
        outputs = []
        for p in ps:
            layer = Dropout(p)
            layer.eval()
            outputs.append(layer(x.clone()))
            model = nn.Sequential(Dropout(p))
            model.eval()
            outputs.append(model(x.clone()))
        return outputs

    def beside_another(x, p):
        layer, other = Dropout(p[0]), Dropout(p[0])
        other.eval()
        return [layer(x.clone()) == 0]

    def after_train(x, p):
        layer = Dropout(p[0])
        layer.eval()
        layer.train()
        model = nn.Sequential(Dropout(p[1]))
        model.eval()
        model.train()
        return [layer(x.clone()) == 0, model(x.clone()) == 0]

    def without_gradients(x, p):
        with torch.no_grad():
            return zeros(x, p)

    def with_gradient(x, p, direction):
        leaf = x.clone().requires_grad_()
        y = Dropout(p)(1 * leaf)
        if not y.requires_grad:
            return [y, None]
        (y * direction).sum().backward()
        return [y, leaf.grad]

    def learned_and_saved(x):
        layer = Dropout(0.5)
        layer(x)
        return [len(list(layer.parameters())), len(layer.state_dict())]

    r.check("in training entries of a vector are 0 or x / (1 - p)", "keeps_scaled",
            lambda x, p: Dropout(p)(x), x=no_zeros(204), p=small)
    r.check("float64, stored by columns, another p", "keeps_scaled",
            lambda x, p: Dropout(p)(x), x=no_zeros(23, 31, dtype=torch.float64).T, p=large)
    r.check("entries are dropped independently, anew at each call", "drops_independently", draws,
            x=no_zeros(6, 5, 10, 4), p=middle, calls=60)
    r.call("after eval(), its own or a model's, x as it is", after_eval, r.normal(5, 7), [middle, 1])
    r.check("after train(), its own or a model's, it drops again", "drops_share", after_train,
            x=no_zeros(70, 40), p=[small, middle])
    r.check("another layer in eval() makes no difference", "drops_share", beside_another, x=no_zeros(70, 40), p=[middle])
    r.check("in training no_grad() makes no difference", "drops_share", without_gradients,
            x=no_zeros(70, 40), p=[small, large])
    r.call("p = 0 drops nothing", lambda x, ps: [Dropout(p)(x.clone()) for p in ps], r.normal(12, 17), [0, 0.0])
    r.call("p = 1 gives zeros", lambda x, ps: [Dropout(p)(x.clone()) for p in ps], r.normal(3, 8), [1, 1.0])
    r.check("gradients: what each entry was multiplied by", "passes_gradients", with_gradient,
            x=no_zeros(15, 16), p=middle, direction=r.normal(15, 16))
    r.call("nothing to learn, nothing to save", learned_and_saved, r.normal(4, 6))
    r.refuses("p outside 0 to 1, on construction", Dropout, (-r.integer(1, 99) / 100,), (1 + r.integer(1, 99) / 100,),
              (middle,), (0,), (1,), (2,))
    r.arguments("leaves its argument as it was")

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
# ### Exercise: `attention_dropout` (2 points)
#
# ```
# weights (..., n, n), p from 0 to 1, training      result (..., n, n)
# ```
#
# Every entry of every query, head and sentence has a coin of its own. Kept weights are divided by 1 - p, and the rows
# are **not** renormalised. p is valid here: no need to refuse.

# %% nbgrader={"grade": false, "grade_id": "attention_dropout", "locked": false, "schema_version": 3, "solution": true, "task": false}
def attention_dropout(weights, p, training, generator=None):
    """Dropout on attention weights, entry by entry: (..., n, n) -> (..., n, n)."""
    ### BEGIN SOLUTION
    return inverted_dropout(weights, p, training, generator)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_attention_dropout", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
from autograde.notebook import rubric


@rubric("attention_dropout")
def _rubric(r):
    from builtins import enumerate, float, range

    first, second = r.integer(1, 10**6), r.integer(10**6 + 1, 10**7)
    small, middle, large = r.integer(10, 30) / 100, r.integer(40, 60) / 100, r.integer(70, 90) / 100

    def generator(seed):
        return torch.Generator(device=device).manual_seed(seed)

    def softmax(*shape, **kind):
        return torch.softmax(r.normal(*shape, **kind), dim=-1)

    def causal(n, **kind):
        scores = r.normal(2, 3, n, n, **kind)
        hidden = torch.ones(n, n, device=device).triu(diagonal=1) == 1
        return torch.softmax(scores.masked_fill(hidden, -float("inf")), dim=-1)

    def dropped(x, p, seed):
        return attention_dropout(x, p, True, generator(seed))

    def zeros(x, p, seed):
        return [dropped(x.clone(), q, seed) == 0 for q in p]

    def draws(x, p, calls, drawn):
        return torch.stack([attention_dropout(x.clone(), p, True, drawn) == 0 for _ in range(calls)])

    def with_gradient(x, p, direction, seed):
        leaf = x.clone().requires_grad_()
        y = dropped(1 * leaf, p, seed)
        if not y.requires_grad:
            return [y, None]
        (y * direction).sum().backward()
        return [y, leaf.grad]

    def in_use(x, ps):
        return [attention_dropout(x.clone(), p, False, generator(first)) for p in ps]

    def in_training(x, ps):
        return [attention_dropout(x.clone(), p, True, generator(first)) for p in ps]

    # each entry times a number of its own: rows that were divided by their sums would all add up to 1
    def sum_of_kept(x, numbers, seed, drawn):
        torch.manual_seed(seed)
        return float((attention_dropout(x.clone(), 0.5, True, drawn) * numbers).sum())

    def one_state(x, numbers, seed):
        used, fresh = generator(seed), generator(seed)
        return [sum_of_kept(x, numbers, i, drawn) for i, drawn in enumerate((used, fresh, used))]

    def no_generator(x, numbers, seeds):
        return [sum_of_kept(x, numbers, seed, None) for seed in seeds]

    def leaves_state(x, seed):
        torch.manual_seed(seed)
        dropped(x, 0.5, seed)
        after = torch.rand(5, device=device)
        torch.manual_seed(seed)
        return torch.equal(torch.rand(5, device=device), after)

    r.check("one sentence, stored by columns: 0 or weight / (1 - p), not renormalised", "keeps_scaled", dropped,
            x=softmax(21, 21).T, p=large, seed=first)
    r.check("a batch of heads, causal, float64", "keeps_scaled", dropped,
            x=causal(11, dtype=torch.float64), p=small, seed=second)
    r.check("the share of zeros is p", "drops_share", zeros, x=softmax(4, 60, 60), p=[small, middle, large], seed=first)
    r.check("each entry independently, in every sentence and head", "drops_independently",
            lambda x, p, calls: draws(x, p, calls, None), x=softmax(5, 4, 8, 8), p=middle, calls=60)
    r.call("the weights themselves when not training", in_use, softmax(2, 6, 6), [middle, 0, 1])
    r.call("p = 0 and p = 1", in_training, softmax(2, 9, 9), [0, 1])
    r.check("gradients: what each entry was multiplied by", "passes_gradients", with_gradient,
            x=softmax(3, 9, 9), p=middle, direction=r.normal(3, 9, 9), seed=first)
    r.check("same generator state, same zeros", "follows_generator", one_state, softmax(9, 9), r.normal(9, 9), first)
    r.check("generator=None draws from torch's own", "follows_generator", no_generator,
            softmax(9, 9), r.normal(9, 9), [first, first, second])
    r.call("leaves PyTorch's own random state alone", leaves_state, softmax(6, 6), first)
    r.arguments("leaves its arguments as they were")

# %% [markdown]
# Two sentences with two heads each, all weights 1/6, and your function. Each has zeros of its own.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
even = torch.full((2, 2, 6, 6), 1 / 6)
four = attention_dropout(even, 0.5, True, torch.Generator().manual_seed(5))
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
# ## 6 The mean of many copies: a challenge
#
# "Right on average" can be measured: drop the same x many times, and take the mean of the copies.
#
# ### Exercise: `mean_after_dropout` (2 points)
#
# ```
# x, any shape, 0 ≤ p < 1, n_samples      mean of n_samples copies after dropout, same shape as x
# ```
#
# Each copy has a mask of its own. The more copies, the nearer the mean comes to x; it scatters about x.

# %% nbgrader={"grade": false, "grade_id": "mean_after_dropout", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mean_after_dropout(x, p, n_samples, generator=None):
    """Mean of n_samples copies of x, each after dropout with a mask of its own: same shape as x."""
    ### BEGIN SOLUTION
    copies = x.expand(n_samples, *x.shape)  # (n_samples, ...)
    return inverted_dropout(copies, p, True, generator).mean(dim=0)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_mean_after_dropout", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
from autograde.notebook import rubric


@rubric("mean_after_dropout")
def _rubric(r):
    from builtins import enumerate, float, range

    first, second = r.integer(1, 10**6), r.integer(10**6 + 1, 10**7)
    small, middle = r.integer(20, 35) / 100, r.integer(40, 60) / 100

    def generator(seed):
        return torch.Generator(device=device).manual_seed(seed)

    def no_zeros(*shape, **kind):
        x = r.normal(*shape, **kind)
        return torch.where(x < 0, x - 0.5, x + 0.5)

    def mean(x, p, n_samples, seed):
        return mean_after_dropout(x, p, n_samples, generator(seed))

    def means(x, p, n_samples, runs, drawn):
        return torch.stack([mean_after_dropout(x.clone(), p, n_samples, drawn) for _ in range(runs)])

    def with_gradient(x, p, n_samples, direction, seed):
        leaf = x.clone().requires_grad_()
        y = mean(1 * leaf, p, n_samples, seed)
        if not y.requires_grad:
            return [y, None]
        (y * direction).sum().backward()
        return [y, leaf.grad]

    def total(x, seed, drawn):
        torch.manual_seed(seed)
        return float(mean_after_dropout(x.clone(), 0.5, 3, drawn).sum())

    def one_state(x, seed):
        used, fresh = generator(seed), generator(seed)
        return [total(x, i, drawn) for i, drawn in enumerate((used, fresh, used))]

    def no_generator(x, seeds):
        return [total(x, seed, None) for seed in seeds]

    def leaves_state(x, seed):
        torch.manual_seed(seed)
        mean(x, 0.5, 3, seed)
        after = torch.rand(5, device=device)
        torch.manual_seed(seed)
        return torch.equal(torch.rand(5, device=device), after)

    r.check("few copies: scatters about x as it should", "scatters_as_a_mean",
            lambda x, p, n_samples, runs, seed: means(x, p, n_samples, runs, generator(seed)),
            x=no_zeros(3, 5, 6), p=small, n_samples=r.integer(3, 6), runs=60, seed=second)
    r.check("many copies: scatters less", "scatters_as_a_mean",
            lambda x, p, n_samples, runs: means(x, p, n_samples, runs, None),
            x=no_zeros(13, 17), p=middle, n_samples=r.integer(200, 300), runs=9)
    r.check("one copy alone, float64, stored by columns: 0 or x / (1 - p)", "keeps_scaled",
            lambda x, p, seed: mean(x, p, 1, seed), x=no_zeros(16, 23, dtype=torch.float64).T, p=middle, seed=first)
    r.call("p = 0 gives x", mean, r.normal(5, 7), 0, 4, first)
    r.check("lets gradients through", "passes_gradients", with_gradient,
            x=no_zeros(15, 16), p=middle, n_samples=2, direction=r.normal(15, 16), seed=first)
    r.check("same generator state, same mean", "follows_generator", one_state, no_zeros(8, 9), first)
    r.check("generator=None draws from torch's own", "follows_generator", no_generator,
            no_zeros(8, 9), [first, first, second])
    r.call("leaves PyTorch's own random state alone", leaves_state, r.normal(5, 7), first)
    r.arguments("leaves its argument as it was")

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
sizes = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
one_weight = torch.full((40,), 0.33)  # 40 means at once
found = {n: mean_after_dropout(one_weight, 0.5, n, generator) for n in sizes}
spread = [0.33 / math.sqrt(n) for n in sizes]


def means_chart(spread, means):
    figure, axes = plt.subplots(figsize=(6.5, 3.6))
    sizes = list(means)
    axes.fill_between(sizes, [0.33 - s for s in spread], [0.33 + s for s in spread], color="0.85",
                      label="0.33 and one standard deviation")
    axes.axhline(0.33, color="0.4", linestyle="--")
    for n, values in means.items():
        axes.plot([n] * 40, values.tolist(), ".", color="#1f6f8b", alpha=0.5, label="40 means of yours" if n == 1 else None)
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(n) for n in sizes])
    axes.set(xlabel="copies", ylabel="mean after dropout", title="Right on average: the mean comes near x, slowly")
    axes.legend()
    return figure


show(
    chart(means_chart, spread, found),
    "Means of dropped copies of 0.33 against the number of copies. With one copy they are 0 or 0.66. They close in on "
    "0.33 with more copies, within a band that halves when the copies are four times as many. At 1024 copies nearly "
    "all lie between 0.31 and 0.35.",
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
