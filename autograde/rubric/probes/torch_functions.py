"""Watches what torch does: the functions that are called."""

from collections.abc import Callable
from typing import Any

from torch.overrides import TorchFunctionMode


class Functions(TorchFunctionMode):
    """Show every torch function that is called, by name, and what it is given.

    The name of an attribute that is read begins with a dot, as in `.shape` and `.T`.
    """

    def __init__(self, look: Callable[[str, list[Any]], None]) -> None:
        super().__init__()
        self.look = look

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "__get__":
            name = f".{func.__self__.__name__}"
        self.look(name, [*args, *kwargs.values()])
        return func(*args, **kwargs)
