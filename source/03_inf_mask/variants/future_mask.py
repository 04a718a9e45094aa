# %% [markdown]
# # future_mask
#
# 1. Look at the drawing: in row i, which columns hold a T? Write the rule for one entry first.
# 2. Lesson 02 cut a lower triangle out of ones. There is a function for the upper triangle too,
#    and its argument `diagonal` says where it begins.
# 3. `torch.triu` keeps the diagonal unless it is told to begin one column later. Ask for bool with
#    `dtype=torch.bool`, and look at n before you build anything.

# %% [markdown]
# ## right: positions_compared
#
# Key position against query position, broadcast.

# %%
def future_mask(n):
    if n < 1:
        raise ValueError(f"n is {n}, it must be 1 or more")
    position = torch.arange(n)
    return position[None, :] > position[:, None]

# %% [markdown]
# ## right: entry_by_entry
#
# Plain Python lists.

# %%
def future_mask(n):
    assert n >= 1, f"n must be at least 1, got {n}"
    return torch.tensor([[key > query for key in range(n)] for query in range(n)])

# %% [markdown]
# ## right: past_turned_round
#
# Not visible is hidden.

# %%
def future_mask(n):
    if not n > 0:
        raise ValueError(f"n = {n}")
    return ~torch.ones(n, n, dtype=torch.bool).tril()

# %% [markdown]
# ## right: zeros_of_tril
#
# Where the triangle of lesson 02 is 0.

# %%
def future_mask(n):
    if n <= 0:
        raise ValueError(f"there is no mask for n={n} tokens")
    return torch.tril(torch.ones(n, n, device=device)) == 0

# %% [markdown]
# ## right: row_by_row
#
# Each row hides one key fewer than the row before.

# %%
def future_mask(n):
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    mask = torch.full((n, n), True)
    for i in range(n):
        mask[i, : i + 1] = False
    return mask

# %% [markdown]
# ## right: indices
#
# The places above the diagonal, then True there.

# %%
def future_mask(n):
    if n in range(1, n + 1):
        rows, columns = torch.triu_indices(n, n, offset=1)
        mask = torch.zeros(n, n, dtype=torch.bool)
        mask[rows, columns] = True
        return mask
    raise ValueError(f"n must be at least 1, n is {n}")

# %% [markdown]
# ## right: numpy_triangle
#
# NumPy's triangle, handed to PyTorch.

# %%
import numpy as np


def future_mask(n):
    if n < 1:
        raise ValueError("n must be at least 1, got " + str(n))
    return torch.from_numpy(np.triu(np.ones((n, n), dtype=bool), k=1))

# %% [markdown]
# ## right: where_torch_puts_inf
#
# PyTorch's own causal mask holds minus infinity in the future.

# %%
def future_mask(n):
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    mask = nn.Transformer.generate_square_subsequent_mask(n).isinf()
    assert mask.shape == (n, n)
    return mask

# %% [markdown]
# ## wrong: diagonal_hidden_too
#
# **Misconception.** `triu` keeps what is above the diagonal, and the diagonal is not part of it.
#
# **Hint.** `triu` keeps the diagonal as well. What does the first word see, if its own key is
# hidden?

# %%
def future_mask(n):
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.ones(n, n).triu() == 1

# %% [markdown]
# ## wrong: diagonal_hidden_and_no_check
#
# **Misconception.** `triu` keeps what is above the diagonal, and the diagonal is not part of it.
#
# **Hint.** `triu` keeps the diagonal as well. What does the first word see, if its own key is
# hidden? And an n below 1 is still to be refused.

# %%
def future_mask(n):
    return torch.ones(n, n).triu() == 1

# %% [markdown]
# ## wrong: lesson_02_kept
#
# **Misconception.** True means: may look.
#
# **Hint.** In lesson 02 a 1 did. Here True means hidden, because the mask says where minus infinity
# goes.

# %%
def future_mask(n):
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.ones(n, n).tril() == 1

# %% [markdown]
# ## wrong: past_hidden
#
# **Misconception.** The future of a query lies below the diagonal.
#
# **Hint.** Rows are queries. Row 0 is the first word: which of its columns are later than it?

# %%
def future_mask(n):
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.ones(n, n, dtype=torch.bool).tril(diagonal=-1)

# %% [markdown]
# ## wrong: next_word_visible
#
# **Misconception.** The border has to be moved by two, past the diagonal and past the word itself.
#
# **Hint.** The word itself is the diagonal. How many keys are hidden in the first row of three?

# %%
def future_mask(n):
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.ones(n, n, dtype=torch.bool).triu(diagonal=2)

# %% [markdown]
# ## wrong: corner_only
#
# **Misconception.** Each word has only its next word to hide.
#
# **Hint.** Everything later is hidden, not only the very next key.

# %%
def future_mask(n):
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.ones(n, n, dtype=torch.bool).triu(diagonal=1).tril(diagonal=1)

# %% [markdown]
# ## wrong: float_ones
#
# **Misconception.** Ones and zeros are as good as True and False.
#
# **Hint.** Not here: `masked_fill` takes a mask of bool alone. Which type has your result?

# %%
def future_mask(n):
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.ones(n, n).triu(diagonal=1)

# %% [markdown]
# ## wrong: whole_numbers
#
# **Misconception.** `int` and `bool` are the same in PyTorch, as they nearly are in Python.
#
# **Hint.** A tensor of whole numbers used as a mask or as an index means something else. Look at
# its dtype.

# %%
def future_mask(n):
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.tensor([[int(j > i) for j in range(n)] for i in range(n)])

# %% [markdown]
# ## wrong: minus_infinity_already
#
# **Misconception.** The mask holds the minus infinities itself.
#
# **Hint.** That is another kind of mask, one to be added. This one only says where: True or False.

# %%
def future_mask(n):
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.full((n, n), float("-inf")).triu(diagonal=1)

# %% [markdown]
# ## wrong: batch_in_front
#
# **Misconception.** A mask needs a dimension for the batch.
#
# **Hint.** It is stretched over the batch by itself. The exercise asks for (n, n).

# %%
def future_mask(n):
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.ones(1, n, n, dtype=torch.bool).triu(diagonal=1)

# %% [markdown]
# ## wrong: squeezed
#
# **Misconception.** A dimension of size 1 is of no use and can be dropped.
#
# **Hint.** One token gives a matrix too, (1, 1). Whoever calls the function counts on two
# dimensions.

# %%
def future_mask(n):
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.ones(n, n, dtype=torch.bool).triu(diagonal=1).squeeze()

# %% [markdown]
# ## wrong: one_token_hidden
#
# **Misconception.** A word on its own has nobody to look at.
#
# **Hint.** It has itself. For n = 1 the only entry is on the diagonal.

# %%
def future_mask(n):
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    if n == 1:
        return torch.tensor([[True]])
    return torch.ones(n, n, dtype=torch.bool).triu(diagonal=1)

# %% [markdown]
# ## wrong: size_limited
#
# **Misconception.** No sentence is longer than the longest one in the lesson.
#
# **Hint.** Some are. Take whatever n is.

# %%
def future_mask(n):
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.ones(64, 64, dtype=torch.bool).triu(diagonal=1)[:n, :n]

# %% [markdown]
# ## wrong: no_check
#
# **Misconception.** PyTorch refuses impossible sizes by itself.
#
# **Hint.** `torch.ones(0, 0)` works, and for -1 the error is not a ValueError. Look at n first.

# %%
def future_mask(n):
    return torch.ones(n, n, dtype=torch.bool).triu(diagonal=1)

# %% [markdown]
# ## wrong: zero_accepted
#
# **Misconception.** Only a negative n is below 1.
#
# **Hint.** What about 0? A mask for no token has no row.

# %%
def future_mask(n):
    if n < 0:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.ones(n, n, dtype=torch.bool).triu(diagonal=1)

# %% [markdown]
# ## wrong: one_refused
#
# **Misconception.** A single token has no future, so it needs no mask.
#
# **Hint.** It has one, (1, 1), with False in it. Only n below 1 is refused.

# %%
def future_mask(n):
    if n <= 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.ones(n, n, dtype=torch.bool).triu(diagonal=1)

# %% [markdown]
# ## wrong: quietly_mended
#
# **Misconception.** An impossible n may be dealt with quietly.
#
# **Hint.** The caller goes on with what it gets and fails somewhere else. `raise` stops it here.

# %%
def future_mask(n):
    if n < 1:
        n = 1
    return torch.ones(n, n, dtype=torch.bool).triu(diagonal=1)

# %% [markdown]
# ## wrong: hidden_from_the_left
#
# **Misconception.** Row i hides n - i - 1 keys, and it does not matter which.
#
# **Hint.** The hidden keys are the later ones: they stand on the right. Compare with the drawing
# above.

# %%
def future_mask(n):
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.ones(n, n, dtype=torch.bool).tril(diagonal=-1).flip(0)
