"""The settings of nbgrader that have it build, grade and return the lessons of a course.

A course's `nbgrader_config.py` calls `configure` and goes on to what is the teacher's to choose.
"""

from pathlib import Path
from typing import Any

from autograde.course.package import make_importable
from autograde.workspace.validate import ask_for_table


def configure(c: Any, config_file: str) -> None:
    """Set what every course needs, for the course in the configuration's folder."""
    root = Path(config_file).absolute().parent
    make_importable(root)
    c.CourseDirectory.source_directory = "source"
    c.CourseDirectory.release_directory = "notebooks"
    c.CourseDirectory.solution_directory = "solutions"
    c.CourseDirectory.submitted_directory = "submitted"
    c.CourseDirectory.autograded_directory = "autograded"
    c.CourseDirectory.feedback_directory = "feedback"

    # A marking scheme ends the locked question of a written answer. The gradebook keeps it and puts
    # it back for whoever grades in Formgrader; students get it neither in a lesson nor in feedback.
    c.ClearMarkScheme.enforce_metadata = False
    c.GenerateAssignment.preprocessors = [
        "autograde.grading.nbgrader_steps.Withhold",
        "autograde.authoring.build.Identify",
        "autograde.authoring.build.LintSource",
        "nbgrader.preprocessors.LockCells",
        "autograde.authoring.build.ClearLesson",
        "nbgrader.preprocessors.ClearOutput",
        "nbgrader.preprocessors.CheckCellMetadata",
        "nbgrader.preprocessors.ComputeChecksums",
        "autograde.authoring.build.SavePoints",
        "nbgrader.preprocessors.SaveCells",
        "nbgrader.preprocessors.ClearHiddenTests",
        "nbgrader.preprocessors.ClearMarkScheme",
        "nbgrader.preprocessors.ComputeChecksums",
        "nbgrader.preprocessors.CheckCellMetadata",
        "autograde.authoring.build.LintStudent",
        "autograde.authoring.build.AddPracticeData",
        "autograde.authoring.build.KeepVersion",
    ]
    c.GenerateSolution.preprocessors = [
        "autograde.grading.nbgrader_steps.Withhold",
        "autograde.authoring.build.Identify",
        "nbgrader.preprocessors.LockCells",
        "nbgrader.preprocessors.ClearOutput",
        "autograde.authoring.build.RunReference",
        "autograde.authoring.build.AddPracticeData",
    ]

    # Validate answers with one table, in `nbgrader validate` as in students' JupyterLab.
    c.Validator.Execute.on_notebook_start = ask_for_table

    c.Autograde.exporter_class = "autograde.grading.nbgrader_steps.SubmissionExporter"
    c.Autograde.sanitize_preprocessors = [
        "autograde.grading.nbgrader_steps.Withhold",
        "autograde.grading.nbgrader_steps.Restore",
        "nbgrader.preprocessors.OverwriteKernelspec",
        "nbgrader.preprocessors.OverwriteCells",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    c.Autograde.autograde_preprocessors = [
        "autograde.grading.nbgrader_steps.Run",
        "nbgrader.preprocessors.AssignLatePenalties",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    c.GenerateFeedback.preprocessors = [
        "autograde.grading.nbgrader_steps.Withhold",
        "autograde.grading.nbgrader_steps.HandGrades",
        "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
    ]
    c.GenerateFeedback.exporter_class = "autograde.grading.feedback.FeedbackExporter"

    # A course that had a penalty of its own keeps it, wherever its configuration calls this.
    c.AssignLatePenalties.setdefault("plugin_class", "autograde.grading.gradebook.LatePolicy")

    # nbgrader release_assignment releases what was built, not what somebody tried in it since.
    c.ExchangeFactory.release_assignment = "autograde.authoring.release.ReleaseAsBuilt"
    # nbgrader collect follows no links that students place in the exchange.
    c.ExchangeFactory.collect = "autograde.lms.exchange.PlainCollect"
    # nbgrader release_feedback leaves out a submission that does not say whose it is, and goes on.
    c.ExchangeFactory.release_feedback = "autograde.lms.exchange.SteadyReleaseFeedback"
