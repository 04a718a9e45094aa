"""A hub that runs, and what it said when it started."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True)
class Hub:
    """A running hub, and the passwords that it printed."""

    url: str
    passwords: dict[str, str]
    process: "subprocess.Popen[bytes]"

    def processes(self) -> list[psutil.Process]:
        """All that runs on it."""
        return psutil.Process(self.process.pid).children(recursive=True)

    @property
    def first(self) -> psutil.Process:
        """The first process in the hub's view of the machine."""
        return next(p for p in self.processes() if "jupyterhub" in p.cmdline())


def passwords_in(said: Path) -> dict[str, str]:
    """Return the passwords that a hub has printed so far, by user."""
    return dict(re.findall(r"^ +(\w+) +(\S+)$", said.read_text(), re.M))
