"""Archives that are damaged or dangerous, and what the command says about them."""

import io
import os
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from downloads import zipped

from autograde.lms.archives import BYTES, FILES, BadArchive, check, unpack


def link() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        info = zipfile.ZipInfo("doejane_1_2_x.ipynb")
        info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    return buffer.getvalue()


def encrypted() -> bytes:
    data = bytearray(zipped({"x": "1"}))
    data[6] |= 1  # the local header's flag, and the central directory's
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def twice() -> bytes:
    data = zipped({"x.ipynb": "1", "y.ipynb": "2"})
    return data.replace(b"y.ipynb", b"X.ipynb")


def corrupt() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("x", "some text")
    return buffer.getvalue().replace(b"some text", b"same text")


BAD: dict[str, tuple[Callable[[], bytes], str]] = {
    "traversal": (lambda: zipped({"a/../../x": "1"}), "'a/../../x' leads out of the folder"),
    "traversal the other way": (lambda: zipped({"..\\x": "1"}), "leads out of the folder"),
    "absolute": (lambda: zipped({"/etc/x": "1"}), "'/etc/x' is an absolute path"),
    "drive": (lambda: zipped({"C:\\x": "1"}), "is an absolute path"),
    "link": (link, "is a link"),
    "encrypted": (encrypted, "is encrypted"),
    "one name twice": (twice, "is in it twice"),
    "many files": (lambda: zipped({str(i): "" for i in range(60)}), "it holds 60 files"),
    "no archive": (lambda: b"<html>log in first</html>", "it cannot be read"),
    "cut short": (lambda: zipped({"x": "1" * 999})[:-30], "it cannot be read"),
    "corrupt": (corrupt, "it cannot be read"),
    "long name": (lambda: zipped({"x" * 300: "1"}), "is not a valid file name"),
    "bomb": (lambda: zipped({str(i): bytes(40_000_000) for i in range(3)}), "a zip bomb"),
    "too much": (lambda: zipped({str(i): os.urandom(500_000) for i in range(3)}), "1500000 bytes"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_archive_is_refused_with_the_reason(kind: str, tmp_path: Path) -> None:
    make, reason = BAD[kind]
    archive = tmp_path / "download.zip"
    archive.write_bytes(make())
    most = 1_000_000 if kind == "too much" else BYTES
    with pytest.raises(BadArchive) as refused:
        unpack(archive, tmp_path / "out", files=50, size=most)
    assert reason in str(refused.value)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["download.zip"]


def test_one_students_bad_file_is_left_in_and_the_rest_comes_out(tmp_path: Path) -> None:
    archive = tmp_path / "download.zip"
    archive.write_bytes(zipped({
        "good_1_2_a.ipynb": "{}",
        "huge_2_3_a.ipynb": b"x" * 2000,
        "inner_3_4_hw.zip": zipped({"hw/a.ipynb": "{}", "hw/again.zip": zipped({"b": "1"})}),
        "wild_4_5_hw.zip": zipped({"../../x": "1"}),
    }))  # fmt: skip
    done = unpack(archive, tmp_path / "out", one=1000)
    found = {path.relative_to(tmp_path / "out").as_posix() for path in done.files}
    assert found == {
        "good_1_2_a.ipynb", "inner_3_4_hw.zip.d/hw/a.ipynb",
        "inner_3_4_hw.zip.d/hw/again.zip", "wild_4_5_hw.zip",
    }  # fmt: skip
    assert [left.split("'")[1] for left in done.left] == ["huge_2_3_a.ipynb", "wild_4_5_hw.zip"]


def test_a_size_that_lies_gives_no_more_than_it_says(tmp_path: Path) -> None:
    data = bytearray(zipped({"x": bytes(5_000_000)}))
    place = data.index(b"PK\x01\x02") + 24
    data[place : place + 4] = (10).to_bytes(4, "little")
    archive = tmp_path / "download.zip"
    archive.write_bytes(data)
    with pytest.raises(BadArchive, match="cannot be read"):
        unpack(archive, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_nothing_is_too_much_for_an_ordinary_class() -> None:
    members = []
    for number in range(2000):
        info = zipfile.ZipInfo(f"student{number}_{number}_1_causal_mask.ipynb")
        info.file_size = 1_500_000
        members.append(info)
    check(members, 200_000_000, FILES, BYTES)
