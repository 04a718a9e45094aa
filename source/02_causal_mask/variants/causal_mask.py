# %% [markdown]
# # causal_mask
#
# 1. Look at the drawing: in row i, which columns hold a 1? Write the rule for one entry first.
# 2. A matrix of ones is a good start. PyTorch can cut a triangle out of a matrix; it has one
#    function for the lower and one for the upper.
# 3. `torch.tril` keeps the diagonal and what is below it. Look at n before you build anything,
#    and `raise ValueError(...)` with n in the text if it is too small.

# %% [markdown]
# ## right: positions_compared
#
# Key position against query position, broadcast.

# %%
def causal_mask(n):
    if n < 1:
        raise ValueError(f"n is {n}, it must be 1 or more")
    position = torch.arange(n)
    return (position[None, :] <= position[:, None]).float()

# %% [markdown]
# ## right: entry_by_entry
#
# Plain Python lists.

# %%
def causal_mask(n):
    assert n >= 1, f"n must be at least 1, got {n}"
    return torch.tensor([[1.0 if key <= query else 0.0 for key in range(n)] for query in range(n)])

# %% [markdown]
# ## right: ones_minus_the_future
#
# The future is cut off from a matrix of ones.

# %%
def causal_mask(n):
    if not n > 0:
        raise ValueError(f"n = {n}")
    return torch.ones(n, n) - torch.triu(torch.ones(n, n), diagonal=1)

# %% [markdown]
# ## right: row_by_row
#
# Each row gets one more 1 than the row before.

# %%
def causal_mask(n):
    if n <= 0:
        raise ValueError(f"there is no mask for n={n} tokens")
    mask = torch.zeros(n, n)
    for i in range(n):
        mask[i, : i + 1] = 1
    return mask


for size in (1, 2, 5):
    assert causal_mask(size).sum() == size * (size + 1) / 2

# %% [markdown]
# ## right: running_sum_of_the_identity
#
# A 1 on the diagonal is carried down.

# %%
def causal_mask(n):
    if n < 1:
        raise ValueError(f"n must be positive, not {n}")
    return torch.eye(n).cumsum(dim=0)

# %% [markdown]
# ## right: indices
#
# The places of the triangle, then ones there.

# %%
def causal_mask(n):
    if n in range(1, n + 1):
        rows, columns = torch.tril_indices(n, n)
        mask = torch.zeros((n, n), dtype=torch.float32)
        mask[rows, columns] = 1.0
        return mask
    raise ValueError(f"n must be at least 1, n is {n}")

# %% [markdown]
# ## right: numpy_triangle
#
# NumPy's triangle, made float32 and handed to PyTorch.

# %%
import numpy as np


def causal_mask(n):
    if n < 1:
        raise ValueError("n must be at least 1, got " + str(n))
    return torch.from_numpy(np.tri(n, dtype=np.float32))

# %% [markdown]
# ## right: bool_then_float
#
# True in the future, turned around.

# %%
def causal_mask(n):
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    future = torch.ones(n, n, dtype=torch.bool, device=device).triu(1)
    return torch.where(future, 0.0, 1.0)

# %% [markdown]
# ## wrong: triu
#
# **Misconception.** `triu` keeps the past.
#
# **Hint.** The first word may see itself only. How many ones does your first row have?

# %%
def causal_mask(n):
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.ones(n, n).triu()

# %% [markdown]
# ## wrong: ones_are_hidden
#
# **Misconception.** A 1 in the mask means hidden.
#
# **Hint.** That is a convention too, and lesson 03 has it. Here 1 means: may look.

# %%
def causal_mask(n):
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.ones(n, n).triu(diagonal=1)

# %% [markdown]
# ## wrong: diagonal_hidden
#
# **Misconception.** A word must not look at itself.
#
# **Hint.** Then the first word has nothing to look at. What stands on the diagonal in the
# drawing?

# %%
def causal_mask(n):
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.ones(n, n).tril(diagonal=-1)

# %% [markdown]
# ## wrong: one_too_many
#
# **Misconception.** `diagonal=1` means: with the diagonal.
#
# **Hint.** It moves the border one column to the right, so that each word sees the next one. The
# diagonal is kept without it.

# %%
def causal_mask(n):
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.ones(n, n).tril(diagonal=1)

# %% [markdown]
# ## wrong: bool
#
# **Misconception.** True and False are as good as 1 and 0.
#
# **Hint.** Often they are. The exercise asks for float32, and `mask.sum()` or `1 - mask` do other
# things with bool.

# %%
def causal_mask(n):
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.ones(n, n, dtype=torch.bool).tril()

# %% [markdown]
# ## wrong: whole_numbers
#
# **Misconception.** Ones and zeros written without a point are floats.
#
# **Hint.** `torch.tensor([[1, 0]])` holds whole numbers, int64. The exercise asks for float32.

# %%
def causal_mask(n):
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.tensor([[int(j <= i) for j in range(n)] for i in range(n)])

# %% [markdown]
# ## wrong: float64
#
# **Misconception.** NumPy and PyTorch have the same default type.
#
# **Hint.** NumPy's is float64. Weights of float32 times this mask would be float64 from then on.

# %%
import numpy as np


def causal_mask(n):
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.from_numpy(np.tril(np.ones((n, n))))

# %% [markdown]
# ## wrong: minus_infinity
#
# **Misconception.** A hidden entry is minus infinity in the mask.
#
# **Hint.** That mask is added to scores, which is lesson 03. This one holds ones and zeros.

# %%
def causal_mask(n):
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.full((n, n), float("-inf")).triu(diagonal=1)

# %% [markdown]
# ## wrong: squeezed
#
# **Misconception.** A dimension of size 1 is of no use and can be dropped.
#
# **Hint.** One token gives a matrix too, (1, 1). Whoever calls the function counts on two
# dimensions.

# %%
def causal_mask(n):
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.ones(n, n).tril().squeeze()

# %% [markdown]
# ## wrong: size_limited
#
# **Misconception.** No sentence is longer than the longest one in the lesson.
#
# **Hint.** Some are. Take whatever n is.

# %%
def causal_mask(n):
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.ones(16, 16).tril()[:n, :n]

# %% [markdown]
# ## wrong: no_check
#
# **Misconception.** PyTorch refuses impossible sizes by itself.
#
# **Hint.** `torch.ones(0, 0)` works, and for -1 the error is not a ValueError. Look at n first.

# %%
def causal_mask(n):
    return torch.ones(n, n).tril()

# %% [markdown]
# ## wrong: zero_accepted
#
# **Misconception.** Only a negative n is below 1.
#
# **Hint.** What about 0? A mask for no token has no row.

# %%
def causal_mask(n):
    if n < 0:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.ones(n, n).tril()

# %% [markdown]
# ## wrong: one_refused
#
# **Misconception.** A single token needs no mask.
#
# **Hint.** It has one, (1, 1), with a 1 in it. Only n below 1 is refused.

# %%
def causal_mask(n):
    if n <= 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.ones(n, n).tril()

# %% [markdown]
# ## wrong: clamped
#
# **Misconception.** It is kind to turn an impossible n into a possible one.
#
# **Hint.** Then a mistake elsewhere goes unseen. Say no with a ValueError.

# %%
def causal_mask(n):
    n = max(n, 1)
    return torch.ones(n, n).tril()

# %% [markdown]
# ## wrong: assertion_turned_round
#
# **Misconception.** `assert` names what is forbidden.
#
# **Hint.** It names what must be true. This one refuses every good n.

# %%
def causal_mask(n):
    assert n < 1, f"n must be at least 1, got {n}"
    return torch.ones(n, n).tril()

# %% [markdown]
# ## wrong: only_a_message
#
# **Misconception.** To return a message is to refuse.
#
# **Hint.** The caller goes on with a text for a mask and fails somewhere else. `raise` stops it
# here.

# %%
def causal_mask(n):
    if n < 1:
        return f"n must be at least 1, got {n}"
    return torch.ones(n, n).tril()

# %% [markdown]
# ## wrong: ones_at_the_end
#
# **Misconception.** Row i holds i + 1 ones, and it does not matter where they stand.
#
# **Hint.** Query 0 may look at key 0, so the first column is all ones. Compare yours with the
# drawing above.

# %%
def causal_mask(n):
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.ones(n, n).triu().flip(0)
