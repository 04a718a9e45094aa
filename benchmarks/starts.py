"""Three findings of the lessons, each from several random starts.

Lesson 01: an untrained layer in which all six words look most at the same word, and a trained one
in which every word finds its partner, with the old vector of *journey* and with another.
Lesson 02: a model trained with a mask after the softmax that is not renormalised, on new stories.
Lesson 07: the right answers of the whole model, trained as in part 6.

    python benchmarks/starts.py [--starts 12]

Each is trained as in its lesson: 12 starts take about three minutes of one core.
"""

import argparse
import math
from functools import partial

import torch
from parts import batches
from torch import Tensor, nn

from attention_course.language import floor, stories
from attention_course.tiny_gpt import MultiHeadAttention
from attention_course.trained import answers, new_model, small_positions, word_by_word
from attention_course.training import loss_of, pairs, train

WORDS = ["Your", "journey", "starts", "with", "one", "step"]
VECTORS = torch.tensor(
    [
        [0.43, 0.15, 0.89],
        [0.55, 0.87, 0.66],
        [0.57, 0.85, 0.64],
        [0.22, 0.58, 0.33],
        [0.77, 0.25, 0.10],
        [0.05, 0.80, 0.55],
    ]
)
PARTNERS = [WORDS.index(word) for word in ("one", "with", "Your", "one", "step", "journey")]


def weights_of(x: Tensor, W_query: nn.Linear, W_key: nn.Linear) -> Tensor:
    """Return lesson 01's attention weights of one sentence, (n, n)."""
    keys = W_key(x)
    return torch.softmax(W_query(x) @ keys.T / math.sqrt(keys.shape[-1]), dim=-1)


def one_favourite(seed: int) -> bool:
    """Return whether all words of lesson 01's untrained layer look most at the same one."""
    torch.manual_seed(seed)
    W_query, W_key = (nn.Linear(3, 2, bias=False) for _ in range(2))
    return len(weights_of(VECTORS, W_query, W_key).argmax(dim=-1).unique()) == 1


def partners_missed(x: Tensor, seed: int) -> list[str]:
    """Train lesson 01's layer to find partners; return the words that do not find theirs."""
    torch.manual_seed(seed)
    W_query, W_key = (nn.Linear(3, 3) for _ in range(2))
    optimizer = torch.optim.Adam([*W_query.parameters(), *W_key.parameters()], lr=0.1)
    for _ in range(400):
        optimizer.zero_grad()
        (weights_of(x, W_query, W_key) @ x - x[PARTNERS]).square().mean().backward()
        optimizer.step()
    found = weights_of(x, W_query, W_key)[range(6), PARTNERS] >= 0.5
    return [word for word, right in zip(WORDS, found.tolist(), strict=True) if not right]


def leaky_weights(attention: MultiHeadAttention, x: Tensor) -> Tensor:
    """Return weights that are masked after the softmax and not renormalised, (b, h, n, n)."""
    queries, keys = attention.split(attention.W_query(x)), attention.split(attention.W_key(x))
    scores = queries @ keys.mT / math.sqrt(keys.shape[-1])
    return scores.softmax(dim=-1).tril()


def leaky_losses(seed: int) -> tuple[float, float]:
    """Train lesson 02's model with a leak; return its loss in one pass and word by word."""
    torch.manual_seed(seed)
    model = new_model()
    for block in model.layers():
        block.attention.weights = partial(leaky_weights, block.attention)  # type: ignore[method-assign]
    list(train(model, *pairs(stories(1500, seed=1)), steps=250, lr=1e-2))
    unseen = pairs(stories(100, seed=99))
    with torch.no_grad():
        in_one_pass = loss_of(model.eval(), *unseen).item()
        logits = word_by_word(model)(unseen[0])
    return in_one_pass, nn.functional.cross_entropy(
        logits.flatten(0, 1), unseen[1].flatten()
    ).item()


def right_answers(seed: int) -> float:
    """Train the whole model as in part 6 of lesson 07; return its share of right answers."""
    torch.manual_seed(seed)
    model = small_positions(new_model()).train()
    told = pairs(stories(20_000, seed=1))
    for stage, (steps, lr) in enumerate([(1000, 3e-3), (200, 5e-4)]):
        optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        for inputs, targets in batches(*told, steps, 2 * seed + stage):
            optimizer.zero_grad()
            loss_of(model, inputs, targets).backward()
            optimizer.step()
    return answers(model.eval(), stories(300, seed=99))["all"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=12)
    starts = range(parser.parse_args().starts)
    torch.set_num_threads(1)

    alike = sum(map(one_favourite, range(300)))
    print(f"01: one favourite for all six words: {alike} of 300 starts", flush=True)
    apart = VECTORS.clone()
    apart[1] = torch.tensor([0.9, 0.9, 0.1])
    for name, x in {"the old vector": VECTORS, "a vector of its own": apart}.items():
        missed = [partners_missed(x, seed) for seed in starts]
        print(
            f"01: {name} for journey: every partner found from {missed.count([])} of {len(starts)}"
            f" starts; not found: {[words for words in missed if words]}",
            flush=True,
        )

    leaky = [leaky_losses(seed) for seed in starts]
    for name, losses in zip(("in one pass", "word by word"), zip(*leaky, strict=True), strict=True):
        print(f"02: masked, not renormalised: {name} {min(losses):.2f} to {max(losses):.2f}")
    below = sum(in_one_pass < floor() for in_one_pass, _ in leaky)
    print(f"02: below the floor in one pass: {below} of {len(starts)}", flush=True)

    for seed in starts[:4]:
        print(f"07: the whole model, start {seed}: {right_answers(seed):.0%} right", flush=True)


if __name__ == "__main__":
    main()
