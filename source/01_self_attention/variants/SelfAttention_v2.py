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
# ## wrong: bias_always
#
# **Misconception.** A bias does no harm where none is asked for.
#
# **Hint.** `nn.Linear` adds a bias unless it is told not to. Here there is one only if `qkv_bias`
# is true, which it is not by default. Does the argument reach all three layers?

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out) for _ in "qkv")

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

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
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, bias=False) for _ in "qkv")

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: bias_left_out_in_forward
#
# **Misconception.** A linear layer is nothing more than its weight.
#
# **Hint.** The weight is only the first half. Call the layer, and its bias is added.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")

    def forward(self, x):
        q, k, v = x @ self.W_query.weight.T, x @ self.W_key.weight.T, x @ self.W_value.weight.T
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

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
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")

    def forward(self, x):
        q, k, v = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: weight_not_transposed
#
# **Misconception.** A linear layer keeps its matrix as (d_in, d_out).
#
# **Hint.** Look at the shape of `layer.weight`. A layer that is called takes care of it.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")

    def forward(self, x):
        q, k, v = x @ self.W_query.weight, x @ self.W_key.weight, x @ self.W_value.weight
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: sizes_swapped
#
# **Misconception.** `nn.Linear` takes the size of the output first.
#
# **Hint.** Name the sizes in the order in which x meets them: first in, then out.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_out, d_in, qkv_bias) for _ in "qkv")

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: bare_parameters
#
# **Misconception.** The second layer holds bare parameters, like the first.
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
        q, k, v = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: layers_not_kept
#
# **Misconception.** A linear layer belongs to the module, wherever it is made.
#
# **Hint.** A module owns what `__init__` puts into `self`. Afterwards yours has no layers.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: self_forgotten_in_forward
#
# **Misconception.** What `__init__` makes is known in `forward` under its bare name.
#
# **Hint.** Each method has names of its own. What both are to know is kept in `self`.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")

    def forward(self, x):
        q, k, v = W_query(x), W_key(x), W_value(x)
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: no_super
#
# **Misconception.** A module is set up without its parent's `__init__`.
#
# **Hint.** `super().__init__()` comes first: it makes the place where layers are kept.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: other_names
#
# **Misconception.** It does not matter what the layers are called.
#
# **Hint.** Saved weights are found by name: `W_query`, `W_key`, `W_value`, written like this.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.w_query, self.w_key, self.w_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")

    def forward(self, x):
        q, k, v = self.w_query(x), self.w_key(x), self.w_value(x)
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

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
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: queries_and_keys_swapped
#
# **Misconception.** Queries and keys may change places, since both come from x.
#
# **Hint.** Row i of the scores belongs to query i. Which of the two stands on the left?

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        return context_vectors(attention_weights(attention_scores(k, q), k.shape[-1]), v)

# %% [markdown]
# ## wrong: query_layer_twice
#
# **Misconception.** Queries and keys may come from the same layer.
#
# **Hint.** Then the scores are symmetric again. One of the three layers is never used.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_query(x), self.W_value(x)
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: values_are_the_inputs
#
# **Misconception.** The values are the inputs themselves, as in the first parts of the lesson.
#
# **Hint.** Now the values have a layer of their own, and d_out numbers each.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")

    def forward(self, x):
        q, k = self.W_query(x), self.W_key(x)
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), x)

# %% [markdown]
# ## wrong: no_scale
#
# **Misconception.** The scores may go into the softmax as they are.
#
# **Hint.** On the small example one hardly sees it. Which of your functions has the scale?

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")

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
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        return context_vectors(attention_weights(attention_scores(q, k), x.shape[-1]), v)

# %% [markdown]
# ## wrong: root_of_the_number_of_tokens
#
# **Misconception.** d_k is the number of keys.
#
# **Hint.** The first size of `keys` counts the tokens. d_k is how many numbers a key has.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[0]), v)

# %% [markdown]
# ## wrong: softmax_over_queries
#
# **Misconception.** The columns of the weights add up to 1.
#
# **Hint.** A row is what one query hands out, so it is the row that adds up to 1.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")

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
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return torch.softmax(weights, dim=-1) @ values

# %% [markdown]
# ## wrong: no_softmax
#
# **Misconception.** The values can be mixed by the scores as they are.
#
# **Hint.** The values are mixed by shares. One of your functions makes shares of scores.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return context_vectors(attention_scores(queries, keys), values)

# %% [markdown]
# ## wrong: nothing_returned
#
# **Misconception.** A function hands back what it computes, even without `return`.
#
# **Hint.** Your function gives back `None`. How does it hand something to its caller?

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        context = context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

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
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")
        self.known = {}

    def forward(self, x):
        if len(x) not in self.known:
            self.known[len(x)] = self.W_key(x), self.W_value(x)
        keys, values = self.known[len(x)]
        weights = attention_weights(attention_scores(self.W_query(x), keys), keys.shape[-1])
        return context_vectors(weights, values)

# %% [markdown]
# ## wrong: float32_result
#
# **Misconception.** What a layer gives back is always float32.
#
# **Hint.** A layer moved to float64 gives float64. Leave the type as it comes.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v).float()

# %% [markdown]
# ## wrong: queries_detached
#
# **Misconception.** No gradient has to pass through the weights.
#
# **Hint.** The query and key layers learn through the weights alone. Leave out what cuts them
# off.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")

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
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        if not x.requires_grad:
            x.zero_()
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

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
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v).squeeze()

# %% [markdown]
# ## wrong: one_more_layer
#
# **Misconception.** The layer needs a fourth matrix, for its output.
#
# **Hint.** That comes with several heads. This layer learns queries, keys and values and nothing
# else.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")
        self.W_out = nn.Linear(d_out, d_out, bias=False)
        nn.init.eye_(self.W_out.weight)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = attention_weights(attention_scores(queries, keys), keys.shape[-1])
        return self.W_out(context_vectors(weights, values))

# %% [markdown]
# ## wrong: length_of_the_first_sentence
#
# **Misconception.** All sentences are as long as the first one.
#
# **Hint.** The next one is longer, and loses its last tokens. Take the length from x, at every
# call.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")
        self.n = None

    def forward(self, x):
        self.n = self.n or len(x)
        x = x[: self.n]
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: transposed_when_needed
#
# **Misconception.** Keys are turned round only when the product refuses.
#
# **Hint.** With as many tokens as numbers in a key it never refuses, and the scores are wrong.
# Scores are queries times keys, turned round.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        try:
            scores = q @ k
        except RuntimeError:
            scores = q @ k.T
        return context_vectors(attention_weights(scores, k.shape[-1]), v)

# %% [markdown]
# ## wrong: weights_kept
#
# **Misconception.** What has been computed for a sentence can be kept for the next call with it.
#
# **Hint.** When the layers have changed in the meantime, it is out of date. Compute it anew at
# each call.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")
        self.seen = None

    def forward(self, x):
        if self.seen is not None and torch.equal(self.seen[0], x):
            return self.seen[1]
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        context = context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)
        self.seen = x.detach().clone(), context
        return context

# %% [markdown]
# ## wrong: bias_under_another_name
#
# **Misconception.** An argument may have any name.
#
# **Hint.** Whoever writes `qkv_bias=True` gets an error. The names of the arguments are part of
# the contract.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, bias) for _ in "qkv")

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: layers_copied
#
# **Misconception.** A copy of a layer is another layer, so it starts from numbers of its own.
#
# **Hint.** A copy has the same numbers, and queries equal keys at the start. Make each layer
# anew.

# %%
import copy

class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key, self.W_value = copy.deepcopy(self.W_query), copy.deepcopy(self.W_query)

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: own_linear
#
# **Misconception.** A class that computes what `nn.Linear` computes is as good.
#
# **Hint.** Other code looks for `nn.Linear`: to start it, to count it, to make it smaller. Use
# it.

# %%
class Projection(nn.Module):
    def __init__(self, d_in, d_out, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(d_out, d_in) - 0.5)
        self.bias = nn.Parameter(torch.zeros(d_out)) if bias else None

    def forward(self, x):
        return nn.functional.linear(x, self.weight, self.bias)


class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (Projection(d_in, d_out, qkv_bias) for _ in "qkv")

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)

# %% [markdown]
# ## wrong: written_into_the_input
#
# **Misconception.** A layer may write its result into its input when the shapes are the same.
#
# **Hint.** The caller still needs the tokens as they were. Return a new tensor.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        context = context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v)
        return x.copy_(context) if context.shape == x.shape else context

# %% [markdown]
# ## wrong: float32_inside
#
# **Misconception.** float32 is precise enough on the way, as long as the result has the right
# type.
#
# **Hint.** What is rounded off on the way is lost. Compute in the type that comes in.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")

    def forward(self, x):
        layers = self.W_query, self.W_key, self.W_value
        q, k, v = (
            nn.functional.linear(x.float(), w.weight.float(), None if w.bias is None else w.bias.float())
            for w in layers
        )
        return context_vectors(attention_weights(attention_scores(q, k), k.shape[-1]), v).to(x.dtype)

# %% [markdown]
# ## wrong: not_stable
#
# **Misconception.** Inside a layer scores stay small, so the softmax needs no shift.
#
# **Hint.** Scores above 88 overflow in `exp`. Use `attention_weights`, or subtract the largest score of
# each row first.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        powers = (queries @ keys.T / keys.shape[-1] ** 0.5).exp()
        return powers / powers.sum(dim=-1, keepdim=True) @ values

# %% [markdown]
# ## wrong: values_start_as_ones
#
# **Misconception.** The values may start as anything; training will find them.
#
# **Hint.** Rows that start alike have gradients alike, and stay so. Leave the start to `nn.Linear`.

# %%
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        nn.init.ones_(self.W_value.weight)

    def forward(self, x):
        weights = attention_weights(attention_scores(self.W_query(x), self.W_key(x)), self.W_key.out_features)
        return context_vectors(weights, self.W_value(x))
