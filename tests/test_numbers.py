"""What an executed lesson prints: known tables, and what makes the sentences of its text true.

numbers.json has both.
"""

import ast
import html
import itertools
import json
import operator
import re
from contextlib import suppress
from functools import cache
from typing import Any

import nbformat
import pytest
import torch
from conftest import HERE

from autograde.course.lessons import lessons

LESSONS = lessons(HERE)
NUMBERS = json.loads((HERE / "tests" / "numbers.json").read_text())
GPU = (HERE / "docs" / "gpu.md").read_text()
TABLES = [(lesson, name) for lesson in LESSONS for name in NUMBERS.get(lesson, [])]
TEXTS = [(lesson, row) for lesson in LESSONS for row in NUMBERS["texts"].get(lesson, [])]
"""What a text says, and what has to be printed for it to be true: words, or a number that follows
them, a sign, and another number. A number is given, or is found by its words and its place."""
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
SIGNS = {"<": operator.lt, "=": operator.eq, ">": operator.gt}


@cache
def cells(lesson: str) -> list[Any]:
    return list(nbformat.read(LESSONS[lesson].solution_notebook, as_version=4).cells)


@cache
def said(lesson: str) -> str:
    """Return all text and code of a lesson, in one line."""
    return " ".join("\n".join(cell.source for cell in cells(lesson)).split())


@cache
def printed(lesson: str) -> str:
    """Return what a lesson prints and says of figures; answers stand behind the line that asks."""
    return "\n".join(shown(cell) for cell in cells(lesson) if cell.cell_type == "code")


def shown(cell: Any) -> str:
    """Return what one cell prints."""
    parts = []
    for output in cell.outputs:
        data = output.get("data", {})
        if output.output_type == "stream":
            parts.append(output.text)
        elif data.get("text/html", "").startswith("<details>"):
            asks = next(line for line in cell.source.splitlines() if "beside(" in line)
            parts.append(asks + " " + html.unescape(data["text/html"].split("</summary>")[1]))
        else:
            parts.append(data.get("text/plain", ""))
    return "\n".join(parts)


def numbers(lesson: str, words: str, place: int) -> list[float]:
    """Return the number at a place after these words, for each line that has them."""
    tails = [line.partition(words)[2] for line in printed(lesson).splitlines() if words in line]
    assert tails, f"{words!r} is not printed in {lesson}"
    return [float(NUMBER.findall(tail)[place].replace(",", "")) for tail in tails]


@pytest.mark.parametrize(("lesson", "row"), TEXTS)
def test_what_a_text_says_is_what_is_printed(lesson: str, row: list[Any]) -> None:
    says, words, *comparison = row
    assert says in said(lesson), f"{lesson} no longer says: {says}"
    if not comparison:
        assert words in printed(lesson), f"{lesson} says: {says}"
        return
    place, sign, *other = comparison
    others = other if len(other) == 1 else numbers(lesson, *other)
    for one, two in itertools.product(numbers(lesson, words, place), others):
        assert SIGNS[sign](one, two), f"{lesson} says: {says}"


@pytest.mark.parametrize("row", NUMBERS["docs/gpu.md"])
def test_what_a_text_says_of_a_gpu_stands_on_its_page(row: list[str]) -> None:
    lesson, says, written = row
    assert says in said(lesson), f"{lesson} no longer says: {says}"
    assert written in GPU, f"{lesson} says: {says}"


def test_the_figure_of_lesson_08_draws_the_page_of_a_gpu() -> None:
    drawn = next(cell.source for cell in cells("08_fast_attention") if "\nH200 = {" in cell.source)
    ways = ast.literal_eval(drawn.partition("H200 = ")[2].partition("\n}")[0] + "}")
    lines = GPU.partition("### bfloat16")[2].partition("###")[0].splitlines()
    columns = zip(*(line.split("|")[2:5] for line in lines if " ms, " in line), strict=True)
    for (name, found), column in zip(ways.items(), columns, strict=True):
        pairs = [NUMBER.findall(each.replace(",", "")) for each in column if " ms" in each]
        assert found == tuple(list(map(float, each)) for each in zip(*pairs, strict=True)), name


def test_pytorch_treats_an_empty_row_as_lesson_03_says() -> None:
    x, hidden = torch.randn(1, 3, 8), torch.ones(3, 3, dtype=torch.bool)
    layer = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    function = torch.nn.functional.scaled_dot_product_attention
    assert (function(x, x, x, attn_mask=~hidden) == 0).all()
    assert layer(x, x, x, attn_mask=hidden)[0].isnan().all()


@pytest.mark.parametrize(
    ("dtype", "gap", "lost"),
    [
        (torch.float16, 17, 0),
        (torch.float16, 18, 1),
        (torch.float32, 103, 0),
        (torch.float32, 104, 1),
    ],
)
def test_lesson_02_s_way_loses_its_row_where_lesson_03_says(
    dtype: torch.dtype, gap: int, lost: bool
) -> None:
    assert "loses its row at 18 in float16, and at 104 in float32" in said("03_inf_mask")
    scores = torch.tensor([0.3, -0.4, 0.1, 0.3 + gap]).to(dtype)
    assert (scores.softmax(dim=-1)[:3] == 0).all() == lost


@pytest.mark.parametrize(("lesson", "name"), TABLES)
def test_known_tables_are_printed(lesson: str, name: str) -> None:
    rows = [
        [float(x) for x in re.findall(r"(?<![\w.])-?(?:\d+(?:\.\d{4})?|inf)(?![\w.])", line)]
        for line in printed(lesson).splitlines()
    ]
    table = [[float(x) for x in row] for row in NUMBERS[lesson][name]]
    starts = [i for i in range(len(rows)) if rows[i : i + len(table)] == table]
    assert starts, f"{name} is not printed in {lesson}"


@pytest.mark.parametrize("lesson", LESSONS)
def test_no_line_of_a_paragraph_begins_a_list(lesson: str) -> None:
    for cell in cells(lesson):  # as "It is\n1. What is it with four?" does
        if cell.cell_type == "markdown":
            assert not re.search(r"\S.*\n1[.)] ", cell.source), cell.source


@pytest.mark.parametrize("lesson", LESSONS)
def test_an_answer_that_is_written_down_is_folded(lesson: str) -> None:
    for cell in cells(lesson):
        if cell.cell_type == "code" and "beside(" in cell.source:
            for call in ast.walk(ast.parse(cell.source)):
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "beside":
                    with suppress(ValueError):  # it is computed
                        ast.literal_eval(call.args[1])
                        assert cell.metadata.get("jupyter", {}).get("source_hidden"), cell.source
