# %% [markdown]
# # SelfAttention_v1
#
# 1. `__init__` makes the three matrices and computes nothing else. `forward` uses them and makes
#    nothing new.
# 2. Multiply x by each matrix. After that, call the functions that you have written, in this
#    order: scores, weights, context vectors. Which two of queries, keys and values make the
#    scores?
# 3. The key size is the last size of `keys`, not of x. The weights come from the queries and
#    keys; what they mix are the values.

# %% [markdown]
# ## right: torch_functions
#
# Without the earlier exercises, and the matrices made in another order.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        q, k, v = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return torch.softmax(q @ k.T / k.shape[-1] ** 0.5, dim=-1) @ v

# %% [markdown]
# ## right: fused
#
# PyTorch's own attention function does the middle part.

# %%
from torch.nn import functional as F


class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        for name in ("W_query", "W_key", "W_value"):
            self.register_parameter(name, nn.Parameter(torch.rand(d_in, d_out)))

    def forward(self, x):
        return F.scaled_dot_product_attention(x @ self.W_query, x @ self.W_key, x @ self.W_value)

# %% [markdown]
# ## right: one_stacked_product
#
# One product for all three matrices, and all three made from one draw.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        matrices = torch.rand(3, d_in, d_out)
        self.W_query, self.W_key, self.W_value = (nn.Parameter(matrix) for matrix in matrices)

    def forward(self, x):
        stacked = torch.stack([self.W_query, self.W_key, self.W_value])
        queries, keys, values = x @ stacked
        scores = queries @ keys.T
        return stable_softmax(scores / math.sqrt(scores.new_tensor(keys.size(1)))) @ values

# %% [markdown]
# ## right: uniform_in_place
#
# Empty parameters are filled with `uniform_`, and the layers are used as functions.

# %%
from torch.nn import functional as F


class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.d_out = d_out
        self.W_key = nn.Parameter(torch.empty(d_in, d_out).uniform_())
        self.W_query = nn.Parameter(torch.empty(d_in, d_out))
        self.W_value = nn.Parameter(torch.empty(d_in, d_out))
        nn.init.uniform_(self.W_query, 0.0, 1.0)
        with torch.no_grad():
            self.W_value.uniform_()

    def forward(self, x):
        q = F.linear(x, self.W_query.T) * self.d_out**-0.5
        k = F.linear(x, self.W_key.T)
        v = F.linear(x, self.W_value.T)
        return F.softmax(F.linear(q, k), dim=-1).matmul(v)

# %% [markdown]
# ## right: query_by_query
#
# A loop over the tokens, with a method of its own for one of them.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def look(self, token, x):
        query = token @ self.W_query
        scores = torch.stack([query.dot(other @ self.W_key) for other in x])
        weights = (scores / math.sqrt(len(query))).softmax(0)
        return sum(weight * (other @ self.W_value) for weight, other in zip(weights, x))

    def forward(self, x):
        return torch.stack([self.look(token, x) for token in x])

# %% [markdown]
# ## right: einsum
#
# All products in index letters.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(size=(d_in, d_out), requires_grad=True))
        self.W_key = nn.Parameter(torch.rand(size=(d_in, d_out), requires_grad=True))
        self.W_value = nn.Parameter(torch.rand(size=(d_in, d_out), requires_grad=True))

    def forward(self, x):
        scores = torch.einsum("ni,id,je,mj->nmde", x, self.W_query, self.W_key, x)
        scores = scores.diagonal(dim1=-2, dim2=-1).sum(-1)
        weights = torch.exp(torch.log_softmax(scores / self.W_key.shape[1] ** 0.5, dim=1))
        return torch.einsum("nm,mi,id->nd", weights, x, self.W_value)

# %% [markdown]
# ## right: values_last
#
# The weights mix the inputs first, and the value matrix comes at the end: the same by
# associativity.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        scores = x @ (self.W_query @ self.W_key.T) @ x.T
        weights = attention_weights(scores, self.W_query.shape[1])
        return (weights @ x) @ self.W_value

# %% [markdown]
# ## right: scale_in_a_buffer
#
# The root of the key size is kept as a buffer, and the matrices come from a helper.

# %%
def matrix(d_in, d_out):
    return nn.Parameter(torch.rand((d_in, d_out)))


class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        nn.Module.__init__(self)
        self.W_query, self.W_key, self.W_value = [matrix(d_in, d_out) for _ in range(3)]
        self.register_buffer("scale", torch.tensor(float(d_out)).sqrt())

    def forward(self, x):
        keys = x @ self.W_key
        weights = stable_softmax((x @ self.W_query) @ keys.T / self.scale, dim=1)
        return context_vectors(weights, x @ self.W_value)

# %% [markdown]
# ## right: float64_inside
#
# Computed in float64 and cast back.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        wide = x.double()
        q, k, v = (wide @ w.double() for w in (self.W_query, self.W_key, self.W_value))
        return context_vectors(attention_weights(attention_scores(q, k), k.size(-1)), v).to(x)

# %% [markdown]
# ## wrong: queries_and_keys_swapped
#
# **Misconception.** Queries and keys may change places, since both come from x.
#
# **Hint.** Row i of the scores belongs to query i. With the keys on the left the rows belong to
# the keys.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        queries = x @ self.W_query
        keys = x @ self.W_key
        values = x @ self.W_value
        weights = attention_weights(attention_scores(keys, queries), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: values_are_the_inputs
#
# **Misconception.** As in the first parts of the lesson, the values are the inputs themselves.
#
# **Hint.** Now the values have a matrix of their own, and d_out numbers each.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        queries = x @ self.W_query
        keys = x @ self.W_key
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, x)

# %% [markdown]
# ## wrong: keys_as_values
#
# **Misconception.** The keys are what is mixed.
#
# **Hint.** A key is what a token is found by. What it hands over is its value.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        queries = x @ self.W_query
        keys = x @ self.W_key
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, keys)

# %% [markdown]
# ## wrong: one_matrix_for_queries_and_keys
#
# **Misconception.** Queries and keys may come from the same matrix.
#
# **Hint.** Then the scores are symmetric again. The key matrix is never used; look for `W_query`
# written twice.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        queries = x @ self.W_query
        keys = x @ self.W_query
        values = x @ self.W_value
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: no_scale
#
# **Misconception.** The scale changes nothing that matters.
#
# **Hint.** On the small example one hardly sees it. Divide the scores by the square root of the
# key size.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        queries = x @ self.W_query
        keys = x @ self.W_key
        values = x @ self.W_value
        return torch.softmax(queries @ keys.T, dim=-1) @ values

# %% [markdown]
# ## wrong: root_of_d_in
#
# **Misconception.** d_k is the size of a token.
#
# **Hint.** d_k is the size of a key. The key matrix has changed it from d_in to d_out.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        queries = x @ self.W_query
        keys = x @ self.W_key
        values = x @ self.W_value
        weights = attention_weights(attention_scores(queries, keys), d_k=x.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: root_of_the_number_of_tokens
#
# **Misconception.** d_k is the number of keys.
#
# **Hint.** The first size of `keys` counts the tokens. d_k is how many numbers a key has.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        queries = x @ self.W_query
        keys = x @ self.W_key
        values = x @ self.W_value
        weights = attention_weights(attention_scores(queries, keys), d_k=keys.shape[0])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: d_k_without_root
#
# **Misconception.** The scores are divided by d_k, not by its square root.
#
# **Hint.** The spread of a dot product grows with the square root of d_k. `attention_weights`
# divides by the root already, and once is enough.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        queries = x @ self.W_query
        keys = x @ self.W_key
        values = x @ self.W_value
        return torch.softmax(queries @ keys.T / keys.shape[-1], dim=-1) @ values

# %% [markdown]
# ## wrong: scaled_twice
#
# **Misconception.** The layer has to scale the scores before it calls `attention_weights`.
#
# **Hint.** `attention_weights` divides already. Hand it the scores as they are.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        queries = x @ self.W_query
        keys = x @ self.W_key
        values = x @ self.W_value
        d_k = keys.shape[-1]
        scores = attention_scores(queries, keys) / d_k**0.5
        return context_vectors(attention_weights(scores, d_k), values)

# %% [markdown]
# ## wrong: softmax_over_queries
#
# **Misconception.** The softmax goes over the first dimension.
#
# **Hint.** Then the columns add up to 1. A row is what one query hands out.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        queries = x @ self.W_query
        keys = x @ self.W_key
        values = x @ self.W_value
        weights = torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=0)
        return weights @ values

# %% [markdown]
# ## wrong: no_softmax
#
# **Misconception.** Scores and weights are the same thing.
#
# **Hint.** Scores can be any numbers. The values are mixed by shares, and each row of shares adds
# up to 1.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        queries = x @ self.W_query
        keys = x @ self.W_key
        values = x @ self.W_value
        return attention_scores(queries, keys) / keys.shape[-1] ** 0.5 @ values

# %% [markdown]
# ## wrong: weights_returned
#
# **Misconception.** The layer returns its attention weights.
#
# **Hint.** The weights are (n, n). The layer hands on context vectors, (n, d_out).

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        queries = x @ self.W_query
        keys = x @ self.W_key
        return attention_weights(attention_scores(queries, keys), keys.shape[-1])

# %% [markdown]
# ## wrong: pair_returned
#
# **Misconception.** The layer returns the context vectors and the weights.
#
# **Hint.** Only the context vectors are asked for.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        queries = x @ self.W_query
        keys = x @ self.W_key
        values = x @ self.W_value
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values), weights

# %% [markdown]
# ## wrong: nothing_returned
#
# **Misconception.** What the last line computes is returned.
#
# **Hint.** In a method nothing comes back without `return`.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        queries = x @ self.W_query
        keys = x @ self.W_key
        values = x @ self.W_value
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        context = context_vectors(weights, values)

# %% [markdown]
# ## wrong: input_added
#
# **Misconception.** The layer adds the values of each token to its context vector.
#
# **Hint.** A token's own share is on the diagonal of the weights. Nothing is added afterwards.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        queries = x @ self.W_query
        keys = x @ self.W_key
        values = x @ self.W_value
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return values + context_vectors(weights, values)

# %% [markdown]
# ## wrong: plain_tensors
#
# **Misconception.** Any tensor kept in a module is trained.
#
# **Hint.** Training sees parameters only. What makes a tensor a parameter?

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = torch.rand(d_in, d_out, requires_grad=True)
        self.W_key = torch.rand(d_in, d_out, requires_grad=True)
        self.W_value = torch.rand(d_in, d_out, requires_grad=True)

    def forward(self, x):
        queries = x @ self.W_query
        keys = x @ self.W_key
        values = x @ self.W_value
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: other_names
#
# **Misconception.** It does not matter what the matrices are called and when they are made.
#
# **Hint.** `__init__` makes them, and they are called `W_query`, `W_key` and `W_value`, written
# exactly like this. Saved weights are found by name.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.Wq = nn.Parameter(torch.rand(d_in, d_out))
        self.Wk = nn.Parameter(torch.rand(d_in, d_out))
        self.Wv = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        queries, keys, values = x @ self.Wq, x @ self.Wk, x @ self.Wv
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: matrices_stored_transposed
#
# **Misconception.** A bare matrix is stored as (d_out, d_in), like the one in `nn.Linear`.
#
# **Hint.** Here x is multiplied by the matrix as it is: (n, d_in) times (d_in, d_out).

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_out, d_in))
        self.W_key = nn.Parameter(torch.rand(d_out, d_in))
        self.W_value = nn.Parameter(torch.rand(d_out, d_in))

    def forward(self, x):
        queries = x @ self.W_query.T
        keys = x @ self.W_key.T
        values = x @ self.W_value.T
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: linear_layers
#
# **Misconception.** `nn.Linear` and a bare matrix are the same.
#
# **Hint.** The linear layers come in the next exercise. Here each matrix is an `nn.Parameter`.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: no_super
#
# **Misconception.** A module is set up without its parent's `__init__`.
#
# **Hint.** `super().__init__()` comes first: it makes the place where parameters are kept.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: new_matrices_in_forward
#
# **Misconception.** The matrices are drawn when the layer is used.
#
# **Hint.** Drawn in `forward` they are new each time, and nothing learned can stay. `forward`
# only uses what `__init__` made.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.d_in, self.d_out = d_in, d_out

    def forward(self, x):
        self.W_query = nn.Parameter(torch.rand(self.d_in, self.d_out))
        self.W_key = nn.Parameter(torch.rand(self.d_in, self.d_out))
        self.W_value = nn.Parameter(torch.rand(self.d_in, self.d_out))
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: product_made_in_init
#
# **Misconception.** What is computed once in `__init__` follows the parameters later.
#
# **Hint.** It keeps the numbers of the start. Training changes the parameters, and `forward` has
# to look at them anew.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))
        self.all_three = torch.cat([self.W_query, self.W_key, self.W_value], dim=1).detach()

    def forward(self, x):
        queries, keys, values = (x @ self.all_three.to(x)).chunk(3, dim=-1)
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: one_tensor_in_three_parameters
#
# **Misconception.** Three parameters made from one tensor are three matrices.
#
# **Hint.** They share the same numbers in memory: whoever changes one changes all. Draw each
# matrix for itself.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        start = torch.rand(d_in, d_out)
        self.W_query = nn.Parameter(start)
        self.W_key = nn.Parameter(start)
        self.W_value = nn.Parameter(start)

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: same_start_for_all
#
# **Misconception.** The three matrices may start from the same numbers.
#
# **Hint.** Then queries, keys and values are the same vectors at first. Draw each matrix for
# itself.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        start = torch.rand(d_in, d_out)
        self.W_query = nn.Parameter(start.clone())
        self.W_key = nn.Parameter(start.clone())
        self.W_value = nn.Parameter(start.clone())

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: seed_in_init
#
# **Misconception.** The seed belongs into the layer.
#
# **Hint.** Then all layers start alike. The seed is set once, outside, by whoever wants to repeat
# a run.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        torch.manual_seed(123)
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: normal_start
#
# **Misconception.** `torch.randn` and `torch.rand` draw the same kind of numbers.
#
# **Hint.** One letter apart: `rand` draws between 0 and 1, `randn` from the normal distribution.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.randn(d_in, d_out))
        self.W_key = nn.Parameter(torch.randn(d_in, d_out))
        self.W_value = nn.Parameter(torch.randn(d_in, d_out))

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: zero_start
#
# **Misconception.** The matrices start from zero and learn the rest.
#
# **Hint.** From zero all queries and keys are zero, and no gradient reaches them. Start from
# `torch.rand`.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.zeros(d_in, d_out))
        self.W_key = nn.Parameter(torch.zeros(d_in, d_out))
        self.W_value = nn.Parameter(torch.zeros(d_in, d_out))

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: small_start
#
# **Misconception.** The matrices start from small numbers around zero, as in `nn.Linear`.
#
# **Hint.** That is how the next layer starts. This one starts from `torch.rand`, between 0 and 1.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        bound = 1 / math.sqrt(d_in)
        self.W_query = nn.Parameter(torch.empty(d_in, d_out).uniform_(-bound, bound))
        self.W_key = nn.Parameter(torch.empty(d_in, d_out).uniform_(-bound, bound))
        self.W_value = nn.Parameter(torch.empty(d_in, d_out).uniform_(-bound, bound))

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: no_gradient_wanted
#
# **Misconception.** A parameter needs a gradient only when it is asked for.
#
# **Hint.** `requires_grad=False` freezes a matrix. All three are to learn.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out), requires_grad=False)
        self.W_key = nn.Parameter(torch.rand(d_in, d_out), requires_grad=False)
        self.W_value = nn.Parameter(torch.rand(d_in, d_out), requires_grad=False)

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: data_of_the_keys
#
# **Misconception.** `.data` is how a parameter is read.
#
# **Hint.** It cuts the matrix off from the gradient. Use the parameter itself.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        queries = x @ self.W_query
        keys = x @ self.W_key.data
        values = x @ self.W_value
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: keys_of_the_first_sentence
#
# **Misconception.** Keys and values are computed once and kept.
#
# **Hint.** They belong to one sentence. The next sentence has others.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))
        self.keys = self.values = None

    def forward(self, x):
        queries = x @ self.W_query
        if self.keys is None:
            self.keys, self.values = x @ self.W_key, x @ self.W_value
        weights = attention_weights(attention_scores(queries, self.keys), queries.shape[-1])
        return context_vectors(weights, self.values)

# %% [markdown]
# ## wrong: transposed_when_it_fits
#
# **Misconception.** A matrix is transposed whenever the shapes allow it.
#
# **Hint.** With as many numbers out as in, both ways run. The exercise says which one: x times W.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        def project(matrix):
            fits = matrix.shape[1] == x.shape[-1]
            return x @ (matrix.T if fits else matrix)

        queries, keys, values = map(project, (self.W_query, self.W_key, self.W_value))
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: squeezed
#
# **Misconception.** A dimension of size 1 is of no use and can be dropped.
#
# **Hint.** A sentence of one token gives one row, (1, d_out). Whoever calls the layer counts on
# two dimensions.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values).squeeze()

# %% [markdown]
# ## wrong: cast_to_float32
#
# **Misconception.** The input of a layer is always float32.
#
# **Hint.** A layer moved to float64 gets float64 input. Leave the type as it comes.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        x = x.to(torch.float32)
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: written_into_the_input
#
# **Misconception.** A layer may write its result into its input when the shapes are the same.
#
# **Hint.** The caller still needs the tokens as they were. Return a new tensor.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        context = context_vectors(weights, values)
        if context.shape == x.shape:
            x.copy_(context)
        return context

# %% [markdown]
# ## wrong: keys_kept_for_each_length
#
# **Misconception.** Sentences of the same length have the same keys and values.
#
# **Hint.** They belong to one sentence, not to its length. Compute them anew each time.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))
        self.known = {}

    def forward(self, x):
        queries = x @ self.W_query
        if len(x) not in self.known:
            self.known[len(x)] = x @ self.W_key, x @ self.W_value
        keys, values = self.known[len(x)]
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: one_more_matrix
#
# **Misconception.** The layer needs a fourth matrix for its output.
#
# **Hint.** That comes with several heads. This layer learns three matrices and nothing else.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))
        self.W_out = nn.Parameter(torch.eye(d_out))

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values) @ self.W_out
