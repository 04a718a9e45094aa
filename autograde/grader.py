"""Which grader this is: digests of its own files, and of the files of the course's package.

Its version number stays the same for months. What its files say does not.
"""

from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from pathlib import Path, PurePosixPath

from autograde import __version__
from autograde.course.package import files_of, folder_of

SUFFIXES = {".json", ".j2", ".md", ".py", ".safetensors"}

RUNS, JUDGES, SHOWS = "runs", "judges", "shows"
PARTS = {
    "cards.py": RUNS,
    "course/data_files.py": RUNS,
    "course/package.py": RUNS,
    "files.py": RUNS,
    "installed.py": RUNS,
    "notebook": RUNS,
    "progress.py": RUNS,
    "rubric": RUNS,
    "sandbox": RUNS,
    "values": RUNS,
    "grading/running/job.py": RUNS,
    "grading/running/notebook_client.py": RUNS,
    "grading/running/outputs.py": RUNS,
    "grading/running/run.py": RUNS,
    "course": JUDGES,
    "grading": JUDGES,
    "rubric/checks.py": JUDGES,
    "rubric/judge.py": JUDGES,
    "rubric/key.py": JUDGES,
    "rubric/kinds.py": JUDGES,
    "rubric/misconceptions.py": JUDGES,
    "rubric/panel.py": JUDGES,
    "rubric/slips.py": JUDGES,
    "values/differences.py": JUDGES,
    "values/frame_tables.py": JUDGES,
    "values/layout.py": JUDGES,
    "student_text.py": JUDGES,
    "grading/feedback.py": SHOWS,
    "grading/templates": SHOWS,
}
"""The part that files and folders take; the longest path that fits counts, others take no part."""


@dataclass(frozen=True)
class Grader:
    """Digests of the files that run answers and record them, that judge, and that make pages."""

    runs: str = ""
    judges: str = ""
    shows: str = ""

    @property
    def name(self) -> str:
        """The version, and a number that differs as soon as a file does that decides scores."""
        return f"{__version__}+{sha256(f'{self.runs} {self.judges}'.encode()).hexdigest()[:12]}"


def part_of(path: str) -> str:
    """Return what a file of the package takes part in; "" if in nothing that decides a grade."""
    around = map(str, (PurePosixPath(path), *PurePosixPath(path).parents))
    return next((PARTS[each] for each in around if each in PARTS), "")


def read_grader(package: Path) -> Grader:
    digests = {part: sha256() for part in (RUNS, JUDGES, SHOWS)}
    for file in sorted(package.rglob("*")):
        path = file.relative_to(package).as_posix()
        part = part_of(path)
        if part and file.suffix in SUFFIXES and "/." not in f"/{path}" and file.is_file():
            digests[part].update(f"{path}\0{sha256(file.read_bytes()).hexdigest()}\0".encode())
    return Grader(**{part: digest.hexdigest() for part, digest in digests.items()})


GRADER = read_grader(Path(__file__).parent)
"""The one that is running, without a course's package.

It is read at once: files that change later are not what this process has imported.
"""


@cache
def grader_of(package: str) -> Grader:
    """Return the one that is running with the package of a course.

    All of a package runs in kernels, so a change of any of it makes another grader.
    """
    if not package:
        return GRADER
    return replace(GRADER, runs=sha256(f"{GRADER.runs} {digest_of(package)}".encode()).hexdigest())


@cache
def digest_of(package: str) -> str:
    """Return a digest of all files of a course's package, its data too; "" without one."""
    digest, folder = sha256(), folder_of(package) if package else Path()
    for file in files_of(package):
        path, content = file.relative_to(folder).as_posix(), file.read_bytes()
        digest.update(f"{path}\0{sha256(content).hexdigest()}\0".encode())
    return digest.hexdigest() if package else ""
