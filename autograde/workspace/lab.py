"""JupyterLab on the working copy, opened at the table of lessons."""

import os
from pathlib import Path
from urllib.parse import quote

from autograde.grading.state import write_whole
from autograde.rubric.panel import number
from autograde.workspace.project import Project

TABLE = "Lessons.md"
SETTINGS = Path(__file__).parent / "jupyter"
"""A Jupyter configuration folder: news off, kernels started, Markdown shown as a page."""

PAGE = """\
# Lessons

{rows}

Open a lesson with a click, and run its cells from top to bottom with Shift+Enter. Your work is
saved in this folder; a new version of the project never overwrites it.

In a terminal (File, New, Terminal):

| command | does |
|---|---|
| `autograde progress` | says how far you are |
| `autograde self LESSON/NAME.ipynb` | grades a saved notebook as your teacher's grader would |
| `autograde update` | brings new versions of lessons and keeps what you wrote |
| `autograde submit LESSON` | checks a lesson and packs it to be handed in |
"""


def write_table(project: Project, newer: list[str] | None = None) -> None:
    """Write the table of lessons, which JupyterLab opens first.

    Args:
        newer: the lessons of which there is a newer version than in the working copy.

    Raises:
        CourseError: a lesson cannot be read.
    """
    rows = ["| lesson | exercises | points |", "|---|---|---|"]
    for path, lesson in project.lessons:
        link = quote(f"{lesson.name}/{path.name}")
        tasks = len(lesson.exercises) + len(lesson.written)
        title = lesson.numbered_title.replace("|", "\\|")
        rows.append(f"| [{title}]({link}) | {tasks} | {number(lesson.points)} |")
    if newer:
        rows += ["", f"**There are new versions of {', '.join(newer)}.** To get them, see below."]
    write_whole(project.work / TABLE, PAGE.format(rows="\n".join(rows)).encode())


def arguments(project: Project, options: tuple[str, ...]) -> list[str]:
    """Return JupyterLab's arguments: what the lessons need, then the user's own.

    Tabs are kept with the working copy, so that those of other projects do not appear here.
    """
    root = ["--allow-root"] if is_root() else []
    return [
        f"--ServerApp.root_dir={project.work}",
        f"--LabApp.default_url=/lab/tree/{TABLE}",
        f"--LabApp.workspaces_dir={project.state / 'workspaces'}",
        "--LabApp.news_url=",
        "--LabApp.extension_manager=readonly",
        *root,
        *options,
    ]


def is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def open_lab(project: Project, options: tuple[str, ...]) -> None:
    """Run JupyterLab in this process until it is stopped."""
    from jupyterlab.labapp import LabApp

    paths = [str(SETTINGS), *filter(None, [os.environ.get("JUPYTER_CONFIG_PATH")])]
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(paths)
    os.chdir(project.work)  # a course's nbgrader_config.py is not for students
    LabApp.launch_instance(arguments(project, options))
