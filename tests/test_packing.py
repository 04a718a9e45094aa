"""Packed values come back as they were; anything else is refused, and nothing is run."""

import json
import pickle
import struct
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save

from autograde.rubric.recording import Recording
from autograde.values import base, packing, tensors
from autograde.values.base import BadData, Table
from autograde.values.dispatch import to_plain
from autograde.values.packing import from_plain, pack, unpack

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(PLAIN)
def test_plain_values_come_back(value: Any) -> None:
    packed = pack([value])
    assert unpack(packed) == [value]
    assert pack([value]) == packed


@pytest.mark.parametrize("dtype", tensors.CODES.values())
def test_tensors_come_back(dtype: torch.dtype) -> None:
    value = torch.tensor([[1, 0], [3, 1]]).to(dtype).T
    back = unpack(pack({"x": value}))["x"]
    assert back.dtype == dtype
    assert torch.equal(back, value)


def test_nan_and_infinity_come_back() -> None:
    back = unpack(pack([float("nan"), float("inf"), torch.tensor([float("-inf")])]))
    assert back[0] != back[0]
    assert back[1] == float("inf")
    assert back[2].item() == float("-inf")


def with_tree(tree: str, **tensors: torch.Tensor) -> bytes:
    return save(tensors, metadata={"tree": tree})


def oversized_header() -> bytes:
    return struct.pack("<Q", 2**40) + b"{}"


def ten_gigabytes_by_header() -> bytes:
    header = {
        "t0000": {"dtype": "F32", "shape": [2_500_000_000], "data_offsets": [0, 10_000_000_000]},
        "__metadata__": {"tree": '{"tensor": "t0000"}'},
    }
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text


def without_entries(*shape: int) -> bytes:
    """A tensor of no bytes, as the header says."""
    entry = {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}
    text = json.dumps({"a": entry, "__metadata__": {"tree": '{"tensor": "a"}'}}).encode()
    return struct.pack("<Q", len(text)) + text


BAD = {
    "a shape whose product overflows": without_entries(2**31, 2**31, 2**31, 0),
    "a shape that begins with nothing": without_entries(0, 2**31, 2**31, 2**31),
    "many empty rows": without_entries(2**40, 0),
    "a dimension that is no int64": without_entries(2**64, 0),
    "a negative dimension": without_entries(-1, 0),
    "a dimension that is a fraction": without_entries(0.5, 0),  # type: ignore[arg-type]
    "nothing": b"",
    "text": b"right, full points",
    "pickle": pickle.dumps({"exercise": "it"}),
    "oversized header": oversized_header(),
    "ten gigabytes by header": ten_gigabytes_by_header(),
    "no tree": save({"t0000": torch.ones(2)}),
    "a tree that is no JSON": with_tree("{"),
    "a tensor that is not there": with_tree('{"tensor": "t0000"}'),
    "an unknown kind": with_tree('{"code": "1 + 1"}'),
    "two kinds at once": with_tree('{"int": "1", "float": "1"}'),
    "a bare number": with_tree("7"),
    "an endless number": with_tree('{"int": "%s"}' % ("9" * 5000)),
    "nested too deeply": with_tree('{"list": [' * 5000 + "]}" * 5000),
    "nested more than allowed": with_tree(
        '{"list": [' * (packing.MAX_DEPTH + 1) + "]}" * (packing.MAX_DEPTH + 1)
    ),
    "a complex tensor": with_tree('{"tensor": "a"}', a=torch.ones(2, dtype=torch.complex64)),
    "a tensor named twice": with_tree(
        '{"list": [{"tensor": "a"}, {"tensor": "a"}]}', a=torch.ones(2)
    ),
    "a thousand dimensions": with_tree('{"tensor": "a"}', a=torch.ones([1] * 1000)),
    "too many bytes": b"\0" * (packing.MAX_BYTES + 1),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_bytes_are_refused(name: str) -> None:
    with pytest.raises(BadData):
        unpack(BAD[name])


def test_values_nested_without_end_can_be_packed_and_read() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert unpack(pack([to_plain(endless)]))


def with_array(form: list[Any], data: bytes = b"\0" * 8) -> bytes:
    blob = torch.tensor([*data], dtype=torch.uint8)
    return with_tree(json.dumps({"array": ["a", *form]}), a=blob)


def of_kinds(tree: Any) -> bytes:
    return with_tree(json.dumps(tree), a=torch.zeros(2))


FRAME = ["DataFrame", "DataFrame"]
INDEX = {"record": ["Index", "Index", [["names", {"list": []}], ["labels", {"list": []}]]]}
BAD_OF_KINDS = {
    "objects": with_array(["|O", [1]]),
    "a structure": with_array(["|V8", [1]]),
    "fields": with_array(["f8,f8", [1]]),
    "a dtype that is no text": with_array([7, [1]]),
    "more entries than bytes": with_array(["<f8", [10**12]]),
    "fewer entries than bytes": with_array(["<f8", [0]]),
    "less than nothing": with_array(["<f8", [-1, -1]]),
    "text of no width": with_array(["<U0", [10**12]], b""),
    "a shape of fractions": with_array(["<f8", [1.0]]),
    "a thousand dimensions": with_array(["<f8", [1] * 1000]),
    "an array that is not there": of_kinds({"array": ["b", "<f8", [1]]}),
    "a list as a key": of_kinds({"map": [[{"list": []}, None]]}),
    "a tensor as a key": of_kinds({"map": [[{"tensor": "a"}, None]]}),
    "a dict in a set": of_kinds({"set": [{"dict": []}]}),
    "a list in a tuple in a set": of_kinds({"set": [{"tuple": [{"list": []}]}]}),
    "a set too large": of_kinds({"set": [{"int": str(i)} for i in range(base.MAX_KEYS + 1)]}),
    "bytes that are none": of_kinds({"bytes": "§"}),
    "a day that is none": of_kinds({"date": "2026-02-30"}),
    "a span too long": of_kinds({"timedelta": "9" * 99}),
    "a Decimal that is none": of_kinds({"Decimal": "one"}),
    "a Fraction of nothing": of_kinds({"Fraction": "1/0"}),
    "a Fraction to compute": of_kinds({"Fraction": "1e999999999"}),
    "a key that signals": of_kinds({"set": [{"Decimal": "snan"}]}),
    "a DataFrame of nothing": of_kinds({"record": [*FRAME, []]}),
    "a DataFrame without columns": of_kinds({"record": [*FRAME, [["index", INDEX]]]}),
    "an index of lists": of_kinds(INDEX),
    "a record of no name": of_kinds({"record": [7, 7, []]}),
}


@pytest.mark.parametrize("name", BAD_OF_KINDS)
def test_bad_bytes_of_any_kind_are_refused(name: str) -> None:
    with pytest.raises(BadData):
        unpack(BAD_OF_KINDS[name])


def test_characters_that_do_not_exist_are_replaced_in_an_array() -> None:
    codes = np.array([0x110000, 0xD800, 65], np.uint32).tobytes()
    assert unpack(with_array(["<U1", [3]], codes)).tolist() == ["\ufffd", "\ufffd", "A"]


def test_an_empty_tensor_comes_back() -> None:
    assert unpack(pack(torch.zeros(3, 0, 5))).shape == (3, 0, 5)


def test_booleans_of_value_seven_are_true() -> None:
    data = bytearray(pack(torch.tensor([True, False])))
    data[-2] = 7
    assert unpack(bytes(data)).tolist() == [True, False]
    assert unpack(bytes(data)).view(torch.uint8).tolist() == [1, 0]


@pytest.mark.parametrize(
    "plain",
    [
        None,
        [],
        {"exercise": "it"},
        {"exercise": 3, "stopped": None, "lines": []},
        {"exercise": "it", "stopped": None, "lines": [{}]},
        {"exercise": "it", "stopped": None, "lines": "abc"},
    ],
)
def test_what_is_no_recording_is_refused(plain: Any) -> None:
    with pytest.raises(BadData):
        from_plain(Recording, plain)


def test_a_header_with_a_name_twice_is_refused() -> None:
    entry = b'"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
    header = b'{"__metadata__":{"tree":"null"},' + b",".join([entry, entry]) + b"}"
    with pytest.raises(BadData, match="a name twice"):
        unpack(struct.pack("<Q", len(header)) + header)


def test_a_table_comes_back_from_a_notebooks_file() -> None:
    table = Table("text of 7 characters", (("'a cat'",),), wrong=((0, 0),), left=True, since={0: 3})
    assert from_plain(Table, json.loads(json.dumps(asdict(table)))) == table


def test_halves_of_characters_are_replaced() -> None:
    assert unpack(pack(["\ud800", {"\udfff": 1}])) == ["\ufffd", {"\ufffd": 1}]
