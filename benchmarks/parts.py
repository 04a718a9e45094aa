"""Losses, answers and stories of the course's model, trained whole and without one of its parts.

Lesson 07 quotes the table. Each model is trained like the course's own, from the same random start.
The loss on new stories and the answers are measured with the future hidden, as it is when a model
writes. Stories are written from the first five words of new ones, always with the likeliest word.

    python benchmarks/parts.py STORIES STEPS [--seeds 0 1 2] [--parts ...]
"""

import argparse
from collections.abc import Callable

import torch

from attention_course.language import Story, floor, is_grammatical, stories
from attention_course.tiny_gpt import TinyGPT
from attention_course.trained import (
    answers,
    begin,
    new_model,
    without_mask,
    without_positions,
    write,
)
from attention_course.training import loss_of, pairs, train

MODELS: dict[str, Callable[[], TinyGPT]] = {
    "whole": new_model,
    "no mask": lambda: without_mask(new_model()),
    "no positions": lambda: without_positions(new_model()),
    "one head": lambda: new_model(1),
}
LAST = 25
"""Steps over which the loss in training is averaged."""
WRITTEN = 100


def with_mask(model: TinyGPT) -> TinyGPT:
    """Return a copy that hides the future; the mask is no part of a state_dict."""
    copy = new_model(model.layers()[0].attention.num_heads)
    copy.load_state_dict(model.state_dict())
    return copy.eval()


def without_mistakes(model: TinyGPT, told: list[Story]) -> int:
    """Return how many stories keep every rule when the model writes all but the first words."""
    beginnings = (" ".join(story.words[:5]) for story in told[:WRITTEN])
    return sum(is_grammatical(write(model, begin(text))[1:]) for text in beginnings)


def measure(name: str, n: int, steps: int, seed: int) -> str:
    """Train one model and return its row of the table."""
    torch.manual_seed(seed)
    model = MODELS[name]()
    losses = list(train(model, *pairs(stories(n, seed=1)), steps, seed=seed))
    new = stories(500, seed=99)
    honest = with_mask(model.eval())
    with torch.no_grad():
        loss = loss_of(honest, *pairs(new)).item()
    right = answers(honest, new)
    return (
        f"| {name} | {seed} | {sum(losses[-LAST:]) / LAST:.3f} | {loss:.3f} | {right['all']:.0%} "
        f"| {right['where']:.0%} | {without_mistakes(model, new)} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stories", type=int)
    parser.add_argument("steps", type=int)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--parts", nargs="+", choices=MODELS, default=list(MODELS))
    given = parser.parse_args()
    print(f"{given.steps} steps on {given.stories} stories; the floor is {floor():.3f}")
    print(f"| model | seed | training | new | answers | where | right stories of {WRITTEN} |")
    print("|---|---|---|---|---|---|---|")
    for name in given.parts:
        for seed in given.seeds:
            print(measure(name, given.stories, given.steps, seed), flush=True)


if __name__ == "__main__":
    main()
