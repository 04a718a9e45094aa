# %% [markdown]
# # count_parameters
#
# 1. `module.parameters()` goes through every parameter of the module and of all modules in it.
# 2. Each parameter is a tensor: `.numel()` says how many numbers it holds, `.requires_grad`
#    whether it is learned.
# 3. Add up `numel()` over the parameters that are learned. `parameters()` gives a shared one
#    only once, and no buffers.

# %% [markdown]
# ## right: loop
#
# A plain loop.

# %%
def count_parameters(module):
    total = 0
    for parameter in module.parameters():
        if parameter.requires_grad:
            total += parameter.nelement()
    return total

# %% [markdown]
# ## right: product_of_the_shape
#
# The sizes multiplied.

# %%
def count_parameters(module):
    return sum(math.prod(p.shape) for p in module.parameters() if p.requires_grad)

# %% [markdown]
# ## right: by_identity
#
# The parameters of every submodule, each kept once.

# %%
def count_parameters(module):
    learned = {}
    for part in module.modules():
        for p in part.parameters(recurse=False):
            if p.requires_grad:
                learned[id(p)] = p
    return sum(p.numel() for p in learned.values())

# %% [markdown]
# ## right: recursive
#
# A module counts its own parameters and asks its children, with a memory.

# %%
def count_parameters(module, seen=None):
    seen = set() if seen is None else seen
    count = 0
    for p in module._parameters.values():
        if p is not None and p.requires_grad and p not in seen:
            seen.add(p)
            count += p.numel()
    return count + sum(count_parameters(child, seen) for child in module.children())

# %% [markdown]
# ## right: one_long_vector
#
# All learned numbers in one tensor; its length.

# %%
def count_parameters(module):
    learned = [p.detach().flatten() for name, p in module.named_parameters() if p.requires_grad]
    return len(torch.cat(learned)) if learned else 0

# %% [markdown]
# ## right: filter_and_map
#
# In the functional style.

# %%
def count_parameters(module: nn.Module) -> int:
    return int(sum(map(torch.numel, filter(lambda p: p.requires_grad, set(module.parameters())))))

# %% [markdown]
# ## wrong: everything_saved
#
# **Misconception.** What is saved is what is learned.
#
# **Hint.** Which things stand in `state_dict()` that no optimiser is given?

# %%
def count_parameters(module):
    learned = {id(p) for p in module.parameters() if not p.requires_grad}
    tensors = {}
    for name, tensor in module.state_dict(keep_vars=True).items():
        if id(tensor) not in learned:
            tensors[id(tensor)] = tensor
    return sum(tensor.numel() for tensor in tensors.values())

# %% [markdown]
# ## wrong: buffers_too
#
# **Misconception.** Parameters and buffers are both part of the model, so both count.
#
# **Hint.** Does training change a buffer?

# %%
def count_parameters(module):
    learned = sum(p.numel() for p in module.parameters() if p.requires_grad)
    return learned + sum(buffer.numel() for buffer in module.buffers())

# %% [markdown]
# ## wrong: frozen_too
#
# **Misconception.** A parameter counts whether it is learned or not.
#
# **Hint.** What does `requires_grad` say about a parameter?

# %%
def count_parameters(module):
    return sum(p.numel() for p in module.parameters())

# %% [markdown]
# ## wrong: frozen_if_the_first_is
#
# **Misconception.** A module is frozen as a whole or not at all.
#
# **Hint.** One layer of a module may be frozen, and the next one not.

# %%
def count_parameters(module):
    parameters = list(module.parameters())
    if not parameters or not parameters[0].requires_grad:
        return 0
    return sum(p.numel() for p in parameters)

# %% [markdown]
# ## wrong: once_for_each_place
#
# **Misconception.** A parameter counts wherever it stands.
#
# **Hint.** Count a module whose two layers hold the same weight. How many numbers does it learn?

# %%
def count_parameters(module):
    parameters = module.named_parameters(remove_duplicate=False)
    return sum(p.numel() for _, p in parameters if p.requires_grad)

# %% [markdown]
# ## wrong: children_added
#
# **Misconception.** The count of a module is that of all modules in it, added up.
#
# **Hint.** `parameters()` goes into the children already. Which numbers are counted twice?

# %%
def count_parameters(module):
    return sum(
        p.numel() for part in module.modules() for p in part.parameters() if p.requires_grad
    )

# %% [markdown]
# ## wrong: own_only
#
# **Misconception.** A module holds its parameters itself.
#
# **Hint.** Where do the parameters of `nn.Sequential(nn.Linear(2, 3))` stand?

# %%
def count_parameters(module):
    parts = [module, *module.children()]
    own = {p for part in parts for p in part.parameters(recurse=False)}
    return sum(p.numel() for p in own if p.requires_grad)

# %% [markdown]
# ## wrong: tensors_counted
#
# **Misconception.** The number of parameters is the length of `parameters()`.
#
# **Hint.** How many numbers does one weight of shape (3, 4) hold?

# %%
def count_parameters(module):
    return len([p for p in module.parameters() if p.requires_grad])

# %% [markdown]
# ## wrong: matrices_only
#
# **Misconception.** Parameters are the weights; a bias hardly counts.
#
# **Hint.** What does a bias do in training?

# %%
def count_parameters(module):
    return sum(p.numel() for p in module.parameters() if p.requires_grad and p.ndim > 1)

# %% [markdown]
# ## wrong: rows_times_columns
#
# **Misconception.** Every parameter is a matrix or a vector.
#
# **Hint.** What is the count of a parameter with three dimensions, or with none?

# %%
def count_parameters(module):
    def size(p):
        return p.shape[0] * p.shape[1] if p.ndim >= 2 else len(p) if p.ndim else 0

    return sum(size(p) for p in module.parameters() if p.requires_grad)

# %% [markdown]
# ## wrong: linear_layers_only
#
# **Misconception.** What learns are the linear layers.
#
# **Hint.** Which other modules hold parameters? And may a module hold some itself?

# %%
def count_parameters(module):
    linears = {part for part in module.modules() if isinstance(part, nn.Linear)}
    return sum(p.numel() for part in linears for p in set(part.parameters()) if p.requires_grad)

# %% [markdown]
# ## wrong: same_shape_once
#
# **Misconception.** Two parameters of one shape are the same parameter.
#
# **Hint.** Two linear layers of one size learn different numbers. What makes two parameters one?

# %%
def count_parameters(module):
    shapes = {tuple(p.shape) for p in module.parameters() if p.requires_grad}
    return sum(math.prod(shape) for shape in shapes)

# %% [markdown]
# ## wrong: same_numbers_once
#
# **Misconception.** Two parameters with equal numbers are shared.
#
# **Hint.** A copy has the same numbers and goes its own way in training.

# %%
def count_parameters(module):
    found = []
    for p in module.parameters():
        if p.requires_grad and not any(torch.equal(p, q) for q in found):
            found.append(p)
    return sum(p.numel() for p in found)

# %% [markdown]
# ## wrong: a_float
#
# **Misconception.** Any number will do.
#
# **Hint.** The contract says an int. What type is your result?

# %%
def count_parameters(module):
    return float(sum(p.numel() for p in module.parameters() if p.requires_grad))

# %% [markdown]
# ## wrong: remembered
#
# **Misconception.** The number of a module's parameters never changes, so it is counted once.
#
# **Hint.** Freeze one of them after counting, and count again.

# %%
def count_parameters(module, known={}):
    if module not in known:
        known[module] = sum(p.numel() for p in module.parameters() if p.requires_grad)
    return known[module]

# %% [markdown]
# ## wrong: ticked_off
#
# **Misconception.** A parameter that has been counted can be ticked off by freezing it.
#
# **Hint.** Counting must not change the module. What does your function give the second time?

# %%
def count_parameters(module):
    total = 0
    for p in module.parameters():
        if p.requires_grad:
            total += p.numel()
            p.requires_grad_(False)
    return total

# %% [markdown]
# ## wrong: by_address
#
# **Misconception.** Two parameters are shared if they lie at one address in memory.
#
# **Hint.** On the device `meta` nothing has memory, and every address is 0. Compare the parameters themselves.

# %%
def count_parameters(module):
    return sum({p.data_ptr(): p.numel() for p in module.parameters() if p.requires_grad}.values())

# %% [markdown]
# ## wrong: in_training_only
#
# **Misconception.** In `eval()` nothing is trainable.
#
# **Hint.** `eval()` switches dropout and its like. What the optimizer may change is said by `requires_grad`.

# %%
def count_parameters(module):
    return sum(p.numel() for p in module.parameters() if p.requires_grad and module.training)

# %% [markdown]
# ## wrong: one_of_each_name_and_shape
#
# **Misconception.** Two weights of one shape are the same weight.
#
# **Hint.** Two linear layers of one size learn different numbers. What makes two parameters one?

# %%
def count_parameters(module):
    learned = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
    kinds = {(name.split(".")[-1], tuple(p.shape)): p.numel() for name, p in learned}
    return sum(kinds.values())

# %% [markdown]
# ## wrong: frozen_with_its_weight
#
# **Misconception.** A layer is frozen when its weight is.
#
# **Hint.** The bias of a layer may still learn when its weight is frozen. Ask every parameter by itself.

# %%
def count_parameters(module):
    learned = set()
    for part in module.modules():
        weight = getattr(part, "weight", None)
        if weight is None or weight.requires_grad:
            learned |= {p for p in part.parameters(recurse=False) if p.requires_grad}
    return sum(p.numel() for p in learned)

# %% [markdown]
# ## wrong: made_ready_for_training
#
# **Misconception.** Before counting, the module has to be put into training.
#
# **Hint.** Counting must not change the module. In which mode is it afterwards?

# %%
def count_parameters(module):
    module.train()
    return sum(p.numel() for p in module.parameters() if p.requires_grad)
