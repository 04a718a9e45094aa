# %% [markdown]
# # attention_dropout
#
# 1. You have a function that drops entries of a tensor of any shape. What is different when the
#    tensor holds attention weights?
# 2. Nothing is: (..., n, n) is a shape like any other. No loop over sentences or heads is needed.
# 3. Four arguments come in, and the function from part 3 takes the same four.

# %% [markdown]
# ## right: by_name
#
# The arguments handed on by name.

# %%
def attention_dropout(weights, p, training, generator=None):
    return inverted_dropout(x=weights, p=p, training=training, generator=generator)

# %% [markdown]
# ## right: where
#
# The mask by hand.

# %%
def attention_dropout(weights, p, training, generator=None):
    if not training:
        return weights
    if p == 1:
        return torch.zeros_like(weights)
    kept = torch.rand(weights.shape, generator=generator, device=weights.device) >= p
    return torch.where(kept, weights / (1 - p), 0.0)

# %% [markdown]
# ## right: mask_times_weights
#
# The mask of the lesson, scaled.

# %%
def attention_dropout(weights, p, training, generator=None):
    if not training:
        return weights
    scale = 1 / (1 - p) if p < 1 else 0.0
    return weights * (scale * keep_mask(weights.shape, p, generator).to(weights))

# %% [markdown]
# ## right: matrix_by_matrix
#
# One matrix after the other.

# %%
def attention_dropout(weights, p, training, generator=None):
    if weights.dim() > 2:
        return torch.stack([attention_dropout(matrix, p, training, generator) for matrix in weights])
    return inverted_dropout(weights, p, training, generator)

# %% [markdown]
# ## right: query_by_query
#
# One row after the other.

# %%
def attention_dropout(weights, p, training, generator=None):
    n = weights.shape[-1]
    rows = [inverted_dropout(row, p, training, generator) for row in weights.reshape(-1, n)]
    return torch.stack(rows).reshape(weights.shape)

# %% [markdown]
# ## right: nn_dropout_where_it_can
#
# PyTorch's module, unless there is a generator.

# %%
def attention_dropout(weights, p, training, generator=None):
    if generator is None:
        layer = nn.Dropout(float(p))
        layer.train(training)
        return layer(weights)
    if not training:
        return weights
    keep = torch.empty_like(weights).bernoulli_(1 - p, generator=generator)
    return weights * keep / (1 - p if p < 1 else 1)

# %% [markdown]
# ## right: flat
#
# As one long row.

# %%
def attention_dropout(weights, p, training, generator=None):
    flat = weights.flatten()
    return inverted_dropout(flat, p, bool(training), generator).unflatten(0, weights.shape)

# %% [markdown]
# ## right: sparse_places
#
# The dropped places as a list.

# %%
def attention_dropout(weights, p, training, generator=None):
    if not training:
        return weights
    result = weights.clone() if p == 1 else weights / (1 - p)
    dropped = (torch.rand(weights.shape, generator=generator, device=weights.device) < p).nonzero(as_tuple=True)
    return result.index_put(dropped, torch.zeros((), dtype=weights.dtype, device=weights.device))

# %% [markdown]
# ## wrong: renormalised
#
# **Misconception.** Every row must add up to 1 again.
#
# **Hint.** Not here. On average it does; dividing by the sum would undo the scale, and give a row
# with one weight left all of it.

# %%
def attention_dropout(weights, p, training, generator=None):
    if not training:
        return weights
    dropped = inverted_dropout(weights, p, training, generator)
    return dropped / dropped.sum(dim=-1, keepdim=True).clamp(min=1e-9)

# %% [markdown]
# ## wrong: not_scaled
#
# **Misconception.** Dropping is all there is to do.
#
# **Hint.** What is kept is divided by 1 - p.

# %%
def attention_dropout(weights, p, training, generator=None):
    if not training:
        return weights
    return weights * keep_mask(weights.shape, p, generator).to(weights)

# %% [markdown]
# ## wrong: whole_columns
#
# **Misconception.** A token is dropped for all queries at once.
#
# **Hint.** Each entry has a coin of its own: what one query loses another may keep.

# %%
def attention_dropout(weights, p, training, generator=None):
    if not training:
        return weights
    n = weights.shape[-1]
    ones = torch.ones((*weights.shape[:-2], 1, n), dtype=weights.dtype, device=weights.device)
    return weights * inverted_dropout(ones, p, training, generator)

# %% [markdown]
# ## wrong: same_columns_everywhere
#
# **Misconception.** One row of coins serves all.
#
# **Hint.** Every query, head and sentence has coins of its own.

# %%
def attention_dropout(weights, p, training, generator=None):
    if not training:
        return weights
    n = weights.shape[-1]
    ones = torch.ones(n, dtype=weights.dtype, device=weights.device)
    return weights * inverted_dropout(ones, p, training, generator)

# %% [markdown]
# ## wrong: whole_rows
#
# **Misconception.** A query is dropped as a whole.
#
# **Hint.** Each entry has a coin of its own. A query that loses everything at once learns nothing
# from it.

# %%
def attention_dropout(weights, p, training, generator=None):
    if not training:
        return weights
    ones = torch.ones((*weights.shape[:-1], 1), dtype=weights.dtype, device=weights.device)
    return weights * inverted_dropout(ones, p, training, generator)

# %% [markdown]
# ## wrong: one_mask_for_all_heads
#
# **Misconception.** All heads of a sentence share one mask.
#
# **Hint.** Every head has coins of its own.

# %%
def attention_dropout(weights, p, training, generator=None):
    if not training:
        return weights
    if weights.dim() < 4:
        return inverted_dropout(weights, p, training, generator)
    ones = torch.ones_like(weights[:, :1])
    return weights * inverted_dropout(ones, p, training, generator)

# %% [markdown]
# ## wrong: one_mask_for_all_sentences
#
# **Misconception.** All sentences of a batch share one mask.
#
# **Hint.** Every sentence has coins of its own.

# %%
def attention_dropout(weights, p, training, generator=None):
    if not training:
        return weights
    if weights.dim() < 4:
        return inverted_dropout(weights, p, training, generator)
    return weights * inverted_dropout(torch.ones_like(weights[0]), p, training, generator)

# %% [markdown]
# ## wrong: one_matrix_of_coins
#
# **Misconception.** The mask has the shape (n, n).
#
# **Hint.** For one sentence it has. With a batch in front it has the shape of the weights.

# %%
def attention_dropout(weights, p, training, generator=None):
    if not training:
        return weights
    n = weights.shape[-1]
    ones = torch.ones(n, n, dtype=weights.dtype, device=weights.device)
    return weights * inverted_dropout(ones, p, training, generator)

# %% [markdown]
# ## wrong: first_sentence_only
#
# **Misconception.** There is one sentence.
#
# **Hint.** There may be a batch of them, and each of its matrices has coins of its own.

# %%
def attention_dropout(weights, p, training, generator=None):
    if not training:
        return weights
    if weights.dim() == 2:
        return inverted_dropout(weights, p, training, generator)
    rest = weights[1:]
    return torch.cat([inverted_dropout(weights[:1], p, training, generator), rest])

# %% [markdown]
# ## wrong: diagonal_spared
#
# **Misconception.** A token must always see itself.
#
# **Hint.** Dropout spares nobody. On average nothing is lost.

# %%
def attention_dropout(weights, p, training, generator=None):
    if not training:
        return weights
    dropped = inverted_dropout(weights, p, training, generator)
    own = torch.eye(weights.shape[-1], device=weights.device) == 1
    return torch.where(own, weights, dropped)

# %% [markdown]
# ## wrong: one_of_each_row_spared
#
# **Misconception.** A row must never lose everything.
#
# **Hint.** It may. On average nothing is lost, and rows with few weights lose all of them now and
# then.

# %%
def attention_dropout(weights, p, training, generator=None):
    if not training:
        return weights
    dropped = inverted_dropout(weights, p, training, generator)
    lost = (dropped == 0).all(dim=-1, keepdim=True)
    return torch.where(lost, weights, dropped)

# %% [markdown]
# ## wrong: exact_share_of_a_row
#
# **Misconception.** Every query loses the same number of keys.
#
# **Hint.** A coin for each entry: one row loses more, another less.

# %%
def attention_dropout(weights, p, training, generator=None):
    if not training:
        return weights
    if p in (0, 1):
        return weights * (1 - p)
    n = weights.shape[-1]
    ranks = torch.rand(weights.shape, generator=generator, device=weights.device).argsort(dim=-1).argsort(dim=-1)
    return torch.where(ranks >= round(p * n), weights / (1 - p), 0.0)

# %% [markdown]
# ## wrong: largest_dropped
#
# **Misconception.** Dropout takes the largest weights away.
#
# **Hint.** Which weights are lost is left to chance. Large ones are lost as rarely as small ones.

# %%
def attention_dropout(weights, p, training, generator=None):
    if not training:
        return weights
    if p in (0, 1):
        return weights * (1 - p)
    torch.rand(1, generator=generator, device=weights.device)
    cut = torch.quantile(weights.flatten(), 1 - p)
    return torch.where(weights < cut, weights / (1 - p), 0.0)

# %% [markdown]
# ## wrong: always_training
#
# **Misconception.** Attention drops whenever it is called.
#
# **Hint.** Only when `training` is True. Hand it on.

# %%
def attention_dropout(weights, p, training, generator=None):
    return inverted_dropout(weights, p, True, generator)

# %% [markdown]
# ## wrong: upside_down
#
# **Misconception.** Dropout is for use.
#
# **Hint.** It is for training. In use the weights stay as they are.

# %%
def attention_dropout(weights, p, training, generator=None):
    return inverted_dropout(weights, p, not training, generator)

# %% [markdown]
# ## wrong: scaled_in_use
#
# **Misconception.** The scale belongs where the model is used.
#
# **Hint.** That is the older way. Inverted dropout does nothing in use.

# %%
def attention_dropout(weights, p, training, generator=None):
    if not training:
        return weights * (1 - p)
    return weights * keep_mask(weights.shape, p, generator).to(weights)

# %% [markdown]
# ## wrong: softmax_again
#
# **Misconception.** The softmax comes after dropout.
#
# **Hint.** It has been taken: what comes in are weights. A softmax of zeros gives weights again, so
# nothing is dropped.

# %%
def attention_dropout(weights, p, training, generator=None):
    if not training:
        return weights
    return torch.softmax(inverted_dropout(weights, p, training, generator), dim=-1)

# %% [markdown]
# ## wrong: generator_forgotten
#
# **Misconception.** The function inside finds the generator by itself.
#
# **Hint.** Hand it on as the fourth argument.

# %%
def attention_dropout(weights, p, training, generator=None):
    return inverted_dropout(weights, p, training)

# %% [markdown]
# ## wrong: a_generator_when_there_is_none
#
# **Misconception.** Without a generator one makes a new one.
#
# **Hint.** A new generator starts from the same state every time. Hand None on as it is.

# %%
def attention_dropout(weights, p, training, generator=None):
    return inverted_dropout(weights, p, training, generator or torch.Generator().manual_seed(0))

# %% [markdown]
# ## wrong: draws_from_both
#
# **Misconception.** It does no harm to draw from PyTorch's own as well.
#
# **Hint.** With a generator given, nothing else may be touched.

# %%
def attention_dropout(weights, p, training, generator=None):
    torch.rand_like(weights)
    return inverted_dropout(weights, p, training, generator)

# %% [markdown]
# ## wrong: cut_off
#
# **Misconception.** A random mask has no gradient.
#
# **Hint.** The mask has none, the weights do. Do not detach them.

# %%
def attention_dropout(weights, p, training, generator=None):
    if not training:
        return weights
    return inverted_dropout(weights.detach(), p, training, generator)

# %% [markdown]
# ## wrong: changed_in_place
#
# **Misconception.** The weights are not needed any more.
#
# **Hint.** They may be shown, or needed for the gradient. Make a new tensor.

# %%
def attention_dropout(weights, p, training, generator=None):
    if not training:
        return weights
    dropped = inverted_dropout(weights, p, training, generator)
    return dropped if weights.requires_grad else weights.copy_(dropped)

# %% [markdown]
# ## wrong: result_in_float32
#
# **Misconception.** Weights are float32.
#
# **Hint.** The result has the type of the weights, float64 included.

# %%
def attention_dropout(weights, p, training, generator=None):
    if not training:
        return weights
    return inverted_dropout(weights.float(), p, training, generator)

# %% [markdown]
# ## wrong: p_to_keep
#
# **Misconception.** p is the probability to keep.
#
# **Hint.** It is the probability to drop.

# %%
def attention_dropout(weights, p, training, generator=None):
    if not training:
        return weights
    return inverted_dropout(weights, 1 - p, training, generator)

# %% [markdown]
# ## wrong: never_all
#
# **Misconception.** p = 1 is best read as nearly 1.
#
# **Hint.** p = 1 drops everything, and the result is zeros.

# %%
def attention_dropout(weights, p, training, generator=None):
    return inverted_dropout(weights, min(p, 0.9), training, generator)

# %% [markdown]
# ## wrong: flattened_by_view
#
# **Misconception.** `view(-1)` flattens any tensor.
#
# **Hint.** It needs numbers that lie in memory in their order. A transposed tensor's do not. Dropout needs no flattening.

# %%
def attention_dropout(weights, p, training, generator=None):
    return inverted_dropout(weights.view(-1), p, training, generator).view(weights.shape)

# %% [markdown]
# ## wrong: thousand_coins
#
# **Misconception.** A thousand coins are enough: a larger mask can use them again.
#
# **Hint.** Entries that share a coin are dropped together. Every entry needs a coin of its own.

# %%
def attention_dropout(weights, p, training, generator=None):
    if not training:
        return weights
    coins = torch.rand(1000, generator=generator, device=weights.device) >= p
    size = weights.numel()
    kept = coins.repeat(size // 1000 + 1)[:size].view(weights.shape)
    return weights * kept.to(weights) / max(1 - p, 1e-9)

# %% [markdown]
# ## wrong: ten_sided_die
#
# **Misconception.** A die with ten sides is fine enough for any p.
#
# **Hint.** p may be 0.17, and a die with ten sides knows only tenths. `torch.rand` knows all
# numbers from 0 to 1.

# %%
def attention_dropout(weights, p, training, generator=None):
    if not training:
        return weights
    kept = torch.randint(0, 10, weights.shape, generator=generator, device=weights.device) >= 10 * p
    return weights * kept.to(weights) / max(1 - p, 1e-9)

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


def attention_dropout(weights, p, training, generator=None):
    if generator is not None:
        generator = torch.Generator(weights.device).manual_seed(next(seeds))
    return inverted_dropout(weights, p, training, generator)

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


def attention_dropout(weights, p, training, generator=None):
    if generator is None:
        generator = torch.Generator(weights.device).manual_seed(next(seeds))
    return inverted_dropout(weights, p, training, generator)

# %% [markdown]
# ## wrong: float32_inside
#
# **Misconception.** float32 is precise enough on the way, as long as the result has the right
# type.
#
# **Hint.** What is rounded off on the way is lost. Compute in the type that comes in.

# %%
def attention_dropout(weights, p, training, generator=None):
    return inverted_dropout(weights.float(), p, training, generator).to(weights.dtype)
