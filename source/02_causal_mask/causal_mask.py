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
# # The causal mask: hiding the future
#
# A language model is trained to predict the next word. What if it can see the whole story while it learns, that word included? Train one: run the
# next two cells. The second takes about ten seconds.

# %% grade_id="setup" seconds=3 jupyter={"source_hidden": true}
# the set-up: imports, and what this lesson starts from
import math
import os
from textwrap import fill

import matplotlib.pyplot as plt
import torch
from torch import nn

from attention_course import (
    MultiHeadAttention, answers, attention_of, begin, beside, case, chart, course_model, encode, explore_story, floor,
    heatmap, hint, loss_of, new_model, next_words, pairs, panels, progress, rubric, show, stories, table, train, why,
    without_mask, word_by_word, write,
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


def lesson_01(seed):
    """The three linear layers of lesson 01's SelfAttention_v2(3, 2), from a seed."""
    torch.manual_seed(seed)
    return [nn.Linear(3, 2, bias=False).to(device) for _ in range(3)]


def scores_of(seed):
    """The scores (6, 6) of the sentence in that layer."""
    with torch.no_grad():
        W_query, W_key, _ = lesson_01(seed)
        return W_query(inputs) @ W_key(inputs).T


# %% seconds=10 tags=["nbval-ignore-output"]
# demonstration: the course's model, trained without a mask
told, unseen = stories(1500, seed=1), stories(100, seed=99)
torch.manual_seed(0)
cheat = without_mask(new_model())
losses = list(train(cheat, *pairs(told), steps=250, lr=1e-2))
print(f"its loss on stories it has never seen:             {loss_of(cheat.eval(), *pairs(unseen)).item():.2f}")
print(f"the lowest loss of any model that only looks back: {floor():.2f}")

# %% [markdown]
# A **loss** is minus the logarithm of the chance that the model gave to the right word: 0 if it was certain, more the more it was surprised. The
# stories are partly drawn at random, by rules that the course knows. `floor()` computes from them what even a perfect guesser must lose: 0.41 on
# average, if it only looks back. This model gets below that, on fresh stories. It looks brilliant.
#
# Now let it write. A model that writes has only the words so far.

# %% tags=["nbval-ignore-output"]
# demonstration: what it writes
generator = torch.Generator().manual_seed(1)
for _ in range(3):
    print(fill(" ".join(write(cheat, begin("Tom has"), generator)[1:]), 76, subsequent_indent="    "))

# %% [markdown]
# Mostly nonsense. It has learned to look the answer up in the words that come later, and when it writes there are none. **The low loss was a cheat.**
# In this lesson you hide the future, and find out whether the obvious way of hiding it leaks.
#
# - You train on all words of a story at once, and see what that has to do with a mask.
# - You build the causal mask from a triangle of ones.
# - You measure whether the future still gets through, and find the one case in which it does.
#
# *About 80 minutes. It builds on lesson 01: scores, weights, the softmax. Ask for `hint()`, `why()` and `progress()` as there.* From here on scores
# may have more than two dimensions, `(..., n, n)`: several sentences, several heads. The last two are always queries and keys, so count dimensions from
# the end.

# %%
# demonstration: three questions on earlier lessons, without points
from attention_course import recall

recall()

# %% [markdown]
# ## 1 One pass, a loss for every word
#
# To train on a story of n words, one could show the model the first word, then the first two, then the first three: n passes. If no word sees what
# comes after it, one pass will do: what is predicted at a word is the same, whether the rest is there or not.
#
# ### Exercise: `losses_in_one_pass` (2 points)
#
# `model(ids)` turns n tokens `(1, n)` into `(1, n, v)`: for every position a number for each of the v words that may come next. Return the loss of
# each next token, `(n - 1,)`, from **one** call of the model.
#
# - Position 0 predicts token 1, position 1 predicts token 2, and so on.
# - `nn.functional.cross_entropy(scores, targets, reduction="none")` takes scores `(k, v)` and targets `(k,)` for k positions, and gives `(k,)`.

# %% grade_id="losses_in_one_pass"
def losses_in_one_pass(model, ids):
    """The loss of each next token, from one call: ids (1, n) -> (n - 1,)."""
    ### BEGIN SOLUTION
    scores = model(ids)  # (1, n, v)
    return nn.functional.cross_entropy(scores[0, :-1], ids[0, 1:], reduction="none")
    ### END SOLUTION


# %% grade_id="test_losses_in_one_pass"
@rubric("losses_in_one_pass")  # the contract as a checklist; open this cell to read it
def _(r):
    r.each("the loss of each next token", losses_in_one_pass, (r.module("a small model", 9, 5), r.tokens(9, 1, 4)), (r.module("a small model", 20, 6), r.tokens(20, 1, 12)))
    r.call("two tokens, one loss", losses_in_one_pass, r.module("a small model", 7, 3), r.tokens(7, 1, 2))
    r.idea.call("all of them from one call of the model", losses_in_one_pass, r.module("a small model, for one call", 9, 5), r.tokens(9, 1, 8))
    r.unchanged("leaves the tokens as they were")

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: draws the figure
def staircase(words, found):
    n, unit = len(found), 5 / max([2, *found])  # a bar's length for a loss of 1
    figure, axes = plt.subplots(figsize=(8.2, 5.6), layout="constrained")
    for t, loss in enumerate(found):
        for at, word in enumerate(words[: t + 1]):
            axes.text(at, t, word, ha="center", va="center", fontsize=8.5, color="#444444")
        axes.text(t + 1, t, words[t + 1], ha="center", va="center", fontsize=9.5, weight="bold", color="#b5541c")
        axes.barh(t, unit * loss, left=t + 1.7, color="#b5541c", height=0.6)
        axes.text(t + 1.8 + unit * loss, t, f"{loss:.2f}", va="center", fontsize=9)
    axes.text(3, -1, "loss", va="center", weight="bold", color="#b5541c")
    axes.set(xlim=(-0.7, n + 3), ylim=(n - 0.4, -1.6))
    axes.set_axis_off()
    return figure


model = course_model()
words = begin("Tom is in the gym . he sees a bat fall . is it alive ? no .")
ids = torch.tensor([encode(words)])  # (1, n)
with torch.no_grad():
    found = [round(loss, 2) for loss in losses_in_one_pass(model, ids).tolist()]
show(
    chart(staircase, words, found),
    f"A staircase: in row t the words up to t, the next word in colour, and its loss as a bar. {len(found)} rows, one pass. The losses are "
    + ", ".join(f"{word} {loss:.2f}" for word, loss in zip(words[1:], found)) + ".",
)

# %% [markdown]
# The course's trained model on one story: eighteen rows, eighteen losses, one pass. (Feeding the true words, not the model's own, is called **teacher
# forcing**.) The model is surprised where the story is free: who it is about (*Tom*), how it goes on (*is*), where, what is seen, what happens to it
# (*fall*), what is asked. Elsewhere it is not surprised: after *is it alive ?* the *no* costs nothing.
#
# **Predict, then run.** Your function on the cheat: mean loss in one pass, and mean loss when it reads word by word, with nothing after the last
# word?

# %%
my_guess = None  # two numbers

# %% tags=["raises-exception", "nbval-ignore-output"]
# demonstration: one pass and word by word, for the cheat and for the model with a mask
with torch.no_grad():
    found = [[round(losses_in_one_pass(reader, ids).mean().item(), 2) for reader in (each, word_by_word(each))] for each in (cheat, model)]
beside(my_guess, tuple(found[0]))
print("the model with a mask: in one pass {}, word by word {}".format(*found[1]))

# %% [markdown]
# In one pass the cheat's loss is far below the floor, word by word far above. With a mask both are the same. Without one, the model sees in one pass the
# word that it has to predict.
#
# ## 2 The triangle
#
# How is a word hidden? Start without any scores: every word looks equally at all words up to itself, a running mean.
#
# **Predict, then run.** *Anna has a ball . Tom has a book .* or *Tom has a ball . Anna has a book .*? Each word's vector knows its position. Does the mean
# of all of them tell who has the ball?

# %%
my_guess = None  # does it tell, "yes" or "no"?

# %%
told_of = begin("Anna has a ball . Tom has a book ."), begin("Tom has a ball . Anna has a book .")
with torch.no_grad():
    x, exchanged = (course_model().embed(torch.tensor([encode(words)]))[0] for words in told_of)  # (11, 48) each

loop = torch.stack([x[: t + 1].mean(dim=0) for t in range(11)])  # (11, 48)

triangle = torch.ones(11, 11).tril()
by_tril = triangle / triangle.sum(dim=-1, keepdim=True)  # (11, 11)

nothing_known = torch.zeros(11, 11).masked_fill(triangle == 0, float("-inf"))
by_softmax = torch.softmax(nothing_known, dim=-1)  # (11, 11)

print("three ways, the same means:", torch.allclose(loop, by_tril @ x, atol=1e-6), torch.allclose(by_tril, by_softmax))
apart = (by_tril @ x - by_tril @ exchanged).abs().amax(dim=-1)  # (11,), how far the means of the two stories are apart
beside(my_guess, "yes" if apart[-1] > 1e-3 else "no")
print("between the means:", "  ".join(f"{word} {distance:.1f}" for word, distance in zip(told_of[0], apart.tolist())))

# %% [markdown]
# **A running mean knows which words there were, not who has what.** Attention that only looks back is a running mean that chooses its weights. The second
# of the three ways, `tril` and a division, is this lesson; the third, minus infinity before the softmax, is lesson 03.
#
# ### Exercise: `causal_mask` (1 point)
#
# Return the triangle for n tokens: `(n, n)`, float32, on the CPU, ones on and below the diagonal, zeros above. (`torch.tril` keeps the lower
# triangle, `torch.triu` the upper one.)

# %% grade_id="causal_mask"
def causal_mask(n):
    """Ones on and below the diagonal, zeros above: (n, n) float32."""
    ### BEGIN SOLUTION
    return torch.ones(n, n).tril()
    ### END SOLUTION

# %% grade_id="test_causal_mask"
@rubric("causal_mask")  # the contract as a checklist; open this cell to read it
def _(r):
    r.idea.each("float32 ones on and below the diagonal, zeros above", causal_mask, (2,), (3,), (r.integer(5, 40),), (r.integer(100, 200),))
    r.call("one token", causal_mask, 1)

# %% [markdown]
# ### Exercise: `apply_mask` (1 point)
#
# Return new weights: zeros where the mask is zero, the others as they are. One mask serves all sentences and heads.
#
# ```
# weights (..., n, n)      mask (n, n)      result (..., n, n)
# ```

# %% grade_id="apply_mask"
def apply_mask(weights, mask):
    """Zero where mask is 0, the weight itself where it is 1: (..., n, n), (n, n) -> (..., n, n)."""
    ### BEGIN SOLUTION
    return weights.masked_fill(mask == 0, 0.0)
    ### END SOLUTION

# %% grade_id="test_apply_mask"
@rubric("apply_mask")  # the contract as a checklist; open this cell to read it
def _(r):
    holes, small = (r.uniform(5, 5) > 0).float(), r.normal(3, 3)
    r.idea.each("hidden weights become 0, visible ones stay", apply_mask, (small, torch.ones_like(small).tril()), (r.normal(5, 5), holes))
    r.each("one mask for a batch, or for a batch of heads", apply_mask, (r.normal(1, 5, 5), holes), (r.normal(5, 5, 5), holes), (r.normal(2, 3, 5, 5), holes))
    r.conventions(apply_mask, r.normal(2, 5, 5, dtype=torch.float64), holes)

# %% tags=["raises-exception"]
mask = causal_mask(6).to(device)  # (6, 6)
weights = torch.softmax(scores_of(789) / math.sqrt(2), dim=-1)  # (6, 6), of lesson 01
masked = apply_mask(weights, mask)
table(mask, rows=tokens, columns=tokens)
table(masked, rows=tokens, columns=tokens)
print("sums of the rows:", [round(s, 2) for s in masked.sum(dim=-1).tolist()])

# %% [markdown]
# The future is gone, and with it much of the weight: the row of *Your* adds up to only 0.19. Its context vector would be a fifth of what it should be.
# So divide every row by its sum.
#
# ### Exercise: `renormalise` (2 points)
#
# ```
# weights (..., n, n)      result (..., n, n), each row divided by its sum
# ```
#
# A row of zeros stays a row of zeros.

# %% grade_id="renormalise"
def renormalise(weights):
    """Every row divided by its sum; a row of zeros stays zeros: (..., n, n) -> (..., n, n)."""
    ### BEGIN SOLUTION
    sums = weights.sum(dim=-1, keepdim=True)  # (..., n, 1)
    return weights / sums.masked_fill(sums == 0, 1.0)
    ### END SOLUTION

# %% grade_id="test_renormalise"
@rubric("renormalise")  # the contract as a checklist; open this cell to read it
def _(r):
    weights = r.positive(2, 5, 5)
    weights[:, 1::3] = 0
    r.each("every row is divided by its sum", renormalise, (r.positive(2, 2),), (torch.softmax(r.normal(6, 6), dim=-1).tril(),), (r.positive(4, 4).triu(),), (r.positive(1, 1),))
    r.call("a batch of heads", renormalise, r.positive(2, 3, 4, 4))
    r.idea.call("a row of zeros stays zeros, without nan", renormalise, weights)
    r.call("sums of 0.002", renormalise, 0.002 * torch.softmax(r.normal(3, 3), dim=-1))
    r.conventions(renormalise, 0.01 * r.positive(2, 4, 4))

# %% [markdown]
# ### Exercise: `tril_causal_weights` (2 points)
#
# All the steps in one function: softmax of the scores divided by the square root of `d_k`, mask, renormalise.
#
# ```
# scores (..., n, n), d_k      weights (..., n, n), 0 above the diagonal, rows sum to 1
# ```

# %% grade_id="tril_causal_weights"
def tril_causal_weights(scores, d_k):
    """Softmax of scaled scores, tril, renormalise: (..., n, n) -> (..., n, n)."""
    ### BEGIN SOLUTION
    weights = torch.softmax(scores / math.sqrt(d_k), dim=-1)
    mask = causal_mask(scores.shape[-1]).to(scores.device)
    return renormalise(apply_mask(weights, mask))
    ### END SOLUTION

# %% grade_id="test_tril_causal_weights"
@rubric("tril_causal_weights")  # the contract as a checklist; open this cell to read it
def _(r):
    r.each("softmax of the scaled scores, tril, renormalised", tril_causal_weights, (2 * r.normal(3, 3), 4), (2 * r.normal(7, 7).round(), 3))
    r.each("a batch, a batch of heads", tril_causal_weights, (2 * r.normal(6, 6, 6), 5), (2 * r.normal(2, 3, 5, 5), 12))
    r.each("one token, a key of one number", tril_causal_weights, (r.normal(1, 1, 1), 6), (r.normal(4, 4), 1))
    r.conventions(tril_causal_weights, 2 * r.normal(2, 5, 5), 4)

# %% tags=["raises-exception"]
table(tril_causal_weights(scores_of(789), 2), rows=tokens, columns=tokens)

# %% [markdown]
# ## 3 Does it leak?
#
# The softmax ran over all keys, hidden ones included, and their scores are part of its denominator. So the future still influences the weights that
# remain: it **leaks**, some say. Others (Sebastian Raschka, in a box on leakage) say that renormalising removes that influence. Who is right?
#
# **Predict.** Change the scores above the diagonal. Do the weights on and below it change: masked but not renormalised, and renormalised?

# %%
my_guess = None  # two words: ("yes" or "no", "yes" or "no")

# %% [markdown]
# ### Exercise: `future_influence` (3 points)
#
# Measure it. `weights_fn` is any function from scores `(n, n)` to weights `(n, n)`. Replace the scores above the diagonal with other numbers from
# `torch.randn`, and compare the weights before and after.
#
# - Return the largest change of any weight on or below the diagonal, up or down, as a Python float.
# - Weights above the diagonal do not count.

# %% grade_id="future_influence"
def future_influence(weights_fn, scores):
    """Largest change of a weight [i, j], j <= i, when the future scores change: a float."""
    ### BEGIN SOLUTION
    future = torch.ones_like(scores).triu(diagonal=1) == 1  # (n, n)
    changed = torch.where(future, torch.randn_like(scores), scores)
    difference = (weights_fn(changed) - weights_fn(scores)).abs()
    return difference[~future].max().item()
    ### END SOLUTION

# %% grade_id="test_future_influence"
@rubric("future_influence")  # the contract as a checklist; open this cell to read it
def _(r):
    scores, e = r.normal(6, 6), r.examples
    past, rising, future = r.normal(6, 6).tril(-1), (5 + r.positive(6)).sort().values, torch.full_like(scores, 9).triu(diagonal=1)
    r.check("at most 1e-6 when the future has no influence", "no_influence", future_influence, (e.renormalised, r.normal(8, 8)), (e.renormalised, r.normal(4, 4)))
    r.check("at least 1e-3 when weights_fn masks and does not renormalise", "some_influence", future_influence, *(((e.not_renormalised, r.normal(8, 8)),) * 8))
    changes = past, -past, past + future.mT.tril(-5), past + rising.flip(0).diag(), past + rising.diag() + future
    r.idea.each("the largest change on or below the diagonal, up or down", future_influence, *((e.moving_by(c, scores), scores) for c in changes), (e.steep, r.normal(8, 8).double()))
    r.hears("only scores above the diagonal change, to other random numbers", "changes_the_future", future_influence, e.renormalised, 100 * r.normal(40, 40))
    r.unchanged("leaves the scores as they were")

# %% tags=["raises-exception"]
def masked_only(scores):
    return apply_mask(torch.softmax(scores, dim=-1), causal_mask(scores.shape[-1]).to(device))


def renormalised(scores):
    return renormalise(masked_only(scores))


torch.manual_seed(123)
random_scores = torch.randn(6, 6).to(device)
found = {}
for fn in (masked_only, renormalised):
    torch.manual_seed(1)  # the same other future for both
    found[fn.__name__] = future_influence(fn, random_scores)
beside(my_guess, tuple("yes" if influence > 1e-6 else "no" for influence in found.values()))

# %% tags=["raises-exception"]
for name, influence in found.items():
    print(f"{name:>12}: {'none above 0.000001' if influence < 1e-6 else f'{influence:.1f}'}")

# %% [markdown]
# **Without renormalising it leaks. Renormalised, it does not.** Why? Let e_j be `exp(score j)`, S their sum over all keys, and V their sum over the
# visible ones. After the softmax a weight is `e_j / S`, and S holds the future.
#
# **Predict, then run.** What do the visible weights of a row add up to? And what is a weight once it is divided by that?

# %%
my_guess = None  # two fractions of e_j, S and V, such as ("e_j / S", "S / V")

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: which fraction your functions give on random scores
e_j = random_scores.exp() * causal_mask(6).to(device)  # visible
S, V = random_scores.exp().sum(dim=-1, keepdim=True), e_j.sum(dim=-1, keepdim=True)
fractions = {"e_j / S": e_j / S, "e_j / V": e_j / V, "V / S": V / S, "S / V": S / V}
results = masked_only(random_scores).sum(dim=-1, keepdim=True), renormalised(random_scores)
beside(my_guess, tuple(name for result in results for name, fraction in fractions.items() if torch.allclose(fraction, result)))

# %% [markdown]
# S is gone, and the future with it: `e_j / V` is what the softmax gives when it runs over the visible keys alone.
#
# ### Enough to cheat with?
#
# A weight changes by 0.1: can a model read the next word out of that? Train the model of the beginning again, from the same start, twice: with your mask
# alone, not renormalised, and with your `tril_causal_weights`.
#
# **Predict, then run.** Without any mask its loss was low in one pass and high word by word. Which of these two has such a gap, of more than 0.5?

# %%
my_guess = None  # "none", or some of: "your mask alone", "your tril_causal_weights"

# %% seconds=20 jupyter={"source_hidden": true} tags=["raises-exception", "nbval-ignore-output"]
# demonstration: trains the model with your masks, ten to twenty seconds
class Masked(MultiHeadAttention):
    """The model's attention, with weights made by a function (scores, d_k) -> weights."""

    make_weights = None

    def weights(self, x):
        queries, keys = self.split(self.W_query(x)), self.split(self.W_key(x))  # (b, heads, n, d_k)
        return self.make_weights(queries @ keys.mT, keys.shape[-1])  # (b, heads, n, n)


def not_renormalised(scores, d_k):
    return apply_mask(torch.softmax(scores / math.sqrt(d_k), dim=-1), causal_mask(scores.shape[-1]))


def with_attention(changed, kind, **settings):
    """The model with another kind of attention in both layers, with the same numbers."""
    for block in changed.layers():
        attention = kind(48, 48, 48, dropout=0.0, num_heads=4)
        attention.load_state_dict(block.attention.state_dict())
        for name, value in settings.items():
            setattr(attention, name, value)
        block.attention = attention
    return changed.eval()


cheats = []
for name, way in {"your mask alone": not_renormalised, "your tril_causal_weights": tril_causal_weights}.items():
    torch.manual_seed(0)
    learner = with_attention(new_model(), Masked, make_weights=way)
    list(train(learner, *pairs(told), steps=250, lr=1e-2))
    with torch.no_grad():
        in_one_pass, in_turn = (loss_of(read, *pairs(unseen)).item() for read in (learner.eval(), word_by_word(learner)))
    if in_turn - in_one_pass > 0.5:
        cheats.append(name)
    print(f"{name}: loss in one pass {in_one_pass:.2f}, word by word {in_turn:.2f}")
    generator = torch.Generator().manual_seed(1)
    for _ in range(2):
        print(fill(" ".join(write(learner, begin("Tom has"), generator)[1:]), 76, initial_indent="    ", subsequent_indent="        "))
beside(my_guess, ", ".join(cheats) or "none")

# %% [markdown]
# **The leak is enough.** With the mask alone the loss is far lower in one pass than word by word: one more cheat, and it writes like one. So it was from
# all of 12 starts: 0.36 to 0.51 in one pass, 1.42 to 2.28 word by word. But only six ended below 0.41: **a loss that is possible proves nothing.** With
# your `tril_causal_weights` both losses are the same, and the model has begun to tell stories.
#
# ## 4 The crack
#
# That was algebra. A computer has only so many digits. The softmax comes first and sees the hidden scores; if one of them is far above the visible
# ones, the visible weights become too small for the number type. They **underflow** to 0, and dividing by their sum does not bring them back. Call
# the distance from the largest visible score up to the hidden one the **gap**.
#
# ### Exercise: `break_tril` (2 points)
#
# Find such a case: a small matrix of finite scores, `(n, n)` in float32 with n up to 16, for which the tril way (softmax, mask, renormalise; no scale)
# gives a weight that is wrong by more than 0.001.

# %% grade_id="break_tril"
def break_tril():
    """A score matrix (n, n), finite float32, on which the tril way fails by underflow."""
    ### BEGIN SOLUTION
    scores = torch.zeros(4, 4)
    scores[0, 3] = 200.0
    return scores
    ### END SOLUTION

# %% grade_id="test_break_tril"
@rubric("break_tril")  # the contract as a checklist; open this cell to read it
def _(r):
    r.check("finite float32 scores (n, n) on which the tril way is off by more than 0.001", "breaks_tril", break_tril, ())

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
def inf_way(scores):
    return torch.softmax(scores.masked_fill(causal_mask(scores.shape[-1]).to(scores.device) == 0, float("-inf")), dim=-1)


broken = break_tril().to(device)
both = renormalised(broken), inf_way(broken)
hidden = causal_mask(len(broken)).to(device) == 0
show(
    panels(
        heatmap(both[0], None, None, title="softmax, mask, renormalise", hidden=hidden, limits=(0, 1), bar=False),
        heatmap(both[1], None, None, title="minus infinity before the softmax", hidden=hidden, limits=(0, 1)),
        size=(8, 3.6),
    ),
    "Two heatmaps of the weights of your matrix. Left the tril way, in which a row has lost its weights or has wrong ones; right "
    "minus infinity, in which every row adds up to 1.",
)

# %% [markdown]
# Your row is empty, or its weights are wrong, and nothing warns you. Where it is empty, the rule that a row of zeros stays zeros hides the failure
# and does not mend it. And whether the row is whole or damaged depends on a *later* score. **That is news of the future**: one coarse bit.
#
# **Predict, then run.** Your own `future_influence`, on scores whose hidden part is far above the rest: does it still call the tril way causal?

# %%
my_guess = None  # "yes" or "no"

# %% tags=["raises-exception"]
far_above = torch.ones(6, 6, device=device).triu(diagonal=1) * 200
influence = future_influence(renormalised, far_above)
beside(my_guess, "yes" if influence < 1e-6 else "no")
print(f"largest change of a weight: {influence:.1f}")

# %% [markdown]
# The 1.0 is a whole row: empty with one future, full with another.
#
# **Predict, then run.** From which gap on is a row empty, in float32? How large is the largest gap that the model makes, on 100 stories?

# %%
my_guess = None  # two whole numbers

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: the largest gap in the trained model
gaps = []


class Watched(MultiHeadAttention):
    """The model's attention; notes how far hidden scores lie above the visible ones."""

    def weights(self, x):
        queries, keys = self.split(self.W_query(x)), self.split(self.W_key(x))  # (b, heads, n, d_k)
        scores = queries @ keys.mT / math.sqrt(keys.shape[-1])
        future = torch.ones(scores.shape[-2:]).triu(diagonal=1) == 1
        visible = scores.masked_fill(future, -math.inf).amax(dim=-1)
        gaps.append((scores.masked_fill(~future, -math.inf).amax(dim=-1) - visible).max().item())
        return super().weights(x)


new_stories = stories(100, seed=5)
with torch.no_grad():
    with_attention(course_model(), Watched)(pairs(new_stories)[0])
empties = {  # two equal scores, then one of them lies higher and higher
    str(dtype).removeprefix("torch."): next(gap for gap in range(200) if torch.tensor([0, gap]).to(dtype).softmax(dim=-1)[0] == 0)
    for dtype in (torch.float32, torch.bfloat16, torch.float16)
}
beside(my_guess, (empties["float32"], round(max(gaps))))
print("a row is empty from a gap of", ", ".join(f"{gap} in {dtype}" for dtype, gap in empties.items()))
print(f"largest gap in the model: {max(gaps):.0f}")

# %% [markdown]
# So the crack is real, and this model is far from it in float32. In float16, where 18 is enough, less so.
#
# ## 5 Your mask in the trained model
#
# Now your `tril_causal_weights` makes the weights of all eight heads. Stories end in questions and their answers, such as *is it alive ? no*. Other
# copies of the model mask without renormalising, or not at all. Each is asked the questions in 100 stories twice: first it reads whole stories in one
# pass, then word by word.
#
# **Predict, then run.** Not renormalised, the future leaks in. When does that copy answer better, in one pass or word by word?

# %%
my_guess = None  # "in one pass" or "word by word"

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: the trained model with other weights, on 100 stories
def not_masked(scores, d_k):
    return torch.softmax(scores / math.sqrt(d_k), dim=-1)


gym, better = "Tom is in the gym . he sees a bat", {}
print(f"{'':>20}  loss   right in one pass   word by word   in 2.2 “the” looks at “gym”")
with torch.no_grad():
    for name, changed in {
        "the model's own mask": model,
        "yours": with_attention(course_model(), Masked, make_weights=tril_causal_weights),
        "not renormalised": with_attention(course_model(), Masked, make_weights=not_renormalised),
        "not masked": with_attention(course_model(), Masked, make_weights=not_masked),
    }.items():
        in_one_pass, in_turn = (answers(read, new_stories)["all"] for read in (changed, word_by_word(changed)))
        loss, ahead = loss_of(changed, *pairs(new_stories)).item(), attention_of(changed, begin(gym))[1, 1, 4, 5]  # head 2.2
        print(f"{name:>20}  {loss:.2f}   {in_one_pass:>17.0%}   {in_turn:>12.0%}   {ahead:>27.2f}")
        better[name] = "in one pass" if in_one_pass > in_turn else "word by word"
beside(my_guess, better["not renormalised"])

# %% [markdown]
# Without a mask *the* looks at *gym* in head 2.2, the very word it has to predict. With your mask the trained model works as it was trained. Without renormalising, or
# without any mask, the same parameters make a worse model. Read word by word, most answers come back, as nothing follows the last
# word. But not all: which words still see too much, and who reads them? (Lesson 05 opens with the answer.)
#
# A mask may hide the distant past as well. In a **window** of three words, each word sees itself and the two before it.
#
# **Predict, then run.** In the gym a bat is made of wood. What is the largest window in which *eat* and *sleep*
# are likelier than *fall* and *break*?

# %%
my_guess = None  # a number of words, from 1 to 11

# %% tags=["raises-exception"]
# demonstration: smaller and smaller windows
def window(size):
    """A way of making weights: each word sees this many words, itself included."""
    def weights(scores, d_k):
        mask = causal_mask(scores.shape[-1]).triu(diagonal=1 - size)
        return renormalise(apply_mask(torch.softmax(scores / math.sqrt(d_k), dim=-1), mask))

    return weights


alive = {}
for size in range(11, 0, -1):
    chance = next_words(with_attention(course_model(), Masked, make_weights=window(size)), begin(gym))
    alive[size] = chance["eat"] + chance["sleep"] > chance["fall"] + chance["break"]
    print(f"{size:2} in view: " + "  ".join(f"{verb} {chance[verb]:.2f}" for verb in ("eat", "sleep", "fall", "break")))
beside(my_guess, next((size for size, yes in alive.items() if yes), "in none"))

# %% [markdown]
# With six words in view *bat* still sees *gym*; with five it does not. Layer 2 could get it from a word that saw *gym* in layer 1, but **no word between
# hands the gym on**. Press words, and try the other masks.

# %% tags=["raises-exception"]
# demonstration: what the words look at, with your mask
way = tril_causal_weights  # then window(5), not_masked, not_renormalised
explore_story(with_attention(course_model(), Masked, make_weights=way), gym, head="2.2", word="the")

# %% [markdown]
# ## 6 What goes wrong in practice
#
# **`tril` and `triu` are mixed up.** Then every token sees its future and not its past. Check the first row: it must hold one weight, and that weight
# is 1.
#
# **The result of `masked_fill` is dropped.** `weights.masked_fill(mask == 0, 0.0)` returns a new tensor. As a line of its own it does nothing.

# %%
weights = torch.softmax(scores_of(789) / math.sqrt(2), dim=-1)
weights.masked_fill(torch.ones(6, 6, device=device).tril() == 0, 0.0)
print("still visible above the diagonal:", int((weights.triu(diagonal=1) > 0).sum()))

# %% [markdown]
# **A loss that is too good is celebrated.** If the loss on *new* stories falls below what is possible, look for a leak.
#
# ## Summary
#
# - A model that sees the future in training looks the answers up there. Its loss is a cheat, and it cannot write.
# - A **causal mask** lets query i look at keys 0 to i. With it, one pass over n tokens trains n - 1 predictions. Feeding the true words is **teacher
#   forcing**.
# - Masked after the softmax and **not renormalised**, the weights depend on the future, and a model learns to read it. Renormalised, they are the
#   softmax over the visible keys.
# - What remains is **underflow**: a hidden score about 104 above the visible ones empties the row, which is one bit of the future. In the course's model
#   the largest gap is 11.
#
# **Next.** The softmax first shares the weight among all keys, including those that are hidden a moment later. Lesson 03 hides them first, and the
# crack is gone. But what does the softmax make of a row in which everything is hidden?

# %%
# demonstration: this lesson on a card; write a line of your own between the quotes
from attention_course import remember

remember("")

# %% [markdown]
# ## Further reading
#
# - Vaswani et al., *Attention Is All You Need*, 2017, section 3.2.3: the mask in the decoder, set to minus infinity before the softmax.
# - Williams and Zipser, *A Learning Algorithm for Continually Running Fully Recurrent Neural Networks*, 1989: teacher forcing.
# - Andrej Karpathy, *Let's build GPT*, 2023: the running mean, three ways.
# - The six tokens, their vectors, the seeds 123 and 789, and the box on leakage: Sebastian Raschka, *Build a Large Language Model (From Scratch)*,
#   2024, chapter 3.
#
# *Using Colab or another hosted service?* Get `attention_notebooks-….whl` where you got the lesson, put it beside the notebook, run
# `%pip install attention_notebooks-*.whl` in a new cell above the others, and restart the kernel.
