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
# In lesson 01 you wrote a layer of attention, for one sentence and without a mask. Mask and dropout came later, as separate pieces, and nothing holds
# all of them together. A model needs a **layer**: an object that takes a whole batch of sentences, keeps its learned numbers, moves to another
# device, and can be saved. In this lesson you write that layer. At the end you load trained matrices into it and let it work inside the course's
# model.
#
# **You will be able to**
# - compute attention for a batch without mixing its sentences;
# - say what a module carries with it (parameters and buffers) and what it leaves behind;
# - write `CausalAttention` for sentences of any length up to a limit;
# - test any layer, your own or somebody else's, for looking ahead.
#
# **It builds on** lesson 01 (queries, keys, values), 02 and 03 (the causal mask) and 04 (dropout, `train()` and `eval()`).
#
# | part | minutes, estimated |
# |---|---|
# | 1 A rule that nobody trained | 5 |
# | 2 A batch of sentences | 10 |
# | 3 What a module carries with it | 20 |
# | 4 Shorter and longer sentences | 10 |
# | 5 The class | 25 |
# | 6 Does it look ahead? | 15 |
# | 7 Your layer inside the model | 10 |
# | 8 What goes wrong in practice, summary | 5 |
# | total | 100 |
#
# *Run the cells from top to bottom, fill in the exercises, and ask for `hint`, `why` and `progress()` when you need them.* One
# question is answered in words; a person marks it. As before, let gradients through and don't modify the arguments.
#
# *Using Colab or another hosted service?* Get the file `attention_notebooks-….whl` from where you got this lesson, put
# it beside the notebook, and run `%pip install attention_notebooks-*.whl` in a new cell above the others.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
import os
import warnings

import matplotlib.pyplot as plt
import torch
from torch import nn

from attention_course import (
    answers, attention_of, begin, beside, case, chart, course_model, encode, explore, heatmap, hint,
    next_words, panels, progress, rubric, show, stories, table, trace, why, without_mask, word_by_word,
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
order = [4, 5, 2, 3, 0, 1]  # the same words in another order
other_tokens = [tokens[i] for i in order]  # one step starts with Your journey
batch = torch.stack([inputs, inputs[order]])  # (2, 6, 3): two sentences


def future(n):
    """Lesson 03's mask (n, n): True above the diagonal."""
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
# ## 1 A rule that nobody trained
#
# The course has a model with two layers of attention, one head each, trained on stories of a small language. Give it the beginning
# of a story, and it says which word comes next.

# %%
model = course_model(1)  # trained; one head a layer
unmasked = without_mask(course_model(1))  # the same trained numbers, but no word is hidden from any other
beginning = begin("Anna has a ball . Tom has two books . she")
for name, one in {"with the mask": model, "without it": unmasked}.items():
    best = list(next_words(one, beginning).items())[:3]
    print(f"{name:>13}:", ", ".join(f"{word} {chance:.2f}" for word, chance in best))

# %% jupyter={"source_hidden": true}
# draws the figure
rows = [attention_of(one, beginning)[1, 0, -1] for one in (model, unmasked)]  # layer 2, what the last word looks at
show(
    panels(
        heatmap(torch.stack(rows), ["with the mask", "without it"], beginning, title="What “she” looks at in the second layer",
                row_name="", column_name="", limits=(0, 1)),
        size=(11, 2.4),
    ),
    "Two rows of weights of the word she. With the mask 0.90 of the weight is on ball. Without it the weight is spread over "
    "the sentence: 0.30 on ball, 0.18 on has, 0.13 on books.",
)

# %% [markdown]
# With its mask the model knows that a girl with a ball *kicks*. Without the mask the model guesses. Not one trained number differs between the two.
# The last word has no later words to see, so no mask would hide anything from it. The words before it make the difference: in the first layer they
# now see words that come later, which never happened in training, and pass on something else. Could that be one unlucky sentence? Ask the questions
# in 100 stories. The models read word by word, as when they write: at each word the model is given nothing after it, so the answer cannot be seen
# ahead of time.

# %%
# demonstration: right answers to the questions in 100 stories
for name, one in {"with the mask": model, "without it": unmasked}.items():
    shares = answers(word_by_word(one), stories(100, seed=5))
    print(f"{name:>13}: " + ", ".join(f"{kind} {shares[kind]:.0%}" for kind in ("who", "what", "where")))

# %% [markdown]
# It was not one unlucky sentence: more than a fifth of the answers to *what* are lost. So the mask is as much a part of the layer as its trained
# numbers are, although nobody trained it. (Why so few right answers to *where*, even with the mask? Lesson 06 looks into it.)
#
# ## 2 A batch of sentences
#
# `one_sentence`, in the cell with the imports, holds the steps you know. Here it is with linear layers drawn from seed 123.

# %%
torch.manual_seed(123)
layers = [nn.Linear(3, 2, bias=False).to(device) for _ in range(3)]  # query, key, value
table(one_sentence(inputs, *layers)["context"], rows=tokens, columns=["0", "1"])

# %% [markdown]
# A **batch** is several sentences in one tensor `(b, n, d_in)`. Ours is `(2, 6, 3)`: the sentence you know, and the same words in another order,
# *one step starts with Your journey*. `nn.Linear` works on the last dimension only, so the keys come out as `(2, 6, 2)`
# and nothing has to change. The next step is `keys.T`.
#
# **Predict, then run.** What is the shape of `keys.T`?

# %%
my_guess = None  # three numbers, (?, ?, ?)

# %%
with torch.no_grad():
    keys = layers[1](batch)  # (2, 6, 2)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    turned = keys.T
beside(my_guess, tuple(turned.shape))

# %% [markdown]
# The shape looks unchanged, but `.T` reversed *all* the dimensions: what used to count sentences now comes last. Queries of shape
# `(2, 6, 2)` cannot be multiplied with that.

# %%
try:
    one_sentence(batch, *layers)
except RuntimeError as error:
    print(type(error).__name__ + ":", error)

# %% [markdown]
# We were lucky to get an error. With three sentences of three tokens and keys of three numbers, every dimension is 3, and no shape can be
# wrong.

# %%
torch.manual_seed(1)
cube = torch.randn(3, 3, 3).to(device)  # 3 sentences, 3 tokens, 3 numbers
right = torch.stack([sentence @ sentence.T for sentence in cube])  # sentence by sentence
with warnings.catch_warnings(record=True):
    scores = cube @ cube.T
print("shape:", tuple(scores.shape))
print("wrong entries:", int(((scores - right).abs() > 1e-4).sum()), "of", scores.numel())
print("largest error:", round((scores - right).abs().max().item(), 1))
for warning in caught:  # of keys.T; PyTorch says it once in a session
    print("PyTorch warned:", str(warning.message).split(". ")[1])

# %% [markdown]
# No error, and every number is wrong. PyTorch's warning names the cure. We want the transpose *within* each sentence, of the last two dimensions:
#
# ```
# queries (b, n, d)   @   keys with the last two swapped (b, d, n)   =   scores (b, n, n)
#
# one product for each sentence: (n, d) @ (d, n) = (n, n)
# ```
#
# `keys.mT` does that, and so does `keys.transpose(-2, -1)`. `@` multiplies the last two dimensions and treats everything before them
# as a list of matrices.

# %%
print("largest error:", round((cube @ cube.mT - right).abs().max().item(), 4))

# %% [markdown]
# ## 3 What a module carries with it
#
# The layer needs three matrices that are learned and a mask that is not. An `nn.Module` can hold a tensor in three ways. Here is one
# triangle, held in all three.

# %%
class ThreeMasks(nn.Module):
    """One triangle, kept in three ways."""

    def __init__(self, n):
        super().__init__()
        self.attribute = torch.ones(n, n).tril()
        self.parameter = nn.Parameter(torch.ones(n, n).tril())
        self.register_buffer("buffer", torch.ones(n, n).tril())


kinds = ["attribute", "parameter", "buffer"]
three = ThreeMasks(6)

# %% [markdown]
# **Predict, then run.** We convert the module with `.to(torch.float64)`. Which of the three tensors follow?

# %%
my_guess = None  # some of: "attribute", "parameter", "buffer"

# %%
three.to(torch.float64)
beside(my_guess, [kind for kind in kinds if getattr(three, kind).dtype == torch.float64])

# %% [markdown]
# A module does not know about its plain attributes. A module is moved to a GPU with the same call, and a tensor left behind does more harm then: an
# operation on tensors of two devices raises an error. You can try that on any machine with the device `meta`, which keeps shapes but no numbers. The
# table answers two more questions. Is the tensor saved? `state_dict()` is what goes into a file. Is it trained? `parameters()` is what an optimizer
# changes.

# %%
three.to("meta")
for kind in kinds:
    saved = kind in three.state_dict()
    trained = kind in dict(three.named_parameters())
    print(f"{kind:>9}: on {getattr(three, kind).device!s:4}  {'saved' if saved else 'not saved':9}  {'trained' if trained else 'not trained'}")
try:
    torch.ones(6, 6, device="meta").masked_fill(three.attribute == 0, 0.0)
except RuntimeError:
    print("scores on meta, the attribute left on the CPU: RuntimeError")

# %% [markdown]
# A **buffer** is the third kind: a tensor that belongs to the module, moves with it and is saved with it, but is not trained.
#
# What exactly goes wrong when the mask is a parameter? That depends on how the mask is used, and there are three ways. The next cell tries each of
# them. There are six words and 36 free scores. For each word the task is to mix the words up to it so that the result is close to the *next* word. The
# scores are always trained. Each mask is trained once and kept fixed once, as the baseline.

# %%
# demonstration: scores trained with three kinds of masks, which are trained too or not
hidden = future(6)
starts = {
    "multiply": (~hidden).float(),  # weights * mask, then each row divided by its sum
    "add": torch.zeros(6, 6, device=device).masked_fill(hidden, -math.inf),  # scores + mask
    "fill": hidden.float(),  # scores.masked_fill(mask.bool(), -inf)
}


def masked_weights(way, scores, mask):
    """Weights (6, 6), with the mask used in one of the three ways."""
    if way == "multiply":
        weights = torch.softmax(scores, dim=-1) * mask
        return weights / weights.sum(dim=-1, keepdim=True)
    scores = scores + mask if way == "add" else scores.masked_fill(mask.bool(), -math.inf)
    return torch.softmax(scores, dim=-1)


def trained_mask(way, trained):
    """Train the scores, and the mask too if it is `trained`; return the mask and the weights."""
    scores, mask = nn.Parameter(torch.zeros(6, 6, device=device)), nn.Parameter(starts[way].clone(), requires_grad=trained)
    optimizer = torch.optim.AdamW([scores, mask], lr=0.05)
    for _ in range(200):
        guesses = masked_weights(way, scores, mask) @ inputs  # (6, 3)
        loss = (guesses[:-1] - inputs[1:]).square().mean()  # row i against token i + 1
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return mask.detach(), masked_weights(way, scores, mask).detach()


after = {(way, trained): trained_mask(way, trained) for way in starts for trained in (False, True)}
print("mask       trained  largest weight on the future  entries that were 0 or 1 moved by up to")
for (way, trained), (mask, weights) in after.items():
    kept = starts[way].isfinite()
    moved = (mask - starts[way])[kept].abs().max().item()
    print(f"{way:10} {'yes' if trained else 'no':7}  {weights[hidden].max().item():28.2f}  {moved:39.2f}")

# %% jupyter={"source_hidden": true}
# demonstration: draws the figure
maps = [
    heatmap(after[way, True][1], tokens, tokens, title=f"{way}: weights, mask trained", limits=(0, 1), bar=way == "fill")
    for way in starts
]
show(
    panels(*maps, size=(11.5, 3.8)),
    "Three heatmaps of weights after training the mask as a parameter. Multiply: most of the weight is right of the "
    "diagonal, on later words. Add and fill: nothing above the diagonal.",
)

# %% [markdown]
# - A mask that **multiplies** is trained away: the weight moves to later words, because looking at the next word is the best way to predict
#   it. (*journey* and *starts* are nearly the same vector, so either will do. The last row has no next word to learn from.) Nothing keeps the entries
#   of the mask between 0 and 1, so some weights are even negative. The rule is gone.
# - A mask that is **added** keeps its -inf, but the zeros on and below the diagonal drift. It has turned from a rule into one more thing that is
#   learned.
# - A mask that **fills** gets no gradient at all: a comparison or `.bool()` has none. Nothing changes, but the mask is still in
#   `parameters()`, counted as learned and handed to the optimizer.
#
# And a bool mask cannot be trained in the first place:

# %%
try:
    nn.Parameter(future(6))
except RuntimeError as error:
    print("nn.Parameter:", error)
small = nn.Module()
small.register_buffer("mask", future(6))
print("a bool buffer after .to(torch.float64) is", small.to(torch.float64).mask.dtype)

# %% [markdown]
# `.to(torch.float64)` converts floating-point tensors only, so a bool buffer stays bool. That is what we want: True and False need no
# precision.
#
# ### Exercise: `count_parameters` (2 points)
#
# How many numbers does a module learn? Return an `int`. Buffers do not count, and neither do frozen parameters, whose
# `requires_grad` is False. A parameter used in two places counts once. Mode, dtype and device make no difference, and counting changes
# nothing.

# %% nbgrader={"grade": false, "grade_id": "count_parameters", "locked": false, "schema_version": 3, "solution": true, "task": false}
def count_parameters(module):
    """Return how many numbers a module learns."""
    ### BEGIN SOLUTION
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)
    ### END SOLUTION

# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_count_parameters", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("count_parameters")  # the contract as a checklist; open this cell to read it
def _(r):
    n, m = r.integer(11, 19), r.integer(21, 29)
    layers = r.module("two layers", m, n)
    r.each("counts the numbers of every parameter, in train() and eval()", count_parameters, (r.module("linear", n, m).eval(),), (layers,), (r.module("odd shapes", n, m).double(),), (r.module("two layers of one size", n).to("meta"),), (nn.Embedding.from_pretrained(r.normal(n, m), freeze=False),), (nn.ReLU(),))
    layers[0].requires_grad_(False)
    r.idea.each("buffers and frozen parameters do not count, a shared weight counts once", count_parameters, (r.module("with buffers", n, m),), (r.module("half frozen", n, m),), (layers,), (r.module("shared weight", n, m),))
    r.unchanged("leaves the module as it was")

# %% [markdown]
# Try it on a few modules. The last one has the size of one attention layer of the smallest GPT-2: query, key, value, and the output
# projection that lesson 06 adds.

# %% tags=["raises-exception"]
frozen_layers = nn.ModuleList([nn.Linear(3, 2, bias=False) for _ in range(3)])
frozen_layers[0].requires_grad_(False)
print("query, key, value, 3 to 2: ", count_parameters(nn.ModuleList(layers)))
print("the same, W_query frozen:  ", count_parameters(frozen_layers))
print("ThreeMasks(6):             ", count_parameters(ThreeMasks(6)))
print("the course's model:        ", count_parameters(model))
print("one layer of GPT-2:        ", count_parameters(nn.ModuleList([nn.Linear(768, 768) for _ in range(4)])))

# %% [markdown] nbgrader={"grade": false, "grade_id": "question_why_buffer", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### Question: `why_buffer` (2 points, a person reads it)
#
# Why is the mask a buffer, and neither a parameter nor a plain attribute? Name one thing that goes wrong if it is a parameter, and the kind of mask
# it happens to (one that multiplies, is added, or fills); one kind is enough. Say what goes wrong with a plain attribute. Three to five sentences.
#
# <!-- BEGIN MARK SCHEME -->
# **Marking scheme.** Two halves, one point each; half a point where it is not said what goes wrong.
#
# - *Not a parameter* (1 point): the mask is a fixed rule, and a parameter is there to be changed. One consequence, with the kind of mask it
#   belongs to: a mask that multiplies is trained open, so that the future becomes visible; one that is added turns into a learned bias; one
#   that fills gets no gradient, but is counted and handed to the optimizer. As good: a bool tensor cannot be trained.
# - *Not a plain attribute* (1 point): the module does not know of it. One consequence: `.to(device)` leaves it behind, so that the first
#   forward pass on a GPU raises an error. As good: it is missing from `state_dict()`.
#
# Typical answers that lack something:
#
# - "Because it is constant", "because it is not learned", and no more: half a point for the first half.
# - "As a parameter, training makes the future visible", without saying for which kind of mask: half a point. It is false for a mask
#   that fills.
# - "A buffer is saved": half a point for the second half. A parameter is saved as well, so this rules out only the attribute.
# - "A buffer follows `.to(torch.float64)`": half a point; true of a float mask, false of a bool mask.
# - "A buffer is faster", "takes less memory": no points, it does neither.
# - "A buffer gets no gradient, an attribute would": no points for the second half; a plain tensor gets none either.
# - "`requires_grad=False` would do": right that training then leaves it alone; full points if it says that the mask would still stand in
#   `parameters()`.
#
# Language and length do not count. An answer that is right in the student's own words earns everything.
# <!-- END MARK SCHEME -->

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_buffer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# <!-- BEGIN SOLUTION -->
# The mask is a rule, not something to be learned. As a parameter, a mask that multiplies the weights would be trained open until the future is
# visible; one that is added to the scores would become a learned bias; one that fills, as in our class, gets no gradient, but would be counted
# and handed to the optimizer for nothing, and a bool tensor cannot be trained at all. As a plain attribute the module would not know of it:
# `.to("cuda")` would leave it on the CPU, the first forward pass there would raise an error, and `state_dict()` would lack it. A buffer moves
# and is saved with the module, and no optimizer sees it.
# <!-- END SOLUTION -->

# %% [markdown]
# ## 4 Shorter and longer sentences
#
# The mask is made once, in `__init__`, for the longest sentence the layer will ever see. That length is the **context length**. A
# shorter sentence uses the top left corner of the mask, `mask[:n, :n]`:
#
# ```
# mask for 4 tokens          its corner [:2, :2] is the mask for 2 tokens
#   .  x  x  x                 .  x
#   .  .  x  x                 .  .
#   .  .  .  x
#   .  .  .  .               x: hidden
# ```
#
# What about a longer one? Slicing beyond the end is not an error in Python; the slice is just shorter. So the mask comes out too small, and the
# error appears somewhere else.

# %%
mask = future(6)
scores = torch.zeros(2, 8, 8, device=device)  # 8 tokens, the mask is for 6
print("mask[:8, :8] has the shape", tuple(mask[:8, :8].shape))
try:
    scores.masked_fill(mask[:8, :8], float("-inf"))
except RuntimeError as error:
    print(type(error).__name__ + ":", error)

# %% [markdown]
# The message talks about tensors a and b, not about a sentence that is too long. And there is a worse case.
#
# **Predict, then run.** A layer with a context length of 1 has a 1 × 1 mask. It gets 8 tokens. How many of the 64 scores are hidden?

# %%
my_guess = None  # a number from 0 to 64

# %%
beside(my_guess, int(torch.zeros(8, 8, device=device).masked_fill(future(1)[:8, :8], float("-inf")).isinf().sum()))

# %% [markdown]
# A 1 × 1 mask **broadcasts** to any size, and its one entry hides nothing. No error, and every word sees the future. So a good layer checks first
# and says what is wrong: a `ValueError` with the length and the limit. It also refuses a sentence without a batch dimension: in a
# tensor `(6, 3)`, `x.shape[1]` is 3, and that is not the number of tokens.
#
# ## 5 The class
#
# ```
# x (b, n, d_in)  ->  queries, keys, values (b, n, d_out)
#                 ->  scores (b, n, n)  ->  mask, divide by sqrt(d_out), softmax  ->  weights (b, n, n)  ->  dropout on the weights
#                 ->  context (b, n, d_out)
# ```
#
# ### Exercise: `CausalAttention` (8 points)
#
# - `self.W_query`, `self.W_key`, `self.W_value` are `nn.Linear` layers, with a bias only if `qkv_bias` is True.
# - `self.dropout` is an `nn.Dropout` with the probability `dropout`. In training it drops weights after the softmax, each on its own, with the
#   probability that `dropout.p` holds when `forward` is called. In `eval()` nothing is random.
# - `mask` is a buffer of `context_length` × `context_length` numbers, one value for what is hidden and another for the rest, and `state_dict()` holds
#   it. Wherever `.to()` moves the layer, `forward` works, so it must not use a tensor that stays behind.
# - `forward` takes `(b, n, d_in)` with any n from 1 to `context_length` and leaves its input unchanged. After `.double()` the layer computes in float64
#   throughout. A token sees itself and the tokens before it in its own sentence, nothing else, however large the scores are. A token of
#   zeros is a token like any other.
# - Longer input, and input that is not 3-D, is refused with a `ValueError`.

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
@rubric("CausalAttention")  # the contract as a checklist; open this cell to read it
def _(r):
    layer = r.layer(CausalAttention, d_in=4, d_out=6, context_length=8, dropout=0.0, qkv_bias=False)
    layer.linear("W_query W_key W_value", "d_in -> d_out", bias="qkv_bias")
    layer.outputs("sentences of any length up to the context", r.normal(1, 2, 4), r.normal(2, 8, 4), r.normal(2, 8, 4), r.normal(3, 1, 4))
    layer.outputs("b, n and d_in all equal; with a bias", r.normal(6, 6, 6), d_in=6, qkv_bias=True)
    layer.outputs("a token of zeros is input like any other", r.normal(3, 7, 4) * (r.uniform(3, 7, 1) > 0))
    layer.first_token("the first token sees itself alone, however large the scores", 1e6 * r.normal(20, 6, 4))
    layer.drops_weights("in training it drops weights, each by itself, in eval() none", p=0.3)
    layer.rereads_dropout("dropout.p is read at each call", r.normal(3, 7, 4))
    layer.keeps_mask("mask is a buffer: saved, not learned, moved by .to(device) with all else that forward uses", r.normal(2, 5, 4))
    layer.refuses("raises ValueError for more tokens than context_length", r.normal(2, 9, 4), r.normal(1, 16, 4))
    layer.refuses("raises ValueError for input that is not 3-D", r.normal(5, 4), r.normal(1, 2, 5, 4))
    layer.conventions(r.normal(3, 7, 4), dropout=1e-12)

# %% [markdown]
# Here is the sentence twice in a batch, with the layers from seed 123. Both copies must agree. If your `__init__` makes `W_query`, `W_key` and
# `W_value` in this order and draws nothing else, both give the table of part 2. In another order the seed gives other matrices, and that is no mistake.

# %% tags=["raises-exception"]
torch.manual_seed(123)
layer = CausalAttention(d_in=3, d_out=2, context_length=6, dropout=0.0).to(device)
for context in layer(torch.stack([inputs, inputs])):  # (2, 6, 2)
    table(context, rows=tokens, columns=["0", "1"])
    print()

# %% [markdown]
# ### Your lines, and where they come from
#
# The next cell runs your `forward` on the batch, line by line. Beside each line it names the step of lessons 01 to 03 that gives the same
# numbers. A line without a name is a step of your own. With p = 0 dropout changes nothing, so its line repeats the weights.

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
known["keys, the last two dimensions swapped, part 2"] = torch.stack([step["keys"].T for step in steps])
trace(layer, batch, known)

# %% [markdown]
# ### One of the biases does nothing
#
# With `qkv_bias=True` there are three biases.
#
# **Predict, then run.** We add 5 to every number of one bias at a time. For which of the three does the output stay the same?

# %%
my_guess = None  # one of: "W_query", "W_key", "W_value"

# %% tags=["raises-exception"]
torch.manual_seed(123)
biased = CausalAttention(3, 2, 6, 0.0, qkv_bias=True).to(device)
moved = {}
with torch.no_grad():
    spread = 6 * batch - 3  # inputs spread out, so that the weights differ more
    before = biased(spread)
    for name in ("W_query", "W_key", "W_value"):
        getattr(biased, name).bias += 5
        moved[name] = (biased(spread) - before).abs().max().item()
        getattr(biased, name).bias -= 5
beside(my_guess, min(moved, key=moved.get))

# %% tags=["raises-exception"]
print({name: round(distance, 4) for name, distance in moved.items()})

# %% [markdown]
# A bias `c` on the keys adds `q · c` to every score of a query: the same number in the whole row. The softmax does not notice, as you saw in
# lesson 01. The speech model Whisper, for one, has biases on its queries and values and none on its keys.
#
# ## 6 Does it look ahead?
#
# In lesson 02, a model that looks ahead had a very low loss in training and wrote nonsense. No shape gives that away. So test a layer from the
# outside: change the tokens after t, and see whether the output at t moves.
#
# ### Exercise: `peeks` (3 points)
#
# `module` maps `(b, n, d_in)` to `(b, n, d_out)`; it need not be attention. You may rely on `module` not changing its input. Return `True` if any
# output at a token t changes when the tokens after t change, and `False` otherwise.
#
# - Try **every** t, and change **everything** after it at once, to fresh numbers from `torch.randn`. One draw for each t is enough.
# - A change counts if it is larger than 0.0001 times the largest absolute entry of `module(x)`. Anything smaller is rounding.
# - Judge the module as it is in `eval()`, where dropout is off. Afterwards **every** submodule is back in the mode it had, even if some were
#   in training and others not.
# - `x` stays as it was.

# %% nbgrader={"grade": false, "grade_id": "peeks", "locked": false, "schema_version": 3, "solution": true, "task": false}
def peeks(module, x):
    """Return True if an output at a token depends on later tokens. x is (b, n, d_in)."""
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
@rubric("peeks")  # the contract as a checklist; open this cell to read it
def _(r):
    x, t = r.normal(3, 12, 4), r.integer(3, 8)
    r.each("tells layers that look ahead from layers that do not", peeks, *r.modules(x, *r.examples.LAYERS))
    r.idea.each("one token that looks at one other", peeks, *((r.module("one glance", 4, at, to), x) for at, to in ((0, 1), (3, 4), (t, 11), (t, t + 2), (t, t - 1), (10, 11), (11, 0))))
    r.each("as in eval(), with dropout in the layer", peeks, *r.modules(x, "looks ahead in training", "looks ahead in eval()", "in eval() but for its dropout"))
    r.each("small or negative outputs; a faint look; float64; one token alone; a future of zeros", peeks, (r.module("small outputs, no mask", 4), x), (r.module("faint look at the next token", 4), x), (r.module("outputs below 0", 4), x), (r.module("total minus the rest", 4), x), (r.module("recurrent, half in training", 4).double(), x.double()), (r.module("attention without a mask", 4), x[:, :1]), (r.module("centred convolution", 4), 0 * x))
    r.unchanged("every submodule keeps its mode, and x stays as it was")

# %% [markdown]
# Now use it. The first layer is lesson 01's, without a mask. The second has a mask, but its softmax was copied from code for one
# sentence, where the keys are dimension 1. In a batch, dimension 1 is the queries.

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
# `peeks` asks one question only. Here is a broken layer that passes. When `keys.T` failed on a batch, somebody wrote `keys[0].T`, and the
# error was gone.

# %%
class KeysOfTheFirst(NoMask):
    """Uses the keys of the first sentence for every sentence."""

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
# **Predict, then run.** The table in part 5 came from a batch of two copies of one sentence. Is the output of the broken layer wrong for two copies?
# And for two different sentences? (In both, the inputs are multiplied by 6 and 3 is subtracted, so that the weights differ more.)

# %%
my_guess = None  # two words: ("yes" or "no", "yes" or "no")

# %%
errors = [error_on(6 * torch.stack([inputs, inputs]) - 3), error_on(6 * batch - 3)]
beside(my_guess, tuple("yes" if error > 1e-4 else "no" for error in errors))

# %% tags=["raises-exception"]
print(f"largest error: two copies {errors[0]:.2f}, two different sentences {errors[1]:.2f}")
print("peeks says:", peeks(KeysOfTheFirst(), x))

# %% [markdown]
# With two copies the wrong keys happen to be the right ones. To catch this, change one token of one sentence and see which outputs
# move. Below, each row is an output and each column the token that was changed: two sentences, twelve tokens.

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


def reached(maps):
    """Maps of 0 and 1 side by side, a line between the sentences."""
    words = [*tokens, *other_tokens]
    figure, grid = plt.subplots(1, len(maps), figsize=(11, 4.9), layout="constrained")
    for axes, (title, one) in zip(grid, maps.items()):
        axes.imshow(one.cpu(), cmap="Blues", vmin=0, vmax=1.3)
        axes.set_xticks(range(12), words, rotation=60, ha="right")
        axes.set_yticks(range(12), words)
        axes.set_xticks([i - 0.5 for i in range(13)], minor=True)
        axes.set_yticks([i - 0.5 for i in range(13)], minor=True)
        axes.grid(which="minor", color="white", linewidth=1)
        axes.tick_params(which="minor", length=0)
        axes.axhline(5.5, color="#d95f02", linewidth=2)
        axes.axvline(5.5, color="#d95f02", linewidth=2)
        axes.set(title=title, xlabel="changed token", ylabel="output")
    return figure


maps = {"Your layer": reach(layer, batch), "keys[0].T": reach(KeysOfTheFirst(), batch)}
show(
    chart(reached, maps),
    "Two 12 by 12 maps of which token reaches which output, a line between the two sentences. Your layer: two blue triangles, "
    "each within its sentence. With keys[0].T there is a third below the first: tokens of the first sentence reach outputs of "
    "the second.",
)

# %% [markdown]
# On the left there are two triangles, one for each sentence. On the right there is a third one, in the lower left block: the first sentence reaches
# the second. (It does not reach the second sentence's first word: with a single key the weight is 1, whatever the key.) But no token at a
# *later* place is seen, so `peeks` has nothing to complain about. Test with sentences that differ.
#
# ## 7 Your layer inside the model
#
# Back to the model of part 1. Each of its two layers of attention is a `CausalAttention` followed by one more linear layer, `out_proj`. The next cell
# builds two layers of **your** class, loads the trained matrices into them, and puts them in the place of the model's own.

# %% tags=["raises-exception"]
told = stories(100, seed=5)
yours, untrained = course_model(1), course_model(1)
torch.manual_seed(123)
for block, other in zip(yours.blocks, untrained.blocks):
    trained = {name: numbers for name, numbers in block.attention.state_dict().items() if not name.startswith("out_proj")}
    own = CausalAttention(48, 48, 48, dropout=0.1)
    print("not in the model's state_dict():", own.load_state_dict(trained, strict=False).missing_keys)
    block.attention = nn.Sequential(own, block.attention.out_proj)
    other.attention = nn.Sequential(CausalAttention(48, 48, 48, dropout=0.1), other.attention.out_proj)
yours.eval()
untrained.eval()
for name, one in {"the model as it came": model, "with your layers": yours, "with your layers, untrained": untrained}.items():
    chance = next_words(one, beginning)["kicks"]
    print(f"{name:>27}: she kicks {chance:.2f}, {answers(one, told)['all']:.0%} of the questions answered correctly")

# %% [markdown]
# With your code the model answers as many questions correctly as with its own. The last line is the baseline: your class with new random matrices, everything
# else trained. The model's `state_dict()` holds no mask, because the model makes its own; that of your layer came from `__init__`.
#
# What does your layer look at? It returns context vectors, not weights. A trick makes them visible: give every token a value of its own,
# a 1 in its own place and 0 elsewhere. Then the context vector of a word *is* its row of weights.

# %% tags=["raises-exception"]
def weights_of(layer, x):
    """The weights (b, n, n) of a layer, read off a copy whose values are 0 and 1."""
    b, n, d_in = x.shape
    d_out = layer.W_key.out_features
    width = max(n, d_out)
    copy = type(layer)(d_in + n, width, n, 0.0)
    with torch.no_grad():
        for linear in (copy.W_query, copy.W_key, copy.W_value):
            linear.weight.zero_()
        copy.W_query.weight[:d_out, :d_in] = layer.W_query.weight * math.sqrt(width / d_out)  # wider keys, the same scale
        copy.W_key.weight[:d_out, :d_in] = layer.W_key.weight
        copy.W_value.weight[:n, d_in:] = torch.eye(n)
        return copy(torch.cat([x, torch.eye(n).expand(b, n, n)], dim=-1))[..., :n]


def second_layer(model, words):
    """What the last word looks at in the second layer of a model with your layers, (n,)."""
    with torch.no_grad():
        x = model.blocks[0](model.embed(torch.tensor([encode(words)])))  # (1, n, 48)
        return weights_of(model.blocks[1].attention[0], model.blocks[1].norm1(x))[0, -1]


# %% [markdown]
# Choose the last word. *she* must find what Anna has, *he* what Tom has: the verb that follows depends on it.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
def bars(words, trained, fresh):
    figure, axes = plt.subplots(figsize=(9, 3.4), layout="constrained")
    places = torch.arange(len(words))
    axes.bar(places - 0.2, trained, width=0.4, color="#1f6f8b", label="trained")
    axes.bar(places + 0.2, fresh, width=0.4, color="#d9a441", label="untrained")
    axes.set_xticks(range(len(words)), words, rotation=45, ha="right")
    axes.set(ylim=(0, 1), ylabel="weight", title=f"What “{words[-1]}” looks at in your second layer")
    axes.legend()
    return figure


def look(last):
    words = begin("Anna has a ball . Tom has two books .") + [last]
    trained, fresh = second_layer(yours, words), second_layer(untrained, words)
    most = int(trained.argmax())
    verb, chance = next(iter(next_words(yours, words).items()))
    said = f"{last} looks most at {words[most]} ({float(trained[most]):.2f}; untrained {float(fresh[most]):.2f}). Next word: {verb} ({chance:.2f})."
    return chart(bars, words, trained, fresh), said


explore(look, alt="Bars of the weights of the last word, in the trained layer and in an untrained one.", last=["she", "he"])

# %% [markdown]
# ## 8 What goes wrong in practice
#
# **`F.dropout`, short for `nn.functional.dropout`, without `training`.** The function drops in `eval()` too, unless you pass it the mode. In use, that
# is after `eval()`, it should not.

# %%
ones = torch.ones(1, 1000, device=device)
switched_off = nn.Dropout(0.5).eval()
print("nn.Dropout in eval() drops:  ", bool((switched_off(ones) == 0).any()))
print("nn.functional.dropout drops: ", bool((nn.functional.dropout(ones, 0.5) == 0).any()))
print("with training=False it drops:", bool((nn.functional.dropout(ones, 0.5, training=False) == 0).any()))

# %% [markdown]
# **A saved mask gets in the way.** This lesson's class saves its mask, so the file also shows the context length. The saved mask is not needed:
# `__init__` makes a new one. The price: a layer with another context length refuses the file, although every matrix fits.

# %% tags=["raises-exception"]
longer = CausalAttention(3, 2, 8, 0.0)
for strict in (True, False):
    try:
        longer.load_state_dict(layer.state_dict(), strict=strict)
    except RuntimeError as error:
        print(f"strict={strict}:", str(error).splitlines()[-1].strip())
weights_only = {name: tensor for name, tensor in layer.state_dict().items() if name != "mask"}
print("without the mask, missing:", longer.load_state_dict(weights_only, strict=False).missing_keys)

# %% [markdown]
# `strict=False` forgives names that are missing, but not sizes that differ. So take the mask out before loading. Or do not save it in the first place,
# with `register_buffer(..., persistent=False)`; the course's model does that.
#
# **The scale is forgotten, and the test does not notice.** On small inputs like our six tokens it hardly shows.

# %% tags=["raises-exception"]
with torch.no_grad():
    for name, x in {"the six tokens": inputs, "spread out": 6 * inputs - 3}.items():
        steps = one_sentence(x, *layers)
        unscaled = torch.softmax(steps["hidden scores"], dim=-1) @ steps["values"]
        moved, largest = (unscaled - steps["context"]).abs().max().item(), steps["context"].abs().max().item()
        print(f"{name}: without the scale the output moves by up to {moved / largest:.1%} of its largest number")

# %% [markdown]
# ## Summary
#
# - In a batch, swap the last two dimensions of the keys with `keys.mT`. `.T` reverses all of them.
# - **Parameters** are learned. **Buffers** move and are saved with the module, but are not learned. Plain attributes are left behind.
# - Cut the mask to the length of the input, and refuse longer input yourself: otherwise the error comes late, and with a 1 × 1 mask not at all.
# - The bias of the keys cancels in the softmax.
# - Test with sentences that differ, of several lengths, with sizes that all differ and numbers that are not small. Change the future.
#
# **A loose end.** Each word has one row of weights, so it gets one mixture of what came before. In lesson 06 it gets several.
#
# ## Further reading
#
# - Vaswani et al., *Attention Is All You Need*, 2017, section 3.2.1: scaled dot products.
# - Radford et al., *Improving Language Understanding by Generative Pre-Training*, 2018, section 4.1: dropout of 0.1 in the attention, too.
# - PyTorch's documentation of `torch.nn.Module.register_buffer`.
