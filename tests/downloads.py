"""The downloads that an LMS offers for a class, and the nbgrader command that reads them."""

import io
import zipfile

from nbgrader.apps import ZipCollectApp
from nbgrader.coursedir import CourseDirectory

from autograde.course.config import course_config
from autograde.course.lessons import Lesson


def zipped(files: dict[str, bytes | str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def zip_collect(lesson: Lesson, download: dict[str, bytes | str] | None = None) -> None:
    """What `nbgrader zip_collect` does with the course's configuration.

    Args:
        download: the files of an archive that is put where the command looks for it.
    """
    if download is not None:
        place = lesson.root / "downloaded" / lesson.name / "archive" / "download.zip"
        place.parent.mkdir(parents=True)
        place.write_bytes(zipped(download))
    config = course_config(lesson.root)
    config.CourseDirectory.assignment_id = lesson.name
    app = ZipCollectApp(config=config)
    app.coursedir = CourseDirectory(config=config)
    app.start()
