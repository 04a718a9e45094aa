"""A lesson's card, and questions on earlier lessons: `card.toml` beside its text.

The cards of the lessons whose last exercise is right make the page *My notes* in the working copy,
each with a line of the student's own. Grading neither writes nor reads any of it.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from autograde.files import write_whole
from autograde.progress import NOTES, Standing, kept_line, of_course
from autograde.values.text import inline

CARD_FILE = "card.toml"
OWN = "My own line"
"""The line's name on a card, and the kind of text as which it is kept."""

PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>My notes</title>
<style>
:root {{ color-scheme: light dark }}
body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 46em; margin: 2em auto; padding: 0 1em }}
section {{ border-top: 1px solid #888; break-inside: avoid }}
h2 {{ font-size: 1.1rem; margin: .8em 0 .4em }}
code {{ font-family: ui-monospace, monospace }}
@media print {{ body {{ margin: 0; max-width: none }} .screen {{ display: none }} }}
</style>
<h1>My notes</h1>
<p class="screen">{said}</p>
{cards}
</html>
"""
GROWS = (
    "A card for each lesson whose last exercise is right. The last cell of a lesson adds a line of "
    "your own. To print this page, open it in a browser from your folder of lessons."
)


@dataclass(frozen=True)
class Question:
    """A question with choices; `right` is the number of the right one, counted from 1."""

    asks: str
    choices: tuple[str, ...]
    right: int
    because: str


@dataclass(frozen=True)
class Card:
    """What to remember of a lesson, by name, and the questions asked at its start."""

    lines: Mapping[str, str]
    questions: tuple[Question, ...]


def read_card(folder: Path) -> Card | None:
    """Return the card in a lesson's folder, or None if there is none.

    Raises:
        ValueError: it is damaged; the message says where.
    """
    path = folder / CARD_FILE
    if not path.is_file():
        return None
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
        questions = tuple(map(_question, found.pop("question", [])))
        lines = {str(name): str(line) for name, line in found.pop("card").items()}
        if found or not lines:
            raise ValueError(f"it holds [card] and [[question]], not {', '.join(found) or 'less'}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: {type(error).__name__}: {error}") from error
    return Card(lines, questions)


def _question(found: Mapping[str, Any]) -> Question:
    question = Question(**{**found, "choices": tuple(found["choices"])})
    if not 1 <= question.right <= len(question.choices):
        raise ValueError(f"“{question.asks}” has no choice {question.right}")
    return question


def write_notes(working: Path) -> list[str]:
    """Write the page *My notes* of a working copy, if it has a card to show.

    Return the lessons whose cards it shows.
    """
    every = {lesson.lesson: _section(working, lesson) for lesson in of_course(working)}
    sections = {name: section for name, section in every.items() if section}
    if sections:
        page = PAGE.format(said=GROWS, cards="\n".join(sections.values()))
        write_whole(working / NOTES, page.encode("utf-8", "replace"))
    return [*sections]


def _section(working: Path, lesson: Standing) -> str:
    """Return a lesson's card as HTML, or "" as long as its last exercise is not right."""
    folder = working / lesson.lesson
    try:
        card = read_card(folder)
    except ValueError:  # a student has changed it; the lesson's own last cell says so
        return ""
    if card is None or [*lesson.worth][-1:] != lesson.solved[-1:]:
        return ""
    own = kept_line(folder).strip()
    return f"<section><h2>{inline(lesson.title)}</h2>{as_html(card, own)}</section>"


def as_html(card: Card, own: str) -> str:
    """Return a card, and a student's own line if there is one, as a list."""
    rows = [(escape(name), inline(line)) for name, line in card.lines.items()]
    rows += [(OWN, escape(own))] if own else []
    cell = "margin:0;float:none;width:auto;overflow-wrap:anywhere"  # JupyterLab has its own
    inner = "".join(
        f'<dt style="{cell};font-weight:bold">{name}</dt><dd style="{cell}">{line}</dd>'
        for name, line in rows
    )
    look = "display:grid;grid-template-columns:minmax(6em,max-content) 1fr;gap:.3em 1em"
    return f'<dl style="{look};margin:.5em 0">{inner}</dl>'
