"""Item statistics against numbers worked out by hand and by NumPy."""

import numpy as np
import pytest

from autograde.report.itemstats import FEWEST, discriminations, point_biserial

RIGHT = [True] * 6 + [False] * 4
REST = [9.0, 8.0, 8.0, 7.0, 6.0, 4.0, 5.0, 3.0, 2.0, 2.0]


def test_by_hand() -> None:
    # M1 = 42/6 = 7, M0 = 12/4 = 3; the mean is 5.4, the squares sum to 352, s² = 35.2 - 29.16
    expected = (7 - 3) / 6.04**0.5 * (0.6 * 0.4) ** 0.5
    assert point_biserial(RIGHT, REST) == (pytest.approx(expected), "")


def test_it_is_the_correlation_of_a_line_with_the_points_on_all_others() -> None:
    rng = np.random.default_rng(1)
    skill = rng.normal(size=(60, 1))
    right = skill + rng.normal(size=(60, 5)) > np.linspace(-1, 1, 5)
    worth = np.array([2.0, 0.5, 1.0, 1.0, 3.0])
    found = discriminations(right.tolist(), worth.tolist())
    for item, discrimination in enumerate(found):
        others = [j for j in range(5) if j != item]
        rest = right[:, others] @ worth[others]
        assert discrimination == (pytest.approx(np.corrcoef(right[:, item], rest)[0, 1]), "")


@pytest.mark.parametrize(
    ("right", "rest", "why"),
    [
        ([True] * FEWEST, REST, "all right"),
        ([False] * FEWEST, REST, "none right"),
        (RIGHT, [3.0] * FEWEST, "all alike on the other lines"),
        (RIGHT[1:], REST[1:], f"fewer than {FEWEST} students"),
        ([], [], f"fewer than {FEWEST} students"),
    ],
)
def test_what_is_undefined_says_why(right: list[bool], rest: list[float], why: str) -> None:
    assert point_biserial(right, rest) == (None, why)


def test_a_line_alone_has_nothing_to_be_compared_with() -> None:
    found = discriminations([[ok] for ok in RIGHT], [2.0])
    assert found == [(None, "all alike on the other lines")]
