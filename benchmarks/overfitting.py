"""Losses and answers of the course's model, trained on few stories with and without dropout.

Lesson 04 quotes the table. Each seed has stories of its own, a start of its own and batches of its
own; every p sees the same ones. New stories are drawn with seed 99; those among the training
stories are left out. "Best" is the step at which the training could have been stopped.

    python benchmarks/overfitting.py STORIES STEPS P... [--everywhere] [--seeds 0 1 2]

Its rows are 50 300 0 0.5, 50 300 0.1 0.3 --everywhere, 50 900 0, 50 900 0.3 --everywhere and
100 300 0, on seeds 0 to 7.
"""

import argparse
from statistics import mean

import torch
from torch import nn

from attention_course.language import floor, stories
from attention_course.tiny_gpt import TinyGPT
from attention_course.trained import answers, new_model
from attention_course.training import loss_of, pairs, train

EVERY = 25
"""Steps between two measurements."""
Run = dict[str, float]
COLUMNS = {
    "own loss": "own",
    "lowest new loss": "best",
    "at step": "step",
    "answers there": "right at best",
    "last new loss": "last",
    "answers at the end": "right",
}


def with_dropout(p: float, seed: int, everywhere: bool) -> TinyGPT:
    """Return an untrained model that drops attention weights, or wherever a GPT does."""
    torch.manual_seed(seed)
    model = new_model()
    for block in model.layers():
        block.attention.dropout = nn.Dropout(p)
        if everywhere:
            for part in ("attention", "feed_forward"):
                setattr(block, part, nn.Sequential(getattr(block, part), nn.Dropout(p)))
    if everywhere:
        model.blocks.insert(0, nn.Dropout(p))  # the embeddings
    return model


def measure(n: int, steps: int, p: float, seed: int, everywhere: bool) -> Run:
    """Train one model and return what came of it."""
    told = stories(n, seed=7 + seed)
    known = {str(story) for story in told}
    new = [story for story in stories(300, seed=99) if str(story) not in known]
    own, other = pairs(told), pairs(new)
    model, found = with_dropout(p, seed, everywhere), []
    for step, _ in enumerate(train(model, *own, steps, seed=seed), start=1):
        if step % EVERY == 0:
            model.eval()
            with torch.no_grad():
                loss = loss_of(model, *other).item()
            found.append((loss, step, answers(model, new)["all"]))
            model.train()
    model.eval()
    best, last = min(found), found[-1]
    with torch.no_grad():
        end = loss_of(model, *own).item()
    return {
        "own": end,
        "best": best[0],
        "step": best[1],
        "right at best": best[2],
        "last": last[0],
        "right": last[2],
    }


def spread(runs: list[Run], what: str) -> str:
    """Return the mean of a column and, in brackets, its lowest and highest value."""
    values = [run[what] for run in runs]
    form = "{:.0f}" if what == "step" else "{:.0%}" if "right" in what else "{:.2f}"
    low, high = form.format(min(values)), form.format(max(values))
    return f"{form.format(mean(values))} ({low} to {high})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stories", type=int)
    parser.add_argument("steps", type=int)
    parser.add_argument("p", type=float, nargs="+")
    parser.add_argument("--everywhere", action="store_true", help="drop wherever a GPT does")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    given = parser.parse_args()
    print(f"{given.steps} steps; no model can have a loss below {floor():.2f} on new stories")
    runs: dict[float, list[Run]] = {p: [] for p in given.p}
    for seed in given.seeds:
        for p in given.p:
            runs[p].append(measure(given.stories, given.steps, p, seed, given.everywhere))
            print(seed, p, runs[p][-1], flush=True)
    print(f"| stories | p | seeds | {' | '.join(COLUMNS)} |")
    print("|---" * (3 + len(COLUMNS)) + "|")
    for p, made in runs.items():
        cells = " | ".join(spread(made, what) for what in COLUMNS.values())
        print(f"| {given.stories} | {p:g} | {len(made)} | {cells} |")


if __name__ == "__main__":
    main()
