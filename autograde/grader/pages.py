"""Feedback pages of a class: the gradebook's part is read here, the page is made by a worker."""

import os
import pickle
from functools import lru_cache
from typing import Any

import nbformat
from nbconvert.exporters import Exporter
from nbconvert.exporters.exporter import ResourcesDict
from nbconvert.preprocessors import Preprocessor
from nbformat import NotebookNode
from nbgrader.converters import GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets.config import Config
from traitlets.utils.importstring import import_item

from autograde.course import Lesson


def converter(config: Config) -> GenerateFeedback:
    """nbgrader's generate_feedback, with the course's configuration."""
    return GenerateFeedback(coursedir=CourseDirectory(config=config), config=config)


def steps(feedback: GenerateFeedback) -> list[Preprocessor]:
    """The preprocessors that the course has configured for feedback, in order."""
    kinds = (import_item(pp) if isinstance(pp, str) else pp for pp in feedback.preprocessors)
    return [kind(parent=feedback, config=feedback.config) for kind in kinds]


def with_grades(
    feedback: GenerateFeedback, student: str, lesson: Lesson, nb: NotebookNode
) -> tuple[bytes, dict[str, Any]]:
    """The graded notebook with the gradebook's scores and comments, and what the page shows."""
    resources = ResourcesDict(
        unique_key=lesson.notebook,
        output_files_dir=f"{lesson.notebook}_files",
        metadata={"name": lesson.notebook},
        nbgrader={
            "student": student,
            "assignment": lesson.name,
            "notebook": lesson.notebook,
            "db_url": feedback.coursedir.db_url,
        },
    )
    for step in steps(feedback):
        if isinstance(step, NbGraderPreprocessor):  # only these know the gradebook
            nb, resources = step.preprocess(nb, resources)
    return nbformat.writes(nb).encode("utf-8", "surrogatepass"), dict(resources)


def render(root: str, config: bytes, nb: bytes, resources: dict[str, Any]) -> bytes:
    """The page; for a worker on the machine where the course is.

    Args:
        config: nbgrader's configuration, pickled by the coordinator.
    """
    os.chdir(root)
    notebook = nbformat.reads(nb.decode("utf-8", "surrogatepass"), as_version=4)
    page, _ = _exporter(config).from_notebook_node(notebook, ResourcesDict(**resources))
    return str(page).encode("utf-8", "xmlcharrefreplace")


@lru_cache(maxsize=1)
def _exporter(config: bytes) -> Exporter:
    feedback = converter(pickle.loads(config))  # noqa: S301 (the coordinator's own bytes)
    exporter: Exporter = feedback.exporter_class(parent=feedback, config=feedback.config)
    for step in steps(feedback):
        if not isinstance(step, NbGraderPreprocessor):
            exporter.register_preprocessor(step, enabled=True)
    return exporter
