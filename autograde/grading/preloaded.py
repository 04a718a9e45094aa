"""Import what every worker needs, once: in the process that forks them, or in a Dask worker."""

import importlib

from autograde.sandbox.imports import many_imports

with many_imports():
    for _name in ("autograde.grading.pipeline", "autograde.notebook", "jupytext"):
        importlib.import_module(_name)
