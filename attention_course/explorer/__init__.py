"""The explorer: a story whose words say what they look at, and a model whose heads can be changed.

story.py           `explore_story`, which a lesson calls
reading.py         what the heads of a model do, read off any model with this course's parts
static_picture.py  the picture that is saved with the notebook
live.py            the widget, and what it asks of the kernel

explorer.js and explorer.css are the widget's page.
"""

from attention_course.explorer.story import explore_story

__all__ = ["explore_story"]
