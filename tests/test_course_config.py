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


OWN = """
from nbgrader.plugins import BasePlugin
class Gentle(BasePlugin):
    pass
c = get_config()
c.AssignLatePenalties.plugin_class = Gentle
"""
"""A configuration as a course had it before it had lessons."""
CALL = """
from autograde.nbgrader_settings import configure
configure(get_config(), __file__)
"""


@pytest.mark.parametrize("text", [OWN + CALL, CALL + OWN], ids=["last", "first"])
def test_a_course_keeps_its_own_late_penalty(tmp_path: Path, text: str) -> None:
    (tmp_path / CONFIG).write_text(text)
    assert course_config(tmp_path).AssignLatePenalties.plugin_class.__name__ == "Gentle"


def test_a_folder_in_which_nbgrader_finds_nothing_is_named(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match=r"because of the \[: rename that folder"):
        course_config(tmp_path / "Kurs [2026]")


TAKEN_BACK = {
    "c.CourseDirectory.release_directory = 'release'": r"release_directory is 'release'; .* has "
    "'notebooks'",
    "c.Autograde.autograde_preprocessors = ['nbgrader.preprocessors.Execute']": r"c\.Autograde"
    r"\.autograde_preprocessors lacks autograde\.grading\.nbgrader_steps\.Run",
}


@pytest.mark.parametrize("line", TAKEN_BACK)
def test_what_takes_back_the_settings_of_a_course_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / CONFIG).write_text(f"{CALL}\nc = get_config()\n{line}\n")
    with pytest.raises(CourseError, match=TAKEN_BACK[line]):
        course_config(tmp_path)


def test_a_course_adds_steps_of_its_own(tmp_path: Path) -> None:
    more = (
        "get_config().Autograde.autograde_preprocessors += ['nbgrader.preprocessors.LimitOutput']"
    )
    (tmp_path / CONFIG).write_text(f"{CALL}\n{more}\n")
    assert "LimitOutput" in course_config(tmp_path).Autograde.autograde_preprocessors[-1]
