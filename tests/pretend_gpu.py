"""A pretend GPU: tensors that name another device and refuse to meet those of the CPU.

Their numbers are on the CPU all the same. PyTorch calls the device "lazy": this machine has none,
and PyTorch does not look for one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import _C, Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

GPU = torch.device("lazy", 0)
CROSSES = ("to", "_to_copy", "copy_", "index", "index_put_")
"""A GPU's tensors may meet the CPU's here."""


class OnGpu(Tensor):
    """A tensor of the pretend GPU; `numbers` are its numbers on the CPU."""

    numbers: Tensor

    @staticmethod
    def __new__(cls, numbers: Tensor) -> "OnGpu":
        shape, strides = numbers.shape, numbers.stride()
        facts = {"storage_offset": numbers.storage_offset(), "dtype": numbers.dtype, "device": GPU}
        made: OnGpu = Tensor._make_wrapper_subclass(cls, shape, strides=strides, **facts)  # type: ignore[attr-defined]
        made.numbers = numbers
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})

    def untyped_storage(self) -> torch.UntypedStorage:
        return self.numbers.untyped_storage()

    def tolist(self) -> Any:
        return self.numbers.tolist()

    def numpy(self, *, force: bool = False) -> Any:
        raise TypeError("a tensor of a GPU has no NumPy array")


class _Everywhere(TorchDispatchMode):
    """Sees tensors that are made on the device, or moved to it."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


class _Generator(torch.Generator):
    """A generator on the device that it is made for, though its numbers come from the CPU."""

    device: torch.device = torch.device("cpu")

    def __new__(cls, device: Any = "cpu") -> "_Generator":
        made = super().__new__(cls)
        made.device = torch.device(device)
        _generators[made._cdata] = made  # type: ignore[attr-defined]
        return made


_generators: dict[int, _Generator] = {}
"""Every generator by its address: an operation is given another object for the same one."""


@contextmanager
def pretend_gpu() -> Iterator[None]:
    """Have a device "lazy" in this block."""
    future, generator = torch.__future__, torch.Generator
    before = future.get_overwrite_module_params_on_conversion()
    future.set_overwrite_module_params_on_conversion(True)
    torch._C._set_only_lift_cpu_tensors(True)
    torch.Generator = _Generator  # type: ignore[misc]
    try:
        with _Everywhere():  # type: ignore[no-untyped-call]
            yield
    finally:
        future.set_overwrite_module_params_on_conversion(before)
        torch._C._set_only_lift_cpu_tensors(False)
        torch.Generator = generator  # type: ignore[misc]
        _generators.clear()


def _run(func: Any, args: Any, kwargs: Any) -> Any:
    """Do an operation on the CPU; its result is where that of a GPU's would be."""
    given = tree_leaves((args, kwargs))
    tensors = [value for value in given if isinstance(value, Tensor)]
    devices = [value for value in given if isinstance(value, torch.device)]
    name = func.overloadpacket.__name__
    on_gpu = any(isinstance(tensor, OnGpu) for tensor in tensors)
    on_cpu = any(tensor.ndim and not isinstance(tensor, OnGpu) for tensor in tensors)
    if on_gpu and on_cpu and name not in CROSSES:
        raise RuntimeError(f"{name} was given tensors of two devices")
    if devices:
        on_gpu = devices[0].type == GPU.type
    elif name in CROSSES:
        on_gpu = isinstance(tensors[-1 if name == "to" else 0], OnGpu)
    for value in given:
        if not isinstance(value, _C.Generator) or value._cdata not in _generators:
            continue
        if (_generators[value._cdata].device.type == GPU.type) is not on_gpu:
            raise RuntimeError(f"{name} was given a generator of another device")
    result = func(*tree_map(_to_cpu, args), **tree_map(_to_cpu, kwargs))
    if func._schema.is_mutable and len(func._schema.returns) == 1:
        return args[0]
    return tree_map(_to_gpu, result) if on_gpu else result


def _to_cpu(value: Any) -> Any:
    if isinstance(value, torch.device) and value.type == GPU.type:
        return torch.device("cpu")
    return value.numbers if isinstance(value, OnGpu) else value


def _to_gpu(value: Any) -> Any:
    return OnGpu(value) if isinstance(value, Tensor) else value
