"""Tests that `make test-all` and the nightly run add: slow ones that defend the project itself."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

nightly = pytest.mark.nightly


def few(cases: Iterable[str] | Mapping[str, Any], *now: str) -> list[Any]:
    """Return a test's cases by name; all but those named here are left to the nightly run."""
    values = (
        cases if isinstance(cases, Mapping) else dict(zip(names := [*cases], names, strict=True))
    )
    assert {*now} <= {*values}, f"there is no such case: {now}"
    return [
        pytest.param(value, id=name, marks=() if name in now else nightly)
        for name, value in values.items()
    ]
