"""Recording calls: each line's cases run one after another, whatever an answer raises."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from random import getstate, setstate
from random import seed as seed_random
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.random.mtrand import get_bit_generator, set_bit_generator

from autograde.rubric.kinds import KINDS
from autograde.rubric.probes.calls import (
    RAISED,
    Args,
    ContractBroken,
    as_typed,
    in_double,
    lent,
    outcome_of,
    tensors_in,
)
from autograde.rubric.probes.draws import Draws, device, seeded
from autograde.rubric.probes.package_calls import Borrowed
from autograde.rubric.recording import Case, Line, Outcome
from autograde.values.base import Plain, Structure, dtype_of, unrecordable
from autograde.values.dispatch import apart, to_plain
from autograde.values.loaded_torch import is_tensor, loaded_torch

if TYPE_CHECKING:
    from torch import Tensor

IDEA = 5.0
"""The factor by which a line with the idea of its exercise outweighs others of its kind."""


class Recorder(Draws):
    """Records lines on one seed. Each stands alone: one that raises does not stop the next."""

    def __init__(
        self,
        exercise: str,
        seed: int,
        *,
        double: bool = False,
        forbids: Sequence[str] = (),
        given: Iterable[Any] = (),
    ) -> None:
        super().__init__(seed, exercise)
        self._borrowed = Borrowed(type(self), given)
        self.exercise, self.seed, self.double = exercise, seed, double
        self.lines: list[Line] = []
        self.changes: list[list[str]] = []
        self.forbidden, self.used = tuple(forbids), set[str]()
        self._factor, self._any_column_order = 1.0, False
        self.interrupted = ""

    @property
    def idea(self) -> Self:
        """Say that the next line holds the idea of the exercise: it carries most of the points.

        r.idea.call("entry [i, j] is row i · row j", all_products, x, y)
        """
        self._factor = IDEA
        return self

    @property
    def any_column_order(self) -> Self:
        """Say that the columns of the DataFrame on the next line may stand in any order.

        r.any_column_order.call("one row a city", by_city, sales)
        """
        self._any_column_order = True
        return self

    def unchanged(self, line: str) -> None:
        """Record whether the calls of all lines so far left their arguments as they were.

        r.unchanged("leaves its arguments as they were")
        """
        self.record(line, "unchanged", lambda: self.changes, [()], "")

    def record(
        self,
        line: str,
        kind: str,
        run: Callable[..., Any],
        cases: Sequence[Args],
        typed: str | Sequence[str] | Callable[..., Any] | None = None,
    ) -> None:
        """Call `run` with the arguments of each case and record the outcomes.

        Probes are written with this.

        Args:
            typed: the calls as a person would type them: a text for each case, one text for all,
                or the function that is called, by default `run`. Lines before the last make what
                the call needs, such as `layer = Layer(d_in=4)`.
        """
        for case in cases:
            if not isinstance(case, tuple | list):
                raise TypeError(
                    f"“{line}”: a case is a tuple of arguments, ({case!r},) with a comma, and not "
                    f"{case!r}"
                )
        texts = _texts(run if typed is None else typed, cases)
        looked_at = not self.lines or self._factor > 1  # not every line: looking slows its calls
        recorded = [
            self._case(f"{line} {i}" if i else line, run, text, case, look=looked_at and i == 0)
            for i, (text, case) in enumerate(zip(texts, cases, strict=True))
        ]
        if kind == "call" and self._any_column_order:
            kind = "call_any_column_order"
        self.lines.append(Line(line, kind, tuple(recorded), KINDS[kind].weight * self._factor))
        self._factor, self._any_column_order = 1.0, False

    def _case(
        self, name: str, run: Callable[..., Any], text: str, given: Args, *, look: bool
    ) -> Case:
        with lent(self.widened(given)) as args:
            before = to_plain(args)
            with self._as_in_a_new_process(name):
                try:
                    outcome = self._outcome(run, args, look=look)
                except KeyboardInterrupt as error:
                    self.interrupted = _did_not_end(text, error)
                    raise
            if change := _change(before, to_plain(args)):
                self.changes.append([text.split("\n")[-1], change])
        return Case(text, before, outcome)

    def _outcome(self, run: Callable[..., Any], args: Args, *, look: bool) -> Outcome:
        try:
            self._borrowed.refuse()
            with self._functions_noted(), self._borrowed.noticed(args) if look else nullcontext():
                result = run(*args)
            value = to_plain(result)
            if not unrecordable(value):
                _check_device(result, args)
            return Outcome(value=value)
        except RAISED as error:
            if type(error) is NameError and error.name == self.exercise:
                raise  # a helper of the lesson calls an answer whose cell has not run, or failed
            return outcome_of(error)

    def _functions_noted(self) -> AbstractContextManager[object]:
        if not self.forbidden:
            return nullcontext()
        from autograde.rubric.probes.torch_functions import Functions

        return Functions(self._look_for_forbidden)

    def _look_for_forbidden(self, name: str, _given: list[Any]) -> None:
        if name.endswith(self.forbidden):
            self.used.add(f"torch's {name.strip('_')}")

    def gradients(
        self, line: str, output: Any, leaves: Mapping[str, Tensor]
    ) -> dict[str, Tensor | None]:
        """Return the gradients at the leaves of the sum of output times fixed random numbers."""
        if not is_tensor(output):
            raise ContractBroken(f"the result is a {type(output).__name__}, expected a tensor")
        if not output.requires_grad:
            raise ContractBroken("its result is cut off from its inputs, so no gradient passes")
        import torch

        numbers = seeded(self.seed, self.exercise, line).standard_normal(output.numel())
        direction = torch.from_numpy(numbers).to(output).view(output.shape)
        total = (output * direction).sum()
        learned = {name: leaf for name, leaf in leaves.items() if leaf.requires_grad}
        found = torch.autograd.grad(total, [*learned.values()], allow_unused=True)
        return dict.fromkeys(leaves) | dict(zip(learned, found, strict=True))

    def widened(self, given: Any) -> Any:
        """Return the same numbers; in float64 when the rounding of float32 is being measured."""
        return in_double(given) if self.double else given

    @contextmanager
    def _as_in_a_new_process(self, line: str) -> Iterator[None]:
        """Seed `random`, NumPy and torch for one call; leave the student's own state as it was."""
        seed = int(seeded(self.seed, self.exercise, line, "torch").integers(2**31))
        before, numpys = getstate(), get_bit_generator()
        seed_random(seed)
        set_bit_generator(np.random.MT19937(seed))  # the answer may put another there
        try:
            with self._torch_seeded(seed):
                yield
        finally:
            setstate(before)
            set_bit_generator(numpys)

    @contextmanager
    def _torch_seeded(self, seed: int) -> Iterator[None]:
        if (torch := loaded_torch()) is None:
            yield
            return
        # for devices not in use torch.manual_seed notes where it was called from, which is slow
        used = torch.default_generator if device().type == "cpu" else torch
        forked = torch.random.fork_rng([device()] if device().type == "cuda" else [])
        with forked, torch.enable_grad():  # an earlier answer may have switched them off
            used.manual_seed(seed)
            yield


class Probe:
    """The lines of one layer, model or function that changes layers."""

    def __init__(self, r: Recorder) -> None:
        self.r = r

    @property
    def idea(self) -> Self:
        """Say that the next line holds the idea of the exercise; see `Recorder.idea`."""
        _ = self.r.idea
        return self


def _texts(typed: str | Sequence[str] | Callable[..., Any], cases: Sequence[Args]) -> Sequence[str]:
    if callable(typed):
        return [as_typed(typed, case) for case in cases]
    return [typed] * len(cases) if isinstance(typed, str) else typed


def _did_not_end(call: str, error: KeyboardInterrupt) -> str:
    """Return what was running when a rubric was interrupted, and where."""
    at, last = outcome_of(error).at, call.split("\n")[-1]
    return f"`{last}` did not end" + (f" (in {at})" if at else "")


def _change(before: Plain, after: Plain) -> str:
    """Return what a call did to its arguments, or ""."""
    if apart(after, before).distance == 0 and _types(after) == _types(before):
        return ""
    if any(_modes(one) != _modes(other) for one, other in zip(before, after, strict=True)):
        return "leaves a module in another mode"
    return "changes its arguments"


def _types(value: Plain) -> Any:
    """Return the types of values, in the containers that hold them."""
    match value:
        case list() | tuple():
            return [*map(_types, value)]
        case dict():
            return {repr(key): _types(item) for key, item in value.items()}  # nan is not nan
        case Structure():
            return value.name, _types(value.parts)
    return dtype_of(value) if hasattr(value, "dtype") else type(value)


def _modes(value: Plain) -> Plain:
    return value.parts.get("training") if isinstance(value, Structure) else None


def _check_device(result: Any, given: Any) -> None:
    """Raises ContractBroken when tensors went in on one device and came out on another."""
    inputs = {tensor.device.type for tensor in tensors_in(given)}
    outputs = {tensor.device.type for tensor in tensors_in(result)}
    if inputs and not outputs <= inputs:
        raise ContractBroken(f"the result is on {outputs.pop()}, the input on {inputs.pop()}")
