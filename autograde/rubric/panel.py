"""A verdict as a panel: plain text for terminals and screen readers, HTML for notebooks."""

import re
from html import escape

from autograde.rubric.judge import LineVerdict, Verdict

STYLE = {
    "panel": "border:1px solid #b8b8b8;border-left-width:6px;border-radius:4px;padding:.6em .9em;"
    "max-width:46em;color:#1b1b1b;background:#fff",
    "right": "#1f6f8b",
    "wrong": "#b5541c",
    "idle": "#6b6b6b",
}
MARK_WIDTH = "5.6em"
"""Room for a mark and its word in any font; what follows begins there, on every line."""


def number(points: float) -> str:
    """Points as people write them: 3, 2.5, 1.29."""
    return f"{points:.2f}".rstrip("0").rstrip(".")


def headline(verdict: Verdict) -> str:
    return f"{verdict.exercise}: {number(verdict.points)} of {number(verdict.max_points)} points"


def advice(verdict: Verdict, *, named: bool) -> list[str]:
    """What to say below the lines: the note, and the misconception where it is to be named."""
    said = [verdict.note] if verdict.note else []
    if verdict.misconception is not None and named:
        said.append(
            f"This is what comes out when one thinks: “{verdict.misconception.misconception}”"
        )
        said.append(f"Hint: {verdict.misconception.hint}")
    return said


def repair_first(earlier: list[str]) -> str:
    """Where to look first, when exercises that this one may build on are not right."""
    return f"First repair {earlier[0]}; this exercise may build on it."


def to_text(verdict: Verdict, said: list[str]) -> str:
    """The panel as text; `said` are the paragraphs below the lines."""
    lines = [headline(verdict)]
    if verdict.attempted:
        for line in verdict.lines:
            mark = "right" if line.passed else "held " if line.held else "WRONG"
            lines.append(f"  {mark}  {line.name}" + (f": {line.reason}" if line.reason else ""))
    return "\n".join([*lines, *said])


def to_html(verdict: Verdict, said: list[str]) -> str:
    """The panel as HTML: no script, no address, every text escaped."""
    colour = STYLE["right" if verdict.passed else "wrong" if verdict.attempted else "idle"]
    rows = "".join(_row(line) for line in verdict.lines if verdict.attempted)
    paragraphs = "".join(f'<p style="margin:.5em 0 0">{inline(text)}</p>' for text in said)
    return (
        f'<div class="rubric" style="{STYLE["panel"]};border-left-color:{colour}">'
        f"<strong>{escape(headline(verdict))}</strong>"
        f'<ul style="list-style:none;margin:.4em 0 0;padding:0">{rows}</ul>{paragraphs}</div>'
    )


def _row(line: LineVerdict) -> str:
    mark, kind = ("✓ right", "right") if line.passed else ("✗ wrong", "wrong")
    if line.held:
        mark, kind = "· held", "idle"
    reason = f"<br>{inline(line.reason)}" if line.reason else ""
    return (
        f'<li style="margin:.15em 0;padding-left:{MARK_WIDTH};text-indent:-{MARK_WIDTH}">'
        f'<span style="display:inline-block;width:{MARK_WIDTH};text-indent:0;white-space:nowrap;'
        f'color:{STYLE[kind]};font-weight:bold">{mark} </span>{escape(line.name)}{reason}</li>'
    )


def inline(text: str) -> str:
    """Escaped text, with what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
