# %% [markdown]
# # split_heads
#
# 1. Two steps. Cut the last dimension into two: heads, and numbers of a head. Then move the heads
#    to where the drawing has them.
# 2. `x.view(b, n, num_heads, d // num_heads)` cuts the features of each token. Where are the
#    heads now, and where should they be?
# 3. Swap dimensions 1 and 2. Before all that, look at the remainder of `d` by `num_heads`: `d %
#    num_heads` is 0 when it fits.

# %% [markdown]
# ## right: viewed
#
# A view can always cut a dimension.

# %%
def split_heads(x, num_heads):
    b, n, d = x.size()
    if d % num_heads != 0:
        raise ValueError(f"num_heads = {num_heads} does not divide d = {d}")
    return x.view(b, n, num_heads, -1).transpose(1, 2)

# %% [markdown]
# ## right: permuted
#
# All dimensions named.

# %%
def split_heads(x, num_heads):
    b, n, d = x.shape
    assert d % num_heads == 0, f"num_heads = {num_heads} does not divide d = {d}"
    return x.reshape(b, n, num_heads, d // num_heads).permute(0, 2, 1, 3)

# %% [markdown]
# ## right: chunks
#
# Pieces of the features, stacked as heads.

# %%
def split_heads(x, num_heads):
    if x.size(-1) % num_heads:
        raise ValueError(f"{x.size(-1)} features cannot be cut into {num_heads} heads")
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)

# %% [markdown]
# ## right: slices
#
# A loop over heads.

# %%
def split_heads(x, num_heads):
    size, rest = divmod(x.shape[2], num_heads)
    if rest != 0:
        raise ValueError(f"d = {x.shape[2]} and num_heads = {num_heads} leave a rest of {rest}")
    heads = [x[:, :, h * size : (h + 1) * size] for h in range(num_heads)]
    return torch.stack(heads, 1)

# %% [markdown]
# ## right: unfolded
#
# A sliding window that moves by its own width.

# %%
def split_heads(x, num_heads):
    d = x.shape[-1]
    if d % num_heads > 0:
        raise ValueError(f"d = {d}, num_heads = {num_heads}")
    return x.unfold(-1, d // num_heads, d // num_heads).swapaxes(1, 2)

# %% [markdown]
# ## right: copied_in
#
# A new tensor, filled head by head.

# %%
def split_heads(x, num_heads):
    b, n, d = x.shape
    if (d // num_heads) * num_heads != d:
        raise ValueError(f"d = {d}, num_heads = {num_heads}")
    heads = x.new_empty(b, num_heads, n, d // num_heads)
    for h, part in enumerate(torch.split(x, d // num_heads, dim=2)):
        heads[:, h] = part
    return heads.contiguous()

# %% [markdown]
# ## right: einsum
#
# A matrix of ones and zeros picks the features of every head.

# %%
def split_heads(x, num_heads):
    d = x.shape[-1]
    if d % num_heads != 0:
        raise ValueError(f"d = {d}, num_heads = {num_heads}")
    pick = torch.eye(d, dtype=x.dtype, device=x.device).reshape(num_heads, d // num_heads, d)
    return torch.einsum("bnd,hed->bhne", x, pick)

# %% [markdown]
# ## wrong: view_alone
#
# **Misconception.** The right shape means the right content.
#
# **Hint.** Each row of a head must hold one token. Print `torch.arange(24.).view(1, 6, 4)` and
# its heads.

# %%
def split_heads(x, num_heads):
    b, n, d = x.shape
    if d % num_heads != 0:
        raise ValueError(f"d must be divisible by num_heads, got {d} and {num_heads}")
    return x.reshape(b, num_heads, n, d // num_heads)

# %% [markdown]
# ## wrong: no_transpose
#
# **Misconception.** Cutting the features is all.
#
# **Hint.** The heads stand behind the tokens now. They belong beside the batch, in dimension 1.

# %%
def split_heads(x, num_heads):
    b, n, d = x.shape
    if d % num_heads != 0:
        raise ValueError(f"d must be divisible by num_heads, got {d} and {num_heads}")
    return x.reshape(b, n, num_heads, d // num_heads)

# %% [markdown]
# ## wrong: features_dealt_out
#
# **Misconception.** Head h gets every num_heads-th feature.
#
# **Hint.** A head is a block of neighbouring features: the first ones belong to head 0. Which of
# the two new dimensions comes first?

# %%
def split_heads(x, num_heads):
    b, n, d = x.shape
    if d % num_heads != 0:
        raise ValueError(f"d must be divisible by num_heads, got {d} and {num_heads}")
    return x.reshape(b, n, d // num_heads, num_heads).permute(0, 3, 1, 2)

# %% [markdown]
# ## wrong: size_for_number
#
# **Misconception.** The second argument is the size of a head.
#
# **Hint.** It is their number. The size of one is d divided by it.

# %%
def split_heads(x, num_heads):
    b, n, d = x.shape
    if d % num_heads != 0:
        raise ValueError(f"d must be divisible by num_heads, got {d} and {num_heads}")
    return x.reshape(b, n, d // num_heads, num_heads).transpose(1, 2)

# %% [markdown]
# ## wrong: accepts_a_rest
#
# **Misconception.** What cannot be divided is cut off.
#
# **Hint.** When num_heads does not divide d, features would be lost. Look at the remainder, and
# raise a `ValueError`.

# %%
def split_heads(x, num_heads):
    b, n, d = x.shape
    size = d // num_heads
    return x[..., : num_heads * size].reshape(b, n, num_heads, size).transpose(1, 2)

# %% [markdown]
# ## wrong: torch_raises_anyway
#
# **Misconception.** An impossible cut raises by itself.
#
# **Hint.** It does, a RuntimeError that names neither d nor num_heads. Raise a `ValueError` that
# does.

# %%
def split_heads(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)

# %% [markdown]
# ## wrong: refuses_too_much
#
# **Misconception.** The number of heads must be smaller than the size of a head.
#
# **Hint.** Any number that divides d is fine: 1 as well as d itself.

# %%
def split_heads(x, num_heads):
    b, n, d = x.shape
    if d % num_heads != 0 or num_heads > d // num_heads:
        raise ValueError(f"d must be divisible by num_heads, got {d} and {num_heads}")
    return x.reshape(b, n, num_heads, d // num_heads).transpose(1, 2)

# %% [markdown]
# ## wrong: only_even
#
# **Misconception.** d has to be a multiple of two heads' size.
#
# **Hint.** d / num_heads may be any whole number, odd ones too.

# %%
def split_heads(x, num_heads):
    b, n, d = x.shape
    if d % num_heads != 0 or (d // num_heads) % 2 and d // num_heads > 1:
        raise ValueError(f"d must be divisible by num_heads, got {d} and {num_heads}")
    return x.reshape(b, n, num_heads, d // num_heads).transpose(1, 2)

# %% [markdown]
# ## wrong: tokens_swapped_with_features
#
# **Misconception.** A transpose is a transpose.
#
# **Hint.** Which two dimensions change places? The numbers of a head stay last.

# %%
def split_heads(x, num_heads):
    b, n, d = x.shape
    if d % num_heads != 0:
        raise ValueError(f"d must be divisible by num_heads, got {d} and {num_heads}")
    return x.reshape(b, n, num_heads, d // num_heads).permute(0, 2, 3, 1)

# %% [markdown]
# ## wrong: float32_inside
#
# **Misconception.** Everything is float32.
#
# **Hint.** The result has the dtype of x. Nothing needs to be converted here.

# %%
def split_heads(x, num_heads):
    b, n, d = x.shape
    if d % num_heads != 0:
        raise ValueError(f"d must be divisible by num_heads, got {d} and {num_heads}")
    return x.float().reshape(b, n, num_heads, d // num_heads).transpose(1, 2)

# %% [markdown]
# ## wrong: cut_off_from_gradients
#
# **Misconception.** Cutting is no computation, so gradients do not matter.
#
# **Hint.** Gradients pass a `transpose` by themselves. What in your code stops them?

# %%
def split_heads(x, num_heads):
    b, n, d = x.shape
    if d % num_heads != 0:
        raise ValueError(f"d must be divisible by num_heads, got {d} and {num_heads}")
    return x.detach().reshape(b, n, num_heads, d // num_heads).transpose(1, 2)

# %% [markdown]
# ## wrong: first_sentence_for_all
#
# **Misconception.** All sentences of a batch are alike.
#
# **Hint.** Sentence 1 must hold its own numbers. Where does your code use `x[0]`?

# %%
def split_heads(x, num_heads):
    b, n, d = x.shape
    if d % num_heads != 0:
        raise ValueError(f"d must be divisible by num_heads, got {d} and {num_heads}")
    return x[:1].expand(b, n, d).reshape(b, n, num_heads, d // num_heads).transpose(1, 2)

# %% [markdown]
# ## wrong: heads_backwards
#
# **Misconception.** The order of the heads does not matter.
#
# **Hint.** Head 0 has the first features. The next lines count on that order.

# %%
def split_heads(x, num_heads):
    b, n, d = x.shape
    if d % num_heads != 0:
        raise ValueError(f"d must be divisible by num_heads, got {d} and {num_heads}")
    return x.reshape(b, n, num_heads, d // num_heads).transpose(1, 2).flip(1)

# %% [markdown]
# ## wrong: changed_in_place
#
# **Misconception.** x is no longer needed after the cut.
#
# **Hint.** The caller may still need x. Leave it as it was: which call ends with an underscore?

# %%
def split_heads(x, num_heads):
    b, n, d = x.shape
    if d % num_heads != 0:
        raise ValueError(f"d must be divisible by num_heads, got {d} and {num_heads}")
    heads = x.clone().reshape(b, n, num_heads, d // num_heads).transpose(1, 2)
    if not x.requires_grad:
        x.zero_()
    return heads

# %% [markdown]
# ## wrong: kept_by_shape
#
# **Misconception.** A cut depends on the sizes alone, so it is made once.
#
# **Hint.** Where the numbers go depends on the sizes, the numbers themselves on x.

# %%
cuts = {}


def split_heads(x, num_heads):
    b, n, d = x.shape
    if d % num_heads != 0:
        raise ValueError(f"num_heads = {num_heads} does not divide d = {d}")
    if (x.shape, x.dtype, num_heads) not in cuts:
        cuts[x.shape, x.dtype, num_heads] = x.reshape(b, n, num_heads, d // num_heads).transpose(1, 2)
    return cuts[x.shape, x.dtype, num_heads]

# %% [markdown]
# ## wrong: single_sentence_unpacked
#
# **Misconception.** A batch of one sentence is that sentence.
#
# **Hint.** The result has four dimensions, whatever their sizes are.

# %%
def split_heads(x, num_heads):
    b, n, d = x.shape
    if d % num_heads != 0:
        raise ValueError(f"num_heads = {num_heads} does not divide d = {d}")
    return x.reshape(b, n, num_heads, d // num_heads).transpose(1, 2).squeeze(0)

# %% [markdown]
# ## wrong: one_head_as_it_is
#
# **Misconception.** With one head there is nothing to cut.
#
# **Hint.** The result has four dimensions, with one head too: (b, 1, n, d).

# %%
def split_heads(x, num_heads):
    b, n, d = x.shape
    if d % num_heads != 0:
        raise ValueError(f"d must be divisible by num_heads, got {d} and {num_heads}")
    if num_heads == 1:
        return x
    heads = x.reshape(b, n, num_heads, d // num_heads)
    return heads.transpose(1, 2)

# %% [markdown]
# ## wrong: single_numbers_refused
#
# **Misconception.** A head is a vector, so it has at least two numbers.
#
# **Hint.** Any number of heads that divides d is fine, also d itself.

# %%
def split_heads(x, num_heads):
    b, n, d = x.shape
    if d % num_heads != 0:
        raise ValueError(f"d must be divisible by num_heads, got {d} and {num_heads}")
    if d // num_heads < 2:
        raise ValueError(f"heads need at least 2 numbers, got d = {d} and num_heads = {num_heads}")
    heads = x.reshape(b, n, num_heads, d // num_heads)
    return heads.transpose(1, 2)

# %% [markdown]
# ## wrong: swapped_unless_it_fits
#
# **Misconception.** When dimension 1 is as large as the number of heads, the heads are there already.
#
# **Hint.** What is dimension 1 when there are as many tokens as heads?

# %%
def split_heads(x, num_heads):
    b, n, d = x.shape
    if d % num_heads != 0:
        raise ValueError(f"d must be divisible by num_heads, got {d} and {num_heads}")
    heads = x.reshape(b, n, num_heads, d // num_heads)
    return heads if heads.shape[1] == num_heads else heads.transpose(1, 2)

# %% [markdown]
# ## wrong: one_token_lost
#
# **Misconception.** A size of 1 can go.
#
# **Hint.** A sentence may have one token. The result has four dimensions, whatever their sizes are.

# %%
def split_heads(x, num_heads):
    b, n, d = x.shape
    if d % num_heads != 0:
        raise ValueError(f"d must be divisible by num_heads, got {d} and {num_heads}")
    heads = x.reshape(b, n, num_heads, d // num_heads)
    return heads.transpose(1, 2).squeeze(2)

# %% [markdown]
# ## wrong: float32_and_back
#
# **Misconception.** A cast to float32 and back changes nothing.
#
# **Hint.** The dtype that comes out is right. How many digits are?

# %%
def split_heads(x, num_heads):
    b, n, d = x.shape
    if d % num_heads != 0:
        raise ValueError(f"d must be divisible by num_heads, got {d} and {num_heads}")
    heads = x.float().reshape(b, n, num_heads, d // num_heads)
    return heads.transpose(1, 2).to(x.dtype)
