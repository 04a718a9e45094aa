"""Questions on earlier lessons at a lesson's start, and its card at the end. Nothing is graded."""

from html import escape
from pathlib import Path
from urllib.parse import quote

from IPython.display import display

from autograde.cards import (
    CARD_FILE,
    OWN,
    Card,
    Question,
    as_html,
    read_card,
    write_notes,
)
from autograde.notebook.lesson_here import folder, lesson_folder
from autograde.notebook.practice import show
from autograde.progress import INDEX, NOTES, STATE, keep_line, write_page
from autograde.rubric.panel import Help, folded_html, panel, plain
from autograde.rubric.session import CellEnded
from autograde.values.text import inline

MISSING = f"They are in `{CARD_FILE}`, which comes with the lesson and is not beside this notebook."


def recall() -> None:
    """Ask what earlier lessons taught. Each choice unfolds into its answer."""
    card = _card()
    if card is None:
        show("Questions on earlier lessons", [MISSING])
        return
    asked = [_asked(number, each) for number, each in enumerate(card.questions, start=1)]
    answers = [f"{n}: {_reply(each, each.right)}" for n, each in enumerate(card.questions, start=1)]
    text = [plain(line) for lines, _ in asked for line in lines]
    html = "".join(html for _, html in asked)
    title = "Do you remember? (no points)"
    display(panel("idle", title, [], text=[*text, *map(plain, answers)], html=html), raw=True)


def remember(line: str = "") -> None:
    """Show the lesson's card; it goes into *My notes*, with a line of your own."""
    card = _card()
    if card is None:
        show("The lesson on a card", [MISSING])
        return
    text = [plain(f"{name}: {text}") for name, text in card.lines.items()]
    text += [f"{OWN}: {line}"] if line else []
    html = as_html(card, line)
    lesson, link = folder(), ""
    if (lesson.parent / STATE / INDEX).is_file():
        try:
            said = _keep(lesson, line)
        except OSError as error:
            why = escape(error.strerror or str(error))
            said = f"The card could not be put into My notes: {why}."
        link = f'<p style="margin:.6em 0 0">{said}</p>'
    shown = panel("idle", "The lesson on a card", [], text=text, html=html, below=link)
    display(shown, raw=True)


def _keep(lesson: Path, line: str) -> str:
    """Keep a line of the student's own, put the card into *My notes*, and say so in HTML."""
    keep_line(lesson, line)
    there = write_notes(lesson.parent)
    write_page(lesson.parent)
    notes = f'<a href="../{quote(NOTES)}">My notes</a>' if there else "My notes"
    if lesson.name in there:
        return f"The card is in {notes}."
    return f"The card joins {notes} when the last exercise is right."


def _card() -> Card | None:
    try:
        return read_card(lesson_folder())
    except ValueError as error:
        raise CellEnded(f"{error}. Run autograde update in a terminal.") from error


def _reply(question: Question, chosen: int) -> str:
    right = question.choices[question.right - 1]
    first = "✓ Right." if chosen == question.right else f"✗ No: {right}."
    return f"{first} {question.because}"


def _asked(number: int, question: Question) -> tuple[list[str], str]:
    """Return a question with its choices as lines of text, and as HTML."""
    choices = [
        Help(choice, (_reply(question, place),))
        for place, choice in enumerate(question.choices, start=1)
    ]
    asks = f"{number}. {question.asks}"
    html = f'<p style="margin:.8em 0 -.3em">{inline(asks)}</p>{folded_html(choices, "column")}'
    return [asks, *(f"   {choice}" for choice in question.choices)], html
