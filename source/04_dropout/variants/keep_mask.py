# %% [markdown]
# # keep_mask
#
# 1. Look at one entry. It gets a number from 0 to 1, every number as likely as any other. With
#    which probability is that number below 0.3?
# 2. Comparing a whole tensor of such numbers with p gives True and False, one for each entry. Which
#    of `<` and `>=` is True where an entry is kept?
# 3. `.float()` makes 1 and 0 of True and False. Before that, check p: `if not 0 <= p <= 1: raise
#    ValueError(...)`.

# %% [markdown]
# ## right: bernoulli_in_place
#
# PyTorch's own coins, filled in.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    mask = torch.empty(shape)
    mask.bernoulli_(1 - p, generator=generator)
    return mask

# %% [markdown]
# ## right: bernoulli
#
# A probability for each entry, then tossed.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    keep = torch.full(shape, 1.0 - p)
    return torch.bernoulli(keep, generator=generator)

# %% [markdown]
# ## right: below
#
# Kept below 1 - p, in float64.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    drawn = torch.rand(*shape, dtype=torch.float64, generator=generator)
    return torch.where(drawn < 1 - p, 1.0, 0.0).to(torch.float32)

# %% [markdown]
# ## right: ones_minus_dropped
#
# Ones, minus one where it is dropped.

# %%
def keep_mask(shape, p, generator=None):
    assert 0 <= p <= 1, p
    dropped = torch.rand(shape, generator=generator) < p
    return torch.ones(shape) - dropped.type(torch.float32)

# %% [markdown]
# ## right: multinomial
#
# Each entry is one draw from two possibilities.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if p in (0, 1):
        return torch.full(shape, float(1 - p))
    chances = torch.tensor([p, 1 - p])
    drawn = torch.multinomial(chances, math.prod(shape), replacement=True, generator=generator)
    return drawn.float().view(shape)

# %% [markdown]
# ## right: entry_by_entry
#
# A loop, one coin at a time.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    mask = torch.ones(math.prod(shape))
    for i in range(len(mask)):
        if torch.rand((), generator=generator) < p:
            mask[i] = 0
    return mask.reshape(shape)

# %% [markdown]
# ## right: whole_numbers
#
# Whole numbers instead of fractions.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    many = 2**40
    drawn = torch.randint(many, shape, generator=generator)
    return (drawn >= p * many).float()

# %% [markdown]
# ## right: a_seed_from_the_generator
#
# NumPy draws, with a seed that PyTorch has drawn.

# %%
import numpy as np


def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    seed = torch.randint(2**31, (2,), generator=generator).tolist()
    numbers = np.random.default_rng(seed).random(shape)
    return torch.from_numpy(numbers >= p).float()

# %% [markdown]
# ## right: normal_numbers
#
# Normal numbers, cut where a share of p lies below.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    drawn = torch.randn(shape, generator=generator, dtype=torch.float64)
    cut = torch.special.ndtri(torch.tensor(float(p), dtype=torch.float64))
    return (drawn > cut).float()

# %% [markdown]
# ## right: ceiling
#
# Rounded up: everything above 0 is 1.

# %%
def keep_mask(shape, p, generator=None):
    if p < 0 or p > 1:
        raise ValueError(f"p is {p}, it should be from 0 to 1")
    drawn = 1 - torch.rand(shape, generator=generator)  # above 0, up to 1
    return torch.ceil(drawn - p).clamp(min=0)

# %% [markdown]
# ## wrong: p_is_to_keep
#
# **Misconception.** p is the probability to keep.
#
# **Hint.** Here p is the probability to drop, as in PyTorch: with p = 0.1 a tenth of the entries is
# 0.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    return (torch.rand(shape, generator=generator) < p).float()

# %% [markdown]
# ## wrong: always_a_half
#
# **Misconception.** A coin shows heads half of the time.
#
# **Hint.** This coin shows 0 with probability p. Where does p come in?

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if p in (0, 1):
        return torch.full(shape, float(1 - p))
    return torch.randint(2, shape, generator=generator).float()

# %% [markdown]
# ## wrong: normal_instead_of_even
#
# **Misconception.** `torch.randn` draws from 0 to 1.
#
# **Hint.** `torch.randn` draws normal numbers, half of them below 0. `torch.rand` draws evenly from
# 0 to 1.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    return (torch.randn(shape, generator=generator) >= p).float()

# %% [markdown]
# ## wrong: exact_share
#
# **Misconception.** p = 0.5 drops exactly half.
#
# **Hint.** p is the probability of each entry. The number of zeros varies from call to call; in the
# example it was 15 of 36.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    n = math.prod(shape)
    mask = torch.ones(n)
    mask[torch.randperm(n, generator=generator)[: round(p * n)]] = 0
    return mask.view(shape)

# %% [markdown]
# ## wrong: exact_share_of_a_row
#
# **Misconception.** Every row loses the same number of entries.
#
# **Hint.** Toss a coin for each entry. Then one row loses more, another less.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    ranks = torch.rand(shape, generator=generator).argsort(dim=-1).argsort(dim=-1)
    return (ranks >= round(p * shape[-1])).float()

# %% [markdown]
# ## wrong: whole_rows
#
# **Misconception.** A token is dropped as a whole.
#
# **Hint.** Every entry has a coin of its own. How many numbers do you draw, and how many entries
# are there?

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    drawn = torch.rand((*shape[:-1], 1), generator=generator)
    return (drawn >= p).float().expand(shape)

# %% [markdown]
# ## wrong: one_matrix_for_the_batch
#
# **Misconception.** All matrices of a batch share one mask.
#
# **Hint.** Draw as many numbers as there are entries, for all of `shape`.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    drawn = torch.rand(shape[-2:], generator=generator)
    return (drawn >= p).float().expand(shape)

# %% [markdown]
# ## wrong: fixed_seed
#
# **Misconception.** A function that draws needs a seed of its own.
#
# **Hint.** Then it is the same mask at every call. What is drawn is up to the generator that is
# handed in.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    own = torch.Generator().manual_seed(123)
    return (torch.rand(shape, generator=own) >= p).float()

# %% [markdown]
# ## wrong: generator_forgotten
#
# **Misconception.** `torch.rand` finds the generator by itself.
#
# **Hint.** Hand it on: `torch.rand(shape, generator=generator)`.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    return (torch.rand(shape) >= p).float()

# %% [markdown]
# ## wrong: global_seed_from_the_generator
#
# **Misconception.** A generator is a seed.
#
# **Hint.** A generator has a state, which moves on with every draw. And nobody asked you to seed
# PyTorch itself. Hand the generator to `torch.rand`.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if generator is not None:
        torch.manual_seed(generator.initial_seed())
    return (torch.rand(shape) >= p).float()

# %% [markdown]
# ## wrong: a_generator_when_there_is_none
#
# **Misconception.** Without a generator one makes a new one.
#
# **Hint.** A new generator starts from the same state every time. `torch.rand` takes
# `generator=None` as it is.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if generator is None:
        generator = torch.Generator()
    return (torch.rand(shape, generator=generator) >= p).float()

# %% [markdown]
# ## wrong: generator_left_as_it_was
#
# **Misconception.** The generator is an argument and must not change.
#
# **Hint.** Drawing moves it on, and that is its purpose: the next call is to draw anew.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    used = generator.clone_state() if generator is not None else None
    return (torch.rand(shape, generator=used) >= p).float()

# %% [markdown]
# ## wrong: draws_from_both
#
# **Misconception.** It does no harm to draw from PyTorch's own as well.
#
# **Hint.** With a generator given, nothing else may be touched: somebody else's numbers depend on
# it.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    torch.rand(1)
    return (torch.rand(shape, generator=generator) >= p).float()

# %% [markdown]
# ## wrong: own_dice_without_one
#
# **Misconception.** Without a generator any random number will do.
#
# **Hint.** `None` means PyTorch's own, so that `torch.manual_seed` can repeat it. `torch.rand` does
# that by itself.

# %%
import numpy as np

dice = np.random.default_rng(1)


def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if generator is None:
        return torch.from_numpy(dice.random(shape) >= p).float()
    return (torch.rand(shape, generator=generator) >= p).float()

# %% [markdown]
# ## wrong: never_the_same_twice
#
# **Misconception.** Two calls must never give the same mask.
#
# **Hint.** From the same state of the generator they must: that is how an experiment is repeated.
# Nothing else may have a say.

# %%
calls = 0


def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    global calls
    if generator is not None:
        calls += 1
        seed = int(torch.randint(10**6, (), generator=generator)) + calls
        generator = torch.Generator().manual_seed(seed)
    return (torch.rand(shape, generator=generator) >= p).float()

# %% [markdown]
# ## wrong: something_must_be_left
#
# **Misconception.** A mask must keep something.
#
# **Hint.** Not if the coins say otherwise. One entry alone is dropped with probability p.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    mask = (torch.rand(shape, generator=generator) >= p).float()
    if p < 1 and mask.sum() == 0:
        mask.view(-1)[0] = 1
    return mask

# %% [markdown]
# ## wrong: true_and_false
#
# **Misconception.** True and False are as good as 1 and 0.
#
# **Hint.** The mask is to be float32, so that it can be multiplied with. `.float()` does it.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    return torch.rand(shape, generator=generator) >= p

# %% [markdown]
# ## wrong: float64
#
# **Misconception.** More digits do no harm.
#
# **Hint.** A float64 mask turns everything it is multiplied with into float64. The mask is float32.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    return (torch.rand(shape, generator=generator) >= p).double()

# %% [markdown]
# ## wrong: already_scaled
#
# **Misconception.** The mask holds 1 / (1 - p) where something is kept.
#
# **Hint.** The scale comes in the next exercise. The mask is of 0 and 1.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if p == 1:
        return torch.zeros(shape)
    return (torch.rand(shape, generator=generator) >= p).float() / (1 - p)

# %% [markdown]
# ## wrong: one_too_few
#
# **Misconception.** p = 0 may lose an entry now and then.
#
# **Hint.** With p = 0 nothing is dropped, without exception. What does your code do with it?

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    return (torch.rand(shape, generator=generator) >= max(p, 0.01)).float()

# %% [markdown]
# ## wrong: something_is_always_kept
#
# **Misconception.** Something must always be left over.
#
# **Hint.** With p = 1 everything is dropped, without exception.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    return (torch.rand(shape, generator=generator) >= min(p, 0.99)).float()

# %% [markdown]
# ## wrong: whole_number_trips
#
# **Misconception.** p is always written with a point.
#
# **Hint.** p = 0 and p = 1 are whole numbers, and valid. A tensor filled with a whole number holds
# whole numbers, and has no probabilities.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    return torch.bernoulli(torch.full(shape, 1 - p), generator=generator).float()

# %% [markdown]
# ## wrong: accepts_anything
#
# **Misconception.** A wrong p shows by itself.
#
# **Hint.** It does not: p = 1.5 quietly drops everything. Refuse it with a ValueError.

# %%
def keep_mask(shape, p, generator=None):
    return (torch.rand(shape, generator=generator) >= p).float()

# %% [markdown]
# ## wrong: refuses_one
#
# **Misconception.** A p of 1 makes no sense.
#
# **Hint.** It drops everything, and is valid. Refuse only what is below 0 or above 1.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p < 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    return (torch.rand(shape, generator=generator) >= p).float()

# %% [markdown]
# ## wrong: clamped
#
# **Misconception.** A p outside 0 to 1 is best put right silently.
#
# **Hint.** Then nobody notices the mistake. Raise a ValueError that names p and its value.

# %%
def keep_mask(shape, p, generator=None):
    p = min(max(p, 0), 1)
    return (torch.rand(shape, generator=generator) >= p).float()

# %% [markdown]
# ## wrong: refuses_too_much_only
#
# **Misconception.** p can only be too large.
#
# **Hint.** It can be negative as well, and that must be refused too.

# %%
def keep_mask(shape, p, generator=None):
    if p > 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    return (torch.rand(shape, generator=generator) >= p).float()

# %% [markdown]
# ## wrong: one_of_each_row_spared
#
# **Misconception.** A row must never lose everything.
#
# **Hint.** It may. Every entry has a coin of its own, and now and then all of them fall the same
# way.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    mask = (torch.rand(shape, generator=generator) >= p).float()
    if p < 1:
        mask[(mask == 0).all(dim=-1)] = 1
    return mask

# %% [markdown]
# ## wrong: half_of_the_matrix_mirrored
#
# **Misconception.** A mask is symmetric.
#
# **Hint.** Query i and key j have a coin, query j and key i another one. Draw one number for each
# entry.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    drawn = torch.rand(shape, generator=generator)
    half = drawn.flip(-1)
    drawn = torch.where(torch.arange(shape[-1]) < shape[-1] // 2, drawn, half)
    return (drawn >= p).float()

# %% [markdown]
# ## wrong: thousand_coins
#
# **Misconception.** A thousand coins are enough: a larger mask can use them again.
#
# **Hint.** Entries that share a coin are dropped together. Every entry needs a coin of its own.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    place = None if generator is None else generator.device
    coins = torch.rand(1000, generator=generator, device=place) >= p
    size = math.prod(shape)
    return coins.repeat(size // 1000 + 1)[:size].view(shape).float()

# %% [markdown]
# ## wrong: ten_sided_die
#
# **Misconception.** A die with ten sides is fine enough for any p.
#
# **Hint.** p may be 0.17, and a die with ten sides knows only tenths. `torch.rand` knows all
# numbers from 0 to 1.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    place = None if generator is None else generator.device
    return (torch.randint(0, 10, shape, generator=generator, device=place) >= 10 * p).float()

# %% [markdown]
# ## wrong: started_again_without_one
#
# **Misconception.** Without a generator one starts again from the seed that was set last.
#
# **Hint.** Then all calls toss the same coins. None means that PyTorch's own state goes on from
# where it is.

# %%
def keep_mask(shape, p, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    place = None if generator is None else generator.device
    if generator is None:
        torch.manual_seed(torch.initial_seed())
    return (torch.rand(shape, generator=generator, device=place) >= p).float()
