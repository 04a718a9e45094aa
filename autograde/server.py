"""A Jupyter server in this process."""

import os
from collections.abc import Iterable
from pathlib import Path

from jupyter_core.application import JupyterApp


def is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def add_settings(folder: Path) -> None:
    """Let Jupyter read a folder of configuration, too, before the user's own."""
    paths = [str(folder), *filter(None, [os.environ.get("JUPYTER_CONFIG_PATH")])]
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(paths)


def run(app: type[JupyterApp], folder: Path, arguments: Iterable[str]) -> None:
    """Run a Jupyter application in a folder until it is stopped.

    It serves the folder. nbgrader reads its configuration in the folder that a process is in.
    """
    os.chdir(folder)
    as_root = ["--allow-root"] if is_root() else []
    app.launch_instance([f"--ServerApp.root_dir={folder}", *as_root, *arguments])
