"""One kernel for one notebook, reached through files in a folder of its own, not by network."""

import socket
from pathlib import Path

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager

from autograde.sandbox.agreed import MEMORY, Limits
from autograde.sandbox.provisioner import WalledProvisioner

KERNEL = "python3"
WALLED = "walled"


def walled_manager(
    limits: Limits | None = None, *, prepares_another: bool = False
) -> AsyncKernelManager:
    """A manager for one kernel behind a wall; it can prepare the kernel of the next notebook."""
    spec = KernelSpec(argv=[], display_name=WALLED, language="python", interrupt_mode="signal")
    manager = AsyncKernelManager(kernel_name=WALLED, transport="ipc")
    manager._kernel_spec = spec
    provisioner = WalledProvisioner(kernel_spec=spec, parent=manager)
    provisioner.limits = limits or Limits()
    provisioner.prepares_another = prepares_another
    manager.provisioner = provisioner
    return manager


def open_manager(folder: Path) -> AsyncKernelManager:
    """A manager for one kernel without a wall, whose sockets lie in `folder`, a short path."""
    if not hasattr(socket, "AF_UNIX"):  # Windows
        return AsyncKernelManager(kernel_name=KERNEL)
    return AsyncKernelManager(kernel_name=KERNEL, transport="ipc", ip=str(folder / "k"))


def cell_begins(manager: object) -> None:
    """Tell whoever watches a walled kernel that another cell begins."""
    if provisioner := _walled(manager):
        provisioner.next_cell()


async def why_it_was_interrupted(manager: object) -> str:
    """Which limit the cell was interrupted for behind the wall; nothing if it was for none."""
    provisioner = _walled(manager)
    if provisioner is None:
        return ""
    await provisioner.poll()
    if provisioner.interrupted != provisioner.cell:
        return ""
    return f"used more than {provisioner.limits.cell_cpu_seconds} s of processor time"


def why_it_died(manager: object) -> str:
    """Which limit a walled kernel was ended for; nothing if it was for none, or has no wall."""
    provisioner = _walled(manager)
    if provisioner is None or not provisioner.reason:
        return ""
    if provisioner.reason == MEMORY:
        return f"it used more than {provisioner.limits.memory_bytes // 2**20} MB of memory"
    return f"it used more than {provisioner.limits.cpu_seconds} s of processor time"


def _walled(manager: object) -> WalledProvisioner | None:
    provisioner = getattr(manager, "provisioner", None)
    return provisioner if isinstance(provisioner, WalledProvisioner) else None
