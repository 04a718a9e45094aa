"""Probes of random results: judged by their statistics, never by another's draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from autograde.rubric.probes.plain import Args, snapshot
from autograde.rubric.probes.recorder import Recorder
from autograde.values.loaded import is_tensor

if TYPE_CHECKING:
    import torch


class RandomProbes(Recorder):
    """Lines on answers that draw random numbers."""

    def sample(
        self, line: str, check: str, answer: Callable[..., Any], *args: Any, times: int
    ) -> None:
        """Record many results of a call that draws with torch's own generator; a check judges them.

        r.sample("measurements scatter", "scatters", mean_of_draws, 8, 50, times=200)
        """

        def run(*args: Any) -> list[Any]:
            return [answer(*snapshot(args)) for _ in range(times)]

        self.record(line, check, run, [args], answer)

    def follows_generator(self, line: str, answer: Callable[..., Any], *args: Any) -> None:
        """Record whether results depend on the generator alone, and on torch's own without one.

        r.follows_generator("draws from its generator alone", coins, (6, 7), 0.5)
        """
        import torch

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
    import torch

    place = next((arg.device for arg in args if is_tensor(arg)), "cpu")
    return torch.Generator(place).manual_seed(seed)
