# %% [markdown]
# # pack_heads
#
# 1. Look at the figure of part 3: the rows of the large W_query are the rows of the heads'
#    W_query, one head below the other.
# 2. `torch.cat` puts matrices below each other. Write into a parameter with `copy_`, under `with
#    torch.no_grad():`. A bias that does not exist is None.
# 3. The same for W_query, W_key, W_value, weights and biases. `torch.eye(d)` is the identity;
#    `zero_()` makes a bias zero.

# %% [markdown]
# ## right: slice_by_slice
#
# Each head is written into its rows.

# %%
@torch.no_grad()
def pack_heads(wrapper, mha):
    size = wrapper.heads[0].W_query.out_features
    for h, head in enumerate(wrapper.heads):
        rows = slice(h * size, (h + 1) * size)
        mha.W_query.weight[rows] = head.W_query.weight
        mha.W_key.weight[rows] = head.W_key.weight
        mha.W_value.weight[rows] = head.W_value.weight
        if head.W_query.bias is not None:
            mha.W_query.bias[rows] = head.W_query.bias
            mha.W_key.bias[rows] = head.W_key.bias
            mha.W_value.bias[rows] = head.W_value.bias
    nn.init.eye_(mha.out_proj.weight)
    nn.init.zeros_(mha.out_proj.bias)

# %% [markdown]
# ## right: state_dict
#
# A dictionary is filled and loaded.

# %%
def pack_heads(wrapper, mha):
    state = mha.state_dict()
    heads = [head.state_dict() for head in wrapper.heads]
    for name in heads[0]:
        if name.startswith("W_"):
            state[name] = torch.cat([head[name] for head in heads])
    state["out_proj.weight"] = torch.eye(*state["out_proj.weight"].shape)
    state["out_proj.bias"] = torch.zeros_like(state["out_proj.bias"])
    mha.load_state_dict(state)
    return mha

# %% [markdown]
# ## right: new_parameters
#
# The parameters are new objects.

# %%
def pack_heads(wrapper, mha):
    for name in ["W_query", "W_key", "W_value"]:
        layers = [getattr(head, name) for head in wrapper.heads]
        target = getattr(mha, name)
        target.weight = nn.Parameter(torch.vstack([layer.weight for layer in layers]).detach().clone())
        if layers[0].bias is not None:
            target.bias = nn.Parameter(torch.hstack([layer.bias for layer in layers]).detach().clone())
    like = mha.out_proj.weight.detach()
    mha.out_proj.weight = nn.Parameter(torch.eye(len(like), dtype=like.dtype, device=like.device))
    mha.out_proj.bias = nn.Parameter(torch.zeros(len(like), dtype=like.dtype, device=like.device))

# %% [markdown]
# ## right: through_data
#
# With `data`, as older code does.

# %%
def pack_heads(wrapper, mha):
    for name, parameter in mha.named_parameters():
        layer, kind = name.split(".")
        if layer == "out_proj":
            parameter.data.zero_()
            if kind == "weight":
                parameter.data.fill_diagonal_(1)
        else:
            parts = [getattr(getattr(head, layer), kind).data for head in wrapper.heads]
            parameter.data.copy_(torch.cat(parts, dim=0))

# %% [markdown]
# ## right: chunks_as_views
#
# The packed matrix is cut, and each piece is filled.

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_key", "W_value", "W_query"):
            for kind in ("weight", "bias"):
                packed = getattr(getattr(mha, name), kind)
                if packed is None:
                    continue
                for piece, head in zip(packed.chunk(len(wrapper.heads)), wrapper.heads):
                    piece.copy_(getattr(getattr(head, name), kind))
        mha.out_proj.bias.fill_(0)
        mha.out_proj.weight.copy_(torch.diag(torch.ones_like(mha.out_proj.bias)))

# %% [markdown]
# ## right: new_layers
#
# The three layers and `out_proj` are new layers.

# %%
def pack_heads(wrapper, mha):
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    d = mha.out_proj.out_features
    for name in ("W_query", "W_key", "W_value"):
        parts = [getattr(head, name) for head in wrapper.heads]
        layer = nn.Linear(parts[0].in_features, d, bias=parts[0].bias is not None, **like)
        with torch.no_grad():
            layer.weight.copy_(torch.cat([part.weight for part in parts]))
            if layer.bias is not None:
                layer.bias.copy_(torch.cat([part.bias for part in parts]))
        setattr(mha, name, layer)
    mha.out_proj = nn.Linear(d, d, **like)
    nn.init.eye_(mha.out_proj.weight)
    nn.init.zeros_(mha.out_proj.bias)

# %% [markdown]
# ## wrong: nothing_done
#
# **Misconception.** Two layers with the same sizes give the same.
#
# **Hint.** Nothing is copied yet. Begin with W_query: which rows of it belong to head 0?

# %%
def pack_heads(wrapper, mha):
    return mha

# %% [markdown]
# ## wrong: out_proj_left
#
# **Misconception.** `out_proj` makes no difference.
#
# **Hint.** It mixes the heads with random numbers. Make its weight the identity, its bias zero.

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            packed = getattr(mha, name)
            packed.weight.copy_(torch.cat([layer.weight for layer in layers]))
            if packed.bias is not None:
                packed.bias.copy_(torch.cat([layer.bias for layer in layers]))

# %% [markdown]
# ## wrong: out_proj_bias_left
#
# **Misconception.** The identity is enough.
#
# **Hint.** `out_proj` has a bias as well. What must it be to change nothing?

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            packed = getattr(mha, name)
            packed.weight.copy_(torch.cat([layer.weight for layer in layers]))
            if packed.bias is not None:
                packed.bias.copy_(torch.cat([layer.bias for layer in layers]))
        mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))

# %% [markdown]
# ## wrong: out_proj_all_ones
#
# **Misconception.** A matrix of ones changes nothing.
#
# **Hint.** The matrix that changes nothing has ones on the diagonal alone.

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            packed = getattr(mha, name)
            packed.weight.copy_(torch.cat([layer.weight for layer in layers]))
            if packed.bias is not None:
                packed.bias.copy_(torch.cat([layer.bias for layer in layers]))
        mha.out_proj.weight.copy_(torch.ones_like(mha.out_proj.weight))
        mha.out_proj.bias.zero_()

# %% [markdown]
# ## wrong: out_proj_replaced
#
# **Misconception.** A layer that does nothing is the identity.
#
# **Hint.** It has no weight any more, so it cannot learn or be loaded. Fill the layer that is
# there.

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            packed = getattr(mha, name)
            packed.weight.copy_(torch.cat([layer.weight for layer in layers]))
            if packed.bias is not None:
                packed.bias.copy_(torch.cat([layer.bias for layer in layers]))
        mha.out_proj = nn.Identity()

# %% [markdown]
# ## wrong: biases_forgotten
#
# **Misconception.** The weights are all there is to copy.
#
# **Hint.** With `qkv_bias` the layers have biases. They are packed the same way.

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            packed = getattr(mha, name)
            packed.weight.copy_(torch.cat([layer.weight for layer in layers]))
        mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))
        mha.out_proj.bias.zero_()

# %% [markdown]
# ## wrong: bias_of_the_first_head
#
# **Misconception.** All heads have the same bias.
#
# **Hint.** Each head has its own, and they are put together as the rows are.

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            packed = getattr(mha, name)
            packed.weight.copy_(torch.cat([layer.weight for layer in layers]))
            if packed.bias is not None:
                packed.bias.copy_(layers[0].bias.repeat(len(layers)))
        mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))
        mha.out_proj.bias.zero_()

# %% [markdown]
# ## wrong: bias_expected_always
#
# **Misconception.** Every layer has a bias.
#
# **Hint.** Without `qkv_bias` it is None. Look first.

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            packed = getattr(mha, name)
            packed.weight.copy_(torch.cat([layer.weight for layer in layers]))
            packed.bias.copy_(torch.cat([layer.bias for layer in layers]))
        mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))
        mha.out_proj.bias.zero_()

# %% [markdown]
# ## wrong: first_head_everywhere
#
# **Misconception.** The heads are alike.
#
# **Hint.** Each head has matrices of its own.

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            packed = getattr(mha, name)
            packed.weight.copy_(layers[0].weight.repeat(len(layers), 1))
            if packed.bias is not None:
                packed.bias.copy_(torch.cat([layer.bias for layer in layers]))
        mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))
        mha.out_proj.bias.zero_()

# %% [markdown]
# ## wrong: heads_backwards
#
# **Misconception.** The order of the heads does not matter.
#
# **Hint.** The wrapper puts head 0 first. So does `split_heads`.

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in reversed(list(wrapper.heads))]
            packed = getattr(mha, name)
            packed.weight.copy_(torch.cat([layer.weight for layer in layers]))
            if packed.bias is not None:
                packed.bias.copy_(torch.cat([layer.bias for layer in layers]))
        mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))
        mha.out_proj.bias.zero_()

# %% [markdown]
# ## wrong: rows_dealt_out
#
# **Misconception.** The rows of the heads alternate.
#
# **Hint.** `split_heads` gives head 0 the first block of features. So its rows are the first
# block.

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            packed = getattr(mha, name)
            packed.weight.copy_(torch.stack([layer.weight for layer in layers], dim=1).flatten(0, 1))
            if packed.bias is not None:
                packed.bias.copy_(torch.stack([layer.bias for layer in layers], dim=1).flatten())
        mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))
        mha.out_proj.bias.zero_()

# %% [markdown]
# ## wrong: rows_dealt_out_bias_right
#
# **Misconception.** Rows alternate, biases do not.
#
# **Hint.** `split_heads` gives head 0 the first block of features, of weights and of biases.

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            packed = getattr(mha, name)
            packed.weight.copy_(torch.stack([layer.weight for layer in layers], dim=1).flatten(0, 1))
            if packed.bias is not None:
                packed.bias.copy_(torch.cat([layer.bias for layer in layers]))
        mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))
        mha.out_proj.bias.zero_()

# %% [markdown]
# ## wrong: side_by_side
#
# **Misconception.** Heads are columns of the matrix.
#
# **Hint.** `nn.Linear` keeps (out, in). What a layer puts out are its rows.

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            packed = getattr(mha, name)
            packed.weight.copy_(torch.cat([layer.weight for layer in layers], dim=1))
            if packed.bias is not None:
                packed.bias.copy_(torch.cat([layer.bias for layer in layers]))
        mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))
        mha.out_proj.bias.zero_()

# %% [markdown]
# ## wrong: columns_when_they_fit
#
# **Misconception.** Heads are columns of the matrix, in the x @ W way of writing.
#
# **Hint.** `nn.Linear` keeps (out, in): the transpose of that matrix. Its rows belong to the
# heads.

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            packed = getattr(mha, name)
            stacked = torch.cat([layer.weight.T for layer in layers], dim=1)
            packed.weight.copy_(stacked if stacked.shape == packed.weight.shape else stacked.T)
            if packed.bias is not None:
                packed.bias.copy_(torch.cat([layer.bias for layer in layers]))
        mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))
        mha.out_proj.bias.zero_()

# %% [markdown]
# ## wrong: each_head_transposed_when_square
#
# **Misconception.** Each head's matrix is transposed.
#
# **Hint.** Both classes hold `nn.Linear` layers, and both keep (out, in). Nothing has to be
# transposed.

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            packed = getattr(mha, name)
            packed.weight.copy_(torch.cat([layer.weight.T if layer.weight.shape[0] == layer.weight.shape[1] else layer.weight for layer in layers]))
            if packed.bias is not None:
                packed.bias.copy_(torch.cat([layer.bias for layer in layers]))
        mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))
        mha.out_proj.bias.zero_()

# %% [markdown]
# ## wrong: queries_and_keys_swapped
#
# **Misconception.** Query and key are interchangeable.
#
# **Hint.** W_query gets the heads' W_query.

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            packed = getattr(mha, {"W_query": "W_key", "W_key": "W_query"}.get(name, name))
            packed.weight.copy_(torch.cat([layer.weight for layer in layers]))
            if packed.bias is not None:
                packed.bias.copy_(torch.cat([layer.bias for layer in layers]))
        mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))
        mha.out_proj.bias.zero_()

# %% [markdown]
# ## wrong: values_forgotten
#
# **Misconception.** Queries and keys make a head.
#
# **Hint.** There are three layers.

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key"):
            layers = [getattr(head, name) for head in wrapper.heads]
            packed = getattr(mha, name)
            packed.weight.copy_(torch.cat([layer.weight for layer in layers]))
            if packed.bias is not None:
                packed.bias.copy_(torch.cat([layer.bias for layer in layers]))
        mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))
        mha.out_proj.bias.zero_()

# %% [markdown]
# ## wrong: layers_shared_with_one_head
#
# **Misconception.** With one head there is nothing to put together.
#
# **Hint.** Then `mha` holds the wrapper's own layers, and a change of one reaches the other.
# Copy.

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            if len(layers) == 1:
                setattr(mha, name, layers[0])
                continue
            packed = getattr(mha, name)
            packed.weight.copy_(torch.cat([layer.weight for layer in layers]))
            if packed.bias is not None:
                packed.bias.copy_(torch.cat([layer.bias for layer in layers]))
        mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))
        mha.out_proj.bias.zero_()

# %% [markdown]
# ## wrong: views_of_one_memory
#
# **Misconception.** The wrapper may look into the packed matrix.
#
# **Hint.** Then a change of one reaches the other. The wrapper stays as it was.

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            packed = getattr(mha, name)
            packed.weight.copy_(torch.cat([layer.weight for layer in layers]))
            if packed.bias is not None:
                packed.bias.copy_(torch.cat([layer.bias for layer in layers]))
        for name in ("W_query", "W_key", "W_value"):
            for head, piece in zip(wrapper.heads, getattr(mha, name).weight.chunk(len(wrapper.heads))):
                getattr(head, name).weight.data = piece.data
        mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))
        mha.out_proj.bias.zero_()

# %% [markdown]
# ## wrong: forward_borrowed
#
# **Misconception.** The same output is all that counts.
#
# **Hint.** `mha` shall compute with its own four layers. Copy the numbers.

# %%
def pack_heads(wrapper, mha):
    mha.__dict__["borrowed"] = wrapper
    mha.forward = wrapper.forward
    with torch.no_grad():
        mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))
        mha.out_proj.bias.zero_()

# %% [markdown]
# ## wrong: frozen
#
# **Misconception.** What is copied must not learn.
#
# **Hint.** `mha` can learn as before: its parameters want gradients.

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            packed = getattr(mha, name)
            packed.weight.copy_(torch.cat([layer.weight for layer in layers]))
            if packed.bias is not None:
                packed.bias.copy_(torch.cat([layer.bias for layer in layers]))
        mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))
        mha.out_proj.bias.zero_()
    mha.requires_grad_(False)

# %% [markdown]
# ## wrong: frozen_new_parameters
#
# **Misconception.** A parameter made from a copy needs no gradient.
#
# **Hint.** `requires_grad=False` freezes it. Leave the argument out.

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            packed = getattr(mha, name)
            packed.weight = nn.Parameter(torch.cat([layer.weight for layer in layers]), requires_grad=False)
            if packed.bias is not None:
                packed.bias.copy_(torch.cat([layer.bias for layer in layers]))
        mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))
        mha.out_proj.bias.zero_()

# %% [markdown]
# ## wrong: wrapper_emptied
#
# **Misconception.** The wrapper is not needed any more.
#
# **Hint.** It stays as it was.

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            packed = getattr(mha, name)
            packed.weight.copy_(torch.cat([layer.weight for layer in layers]))
            if packed.bias is not None:
                packed.bias.copy_(torch.cat([layer.bias for layer in layers]))
        mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))
        mha.out_proj.bias.zero_()
        for parameter in wrapper.parameters():
            parameter.mul_(0.5)

# %% [markdown]
# ## wrong: wrong_way_round
#
# **Misconception.** It does not matter which of the two is copied.
#
# **Hint.** `mha` gets the numbers of the wrapper.

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            pieces = getattr(mha, name).weight.chunk(len(wrapper.heads))
            for head, piece in zip(wrapper.heads, pieces):
                getattr(head, name).weight.copy_(piece)
        mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))
        mha.out_proj.bias.zero_()

# %% [markdown]
# ## wrong: in_place_with_gradients
#
# **Misconception.** A parameter can be written to at any time.
#
# **Hint.** While gradients are recorded PyTorch refuses. Put the copies under `with
# torch.no_grad():`.

# %%
def pack_heads(wrapper, mha):
    for name in ("W_query", "W_key", "W_value"):
        layers = [getattr(head, name) for head in wrapper.heads]
        getattr(mha, name).weight.copy_(torch.cat([layer.weight for layer in layers]))
    mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))
    mha.out_proj.bias.zero_()

# %% [markdown]
# ## wrong: identity_in_float32
#
# **Misconception.** A new parameter is float32, as everything is.
#
# **Hint.** In a float64 layer it must be float64. `copy_` into the parameter that is there keeps
# its kind.

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            packed = getattr(mha, name)
            packed.weight.copy_(torch.cat([layer.weight for layer in layers]))
            if packed.bias is not None:
                packed.bias.copy_(torch.cat([layer.bias for layer in layers]))
        mha.out_proj.weight = nn.Parameter(torch.eye(mha.out_proj.in_features, device=mha.out_proj.weight.device))
        mha.out_proj.bias.zero_()

# %% [markdown]
# ## wrong: two_heads_only
#
# **Misconception.** There are two heads.
#
# **Hint.** There are as many as the wrapper has.

# %%
def pack_heads(wrapper, mha):
    size = wrapper.heads[0].W_query.out_features
    with torch.no_grad():
        for head, rows in ((wrapper.heads[0], slice(0, size)), (wrapper.heads[-1], slice(-size, None))):
            for name in ("W_query", "W_key", "W_value"):
                layer, packed = getattr(head, name), getattr(mha, name)
                packed.weight[rows] = layer.weight
                if packed.bias is not None:
                    packed.bias[rows] = layer.bias
        mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))
        mha.out_proj.bias.zero_()

# %% [markdown]
# ## wrong: dropout_passed_on_as_always_on
#
# **Misconception.** Dropout is part of the heads.
#
# **Hint.** In `eval()` nothing is dropped. What does your code put into `forward`?

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            packed = getattr(mha, name)
            packed.weight.copy_(torch.cat([layer.weight for layer in layers]))
            if packed.bias is not None:
                packed.bias.copy_(torch.cat([layer.bias for layer in layers]))
        mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))
        mha.out_proj.bias.zero_()
    plain = mha.forward
    mha.forward = lambda x: nn.functional.dropout(plain(x), mha.dropout.p)

# %% [markdown]
# ## wrong: wrapper_in_eval
#
# **Misconception.** What is compared in `eval()` is put into `eval()`.
#
# **Hint.** Copying needs no mode. The wrapper was in training and still wants to be.

# %%
def pack_heads(wrapper, mha):
    wrapper.eval()
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            getattr(mha, name).weight.copy_(torch.cat([layer.weight for layer in layers]))
            if layers[0].bias is not None:
                getattr(mha, name).bias.copy_(torch.cat([layer.bias for layer in layers]))
        nn.init.eye_(mha.out_proj.weight)
        nn.init.zeros_(mha.out_proj.bias)

# %% [markdown]
# ## wrong: wrapper_frozen
#
# **Misconception.** A layer that is copied has to be frozen.
#
# **Hint.** `torch.no_grad()` is enough, and ends by itself. The wrapper's parameters stay frozen.

# %%
def pack_heads(wrapper, mha):
    wrapper.requires_grad_(False)
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            getattr(mha, name).weight.copy_(torch.cat([layer.weight for layer in layers]))
            if layers[0].bias is not None:
                getattr(mha, name).bias.copy_(torch.cat([layer.bias for layer in layers]))
        nn.init.eye_(mha.out_proj.weight)
        nn.init.zeros_(mha.out_proj.bias)

# %% [markdown]
# ## wrong: one_head_not_projected
#
# **Misconception.** With one head there is nothing to mix, so `out_proj` can stay.
#
# **Hint.** `out_proj` has random numbers, with one head too. What must it be to change nothing?

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            packed = getattr(mha, name)
            packed.weight.copy_(torch.cat([layer.weight for layer in layers]))
            if packed.bias is not None:
                packed.bias.copy_(torch.cat([layer.bias for layer in layers]))
        if len(wrapper.heads) > 1:
            mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))
            mha.out_proj.bias.zero_()

# %% [markdown]
# ## wrong: single_rows_squeezed
#
# **Misconception.** A size of 1 can go.
#
# **Hint.** The weight of a head of one number is (1, d_in), and stays so: one row of the large matrix.

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            packed = getattr(mha, name)
            packed.weight.copy_(torch.cat([layer.weight.squeeze() for layer in layers]))
            if packed.bias is not None:
                packed.bias.copy_(torch.cat([layer.bias for layer in layers]))
        mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))
        mha.out_proj.bias.zero_()

# %% [markdown]
# ## wrong: float32_on_the_way
#
# **Misconception.** A cast to float32 and back changes nothing.
#
# **Hint.** The dtype that comes out is right. How many digits are?

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            packed = getattr(mha, name)
            packed.weight.copy_(torch.cat([layer.weight.float() for layer in layers]))
            if packed.bias is not None:
                packed.bias.copy_(torch.cat([layer.bias for layer in layers]))
        mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))
        mha.out_proj.bias.zero_()

# %% [markdown]
# ## wrong: a_copy_borrowed
#
# **Misconception.** What gives the same output is the same layer.
#
# **Hint.** `mha` shall compute with its own four layers, and learn with them. Does yours use them?

# %%
import copy


def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            packed = getattr(mha, name)
            packed.weight.copy_(torch.cat([layer.weight for layer in layers]))
            if packed.bias is not None:
                packed.bias.copy_(torch.cat([layer.bias for layer in layers]))
        mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))
        mha.out_proj.bias.zero_()
    held = [copy.deepcopy(wrapper)]  # in a list, so that mha does not know of it
    mha.forward = lambda x: held[0].train(mha.training)(x)

# %% [markdown]
# ## wrong: wrapper_made_float32
#
# **Misconception.** Afterwards everything is to be in the default dtype.
#
# **Hint.** `.float()` changes the module it is called on. The wrapper shall keep its dtype.

# %%
def pack_heads(wrapper, mha):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            layers = [getattr(head, name) for head in wrapper.heads]
            packed = getattr(mha, name)
            packed.weight.copy_(torch.cat([layer.weight for layer in layers]))
            if packed.bias is not None:
                packed.bias.copy_(torch.cat([layer.bias for layer in layers]))
        mha.out_proj.weight.copy_(torch.eye(mha.out_proj.in_features))
        mha.out_proj.bias.zero_()
    wrapper.float()
