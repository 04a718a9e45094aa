"""Probes of dropout: judged by their statistics, never by another's draws."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from autograde.rubric.probes.calls import ContractBroken, as_typed, snapshot
from autograde.rubric.probes.recorder import Recorder


class DropoutProbes(Recorder):
    """Lines on answers that drop entries at random."""

    def drops(
        self, line: str, answer: Callable[..., Tensor], x: Tensor, p: float, *rest: Any
    ) -> None:
        """Record dropped copies of x: each entry 0 or x / (1 - p), a share p of them 0.

        r.drops("drops a share p, divides the rest by 1 - p",
                inverted_dropout, r.nonzero(9, 50), 0.3, True)
        """

        def run(x: Tensor, p: float, *rest: Any) -> list[Tensor]:
            copies = [answer(x.clone(), p, *rest) for _ in range(3)]
            return [*copies, answer(x, p, *rest)]  # x itself: an answer may change it in place

        self.record(line, "dropped_copies", run, [(x, p, *rest)], answer)

    def drops_in_training(
        self, line: str, answer: Callable[..., Tensor], x: Tensor, p: float
    ) -> None:
        """Record results for (x, p, training) in training, with and without no_grad(), and in use.

        r.drops_in_training("in training drops and scales, in use gives x",
                            inverted_dropout, r.nonzero(40, 50), 0.3)
        """

        def run(x: Tensor, p: float) -> dict[str, Any]:
            used = answer(x.clone().requires_grad_(), p, False)
            if isinstance(used, Tensor) and not used.requires_grad:
                raise ContractBroken("in use its result is cut off from x, so no gradient passes")
            copies = [answer(x.clone(), p, True)]
            with torch.no_grad():
                copies += [answer(x.clone(), p, True) for _ in range(2)]
            copies.append(answer(x, p, True))  # x itself: an answer may change it in place
            return {"in training": copies, "in use": used}

        typed = as_typed(answer, (x, p, ...))  # in both modes
        self.record(line, "drops_in_training", run, [(x, p)], typed)

    def drops_independently(self, line: str, answer: Callable[..., Tensor], *args: Any) -> None:
        """Record where 60 results are 0: a share p, each by itself, anew at each call.

        The second argument of the answer is p; take one near a half.

            r.drops_independently("drops each entry by itself, anew at each call",
                                  inverted_dropout, r.nonzero(4, 3, 6, 4), 0.45, True)
        """

        def run(*args: Any) -> Tensor:
            return torch.stack([answer(*snapshot(args)) == 0 for _ in range(60)])

        self.record(line, "coins", run, [args], answer)

    def where_rand_is_zero(self, answer: Callable[..., Tensor]) -> Callable[..., Tensor]:
        """Return the answer, called where torch.rand((60, 60)) on the CPU holds an exact 0.

        r.call("keeps an entry that draws 0", r.where_rand_is_zero(keep_mask), (60, 60), 0.0)
        """

        def call(*args: Any) -> Tensor:
            torch.manual_seed(9232)
            return answer(*args)

        call.__name__ = answer.__name__
        return call

    def drop_gradient(
        self, line: str, answer: Callable[..., Tensor], x: Tensor, *args: Any
    ) -> None:
        """Record a dropped copy of x and the gradient at x: what each entry was multiplied by.

        r.drop_gradient("gradients pass", inverted_dropout, r.nonzero(15, 16), 0.4, True)
        """
        direction = self.normal(*x.shape, dtype=x.dtype)

        def run(x: Tensor, direction: Tensor) -> list[Tensor | None]:
            leaf = x.clone().requires_grad_()
            y = answer(1 * leaf, *args)  # an in-place answer changes the product, not the leaf
            if not isinstance(y, Tensor) or not y.requires_grad:
                return [y, None]
            (y * direction).sum().backward()
            return [y, leaf.grad]

        typed = as_typed(answer, (x, *args))
        self.record(line, "passes_gradients", run, [(x, direction)], typed)
