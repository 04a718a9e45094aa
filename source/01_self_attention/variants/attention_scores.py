# %% [markdown]
# # attention_scores
#
# 1. Write the shapes below each other: (n, d_k), (m, d_k) and the result (n, m). Which size is
#    summed away, and which two stay?
# 2. A matrix product sums over the last size of the first matrix and the first size of the
#    second. One of your two matrices has its sizes in the wrong order for that.
# 3. Keep the queries on the left, so that row i stays query i. Turn the keys, so that each key
#    becomes a column. Then one matrix product is enough.

# %% [markdown]
# ## right: einsum
#
# The sum is written with index letters.

# %%
def attention_scores(queries, keys):
    return torch.einsum("id,jd->ij", queries, keys)

# %% [markdown]
# ## right: two_loops
#
# Number by number, put together with `stack`.

# %%
def attention_scores(queries, keys):
    rows = []
    for query in queries:
        rows.append(torch.stack([query.dot(key) for key in keys]))
    return torch.stack(rows)

# %% [markdown]
# ## right: broadcast_and_sum
#
# All products of numbers are formed first, then summed over the last dimension.

# %%
def attention_scores(queries, keys):
    return (queries.unsqueeze(1) * keys.unsqueeze(0)).sum(dim=-1)

# %% [markdown]
# ## right: linear
#
# A linear layer with the keys as its weight does the same.

# %%
from torch.nn import functional as F


def attention_scores(queries, keys):
    return F.linear(queries, keys)

# %% [markdown]
# ## right: row_by_row
#
# One matrix times one vector for each query.

# %%
def attention_scores(queries, keys):
    def row(query):
        return keys.mv(query)

    return torch.stack(list(map(row, queries)))

# %% [markdown]
# ## right: keys_first_then_turned
#
# The product the other way round, transposed at the end: the result is stored by columns.

# %%
def attention_scores(queries, keys):
    return (keys @ queries.T).T

# %% [markdown]
# ## right: filled_entry_by_entry
#
# An empty matrix of the right type is filled in two loops.

# %%
def attention_scores(queries, keys):
    n, m = queries.shape[0], keys.shape[0]
    scores = queries.new_empty(n, m)
    for i in range(n):
        for j in range(m):
            scores[i, j] = (queries[i] * keys[j]).sum()
    return scores

# %% [markdown]
# ## right: float64_inside
#
# Computed in float64 and cast back.

# %%
def attention_scores(queries, keys):
    return (queries.double() @ keys.double().mT).to(queries.dtype)

# %% [markdown]
# ## right: sum_of_outer_products
#
# One outer product for each of the d_k features, added up.

# %%
attention_scores = lambda queries, keys: sum(
    torch.outer(queries[:, f], keys[:, f]) for f in range(queries.shape[1])
)

# %% [markdown]
# ## right: tensordot
#
# The summed dimension is named by its number.

# %%
def attention_scores(queries, keys):
    return torch.tensordot(queries, keys, dims=([1], [1]))

# %% [markdown]
# ## wrong: keys_times_queries
#
# **Misconception.** The rows of the scores belong to the keys.
#
# **Hint.** Row i belongs to query i. Which of the two has to stand on the left of the product?

# %%
def attention_scores(queries, keys):
    return keys @ queries.T

# %% [markdown]
# ## wrong: without_transpose
#
# **Misconception.** A matrix product multiplies rows with rows.
#
# **Hint.** A matrix product takes rows of the left matrix with columns of the right one. The keys
# lie in rows.

# %%
def attention_scores(queries, keys):
    return queries @ keys

# %% [markdown]
# ## wrong: queries_transposed
#
# **Misconception.** It does not matter which of the two matrices is transposed.
#
# **Hint.** The size that must be summed away is d_k. With the queries transposed, the product
# sums over the tokens.

# %%
def attention_scores(queries, keys):
    return queries.T @ keys

# %% [markdown]
# ## wrong: element_by_element
#
# **Misconception.** The sign `*` is the matrix product.
#
# **Hint.** For tensors `*` multiplies entry by entry. The matrix product has a sign of its own.

# %%
def attention_scores(queries, keys):
    return queries * keys

# %% [markdown]
# ## wrong: element_by_element_with_transpose
#
# **Misconception.** Once the keys are transposed, `*` is the matrix product.
#
# **Hint.** The transpose is right. But for tensors `*` multiplies entry by entry. The matrix
# product has a sign of its own.

# %%
def attention_scores(queries, keys):
    return queries * keys.T

# %% [markdown]
# ## wrong: rows_in_pairs
#
# **Misconception.** The first query meets the first key, the second query the second key, and so
# on.
#
# **Hint.** Every query meets every key, which makes n times m scores. With `*` alone, rows meet
# only rows of the same number.

# %%
def attention_scores(queries, keys):
    return (queries * keys).sum(-1)

# %% [markdown]
# ## wrong: dot_of_matrices
#
# **Misconception.** `torch.dot` takes whole matrices.
#
# **Hint.** It takes two vectors and gives one number. All pairs at once are a product of another
# kind.

# %%
def attention_scores(queries, keys):
    return torch.dot(queries, keys)

# %% [markdown]
# ## wrong: transpose_called
#
# **Misconception.** `T` is a method, to be called with brackets.
#
# **Hint.** `keys.T` is the transposed matrix already. Nothing has to be called.

# %%
def attention_scores(queries, keys):
    return queries @ keys.T()

# %% [markdown]
# ## wrong: nothing_returned
#
# **Misconception.** A function hands back what it computes, even without `return`.
#
# **Hint.** Your function gives back `None`. How does a function hand something to its caller?

# %%
def attention_scores(queries, keys):
    scores = queries @ keys.T

# %% [markdown]
# ## wrong: returned_too_early
#
# **Misconception.** `return` inside a loop collects one row after the other.
#
# **Hint.** Your result holds one query only. `return` ends the function at once, so think about
# where it stands.

# %%
def attention_scores(queries, keys):
    rows = []
    for query in queries:
        rows.append(keys @ query)
        return torch.stack(rows)

# %% [markdown]
# ## wrong: reshaped_keys
#
# **Misconception.** To reshape the keys to (d_k, m) is to transpose them.
#
# **Hint.** `reshape` keeps the numbers in reading order and only breaks the rows elsewhere. Try
# it on a small matrix and compare with its transpose.

# %%
def attention_scores(queries, keys):
    m, d_k = keys.shape
    return queries @ keys.reshape(d_k, m)

# %% [markdown]
# ## wrong: transpose_when_needed
#
# **Misconception.** The keys have to be transposed only when the shapes do not fit otherwise.
#
# **Hint.** With as many keys as numbers in a key, both products run. Only one of them holds the
# dot products.

# %%
def attention_scores(queries, keys):
    try:
        return queries @ keys
    except RuntimeError:
        return queries @ keys.T

# %% [markdown]
# ## wrong: cosine_similarity
#
# **Misconception.** A score depends on the angle between query and key alone.
#
# **Hint.** The dot product also grows with the length of the vectors. Leave the lengths in.

# %%
def attention_scores(queries, keys):
    queries = queries / queries.norm(dim=-1, keepdim=True)
    keys = keys / keys.norm(dim=-1, keepdim=True)
    return queries @ keys.T

# %% [markdown]
# ## wrong: scaled_already
#
# **Misconception.** The scores are to be divided by the square root of d_k right away.
#
# **Hint.** The scores here are plain dot products. The division comes in `attention_weights`,
# once.

# %%
def attention_scores(queries, keys):
    return queries @ keys.T / math.sqrt(keys.shape[-1])

# %% [markdown]
# ## wrong: softmax_already
#
# **Misconception.** Scores and weights are the same thing.
#
# **Hint.** A score can be any number. Shares that add up to 1 are made of it in the next step.

# %%
def attention_scores(queries, keys):
    return torch.softmax(queries @ keys.T, dim=-1)

# %% [markdown]
# ## wrong: keys_not_used
#
# **Misconception.** Queries and keys are the same vectors, so one of them is enough.
#
# **Hint.** In the example both are the inputs. In the exercise they are two different matrices.
# Use both.

# %%
def attention_scores(queries, keys):
    return queries @ queries.T

# %% [markdown]
# ## wrong: lesson_inputs
#
# **Misconception.** The function is there for the six tokens of the lesson.
#
# **Hint.** A function works on what it is given. Its body should mention its arguments only.

# %%
def attention_scores(queries, keys):
    return inputs @ inputs.T

# %% [markdown]
# ## wrong: first_query_for_all
#
# **Misconception.** One query stands for all of them.
#
# **Hint.** Every query has a row of its own. In your result all rows are the same.

# %%
def attention_scores(queries, keys):
    row = keys @ queries[0]
    return row.expand(len(queries), len(keys))

# %% [markdown]
# ## wrong: mean_instead_of_sum
#
# **Misconception.** A dot product is the mean of the products.
#
# **Hint.** Multiply number by number and add up. Nothing is divided.

# %%
def attention_scores(queries, keys):
    return (queries[:, None] * keys[None]).mean(dim=-1)

# %% [markdown]
# ## wrong: products_not_summed
#
# **Misconception.** Multiplying number by number is already the dot product.
#
# **Hint.** A dot product is one number. The products of a pair still have to be added up.

# %%
def attention_scores(queries, keys):
    return queries[:, None] * keys[None]

# %% [markdown]
# ## wrong: distances
#
# **Misconception.** A score is the distance between query and key.
#
# **Hint.** A distance is small for vectors that agree. A dot product is large for them.

# %%
def attention_scores(queries, keys):
    return torch.cdist(queries, keys)

# %% [markdown]
# ## wrong: assumed_symmetric
#
# **Misconception.** Token i asks of token j what j asks of i, so half of the scores is enough.
#
# **Hint.** That holds as long as queries and keys are the same matrix. Here they are not.

# %%
def attention_scores(queries, keys):
    n, m = len(queries), len(keys)
    scores = queries.new_zeros(n, m)
    for i in range(n):
        for j in range(i, m):
            scores[i, j] = queries[i] @ keys[j]
            if j < n and i < m:
                scores[j, i] = scores[i, j]
    return scores

# %% [markdown]
# ## wrong: no_score_with_oneself
#
# **Misconception.** A token does not look at itself.
#
# **Hint.** The diagonal counts like every other entry: query i · key i.

# %%
def attention_scores(queries, keys):
    scores = queries @ keys.T
    return scores * (1 - torch.eye(*scores.shape, dtype=scores.dtype, device=scores.device))

# %% [markdown]
# ## wrong: no_negative_scores
#
# **Misconception.** A score below zero has no meaning.
#
# **Hint.** Vectors that point away from each other have a negative dot product. The softmax takes
# care of the sign later.

# %%
def attention_scores(queries, keys):
    return torch.relu(queries @ keys.T)

# %% [markdown]
# ## wrong: large_scores_limited
#
# **Misconception.** Large scores have to be cut off, or the softmax cannot deal with them.
#
# **Hint.** A stable softmax takes any size. The scores are to be returned as they are.

# %%
def attention_scores(queries, keys):
    return (queries @ keys.T).clamp(-100, 100)

# %% [markdown]
# ## wrong: squeezed
#
# **Misconception.** A dimension of size 1 is of no use and can be dropped.
#
# **Hint.** One query gives a matrix of one row, (1, m). Whoever calls the function counts on two
# dimensions.

# %%
def attention_scores(queries, keys):
    return (queries @ keys.T).squeeze()

# %% [markdown]
# ## wrong: last_dimension_squeezed
#
# **Misconception.** A dimension of size 1 at the end is left over and has to go.
#
# **Hint.** With a single key the last size is 1 too, and it must stay: (n, 1).

# %%
def attention_scores(queries, keys):
    return (queries @ keys.T).squeeze(-1)

# %% [markdown]
# ## wrong: float32_matrix
#
# **Misconception.** A new tensor takes over the type of what is written into it.
#
# **Hint.** `torch.zeros` makes float32 unless it is told otherwise. The result has the type of
# the arguments.

# %%
def attention_scores(queries, keys):
    scores = torch.zeros(len(queries), len(keys), device=queries.device)
    for i, query in enumerate(queries):
        for j, key in enumerate(keys):
            scores[i, j] = torch.dot(query, key)
    return scores

# %% [markdown]
# ## wrong: numbers_out_and_in
#
# **Misconception.** A tensor made of the same numbers is as good as the computed one.
#
# **Hint.** Training needs the way back from the result to the arguments. Numbers taken out of a
# tensor lose it; stay with tensor operations.

# %%
def attention_scores(queries, keys):
    numbers = [[float(query @ key) for key in keys] for query in queries]
    return torch.tensor(numbers, dtype=queries.dtype, device=queries.device)

# %% [markdown]
# ## wrong: list_of_lists
#
# **Misconception.** A list of lists is as good as a matrix.
#
# **Hint.** The next step needs a tensor of shape (n, m).

# %%
def attention_scores(queries, keys):
    return [[float(query @ key) for key in keys] for query in queries]

# %% [markdown]
# ## wrong: rows_not_stacked
#
# **Misconception.** A list of rows is as good as a matrix.
#
# **Hint.** The next step needs one tensor of shape (n, m). The rows are right. Put them together.

# %%
def attention_scores(queries, keys):
    return [keys @ query for query in queries]

# %% [markdown]
# ## wrong: keys_turned_in_place
#
# **Misconception.** An argument may be changed when that saves memory.
#
# **Hint.** A method whose name ends in an underscore changes its tensor. The caller still needs
# the keys as they were.

# %%
def attention_scores(queries, keys):
    if keys.requires_grad:
        return queries @ keys.t()
    return queries @ keys.t_()

# %% [markdown]
# ## wrong: first_dimension_squeezed
#
# **Misconception.** A single query needs no dimension of its own.
#
# **Hint.** With one query the result is still a matrix, (1, m). Whoever calls the function counts
# on two dimensions.

# %%
def attention_scores(queries, keys):
    return (queries @ keys.T).squeeze(0) if len(queries) == 1 else queries @ keys.T

# %% [markdown]
# ## wrong: vectors_by_squeezing
#
# **Misconception.** Squeezing a row always leaves a vector.
#
# **Hint.** A row of one number is squeezed to a bare number, and `dot` takes vectors only. Index
# the row instead.

# %%
def attention_scores(queries, keys):
    rows = []
    for i in range(len(queries)):
        query = queries[i : i + 1].squeeze()
        rows.append(torch.stack([query.dot(keys[j : j + 1].squeeze()) for j in range(len(keys))]))
    return torch.stack(rows)

# %% [markdown]
# ## wrong: a_square_is_symmetric
#
# **Misconception.** As many queries as keys give a symmetric matrix, so half of it is enough.
#
# **Hint.** In the picture queries and keys are the same tokens. Here they are not: query i with
# key j is another number than query j with key i.

# %%
def attention_scores(queries, keys):
    scores = queries @ keys.T
    if len(queries) == len(keys):
        scores = scores.triu() + scores.triu(diagonal=1).T
    return scores

# %% [markdown]
# ## wrong: as_many_keys_as_queries
#
# **Misconception.** There is one key for each query, and what is left over belongs to nobody.
#
# **Hint.** Every query meets every key. With 5 queries and 8 keys the result is 5 by 8.

# %%
def attention_scores(queries, keys):
    return queries @ keys[: len(queries)].T

# %% [markdown]
# ## wrong: float32_inside
#
# **Misconception.** float32 is precise enough on the way, as long as the result has the right
# type.
#
# **Hint.** What is rounded off on the way is lost. Compute in the type that comes in.

# %%
def attention_scores(queries, keys):
    return (queries.float() @ keys.float().T).to(queries.dtype)
