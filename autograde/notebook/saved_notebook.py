"""The notebook of this kernel as it was saved: what comes last in it, and which names it binds."""

import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from autograde.progress import DAMAGED
from autograde.rubric.names import names_of

MAY_RAISE = "raises-exception"
"""The tag of a cell whose error does not end Run All."""
HEADING = re.compile(r"^#{2} +(.+)$", re.MULTILINE)

Cells = list[dict[str, Any]]


def cells_in(folder: Path) -> Cells:
    """Return the cells of a folder's notebook; none if it has several, or one that is damaged."""
    found = [path for path in folder.glob("*.ipynb") if not path.name.startswith(".")]
    if len(found) != 1:
        return []
    try:
        read = json.loads(found[0].read_text(encoding="utf-8"))["cells"]
        return [{**each, "source": "".join(each["source"])} for each in read]
    except DAMAGED:
        return []


def binds(cells: Cells, name: str) -> bool:
    code = (cell["source"] for cell in cells if cell.get("cell_type") == "code")
    return any(name in names_of(source).bound for source in code)


def uses_answers(cells: Cells, source: str) -> bool:
    """Return whether the lesson's author tagged a cell to fail where an answer is missing."""
    return any(
        cell["source"] == source and MAY_RAISE in cell.get("metadata", {}).get("tags", [])
        for cell in cells
    )


def still_to_come(cells: Cells, exercises: Collection[str]) -> list[str]:
    """Return in words what stands below the last exercise: its parts, and questions to answer."""
    facts = [cell.get("metadata", {}).get("nbgrader", {}) for cell in cells]
    rubrics = {f"test_{name}" for name in exercises}
    places = [i for i, about in enumerate(facts) if about.get("grade_id") in rubrics]
    if not places:
        return []
    below = slice(places[-1] + 1, None)
    text = [cell["source"] for cell in cells[below] if cell.get("cell_type") == "markdown"]
    parts = [f"“{title.strip()}”" for each in text for title in HEADING.findall(each)]
    questions = [
        f"the question `{about['grade_id']}`"
        for about in facts[below]
        if about.get("grade") and about.get("solution")
    ]
    return questions + parts
