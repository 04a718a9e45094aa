# %% [markdown]
# # peeks
#
# 1. Two runs of the module differ only in the tokens after t. Which outputs may differ, and
#    which may not?
# 2. For each t: clone x, put `torch.randn_like` of the right part there, run the module again,
#    and compare the outputs up to t with those before. The limit is 0.0001 times the largest
#    absolute output.
# 3. Before the runs note `part.training` for every part of `module.modules()`, then call
#    `module.eval()`. At the end set each `part.training` back by itself: `module.train()` would
#    set all of them.

# %% [markdown]
# ## right: cut_and_joined
#
# The past joined to a new future, and the mode put back whatever happens.

# %%
def peeks(module, x):
    b, n, d = x.shape
    modes = [part.training for part in module.modules()]
    try:
        module.train(False)
        with torch.no_grad():
            y = module(x.clone())
            for t in range(n - 1):
                future = torch.randn(b, n - t - 1, d, dtype=x.dtype, device=x.device)
                other = module(torch.cat([x[:, : t + 1], future], dim=1))
                if (other[:, t] - y[:, t]).abs().max() > 1e-4 * y.abs().max():
                    return True
        return False
    finally:
        for part, mode in zip(module.modules(), modes):
            part.training = mode

# %% [markdown]
# ## right: on_a_copy
#
# A deep copy of the module is judged, with three times as large a change.

# %%
import copy


def peeks(module, x):
    judged = copy.deepcopy(module).eval()
    n = x.shape[1]
    with torch.no_grad():
        y = judged(x.clone()).clone()
        scale = y.abs().max().item()
        for s in range(1, n):
            other = x.clone()
            other[:, s:] += 3 * torch.randn_like(other[:, s:])
            moved = (judged(other) - y)[:, :s].abs().max().item()
            if moved > 1e-4 * scale:
                return True
    return False

# %% [markdown]
# ## right: largest_of_all
#
# The largest change over every t and two draws, compared at the end.

# %%
@torch.no_grad()
def peeks(module, x):
    training = [part for part in module.modules() if part.training]
    module.eval()
    y = module(x.clone())
    largest = torch.zeros((), dtype=y.dtype, device=y.device)
    for t in range(x.shape[1]):
        for _ in range(2):
            noisy = torch.cat((x[:, : t + 1], torch.randn_like(x[:, t + 1 :])), 1)
            largest = torch.maximum(largest, (module(noisy) - y)[:, t].abs().amax())
    for part in training:
        part.training = True
    return (largest > 1e-4 * y.abs().max()).item()

# %% [markdown]
# ## right: mean_size
#
# The outputs' size as the root of their mean square.

# %%
def peeks(module, x):
    def run(tokens):
        with torch.no_grad():
            return module(tokens.clone()).double()

    modes = {name: part.training for name, part in module.named_modules()}
    module.eval()
    y = run(x)
    size = y.square().mean().sqrt()
    answers = []
    for t in range(x.size(1) - 1):
        keep = torch.arange(x.size(1), device=x.device) <= t
        z = torch.where(keep[None, :, None], x, torch.randn_like(x))
        answers.append(bool(((run(z) - y)[:, keep].abs() > 1e-4 * size).any()))
    for name, part in module.named_modules():
        part.training = modes[name]
    return any(answers)

# %% [markdown]
# ## right: all_at_once
#
# Every t in one large batch would mix the sentences, so it is a list of batches.

# %%
def peeks(module, x):
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        noise = torch.randn_like(x)
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).tril()
        with torch.no_grad():
            y = module(x.clone())
            outputs = [module(torch.where(row[:, None], x, noise)) for row in mask]
        apart = torch.stack([(out - y)[:, t].abs().max() for t, out in enumerate(outputs)])
        return bool(apart.max() > 1e-4 * y.abs().max())
    finally:
        for part, training in modes:
            part.training = training

# %% [markdown]
# ## right: numpy_comparison
#
# The comparison in NumPy.

# %%
import numpy as np


def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    for part in modes:
        part.training = False
    y = module(x.clone()).detach().cpu().numpy()
    result = False
    for t in range(y.shape[1] - 1):
        z = x.detach().clone()
        z[:, t + 1 :].normal_()
        out = module(z).detach().cpu().numpy()
        result |= bool(np.abs(out[:, : t + 1] - y[:, : t + 1]).max() > 1e-4 * np.abs(y).max())
    for part, training in modes.items():
        part.training = training
    return result

# %% [markdown]
# ## wrong: the_middle_only
#
# **Misconception.** One place in the middle stands for all.
#
# **Hint.** A layer may look from token 0 to token 1 and nowhere else. Does your t come near it?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in [x.shape[1] // 2 - 1] * (x.shape[1] > 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: the_last_token_only
#
# **Misconception.** It is enough to change the last token.
#
# **Hint.** A layer may look exactly one token ahead. Which t does a change of the last token
# test?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 2, x.shape[1] - 1):
            if t < 0:
                break
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: the_next_token_only
#
# **Misconception.** What looks ahead looks at the next token.
#
# **Hint.** A layer may skip the next token and look at the one after it. Is that one changed?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1] = torch.randn_like(changed[:, t + 1])
            moved = (module(changed) - before)[:, t].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: the_first_output_only
#
# **Misconception.** If the first output sees nothing, none does.
#
# **Hint.** Test a layer in which token 3 looks at token 4.

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(min(1, x.shape[1] - 1)):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: one_sentence_for_all
#
# **Misconception.** What holds for one sentence holds for the batch.
#
# **Hint.** A layer may treat one sentence in its own way, or mix two. Which of them did you look
# at?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:1, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: sentences_one_by_one
#
# **Misconception.** The sentences can be tested one after the other.
#
# **Hint.** If a layer looks ahead into another sentence of the batch, is that other sentence
# there when you test?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = torch.cat([module(row[None]) for row in x])
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (torch.cat([module(row[None]) for row in changed]) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: changed_in_the_first_sentence
#
# **Misconception.** To change one sentence of the batch is enough.
#
# **Hint.** An output of one sentence may depend on the future of another. Which futures did you
# change?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[0, t + 1 :] = torch.randn_like(changed[0, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: any_output_counts
#
# **Misconception.** An output that moves when tokens change gives the layer away.
#
# **Hint.** The outputs after t may move, and so they should. Which ones may not?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before).abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: past_changed
#
# **Misconception.** What must not change is what comes after.
#
# **Hint.** Which tokens does your test change: those before t, or those after it?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, : t + 1] = torch.randn_like(changed[:, : t + 1])
            moved = (module(changed) - before)[:, t + 1 :].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: future_of_zeros
#
# **Misconception.** To take the future away is to set it to zero.
#
# **Hint.** What changes when the future of x is zero already?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = 0
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: future_cut_off
#
# **Misconception.** To take the future away is to cut it off.
#
# **Hint.** A layer may be made for one length, or use the length. What is asked is whether a
# change of later tokens matters.

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            moved = (module(x[:, : t + 1]) - before[:, : t + 1]).abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: future_shuffled
#
# **Misconception.** The same tokens in another order are another future.
#
# **Hint.** A layer may use the mean of all tokens. Does it notice another order?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = changed[:, t + 1 :].flip(1).roll(1, dims=1)
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: future_shifted
#
# **Misconception.** Any change will do, such as adding 1.
#
# **Hint.** A layer may subtract from each token its mean before it does anything else. Does it
# notice that you added 1?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = changed[:, t + 1 :] + (changed[:, t + 1 :] == 0) * torch.randn_like(changed[:, t + 1 :]) + 1
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: future_scaled
#
# **Misconception.** Any change will do, such as doubling.
#
# **Hint.** A layer may divide each token by its length before it does anything else, and a zero
# doubled is a zero.

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = 2 * changed[:, t + 1 :]
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: future_of_the_first_token
#
# **Misconception.** Any other token will do as a future, for example the first one.
#
# **Hint.** What if all tokens of x are alike?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = x[:, :1]
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: batch_rolled
#
# **Misconception.** The future of another sentence is another future.
#
# **Hint.** A layer may take the mean over the batch. Does it notice that sentences have changed
# places?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = x.roll(1, dims=0)[:, t + 1 :]
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: one_feature_changed
#
# **Misconception.** To change one number of a token is to change the token.
#
# **Hint.** A layer may look at the last number of each token alone. Is that the one you change?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :, 0] = torch.randn_like(changed[:, t + 1 :, 0])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: eval_for_the_root_only
#
# **Misconception.** `training` is a flag of the module.
#
# **Hint.** Each submodule has a flag of its own. Which call sets them all?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.training = False
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: sign_changed
#
# **Misconception.** Any change will do, such as another sign.
#
# **Hint.** A layer may take absolute values first, and a zero has no sign.

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = -changed[:, t + 1 :]
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: a_tiny_change
#
# **Misconception.** The smaller the change, the finer the test.
#
# **Hint.** With a change of a thousandth, how much does an output move that takes a twentieth of
# it?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = changed[:, t + 1 :] + 1e-3 * torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: by_gradients
#
# **Misconception.** What an output depends on has a gradient.
#
# **Hint.** A layer may cut its gradients off with `detach()` or `no_grad()` and look ahead all
# the same.

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    found = False
    for t in range(x.shape[1] - 1):
        leaf = x.detach().clone().requires_grad_()
        out = module(leaf.clone())
        if out.requires_grad:
            loss = (out[:, t] * torch.randn_like(out[:, t])).sum()
            (gradient,) = torch.autograd.grad(loss, leaf, allow_unused=True)
            if gradient is not None:
                found = found or bool(gradient[:, t + 1 :].abs().max() > 1e-4 * out.abs().max())
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: absolute_limit
#
# **Misconception.** 0.0001 is small for every layer.
#
# **Hint.** What if the outputs are around a million, or around a millionth?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: no_limit
#
# **Misconception.** What changes at all, changes.
#
# **Hint.** A weight of 0.0000001 on a later token: is that a peek or rounding? The contract names
# a limit.

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 0.0
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: judged_as_it_is
#
# **Misconception.** The layer is judged in the mode it is in.
#
# **Hint.** Dropout changes the outputs of two equal calls. In which mode should the layer be?

# %%
def peeks(module, x):
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    return found

# %% [markdown]
# ## wrong: judged_in_training
#
# **Misconception.** A layer that looks ahead does so in training.
#
# **Hint.** The contract says as in `eval()`.

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.train()
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: left_in_eval
#
# **Misconception.** A test may leave the layer in `eval()`.
#
# **Hint.** In which mode is the layer when your function is done? Somebody was training it.

# %%
def peeks(module, x):
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    return found

# %% [markdown]
# ## wrong: always_back_to_training
#
# **Misconception.** After `eval()` comes `train()`.
#
# **Hint.** What if the layer was in `eval()` before?

# %%
def peeks(module, x):
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    module.train()
    return found

# %% [markdown]
# ## wrong: one_mode_for_all
#
# **Misconception.** A module and its parts are in one mode.
#
# **Hint.** `module.train(mode)` sets every part. What if only some of them were in training?

# %%
def peeks(module, x):
    training = module.training
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    module.train(training)
    return found

# %% [markdown]
# ## wrong: children_only
#
# **Misconception.** The parts of a module are its children.
#
# **Hint.** `children()` does not go deeper than one level. And which mode is the module itself
# in?

# %%
def peeks(module, x):
    modes = {part: part.training for part in [module, *module.children()]}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: x_is_overwritten
#
# **Misconception.** x can be changed, it is only read once.
#
# **Hint.** Compare x before and after.

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone()).clone()
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: a_tensor_is_returned
#
# **Misconception.** A tensor that is true is as good as True.
#
# **Hint.** What type is the result of comparing two tensors?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = torch.tensor(False)
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found | (moved > limit).cpu()
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: none_when_clean
#
# **Misconception.** Only a peek needs an answer.
#
# **Hint.** What does your function return when no output has moved?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    if found:
        return True

# %% [markdown]
# ## wrong: one_token_is_too_few
#
# **Misconception.** There are always at least two tokens.
#
# **Hint.** What does your function do with a sentence of one token? There is no future to change.

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        answers = []
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            answers.append(moved)
    for part, training in modes.items():
        part.training = training
    return bool(torch.stack(answers).max() > limit)

# %% [markdown]
# ## wrong: float32_inside
#
# **Misconception.** Everything is float32.
#
# **Hint.** What happens with a float64 module and a float64 x?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            changed = changed.float()
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: the_first_eight
#
# **Misconception.** If the first tokens do not look ahead, none does.
#
# **Hint.** Try every t, also in a long sentence.

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(min(8, x.shape[1] - 1)):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: a_generous_limit
#
# **Misconception.** A change of less than a hundredth is rounding.
#
# **Hint.** The contract says 1e-4 of the size of the outputs. Rounding is about 1e-7.

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-2 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: back_if_clean
#
# **Misconception.** When a look ahead is found, the answer can be returned at once.
#
# **Hint.** Yes, but what mode is the module in then? Restore the modes on every way out.

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            if moved > limit:
                return True
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: back_by_train
#
# **Misconception.** `part.train(mode)` sets the mode of one part.
#
# **Hint.** It sets the modes of everything inside as well. A part that stands in two places takes the mode of the last one.

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.train(training)
    return found

# %% [markdown]
# ## wrong: remembered
#
# **Misconception.** A module that has been looked at needs no second look.
#
# **Hint.** Its weights may have changed since.

# %%
looked_at = {}


def peeks(module, x):
    if module in looked_at:
        return looked_at[module]
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    looked_at[module] = found
    return found

# %% [markdown]
# ## wrong: limit_reached
#
# **Misconception.** A change that reaches the limit counts.
#
# **Hint.** What is the limit for a module that gives nothing but zeros? Does an output move there?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved >= limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: overwritten_from_the_end
#
# **Misconception.** Whoever goes from the last token to the first may write into x: what stands before is still whole.
#
# **Hint.** Your answers are right, but what is left of x? Compare it before and after.

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in reversed(range(x.shape[1] - 1)):
            x[:, t + 1 :] = torch.randn_like(x[:, t + 1 :])
            changed = x.clone()
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: module_given_x_itself
#
# **Misconception.** A module only reads what it is given.
#
# **Hint.** Try a module that begins with `nn.ReLU(inplace=True)`. What is x after the first call?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x)
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: noise_for_whole_tokens
#
# **Misconception.** One random number for each later token is enough.
#
# **Hint.** A layer may look at the difference between two features of a token. Does your change move that difference?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :, :1])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: later_tokens_one_by_one
#
# **Misconception.** What depends on later tokens depends on one of them alone.
#
# **Hint.** An output may hold the product of two later tokens. What is that when both are zero and only one is changed?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for s in range(1, x.shape[1]):
            changed = x.clone()
            changed[:, s] = torch.randn_like(changed[:, s])
            moved = (module(changed) - before)[:, :s].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: always_the_same_noise
#
# **Misconception.** A seed makes a test the same each time, and does no harm.
#
# **Hint.** `torch.manual_seed(123)` and then `torch.randn` gives the same numbers each time. What if x was made like that as well?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            torch.manual_seed(123)
            changed[:, t + 1 :] = torch.randn(x.shape, dtype=x.dtype).to(x.device)[:, t + 1 :]
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: mean_change
#
# **Misconception.** If outputs change, their mean changes.
#
# **Hint.** A plus and a minus cancel in a mean. Which number cannot hide a change?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].mean().abs()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: one_noise_for_all_sentences
#
# **Misconception.** Every sentence may get the same new future.
#
# **Hint.** Take two copies of one sentence and a layer that looks at their difference. Does your change move it?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:1, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: every_other_token
#
# **Misconception.** Every other t is enough: neighbours are alike.
#
# **Hint.** A layer may look from token 1 to token 2 and nowhere else. Which t finds that?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(0, x.shape[1] - 1, 2):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: mean_size_of_changes
#
# **Misconception.** The mean change says whether anything changes.
#
# **Hint.** One output of forty may move, and the others not. What does the mean say then?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().mean()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: first_numbers_only
#
# **Misconception.** The first number of each output stands for all.
#
# **Hint.** Look at every number of an output: one alone may look ahead.

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1, 0].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: two_tokens_changed
#
# **Misconception.** The next two tokens are future enough.
#
# **Hint.** An output may hold a product of token 1 and the last one. When are both of them changed?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 : t + 3] = torch.randn_like(changed[:, t + 1 : t + 3])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found

# %% [markdown]
# ## wrong: dropout_made_harmless
#
# **Misconception.** Dropout with p = 0 does nothing, so p is set to 0.
#
# **Hint.** The module is somebody else's. What is its p afterwards?

# %%
def peeks(module, x):
    modes = {part: part.training for part in module.modules()}
    module.eval()
    for part in modes:
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    with torch.no_grad():
        before = module(x.clone())
        limit = 1e-4 * before.abs().max()
        found = False
        for t in range(x.shape[1] - 1):
            changed = x.clone()
            changed[:, t + 1 :] = torch.randn_like(changed[:, t + 1 :])
            moved = (module(changed) - before)[:, : t + 1].abs().max()
            found = found or bool(moved > limit)
    for part, training in modes.items():
        part.training = training
    return found
