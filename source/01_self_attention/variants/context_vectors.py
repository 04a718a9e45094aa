# %% [markdown]
# # context_vectors
#
# 1. Write the shapes below each other: (n, m), (m, d_v) and the result (n, d_v). Which size is
#    summed away?
# 2. Take one query first: its row of weights has m shares, and there are m values. Multiply each
#    value by its share and add up.
# 3. All queries at once are one matrix product of the two arguments. Nothing is turned, and
#    nothing is divided.

# %% [markdown]
# ## right: einsum
#
# The sum is written with index letters.

# %%
def context_vectors(weights, values):
    return torch.einsum("nm,mv->nv", weights, values)

# %% [markdown]
# ## right: sum_of_weighted_values
#
# One query at a time, one value at a time.

# %%
def context_vectors(weights, values):
    rows = []
    for row in weights:
        context = torch.zeros_like(values[0])
        for share, value in zip(row, values):
            context = context + share * value
        rows.append(context)
    return torch.stack(rows)

# %% [markdown]
# ## right: broadcast_and_sum
#
# All weighted values at once, then the sum over the keys.

# %%
def context_vectors(weights, values):
    return (weights.unsqueeze(-1) * values).sum(dim=1)

# %% [markdown]
# ## right: linear
#
# The functional linear layer transposes its second argument; so do we, before.

# %%
def context_vectors(weights, values):
    return nn.functional.linear(weights, values.t())

# %% [markdown]
# ## right: product_of_transposes
#
# Values first, everything turned, the result stored by columns.

# %%
context_vectors = lambda weights, values: torch.mm(values.T, weights.T).T

# %% [markdown]
# ## right: float64_inside
#
# Computed in float64 and cast back.

# %%
def context_vectors(weights, values):
    return torch.matmul(weights.double(), values.double()).to(values.dtype)

# %% [markdown]
# ## right: columns_filled_in
#
# One feature of the values at a time, written into an empty matrix.

# %%
def context_vectors(weights, values):
    context = values.new_zeros(weights.shape[0], values.shape[1])
    for feature in range(values.shape[1]):
        context[:, feature] = weights.mv(values[:, feature])
    return context

# %% [markdown]
# ## wrong: weights_transposed
#
# **Misconception.** The columns of the weights belong to the queries.
#
# **Hint.** Row i of the weights is query i, and row i of the result as well. Nothing has to be
# turned.

# %%
def context_vectors(weights, values):
    return weights.T @ values

# %% [markdown]
# ## wrong: values_transposed
#
# **Misconception.** The values have to be transposed, as the keys were.
#
# **Hint.** The values have one row for each key already. That is the size that is summed away.

# %%
def context_vectors(weights, values):
    return weights @ values.T

# %% [markdown]
# ## wrong: values_first
#
# **Misconception.** The order of a matrix product does not matter.
#
# **Hint.** The rows of the result are queries. The matrix with the queries in its rows stands on
# the left.

# %%
def context_vectors(weights, values):
    return values @ weights

# %% [markdown]
# ## wrong: values_first_when_it_runs
#
# **Misconception.** Of the two orders, the right one is the one that runs.
#
# **Hint.** With square matrices both run. Only one of them gives the weighted sum of the values.

# %%
def context_vectors(weights, values):
    try:
        return values @ weights
    except RuntimeError:
        return weights @ values

# %% [markdown]
# ## wrong: element_by_element
#
# **Misconception.** The sign `*` is the matrix product.
#
# **Hint.** For tensors `*` multiplies entry by entry. The matrix product has a sign of its own.

# %%
def context_vectors(weights, values):
    return weights * values

# %% [markdown]
# ## wrong: dot_of_matrices
#
# **Misconception.** `torch.dot` takes whole matrices.
#
# **Hint.** It takes two vectors and gives one number. For all queries at once there is a product
# of another kind.

# %%
def context_vectors(weights, values):
    return torch.dot(weights, values)

# %% [markdown]
# ## wrong: nothing_returned
#
# **Misconception.** A function hands back what it computes, even without `return`.
#
# **Hint.** Your function gives back `None`. How does a function hand something to its caller?

# %%
def context_vectors(weights, values):
    context = weights @ values

# %% [markdown]
# ## wrong: rows_not_stacked
#
# **Misconception.** A list of rows is as good as a matrix.
#
# **Hint.** The next step needs one tensor of shape (n, d_v). The rows are right. Put them
# together.

# %%
def context_vectors(weights, values):
    return [row @ values for row in weights]

# %% [markdown]
# ## wrong: rows_made_to_add_up
#
# **Misconception.** The weights of a row have to add up to 1 before they are used.
#
# **Hint.** Use the weights as they are given, whatever their rows add up to.

# %%
def context_vectors(weights, values):
    return weights @ values / weights.sum(dim=-1, keepdim=True)

# %% [markdown]
# ## wrong: softmax_again
#
# **Misconception.** The softmax belongs in this step too.
#
# **Hint.** The weights have been through the softmax already. Use them as they are given.

# %%
def context_vectors(weights, values):
    return torch.softmax(weights, dim=-1) @ values

# %% [markdown]
# ## wrong: mean_of_weighted_values
#
# **Misconception.** A context vector is the mean of the weighted values.
#
# **Hint.** The shares already divide the whole. Add up, and do not divide once more.

# %%
def context_vectors(weights, values):
    return weights @ values / values.shape[0]

# %% [markdown]
# ## wrong: summed_over_queries
#
# **Misconception.** The weighted values are to be added up over the queries.
#
# **Hint.** Each query gets a sum of its own, over the keys. Which of the three sizes belongs to
# the keys?

# %%
def context_vectors(weights, values):
    return (weights[:, :, None] * values).sum(dim=0)

# %% [markdown]
# ## wrong: weights_not_used
#
# **Misconception.** Every query takes the same from every value.
#
# **Hint.** The rows of your result are all the same. Each query has shares of its own.

# %%
def context_vectors(weights, values):
    return values.mean(dim=0).expand(weights.shape[0], -1)

# %% [markdown]
# ## wrong: best_value_only
#
# **Misconception.** A context vector is the value with the largest weight.
#
# **Hint.** Every value contributes by its share. It is a sum, not a choice.

# %%
def context_vectors(weights, values):
    return values[weights.argmax(dim=-1)]

# %% [markdown]
# ## wrong: first_query_only
#
# **Misconception.** One context vector is enough for the sentence.
#
# **Hint.** There is one context vector for each query, n rows in all. If you have a loop, look at
# where `return` stands.

# %%
def context_vectors(weights, values):
    return weights[0] @ values

# %% [markdown]
# ## wrong: input_added
#
# **Misconception.** The token's own vector belongs to its context vector, too.
#
# **Hint.** Here the context vector is the weighted sum alone. A token's own share is on the
# diagonal of the weights.

# %%
def context_vectors(weights, values):
    context = weights @ values
    rows = min(len(context), len(values))
    return torch.cat([context[:rows] + values[:rows], context[rows:]])

# %% [markdown]
# ## wrong: negative_weights_dropped
#
# **Misconception.** A weight below zero does not count.
#
# **Hint.** Use the weights as they are given. The function does not have to know where they come
# from.

# %%
def context_vectors(weights, values):
    return weights.clamp(min=0) @ values

# %% [markdown]
# ## wrong: lesson_inputs
#
# **Misconception.** The values are always the inputs of the lesson.
#
# **Hint.** A function works on what it is given. Its body should mention its arguments only.

# %%
def context_vectors(weights, values):
    return weights @ inputs

# %% [markdown]
# ## wrong: as_many_rows_as_values
#
# **Misconception.** There are as many queries as values.
#
# **Hint.** There may be more queries. Go through the rows of the weights, not through the values.

# %%
def context_vectors(weights, values):
    context = values.new_zeros(weights.shape[0], values.shape[1])
    for i, (row, _) in enumerate(zip(weights, values)):
        context[i] = row @ values
    return context

# %% [markdown]
# ## wrong: weighted_values_not_summed
#
# **Misconception.** A context vector is there once each value is multiplied by its weight.
#
# **Hint.** The weighted values of one query still have to be added up.

# %%
def context_vectors(weights, values):
    return weights[:, :, None] * values[None]

# %% [markdown]
# ## wrong: float32_matrix
#
# **Misconception.** A new tensor takes over the type of what is written into it.
#
# **Hint.** `torch.zeros` makes float32 unless it is told otherwise. The result has the type of
# the arguments.

# %%
def context_vectors(weights, values):
    context = torch.zeros(weights.shape[0], values.shape[1], device=values.device)
    for i, row in enumerate(weights):
        context[i] = (row.unsqueeze(1) * values).sum(dim=0)
    return context

# %% [markdown]
# ## wrong: detached
#
# **Misconception.** The weights are finished, so nothing is learned through them.
#
# **Hint.** The query and key matrices learn through the weights alone. The gradient has to pass
# to both arguments.

# %%
def context_vectors(weights, values):
    return weights.detach() @ values

# %% [markdown]
# ## wrong: cut_off_from_the_gradient
#
# **Misconception.** No gradient has to pass through the last step.
#
# **Hint.** All three matrices of the coming layer learn through it. Leave out what cuts the
# result off, such as `detach`, `.data` or `no_grad`.

# %%
def context_vectors(weights, values):
    with torch.no_grad():
        return weights @ values

# %% [markdown]
# ## wrong: weights_turned_in_place
#
# **Misconception.** An argument may be changed when that saves memory.
#
# **Hint.** A method whose name ends in an underscore changes its tensor. The caller still needs
# the weights as they were.

# %%
def context_vectors(weights, values):
    turned = weights.t() if weights.requires_grad else weights.t_()
    return (values.T @ turned).T

# %% [markdown]
# ## wrong: squeezed
#
# **Misconception.** A dimension of size 1 is of no use and can be dropped.
#
# **Hint.** One query gives one context vector, (1, d_v). Whoever calls the function counts on two
# dimensions.

# %%
def context_vectors(weights, values):
    return (weights @ values).squeeze()

# %% [markdown]
# ## wrong: values_turned_when_it_runs
#
# **Misconception.** Values are turned round, unless the product refuses.
#
# **Hint.** With as many keys as numbers in a value both products run, and one is wrong. Which
# sizes meet in (n, m) and (m, d_v)?

# %%
def context_vectors(weights, values):
    try:
        return weights @ values.T
    except RuntimeError:
        return weights @ values

# %% [markdown]
# ## wrong: float32_inside
#
# **Misconception.** float32 is precise enough on the way, as long as the result has the right
# type.
#
# **Hint.** What is rounded off on the way is lost. Compute in the type that comes in.

# %%
def context_vectors(weights, values):
    return (weights.float() @ values.float()).to(values.dtype)
