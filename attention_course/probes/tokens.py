"""Probes of drawn tokens: judged by how often each comes up, never by another's draws."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from autograde.rubric.probes.calls import Args, snapshot
from autograde.rubric.probes.recorder import Recorder


class TokenProbes(Recorder):
    """Lines on answers that draw tokens from logits."""

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
