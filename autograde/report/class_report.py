"""The class report: one self-contained HTML page for a lesson, and the same data as CSV."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, pstdev
from typing import Any

from autograde.course.lessons import Lesson
from autograde.files import write_whole
from autograde.grading.feedback import template
from autograde.lms.spreadsheet import write_table
from autograde.report.actions import FALLEN, talk_to, teach_again
from autograde.report.charts import distribution, heatmap
from autograde.report.classdata import (
    ANSWER_STATES,
    BLANK,
    RIGHT,
    SCORED,
    STATES,
    WRONG,
    ClassData,
    GradedSubmission,
    Line,
    misconceptions,
    read_class,
    without_names,
)
from autograde.report.itemstats import FEWEST, discriminations
from autograde.rubric.judge import Verdict
from autograde.values.text import number

TEMPLATE = Path(__file__).parent / "class_report.html.j2"
SOLVED, PARTLY, NO_POINTS, NOT_TRIED = "solved", "partly", "no points", "not tried"
OUTCOMES = (SOLVED, PARTLY, NO_POINTS, NOT_TRIED)
FACTS: dict[str, Callable[[list[float]], float]] = {
    "mean": fmean,
    "median": median,
    "standard deviation": pstdev,
    "lowest": min,
    "highest": max,
}
LETTERS = {RIGHT: "R", BLANK: "–", WRONG: "W"}  # noqa: RUF001


@dataclass(frozen=True)
class LineRow:
    """A rubric line as the report shows it."""

    number: int
    exercise: str
    name: str
    counts: Counter[str]
    discrimination: float | None

    @property
    def difficulty(self) -> float | None:
        """The share of students who got the line right."""
        return self.counts[RIGHT] / self.counts.total() if self.counts else None


@dataclass(frozen=True)
class ExerciseRow:
    """An exercise as the report shows it: its mean share of the points, and how it was solved."""

    name: str
    points: float
    mean: float | None
    counts: dict[str, int]
    lines: list[LineRow]


@dataclass(frozen=True)
class WrittenRow:
    """A question to be answered in words: how many answers are in which state, and their scores.

    `scores` are those that somebody gave.
    """

    name: str
    points: float
    counts: dict[str, int]
    scores: tuple[float, ...]

    @property
    def mean(self) -> float | None:
        return fmean(self.scores) if self.scores else None

    @property
    def by_score(self) -> list[tuple[float, int]]:
        """Count the answers with each score, the highest first."""
        return sorted(Counter(self.scores).items(), reverse=True)


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


def line_rows(data: ClassData) -> list[LineRow]:
    """Return every rubric line with its counts and statistics, over the judged submissions."""
    lines, judged = data.lines, data.judged
    right = [
        [each.state(line) == RIGHT if each.has(line) else None for line in lines] for each in judged
    ]
    found = discriminations(right, list(lines.values()))
    return [
        LineRow(i + 1, *line, Counter(s.state(line) for s in judged if s.has(line)), found[i])
        for i, line in enumerate(lines)
    ]


def exercise_rows(data: ClassData, lines: list[LineRow]) -> list[ExerciseRow]:
    """Return every exercise over the submissions whose file is not broken, with its lines."""
    whole = [each.verdicts for each in data.submissions if not each.broken]
    rows = []
    for exercise in data.lesson.exercises:
        found = [each[exercise.name] for each in whole if exercise.name in each]
        rows.append(
            ExerciseRow(
                exercise.name,
                exercise.points,
                fmean(each.points / each.max_points for each in found) if found else None,
                Counter(map(_outcome, found)),
                [line for line in lines if line.exercise == exercise.name],
            )
        )
    return rows


def _outcome(verdict: Verdict) -> str:
    if verdict.passed:
        return SOLVED
    if not verdict.judged:
        return NOT_TRIED
    return PARTLY if verdict.points else NO_POINTS


def written_rows(data: ClassData) -> list[WrittenRow]:
    """Return every question answered in words, over all submissions."""
    rows = []
    for question in data.lesson.written:
        found = [
            each.written[question.name]
            for each in data.submissions
            if question.name in each.written
        ]
        states = Counter(each if isinstance(each, str) else SCORED for each in found)
        scores = tuple(each for each in found if not isinstance(each, str))
        rows.append(WrittenRow(question.name, question.points, states, scores))
    return rows


def answer_text(submission: GradedSubmission, name: str) -> str:
    """Return a student's written answer as a cell of a table: its score, or its state."""
    answer = submission.written.get(name, "")
    return answer if isinstance(answer, str) else number(answer)


def render(data: ClassData, *, anonymous: bool = False) -> str:
    """Return the page as HTML; every text in it is escaped."""
    ranked = sorted(data.submissions, key=lambda each: -each.score)
    shares = [share for each in ranked if (share := data.share(each)) is not None]
    judged = [each for each in ranked if each.judged]
    lines = line_rows(data)
    return template(TEMPLATE).render(
        lesson=data.lesson,
        anonymous=anonymous,
        submissions=ranked,
        topics=teach_again(data),
        talk=talk_to(data),
        fallen=FALLEN,
        scores={name: of(shares) for name, of in FACTS.items()} if shares else {},
        bins=_bins(shares),
        score_picture=distribution(shares) if shares else None,
        heatmap=heatmap(data, judged) if judged else None,
        exercises=exercise_rows(data, lines),
        outcomes=OUTCOMES,
        written=written_rows(data),
        answer_states=ANSWER_STATES,
        answer_text=answer_text,
        letters=[_letters(data, each) for each in ranked],
        states=STATES,
        legend=LETTERS,
        fewest=FEWEST,
        judged=len(judged),
        misconceptions=misconceptions(data),
        not_graded=data.not_graded,
        name_of=data.name_of,
        how=_how(data),
    )


def _letters(data: ClassData, submission: GradedSubmission) -> list[str]:
    """Return a letter for each line, in one word for each exercise."""
    words: dict[str, str] = {}
    for line in data.lines:
        words[line[0]] = words.get(line[0], "") + LETTERS[submission.state(line)]
    return list(words.values())


def _bins(shares: list[float]) -> list[tuple[str, int]]:
    """Count the students in each tenth of the points."""
    tenths = Counter(min(9, int(10 * share + 1e-9)) for share in shares)
    return [(f"{10 * i} to {10 * i + 10} %", tenths[i]) for i in range(10)]


def _how(data: ClassData) -> dict[str, Any]:
    """Return the facts on how the submissions were graded."""
    graded = [each for each in data.submissions if each.verdicts]
    times = sorted(each.seconds for each in graded if each.seconds is not None)
    return {
        "broken": sum(each.broken for each in data.submissions),
        "versions": Counter(each.version for each in data.submissions),
        "earlier": sum(each.earlier for each in data.submissions),
        "walled": sum(each.walled for each in data.submissions),
        "times": {"total": sum(times), "median": median(times), "longest": times[-1]}
        if times else None,
        "late": sum(each.penalty > 0 for each in data.submissions),
        "by_hand": sum(each.by_hand > 0 for each in data.submissions),
        "untouched": sum(each.untouched for each in data.submissions),
    }  # fmt: skip


def tables(data: ClassData) -> dict[str, tuple[list[str], list[list[Any]]]]:
    """Return the report's tables for CSV files, by name: a head and rows."""
    lines: list[Line] = list(data.lines)
    questions = [question.name for question in data.lesson.written]
    return {
        "lines": (
            ["number", "exercise", "line", *STATES, "students", "difficulty", "discrimination"],
            [
                [row.number, row.exercise, row.name, *(row.counts.get(s, 0) for s in STATES),
                 row.counts.total(), _rounded(row.difficulty),
                 _rounded(row.discrimination)]
                for row in line_rows(data)
            ],
        ),
        "students": (
            ["student", "score", "of", "taken off for lateness", "points to grade by hand",
             "problem", "misconceptions",
             *(f"{exercise}: {name}" for exercise, name in lines), *questions],
            [
                [each.student, each.score, data.lesson.points, each.penalty, each.by_hand,
                 each.problem, ", ".join(_named(each)), *(each.state(line) for line in lines),
                 *(answer_text(each, name) for name in questions)]
                for each in data.submissions
            ],
        ),
        "written": (
            ["question", "points", *ANSWER_STATES, "mean of the scored"],
            [[row.name, row.points, *(row.counts.get(s, 0) for s in ANSWER_STATES),
              _rounded(row.mean)]
             for row in written_rows(data)],
        ),
        "misconceptions": (
            ["exercise", "variant", "students", "misconception", "hint"],
            [[exercise, wrong.name, count, wrong.belief, wrong.hint]
             for exercise, wrong, count in misconceptions(data)],
        ),
    }  # fmt: skip


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _named(submission: GradedSubmission) -> list[str]:
    verdicts = submission.verdicts.values()
    return [f"{v.exercise}: {belief.name}" for v in verdicts for belief in v.beliefs]
