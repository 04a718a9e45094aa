"""Text and code as pages show them: nothing that acts on its surroundings, nothing that takes long.

Libraries that colour code and format text take time that grows with the square of some texts'
length, and cannot be interrupted. So what is long is not given to them, and when they have taken
too long, the rest of the notebook is not either. Formgrader formats again what grading has written;
what is quick here is quick there.
"""

import re
from collections.abc import Callable
from functools import cache, lru_cache
from time import thread_time

from nbconvert.filters.highlight import Highlight2HTML
from nbformat import NotebookNode

from autograde.course import code_cells
from autograde.grading.limits import LIMITS
from autograde.values.text import readable

LONG_SPACE = re.compile(r"\s{300}")
"""At each place in it, a lexer looks ahead for its end."""
WITHOUT_COLOURS = "text"
"""The lexer of pygments that takes a text as it is."""
Highlight = Callable[[str], tuple[str, float]]
SAID = "Code is shown without colours: it is long, or colouring it takes long."


@cache
def highlighter(lexer: str | None) -> Highlight:
    """Return a highlighter for code, which also says what seconds a text takes.

    It caches, because most cells of a class are the same.
    """
    highlight = Highlight2HTML(pygments_lexer=lexer)

    @lru_cache(maxsize=1024)
    def timed(source: str) -> tuple[str, float]:
        began = thread_time()
        html: str = highlight(source)
        return html, thread_time() - began

    return timed


def lexer_of(nb: NotebookNode) -> str | None:
    """Return the lexer with which nbconvert's exporters colour the code of a notebook."""
    about = nb.metadata.get("language_info", {})
    lexer: str | None = about.get("pygments_lexer", about.get("name"))
    return lexer


def colour_or_not(nb: NotebookNode, released: NotebookNode) -> bool:
    """Make the code of a notebook readable, without colours if these take long; return whether so.

    What a cell takes counts each time it is there: Formgrader does not cache.
    """
    own = {cell.source for cell in code_cells(released)}
    room = LIMITS.all_shown_chars
    for cell in code_cells(nb):
        if cell.source not in own:
            cell.source = _shown(cell.source, min(room, LIMITS.shown_chars))
            room = max(0, room - len(cell.source))
    if _soon_coloured([cell.source for cell in code_cells(nb)], own, highlighter(lexer_of(nb))):
        return True
    about = nb.metadata.get("language_info", {"name": "python"})
    nb.metadata["language_info"] = {**about, "pygments_lexer": WITHOUT_COLOURS}
    return False


def _shown(source: str, room: int) -> str:
    if len(source) > room:
        source = f"{source[:room]}\n# [cut off; all {len(source)} characters were run]"
    return readable(source)


def _soon_coloured(sources: list[str], own: set[str], highlight: Highlight) -> bool:
    if any(len(s) > LIMITS.coloured_chars or LONG_SPACE.search(s) for s in sources if s not in own):
        return False
    seconds, chars = 0.0, 0
    for source in sources:
        html, took = highlight(source)
        seconds, chars = seconds + took, chars + len(html)
        if seconds > LIMITS.format_seconds or chars > LIMITS.coloured_html_chars:
            return False
    return True
