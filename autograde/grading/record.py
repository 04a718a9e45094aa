"""The record of a submission: its notebook and all that grading finds out about it.

Every step takes it and passes it on, from `parse` to the page. Its marks are read off it when it is
judged. The notebook's file keeps what pages and reports need; it is written and read here alone.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograde.course.cells import named_cells
from autograde.course.versions import Version, source_of
from autograde.grading.submission import NO_ANSWER, Marks, Problem
from autograde.rubric.judge import Verdict
from autograde.values.packing import from_plain
from autograde.values.text import digest

METADATA_KEY = "autograde"
"""The key in a notebook's metadata under which its file keeps the record."""

EMPTY = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}


@dataclass(frozen=True)
class Record:
    """A submission's notebook and the findings so far.

    A step changes the notebook, `notes` and `remarks` in place, and replaces any other field.
    `problem` says why it could not be graded in full. `notes` are for single cells; `remarks` are
    for the whole. `left_out` has the ids of cells that were not run. `earlier`: it was made from an
    earlier version of the lesson. `walled` is None where no teacher has graded it. `ways` are other
    answers, in words and code, to exercises that are right. `grader` judged it on `date`; `fault`
    is the traceback if that failed, for the log and not for the file.
    """

    nb: NotebookNode = field(default_factory=lambda: nbformat.from_dict(EMPTY))
    problem: Problem | None = None
    notes: dict[str, list[str]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    earlier: bool = False
    walled: bool | None = None
    left_out: frozenset[str] = frozenset()
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    ways: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    title: str = ""
    grader: str = ""
    date: str = ""
    fault: str = ""

    def note(self, cell: str, text: str) -> None:
        self.notes.setdefault(cell, []).append(text)

    @property
    def noticed(self) -> str:
        """The problem in words, or else the notes on single cells as one line."""
        if self.problem:
            return self.problem.words
        cells: dict[str, list[str]] = {}
        for cell, said in self.notes.items():
            for text in said:
                cells.setdefault(text, []).append(cell)
        return "; ".join(f"{', '.join(found)}: {text}" for text, found in cells.items())


def is_broken(problem: Problem | str | None, verdicts: Mapping[str, Verdict]) -> bool:
    """Return whether a problem kept every exercise of a submission from being judged."""
    return bool(problem and verdicts) and not any(each.judged for each in verdicts.values())


def marks_of(record: Record, released: NotebookNode, known: Marks) -> Marks:
    """Return known marks with the scores and comments that the grader gives anew.

    What is graded by hand waits for a person, unless it was left as it was handed out or emptied.
    """
    given = {name: cell.source for name, cell in named_cells(released).items()}
    automatic: dict[str, float | None] = {}
    points, written, comments = {}, {}, {}
    for name, cell in named_cells(record.nb).items():
        about, untouched = cell.metadata["nbgrader"], cell.source == given.get(name)
        if about.get("grade"):
            verdict = record.verdicts.get(name.removeprefix("test_"))
            points[name] = float(about["points"])
            if verdict is None:
                put_there_again = name in record.notes
                empty = untouched or (not cell.source.strip() and not put_there_again)
                automatic[name] = 0.0 if empty else None
                written[name] = digest(as_marked(cell))
            else:
                automatic[name] = verdict.points
        if about.get("solution"):
            comments[name] = NO_ANSWER if untouched else None
    return replace(known, automatic=automatic, points=points, written=written, comments=comments)


def as_marked(cell: NotebookNode) -> str:
    """Return what a person judges of an answer: its words, or its code and what this showed."""
    source: str = cell.source
    return json.dumps([source, cell.outputs]) if cell.cell_type == "code" else source


def put_schemes(nb: NotebookNode, version: Version) -> None:
    """Give the questions their marking schemes, which graders see and students do not."""
    cells, with_schemes = named_cells(nb), named_cells(source_of(version))
    for written in version.lesson.written:
        name = written.question_cell
        cells[name].source = with_schemes[name].source


def write_record(record: Record) -> NotebookNode:
    """Return the record's notebook with the other fields in its metadata."""
    kept = {
        **vars(record),
        "problem": asdict(record.problem) if record.problem else None,
        "left_out": sorted(record.left_out),
        "verdicts": [asdict(verdict) for verdict in record.verdicts.values()],
    }
    del kept["nb"], kept["fault"]
    record.nb["metadata"][METADATA_KEY] = kept
    return record.nb


def to_file(nb: NotebookNode) -> bytes:
    """Return the bytes of a notebook's file, as nbgrader writes it."""
    text: str = nbformat.v4.writes(nb)
    return f"{text}\n".encode("utf-8", "surrogatepass")


def from_file(content: bytes) -> NotebookNode:
    """Return the notebook that `to_file` wrote."""
    nb: NotebookNode = nbformat.v4.reads(content.decode("utf-8", "surrogatepass"))
    return nb


def read_record(nb: Any) -> Record:
    """Return the record that a notebook's file keeps.

    Raises:
        KeyError, TypeError: no grader has written it.
    """
    kept = dict(nb["metadata"][METADATA_KEY])
    problem, verdicts = kept.pop("problem"), kept.pop("verdicts")
    return Record(
        nb=nb,
        problem=Problem(**problem) if problem else None,
        left_out=frozenset(kept.pop("left_out")),
        verdicts={each["exercise"]: from_plain(Verdict, each) for each in verdicts},
        **kept,
    )
