"""The rubric of this course: the grader's probes, and those of attention."""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from attention_course.probes import examples
from attention_course.probes.attention_layers import AttentionProbe
from attention_course.probes.blocks import BlockProbes
from attention_course.probes.caches import CachedLayerProbe, CacheProbes
from attention_course.probes.copies import CopyProbe
from attention_course.probes.dropped import DropoutProbes
from attention_course.probes.models import ModelProbes
from attention_course.probes.tokens import TokenProbes
from autograde.rubric.probes import lines
from autograde.rubric.probes.calls import Args, as_typed, snapshot
from autograde.rubric.probes.draws import device
from autograde.rubric.probes.layers import LayerProbe


class Rubric(DropoutProbes, TokenProbes, ModelProbes, BlockProbes, CacheProbes, lines.Rubric):
    """The probes that a rubric cell of this course calls."""

    examples = examples

    def mask(self, *shape: int, empty_rows: bool = False) -> Tensor:
        """Draw a bool mask (..., m), True = hidden: in each row at least two visible, one hidden.

        With `empty_rows` every third row, from the second on, is hidden entirely.
        """
        coins = torch.from_numpy(self.rng.uniform(size=shape) < 0.5)
        order = torch.from_numpy(self.rng.uniform(size=shape)).argsort(dim=-1)
        hidden = (order >= 2) & (coins | (order == shape[-1] - 1))
        if empty_rows:
            hidden[..., 1::3, :] = True
        return hidden.to(device())

    def layer(self, module: type[nn.Module], **sizes: Any) -> AttentionProbe:
        """Return a probe of a layer built with these sizes, in the order given.

        layer = r.layer(SelfAttention_v2, d_in=3, d_out=2, qkv_bias=False)
        layer.linear("W_query W_key W_value", "d_in -> d_out", bias="qkv_bias")
        layer.outputs("one sentence", r.normal(6, 3))
        """
        return AttentionProbe(self, module, sizes)

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

    def cached_layer(self, module: type[nn.Module], **sizes: Any) -> CachedLayerProbe:
        """Return a probe of a layer whose forward takes a cache too; for the rest like `layer`.

        layer = r.cached_layer(CachedMultiHeadAttention, d_in=4, d_out=6, context_length=8)
        """
        return CachedLayerProbe(self, module, sizes)

    def copies(
        self, answer: Callable[..., Any], source: LayerProbe, target: LayerProbe
    ) -> CopyProbe:
        """Return a probe of a function that copies one layer's weights into another.

        copy = r.copies(pack_heads, wrapper, mha)
        copy.outputs("mha gives the output of the wrapper", r.normal(2, 6, 3))
        """
        return CopyProbe(self, answer, source, target)

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

        r.each("tells them apart", peeks, *r.modules(x, "causal attention", "mask after softmax"))
        """
        drawn = [names[i] for i in self.rng.permutation(len(names))]
        return [(self.module(name, x.shape[-1]), x) for name in drawn]
