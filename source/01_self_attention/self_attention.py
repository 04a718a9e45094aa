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
# # Self-attention: from dot products to a trainable layer
#
# A *bat* in a cave is an animal. It sleeps, it eats. A *bat* in a gym is a piece of wood. It falls, it breaks.
# The word is the same. Another word of the sentence tells you which bat is meant.
# **Self-attention** is the part of a language model that finds this other word and uses it. In this lesson you build it from dot products,
# turn it into a PyTorch layer, and at the end your own code computes which words a trained model looks at.
#
# **You will be able to**
# - compute attention scores, weights and context vectors, and say what their rows and columns mean;
# - explain why scores are divided by the square root of the key size, and show it by measuring;
# - write self-attention as an `nn.Module`, once with bare parameters and once with `nn.Linear`;
# - read off a trained layer which word it looks at, and check that this matters.
#
# **It builds on** matrix products, mean, variance and standard deviation, and PyTorch tensors, modules, gradients and a training loop.
#
# | part | minutes, estimated |
# |---|---|
# | 1 One word, two meanings | 10 |
# | 2 Dot products | 10 |
# | 3 From scores to weights | 15 |
# | 4 Why the scores are scaled | 20 |
# | 5 Context vectors | 5 |
# | 6 Query, key and value | 10 |
# | 7 The same layer with `nn.Linear` | 20 |
# | 8 Your code in the trained model | 5 |
# | 9 What goes wrong in practice, summary | 5 |
# | total | 100 |
#
# **How it works**
# - Run the cells from top to bottom with Shift+Enter. Some cells only draw a figure; their code is folded away
#   (click ••• to see it). Run them too.
# - In an exercise, replace `raise NotImplementedError()` with your code and run the cell. Then run the **rubric** cell
#   below it. It calls your code on random inputs and answers line by line.
# - Stuck? Run `hint("attention_scores")` in a cell of your own, with the name of the exercise. You get one hint at a
#   time. If an answer is wrong and you cannot see why, `why("attention_scores")` tells you whether it is a known mistake, and
#   `case("attention_scores")` returns the first wrong call to play with: its arguments, its result, what was expected.
# - Most rubrics also check three things: float64 in gives float64 out (also for tensors that are not contiguous in
#   memory, such as a transpose), gradients pass through, and the arguments are left unchanged.
# - `progress()` shows how far you have got.
# - When you are done, choose *Restart Kernel and Run All*, save, and press *Validate*.
#
# *Using Colab or another hosted service?* Get the file `attention_notebooks-….whl` from where you got this lesson, put
# it beside the notebook, and run `%pip install attention_notebooks-*.whl` in a new cell above the others.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
import os

import matplotlib.pyplot as plt
import torch
from torch import nn

from attention_course import (
    attention_of, attention_picture, begin, beside, case, chart, course_model, encode, explore, explore_story,
    heatmap, hint, jobs, new_model, next_words, panels, progress, rubric, show, stories, table, why,
    without_head,
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

# %% [markdown]
# ## 1 One word, two meanings
#
# This course comes with a small language model, a GPT of the kind that you will have built by lesson 07. It knows 62
# words (punctuation counts) and tells short stories. Give it the beginning of a sentence, and it says how likely every
# word is to come next.
#
# Here it reads *Tom is in the … . he sees a bat*, with four different places. What will the bat do? (`<end>` marks the end of
# a story. The model also reads one before the first word.)

# %%
model = course_model()
places = ["cave", "barn", "gym", "shop"]
sentences = [f"Tom is in the {place} . he sees a bat" for place in places]
beginnings = [begin(sentence) for sentence in sentences]  # 11 words each, <end> first
verbs = ["eat", "sleep", "fall", "break"]


def verb_chances(model):
    """How likely each verb is to come next, for the four places: (4, 4), each row divided by its sum."""
    following = [next_words(model, words) for words in beginnings]
    chances = torch.tensor([[chance[verb] for verb in verbs] for chance in following])
    return chances / chances.sum(dim=-1, keepdim=True)


table(verb_chances(model), rows=places, columns=verbs)

# %% [markdown]
# Each row shows how the chance of these four verbs is shared among them. (Together the four have 50 to 58% of the probability. Nearly all of the rest
# is the full stop.) In the cave and the barn the bat eats or sleeps. In the gym and the shop it falls or breaks. The last word is *bat* in all four,
# so the model must have used a word further back. We can look. Inside the model are eight **attention heads**, four in each of its two layers. For
# every word, a head spreads a weight of 1 over the words read so far. Here is the first head of the first layer, head 1.1, at the word *bat*. Press
# other words, choose another place and another head.

# %%
# demonstration: what each word looks at
explore_story(model, *reversed(sentences))

# %% [markdown]
# At *bat*, head 1.1 picks out *barn*, *gym* or *shop* from eleven words. The *cave* gets little: there most of the weight lies on
# other words.
#
# That is suggestive, but it does not prove that the model uses what the head sees. So switch the head off: it then passes on zeros. Above, press
# *everywhere* and watch the next words. The other seven heads, switched off one at a time, are the comparison.

# %%
LAYER, HEAD = 0, 0  # the first layer's first head
versions = {"all heads": model}
versions |= {f"without {layer + 1}.{head + 1}": without_head(model, layer, head) for layer in range(2) for head in range(4)}
for name, changed in versions.items():
    eats_or_sleeps = verb_chances(changed)[:, :2].sum(dim=-1).tolist()
    print(f"{name:>11}: " + "   ".join(f"{place} {share:.2f}" for place, share in zip(places, eats_or_sleeps)))

# %% [markdown]
# The numbers are the share of *eat* and *sleep* in the chance of the four verbs. Without head 1.1 every bat is an animal, in the gym as well. With
# any other head switched off, nothing changes by more than 0.02. So head 1.1 is what turns the bat into wood. (The other heads may still be used:
# where two heads do the same work, either one can be switched off without a loss.) That fits the figure: if a bat is an animal unless something says
# otherwise, the cave need not be looked at. By that logic the barn could be ignored too, yet it gets 0.98: this explanation is incomplete.
#
# **Predict, then press.** Take the gym, and let head 1.1 at *bat* work as in the cave. Only what this head passes on at this one word changes: twelve
# numbers. What will the bat do?
#
# Four sentences with one name could still be luck. The next cell draws 2,000 stories at random and takes every one with a bat.

# %%
# demonstration: what the head looks at, in many stories
torch.manual_seed(123)  # for the model that is not trained
told = [story for story in stories(2000, seed=7) if "bat" in story.words]
by_place = {place: [story for story in told if place in story.words] for place in places}
print("mean weight of bat on its place, over", ", ".join(f"{len(some)} stories in the {place}" for place, some in by_place.items()))
for name, one in {"trained": model, "not trained": new_model()}.items():
    weights = {place: jobs(one, some)["bat: its place"] for place, some in by_place.items()}
    print(f"{name:>11}: " + "   ".join(f"{place} {weight['own'][LAYER, HEAD]:.2f}" for place, weight in weights.items()))
print(f"    uniform: {weights['cave']['uniform']:.2f}")


def animals(model, some):
    """The share of *eat* and *sleep* in the chance of the four verbs after *bat*, a mean over stories."""
    shares = []
    for story in some:
        chances = next_words(model, begin(" ".join(story.words[: story.words.index("bat") + 1])))
        shares.append((chances["eat"] + chances["sleep"]) / sum(chances[verb] for verb in verbs))
    return sum(shares) / len(shares)


print("the share of eat and sleep")
for name in ("all heads", "without 1.1"):
    print(f"{name:>11}: " + "   ".join(f"{place} {animals(versions[name], some):.2f}" for place, some in by_place.items()))

# %% [markdown]
# The result does not depend on *Tom*. (*uniform* is 1/11, what each of eleven words gets if all get the same.) Up to the word *bat* these stories
# differ only in name, pronoun (*he* or *she*) and place. Here, too, the *cave* gets little and the three other places get nearly everything.
# Without head 1.1 nearly every bat is an animal.
#
# How can a head find the one word that matters? That is the rest of this lesson.
#
# ## 2 Dot products
#
# To see every number, we take a sentence that the model does not know, *Your journey starts with one step*, and vectors small enough to check by
# hand. The sentence, its six vectors, the seeds 123 and 789 and the first tables come from Sebastian Raschka's *Build a Large Language Model (From
# Scratch)*, chapter 3. A model reads text in **tokens**; here each word is one. Each token is a vector of three
# numbers. A trained model has learned its vectors: 48 numbers a token in the model above, thousands in a large one.

# %% jupyter={"source_hidden": true}
# draws the figure
features = ["0", "1", "2"]
show(
    heatmap(
        inputs, tokens, features, title="Six tokens, three numbers each",
        row_name="token", column_name="feature",
    ),
    "Heatmap of the inputs, one row a token and one column a feature. The rows of journey and "
    "starts look almost the same; the row of one stands out with a large first number.",
)

# %% [markdown]
# How well do two tokens match? The simplest measure is the **dot product**: multiply number by number and add up. For *journey* and
# *starts*:
#
# ```
# 0.55 · 0.57  +  0.87 · 0.85  +  0.66 · 0.64  =  1.4754
# ```
#
# It is large when the two vectors point the same way, and the longer they are, the larger it is.
#
# **Predict, then run.** Take each token in turn and compute its dot product with all six tokens, itself included. How many of
# the six have their largest dot product with themselves? Write your guess into the next cell. It is not marked.

# %%
my_guess = None  # a number from 0 to 6

# %%
dots = [[float(a @ b) for b in inputs] for a in inputs]
winners = [tokens[row.index(max(row))] for row in dots]
beside(my_guess, sum(token == winner for token, winner in zip(tokens, winners)))

# %%
for token, winner in zip(tokens, winners):
    print(f"{token:>8}, length {inputs[tokens.index(token)].norm():.2f}, has its largest dot product with {winner}")

# %% [markdown]
# Most tokens prefer another token to themselves, and three of those prefer *journey*, the longest vector of the six. So a
# dot product does not measure similarity alone. Length counts too.
#
# ### Exercise: `attention_scores` (2 points)
#
# All the dot products at once are one matrix product. In attention, the token that is looking is called the **query**. A token that it might look
# at is a **key**. Their dot product is the **score**:
#
# ```
# queries (n, d_k)      keys (m, d_k)      scores (n, m)
#                                          scores[i, j] = query i · key j
# ```
#
# There are n queries and m keys of `d_k` numbers each; n and m may differ. Return the dot products as they are,
# without dividing by anything.

# %% nbgrader={"grade": false, "grade_id": "attention_scores", "locked": false, "schema_version": 3, "solution": true, "task": false}
def attention_scores(queries, keys):
    """Dot product of every query with every key: (n, d_k), (m, d_k) -> (n, m)."""
    ### BEGIN SOLUTION
    return queries @ keys.T
    ### END SOLUTION

# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_attention_scores", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("attention_scores")  # the contract as a checklist; open this cell to read it
def _(r):
    r.each("entry [i, j] is query i · key j", attention_scores, (r.normal(2, 3), r.normal(4, 3)), (r.normal(7, 5), r.normal(7, 5)))
    r.each("one query, one key, keys of one number", attention_scores, (r.normal(1, 4), r.normal(1, 4)), (r.normal(3, 1), r.normal(2, 1)))
    r.call("as many keys as numbers in a key, large scores", attention_scores, 9 * r.normal(3, 4), 9 * r.normal(4, 4))
    r.conventions(attention_scores, r.normal(3, 2), r.normal(4, 2))

# %% [markdown]
# Your code draws the next figure. Row i is query i, column j is key j. In the row of *step*, the largest score is in the column of
# *journey*.

# %% tags=["raises-exception"]
scores = attention_scores(inputs, inputs)  # (6, 6)

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
show(
    heatmap(scores, tokens, tokens, title="Attention scores: query · key"),
    "Heatmap of the six by six scores. The column of journey is the brightest, with 1.50 for "
    "journey itself and 1.48 for starts; the smallest scores, near 0.29, are between one and step.",
)

# %% [markdown]
# ## 3 From scores to weights
#
# A score can be any number. But a head spreads a weight of 1 over the words. So we need shares: none below zero, and all shares of a row adding
# up to 1. The **softmax** turns scores into shares. It takes `exp` of each score, so that every number is positive, and divides by the sum:
#
# ```
# weight j  =  exp(score j)  /  (exp(score 0) + exp(score 1) + … )
# ```

# %%
def naive_softmax(x):
    return x.exp() / x.exp().sum(dim=-1, keepdim=True)


table(naive_softmax(inputs @ inputs.T), rows=tokens, columns=tokens)

# %% [markdown]
# **Predict, then run.** What does `naive_softmax` return for the scores 1, 2 and 1000? The last one is so much larger
# that it should take everything.

# %%
my_guess = None  # a list of three numbers

# %%
beside(my_guess, naive_softmax(torch.tensor([1.0, 2.0, 1000.0])).tolist())

# %%
print("exp(88) =", torch.tensor(88.0).exp().item(), "   exp(89) =", torch.tensor(89.0).exp().item())

# %% [markdown]
# In float32, `exp(89)` is already infinite, and infinity divided by infinity is `nan`, *not a number*. A single `nan` spreads to
# everything computed from it.
#
# The cure rests on one fact: subtract the same number c from every score of a row, and the weights do not change. Numerator and denominator
# are both divided by `exp(c)`. Which c makes every `exp` safe?
#
# ### Exercise: `stable_softmax` (3 points)
#
# Write the softmax over any one dimension of a tensor with any number of dimensions. `dim` may be negative, counted from the end.
# Numbers up to ±10,000 must not give `inf` or `nan`, even when one row holds numbers near 10,000 and the next row
# numbers near -10,000.
#
# Build it from basic operations such as `exp` and `sum`. PyTorch's own `softmax` and `log_softmax` are forbidden here, and so is what is built on them
# (`softmin`, `cross_entropy`, `scaled_dot_product_attention`): an answer that uses them gets no points. `logsumexp` is
# allowed.

# %% nbgrader={"grade": false, "grade_id": "stable_softmax", "locked": false, "schema_version": 3, "solution": true, "task": false}
def stable_softmax(x, dim=-1):
    """Softmax of x over dimension dim; same shape as x."""
    ### BEGIN SOLUTION
    largest = x.amax(dim=dim, keepdim=True)
    powers = (x - largest).exp()
    return powers / powers.sum(dim=dim, keepdim=True)
    ### END SOLUTION

# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_stable_softmax", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("stable_softmax", forbids=["softmax", "softmin", "cross_entropy", "scaled_dot_product_attention"])  # the contract as a checklist; open this cell to read it
def _(r):
    far = 1e4 * r.signs(6)
    r.each("softmax over the last dimension", stable_softmax, (r.normal(3),), (2 * r.normal(4, 5).round(),), (r.normal(2, 4, 3).mT,))
    r.each("over any other dim", stable_softmax, (r.normal(3, 2), 0), (100 + 9 * r.normal(2, 7, 3, 5), 1), (3 * r.normal(4, 6, 5), -2))
    rows = (r.normal(6, 3) + far[:, None],), (r.normal(3, 6) + far, -2), (r.normal(6, 4, 3) + far[:, None, None], 1)
    r.idea.each("no inf or nan for numbers of ±10,000, in one row or from row to row", stable_softmax, (far[:3],), (r.normal(4) - 1e4,), (1e4 * r.uniform(8),), *rows)
    r.forbids("does without PyTorch's softmax and what is built on it", stable_softmax)
    r.conventions(stable_softmax, r.normal(4, 6) + 200 * r.signs(6), -2)

# %% [markdown]
# Here is your softmax on the scores of the query *journey*: first divided by 4, then as they are, then times 4 and times 16. The ranking
# of the tokens stays the same. What changes is how sharply the softmax chooses.

# %% tags=["raises-exception"]
factors = torch.tensor([[0.25], [1.0], [4.0], [16.0]], device=device)
sharpness = stable_softmax(factors * scores[1], dim=-1)  # (4, 6)

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
show(
    heatmap(
        sharpness, ["scores / 4", "scores", "scores · 4", "scores · 16"], tokens,
        title="Softmax of the scores of journey", row_name="what goes in",
    ),
    "Heatmap of four softmax rows for the query journey. Divided by 4 the six weights are nearly "
    "equal; times 16 almost all of the weight lies on journey and starts, and the rest is near 0.",
)

# %% [markdown]
# ## 4 Why the scores are scaled
#
# How far apart the scores lie decides how sharply the softmax chooses. So how far apart are they? That depends on how many numbers a key has. Suppose
# a query q and a key k have `d_k` numbers each, all drawn independently from a normal distribution with mean 0 and standard deviation 1.
#
# **Predict.** When `d_k` grows from 4 to 64, by what factor does the standard deviation of q · k grow? You will measure the
# answer yourself.

# %%
my_guess = None  # a number

# %% [markdown]
# ### Exercise: `dot_product_std` (2 points)
#
# Draw `n_samples` pairs of q and k with `torch.randn`, `d_k` numbers each. Compute the dot product of each pair. Return the standard
# deviation of these `n_samples` dot products, as a Python float.
#
# ```
# q (n_samples, d_k)      k (n_samples, d_k)      q · k, pair by pair (n_samples,)
# ```
#
# Take all random numbers from `generator`: `torch.randn(..., generator=generator)`. That makes a measurement repeatable. `generator` may be `None`;
# `torch.randn` then uses PyTorch's own. A measurement varies from run to run, so do not return a formula. `n_samples` is at least 2. It makes no
# difference whether you divide by `n_samples` or by one less, whether you subtract the mean of the products (it is close to 0), or in which order you
# draw.

# %% nbgrader={"grade": false, "grade_id": "dot_product_std", "locked": false, "schema_version": 3, "solution": true, "task": false}
def dot_product_std(d_k, n_samples, generator):
    """Standard deviation of q·k over n_samples random pairs of d_k numbers each: a float."""
    ### BEGIN SOLUTION
    q = torch.randn(n_samples, d_k, generator=generator)
    k = torch.randn(n_samples, d_k, generator=generator)
    return (q * k).sum(dim=1).std().item()
    ### END SOLUTION

# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_dot_product_std", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("dot_product_std")  # the contract as a checklist; open this cell to read it
def _(r):
    r.sample("is close to sqrt(d_k), and never the same number twice", "near_root", dot_product_std, r.integer(40, 90), r.integer(1900, 2100), times=2)
    r.idea.sample("scatters from run to run as a measurement does", "scatters_about_root", dot_product_std, r.integer(7, 9), 50, times=200)
    r.sample("scatters as a measurement does when d_k is 1, too", "scatters_about_root", dot_product_std, 1, 100, times=250)
    r.sample("two samples are enough", "positive_floats", dot_product_std, 1, 2, times=3)
    r.follows_generator("draws from its generator alone, from torch's own for None", dot_product_std, 5, 30)

# %% tags=["raises-exception"]
generator = torch.Generator().manual_seed(123)
sizes = [1, 2, 4, 8, 16, 32, 64, 128, 256]
spreads = [dot_product_std(d_k, 2000, generator) for d_k in sizes]
beside(my_guess, round(spreads[sizes.index(64)] / spreads[sizes.index(4)], 1))

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
def spread_chart(sizes, measured):
    figure, axes = plt.subplots(figsize=(6, 3.5))
    axes.loglog(sizes, [math.sqrt(d_k) for d_k in sizes], "--", color="0.4", label="square root of d_k", base=2)
    axes.loglog(sizes, measured, "o", color="#1f6f8b", label="measured by your function", base=2)
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.set_yticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
    axes.set(xlabel="d_k, numbers in a key", ylabel="standard deviation of q · k",
             title="Key size times 4, standard deviation times 2")
    axes.legend()
    return figure


show(
    chart(spread_chart, sizes, spreads),
    "Measured standard deviations of q times k for nine key sizes from 1 to 256, both axes logarithmic. The points lie on "
    "the dashed line of the square root: 2 at a key size of 4, 8 at 64, 16 at 256.",
)

# %% [markdown]
# The standard deviation of q · k is the square root of `d_k`. The reason is short: each of the `d_k` products has mean 0 and variance 1 · 1 = 1,
# and the variances of independent numbers add up, to `d_k`. The standard deviation is the root of that.
#
# So divide the scores by that root, and for such vectors the standard deviation is 1 at every key size. The next figure shows what
# that does to the softmax: six random keys, and the largest of the six weights, averaged over 500 queries.

# %% tags=["raises-exception"]
def largest_weight(d_k, scale):
    q = torch.randn(500, 1, d_k, generator=generator)
    k = torch.randn(500, 6, d_k, generator=generator)
    random_scores = (q * k).sum(dim=-1)  # (500, 6)
    return stable_softmax(random_scores / scale, dim=-1).amax(dim=-1).mean().item()


unscaled = [largest_weight(d_k, 1.0) for d_k in sizes]
scaled = [largest_weight(d_k, math.sqrt(d_k)) for d_k in sizes]

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
def largest_weight_chart(sizes, unscaled, scaled):
    figure, axes = plt.subplots(figsize=(6, 3.5))
    axes.plot(sizes, unscaled, "s-", color="#b5541c", label="softmax(scores)")
    axes.plot(sizes, scaled, "o-", color="#1f6f8b", label="softmax(scores / sqrt(d_k))")
    axes.axhline(1 / 6, linestyle=":", color="0.4")
    axes.text(32, 1 / 6 + 0.02, "all six equal", color="0.3")
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.set(xlabel="d_k, numbers in a key", ylabel="largest of six weights, mean", ylim=(0, 1),
             title="Without the scale one key takes nearly everything")
    axes.legend(loc="upper left")
    return figure


show(
    chart(largest_weight_chart, sizes, unscaled, scaled),
    "Mean largest weight against the key size. Without the scale it climbs from 0.36 to 0.95 at a "
    "key size of 256; with the scale it stays between 0.37 and 0.43.",
)

# %% [markdown]
# Without the scale, random vectors of 256 numbers give nearly all of the weight to one token before anything has been learned. And such a choice is
# hard to change. Where one weight is close to 1, a small change of a score changes almost nothing, so hardly any gradient comes back. Here is the
# gradient of the largest weight with respect to its q · k, for 500 random queries with `d_k = 256`.

# %% tags=["raises-exception"]
def gradients_at_scores(d_k, scale):
    q = torch.randn(500, 1, d_k, generator=generator)
    k = torch.randn(500, 6, d_k, generator=generator)
    dots = (q * k).sum(dim=-1).requires_grad_()  # (500, 6)
    stable_softmax(dots / scale, dim=-1).amax(dim=-1).sum().backward()
    return dots.grad.amax(dim=-1)  # (500,)


gradients = {"q · k": gradients_at_scores(256, 1.0), "q · k / 16": gradients_at_scores(256, 16.0)}
for name, g in gradients.items():
    print(f"softmax of {name:>10}: mean {g.mean():.4f}   median {g.median():.4f}   below 0.001: {(g < 1e-3).double().mean():.0%}")

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
def gradient_chart(gradients):
    figure, axes = plt.subplots(figsize=(6.5, 3.4))
    share = torch.arange(1, 501) / 500
    for (name, found), colour in zip(gradients.items(), ("#b5541c", "#1f6f8b")):
        axes.plot(found.clamp(min=1e-10).sort().values, share, color=colour, label=f"softmax({name})")
    axes.axvline(1e-3, linestyle=":", color="0.3")
    axes.set_xscale("log")
    axes.set(xlabel="gradient at q · k (less than 1e-10 is drawn there)", ylabel="share of queries with at most this",
             title="Without the scale, most queries get almost no gradient")
    axes.legend(loc="upper left")
    return figure


show(
    chart(gradient_chart, gradients),
    "The share of 500 gradients that are at most as large as the number on a logarithmic axis. With the scale the curve jumps from 0 to 1 "
    "near 0.014. Without it the curve rises slowly from below 1e-10 to 0.25; at 0.001 it has passed one half.",
)

# %% [markdown]
# The derivative of a weight w with respect to its own score is w (1 - w): 1/4 at most, where w is a half, and almost nothing where w is near 0 or 1.
# (With the scale the score is q · k / 16, so the gradient at q · k is w (1 - w) / 16, at most 0.0156.) Compare the medians, not the means. Without the
# scale the mean is larger, because a minority of the gradients is large: about a sixth of the queries, whose two best scores happen to lie close
# together, get more than 0.1. The median query gets next to nothing. With the scale, all get about the same.
#
# Does that matter for training? The first folded cell makes the course's model with and without the scale, and the second trains both. Each layer has one
# head of 48 numbers. (They use parts that you will write in lessons 02 to 07. Only the curves matter here.) The **loss** says how badly the model predicts
# the next word: lower is better. Training takes about 15 seconds.

# %% jupyter={"source_hidden": true}
# demonstration: the same model with and without the scale
from attention_course import MultiHeadAttention


class Unscaled(MultiHeadAttention):
    """The model's attention without the division by the root of d_k."""

    def weights(self, x):
        n = x.shape[1]
        scores = self.split(self.W_query(x)) @ self.split(self.W_key(x)).transpose(2, 3)
        return scores.masked_fill(self.mask[:n, :n], -math.inf).softmax(dim=-1)


def untrained(scaled):
    """A new model with one head in each layer, the same start each time."""
    torch.manual_seed(0)
    learner = new_model(num_heads=1)
    for block in learner.layers():
        if not scaled:
            attention = Unscaled(48, 48, 48, dropout=0.0, num_heads=1)
            attention.load_state_dict(block.attention.state_dict())
            block.attention = attention
    return learner


# %% jupyter={"source_hidden": true} tags=["nbval-ignore-output"]
# demonstration: trains both models
from attention_course import pairs, train


def trained_for(steps, scaled):
    """The losses of a new model while it is trained, the same stories each time."""
    return list(train(untrained(scaled), *pairs(stories(1500, seed=1)), steps))


curves = {"q · k": trained_for(300, scaled=False), "q · k / sqrt(48)": trained_for(300, scaled=True)}


def loss_chart(curves):
    figure, (whole, end) = plt.subplots(1, 2, figsize=(9.5, 3.4))
    for (name, losses), colour in zip(curves.items(), ("#b5541c", "#1f6f8b")):
        smooth = [sum(losses[i - 20 : i]) / 20 for i in range(20, len(losses) + 1)]
        for axes in (whole, end):
            axes.plot(range(20, len(losses) + 1), smooth, color=colour, label=f"softmax({name}): {smooth[-1]:.2f} at the end")
    whole.set(xlabel="step", ylabel="loss, mean of 20 steps", ylim=(0.5, 4.5), title="One head of 48 numbers")
    end.set(xlabel="step", xlim=(80, 300), ylim=(0.6, 1.3), title="The same from step 80 on")
    end.legend()
    return figure


show(
    chart(loss_chart, curves),
    "Two training curves over 300 steps, and their end once more, enlarged. Both fall from about 4. At first the one without the scale is a little lower; in the last hundred steps the one "
    "without the scale is above the other.",
)

# %%
# demonstration: how sharp the weights are before training
for name, scaled in (("q · k", False), ("q · k / sqrt(48)", True)):
    learner = untrained(scaled)
    weights = torch.stack([attention_of(learner, story.words[:11])[:, 0, -1] for story in stories(100, seed=3)])  # (100, 2, 11)
    layers = weights.amax(dim=-1).mean(dim=0)  # (2,)
    print(f"{name:>16}: the largest of eleven weights is on average {layers[0]:.2f} in layer 1, {layers[1]:.2f} in layer 2")

# %% [markdown]
# At first the model without the scale is slightly ahead. From about step 100 on it is behind. By how much depends on the random start: here the gap is
# about 0.08, from seeds 1, 2 and 3 it was 0.01, 0.04 and 0.01. With four heads of 12 numbers each, the two ended within 0.02 of each
# other, sometimes one ahead, sometimes the other. So in this model the scale matters much less than for the random vectors above. Its queries and
# keys start smaller than those: it makes them from the words' vectors with `nn.Linear` (part 7), which gives numbers of variance about 1/3, not 1, from
# inputs of variance 1. So without the scale the standard deviation of q · k starts at about sqrt(48) / 3 = 2.3, not 6.9, and the largest of eleven
# weights at 0.61 on average. (We have not shown that this is the only
# reason.)

# %% [markdown]
# ### Exercise: `attention_weights` (2 points)
#
# Put the two steps together: divide by the square root of `d_k`, then take the softmax over the keys, so that every row adds
# up to 1. Use your `stable_softmax` or `torch.softmax`, as you like.
#
# ```
# scores (n, m), d_k      weights (n, m), each row adds up to 1
# ```

# %% nbgrader={"grade": false, "grade_id": "attention_weights", "locked": false, "schema_version": 3, "solution": true, "task": false}
def attention_weights(scores, d_k):
    """Softmax over the keys of scores / sqrt(d_k): (n, m) -> (n, m)."""
    ### BEGIN SOLUTION
    return torch.softmax(scores / d_k**0.5, dim=-1)
    ### END SOLUTION

# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_attention_weights", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("attention_weights")  # the contract as a checklist; open this cell to read it
def _(r):
    r.each("softmax over the keys of scores / sqrt(d_k)", attention_weights, (2 * r.normal(2, 3), 4), (2 * r.normal(5, 8).round(), 3))
    r.call("as many queries as keys", attention_weights, 3 * r.normal(6, 6), 10)
    r.each("one key, one query, a key of one number", attention_weights, (r.normal(3, 1), 4), (r.normal(1, 4), 4), (r.normal(4, 3), 1))
    r.each("large keys, scores in the thousands", attention_weights, (40 * r.normal(3, 4), 512), (1500 * r.normal(56).argsort().view(8, 7).float(), 5))
    r.conventions(attention_weights, 2 * r.normal(3, 4), 6)

# %% tags=["raises-exception"]
weights = attention_weights(scores, d_k=3)  # (6, 6)
table(weights, rows=tokens, columns=tokens)

# %% [markdown]
# All 36 weights lie between 0.12 and 0.21. Compare that with the 0.98 of the trained head. Nobody
# trained these six vectors, so they say nothing about which word matters.
#
# ## 5 Context vectors
#
# The weights say how much a query takes from each token. What it takes is a vector, the token's **value**. For now the values are the inputs
# themselves. The weighted sum of the values is the query's **context vector**: the token, seen in its sentence.
#
# ### Exercise: `context_vectors` (1 point)
#
# ```
# weights (n, m)      values (m, d_v)      context (n, d_v)
#                                          context[i] = sum over j of weights[i, j] · value j
# ```
#
# Use the weights as they come, even where a row does not add up to 1. In lesson 04 that will happen.

# %% nbgrader={"grade": false, "grade_id": "context_vectors", "locked": false, "schema_version": 3, "solution": true, "task": false}
def context_vectors(weights, values):
    """Weighted sum of the values for each query: (n, m), (m, d_v) -> (n, d_v)."""
    ### BEGIN SOLUTION
    return weights @ values
    ### END SOLUTION

# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_context_vectors", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("context_vectors")  # the contract as a checklist; open this cell to read it
def _(r):
    r.each("row i is the sum of the values, each times its weight", context_vectors, (r.normal(2, 3), r.normal(3, 4)), (r.normal(5, 5), r.normal(5, 5)))
    r.call("one query, values of one number", context_vectors, r.normal(1, 4), r.normal(4, 1))
    r.conventions(context_vectors, r.normal(2, 3), r.normal(3, 4))

# %% tags=["raises-exception"]
context = context_vectors(weights, inputs)  # (6, 3)

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
before = heatmap(inputs, tokens, features, title="Before: the inputs", row_name="token",
                 column_name="feature", limits=(0, 0.9), bar=False)
after = heatmap(context, tokens, features, title="After: the context vectors", row_name="token",
                column_name="feature", limits=(0, 0.9))
show(
    panels(before, after, size=(5.8, 3.8)),
    "Two heatmaps on one colour scale. Left the inputs, with rows that differ. Right the context "
    "vectors: all six rows are close to 0.44, 0.61 and 0.55.",
)

# %% [markdown]
# The six context vectors are nearly the same: nearly equal weights blend nearly the same mixture for every query.
#
# ## 6 Query, key and value
#
# Two problems remain.
#
# 1. **Nothing can be learned.** There is no parameter anywhere.
# 2. **Dot products of the tokens' vectors find tokens that are alike.** But *bat* has to find *gym*, and the vector most like that of *bat* is its own.
#
# The next cell takes the vectors that the first layer of the trained model gets. First *bat* looks at the words by the scaled dot products of these
# vectors, then with two matrices that head 1.1 has learned, `W_query` and `W_key`.

# %%
# demonstration: what bat looks at, without and with head 1.1's matrices
first_layer = model.layers()[LAYER]
W_query, W_key = (linear.weight[:12] for linear in (first_layer.attention.W_query, first_layer.attention.W_key))  # (12, 48) each
with torch.no_grad():
    for place, words in zip(places, beginnings):
        x = first_layer.norm1(model.embed(torch.tensor([encode(words)])))[0]  # (11, 48): the place is word 5, bat word 10
        by_likeness = (x[10] @ x.T / math.sqrt(48)).softmax(dim=-1)  # (11,)
        by_head = (x[10] @ W_query.T @ W_key @ x.T / math.sqrt(12)).softmax(dim=-1)  # (11,)
        print(f"{place}: dot products of the vectors: bat {by_likeness[10]:.3f}, place {by_likeness[5]:.3f}    with the matrices: bat {by_head[10]:.2f}, place {by_head[5]:.2f}")

# %% [markdown]
# Without the matrices *bat* finds itself. With them it finds *barn*, *gym* or *shop*. (The *cave* gets little, as in part 1.)
#
# `W_query` and `W_key` solve both problems: they can be learned, and what a token looks for need not be like the token. A third matrix, `W_value`, can
# be learned, too: it decides what is passed on. (The scores of part 2 are also symmetric: that of *one* for *step* equals that of *step* for *one*.
# With two matrices they need not be.) Each token is multiplied by each of the three and so plays three parts:
#
# ```
# query = x W_query     what I am looking for
# key   = x W_key       what I can be found by
# value = x W_value     what I pass on to those who find me
# ```
#
# ### Exercise: `SelfAttention_v1` (3 points)
#
# Turn your functions into a layer. In `__init__`, create `W_query`, `W_key` and `W_value` in this order (the tables below depend on it, your points
# do not), each an `nn.Parameter(torch.rand(d_in, d_out))`. In `forward`, use `attention_scores`, `attention_weights` and `context_vectors`, or
# compute the same in your own way.
#
# ```
# x (n, d_in)   ->   queries, keys, values (n, d_out)   ->   weights (n, n)   ->   context (n, d_out)
# ```
#
# Which number is `d_k` now? Look at the shape of a key.

# %% nbgrader={"grade": false, "grade_id": "SelfAttention_v1", "locked": false, "schema_version": 3, "solution": true, "task": false}
class SelfAttention_v1(nn.Module):
    """Self-attention over one sentence, (n, d_in) -> (n, d_out), with bare parameters."""

    def __init__(self, d_in, d_out):
        super().__init__()
        ### BEGIN SOLUTION
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))
        ### END SOLUTION

    def forward(self, x):
        ### BEGIN SOLUTION
        queries = x @ self.W_query  # (n, d_out)
        keys = x @ self.W_key  # (n, d_out)
        values = x @ self.W_value  # (n, d_out)
        scores = attention_scores(queries, keys)  # (n, n)
        weights = attention_weights(scores, d_k=keys.shape[-1])  # (n, n)
        return context_vectors(weights, values)  # (n, d_out)
        ### END SOLUTION

# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_SelfAttention_v1", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("SelfAttention_v1")  # the contract as a checklist; open this cell to read it
def _(r):
    layer = r.layer(SelfAttention_v1, d_in=3, d_out=2)
    layer.parameters("W_query W_key W_value", "d_in d_out")
    layer.outputs("gives the context vectors of any number of tokens", r.normal(2, 3), r.normal(1, 3), 2 * r.normal(6, 3), 2 * r.normal(6, 3))
    layer.idea.outputs("for any d_in and d_out", 2 * r.normal(6, 7), d_in=7, d_out=5)
    layer.outputs("as many tokens as numbers, in and out", 2 * r.normal(4, 4), d_in=4, d_out=4)
    layer.starts_uniform("its matrices start from torch.rand, each from its own", d_in=40, d_out=30)
    layer.conventions(r.normal(6, 3))

# %% tags=["raises-exception"]
torch.manual_seed(123)
attention_v1 = SelfAttention_v1(d_in=3, d_out=2).to(device)
table(attention_v1(inputs), rows=tokens, columns=["0", "1"])

# %% [markdown]
# The six rows are still close together. Three random matrices do not choose either. They can learn to.
#
# ## 7 The same layer with `nn.Linear`
#
# In practice nobody keeps the three matrices as bare parameters. `nn.Linear(d_in, d_out)` holds one. It starts from small positive and negative
# numbers, and adds a bias unless you say `bias=False`.
#
# ### Exercise: `SelfAttention_v2` (3 points)
#
# The same layer, with `W_query`, `W_key` and `W_value` as `nn.Linear` layers, created in this order (again for the tables). They have a bias only when
# `qkv_bias=True`.

# %% nbgrader={"grade": false, "grade_id": "SelfAttention_v2", "locked": false, "schema_version": 3, "solution": true, "task": false}
class SelfAttention_v2(nn.Module):
    """Self-attention over one sentence, (n, d_in) -> (n, d_out), with linear layers."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        ### BEGIN SOLUTION
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        ### END SOLUTION

    def forward(self, x):
        ### BEGIN SOLUTION
        queries = self.W_query(x)  # (n, d_out)
        keys = self.W_key(x)  # (n, d_out)
        values = self.W_value(x)  # (n, d_out)
        scores = attention_scores(queries, keys)  # (n, n)
        weights = attention_weights(scores, d_k=keys.shape[-1])  # (n, n)
        return context_vectors(weights, values)  # (n, d_out)
        ### END SOLUTION

# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_SelfAttention_v2", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("SelfAttention_v2")  # the contract as a checklist; open this cell to read it
def _(r):
    layer = r.layer(SelfAttention_v2, d_in=3, d_out=2, qkv_bias=False)
    layer.linear("W_query W_key W_value", "d_in -> d_out", bias="qkv_bias")
    layer.outputs("gives the context vectors of any number of tokens", r.normal(2, 3), r.normal(1, 3), 2 * r.normal(6, 3), 2 * r.normal(6, 3))
    layer.idea.outputs("for any d_in and d_out, with a bias if asked for", 2 * r.normal(6, 7), d_in=7, d_out=5, qkv_bias=True)
    layer.outputs("as many tokens as numbers, in and out", 2 * r.normal(4, 4), d_in=4, d_out=4)
    layer.made_of("W_query, W_key and W_value are nn.Linear")
    layer.conventions(r.normal(6, 3))

# %% [markdown]
# Here are its scores, weights and context vectors with the seed 789, and its weights and context vectors with the seed 123. The course
# comes back to these numbers.

# %% tags=["raises-exception"]
torch.manual_seed(789)
attention_v2 = SelfAttention_v2(d_in=3, d_out=2).to(device)
queries, keys = attention_v2.W_query(inputs), attention_v2.W_key(inputs)
scores_789 = attention_scores(queries, keys)
weights_789 = attention_weights(scores_789, d_k=2)

print("scores")
table(scores_789, rows=tokens, columns=tokens)
print("weights")
table(weights_789, rows=tokens, columns=tokens)
print("context vectors")
table(attention_v2(inputs), rows=tokens, columns=["0", "1"])

# %% tags=["raises-exception"]
torch.manual_seed(123)
other = SelfAttention_v2(d_in=3, d_out=2).to(device)
weights_123 = attention_weights(attention_scores(other.W_query(inputs), other.W_key(inputs)), d_k=2)

print("weights, seed 123")
table(weights_123, rows=tokens, columns=tokens)
print("context vectors, seed 123")
table(other(inputs), rows=tokens, columns=["0", "1"])

# %% [markdown]
# The same sentence, two untrained layers, two opinions: with the seed 789 every query prefers *Your*, with 123 *journey*. Neither
# knows anything.
#
# So train one. Suppose every word should find the word it belongs to: *Your* its noun *journey*, *journey* its verb *starts*,
# *starts* its noun *journey*, *with* and *one* their noun *step*, and *step* its number *one*. The context vector of a word should be the
# input of its partner. We keep the values equal to the inputs, so that you can see what is fetched, and train `W_query` and
# `W_key`.

# %%
# demonstration: trains the layer
partner = {"Your": "journey", "journey": "starts", "starts": "journey", "with": "step", "one": "step", "step": "one"}
target = inputs[[tokens.index(partner[token]) for token in tokens]]  # (6, 3)

torch.manual_seed(123)
trained = SelfAttention_v2(d_in=3, d_out=3, qkv_bias=True).to(device)
with torch.no_grad():
    trained.W_value.weight.copy_(torch.eye(3))
    trained.W_value.bias.zero_()


def loss_of_each_token(context):
    return (context - target).square().mean(dim=-1).detach()  # (6,)


mean_of_all = loss_of_each_token(inputs.mean(dim=0))
before_training = loss_of_each_token(trained(inputs))
optimizer = torch.optim.Adam([*trained.W_query.parameters(), *trained.W_key.parameters()], lr=0.5)
for _ in range(200):
    loss = (trained(inputs) - target).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
losses = torch.stack([mean_of_all, before_training, loss_of_each_token(trained(inputs))])  # (3, 6)
table(losses, rows=["mean of all inputs", "before training", "after training"], columns=tokens)

# %% tags=["raises-exception"]
@torch.no_grad()
def weights_of(layer, x):
    """The weights that your functions make in a layer: (n, d_in) -> (n, n)."""
    return attention_weights(attention_scores(layer.W_query(x), layer.W_key(x)), d_k=layer.W_key.out_features)


# %% jupyter={"source_hidden": true}
# demonstration: draws the figure
torch.manual_seed(123)
fresh = SelfAttention_v2(d_in=3, d_out=3, qkv_bias=True).to(device)
learned = weights_of(trained, inputs)  # (6, 6)
show(
    panels(
        heatmap(weights_of(fresh, inputs), tokens, tokens, title="before training", limits=(0, 1), bar=False),
        heatmap(learned, tokens, tokens, title="after training", limits=(0, 1)),
        size=(9.5, 4.4),
    ),
    "Two heatmaps of weights on one colour scale. Before training all lie near 0.17. After training with and one give nearly all "
    "their weight to step, and step to one; Your, journey and starts divide theirs between journey and starts.",
)

# %% [markdown]
# The loss of every token is now near zero. Before training it was about that of the mean of all inputs. *With* and *one* look at *step*, and *step*
# looks at *one*. *Your*, *journey* and *starts* divide their weight between *journey* and *starts*. That costs next to nothing: the two vectors are
# nearly equal, so either one, or any mixture of them, is nearly as good a partner.
#
# This layer has memorised six vectors. It has learned no grammar. A model learns that from many sentences.
#
# In the next figure, move the slider from query to query. The bars are the weights of its row. On the right are the
# values, drawn by their first two numbers and larger the more weight they get. The star is the context vector, their centre of mass.

# %% jupyter={"source_hidden": true}
# demonstration: draws the figure
def picture(query):
    row = learned[tokens.index(query)]  # (6,)
    parts = ", ".join(f"{token} {float(w):.2f}" for token, w in zip(tokens, row))
    return attention_picture(row, inputs[:, :2], tokens, query, widest=1.0), f"Weights of the query {query}: {parts}."


explore(picture, alt="For one query: bars of its six weights, and its values and context vector.", query=["step", "one", "with", "starts", "journey", "Your"])

# %% [markdown]
# The numbers in the matrices can also be carried from one layer to another. (PyTorch calls them *weights* too. They are parameters, not attention
# weights.) Can your first layer be made to give the output of the second?
#
# **Predict, then run.** What is the shape of the weight inside `nn.Linear(3, 2)`?

# %%
my_guess = None  # a pair of numbers

# %%
beside(my_guess, tuple(nn.Linear(3, 2).weight.shape))

# %% [markdown]
# The weight of `nn.Linear` has one row for each number that comes out: the layer computes `x @ weight.T + bias`.
#
# ### Exercise: `match_weights` (2 points)
#
# Change the three matrices of `v1`, a `SelfAttention_v1`, so that it gives the same output as `v2`, a `SelfAttention_v2`
# without bias. They may be new `nn.Parameter` objects. Afterwards both layers can learn, and they share nothing: changing one
# later must not change the other. `v2` stays as it was. The return value does not matter.
#
# PyTorch does not let you change a parameter in place while it records gradients. Inside `with torch.no_grad():` you may.
#
# The rubric calls your `SelfAttention_v1` and `SelfAttention_v2`, so get those right first.

# %% nbgrader={"grade": false, "grade_id": "match_weights", "locked": false, "schema_version": 3, "solution": true, "task": false}
def match_weights(v1, v2):
    """Give v1 the matrices of v2, so that v1(x) equals v2(x)."""
    ### BEGIN SOLUTION
    with torch.no_grad():
        v1.W_query.copy_(v2.W_query.weight.T)
        v1.W_key.copy_(v2.W_key.weight.T)
        v1.W_value.copy_(v2.W_value.weight.T)
    ### END SOLUTION

# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_match_weights", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("match_weights")  # the contract as a checklist; open this cell to read it
def _(r):
    v1, v2 = r.layer(SelfAttention_v1, d_in=3, d_out=2), r.layer(SelfAttention_v2, d_in=3, d_out=2)
    v1.parameters("W_query W_key W_value", "d_in d_out")
    v2.linear("W_query W_key W_value", "d_in -> d_out")
    copy = r.copies(match_weights, v1, v2, source=v2)
    copy.outputs("v1 gives the output of v2", r.normal(2, 3), r.normal(6, 3))
    copy.outputs("also when d_in and d_out are equal", 2 * r.normal(5, 4), d_in=4, d_out=4)
    copy.idea.shares_nothing("a later change of one does not reach the other", r.normal(5, 3))
    copy.shares_nothing("nothing is shared when d_out is 1 either", r.normal(5, 3), d_out=1)
    copy.keeps_source("v2 is unchanged", r.normal(4, 3))
    copy.learns("v1 still computes with matrices of its own, and they can learn", r.normal(5, 3))

# %% tags=["raises-exception"]
match_weights(attention_v1, attention_v2)
print("v1, after match_weights")
table(attention_v1(inputs), rows=tokens, columns=["0", "1"])
difference = (attention_v1(inputs) - attention_v2(inputs)).abs().max().item()
print("largest difference from v2 below 0.000001:", difference < 1e-6)

# %% [markdown]
# ## 8 Your code in the trained model
#
# Your layer has the same form as a head of the trained model. So give it the numbers of head 1.1. The model keeps the query matrices of a layer's four
# heads in one `nn.Linear` from 48 to 48 numbers. 12 rows of its weight belong to each head. Keys and values are kept the same way. Then let your
# functions read the four sentences about the bat.

# %% tags=["raises-exception"]
attention = model.layers()[LAYER].attention
rows = slice(12 * HEAD, 12 * HEAD + 12)
your_head = SelfAttention_v2(d_in=48, d_out=12)
with torch.no_grad():
    your_head.W_query.weight.copy_(attention.W_query.weight[rows])
    your_head.W_key.weight.copy_(attention.W_key.weight[rows])
    your_head.W_value.weight.copy_(attention.W_value.weight[rows])


@torch.no_grad()
def vectors(words):
    """The vectors that the model's first layer gets for these words, one row a word: (n, 48)."""
    return model.layers()[LAYER].norm1(model.embed(torch.tensor([encode(words)])))[0]


def looks_of_bat(model):
    """What that head of the model looks at from the word bat, for the four places: (4, 11)."""
    return torch.stack([attention_of(model, words)[LAYER, HEAD, -1] for words in beginnings])


yours = torch.stack([weights_of(your_head, vectors(words))[-1] for words in beginnings])  # (4, 11)
print("largest difference from the model's own weights below 0.000001:", (yours - looks_of_bat(model)).abs().max().item() < 1e-6)

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
columns = ["<end>", "Tom", "is", "in", "the", "(place)", ".", "he", "sees", "a", "bat"]
show(
    heatmap(yours, places, columns, title="Your functions, the trained head's matrices: what “bat” looks at", row_name="place", column_name="word", limits=(0, 1)),
    "Heatmap of the weights of bat in four sentences, computed by the student's functions: barn, gym and shop get 0.98, 0.91 "
    "and 0.97, cave 0.08.",
)

# %% [markdown]
# Those are the weights from part 1, now computed by `attention_scores` and `attention_weights`. The vector of *bat* that goes in is the same in all four
# sentences. What comes out is not. Here are the distances between the four context vectors of *bat*, and as a baseline those of
# a head with random weights.

# %% tags=["raises-exception"]
@torch.no_grad()
def distances(layer):
    """How far apart the four context vectors of bat are: (4, 4)."""
    bats = torch.stack([layer(vectors(words))[-1] for words in beginnings])  # (4, 12)
    return torch.cdist(bats, bats)


went_in = torch.stack([vectors(words)[-1] for words in beginnings])  # (4, 48)
print("largest distance between the four vectors that go in:", torch.cdist(went_in, went_in).max().item())
print("context vectors, trained head")
table(distances(your_head), rows=places, columns=places)
torch.manual_seed(123)
print("context vectors, random head")
table(distances(SelfAttention_v2(d_in=48, d_out=12)), rows=places, columns=places)

# %% [markdown]
# The trained head gives *bat* two kinds of context vector. The bats of the cave and the barn lie close together, and so do those of the gym and the
# shop; between the two groups the distance is about twice as large. The random head tells the sentences apart a little, but by chance, not by
# meaning: here *cave* is closest to *gym*. Change the seed, and it may be closest to another place.
#
# ## 9 What goes wrong in practice
#
# These mistakes are common, and none of them raises an error.
#
# **The softmax runs over the wrong dimension.** Then the columns add up to 1 instead of the rows.

# %% tags=["raises-exception"]
wrong = torch.softmax(scores_789 / 2**0.5, dim=0)
print("sums of the rows:   ", [round(s, 2) for s in wrong.sum(dim=1).tolist()])
print("sums of the columns:", [round(s, 2) for s in wrong.sum(dim=0).tolist()])

# %% [markdown]
# **The scale is missing, or it is the wrong number.** On the six small vectors the output hardly moves. On the trained head it moves by
# more than half of its largest number. So test attention on inputs that are spread out, as the rubrics here do.

# %% tags=["raises-exception"]
@torch.no_grad()
def moved_by(layer, x, scale):
    """The largest change of an output, as a share of the largest one, when the scores are divided by this instead of sqrt(d_k)."""
    weights = torch.softmax(layer.W_query(x) @ layer.W_key(x).T / scale, dim=-1)
    return ((weights @ layer.W_value(x) - layer(x)).abs().max() / layer(x).abs().max()).item()


for name, layer, x, d_k in (("six tokens", attention_v2, inputs, 2), ("trained head", your_head, vectors(beginnings[2]), 12)):
    print(f"{name:>12}: no scale {moved_by(layer, x, 1.0):.4f}    d_k without the root {moved_by(layer, x, d_k):.4f}")

# %% [markdown]
# **The picture's rows and columns are mixed up.** Label both axes. The rows are the queries: they add up to 1.
#
# **Word order is taken for granted.** Attention without a mask does not know it. Shuffle the words, and every word keeps its context vector. (With the
# mask of lesson 02 this is no longer so: which words a word sees then depends on the order.) The trained model also adds to each word's vector, before
# the first layer, a vector for the word's position.

# %% tags=["raises-exception"]
order = [5, 3, 0, 4, 1, 2]
print("in the new order:", " ".join(tokens[i] for i in order))
moved = (attention_v2(inputs[order]) - attention_v2(inputs)[order]).abs().max().item()
print("every word keeps its context vector:", moved < 1e-6)

# %% [markdown]
# ## Summary
#
# - **Scores** are dot products of queries with keys, (n, m). Row i belongs to query i.
# - **Weights** are the softmax of the scores over the keys, after division by the square root of the key size. Each row adds up to 1. For independent
#   numbers of variance 1, the divided scores have a standard deviation of 1 at every key size. So among random keys hardly any query gives nearly
#   everything to one key, and hardly any is left without a gradient.
# - **Context vectors** are weighted sums of the values: row i of the weights gives context vector i.
# - `W_query`, `W_key` and `W_value` are what is learned. `nn.Linear` stores them transposed.
# - A weight shows where a head looks. To see whether the model needs the head, switch it off. A head that it can do without may still be used.
#
# **A loose end.** You compared only one row with the model: that of *bat*, the last word. The other rows do not agree.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: draws the figure
words = beginnings[2]
hidden = torch.ones(11, 11).triu(diagonal=1) == 1
show(
    panels(
        heatmap(attention_of(model, words)[LAYER, HEAD], words, words, title="the model", hidden=hidden, limits=(0, 1), bar=False),
        heatmap(weights_of(your_head, vectors(words)), words, words, title="your functions", limits=(0, 1)),
        size=(12, 5.6),
    ),
    "Two heatmaps of the whole sentence with gym. In the model's, everything above the diagonal is hidden: no word looks at a later one. "
    "In the one of your functions words look ahead. Only the last rows agree.",
)

# %% [markdown]
# In your picture, words look at words that come after them. The model's do not: everything above the diagonal is hidden. A model that writes word by
# word must not look at words that are not written yet. Lesson 02 hides them.
#
# ## Further reading
#
# - Raschka, *Build a Large Language Model (From Scratch)*, 2024, chapter 3: the example of part 2, and a longer way from there.
# - Vaswani et al., *Attention Is All You Need*, 2017, section 3.2.1: scaled dot-product attention, and in a footnote the argument about
#   the variance of q · k.
# - Bahdanau, Cho and Bengio, *Neural Machine Translation by Jointly Learning to Align and Translate*, 2015: attention before there
#   were transformers.
# - Jain and Wallace, *Attention is not Explanation*, 2019, and Wiegreffe and Pinter, *Attention is not not Explanation*, 2019: how far
#   pictures of weights can be trusted.
# - Milakov and Gimelshein, *Online normalizer calculation for softmax*, 2018: how the stable softmax is computed in one pass. Lesson 08
#   comes back to it.
