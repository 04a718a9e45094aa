"""Import what every worker needs, once: in the process that forks them, or in a Dask worker.

In the former that is the course's package too, by the name in its environment.
"""

import importlib
import os
from contextlib import suppress

from autograde.course.lessons import CourseError
from autograde.course.package import bring_in
from autograde.sandbox.imports import many_imports

with many_imports():
    for _name in ("autograde.grading.pipeline", "autograde.notebook", "jupytext"):
        importlib.import_module(_name)
    with suppress(CourseError):  # the first job says so
        bring_in(os.environ.get("AUTOGRADE_PACKAGE", ""))
