"""Import what every worker needs, once: in the process that forks them, or in a Dask worker."""

import gc
import importlib

from autograde.sandbox import control_groups

control_groups.places()  # starts a shell, which is slower once imports have made this process large
for _name in ("autograde.grading.pipeline", "autograde.notebook", "jupytext"):
    importlib.import_module(_name)
gc.freeze()  # what is here now stays shared with the workers
