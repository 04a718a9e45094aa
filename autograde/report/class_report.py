"""The class report: one self-contained HTML page for a lesson, and its rows as CSV."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, median, pstdev
from typing import Any

from autograde.course.lessons import Lesson
from autograde.files import write_whole
from autograde.grading.feedback import template
from autograde.lms.spreadsheet import Cell, write_table
from autograde.report import counts
from autograde.report.charts import distribution, heatmap
from autograde.report.classdata import (
    ANSWER_STATES,
    BLANK,
    RIGHT,
    SCORED,
    STATES,
    WRONG,
    ClassData,
    read_class,
    without_names,
)
from autograde.values.text import number

TEMPLATE = Path(__file__).parent / "class_report.html.j2"
FACTS: dict[str, Callable[[list[float]], float]] = {
    "mean": fmean,
    "median": median,
    "standard deviation": pstdev,
    "lowest": min,
    "highest": max,
}
LETTERS = {RIGHT: "R", BLANK: "–", WRONG: "W"}  # noqa: RUF001


def write_report(
    lesson: Lesson, *, anonymous: bool = False, csv_folder: Path | None = None
) -> Path:
    """Write report/LESSON.html, or LESSON-anonymous.html, and CSV files if `csv_folder` is given.

    Returns the page's path.
    """
    data = read_class(lesson)
    if anonymous:
        data = without_names(data)
    name = f"{lesson.name}-anonymous" if anonymous else lesson.name
    page = lesson.root / "report" / f"{name}.html"
    write_whole(page, render(data, anonymous=anonymous).encode())
    if csv_folder is not None:
        csv_folder.mkdir(parents=True, exist_ok=True)
        for table, (head, rows) in tables(data).items():
            write_table(csv_folder / f"{name}-{table}.csv", head, rows)
    return page


def render(data: ClassData, *, anonymous: bool = False) -> str:
    """Return the page as HTML; every text in it is escaped."""
    ranked = sorted(data.students, key=lambda each: -each.score)
    shares = [each.share for each in ranked if each.share is not None]
    judged = [each.name for each in ranked if each.name in data.judged]
    topics = counts.teach_again(data)
    return template(TEMPLATE).render(
        data=data,
        lesson=data.lesson,
        anonymous=anonymous,
        students=ranked,
        topics=topics,
        parts=counts.parts_of(data.lesson) if topics else {},
        talk=counts.talk_to(data),
        scores={name: of(shares) for name, of in FACTS.items()} if shares else {},
        bins=_bins(shares),
        score_picture=distribution(shares) if shares else None,
        heatmap=heatmap(data, judged) if judged else None,
        lines=_by_exercise(data),
        counts=counts.count(data),
        means=counts.means(data),
        scores_given=counts.scores_given(data),
        outcomes=counts.OUTCOMES,
        states=STATES,
        answer_states=ANSWER_STATES,
        cells=[_cells(data, each.name) for each in ranked],
        legend=LETTERS,
        misconceptions=counts.misconceptions(data),
        how=_how(data),
    )


def _by_exercise(data: ClassData) -> dict[str, list[tuple[int, str]]]:
    """Return the lines of each exercise, numbered through the lesson."""
    found: dict[str, list[tuple[int, str]]] = {each.name: [] for each in data.lesson.exercises}
    for i, (exercise, name) in enumerate(data.lines, start=1):
        found.setdefault(exercise, []).append((i, name))
    return found


def _cells(data: ClassData, student: str) -> list[str]:
    """Return a word for each exercise, a letter for each line, and the written answers."""
    words: dict[str, str] = {}
    for line in data.lines:
        words[line[0]] = words.get(line[0], "") + LETTERS[data.state(student, line)]
    answers = [data.row_of.get((student, each.name, "")) for each in data.lesson.written]
    said = [row and (number(row.points) if row.state == SCORED else row.state) for row in answers]
    return [*words.values(), *(text or "" for text in said)]


def _bins(shares: list[float]) -> list[tuple[str, int]]:
    """Count the students in each tenth of the points."""
    tenths = Counter(min(9, int(10 * share + 1e-9)) for share in shares)
    return [(f"{10 * i} to {10 * i + 10} %", tenths[i]) for i in range(10)]


def _how(data: ClassData) -> dict[str, Any]:
    """Return the facts on how the submissions were graded."""
    students = data.students
    not_judged = {row.student for row in data.rows if row.line} - data.judged
    times = sorted(each.seconds for each in students if each.seconds is not None)
    return {
        "broken": sum(each.broken for each in students),
        "versions": Counter(each.version for each in students),
        "earlier": sum(each.earlier for each in students),
        "walled": sum(each.walled for each in students),
        "times": {"total": sum(times), "median": median(times), "longest": times[-1]}
        if times else None,
        "late": sum(each.penalty > 0 for each in students),
        "by_hand": sum(each.by_hand > 0 for each in students),
        "untouched": sum(each.name in not_judged and not each.problem for each in students),
    }  # fmt: skip


def tables(data: ClassData) -> dict[str, tuple[list[str], list[list[Cell]]]]:
    """Return the rows of the class for CSV files, by name: a head and rows."""
    return {
        "students": (
            ["student", "score", "of", "taken off for lateness", "points to grade by hand",
             "problem"],
            [
                [each.name, each.score, data.lesson.points, each.penalty, each.by_hand,
                 each.problem]
                for each in data.students
            ],
        ),
        "lines": (
            ["student", "exercise", "line", "state", "points", "worth", "misconception"],
            [
                [row.student, row.exercise, row.line, row.state, round(row.points, 4),
                 round(row.worth, 4), "; ".join(belief.belief for belief in row.beliefs)]
                for row in data.rows
            ],
        ),
    }  # fmt: skip
