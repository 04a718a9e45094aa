"""This course's own package: what its lessons import, passed on from the grader or its own.

language, grammar   the stories and their words; real_text is another text to learn
tiny_gpt, trained   a small GPT; the one that was trained, and functions to study it
training            trains a model on stories
figures/            heatmaps, and what one query attends to
explorer/           a story whose words say what they look at
probes/, checks/    what rubrics of this course ask, and how some results are judged

The grader knows nothing of it but its name, from `source/curriculum.toml`.
"""

from attention_course.checks import (  # noqa: F401  # they register themselves
    of_attention,
    of_dropout,
    of_tokens,
)
from attention_course.explorer import explore_story
from attention_course.figures.heatmaps import heatmap, panels
from attention_course.figures.query_picture import attention_picture
from attention_course.language import (
    END,
    VOCABULARY,
    decode,
    encode,
    floor,
    is_grammatical,
    stories,
    surprise,
)
from attention_course.probes.rubric import Rubric
from attention_course.real_text import python_help, someone_is_there
from attention_course.tiny_gpt import MultiHeadAttention, one_sentence
from attention_course.trained import (
    answers,
    attention_of,
    begin,
    copy_weights,
    course_model,
    jobs,
    new_model,
    next_words,
    small_positions,
    without_head,
    without_mask,
    word_by_word,
    write,
)
from attention_course.training import loss_of, pairs, train
from autograde.notebook import (
    beside,
    case,
    chart,
    explore,
    hint,
    progress,
    recall,
    remember,
    rubric,
    show,
    show_live,
    table,
    why,
)
from autograde.rubric.probes.lines import register

register(__name__, Rubric)

__all__ = [
    "END", "VOCABULARY", "MultiHeadAttention", "answers", "attention_of", "attention_picture",
    "begin", "beside", "case", "chart", "copy_weights", "course_model", "decode", "encode",
    "explore", "explore_story", "floor", "heatmap", "hint", "is_grammatical", "jobs", "loss_of",
    "new_model", "next_words", "one_sentence", "pairs", "panels", "progress", "python_help",
    "recall", "remember", "rubric", "show", "show_live", "small_positions", "someone_is_there",
    "stories", "surprise", "table", "train", "why", "without_head", "without_mask",
    "word_by_word", "write",
]  # fmt: skip
