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
# A trained model reads *Anna has a ball . Tom has two books . she* and says what comes next. Take away its causal mask, and not one of its trained
# numbers has changed. The last word has no later words to see. Does removing the mask change the prediction there? Run the next two cells.

# %% grade_id="setup" seconds=3 jupyter={"source_hidden": true}
# the set-up: imports, and what this lesson starts from
import math
import os
import warnings
from contextlib import contextmanager

import matplotlib.pyplot as plt
import torch
from torch import nn

from attention_course import (
    answers, begin, beside, case, chart, course_model, encode, explore_story, heatmap, hint, next_words, one_sentence, pairs,
    panels, progress, rubric, show, stories, trace, train, why, without_mask, word_by_word, write,
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


@contextmanager
def in_eval(module):
    """The module in eval(); afterwards each of its parts is in the mode in which it was."""
    modes = {part: part.training for part in module.modules()}
    module.eval()
    try:
        yield
    finally:
        for part, training in modes.items():
            part.training = training

# %%
# demonstration: right answers to the questions in 100 stories
model = course_model(1)  # trained; one head a layer
unmasked = without_mask(course_model(1))  # the same trained numbers, but no word is hidden from any other
beginning, told = begin("Anna has a ball . Tom has two books . she"), stories(100, seed=5)
print(f"{'':>13}  {f'after “{beginning[-1]}”':<22}  right answers to “what”   to “who”")
for name, one in {"with the mask": model, "without it": unmasked}.items():
    best = ", ".join(f"{word} {chance:.2f}" for word, chance in list(next_words(one, beginning).items())[:2])
    shares = answers(word_by_word(one), told)
    print(f"{name:>13}  {best:<22}  {shares['what']:>23.0%}   {shares['who']:>8.0%}")

# %% [markdown]
# It does. The questions were read word by word, with nothing after the last word. The names asked for are still found, but more than a fifth of the
# answers to *what* are lost: the words *before* the last one now see later words in layer 1, and pass on something else. **The mask belongs to the
# layer as its trained numbers do**, although nobody trained it. So all that you have built so far goes into one object, which takes a whole batch, is
# saved and moved in one piece, and leaves nothing behind.
#
# - You compute attention for a batch without mixing its sentences.
# - You write `CausalAttention`, and say what a module carries with it.
# - You test any layer, your own or somebody else's, for looking ahead.
#
# *About 100 minutes. It builds on lessons 01 to 04. Run cells, solve exercises and ask for `hint()`, `why()` and `progress()` as before; let gradients
# through and don't modify the arguments.*

# %%
# demonstration: three questions on earlier lessons, without points
from attention_course import recall

recall()

# %% [markdown]
# ## 1 A batch of sentences
#
# A **batch** is several sentences in one tensor `(b, n, d_in)`. Ours is `(2, 6, 3)`: the sentence you know, and *one step starts with Your journey*.
# `nn.Linear` works on the last dimension, so keys of two numbers come out as `(2, 6, 2)`. In lesson 01 the next step was `keys.T`.
#
# **Predict, then run.** What is the shape of `keys.T`?

# %%
my_guess = None  # three numbers, (?, ?, ?)

# %%
torch.manual_seed(123)
layers = [nn.Linear(3, 2, bias=False).to(device) for _ in range(3)]  # query, key, value
with torch.no_grad():
    keys = layers[1](batch)  # (2, 6, 2)
with warnings.catch_warnings(record=True):
    turned = keys.T
beside(my_guess, tuple(turned.shape))
try:
    one_sentence(batch, *layers)  # the lines that you wrote in lessons 01 to 03
except RuntimeError as error:
    print(type(error).__name__ + ":", error)

# %% [markdown]
# The same shape? It looks so because two sentences meet keys of two numbers. `.T` reverses *all* dimensions: the first 2 now counts numbers, the last one
# sentences. We were lucky to get an error. With three sentences of three tokens and keys of three numbers, every dimension is 3:

# %%
torch.manual_seed(1)
cube = torch.randn(3, 3, 3).to(device)  # 3 sentences, 3 tokens, 3 numbers
right = torch.stack([sentence @ sentence.T for sentence in cube])  # sentence by sentence
turned = cube.T  # change this line
wrong = (cube @ turned - right).abs()
print("wrong entries:", int((wrong > 1e-4).sum()), "of", wrong.numel())
print("largest error:", round(wrong.max().item(), 1))

# %% [markdown]
# No error, and every number is wrong. `@` multiplies the last two dimensions, and treats everything before them as a list of matrices. So what has to
# change places? **Change the line until no entry is wrong.** It must serve any batch:
#
# ```
# queries (b, n, d)   @   turned keys (b, d, n)   =   scores (b, n, n)
# ```
#
# ## 2 The class

# %% jupyter={"source_hidden": true}
# draws the figure
def layer_picture():
    figure, axes = plt.subplots(figsize=(11, 3.6), layout="constrained")
    learned, kept, random, plain = "#b5541c", "#1f6f8b", "#6a4c93", "0.35"
    boxes = {  # left, height, width, colour, text
        "x": (0, 2, 1.3, plain, "x\n(b, n, d_in)"),
        "q": (1.9, 3, 1.2, learned, "W_query"), "k": (1.9, 2, 1.2, learned, "W_key"), "v": (1.9, 0.8, 1.2, learned, "W_value"),
        "s": (3.7, 2.5, 1.9, plain, "scores\n(b, n, n)"), "m": (6.1, 2.5, 1.4, kept, "mask"),
        "r": (6.1, 1.7, 1.4, plain, "÷ √d, softmax"), "d": (8.0, 1.7, 1.1, random, "dropout"), "c": (9.6, 1.25, 1.9, plain, "context vectors\n(b, n, d_out)"),
    }
    for left, height, width, colour, text in boxes.values():
        axes.add_patch(plt.Rectangle((left, height - 0.3), width, 0.6, color=colour, linewidth=0))
        axes.text(left + width / 2, height, text, ha="center", va="center", color="white", fontsize=9.5)
    for start, end in ("xq", "xk", "xv", "qs", "ks", "sm", "rd", "dc", "vc"):
        (a, y, width, *_), (b, z, *_) = boxes[start], boxes[end]
        axes.annotate("", (b, z), (a + width, y), arrowprops={"arrowstyle": "-|>", "color": "0.4", "lw": 1.4, "shrinkA": 1, "shrinkB": 1})
    axes.annotate("", (6.8, 2.0), (6.8, 2.2), arrowprops={"arrowstyle": "-|>", "color": "0.4", "lw": 1.4, "shrinkA": 0, "shrinkB": 0})
    for at, (text, colour) in enumerate({"learned": learned, "a fixed rule, kept in the layer": kept, "random, in training only": random}.items()):
        axes.text((0, 1.9, 6.1)[at], 0.05, "■ " + text, color=colour, fontsize=10)
    axes.set(xlim=(-0.1, 11.6), ylim=(-0.1, 3.4))
    axes.set_axis_off()
    return figure


show(
    chart(layer_picture),
    "The layer from left to right. x goes through three learned layers W_query, W_key and W_value. Queries times turned keys give scores (b, n, n). The mask, a fixed "
    "rule, and the softmax follow, then dropout, in training only. With the values that gives the context vectors, (b, n, d_out).",
)

# %% [markdown]
# The mask is made once, for the longest sentence the layer will ever see: the **context length**. But sentences are shorter.

# %% tags=["raises-exception"]
mask = future(6).cpu()  # made once, for six tokens
for n in (6, 3, 1):
    scores = torch.zeros(n, n)
    try:
        hidden = scores.masked_fill(mask, -math.inf)  # change this line
        print(f"n = {n}: scores {tuple(hidden.shape)}, {int(hidden.isinf().sum())} of them hidden")
    except RuntimeError as error:
        print(f"n = {n}: RuntimeError: {error}")

# %% [markdown]
# Three tokens raise an error. One token raises none, and that is worse: its score **broadcasts**, and becomes 36. **Change the line until there are
# n × n scores**, of which 15, 3 and 0 are hidden.
#
# **Predict, then run.** And a sentence that is too long? A layer for one token has a 1 × 1 mask. It gets 8 tokens. How many of the 64 scores are hidden?

# %%
my_guess = None  # a number from 0 to 64

# %%
beside(my_guess, int(torch.zeros(8, 8, device=device).masked_fill(future(1), -math.inf).isinf().sum()))

# %% [markdown]
# Now the mask broadcasts, and its one entry hides nothing: no error, and every word sees the future. (Masks for more tokens raise an error about
# "tensors a and b", as above.) So a good layer checks first, and says what is wrong.
#
# Where does the layer keep its mask? A module can hold a tensor in three ways. Here is one triangle in all three.

# %%
class ThreeMasks(nn.Module):
    """One triangle, kept in three ways."""

    def __init__(self, n):
        super().__init__()
        self.attribute = torch.ones(n, n).tril()
        self.parameter = nn.Parameter(torch.ones(n, n).tril())
        self.register_buffer("buffer", torch.ones(n, n).tril())


three, kinds = ThreeMasks(6), ["parameter", "buffer", "attribute"]

# %% [markdown]
# **Predict, then run.** `.to("cuda")` moves a module to a GPU. The device `meta` works the same on any machine; it keeps shapes and no numbers. Which of
# the three follow the module there?

# %%
my_guess = None  # some of: "parameter", "buffer", "attribute"

# %%
three.to("meta")
beside(my_guess, [kind for kind in kinds if getattr(three, kind).is_meta])
answer = {True: "yes", False: "no"}
print("            moves   in the file: state_dict()   trained: parameters()")
for kind in kinds:
    row = getattr(three, kind).is_meta, kind in three.state_dict(), kind in dict(three.named_parameters())
    print(f"{kind:<11} {answer[row[0]]:<7} {answer[row[1]]:<27} {answer[row[2]]}")
try:
    torch.ones(6, 6, device="meta").masked_fill(three.attribute == 0, 0.0)
except RuntimeError:
    print("scores that moved, an attribute that did not: RuntimeError")

# %% [markdown]
# ### Exercise: `CausalAttention` (8 points)
#
# The steps of lessons 01 to 03 for a batch, `(b, n, d_in)` to `(b, n, d_out)`, with dropout on the weights.
#
# - `W_query`, `W_key`, `W_value` are `nn.Linear` layers, with a bias only if `qkv_bias`. `dropout` is an `nn.Dropout`.
# - `mask` is `context_length` × `context_length`, made in `__init__`. It moves with the layer and is saved with it, but is not learned.
# - A `ValueError` for more than `context_length` tokens, and for x that is not 3-D.

# %% grade_id="CausalAttention"
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

# %% grade_id="test_CausalAttention"
@rubric("CausalAttention")  # the contract as a checklist; open this cell to read it
def _(r):
    layer = r.layer(CausalAttention, d_in=4, d_out=6, context_length=8, dropout=0.0, qkv_bias=False)
    layer.linear("W_query W_key W_value", "d_in -> d_out", bias="qkv_bias")
    layer.outputs("sentences of any length up to the context", r.normal(1, 2, 4), r.normal(2, 5, 4), r.normal(2, 8, 4), r.normal(2, 8, 4), r.normal(3, 1, 4))
    layer.outputs("b, n and d_in all equal; with a bias", r.normal(6, 6, 6), d_in=6, qkv_bias=True)
    layer.outputs("a token of zeros is input like any other", r.normal(3, 7, 4) * (r.uniform(3, 7, 1) > 0))
    layer.first_token("the first token sees itself alone, however large the scores", 1e6 * r.normal(20, 6, 4))
    layer.drops_weights("in training it drops weights, each by itself, in eval() none", p=0.3)
    layer.rereads_dropout("dropout.p is read at each call", r.normal(3, 7, 4))
    layer.keeps_mask("mask is a buffer: saved, not learned, moved by .to(device) with all else that forward uses", r.normal(2, 5, 4))
    layer.refuses("raises ValueError for more tokens than context_length", r.normal(2, 9, 4), r.normal(1, 16, 4))
    layer.refuses("raises ValueError for input that is not 3-D", r.normal(5, 4), r.normal(1, 2, 5, 4))
    layer.conventions(r.normal(3, 7, 4), d_out=9, dropout=1e-12)

# %% [markdown]
# Here is your layer to come back to, line by line.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# compares the lines of your forward with the steps of lessons 01 to 03
torch.manual_seed(123)
layer = CausalAttention(d_in=3, d_out=2, context_length=6, dropout=0.0).to(device)
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
# With `qkv_bias=True` there are three biases, and one of them is for nothing.
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
print({name: round(distance, 4) for name, distance in moved.items()})

# %% [markdown]
# A bias c on the keys adds q · c to every score of a query, the same number in the whole row, and the softmax does not notice.
#
# ## 3 What learns, and what does not
#
# A plain attribute is left behind. A parameter is handed to the optimizer. What does training do to a mask? Here the mask multiplies the weights, as in
# lesson 02. Each word of our sentence mixes the words up to it so that the mixture comes close to the *next* word. The scores are trained;
# the mask is trained too, or, as the baseline, it is not.
#
# **Predict, then run.** How much weight does a trained mask let a word give to a later one, at most?

# %%
my_guess = None  # a number from 0 to 1

# %% jupyter={"source_hidden": true}
# demonstration: trains a mask
def trained_mask(mask_too):
    """Train 36 scores, and the mask if `mask_too`; return the weights (6, 6)."""
    scores, mask = nn.Parameter(torch.zeros(6, 6, device=device)), nn.Parameter((~future(6)).float(), requires_grad=mask_too)
    optimizer = torch.optim.AdamW([scores, mask], lr=0.05)
    for step in range(201):
        weights = torch.softmax(scores, dim=-1) * mask
        weights = weights / weights.sum(dim=-1, keepdim=True)
        loss = ((weights @ inputs)[:-1] - inputs[1:]).square().mean()  # row i against token i + 1
        if step < 200:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return weights.detach()


fixed, drifted = trained_mask(False), trained_mask(True)
show(
    panels(
        heatmap(fixed, tokens, tokens, title="weights, the mask fixed", hidden=future(6), limits=(0, 1), bar=False),
        heatmap(drifted, tokens, tokens, title="weights, the mask trained", limits=(0, 1)),
        size=(11, 4.4),
    ),
    "Two heatmaps of weights after training. Left, with the mask fixed, all above the diagonal are hidden. Right, with the mask trained too, "
    f"most words give most of their weight to later words, up to {drifted[future(6)].max():.2f}, and a few weights are negative.",
)
beside(my_guess, round(drifted[future(6)].max().item(), 2))

# %% [markdown]
# **The rule is trained away**, because looking at the next word is the best way to predict it. (Some weights are even negative. The last row predicts nothing, so nothing trains it.) And
# a mask that is *added* to the scores, or one that says where to *fill* in -inf? One training step shows what reaches them.

# %%
hidden, scores = future(6), nn.Parameter(torch.zeros(6, 6, device=device))
added = nn.Parameter(torch.zeros(6, 6, device=device).masked_fill(hidden, -math.inf))
filling = nn.Parameter(hidden.float())
for masked in (scores + added, scores.masked_fill(filling == 1, -math.inf)):
    ((torch.softmax(masked, dim=-1) @ inputs)[:-1] - inputs[1:]).square().mean().backward()
print(f"gradient of the added mask: {added.grad[hidden].abs().max().item():.2f} where it is -inf, up to {added.grad[~hidden].abs().max().item():.2f} where it is 0")
print("gradient of the filling mask:", filling.grad)
try:
    nn.Parameter(hidden)
except RuntimeError as error:
    print("a bool mask:", error)

# %% [markdown]
# The added one keeps its -inf, but its zeros become one more thing that is learned. The filling one is among the parameters and never learns. And a
# bool mask cannot be trained at all.
#
# A **buffer** moves and is not trained. It is also saved, unless you say `persistent=False`. We save ours: it is the only thing in the file that says for
# how many words the layer was made.
#
# ### Exercise: `count_parameters` (1 point)
#
# How many numbers does a module learn? Return an `int`. Buffers do not count, nor do frozen parameters, whose `requires_grad` is False. A parameter
# used in two places counts once.

# %% grade_id="count_parameters"
def count_parameters(module):
    """Return how many numbers a module learns."""
    ### BEGIN SOLUTION
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)
    ### END SOLUTION

# %% grade_id="test_count_parameters"
@rubric("count_parameters")  # the contract as a checklist; open this cell to read it
def _(r):
    n, m = r.integer(11, 19), r.integer(21, 29)
    layers = r.module("two layers", m, n)
    r.each("counts the numbers of every parameter, in train() and eval()", count_parameters,
        (r.module("linear", n, m).eval(),), (layers,), (r.module("odd shapes", n, m).double(),), (r.module("two layers of one size", n).to("meta"),),
        (nn.Embedding.from_pretrained(r.normal(n, m), freeze=False),), (nn.ReLU(),))
    layers[0].requires_grad_(False)
    r.idea.each("buffers and frozen parameters do not count, a shared weight counts once", count_parameters, (r.module("with buffers", n, m),), (r.module("half frozen", n, m),), (layers,), (r.module("shared weight", n, m),))
    r.unchanged("leaves the module as it was")

# %% [markdown]
# Training leaves a frozen parameter alone. So a trained model can be taught something new by few of its numbers, called **fine-tuning**. The new rule:
# *kicks* and *reads* change places. Balls are read, books are kicked. The opening's model gets 60 steps, and only one matrix of its second layer may
# learn, 2,304 of the model's 64,608 parameters.
#
# **Predict, then run.** With which of the three matrices does it learn the rule?

# %%
my_guess = None  # some of: "W_query", "W_key", "W_value"
learns = {  # only the parameters with this in their names; try "norm", "head" or "" (all), too
    "W_query": "blocks.1.attention.W_query",
    "W_key": "blocks.1.attention.W_key",
    "W_value": "blocks.1.attention.W_value",
}

# %% seconds=8 jupyter={"source_hidden": true} tags=["raises-exception", "nbval-ignore-output"]
# demonstration: teaches the trained model the new rule, a few seconds for each part that learns
kicks, reads = encode(["kicks", "reads"])


def by_new_rule(ids):
    """The same words, *kicks* and *reads* exchanged."""
    return torch.where(ids == kicks, reads, torch.where(ids == reads, kicks, ids))


practice = [by_new_rule(ids) for ids in pairs(stories(1000, seed=1))]
asked, targets = (by_new_rule(ids) for ids in pairs(told))
verbs = (targets == kicks) | (targets == reads)
learned = []
for name, part in learns.items():
    learner = course_model(1)
    assert any(part in full_name for full_name, _ in learner.named_parameters()), f"no parameter has {part!r} in its name"
    for full_name, parameter in learner.named_parameters():
        parameter.requires_grad = part in full_name
    list(train(learner, *practice, steps=60, lr=1e-2))
    with torch.no_grad():
        share = (learner.eval()(asked).argmax(dim=-1) == targets)[verbs].double().mean().item()
    if share > 0.5:
        learned.append(name)
    print(f"{name}: {count_parameters(learner):,} numbers learn, {share:.0%} of the new verbs are right")
    print("    " + " ".join(write(learner, beginning)[1:18]))
beside(my_guess, learned)

# %% [markdown]
# **Where it looks need not change; what is handed on must.** *She* looks at *ball*, as before, but *ball* has to hand on *reads*. That is `W_value`.
# `W_query` and `W_key`, as large as it, can only move where she looks. LoRA (Hu et al. 2021) fine-tunes large models in this spirit: what was trained
# stays frozen, and small matrices are added, for instance to `W_query` and `W_value`.

# %% [markdown] grade_id="question_why_buffer"
# ### Question: `why_buffer` (2 points, a person reads it)
#
# Why is the mask a buffer, and neither a parameter nor a plain attribute? Say in three to five sentences what goes wrong with each of the two. With the
# parameter, say also for which kind of mask: one that multiplies, is added, or fills.
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

# %% [markdown] grade_id="why_buffer"
# <!-- BEGIN SOLUTION -->
# The mask is a rule, not something to be learned. As a parameter, a mask that multiplies the weights would be trained open until the future is
# visible; one that is added to the scores would become a learned bias; one that fills, as in our class, gets no gradient, but would be counted
# and handed to the optimizer for nothing, and a bool tensor cannot be trained at all. As a plain attribute the module would not know of it:
# `.to("cuda")` would leave it on the CPU, the first forward pass there would raise an error, and `state_dict()` would lack it. A buffer moves
# and is saved with the module, and no optimizer sees it.
# <!-- END SOLUTION -->

# %% [markdown]
# ## 4 Does it look ahead?
#
# No shape tells whether a layer looks ahead. So test it from outside: change the tokens after t, and see whether the output at t moves.
#
# ### Exercise: `peeks` (3 points)
#
# Return `True` if the output at any token changes when the tokens after it change, otherwise `False`. `module` maps `(b, n, d_in)` to `(b, n, d_out)`;
# it need not be attention.
#
# - For one token after the other, put new random numbers (`torch.randn`) in place of all that follow it. Leave x as it was.
# - Rounding moves outputs, too: ignore changes up to a ten-thousandth of the largest absolute number in `module(x)`.
# - `with in_eval(module):`, from the first cell, switches dropout off, and afterwards brings back every part's mode.

# %% grade_id="peeks"
def peeks(module, x):
    """Return True if an output at a token depends on later tokens. x is (b, n, d_in)."""
    ### BEGIN SOLUTION
    with in_eval(module), torch.no_grad():
        before = module(x)  # (b, n, d_out)
        limit = 1e-4 * before.abs().max()
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            if (module(changed) - before)[:, : t + 1].abs().max() > limit:
                return True
    return False
    ### END SOLUTION

# %% grade_id="test_peeks"
@rubric("peeks")  # the contract as a checklist; open this cell to read it
def _(r):
    x, t = r.normal(3, 12, 4), r.integer(3, 8)
    r.each("tells layers that look ahead from layers that do not", peeks, *r.modules(x, *r.examples.LAYERS))
    r.idea.each("one token that looks at one other", peeks,
        *((r.module("one glance", 4, at, to), x) for at, to in ((0, 1), (3, 4), (t, 11), (t, t + 2), (t, t - 1), (10, 11), (11, 0))),
        *((r.module("one glance, behind a gate", 4, at, to), x) for at, to in 2 * ((0, 1), (t, 11), (t, t + 1), (10, 11))))
    r.each("as in eval(), with dropout in the layer", peeks, *r.modules(x, "looks ahead in training", "looks ahead in eval()", *4 * ["dropout and a gate"]))
    r.each("small outputs; a faint look; rounding; float64; one token alone; a text that ends in zeros", peeks,
        (r.module("small outputs, no mask", 4), x), (r.module("faint look at the next token", 4), x),
        (r.module("total minus the rest", 4), r.normal(30, 12, 4)), (r.module("recurrent, half in training", 4).double(), x.double()),
        *((r.module("one glance, behind a gate", 4, t, to).double(), x.double()) for to in (t + 1, t + 2, 10, 11)),
        (r.module("attention without a mask", 4), x[:, :1]),
        *((r.module(name, 4, t, 11), torch.cat((x[:, :11], 0 * x[:, 11:]), dim=1)) for name in ("one glance", "one glance that lowers")))
    r.unchanged("every submodule keeps its mode, and x stays as it was")

# %% [markdown]
# Three layers to try. The first has no mask. The second has one, but its softmax was copied from code for one sentence, where dimension 1 is the
# keys; in a batch it is the queries. The third is by somebody who found `keys.T` failing on a batch and wrote `keys[0].T`.

# %%
class NoMask(nn.Module):
    """Lesson 01's layer, for a batch."""

    dim, masked = -1, False

    def __init__(self):
        super().__init__()
        self.W_query, self.W_key, self.W_value = layers

    def scores(self, queries, keys):
        return queries @ keys.mT

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = self.scores(queries, keys) / math.sqrt(keys.shape[-1])
        if self.masked:
            scores = scores.masked_fill(future(x.shape[1]), float("-inf"))
        return torch.softmax(scores, dim=self.dim) @ values


class SoftmaxOverQueries(NoMask):
    dim, masked = 1, True


class KeysOfTheFirst(NoMask):
    masked = True

    def scores(self, queries, keys):
        return queries @ keys[0].T  # (b, n, d) @ (d, n): the shape is right


# %% [markdown]
# **Predict, then run.** Which of them does `peeks` call looking ahead?

# %%
my_guess = None  # some of: "no mask", "dim=1", "keys[0].T"

# %% tags=["raises-exception"]
torch.manual_seed(123)
x = torch.randn(2, 6, 3).to(device)
found = {name: peeks(module, x) for name, module in {"no mask": NoMask(), "dim=1": SoftmaxOverQueries(), "keys[0].T": KeysOfTheFirst()}.items()}
beside(my_guess, [name for name, ahead in found.items() if ahead])
for name, pair in {"two copies of one sentence": torch.stack([inputs, inputs]), "two different sentences": batch}.items():
    with torch.no_grad():
        right = torch.stack([one_sentence(6 * sentence - 3, *layers)["context"] for sentence in pair])
        print(f"keys[0].T on {name}: largest error {(KeysOfTheFirst()(6 * pair - 3) - right).abs().max().item():.2f}")
in_training = CausalAttention(3, 2, 6, 0.5).to(device)
print("your layer, in training with p = 0.5:", "looks ahead" if peeks(in_training, x) else "does not look ahead")

# %% [markdown]
# The third passes, and is wrong: it uses the first sentence's keys for every sentence. Two copies of one sentence do not show it either. So
# change one token of one sentence, and see which outputs move: each row is an output, each column the token that was changed.

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
# Yours has two triangles, one for each sentence. The other has a third: the first sentence reaches the second. But no *later* position is seen, so `peeks`
# has nothing to say. Test with sentences that differ.
#
# ## 5 Your layer in the trained model
#
# Each attention layer of the opening's model is a `CausalAttention`, followed by one more linear layer, `out_proj` (lesson 06). The next cell loads the
# trained matrices into two layers of **your** class and puts them in place. The baseline is your class with fresh matrices.

# %% tags=["raises-exception"]
# demonstration: your layers in the trained model
def with_your_layers(load):
    """The course's model with your CausalAttention in both layers."""
    changed = course_model(1)
    for block in changed.blocks:
        own = CausalAttention(48, 48, 48, dropout=0.1)
        if load:
            trained = {name: numbers for name, numbers in block.attention.state_dict().items() if not name.startswith("out_proj")}
            own.load_state_dict(trained, strict=False)  # the file has no mask: the model's is a buffer with persistent=False
        block.attention = nn.Sequential(own, block.attention.out_proj)
    return changed.eval()


torch.manual_seed(123)
yours, untrained = with_your_layers(True), with_your_layers(False)
print(f"{'':>22}  {beginning[-1]} kicks   right answers to “who”   “what”   “where”")
for name, one in {"the model as it came": model, "your layers": yours, "your layers, untrained": untrained}.items():
    shares = answers(one, told)
    print(f"{name:>22}  {next_words(one, beginning)['kicks']:>9.2f}   {shares['who']:>22.0%}   {shares['what']:>6.0%}   {shares['where']:>7.0%}")

# %% [markdown]
# With your code the model answers as with its own. What does your second layer look at? The last word sees every word, so its row of weights is a plain
# softmax.

# %% tags=["raises-exception"]
@torch.no_grad()
def last_row(model, words):
    """What the last word looks at in the second layer, (n,)."""
    attention = model.blocks[1].attention[0]  # your layer
    x = model.blocks[1].norm1(model.blocks[0](model.embed(torch.tensor([encode(words)]))))[0]  # (n, 48), what your layer reads
    scores = attention.W_query(x[-1]) @ attention.W_key(x).T  # (n,)
    return torch.softmax(scores / math.sqrt(48), dim=-1)


for last in ("she", "he"):
    words = [*beginning[:-1], last]
    for name, one in {"your layer": yours, "untrained": untrained}.items():
        row = last_row(one, words)
        print(f"{last:>3}, {name}: " + ", ".join(f"{words[i]} {row[i]:.2f}" for i in row.argsort(descending=True)[:3].tolist()))
    print("     next word:", ", ".join(f"{word} {chance:.2f}" for word, chance in list(next_words(yours, words).items())[:2]))

# %% [markdown]
# *she* looks at what Anna has, *he* at what Tom has, and the verb follows. Only *where* goes wrong. Twelve short stories say where
# she is, such as *she's outside*, and ask.
#
# **Predict, then run.** With what probability do your layers name the place?

# %%
my_guess = None  # a number from 0 to 1

# %% tags=["raises-exception"]
rooms = ["inside", "outside", "upstairs", "downstairs"]
asking = {
    (hers, his): f"Anna has a ball . Tom has two books . he reads them {his} . she's {hers} . where is Anna ? she's"
    for hers in rooms for his in rooms if hers != his
}
named = [next_words(yours, begin(story))[hers] for (hers, _), story in asking.items()]
beside(my_guess, round(sum(named) / len(named), 2))
print(f"in {len(named)} stories: from {min(named):.2f} to {max(named):.2f}")
explore_story(yours, asking["outside", "upstairs"], "Anna has a ball . Tom has two books . she", head="2.1")

# %% [markdown]
# A quarter, as by guessing. The last word looks at *has*, and at no place. Yet 35% of the answers to *where* were right.
#
# **Predict, then run.** Anybody may be *inside*, *outside*, *upstairs* or *downstairs*, or in the *cave*, *barn*, *gym* or *shop*. Which places does
# your model always name when they are right?

# %%
my_guess = None  # some of the eight places

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: right answers to “where” in 400 stories, place by place
more = stories(400, seed=5)
ids, targets = pairs(more)
with torch.no_grad():
    good = yours(ids).argmax(dim=-1) == targets  # (400, n)
by_place = {place: [] for place in [*rooms, "cave", "barn", "gym", "shop"]}
for number, story in enumerate(more):
    for answer_told in story.notes.answers:
        if answer_told.kind == "where":
            by_place[story.words[answer_told.stop - 2]].append(good[number, answer_told.start : answer_told.stop].all().item())  # then a full stop
beside(my_guess, [place for place, ones in by_place.items() if all(ones)])
for place, ones in by_place.items():
    print(f"{place:>10}: {sum(ones):2} of {len(ones):2} answers right")

# %% [markdown]
# **It never misses a cave, a barn, a gym or a shop.** At *the*, layer 1 looks at the place. Ask in stories of your own: is it the number of people, or the kind of place?

# %% tags=["raises-exception"]
own = "Anna is in the barn . she sees a bat . where is Anna ? she's in the"  # then others
print(", ".join(f"{word} {chance:.2f}" for word, chance in list(next_words(yours, begin(own)).items())[:3]))
explore_story(yours, own, head="1.1")

# %% [markdown]
# ## Summary
#
# - In a batch, swap the last two dimensions of the keys with `keys.mT`. `.T` reverses all of them, and may raise no error.
# - **Parameters** are learned. **Buffers** move and are saved with the module, but are not learned. Plain attributes are left behind.
# - Cut the mask to the length of the input, and refuse longer input yourself.
# - The bias of the keys cancels in the softmax.
# - Test with sentences that differ, of several lengths, with sizes that all differ and numbers that are not small. Change the future.
#
# **Next.** Who is upstairs and who is outside, it only guesses. Each word has one row of weights, so it gets one mixture of what came before. Is that
# too little? In lesson 06 it gets several.

# %%
# demonstration: this lesson on a card; write a line of your own between the quotes
from attention_course import remember

remember("")

# %% [markdown]
# ## Further reading
#
# - Vaswani et al., *Attention Is All You Need*, 2017, section 3.2.1: scaled dot products.
# - PyTorch's documentation of `torch.nn.Module.register_buffer`.
# - The six tokens, their vectors, seed 123 and the first layers of this kind: Sebastian Raschka, *Build a Large Language Model (From Scratch)*, 2024,
#   chapter 3.
#
# *Using Colab or another hosted service?* Get `attention_notebooks-….whl` where you got the lesson, put it beside the notebook, run
# `%pip install attention_notebooks-*.whl` in a new cell above the others, and restart the kernel.
