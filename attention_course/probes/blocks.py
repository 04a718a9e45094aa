"""Probes of answers that work block by block: what they read at once, make, and merge."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from attention_course.probes.operations import Dispatched
from autograde.rubric.probes.calls import Args, ContractBroken
from autograde.rubric.probes.recorder import Recorder

REDUCTIONS = {
    "amax", "aminmax", "cummax", "cumsum", "dot", "logcumsumexp", "max", "mean", "mm", "mv",
    "nansum", "norm", "sort", "std", "sum", "topk", "var",
}  # fmt: skip
PRODUCTS = ("mm", "mv", "dot", "bmm", "attention", "mul")
MOST_CAUSAL = 0.7
"""The largest share of scores allowed when the future is skipped.

With five tiles a side 0.6 suffices; with one tile too many in each row it is 0.76.
"""

Triple = tuple[Tensor, Tensor, Tensor]
"""The largest score m of each query, the sum l of exp(score - m), and the values o mixed so."""
Look = Callable[[str, list[Tensor], list[Tensor]], None]


class BlockProbes(Recorder):
    """Probes that watch every operation of an answer; each gives the answer's result."""

    def sums_in_blocks(self, line: str, answer: Callable[..., Any], *cases: Args) -> None:
        """Record results for (x, block), where no sum or maximum reads more than a block of x.

        The running sum or maximum may be read with a block that has been computed or copied.

            r.sums_in_blocks("sums a block at a time", online_softmax, (r.normal(9), 4))
        """

        def run(x: Tensor, block: int) -> Any:
            row = x.untyped_storage().data_ptr()

            def look(name: str, given: list[Tensor], made: list[Tensor]) -> None:
                for tensor in given if name in REDUCTIONS else ():
                    part_of_x = tensor.untyped_storage().data_ptr() == row
                    most, read = block + (not part_of_x), tensor.numel()
                    if tensor.is_floating_point() and read > most:
                        raise ContractBroken(
                            f"{name} over {read} numbers at once, block is {block}"
                        )

            with _Operations(look):
                return answer(x, block)

        self.record(line, "watched", run, cases, answer)

    def attends_in_blocks(self, line: str, answer: Callable[..., Any], *cases: Args) -> None:
        """Record results for (q, k, v, block, causal), made from a block of keys at a time.

        No product may read more keys or values than that, and no tensor of n by n numbers may be
        made, masks excepted.

            r.attends_in_blocks("at most block keys at a time", tiled_attention, (q, k, v, 8))
        """

        def run(q: Tensor, k: Tensor, v: Tensor, block: int, causal: bool = False) -> Any:
            many, n, unit = _counted(k)
            _, _, values = _counted(v)
            context = scaled_dot_product_attention(q, k, v, is_causal=causal)
            # where scores lie far apart, context vectors are values, and may be joined at will
            sharp = _keys_among(context, values) > many

            def look(name: str, given: list[Tensor], made: list[Tensor]) -> None:
                for tensor in made:
                    kept = _numbers_kept(tensor)
                    if kept >= many * n * n and not _only_mask(tensor):
                        whole = kept == tensor.numel()  # else it is a part that is written to
                        size = f"shape {tuple(tensor.shape)}" if whole else f"{kept} numbers"
                        raise ContractBroken(f"a tensor of {size} is made for {n} tokens")
                keys = _keys_in_product(name, given, made, unit)
                seen = 0 if sharp else _keys_in_product(name, given, made, values)
                if seen > many * (block + 1):  # one more: the first token's context is a value
                    raise ContractBroken(f"{seen // many} values at a time, block is {block}")
                if keys > many * block:
                    raise ContractBroken(f"{keys // many} keys at a time, block is {block}")

            with _Operations(look):
                return answer(q, k, v, block, causal)

        self.record(line, "watched", run, cases, answer)

    def skips_the_future(self, line: str, answer: Callable[..., Any], *cases: Args) -> None:
        """Record causal results for (q, k, v, block), from fewer scores than without the mask.

        r.skips_the_future("leaves blocks of the future out", tiled_attention, (q, k, v, 8))
        """

        def run(q: Tensor, k: Tensor, v: Tensor, block: int) -> Any:
            _, _, unit = _counted(k)
            scores = {False: 0, True: 0}
            for causal in scores:

                def look(name: str, given: list[Tensor], made: list[Tensor]) -> None:
                    if _keys_in_product(name, given, made, unit):
                        each = k.shape[-1] if name == "mul" else 1
                        scores[causal] += made[0].numel() // each  # noqa: B023  # called at once

                with _Operations(look):
                    result = answer(q, k, v, block, causal)
            if scores[True] > MOST_CAUSAL * scores[False]:
                raise ContractBroken("tiles wholly in the future are computed too")
            return result

        self.record(line, "watched", run, cases, answer)

    def part(self, *shape: int, empty_rows: bool = False) -> Triple:
        """Draw (m, l, o) of queries over some keys; the shape (..., n, e) is that of o.

        With `empty_rows` every third row, from the second on, is that of no visible key.

            r.each("the triple over both parts", merge, (r.part(4, 3), r.part(4, 3)))
        """
        most = 2 * self.normal(*shape[:-1])
        total, mixture = 1 + self.positive(*shape[:-1]), self.normal(*shape)
        if empty_rows:
            most[..., 1::3] = -math.inf
            total[..., 1::3] = mixture[..., 1::3, :] = 0
        return most, total, mixture

    def finished(self, answer: Callable[..., Triple]) -> Callable[..., Tensor]:
        """Return a function (q, k, v) that divides the answer's mixture o by its sum l.

        r.gradient("lets gradients through", r.finished(partial_attention), q, k, v)
        """

        def call(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return _context(answer(q, k, v))

        call.__name__ = f"o / l of {answer.__name__}({{q}}, {{k}}, {{v}})"
        return call

    def merged(self, answer: Callable[..., Triple]) -> Callable[..., Tensor]:
        """Return a function (q, k, v) that attends to each half of the keys and merges the two.

        r.gradient("lets gradients through", r.merged(merge), q, k, v)
        """

        def call(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            halves = zip(k.tensor_split(2, dim=-2), v.tensor_split(2, dim=-2), strict=True)
            return _context(answer(*(_attended(q, *half) for half in halves)))

        call.__name__ = f"o / l of {answer.__name__} of both halves of {{k}} and {{v}} for {{q}}"
        return call


def _attended(q: Tensor, k: Tensor, v: Tensor) -> Triple:
    """Return (m, l, o) of queries over these keys; no gradient passes through m."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    most = scores.detach().amax(dim=-1)
    exps = torch.exp(scores - most[..., None])
    return most, exps.sum(dim=-1), exps @ v


def _context(part: Triple) -> Tensor:
    _, total, mixture = part
    return mixture / total[..., None]


def _counted(k: Tensor) -> tuple[int, int, Tensor]:
    """Return the numbers of sentences or heads and of tokens, and all keys, normalised."""
    unit = torch.nn.functional.normalize(k.flatten(0, -2), dim=-1)
    return math.prod(k.shape[:-2]), k.shape[-2], unit


def _keys_in_product(name: str, given: list[Tensor], made: list[Tensor], unit: Tensor) -> int:
    """Return how many of the keys enter an operation that multiplies all pairs, else 0."""
    if not made or not name.endswith(PRODUCTS):
        return 0
    if name == "mul" and (len(given) < 2 or min(tensor.numel() for tensor in given) == 1):
        return 0  # by one number
    return max(_keys_among(tensor, unit) for tensor in given)


def _numbers_kept(tensor: Tensor) -> int:
    """Return how many floats a tensor holds; one that is spread out by expand() holds few."""
    if not tensor.is_floating_point():
        return 0
    return tensor.untyped_storage().nbytes() // tensor.element_size()


def _only_mask(tensor: Tensor) -> bool:
    return bool(((tensor == 0) | (tensor == 1) | (tensor == -math.inf)).all())


def _keys_among(tensor: Tensor, unit: Tensor) -> int:
    """Return how many of these keys, each of length 1, are rows or columns, however scaled."""
    found = 0
    for rows in (tensor, tensor.mT) if tensor.ndim > 1 else (tensor,):
        if rows.is_floating_point() and rows.shape[-1] == unit.shape[-1]:
            rows = rows.reshape(-1, rows.shape[-1]).double()  # squares of tiny floats stay above 0
            least = (1 - 1e-6) * rows.norm(dim=-1, keepdim=True)
            found = max(found, int((rows @ unit.to(rows).T > least).any(dim=0).sum()))
    return found


class _Operations(Dispatched):
    """Show every operation, by name, with what it was given and what it made."""

    def __init__(self, look: Look) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.look = look

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        given = _tensors([*args, *(kwargs or {}).values()])
        self.look(func.overloadpacket.__name__.strip("_"), given, _tensors([result]))
        return result


def _tensors(values: Iterable[Any]) -> list[Tensor]:
    """Return the tensors that an operation has: each a value of its own or in a list or tuple."""
    lists = (value if isinstance(value, list | tuple) else (value,) for value in values)
    return [value for each in lists for value in each if isinstance(value, Tensor)]
