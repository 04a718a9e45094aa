# %% [markdown]
# # merge_heads
#
# 1. Undo the two steps of `split_heads`, the last one first.
# 2. First the heads go back behind the tokens: swap dimensions 1 and 2. Then the last two
#    dimensions become one.
# 3. After the swap the tensor is not contiguous, so `view` fails. `flatten(2)`, or `reshape` with
#    the sizes written out, does it.

# %% [markdown]
# ## right: contiguous_view
#
# The numbers are put in order before `view`.

# %%
def merge_heads(x):
    b, h, n, d = x.size()
    return x.permute(0, 2, 1, 3).contiguous().view(b, n, h * d)

# %% [markdown]
# ## right: concatenated
#
# The heads side by side, as the wrapper does.

# %%
def merge_heads(x):
    return torch.cat(list(x.unbind(dim=1)), dim=-1)

# %% [markdown]
# ## right: copied_in
#
# A new tensor, filled head by head.

# %%
def merge_heads(x):
    b, num_heads, n, size = x.shape
    merged = torch.empty(b, n, num_heads * size, dtype=x.dtype, device=x.device)
    for h in range(num_heads):
        merged[:, :, h * size : (h + 1) * size] = x[:, h]
    return merged

# %% [markdown]
# ## right: token_by_token
#
# Each token's numbers are read off in one piece.

# %%
def merge_heads(x):
    tokens = [x[:, :, t].flatten(1) for t in range(x.shape[2])]
    return torch.stack(tokens, dim=1)

# %% [markdown]
# ## right: einsum
#
# A matrix of ones and zeros puts every head in its place.

# %%
def merge_heads(x):
    _, num_heads, _, size = x.shape
    d = num_heads * size
    place = torch.eye(d, dtype=x.dtype, device=x.device).reshape(num_heads, size, d)
    return torch.einsum("bhne,hed->bnd", x, place)

# %% [markdown]
# ## right: swapped_axes
#
# With the sizes left to PyTorch.

# %%
def merge_heads(x):
    moved = torch.movedim(x, 1, 2)
    return moved.reshape(*moved.shape[:2], -1)

# %% [markdown]
# ## wrong: reshape_alone
#
# **Misconception.** The right shape means the right content.
#
# **Hint.** Each token of the result must hold the numbers of that token. Swap the heads with the
# tokens before you join.

# %%
def merge_heads(x):
    b, num_heads, n, d_head = x.shape
    return x.reshape(b, n, num_heads * d_head)

# %% [markdown]
# ## wrong: view_of_a_transpose
#
# **Misconception.** `view` works on every tensor.
#
# **Hint.** After a transpose the numbers do not lie in memory in that order. `reshape` copies
# where it must.

# %%
def merge_heads(x):
    b, num_heads, n, d_head = x.shape
    return x.transpose(1, 2).view(b, n, num_heads * d_head)

# %% [markdown]
# ## wrong: contiguous_comes_first
#
# **Misconception.** `contiguous()` helps wherever it stands.
#
# **Hint.** It puts the numbers in the order of the tensor it is called on. Which tensor is it
# that `view` is to read?

# %%
def merge_heads(x):
    b, num_heads, n, d_head = x.shape
    return x.contiguous().transpose(1, 2).view(b, n, num_heads * d_head)

# %% [markdown]
# ## wrong: features_dealt_out
#
# **Misconception.** The features of the heads alternate.
#
# **Hint.** Head 0 has the first d_head features, all of them, then comes head 1.

# %%
def merge_heads(x):
    b, num_heads, n, d_head = x.shape
    return x.permute(0, 2, 3, 1).reshape(b, n, num_heads * d_head)

# %% [markdown]
# ## wrong: summed
#
# **Misconception.** Merging is adding.
#
# **Hint.** The heads stand side by side. Nothing is added up.

# %%
def merge_heads(x):
    return x.sum(dim=1)

# %% [markdown]
# ## wrong: averaged_and_repeated
#
# **Misconception.** Each head has a say of the same weight, everywhere.
#
# **Hint.** Every number of every head has a place of its own in the result.

# %%
def merge_heads(x):
    return x.mean(dim=1).repeat(1, 1, x.shape[1])

# %% [markdown]
# ## wrong: heads_below_each_other
#
# **Misconception.** Side by side means along the tokens.
#
# **Hint.** The result has n tokens. It is the last dimension that grows.

# %%
def merge_heads(x):
    return torch.cat(list(x.unbind(1)), dim=1)

# %% [markdown]
# ## wrong: heads_backwards
#
# **Misconception.** The order of the heads does not matter.
#
# **Hint.** Head 0 comes first, as `split_heads` has cut it.

# %%
def merge_heads(x):
    b, num_heads, n, d_head = x.shape
    return x.flip(1).transpose(1, 2).reshape(b, n, num_heads * d_head)

# %% [markdown]
# ## wrong: still_cut
#
# **Misconception.** The swap is all.
#
# **Hint.** The last two dimensions have to become one.

# %%
def merge_heads(x):
    return x.transpose(1, 2)

# %% [markdown]
# ## wrong: one_token_lost
#
# **Misconception.** A size of 1 can go.
#
# **Hint.** `squeeze` removes every dimension of size 1, one token alone included. Name the sizes
# instead.

# %%
def merge_heads(x):
    b, num_heads, n, d_head = x.shape
    return x.transpose(1, 2).reshape(b, n, num_heads * d_head).squeeze(1)

# %% [markdown]
# ## wrong: float32_inside
#
# **Misconception.** Everything is float32.
#
# **Hint.** The result has the dtype of x.

# %%
def merge_heads(x):
    b, num_heads, n, d_head = x.shape
    return x.float().transpose(1, 2).reshape(b, n, num_heads * d_head)

# %% [markdown]
# ## wrong: cut_off_from_gradients
#
# **Misconception.** Putting together is no computation, so gradients do not matter.
#
# **Hint.** Gradients pass `transpose` and `reshape` by themselves. What in your code stops them?

# %%
def merge_heads(x):
    b, num_heads, n, d_head = x.shape
    return x.detach().transpose(1, 2).reshape(b, n, num_heads * d_head)

# %% [markdown]
# ## wrong: first_sentence_for_all
#
# **Misconception.** All sentences of a batch are alike.
#
# **Hint.** Sentence 1 must hold its own numbers.

# %%
def merge_heads(x):
    b, num_heads, n, d_head = x.shape
    return x[:1].expand_as(x).transpose(1, 2).reshape(b, n, num_heads * d_head)

# %% [markdown]
# ## wrong: changed_in_place
#
# **Misconception.** x is no longer needed after the merge.
#
# **Hint.** The caller may still need x. Leave it as it was.

# %%
def merge_heads(x):
    merged = x.transpose(1, 2).flatten(2).clone()
    if not x.requires_grad:
        x.zero_()
    return merged

# %% [markdown]
# ## wrong: single_sentence_unpacked
#
# **Misconception.** A batch of one sentence is that sentence.
#
# **Hint.** The result has three dimensions, whatever their sizes are.

# %%
def merge_heads(x):
    b, num_heads, n, size = x.shape
    return x.transpose(1, 2).reshape(b, n, num_heads * size).squeeze(0)

# %% [markdown]
# ## wrong: smaller_size_are_the_heads
#
# **Misconception.** There are fewer heads than tokens.
#
# **Hint.** Short sentences have fewer tokens than heads. The places of the dimensions say which is which.

# %%
def merge_heads(x):
    b, num_heads, n, size = x.shape
    if num_heads <= n:
        x = x.transpose(1, 2)
    return x.reshape(b, n, num_heads * size)

# %% [markdown]
# ## wrong: kept_by_shape
#
# **Misconception.** Where the numbers go depends on the sizes alone, so it is done once.
#
# **Hint.** Where they go does, the numbers themselves depend on x.

# %%
merged = {}


def merge_heads(x):
    b, num_heads, n, size = x.shape
    if (x.shape, x.dtype) not in merged:
        merged[x.shape, x.dtype] = x.transpose(1, 2).reshape(b, n, num_heads * size)
    return merged[x.shape, x.dtype]

# %% [markdown]
# ## wrong: one_head_as_it_is
#
# **Misconception.** With one head there is nothing to merge.
#
# **Hint.** The result has three dimensions, with one head too.

# %%
def merge_heads(x):
    b, num_heads, n, size = x.shape
    return x if num_heads == 1 else x.transpose(1, 2).reshape(b, n, num_heads * size)

# %% [markdown]
# ## wrong: single_numbers_squeezed
#
# **Misconception.** Heads of one number need no joining, only without their last dimension.
#
# **Hint.** Without it, what is the order of the two dimensions left? The tokens come first.

# %%
def merge_heads(x):
    b, num_heads, n, size = x.shape
    return x.squeeze(-1) if size == 1 else x.transpose(1, 2).reshape(b, n, num_heads * size)

# %% [markdown]
# ## wrong: swapped_unless_it_fits
#
# **Misconception.** With as many heads as tokens there is nothing to swap.
#
# **Hint.** Sizes that are equal do not make the dimensions equal. Which numbers belong to token 0?

# %%
def merge_heads(x):
    b, num_heads, n, size = x.shape
    if num_heads != n:
        x = x.transpose(1, 2)
    return x.reshape(b, n, num_heads * size)

# %% [markdown]
# ## wrong: not_contiguous_is_swapped
#
# **Misconception.** A tensor that is not contiguous has been transposed already.
#
# **Hint.** x is (b, num_heads, n, d_head) however it lies in memory. What do its dimensions mean?

# %%
def merge_heads(x):
    b, num_heads, n, size = x.shape
    return (x.transpose(1, 2) if x.is_contiguous() else x).reshape(b, n, num_heads * size)

# %% [markdown]
# ## wrong: float32_and_back
#
# **Misconception.** A cast to float32 and back changes nothing.
#
# **Hint.** The dtype that comes out is right. How many digits are?

# %%
def merge_heads(x):
    b, num_heads, n, size = x.shape
    return x.float().transpose(1, 2).reshape(b, n, num_heads * size).to(x.dtype)
