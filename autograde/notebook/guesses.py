"""A guess is made in one cell and shown beside the answer in a later one. It earns no points."""

from html import escape

from IPython.display import display

from autograde.notebook import lesson_here
from autograde.notebook.saved_notebook import binds
from autograde.rubric import runs
from autograde.rubric.names import names_of

GUESS = "my_guess"
"""The name that holds a guess until `beside` shows it next to the answer."""
NO_GUESS = "No guess yet. Write one into the cell above, then run this one again."


def guesses(source: str) -> bool:
    """Return whether a cell makes a guess, even if it fails."""
    return GUESS in names_of(source).bound or source.lstrip().startswith(f"{GUESS} =")


def beside(guess: object, answer: object) -> None:
    """Show a guess beside the answer. Without a guess the answer is folded. It earns no points."""
    guess = _made_above(guess)
    if guess is None:
        body = f"<details><summary>{NO_GUESS}</summary>It is: {escape(str(answer))}</details>"
        display({"text/plain": NO_GUESS, "text/html": body}, raw=True)
        return
    print(f"your guess: {guess}")
    print(f"it is:      {answer}")


def _made_above(guess: object) -> object:
    """Return the guess of the nearest cell above that asks for one, not one made elsewhere.

    It is the guess given where the notebook's file does not tell: it has no such cell, or the last
    guess was made in a cell that is not saved yet.
    """
    made = [run for run in runs.all_runs() if guesses(run.source)]
    cells, here = lesson_here.lesson_cells(), runs.running()
    names = [cell.get("id") for cell in cells]
    if not made or not {here, made[-1].cell} <= {*names}:
        return guess
    asked = [cell["id"] for cell in cells[: names.index(here)] if binds([cell], GUESS)]
    if not asked:
        return guess
    return next((run.guess for run in reversed(made) if run.cell == asked[-1]), None)
