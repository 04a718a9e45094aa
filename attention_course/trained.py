"""The trained model that comes with the course, and functions to study it.

The model reads <end> before the first word of a story, so every list of words given to it begins
with <end>. `begin` makes such a list.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import TypeVar

import torch
from safetensors.torch import load
from torch import Tensor

from attention_course.grammar import Link
from attention_course.language import END, VOCABULARY, Story, decode, encode
from attention_course.probes.models import parameters_by_use, shapes_of
from attention_course.tiny_gpt import TinyGPT
from attention_course.training import pairs

Model = TypeVar("Model", bound=torch.nn.Module)
FILES = Path(__file__).parent / "model"  # made by `make model`
SIZES = {"vocab_size": len(VOCABULARY), "d_model": 48, "context_length": 48, "num_layers": 2}


def new_model(num_heads: int = 4) -> TinyGPT:
    """Return an untrained model of the course's size."""
    return TinyGPT(**SIZES, num_heads=num_heads, dropout=0.0)


def course_model(num_heads: int = 4) -> TinyGPT:
    """Return the trained model with 4 heads a layer, or the one with 1; in eval(), on the CPU."""
    weights = load((FILES / f"heads_{num_heads}.safetensors").read_bytes())
    model = new_model(num_heads)
    model.load_state_dict({name: weight.float() for name, weight in weights.items()})
    return model.eval()


def without_mask(model: TinyGPT) -> TinyGPT:
    """Return a copy of the model in which each word sees the words after it, too.

    The mask is not part of a state_dict: a model with a mask can load what this one learns.
    """
    copy = deepcopy(model)
    for block in copy.layers():
        block.attention.mask.zero_()
    return copy


@torch.no_grad()
def small_positions(model: Model, num_layers: int = 2) -> Model:
    """Multiply the position vectors by 0.02, as small as GPT-2's are at first; return the model.

    It has the course's size, but for its layers, and they may have any names.
    """
    _by_use(model, num_layers)["position.weight"].mul_(0.02)
    return model


def begin(text: str) -> list[str]:
    """Return the words of a text as the model reads them: <end> first."""
    return [END, *text.split()]


@torch.no_grad()
def attention_of(model: TinyGPT, words: Sequence[str]) -> Tensor:
    """Return what each head looks at in one sentence: n words -> (layers, heads, n, n)."""
    return model.attention_weights(torch.tensor([encode(words)]))[:, 0]


@torch.no_grad()
def next_words(model: TinyGPT, words: Sequence[str]) -> dict[str, float]:
    """Return the probability of every word that may come next, the likeliest first."""
    chances = model(torch.tensor([encode(words)]))[0, -1].softmax(dim=-1)  # (v,)
    likely = chances.argsort(descending=True)
    return dict(zip(decode(likely.tolist()), chances[likely].tolist(), strict=True))


def word_by_word(model: TinyGPT) -> Callable[[Tensor], Tensor]:
    """Return a model that reads each word with nothing after it, as it does when it writes.

    With a causal mask that changes nothing; without one, what comes later can no longer be seen.
    """

    def read(ids: Tensor) -> Tensor:  # (b, n) -> (b, n, v)
        return torch.stack([model(ids[:, :t])[:, -1] for t in range(1, ids.shape[1] + 1)], dim=1)

    return read


@torch.no_grad()
def answers(model: Callable[[Tensor], Tensor], told: Sequence[Story]) -> dict[str, float]:
    """Return the share of right answers for each kind of question, and for "all".

    An answer is right if each of its words is the model's first choice after the true words
    before it.
    """
    inputs, targets = pairs(told)  # (b, n)
    right = model(inputs).argmax(dim=-1) == targets  # (b, n)
    results: dict[str, list[bool]] = {"all": []}
    for row, story in enumerate(told):
        for answer in story.notes.answers:
            good = bool(right[row, answer.start : answer.stop].all())
            results["all"].append(good)
            results.setdefault(answer.kind, []).append(good)
    return {kind: sum(good) / len(good) for kind, good in results.items()}


@torch.no_grad()
def jobs(model: TinyGPT, told: Sequence[Story]) -> dict[str, dict[str, Tensor]]:
    """Measure what each head looks at, over all places where a word depends on another.

    For each job: the mean weight on the `own` word and on the `other` person's, both
    (layers, heads), and `uniform`, the weight of a head that looks at all words equally, (). There
    is no `other` where one person is alone in the story.
    """
    maps = model.attention_weights(pairs(told)[0]).transpose(0, 1)  # (b, layers, heads, n, n)
    found: dict[str, list[tuple[int, Link]]] = {}
    for row, story in enumerate(told):
        for link in story.notes.links:
            found.setdefault(link.job, []).append((row, link))
    # <end> stands first, so the word at position t of the story is token t + 1.
    results = {}
    for job, links in found.items():
        own = [maps[row, :, :, link.at + 1, link.own + 1] for row, link in links]
        other = [
            maps[row, :, :, link.at + 1, link.other + 1]
            for row, link in links
            if link.other is not None
        ]
        uniform = [torch.tensor(1 / (link.at + 2)) for _, link in links]
        named = {"own": own, "other": other, "uniform": uniform}
        results[job] = {
            name: torch.stack(weights).mean(dim=0) for name, weights in named.items() if weights
        }
    return results


@torch.no_grad()
def without_head(model: TinyGPT, head: str) -> TinyGPT:
    """Return a copy of the model that ignores one head's output; 1.2 is layer 1's second head.

    out_proj reads the output of head h by its columns h * size to (h + 1) * size, which become 0.
    """
    copy = deepcopy(model)
    layer, number = (int(part) - 1 for part in head.split("."))
    attention = copy.layers()[layer].attention
    columns = attention.out_proj.weight.unflatten(1, (attention.num_heads, -1))  # (d, h, d/h)
    columns[:, number] = 0
    return copy


@torch.no_grad()
def write(
    model: TinyGPT, words: Sequence[str], generator: torch.Generator | None = None
) -> list[str]:
    """Return the words and what the model writes after them, up to <end> or a full context.

    With a generator each word is drawn by its probability, without one it is the likeliest.
    """
    tokens = torch.tensor([encode(words)])  # (1, n)
    while tokens.shape[1] <= model.context_length:
        chances = model(tokens)[0, -1].softmax(dim=-1)  # (v,)
        following = (
            chances.argmax().view(1)
            if generator is None
            else chances.multinomial(1, generator=generator)
        )
        tokens = torch.cat([tokens, following[None]], dim=1)
        if decode(following.tolist()) == [END]:
            break
    return decode(tokens[0].tolist())


@torch.no_grad()
def copy_weights(source: torch.nn.Module, target: torch.nn.Module) -> None:
    """Copy weights from one model of the course's size to another, whatever their layers' names.

    Parameters are paired in the order in which the models use them.
    """
    weights = _by_use(source)
    for name, parameter in _by_use(target).items():
        if name in weights:
            parameter.copy_(weights[name].view_as(parameter))
        else:
            parameter.zero_()


def _by_use(model: torch.nn.Module, num_layers: int = 2) -> dict[str, torch.nn.Parameter]:
    """Return the parameters of a model of the course's size by the part that each plays."""
    shapes = shapes_of("gpt", {**SIZES, "num_layers": num_layers})
    wanted = {name: torch.empty(shape) for name, shape in shapes.items()}
    return parameters_by_use(model, wanted, torch.tensor([encode([END])]))
