# %% [markdown]
# # fill_value
#
# 1. Every floating dtype has its own lowest number, and PyTorch knows it: `torch.finfo(dtype)` holds
#    several numbers about a dtype. Print one.
# 2. `min` of a `finfo` is the lowest number, `tiny` the smallest one above 0. `dtype.is_floating_point`
#    says what kind of dtype it is.
# 3. Ask for the kind first and raise a ValueError, since `torch.finfo` itself takes complex dtypes as
#    well.

# %% [markdown]
# ## right: minus_the_largest
#
# The range is symmetric.

# %%
def fill_value(dtype):
    assert dtype.is_floating_point, f"{dtype} is not a floating dtype"
    return -torch.finfo(dtype).max

# %% [markdown]
# ## right: one_of_four
#
# The dtypes are listed.

# %%
def fill_value(dtype):
    if dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        return float(torch.finfo(dtype).min)
    raise ValueError(f"no fill value for {dtype}")

# %% [markdown]
# ## right: error_translated
#
# What PyTorch refuses is refused, and complex numbers too.

# %%
def fill_value(dtype):
    try:
        lowest = torch.finfo(dtype).min
    except TypeError:
        raise ValueError(f"dtype must be floating, got {dtype}") from None
    if dtype.is_complex:
        raise ValueError(f"dtype must be floating, got {dtype}")
    return lowest

# %% [markdown]
# ## right: powers_of_two
#
# From the number of bits: the largest exponent, and all digits set.

# %%
def fill_value(dtype):
    bits = {torch.float16: (16, 11), torch.bfloat16: (128, 8), torch.float32: (128, 24), torch.float64: (1024, 53)}
    if dtype not in bits:
        raise ValueError(f"dtype must be floating, got {dtype}")
    exponent, digits = bits[dtype]
    return -math.ldexp(2 - 2.0 ** (1 - digits), exponent - 1)

# %% [markdown]
# ## right: neighbour_of_infinity
#
# The step up from minus infinity, by its bits.

# %%
def fill_value(dtype):
    sizes = {torch.float16: torch.int16, torch.bfloat16: torch.int16, torch.float32: torch.int32, torch.float64: torch.int64}
    if dtype not in sizes:
        raise ValueError(f"dtype must be floating, got {dtype}")
    bits = torch.tensor(-math.inf, dtype=dtype).view(sizes[dtype])
    return (bits - 1).view(dtype).item()

# %% [markdown]
# ## right: a_tensor_asked
#
# A tensor says whether it is floating.

# %%
def fill_value(dtype):
    if not torch.empty(0, dtype=dtype).is_floating_point():
        raise ValueError(f"{dtype} is not floating")
    lowest = torch.tensor(torch.finfo(dtype).min, dtype=torch.float64)
    assert lowest.isfinite()
    return lowest.item()

# %% [markdown]
# ## wrong: minus_a_billion
#
# **Misconception.** -1e9 is as good as minus infinity in any type.
#
# **Hint.** float16 ends at -65,504, and for the others it is not the lowest. `torch.finfo` knows it for
# each dtype.

# %%
def fill_value(dtype):
    if not dtype.is_floating_point:
        raise ValueError(f"dtype must be floating, got {dtype}")
    return -1e9

# %% [markdown]
# ## wrong: minus_ten_thousand
#
# **Misconception.** A number that fits into every type will do for every type.
#
# **Hint.** It fits, but a score may be just as low, and then the hidden key is visible. Take the
# lowest of the dtype.

# %%
def fill_value(dtype):
    if not dtype.is_floating_point:
        raise ValueError(f"dtype must be floating, got {dtype}")
    return -1e4

# %% [markdown]
# ## wrong: minus_infinity
#
# **Misconception.** The most negative number is minus infinity.
#
# **Hint.** The most negative finite one is asked for, where minus infinity is not wanted.

# %%
def fill_value(dtype):
    if not dtype.is_floating_point:
        raise ValueError(f"dtype must be floating, got {dtype}")
    return float("-inf")

# %% [markdown]
# ## wrong: largest
#
# **Misconception.** The end of the range is its largest number.
#
# **Hint.** The range has two ends. A key filled with this one would take everything.

# %%
def fill_value(dtype):
    if not dtype.is_floating_point:
        raise ValueError(f"dtype must be floating, got {dtype}")
    return torch.finfo(dtype).max

# %% [markdown]
# ## wrong: smallest_above_zero
#
# **Misconception.** The smallest number of a type is its most negative one.
#
# **Hint.** `tiny` is the smallest number above 0. As a score that is about 0, and hides nothing.

# %%
def fill_value(dtype):
    if not dtype.is_floating_point:
        raise ValueError(f"dtype must be floating, got {dtype}")
    return torch.finfo(dtype).tiny

# %% [markdown]
# ## wrong: minus_the_smallest
#
# **Misconception.** `tiny` with a minus sign is the lowest number.
#
# **Hint.** It is the number just below 0. The lowest one is at the other end.

# %%
def fill_value(dtype):
    if not dtype.is_floating_point:
        raise ValueError(f"dtype must be floating, got {dtype}")
    return -torch.finfo(dtype).tiny

# %% [markdown]
# ## wrong: half_of_it
#
# **Misconception.** The lowest number must be halved to be safe.
#
# **Hint.** Filled in, it is safe as it is. Only something added to it could overflow.

# %%
def fill_value(dtype):
    if not dtype.is_floating_point:
        raise ValueError(f"dtype must be floating, got {dtype}")
    return torch.finfo(dtype).min / 2

# %% [markdown]
# ## wrong: float32_for_all
#
# **Misconception.** All floating types end at the same number.
#
# **Hint.** Ask `torch.finfo` for the dtype you were given.

# %%
def fill_value(dtype):
    if not dtype.is_floating_point:
        raise ValueError(f"dtype must be floating, got {dtype}")
    return torch.finfo(torch.float32).min

# %% [markdown]
# ## wrong: float64_for_all
#
# **Misconception.** A Python float is a float64, so its lowest number fits.
#
# **Hint.** The number is filled into a tensor of that dtype, and has to fit there.

# %%
import sys


def fill_value(dtype):
    if not dtype.is_floating_point:
        raise ValueError(f"dtype must be floating, got {dtype}")
    return -sys.float_info.max

# %% [markdown]
# ## wrong: by_the_number_of_bits
#
# **Misconception.** Two types of 16 bits have the same range.
#
# **Hint.** bfloat16 spends its bits otherwise: it reaches nearly as far as float32, with fewer
# digits. Ask for the dtype, not its size.

# %%
def fill_value(dtype):
    if not dtype.is_floating_point:
        raise ValueError(f"dtype must be floating, got {dtype}")
    return {16: -65504.0, 32: torch.finfo(torch.float32).min, 64: torch.finfo(torch.float64).min}[torch.finfo(dtype).bits]

# %% [markdown]
# ## wrong: rounded_literals
#
# **Misconception.** A few digits of the number are enough.
#
# **Hint.** The last digits count: a little lower and the type cannot hold it, a little higher and it
# is not the lowest. Let PyTorch say it.

# %%
def fill_value(dtype):
    known = {torch.float16: -65500.0, torch.bfloat16: -3.38e38, torch.float32: -3.4e38, torch.float64: -1.79e308}
    if dtype not in known:
        raise ValueError(f"dtype must be floating, got {dtype}")
    return known[dtype]

# %% [markdown]
# ## wrong: half_precision_only
#
# **Misconception.** Only the 16-bit types need a number of their own.
#
# **Hint.** Every floating dtype has its own lowest number.

# %%
def fill_value(dtype):
    if not dtype.is_floating_point:
        raise ValueError(f"dtype must be floating, got {dtype}")
    if dtype in (torch.float16, torch.bfloat16):
        return torch.finfo(dtype).min
    return -1e9

# %% [markdown]
# ## wrong: tensor_returned
#
# **Misconception.** A tensor with one number is a number.
#
# **Hint.** A Python float is asked for. `.item()` makes one.

# %%
def fill_value(dtype):
    if not dtype.is_floating_point:
        raise ValueError(f"dtype must be floating, got {dtype}")
    return torch.tensor(torch.finfo(dtype).min, dtype=dtype)

# %% [markdown]
# ## wrong: whole_number_returned
#
# **Misconception.** A whole number needs no point.
#
# **Hint.** A Python float is asked for, and an int is not one.

# %%
def fill_value(dtype):
    if not dtype.is_floating_point:
        raise ValueError(f"dtype must be floating, got {dtype}")
    return int(torch.finfo(dtype).min)

# %% [markdown]
# ## wrong: no_check
#
# **Misconception.** `torch.finfo` refuses what is not floating.
#
# **Hint.** With a TypeError, and not all of it: it takes complex dtypes. Look at the dtype first.

# %%
def fill_value(dtype):
    return torch.finfo(dtype).min

# %% [markdown]
# ## wrong: complex_accepted
#
# **Misconception.** What `torch.finfo` takes is floating.
#
# **Hint.** It takes complex64 and gives the number of its parts. Complex numbers have no order, and
# `is_floating_point` is False for them.

# %%
def fill_value(dtype):
    try:
        return torch.finfo(dtype).min
    except TypeError:
        raise ValueError(f"dtype must be floating, got {dtype}") from None

# %% [markdown]
# ## wrong: whole_numbers_accepted
#
# **Misconception.** Scores may be whole numbers too, and those have a lowest one.
#
# **Hint.** A softmax of whole numbers does not exist. Refuse what is not floating.

# %%
def fill_value(dtype):
    if dtype.is_floating_point:
        return torch.finfo(dtype).min
    if dtype.is_complex or dtype == torch.bool:
        raise ValueError(f"dtype must be floating, got {dtype}")
    return float(torch.iinfo(dtype).min)

# %% [markdown]
# ## wrong: bfloat16_refused
#
# **Misconception.** There are three floating types: 16, 32 and 64 bits.
#
# **Hint.** bfloat16 is another one, with 16 bits. `is_floating_point` knows them all.

# %%
def fill_value(dtype):
    if dtype not in (torch.float16, torch.float32, torch.float64):
        raise ValueError(f"dtype must be floating, got {dtype}")
    return torch.finfo(dtype).min

# %% [markdown]
# ## wrong: check_turned_round
#
# **Misconception.** `assert` names what is forbidden.
#
# **Hint.** It names what must be true. This one refuses every good dtype.

# %%
def fill_value(dtype):
    assert not dtype.is_floating_point, f"dtype must be floating, got {dtype}"
    return torch.finfo(dtype).min

# %% [markdown]
# ## wrong: minus_one_hundred
#
# **Misconception.** `exp(-100)` is as good as 0, so -100 is low enough.
#
# **Hint.** It is low compared with scores near 0. Compared with a score of -10,000 it is high.

# %%
def fill_value(dtype):
    if not dtype.is_floating_point:
        raise ValueError(f"dtype must be floating, got {dtype}")
    return -100.0

# %% [markdown]
# ## wrong: nothing_returned
#
# **Misconception.** To return nothing is to refuse.
#
# **Hint.** The caller goes on with None for a number and fails somewhere else. `raise` stops it here.

# %%
def fill_value(dtype):
    return torch.finfo(dtype).min if dtype.is_floating_point else None

# %% [markdown]
# ## wrong: rounded_for_float16
#
# **Misconception.** A round number near the end of float16 is as good as the last one.
#
# **Hint.** The end is known to the last digit. Which function tells it?

# %%
def fill_value(dtype):
    if not dtype.is_floating_point:
        raise ValueError(f"dtype must be a floating one, got {dtype}")
    return -65000.0 if dtype == torch.float16 else torch.finfo(dtype).min

# %% [markdown]
# ## wrong: rounded_for_float32
#
# **Misconception.** Three digits of a number as large as that are enough.
#
# **Hint.** The number is asked for exactly, and PyTorch knows it.

# %%
def fill_value(dtype):
    if not dtype.is_floating_point:
        raise ValueError(f"dtype must be a floating one, got {dtype}")
    return -3.4e38 if dtype == torch.float32 else torch.finfo(dtype).min

# %% [markdown]
# ## wrong: rounded_for_float64
#
# **Misconception.** The lowest number of float64 has three digits, as it is printed in most
# books.
#
# **Hint.** The number is asked for exactly, and PyTorch knows it.

# %%
def fill_value(dtype):
    if not dtype.is_floating_point:
        raise ValueError(f"dtype must be a floating one, got {dtype}")
    return -1.79e308 if dtype == torch.float64 else torch.finfo(dtype).min
