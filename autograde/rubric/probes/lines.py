"""The rubric: a public cell that calls an answer on drawn inputs and records the outcomes.

Each method of `Rubric` is a probe. Its first argument is a sentence of the contract, the rest is
what to call. docs/authoring.md teaches them; every docstring has an example.
"""

import inspect
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from autograde.rubric import session
from autograde.rubric.given import with_given_names
from autograde.rubric.probes import examples
from autograde.rubric.probes.blocks import BlockProbes
from autograde.rubric.probes.caches import CachedLayerProbe, CacheProbes
from autograde.rubric.probes.copies import CopyProbe
from autograde.rubric.probes.draws import device
from autograde.rubric.probes.layers import LayerProbe
from autograde.rubric.probes.models import ModelProbes
from autograde.rubric.probes.plain import (
    Args,
    ContractBroken,
    as_typed,
    map_floats,
    parameter_names,
    refusal,
    snapshot,
    turned,
)
from autograde.rubric.probes.random_results import RandomProbes
from autograde.rubric.recording import Recording, Stop


def rubric(
    exercise: str, forbids: Sequence[str] = ()
) -> Callable[[Callable[["Rubric"], None]], None]:
    """Decorate the function that holds the lines of an exercise; it runs at once.

        @rubric("attention_scores")
        def _(r):
            r.call("two queries, four keys", attention_scores, r.normal(2, 3), r.normal(4, 3))

    Args:
        forbids: endings of names of torch functions that the answer must do without.
    """

    def run(lines: Callable[["Rubric"], None]) -> None:
        session.remember(exercise, partial(run, lines))
        now = session.current()
        r = Rubric(exercise, now.seed, double=now.double, forbids=forbids)
        stopped = interrupt = None
        try:
            if exercise in lines.__globals__:
                _require_own(exercise, lines.__globals__[exercise])
            with_given_names(lines)(r)
        except KeyboardInterrupt as error:
            stopped, interrupt = Stop("KeyboardInterrupt", ""), error
        except Exception as error:
            missing = getattr(error, "name", None) if isinstance(error, NameError) else None
            stopped = Stop(type(error).__name__, str(error), missing or "")
        now.finish(Recording(exercise, tuple(r.lines), stopped))
        if interrupt is not None:
            raise interrupt

    return run


def _require_own(exercise: str, answer: Any) -> None:
    """Raises what ends a rubric whose answer cannot be called, or is not the student's own.

    Raises:
        TypeError: the name holds a value now, perhaps the result of a call.
        ContractBroken: the answer is, or inherits from, something of this package.
    """
    if not callable(answer) or isinstance(answer, nn.Module):
        kind = type(answer).__name__
        raise TypeError(
            f"{exercise} holds a value ({kind}) now. Run the cell that defines it again."
        )
    for part in inspect.getmro(answer) if inspect.isclass(answer) else (answer,):
        module = getattr(part, "__module__", None)
        if isinstance(module, str) and module.startswith("autograde."):
            raise ContractBroken(f"{part.__name__} is from {module}; write it yourself")


class Rubric(RandomProbes, ModelProbes, BlockProbes, CacheProbes):
    """The probes that a rubric cell calls."""

    examples = examples

    def call(self, line: str, answer: Callable[..., Any], *args: Any) -> None:
        """Record what the answer returns for these arguments.

        r.call("two queries, four keys", attention_scores, r.normal(2, 3), r.normal(4, 3))
        """
        self.record(line, "call", answer, [args])

    def each(self, line: str, answer: Callable[..., Any], *cases: Args) -> None:
        """Record what the answer returns for each tuple of arguments, the smallest first.

        r.each("any number of tokens", causal_mask, (1,), (3,), (r.integer(5, 40),))
        """
        self.record(line, "call", answer, cases)

    def refuses(self, line: str, answer: Callable[..., Any], *cases: Args) -> None:
        """Record for each tuple of arguments whether the answer raises a ValueError.

        r.refuses("raises ValueError when n is below 1", causal_mask, (0,), (-3,))
        """
        self.record(line, "refuses", partial(refusal, answer), cases, answer)

    def gradient(self, line: str, answer: Callable[..., Tensor], *args: Any) -> None:
        """Record the gradients at all float tensors among the arguments except masks of 0 and 1.

        The scalar that is differentiated is the sum of the output times fixed random numbers.

            r.gradient("lets gradients through", attention_scores, r.normal(2, 3), r.normal(4, 3))
        """

        def run(*args: Any) -> dict[str, Tensor | None]:
            named = zip(parameter_names(answer, len(args)), args, strict=True)
            leaves = {name: x for name, x in named if isinstance(x, Tensor) and x.requires_grad}
            return self.gradients(line, answer(*args), leaves)

        self.record(line, "gradient", run, [map_floats(self.widened(args), _leaf)], answer)

    def check(self, line: str, check: str, answer: Callable[..., Any], *cases: Args) -> None:
        """Record results that can be right in many ways; the check of that name judges them.

        r.check("a share p is 0", "share_of_zeros", keep_mask, ((90, 50), 0.2))
        """
        self.record(line, check, answer, cases)

    def hears(
        self,
        line: str,
        check: str,
        answer: Callable[..., Any],
        inner: Callable[..., Any],
        *args: Any,
    ) -> None:
        """Record what the answer passes to the function in its first argument; a check judges it.

        r.hears("changes the future alone", "changes_the_future", future_influence,
                r.examples.renormalised, r.normal(80, 80))
        """

        def run(*args: Any) -> list[Any]:
            heard: list[Any] = []

            def listening(given: Any) -> Any:
                heard.append(snapshot(given))
                return inner(given)

            answer(listening, *args)
            return heard

        self.record(line, check, run, [args], as_typed(answer, (inner, *args)))

    def conventions(self, answer: Callable[..., Any], *args: Any) -> None:
        """Record the last three lines of most rubrics: float64, gradients, arguments left alone.

        r.conventions(attention_scores, r.normal(3, 2), r.normal(4, 2))
        """
        double = map_floats(args, lambda x: turned(x.double()))
        self.call("float64 in, float64 out, for any layout in memory", answer, *double)
        self.gradient("lets gradients through", answer, *args)
        self.unchanged("leaves its arguments as they were")

    def layer(self, module: type[nn.Module], **sizes: Any) -> LayerProbe:
        """Return a probe of a layer built with these sizes, in the order given.

        layer = r.layer(SelfAttention_v2, d_in=3, d_out=2, qkv_bias=False)
        layer.linear("W_query W_key W_value", "d_in -> d_out", bias="qkv_bias")
        layer.outputs("one sentence", r.normal(6, 3))
        """
        return LayerProbe(self, module, sizes)

    def cached_layer(self, module: type[nn.Module], **sizes: Any) -> CachedLayerProbe:
        """Return a probe of a layer whose forward takes a cache too; for the rest like `layer`.

        layer = r.cached_layer(CachedMultiHeadAttention, d_in=4, d_out=6, context_length=8)
        """
        return CachedLayerProbe(self, module, sizes)

    def copies(
        self, answer: Callable[..., Any], *layers: LayerProbe, source: LayerProbe
    ) -> CopyProbe:
        """Return a probe of a function that copies one layer's weights into another.

        copy = r.copies(match_weights, v1, v2, source=v2)
        copy.outputs("v1 gives the output of v2", r.normal(6, 3))
        """
        return CopyProbe(self, answer, layers, source)

    def switched(self, module: type[nn.Module]) -> Callable[[Tensor, float, bool], Any]:
        """Return a function (x, p, training) that sets the mode of a layer and calls it.

        A layer is built once for each p, inside a model, beside a second one in the other mode.

            r.each("x as it is after eval()", r.switched(Dropout), (r.normal(3, 4), 0.5, False))
        """

        @cache
        def built(p: float) -> tuple[nn.Module, nn.Module]:
            return nn.Sequential(module(p)), nn.Sequential(module(p))

        def call(x: Tensor, p: float, training: bool) -> Any:
            model, other = built(p)
            model.train(not training)
            model.train(training)
            other.train(not training)
            return model(x)

        call.__name__ = f"{module.__name__}({{p}}).train({{training}})({{x}})"
        return call

    def visible(self, answer: Callable[..., Tensor]) -> Callable[..., Tensor]:
        """Return a function (scores, mask) that gives the answer's result with 0 where hidden.

        r.call("a visible nan stays visible", r.visible(masked_softmax), scores, mask)
        """

        def call(scores: Tensor, mask: Tensor) -> Tensor:
            return answer(scores, mask).masked_fill(mask, 0.0)

        call.__name__ = answer.__name__
        return call

    def module(self, name: str, *sizes: int) -> nn.Module:
        """Return one of the modules of `examples`, with drawn weights.

        r.each("buffers do not count", count_parameters, (r.module("with buffers", 3, 4),))
        """
        made = examples.MODULES[name](*sizes).to(device())
        vars(made)["called"] = f"<{getattr(made, 'called', name)}>"  # shown in the call
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.copy_(
                    self.normal(*parameter.shape) / max(1, 1, *parameter.shape[1:]) ** 0.5
                )
        return made.double() if self.double else made

    def modules(self, x: Tensor, *names: str) -> list[Args]:
        """Return a case (module, x) for each name, in random order: an answer cannot rely on it.

        r.each("tells them apart", peeks, *r.modules(x, "recurrent", "mask after softmax"))
        """
        drawn = [names[i] for i in self._numbers.permutation(len(names))]
        return [(self.module(name, x.shape[-1]), x) for name in drawn]

    def forbids(self, line: str, answer: Callable[..., Any]) -> None:
        """Record which forbidden functions the answer called on the lines before.

        r.forbids("does without PyTorch's softmax", stable_softmax)
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
