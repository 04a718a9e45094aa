"""The names that a cell binds, and those that it takes from the cells before it."""

import re
import symtable
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

MAX_CHARS = 20_000
"""The longest cell that is read: for `import a.a.a…` Python's memory grows quadratically."""

CHANGED = re.compile(r"\b(\w+)\s*(?:\*\*|//|<<|>>|[-+*/%@&|^])=|\bdel\b(.*)")

UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""Raised by `read_names` for text that is not Python, is too long or is nested too deeply."""


@dataclass(frozen=True)
class Names:
    """The names that a cell looks up, its functions included, and those that it binds."""

    used: frozenset[str] = frozenset()
    bound: frozenset[str] = frozenset()

    @property
    def needed(self) -> frozenset[str]:
        """The names that it looks up and does not bind: it takes them from the cells before it."""
        return self.used - self.bound


def names_of(source: str) -> Names:
    """Return the names of a cell; none if it is not Python, or too long to read."""
    try:
        return read_names(source)
    except UNREADABLE:
        return Names()


@lru_cache(maxsize=512)  # most cells of a class are the same
def read_names(source: str) -> Names:
    """Return the names of a cell. Raises one of UNREADABLE if it cannot be read."""
    if len(source) > MAX_CHARS:
        raise ValueError(f"a cell has more than {MAX_CHARS} characters")
    module = symtable.symtable(source, "cell", "exec")
    symbols = module.get_symbols()
    used = {s.get_name() for s in symbols if s.is_referenced()}
    bound = {
        s.get_name() for s in symbols if s.is_assigned() or s.is_imported() or s.is_namespace()
    }
    for table in _inner(module):
        in_class = table.get_type() == "class"  # a class body may read a name and bind it too
        for s in table.get_symbols():
            if s.is_global() or (in_class and s.is_referenced()):
                used.add(s.get_name())
            if s.is_declared_global():
                bound.add(s.get_name())
    used |= _changed_names(source) & bound
    return Names(frozenset(used), frozenset(bound))


def _changed_names(source: str) -> set[str]:
    """Return the names that may stand before an operator such as `+=`, or after `del`.

    These names must exist already, which a symbol table does not show. `ast.parse` would, but in
    Python 3.11 it sometimes fails when several threads use it at once.
    """
    found = CHANGED.findall(source)
    return {name for before, after in found for name in [before, *re.findall(r"\w+", after)]}


def _inner(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for child in table.get_children():
        yield child
        yield from _inner(child)
