# %% [markdown]
# # MultiHeadAttention
#
# 1. You have all the parts: `CausalAttention` in the first cell, `split_heads` and `merge_heads`.
#    The drawing above says in which order they come.
# 2. Take over the layers, the mask and the refusals from `CausalAttention`. New are: queries,
#    keys and values go through `split_heads`; the result goes through `merge_heads` and
#    `out_proj`.
# 3. Behind `split_heads` everything is (b, heads, n, d_head): transpose the last two dimensions
#    of the keys, divide by the root of the last one, and let the (n, n) part of the mask
#    broadcast.

# %% [markdown]
# ## right: views_and_transposes
#
# Without the earlier exercises, layers in another order.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0, "d_out must be divisible by num_heads"
        self.d_out = d_out
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))
        self.dropout = nn.Dropout(dropout)
        self.out_proj = nn.Linear(d_out, d_out)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        b, num_tokens, d_in = x.shape
        assert num_tokens <= self.mask.shape[0], f"{num_tokens} tokens, room for {self.mask.shape[0]}"
        keys = self.W_key(x).view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        queries = self.W_query(x).view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        values = self.W_value(x).view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        attn_scores = queries @ keys.transpose(2, 3)
        attn_scores.masked_fill_(self.mask.bool()[:num_tokens, :num_tokens], -torch.inf)
        attn_weights = self.dropout(torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1))
        context_vec = (attn_weights @ values).transpose(1, 2)
        return self.out_proj(context_vec.contiguous().view(b, num_tokens, self.d_out))

# %% [markdown]
# ## right: fused
#
# PyTorch's attention function; the mask is there and True means takes part.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError(f"{num_heads} heads do not divide {d_out}")
        self.num_heads = num_heads
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in range(3))
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(1, 1, context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.dim() != 3 or x.size(1) > self.mask.size(-1):
            raise ValueError(f"x has the shape {tuple(x.shape)}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        p = self.dropout.p if self.training else 0.0
        n = x.size(1)
        context = nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=self.mask[..., :n, :n], dropout_p=p
        )
        return self.out_proj(merge_heads(context))

# %% [markdown]
# ## right: head_by_head
#
# A loop over heads, each with its rows of the matrices.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.size, rest = divmod(d_out, num_heads)
        if rest:
            raise ValueError(f"d_out = {d_out}, num_heads = {num_heads}")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out, bias=True)
        self.dropout = nn.Dropout(p=dropout)
        self.register_buffer("mask", torch.full((context_length, context_length), -math.inf).triu(1))

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"x must be 3-D, it is {x.ndim}-D")
        n = x.shape[1]
        if n > len(self.mask):
            raise ValueError(f"{n} tokens are more than {len(self.mask)}")
        context = []
        for h in range(self.num_heads):
            rows = slice(h * self.size, (h + 1) * self.size)
            q, k, v = (
                nn.functional.linear(x, layer.weight[rows], None if layer.bias is None else layer.bias[rows])
                for layer in (self.W_query, self.W_key, self.W_value)
            )
            scores = torch.bmm(q, k.mT) * self.size**-0.5 + self.mask[:n, :n]
            context.append(self.dropout(scores.softmax(2)) @ v)
        return self.out_proj(torch.cat(context, 2))

# %% [markdown]
# ## right: einsum
#
# Indices instead of transposes.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out = {d_out}, num_heads = {num_heads}")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length, dtype=torch.uint8).tril())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.mask.size(0):
            raise ValueError(f"n = {n}, context_length = {self.mask.size(0)}")
        q, k, v = (layer(x).unflatten(2, (self.num_heads, -1)) for layer in (self.W_query, self.W_key, self.W_value))
        scores = torch.einsum("bihd,bjhd->bhij", q, k) / q.shape[-1] ** 0.5
        weights = scores.masked_fill(self.mask[:n, :n] == 0, float("-inf")).softmax(-1)
        context = torch.einsum("bhij,bjhd->bihd", self.dropout(weights), v)
        return self.out_proj(context.reshape(b, n, -1))

# %% [markdown]
# ## right: batch_and_heads_together
#
# Heads become part of the batch, and the largest finite number hides.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out = {d_out}, num_heads = {num_heads}")
        self.num_heads = num_heads
        for name in ("W_query", "W_key", "W_value"):
            self.add_module(name, nn.Linear(d_in, d_out, bias=qkv_bias))
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(1, context_length, context_length, dtype=torch.bool).triu(1))

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.mask.shape[1]:
            raise ValueError(f"x is {tuple(x.shape)}")
        b, n = x.shape[:2]
        q, k, v = (split_heads(layer(x), self.num_heads).flatten(0, 1) for layer in (self.W_query, self.W_key, self.W_value))
        scores = torch.bmm(q / math.sqrt(q.shape[-1]), k.transpose(1, 2))
        scores = torch.where(self.mask[:, :n, :n], torch.finfo(scores.dtype).min, scores)
        context = torch.bmm(self.dropout(scores.softmax(dim=-1)), v)
        return self.out_proj(merge_heads(context.unflatten(0, (b, self.num_heads))))

# %% [markdown]
# ## right: query_by_query
#
# Each word looks at the words up to it, so that nothing needs to be hidden.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out = {d_out}, num_heads = {num_heads}")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).tril())

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > len(self.mask):
            raise ValueError(f"x is {tuple(x.shape)}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        words = []
        for i in range(x.shape[1]):
            scores = (q[:, :, i : i + 1] @ k[:, :, : i + 1].mT) / math.sqrt(q.shape[-1])
            words.append(self.dropout(scores.softmax(-1)) @ v[:, :, : i + 1])
        return self.out_proj(merge_heads(torch.cat(words, dim=2)))

# %% [markdown]
# ## right: torch_does_it_all
#
# PyTorch's whole multi-head function, with the layers' numbers.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out = {d_out}, num_heads = {num_heads}")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length, dtype=torch.bool).triu(1))

    def forward(self, x):
        b, n, _ = x.shape
        if n > len(self.mask):
            raise ValueError(f"n = {n}")
        q, k, v = (layer(x).transpose(0, 1) for layer in (self.W_query, self.W_key, self.W_value))
        d = q.shape[-1]
        eye = torch.eye(d, dtype=x.dtype, device=x.device)
        output, _ = nn.functional.multi_head_attention_forward(
            q, k, v, d, self.num_heads, eye.repeat(3, 1), None, None, None, False, self.dropout.p,
            self.out_proj.weight, self.out_proj.bias, training=self.training, need_weights=False,
            attn_mask=self.mask[:n, :n],
        )
        return output.transpose(0, 1)

# %% [markdown]
# ## wrong: scale_of_all_heads
#
# **Misconception.** The scores are scaled by d_out.
#
# **Hint.** A score is a dot product of as many numbers as one head has. With one head the two are
# the same; compare the first two lines of the rubric.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(self.out_proj.in_features)
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: not_scaled
#
# **Misconception.** Several heads need no scale.
#
# **Hint.** Each head has queries and keys of its own size. Its scores are divided by the root of
# that size.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3)
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: scale_without_the_root
#
# **Misconception.** The scores are divided by the size of a head.
#
# **Hint.** By its square root.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / k.shape[-1]
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: scaled_by_tokens
#
# **Misconception.** The last dimension of the scores is the size of a head.
#
# **Hint.** The scores are (b, heads, n, n): their last dimension counts tokens. Which tensor
# knows the size of a head?

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3)
        scores = scores / math.sqrt(scores.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: not_masked
#
# **Misconception.** The mask is there, so it is used.
#
# **Hint.** A buffer does nothing by itself. Which line hides the future? `masked_fill` returns a
# new tensor; one that is not kept is lost.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: mask_inverted
#
# **Misconception.** True in the mask means that a word may look.
#
# **Hint.** `masked_fill` writes where the mask is True. There must be the future.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(~self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: diagonal_hidden
#
# **Misconception.** A word does not look at itself.
#
# **Hint.** It does. The triangle to hide begins one above the diagonal.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu().bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: mask_from_the_scores
#
# **Misconception.** The upper triangle of the scores, as yes or no, is the mask.
#
# **Hint.** A score that is exactly 0 becomes no. The mask depends on places, not on scores.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(scores.triu(diagonal=1).bool(), -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: mask_after_softmax
#
# **Misconception.** The order of mask and softmax does not matter.
#
# **Hint.** The softmax has seen the future by then, and the rows no longer add up to 1.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        weights = torch.softmax(scores, dim=-1).masked_fill(self.mask[:n, :n], 0.0)
        weights = self.dropout(weights)
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: tril_and_renormalised
#
# **Misconception.** Masking after the softmax and renormalising is always as good.
#
# **Hint.** In algebra it is. When a hidden score is far above the others, float32 loses the
# visible weights: mask the scores.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        weights = torch.softmax(scores, dim=-1).masked_fill(self.mask[:n, :n], 0.0)
        weights = self.dropout(weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-30))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: weakly_hidden
#
# **Misconception.** A negative number is enough to hide.
#
# **Hint.** Scores can be far larger. What is hidden must get a weight of exactly 0.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -100.0)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: hidden_by_a_large_number
#
# **Misconception.** -10000 is below every score.
#
# **Hint.** Large inputs have larger scores. -inf is below all of them.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -1e4)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: softmax_over_queries
#
# **Misconception.** The dimension of the softmax is 2, as in a sentence of its own.
#
# **Hint.** The keys are the last dimension. Write -1.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=2).nan_to_num())
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: softmax_over_heads
#
# **Misconception.** `dim=1` is right for every tensor.
#
# **Hint.** Dimension 1 holds the heads here. The keys are last.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=1).nan_to_num())
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: view_alone
#
# **Misconception.** The right shape means the right content.
#
# **Hint.** Cut the features with `view`, then transpose. Part 3 shows what happens otherwise.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (layer(x).reshape(b, self.num_heads, n, -1) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: merged_without_transpose
#
# **Misconception.** The heads can be joined as they are.
#
# **Hint.** They stand beside the batch. Each token's numbers have to come together again:
# `merge_heads`.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj((weights @ v).reshape(b, n, -1))

# %% [markdown]
# ## wrong: split_by_view_both_ways
#
# **Misconception.** What is split by `view` is merged by `view`.
#
# **Hint.** The shapes fit, and token 0 sees numbers of later tokens. Transpose in both
# directions.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (layer(x).reshape(b, self.num_heads, n, -1) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj((weights @ v).reshape(b, n, -1))

# %% [markdown]
# ## wrong: features_dealt_out
#
# **Misconception.** Head h gets every num_heads-th feature.
#
# **Hint.** A head is a block of neighbouring features.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (layer(x).unflatten(-1, (-1, self.num_heads)).permute(0, 3, 1, 2) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: heads_never_split
#
# **Misconception.** One large matrix is several heads already.
#
# **Hint.** The cut makes the heads: scores and softmax for each block alone. Here there is one
# head as large as d_out.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), 1) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: heads_averaged
#
# **Misconception.** The heads vote.
#
# **Hint.** Every head keeps its numbers; they stand side by side before `out_proj`.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads((weights @ v).mean(dim=1, keepdim=True).expand_as(v)))

# %% [markdown]
# ## wrong: one_pattern_for_all_heads
#
# **Misconception.** All heads share the weights of the first.
#
# **Hint.** Each head has scores of its own.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights[:, :1] @ v))

# %% [markdown]
# ## wrong: no_out_proj
#
# **Misconception.** The heads side by side are the output.
#
# **Hint.** `out_proj` comes last: it mixes what the heads have found.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return merge_heads(weights @ v)

# %% [markdown]
# ## wrong: out_proj_per_head
#
# **Misconception.** `out_proj` works on each head.
#
# **Hint.** It reads all heads side by side, `d_out` numbers, and mixes them.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        heads = (weights @ v).unbind(1)
        return sum(self.out_proj(nn.functional.pad(h, (0, self.out_proj.in_features - h.shape[-1]))) for h in heads)

# %% [markdown]
# ## wrong: out_proj_without_bias
#
# **Misconception.** `qkv_bias` is for `out_proj` as well.
#
# **Hint.** `out_proj` always has a bias.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: out_proj_on_the_values
#
# **Misconception.** The order of mixing does not matter.
#
# **Hint.** `out_proj` comes after the weights and after the merge.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return merge_heads(weights @ split_heads(self.out_proj(merge_heads(v)), self.num_heads))

# %% [markdown]
# ## wrong: added_to_x
#
# **Misconception.** Attention adds to its input.
#
# **Hint.** That comes in lesson 07, outside this layer. The output is what `out_proj` gives.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        output = self.out_proj(merge_heads(weights @ v))
        return output + x if output.shape == x.shape else output

# %% [markdown]
# ## wrong: queries_and_keys_swapped
#
# **Misconception.** Scores are keys times queries.
#
# **Hint.** Row i belongs to query i. In your scores it belongs to key i.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = k @ q.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: keys_as_values
#
# **Misconception.** Keys and values are the same thing.
#
# **Hint.** What a word offers (its key) and what it hands on (its value) come from two layers.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ k))

# %% [markdown]
# ## wrong: value_bias_forgotten
#
# **Misconception.** Only queries and keys can have a bias.
#
# **Hint.** `qkv_bias` holds for all three.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: bias_always
#
# **Misconception.** A bias does no harm.
#
# **Hint.** There is one on queries, keys and values only when `qkv_bias` is true.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=True)
        self.W_key = nn.Linear(d_in, d_out, bias=True)
        self.W_value = nn.Linear(d_in, d_out, bias=True)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: dropout_on_the_output
#
# **Misconception.** To drop numbers of the vectors is the same as to drop weights.
#
# **Hint.** A dropped weight takes away a whole value. Drop weights, after the softmax, before
# they meet the values.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = torch.softmax(scores, dim=-1)
        return self.dropout(self.out_proj(merge_heads(weights @ v)))

# %% [markdown]
# ## wrong: dropout_on_the_context
#
# **Misconception.** To drop numbers of the vectors is the same as to drop weights.
#
# **Hint.** A dropped weight takes away a whole value. Drop weights, after the softmax, before
# they meet the values.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = torch.softmax(scores, dim=-1)
        return self.out_proj(merge_heads(self.dropout(weights @ v)))

# %% [markdown]
# ## wrong: dropout_on_the_scores
#
# **Misconception.** A score of 0 is a dropped weight.
#
# **Hint.** The softmax gives a score of 0 a weight. Drop after the softmax.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = self.dropout(scores).masked_fill(self.mask[:n, :n], -math.inf)
        weights = torch.softmax(scores, dim=-1)
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: dropout_on_the_values
#
# **Misconception.** Dropping values is dropping weights.
#
# **Hint.** A dropped value is missing for every query. Each weight is dropped by itself.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = torch.softmax(scores, dim=-1)
        return self.out_proj(merge_heads(weights @ self.dropout(v)))

# %% [markdown]
# ## wrong: dropout_forgotten
#
# **Misconception.** In a small model nothing needs to be dropped.
#
# **Hint.** `self.dropout` is made and never called.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = torch.softmax(scores, dim=-1)
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: dropout_twice
#
# **Misconception.** Twice dropped is better dropped.
#
# **Hint.** After two dropouts far fewer weights are left. One is enough.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(self.dropout(weights) @ v))

# %% [markdown]
# ## wrong: one_dropout_mask_for_all_heads
#
# **Misconception.** The heads drop the same weights.
#
# **Hint.** Each weight is dropped by itself, in every head anew.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = torch.softmax(scores, dim=-1)
        weights = weights * self.dropout(torch.ones_like(weights[:, :1]))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: one_dropout_mask_for_the_batch
#
# **Misconception.** The sentences of a batch drop the same weights.
#
# **Hint.** Each weight is dropped by itself, in every sentence anew.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = torch.softmax(scores, dim=-1)
        weights = weights * self.dropout(torch.ones_like(weights[:1]))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: whole_keys_dropped
#
# **Misconception.** To drop a word means to drop it for everybody.
#
# **Hint.** Each weight is dropped by itself, not whole columns.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = torch.softmax(scores, dim=-1)
        weights = weights * self.dropout(torch.ones_like(weights[:, :, :1]))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: renormalised_after_dropout
#
# **Misconception.** After dropout the rows have to add up to 1 again.
#
# **Hint.** Dropout has divided what is left by 1 - p already. On the average the sum is right.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        weights = weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-9)
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: not_scaled_up
#
# **Misconception.** Dropout puts zeros, and that is all.
#
# **Hint.** `nn.Dropout` also divides what is left by 1 - p. Your own mask does not.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = torch.softmax(scores, dim=-1)
        if self.training:
            weights = weights * (torch.rand_like(weights) >= self.dropout.p)
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: functional_dropout_always
#
# **Misconception.** Functional dropout knows about `eval()`.
#
# **Hint.** It does so only when you tell it: `training=self.training`.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = nn.functional.dropout(torch.softmax(scores, dim=-1), self.dropout.p)
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: share_remembered
#
# **Misconception.** The share to drop never changes.
#
# **Hint.** Somebody may set `mha.dropout.p` later. Use the module, or read p at each call.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.p = dropout
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = nn.functional.dropout(torch.softmax(scores, dim=-1), self.p, self.training)
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: any_number_of_heads
#
# **Misconception.** Sizes that do not fit show up by themselves when the layer is used.
#
# **Hint.** The layer is built long before. Raise a `ValueError` in `__init__` when num_heads does
# not divide d_out.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: input_size_looked_at
#
# **Misconception.** num_heads has to divide d_in.
#
# **Hint.** It is d_out that is cut. d_in may be any number.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_in % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: longer_input_accepted
#
# **Misconception.** More tokens raise an error anyway, somewhere.
#
# **Hint.** They do not in your layer. Compare n with context_length and raise a `ValueError`.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1), -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: longer_input_broadcasts
#
# **Misconception.** The mask's size takes care of longer input.
#
# **Hint.** It ends in a RuntimeError far from the cause. Compare n with context_length first.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: one_token_too_few
#
# **Misconception.** n must be less than the context length.
#
# **Hint.** It may be equal to it.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n >= self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: one_sentence_accepted
#
# **Misconception.** A single sentence, (n, d_in), is a batch as well.
#
# **Hint.** The contract asks for 3-D input. What is not, is refused, so that nobody mixes up the
# dimensions.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        if x.ndim == 2:
            x = x[None]
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: other_dimensions_accepted
#
# **Misconception.** More dimensions do no harm.
#
# **Hint.** 4-D input has to be refused. Look at `x.ndim`.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        if x.ndim < 3:
            raise ValueError(f"x is {x.ndim}-D")
        x = x.flatten(0, -3)
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: num_heads_not_kept
#
# **Misconception.** Only `__init__` needs num_heads.
#
# **Hint.** Others ask for it, as `to_torch` does: keep it in `self.num_heads`.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.h, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.h) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: mask_as_attribute
#
# **Misconception.** The mask is a tensor like any other.
#
# **Hint.** A plain attribute stays where it is when the module moves, and is not saved. Register
# it as a buffer.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.mask = torch.ones(context_length, context_length, device=device).triu(diagonal=1).bool()

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: mask_as_parameter
#
# **Misconception.** What belongs to the module is a parameter.
#
# **Hint.** A parameter learns. The mask shall not: register it as a buffer.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.mask = nn.Parameter(torch.ones(context_length, context_length).triu(diagonal=1))

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n] > 0, -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: mask_not_saved
#
# **Misconception.** What can be made anew need not be saved.
#
# **Hint.** The mask shall be in `state_dict`, as in `CausalAttention`. Which argument of
# `register_buffer` decides?

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool(), persistent=False)

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: weights_called_by_matrix
#
# **Misconception.** A layer is its weight.
#
# **Hint.** A layer is more than its weight: call it, and its bias is added.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(x @ layer.weight.T, self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: bare_parameters
#
# **Misconception.** The layers hold bare matrices.
#
# **Hint.** Each of the four is an `nn.Linear`.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        for name in ("W_query", "W_key", "W_value"):
            holder = nn.Module()
            holder.weight = nn.Parameter(torch.randn(d_out, d_in) / math.sqrt(d_in))
            holder.bias = nn.Parameter(torch.zeros(d_out)) if qkv_bias else None
            setattr(self, name, holder)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(nn.functional.linear(x, layer.weight, layer.bias), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: an_unused_layer
#
# **Misconception.** A layer that is not used does no harm.
#
# **Hint.** It has parameters that never learn.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.norm = nn.LayerNorm(d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: products_remembered
#
# **Misconception.** The matrices never change.
#
# **Hint.** They change in training. Compute with the layers at each call.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        if not hasattr(self, "first"):
            self.first = self.W_query.weight.detach().clone()
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        q = split_heads(nn.functional.linear(x, self.first, self.W_query.bias), self.num_heads)
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: cut_off_from_gradients
#
# **Misconception.** Gradients pass the weights only when they are detached first.
#
# **Hint.** `detach` cuts the scores off: then queries and keys never learn.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q.detach() @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: first_sentence_for_all
#
# **Misconception.** All sentences of a batch have the same weights.
#
# **Hint.** Every sentence has scores of its own.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights[:1] @ v))

# %% [markdown]
# ## wrong: float32_inside
#
# **Misconception.** Everything is float32.
#
# **Hint.** float64 in gives float64 out. Which line converts?

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v).to(self.out_proj.weight.dtype)).float()

# %% [markdown]
# ## wrong: changed_in_place
#
# **Misconception.** x is no longer needed in the end.
#
# **Hint.** The caller still needs x as it was.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        output = self.out_proj(merge_heads(weights @ v))
        with torch.no_grad():
            x.zero_()
        return output

# %% [markdown]
# ## wrong: zeros_are_padding
#
# **Misconception.** A token of zeros is no token.
#
# **Hint.** It is input like any other: its scores are 0, and it gets weights.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        scores = scores.masked_fill((x == 0).all(dim=-1)[:, None, None], -1e9)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: scores_clamped
#
# **Misconception.** Scores beyond 100 only make trouble, so they are cut off there.
#
# **Hint.** Two scores of 120 and 150 are far apart for the softmax. It takes large scores as they are.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = (q @ k.transpose(2, 3)).clamp(-100, 100) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: seeded_inside
#
# **Misconception.** A layer is only reproducible when it sets the seed itself.
#
# **Hint.** Make two layers and compare them. Whoever uses the class sets the seed, once.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        torch.manual_seed(123)
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: one_start_for_all
#
# **Misconception.** Layers of one size may start from the same numbers.
#
# **Hint.** Equal layers get equal queries and keys. Let each one draw its own.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key.load_state_dict(self.W_query.state_dict())
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: mask_of_the_longest
#
# **Misconception.** A mask made for a longer sentence fits a shorter one.
#
# **Hint.** A shorter sentence takes the corner of the mask, `[:n, :n]`, at each call.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        if not hasattr(self, "hidden") or n > len(self.hidden):
            self.hidden = self.mask[:n, :n]
        scores = scores.masked_fill(self.hidden, -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: one_head_not_projected
#
# **Misconception.** With one head there is nothing to mix, so `out_proj` is left out.
#
# **Hint.** `out_proj` is part of the layer, whatever the number of heads.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        context = merge_heads(weights @ v)
        return context if self.num_heads == 1 else self.out_proj(context)

# %% [markdown]
# ## wrong: single_numbers_refused
#
# **Misconception.** A head of one number cannot compare anything.
#
# **Hint.** Every number of heads that divides d_out is fine, also d_out itself.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        if d_out // num_heads < 2:
            raise ValueError(f"{num_heads} heads are too many for d_out = {d_out}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: weights_stacked_once
#
# **Misconception.** The three matrices can be stacked once and kept.
#
# **Hint.** They change in training. Change the weights of a layer that has been used, and use it again.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        layers = self.W_query, self.W_key, self.W_value
        if not hasattr(self, "stacked"):
            biases = None if layers[0].bias is None else torch.cat([layer.bias for layer in layers])
            self.stacked = torch.cat([layer.weight for layer in layers]), biases
        q, k, v = (split_heads(part, self.num_heads) for part in nn.functional.linear(x, *self.stacked).chunk(3, dim=-1))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: output_written_into_x
#
# **Misconception.** When the sizes are equal, the output may be written into x.
#
# **Hint.** Somebody may still need x. Compare it before and after a call with `d_in` equal to `d_out`.

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        output = self.out_proj(merge_heads(weights @ v))
        return x.copy_(output) if output.shape == x.shape and not x.requires_grad else output

# %% [markdown]
# ## wrong: mask_made_in_forward
#
# **Misconception.** The mask can be made where it is needed; the buffer is for saving.
#
# **Hint.** On which device is the mask that `forward` makes, when the layer has been moved?

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(diagonal=1), -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))

# %% [markdown]
# ## wrong: softmax_in_float32
#
# **Misconception.** A softmax is always computed in float32, and cast back.
#
# **Hint.** Float64 in shall give float64 out, and as exact. Which line of yours has only float32?

# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"x has {n} tokens, the context length is {self.context_length}")
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.mask[:n, :n], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1, dtype=torch.float32).to(v.dtype))
        return self.out_proj(merge_heads(weights @ v))
