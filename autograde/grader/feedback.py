"""Feedback pages: nbgrader's generate_feedback with a page of this project's own."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from markupsafe import Markup
from nbconvert.exporters import HTMLExporter
from nbformat import NotebookNode
from traitlets.config import Config

from autograde.grader.feedback_page import page_of
from autograde.verdict.panel import inline, number

TEMPLATES = Path(__file__).parent / "templates"


class FeedbackExporter(HTMLExporter):
    """A page that works offline: no script, nothing loaded, no address but its own parts."""

    @property
    def default_config(self) -> Config:
        """This class's own section wins over what nbgrader sets for every HTMLExporter."""
        own = {"template_name": "attention_feedback", "extra_template_basedirs": [str(TEMPLATES)]}
        config = Config(FeedbackExporter=own)
        config.merge(super().default_config)
        return config

    def default_filters(self) -> Iterable[tuple[str, Any]]:
        yield from super().default_filters()  # type: ignore[no-untyped-call]
        yield "page_of", page_of
        yield "number", number
        yield "inline", lambda text: Markup(inline(text))  # noqa: S704 (it escapes)


def feedback_page(nb: NotebookNode, notebook: str, score: float, max_score: float) -> str:
    """The page of a judged notebook that no gradebook knows.

    Args:
        notebook: its name, for a page without a heading.
    """
    total = {"notebook": notebook, "score": score, "max_score": max_score, "late_penalty": 0}
    page: str
    exporter = FeedbackExporter()  # type: ignore[no-untyped-call]
    page, _ = exporter.from_notebook_node(nb, {"nbgrader": total})
    return page
