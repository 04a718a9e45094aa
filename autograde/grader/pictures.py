"""Which cells of a lesson only draw: half the time of a submission, and no part of the score."""

import ast
import re
from symtable import SymbolTable, symtable

from nbformat import NotebookNode

from autograde.course import grade_id

WORD = re.compile(r"\w+")


def only_drawing(nb: NotebookNode, released: NotebookNode) -> set[int]:
    """The lesson's own pictures that nothing else in this notebook needs, as indices of cells.

    A picture is a cell whose source the lesson hides. It counts as the lesson's own only as long
    as it is unchanged, and as unneeded only if no other cell mentions a name that it gives.
    """
    pictures = {cell.source for cell in released.cells if _is_picture(cell)}
    code = {i: cell.source for i, cell in enumerate(nb.cells) if cell.cell_type == "code"}
    unneeded = {
        i for i, source in code.items() if source in pictures and grade_id(nb.cells[i]) is None
    }
    while True:
        kept = {name for i in code.keys() - unneeded for name in _wanted(code[i])}
        needed = {i for i in unneeded if _given(code[i]) & kept}
        if not needed:
            return unneeded
        unneeded -= needed


def _is_picture(cell: NotebookNode) -> bool:
    hidden = cell.metadata.get("jupyter", {}).get("source_hidden", False)
    return cell.cell_type == "code" and grade_id(cell) is None and bool(hidden)


def _wanted(source: str) -> set[str]:
    """The names that a cell takes from the cells before it; any word, where it is no Python."""
    try:
        statements = ast.parse(source).body
    except (SyntaxError, ValueError):
        return set(WORD.findall(source))
    wanted: set[str] = set()
    given: set[str] = set()
    for statement in statements:
        text = ast.unparse(statement)
        own = _bound(statement) if isinstance(statement, ast.For | ast.With) else set()
        wanted |= _global_names(symtable(text, "cell", "exec")) - given - own
        if isinstance(statement, ast.Assign | ast.FunctionDef | ast.Import | ast.ImportFrom):
            given |= _bound(statement)
    return wanted


def _global_names(table: SymbolTable) -> set[str]:
    """The global names that a statement mentions, functions inside it included."""
    top = table.get_type() == "module"
    names = {
        s.get_name() for s in table.get_symbols() if s.is_referenced() and (top or s.is_global())
    }
    return names.union(*(_global_names(inner) for inner in table.get_children()))


def _given(source: str) -> set[str]:
    """The names that a picture binds; a function that it defines is one of them."""
    return {name for statement in ast.parse(source).body for name in _bound(statement)}


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement binds where it stands, not those inside functions."""
    table = symtable(ast.unparse(statement), "cell", "exec")
    return {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}
