# %% [markdown]
# # stable_softmax
#
# 1. Softmax does not change when the same number is subtracted from every score of a row. Which
#    number makes the largest `exp` equal to 1?
# 2. There are three steps: find the largest number, take `exp` of the differences, divide by
#    their sum. The first and the last one go along `dim`.
# 3. `amax` and `sum` both take `dim=dim` and `keepdim=True`. Keeping the dimension leaves a size
#    of 1 there, so that subtraction and division reach the right row.

# %% [markdown]
# ## right: logsumexp
#
# `logsumexp` is the logarithm of the sum; subtracting it divides. At numbers near 10,000 the
# difference is rounded to about three decimals, in float32.

# %%
def stable_softmax(x, dim=-1):
    return torch.exp(x - torch.logsumexp(x, dim=dim, keepdim=True))

# %% [markdown]
# ## right: max_with_unsqueeze
#
# The dimension is dropped and put back by hand.

# %%
def stable_softmax(x, dim=-1):
    top, _ = torch.max(x, dim=dim)
    shifted = torch.exp(x - top.unsqueeze(dim))
    return shifted / shifted.sum(dim).unsqueeze(dim)

# %% [markdown]
# ## right: rows_in_a_loop
#
# The dimension is moved to the end, then each row is treated alone.

# %%
def stable_softmax(x, dim=-1):
    moved = x.movedim(dim, -1)
    rows = []
    for row in moved.reshape(-1, moved.shape[-1]):
        powers = [torch.exp(number - max(row)) for number in row]
        rows.append(torch.stack([power / sum(powers) for power in powers]))
    return torch.stack(rows).reshape(moved.shape).movedim(-1, dim)

# %% [markdown]
# ## right: largest_without_gradient
#
# The shift does not change the result, so it needs no gradient.

# %%
def stable_softmax(x, dim=-1):
    with torch.no_grad():
        shift = x.max(dim=dim, keepdim=True).values
    powers = torch.exp(x - shift)
    return powers * powers.sum(dim=dim, keepdim=True).reciprocal()

# %% [markdown]
# ## right: own_function_called_softmax
#
# A helper of one's own may have that name.

# %%
def softmax(numbers):
    powers = (numbers - numbers.amax(-1, keepdim=True)).exp()
    return powers / powers.sum(-1, keepdim=True)


def stable_softmax(x, dim=-1):
    return softmax(x.transpose(dim, -1)).transpose(dim, -1)

# %% [markdown]
# ## right: float64_inside
#
# Computed in float64 and cast back.

# %%
def stable_softmax(x, dim=-1):
    wide = x.to(torch.float64)
    powers = (wide - wide.amax(dim, True)).exp()
    return (powers / powers.sum(dim, True)).to(x.dtype)

# %% [markdown]
# ## right: gradient_of_logsumexp
#
# The gradient of `logsumexp` is the softmax.

# %%
def stable_softmax(x, dim=-1):
    return torch.func.grad(lambda t: torch.logsumexp(t, dim=dim).sum())(x)

# %% [markdown]
# ## right: on_its_own_copy
#
# In place, but on a copy.

# %%
def stable_softmax(x, dim=-1):
    y = x.clone()
    y -= x.amax(dim=dim, keepdim=True)
    y.exp_()
    return y / y.sum(dim=dim, keepdim=True)

# %% [markdown]
# ## right: powers_of_two
#
# A power of e is a power of 2 with another exponent; the sum is a product with ones.

# %%
stable_softmax = lambda x, dim=-1: (
    (p := torch.exp2((x - x.amax(dim=dim, keepdim=True)) / math.log(2)))
    / p.sum(dim=dim, keepdim=True)
)

# %% [markdown]
# ## right: logarithm_of_the_sum
#
# The division is a subtraction of logarithms, after the shift.

# %%
def stable_softmax(x, dim=-1):
    x = x - x.sort(dim=dim, descending=True).values.narrow(dim, 0, 1)
    return (x - x.exp().sum(dim=dim, keepdim=True).log()).exp()

# %% [markdown]
# ## wrong: no_shift
#
# **Misconception.** `exp` of any score is a number that the computer can hold.
#
# **Hint.** In float32 `exp(89)` is infinite. Subtract something from the row first; the weights
# do not change by it.

# %%
def stable_softmax(x, dim=-1):
    powers = x.exp()
    return powers / powers.sum(dim=dim, keepdim=True)

# %% [markdown]
# ## wrong: naive_softmax_again
#
# **Misconception.** The softmax from the text above will do here as well.
#
# **Hint.** Two things are new: `dim` can be any dimension, and some numbers are far above 88.

# %%
def stable_softmax(x, dim=-1):
    return x.exp() / x.exp().sum(dim=-1, keepdim=True)

# %% [markdown]
# ## wrong: largest_of_all
#
# **Misconception.** One largest number for the whole tensor is enough.
#
# **Hint.** In a row far below that number every `exp` becomes 0, and 0 divided by 0 is nan. Each
# row needs a largest number of its own.

# %%
def stable_softmax(x, dim=-1):
    powers = torch.exp(x - x.max())
    return powers / powers.sum(dim=dim, keepdim=True)

# %% [markdown]
# ## wrong: one_row_for_all
#
# **Misconception.** All entries of the tensor make up one row.
#
# **Hint.** Shares add up to 1 along `dim`, not over the whole tensor. The largest number and the
# sum both need to know `dim`.

# %%
def stable_softmax(x, dim=-1):
    powers = torch.exp(x - x.max())
    return powers / powers.sum()

# %% [markdown]
# ## wrong: mean_subtracted
#
# **Misconception.** Any number from the middle of the row makes it safe, for example its mean.
#
# **Hint.** A number can lie far above the mean, and its `exp` is infinite again. What must be
# subtracted so that nothing above 0 is left?

# %%
def stable_softmax(x, dim=-1):
    powers = torch.exp(x - x.mean(dim=dim, keepdim=True))
    return powers / powers.sum(dim=dim, keepdim=True)

# %% [markdown]
# ## wrong: constant_subtracted
#
# **Misconception.** One fixed number, as large as any that may come, suits every row.
#
# **Hint.** In a row of small numbers every `exp` becomes 0 then, and 0 divided by 0 is nan. Let
# each row have a number of its own.

# %%
def stable_softmax(x, dim=-1):
    powers = torch.exp(x - 10_000)
    return powers / powers.sum(dim=dim, keepdim=True)

# %% [markdown]
# ## wrong: smallest_subtracted
#
# **Misconception.** Before `exp` the numbers have to be positive, so the smallest is to be
# subtracted.
#
# **Hint.** `exp` takes negative numbers well and gives something between 0 and 1. Large positive
# ones are the danger.

# %%
def stable_softmax(x, dim=-1):
    powers = torch.exp(x - x.amin(dim=dim, keepdim=True))
    return powers / powers.sum(dim=dim, keepdim=True)

# %% [markdown]
# ## wrong: divided_by_the_largest
#
# **Misconception.** Dividing by the largest number makes the row small and leaves the weights as
# they are.
#
# **Hint.** A factor before `exp` changes how sharp the weights are. Only a subtraction leaves
# them alone.

# %%
def stable_softmax(x, dim=-1):
    powers = torch.exp(x / x.amax(dim=dim, keepdim=True))
    return powers / powers.sum(dim=dim, keepdim=True)

# %% [markdown]
# ## wrong: numbers_limited
#
# **Misconception.** Numbers too large for `exp` can be cut off at a limit.
#
# **Hint.** Two numbers above the limit become equal, and so do their weights. Shift the row
# instead of cutting it.

# %%
def stable_softmax(x, dim=-1):
    powers = torch.exp(x.clamp(-80, 80))
    return powers / powers.sum(dim=dim, keepdim=True)

# %% [markdown]
# ## wrong: cut_at_ten_thousand
#
# **Misconception.** The range ends at 10,000, and what lies beyond can be cut off.
#
# **Hint.** Rows around 10,000 lose their differences that way. After the subtraction of the row's
# largest number nothing needs to be cut.

# %%
def stable_softmax(x, dim=-1):
    x = x.clamp(-10_000, 10_000)
    powers = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return powers / powers.sum(dim=dim, keepdim=True)

# %% [markdown]
# ## wrong: nan_replaced
#
# **Misconception.** A nan in the result can be replaced by 0 afterwards.
#
# **Hint.** The nan stands where the largest weight should be. Keep it from arising.

# %%
def stable_softmax(x, dim=-1):
    powers = x.exp()
    return torch.nan_to_num(powers / powers.sum(dim=dim, keepdim=True))

# %% [markdown]
# ## wrong: small_number_in_the_sum
#
# **Misconception.** A small number has to be added to the sum, against division by zero.
#
# **Hint.** After the shift one term of the sum is 1, so it is never zero. With the addition the
# rows no longer sum to 1.

# %%
def stable_softmax(x, dim=-1):
    powers = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return powers / (powers.sum(dim=dim, keepdim=True) + 1e-2)

# %% [markdown]
# ## wrong: dim_not_used
#
# **Misconception.** Softmax always goes over the last dimension.
#
# **Hint.** The argument `dim` says over which dimension the shares add up to 1. Use it in the
# largest number and in the sum.

# %%
def stable_softmax(x, dim=-1):
    powers = torch.exp(x - x.amax(dim=-1, keepdim=True))
    return powers / powers.sum(dim=-1, keepdim=True)

# %% [markdown]
# ## wrong: dim_always_zero
#
# **Misconception.** Softmax always goes over the first dimension.
#
# **Hint.** The argument `dim` says over which dimension the shares add up to 1. Where does your
# code use it?

# %%
def stable_softmax(x, dim=-1):
    powers = torch.exp(x - x.amax(dim=0, keepdim=True))
    return powers / powers.sum(dim=0, keepdim=True)

# %% [markdown]
# ## wrong: matrices_only
#
# **Misconception.** A tensor has rows and columns and nothing else.
#
# **Hint.** With four dimensions -3 is neither. `amax` and `sum` take any `dim`, so no case needs
# to be told apart.

# %%
def stable_softmax(x, dim=-1):
    if x.ndim == 2 and dim in (0, -2):
        return stable_softmax(x.T).T
    powers = torch.exp(x - x.amax(dim=-1, keepdim=True))
    return powers / powers.sum(dim=-1, keepdim=True)

# %% [markdown]
# ## wrong: dimension_lost_in_the_sum
#
# **Misconception.** A row's largest number and its sum line up with the row by themselves.
#
# **Hint.** The dimension that `amax` or `sum` goes over is gone, and broadcasting lines up from
# the right. `keepdim=True` leaves a size of 1 in its place.

# %%
def stable_softmax(x, dim=-1):
    powers = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return powers / powers.sum(dim=dim)

# %% [markdown]
# ## wrong: sum_of_everything
#
# **Misconception.** All entries of the tensor share one sum.
#
# **Hint.** Each row adds up to 1 by itself. Sum over `dim` alone.

# %%
def stable_softmax(x, dim=-1):
    powers = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return powers / powers.sum()

# %% [markdown]
# ## wrong: max_gives_a_pair
#
# **Misconception.** `max` with a `dim` gives back a single tensor.
#
# **Hint.** It returns two: the values and their places. `amax` gives the values alone.

# %%
def stable_softmax(x, dim=-1):
    powers = torch.exp(x - x.max(dim=dim, keepdim=True))
    return powers / powers.sum(dim=dim, keepdim=True)

# %% [markdown]
# ## wrong: python_exp
#
# **Misconception.** `math.exp` takes tensors as well as numbers.
#
# **Hint.** It takes a single number. For whole tensors torch has an `exp` of its own.

# %%
def stable_softmax(x, dim=-1):
    powers = math.exp(x - x.amax(dim=dim, keepdim=True))
    return powers / powers.sum(dim=dim, keepdim=True)

# %% [markdown]
# ## wrong: nothing_returned
#
# **Misconception.** A function hands back what it computes, even without `return`.
#
# **Hint.** Your function gives back `None`. How does a function hand something to its caller?

# %%
def stable_softmax(x, dim=-1):
    powers = torch.exp(x - x.amax(dim=dim, keepdim=True))
    weights = powers / powers.sum(dim=dim, keepdim=True)

# %% [markdown]
# ## wrong: not_divided_by_the_sum
#
# **Misconception.** Powers are shares as soon as the largest of them is 1.
#
# **Hint.** Add up one row of your result. What has to happen for the sum to be 1?

# %%
def stable_softmax(x, dim=-1):
    return torch.exp(x - x.amax(dim=dim, keepdim=True))

# %% [markdown]
# ## wrong: sum_of_scores
#
# **Misconception.** The powers are to be divided by the sum of the scores.
#
# **Hint.** Below the fraction bar stands the sum of what stands above it: the powers.

# %%
def stable_softmax(x, dim=-1):
    shifted = x - x.amax(dim=dim, keepdim=True)
    return shifted.exp() / shifted.sum(dim=dim, keepdim=True)

# %% [markdown]
# ## wrong: shares_without_exp
#
# **Misconception.** Dividing by the sum makes shares of any numbers.
#
# **Hint.** Scores can be negative, and shares must not be. What makes every number positive
# first?

# %%
def stable_softmax(x, dim=-1):
    shifted = x - x.amin(dim=dim, keepdim=True)
    return shifted / shifted.sum(dim=dim, keepdim=True)

# %% [markdown]
# ## wrong: largest_minus_x
#
# **Misconception.** The order of the subtraction does not matter.
#
# **Hint.** With the largest number on the left the smallest score gets the largest weight.

# %%
def stable_softmax(x, dim=-1):
    powers = torch.exp(x.amax(dim=dim, keepdim=True) - x)
    return powers / powers.sum(dim=dim, keepdim=True)

# %% [markdown]
# ## wrong: base_two
#
# **Misconception.** The base of the power does not matter.
#
# **Hint.** Another base gives other weights. Softmax uses `exp`.

# %%
def stable_softmax(x, dim=-1):
    powers = 2 ** (x - x.amax(dim=dim, keepdim=True))
    return powers / powers.sum(dim=dim, keepdim=True)

# %% [markdown]
# ## wrong: logarithms_returned
#
# **Misconception.** The logarithms of the weights serve as weights.
#
# **Hint.** Shares lie between 0 and 1, and yours are negative. One `exp` is missing.

# %%
def stable_softmax(x, dim=-1):
    return x - torch.logsumexp(x, dim=dim, keepdim=True)

# %% [markdown]
# ## wrong: result_in_float32
#
# **Misconception.** Every tensor is float32.
#
# **Hint.** The result has the type of the argument, float64 included.

# %%
def stable_softmax(x, dim=-1):
    x = x.float()
    powers = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return powers / powers.sum(dim=dim, keepdim=True)

# %% [markdown]
# ## wrong: result_in_float64
#
# **Misconception.** A more precise type in the result does no harm.
#
# **Hint.** The next matrix product refuses two different types. Cast back to the type of the
# argument.

# %%
def stable_softmax(x, dim=-1):
    x = x.double()
    powers = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return powers / powers.sum(dim=dim, keepdim=True)

# %% [markdown]
# ## wrong: detached
#
# **Misconception.** No gradient has to pass through a softmax.
#
# **Hint.** The gradient has to find its way from the result back to the argument. Leave out what
# cuts it off.

# %%
def stable_softmax(x, dim=-1):
    x = x.detach()
    powers = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return powers / powers.sum(dim=dim, keepdim=True)

# %% [markdown]
# ## wrong: numpy_exp
#
# **Misconception.** NumPy's `exp` is as good as torch's.
#
# **Hint.** It gives the same numbers, but NumPy knows nothing of gradients. Stay with tensor
# operations.

# %%
import numpy as np


def stable_softmax(x, dim=-1):
    powers = np.exp(x - x.amax(dim=dim, keepdim=True))
    return powers / powers.sum(dim=dim, keepdim=True)

# %% [markdown]
# ## wrong: shifted_in_place
#
# **Misconception.** `x -= …` makes a new tensor.
#
# **Hint.** It changes the tensor of the caller. Write the difference to a new name.

# %%
def stable_softmax(x, dim=-1):
    x -= x.amax(dim=dim, keepdim=True)
    powers = torch.exp(x)
    return powers / powers.sum(dim=dim, keepdim=True)

# %% [markdown]
# ## wrong: shifted_in_place_without_gradient
#
# **Misconception.** Under `no_grad` an argument may be changed, since the result stays the same.
#
# **Hint.** The result is right, but the scores of the caller are shifted now. Subtract into a new
# tensor.

# %%
def stable_softmax(x, dim=-1):
    with torch.no_grad():
        x -= x.amax(dim=dim, keepdim=True)
    powers = torch.exp(x)
    return powers / powers.sum(dim=dim, keepdim=True)

# %% [markdown]
# ## wrong: torch_softmax
#
# **Misconception.** PyTorch's own softmax will do here as well, in one form or another.
#
# **Hint.** Everywhere else it will. Here the steps are the exercise: largest number, `exp`, sum.

# %%
def stable_softmax(x, dim=-1):
    return torch.softmax(x, dim=dim)

# %% [markdown]
# ## wrong: method
#
# **Misconception.** Called as a method, it is no longer PyTorch's softmax.
#
# **Hint.** It is the same function. Write the three steps yourself: largest number, `exp`, sum.

# %%
def stable_softmax(x, dim=-1):
    return x.softmax(dim)

# %% [markdown]
# ## wrong: softmax_layer
#
# **Misconception.** Called as a layer, it is no longer PyTorch's softmax.
#
# **Hint.** It is the same function. Write the three steps yourself: largest number, `exp`, sum.

# %%
layer_class = nn.Softmax


def stable_softmax(x, dim=-1):
    return layer_class(dim=dim)(x)

# %% [markdown]
# ## wrong: imported_under_another_name
#
# **Misconception.** Under another name, it is no longer PyTorch's softmax.
#
# **Hint.** It is the same function. Write the three steps yourself: largest number, `exp`, sum.

# %%
from torch.nn.functional import softmax as shares


def stable_softmax(x, dim=-1):
    return shares(x, dim=dim)

# %% [markdown]
# ## wrong: exp_of_log_softmax
#
# **Misconception.** `log_softmax` is something other than softmax.
#
# **Hint.** It is its logarithm, and not allowed either. Write the three steps yourself: largest
# number, `exp`, sum.

# %%
def stable_softmax(x, dim=-1):
    return torch.nn.functional.log_softmax(x, dim=dim).exp()

# %% [markdown]
# ## wrong: probabilities_of_a_distribution
#
# **Misconception.** A distribution finds its probabilities without a softmax.
#
# **Hint.** It calls PyTorch's softmax inside. Write the three steps yourself: largest number,
# `exp`, sum.

# %%
def stable_softmax(x, dim=-1):
    logits = x.movedim(dim, -1)
    return torch.distributions.Categorical(logits=logits).probs.movedim(-1, dim)

# %% [markdown]
# ## wrong: softmin_of_the_negative
#
# **Misconception.** `softmin` is something other than softmax.
#
# **Hint.** It is the softmax of the negative numbers. Write the three steps yourself: largest
# number, `exp`, sum.

# %%
from torch.nn import functional as F


def stable_softmax(x, dim=-1):
    return F.softmin(-x, dim=dim)

# %% [markdown]
# ## wrong: attention_of_torch
#
# **Misconception.** PyTorch's attention function works without a softmax.
#
# **Hint.** It is a softmax with two products around it. Write the three steps yourself: largest
# number, `exp`, sum.

# %%
from torch.nn import functional as F


def stable_softmax(x, dim=-1):
    moved = x.movedim(dim, -1)
    rows = moved.reshape(1, -1, moved.shape[-1])
    same = torch.eye(moved.shape[-1], dtype=x.dtype, device=x.device).unsqueeze(0)
    shares = F.scaled_dot_product_attention(rows, same, same, scale=1.0)
    return shares.reshape(moved.shape).movedim(-1, dim)

# %% [markdown]
# ## wrong: zeros_left_out
#
# **Misconception.** A score of 0 means no score, and gets no weight.
#
# **Hint.** 0 is a number like any other, and `exp(0)` is 1.

# %%
def stable_softmax(x, dim=-1):
    powers = torch.exp(x - x.amax(dim=dim, keepdim=True)) * (x != 0)
    return powers / powers.sum(dim=dim, keepdim=True)

# %% [markdown]
# ## wrong: zero_is_not_given
#
# **Misconception.** `dim or -1` is `dim`, if it was given.
#
# **Hint.** 0 counts as False in Python, so `dim=0` becomes -1. The default in the first line is
# enough.

# %%
def stable_softmax(x, dim=-1):
    dim = dim or -1
    powers = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return powers / powers.sum(dim=dim, keepdim=True)

# %% [markdown]
# ## wrong: parts_one_by_one
#
# **Misconception.** The dimensions of a part have the numbers they had in the whole.
#
# **Hint.** A part has lost the first dimension, so what was dimension 1 is dimension 0 now.
# `amax` and `sum` take any `dim`: nothing needs to be taken apart.

# %%
def stable_softmax(x, dim=-1):
    if x.ndim > 2:
        return torch.stack([stable_softmax(part, dim) for part in x])
    powers = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return powers / powers.sum(dim=dim, keepdim=True)

# %% [markdown]
# ## wrong: middle_subtracted
#
# **Misconception.** The middle between the largest and the smallest number is the safest to
# subtract.
#
# **Hint.** In a row 20,000 wide the largest is then still 10,000, and its `exp` is infinite.
# Nothing above 0 may be left.

# %%
def stable_softmax(x, dim=-1):
    middle = (x.amax(dim=dim, keepdim=True) + x.amin(dim=dim, keepdim=True)) / 2
    powers = torch.exp(x - middle)
    return powers / powers.sum(dim=dim, keepdim=True)

# %% [markdown]
# ## wrong: largest_of_all_by_default
#
# **Misconception.** When no `dim` is given, one largest number for the whole tensor will do.
#
# **Hint.** The default is -1, each row by itself. In a row far below that number every `exp`
# becomes 0.

# %%
def stable_softmax(x, dim=-1):
    largest = x.max() if dim == -1 else x.amax(dim=dim, keepdim=True)
    powers = torch.exp(x - largest)
    return powers / powers.sum(dim=dim, keepdim=True)

# %% [markdown]
# ## wrong: squeezed
#
# **Misconception.** A dimension of size 1 is of no use and can be dropped.
#
# **Hint.** The result has the shape of x, also where a size is 1.

# %%
def stable_softmax(x, dim=-1):
    powers = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return (powers / powers.sum(dim=dim, keepdim=True)).squeeze()

# %% [markdown]
# ## wrong: flattened_by_view
#
# **Misconception.** `view` works on every tensor.
#
# **Hint.** It fails on a tensor that is stored by columns. `exp` takes a tensor of any shape, so
# nothing needs to be flattened.

# %%
def stable_softmax(x, dim=-1):
    shifted = x - x.amax(dim=dim, keepdim=True)
    powers = torch.stack([number.exp() for number in shifted.view(-1)]).view(x.shape)
    return powers / powers.sum(dim=dim, keepdim=True)

# %% [markdown]
# ## wrong: chosen_at_the_end
#
# **Misconception.** Where a plain softmax gives `nan`, one can choose the stable one afterwards.
#
# **Hint.** The way back runs through what was not chosen as well, and 0 times `nan` is `nan`.
# Compute the stable one alone.

# %%
def stable_softmax(x, dim=-1):
    naive = x.exp() / x.exp().sum(dim=dim, keepdim=True)
    powers = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return torch.where(naive.isfinite(), naive, powers / powers.sum(dim=dim, keepdim=True))

# %% [markdown]
# ## wrong: float32_inside
#
# **Misconception.** float32 is precise enough on the way, as long as the result has the right
# type.
#
# **Hint.** Near 10,000 float32 rounds at the third decimal, and that is lost. Compute in the type
# that comes in.

# %%
def stable_softmax(x, dim=-1):
    narrow = x.float()
    powers = torch.exp(narrow - narrow.amax(dim=dim, keepdim=True))
    return (powers / powers.sum(dim=dim, keepdim=True)).to(x.dtype)

# %% [markdown]
# ## wrong: largest_of_all_matrices
#
# **Misconception.** With more than two dimensions the largest number of all will do.
#
# **Hint.** Another matrix of the batch may lie 20,000 below it, and its sum is then 0. Take the largest
# along `dim`.

# %%
def stable_softmax(x, dim=-1):
    largest = x.amax(dim, keepdim=True) if x.ndim <= 2 else x.max()
    powers = torch.exp(x - largest)
    return powers / powers.sum(dim, keepdim=True)
