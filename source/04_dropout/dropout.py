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
# # Dropout: noise with a price
#
# Train the course's model on fifty stories instead of thousands, and it learns them by heart. **Dropout** is a well-known remedy: while the model
# learns, some of the numbers inside it are set to 0 at random. Here they are attention weights. In this lesson you build it, work out how much noise
# it makes, and show that this noise acts in training like a price on large weights. Then your layer goes into the model, and you see where it helps,
# and where it does not.
#
# **You will be able to**
# - recognise overfitting from two curves;
# - drop entries at random, and say what is scaled, by how much, and when;
# - switch dropout off when the model is used, and name two ways that look right and are not;
# - derive the noise of dropout, and predict the weights of a head trained with it.
#
# **It builds on** lesson 03: causal weights. `nn.Module` is from lesson 01.
#
# | part | minutes, estimated |
# |---|---|
# | 1 A model that learns by heart | 8 |
# | 2 A mask of coin tosses | 15 |
# | 3 What is scaled, and when | 15 |
# | 4 `train()` and `eval()` | 10 |
# | 5 How much noise | 15 |
# | 6 The price of a large weight | 10 |
# | 7 Does it help? | 7 |
# | 8 What goes wrong in practice, summary | 5 |
# | total | 85 |
#
# *Run cells, solve exercises, and ask for `hint`, `why` and `progress()`* as before. A function that takes
# a tensor gives float64 for float64, lets gradients pass, and leaves its arguments as they were.
#
# *Using Colab or another hosted service?* Get the file `attention_notebooks-….whl` from where you
# got the lesson, put it beside the notebook, and run `%pip install attention_notebooks-*.whl` in a new cell above
# the others.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
import os

import matplotlib.pyplot as plt
import torch
from torch import nn

from autograde.notebook import beside, case, chart, explore, heatmap, hint, panels, progress, rubric, show, table, why
from autograde.notebook.course_model import answers, model_card, new_model
from autograde.notebook.language import floor, stories
from autograde.notebook.training import loss_of, pairs, train

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
# ## 1 A model that learns by heart
#
# The course's model was trained on 20,000 stories. Give an untrained one 50, and let it see each about 200 times.
# Every 25 steps we take the loss twice: on its own stories, and on 300 new ones of the same language.

# %%
few = stories(50, seed=7)
new = [story for story in stories(300, seed=99) if str(story) not in {str(told) for told in few}]
print("its own:", few[1])
print("new:    ", new[1])

# %% jupyter={"source_hidden": true}
# training, with both losses every 25 steps
def learn(model, steps=300):
    """Train on the few stories; return the losses [own, new] every 25 steps."""
    own, other = pairs(few), pairs(new)
    losses = []
    for step, _ in enumerate(train(model, *own, steps), start=1):
        if step % 25 == 0:
            model.eval()
            with torch.no_grad():
                losses.append([loss_of(model, *own).item(), loss_of(model, *other).item()])
            model.train()
    model.eval()
    return losses


def curves(runs, lowest):
    """Two losses against steps, one panel for each run."""
    figure, grid = plt.subplots(1, len(runs), figsize=(1 + 4.6 * len(runs), 3.6), layout="constrained", sharey=True, squeeze=False)
    for axes, (title, losses) in zip(grid[0], runs.items()):
        steps = [25 * (i + 1) for i in range(len(losses))]
        for losses_of, colour, name in ((1, "#b5541c", "new stories"), (0, "#1f6f8b", "its own 50")):
            axes.plot(steps, [both[losses_of] for both in losses], color=colour, label=name)
        axes.axhline(lowest, color="0.5", ls=":", label="lowest possible on new stories")
        axes.set(title=title, xlabel="step", ylabel="loss", ylim=(0, 2.2))
    grid[0][0].legend()
    return figure


# %% [markdown]
# **Predict, then run.** The loss on its own stories keeps falling. What does the loss on new stories do: fall with
# it, stay level, or rise in the end?

# %%
my_guess = None  # "falls", "stays" or "rises"

# %% tags=["nbval-ignore-output"]
# demonstration: trains for about ten seconds
torch.manual_seed(0)
by_heart = new_model()
plain_losses = learn(by_heart)
lowest_new = min(other for _, other in plain_losses)
beside(my_guess, "rises" if plain_losses[-1][1] > 1.05 * lowest_new else "falls or stays")

# %% tags=["nbval-ignore-output"]
# demonstration: what was measured
print(f"loss on its own stories: {plain_losses[-1][0]:.2f}")
print(f"loss on new stories:     {plain_losses[-1][1]:.2f}, at its best {lowest_new:.2f}")
print(f"right answers: {answers(by_heart, few)['all']:.0%} on its own stories, {answers(by_heart, new)['all']:.0%} on new ones")

# %% jupyter={"source_hidden": true} tags=["nbval-ignore-output"]
# demonstration: draws the figure
show(
    chart(curves, {"trained on 50 stories": plain_losses}, floor()),
    "Two losses against training steps. On its own 50 stories the loss falls to about 0.2, below the dotted line at 0.41. On new "
    "stories it falls to about 1.1 by step 100 and then rises to about 1.6.",
)

# %% [markdown]
# The lowest loss that is possible on new stories is called the **entropy** of the language: 0.41, the dotted line. On its own stories the model ends
# below it. No model can predict new stories that well; this one does not predict, it remembers. It answers every question on its own stories correctly,
# but only one in seven on new ones. This is **overfitting**: the model fits its examples and not what they are examples of. A change to the model or to
# its training that works against overfitting is called **regularisation**.
#
# One remedy is more data: the course's own model, trained on 20,000 stories, has a loss of 0.417 on 1,500 stories drawn afresh, where 0.414 is the
# lowest (by chance a quarter of these were also in its training set; `model_card()` shows how that was measured). Another is to stop at the lowest
# point of the upper curve; that is called early stopping. A third is dropout. It makes each example look a little different each time. The hope is
# that the model then relies less on any single weight.
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
# to 1 raise a `ValueError`; a good message names p and its value.
#
# All random numbers come from `generator`, as in lesson 01. `None` means PyTorch's own, and `torch.rand` knows that.
# With a generator, the mask is on its device (on a GPU, `torch.rand` needs `device=generator.device`). With `None` the
# mask is on the CPU.

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
@rubric("keep_mask")  # the contract as a checklist; open this cell to read it
def _(r):
    r.check("float32, nothing but 0 and 1, of the shape asked for", "zeros_and_ones", keep_mask, ((5,), 0.5), ((2, 3, 4), r.probability(0.1, 0.3)))
    r.check("about a share p of the entries is 0", "share_of_zeros", keep_mask, ((90, 50), r.probability(0.1, 0.3)), ((90, 50), r.probability(0.7, 0.9)), ((90, 50), 0.5), ((150, 90), 0.003))
    r.idea.drops_independently("each entry is 0 with probability p, by itself, anew at each call", keep_mask, (4, 3, 6, 4), 0.45)
    zero_comes_up = torch.Generator().manual_seed(9232)  # torch.rand((60, 60)) has a 0 then
    r.each("p = 0 keeps all, p = 1 drops all", keep_mask, ((2, 3), 0), ((60, 60), 0.0, zero_comes_up), ((2, 3), 1), ((20, 30), 1.0))
    r.follows_generator("draws from its generator alone, from torch's own for None", keep_mask, (6, 7), 0.5)
    r.refuses("raises ValueError when p is outside 0 to 1", keep_mask, ((3, 4), -r.probability(0.1, 0.3)), ((3, 4), 1 + r.probability(0.1, 0.3)), ((3, 4), 2))

# %% tags=["raises-exception"]
generator = torch.Generator().manual_seed(123)
table(keep_mask((6, 6), 0.5, generator), rows=tokens, columns=tokens)

# %% [markdown]
# PyTorch has all this in one module, `nn.Dropout`. Given 36 ones, it shows its mask. (It has 2 where you have 1: see
# part 3.)
#
# **Predict, then run.** With p = 0.5, how many of the 36 are 0?

# %%
my_guess = None  # a number from 0 to 36

# %% tags=["nbval-ignore-output"]
torch.manual_seed(123)
ones = nn.Dropout(0.5)(torch.ones(6, 6))
beside(my_guess, int((ones == 0).sum()))

# %% tags=["nbval-ignore-output"]
table(ones, rows=tokens, columns=tokens)

# %% [markdown]
# On the computer that made these pages there are 15, not 18. With another version of PyTorch, another processor or a
# GPU the same seed may give another number; part 8 says why. p is the probability for each entry, not the share of
# zeros. How often do 36 coins show heads exactly 18 times? Count the zeros in 5000 masks of yours.

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
    "28. The dots of the probabilities lie close to the tops of the bars. The bar of the mask of nn.Dropout above is marked.",
)

# %% [markdown]
# ## 3 What is scaled, and when
#
# The six weights of a row add up to 1. Drop each with probability 1/2, and on average half of the sum is left. Whatever comes after the weights would
# be trained with half of the sum on average, and used with the whole sum. So what is kept is made larger: it is divided by 1 - p.
#
# ```
# dropped:   0              with probability p
# kept:      x / (1 - p)    with probability 1 - p
#
# mean:      p · 0  +  (1 - p) · x / (1 - p)  =  x
# ```
#
# With p = 0.5 what is kept is doubled: hence the 2 above. This is right on average only. A single row may add up to
# more than 1 or to less, and **nothing divides by the sum afterwards**. In use, that is in **inference**, nothing is
# dropped and nothing is scaled.
#
# | | in training | in use |
# |---|---|---|
# | inverted dropout, the usual way | drop, divide what is kept by 1 - p | nothing |
# | the older way | drop | multiply everything by 1 - p |
#
# In both, the mean of the layer's output in training is its output in use. Inverted dropout leaves the model alone when it is used. Never mix the two.
#
# **Predict, then run.** With p = 0.9, what is a kept weight of 0.2 afterwards?

# %%
my_guess = None  # a number

# %%
beside(my_guess, round(nn.Dropout(0.9)(torch.full((1000,), 0.2)).max().item(), 4))

# %% [markdown]
# ### Exercise: `inverted_dropout` (3 points)
#
# ```
# x, any shape, p, training      result, same shape: 0 or x / (1 - p) when training, x when not
# ```
#
# Your `keep_mask` helps, and all random numbers come from `generator` as there; `mask.to(x)` gives the mask the type and the device of x. When p = 1
# everything is dropped, and the result is zeros: mind 0 / 0. When not training, x itself or a copy will do. A p outside 0 to 1 raises a `ValueError`
# in training and in use, where it would have no effect: a mistake should show at once.

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
@rubric("inverted_dropout")  # the contract as a checklist; open this cell to read it
def _(r):
    x, p = r.nonzero(3, 4), r.probability(0.1, 0.4)
    r.idea.drops_in_training("in training each entry drops with probability p, the rest is x / (1 - p); else x as it is", inverted_dropout, r.nonzero(40, 50), p)
    r.drops("float64 in, float64 out, another p", inverted_dropout, r.nonzero(30, 40, dtype=torch.float64).T, 0.9 - p, True)
    r.drops_independently("each entry is dropped by itself, anew at each call", inverted_dropout, r.nonzero(4, 3, 6, 4), 0.45, True)
    r.each("x as it is when not training, or when p = 0; zeros, not nan, when p = 1", inverted_dropout, (x, p, False), (x, 1, False), (x, 0, True), (x, 1, True), (x.double(), 1, True), (torch.ones(20_000), 1.0, True))
    r.drop_gradient("the gradient is what each entry was multiplied by", inverted_dropout, r.nonzero(15, 16), 0.4, True)
    r.follows_generator("draws from its generator alone, from torch's own for None", inverted_dropout, r.nonzero(6, 7), 0.3, True)
    r.refuses("raises ValueError when p is outside 0 to 1, in either mode", inverted_dropout, (x, -p, True), (x, 1 + p, True), (x, -p, False), (x, 1 + p, False))
    r.unchanged("leaves its arguments as they were")

# %% [markdown]
# In a head dropout comes after the softmax: on the weights, before they meet the values. (On scores it would be
# something else: a score of 0 is an ordinary score.) Here are the weights of the sentence as lesson 03 left them,
# then after `nn.Dropout(0.5)`.

# %%
weights = sentence_weights().cpu()  # (6, 6)
table(weights, rows=tokens, columns=tokens)

# %% tags=["nbval-ignore-output"]
torch.manual_seed(123)
dropped_weights = nn.Dropout(0.5)(weights)
table(dropped_weights, rows=tokens, columns=tokens)
print("sums of the rows:", [round(s, 2) for s in dropped_weights.sum(dim=-1).tolist()])

# %% [markdown]
# In our draw (yours may differ) *Your* kept its one weight, 1, which is now 2. *journey* lost both of its
# weights and gets a context vector of zeros. None of the six sums is 1. The next step draws anew.
#
# Move the slider. On the left are the weights as they were, on the right what your function makes of them. Hatched
# cells are the future, framed ones are dropped.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
def framed(maps, lost):
    figure = maps.figure()
    for i, j in lost:
        figure.axes[1].add_patch(plt.Rectangle((j + 0.08, i + 0.08), 0.84, 0.84, fill=False, edgecolor="white", lw=2))
    return figure


def dropping(p):
    after = inverted_dropout(weights, p, True, torch.Generator().manual_seed(23))
    lost = ((after == 0) & (weights > 0)).nonzero().tolist()
    maps = panels(
        heatmap(weights, tokens, tokens, title="before", hidden=future.cpu(), limits=(0, 2), bar=False),
        heatmap(after, tokens, tokens, title=f"after dropout with p = {p:g}", hidden=future.cpu(), limits=(0, 2)),
        size=(10.5, 4.4),
    )
    sums = ", ".join(f"{s:.2f}" for s in after.sum(dim=-1).tolist())
    kept = after > 0
    times = (after[kept] / weights[kept]).mean().item() if kept.any() else 1 / (1 - p)
    return chart(framed, maps, lost), f"{len(lost)} of 21 weights dropped, the others times {times:.2f}. Sums of the rows: {sums}."


about = "Heatmaps of the weights before and after dropout; dropped ones are framed, the future is hatched."
explore(dropping, alt=about, p=[0.5, 0.1, 0.2, 0.3, 0.7, 0.9])

# %% [markdown]
# ## 4 `train()` and `eval()`
#
# Who tells the function that training is over? Every `nn.Module` keeps a switch, `self.training`. It is True at
# first. `module.eval()` sets it to False, `module.train()` to True. Both do so in all modules inside as well. So
# `model.eval()` reaches every layer of a model. All a layer has to do is look.
#
# ### Exercise: `Dropout` (2 points)
#
# ```python
# layer = Dropout(0.1)      # ValueError for p outside 0 to 1, on construction
# layer(x)                  # in training: dropped anew at every call
# layer.eval()
# layer(x)                  # x
# ```
#
# A model that holds the layer switches it with its own `train()` and `eval()`; `torch.no_grad()` does not. There is nothing to learn or save: no
# parameters, nothing in `state_dict()`.

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
@rubric("Dropout")  # the contract as a checklist; open this cell to read it
def _(r):
    x, p = r.nonzero(3, 4), r.probability(0.1, 0.4)
    r.idea.drops_in_training("after train() each entry drops with probability p, the rest is x / (1 - p), anew at each call; after eval() x", r.switched(Dropout), r.nonzero(40, 50), p)
    r.drops("float64 in, float64 out, another p", r.switched(Dropout), r.nonzero(30, 40, dtype=torch.float64), 0.9 - p, True)
    r.each("x as it is after eval(), or when p = 0; zeros when p = 1", r.switched(Dropout), (x, p, False), (x, 1, False), (x, 0, True), (x, 1, True), (x.double(), 1, True), (torch.ones(20_000), 1, True))
    r.drops_independently("each entry is dropped by itself", r.switched(Dropout), r.nonzero(4, 3, 6, 4), 0.45, True)
    r.drop_gradient("the gradient is what each entry was multiplied by", r.switched(Dropout), r.nonzero(15, 16), 0.4, True)
    r.layer(Dropout, p=0.5).saves_nothing("nothing in parameters() or state_dict()", x)
    r.refuses("raises ValueError when p is outside 0 to 1, on construction", Dropout, (-p,), (1 + p,), (2,))
    r.unchanged("leaves its input as it was")

# %% [markdown]
# **Predict, then run.** `torch.no_grad()` is what you write around code that only uses a model. Does a `Dropout` in
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
# **`no_grad()` does not switch dropout off; `eval()` does.** `no_grad()` stops PyTorch from keeping what a backward
# pass would need, `eval()` changes what some layers compute, dropout among them. To use a model you want both.
#
# ## 5 How much noise
#
# One number of a context vector is a sum, w₁v₁ + w₂v₂ + …. Dropout multiplies each term by a factor of its own: 0
# with probability p, 1 / (1 - p) otherwise. What does that do to the sum?
#
# ```
# mean of a factor               p · 0  +  (1 - p) · 1 / (1 - p)   =  1
# mean of its square             p · 0  +  (1 - p) · 1 / (1 - p)²  =  1 / (1 - p)
# its variance                   1 / (1 - p)  -  1²                =  p / (1 - p)
# variance of one term           p / (1 - p) · w² v²
# variance of the sum            the coins are independent, so the variances of the terms add up
# ```
#
# So the mean of the sum is what it was, and its standard deviation is **sqrt( p / (1 - p) · Σ w² v² )**.
#
# **Predict, then run.** A query gives 1/n to each of n keys, all values are 1, and p = 0.5. With one key the sum is
# 0 or 2, and its standard deviation is 1. What is it with four keys, and with sixteen?

# %%
my_guess = None  # a pair of numbers

# %% tags=["raises-exception"]
def scatter(n):
    """The standard deviation of 20,000 sums of n weights of 1/n after dropout."""
    return inverted_dropout(torch.full((20_000, n), 1 / n), 0.5, True, torch.Generator().manual_seed(3)).sum(dim=-1).std().item()


beside(my_guess, (round(scatter(4), 1), round(scatter(16), 2)))

# %% [markdown]
# A query that spreads its weight gets little noise, one that relies on a single key gets much. Here p / (1 - p) and all values are 1, so the variance
# is the sum of the squared weights: 1, 1/4 and 1/16. The standard deviation is its root: 1, 1/2 and 1/4. Now in general:
#
# ### Exercise: `spread_after_dropout` (4 points)
#
# ```
# weights (n, m), values (m, d), 0 ≤ p < 1      standard deviation of each entry of the context vectors (n, d)
# ```
#
# Return the exact standard deviation of every entry of `weights @ values` after inverted dropout of the weights with
# probability p, without drawing anything. For p = 0 return zeros. The weights may be any numbers. One product of two matrices does all the sums.

# %% nbgrader={"grade": false, "grade_id": "spread_after_dropout", "locked": false, "schema_version": 3, "solution": true, "task": false}
def spread_after_dropout(weights, values, p):
    """Standard deviation of weights after dropout times values: (n, m), (m, d) -> (n, d)."""
    ### BEGIN SOLUTION
    return (p / (1 - p) * weights.square() @ values.square()).sqrt()
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_spread_after_dropout", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("spread_after_dropout")  # the contract as a checklist; open this cell to read it
def _(r):
    weights, values, p = torch.softmax(r.normal(4, 6), dim=-1), r.normal(6, 3), r.probability(0.2, 0.8)
    r.each("the standard deviation of each entry of the context vectors", spread_after_dropout, (torch.tensor([[0.25, 0.75]]), torch.tensor([[1.0], [2.0]]), 0.5), (torch.tensor([[1.0]]), torch.tensor([[-2.0, 3.0]]), 0.5), (weights, values, p))
    r.each("square matrices, and weights that do not add up to 1", spread_after_dropout, (torch.softmax(r.normal(4, 4), dim=-1), r.normal(4, 4), 0.1), (r.normal(3, 5), r.normal(5, 2), p))
    r.each("zeros when p is 0", spread_after_dropout, (weights, values, 0), (weights.double(), values.double(), 0))
    r.conventions(spread_after_dropout, r.normal(2, 3), r.normal(3, 4), p)

# %% [markdown]
# The figure compares your formula with draws. The lines are the formula. Each point is measured on 5,000 context vectors made with your
# `inverted_dropout`. All values are 1 or -1.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
generator = torch.Generator().manual_seed(123)
values = torch.tensor([[1.0], [-1.0], [1.0], [-1.0], [1.0], [-1.0]])  # (6, 1)
rates = [0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95]
sharp, even = torch.tensor([[0.95, 0.01, 0.01, 0.01, 0.01, 0.01]]), torch.full((1, 6), 1 / 6)


def drawn_spread(row, p):
    many_rows = row.expand(5_000, 6)
    return (inverted_dropout(many_rows, p, True, generator) @ values).std().item()


found = {
    name: [[drawn_spread(row, p) for p in rates], [spread_after_dropout(row, values, p).item() for p in rates]]
    for name, row in {"0.95 on one key": sharp, "1/6 on each key": even}.items()
}


def spread_chart(rates, found):
    figure, axes = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
    for (name, (drawn, derived)), colour in zip(found.items(), ("#b5541c", "#1f6f8b")):
        axes.loglog(rates, derived, color=colour, label=f"{name}: yours, derived")
        axes.loglog(rates, drawn, "o", color=colour, label=f"{name}: 5,000 draws")
    axes.set(xlabel="p", ylabel="standard deviation", title="The noise in one entry of a context vector")
    axes.legend()
    return figure


show(
    chart(spread_chart, rates, found),
    "Standard deviation against p from 0.01 to 0.95, both axes logarithmic. Points measured on draws lie on the derived lines. The "
    "line of a row with 0.95 on one key is above that of a row with equal weights.",
)

# %% [markdown]
# ## 6 The price of a large weight
#
# What does noise do to training? Suppose that the loss is the squared error of such a sum. Averaged over the coins,
# the squared error of a noisy number is that of its mean plus its variance:
#
# ```
# mean loss with dropout   =   loss without dropout   +   p / (1 - p) · Σ w² v²
# ```
#
# The second term is a **penalty**. It grows with the square of each weight. So, for values of the same size, a large weight costs more than several
# small ones of the same sum, and the penalty is lowest when the weight is spread evenly. Training has to weigh this against the loss without dropout.
# If that is all there is to it, the formula must predict what a head learns. Here is a head as small as can be: six scores to learn, and six values
# that guess a number *a*. For each sentence *a* is drawn anew, with mean 0 and standard deviation 1. The value of the word *Your* is a good guess: its
# error has a standard deviation of 0.1. Those of the other five have 0.5. All errors are independent of each other and of a.

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


errors = torch.tensor([0.1, 0.5, 0.5, 0.5, 0.5, 0.5])  # standard deviations of the six guesses


def guesses(sentences, seed):
    """Answers (sentences,), and six guesses at each: (sentences, 6)."""
    torch.manual_seed(seed)
    answers = torch.randn(sentences)
    return answers, answers.unsqueeze(1) + errors * torch.randn(sentences, 6)


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
# The prediction needs no training. Each guess is v = a + e, with an error e. The weights add up to 1, so Σ w (a + e) - a
# = Σ w e. Without dropout the mean loss is Σ w² s², with s the standard deviation of e. The mean of v² is 1 + s². Together:
#
# ```
# mean loss   =   Σ w² · ( s²  +  p / (1 - p) · (1 + s²) )
# ```
#
# The bracket, with the s of one word, is the cost of that word. For weights that add up to 1, Σ w² · cost is smallest when each weight is
# proportional to 1 / cost. (Then w · cost is the same for all words, and moving a little weight from one to another gains
# nothing.)

# %%
def predicted(p):
    """The weights (6,) that make the mean loss smallest."""
    cost = errors**2 + p / (1 - p) * (1 + errors**2)
    return (1 / cost) / (1 / cost).sum()


print("no dropout:", [round(w, 3) for w in predicted(0.0).tolist()])

# %% [markdown]
# **Predict, then run.** Without dropout *Your* should get a weight of 0.833. What weight does it get with p = 0.5?

# %%
my_guess = None  # a number from 0 to 1

# %% tags=["raises-exception"]
# demonstration: three heads, trained with three chances of dropping
heads = {}
for p in (0.0, 0.1, 0.5):
    torch.manual_seed(123)
    heads[p] = trained(Head(Dropout(p))).eval()
learned = {p: head.weights().tolist() for p, head in heads.items()}
beside(my_guess, round(learned[0.5][0], 1))

# %% tags=["raises-exception"]
# demonstration: what was learned
for p, found in learned.items():
    others = sum(found[1:]) / 5
    formula = predicted(p)
    print(f"p = {p}:  Your {formula[0]:.3f} by the formula, {found[0]:.2f} learned;  others {formula[1]:.3f} and {others:.2f}")

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: draws the figure
def weight_bars(tokens, learned, formula):
    figure, grid = plt.subplots(1, len(learned), figsize=(11, 3.2), layout="constrained", sharey=True)
    for axes, (p, found) in zip(grid, learned.items()):
        axes.bar(tokens, found, color=["#b5541c"] + ["#1f6f8b"] * 5, label="learned")
        axes.plot(tokens, formula[p], "kD", ms=5, label="formula")
        axes.set(title=f"p = {p:g}", ylim=(0, 1), ylabel="weight")
        axes.tick_params(axis="x", labelrotation=45)
    grid[0].legend()
    return figure


show(
    chart(weight_bars, tokens, learned, {p: predicted(p).tolist() for p in learned}),
    "Three bar charts of the six learned weights, for p = 0, 0.1 and 0.5. Your falls from 0.83 to 0.38 and 0.23, the others "
    "rise together. The diamonds of the formula lie close to the tops of the bars.",
)

# %% [markdown]
# The bars end near where the formula says (the training saw 1000 sentences and random coins, not the mean). So for a
# squared error, dropout on weights is, on average, a price on w²v² that is paid in training only.
#
# Is a head that spreads its weights better? Test the three heads twice: with all words there, and with *Your* hidden before the softmax as in lesson
# 03.

# %% tags=["raises-exception"]
answers_a, guesses_a = guesses(2000, seed=789)


def error_of(head, hide):
    """Mean squared error on new sentences; with hide, Your is hidden by -inf."""
    scores = head.scores.detach().clone()
    if hide:
        scores[0] = float("-inf")
    return ((torch.softmax(scores, dim=-1) * guesses_a).sum(dim=-1) - answers_a).square().mean().item()


print("                    all words   Your hidden")
for p, head in heads.items():
    print(f"trained with p = {p}    {error_of(head, False):.3f}        {error_of(head, True):.3f}")
print(f"equal weights           {(guesses_a.mean(dim=1) - answers_a).square().mean():.3f}        "
      f"{(guesses_a[:, 1:].mean(dim=1) - answers_a).square().mean():.3f}")

# %% [markdown]
# Here the price buys nothing. With all words there, the error grows with p. With *Your* hidden, the other five share
# the whole row, and all three heads are about as good as equal weights. This head had 1000 examples for six
# numbers. The model of part 1 has more than 60,000 numbers and fifty stories. Does dropout help there?
#
# ## 7 Does it help?
#
# Your `Dropout` now drops attention weights in both layers of the model of part 1. Same start, same stories, same steps.
#
# **Predict, then run.** Without dropout, the loss on new stories ended far above its lowest point. With p = 0.5, is
# the last loss on new stories lower than without? Does the model answer at least half of the questions on new
# stories?

# %%
my_guess = None  # two words: ("yes" or "no", "yes" or "no")

# %% tags=["nbval-ignore-output"]
# demonstration: trains for about ten seconds
torch.manual_seed(0)
with_dropout = new_model()
for block in with_dropout.layers():
    block.attention.dropout = Dropout(0.5)
dropout_losses = learn(with_dropout)
told = answers(with_dropout, new)["all"]
beside(my_guess, ("yes" if dropout_losses[-1][1] < plain_losses[-1][1] else "no", "yes" if told >= 0.5 else "no"))

# %% tags=["nbval-ignore-output"]
# demonstration: what was measured
for name, losses, model in (("without", plain_losses, by_heart), ("p = 0.5", dropout_losses, with_dropout)):
    print(f"{name}: own {losses[-1][0]:.2f}, new {losses[-1][1]:.2f} (best {min(n for _, n in losses):.2f}), "
          f"right answers on new stories {answers(model, new)['all']:.0%}")

# %% jupyter={"source_hidden": true} tags=["nbval-ignore-output"]
# demonstration: draws the figure
show(
    chart(curves, {"without dropout": plain_losses, "your Dropout(0.5)": dropout_losses}, floor()),
    "Two panels of losses against steps. Left without dropout: the loss on new stories rises after step 100. Right with your "
    "Dropout(0.5): the loss on the model's own stories falls more slowly, and on new stories it rises much less.",
)

# %% [markdown]
# Dropout takes most of the damage away: the upper curve stays near its lowest point. But the answers on new stories are about as bad as before. Is
# that the p, or the fifty stories? Here are more runs (`benchmarks/overfitting.py` in the course's repository makes the table, with `nn.Dropout`,
# whose draws differ from yours):
#
# | stories | steps | p | seed | loss on its own | best on new ones | last on new ones | right answers |
# |---|---|---|---|---|---|---|---|
# | 50 | 300 | 0 | 0 | 0.18 | 1.10 at 100 | 1.62 | 14% |
# | 50 | 300 | 0.3 | 0 | 0.28 | 1.06 at 125 | 1.23 | 15% |
# | 50 | 300 | 0.5 | 0 | 0.38 | 1.05 at 150 | 1.13 | 16% |
# | 100 | 300 | 0 | 0 | 0.39 | 0.88 at 150 | 0.98 | 22% |
# | 100 | 300 | 0.3 | 0 | 0.51 | 0.82 at 200 | 0.82 | 21% |
# | 100 | 300 | 0 | 1 | 0.42 | 0.87 at 150 | 0.94 | 26% |
# | 100 | 300 | 0.3 | 1 | 0.53 | 0.82 at 275 | 0.82 | 24% |
# | 1000 | 2000 | 0 | 0 | 0.30 | 0.50 at 700 | 0.66 | 91% |
# | 1000 | 2000 | 0.1 | 0 | 0.35 | 0.48 at 700 | 0.52 | 84% |
#
# Dropout lowers the loss on new stories in every pair of runs. The share of right answers does not follow: here 14% become 16%, there 91% become 84%.
# With fifty stories none of these p brings the answers above 16%; what does is more stories (and, in the last two rows, more steps as well). With 100
# of them and no dropout the loss, too, is lower than with 50 and dropout. Each row is one run, on one processor: do not read a rule into a small
# difference. On a problem of your own, try several values of p and compare them on examples that were left out of training. The first GPT used 0.1;
# PaLM, a large model that saw nearly every text once, was trained without dropout.
#
# ## 8 What goes wrong in practice
#
# **The functional form does not know the mode.** `nn.functional.dropout(x, p)` is a function and has no switch. Its
# `training` is True unless told otherwise. A module has to pass its mode on: `training=self.training`. PyTorch's attention
# function has no such argument at all: it drops whenever `dropout_p` is above 0.

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
# In `Attends` the remedy is `dropout_p=0.5 if self.training else 0.0`.
#
# **`eval()` is forgotten** before a model is tested. Then its answers change from call to call, and its error
# includes the penalty. Here is the head trained with p = 0.5, in both modes, and what the formula of part 6 adds
# (p / (1 - p) is 1 here).

# %% tags=["raises-exception", "nbval-ignore-output"]
head = heads[0.5]
w = head.weights().detach()
for mode in (False, True):
    head.train(mode)
    error = (head(guesses_a) - answers_a).square().mean().item()
    print("train():" if mode else "eval(): ", f"error {error:.2f}")
head.eval()
print(f"penalty: p / (1 - p) · Σ w² v² = {(w**2 * (1 + errors**2)).sum():.2f} on average")

# %% [markdown]
# **p is taken for the probability of keeping.** In some older libraries it was. Here p = 0.1 drops a tenth on average.
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
# and each kind of device. So masks may differ between a CPU and a GPU, and that is no error. No single
# mask is the right one. But you can test whether masks have the right share of zeros, and whether their entries are
# independent. The rubrics of this lesson do that. To repeat an experiment elsewhere, draw the mask once, save it, and load it there.
#
# ## Summary
#
# - **Overfitting** shows as two curves that part: the loss on the model's own examples falls, that on new ones rises.
# - **Dropout** sets each entry to 0 with probability p, independently, anew at every call. What is kept is divided by
#   1 - p, **in training only**. The mean of each entry stays what it was.
# - In use nothing is dropped and nothing is scaled. **`eval()`** says so, `no_grad()` does not, and functional
#   dropout has to be told.
# - The noise has a variance of p / (1 - p) · Σ w² v². For a squared error it acts in training as a **penalty** on large
#   weights, and the penalty predicted the weights that were learned.
# - With few stories dropout kept the loss on new ones from rising much. It did not make the answers right.
# - Random results are judged by their properties, never by their draws.
#
# **A loose end.** Layers, mask, softmax, dropout: so far they are separate pieces, for one sentence or for scores made by hand. Lesson 05 puts them
# into one class that takes a batch of sentences. On the way `keys.T` breaks.
#
# ## Further reading
#
# - Srivastava et al., *Dropout: A Simple Way to Prevent Neural Networks from Overfitting*, 2014, section 4: the
#   model, with the scaling in use. There p is the probability to keep.
# - Vaswani et al., *Attention Is All You Need*, 2017, section 5.4: dropout on the output of each sub-layer, and on the sums of embeddings and positions.
# - Radford et al., *Improving Language Understanding by Generative Pre-Training*, 2018, section 4.1: dropout of 0.1
#   on residuals, embeddings and attention.
# - Chowdhery et al., *PaLM: Scaling Language Modeling with Pathways*, 2022, section 5: training without dropout.
