"""Writing files and folders whole while others read."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from autograde.files import replace_folder, write_folder


def test_nothing_stays_of_the_folder_that_was_there(tmp_path: Path) -> None:
    target = tmp_path / "lesson"
    write_folder(target, {"old.txt": b"1", "deep/both.txt": b"1"})
    write_folder(target, {"deep/both.txt": b"2"})
    assert [path.name for path in tmp_path.iterdir()] == ["lesson"]
    files = {path.name: path.read_bytes() for path in target.rglob("*.txt")}
    assert files == {"both.txt": b"2"}


def test_the_folder_that_was_there_stays_until_the_new_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, fresh = tmp_path / "lesson", tmp_path / "fresh"
    for folder in (target, fresh):
        folder.mkdir()
        (folder / "note").write_text(folder.name)

    def full(source: Path, place: Path) -> Any:
        assert not place.exists()
        shutil.copytree(source, place)
        raise OSError("no room")

    monkeypatch.setattr(shutil, "move", full)
    with pytest.raises(OSError, match="no room"):
        replace_folder(fresh, target)
    assert (target / "note").read_text() == "lesson"
    # nor is it lost to somebody who was killed before the new one was there
    target.rename(tmp_path / ".lesson.before")
    with pytest.raises(OSError, match="no room"):
        replace_folder(fresh, target)
    assert (target / "note").read_text() == "lesson"
