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
# **Misconception.** A linear layer keeps its matrix as v1 does: (d_in, d_out).
#
# **Hint.** Print both shapes. `nn.Linear` stores (d_out, d_in).

# %%
def match_weights(v1, v2):
    v1.W_query = nn.Parameter(v2.W_query.weight.clone())
    v1.W_key = nn.Parameter(v2.W_key.weight.clone())
    v1.W_value = nn.Parameter(v2.W_value.weight.clone())

# %% [markdown]
# ## wrong: copied_without_transpose
#
# **Misconception.** `copy_` makes the shapes fit.
#
# **Hint.** It copies number by number into a matrix of the same shape. Print both shapes: what
# has to happen to the second one?

# %%
def match_weights(v1, v2):
    with torch.no_grad():
        v1.W_query.copy_(v2.W_query.weight)
        v1.W_key.copy_(v2.W_key.weight)
        v1.W_value.copy_(v2.W_value.weight)

# %% [markdown]
# ## wrong: weight_taken_over
#
# **Misconception.** The weight of a linear layer can be taken over as it is.
#
# **Hint.** Two things stand against it. Print both shapes. And ask whether the numbers are
# copied, or only shared.

# %%
def match_weights(v1, v2):
    v1.W_query = nn.Parameter(v2.W_query.weight)
    v1.W_key = nn.Parameter(v2.W_key.weight)
    v1.W_value = nn.Parameter(v2.W_value.weight)

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
# **Misconception.** To reshape the matrix to (d_in, d_out) is to transpose it.
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
# **Misconception.** A tensor that is transposed, wrapped or assigned is a copy.
#
# **Hint.** It is still the same place in memory, seen from another side. Later changes reach the
# other layer. What makes a copy?

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
# ## wrong: other_follows
#
# **Misconception.** Once the numbers are copied, v2 may use v1.
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
# **Misconception.** v2 is to be changed, so that it gives the output of v1.
#
# **Hint.** It is the other way round: v1 changes, and v2 stays as it was.

# %%
def match_weights(v1, v2):
    with torch.no_grad():
        v2.W_query.weight.copy_(v1.W_query.T)
        v2.W_key.weight.copy_(v1.W_key.T)
        v2.W_value.weight.copy_(v1.W_value.T)

# %% [markdown]
# ## wrong: wrong_direction_without_transpose
#
# **Misconception.** v2 takes over the matrices of v1 as they are.
#
# **Hint.** It is the other way round: v1 changes, and v2 stays as it was. Compare the shapes too.

# %%
def match_weights(v1, v2):
    with torch.no_grad():
        v2.W_query.weight.copy_(v1.W_query)
        v2.W_key.weight.copy_(v1.W_key)
        v2.W_value.weight.copy_(v1.W_value)

# %% [markdown]
# ## wrong: moved_instead_of_copied
#
# **Misconception.** After the copy the matrices of v2 are no longer needed.
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
# ## wrong: values_forgotten
#
# **Misconception.** Queries and keys alone decide what the layer gives.
#
# **Hint.** They decide the weights. What is mixed comes from a third matrix.

# %%
def match_weights(v1, v2):
    with torch.no_grad():
        v1.W_query.copy_(v2.W_query.weight.T)
        v1.W_key.copy_(v2.W_key.weight.T)

# %% [markdown]
# ## wrong: query_matrix_three_times
#
# **Misconception.** The query matrix of v2 serves for all three.
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
# **Misconception.** v1 is changed once the code runs without an error.
#
# **Hint.** v1 still holds its first matrices: nothing was written into them. A new value for the
# name `v1` changes nothing outside the function, and `strict=False` passes over names that are
# not found.

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
# **Misconception.** A parameter can be changed in place like any other tensor.
#
# **Hint.** PyTorch refuses while gradients are being recorded. There is a block that turns the
# recording off.

# %%
def match_weights(v1, v2):
    v1.W_query.copy_(v2.W_query.weight.T)
    v1.W_key.copy_(v2.W_key.weight.T)
    v1.W_value.copy_(v2.W_value.weight.T)

# %% [markdown]
# ## wrong: weight_left_out
#
# **Misconception.** A linear layer is its matrix, and can be transposed itself.
#
# **Hint.** The layer holds its matrix under a name. Print `v2.W_query` and look for what it owns.

# %%
def match_weights(v1, v2):
    with torch.no_grad():
        v1.W_query.copy_(v2.W_query.T)
        v1.W_key.copy_(v2.W_key.T)
        v1.W_value.copy_(v2.W_value.T)

# %% [markdown]
# ## wrong: weight_on_both_sides
#
# **Misconception.** The matrices of v1 have a `weight` too.
#
# **Hint.** In v1 each of the three is the matrix itself, a bare parameter.

# %%
def match_weights(v1, v2):
    with torch.no_grad():
        v1.W_query.weight.copy_(v2.W_query.weight.T)
        v1.W_key.weight.copy_(v2.W_key.weight.T)
        v1.W_value.weight.copy_(v2.W_value.weight.T)

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
# **Misconception.** Every tensor kept in a module is learned.
#
# **Hint.** The matrices of v1 are parameters, and they have to be parameters afterwards.

# %%
def match_weights(v1, v2):
    for name in ("W_query", "W_key", "W_value"):
        delattr(v1, name)
        setattr(v1, name, getattr(v2, name).weight.detach().T.clone())

# %% [markdown]
# ## wrong: second_frozen
#
# **Misconception.** Freezing v2 leaves it as it is.
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
# ## wrong: second_in_eval
#
# **Misconception.** Before its weights are read, a model has to be put into `eval()`.
#
# **Hint.** That is a switch of v2, and it stays switched. Reading weights needs no mode.

# %%
def match_weights(v1, v2):
    v2.eval()
    with torch.no_grad():
        v1.W_query.copy_(v2.W_query.weight.T)
        v1.W_key.copy_(v2.W_key.weight.T)
        v1.W_value.copy_(v2.W_value.weight.T)
