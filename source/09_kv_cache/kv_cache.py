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
# Your model writes. It reads its text, says one word, puts the word at the end, and reads everything again from the start. Here it goes on with a
# beginning of six words. How many words does it read until the story is done? Run the next two cells.

# %% grade_id="setup" seconds=3 jupyter={"source_hidden": true}
# the set-up: imports, and what this lesson starts from
import math
import os
import time
from textwrap import fill

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from attention_course import (
    END, answers, begin, beside, case, chart, course_model, decode, encode, explore, hint, pairs, progress,
    rubric, show, stories, table, train, why, without_mask,
)
from attention_course.tiny_gpt import TinyGPT

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


def partial_attention(q, k, v, hidden=None):
    """Lesson 08: the triple (m, l, o) of queries over some keys."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if hidden is not None:
        scores = scores.masked_fill(hidden, -math.inf)
    m = scores.amax(dim=-1)
    exps = torch.exp(scores - m.masked_fill(m == -math.inf, 0.0)[..., None])
    return m, exps.sum(dim=-1), exps @ v


def merge(a, b):
    """Lesson 08: the triple over the keys of both parts."""
    (m_a, l_a, o_a), (m_b, l_b, o_b) = a, b
    m = torch.maximum(m_a, m_b)
    shift = m.masked_fill(m == -math.inf, 0.0)
    shrink_a, shrink_b = torch.exp(m_a - shift), torch.exp(m_b - shift)
    return m, l_a * shrink_a + l_b * shrink_b, o_a * shrink_a[..., None] + o_b * shrink_b[..., None]


def split_heads(x, num_heads):
    """Lesson 06: (b, n, d) -> (b, num_heads, n, d / num_heads)."""
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def merge_heads(x):
    """Lesson 06, the inverse: (b, num_heads, n, d_head) -> (b, n, num_heads * d_head)."""
    return x.transpose(1, 2).flatten(2)

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
print(f"{len(story) - len(beginning)} words written,", " + ".join(map(str, [*read[:3], "…", read[-1]])), "=", sum(read), "words read")

# %% [markdown]
# It read 726 words to write 33. How few could do? By the end of part 4 your code writes the same story and reads far fewer.
#
# - You find out which numbers never change while a model writes, and keep them in a **KV cache**.
# - You write attention that goes on where it stopped, and meet a bug that raises no error.
# - You compute what a cache costs, and why large models write as slowly as they do.
#
# *About 95 minutes. It builds on lessons 02, 03 (masks), 06 (heads), 07 (the model) and 08 (partial results). Run cells, solve exercises and ask for
# `hint()`, `why()` and `progress()` as in lesson 01.*

# %%
# demonstration: three questions on earlier lessons, without points
from attention_course import recall

recall()

# %% [markdown]
# ## 1 What never changes
#
# At each step the model computes queries, keys and values of *all* words. Have those of the old words changed since the step before?
#
# **Predict, then run.** While the story grows, how far do layer 2's keys of its first six words move: in this model, and in the same model without its
# mask?

# %%
my_guess = None  # a pair, each "not at all", "a little" or "much"

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

# %%
beside(my_guess, tuple("not at all" if found[:, 1].max() < 1e-4 else "a little" if found[:, 1].max() < 0.1 else "much" for found in moved.values()))

# %% [markdown]
# **With the mask, a word's keys and values are final as soon as the word is there.** They are made from this word and the ones before it, and nothing
# that comes later can reach them. (Without the mask only layer 1 stays: its keys are made before any word has looked at others.)
#
# So keep them. And the old *queries*? A query serves its own word's context vector alone, and that is done. Only the new word asks. Move the slider:

# %% jupyter={"source_hidden": true}
# draws the figure
def cache_chart(words, count):
    figure, axes = plt.subplots(figsize=(10.5, 4.6), layout="constrained")
    new, kept, later = "#e08a2b", "#1f6f8b", "#ececec"

    def box(x, y, text, colour, width=1.5):
        axes.text(x, y, text, ha="center", va="center", fontsize=10, color="white" if colour == kept else "#222222" if colour == new else "#999999",
                  bbox={"boxstyle": "round,pad=0.35", "facecolor": colour, "edgecolor": "none"})

    last = count - 1
    for place, word in enumerate(words):
        colour = kept if place < last else new if place == last else later
        x = 1.9 * place
        axes.text(x, 0, word, ha="center", va="center", fontsize=12, weight="bold" if place == last else None, color="#222222" if place <= last else "#bbbbbb")
        if place <= last:
            box(x, 1.55, "key", colour)
            box(x, 2.35, "value", colour)
            axes.plot([1.9 * last, x], [0.75, 1.55], color=new, linewidth=1.6, zorder=0)
            axes.annotate("", (1.9 * last, 3.66), (x, 2.35), zorder=0, arrowprops={"arrowstyle": "-|>", "color": "#888888", "linewidth": 1.1, "shrinkA": 0})
    box(1.9 * last, 0.75, "query", new)
    box(1.9 * last, 3.8, "context vector", new)
    axes.add_patch(plt.Rectangle((-0.85, 1.15), 1.9 * max(last, 0) - 0.2 if last else 0.0, 1.6, facecolor="#dbe9ee", edgecolor=kept, linewidth=1.5, zorder=-1))
    if last:
        axes.text(-0.8, 2.92, "in the cache", color=kept, fontsize=10.5)
    axes.set(xlim=(-1.2, 1.9 * len(words) - 0.7), ylim=(-0.4, 4.25))
    axes.axis("off")
    return figure


def one_step(step):
    said = f"“{story[step - 1]}” comes in alone, with a query, a key and a value. Its query meets {step - 1} keys from the cache and its own."
    return chart(cache_chart, story[:8], step), said


explore(
    one_step,
    alt="Words in a row. The new word has a query, a key and a value; the words before it have a key and a value in the cache and no query. Lines lead from the query to all keys, "
    "arrows from all values to one context vector.",
    step=[7, 1, 2, 3, 4, 5, 6, 8],
)

# %% [markdown]
# ## 2 A place to keep it
#
# ### Exercise: `KVCache` (4 points)
#
# Write the box that keeps keys and values, one for each layer. How is up to you: join the new ones to the old ones, or reserve room for `max_length`
# tokens and write into it.
#
# ```
# append(k, v)   of n new tokens, (b, h, n, d) each
#    ──►         all keys and all values so far, as a pair, (b, h, length, d) each
# ```
#
# - `length`, an attribute or a property, counts the tokens. `reset()` empties the cache; the next batch may have another size.
# - Tokens that do not all fit raise a `ValueError`, and the cache is as before.
# - What `append` returned stays right until `reset()`.

# %% grade_id="KVCache"
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


# %% grade_id="test_KVCache"
@rubric("KVCache")  # the contract as a checklist; open this cell to read it
def _(r):
    r.idea.appends("returns all keys and values so far: one token at a time, in chunks, all at once", KVCache, 12, "1 1 1", "2 1 4 2", "7", "3 3 3")
    r.appends("after reset() it is empty, and another batch size is fine", KVCache, 6, "2 3 reset 4 1", "reset 6 reset 6")
    r.appends("refuses more than max_length tokens with a ValueError, and is then as before", KVCache, 5, "2 3 1", "5 1", "6", "3 3 2", "6 5", "4 2 1 1")
    r.appends("earlier results stay right until reset(), and those of another cache", KVCache, 6, "2 1 3", "1 1 1 1", "2 other 3 other 1", later=True)
    r.appends("float64 in, float64 out", KVCache, 8, "3 1 2", dtype=torch.float64)
    r.unchanged("leaves its arguments as they were")

# %% tags=["raises-exception"]
torch.manual_seed(123)
W_key, W_value = (nn.Linear(3, 4, bias=False).to(device) for _ in range(2))
cache = KVCache(max_length=6)
with torch.no_grad():
    for part in inputs[None].split([1, 2, 3], dim=1):  # (1, n, 3)
        k, v = (split_heads(layer(part), 1) for layer in (W_key, W_value))  # (1, 1, n, 4)
        keys, _values = cache.append(k, v)
        print(f"{part.shape[1]} new, {cache.length} in the cache, keys {tuple(keys.shape)}")
try:
    cache.append(k, v)
except ValueError as error:
    print("ValueError:", error)

# %% [markdown]
# What do real caches do? All of this. The *dynamic* cache of Hugging Face's `transformers` joins with `torch.cat`, which copies everything at every
# word; its *static* cache reserves room, as for `torch.compile`; vLLM hands out small **pages**, so that texts of any length share one memory (Kwon
# et al. 2023).
#
# ## 3 Attention that goes on where it stopped
#
# Three words are in the cache, and two new ones come in together.
#
# **Predict, then run.** Which shape do the scores of one head have?

# %%
my_guess = None  # two numbers, (?, ?)

# %%
new_queries, all_keys = torch.randn(2, 4), torch.cat([torch.randn(3, 4), torch.randn(2, 4)])
beside(my_guess, tuple((new_queries @ all_keys.T).shape))

# %% [markdown]
# The scores are not square, so neither is the mask. The new words need *their rows* of lesson 03's mask: in the middle. On the right is what
# `is_causal=True` takes, the **top left** corner. Move the sliders.

# %% jupyter={"source_hidden": true}
# draws the figure
def mask_chart(cached, new):
    n, total = 8, cached + new
    colours = {"visible": "#a9c9d3", "hidden": "#444444", "visible, from the cache": "#1f6f8b", "visible, new": "#d9a441", "wrong": "#b5541c", "not in this call": "#eeeeee"}
    figure, (whole, part, corner) = plt.subplots(1, 3, figsize=(12.5, 3.9), layout="constrained")
    for i in range(n):
        for j in range(n):
            here = cached <= i < total and j < total
            kind = "hidden" if j > i else "visible, from the cache" if j < cached else "visible, new"
            wrong = "hidden" if j > i else "wrong" if j > i - cached else "visible, from the cache"
            shown = (whole, "hidden" if j > i else "visible"), (part, kind if here else "not in this call"), (corner, wrong if here else "not in this call")
            for axes, one in shown:
                axes.add_patch(plt.Rectangle((j, i), 0.94, 0.94, color=colours[one]))
    titles = "the whole mask", f"right: rows {cached} to {total - 1}", "is_causal=True: the top left"
    for axes, title in zip((whole, part, corner), titles):
        axes.set(xlim=(-0.1, n), ylim=(n, -0.1), aspect="equal", title=title, xlabel="position of the key", ylabel="position of the query")
        axes.set_xticks([i + 0.47 for i in range(n)], range(n))
        axes.set_yticks([i + 0.47 for i in range(n)], range(n))
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
    colours["wrongly hidden"] = colours.pop("wrong")
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in colours.values()]
    figure.legend(handles, colours, loc="outside lower center", frameon=False, ncols=6, fontsize=9)
    return figure


def look(cached, new):
    said = f"{cached} cached and {new} new token{'s' * (new > 1)}: scores {new} by {cached + new}, {new * (new - 1) // 2} of them hidden; the top left corner hides {cached * new} more."
    return chart(mask_chart, cached, new), said


explore(
    look,
    alt="Three squares of 8 by 8 places: the whole mask with a hidden triangle above the diagonal; the rows of the new tokens; and the same rows with the triangle that starts "
    "at the top left, which hides what should be visible.",
    cached=[3, 0, 1, 2, 4, 5],
    new=[2, 1, 3],
)

# %% [markdown]
# With one new word the right rows hide nothing, and the top left corner leaves it the *first* token of the text alone. Nothing is raised, so people run
# into it again and again (PyTorch's issues 108108 and 144858).
#
# ### Exercise: `CachedMultiHeadAttention` (5 points)
#
# Lesson 06's layer, which takes a cache. The constructor is given; `split_heads` and `merge_heads` are in the cell with the imports.
#
# ```
# forward(x)          as in lesson 06
# forward(x, cache)   x: the new tokens (b, n, d_in)   ──►   their outputs (b, n, d_out)
# ```
#
# - Their keys and values, split into heads, go into `cache.append(k, v)`. Use nothing else of the cache but `length`.
# - One token at a time, in chunks, or all at once: the outputs are the same.
# - Cached and new tokens beyond `context_length` raise a `ValueError`, before the cache changes.

# %% grade_id="CachedMultiHeadAttention"
class CachedMultiHeadAttention(nn.Module):
    """Causal attention with several heads that can go on where it stopped, (b, n, d_in) -> (b, n, d_out)."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
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

    def forward(self, x, cache=None):
        ### BEGIN SOLUTION
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


# %% grade_id="test_CachedMultiHeadAttention"
@rubric("CachedMultiHeadAttention")  # the contract as a checklist; open this cell to read it
def _(r):
    layer = r.cached_layer(CachedMultiHeadAttention, d_in=4, d_out=6, context_length=8, dropout=0.0, num_heads=2, qkv_bias=False)
    layer.linear("W_query W_key W_value", "d_in -> d_out", bias="qkv_bias")
    layer.linear("out_proj", "d_out -> d_out", bias="always")
    layer.outputs("without a cache it is MultiHeadAttention, for sentences of any length", r.normal(1, 2, 4), r.normal(3, 7, 4) * (r.uniform(3, 7, 1) > 0), r.normal(2, 8, 4), r.normal(2, 8, 4))
    layer.idea.fed("one token at a time, in chunks, with two caches in turn: the outputs of all at once", 2 * r.normal(2, 8, 4), "8", "1 1", "1 1 1 1 1 1 1 1", "3 3", "2 other 3 other 1 2", "3 none")
    layer.idea.fed("a chunk of any size sees all before it, but not its own future", 2 * r.normal(4, 16, 8), "2 2", "7 1 3", "4 4 4 4", "1 5 5 2", d_in=8, d_out=8, context_length=16, num_heads=4, qkv_bias=True)
    layer.drops_weights("in training each head drops its own weights, in eval() none", p=0.4, num_heads=4)
    layer.keeps_mask("works after .to(device), with its mask", r.normal(2, 5, 4))
    layer.overfed("more than context_length, cached and new, is refused before the cache changes", r.normal(2, 16, 4), "6 3 2", "7 2 1", "1 8 7")
    layer.refuses("raises ValueError for too many tokens without a cache", r.normal(2, 9, 4), r.normal(1, 12, 4))
    layer.fed_gradients("gradients pass through the cache", r.normal(2, 6, 4), "3 1 2")
    layer.conventions(r.normal(3, 7, 4), d_out=18)

# %% [markdown]
# The six words, with the weights of seed 123: the table of lesson 06, however they are fed.

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
# ## 4 Your code in the trained model
#
# Your layer takes over the trained numbers, and each of the two layers gets a cache of its own. The beginning goes in as one chunk (**prefill**), then
# each word alone (**decode**; the function `decode` here only turns ids into words). One thing outside attention needs care: a word that comes in alone
# needs the vector of *its* position.

# %% tags=["raises-exception"]
yours = course_model()
for block in yours.blocks:
    own = CachedMultiHeadAttention(48, 48, 48, 0.0, 4)
    own.load_state_dict(block.attention.state_dict(), strict=False)  # the file has no mask
    block.attention = own.eval()


def scores_of(model, new, caches, start):
    """Scores (b, n, v) of new tokens (b, n), the first of which is at position `start`."""
    end = start + new.shape[1]
    if end > model.context_length:
        raise ValueError(f"at most {model.context_length} tokens fit, got {end}")
    places = model.position_embedding.weight[start:end]
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
# Not luck: compare a hundred stories, and the scores.

# %% jupyter={"source_hidden": true}
# prepares a hundred beginnings, and how to go on with them
starts = torch.tensor([encode(begin(" ".join(told.words[:5]))) for told in stories(100, seed=99)])  # (100, 6)


@torch.no_grad()
def write_many(step, tokens, length):
    """Go on to a length with the likeliest token each time.

    `step(tokens, new)` gives the scores; `new` are the tokens that it has not had before.
    """
    new = tokens
    while tokens.shape[1] < length:
        new = step(tokens, new)[:, -1].argmax(dim=-1, keepdim=True)  # (b, 1)
        tokens = torch.cat([tokens, new], dim=1)
    return tokens


def from_the_start(tokens, new):
    """Read everything, every time."""
    return model(tokens)


# %% tags=["raises-exception"]
# demonstration: a hundred stories, without and with the cache
def with_caches():
    """A step for write_many that reads only what is new, with fresh caches."""
    caches = [KVCache(48) for _ in yours.blocks]
    return lambda tokens, new: scores_of(yours, new, caches, caches[0].length)


plain = write_many(from_the_start, starts, 48)
cached = write_many(with_caches(), starts, 48)


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
# **Predict, then run.** How many times less work is the last step of a text of 48 words now?

# %%
my_guess = None  # a number

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
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
beside(my_guess, round(counted["from the start each time"][-1] / counted["with your cache"][-1], 1))

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: draws the figure
def step_chart(curves, unit, title):
    figure, axes = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
    for (name, curve), colour, style in zip(curves.items(), ("#b5541c", "#1f6f8b"), ("--", "-")):
        axes.plot(range(6, 48), curve, style, color=colour, label=name)
        axes.text(47.4, curve[-1], f"{curve[-1]:.2f}", color=colour, va="center")
    axes.set(xlabel="words before it", ylabel=unit, xlim=(5, 50), ylim=(0, None), title=title)
    axes.legend()
    return figure


show(
    chart(step_chart, counted, "millions", "Multiplications of one step, one story"),
    "Multiplications of one step against the number of words before it. From the start each time they rise with every word. With the cache they are as "
    "many for the first step, which reads six words, and few and nearly the same for each step afterwards.",
)

# %% [markdown]
# With a cache the cost hardly grows: the new word still looks at every key, but no key is computed twice. The factor is the number of words read: one
# word instead of 47 passes each matrix, and one query instead of 47 meets the keys.
#
# ### Open the cache
#
# The cache is all that the model keeps of what it has read. So let it forget one word: take that word's keys and values out of your caches, and leave
# all others. The words after it read it long ago.
#
# **Predict, then run.** Without *ball* in the cache, what does Anna do?

# %%
my_guess = None  # "she kicks her ball", or another sentence
asked = "Anna has a ball . Tom has two books . he reads them upstairs . she's outside . what does Anna do ?"
forgotten = "ball"  # or any other word

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: the model goes on when a word has left your caches
class Opened(KVCache):
    """Your cache, which also shows what it returned last."""

    def append(self, k, v):
        self.all = super().append(k, v)
        return self.all


@torch.no_grad()
def read_all(words):
    """Caches that have read these words."""
    caches = [Opened(48) for _ in yours.blocks]
    scores_of(yours, torch.tensor([encode(words)]), caches, 0)
    return caches


@torch.no_grad()
def go_on(words, gone=(), most=6):
    """What the model writes after these words, up to a full stop, when those at some places have left the caches."""
    left = [KVCache(48) for _ in yours.blocks]
    stay = [place for place in range(len(words) - 1) if place not in gone]
    for cache, full in zip(left, read_all(words[:-1])):
        cache.append(*(x[:, :, stay] for x in full.all))
    written = []
    while len(written) < most and written[-1:] != ["."]:
        last, position = (words + written)[-1:], len(words) - 1 + len(written)
        written += decode([int(scores_of(yours, torch.tensor([encode(last)]), left, position)[0, -1].argmax())])
    return " ".join(written).removesuffix(" .")


told_all = begin(asked)
places = [place for place, word in enumerate(told_all[:-1]) if word == forgotten]
if not places:
    print(f"nothing is forgotten: {forgotten} is not among the words before the last")
beside(my_guess, go_on(told_all, places))
print("with all words:", go_on(told_all))

# %% [markdown]
# Forget *ball*, and Anna reads Tom's books.
#
# **Predict, then run.** Now one of the other 22 words is forgotten, *Anna*, *she's*, *does*, each in its turn. For how many of them does the answer change?

# %%
my_guess = None  # from 0 to 22

# %% tags=["raises-exception"]
changed = {place: go_on(told_all, [place]) for place in range(len(told_all) - 1) if go_on(told_all, [place]) != go_on(told_all)}
beside(my_guess, sum(place not in places for place in changed))
for place, said in changed.items():
    print(f"without word {place}, {told_all[place]}: {said}")

# %% [markdown]
# That is one story. Here are 200, asked *where*:

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: where is she? In 200 stories, with a word forgotten
def forgetting(stories_told):
    """For each word that is forgotten, the shares of answers that name the right place, and the other person's."""
    named = {name: [] for name in ("nothing", "the right place", "the other place", "a word drawn from the rest")}
    draw = torch.Generator().manual_seed(0)
    for one in stories_told:
        for link in one.notes.links:
            if link.job == "she's: own place" and link.other is not None and one.words[link.own] != one.words[link.other]:
                words, own, other = begin(str(one))[: link.at + 2], link.own + 1, link.other + 1
                rest = [place for place in range(len(words) - 1) if place not in (own, other)]
                drawn = rest[torch.randint(len(rest), (), generator=draw)]
                for name, gone in zip(named, ([], [own], [other], [drawn])):
                    said = go_on(words, gone, most=1)
                    named[name].append((said == words[own], said == words[other]))
    return {name: torch.tensor(found).double().mean(dim=0).tolist() for name, found in named.items()}


print(f"{'forgotten':>26}   names the right place   the other person's")
for name, (right, other) in forgetting(stories(200, seed=99)).items():
    print(f"{name:>26}   {right:21.0%}   {other:18.0%}")

# %% [markdown]
# Forget the right place, and most answers name the other person's. **One entry holds the fact, and hardly any later word has kept it**, though all
# could read it. Forget the other place, or a word drawn from the rest, and nothing happens.
# (Change `asked` and `forgotten`: end with *who is she ?*, and forget *Anna*.)
#
# **Predict, then run.** Tom is in the gym and sees a bat, so it is of wood. The word *bat* read *gym* when it came in (lesson 03). Now *gym* leaves the
# cache, and only `?` has not read it yet. Is the bat alive?

# %%
my_guess = None  # "yes" or "no"

# %% tags=["raises-exception"]
bat = begin("Tom is in the gym . he sees a bat . is it alive ?")
beside(my_guess, go_on(bat, [bat.index("gym")]))
print("with all words:", go_on(bat))
print("answers that change, word by word:", ", ".join(f"{word} {go_on(bat, [place])}" for place, word in enumerate(bat[:-1]) if go_on(bat, [place]) != go_on(bat)))

# %% [markdown]
# What the bat knew is not enough: `?` reads *gym* itself. A cache that runs out of room must know what it can do without: H2O (Zhang et al. 2023)
# keeps the latest words, and of the others those that got the most weight.
#
# ## 5 What a cache costs
#
# The time saved is paid for in memory.
#
# ### Exercise: `cache_bytes` (1 point)
#
# How many bytes do the keys and values of one text take? There are `layers` layers with `kv_heads` heads that keep keys and values of `head_dim` numbers
# each, for `tokens` tokens, at `bytes_per_number` bytes a number. Return an `int`.

# %% grade_id="cache_bytes"
def cache_bytes(layers, kv_heads, head_dim, tokens, bytes_per_number):
    """Return the bytes of the cached keys and values of one text."""
    ### BEGIN SOLUTION
    return 2 * layers * kv_heads * head_dim * tokens * bytes_per_number
    ### END SOLUTION


# %% grade_id="test_cache_bytes"
@rubric("cache_bytes")  # the contract as a checklist; open this cell to read it
def _(r):
    r.idea.each("the bytes of all keys and values, an int", cache_bytes, (1, 1, 1, 1, 1), (12, 12, 64, r.integer(100, 1024), 4), (47, 9, 127, 2 * r.integer(10**5, 10**6) + 1, 2), (r.integer(2, 9), r.integer(2, 9), r.integer(2, 9), 0, 2))

# %% [markdown]
# Models that people use, with two bytes a number (sources: the end of the page):

# %% tags=["raises-exception"]
configurations = {  # layers, key-value heads, head size, tokens the model was made for, billions of parameters
    "course's model": (2, 4, 12, 48, 0.00006),
    "GPT-2 small": (12, 12, 64, 1024, 0.124),
    "Llama 2 7B": (32, 32, 128, 4096, 6.74),
    "Llama 3 8B": (32, 8, 128, 8192, 8.03),
    "Llama 3 70B": (80, 8, 128, 8192, 70.6),
    "Llama 3.1 8B": (32, 8, 128, 131072, 8.03),
}


def readable(number):
    """Bytes in kB, MB, GB or TB, with three digits."""
    unit, factor = ("TB", 1e12) if number >= 1e12 else ("GB", 1e9) if number >= 1e9 else ("MB", 1e6) if number >= 1e6 else ("kB", 1e3)
    return f"{number / factor:.3g} {unit}"


print("model           layers  kv heads  size  bytes a token   tokens  whole cache  weights")
for name, (layers, kv_heads, head_dim, longest, billions) in configurations.items():
    token, whole = (cache_bytes(layers, kv_heads, head_dim, n, 2) for n in (1, longest))
    print(f"{name:15} {layers:6} {kv_heads:9} {head_dim:5} {token:14,} {longest:8,} {readable(whole):>12} {readable(2e9 * billions):>8}")

# %% [markdown]
# Larger than Llama 3.1 8B itself is, at full length, the cache of a single text. A server keeps one for every text.

# %% [markdown]
# ## 6 Why large models write slowly
#
# To write one word, a model needs nearly every one of its weights, and all of its cache. They come from slow memory (lesson 08), and with each weight it
# does a single multiplication for each text. So a step takes at least *bytes / bytes per second*: **writing is bound by memory**, not by arithmetic.
#
# ### Exercise: `decode_bound` (2 points)
#
# Return the most tokens a second that memory allows, over all texts of a batch. A step writes one token for each text. It reads `weight_bytes` once for the
# whole batch, and `cache_bytes` for each text.

# %% grade_id="decode_bound"
def decode_bound(weight_bytes, cache_bytes, bytes_per_second, batch=1):
    """The most tokens a second, over the whole batch, that memory allows: a float."""
    ### BEGIN SOLUTION
    return batch * bytes_per_second / (weight_bytes + batch * cache_bytes)
    ### END SOLUTION


# %% grade_id="test_decode_bound"
@rubric("decode_bound")  # the contract as a checklist; open this cell to read it
def _(r):
    weights, kept, speed = 1000 * r.integer(2000, 9000), 1000 * r.integer(100, 900), 1000.0 * r.integer(20_000, 90_000)
    r.idea.each("one text, several: weights read once a step, a cache for each text", decode_bound, (8, 2, 40.0, 1), (8, 3, 60.0, 4), (weights, kept, speed, r.integer(2, 9)), (weights, kept, speed, r.integer(100, 900)))
    r.each("a batch of one by default, and an empty cache", decode_bound, (weights, kept, speed), (weights, 0, speed, r.integer(2, 9)))

# %% [markdown]
# **Predict, then run.** Llama 3 8B (16 GB of weights), one short text, one NVIDIA H100 (3.35 TB a second). How many tokens a second, at best?

# %%
my_guess = None  # tokens a second

# %% tags=["raises-exception"]
beside(my_guess, round(decode_bound(16.06e9, 0, 3.35e12)))

# %% tags=["raises-exception"]
batches = 1, 8, 32
print(f"{'Llama 3 8B on an H100, tokens a second':40}" + "".join(f"{n} text{'s' * (n > 1)}".rjust(12) for n in batches))
for name, kv_heads, size in (("32 key-value heads, 16 bits", 32, 2), ("8, as it has", 8, 2), ("8, and 8 bits", 8, 1)):
    kept = cache_bytes(32, kv_heads, 128, 8192, size)
    bounds = (f"{decode_bound(16.06e9, kept, 3.35e12, n):,.0f}" if 16.06e9 + n * kept < 80e9 else "no room" for n in batches)
    print(f"{name:40}" + "".join(f"{bound:>12}" for bound in bounds))

# %% [markdown]
# (Texts of 8,192 tokens; an H100 has room for 80 GB.) **Batches** help most: one reading of the weights serves all texts, until the caches weigh as
# much. (No single text gets faster.) Then **shared heads** (part 7) and **8-bit caches** help.
#
# Is the bound real? On an H200 we multiplied a matrix of 1 GiB in bfloat16 with one vector for each text: 1 text 0.271 ms, 8 texts 0.272, 64 texts 0.293,
# 256 texts 0.402 ms. With one text that is 3.96 of the 4.8 TB a second; 64 texts cost hardly more than one. With 256 arithmetic begins to count.
#
# **Predict, then run.** And here, with your layer and cache: how many times as long as one text do 32 take?

# %%
my_guess = None  # times as long

# %% seconds=10 jupyter={"source_hidden": true} tags=["raises-exception", "nbval-ignore-output", "unsteady-output"]
# demonstration: the time of a token against the bytes of the weights, for the course's model and wider ones, untrained
def like_yours(width):
    """A model like the course's, of any width, with your attention."""
    made = TinyGPT(62, width, 48, 4, 2, 0.0).eval()
    for block in made.blocks:
        block.attention = CachedMultiHeadAttention(width, width, 48, 0.0, 4).eval()
    return made


def one_token(made, batch):
    """The milliseconds of a token for each of the texts, after 20 others; the shortest of ten steps."""
    caches, times = [KVCache(48) for _ in made.blocks], []
    with torch.no_grad():
        scores_of(made, torch.zeros(batch, 20, dtype=torch.long), caches, 0)
        for step in range(10):
            began = time.perf_counter()
            scores_of(made, torch.zeros(batch, 1, dtype=torch.long), caches, 20 + step)
            times.append(1000 * (time.perf_counter() - began))
    return min(times)


for width in (48, 192, 768, 1536):
    made = like_yours(width)
    megabytes = sum(parameter.nbytes for parameter in made.parameters()) / 1e6
    took = {batch: one_token(made, batch) for batch in (1, 8, 32)}
    print(f"width {width:5}: {megabytes:6.1f} MB, {took[1]:6.2f} ms a token, {megabytes / took[1]:5.1f} GB/s;", ", ".join(f"{batch} texts {took[batch]:.2f} ms" for batch in (8, 32)))
beside(my_guess, f"{took[32] / took[1]:.1f} times, at the largest width")

# %% [markdown]
# **The time grows with the bytes**: in two runs on one thread of our busy machine 57 MB took 3 and 9 ms a token, 228 MB 16 and 45 ms. (The course's own
# model, 0.3 MB, is too small for that: calling PyTorch's functions takes longer than reading the weights.) And 32 texts took three to ten times as long
# as one, not 32 times.
#
# Reading the beginning is such a batch: all its words share one reading of the weights. So a long prefill is bound by arithmetic, decoding by memory.
#
# ### A long cache, in pieces
#
# One new word has one query. If the cache is long, its keys can be cut into pieces that different processors of the card read at the same time. Each gives
# a partial result, and lesson 08's `merge` joins them: that is **Flash-Decoding**.

# %% tags=["raises-exception"]
torch.manual_seed(123)
cache = KVCache(10_000)
k, v = cache.append(*torch.randn(2, 1, 4, 10_000, 12, dtype=torch.float64).unbind())
q = torch.randn(1, 4, 1, 12, dtype=torch.float64)  # one new word
pieces = [partial_attention(q, *piece) for piece in zip(k.split(1300, dim=2), v.split(1300, dim=2))]
whole = pieces[0]
for piece in pieces[1:]:
    whole = merge(whole, piece)
apart = (whole[2] / whole[1][..., None] - nn.functional.scaled_dot_product_attention(q, k, v)).abs().max().item()
print(f"{len(pieces)} pieces of your cache, merged, within 0.000000000001 of PyTorch: {apart < 1e-12}")

# %% [markdown]
# ## 7 Heads that share
#
# Which factor of `cache_bytes` could be smaller? Llama 3 8B has 32 query heads and 8 key-value heads: four query heads ask different questions of the
# same keys. That is **grouped-query attention**; with one key-value head for all it is called multi-query attention.
#
# ### Exercise: `grouped_query_attention` (4 points)
#
# Scaled dot-product attention, as in lesson 01, for heads that share keys and values.
#
# ```
# q (b, h, n, d)   k, v (b, g, n, d)   ──►   context vectors (b, h, n, d), causal
# ```
#
# - Neighbours share: query head i reads key-value head `i // (h // g)`. With h = 6 and g = 2, heads 0, 1, 2 read 0.
# - If h is not a multiple of g, raise a `ValueError`.

# %% grade_id="grouped_query_attention"
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


# %% grade_id="test_grouped_query_attention"
@rubric("grouped_query_attention")  # the contract as a checklist; open this cell to read it
def _(r):
    q, k, v = 2 * r.normal(2, 6, 8, 3), 2 * r.normal(2, 2, 8, 3), r.normal(2, 2, 8, 3)
    r.idea.each("neighbouring query heads share a key-value head", grouped_query_attention,
        (2 * r.normal(1, 4, 2, 3), r.normal(1, 2, 2, 3), r.normal(1, 2, 2, 3)), (q, k, v), (q, q[:, :3], k[:, [0, 1, 0]]),
        (2 * r.normal(4, 4, 4, 4), r.normal(4, 2, 4, 4), r.normal(4, 2, 4, 4)))
    r.each("one key-value head for all, one for each", grouped_query_attention, (q, k[:, :1], v[:, :1]), (q, 2 * r.normal(2, 6, 8, 3), r.normal(2, 6, 8, 3)))
    low = torch.full_like(q, 1e5), torch.full_like(k, -1e5), v  # scores of -17 billion
    r.each("hides the future, however large or low the scores; one token alone", grouped_query_attention, (q[:, :, :1], k[:, :, :1], v[:, :, :1]), (30 * q, 30 * k, v), low)
    r.refuses("raises ValueError when h is not a multiple of g", grouped_query_attention, (q, r.normal(2, 4, 8, 3), r.normal(2, 4, 8, 3)), (k, q, q))
    r.conventions(grouped_query_attention, 2 * r.normal(2, 6, 8, 4), 2 * r.normal(2, 2, 8, 4), r.normal(2, 2, 8, 4))

# %% [markdown]
# What does sharing cost? In the trained model let two heads share one key matrix, the mean of their two, and one value matrix likewise: half the cache.
#
# **Predict, then run.** What share of the questions does it still answer? (With its four heads: 100%.)

# %%
my_guess = None  # a number from 0 to 1

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
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
right = {g: answers(shared(g).eval(), told)["all"] for g in (4, 2, 1)}
beside(my_guess, round(right[2], 2))
for g, share in right.items():
    print(f"{g} key-value head{'s' * (g > 1)}: a cache of {cache_bytes(2, g, 12, 48, 4):,} bytes, {share:.0%} of the questions answered correctly")

# %% seconds=20 tags=["raises-exception", "nbval-ignore-output"]
# demonstration: 250 steps of training for each of three models, about 20 seconds
practice = pairs(stories(4000, seed=1))
after = {}
for name, one in {"2, from the mean": shared(2), "2, from random numbers": shared(2, random=True), "1, from the mean": shared(1)}.items():
    losses = list(train(one, *practice, steps=250, lr=1e-3))
    after[name] = answers(one.eval(), told)
    print(f"{name:>22}: {after[name]['all']:.0%} of the questions, loss {losses[0]:.2f} -> {sum(losses[-20:]) / 20:.2f}")

# %% [markdown]
# Shared without training, two key-value heads answer 14%, one answers 3%. After 250 steps, a tenth of the training, two heads that began as the mean
# answer nearly everything, at half the cache; two that began as random numbers do not get there. (Single runs. Ainslie et al. 2023 do this with large
# models: uptraining.)
#
# ## 8 What goes wrong in practice
#
# With your cache the model goes on from *Anna has a ball .*: once right, once with the top left mask, once with each new word at position 0, once with
# the cache not emptied.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: writes four times, three of them wrongly
@torch.no_grad()
def write_wrongly(caches, place, steps=14, model=yours):
    """Go on with the beginning; `place` gives the position that a new word is taken to have."""
    words, new = [], list(beginning)
    for _ in range(steps):
        scores = scores_of(model, torch.tensor([encode(new)]), caches, place(caches[0].length))[0, -1]
        new = decode([int(scores.argmax())])
        words += new
    return " ".join(words)


class TopLeft(CachedMultiHeadAttention):
    """Lets PyTorch make the mask."""

    def forward(self, x, cache=None):
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        k, v = cache.append(k, v)
        return self.out_proj(merge_heads(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)))


top_left = course_model()
for block in top_left.blocks:
    own = TopLeft(48, 48, 48, 0.0, 4)
    own.load_state_dict(block.attention.state_dict(), strict=False)
    block.attention = own.eval()
caches = [KVCache(48) for _ in yours.blocks]
written = {"right": write_wrongly(caches, lambda length: length)}
for cache in caches:
    cache.reset()
written["position 0"] = write_wrongly(caches, lambda length: 0)
for cache in caches:
    cache.reset()
write_wrongly(caches, lambda length: length, steps=20)
written["not emptied"] = write_wrongly(caches, lambda length: length)
written["top left"] = write_wrongly([KVCache(48) for _ in yours.blocks], lambda length: length, model=top_left)
letters = dict(zip(("not emptied", "top left", "right", "position 0"), "ABCD"))
for name, letter in letters.items():
    print(f"{letter}: {written[name]}")

# %% [markdown]
# **Which is which?**

# %%
my_guess = None  # the letters of "right", "top left", "position 0", "not emptied", such as "ABCD"

# %% tags=["raises-exception"]
beside(my_guess, "".join(letters[name] for name in ("right", "top left", "position 0", "not emptied")))

# %% [markdown]
# - **The top left mask.** Prefill is right, and so is the first word; every later word sees the first token of the text alone.
# - **Position 0.** Each step feeds the new word at position 0 again.
# - **Not emptied.** The new story is read as the last one's continuation. Hence `reset()`.
# - **The text is longer than the context.** Dropping the oldest words does not work: all others move to another position, so their keys change. So this
#   cache refuses what does not fit.
#
# ## 9 What you have built
#
# It began with a dot product. Nearly every box is something that you wrote, with the number of its lesson. (The norms are PyTorch's, the floor is the
# course's.) Begin a story:

# %% tags=["raises-exception"]
words = begin("Anna has a ball . Tom has two books .")  # or a beginning of your own
print(fill(" ".join(write_with_cache(yours, words)[0]), 96))

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
def course_chart(words, chances):
    figure, axes = plt.subplots(figsize=(11, 8.8), layout="constrained")

    def box(x, y, width, height, text, colour, lesson="", top=False):
        axes.add_patch(plt.Rectangle((x, y), width, height, facecolor=colour, edgecolor="#333333", linewidth=1))
        axes.text(x + 0.12 if top else x + width / 2, y + height - 0.14 if top else y + height / 2, text,
                  ha="left" if top else "center", va="top" if top else "center", fontsize=10.5, weight="bold" if top else None)
        if lesson:
            axes.text(x + width - 0.1, y + height - 0.12, lesson, ha="right", va="top", fontsize=9, color="#b5541c")

    def arrow(x, y, to_x, to_y):
        axes.annotate("", (to_x, to_y), (x, y), arrowprops={"arrowstyle": "-|>", "color": "#333333"})

    box(0, 1.0, 11, 8.6, "TinyGPT", "#f4f1ea", "07", top=True)
    box(0.4, 1.2, 7.2, 0.5, "token embedding + position", "#ffffff", "07")
    box(0.4, 2.0, 7.2, 6.4, "TransformerBlock (two, one above the other)", "#e3edf2", "07", top=True)
    box(0.7, 2.2, 6.6, 4.95, "x + MultiHeadAttention(norm(x))", "#cfe0e8", "05, 06", top=True)
    box(0.9, 2.4, 1.9, 0.55, "queries", "#ffffff", "01")
    box(3.0, 2.4, 1.9, 0.55, "keys", "#ffffff", "01")
    box(5.1, 2.4, 1.9, 0.55, "values", "#ffffff", "01")
    box(0.9, 3.25, 4.0, 0.5, "dot products / √d: scores", "#ffffff", "01")
    box(0.9, 4.0, 4.0, 0.5, "mask: no looking ahead", "#ffffff", "02, 03")
    box(0.9, 4.75, 2.1, 0.5, "softmax: weights", "#ffffff", "01")
    box(3.4, 4.75, 1.5, 0.5, "dropout", "#ffffff", "04")
    box(0.9, 5.55, 6.1, 0.45, "weights @ values", "#ffffff", "01")
    box(0.9, 6.25, 6.1, 0.45, "heads merged, out_proj", "#ffffff", "06")
    box(0.7, 7.4, 6.6, 0.5, "x + FeedForward(norm(x))", "#ffffff", "07")
    box(0.4, 8.65, 7.2, 0.45, "norm and head: a score for each word", "#ffffff", "07")
    box(8.1, 2.2, 2.6, 1.0, "KVCache: keys and\nvalues are kept", "#f7e3b5", "09")
    box(8.1, 3.5, 2.6, 2.2, "all of the dashed box\nin tiles: never the\nwhole n × n matrix", "#f7e3b5", "08")
    box(8.1, 6.1, 2.6, 1.5, "trained on stories:\nloss against\nthe exact floor", "#f7e3b5", "07")
    for x in (1.85, 3.95):
        arrow(x, 2.95, x, 3.25)
    arrow(6.05, 2.95, 6.05, 5.55)
    for y, to in ((3.75, 4.0), (4.5, 4.75)):
        arrow(2.0, y, 2.0, to)
    arrow(3.0, 5.0, 3.4, 5.0)
    arrow(4.15, 5.25, 4.15, 5.55)
    arrow(4.6, 6.0, 4.6, 6.25)
    arrow(4.6, 6.7, 4.6, 7.4)
    arrow(4.0, 1.7, 4.0, 2.0)
    arrow(4.6, 7.9, 4.6, 8.65)
    arrow(4.0, 0.75, 4.0, 1.2)
    arrow(4.6, 9.1, 4.6, 9.85)
    axes.plot([3.0, 3.0, 7.0, 7.0], [2.38, 2.3, 2.3, 2.38], color="#b5541c", linewidth=1.5)  # a brace under keys and values
    axes.annotate("", (7.0, 2.3), (8.1, 2.3), arrowprops={"arrowstyle": "<|-|>", "color": "#b5541c"})
    # what tiles do at once: from the scores to weights @ values
    axes.add_patch(plt.Rectangle((0.8, 3.12), 6.35, 2.98, fill=False, edgecolor="#b5541c", linewidth=1.5, linestyle="--"))
    axes.annotate("", (7.15, 4.6), (8.1, 4.6), arrowprops={"arrowstyle": "<|-|>", "color": "#b5541c"})
    axes.text(4.0, 0.45, " ".join(words), ha="center", va="center", fontsize=11, style="italic")
    said = ",  ".join(f"{word} {chance:.2f}" for word, chance in chances.items())
    axes.text(4.6, 10.05, said, ha="center", va="center", fontsize=11, style="italic")
    axes.set(xlim=(-0.1, 11.1), ylim=(0.2, 10.35))
    axes.axis("off")
    return figure


with torch.no_grad():
    chances = scores_of(yours, torch.tensor([encode(words)]), [KVCache(48) for _ in yours.blocks], 0)[0, -1].softmax(dim=-1)
best = chances.topk(4)
show(
    chart(course_chart, words, {word: round(chance, 4) for word, chance in zip(decode(best.indices.tolist()), best.values.tolist())}),
    f"The whole course as nested boxes. At the bottom the words {' '.join(words[1:])}, which become vectors, then queries, keys and "
    "values, scores, masked, softmax, dropout, context vectors, merged heads, a feed-forward layer, and at the top the probabilities of the "
    f"next word: {', '.join(decode(best.indices.tolist()))}. Beside them the KV cache, tied to keys and values, tiles and training. Each box carries the number of its lesson.",
)

# %% [markdown]
# Your layer and your cache wrote the story, and the words at the top.
#
# ## Summary
#
# - In a causal model the keys and values of a word are final once it is there. So they are kept, and each word is read once.
# - The mask for new words is *their rows* of the whole mask. For one new word it hides nothing; PyTorch's `is_causal` hides nearly everything.
# - A cache takes 2 × layers × key-value heads × head size × tokens × bytes of a number.
# - Writing is **bound by memory**: each step reads the weights once, and every text's cache. Batches, shared heads and smaller numbers help.
# - Pieces of a cache **merge** exactly.
#
# **Next.** What separates this model from the large ones is mostly size, data and training. Where to go on:
#
# - **Speculative decoding**: a small model guesses some words, the large one checks them as one chunk, which your layer already takes.
# - **Tokens from text**: byte-pair encoding.
# - **A larger model**: your TinyGPT with six layers, trained on a book, against a baseline that you can compute, such as counting pairs.
# - **Real code**: Karpathy's nanoGPT is your lesson 07 with biases, more dropout, and one matrix for the token embedding and the head. The attention of Llama
#   in Hugging Face's `transformers` is lesson 06 with RoPE, this lesson's cache and shared heads; around it stand RMSNorm and SwiGLU.
# - **Rotary positions** (RoPE): queries and keys are rotated by an angle that grows with their position. Write it as two functions on `(b, h, n, d)`.
#   Where in your cached layer do they go: before `append`, or after?

# %%
# demonstration: this lesson on a card; write a line of your own between the quotes
from attention_course import remember

remember("")

# %% [markdown]
# ## Further reading
#
# - Pope et al., *Efficiently Scaling Transformer Inference*, 2022. Dao et al., *Flash-Decoding for long-context inference*, 2023.
# - Shazeer, *Fast Transformer Decoding*, 2019; Ainslie et al., *GQA*, 2023; Kwon et al., *PagedAttention*, 2023.
# - Sizes: Radford et al. 2019 (GPT-2); Touvron et al. 2023 (Llama 2); *The Llama 3 Herd of Models*, 2024, table 3, and Meta's model cards (Llama 3, 3.1).
# - The six tokens, their vectors and seed 123: Sebastian Raschka, *Build a Large Language Model (From Scratch)*, 2024, chapter 3.
#
# *Using Colab or another hosted service?* Get `attention_notebooks-….whl` where you got the lesson, put it beside the notebook, run
# `%pip install attention_notebooks-*.whl` in a new cell above the others, and restart the kernel.
