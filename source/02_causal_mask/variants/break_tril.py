# %% [markdown]
# # break_tril
#
# 1. Which entry does the softmax see and the mask hide a moment later? That is the one to make
#    large.
# 2. The figure above shows how large the gap has to be in float32 before the visible weights of
#    its row are lost.
# 3. One large number is enough, in a row that has a future. `torch.zeros(n, n)` is a good start,
#    and it is float32 already.

# %% [markdown]
# ## right: visible_scores_far_down
#
# The hidden ones are 0, the visible ones far below.

# %%
def break_tril():
    return torch.full((5, 5), -150.0).tril()

# %% [markdown]
# ## right: smallest_possible
#
# Two tokens; the first has one hidden score.

# %%
def break_tril():
    return torch.tensor([[0.0, 1000.0], [0.0, 0.0]])

# %% [markdown]
# ## right: random_scores_and_one_gap
#
# Ordinary scores but for one.

# %%
def break_tril():
    scores = torch.randn(6, 6)
    scores[2, 5] = scores[2, :3].max() + 110
    return scores

# %% [markdown]
# ## right: steep_rows
#
# Scores grow along every row.

# %%
def break_tril():
    return torch.arange(16, dtype=torch.float32).mul(120).repeat(16, 1)

# %% [markdown]
# ## right: whole_future_raised
#
# Every hidden score is far above the visible ones.

# %%
def break_tril():
    scores = torch.zeros(7, 7, device=device) + 300.0 * (1 - causal_mask(7).to(device))
    assert scores.isfinite().all()
    return scores

# %% [markdown]
# ## right: largest_float32
#
# The largest number that float32 has.

# %%
def break_tril():
    return torch.eye(3).roll(1, dims=1) * torch.finfo(torch.float32).max

# %% [markdown]
# ## right: searched
#
# The gap is raised until the weights are lost.

# %%
def break_tril():
    scores = torch.zeros(3, 3)
    while tril_causal_weights(scores, 1)[0, 0] > 0:
        scores[0, 1] += 10
    return scores

# %% [markdown]
# ## wrong: gap_too_small
#
# **Misconception.** A gap of 50 is enough.
#
# **Hint.** `exp(-50)` is about 0.0000000000000000000002, and float32 still holds it well. The
# figure shows where it ends.

# %%
def break_tril():
    scores = torch.zeros(4, 4)
    scores[0, 3] = 50.0
    return scores

# %% [markdown]
# ## wrong: float16_gap
#
# **Misconception.** What breaks float16 breaks float32.
#
# **Hint.** float32 reaches much further down. Read the gap off its own curve.

# %%
def break_tril():
    scores = torch.zeros(4, 4)
    scores[0, 3] = 20.0
    return scores

# %% [markdown]
# ## wrong: visible_score_raised
#
# **Misconception.** Any large score will do.
#
# **Hint.** This one is visible, so it takes all the weight, and rightly so. It has to be a hidden
# one: key after query.

# %%
def break_tril():
    scores = torch.zeros(4, 4)
    scores[3, 0] = 200.0
    return scores

# %% [markdown]
# ## wrong: diagonal_raised
#
# **Misconception.** The diagonal is hidden.
#
# **Hint.** A word sees itself. What is hidden lies above the diagonal.

# %%
def break_tril():
    return 200 * torch.eye(4)

# %% [markdown]
# ## wrong: everything_raised
#
# **Misconception.** Large scores break the softmax.
#
# **Hint.** When all are equally large the weights are equal. What counts is the gap between
# hidden and visible.

# %%
def break_tril():
    return torch.full((4, 4), 1000.0)

# %% [markdown]
# ## wrong: future_lowered
#
# **Misconception.** The hidden scores have to be far below the visible ones.
#
# **Hint.** Then the softmax gives them nothing, and nothing is lost. Turn the gap round.

# %%
def break_tril():
    return torch.full((4, 4), -200.0).triu(diagonal=1)

# %% [markdown]
# ## wrong: infinite
#
# **Misconception.** The gap is largest with infinity.
#
# **Hint.** With an infinite score the softmax itself gives `nan`. A finite one is asked for.

# %%
def break_tril():
    scores = torch.zeros(4, 4)
    scores[0, 3] = float("inf")
    return scores

# %% [markdown]
# ## wrong: future_already_hidden
#
# **Misconception.** The future must be hidden with minus infinity.
#
# **Hint.** That is the way that does not fail. Hand over plain finite scores.

# %%
def break_tril():
    scores = torch.zeros(4, 4)
    scores[:, 0] = 200.0
    return scores.masked_fill(causal_mask(4) == 0, float("-inf"))

# %% [markdown]
# ## wrong: float64
#
# **Misconception.** More digits do no harm.
#
# **Hint.** float64 holds far smaller weights. The failure is to be shown in float32.

# %%
def break_tril():
    scores = torch.zeros(4, 4, dtype=torch.float64)
    scores[0, 3] = 200.0
    return scores

# %% [markdown]
# ## wrong: whole_numbers
#
# **Misconception.** Numbers written without a point are floats.
#
# **Hint.** `torch.tensor([[0, 200]])` holds whole numbers, int64. Scores are float32.

# %%
def break_tril():
    return torch.tensor([[0, 200], [0, 0]])

# %% [markdown]
# ## wrong: one_token
#
# **Misconception.** One token is enough.
#
# **Hint.** One token has no future, so nothing is hidden. Take at least two.

# %%
def break_tril():
    return torch.tensor([[200.0]])

# %% [markdown]
# ## wrong: too_many_tokens
#
# **Misconception.** The larger the matrix, the better it breaks.
#
# **Hint.** One row is enough. With 16 tokens at most the figure can be read.

# %%
def break_tril():
    return 200 * torch.ones(32, 32).triu(diagonal=1)

# %% [markdown]
# ## wrong: batch
#
# **Misconception.** Scores always have a batch in front.
#
# **Hint.** Here one matrix is asked for, (n, n).

# %%
def break_tril():
    return 200 * torch.ones(1, 4, 4).triu(diagonal=1)

# %% [markdown]
# ## wrong: one_row
#
# **Misconception.** One row of scores is enough.
#
# **Hint.** A matrix is asked for: as many queries as keys.

# %%
def break_tril():
    return torch.tensor([[0.0, 0.0, 200.0]])

# %% [markdown]
# ## wrong: list_returned
#
# **Misconception.** A list of rows is a matrix.
#
# **Hint.** It is not a tensor yet. `torch.tensor` makes one of it.

# %%
def break_tril():
    return [[0.0, 200.0], [0.0, 0.0]]

# %% [markdown]
# ## wrong: weights_returned
#
# **Misconception.** The broken weights are asked for.
#
# **Hint.** The scores are: what you hand to `tril_causal_weights`.

# %%
def break_tril():
    scores = torch.zeros(4, 4)
    scores[0, 3] = 200.0
    return tril_causal_weights(scores, 1)
