"""Writing files and folders whole while others read."""

import errno
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from autograde.cli import reason
from autograde.files import replace_folder, write_folder, write_whole


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


def test_a_file_that_cannot_be_written_is_named_and_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "curriculum.toml"
    path.write_text("before")
    monkeypatch.setattr(Path, "write_bytes", fail)
    monkeypatch.setattr(Path, "unlink", fail)  # on a disk that is read-only
    with pytest.raises(OSError, match="No space left") as raised:
        write_whole(path, b"after")
    assert raised.value.filename == str(path)
    assert path.read_text() == "before"


def test_of_a_folder_that_cannot_be_copied_one_file_is_named(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / "from" / name).mkdir(parents=True)
        (tmp_path / "from" / name / "file").symlink_to("nowhere")
    with pytest.raises(shutil.Error) as raised:
        shutil.copytree(tmp_path / "from", tmp_path / "to")
    assert re.fullmatch(r"\[Errno 2\] No such file or directory: '\S+/file'", reason(raised.value))
