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

from autograde.notebook import attention_picture, beside, chart, explore, heatmap, hint, panels, show, table, why

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


# %% nbgrader={"grade": true, "grade_id": "test_attention_scores", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
from autograde.notebook import rubric


@rubric("attention_scores")
def _rubric(r):
    r.call("five queries, eight keys", attention_scores, r.normal(5, 7), r.normal(8, 7))
    r.call("one query, one key", attention_scores, r.normal(1, 9), r.normal(1, 9))
    r.call("keys of one number", attention_scores, r.normal(6, 1), r.normal(5, 1))
    r.call("as many keys as numbers in a key", attention_scores, r.normal(9, 7), r.normal(7, 7))
    r.call("as many queries as keys", attention_scores, r.normal(8, 5), r.normal(8, 5))
    zero_sum = r.normal(6, 5, dtype=torch.float64)
    zero_sum = 100 * (zero_sum - zero_sum.mean(dim=0))  # what float32 rounds off 10,000 is seen
    r.call("large numbers in float64, stored by columns", attention_scores,
           1e4 + r.normal(6, 8, dtype=torch.float64).T, zero_sum.T)
    r.gradient("lets gradients through", attention_scores, r.normal(7, 6), r.normal(4, 6))
    r.arguments("leaves its arguments as they were")

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


# %% nbgrader={"grade": true, "grade_id": "test_stable_softmax", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
from autograde.notebook import rubric


@rubric("stable_softmax", forbids=["softmax", "softmin", "cross_entropy", "scaled_dot_product_attention"])
def _rubric(r):
    far = 1e4 * r.normal(6).sign()
    far[0], far[1] = 1e4, -1e4

    whole = r.normal(9).round()
    whole[4] = 0

    r.call("one row of whole numbers", stable_softmax, whole)
    r.call("a matrix, over its columns (dim=0)", stable_softmax, r.normal(8, 7), 0)
    r.call("four dimensions, over the second (dim=1)", stable_softmax, 300 + 20 * r.normal(2, 7, 3, 5), dim=1)
    r.call("numbers 20,000 apart in one row", stable_softmax, 1e4 * r.uniform(8))
    r.call("rows 20,000 apart", stable_softmax, r.normal(6, 9) + far[:, None])
    r.call("columns 20,000 apart (dim=-2), in float64", stable_softmax, r.normal(8, 6, dtype=torch.float64) + far, dim=-2)
    r.call("three dimensions, over the middle one (dim=-2)", stable_softmax,
           20 * r.normal(4, 8, 1) + far[:4, None, None] / 10, dim=-2)
    r.call("a matrix stored by columns", stable_softmax, 3 * r.normal(8, 5).T, dim=1)
    r.gradient("lets gradients through, also columns 20,000 apart", stable_softmax, r.normal(7, 6) + far, dim=-2)
    r.forbids("is written from exp and sums", stable_softmax)
    r.arguments("leaves its argument as it was")

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


# %% nbgrader={"grade": true, "grade_id": "test_dot_product_std", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
from autograde.notebook import rubric


@rubric("dot_product_std")
def _rubric(r):
    from builtins import enumerate, float, isinstance, range, type

    first, second = r.integer(1, 10**6), r.integer(10**6 + 1, 10**7)

    def measure(d_k, n_samples, seed):
        return dot_product_std(d_k, n_samples, torch.Generator().manual_seed(seed))

    def float_measure(d_k, n_samples, seed):
        return float(measure(d_k, n_samples, seed))

    def two_measures(d_k, n_samples, seed):
        return [float_measure(d_k, n_samples, seed), float_measure(d_k, n_samples, seed + 1)]

    def with_global_seed(seed, generator):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return float(dot_product_std(5, 30, generator))

    def one_state(seed):
        used, fresh = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed)
        return [with_global_seed(i, generator) for i, generator in enumerate((used, fresh, used))]

    def no_generator(*seeds):
        return [with_global_seed(s, None) for s in seeds]

    def keeps_state(seed):
        state = torch.get_rng_state()
        measure(4, 9, seed)
        return torch.equal(torch.get_rng_state(), state)

    def kind_of_result(seed):
        result = measure(4, 9, seed)
        return "float" if isinstance(result, float) else type(result).__name__

    r.check("spread of keys with many numbers", "measures_std", two_measures,
            d_k=r.integer(40, 90), n_samples=8000, seed=second)
    r.check("keys with few numbers: measurements scatter about the spread", "scatters",
            lambda d_k, n_samples, seed, repeats:
                [float_measure(d_k, n_samples, seed + i) for i in range(repeats)],
            d_k=r.integer(7, 9), n_samples=400, seed=first, repeats=600)
    r.check("same generator state, same number", "follows_generator", one_state, first)
    r.check("generator=None draws from torch's own", "follows_generator", no_generator, first, first, second)
    r.call("two samples of one number are enough", lambda seed: 0 < float_measure(1, 2, seed) < float("inf"), second)
    r.call("leaves PyTorch's own random state alone", keeps_state, first)
    r.call("returns a Python float", kind_of_result, first)

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


# %% nbgrader={"grade": true, "grade_id": "test_attention_weights", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
from autograde.notebook import rubric


@rubric("attention_weights")
def _rubric(r):
    r.call("five queries, eight keys", attention_weights, (2 * r.normal(5, 8)).round(), d_k=3)
    r.call("as many queries as keys", attention_weights, 3 * r.normal(7, 7), 10)
    r.call("one key alone", attention_weights, 2 * r.normal(6, 1), 4)
    r.call("one query alone", attention_weights, 2 * r.normal(1, 6), 4)
    r.call("a key of one number", attention_weights, r.normal(9, 7), 1)
    r.call("large scores and large keys", attention_weights, 40 * r.normal(7, 9), 512)
    r.call("scores in the thousands", attention_weights, 1e4 * r.uniform(8, 7), 5)
    r.call("float64, stored by columns", attention_weights, 1e4 + 2 * r.normal(9, 6, dtype=torch.float64).T, 7)
    r.gradient("lets gradients through", attention_weights, r.normal(4, 7), 6)
    r.arguments("leaves its arguments as they were")

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


# %% nbgrader={"grade": true, "grade_id": "test_context_vectors", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
from autograde.notebook import rubric


@rubric("context_vectors")
def _rubric(r):
    shares = torch.softmax(r.normal(5, 8), dim=-1)
    one_row = torch.softmax(r.normal(1, 6), dim=-1)
    r.call("rows that add up to 1, also one alone", lambda *pairs: [context_vectors(*pair) for pair in pairs],
           (shares, r.normal(8, 3)), (one_row, r.normal(6, 1)))
    r.call("as many keys as numbers in a value", context_vectors, r.normal(7, 7).abs(), r.normal(7, 7))
    r.call("rows that add up to something else", context_vectors, r.normal(9, 7), r.normal(7, 10))
    zero_sum = r.normal(8, 6, dtype=torch.float64)
    zero_sum = zero_sum - zero_sum.mean(dim=0)  # what float32 rounds off 10,000 is seen
    r.call("float64, stored by columns", context_vectors, zero_sum.T, 1e4 + r.normal(5, 8, dtype=torch.float64).T)
    r.gradient("lets gradients through", context_vectors, r.normal(4, 6), r.normal(6, 7))
    r.arguments("leaves its arguments as they were")

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


# %% nbgrader={"grade": true, "grade_id": "test_SelfAttention_v1", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
from autograde.notebook import rubric


@rubric("SelfAttention_v1")
def _rubric(r):
    from builtins import sum

    def drawn(d_in, d_out, **kind):
        return {name: r.normal(d_in, d_out, **kind) for name in ("W_query", "W_key", "W_value")}

    def fresh_matrices(d_in, d_out):
        one, two = SelfAttention_v1(d_in, d_out), SelfAttention_v1(d_in, d_out)
        return [one.W_query, one.W_key, one.W_value, two.W_query, two.W_key, two.W_value]

    def zero_sum(d_in, d_out):  # what float32 rounds off 10,000 is seen
        matrices = drawn(d_in, d_out, dtype=torch.float64)
        return {name: matrix - matrix.mean(dim=0) for name, matrix in matrices.items()}

    r.forward("three sentences, from 5 numbers to 3", SelfAttention_v1, (5, 3), drawn(5, 3),
              r.normal(7, 5), r.normal(8, 5), r.normal(7, 5))
    r.forward("after its matrices have changed", SelfAttention_v1, (4, 6), drawn(4, 6), r.normal(8, 4), then=drawn(4, 6))
    r.forward("as many tokens as numbers, in and out", SelfAttention_v1, (7, 7), drawn(7, 7), 6 * r.normal(7, 7))
    r.forward("one token alone, one number out", SelfAttention_v1, (6, 1), drawn(6, 1), r.normal(1, 6))
    r.forward("float64, stored by columns", SelfAttention_v1, (6, 8), zero_sum(6, 8),
              1e4 + r.normal(6, 9, dtype=torch.float64).T)
    r.backward("all three matrices learn", SelfAttention_v1, (5, 4), drawn(5, 4), r.normal(7, 5))
    r.check("starts from torch.rand, each matrix its own", "starts_uniform",
            fresh_matrices, 40, 30)
    r.call("learns three matrices and nothing else",
           lambda: sum(p.numel() for p in SelfAttention_v1(5, 4).parameters() if p.requires_grad))
    r.arguments("leaves its arguments as they were")

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


# %% nbgrader={"grade": true, "grade_id": "test_SelfAttention_v2", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
from autograde.notebook import rubric


@rubric("SelfAttention_v2")
def _rubric(r):
    from builtins import getattr, isinstance, sum

    names = ("W_query", "W_key", "W_value")

    def drawn(d_in, d_out, bias=False, **kind):
        weights = {f"{name}.weight": r.normal(d_out, d_in, **kind) for name in names}
        biases = {f"{name}.bias": r.normal(d_out, **kind) for name in names if bias}
        return weights | biases

    def layers():
        made = SelfAttention_v2(5, 4)
        return [getattr(made, name) for name in names]

    def learned():
        made = [SelfAttention_v2(5, 4), SelfAttention_v2(5, 4, True)]
        return [sum(p.numel() for p in m.parameters() if p.requires_grad) for m in made]

    def same_starts():
        first, second = layers(), layers()
        pairs = [*zip(first, [*first[1:], first[0]]), *zip(first, second)]
        return [torch.equal(one.weight, other.weight) for one, other in pairs]

    def zero_sum(d_in, d_out):  # what float32 rounds off 10,000 is seen
        weights = drawn(d_in, d_out, dtype=torch.float64)
        return {name: weight - weight.mean(dim=1, keepdim=True) for name, weight in weights.items()}

    r.forward("three sentences, from 5 numbers to 3", SelfAttention_v2, (5, 3), drawn(5, 3),
              r.normal(7, 5), r.normal(8, 5), r.normal(7, 5))
    r.forward("after its layers have changed", SelfAttention_v2, (4, 6), drawn(4, 6), r.normal(8, 4), then=drawn(4, 6))
    r.forward("with a bias", SelfAttention_v2, (6, 4), drawn(6, 4, bias=True), r.normal(9, 6), qkv_bias=True)
    r.forward("as many tokens as numbers, in and out", SelfAttention_v2, (7, 7), drawn(7, 7), 6 * r.normal(7, 7))
    r.forward("one token alone, one number out", SelfAttention_v2, (6, 1), drawn(6, 1), r.normal(1, 6))
    r.forward("float64, stored by columns", SelfAttention_v2, (6, 8), zero_sum(6, 8),
              1e4 + r.normal(6, 9, dtype=torch.float64).T)
    learning = drawn(5, 4, bias=True)
    del learning["W_key.bias"]  # its gradient is zero but for rounding: the softmax does not see it
    r.backward("all three layers learn", SelfAttention_v2, (5, 4, True), learning, r.normal(7, 5))
    r.call("three layers to learn, a bias only if asked for", learned)
    r.call("each layer starts from its own numbers", same_starts)
    r.call("the layers are nn.Linear", lambda: [isinstance(layer, nn.Linear) for layer in layers()])
    r.arguments("leaves its arguments as they were")

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


# %% nbgrader={"grade": true, "grade_id": "test_match_weights", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
from autograde.notebook import rubric


@rubric("match_weights")
def _rubric(r):
    from autograde.rubric.probes import load
    from builtins import getattr

    def drawn(d_in, d_out):
        return {f"{name}.weight": r.normal(d_out, d_in) for name in ("W_query", "W_key", "W_value")}

    def matched(weights):
        d_out, d_in = weights["W_query.weight"].shape
        v2 = load(SelfAttention_v2(d_in, d_out), weights)
        v1 = SelfAttention_v1(d_in, d_out).to(v2.W_query.weight)
        match_weights(v1, v2)
        return v1, v2

    # each of these begins with the output of v1, so that doing nothing is never right
    def outputs(weights, x):
        v1, v2 = matched(weights)
        return [v1(x), v2(x), v2.training]

    def after_change(weights, x, changed, seen):
        pair = matched(weights)
        before = pair[0](x)
        with torch.no_grad():
            for parameter in pair[changed].parameters():
                parameter.mul_(-0.5)
        return [before, pair[seen](x)]

    def after_changes(weights, x, others, y):
        return [*after_change(weights, x, changed=1, seen=0), *after_change(others, y, changed=0, seen=1)]

    def with_other_matrices(weights, others, x):
        v1, _ = matched(weights)
        before = v1(x)
        loaded = load(v1, {name.removesuffix(".weight"): other.T for name, other in others.items()})
        return [before, loaded(x)]

    def after_training(weights, x):
        v1, v2 = matched(weights)
        v2(x).square().sum().backward()
        return [v1(x), *(getattr(v2, name).weight.grad for name in ("W_query", "W_key", "W_value"))]

    r.call("v1 gives the output of v2, also when d_in equals d_out",
           lambda *pairs: [matched(weights)[0](x) for weights, x in pairs],
           (drawn(5, 3), r.normal(7, 5)), (drawn(6, 6), r.normal(8, 6)))
    r.call("v2 is as it was", outputs, drawn(4, 7), r.normal(9, 4))
    r.call("a later change of one does not reach the other", after_changes,
           drawn(5, 1), r.normal(7, 5), drawn(4, 5), r.normal(8, 4))
    r.call("v1 still computes with its own three matrices", with_other_matrices,
           drawn(6, 3), drawn(6, 3), r.normal(7, 6))
    r.call("v2 can still learn", after_training, drawn(3, 6), r.normal(9, 3))

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
