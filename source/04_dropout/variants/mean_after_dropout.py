# %% [markdown]
# # mean_after_dropout
#
# 1. A loop does it: drop x, add the result to a sum, as often as `n_samples` says, and divide at
#    the end. Always start from x itself.
# 2. Without a loop: make one tensor with `n_samples` copies of x along a new first dimension, and
#    drop it as a whole. Every entry of every copy then has a coin of its own.
# 3. `x.expand(n_samples, *x.shape)` gives such copies, and `.mean(dim=0)` takes the mean over them.
#    The third argument of `inverted_dropout` is True here.

# %% [markdown]
# ## right: loop
#
# One copy after the other.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    total = torch.zeros_like(x)
    for _ in range(n_samples):
        total = total + inverted_dropout(x, p, True, generator)
    return total / n_samples

# %% [markdown]
# ## right: stacked
#
# A list of copies, stacked.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    return torch.stack([inverted_dropout(x, p, True, generator) for _ in range(n_samples)]).mean(0)

# %% [markdown]
# ## right: counted
#
# How often each entry was kept, times x.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    keep = torch.rand((n_samples, *x.shape), generator=generator, device=x.device) >= p
    return x * keep.sum(dim=0).to(x.dtype) / (n_samples * (1 - p))

# %% [markdown]
# ## right: binomial
#
# The counts drawn at once.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    copies = torch.full(x.shape, float(n_samples), device=x.device)
    kept = torch.binomial(copies, torch.full_like(copies, 1.0 - p), generator=generator)
    return x * (kept / (n_samples * (1 - p))).to(x.dtype)

# %% [markdown]
# ## right: running_mean
#
# The mean kept up to date.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    mean = x * 0
    for i in range(1, n_samples + 1):
        mean = mean + (inverted_dropout(x, p, True, generator) - mean) / i
    return mean

# %% [markdown]
# ## right: einsum
#
# Masks and x, summed over the copies.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    masks = keep_mask((n_samples, *x.shape), p, generator).to(x)
    return torch.einsum("s...,...->...", masks, x) / (1 - p) / n_samples

# %% [markdown]
# ## right: repeated
#
# Real copies along a new dimension at the end.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    copies = x.unsqueeze(-1).repeat(*[1] * x.dim(), n_samples)
    return attention_dropout(copies, p, True, generator).sum(-1).div(n_samples)

# %% [markdown]
# ## right: module_where_it_can
#
# The module in training mode, unless there is a generator.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    layer = Dropout(p)
    if generator is None:
        return sum(layer(x) for _ in range(n_samples)) / n_samples
    coins = torch.empty(n_samples, *x.shape, dtype=x.dtype, device=x.device)
    coins.bernoulli_(1 - p, generator=generator)
    return coins.mean(dim=0) * x / (1 - p)

# %% [markdown]
# ## wrong: formula
#
# **Misconception.** The mean is x, so x can be returned.
#
# **Hint.** That is what it comes near to. Measured means scatter. Drop, and take the mean.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    return x.clone()

# %% [markdown]
# ## wrong: same_mask_for_all_copies
#
# **Misconception.** One mask serves all copies.
#
# **Hint.** Then the mean of the copies is one copy. Each has coins of its own.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    dropped = inverted_dropout(x, p, True, generator)
    return dropped.expand(n_samples, *x.shape).mean(dim=0)

# %% [markdown]
# ## wrong: one_coin_for_each_copy
#
# **Misconception.** A copy is dropped as a whole.
#
# **Hint.** Within a copy every entry has a coin of its own.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    kept = keep_mask((n_samples, *[1] * x.dim()), p, generator).to(x)
    return (x * kept / (1 - p)).mean(dim=0)

# %% [markdown]
# ## wrong: one_coin_for_each_row
#
# **Misconception.** A row is dropped as a whole.
#
# **Hint.** Every entry of every copy has a coin of its own. Is your mask as large as all copies
# together?

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    kept = keep_mask((n_samples, *x.shape[:-1], 1), p, generator).to(x)
    return (x * kept / (1 - p)).mean(dim=0)

# %% [markdown]
# ## wrong: sum
#
# **Misconception.** The copies are added up.
#
# **Hint.** The mean is asked for. Divide by their number.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    return inverted_dropout(x.expand(n_samples, *x.shape), p, True, generator).sum(dim=0)

# %% [markdown]
# ## wrong: not_scaled
#
# **Misconception.** Dropped copies are x times the mask.
#
# **Hint.** They are divided by 1 - p as well. Without that the mean comes near (1 - p) x.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    masks = keep_mask((n_samples, *x.shape), p, generator).to(x)
    return (x * masks).mean(dim=0)

# %% [markdown]
# ## wrong: mean_over_what_was_kept
#
# **Misconception.** Only kept copies count.
#
# **Hint.** A dropped copy counts as 0. The mean of the kept ones alone is always the same.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    copies = inverted_dropout(x.expand(n_samples, *x.shape), p, True, generator)
    kept = (copies != 0).sum(dim=0).clamp(min=1)
    return copies.sum(dim=0) / kept

# %% [markdown]
# ## wrong: not_training
#
# **Misconception.** A measurement is no training.
#
# **Hint.** In use nothing is dropped, so there is nothing to take the mean of. The third argument
# is True here.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    return inverted_dropout(x.expand(n_samples, *x.shape), p, False, generator).mean(dim=0)

# %% [markdown]
# ## wrong: always_a_hundred
#
# **Misconception.** A hundred copies are enough.
#
# **Hint.** How many they are is up to the caller: `n_samples`.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    return inverted_dropout(x.expand(100, *x.shape), p, True, generator).mean(dim=0)

# %% [markdown]
# ## wrong: one_copy_too_few
#
# **Misconception.** `range(1, n)` has n numbers.
#
# **Hint.** It has n - 1. Count the copies that are really drawn.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    total = inverted_dropout(x, p, True, generator)
    for _ in range(2, n_samples):
        total = total + inverted_dropout(x, p, True, generator)
    return total / max(n_samples - 1, 1)

# %% [markdown]
# ## wrong: starts_with_x
#
# **Misconception.** The sum starts with x.
#
# **Hint.** x itself is no dropped copy. The sum starts from zeros.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    total = x.clone()
    for _ in range(n_samples - 1):
        total = total + inverted_dropout(x, p, True, generator)
    return total / n_samples

# %% [markdown]
# ## wrong: dropped_again_and_again
#
# **Misconception.** Each copy is dropped from the last one.
#
# **Hint.** Then zeros stay zeros for ever. Start every time from x.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    total, copy = torch.zeros_like(x), x
    for _ in range(n_samples):
        copy = inverted_dropout(copy, p, True, generator)
        total = total + copy
    return total / n_samples

# %% [markdown]
# ## wrong: mean_over_everything
#
# **Misconception.** `.mean()` takes the mean over the copies.
#
# **Hint.** Without a dimension it takes it over everything, and one number is left. Which dimension
# are the copies in?

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    return inverted_dropout(x.expand(n_samples, *x.shape), p, True, generator).mean()

# %% [markdown]
# ## wrong: wrong_dimension
#
# **Misconception.** The copies are in the last dimension.
#
# **Hint.** `expand` has put them in the first. Take the mean over dimension 0.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    return inverted_dropout(x.expand(n_samples, *x.shape), p, True, generator).mean(dim=-1)

# %% [markdown]
# ## wrong: pairs_of_opposites
#
# **Misconception.** What one copy drops the next one keeps.
#
# **Hint.** That would be tidy, but the copies are independent. Each has coins of its own.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    drawn = torch.rand(((n_samples + 1) // 2, *x.shape), generator=generator, device=x.device)
    drawn = torch.cat([drawn, 1 - drawn])[:n_samples]
    return (x * (drawn >= p).to(x) / (1 - p)).mean(dim=0)

# %% [markdown]
# ## wrong: exact_share_of_the_copies
#
# **Misconception.** Each entry is dropped from exactly p of the copies.
#
# **Hint.** On average. In how many it is dropped is left to chance.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    shape = (n_samples, *x.shape)
    ranks = torch.rand(shape, generator=generator, device=x.device).argsort(dim=0).argsort(dim=0)
    return (x * (ranks >= round(p * n_samples)).to(x) / (1 - p)).mean(dim=0)

# %% [markdown]
# ## wrong: noise_of_the_right_size
#
# **Misconception.** Normal noise of the right size does the same.
#
# **Hint.** A mean of n copies is x / (1 - p) times one of the n + 1 numbers 0, 1/n, 2/n, … 1. Drop,
# and take the mean.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    if p == 0:
        return x.clone()
    noise = torch.randn(x.shape, generator=generator, device=x.device).to(x)
    return x + x * noise * math.sqrt(p / ((1 - p) * n_samples))

# %% [markdown]
# ## wrong: drops_a_little_at_zero
#
# **Misconception.** Even p = 0 drops something.
#
# **Hint.** With p = 0 every copy is x, and so is their mean.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    return inverted_dropout(x.expand(n_samples, *x.shape), max(p, 0.05), True, generator).mean(dim=0)

# %% [markdown]
# ## wrong: median
#
# **Misconception.** The middle of the copies is their mean.
#
# **Hint.** The middle one of zeros and large numbers is one of the two. The mean lies between.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    return inverted_dropout(x.expand(n_samples, *x.shape), p, True, generator).median(dim=0).values

# %% [markdown]
# ## wrong: generator_forgotten
#
# **Misconception.** The function inside finds the generator by itself.
#
# **Hint.** Hand it on as the fourth argument.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    return inverted_dropout(x.expand(n_samples, *x.shape), p, True).mean(dim=0)

# %% [markdown]
# ## wrong: one_seed_for_each_copy
#
# **Misconception.** Copy number i has the seed i.
#
# **Hint.** Then every call gives the same mean. All coins come from the generator that is handed
# in.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    total = torch.zeros_like(x)
    for i in range(n_samples):
        coins = torch.Generator().manual_seed(i)
        total = total + x * keep_mask(x.shape, p, coins).to(x) / (1 - p)
    return total / n_samples

# %% [markdown]
# ## wrong: a_generator_when_there_is_none
#
# **Misconception.** Without a generator one makes a new one.
#
# **Hint.** A new generator starts from the same state every time. Hand None on as it is.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    generator = generator or torch.Generator().manual_seed(0)
    return inverted_dropout(x.expand(n_samples, *x.shape), p, True, generator).mean(dim=0)

# %% [markdown]
# ## wrong: draws_from_both
#
# **Misconception.** It does no harm to draw from PyTorch's own as well.
#
# **Hint.** With a generator given, nothing else may be touched.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    torch.rand_like(x)
    return inverted_dropout(x.expand(n_samples, *x.shape), p, True, generator).mean(dim=0)

# %% [markdown]
# ## wrong: cut_off
#
# **Misconception.** A mean of random copies has no gradient.
#
# **Hint.** It is x times a number, so the gradient passes. Do not detach.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    with torch.no_grad():
        return inverted_dropout(x.expand(n_samples, *x.shape), p, True, generator).mean(dim=0)

# %% [markdown]
# ## wrong: result_in_float32
#
# **Misconception.** Everything is float32.
#
# **Hint.** The result has the type of x, float64 included.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    return inverted_dropout(x.float().expand(n_samples, *x.shape), p, True, generator).mean(dim=0)

# %% [markdown]
# ## wrong: changed_in_place
#
# **Misconception.** The sum can be kept in x.
#
# **Hint.** The caller may need x. Start from `torch.zeros_like(x)`.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    total = inverted_dropout(x, p, True, generator)
    for _ in range(n_samples - 1):
        total = total + inverted_dropout(x, p, True, generator)
    mean = total / n_samples
    return mean if x.requires_grad else x.copy_(mean)

# %% [markdown]
# ## wrong: thousand_coins
#
# **Misconception.** A thousand coins are enough: a larger mask can use them again.
#
# **Hint.** Entries that share a coin are dropped together. Every entry needs a coin of its own.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    size = n_samples * x.numel()
    coins = torch.rand(1000, generator=generator, device=x.device) >= p
    kept = coins.repeat(size // 1000 + 1)[:size].view(n_samples, *x.shape)
    return (x * kept.to(x) / (1 - p)).mean(dim=0)

# %% [markdown]
# ## wrong: one_mask_for_all_matrices
#
# **Misconception.** A mask is a matrix, and serves every matrix in x.
#
# **Hint.** Every entry of x has a coin of its own, in all its dimensions.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    kept = keep_mask((n_samples, *(1 for _ in x.shape[:-2]), *x.shape[-2:]), p, generator)
    return (x * kept.to(x) / (1 - p)).mean(dim=0)

# %% [markdown]
# ## wrong: at_most_a_hundred
#
# **Misconception.** More than a hundred copies change nothing.
#
# **Hint.** The mean of 300 copies scatters less than that of 100. Take as many as asked for.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    n_samples = min(n_samples, 100)
    return inverted_dropout(x.expand(n_samples, *x.shape), p, True, generator).mean(dim=0)

# %% [markdown]
# ## wrong: seeds_counted_up
#
# **Misconception.** A generator of one's own, with a new seed at each call, is as good as the one
# handed in.
#
# **Hint.** With the one handed in, a draw can be repeated: the same state gives the same zeros.
# Draw from it.

# %%
import itertools

seeds = itertools.count(1)


def mean_after_dropout(x, p, n_samples, generator=None):
    if generator is not None:
        generator = torch.Generator(x.device).manual_seed(next(seeds))
    return inverted_dropout(x.expand(n_samples, *x.shape), p, True, generator).mean(dim=0)

# %% [markdown]
# ## wrong: seeds_counted_up_without_one
#
# **Misconception.** Without a generator one makes a new one, with a new seed at each call.
#
# **Hint.** None means PyTorch's own, so that `torch.manual_seed` can repeat a draw. Hand None on
# as it is.

# %%
import itertools

seeds = itertools.count(1)


def mean_after_dropout(x, p, n_samples, generator=None):
    if generator is None:
        generator = torch.Generator(x.device).manual_seed(next(seeds))
    return inverted_dropout(x.expand(n_samples, *x.shape), p, True, generator).mean(dim=0)

# %% [markdown]
# ## wrong: float32_inside
#
# **Misconception.** float32 is precise enough on the way, as long as the result has the right
# type.
#
# **Hint.** What is rounded off on the way is lost. Compute in the type that comes in.

# %%
def mean_after_dropout(x, p, n_samples, generator=None):
    return inverted_dropout(x.float().expand(n_samples, *x.shape), p, True, generator).mean(dim=0).to(x.dtype)
