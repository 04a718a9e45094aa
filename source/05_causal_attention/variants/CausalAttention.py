# %% [markdown]
# # CausalAttention
#
# 1. Begin with `one_sentence` in the first cell: nearly every line of it can stay. Which one line must change
#    for a batch, and which one for sentences shorter than the context?
# 2. `__init__` makes five things: three linear layers, an `nn.Dropout(dropout)`, and with
#    `self.register_buffer("mask", ...)` the mask for `context_length` tokens. Start `forward` with the two refusals.
# 3. In `forward` the scores come from `keys.mT`, the mask is cut with `[:n, :n]`, and
#    between the softmax and the product with the values the weights go through `self.dropout`.

# %% [markdown]
# ## right: fused
#
# PyTorch's own attention function does the middle; it takes p itself.

# %%
from torch.nn import functional as F


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length, dtype=torch.bool).tril())

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        p = self.dropout.p if self.training else 0.0
        return F.scaled_dot_product_attention(queries, keys, values, self.mask[:n, :n], dropout_p=p)

# %% [markdown]
# ## right: fused_is_causal
#
# The same with its own causal mask; the buffer says only how long a sentence may be.

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        p = self.dropout.p if self.dropout.training else 0
        return nn.functional.scaled_dot_product_attention(queries, keys, values, dropout_p=p, is_causal=True)

# %% [markdown]
# ## right: additive_mask
#
# Minus infinity above the diagonal, added; a leading dimension, and the layers in another order.

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.context_length = context_length
        self.dropout = nn.Dropout(dropout)
        mask = torch.full((1, context_length, context_length), float("-inf")).triu(1)
        self.register_buffer("mask", mask)

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.context_length:
            raise ValueError(f"{n} tokens are more than {self.context_length}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores + self.mask[:, :n, :n]
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## right: einsum
#
# Index notation, an integer mask of ones to keep, asserts.

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).tril().int()[None, None])

    def forward(self, x):
        assert x.dim() == 3, f"x is {x.dim()}-D"
        b, n, d_in = x.shape
        longest = self.mask.size(-1)
        assert n <= longest, f"{n} > {longest}"
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = torch.einsum("bid,bjd->bij", queries, keys)
        scores = torch.where(self.mask[0, 0, :n, :n].bool(), scores, scores.new_tensor(-torch.inf))
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return torch.einsum("bij,bjd->bid", weights, values)

# %% [markdown]
# ## right: in_place
#
# The queries are scaled, `baddbmm` and in-place filling save memory.

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1).bool())

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = torch.bmm(queries * keys.size(-1) ** -0.5, keys.mT)
        scores.masked_fill_(self.mask[:n, :n], torch.finfo(scores.dtype).min)
        weights = scores.softmax(-1)
        weights = self.dropout(weights)
        return torch.bmm(weights, values)

# %% [markdown]
# ## right: one_stacked_product
#
# The three weights on top of each other, applied at once.

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        linears = [self.W_query, self.W_key, self.W_value]
        weight = torch.cat([linear.weight for linear in linears])
        bias = None if linears[0].bias is None else torch.cat([linear.bias for linear in linears])
        queries, keys, values = nn.functional.linear(x, weight, bias).chunk(3, dim=-1)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## right: sentence_by_sentence
#
# A loop over the batch, as lessons 01 to 03 did it.

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        def attend(sentence):
            q, k, v = self.W_query(sentence), self.W_key(sentence), self.W_value(sentence)
            scores = (q @ k.T / math.sqrt(k.shape[1])).masked_fill(self.mask[:n, :n].bool(), float("-inf"))
            return self.dropout(torch.softmax(scores, dim=1)) @ v

        return torch.stack([attend(sentence) for sentence in x])

# %% [markdown]
# ## right: query_by_query
#
# Every query is given only the keys it may see; no mask is needed for that.

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        outputs = []
        for t in range(n):
            seen = keys[:, : t + 1]
            row = (seen @ queries[:, t, :, None]).squeeze(-1) / math.sqrt(seen.shape[-1])
            row = self.dropout(torch.softmax(row, dim=-1))
            outputs.append((row[:, :, None] * values[:, : t + 1]).sum(dim=1))
        return torch.stack(outputs, dim=1)

# %% [markdown]
# ## right: keys_as_rows
#
# The scores are laid out the other way round, and the mask with them.

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).tril(-1) > 0)

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = keys @ queries.mT / math.sqrt(keys.shape[-1])
        weights = scores.masked_fill(self.mask[:n, :n], float("-inf")).softmax(dim=-2)
        weights = self.dropout(weights)
        return weights.mT @ values

# %% [markdown]
# ## right: float64_inside
#
# The middle in float64, cast back, and the softmax written out.

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries.double() @ keys.double().permute(0, 2, 1) / math.sqrt(keys.shape[2])
        scores = scores.masked_fill(self.mask[:n, :n] > 0, float("-inf"))
        exps = (scores - scores.amax(dim=2, keepdim=True)).exp()
        weights = (exps / exps.sum(dim=2, keepdim=True)).to(values.dtype)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## right: functional_dropout
#
# `F.dropout` that is told p and the mode at each call.

# %%
from torch.nn import functional as F


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if len(x.size()) != 3:
            raise ValueError(f"x has the shape {tuple(x.shape)}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = F.dropout(weights, self.dropout.p, self.training)
        return weights @ values

# %% [markdown]
# ## right: values_first
#
# Weights that are not normalised, divided at the end; dropout acts on them all the same.

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        logs = scores / keys.shape[-1] ** 0.5
        weights = torch.exp(logs - torch.logsumexp(logs, dim=-1, keepdim=True))
        kept = self.dropout(torch.ones_like(weights))
        return (kept * weights) @ values

# %% [markdown]
# ## wrong: keys_turned_round
#
# **Misconception.** `.T` swaps rows and columns, in a batch as well.
#
# **Hint.** What is the shape of `keys.T` for keys of shape (3, 7, 4)? Which two of its dimensions
# should be swapped?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.T
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: keys_of_the_first_sentence
#
# **Misconception.** The keys of one sentence serve for the whole batch; the shapes fit.
#
# **Hint.** Take two different sentences and compare the second output with that of the second
# sentence alone.

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys[0].T
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: reshaped_keys
#
# **Misconception.** A reshape to (b, d_out, n) is a transpose.
#
# **Hint.** Number the entries of a small tensor with `torch.arange` and compare reshape with
# transpose.

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.reshape(b, -1, n)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: softmax_over_queries
#
# **Misconception.** The keys are dimension 1, as they were for one sentence.
#
# **Hint.** Which sums of the weights (b, n, n) should be 1? In a batch dimension 1 is the
# queries.

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: softmax_over_sentences
#
# **Misconception.** The first dimension of the scores is the one to normalise.
#
# **Hint.** What should add up to 1 is the row of one query in one sentence. Which dimension runs
# along that row?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -1e9)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=0)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: mask_put_to_no_use
#
# **Misconception.** `masked_fill` changes the tensor it is called on.
#
# **Hint.** What does `masked_fill` return, and where does your code keep it?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: diagonal_hidden
#
# **Misconception.** The mask hides everything from the diagonal on.
#
# **Hint.** What is left for the first token if it may not see itself? Look at `diagonal=`.

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=0))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: past_hidden
#
# **Misconception.** The ones of `tril` are what is hidden.
#
# **Hint.** Print the mask for three tokens and say in words what its first row hides.

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.tril(torch.ones(context_length, context_length), diagonal=-1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: masked_in_training_only
#
# **Misconception.** The mask, like dropout, is for training only.
#
# **Hint.** A model must not see the future when it writes either. Try your layer in `eval()`.

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        if self.training:
            scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: no_scale
#
# **Misconception.** The softmax makes the scale superfluous.
#
# **Hint.** Compare with lesson 01: what stood between the scores and the softmax?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: scale_of_the_input
#
# **Misconception.** `d_k` is the number of features that go in.
#
# **Hint.** Which size has a key, d_in or d_out?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / d_in**0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: scale_of_the_length
#
# **Misconception.** The scores are divided by the root of the number of tokens.
#
# **Hint.** The spread of a dot product grows with the size of a key, not with the number of keys.

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / n**0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: whole_mask
#
# **Misconception.** The mask fits every sentence as it is.
#
# **Hint.** Give the layer a sentence of three tokens. What is the shape of its scores, and what
# that of the mask?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: mask_cut_for_good
#
# **Misconception.** A mask cut to the sentence can be kept.
#
# **Hint.** What is left of `self.mask` after a short sentence, when a longer one follows?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        self.mask = self.mask[:n, :n]
        scores = scores.masked_fill(self.mask == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: longest_sentence_refused
#
# **Misconception.** A sentence must be shorter than the context length.
#
# **Hint.** May a sentence be exactly as long as the context?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n >= self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: mask_as_parameter
#
# **Misconception.** A parameter without gradient is as good as a buffer.
#
# **Hint.** What do `parameters()` and an optimiser see of your mask?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        mask = torch.triu(torch.ones(context_length, context_length), diagonal=1)
        self.mask = nn.Parameter(mask, requires_grad=False)

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: mask_as_attribute
#
# **Misconception.** An attribute of a module belongs to the module.
#
# **Hint.** Part 2: what does the module do with a plain tensor when it is moved, and when it is
# saved?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.mask = torch.triu(torch.ones(context_length, context_length), diagonal=1)

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: mask_not_saved
#
# **Misconception.** A buffer that is made anew each time need not be saved.
#
# **Hint.** Look for the mask in `state_dict()`. Which argument of `register_buffer` decides?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1), persistent=False)

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: mask_with_holes
#
# **Misconception.** The mask is for scores, so zeros in it do no harm: the buffer may hold
# anything of the right shape.
#
# **Hint.** Print the mask in `state_dict()`. Does it have one value for the future and another
# for the rest?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.zeros(context_length, context_length))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(torch.ones(n, n, device=x.device).triu(1) == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: zeros_taken_for_hidden
#
# **Misconception.** A score of zero is a score that was hidden.
#
# **Hint.** A token of zeros gives scores of exactly 0. Are they hidden?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.tril()
        scores = scores.masked_fill(scores == 0, -1e30)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: tokens_of_zeros_as_padding
#
# **Misconception.** A token of zeros is padding and is left out.
#
# **Hint.** The contract treats a token of zeros like any other. Where does your code ask for
# zeros?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        padding = (x == 0).all(dim=-1)
        weights = torch.softmax(scores.masked_fill(padding[:, None], -1e9) / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: mask_after_the_softmax
#
# **Misconception.** Zeroing the weights and dividing by the sums is the same as minus infinity,
# in numbers too.
#
# **Hint.** What is left of the visible weights when a hidden score is 200 above them? Lesson 02,
# part 5.

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = weights * (1 - self.mask[:n, :n])
        weights = weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-30)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: a_small_finite_fill
#
# **Misconception.** A score of -50 is as good as minus infinity.
#
# **Hint.** How large is the weight of a hidden key whose score was 200 above the others, if you
# only subtract or fill in a small number?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores - 50 * self.mask[:n, :n]
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: not_renormalised
#
# **Misconception.** The rows need not add up to 1 once the future is zero.
#
# **Hint.** Sum the first row of the weights. What should it be?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights * (1 - self.mask[:n, :n]))
        return weights @ values

# %% [markdown]
# ## wrong: dropout_always_on
#
# **Misconception.** `F.dropout` knows by itself whether the model is in `eval()`.
#
# **Hint.** Call your layer twice in `eval()`. Which argument tells the function the mode?

# %%
from torch.nn import functional as F


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = F.dropout(weights, self.dropout.p)
        return weights @ values

# %% [markdown]
# ## wrong: p_remembered
#
# **Misconception.** p is fixed when the layer is made.
#
# **Hint.** Set `layer.dropout.p = 0.9` afterwards. Does your layer notice?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout, self.p = nn.Dropout(dropout), dropout
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = nn.functional.dropout(weights, self.p, self.training)
        return weights @ values

# %% [markdown]
# ## wrong: dropout_of_outputs
#
# **Misconception.** Dropout belongs at the end, on the context vectors.
#
# **Hint.** Where does lesson 04 drop: in the weights or in what comes out?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        return self.dropout(weights @ values)

# %% [markdown]
# ## wrong: dropout_of_scores
#
# **Misconception.** Dropout comes before the softmax, so that the rows still add up to 1.
#
# **Hint.** What does a score of 0 mean for the softmax? Is the key left out?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = self.dropout(queries @ keys.transpose(1, 2))
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        return weights @ values

# %% [markdown]
# ## wrong: renormalised_after_dropout
#
# **Misconception.** After dropout the rows must add up to 1 again.
#
# **Hint.** Lesson 04: why are kept weights divided by 1 - p, and what would dividing by the sums
# do to that?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        weights = weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-9)
        return weights @ values

# %% [markdown]
# ## wrong: dropout_forgotten
#
# **Misconception.** A dropout layer works once it has been made.
#
# **Hint.** Where in `forward` is your dropout layer called?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        return weights @ values

# %% [markdown]
# ## wrong: dropout_of_values
#
# **Misconception.** To drop a value is to drop its weight.
#
# **Hint.** If token 2 is dropped for one query, is it dropped for the next one too?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        return weights @ (values * self.dropout(torch.ones(b, n, 1, device=x.device, dtype=x.dtype)))

# %% [markdown]
# ## wrong: one_draw_for_the_batch
#
# **Misconception.** One draw serves for all sentences of a batch.
#
# **Hint.** Compare which weights are 0 in the first sentence and in the second.

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = weights * self.dropout(torch.ones(n, n, device=x.device, dtype=x.dtype))
        return weights @ values

# %% [markdown]
# ## wrong: always_a_bias
#
# **Misconception.** `nn.Linear` has no bias unless it is told to.
#
# **Hint.** Count the parameters of a layer made with `qkv_bias=False`.

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out)
        self.W_key = nn.Linear(d_in, d_out)
        self.W_value = nn.Linear(d_in, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: never_a_bias
#
# **Misconception.** `qkv_bias` is an option that nobody uses.
#
# **Hint.** Where does `qkv_bias` arrive in your layers?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: equal_starts
#
# **Misconception.** Three layers of the same size start alike.
#
# **Hint.** Compare `W_query.weight` and `W_key.weight` of a new layer.

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key.load_state_dict(self.W_query.state_dict())
        self.W_value.load_state_dict(self.W_query.state_dict())
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: layers_of_another_kind
#
# **Misconception.** Anything with a weight and a bias is a linear layer.
#
# **Hint.** Which class do the words of the exercise name?

# %%
class Projection(nn.Module):
    def __init__(self, d_in, d_out, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_out, d_in) / d_in**0.5)
        self.bias = nn.Parameter(torch.zeros(d_out)) if bias else None

    def forward(self, x):
        return nn.functional.linear(x, self.weight, self.bias)


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = Projection(d_in, d_out, qkv_bias)
        self.W_key = Projection(d_in, d_out, qkv_bias)
        self.W_value = Projection(d_in, d_out, qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: weights_cut_off
#
# **Misconception.** The weights are numbers and need no gradient.
#
# **Hint.** Which gradients reach `W_query` and `W_key`? Something between them and the output
# cuts them off.

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        with torch.no_grad():
            weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: float32_inside
#
# **Misconception.** Everything is float32.
#
# **Hint.** Move the layer to float64 and give it float64. What comes out?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores.float() / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: weights_remembered
#
# **Misconception.** The three weights can be put together once and kept.
#
# **Hint.** Change the weights of a layer that has been used, and use it again.

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.together = None
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        if self.together is None:
            linears = [self.W_query, self.W_key, self.W_value]
            bias = None if linears[0].bias is None else torch.cat([linear.bias for linear in linears])
            self.together = torch.cat([linear.weight for linear in linears]), bias
        queries, keys, values = nn.functional.linear(x, *self.together).chunk(3, dim=-1)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: dropout_in_place
#
# **Misconception.** In place saves memory and changes nothing else.
#
# **Hint.** Train one step with dropout above 0. What does backward need that your layer has
# overwritten?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout, inplace=True)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: input_used_as_scratch
#
# **Misconception.** The input is not needed once the keys are made.
#
# **Hint.** Compare the input before and after a call.

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        if not x.requires_grad:
            x.zero_()
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: too_long_is_left_to_torch
#
# **Misconception.** PyTorch notices by itself that a sentence is too long.
#
# **Hint.** Which exception comes for a sentence that is too long, and what does it say? And with
# `context_length=1`?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: the_error_renamed
#
# **Misconception.** It is enough to catch the error of the masking.
#
# **Hint.** Try a layer of `context_length=1` on four tokens: is there an error to catch?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        try:
            scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        except RuntimeError as error:
            raise ValueError(f"{n} tokens are too many") from error
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: too_long_is_cut
#
# **Misconception.** A sentence that is too long is cut at the context length.
#
# **Hint.** The contract asks for a refusal. What becomes of the tokens that are cut, without a
# word?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        x = x[:, : self.mask.shape[0]]
        n = x.shape[1]
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: one_sentence_let_in
#
# **Misconception.** A sentence without its batch dimension is a batch of one.
#
# **Hint.** The contract asks for a refusal of anything that is not 3-D.

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim == 2:
            x = x.unsqueeze(0)
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: any_number_of_dimensions
#
# **Misconception.** The last two dimensions are tokens and features, whatever stands before them.
#
# **Hint.** What does your layer do with a tensor of four dimensions, or of two? The contract
# wants exactly three.

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        n = x.shape[-2]
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.mT
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: transposed_if_it_must
#
# **Misconception.** When the shapes fit, the product is right.
#
# **Hint.** What are the shapes of queries and keys when there are as many tokens as numbers in a key? Which product is wanted?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        try:
            scores = queries @ keys
        except RuntimeError:
            scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: bias_left_out
#
# **Misconception.** A layer is its weight.
#
# **Hint.** With `qkv_bias=True` every layer has a bias as well. Where does yours come in?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = (x @ layer.weight.T for layer in (self.W_query, self.W_key, self.W_value))
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: mask_made_in_forward
#
# **Misconception.** The mask can be made where it is needed; the buffer is for saving.
#
# **Hint.** On which device is the mask that `forward` makes, when the layer has been moved?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(torch.ones(n, n).triu(diagonal=1) == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: kept_beside_the_buffer
#
# **Misconception.** What has been registered may be used by another name.
#
# **Hint.** `register_buffer` makes `self.mask`. Which tensor does `forward` use, and does it move with the layer?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.future = torch.triu(torch.ones(context_length, context_length), diagonal=1)
        self.register_buffer("mask", self.future)

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.future[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: output_written_into_x
#
# **Misconception.** When the sizes are equal, the output may be written into x.
#
# **Hint.** Somebody may still need x. Compare it before and after a call with `d_in` equal to `d_out`.

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        context = self.dropout(weights) @ values
        if context.shape == x.shape and not x.requires_grad:
            return x.copy_(context)
        return context

# %% [markdown]
# ## wrong: softmax_in_float32
#
# **Misconception.** A softmax is always computed in float32, and cast back.
#
# **Hint.** Float64 in shall give float64 out, and as exact. Which line of yours has only float32?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1, dtype=torch.float32).to(values.dtype)
        weights = self.dropout(weights)
        return weights @ values

# %% [markdown]
# ## wrong: float32_and_back
#
# **Misconception.** A cast to float32 and back changes nothing.
#
# **Hint.** The dtype that comes out is right. How many digits are?

# %%
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must have 3 dimensions, not {x.ndim}")
        b, n, d_in = x.shape
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} tokens are more than {self.mask.shape[0]}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        queries, keys, values = queries.float(), keys.float(), values.float()
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:n, :n] == 1, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return (weights @ values).to(x.dtype)
