"""Item statistics against numbers worked out by hand and by NumPy."""

import numpy as np
import pytest

from autograde.report.itemstats import FEWEST, discriminations

RIGHT = [True] * 6 + [False] * 4
OTHERS = [True, True, True, False, True, False, False, True, False, False]


def test_by_hand() -> None:
    # M1 = 4/6, M0 = 1/4; the mean is 5/10, and so is s
    expected = (4 / 6 - 1 / 4) / 0.5 * (0.6 * 0.4) ** 0.5
    found = discriminations(list(zip(RIGHT, OTHERS, strict=True)), [2.0, 1.0])
    assert found[0] == pytest.approx(expected)


def test_it_is_the_correlation_of_a_line_with_the_points_on_all_others() -> None:
    rng = np.random.default_rng(1)
    skill = rng.normal(size=(60, 1))
    right = skill + rng.normal(size=(60, 5)) > np.linspace(-1, 1, 5)
    worth = np.array([2.0, 0.5, 1.0, 1.0, 3.0])
    found = discriminations(right.tolist(), worth.tolist())
    for item, discrimination in enumerate(found):
        others = [j for j in range(5) if j != item]
        rest = right[:, others] @ worth[others]
        assert discrimination == pytest.approx(np.corrcoef(right[:, item], rest)[0, 1])


@pytest.mark.parametrize(
    ("right", "others"),
    [
        ([True] * FEWEST, OTHERS),
        ([False] * FEWEST, OTHERS),
        (RIGHT, [True] * FEWEST),
        (RIGHT[1:], OTHERS[1:]),
        ([], []),
    ],
)
def test_what_is_not_defined_is_none(right: list[bool], others: list[bool]) -> None:
    assert discriminations(list(zip(right, others, strict=True)), [2.0, 1.0])[0] is None


def test_equal_points_are_equal_however_they_are_added_up() -> None:
    rows = [(ok, True, True, False) if ok else (ok, False, False, True) for ok in RIGHT]
    assert discriminations(rows, [1.0, 0.1, 0.2, 0.3])[0] is None
    # the mean of 37 times 0.9 is not 0.9
    rows = [(n % 2 == 0, True, True, False) for n in range(37)]
    assert discriminations(rows, [1.0, 0.7, 0.2, 0.3])[0] is None


def test_a_line_alone_has_nothing_to_be_compared_with() -> None:
    assert discriminations([[ok] for ok in RIGHT], [2.0]) == [None]
