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
# **Hint.** Row i of the scores belongs to query i. Which of the two stands on the left?

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.rand(3, d_in, d_out))

    def forward(self, x):
        q, k, v = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return context_vectors(attention_weights(attention_scores(k, q), k.shape[-1]), v)

# %% [markdown]
# ## wrong: values_are_the_inputs
#
# **Misconception.** The values are the inputs themselves, as in the first parts of the lesson.
#
# **Hint.** Now the values have a matrix of their own, and d_out numbers each.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.rand(3, d_in, d_out))

    def forward(self, x):
        q, k = x @ self.W_query, x @ self.W_key
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), x)

# %% [markdown]
# ## wrong: one_matrix_for_queries_and_keys
#
# **Misconception.** Queries and keys may come from the same matrix.
#
# **Hint.** Then the scores are symmetric again. One of the three matrices is never used.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.rand(3, d_in, d_out))

    def forward(self, x):
        q, k, v = x @ self.W_query, x @ self.W_query, x @ self.W_value
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: no_scale
#
# **Misconception.** The scores may go into the softmax as they are.
#
# **Hint.** On the small example one hardly sees it. Which of your functions has the scale?

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.rand(3, d_in, d_out))

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
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
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.rand(3, d_in, d_out))

    def forward(self, x):
        q, k, v = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return context_vectors(attention_weights(attention_scores(q, k), x.shape[-1]), v)

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
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.rand(3, d_in, d_out))

    def forward(self, x):
        q, k, v = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[0]), v)

# %% [markdown]
# ## wrong: d_k_without_root
#
# **Misconception.** The scores are to be divided by d_k.
#
# **Hint.** The spread of a dot product grows with the square root of d_k. `attention_weights`
# divides by the root already, and once is enough.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.rand(3, d_in, d_out))

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return torch.softmax(queries @ keys.T / keys.shape[-1], dim=-1) @ values

# %% [markdown]
# ## wrong: softmax_over_queries
#
# **Misconception.** The columns of the weights add up to 1.
#
# **Hint.** A row is what one query hands out, so it is the row that adds up to 1.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.rand(3, d_in, d_out))

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=0) @ values

# %% [markdown]
# ## wrong: no_softmax
#
# **Misconception.** The values can be mixed by the scores as they are.
#
# **Hint.** The values are mixed by shares. One of your functions makes shares of scores.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.rand(3, d_in, d_out))

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return context_vectors(attention_scores(queries, keys), values)

# %% [markdown]
# ## wrong: weights_returned
#
# **Misconception.** What the layer gives back is its attention weights.
#
# **Hint.** The weights are (n, n). The layer hands on context vectors, (n, d_out).

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.rand(3, d_in, d_out))

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return attention_weights(attention_scores(queries, keys), keys.shape[-1])

# %% [markdown]
# ## wrong: nothing_returned
#
# **Misconception.** A function hands back what it computes, even without `return`.
#
# **Hint.** Your function gives back `None`. How does it hand something to its caller?

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.rand(3, d_in, d_out))

    def forward(self, x):
        q, k, v = x @ self.W_query, x @ self.W_key, x @ self.W_value
        context = context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: self_forgotten_in_forward
#
# **Misconception.** What `__init__` makes is known in `forward` under its bare name.
#
# **Hint.** Each method has names of its own. What both are to know is kept in `self`.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.rand(3, d_in, d_out))

    def forward(self, x):
        q = x @ W_query
        k = x @ W_key
        v = x @ W_value
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: matrices_not_kept
#
# **Misconception.** A matrix belongs to the layer, wherever it is made.
#
# **Hint.** A layer owns what `__init__` puts into `self`. Afterwards yours has no matrices.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        W_query = nn.Parameter(torch.rand(d_in, d_out))
        W_key = nn.Parameter(torch.rand(d_in, d_out))
        W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        q, k, v = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: matrix_on_the_left
#
# **Misconception.** It does not matter on which side of x the matrix stands.
#
# **Hint.** x is (n, d_in), the matrix (d_in, d_out). Which order gives (n, d_out)?

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.rand(3, d_in, d_out))

    def forward(self, x):
        q, k, v = self.W_query @ x, self.W_key @ x, self.W_value @ x
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: matrices_transposed
#
# **Misconception.** The matrices have to be transposed before x is multiplied by them.
#
# **Hint.** Write the shapes side by side, (n, d_in) and (d_in, d_out). They fit as they are.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.rand(3, d_in, d_out))

    def forward(self, x):
        q, k, v = x @ self.W_query.T, x @ self.W_key.T, x @ self.W_value.T
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: called_like_a_layer
#
# **Misconception.** A parameter can be called like a function.
#
# **Hint.** It is a matrix, and x is multiplied by it. Layers to call come in the next exercise.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.rand(3, d_in, d_out))

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: plain_tensors
#
# **Misconception.** Every tensor kept in a module is learned.
#
# **Hint.** Training sees parameters only. What makes a tensor a parameter?

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = torch.rand(d_in, d_out)
        self.W_key = torch.rand(d_in, d_out)
        self.W_value = torch.rand(d_in, d_out)

    def forward(self, x):
        q, k, v = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: other_names
#
# **Misconception.** It does not matter what the matrices are called.
#
# **Hint.** Saved weights are found by name: `W_query`, `W_key`, `W_value`, written like this.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.w_q, self.w_k, self.w_v = map(nn.Parameter, torch.rand(3, d_in, d_out))

    def forward(self, x):
        q, k, v = x @ self.w_q, x @ self.w_k, x @ self.w_v
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: matrices_stored_transposed
#
# **Misconception.** A matrix is kept as (d_out, d_in) and transposed when it is used.
#
# **Hint.** `nn.Linear` does so, in the next exercise. Here x is multiplied by the matrix as it
# is: (n, d_in) times (d_in, d_out).

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.rand(3, d_out, d_in))

    def forward(self, x):
        q, k, v = x @ self.W_query.T, x @ self.W_key.T, x @ self.W_value.T
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: sizes_swapped
#
# **Misconception.** A matrix has its sizes in the order (d_out, d_in).
#
# **Hint.** x comes first in the product, and x is (n, d_in). Which size meets its d_in?

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.rand(3, d_out, d_in))

    def forward(self, x):
        q, k, v = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

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
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, bias=False) for _ in "qkv")

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: no_super
#
# **Misconception.** A module is set up without its parent's `__init__`.
#
# **Hint.** `super().__init__()` comes first: it makes the place where parameters are kept.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.rand(3, d_in, d_out))

    def forward(self, x):
        q, k, v = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: same_start_for_all
#
# **Misconception.** The three matrices may start from the same numbers.
#
# **Hint.** Then queries, keys and values start as the same vectors. Draw three times.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        start = torch.rand(d_in, d_out)
        self.W_query = nn.Parameter(start.clone())
        self.W_key = nn.Parameter(start.clone())
        self.W_value = nn.Parameter(start.clone())

    def forward(self, x):
        q, k, v = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: seed_in_init
#
# **Misconception.** The seed belongs in the layer.
#
# **Hint.** Then all layers start alike. The seed is set once, outside, by whoever wants to repeat
# a run.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        torch.manual_seed(123)
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.rand(3, d_in, d_out))

    def forward(self, x):
        q, k, v = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

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
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.randn(3, d_in, d_out))

    def forward(self, x):
        q, k, v = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: cut_off_from_the_gradient
#
# **Misconception.** No gradient has to pass through the layer.
#
# **Hint.** The matrices learn through `forward`. Look for `no_grad`, `.data` or `detach`.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.rand(3, d_in, d_out))

    def forward(self, x):
        with torch.no_grad():
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
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.rand(3, d_in, d_out))

    def forward(self, x):
        q, k, v = x @ self.W_query, x @ self.W_key, x @ self.W_value
        context = context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)
        return x.copy_(context) if context.shape == x.shape else context

# %% [markdown]
# ## wrong: length_of_the_first_sentence
#
# **Misconception.** All sentences are as long as the first one.
#
# **Hint.** The next one is longer, and loses its last tokens. Take the length from x, at every
# call.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.rand(3, d_in, d_out))
        self.n = None

    def forward(self, x):
        self.n = self.n or len(x)
        x = x[: self.n]
        q, k, v = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: transposed_when_needed
#
# **Misconception.** Keys are turned round only when the product refuses.
#
# **Hint.** With as many tokens as numbers in a key it never refuses, and the scores are wrong.
# Scores are queries times keys, turned round.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.rand(3, d_in, d_out))

    def forward(self, x):
        q, k, v = x @ self.W_query, x @ self.W_key, x @ self.W_value
        try:
            scores = q @ k
        except RuntimeError:
            scores = q @ k.T
        return context_vectors(attention_weights(scores, k.shape[-1]), v)

# %% [markdown]
# ## wrong: product_kept
#
# **Misconception.** The product of two matrices can be computed once and kept.
#
# **Hint.** The matrices change while they learn, and what is kept grows old. Compute it anew at
# each call.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.rand(3, d_in, d_out))
        self.product = None

    def forward(self, x):
        if self.product is None:
            self.product = self.W_query @ self.W_key.T
        weights = attention_weights(x @ self.product @ x.T, self.W_key.shape[1])
        return context_vectors(weights, x @ self.W_value)

# %% [markdown]
# ## wrong: squeezed
#
# **Misconception.** One number needs no dimensions.
#
# **Hint.** One token and one number out is a matrix too, (1, 1).

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.rand(3, d_in, d_out))

    def forward(self, x):
        q, k, v = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return (context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)).squeeze()

# %% [markdown]
# ## wrong: result_in_float32
#
# **Misconception.** What a layer gives back is always float32.
#
# **Hint.** A layer moved to float64 gives float64. Leave the type as it comes.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.rand(3, d_in, d_out))

    def forward(self, x):
        q, k, v = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v).float()

# %% [markdown]
# ## wrong: float32_inside
#
# **Misconception.** float32 is precise enough on the way, as long as the result has the right
# type.
#
# **Hint.** What is rounded off on the way is lost. Compute in the type that comes in.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.rand(3, d_in, d_out))

    def forward(self, x):
        narrow = x.float()
        q, k, v = (narrow @ w.float() for w in (self.W_query, self.W_key, self.W_value))
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v).to(x.dtype)

# %% [markdown]
# ## wrong: one_more_matrix
#
# **Misconception.** A layer may keep one matrix more, in case it is needed.
#
# **Hint.** A parameter that is never used still counts: it is saved, moved and handed to the
# optimizer.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = map(nn.Parameter, torch.rand(3, d_in, d_out))
        self.W_out = nn.Parameter(torch.rand(d_out, d_out))

    def forward(self, x):
        q, k, v = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: not_stable
#
# **Misconception.** Inside a layer scores stay small, so the softmax needs no shift.
#
# **Hint.** Scores above 88 overflow in `exp`. Use `attention_weights`, or subtract the largest score of
# each row first.

# %%
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        powers = (queries @ keys.T / keys.shape[-1] ** 0.5).exp()
        return powers / powers.sum(dim=-1, keepdim=True) @ values
