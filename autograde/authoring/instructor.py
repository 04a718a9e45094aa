"""JupyterLab on a course, opened at Formgrader."""

import os
import shutil
from pathlib import Path

from autograde.authoring.sources import sync
from autograde.course import Lesson, state_folder

SETTINGS = Path(__file__).parent / "jupyter"
"""A Jupyter configuration folder: the marking page, kernels started. Hubs use it, too."""
WORKSPACE = "/lab/workspaces/instructor"
"""The address at which Formgrader stands in a tab."""


def arguments(root: Path) -> list[str]:
    """Return JupyterLab's arguments. JupyterLab writes its tabs where it reads them: to a copy."""
    workspaces = state_folder(root) / "workspaces"
    shutil.copytree(SETTINGS / workspaces.name, workspaces, dirs_exist_ok=True)
    return [
        f"--ServerApp.root_dir={root}",
        f"--LabApp.default_url={WORKSPACE}",
        f"--LabApp.workspaces_dir={workspaces}",
    ]


def open_lab(lessons: list[Lesson], options: tuple[str, ...]) -> None:
    """Run JupyterLab on a course in this process until it is stopped.

    Raises:
        CourseError: a lesson's notebook has changes that its text lacks.
    """
    from jupyterlab.labapp import LabApp

    for lesson in lessons:
        sync(lesson)
    root = lessons[0].root
    paths = [str(SETTINGS), *filter(None, [os.environ.get("JUPYTER_CONFIG_PATH")])]
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(paths)
    os.chdir(root)  # nbgrader reads its configuration there
    as_root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    LabApp.launch_instance([*arguments(root), *as_root, *options])
