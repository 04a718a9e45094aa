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
# # The KV cache: writing without starting over
#
# Your model writes. It reads its text, says one word, puts the word at the end, and then reads everything again from the start. Nearly all of
# that work repeats what it did a moment ago. In this lesson you keep what does not change, and each word is read only
# once. Keeping things has a price, too: memory. You will compute how much of it well-known models need, and see the trick
# that makes them need less.
#
# **You will be able to**
# - say which numbers of a causal model never change while it writes, and why that is the mask's doing;
# - write a cache with its edge cases, and an attention layer that uses it: one token at a time, in chunks, or all at once;
# - compute how many bytes a cache takes, and how long a text a given machine can hold;
# - let several query heads share one key-value head, and say what that costs.
#
# **It builds on** lesson 02 (the mask), 06 (several heads) and 07 (the model that writes).
#
# | part | minutes, estimated |
# |---|---|
# | 1 What is computed again and again | 10 |
# | 2 A place to keep it | 15 |
# | 3 Attention that goes on where it stopped | 25 |
# | 4 Your cache in the model | 10 |
# | 5 What a cache costs | 10 |
# | 6 Heads that share | 15 |
# | 7 What goes wrong in practice | 5 |
# | 8 What you have built, and where to go on | 5 |
# | total | 95 |
#
# *Run the cells from top to bottom, fill in the exercises, and ask for `hint`, `why` and `progress()` when you need them.* As before,
# float64 in gives float64 out; let gradients through and don't modify the arguments.
#
# *Using Colab or another hosted service?* Get the file `attention_notebooks-….whl` from where you got this lesson, put
# it beside the notebook, and run `%pip install attention_notebooks-*.whl` in a new cell above the others.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
import os
import time
from textwrap import fill

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from attention_course import (
    END, answers, begin, beside, case, chart, course_model, decode, encode, explore, heatmap, hint, pairs,
    panels, progress, rubric, show, stories, table, train, why, without_mask,
)

# "cuda" runs the exercises on a GPU
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


def split_heads(x, num_heads):
    """Lesson 06: (b, n, d) -> (b, num_heads, n, d / num_heads)."""
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def merge_heads(x):
    """Lesson 06, the inverse: (b, num_heads, n, d_head) -> (b, n, num_heads * d_head)."""
    return x.transpose(1, 2).flatten(2)


# %% [markdown]
# ## 1 What is computed again and again
#
# The course's model goes on with a story. It is **autoregressive**: every word it says becomes part of what it reads next.

# %%
model = course_model()  # trained: two layers of four heads


@torch.no_grad()
def write_from_the_start(model, words):
    """Write the likeliest word each time, up to <end>; return the words, and how many were read at each step."""
    words, read = list(words), []
    while words[-1] != END or len(words) == 1:
        scores = model(torch.tensor([encode(words)]))[0, -1]  # (v,)
        read.append(len(words))
        words += decode([int(scores.argmax())])
    return words, read


beginning = begin("Anna has a ball .")
story, read = write_from_the_start(model, beginning)
print(fill(" ".join(story), 96))

# %% [markdown]
# **Predict, then run.** The beginning has 6 words, counting the `<end>` in front, and the whole story has 39. How many words did the model read in all,
# from the first step to the last?

# %%
my_guess = None  # a number

# %%
print(f"a story of {len(story)} words; read:", " + ".join(map(str, [*read[:3], "…", read[-1]])))
beside(my_guess, sum(read))

# %% [markdown]
# For n words that is about n²/2 readings. To see it on the clock, let the model write 100 stories at once.

# %%
starts = torch.tensor([encode(begin(" ".join(told.words[:5]))) for told in stories(100, seed=99)])  # (100, 6)


@torch.no_grad()
def write_many(step, tokens, length):
    """Go on to a length with the likeliest token each time; return the tokens, and the seconds of each step.

    `step(tokens, new)` gives the scores; `new` are the tokens that it has not had before.
    """
    new, seconds = tokens, []
    while tokens.shape[1] < length:
        began = time.perf_counter()
        new_one = step(tokens, new)[:, -1].argmax(dim=-1, keepdim=True)  # (b, 1)
        seconds.append(time.perf_counter() - began)
        tokens, new = torch.cat([tokens, new_one], dim=1), new_one
    return tokens, seconds


def from_the_start(tokens, new):
    """Read everything, every time."""
    return model(tokens)


# %% tags=["nbval-ignore-output", "unsteady-output"]
# demonstration: the time of one step while 100 stories grow
_, seconds = write_many(from_the_start, starts, 48)
for n in (6, 16, 26, 36, 46):
    print(f"the word after {n:2} words: {1000 * seconds[n - 6]:5.1f} ms")

# %% [markdown]
# The longer the text, the longer a word takes. In each layer the model computes queries, keys and values of *all* words, although only the scores after
# the last word are used. Have the keys and values of the earlier words changed since the step before? The next cell compares the keys of the first six
# words while the story grows, for the model as it is and for the model without its mask, as in lesson 05.

# %%
@torch.no_grad()
def keys_of(model, words):
    """The keys of each layer: n words -> (layers, n, d)."""
    x, found = model.embed(torch.tensor([encode(words)])), []
    for block in model.blocks:
        found.append(block.attention.W_key(block.norm1(x))[0])  # (n, d)
        x = block(x)
    return torch.stack(found)


lengths = range(6, len(story) + 1)
moved = {}  # the largest change of a key of the first six words, (layers,) for each length
for name, one in {"with the mask": model, "without it": without_mask(course_model())}.items():
    before = keys_of(one, story[:6])
    moved[name] = torch.stack([(keys_of(one, story[:n])[:, :6] - before).abs().amax(dim=(1, 2)) for n in lengths])
    print(f"{name:>13}: layer 1 moves by {moved[name][:, 0].max():.1f}, layer 2 by {moved[name][:, 1].max():.1f}")

# %% jupyter={"source_hidden": true}
# draws the figure
def change_chart(lengths, with_mask, without):
    figure, axes = plt.subplots(figsize=(7.5, 3.4), layout="constrained")
    axes.plot(lengths, without, "--", color="#b5541c", label="without the mask")
    axes.plot(lengths, with_mask, color="#1f6f8b", linewidth=3, label="with the mask")
    axes.set(xlabel="words in the text", ylabel="largest change", title="Keys of the first six words, layer 2, while the text grows")
    axes.legend()
    return figure


show(
    chart(change_chart, list(lengths), *(moved[name][:, 1].round(decimals=4).tolist() for name in ("with the mask", "without it"))),
    "How far the first six words' keys in layer 2 are from where they were, against the length of the text. With the mask the line stays at 0. Without "
    "it they move with nearly every word that comes, up to 2.6.",
)

# %% [markdown]
# With the mask the keys of a word are final as soon as the word is there. They are computed from this word and the ones before it, and nothing that
# comes later can reach them. The same is true of values. (Without the mask only the keys of layer 1 stay: they are computed before any word has
# looked at others.)
#
# So there is no need to compute them twice. And the old *queries*? A query is used for its own word's context vector only, and the context vectors of
# the old words have done their work: the next layer's keys and values were made from them, and are kept as well. Only the new word asks. So we keep
# keys and values: a **KV cache**.
#
# ## 2 A place to keep it
#
# ### Exercise: `KVCache` (4 points)
#
# Write the box that keeps them, one for each layer of the model.
#
# - `KVCache(max_length)` makes an empty cache with room for `max_length` tokens. Two caches share nothing. `length` is the number of tokens in it, an attribute or a property.
# - `append(k, v)` takes the keys and values of some new tokens, `(b, h, n, d)` each, puts them after those of earlier calls, along the
#   dimension of the tokens, and returns **all** of them: `(k_all, v_all)`, `(b, h, length, d)` each.
# - Tokens that do not all fit raise a `ValueError`, and the cache is then as it was before.
# - `reset()` empties it. What comes next may have another batch size.
# - What an earlier call returned stays as it is, whatever you append afterwards, even after a `reset()`. Let gradients through, don't
#   modify the arguments, and keep float64 as float64.

# %% nbgrader={"grade": false, "grade_id": "KVCache", "locked": false, "schema_version": 3, "solution": true, "task": false}
class KVCache:
    """Keeps the keys and values of one layer, for at most max_length tokens."""

    def __init__(self, max_length):
        ### BEGIN SOLUTION
        self.max_length = max_length
        self.reset()
        ### END SOLUTION

    def append(self, k, v):
        """Add new keys and values (b, h, n, d); return all of them, (b, h, length, d) each."""
        ### BEGIN SOLUTION
        longer = self.length + k.shape[2]
        if longer > self.max_length:
            raise ValueError(f"{longer} tokens do not fit, max_length is {self.max_length}")
        if self.keys is not None:
            k = torch.cat([self.keys, k], dim=2)
            v = torch.cat([self.values, v], dim=2)
        self.keys, self.values, self.length = k, v, longer
        return k, v
        ### END SOLUTION

    def reset(self):
        """Forget everything."""
        ### BEGIN SOLUTION
        self.keys = self.values = None
        self.length = 0
        ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_KVCache", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("KVCache")  # the contract as a checklist; open this cell to read it
def _(r):
    r.idea.appends("returns all keys and values so far: one token at a time, in chunks, all at once", KVCache, 12, "1 1 1", "2 1 4 2", "7", "3 3 3")
    r.appends("after reset() it is empty, and another batch size is fine", KVCache, 6, "2 3 reset 4 1", "reset 6 reset 6")
    r.appends("refuses more than max_length tokens with a ValueError, and is then as before", KVCache, 5, "2 3 1", "5 1", "6", "3 3 2", "6 5", "4 2 1 1")
    r.appends("earlier results, and those of another cache, stay as they are", KVCache, 6, "2 1 3", "2 2 reset 3 3 reset 1", "2 other 3 other 1", later=True)
    r.appends("float64 in, float64 out", KVCache, 8, "3 1 2", dtype=torch.float64)
    r.append_gradients("gradients reach all that was appended", KVCache, 8, "2 1 3")
    r.unchanged("leaves its arguments as they were")

# %% [markdown]
# Here is your cache at work on the six words you know. They come in three calls: one word, two words, three words.

# %% tags=["raises-exception"]
torch.manual_seed(123)
W_key, W_value = (nn.Linear(3, 4, bias=False).to(device) for _ in range(2))
cache = KVCache(max_length=6)
kept = []
with torch.no_grad():
    for part in inputs[None].split([1, 2, 3], dim=1):  # (1, n, 3)
        k, v = (split_heads(layer(part), 1) for layer in (W_key, W_value))  # (1, 1, n, 4)
        kept.append(cache.append(k, v)[0][0, 0])  # (length, 4)
        print(f"{part.shape[1]} new, {cache.length} in the cache, keys {tuple(kept[-1].shape)}")
try:
    cache.append(k, v)
except ValueError as error:
    print("ValueError:", error)

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
maps = [
    heatmap(nn.functional.pad(keys, (0, 0, 0, 6 - len(keys))), tokens, None, title=f"call {i + 1}: {len(keys)} of 6 tokens", row_name="token" if i == 0 else "",
            column_name="feature", hidden=torch.arange(6)[:, None].expand(6, 4) >= len(keys), limits=(-1, 1), bar=i == 2)
    for i, keys in enumerate(kept)
]
show(
    panels(*maps, size=(10.5, 4)),
    "Three heatmaps of the keys in the cache, with one, three and six rows filled and the others hatched. Rows that were there before keep their numbers.",
)

# %% [markdown]
# ## 3 Attention that goes on where it stopped
#
# Three words are in the cache, and two new ones come in. There are queries for the two new words only, and keys for all five.
#
# **Predict, then run.** Which shape do the scores of one head have?

# %%
my_guess = None  # two numbers, (?, ?)

# %%
new_queries, all_keys = torch.randn(2, 4), torch.cat([torch.randn(3, 4), torch.randn(2, 4)])
beside(my_guess, tuple((new_queries @ all_keys.T).shape))

# %% [markdown]
# The scores are no longer square, so the mask cannot be either. The left panel shows the whole mask of lesson 03, the right one the part of it that the
# new words need. Move the sliders. When does that part hide nothing at all?

# %% jupyter={"source_hidden": true}
# draws the figure
def mask_chart(cached, new):
    n, total = 8, cached + new
    colours = {"visible": "#a9c9d3", "hidden": "#444444", "visible, from the cache": "#1f6f8b", "visible, new": "#d9a441", "not in this call": "#eeeeee"}
    figure, (whole, part) = plt.subplots(1, 2, figsize=(10.5, 4), layout="constrained")
    for i in range(n):
        for j in range(n):
            kind = "hidden" if j > i else "visible, from the cache" if j < cached else "visible, new"
            kind = kind if cached <= i < total and j < total else "not in this call"
            whole.add_patch(plt.Rectangle((j, i), 0.94, 0.94, color=colours["hidden" if j > i else "visible"]))
            part.add_patch(plt.Rectangle((j, i), 0.94, 0.94, color=colours[kind]))
    for axes, title in ((whole, "the whole mask"), (part, f"rows {cached} to {total - 1}, the first {total} columns")):
        axes.set(xlim=(-0.1, n), ylim=(n, -0.1), aspect="equal", title=title, xlabel="position of the key", ylabel="position of the query")
        axes.set_xticks([i + 0.47 for i in range(n)], range(n))
        axes.set_yticks([i + 0.47 for i in range(n)], range(n))
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in colours.values()]
    figure.legend(handles, colours, loc="outside right center", frameon=False)
    return figure


def look(cached, new):
    said = f"{cached} cached and {new} new tokens: scores {new} by {cached + new}, {new * (new - 1) // 2} of them hidden."
    return chart(mask_chart, cached, new), said


explore(
    look,
    alt="Two squares of 8 by 8 places. Left, the whole mask: a hidden triangle above the diagonal. Right, only the rows of the new tokens, coloured by what they see.",
    cached=[3, 0, 1, 2, 4, 5],
    new=[3, 1, 2],
)

# %% [markdown]
# For one new word nothing is hidden: everything in the cache is its past. So code that feeds one word at a time can do without the mask, and such code
# is wrong as soon as two words come at once.
#
# ### Exercise: `CachedMultiHeadAttention` (6 points)
#
# Lesson 06's layer, which now takes a cache. You may use `split_heads` and `merge_heads` from the cell with the imports.
#
# - The constructor, and `forward(x)` without a cache, are those of `MultiHeadAttention`: `W_query`, `W_key`, `W_value` (with a bias only if
#   `qkv_bias`), `out_proj` with a bias, and `mask`, a buffer of `context_length` × `context_length` numbers that is saved. A token sees itself and those
#   before it. `dropout` is an `nn.Dropout`; in training each head drops weights of its own. The layer works wherever `.to()` moves it. A `ValueError`
#   is raised when `num_heads` does not divide `d_out`, for input that is not 3-D, and for more than `context_length` tokens.
# - `forward(x, cache)`: x holds the new tokens only, `(b, n, d_in)`. Their keys and values, split into heads, go into the cache with
#   `cache.append(k, v)`. The result is the output for the new tokens only, `(b, n, d_out)`.
# - Without dropout, tokens fed one at a time, in chunks, or all at once give the same outputs. Mind the mask: a token in a chunk sees everything before
#   the chunk and, within the chunk, itself and what is before it.
# - The layer itself keeps nothing between calls. It may be called with several caches in turn, or without one in between.
# - When the cached tokens and the new ones are together more than `context_length`, it raises a `ValueError`, **before** the cache changes.
# - Use nothing of the cache but `append` and `length`: the rubric brings a cache of its own.

# %% nbgrader={"grade": false, "grade_id": "CachedMultiHeadAttention", "locked": false, "schema_version": 3, "solution": true, "task": false}
class CachedMultiHeadAttention(nn.Module):
    """Causal attention with several heads that can go on where it stopped, (b, n, d_in) -> (b, n, d_out)."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        ### BEGIN SOLUTION
        if d_out % num_heads != 0:
            raise ValueError(f"num_heads must divide d_out, got {num_heads} and {d_out}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        future = torch.ones(context_length, context_length, dtype=torch.bool).triu(diagonal=1)
        self.register_buffer("mask", future)  # True: hidden
        ### END SOLUTION

    def forward(self, x, cache=None):
        ### BEGIN SOLUTION
        if x.ndim != 3:
            raise ValueError(f"x must be (b, n, d_in), it has the shape {tuple(x.shape)}")
        past = 0 if cache is None else cache.length
        total = past + x.shape[1]
        if total > self.context_length:
            raise ValueError(f"{past} cached and {x.shape[1]} new tokens, context_length is {self.context_length}")
        queries = split_heads(self.W_query(x), self.num_heads)  # (b, heads, n, d_head)
        keys = split_heads(self.W_key(x), self.num_heads)
        values = split_heads(self.W_value(x), self.num_heads)
        if cache is not None:
            keys, values = cache.append(keys, values)  # (b, heads, total, d_head)
        scores = queries @ keys.mT / math.sqrt(keys.shape[-1])  # (b, heads, n, total)
        scores = scores.masked_fill(self.mask[past:total, :total], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ values))  # (b, n, d_out)
        ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_CachedMultiHeadAttention", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("CachedMultiHeadAttention")  # the contract as a checklist; open this cell to read it
def _(r):
    layer = r.cached_layer(CachedMultiHeadAttention, d_in=4, d_out=6, context_length=8, dropout=0.0, num_heads=2, qkv_bias=False)
    layer.linear("W_query W_key W_value", "d_in -> d_out", bias="qkv_bias")
    layer.linear("out_proj", "d_out -> d_out", bias="always")
    layer.outputs("without a cache it is MultiHeadAttention, for sentences of any length", r.normal(1, 2, 4), r.normal(3, 7, 4) * (r.uniform(3, 7, 1) > 0), r.normal(2, 8, 4), r.normal(2, 8, 4))
    layer.idea.fed("one token at a time, in chunks, with two caches in turn: the outputs of all at once", 2 * r.normal(2, 8, 4), "8", "1 1", "1 1 1 1 1 1 1 1", "3 3", "2 other 3 other 1 2", "3 none")
    layer.idea.fed("a chunk of any size sees all before it, but not its own future", 2 * r.normal(4, 16, 8), "2 2", "7 1 3", "4 4 4 4", "1 5 5 2", d_in=8, d_out=8, context_length=16, num_heads=4, qkv_bias=True)
    layer.drops_weights("in training each head drops its own weights, in eval() none", p=0.4, num_heads=4)
    layer.keeps_mask("mask is a buffer: saved, moved by .to(device) with all else that forward uses", r.normal(2, 5, 4))
    layer.overfed("more than context_length, cached and new, is refused before the cache changes", r.normal(2, 16, 4), "6 3 2", "7 2 1", "1 8 7")
    layer.refuses("raises ValueError for too many tokens, and for input that is not 3-D", r.normal(2, 9, 4), r.normal(5, 4), r.normal(1, 2, 5, 4))
    r.refuses("raises ValueError when num_heads does not divide d_out", CachedMultiHeadAttention, (5, 10, 8, 0.0, 4), (5, 4, 8, 0.0, 8))
    layer.fed_gradients("gradients pass through the cache", r.normal(2, 6, 4), "3 1 2")
    layer.conventions(r.normal(3, 7, 4))

# %% [markdown]
# Here your layer reads the six words, with the weights of seed 123 and an `out_proj` that changes nothing. All at once they must give the table of
# lesson 06, and so they must when fed one at a time or in chunks.

# %% tags=["raises-exception"]
torch.manual_seed(123)
heads = [[nn.Linear(3, 2, bias=False) for _ in range(3)] for _ in range(2)]  # query, key, value of each head
layer = CachedMultiHeadAttention(d_in=3, d_out=4, context_length=6, dropout=0.0, num_heads=2).to(device)
with torch.no_grad():
    for i, name in enumerate(["W_query", "W_key", "W_value"]):
        getattr(layer, name).weight.copy_(torch.cat([head[i].weight for head in heads]))
    layer.out_proj.weight.copy_(torch.eye(4))
    layer.out_proj.bias.zero_()
    at_once = layer(inputs[None])  # (1, 6, 4)
    for cut in ([1] * 6, [2, 1, 3], [6]):
        cache = KVCache(6)
        parts = torch.cat([layer(part, cache) for part in inputs[None].split(cut, dim=1)], dim=1)
        print(f"{str(cut):>18}: largest difference below 0.000001: {(parts - at_once).abs().max().item() < 1e-6}")
table(at_once[0], rows=tokens, columns=["head 0: 0", "head 0: 1", "head 1: 0", "head 1: 1"])

# %% [markdown]
# ## 4 Your cache in the model
#
# Now put your layer into the trained model, with the trained numbers, and give each of the two layers a cache of its own. The beginning goes in as
# one chunk (called **prefill**), and then each word goes in alone (called **decode**; the function `decode` in the cell only turns ids into
# words). One thing outside attention needs care: a word that comes in alone must still get the vector of its own position in the text.

# %% tags=["raises-exception"]
yours = course_model()
for block in yours.blocks:
    own = CachedMultiHeadAttention(48, 48, 48, 0.0, 4)
    own.load_state_dict(block.attention.state_dict(), strict=False)  # the file has no mask
    block.attention = own.eval()


def scores_of(model, new, caches, start):
    """Scores (b, n, v) of new tokens (b, n), the first of which is at position `start`."""
    places = model.position_embedding.weight[start : start + new.shape[1]]
    x = model.token_embedding(new) + places  # (b, n, d)
    for block, cache in zip(model.blocks, caches):
        x = x + block.attention(block.norm1(x), cache)
        x = x + block.feed_forward(block.norm2(x))
    return model.head(model.norm(x))


@torch.no_grad()
def write_with_cache(model, words):
    """As write_from_the_start, but every word is read once."""
    caches = [KVCache(48) for _ in model.blocks]
    words, read, new = list(words), [], list(words)
    while words[-1] != END or len(words) == 1:
        scores = scores_of(model, torch.tensor([encode(new)]), caches, caches[0].length)[0, -1]
        read.append(len(new))
        new = decode([int(scores.argmax())])
        words += new
    return words, read


again, read_now = write_with_cache(yours, beginning)
print(fill(" ".join(again), 96))
print("the same story, to the last word:", again == story)
print(f"words read: {sum(read)} without a cache, {sum(read_now)} with it")

# %% [markdown]
# One story could be luck. Compare all hundred stories, each up to its `<end>`, and see how far the scores differ. (Adding numbers in another order
# rounds them differently.)

# %% tags=["raises-exception"]
# demonstration: a hundred stories, without and with the cache
def with_caches():
    """A step for write_many that reads only what is new, with fresh caches."""
    caches = [KVCache(48) for _ in yours.blocks]
    return lambda tokens, new: scores_of(yours, new, caches, caches[0].length)


plain, _ = write_many(from_the_start, starts, 48)
cached, _ = write_many(with_caches(), starts, 48)


def up_to_end(row):
    """The words of a story, without the <end> in front and what comes after the last."""
    words = decode(row.tolist())[1:]
    return words[: words.index(END)] if END in words else words


same = sum(up_to_end(one) == up_to_end(other) for one, other in zip(plain, cached))
with torch.no_grad():
    caches = [KVCache(48) for _ in yours.blocks]
    apart = (torch.cat([scores_of(yours, plain[:, t : t + 1], caches, t) for t in range(48)], dim=1) - model(plain)).abs().max()
print(f"{same} of {len(plain)} stories are the same; scores differ by less than 0.0001: {apart.item() < 1e-4}")

# %% [markdown]
# How much work is a step now? Count the multiplications in the matrix products of each step, for one story.

# %% tags=["raises-exception"]
# demonstration: counts multiplications in each step, without and with the cache
def multiplications(step):
    """The millions of multiplications in each step for one story."""
    counted = []

    def watched(tokens, new):
        with FlopCounterMode(display=False) as counter:
            scores = step(tokens, new)
        counted.append(counter.get_total_flops() / 2e6)  # it counts each addition, too
        return scores

    write_many(watched, starts[:1], 48)
    return counted


counted = {"from the start each time": multiplications(from_the_start), "with your cache": multiplications(with_caches())}
for n in (6, 7, 27, 47):
    print(f"the word after {n:2} words:", ", ".join(f"{millions[n - 6]:.3f} million {name}" for name, millions in counted.items()))

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: draws the figure
def step_chart(curves, unit, title):
    figure, axes = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
    for (name, curve), colour, style in zip(curves.items(), ("#b5541c", "#1f6f8b"), ("--", "-")):
        axes.plot(range(6, 48), curve, style, color=colour, label=name)
    axes.set(xlabel="words before it", ylabel=unit, ylim=(0, None), title=title)
    axes.legend()
    return figure


show(
    chart(step_chart, counted, "millions", "Multiplications of one step, one story"),
    "Multiplications of one step against the number of words before it. From the start each time they rise with every word. With the cache they are as "
    "many for the first step, which reads six words, and few and nearly the same for each step afterwards.",
)

# %% [markdown]
# And on the clock, for 100 stories at once:

# %% tags=["raises-exception", "nbval-ignore-output", "unsteady-output"]
# demonstration: the time of each step, without and with the cache
def fastest(make_step):
    """The shortest of three runs, step by step, in milliseconds."""
    runs = [write_many(make_step(), starts, 48)[1] for _ in range(3)]
    return [1000 * min(step) for step in zip(*runs)]


took = {"from the start each time": fastest(lambda: from_the_start), "with your cache": fastest(with_caches)}
show(
    chart(step_chart, took, "milliseconds", "Time of one step, 100 stories at once"),
    "Time of one step against the number of words before it. From the start each time it rises with every word. With the cache it is high "
    "for the first step, which reads six words, and nearly flat afterwards.",
)
print(", ".join(f"{name} {milliseconds[-1]:.1f} ms" for name, milliseconds in took.items()), "for the last word")

# %% [markdown]
# Without a cache a step takes longer with every word. With it the line is nearly flat. The count of multiplications rises a little, because the new
# word still looks at every key in the cache; on the clock that can be lost in the noise. What is gone is the rest: the linear and feed-forward layers
# for the old words, and their rows of attention.
#
# In long texts a second thing counts. `torch.cat` makes a new tensor, so a cache that joins its parts with it copies all of them at every word.
# Hugging Face's dynamic cache does just that. Other caches reserve their room beforehand and write each new key into its place, and vLLM's takes its
# room in small pages. Yours must not write into a shared place: its contract says that earlier results stay as they are even after `reset()`, and
# that gradients get through. Code that only generates text does not need these two promises. The next cell measures how long one more word takes with
# your cache. (If your cache copies, as `torch.cat` does, appending one key takes longer the longer the text is.)

# %% tags=["raises-exception", "nbval-ignore-output", "unsteady-output"]
# demonstration: the time of one more word in a long text
for n in (1_000, 10_000, 100_000):
    cache, q = KVCache(n + 10), torch.randn(1, 4, 1, 12)
    cache.append(*torch.randn(2, 1, 4, n, 12).unbind())
    times = []
    for _ in range(5):
        began = time.perf_counter()
        k, v = cache.append(q, q)
        kept_at = time.perf_counter()
        torch.softmax(q @ k.mT, dim=-1) @ v
        times.append((1000 * (kept_at - began), 1000 * (time.perf_counter() - kept_at)))
    appending, attending = (min(one) for one in zip(*times))
    print(f"{n:7,} words: append {appending:6.2f} ms, attention {attending:6.2f} ms")

# %% [markdown]
# ## 5 What a cache costs
#
# The time saved is paid for in memory. Every token leaves one key and one value in every layer, for every head.
#
# ### Exercise: `cache_bytes` (1 point)
#
# How many bytes do the keys and values of one text take? The model has `layers` layers, each with `kv_heads` heads that keep keys and values. A
# key has `head_dim` numbers, and so has a value. The text has `tokens` tokens, and each number takes `bytes_per_number` bytes. Return an
# `int`.

# %% nbgrader={"grade": false, "grade_id": "cache_bytes", "locked": false, "schema_version": 3, "solution": true, "task": false}
def cache_bytes(layers, kv_heads, head_dim, tokens, bytes_per_number):
    """Return the bytes of the cached keys and values of one text."""
    ### BEGIN SOLUTION
    return 2 * layers * kv_heads * head_dim * tokens * bytes_per_number
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_cache_bytes", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("cache_bytes")  # the contract as a checklist; open this cell to read it
def _(r):
    r.idea.each("the bytes of all keys and values, an int", cache_bytes, (1, 1, 1, 1, 1), (12, 12, 64, r.integer(100, 1024), 4), (47, 9, 127, 2 * r.integer(10**5, 10**6) + 1, 2), (r.integer(2, 9), r.integer(2, 9), r.integer(2, 9), 0, 2))

# %% [markdown]
# Now for models that people use. Their sizes are public: GPT-2 small from OpenAI's released code and Radford et al. 2019; Llama 2 7B from Touvron et
# al. 2023; the layers and heads of Llama 3 and 3.1 from *The Llama 3 Herd of Models*, 2024, table 3, and their tokens from Meta's model cards of
# April and July 2024; Mistral 7B v0.1 from Jiang et al. 2023, table 1. Numbers in 16 bits take 2 bytes each.

# %% tags=["raises-exception"]
configurations = {  # layers, key-value heads, head size, tokens the model was made for, billions of parameters
    "course's model": (2, 4, 12, 48, 0.00006),
    "GPT-2 small": (12, 12, 64, 1024, 0.124),
    "Llama 2 7B": (32, 32, 128, 4096, 6.74),
    "Llama 3 8B": (32, 8, 128, 8192, 8.03),
    "Llama 3 70B": (80, 8, 128, 8192, 70.6),
    "Llama 3.1 8B": (32, 8, 128, 131072, 8.03),
    "Mistral 7B v0.1": (32, 8, 128, 8192, 7.24),
}
windows = {"Mistral 7B v0.1": 4096}  # a layer looks back no further
print("model           layers  kv heads  size  bytes a token   tokens  whole cache  longest text in 24 GB")
for name, (layers, kv_heads, head_dim, longest, billions) in configurations.items():
    token = cache_bytes(layers, kv_heads, head_dim, 1, 2)
    whole = cache_bytes(layers, kv_heads, head_dim, min(longest, windows.get(name, longest)), 2)
    left = 24e9 - 2e9 * billions  # what the weights leave
    fits = f"{int(left // token):,} tokens" if left > 0 else "weights do not fit"
    fits = "any" if name in windows and whole < left else fits
    print(f"{name:15} {layers:6} {kv_heads:9} {head_dim:5} {token:14,} {longest:8,} {whole / 1e6:9,.2f} MB  {fits:>21}")

# %% [markdown]
# The last column says what memory alone allows, beside the weights, not whether the model has positions for such a text, or understands it. Mistral
# has the **window** of lesson 08, 4,096 tokens: a layer looks back no further, so its cache never has to hold more. (Later versions of Mistral 7B
# have no window.) Llama 3.1 8B was made for long texts. The cache of a single text of full length, 17.2 GB, is larger than the
# model's weights, 16.1 GB.
#
# Compare Llama 2 7B and Llama 3 8B. They have the same number of layers, and heads of the same size, yet a token of Llama 2 takes four times the
# memory. And all of this is for *one* text. A server that answers ten people at once keeps ten caches. Move the sliders. (Llama 3.1 8B is left out,
# because its tokens take as much as Llama 3 8B's. So do Mistral 7B's: up to its window, its line lies on top of Llama 3 8B's. The lines show memory
# alone, also for texts longer than a model was made for: GPT-2 small has positions for 1,024 tokens only.)

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
def memory_chart(sizes, lengths, free):
    figure, axes = plt.subplots(figsize=(8.5, 4), layout="constrained")
    for (name, bytes_), colour in zip(sizes.items(), ["#999999", "#b5541c", "#1f6f8b", "#5b4a9c", "#d9a441"]):
        gigabytes = [size / 1e9 for size in bytes_]
        fit = [size for size in gigabytes if size <= free[name] / 1e9]
        axes.plot(lengths, gigabytes, ":", color=colour, linewidth=1.5)
        axes.plot(lengths[: len(fit)], fit, "-o", color=colour, linewidth=1 if name in windows else 3, label=name if fit else f"{name}: weights do not fit")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(lengths[::2], [f"{n:,}" for n in lengths[::2]])
    axes.set_yticks([0.01, 0.1, 1, 10, 100, 1000], ["10 MB", "100 MB", "1 GB", "10 GB", "100 GB", "1000 GB"])
    axes.minorticks_off()
    axes.set(xlabel="tokens of each text", ylabel="memory of all caches", title="Solid: fits beside the weights. Dotted: does not fit.")
    axes.legend(loc="upper left")
    return figure


def fits(texts, memory):
    lengths = [2**i for i in range(8, 18)]
    sizes, free, longest = {}, {}, {}
    for name in ("GPT-2 small", "Llama 2 7B", "Llama 3 8B", "Llama 3 70B", "Mistral 7B v0.1"):
        layers, kv_heads, head_dim, _, billions = configurations[name]
        kept = [min(n, windows.get(name, n)) for n in lengths]  # tokens in the cache
        sizes[name] = [texts * cache_bytes(layers, kv_heads, head_dim, n, 2) for n in kept]
        free[name] = memory * 1e9 - 2e9 * billions
        longest[name] = max([n for n, size in zip(lengths, sizes[name]) if size <= free[name]], default=0)
    said = f"{texts} texts on {memory} GB. The longest of these lengths that fits: " + ", ".join(f"{name} {n:,}" for name, n in longest.items()) + "."
    return chart(memory_chart, sizes, lengths, free), said


explore(fits, alt="Lines of the caches' size against the length of a text for five models.", texts=[10, 1, 100], memory=[24, 80, 160])

# %% [markdown]
# ## 6 Heads that share
#
# Which factor of `cache_bytes` could be smaller? Fewer tokens make a shorter text, fewer bytes make each number coarser, and fewer layers or
# smaller heads make a smaller model. But must every head have keys and values of its own? Llama 3 8B has 32 query heads and only 8 key-value heads:
# four query heads ask different questions of the same keys. That is **grouped-query attention**. With one key-value head for all of them it is called
# multi-query attention. With as many as there are query heads it is the attention of lesson 06.
#
# ### Exercise: `grouped_query_attention` (4 points)
#
# - Queries `(b, h, n, d)`, keys and values `(b, g, n, d)`, where h is a multiple of g. Return the context vectors, `(b, h, n, d)`.
# - Query head i reads key-value head `i // (h // g)`: with h = 6 and g = 2, the query heads 0, 1, 2 read key-value head 0, and 3, 4, 5 read head 1.
# - Scores are divided by the square root of d. The attention is causal, however high or low the scores are.
# - A `ValueError` when h is not a multiple of g.

# %% nbgrader={"grade": false, "grade_id": "grouped_query_attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
def grouped_query_attention(q, k, v):
    """Causal attention of h query heads over g key-value heads: (b, h, n, d), (b, g, n, d) twice -> (b, h, n, d)."""
    ### BEGIN SOLUTION
    h, n, d = q.shape[1:]
    g = k.shape[1]
    if h % g != 0:
        raise ValueError(f"{h} query heads cannot share {g} key-value heads evenly")
    keys, values = (x.repeat_interleave(h // g, dim=1) for x in (k, v))  # (b, h, n, d)
    scores = q @ keys.mT / math.sqrt(d)  # (b, h, n, n)
    future = torch.ones(n, n, dtype=torch.bool, device=q.device).triu(diagonal=1)
    weights = torch.softmax(scores.masked_fill(future, -math.inf), dim=-1)
    return weights @ values
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_grouped_query_attention", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
@rubric("grouped_query_attention")  # the contract as a checklist; open this cell to read it
def _(r):
    q, k, v = 2 * r.normal(2, 6, 5, 3), 2 * r.normal(2, 2, 5, 3), r.normal(2, 2, 5, 3)
    r.idea.each("neighbouring query heads share a key-value head", grouped_query_attention, (2 * r.normal(1, 4, 2, 3), r.normal(1, 2, 2, 3), r.normal(1, 2, 2, 3)), (q, k, v), (q, q[:, :3], k[:, [0, 1, 0]]), (2 * r.normal(4, 4, 4, 4), r.normal(4, 2, 4, 4), r.normal(4, 2, 4, 4)))
    r.each("one key-value head for all, one for each", grouped_query_attention, (q, k[:, :1], v[:, :1]), (q, 2 * r.normal(2, 6, 5, 3), r.normal(2, 6, 5, 3)))
    low = torch.full_like(q, 1e5), torch.full_like(k, -1e5), v  # scores of -17 billion
    r.each("hides the future, however large or low the scores; one token alone", grouped_query_attention, (q[:, :, :1], k[:, :, :1], v[:, :, :1]), (30 * q, 30 * k, v), low)
    r.refuses("raises ValueError when h is not a multiple of g", grouped_query_attention, (q, r.normal(2, 4, 5, 3), r.normal(2, 4, 5, 3)), (k, q, q))
    r.conventions(grouped_query_attention, q, k, v)

# %% [markdown]
# Which query head reads which key-value head? The next cell changes the key, then the value, of one key-value head at a time, and sees which of the six
# query heads' outputs change. A solid line is a value that your function reads, a dashed line a key. The broad grey lines show what the exercise asks
# for.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
def sharing_chart(g, read):
    figure, axes = plt.subplots(figsize=(7.5, 2.6), layout="constrained")
    middle = [(j + 0.5) * 6 / g - 0.5 for j in range(g)]  # under the heads that should read it
    for i, one in enumerate(read):
        axes.plot([i, middle[i // (6 // g)]], [1, 0], color="#d9d9d9", linewidth=9, zorder=0)
        for j, part in one:
            beside = -0.04 if part == "value" else 0.04
            axes.plot([i + beside, middle[j] + beside], [1, 0], "-" if part == "value" else "--", color=["#1f6f8b", "#b5541c"][j % 2], linewidth=2, zorder=1)
        axes.text(i, 1, f"query {i}", ha="center", va="center", bbox={"boxstyle": "round", "facecolor": "#cfe0e8"})
    for j, x in enumerate(middle):
        axes.text(x, 0, f"key and value {j}", ha="center", va="center", fontsize=8 if g > 3 else 10,
                  bbox={"boxstyle": "round", "facecolor": "#f7e3b5"})
    axes.set(xlim=(-0.6, 5.6), ylim=(-0.3, 1.3), title=f"Key-value heads: {g}, query heads: 6. Solid: values, dashed: keys; grey: asked for")
    axes.axis("off")
    return figure


def who_reads(g):
    torch.manual_seed(123)
    q, k, v = (torch.randn(1, heads, 5, 4, device=device) for heads in (6, g, g))
    before = grouped_query_attention(q, k, v)
    read = [[] for _ in range(6)]
    for j in range(g):
        other_k, other_v = k.clone(), v.clone()
        other_k[:, j] *= -1
        other_v[:, j] += 1
        for part, after in {"key": grouped_query_attention(q, other_k, v), "value": grouped_query_attention(q, k, other_v)}.items():
            moved = (after - before).abs().amax(dim=(0, 2, 3)) > 1e-4  # (6,)
            for i in moved.nonzero().flatten().tolist():
                read[i].append((j, part))
    values, keys = (", ".join(" and ".join(str(j) for j, part in one if part == kind) for one in read) for kind in ("value", "key"))
    said = f"{g} key-value heads: query heads 0 to 5 read the values {values} and the keys {keys}."
    return chart(sharing_chart, g, read), said


explore(who_reads, alt="Query heads above, key-value heads below, a solid line where one reads the value of the other, a dashed one where it reads the key, and a broad grey line where it should.", g=[2, 1, 3, 6])

# %% [markdown]
# What does sharing cost? Take the trained model, with its four heads in each layer. Let two heads share one key matrix, the mean of their two, and
# one value matrix likewise. Half the cache is gone. Are the answers still right?
#
# And if not, does a little more training help? The second cell trains the whole model for 250 steps, a tenth of what it had. The baseline starts the
# shared matrices from random numbers instead of the mean.

# %% tags=["raises-exception"]
# demonstration: the trained model with fewer key-value heads
class SharedHeads(nn.Module):
    """The attention of the course's model with g key-value heads, each the mean of the heads that share it."""

    def __init__(self, trained, g):
        super().__init__()
        self.num_heads, self.g = trained.num_heads, g
        self.W_query, self.out_proj = trained.W_query, trained.out_proj
        self.W_key, self.W_value = (nn.Linear(48, 48 // trained.num_heads * g, bias=False) for _ in range(2))
        with torch.no_grad():
            for own, old in ((self.W_key, trained.W_key), (self.W_value, trained.W_value)):
                groups = old.weight.unflatten(0, (g, self.num_heads // g, -1))  # (g, shared, d_head, d)
                own.weight.copy_(groups.mean(dim=1).flatten(0, 1))

    def forward(self, x):
        q = split_heads(self.W_query(x), self.num_heads)  # (b, 4, n, d_head)
        k, v = split_heads(self.W_key(x), self.g), split_heads(self.W_value(x), self.g)  # (b, g, n, d_head)
        return self.out_proj(merge_heads(grouped_query_attention(q, k, v)))


def shared(g, random=False):
    """The trained model with g key-value heads in each layer."""
    torch.manual_seed(0)
    one = course_model()
    for block in one.blocks:
        block.attention = SharedHeads(block.attention, g)
        if random:
            block.attention.W_key.reset_parameters()
            block.attention.W_value.reset_parameters()
    return one


told = stories(200, seed=99)  # for measuring
for g in (4, 2, 1):
    right = answers(shared(g).eval(), told)["all"]
    print(f"{g} key-value heads: a cache of {cache_bytes(2, g, 12, 48, 4):,} bytes, {right:.0%} of the questions answered correctly")

# %% tags=["raises-exception", "nbval-ignore-output"]
# demonstration: 250 steps of training for each of three models, about 20 seconds
practice = pairs(stories(4000, seed=1))
after = {}
for name, one in {"2, from the mean": shared(2), "2, from random numbers": shared(2, random=True), "1, from the mean": shared(1)}.items():
    losses = list(train(one, *practice, steps=250, lr=1e-3))
    after[name] = answers(one.eval(), told)
    print(f"{name:>22}: {after[name]['all']:.0%} of the questions, loss {losses[0]:.2f} -> {sum(losses[-20:]) / 20:.2f}")

# %% [markdown]
# Without training the model with two key-value heads answers 14% of the questions correctly, and the one with a single one 3%. But a tenth of the
# training, from the mean, brings the model with two key-value heads back to nearly every answer, at half the cache. From random numbers the same
# training does not get there. (Ainslie et al. 2023 did this with large models and called it uptraining.) One key-value head for all four saves more
# and costs more: in this short time it does not get as far as two. (Each of the three is a single run.)
#
# ## 7 What goes wrong in practice
#
# Four mistakes. The first two are made here on purpose, in the model with your cache; the third is measured below. Lesson 08 showed the fourth.

# %% tags=["raises-exception"]
@torch.no_grad()
def write_wrongly(caches, place, steps=14):
    """Go on with the beginning; `place` gives the position that a new word is taken to have."""
    words, new = [], list(beginning)
    for _ in range(steps):
        scores = scores_of(yours, torch.tensor([encode(new)]), caches, place(caches[0].length))[0, -1]
        new = decode([int(scores.argmax())])
        words += new
    return " ".join(words)


fresh = [KVCache(48) for _ in yours.blocks]
print("correctly:         ", write_wrongly(fresh, lambda length: length))
for cache in fresh:
    cache.reset()
print("each word at 0:    ", write_wrongly(fresh, lambda length: 0))
for cache in fresh:
    cache.reset()
write_wrongly(fresh, lambda length: length, steps=20)
print("cache not emptied: ", write_wrongly(fresh, lambda length: length))

# %% [markdown]
# - **The position starts again at 0.** A new word comes in alone, and the code that adds the position vectors takes it for the first word.
# - **The cache of the last text is still there.** There is no error, but the new story is read as a continuation of the old one. Hence `reset()`.
# - **The text is longer than the context.** Lesson 07's `generate` then drops the oldest words and reads the rest from position 0. With a
#   cache that does not work: each word that stays has moved to another position, so its key has changed.
# - **`is_causal=True` with a cache.** PyTorch's function then gives a new word, alone against all cached keys, the value of the first word in the text.
#   There is no error. For one new word leave the mask out; for several, pass the rows of the mask that part 3 shows.

# %%
whole, cropped = keys_of(model, story)[:, 1:], keys_of(model, story[1:])
for number, (one, other) in enumerate(zip(whole, cropped), start=1):
    print(f"layer {number}: keys change by {(one - other).norm() / one.norm():.0%} of their size when the first word is dropped")

# %% [markdown]
# So this cache refuses what does not fit. With *relative* positions (RoPE, below) a score depends on the two words and on how far apart they are, not
# on where they stand in the text. The words that stay keep their distances, so the keys of the first layer stay right when old tokens go. Deeper keys
# still carry what they took from the tokens that are gone. In a model with a window, such as Mistral 7B v0.1, dropping keys that have left the window
# changes nothing, because its layers no longer look at them. What deeper keys carry from tokens that have left, they carried in training, too.
#
# ## 8 What you have built
#
# It began with a dot product. Nearly every box in the figure is something that you wrote, with the number of its lesson. (The norms are PyTorch's, the
# floor is the course's.) A sentence runs through the figure from bottom to top.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
def course_chart(words, chances):
    figure, axes = plt.subplots(figsize=(11, 8.2), layout="constrained")

    def box(x, y, width, height, text, colour, lesson="", top=False):
        axes.add_patch(plt.Rectangle((x, y), width, height, facecolor=colour, edgecolor="#333333", linewidth=1))
        axes.text(x + 0.12 if top else x + width / 2, y + height - 0.14 if top else y + height / 2, text,
                  ha="left" if top else "center", va="top" if top else "center", fontsize=10.5, weight="bold" if top else None)
        if lesson:
            axes.text(x + width - 0.1, y + height - 0.12, lesson, ha="right", va="top", fontsize=9, color="#b5541c")

    def arrow(x, y, to_x, to_y):
        axes.annotate("", (to_x, to_y), (x, y), arrowprops={"arrowstyle": "-|>", "color": "#333333"})

    box(0, 1.0, 11, 7.9, "TinyGPT", "#f4f1ea", "07", top=True)
    box(0.4, 1.2, 7.2, 0.5, "token embedding + position", "#ffffff", "07")
    box(0.4, 2.0, 7.2, 5.7, "TransformerBlock (two, one above the other)", "#e3edf2", "07", top=True)
    box(0.7, 2.2, 6.6, 4.25, "x + MultiHeadAttention(norm(x))", "#cfe0e8", "05, 06", top=True)
    box(0.9, 2.4, 1.9, 0.55, "queries", "#ffffff", "01")
    box(3.0, 2.4, 1.9, 0.55, "keys", "#ffffff", "01")
    box(5.1, 2.4, 1.9, 0.55, "values", "#ffffff", "01")
    box(0.9, 3.25, 4.0, 0.5, "dot products / √d: scores", "#ffffff", "01")
    box(0.9, 4.0, 4.0, 0.5, "mask: no looking ahead", "#ffffff", "02, 03")
    box(0.9, 4.75, 2.1, 0.5, "softmax: weights", "#ffffff", "01")
    box(3.4, 4.75, 1.5, 0.5, "dropout", "#ffffff", "04")
    box(0.9, 5.55, 6.1, 0.45, "weights @ values, heads merged, out_proj", "#ffffff", "01, 06")
    box(0.7, 6.75, 6.6, 0.5, "x + FeedForward(norm(x))", "#ffffff", "07")
    box(0.4, 8.0, 7.2, 0.45, "norm and head: a score for each word", "#ffffff", "07")
    box(8.1, 2.2, 2.6, 1.0, "KVCache: keys and\nvalues are kept", "#f7e3b5", "09")
    box(8.1, 3.5, 2.6, 2.2, "the same in tiles,\nweights @ values\nincluded: never the\nwhole n × n matrix", "#f7e3b5", "08")
    box(8.1, 6.1, 2.6, 1.5, "trained on stories:\nloss against\nthe exact floor", "#f7e3b5", "07")
    for x in (1.85, 3.95):
        arrow(x, 2.95, x, 3.25)
    arrow(6.05, 2.95, 6.05, 5.55)
    for y, to in ((3.75, 4.0), (4.5, 4.75)):
        arrow(2.0, y, 2.0, to)
    arrow(3.0, 5.0, 3.4, 5.0)
    arrow(4.15, 5.25, 4.15, 5.55)
    arrow(4.6, 6.0, 4.6, 6.75)
    arrow(4.0, 1.7, 4.0, 2.0)
    arrow(4.6, 7.25, 4.6, 8.0)
    arrow(4.0, 0.75, 4.0, 1.2)
    arrow(4.6, 8.45, 4.6, 9.2)
    axes.plot([3.0, 3.0, 7.0, 7.0], [2.38, 2.3, 2.3, 2.38], color="#b5541c", linewidth=1.5)  # a brace under keys and values
    axes.annotate("", (7.0, 2.3), (8.1, 2.3), arrowprops={"arrowstyle": "<|-|>", "color": "#b5541c"})
    axes.plot([4.97, 5.05, 5.05, 4.97], [3.25, 3.25, 5.25, 5.25], color="#b5541c", linewidth=1.5)  # one beside scores to softmax
    axes.annotate("", (5.05, 4.6), (8.1, 4.6), arrowprops={"arrowstyle": "<|-|>", "color": "#b5541c"})
    axes.text(4.0, 0.45, " ".join(words), ha="center", va="center", fontsize=11, style="italic")
    said = ",  ".join(f"{word} {chance:.2f}" for word, chance in chances.items())
    axes.text(4.6, 9.4, said, ha="center", va="center", fontsize=11, style="italic")
    axes.set(xlim=(-0.1, 11.1), ylim=(0.2, 9.7))
    axes.axis("off")
    return figure


words = begin("Anna has a ball . Tom has two books .")
with torch.no_grad():
    chances = scores_of(yours, torch.tensor([encode(words)]), [KVCache(48) for _ in yours.blocks], 0)[0, -1].softmax(dim=-1)
best = chances.topk(4)
show(
    chart(course_chart, words, {word: round(chance, 4) for word, chance in zip(decode(best.indices.tolist()), best.values.tolist())}),
    "The whole course as nested boxes. At the bottom the words Anna has a ball, Tom has two books. They become vectors, then queries, keys and "
    "values, scores, masked, softmax, dropout, context vectors, merged heads, a feed-forward layer, and at the top the probabilities of the "
    "next word: she, he, she's or he's. Beside them the KV cache, tied to keys and values, tiles and training. Each box carries the number of its lesson.",
)

# %% [markdown]
# Your layer and your cache computed the prediction at the top. What separates this model from the large ones is mostly size, data, training on tasks
# and conversations, and a few parts that you can now read about on your own. **Where to go on:**
#
# - **Rotary positions** (RoPE): queries and keys are rotated by an angle that grows with their position, so that a score depends on the distance.
#   Write it as two functions on `(b, h, n, d)`. Where in your cached layer do they go: before `append`, or after?
# - **Tokens from text**: byte-pair encoding, which builds tokens from letters that often occur together.
# - **A larger model, other text**: your TinyGPT with six layers and a million parameters, trained on a book. Compare the loss with a baseline that you can compute,
#   such as counting pairs of words.
# - **A cache for many people at once**: vLLM's PagedAttention keeps it in small pages, as an operating system keeps memory.
# - **Read real code**: the model of Karpathy's nanoGPT is your lesson 07 in some 300 lines; the attention of Llama in Hugging Face's `transformers`
#   is lesson 06 with RoPE and this lesson's cache and shared heads. Raschka's *Build a Large Language Model (From Scratch)* goes on to fine-tuning.
#
# ## Summary
#
# - In a causal model the keys and values of a word are final once it is there, because the mask lets nothing later reach it. So they are kept.
# - New words bring queries, keys and values of their own. Their queries meet the cached keys and the new ones. The mask for them is a part of the whole
#   mask: the rows of the new words, and the columns up to the last of them. For one new word it hides nothing.
# - The same story comes out, and each word is read once. A step still looks at every key, but computes no key twice.
# - A cache takes 2 × layers × key-value heads × head size × tokens × bytes of a number. For long texts, or many texts at once, it outgrows the weights.
# - In grouped-query attention several query heads share one key-value head. That divides the cache by the size of the group. The model has to be
#   trained for it.
#
# ## Further reading
#
# - Pope et al., *Efficiently Scaling Transformer Inference*, 2022: what limits the speed of writing on large machines.
# - Shazeer, *Fast Transformer Decoding: One Write-Head is All You Need*, 2019: one key-value head for all.
# - Ainslie et al., *GQA: Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints*, 2023: groups, made from a trained model.
# - Kwon et al., *Efficient Memory Management for Large Language Model Serving with PagedAttention*, 2023.
# - Sizes of the models: Radford et al., *Language Models are Unsupervised Multitask Learners*, 2019; Touvron et al., *Llama 2*, 2023; Jiang et al.,
#   *Mistral 7B*, 2023; Grattafiori et al., *The Llama 3 Herd of Models*, 2024; Meta's model cards of Llama 3 and Llama 3.1, 2024.
