"""A guess is made in one cell and shown beside the answer in a later one. It earns no points."""

from html import escape

from IPython.display import display

from autograde.rubric.names import names_of

GUESS = "my_guess"
"""The name that holds a guess until `beside` shows it next to the answer."""
NO_GUESS = "No guess yet. Write one into the cell above, then run this one again."


def guesses(source: str) -> bool:
    """Return whether a cell makes a guess, even if it fails."""
    return GUESS in names_of(source).bound or source.lstrip().startswith(f"{GUESS} =")


def beside(guess: object, answer: object) -> None:
    """Show a guess beside the answer. Without a guess the answer is folded. It earns no points."""
    if guess is None:
        body = f"<details><summary>{NO_GUESS}</summary>It is: {escape(str(answer))}</details>"
        display({"text/plain": NO_GUESS, "text/html": body}, raw=True)
        return
    print(f"your guess: {guess}")
    print(f"it is:      {answer}")
