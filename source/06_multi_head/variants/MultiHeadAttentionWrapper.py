# %% [markdown]
# # MultiHeadAttentionWrapper
#
# 1. Make a list with `num_heads` layers in `__init__`. In `forward` call each of them on the same
#    x.
# 2. An `nn.ModuleList` is made from a list of modules. A loop makes each of them anew.
#    `torch.cat` puts tensors side by side along the dimension you name.
# 3. The last dimension is the one that grows. Hand d_in, d_out, context_length, dropout and
#    qkv_bias on to every `CausalAttention`.

# %% [markdown]
# ## right: appended
#
# The heads are added one by one, by keyword.

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList()
        for _ in range(num_heads):
            self.heads.append(
                CausalAttention(d_in, d_out, context_length=context_length, dropout=dropout, qkv_bias=qkv_bias)
            )

    def forward(self, x):
        context = [head(x) for head in self.heads]
        return torch.concat(context, 2)

# %% [markdown]
# ## right: filled
#
# The output is filled head by head.

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        options = (d_in, d_out, context_length, dropout, qkv_bias)
        self.size = d_out
        self.heads = nn.ModuleList([CausalAttention(*options) for _ in range(num_heads)])

    def forward(self, x):
        b, n, _ = x.shape
        output = x.new_zeros(b, n, self.size * len(self.heads))
        for h, head in enumerate(self.heads):
            output[..., h * self.size : (h + 1) * self.size] = head(x)
        return output

# %% [markdown]
# ## right: stacked_then_flattened
#
# A dimension for the heads, joined with the last one.

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.num_heads = num_heads
        heads = []
        while len(heads) < num_heads:
            heads.append(CausalAttention(d_in, d_out, context_length, dropout, bool(qkv_bias)))
        self.heads = nn.ModuleList(heads)

    def forward(self, x):
        return torch.stack([self.heads[h](x) for h in range(self.num_heads)], dim=2).flatten(start_dim=2)

# %% [markdown]
# ## right: hstack_of_transposes
#
# Another way to put them side by side.

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super(MultiHeadAttentionWrapper, self).__init__()

        def head():
            return CausalAttention(d_in, d_out, context_length, dropout, qkv_bias=qkv_bias)

        self.heads = nn.ModuleList(head() for _ in range(num_heads))

    def forward(self, x):
        return torch.hstack([head(x).transpose(1, 2) for head in self.heads]).transpose(1, 2)

# %% [markdown]
# ## right: list_kept_too
#
# The size is checked, and the heads' outputs come from map.

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.context_length = context_length
        self.heads = nn.ModuleList([CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for h in range(num_heads)])

    def forward(self, x):
        assert x.shape[1] <= self.context_length, f"{x.shape[1]} tokens"
        return torch.cat(tuple(map(lambda head: head(x), self.heads)), axis=-1)

# %% [markdown]
# ## wrong: plain_list
#
# **Misconception.** A Python list of layers is as good as an `nn.ModuleList`.
#
# **Hint.** A module finds layers that are attributes, not those in a plain list: its parameters
# are empty. There is a list for modules.

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = [CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)]

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)

# %% [markdown]
# ## wrong: one_head_many_times
#
# **Misconception.** A list times a number makes new layers.
#
# **Hint.** `[head] * 3` is the same layer three times, with one set of matrices. Make each in the
# loop.

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            [CausalAttention(d_in, d_out, context_length, dropout, qkv_bias)] * num_heads
        )

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)

# %% [markdown]
# ## wrong: copies_of_one_head
#
# **Misconception.** A copy of a head is a new head.
#
# **Hint.** Copies start from the same numbers, so all heads look at the same things. Make each
# anew.

# %%
import copy

class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList()
        head = CausalAttention(d_in, d_out, context_length, dropout, qkv_bias)
        for _ in range(num_heads):
            self.heads.append(copy.deepcopy(head))

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)

# %% [markdown]
# ## wrong: size_divided
#
# **Misconception.** d_out is the size of all heads together.
#
# **Hint.** In the wrapper d_out is the size of one head. The output is num_heads times as long.

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out // num_heads, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)

# %% [markdown]
# ## wrong: joined_along_the_tokens
#
# **Misconception.** Side by side means along the tokens.
#
# **Hint.** The number of tokens stays n. Which dimension grows?

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=1)

# %% [markdown]
# ## wrong: joined_along_the_batch
#
# **Misconception.** `torch.cat` needs no dimension.
#
# **Hint.** Without one it joins along dimension 0, the sentences. Which dimension grows?

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads])

# %% [markdown]
# ## wrong: summed
#
# **Misconception.** The heads are added up.
#
# **Hint.** Then nobody can tell any more which head said what. Put them side by side.

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x):
        return sum(head(x) for head in self.heads)

# %% [markdown]
# ## wrong: stacked
#
# **Misconception.** A new dimension for the heads is what is wanted.
#
# **Hint.** The output has three dimensions. `torch.stack` makes a fourth; which function does
# not?

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x):
        return torch.stack([head(x) for head in self.heads], dim=-1)

# %% [markdown]
# ## wrong: features_alternate
#
# **Misconception.** The order within the output does not matter.
#
# **Hint.** First come all numbers of head 0, then all of head 1.

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x):
        return torch.stack([head(x) for head in self.heads], dim=-1).flatten(2)

# %% [markdown]
# ## wrong: heads_in_a_row
#
# **Misconception.** Where it fits, the output of one head is the input of the next.
#
# **Hint.** All heads read the same x. Look at the drawing.

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x):
        outputs = []
        for head in self.heads:
            output = head(x)
            outputs.append(output)
            if output.shape == x.shape:
                x = output
        return torch.cat(outputs, dim=-1)

# %% [markdown]
# ## wrong: bias_forgotten
#
# **Misconception.** Attention layers never have a bias.
#
# **Hint.** They have one when qkv_bias is true. Does it reach the heads?

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout) for _ in range(num_heads)
        )

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)

# %% [markdown]
# ## wrong: bias_always
#
# **Misconception.** A bias does no harm.
#
# **Hint.** There is one only when qkv_bias is true, which it is not by default.

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, True) for _ in range(num_heads)
        )

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)

# %% [markdown]
# ## wrong: dropout_forgotten
#
# **Misconception.** Nothing needs to be dropped in a small example.
#
# **Hint.** Hand `dropout` on to every head, and leave their mode to whoever calls `train()` and
# `eval()`.

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, 0.0, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)

# %% [markdown]
# ## wrong: eval_in_forward
#
# **Misconception.** Nothing needs to be dropped when the heads are used.
#
# **Hint.** In training dropout belongs to them. Hand `dropout` on to every head, and leave their
# mode to whoever calls `train()` and `eval()`.

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x):
        self.heads.eval()
        return torch.cat([head(x) for head in self.heads], dim=-1)

# %% [markdown]
# ## wrong: dropout_on_the_outputs
#
# **Misconception.** Dropout belongs behind the heads.
#
# **Hint.** Each head drops its own weights, and `eval()` switches that off. A function of your
# own would need to be told.

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.p = dropout
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, 0.0, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x):
        return nn.functional.dropout(torch.cat([head(x) for head in self.heads], dim=-1), self.p)

# %% [markdown]
# ## wrong: dropout_after_the_heads_too
#
# **Misconception.** Twice dropped is better dropped.
#
# **Hint.** The heads drop weights already. In `eval()` nothing may be dropped at all.

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.p = dropout
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x):
        return nn.functional.dropout(torch.cat([head(x) for head in self.heads], dim=-1), self.p)

# %% [markdown]
# ## wrong: context_as_long_as_wanted
#
# **Misconception.** A longer context does no harm.
#
# **Hint.** A wrapper with room for more takes input that the contract refuses. Hand
# context_length on as it is.

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, 4 * context_length, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)

# %% [markdown]
# ## wrong: one_head_too_few
#
# **Misconception.** `range(1, num_heads)` counts from one.
#
# **Hint.** It leaves out the last. How many heads are in the list?

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(1, num_heads)
        )

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)

# %% [markdown]
# ## wrong: projected
#
# **Misconception.** Several heads need an out_proj here, too.
#
# **Hint.** In this class the outputs stand side by side and that is all. `out_proj` comes in part
# 4.

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )
        self.out_proj = nn.Linear(num_heads * d_out, num_heads * d_out)

    def forward(self, x):
        return self.out_proj(torch.cat([head(x) for head in self.heads], dim=-1))

# %% [markdown]
# ## wrong: an_unused_layer
#
# **Misconception.** A layer that is not used does no harm.
#
# **Hint.** It has parameters that never learn. Keep what is needed: the heads.

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )
        self.out_proj = nn.Linear(num_heads * d_out, num_heads * d_out)

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)

# %% [markdown]
# ## wrong: first_sentence_for_all
#
# **Misconception.** All sentences of a batch are alike.
#
# **Hint.** A batch holds different sentences. Give every head the whole x.

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x):
        return torch.cat([head(x[:1]).expand(len(x), -1, -1) for head in self.heads], dim=-1)

# %% [markdown]
# ## wrong: cut_off_from_gradients
#
# **Misconception.** A list of results passes gradients only when they are detached first.
#
# **Hint.** `detach` cuts the results off, so nothing learns. Leave them as they are.

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x):
        return torch.cat([head(x).detach() for head in self.heads], dim=-1)

# %% [markdown]
# ## wrong: changed_in_place
#
# **Misconception.** x is no longer needed after the heads have read it.
#
# **Hint.** The caller still needs x as it was. Which call ends with an underscore?

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x):
        output = torch.cat([head(x) for head in self.heads], dim=-1)
        with torch.no_grad():
            x.zero_()
        return output

# %% [markdown]
# ## wrong: float32_only
#
# **Misconception.** Everything is float32.
#
# **Hint.** The output has the dtype of the input: float64 in, float64 out.

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1).float()

# %% [markdown]
# ## wrong: another_class_for_heads
#
# **Misconception.** Any attention layer is a head.
#
# **Hint.** Each head shall be a `CausalAttention`, so that what works with one works with all.

# %%
class Head(nn.Module):
    def __init__(self, *options):
        super().__init__()
        made = CausalAttention(*options)
        self.W_query, self.W_key, self.W_value, self.dropout = made.W_query, made.W_key, made.W_value, made.dropout
        self.register_buffer("mask", made.mask)

    def forward(self, x):
        return CausalAttention.forward(self, x)

    def weights(self, x):
        return CausalAttention.weights(self, x)


class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(Head(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads))

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)

# %% [markdown]
# ## wrong: weights_remembered
#
# **Misconception.** In `eval()` nothing is random, so the weights can be kept.
#
# **Hint.** Another batch has other queries and keys, so its weights are others.

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )
        self.kept = {}

    def forward(self, x):
        if self.training:
            return torch.cat([head(x) for head in self.heads], dim=-1)
        if x.shape not in self.kept:
            self.kept[x.shape] = [head.weights(x) for head in self.heads]
        return torch.cat([w @ head.W_value(x) for w, head in zip(self.kept[x.shape], self.heads)], dim=-1)

# %% [markdown]
# ## wrong: one_head_refused
#
# **Misconception.** Several heads are at least two.
#
# **Hint.** One head is fine: then the output is that head's.

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if num_heads < 2:
            raise ValueError(f"num_heads must be at least 2, got {num_heads}")
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)

# %% [markdown]
# ## wrong: context_one_too_short
#
# **Misconception.** A context of n tokens has places 0 to n - 1, so the largest number is n - 1.
#
# **Hint.** Give it a sentence exactly as long as the context. `context_length` is a number of tokens.

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length - 1, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)

# %% [markdown]
# ## wrong: output_written_into_x
#
# **Misconception.** When the sizes are equal, the output may be written into x.
#
# **Hint.** Somebody may still need x. Compare it before and after a call with one head and `d_out` equal to `d_in`.

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x):
        output = torch.cat([head(x) for head in self.heads], dim=-1)
        return x.copy_(output) if output.shape == x.shape and not x.requires_grad else output

# %% [markdown]
# ## wrong: float32_and_back
#
# **Misconception.** Put together in float32 and cast back, the numbers are the same.
#
# **Hint.** The dtype that comes out is right. How many digits are?

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x):
        return torch.cat([head(x).float() for head in self.heads], dim=-1).to(x.dtype)

# %% [markdown]
# ## wrong: functional_dropout_always
#
# **Misconception.** Functional dropout knows about `eval()`.
#
# **Hint.** It drops whenever it is called. A head called as a layer, `head(x)`, knows its mode.

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x):
        drop = nn.functional.dropout
        return torch.cat([drop(head.weights(x), head.dropout.p) @ head.W_value(x) for head in self.heads], dim=-1)

# %% [markdown]
# ## wrong: two_heads_only
#
# **Misconception.** There are two heads, as in the table.
#
# **Hint.** There are as many as `num_heads` says, and each of them counts.

# %%
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads[:2]], dim=-1)
