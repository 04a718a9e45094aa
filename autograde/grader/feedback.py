"""Feedback pages: nbgrader's generate_feedback with a page of this project's own."""

from pathlib import Path
from typing import Any

from nbconvert.exporters import HTMLExporter
from traitlets import default
from traitlets.config import Config

TEMPLATES = Path(__file__).parent / "templates"


class FeedbackExporter(HTMLExporter):
    """A page that works offline: no script and no network address; Markdown is sanitised."""

    @property
    def default_config(self) -> Config:
        """This class's own section wins over what nbgrader sets for every HTMLExporter."""
        config = Config(
            FeedbackExporter={
                "template_name": "attention_feedback",
                "extra_template_basedirs": [str(TEMPLATES)],
                "sanitize_html": True,
            }
        )
        config.merge(super().default_config)
        return config

    @default("file_extension")
    def _file_extension_default(self) -> Any:
        return ".html"
