# %% [markdown]
# # SelfAttention_v2
#
# 1. Only two things differ from the first layer: what is made in `__init__`, and how it is
#    applied to x.
# 2. `nn.Linear(d_in, d_out, …)` has an argument that turns its bias on or off. A linear layer is
#    called like a function.
# 3. Hand `qkv_bias` on to all three layers as `bias`. In `forward` replace each product with a
#    matrix by a call of the layer. The rest stays as it was.

# %% [markdown]
# ## right: torch_functions
#
# Without the earlier exercises, and the layers made in another order.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)

    def forward(self, x):
        scores = self.W_query(x) @ self.W_key(x).mT
        scale = scores.new_tensor(self.W_key.out_features).sqrt()
        return nn.Softmax(dim=-1)(scores / scale) @ self.W_value(x)

# %% [markdown]
# ## right: fused
#
# PyTorch's own attention function does the middle part; the layers are made in a loop.

# %%
from torch.nn import functional as F


class SelfAttention_v2(nn.Module):
    names = ("W_query", "W_key", "W_value")

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        for name in self.names:
            setattr(self, name, nn.Linear(d_in, d_out, bias=qkv_bias))

    def forward(self, x):
        q, k, v = (getattr(self, name)(x).unsqueeze(0) for name in self.names)
        return F.scaled_dot_product_attention(q, k, v).squeeze(0)

# %% [markdown]
# ## right: one_stacked_product
#
# The weights of the three layers are put on top of each other and applied at once.

# %%
from torch.nn import functional as F


class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        layers = [self.W_query, self.W_key, self.W_value]
        weight = torch.cat([layer.weight for layer in layers])
        bias = None if layers[0].bias is None else torch.cat([layer.bias for layer in layers])
        q, k, v = F.linear(x, weight, bias).chunk(3, dim=-1)
        return torch.softmax(q @ k.T * k.shape[-1] ** -0.5, dim=-1) @ v

# %% [markdown]
# ## right: query_by_query
#
# A loop over the tokens.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.d_out = d_out
        self.W_query, self.W_key, self.W_value = (
            nn.Linear(d_in, d_out, bias=bool(qkv_bias)) for _ in range(3)
        )

    def forward(self, x):
        keys, values = self.W_key(x), self.W_value(x)

        def context(token):
            scores = keys.mv(self.W_query(token)) / math.sqrt(self.d_out)
            return stable_softmax(scores, dim=0) @ values

        return torch.stack([context(token) for token in x])

# %% [markdown]
# ## right: built_on_the_weights
#
# The layers hold the matrices, and the products are written out.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def project(self, layer, x):
        y = x @ layer.weight.T
        return y if layer.bias is None else y + layer.bias

    def forward(self, x):
        q, k, v = (self.project(layer, x) for layer in self.children())
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[1]), v)

# %% [markdown]
# ## right: scaled_queries
#
# The queries are scaled before the scores are made.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super(SelfAttention_v2, self).__init__()
        self.scale = 1 / math.sqrt(d_out)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = torch.einsum("nd,md->nm", self.scale * self.W_query(x), self.W_key(x))
        return torch.einsum("nm,md->nd", scores.softmax(-1), self.W_value(x))

# %% [markdown]
# ## right: float64_inside
#
# The part after the layers is computed in float64 and cast back.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        options = {"in_features": d_in, "out_features": d_out, "bias": qkv_bias}
        self.W_query = nn.Linear(**options)
        self.W_key = nn.Linear(**options)
        self.W_value = nn.Linear(**options)

    def forward(self, x):
        q, k, v = (layer(x).double() for layer in (self.W_query, self.W_key, self.W_value))
        return (attention_weights(q @ k.T, k.shape[-1]) @ v).to(x.dtype)

# %% [markdown]
# ## wrong: bias_by_default
#
# **Misconception.** The layers have a bias unless it is turned off.
#
# **Hint.** `nn.Linear` adds a bias by itself. Here there is one only when `qkv_bias` is true, and
# by default it is not.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=True):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: bias_always
#
# **Misconception.** `qkv_bias` reaches the layers by itself.
#
# **Hint.** An argument that is not used changes nothing. Hand it to each `nn.Linear`.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out)
        self.W_key = nn.Linear(d_in, d_out)
        self.W_value = nn.Linear(d_in, d_out)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: bias_never
#
# **Misconception.** Attention layers never have a bias.
#
# **Hint.** They have one when `qkv_bias=True`. Hand the argument on.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: bias_of_zeros
#
# **Misconception.** A bias of zeros is no bias.
#
# **Hint.** It starts from zero, but it is there, and training changes it. Without a bias
# `layer.bias` is `None`.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out)
        self.W_key = nn.Linear(d_in, d_out)
        self.W_value = nn.Linear(d_in, d_out)
        if not qkv_bias:
            for layer in (self.W_query, self.W_key, self.W_value):
                nn.init.zeros_(layer.bias)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: bias_for_queries_and_keys_only
#
# **Misconception.** The values have no bias.
#
# **Hint.** The q, the k and the v in `qkv_bias` stand for all three layers.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: bias_left_out_in_forward
#
# **Misconception.** A linear layer is its weight.
#
# **Hint.** The weight is only the first half. Call the layer, and its bias is added.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        queries = x @ self.W_query.weight.T
        keys = x @ self.W_key.weight.T
        values = x @ self.W_value.weight.T
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: argument_called_bias
#
# **Misconception.** The names of the arguments are free.
#
# **Hint.** The first line is given: the argument is called `qkv_bias`.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=bias)
        self.W_key = nn.Linear(d_in, d_out, bias=bias)
        self.W_value = nn.Linear(d_in, d_out, bias=bias)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: product_with_a_layer
#
# **Misconception.** A linear layer is a matrix, to be multiplied with `@`.
#
# **Hint.** A layer is called like a function. It does the product itself.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        queries = x @ self.W_query
        keys = x @ self.W_key
        values = x @ self.W_value
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: weight_not_transposed
#
# **Misconception.** A linear layer stores its matrix as it is multiplied: (d_in, d_out).
#
# **Hint.** Look at the shape of `layer.weight`. Calling the layer takes care of it.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        queries = x @ self.W_query.weight
        keys = x @ self.W_key.weight
        values = x @ self.W_value.weight
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: sizes_swapped
#
# **Misconception.** `nn.Linear` takes the size of the output first.
#
# **Hint.** First in, then out: `nn.Linear(d_in, d_out)`.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_out, d_in, bias=qkv_bias)
        self.W_key = nn.Linear(d_out, d_in, bias=qkv_bias)
        self.W_value = nn.Linear(d_out, d_in, bias=qkv_bias)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: bare_parameters
#
# **Misconception.** The second layer holds bare parameters like the first.
#
# **Hint.** Now each of the three is an `nn.Linear`, which holds a weight and perhaps a bias.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: linear_of_ones_own
#
# **Misconception.** A class that does the same is an `nn.Linear`.
#
# **Hint.** The layers are to be those of PyTorch, with its way of starting them.

# %%
class Linear(nn.Module):
    def __init__(self, d_in, d_out, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_out, d_in) / math.sqrt(d_in))
        self.bias = nn.Parameter(torch.zeros(d_out)) if bias else None

    def forward(self, x):
        return nn.functional.linear(x, self.weight, self.bias)


class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = Linear(d_in, d_out, qkv_bias)
        self.W_key = Linear(d_in, d_out, qkv_bias)
        self.W_value = Linear(d_in, d_out, qkv_bias)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: layers_in_a_dict
#
# **Misconception.** Layers kept in a plain dict belong to the module.
#
# **Hint.** A module finds layers that are its own attributes: `self.W_query = …`.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        names = ("W_query", "W_key", "W_value")
        self.layers = {name: nn.Linear(d_in, d_out, bias=qkv_bias) for name in names}

    def forward(self, x):
        queries, keys, values = (layer(x) for layer in self.layers.values())
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: one_layer_for_queries_and_keys
#
# **Misconception.** Two names for one layer are two layers.
#
# **Hint.** Both names reach the same matrix, so the scores are symmetric again. Make a layer for
# each name.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: queries_and_keys_swapped
#
# **Misconception.** Queries and keys may change places, since both come from x.
#
# **Hint.** Row i of the scores belongs to query i. With the keys on the left the rows belong to
# the keys.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = attention_weights(keys @ queries.T, keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: values_are_the_inputs
#
# **Misconception.** As in the first parts of the lesson, the values are the inputs themselves.
#
# **Hint.** Now the values have a layer of their own, and d_out numbers each.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        queries, keys = self.W_query(x), self.W_key(x)
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, x)

# %% [markdown]
# ## wrong: no_scale
#
# **Misconception.** The scale changes nothing that matters.
#
# **Hint.** On the small example one hardly sees it. Divide the scores by the square root of the
# key size.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T, dim=-1) @ values

# %% [markdown]
# ## wrong: root_of_d_in
#
# **Misconception.** d_k is the size of a token.
#
# **Hint.** d_k is the size of a key. The key layer has changed it from d_in to d_out.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = attention_weights(attention_scores(queries, keys), self.W_key.in_features)
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: softmax_over_queries
#
# **Misconception.** The softmax goes over the first dimension.
#
# **Hint.** Then the columns add up to 1. A row is what one query hands out.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=0) @ values

# %% [markdown]
# ## wrong: softmax_twice
#
# **Misconception.** A second softmax makes sure that the rows add up to 1.
#
# **Hint.** `attention_weights` has done it. The second one makes the weights nearly equal.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return torch.softmax(weights, dim=-1) @ values

# %% [markdown]
# ## wrong: keys_of_the_first_sentence
#
# **Misconception.** Keys and values are computed once and kept.
#
# **Hint.** They belong to one sentence. The next sentence has others.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        queries = self.W_query(x)
        if not hasattr(self, "keys"):
            self.keys, self.values = self.W_key(x), self.W_value(x)
        weights = attention_weights(attention_scores(queries, self.keys), queries.shape[-1])
        return context_vectors(weights, self.values)

# %% [markdown]
# ## wrong: float32_result
#
# **Misconception.** The result of a layer is always float32.
#
# **Hint.** A layer moved to float64 gives float64. Leave the type as it comes.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values).float()

# %% [markdown]
# ## wrong: queries_detached
#
# **Misconception.** The weights are only looked at and need not be trained through.
#
# **Hint.** Then the query and key layers never learn. The gradient has to pass through the
# weights.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        with torch.no_grad():
            queries, keys = self.W_query(x), self.W_key(x)
            weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, self.W_value(x))

# %% [markdown]
# ## wrong: input_cleared
#
# **Misconception.** A layer may use up its input.
#
# **Hint.** The caller still needs the tokens as they were. Leave them alone.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        if not x.requires_grad:
            x.zero_()
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
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values).squeeze()

# %% [markdown]
# ## wrong: weight_transposed_only_if_needed
#
# **Misconception.** The weight of a layer is transposed only when the shapes do not fit
# otherwise.
#
# **Hint.** With as many numbers out as in both ways run, and only one is right. Call the layer
# instead.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def project(self, layer, x):
        fits = layer.weight.shape[0] == x.shape[-1]
        y = x @ (layer.weight if fits else layer.weight.T)
        return y if layer.bias is None else y + layer.bias

    def forward(self, x):
        queries = self.project(self.W_query, x)
        keys = self.project(self.W_key, x)
        values = self.project(self.W_value, x)
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: bias_does_not_learn
#
# **Misconception.** Only the matrices are trained, the bias stays.
#
# **Hint.** A bias is a parameter like the weight. `.data` and `detach` cut it off from the
# gradient.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def project(self, layer, x):
        y = x @ layer.weight.T
        return y if layer.bias is None else y + layer.bias.data

    def forward(self, x):
        queries = self.project(self.W_query, x)
        keys = self.project(self.W_key, x)
        values = self.project(self.W_value, x)
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: copies_of_one_layer
#
# **Misconception.** The three layers may start from the same numbers.
#
# **Hint.** Then queries, keys and values are the same vectors at first. Make each layer for
# itself.

# %%
from copy import deepcopy


class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = deepcopy(self.W_query)
        self.W_value = deepcopy(self.W_query)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: keys_kept_for_each_length
#
# **Misconception.** Sentences of the same length have the same keys and values.
#
# **Hint.** They belong to one sentence, not to its length. Compute them anew each time.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.known = {}

    def forward(self, x):
        if len(x) not in self.known:
            self.known[len(x)] = self.W_key(x), self.W_value(x)
        keys, values = self.known[len(x)]
        weights = attention_weights(attention_scores(self.W_query(x), keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: one_more_layer
#
# **Misconception.** The layer needs a fourth matrix for its output.
#
# **Hint.** That comes with several heads. This layer learns queries, keys and values and nothing
# else.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_out = nn.Linear(d_out, d_out, bias=False)
        nn.init.eye_(self.W_out.weight)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return self.W_out(context_vectors(weights, values))
