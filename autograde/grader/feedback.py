"""Feedback pages: nbgrader's generate_feedback with a page of this project's own."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nbconvert.exporters import HTMLExporter
from traitlets.config import Config

from autograde.grader.markup import harmless
from autograde.verdict.panel import number

TEMPLATES = Path(__file__).parent / "templates"


class FeedbackExporter(HTMLExporter):
    """A page that works offline: no script, nothing loaded; Markdown is sanitised."""

    @property
    def default_config(self) -> Config:
        """This class's own section wins over what nbgrader sets for every HTMLExporter."""
        own = {
            "template_name": "attention_feedback",
            "extra_template_basedirs": [str(TEMPLATES)],
            "exclude_anchor_links": True,
        }
        config = Config(FeedbackExporter=own)
        config.merge(super().default_config)
        return config

    def default_filters(self) -> Iterable[tuple[str, Any]]:
        yield from super().default_filters()  # type: ignore[no-untyped-call]
        yield "harmless", harmless
        yield "number", number
