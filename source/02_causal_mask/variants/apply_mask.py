# %% [markdown]
# # apply_mask
#
# 1. What is hidden must not even be touched by arithmetic: 0 times `nan` is `nan`. So pick one of
#    two values for each entry.
# 2. `torch.where(condition, a, b)` picks, and so does `tensor.masked_fill(condition, value)`. The
#    condition is a tensor of True and False.
# 3. `mask == 0` is True where something is hidden. It broadcasts to any number of leading
#    dimensions by itself. Mind that `masked_fill` gives a new tensor.

# %% [markdown]
# ## right: where
#
# One of two values for each entry.

# %%
def apply_mask(weights, mask):
    return torch.where(mask == 1, weights, 0.0)

# %% [markdown]
# ## right: where_else_the_mask
#
# Where the mask is 0, it is the zero that is needed.

# %%
def apply_mask(weights, mask):
    return torch.where(mask.bool(), weights, mask)

# %% [markdown]
# ## right: copy_and_index
#
# A copy, then zeros by a boolean index.

# %%
def apply_mask(weights, mask):
    result = weights.clone()
    result[..., mask == 0] = 0
    return result

# %% [markdown]
# ## right: fill_the_copy
#
# In place, but on a copy.

# %%
def apply_mask(weights, mask):
    assert mask.is_floating_point() and mask.shape == weights.shape[-2:]
    return weights.clone().masked_fill_(~mask.to(torch.bool), 0)

# %% [markdown]
# ## right: fill_then_multiply
#
# After the fill nothing is left that a product could spoil.

# %%
def apply_mask(weights, mask):
    hidden = (1 - mask).bool()
    return weights.masked_fill(hidden, 0.0) * mask.to(weights.dtype)

# %% [markdown]
# ## right: visible_ones_copied_over
#
# A matrix of zeros receives the visible weights.

# %%
def apply_mask(weights, mask):
    visible = mask > 0.5
    return torch.zeros_like(weights).masked_scatter(visible, weights.masked_select(visible))

# %% [markdown]
# ## right: entry_by_entry
#
# A loop over queries and keys.

# %%
def apply_mask(weights, mask):
    n = mask.shape[-1]
    zero = torch.zeros_like(weights[..., 0, 0])
    rows = []
    for i in range(n):
        row = [weights[..., i, j] if mask[i, j] else zero for j in range(n)]
        rows.append(torch.stack(row, dim=-1))
    return torch.stack(rows, dim=-2)

# %% [markdown]
# ## right: matrix_by_matrix
#
# Leading dimensions one at a time, with a look at the result.

# %%
def apply_mask(weights, mask):
    if weights.dim() > 2:
        return torch.stack([apply_mask(matrix, mask) for matrix in weights])
    result = torch.where(mask.eq(0), torch.zeros((), dtype=weights.dtype, device=device), weights)
    assert result.shape == weights.shape
    return result

# %% [markdown]
# ## wrong: multiplied
#
# **Misconception.** Zero times anything is zero.
#
# **Hint.** Not in floating point: 0 times `nan` is `nan`, and so is 0 times infinity. Choose
# instead.

# %%
def apply_mask(weights, mask):
    return weights * mask

# %% [markdown]
# ## wrong: multiplied_then_cleaned
#
# **Misconception.** `nan_to_num` puts a product right again.
#
# **Hint.** It also turns a visible `nan` into 0, and then nobody sees that something is wrong.

# %%
def apply_mask(weights, mask):
    return (weights * mask).nan_to_num(0.0)

# %% [markdown]
# ## wrong: result_dropped
#
# **Misconception.** `masked_fill` changes its tensor.
#
# **Hint.** It returns a new one and leaves the old one as it was. Only names that end in an
# underscore change the tensor.

# %%
def apply_mask(weights, mask):
    weights.masked_fill(mask == 0, 0.0)
    return weights

# %% [markdown]
# ## wrong: changed_in_place
#
# **Misconception.** The caller does not need the weights any more.
#
# **Hint.** The caller may want to compare before and after. Without the underscore you get a new
# tensor.

# %%
def apply_mask(weights, mask):
    return weights.masked_fill_(mask == 0, 0.0)

# %% [markdown]
# ## wrong: mask_changed_in_place
#
# **Misconception.** The mask may be used up.
#
# **Hint.** It is used again in the next layer, and then it is no longer of ones and zeros. Make a
# new tensor from it.

# %%
def apply_mask(weights, mask):
    mask -= 1
    return weights.masked_fill(mask.bool(), 0.0)

# %% [markdown]
# ## wrong: ones_filled
#
# **Misconception.** `masked_fill` fills where the mask is 0.
#
# **Hint.** It fills where its first argument is True. Here a 1 means: may look.

# %%
def apply_mask(weights, mask):
    return weights.masked_fill(mask.bool(), 0.0)

# %% [markdown]
# ## wrong: minus_infinity
#
# **Misconception.** Hidden always means minus infinity.
#
# **Hint.** For scores before a softmax, yes. A weight that is to have no effect is 0.

# %%
def apply_mask(weights, mask):
    return weights.masked_fill(mask == 0, float("-inf"))

# %% [markdown]
# ## wrong: always_a_triangle
#
# **Misconception.** A mask is a triangle, so `tril` will do.
#
# **Hint.** The function is handed a mask. Other masks come in lesson 03, so use the one you get.

# %%
def apply_mask(weights, mask):
    return weights.tril()

# %% [markdown]
# ## wrong: mask_turned
#
# **Misconception.** Rows of the mask are keys.
#
# **Hint.** Row i of weights and of mask both belong to query i. Leave the mask as it is.

# %%
def apply_mask(weights, mask):
    return weights.masked_fill(mask.T == 0, 0.0)

# %% [markdown]
# ## wrong: two_dimensions_only
#
# **Misconception.** There is always one sentence.
#
# **Hint.** With a batch in front, the index no longer fits. An index can start with `...`, and
# `torch.where` broadcasts.

# %%
def apply_mask(weights, mask):
    result = weights.clone()
    result[mask == 0] = 0
    return result

# %% [markdown]
# ## wrong: infinities_forgotten
#
# **Misconception.** `nan` is the only number that spoils a product.
#
# **Hint.** 0 times infinity is `nan` as well.

# %%
def apply_mask(weights, mask):
    return weights.masked_fill(weights.isnan() & (mask == 0), 0.0) * mask

# %% [markdown]
# ## wrong: hidden_nan_forgotten
#
# **Misconception.** Infinity is the only number that spoils a product.
#
# **Hint.** 0 times `nan` is `nan` as well.

# %%
def apply_mask(weights, mask):
    return weights.masked_fill(weights.isinf() & (mask == 0), 0.0) * mask

# %% [markdown]
# ## wrong: visible_nan_removed
#
# **Misconception.** A `nan` should never be let through.
#
# **Hint.** A visible one is a sign that something is wrong. Only what is hidden becomes 0.

# %%
def apply_mask(weights, mask):
    return torch.where((mask == 1) & ~weights.isnan(), weights, 0.0)

# %% [markdown]
# ## wrong: visible_infinity_removed
#
# **Misconception.** An infinity should be made finite on the way.
#
# **Hint.** Visible entries pass as they are, so that you see what is wrong.

# %%
def apply_mask(weights, mask):
    return weights.nan_to_num(nan=float("nan")).masked_fill(mask == 0, 0.0)

# %% [markdown]
# ## wrong: result_in_float32
#
# **Misconception.** Weights are always float32.
#
# **Hint.** The result has the type of the weights, float64 included.

# %%
def apply_mask(weights, mask):
    return torch.where(mask == 1, weights.float(), 0.0)

# %% [markdown]
# ## wrong: detached
#
# **Misconception.** Masking is no part of the training.
#
# **Hint.** The gradient of the visible weights has to pass through here.

# %%
def apply_mask(weights, mask):
    return weights.detach().masked_fill(mask == 0, 0.0)

# %% [markdown]
# ## wrong: one_mask_for_each_sentence
#
# **Misconception.** A batch has three dimensions: sentences, queries, keys.
#
# **Hint.** With several heads it has four. `(n, n)` fits to any number of dimensions in front by
# itself.

# %%
def apply_mask(weights, mask):
    if weights.ndim > 2:
        mask = mask.expand(len(weights), *mask.shape)
    return weights.masked_fill(mask == 0, 0.0)

# %% [markdown]
# ## wrong: float32_inside
#
# **Misconception.** float32 is precise enough on the way, as long as the result has the right
# type.
#
# **Hint.** What is rounded off on the way is lost. Compute in the type that comes in.

# %%
def apply_mask(weights, mask):
    return weights.float().masked_fill(mask == 0, 0.0).to(weights.dtype)

# %% [markdown]
# ## wrong: batch_of_one_dropped
#
# **Misconception.** A batch of one is no batch.
#
# **Hint.** The shape of the result is that of the weights, whatever the batch. Leave `squeeze` out.

# %%
def apply_mask(weights, mask):
    return torch.where(mask == 0, 0.0, weights).squeeze(0)
