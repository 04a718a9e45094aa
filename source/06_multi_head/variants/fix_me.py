# %% [markdown]
# # fix_me
#
# 1. Read the last line of the error. It names the place of the first fault, and after you have
#    mended that, of the second.
# 2. Look at the rubric line with one head and the one with three. A fault that shows with one
#    head has nothing to do with the number of heads. `nan` means that a row had nothing left to
#    look at.
# 3. Follow one score on its way: divided by the root of what, hidden where, how many softmaxes,
#    how many dropouts? Compare each step with the drawing in part 4.

# %% [markdown]
# ## right: as_given_but_repaired
#
# The given class, mended where it is wrong.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## right: mask_turned_round
#
# The buffer itself is mended: True is hidden now.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).triu(diagonal=1)
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## right: first_pair_removed
#
# Of the doubled lines the second pair stays, on the scores.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = scores
        weights = torch.softmax(weights.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## right: split_by_five_dimensions
#
# One view for all three, the mask compared with 0, the queries scaled.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0, "num_heads has to divide d_out"
        self.num_heads = num_heads
        self.scale = (d_out // num_heads) ** -0.5
        self.out_proj = nn.Linear(d_out, d_out)
        self.qkv = nn.Linear(d_in, 3 * d_out, qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).tril()[None, None])

    def forward(self, x):
        b, n, _ = x.shape
        assert n <= self.mask.shape[-1], f"{n} tokens"
        q, k, v = self.qkv(x).view(b, n, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        scores = (q * self.scale) @ k.mT
        weights = scores.masked_fill(self.mask[..., :n, :n] == 0, -torch.inf).softmax(-1)
        return self.out_proj(merge_heads(self.dropout(weights) @ v)), weights

# %% [markdown]
# ## right: earlier_functions
#
# `split_heads` and `merge_heads`, and a mask to be added.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError(f"d_out = {d_out}, num_heads = {num_heads}")
        self.num_heads = num_heads
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.full((context_length, context_length), -math.inf).triu(1))

    def forward(self, x):
        if x.dim() != 3:
            raise ValueError(f"x is {x.dim()}-D")
        n = x.size(1)
        if n > self.mask.size(0):
            raise ValueError(f"x has {n} tokens, there is room for {self.mask.size(0)}")
        q, k, v = map(lambda part: split_heads(part, self.num_heads), self.qkv(x).tensor_split(3, dim=2))
        weights = torch.softmax(torch.einsum("bhid,bhjd->bhij", q, k) / q.size(-1) ** 0.5 + self.mask[:n, :n], dim=3)
        output = self.out_proj(merge_heads(torch.einsum("bhij,bhjd->bhid", self.dropout(weights), v)))
        return output, weights

# %% [markdown]
# ## right: three_products
#
# The rows of the one layer, used in three products.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.head_size, rest = divmod(d_out, num_heads)
        if rest:
            raise ValueError(f"d_out = {d_out}, num_heads = {num_heads}")
        self.num_heads = num_heads
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length, dtype=torch.uint8).triu(1))

    def part(self, x, number):
        rows = slice(number * self.out_proj.in_features, (number + 1) * self.out_proj.in_features)
        bias = None if self.qkv.bias is None else self.qkv.bias[rows]
        y = nn.functional.linear(x, self.qkv.weight[rows], bias)
        return torch.stack(y.split(self.head_size, dim=-1), dim=1)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > len(self.mask):
            raise ValueError(f"x is {tuple(x.shape)}")
        n = x.shape[1]
        q, k, v = (self.part(x, number) for number in range(3))
        scores = q.matmul(k.transpose(-1, -2)) / math.sqrt(self.head_size)
        scores[:, :, self.mask[:n, :n] == 1] = -math.inf
        weights = nn.functional.softmax(scores, dim=-1)
        context = nn.functional.dropout(weights, self.dropout.p, self.training) @ v
        return self.out_proj(torch.cat(context.unbind(1), dim=-1)), weights

# %% [markdown]
# ## wrong: syntax_slip_left
#
# **Misconception.** A class that looks complete will run.
#
# **Hint.** The cell above does not run at all: Python shows the line and says what it expected
# there. Look at how the other `def` lines end.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x)
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = self.mask[:num_tokens, :num_tokens]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(self.out_proj.in_features)
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        weights = torch.softmax(weights.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: name_left
#
# **Misconception.** Every name in a long cell is made somewhere.
#
# **Hint.** The error says which name there is not. What is the number of tokens called two lines
# above?

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = self.mask[:num_tokens, :num_tokens]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(self.out_proj.in_features)
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        weights = torch.softmax(weights.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: three_left
#
# **Misconception.** A cell that runs is right.
#
# **Hint.** Three faults are left. Begin with the mask: which cells does `masked_fill` write to,
# and what does the buffer say there?

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(self.out_proj.in_features)
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        weights = torch.softmax(weights.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: mask_and_twice_left
#
# **Misconception.** With the scale the rest is right.
#
# **Hint.** Two are left. Which cells does `masked_fill` write to? And which lines stand there
# twice?

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        weights = torch.softmax(weights.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: mask_and_scale_left
#
# **Misconception.** With one mask and one softmax the rest is right.
#
# **Hint.** Two are left. Which cells does `masked_fill` write to? And how many numbers does a
# head compare by?

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(self.out_proj.in_features)
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: twice_and_scale_left
#
# **Misconception.** With the mask the rest is right.
#
# **Hint.** Two are left. One head alone is wrong as well: count the softmaxes. Then compare one
# head with three.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(self.out_proj.in_features)
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        weights = torch.softmax(weights.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: mask_left
#
# **Misconception.** What is called a mask hides what it names.
#
# **Hint.** `masked_fill` writes where the mask is True. The buffer is True where a word may look,
# so the past is hidden, and the last row has nothing left.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: twice_left
#
# **Misconception.** Mask, softmax and dropout twice do no harm.
#
# **Hint.** The second softmax takes weights for scores. All weights come close to each other.
# Each step is done once.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        weights = torch.softmax(weights.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: scale_left
#
# **Misconception.** The scores are divided by the root of d_out.
#
# **Hint.** One head is right, three are not. How many numbers does a head compare by?

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(self.out_proj.in_features)
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: second_softmax_without_mask
#
# **Misconception.** The second softmax harms only because it has no mask of its own.
#
# **Hint.** It takes weights for scores, with and without a mask. Each step is done once.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        weights = torch.softmax(weights, dim=-1).masked_fill(hidden, 0.0)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: dropped_twice
#
# **Misconception.** The second softmax was the fault, the second dropout belongs there.
#
# **Hint.** Each step is done once, dropout as well.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(self.dropout(weights))
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: no_dropout_left
#
# **Misconception.** With the doubled lines both dropouts have to go.
#
# **Hint.** One of the two stays: the weights are dropped once, in training.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = weights
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: diagonal_hidden
#
# **Misconception.** The opposite of `tril()` is `triu()`.
#
# **Hint.** A word may look at itself. Which argument of `triu` leaves the diagonal out?

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).triu()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: mask_removed
#
# **Misconception.** When a mask hides the wrong things, none is better.
#
# **Hint.** Then every word sees the future. Turn the mask round.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores, dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: scale_removed
#
# **Misconception.** A scale that is wrong is better left out.
#
# **Hint.** The scores are divided by the root of the head's size.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3)
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: scale_without_the_root
#
# **Misconception.** The scale is the head's size.
#
# **Hint.** It is the square root of it.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / keys.shape[-1]
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: dropped_weights_returned
#
# **Misconception.** The weights that were used are the ones to return.
#
# **Hint.** The weights before dropout are asked for: they add up to 1, and one can look at them.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), dropped

# %% [markdown]
# ## wrong: weights_in_training_only
#
# **Misconception.** The weights are for training alone.
#
# **Hint.** Somebody may want to look at them in `eval()` as well.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights * self.training

# %% [markdown]
# ## wrong: output_alone
#
# **Misconception.** forward returns the output.
#
# **Hint.** This class returns two things: the output and the weights.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context)

# %% [markdown]
# ## wrong: weights_first
#
# **Misconception.** The order of the two does not matter.
#
# **Hint.** First the output, then the weights.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return weights, self.out_proj(context)

# %% [markdown]
# ## wrong: weights_averaged
#
# **Misconception.** One matrix of weights is enough to look at.
#
# **Hint.** Each head has weights of its own: (b, num_heads, n, n).

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights.mean(dim=1)

# %% [markdown]
# ## wrong: weights_detached_output
#
# **Misconception.** The weights are for looking, so they carry no gradient, nor does what is made
# from them.
#
# **Hint.** The output has to pass gradients to both layers.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        weights = weights.detach()
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: keys_first
#
# **Misconception.** The order within the one layer is key, query, value.
#
# **Hint.** The first third are the queries, then come keys, then values.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        keys, queries, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: cut_by_heads_first
#
# **Misconception.** Each head's query, key and value lie side by side.
#
# **Hint.** The first third of all numbers are the queries of all heads. Cut in three first, then
# into heads.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = self.qkv(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2).chunk(3, dim=-1)
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: view_alone
#
# **Misconception.** The right shape means the right content.
#
# **Hint.** The transpose was right. Cut the features, then transpose.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.reshape(len(x), self.num_heads, n, -1) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: merged_without_transpose
#
# **Misconception.** The heads can be joined as they are.
#
# **Hint.** The transpose before `flatten` was right.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).reshape(len(x), n, -1)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: no_out_proj
#
# **Misconception.** The context vectors are the output.
#
# **Hint.** `out_proj` comes last.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return context, weights

# %% [markdown]
# ## wrong: bias_always
#
# **Misconception.** A bias does no harm.
#
# **Hint.** `qkv` has one only when `qkv_bias` is true.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=True)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: bias_never
#
# **Misconception.** A fused layer has no bias.
#
# **Hint.** `qkv` has one when `qkv_bias` is true.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: multi_head_attention_in_its_place
#
# **Misconception.** The class of the last exercise will do.
#
# **Hint.** This one has a single layer `qkv`, and returns two things.

# %%
class RepairedMultiHeadAttention(MultiHeadAttention):
    def forward(self, x):
        return super().forward(x), None

# %% [markdown]
# ## wrong: torch_in_its_place
#
# **Misconception.** PyTorch's own module will do.
#
# **Hint.** This one has a layer called `qkv`, and hides the future by itself.

# %%
class RepairedMultiHeadAttention(nn.MultiheadAttention):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_out, num_heads, dropout, qkv_bias, batch_first=True)

    def forward(self, x):
        return super().forward(x, x, x)

# %% [markdown]
# ## wrong: refusal_of_sizes_removed
#
# **Misconception.** What was not wrong may go as well.
#
# **Hint.** The refusals were right. A d_out that cannot be divided is refused in `__init__`.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, part.shape[-1] // self.num_heads)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: refusal_of_input_removed
#
# **Misconception.** The mask's size takes care of longer input.
#
# **Hint.** The refusal in `forward` was right: longer input, and input that is not 3-D, raises a
# `ValueError`.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: mask_made_anew
#
# **Misconception.** A mask made in `forward` needs no buffer.
#
# **Hint.** The buffer was right but for its content. It has to be in `state_dict`.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: functional_dropout_always
#
# **Misconception.** Functional dropout knows about `eval()`.
#
# **Hint.** `self.dropout` does, and was right.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = nn.functional.dropout(weights, self.dropout.p)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: num_heads_lost
#
# **Misconception.** Only the size of a head is needed.
#
# **Hint.** `num_heads` is asked for by others. Keep it.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.h = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.h, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: changed_in_place
#
# **Misconception.** x is no longer needed in the end.
#
# **Hint.** The caller still needs x as it was.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        with torch.no_grad():
            x.zero_()
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: weakly_hidden
#
# **Misconception.** A negative number is enough to hide.
#
# **Hint.** -inf was right. Scores can be below any small number.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -50.0), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: float32_inside
#
# **Misconception.** Everything is float32.
#
# **Hint.** float64 in gives float64 out.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context).float(), weights

# %% [markdown]
# ## wrong: weights_in_float32
#
# **Misconception.** Weights between 0 and 1 do well in float32.
#
# **Hint.** float64 in gives float64 out, for both results.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights.float()

# %% [markdown]
# ## wrong: scores_clamped
#
# **Misconception.** Scores beyond 100 only make trouble, so they are cut off there.
#
# **Hint.** Nothing was wrong with large scores. The softmax takes them as they are.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        scores = scores.clamp(-100, 100)
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: one_head_weights_squeezed
#
# **Misconception.** With one head the weights need no dimension for heads.
#
# **Hint.** The weights are (b, num_heads, n, n), with one head too.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights.squeeze(1)

# %% [markdown]
# ## wrong: mask_of_the_longest
#
# **Misconception.** A mask made for a longer sentence fits a shorter one.
#
# **Hint.** A shorter sentence takes the corner of the mask, `[:n, :n]`, at each call.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        if not hasattr(self, "hidden") or n > len(self.hidden):
            self.hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(self.hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: added_to_x
#
# **Misconception.** Attention adds to its input.
#
# **Hint.** That comes in lesson 07, outside this layer. The output is what `out_proj` gives.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        output = self.out_proj(context)
        return output + x if output.shape == x.shape else output, weights

# %% [markdown]
# ## wrong: one_token_too_few
#
# **Misconception.** A sentence must be shorter than the context.
#
# **Hint.** The refusal was right as it was: may a sentence be exactly as long as the context?

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] >= self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: bias_left_out
#
# **Misconception.** A layer is its weight.
#
# **Hint.** With `qkv_bias=True` the layer has a bias as well. Call the layer, and it comes in.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in (x @ self.qkv.weight.T).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: hidden_by_a_large_number
#
# **Misconception.** -10000 is below every score.
#
# **Hint.** -inf was right: large inputs have scores that are larger than any number you name.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -1e4), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: an_unused_layer
#
# **Misconception.** A layer that is not used does no harm.
#
# **Hint.** It has parameters that never learn. The layers that were given are enough.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: output_written_into_x
#
# **Misconception.** When the sizes are equal, the output may be written into x.
#
# **Hint.** Somebody may still need x. Compare it before and after a call with `d_in` equal to `d_out`.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        output = self.out_proj(context)
        return x.copy_(output) if output.shape == x.shape and not x.requires_grad else output, weights

# %% [markdown]
# ## wrong: mask_on_the_first_device
#
# **Misconception.** A mask made in `forward` can replace the inverted one; the buffer stays for saving.
#
# **Hint.** On which device is your new mask when the layer has been moved? The buffer was right but for its content.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = torch.ones(n, n, dtype=torch.bool).triu(diagonal=1)
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights

# %% [markdown]
# ## wrong: softmax_in_float32
#
# **Misconception.** A softmax is always computed in float32, and cast back.
#
# **Hint.** Float64 in shall give float64 out, and as exact.

# %%
class RepairedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out must be divisible by num_heads, got {d_out} and {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", past)

    def forward(self, x):
        if x.ndim != 3 or x.shape[1] > self.context_length:
            raise ValueError(f"x must be (b, n, d_in), n up to {self.context_length}, got {tuple(x.shape)}")
        n = x.shape[1]
        queries, keys, values = (  # (b, heads, n, d_head) each
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        hidden = ~self.mask[:n, :n]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1, dtype=torch.float32).to(values.dtype)
        dropped = self.dropout(weights)
        context = (dropped @ values).transpose(1, 2).flatten(2)  # (b, n, d_out)
        return self.out_proj(context), weights
