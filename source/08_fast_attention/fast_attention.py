# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Fast attention: the same numbers, without the matrix

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
import os
import time

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from autograde.notebook import beside, chart, explore, heatmap, hint, panels, progress, rubric, show, table, why
from autograde.notebook.course_model import answers, attention_of, begin, course_model, write
from autograde.notebook.language import encode, stories
from autograde.notebook.tiny_gpt import MultiHeadAttention  # lesson 06's layer, as the trained model has it

# "cuda" runs the lesson on a GPU
device = torch.device(os.environ.get("AUTOGRADE_DEVICE", "cpu"))

tokens = ["Your", "journey", "starts", "with", "one", "step"]
inputs = torch.tensor(
    [
        [0.43, 0.15, 0.89],
        [0.55, 0.87, 0.66],
        [0.57, 0.85, 0.64],
        [0.22, 0.58, 0.33],
        [0.77, 0.25, 0.10],
        [0.05, 0.80, 0.55],
    ],
    device=device,
)  # (6, 3): one row for each token


def future(n):
    """Lesson 03's mask (n, n): True above the diagonal, hidden."""
    return torch.ones(n, n, dtype=torch.bool, device=device).triu(diagonal=1)


def plain_attention(q, k, v, causal=False):
    """Lessons 01 to 03 in three lines: the scores, their softmax, the context vectors, (..., n, d) each."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # (..., n, n)
    if causal:
        scores = scores.masked_fill(future(q.shape[-2]), -math.inf)
    return scores.softmax(dim=-1) @ v


# %% nbgrader={"grade": false, "grade_id": "online_softmax", "locked": false, "schema_version": 3, "solution": true, "task": false}
def online_softmax(x, block):
    """Softmax of a 1-D tensor, read block by block with a running maximum and sum."""
    ### BEGIN SOLUTION
    largest = x.new_tensor(-math.inf)  # of what has been read
    total = x.new_tensor(0.0)  # of exp(x - largest)
    for part in x.split(block):
        larger = torch.maximum(largest, part.amax())
        total = total * torch.exp(largest - larger) + torch.exp(part - larger).sum()
        largest = larger
    return torch.exp(x - largest) / total
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_online_softmax", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
# The rubric of `online_softmax`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("online_softmax", forbids=["softmax", "softmin", "logsumexp", "cross_entropy", "scaled_dot_product_attention"])
def _(r):
    rising, far = 3 * r.normal(12).sort().values, 12 * r.normal(8).argsort().float() - 1e4
    cases = (rising.flip(0), 4), (rising, 4), (3 * r.normal(23), 5), (1e4 * r.uniform(9), 2), (far, 3)
    r.idea.sums_in_blocks("block by block: no maximum or sum is over more than block numbers", online_softmax, *cases)
    r.each("blocks of one number, a short last block, a block longer than x", online_softmax, (2 * r.normal(7), 1), (2 * r.normal(11), 4), (r.normal(3), 8))
    r.each("no inf or nan for numbers of ±10,000", online_softmax, (1e4 * r.uniform(8), 2), (far, 2))
    r.forbids("is written from exp, maxima and sums", online_softmax)
    r.conventions(online_softmax, 2 * r.normal(10), 3)

# %% nbgrader={"grade": false, "grade_id": "tiled_attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
def tiled_attention(q, k, v, block, causal=False):
    """Attention from tiles of block queries and block keys, (..., n, d) each."""
    ### BEGIN SOLUTION
    n, d = q.shape[-2:]
    outputs = []
    for top in range(0, n, block):
        queries = q[..., top : top + block, :] / math.sqrt(d)  # (..., r, d), r rows of this tile
        largest = queries.new_full((*queries.shape[:-1], 1), -math.inf)  # (..., r, 1)
        total, mixture = torch.zeros_like(largest), 0.0  # (..., r, 1), (..., r, d)
        for left in range(0, top + 1 if causal else n, block):
            keys, values = k[..., left : left + block, :], v[..., left : left + block, :]  # (..., c, d)
            scores = queries @ keys.mT  # (..., r, c)
            if causal and left == top:
                scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(diagonal=1), -math.inf)
            larger = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))
            shrink, exps = torch.exp(largest - larger), torch.exp(scores - larger)
            total = total * shrink + exps.sum(dim=-1, keepdim=True)
            mixture = mixture * shrink + exps @ values
            largest = larger
        outputs.append(mixture / total)
    return torch.cat(outputs, dim=-2)
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_tiled_attention", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
# The rubric of `tiled_attention`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("tiled_attention")
def _(r):
    small, pairs = [r.normal(5, 3) for _ in range(3)], [2 * r.normal(2, 3, 9, 4) for _ in range(3)]
    large, deep = [r.normal(40, 4) for _ in range(3)], [r.normal(2, 43, 4) for _ in range(3)]
    whole = *[(100 * r.normal(40, 4)).round() for _ in range(2)], r.normal(40, 4)  # scores of ±10,000
    r.each("full attention, for one sentence, for heads, for scores of ±10,000", tiled_attention, (*small, 2), (*pairs, 2), (*whole, 9))
    r.each("causal: every token sees itself and those before it", tiled_attention, (*small, 2, True), (*pairs, 3, True), (*pairs, 4, True))
    r.each("blocks of one token, one block, a block longer than the sentence", tiled_attention, (*small, 1, True), (*small, 5), (*pairs, 20, True))
    cases = (*large, 7), (*deep, 8, True), (*whole, 8, True)
    r.idea.attends_in_blocks("at most block keys at a time, and never n x n scores", tiled_attention, *cases)
    r.skips_the_future("causal: blocks wholly in the future are left out", tiled_attention, (*large, 8), (*deep, 8))
    r.conventions(tiled_attention, *small, 2, True)

# %% nbgrader={"grade": false, "grade_id": "with_sdpa", "locked": false, "schema_version": 3, "solution": true, "task": false}
def with_sdpa(q, k, v, mask):
    """Attention from PyTorch's function, for a mask where True = hidden."""
    ### BEGIN SOLUTION
    return scaled_dot_product_attention(q, k, v, attn_mask=~mask)
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_with_sdpa", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
# The rubric of `with_sdpa`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("with_sdpa")
def _(r):
    causal = torch.ones(6, 6, dtype=torch.bool, device=device).triu(diagonal=1)
    one, heads = [2 * r.normal(6, 3) for _ in range(3)], [2 * r.normal(2, 4, 6, 5) for _ in range(3)]
    r.idea.each("True hides: no token sees the future", with_sdpa, (*one, causal), (*heads, causal))
    r.idea.each("any other mask, also one for each sentence", with_sdpa, (*one, r.mask(6, 6)), (*heads, r.mask(2, 1, 6, 6)), (*heads, r.mask(2, 1, 1, 6)))
    r.call("a mask that hides nothing", with_sdpa, *heads, torch.zeros_like(causal))
    r.conventions(with_sdpa, *one, r.mask(6, 6))

# %% nbgrader={"grade": false, "grade_id": "to_torch", "locked": false, "schema_version": 3, "solution": true, "task": false}
def to_torch(mha):
    """PyTorch's own layer with the numbers of mha."""
    ### BEGIN SOLUTION
    layers = [mha.W_query, mha.W_key, mha.W_value]
    d = mha.out_proj.in_features
    like = {"device": mha.out_proj.weight.device, "dtype": mha.out_proj.weight.dtype}
    made = nn.MultiheadAttention(d, mha.num_heads, batch_first=True, **like)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
        made.in_proj_bias.zero_()
        if mha.W_query.bias is not None:
            made.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
    made.out_proj.load_state_dict(mha.out_proj.state_dict())
    return made
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_to_torch", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
# The rubric of `to_torch`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("to_torch")
def _(r):
    mha = r.layer(MultiHeadAttention, d_in=6, d_out=6, context_length=9, dropout=0.0, num_heads=3, qkv_bias=False)
    mha.linear("W_query W_key W_value", "d_in -> d_out", bias="qkv_bias")
    mha.linear("out_proj", "d_out -> d_out", bias="always")
    torchs = r.converts(to_torch, mha)
    torchs.idea.outputs("gives the output of mha, with the causal mask", r.normal(1, 2, 6), r.normal(2, 7, 6), r.normal(3, 9, 6))
    torchs.outputs("with a bias in queries, keys and values", r.normal(2, 7, 6), qkv_bias=True)
    torchs.outputs("one head, and trained with dropout", r.normal(3, 6, 6), num_heads=1, dropout=0.5)
    torchs.outputs("float64", r.normal(2, 7, 6, dtype=torch.float64))
    torchs.keeps_source("mha is as it was", r.normal(2, 4, 6), qkv_bias=True)

# %% nbgrader={"grade": false, "grade_id": "sliding_window_mask", "locked": false, "schema_version": 3, "solution": true, "task": false}
def sliding_window_mask(n, window):
    """True where hidden: the future, and everything window or more tokens back, (n, n)."""
    ### BEGIN SOLUTION
    if window < 1:
        raise ValueError(f"window must be at least 1, got {window}")
    place = torch.arange(n, device=device)
    back = place[:, None] - place  # (n, n): so many tokens back is key j for query i
    return (back < 0) | (back >= window)
    ### END SOLUTION


# %% jupyter={"source_hidden": true} nbgrader={"grade": true, "grade_id": "test_sliding_window_mask", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["raises-exception"]
# The rubric of `sliding_window_mask`: each line is a sentence of the contract. Open it to read what is asked.
@rubric("sliding_window_mask")
def _(r):
    n = r.integer(9, 20)
    r.idea.each("hides the future, and what is window or more tokens back", sliding_window_mask, (4, 2), (n, 3), (n, r.integer(4, 8)))
    r.each("a window of 1 shows each token itself, a wide one everything before it", sliding_window_mask, (3, 1), (n, 1), (n, n), (n, n + 5))
    r.call("a single token", sliding_window_mask, 1, r.integer(1, 3))
    r.refuses("raises ValueError when window is below 1", sliding_window_mask, (4, 0), (5, -2))
