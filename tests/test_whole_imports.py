"""A package that is interrupted while it loads is whole, and the interruption comes after."""

import importlib
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from autograde.notebook.whole_imports import WholeImports

TORN = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nfrom loaded_late import part\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loaded_late").mkdir()
    (tmp_path / "loaded_late" / "__init__.py").write_text(TORN)
    (tmp_path / "loaded_late" / "part.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", [WholeImports({"loaded_late"}), *sys.meta_path])


def import_and_wait() -> None:
    importlib.import_module("loaded_late")
    time.sleep(5)


@pytest.mark.skipif(os.name == "nt", reason="os.kill sends no interruption there")
def test_an_interruption_waits_until_a_package_is_whole(package: None) -> None:
    with pytest.raises(KeyboardInterrupt):
        import_and_wait()
    assert sys.modules["loaded_late"].part is sys.modules["loaded_late.part"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
