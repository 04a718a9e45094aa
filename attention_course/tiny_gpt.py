"""A small GPT, as the lessons build it, with its attention in plain sight.

In shapes, b is the batch, n the tokens of a sentence, d the model's width, h the number of heads,
and v the number of words.
"""

import math
from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn


def one_sentence(
    x: Tensor,
    W_query: Callable[[Tensor], Tensor],
    W_key: Callable[[Tensor], Tensor],
    W_value: Callable[[Tensor], Tensor],
) -> Tensor:
    """Lessons 01 to 03: causal attention over one sentence, (n, d_in) -> (n, d_out)."""
    queries, keys, values = W_query(x), W_key(x), W_value(x)  # (n, d_out) each
    scores = queries @ keys.T  # (n, n)
    future = torch.ones_like(scores, dtype=torch.bool).triu(diagonal=1)
    hidden = scores.masked_fill(future, -math.inf)  # (n, n)
    weights = torch.softmax(hidden / math.sqrt(keys.shape[-1]), dim=-1)  # (n, n)
    return weights @ values  # (n, d_out)


class MultiHeadAttention(nn.Module):
    """Lesson 06: several heads cut from one matrix, (b, n, d_in) -> (b, n, d_out)."""

    mask: Tensor

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"num_heads must divide d_out, got {num_heads} and {d_out}")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        future = torch.ones(context_length, context_length, dtype=torch.bool).triu(diagonal=1)
        self.register_buffer("mask", future, persistent=False)  # True: hidden

    def split(self, x: Tensor) -> Tensor:
        """Give each head its part of every token: (b, n, d) -> (b, h, n, d/h)."""
        parts: Tensor = x.unflatten(-1, (self.num_heads, -1))  # (b, n, h, d/h)
        return parts.transpose(1, 2)

    def weights(self, x: Tensor) -> Tensor:
        """Return how much each token looks at each other one, for each head: (b, h, n, n)."""
        n = x.shape[1]
        queries, keys = self.split(self.W_query(x)), self.split(self.W_key(x))  # (b, h, n, d/h)
        scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])  # (b, h, n, n)
        return scores.masked_fill(self.mask[:n, :n], -math.inf).softmax(dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        weights = self.dropout(self.weights(x))  # (b, h, n, n)
        heads = weights @ self.split(self.W_value(x))  # (b, h, n, d/h)
        out: Tensor = self.out_proj(heads.transpose(1, 2).flatten(2))  # (b, n, d)
        return out


class FeedForward(nn.Module):
    """Lesson 07: two layers, applied to each token on its own, (b, n, d) -> (b, n, d)."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model)
        )

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layers(x)  # (b, n, d) -> (b, n, 4d) -> (b, n, d)
        return out


class TransformerBlock(nn.Module):
    """Lesson 07: attention, then the feed-forward layers, each added to what came in."""

    def __init__(self, d_model: int, context_length: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attention = MultiHeadAttention(d_model, d_model, context_length, dropout, num_heads)
        self.norm2 = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))  # (b, n, d)
        x = x + self.feed_forward(self.norm2(x))  # (b, n, d)
        return x


class TinyGPT(nn.Module):
    """Lesson 07: tokens to scores of the next token, (b, n) -> (b, n, v)."""

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        context_length: int,
        num_heads: int,
        num_layers: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.context_length = context_length
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = nn.Embedding(context_length, d_model)
        self.blocks = nn.ModuleList(
            TransformerBlock(d_model, context_length, num_heads, dropout) for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size, bias=False)

    def layers(self) -> list[TransformerBlock]:
        """Return the blocks, first to last."""
        return [cast(TransformerBlock, block) for block in self.blocks]

    def embed(self, tokens: Tensor) -> Tensor:
        """Return each token's vector plus that of its position: (b, n) -> (b, n, d)."""
        n = tokens.shape[1]
        if n > self.context_length:
            raise ValueError(f"at most {self.context_length} tokens fit, got {n}")
        x: Tensor = self.token_embedding(tokens) + self.position_embedding.weight[:n]  # (b, n, d)
        return x

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)  # (b, n, d)
        for block in self.blocks:
            x = block(x)  # (b, n, d)
        scores: Tensor = self.head(self.norm(x))  # (b, n, v)
        return scores

    def attention_weights(self, tokens: Tensor) -> Tensor:
        """Return what each head of each layer looks at: (b, n) -> (layers, b, h, n, n)."""
        x = self.embed(tokens)  # (b, n, d)
        weights = []
        for block in self.layers():
            weights.append(block.attention.weights(block.norm1(x)))  # (b, h, n, n)
            x = block(x)  # (b, n, d)
        return torch.stack(weights)
