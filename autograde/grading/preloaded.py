"""Import what every worker needs, once: in the process that forks them, or in a Dask worker."""

import importlib

from autograde.sandbox import control_groups
from autograde.sandbox.imports import many_imports

control_groups.places()  # starts a shell, which is slower once imports have made this process large
with many_imports():
    for _name in ("autograde.grading.pipeline", "autograde.notebook", "jupytext"):
        importlib.import_module(_name)
