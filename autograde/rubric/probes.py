"""The rubric: a public cell that calls an answer on drawn inputs and records what comes of it."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from autograde.rubric import session
from autograde.rubric.draws import Draws, device, seeded
from autograde.rubric.packing import DTYPES, Plain
from autograde.rubric.recording import INTERRUPTED, REFUSALS, Line, Outcome, Recording

MAX_ENTRIES = 1_000_000


class ContractBroken(Exception):
    """An answer misses something its contract names; the message is for the student."""


def rubric(exercise: str, forbids: Sequence[str] = ()) -> "Rubric":
    """Open the rubric of an exercise.

    In a lesson it decorates a function, which runs at once: names used inside stay inside, and
    cannot overwrite a helper of the student's that has the same name.

        @rubric("attention_scores")
        def _rubric(r):
            r.call("five queries, eight keys", attention_scores, r.normal(5, 7), r.normal(8, 7))

    Args:
        forbids: endings of names of torch functions that the answer must do without; they are
            watched for on every line.
    """
    return Rubric(exercise, session.current(), forbids)


class Rubric(Draws):
    """Records lines. Each stands alone: one that raises does not stop the next."""

    def __init__(self, exercise: str, run: session.Session, forbids: Sequence[str] = ()) -> None:
        super().__init__(run.seed, exercise)
        self._watch = _Operations(forbids)
        self._exercise = exercise
        self._run = run
        self._lines: list[Line] = []

    def __call__(self, lines: Callable[["Rubric"], None]) -> None:
        """Run a function with the rubric's lines."""
        with self:
            lines(self)

    def __enter__(self) -> "Rubric":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        stopped = None if kind is None else f"{kind.__name__}: {error}"
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            stopped = INTERRUPTED
        self._run.finish(Recording(self._exercise, tuple(self._lines), stopped))

    def call(self, line: str, answer: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Record what `answer(*args, **kwargs)` returns or raises."""
        args, kwargs = self._widened((args, kwargs))
        self._record(line, "call", lambda: answer(*args, **kwargs), (args, kwargs))

    def check(
        self, line: str, check: str, answer: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> None:
        """Record a result of which more than one is right; the check of that name decides."""
        given = kwargs or args
        self._record(line, "check", lambda: answer(*args, **kwargs), given, check)

    def gradient(self, line: str, answer: Callable[..., Tensor], *args: Any, **kwargs: Any) -> None:
        """Record the gradients at every float tensor among the arguments.

        The scalar that is differentiated is the sum of the output times fixed random numbers.
        """
        leaves: list[Tensor] = []
        args, kwargs = _leaves(self._widened((args, kwargs)), leaves)

        def run() -> list[Tensor | None]:
            return self._gradients(line, answer(*args, **kwargs), leaves)

        self._record(line, "gradient", run, (args, kwargs))

    def forward(
        self,
        line: str,
        module: type[nn.Module],
        sizes: Sequence[Any],
        weights: Mapping[str, Tensor],
        *inputs: Tensor,
        then: Mapping[str, Tensor] | None = None,
        **options: Any,
    ) -> None:
        """Record the outputs of `module(*sizes, **options)`, with these weights, on each input.

        With `then`, these weights are loaded after that and the first input is tried again.
        """

        def use(loaded: nn.Module, then: Mapping[str, Tensor], *inputs: Tensor) -> list[Any]:
            outputs = [loaded(x) for x in inputs]
            return outputs + ([load(loaded, then)(inputs[0])] if then else [])

        self.module(line, module, sizes, weights, use, dict(then or {}), *inputs, **options)

    def module(
        self,
        line: str,
        module: type[nn.Module],
        sizes: Sequence[Any],
        weights: Mapping[str, Tensor],
        use: Callable[..., Any],
        *args: Any,
        check: str | None = None,
        **options: Any,
    ) -> None:
        """Record what `use` makes of `module(*sizes, **options)` with these weights, and of `args`.

        With `check`, the check of that name decides; it is given the weights and `args`.
        """
        given = self._widened((dict(weights), *args))

        def run() -> Any:
            return use(load(module(*sizes, **options), given[0]), *given[1:])

        self._record(line, "check" if check else "call", run, given, check)

    def backward(
        self,
        line: str,
        module: type[nn.Module],
        sizes: Sequence[Any],
        weights: Mapping[str, Tensor],
        x: Tensor,
        **options: Any,
    ) -> None:
        """Record the gradients at every loaded weight and at the input."""
        weights, x = self._widened((dict(weights), x))
        x = x.detach().clone().requires_grad_()

        def run() -> list[Tensor | None]:
            loaded = load(module(*sizes, **options), weights)
            leaves = [loaded.get_parameter(name) for name in weights]
            return self._gradients(line, loaded(x), [*leaves, x])

        self._record(line, "gradient", run, (dict(weights), x))

    def refuses(self, line: str, answer: Callable[..., Any], *cases: tuple[Any, ...]) -> None:
        """Record which cases of arguments the answer refuses; give some that are good as well.

        The cases are tried in an order drawn from the seed.
        """
        order = self._numbers.permutation(len(cases))
        drawn = [cases[i] for i in order]
        self._record(line, "refuses", lambda: [_refusal(answer, case) for case in drawn], drawn)

    def forbids(self, line: str, answer: Callable[..., Any]) -> None:
        """Record which forbidden functions the answer named, or called on the lines so far."""

        def run() -> Plain:
            return {"source": _source(answer), "ops": sorted(self._watch.found)}

        self._record(line, "forbids", run, list(self._watch.names))

    def arguments(self, line: str) -> None:
        """Whether the calls so far left their arguments as they were."""
        self._record(line, "arguments", lambda: None, None)

    def _widened(self, given: Any) -> Any:
        """The same numbers in float64, when what float32 rounds off is being measured."""
        return _map_floats(given, Tensor.double) if self._run.double else given

    @contextmanager
    def _own_random_state(self, line: str) -> Iterator[None]:
        """Seed torch for one line, and leave the student's own random state as it was."""
        seed = int(seeded(self._run.seed, self._exercise, line, "torch").integers(2**31))
        # for devices not in use torch.manual_seed notes where it was called from, which is slow
        used = torch.default_generator if device().type == "cpu" else torch
        with torch.random.fork_rng([device()] if device().type == "cuda" else []):
            used.manual_seed(seed)
            yield

    def _gradients(self, line: str, output: Any, leaves: list[Tensor]) -> list[Tensor | None]:
        if not isinstance(output, Tensor):
            raise ContractBroken(f"the result is a {type(output).__name__}, expected a tensor")
        if not output.requires_grad:
            raise ContractBroken("no gradient passes: the result is cut off from its inputs")
        numbers = seeded(self._run.seed, self._exercise, line).standard_normal(output.numel())
        direction = torch.from_numpy(numbers).to(output).view(output.shape)
        gradients = torch.autograd.grad((output * direction).sum(), leaves, allow_unused=True)
        return list(gradients)

    def _record(
        self, line: str, kind: str, run: Callable[[], Any], given: Any, check: str | None = None
    ) -> None:
        before = to_plain(given)
        try:
            with self._own_random_state(line), self._watch:
                result = run()
            _check_device(result, given)
            outcome = Outcome(value=to_plain(result))
        except Exception as error:
            outcome = Outcome(error=_family(error), message=str(error))
        self._lines.append(Line(line, kind, before, to_plain(given), outcome, check))


def _refusal(answer: Callable[..., Any], case: tuple[Any, ...]) -> str:
    try:
        answer(*case)
    except NotImplementedError:
        raise  # an untouched exercise refuses nothing: the line is not written yet
    except Exception as error:
        family = _family(error)
        return "refused" if family in REFUSALS else f"raised {family}"
    return "accepted"


def _source(answer: Callable[..., Any]) -> str:
    """The text of a function; nothing for what has none, as an object that can be called."""
    try:
        return inspect.getsource(answer) if inspect.isfunction(answer) else ""
    except (OSError, TypeError):
        return ""


def _family(error: Exception) -> str:
    """The name of the exception; a subclass of the two refusals counts as its parent."""
    for kind in (NotImplementedError, AssertionError, ValueError):
        if isinstance(error, kind):
            return kind.__name__
    return type(error).__name__


def load(module: nn.Module, weights: Mapping[str, Tensor]) -> nn.Module:
    """Copy weights into a module's parameters by name; buffers are left alone.

    Raises:
        ContractBroken: a parameter is missing, has another shape, or is not float32 as it should.
    """
    if not isinstance(module, nn.Module):
        raise ContractBroken(f"a {type(module).__name__} was built, expected an nn.Module")
    parameters = dict(module.named_parameters(remove_duplicate=False))
    for name, weight in weights.items():
        if name not in parameters:
            raise ContractBroken(f"there is no parameter called {name}")
        if parameters[name].shape != weight.shape:
            raise ContractBroken(
                f"{name} has the shape {tuple(parameters[name].shape)}, "
                f"expected {tuple(weight.shape)}"
            )
        if weight.dtype == torch.float32 != parameters[name].dtype:
            raise ContractBroken(f"{name} is {parameters[name].dtype}, expected torch.float32")
    some = next(iter(weights.values()))
    module.to(some.device, some.dtype)
    with torch.no_grad():
        for name, weight in weights.items():
            module.get_parameter(name).copy_(weight)
    return module


def to_plain(value: Any) -> Plain:
    """A copy of a value as plain data; what cannot be recorded is named by its type."""
    match value:
        case Tensor():
            return _plain_tensor(value)
        case None | bool() | str():
            return value
        case int():
            return int(value)
        case float():
            return float(value)
        case list():
            return [to_plain(item) for item in value]
        case tuple():
            return tuple(to_plain(item) for item in value)
        case dict():
            return {str(key): to_plain(item) for key, item in value.items()}
        case torch.Generator():
            return {"generator": value.initial_seed()}
    return {"unrecordable": f"a {type(value).__name__}"}


def _tensors(value: Any) -> Iterator[Tensor]:
    match value:
        case Tensor():
            yield value
        case list() | tuple():
            for item in value:
                yield from _tensors(item)
        case dict():
            yield from _tensors(list(value.values()))


def _check_device(result: Any, given: Any) -> None:
    """Raises ContractBroken when tensors went in on one device and came out on another."""
    inputs = {tensor.device.type for tensor in _tensors(given)}
    outputs = {tensor.device.type for tensor in _tensors(result)}
    if inputs and not outputs <= inputs:
        raise ContractBroken(f"the result is on {outputs.pop()}, the input on {inputs.pop()}")


def _plain_tensor(tensor: Tensor) -> Plain:
    if tensor.numel() > MAX_ENTRIES:
        return {"unrecordable": f"a tensor of shape {tuple(tensor.shape)}"}
    if tensor.dtype not in DTYPES or tensor.layout != torch.strided:
        return {"unrecordable": f"a tensor of {tensor.dtype}, {tensor.layout}"}
    return tensor.detach().cpu().clone()


def _leaves(value: Any, found: list[Tensor]) -> Any:
    """The value with each float tensor replaced by a leaf that wants a gradient."""

    def leaf(tensor: Tensor) -> Tensor:
        found.append(tensor.detach().clone().requires_grad_())
        return found[-1]

    return _map_floats(value, leaf)


def _map_floats(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The value with each float tensor in it changed."""
    match value:
        case Tensor() if value.is_floating_point():
            return change(value)
        case list() | tuple():
            return type(value)(_map_floats(item, change) for item in value)
        case dict():
            return {key: _map_floats(item, change) for key, item in value.items()}
    return value


class _Operations(TorchFunctionMode):
    """Notes the torch functions called inside it whose name ends with a forbidden one."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self.names = tuple(names)
        self.found: set[str] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if self.names and name.endswith(self.names):
            self.found.add(f"torch's {name.strip('_')}")
        return func(*args, **(kwargs or {}))
