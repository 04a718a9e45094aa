"""Make tests/course_1_0.zip: a small course and its class, as version 1.0 leaves them.

    python tests/make_course_1_0.py

Version 1.0.0 makes it, once. Every 1.x reads that file (test_from_1_0.py), so it is never made
again: what a later version would write says nothing about teachers' folders of today.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from classes import NO_WALL, fill, put_file, reference_answers, wrong_answer
from nbgrader.api import Gradebook

from autograde.course.lessons import Lesson, lessons

FILE = Path(__file__).with_name("course_1_0.zip")
NAME, NOTEBOOK = "01_words", "words"
CURRICULUM = f"""\
[course]
title = "Words"
package = "words_course"

[[lesson]]
name = "{NAME}"
notebook = "{NOTEBOOK}"
title = "Words"
about = "counting words"
minutes = 20

[lesson.points]
longest = 3
count_words = 2

[lesson.written]
why_split = 2
"""
HELD = '"schema_version": 3, "solution": {solution}, "task": false'
TEXT = """\
# %% [markdown]
# # Words

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, HELD}
from words_course import SENTENCE

from autograde.notebook import case, hint, progress, rubric, why

# %% [markdown]
# ### Exercise: `longest` (3 points)
#
# The longest word of a list, the first of them if several are. An empty list raises a `ValueError`.

# %% nbgrader={"grade": false, "grade_id": "longest", "locked": false, ANSWER}
def longest(words):
    ### BEGIN SOLUTION
    return max(words, key=len)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_longest", "locked": true, "points": 3, HELD} tags=["raises-exception"]
@rubric("longest")
def _(r):
    drawn = [f"{r.integer(1, 10**9)}" for _ in range(6)]
    r.idea.each("the longest word", longest, (["a", "bcd", "ef"],), (drawn,))
    r.call("the first of two", longest, ["one", "two", "a"])
    r.refuses("refuses an empty list", longest, ([],))
    r.unchanged("leaves its argument as it was")

# %% [markdown]
# ### Exercise: `count_words` (2 points)
#
# How often each word of a text occurs, as a dict.

# %% nbgrader={"grade": false, "grade_id": "count_words", "locked": false, ANSWER}
def count_words(text):
    ### BEGIN SOLUTION
    found = {}
    for word in text.split():
        found[word] = found.get(word, 0) + 1
    return found
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_count_words", "locked": true, "points": 2, HELD} tags=["raises-exception"]
@rubric("count_words")
def _(r):
    drawn = " ".join(f"{r.integer(1, 4)}" for _ in range(30))
    r.idea.each("each word", count_words, ("a b a",), (drawn,))
    r.call("two spaces", count_words, "a  b")
    r.call("a tab", count_words, "a\\tb")

# %%
print(count_words(SENTENCE))

# %% [markdown] nbgrader={"grade": false, "grade_id": "question_why_split", "locked": true, HELD}
# ### Question: `why_split` (2 points, a person reads it)
#
# Why `split()` and not `split(" ")`?
#
# <!-- BEGIN MARK SCHEME -->
# Two spaces in a row, or a line's end: one point each.
# <!-- END MARK SCHEME -->

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_split", "locked": false, "points": 2, ANSWER}
# <!-- BEGIN SOLUTION -->
# Two spaces would give an empty word.
# <!-- END SOLUTION -->
"""  # noqa: E501 (a cell's header is one line)
LATER = '    r.call("a tab", count_words, "a\\tb")\n'
"""A line that only the second version of the lesson has."""
WITHOUT_TABS = """\
def count_words(text):
    words = [word for word in text.split(" ") if word]
    return {word: words.count(word) for word in words}
"""
"""Eve's answer: right by the first version."""
VARIANTS = {
    "longest": """\
# longest

1. Which word is the longest?
2. What does `max` compare?

## right: sorted
A stable sort keeps the first.
```python
def longest(words):
    if not words:
        raise ValueError("no words")
    return sorted(words, key=len, reverse=True)[0]
```

## wrong: last_in_order
> `max` finds what is longest.

By what does `max` compare words if nobody says?
```diff reference
-    return max(words, key=len)
+    return max(words)
```

## near miss: last_of_several
> any of the longest will do.

Which of two does the text ask for?
```diff reference
-    return max(words, key=len)
+    return max(reversed(words), key=len)
```

## near miss: nothing_of_nothing
> nothing has no longest word, so None.

What does the text ask of an empty list?
```diff reference
-    return max(words, key=len)
+    return max(words, key=len, default=None)
```

## near miss: sorted_in_place
> a list may be sorted on the way.

Whose list is it?
```diff reference
-    return max(words, key=len)
+    words.sort(key=len, reverse=True)
+    return max(words, key=len)
```
""",
    "count_words": """\
# count_words

1. Which words are there?
2. How often has this one been seen?

## right: comprehension
Each word is counted in the list.
```python
def count_words(text):
    words = text.split()
    return {word: words.count(word) for word in words}
```

## wrong: once
> each word is met once.

What is there when a word comes again?
```diff reference
-        found[word] = found.get(word, 0) + 1
+        found[word] = 1
```

## near miss: single_spaces
> a space ends a word.

What stands between two spaces?
```diff reference
-    for word in text.split():
+    for word in text.split(" "):
```
""",
}


def autograde(root: Path, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "autograde.cli", *arguments], cwd=root, check=True)


def build(root: Path) -> None:
    autograde(root, "check", "--measure", NAME)
    autograde(root, "build")


def make_course(root: Path) -> Lesson:
    """Build the lesson twice; between the two its second rubric gets another line."""
    autograde(root.parent, "init", root.name)
    shutil.rmtree(root / "source")
    shutil.rmtree(root / root.name)
    for name, text in {
        "words_course/__init__.py": '"""Data."""\n\nSENTENCE = "to be or not to be"\n',
        "words_course/requirements.txt": "",
        "source/curriculum.toml": CURRICULUM,
        **{f"source/{NAME}/variants/{name}.md": text for name, text in VARIANTS.items()},
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    text = TEXT.replace("HELD", HELD.format(solution="false"))
    text = text.replace("ANSWER", HELD.format(solution="true"))
    lesson = root / "source" / NAME / f"{NOTEBOOK}.py"
    lesson.write_text(text.replace(LATER, ""))
    build(root)
    hand_in(lessons(root)[NAME], "eve", {"count_words": WITHOUT_TABS})
    lesson.write_text(text)
    build(root)
    return lessons(root)[NAME]


def hand_in(lesson: Lesson, student: str, others: dict[str, str]) -> None:
    """Hand in the reference's answers, but for these."""
    put_file(lesson, student, fill(lesson, {**reference_answers(lesson), **others}))


def mark(root: Path) -> None:
    """Give points and a comment by hand, as Formgrader does."""
    with Gradebook(f"sqlite:///{root}/gradebook.db", root.name) as gradebook:
        place = ("why_split", NOTEBOOK, NAME, "ada")
        grade, comment = gradebook.find_grade(*place), gradebook.find_comment(*place)
        grade.manual_score, grade.needs_manual_grade = 1.5, False
        comment.manual_comment = "And the end of a line?"
        gradebook.db.commit()


def pack(root: Path) -> None:
    """Write all files but pages, logs and what Python has compiled."""
    left_out = ("feedback", "__pycache__", "grading.log", "nbgrader.log", "lock", "gradebooks")
    with ZipFile(FILE, "w", ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(root.rglob("*")):
            name = path.relative_to(root)
            if path.is_file() and not set(left_out) & {*name.parts}:
                archive.writestr(ZipInfo(name.as_posix()), path.read_bytes(), ZIP_DEFLATED)


def main() -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder, "words")
        lesson = make_course(root)
        hand_in(lesson, "ada", {})
        wrong = {"longest": "last_in_order", "count_words": "single_spaces"}
        hand_in(lesson, "bob", {k: wrong_answer(lesson, k, v).code for k, v in wrong.items()})
        put_file(lesson, "kim", b"no notebook")
        autograde(root, "grade", *NO_WALL)
        mark(root)
        pack(root)
    print(f"{FILE}: {FILE.stat().st_size / 1000:.0f} KB")


if __name__ == "__main__":
    main()
