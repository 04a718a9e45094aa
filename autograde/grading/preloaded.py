"""What every worker needs, imported in one process that forks them all (see workers.py).

Nothing of it is garbage. Looking for some takes a quarter of the time, so collection is off here,
and after the imports they are left alone for good: https://docs.python.org/3/library/gc.html#gc.freeze
"""

import gc
import importlib

from autograde.sandbox import control_groups

control_groups.places()  # starts a process, which takes longer the larger this one is
gc.disable()
for _name in ("autograde.grading.pipeline", "autograde.notebook", "jupytext"):
    importlib.import_module(_name)
gc.freeze()
