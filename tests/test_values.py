"""Values of every kind come back from bytes as they were, are compared, and copied for a call."""

from collections import Counter, OrderedDict, defaultdict, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from math import inf, nan
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from autograde.values import base
from autograde.values.base import Structure, Unrecordable, unrecordable
from autograde.values.dispatch import (
    apart,
    copied,
    describe,
    in_full,
    live,
    side_by_side,
    to_plain,
)
from autograde.values.frames import columns_sorted
from autograde.values.packing import pack, unpack

Point = namedtuple("Point", "x y")
MADE = {"a": [1.5, 2.5], "b": ["x", None]}
MODES = np.linalg.eigh(np.array([[2.0, 1.0], [1.0, 2.0]]))


@dataclass
class Fit:
    slope: float
    notes: list[str]


class Mine:
    """A class of a student's own."""


VALUES: dict[str, Callable[[], Any]] = {
    "bytes": lambda: b"\x00abc",
    "complex": lambda: 1 + 2j,
    "a long int": lambda: 7**3000,
    "set": lambda: {3, "a", (1, 2), None, nan},
    "frozenset": lambda: frozenset({1.5, frozenset({2})}),
    "keys that are no text": lambda: {1: "a", (2, "b"): [3], None: {}, 2.5: nan, False: 0},
    "Counter": lambda: Counter("hello"),
    "OrderedDict": lambda: OrderedDict(b=1, a=2),
    "defaultdict": lambda: defaultdict(list, {"a": [1]}),
    "named tuple": lambda: Point(1.0, [2]),
    "dataclass": lambda: Fit(0.5, ["steep"]),
    "date": lambda: date(2026, 2, 28),
    "datetime": lambda: datetime(2026, 2, 28, 9, 30, 0, 5),
    "datetime of UTC": lambda: datetime(2026, 2, 28, 9, 30, tzinfo=UTC),
    "timedelta": lambda: -timedelta(days=1, microseconds=3),
    "Decimal": lambda: [Decimal("1.50"), Decimal("nan"), Decimal("-inf"), Decimal("1e99999")],
    "Fraction": lambda: Fraction(-2, 3),
    "exact keys": lambda: {date(2026, 2, 28): {Fraction(1, 3), Decimal("0.1")}, timedelta(1): 2},
    "array": lambda: np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "one number": lambda: np.array(2.5),
    "no numbers": lambda: np.zeros((0, 3)),
    "bools": lambda: np.array([True, False]),
    "unsigned": lambda: np.array([1, 2], dtype=np.uint16),
    "complex array": lambda: np.array([1 + 2j, nan]),
    "big-endian": lambda: np.array([1, 2], dtype=">i4"),
    "text array": lambda: np.array(["å", "longer"]),
    "no text": lambda: np.array([""]),
    "bytes array": lambda: np.array([b"a", b"bc"]),
    "days": lambda: np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
    "spans": lambda: np.array([1, 2], dtype="timedelta64[s]"),
    "a day": lambda: np.datetime64("2020-01-01"),
    "half a character": lambda: ["\ud800", {"\udfff": 1}],
    "a computed tensor": lambda: 2 * torch.ones(2, requires_grad=True),
    "tensor and array": lambda: [torch.ones(2, dtype=torch.bfloat16), np.ones(2)],
    "DataFrame": lambda: pd.DataFrame(MADE, index=["r", "s"]),
    "columns of one name": lambda: pd.DataFrame([[1, 2]], columns=["a", "a"]),
    "nested columns": lambda: pd.DataFrame({("a", 1): [1], ("a", 2): [2]}),
    "no rows": lambda: pd.DataFrame(MADE).iloc[:0],
    "Series": lambda: pd.Series([1, 2], name="n", index=pd.Index([5, 7], name="key")),
    "a list in a cell": lambda: pd.Series([[1], {"a": (2,)}]),
    "nullable": lambda: pd.Series([1, None], dtype="Int64"),
    "category": lambda: pd.Series(["a", "b"], dtype="category"),
    "dates": lambda: pd.Series(pd.to_datetime(["2020-01-01", None])),
    "a time zone": lambda: pd.Series(pd.to_datetime(["2020-01-01", None], utc=True)),
    "MultiIndex": lambda: pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["k", None]),
    "Timestamp": lambda: pd.Timestamp("2020-01-01"),
    "NA": lambda: [pd.NA, pd.NaT],
}


@pytest.mark.parametrize("name", VALUES)
def test_a_value_comes_back_equal_and_its_copy_is_its_own(name: str) -> None:
    value = VALUES[name]()
    plain = to_plain(value)
    assert not isinstance(plain, Unrecordable)
    back = unpack(pack([plain]))[0]
    assert type(back) is type(plain)
    assert apart(back, plain).distance == apart(plain, back).distance == 0
    assert pack([back]) == pack([plain])
    assert apart(to_plain(copied(value)), plain).distance == 0
    assert type(copied(value)) is type(value)
    assert describe(plain)
    side_by_side(plain, plain, "")


def test_what_holds_itself_is_named_and_no_copy_of_it_is_made() -> None:
    rows: list[Any] = []
    rows += [rows, {"rows": (rows,)}]
    assert unrecordable(to_plain(rows)) == "a list that holds itself"
    shared = [1]
    assert to_plain([shared, [shared]]) == [[1], [[1]]]


EQUAL: dict[str, tuple[Any, Any]] = {
    "order of keys": ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    "order of a set": ({1, 2, 3}, {3, 2, 1}),
    "set and frozenset": ({1}, frozenset({1})),
    "a list for a tuple": ([1, 2], (1, 2)),
    "a named tuple for a tuple": (Point(1, 2), (1, 2)),
    "nan": ([nan, {nan}, {"a": nan}], [nan, {nan}, {"a": nan}]),
    "nan in an array": (np.array([nan, inf]), np.array([nan, inf])),
    "a scalar for a float": (np.float64(2.5), 2.5),
    "a scalar for an int": (np.int32(2), 2),
    "an array of no dimensions for a float": (np.array(2.5), 2.5),
    "a float for an array of no dimensions": (2.5, np.array(2.5)),
    "a tuple for a named one of NumPy": (tuple(MODES), MODES),
    "a scalar for a bool": (np.bool_(True), True),
    "a whole number for a float": ({"rate": 0}, {"rate": 0.0}),
    "the same amount": (Decimal("1.5"), Decimal("1.50")),
    "the 28th digit": (Decimal(2) / 3 * 100, Decimal(200) / 3),
    "a whole number for a Fraction": (2, Fraction(2)),
    "nan of Decimal": (Decimal("nan"), Decimal("nan")),
    "one moment": (
        datetime(2026, 2, 28, 9, tzinfo=timezone(timedelta(hours=1))),
        datetime(2026, 2, 28, 8, tzinfo=UTC),
    ),
    "keys of NumPy": ({np.int64(1): 2}, {1: 2}),
    "text of another width": (np.array(["a"], dtype="U9"), np.array(["a"])),
    "days in seconds": (np.array("2020-01-01", "M8[D]"), np.array("2020-01-01", "M8[s]")),
    "a range for an index": (pd.Series([5], index=pd.Index([0])), pd.Series([5])),
    "objects of text": (pd.Series(["a"], dtype=object), pd.Series(["a"], dtype="str")),
    "None for a missing text": (pd.Series(["a", None], dtype=object), pd.Series(["a", nan])),
    "an empty index": (pd.Series([], dtype=float, index=[]), pd.Series([], dtype=float)),
    "a Timestamp for a datetime": (pd.Timestamp(2024, 1, 2, 3), datetime(2024, 1, 2, 3)),
    "a datetime for a Timestamp": ([datetime(2024, 1, 2, 3)], [pd.Timestamp(2024, 1, 2, 3)]),
    "a Timestamp with a zone": (
        pd.Timestamp(2026, 2, 28, 9, tz="Europe/Berlin"),
        datetime(2026, 2, 28, 8, tzinfo=UTC),
    ),
    "a Timestamp as a key": ({pd.Timestamp(2024, 1, 2): 1}, {datetime(2024, 1, 2): 1}),
    "a Timedelta": (pd.Timedelta(hours=2), timedelta(hours=2)),
    "a span for a Timedelta": (timedelta(hours=2), pd.Timedelta(hours=2)),
    "nullable whole numbers": (pd.Series([1, 2], dtype="Int64"), pd.Series([1, 2])),
    "nullable numbers": (pd.Series([1.5, None], dtype="Float64"), pd.Series([1.5, nan])),
    "missing whole numbers": (pd.Series([1, None], dtype="Int64"), pd.Series([1, nan])),
    "nullable bools": (pd.Series([True, False], dtype="boolean"), pd.Series([True, False])),
    "a category of text": (pd.Series(["a", nan], dtype="category"), pd.Series(["a", nan])),
    "whole numbers in a column of floats": (pd.Series([1, 2]), pd.Series([1.0, 2.0])),
    "nullable ones there": (pd.DataFrame({"a": [1]}, dtype="Int64"), pd.DataFrame({"a": [1.0]})),
    "an array of text from pandas": (pd.Series(["a", "bc"]).to_numpy(), np.array(["a", "bc"])),
    "what unique gives": (pd.Series(["a", "a"]).unique(), np.array(["a"])),
    "years as pandas counts them": (pd.Series([2024], dtype="int32"), pd.Series([2024])),
    "years for those of pandas": (pd.Series([2024]), pd.Series([2024], dtype="int32")),
}


def test_a_made_up_column_of_lists_is_a_difference_and_no_error() -> None:
    got, expected = to_plain(pd.Series([1, 2], dtype="Int64")), to_plain(pd.Series([1, 2]))
    assert isinstance(got, Structure)
    made_up = Structure("Column", "Int64", {"items": [[1], [1, 2]]})
    assert apart(Structure("Series", "Series", {**got.parts, "data": made_up}), expected).distance


@pytest.mark.parametrize("name", EQUAL)
def test_what_a_type_calls_equal_is_equal(name: str) -> None:
    got, expected = (to_plain(each) for each in EQUAL[name])
    assert apart(got, expected).distance == 0


NEAR: dict[str, tuple[Any, Any]] = {
    "float": (0.1 + 0.2, 0.3),
    "a key": ({0.1 + 0.2: "a"}, {0.3: "a"}),
    "in a set": ({0.1 + 0.2, 5.0}, {5.0, 0.3}),
    "a tuple in a set": ({(0.1 + 0.2, "a")}, {(0.3, "a")}),
    "a whole number for a float": (3, 3 * (1 + 2**-52)),
    "nearly 0 in a list": ([1.0, 1e-17], [1.0, 0.0]),
    "nearly 0 in a tuple": ((1.0, 1e-22), (1.0, 0.0)),
    "an index": (pd.Series([1], index=[0.1 + 0.2]), pd.Series([1], index=[0.3])),
}


@pytest.mark.parametrize("name", NEAR)
def test_numbers_are_near_wherever_they_stand(name: str) -> None:
    got, expected = (to_plain(each) for each in NEAR[name])
    assert 0 < apart(got, expected).distance < 1e-15


DIFFERENT: dict[str, tuple[Any, Any, str]] = {
    "a key is missing": ({"a": 1}, {"a": 1, "b": 2}, " lacks the key 'b'"),
    "a key too many": ({1: 1, 2: 2}, {1: 1}, " should not have the key 2"),
    "an item of a set": ({1, 2}, {1, 3}, " lacks 3 and should not have 2"),
    "a value": ({"a": [1, 2]}, {"a": [1, 3]}, ", a at [1] is 2, expected 3"),
    "a value of a number": ({1: [2]}, {1: [3]}, "[1][0] is 2, expected 3"),
    "a class": (ValueError, "no", " returned a class (ValueError), expected 'no'"),
    "a set for a list of lists": ({1}, [[1], [2]], " is a set, expected a list"),
    "a set for a list of arrays": ({1}, [np.ones(2)], " is a set, expected a list"),
    "int for bool": (1, True, " is 1, expected True"),
    "bool for a float": (True, 1.0, " is True, expected 1.0"),
    "bool for an int": (True, 1, " is True, expected 1"),
    "a float for an int": ([2.0], [2], "[0] is 2.0, expected 2"),
    "text for bytes": ("a", b"a", " is 'a', expected b'a'"),
    "an accent of its own": ("e\u0301", "\u00e9", r" is 'e\u0301', expected '\xe9'"),
    "a key with such an accent": (
        {"e\u0301": 1}, {"\u00e9": 1},
        r" lacks the key '\xe9' and should not have the key 'e\u0301'",
    ),
    "a tuple for a named one": ((1, 2), Point(1, 2), " is a tuple, expected a named tuple Point(x"),
    "a charge": ({"e": 0.0}, {"e": 1.6e-19}, ", e is 0, expected 1.6e-19"),
    "a ratio of small numbers": ([2e-30, 3], [1e-30, 3], "[0] is 2e-30, expected 1e-30"),
    "a small number beside a large one": (
        (101325.0, 0.0), (101325.0, 0.1), "[1] is 0, expected 0.1000",
    ),
    "a small number in a list for a tuple": (
        [1e6, 8e-3], (1e6, 4e-3), "[1] is 0.0080, expected 0.0040",
    ),
    "a field": (Fit(1.0, []), Fit(2.0, []), ".slope is 1, expected 2"),
    "a student's own": (Mine(), 1.5, " returned a Mine, expected a float"),
    "another day": (
        date(2026, 3, 1), date(2026, 2, 28),
        " is datetime.date(2026, 3, 1), expected datetime.date(2026, 2, 28)",
    ),
    "a day without its hour": (date(2026, 3, 1), datetime(2026, 3, 1), " is datetime.date(2026, 3"),
    "a moment of no time zone": (
        datetime(2026, 3, 1), datetime(2026, 3, 1, tzinfo=UTC), " is datetime.datetime(2026, 3, 1, "
    ),
    "a float for a Decimal": (0.3, Decimal("0.3"), " is a float, expected Decimal('0.3')"),
    "a Decimal of a float": (Decimal.from_float(0.1), Decimal("0.1"), " is Decimal('0.1000000"),
    "a Decimal without end": (Decimal("inf"), Decimal(1), " is Decimal('Infinity'), expected Dec"),
    "a finite Decimal": (Decimal(1), Decimal("inf"), " is Decimal('1'), expected Decimal('Inf"),
    "a Decimal of the largest exponent": (
        Decimal("1e999999999999999999"), Decimal(1), " is Decimal('1E+999999999999999999'), exp"
    ),
    "a float for a Fraction": (0.5, Fraction(1, 2), " is a float, expected Fraction(1, 2)"),
    "half a Fraction": ([Fraction(1, 2)], [Fraction(1)], "[0] is Fraction(1, 2), expected Fracti"),
    "large whole numbers": (np.array([2**60 + 1]), np.array([2**60]), "[0] is 1152921504606846977"),
    "dtype": (np.ones(2, np.float32), np.ones(2), " has the dtype float32, expected float64"),
    "array for a list": (np.ones(2), [1.0, 1.0], " is a NumPy array of shape (2,), expected a"),
    "a text": (np.array(["a", "b"]), np.array(["a", "c"]), "[1] is 'b', expected 'c'"),
    "a day": (np.array(["2020-01-02"], "M8[D]"), np.array(["2020-01-01"], "M8[D]"), "[0] is '2020"),
    "columns in another order": (
        pd.DataFrame({"b": [1], "a": [2]}), pd.DataFrame({"a": [2], "b": [1]}),
        " has the columns ['b', 'a'], expected ['a', 'b']",
    ),
    "rows in another order": (
        pd.Series([1, 2], index=["a", "b"]), pd.Series([1, 2], index=["b", "a"]),
        " has the index ['a', 'b'], expected ['b', 'a']",
    ),
    "a name": (pd.Series([1], name="a"), pd.Series([1]), " has the name 'a', expected None"),
    "a name of an index": (
        pd.Series([1], index=pd.Index(["k"], name="a")), pd.Series([1], index=["k"]),
        " has index named ['a'], expected [None]",
    ),
    "a text for a day in an index": (
        pd.Series([1], index=["2020-01-01"]),
        pd.Series([1], index=pd.DatetimeIndex(["2020-01-01"])),
        " has the index of dtype text, expected datetime64[",
    ),
    "a text for a moment in an index": (
        pd.Series([1], index=["2020-01-01"]),
        pd.Series([1], index=pd.DatetimeIndex(["2020-01-01"], tz="UTC")),
        " has the index of dtype text, expected datetime64[",
    ),
    "a dtype of a column": (
        pd.DataFrame({"a": [1.0]}), pd.DataFrame({"a": [1]}),
        "['a'] has the dtype float64, expected int64",
    ),
    "an hour later": (
        pd.Timestamp(2024, 1, 2, 4), datetime(2024, 1, 2, 3),
        " is datetime.datetime(2024, 1, 2, 4, 0), expected datetime.datetime(2024, 1, 2, 3, 0)",
    ),
    "no time": (pd.NaT, datetime(2024, 1, 2), " is None, expected datetime.datetime(2024"),
    "text where a category is asked for": (
        pd.Series(["a"]), pd.Series(["a"], dtype="category"), " has the dtype text, expected categ",
    ),
    "a nullable number that is missing": (
        pd.Series([1, None], dtype="Int64"), pd.Series([1, 2]), " has the dtype Int64, expected in",
    ),
    "a whole number that is too large": (
        pd.Series([2**40]), pd.Series([2], dtype="int8"), " has the dtype int64, expected int8",
    ),
    "days in another order": (
        pd.Series([1, 2], index=pd.DatetimeIndex(["2020-01-02", "2020-01-01"])),
        pd.Series([1, 2], index=pd.DatetimeIndex(["2020-01-01", "2020-01-02"])),
        " has the index [2020-01-02, 2020-01-01], expected [2020-01-01, 2020-01-02]",
    ),
    "a number in a row": (
        pd.DataFrame({"a": [1.0, 2.0]}, index=["r", "s"]),
        pd.DataFrame({"a": [1.0, 3.0]}, index=["r", "s"]), "['a'].loc['s'] is 2, expected 3",
    ),
    "a text in a row": (
        pd.DataFrame({"a": ["x", "y"]}), pd.DataFrame({"a": ["x", "z"]}),
        "['a'].loc[1] is 'y', expected 'z'",
    ),
    "Series for a DataFrame": (
        pd.Series([1]), pd.DataFrame({"a": [1]}), " is a Series of shape (1,), expected a DataF",
    ),
    "too few rows": (
        pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [1, 2]}), " has the shape (1, 1), expected (2",
    ),
}  # fmt: skip
"""A result, what was expected, and what is said."""


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_difference_is_named_with_its_place_and_laid_out(name: str) -> None:
    got, expected, said = DIFFERENT[name]
    got, expected = to_plain(got), to_plain(expected)
    found = apart(got, expected).in_words()
    assert found.distance > 1e-3 or name == "large whole numbers"
    assert found.distance > 0
    assert f"{found.at} {found.symptom}".startswith(said)
    if found.pair:
        for table in side_by_side(*found.pair, found.pair_at):
            assert table is None or len(table.labels) in (0, len(table.rows))


def test_a_table_shows_the_blanks_of_a_text_and_times_as_pandas_has_them() -> None:
    got, expected = to_plain(pd.Series(["New   York"])), to_plain(pd.Series(["New York"]))
    tables = side_by_side(got, expected, "")
    assert [table.rows for table in tables if table] == [(("'New   York'",),), (("'New York'",),)]
    days = to_plain(pd.Series(pd.to_datetime(["2024-01-17"])))
    texts = to_plain(pd.Series(["2024-01-17"]))
    tables = side_by_side(texts, days, "")
    assert [table.rows for table in tables if table] == [(("'2024-01-17'",),), (("2024-01-17",),)]


def test_a_label_of_two_lines_takes_one_line_of_a_table() -> None:
    table = in_full(to_plain(pd.DataFrame({"rain\n(mm)": [1]}, index=["a\nb"])))
    assert table is not None
    assert (table.columns, table.labels) == (("rain (mm)",), ("a b",))


def test_what_pandas_cannot_make_again_is_left_as_recorded() -> None:
    made_up = Structure("Column", "datetime64[Nowhere/Town]", {"items": ["2024-01-01"]})
    index = to_plain(pd.RangeIndex(1))
    recorded = Structure("Series", "Series", {"name": None, "index": index, "data": made_up})
    assert live(recorded) is recorded


def test_labels_that_only_look_like_those_expected_are_marked() -> None:
    days = to_plain(pd.Series([1], index=pd.DatetimeIndex(["2020-01-01"])))
    texts = to_plain(pd.Series([1], index=["2020-01-01"]))
    got, _ = side_by_side(texts, days, "")
    assert got is not None
    assert got.wrong == ((0, -1),)


TABLE = pd.DataFrame(
    {
        "text": ["a", None, "c"],
        "whole": [1, 2, 3],
        "nullable": pd.array([1, None, 3], dtype="Int64"),
        "group": pd.Categorical(["u", "v", "u"]),
        "day": pd.to_datetime(["2024-01-01", None, "2024-01-03"]),
        "moment": pd.to_datetime(["2024-01-01", None, "2024-01-03"], utc=True),
    }
)


@pytest.mark.parametrize(
    "value",
    [
        TABLE,
        TABLE.set_index(["text", "whole"]),
        TABLE["nullable"],
        TABLE.columns,
        pd.DataFrame(),
        pd.date_range("2024-01-01", periods=2, tz="Europe/Oslo"),
        TABLE.set_index("day")["whole"].to_frame().T["2024-01-01"],
        TABLE.set_index("day").loc["2024-01-03"].iloc[0],
        TABLE.set_index(["day", "text"]),
        ({"a": [TABLE["day"]]}, 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_recorded_object_of_pandas_can_be_made_again(value: Any) -> None:
    recorded = to_plain(value)
    made = live(recorded)
    assert type(made) is type(value)
    assert pack(to_plain(made)) == pack(recorded)


def test_any_value_can_be_compared_with_any_other() -> None:
    strange = [Decimal("nan"), Decimal(1), timedelta(5), datetime(2020, 1, 1), 1e308, 1j, nan,
               complex(1.7e308, 1.7e308), np.array([2020, 1], "m8[Y]"), np.array([1, 2], "m8[ms]"),
               np.array([2**62], "M8[Y]"), np.array([1.7e308 + 1.7e308j, 0])]  # fmt: skip
    values = [to_plain(value) for value in [*strange, *(made() for made in VALUES.values())]]
    for expected in values:
        assert not apart(expected, expected).note
        for got in values:
            assert isinstance(apart(got, expected).distance, float)


def test_sums_are_spoken_of_where_the_numbers_are_shares() -> None:
    shares, identity = np.array([[0.5, 0.5], [0.0, 1.0]]), np.eye(2)
    off = np.array([[0.5, 0.25], [0.0, 1.0]])
    assert apart(off, shares).in_words().note == "Row 0 sums to 0.75, expected 1."
    assert apart(off, identity).in_words().note == ""


def test_the_types_of_scalars_that_look_alike_are_named() -> None:
    assert apart({"n": [2.0]}, {"n": [2]}).note == "It is a float; an int is expected."
    assert apart("True", True).note == "It is a str; a bool is expected."
    assert apart(7, "7").note == "It is an int; a str is expected."
    assert [apart(*pair).note for pair in ((2.5, 2), ("seven", 7), (3, "at most 2"))] == [""] * 3


def test_an_item_beyond_a_full_table_is_shown_as_the_last() -> None:
    table, _ = side_by_side([*range(9)], [*range(20)], "")
    assert table
    assert table.caption == "list of 9 items, the last of them"


@pytest.mark.parametrize("kind", [np.zeros, torch.zeros, lambda n: pd.Series(np.zeros(n))])
def test_a_wrong_shape_is_said_in_the_same_words_of_every_kind(kind: Callable[[int], Any]) -> None:
    got, expected = to_plain(kind(2)), to_plain(kind(3))
    said = base.differs_in("shape", (2,), (3,)).symptom
    assert apart(got, expected).in_words().symptom == said == "has the shape (2,), expected (3,)"


def test_columns_in_any_order_keep_the_type_of_their_names() -> None:
    days = pd.DataFrame([[1, 2]], columns=pd.DatetimeIndex(["2020-01-02", "2020-01-01"]))
    others = [days[days.columns[::-1]], days.set_axis(["2020-01-02", "2020-01-01"], axis=1)]
    expected = columns_sorted(to_plain(days))
    assert [apart(columns_sorted(to_plain(each)), expected).distance for each in others] == [0, inf]


LONG = "Attention weighs every word and adds what the words that matter say to the vector."


@pytest.mark.parametrize(
    ("got", "expected", "marked"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, ["2"]),
        ({"a": 1, "B": 2}, {"a": 1, "b": 2}, ["'B'"]),
        (["one", "tow"], ["one", "two"], ["'tow'"]),
        (pd.DataFrame({"avg": [1.5]}), pd.DataFrame({"mean": [1.5]}), ["avg"]),
        (pd.DataFrame({"a": [1.5]}, ["x"]), pd.DataFrame({"a": [1.5]}, ["y"]), ["x"]),
        (pd.DataFrame({"a": [1.5, 2.5]}), pd.DataFrame({"a": [1.5, 3.5]}), ["2.5000"]),
    ],
)
def test_what_is_wrong_is_marked_a_name_too(got: Any, expected: Any, marked: list[str]) -> None:
    found = apart(to_plain(got), to_plain(expected)).in_words()
    table, wanted = side_by_side(*found.pair, found.pair_at)
    names = {**{(i, -1): text for i, text in enumerate(table.labels)},
             **{(-1, j): text for j, text in enumerate(table.columns)}}  # fmt: skip
    entries = {(i, j): text for i, row in enumerate(table.rows) for j, text in enumerate(row)}
    assert [(names | entries)[place] for place in table.wrong] == marked
    assert wanted.wrong == ()


def test_spaces_in_a_text_are_shown_as_they_are() -> None:
    found = apart("   1   2\n", "   1   2\n   2   4\n").in_words()
    for table in side_by_side(*found.pair, found.pair_at):
        assert table.rows[0] == (r"'   1   2\n'",)
    assert describe("a   b") == "'a   b'"
    assert "should not have the key 'a  b'" in apart({"a  b": 1}, {"c": 1}).in_words().symptom


def test_the_name_of_an_index_is_shown() -> None:
    days = pd.DataFrame({"site": ["a", "b"], "mm": [1.5, 2.5]})
    found = apart(to_plain(days), to_plain(days.set_index("site"))).in_words()
    table, wanted = side_by_side(*found.pair, found.pair_at)
    assert table.caption == "DataFrame of shape (2, 2)"
    assert wanted.caption == "DataFrame of shape (2, 1), index named 'site'"


@pytest.mark.parametrize(
    ("got", "expected", "first"),
    [
        ("weighs", "wieghs", ("e", "i")),
        (LONG.replace("vector", "vectors"), LONG, ("s", ".")),
        ("one  two", "one two", (" ", "t")),
        ("a\nbat", "a\nbit", ("a", "i")),
    ],
)
def test_the_first_other_character_of_a_text_is_shown(
    got: str, expected: str, first: tuple[str, str]
) -> None:
    found = apart(got, expected).in_words()
    tables = side_by_side(*found.pair, found.pair_at)
    shown = [table.rows[row][0][place] for table in tables for row, place in table.since.items()]
    assert tuple(shown) == first


UNRECORDABLE: dict[str, tuple[Callable[[], Any], str]] = {
    "an object": (Mine, "a Mine"),
    "an iterator": (lambda: iter({1}), "a set_iterator"),
    "a generator": (lambda: (i for i in ()), "a generator"),
    "objects in an array": (lambda: np.array([None, "a"]), "an array of dtype object"),
    "a masked array": (lambda: np.ma.masked_array([1], [True]), "a MaskedArray"),
    "an object in a cell": (lambda: pd.Series([Mine()]), "a Series that holds a Mine"),
    "a tensor as a key": (lambda: {torch.ones(1): 1}, "a dict that holds a tensor of shape (1,)"),
    "too many keys": (lambda: dict.fromkeys(range(base.MAX_KEYS + 1)), "a dict of 5001 keys"),
    "a set too large": (lambda: {*range(base.MAX_KEYS + 1)}, "a set of 5001 items"),
    "an array too large": (
        lambda: np.zeros(base.MAX_ENTRIES + 1),
        "an array of more than 1,000,000 entries",
    ),
    "a tensor too large": (
        lambda: torch.zeros(base.MAX_ENTRIES + 1),
        "a tensor of more than 1,000,000 entries",
    ),
    "complex numbers": (
        lambda: torch.zeros(2, dtype=torch.complex64),
        "a tensor of torch.complex64, torch.strided",
    ),
    "a sparse tensor": (
        lambda: torch.eye(2).to_sparse(),
        "a tensor of torch.float32, torch.sparse_coo",
    ),
    "a time of day": (lambda: datetime(2026, 3, 1).time(), "a time"),
    "a Decimal that signals": (lambda: Decimal("snan"), "a Decimal"),
    "a Fraction too long": (lambda: Fraction(1, 10**5000), "a Fraction of thousands of digits"),
    "a number too long": (lambda: 10**5000, "an int of thousands of digits"),
}


@pytest.mark.parametrize(
    ("right", "wrong", "shown"),
    [
        ([0.0, 2.5], [0.0, 3.5], [["0.0000"], ["3.5000"]]),
        ([0, 2.5], [0, 3.5], [["0"], ["3.5000"]]),
        (pd.DataFrame({"a": [1.0, 2.5], "b": [1, 2]}), pd.DataFrame({"a": [1.0, 3.5], "b": [1, 2]}),
         [["1.0000", "1"], ["3.5000", "2"]]),
    ],
    ids=["floats", "a whole number and a float", "columns"],
)  # fmt: skip
def test_the_floats_of_a_table_have_one_format(right: Any, wrong: Any, shown: Any) -> None:
    found = apart(to_plain(wrong), to_plain(right))
    assert found.pair
    table, _ = side_by_side(*found.pair, found.pair_at)
    assert table
    assert [[*row] for row in table.rows] == shown


@pytest.mark.parametrize("name", UNRECORDABLE)
def test_what_cannot_be_recorded_is_named(name: str) -> None:
    make, what = UNRECORDABLE[name]
    assert to_plain(make()) == Unrecordable(what)


def test_a_call_cannot_change_what_another_is_given() -> None:
    given = [[1], {"a": [1]}, np.zeros(2), pd.DataFrame({"a": [1.0]}), Fit(1.0, []), Point(1, [2])]
    mine: list[Any] = copied(given)
    mine[0].append(2)
    mine[1]["a"].append(2)
    mine[2] += 1
    mine[3].loc[0, "a"] = 5.0
    mine[4].notes.append("x")
    mine[5].y.append(3)
    assert apart(to_plain(given), to_plain(copied(given))).distance == 0
    assert [len(given[0]), len(given[1]["a"]), given[2].sum(), given[3].a[0]] == [1, 1, 0, 1]  # type: ignore[arg-type,index,attr-defined,call-overload]
    assert (given[4].notes, given[5].y) == ([], [2])  # type: ignore[attr-defined]


def test_a_generator_that_a_call_draws_from_goes_on_elsewhere_as_it_was() -> None:
    rng = np.random.default_rng(1)
    mine = copied([rng])[0]
    assert mine.normal(size=3).tolist() == rng.normal(size=3).tolist()


def test_what_rounding_leaves_of_0_is_shown_as_0() -> None:
    right = np.array([1.0, 0.0, 2 + 3j])
    wrong = np.array([1.0 + 1e-16j, 3e-17 - 2e-16j, 2 - 3j])
    found = apart(to_plain(wrong), to_plain(right)).in_words()
    assert found.symptom == "is 2-3j, expected 2+3j"
    table, _ = side_by_side(*found.pair, found.pair_at)
    assert table.rows == (("1+0j", "0+0j", "2-3j"),)
    more = apart(to_plain(wrong), to_plain(right[:2])).in_words()
    assert side_by_side(*more.pair, more.pair_at)[0].rows == table.rows
    small = apart(np.array([1e-300, 1e-200]), np.array([1e-300, 2e-200])).in_words()
    assert small.symptom == "is 1e-200, expected 2e-200"


def test_a_made_up_record_of_pandas_is_compared_without_pandas() -> None:
    labels = Structure("Column", "text", {"items": ["a"]})
    index = Structure("Index", "Index", {"names": [None], "labels": labels})
    made = Structure("Series", "Series", {"name": None, "index": index, "data": np.ones(1)})
    assert apart(made, to_plain(pd.Series([1.0], index=["a"]))).distance == 0
