"""The `autograde` command, but cells that never end or never answer have a shorter limit.

    python tests/impatient.py grade LESSON

Its worker processes import this file as well, which is where a notebook runs.
"""

import re
from dataclasses import replace

CELL_SECONDS = 5
SILENT = re.compile(r"while True:\s+(pass|os\.fork\(\))|builtins\.isinstance = |\\ud800")


def impatient(job, look):
    if not any(SILENT.search(code) for _, code in job.cells):
        return run_job(job, look)
    limits = replace(job.limits, cell_seconds=CELL_SECONDS)
    return replace(run_job(replace(job, limits=limits), look), key=job.key)


if __name__ == "__main__":
    from autograde.cli import main

    main()
else:
    from autograde.grading import pipeline

    run_job = pipeline.run_job
    pipeline.run_job = impatient
