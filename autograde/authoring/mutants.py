"""Near misses that are made from the lesson's own answer: slips in any function of tensors."""

import ast
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """A slip at every return of an answer, and the belief behind it.

    `value` is what becomes of a returned tensor; `then` is done before the answer returns. `given`
    stands for the answer's first argument.
    """

    belief: str
    hint: str
    value: str = "{}"
    then: str = ""


MUTATIONS = {
    "detached": Mutation(
        "nothing is trained through this result.",
        "Whoever calls it may train what came before. What cuts off the gradient?",
        value="({}).detach()",
    ),
    "float32_returned": Mutation(
        "float32 is good enough for any result.",
        "In which dtype do the numbers arrive? The result should keep it.",
        value="({}).float()",
    ),
    "float32_inside": Mutation(
        "float32 is precise enough for intermediate results.",
        "What float32 rounds away does not come back. In which dtype do the numbers arrive?",
        value="({}).float().to(given.dtype)",
    ),
    "squeezed": Mutation(
        "a dimension of size 1 can always be dropped.",
        "Which shape should come back when one of the sizes is 1?",
        value="({}).squeeze()",
    ),
    "changed_in_place": Mutation(
        "an argument is no longer needed once the result is there.",
        "The caller still has it. What does it hold afterwards?",
        value="({}).clone()",
        then="if not given.requires_grad:\n    given.zero_()",
    ),
    "viewed": Mutation(
        "`view` joins dimensions, however they lie in memory.",
        "What does it say to a transposed tensor? Which method copies where it has to?",
        then="given.view(-1)",
    ),
}


def mutant(answer: str, mutation: Mutation) -> str:
    """Return the answer with the slip at every return of its function, or of its class's `forward`.

    >>> print(mutant("def double(x):\\n    return 2 * x", MUTATIONS["detached"]), end="")
    def double(x):
        return (2 * x).detach()

    Raises:
        ValueError: it ends with no function of an argument and no class with `forward`.
    """
    tree = ast.parse(answer)
    function = _function(tree.body)
    names = [each.arg for each in function.args.args if each.arg != "self"]
    if not names:
        raise ValueError(f"{function.name} takes no argument")
    value, then = (re.sub(r"\bgiven\b", names[0], code) for code in (mutation.value, mutation.then))
    slips = _Slips(value, then)
    function.body = [slips.visit(statement) for statement in function.body]
    return ast.unparse(tree) + "\n"


def _function(body: list[ast.stmt]) -> ast.FunctionDef:
    last = body[-1] if body else None
    if isinstance(last, ast.ClassDef):
        last = next((each for each in last.body if getattr(each, "name", "") == "forward"), None)
    if not isinstance(last, ast.FunctionDef):
        raise ValueError("the answer ends with no function and with no class that has `forward`")
    return last


class _Slips(ast.NodeTransformer):
    """Puts the slip at each return, other functions' within this one left out."""

    def __init__(self, value: str, then: str) -> None:
        self._value, self._then = value, then

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        if node.value is None:
            return [node]
        result = ast.unparse(self._slipped(node.value))
        lines = [f"result = {result}", self._then, "return result"]
        text = "\n".join(lines) if self._then else f"return {result}"
        return ast.parse(text).body

    def _slipped(self, value: ast.expr) -> ast.expr:
        match value:
            case ast.Tuple():
                return ast.Tuple([self._slipped(each) for each in value.elts], ast.Load())
            case ast.Starred():  # one slip among the others is enough
                return value
        return ast.parse(self._value.format(ast.unparse(value)), mode="eval").body
