"""A kernel that is reached through files in a folder of its own, not through the network."""

from pathlib import Path

from jupyter_client.manager import AsyncKernelManager

KERNEL = "python3"


def kernel_manager(folder: Path) -> AsyncKernelManager:
    """A manager for one kernel whose sockets lie in `folder`; keep that path short.

    Any process that can open the sockets can read the outputs, so the folder is the caller's own.
    """
    return AsyncKernelManager(kernel_name=KERNEL, transport="ipc", ip=str(folder / "k"))
