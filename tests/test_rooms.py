"""What each room may import, as one table."""

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from autograde.course.lessons import lessons

PACKAGE = Path(__file__).resolve().parent.parent / "autograde"
COURSE = PACKAGE.parent / "attention_course"
BASE = {
    "cards",
    "course",
    "files",
    "grader",
    "installed",
    "nbgrader_settings",
    "progress",
    "server",
    "student_text",
}
"""Modules of the top, and the course's folder: what most rooms may import."""
MAY_IMPORT = {
    "values": {"values"},
    "rubric": {"rubric", "values"},
    "course": {"rubric", "values", *BASE},
    "notebook": {"notebook", "cards", "files", "installed", "progress", "rubric", "values"},
    "sandbox": {  # the template tries what a lesson uses, and a kernel sees the course's package
        "sandbox",
        "course",
        "files",
        "installed",
        "notebook",
        "rubric",
        "values",
    },
    "grading": {"grading", "sandbox", "notebook", "rubric", "values", *BASE},
    "authoring": {"authoring", "grading", "sandbox", "notebook", "rubric", "values", *BASE},
    "lms": {"lms", "grading", *BASE},
    "marking": {"marking", "grading", "rubric", "values", *BASE},
    "report": {"report", "lms", "grading", "rubric", "values", *BASE},
    "workspace": {"workspace", "grading", "rubric", "values", *BASE},
    "commands": {
        "commands",
        "authoring",
        "grading",
        "lms",
        "marking",
        "report",
        "workspace",
        "values",
        *BASE,
    },
}


def imported_modules(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from names


def imported_rooms(path: Path) -> Iterator[str]:
    for name in imported_modules(path):
        if name.startswith("autograde.") and not name.startswith("autograde.__"):
            yield name.split(".")[1]


def test_no_room_imports_one_that_imports_it() -> None:
    rooms = list(MAY_IMPORT)
    for number, room in enumerate(rooms):
        assert MAY_IMPORT[room] <= {*rooms[: number + 1], *BASE}
    for module in BASE - {"course", "nbgrader_settings"}:  # the latter names steps of every room
        assert set(imported_rooms(PACKAGE / f"{module}.py")) <= {"rubric", "values", *BASE}


def test_every_room_has_a_row() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    assert rooms == set(MAY_IMPORT)


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_room_imports_only_what_it_may(room: str) -> None:
    files = list((PACKAGE / room).rglob("*.py"))
    assert len(files) > 1
    for path in files:
        assert set(imported_rooms(path)) <= MAY_IMPORT[room], path


def test_the_grader_knows_nothing_of_the_course() -> None:
    for path in PACKAGE.rglob("*.py"):
        packages = {name.split(".")[0] for name in imported_modules(path)}
        assert COURSE.name not in packages, path


@cache
def names_of_the_course() -> set[str]:
    """Its package, lessons and exercises, and its own classes."""
    known = {COURSE.name}
    for lesson in lessons(PACKAGE.parent).values():
        known |= {lesson.name, lesson.notebook, *lesson.worth}
    for path in COURSE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        known |= {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    return known


WORDS = {
    "Answer", "Attention", "Cache", "Change", "Convolution", "Heatmap", "Link", "Mixed", "Notes",
    "Panels", "Quiet", "Reader", "Reading", "Recurrent", "Rubric", "Story", "Word", "dropout",
    "generate", "merge", "sample", "train",
}  # fmt: skip
"""Names that are English or torch's as well, and say nothing of this course."""


def told_of_the_course(text: str) -> set[str]:
    """The names of this course in a text, and the word that it is about."""
    found = (names_of_the_course() - WORDS) & set(re.findall(r"\w+", text))
    return found | set(re.findall(r"\w*attention\w*", text, re.IGNORECASE))


def test_the_grader_names_nothing_of_the_course() -> None:
    kinds = {".py", ".j2", ".js", ".json", ".md", ".css"}
    files = [path for path in PACKAGE.rglob("*") if path.suffix in kinds]
    assert len(files) > 100
    assert {path: found for path in files if (found := told_of_the_course(path.read_text()))} == {}
    named = [path for path in PACKAGE.rglob("*") if told_of_the_course(path.name)]
    assert named == []


def test_a_name_of_the_course_is_seen() -> None:
    assert told_of_the_course("r.call(causal_mask) # TinyGPT") == {"causal_mask", "TinyGPT"}
    assert told_of_the_course("attention_feedback, a distribution") == {"attention_feedback"}


def test_no_two_modules_have_one_name() -> None:
    both = [path for house in (PACKAGE, COURSE) for path in house.rglob("[!_]*.py")]
    count = Counter(path.stem for path in both if path.parent.name != "jupyter")
    assert [name for name, number in count.items() if number > 1] == []


def test_the_course_imports_only_what_a_lesson_may() -> None:
    files = list(COURSE.rglob("*.py"))
    assert len(files) > 1
    for path in files:
        assert set(imported_rooms(path)) <= {"notebook", "rubric", "values"}, path


def imported_by(code: str, *names: str) -> str:
    """Which of these modules a program has imported by its end."""
    code += f"\nimport sys; print(*{set(names)} & set(sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return said.stdout.strip()


def test_the_students_copy_needs_no_gradebook() -> None:
    names = [path.stem for path in (PACKAGE / "workspace").glob("[!_]*.py")]
    code = "; ".join(f"import autograde.workspace.{name}" for name in names)
    assert imported_by(code, "nbgrader", "sqlalchemy") == ""


A_LESSON = """
import torch
torch.set_num_threads(2)  # as on a machine with two cores
import autograde.notebook
print(torch.get_num_threads())
torch.set_num_threads(3)
import attention_course
print(torch.get_num_threads())
"""


@cache
def said_of_a_lesson() -> list[str]:
    """On how many threads a lesson computes, and once it asks for three; the widgets it imports."""
    return imported_by(A_LESSON, "anywidget", "ipywidgets").split()


def test_a_lesson_that_is_graded_needs_no_widgets() -> None:
    assert said_of_a_lesson()[2:] == []


def test_the_coordinator_needs_no_torch() -> None:
    code = "import autograde.commands.terminal, autograde.grading.coordinator"
    assert imported_by(code, "torch", "matplotlib") == ""


WITH_TORCH = {
    "rubric/probes/layers.py",
    "rubric/probes/torch_functions.py",
    "rubric/probes/weights.py",
    "values/tensors.py",
}
"""The modules that import torch at their top. Others import it, and them, in functions alone."""


def imported_at_the_top(path: Path) -> Iterator[str]:
    """The modules that importing this one imports, without what only type checkers read."""
    waiting: list[ast.AST] = [*ast.parse(path.read_text(encoding="utf-8")).body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        waiting += ast.iter_child_nodes(node)


def test_few_modules_import_torch_and_others_import_them_in_functions_alone() -> None:
    names = {"autograde." + path.removesuffix(".py").replace("/", ".") for path in WITH_TORCH}
    found = set()
    for path in PACKAGE.rglob("*.py"):
        modules = set(imported_at_the_top(path))
        home = path.relative_to(PACKAGE).as_posix()
        if any(name.partition(".")[0] == "torch" for name in modules):
            found.add(home)
        if home not in WITH_TORCH:
            reached = {name for name in names for each in modules if f"{each}.".startswith(name)}
            assert reached == set(), path
    assert found == WITH_TORCH


def test_the_other_modules_import_nothing_that_a_course_may_lack() -> None:
    unfit = {"jupyter", "pages", "inside"}  # configurations, and programs behind the wall
    names = [
        f"autograde.{path.relative_to(PACKAGE).with_suffix('').as_posix().replace('/', '.')}"
        for path in PACKAGE.rglob("[!_]*.py")
        if path.relative_to(PACKAGE).as_posix() not in WITH_TORCH and path.parent.name not in unfit
    ]
    names += [f"autograde.sandbox.inside.{name}" for name in ("kernel", "template_server", "warm")]
    assert len(names) > 100
    assert imported_by("import " + ", ".join(names), "torch") == ""


def test_a_kernel_of_a_course_without_torch_is_prepared_without_it() -> None:
    code = """
from autograde.sandbox.inside import warm
warm.import_late()
warm.import_lesson("")
warm.try_the_rest()
"""
    assert imported_by(code, "torch") == ""


def test_a_lesson_computes_on_one_thread_until_it_asks_for_more() -> None:
    assert said_of_a_lesson()[:2] == ["1", "3"]


def test_torch_that_is_imported_after_the_grader_computes_on_one_thread_too() -> None:
    code = "import autograde.notebook, torch; print(torch.get_num_threads())"
    env = {**os.environ, "OMP_NUM_THREADS": "2"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    assert done.stdout.split() == ["1"]


VALUES = {
    "nothing": ("{'a': 1.5, 'b': {1, (2, 'x')}}", "{'b': {1, (2, 'x')}, 'a': 1.5}"),
    "numpy": ("np.ones(2)", "np.ones(2)"),
    "torch numpy": ("torch.ones(2)", "torch.ones(2)"),
}
"""A right result in a fresh process, and all of torch, NumPy and pandas that it may import."""
JUDGE = """
if {libraries!r} != "nothing":
    for name in {libraries!r}.split():
        globals()[{{"numpy": "np"}}.get(name, name)] = __import__(name)
from autograde.rubric.judge import judge
from autograde.rubric.key import Key, pack_keys, unpack_keys
from autograde.rubric.panel import to_display
from autograde.rubric.recording import *
from autograde.values.dispatch import to_plain
from autograde.values.packing import pack

def recorded(value):
    case = Case("f()", (), Outcome(value=to_plain(value)))
    return Recording("it", (Line("the line", "call", (case,)),))

key = Key("it", 2.0, (), (), recorded({expected}), (1e-6,), (False,))
key = unpack_keys(pack_keys({{"it": key}}))["it"]
for value, points in (({result}, 2), (7, 0)):
    verdict = judge(unpack_recording(pack(recorded(value))), key)
    assert verdict.points == points
    assert to_display(verdict, [])
"""


@pytest.mark.parametrize("libraries", VALUES)
def test_values_are_packed_judged_and_shown_with_no_other_library_than_their_own(
    libraries: str,
) -> None:
    result, expected = VALUES[libraries]
    code = JUDGE.format(libraries=libraries, result=result, expected=expected)
    found = set(imported_by(code, "torch", "numpy", "pandas").split())
    assert found == set(libraries.split()) - {"nothing"}


SOME_RUBRIC = """
from pathlib import Path
from autograde.grading.running.reference import load
from autograde.authoring.variants import read_variants
from autograde.course.lessons import lessons
from autograde.rubric.judge import judge
from autograde.rubric.key import unpack_keys
from autograde.rubric.session import PRACTICE_SEED

for name, exercise in {named!r}.items():
    lesson = lessons(Path({root!r}))[name]
    exercise = lesson.exercise(exercise)
    answers = load(lesson)
    key = unpack_keys(lesson.practice_file.read_bytes())[exercise.name]
    for wrong in read_variants(lesson, exercise).wrong[:3]:
        recording = answers.with_answer(wrong.code).record(exercise.name, PRACTICE_SEED)
        assert not judge(recording, key, trusted=True).passed
"""


def test_a_wrong_answer_is_judged_without_torchs_compiler() -> None:
    """Importing it takes a second and a half, for which a student would wait."""
    named = {"08_fast_attention": "tiled_attention", "05_causal_attention": "CausalAttention"}
    code = SOME_RUBRIC.format(root=str(PACKAGE.parent), named=named)
    assert imported_by(code, "sympy", "torch._dynamo") == ""
