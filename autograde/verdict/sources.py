"""What an exercise forbids by name, looked for in the source of an answer."""

import ast
from textwrap import dedent

from autograde.verdict.packing import Plain

LIBRARY = {"torch", "nn", "F", "functional", "special"}
"""The names under which people import torch and its parts."""


def forbidden_names(source: str, names: list[str]) -> list[str]:
    """The forbidden functions that `source` takes from the library, as written there.

    An attribute of the library or of a local variable counts (`torch.softmax`, `nn.Softmax`,
    `x.softmax`), and so does an import. A variable, function or class of the student's own may
    have any name.
    """
    try:
        tree = ast.parse(dedent(source))
    except SyntaxError:
        return []
    wanted = {_bare(name) for name in names}
    suspects = LIBRARY | _locals(tree) | _imported_modules(tree)
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=attr) if _bare(attr) in wanted and _root(node) in suspects:
                found.append(ast.unparse(node))
            case ast.ImportFrom(names=aliases):
                found += [alias.name for alias in aliases if _bare(alias.name) in wanted]
    return found


def _bare(name: str) -> str:
    return name.lower().replace("_", "")


def _locals(tree: ast.AST) -> set[str]:
    """Arguments and variables; what is at hand in a function besides the library."""
    names = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    stored = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return names | {node.id for node in stored if isinstance(node.ctx, ast.Store)}


def _imported_modules(tree: ast.AST) -> set[str]:
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return {alias.asname or alias.name for node in imports for alias in node.names}


def _root(node: ast.AST) -> str | None:
    """The name that a chain of attributes, calls and operations on tensors begins with."""
    while not isinstance(node, ast.Name):
        match node:
            case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Call(func=inner):
                node = inner
            case ast.BinOp(left=inner) | ast.UnaryOp(operand=inner):
                node = inner
            case _:
                return None
    return node.id


def answer_source(cell: str, exercise: str) -> str:
    """The part of an answer cell that defines the exercise; the whole cell if none does.

    What else stands in the cell, a check of one's own for example, is not the answer.
    """
    try:
        tree = ast.parse(cell)
    except SyntaxError:
        return cell
    defined = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == exercise
    ]
    return ast.unparse(defined[-1]) if defined else cell


def forbidden_uses(value: Plain, names: list[str]) -> list[str]:
    """Forbidden uses in what a `forbids` line recorded: by name in the source, or when called."""
    if not isinstance(value, dict):
        return ["an unreadable record"]
    ops = [op for op in value.get("ops") or [] if isinstance(op, str)]
    return sorted({*forbidden_names(str(value.get("source") or ""), names)}) or sorted(ops)
