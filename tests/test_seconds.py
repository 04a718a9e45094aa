"""A build notes which cells take long; the page then knows on the first run what is left."""

import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from autograde.authoring.same import other_files
from autograde.authoring.seconds import SECONDS, Stopwatch, hand_on
from autograde.sandbox.provisioner import open_manager


def code(source: str, id: str, **metadata: int) -> NotebookNode:
    return NotebookNode(new_code_cell(source, id=id, metadata=metadata))


def test_a_long_cell_gets_its_seconds_and_a_short_one_none(tmp_path: Path) -> None:
    nb = new_notebook(cells=[code("1", "short"), code("import time; time.sleep(2.1)", "long")])
    watch = Stopwatch()
    client = NotebookClient(
        nb, km=open_manager(tmp_path), on_cell_execute=watch.begin, on_cell_executed=watch.end
    )
    client.execute(cleanup_kc=True)
    short, long = nb.cells
    assert SECONDS not in short.metadata
    assert 3 <= long.metadata[SECONDS] <= 10


@pytest.mark.parametrize(("took", "noted"), [(1.9, None), (2, 2), (3.1, 5), (61, 90), (9999, 400)])
def test_seconds_are_rounded_up(
    took: float, noted: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([100.0, 100.0 + took])
    monkeypatch.setattr(sys.modules[Stopwatch.__module__].time, "monotonic", lambda: next(times))
    watch, cell = Stopwatch(), code("1", "a")
    watch.begin(cell, 0)
    watch.end(cell, 0, {})
    assert cell.metadata.get(SECONDS) == noted


def test_students_get_the_seconds_and_a_build_that_took_longer_is_the_same(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("executed", "student", "slow")]
    files = [folder / "it.ipynb" for folder in folders]
    for path, seconds in zip(files, ({SECONDS: 5}, {SECONDS: 90}, {SECONDS: 45}), strict=True):
        path.parent.mkdir()
        cells = [code("a", "a", **seconds), code("b", "b")]
        nbformat.write(new_notebook(cells=cells), path)
    before = files[1].read_bytes()
    hand_on(files[0], files[1])
    assert [cell.metadata for cell in nbformat.read(files[1], 4).cells] == [{SECONDS: 5}, {}]
    assert files[1].read_bytes() == before.replace(b'"seconds": 90', b'"seconds": 5')
    assert [*other_files(folders[1], folders[2])] == []
