"""nbgrader on this course: its commands, Formgrader and Validate, with the judge behind them."""

from autograde.nbgrader_settings import configure

c = get_config()  # noqa: F821 (nbgrader defines it)
configure(c, __file__)
c.CourseDirectory.course_id = "attention"

# Lateness costs nothing unless you say so: "none", "zero" (no points left), or "percent" of the
# score for each day that has begun. Within the grace period nothing is taken off.
c.LatePolicy.penalty_method = "none"
c.LatePolicy.percent_per_day = 10.0
c.LatePolicy.grace_hours = 0.0
