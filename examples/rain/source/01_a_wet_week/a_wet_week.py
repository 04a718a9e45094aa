# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A wet week
#
# A rain gauge says one number a day. Was it a wet week? It depends on what you ask: the sum, the longest dry spell, or the
# trend. You write three functions, in plain Python, NumPy and pandas, and each answers one of these questions.

# %% grade_id="setup"
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from rain import RAIN, rainy_days, stations

from autograde.notebook import chart, rubric, show

# %%
print(RAIN)

# %% [markdown]
# ## 1 In words: plain Python
#
# ### Exercise: `summary` (2 points)
#
# Sum up a list of days in a dict: `"total"`, the millimetres of all days, and `"dry"`, the number of days in the longest run
# of days with exactly 0.


# %% grade_id="summary"
def summary(days):
    """The total in millimetres and the longest dry run of a list of days."""
    ### BEGIN SOLUTION
    longest = run = 0
    for mm in days:
        run = run + 1 if mm == 0 else 0
        longest = max(longest, run)
    return {"total": sum(days), "dry": longest}
    ### END SOLUTION


# %% grade_id="test_summary"
@rubric("summary")  # the contract as a checklist; open this cell to read it
def _(r):
    r.idea.each(
        "the total and the longest dry run", summary, ([0.0, 2.5, 0.0, 0.0],), (rainy_days(r, 30),)
    )
    r.each(
        "a run at the end counts",
        summary,
        ([1.0, 0.0, 0.0, 0.0],),
        (rainy_days(r, 3) + [4.0, 0.0, 0.0, 0.0, 0.0],),
    )
    r.unchanged("leaves the list alone")


# %% [markdown]
# ## 2 As a trend: NumPy
#
# ### Exercise: `running_mean` (2 points)
#
# The mean of each `n` days in a row, as an array. A list of 7 days has 5 runs of 3.


# %% grade_id="running_mean"
def running_mean(days, n):
    """The mean of every n days in a row: (d,) -> (d - n + 1,)."""
    ### BEGIN SOLUTION
    return np.convolve(days, np.ones(n) / n, mode="valid")
    ### END SOLUTION


# %% grade_id="test_running_mean"
@rubric("running_mean")  # the contract as a checklist; open this cell to read it
def _(r):
    r.idea.each(
        "means of n days in a row", running_mean, ([3.0, 0.0, 6.0], 2), (rainy_days(r, 20), 3)
    )
    r.call("n = 1 changes nothing", running_mean, rainy_days(r, 5), 1)
    r.call("n may be all days", running_mean, rainy_days(r, 6), 6)


# %% jupyter={"source_hidden": true} tags=["raises-exception"]
# draws the figure
def draw(means):
    figure, ax = plt.subplots(figsize=(6, 2.5))
    ax.bar(range(7), RAIN, color="#9ecae1", label="a day")
    ax.plot(range(1, 6), means, color="#08519c", marker="o", label="mean of three")
    ax.set(ylabel="mm", xticks=range(7), xticklabels=["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"])
    ax.legend(frameon=False)
    return figure


show(
    chart(draw, running_mean(RAIN, 3)),
    "Bar chart of seven days of rain with a line of the means of three days. The highest bar, 12.1 mm, is Wednesday; the "
    "line is at most 5.3 mm.",
)

# %% [markdown]
# ## 3 By place: pandas
#
# ### Exercise: `by_station` (2 points)
#
# From a table with the columns `station` and `mm`, make one with one row a station, in alphabetical order: `station` and
# `mean`, the mean of its measurements.


# %% grade_id="by_station"
def by_station(table):
    """The mean rain of each station: a DataFrame with the columns station and mean."""
    ### BEGIN SOLUTION
    return table.groupby("station")["mm"].mean().rename("mean").reset_index()
    ### END SOLUTION


# %% grade_id="test_by_station"
@rubric("by_station")  # the contract as a checklist; open this cell to read it
def _(r):
    r.idea.each(
        "one row a station with its mean", by_station, (stations(r, 2),), (stations(r, 20),)
    )
    r.unchanged("leaves the table alone")


# %% [markdown]
# ## 4 Summary
#
# - One list of numbers answers several questions; say which one you ask.
# - A running mean smooths a peak: 12.1 mm on one day are 5.3 mm over three.
