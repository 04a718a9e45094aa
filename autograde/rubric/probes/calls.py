"""A probe's calls: the arguments that one is given, its text as a person types it, its errors."""

from __future__ import annotations

import inspect
import linecache
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from autograde.rubric.lesson_names import given_in
from autograde.rubric.recording import REFUSAL, REFUSAL_BY, REFUSED, RETURNED, Outcome
from autograde.values.base import EXACT_TYPES
from autograde.values.dispatch import copied
from autograde.values.loaded_torch import is_module, is_tensor, loaded_torch
from autograde.values.python import changed
from autograde.values.text import short

if TYPE_CHECKING:
    from torch import Tensor

RAISED = (Exception, SystemExit)
"""An answer may raise these; each is the outcome of that call alone. `sys.exit()` is one."""
Args = tuple[Any, ...]
LONGEST_TYPED = 80
"""A list, tuple or dict that takes more characters goes by its parameter's name."""


class ContractBroken(Exception):
    """An answer misses something that its contract names; the message is for the student."""


class HasMore(ContractBroken):
    """A layer has a parameter that its contract does not name."""


def map_tensors(value: Any, change: Callable[[Tensor], Any]) -> Any:
    """Return the value with each tensor in it changed."""
    if is_tensor(value):
        return change(value)
    return changed(value, partial(map_tensors, change=change))


def map_floats(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Return the value with each float tensor in it changed."""
    return map_tensors(value, lambda t: change(t) if t.is_floating_point() else t)


def in_double(value: Any) -> Any:
    """Return the value with the float tensors and arrays in it in float64."""
    if isinstance(value, np.ndarray):
        return value.astype(np.float64) if value.dtype.kind == "f" else value
    if is_tensor(value):
        return value.double() if value.is_floating_point() else value
    return changed(value, in_double)


def turned(tensor: Tensor) -> Tensor:
    """Return the tensor as part of a larger one, its dimensions in opposite order in memory."""
    import torch

    back = tuple(reversed(range(tensor.ndim)))
    return torch.stack([tensor.permute(back)] * 2)[1].permute(back)


def snapshot(value: Any) -> Any:
    """Return a copy of the value, its tensors each on its own device, which pass gradients on."""
    return map_tensors(value, lambda t: t.clone())


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in a value, in order."""
    return filter(is_tensor, _leaves(value))


def _leaves(value: Any) -> Iterator[Any]:
    """Yield what the containers in a value hold, if it could be of torch."""
    if loaded_torch():
        from torch.utils._pytree import tree_iter

        yield from tree_iter(value)


@contextmanager
def lent(args: Args) -> Iterator[Args]:
    """Give a call copies of what other calls share, and undo its changes to modules."""
    modules = [*filter(is_module, _leaves(args))]
    before = deepcopy([vars(module) for module in modules])
    yield copied(args)
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
    """Return the names of the first `count` arguments; those of `*steps` are steps_1, steps_2."""
    try:
        parameters = [*inspect.signature(answer).parameters.values()]
    except (TypeError, ValueError):
        parameters = []
    names = [each.name for each in takewhile(lambda it: it.kind != it.VAR_POSITIONAL, parameters)]
    others = parameters[len(names)].name if len(names) < len(parameters) else "argument"
    return [*names, *(f"{others}_{i + 1}" for i in range(count - len(names)))][:count]


def _argument(value: Any, name: str) -> str:
    if is_tensor(value):
        return f"tensor({_short(value.tolist())})" if value.numel() <= 3 else name
    if is_module(value):
        return str(getattr(value, "called", name))
    if isinstance(value, np.ndarray):
        return f"array({_short(value.tolist())})" if value.size <= 3 else name
    try:
        typed = repr(_plain(value))
    except TypeError:
        return getattr(value, "__name__", name)
    long = isinstance(value, list | tuple | dict) and len(typed) > LONGEST_TYPED
    return name if long else typed


def _plain(value: Any) -> Any:
    """Return a value that people type, with Python's own numbers in place of NumPy's.

    Raises:
        TypeError: it is another one, or holds another one.
    """
    match value:
        case np.number() | np.bool_() | np.str_():
            return value.item()
        case None | bool() | int() | float() | complex() | str():
            return value
        case list() | tuple() if type(value) in (list, tuple):
            return type(value)(map(_plain, value))
        case tuple() if hasattr(value, "_make"):  # a named one
            return value._make(map(_plain, value))
        case dict() if type(value) is dict:
            return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, EXACT_TYPES):
        return value
    raise TypeError


def _short(value: Any) -> str:
    """Return nested lists of numbers as one would type them: 0.2, not 0.20000000298."""
    if isinstance(value, list):
        return f"[{', '.join(map(_short, value))}]"
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def outcome_of(error: BaseException) -> Outcome:
    """Return the outcome of a call that raised, with the line of the answer that did.

    A ValueError of another name, such as JSONDecodeError, says that name.
    """
    raised, message = family(error), str(error)
    if isinstance(error, REFUSED) and type(error).__name__ != raised:
        message = ": ".join(filter(None, [type(error).__name__, message]))
    return Outcome(error=raised, message=message, at=_student_line(error))


def refusal(call: Callable[..., Any], *args: Any, error: type[Exception] = ValueError) -> str:
    """Return REFUSAL when a call raises a ValueError, or the error asked for, else what it did.

    Raises:
        NotImplementedError: the exercise is untouched, and refuses nothing.
    """
    due = REFUSED if error is ValueError else (error,)
    try:
        result = call(*args)
    except NotImplementedError:
        raise
    except RAISED as other:
        endless = isinstance(other, RecursionError) and error is not RecursionError
        if isinstance(other, due) and not endless:  # nobody meant that RuntimeError
            return REFUSAL if error is ValueError else f"{REFUSAL_BY}{error.__name__}"
        return f"raises {family(other)}: {other}"
    raisable = result if isinstance(result, type) else type(result)
    if issubclass(raisable, BaseException):
        return RETURNED
    plain = type(result) in (bool, str, type(None)) or (type(result) is int and abs(result) < 1e60)
    return f"returns {short(repr(result), 60)}" if plain else "returns a result"


def family(error: BaseException) -> str:
    """Return the exception's name; a subclass of a refusal counts as its parent."""
    for known in (NotImplementedError, *REFUSED):
        if isinstance(error, known):
            return known.__name__
    return type(error).__name__


def _student_line(error: BaseException) -> str:
    """Return the innermost line that ran in a student's cell, or ""; such code has no file.

    Its function is named if one of another cell called it. A line of the lesson's own helpers,
    which is none of theirs, stands in where there is no other.
    """
    lessons, found, cells = "", "", set[str]()
    for frame, number in reversed([*traceback.walk_tb(error.__traceback__)]):
        code = frame.f_code
        file, text = code.co_filename, linecache.getline(code.co_filename, number).strip()
        if Path(file).is_file() or file.startswith("<frozen") or not text:
            continue
        if file in given_in(frame.f_globals).files:
            lessons = lessons or f"the lesson's line that uses your answer: {text}"
            continue
        if not found:
            function = code.co_qualname.partition(".<locals>")[0]
            found = f"line {number}: {text}"
        if code.co_name != "<module>":
            cells.add(file)
    return f"{function}, {found}" if len(cells) > 1 else found or lessons
