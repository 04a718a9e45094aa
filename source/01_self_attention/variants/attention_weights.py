# %% [markdown]
# # attention_weights
#
# 1. There are two steps, and their order matters: first the scale, then the softmax.
# 2. The scale is the square root of `d_k`, the argument, not a size of the scores. Row i belongs
#    to query i and adds up to 1. Over which dimension does the softmax go then?
# 3. Divide the scores by `d_k ** 0.5` and hand the quotient to `torch.softmax` or to your own
#    function. The dimension of the keys is the last one.

# %% [markdown]
# ## right: own_stable_softmax
#
# Built on the earlier exercise.

# %%
def attention_weights(scores, d_k):
    return stable_softmax(scores / math.sqrt(d_k))

# %% [markdown]
# ## right: root_as_a_tensor
#
# The root is taken of a tensor, in float32.

# %%
def attention_weights(scores, d_k):
    scale = torch.sqrt(torch.tensor(d_k))
    return nn.Softmax(dim=1)(scores / scale)

# %% [markdown]
# ## right: times_the_inverse_root
#
# A product with a negative power, and the functional softmax.

# %%
from torch.nn import functional as F


def attention_weights(scores, d_k):
    return F.softmax(scores * d_k**-0.5, dim=-1)

# %% [markdown]
# ## right: row_by_row
#
# One query at a time.

# %%
def attention_weights(scores, d_k):
    def shares(row):
        powers = [torch.exp((score - row.max()) / math.sqrt(d_k)) for score in row]
        return torch.stack(powers) / sum(powers)

    return torch.stack([shares(row) for row in scores])

# %% [markdown]
# ## right: logsumexp
#
# Shifted by the largest score, then divided by subtracting logarithms.

# %%
def attention_weights(scores, d_k):
    scaled = (scores - scores.max(dim=1, keepdim=True)[0]) / d_k**0.5
    return (scaled - scaled.logsumexp(1, keepdim=True)).exp()

# %% [markdown]
# ## right: exp_of_log_softmax
#
# By way of the logarithms.

# %%
def attention_weights(scores, d_k):
    return torch.log_softmax(scores.div(pow(d_k, 0.5)), dim=-1).exp()

# %% [markdown]
# ## right: fused_attention
#
# PyTorch's attention function on given scores: keys and values are identity matrices.

# %%
def attention_weights(scores, d_k):
    same = torch.eye(scores.shape[1], dtype=scores.dtype, device=scores.device)
    return nn.functional.scaled_dot_product_attention(scores, same, same, scale=1 / math.sqrt(d_k))

# %% [markdown]
# ## right: over_columns_of_the_transpose
#
# Turned, softmax over the first dimension, turned back.

# %%
def attention_weights(scores, d_k):
    return torch.softmax(scores.T / d_k**0.5, dim=0).T

# %% [markdown]
# ## right: float64_inside
#
# Computed in float64 and cast back.

# %%
attention_weights = lambda scores, d_k: (
    scores.double().div(d_k**0.5).softmax(-1).type_as(scores)
)

# %% [markdown]
# ## wrong: softmax_over_queries
#
# **Misconception.** The columns of the weights add up to 1.
#
# **Hint.** A row is what one query hands out, and it is the row that adds up to 1. Its shares go
# over the keys.

# %%
def attention_weights(scores, d_k):
    return torch.softmax(scores / d_k**0.5, dim=0)

# %% [markdown]
# ## wrong: no_scale
#
# **Misconception.** The scores may go into the softmax as they are.
#
# **Hint.** On the small example one hardly sees it. With large keys the softmax gives nearly
# everything to one token.

# %%
def attention_weights(scores, d_k):
    return torch.softmax(scores, dim=-1)

# %% [markdown]
# ## wrong: without_root
#
# **Misconception.** The scores are to be divided by d_k.
#
# **Hint.** The spread of a dot product grows with the square root of d_k, as measured above.

# %%
def attention_weights(scores, d_k):
    return torch.softmax(scores / d_k, dim=-1)

# %% [markdown]
# ## wrong: power_before_the_fraction
#
# **Misconception.** `d_k ** 1/2` is the square root of d_k.
#
# **Hint.** The power binds more strongly than the division: this is d_k, and then a half. Put the
# one half into brackets.

# %%
def attention_weights(scores, d_k):
    return torch.softmax(scores / d_k ** 1/2, dim=-1)

# %% [markdown]
# ## wrong: half_of_d_k
#
# **Misconception.** To the power 1/2 means divided by 2.
#
# **Hint.** A power of one half is a square root.

# %%
def attention_weights(scores, d_k):
    return torch.softmax(scores / (d_k / 2), dim=-1)

# %% [markdown]
# ## wrong: multiplied_by_the_root
#
# **Misconception.** The scores are to be multiplied by the square root.
#
# **Hint.** The scores are too large, not too small. The scale has to bring their spread down to
# 1.

# %%
def attention_weights(scores, d_k):
    return torch.softmax(scores * d_k**0.5, dim=-1)

# %% [markdown]
# ## wrong: root_of_a_python_number
#
# **Misconception.** `torch.sqrt` takes any number.
#
# **Hint.** It takes tensors, and `d_k` is a Python number. Python has a square root of its own,
# and a power does it as well.

# %%
def attention_weights(scores, d_k):
    return torch.softmax(scores / torch.sqrt(d_k), dim=-1)

# %% [markdown]
# ## wrong: root_without_its_module
#
# **Misconception.** `sqrt` is known everywhere.
#
# **Hint.** It lives in a module, which the lesson has imported. Say which one, with a point in
# between.

# %%
def attention_weights(scores, d_k):
    return torch.softmax(scores / sqrt(d_k), dim=-1)

# %% [markdown]
# ## wrong: root_of_the_number_of_keys
#
# **Misconception.** The scale depends on the number of keys.
#
# **Hint.** The number of tokens has no influence on the size of a single dot product. The number
# of numbers in a key has.

# %%
def attention_weights(scores, d_k):
    return torch.softmax(scores / scores.shape[-1] ** 0.5, dim=-1)

# %% [markdown]
# ## wrong: root_of_the_input_size
#
# **Misconception.** The scale depends on how many features the inputs have.
#
# **Hint.** In the example tokens and keys happen to have the same size. Use the argument `d_k`.

# %%
def attention_weights(scores, d_k):
    return torch.softmax(scores / inputs.shape[-1] ** 0.5, dim=-1)

# %% [markdown]
# ## wrong: measured_spread
#
# **Misconception.** The scores are to be divided by their own standard deviation.
#
# **Hint.** The scale is a fixed number that follows from d_k. It does not look at the scores.

# %%
def attention_weights(scores, d_k):
    return torch.softmax(scores / scores.std(), dim=-1)

# %% [markdown]
# ## wrong: whole_number_root
#
# **Misconception.** `math.isqrt` is the square root.
#
# **Hint.** It cuts off what comes after the point. `math.sqrt` does not.

# %%
def attention_weights(scores, d_k):
    return torch.softmax(scores / math.isqrt(d_k), dim=-1)

# %% [markdown]
# ## wrong: scaled_after_the_softmax
#
# **Misconception.** It makes no difference whether the scale comes before or after the softmax.
#
# **Hint.** Afterwards the rows no longer add up to 1. Divide the scores, not the weights.

# %%
def attention_weights(scores, d_k):
    return torch.softmax(scores, dim=-1) / d_k**0.5

# %% [markdown]
# ## wrong: softmax_without_dim
#
# **Misconception.** The softmax finds the right dimension by itself.
#
# **Hint.** It has to be told. Over which dimension do the shares of one query go?

# %%
def attention_weights(scores, d_k):
    return torch.softmax(scores / d_k**0.5)

# %% [markdown]
# ## wrong: layer_not_called
#
# **Misconception.** `nn.Softmax` is a function of the scores.
#
# **Hint.** It makes a layer and takes the dimension. What it made is called afterwards, with the
# scores.

# %%
def attention_weights(scores, d_k):
    return nn.Softmax(scores / d_k**0.5)

# %% [markdown]
# ## wrong: no_softmax
#
# **Misconception.** The scaled scores are the weights already.
#
# **Hint.** Shares are never below zero, and each row of them adds up to 1. One step is still to
# come.

# %%
def attention_weights(scores, d_k):
    return scores / d_k**0.5

# %% [markdown]
# ## wrong: nothing_returned
#
# **Misconception.** A function hands back what it computes, even without `return`.
#
# **Hint.** Your function gives back `None`. How does a function hand something to its caller?

# %%
def attention_weights(scores, d_k):
    weights = torch.softmax(scores / d_k**0.5, dim=-1)

# %% [markdown]
# ## wrong: softmax_over_everything
#
# **Misconception.** All weights together add up to 1.
#
# **Hint.** Each query has one whole to hand out. The softmax goes over the keys alone.

# %%
def attention_weights(scores, d_k):
    return torch.softmax((scores / d_k**0.5).flatten(), dim=0).view(scores.shape)

# %% [markdown]
# ## wrong: softmax_twice
#
# **Misconception.** A second softmax makes sure that the rows add up to 1.
#
# **Hint.** They already do. The second one makes the weights nearly equal.

# %%
def attention_weights(scores, d_k):
    return torch.softmax(torch.softmax(scores / d_k**0.5, dim=-1), dim=-1)

# %% [markdown]
# ## wrong: logarithms_returned
#
# **Misconception.** `log_softmax` is a better softmax.
#
# **Hint.** It gives the logarithms of the weights. Shares lie between 0 and 1.

# %%
def attention_weights(scores, d_k):
    return torch.log_softmax(scores / d_k**0.5, dim=-1)

# %% [markdown]
# ## wrong: sigmoid
#
# **Misconception.** Each weight depends on its own score alone.
#
# **Hint.** The shares of a row depend on each other: what one key gets, the others do not. A
# softmax looks at the whole row.

# %%
def attention_weights(scores, d_k):
    return torch.sigmoid(scores / d_k**0.5)

# %% [markdown]
# ## wrong: shares_of_the_scores
#
# **Misconception.** Dividing by the sum is enough to make shares.
#
# **Hint.** Scores can be negative, and their sum can be near zero. `exp` comes before the
# division.

# %%
def attention_weights(scores, d_k):
    scaled = scores / d_k**0.5
    return scaled / scaled.sum(dim=-1, keepdim=True)

# %% [markdown]
# ## wrong: all_to_the_largest
#
# **Misconception.** A query takes from its best key only.
#
# **Hint.** Softmax is soft: the others get a share as well, and only so can the layer learn.

# %%
def attention_weights(scores, d_k):
    best = (scores / d_k**0.5).argmax(dim=-1)
    return nn.functional.one_hot(best, scores.shape[-1]).to(scores.dtype)

# %% [markdown]
# ## wrong: not_stable
#
# **Misconception.** After the scale the scores are small enough for a bare `exp`.
#
# **Hint.** Scores in the thousands are still in the hundreds then, and `exp(89)` is infinite.
# Take a stable softmax.

# %%
def attention_weights(scores, d_k):
    powers = torch.exp(scores / d_k**0.5)
    return powers / powers.sum(dim=-1, keepdim=True)

# %% [markdown]
# ## wrong: largest_of_all
#
# **Misconception.** One largest number for all rows is enough.
#
# **Hint.** In a row far below that number every `exp` becomes 0. Each row needs a largest number
# of its own.

# %%
def attention_weights(scores, d_k):
    powers = torch.exp((scores - scores.max()) / d_k**0.5)
    return powers / powers.sum(dim=-1, keepdim=True)

# %% [markdown]
# ## wrong: keepdim_only_on_error
#
# **Misconception.** As long as no error comes, the sums line up with their rows.
#
# **Hint.** With as many queries as keys the division runs, but it divides column j by the sum of
# row j. Keep the summed dimension.

# %%
def attention_weights(scores, d_k):
    powers = torch.exp((scores - scores.amax(dim=-1, keepdim=True)) / d_k**0.5)
    sums = powers.sum(dim=-1)
    try:
        return powers / sums
    except RuntimeError:
        return powers / sums.unsqueeze(-1)

# %% [markdown]
# ## wrong: one_number_refused
#
# **Misconception.** A key of one number makes no sense.
#
# **Hint.** It does: the root of 1 is 1, and the scores stay as they are.

# %%
def attention_weights(scores, d_k):
    if d_k < 2:
        raise ValueError(f"d_k must be at least 2, got {d_k}")
    return torch.softmax(scores / d_k**0.5, dim=-1)

# %% [markdown]
# ## wrong: scale_with_a_limit
#
# **Misconception.** Keys have 64 numbers at most, so the scale is never above 8.
#
# **Hint.** Some models use far larger keys. Take the root of whatever `d_k` is.

# %%
def attention_weights(scores, d_k):
    return torch.softmax(scores / min(d_k**0.5, 8.0), dim=-1)

# %% [markdown]
# ## wrong: scores_limited
#
# **Misconception.** Large scores have to be cut off, or the softmax cannot deal with them.
#
# **Hint.** Two scores above the limit become equal. A stable softmax needs no limit.

# %%
def attention_weights(scores, d_k):
    return torch.softmax(scores.clamp(-50, 50) / d_k**0.5, dim=-1)

# %% [markdown]
# ## wrong: future_hidden
#
# **Misconception.** A query may look only at itself and at what comes before it.
#
# **Hint.** That is for the next lesson. Here every query sees every key.

# %%
def attention_weights(scores, d_k):
    hidden = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(hidden, -torch.inf) / d_k**0.5, dim=-1)

# %% [markdown]
# ## wrong: result_in_float32
#
# **Misconception.** Weights are always float32.
#
# **Hint.** The result has the type of the scores, float64 included.

# %%
def attention_weights(scores, d_k):
    return torch.softmax(scores / d_k**0.5, dim=-1, dtype=torch.float32)

# %% [markdown]
# ## wrong: detached
#
# **Misconception.** No gradient has to pass through the weights.
#
# **Hint.** The query and key matrices learn through the weights alone. The gradient has to pass.

# %%
def attention_weights(scores, d_k):
    with torch.no_grad():
        return torch.softmax(scores / d_k**0.5, dim=-1)

# %% [markdown]
# ## wrong: scaled_in_place
#
# **Misconception.** `scores /= …` makes a new tensor.
#
# **Hint.** It changes the tensor of the caller, who may call again and scale twice. Write `scores
# / …` instead.

# %%
def attention_weights(scores, d_k):
    scores /= d_k**0.5
    return torch.softmax(scores, dim=-1)

# %% [markdown]
# ## wrong: shifted_in_place
#
# **Misconception.** The scores may be shifted in place, since a shift leaves the weights as they
# are.
#
# **Hint.** The weights are right, but the scores of the caller are shifted now. Subtract into a
# new tensor.

# %%
def attention_weights(scores, d_k):
    with torch.no_grad():
        scores -= scores.amax(dim=-1, keepdim=True)
    powers = torch.exp(scores / d_k**0.5)
    return powers / powers.sum(dim=-1, keepdim=True)

# %% [markdown]
# ## wrong: squeezed
#
# **Misconception.** A dimension of size 1 is of no use and can be dropped.
#
# **Hint.** One query gives a matrix of one row, (1, m), and one key a matrix of one column.
# Whoever calls the function counts on two dimensions.

# %%
def attention_weights(scores, d_k):
    return torch.softmax(scores / d_k**0.5, dim=-1).squeeze()

# %% [markdown]
# ## wrong: zero_means_hidden
#
# **Misconception.** A score of 0 means that the key is not there.
#
# **Hint.** 0 is a score like any other: the query and the key are at right angles. It gets its
# weight.

# %%
def attention_weights(scores, d_k):
    return torch.softmax(scores.masked_fill(scores == 0, float("-inf")) / d_k**0.5, dim=-1)

# %% [markdown]
# ## wrong: sums_stood_up_when_needed
#
# **Misconception.** Row sums need a second dimension only where the sizes do not fit.
#
# **Hint.** With as many queries as keys they fit, but lie along the wrong dimension: column j is
# divided by the sum of row j. Keep the dimension always.

# %%
def attention_weights(scores, d_k):
    scaled = scores / d_k**0.5
    powers = torch.exp(scaled - scaled.amax(dim=-1, keepdim=True))
    sums = powers.sum(dim=-1)
    if len(sums) != powers.shape[1]:
        sums = sums.unsqueeze(1)
    return powers / sums

# %% [markdown]
# ## wrong: one_key_squeezed
#
# **Misconception.** With one key alone the result is a list of weights.
#
# **Hint.** It is a matrix with one column, (n, 1).

# %%
def attention_weights(scores, d_k):
    return torch.softmax(scores / d_k**0.5, dim=-1).squeeze(-1)

# %% [markdown]
# ## wrong: one_query_squeezed
#
# **Misconception.** With one query alone the result is one row.
#
# **Hint.** It is a matrix with one row, (1, m).

# %%
def attention_weights(scores, d_k):
    return torch.softmax(scores / d_k**0.5, dim=-1).squeeze(0)

# %% [markdown]
# ## wrong: float32_inside
#
# **Misconception.** float32 is precise enough on the way, as long as the result has the right
# type.
#
# **Hint.** Near 10,000 float32 rounds at the third decimal, and that is lost. Compute in the type
# that comes in.

# %%
def attention_weights(scores, d_k):
    return torch.softmax(scores.float() / d_k**0.5, dim=-1).to(scores.dtype)
