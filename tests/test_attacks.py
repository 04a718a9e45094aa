"""Attack submissions, graded as a class: none gains a point, and none changes another's grade."""

import os
import shutil
import socket
import stat
import sys
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from attacks import ATTACKS
from classes import (
    file_of,
    fill,
    put_file,
    reference_answers,
    scores,
    without_demonstrations,
)
from conftest import HERE, NEW, program
from nbformat import NotebookNode
from nightly import nightly

from autograde.course.cells import grade_id
from autograde.course.lessons import Lesson, lessons
from autograde.course.versions import notebook_of, versions
from autograde.grading.reading.restore import restore
from autograde.grading.record import Record
from autograde.grading.running.job import job_of, seed_of
from autograde.grading.running.reference import load
from autograde.grading.state import course_secret
from autograde.grading.submission import Place, Submission, Task
from autograde.rubric.session import PRACTICE_SEED
from autograde.sandbox.wall import missing
from autograde.values.packing import pack

pytestmark = [nightly, pytest.mark.skipif(bool(missing()), reason=missing())]

EXERCISE, POINTS = "center_rows", 2
HONEST = ("aa_honest", "mm_honest", "zz_honest")
FILES = {
    "a_symlink": "was not handed in",
    "a_link_to_a_folder": "was not handed in",
    "a_fifo": "was not handed in",
    "a_device": "was not handed in",
    "a_huge_file": "more than the 30 MB allowed",
    "a_deep_file": "The file is not JSON",
    "another_kernel": "Not written yet",
    "script_in_text": "Not written yet",
}
"""Submissions that are strange as files, and words that their feedback must hold."""


@dataclass(frozen=True)
class Graded:
    lesson: Lesson
    scores: dict[str, float]
    marker: Path
    connections: int


@pytest.fixture(scope="module")
def graded(new_lesson: Lesson, tmp_path_factory: pytest.TempPathFactory) -> Graded:
    root = tmp_path_factory.mktemp("attacked") / "course"
    marker = root / "unpickled"
    shutil.copytree(new_lesson.root, root)
    lesson = lessons(root)[NEW]
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = str(server.getsockname()[1])
        places = {"COURSE": str(root), "PORT": port, "MARKER": str(marker)}
        hand_in(lesson, places)
        small_limits = str(HERE / "tests" / "small_limits.py")
        result = program(sys.executable, small_limits, "grade", NEW, cwd=root)
        connections = 0
        try:
            server.accept()
            connections = 1
        except BlockingIOError:
            pass
    assert result.returncode == 0, result.stdout + result.stderr
    return Graded(lesson, scores(root, NEW), marker, connections)


def hand_in(lesson: Lesson, places: dict[str, str]) -> None:
    """Write every attack's submission, the strange files, and three honest ones."""
    right = without_demonstrations(fill(lesson, reference_answers(lesson)))
    for student in HONEST:
        put_file(lesson, student, right)
    version = versions(lesson)[0]
    restored = restore(Record(deepcopy(right)), notebook_of(version))
    _, job = job_of(restored, version, Task(Submission(Place("honest", lesson), {}), wall=True))
    honest = seed_of(course_secret(lesson.root), NEW, job.seen)
    places |= {
        "RECORDINGS": _recordings(lesson, PRACTICE_SEED),
        "ANOTHERS": _recordings(lesson, honest),
    }
    for student, (code, _) in ATTACKS.items():
        for name, value in places.items():
            code = code.replace(name, value)
        put_file(lesson, student, _attack(lesson, code))
    _strange_files(lesson)


def _recordings(lesson: Lesson, seed: int) -> str:
    """What the rubrics record of the reference, as code."""
    reference = load(lesson)
    names = [exercise.name for exercise in lesson.exercises]
    return repr({name: pack(reference.record(name, seed)) for name in names})


def _attack(lesson: Lesson, code: str) -> NotebookNode:
    nb = fill(lesson, {})
    nb.cells = [cell for cell in nb.cells if grade_id(cell)]  # figures take time, and no part
    for cell in nb.cells:
        if grade_id(cell) == EXERCISE:
            cell.source = f"{code}\n" if code[0] == "%" else f"{cell.source}\n\n{code}\n"
    return nb


def _strange_files(lesson: Lesson) -> None:
    honest = file_of(lesson, HONEST[0])
    _place(lesson, "a_symlink").symlink_to(honest)
    folder = _place(lesson, "a_link_to_a_folder").parent
    folder.rmdir()
    folder.symlink_to(honest.parent)
    os.mkfifo(_place(lesson, "a_fifo"))
    device = _place(lesson, "a_device")
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # as /dev/zero
    except PermissionError:  # who cannot make one can still link to it
        device.symlink_to("/dev/zero")
    with open(_place(lesson, "a_huge_file"), "wb") as file:
        file.truncate(10**11)
    put_file(lesson, "a_deep_file", b"[" * 200_000)
    nb = fill(lesson, {})
    nb.metadata.kernelspec = {"name": "bash", "language": "bash", "display_name": "bash"}
    put_file(lesson, "another_kernel", nb)
    nb = fill(lesson, {})
    nb.cells.insert(0, nbformat.v4.new_raw_cell("<script>evil()</script>"))
    nb.cells.insert(0, nbformat.v4.new_markdown_cell(
        "<script>evil()</script><img src=x onerror=evil()> [a](javascript:evil()) "
        "$\\href{javascript:evil()}{x}$ <iframe srcdoc='<script>evil()</script>'></iframe>"
    ))  # fmt: skip
    put_file(lesson, "script_in_text", nb)


def _place(lesson: Lesson, student: str) -> Path:
    path = file_of(lesson, student)
    path.parent.mkdir(parents=True)
    return path


def feedback(graded: Graded, student: str) -> str:
    return file_of(graded.lesson, student, "feedback").read_text()


@pytest.mark.parametrize("student", HONEST)
def test_honest_work_beside_attacks_keeps_its_points(graded: Graded, student: str) -> None:
    assert graded.scores[student] == POINTS


@pytest.mark.parametrize("student", [*ATTACKS, *FILES])
def test_attack_gains_nothing(graded: Graded, student: str) -> None:
    assert graded.scores[student] == 0


@pytest.mark.parametrize("student", [*ATTACKS, *FILES])
def test_feedback_has_a_readable_line(graded: Graded, student: str) -> None:
    words = FILES[student] if student in FILES else ATTACKS[student][1]
    page = feedback(graded, student).replace("&#39;", "'")
    assert any(said in page for said in words.split(" | ")), words


def test_nothing_was_unpickled(graded: Graded) -> None:
    assert not graded.marker.exists()


def test_nobody_called(graded: Graded) -> None:
    assert graded.connections == 0


def test_no_script_reaches_a_page(graded: Graded) -> None:
    for student in ("script_in_text", "script_in_outputs", "script_in_an_error"):
        page = feedback(graded, student)
        assert "<script" not in page
        assert 'href="javascript' not in page
        assert "<img src=x" not in page
        path = file_of(graded.lesson, student, "autograded")
        for cell in nbformat.read(path, as_version=4).cells:
            assert cell.cell_type == "code" or "<script" not in cell.source
            for output in cell.get("outputs", []):
                assert "<script" not in str(output.get("data", {}).get("text/html", ""))
                assert set(output.get("data", {})) <= {"text/plain", "text/html", "image/png"}
