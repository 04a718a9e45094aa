"""The course's small language knows what may come next, and so its own entropy."""

import math
import statistics

import pytest

from attention_course import grammar
from attention_course.language import (
    END,
    VOCABULARY,
    decode,
    encode,
    entropy,
    floor,
    is_grammatical,
    read,
    stories,
    surprise,
)

SMALL = {
    "GIRLS": ("Anna",),
    "BOYS": ("Tom",),
    "THINGS": {"ball": "kicks", "book": "reads"},
    "PLACES": ("inside", "outside"),
}
TWO = (
    "Anna has a ball . Tom has two books . he reads them upstairs . she kicks it outside ."
    " what does Tom do ? he reads his books . where is Anna ? she's outside . <end>"
)
BAT = "Mia is in the shop . she sees a bat . is it alive ? no . who is she ? Mia . <end>"


def test_a_seed_gives_the_same_stories_on_every_machine() -> None:
    book, hats = stories(2, seed=0)
    assert str(book) == (
        "Max has a book . Mia has a hat . she's upstairs . he's outside . where is Mia ? "
        "she's upstairs . where is Max ? he's outside . <end>"
    )
    assert str(hats) == (
        "Max has two hats . Lucy has two cakes . he's downstairs . she eats them outside . "
        "what does Lucy do ? she eats her cakes . where is Lucy ? she's outside . <end>"
    )
    assert str(stories(1, seed=1)[0]) != str(book)


def test_a_word_that_is_not_in_the_vocabulary_is_named_with_those_that_are() -> None:
    with pytest.raises(ValueError, match=r"know the word 'moon', but these: .* Anna .* wears"):
        encode(["the", "moon"])


@pytest.mark.parametrize("text", [TWO, BAT])
def test_a_story_is_read_with_what_is_known_about_it(text: str) -> None:
    story = read(text.split())
    assert str(story) == text
    assert story.chances[-1] == {}
    for answer in story.notes.answers:
        assert story.words[answer.start - 1] == "?"
        assert story.words[answer.stop - 1] == "."
        assert all(
            chances == 1
            for t in range(answer.start, answer.stop)
            for chances in story.chances[t].values()
        )


def test_every_link_joins_the_words_that_depend_on_each_other() -> None:
    story = read(TWO.split())
    joined = [
        (link.job, *(story.words[t] for t in (link.at, link.own, link.other or 0)))
        for link in story.notes.links
    ]
    assert joined == [
        ("she: own thing", "he", "books", "ball"),
        ("she: own thing", "she", "ball", "books"),
        ("answer, she: own thing", "he", "books", "ball"),
        ("answer, her: own thing", "his", "books", "ball"),
        ("answer, her: own it or them", "his", "them", "it"),
        ("she's: own place", "she's", "outside", "upstairs"),
    ]
    (bat, alive, place, _) = read(BAT.split()).notes.links
    assert (bat.at, bat.own, bat.other) == (9, 4, None)  # from bat to shop
    assert (alive.at, alive.own) == (14, 9)  # from the question mark to bat
    assert (place.at, place.own) == (14, 4)  # and to shop


def test_chances_add_up_to_one_at_every_word() -> None:
    for story in stories(200, seed=3):
        assert len(story.chances) == len(story.words) + 1
        for word, chances in zip(story.words, story.chances, strict=False):
            assert sum(chances.values()) == pytest.approx(1)
            assert word in chances


@pytest.mark.parametrize(
    "wrong",
    [
        TWO.replace("he reads them", "he reads it"),
        TWO.replace("she kicks", "she reads"),
        TWO.replace("his books", "his book"),
        TWO.replace("she's outside", "she's upstairs"),
        BAT.replace("no", "yes"),
        f"{BAT} Mia",
    ],
)
def test_what_cannot_be_is_no_story(wrong: str) -> None:
    assert not is_grammatical(wrong.split())
    with pytest.raises(ValueError, match="cannot follow"):
        read(wrong.split())


def test_the_beginning_of_a_story_is_grammatical() -> None:
    words = TWO.split()
    assert all(is_grammatical(words[:n]) for n in range(len(words) + 1))


def test_the_entropy_is_known() -> None:
    nats, length = entropy()
    assert (nats, length) == (pytest.approx(13.36486, abs=1e-5), pytest.approx(32.29510, abs=1e-5))
    assert floor() == pytest.approx(0.41384, abs=1e-5)


def test_the_entropy_is_the_mean_surprise_of_stories() -> None:
    surprises = [surprise(story) for story in stories(5000, seed=5)]
    error = statistics.stdev(surprises) / math.sqrt(len(surprises))
    assert abs(statistics.mean(surprises) - entropy()[0]) < 3 * error


def test_the_entropy_is_that_of_all_stories_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the shortcut for words that are alike, in a language small enough."""
    for name, words in SMALL.items():
        monkeypatch.setattr(grammar, name, words)
    nats = length = total = 0.0
    todo: list[list[str]] = [[]]
    while todo:
        story = read(todo.pop())
        while chances := story.chances[-1]:
            first, *others = chances
            todo += [[*story.words, word] for word in others]
            story.add(first)
        chance = math.exp(-surprise(story))
        total += chance
        nats += chance * surprise(story)
        length += chance * len(story.words)
    assert total == pytest.approx(1, abs=1e-9)
    found = entropy.__wrapped__()
    assert found == (pytest.approx(nats, rel=1e-9), pytest.approx(length, rel=1e-9))


def test_every_word_has_an_id() -> None:
    told = stories(300, seed=7)
    assert {word for story in told for word in story.words} == set(VOCABULARY)
    assert len(set(VOCABULARY)) == len(VOCABULARY)
    assert decode(encode(told[0].words)) == told[0].words
    assert max(len(story.words) for story in stories(300, seed=8)) <= 47
    assert all(story.words[-1] == END for story in told)
