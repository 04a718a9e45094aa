"""Functions and modules that rubrics pass to answers; students might meet any of them."""

from collections.abc import Callable
from math import inf, sqrt

import torch
from torch import Tensor, nn


def renormalised(scores: Tensor) -> Tensor:
    """Return causal weights (n, n): softmax, tril, each row divided by its sum."""
    weights = torch.softmax(scores, dim=-1).tril()
    return weights / weights.sum(dim=-1, keepdim=True)


def steep(scores: Tensor) -> Tensor:
    """Return 1000 times the past scores (n, n): any change of them shows at once."""
    return 1000 * scores.tril()


def moving_by(change: Tensor, scores: Tensor) -> Callable[[Tensor], Tensor]:
    """Return a function of scores (n, n) whose weights move by `change` once the scores differ."""

    before = scores.clone()  # an answer may change the scores themselves

    def weights(given: Tensor) -> Tensor:
        return 8 + before + change * (given != before).any()

    return weights


class Attention(nn.Module):
    """One head (b, n, d) -> (b, n, d); `mask` is "causal", "none" or "after softmax"."""

    def __init__(self, d: int, mask: str) -> None:
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d, d, bias=False) for _ in range(3))
        self.mask = mask

    def forward(self, x: Tensor) -> Tensor:
        scores = self.W_query(x) @ self.W_key(x).mT / sqrt(x.shape[-1])  # (b, n, n)
        future = torch.ones_like(scores).triu(diagonal=1) == 1
        if self.mask == "causal":
            scores = scores.masked_fill(future, -inf)
        weights = torch.softmax(scores, dim=-1)
        if self.mask == "after softmax":
            weights = weights.masked_fill(future, 0.0)
        context: Tensor = weights @ self.W_value(x)  # (b, n, d)
        return context


class OneLinear(nn.Module):
    """A linear layer (b, n, d) -> (b, n, d), token by token; others let its tokens see more."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.linear = nn.Linear(d, d)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.linear(x)
        return output


class TotalMinusRest(OneLinear):
    """Running sums (b, n, d) as the total minus later tokens: the future changes only rounding."""

    def forward(self, x: Tensor) -> Tensor:
        x = super().forward(x)
        later: Tensor = x.flip(1).cumsum(dim=1).flip(1) - x
        return x.sum(dim=1, keepdim=True) - later


class Quiet(Attention):
    """Attention whose outputs are a billionth of the usual size."""

    def forward(self, x: Tensor) -> Tensor:
        return 1e-9 * super().forward(x)


def half_in_training(d: int) -> nn.Module:
    """Return causal attention in training mode, followed by a part that is in eval()."""
    return nn.Sequential(Attention(d, "causal"), nn.LayerNorm(d).eval())


class OneGlance(OneLinear):
    """A linear layer whose token `at` also sees a little of token `to`."""

    def __init__(self, d: int, at: int, to: int) -> None:
        super().__init__(d)
        self.at, self.to_ = at, to
        self.called = f"token {at} looks at token {to}"

    def forward(self, x: Tensor) -> Tensor:
        glance = torch.zeros_like(x)
        glance[:, self.at] = x[:, self.to_] / 2
        return super().forward(x + glance)


class Lowered(OneLinear):
    """A linear layer whose token `at` is lowered by the squares of token `to`."""

    def __init__(self, d: int, at: int, to: int) -> None:
        super().__init__(d)
        self.at, self.to_ = at, to
        self.called = f"token {to} lowers token {at}"

    def forward(self, x: Tensor) -> Tensor:
        squares = torch.zeros_like(x)
        squares[:, self.at] = x[:, self.to_].square()
        return super().forward(x) - squares


class FaintLook(OneLinear):
    """A linear layer whose last token but one also sees a little of the last one."""

    def forward(self, x: Tensor) -> Tensor:
        glance = torch.zeros_like(x)
        glance[:, -2] = 0.001 * x[:, -1]
        return super().forward(x + glance)


class Gated(OneLinear):
    """A linear layer with a second one beside it, which counts while the drawn gate is open."""

    def __init__(self, d: int, beside: nn.Module) -> None:
        super().__init__(d)
        self.beside, self.gate = beside, nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        opened = (self.gate > 0).to(x)
        output: Tensor = super().forward(x) + opened * self.beside(x)
        return output


def gated_glance(d: int, at: int, to: int) -> nn.Module:
    """Return a linear layer whose token `at` sees a little of token `to` if its gate is open."""
    layer = Gated(d, glance := OneGlance(d, at, to))
    vars(layer)["called"] = f"{glance.called}, behind a gate"
    return layer


class RunTogether(Attention):
    """Attention over all sentences of a batch as if they were one.

    With a causal mask the first is right.
    """

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.reshape(1, -1, x.shape[-1])).view(x.shape)


class TrainingOnly(OneLinear):
    """A linear layer with dropout that sees the next token in training only, or in eval() only."""

    def __init__(self, d: int, training: bool) -> None:
        super().__init__(d)
        self.dropout, self.mode = nn.Dropout(0.5), training

    def forward(self, x: Tensor) -> Tensor:
        after = x.roll(-1, dims=1) if self.training is self.mode else 0
        return super().forward(self.dropout(x) + after)


def masked_linear(n: int, m: int) -> nn.Module:
    """Return a linear layer with two buffers."""
    layer = nn.Linear(n, m)
    layer.register_buffer("mask", torch.ones(m, m))
    layer.register_buffer("ready", torch.ones(n), persistent=False)
    return layer


def half_frozen(n: int, m: int) -> nn.Module:
    """Return two linear layers: the first is frozen, the second learns only its weight."""
    layers = nn.Sequential(nn.Linear(n, m), nn.Linear(m, n))
    layers[0].requires_grad_(False)
    layers[1].bias.requires_grad_(False)
    return layers


def tied(n: int, m: int) -> nn.Module:
    """Return two linear layers that share one weight."""
    layers = nn.Sequential(nn.Linear(n, m, bias=False), nn.Tanh(), nn.Linear(n, m))
    layers[2].weight = layers[0].weight
    return layers


def odd_shapes(n: int, m: int) -> nn.Module:
    """Return a module with parameters of no, three and one dimension, and modules in it."""
    layer = nn.Module()
    layer.scale = nn.Parameter(torch.ones(()))
    layer.tensors = nn.ParameterList([torch.ones(2, n, m), torch.ones(m)])
    layer.inner = nn.Sequential(nn.Sequential(nn.Linear(m, 2)), nn.Conv1d(n, m, 3))
    return layer


class Reader(nn.Module):
    """A causal model (b, n) -> (b, n, v) that reads each token and the mean of all up to it.

    With `calls`, it may be called so often and no more.
    """

    def __init__(self, v: int, d: int, calls: int | None = None) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(v, d), nn.Linear(2 * d, v)
        self.calls = calls

    def forward(self, ids: Tensor) -> Tensor:
        if self.calls is not None:
            if self.calls == 0:
                raise RuntimeError("the model was called once more")
            self.calls -= 1
        x = self.embedding(ids)  # (b, n, d)
        seen = torch.arange(1, x.shape[1] + 1, device=x.device)[:, None]  # (n, 1)
        scores: Tensor = self.head(torch.cat([x, x.cumsum(dim=1) / seen], dim=-1))
        return scores


LAYERS: dict[str, Callable[..., nn.Module]] = {
    "causal attention": lambda d: Attention(d, "causal"),
    "attention without a mask": lambda d: Attention(d, "none"),
    "no mask, after a LayerNorm": lambda d: nn.Sequential(nn.LayerNorm(d), Attention(d, "none")),
    "no mask, wider, before a LayerNorm": lambda d: nn.Sequential(
        Attention(d, "none"), nn.Linear(d, 2 * d), nn.LayerNorm(2 * d, elementwise_affine=False)
    ),
    "mask after softmax": lambda d: Attention(d, "after softmax"),
    "causal attention, then log_softmax": lambda d: nn.Sequential(
        Attention(d, "causal"), nn.LogSoftmax(dim=-1)
    ),
    "sentences run together": lambda d: RunTogether(d, "causal"),
    "no mask, behind a gate": lambda d: Gated(d, Attention(d, "none")),
}

MODULES: dict[str, Callable[..., nn.Module]] = {
    **LAYERS,
    "a small model": Reader,
    "a small model, for one call": lambda v, d: Reader(v, d, calls=1),
    "linear": nn.Linear,
    "two layers": lambda n, m: nn.Sequential(nn.Linear(n, m), nn.ReLU(), nn.Linear(m, n)),
    "two layers of one size": lambda n: nn.Sequential(nn.Linear(n, n), nn.Linear(n, n)),
    "odd shapes": odd_shapes,
    "with buffers": masked_linear,
    "half frozen": half_frozen,
    "shared weight": tied,
    "causal attention, half in training": half_in_training,
    "total minus the rest": TotalMinusRest,
    "small outputs, no mask": lambda d: Quiet(d, "none"),
    "one glance": OneGlance,
    "one glance that lowers": Lowered,
    "faint look at the next token": FaintLook,
    "looks ahead in training": lambda d: TrainingOnly(d, training=True),
    "looks ahead in eval()": lambda d: TrainingOnly(d, training=False),
    "one glance, behind a gate": gated_glance,
    "dropout and a gate": lambda d: Gated(d, TrainingOnly(d, training=False)),
}
