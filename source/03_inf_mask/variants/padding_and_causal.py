# %% [markdown]
# # padding_and_causal
#
# 1. Two masks are put together: hidden is what one of them hides. For bool tensors that is `|`. The
#    first is your `future_mask`.
# 2. The second says which keys are pads: position j of a sentence is one if j >= its length. Compare
#    `torch.arange(n)` with the lengths; a dimension of size 1 in the right place makes it (b, n).
# 3. A (b, n) mask of keys becomes (b, 1, n), so that every query gets it. Make a tensor of `lengths`
#    with `torch.as_tensor`, and look whether one is below 0 or above n.

# %% [markdown]
# ## right: loop_over_sentences
#
# One matrix for each sentence.

# %%
def padding_and_causal(lengths, n):
    masks = []
    for length in lengths:
        if not 0 <= length <= n:
            raise ValueError(f"a length of {int(length)} is not from 0 to {n}")
        mask = future_mask(n)
        mask[:, int(length) :] = True
        masks.append(mask)
    where = lengths.device if isinstance(lengths, torch.Tensor) else None
    return torch.stack(masks).to(where)

# %% [markdown]
# ## right: last_visible_key
#
# A key is hidden when it is later than the query, or than the last token.

# %%
def padding_and_causal(lengths, n):
    ends = torch.as_tensor(lengths).view(-1, 1, 1)
    assert ((0 <= ends) & (ends <= n)).all(), f"lengths {lengths} are not from 0 to {n}"
    key = torch.arange(n, device=ends.device)
    query = key[:, None]
    return key >= torch.minimum(query + 1, ends)

# %% [markdown]
# ## right: visible_turned_round
#
# What may be seen, by a product, and then the opposite.

# %%
def padding_and_causal(lengths, n):
    lengths = torch.tensor(lengths) if isinstance(lengths, list) else lengths
    if lengths.min() < 0 or lengths.max() > n:
        raise ValueError(f"lengths must lie in 0..{n}: {lengths}")
    real = torch.arange(n, device=lengths.device).expand(len(lengths), n) < lengths.unsqueeze(1)
    past = torch.ones(n, n, device=lengths.device).tril()
    return torch.einsum("ij,bj->bij", past, real.float()) == 0

# %% [markdown]
# ## right: entry_by_entry
#
# Plain Python.

# %%
def padding_and_causal(lengths, n):
    where = lengths.device if torch.is_tensor(lengths) else "cpu"
    lengths = [int(length) for length in lengths]
    for length in lengths:
        if length < 0 or length > n:
            raise ValueError(f"length {length} is outside 0..{n}")
    rows = [[[j > i or j >= length for j in range(n)] for i in range(n)] for length in lengths]
    return torch.tensor(rows, device=where)

# %% [markdown]
# ## right: future_written_over
#
# Columns are set to True in a batch of causal masks.

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    if any(length not in range(n + 1) for length in lengths.tolist()):
        raise ValueError(f"lengths {lengths.tolist()} for n = {n}")
    mask = future_mask(n).to(lengths.device).repeat(lengths.numel(), 1, 1)
    for part, length in zip(mask, lengths.tolist()):
        part[:, length:] = True
    return mask

# %% [markdown]
# ## right: minus_infinities_counted
#
# Two masks of 0 and -inf are added, and the infinities looked up.

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    if torch.any(lengths != lengths.clamp(0, n)):
        raise ValueError(f"lengths must be between 0 and {n}, got {lengths}")
    future = torch.full((n, n), -math.inf, device=lengths.device).triu(1)
    keys = torch.zeros(len(lengths), n, device=lengths.device)
    keys[torch.arange(n, device=lengths.device)[None] >= lengths[:, None]] = -math.inf
    return (future[None] + keys[:, None]).isinf()

# %% [markdown]
# ## right: pad_sequence
#
# Rows of False, padded with True.

# %%
def padding_and_causal(lengths, n):
    where = lengths.device if torch.is_tensor(lengths) else "cpu"
    lengths = list(map(int, lengths))
    if min(lengths) < 0 or max(lengths) > n:
        raise ValueError(f"lengths are {lengths}, n is {n}")
    rows = [torch.zeros(length, dtype=torch.bool) for length in lengths + [n]]
    pads = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=True)[:-1].bool()
    return torch.logical_or(pads.unsqueeze(-2), future_mask(n).unsqueeze(0)).to(where)

# %% [markdown]
# ## wrong: padding_only
#
# **Misconception.** With the pads hidden, the future is hidden too.
#
# **Hint.** Inside the sentence nothing is hidden now. The first word of six sees the other five.

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError(f"lengths must be from 0 to {n}, got {lengths}")
    pads = torch.arange(n, device=lengths.device) >= lengths[:, None]
    return pads[:, None, :].expand(-1, n, n).clone()

# %% [markdown]
# ## wrong: causal_only
#
# **Misconception.** Pads stand behind the sentence, so the causal mask hides them.
#
# **Hint.** From real tokens, yes. The rows of the pads still look at pads, and the contract says in
# every row.

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError(f"lengths must be from 0 to {n}, got {lengths}")
    return future_mask(n).to(lengths.device).repeat(len(lengths), 1, 1)

# %% [markdown]
# ## wrong: both_must_hide
#
# **Misconception.** Two masks are put together with "and".
#
# **Hint.** True means hidden. A key is hidden if one of the two masks hides it, so look for the
# operator that says "or".

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError(f"lengths must be from 0 to {n}, got {lengths}")
    pads = torch.arange(n, device=lengths.device) >= lengths[:, None]
    return future_mask(n).to(lengths.device) & pads[:, None, :]

# %% [markdown]
# ## wrong: added_up
#
# **Misconception.** Masks are put together with "exclusive or".
#
# **Hint.** Where both masks hide, `^` shows the key again. A pad in the future is hidden twice, and
# still hidden.

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError(f"lengths must be from 0 to {n}, got {lengths}")
    pads = torch.arange(n, device=lengths.device) >= lengths[:, None]
    return future_mask(n).to(lengths.device) ^ pads[:, None, :]

# %% [markdown]
# ## wrong: pad_rows_hidden
#
# **Misconception.** The rows of the pads are what has to be hidden.
#
# **Hint.** Hidden is what is looked at: keys, which are columns. A row with everything hidden is
# trouble; the rows of pads are as the others.

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError(f"lengths must be from 0 to {n}, got {lengths}")
    pads = torch.arange(n, device=lengths.device) >= lengths[:, None]
    return future_mask(n).to(lengths.device) | pads[:, None, :] | pads[:, :, None]

# %% [markdown]
# ## wrong: first_pad_visible
#
# **Misconception.** Keys beyond the length are pads, and the key at the length is the last token.
#
# **Hint.** Positions begin at 0. A sentence of length 2 has the keys 0 and 1.

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError(f"lengths must be from 0 to {n}, got {lengths}")
    pads = torch.arange(n, device=lengths.device) > lengths[:, None]
    return future_mask(n).to(lengths.device) | pads[:, None, :]

# %% [markdown]
# ## wrong: last_token_hidden
#
# **Misconception.** Positions begin at 1.
#
# **Hint.** They begin at 0, and a sentence of length 2 has the keys 0 and 1. Is its last token
# visible in your mask?

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError(f"lengths must be from 0 to {n}, got {lengths}")
    pads = torch.arange(1, n + 1, device=lengths.device) >= lengths[:, None]
    return future_mask(n).to(lengths.device) | pads[:, None, :]

# %% [markdown]
# ## wrong: padding_in_front
#
# **Misconception.** The pads stand in front of the sentence.
#
# **Hint.** Here they stand behind it: hidden are the keys at or past the length.

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError(f"lengths must be from 0 to {n}, got {lengths}")
    pads = torch.arange(n, device=lengths.device) < n - lengths[:, None]
    return future_mask(n).to(lengths.device) | pads[:, None, :]

# %% [markdown]
# ## wrong: true_is_visible
#
# **Misconception.** True means: may look.
#
# **Hint.** True means hidden in this lesson. Count the True in the first row of a long sentence.

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError(f"lengths must be from 0 to {n}, got {lengths}")
    pads = torch.arange(n, device=lengths.device) >= lengths[:, None]
    return ~(future_mask(n).to(lengths.device) | pads[:, None, :])

# %% [markdown]
# ## wrong: diagonal_hidden
#
# **Misconception.** A token must not look at itself.
#
# **Hint.** It may: only later keys are the future. `triu` keeps the diagonal unless told otherwise.

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError(f"lengths must be from 0 to {n}, got {lengths}")
    pads = torch.arange(n, device=lengths.device) >= lengths[:, None]
    return (torch.ones(n, n, device=lengths.device).triu() == 1) | pads[:, None, :]

# %% [markdown]
# ## wrong: first_key_kept_visible
#
# **Misconception.** Something must stay visible in every row, so the first key does.
#
# **Hint.** In a sentence of length 0 that key is a pad. Part 6 takes care of rows with nothing to
# look at.

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError(f"lengths must be from 0 to {n}, got {lengths}")
    pads = torch.arange(n, device=lengths.device) >= lengths[:, None].clamp(min=1)
    return future_mask(n).to(lengths.device) | pads[:, None, :]

# %% [markdown]
# ## wrong: lengths_lined_up_with_keys
#
# **Misconception.** `torch.arange(n) >= lengths` compares every position with every length.
#
# **Hint.** It compares position i with length i, and fails when b and n differ. Give the lengths a
# second dimension.

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError(f"lengths must be from 0 to {n}, got {lengths}")
    pads = torch.arange(n, device=lengths.device) >= lengths
    return future_mask(n).to(lengths.device) | pads[:, None, None]

# %% [markdown]
# ## wrong: one_length_for_all
#
# **Misconception.** The longest sentence says how much is padding.
#
# **Hint.** Every sentence has its own length, and so its own mask.

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError(f"lengths must be from 0 to {n}, got {lengths}")
    pads = torch.arange(n, device=lengths.device) >= lengths.max()
    return (future_mask(n).to(lengths.device) | pads).repeat(len(lengths), 1, 1)

# %% [markdown]
# ## wrong: lists_only
#
# **Misconception.** Lengths come as a list of Python numbers.
#
# **Hint.** A tensor is a good argument too. Take both: `torch.as_tensor` leaves a tensor as it is.

# %%
def padding_and_causal(lengths, n):
    if not isinstance(lengths, list):
        raise TypeError("lengths must be a list")
    masks = []
    for length in lengths:
        if length < 0 or length > n:
            raise ValueError(f"length {length} is not from 0 to {n}")
        mask = future_mask(n)
        mask[:, length:] = True
        masks.append(mask)
    return torch.stack(masks)

# %% [markdown]
# ## wrong: tensors_only
#
# **Misconception.** Lengths come as a tensor.
#
# **Hint.** A list of numbers is a good argument too, and has no dimensions. `torch.as_tensor` makes
# a tensor of it.

# %%
def padding_and_causal(lengths, n):
    assert torch.is_tensor(lengths), f"lengths must be a tensor, got {lengths}"
    if (lengths.min() < 0) or (lengths.max() > n):
        raise ValueError(f"lengths must be from 0 to {n}, got {lengths}")
    pads = torch.arange(n, device=lengths.device) >= lengths[:, None]
    return future_mask(n).to(lengths.device) | pads[:, None, :]

# %% [markdown]
# ## wrong: int64_only
#
# **Misconception.** Whole numbers in a tensor are always int64.
#
# **Hint.** int32 is whole as well. Nothing in this function needs one certain type.

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    assert lengths.dtype == torch.int64, "lengths must be int64"
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError(f"lengths must be from 0 to {n}, got {lengths}")
    pads = torch.arange(n, device=lengths.device) >= lengths[:, None]
    return future_mask(n).to(lengths.device) | pads[:, None, :]

# %% [markdown]
# ## wrong: whole_numbers
#
# **Misconception.** Ones and zeros are as good as True and False.
#
# **Hint.** `masked_fill` takes a mask of bool alone. Which type has your result?

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError(f"lengths must be from 0 to {n}, got {lengths}")
    pads = torch.arange(n, device=lengths.device) >= lengths[:, None]
    return (future_mask(n).to(lengths.device) | pads[:, None, :]).long()

# %% [markdown]
# ## wrong: squeezed
#
# **Misconception.** One sentence needs no batch dimension.
#
# **Hint.** It is a batch of one, (1, n, n). Whoever calls the function counts on three dimensions.

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError(f"lengths must be from 0 to {n}, got {lengths}")
    pads = torch.arange(n, device=lengths.device) >= lengths[:, None]
    mask = future_mask(n).to(lengths.device) | pads[:, None, :]
    return mask[0] if len(mask) == 1 else mask

# %% [markdown]
# ## wrong: head_dimension_added
#
# **Misconception.** A mask always has a dimension for heads.
#
# **Hint.** That is convenient later, but the contract says (b, n, n).

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError(f"lengths must be from 0 to {n}, got {lengths}")
    pads = torch.arange(n, device=lengths.device) >= lengths[:, None]
    return future_mask(n).to(lengths.device) | pads[:, None, None, :]

# %% [markdown]
# ## wrong: no_check
#
# **Misconception.** A length that is too large simply means: no pads.
#
# **Hint.** It means that a mistake was made elsewhere. Say no with a ValueError, also below 0.

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    pads = torch.arange(n, device=lengths.device) >= lengths[:, None]
    return future_mask(n).to(lengths.device) | pads[:, None, :]

# %% [markdown]
# ## wrong: zero_refused
#
# **Misconception.** A sentence has at least one token.
#
# **Hint.** A blank line has none. 0 is a good length, and everything is hidden in its rows.

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    if (lengths < 1).any() or (lengths > n).any():
        raise ValueError(f"lengths must be from 1 to {n}, got {lengths}")
    pads = torch.arange(n, device=lengths.device) >= lengths[:, None]
    return future_mask(n).to(lengths.device) | pads[:, None, :]

# %% [markdown]
# ## wrong: full_length_refused
#
# **Misconception.** A length is below n, as an index is.
#
# **Hint.** A length is no index: the longest sentence has the length n and no pads.

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    if (lengths < 0).any() or (lengths >= n).any():
        raise ValueError(f"lengths must be below {n}, got {lengths}")
    pads = torch.arange(n, device=lengths.device) >= lengths[:, None]
    return future_mask(n).to(lengths.device) | pads[:, None, :]

# %% [markdown]
# ## wrong: only_the_longest_checked
#
# **Misconception.** If the largest length fits, all lengths fit.
#
# **Hint.** One may be below 0 as well. Look at both ends.

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    if lengths.max() > n:
        raise ValueError(f"lengths must be from 0 to {n}, got {lengths}")
    pads = torch.arange(n, device=lengths.device) >= lengths[:, None]
    return future_mask(n).to(lengths.device) | pads[:, None, :]

# %% [markdown]
# ## wrong: only_the_first_checked
#
# **Misconception.** The first length stands for all.
#
# **Hint.** Any of them may be out of range. `.any()` looks at all.

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    if lengths[0] < 0 or lengths[0] > n:
        raise ValueError(f"lengths must be from 0 to {n}, got {lengths}")
    pads = torch.arange(n, device=lengths.device) >= lengths[:, None]
    return future_mask(n).to(lengths.device) | pads[:, None, :]

# %% [markdown]
# ## wrong: lengths_changed
#
# **Misconception.** The lengths may be put into bounds where they are.
#
# **Hint.** The caller still needs them as they were. `clamp_`, `sort` and `-=` change the caller's
# object.

# %%
def padding_and_causal(lengths, n):
    if isinstance(lengths, list):
        if min(lengths) < 0 or max(lengths) > n:
            raise ValueError(f"lengths must be from 0 to {n}, got {lengths}")
        lengths[:] = [n - length for length in lengths]
        pads = torch.arange(n).flip(0) < torch.tensor(lengths)[:, None]
        return future_mask(n) | pads[:, None, :]
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError(f"lengths must be from 0 to {n}, got {lengths}")
    lengths -= n
    pads = torch.arange(-n, 0, device=lengths.device) >= lengths[:, None]
    return future_mask(n).to(lengths.device) | pads[:, None, :]

# %% [markdown]
# ## wrong: size_limited
#
# **Misconception.** No sentence is longer than the longest one in the lesson.
#
# **Hint.** Some are. Take whatever n is.

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError(f"lengths must be from 0 to {n}, got {lengths}")
    pads = torch.arange(64, device=lengths.device)[:n] >= lengths[:, None]
    return future_mask(n).to(lengths.device) | pads[:, None, :]

# %% [markdown]
# ## wrong: last_real_token
#
# **Misconception.** Comparing with the last real token, `lengths - 1`, is as good as comparing with the length.
#
# **Hint.** What is 0 - 1 in uint8, a type without negative numbers? Compare with the length itself.

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError(f"lengths must be from 0 to {n}, got {lengths.tolist()}")
    at = torch.arange(n, device=lengths.device)
    return (at > at[:, None]) | (at > (lengths - 1)[:, None, None])

# %% [markdown]
# ## wrong: first_pad_marked
#
# **Misconception.** The first pad stands at the index that is the length.
#
# **Hint.** A sentence of full length has no pad, and no such index. Compare all positions with
# the length instead.

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError(f"lengths must be from 0 to {n}, got {lengths}")
    first_pad = torch.zeros(len(lengths), n, device=lengths.device)
    first_pad[torch.arange(len(lengths)), lengths.long()] = 1
    return future_mask(n).to(lengths.device) | (first_pad.cumsum(dim=-1) > 0)[:, None, :]

# %% [markdown]
# ## wrong: lengths_stood_up_when_needed
#
# **Misconception.** The lengths need a second dimension only where the sizes do not fit.
#
# **Hint.** With as many sentences as tokens they fit, and position i is compared with length i.
# Give them the dimension always.

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError(f"lengths must be from 0 to {n}, got {lengths}")
    at = torch.arange(n, device=lengths.device)
    try:
        pads = at >= lengths
    except RuntimeError:
        pads = at >= lengths[:, None]
    return future_mask(n).to(lengths.device) | pads.view(-1, 1, n)

# %% [markdown]
# ## wrong: one_sentence_for_each_token
#
# **Misconception.** There are never more sentences than tokens.
#
# **Hint.** A batch may hold any number of sentences. b and n have nothing to do with each other.

# %%
def padding_and_causal(lengths, n):
    lengths = torch.as_tensor(lengths)
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError(f"lengths must be from 0 to {n}, got {lengths}")
    masks = future_mask(n).to(lengths.device).repeat(n, 1, 1)[: len(lengths)]
    pads = torch.arange(n, device=lengths.device) >= lengths[:n, None]
    return masks | pads[:, None, :]

# %% [markdown]
# ## wrong: list_used_up
#
# **Misconception.** A list may be emptied on the way, since it has been read.
#
# **Hint.** The caller still needs it. Loop over it, and take nothing out.

# %%
def padding_and_causal(lengths, n):
    if torch.is_tensor(lengths):
        lengths, place = lengths.tolist(), lengths.device
    else:
        place = "cpu"
    masks = []
    while lengths:
        length = lengths.pop(0)
        if not 0 <= length <= n:
            raise ValueError(f"length {length} is not from 0 to {n}")
        mask = future_mask(n)
        mask[:, length:] = True
        masks.append(mask)
    return torch.stack(masks).to(place)
