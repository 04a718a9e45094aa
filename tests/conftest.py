"""What several tests share: a lesson, a course, a way to run commands and rubric cells."""

import ast
import os
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import chdir
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import once
import pytest
import torch
from click.testing import CliRunner, Result
from IPython.core.interactiveshell import InteractiveShell
from nbclient import NotebookClient
from nbgrader import api
from traitlets.config import Config

from autograde.cli import main
from autograde.course.lessons import CURRICULUM, Lesson, lessons
from autograde.grading.running.reference import as_kept
from autograde.notebook.explaining import is_demonstration
from autograde.rubric import session
from autograde.rubric.key import Key, Mistake
from autograde.rubric.kinds import KINDS
from autograde.rubric.misconceptions import failed_lines
from autograde.rubric.names import names_of
from autograde.rubric.probes.calls import tensors_in
from autograde.rubric.probes.lines import rubric
from autograde.rubric.recording import Line, Recording, unpack_recording
from autograde.values.packing import pack

HERE = Path(__file__).resolve().parent.parent
NEW = "07_my_lesson"
NOT_COMPARED = "nbval-ignore-output"
"""nbval's tag for a cell whose output may differ from machine to machine."""

Rubric = Callable[[Any], None]
"""A rubric cell as a function: it opens `rubric("it")` and tries an answer."""


def as_cell(lines: Callable[[Any, Any], None]) -> Rubric:
    """Make a rubric cell of a function that asks these lines of an answer."""
    return lambda answer: rubric("it")(lambda r: lines(r, answer))


def run(folder: Path, *arguments: str, **options: str) -> Result:
    """Run an `autograde` command in a folder; `input` is what is typed there."""
    with chdir(folder):
        return CliRunner().invoke(main, arguments, **options)


def program(*command: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a program, looked for beside this Python first."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, env={**os.environ, "PATH": path, **env}
    )


TOOK = "seconds/files"
"""Where pytest's cache keeps how long each file of tests took."""
seconds: Counter[str] = Counter()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    seconds[report.nodeid.partition("::")[0]] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep what each file took, at most, for the order of the next run."""
    if (cache := getattr(session.config, "cache", None)) and not hasattr(
        session.config, "workerinput"
    ):
        before = cache.get(TOOK, {})
        cache.set(TOOK, {**before, **{k: max(v, before.get(k, 0)) for k, v in seconds.items()}})


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the longest files first: one begun last would keep a worker busy beside an idle one."""
    cache = getattr(config, "cache", None)
    took = cache.get(TOOK, {}) if cache else {}
    idle = idle_demonstrations(items)
    config.hook.pytest_deselected(items=idle)
    items[:] = sorted(
        (item for item in items if item not in idle),
        key=lambda item: -took.get(item.nodeid.partition("::")[0], 0),
    )


def idle_demonstrations(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the demonstrations whose output nbval does not compare; running them takes minutes.

    Where a later cell uses what one defines, its definitions alone are run. `autograde build`
    runs all of a lesson's and refuses errors.
    """
    found: list[pytest.Item] = []
    needed: dict[Path, set[str]] = defaultdict(set)  # by what runs later in a notebook
    for item in reversed(items):
        cell = getattr(item, "cell", None)
        if cell is None:
            continue
        names, later = names_of(cell.source), needed[item.path]
        if is_demonstration(cell.source) and NOT_COMPARED in cell.metadata.get("tags", []):
            if not names.bound & later:
                found.append(item)
                continue
            definitions = definitions_in(cell.source)
            if names.bound & later <= names_of(definitions).bound:
                cell.source, names = definitions, names_of(definitions)
        needed[item.path] = later - names.bound | names.needed
    return found


def definitions_in(code: str) -> str:
    """Return the functions, classes and imports of a cell, without what computes something."""
    kinds = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
    return "\n".join(ast.unparse(part) for part in ast.parse(code).body if isinstance(part, kinds))


# nbgrader asks the program `alembic` for each gradebook that it makes, which takes two seconds.
api.get_alembic_version = cache(api.get_alembic_version)


@pytest.fixture(scope="session", autouse=True)
def _one_folder_for_all_workers(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> None:
    own = tmp_path_factory.getbasetemp()
    once.shared_folder = own if worker_id == "master" else own.parent


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
def new_lesson() -> Lesson:
    """The only lesson of a course, as `autograde new` writes it, built."""
    root = once.made("new", make_new_lesson)
    return lessons(root)[NEW]


def make_new_lesson(root: Path) -> None:
    (root / "source").mkdir()
    with_torch = '[course]\ntitle = "New"\npackage = "attention_course"\n'
    (root / CURRICULUM).write_text(with_torch)
    shutil.copy(HERE / "nbgrader_config.py", root)
    result = run(root, "new", NEW)
    assert result.exit_code == 0, result.output
    assert f"Next: autograde build {NEW}" in result.output
    entry = (root / CURRICULUM).read_text().removeprefix(with_torch)
    (root / CURRICULUM).write_text(entry)  # the package was named for its requirements
    result = run(root, "build", NEW)  # with the gradebook, which takes longest to make
    assert result.exit_code == 0, result.output


@pytest.fixture
def mine(new_lesson: Lesson, tmp_path: Path) -> Lesson:
    """A copy of it to make mistakes in."""
    shutil.copytree(new_lesson.root, tmp_path / "course")
    return lessons(tmp_path / "course")[new_lesson.name]


@pytest.fixture
def run_before(mine: Lesson, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever builds this lesson again need not run it again: its cells show what they showed."""
    built = nbformat.read(mine.solution_notebook, as_version=4)
    shown = {cell.id: cell for cell in built.cells if cell.cell_type == "code"}

    def execute(client: NotebookClient, **_: object) -> None:
        for cell in client.nb.cells:
            if cell.cell_type == "code":
                before = shown[cell.id]
                assert cell.source == before.source
                cell.outputs, cell.execution_count = before.outputs, before.execution_count

    monkeypatch.setattr(NotebookClient, "execute", execute)


@pytest.fixture(scope="session")
def site() -> Path:
    """The lessons' site, as `make site` makes it."""
    return once.made("site", make_site) / "site"


def make_site(folder: Path) -> None:
    command = [sys.executable, "-m", "autograde.cli", "site", folder / "site"]
    subprocess.run(command, cwd=HERE, check=True)


@pytest.fixture(scope="session")
def small_class(tmp_path_factory: pytest.TempPathFactory) -> Lesson:
    """Lesson 02 with a few students, graded once."""
    from small_class import LESSON, make_small_class

    root = tmp_path_factory.mktemp("small") / "course"  # reports are written into it
    shutil.copytree(once.made("small", make_small_class), root)
    return lessons(root)[LESSON]


@pytest.fixture
def own_class(small_class: Lesson, tmp_path: Path) -> Lesson:
    """A copy of it to change."""
    shutil.copytree(small_class.root, tmp_path / "course")
    return replace(small_class, root=tmp_path / "course")


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
    recording = unpack_recording(pack(recordings["it"]))
    return recording


def make_key(
    rubric_cell: Rubric,
    reference: Callable[..., object],
    wrong: dict[str, Callable[..., object]] | None = None,
    tolerance: float = 1e-5,
    seed: int = 3,
) -> Key:
    """Return a key made from a reference and known wrong answers."""
    recorded = record(rubric_cell, reference, seed)
    expected = replace(recorded, lines=tuple(map(as_kept, recorded.lines)))
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
        claims=tuple(kind.claim for kind in kinds),
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
