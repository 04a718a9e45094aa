"""Feedback pages of a class, made by workers from plain data: they do not ask the gradebook."""

import json
import os
import pickle
from functools import lru_cache

import nbformat
from nbconvert.exporters import Exporter
from nbconvert.exporters.exporter import ResourcesDict
from nbconvert.preprocessors import Preprocessor
from nbformat import NotebookNode
from nbgrader.converters import GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import GetGrades, NbGraderPreprocessor
from traitlets.config import Config
from traitlets.utils.importstring import import_item

from autograde.course import Lesson
from autograde.grading.saving import Saved


def converter(config: Config) -> GenerateFeedback:
    """nbgrader's generate_feedback, with the course's configuration."""
    return GenerateFeedback(coursedir=CourseDirectory(config=config), config=config)


def steps(feedback: GenerateFeedback) -> list[type[Preprocessor]]:
    """The preprocessors that the course has configured for feedback, in order."""
    return [import_item(pp) if isinstance(pp, str) else pp for pp in feedback.preprocessors]


def as_bytes(nb: NotebookNode) -> bytes:
    """A notebook on its way to another process; a file is written by nbformat."""
    return json.dumps(nb).encode()


def from_bytes(content: bytes) -> NotebookNode:
    return NotebookNode(nbformat.from_dict(json.loads(content)))


def render(
    root: str, config: bytes, graded: bytes, place: tuple[str, Lesson], saved: Saved
) -> tuple[bytes, bytes]:
    """The graded notebook's file and its page; for a worker on the machine where the course is.

    Args:
        config: nbgrader's configuration, pickled by the coordinator.
        graded: the graded notebook.
        saved: what the gradebook holds of it.
    """
    os.chdir(root)
    feedback, exporter = _converter(config)
    nb, resources = _with_grades(feedback, place, from_bytes(graded), saved)
    page, _ = exporter.from_notebook_node(nb, resources)
    file = nbformat.writes(from_bytes(graded)) + "\n"
    return file.encode("utf-8", "replace"), page.encode("utf-8", "xmlcharrefreplace")


def _with_grades(
    feedback: GenerateFeedback, place: tuple[str, Lesson], nb: NotebookNode, saved: Saved
) -> tuple[NotebookNode, ResourcesDict]:
    """The graded notebook with the gradebook's scores and comments, and what the page shows."""
    student, lesson = place
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
    for kind in steps(feedback):
        if not issubclass(kind, NbGraderPreprocessor):
            continue  # it does not know the gradebook, so the exporter does it
        step = kind(parent=feedback, config=feedback.config)
        if isinstance(step, GetGrades):
            _get_grades(step, nb, resources, saved)
        else:
            nb, resources = step.preprocess(nb, resources)
    return nb, resources


def _get_grades(step: GetGrades, nb: NotebookNode, resources: ResourcesDict, saved: Saved) -> None:
    """What this step does by itself, but with what the coordinator has read."""
    place = resources["nbgrader"]
    step.notebook_id, step.assignment_id = place["notebook"], place["assignment"]
    step.student_id, step.gradebook = place["student"], saved
    for index, cell in enumerate(nb.cells):
        nb.cells[index], _ = step.preprocess_cell(cell, resources, index)
    penalty = saved.penalty or 0
    place["score"] = saved.score - penalty
    place["max_score"], place["late_penalty"] = saved.max_score, penalty


@lru_cache(maxsize=1)
def _converter(config: bytes) -> tuple[GenerateFeedback, Exporter]:
    feedback = converter(pickle.loads(config))  # noqa: S301 (the coordinator's own bytes)
    exporter: Exporter = feedback.exporter_class(parent=feedback, config=feedback.config)
    for kind in steps(feedback):
        if not issubclass(kind, NbGraderPreprocessor):
            exporter.register_preprocessor(kind)
    return feedback, exporter
