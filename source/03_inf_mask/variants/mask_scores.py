# %% [markdown]
# # mask_scores
#
# 1. Every entry is one of two numbers: minus infinity or the score. Lesson 02's `apply_mask` chose
#    between two numbers as well.
# 2. `tensor.masked_fill(mask, value)` puts a value where the mask is True, and `torch.where(mask, a, b)`
#    picks. Both stretch a smaller mask by themselves.
# 3. The value is `float("-inf")`. Mind that `masked_fill` gives a new tensor, and that the name with
#    an underscore changes the caller's.

# %% [markdown]
# ## right: where
#
# One of two values for each entry.

# %%
def mask_scores(scores, mask):
    return torch.where(mask, -torch.inf, scores)

# %% [markdown]
# ## right: added
#
# A matrix of 0 and -inf is made by filling, and added.

# %%
def mask_scores(scores, mask):
    bias = torch.zeros(mask.shape, dtype=scores.dtype, device=scores.device)
    return scores + bias.masked_fill(mask, -math.inf)

# %% [markdown]
# ## right: fill_the_copy
#
# In place, but on a copy.

# %%
def mask_scores(scores, mask):
    assert mask.dtype == torch.bool
    return scores.clone().masked_fill_(mask, float("-inf"))

# %% [markdown]
# ## right: copy_and_index
#
# The mask is stretched, then used as an index.

# %%
def mask_scores(scores, mask):
    result = scores.clone()
    result[mask.expand_as(scores)] = -float("inf")
    return result

# %% [markdown]
# ## right: logarithm_of_the_visible
#
# The logarithm of 0 is minus infinity, that of 1 is 0.

# %%
def mask_scores(scores, mask):
    return scores + (~mask).to(scores.dtype).log()

# %% [markdown]
# ## right: scattered_into_infinities
#
# A tensor of minus infinities receives the visible scores.

# %%
def mask_scores(scores, mask):
    visible = torch.broadcast_to(~mask, scores.shape)
    nothing = torch.full_like(scores, -torch.inf)
    return nothing.masked_scatter(visible, scores[visible])

# %% [markdown]
# ## right: divided_by_zero
#
# -1 divided by 0 is minus infinity.

# %%
def mask_scores(scores, mask):
    shown = torch.logical_not(mask)
    hidden_value = torch.tensor(-1.0, dtype=scores.dtype, device=scores.device) / 0
    result = torch.where(shown, scores, hidden_value)
    assert result.shape == scores.shape
    return result

# %% [markdown]
# ## right: matrix_by_matrix
#
# Leading dimensions one at a time.

# %%
def mask_scores(scores, mask):
    mask = mask.broadcast_to(scores.shape)
    if scores.dim() > 2:
        return torch.stack([mask_scores(s, m) for s, m in zip(scores, mask)])
    rows = [s.masked_fill(m, float("-inf")) for s, m in zip(scores, mask)]
    return torch.stack(rows)

# %% [markdown]
# ## wrong: result_dropped
#
# **Misconception.** `masked_fill` changes its tensor.
#
# **Hint.** It returns a new one and leaves the old one as it was. Nothing is hidden in your result.

# %%
def mask_scores(scores, mask):
    scores.masked_fill(mask, float("-inf"))
    return scores

# %% [markdown]
# ## wrong: changed_in_place
#
# **Misconception.** The caller does not need the scores any more.
#
# **Hint.** The underscore says that the caller's tensor is changed. Without it you get a new one.

# %%
def mask_scores(scores, mask):
    with torch.no_grad():
        scores.masked_fill_(mask, float("-inf"))
    return scores + 0

# %% [markdown]
# ## wrong: mask_changed_in_place
#
# **Misconception.** The mask may be turned round where it is.
#
# **Hint.** The next layer uses the same mask, and finds it inverted. Make a new tensor from it.

# %%
def mask_scores(scores, mask):
    mask.logical_not_()
    return torch.where(mask, scores, float("-inf"))

# %% [markdown]
# ## wrong: visible_filled
#
# **Misconception.** True means: may look, as in lesson 02.
#
# **Hint.** Here True means hidden. Where does your result hold minus infinity?

# %%
def mask_scores(scores, mask):
    return scores.masked_fill(~mask, float("-inf"))

# %% [markdown]
# ## wrong: times_infinity
#
# **Misconception.** False times minus infinity is 0.
#
# **Hint.** 0 times infinity is `nan`, and so every visible score is lost. Choose instead of
# multiplying.

# %%
def mask_scores(scores, mask):
    return scores + mask * float("-inf")

# %% [markdown]
# ## wrong: ones_added
#
# **Misconception.** Adding the mask hides what it marks.
#
# **Hint.** True counts as 1. A score raised by 1 gets more weight, not none.

# %%
def mask_scores(scores, mask):
    return scores + mask

# %% [markdown]
# ## wrong: ones_subtracted
#
# **Misconception.** Lowering a score by 1 hides it.
#
# **Hint.** It weakens it a little. A hidden score must get a weight of exactly 0.

# %%
def mask_scores(scores, mask):
    return scores - mask.to(scores.dtype)

# %% [markdown]
# ## wrong: large_number
#
# **Misconception.** -1e9 is minus infinity for all purposes.
#
# **Hint.** Often it works, but it is a finite number, and float16 cannot hold it. Minus infinity is
# asked for.

# %%
def mask_scores(scores, mask):
    return scores.masked_fill(mask, -1e9)

# %% [markdown]
# ## wrong: lowest_number
#
# **Misconception.** Below the lowest number of a type there is nothing.
#
# **Hint.** Below it there is minus infinity, and that is what is asked for. Part 5 comes back to
# the lowest number.

# %%
def mask_scores(scores, mask):
    return scores.masked_fill(mask, torch.finfo(scores.dtype).min)

# %% [markdown]
# ## wrong: zeros
#
# **Misconception.** A score of 0 gets no weight.
#
# **Hint.** `exp(0)` is 1. That was right for weights in lesson 02, after the softmax.

# %%
def mask_scores(scores, mask):
    return scores.masked_fill(mask, 0.0)

# %% [markdown]
# ## wrong: plus_infinity
#
# **Misconception.** Infinity hides, whatever its sign.
#
# **Hint.** `exp` of plus infinity is infinite: the hidden key would take everything. Mind the sign.

# %%
def mask_scores(scores, mask):
    return scores.masked_fill(mask, float("inf"))

# %% [markdown]
# ## wrong: nan_filled
#
# **Misconception.** "Not a number" is the right mark for what is not to be counted.
#
# **Hint.** The softmax does not skip a `nan`, it spreads it over the whole row.

# %%
def mask_scores(scores, mask):
    return scores.masked_fill(mask, float("nan"))

# %% [markdown]
# ## wrong: zeros_hidden_too
#
# **Misconception.** What is 0 after the mask has been applied is hidden.
#
# **Hint.** A visible score can be exactly 0. Use the mask itself to say what is hidden.

# %%
def mask_scores(scores, mask):
    kept = scores.masked_fill(mask, 0.0)
    return kept.masked_fill(kept == 0, float("-inf"))

# %% [markdown]
# ## wrong: always_the_future
#
# **Misconception.** A mask always hides the future.
#
# **Hint.** The function is handed a mask. Padding masks look different, so use the one you get.

# %%
def mask_scores(scores, mask):
    return scores.masked_fill(future_mask(scores.shape[-1]).to(scores.device), float("-inf"))

# %% [markdown]
# ## wrong: mask_turned
#
# **Misconception.** Rows of the mask are keys.
#
# **Hint.** Row i of scores and of mask both belong to query i. Leave the mask as it is.

# %%
def mask_scores(scores, mask):
    return scores.masked_fill(mask.mT, float("-inf"))

# %% [markdown]
# ## wrong: index_without_stretching
#
# **Misconception.** A mask used as an index is stretched by itself.
#
# **Hint.** An index must have the full shape, or it selects other things. `masked_fill` and
# `torch.where` stretch it for you.

# %%
def mask_scores(scores, mask):
    result = scores.clone()
    result[mask] = float("-inf")
    return result

# %% [markdown]
# ## wrong: last_two_dimensions_only
#
# **Misconception.** A mask has two dimensions.
#
# **Hint.** `(b, 1, n, n)` is a mask as well, another one for each sentence. The shapes need not be
# equal, they only have to fit.

# %%
def mask_scores(scores, mask):
    while mask.dim() > 2:
        mask = mask[0]
    return scores.masked_fill(mask, float("-inf"))

# %% [markdown]
# ## wrong: any_sentence_counts
#
# **Misconception.** What is hidden in one sentence is hidden in all.
#
# **Hint.** Every sentence has its own length. A mask with a batch dimension says it for each of
# them.

# %%
def mask_scores(scores, mask):
    while mask.dim() > 2:
        mask = mask.any(dim=0)
    return scores.masked_fill(mask, float("-inf"))

# %% [markdown]
# ## wrong: broadcasting_refused
#
# **Misconception.** Mask and scores have the same shape.
#
# **Hint.** A smaller mask is stretched, one matrix for a whole batch of heads. Refuse nothing here.

# %%
def mask_scores(scores, mask):
    assert mask.shape == scores.shape
    return scores.masked_fill(mask, float("-inf"))

# %% [markdown]
# ## wrong: square_masks_only
#
# **Misconception.** A mask has a row for every query.
#
# **Hint.** `(1, n)` is one row for all queries and `(n, 1)` one column for all keys. Do not rebuild
# its shape, let it be stretched.

# %%
def mask_scores(scores, mask):
    n = scores.shape[-1]
    mask = mask[..., :n, :n].reshape(*mask.shape[:-2], n, n)
    return scores.masked_fill(mask, float("-inf"))

# %% [markdown]
# ## wrong: result_in_float32
#
# **Misconception.** Scores are always float32.
#
# **Hint.** The result has the type of the scores, float64 included.

# %%
def mask_scores(scores, mask):
    return torch.where(mask, float("-inf"), scores.float())

# %% [markdown]
# ## wrong: clamped
#
# **Misconception.** Large scores should be cut off on this occasion.
#
# **Hint.** A visible score stays as it is, however large.

# %%
def mask_scores(scores, mask):
    return scores.clamp(-1000, 1000).masked_fill(mask, float("-inf"))

# %% [markdown]
# ## wrong: detached
#
# **Misconception.** Masking is no part of the training.
#
# **Hint.** The gradient of the visible scores has to pass through here.

# %%
def mask_scores(scores, mask):
    return scores.detach().masked_fill(mask, float("-inf"))

# %% [markdown]
# ## wrong: heads_for_sentences
#
# **Misconception.** A mask with one head for each sentence can lose that dimension.
#
# **Hint.** Without it `(b, 1, n, n)` becomes `(b, n, n)`, and is lined up with the heads. With as many heads as sentences nothing
# complains: the mask of sentence i goes to head i.

# %%
def mask_scores(scores, mask):
    try:
        return scores.masked_fill(mask.squeeze(1) if mask.dim() == 4 else mask, float("-inf"))
    except RuntimeError:
        return scores.masked_fill(mask, float("-inf"))

# %% [markdown]
# ## wrong: batch_of_one_dropped
#
# **Misconception.** A first dimension of size 1 is not needed.
#
# **Hint.** A batch of one sentence is still a batch. The result has the shape of the scores.

# %%
def mask_scores(scores, mask):
    return scores.masked_fill(mask, float("-inf")).squeeze(0)

# %% [markdown]
# ## wrong: one_mask_for_each_sentence
#
# **Misconception.** A batch has three dimensions: sentences, queries, keys.
#
# **Hint.** With several heads it has four. `(n, n)` fits to any number of dimensions in front by
# itself.

# %%
def mask_scores(scores, mask):
    if scores.ndim > mask.ndim == 2:
        mask = mask.expand(len(scores), *mask.shape)
    return scores.masked_fill(mask, float("-inf"))

# %% [markdown]
# ## wrong: heads_counted_with_len
#
# **Misconception.** `len(scores)` is the number of heads.
#
# **Hint.** It is the first dimension, the number of sentences. A mask of (b, 1, n, n) stretches
# over the heads by itself.

# %%
def mask_scores(scores, mask):
    if mask.ndim == 4:
        mask = mask.repeat(1, len(scores), 1, 1)
    return scores.masked_fill(mask, float("-inf"))

# %% [markdown]
# ## wrong: keys_taken_for_queries
#
# **Misconception.** A mask of n numbers belongs to the n queries.
#
# **Hint.** Its shape says to whom it belongs: (1, n) is one number for each key. Leave the shape
# as it is.

# %%
def mask_scores(scores, mask):
    n = scores.shape[-1]
    if mask.numel() == n:
        mask = mask.reshape(n, 1)
    return scores.masked_fill(mask, float("-inf"))

# %% [markdown]
# ## wrong: queries_taken_for_keys
#
# **Misconception.** A mask of n numbers belongs to the n keys.
#
# **Hint.** Its shape says to whom it belongs: (n, 1) is one number for each query. Leave the
# shape as it is.

# %%
def mask_scores(scores, mask):
    n = scores.shape[-1]
    if mask.numel() == n:
        mask = mask.reshape(1, n)
    return scores.masked_fill(mask, float("-inf"))

# %% [markdown]
# ## wrong: all_hidden_refused
#
# **Misconception.** A mask that hides everything must be a mistake.
#
# **Hint.** It is not: a blank line in a batch has nothing but pads. Hide what the mask says.

# %%
def mask_scores(scores, mask):
    if mask.all():
        raise ValueError("mask hides every key")
    return scores.masked_fill(mask, float("-inf"))

# %% [markdown]
# ## wrong: float32_inside
#
# **Misconception.** float32 is precise enough on the way, as long as the result has the right
# type.
#
# **Hint.** What is rounded off on the way is lost. Compute in the type that comes in.

# %%
def mask_scores(scores, mask):
    return scores.float().masked_fill(mask, float("-inf")).to(scores.dtype)

# %% [markdown]
# ## wrong: three_dimensions_are_sentences
#
# **Misconception.** A mask of three dimensions has one matrix for each sentence.
#
# **Hint.** It may have one for each head: broadcasting compares shapes from the right. Do not add a
# dimension that nobody asked for.

# %%
def mask_scores(scores, mask):
    if mask.ndim == 3 and scores.ndim == 4:
        mask = mask.unsqueeze(1)
    return scores.masked_fill(mask, float("-inf"))
