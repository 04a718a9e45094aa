# %% [markdown]
# # match_weights
#
# 1. Print the shape of `v1.W_query` and of `v2.W_query.weight`. What has to happen to the second
#    one on the way?
# 2. Numbers are to be copied, not shared. A transpose alone is a view: it shows the same numbers
#    in memory.
# 3. Parameters may be changed in place under `torch.no_grad()`. A tensor has a method `copy_`
#    that takes over the numbers of another of the same shape. Do it for all three matrices.

# %% [markdown]
# ## right: new_parameters
#
# New parameter objects, made from clones.

# %%
def match_weights(v1, v2):
    v1.W_query = nn.Parameter(v2.W_query.weight.T.clone())
    v1.W_key = nn.Parameter(v2.W_key.weight.T.clone())
    v1.W_value = nn.Parameter(v2.W_value.weight.T.clone())

# %% [markdown]
# ## right: state_dict
#
# A dict of transposed weights, loaded by name.

# %%
def match_weights(v1, v2):
    state = {name.removesuffix(".weight"): weight.T for name, weight in v2.state_dict().items()}
    v1.load_state_dict(state)
    return v1

# %% [markdown]
# ## right: data_of_clones
#
# The data of each parameter is replaced.

# %%
def match_weights(v1, v2):
    v1.W_query.data = v2.W_query.weight.data.T.clone()
    v1.W_key.data = v2.W_key.weight.data.T.clone()
    v1.W_value.data = v2.W_value.weight.data.T.clone()

# %% [markdown]
# ## right: deepcopy
#
# The whole second layer is copied first; its copy may be cut up.

# %%
from copy import deepcopy


def match_weights(v1, v2):
    twin = deepcopy(v2)
    v1.W_query = nn.Parameter(twin.W_query.weight.t())
    v1.W_key = nn.Parameter(twin.W_key.weight.t())
    v1.W_value = nn.Parameter(twin.W_value.weight.t())

# %% [markdown]
# ## right: loop_with_setattr
#
# A loop over the names.

# %%
def match_weights(v1, v2):
    for name in ("W_query", "W_key", "W_value"):
        weight = getattr(v2, name).weight.detach().mT.contiguous().clone()
        setattr(v1, name, nn.Parameter(weight))

# %% [markdown]
# ## right: written_into_slices
#
# In place, column by column.

# %%
@torch.no_grad()
def match_weights(v1, v2):
    pairs = (v1.W_query, v2.W_query), (v1.W_key, v2.W_key), (v1.W_value, v2.W_value)
    for matrix, layer in pairs:
        for column, row in enumerate(layer.weight):
            matrix[:, column] = row

# %% [markdown]
# ## right: layers_asked
#
# Each layer is called on the identity matrix and so gives its matrix away.

# %%
def match_weights(v1, v2):
    same = torch.eye(v2.W_query.in_features).to(v2.W_query.weight)
    with torch.no_grad():
        v1.W_query.set_(v2.W_query(same))
        v1.W_key.set_(v2.W_key(same))
        v1.W_value.set_(v2.W_value(same))

# %% [markdown]
# ## wrong: transpose_forgotten
#
# **Misconception.** A linear layer stores its matrix as it is multiplied: (d_in, d_out).
#
# **Hint.** Print both shapes. `nn.Linear` stores (d_out, d_in).

# %%
def match_weights(v1, v2):
    v1.W_query = nn.Parameter(v2.W_query.weight.clone())
    v1.W_key = nn.Parameter(v2.W_key.weight.clone())
    v1.W_value = nn.Parameter(v2.W_value.weight.clone())

# %% [markdown]
# ## wrong: transposed_only_if_needed
#
# **Misconception.** The matrix has to be transposed only when the shapes differ.
#
# **Hint.** With d_in equal to d_out the shapes agree, and still rows and columns are swapped.

# %%
def match_weights(v1, v2):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            matrix, weight = getattr(v1, name), getattr(v2, name).weight
            matrix.copy_(weight if weight.shape == matrix.shape else weight.T)

# %% [markdown]
# ## wrong: reshaped
#
# **Misconception.** `reshape` to (d_in, d_out) transposes the matrix.
#
# **Hint.** `reshape` keeps the numbers in reading order and only breaks the rows elsewhere. Rows
# have to become columns.

# %%
def match_weights(v1, v2):
    with torch.no_grad():
        v1.W_query.copy_(v2.W_query.weight.reshape(v1.W_query.shape))
        v1.W_key.copy_(v2.W_key.weight.reshape(v1.W_key.shape))
        v1.W_value.copy_(v2.W_value.weight.reshape(v1.W_value.shape))

# %% [markdown]
# ## wrong: shared_memory
#
# **Misconception.** Wrapping a tensor in a parameter, or assigning it, makes a copy.
#
# **Hint.** It is still the same place in memory, and a transpose is only a view of it. Later
# changes reach the other layer. What makes a copy?

# %%
def match_weights(v1, v2):
    v1.W_query = nn.Parameter(v2.W_query.weight.T)
    v1.W_key = nn.Parameter(v2.W_key.weight.T)
    v1.W_value = nn.Parameter(v2.W_value.weight.T)

# %% [markdown]
# ## wrong: shared_data
#
# **Misconception.** Assigning `.data` copies the numbers.
#
# **Hint.** It lets the parameter look at the same numbers in memory, and `.T` is only a view of
# them. What makes a copy?

# %%
def match_weights(v1, v2):
    v1.W_query.data = v2.W_query.weight.data.T
    v1.W_key.data = v2.W_key.weight.data.T
    v1.W_value.data = v2.W_value.weight.data.T

# %% [markdown]
# ## wrong: values_shared
#
# **Misconception.** A detached tensor is a copy.
#
# **Hint.** `detach` leaves the gradient behind, not the memory. The value matrices of the two
# layers are still the same numbers.

# %%
def match_weights(v1, v2):
    v1.W_query = nn.Parameter(v2.W_query.weight.T.clone())
    v1.W_key = nn.Parameter(v2.W_key.weight.T.clone())
    v1.W_value = nn.Parameter(v2.W_value.weight.detach().T)

# %% [markdown]
# ## wrong: forward_of_the_other
#
# **Misconception.** It is enough that v1 calls v2.
#
# **Hint.** Then v1 follows every later change of v2. It needs matrices of its own.

# %%
def match_weights(v1, v2):
    v1.forward = v2.forward

# %% [markdown]
# ## wrong: other_follows
#
# **Misconception.** After the copy v2 may be made to use v1.
#
# **Hint.** A later change of v1 must not reach v2. Leave v2 alone.

# %%
def match_weights(v1, v2):
    with torch.no_grad():
        v1.W_query.copy_(v2.W_query.weight.T)
        v1.W_key.copy_(v2.W_key.weight.T)
        v1.W_value.copy_(v2.W_value.weight.T)
    v2.forward = v1.forward

# %% [markdown]
# ## wrong: other_transposed_in_place
#
# **Misconception.** `t_()` gives a transposed copy.
#
# **Hint.** The underscore says that it changes the tensor itself. After that v2 is broken.

# %%
def match_weights(v1, v2):
    with torch.no_grad():
        v1.W_query.copy_(v2.W_query.weight.t_())
        v1.W_key.copy_(v2.W_key.weight.t_())
        v1.W_value.copy_(v2.W_value.weight.t_())

# %% [markdown]
# ## wrong: wrong_direction
#
# **Misconception.** v2 is to be changed so that it gives the output of v1.
#
# **Hint.** It is the other way round: v1 changes, and v2 stays as it was.

# %%
def match_weights(v1, v2):
    with torch.no_grad():
        v2.W_query.weight.copy_(v1.W_query.T)
        v2.W_key.weight.copy_(v1.W_key.T)
        v2.W_value.weight.copy_(v1.W_value.T)

# %% [markdown]
# ## wrong: moved_instead_of_copied
#
# **Misconception.** After the copy the matrices of v2 are not needed any more.
#
# **Hint.** v2 stays as it was. Copy, and leave the original alone.

# %%
def match_weights(v1, v2):
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            weight = getattr(v2, name).weight
            getattr(v1, name).copy_(weight.T)
            weight.zero_()

# %% [markdown]
# ## wrong: queries_only
#
# **Misconception.** One matrix stands for all three.
#
# **Hint.** All three take part in the output. Copy the keys' and the values' matrices as well.

# %%
def match_weights(v1, v2):
    with torch.no_grad():
        v1.W_query.copy_(v2.W_query.weight.T)

# %% [markdown]
# ## wrong: query_matrix_three_times
#
# **Misconception.** Three copied lines need no second look.
#
# **Hint.** Read the names on the right once more: each matrix has a source of its own.

# %%
def match_weights(v1, v2):
    with torch.no_grad():
        v1.W_query.copy_(v2.W_query.weight.T)
        v1.W_key.copy_(v2.W_query.weight.T)
        v1.W_value.copy_(v2.W_query.weight.T)

# %% [markdown]
# ## wrong: queries_and_keys_swapped
#
# **Misconception.** The matrices of queries and keys may change places.
#
# **Hint.** That turns the scores around. Each matrix goes to the one of the same name.

# %%
def match_weights(v1, v2):
    with torch.no_grad():
        v1.W_query.copy_(v2.W_key.weight.T)
        v1.W_key.copy_(v2.W_query.weight.T)
        v1.W_value.copy_(v2.W_value.weight.T)

# %% [markdown]
# ## wrong: added
#
# **Misconception.** `+=` takes the numbers over.
#
# **Hint.** It adds them to what is there. The old numbers have to go.

# %%
def match_weights(v1, v2):
    with torch.no_grad():
        v1.W_query += v2.W_query.weight.T
        v1.W_key += v2.W_key.weight.T
        v1.W_value += v2.W_value.weight.T

# %% [markdown]
# ## wrong: name_rebound
#
# **Misconception.** v1 has changed once the line has run without an error.
#
# **Hint.** v1 still holds its first matrices. A new value for the name `v1` changes nothing
# outside the function, and `strict=False` passes over names that are not found.

# %%
from copy import deepcopy


def match_weights(v1, v2):
    v1 = deepcopy(v2)
    return v1

# %% [markdown]
# ## wrong: loaded_without_strict
#
# **Misconception.** `strict=False` makes `load_state_dict` find its way.
#
# **Hint.** It only keeps quiet about names that are missing. The two layers call their matrices
# differently, so nothing was loaded.

# %%
def match_weights(v1, v2):
    v1.load_state_dict(v2.state_dict(), strict=False)

# %% [markdown]
# ## wrong: state_of_the_other
#
# **Misconception.** The two layers have the same parameters.
#
# **Hint.** In v1 it is called `W_query`, in v2 `W_query.weight`, and the shapes differ as well.

# %%
def match_weights(v1, v2):
    v1.load_state_dict(v2.state_dict())

# %% [markdown]
# ## wrong: copied_with_gradient
#
# **Misconception.** A parameter can be changed in place like any tensor.
#
# **Hint.** PyTorch refuses while gradients are being recorded. There is a block that turns the
# recording off.

# %%
def match_weights(v1, v2):
    v1.W_query.copy_(v2.W_query.weight.T)
    v1.W_key.copy_(v2.W_key.weight.T)
    v1.W_value.copy_(v2.W_value.weight.T)

# %% [markdown]
# ## wrong: layers_assigned
#
# **Misconception.** A layer can take the place of a parameter.
#
# **Hint.** v1 multiplies by a matrix. Take the weight out of the layer.

# %%
def match_weights(v1, v2):
    v1.W_query = v2.W_query
    v1.W_key = v2.W_key
    v1.W_value = v2.W_value

# %% [markdown]
# ## wrong: tensor_assigned
#
# **Misconception.** A tensor can take the place of a parameter.
#
# **Hint.** Under this name the module takes a parameter only. Wrap the tensor, or copy into the
# one that is there.

# %%
def match_weights(v1, v2):
    v1.W_query = v2.W_query.weight.T.clone()
    v1.W_key = v2.W_key.weight.T.clone()
    v1.W_value = v2.W_value.weight.T.clone()

# %% [markdown]
# ## wrong: plain_tensors
#
# **Misconception.** Any tensor kept in a module is trained.
#
# **Hint.** The matrices of v1 are parameters, and they have to be parameters afterwards.

# %%
def match_weights(v1, v2):
    for name in ("W_query", "W_key", "W_value"):
        delattr(v1, name)
        setattr(v1, name, getattr(v2, name).weight.detach().T.clone())

# %% [markdown]
# ## wrong: hidden_copy
#
# **Misconception.** It is enough that v1 calls a copy of v2.
#
# **Hint.** Then the matrices of v1 are still the old ones, and nothing uses them. Change the
# matrices.

# %%
from copy import deepcopy


def match_weights(v1, v2):
    v1.forward = deepcopy(v2).forward

# %% [markdown]
# ## wrong: second_frozen
#
# **Misconception.** Freezing v2 does not change it.
#
# **Hint.** It gives the same output, but it cannot learn any more. Leave v2 as it was.

# %%
def match_weights(v1, v2):
    v2.requires_grad_(False)
    with torch.no_grad():
        v1.W_query.copy_(v2.W_query.weight.T)
        v1.W_key.copy_(v2.W_key.weight.T)
        v1.W_value.copy_(v2.W_value.weight.T)

# %% [markdown]
# ## wrong: copied_only_by_contiguous
#
# **Misconception.** `contiguous` always makes a copy.
#
# **Hint.** It copies only when it has to. The transpose of a single row or column is contiguous
# already, and stays shared.

# %%
def match_weights(v1, v2):
    v1.W_query = nn.Parameter(v2.W_query.weight.T.contiguous())
    v1.W_key = nn.Parameter(v2.W_key.weight.T.contiguous())
    v1.W_value = nn.Parameter(v2.W_value.weight.T.contiguous())
