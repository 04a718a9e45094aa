"""Notice an answer that has the grader's or the course's package do what was asked.

What counts is which code runs, not what it is called: a function or method of a package that the
answer calls and that gives it tensors, though neither the lesson nor the rubric gave it. One that
prints or draws is no answer.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from inspect import getmro
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from autograde.rubric.probes.calls import ContractBroken, tensors_in
from autograde.values.loaded_torch import is_module, loaded_torch

LIBRARIES = (sys.prefix, sys.base_prefix, "<frozen", "<string>")
"""How the file names of code begin that is neither a package's nor the student's."""


class Borrowed:
    """Looks at the calls of an answer.

    Args:
        rubric: a class of rubrics. Answers may call what lies beside it and its base classes.
        given: what the lesson gives, which answers may call too.
    """

    def __init__(self, rubric: type, given: Iterable[Any]) -> None:
        modules = {part.__module__ for part in getmro(rubric) if part is not object}
        self.packages = _folders(name.partition(".")[0] for name in modules)
        self.probes = _folders(name.rpartition(".")[0] for name in modules)
        self.allowed = {code for value in given for code in codes_of(value)}
        self.found: CodeType | None = None

    @contextmanager
    def noticed(self, args: Iterable[Any]) -> Iterator[None]:
        """Look at what happens in this block, the call of an answer.

        Raises:
            ContractBroken: the student's code called code of a package that was not given.
        """
        modules = (part for arg in args if is_module(arg) for part in arg.modules())
        allowed = self.allowed.union(*map(codes_of, map(type, modules)))

        def look(frame: FrameType, event: str, result: Any) -> None:
            file = frame.f_code.co_filename
            if (
                event == "return"
                and file.startswith(self.packages)
                and not file.startswith(self.probes)
                and frame.f_code not in allowed
                and next(tensors_in(result), None) is not None
                and self._called_by_student(frame)
            ):
                self.found = frame.f_code

        before = sys.getprofile()
        sys.setprofile(look)
        try:
            yield
        finally:
            sys.setprofile(before)
        self.refuse()

    def refuse(self) -> None:
        """Raises ContractBroken if a call has been noticed, so that the lines after it fail too."""
        if self.found:
            name, file = self.found.co_qualname, Path(self.found.co_filename).name
            raise ContractBroken(f"it uses {name} of the package's {file}; write it yourself")

    def _called_by_student(self, frame: FrameType) -> bool:
        """Return whether a student's code called it, through a library or not, or contains it.

        A student's module contains it if the rubric calls that module and gets there.
        """
        torch = loaded_torch()
        modules = torch.nn.Module.__init__.__code__.co_filename if torch else ""
        caller, through_module = frame.f_back, False
        while caller:
            file = caller.f_code.co_filename
            if file.startswith(self.packages):
                return through_module and file.startswith(self.probes)
            if not file.startswith(LIBRARIES):
                return True
            through_module = through_module or file == modules
            caller = caller.f_back
        return False


def _folders(names: Iterable[str]) -> tuple[str, ...]:
    files = {import_module(name).__file__ for name in names if name}
    return tuple(f"{Path(file).parent}{os.sep}" for file in files if file)


def codes_of(value: Any) -> set[CodeType]:
    """Return the code of a function, or of the functions of a class or of an object's class."""
    if isinstance(code := getattr(value, "__code__", None), CodeType):
        return {code}
    found = set()
    for part in getmro(value if isinstance(value, type) else type(value)):
        for member in vars(part).values():
            for name in ("fget", "__func__", "__wrapped__"):
                member = getattr(member, name, member)
            if isinstance(code := getattr(member, "__code__", None), CodeType):
                found.add(code)
    return found
