"""Trains the models in attention_course/model/, measures them, and writes their card, card.md.

`make model` runs it, in about eight minutes of one core. Another processor adds up numbers in
another order, so it finds other weights, as another seed would. The card belongs to the weights
beside it.
"""

import json
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from safetensors.torch import save_file

from attention_course.language import (
    VOCABULARY,
    Story,
    encode,
    entropy,
    floor,
    is_grammatical,
    stories,
    surprise,
)
from attention_course.tiny_gpt import TinyGPT
from attention_course.trained import (
    FILES,
    answers,
    begin,
    course_model,
    jobs,
    new_model,
    without_head,
    write,
)
from attention_course.training import loss_of, pairs, train

HERE = Path(__file__).parent
STEPS, BATCH, LR = 2500, 32, 3e-3
SEEDS = {4: 5, 1: 3}  # how many random starts with so many heads; the card lists them all
SHIPPED = {"heads_4": 1, "heads_1": 0}  # the seeds of those that come with the course
TRAINING = {"n": 20_000, "seed": 1}
HELD_OUT = {"n": 1_500, "seed": 99}
LOOKED_AT = 500  # held-out stories in which the heads are measured
WRITTEN = 300  # stories that each model writes


def main() -> None:
    """Train, save and measure the models, and write the card."""
    told, held_out = stories(**TRAINING), stories(**HELD_OUT)
    FILES.mkdir(exist_ok=True)
    seconds = []
    seeds: dict[str, list[dict[str, Any]]] = {}
    for num_heads, number in SEEDS.items():
        name = f"heads_{num_heads}"
        for seed in range(number):
            started = time.process_time()
            model = trained(told, num_heads, seed)
            seconds.append(time.process_time() - started)
            seeds.setdefault(name, []).append(learned(model, held_out))
            if seed == SHIPPED[name]:
                save(model, name)
    card = describe(told, held_out, seeds, round(sum(seconds) / len(seconds)))
    (HERE / "card.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    (HERE / "card.md").write_text(page(card), encoding="utf-8")


def learned(model: TinyGPT, held_out: Sequence[Story]) -> dict[str, Any]:
    """Return what the card says of one random start."""
    best = best_heads(model, held_out[:LOOKED_AT])
    return {
        "excess": excess(model, held_out),
        "answers": answers(model, held_out),
        "best": {job: f"{head}: {own}" for job, head, own, _, _ in best},
    }


def describe(
    told: Sequence[Story],
    held_out: Sequence[Story],
    seeds: dict[str, list[dict[str, Any]]],
    seconds: int,
) -> dict[str, Any]:
    """Measure the saved models and return the card."""
    seen = {str(story) for story in told}
    return {
        "steps": STEPS,
        "batch": BATCH,
        "lr": LR,
        "shipped": SHIPPED,
        "training": TRAINING,
        "held_out": HELD_OUT,
        "looked_at": LOOKED_AT,
        "written": WRITTEN,
        "torch": torch.__version__,
        "seconds": seconds,
        "vocabulary": len(VOCABULARY),
        "entropy": dict(zip(("story", "words", "word"), (*entropy(), floor()), strict=True)),
        "floor": sum(map(surprise, held_out)) / sum(len(story.words) for story in held_out),
        "new": sum(str(story) not in seen for story in held_out) / len(held_out),
        "models": {f"heads_{h}": measured(course_model(h), held_out, seen) for h in (4, 1)},
        "seeds": seeds,
    }


def trained(told: Sequence[Story], num_heads: int, seed: int) -> TinyGPT:
    """Return a model trained from this seed, rounded as it is saved."""
    torch.manual_seed(seed)
    model = new_model(num_heads)
    for step, loss in enumerate(train(model, *pairs(told), STEPS, LR, BATCH, seed)):
        if step % 500 == 0:
            print(f"{num_heads} heads, seed {seed}, step {step}: loss {loss:.3f}", flush=True)
    return model.half().float().eval()


def save(model: TinyGPT, name: str) -> None:
    """Save the weights as float16, which takes half the room."""
    weights = {key: weight.half() for key, weight in model.state_dict().items()}
    save_file(weights, FILES / f"{name}.safetensors")


def measured(model: TinyGPT, told: Sequence[Story], seen: set[str]) -> dict[str, Any]:
    """Return what the card says of one model."""
    looked_at = told[:LOOKED_AT]
    generator = torch.Generator().manual_seed(0)
    written = [write(model, begin(""), generator)[1:] for _ in range(WRITTEN)]
    return {
        "loss": loss_of(model, *pairs(told)).item(),
        "excess": excess(model, told),
        "answers": answers(model, told),
        "answers to new": answers(model, [story for story in told if str(story) not in seen]),
        "written": {
            "grammatical": sum(map(is_grammatical, written)) / WRITTEN,
            "new": sum(" ".join(words) not in seen for words in written) / WRITTEN,
        },
        "best": best_heads(model, looked_at),
        "without": {
            name: answers(without_head(model, name), looked_at) for name in names_of(model)
        },
    }


@torch.no_grad()
def excess(model: torch.nn.Module, told: Sequence[Story]) -> float:
    """Return how far the model's loss is above the lowest possible, in nats for each word.

    It is exact: the mean over all words of KL(language || model), whichever word was drawn.
    """
    logs = model(pairs(told)[0]).log_softmax(dim=-1)  # (b, n, v)
    total = 0.0
    for row, story in enumerate(told):
        for t, chances in enumerate(story.chances[:-1]):
            own = logs[row, t, encode(chances)].tolist()
            total += sum(
                chance * (math.log(chance) - log)
                for chance, log in zip(chances.values(), own, strict=True)
            )
    return total / sum(len(story.words) for story in told)


def names_of(model: TinyGPT) -> list[str]:
    """Return each head as people write it, 1.1 for the first."""
    return [
        f"{layer + 1}.{head + 1}"
        for layer, block in enumerate(model.layers())
        for head in range(block.attention.num_heads)
    ]


def best_heads(model: TinyGPT, told: Sequence[Story]) -> list[list[str]]:
    """Return for each job the head that looks most at the right word, and its weights."""
    rows, names = [], names_of(model)
    for job, looks in jobs(model, told).items():
        top = int(looks["own"].argmax())
        other = f"{looks['other'].flatten()[top]:.2f}" if "other" in looks else "-"
        own = f"{looks['own'].flatten()[top]:.2f}"
        rows.append([job, names[top], own, other, f"{looks['uniform']:.2f}"])
    return rows


def page(card: dict[str, Any]) -> str:
    """Return the card as a page to read."""
    of_four = card["seeds"]["heads_4"]
    kinds = list(of_four[0]["answers"])
    percent = "{:.1%}".format

    best_of_seeds = [[job, *(run["best"][job] for run in of_four)] for job in of_four[0]["best"]]

    def shares(of: dict[str, float]) -> str:
        return " | ".join(percent(of[kind]) for kind in kinds)

    environment = Environment(  # noqa: S701  # Markdown, from numbers of our own
        loader=FileSystemLoader(HERE), undefined=StrictUndefined, keep_trailing_newline=True
    )
    template = environment.get_template("card.md.j2")
    return template.render(
        card, kinds=kinds, best_of_seeds=best_of_seeds, shares=shares, percent=percent
    )


if __name__ == "__main__":
    main()
