"""Wrong answers for the benchmark alone: edits of the reference that no variant makes.

Known mistakes are recognised from stored outcomes, so a class made of them would be too easy.
"""

MISTAKES: dict[str, tuple[str, str]] = {
    "attention_scores": ("queries @ keys.T", "(queries @ keys.T).abs()"),
    "stable_softmax": ("(x - largest).exp()", "2 ** (x - largest)"),
    "attention_weights": ("scores / d_k**0.5", "scores.round(decimals=1) / d_k**0.5"),
    "context_vectors": ("weights @ values", "weights.round(decimals=2) @ values"),
    "SelfAttention_v1": ("queries = x @ self.W_query", "queries = 0.9 * x @ self.W_query"),
    "SelfAttention_v2": ("values = self.W_value(x)", "values = self.W_value(x).relu()"),
    "transplant": ("context(donor)[-1:]", "context(donor)[-1:].relu()"),
    "causal_mask": ("torch.ones(n, n).tril()", "torch.ones(n, n).tril(diagonal=n // 4 - 1)"),
    "apply_mask": ("masked_fill(mask == 0, 0.0)", "masked_fill(mask == 0, 1e-3)"),
    "renormalise": ("weights / sums.masked", "weights.square() / sums.masked"),
    "tril_causal_weights": ("scores / math.sqrt(d_k)", "scores.clamp(-2, 2) / math.sqrt(d_k)"),
    "future_mask": (".triu(diagonal=1)", ".triu(diagonal=1).flip(0)"),
    "mask_scores": ('float("-inf")', "-7.5"),
    "causal_weights": ("/ math.sqrt(d_k)", "/ (math.sqrt(d_k) + 0.1)"),
    "padding_and_causal": ("padding_mask(lengths, n)", "padding_mask(lengths.flip(0), n)"),
    "keep_mask": (">= p).float()", ">= p / 2).float()"),
    "inverted_dropout": ("/ (1 - p)", "/ (1 - p / 2)"),
    "spread_after_dropout": ("p / (1 - p) *", "p / (1 + p) *"),
    "CausalAttention": ("weights = self.dropout(weights)", "weights = self.dropout(weights) ** 2"),
    "peeks": ("1e-4 * before.abs().max()", "0.5 * before.abs().max()"),
    "MultiHeadAttentionWrapper": ("head(x) for", "head(x).sin() for"),
    "split_heads": (".transpose(1, 2)", ".transpose(1, 2).flip(1)"),
    "merge_heads": ("x.transpose(1, 2)", "x.roll(1, 1).transpose(1, 2)"),
    "silence": ("else at] = 0", "else at] *= 0.1"),
    "FeedForward": ("nn.GELU()", "nn.Tanh()"),
    "TransformerBlock": ("x = x + self.feed_forward", "x = x - self.feed_forward"),
    "TinyGPT": ("self.position_embedding.weight[:n]", "self.position_embedding.weight[-n:]"),
    "sample": ("logits / temperature", "logits / temperature**2"),
    "loss_of": ("scores.flatten(0, 1)", "2 * scores.flatten(0, 1)"),
    "sliding_window_mask": ("(back >= window)", "(back >= 2 * window)"),
    "cache_bytes": ("2 * layers", "3 * layers"),
    "grouped_query_attention": ("math.sqrt(d)", "math.sqrt(d + 1)"),
}
"""For each exercise the text to replace in the reference, and what comes in its place."""
