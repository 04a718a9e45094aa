"""What an exercise forbids by name, looked for in the source of an answer."""

import ast

from autograde.verdict.packing import Plain


def _bare(name: str) -> str:
    return name.lower().replace("_", "")


def forbidden_names(source: str, names: list[str]) -> list[str]:
    """The forbidden library functions that `source` reaches for, as written there.

    An attribute (`torch.softmax`, `x.softmax`, `nn.Softmax`) or an import counts. A variable or
    function of the student's own may have any name, and so may attributes of what is defined in
    the source itself.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return []
    wanted = {_bare(name) for name in names}
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=attr) if _bare(attr) in wanted and _root(node) not in own:
                found.append(ast.unparse(node))
            case ast.ImportFrom(names=aliases):
                found += [alias.name for alias in aliases if _bare(alias.name) in wanted]
    return found


def _root(node: ast.AST) -> str | None:
    while isinstance(node, ast.Attribute | ast.Call):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return node.id if isinstance(node, ast.Name) else None


def forbidden_uses(value: Plain, names: list[str]) -> list[str]:
    """Forbidden uses in what a `forbids` line recorded: by name in the source, or when called."""
    if not isinstance(value, dict):
        return ["an unreadable record"]
    ops = [op for op in value.get("ops") or [] if isinstance(op, str)]
    return sorted({*forbidden_names(str(value.get("source") or ""), names), *ops})
