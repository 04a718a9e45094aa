"""Trains a model on the course's stories."""

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from attention_course.language import END, IDS, Story, encode

PADDING = -100
"""The target that cross_entropy ignores."""


def pairs(told: Sequence[Story]) -> tuple[Tensor, Tensor]:
    """Return inputs and targets, both (b, n); each word of a story is a target for those before it.

    <end> stands before the first word. After the last, inputs go on with <end>, targets with
    PADDING.
    """
    rows = [torch.tensor(encode([END, *story.words])) for story in told]
    inputs = pad_sequence([row[:-1] for row in rows], True, IDS[END])
    targets = pad_sequence([row[1:] for row in rows], True, PADDING)
    return inputs, targets


def loss_of(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
    """Return the mean cross-entropy over all words: (b, n) -> ()."""
    return nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())


def train(
    model: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    steps: int,
    lr: float = 3e-3,
    batch: int = 32,
    seed: int = 0,
) -> Iterator[float]:
    """Train with AdamW for `steps` steps on random batches; yield the loss before each step.

    The learning rate warms up for 50 steps, then falls along a cosine to 0.
    """

    def rate(step: int) -> float:
        return min(1.0, (step + 1) / 50) * 0.5 * (1 + math.cos(math.pi * step / steps))

    draw = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    model.train()
    for _ in range(steps):
        rows = torch.randint(len(inputs), (batch,), generator=draw)
        loss = loss_of(model, inputs[rows], targets[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        yield loss.item()
