"""Feedback pages: nbgrader's generate_feedback with a page of this project's own."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from markupsafe import Markup
from nbconvert.exporters import HTMLExporter
from nbconvert.filters.highlight import Highlight2HTML
from nbformat import NotebookNode
from traitlets.config import Config

from autograde.grading.feedback_page import page_of
from autograde.rubric.panel import inline, number

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

    def from_notebook_node(  # type: ignore[override]  # as HTMLExporter's
        self, nb: NotebookNode, resources: dict[str, Any] | None = None, **options: Any
    ) -> tuple[str, dict[str, Any]]:
        """The page, as the template makes it.

        HTMLExporter would read it all again, to give words to pictures that have none and to mark
        the cells of its own template. Here every picture has words, and it takes most of the time.
        """
        about = nb.metadata.get("language_info", {})
        lexer = about.get("pygments_lexer", about.get("name"))
        highlight = Highlight2HTML(pygments_lexer=lexer, parent=self)
        self.register_filter("highlight_code", highlight)  # type: ignore[no-untyped-call]
        page: tuple[str, dict[str, Any]]
        page = super(HTMLExporter, self).from_notebook_node(nb, resources, **options)
        return page

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
