"""Small files that hurt: each row is a file or a text, what it must not cost, and what is said."""

import json
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from downloads import zipped
from nbformat import NotebookNode
from nightly import few

from autograde.course.lessons import Lesson
from autograde.grading import feedback
from autograde.grading.limits import LIMITS
from autograde.grading.reading.parse import WANTED, parse
from autograde.grading.reading.restore import restore
from autograde.grading.record import marks_of, write_record
from autograde.grading.running.notebook_client import GradingClient
from autograde.grading.running.outputs import as_on_a_terminal, joined, reduced
from autograde.grading.sanitise import sanitise_text
from autograde.grading.submission import Marks
from autograde.lms.archives import BadArchive, unpack
from autograde.student_text import named, printable, quoted

ROOM = LIMITS.text_cell_chars


def notebook(*cells: Any, **more: Any) -> bytes:
    return json.dumps(
        {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells} | more
    ).encode()


def code(source: Any = "1", **more: Any) -> dict[str, Any]:
    return {"cell_type": "code", "id": "a", "metadata": {}, "source": source, "outputs": [],
            "execution_count": None} | more  # fmt: skip


ODD = {
    **{f"nbgrader is {v!r}": notebook(code(metadata={"nbgrader": v})) for v in ([], "a", None, 1)},
    "a name that is a list": notebook(code(metadata={"nbgrader": {"grade_id": ["a"]}})),
    "metadata that is a list": notebook(code(metadata=[1])),
    "a surrogate": notebook(code("'\ud800'"), code("\udfff", cell_type="markdown")),
    "an attachment": notebook(
        {"cell_type": "markdown", "source": "![a](attachment:b.png)", "attachments": {"b.png": 1}}
    ),
    "an id twice": notebook(code(), code()),
    "an execution count": notebook(code(execution_count="9" * 1000)),
    "deep metadata": notebook(metadata=json.loads("[" * 400 + "]" * 400)),
    "a byte order mark": b"\xef\xbb\xbf" + notebook(code()),
    "UTF-16": notebook(code()).decode().encode("utf-16"),
    "a kind of its own": notebook(code(cell_type="<script>")),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_notebook_is_read(lesson: Lesson, name: str) -> None:
    released = nbformat.read(lesson.released_notebook, as_version=4)
    parsed = parse(ODD[name])
    assert parsed.problem is None
    record = restore(parsed, released)
    nbformat.validate(record.nb)
    nbformat.writes(record.nb).encode()
    sanitise_text(record.nb, released)
    marks = marks_of(record, released, Marks())
    assert feedback.page(write_record(record), marks)


NOT_ONE = ("the file is not a notebook", f"The file is JSON, but not a notebook. {WANTED}")
NO_NOTEBOOKS = {
    b"": ("the file is empty", f"The file is empty. {WANTED}"),
    b'{"nbformat": 4}': NOT_ONE,
    b'{"nbformat": 3, "worksheets": [{"cells": []}]}': NOT_ONE,
    b'{"nbformat": 4, "cells": [[]]}': NOT_ONE,
    b'{"nbformat": 4, "cells": [{"source": {}}]}': NOT_ONE,
    b'{"not handed in": "18 points, says the grader"}': NOT_ONE,
    b"[" * 100_000: ("the file is not JSON", "not JSON"),
    b'{"nbformat": 1' + b"0" * 5000 + b"}": ("the file is not JSON", "not JSON"),
    b"jane doe wrote this": ("the file is not JSON", "not JSON"),
}


@pytest.mark.parametrize("content", NO_NOTEBOOKS, ids=range(len(NO_NOTEBOOKS)))
def test_what_is_no_notebook_has_the_graders_own_words(content: bytes) -> None:
    cause, words = NO_NOTEBOOKS[content]
    problem = parse(content).problem
    assert problem
    assert problem.cause == cause
    assert words in problem.words


@pytest.mark.parametrize("version", ["", '"nbformat": 1, '])
def test_an_update_does_not_empty_the_cells_of_a_notebook_without_a_version(version: str) -> None:
    cells = json.loads(notebook(code()))["cells"]
    content = f'{{{version}"metadata": {{}}, "cells": {json.dumps(cells)}}}'
    problem = parse(content.encode(), whole=True).problem
    assert problem
    assert problem.cause == "the file is not a notebook"


MANY = {
    "cells": (notebook(*[code()] * (LIMITS.cells + 9)), "509 cells; 9 were left out"),
    "code": (notebook(code("#" * LIMITS.source_chars + "#")), "too much code was not run"),
    "a text": (notebook(code("a" * (ROOM + 1), cell_type="markdown")), "long text was cut off"),
    "texts": (notebook(*[code("a" * ROOM, cell_type="markdown")] * 9), "long text was cut off"),
}


@pytest.mark.parametrize("name", MANY)
def test_what_is_too_much_is_left_out_and_said(name: str) -> None:
    content, said = MANY[name]
    read = parse(content)
    assert said in " ".join(read.remarks)
    assert len(read.nb.cells) <= LIMITS.cells
    assert sum(len(cell.source) for cell in read.nb.cells) <= LIMITS.source_chars


def test_the_lessons_own_cells_come_before_a_thousand_others() -> None:
    named_cell = code("mine", metadata={"nbgrader": {"grade_id": "a"}})
    read = parse(notebook(*[code()] * 1000, named_cell))
    assert read.nb.cells[-1].source == "mine"


MILLIONS = {"lists": b"[],", "objects": b"{},", "names": b'{"metadata":{"nbgrader":[]}},'}


@pytest.mark.parametrize("name", few(MILLIONS.keys(), "objects"))
def test_a_file_of_millions_of_cells_takes_little_more_than_json(name: str) -> None:
    cells = MILLIONS[name] * (LIMITS.file_bytes // 3 // len(MILLIONS[name]))
    content = b'{"nbformat": 4, "cells": [' + cells[:-1] + b"]}"
    began = time.thread_time()
    json.loads(content)
    alone = time.thread_time() - began
    parse(content)
    assert time.thread_time() - began < 3 * alone + 0.5


def test_brackets_take_a_bounded_number_of_bytes() -> None:
    content = b'{"nbformat": 4, "cells": [], "metadata": [' + b"[]," * 100_000 + b"[]]}"
    tracemalloc.start()
    parse(content)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 40 * len(content)


def png(width: int, height: int, size: int = 40) -> str:
    import base64
    import struct

    head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height)
    return base64.b64encode(head.ljust(size, b"\0")).decode()


def display(**data: Any) -> NotebookNode:
    return NotebookNode(
        output_type="display_data", data=NotebookNode(data), metadata=NotebookNode()
    )


def kept(*outputs: NotebookNode) -> tuple[list[NotebookNode], bool]:
    """What is kept of outputs that arrive in one cell, and whether all of it is."""
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")])
    client = GradingClient(nb, LIMITS)
    client.clear_before_next_output = False
    for output in outputs:
        message = {"msg_type": output.output_type, "content": output, "cut": False}
        client.process_message(message, nb.cells[0], 0)
    return list(nb.cells[0].outputs), not client.flooded


def picture(width: int, height: int, size: int = 40) -> NotebookNode:
    return display(**{"image/png": png(width, height, size)})


OUTPUTS: dict[str, tuple[Callable[[], list[NotebookNode]], int]] = {
    "a picture": (lambda: [picture(100, 100)], 1),
    "many pixels": (lambda: [picture(60_000, 60_000)], 0),
    "no pixels": (lambda: [picture(0, 10)], 0),
    "no picture": (lambda: [display(**{"image/png": "AAAA"})], 0),
    "many pictures": (lambda: [picture(1, 1)] * 300, LIMITS.pictures),
    "large pictures": (lambda: [picture(1, 1, 1_000_000)] * 9, 3),
    "much text": (
        lambda: [display(**{"text/plain": "a" * 30_000})] * 60,
        LIMITS.page_chars // (LIMITS.output_chars + 11),
    ),
    "many outputs": (lambda: [display(**{"text/plain": "a"})] * 1_100, LIMITS.outputs),
    "a flood": (lambda: [nbformat.v4.new_output("stream", text="a" * 999)] * 999, 1),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_page_has_room_for_so_much(name: str) -> None:
    make, left = OUTPUTS[name]
    found, whole = kept(*make())
    assert len(found) == left
    assert whole == (len(make()) == left or left < 2)


def test_what_a_cell_clears_makes_room() -> None:
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")])
    client = GradingClient(nb, LIMITS)
    client.clear_before_next_output = False
    clear = {"msg_type": "clear_output", "content": {"wait": True}, "parent_header": {}}
    shown = {"msg_type": "display_data", "content": picture(1, 1, 1_000_000), "cut": False}
    for message in [clear, shown] * 9:
        client.process_message(message, nb.cells[0], 0)
    assert len(nb.cells[0].outputs) == 1
    assert not client.flooded


MESSAGES = [
    ("stream", {"name": ["a"], "text": "\ud800" + "x" * 100_000}),
    ("stream", {}),
    ("error", {"ename": "\udfff", "evalue": "x" * 10**6, "traceback": ["x" * 10**5] * 99}),
    ("error", {"ename": {}, "traceback": "abc"}),
    ("display_data", {"data": [], "metadata": [], "transient": []}),
    ("display_data", {"data": {"text/plain": "\ud800", "text/html": "<b>"}, "metadata": {}}),
    ("execute_result", {"data": {"text/plain": ["x"]}, "metadata": {"image/png": {"alt": 1}}}),
]


@pytest.mark.parametrize(("kind", "content"), MESSAGES)
def test_a_message_becomes_plain_text_of_a_bounded_length(kind: str, content: Any) -> None:
    read = reduced(kind, content)
    text = json.dumps(read, ensure_ascii=False)
    text.encode()
    assert len(text) < 60 * LIMITS.output_chars
    assert "text/html" not in text


def test_what_is_printed_is_as_on_a_terminal() -> None:
    assert as_on_a_terminal("10%\r50%\r99%\r\ncd\n") == "99%\ncd\n"
    assert joined("10%\r" * 4_999, "50%\r99%\r\ncd\n") == "99%\ncd\n"
    assert joined(joined("a" * 20_000, "b"), "c") == "a" * 20_000 + "\n[cut off]"
    began = time.process_time()
    assert as_on_a_terminal("x" * 300_000) == "x" * 300_000
    as_on_a_terminal("x\r" * 300_000 + "x" * 300_000)
    assert time.process_time() - began < 2


def test_words_of_a_student_are_quoted_escaped_and_short() -> None:
    assert quoted("\x1b[2J\u202e'" + "a" * 99) == repr("\x1b[2J\u202e'" + "a" * 53 + "…")
    assert named(["mask", "a b", *"cdefg"]) == "mask, 'a b', c, d, e and 2 more"
    line = printable("not graded: \x1b]0;x\x07\r\n" + "a" * 9999)
    assert line.isprintable()
    assert len(line) < 1_100


def test_a_zip_of_deep_paths_is_unpacked_as_far_as_it_is_shallow(tmp_path: Path) -> None:
    deep = {f"{n}/" + "d/" * 100 + "a.ipynb": "1" for n in range(3000)}
    (tmp_path / "class.zip").write_bytes(zipped({"ada.ipynb": "1", **deep}))
    began = time.process_time()
    done = unpack(tmp_path / "class.zip", tmp_path / "out")
    assert time.process_time() - began < 10
    assert [path.name for path in done.files] == ["ada.ipynb"]
    assert len(done.left) == 3000
    assert "more than 20 folders deep" in done.left[0]


def test_folders_count_as_files(tmp_path: Path) -> None:
    path = tmp_path / "class.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for n in range(60):
            archive.writestr("/".join([str(n), *"abcdefghij"]), "")
    with pytest.raises(BadArchive, match="files and folders"):
        unpack(path, tmp_path / "out", files=500)
