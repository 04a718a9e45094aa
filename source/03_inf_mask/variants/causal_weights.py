# %% [markdown]
# # causal_weights
#
# 1. You have written two of the three steps already. The mask is as large as the last dimension of
#    the scores.
# 2. The softmax must come after the mask. Then its rows add up to 1 by themselves: nothing is
#    renormalised.
# 3. `mask_scores` with `future_mask(n)`, divided by `math.sqrt(d_k)`, goes into `torch.softmax`
#    over dimension -1. On a GPU the mask has to move there: `.to(scores.device)`.

# %% [markdown]
# ## right: scaled_first
#
# Scale, then mask; minus infinity is the same before and after.

# %%
def causal_weights(scores, d_k):
    n = scores.size(-1)
    hidden = torch.ones(n, n, dtype=torch.bool, device=scores.device).triu(1)
    return nn.functional.softmax((scores * d_k**-0.5).masked_fill(hidden, -torch.inf), dim=-1)

# %% [markdown]
# ## right: from_exp_and_sums
#
# The stable softmax written out, over the visible scores.

# %%
def causal_weights(scores, d_k):
    hidden = future_mask(scores.shape[-1]).to(scores.device)
    scaled = mask_scores(scores, hidden) / math.sqrt(d_k)
    powers = (scaled - scaled.amax(dim=-1, keepdim=True)).exp()
    return powers / powers.sum(dim=-1, keepdim=True)

# %% [markdown]
# ## right: infinities_added
#
# A matrix of 0 and -inf is added.

# %%
def causal_weights(scores, d_k):
    bias = torch.full_like(scores, -math.inf).triu(diagonal=1)
    weights = torch.softmax(scores / math.sqrt(d_k) + bias, dim=-1)
    assert weights.shape == scores.shape
    return weights

# %% [markdown]
# ## right: row_by_row
#
# Each row is cut, and filled up with zeros after the softmax.

# %%
def causal_weights(scores, d_k):
    n = scores.shape[-1]
    rows = []
    for i in range(n):
        visible = torch.softmax(scores[..., i, : i + 1] / math.sqrt(d_k), dim=-1)
        rows.append(nn.functional.pad(visible, (0, n - i - 1)))
    return torch.stack(rows, dim=-2)

# %% [markdown]
# ## right: large_finite_number
#
# Right in float32 and float64: no score here is near -1e9.

# %%
def causal_weights(scores, d_k):
    visible = torch.ones_like(scores).tril() == 1
    return torch.softmax(torch.where(visible, scores, -1e9) / math.sqrt(d_k), dim=-1)

# %% [markdown]
# ## right: fused
#
# PyTorch's fused function: scores times the identity are the scores, weights times the identity
# the weights.

# %%
def causal_weights(scores, d_k):
    identity = torch.eye(scores.shape[-1], dtype=scores.dtype, device=scores.device).expand_as(scores)
    return nn.functional.scaled_dot_product_attention(
        scores, identity, identity, is_causal=True, scale=1 / math.sqrt(d_k)
    )

# %% [markdown]
# ## right: logsumexp
#
# Logarithm of the weights, then exp.

# %%
def causal_weights(scores, d_k):
    q, k = torch.meshgrid(*2 * [torch.arange(scores.shape[-1], device=scores.device)], indexing="ij")
    scaled = torch.div(scores, d_k**0.5).masked_fill(k > q, float("-inf"))
    return (scaled - torch.logsumexp(scaled, dim=-1, keepdim=True)).exp()

# %% [markdown]
# ## right: one_matrix_at_a_time
#
# Leading dimensions are taken apart and put together again, in float64 inside.

# %%
def causal_weights(scores, d_k):
    if scores.ndim > 2:
        return torch.stack([causal_weights(matrix, d_k) for matrix in scores])
    scaled = scores.double() / math.sqrt(d_k)
    hidden = future_mask(len(scores)).to(scores.device)
    return torch.softmax(mask_scores(scaled, hidden), dim=1).to(scores.dtype)

# %% [markdown]
# ## wrong: mask_after_the_softmax
#
# **Misconception.** It does not matter whether a score is hidden before or after `exp`.
#
# **Hint.** In algebra it does not. In float32 a hidden score far above the visible ones makes their
# `exp` underflow, or its own overflow. Hide it first.

# %%
def causal_weights(scores, d_k):
    weights = torch.softmax(scores / math.sqrt(d_k), dim=-1).tril()
    return weights / weights.sum(dim=-1, keepdim=True)

# %% [markdown]
# ## wrong: guarded_lesson_02
#
# **Misconception.** With a guard against 0 / 0 lesson 02's way is safe.
#
# **Hint.** The guard turns a lost row into zeros, and the weights are still lost. Hide first.

# %%
def causal_weights(scores, d_k):
    weights = torch.softmax(scores / math.sqrt(d_k), dim=-1).tril()
    sums = weights.sum(dim=-1, keepdim=True)
    return weights / sums.masked_fill(sums == 0, 1.0)

# %% [markdown]
# ## wrong: not_renormalised
#
# **Misconception.** Zeros above the diagonal are all that is asked for.
#
# **Hint.** What do the rows add up to? Mask before the softmax, then they add up to 1.

# %%
def causal_weights(scores, d_k):
    return torch.softmax(scores / math.sqrt(d_k), dim=-1).tril()

# %% [markdown]
# ## wrong: result_dropped
#
# **Misconception.** Once a mask has been made, or `masked_fill` called, the scores are masked.
#
# **Hint.** Every weight above the diagonal is still there. `masked_fill` returns a new tensor: does
# that one go into the softmax?

# %%
def causal_weights(scores, d_k):
    scaled = scores / math.sqrt(d_k)
    scaled.masked_fill(future_mask(scores.shape[-1]).to(scores.device), float("-inf"))
    return torch.softmax(scaled, dim=-1)

# %% [markdown]
# ## wrong: zeros_before_the_softmax
#
# **Misconception.** A score of 0 gets no weight.
#
# **Hint.** `exp(0)` is 1, so the future still gets its share. Use minus infinity.

# %%
def causal_weights(scores, d_k):
    return torch.softmax(scores.tril() / math.sqrt(d_k), dim=-1)

# %% [markdown]
# ## wrong: small_finite_number
#
# **Misconception.** -10,000 is low enough for any score.
#
# **Hint.** Visible scores may be as low as that. Then a hidden one gets as much as they do.

# %%
def causal_weights(scores, d_k):
    hidden = future_mask(scores.shape[-1]).to(scores.device)
    return torch.softmax(scores.masked_fill(hidden, -1e4) / math.sqrt(d_k), dim=-1)

# %% [markdown]
# ## wrong: large_number_added
#
# **Misconception.** A score lowered by 10,000 is hidden.
#
# **Hint.** Not if it was 20,000 above the visible ones. Replace the score instead of lowering it.

# %%
def causal_weights(scores, d_k):
    hidden = future_mask(scores.shape[-1]).to(scores.device)
    return torch.softmax((scores - 1e4 * hidden) / math.sqrt(d_k), dim=-1)

# %% [markdown]
# ## wrong: lowered_by_a_hundred
#
# **Misconception.** Scores are small numbers, so 100 below is as good as hidden.
#
# **Hint.** The exercise says up to 10,000. A hidden score may be far above the visible ones.

# %%
def causal_weights(scores, d_k):
    hidden = future_mask(scores.shape[-1]).to(scores.device)
    return torch.softmax(scores / math.sqrt(d_k) - 100.0 * hidden, dim=-1)

# %% [markdown]
# ## wrong: mask_from_the_scores
#
# **Misconception.** What is not 0 above the diagonal of the scores is the future.
#
# **Hint.** A future score that is exactly 0 stays visible that way. A mask is made of positions, not
# of scores.

# %%
def causal_weights(scores, d_k):
    hidden = scores.triu(diagonal=1).bool()
    return torch.softmax(mask_scores(scores, hidden) / math.sqrt(d_k), dim=-1)

# %% [markdown]
# ## wrong: zeros_of_tril_hidden
#
# **Misconception.** What is 0 after `tril` is the future.
#
# **Hint.** A visible score may be exactly 0 too, and then it is lost. A mask is made of positions.

# %%
def causal_weights(scores, d_k):
    visible = scores.tril()
    hidden = (visible == 0) & (torch.eye(scores.shape[-1], device=scores.device) == 0)
    return torch.softmax(visible.masked_fill(hidden, float("-inf")) / math.sqrt(d_k), dim=-1)

# %% [markdown]
# ## wrong: diagonal_hidden
#
# **Misconception.** `triu` begins above the diagonal.
#
# **Hint.** It begins on the diagonal. The first row is `nan`, because nothing in it is visible.

# %%
def causal_weights(scores, d_k):
    hidden = torch.ones_like(scores).triu() == 1
    return torch.softmax(mask_scores(scores, hidden) / math.sqrt(d_k), dim=-1)

# %% [markdown]
# ## wrong: past_hidden
#
# **Misconception.** The mask says what stays visible.
#
# **Hint.** True means hidden here, and this hides the past. The first row should hold a single 1.

# %%
def causal_weights(scores, d_k):
    hidden = torch.ones_like(scores).tril(diagonal=-1) == 1
    return torch.softmax(mask_scores(scores, hidden) / math.sqrt(d_k), dim=-1)

# %% [markdown]
# ## wrong: times_infinity
#
# **Misconception.** 0 times minus infinity is 0.
#
# **Hint.** It is `nan`. Fill with minus infinity instead of multiplying.

# %%
def causal_weights(scores, d_k):
    bias = torch.ones_like(scores).triu(diagonal=1) * float("-inf")
    return torch.softmax(scores / math.sqrt(d_k) + bias, dim=-1)

# %% [markdown]
# ## wrong: mask_added
#
# **Misconception.** The mask is to be added to the scores.
#
# **Hint.** A mask of 0 and -inf may be added. This one is of False and True, and raises the hidden
# scores by 1.

# %%
def causal_weights(scores, d_k):
    hidden = future_mask(scores.shape[-1]).to(scores.device)
    return torch.softmax((scores + hidden) / math.sqrt(d_k), dim=-1)

# %% [markdown]
# ## wrong: no_scale
#
# **Misconception.** The scale was a matter of lesson 01.
#
# **Hint.** It is still needed: `d_k` is an argument. Divide by its square root.

# %%
def causal_weights(scores, d_k):
    return torch.softmax(mask_scores(scores, future_mask(scores.shape[-1]).to(scores.device)), dim=-1)

# %% [markdown]
# ## wrong: without_root
#
# **Misconception.** The scores are divided by d_k.
#
# **Hint.** The spread of a dot product grows with the square root of d_k.

# %%
def causal_weights(scores, d_k):
    hidden = future_mask(scores.shape[-1]).to(scores.device)
    return torch.softmax(mask_scores(scores, hidden) / d_k, dim=-1)

# %% [markdown]
# ## wrong: scaled_by_the_tokens
#
# **Misconception.** d_k is the size of the score matrix.
#
# **Hint.** The last dimension of the scores counts keys. d_k counts the numbers in one key, and it
# is handed to you.

# %%
def causal_weights(scores, d_k):
    n = scores.shape[-1]
    return torch.softmax(mask_scores(scores, future_mask(n).to(scores.device)) / math.sqrt(n), dim=-1)

# %% [markdown]
# ## wrong: softmax_over_queries
#
# **Misconception.** The softmax runs over dimension 1.
#
# **Hint.** In a matrix that is the keys, in a batch it is not. The keys are always the last
# dimension.

# %%
def causal_weights(scores, d_k):
    hidden = future_mask(scores.shape[-1]).to(scores.device)
    return torch.softmax(mask_scores(scores, hidden) / math.sqrt(d_k), dim=1)

# %% [markdown]
# ## wrong: mask_of_the_first_dimension
#
# **Misconception.** The length of a tensor is the number of tokens.
#
# **Hint.** `len` gives the first dimension, which is the number of sentences when there is a batch.

# %%
def causal_weights(scores, d_k):
    hidden = future_mask(len(scores)).to(scores.device)
    return torch.softmax(mask_scores(scores, hidden) / math.sqrt(d_k), dim=-1)

# %% [markdown]
# ## wrong: not_stable
#
# **Misconception.** Once the future is hidden a bare `exp` will do.
#
# **Hint.** Visible scores may be 10,000 too, and `exp(89)` is infinite in float32. `torch.softmax`
# takes care of that.

# %%
def causal_weights(scores, d_k):
    hidden = future_mask(scores.shape[-1]).to(scores.device)
    powers = (mask_scores(scores, hidden) / math.sqrt(d_k)).exp()
    return powers / powers.sum(dim=-1, keepdim=True)

# %% [markdown]
# ## wrong: hidden_gradient_spoiled
#
# **Misconception.** It is enough to choose at the end, then nothing of the rest matters.
#
# **Hint.** The way back runs through what was not chosen: 0 times an infinite `exp` is `nan`. Hide
# the scores before `exp`.

# %%
def causal_weights(scores, d_k):
    hidden = future_mask(scores.shape[-1]).to(scores.device)
    scaled = scores / math.sqrt(d_k)
    largest = scaled.masked_fill(hidden, float("-inf")).amax(dim=-1, keepdim=True)
    powers = (scaled - largest).exp().masked_fill(hidden, 0.0)
    return powers / powers.sum(dim=-1, keepdim=True)

# %% [markdown]
# ## wrong: result_in_float32
#
# **Misconception.** Weights are always float32.
#
# **Hint.** The result has the type of the scores, float64 included.

# %%
def causal_weights(scores, d_k):
    hidden = future_mask(scores.shape[-1]).to(scores.device)
    return torch.softmax(mask_scores(scores, hidden) / math.sqrt(d_k), dim=-1, dtype=torch.float32)

# %% [markdown]
# ## wrong: detached
#
# **Misconception.** Weights are only looked at and need not be trained through.
#
# **Hint.** The layers that made the scores learn through them. The gradient has to pass.

# %%
def causal_weights(scores, d_k):
    with torch.no_grad():
        hidden = future_mask(scores.shape[-1]).to(scores.device)
        return torch.softmax(mask_scores(scores, hidden) / math.sqrt(d_k), dim=-1)

# %% [markdown]
# ## wrong: changed_in_place
#
# **Misconception.** `masked_fill_` gives a new tensor.
#
# **Hint.** The underscore says that it changes the tensor itself, and so the caller's. Leave it
# out.

# %%
def causal_weights(scores, d_k):
    with torch.no_grad():
        scores.masked_fill_(future_mask(scores.shape[-1]).to(scores.device), float("-inf"))
    return torch.softmax(scores / math.sqrt(d_k), dim=-1)

# %% [markdown]
# ## wrong: squeezed
#
# **Misconception.** A batch of one-word sentences can lose its last dimensions.
#
# **Hint.** The result is as large as the scores, (..., n, n), also when n is 1.

# %%
def causal_weights(scores, d_k):
    hidden = future_mask(scores.shape[-1]).to(scores.device)
    return torch.softmax(mask_scores(scores, hidden) / math.sqrt(d_k), dim=-1).squeeze()

# %% [markdown]
# ## wrong: clamped
#
# **Misconception.** Scores beyond 50 make no difference to a softmax.
#
# **Hint.** Two visible scores of 10,000 and 10,002 differ by 2, and that is what counts. Do not cut
# them off.

# %%
def causal_weights(scores, d_k):
    hidden = future_mask(scores.shape[-1]).to(scores.device)
    scaled = (scores / math.sqrt(d_k)).clamp(-50, 50)
    return torch.softmax(mask_scores(scaled, hidden), dim=-1)

# %% [markdown]
# ## wrong: size_limited
#
# **Misconception.** No sentence is longer than the longest one in the lesson.
#
# **Hint.** Some are. The mask is as large as the last dimension of the scores.

# %%
def causal_weights(scores, d_k):
    n = scores.shape[-1]
    hidden = future_mask(16).to(scores.device)[:n, :n]
    return torch.softmax(mask_scores(scores, hidden) / math.sqrt(d_k), dim=-1)

# %% [markdown]
# ## wrong: sentence_by_sentence
#
# **Misconception.** What a loop over a batch hands out is a matrix, and its keys run along
# dimension 1.
#
# **Hint.** With several heads it hands out three dimensions, and the keys are the last. Write -1.

# %%
def causal_weights(scores, d_k):
    hidden = future_mask(scores.shape[-1]).to(scores.device)
    masked = mask_scores(scores, hidden) / math.sqrt(d_k)
    if scores.ndim == 2:
        return torch.softmax(masked, dim=1)
    return torch.stack([torch.softmax(sentence, dim=1) for sentence in masked])

# %% [markdown]
# ## wrong: sums_stood_up_when_needed
#
# **Misconception.** In a batch the row sums need another dimension only where the sizes do not
# fit.
#
# **Hint.** With as many sentences as tokens they fit, but along the wrong dimension. Keep the
# summed dimension always.

# %%
def causal_weights(scores, d_k):
    hidden = future_mask(scores.shape[-1]).to(scores.device)
    masked = mask_scores(scores, hidden) / math.sqrt(d_k)
    powers = torch.exp(masked - masked.amax(dim=-1, keepdim=True))
    sums = powers.sum(dim=-1)
    if scores.ndim == 2 or len(sums) != scores.shape[-1]:
        sums = sums.unsqueeze(-1)
    return powers / sums

# %% [markdown]
# ## wrong: one_number_refused
#
# **Misconception.** A key of one number makes no sense.
#
# **Hint.** It does: the root of 1 is 1, and the scores stay as they are.

# %%
def causal_weights(scores, d_k):
    if d_k < 2:
        raise ValueError(f"d_k must be at least 2, got {d_k}")
    hidden = future_mask(scores.shape[-1]).to(scores.device)
    return torch.softmax(mask_scores(scores, hidden) / math.sqrt(d_k), dim=-1)

# %% [markdown]
# ## wrong: cut_at_four_thousand
#
# **Misconception.** After the scale no score is above 4,000.
#
# **Hint.** Scores may be 10,000, and differ by 1 up there. Cutting makes them equal.

# %%
def causal_weights(scores, d_k):
    hidden = future_mask(scores.shape[-1]).to(scores.device)
    scaled = (scores / math.sqrt(d_k)).clamp(max=4000)
    return torch.softmax(mask_scores(scaled, hidden), dim=-1)

# %% [markdown]
# ## wrong: mean_subtracted
#
# **Misconception.** The mean of the visible scores makes a row safe for `exp`.
#
# **Hint.** A visible score may lie thousands above the mean, and its `exp` is infinite. Nothing
# above 0 may be left.

# %%
def causal_weights(scores, d_k):
    visible = torch.ones_like(scores).tril() == 1
    scaled = scores / math.sqrt(d_k)
    mean = (scaled * visible).sum(dim=-1, keepdim=True) / visible.sum(dim=-1, keepdim=True)
    powers = (scaled - mean).masked_fill(~visible, float("-inf")).exp()
    return powers / powers.sum(dim=-1, keepdim=True)

# %% [markdown]
# ## wrong: float32_inside
#
# **Misconception.** float32 is precise enough on the way, as long as the result has the right
# type.
#
# **Hint.** What is rounded off on the way is lost. Compute in the type that comes in.

# %%
def causal_weights(scores, d_k):
    hidden = future_mask(scores.shape[-1]).to(scores.device)
    return torch.softmax(mask_scores(scores.float(), hidden) / math.sqrt(d_k), dim=-1).to(scores.dtype)

# %% [markdown]
# ## wrong: ten_thousand_below
#
# **Misconception.** Minus ten thousand is as good as minus infinity.
#
# **Hint.** A visible score may be as low as that; then the hidden ones count as much. Only minus infinity is
# below every score.

# %%
def causal_weights(scores, d_k):
    hidden = torch.ones_like(scores, dtype=torch.bool).triu(diagonal=1)
    return torch.softmax((scores / math.sqrt(d_k)).masked_fill(hidden, -1e4), dim=-1)

# %% [markdown]
# ## wrong: one_token_left_as_it_is
#
# **Misconception.** One token alone has nobody to attend to, so nothing is to be done.
#
# **Hint.** It attends to itself, with a weight of 1. The general way gives that without a special case.

# %%
def causal_weights(scores, d_k):
    if scores.shape[-1] == 1:
        return scores
    hidden = torch.ones_like(scores, dtype=torch.bool).triu(diagonal=1)
    return torch.softmax(scores.masked_fill(hidden, float("-inf")) / math.sqrt(d_k), dim=-1)
