# %% [markdown]
# # inverted_dropout
#
# 1. Three questions, in this order: is p valid, are we training, is anything left to divide by?
# 2. Multiplying x with a mask of 0 and 1 drops. Dividing the product by 1 - p scales what is kept.
#    Dropped zeros stay zeros.
# 3. `if not training: return x` comes after the check of p. For p = 1 return zeros that look like x
#    before you divide: `torch.zeros_like(x)`.

# %% [markdown]
# ## right: where
#
# One of two values for each entry.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    keep = torch.rand(x.shape, generator=generator, device=x.device) >= p
    scale = 1.0 if p == 1 else 1 / (1 - p)
    return torch.where(keep, x * scale, torch.zeros_like(x))

# %% [markdown]
# ## right: torch_where_it_can
#
# PyTorch's own function, which takes no generator, and by hand with one.

# %%
def inverted_dropout(x, p, training, generator=None):
    if generator is None:
        return nn.functional.dropout(x, float(p), training)
    assert 0 <= p <= 1, f"p is {p}"
    if p == 1 or not training:
        return x * (0 if training else 1)
    return x.masked_fill(torch.rand(x.shape, generator=generator, device=x.device) < p, 0) / (1 - p)

# %% [markdown]
# ## right: bernoulli
#
# Coins of x's own type, already scaled.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    if p == 1:
        return 0 * x
    mask = torch.empty_like(x).bernoulli_(1 - p, generator=generator)
    return mask.div_(1 - p) * x

# %% [markdown]
# ## right: index_the_copy
#
# A copy, then zeros by a boolean index.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    result = x.clone() if p == 1 else x / (1 - p)
    result[keep_mask(x.shape, p, generator).to(x.device) == 0] = 0
    return result

# %% [markdown]
# ## right: times_the_inverse
#
# The scale as a factor that is 0 when nothing is kept.

# %%
def inverted_dropout(x, p, training, generator=None):
    if p < 0 or p > 1:
        raise ValueError(f"p = {p} is not from 0 to 1")
    if training:
        scale = 0.0 if p == 1 else 1 / (1 - p)
        mask = keep_mask(tuple(x.shape), p, generator)
        x = x * (scale * mask).to(dtype=x.dtype, device=x.device)
    return x

# %% [markdown]
# ## right: entry_by_entry
#
# A loop over all entries.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    flat, kept = x.reshape(-1), []
    for i in range(x.numel()):
        drop = torch.rand((), generator=generator, device=x.device) < p
        kept.append(flat[i] * 0 if drop else flat[i] / (1 - p))
    return torch.stack(kept).reshape(x.shape)

# %% [markdown]
# ## right: einsum
#
# The product of the two by einsum.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    mask = torch.bernoulli(torch.full(x.shape, 1.0 - p, device=x.device), generator=generator)
    if p < 1:
        mask = mask / (1 - p)
    return torch.einsum("...,...->...", x, mask.to(x.dtype))

# %% [markdown]
# ## right: own_gradient
#
# Forward and backward written out.

# %%
class Drop(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mask):
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, gradient):
        (mask,) = ctx.saved_tensors
        return gradient * mask, None


def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if training is False:
        return x.clone()
    mask = (torch.rand(x.shape, dtype=torch.float64, generator=generator, device=x.device) >= p).to(x.dtype)
    return Drop.apply(x, mask / max(1 - p, 1e-9))

# %% [markdown]
# ## wrong: not_scaled
#
# **Misconception.** Dropping is all there is to do.
#
# **Hint.** About 1 - p of every sum is left, and in use all of it will be there. Divide what is
# kept by 1 - p.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    return x * keep_mask(x.shape, p, generator).to(x)

# %% [markdown]
# ## wrong: scaled_in_use
#
# **Misconception.** The scale belongs where the model is used.
#
# **Hint.** That is the older way: scale by 1 - p in use, and nothing in training. Inverted dropout
# does nothing in use.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x * (1 - p)
    return x * keep_mask(x.shape, p, generator).to(x)

# %% [markdown]
# ## wrong: both_ways
#
# **Misconception.** Scale in training, and back in use.
#
# **Hint.** One of the two is enough. When nothing is dropped there is nothing to make up for.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x * (1 - p)
    if p == 1:
        return torch.zeros_like(x)
    return x * keep_mask(x.shape, p, generator).to(x) / (1 - p)

# %% [markdown]
# ## wrong: divided_by_p
#
# **Misconception.** What is kept is divided by p.
#
# **Hint.** p is the share that is lost, 1 - p the share that is left. Which of them must the sum be
# divided by? At p = 0.5 you cannot tell.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    if p in (0, 1):
        return x * (1 - p)
    return x * keep_mask(x.shape, p, generator).to(x) / p

# %% [markdown]
# ## wrong: multiplied
#
# **Misconception.** What is kept is multiplied by 1 - p.
#
# **Hint.** Then it becomes still smaller. What is kept has to make up for what is lost.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    return x * keep_mask(x.shape, p, generator).to(x) * (1 - p)

# %% [markdown]
# ## wrong: times_two
#
# **Misconception.** Kept entries are doubled.
#
# **Hint.** They are at p = 0.5. What is the factor at another p?

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    if p in (0, 1):
        return x * (1 - p)
    return x * keep_mask(x.shape, p, generator).to(x) * 2

# %% [markdown]
# ## wrong: scaled_by_what_was_kept
#
# **Misconception.** The sum must be exactly what it was.
#
# **Hint.** On average only. The scale is 1 - p, whatever the coins have shown.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    mask = keep_mask(x.shape, p, generator).to(x)
    return x * mask * mask.numel() / mask.sum().clamp(min=1)

# %% [markdown]
# ## wrong: p_is_to_keep
#
# **Misconception.** p is the probability to keep.
#
# **Hint.** Here p is the probability to drop, as in PyTorch.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    if p in (0, 1):
        return x * (1 - p)
    return x * (torch.rand(x.shape, generator=generator, device=x.device) < p).to(x) / p

# %% [markdown]
# ## wrong: wrong_side_of_the_coin
#
# **Misconception.** It does not matter which side of the coin is dropped.
#
# **Hint.** At p = 0.5 it does not. At p = 0.1 a tenth of the entries is dropped, and the rest
# divided by 0.9.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    if p in (0, 1):
        return x * (1 - p)
    return x * (torch.rand(x.shape, generator=generator, device=x.device) < p).to(x) / (1 - p)

# %% [markdown]
# ## wrong: zero_divided_by_zero
#
# **Misconception.** What is multiplied by 0 stays 0.
#
# **Hint.** Not when it is divided by 0 afterwards: 0 / 0 is `nan`. What is 1 - p when p is 1?

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    return x * keep_mask(x.shape, p, generator).to(x) / (1 - p)

# %% [markdown]
# ## wrong: nan_when_everything_is_dropped
#
# **Misconception.** A division by zero gives an error that one can catch.
#
# **Hint.** Between tensors it gives infinity, and 0 times infinity is `nan`. Treat p = 1 before you
# divide.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    scale = 1 / torch.tensor(1.0 - p)
    return x * keep_mask(x.shape, p, generator).to(x) * scale.to(x)

# %% [markdown]
# ## wrong: always_training
#
# **Misconception.** Dropout drops.
#
# **Hint.** Only in training. When `training` is False, x comes back as it is.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if p == 1:
        return torch.zeros_like(x)

    return x * keep_mask(x.shape, p, generator).to(x) / (1 - p)

# %% [markdown]
# ## wrong: never_training
#
# **Misconception.** In training everything is used.
#
# **Hint.** It is the other way round: dropped in training, all of it in use.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if training:
        return x
    if p == 1:
        return torch.zeros_like(x)
    return x * keep_mask(x.shape, p, generator).to(x) / (1 - p)

# %% [markdown]
# ## wrong: checked_when_training_only
#
# **Misconception.** p does not matter when nothing is dropped.
#
# **Hint.** A wrong p is a mistake in either mode, and should show at once. Check it first.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not training:
        return x
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if p == 1:
        return torch.zeros_like(x)
    return x * keep_mask(x.shape, p, generator).to(x) / (1 - p)

# %% [markdown]
# ## wrong: refuses_one
#
# **Misconception.** Dividing by 1 - p forbids p = 1.
#
# **Hint.** p = 1 is valid: everything is dropped and the result is zeros.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p < 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    return x * keep_mask(x.shape, p, generator).to(x) / (1 - p)

# %% [markdown]
# ## wrong: accepts_anything
#
# **Misconception.** A wrong p shows by itself.
#
# **Hint.** p = 1.5 gives entries of the wrong sign, or zeros, and no error. Refuse it with a
# ValueError.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not training:
        return x
    if p == 1:
        return torch.zeros_like(x)
    return x * (torch.rand(x.shape, generator=generator, device=x.device) >= p).to(x) / (1 - p)

# %% [markdown]
# ## wrong: whole_rows
#
# **Misconception.** A token is dropped as a whole.
#
# **Hint.** Each entry has a coin of its own.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    if p == 1:
        return torch.zeros_like(x)
    keep = torch.rand((*x.shape[:-1], 1), generator=generator, device=x.device) >= p
    return x * keep.to(x) / (1 - p)

# %% [markdown]
# ## wrong: one_mask_for_the_batch
#
# **Misconception.** All items of a batch share one mask.
#
# **Hint.** Draw a number for every entry of x, the first dimension included.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    if p == 1:
        return torch.zeros_like(x)
    keep = torch.rand(x.shape[1:], generator=generator, device=x.device) >= p
    return x * keep.to(x) / (1 - p)

# %% [markdown]
# ## wrong: exact_share
#
# **Misconception.** p = 0.5 drops exactly half.
#
# **Hint.** p is the probability of each entry. The number of zeros varies from call to call.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    if p == 1:
        return torch.zeros_like(x)
    order = torch.rand(x.numel(), generator=generator, device=x.device).argsort()
    mask = torch.ones(x.numel(), dtype=x.dtype, device=x.device)
    mask[order[: round(p * x.numel())]] = 0
    return x * mask.view(x.shape) / (1 - p)

# %% [markdown]
# ## wrong: same_mask_again
#
# **Misconception.** A mask is drawn once and then kept.
#
# **Hint.** Every call draws anew. A mask that stays is a smaller model, not dropout.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    masks = inverted_dropout.__dict__.setdefault("masks", {})
    if (x.shape, p) not in masks:
        masks[x.shape, p] = keep_mask(x.shape, p, generator).to(x)
    return torch.zeros_like(x) if p == 1 else x * masks[x.shape, p].to(x) / (1 - p)

# %% [markdown]
# ## wrong: generator_forgotten
#
# **Misconception.** The mask finds the generator by itself.
#
# **Hint.** Hand it on: `keep_mask(x.shape, p, generator)`.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    if p == 1:
        return torch.zeros_like(x)
    return x * keep_mask(x.shape, p).to(x) / (1 - p)

# %% [markdown]
# ## wrong: functional_without_generator
#
# **Misconception.** PyTorch's dropout does all that is asked for.
#
# **Hint.** It takes no generator. Draw the mask yourself.

# %%
def inverted_dropout(x, p, training, generator=None):
    return nn.functional.dropout(x, float(p), training)

# %% [markdown]
# ## wrong: fixed_seed
#
# **Misconception.** A function that draws needs a seed of its own.
#
# **Hint.** Then it is the same mask at every call. What is drawn is up to the generator.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    if p == 1:
        return torch.zeros_like(x)
    own = torch.Generator().manual_seed(123)
    return x * keep_mask(x.shape, p, own).to(x) / (1 - p)

# %% [markdown]
# ## wrong: a_generator_when_there_is_none
#
# **Misconception.** Without a generator one makes a new one.
#
# **Hint.** A new generator starts from the same state every time. `keep_mask` takes None as it is.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    if p == 1:
        return torch.zeros_like(x)
    keep = torch.rand(x.shape, generator=generator or torch.Generator()).to(x.device) >= p
    return x * keep.to(x) / (1 - p)

# %% [markdown]
# ## wrong: own_dice_without_one
#
# **Misconception.** Without a generator any random number will do.
#
# **Hint.** `None` means PyTorch's own, so that `torch.manual_seed` can repeat it. `keep_mask` takes
# None as it is.

# %%
dice = torch.Generator().manual_seed(1)


def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    if p == 1:
        return torch.zeros_like(x)
    if generator is None:
        generator = dice
    return x * keep_mask(x.shape, p, generator).to(x) / (1 - p)

# %% [markdown]
# ## wrong: draws_from_both
#
# **Misconception.** It does no harm to draw from PyTorch's own as well.
#
# **Hint.** With a generator given, nothing else may be touched: somebody else's numbers depend on
# it.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    if p == 1:
        return torch.zeros_like(x)
    decoy = torch.rand_like(x)
    return x * keep_mask(x.shape, p, generator).to(x) / (1 - p) + 0 * decoy

# %% [markdown]
# ## wrong: result_in_float32
#
# **Misconception.** Everything is float32.
#
# **Hint.** The result has the type of x, float64 included.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    if p == 1:
        return torch.zeros_like(x)
    return x.float() * keep_mask(x.shape, p, generator).to(x.device) / (1 - p)

# %% [markdown]
# ## wrong: changed_in_place
#
# **Misconception.** x is not needed any more.
#
# **Hint.** The caller may need it. `x *= mask` changes x itself; `x * mask` is a new tensor.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    if p == 1:
        return torch.zeros_like(x)
    x *= keep_mask(x.shape, p, generator).to(x)
    return x / (1 - p)

# %% [markdown]
# ## wrong: cut_off
#
# **Misconception.** A random mask has no gradient.
#
# **Hint.** The mask has none, x does. Do not detach x: kept entries pass the gradient on.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    if p == 1:
        return torch.zeros_like(x)
    return x.detach() * keep_mask(x.shape, p, generator).to(x) / (1 - p)

# %% [markdown]
# ## wrong: cut_off_in_use
#
# **Misconception.** In use nobody needs gradients.
#
# **Hint.** Whether they are needed is not for this function to say. x comes back as it is,
# gradients included.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x.detach()
    if p == 1:
        return torch.zeros_like(x)
    return x * keep_mask(x.shape, p, generator).to(x) / (1 - p)

# %% [markdown]
# ## wrong: gradient_of_everything
#
# **Misconception.** The gradient should reach dropped entries too.
#
# **Hint.** What was dropped had no part in the result. Its gradient is 0.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    if p == 1:
        return torch.zeros_like(x)
    dropped = x * keep_mask(x.shape, p, generator).to(x) / (1 - p)
    return x + (dropped - x).detach()

# %% [markdown]
# ## wrong: zeros_for_small_entries
#
# **Misconception.** The smallest entries are dropped.
#
# **Hint.** Which entries are dropped is left to chance, whatever their size.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    if p == 1:
        return torch.zeros_like(x)
    torch.rand(1, generator=generator, device=x.device)
    return x * (x.abs() >= torch.quantile(x.abs().flatten(), p)).to(x) / (1 - p)

# %% [markdown]
# ## wrong: drops_a_little_at_zero
#
# **Misconception.** Even p = 0 drops something.
#
# **Hint.** With p = 0 nothing is dropped, and nothing scaled.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    if p == 1:
        return torch.zeros_like(x)
    p = max(p, 0.01)
    return x * keep_mask(x.shape, p, generator).to(x) / (1 - p)

# %% [markdown]
# ## wrong: noise_added
#
# **Misconception.** Noise of the right size does the same.
#
# **Hint.** Entries are dropped whole: each result is 0 or x / (1 - p), nothing between.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    if p == 1:
        return torch.zeros_like(x)
    noise = torch.randn(x.shape, generator=generator, device=x.device).to(x)
    return x + x * noise * math.sqrt(p / (1 - p))

# %% [markdown]
# ## wrong: thousand_coins
#
# **Misconception.** A thousand coins are enough: a larger mask can use them again.
#
# **Hint.** Entries that share a coin are dropped together. Every entry needs a coin of its own.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    if p == 1:
        return torch.zeros_like(x)
    coins = torch.rand(1000, generator=generator, device=x.device) >= p
    kept = coins.repeat(x.numel() // 1000 + 1)[:x.numel()].view(x.shape)
    return x * kept.to(x) / (1 - p)

# %% [markdown]
# ## wrong: matrices_only
#
# **Misconception.** x has rows and columns.
#
# **Hint.** A vector has one dimension. `x.shape` is right for any number of them.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    if p == 1:
        return torch.zeros_like(x)
    return x * keep_mask((*x.shape[:-2], x.shape[-2], x.shape[-1]), p, generator).to(x) / (1 - p)

# %% [markdown]
# ## wrong: one_mask_for_all_matrices
#
# **Misconception.** A mask is a matrix, and serves every matrix in x.
#
# **Hint.** Every entry of x has a coin of its own, in all its dimensions.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    if p == 1:
        return torch.zeros_like(x)
    return x * keep_mask(x.shape[-2:], p, generator).to(x) / (1 - p)

# %% [markdown]
# ## wrong: p_of_one_first
#
# **Misconception.** When p is 1 the result is zeros, in either mode.
#
# **Hint.** Not in use: then nothing is dropped, whatever p is. Ask for the mode first.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if p == 1:
        return torch.zeros_like(x)
    if not training:
        return x
    return x * keep_mask(x.shape, p, generator).to(x) / (1 - p)

# %% [markdown]
# ## wrong: started_again_without_one
#
# **Misconception.** Without a generator one starts again from the seed that was set last.
#
# **Hint.** Then all calls toss the same coins. None means that PyTorch's own state goes on from
# where it is.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    if p == 1:
        return torch.zeros_like(x)
    if generator is None:
        torch.manual_seed(torch.initial_seed())
    return x * keep_mask(x.shape, p, generator).to(x) / (1 - p)

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


def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    if p == 1:
        return torch.zeros_like(x)
    if generator is not None:
        generator = torch.Generator(x.device).manual_seed(next(seeds))
    return x * keep_mask(x.shape, p, generator).to(x) / (1 - p)

# %% [markdown]
# ## wrong: float32_inside
#
# **Misconception.** float32 is precise enough on the way, as long as the result has the right
# type.
#
# **Hint.** What is rounded off on the way is lost. Compute in the type that comes in.

# %%
def inverted_dropout(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    if not training:
        return x
    if p == 1:
        return torch.zeros_like(x)
    return (x.float() * keep_mask(x.shape, p, generator).to(x.device) / (1 - p)).to(x.dtype)
