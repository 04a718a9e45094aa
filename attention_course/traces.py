"""Trace a layer: each line's text beside the known step that it computes."""

import inspect
import linecache
import math
import sys
from collections.abc import Callable, Mapping
from traceback import walk_stack
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from autograde.notebook.tables import in_columns
from autograde.values.text import short

LONGEST = 70


def one_sentence(
    x: Tensor,
    W_query: Callable[[Tensor], Tensor],
    W_key: Callable[[Tensor], Tensor],
    W_value: Callable[[Tensor], Tensor],
) -> dict[str, Tensor]:
    """Return the steps of lessons 01 to 03 on one sentence (n, d_in), each by its name."""
    queries, keys, values = W_query(x), W_key(x), W_value(x)  # (n, d_out) each
    scores = queries @ keys.T  # (n, n)
    future = torch.ones_like(scores, dtype=torch.bool).triu(diagonal=1)
    hidden = scores.masked_fill(future, -math.inf)  # (n, n)
    weights = torch.softmax(hidden / math.sqrt(keys.shape[-1]), dim=-1)  # (n, n)
    return {
        "queries": queries,
        "keys": keys,
        "values": values,
        "scores": scores,
        "hidden scores": hidden,
        "weights": weights,
        "context": weights @ values,  # (n, d_out)
    }


def trace(module: nn.Module, x: Tensor, known: Mapping[str, Tensor]) -> None:
    """Print the lines of `module.forward` that compute a tensor, its shape, and its known step.

    Args:
        known: steps by name; a line gets the name of the step whose numbers it computes.
    """
    with torch.no_grad(), _Lines(type(module)) as lines:
        module(x)
    rows = [("your line", "shape", "")]
    for (file, number), result in sorted(lines.found.items()):
        text = linecache.getline(file, number).split("  #")[0].strip()
        rows.append((short(text, LONGEST), str(tuple(result.shape)), _name(result, known)))
    print("\n".join(in_columns(rows)))


def _name(result: Tensor, known: Mapping[str, Tensor]) -> str:
    for name, step in known.items():
        same = result.shape == step.shape and result.is_floating_point()
        if same and torch.allclose(result, step.to(result), rtol=1e-4, atol=1e-6):
            return name
    return ""


class _Lines(TorchFunctionMode):
    """Notes the last tensor that each line of a class's `forward` computed."""

    def __init__(self, module: type[nn.Module]) -> None:
        super().__init__()
        self._code = inspect.unwrap(module.forward).__code__
        self.found: dict[tuple[str, int], Tensor] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and (number := self._line()) is not None:
            self.found[self._code.co_filename, number] = result.detach().clone()
        return result

    def _line(self) -> int | None:
        """Return the line of `forward` that is running now, or None."""
        running = walk_stack(sys._getframe())
        return next((line for frame, line in running if frame.f_code is self._code), None)
