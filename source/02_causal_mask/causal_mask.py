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
# # The causal mask: hiding the future with `tril`
#
# At the end of lesson 01 your layer let words look at words that come after them. The trained model never does. In this lesson you
# see what happens to a model that may look ahead: it learns to cheat. Then you hide the future the obvious way, with a
# triangle of ones and zeros, and settle by experiment a question on which teaching material disagrees: does a mask after the softmax
# leak?
#
# **You will be able to**
# - say why a model that writes must not see the future while it is trained, and show what happens when it does;
# - build a causal mask and say which weights it hides;
# - say when masking after the softmax leaks and when it does not, and show both by measuring;
# - name the case in which such a mask fails, and say why that is not a leak.
#
# **It builds on** lesson 01: scores, weights, and the softmax.
#
# | part | minutes, estimated |
# |---|---|
# | 1 The cheat | 10 |
# | 2 One pass, n losses | 10 |
# | 3 The triangle | 10 |
# | 4 Rows that add up to 1 again | 10 |
# | 5 Does it leak? | 20 |
# | 6 Where it does fail | 10 |
# | 7 Your mask in the trained model | 5 |
# | 8 What goes wrong in practice, summary | 5 |
# | total | 80 |
#
# Run cells, fill in exercises, and ask for `hint`, `why` and `progress()` as in lesson 01.
#
# From here on, scores may have more than two dimensions: several sentences, several heads. The last two are always queries and keys, so count
# dimensions from the end. The contracts say `(..., n, n)`. As in lesson 01, float64 in gives float64 out, gradients pass, and arguments
# stay as they were.
#
# *Using Colab or another hosted service?* Get the file `attention_notebooks-….whl` from where you got this lesson, put
# it beside the notebook, and run `%pip install attention_notebooks-*.whl` in a new cell above the others.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
import os

import matplotlib.pyplot as plt
import torch
from torch import nn

from autograde.notebook import beside, case, chart, explore, heatmap, hint, panels, progress, rubric, show, table, why
from autograde.notebook.course_model import answers, attention_of, begin, course_model, new_model, without_mask, word_by_word, write
from autograde.notebook.language import encode, floor, stories
from autograde.notebook.tiny_gpt import MultiHeadAttention
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


def lesson_01(seed):
    """The three linear layers of lesson 01's SelfAttention_v2(3, 2), from a seed."""
    torch.manual_seed(seed)
    return [nn.Linear(3, 2, bias=False).to(device) for _ in range(3)]


def scores_of(seed):
    """The scores (6, 6) of the sentence in that layer."""
    with torch.no_grad():
        W_query, W_key, _ = lesson_01(seed)
        return W_query(inputs) @ W_key(inputs).T

# %% [markdown]
# ## 1 The cheat
#
# A language model is trained to predict the next word. Its **loss** at a word is minus the logarithm of the chance that it gave to this word: 0 if
# the model was certain of the word, and larger the more it was surprised. The stories of the course's small language are drawn at random, so nobody
# can always know the next word. How low the mean loss can get is known exactly, because we know the chances with which every word is drawn:

# %%
print(f"lowest loss on new stories of a model that only looks back: {floor():.2f}")

# %% [markdown]
# Now train a new model, without a mask: while it predicts a word, it may look at the whole story, this word included.
#
# **Predict, then run.** What is its loss after 250 steps? The next cell takes about ten seconds.

# %%
my_guess = None  # a number; before training it is about 4

# %% tags=["nbval-ignore-output"]
# demonstration: the course's model, trained without a mask
told, unseen = stories(1500, seed=1), stories(100, seed=99)
torch.manual_seed(0)
cheat = without_mask(new_model())
losses = {"without a mask": list(train(cheat, *pairs(told), steps=250, lr=1e-2))}
beside(my_guess, round(sum(losses["without a mask"][-20:]) / 20, 2))
print(f"on 100 freshly drawn stories: {loss_of(cheat.eval(), *pairs(unseen)).item():.2f}")

# %% [markdown]
# A splendid loss, far below the lowest that a model can reach by looking back. The model has not learned the stories by heart: on
# fresh ones its loss is as low. As a baseline, train the same model with a mask, from the same random start, on the same stories.

# %% tags=["nbval-ignore-output"]
# demonstration: the same with a mask
torch.manual_seed(0)
honest = new_model()
losses["with a mask"] = list(train(honest, *pairs(told), steps=250, lr=1e-2))


def cheat_chart(losses):
    figure, axes = plt.subplots(figsize=(6.5, 3.4))
    for (name, found), colour in zip(losses.items(), ("#b5541c", "#1f6f8b")):
        axes.plot(found, color=colour, label=name)
    axes.axhline(floor(), linestyle=":", color="0.3")
    axes.text(250, floor() - 0.14, "lowest that looking back allows", ha="right", color="0.3")
    axes.set(xlabel="step", ylabel="loss", ylim=(0, 2.5), title="Without a mask the loss falls far below the line")
    axes.legend()
    return figure


show(
    chart(cheat_chart, losses),
    "Two training curves over 250 steps. With a mask the loss levels off above the dotted line at 0.41; without one it falls through the line "
    "to nearly 0.",
)

# %% [markdown]
# Now let both write. A model that writes has only the words so far; there is nothing to look ahead to.

# %% tags=["nbval-ignore-output"]
# demonstration: what the two models write, and their loss on new stories when later words are hidden
for name, writer in {"without a mask": cheat, "with a mask": honest}.items():
    with_future_hidden = new_model()  # the causal mask, also for the model trained without one
    with_future_hidden.load_state_dict(writer.state_dict())
    loss = loss_of(with_future_hidden.eval(), *pairs(unseen)).item()
    print(f"trained {name}: loss {loss:.2f} when the future is hidden. It writes:")
    generator = torch.Generator().manual_seed(1)
    for _ in range(3):
        print("   ", " ".join(write(writer.eval(), begin("Tom has"), generator)[1:]))

# %% [markdown]
# The model without a mask has learned to look the answer up in the words that come later. When it writes, there are none, and it writes nonsense. The
# one with a mask writes sentences, if not yet always a story that hangs together. So the future has to be hidden in training, exactly as it is when
# the model writes.
#
# ## 2 One pass, n losses
#
# Hiding the future has a second benefit. To train on a story of n words, one could show the model the first word, then the first two, then the first
# three: n passes. With a mask, one pass will do. No word sees what comes after it, so what is predicted from it is the same whether the
# rest is there or not. Here is the trained model of the course on one story.

# %%
model = course_model()
words = begin("Tom is in the gym . he sees a bat fall . is it alive ? no .")
ids = torch.tensor([encode(words)])  # (1, n + 1)
with torch.no_grad():
    one_pass = model(ids)[0]  # (n + 1, 62): a number for every word that may come next; softmax makes probabilities of them
    many_passes = torch.stack([model(ids[:, :t])[0, -1] for t in range(1, len(words) + 1)])
print("largest difference below 0.00001:", (one_pass - many_passes).abs().max().item() < 1e-5)

surprise = nn.functional.cross_entropy(one_pass[:-1], ids[0, 1:], reduction="none")  # (n,)
print(" ".join(f"{word} {loss:.2f}" for word, loss in zip(words[1:], surprise.tolist())))

# %% [markdown]
# Eighteen words, eighteen losses, one pass. The model is surprised where the story is free (who it is about, whether the person *is* somewhere or
# *has* something, where, what is seen and what it does, what is asked) and not at all where it is not: after *is it alive ?* the *no* costs nothing.
# Training with the true words as input is called **teacher forcing**; a model that writes each word from those before it is **autoregressive**.
#
# Without a mask this does not work. Here is the layer of lesson 01 with seed 789: the context vector of the first word, each
# time with one word more.

# %%
W_query, W_key, W_value = lesson_01(789)
first = []
for n in range(1, 7):
    x = inputs[:n]  # (n, 3)
    weights = torch.softmax(W_query(x) @ W_key(x).T / math.sqrt(2), dim=-1)  # (n, n)
    first.append((weights @ W_value(x))[0])
table(torch.stack(first), rows=[" ".join(tokens[:n]) for n in range(1, 7)], columns=["0", "1"])

# %% [markdown]
# The vector of *Your* changes with every word that is added.
#
# **Predict, then run.** In the 6 × 6 matrix of weights, how many entries look at a later word?

# %%
my_guess = None  # a number from 0 to 36

# %%
beside(my_guess, sum(key > query for query in range(6) for key in range(6)))

# %% [markdown]
# ## 3 The triangle
#
# Query i may look at key j if j is not later than i. As a matrix of ones and zeros, that is a triangle:
#
# ```
#            key 0   1   2
# query 0        1   0   0
# query 1        1   1   0        1: visible      0: hidden
# query 2        1   1   1
# ```
#
# ### Exercise: `causal_mask` (2 points)
#
# Return this triangle for n tokens, in float32, with ones on and below the diagonal. (`torch.tril` keeps the lower triangle of a matrix and puts
# zeros above it; `torch.triu` keeps the upper one.) For n below 1 raise a `ValueError`.
#
# Wherever this course asks for a `ValueError`, the `AssertionError` of an `assert` counts, too. The message is not judged, but a helpful one names the
# argument and its value.

# %% nbgrader={"grade": false, "grade_id": "causal_mask", "locked": false, "schema_version": 3, "solution": true, "task": false}
def causal_mask(n):
    """Ones on and below the diagonal, zeros above: (n, n) float32."""
    ### BEGIN SOLUTION
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.ones(n, n).tril()
    ### END SOLUTION

# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_causal_mask", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("causal_mask")  # the contract as a checklist; open this cell to read it
def _(r):
    r.idea.each("float32 ones on and below the diagonal, zeros above", causal_mask, (2,), (3,), (r.integer(5, 40),), (r.integer(100, 200),))
    r.call("one token", causal_mask, 1)
    r.refuses("raises ValueError when n is below 1", causal_mask, (0,), (-r.integer(1, 9),))

# %% [markdown]
# ### Exercise: `apply_mask` (2 points)
#
# Put zeros where the mask is zero, and leave the other weights as they are.
#
# ```
# weights (..., n, n)      mask (n, n)      result (..., n, n)
# ```
#
# The dimensions before the last two are sentences and heads. The same mask serves all of them.

# %% nbgrader={"grade": false, "grade_id": "apply_mask", "locked": false, "schema_version": 3, "solution": true, "task": false}
def apply_mask(weights, mask):
    """Zero where mask is 0, the weight itself where it is 1: (..., n, n), (n, n) -> (..., n, n)."""
    ### BEGIN SOLUTION
    return weights.masked_fill(mask == 0, 0.0)
    ### END SOLUTION

# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_apply_mask", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("apply_mask")  # the contract as a checklist; open this cell to read it
def _(r):
    holes, small = (r.uniform(5, 5) > 0).float(), r.normal(3, 3)
    r.idea.each("hidden weights become 0, visible ones stay", apply_mask, (small, torch.ones_like(small).tril()), (r.normal(5, 5), holes))
    r.each("one mask for a batch, or for a batch of heads", apply_mask, (r.normal(1, 5, 5), holes), (r.normal(5, 5, 5), holes), (r.normal(2, 3, 5, 5), holes))
    r.conventions(apply_mask, r.normal(2, 5, 5, dtype=torch.float64), holes)

# %% tags=["raises-exception"]
mask = causal_mask(6).to(device)  # (6, 6)
weights = torch.softmax(scores_of(789) / math.sqrt(2), dim=-1)  # (6, 6)
masked = apply_mask(weights, mask)
table(mask, rows=tokens, columns=tokens)
table(masked, rows=tokens, columns=tokens)
print("sums of the rows:", [round(s, 2) for s in masked.sum(dim=-1).tolist()])

# %% [markdown]
# ## 4 Rows that add up to 1 again
#
# The future is gone, and with it much of the weight: the row of *Your* adds up to only 0.19. Its context vector would be a fifth of
# what it should be. So divide every row by its sum.
#
# ### Exercise: `renormalise` (3 points)
#
# ```
# weights (..., n, n)      result (..., n, n), each row divided by its sum
# ```
#
# A row of zeros stays a row of zeros, without `nan`; its gradient is not judged. Other sums lie between 0.000001 and 10,000, and the result has to be
# right everywhere. So a number that you add to every sum would have to be far smaller than the smallest of them.

# %% nbgrader={"grade": false, "grade_id": "renormalise", "locked": false, "schema_version": 3, "solution": true, "task": false}
def renormalise(weights):
    """Every row divided by its sum; a row of zeros stays zeros: (..., n, n) -> (..., n, n)."""
    ### BEGIN SOLUTION
    sums = weights.sum(dim=-1, keepdim=True)  # (..., n, 1)
    return weights / sums.masked_fill(sums == 0, 1.0)
    ### END SOLUTION

# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_renormalise", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("renormalise")  # the contract as a checklist; open this cell to read it
def _(r):
    weights = r.positive(2, 5, 5)
    weights[:, 1::3] = 0
    r.each("every row is divided by its sum", renormalise, (r.positive(2, 2),), (r.positive(6, 6).tril(),), (r.positive(4, 4).triu(),), (r.positive(1, 1),))
    r.call("a batch of heads", renormalise, r.positive(2, 3, 4, 4))
    r.idea.call("a row of zeros stays zeros, without nan", renormalise, weights)
    r.each("sums of 0.000001 and of 10,000", renormalise, (1.2e-6 * torch.softmax(r.normal(3, 3), dim=-1),), (1e4 * r.positive(5, 5),))
    r.conventions(renormalise, r.positive(2, 4, 4))

# %% [markdown]
# ### Exercise: `tril_causal_weights` (2 points)
#
# Now all the steps in one function: softmax of the scores divided by the square root of `d_k`, mask, renormalise.
#
# ```
# scores (..., n, n), d_k      weights (..., n, n), zero above the diagonal, each row adds up to 1
# ```
#
# The rubric tries scores of moderate size, as a layer makes them. What huge scores do is the subject of part 6.

# %% nbgrader={"grade": false, "grade_id": "tril_causal_weights", "locked": false, "schema_version": 3, "solution": true, "task": false}
def tril_causal_weights(scores, d_k):
    """Softmax of scaled scores, tril, renormalise: (..., n, n) -> (..., n, n)."""
    ### BEGIN SOLUTION
    weights = torch.softmax(scores / math.sqrt(d_k), dim=-1)
    mask = causal_mask(scores.shape[-1]).to(scores.device)
    return renormalise(apply_mask(weights, mask))
    ### END SOLUTION

# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_tril_causal_weights", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("tril_causal_weights")  # the contract as a checklist; open this cell to read it
def _(r):
    r.each("softmax of the scaled scores, tril, renormalised", tril_causal_weights, (2 * r.normal(3, 3), 4), (2 * r.normal(7, 7).round(), 3))
    r.each("a batch, a batch of heads", tril_causal_weights, (2 * r.normal(6, 6, 6), 5), (2 * r.normal(2, 3, 5, 5), 12))
    r.each("one token, a key of one number", tril_causal_weights, (r.normal(1, 1, 1), 6), (r.normal(4, 4), 1))
    r.conventions(tril_causal_weights, 2 * r.normal(2, 5, 5), 4)

# %% tags=["raises-exception"]
print("seed 789")
table(tril_causal_weights(scores_of(789), 2), rows=tokens, columns=tokens)
print("seed 123")
table(tril_causal_weights(scores_of(123), 2), rows=tokens, columns=tokens)

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
def steps_of(scores, d_k):
    """The weights after each of the three steps, hidden cells hatched."""
    shares = torch.softmax(scores / d_k**0.5, dim=-1)
    after = {"softmax": shares, "mask": apply_mask(shares, mask), "renormalise": tril_causal_weights(scores, d_k)}
    return [
        heatmap(found, tokens, tokens, title=f"after: {name}", hidden=None if name == "softmax" else mask == 0,
                limits=(0, 1), bar=name == "renormalise")
        for name, found in after.items()
    ]


show(
    panels(*steps_of(scores_of(789), 2), size=(11.5, 3.9)),
    "Three heatmaps of the weights with seed 789: after the softmax all 36 are near 0.17; after the mask the upper triangle is hidden "
    "and the first row holds 0.19 alone; after renormalising every row adds up to 1, and the first weight is 1.",
)

# %% [markdown]
# Follow the first row: 0.19 and five weights on later words, then 0.19 alone, then 1.
#
# ## 5 Does it leak?
#
# The softmax ran over all keys, hidden ones included. Their scores are part of its denominator. Some teaching material says that the future
# therefore still influences the weights that remain: it **leaks**. Other material renormalises and sees no harm. Who is right?
#
# **Predict.** Change the scores above the diagonal. Do the weights on and below it change? Think of two cases: masked but not
# renormalised, and renormalised.

# %%
my_guess = None  # two words: ("yes" or "no", "yes" or "no")

# %% [markdown]
# ### Exercise: `future_influence` (3 points)
#
# Measure it. `weights_fn` is any function from scores `(n, n)` to weights `(n, n)`. Replace the scores above the diagonal with other
# numbers from `torch.randn`, leave the rest alone, and compare the weights before and after. Return the largest change of any weight on or
# below the diagonal, up or down, as a Python float. Weights above the diagonal do not count.

# %% nbgrader={"grade": false, "grade_id": "future_influence", "locked": false, "schema_version": 3, "solution": true, "task": false}
def future_influence(weights_fn, scores):
    """Largest change of a weight [i, j], j <= i, when the future scores change: a float."""
    ### BEGIN SOLUTION
    future = torch.ones_like(scores).triu(diagonal=1) == 1  # (n, n)
    changed = torch.where(future, torch.randn_like(scores), scores)
    difference = (weights_fn(changed) - weights_fn(scores)).abs()
    return difference[~future].max().item()
    ### END SOLUTION

# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_future_influence", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("future_influence")  # the contract as a checklist; open this cell to read it
def _(r):
    scores, e = r.normal(6, 6), r.examples
    past, future = r.normal(6, 6).tril(-1), torch.full_like(scores, 9).triu(diagonal=1)
    r.check("at most 1e-6 when the future has no influence", "no_influence", future_influence, (e.renormalised, r.normal(8, 8)), (e.renormalised, r.normal(4, 4)))
    r.check("at least 1e-3 when weights_fn masks and does not renormalise", "some_influence", future_influence, *(((e.not_renormalised, r.normal(8, 8)),) * 8))
    changes = past, -past, past + (5 + r.positive(6)).diag(), past + future
    r.idea.each("the largest change on or below the diagonal, up or down", future_influence, *((e.moving_by(c, scores), scores) for c in changes), (e.steep, r.normal(8, 8).double()))
    r.hears("only scores above the diagonal change, to other random numbers", "changes_the_future", future_influence, e.renormalised, 100 * r.normal(40, 40))
    r.unchanged("leaves the scores as they were")

# %% tags=["raises-exception"]
def softmax_alone(scores):
    return torch.softmax(scores, dim=-1)


def masked_only(scores):
    return apply_mask(torch.softmax(scores, dim=-1), causal_mask(scores.shape[-1]).to(device))


def renormalised(scores):
    return tril_causal_weights(scores, 1)


torch.manual_seed(123)
random_scores = torch.randn(6, 6).to(device)
found = {}
for fn in (softmax_alone, masked_only, renormalised):
    torch.manual_seed(1)  # the same other future for each
    found[fn.__name__] = future_influence(fn, random_scores)
beside(my_guess, tuple("yes" if found[name] > 1e-6 else "no" for name in ("masked_only", "renormalised")))

# %% tags=["raises-exception"]
for name, influence in found.items():
    print(f"{name:>13}: {'none above 0.000001' if influence < 1e-6 else f'{influence:.1f}'}")

# %% [markdown]
# `softmax_alone` and `masked_only` are equal: zeros above the diagonal change nothing on or below it. Each side has a point. **Without renormalising it
# leaks. Renormalised, it does not**, and four lines of algebra say why. Let e_j be `exp(score j)`, S their sum over all keys, and V their sum over the
# visible ones:
#
# ```
# after the softmax          e_j / S                     S holds the future
# sum of the visible ones    V / S
# divided by it              (e_j / S) / (V / S)
#                          =  e_j / V                    S is gone, and the future with it
# ```
#
# And `e_j / V` is what the softmax gives when it runs over the visible keys alone. Lesson 03 does just that, by setting hidden scores to minus
# infinity. Here the two are compared, the **tril way** (softmax, mask, renormalise) and the **-inf way**, in the weights and in the gradients that
# reach the scores.

# %% tags=["raises-exception"]
def inf_way(scores):
    return torch.softmax(scores.masked_fill(causal_mask(len(scores)).to(device) == 0, float("-inf")), dim=-1)


def gradient(weights_fn):
    leaf = random_scores.clone().requires_grad_()
    (weights_fn(leaf) * random_scores.cos()).sum().backward()
    return leaf.grad


weights_apart = (renormalised(random_scores) - inf_way(random_scores)).abs().max().item()
gradients_apart = (gradient(renormalised) - gradient(inf_way)).abs().max().item()
print("the weights differ by less than 0.000001:  ", weights_apart < 1e-6)
print("the gradients differ by less than 0.000001:", gradients_apart < 1e-6)

# %% [markdown]
# ## 6 Where it does fail
#
# In algebra the two ways are the same. In floating-point numbers they are not always. The softmax comes first and sees the hidden scores. If a hidden
# score is far above the visible ones, the visible weights become too small for the number type: they **underflow**. Dividing
# by their sum does not bring back what is lost.
#
# Below, one hidden score lies above three visible ones by a growing gap. The curves are the largest error of a visible weight, compared with
# the -inf way. Where all the visible weights have become zero, zero is divided by zero, and the curve ends.

# %% jupyter={"source_hidden": true}
# draws the figure
def error_at(gap, dtype):
    line = torch.tensor([0.3, -0.4, 0.1, 0.0], dtype=dtype)  # three visible scores, then the hidden one
    line[3] = line[:3].max() + gap
    weights = torch.softmax(line, dim=-1)[:3].double()
    right = torch.softmax(line[:3].double(), dim=-1)
    return (weights / weights.sum() - right).abs().max().item()  # without a guard


def underflow_chart(errors):
    figure, axes = plt.subplots(figsize=(6.5, 3.6))
    for (name, found), style, colour in zip(errors.items(), ("--", "-.", "-"), ("#b5541c", "#7a5195", "#1f6f8b")):
        axes.plot([max(e, 1e-8) for e in found], style, color=colour)
        lost = next(gap for gap, e in enumerate(found) if math.isnan(e))
        axes.axvline(lost, linestyle=":", color="0.5")
        left = name == "bfloat16"
        axes.text(lost - 1 if left else lost + 1, 2e-8 if left else 2e-3, f"{name}:\nnan from {lost}", color=colour,
                  fontsize=9, ha="right" if left else "left")
    axes.set_yscale("log")
    axes.set(xlabel="gap between the hidden score and the largest visible one", ylabel="largest error of a weight (1e-8 or less at the bottom)",
             xlim=(-3, 128), title="What underflow does to the visible weights")
    return figure


dtypes = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}
errors = {name: [error_at(gap, dtype) for gap in range(120)] for name, dtype in dtypes.items()}
show(
    chart(underflow_chart, errors),
    "Error of the visible weights against the gap, on a logarithmic scale. In float16 it is at most 0.0001 at small gaps, rises "
    "from a gap of about 10, and the weights are nan from 18. In bfloat16 it is near 0.0005, rises at a gap of about 90, and they are nan from 93. In float32 it stays below "
    "0.000002 up to a gap of about 90, rises steeply, and the weights are nan from 104.",
)

# %% [markdown]
# By the measure of part 5 the hidden score has an influence here: it moves the visible weights. But this is not a leak that a model could learn
# from: the visible weights are lost, and nothing of the later token takes their place. In pure float16, where the scores come in and the weights go out
# in that type, a weight is off by more than 0.1 at a gap of 17. bfloat16 has the range of float32 and fails almost as late, but it rounds so coarsely
# that its weights are off by about 0.0005 even at small gaps (with the division in bfloat16, too, lesson 03 measures up to 0.002). (On a GPU,
# mixed-precision training keeps the weights that the softmax gives in float32.)
#
# ### Exercise: `break_tril` (2 points)
#
# Find such a case yourself. Return a finite float32 matrix of scores, `(n, n)` with n from 2 to 16, on which `tril_causal_weights(scores, 1)` is off by
# more than 0.001 somewhere, while the -inf way is right. How far must the hidden scores lie above the visible ones? A row with one visible weight stays
# right until that weight is exactly 0. A row with several goes wrong earlier.

# %% nbgrader={"grade": false, "grade_id": "break_tril", "locked": false, "schema_version": 3, "solution": true, "task": false}
def break_tril():
    """A score matrix (n, n), finite float32, on which the tril way fails by underflow."""
    ### BEGIN SOLUTION
    scores = torch.zeros(4, 4)
    scores[0, 3] = 200.0
    return scores
    ### END SOLUTION

# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_break_tril", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("break_tril")  # the contract as a checklist; open this cell to read it
def _(r):
    r.check("finite float32 scores (n, n) on which the tril way is off by more than 0.001", "breaks_tril", break_tril, ())

# %% tags=["raises-exception"]
broken = break_tril().to(device)
both = tril_causal_weights(broken, 1), inf_way(broken)
hidden = causal_mask(len(broken)).to(device) == 0
show(
    panels(
        heatmap(both[0], None, None, title="the tril way", hidden=hidden, limits=(0, 1), bar=False),
        heatmap(both[1], None, None, title="the -inf way", hidden=hidden, limits=(0, 1)),
        size=(8, 3.6),
    ),
    "Two heatmaps of the weights of your matrix. Left the tril way, in which a row has lost its weights or has wrong "
    "ones; right the -inf way, in which every row adds up to 1.",
)
print("sums of the rows, tril way:", [round(s, 2) for s in tril_causal_weights(broken, 1).sum(dim=-1).tolist()])
print("sums of the rows, -inf way:", [round(s, 2) for s in inf_way(broken).sum(dim=-1).tolist()])

# %% [markdown]
# `renormalise` leaves rows of zeros as they are. So if a row has lost everything, the failure does not even show as `nan`: the row is silently
# zero, and so is the token's context vector. A guard that hides a failure does not fix it.
#
# ## 7 Your mask in the trained model
#
# Now put your function to work. The next cell copies the trained model and lets your `tril_causal_weights` make the weights of all eight heads. A
# second copy masks without renormalising, a third has the right weights in rows that are too small, and a fourth does not mask at all. Stories end in
# questions and their answers, such as *is it alive ? no*. An answer is right if each of its words is the model's first choice after the true words
# before it. Each copy is asked the questions in
# 100 freshly drawn stories twice. First it reads all stories in one pass, the shorter ones filled up with `<end>`. Then it reads word by word, so that
# nothing comes after the last word.

# %% tags=["raises-exception"]
# demonstration: the trained model with five kinds of weights, on 100 stories
class Masked(MultiHeadAttention):
    """The model's attention, with weights made by a function (scores, d_k) -> weights."""

    make_weights = None

    def weights(self, x):
        queries, keys = self.split(self.W_query(x)), self.split(self.W_key(x))  # (b, heads, n, d_k)
        return self.make_weights(queries @ keys.mT, keys.shape[-1])  # (b, heads, n, n)


def with_weights(make_weights):
    """The trained model with other weights in all its heads."""
    changed = course_model()
    for block in changed.layers():
        attention = Masked(48, 48, 48, dropout=0.0, num_heads=4)
        attention.load_state_dict(block.attention.state_dict())
        attention.make_weights = make_weights
        block.attention = attention
    return changed.eval()


def not_renormalised(scores, d_k):
    return apply_mask(torch.softmax(scores / math.sqrt(d_k), dim=-1), causal_mask(scores.shape[-1]))


def not_masked(scores, d_k):
    return torch.softmax(scores / math.sqrt(d_k), dim=-1)


def right_but_shrunk(scores, d_k):
    """The right weights, each row as much too small as it is on average when nothing is renormalised."""
    sums = not_renormalised(scores, d_k).sum(dim=-1, keepdim=True)  # (b, heads, n, 1)
    return tril_causal_weights(scores, d_k) * sums.mean(dim=0)


new_stories = stories(100, seed=5)
with torch.no_grad():
    for name, changed in {
        "the model's own mask": model,
        "yours": with_weights(tril_causal_weights),
        "not renormalised": with_weights(not_renormalised),
        "right but shrunk": with_weights(right_but_shrunk),
        "not masked": with_weights(not_masked),
    }.items():
        loss = loss_of(changed, *pairs(new_stories)).item()
        one_pass, in_turn = (answers(read, new_stories)["all"] for read in (changed, word_by_word(changed)))
        print(f"{name:>20}: loss {loss:.2f}, right answers {one_pass:.0%}, word by word {in_turn:.0%}")

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: draws the figure
bat = begin("Tom is in the gym . he sees a bat")
future = torch.ones(11, 11).triu(diagonal=1) == 1
masked_maps = attention_of(with_weights(tril_causal_weights), bat)  # (2 layers, 4 heads, 11, 11)
open_maps = attention_of(with_weights(not_masked), bat)
heads = {f"{layer + 1}.{h + 1}": (layer, h) for layer in range(2) for h in range(4)}


def picture(head):
    layer, h = heads[head]
    maps = panels(
        heatmap(masked_maps[layer, h], bat, bat, title=f"head {head} with your weights", hidden=future, limits=(0, 1), bar=False),
        heatmap(open_maps[layer, h], bat, bat, title="not masked", limits=(0, 1)),
        size=(12, 5.6),
    )
    ahead = (open_maps[layer, h] * future).sum().item() / 11
    return maps, f"Head {head}. With your weights no word looks at a later one; not masked, {ahead:.0%} of the weight is on later words."


explore(
    picture,
    alt="Two heatmaps of one trained head on the sentence Tom is in the gym, he sees a bat: with your weights, where nothing above the "
    "diagonal is visible, and not masked.",
    head=["2.2", *(name for name in heads if name != "2.2")],
)

# %% [markdown]
# Move the slider to see the other heads: 1.1 to 1.4 are in the first layer, 2.1 to 2.4 in the second. With your mask the trained model works as it
# was trained. Without renormalising, or without any mask, the same parameters make a worse model. Without a mask, later words enter every row, which
# never happened in training. Without renormalising, two things go wrong: the rows add up to less than 1, and by how much depends on the words that
# follow. The line *right but shrunk* tells the two apart. There each row is too small by the average over all stories, so almost nothing of a story's
# own future enters. That alone gives most of the rise in the loss (0.25 of 0.32), but less than half of the lost answers (16% are wrong, against
# 36%). When a model writes, it reads word by word: nothing comes after the last row, and most answers are right again. What is still lost is lost in
# the rows before it.
#
# ## 8 What goes wrong in practice
#
# **`tril` and `triu` are mixed up.** Then every token sees the future and not its past. Check the first row: it must hold one weight, and
# that weight is 1.
#
# **The result of `masked_fill` is dropped.** `weights.masked_fill(mask == 0, 0.0)` returns a new tensor. As a line of its own it does
# nothing.

# %%
weights = torch.softmax(scores_of(789) / math.sqrt(2), dim=-1)
weights.masked_fill(torch.ones(6, 6, device=device).tril() == 0, 0.0)
print("still visible above the diagonal:", int((weights.triu(diagonal=1) > 0).sum()))

# %% [markdown]
# **Renormalising is skipped**: the picture looks right without it. You have measured twice what that does.
#
# **A loss that is too good is celebrated.** If the loss on **new** stories falls below what is possible, look for a leak. (On its own training
# stories a model can also get there by learning them by heart: lesson 04.)
#
# ## Summary
#
# - A model that sees the future in training looks the answers up there. Its loss is splendid, and it cannot write.
# - A **causal mask** lets query i look at keys 0 to i. For 6 tokens it hides 15 of 36 weights. With it, one pass over a sentence trains all n predictions.
#   Feeding the model the true words, not its own, is called **teacher forcing**.
# - Masked after the softmax and **not renormalised**, the weights depend on the future. Renormalised, they do not: apart from rounding and
#   underflow, they are the softmax over the visible keys, in value and in gradient.
# - What remains is **underflow**: if a hidden score is far above the visible ones, the visible weights are lost.
#
# **A loose end.** The softmax first shares the weight among all keys, including those that are hidden a moment later. Lesson 03 hides them first.
#
# ## Further reading
#
# - Vaswani et al., *Attention Is All You Need*, 2017, section 3.2.3: the mask in the decoder, set to minus infinity before the softmax.
# - Williams and Zipser, *A Learning Algorithm for Continually Running Fully Recurrent Neural Networks*, 1989: teacher forcing.
# - Radford et al., *Improving Language Understanding by Generative Pre-Training*, 2018: a decoder with causal self-attention, trained to predict
#   the next word.
