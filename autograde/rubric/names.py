"""The names that a cell binds, and those that it takes from the cells before it."""

import re
import symtable
from collections.abc import Callable, Iterator

MAX_CHARS = 20_000
"""Of a text that is read: for `import a.a.a…` Python needs memory that grows with the square."""

CHANGED = re.compile(r"\b(\w+)\s*(?:\*\*|//|<<|>>|[-+*/%@&|^])=|\bdel\b(.*)")

UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What Python raises on text that is no program, or one that is nested too deeply."""


def bound_names(source: str) -> set[str]:
    """Return the names that a cell binds for the cells after it.

    Raises:
        SyntaxError: the cell is no Python.
    """
    module = symtable.symtable(source, "cell", "exec")
    bound = {
        s.get_name()
        for s in module.get_symbols()
        if s.is_assigned() or s.is_imported() or s.is_namespace()
    }
    for table in _inner(module):
        bound |= {s.get_name() for s in table.get_symbols() if s.is_declared_global()}
    return bound


def used_names(source: str) -> set[str]:
    """Return the names that a cell looks up, its functions included.

    Raises:
        SyntaxError: the cell is no Python.
    """
    module = symtable.symtable(source, "cell", "exec")
    used = {s.get_name() for s in module.get_symbols() if s.is_referenced()}
    for table in _inner(module):
        in_class = table.get_type() == "class"  # a class body may read a name and bind it too
        used |= {
            s.get_name()
            for s in table.get_symbols()
            if s.is_global() or (in_class and s.is_referenced())
        }
    return used | (_changed_names(source) & bound_names(source))


def _changed_names(source: str) -> set[str]:
    """Return the names that may stand before `+=` or its like, or after `del`.

    They have to be there already, which a symbol table does not tell. `ast.parse` would, but in
    Python 3.11 it fails now and then where threads use it at the same time.
    """
    found = CHANGED.findall(source)
    return {name for before, after in found for name in [before, *re.findall(r"\w+", after)]}


def needed_names(source: str) -> set[str]:
    """Return the names that a cell takes from the cells before it, its functions included.

    Raises:
        SyntaxError: the cell is no Python.
    """
    return used_names(source) - bound_names(source)


def _inner(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for child in table.get_children():
        yield child
        yield from _inner(child)


def names_bound(source: str) -> set[str]:
    """Return the names that a cell binds; none when it is no Python, or too long to read."""
    return _names(bound_names, source)


def names_needed(*sources: str) -> set[str]:
    """Return the names that cells take from the cells before them; none from what is no Python."""
    return set().union(*(_names(needed_names, source) for source in sources))


def _names(read: Callable[[str], set[str]], source: str) -> set[str]:
    try:
        return read(source) if len(source) <= MAX_CHARS else set()
    except UNREADABLE:
        return set()
