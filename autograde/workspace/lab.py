"""JupyterLab on the working copy, opened at the page of lessons."""

import os
import shutil
from pathlib import Path

from autograde.progress import PAGE
from autograde.workspace.project import Project

SETTINGS = Path(__file__).parent / "jupyter"
"""A Jupyter configuration folder: news off, kernels started, Markdown shown as a page.

`startup.py` in it is for kernels, `labextensions/` for the page. Hubs use the folder, too."""


def arguments(project: Project, options: tuple[str, ...]) -> list[str]:
    """Return JupyterLab's arguments: what the lessons need, then the user's own.

    Tabs are kept with the working copy, so that those of other projects do not appear here.
    """
    root = ["--allow-root"] if is_root() else []
    # by default it is a login shell where JupyterLab's own output is no terminal; /etc/profile then
    # sets another path, on which `autograde` is not found
    shell = os.environ.get("SHELL") or shutil.which("sh") or "sh"
    terminal = [f"--ServerApp.terminado_settings={{'shell_command': ['{shell}']}}"]
    return [
        f"--ServerApp.root_dir={project.work}",
        f"--LabApp.default_url=/lab/tree/{PAGE}",
        f"--LabApp.workspaces_dir={project.state / 'workspaces'}",
        "--LabApp.news_url=",
        "--LabApp.extension_manager=readonly",
        *(terminal if os.name != "nt" else []),
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
    os.environ.setdefault("PYTHONSTARTUP", str(SETTINGS / "startup.py"))
    os.chdir(project.work)  # a course's nbgrader_config.py is not for students
    LabApp.launch_instance(arguments(project, options))
