"""Probes of random results: judged by their statistics, never by another's draws."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from autograde.rubric.probes.plain import Args, ContractBroken, as_typed, snapshot
from autograde.rubric.probes.recorder import Recorder


class RandomProbes(Recorder):
    """Lines on answers that draw random numbers."""

    def sample(
        self, line: str, check: str, answer: Callable[..., Any], *args: Any, times: int
    ) -> None:
        """Record many results of a call, its last argument a fresh generator; a check judges them.

        r.sample("measurements scatter", "scatters_about_root", dot_product_std, 8, 50, times=200)
        """
        start = self.integer(1, 10**6)

        def run(*args: Any) -> list[Any]:
            return [answer(*snapshot(args), _generator(start + i, args)) for i in range(times)]

        self.record(line, check, run, [args], answer)

    def logits(self, *chances: tuple[float, ...]) -> Tensor:
        """Return logits (rows, v) with these probabilities, each row in a drawn order.

        r.logits((0.7, 0.2, 0.1), (0.5, 0.3, 0.2))
        """
        order = self.normal(len(chances), len(chances[0])).argsort(dim=-1)
        logs = torch.tensor(chances).log().to(order.device).gather(-1, order)
        return logs + self.normal(len(chances), 1)

    def draws_tokens(
        self, line: str, answer: Callable[..., Tensor], *cases: Args, times: int = 1_000
    ) -> None:
        """Record two draws of many tokens for each (logits, ...); `drawn_tokens` counts them.

        The rows of the given logits (rows, v) stand there so many times.

            r.draws_tokens("as the softmax says", sample, (r.logits((0.7, 0.2, 0.1)), 0.5, 0.9))
        """

        def run(*args: Any) -> list[Any]:
            return [answer(*snapshot(args)), answer(*args)]  # it may change args in place

        many = [(case[0].repeat(times, 1), *case[1:]) for case in cases]
        self.record(line, "drawn_tokens", run, many, answer)

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

    def follows_generator(self, line: str, answer: Callable[..., Any], *args: Any) -> None:
        """Record whether results depend on the generator alone, and on torch's own without one.

        r.follows_generator("draws from its generator alone", keep_mask, (6, 7), 0.5)
        """
        one, two = self.integer(1, 10**6), self.integer(10**6 + 1, 10**7)

        def result(own: int, generator: torch.Generator | None) -> Any:
            torch.manual_seed(own)
            return answer(*snapshot(args), generator)

        def run(*args: Any) -> dict[str, Any]:
            used = _generator(one, args)
            first, later = result(1, used), result(2, used)
            torch.manual_seed(one)
            state = torch.get_rng_state()
            answer(*snapshot(args), _generator(one, args))
            kept = torch.equal(torch.get_rng_state(), state)
            return {
                "same state": [first, result(3, _generator(one, args))],
                "other state": [first, later, result(1, _generator(two, args))],
                "own, same state": [result(one, None), result(one, None)],
                "own, other state": [result(one, None), result(two, None)],
                "leaves torch's own state alone": kept,
            }

        self.record(line, "follows_generator", run, [args], answer)


def _generator(seed: int, args: Args) -> torch.Generator:
    """Return a generator for the device of the arguments: numbers are drawn where it is."""
    place = next((arg.device for arg in args if isinstance(arg, Tensor)), "cpu")
    return torch.Generator(place).manual_seed(seed)
