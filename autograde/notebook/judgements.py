"""The judgements of this kernel's rubrics on its answers."""

from dataclasses import dataclass

from autograde.rubric import runs
from autograde.rubric.judge import Verdict
from autograde.rubric.recording import Recording


@dataclass(frozen=True)
class Judgement:
    """A verdict, the recording that it judges, and the answer's cell as it was run."""

    verdict: Verdict
    recording: Recording
    source: str


last: dict[str, Judgement] = {}
"""The last judgement on each exercise in this kernel, the newest last."""
refused: set[str] = set()
"""The exercise whose rubric ran last, if it refused to judge because the answer's cell had failed.

Then `why()` and `case()` are about that, not about an older judgement.
"""


def wrong() -> set[str]:
    """Return the exercises whose answers, as they are now, were judged and are not right."""
    return {name for name, each in last.items() if not each.verdict.passed and is_as_judged(name)}


def is_as_judged(exercise: str) -> bool:
    """Return whether an answer's cell is still the one that its rubric judged."""
    run = runs.last_run_of(exercise)
    return run is None or run.source == last[exercise].source


def counts(verdict: Verdict) -> bool:
    """Return False where a rubric found no answer, as in a new kernel: what was earned stays."""
    return verdict.called or not verdict.note or not verdict.attempted
