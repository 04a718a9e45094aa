"""The grammar of the course's small language: stories in which every question has an answer.

    Anna has a ball . Tom has two books . he reads them upstairs . she's outside .
    what does Tom do ? he reads his books . where is Anna ? she's outside . <end>

    Mia is in the shop . she sees a bat fall . is it alive ? no . who is she ? Mia . <end>

`tell` tells a story one word at a time. At each step it yields the words that may come next, with
their probabilities, and is sent the one that was chosen. It does not know who chooses: a random
draw when a story is made, a given text when one is read. `language` does both.
"""

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache

Chances = dict[str, float]
"""The words that may come next, and their probabilities."""


class Alike(Chances):
    """Chances of words that play the same part: each of them leaves equally much open."""


class Word(str):
    """A word that knows its position in the story; -1 until it is said."""

    __slots__ = ("at",)
    at: int

    def __new__(cls, text: str, at: int = -1) -> "Word":
        word = super().__new__(cls, text)
        word.at = at
        return word


Telling = Generator[Chances, Word, None]
"""A part of a story, told word by word."""
Phrase = Generator[Chances, Word, list[Word]]
"""A part of a sentence. Returns its words."""
Person = dict[str, Word]
"""What is known of one person, each part by the word that said so: name, thing, place, …"""


GIRLS = ("Anna", "Mia", "Lucy")
BOYS = ("Tom", "Ben", "Max")
THINGS = {"ball": "kicks", "book": "reads", "hat": "wears", "cake": "eats", "kite": "flies"}
"""Each thing, and what people do with it."""
PLACES = ("inside", "outside", "upstairs", "downstairs")
WILD = ("cave", "barn")  # a bat is an animal here
ROOMS = ("gym", "shop")  # and a piece of wood here

QUESTIONS = {"what": 2.0, "where": 2.0, "who": 1.0, "alive": 2.0}
"""The weight of each kind of question about a person, among those that the story answers."""


@dataclass(frozen=True)
class Link:
    """The word after `at` depends on the word at `own`.

    `other` is the word that plays the same part for the other person, None where there is none.
    """

    job: str  # "she: own thing"
    at: int
    own: int
    other: int | None


@dataclass(frozen=True)
class AnswerSpan:
    """The words from `start` up to `stop` answer a question of this kind."""

    kind: str
    start: int
    stop: int


@dataclass
class Notes:
    """Facts about a story besides its words. The grammar fills them in."""

    people: list[Person] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    answers: list[AnswerSpan] = field(default_factory=list)

    def meet(self, name: Word) -> Person:
        """Note a new person."""
        she, her = ("she", "her") if name in GIRLS else ("he", "his")
        self.people.append(
            {"name": name, "she": Word(she), "she's": Word(f"{she}'s"), "her": Word(her)}
        )
        return self.people[-1]

    def taken(self, part: str) -> list[str]:
        """Return what the people so far have for this part."""
        return [person[part] for person in self.people if part in person]

    def link(self, job: str, at: Word, who: Person, part: str) -> None:
        """Note that what follows `at` depends on this part of a person."""
        others = [person[part].at for person in self.people if person is not who and part in person]
        said = [position for position in others if position >= 0]
        self.links.append(Link(job, at.at, who[part].at, said[0] if said else None))


# Two ways to say something. Both return what was chosen.


def one_of(words: Iterable[str]) -> Generator[Chances, Word, Word]:
    """Say one of several words that play the same part."""
    words = list(words)
    return (yield Alike.fromkeys(words, 1 / len(words)))


def say(phrases: str | dict[str, float]) -> Phrase:
    """Say a phrase, or one of several with these weights. No phrase may begin another."""
    said: list[Word] = []
    if isinstance(phrases, str):
        for word in phrases.split():
            said.append((yield certain(word)))
        return said
    left = [(phrase.split(), weight) for phrase, weight in phrases.items()]
    while len(said) < len(left[0][0]):
        chances = dict.fromkeys((words[len(said)] for words, _ in left), 0.0)
        for words, weight in left:
            chances[words[len(said)]] += weight
        total = sum(chances.values())
        chosen = yield {word: weight / total for word, weight in chances.items()}
        left = [(words, weight) for words, weight in left if words[len(said)] == chosen]
        said.append(chosen)
    return said


@cache
def certain(word: str) -> Chances:
    """Return the chances of a word that must come next. One dict serves all stories."""
    return {word: 1.0}


# The stories.


def tell(notes: Notes) -> Telling:
    """Tell a whole story, then offer no more words."""
    first = notes.meet((yield from one_of(GIRLS + BOYS)))
    (verb,) = yield from say({"has": 0.8, "is": 0.2})
    yield from (belongings if verb == "has" else sighting)(notes, first)
    yield from questions(notes)
    yield from say("<end>")
    yield {}


def belongings(notes: Notes, first: Person) -> Telling:
    """[Anna has] a ball . Tom has two books . he reads them upstairs . she's outside ."""
    yield from possession(notes, first)
    names = BOYS if first["she"] == "she" else GIRLS
    (word,) = yield from say({first["she"]: 0.1} | {name: 0.9 / len(names) for name in names})
    if word == first["she"]:
        yield from action(notes, first, word)
        return
    second = notes.meet(word)
    yield from say("has")
    yield from possession(notes, second)
    (word,) = yield from say(openings(first) | openings(second))
    one, other = (first, second) if word in first.values() else (second, first)
    yield from action(notes, one, word)
    (word,) = yield from say(openings(other))
    yield from action(notes, other, word)


def openings(who: Person) -> dict[str, float]:
    """Return the words that may begin a sentence about what someone does, or where they are.

    A model reads she's as one word, so at that word it knows whose place comes next. With "she is",
    models often failed to learn to look at the right person.
    """
    return {who["she"]: 0.6, who["she's"]: 0.4}


def possession(notes: Notes, who: Person) -> Telling:
    """[Anna has] a ball . Two people have different things."""
    (number,) = yield from say({"a": 0.5, "two": 0.5})
    it, plural = ("it", "") if number == "a" else ("them", "s")
    taken = notes.taken("verb")
    free = {thing + plural: verb for thing, verb in THINGS.items() if verb not in taken}
    who["thing"] = yield from one_of(free)
    who["verb"], who["it"] = Word(free[who["thing"]]), Word(it)
    yield from say(".")


def action(notes: Notes, who: Person, word: Word) -> Telling:
    """[she] kicks it outside . Or: [she's] outside ."""
    if word == who["she"]:
        notes.link("she: own thing", word, who, "thing")
        who["act"], who["it"] = yield from say(f"{who['verb']} {who['it']}")
    free = [place for place in PLACES if place not in notes.taken("place")]
    who["place"] = yield from one_of(free)
    yield from say(".")


def sighting(notes: Notes, who: Person) -> Telling:
    """[Mia is] in the shop . she sees a bat fall ."""
    yield from say("in the")
    who["place"] = yield from one_of(WILD + ROOMS)
    yield from say(f". {who['she']} sees a")
    (seen,) = yield from say({"bat": 1.0, "cat": 1.0, "lamp": 1.0})
    who["seen"] = seen
    if seen == "bat":
        notes.link("bat: its place", seen, who, "place")
    lives = seen == "cat" or (seen == "bat" and who["place"] in WILD)
    who["alive"] = Word("yes" if lives else "no")
    fates = ("sleep", "eat") if lives else ("fall", "break")
    (fate,) = yield from say({".": 0.5} | dict.fromkeys(fates, 0.25))
    if fate != ".":
        yield from say(".")


# The questions. Each answer is certain.


def questions(notes: Notes) -> Telling:
    """Ask two different questions that the story answers, and answer them."""
    asked = {text: (who, kind) for who in notes.people for text, kind in questions_about(who)}
    for _ in range(2):
        said = yield from say({text: QUESTIONS[kind] for text, (_, kind) in asked.items()})
        who, kind = asked.pop(" ".join(said))
        last = yield from ANSWERS[kind](notes, who, said[-1])
        notes.answers.append(AnswerSpan(kind, said[-1].at + 1, last[-1].at + 1))


def questions_about(who: Person) -> Iterator[tuple[str, str]]:
    """Yield the questions about this person that the story answers, and their kinds."""
    yield f"who is {who['she']} ?", "who"
    yield f"where is {who['name']} ?", "where"
    if "act" in who:
        yield f"what does {who['name']} do ?", "what"
    if "alive" in who:
        yield "is it alive ?", "alive"


def say_who(notes: Notes, who: Person, mark: Word) -> Phrase:
    """Mia ."""
    notes.link("who is she ?: her name", mark, who, "name")
    return (yield from say(f"{who['name']} ."))


def say_where(notes: Notes, who: Person, mark: Word) -> Phrase:
    """she's outside . Or: she's in the shop ."""
    words = yield from say(who["she's"] + " in the" * ("seen" in who))
    job = "in the: own place" if "seen" in who else "she's: own place"
    notes.link(job, words[-1], who, "place")
    return (yield from say(f"{who['place']} ."))


def say_what(notes: Notes, who: Person, mark: Word) -> Phrase:
    """she kicks her ball ."""
    (she,) = yield from say(who["she"])
    notes.link("answer, she: own thing", she, who, "thing")
    _, her = yield from say(f"{who['verb']} {who['her']}")
    notes.link("answer, her: own thing", her, who, "thing")
    notes.link("answer, her: own it or them", her, who, "it")
    return (yield from say(f"{who['thing']} ."))


def say_alive(notes: Notes, who: Person, mark: Word) -> Phrase:
    """yes ."""
    notes.link("is it alive ?: what was seen", mark, who, "seen")
    if who["seen"] == "bat":
        notes.link("is it alive ?: the bat's place", mark, who, "place")
    return (yield from say(f"{who['alive']} ."))


ANSWERS = {"what": say_what, "where": say_where, "who": say_who, "alive": say_alive}
"""The part of the grammar that answers each kind of question."""
