# %% [markdown]
# # to_torch
#
# 1. Print `nn.MultiheadAttention(4, 2, batch_first=True).state_dict()`: four tensors are to be
#    filled. Which of yours belong where?
# 2. `in_proj_weight` holds queries, keys and values below each other. `out_proj` is an
#    `nn.Linear` as yours is. With `bias=False` its bias would be missing.
# 3. So keep the bias on. Fill `in_proj_bias` with the three biases, or with zeros where there are
#    none. Hand `device` and `dtype` of your weights to the constructor.

# %% [markdown]
# ## right: chunks_filled
#
# The three parts of the large matrix are filled one by one.

# %%
@torch.no_grad()
def to_torch(mha):
    d = mha.W_query.in_features
    made = nn.MultiheadAttention(embed_dim=d, num_heads=mha.num_heads, dropout=mha.dropout.p, batch_first=True)
    made = made.to(mha.W_query.weight)
    for layer, piece in zip((mha.W_query, mha.W_key, mha.W_value), made.in_proj_weight.chunk(3)):
        piece.copy_(layer.weight)
    for layer, piece in zip((mha.W_query, mha.W_key, mha.W_value), made.in_proj_bias.chunk(3)):
        piece.copy_(torch.zeros_like(piece) if layer.bias is None else layer.bias)
    made.out_proj.weight.copy_(mha.out_proj.weight)
    made.out_proj.bias.copy_(mha.out_proj.bias)
    return made.train(mha.training)

# %% [markdown]
# ## right: state_dict
#
# A dictionary with PyTorch's names.

# %%
def to_torch(mha):
    own = mha.state_dict()
    names = ("W_query", "W_key", "W_value")
    d = own["out_proj.weight"].shape[0]
    zeros = torch.zeros_like(own["out_proj.bias"])
    made = nn.MultiheadAttention(d, mha.num_heads, 0.0, True, batch_first=True, dtype=zeros.dtype, device=zeros.device)
    made.load_state_dict(
        {
            "in_proj_weight": torch.vstack([own[f"{name}.weight"] for name in names]),
            "in_proj_bias": torch.hstack([own.get(f"{name}.bias", zeros) for name in names]),
            "out_proj.weight": own["out_proj.weight"],
            "out_proj.bias": own["out_proj.bias"],
        }
    )
    return made

# %% [markdown]
# ## right: new_parameters
#
# Parameters made from copies, without a bias where there is none.

# %%
def to_torch(mha):
    d = mha.out_proj.out_features
    made = nn.MultiheadAttention(d, mha.num_heads, bias=mha.W_key.bias is not None, batch_first=True)
    layers = (mha.W_query, mha.W_key, mha.W_value)
    made.in_proj_weight = nn.Parameter(torch.cat([layer.weight.detach() for layer in layers]))
    if mha.W_key.bias is not None:
        made.in_proj_bias = nn.Parameter(torch.cat([layer.bias.detach() for layer in layers]))
    made.out_proj.weight = nn.Parameter(mha.out_proj.weight.detach().clone())
    made.out_proj.bias = nn.Parameter(mha.out_proj.bias.detach().clone())
    return made

# %% [markdown]
# ## right: three_matrices_apart
#
# PyTorch keeps the three apart when told that keys and values have sizes of their own.

# %%
def to_torch(mha):
    d = mha.W_query.out_features
    like = dict(device=mha.W_query.weight.device, dtype=mha.W_query.weight.dtype)
    made = nn.MultiheadAttention(d, mha.num_heads, batch_first=True, kdim=d, vdim=d, **like)
    made._qkv_same_embed_dim = False
    made.q_proj_weight = nn.Parameter(mha.W_query.weight.detach().clone())
    made.k_proj_weight = nn.Parameter(mha.W_key.weight.detach().clone())
    made.v_proj_weight = nn.Parameter(mha.W_value.weight.detach().clone())
    made.register_parameter("in_proj_weight", None)
    with torch.no_grad():
        made.in_proj_bias.zero_()
        for h, layer in enumerate((mha.W_query, mha.W_key, mha.W_value)):
            if layer.bias is not None:
                made.in_proj_bias[h * d : (h + 1) * d] = layer.bias
    made.out_proj.load_state_dict(mha.out_proj.state_dict())
    return made

# %% [markdown]
# ## right: through_data
#
# With `data`, as older code does.

# %%
def to_torch(mha):
    made = nn.MultiheadAttention(mha.W_query.in_features, mha.num_heads, batch_first=True).eval()
    made.to(device=mha.W_query.weight.device, dtype=mha.W_query.weight.dtype)
    q, k, v = mha.W_query, mha.W_key, mha.W_value
    made.in_proj_weight.data = torch.cat([q.weight.data, k.weight.data, v.weight.data], dim=0)
    if q.bias is not None:
        made.in_proj_bias.data = torch.cat([q.bias.data, k.bias.data, v.bias.data], dim=0)
    made.out_proj.weight.data[:] = mha.out_proj.weight.data
    made.out_proj.bias.data[:] = mha.out_proj.bias.data
    return made

# %% [markdown]
# ## wrong: nothing_copied
#
# **Misconception.** A module of the same sizes is the same module.
#
# **Hint.** Its numbers are random. Fill `in_proj_weight` and `out_proj`.

# %%
def to_torch(mha):
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    return nn.MultiheadAttention(mha.out_proj.in_features, mha.num_heads, batch_first=True, **like)

# %% [markdown]
# ## wrong: batch_second
#
# **Misconception.** `batch_first` is the default.
#
# **Hint.** PyTorch's default is (n, b, d). Then the sentences are mixed up with the tokens.

# %%
def to_torch(mha):
    layers = [mha.W_query, mha.W_key, mha.W_value]
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    made = nn.MultiheadAttention(mha.out_proj.in_features, mha.num_heads, **like)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
        made.in_proj_bias.zero_()
        if mha.W_query.bias is not None:
            made.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
        made.out_proj.weight.copy_(mha.out_proj.weight)
        made.out_proj.bias.copy_(mha.out_proj.bias)
    return made

# %% [markdown]
# ## wrong: one_head_always
#
# **Misconception.** num_heads does not change the numbers.
#
# **Hint.** It changes the cut. Hand `mha.num_heads` on.

# %%
def to_torch(mha):
    layers = [mha.W_query, mha.W_key, mha.W_value]
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    made = nn.MultiheadAttention(mha.out_proj.in_features, 1, batch_first=True, **like)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
        made.in_proj_bias.zero_()
        if mha.W_query.bias is not None:
            made.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
        made.out_proj.weight.copy_(mha.out_proj.weight)
        made.out_proj.bias.copy_(mha.out_proj.bias)
    return made

# %% [markdown]
# ## wrong: order_key_query_value
#
# **Misconception.** The order is key, query, value.
#
# **Hint.** PyTorch stacks query, key, value.

# %%
def to_torch(mha):
    layers = [mha.W_key, mha.W_query, mha.W_value]
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    made = nn.MultiheadAttention(mha.out_proj.in_features, mha.num_heads, batch_first=True, **like)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
        made.in_proj_bias.zero_()
        if mha.W_query.bias is not None:
            made.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
        made.out_proj.weight.copy_(mha.out_proj.weight)
        made.out_proj.bias.copy_(mha.out_proj.bias)
    return made

# %% [markdown]
# ## wrong: order_value_first
#
# **Misconception.** Any order of the three will do.
#
# **Hint.** PyTorch stacks query, key, value.

# %%
def to_torch(mha):
    layers = [mha.W_value, mha.W_key, mha.W_query]
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    made = nn.MultiheadAttention(mha.out_proj.in_features, mha.num_heads, batch_first=True, **like)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
        made.in_proj_bias.zero_()
        if mha.W_query.bias is not None:
            made.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
        made.out_proj.weight.copy_(mha.out_proj.weight)
        made.out_proj.bias.copy_(mha.out_proj.bias)
    return made

# %% [markdown]
# ## wrong: transposed
#
# **Misconception.** PyTorch's matrix is written for x @ W.
#
# **Hint.** It is kept as `nn.Linear` keeps it, (out, in). Nothing has to be transposed.

# %%
def to_torch(mha):
    layers = [mha.W_query, mha.W_key, mha.W_value]
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    made = nn.MultiheadAttention(mha.out_proj.in_features, mha.num_heads, batch_first=True, **like)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([layer.weight.T for layer in layers]))
        made.in_proj_bias.zero_()
        if mha.W_query.bias is not None:
            made.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
        made.out_proj.weight.copy_(mha.out_proj.weight)
        made.out_proj.bias.copy_(mha.out_proj.bias)
    return made

# %% [markdown]
# ## wrong: out_proj_transposed
#
# **Misconception.** `out_proj` is written for x @ W.
#
# **Hint.** It is an `nn.Linear` in both.

# %%
def to_torch(mha):
    layers = [mha.W_query, mha.W_key, mha.W_value]
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    made = nn.MultiheadAttention(mha.out_proj.in_features, mha.num_heads, batch_first=True, **like)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
        made.in_proj_bias.zero_()
        if mha.W_query.bias is not None:
            made.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
        made.out_proj.weight.copy_(mha.out_proj.weight.T)
        made.out_proj.bias.copy_(mha.out_proj.bias)
    return made

# %% [markdown]
# ## wrong: out_proj_left
#
# **Misconception.** `out_proj` makes no difference.
#
# **Hint.** It has numbers of its own. Copy weight and bias.

# %%
def to_torch(mha):
    layers = [mha.W_query, mha.W_key, mha.W_value]
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    made = nn.MultiheadAttention(mha.out_proj.in_features, mha.num_heads, batch_first=True, **like)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
        made.in_proj_bias.zero_()
        if mha.W_query.bias is not None:
            made.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
    return made

# %% [markdown]
# ## wrong: out_proj_bias_left
#
# **Misconception.** The weights are all there is.
#
# **Hint.** PyTorch starts the bias of `out_proj` with zeros. Copy yours.

# %%
def to_torch(mha):
    layers = [mha.W_query, mha.W_key, mha.W_value]
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    made = nn.MultiheadAttention(mha.out_proj.in_features, mha.num_heads, batch_first=True, **like)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
        made.in_proj_bias.zero_()
        if mha.W_query.bias is not None:
            made.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
        made.out_proj.weight.copy_(mha.out_proj.weight)
    return made

# %% [markdown]
# ## wrong: bias_off_takes_both
#
# **Misconception.** `bias` is for queries, keys and values alone.
#
# **Hint.** It also takes the bias of `out_proj` away. Leave it on, and make `in_proj_bias` zero.

# %%
def to_torch(mha):
    layers = [mha.W_query, mha.W_key, mha.W_value]
    bias = mha.W_query.bias is not None
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    made = nn.MultiheadAttention(mha.out_proj.in_features, mha.num_heads, bias=bias, batch_first=True, **like)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
        if bias:
            made.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
            made.out_proj.bias.copy_(mha.out_proj.bias)
        made.out_proj.weight.copy_(mha.out_proj.weight)
    return made

# %% [markdown]
# ## wrong: bias_forgotten
#
# **Misconception.** Queries, keys and values have no bias.
#
# **Hint.** They have one with `qkv_bias`. Put the three into `in_proj_bias`.

# %%
def to_torch(mha):
    layers = [mha.W_query, mha.W_key, mha.W_value]
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    made = nn.MultiheadAttention(mha.out_proj.in_features, mha.num_heads, batch_first=True, **like)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
        made.in_proj_bias.zero_()
        made.out_proj.weight.copy_(mha.out_proj.weight)
        made.out_proj.bias.copy_(mha.out_proj.bias)
    return made

# %% [markdown]
# ## wrong: bias_expected
#
# **Misconception.** Every layer has a bias.
#
# **Hint.** Without `qkv_bias` it is None. Look first.

# %%
def to_torch(mha):
    layers = [mha.W_query, mha.W_key, mha.W_value]
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    made = nn.MultiheadAttention(mha.out_proj.in_features, mha.num_heads, batch_first=True, **like)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
        made.in_proj_bias.zero_()
        made.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
        made.out_proj.weight.copy_(mha.out_proj.weight)
        made.out_proj.bias.copy_(mha.out_proj.bias)
    return made

# %% [markdown]
# ## wrong: bias_of_queries_everywhere
#
# **Misconception.** The three biases are one.
#
# **Hint.** Each layer has its own.

# %%
def to_torch(mha):
    layers = [mha.W_query, mha.W_key, mha.W_value]
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    made = nn.MultiheadAttention(mha.out_proj.in_features, mha.num_heads, batch_first=True, **like)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
        made.in_proj_bias.zero_()
        if mha.W_query.bias is not None:
            made.in_proj_bias.copy_(mha.W_query.bias.repeat(3))
        made.out_proj.weight.copy_(mha.out_proj.weight)
        made.out_proj.bias.copy_(mha.out_proj.bias)
    return made

# %% [markdown]
# ## wrong: weights_dealt_out
#
# **Misconception.** PyTorch keeps query, key and value of each head together.
#
# **Hint.** It keeps all queries, then all keys, then all values.

# %%
def to_torch(mha):
    layers = [mha.W_query, mha.W_key, mha.W_value]
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    made = nn.MultiheadAttention(mha.out_proj.in_features, mha.num_heads, batch_first=True, **like)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]).unflatten(0, (3, mha.num_heads, -1)).transpose(0, 1).flatten(0, 2))
        made.in_proj_bias.zero_()
        if mha.W_query.bias is not None:
            made.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
        made.out_proj.weight.copy_(mha.out_proj.weight)
        made.out_proj.bias.copy_(mha.out_proj.bias)
    return made

# %% [markdown]
# ## wrong: scaled_twice
#
# **Misconception.** PyTorch does not scale.
#
# **Hint.** It divides by the root of the head's size itself. Copy W_query as it is.

# %%
def to_torch(mha):
    layers = [mha.W_query, mha.W_key, mha.W_value]
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    made = nn.MultiheadAttention(mha.out_proj.in_features, mha.num_heads, batch_first=True, **like)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
        made.in_proj_weight[: mha.out_proj.in_features] /= math.sqrt(mha.out_proj.in_features / mha.num_heads)
        made.in_proj_bias.zero_()
        if mha.W_query.bias is not None:
            made.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
        made.out_proj.weight.copy_(mha.out_proj.weight)
        made.out_proj.bias.copy_(mha.out_proj.bias)
    return made

# %% [markdown]
# ## wrong: float32_always
#
# **Misconception.** Everything is float32.
#
# **Hint.** The result has the dtype of `mha`.

# %%
def to_torch(mha):
    layers = [mha.W_query, mha.W_key, mha.W_value]
    like = {"device": mha.out_proj.weight.device, "dtype": torch.float32}
    made = nn.MultiheadAttention(mha.out_proj.in_features, mha.num_heads, batch_first=True, **like)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
        made.in_proj_bias.zero_()
        if mha.W_query.bias is not None:
            made.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
        made.out_proj.weight.copy_(mha.out_proj.weight)
        made.out_proj.bias.copy_(mha.out_proj.bias)
    return made

# %% [markdown]
# ## wrong: mha_handed_back
#
# **Misconception.** `mha` itself has the right output.
#
# **Hint.** An `nn.MultiheadAttention` is asked for.

# %%
def to_torch(mha):
    return mha

# %% [markdown]
# ## wrong: a_class_of_its_own
#
# **Misconception.** What behaves like PyTorch's module is as good.
#
# **Hint.** An `nn.MultiheadAttention` is asked for, with PyTorch's own code.

# %%
import copy


def to_torch(mha):
    class Same(nn.Module):
        batch_first, embed_dim, num_heads = True, mha.out_proj.in_features, mha.num_heads

        def __init__(self):
            super().__init__()
            self.inner = copy.deepcopy(mha).eval()

        def forward(self, query, key, value, attn_mask=None):
            return self.inner(query), None

    return Same().eval()

# %% [markdown]
# ## wrong: mha_left_changed
#
# **Misconception.** `mha` is not needed any more.
#
# **Hint.** It stays as it was, its numbers and its mode.

# %%
def to_torch(mha):
    layers = [mha.W_query, mha.W_key, mha.W_value]
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    made = nn.MultiheadAttention(mha.out_proj.in_features, mha.num_heads, batch_first=True, **like)
    with torch.no_grad():
        mha.eval()
        made.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
        made.in_proj_bias.zero_()
        if mha.W_query.bias is not None:
            made.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
        made.out_proj.weight.copy_(mha.out_proj.weight)
        made.out_proj.bias.copy_(mha.out_proj.bias)
    return made

# %% [markdown]
# ## wrong: mha_scaled
#
# **Misconception.** The scale may be moved into the layer that is copied from.
#
# **Hint.** `mha` stays as it was.

# %%
def to_torch(mha):
    layers = [mha.W_query, mha.W_key, mha.W_value]
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    made = nn.MultiheadAttention(mha.out_proj.in_features, mha.num_heads, batch_first=True, **like)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
        made.in_proj_bias.zero_()
        if mha.W_query.bias is not None:
            made.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
        made.out_proj.weight.copy_(mha.out_proj.weight)
        made.out_proj.bias.copy_(mha.out_proj.bias)
        mha.W_query.weight.mul_(0.5)
    return made

# %% [markdown]
# ## wrong: mha_taken_apart
#
# **Misconception.** The layers may move over.
#
# **Hint.** `mha` stays as it was.

# %%
def to_torch(mha):
    layers = [mha.W_query, mha.W_key, mha.W_value]
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    made = nn.MultiheadAttention(mha.out_proj.in_features, mha.num_heads, batch_first=True, **like)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
        made.in_proj_bias.zero_()
        if mha.W_query.bias is not None:
            made.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
        made.out_proj.weight.copy_(mha.out_proj.weight)
        made.out_proj.bias.copy_(mha.out_proj.bias)
        mha.out_proj = made.out_proj
        mha.out_proj.weight.mul_(-1)
        made.out_proj = nn.Linear(*mha.out_proj.weight.shape, **like)
        made.out_proj.weight.copy_(-mha.out_proj.weight)
        made.out_proj.bias.copy_(mha.out_proj.bias)
    return made

# %% [markdown]
# ## wrong: gradients_recorded
#
# **Misconception.** A parameter can be written to at any time.
#
# **Hint.** While gradients are recorded PyTorch refuses. `with torch.no_grad():`

# %%
def to_torch(mha):
    made = nn.MultiheadAttention(mha.out_proj.in_features, mha.num_heads, batch_first=True)
    made.in_proj_weight.copy_(torch.cat([layer.weight for layer in (mha.W_query, mha.W_key, mha.W_value)]))
    return made

# %% [markdown]
# ## wrong: values_forgotten
#
# **Misconception.** Queries and keys are what the heads are made of.
#
# **Hint.** The last third of the matrix are the values.

# %%
def to_torch(mha):
    layers = [mha.W_query, mha.W_key, mha.W_value]
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    made = nn.MultiheadAttention(mha.out_proj.in_features, mha.num_heads, batch_first=True, **like)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([mha.W_query.weight, mha.W_key.weight, made.in_proj_weight[2 * len(mha.W_query.weight) :]]))
        made.in_proj_bias.zero_()
        if mha.W_query.bias is not None:
            made.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
        made.out_proj.weight.copy_(mha.out_proj.weight)
        made.out_proj.bias.copy_(mha.out_proj.bias)
    return made

# %% [markdown]
# ## wrong: extra_key
#
# **Misconception.** PyTorch wants a place to look when nothing is there.
#
# **Hint.** `add_zero_attn` adds a key of zeros that takes weight away.

# %%
def to_torch(mha):
    layers = [mha.W_query, mha.W_key, mha.W_value]
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    made = nn.MultiheadAttention(mha.out_proj.in_features, mha.num_heads, batch_first=True, add_zero_attn=True, **like)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
        made.in_proj_bias.zero_()
        if mha.W_query.bias is not None:
            made.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
        made.out_proj.weight.copy_(mha.out_proj.weight)
        made.out_proj.bias.copy_(mha.out_proj.bias)
    return made

# %% [markdown]
# ## wrong: mha_made_float32
#
# **Misconception.** Afterwards everything is to be in the default dtype.
#
# **Hint.** `.float()` changes the module it is called on. mha shall keep its dtype.

# %%
def to_torch(mha):
    layers = [mha.W_query, mha.W_key, mha.W_value]
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    made = nn.MultiheadAttention(mha.out_proj.in_features, mha.num_heads, batch_first=True, **like)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
        made.in_proj_bias.zero_()
        if mha.W_query.bias is not None:
            made.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
        made.out_proj.weight.copy_(mha.out_proj.weight)
        made.out_proj.bias.copy_(mha.out_proj.bias)
    mha.float()
    return made

# %% [markdown]
# ## wrong: mha_frozen
#
# **Misconception.** A layer that is copied has to be frozen.
#
# **Hint.** `torch.no_grad()` is enough, and ends by itself. mha shall still learn.

# %%
def to_torch(mha):
    layers = [mha.W_query, mha.W_key, mha.W_value]
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    made = nn.MultiheadAttention(mha.out_proj.in_features, mha.num_heads, batch_first=True, **like)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
        made.in_proj_bias.zero_()
        if mha.W_query.bias is not None:
            made.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
        made.out_proj.weight.copy_(mha.out_proj.weight)
        made.out_proj.bias.copy_(mha.out_proj.bias)
    mha.requires_grad_(False)
    return made

# %% [markdown]
# ## wrong: kept_by_size
#
# **Misconception.** Layers of one size are made once.
#
# **Hint.** Two layers of one size hold different numbers.

# %%
kept = {}


def to_torch(mha):
    layers = [mha.W_query, mha.W_key, mha.W_value]
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    made = nn.MultiheadAttention(mha.out_proj.in_features, mha.num_heads, batch_first=True, **like)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
        made.in_proj_bias.zero_()
        if mha.W_query.bias is not None:
            made.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
        made.out_proj.weight.copy_(mha.out_proj.weight)
        made.out_proj.bias.copy_(mha.out_proj.bias)
    key = len(made.in_proj_bias), mha.num_heads, made.in_proj_bias.dtype, mha.W_query.bias is None
    return kept.setdefault(key, made)

# %% [markdown]
# ## wrong: one_head_not_projected
#
# **Misconception.** With one head there is nothing to mix, so `out_proj` need not be copied.
#
# **Hint.** `out_proj` of the new module starts from random numbers, with one head too.

# %%
def to_torch(mha):
    layers = [mha.W_query, mha.W_key, mha.W_value]
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    made = nn.MultiheadAttention(mha.out_proj.in_features, mha.num_heads, batch_first=True, **like)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
        made.in_proj_bias.zero_()
        if mha.W_query.bias is not None:
            made.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
        if mha.num_heads > 1:
            made.out_proj.weight.copy_(mha.out_proj.weight)
            made.out_proj.bias.copy_(mha.out_proj.bias)
    return made

# %% [markdown]
# ## wrong: scaled_for_eval
#
# **Misconception.** What was trained with dropout has to be made smaller by 1 - p for use.
#
# **Hint.** Lesson 04: kept weights are divided by 1 - p in training. What is left to do in `eval()`?

# %%
def to_torch(mha):
    layers = [mha.W_query, mha.W_key, mha.W_value]
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    made = nn.MultiheadAttention(mha.out_proj.in_features, mha.num_heads, batch_first=True, **like)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
        made.in_proj_bias.zero_()
        if mha.W_query.bias is not None:
            made.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
        made.out_proj.weight.copy_(mha.out_proj.weight * (1 - mha.dropout.p))
        made.out_proj.bias.copy_(mha.out_proj.bias)
    return made

# %% [markdown]
# ## wrong: float32_on_the_way
#
# **Misconception.** A cast to float32 and back changes nothing.
#
# **Hint.** The dtype that comes out is right. How many digits are?

# %%
def to_torch(mha):
    layers = [mha.W_query, mha.W_key, mha.W_value]
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    made = nn.MultiheadAttention(mha.out_proj.in_features, mha.num_heads, batch_first=True, **like)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([layer.weight.float() for layer in layers]))
        made.in_proj_bias.zero_()
        if mha.W_query.bias is not None:
            made.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
        made.out_proj.weight.copy_(mha.out_proj.weight)
        made.out_proj.bias.copy_(mha.out_proj.bias)
    return made
