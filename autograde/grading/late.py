"""What lateness costs: nbgrader's plug-in for it, with a share of the score for each day."""

import math

from nbgrader.plugins import LateSubmissionPlugin
from traitlets import Enum, Float

DAY = 24 * 60 * 60


def penalty(score: float, late: float, percent_per_day: float) -> float:
    """What is taken off a score; every day that has begun counts, and no score falls below 0.

    Args:
        late: seconds after the due date, an extension included in that.
    """
    return score * min(1.0, math.ceil(late / DAY) * percent_per_day / 100)


class LatePolicy(LateSubmissionPlugin):
    """Takes nothing off, everything, or a percentage of the score for each day.

    Within the hours of grace nothing is taken off; after them the days count from the due date.
    """

    penalty_method = Enum(
        ("none", "zero", "percent"), default_value="none", help="What lateness costs."
    ).tag(config=True)
    percent_per_day = Float(
        10.0, help="Percent of the score for each day that has begun, with 'percent'."
    ).tag(config=True)
    grace_hours = Float(0.0, help="So many hours late is not late yet.").tag(config=True)

    def late_submission_penalty(
        self, student_id: str, score: float, total_seconds_late: float
    ) -> float | None:
        if self.penalty_method == "none" or total_seconds_late <= self.grace_hours * 3600:
            return None
        if self.penalty_method == "zero":
            return score
        return penalty(score, total_seconds_late, self.percent_per_day)
