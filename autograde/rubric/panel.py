"""A verdict as a panel: plain text for terminals and screen readers, HTML for notebooks.

Colours are mixed with JupyterLab's own text and page colours, so a panel follows its theme; outside
JupyterLab the light fallbacks hold.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from autograde.rubric.judge import Failure, LineVerdict, Verdict
from autograde.rubric.misconceptions import Belief
from autograde.values.base import Table
from autograde.values.text import inline, of_points

TEXT, PAGE = "var(--jp-content-font-color1, #1b1b1b)", "var(--jp-layout-color1, #fff)"
COLOURS = {
    "text": TEXT,
    "page": PAGE,
    "edge": "var(--jp-border-color1, #b8b8b8)",
    "right": f"color-mix(in srgb, #2e7d32 55%, {TEXT})",
    "wrong": f"color-mix(in srgb, #d32f2f 55%, {TEXT})",
    "idle": f"color-mix(in srgb, #808080 40%, {TEXT})",
    "mark": f"color-mix(in srgb, #e53935 22%, {PAGE})",
}
BOX = (
    f"border:1px solid {COLOURS['edge']};border-left-width:6px;border-radius:4px;"
    f"padding:.6em .9em;max-width:52em;color:{COLOURS['text']};background:{COLOURS['page']}"
)
BUTTON = (
    f"display:inline-block;border:1px solid {COLOURS['edge']};border-radius:4px;cursor:pointer;"
    "padding:.15em .7em"
)
EDITED = (
    "The answer above was edited and not run since. This is the verdict on the older one: run the "
    "answer, then this cell again."
)
"""Said where JupyterLab marks the cell above as edited; its class for such cells shows it."""
STYLE = (
    "<style>.jp-Cell.jp-mod-dirty + .jp-Cell .rubric .edited {display: block !important}</style>"
)
UNFOLDED = "<style>.rubric .help > details[open] {flex-basis: 100%}</style>"
"""What is unfolded takes a row of its own, and pushes no button aside."""
MARK_WIDTH = "1.6em"
ROW = "display:flex;flex-wrap:wrap;gap:0 1.5em;align-items:flex-start"
CELL = "padding:.1em .45em;font-family:monospace;white-space:pre"


@dataclass(frozen=True)
class Help:
    """Something that is folded below a verdict until it is asked for; `then` is folded in it."""

    title: str
    said: tuple[str, ...]
    then: tuple["Help", ...] = ()


def headline(verdict: Verdict) -> str:
    """Return the exercise and its points."""
    return f"{verdict.exercise}: {of_points(verdict.points, verdict.max_points)}"


def advice(verdict: Verdict, *, named: bool) -> list[str]:
    """Return the paragraphs below the lines: the note and, if `named`, the beliefs."""
    said = [verdict.note] if verdict.note else []
    shown = verdict.leading
    for belief in verdict.beliefs if named else ():
        explains = shown is None or shown.name in belief.lines
        about = "This result" if explains else f"The result of “{belief.lines[0]}”"
        said.append(
            f"{about} usually comes from assuming that {belief.belief}{_share(belief, verdict)}"
        )
        said.append(f"Hint: {belief.hint}")
    return said


def _share(belief: Belief, verdict: Verdict) -> str:
    """Return a sentence on how many of the wrong lines a belief explains, or "" for a single one.

    Lines that were not reached, or that do not count by themselves, have no call. They are among
    the wrong lines that a student sees, so they are counted, but say nothing by themselves.
    """
    wrong_lines = [line for line in verdict.lines if not line.passed]
    if sum(bool(line.failure and line.failure.call) for line in wrong_lines) < 2:
        return ""
    names = {line.name for line in wrong_lines}
    explained, wrong = len(names & set(belief.lines)), len(names)
    every = "both" if wrong == 2 else f"all {wrong}"
    share = every if explained == wrong else f"{explained} of the {wrong}"
    return f" That would explain {share} wrong lines."


def repair_first(earlier: list[str]) -> str:
    """Return a sentence that names the first wrong exercise that this one builds on."""
    return f"Fix `{earlier[0]}` first; this exercise builds on it."


def _lines_text(verdict: Verdict) -> list[str]:
    lines = []
    shown = verdict.leading
    for line in verdict.lines:
        lines.append(f"  {'right' if line.passed else 'WRONG'}  {line.name}")
        if line is shown and line.failure:
            lines += [f"         {text}" for text in _failure_text(line.failure)]
    return lines


def _failure_text(failure: Failure) -> list[str]:
    texts = [plain(failure.sentence)]
    for name, table in _tables(failure):
        marked = ", wrong entries marked *" if table.wrong else ""
        texts.append(f"{name} ({table.caption}){marked}")
        texts += _aligned(table)
    return texts


def _tables(failure: Failure) -> list[tuple[str, Table]]:
    inputs = [(each.name, each.table) for each in failure.inputs]
    named = [*inputs, ("came back", failure.got), ("expected", failure.expected)]
    return [(name, table) for name, table in named if table and table.rows]


def _aligned(table: Table) -> list[str]:
    down, across = range(-1 if table.columns else 0, len(table.rows)), range(len(table.rows[0]))
    marked = [[_starred(table, i, j) for j in across] for i in down]
    width = max(len(entry) for row in marked for entry in row)
    side = "<" if table.left else ">"
    lines = ["  " + " ".join(f"{entry:{side}{width}}" for entry in row) for row in marked]
    if not table.labels:
        return lines
    labels = [_starred(table, i, -1).rstrip() for i in down]
    room = max(map(len, labels))
    return [f"  {label:{room}}{line}" for label, line in zip(labels, lines, strict=True)]


def _starred(table: Table, row: int, column: int) -> str:
    return _written(table, row, column) + ("*" if (row, column) in table.wrong else " ")


def _written(table: Table, row: int, column: int) -> str:
    """Return an entry; in row -1 stand the names of columns, in column -1 those of rows."""
    if row < 0:
        return table.columns[column] if column >= 0 else ""
    return table.labels[row] if column < 0 else table.rows[row][column]


def plain(text: str) -> str:
    """Return the text without the backticks around code."""
    return text.replace("`", "")


def to_display(
    verdict: Verdict, said: list[str], helps: Sequence[Help] = (), ask: str = ""
) -> dict[str, str]:
    """Return a verdict as a panel; `said` are the paragraphs below the lines, then come the helps.

    Help is folded, which needs neither a kernel nor a script. The text, where nothing can be
    unfolded, says in its place how to `ask`.
    """
    state = "right" if verdict.passed else "wrong" if verdict.attempted else "idle"
    text, html = (_lines_text(verdict), lines_html(verdict)) if verdict.called else ([], "")
    below = f"{UNFOLDED}{folded_html(helps)}" if helps else ""
    shown = panel(state, headline(verdict), said, "rubric", text, html, below)
    return {**shown, "text/plain": "\n".join(filter(None, [shown["text/plain"], plain(ask)]))}


def example(title: str, failure: Failure, said: list[str]) -> dict[str, str]:
    """Return one case of a line as a panel: its call, its inputs, what came back, what should."""
    return panel("idle", title, said, "note", _failure_text(failure), _failure_html(failure))


def with_edits_noticed(shown: dict[str, str]) -> dict[str, str]:
    """Return a panel that says in JupyterLab when the cell above it was edited and not run."""
    look = (
        f"display:none;margin:0 0 .6em;padding:.3em .6em;font-weight:bold;"
        f"border:2px dashed {COLOURS['edge']}"
    )
    note = f'<p class="edited" role="status" style="{look}">{EDITED}</p>'
    html = shown["text/html"]
    begin = html.index(">") + 1
    return {**shown, "text/html": f"{STYLE}{html[:begin]}{note}{html[begin:]}"}


def folded_html(helps: Sequence[Help], flow: str = "row wrap") -> str:
    """Return buttons, each of which unfolds what it stands for, in a row or a `column`."""
    row = f"display:flex;flex-flow:{flow};gap:.4em .6em;align-items:flex-start;margin-top:.7em"
    inner = "".join(map(_help_html, helps))
    return f'<div class="help" style="{row}">{inner}</div>' if helps else ""


def _help_html(help: Help) -> str:
    title = f'<summary style="{BUTTON}">{inline(help.title)}</summary>'
    body = "".join(f'<p style="margin:.4em 0">{inline(each)}</p>' for each in help.said)
    inner = "".join(map(_help_html, help.then))
    return f'<details style="max-width:100%">{title}{body}{inner}</details>'


def panel(
    state: str,
    title: str,
    said: list[str],
    name: str = "note",
    text: Sequence[str] = (),
    html: str = "",
    below: str = "",
) -> dict[str, str]:
    """Return a panel as what a notebook displays, by MIME type.

    The HTML has no script and no address, an edge in the colour of its state, and `name` as class.

    Args:
        said: paragraphs, in which code stands between backticks.
        text: lines between the title and the paragraphs; `html` is the same as HTML.
        below: HTML after the paragraphs, which the text has not.
    """
    paragraphs = "".join(f'<p style="margin:.5em 0 0">{inline(each)}</p>' for each in said)
    look = f"{BOX};border-left-color:{COLOURS[state]}"
    head = f'<div class="{name} tex2jax_ignore" style="{look}"><strong>{escape(title)}</strong>'
    return {
        "text/plain": "\n".join([title, *text, *map(plain, said)]),
        "text/html": f"{head}{html}{paragraphs}{below}</div>",
    }


def lines_html(verdict: Verdict) -> str:
    """Return the lines as a list: the first wrong one open, the others folded."""
    shown = verdict.leading
    right = [_row(line) for line in verdict.lines if line.passed]
    others = [_row(line) for line in verdict.lines if not line.passed and line is not shown]
    listed = [_row(shown)] if shown else []
    if others:
        more = f"and {len(others)} more wrong line{'s' * (len(others) > 1)}"
        listed.append(_folded(more, others) if shown else "".join(others))
    listed += [_folded(f"{len(right)} right", right)] if listed and right else right
    return f'<ul style="list-style:none;margin:.4em 0 0;padding:0">{"".join(listed)}</ul>'


def _folded(title: str, rows: list[str]) -> str:
    inner = f'<ul style="list-style:none;margin:0;padding:0">{"".join(rows)}</ul>'
    return f"<li><details><summary>{escape(title)}</summary>{inner}</details></li>"


def _row(line: LineVerdict) -> str:
    mark, word = ("✓", "right") if line.passed else ("✗", "wrong")
    reason = _failure_html(line.failure) if line.failure else ""
    return (
        f'<li style="margin:.2em 0;padding-left:{MARK_WIDTH};text-indent:-{MARK_WIDTH}">'
        f'<span role="img" aria-label="{word}" style="display:inline-block;width:{MARK_WIDTH};'
        f'text-indent:0;color:{COLOURS[word]};font-weight:bold">{mark}</span>'
        f'<span style="text-indent:0">{escape(line.name)}</span>{reason}</li>'
    )


def _failure_html(failure: Failure) -> str:
    tables = "".join(_table_html(name, table) for name, table in _tables(failure))
    both = f'<div style="{ROW}">{tables}</div>' if tables else ""
    said = f'<span style="white-space:pre-wrap">{inline(failure.sentence)}</span>'
    return f'<div style="text-indent:0;margin:.2em 0 .4em">{said}{both}</div>'


def _table_html(name: str, table: Table) -> str:
    look = f"text-align:left;font-weight:normal;color:{COLOURS['idle']}"
    title = f"{name}, {escape(table.caption)}"
    width = len(table.rows[0]) + bool(table.labels)
    head = f'<tr><th scope="col" colspan="{width}" style="{look}">{title}</th></tr>'
    head += _row_html(table, -1) if table.columns else ""
    rows = "".join(_row_html(table, row) for row in range(len(table.rows)))
    style = "border-collapse:collapse;margin:.4em 0;font-size:90%"
    return f'<table style="{style}"><thead>{head}</thead><tbody>{rows}</tbody></table>'


def _row_html(table: Table, row: int) -> str:
    """Return a row of entries, or for row -1 the names of the columns."""
    columns = range(-1 if table.labels else 0, len(table.rows[0]))
    return f"<tr>{''.join(_entry(table, row, column) for column in columns)}</tr>"


def _entry(table: Table, row: int, column: int) -> str:
    text, wrong = _written(table, row, column), (row, column) in table.wrong
    if row == column == -1:
        return "<td></td>"
    if row < 0 or column < 0:
        tag, html = f'th scope="{"col" if row < 0 else "row"}"', escape(text)
        look = f"font-weight:normal;color:{COLOURS['text' if wrong else 'idle']}"
    else:
        tag, html = "td", _underlined(text, table.since.get(row, 0))
        look = f"border:1px solid {COLOURS['edge']};color:{COLOURS['text']}"
    if wrong:
        html, look = f"✗&nbsp;{html}", f"{look};background:{COLOURS['mark']};font-weight:bold"
    side = "left" if table.left or column < 0 else "right"
    return f'<{tag} style="{CELL};text-align:{side};{look}">{html}</{tag[:2]}>'


def _underlined(text: str, since: int) -> str:
    """Return the text as HTML, with the character underlined from which it is another; 0: none."""
    if not since:
        return escape(text)
    line = "text-decoration:underline 2px;text-underline-offset:2px;font-weight:bold"
    before, first, after = text[:since], text[since : since + 1], text[since + 1 :]
    return f'{escape(before)}<span style="{line}">{escape(first)}</span>{escape(after)}'
