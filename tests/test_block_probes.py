"""The probes of partial results: right answers pass, the mistake that each is for does not."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from test_probes import failing
from torch import Tensor

Triple = tuple[Tensor, Tensor, Tensor]


def attended(q: Tensor, k: Tensor, v: Tensor) -> Triple:
    scores = q @ k.mT
    most = scores.amax(dim=-1)
    exps = torch.exp(scores - most[..., None])
    return most, exps.sum(dim=-1), exps @ v


def without_gradient(q: Tensor, k: Tensor, v: Tensor) -> Triple:
    most, total, mixture = attended(q, k, v)
    return most, total.detach(), mixture


def joined(a: Triple, b: Triple, instead_of_inf: float = 0) -> Triple:
    most = torch.maximum(a[0], b[0])
    shift = most.masked_fill(most.isinf(), instead_of_inf)
    one, other = torch.exp(a[0] - shift), torch.exp(b[0] - shift)
    mixture = a[2] * one[..., None] + b[2] * other[..., None]
    return most, a[1] * one + b[1] * other, mixture


def just_added(a: Triple, b: Triple) -> Triple:
    return torch.maximum(a[0], b[0]), a[1] + b[1], a[2] + b[2]


def never_empty(a: Triple, b: Triple) -> Triple:
    return joined(a, b, -torch.inf)  # and inf - inf is nan


def changes_a_part(a: Triple, b: Triple) -> Triple:
    result = joined(a, b)
    a[1].mul_(2)
    return result


def one_query_at_a_time(q: Tensor, k: Tensor, v: Tensor, block: int, causal: bool) -> Tensor:
    rows = []
    for query in q:
        scores = [(keys * query).sum(dim=-1) for keys in k.split(block)]
        most = torch.stack([part.amax() for part in scores]).amax()
        exps = [torch.exp(part - most) for part in scores]
        mixed = [
            (part[:, None] * values).sum(dim=0)
            for part, values in zip(exps, v.split(block), strict=True)
        ]
        rows.append(sum(mixed) / sum(part.sum() for part in exps))
    return torch.stack(rows)


def the_whole_matrix(q: Tensor, k: Tensor, v: Tensor, block: int, causal: bool) -> Tensor:
    return torch.softmax(q @ k.T, dim=-1) @ v


def tiling(r: Any, answer: Any) -> None:
    q, k, v = 8 * r.normal(8, 4), 4 * r.normal(8, 4), r.normal(8, 4)  # some exps are below 1e-20
    r.attends_in_blocks("tiles", answer, (q, k, v, 4, False))


def attending(r: Any, answer: Any) -> None:
    q, k, v = r.normal(4, 3), r.normal(5, 3), r.normal(5, 2)
    r.call("values", r.finished(answer), q, k, v)
    r.gradient("gradients", r.finished(answer), q, k, v)


def merging(r: Any, answer: Any) -> None:
    r.call("parts", answer, r.part(4, 3), r.part(4, 3))
    r.call("empty rows", answer, *(r.part(2, 5, 3, empty_rows=True) for _ in range(2)))
    q, k, v = r.normal(4, 3), r.normal(5, 3), r.normal(5, 2)
    r.gradient("gradients", r.merged(answer), q, k, v)
    r.unchanged("unchanged")


@pytest.mark.parametrize(
    ("lines", "right", "answer", "failed"),
    [
        (tiling, one_query_at_a_time, one_query_at_a_time, []),
        (tiling, one_query_at_a_time, the_whole_matrix, ["tiles"]),
        (attending, attended, attended, []),
        (attending, attended, without_gradient, ["gradients"]),
        (merging, joined, joined, []),
        (merging, joined, just_added, ["parts", "empty rows", "gradients"]),
        (merging, joined, never_empty, ["empty rows"]),
        (merging, joined, changes_a_part, ["unchanged"]),
    ],
)
def test_each_mistake_fails_its_lines(
    lines: Callable[[Any, Any], None], right: Any, answer: Any, failed: list[str]
) -> None:
    assert failing(lines, right, answer) == failed
