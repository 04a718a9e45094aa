# %% [markdown]
# # masked_softmax
#
# 1. A row with everything hidden is a case of its own. How do you find out which rows those are?
#    Mind that the mask may be smaller than the scores.
# 2. `mask.all(dim=-1, keepdim=True)` says it, once the mask is stretched to the shape of the scores.
#    In such a row let the softmax see plain scores instead of minus infinities: no `nan` arises.
# 3. What it gives there is not wanted, so put zeros in its place afterwards with `masked_fill`. Both
#    steps choose, and so no gradient comes back to such a row.

# %% [markdown]
# ## right: lowest_finite_number
#
# The lowest number instead of minus infinity, then zeros where the mask is.

# %%
def masked_softmax(scores, mask):
    filled = scores.masked_fill(mask, torch.finfo(scores.dtype).min)
    return torch.softmax(filled, dim=-1).masked_fill(mask, 0.0)

# %% [markdown]
# ## right: nan_replaced
#
# The fill lets no gradient through to hidden scores, so the nan on the way back ends there.

# %%
def masked_softmax(scores, mask):
    weights = torch.softmax(scores.masked_fill(mask, -math.inf), dim=-1)
    return torch.nan_to_num(weights, nan=0.0)

# %% [markdown]
# ## right: from_exp_and_sums
#
# A stable softmax of its own, with a guard for sums of 0.

# %%
def masked_softmax(scores, mask):
    hidden = mask.broadcast_to(scores.shape)
    filled = scores.masked_fill(hidden, float("-inf"))
    largest = filled.amax(dim=-1, keepdim=True).detach()
    largest = torch.where(largest.isfinite(), largest, 0.0)
    powers = (filled - largest).exp()
    sums = powers.sum(dim=-1, keepdim=True)
    return powers / torch.where(sums > 0, sums, 1.0)

# %% [markdown]
# ## right: number_added_then_multiplied
#
# A large finite number is subtracted, and the mask multiplied in at the end; nothing is infinite.

# %%
def masked_softmax(scores, mask):
    visible = (~mask).to(scores.dtype)
    weights = nn.functional.softmax(scores - 1e9 * (1 - visible), dim=-1)
    result = weights * visible
    assert result.shape == scores.shape
    return result

# %% [markdown]
# ## right: row_by_row
#
# Every row on its own, over its visible keys alone.

# %%
def masked_softmax(scores, mask):
    n = scores.shape[-1]
    flat_scores = scores.reshape(-1, n)
    flat_mask = torch.broadcast_to(mask, scores.shape).reshape(-1, n)
    rows = []
    for row, hidden in zip(flat_scores, flat_mask):
        result = torch.zeros_like(row)
        if not hidden.all():
            result[~hidden] = torch.softmax(row[~hidden], dim=0)
        rows.append(result)
    return torch.stack(rows).view(scores.shape)

# %% [markdown]
# ## right: one_key_more
#
# A key with a score far below everything takes the weight of a row that has nothing else.

# %%
def masked_softmax(scores, mask):
    nobody = torch.full_like(scores[..., :1], -1e6)
    filled = torch.where(mask, -torch.inf, scores)
    return torch.softmax(torch.cat([filled, nobody], dim=-1), dim=-1)[..., :-1]

# %% [markdown]
# ## right: bias_without_the_hidden_rows
#
# Minus infinity is added, but not in rows that would have nothing else.

# %%
def masked_softmax(scores, mask):
    mask = mask.expand_as(scores)
    alone = mask.all(-1, keepdim=True)
    bias = torch.zeros_like(scores).masked_fill(mask ^ alone, -math.inf)
    return torch.where(alone, torch.zeros_like(scores), (scores + bias).softmax(-1))

# %% [markdown]
# ## right: logsumexp
#
# The logarithm of the sum of each row, with 0 in its place where there is no sum.

# %%
def masked_softmax(scores, mask):
    empty = mask.expand(scores.shape).all(dim=-1, keepdim=True)
    shown = torch.where(empty, torch.zeros_like(scores), scores.masked_fill(mask, -torch.inf))
    return (shown - shown.logsumexp(dim=-1, keepdim=True)).exp() * ~empty

# %% [markdown]
# ## wrong: nothing_done
#
# **Misconception.** A row with everything hidden takes care of itself.
#
# **Hint.** Its largest score is -inf, and -inf minus -inf is `nan`. Such rows must become zeros, and
# not by a product: `nan` times 0 is `nan`.

# %%
def masked_softmax(scores, mask):
    return torch.softmax(mask_scores(scores, mask), dim=-1)

# %% [markdown]
# ## wrong: nan_covered_up
#
# **Misconception.** A `nan` that is replaced by a zero at the end is gone.
#
# **Hint.** On the way back the softmax meets its own `nan`, and the sum hands it on to the scores. See
# to it that none arises.

# %%
def masked_softmax(scores, mask):
    bias = torch.zeros_like(scores).masked_fill(mask, float("-inf"))
    return torch.softmax(scores + bias, dim=-1).nan_to_num(0.0)

# %% [markdown]
# ## wrong: even_shares
#
# **Misconception.** With the lowest finite number a hidden row gets no weight.
#
# **Hint.** All its scores are equal then, so every hidden key gets the same share. It should get none.

# %%
def masked_softmax(scores, mask):
    return torch.softmax(scores.masked_fill(mask, torch.finfo(scores.dtype).min), dim=-1)

# %% [markdown]
# ## wrong: mask_after_the_softmax
#
# **Misconception.** Softmax, then zeros, then divide: that is the same.
#
# **Hint.** Not where hidden scores are far above the visible ones. There the visible weights are lost
# before the mask comes.

# %%
def masked_softmax(scores, mask):
    weights = torch.softmax(scores, dim=-1).masked_fill(mask, 0.0)
    sums = weights.sum(dim=-1, keepdim=True)
    return weights / sums.masked_fill(sums == 0, 1.0)

# %% [markdown]
# ## wrong: not_renormalised
#
# **Misconception.** Zeros in the hidden places are all that matters.
#
# **Hint.** What do the other rows add up to? The softmax must see the visible keys alone.

# %%
def masked_softmax(scores, mask):
    return torch.softmax(scores, dim=-1).masked_fill(mask, 0.0)

# %% [markdown]
# ## wrong: multiplied_before_it_is_hidden
#
# **Misconception.** What is multiplied by 0 in the end does no harm.
#
# **Hint.** `exp` of a hidden score of 10,000 is infinite, and infinity times 0 is `nan`. Hide before
# `exp`.

# %%
def masked_softmax(scores, mask):
    visible = (~mask).to(scores.dtype)
    largest = scores.masked_fill(mask, -1e9).amax(dim=-1, keepdim=True)
    powers = (scores - largest).exp() * visible
    sums = powers.sum(dim=-1, keepdim=True)
    return powers / torch.where(sums > 0, sums, 1.0)

# %% [markdown]
# ## wrong: small_finite_number
#
# **Misconception.** -10,000 is low enough for any score.
#
# **Hint.** Visible scores may be as low as that, and then the hidden ones take a share of the whole.

# %%
def masked_softmax(scores, mask):
    return torch.softmax(scores.masked_fill(mask, -1e4), dim=-1).masked_fill(mask, 0.0)

# %% [markdown]
# ## wrong: small_number_in_the_sum
#
# **Misconception.** A small number added to the sum only matters where the sum is 0.
#
# **Hint.** It is a part of every sum. Near scores of -10,000 it is all there is, and even elsewhere the
# rows no longer add up to 1.

# %%
def masked_softmax(scores, mask):
    powers = mask_scores(scores, mask).exp()
    return powers / (powers.sum(dim=-1, keepdim=True) + 1e-3)

# %% [markdown]
# ## wrong: not_stable
#
# **Misconception.** Once the mask is applied a bare `exp` will do.
#
# **Hint.** `exp(89)` is infinite in float32, and `exp(-104)` is 0. Visible scores may be far beyond
# both.

# %%
def masked_softmax(scores, mask):
    powers = mask_scores(scores, mask).exp()
    sums = powers.sum(dim=-1, keepdim=True)
    return powers / sums.masked_fill(sums == 0, 1.0)

# %% [markdown]
# ## wrong: one_row_stands_for_all
#
# **Misconception.** If one row is hidden, all are.
#
# **Hint.** The other rows still want their weights. Decide for each row alone, with dimension -1.

# %%
def masked_softmax(scores, mask):
    if mask.expand(scores.shape).all(dim=-1).any():
        return 0 * scores
    return torch.softmax(mask_scores(scores, mask), dim=-1)

# %% [markdown]
# ## wrong: only_when_all_is_hidden
#
# **Misconception.** Trouble comes only when the whole mask is True.
#
# **Hint.** One row with everything hidden is enough for a `nan`. Ask row by row.

# %%
def masked_softmax(scores, mask):
    if mask.all():
        return 0 * scores
    return torch.softmax(mask_scores(scores, mask), dim=-1)

# %% [markdown]
# ## wrong: columns_asked
#
# **Misconception.** `dim=-2` runs along a row.
#
# **Hint.** Dimension -2 runs over the queries. A row is hidden when all its keys are, dimension -1.

# %%
def masked_softmax(scores, mask):
    mask = mask.expand(scores.shape)
    empty = mask.all(dim=-2, keepdim=True)
    return torch.softmax(mask_scores(scores, mask & ~empty), dim=-1).masked_fill(empty, 0.0)

# %% [markdown]
# ## wrong: square_masks_only
#
# **Misconception.** A mask has the last two dimensions of the scores.
#
# **Hint.** `(1, n)` and `(n, 1)` are masks too, and `(2, 1, 1)`. Stretch the mask to the shape of the scores first.

# %%
def masked_softmax(scores, mask):
    n = scores.shape[-1]
    mask = mask.reshape(*mask.shape[:-2], n, n)
    empty = mask.all(dim=-1, keepdim=True)
    return torch.softmax(mask_scores(scores, mask & ~empty), dim=-1).masked_fill(empty, 0.0)

# %% [markdown]
# ## wrong: same_shape_only
#
# **Misconception.** Mask and scores have the same shape.
#
# **Hint.** An index must have the full shape, and a smaller mask is not stretched for it.
# `mask.expand(scores.shape)` does it.

# %%
def masked_softmax(scores, mask):
    powers = scores.masked_fill(mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(powers, dim=-1)
    weights = weights.clone()
    weights[mask] = 0
    return weights

# %% [markdown]
# ## wrong: first_sentence_only
#
# **Misconception.** All sentences share one mask.
#
# **Hint.** A mask with a batch dimension has another matrix for each sentence.

# %%
def masked_softmax(scores, mask):
    while mask.dim() > 2:
        mask = mask[0]
    mask = mask.expand(scores.shape)
    empty = mask.all(dim=-1, keepdim=True)
    return torch.softmax(mask_scores(scores, mask & ~empty), dim=-1).masked_fill(empty, 0.0)

# %% [markdown]
# ## wrong: visible_hidden
#
# **Misconception.** True means: may look.
#
# **Hint.** True means hidden. Your weights lie where the mask is True.

# %%
def masked_softmax(scores, mask):
    mask = ~mask.expand(scores.shape)
    empty = mask.all(dim=-1, keepdim=True)
    return torch.softmax(mask_scores(scores, mask & ~empty), dim=-1).masked_fill(empty, 0.0)

# %% [markdown]
# ## wrong: zeros_hidden_too
#
# **Misconception.** What is 0 after the fill is hidden.
#
# **Hint.** A visible score may be exactly 0. Use the mask itself to say what is hidden.

# %%
def masked_softmax(scores, mask):
    kept = scores.masked_fill(mask, 0.0)
    hidden = kept == 0
    empty = hidden.all(dim=-1, keepdim=True)
    return torch.softmax(mask_scores(kept, hidden & ~empty), dim=-1).masked_fill(empty, 0.0)

# %% [markdown]
# ## wrong: diagonal_kept_visible
#
# **Misconception.** Every token can at least look at itself.
#
# **Hint.** The mask decides. A pad must not be looked at, not even by itself.

# %%
def masked_softmax(scores, mask):
    itself = torch.eye(scores.shape[-1], dtype=torch.bool, device=scores.device)
    return torch.softmax(mask_scores(scores, mask & ~itself), dim=-1)

# %% [markdown]
# ## wrong: scaled
#
# **Misconception.** A softmax of scores always comes with a scale.
#
# **Hint.** Here no `d_k` is handed over: the scores are taken as they are.

# %%
def masked_softmax(scores, mask):
    mask = mask.expand(scores.shape)
    empty = mask.all(dim=-1, keepdim=True)
    scaled = scores / math.sqrt(scores.shape[-1])
    return torch.softmax(mask_scores(scaled, mask & ~empty), dim=-1).masked_fill(empty, 0.0)

# %% [markdown]
# ## wrong: softmax_over_queries
#
# **Misconception.** The softmax runs over dimension 1.
#
# **Hint.** In a matrix that is the keys, in a batch it is not. The keys are always the last dimension.

# %%
def masked_softmax(scores, mask):
    mask = mask.expand(scores.shape)
    empty = mask.all(dim=-1, keepdim=True)
    return torch.softmax(mask_scores(scores, mask & ~empty), dim=1).masked_fill(empty, 0.0)

# %% [markdown]
# ## wrong: result_in_float32
#
# **Misconception.** Weights are always float32.
#
# **Hint.** The result has the type of the scores, float64 included.

# %%
def masked_softmax(scores, mask):
    mask = mask.expand(scores.shape)
    empty = mask.all(dim=-1, keepdim=True)
    weights = torch.softmax(mask_scores(scores, mask & ~empty), dim=-1, dtype=torch.float32)
    return weights.masked_fill(empty, 0.0)

# %% [markdown]
# ## wrong: detached
#
# **Misconception.** A row of zeros has no gradient, so none is needed.
#
# **Hint.** The other rows learn. Their gradient has to pass.

# %%
def masked_softmax(scores, mask):
    with torch.no_grad():
        weights = torch.softmax(mask_scores(scores, mask), dim=-1)
    return weights.nan_to_num(0.0)

# %% [markdown]
# ## wrong: scores_changed
#
# **Misconception.** `masked_fill_` gives a new tensor.
#
# **Hint.** The underscore says that it changes the tensor itself, and so the caller's. Leave it out.

# %%
def masked_softmax(scores, mask):
    with torch.no_grad():
        scores.masked_fill_(mask, torch.finfo(scores.dtype).min)
    return torch.softmax(scores, dim=-1).masked_fill(mask, 0.0)

# %% [markdown]
# ## wrong: mask_changed
#
# **Misconception.** The mask may be repaired where it is.
#
# **Hint.** The next layer uses the same mask, and finds the hidden rows visible. Make a new one.

# %%
def masked_softmax(scores, mask):
    empty = mask.expand(scores.shape).all(dim=-1, keepdim=True)
    if mask.shape[-1] == scores.shape[-1] and mask.is_contiguous():
        rows = mask.all(dim=-1, keepdim=True)
        mask &= ~rows
    else:
        mask = mask & ~empty
    return torch.softmax(mask_scores(scores, mask), dim=-1).masked_fill(empty, 0.0)

# %% [markdown]
# ## wrong: even_shares_when_all_is_hidden
#
# **Misconception.** When everything is hidden, everything should share evenly.
#
# **Hint.** Hidden keys get nothing, however many they are. All rows are zeros then.

# %%
def masked_softmax(scores, mask):
    if mask.all():
        return torch.full_like(scores, 1 / scores.shape[-1])
    return torch.softmax(scores.masked_fill(mask, float("-inf")), dim=-1).nan_to_num(0.0)

# %% [markdown]
# ## wrong: chosen_after_exp
#
# **Misconception.** What `torch.where` does not choose cannot do any harm.
#
# **Hint.** Going back, the gradient of what was not chosen is 0 times its slope. For a huge hidden score `exp` is infinite, and 0 times
# infinity is `nan`. Hide the score before `exp`.

# %%
def masked_softmax(scores, mask):
    largest = scores.masked_fill(mask, float("-inf")).amax(dim=-1, keepdim=True).detach()
    largest = largest.masked_fill(largest.isinf(), 0.0)
    powers = torch.where(mask, 0.0, torch.exp(scores - largest))
    total = powers.sum(dim=-1, keepdim=True)
    return powers / torch.where(total == 0, 1.0, total)

# %% [markdown]
# ## wrong: heads_for_sentences
#
# **Misconception.** A mask with one head for each sentence can lose that dimension.
#
# **Hint.** Without it `(b, 1, n, n)` becomes `(b, n, n)`, and is lined up with the heads. With as many heads as sentences nothing
# complains: the mask of sentence i goes to head i.

# %%
def masked_softmax(scores, mask):
    if mask.dim() == 4 and mask.shape[0] == scores.shape[1]:
        mask = mask.squeeze(1)
    mask = mask.expand(scores.shape)
    empty = mask.all(dim=-1, keepdim=True)
    return torch.softmax(scores.masked_fill(mask & ~empty, float("-inf")), dim=-1).masked_fill(empty, 0.0)

# %% [markdown]
# ## wrong: one_mask_for_each_sentence
#
# **Misconception.** A batch has three dimensions: sentences, queries, keys.
#
# **Hint.** With several heads it has four. `(n, n)` fits to any number of dimensions in front by
# itself.

# %%
def masked_softmax(scores, mask):
    if scores.ndim > mask.ndim == 2:
        mask = mask.expand(len(scores), *mask.shape)
    empty = mask.all(dim=-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(mask & ~empty, float("-inf")), dim=-1)
    return weights.masked_fill(empty, 0.0)

# %% [markdown]
# ## wrong: heads_counted_with_len
#
# **Misconception.** `len(scores)` is the number of heads.
#
# **Hint.** It is the first dimension, the number of sentences. A mask of (b, 1, n, n) stretches
# over the heads by itself.

# %%
def masked_softmax(scores, mask):
    if mask.ndim == 4:
        mask = mask.repeat(1, len(scores), 1, 1)
    empty = mask.all(dim=-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(mask & ~empty, float("-inf")), dim=-1)
    return weights.masked_fill(empty, 0.0)

# %% [markdown]
# ## wrong: keys_taken_for_queries
#
# **Misconception.** A mask with one row says which queries are hidden.
#
# **Hint.** Its shape says whom it hides: (b, 1, n) is one number for each key. Leave the shape as
# it is.

# %%
def masked_softmax(scores, mask):
    if mask.shape[-2] == 1:
        mask = mask.mT
    mask = mask.expand(scores.shape)
    empty = mask.all(dim=-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(mask & ~empty, float("-inf")), dim=-1)
    return weights.masked_fill(empty, 0.0)

# %% [markdown]
# ## wrong: queries_taken_for_keys
#
# **Misconception.** A mask with one column says which keys are hidden.
#
# **Hint.** Its shape says whom it hides: (b, n, 1) is one number for each query. Leave the shape
# as it is.

# %%
def masked_softmax(scores, mask):
    if mask.shape[-1] == 1:
        mask = mask.mT
    mask = mask.expand(scores.shape)
    empty = mask.all(dim=-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(mask & ~empty, float("-inf")), dim=-1)
    return weights.masked_fill(empty, 0.0)

# %% [markdown]
# ## wrong: one_key_is_none
#
# **Misconception.** With one visible key there is nothing to share out.
#
# **Hint.** That key gets everything: its weight is 1. Only a row without any visible key is
# zeros.

# %%
def masked_softmax(scores, mask):
    mask = mask.expand(scores.shape)
    empty = (~mask).sum(dim=-1, keepdim=True) <= 1
    weights = torch.softmax(scores.masked_fill(mask & ~empty, float("-inf")), dim=-1)
    return weights.masked_fill(empty, 0.0)

# %% [markdown]
# ## wrong: lowered_by_the_range
#
# **Misconception.** Scores are at most 20,000 apart, so a score lowered by 20,000 is hidden.
#
# **Hint.** If it was 20,000 above the visible ones, it is now as high as they are. Replace it
# instead of lowering it.

# %%
def masked_softmax(scores, mask):
    mask = mask.expand(scores.shape)
    weights = torch.softmax(scores - 2e4 * mask, dim=-1)
    return weights.masked_fill(mask.all(dim=-1, keepdim=True), 0.0)

# %% [markdown]
# ## wrong: mean_subtracted
#
# **Misconception.** The mean of the visible scores makes a row safe for `exp`.
#
# **Hint.** A visible score may lie thousands above the mean, and its `exp` is infinite. Nothing
# above 0 may be left.

# %%
def masked_softmax(scores, mask):
    visible = ~mask.expand(scores.shape)
    number = visible.sum(dim=-1, keepdim=True).clamp(min=1)
    mean = scores.masked_fill(~visible, 0.0).sum(dim=-1, keepdim=True) / number
    powers = (scores - mean).masked_fill(~visible, float("-inf")).exp()
    sums = powers.sum(dim=-1, keepdim=True)
    return powers / sums.masked_fill(sums == 0, 1.0)

# %% [markdown]
# ## wrong: float32_inside
#
# **Misconception.** float32 is precise enough on the way, as long as the result has the right
# type.
#
# **Hint.** What is rounded off on the way is lost. Compute in the type that comes in.

# %%
def masked_softmax(scores, mask):
    mask = mask.expand(scores.shape)
    empty = mask.all(dim=-1, keepdim=True)
    weights = torch.softmax(scores.float().masked_fill(mask & ~empty, float("-inf")), dim=-1)
    return weights.masked_fill(empty, 0.0).to(scores.dtype)

# %% [markdown]
# ## wrong: three_dimensions_are_sentences
#
# **Misconception.** A mask of three dimensions has one matrix for each sentence.
#
# **Hint.** It may have one for each head: broadcasting compares shapes from the right. Do not add a
# dimension that nobody asked for.

# %%
def masked_softmax(scores, mask):
    if mask.ndim == 3 and scores.ndim == 4:
        mask = mask.unsqueeze(1)
    hidden = scores.masked_fill(mask, float("-inf"))
    empty = mask.expand_as(scores).all(dim=-1, keepdim=True)
    return torch.softmax(hidden.masked_fill(empty, 0.0), dim=-1).masked_fill(mask, 0.0)
