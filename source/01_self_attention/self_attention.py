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
# A word alone says little. *Step* means one thing after *dance* and another after *journey*.
# Self-attention lets every word of a sentence look at all the others and take from each as much as
# it needs. At the end of this lesson you will have built it, first by hand, then as a PyTorch layer
# that can be trained.
#
# **You will be able to**
# - compute attention scores, weights and context vectors, and say what their rows and columns mean;
# - say why the scores are divided by the square root of the key size, and show it by measuring;
# - write self-attention as an `nn.Module`, once with bare parameters and once with `nn.Linear`.
#
# **It builds on** matrix products, mean and standard deviation, and PyTorch tensors and modules.
#
# | part | minutes |
# |---|---|
# | 1 Which words are alike? | 10 |
# | 2 From scores to weights | 15 |
# | 3 Why the scores are scaled | 20 |
# | 4 Context vectors | 5 |
# | 5 Query, key and value | 15 |
# | 6 The same layer with `nn.Linear` | 20 |
# | 7 What goes wrong in practice, summary | 5 |
# | together | 90 |
#
# **How it works**
# - Run the cells from top to bottom with Shift+Enter. Some cells only draw a figure; their code is
#   folded away, click ••• to see it. Run them too.
# - In an exercise, replace `raise NotImplementedError()` by your code and run the cell. Then run the
#   **rubric** cell below it. It calls your code on drawn numbers and answers line by line.
# - Stuck? Run `hint("attention_scores")` in a cell of your own, with the name of the exercise: one
#   hint each time. After a wrong answer, run the rubric again or ask `why("attention_scores")`: if it
#   is one of the known mistakes, you are told which.
# - Three things hold for every function and are checked for each: float64 in gives float64 out, gradients
#   pass, and the arguments are left as they were.
# - To see how far you are, run `from autograde.notebook import progress; progress()` in a cell of your own.
# - At the end choose *Restart Kernel and Run All*, save, and press *Validate*.
#
# *Opened alone, in a hosted notebook service?* Get the file `attention_notebooks-….whl` from where you got this lesson, put
# it beside the notebook, and run `%pip install attention_notebooks-*.whl` in a new cell above the others.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
import os

import matplotlib.pyplot as plt
import torch
from torch import nn

from autograde.notebook import attention_picture, beside, chart, explore, heatmap, hint, panels, progress, rubric, show, table, why

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
# ## 1 Which words are alike?
#
# Here is the sentence of the whole course: *Your journey starts with one step.* A model reads it in
# **tokens**, pieces of text; here each word is one. Each token is a vector of three numbers. The numbers are made up, and small enough to check by hand.
# A trained model has learned them, and has some hundreds or thousands for each token.

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
# The **dot product** of two vectors measures how much they point the same way: multiply number by
# number, and add up. For *journey* and *starts*:
#
# ```
# 0.55 · 0.57  +  0.87 · 0.85  +  0.66 · 0.64  =  1.4754
# ```
#
# It is large when the vectors point the same way. It is also large when the vectors are long.
#
# **Predict, then run.** Take each token in turn and compute its dot product with all six, with itself
# as well. How many of the six tokens get their largest number with themselves? Write your guess into
# the next cell. It is not marked. A guess that turns out wrong is the one you remember.

# %%
my_guess = None  # a number from 0 to 6

# %%
dots = [[float(a @ b) for b in inputs] for a in inputs]
winners = [tokens[row.index(max(row))] for row in dots]
for token, winner in zip(tokens, winners):
    print(f"{token:>8} has its largest dot product with {winner}")
beside(my_guess, sum(token == winner for token, winner in zip(tokens, winners)))

# %% [markdown]
# Two do. The other four prefer another token, and three of them prefer *journey*, whose vector is the longest
# of the six. Length counts. So a dot product is not a measure of likeness alone. Keep that in mind.
#
# ### Exercise: `attention_scores` (2 points)
#
# Two loops are slow, and they hide what happens. All dot products at once are one matrix product.
# The token that looks is the **query**, the token that is looked at is the **key**:
#
# ```
# queries (n, d_k)      keys (m, d_k)      scores (n, m)
#                                          scores[i, j] = query i · key j
# ```
#
# There are n queries and m keys, with `d_k` numbers in each; n and m may differ. Return the dot products as
# they are, not divided by anything.

# %% nbgrader={"grade": false, "grade_id": "attention_scores", "locked": false, "schema_version": 3, "solution": true, "task": false}
def attention_scores(queries, keys):
    """Dot product of every query with every key: (n, d_k), (m, d_k) -> (n, m)."""
    ### BEGIN SOLUTION
    return queries @ keys.T
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_attention_scores", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
# The rubric of `attention_scores`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("attention_scores")
def _(r):
    r.each("entry [i, j] is query i · key j", attention_scores, (r.normal(2, 3), r.normal(4, 3)), (r.normal(7, 5), r.normal(7, 5)))
    r.each("one query, one key, keys of one number", attention_scores, (r.normal(1, 4), r.normal(1, 4)), (r.normal(3, 1), r.normal(2, 1)))
    r.call("as many keys as numbers in a key, large scores", attention_scores, 9 * r.normal(3, 4), 9 * r.normal(4, 4))
    r.conventions(attention_scores, r.normal(3, 2), r.normal(4, 2))

# %% [markdown]
# Now your code draws the picture. Row i is query i, column j is key j. Look along the row of *step*:
# its largest score is in the column of *journey*.

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
# ## 2 From scores to weights
#
# A score can be any number. To mix tokens we want shares instead: no share below zero, and all shares
# of a row adding up to 1. The **softmax** makes shares of scores. It takes `exp` of every score,
# which makes it positive, and divides by the sum:
#
# ```
# weight j  =  exp(score j)  /  (exp(score 0) + exp(score 1) + … )
# ```

# %%
def naive_softmax(x):
    return x.exp() / x.exp().sum(dim=-1, keepdim=True)


table(naive_softmax(inputs @ inputs.T), rows=tokens, columns=tokens)

# %% [markdown]
# **Predict, then run.** What does `naive_softmax` give for the scores 1, 2 and 1000? The last one is
# so much larger that it should take everything.

# %%
my_guess = None  # a list of three numbers

# %%
beside(my_guess, naive_softmax(torch.tensor([1.0, 2.0, 1000.0])).tolist())
print("exp(88) =", torch.tensor(88.0).exp().item(), "   exp(89) =", torch.tensor(89.0).exp().item())

# %% [markdown]
# In float32 `exp(89)` is already infinite, and infinite divided by infinite is `nan`: not a number.
# One `nan` in a layer spreads to everything that is computed from it.
#
# The way out costs one line. Subtract the same number c from every score of a row. Then every
# `exp` shrinks by the same factor `exp(c)`, above and below the fraction bar, and the weights do not change.
# Take the largest score of the row for c: then the largest `exp` is `exp(0) = 1`.
#
# ### Exercise: `stable_softmax` (3 points)
#
# Write the softmax over any one dimension of a tensor with any number of dimensions. `dim` may be
# negative, counted from the end. Numbers of ±10,000 must not give `inf` or `nan`, also when one row
# holds numbers near 10,000 and the next row numbers near -10,000.
#
# Write it from `exp` and sums. PyTorch's ready-made `softmax` and `log_softmax` are not allowed here,
# nor what is built on them (`softmin`, `cross_entropy`, `scaled_dot_product_attention`): with them
# the exercise gives no points. `logsumexp` is allowed.

# %% nbgrader={"grade": false, "grade_id": "stable_softmax", "locked": false, "schema_version": 3, "solution": true, "task": false}
def stable_softmax(x, dim=-1):
    """Softmax of x over dimension dim; same shape as x."""
    ### BEGIN SOLUTION
    largest = x.amax(dim=dim, keepdim=True)
    powers = (x - largest).exp()
    return powers / powers.sum(dim=dim, keepdim=True)
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_stable_softmax", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
# The rubric of `stable_softmax`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("stable_softmax", forbids=["softmax", "softmin", "cross_entropy", "scaled_dot_product_attention"])
def _(r):
    far = 1e4 * r.signs(6)
    r.each("softmax over the last dimension", stable_softmax, (r.normal(3),), (2 * r.normal(4, 5).round(),), (r.normal(2, 4, 3).mT,))
    r.each("over any other dim", stable_softmax, (r.normal(3, 2), 0), (100 + 9 * r.normal(2, 7, 3, 5), 1), (3 * r.normal(4, 6, 5), -2))
    rows = (r.normal(6, 3) + far[:, None],), (r.normal(3, 6) + far, -2), (r.normal(6, 4, 3) + far[:, None, None], 1)
    r.idea.each("no inf or nan for numbers of ±10,000, in one row or from row to row", stable_softmax, (far[:3],), (1e4 * r.uniform(8),), *rows)
    r.forbids("is written from exp and sums", stable_softmax)
    r.conventions(stable_softmax, r.normal(4, 6) + 200 * r.signs(6), -2)

# %% [markdown]
# Here is your softmax on the scores of the query *journey*, first divided by 4, then as they are,
# then times 4 and times 16. The same order of tokens, but a different sharpness.

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
# ## 3 Why the scores are scaled
#
# Small scores give nearly equal weights, large scores give nearly all weight to one token. So how
# large are scores? That depends on how many numbers a key has. Let the vectors q and k have `d_k`
# numbers each, all drawn from a normal distribution with mean 0 and standard deviation 1. The spread of q · k
# is its standard deviation.
#
# **Predict.** When `d_k` goes from 4 to 64, by what factor does the spread of q · k grow? The answer
# comes after the exercise, from your own measurement.

# %%
my_guess = None  # a number

# %% [markdown]
# ### Exercise: `dot_product_std` (2 points)
#
# Find out by measuring. Draw `n_samples` pairs of q and k, each with `d_k` numbers from `torch.randn`.
# Compute the `n_samples` dot products. Return their standard deviation, as a Python float.
#
# ```
# q (n_samples, d_k)      k (n_samples, d_k)      q · k, pair by pair (n_samples,)
# ```
#
# All random numbers come from `generator`: `torch.randn(..., generator=generator)`. With it a
# measurement can be repeated. `generator` may also be `None`; `torch.randn` then uses PyTorch's own. A
# measurement scatters. Do not return a formula.

# %% nbgrader={"grade": false, "grade_id": "dot_product_std", "locked": false, "schema_version": 3, "solution": true, "task": false}
def dot_product_std(d_k, n_samples, generator):
    """Standard deviation of q·k over n_samples random pairs of d_k numbers each: a float."""
    ### BEGIN SOLUTION
    q = torch.randn(n_samples, d_k, generator=generator)
    k = torch.randn(n_samples, d_k, generator=generator)
    return (q * k).sum(dim=1).std().item()
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_dot_product_std", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
# The rubric of `dot_product_std`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("dot_product_std")
def _(r):
    r.sample("is close to sqrt(d_k), and never the same number twice", "near_root", dot_product_std, r.integer(40, 90), 8000, times=2)
    r.idea.sample("scatters from run to run as a measurement does", "scatters_about_root", dot_product_std, r.integer(7, 9), 400, times=600)
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
    axes.plot(sizes, [math.sqrt(d_k) for d_k in sizes], "--", color="0.4", label="square root of d_k")
    axes.plot(sizes, measured, "o", color="#1f6f8b", label="measured by your function")
    axes.set(xlabel="d_k, numbers in a key", ylabel="standard deviation of q · k",
             title="The spread of a dot product grows with the key size")
    axes.legend()
    return figure


show(
    chart(spread_chart, sizes, spreads),
    "Measured standard deviations of q times k for nine key sizes from 1 to 256. The points lie on "
    "the dashed curve of the square root: 2 at a key size of 4, 8 at 64, 16 at 256.",
)

# %% [markdown]
# The key size grew 16 times, the spread only 4 times: it is the square root of `d_k`. The reason is short. Each
# product of two such numbers has variance 1, and variances of independent numbers add: the sum of `d_k` of them has variance
# `d_k`, so its standard deviation is the square root.
#
# Divide the scores by that root, and their spread is 1 whatever the key size. The next figure shows what that
# changes: six random keys, and the largest of the six weights, averaged over 500 queries.

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
    "Mean largest weight against the key size. Without the scale it climbs from 0.37 to 0.95 at a "
    "key size of 256; with the scale it stays near 0.42 at every size.",
)

# %% [markdown]
# A softmax that gives nearly everything to one key hardly changes when the scores change a little. So little of
# the gradient gets through. Here is the gradient of the largest weight at its own score, averaged over 500 queries.

# %% tags=["raises-exception"]
def gradient_of_largest(d_k, scale):
    q = torch.randn(500, 1, d_k, generator=generator)
    k = torch.randn(500, 6, d_k, generator=generator)
    random_scores = ((q * k).sum(dim=-1) / scale).requires_grad_()  # (500, 6)
    stable_softmax(random_scores, dim=-1).amax(dim=-1).sum().backward()
    return random_scores.grad.amax(dim=-1).mean().item()


print(f"d_k = 256, without the scale: {gradient_of_largest(256, 1.0):.2f}")
print(f"d_k = 256, with the scale:    {gradient_of_largest(256, 16.0):.2f}")

# %% [markdown]
# Several times less gets through without the scale, and the layer learns that much more slowly. That is why the
# scale is there.
#
# ### Exercise: `attention_weights` (2 points)
#
# Put the two steps together: divide by the square root of `d_k`, then take the softmax over the keys,
# so that every row adds up to 1. Use your `stable_softmax` or `torch.softmax`, as you like.
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
# The rubric of `attention_weights`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("attention_weights")
def _(r):
    r.each("softmax over the keys of scores / sqrt(d_k)", attention_weights, (2 * r.normal(2, 3), 4), (2 * r.normal(5, 8).round(), 3))
    r.call("as many queries as keys", attention_weights, 3 * r.normal(6, 6), 10)
    r.each("one key, one query, a key of one number", attention_weights, (r.normal(3, 1), 4), (r.normal(1, 4), 4), (r.normal(4, 3), 1))
    r.each("large keys, scores in the thousands", attention_weights, (40 * r.normal(3, 4), 512), (1e4 * r.uniform(8, 7), 5))
    r.conventions(attention_weights, 2 * r.normal(3, 4), 6)

# %% tags=["raises-exception"]
weights = attention_weights(scores, d_k=3)  # (6, 6)

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
show(
    heatmap(weights, tokens, tokens, title="Attention weights: each row adds up to 1", limits=(0, 0.5)),
    "Heatmap of the six by six attention weights. All lie between 0.12 and 0.21. In most rows "
    "journey and starts get the most.",
)

# %% [markdown]
# ## 4 Context vectors
#
# The weights say how much each query takes from each token. What it takes are vectors, the **values**.
# So far the values are the inputs themselves. The weighted sum of the values is the **context
# vector** of the query: the token, seen in its sentence.
#
# ### Exercise: `context_vectors` (1 point)
#
# ```
# weights (n, m)      values (m, d_v)      context (n, d_v)
#                                          context[i] = sum over j of weights[i, j] · value j
# ```
#
# Use the weights as they are given, whatever their rows add up to. In lesson 04 they will not add up to 1.

# %% nbgrader={"grade": false, "grade_id": "context_vectors", "locked": false, "schema_version": 3, "solution": true, "task": false}
def context_vectors(weights, values):
    """Weighted sum of the values for each query: (n, m), (m, d_v) -> (n, d_v)."""
    ### BEGIN SOLUTION
    return weights @ values
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_context_vectors", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
# The rubric of `context_vectors`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("context_vectors")
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
# The six context vectors are nearly the same. Look at the weights again and you see why: they are nearly equal, so every
# query takes nearly the same mixture. Nothing here has learned to choose.
#
# ## 5 Query, key and value
#
# Two things are missing.
#
# 1. **Nothing can be learned.** There is no parameter anywhere.
# 2. **The scores are symmetric.** What *one* asks of *step* is what *step* asks of *one*. In language
#    an adjective looks for its noun, and the noun need not look back.

# %% tags=["raises-exception"]
print("largest difference between the scores and their transpose:", (scores - scores.T).abs().max().item())

# %% [markdown]
# The answer to both is three matrices, and they are what is learned. Each token is multiplied by each
# of them, and so plays three parts:
#
# ```
# query = x W_query     what I am looking for
# key   = x W_key       what I can be found by
# value = x W_value     what I hand over when I am found
# ```
#
# ### Exercise: `SelfAttention_v1` (3 points)
#
# Your functions become a layer. In `__init__`, make `W_query`, `W_key` and `W_value`, each an
# `nn.Parameter(torch.rand(d_in, d_out))`. In `forward`, use `attention_scores`, `attention_weights` and
# `context_vectors`, or compute the same in your own way.
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
# The rubric of `SelfAttention_v1`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("SelfAttention_v1")
def _(r):
    layer = r.layer(SelfAttention_v1, d_in=3, d_out=2)
    layer.parameters("W_query W_key W_value", "d_in d_out")
    layer.outputs("gives the context vectors of any number of tokens", r.normal(2, 3), r.normal(1, 3), 2 * r.normal(6, 3))
    layer.idea.outputs("for any d_in and d_out", 2 * r.normal(6, 7), d_in=7, d_out=5)
    layer.outputs("as many tokens as numbers, in and out", 2 * r.normal(4, 4), d_in=4, d_out=4)
    layer.starts_uniform("its matrices start from torch.rand, each from its own", d_in=40, d_out=30)
    layer.conventions(r.normal(6, 3))

# %% tags=["raises-exception"]
torch.manual_seed(123)
attention_v1 = SelfAttention_v1(d_in=3, d_out=2).to(device)
table(attention_v1(inputs), rows=tokens, columns=["0", "1"])

# %% [markdown]
# Every context vector now has two numbers, so that it can be drawn. Below, move the slider from query to query. The
# bars are the weights of its row. On the right are the six values, the larger the more weight they get,
# and the star is the context vector: their centre of mass.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
def picture(query):
    with torch.no_grad():
        queries, keys, values = (
            inputs @ matrix for matrix in (attention_v1.W_query, attention_v1.W_key, attention_v1.W_value)
        )
        row = attention_weights(attention_scores(queries, keys), d_k=2)[tokens.index(query)]  # (6,)
    parts = ", ".join(f"{token} {float(w):.2f}" for token, w in zip(tokens, row))
    return attention_picture(row, values, tokens, query, widest=0.25), f"Weights of the query {query}: {parts}."


explore(picture, alt="For one query: bars of its six weights, and its values and context vector.", query=tokens)

# %% [markdown]
# The star hardly moves from query to query. Three random matrices do not choose either; training will.
#
# ## 6 The same layer with `nn.Linear`
#
# In practice nobody writes the three matrices by hand. `nn.Linear(d_in, d_out)` holds one, starts it with
# small numbers that train better than those of `torch.rand`, and adds a bias if you want one.
#
# ### Exercise: `SelfAttention_v2` (3 points)
#
# The same layer: `W_query`, `W_key` and `W_value` are `nn.Linear` layers now, with a bias only when
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
# The rubric of `SelfAttention_v2`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("SelfAttention_v2")
def _(r):
    layer = r.layer(SelfAttention_v2, d_in=3, d_out=2, qkv_bias=False)
    layer.linear("W_query W_key W_value", "d_in -> d_out", bias="qkv_bias")
    layer.outputs("gives the context vectors of any number of tokens", r.normal(2, 3), r.normal(1, 3), 2 * r.normal(6, 3))
    layer.idea.outputs("for any d_in and d_out, with a bias if asked for", 2 * r.normal(6, 7), d_in=7, d_out=5, qkv_bias=True)
    layer.outputs("as many tokens as numbers, in and out", 2 * r.normal(4, 4), d_in=4, d_out=4)
    layer.made_of("W_query, W_key and W_value are nn.Linear")
    layer.conventions(r.normal(6, 3))

# %% [markdown]
# Two layers from two seeds, on the same sentence. First seed 789: scores, weights and context vectors.

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

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
show(
    panels(
        heatmap(weights_789, tokens, tokens, title="Weights, seed 789", limits=(0.14, 0.21), bar=False),
        heatmap(weights_123, tokens, tokens, title="Weights, seed 123", limits=(0.14, 0.21)),
        size=(11, 4.6),
    ),
    "Two heatmaps of attention weights on one colour scale. With seed 789 every query gives most "
    "to the token Your; with seed 123 most goes to journey and starts. Neither is symmetric.",
)

# %% [markdown]
# The same sentence, two untrained layers, two opinions. Neither knows anything yet. So train one. For every token
# but the first, the context vector shall become the input of the token before it. The values are kept equal to the
# inputs, so that one sees where a vector is taken from; `W_query` and `W_key` learn.

# %% tags=["raises-exception"]
torch.manual_seed(123)
trained = SelfAttention_v2(d_in=3, d_out=3, qkv_bias=True).to(device)
with torch.no_grad():
    trained.W_value.weight.copy_(torch.eye(3))
    trained.W_value.bias.zero_()
target = inputs[:-1]  # (5, 3): what stands before journey, starts, with, one, step
optimizer = torch.optim.Adam([*trained.W_query.parameters(), *trained.W_key.parameters()], lr=0.5)
losses = []
for _ in range(200):
    loss = (trained(inputs)[1:] - target).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(f"loss before: {losses[0]:.2f}    after: {losses[-1]:.2f}")

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
with torch.no_grad():
    learned = attention_weights(attention_scores(trained.W_query(inputs), trained.W_key(inputs)), d_k=3)
show(
    heatmap(learned, tokens, tokens, title="Weights after training", limits=(0, 1)),
    "Heatmap of the weights after training. Journey gives 0.92 to Your and step 0.99 to one, the tokens "
    "before them. Starts and with divide their weight between journey and starts. One gives most to step.",
)

# %% [markdown]
# It has learned to choose. *Journey* looks at *Your*, and *step* looks at *one*: the words before them. *Starts* and *with*
# divide their weight between *journey* and *starts*, whose vectors are nearly the same. What cannot be told apart
# cannot be chosen apart. Only *one* has found another way: it mixes its vector from *step* and *journey*.
#
# Can the first layer be made to say what the second says? Then it needs the second layer's matrices.
#
# **Predict, then run.** What is the shape of the matrix in `nn.Linear(3, 2)`?

# %%
my_guess = None  # a pair of numbers

# %%
beside(my_guess, tuple(nn.Linear(3, 2).weight.shape))

# %% [markdown]
# ### Exercise: `match_weights` (2 points)
#
# Change the three matrices of `v1`, a `SelfAttention_v1`, so that it gives the same output as `v2`, a
# `SelfAttention_v2` without bias. They may be new `nn.Parameter` objects. Afterwards the two are
# strangers: a later change of one must not reach the other, and `v2` stays as it was. What you return does not matter.
#
# PyTorch does not let you change a parameter in place while it records gradients. Inside
# `with torch.no_grad():` you may.
#
# The rubric calls your `SelfAttention_v1` and `SelfAttention_v2`, so they must be right first.

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
# The rubric of `match_weights`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("match_weights")
def _(r):
    v1, v2 = r.layer(SelfAttention_v1, d_in=3, d_out=2), r.layer(SelfAttention_v2, d_in=3, d_out=2)
    v1.parameters("W_query W_key W_value", "d_in d_out")
    v2.linear("W_query W_key W_value", "d_in -> d_out")
    copy = r.copies(match_weights, v1, v2, source=v2)
    copy.outputs("v1 gives the output of v2", r.normal(2, 3), r.normal(6, 3))
    copy.outputs("also when d_in and d_out are equal", 2 * r.normal(5, 4), d_in=4, d_out=4)
    copy.idea.shares_nothing("a later change of one does not reach the other", r.normal(5, 3))
    copy.keeps_source("v2 is unchanged", r.normal(4, 3))
    copy.learns("v1 still computes with matrices of its own, and they can learn", r.normal(5, 3))

# %% tags=["raises-exception"]
match_weights(attention_v1, attention_v2)
print("v1, after match_weights")
table(attention_v1(inputs), rows=tokens, columns=["0", "1"])
difference = (attention_v1(inputs) - attention_v2(inputs)).abs().max().item()
print("largest difference to v2 below 0.000001:", difference < 1e-6)

# %% [markdown]
# ## 7 What goes wrong in practice
#
# These mistakes are common. None of them raises an error.
#
# **The softmax runs over the wrong dimension.** Then the columns add up to 1 instead of the rows, and a
# query may take more than a whole, or less.

# %% tags=["raises-exception"]
wrong = torch.softmax(scores_789 / 2**0.5, dim=0)
print("sums of the rows:   ", [round(s, 2) for s in wrong.sum(dim=1).tolist()])
print("sums of the columns:", [round(s, 2) for s in wrong.sum(dim=0).tolist()])

# %% [markdown]
# **The scale is missing, or it is the wrong number.** On this small sentence one hardly sees it. Below, the output
# moves by less than 0.002. A test with loose tolerances and a small example passes. So the rubrics here use
# larger numbers than the lesson does.

# %% tags=["raises-exception"]
values = attention_v2.W_value(inputs)
right = attention_v2(inputs)
for name, scale in {"no scale": 1.0, "d_in instead of d_k": 3**0.5, "d_k without the root": 2.0}.items():
    moved = torch.softmax(scores_789 / scale, dim=-1) @ values
    print(f"{name:>22}: the output moves by at most {(moved - right).abs().max().item():.4f}")

# %% [markdown]
# **Rows and columns of the picture are mixed up.** Label both axes. The rows are the queries: they are what adds up to 1.
#
# **Word order is taken for granted.** This layer does not know it. Put the words in another order, and every
# word keeps its context vector. Models add the position to the inputs; lesson 07 does.

# %% tags=["raises-exception"]
order = [5, 3, 0, 4, 1, 2]
print("in the new order:", " ".join(tokens[i] for i in order))
moved = (attention_v2(inputs[order]) - attention_v2(inputs)[order]).abs().max().item()
print("every word keeps its context vector:", moved < 1e-6)

# %% [markdown]
# ## Summary
#
# - **Scores** are dot products of queries with keys, (n, m). Row i belongs to query i.
# - **Weights** are the softmax of the scores over the keys, after division by the square root of the
#   key size. Each row adds up to 1. The division keeps the spread of the scores at 1.
# - **Context vectors** are sums of the values, weighted by one row each.
# - `W_query`, `W_key` and `W_value` are what is learned. `nn.Linear` stores them transposed.
#
# **A loose end.** Look at the first row of the weights with seed 789, in part 6. *Your* is the first word. Still it gives *step*, the last
# word, a weight of 0.15. A model that writes a sentence word by word cannot do that: the last word is not there
# yet. Lesson 02 hides the future.
#
# ## Further reading
#
# - Vaswani et al., *Attention Is All You Need*, 2017, section 3.2.1: scaled dot-product attention, and in a
#   footnote the argument about the variance of q · k.
# - Bahdanau, Cho and Bengio, *Neural Machine Translation by Jointly Learning to Align and Translate*, 2015:
#   attention before there were transformers.
# - Milakov and Gimelshein, *Online normalizer calculation for softmax*, 2018: how the stable softmax
#   is computed in one pass. Lesson 08 comes back to it.
