"""What several tests share: a lesson, a course, a way to run commands and rubric cells."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from autograde.authoring.build import build
from autograde.authoring.new import new
from autograde.cli import main
from autograde.course import CURRICULUM, Lesson, lessons
from autograde.rubric import session
from autograde.rubric.key import Key, Mistake
from autograde.rubric.kinds import KINDS
from autograde.rubric.misconceptions import failed_lines
from autograde.rubric.probes.plain import tensors_in
from autograde.rubric.recording import (
    Line,
    Recording,
    pack_recordings,
    unpack_recordings,
)

HERE = Path(__file__).resolve().parent.parent

Rubric = Callable[[Callable[..., object]], None]
"""A rubric cell as a function: it opens `rubric("it")` and tries an answer."""


def run(folder: Path, *arguments: str) -> Result:
    """Run an `autograde` command in a folder."""
    with chdir(folder):
        return CliRunner().invoke(main, arguments)


LONGEST = (
    "browser/test_hub", "browser/test_story", "tests/test_class", "tests/test_attacks",
    "tests/test_running", "browser/test_authoring", "tests/test_versions", "browser/test_lessons",
    "tests/test_wall",
    "browser/test_formgrader", "tests/test_opened_alone", "tests/test_build", "tests/test_lesson",
    "tests/test_by_name", "tests/test_written", "browser/test_markup", "browser/test_marks",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first: one begun last would keep a worker busy beside an idle one."""

    def place(item: pytest.Item) -> int:
        file = f"{item.path.parent.name}/{item.path.stem}"
        return LONGEST.index(file) if file in LONGEST else len(LONGEST)

    items.sort(key=place)


@pytest.fixture(scope="session")
def lesson() -> Lesson:
    return lessons(HERE)["01_self_attention"]


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A copy of this course, built, with nobody in it."""
    from classes import copy_course

    copy_course(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def new_lesson(tmp_path_factory: pytest.TempPathFactory) -> Lesson:
    """The only lesson of a course, as `autograde new` writes it, built."""
    root = tmp_path_factory.mktemp("new")
    (root / "source").mkdir()
    (root / CURRICULUM).touch()
    shutil.copy(HERE / "nbgrader_config.py", root)
    lesson = new(root, "07_my_lesson")
    build(lesson)  # so that the copies have a gradebook, which takes longest to make
    return lesson


@pytest.fixture
def mine(new_lesson: Lesson, tmp_path: Path) -> Lesson:
    """A copy of it to make mistakes in."""
    shutil.copytree(new_lesson.root, tmp_path / "course")
    return lessons(tmp_path / "course")[new_lesson.name]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lessons' site, as `make site` makes it."""
    target = tmp_path_factory.mktemp("site") / "site"
    subprocess.run([sys.executable, "-m", "autograde.authoring.site", target], cwd=HERE, check=True)
    return target


@pytest.fixture(scope="session")
def small_class(tmp_path_factory: pytest.TempPathFactory) -> Lesson:
    """Lesson 02 with a few students, graded once; who changes something takes a copy."""
    from small_class import make_small_class

    return make_small_class(tmp_path_factory.mktemp("small"))


@pytest.fixture
def shell() -> Iterator[None]:
    """A process without front end or kernel in which displays can be captured."""
    config = Config()
    config.HistoryManager.enabled = False
    InteractiveShell.instance(config=config)
    yield
    InteractiveShell.clear_instance()


def record(rubric_cell: Rubric, answer: Callable[..., object], seed: int = 3) -> Recording:
    """Return what a rubric cell records of an answer, after a trip through bytes."""
    with session.recording(seed) as recordings:
        rubric_cell(answer)
    (recording,) = unpack_recordings(pack_recordings([recordings["it"]]))
    return recording


def make_key(
    rubric_cell: Rubric,
    reference: Callable[..., object],
    wrong: dict[str, Callable[..., object]] | None = None,
    tolerance: float = 1e-5,
    seed: int = 3,
) -> Key:
    """Return a key made from a reference and known wrong answers."""
    expected = record(rubric_cell, reference, seed)
    kinds = [KINDS[line.kind] for line in expected.lines]
    key = Key(
        exercise="it",
        points=4.0,
        needs=(),
        hints=("look", "look again"),
        expected=expected,
        tolerances=tuple(
            _tolerance(line, tolerance) if kind.tolerance is None else kind.tolerance
            for kind, line in zip(kinds, expected.lines, strict=True)
        ),
        claims=tuple(
            kind.claims(line.cases) for kind, line in zip(kinds, expected.lines, strict=True)
        ),
    )
    mistakes = tuple(
        Mistake(
            name,
            f"{name} is right.",
            "Think.",
            failed_lines(record(rubric_cell, answer, seed), key),
        )
        for name, answer in (wrong or {}).items()
    )
    return replace(key, mistakes=mistakes)


def _tolerance(line: Line, tolerance: float) -> float:
    """Return a line's tolerance: a narrow one for results in float64."""
    found = [t for case in line.cases for t in tensors_in(case.outcome.value)]
    return 1e-10 if found and all(t.dtype == torch.float64 for t in found) else tolerance
