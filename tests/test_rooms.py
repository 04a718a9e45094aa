"""What each room may import, as one table."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from autograde.course import lessons

PACKAGE = Path(__file__).resolve().parent.parent / "autograde"
COURSE = PACKAGE.parent / "attention_course"
BASE = {
    "cards", "course", "course_config", "course_package", "data_files", "files", "grader",
    "installed", "progress", "versions", "words",
}  # fmt: skip
MAY_IMPORT = {
    "values": {"values"},
    "rubric": {"rubric", "values"},
    "notebook": {"notebook", "cards", "files", "installed", "progress", "rubric", "values"},
    "sandbox": {  # the template tries what a lesson uses, and a kernel sees the course's package
        "sandbox",
        "course",
        "course_package",
        "notebook",
        "rubric",
        "values",
    },
    "grading": {"grading", "sandbox", "notebook", "rubric", "values", *BASE},
    "authoring": {"authoring", "grading", "sandbox", "notebook", "rubric", "values", *BASE},
    "lms": {"lms", "grading", *BASE},
    "marking": {"marking", "grading", "rubric", "values", *BASE},
    "report": {"report", "lms", "grading", "rubric", "values", *BASE},
    "workspace": {"workspace", "grading", "sandbox", "rubric", "values", *BASE},
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
    for module in BASE:
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
DISTRIBUTION = re.compile("attention[-_]notebooks")
"""The name that is installed."""


def told_of_the_course(text: str) -> set[str]:
    """The names of this course in a text, and the word that it is about."""
    text = DISTRIBUTION.sub("", text)
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
    assert told_of_the_course("attention_feedback, attention_notebooks") == {"attention_feedback"}


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


def test_a_lesson_that_is_graded_needs_no_widgets() -> None:
    code = "import attention_course"
    assert imported_by(code, "anywidget", "ipywidgets") == ""


def test_the_coordinator_needs_no_torch() -> None:
    code = "import autograde.terminal, autograde.grading.coordinator"
    assert imported_by(code, "torch", "matplotlib") == ""


def test_a_lesson_computes_on_one_thread_until_it_asks_for_more() -> None:
    code = """
import torch
torch.set_num_threads(2)  # as on a machine with two cores
import autograde.notebook
print(torch.get_num_threads())
torch.set_num_threads(3)
import attention_course
print(torch.get_num_threads())
"""
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.split() == ["1", "3"]


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

def recorded(value):
    case = Case("f()", (), Outcome(value=to_plain(value)))
    return Recording("it", (Line("the line", "call", (case,)),))

key = Key("it", 2.0, (), (), recorded({expected}), (1e-6,), (False,))
key = unpack_keys(pack_keys({{"it": key}}))["it"]
for value, points in (({result}, 2), (7, 0)):
    verdict = judge(unpack_recording(pack_recording(recorded(value))), key)
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
from autograde.course import lessons
from autograde.rubric.judge import judge
from autograde.rubric.key import unpack_keys

lesson = lessons(Path({root!r}))[{lesson!r}]
exercise = lesson.exercise({exercise!r})
answers = load(lesson)
key = unpack_keys(lesson.practice_file.read_bytes())[exercise.name]
for wrong in read_variants(lesson, exercise).wrong[:3]:
    recording = answers.with_answer(wrong.code).record(exercise.name, 0)
    assert not judge(recording, key, trusted=True).passed
"""


@pytest.mark.parametrize(
    ("lesson", "exercise"),
    [("08_fast_attention", "tiled_attention"), ("05_causal_attention", "CausalAttention")],
)
def test_a_wrong_answer_is_judged_without_torchs_compiler(lesson: str, exercise: str) -> None:
    """Importing it takes a second and a half, for which a student would wait."""
    code = SOME_RUBRIC.format(root=str(PACKAGE.parent), lesson=lesson, exercise=exercise)
    assert imported_by(code, "sympy", "torch._dynamo") == ""
