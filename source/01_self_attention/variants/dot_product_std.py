# %% [markdown]
# # dot_product_std
#
# 1. Draw first, then compute, then measure. Which shape do all the q together have, and which
#    shape has one number for each pair?
# 2. Row i of q belongs to row i of k. Multiply the two matrices entry by entry and add up along
#    each row: that gives `n_samples` dot products.
# 3. A tensor has a method for the standard deviation, and `.item()` turns a tensor of one number
#    into a Python float. Hand `generator` to both calls of `torch.randn`.

# %% [markdown]
# ## right: one_draw
#
# Both matrices come from a single call.

# %%
def dot_product_std(d_k, n_samples, generator):
    q, k = torch.randn(2, n_samples, d_k, generator=generator)
    return float((q * k).sum(-1).std())

# %% [markdown]
# ## right: einsum_in_float64
#
# Drawn and computed in float64.

# %%
def dot_product_std(d_k, n_samples, generator):
    options = {"generator": generator, "dtype": torch.float64}
    k, q = torch.randn(n_samples, d_k, **options), torch.randn(n_samples, d_k, **options)
    return torch.einsum("nd,nd->n", q, k).std().item()

# %% [markdown]
# ## right: population
#
# The standard deviation of the population: divided by n_samples, not by one less.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(d_k, n_samples, generator=generator)
    k = torch.randn(d_k, n_samples, generator=generator)
    return (q * k).sum(dim=0).std(correction=0).item()

# %% [markdown]
# ## right: pair_by_pair
#
# One pair after the other, in a loop.

# %%
def dot_product_std(d_k, n_samples, generator):
    products = []
    for _ in range(n_samples):
        q = torch.randn(d_k, generator=generator)
        k = torch.randn(d_k, generator=generator)
        products.append(q @ k)
    return torch.stack(products).std().item()

# %% [markdown]
# ## right: statistics_module
#
# Plain Python numbers and the standard library.

# %%
from statistics import stdev


def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(n_samples, d_k, generator=generator).tolist()
    k = torch.randn(n_samples, d_k, generator=generator).tolist()
    return stdev(sum(a * b for a, b in zip(row_q, row_k)) for row_q, row_k in zip(q, k))

# %% [markdown]
# ## right: by_the_formula_of_the_spread
#
# Root of the mean squared distance from the mean, written out.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.empty(n_samples, d_k).normal_(generator=generator)
    k = torch.empty(n_samples, d_k).normal_(generator=generator)
    products = (q.unsqueeze(1) @ k.unsqueeze(2)).flatten()
    mean = products.sum() / n_samples
    return math.sqrt(((products - mean) ** 2).sum() / (n_samples - 1))

# %% [markdown]
# ## right: feature_by_feature
#
# The sum grows by one feature of all pairs at a time.

# %%
def dot_product_std(d_k, n_samples, generator):
    total = torch.zeros(n_samples)
    for _ in range(d_k):
        q = torch.normal(0.0, 1.0, (n_samples,), generator=generator)
        k = torch.normal(0.0, 1.0, (n_samples,), generator=generator)
        total = total + q * k
    return total.var().sqrt().item()

# %% [markdown]
# ## right: numpy_measures
#
# Drawn by torch, measured by NumPy, made a Python float at the end.

# %%
import numpy as np


def dot_product_std(d_k, n_samples, generator):
    q = torch.randn((n_samples, d_k), generator=generator).numpy()
    k = torch.randn((n_samples, d_k), generator=generator).numpy()
    return float(np.std(np.sum(q * k, axis=1), ddof=1))

# %% [markdown]
# ## right: diagonal_of_all_products
#
# All products of all q with all k; the pairs are on the diagonal.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(n_samples, d_k, generator=generator)
    k = torch.randn(n_samples, d_k, generator=generator)
    return (q @ k.T).diagonal().std().item()

# %% [markdown]
# ## wrong: formula
#
# **Misconception.** A measurement gives the same number every time.
#
# **Hint.** New pairs give a new number. A formula does not measure, and with a fixed seed inside
# the function it is always the same pairs.

# %%
def dot_product_std(d_k, n_samples, generator):
    return math.sqrt(d_k)

# %% [markdown]
# ## wrong: fixed_seed
#
# **Misconception.** A function that draws needs a fixed seed of its own.
#
# **Hint.** Then it is one and the same measurement for ever. The generator that is handed in
# decides what is drawn.

# %%
def dot_product_std(d_k, n_samples, generator):
    generator = torch.Generator().manual_seed(123)
    q = torch.randn(n_samples, d_k, generator=generator)
    k = torch.randn(n_samples, d_k, generator=generator)
    return (q * k).sum(dim=1).std().item()

# %% [markdown]
# ## wrong: generator_seeded_inside
#
# **Misconception.** A measurement can be repeated only if the function sets the seed.
#
# **Hint.** The seed is up to whoever makes the generator, which may also be `None`. Seeded anew
# at every call, it draws the same pairs each time.

# %%
def dot_product_std(d_k, n_samples, generator):
    generator.manual_seed(0)
    q = torch.randn(n_samples, d_k, generator=generator)
    k = torch.randn(n_samples, d_k, generator=generator)
    return (q * k).sum(dim=1).std().item()

# %% [markdown]
# ## wrong: formula_with_noise
#
# **Misconception.** A formula that trembles a little is a measurement.
#
# **Hint.** With few samples a measurement scatters much, with many only a little. That comes by
# itself when the samples are drawn.

# %%
def dot_product_std(d_k, n_samples, generator):
    noise = torch.randn(1, generator=generator, dtype=torch.float64).item()
    return math.sqrt(d_k) * (1 + 0.001 * noise)

# %% [markdown]
# ## wrong: variance
#
# **Misconception.** Variance and standard deviation are the same.
#
# **Hint.** The standard deviation is the square root of the variance.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(n_samples, d_k, generator=generator)
    k = torch.randn(n_samples, d_k, generator=generator)
    return (q * k).sum(dim=1).var().item()

# %% [markdown]
# ## wrong: tensor_returned
#
# **Misconception.** Whatever holds one number is a Python float.
#
# **Hint.** A tensor of one number is still a tensor, and a float32 number of NumPy has a type of
# its own. `.item()` or `float(…)` takes the number out.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(n_samples, d_k, generator=generator)
    k = torch.randn(n_samples, d_k, generator=generator)
    return (q * k).sum(dim=1).std()

# %% [markdown]
# ## wrong: numpy_number_returned
#
# **Misconception.** A float32 number of NumPy is a Python float.
#
# **Hint.** It has a type of its own. `float(…)` makes a Python float of it.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(n_samples, d_k, generator=generator)
    k = torch.randn(n_samples, d_k, generator=generator)
    return (q * k).sum(dim=1).numpy().std()

# %% [markdown]
# ## wrong: products_returned
#
# **Misconception.** The dot products themselves are the answer.
#
# **Hint.** There are `n_samples` of them, and one number is asked for: how far they are spread.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(n_samples, d_k, generator=generator)
    k = torch.randn(n_samples, d_k, generator=generator)
    return (q * k).sum(dim=1)

# %% [markdown]
# ## wrong: mean_returned
#
# **Misconception.** The mean tells how far the dot products are spread.
#
# **Hint.** Positive and negative ones cancel, so the mean is near 0. What measures how far they
# lie from it?

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(n_samples, d_k, generator=generator)
    k = torch.randn(n_samples, d_k, generator=generator)
    return (q * k).sum(dim=1).mean().item()

# %% [markdown]
# ## wrong: not_summed
#
# **Misconception.** The spread is about 1, whatever d_k is.
#
# **Hint.** That is the spread of a single number, or of scores that have been scaled. Add up the
# products of each pair, scale nothing, and then measure.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(n_samples, d_k, generator=generator)
    k = torch.randn(n_samples, d_k, generator=generator)
    return (q * k).std().item()

# %% [markdown]
# ## wrong: scaled_already
#
# **Misconception.** The dot products are to be divided by the square root of d_k first.
#
# **Hint.** The question is how large they are without the scale. With it every answer is about 1.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(n_samples, d_k, generator=generator)
    k = torch.randn(n_samples, d_k, generator=generator)
    return ((q * k).sum(dim=1) / d_k**0.5).std().item()

# %% [markdown]
# ## wrong: summed_over_samples
#
# **Misconception.** It does not matter over which dimension the products are added up.
#
# **Hint.** After the sum there should be `n_samples` numbers, one for each pair.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(n_samples, d_k, generator=generator)
    k = torch.randn(n_samples, d_k, generator=generator)
    return (q * k).sum(dim=0).std().item()

# %% [markdown]
# ## wrong: mean_of_products
#
# **Misconception.** The sum of the products has to be divided by something, by their number or by
# the lengths.
#
# **Hint.** Multiply, add up, and do not divide. With a division the spread shrinks with d_k
# instead of growing.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(n_samples, d_k, generator=generator)
    k = torch.randn(n_samples, d_k, generator=generator)
    return (q * k).mean(dim=1).std().item()

# %% [markdown]
# ## wrong: spread_of_the_query
#
# **Misconception.** Dot products are spread as far as the numbers they are made of.
#
# **Hint.** Every entry of q has spread 1. Measure what comes out of q · k.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(n_samples, d_k, generator=generator)
    return q.std().item()

# %% [markdown]
# ## wrong: one_pair
#
# **Misconception.** One pair is enough for a measurement.
#
# **Hint.** One pair gives one dot product, and a single number has no spread. How many pairs does
# the function get told to draw?

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(d_k, generator=generator)
    k = torch.randn(d_k, generator=generator)
    return (q @ k).item()

# %% [markdown]
# ## wrong: query_with_itself
#
# **Misconception.** A query may serve as its own key.
#
# **Hint.** The product of a vector with itself is never negative. Draw the keys anew.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(n_samples, d_k, generator=generator)
    k = q
    return (q * k).sum(dim=1).std().item()

# %% [markdown]
# ## wrong: uniform_numbers
#
# **Misconception.** `torch.rand` and `torch.randn` draw the same kind of numbers.
#
# **Hint.** One letter apart: `rand` draws between 0 and 1, `randn` from the normal distribution.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.rand(n_samples, d_k, generator=generator)
    k = torch.rand(n_samples, d_k, generator=generator)
    return (q * k).sum(dim=1).std().item()

# %% [markdown]
# ## wrong: mean_size
#
# **Misconception.** The standard deviation is the mean distance from zero.
#
# **Hint.** The distances are squared before the mean is taken, and the root comes last.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(n_samples, d_k, generator=generator)
    k = torch.randn(n_samples, d_k, generator=generator)
    return (q * k).sum(dim=1).abs().mean().item()

# %% [markdown]
# ## wrong: cosine
#
# **Misconception.** Only the direction of a vector counts, not its length.
#
# **Hint.** Leave the vectors as they are drawn. Their length is what makes the spread grow.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(n_samples, d_k, generator=generator)
    k = torch.randn(n_samples, d_k, generator=generator)
    return torch.cosine_similarity(q, k, dim=1).std().item()

# %% [markdown]
# ## wrong: matrix_product
#
# **Misconception.** A matrix product pairs row i with row i.
#
# **Hint.** It takes rows of the left matrix with columns of the right one. Here the pairs are
# rows of the same number: multiply entry by entry, then add up.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(n_samples, d_k, generator=generator)
    k = torch.randn(n_samples, d_k, generator=generator)
    return (q @ k).std().item()

# %% [markdown]
# ## wrong: nothing_returned
#
# **Misconception.** A function hands back what it computes, even without `return`.
#
# **Hint.** Your function gives back `None`. How does a function hand something to its caller?

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(n_samples, d_k, generator=generator)
    k = torch.randn(n_samples, d_k, generator=generator)
    spread = (q * k).sum(dim=1).std().item()

# %% [markdown]
# ## wrong: generator_without_its_name
#
# **Misconception.** `torch.randn` knows the generator wherever it stands.
#
# **Hint.** What stands there without a name is taken for a size. Give the generator by its name.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(n_samples, d_k, generator)
    k = torch.randn(n_samples, d_k, generator)
    return (q * k).sum(dim=1).std().item()

# %% [markdown]
# ## wrong: new_generator_for_none
#
# **Misconception.** Without a generator, a seed of one's own is needed.
#
# **Hint.** A new generator starts from the same seed each time, and so does a seed set by hand.
# `torch.randn` takes `generator=None` and draws from torch's own.

# %%
def dot_product_std(d_k, n_samples, generator):
    if generator is None:
        generator = torch.Generator()
    q = torch.randn(n_samples, d_k, generator=generator)
    k = torch.randn(n_samples, d_k, generator=generator)
    return (q * k).sum(dim=1).std().item()

# %% [markdown]
# ## wrong: device_of_the_generator
#
# **Misconception.** There is always a generator.
#
# **Hint.** It may be `None`, and then it has no device.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(n_samples, d_k, generator=generator, device=generator.device)
    k = torch.randn(n_samples, d_k, generator=generator, device=generator.device)
    return (q * k).sum(dim=1).std().item()

# %% [markdown]
# ## wrong: one_pair_fewer
#
# **Misconception.** Two samples are too few to have a spread.
#
# **Hint.** Two dot products have a spread, if they come from two pairs that have nothing to do
# with each other. Count what is drawn when `n_samples` is 2.

# %%
def dot_product_std(d_k, n_samples, generator):
    q, k = torch.randn(2, n_samples - 1, d_k, generator=generator)
    return (q * k).sum(dim=1).std().item()

# %% [markdown]
# ## wrong: neighbours_as_keys
#
# **Misconception.** The queries may serve as keys too, in another order.
#
# **Hint.** Then the pairs are no longer independent: with two samples both dot products are the
# same number. Draw the keys anew.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(n_samples, d_k, generator=generator)
    k = q.roll(1, dims=0)
    return (q * k).sum(dim=1).std().item()

# %% [markdown]
# ## wrong: queries_backwards_as_keys
#
# **Misconception.** The queries may serve as keys too, back to front.
#
# **Hint.** Then every dot product comes twice. Draw the keys anew.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(n_samples, d_k, generator=generator)
    return (q * q.flip(0)).sum(dim=1).std().item()

# %% [markdown]
# ## wrong: half_and_half
#
# **Misconception.** Of the `n_samples` vectors, one half is for q and the other for k.
#
# **Hint.** A sample is a pair. There are as many q as samples, and as many k.

# %%
def dot_product_std(d_k, n_samples, generator):
    q, k = torch.randn(n_samples, d_k, generator=generator).chunk(2)
    return (q * k).sum(dim=1).std().item()

# %% [markdown]
# ## wrong: generator_not_used
#
# **Misconception.** A generator that is handed in works by itself.
#
# **Hint.** `torch.randn` uses it only when it is given: `generator=generator`.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(n_samples, d_k)
    k = torch.randn(n_samples, d_k)
    return (q * k).sum(dim=1).std().item()

# %% [markdown]
# ## wrong: generator_for_one_of_two
#
# **Misconception.** It is enough that the first draw uses the generator.
#
# **Hint.** The keys are drawn as well. Both draws need it, or the measurement cannot be repeated.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(n_samples, d_k, generator=generator)
    k = torch.randn(n_samples, d_k)
    return (q * k).sum(dim=1).std().item()

# %% [markdown]
# ## wrong: one_query_for_all_keys
#
# **Misconception.** One query with many keys measures the same as many pairs.
#
# **Hint.** A single query is long or short by chance, and the result with it. Draw a new query
# for every key.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(d_k, generator=generator)
    k = torch.randn(n_samples, d_k, generator=generator)
    return (k @ q).std().item()

# %% [markdown]
# ## wrong: first_feature_left_out
#
# **Misconception.** Features are counted from 1.
#
# **Hint.** Counting begins at 0. One of the d_k numbers is missing in each dot product.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(n_samples, d_k, generator=generator)
    k = torch.randn(n_samples, d_k, generator=generator)
    return sum(q[:, f] * k[:, f] for f in range(1, d_k)).std().item()

# %% [markdown]
# ## wrong: started_from_the_seed_again
#
# **Misconception.** A generator is nothing more than its seed.
#
# **Hint.** A generator also knows how far it has drawn. Made anew from its seed, it gives the
# same numbers at every call. Hand on the one that is given.

# %%
def dot_product_std(d_k, n_samples, generator):
    if generator is not None:
        generator = torch.Generator().manual_seed(generator.initial_seed())
    q = torch.randn(n_samples, d_k, generator=generator)
    k = torch.randn(n_samples, d_k, generator=generator)
    return (q * k).sum(dim=1).std().item()

# %% [markdown]
# ## wrong: all_pairs
#
# **Misconception.** The measurement may use more dot products than `n_samples`.
#
# **Hint.** It would scatter less than asked for. A sample is one q with one k, row by row, and
# there are `n_samples` of them.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(n_samples, d_k, generator=generator)
    k = torch.randn(n_samples, d_k, generator=generator)
    return (q @ k.T).std().item()

# %% [markdown]
# ## wrong: outliers_left_out
#
# **Misconception.** Products above 10 are outliers and spoil the measurement.
#
# **Hint.** With many numbers in a key such products are common. They belong to the spread.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(n_samples, d_k, generator=generator)
    k = torch.randn(n_samples, d_k, generator=generator)
    products = (q * k).sum(dim=1)
    return products[products.abs() < 10].std().item()

# %% [markdown]
# ## wrong: overwritten_draws
#
# **Misconception.** Draws that are overwritten a moment later leave no trace.
#
# **Hint.** They have moved PyTorch's own random state on. Start from `torch.empty`, or hand the
# generator to `torch.randn`.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(n_samples, d_k).normal_(generator=generator)
    k = torch.randn(n_samples, d_k).normal_(generator=generator)
    return (q * k).sum(dim=1).std().item()

# %% [markdown]
# ## wrong: spread_of_the_terms
#
# **Misconception.** The spread of a sum of `d_k` terms may be had from the spread of one term.
#
# **Hint.** That is what the figure below is to show. Measure the dot products themselves: add up each row
# of `q * k` first.

# %%
def dot_product_std(d_k, n_samples, generator):
    q = torch.randn(n_samples, d_k, generator=generator)
    k = torch.randn(n_samples, d_k, generator=generator)
    return ((q * k).std() * math.sqrt(d_k)).item()
