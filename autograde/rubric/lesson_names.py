"""Names that a lesson gives: a rubric reads them as the lesson bound them, whatever came after.

The cell that imports `rubric` gives them. A student's own cell may bind one again, `encode` or
`torch`, and a builtin such as `len`. The student's code then sees the new value and the rubric does
not: of a notebook it reads only the answers. `autograde build` keeps the three apart.
"""

import ast
import builtins
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from autograde.rubric.names import names_of
from autograde.values.dispatch import copied

PLACE = "__given__"
"""The name in a notebook's namespace under which what the lesson gives is kept."""
MOST_COPIED = 10_000
"""The most items of a container that is copied; what rubrics read is small."""
OWN_RUBRIC = '__import__("autograde.notebook").notebook.rubric'


@dataclass(frozen=True)
class Given:
    """The names that the set-up cell with this text bound."""

    source: str = ""
    names: dict[str, Any] = field(default_factory=dict)

    @property
    def files(self) -> set[str]:
        """The names under which Python knows the text of the lesson's own functions."""
        own = (value for value in self.names.values() if _is_own(value))
        return {value.__code__.co_filename for value in own}

    def original(self, name: str) -> Any:
        """Return the lesson's value of a name or Python's; None if neither has one."""
        return self.names.get(name, getattr(builtins, name, None))


def given_in(namespace: dict[str, Any]) -> Given:
    """Return what the lesson gave in a notebook, so far."""
    found = namespace.get(PLACE)
    return found if isinstance(found, Given) else Given()


def keep_given(source: str, namespace: dict[str, Any], rubric: Callable[..., Any]) -> None:
    """Keep what a cell that has run bound, if it imports `rubric`.

    A second such cell counts only if it is the first run again: the student may have written it.
    """
    bound = names_of(source).bound
    if "rubric" not in bound or namespace.get("rubric") is not rubric:
        return
    if given_in(namespace).source in ("", source):
        names = {name: namespace[name] for name in bound if name in namespace}
        namespace[PLACE] = Given(source, {name: _copy(value) for name, value in names.items()})


def _copy(value: Any) -> Any:
    """Return a copy of a small value: `x += 1` in a student's cell changes the value itself."""
    large = isinstance(value, list | dict | set) and len(value) > MOST_COPIED
    try:
        return value if large else copied(value)
    except TypeError:  # of a class that is not made from its items
        return value


def with_given_names(lines: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rubric's function that reads the lesson's names and Python's, then the notebook's.

    The lesson's own functions that it calls read the same.
    """
    if not isinstance(lines, FunctionType):
        return lines
    namespace = lines.__globals__
    shadowing = {name for name in vars(builtins) if not name.startswith("_")}
    names = {name: value for name, value in namespace.items() if name not in shadowing}
    for name, value in given_in(namespace).names.items():
        names[name] = _reading(value, names) if _is_own(value) else value
    return _reading(lines, names)


def _is_own(value: Any) -> bool:
    """Return whether a given value is a function that the lesson itself defines."""
    return isinstance(value, FunctionType) and PLACE in value.__globals__


def _reading(function: FunctionType, names: dict[str, Any]) -> FunctionType:
    """Return a copy of a function that looks its global names up elsewhere."""
    copy = FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    vars(copy).update(vars(function))
    return copy


class OwnRubric(ast.NodeTransformer):
    """Has a rubric cell call the package's `rubric`, whatever has that name in the notebook."""

    def visit_Module(self, node: ast.Module) -> ast.Module:
        for defined in node.body:
            if isinstance(defined, ast.FunctionDef) and defined.name == "_":
                for call in defined.decorator_list:
                    match call:
                        case ast.Call(func=ast.Name(id="rubric")):
                            own = ast.parse(OWN_RUBRIC, mode="eval").body
                            call.func = ast.copy_location(own, call.func)
        return node
