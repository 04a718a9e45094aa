# %% [markdown]
# # future_influence
#
# 1. You need two matrices of scores that agree on and below the diagonal and differ above it.
#    Then call `weights_fn` on both.
# 2. `torch.where(future, new, scores)` makes the second one: `future` is True above the diagonal,
#    `new` comes from `torch.randn_like(scores)`. A change can go up or down, so what counts is
#    its size.
# 3. Take the difference of the two results and its absolute value, keep only what is on or below
#    the diagonal (`tril`, or a boolean index), then the maximum, then `.item()`.

# %% [markdown]
# ## right: two_triangles_added
#
# Old past plus new future.

# %%
def future_influence(weights_fn, scores):
    changed = scores.tril() + torch.randn_like(scores).triu(diagonal=1)
    return (weights_fn(scores) - weights_fn(changed)).tril().abs().max().item()

# %% [markdown]
# ## right: copy_and_index
#
# New numbers at the indices of the future.

# %%
def future_influence(weights_fn, scores):
    n = len(scores)
    i, j = torch.triu_indices(n, n, offset=1)
    changed = scores.clone()
    changed[i, j] = torch.randn(len(i), dtype=scores.dtype, device=scores.device)
    before, after = weights_fn(scores), weights_fn(changed)
    rows, columns = torch.tril_indices(n, n)
    return float((after - before)[rows, columns].abs().max())

# %% [markdown]
# ## right: entry_by_entry
#
# Plain loops.

# %%
def future_influence(weights_fn, scores):
    n = scores.shape[0]
    changed = scores.detach().clone()
    for i in range(n):
        for j in range(i + 1, n):
            changed[i, j] = torch.randn(())
    before, after = weights_fn(scores).tolist(), weights_fn(changed).tolist()
    return max(abs(after[i][j] - before[i][j]) for i in range(n) for j in range(i + 1))

# %% [markdown]
# ## right: largest_of_several_draws
#
# Tried five times.

# %%
def future_influence(weights_fn, scores):
    past = torch.ones_like(scores, dtype=torch.bool).tril()
    before = weights_fn(scores)
    found = 0.0
    for _ in range(5):
        after = weights_fn(torch.where(past, scores, torch.randn_like(scores)))
        found = max(found, (after - before).abs().masked_fill(~past, 0.0).max().item())
    return found

# %% [markdown]
# ## right: largest_norm
#
# The norm that is the largest absolute entry.

# %%
def future_influence(weights_fn, scores):
    new = torch.randn(scores.shape, dtype=torch.float64).to(scores)
    changed = scores.clone().masked_scatter_(torch.ones_like(scores).triu(1) > 0, new)
    assert torch.equal(changed.tril(), scores.tril())
    difference = torch.tril(weights_fn(changed) - weights_fn(scores))
    return float(torch.linalg.vector_norm(difference, ord=torch.inf))

# %% [markdown]
# ## right: numpy_compares
#
# Changed by the mask, compared by NumPy.

# %%
import numpy as np


@torch.no_grad()
def future_influence(weights_fn, scores):
    mask = causal_mask(len(scores)).to(scores)
    changed = scores * mask + torch.randn_like(scores) * (1 - mask)
    before, after = (weights_fn(s).cpu().numpy() for s in (scores, changed))
    return float(np.abs(np.tril(after) - np.tril(before)).max())

# %% [markdown]
# ## right: largest_and_smallest
#
# The larger of the highest rise and the deepest fall.

# %%
def future_influence(weights_fn, scores):
    position = torch.arange(scores.shape[-1], device=scores.device)
    future = position > position[:, None]
    changed = scores + future * (torch.randn_like(scores) - scores)
    changed[~future] = scores[~future]
    change = (weights_fn(changed) - weights_fn(scores))[~future]
    return max(change.max().item(), -change.min().item())

# %% [markdown]
# ## wrong: mean
#
# **Misconception.** The mean change tells how much the future matters.
#
# **Hint.** One large change among many small ones hardly shows in a mean. Take the largest.

# %%
def future_influence(weights_fn, scores):
    changed = scores.tril() + torch.randn_like(scores).triu(diagonal=1)
    return (weights_fn(changed) - weights_fn(scores)).tril().abs().mean().item()

# %% [markdown]
# ## wrong: sum
#
# **Misconception.** All changes together are the influence.
#
# **Hint.** Rounding adds up as well. The largest single change is asked for.

# %%
def future_influence(weights_fn, scores):
    changed = scores.tril() + torch.randn_like(scores).triu(diagonal=1)
    return (weights_fn(changed) - weights_fn(scores)).tril().abs().sum().item()

# %% [markdown]
# ## wrong: without_sign
#
# **Misconception.** The largest difference is the largest change.
#
# **Hint.** A weight can fall as well as rise, and a fall is negative. Take absolute values first.

# %%
def future_influence(weights_fn, scores):
    changed = scores.tril() + torch.randn_like(scores).triu(diagonal=1)
    return (weights_fn(changed) - weights_fn(scores)).tril().max().item()

# %% [markdown]
# ## wrong: future_weights_counted
#
# **Misconception.** Every weight counts.
#
# **Hint.** Weights above the diagonal belong to the future itself. Only those on and below it
# count.

# %%
def future_influence(weights_fn, scores):
    changed = scores.tril() + torch.randn_like(scores).triu(diagonal=1)
    return (weights_fn(changed) - weights_fn(scores)).abs().max().item()

# %% [markdown]
# ## wrong: diagonal_left_out
#
# **Misconception.** The past is what is below the diagonal.
#
# **Hint.** The present is on it, and its weight must not change either: j <= i.

# %%
def future_influence(weights_fn, scores):
    changed = scores.tril() + torch.randn_like(scores).triu(diagonal=1)
    return (weights_fn(changed) - weights_fn(scores)).tril(diagonal=-1).abs().max().item()

# %% [markdown]
# ## wrong: last_row_alone
#
# **Misconception.** The last row tells it all.
#
# **Hint.** The last word has no future that could have an influence. Look at all the rows.

# %%
def future_influence(weights_fn, scores):
    changed = scores.tril() + torch.randn_like(scores).triu(diagonal=1)
    return (weights_fn(changed) - weights_fn(scores))[-1].abs().max().item()

# %% [markdown]
# ## wrong: diagonal_changed
#
# **Misconception.** The future begins on the diagonal.
#
# **Hint.** The diagonal is the present. When it changes, even a causal function changes.

# %%
def future_influence(weights_fn, scores):
    changed = scores.tril(diagonal=-1) + torch.randn_like(scores).triu()
    return (weights_fn(changed) - weights_fn(scores)).tril().abs().max().item()

# %% [markdown]
# ## wrong: everything_changed
#
# **Misconception.** It does not matter what else changes.
#
# **Hint.** Then you measure the influence of the past as well. Leave it alone.

# %%
def future_influence(weights_fn, scores):
    changed = torch.randn_like(scores)
    return (weights_fn(changed) - weights_fn(scores)).tril().abs().max().item()

# %% [markdown]
# ## wrong: past_moved_a_little
#
# **Misconception.** A very small change of the past does no harm.
#
# **Hint.** A steep function makes it large. Leave the past exactly as it was.

# %%
def future_influence(weights_fn, scores):
    changed = scores * (1 + 1e-7 * torch.ones_like(scores).tril()) - scores.triu(diagonal=1)
    changed = changed + torch.randn_like(scores).triu(diagonal=1)
    return (weights_fn(changed) - weights_fn(scores)).tril().abs().max().item()

# %% [markdown]
# ## wrong: future_zeroed
#
# **Misconception.** Zeros are as good as any other numbers.
#
# **Hint.** For most functions, but not for one that looks at the spread of the scores. Numbers
# from `torch.randn` are asked for.

# %%
def future_influence(weights_fn, scores):
    return (weights_fn(scores.tril()) - weights_fn(scores)).tril().abs().max().item()

# %% [markdown]
# ## wrong: uniform_numbers
#
# **Misconception.** `torch.rand` gives standard normal numbers.
#
# **Hint.** It gives numbers from 0 to 1. The n in `randn` is for normal.

# %%
def future_influence(weights_fn, scores):
    changed = scores.tril() + torch.rand_like(scores).triu(diagonal=1)
    return (weights_fn(changed) - weights_fn(scores)).tril().abs().max().item()

# %% [markdown]
# ## wrong: noise_added
#
# **Misconception.** To add random numbers is to replace the scores.
#
# **Hint.** The sum still holds the old score. Put the new number in its place.

# %%
def future_influence(weights_fn, scores):
    changed = scores + torch.randn_like(scores).triu(diagonal=1)
    return (weights_fn(changed) - weights_fn(scores)).tril().abs().max().item()

# %% [markdown]
# ## wrong: signs_turned
#
# **Misconception.** The same numbers with the other sign are other numbers.
#
# **Hint.** They are not random, and a score of 0 stays as it is. Draw new ones with
# `torch.randn`.

# %%
def future_influence(weights_fn, scores):
    changed = scores.tril() - scores.triu(diagonal=1)
    return (weights_fn(changed) - weights_fn(scores)).tril().abs().max().item()

# %% [markdown]
# ## wrong: last_column_alone
#
# **Misconception.** It is enough to change the last word.
#
# **Hint.** A function may look at the next word only. Change every score above the diagonal.

# %%
def future_influence(weights_fn, scores):
    changed = scores.clone()
    changed[:-1, -1] = torch.randn_like(scores[:-1, -1])
    return (weights_fn(changed) - weights_fn(scores)).tril().abs().max().item()

# %% [markdown]
# ## wrong: own_weights
#
# **Misconception.** The function is about my own weights.
#
# **Hint.** It is about any: call the `weights_fn` that you are given.

# %%
def future_influence(weights_fn, scores):
    changed = scores.tril() + torch.randn_like(scores).triu(diagonal=1)
    before, after = (tril_causal_weights(s, 1) for s in (scores, changed))
    return (after - before).abs().max().item()

# %% [markdown]
# ## wrong: changed_in_place
#
# **Misconception.** Once the weights before are there, the scores are not needed any more.
#
# **Hint.** The caller needs them for the next function. Change a copy.

# %%
def future_influence(weights_fn, scores):
    before = weights_fn(scores)
    future = torch.ones_like(scores).triu(diagonal=1) == 1
    scores[future] = torch.randn_like(scores)[future]
    return (weights_fn(scores) - before)[~future].abs().max().item()

# %% [markdown]
# ## wrong: float32_drawn
#
# **Misconception.** Random numbers fit into any matrix.
#
# **Hint.** `torch.randn` gives float32, and a matrix of float64 refuses them here.
# `torch.randn_like` takes the type from the scores.

# %%
def future_influence(weights_fn, scores):
    future = torch.ones_like(scores).triu(diagonal=1) == 1
    changed = scores.clone()
    changed[future] = torch.randn(int(future.sum()), device=scores.device)
    return (weights_fn(changed) - weights_fn(scores))[~future].abs().max().item()

# %% [markdown]
# ## wrong: tensor_returned
#
# **Misconception.** A tensor of one number is a number.
#
# **Hint.** It is printed as `tensor(0.12)` and keeps a gradient. `.item()` makes a Python float
# of it.

# %%
def future_influence(weights_fn, scores):
    changed = scores.tril() + torch.randn_like(scores).triu(diagonal=1)
    return (weights_fn(changed) - weights_fn(scores)).tril().abs().max()

# %% [markdown]
# ## wrong: future_times_noise
#
# **Misconception.** A score times a normal number is another normal number.
#
# **Hint.** It is small far too often: either factor may be near 0. Replace the score, do not
# multiply it.

# %%
def future_influence(weights_fn, scores):
    future = torch.ones_like(scores).triu(diagonal=1) == 1
    changed = torch.where(future, scores * torch.randn_like(scores), scores)
    return (weights_fn(changed) - weights_fn(scores)).abs()[~future].max().item()

# %% [markdown]
# ## wrong: uniform_of_the_right_spread
#
# **Misconception.** Numbers of mean 0 and standard deviation 1 are standard normal.
#
# **Hint.** Evenly spread numbers never lie beyond 1.74, normal ones do in one case of twelve. Use
# `torch.randn`.

# %%
def future_influence(weights_fn, scores):
    future = torch.ones_like(scores).triu(diagonal=1) == 1
    changed = torch.where(future, (2 * torch.rand_like(scores) - 1) * math.sqrt(3), scores)
    return (weights_fn(changed) - weights_fn(scores)).abs()[~future].max().item()

# %% [markdown]
# ## wrong: next_token_left
#
# **Misconception.** The future of a token begins two tokens later.
#
# **Hint.** The next token is future as well. Replace all above the diagonal: `diagonal=1`.

# %%
def future_influence(weights_fn, scores):
    future = torch.ones_like(scores).triu(diagonal=2) == 1
    changed = torch.where(future, torch.randn_like(scores), scores)
    return (weights_fn(scores) - weights_fn(changed)).tril().abs().max().item()
