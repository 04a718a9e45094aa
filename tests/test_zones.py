"""What runs beside a student never imports what is trusted."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "autograde"
ALLOWED = {
    "verdict": {"verdict"},
    "student": {"student", "verdict"},
    "kernels": {"kernels", "student"},  # the template tries what a lesson uses
}


def imported_rooms(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if name.startswith("autograde."):
                yield name.split(".")[1]


@pytest.mark.parametrize("room", ALLOWED)
def test_room_imports_only_what_it_may(room: str) -> None:
    files = list((PACKAGE / room).rglob("*.py"))
    assert len(files) > 1
    for path in files:
        assert set(imported_rooms(path)) <= ALLOWED[room], path
