"""Trains the models that come with the course, measures them, and writes their card.

`make model` runs it, in about six minutes of one core. Another processor adds up numbers in another
order, so it finds other weights, as another seed would. The card belongs to the weights beside it.
"""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from jinja2 import Environment, PackageLoader, StrictUndefined
from safetensors.torch import save_file

import autograde.notebook
from autograde.notebook.course_model import (
    answers,
    begin,
    course_model,
    excess,
    jobs,
    new_model,
    without_head,
    write,
)
from autograde.notebook.language import (
    VOCABULARY,
    Story,
    entropy,
    floor,
    is_grammatical,
    stories,
    surprise,
)
from autograde.notebook.tiny_gpt import TinyGPT
from autograde.notebook.training import loss_of, pairs, train

FOLDER = Path(autograde.notebook.__file__).parent / "model"
STEPS, BATCH, LR = 2500, 32, 3e-3
SEEDS = range(5)  # of the models with four heads; the card lists them all
SHIPPED = {"heads_4": 1, "heads_1": 0}  # the seeds of those that come with the course
TRAINING = {"n": 20_000, "seed": 1}
HELD_OUT = {"n": 1_500, "seed": 99}
LOOKED_AT = 500  # held-out stories in which the heads are measured
WRITTEN = 300  # stories that each model writes


def main() -> None:
    """Train, save and measure the models, and write the card."""
    told, held_out = stories(**TRAINING), stories(**HELD_OUT)
    FOLDER.mkdir(exist_ok=True)
    save(trained(told, 1, SHIPPED["heads_1"]), "heads_1")
    seconds, seeds = [], []
    for seed in SEEDS:
        started = time.process_time()
        model = trained(told, 4, seed)
        seconds.append(time.process_time() - started)
        seeds.append({"excess": excess(model, held_out), "answers": answers(model, held_out)})
        print(f"seed {seed}: {seeds[-1]}", flush=True)
        if seed == SHIPPED["heads_4"]:
            save(model, "heads_4")
    card = describe(told, held_out, seeds, round(sum(seconds) / len(seconds)))
    (FOLDER / "card.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    (FOLDER / "card.md").write_text(page(card), encoding="utf-8")


def describe(
    told: Sequence[Story], held_out: Sequence[Story], seeds: list[dict[str, Any]], seconds: int
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
    save_file(weights, FOLDER / f"{name}.safetensors")


def measured(model: TinyGPT, told: Sequence[Story], seen: set[str]) -> dict[str, Any]:
    """Return what the card says of one model."""
    looked_at = told[:LOOKED_AT]
    heads = [
        (layer, head)
        for layer, block in enumerate(model.layers())
        for head in range(block.attention.num_heads)
    ]
    names = [f"{layer + 1}.{head + 1}" for layer, head in heads]
    generator = torch.Generator().manual_seed(0)
    written = [write(model, begin(""), generator)[1:] for _ in range(WRITTEN)]
    found = jobs(model, looked_at)
    return {
        "loss": loss_of(model, *pairs(told)).item(),
        "excess": excess(model, told),
        "answers": answers(model, told),
        "answers to new": answers(model, [story for story in told if str(story) not in seen]),
        "written": {
            "grammatical": sum(map(is_grammatical, written)) / WRITTEN,
            "new": sum(" ".join(words) not in seen for words in written) / WRITTEN,
        },
        "jobs": {
            job: {name: weights.tolist() for name, weights in looks.items()}
            for job, looks in found.items()
        },
        "best": [[job, *best(looks, names)] for job, looks in found.items()],
        "without": {
            name: answers(without_head(model, *head), looked_at)
            for name, head in zip(names, heads, strict=True)
        },
    }


def best(looks: dict[str, torch.Tensor], names: Sequence[str]) -> list[str]:
    """Return the head that looks most at the right word, and its weights."""
    top = int(looks["own"].argmax())
    other = f"{looks['other'].flatten()[top]:.2f}" if "other" in looks else "-"
    return [names[top], f"{looks['own'].flatten()[top]:.2f}", other, f"{looks['uniform']:.2f}"]


def page(card: dict[str, Any]) -> str:
    """Return the card as a page to read."""
    kinds = list(card["seeds"][0]["answers"])

    def shares(of: dict[str, float]) -> str:
        return " | ".join(percent(of[kind]) for kind in kinds)

    loader = PackageLoader("autograde.authoring", ".")
    environment = Environment(  # noqa: S701  # Markdown, from numbers of our own
        loader=loader, undefined=StrictUndefined, keep_trailing_newline=True
    )
    template = environment.get_template("model_card.md.j2")
    return template.render(card, kinds=kinds, shares=shares, percent=percent)


def percent(share: float) -> str:
    """Return a share as people read it."""
    return f"{share:.1%}"


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
