"""Find forbidden functions by name in the source of an answer."""

import ast
from textwrap import dedent

from autograde.rubric.packing import Plain

MAX_CHARS = 20_000
"""Of a text that is read: for `import a.a.a…` Python needs memory that grows with the square."""

UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What Python raises on text that is no program, or one that is nested too deeply."""

LIBRARY = {"torch", "nn", "F", "functional", "special"}
"""The names under which people import torch and its parts."""


def forbidden_names(source: str, names: list[str]) -> list[str]:
    """Return the forbidden functions that `source` takes from the library by name, as written.

    `torch.softmax`, `nn.Softmax` and imports count. Any other name is the student's own: what is
    behind it shows when it is called.
    """
    try:
        return _names_in(_parse(dedent(source)), {_bare(name) for name in names})
    except UNREADABLE:
        return []


def _names_in(tree: ast.Module, wanted: set[str]) -> list[str]:
    modules = (LIBRARY | _imported_modules(tree)) - _defined(tree)
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=attr) if _bare(attr) in wanted and _root(node) in modules:
                found.append(ast.unparse(node))
            case ast.ImportFrom(names=aliases):
                found += [alias.name for alias in aliases if _bare(alias.name) in wanted]
    return found


def _parse(source: str) -> ast.Module:
    if len(source) > MAX_CHARS:
        raise ValueError(f"{len(source)} characters are too many to read")
    return ast.parse(source)


def _bare(name: str) -> str:
    return name.lower().replace("_", "")


def _defined(tree: ast.AST) -> set[str]:
    kinds = ast.ClassDef | ast.FunctionDef
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def _imported_modules(tree: ast.AST) -> set[str]:
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return {alias.asname or alias.name for node in imports for alias in node.names}


def _root(node: ast.AST) -> str | None:
    """Return the name that a chain of attributes begins with."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def answer_source(cell: str, exercise: str) -> str:
    """Return the function in a cell that is the exercise once the cell has run, or "".

    Other code in the cell, such as a check of one's own or a first try, is not the answer.
    """
    try:
        body = _parse(cell).body
        bindings = [node for node in body if exercise in bound(node)]
        last = bindings[-1] if bindings else None
        return ast.unparse(last) if isinstance(last, ast.FunctionDef) else ""
    except UNREADABLE:
        return ""


def bound(node: ast.stmt) -> set[str]:
    """Return the names that a statement at the top of a cell binds, wherever in it."""
    stored = (inner for inner in ast.walk(node) if isinstance(inner, ast.Name))
    names = {inner.id for inner in stored if isinstance(inner.ctx, ast.Store)}
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    return names | _defined(node)


def forbidden_uses(value: Plain, names: list[str]) -> list[str]:
    """Return the forbidden uses that a `forbids` line recorded: by name, else by call."""
    if not isinstance(value, dict) or not isinstance(value.get("ops"), list):
        return ["an unreadable record"]
    ops = [op for op in value["ops"] if isinstance(op, str)]
    return sorted({*forbidden_names(str(value.get("source") or ""), names)}) or sorted(ops)
