"""Text that files and pages can hold, digests of text, and numbers as people write them."""

import re
from hashlib import sha256
from html import escape
from unicodedata import category

LINE_BREAK = re.compile(r"\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
UNSEEN = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e]")
"""Control characters, and those that show what follows in another order."""
MARKS, JOINS = ("Mn", "Me"), "Cf"
MOST_MARKS = 4
"""On one character: Hebrew and Thai need three. Hundreds would cover the lines above and below."""


def well_formed(text: str) -> str:
    """Return the text with lone surrogates replaced, which files cannot hold nor pages show."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def visible(text: str) -> str:
    """Return the text with characters escaped that are invisible or rearrange their neighbours."""
    shown = few_marks(text)
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in shown)


def readable(text: str) -> str:
    r"""Return a text in which only \n breaks a line, no character is unseen, and marks are few."""
    return few_marks(UNSEEN.sub("\ufffd", LINE_BREAK.sub("\n", text)))


def few_marks(text: str) -> str:
    """Return the text with at most MOST_MARKS accents and other marks on each character."""
    if text.isascii():
        return text
    kept, marks = [], 0
    for character in text:
        group = category(character)
        if group != JOINS:  # an unseen joiner between marks is no new character to put them on
            marks = marks + 1 if group in MARKS else 0
        if marks <= MOST_MARKS:
            kept.append(character)
    return "".join(kept)


def short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def digest(text: str) -> str:
    """Return the SHA-256 digest of any text, even with lone surrogates."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def number(points: float) -> str:
    """Return points as people write them: 3, 2.5, 1.29."""
    return f"{points:.2f}".rstrip("0").rstrip(".")


def of_points(points: float, most: float, waiting: float = 0) -> str:
    """Return a score in words: 2.5 of 3 points; 5 of 9 points, 2 points await marking."""
    score = f"{number(points)} of {number(most)} point{'s' * (most != 1)}"
    return f"{score}, {await_marking(waiting)}" if waiting else score


def await_marking(points: float) -> str:
    """Return in words how many points a person still has to give."""
    return f"{number(points)} point{'s' * (points != 1)} await{'s' * (points == 1)} marking"


def inline(text: str) -> str:
    """Return escaped text, with the parts between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
