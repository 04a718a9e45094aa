"""Code and inputs decide the tolerances of an exercise. Words and points do not.

Two lessons with the same fingerprint of an exercise measure the same, line by line.
"""

import ast
import hashlib
import json
from collections.abc import Set as AbstractSet

from autograde.authoring.variants import read_variants
from autograde.course import Exercise, Lesson, grade_id, read_text
from autograde.grading.running.reference import Program
from autograde.rubric.names import names_of
from autograde.rubric.probes.plain import tensors_in
from autograde.rubric.recording import Line, Recording


def fingerprint(reference: Program, exercise: Exercise, first: Recording, how: object) -> str:
    """Return a digest of the code that is run to measure an exercise.

    Args:
        first: what the reference records on one seed.
        how: the numbers by which it is measured.
    """
    words = {line.name for line in first.lines}
    variants = read_variants(reference.lesson, exercise).right
    facts = [
        [_code(text, words) for text in _needed(reference.lesson, exercise)],
        sorted(_code(variant.code) for variant in variants),
        [_shape(line) for line in first.lines],
        repr(how),
    ]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def _needed(lesson: Lesson, exercise: Exercise) -> list[str]:
    """Return the named code cells that an exercise needs, itself and its rubric among them."""
    cells = {
        name: cell.source
        for cell in read_text(lesson).cells
        if cell.cell_type == "code" and (name := grade_id(cell))
    }
    rubrics = {each.rubric_cell for each in lesson.exercises}
    found = {exercise.name, exercise.rubric_cell} & cells.keys()
    wanted = frozenset[str]()
    while True:
        wanted = wanted.union(*(names_of(cells[name]).used for name in found))
        binding = {n for n in cells.keys() - rubrics - found if names_of(cells[n]).bound & wanted}
        if not binding:
            return [cells[name] for name in cells if name in found]
        found |= binding


class _WithoutWords(ast.NodeTransformer):
    """Blanks the sentences of a rubric and takes docstrings away."""

    def __init__(self, words: AbstractSet[str]) -> None:
        self.words = words

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return ast.Pass()
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant("") if node.value in self.words else node


def _code(text: str, words: AbstractSet[str] = frozenset()) -> str:
    """Return what Python reads in a cell, without comments, docstrings and these words."""
    return ast.unparse(_WithoutWords(words).visit(ast.parse(text)))


def _shape(line: Line) -> list[object]:
    """Return the kind of a line, and the types and sizes of its inputs."""
    return [
        line.kind,
        [[(str(t.dtype), [*t.shape]) for t in tensors_in(case.before)] for case in line.cases],
    ]
