# %% [markdown]
# # tril_causal_weights
#
# 1. Three steps, and you have written two of them already. Which function does which step?
# 2. The softmax of lesson 01 comes first, over the last dimension, of scores divided by the
#    square root of `d_k`. The mask is as large as the last dimension of the scores.
# 3. Hand the weights to `apply_mask` together with `causal_mask(n)`, and what comes out to
#    `renormalise`. On a GPU the mask has to move there: `.to(scores.device)`.

# %% [markdown]
# ## right: tril_then_normalize
#
# Functions of PyTorch alone.

# %%
def tril_causal_weights(scores, d_k):
    weights = nn.functional.softmax(scores * d_k**-0.5, dim=-1)
    return nn.functional.normalize(weights.tril(), p=1, dim=-1)

# %% [markdown]
# ## right: from_exp_and_sums
#
# The softmax written out.

# %%
def tril_causal_weights(scores, d_k):
    scaled = scores / math.sqrt(d_k)
    powers = (scaled - scaled.max(dim=-1, keepdim=True).values).exp()
    weights = (powers / powers.sum(dim=-1, keepdim=True)).tril()
    sums = weights.sum(dim=-1, keepdim=True)
    return weights / torch.where(sums > 0, sums, 1)

# %% [markdown]
# ## right: multiplied_by_the_mask
#
# After a softmax of finite scores no entry can spoil a product.

# %%
def tril_causal_weights(scores, d_k):
    mask = causal_mask(scores.size(-1)).to(scores)
    weights = torch.einsum("...ij,ij->...ij", (scores / d_k**0.5).softmax(-1), mask)
    result = renormalise(weights)
    assert result.shape == scores.shape
    return result

# %% [markdown]
# ## right: float64_inside
#
# Computed in float64 and cast back.

# %%
def tril_causal_weights(scores, d_k):
    weights = torch.softmax(scores.double() / math.sqrt(d_k), dim=-1)
    mask = torch.ones_like(weights).tril()
    return renormalise(apply_mask(weights, mask)).to(scores.dtype)

# %% [markdown]
# ## right: one_matrix_at_a_time
#
# Leading dimensions are taken apart and put together again.

# %%
def tril_causal_weights(scores, d_k):
    if scores.ndim > 2:
        return torch.stack([tril_causal_weights(matrix, d_k) for matrix in scores])
    weights = torch.softmax(scores / torch.tensor(d_k).sqrt(), dim=1)
    visible = torch.tril(weights)
    return torch.nan_to_num(visible / visible.sum(1, keepdim=True))

# %% [markdown]
# ## right: row_by_row
#
# Each row is cut, divided and filled up with zeros.

# %%
def tril_causal_weights(scores, d_k):
    n = scores.shape[-1]
    weights = torch.softmax(scores / math.sqrt(d_k), dim=-1)
    rows = []
    for i in range(n):
        past = weights[..., i, : i + 1]
        sums = past.sum(dim=-1, keepdim=True)
        shares = past / sums.masked_fill(sums == 0, 1.0)
        rows.append(nn.functional.pad(shares, (0, n - i - 1)))
    return torch.stack(rows, dim=-2)

# %% [markdown]
# ## right: copy_and_index
#
# Zeros by the indices of the future.

# %%
def tril_causal_weights(scores, d_k):
    n = scores.shape[-1]
    weights = torch.log_softmax(scores / d_k**0.5, dim=-1).exp().clone()
    i, j = torch.triu_indices(n, n, offset=1)
    weights[..., i, j] = 0
    return renormalise(weights)

# %% [markdown]
# ## wrong: not_renormalised
#
# **Misconception.** The weights are small anyway, so the sums do not matter.
#
# **Hint.** The first row adds up to 0.19 in the example. The context vector would be a fifth of
# what it should be.

# %%
def tril_causal_weights(scores, d_k):
    weights = torch.softmax(scores / math.sqrt(d_k), dim=-1)
    return apply_mask(weights, causal_mask(scores.shape[-1]).to(scores.device))

# %% [markdown]
# ## wrong: not_masked
#
# **Misconception.** To renormalise is to hide.
#
# **Hint.** Nothing is hidden here. The mask comes between the softmax and the renormalising.

# %%
def tril_causal_weights(scores, d_k):
    return renormalise(torch.softmax(scores / math.sqrt(d_k), dim=-1))

# %% [markdown]
# ## wrong: mask_last
#
# **Misconception.** The order of the mask and the renormalising does not matter.
#
# **Hint.** Before the mask the sums are 1 already, and there is nothing to mend. What do the rows
# add up to at the end?

# %%
def tril_causal_weights(scores, d_k):
    weights = renormalise(torch.softmax(scores / math.sqrt(d_k), dim=-1))
    return apply_mask(weights, causal_mask(scores.shape[-1]).to(scores.device))

# %% [markdown]
# ## wrong: scores_masked_with_zeros
#
# **Misconception.** A score of 0 gets no weight.
#
# **Hint.** `exp(0)` is 1, so the future still gets its share. The mask belongs after the softmax
# here.

# %%
def tril_causal_weights(scores, d_k):
    return renormalise(torch.softmax(scores.tril() / math.sqrt(d_k), dim=-1))

# %% [markdown]
# ## wrong: minus_infinity_first
#
# **Misconception.** The order is free, as long as the algebra comes out the same.
#
# **Hint.** Here the softmax is to see all the scores. Where that goes wrong is the subject of
# part 5, so keep the order.

# %%
def tril_causal_weights(scores, d_k):
    hidden = causal_mask(scores.shape[-1]).to(scores.device) == 0
    return torch.softmax(scores.masked_fill(hidden, float("-inf")) / math.sqrt(d_k), dim=-1)

# %% [markdown]
# ## wrong: past_hidden
#
# **Misconception.** `triu` keeps the past.
#
# **Hint.** It keeps the diagonal and what is above it. Every word would see the future alone.

# %%
def tril_causal_weights(scores, d_k):
    return renormalise(torch.softmax(scores / math.sqrt(d_k), dim=-1).triu())

# %% [markdown]
# ## wrong: mask_from_the_scores
#
# **Misconception.** What is 0 after `tril` is hidden.
#
# **Hint.** A visible score can be 0 too, and then it is lost. A mask is made of positions, not of
# scores.

# %%
def tril_causal_weights(scores, d_k):
    weights = torch.softmax(scores / math.sqrt(d_k), dim=-1)
    return renormalise(weights * (scores.tril() != 0))

# %% [markdown]
# ## wrong: no_scale
#
# **Misconception.** The scale was a matter of lesson 01.
#
# **Hint.** It is still needed: `d_k` is an argument. Divide by its square root before the
# softmax.

# %%
def tril_causal_weights(scores, d_k):
    return renormalise(torch.softmax(scores, dim=-1).tril())

# %% [markdown]
# ## wrong: without_root
#
# **Misconception.** The scores are divided by d_k.
#
# **Hint.** The spread of a dot product grows with the square root of d_k.

# %%
def tril_causal_weights(scores, d_k):
    return renormalise(torch.softmax(scores / d_k, dim=-1).tril())

# %% [markdown]
# ## wrong: softmax_twice
#
# **Misconception.** A second softmax makes sure that the rows add up to 1.
#
# **Hint.** It gives a share to every 0, so the future is back. Divide by the sum instead.

# %%
def tril_causal_weights(scores, d_k):
    weights = torch.softmax(scores / math.sqrt(d_k), dim=-1).tril()
    return torch.softmax(weights, dim=-1)

# %% [markdown]
# ## wrong: second_dimension
#
# **Misconception.** The keys are always dimension 1.
#
# **Hint.** With a batch in front they are not. The last dimension is -1, however many there are.

# %%
def tril_causal_weights(scores, d_k):
    return renormalise(torch.softmax(scores / math.sqrt(d_k), dim=1).tril())

# %% [markdown]
# ## wrong: mask_of_the_first_dimension
#
# **Misconception.** The length of a tensor is the number of tokens.
#
# **Hint.** `len` gives the first dimension, which is the number of sentences when there is a
# batch.

# %%
def tril_causal_weights(scores, d_k):
    weights = torch.softmax(scores / math.sqrt(d_k), dim=-1)
    return renormalise(apply_mask(weights, causal_mask(len(scores)).to(scores.device)))

# %% [markdown]
# ## wrong: not_stable
#
# **Misconception.** After the scale the scores are small enough for a bare `exp`.
#
# **Hint.** `exp(89)` is infinite in float32. `torch.softmax` takes care of that.

# %%
def tril_causal_weights(scores, d_k):
    return renormalise(torch.exp(scores / math.sqrt(d_k)).tril())

# %% [markdown]
# ## wrong: result_in_float32
#
# **Misconception.** Weights are always float32.
#
# **Hint.** The result has the type of the scores, float64 included.

# %%
def tril_causal_weights(scores, d_k):
    return renormalise(torch.softmax(scores / math.sqrt(d_k), dim=-1, dtype=torch.float32).tril())

# %% [markdown]
# ## wrong: detached
#
# **Misconception.** Weights are only looked at and need not be trained through.
#
# **Hint.** The layers that made the scores learn through them. The gradient has to pass.

# %%
def tril_causal_weights(scores, d_k):
    with torch.no_grad():
        return renormalise(torch.softmax(scores / math.sqrt(d_k), dim=-1).tril())

# %% [markdown]
# ## wrong: changed_in_place
#
# **Misconception.** `scores.div_` gives a new tensor.
#
# **Hint.** The underscore says that it changes the tensor itself, and so the caller's. Leave it
# out.

# %%
def tril_causal_weights(scores, d_k):
    with torch.no_grad():
        scores.div_(math.sqrt(d_k))
    return renormalise(torch.softmax(scores, dim=-1).tril())

# %% [markdown]
# ## wrong: squeezed
#
# **Misconception.** A batch of one-word sentences can lose its last dimensions.
#
# **Hint.** The result is as large as the scores, (..., n, n), also when n is 1.

# %%
def tril_causal_weights(scores, d_k):
    return renormalise(torch.softmax(scores / math.sqrt(d_k), dim=-1).tril()).squeeze()

# %% [markdown]
# ## wrong: sentence_by_sentence
#
# **Misconception.** What a loop over a batch hands out is a matrix, and its keys run along
# dimension 1.
#
# **Hint.** With several heads it hands out three dimensions, and the keys are the last. Write -1.

# %%
def tril_causal_weights(scores, d_k):
    if scores.ndim == 2:
        return renormalise(torch.softmax(scores / math.sqrt(d_k), dim=1).tril())
    return torch.stack([renormalise(torch.softmax(s / math.sqrt(d_k), dim=1).tril()) for s in scores])

# %% [markdown]
# ## wrong: sums_stood_up_when_needed
#
# **Misconception.** In a batch the row sums need another dimension only where the sizes do not
# fit.
#
# **Hint.** With as many sentences as tokens they fit, but along the wrong dimension. Keep the
# summed dimension always.

# %%
def tril_causal_weights(scores, d_k):
    weights = torch.softmax(scores / math.sqrt(d_k), dim=-1).tril()
    sums = weights.sum(dim=-1)
    sums = sums.masked_fill(sums == 0, 1.0)
    if scores.ndim == 2 or len(sums) != scores.shape[-1]:
        sums = sums.unsqueeze(-1)
    return weights / sums

# %% [markdown]
# ## wrong: one_number_refused
#
# **Misconception.** A key of one number makes no sense.
#
# **Hint.** It does: the root of 1 is 1, and the scores stay as they are.

# %%
def tril_causal_weights(scores, d_k):
    if d_k < 2:
        raise ValueError(f"d_k must be at least 2, got {d_k}")
    return renormalise(torch.softmax(scores / math.sqrt(d_k), dim=-1).tril())

# %% [markdown]
# ## wrong: shifted_in_place
#
# **Misconception.** A softmax does not see a shift, so the scores may be shifted where they are.
#
# **Hint.** The result is right, but the scores of the caller have changed. Subtract into a new
# tensor.

# %%
def tril_causal_weights(scores, d_k):
    with torch.no_grad():
        scores -= scores.amax(dim=-1, keepdim=True)
    return renormalise(torch.softmax(scores / math.sqrt(d_k), dim=-1).tril())

# %% [markdown]
# ## wrong: float32_inside
#
# **Misconception.** float32 is precise enough on the way, as long as the result has the right
# type.
#
# **Hint.** What is rounded off on the way is lost. Compute in the type that comes in.

# %%
def tril_causal_weights(scores, d_k):
    weights = torch.softmax(scores.float() / math.sqrt(d_k), dim=-1)
    return renormalise(weights.tril()).to(scores.dtype)

# %% [markdown]
# ## wrong: small_number_in_the_sum
#
# **Misconception.** A small number added to the sum keeps it from being 0, and changes nothing.
#
# **Hint.** Where a hidden score takes nearly all, the visible weights are as small as that number, and rows
# no longer add up to 1. Treat only a sum of exactly 0 apart.

# %%
def tril_causal_weights(scores, d_k):
    weights = torch.softmax(scores / math.sqrt(d_k), dim=-1).tril()
    return weights / (weights.sum(dim=-1, keepdim=True) + 1e-9)
