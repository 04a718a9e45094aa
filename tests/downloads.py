"""The downloads that an LMS offers for a class."""

import io
import zipfile

from autograde.course.lessons import Lesson
from autograde.lms.collect import collect


def zipped(files: dict[str, bytes | str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def collect_zipped(lesson: Lesson, download: dict[str, bytes | str]) -> None:
    """Collect the files of an archive that is put where `autograde collect` looks for it."""
    place = lesson.root / "downloaded" / lesson.name / "archive" / "download.zip"
    place.parent.mkdir(parents=True)
    place.write_bytes(zipped(download))
    collect(lesson, [])
