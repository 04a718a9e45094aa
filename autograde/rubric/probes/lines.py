"""The rubric: a public cell that calls an answer on drawn inputs and records the outcomes.

Each method of `Rubric` is a probe. Its first argument is a sentence of the contract, the rest is
what to call. docs/rubric.md lists them; every docstring has an example.
"""

from __future__ import annotations

import builtins
import inspect
import warnings
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from autograde.rubric import session
from autograde.rubric.lesson_names import given_in, with_given_names
from autograde.rubric.probes.calls import (
    Args,
    ContractBroken,
    map_floats,
    outcome_of,
    parameter_names,
    refusal,
    snapshot,
    turned,
)
from autograde.rubric.probes.recorder import Recorder
from autograde.rubric.recording import Recording, Stop
from autograde.values.loaded_torch import is_module, is_tensor

if TYPE_CHECKING:
    from torch import Tensor, nn

    from autograde.rubric.probes.layers import LayerProbe

_probes: dict[str, type[Rubric]] = {}
"""The class of `r` in a course's rubrics, by the course's package."""


def register(package: str, probes: type[Rubric]) -> None:
    """Say that a course's package is here: rubrics call its probes, and it holds no answers."""
    _probes[package] = probes


def rubric(
    exercise: str, forbids: Sequence[str] = ()
) -> Callable[[Callable[[Rubric], None]], None]:
    """Decorate the function that holds the lines of an exercise; it runs at once.

        @rubric("all_products")
        def _(r):
            r.call("two rows, four rows", all_products, r.normal(2, 3), r.normal(4, 3))

    Args:
        forbids: endings of names of torch functions that the answer must do without.
    """

    def run(lines: Callable[[Rubric], None]) -> None:
        now = session.current()
        now.begin(exercise)
        package = next(reversed(_probes), "") if now.package is None else now.package
        probes = _probes.get(package, Rubric)
        given = given_in(lines.__globals__).names.values()
        r = probes(exercise, now.seed, double=now.double, forbids=forbids, given=given)
        ended: BaseException | None = None
        try:
            if exercise in lines.__globals__:
                _require_own(exercise, lines.__globals__[exercise], package)
            with warnings.catch_warnings(), patch.object(builtins, "input", _nobody_answers):
                warnings.simplefilter("ignore")  # what they warn of, the panel says
                with_given_names(lines)(r)
        except (Exception, KeyboardInterrupt) as error:
            ended = error
        stopped = _stop(ended, r, lines.__globals__) if ended else None
        now.finish(Recording(exercise, tuple(r.lines), stopped))
        if isinstance(ended, KeyboardInterrupt):
            said = f"Interrupted: {r.interrupted or 'the rubric'}"
            ended._render_traceback_ = lambda: [said]  # type: ignore[attr-defined]
            raise ended

    return run


def _stop(error: BaseException, r: Rubric, namespace: dict[str, Any]) -> Stop:
    """Return what ended a rubric early, as it is recorded."""
    if isinstance(error, KeyboardInterrupt):
        return Stop("KeyboardInterrupt", r.interrupted)
    missing = (error.name or "") if isinstance(error, NameError) else ""
    near = _like(missing, namespace)
    return Stop(type(error).__name__, str(error), missing, near, outcome_of(error).at)


def _nobody_answers(_prompt: object = "") -> str:
    """Stands for `input` while a rubric runs: in grading nobody is there."""
    raise EOFError("nobody is there to answer input(); use the arguments")


def _like(missing: str, namespace: dict[str, Any]) -> str:
    """Return the name of a function or class of the notebook that is nearly the missing one."""
    given = given_in(namespace).names
    place = namespace.get("__name__")
    own = [
        name
        for name, value in namespace.items()
        if callable(value) and name not in given and getattr(value, "__module__", None) == place
    ]
    return next(iter(get_close_matches(missing, own, n=1, cutoff=0.8)), "")


def _require_own(exercise: str, answer: Any, package: str) -> None:
    """Raises what ends a rubric whose answer cannot be called, or is not the student's own."""
    if not callable(answer) or is_module(answer):
        held = type(answer).__name__
        raise TypeError(
            f"{exercise} holds a value ({held}), not a function or a class. "
            "Run the cell that defines it again."
        )
    for part in inspect.getmro(answer) if inspect.isclass(answer) else (answer,):
        module = getattr(part, "__module__", None)
        if isinstance(module, str) and module.partition(".")[0] in {"autograde", package} - {""}:
            raise ContractBroken(f"{part.__name__} is from {module}; write it yourself")


class Rubric(Recorder):
    """The probes that a rubric cell calls."""

    def call(self, line: str, answer: Callable[..., Any], *args: Any) -> None:
        """Record what the answer returns for these arguments.

        r.call("two rows, four rows", all_products, r.normal(2, 3), r.normal(4, 3))
        """
        self.record(line, "call", answer, [args])

    def each(self, line: str, answer: Callable[..., Any], *cases: Args) -> None:
        """Record what the answer returns for each tuple of arguments, the smallest first.

        r.each("any size", identity, (1,), (3,), (r.integer(5, 40),))
        """
        self.record(line, "call", answer, cases)

    def refuses(
        self,
        line: str,
        answer: Callable[..., Any],
        *cases: Args,
        error: type[Exception] = ValueError,
    ) -> None:
        """Record for each tuple of arguments whether the answer raises a ValueError, or `error`.

        r.refuses("raises ValueError when n is below 1", identity, (0,), (-3,))
        """
        self.record(line, "refuses", partial(refusal, answer, error=error), cases, answer)

    def gradient(self, line: str, answer: Callable[..., Tensor], *args: Any) -> None:
        """Record the gradients at all float tensors among the arguments except masks of 0 and 1.

        The scalar that is differentiated is the sum of the output times fixed random numbers.

            r.gradient("lets gradients through", all_products, r.normal(2, 3), r.normal(4, 3))
        """

        def run(*args: Any) -> dict[str, Tensor | None]:
            named = zip(parameter_names(answer, len(args)), args, strict=True)
            leaves = {name: x for name, x in named if is_tensor(x) and x.requires_grad}
            return self.gradients(line, answer(*args), leaves)

        self.record(line, "gradient", run, [map_floats(self.widened(args), _leaf)], answer)

    def check(self, line: str, check: str, answer: Callable[..., Any], *cases: Args) -> None:
        """Record results that can be right in many ways; the check of that name judges them.

        r.check("a share p is 1", "share_of_ones", coins, (5000, 0.2))
        """
        self.record(line, check, answer, cases)

    def sample(
        self, line: str, check: str, answer: Callable[..., Any], *args: Any, times: int
    ) -> None:
        """Record many results of a call that draws with torch's own generator; a check judges them.

        r.sample("measurements scatter", "scatters", mean_of_draws, 8, 50, times=200)
        """

        def run(*args: Any) -> list[Any]:
            return [answer(*snapshot(args)) for _ in range(times)]

        self.record(line, check, run, [args], answer)

    def conventions(self, answer: Callable[..., Any], *args: Any) -> None:
        """Record the last three lines of most rubrics: float64, gradients, arguments left alone.

        r.conventions(all_products, r.normal(3, 2), r.normal(4, 2))
        """
        double = map_floats(args, lambda x: turned(x.double()))
        self.call("float64 in, float64 out, for any layout in memory", answer, *double)
        self.gradient("lets gradients through", answer, *args)
        self.unchanged("leaves its arguments as they were")

    def layer(self, module: type[nn.Module], **sizes: Any) -> LayerProbe:
        """Return a probe of a layer built with these sizes, in the order given.

        layer = r.layer(Affine, d_in=3, d_out=2)
        layer.linear("inner", "d_in -> d_out", bias="always")
        layer.outputs("six rows", r.normal(6, 3))
        """
        from autograde.rubric.probes.layers import LayerProbe

        return LayerProbe(self, module, sizes)

    def forbids(self, line: str, answer: Callable[..., Any]) -> None:
        """Record which forbidden functions the answer called on the lines before.

        r.forbids("does without PyTorch's softmax", own_softmax)
        """

        def run(*_names: str) -> list[str]:
            return sorted(self.used)

        typed = getattr(answer, "__name__", self.exercise)
        self.record(line, "forbids", run, [self.forbidden], typed)


def _leaf(tensor: Tensor) -> Tensor:
    """Return a copy to take the gradient at; a mask of 0 and 1 is returned as it is."""
    if bool(((tensor == 0) | (tensor == 1)).all()):
        return tensor
    return tensor.detach().clone().requires_grad_()
