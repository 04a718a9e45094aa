"""Losses and answers of the course's model, trained on few stories with and without dropout.

Lesson 04 quotes the table. New stories are drawn with seed 99; those among the training stories are
left out. The best loss is that of the step at which the training could have been stopped.

    python benchmarks/overfitting.py STORIES STEPS P... [--seeds 0 1]
"""

import argparse

import torch
from torch import nn

from autograde.notebook.course_model import answers, new_model
from autograde.notebook.language import floor, stories
from autograde.notebook.tiny_gpt import TinyGPT
from autograde.notebook.training import loss_of, pairs, train

EVERY = 25
"""Steps between two measurements."""


def with_dropout(p: float, seed: int) -> TinyGPT:
    """Return an untrained model whose attention weights are dropped with probability p."""
    torch.manual_seed(seed)
    model = new_model()
    for block in model.layers():
        block.attention.dropout = nn.Dropout(p)
    return model


def measure(n: int, steps: int, p: float, seed: int) -> str:
    """Train one model and return its row of the table."""
    told = stories(n, seed=7)
    known = {str(story) for story in told}
    new = [story for story in stories(300, seed=99) if str(story) not in known]
    own, other = pairs(told), pairs(new)
    model, losses = with_dropout(p, seed), []
    for step, _ in enumerate(train(model, *own, steps, seed=seed), start=1):
        if step % EVERY == 0:
            model.eval()
            with torch.no_grad():
                losses.append((loss_of(model, *other).item(), step))
            model.train()
    model.eval()
    with torch.no_grad():
        end = loss_of(model, *own).item()
    best, step = min(losses)
    right = answers(model, new)["all"]
    return (
        f"| {n} | {p:g} | {seed} | {end:.2f} | {best:.2f} at {step} | {losses[-1][0]:.2f} "
        f"| {right:.0%} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stories", type=int)
    parser.add_argument("steps", type=int)
    parser.add_argument("p", type=float, nargs="+")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    given = parser.parse_args()
    print(f"{given.steps} steps; no model can have a loss below {floor():.2f} on new stories")
    print("| stories | p | seed | own loss | best loss on new | last loss on new | answers right |")
    print("|---|---|---|---|---|---|---|")
    for seed in given.seeds:
        for p in given.p:
            print(measure(given.stories, given.steps, p, seed), flush=True)


if __name__ == "__main__":
    main()
