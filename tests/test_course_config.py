"""nbgrader's converters, started with a course's own configuration."""

import os
import shutil
from pathlib import Path

import pytest
from conftest import HERE
from nbgrader.converters.base import BaseConverter, NbGraderException
from nbgrader.utils import setenv

from autograde.course.config import CONFIG, convert, course_config
from autograde.course.lessons import CourseError


class Stops(BaseConverter):
    """A converter that fails while it grades, as nbgrader's does."""

    def start(self) -> None:
        with setenv(NBGRADER_EXECUTION="autograde"):
            raise NbGraderException("it stops")


def test_a_converter_that_fails_leaves_no_sign_of_grading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(HERE / CONFIG, tmp_path)
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    with pytest.raises(CourseError, match="it stops"):
        convert(Stops, course_config(tmp_path))
    assert "NBGRADER_EXECUTION" not in os.environ
