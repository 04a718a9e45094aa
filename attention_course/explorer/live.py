"""The widget: what the page shows, and what it asks of the kernel."""

from itertools import takewhile
from pathlib import Path
from typing import Any

import anywidget
import traitlets
from torch import nn

from attention_course.explorer.reading import Change, Reading, read
from attention_course.language import VOCABULARY

HERE = Path(__file__).parent
DIGITS = 4
"""The decimals of the numbers that are sent; the page shows two."""
LONGEST = 40
"""The most letters of a story's name in the menu."""


class StoryWidget(anywidget.AnyWidget):
    """Stories as a model reads them. It sends all weights at once; only a change needs the kernel.

    The page asks {"ask", "story", "layer", "head", "at", "other"}, in which `at` is a place or
    None, and `other` a story or None; see Change. The answer is {"ask", "weights", "chances"}
    or {"ask", "error"}.
    """

    _esm = (HERE / "explorer.js").read_text("utf-8")
    _css = (HERE / "explorer.css").read_text("utf-8")
    shown = traitlets.Dict().tag(sync=True)

    def __init__(
        self, model: nn.Module, readings: list[Reading], place: tuple[int, int], at: int
    ) -> None:
        names = labels([reading.words for reading in readings])
        stories = [
            {**to_page(reading), "words": reading.words, "hidden": reading.hidden, "label": name}
            for reading, name in zip(readings, names, strict=True)
        ]
        first = {"layer": place[0], "head": place[1], "word": at}
        shown = {"stories": stories, "vocabulary": VOCABULARY, **first}
        super().__init__(shown=shown)
        self._model, self._told = model, [reading.words for reading in readings]
        self.on_msg(self._answer)

    def _answer(self, _: object, asked: dict[str, Any], __: object) -> None:
        try:
            answer = to_page(self._changed(asked))
        except Exception as error:  # a front end shows nobody what is raised here
            answer = {"error": f"{type(error).__name__}: {error}"}
        self.send({"ask": asked.get("ask"), **answer})

    def _changed(self, asked: dict[str, Any]) -> Reading:
        other = None if asked["other"] is None else self._told[asked["other"]]
        change = Change(asked["layer"], asked["head"], asked["at"], other)
        return read(self._model, self._told[asked["story"]], change)


def to_page(reading: Reading) -> dict[str, Any]:
    """Return the numbers of a reading, rounded."""
    weights = [
        [[[round(weight, DIGITS) for weight in row] for row in head] for head in layer]
        for layer in reading.weights
    ]
    return {"weights": weights, "chances": [round(chance, DIGITS) for chance in reading.chances]}


def labels(told: list[list[str]]) -> list[str]:
    """Name stories by what stands between the words that all begin and end with, or by number."""
    begin = _alike(told)
    end = _alike([words[begin:][::-1] for words in told])
    names = [" ".join(words[begin : len(words) - end]) for words in told]
    if len(set(names)) == len(told) and all(0 < len(name) <= LONGEST for name in names):
        return names
    return [f"story {number}" for number in range(1, len(told) + 1)]


def _alike(told: list[list[str]]) -> int:
    """Return with how many words all begin."""
    columns = zip(*told, strict=False)
    return sum(1 for _ in takewhile(lambda words: len(set(words)) == 1, columns))
