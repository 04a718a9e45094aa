"""Pictures of the class report: PNG data URLs, readable in grey, each with a text alternative."""

import base64
import io
import math
from collections import Counter
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np
import seaborn
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from autograde.report.classdata import STATES, WRONG, ClassData, Line
from autograde.values.text import short

COLOURS = ("#eef3f6", "#7c8994", "#4e180a")
"""The colours of the states, in order: from light to dark, so that they differ in grey too."""

MOST_NAMED = 40
"""The heatmap shows students' names only up to this number of students."""

LONGEST_NAME = 42
"""The characters of a line's name that fit beside the heatmap; the table has the full name."""


@dataclass(frozen=True)
class Chart:
    """A picture as a data URL, with its text alternative."""

    address: str
    words: str


def distribution(shares: list[float]) -> Chart:
    """Draw a histogram of the students' shares of the points."""
    figure = Figure(figsize=(8, 3.2))
    axes = figure.subplots()
    percent = [100 * share for share in shares]
    edges = [*range(0, max(100, math.ceil(max(percent))) + 5, 5)]
    seaborn.histplot(percent, bins=edges, ax=axes, color="#2f6f8f", edgecolor="white")
    axes.axvline(median(percent), color="black", linestyle="--", linewidth=1.2)
    axes.annotate(
        "median", (median(percent), 1), (0, 2), xycoords=("data", "axes fraction"),
        textcoords="offset points", ha="center", fontsize=9,
    )  # fmt: skip
    axes.set(xlabel="percent of the points", ylabel="students", xlim=(0, edges[-1]))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    seaborn.despine(figure)
    words = (
        f"Histogram of {len(shares)} scores in percent of the points: from "
        f"{min(shares):.0%} to {max(shares):.0%}, mean {fmean(shares):.0%}, "
        f"median {median(shares):.0%}."
    )
    return Chart(_address(figure), words)


def heatmap(data: ClassData, students: list[str]) -> Chart:
    """Draw rubric lines by students, the students in the order given."""
    lines = data.lines
    states = [[STATES.index(data.state(each, line)) for each in students] for line in lines]
    names = [f"{short(name, LONGEST_NAME)}  {i}" for i, (_, name) in enumerate(lines, start=1)]
    few = len(students) <= MOST_NAMED
    figure = Figure(layout="constrained", figsize=(9, 1.4 + 0.21 * len(lines)))
    axes = figure.subplots()
    seaborn.heatmap(
        np.array(states), vmin=-0.5, vmax=len(STATES) - 0.5, cmap=ListedColormap(COLOURS),
        cbar=False, ax=axes,
        linewidths=0.6 if few else 0, linecolor="white",
        xticklabels=students if few else False,
        yticklabels=names,
    )  # fmt: skip
    axes.tick_params(labelsize=8.5, length=0)
    axes.set_xlabel(f"{len(students)} students, the highest score on the left")
    _name_exercises(axes, [exercise for exercise, _ in lines])
    figure.legend(
        handles=[Patch(facecolor=colour, edgecolor="black", label=state)
                 for colour, state in zip(COLOURS, STATES, strict=True)],
        loc="outside upper center", ncols=len(STATES), frameon=False, fontsize=9,
    )  # fmt: skip
    return Chart(_address(figure), _heatmap_words(lines, states, len(students)))


def _name_exercises(axes: Axes, exercises: list[str]) -> None:
    """Draw a rule above each exercise, and its name on the right."""
    starts = [i for i, name in enumerate(exercises) if i == 0 or exercises[i - 1] != name]
    for start, end in zip(starts, [*starts[1:], len(exercises)], strict=True):
        axes.axhline(start, color="black", linewidth=0.8)
        axes.annotate(
            exercises[start], (1, (start + end) / 2), (5, 0), xycoords=("axes fraction", "data"),
            textcoords="offset points", va="center", fontsize=8.5, fontweight="bold",
            annotation_clip=False,
        )  # fmt: skip


def _heatmap_words(lines: list[Line], states: list[list[int]], students: int) -> str:
    counts = [row.count(STATES.index(WRONG)) for row in states]
    wrong = Counter(dict(zip(lines, counts, strict=True)))
    named = "; ".join(
        f"“{name}” of {exercise} ({count})"
        for (exercise, name), count in wrong.most_common(3)
        if count
    )
    most = f"Most often wrong: {named}." if named else "No line was wrong."
    return f"Heatmap of {len(lines)} rubric lines by {students} students. {most}"


def _address(figure: Figure) -> str:
    """Return the figure as PNG; its size in the page is set by the page."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=130, bbox_inches="tight")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
