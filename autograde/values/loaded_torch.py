"""torch, where something has imported it. Before that no value can be one of torch's.

So a course without torch is graded where torch is not installed.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from torch import Tensor, nn


def loaded_torch() -> Any:
    """Return torch, or None if nothing has imported it."""
    return sys.modules.get("torch")


def is_tensor(value: Any) -> TypeGuard[Tensor]:
    torch = loaded_torch()
    return torch is not None and isinstance(value, torch.Tensor)


def is_module(value: Any) -> TypeGuard[nn.Module]:
    torch = loaded_torch()
    return torch is not None and isinstance(value, torch.nn.Module)


def compute_on_one_thread() -> None:
    """Have torch compute on one thread: in this thread, or from when it is imported.

    Kernels, workers and the reference do, so that the last digits are the same everywhere.
    """
    if torch := loaded_torch():
        torch.set_num_threads(1)
    else:
        os.environ["OMP_NUM_THREADS"] = "1"  # torch reads it when it is imported
