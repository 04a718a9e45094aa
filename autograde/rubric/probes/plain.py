"""Turns live values into plain data, and a call into the text that a person would type."""

import inspect
import linecache
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_iter, tree_map_only

from autograde.rubric.recording import REFUSAL, REFUSED, Outcome
from autograde.values.packing import DTYPES, MAX_DIMENSIONS, Plain

MAX_ENTRIES = 1_000_000
RAISED = (Exception, SystemExit)
"""An answer may raise these; each is the outcome of that call alone. `sys.exit()` is one."""
Args = tuple[Any, ...]


class ContractBroken(Exception):
    """An answer misses something that its contract names; the message is for the student."""


def to_plain(value: Any) -> Plain:
    """Return a copy of a value as plain data; what cannot be recorded is named by its type."""
    match value:
        case Tensor():
            return _plain_tensor(value)
        case None | bool() | str():
            return value
        case int():
            return int(value)
        case float():
            return float(value)
        case list():
            return [to_plain(item) for item in value]
        case tuple():
            return tuple(to_plain(item) for item in value)
        case dict():
            return {str(key): to_plain(item) for key, item in value.items()}
        case torch.Generator():
            return {"generator": value.initial_seed()}
        case nn.Module():
            return _plain_module(value)
    if callable(value):
        return {"function": getattr(value, "__name__", "")}
    return {"unrecordable": f"a {type(value).__name__}"}


def _plain_module(module: nn.Module) -> Plain:
    """Return a module's state and settings, so that any change to it shows."""
    return {
        "module": type(module).__name__,
        "state": to_plain(dict(module.state_dict())),
        "training": [part.training for part in module.modules()],
        "learns": [parameter.requires_grad for parameter in module.parameters()],
    }


def _plain_tensor(tensor: Tensor) -> Plain:
    if tensor.ndim > MAX_DIMENSIONS:
        return {"unrecordable": f"a tensor of {tensor.ndim} dimensions"}
    if tensor.numel() > MAX_ENTRIES:
        return {"unrecordable": f"a tensor of shape {tuple(tensor.shape)}"}
    if tensor.dtype not in DTYPES or tensor.layout != torch.strided or tensor.is_meta:
        return {"unrecordable": f"a tensor of {tensor.dtype}, {tensor.layout}"}
    return tensor.detach().cpu().clone()


def map_floats(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Return the value with each float tensor in it changed."""
    return tree_map_only(Tensor, lambda t: change(t) if t.is_floating_point() else t, value)


def turned(tensor: Tensor) -> Tensor:
    """Return the tensor as part of a larger one, its dimensions in opposite order in memory."""
    back = tuple(reversed(range(tensor.ndim)))
    return torch.stack([tensor.permute(back)] * 2)[1].permute(back)


def snapshot(value: Any) -> Any:
    """Return the value with copies of its tensors, each on its own device."""
    return tree_map_only(Tensor, Tensor.clone, value)


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in a value, in order."""
    return (each for each in tree_iter(value) if isinstance(each, Tensor))


@contextmanager
def lent(args: Args) -> Iterator[Args]:
    """Give a call copies of tensors, which other calls share, and undo its changes to modules."""
    modules = [each for each in tree_iter(args) if isinstance(each, nn.Module)]
    before = deepcopy([vars(module) for module in modules])
    yield tree_map_only(Tensor, deepcopy, args)
    for module, state in zip(modules, before, strict=True):
        module.__dict__ = state


def as_typed(answer: Callable[..., Any], args: Args) -> str:
    """Return a call as a person would type it: tensors by their parameter's name.

    Where the function's name has places for its arguments, `{x}`, they are put there.
    """
    names, called = parameter_names(answer, len(args)), getattr(answer, "__name__", "answer")
    shown = [_argument(value, name) for name, value in zip(names, args, strict=True)]
    if "{" in called:
        return str(called.format(**dict(zip(names, shown, strict=True))))
    return f"{called}({', '.join(shown)})"


def parameter_names(answer: Callable[..., Any], count: int) -> list[str]:
    """Return the names of the first `count` parameters, made up where there are fewer."""
    try:
        names = [*inspect.signature(answer).parameters]
    except (TypeError, ValueError):
        names = []
    return [*names, *(f"argument_{i + 1}" for i in range(len(names), count))][:count]


def _argument(value: Any, name: str) -> str:
    match value:
        case Tensor():
            return f"tensor({_short(value.tolist())})" if value.numel() <= 3 else name
        case None | bool() | int() | float() | str():
            return repr(value)
        case list() | tuple() if all(isinstance(item, int | float) for item in value):
            return repr(value)
        case nn.Module():
            return str(getattr(value, "called", name))
        case torch.Generator():
            return name
    return getattr(value, "__name__", name)


def _short(value: Any) -> str:
    """Return nested lists of numbers as one would type them: 0.2, not 0.20000000298."""
    if isinstance(value, list):
        return f"[{', '.join(map(_short, value))}]"
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def raised(error: BaseException) -> Outcome:
    """Return the outcome of a call that raised, with the line of the answer that did."""
    return Outcome(error=family(error), message=str(error), at=_student_line(error))


def refusal(call: Callable[..., Any], *args: Any) -> str:
    """Return "refused" when a call raises a ValueError, else what it did.

    Raises:
        NotImplementedError: the exercise is untouched, and refuses nothing.
    """
    try:
        call(*args)
    except NotImplementedError:
        raise
    except REFUSED:
        return REFUSAL
    except RAISED as error:
        return f"raises {family(error)}: {error}"
    return "returns a result"


def family(error: BaseException) -> str:
    """Return the exception's name; a subclass of a refusal counts as its parent."""
    for kind in (NotImplementedError, *REFUSED):
        if isinstance(error, kind):
            return kind.__name__
    return type(error).__name__


def _student_line(error: BaseException) -> str:
    """Return the innermost line that ran in a notebook's cell, or ""; such code has no file."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not Path(frame.filename).is_file() and not frame.filename.startswith("<frozen"):
            text = linecache.getline(frame.filename, frame.lineno or 0).strip()
            return f"line {frame.lineno}: {text}" if text else ""
    return ""
