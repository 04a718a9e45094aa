"""`explore_story`: the explorer as a lesson calls it."""

import os
from copy import deepcopy

from IPython.display import display
from torch import nn

from attention_course.explorer.reading import read
from attention_course.explorer.static_picture import clear_png_of, still_picture
from attention_course.trained import begin
from autograde.notebook.figures.canvas import display_png

RUN = "Run this cell to press words and change heads."


def explore_story(
    model: nn.Module, *stories: str, head: str = "1.1", word: str | None = None
) -> None:
    """Display a story whose words say what they look at, and a model whose heads can be changed.

    A picture of what it shows first is displayed above it, and stays where no kernel answers.

    Args:
        model: any model with this course's parts, which is read as it is now, in eval().
        stories: one text or more, of words that the model knows, without the first <end>. Heads can
            hand on what they hand on in another of them.
        head: the head that is shown first: 1.2 is the first layer's second head.
        word: the word of the first story that is pressed first, by default the last; where the
            story has it several times, its last place.

    Raises:
        ValueError: there is no story, a word is unknown or not in the first story, or the model has
            no such head.
    """
    if not stories:
        raise ValueError("there is no story to explore")
    told = [begin(story) for story in stories]
    kept = deepcopy(model).eval()
    readings = [read(kept, words) for words in told]
    place = _place(head, [len(layer) for layer in readings[0].weights])
    at = _last_place(told[0], word)
    picture, alt = still_picture(readings[0], *place, at)
    display_png(clear_png_of(picture), alt, alt)
    if os.environ.get("NBGRADER_EXECUTION"):
        return  # nobody is there to press a word
    from attention_course.explorer.live import StoryWidget  # slow to import

    data, about = StoryWidget(kept, readings, place, at)._repr_mimebundle_() or ({}, {})
    display({**data, "text/plain": RUN}, metadata=about, raw=True)


def _place(head: object, heads: list[int]) -> tuple[int, int]:
    """Return the layer and the head that 1.2, a text or a number, stands for, counted from 0."""
    names = {f"{i + 1}.{j + 1}": (i, j) for i, count in enumerate(heads) for j in range(count)}
    if str(head) not in names:
        raise ValueError(f"the model has no head {head}; its heads are {', '.join(names)}")
    return names[str(head)]


def _last_place(words: list[str], word: str | None) -> int:
    """Return where a word stands last; None stands for the last word."""
    if word is None:
        return len(words) - 1
    if word not in words:
        raise ValueError(f"the first story has no word {word!r}")
    return len(words) - 1 - words[::-1].index(word)
