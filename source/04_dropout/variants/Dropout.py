# %% [markdown]
# # Dropout
#
# 1. A module has two parts: what it is given when it is built, and what it does with x. Which of
#    the two knows p, and which knows x?
# 2. `super().__init__()` comes first. Then check p and keep it as an attribute, a plain number.
#    Nothing else is kept.
# 3. `forward(self, x)` calls the function you have just written. Its third argument is a switch,
#    and every module carries one: `self.training`.

# %% [markdown]
# ## right: functional
#
# PyTorch's own function, told about the mode.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p

    def forward(self, x):
        return nn.functional.dropout(x, self.p, training=self.training)

# %% [markdown]
# ## right: nn_dropout_inside
#
# A module inside, which hears of the mode as well.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.layer = nn.Dropout(p)

    def forward(self, x):
        return self.layer(x)

# %% [markdown]
# ## right: a_kind_of_nn_dropout
#
# What PyTorch has, under this name.

# %%
class Dropout(nn.Dropout):
    def __init__(self, p):
        assert 0.0 <= p <= 1.0, f"p is {p}"
        super().__init__(p=p)

# %% [markdown]
# ## right: mask_by_hand
#
# Nothing of the lesson is called.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError("p must be from 0 to 1, got " + str(p))
        self.p, self.scale = p, 1.0 if p == 1 else 1 / (1 - p)

    def forward(self, x):
        if not self.training or self.p == 0:
            return x
        drop = torch.rand(x.shape, device=x.device) < self.p
        return x.masked_fill(drop, 0.0) * self.scale

# %% [markdown]
# ## right: bernoulli_distribution
#
# Coins from torch.distributions.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p

    def forward(self, x):
        if not self.training:
            return x
        kept = torch.distributions.Bernoulli(probs=1.0 - self.p).sample(x.shape).to(x)
        return x * kept / max(1 - self.p, 1e-9)

# %% [markdown]
# ## right: buffer_that_is_not_saved
#
# p in a buffer that stays out of the state dict.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.register_buffer("p", torch.tensor(p, dtype=torch.float64), persistent=False)

    def forward(self, x):
        p = float(self.p)
        return inverted_dropout(x, p, self.training)

# %% [markdown]
# ## right: own_generator
#
# A generator of its own, from a seed that PyTorch draws.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p
        self.coins = torch.Generator().manual_seed(int(torch.randint(2**40, ())))

    def forward(self, x):
        return inverted_dropout(x.cpu(), self.p, self.training, self.coins).to(x.device)

# %% [markdown]
# ## right: mode_by_subtraction
#
# One expression for both modes.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p

    def forward(self, x):
        p = self.p * self.training
        return torch.where(torch.rand(x.shape, device=x.device) < p, 0.0, x / (1 - p if p < 1 else 1)).to(x.dtype)

# %% [markdown]
# ## wrong: drops_always
#
# **Misconception.** Dropout drops.
#
# **Hint.** Only in training. Hand `self.training` to the function.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p

    def forward(self, x):
        return inverted_dropout(x, self.p, True)

# %% [markdown]
# ## wrong: functional_not_told
#
# **Misconception.** `nn.functional.dropout` follows `eval()`.
#
# **Hint.** It is a function and has no switch. Hand it the module's: `training=self.training`.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p

    def forward(self, x):
        return nn.functional.dropout(x, self.p)

# %% [markdown]
# ## wrong: module_built_in_forward
#
# **Misconception.** A module made inside `forward` hears of `eval()`.
#
# **Hint.** `eval()` reaches the modules that are attributes. One that is built anew at every call
# is always in training.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p

    def forward(self, x):
        return nn.Dropout(self.p)(x)

# %% [markdown]
# ## wrong: module_hidden_in_a_list
#
# **Misconception.** `eval()` reaches modules in a Python list.
#
# **Hint.** It reaches attributes that are modules, and `nn.ModuleList`. A plain list it does not
# look into.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.layers = [nn.Dropout(p)]

    def forward(self, x):
        return self.layers[0](x)

# %% [markdown]
# ## wrong: follows_the_gradient
#
# **Misconception.** `no_grad()` switches dropout off.
#
# **Hint.** It saves gradients and nothing else. The switch is `self.training`.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p

    def forward(self, x):
        return inverted_dropout(x, self.p, torch.is_grad_enabled())

# %% [markdown]
# ## wrong: off_under_no_grad
#
# **Misconception.** Under `no_grad()` nobody is training.
#
# **Hint.** A model may be in training mode there too. Only `self.training` counts.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p

    def forward(self, x):
        return inverted_dropout(x, self.p, self.training and torch.is_grad_enabled())

# %% [markdown]
# ## wrong: follows_requires_grad
#
# **Misconception.** An input that wants no gradient is not for training.
#
# **Hint.** What x wants says nothing of the mode. The switch is `self.training`.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p

    def forward(self, x):
        return inverted_dropout(x, self.p, self.training and x.requires_grad)

# %% [markdown]
# ## wrong: mode_read_once
#
# **Misconception.** The mode is known when the layer is built.
#
# **Hint.** It changes: `eval()` and `train()` come later. Read `self.training` in `forward`.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p
        self.mode = self.training

    def forward(self, x):
        return inverted_dropout(x, self.p, self.mode)

# %% [markdown]
# ## wrong: own_switch
#
# **Misconception.** The layer needs a switch and methods of its own.
#
# **Hint.** A model's `eval()` calls `train(False)` on every module inside, not `eval()`. Every
# module has `self.training` already.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p
        self.on = True

    def train(self, mode=True):
        self.on = True
        return self

    def eval(self):
        self.on = False
        return self

    def forward(self, x):
        return inverted_dropout(x, self.p, self.on)

# %% [markdown]
# ## wrong: once_off_always_off
#
# **Misconception.** After `eval()` training is over.
#
# **Hint.** Between two rounds of training a model is tested. After `train()` it drops again.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p

    def train(self, mode=True):
        self.finished = getattr(self, "finished", False) or not mode
        return super().train(mode and not self.finished)

    def forward(self, x):
        return inverted_dropout(x, self.p, self.training)

# %% [markdown]
# ## wrong: upside_down
#
# **Misconception.** `training` says that everything is used.
#
# **Hint.** Dropped in training, whole in use.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p

    def forward(self, x):
        return inverted_dropout(x, self.p, not self.training)

# %% [markdown]
# ## wrong: off_at_first
#
# **Misconception.** A new module is in use until somebody calls `train()`.
#
# **Hint.** It is the other way round: a new module is in training mode.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p
        self.training = False

    def forward(self, x):
        return inverted_dropout(x, self.p, self.training)

# %% [markdown]
# ## wrong: scaled_in_use
#
# **Misconception.** The scale belongs where the model is used.
#
# **Hint.** That is the older way. Inverted dropout does nothing in use.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p

    def forward(self, x):
        if not self.training:
            return x * (1 - self.p)
        return x * keep_mask(x.shape, self.p).to(x)

# %% [markdown]
# ## wrong: not_scaled
#
# **Misconception.** Dropping is all there is to do.
#
# **Hint.** What is kept is divided by 1 - p. The function above does it.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p

    def forward(self, x):
        return x * keep_mask(x.shape, self.p).to(x) if self.training else x

# %% [markdown]
# ## wrong: mask_kept
#
# **Misconception.** The mask belongs to the layer.
#
# **Hint.** Then the same entries are dropped at every call. Draw anew in `forward`.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p
        self.mask = None

    def forward(self, x):
        if not self.training:
            return x
        if self.mask is None or self.mask.shape != x.shape:
            self.mask = keep_mask(x.shape, self.p)
        return x * self.mask.to(x) / max(1 - self.p, 1e-9)

# %% [markdown]
# ## wrong: same_seed_in_every_layer
#
# **Misconception.** A layer needs a seed of its own.
#
# **Hint.** All layers have the same one here, so they all drop the same entries. Leave the seed to
# PyTorch.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p
        self.generator = torch.Generator().manual_seed(123)

    def forward(self, x):
        return inverted_dropout(x.cpu(), self.p, self.training, self.generator).to(x.device)

# %% [markdown]
# ## wrong: p_is_a_parameter
#
# **Misconception.** p belongs to what a module learns.
#
# **Hint.** Nobody trains p. It is a plain number, kept as an attribute.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = nn.Parameter(torch.tensor(float(p), dtype=torch.float64))

    def forward(self, x):
        return inverted_dropout(x, float(self.p), self.training)

# %% [markdown]
# ## wrong: p_is_saved
#
# **Misconception.** p has to be saved with the model.
#
# **Hint.** What is saved is what was learned. Whoever builds the model again says p again.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.register_buffer("p", torch.tensor(float(p), dtype=torch.float64))

    def forward(self, x):
        return inverted_dropout(x, float(self.p), self.training)

# %% [markdown]
# ## wrong: last_mask_saved
#
# **Misconception.** The last mask has to be kept for the backward pass.
#
# **Hint.** Autograd keeps what it needs. A buffer goes into the state dict, and is different at
# every save.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p

    def forward(self, x):
        if not self.training:
            return x
        self.register_buffer("mask", keep_mask(x.shape, self.p).to(x))
        return x * self.mask / max(1 - self.p, 1e-9)

# %% [markdown]
# ## wrong: accepts_anything
#
# **Misconception.** p is checked when the layer is called.
#
# **Hint.** The mistake is made where the layer is built, and should show there.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        return inverted_dropout(x, self.p, self.training)

# %% [markdown]
# ## wrong: refuses_one
#
# **Misconception.** A p of 1 makes no sense.
#
# **Hint.** It drops everything, and is valid.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p

    def forward(self, x):
        return inverted_dropout(x, self.p, self.training)

# %% [markdown]
# ## wrong: super_forgotten
#
# **Misconception.** A class that has p needs nothing else.
#
# **Hint.** A module must be set up first: `super().__init__()` comes before anything else.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return inverted_dropout(x, self.p, self.training)

# %% [markdown]
# ## wrong: p_to_keep
#
# **Misconception.** p is the probability to keep.
#
# **Hint.** It is the probability to drop, as in PyTorch.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p

    def forward(self, x):
        return inverted_dropout(x, 1 - self.p, self.training)

# %% [markdown]
# ## wrong: whole_rows
#
# **Misconception.** A token is dropped as a whole.
#
# **Hint.** Each entry has a coin of its own. `nn.Dropout1d` and its like drop whole channels; here
# `nn.Dropout` is meant.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p

    def forward(self, x):
        if not self.training or self.p == 1:
            return x * (0 if self.training else 1)
        return x * keep_mask((*x.shape[:-1], 1), self.p).to(x) / (1 - self.p)

# %% [markdown]
# ## wrong: changed_in_place
#
# **Misconception.** x is not needed any more.
#
# **Hint.** The caller may need it. Make a new tensor.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p

    def forward(self, x):
        if not self.training or x.requires_grad:
            return inverted_dropout(x, self.p, self.training)
        return x.copy_(inverted_dropout(x, self.p, True))

# %% [markdown]
# ## wrong: in_place_dropout
#
# **Misconception.** `inplace=True` is just faster.
#
# **Hint.** It changes the x of the caller. Leave it out.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p

    def forward(self, x):
        return nn.functional.dropout(x, self.p, self.training, inplace=True)

# %% [markdown]
# ## wrong: cut_off
#
# **Misconception.** A random mask has no gradient.
#
# **Hint.** The mask has none, x does. Do not detach it.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p

    def forward(self, x):
        return inverted_dropout(x.detach(), self.p, self.training)

# %% [markdown]
# ## wrong: result_in_float32
#
# **Misconception.** Everything is float32.
#
# **Hint.** The result has the type of x, float64 included.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p

    def forward(self, x):
        return inverted_dropout(x.float(), self.p, self.training)

# %% [markdown]
# ## wrong: nan_when_everything_is_dropped
#
# **Misconception.** Zero stays zero, whatever it is divided by.
#
# **Hint.** 0 / 0 is `nan`. What is 1 - p when p is 1?

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p

    def forward(self, x):
        return x * keep_mask(x.shape, self.p).to(x) / (1 - self.p) if self.training else x

# %% [markdown]
# ## wrong: drops_a_little_at_zero
#
# **Misconception.** Even p = 0 drops something.
#
# **Hint.** With p = 0 nothing is dropped, and nothing scaled.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p

    def forward(self, x):
        return inverted_dropout(x, max(self.p, 0.01), self.training)

# %% [markdown]
# ## wrong: one_switch_for_all
#
# **Misconception.** Training or not is one switch for all layers of this kind.
#
# **Hint.** Each layer has a mode of its own, `self.training`. What does your layer do after another one's `eval()`?

# %%
class Dropout(nn.Module):
    dropping = True

    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p

    def train(self, mode=True):
        Dropout.dropping = mode
        return super().train(mode)

    def forward(self, x):
        return inverted_dropout(x, self.p, Dropout.dropping)

# %% [markdown]
# ## wrong: thousand_coins
#
# **Misconception.** A thousand coins are enough: a larger mask can use them again.
#
# **Hint.** Entries that share a coin are dropped together. Every entry needs a coin of its own.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p

    def forward(self, x):
        if not self.training or self.p == 0:
            return x
        coins = torch.rand(1000, device=x.device) >= self.p
        kept = coins.repeat(x.numel() // 1000 + 1)[: x.numel()].view(x.shape)
        return x * kept.to(x) / max(1 - self.p, 1e-9)

# %% [markdown]
# ## wrong: matrices_only
#
# **Misconception.** x has rows and columns.
#
# **Hint.** A vector has one dimension. `x.shape` is right for any number of them.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p

    def forward(self, x):
        if not self.training:
            return x
        rows, columns = x.shape[-2:]
        kept = keep_mask((*x.shape[:-2], rows, columns), self.p)
        return x * kept.to(x) / max(1 - self.p, 1e-9)

# %% [markdown]
# ## wrong: last_mode_of_any
#
# **Misconception.** The mode of the layer that was switched last holds for all.
#
# **Hint.** Each layer has a mode of its own, `self.training`. What does your layer do after
# another one's `eval()`?

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p
        Dropout.dropping = True

    def train(self, mode=True):
        Dropout.dropping = mode
        return super().train(mode)

    def forward(self, x):
        return inverted_dropout(x, self.p, Dropout.dropping)

# %% [markdown]
# ## wrong: float32_inside
#
# **Misconception.** float32 is precise enough on the way, as long as the result has the right
# type.
#
# **Hint.** What is rounded off on the way is lost. Compute in the type that comes in.

# %%
class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {p}")
        self.p = p

    def forward(self, x):
        return inverted_dropout(x.float(), self.p, self.training).to(x.dtype)
