"""A lesson on plain Python, NumPy and pandas, and right and wrong answers to its exercises."""

from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent

from autograde.course.lessons import CURRICULUM, Lesson, lessons

NAME = "01_values"
SETUP = """\
from collections import Counter, OrderedDict, namedtuple
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd

from autograde.notebook import rubric

Pair = namedtuple("Pair", "low high")


@dataclass
class Fit:
    slope: float
    word: str


def table(r):
    \"\"\"Some sales in three cities.\"\"\"
    cities = [["Oslo", "Rome", "Lima"][r.integer(0, 2)] for _ in range(6)]
    sold = [r.integer(1, 90) for _ in range(6)]
    return pd.DataFrame({"city": ["Rome", "Lima", *cities], "sold": [5, 7, *sold]})
"""


@dataclass(frozen=True)
class Task:
    """An exercise: the reference, its rubric's lines, and other answers."""

    reference: str
    rubric: str
    right: tuple[str, ...]
    wrong: tuple[str, ...]


TASKS = {
    "shout": Task(
        'def shout(text):\n    return text.upper() + "!"',
        'r.each("loud", shout, ("hey",), (f"hello {r.integer(100, 999)}",))',
        (
            'def shout(text):\n    return "".join(c.upper() for c in text) + "!"',
            'def shout(text):\n    return np.str_(f"{text.upper()}!")',
        ),
        (
            "def shout(text):\n    return text.upper()",
            'def shout(text):\n    return text.upper() + " !"',
            'def shout(text):\n    return (text.upper() + "!").encode()',
        ),
    ),
    "summary": Task(
        'def summary(x):\n    return {"mean": sum(x) / len(x), "biggest": max(x)}',
        'r.each("both", summary, ([1.0, 2.0],), (r.normal(5).tolist(),))',
        (
            'def summary(x):\n    return {"biggest": max(x), "mean": sum(x) / len(x)}',
            "def summary(x):\n    return OrderedDict(biggest=max(x), mean=float(np.mean(x)))",
            'def summary(x):\n    return {"mean": np.mean(x), "biggest": np.max(x)}',
            "def summary(x):\n    most, mean = max(x), sum(x) / len(x)\n"
            '    return {"mean": mean, "biggest": int(most) if most == int(most) else most}',
        ),
        (
            'def summary(x):\n    return {"mean": max(x), "biggest": sum(x) / len(x)}',
            'def summary(x):\n    return {"mean": sum(x) / len(x), "Biggest": max(x)}',
            'def summary(x):\n    return {"mean": sum(x) / len(x)}',
            "def summary(x):\n    return [sum(x) / len(x), max(x)]",
        ),
    ),
    "is_sorted": Task(
        "def is_sorted(x):\n    return sorted(x) == x",
        'r.each("yes or no", is_sorted, *(([0.0, u],) for u in r.normal(5).tolist()))',
        (
            "def is_sorted(x):\n    return all(a <= b for a, b in zip(x, x[1:]))",
            "def is_sorted(x):\n    return np.all(np.diff(x) >= 0)",
        ),
        (
            "def is_sorted(x):\n    return True",
            "def is_sorted(x):\n    return sorted(x) != x",
            "def is_sorted(x):\n    return int(sorted(x) == x)",
        ),
    ),
    "above": Task(
        "def above(x, limit):\n    return sum(v > limit for v in x)",
        'r.each("how many", above, *((r.normal(9).tolist(), 0.0) for _ in range(3)))',
        (
            "def above(x, limit):\n    return len([v for v in x if v > limit])",
            "def above(x, limit):\n    return np.sum(np.array(x) > limit)",
        ),
        (
            "def above(x, limit):\n    return 4",
            "def above(x, limit):\n    return sum(v < limit for v in x)",
            "def above(x, limit):\n    return float(sum(v > limit for v in x))",
        ),
    ),
    "due": Task(
        "def due(start, weeks):\n    return [start + timedelta(weeks=n + 1) for n in range(weeks)]",
        'r.each("every week", due, (date(2026, 2, 20), 2), '
        "(date.fromordinal(r.integer(700_000, 740_000)), 5))",
        (
            "def due(start, weeks):\n"
            "    return [date.fromordinal(start.toordinal() + 7 * n) for n in range(1, weeks + 1)]",
        ),
        (
            "def due(start, weeks):\n    return [start + timedelta(weeks=n) for n in range(weeks)]",
            "def due(start, weeks):\n"
            "    return [str(start + timedelta(weeks=n + 1)) for n in range(weeks)]",
        ),
    ),
    "interest": Task(
        "def interest(balance, rate):\n    return Decimal(balance) * Decimal(rate) / 12",
        'r.each("of a month", interest, ("100", "0.1"), (f"{r.integer(100, 999)}.10", "0.035"))',
        (
            "def interest(balance, rate):\n    return Decimal(balance) * (Decimal(rate) / 12)",
            "def interest(balance, rate):\n    return Decimal(balance) / 12 * Decimal(rate)",
        ),
        (
            "def interest(balance, rate):\n    return float(balance) * float(rate) / 12",
            "def interest(balance, rate):\n    return Decimal(float(balance) * float(rate)) / 12",
        ),
    ),
    "remainders": Task(
        "def remainders(x, m):\n    return {v % m for v in x}",
        'r.each("the set", remainders, ([r.integer(0, 999) for _ in range(9)], 50))',
        (
            "def remainders(x, m):\n    return frozenset(v % m for v in reversed(x))",
            "def remainders(x, m):\n    return set(np.array(x) % m)",
        ),
        (
            "def remainders(x, m):\n    return [v % m for v in x]",
            "def remainders(x, m):\n    return {v // m for v in x}",
            "def remainders(x, m):\n    return iter({v % m for v in x})",
        ),
    ),
    "neighbours": Task(
        "def neighbours(text):\n    return dict(Counter(zip(text, text[1:])))",
        'r.each("pairs", neighbours, ("abab",), (f"{r.integer(10**8, 10**9)}",))',
        (
            "def neighbours(text):\n"
            "    return Counter((text[i], text[i + 1]) for i in range(len(text) - 1))",
            "def neighbours(text):\n    pairs = [*zip(text, text[1:])]\n"
            "    return {p: np.int64(pairs.count(p)) for p in sorted(pairs)}",
        ),
        (
            "def neighbours(text):\n    return dict(Counter(zip(text[1:], text)))",
            "def neighbours(text):\n    return {a + b: 1 for a, b in zip(text, text[1:])}",
        ),
    ),
    "span": Task(
        "def span(x):\n    return Pair(min(x), max(x))",
        'r.each("by name", span, (r.normal(4).tolist(),))',
        (
            "def span(x):\n    return Pair(high=max(x), low=min(x))",
            "def span(x):\n    return Pair(*sorted(x)[::len(x) - 1])",
        ),
        (
            "def span(x):\n    return Pair(max(x), min(x))",
            "def span(x):\n    return (min(x), max(x))",
        ),
    ),
    "fit": Task(
        "def fit(x, y):\n    slope = sum(a * b for a, b in zip(x, y)) / sum(a * a for a in x)\n"
        "    return Fit(slope, 'up')",
        'r.each("the slope", fit, (r.normal(5).tolist(), r.normal(5).tolist()))',
        (
            "def fit(x, y):\n    return Fit(word='up', slope=float(np.dot(x, y) / np.dot(x, x)))",
            "def fit(x, y):\n    return Fit(float(np.linalg.lstsq(np.c_[x], y)[0][0]), 'up')",
        ),
        (
            "def fit(x, y):\n    return Fit(float(np.dot(x, y)), 'up')",
            "def fit(x, y):\n"
            "    return {'slope': float(np.dot(x, y) / np.dot(x, x)), 'word': 'up'}",
        ),
    ),
    "zscore": Task(
        "def zscore(x):\n    return (x - x.mean()) / x.std()",
        "x, y = r.normal(4).double().numpy(), r.normal(3, 5).double().numpy()\n"
        '    r.each("any numbers", zscore, (x,), (y,))',
        (
            "def zscore(x):\n    x = x - np.mean(x)\n    return x / np.sqrt(np.mean(x**2))",
            "def zscore(x):\n    x = x.copy()\n    x -= x.mean()\n    x /= np.std(x)\n    return x",
        ),
        (
            "def zscore(x):\n    return (x - x.mean()) / x.std(ddof=1)",
            "def zscore(x):\n    return ((x - x.mean()) / x.std()).astype(np.float32)",
            "def zscore(x):\n    return ((x - x.mean()) / x.std()).tolist()",
        ),
    ),
    "names": Task(
        "def names(n):\n    return np.array([f'row {i}' for i in range(n)])",
        'r.each("text", names, (2,), (r.integer(30, 99),))',
        (
            "def names(n):\n    return np.array([f'row {i}' for i in range(n)], dtype='U20')",
            "def names(n):\n    return np.char.add('row ', np.arange(n).astype(str))",
            "def names(n):\n    return ('row ' + pd.Series(range(n)).astype(str)).to_numpy()",
        ),
        (
            "def names(n):\n    return np.array([f'row{i}' for i in range(n)])",
            "def names(n):\n    return [f'row {i}' for i in range(n)]",
        ),
    ),
    "by_city": Task(
        'def by_city(df):\n    return df.groupby("city")["sold"].mean().reset_index()',
        'r.each("one row a city", by_city, (table(r),), (table(r),))',
        (
            'def by_city(df):\n    return df.groupby("city", as_index=False).agg({"sold": "mean"})',
            "def by_city(df):\n    cities = sorted(set(df.city))\n"
            "    means = [float(df.sold[df.city == c].mean()) for c in cities]\n"
            '    return pd.DataFrame({"city": cities, "sold": means})',
            "def by_city(df):\n    found = df.pivot_table('sold', 'city', aggfunc='mean')\n"
            "    return found.reset_index().astype({'city': object})",
        ),
        (
            'def by_city(df):\n    return df.groupby("city")[["sold"]].mean()',
            'def by_city(df):\n    return df.groupby("city")["sold"].median().reset_index()',
            "def by_city(df):\n"
            '    return df.groupby("city")["sold"].mean().reset_index()[["sold", "city"]]',
            'def by_city(df):\n    return df.groupby("city")["sold"]',
        ),
    ),
    "in_any_order": Task(
        'def in_any_order(df):\n    return df.assign(twice=2 * df.sold)[["twice", "city"]]',
        'r.any_column_order.call("twice", in_any_order, table(r))',
        (
            'def in_any_order(df):\n    return df.assign(twice=2 * df.sold)[["city", "twice"]]',
            'def in_any_order(df):\n    return df[["city"]].join((2 * df.sold).rename("twice"))',
        ),
        (
            "def in_any_order(df):\n    return df.assign(twice=2 * df.sold)",
            'def in_any_order(df):\n    return df.assign(twice=df.sold)[["city", "twice"]]',
        ),
    ),
    "shares": Task(
        'def shares(df):\n    return df.set_index("city")["sold"] / df.sold.sum()',
        'r.each("they add up to 1", shares, (table(r),))',
        (
            "def shares(df):\n    sold = df.sold.to_numpy()\n"
            "    index = pd.Index(df.city, name='city')\n"
            "    return pd.Series(sold / sold.sum(), index=index, name='sold')",
            'def shares(df):\n    return df.set_index("city").sold.div(df.sold.sum())',
        ),
        (
            'def shares(df):\n    return df["sold"] / df.sold.sum()',
            'def shares(df):\n    return df.set_index("city")["sold"] / df.sold.max()',
            'def shares(df):\n    return (df.set_index("city")["sold"] / df.sold.sum()).tolist()',
        ),
    ),
    "cities": Task(
        "def cities(df):\n    return pd.Index(sorted(set(df.city)), name='city')",
        'r.each("sorted", cities, (table(r).head(3 + r.integer(0, 4)),), '
        "(pd.DataFrame({'city': [str(r.integer(10, 99)) for _ in range(4)]}),))",
        (
            "def cities(df):\n    return df.groupby('city').size().index",
            "def cities(df):\n    return pd.Index(df.city.drop_duplicates().sort_values())",
        ),
        (
            "def cities(df):\n    return pd.Index(sorted(set(df.city), reverse=True), name='city')",
            "def cities(df):\n    return sorted(set(df.city))",
        ),
    ),
}
"""Adding a case is adding an answer."""

ROWS = {
    f"{name}, {kind} {number}": (name, answer, kind == "right")
    for name, task in TASKS.items()
    for kind in ("right", "wrong")
    for number, answer in enumerate(getattr(task, kind), 1)
}
"""By name: code with `::` in a name would send its test, and a second course, to another worker."""


def make(root: Path) -> Lesson:
    """Write the lesson into a course of its own."""
    folder = root / "source" / NAME
    (folder / "variants").mkdir(parents=True)
    points = "".join(f"{name} = 2\n" for name in TASKS)
    (root / CURRICULUM).write_text(
        f'[[lesson]]\nname = "{NAME}"\nnotebook = "values"\ntitle = "Values"\n'
        f'about = "values"\nminutes = 60\n\n[lesson.points]\n{points}'
    )
    cells = {"setup": SETUP}
    for name, task in TASKS.items():
        cells[name] = _solution(task.reference)
        cells[f"test_{name}"] = f'@rubric("{name}")\ndef _(r):\n    {task.rubric}\n'
        (folder / "variants" / f"{name}.md").write_text(_variants(name, task))
    heads = (f'# %% grade_id="{name}"\n{code}' for name, code in cells.items())
    (folder / "values.py").write_text("\n".join(heads))
    return lessons(root)[NAME]


def _solution(code: str) -> str:
    head, body = code.split("\n", 1)
    inner = indent("### BEGIN SOLUTION", "    ")
    return f"{head}\n{inner}\n{body}\n{inner.replace('BEGIN', 'END')}\n"


def _variants(name: str, task: Task) -> str:
    text = f"# {name}\n\n1. What comes in?\n2. What comes out?\n\n"
    for kind, answers in (("right", task.right), ("near miss", task.wrong)):
        for i, answer in enumerate(answers):
            words = "> it is so.\n\nIs it?" if kind != "right" else "Another way."
            head = f"## {kind}: {kind.split()[-1]}_{i}\n{words}\n"
            text += head + f"```python\n{dedent(answer)}\n```\n\n"
    return text
