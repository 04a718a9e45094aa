"""Inputs drawn from a seed with NumPy: torch's stream differs between processors."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch
    from torch import Tensor


def device() -> torch.device:
    """Return where lessons run: the device that AUTOGRADE_DEVICE names, or the CPU."""
    import torch

    return torch.device(os.environ.get("AUTOGRADE_DEVICE", "cpu"))


def seeded(*parts: object) -> np.random.Generator:
    """Return a generator seeded with these parts (seed, exercise, line, ...)."""
    digest = hashlib.sha256(repr(parts).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "little"))


class Draws:
    """Tensors and numbers drawn in order; the same seed and name give the same ones.

    `rng` is NumPy's generator of them all, for any other input: `r.rng.normal(size=(2, 3))`.
    """

    def __init__(self, seed: int, name: str) -> None:
        self.rng = seeded(seed, name)

    def normal(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """Draw standard normal numbers, in float32 unless a dtype is given."""
        return _tensor(self.rng.standard_normal(shape), dtype)

    def uniform(self, *shape: int) -> Tensor:
        """Draw numbers between -1 and 1."""
        return _tensor(self.rng.uniform(-1, 1, shape))

    def nonzero(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """Draw normal numbers moved away from 0, so that a 0 in a result is a dropped entry."""
        x = self.normal(*shape, dtype=dtype)
        return (x - 0.5).where(x < 0, x + 0.5)

    def positive(self, *shape: int) -> Tensor:
        """Draw numbers above 0.1."""
        return 0.1 + self.normal(*shape).abs()

    def signs(self, *shape: int) -> Tensor:
        """Draw -1 and 1; the first two entries are one of each."""
        signs = self.normal(*shape).sign().flatten()
        signs[:1], signs[1:2] = 1.0, -1.0
        return signs.view(shape)

    def integer(self, low: int, high: int) -> int:
        """Draw a whole number from low to high, both included."""
        return int(self.rng.integers(low, high, endpoint=True))

    def probability(self, low: float, high: float) -> float:
        """Draw a number from low to high with two decimals."""
        return self.integer(round(100 * low), round(100 * high)) / 100


def _tensor(numbers: np.ndarray, dtype: torch.dtype | None = None) -> Tensor:
    try:
        import torch
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "this draws a tensor, and torch is not installed. For arrays and lists, r.rng is "
            "NumPy's generator: r.rng.normal(size=(2, 3))"
        ) from error

    return torch.from_numpy(numbers).to(device(), dtype or torch.float32)
