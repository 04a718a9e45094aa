"""The course's small language: makes stories, reads them, and knows its own entropy.

All of it follows `grammar.tell`, which offers words with their probabilities and is sent one of
them. Send it random words, and it makes a new story. Send it the words of a text, and it says how
likely each was, or that the text is not a story. Follow every choice, and the sum is the exact
entropy of the language: the loss that no model can beat.
"""

import math
from bisect import bisect
from collections.abc import Iterable
from functools import cache
from itertools import accumulate
from random import Random

from attention_course.grammar import (
    BOYS,
    GIRLS,
    PLACES,
    ROOMS,
    THINGS,
    WILD,
    Alike,
    Notes,
    Word,
    tell,
)

END = "<end>"
# fmt: off
VOCABULARY = [
    *GIRLS, *BOYS, *THINGS, *(f"{thing}s" for thing in THINGS), *THINGS.values(),
    *PLACES, *WILD, *ROOMS,
    "bat", "cat", "lamp", "sleep", "eat", "fall", "break", "alive", "yes", "no",
    "she", "he", "she's", "he's", "her", "his", "it", "them", "a", "two", "the",
    "has", "is", "in", "sees", "does", "do", "what", "where", "who", ".", "?", END,
]
# fmt: on
IDS = {word: number for number, word in enumerate(VOCABULARY)}


class Story:
    """A story up to some word.

    `chances[t]` holds the words that may stand at position t and their probabilities. It has one
    entry more than `words`, for the next word; that entry is empty when the story is over.
    """

    def __init__(self) -> None:
        self.words: list[str] = []
        self.notes = Notes()
        self._telling = tell(self.notes)
        self.chances = [next(self._telling)]

    def add(self, word: str) -> None:
        """Continue the story with this word. Raises ValueError if the word cannot follow."""
        if word not in self.chances[-1]:
            raise ValueError(f"{word!r} cannot follow {' '.join(self.words)!r}")
        self.words.append(word)
        self.chances.append(self._telling.send(Word(word, len(self.words) - 1)))

    def __str__(self) -> str:
        return " ".join(self.words)


def read(words: Iterable[str]) -> Story:
    """Return the story that begins with these words. Raises ValueError if none does."""
    story = Story()
    for word in words:
        story.add(word)
    return story


def is_grammatical(words: Iterable[str]) -> bool:
    """Return True if a story can begin with these words."""
    try:
        read(words)
    except ValueError:
        return False
    return True


def stories(n: int, seed: int) -> list[Story]:
    """Return n random stories. A seed gives the same stories on every machine."""
    random = Random(seed).random  # noqa: S311  # Python promises that this stream stays the same
    made = [Story() for _ in range(n)]
    for story in made:
        while chances := story.chances[-1]:
            story.add(_draw(chances, random()))
    return made


def _draw(chances: dict[str, float], point: float) -> str:
    """Return the word whose share of the line from 0 to 1 holds this point."""
    words, shares = list(chances), list(accumulate(chances.values()))
    return words[min(bisect(shares, point), len(words) - 1)]


def surprise(story: Story) -> float:
    """Return the sum of -log p over the words of a story, in nats."""
    return -sum(math.log(story.chances[t][word]) for t, word in enumerate(story.words))


@cache
def entropy() -> tuple[float, float]:
    """Return the entropy of a story in nats, and the number of words in an average story.

    Both are sums over every position of every story, weighted by the probability of getting there.
    Where words are alike, one of them is followed in place of all.
    """
    nats = length = 0.0
    todo: list[tuple[list[str], float]] = [([], 1.0)]
    while todo:
        words, reached = todo.pop()
        story = read(words)
        while chances := story.chances[-1]:
            nats -= reached * sum(chance * math.log(chance) for chance in chances.values())
            length += reached
            first, *others = chances
            if not isinstance(chances, Alike):
                todo += [([*story.words, word], reached * chances[word]) for word in others]
                reached *= chances[first]
            story.add(first)
    return nats, length


def floor() -> float:
    """Return the entropy of the language in nats for each word: the lowest loss there is."""
    nats, length = entropy()
    return nats / length


def encode(words: Iterable[str]) -> list[int]:
    """Return the ids of words.

    Raises:
        ValueError: a word is not in the vocabulary.
    """
    words = list(words)
    if unknown := [word for word in words if word not in IDS]:
        known = " ".join(sorted(IDS, key=str.lower))
        raise ValueError(f"the model does not know the word {unknown[0]!r}, but these: {known}")
    return [IDS[word] for word in words]


def decode(ids: Iterable[int]) -> list[str]:
    """Return the words of ids."""
    return [VOCABULARY[number] for number in ids]
