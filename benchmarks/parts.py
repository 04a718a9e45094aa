"""Losses, answers by kind and stories of the course's model, whole and without one of its parts.

Lesson 07 quotes the table. Each model is trained as there, but twice as long: AdamW as PyTorch sets
it, 32 of 20,000 stories a step, 2,000 steps with lr 0.003, then 400 with 0.0005. The loss on new
stories and the answers are measured with the future hidden, as it is when a model writes. Stories
are written from the first five words of new ones, always with the likeliest word.

    python benchmarks/parts.py [--seeds 0 1 2 3 4] [--parts ...]
"""

import argparse
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from attention_course.language import Story, is_grammatical, stories, surprise
from attention_course.tiny_gpt import TinyGPT
from attention_course.trained import (
    answers,
    begin,
    new_model,
    small_positions,
    without_mask,
    write,
)
from attention_course.training import loss_of, pairs


def without_positions(model: TinyGPT) -> TinyGPT:
    """Give every position the vector 0, in training too, and return the model."""
    table = model.position_embedding.weight
    table.data.zero_()
    table.requires_grad_(False)
    return model


MODELS: dict[str, Callable[[], TinyGPT]] = {
    "whole": lambda: small_positions(new_model()),
    "large positions": new_model,
    "no positions": lambda: without_positions(new_model()),
    "one head": lambda: small_positions(new_model(1)),
    "no mask": lambda: without_mask(small_positions(new_model())),
}
RECIPE = [(2_000, 3e-3), (400, 5e-4)]
"""Steps, and their learning rate."""
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


def batches(inputs: Tensor, targets: Tensor, steps: int, seed: int) -> Iterator[list[Tensor]]:
    """Yield 32 random stories for each step."""
    draw = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        rows = torch.randint(len(inputs), (32,), generator=draw)
        yield [inputs[rows], targets[rows]]


def train(model: TinyGPT, told: list[Story], seed: int) -> None:
    """Train as lesson 07 does."""
    model.train()
    for stage, (steps, lr) in enumerate(RECIPE):
        optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        for inputs, targets in batches(*pairs(told), steps, 2 * seed + stage):
            loss = loss_of(model, inputs, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def kinds_of(told: list[Story]) -> list[str]:
    """Return "all" and the kinds of questions that the stories ask."""
    return ["all", *sorted({answer.kind for story in told for answer in story.notes.answers})]


def measure(name: str, told: list[Story], new: list[Story], seed: int) -> str:
    """Train one model and return its row of the table."""
    torch.manual_seed(seed)
    model = MODELS[name]()
    train(model, told, seed)
    honest = with_mask(model.eval())
    with torch.no_grad():
        loss = loss_of(honest, *pairs(new)).item()
    right = answers(honest, new)
    by_kind = " | ".join(f"{right[kind]:.0%}" for kind in kinds_of(new))
    story = " ".join(write(model, begin(" ".join(new[0].words[:5])))[1:])
    return (
        f"| {name} | {seed} | {loss:.3f} | {by_kind} | {without_mistakes(model, new)} | {story} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--parts", nargs="+", choices=MODELS, default=list(MODELS))
    given = parser.parse_args()
    torch.set_num_threads(1)
    told, new = stories(20_000, seed=1), stories(500, seed=99)
    lowest = sum(map(surprise, new)) / sum(len(story.words) for story in new)
    print(f"the true probabilities have a loss of {lowest:.3f} on the new stories")
    kinds = kinds_of(new)
    print(f"| model | seed | loss | {' | '.join(kinds)} | right stories of {WRITTEN} | a story |")
    print("|---|---|---|" + "---|" * (len(kinds) + 2))
    for name in given.parts:
        for seed in given.seeds:
            print(measure(name, told, new, seed), flush=True)


if __name__ == "__main__":
    main()
