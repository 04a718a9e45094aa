"""A verdict as a panel: plain text for terminals and screen readers, HTML for notebooks."""

from html import escape

from autograde.verdict.judge import LineVerdict, Verdict

STYLE = {
    "panel": "border:1px solid #b8b8b8;border-left-width:6px;border-radius:4px;padding:.6em .9em;"
    "max-width:46em;font-family:sans-serif;color:#1b1b1b;background:#fff",
    "right": "#1f6f8b",
    "wrong": "#b5541c",
    "idle": "#6b6b6b",
}


def number(points: float) -> str:
    """Points as people write them: 3, 2.5, 1.29."""
    return f"{points:.2f}".rstrip("0").rstrip(".")


def headline(verdict: Verdict) -> str:
    return f"{verdict.exercise}: {number(verdict.points)} of {number(verdict.max_points)} points"


def advice(verdict: Verdict, *, named: bool) -> list[str]:
    """What to say below the lines: the note, and the misconception where it is to be named."""
    said = [verdict.note] if verdict.note else []
    if verdict.misconception is not None and named:
        said.append(f"What seems to be behind it: {verdict.misconception.misconception}")
        said.append(f"Hint: {verdict.misconception.hint}")
    return said


def begin_there(earlier: list[str]) -> str:
    """Where to look first, when exercises that this one may build on are not right."""
    names = " and ".join(earlier)
    are = "is" if len(earlier) == 1 else "are"
    return f"If these lines call {names}: {names} {are} not right. Begin there."


def to_text(verdict: Verdict, said: list[str]) -> str:
    """The panel as text; `said` are the paragraphs below the lines."""
    lines = [headline(verdict)]
    if verdict.attempted:
        for line in verdict.lines:
            mark = "right" if line.passed else "WRONG"
            lines.append(f"  {mark}  {line.name}" + (f": {line.reason}" if line.reason else ""))
    return "\n".join([*lines, *said])


def to_html(verdict: Verdict, said: list[str]) -> str:
    """The panel as HTML: no script, no address, every text escaped."""
    colour = STYLE["right" if verdict.passed else "wrong" if verdict.attempted else "idle"]
    rows = "".join(_row(line) for line in verdict.lines if verdict.attempted)
    paragraphs = "".join(f'<p style="margin:.5em 0 0">{escape(text)}</p>' for text in said)
    return (
        f'<div class="rubric" style="{STYLE["panel"]};border-left-color:{colour}">'
        f"<strong>{escape(headline(verdict))}</strong>"
        f'<ul style="list-style:none;margin:.4em 0 0;padding:0">{rows}</ul>{paragraphs}</div>'
    )


def _row(line: LineVerdict) -> str:
    colour, mark = (STYLE["right"], "✓ right") if line.passed else (STYLE["wrong"], "✗ wrong")
    reason = f"<br><span>{escape(line.reason)}</span>" if line.reason else ""
    return (
        f'<li style="margin:.15em 0"><span style="color:{colour};font-weight:bold">{mark}</span> '
        f"{escape(line.name)}{reason}</li>"
    )
