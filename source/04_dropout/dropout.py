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
# The course's model learned its language from 20,000 stories. Here is an untrained one that gets fifty, and sees each of them about 200 times. Then it
# is asked the questions in them, and those in new stories. Run the next two cells; the second takes about ten seconds.

# %% grade_id="setup" seconds=3 jupyter={"source_hidden": true}
# the set-up: imports, and what this lesson starts from
import math
import os
from textwrap import fill

import matplotlib.pyplot as plt
import torch
from torch import nn

from attention_course import (
    answers, begin, beside, case, chart, course_model, decode, explore, floor, hint, loss_of, new_model, pairs, progress,
    rubric, show, stories, table, train, why, write,
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
future = torch.ones(6, 6, device=device).triu(diagonal=1) == 1  # (6, 6), True = hidden


def sentence_weights():
    """The causal weights (6, 6) of the sentence, as lesson 03 left them: layers of lesson 01, seed 789."""
    torch.manual_seed(789)
    W_query, W_key = (nn.Linear(3, 2, bias=False).to(device) for _ in range(2))
    with torch.no_grad():
        scores = (W_query(inputs) @ W_key(inputs).T).masked_fill(future, -math.inf)
        return torch.softmax(scores / math.sqrt(2), dim=-1)


@torch.no_grad()
def look(model, told):
    """The loss on these stories, the share of right answers, and the scores (b, n, v) of the next words."""
    words, targets = pairs(told)
    scores = model.eval()(words)
    right = answers(lambda _: scores, told)["all"]
    return {"loss": loss_of(lambda _: scores, words, targets).item(), "right": right, "scores": scores}


def learn(model, few, new, steps=300):
    """Train on the few stories; every 25 steps, and at last, look at them and at the new ones."""
    seen = []
    for step, _ in enumerate(train(model, *pairs(few), steps=steps), start=1):
        if step % 25 == 0 or step == steps:
            seen.append([look(model, told) | {"step": step} for told in (few, new)])
            model.train()
    model.eval()
    return seen


# %% seconds=10 jupyter={"source_hidden": true} tags=["nbval-ignore-output"]
# demonstration: trains for about ten seconds
few = stories(50, seed=7)
new = [story for story in stories(300, seed=99) if str(story) not in {str(told) for told in few}]
torch.manual_seed(0)
plain = learn(new_model(), few, new)

by_chance = {"who": 1 / 3, "where": 1 / 4, "what": 1 / 10, "alive": 1 / 2}
chances = [by_chance[answer.kind] for story in new for answer in story.notes.answers]
guessing = sum(chances) / len(chances)
own, other = plain[-1]
first, right = other["scores"].argmax(dim=-1), pairs(new)[1]  # its first choice for each word, and the right one
answer = new[1].notes.answers[0]
says = decode(first[1, answer.start : answer.stop].tolist())
hits = [(first == right)[i, a.start : a.stop] for i, story in enumerate(new) for a in story.notes.answers if a.kind == "where"]
pronoun, place = (sum(hit[at].item() for hit in hits) / len(hits) for at in (0, -2))
print(fill("a new story:   " + " ".join(new[1].words[: answer.stop]), 96, subsequent_indent=15 * " "))
print("its answer:   ", " ".join(says))
print(f"right answers in its own stories: {own['right']:.0%}")
print(f"right answers in new stories:     {other['right']:.0%}")
print(f"by guessing, in new stories:      {guessing:.0%}")
print(f"“where”, in new stories: the place is right in {place:.0%} of the answers, “she's” or “he's” in {pronoun:.0%}")

# %% [markdown]
# A perfect memory, and **on new stories no more than a guess**: the place is right as often as one of four drawn blindly. (The guess only picks one of
# three names, four places, ten activities, or yes and no. The model has to find the other words, too, and says *he's* for *she's*: so it falls below.)
#
# A famous remedy: **dropout** sets some of the model's numbers to 0 at random while it learns. Does that help?
#
# - You see overfitting in two curves that do not tell the same story.
# - You build dropout, and say what is scaled, by how much, and when.
# - You derive its noise, and predict with it what a head will learn.
#
# *About 80 minutes. It builds on lesson 03 (causal weights) and 01 (`nn.Module`). Run cells, solve exercises and ask for `hint()`, `why()` and
# `progress()` as in lesson 01.* Let gradients through, keep the type of a tensor, and don't modify the arguments.

# %%
# demonstration: three questions on earlier lessons, without points
from attention_course import recall

recall()

# %% [markdown]
# ## 1 Learned by heart
#
# Measured every 25 steps, the loss on new stories was lowest at step 100 (stopping there: **early stopping**), then it rose by nearly half.
#
# **Predict, then run.** At the end 14% of the answers in new stories are right. What share was right at step 100?

# %%
my_guess = None  # a percentage, such as 50

# %% tags=["nbval-ignore-output"]
# demonstration: at the lowest loss
lowest = min(range(len(plain)), key=lambda i: plain[i][1]["loss"])
beside(my_guess, f"{plain[lowest][1]['right']:.0%} at step {plain[lowest][1]['step']}, {plain[-1][1]['right']:.0%} at the end")

# %% jupyter={"source_hidden": true} tags=["nbval-ignore-output"]
# demonstration: draws the figure
def curves(runs, lowest_loss, guessing):
    """Loss and right answers against steps, a line for each run."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
    for (name, seen), colour in zip(runs.items(), ("#1f6f8b", "#b5541c")):
        steps = [at["step"] for at in seen]
        left.plot(steps, [at["loss"] for at in seen], color=colour, label=name, marker="o", ms=3)
        right.plot(steps, [100 * at["right"] for at in seen], color=colour, label=name, marker="o", ms=3)
    left.axhline(lowest_loss, color="0.4", ls=":", label="lowest possible on new stories")
    right.axhline(100 * guessing, color="0.4", ls=":", label="guessing, on new stories")
    left.set(title="Loss", xlabel="step", ylim=(0, None))
    right.set(title="Right answers, in percent", xlabel="step", ylim=(0, None))
    left.legend()
    right.legend()
    return figure


show(
    chart(curves, {f"its own {len(few)}": [own for own, _ in plain], "new stories": [other for _, other in plain]}, floor(), guessing),
    f"Left, loss against training steps: on its own stories it ends at {plain[-1][0]['loss']:.1f}, on new stories it is lowest at step "
    f"{plain[lowest][1]['step']}, {plain[lowest][1]['loss']:.1f}, and ends at {plain[-1][1]['loss']:.1f}. Right, right answers at the end: "
    f"{plain[-1][0]['right']:.0%} in its own stories, {plain[-1][1]['right']:.0%} in new ones; a dotted line marks guessing, {guessing:.0%}.",
)

# %% [markdown]
# The loss gets worse while the answers get better, from 7% to 14%. Then what is it that rises? Compare the two moments, word by word.

# %% tags=["nbval-ignore-output"]
# demonstration: the words of the new stories at step 100 and at step 300
targets = pairs(new)[1]
real = targets >= 0  # without what fills up short stories
print("       first choice right   loss where right   where wrong: how sure   loss where wrong")
for i in (lowest, len(plain) - 1):
    at = plain[i][1]
    sure, first = at["scores"].softmax(dim=-1).max(dim=-1)  # its first choice, and how sure it is of that
    hit, miss = real & (first == targets), real & (first != targets)
    losses = nn.functional.cross_entropy(at["scores"].flatten(0, 1), targets.flatten(), reduction="none").view(targets.shape)
    print(f"step {at['step']}   {hit.sum() / real.sum():>15.0%}   {losses[hit].mean():>16.2f}   "
          f"{sure[miss].mean():>21.0%}   {losses[miss].mean():>16.2f}")
softer = nn.functional.cross_entropy((at["scores"] / 1.5).flatten(0, 1), targets.flatten())
print(f"at the end, with all scores divided by 1.5: loss {softer:.2f}, where it was {at['loss']:.2f}")

# %% [markdown]
# About as many words are right as before. **What rises is the price of the wrong ones**: where the model is wrong, it is 67% sure
# instead of 41%. Divide all its scores by 1.5, and it is less sure of everything while no answer changes: two fifths of the rise are gone. Stopping
# early would have kept the loss at its lowest and cost half of the few right answers. Measure what you want from a model, not only its loss.
#
# This is **overfitting**: the model fits its examples, not the rule behind them. What works against it is called **regularisation**. The best remedy
# is more data: the course's own model, from 20,000 stories, has a loss of 0.417 on 1,500 fresh ones; the lowest possible is
# 0.414 on average.
#
# ## 2 A coin for every weight
#
# In every step of the training a coin is tossed for every attention weight. With probability p the weight is dropped; otherwise it is kept.
#
# ### Exercise: `keep_mask` (2 points)
#
# Return a mask of this shape, float32: each entry 0 with probability p, on its own, otherwise 1.
#
# - `torch.rand(shape)` draws numbers spread evenly from 0 to 1; 0 may come up, 1 never. What share of them lies below p?
# - p = 0 keeps all, p = 1 drops all.
# - For p outside 0 to 1 raise a `ValueError`.

# %% grade_id="keep_mask"
def keep_mask(shape, p):
    """Float32 of this shape, each entry 0 with probability p, independently, otherwise 1."""
    ### BEGIN SOLUTION
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    return (torch.rand(shape) >= p).float()
    ### END SOLUTION


# %% grade_id="test_keep_mask"
@rubric("keep_mask")  # the contract as a checklist; open this cell to read it
def _(r):
    r.check("float32, nothing but 0 and 1, of the shape asked for", "zeros_and_ones", keep_mask, ((5,), 0.5), ((2, 3, 4), r.probability(0.1, 0.3)))
    r.check("about a share p of the entries is 0", "share_of_zeros", keep_mask, ((90, 50), r.probability(0.1, 0.3)), ((90, 50), r.probability(0.7, 0.9)), ((90, 50), 0.5), ((200, 150), 0.003))
    r.idea.drops_independently("each entry is 0 with probability p, by itself, anew at each call", keep_mask, (4, 3, 6, 4), 0.45)
    r.each("p = 0 keeps all, p = 1 drops all", keep_mask, ((2, 3), 0), ((20, 30), 0.0), ((2, 3), 1), ((20, 30), 1.0))
    r.call("p = 0 keeps an entry for which torch.rand draws exactly 0", r.where_rand_is_zero(keep_mask), (60, 60), 0.0)
    r.refuses("raises ValueError when p is outside 0 to 1", keep_mask, ((3, 4), -r.probability(0.1, 0.3)), ((3, 4), 1 + r.probability(0.1, 0.3)), ((3, 4), 2))

# %% [markdown]
# Two masks of yours over our sentence's weights. Below are the six words, above their context vectors; a line is a weight. Move the slider.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
def networks(weights, masks):
    figure, grid = plt.subplots(1, 3, figsize=(8.4, 3.2), layout="constrained")
    for axes, (title, mask) in zip(grid, masks.items()):
        for i in range(6):
            for j in range(i + 1):
                kept = mask[i][j] == 1
                axes.plot([j, i], [0, 1], color="#0072B2" if kept else "0.7", lw=5 * weights[i][j] if kept else 0.8, ls="-" if kept else ":")
        for at, word in enumerate(tokens):
            axes.text(at + 0.2, -0.06, word, ha="right", va="top", fontsize=9.5, rotation=50)
            axes.plot(at, 1, "o", color="#b5541c", ms=7)
        axes.set(title=title, ylim=(-0.45, 1.1))
        axes.set_axis_off()
    return figure


weights = sentence_weights().cpu()  # (6, 6)


def thinned(p):
    torch.manual_seed(5)
    masks = {"in use: the whole network": torch.ones(6, 6), "one step of training": keep_mask((6, 6), p), "the next step": keep_mask((6, 6), p)}
    lost = [int((mask == 0).tril().sum()) for mask in masks.values()]
    said = f"p = {p:g}. Of the 21 lines {lost[1]} are dropped in one step, {lost[2]} in the next."
    return chart(networks, weights.tolist(), {title: mask.tolist() for title, mask in masks.items()}), said


about = "One network three times: six words below, six context vectors above, joined by lines as wide as the weights. First all lines are there, then some are dropped."
explore(thinned, alt=about, p=[0.5, 0.1, 0.2, 0.3, 0.7, 0.9])

# %% [markdown]
# **Predict, then run.** In each step every sentence gets another **thinned network**. How many are there?

# %%
my_guess = None  # a number

# %% jupyter={"source_hidden": true}
# demonstration: counts them
beside(my_guess, f"{2 ** len(weights[weights > 0]):,}")

# %% [markdown]
# Each of the 21 lines is there or not: 2 to the power of 21. All these networks share the same parameters. With p = 0.5, a context vector that relies on a
# single line loses it in half of the steps.
#
# ## 3 What is scaled, and when
#
# Drop each weight with probability 1/2, and on average half of a row's sum is left. The layers after it would be trained on half of what they get in
# use. So what is kept is made larger:
#
# ```
# dropped    0              with probability p
# kept       x / (1 - p)    with probability 1 - p
#
# mean       p · 0  +  (1 - p) · x / (1 - p)  =  x
# ```
#
# This is **inverted dropout**. In use (**inference**) nothing is dropped and nothing is scaled.
#
# ### Exercise: `inverted_dropout` (3 points)
#
# ```
# x, any shape, p, training      result, same shape
#                                0 or x / (1 - p) when training, x when not
# ```
#
# - Your `keep_mask` helps; `mask.to(x)` gives it the type and the device of x.
# - When p = 1 the result is zeros. Mind 0 / 0.
# - A p outside 0 to 1 raises a `ValueError`, in training and in use.

# %% grade_id="inverted_dropout"
def inverted_dropout(x, p, training):
    """Entries dropped with probability p, kept ones divided by 1 - p; x when not training."""
    ### BEGIN SOLUTION
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    if p == 1:
        return torch.zeros_like(x)
    return x * keep_mask(x.shape, p).to(x) / (1 - p)
    ### END SOLUTION


# %% grade_id="test_inverted_dropout"
@rubric("inverted_dropout")  # the contract as a checklist; open this cell to read it
def _(r):
    x, p = r.nonzero(3, 4), r.probability(0.1, 0.4)
    r.idea.drops_in_training("in training each entry drops with probability p, the rest is x / (1 - p); else x as it is", inverted_dropout, r.nonzero(40, 50), p)
    r.drops("float64 in, float64 out, another p", inverted_dropout, r.nonzero(30, 40, dtype=torch.float64).T, 0.9 - p, True)
    r.drops_independently("each entry is dropped by itself, anew at each call", inverted_dropout, r.nonzero(4, 3, 6, 4), 0.45, True)
    r.each("x as it is when not training, or when p = 0; zeros, not nan, when p = 1", inverted_dropout, (x, p, False), (x, 1, False), (x, 0, True), (x, 1, True), (x.double(), 1, True), (torch.ones(20_000), 1.0, True))
    r.drop_gradient("the gradient is what each entry was multiplied by", inverted_dropout, r.nonzero(15, 16), 0.4, True)
    r.refuses("raises ValueError when p is outside 0 to 1, in either mode", inverted_dropout, (x, -p, True), (x, 1 + p, True), (x, -p, False), (x, 1 + p, False))
    r.unchanged("leaves its arguments as they were")

# %% [markdown]
# In a head, dropout comes after the softmax. Here is PyTorch's `nn.Dropout` on our sentence's weights.
#
# **Predict, then run.** The row of *Your* has a single weight, 1. What can it add up to after dropout with p = 0.5?

# %%
my_guess = None  # a number, or several

# %% tags=["nbval-ignore-output"]
torch.manual_seed(123)
dropped_weights = nn.Dropout(0.5)(weights)
table(dropped_weights, rows=tokens, columns=tokens)
print("sums of the rows:", [round(s, 2) for s in dropped_weights.sum(dim=-1).tolist()])
many_sums = torch.stack([nn.Dropout(0.5)(weights).sum(dim=-1) for _ in range(10_000)])  # (10000, 6)
print("mean of 10,000:  ", [round(s, 1) for s in many_sums.mean(dim=0).tolist()])
beside(my_guess, many_sums[:, 0].unique().tolist())

# %% [markdown]
# *Your* kept its only weight, now 2. *journey* lost both. No row adds up to 1, and **nothing divides by the sum afterwards**: only the
# average is right.
#
# ## 4 `train()` and `eval()`
#
# How does the function know that training is over? Every `nn.Module` keeps a switch, `self.training`. `eval()` sets it to False, `train()` to True,
# in all modules inside as well.
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
# No parameters, nothing in `state_dict()`.

# %% grade_id="Dropout"
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


# %% grade_id="test_Dropout"
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
# **Predict, then run.** People write `torch.no_grad()` around code that only uses a model. Does a `Dropout` in training mode drop under `no_grad()`?
# Does it drop after `eval()`, without `no_grad()`?

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
# **`no_grad()` does not switch dropout off; `eval()` does.** To use a model you want both.
#
# And if `eval()` is forgotten? Put your `Dropout(p)` on the attention weights of the trained model, which never met dropout, and leave it in
# `train()`. The baseline tosses no coin: every weight is multiplied by 1 - p.
#
# **Predict, then run.** With p = 0.5 half of the weight is gone in the baseline; by coins, on average, none. How many answers in new stories are right?

# %%
my_guess = None  # two percentages: every weight halved; a coin for every weight
p = 0.5  # then others

# %% tags=["raises-exception", "nbval-ignore-output"]
# demonstration: the trained model with smaller weights, and with your Dropout
torch.manual_seed(123)
halved, tossed = course_model(), course_model()
for small, coins in zip(halved.layers(), tossed.layers()):
    small.attention.W_value.weight.data *= 1 - p  # as good as every weight times 1 - p
    coins.attention.dropout = Dropout(p)
words, targets = pairs(new)
found = {}
for name, one in {"no change": course_model(), f"every weight times {1 - p:g}": halved, f"your Dropout({p:g})": tossed.train()}.items():
    with torch.no_grad():
        scores = one(words)
    found[name] = f"{answers(lambda _: scores, new)['all']:.0%}"
    print(f"{name:>22}: loss {loss_of(lambda _: scores, words, targets).item():.2f}, right answers {found[name]}")
print("with coins it writes:")
for _ in range(3):
    print(fill(" ".join(write(tossed, begin("Anna has a ball ."))[1:]), 76, initial_indent="    ", subsequent_indent="        "))
beside(my_guess, tuple(found.values())[1:])

# %% [markdown]
# At p = 0.5 **the coins do the damage**, not the missing weight.
#
# Every pass with coins is one of the thinned networks of part 2.
#
# **Predict, then run.** At p = 0.5, one of them finds less than a third of the answers. Average the probabilities of 32. How many are right?

# %%
my_guess = None  # a percentage

# %% seconds=6 tags=["raises-exception", "nbval-ignore-output"]
# demonstration: the average of more and more thinned networks
torch.manual_seed(123)
total, by_average = 0, {}
with torch.no_grad():
    for drawn in range(1, 33):
        total = total + tossed(words).softmax(dim=-1)  # the sum has the same first choice as the average
        if drawn in (1, 2, 4, 8, 16, 32):
            by_average[drawn] = f"{answers(lambda _: total, new)['all']:.0%}"
print("right answers by an average of", ", ".join(f"{drawn}: {right}" for drawn, right in by_average.items()))
beside(my_guess, by_average[32])

# %% [markdown]
# **The average takes most of the damage back.** After `eval()` the whole network stands in for it: in one pass, all answers are right. How much noise
# is in one thinned network?
#
# ## 5 How much noise
#
# One number of a context vector is a sum, w₁v₁ + w₂v₂ + …. Dropout multiplies each term by a factor of its own: 0 with probability p, 1 / (1 - p)
# otherwise.
#
# ```
# mean of a factor           p · 0  +  (1 - p) · 1 / (1 - p)   =  1
# mean of its square         p · 0  +  (1 - p) · 1 / (1 - p)²  =  1 / (1 - p)
# its variance               1 / (1 - p)  -  1²                =  p / (1 - p)
# variance of one term       p / (1 - p) · w² v²
# variance of the sum        the coins are independent, so the variances add up
# ```
#
# So the sum keeps its mean. Its standard deviation is yours to write.
#
# **Predict, then run.** A query gives 1/n to each of n keys, all values are 1, and p = 0.5. With one key the sum is 0 or 2, and its standard deviation is
# one. What is it with four keys, and with sixteen?

# %%
my_guess = None  # a pair of numbers

# %% tags=["raises-exception"]
def scatter(n):
    """The standard deviation of 20,000 sums of n weights of 1/n after dropout."""
    torch.manual_seed(3)
    return inverted_dropout(torch.full((20_000, n), 1 / n), 0.5, True).sum(dim=-1).std().item()


beside(my_guess, (round(scatter(4), 1), round(scatter(16), 2)))

# %% [markdown]
# ### Exercise: `spread_after_dropout` (4 points)
#
# ```
# weights (n, m), values (m, d), 0 ≤ p < 1      standard deviations (n, d)
# ```
#
# Return the exact standard deviation of every entry of `weights @ values` when the weights are dropped by inverted dropout, without drawing anything.
# One product of two matrices does all the sums.

# %% grade_id="spread_after_dropout"
def spread_after_dropout(weights, values, p):
    """Standard deviation of weights after dropout times values: (n, m), (m, d) -> (n, d)."""
    ### BEGIN SOLUTION
    return (p / (1 - p) * weights.square() @ values.square()).sqrt()
    ### END SOLUTION


# %% grade_id="test_spread_after_dropout"
@rubric("spread_after_dropout")  # the contract as a checklist; open this cell to read it
def _(r):
    weights, values, p = torch.softmax(r.normal(4, 6), dim=-1), r.normal(6, 3), r.probability(0.2, 0.8)
    r.each("the standard deviation of each entry of the context vectors", spread_after_dropout, (torch.tensor([[0.25, 0.75]]), torch.tensor([[1.0], [2.0]]), 0.5), (torch.tensor([[1.0]]), torch.tensor([[-2.0, 3.0]]), 0.5), (weights, values, p))
    r.each("square matrices, and weights that do not add up to 1", spread_after_dropout, (torch.softmax(r.normal(4, 4), dim=-1), r.normal(4, 4), 0.1), (r.normal(3, 5), r.normal(5, 2), p))
    r.each("zeros when p is 0", spread_after_dropout, (weights, values, 0), (weights.double(), values.double(), 0))
    r.conventions(spread_after_dropout, r.normal(2, 3), r.normal(3, 4), p)

# %% [markdown]
# Two queries look at sixteen words: one gives 0.85 to a single word, the other looks at all equally. One number of their context vectors, in 20,000 draws
# with p = 0.5:

# %% tags=["raises-exception"]
torch.manual_seed(123)
p = 0.5  # then others
values = 1 + 0.3 * torch.randn(16, 1)  # (16, 1)
rows = {"0.85 on one word": torch.tensor([[0.85] + 15 * [0.01]]), "1/16 on each word": torch.full((1, 16), 1 / 16)}
drawn = {name: (inverted_dropout(row.expand(20_000, 16), p, True) @ values)[:, 0] for name, row in rows.items()}
print(f"{'':>17}  mean   without dropout   standard deviation   your formula")
for name, row in rows.items():
    print(f"{name:>17}  {drawn[name].mean():.2f}   {(row @ values).item():>15.2f}   {drawn[name].std():>18.2f}   "
          f"{spread_after_dropout(row, values, p).item():>12.2f}")

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
def two_histograms(drawn, means, spreads):
    figure, grid = plt.subplots(1, 2, figsize=(10, 3), layout="constrained", sharex=True)
    top = max(2.6, *map(max, drawn.values()))
    for axes, (name, numbers) in zip(grid, drawn.items()):
        axes.hist(numbers, bins=80, range=(-0.2, top), color="#1f6f8b", zorder=2)
        axes.axvline(means[name], color="#b5541c", lw=2, zorder=3, label="without dropout")
        for sign in (-1, 1):
            axes.axvline(means[name] + sign * spreads[name], color="#f0a30a", lw=2, ls="--", zorder=3, label="± your formula" if sign > 0 else None)
        axes.set(title=name, xlabel="one number of the context vector", yticks=[])
    grid[1].legend()
    return figure


show(
    chart(
        two_histograms,
        {name: numbers.tolist() for name, numbers in drawn.items()},
        {name: (row @ values).item() for name, row in rows.items()},
        {name: spread_after_dropout(row, values, p).item() for name, row in rows.items()},
    ),
    "Two histograms of one number of a context vector under dropout. With 0.85 on one word there are two separate humps, near 0 and near twice the mean, "
    "and nothing at the mean itself. With equal weights there is one bell around the mean, about a quarter as wide.",
)

# %% [markdown]
# Both are right on average. But the query that relies on one word gets almost nothing, or about twice as much as it should. The query that
# looks at many words is typically off by a quarter.
#
# ## 6 The price of a large weight
#
# What does such noise do to training? Take a squared error. A noisy number y is its mean plus noise, y = m + e, and t is the target:
#
# ```
# (y - t)²       =   (m - t)²  +  2 (m - t) e  +  e²
# the mean of e is 0, and that of e² is the variance of y. So on average:
# squared error  =   squared error of the mean  +  variance
# ```
#
# With the variance of part 5:
#
# ```
# mean loss with dropout   =   loss without dropout   +   p / (1 - p) · Σ w² v²
# ```
#
# **Dropout is a price on large weights**, paid in training only. If all values are equally large, it is lowest when the weight is spread evenly.
# If that is all, the formula must predict what a head learns.
#
# Here is the smallest head: it learns six scores. Its values are the readings of six thermometers, named like our tokens. *Your* is a good one, with an
# error of 0.1; the other five have errors of 0.5. The head is to report the temperature, which has mean 0 and standard deviation 1.

# %%
errors = torch.tensor([0.1, 0.5, 0.5, 0.5, 0.5, 0.5])  # standard deviations


class Head(nn.Module):
    """Learns six scores; gives the sum of weight times value."""

    def __init__(self, dropout):
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(6))
        self.dropout = dropout

    def weights(self):
        return torch.softmax(self.scores, dim=-1)  # (6,)

    def forward(self, readings):  # (b, 6)
        weights = self.weights().expand(readings.shape)  # (b, 6)
        return (self.dropout(weights) * readings).sum(dim=-1)  # (b,)


# %% jupyter={"source_hidden": true}
# the days, and the head's training
def days(n, seed):
    """Temperatures (n,), and six readings of each (n, 6)."""
    torch.manual_seed(seed)
    temperature = torch.randn(n)
    return temperature, temperature[:, None] + errors * torch.randn(n, 6)


def trained(head):
    """The head after 300 steps on 1,000 days."""
    temperature, readings = days(1000, seed=123)
    optimizer = torch.optim.Adam(head.parameters(), lr=0.05)
    for _ in range(300):
        loss = (head(readings) - temperature).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return head


# %% [markdown]
# Without dropout the head's error is a sum of weight times error; its mean square is Σ w² s². The mean of v² is 1 + s². Together:
#
# ```
# mean loss   =   Σ w² · cost        cost  =  s²  +  p / (1 - p) · (1 + s²)
# ```
#
# For weights that add up to 1, this is smallest when each is proportional to 1 / cost.

# %%
def predicted(p):
    """The weights (6,) that make the mean loss smallest."""
    cost = errors**2 + p / (1 - p) * (1 + errors**2)
    return (1 / cost) / (1 / cost).sum()


# %% [markdown]
# **Predict, then run.** Without dropout *Your* gets a weight of 0.83. What does it get with p = 0.5?

# %%
my_guess = None  # a number from 0 to 1

# %% tags=["raises-exception"]
# demonstration: three heads, trained with your Dropout
heads = {p: trained(Head(Dropout(p))).eval() for p in (0.0, 0.1, 0.5)}
beside(my_guess, round(heads[0.5].weights()[0].item(), 1))

# %% tags=["raises-exception"]
# demonstration: what was learned, and the error on new days
temperature, readings = days(2000, seed=789)
for p, head in heads.items():
    with torch.no_grad():
        error = (head(readings) - temperature).square().mean()
        print(f"p = {p}: Your {head.weights()[0]:.2f} learned, {predicted(p)[0]:.2f} by the formula; squared error on new days {error:.3f}")

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: draws the figure
def weight_bars(tokens, learned, formula):
    figure, grid = plt.subplots(1, len(learned), figsize=(11, 3.2), layout="constrained", sharey=True)
    for axes, (p, found) in zip(grid, learned.items()):
        axes.bar(tokens, found, color=["#b5541c"] + ["#1f6f8b"] * 5, label="learned")
        axes.plot(tokens, formula[p], "kD", ms=5, label="formula")
        axes.set(title=f"p = {p:g}", ylim=(0, 1))
        axes.tick_params(axis="x", labelrotation=45)
    grid[0].set_ylabel("weight")
    grid[0].legend()
    return figure


show(
    chart(weight_bars, tokens, {p: head.weights().tolist() for p, head in heads.items()}, {p: predicted(p).tolist() for p in heads}),
    "Bar charts of the six learned weights, with diamonds of the formula. Learned for Your, and by the formula: "
    + "; ".join(f"{head.weights()[0]:.2f} and {predicted(p)[0]:.2f} for p = {p:g}" for p, head in heads.items()) + ".",
)

# %% [markdown]
# The formula was right. But the price buys nothing here: the error on new days grows with p. For six numbers 1,000 days are plenty. The model of
# part 1 has over 60,000 numbers, and fifty stories.
#
# ## 7 Does it help?
#
# Your `Dropout` goes wherever a GPT has one: on the embeddings, on the attention weights, after the attention, and after the feed-forward layers, with
# the first GPT's p = 0.1. Start, stories and steps are those of part 1.
#
# **Predict, then run.** Is the last loss on new stories lower now? Are the answers better than a guess?

# %%
my_guess = None  # two words: ("yes" or "no", "yes" or "no")
p, steps = 0.1, 300  # then others: with which are most answers right? 900 steps take half a minute

# %% seconds=10 tags=["nbval-ignore-output"]
# demonstration: trains, 300 steps in about ten seconds
torch.manual_seed(0)
model = new_model()
for block in model.layers():
    block.attention.dropout = Dropout(p)
    block.attention = nn.Sequential(block.attention, Dropout(p))
    block.feed_forward = nn.Sequential(block.feed_forward, Dropout(p))
model.blocks.insert(0, Dropout(p))  # between the embeddings and the first block
dropped, with_yours = learn(model, few, new, steps), f"your Dropout({p:g})"
last = dropped[-1][1]
beside(my_guess, ("yes" if last["loss"] < plain[-1][1]["loss"] else "no", "yes" if last["right"] > guessing else "no"))

# %% jupyter={"source_hidden": true} tags=["nbval-ignore-output"]
# demonstration: draws the figure
show(
    chart(curves, {with_yours: [other for _, other in dropped], "without": [other for _, other in plain]}, floor(), guessing),
    f"Loss and right answers on new stories against steps. At the end, without dropout: loss {plain[-1][1]['loss']:.1f}, {plain[-1][1]['right']:.0%} right; "
    f"with yours: loss {last['loss']:.1f}, {last['right']:.0%} right. A dotted line marks guessing, {guessing:.0%}.",
)

# %% [markdown]
# The loss stays down, and a guess is still better. But runs differ: from this start we got 22% with one set of masks and 18% with another. So here
# are eight runs for each row, each with stories, a start and batches of its own, the same eight in every row: mean (lowest–highest), from
# `benchmarks/overfitting.py`.
#
# | dropped | stories, steps | last loss, new stories | right, new stories |
# |---|---|---|---|
# | nothing | 50, 300 | 1.62 (1.56–1.68) | 15% (14–17) |
# | attention weights, p = 0.5 | 50, 300 | 1.19 (1.10–1.26) | 17% (13–21) |
# | all places, p = 0.1 | 50, 300 | 1.08 (1.04–1.12) | 17% (14–18) |
# | all places, p = 0.3 | 50, 300 | 1.01 (0.97–1.06) | 10% (7–13) |
# | nothing | 50, 900 | 2.56 (2.44–2.68) | 15% (13–18) |
# | all places, p = 0.3 | 50, 900 | 1.13 (1.04–1.24) | 24% (21–29) |
# | nothing | 100, 300 | 1.00 (0.95–1.07) | 22% (20–25) |
# | *lowest loss there is; a guess* | | *0.41* | *26%* |
#
# **Dropout lowers the last loss in every start**, in these rows most where it is applied in all of a GPT's places. But after 300 steps the row with the
# lowest loss on fifty stories has the fewest right answers: noise makes learning slow. With three times the steps 24% are right, where without
# dropout it is 15%. That is about as good as fifty more stories after 300 steps, and no better than a guess. **Dropout does not replace data.**
#
# ## 8 What goes wrong in practice
#
# **The functional form does not know the mode.** `nn.functional.dropout(x, p)` drops unless it is told `training=self.training`. PyTorch's attention
# function has no such argument: it drops whenever `dropout_p` is above 0.

# %%
class Forgets(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(x, 0.5)


class Attends(nn.Module):
    def forward(self, x):
        return nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.5)  # if self.training else 0.0


x = torch.ones(2, 50, 8)
for layer in (Forgets().eval(), Attends().eval()):
    print(f"{type(layer).__name__} after eval(), the same answer twice:", torch.equal(layer(x), layer(x)))

# %% [markdown]
# ## Summary
#
# - **Overfitting**: perfect on its own examples, poor on new ones. The loss rose as the model grew surer of wrong words, while its answers got better.
# - **Dropout** sets each entry to 0 with probability p, independently, anew at every call, and divides what is kept by 1 - p, **in training only**.
#   `eval()` switches it off, `no_grad()` does not.
# - Its noise has the variance p / (1 - p) · Σ w² v². For a squared error that is a **price** on large weights, and it predicted what was learned.
# - With fifty stories dropout kept the loss down, and longer training then found more right answers. It did not replace data.
#
# **Next.** Take the causal mask away from a trained model. No number in it has changed, and its last word has no later ones to see. Does it still say
# the right thing? Lesson 05 puts layers, mask, softmax and dropout into one class, and asks.

# %%
# demonstration: this lesson on a card; write a line of your own between the quotes
from attention_course import remember

remember("")

# %% [markdown]
# ## Further reading
#
# - Srivastava et al., *Dropout: A Simple Way to Prevent Neural Networks from Overfitting*, 2014: thinned networks in section 1, the price
#   in 9.1. There p is the probability to keep.
# - Wager, Wang and Liang, *Dropout Training as Adaptive Regularization*, 2013.
# - Radford et al., *Improving Language Understanding by Generative Pre-Training*, 2018, section 4.1: the first GPT, 0.1 in every place.
# - The six tokens, their vectors, the seeds 123 and 789, and the table after `nn.Dropout`: Sebastian Raschka, *Build a Large Language Model (From
#   Scratch)*, 2024, chapter 3.
#
# *Using Colab or another hosted service?* Get `attention_notebooks-….whl` where you got the lesson, put it beside the notebook, run
# `%pip install attention_notebooks-*.whl` in a new cell above the others, and restart the kernel.
