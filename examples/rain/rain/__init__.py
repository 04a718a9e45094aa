"""What the lessons of this course import: a week of rain, and drawn rain for their rubrics."""

import pandas as pd

from autograde.rubric.probes.lines import Rubric

RAIN = [0.0, 3.5, 12.1, 0.2, 0.0, 7.4, 1.0]
"""Millimetres a day, Monday to Sunday."""


def rainy_days(r: Rubric, n: int) -> list[float]:
    """Draw n days of rain, in millimetres; about half of them are dry."""
    return [max(0.0, 10 * mm) for mm in r.rng.normal(size=n).tolist()]


def stations(r: Rubric, n: int) -> pd.DataFrame:
    """Draw a table of n measurements at three stations; one station measures twice at least."""
    names = ["Bergen", "Bergen", *(["Bergen", "Cork", "Lima"][r.integer(0, 2)] for _ in range(n))]
    return pd.DataFrame({"station": names, "mm": rainy_days(r, n + 2)})
