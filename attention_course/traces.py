"""Trace a layer: each line's text beside the known step that it computes."""

import inspect
import linecache
import sys
from collections.abc import Mapping
from traceback import walk_stack
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from autograde.notebook.tables import in_columns
from autograde.values.text import short

LONGEST = 70


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
