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
# # Causal attention: everything in one class
#
# Lessons 01 to 04 made attention in steps: scores, a mask, a softmax, dropout, context vectors. Each step was a
# function, and it saw one sentence. A model is trained on many sentences at once, moved to a GPU, saved and loaded. In this
# lesson the steps become one class that stands all that. Lesson 06 uses it as it is, several times over.
#
# **You will be able to**
# - attend to a batch of sentences at once, without one of them reaching another;
# - say what a module carries with it, and why the mask is a buffer;
# - write `CausalAttention`, for sentences of any length up to a limit;
# - test any layer for looking ahead.
#
# **It builds on** lesson 01 (scores, weights, context vectors, `nn.Linear`), 02 and 03 (the causal mask, minus infinity) and 04
# (dropout, `train()` and `eval()`).
#
# | part | minutes |
# |---|---|
# | 1 A batch of sentences | 10 |
# | 2 What a module carries with it | 15 |
# | 3 Shorter and longer sentences | 10 |
# | 4 The class | 25 |
# | 5 Moved, saved, loaded | 10 |
# | 6 Does it look ahead? | 15 |
# | 7 What goes wrong in practice, summary | 5 |
#
# *Run cells, fill in exercises, ask `hint`, `why` and `progress()`* as before. One question is answered in words; a person reads it.
#
# *Opened alone, in a hosted notebook service?* Get the file `attention_notebooks-….whl` from where you got this lesson, put
# it beside the notebook, and run `%pip install attention_notebooks-*.whl` in a new cell above the others.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
import os
import warnings

import matplotlib.pyplot as plt
import torch
from torch import nn

from autograde.notebook import attention_picture, beside, chart, explore, heatmap, hint, panels, progress, rubric, show, table, trace, why

warnings.filterwarnings("ignore", message="The use of `x.T`")  # part 1 uses it all the same

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
order = [4, 5, 2, 3, 0, 1]  # the same words: one step starts with Your journey
other_tokens = [tokens[i] for i in order]
batch = torch.stack([inputs, inputs[order]])  # (2, 6, 3): two sentences


def future(n):
    """Lesson 03's mask: True above the diagonal, (n, n)."""
    return torch.ones(n, n, dtype=torch.bool, device=device).triu(diagonal=1)


def one_sentence(x, W_query, W_key, W_value):
    """The steps of lessons 01 to 03 on one sentence (n, d_in), each by its name."""
    queries, keys, values = W_query(x), W_key(x), W_value(x)  # (n, d_out) each
    scores = queries @ keys.T  # (n, n)
    hidden = scores.masked_fill(future(len(x)), float("-inf"))  # (n, n)
    d_k = keys.shape[-1]
    weights = torch.softmax(hidden / math.sqrt(d_k), dim=-1)  # (n, n)
    context = weights @ values  # (n, d_out)
    return {
        "queries": queries, "keys": keys, "values": values, "scores": scores,
        "hidden scores": hidden, "weights": weights, "context": context,
    }  # fmt: skip


# %% [markdown]
# ## 1 A batch of sentences
#
# `one_sentence` in the cell above holds the steps so far. It works on one sentence; here it is with linear layers from seed 123.

# %%
torch.manual_seed(123)
layers = [nn.Linear(3, 2, bias=False).to(device) for _ in range(3)]  # query, key, value
table(one_sentence(inputs, *layers)["context"], rows=tokens, columns=["0", "1"])

# %% [markdown]
# A **batch** is several sentences in one tensor `(b, n, d_in)`. `batch` holds two, `(2, 6, 3)`: the
# sentence we know, and the same six words in another order, *one step starts with Your journey*. `nn.Linear` works on the last
# dimension alone, so it makes keys `(2, 6, 2)` without a change.
#
# **Predict, then run.** What is the shape of `keys.T`?

# %%
my_guess = None  # three numbers, (?, ?, ?)

# %%
with torch.no_grad():
    keys = layers[1](batch)  # (2, 6, 2)
beside(my_guess, tuple(keys.T.shape))

# %% [markdown]
# It looks as before. But `.T` has turned *all* dimensions round, the sentences as well: what is now first was the number in a
# key. A product of queries `(2, 6, 2)` with it cannot work.

# %%
try:
    one_sentence(batch, *layers)
except RuntimeError as error:
    print(type(error).__name__ + ":", error)

# %% [markdown]
# That was luck. With three sentences of three tokens and keys of three numbers, every dimension is 3, and no shape can be
# wrong.

# %%
torch.manual_seed(1)
cube = torch.randn(3, 3, 3).to(device)  # 3 sentences, 3 tokens, 3 numbers
scores = cube @ cube.T
right = torch.stack([sentence @ sentence.T for sentence in cube])
print("shape:", tuple(scores.shape))
print("largest error:", round((scores - right).abs().max().item(), 1))

# %% [markdown]
# No error, and wrong numbers. What is wanted is the transpose *within* each sentence, of the last two dimensions:
#
# ```
# queries (b, n, d)   @   keys, last two swapped (b, d, n)   =   scores (b, n, n)
#
# for each sentence a product of its own: (n, d) @ (d, n) = (n, n)
# ```
#
# `keys.mT` does that, and so does `keys.transpose(-2, -1)`. `@` multiplies the last two dimensions and goes through
# the others one by one.

# %%
print("largest error:", round((cube @ cube.mT - right).abs().max().item(), 4))

# %% [markdown]
# ## 2 What a module carries with it
#
# The three linear layers are learned, the mask is not, and both belong to the layer. An `nn.Module` keeps tensors in three
# ways. Here is one triangle, kept in all three.

# %%
class ThreeMasks(nn.Module):
    """One triangle, three ways to keep it."""

    def __init__(self, n):
        super().__init__()
        self.attribute = torch.ones(n, n).tril()
        self.parameter = nn.Parameter(torch.ones(n, n).tril())
        self.register_buffer("buffer", torch.ones(n, n).tril())


kinds = ["attribute", "parameter", "buffer"]
three = ThreeMasks(6)

# %% [markdown]
# **Predict, then run.** Which of the three follow the module when it is moved with `.to(torch.float64)`?

# %%
my_guess = None  # some of: "attribute", "parameter", "buffer"

# %%
three.to(torch.float64)
beside(my_guess, [kind for kind in kinds if getattr(three, kind).dtype == torch.float64])

# %% [markdown]
# Moving to a device is the same call. Every machine has a device for this experiment, `meta`, which keeps shapes but no numbers.
# After the move the attribute is left behind, and nothing can be computed with both.

# %%
three.to("meta")
for kind in kinds:
    print(f"{kind:>9}: on {getattr(three, kind).device}")
try:
    torch.ones(6, 6, device="meta").masked_fill(three.attribute == 0, 0.0)
except RuntimeError:
    print("scores on meta, the mask not: RuntimeError")

# %% [markdown]
# Saving takes what is in `state_dict()`. An optimiser is given what is in `parameters()`.

# %%
for kind in kinds:
    saved = kind in three.state_dict()
    trained = kind in dict(three.named_parameters())
    print(f"{kind:>9}: {'saved' if saved else 'not saved':9}  {'trained' if trained else 'not trained'}")

# %% [markdown]
# What happens to a mask that is trained? Row i of the mask below, divided by its sum, says how much query i takes of each
# token, and that mixture is to be the *next* token. At the start it is the triangle. Every entry is a parameter.

# %%
trained_mask = nn.Parameter(torch.ones(6, 6, device=device).tril())
optimiser = torch.optim.SGD([trained_mask], lr=2.0)
errors = []
for _ in range(300):
    weights = trained_mask / trained_mask.sum(dim=-1, keepdim=True)  # (6, 6)
    guesses = weights @ inputs  # (6, 3)
    loss = (guesses[:-1] - inputs[1:]).square().mean()  # row i against token i + 1
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    errors.append(loss.item())
print(f"error before training: {errors[0]:.3f}, after: {errors[-1]:.3f}")

# %% jupyter={"source_hidden": true}
# draws the figure
ends = (-1.6, 1.6)
show(
    panels(
        heatmap(torch.ones(6, 6).tril(), tokens, tokens, title="The mask before training", limits=ends, bar=False),
        heatmap(trained_mask, tokens, tokens, title="As a parameter, after 300 steps", limits=ends),
        size=(10, 4.4),
    ),
    "Two heatmaps. Left the mask before training, ones on and below the diagonal, zeros above. Right the same mask after "
    "training as a parameter: all five entries beside the diagonal, where a token looks at the next one, have become positive, "
    "from 0.37 to 1.44.",
)

# %% [markdown]
# The error is gone, and so is the mask: in every row but the last, the entry right of the diagonal is positive now. To predict the next
# token, the best is to look at it. A rule must not be trained. A **buffer** is a tensor that belongs to the module, moves with it, is
# saved with it, and is left alone by training.
#
# ### Exercise: `count_parameters` (2 points)
#
# How many numbers does a module learn? Return an `int`. Buffers and frozen parameters (`requires_grad` is False) do not count, a
# parameter that stands in two places counts once. Mode, dtype and device do not matter, and counting changes nothing.

# %% nbgrader={"grade": false, "grade_id": "count_parameters", "locked": false, "schema_version": 3, "solution": true, "task": false}
def count_parameters(module):
    """How many numbers a module learns: an int."""
    ### BEGIN SOLUTION
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_count_parameters", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
# The rubric of `count_parameters`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("count_parameters")
def _(r):
    n, m = r.integer(11, 19), r.integer(21, 29)
    layers = r.module("two layers", m, n)
    r.each("counts the numbers of every parameter, in train() and eval()", count_parameters, (r.module("linear", n, m).eval(),), (layers,), (r.module("odd shapes", n, m),))
    layers[0].requires_grad_(False)
    r.idea.each("buffers and frozen parameters do not count, a shared weight counts once", count_parameters, (r.module("with buffers", n, m),), (r.module("half frozen", n, m),), (layers,), (r.module("shared weight", n, m),))
    r.each("two layers of one size count twice, a module that learns nothing is 0", count_parameters, (r.module("two layers of one size", n),), (nn.ReLU(),))
    r.unchanged("leaves the module as it was")

# %% [markdown]
# Your function on a few modules. The first is the three layers from above. The last has the size of one attention layer in
# GPT-2, the smallest version.

# %% tags=["raises-exception"]
frozen_layers = nn.ModuleList([nn.Linear(3, 2, bias=False) for _ in range(3)])
frozen_layers[0].requires_grad_(False)
print("query, key, value, 3 to 2:  ", count_parameters(nn.ModuleList(layers)))
print("the same, W_query frozen:   ", count_parameters(frozen_layers))
print("ThreeMasks(6):              ", count_parameters(ThreeMasks(6)))
print("query, key, value, 768 wide:", count_parameters(nn.ModuleList([nn.Linear(768, 768) for _ in range(3)])))

# %% [markdown]
# ## 3 Shorter and longer sentences
#
# The mask is made once, in `__init__`, for the longest sentence the layer will see. That length is the **context length**. A
# shorter sentence takes the corner of the mask, `mask[:n, :n]`, which is the mask for n tokens:
#
# ```
# mask for 4 tokens          its corner [:2, :2] is the mask for 2 tokens
#   .  x  x  x                 .  x
#   .  .  x  x                 .  .
#   .  .  .  x
#   .  .  .  .               x: hidden
# ```
#
# And a longer one? A slice beyond the end is no error: it just ends early. So the mask stays too small, and the error comes
# somewhere else.

# %%
mask = future(6)
scores = torch.zeros(2, 8, 8, device=device)  # 8 tokens, 2 more than the mask is for
print("the corner of 8 by 8:", tuple(mask[:8, :8].shape))
try:
    scores.masked_fill(mask[:8, :8], float("-inf"))
except RuntimeError as error:
    print(type(error).__name__ + ":", error)

# %% [markdown]
# The message speaks of tensors a and b, not of a sentence that is too long. There is a worse case.
#
# **Predict, then run.** A layer for a context of one token has a 1 × 1 mask. It is given 8 tokens. How many of the 64 scores
# are hidden?

# %%
my_guess = None  # a number from 0 to 64

# %%
beside(my_guess, int(torch.zeros(8, 8, device=device).masked_fill(future(1)[:8, :8], float("-inf")).isinf().sum()))

# %% [markdown]
# None: a 1 × 1 mask broadcasts to any size, and its one entry hides nothing. No error, and everybody sees the future.
# So a good layer asks before it computes, and says what is wrong: a `ValueError` that names the length and the limit. The same
# goes for a sentence without its batch dimension: of `(6, 3)` the 3 would be taken for the number of tokens.
#
# ## 4 The class
#
# ```
# x (b, n, d_in)  ->  queries, keys, values (b, n, d_out)
#                 ->  scores (b, n, n)  ->  weights (b, n, n)  ->  dropout on them
#                 ->  context (b, n, d_out)
# ```
#
# ### Exercise: `CausalAttention` (8 points)
#
# - `W_query`, `W_key`, `W_value` are `nn.Linear` layers, with a bias only if `qkv_bias` is True. Each starts from its own numbers.
# - `dropout` is an `nn.Dropout`. In training it drops weights after the softmax, each independently of the others, with the p it
#   has at that call. In `eval()` nothing is random.
# - `mask` is a buffer for `context_length` tokens, in `state_dict()`. Where `.to()` moves the layer, `forward` works: it uses
#   nothing that stays behind.
# - `forward` takes `(b, n, d_in)` with any n from 1 to `context_length`, contiguous or not, and leaves it as it was. Float64 in
#   gives float64 out, computed in float64. A sentence sees only itself, a token only itself and what stands before it. A token of zeros is like any other.
# - A longer input, or one that is not 3-D, is refused with a `ValueError` that names what was given.

# %% nbgrader={"grade": false, "grade_id": "CausalAttention", "locked": false, "schema_version": 3, "solution": true, "task": false}
class CausalAttention(nn.Module):
    """Causal attention with dropout over a batch of sentences: (b, n, d_in) -> (b, n, d_out)."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        ### BEGIN SOLUTION
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        ones = torch.ones(context_length, context_length, dtype=torch.bool)
        self.register_buffer("mask", ones.triu(diagonal=1))  # True: hidden
        ### END SOLUTION

    def forward(self, x):
        ### BEGIN SOLUTION
        if x.ndim != 3:
            raise ValueError(f"x must be (b, n, d_in), it has the shape {tuple(x.shape)}")
        n, longest = x.shape[1], self.mask.shape[-1]
        if n > longest:
            raise ValueError(f"x has {n} tokens, context_length is {longest}")
        queries = self.W_query(x)  # (b, n, d_out)
        keys = self.W_key(x)  # (b, n, d_out)
        values = self.W_value(x)  # (b, n, d_out)
        scores = queries @ keys.mT  # (b, n, n)
        hidden = scores.masked_fill(self.mask[:n, :n], float("-inf"))  # (b, n, n)
        weights = torch.softmax(hidden / math.sqrt(keys.shape[-1]), dim=-1)  # (b, n, n)
        weights = self.dropout(weights)
        return weights @ values  # (b, n, d_out)
        ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_CausalAttention", "locked": true, "points": 8, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
# The rubric of `CausalAttention`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("CausalAttention")
def _(r):
    layer = r.layer(CausalAttention, d_in=4, d_out=6, context_length=8, dropout=0.0, qkv_bias=False)
    layer.linear("W_query W_key W_value", "d_in -> d_out", bias="qkv_bias")
    layer.outputs("sentences of any length up to the context", r.normal(1, 2, 4), r.normal(2, 8, 4), r.normal(2, 8, 4), r.normal(3, 1, 4))
    layer.outputs("as many sentences as tokens as numbers; with a bias", r.normal(6, 6, 6), d_in=6, qkv_bias=True)
    layer.outputs("a token of zeros is input like any other", r.normal(3, 7, 4) * (r.uniform(3, 7, 1) > 0))
    layer.first_token("the first token sees itself alone, however large the scores", 1000 * r.normal(8, 6, 4))
    layer.drops_weights("in training it drops weights, each by itself, in eval() none", p=0.3)
    layer.rereads_dropout("dropout.p is read at each call", r.normal(3, 7, 4))
    layer.keeps_mask("mask is a buffer: saved, not learned")
    layer.moves("works after .to(device)", r.normal(2, 5, 4))
    layer.refuses("raises ValueError for more tokens than context_length", r.normal(2, 9, 4), r.normal(1, 16, 4))
    layer.refuses("raises ValueError for input that is not 3-D", r.normal(5, 4), r.normal(1, 2, 5, 4))
    layer.conventions(r.normal(3, 7, 4), dropout=1e-12)

# %% [markdown]
# The known sentence twice in a batch, from the same seed as in part 1. Both sentences get the numbers that
# `one_sentence` gave.

# %% tags=["raises-exception"]
torch.manual_seed(123)
layer = CausalAttention(d_in=3, d_out=2, context_length=6, dropout=0.0).to(device)
for context in layer(torch.stack([inputs, inputs])):  # (2, 6, 2)
    table(context, rows=tokens, columns=["0", "1"])
    print()

# %% [markdown]
# ### Your lines, and where they come from
#
# The next cell runs your `forward` on the batch, line by line. Beside each line stands the step of lessons 01 to 03 whose
# numbers it gives. A line without a name is a step of your own. With p = 0 dropout changes nothing, so its line gives
# the weights again: that is lesson 04.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# compares the lines of your forward with the steps of lessons 01 to 03
with torch.no_grad():
    steps = [one_sentence(x, layer.W_query, layer.W_key, layer.W_value) for x in batch]
lesson_of = {"queries": "01", "keys": "01", "values": "01", "scores": "01", "hidden scores": "03",
             "weights": "03", "context": "01"}
known = {f"{name}, lesson {lesson_of[name]}": torch.stack([step[name] for step in steps]) for name in steps[0]}
root = math.sqrt(2)
known["scores / sqrt(d_k), lesson 01"] = torch.stack([step["scores"] for step in steps]) / root
known["hidden scores / sqrt(d_k), lessons 01 and 03"] = torch.stack([step["hidden scores"] for step in steps]) / root
known["keys, the last two dimensions swapped, part 1"] = torch.stack([step["keys"].T for step in steps])
trace(layer, batch, known)

# %% [markdown]
# How do you see the weights, when a layer returns only context vectors? Give every token a value of its own: the first
# a 1 in place 0, the second a 1 in place 1, and so on. Then the context vector of a query *is* its row of weights.
# `weights_of` makes a layer of your class like that, with the queries and keys of the given one.

# %%
def weights_of(layer, x, p=0.0):
    """The weights (b, n, n) of a layer in training, read off a copy whose values are 0 and 1."""
    b, n, d_in = x.shape
    d_out = layer.W_key.out_features
    copy = type(layer)(d_in + n, n, n, p).to(device)
    with torch.no_grad():
        for linear in (copy.W_query, copy.W_key, copy.W_value):
            linear.weight.zero_()
        copy.W_query.weight[:d_out, :d_in] = layer.W_query.weight * math.sqrt(n / d_out)  # a wider key, the same scale
        copy.W_key.weight[:d_out, :d_in] = layer.W_key.weight
        copy.W_value.weight[:, d_in:] = torch.eye(n)
        return copy(torch.cat([x, torch.eye(n, device=device).expand(b, n, n)], dim=-1))


# %% [markdown]
# Choose a sentence and the place of a query in it. *starts* stands third in both sentences, but sees *Your journey* in one
# and *one step* in the other.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
sentences = {"Your journey starts with one step": tokens, "one step starts with Your journey": other_tokens}


def picture(sentence, query):
    number, words = list(sentences).index(sentence), sentences[sentence]
    row = weights_of(layer, batch)[number, query - 1]  # (6,)
    with torch.no_grad():
        values = layer.W_value(batch)[number]  # (6, 2)
    name = words[query - 1]
    parts = ", ".join(f"{token} {float(w):.2f}" for token, w in zip(words[:query], row))
    return attention_picture(row, values, words, query - 1, widest=1.0), f"Weights of the query {name}: {parts}; later ones 0."


explore(picture, alt="For a query of a sentence: bars of its six weights, its values and its context vector.",
        sentence=list(sentences), query=[3, 1, 2, 4, 5, 6])

# %% [markdown]
# And in training? Move p. Weights that dropout has set to 0 are 0.00; those that stay are divided by 1 - p. The future
# stays hidden, whatever p is. The two sentences lose different weights.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
def dropped(p):
    torch.manual_seed(123)
    maps = [
        heatmap(found, words, words, title=f"{' '.join(words[:2])} …, p = {p:g}", hidden=future(6), limits=(0, 2),
                bar=words is other_tokens)
        for found, words in zip(weights_of(layer, batch, p), sentences.values())
    ]
    return panels(*maps, size=(10, 4.4)), f"Weights of both sentences in training with p = {p:g}; weights that stay are divided by {1 - p:.1f}."


explore(dropped, alt="Two heatmaps of the weights in training, the future hatched, for a choice of p.",
        p=[0.0, 0.2, 0.5, 0.8])

# %% [markdown]
# ## 5 Moved, saved, loaded
#
# Your layer in float64, saved, and loaded into another one that started from other numbers:

# %% tags=["raises-exception"]
double = CausalAttention(3, 2, 6, 0.0).to(device, torch.float64)
print("float64 in and out:", double(batch.double()).dtype)
print("in state_dict():", ", ".join(sorted(layer.state_dict())))
loaded = CausalAttention(3, 2, 6, 0.0).to(device)
print("same output before loading:", torch.equal(loaded(batch), layer(batch)))
loaded.load_state_dict(layer.state_dict())
print("same output after loading: ", torch.equal(loaded(batch), layer(batch)))
print("learned numbers:", count_parameters(layer))

# %% [markdown] nbgrader={"grade": false, "grade_id": "question_why_buffer", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### Question: `why_buffer` (2 points, a person reads it)
#
# Why is the mask a buffer, and not a parameter, and not a plain attribute? Name one thing that would go wrong with a parameter,
# and one with an attribute. When would one notice each of them? Three to five sentences.
#
# <!-- BEGIN MARK SCHEME -->
# **Marking scheme.** Two halves, one point each; half a point where it is not said what goes wrong.
#
# - *Not a parameter* (1 point): it is a fixed rule, and training would change it. Consequence: hidden tokens become
#   visible. As good: the optimiser gets it, it counts among what is learned, weight decay shrinks it, its gradient costs memory.
# - *Not a plain attribute* (1 point): the module does not know of it. Consequence: it does not follow `.to(device)` or
#   `.to(dtype)`, so that the first forward pass on a GPU fails. As good: it is missing from `state_dict()`.
#
# Typical answers that lack something:
#
# - "Because it is constant", "because it is not learned", and no more: half a point for the first half.
# - "A buffer is saved": half a point for the second half; a parameter is saved as well, so this tells only the attribute apart.
# - "A buffer is faster", "takes less memory than an attribute": no points, it does not.
# - "A buffer gets no gradient, an attribute would": no points for the second half; a plain tensor gets none either.
# - "`requires_grad=False` would do as well": right that training then leaves it alone; full points if it says that it would
#   still stand in `parameters()`.
# - "Because otherwise loading fails" without saying what is loaded: no points.
#
# Language and length do not count. An answer that is right in one's own words earns everything.
# <!-- END MARK SCHEME -->

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_buffer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# <!-- BEGIN SOLUTION -->
# The mask is a rule and nothing that is learned. As a parameter it would be handed to the optimiser, and after some training
# steps entries that were hidden would no longer be: the loss would look better than it is, and the model would be useless for
# writing. As a plain attribute it would not be known to the module: `.to("cuda")` would leave it on the CPU, and the first
# forward pass there would stop with an error about two devices; `.to(torch.float64)` would leave its dtype, and `state_dict()`
# would lack it. A buffer moves with the module, is saved with it, and no optimiser ever sees it.
# <!-- END SOLUTION -->

# %% [markdown]
# ## 6 Does it look ahead?
#
# A layer that looks ahead trains well and writes badly, and no shape gives it away. So it has to be tested, even when nobody has
# read its inside: change the tokens after t, and see whether the output at t moves.
#
# ### Exercise: `peeks` (3 points)
#
# `module` maps `(b, n, d_in)` to `(b, n, d_out)`; it need not be attention. Return `True` if any output at a token t changes when
# the tokens after t change, else `False`.
#
# - Try **every** t, and change **all** that comes after it at once, to numbers from `torch.randn`, another for each sentence,
#   token and feature. One draw for each t is enough.
# - A change counts if it is more than 0.0001 of the largest absolute entry of `module(x)`. Smaller ones are rounding.
# - Judge it as in `eval()`: dropout would change the outputs anyway. Afterwards **every** submodule is in the mode it was in, also when
#   some were in training and some not.
# - `x` is left as it was. Some modules write into what they are given, as `nn.ReLU(inplace=True)` does: hand them copies.

# %% nbgrader={"grade": false, "grade_id": "peeks", "locked": false, "schema_version": 3, "solution": true, "task": false}
def peeks(module, x):
    """Whether an output at a token depends on later tokens: a bool. x is (b, n, d_in)."""
    ### BEGIN SOLUTION
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        with torch.no_grad():
            before = module(x.clone())  # (b, n, d_out)
            limit = 1e-4 * before.abs().max()
            for t in range(x.shape[1] - 1):
                changed = x.clone()
                changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
                if (module(changed) - before)[:, : t + 1].abs().max() > limit:
                    return True
        return False
    finally:
        for part, training in modes:
            part.training = training
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_peeks", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
# The rubric of `peeks`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("peeks")
def _(r):
    x, t = r.normal(3, 12, 4), r.integer(3, 8)
    quiet, partly = r.module("attention without a mask", 4), r.module("recurrent", 4)
    quiet.W_value.weight.data *= 1e-6
    partly.gru.eval()
    r.each("tells attention with a causal mask from other attention", peeks, *r.modules(x, *r.examples.ATTENTION))
    r.each("convolutions, recurrent layers, sentences that are mixed", peeks, *r.modules(x, *r.examples.OTHERS))
    r.idea.each("one token that looks at one other", peeks, *((r.module("one glance", 4, at, to), x) for at, to in ((0, 1), (3, 4), (t, 11), (t, t + 2), (t, t - 1), (10, 11), (11, 0))))
    r.each("as in eval(), with dropout in the layer", peeks, *r.modules(x, "looks ahead in training", "looks ahead in eval()"))
    r.each("small outputs; float64; one token alone; a future of zeros", peeks, (quiet, x), (partly.double(), x.double()), (quiet, x[:, :1]), (r.module("centred convolution", 4), 0 * x))
    r.unchanged("every submodule keeps its mode, and x stays as it was")

# %% [markdown]
# Now test. The first layer is lesson 01's, which has no mask. The second has one, but its softmax was copied from code for one
# sentence, where the keys are dimension 1. With a batch in front, dimension 1 is the queries.

# %%
class NoMask(nn.Module):
    """Lesson 01's layer, for a batch."""

    dim = -1

    def __init__(self):
        super().__init__()
        self.W_query, self.W_key, self.W_value = layers

    def masked(self, scores):
        return scores

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = self.masked(queries @ keys.mT / math.sqrt(keys.shape[-1]))
        return torch.softmax(scores, dim=self.dim) @ values


class SoftmaxOverQueries(NoMask):
    """A mask, and dim=1 in the softmax."""

    dim = 1

    def masked(self, scores):
        return scores.masked_fill(future(scores.shape[-1]), float("-inf"))


# %% tags=["raises-exception"]
torch.manual_seed(123)
x = torch.randn(2, 6, 3).to(device)
in_training = CausalAttention(3, 2, 6, 0.5).to(device)
for name, module in {
    "lesson 01, no mask": NoMask(),
    "softmax with dim=1": SoftmaxOverQueries(),
    "your layer": layer,
    "your layer, p = 0.5, in training": in_training,
}.items():
    print(f"{name:>32}: {'looks ahead' if peeks(module, x) else 'does not look ahead'}")
print("still in training:", in_training.training)

# %% [markdown]
# ### What two copies of one sentence hide
#
# `peeks` asks one thing only. Here is a layer that it finds nothing wrong with. When `keys.T` failed on a batch, somebody wrote
# `keys[0].T`, and the error was gone.

# %%
class KeysOfTheFirst(NoMask):
    """Takes the keys of the first sentence for every sentence."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys[0].T  # (b, n, d) @ (d, n): the shape is right
        hidden = scores.masked_fill(future(x.shape[1]), float("-inf"))
        return torch.softmax(hidden / math.sqrt(keys.shape[-1]), dim=-1) @ values


def error_on(batch):
    """How far its output is from the right one, computed sentence by sentence."""
    with torch.no_grad():
        right = torch.stack([one_sentence(x, *layers)["context"] for x in batch])
        return round((KeysOfTheFirst()(batch) - right).abs().max().item(), 4)


# %% [markdown]
# **Predict, then run.** Much teaching material tests a batch made of two copies of one sentence, as the table above did. How far is
# this layer from the right output on two copies? And on two sentences?

# %%
my_guess = None  # two numbers, (copies, two sentences)

# %%
beside(my_guess, (error_on(torch.stack([inputs, inputs])), error_on(batch)))

# %% tags=["raises-exception"]
print("peeks says:", peeks(KeysOfTheFirst(), x))

# %% [markdown]
# On two copies the wrong keys are the right ones. The test that shows it changes one token of one sentence, and
# looks which outputs move. Below, each row is an output, each column the token that was changed: two sentences, 12 tokens.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
def reach(module, batch):
    """1 where the output of the row's token moves when the column's token changes: (b n, b n)."""
    b, n, _ = batch.shape
    with torch.no_grad():
        before = module(batch)
        columns = []
        for place in range(b * n):
            changed = batch.clone()
            changed[place // n, place % n] += 1.0
            columns.append((module(changed) - before).abs().amax(dim=-1).flatten() > 1e-5)
    return torch.stack(columns, dim=1).float()


def parted(maps):
    """Heatmaps side by side, each with lines between the sentences."""
    figure, grid = plt.subplots(1, len(maps), figsize=(11.5, 5.6), layout="constrained")
    for axes, one in zip(grid, maps):
        one.on(axes)
        axes.axhline(6, color="#d95f02", linewidth=2)
        axes.axvline(6, color="#d95f02", linewidth=2)
    return figure


words = [f"{word} {number}" for number, sentence in enumerate(sentences.values(), 1) for word in sentence]
maps = [
    heatmap(reach(module, batch), words, words, title=f"{title}: 1 where a token reaches an output",
            row_name="output", column_name="changed token", limits=(0, 1), bar=False)
    for title, module in {"Your layer": layer, "keys[0].T": KeysOfTheFirst()}.items()
]
show(
    chart(parted, maps),
    "Two 12 by 12 maps of which token reaches which output; a line parts the sentences. Your layer: two triangles, "
    "each within its sentence. With keys[0].T: below the first triangle there is another, so tokens of the first sentence "
    "reach outputs of the second.",
)

# %% [markdown]
# Left, two triangles, one a sentence: nothing above the diagonal, nothing between the sentences. Right, the lower left block is not
# empty: the first sentence reaches the second. It is a triangle too, so no *later* token is seen, and `peeks` is content.
#
# ## 7 What goes wrong in practice
#
# **`F.dropout` without `training`.** The function drops in `eval()` as well, unless it is told the mode.

# %%
from torch.nn import functional as F

ones = torch.ones(1, 1000, device=device)
switched_off = nn.Dropout(0.5).eval()
print("nn.Dropout in eval() drops:  ", bool((switched_off(ones) == 0).any()))
print("F.dropout(x, 0.5) drops:     ", bool((F.dropout(ones, 0.5) == 0).any()))
print("with training=False it drops:", bool((F.dropout(ones, 0.5, training=False) == 0).any()))

# %% [markdown]
# **A saved mask is taken for a weight.** It stands in `state_dict()`, so a layer with another context length refuses to load it,
# although every weight fits.

# %% tags=["raises-exception"]
longer = CausalAttention(3, 2, 8, 0.0)
for strict in (True, False):
    try:
        longer.load_state_dict(layer.state_dict(), strict=strict)
    except RuntimeError as error:
        print(f"strict={strict}:", str(error).splitlines()[-1].strip())

# %% [markdown]
# `strict=False` forgives names that are missing, not sizes that differ. So take the mask out of the state dict. Or do not save it
# at all, with `register_buffer(..., persistent=False)`. This lesson's class saves it.

# %% tags=["raises-exception"]
weights_only = {name: tensor for name, tensor in layer.state_dict().items() if name != "mask"}
print("missing after that:", longer.load_state_dict(weights_only, strict=False).missing_keys)

# %% [markdown]
# **The scale is forgotten, or made from the wrong size.** With the six words of this lesson the output moves by about 0.003, which
# no eye sees. Test with larger numbers than these.

# %% tags=["raises-exception"]
with torch.no_grad():
    step_by_step = one_sentence(inputs, *layers)
    unscaled = torch.softmax(step_by_step["hidden scores"], dim=-1) @ step_by_step["values"]
print("largest change without the scale:", round((unscaled - step_by_step["context"]).abs().max().item(), 4))

# %% [markdown]
# ## Summary
#
# - On a batch, swap the last two dimensions of the keys, `keys.mT`. `.T` turns all of them round.
# - A **buffer** moves and is saved with the module, and training leaves it alone.
# - Cut the mask to the length of the input, and refuse a longer one: the error comes late, and with a 1 × 1 mask not at all.
# - `CausalAttention(d_in, d_out, context_length, dropout)` maps `(b, n, d_in)` to `(b, n, d_out)`.
# - Test with sentences that differ, of more than one length, with sizes that are all different, and change the future.
#
# **A loose end.** Each query makes one row of weights, so it can look for one thing. Lesson 06 runs several such layers side by
# side, with this class, and then all of them in one.
#
# ## Further reading
#
# - Vaswani et al., *Attention Is All You Need*, 2017, section 3.2.1 (scaled dot products) and 5.4 (where dropout stands).
# - Radford et al., *Improving Language Understanding by Generative Pre-Training*, 2018, section 4.1: dropout of 0.1 on the attention.
# - PyTorch's documentation of `torch.nn.Module.register_buffer`.
