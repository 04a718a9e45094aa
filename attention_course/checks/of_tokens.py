"""Check tokens drawn from logits: how often each comes up, never which one came when."""

from collections.abc import Sequence
from math import sqrt

import torch
from torch import Tensor

from attention_course.checks.of_attention import tensors
from autograde.rubric.checks import Reading, Unreadable, check
from autograde.values.base import Plain, dtype_of

SURE = 1 - 1e-9
VARIANCE = 0.25
"""The most that a share can vary: so its limit is wide enough that a mistake reads alike when drawn
again."""


@check
def drawn_tokens(value: Plain, before: Plain) -> list[Reading]:
    """Check two draws of a token for each row of logits; before = (logits, temperature, top_p).

    The last two may be missing. Equal rows are counted together. A limit is six standard errors.
    """
    logits, temperature, top_p = [*before, 1.0, 1.0][:3]
    first, second = draws = _pair(value, len(logits))
    if any(bool(((drawn < 0) | (drawn >= logits.shape[1])).any()) for drawn in draws):
        raise Unreadable(f"a drawn token is not one of 0 to {logits.shape[1] - 1}")
    distinct, which = torch.unique(logits, dim=0, return_inverse=True)
    chances = nucleus(distinct, temperature, top_p)  # (rows, v)
    counts = torch.zeros_like(chances)
    for drawn in draws:
        counts.index_put_((which, drawn), torch.ones(len(drawn)).double(), accumulate=True)
    outside = counts.masked_fill(chances > 0, 0.0)
    readings = [_outside(outside)]
    for row, (seen, wanted) in enumerate(zip(counts, chances, strict=True)):
        total = float(seen.sum())
        for token, chance in enumerate(wanted.tolist()):
            limit = 6 * sqrt(VARIANCE / total)
            share = float(seen[token]) / total
            symptom = f"token {token} of one row comes up in {share:.3f} of {total:.0f} draws, "
            symptom += f"expected {chance:.3f}"
            readings.append(Reading(f"row {row}", share, chance, limit, symptom))
    return [*readings, *_repeats(first == second, float(chances.square().sum(-1)[which].mean()))]


def nucleus(logits: Tensor, temperature: float, top_p: float) -> Tensor:
    """Return the probabilities to draw from, (rows, v), in float64."""
    chances = torch.softmax(logits.double() / temperature, dim=-1)
    ordered, places = chances.sort(dim=-1, descending=True)
    before = ordered.cumsum(dim=-1) - ordered  # the sum of the likelier ones
    kept = torch.zeros_like(chances).scatter(-1, places, ordered * (before < top_p))
    return kept / kept.sum(dim=-1, keepdim=True)


def _pair(value: Plain, rows: int) -> Sequence[Tensor]:
    drawn = tensors(value)
    for each in drawn:
        if tuple(each.shape) != (rows,):
            raise Unreadable(f"the shape is {tuple(each.shape)}, expected ({rows},)")
        if each.dtype != torch.int64:
            raise Unreadable(f"the tokens are {dtype_of(each)}, not int64")
    if len(drawn) != 2:
        raise Unreadable("the record of draws cannot be read")
    return drawn


def _outside(counts: Tensor) -> Reading:
    found = counts.sum() > 0
    token = int(counts.sum(dim=0).argmax())
    symptom = f"token {token} is drawn, although likelier ones reach top_p without it"
    return Reading("tokens outside top_p", float(found), 0, 0.1, symptom)


def _repeats(same: Tensor, wanted: float) -> list[Reading]:
    """Return whether two calls agree too often; nothing where each row has one possible token."""
    if wanted > SURE:
        return []
    share, limit = float(same.double().mean()), 6 * sqrt(VARIANCE / same.numel())
    symptom = "two calls draw the same tokens too often"
    return [Reading("the repeats", max(share, wanted), wanted, limit, symptom)]
