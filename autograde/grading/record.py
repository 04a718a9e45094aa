"""The record of a submission: its notebook and all that grading finds out about it.

Every step takes it and passes it on, from `parse` to the page. The notebook's file keeps what pages
and reports need; it is written and read here alone.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograde.grading.submission import Problem
from autograde.rubric.judge import Verdict
from autograde.values.packing import from_plain

NOTE = "autograde"
"""The key in a notebook's metadata under which its file keeps the record."""

EMPTY = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}


@dataclass(frozen=True)
class Record:
    """A submission's notebook, which steps change in place, and the findings so far.

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


def write_note(record: Record) -> NotebookNode:
    """Return the record's notebook with a note of the findings in its metadata."""
    note = {
        **vars(record),
        "problem": asdict(record.problem) if record.problem else None,
        "left_out": sorted(record.left_out),
        "verdicts": [asdict(verdict) for verdict in record.verdicts.values()],
    }
    del note["nb"], note["fault"]
    record.nb["metadata"][NOTE] = note
    return record.nb


def to_file(nb: NotebookNode) -> bytes:
    """Return the bytes of a notebook's file, as nbgrader writes it."""
    text: str = nbformat.writes(nb)
    return f"{text}\n".encode("utf-8", "surrogatepass")


def from_file(content: bytes) -> NotebookNode:
    """Return the notebook that `to_file` wrote."""
    nb: NotebookNode = nbformat.v4.reads(content.decode("utf-8", "surrogatepass"))
    return nb


def read_note(nb: Any) -> Record:
    """Return the record that a notebook's file keeps.

    Raises:
        KeyError, TypeError: no grader has written it.
    """
    note = dict(nb["metadata"][NOTE])
    problem, verdicts = note.pop("problem"), note.pop("verdicts")
    return Record(
        nb=nb,
        problem=Problem(**problem) if problem else None,
        left_out=frozenset(note.pop("left_out")),
        verdicts={each["exercise"]: from_plain(Verdict, each) for each in verdicts},
        **note,
    )
