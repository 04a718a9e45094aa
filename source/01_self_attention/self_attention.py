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
# In a cave, a *bat* is an animal. In a gym it is a piece of wood. The word is the same; another word of the sentence says which bat is meant.
#
# This course comes with a small language model. It knows 62 words (punctuation counts) and tells short stories. Let it read *Tom is in the … . he sees
# a bat*, with four different places. What does it expect next? Run the next two cells with Shift+Enter.

# %% grade_id="setup" seconds=3 jupyter={"source_hidden": true}
# the set-up: imports, and what this lesson starts from
import math
import os

import matplotlib.pyplot as plt
import torch
from torch import nn

from attention_course import (
    attention_of, attention_picture, begin, beside, case, chart, course_model, encode, explore_story, heatmap,
    hint, new_model, next_words, panels, progress, rubric, show, table, why, without_head,
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

# %%
model = course_model()
places = ["cave", "barn", "gym", "shop"]
sentences = [f"Tom is in the {place} . he sees a bat" for place in places]
beginnings = [begin(sentence) for sentence in sentences]  # 11 words each, <end> is the first
some_words = ["eat", "sleep", "fall", "break", "."]

print("how likely each word is to come next")
following = [next_words(model, words) for words in beginnings]
table(torch.tensor([[chance[word] for word in some_words] for chance in following]), rows=places, columns=some_words)

# %% [markdown]
# In the cave and the barn the bat eats or sleeps. In the gym and the shop it falls or breaks. **The last word is *bat* in all four**, so the model has
# used a word further back. Which one?
#
# Inside the model are eight **attention heads**, four in each of its two layers. For every word, a head spreads a weight of 1 over the words read so
# far. (The first is always `<end>`, which separates stories.) Here is head 2.1, the second layer's first head, at *bat*: it looks at *shop*. Does that
# make the bat wooden? Switch the head off *at every word*, and see which words come next. Then try the other seven. Press other words and stories, too.

# %%
# demonstration: what each word looks at
explore_story(model, *reversed(sentences), head="2.1")

# %% [markdown]
# Three heads look from *bat* at the shop. Do they also decide what it is, or was it luck? The language has 24 such sentences: six names, four places. The
# next cell takes them all, and switches off each of the eight heads in turn.
#
# **Predict, then run.** Without which heads does the bat of some place turn from an animal into wood, or back?

# %%
my_guess = None  # one head or more, such as "2.1"

# %% jupyter={"source_hidden": true}
# demonstration: all 24 sentences
names = {"Tom": "he", "Ben": "he", "Max": "he", "Anna": "she", "Mia": "she", "Lucy": "she"}
every = [[begin(f"{name} is in the {place} . {who} sees a bat") for name, who in names.items()] for place in places]


def animal(model, words):
    """The share of *eat* and *sleep* in the chance of the four verbs."""
    chance = next_words(model, words)
    return (chance["eat"] + chance["sleep"]) / sum(chance[verb] for verb in ("eat", "sleep", "fall", "break"))


def means(measure):
    """The mean of a measurement over the six names, for each place."""
    return [sum(map(measure, six)) / 6 for six in every]


as_it_is = means(lambda words: animal(model, words))
without = {}  # for each head, the shares without it
for name in (f"{layer}.{head}" for layer in (1, 2) for head in (1, 2, 3, 4)):
    changed = without_head(model, name)
    without[name] = means(lambda words: animal(changed, words))
deciding = [name for name in without if any((mean > 0.5) != (whole > 0.5) for mean, whole in zip(without[name], as_it_is))]
beside(my_guess, ", ".join(deciding))

# %% jupyter={"source_hidden": true}
# demonstration: what that head does
def in_each_place(name, shares):
    print(f"{name:>21}" + "".join(f"{share:8.2f}" for share in shares))


def looks_at_its_place(one, thing="bat"):
    """The weight that this word gives to the place in head 1.1."""
    return means(lambda words: attention_of(one, [*words[:-1], thing])[0, 0, -1, 5].item())


both = without_head(without_head(model, "2.1"), "2.2")
moves = [abs(mean - whole) for name in without if name not in deciding for mean, whole in zip(without[name], as_it_is)]
torch.manual_seed(123)
print("how much of an animal the bat is: the share of eat and sleep among the four verbs")
print(" " * 21 + "".join(f"{place:>8}" for place in places))
in_each_place("all heads", as_it_is)
for name in deciding:
    in_each_place(f"without {name}", without[name])
in_each_place("without 2.1 and 2.2", means(lambda words: animal(both, words)))
print(f"(without any other head no share moves by more than {max(moves):.2f})")
print("\nhow much of its weight the last word gives to the place, in head 1.1 (an equal share: 0.09)")
in_each_place("bat", looks_at_its_place(model))
in_each_place("lamp", looks_at_its_place(model, "lamp"))
in_each_place("bat, not trained", looks_at_its_place(new_model()))

# %% [markdown]
# Head 1.1 alone. A bat is an animal unless something says otherwise: without 1.1 nearly every bat is one, in the gym too. The head turns the bat into
# wood. 2.1 and 2.2 look at the gym as well; without both, the four numbers hardly move. **Where a head looks does not say whether that matters.**
#
# It is the *bat* that asks: a *lamp* hardly looks at its place. And head 1.1 gives the barn 0.98, though without it the bat in the barn is an animal all the
# same: a head may look where it need not.
#
# **How does a head find the one word that matters, and what does it do with it?** In this lesson
#
# - you compute scores, weights and context vectors, starting from dot products;
# - you find out why a head needs three matrices, and measure why scores are scaled;
# - you write the layer in PyTorch, run your code in the trained model, and turn one bat into another.
#
# *About 95 minutes. It builds on matrix products, standard deviation, and PyTorch's tensors, modules and gradients.*
#
# **How it works.** Run the cells in order. Some only draw or measure; their code is folded (click •••).
#
# - In an exercise, replace `raise NotImplementedError()`, run the cell, then the **rubric** cell below it: it calls your code on random inputs and answers
#   line by line. Most rubrics also check that float64 in gives float64 out, that gradients pass, and that arguments are left alone.
# - Stuck? Press *Why?*, *Hint* or *Case* below its answer, or run `why()`, `hint()` or `case()` in a cell of your own. (A case is a small
#   input on which your code fails.) `progress()` shows how far you are.
# - At the end choose *Restart Kernel and Run All*, save, and press *Validate*.
#
# ## 1 Which words match?
#
# A model turns each **token**, here each word, into a vector. The bat's has 48 numbers; that is too many to check by hand. So begin with six tokens of
# three numbers each; the bat is back at the end of this part. (The sentence, its vectors, the seeds 123 and 789 and the first tables come from
# Sebastian Raschka's *Build a Large Language Model (From Scratch)*, chapter 3.)

# %%
table(inputs, rows=tokens, columns=["0", "1", "2"])

# %% [markdown]
# How well do two tokens match? The simplest measure is the **dot product**: multiply number by number and add up. For *journey* and *starts* that is
# 0.55 · 0.57 + 0.87 · 0.85 + 0.66 · 0.64 = 1.4754. It is large when two vectors point the same way, and the longer they are, the larger it is.
#
# In attention, the token that looks is the **query**, a token that it may look at is a **key**, and their dot product is the **score**.
#
# ### Exercise: `attention_scores` (2 points)
#
# Return the score of every query with every key: the bare dot product.
#
# ```
# queries (n, d_k)   keys (m, d_k)   ->   scores (n, m)
# scores[i, j] = query i · key j
# ```

# %% grade_id="attention_scores"
def attention_scores(queries, keys):
    """Dot product of every query with every key: (n, d_k), (m, d_k) -> (n, m)."""
    ### BEGIN SOLUTION
    return queries @ keys.T
    ### END SOLUTION

# %% grade_id="test_attention_scores"
@rubric("attention_scores")  # the contract as a checklist; open this cell to read it
def _(r):
    r.each("entry [i, j] is query i · key j", attention_scores, (r.normal(2, 3), r.normal(4, 3)), (r.normal(7, 5), r.normal(7, 5)))
    r.each("one query, one key, keys of one number", attention_scores, (r.normal(1, 4), r.normal(1, 4)), (r.normal(3, 1), r.normal(2, 1)))
    r.call("as many keys as numbers in a key, large scores", attention_scores, 9 * r.normal(3, 4), 9 * r.normal(4, 4))
    r.conventions(attention_scores, r.normal(3, 2), r.normal(4, 2))

# %% tags=["raises-exception"]
scores = attention_scores(inputs, inputs)  # (6, 6)
table(scores, rows=tokens, columns=tokens)

# %% [markdown]
# Four of the six tokens match *journey* better than themselves: it is the longest vector. Now take the trained model's own vectors.
#
# **Predict, then run.** In the gym sentence, which word's vector has the largest dot product with that of *bat*?

# %%
my_guess = None  # a word, such as "Tom"

# %% tags=["raises-exception"]
@torch.no_grad()
def vectors(words):
    """The vectors that the heads of the model's first layer get: (n, 48)."""
    embedded = model.embed(torch.tensor([encode(words)]))  # one vector a word, and its position's
    return model.layers()[0].norm1(embedded)[0]  # norm1 brings all to about the same length


in_gym = beginnings[2]
raw = attention_scores(vectors(in_gym), vectors(in_gym))  # (11, 11)
beside(my_guess, in_gym[int(raw[-1].argmax())])

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
def bars(words, numbers, title):
    """One number for each word; the largest is orange."""
    figure, axes = plt.subplots(figsize=(8, 2.1), layout="constrained")
    shown = axes.bar(range(len(words)), numbers, color=["#b5541c" if number == max(numbers) else "#1f6f8b" for number in numbers])
    axes.bar_label(shown, [f"{number:.1f}" for number in numbers], padding=2)
    axes.axhline(0, color="0.4", lw=0.8)
    axes.margins(y=0.2)
    axes.set_xticks(range(len(words)), words)
    axes.set(title=title, yticks=[])
    axes.spines[["left", "bottom"]].set_visible(False)
    return figure


def show_row(row, title):
    """The last word's row of scores as bars."""
    show(chart(bars, in_gym, row.tolist(), title), f"{title}: " + ", ".join(f"{word} {number:.1f}" for word, number in zip(in_gym, row.tolist())) + ".")


show_row(raw[-1], "The vector of “bat” times the vector of each word")
print("words that match themselves best:", int((raw.argmax(dim=-1) == torch.arange(len(in_gym))).sum()), "of", len(in_gym))

# %% [markdown]
# Every word finds itself. But *bat* has to find *gym*! What a word **looks for** is not what it **is**. So a head gives each word two more vectors, with
# matrices that can be learned:
#
# ```
# query = x W_query      what I am looking for
# key   = x W_key        what I can be found by
# ```
#
# Scores are then dot products of queries with keys. Head 1.1 has learned two such matrices, from 48 numbers to 12. Try them. (The model keeps the matrices
# of four heads in one `nn.Linear`, whose weight is stored transposed, one row for each number that comes out. Its first 12 rows are head 1.1's.)

# %% tags=["raises-exception"]
attention = model.layers()[0].attention
W_query, W_key, W_value = (linear.weight[:12].detach().T for linear in (attention.W_query, attention.W_key, attention.W_value))  # (48, 12) each

x = vectors(in_gym)  # (11, 48)
bats = attention_scores(x @ W_query, x @ W_key)[-1]  # (11,), the last word's row

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
show_row(bats, "The query of “bat” times the key of each word")

# %% [markdown]
# **Now *bat* finds *gym*.** What share of the weight does a score of 14.4 bring?
#
# ## 2 From scores to weights
#
# A score can be any number. The **softmax** turns scores into shares: `exp` makes each number positive, and
# dividing by the sum makes them add up to 1.
#
# ```
# weight j  =  exp(score j)  /  (exp(score 0) + exp(score 1) + … )
# ```
#
# **Predict, then run.** What does this function give for the scores 1, 2 and 1000?

# %%
def naive_softmax(x):
    return x.exp() / x.exp().sum(dim=-1, keepdim=True)


my_guess = None  # a list of three numbers

# %%
beside(my_guess, naive_softmax(torch.tensor([1.0, 2.0, 1000.0])).tolist())
print("exp(88) =", torch.tensor(88.0).exp().item(), "   exp(89) =", torch.tensor(89.0).exp().item())

# %% [markdown]
# In float32 `exp(89)` is infinite already, and infinity divided by infinity is `nan`, *not a number*. It spreads to everything computed from it.
#
# The cure: subtract the same number c from all scores of a row, and the weights stay the same, because numerator and denominator are both divided by
# `exp(c)`. Which c makes every `exp` safe?
#
# ### Exercise: `stable_softmax` (3 points)
#
# Write the softmax over one dimension of a tensor with any number of dimensions.
#
# - No `inf` or `nan` for numbers up to ±10,000, even when one row is near 10,000 and the next near -10,000.
# - `dim` may be any dimension, also counted from the end.
# - Build it from `exp` and sums. PyTorch's `softmax`, `log_softmax` and what is built on them are forbidden here; `logsumexp` is allowed.

# %% grade_id="stable_softmax"
def stable_softmax(x, dim=-1):
    """Softmax of x over dimension dim; same shape as x."""
    ### BEGIN SOLUTION
    largest = x.amax(dim=dim, keepdim=True)
    powers = (x - largest).exp()
    return powers / powers.sum(dim=dim, keepdim=True)
    ### END SOLUTION

# %% grade_id="test_stable_softmax"
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
# Your softmax on the scores of *bat*: *gym* gets everything. In the model it gets 0.91, for the model divides all scores by a number first. **Which number?
# Change it until *gym* gets 0.91.**

# %% tags=["raises-exception"]
divisor = 1.0  # change this number
shares = stable_softmax(bats / divisor)  # (11,)
print("  ".join(f"{in_gym[i]} {shares[i]:.2f}" for i in shares.argsort(descending=True)[:4].tolist()))

# %% [markdown]
# The ranking stays. What changes is how sharply the softmax chooses.
#
# ## 3 Why scores are scaled
#
# Why your number, and not another? How far apart scores lie depends on `d_k`, how many numbers a key has. Take queries and keys whose numbers are drawn
# independently, with mean 0 and standard deviation 1.
#
# **Predict.** When `d_k` grows from 4 to 64, by what factor does the standard deviation of q · k grow? Measure it yourself.

# %%
my_guess = None  # a number

# %% [markdown]
# ### Exercise: `dot_product_std` (2 points)
#
# Draw `n_samples` pairs q and k with `torch.randn`, `d_k` numbers each, and return the standard deviation of their dot products, a Python float.
#
# ```
# q, k (n_samples, d_k)   ->   q · k, pair by pair (n_samples,)
# ```

# %% grade_id="dot_product_std"
def dot_product_std(d_k, n_samples):
    """Standard deviation of q·k over n_samples random pairs of d_k numbers each: a float."""
    ### BEGIN SOLUTION
    q = torch.randn(n_samples, d_k)
    k = torch.randn(n_samples, d_k)
    return (q * k).sum(dim=1).std().item()
    ### END SOLUTION

# %% grade_id="test_dot_product_std"
@rubric("dot_product_std")  # the contract as a checklist; open this cell to read it
def _(r):
    r.sample("is close to the true value, and never the same number twice", "near_root", dot_product_std, r.integer(40, 90), r.integer(1900, 2100), times=2)
    r.idea.sample("scatters from run to run as a measurement does", "scatters_about_root", dot_product_std, r.integer(7, 9), 50, times=200)
    r.sample("scatters as a measurement does when d_k is 1, too", "scatters_about_root", dot_product_std, 1, 100, times=250)
    r.sample("two samples are enough", "positive_floats", dot_product_std, 1, 2, times=3)

# %% tags=["raises-exception"]
torch.manual_seed(123)
sizes = [1, 4, 16, 64, 256]
spreads = [dot_product_std(d_k, 2000) for d_k in sizes]
beside(my_guess, round(spreads[3] / spreads[1], 1))
for d_k, spread in zip(sizes, spreads):
    print(f"d_k {d_k:3}: measured {spread:5.1f}, square root of d_k {math.sqrt(d_k):4.0f}")

# %% [markdown]
# The standard deviation is the square root of `d_k`, so it grows by a factor of 4. (Each of the `d_k` products has variance 1, and the variances of
# independent numbers add up.) Divide the scores by that root, and their standard deviation is 1 at every key size. **The keys of head 1.1 have twelve
# numbers, and the square root of 12 is 3.46: is that near your number?** What does the division do to the softmax? Six random keys, and the largest of
# the six weights, averaged over 500 queries:

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
def largest_weight(d_k, scale):
    q, k = torch.randn(500, 1, d_k), torch.randn(500, 6, d_k)
    return stable_softmax((q * k).sum(dim=-1) / scale, dim=-1).amax(dim=-1).mean().item()


def largest_weight_chart(sizes, unscaled, scaled):
    figure, axes = plt.subplots(figsize=(6, 3.2))
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


unscaled = [largest_weight(d_k, 1.0) for d_k in sizes]
scaled = [largest_weight(d_k, math.sqrt(d_k)) for d_k in sizes]
show(
    chart(largest_weight_chart, sizes, unscaled, scaled),
    f"Mean largest weight against the key size. Without the scale it climbs from {unscaled[0]:.2f} to {unscaled[-1]:.2f} at a "
    f"key size of {sizes[-1]}; with the scale it stays between {min(scaled):.2f} and {max(scaled):.2f}.",
)

# %% [markdown]
# Without the scale, long random vectors give nearly all of the weight to one token before anything is learned. And training can hardly change it: its
# gradient is almost 0. (The derivative of a weight w with respect to its own score is w (1 - w). How much that matters depends on how large queries and
# keys are at first.)
#
# ### Exercise: `attention_weights` (2 points)
#
# Divide the scores by the square root of `d_k`, then take the softmax over the keys. Use your own softmax or `torch.softmax`.
#
# ```
# scores (n, m), d_k   ->   weights (n, m), each row adds up to 1
# ```

# %% grade_id="attention_weights"
def attention_weights(scores, d_k):
    """Softmax over the keys of scores / sqrt(d_k): (n, m) -> (n, m)."""
    ### BEGIN SOLUTION
    return torch.softmax(scores / d_k**0.5, dim=-1)
    ### END SOLUTION

# %% grade_id="test_attention_weights"
@rubric("attention_weights")  # the contract as a checklist; open this cell to read it
def _(r):
    r.each("softmax over the keys of scores / sqrt(d_k)", attention_weights, (2 * r.normal(2, 3), 4), (2 * r.normal(5, 8).round(), 3))
    r.call("as many queries as keys", attention_weights, 3 * r.normal(6, 6), 10)
    r.each("one key, one query, a key of one number", attention_weights, (r.normal(3, 1), 4), (r.normal(1, 4), 4), (r.normal(4, 3), 1))
    r.each("large keys, scores in the thousands", attention_weights, (40 * r.normal(3, 4), 512), (1500 * r.normal(56).argsort().view(8, 7).float(), 5))
    r.conventions(attention_weights, 2 * r.normal(3, 4), 9)

# %% [markdown]
# ## 4 Query, key, value
#
# Your two functions, with head 1.1's queries and keys, in all four sentences:

# %% tags=["raises-exception"]
found = {}
for place, words in zip(places, beginnings):
    x = vectors(words)
    found[place] = attention_weights(attention_scores(x @ W_query, x @ W_key), d_k=12)[-1]
    print(f"{place}: {words[-1]} looks at {words[-1]} {found[place][-1]:.3f}, at the place {found[place][words.index(place)]:.3f}")
difference = max((row - attention_of(model, words)[0, 0, -1]).abs().max().item() for row, words in zip(found.values(), beginnings))
print("largest difference from the model's own weights below 0.000001:", difference < 1e-6)

# %% [markdown]
# *Bat* finds *barn*, *gym* and *shop*. **Those are the numbers of the explorer, computed by your code.** But why two matrices?
#
# **Predict, then run.** Take one of them for both. Which word does *bat* find in the gym?

# %%
my_guess = None  # a word, such as "Tom"

# %% tags=["raises-exception"]
only = W_query  # or W_key
x = vectors(in_gym)
alone = attention_weights(attention_scores(x @ only, x @ only), d_k=12)[-1]
beside(my_guess, in_gym[int(alone.argmax())])
print(f"gym: bat looks at bat {alone[-1]:.3f}, at the place {alone[in_gym.index(places[2])]:.3f}")

# %% [markdown]
# With one matrix *bat* asks for what it is, and finds itself again. And scores are symmetric: that of *bat* for *gym* is that of *gym* for *bat*.
# (These two were trained as a pair; one alone might do better.)
#
# A third matrix has nothing to do with finding. It decides what is handed on:
#
# ```
# value = x W_value      what I hand on to those who find me
# ```
#
# The weighted sum of the values is the query's **context vector**.
#
# ### Exercise: `context_vectors` (1 point)
#
# ```
# weights (n, m)   values (m, d_v)   ->   context (n, d_v)
# context[i] = sum over j of weights[i, j] · value j
# ```
#
# Use the weights as they come, even where a row does not add up to 1. (In lesson 04 that happens.)

# %% grade_id="context_vectors"
def context_vectors(weights, values):
    """Weighted sum of the values for each query: (n, m), (m, d_v) -> (n, d_v)."""
    ### BEGIN SOLUTION
    return weights @ values
    ### END SOLUTION

# %% grade_id="test_context_vectors"
@rubric("context_vectors")  # the contract as a checklist; open this cell to read it
def _(r):
    r.each("row i is the sum of the values, each times its weight", context_vectors, (r.normal(2, 3), r.normal(3, 4)), (r.normal(5, 5), r.normal(5, 5)))
    r.call("one query, values of one number", context_vectors, r.normal(1, 4), r.normal(4, 1))
    r.conventions(context_vectors, r.normal(2, 3), r.normal(3, 4))

# %% [markdown]
# Here is the whole step for *bat* in the gym, drawn from your functions. Each strip is a vector of 12 numbers: orange below 0, purple above.

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
queries, keys, values = (vectors(in_gym) @ W for W in (W_query, W_key, W_value))  # (11, 12) each
gym_scores = attention_scores(queries, keys)
gym_weights = attention_weights(gym_scores, d_k=12)
best = int(gym_weights[-1].argmax())
show(
    attention_picture(in_gym, queries[-1], keys, gym_scores[-1] / math.sqrt(12), gym_weights[-1], values),
    f"The query of {in_gym[-1]} goes along the keys of {len(in_gym)} words. The key of {in_gym[best]} has the highest scaled score, "
    f"{gym_scores[-1, best] / math.sqrt(12):.1f}, and the weight {gym_weights[-1, best]:.2f}. The weighted sum of the values, the context vector, is "
    f"added to the vector of {in_gym[-1]}.",
)

# %% [markdown]
# **A query asks, keys answer, values are added.** On its way the context vector goes through one more matrix, from 12 numbers back to 48. Then it is
# *added* to the vector of *bat*: the word stays, with a nudge from the gym.
#
# ## 5 A layer that can learn
#
# Nobody wrote the three matrices. Training found them, so make them parameters of a layer.
#
# ### Exercise: `SelfAttention_v1` (3 points)
#
# Make a layer of your three functions. In `__init__`, create `W_query`, `W_key` and `W_value`, each an `nn.Parameter(torch.rand(d_in, d_out))`.
#
# ```
# x (n, d_in)   ->   queries, keys, values (n, d_out)
#               ->   weights (n, n)   ->   context (n, d_out)
# ```
#
# - Which number is `d_k` now? Look at the shape of a key.

# %% grade_id="SelfAttention_v1"
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

# %% grade_id="test_SelfAttention_v1"
@rubric("SelfAttention_v1")  # the contract as a checklist; open this cell to read it
def _(r):
    layer = r.layer(SelfAttention_v1, d_in=3, d_out=2)
    layer.parameters("W_query W_key W_value", "d_in d_out")
    layer.outputs("gives the context vectors of any number of tokens", r.normal(2, 3), r.normal(1, 3), 2 * r.normal(6, 3), 2 * r.normal(6, 3))
    layer.idea.outputs("for any d_in and d_out", r.normal(6, 7) / 2, 2 * r.normal(6, 7), d_in=7, d_out=5)
    layer.outputs("as many tokens as numbers, in and out", 2 * r.normal(4, 4), d_in=4, d_out=4)
    layer.starts_uniform("its matrices start from torch.rand, each from its own", d_in=40, d_out=30)
    layer.conventions(r.normal(6, 3), d_out=4)

# %% [markdown]
# In practice such a matrix is an `nn.Linear(d_in, d_out)`. It starts from small positive and negative numbers, and adds a bias unless you say
# `bias=False`.
#
# ### Exercise: `SelfAttention_v2` (2 points)
#
# The same layer, with three `nn.Linear` layers of the same names, created in the same order (the numbers below depend on it, your points do not). They have a bias only when `qkv_bias=True`.
# Copy your first layer, and change how queries, keys and values are made.

# %% grade_id="SelfAttention_v2"
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

# %% grade_id="test_SelfAttention_v2"
@rubric("SelfAttention_v2")  # the contract as a checklist; open this cell to read it
def _(r):
    layer = r.layer(SelfAttention_v2, d_in=3, d_out=2, qkv_bias=False)
    layer.linear("W_query W_key W_value", "d_in -> d_out", bias="qkv_bias")
    layer.outputs("gives the context vectors of any number of tokens", r.normal(2, 3), r.normal(1, 3), 2 * r.normal(6, 3), 2 * r.normal(6, 3))
    layer.idea.outputs("for any d_in and d_out, with a bias if asked for", 2 * r.normal(6, 7), d_in=7, d_out=5, qkv_bias=True)
    layer.outputs("as many tokens as numbers, in and out", 2 * r.normal(4, 4), d_in=4, d_out=4)
    layer.made_of("W_query, W_key and W_value are nn.Linear")
    layer.conventions(r.normal(6, 3), d_out=4)

# %% [markdown]
# **Predict, then run.** Two such layers, from two seeds. Each word looks most at some word. Is it the same word in both layers?

# %%
my_guess = None  # "for every word", "for some" or "for none"

# %% tags=["raises-exception"]
random_layers, seeds = {}, (789, 123)  # or two others
for seed in seeds:
    torch.manual_seed(seed)
    random_layers[seed] = SelfAttention_v2(d_in=3, d_out=2).to(device)
attention_v2 = random_layers[seeds[0]]
scores_of = {seed: attention_scores(layer.W_query(inputs), layer.W_key(inputs)) for seed, layer in random_layers.items()}
favourites = {seed: [tokens[j] for j in attention_weights(found, d_k=2).argmax(dim=-1)] for seed, found in scores_of.items()}
same = sum(one == other for one, other in zip(*favourites.values()))
beside(my_guess, {0: "for none", 6: "for every word"}.get(same, "for some"))
for seed, words in favourites.items():
    weights = attention_weights(scores_of[seed], d_k=2)
    print(f"seed {seed}: {', '.join(words)}; weights from {weights.min():.2f} to {weights.max():.2f}")

# %% [markdown]
# The layers of seeds 789 and 123 have one favourite each for all six words, and the two differ. (Of 300 seeds, 96 give such a layer.) But the
# preference is weak: all weights lie near 1/6.
#
# Training chooses the matrices. Give each word a partner, below. The context vector of a word should come to equal its partner's input. The values are
# the inputs, and only `W_query` and `W_key` learn: the layer can only choose where to look.
#
# **Predict, then run.** Which words will give their partner less than half of their weight? Compare the six vectors at the top of part 1.

# %%
partner = {"Your": "one", "journey": "with", "starts": "Your", "with": "one", "one": "step", "step": "journey"}  # or others
my_guess = None  # some of the six words

# %% tags=["raises-exception"]
# demonstration: trains the layer
def learned(x):
    """The weights (6, 6) after 400 steps of training on six vectors (6, 3)."""
    torch.manual_seed(123)
    layer = SelfAttention_v2(d_in=3, d_out=3, qkv_bias=True).to(device)
    with torch.no_grad():
        layer.W_value.weight.copy_(torch.eye(3))
        layer.W_value.bias.zero_()
    target = x[[tokens.index(partner[token]) for token in tokens]]  # (6, 3)
    optimizer = torch.optim.Adam([*layer.W_query.parameters(), *layer.W_key.parameters()], lr=0.1)
    for _ in range(400):
        optimizer.zero_grad()
        (layer(x) - target).square().mean().backward()
        optimizer.step()
    with torch.no_grad():
        return attention_weights(attention_scores(layer.W_query(x), layer.W_key(x)), d_k=3)


def not_found(weights):
    return [token for i, token in enumerate(tokens) if weights[i, tokens.index(partner[token])] < 0.5]


trained = learned(inputs)
beside(my_guess, not_found(trained))

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: draws the figure
rows_said = "; ".join(f"{token} gives {partner[token]} {trained[i, tokens.index(partner[token])]:.2f}" for i, token in enumerate(tokens))
show(
    heatmap(trained, tokens, tokens, title="Weights after training", limits=(0, 1)),
    f"Heatmap of six by six weights. To their partners, {rows_said}.",
)

# %% [markdown]
# With our partners *step* was to find *journey*, and looks mostly at *starts*. *Journey* spreads its weight. *Journey* and *starts* have nearly the
# same vector: as keys they can hardly be told apart, and as queries they ask for nearly the same. Is that the reason? Give *journey* a vector of its
# own, and train again.

# %% tags=["raises-exception"]
# demonstration: the same training with another vector for journey
apart = inputs.clone()
apart[1] = torch.tensor([0.9, 0.9, 0.1])
again = learned(apart)
print("words that do not find their partner:", not_found(again) or "none")
print(f"the smallest weight on a partner: {min(again[i, tokens.index(partner[token])].item() for i, token in enumerate(tokens)):.1f}")

# %% [markdown]
# Now all six of ours find theirs. (From 8 of 12 starts; from the others *journey* does not. With the old vector both failed in all 12.) **A head sees
# vectors, not words.** This layer has memorised six of them.
#
# ## 6 Twelve numbers
#
# Back to the bat. All that head 1.1 hands on at *bat* is one context vector: twelve numbers. What if they came from another sentence?
#
# ### Exercise: `transplant` (3 points)
#
# `x` and `donor` are two sentences, one row a word. Each is read by itself, with the same three matrices. Return the context vectors of `x`, but take the
# **last row** from the context vectors of `donor`.
#
# ```
# x (n, d)   donor (m, d)   each matrix (d, d_k)   ->   (n, d_k)
# ```

# %% grade_id="transplant"
def transplant(x, donor, W_query, W_key, W_value):
    """The context vectors of x, the last one from donor: (n, d), (m, d), three (d, d_k) -> (n, d_k)."""
    ### BEGIN SOLUTION
    def context(x):
        scores = attention_scores(x @ W_query, x @ W_key)
        return context_vectors(attention_weights(scores, W_key.shape[-1]), x @ W_value)

    return torch.cat([context(x)[:-1], context(donor)[-1:]])
    ### END SOLUTION


# %% grade_id="test_transplant"
@rubric("transplant")  # the contract as a checklist; open this cell to read it
def _(r):
    small = [r.normal(3, 2) for _ in range(3)]
    large, square = [r.normal(6, 4) for _ in range(3)], [r.normal(4, 4) for _ in range(3)]
    r.idea.each("the last row is the donor's last, the others are those of x", transplant, (r.normal(2, 3), r.normal(4, 3), *small), (r.normal(7, 6), r.normal(3, 6), *large))
    r.each("sentences of one length", transplant, (r.normal(2, 3), r.normal(2, 3), *small), (r.normal(4, 4), r.normal(4, 4), *square))
    r.each("a donor of one word, a sentence of one word", transplant, (r.normal(3, 3), r.normal(1, 3), *small), (r.normal(1, 3), r.normal(3, 3), *small))
    r.conventions(transplant, r.normal(4, 6), r.normal(5, 6), *large)

# %% [markdown]
# The next cell gives every sentence the twelve numbers of every other, and asks the model again how much of an animal the bat is.
#
# **Predict, then run.** The bat in the cave gets 0.988. What does it get with the twelve numbers of the *gym*? And of the *barn*?

# %%
my_guess = None  # two numbers from 0 to 1

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: your function in the trained model
@torch.no_grad()
def animal_with(words, donor, start=0, measure=animal):
    """How much of an animal the bat is if a head of layer 1 hands on your numbers at the last word; head 1.1 starts at 0, 1.2 at 12, …"""
    head = slice(start, start + 12)
    matrices = (linear.weight[head].T for linear in (attention.W_query, attention.W_key, attention.W_value))
    yours = transplant(vectors(words), vectors(donor), *matrices)[-1]  # (12,)

    def replace(_, given):
        handed_on = given[0].clone()  # (1, 11, 48): 12 numbers from each head
        handed_on[0, -1, head] = yours
        return (handed_on,)

    hook = attention.out_proj.register_forward_pre_hook(replace)
    try:
        return measure(model, words)
    finally:
        hook.remove()


swapped = [[animal_with(words, donor) for donor in beginnings] for words in beginnings]
beside(my_guess, (round(swapped[0][2], 3), round(swapped[0][1], 3)))

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: the table, and the same with the other heads
print("rows: the sentence that is read; columns: where head 1.1's twelve numbers come from")
print(" " * 7 + "".join(f"{donor:>8}" for donor in places))
for place, row in zip(places, swapped):
    print(f"{place:>6}:" + "".join(f"{share:8.3f}" for share in row))
changes = [
    abs(animal_with(words, donor, 12 * number) - animal(model, words))
    for number in (1, 2, 3) for words in beginnings for donor in beginnings
]
print("the same with heads 1.2, 1.3 and 1.4: every share changes by less than 0.001:", max(changes) < 1e-3)

# %% [markdown]
# Read a column from top to bottom: **what counts is the donor**, not the sentence that is read. The gym's twelve numbers make wood of the cave's bat; the
# cave's make an animal of the gym's. The layer's other three heads make no difference: these twelve numbers carry the sense of *bat*. Switching a head
# off shows that it matters. Exchanging what it hands on shows what it says.
#
# Check it by hand. Choose *cave*, and let head 1.1 at *bat* take its result from *gym*. Then look at head 2.3 in the second layer, which reads what the
# first has written: where does *bat* look there, before and after?

# %%
# demonstration: exchange a head's output
explore_story(model, *sentences)

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# demonstration: the same with your numbers
in_cave = beginnings[0]
looks = {  # (2, 4, 11, 11): each layer, each head
    "cave": (in_cave, attention_of(model, in_cave)),
    "cave, the gym's twelve numbers": (in_cave, animal_with(in_cave, in_gym, measure=attention_of)),
    "gym": (in_gym, attention_of(model, in_gym)),
}
print("head 2.3, at bat")
for name, (words, weights) in looks.items():
    row = weights[1, 2, -1]
    print(f"{name:>30}: " + ", ".join(f"{words[at]} {row[at]:.2f}" for at in row.argsort(descending=True)[:4].tolist()))

# %% [markdown]
# With the gym's numbers *bat* looks mostly at itself, nearly as in the gym. **The second layer looks elsewhere because of twelve numbers in the first.**
#
# ## 7 What goes wrong in practice
#
# **The softmax runs over the wrong dimension.** Would the sums of the rows tell you?

# %% tags=["raises-exception"]
wrong = torch.softmax(scores_of[seeds[0]] / 2**0.5, dim=0)
print("sums of the rows:   ", [round(s, 2) for s in wrong.sum(dim=1).tolist()])
print("sums of the columns:", [round(s, 2) for s in wrong.sum(dim=0).tolist()])

# %% [markdown]
# Only if you look closely: on such inputs they are off by 3%.
#
# **The scale is missing.** On the six small vectors the output moves by 0.02 of its largest number.
#
# **Predict, then run.** How far does it move in the trained head?

# %%
my_guess = None  # a share, from 0 to 1

# %% tags=["raises-exception"]
@torch.no_grad()
def moved_by(x, matrices, scale):
    """The largest change of an output, as a share of the largest one, when scores are divided by this instead of sqrt(d_k)."""
    queries, keys, values = (x @ W for W in matrices)
    found = attention_scores(queries, keys)
    right = context_vectors(attention_weights(found, keys.shape[-1]), values)
    return ((torch.softmax(found / scale, dim=-1) @ values - right).abs().max() / right.abs().max()).item()


of_v2 = [linear.weight.T for linear in (attention_v2.W_query, attention_v2.W_key, attention_v2.W_value)]
trained_head = vectors(in_gym), (W_query, W_key, W_value)
beside(my_guess, round(moved_by(*trained_head, 1.0), 2))
for name, x, matrices, d_k in (("six tokens", inputs, of_v2, 2), ("trained head", *trained_head, 12)):
    print(f"{name:>12}: no scale {moved_by(x, matrices, 1.0):.4f}    d_k without the root {moved_by(x, matrices, d_k):.4f}")

# %% [markdown]
# So test attention on inputs that are spread out.
#
# **Word order is taken for granted.**
#
# **Predict, then run.** Shuffle the six words. Which of them get another context vector?

# %%
my_guess = None  # some of the six words

# %% tags=["raises-exception"]
order = [5, 3, 0, 4, 1, 2]
with torch.no_grad():
    moved = (attention_v2(inputs[order]) - attention_v2(inputs)[order]).abs().amax(dim=-1) > 1e-6  # (6,)
print(" ".join(tokens[i] for i in order))
beside(my_guess, [tokens[i] for i, moves in zip(order, moved.tolist()) if moves] or "none")

# %% [markdown]
# Without a mask (lesson 02), attention does not know the order. The trained model adds to each word's vector one for its position.
#
# ## Summary
#
# - **Scores** are dot products of queries with keys. In the trained model, dot products of the words' own vectors find only the word itself; `W_query` and
#   `W_key` let a word look for something else.
# - **Weights** are the softmax of the scores divided by the square root of the key size. Row i belongs to query i and adds up to 1.
# - **Context vectors** are sums of the values, each times its weight. `W_value` decides what is handed on; the model adds it to the word's vector.
# - A weight shows where a head looks. Whether that matters, only a change tells: switch the head off, or exchange what it hands on.
#
# **A loose end.** Your functions agree with the model in the row of *bat*, the last word. And in the other rows?

# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
hidden = torch.ones(len(in_gym), len(in_gym)).triu(diagonal=1) == 1
show(
    panels(
        heatmap(attention_of(model, in_gym)[0, 0], in_gym, in_gym, title="head 1.1 in the model", hidden=hidden, limits=(0, 1), bar=False),
        heatmap(gym_weights, in_gym, in_gym, title="your functions", limits=(0, 1)),
        size=(12, 5.6),
    ),
    "Two heatmaps of the whole sentence. In the model's, everything above the diagonal is hidden: no word looks at a later one. "
    f"In the one of your functions words look ahead, Tom at gym by {gym_weights[1, 5]:.2f}. Only the last rows agree.",
)

# %% [markdown]
# Yours look ahead: *Tom* already looks at *gym*, by 0.57. The model's words never see what comes after them. It learned to predict the next word. What
# would it learn if it could see that word? Lesson 02 trains such a model.

# %%
# demonstration: this lesson on a card; write a line of your own between the quotes
from attention_course import remember

remember("")

# %% [markdown]
# ## Further reading
#
# - Raschka, *Build a Large Language Model (From Scratch)*, 2024, chapter 3: the example of part 1, and a longer way from there.
# - Vaswani et al., *Attention Is All You Need*, 2017, section 3.2.1: scaled dot-product attention, and in a footnote the variance of q · k.
# - Bahdanau, Cho and Bengio, *Neural Machine Translation by Jointly Learning to Align and Translate*, 2015: attention before transformers.
# - Jain and Wallace, *Attention is not Explanation*, 2019, and Wiegreffe and Pinter, *Attention is not not Explanation*, 2019: how far to trust
#   pictures of weights.
#
# *Using Colab or another hosted service?* Get `attention_notebooks-….whl` where you got the lesson, put it beside the notebook, run
# `%pip install attention_notebooks-*.whl` in a new cell above the others, and restart the kernel.
