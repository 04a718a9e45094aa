# %% [markdown]
# # renormalise
#
# 1. Each row has its own sum. Which dimension do you add over, and which shape must the sums
#    have, so that row i is divided by sum i?
# 2. `keepdim=True` keeps the summed dimension as size 1: then (..., n, n) / (..., n, 1) does the
#    right thing. Now the rows of zeros: 0 / 0 is `nan`.
# 3. A row of zeros divided by 1 stays zeros. So put a 1 in place of every sum that is exactly 0,
#    and leave the other sums alone.

# %% [markdown]
# ## right: where_on_the_sums
#
# The divisor of an empty row is 1.

# %%
def renormalise(weights):
    sums = weights.sum(dim=-1, keepdim=True)
    return weights / torch.where(sums == 0, torch.ones_like(sums), sums)

# %% [markdown]
# ## right: sum_plus_a_truth_value
#
# True counts as 1.

# %%
def renormalise(weights):
    total = torch.einsum("...ij->...i", weights).unsqueeze(-1)
    return weights / (total + (total == 0))

# %% [markdown]
# ## right: nan_to_num_afterwards
#
# Weights are finite, so that a `nan` can only come from 0 / 0.

# %%
def renormalise(weights):
    return torch.nan_to_num(weights / weights.sum(-1, keepdim=True), nan=0.0)

# %% [markdown]
# ## right: normalize_of_torch
#
# Weights are not negative: the sum of the absolute values is the sum.

# %%
def renormalise(weights):
    return nn.functional.normalize(weights, p=1, dim=-1)

# %% [markdown]
# ## right: limit_far_below
#
# Sums are 0 or at least a millionth, so that a far smaller limit does no harm.

# %%
def renormalise(weights):
    smallest = torch.finfo(weights.dtype).tiny
    return weights / weights.sum(dim=-1, keepdim=True).clamp(min=smallest)

# %% [markdown]
# ## right: row_by_row
#
# One row at a time, whatever the leading dimensions.

# %%
def renormalise(weights):
    rows = [row / row.sum() if row.any() else torch.zeros_like(row)
            for row in weights.reshape(-1, weights.shape[-1])]
    return torch.stack(rows).reshape(weights.shape)

# %% [markdown]
# ## right: float64_inside
#
# Computed in float64 and cast back.

# %%
def renormalise(weights):
    exact = weights.double()
    sums = exact @ torch.ones(weights.shape[-1], 1, dtype=torch.float64, device=weights.device)
    return exact.div(sums.masked_fill(sums == 0, 1)).to(weights.dtype)

# %% [markdown]
# ## right: sums_at_the_end
#
# The sums are turned instead of kept.

# %%
def renormalise(weights):
    first = weights.transpose(-1, -2)
    sums = first.sum(dim=-2, keepdim=True)
    empty = sums == 0
    result = (first / sums.masked_fill(empty, 1.0)).mT
    assert not result.isnan().any()
    return result

# %% [markdown]
# ## wrong: no_guard
#
# **Misconception.** Every row has a sum above 0.
#
# **Hint.** A row can be all zeros, and 0 / 0 is `nan`. Part 5 shows how a row gets there.

# %%
def renormalise(weights):
    return weights / weights.sum(dim=-1, keepdim=True)

# %% [markdown]
# ## wrong: small_number_added
#
# **Misconception.** A small number under the fraction changes nothing.
#
# **Hint.** Where the sum is 0.000001 it changes the first digits. Treat a sum of 0 on its own.

# %%
def renormalise(weights):
    return weights / (weights.sum(dim=-1, keepdim=True) + 1e-8)

# %% [markdown]
# ## wrong: small_rows_dropped
#
# **Misconception.** A row with hardly any weight left holds nothing but noise.
#
# **Hint.** Its shares are as good as any. Only a row of exact zeros stays zeros.

# %%
def renormalise(weights):
    sums = weights.sum(dim=-1, keepdim=True)
    return torch.where(sums > 1e-5, weights / sums.clamp(min=1e-5), 0.0)

# %% [markdown]
# ## wrong: sums_limited
#
# **Misconception.** After a softmax no sum is above 1.
#
# **Hint.** Then the function works after a softmax only. It is to work for any row with a sum.

# %%
def renormalise(weights):
    sums = weights.sum(dim=-1, keepdim=True).clamp(max=100.0)
    return weights / sums.masked_fill(sums == 0, 1.0)

# %% [markdown]
# ## wrong: one_sum_for_all
#
# **Misconception.** All weights together add up to 1.
#
# **Hint.** Each query has one whole to hand out, so each row has its own sum.

# %%
def renormalise(weights):
    return weights / weights.sum().clamp(min=1e-12)

# %% [markdown]
# ## wrong: columns
#
# **Misconception.** The columns add up to 1.
#
# **Hint.** A row belongs to a query, and its weights add up to 1. Which dimension runs along a
# row?

# %%
def renormalise(weights):
    sums = weights.sum(dim=-2, keepdim=True)
    return weights / sums.masked_fill(sums == 0, 1.0)

# %% [markdown]
# ## wrong: second_dimension
#
# **Misconception.** The keys are always dimension 1.
#
# **Hint.** With a batch in front they are not. The last dimension is -1, however many there are.

# %%
def renormalise(weights):
    sums = weights.sum(dim=1, keepdim=True)
    return weights / sums.masked_fill(sums == 0, 1.0)

# %% [markdown]
# ## wrong: sums_lie_down
#
# **Misconception.** Row sums line up with the rows by themselves.
#
# **Hint.** A vector of n sums is laid along the last dimension, so that column j is divided by
# sum j. Keep the summed dimension.

# %%
def renormalise(weights):
    sums = weights.sum(dim=-1)
    return weights / sums.masked_fill(sums == 0, 1.0)

# %% [markdown]
# ## wrong: even_shares
#
# **Misconception.** A row without weights should share evenly.
#
# **Hint.** Then the first word may look at the last. A row of zeros stays zeros.

# %%
def renormalise(weights):
    sums = weights.sum(dim=-1, keepdim=True)
    return torch.where(sums == 0, 1 / weights.shape[-1], weights / sums.masked_fill(sums == 0, 1.0))

# %% [markdown]
# ## wrong: all_or_nothing
#
# **Misconception.** One row of zeros means that nothing can be divided.
#
# **Hint.** The other rows still have to be divided. Decide for each row alone.

# %%
def renormalise(weights):
    sums = weights.sum(dim=-1, keepdim=True)
    if (sums == 0).any():
        return weights.clone()
    return weights / sums

# %% [markdown]
# ## wrong: first_dimension_is_the_rows
#
# **Misconception.** A loop over a tensor goes over its rows.
#
# **Hint.** With a batch it goes over sentences, and a whole sentence is not zero. Look at the
# sums of dimension -1.

# %%
def renormalise(weights):
    parts = []
    for row in weights:
        parts.append(row / row.sum(dim=-1, keepdim=True) if row.sum() > 0 else row)
    return torch.stack(parts)

# %% [markdown]
# ## wrong: softmax_again
#
# **Misconception.** A softmax makes rows add up to 1, so a second one will do.
#
# **Hint.** It turns every 0 into a share, and the hidden entries are back. Divide by the sum.

# %%
def renormalise(weights):
    return torch.softmax(weights, dim=-1)

# %% [markdown]
# ## wrong: squeezed
#
# **Misconception.** A dimension of size 1 is of no use and can be dropped.
#
# **Hint.** One token gives a matrix too, (1, 1). Whoever calls the function counts on the same
# shape.

# %%
def renormalise(weights):
    sums = weights.sum(dim=-1, keepdim=True)
    return (weights / sums.masked_fill(sums == 0, 1.0)).squeeze()

# %% [markdown]
# ## wrong: sum_is_a_constant
#
# **Misconception.** The sum is just a number, no gradient runs through it.
#
# **Hint.** Every weight of the row is in the sum. A gradient without it pulls the wrong way.

# %%
def renormalise(weights):
    sums = weights.sum(dim=-1, keepdim=True).detach()
    return weights / sums.masked_fill(sums == 0, 1.0)

# %% [markdown]
# ## wrong: result_in_float32
#
# **Misconception.** Sums need no more than float32.
#
# **Hint.** The result has the type of the weights, float64 included.

# %%
def renormalise(weights):
    sums = weights.sum(dim=-1, keepdim=True, dtype=torch.float32)
    return weights.float() / sums.masked_fill(sums == 0, 1.0)

# %% [markdown]
# ## wrong: changed_in_place
#
# **Misconception.** Rows of zeros may be filled for a moment.
#
# **Hint.** The caller's weights have changed and stay so. Change the sums, which are yours.

# %%
def renormalise(weights):
    sums = weights.sum(dim=-1, keepdim=True)
    if (empty := sums == 0).any():
        weights += empty
        sums = weights.sum(dim=-1, keepdim=True)
    return weights / sums * ~empty

# %% [markdown]
# ## wrong: sentence_by_sentence
#
# **Misconception.** What a loop over a batch hands out is a matrix, and its rows run along
# dimension 1.
#
# **Hint.** With several heads it hands out three dimensions, and the keys are the last. Write -1.

# %%
def renormalise(weights):
    if weights.ndim > 2:
        parts = []
        for sentence in weights:
            sums = sentence.sum(dim=1, keepdim=True)
            parts.append(sentence / sums.masked_fill(sums == 0, 1.0))
        return torch.stack(parts)
    sums = weights.sum(dim=1, keepdim=True)
    return weights / sums.masked_fill(sums == 0, 1.0)

# %% [markdown]
# ## wrong: float32_inside
#
# **Misconception.** float32 is precise enough on the way, as long as the result has the right
# type.
#
# **Hint.** What is rounded off on the way is lost. Compute in the type that comes in.

# %%
def renormalise(weights):
    narrow = weights.float()
    sums = narrow.sum(dim=-1, keepdim=True)
    return (narrow / sums.masked_fill(sums == 0, 1.0)).to(weights.dtype)
