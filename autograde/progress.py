"""A student's progress: kept in files of the working copy, for the student alone.

`autograde lab` notes which lessons there are; the kernel notes each rubric that ran. Both then
write the page of lessons. Grading neither writes nor reads any of it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from autograde.files import write_whole
from autograde.values.text import digest, number, of_points

STATE = ".lessons"
"""The folder in a working copy that holds what `autograde update` and practice remember."""
INDEX = "lessons.json"
PAGE = "Lessons.md"
NOTES = "My notes.html"
"""The page of the cards of lessons; see `autograde.cards`."""
PRACTICE_FILE = "practice.safetensors.gz"

NOT_RUN = (
    "{name} is not defined yet: cells above have not run in this kernel. Choose in the menu: "
    "Run > Run All Above Selected Cell."
)
"""Said of a name that a lesson's own cell would have bound."""

TEXT = """\
# Lessons

{now}

{rows}

Open a lesson with a click, and run its cells from top to bottom with Shift+Enter. Your work is
saved in this folder; a new version of the lessons never overwrites it.

In a terminal (File, New, Terminal):

| command | does |
|---|---|
| `autograde progress` | says how far you are |
| `autograde self LESSON` | grades the saved notebook as your teacher's grader would |
| `autograde update` | brings new versions of lessons and keeps what you wrote |
| `autograde submit LESSON` | checks a lesson and packs it to be handed in |
"""

DAMAGED = (OSError, ValueError, RecursionError, AttributeError, KeyError, TypeError)
"""Raised where a file of the working copy is missing, or is not what was written there."""


@dataclass(frozen=True)
class Standing:
    """One lesson: what its exercises are worth, and the points of those that were tried.

    `written` is the worth of its questions answered in words, `tried` when a rubric last ran.
    """

    lesson: str
    worth: Mapping[str, float]
    points: Mapping[str, float]
    written: Mapping[str, float] = field(default_factory=dict)
    title: str = ""
    notebook: str = ""
    due: str = ""
    newer: bool = False
    minutes: int = 0
    tried: float = 0

    @property
    def solved(self) -> list[str]:
        return [name for name in self.worth if self.points.get(name, 0) >= self.worth[name]]

    @property
    def next(self) -> str:
        """The first exercise that is not solved, or ""."""
        return next((name for name in self.worth if name not in self.solved), "")

    def in_words(self) -> str:
        have = sum(self.points.get(name, 0) for name in self.worth)
        written = sum(self.written.values())
        points = of_points(have, sum(self.worth.values()) + written)
        by_hand = f" (your teacher marks {number(written)} of them)" if written else ""
        return f"{len(self.solved)} of {len(self.worth)} exercises right, {points}{by_hand}"

    @property
    def link(self) -> str:
        return self._link(self.title)

    @property
    def link_to_next(self) -> str:
        """A link to the cell of the first exercise that is not solved; its id is its name."""
        return self._link(f"exercise `{self.next}`", f"#cell-id={quote(self.next)}")

    def _link(self, text: str, place: str = "") -> str:
        title, path = text.replace("|", "\\|"), quote(f"{self.lesson}/{self.notebook}")
        return f"[{title}]({path}{place})"


@dataclass(frozen=True)
class Attempt:
    """An answer that an exercise's rubric has judged: its points, and when that was.

    `answer` is the digest of its cell, or "" if that is not known.
    """

    points: float
    answer: str
    when: float


def of_course(working: Path) -> list[Standing]:
    """Return the standing in each lesson of a working copy; the index may be old or damaged."""
    try:
        index = json.loads((working / STATE / INDEX).read_text(encoding="utf-8"))
        return [_standing(working / name, entry) for name, entry in index.items()]
    except DAMAGED:
        return []


def _standing(folder: Path, entry: Mapping[str, Any]) -> Standing:
    found = {exercise: last_attempt(folder, exercise) for exercise in entry["worth"]}
    tried = {exercise: each for exercise, each in found.items() if each}
    points = {exercise: each.points for exercise, each in tried.items()}
    last = max((each.when for each in tried.values()), default=0)
    return Standing(folder.name, points=points, tried=last, **entry)


def keep_line(lesson: Path, line: str) -> None:
    """Keep the student's own line on a lesson, for its card."""
    write_whole(_line_file(lesson), line.encode("utf-8", "replace"))


def kept_line(lesson: Path) -> str:
    """Return the student's own line on a lesson; "" if there is none."""
    try:
        return _line_file(lesson).read_text(encoding="utf-8")
    except DAMAGED:
        return ""


def _line_file(lesson: Path) -> Path:
    return lesson.parent / STATE / "notes" / f"{lesson.name}.txt"


def _attempt_file(lesson: Path, exercise: str) -> Path:
    return lesson.parent / STATE / "progress" / lesson.name / f"{exercise}.json"


def last_attempt(lesson: Path, exercise: str) -> Attempt | None:
    """Return the last attempt at an exercise; None if there was none or the file is damaged."""
    path = _attempt_file(lesson, exercise)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        answer = str(found.get("answer", ""))
        return Attempt(float(found["points"]), answer, path.stat().st_mtime)
    except DAMAGED:
        return None


def keep_attempt(lesson: Path, exercise: str, points: float, answer: str) -> None:
    """Keep what an answer earned, with a digest of its cell, "" if that is not known."""
    kept = {"points": points, "answer": answer and digest_of_cell(answer)}
    write_whole(_attempt_file(lesson, exercise), json.dumps(kept).encode())


def digest_of_cell(text: str) -> str:
    return digest(text.strip())[:16]


def write_page(working: Path) -> None:
    """Write the page of lessons, which JupyterLab opens first."""
    course = of_course(working)
    rows = ["| lesson | minutes | so far |", "|---|---|---|"]
    for lesson in course:
        due = f", due {lesson.due}" if lesson.due else ""
        done = "✓ " if lesson.solved and not lesson.next else ""
        minutes = lesson.minutes or ""
        rows.append(f"| {done}{lesson.link}{due} | {minutes} | {lesson.in_words()} |")
    if newer := [lesson.lesson for lesson in course if lesson.newer]:
        rows += ["", f"**There are new versions of {', '.join(newer)}.** To get them, see below."]
    if (working / NOTES).is_file():
        rows += ["", f"What you have learned so far stands in [My notes]({quote(NOTES)})."]
    page = TEXT.format(now="\n\n".join(_now(course)), rows="\n".join(rows))
    write_whole(working / PAGE, page.encode())


def _now(course: list[Standing]) -> list[str]:
    """Return where to continue: in the lesson whose rubric ran last, or in the first one."""
    last = max(course, key=lambda lesson: lesson.tried, default=None)
    if last is None or not last.tried:
        return [f"**Begin with** {lesson.link}." for lesson in course[:1]]
    if last.next:
        return [
            f"**Continue where you left off:** {last.link}, {last.link_to_next}. In a new kernel, "
            "first choose *Run > Run All Above Selected Cell* there."
        ]
    said = [f"**Every exercise of {last.title} is right.** {how_to_submit(last.lesson)}"]
    return said + [f"**Go on with** {lesson.link}." for lesson in following(course, last.lesson)]


def how_to_submit(lesson: str) -> str:
    return f"To submit it, run `autograde submit {lesson}` in a terminal."


def following(course: list[Standing], lesson: str) -> list[Standing]:
    """Return the lesson to go on with: the next one that is not solved, if there is one."""
    names = [each.lesson for each in course]
    place = names.index(lesson) if lesson in names else 0
    return [each for each in course[place + 1 :] + course[:place] if each.next][:1]
