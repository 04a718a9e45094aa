"""JupyterLab on a course, opened at Formgrader."""

import shutil
from pathlib import Path

from autograde import server
from autograde.course.lessons import state_folder

SETTINGS = Path(__file__).parent / "jupyter"
"""A Jupyter configuration folder: the marking page, kernels started. Hubs use it, too."""
WORKSPACE = "/lab/workspaces/instructor"
"""The address at which Formgrader stands in a tab."""


def open_lab(root: Path, options: tuple[str, ...]) -> None:
    """Run JupyterLab on a course in this process until it is stopped."""
    from jupyterlab.labapp import LabApp

    workspaces = state_folder(root) / "workspaces"  # a copy: JupyterLab writes its tabs there
    shutil.copytree(SETTINGS / workspaces.name, workspaces, dirs_exist_ok=True)
    server.add_settings(SETTINGS)
    opened = [f"--LabApp.default_url={WORKSPACE}", f"--LabApp.workspaces_dir={workspaces}"]
    server.run(LabApp, root, [*opened, *options])
