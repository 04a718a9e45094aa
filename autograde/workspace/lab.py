"""JupyterLab on the working copy, opened at the page of lessons."""

import os
import shutil
from pathlib import Path

from autograde import server
from autograde.progress import PAGE
from autograde.workspace.project import Project

SETTINGS = Path(__file__).parent / "jupyter"
"""A Jupyter configuration folder: news off, kernels started, Markdown shown as a page.

`startup.py` in it is for kernels, `labextensions/` for the page. Hubs use the folder, too."""


def arguments(project: Project) -> list[str]:
    """Return what the lessons need of JupyterLab.

    Tabs are kept with the working copy, so that those of other projects do not appear here.
    """
    # by default it is a login shell where JupyterLab's own output is no terminal; /etc/profile then
    # sets another path, on which `autograde` is not found
    shell = os.environ.get("SHELL") or shutil.which("sh") or "sh"
    terminal = [f"--ServerApp.terminado_settings={{'shell_command': ['{shell}']}}"]
    return [
        f"--LabApp.default_url=/lab/tree/{PAGE}",
        f"--LabApp.workspaces_dir={project.state / 'workspaces'}",
        "--LabApp.news_url=",
        "--LabApp.extension_manager=readonly",
        *(terminal if os.name != "nt" else []),
    ]


def open_lab(project: Project, options: tuple[str, ...]) -> None:
    """Run JupyterLab in this process until it is stopped."""
    from jupyterlab.labapp import LabApp

    server.add_settings(SETTINGS)
    os.environ.setdefault("PYTHONSTARTUP", str(SETTINGS / "startup.py"))
    server.run(LabApp, project.work, [*arguments(project), *options])
