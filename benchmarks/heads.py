"""Right answers of the course's model with one and with two heads a layer, from many random starts.

Lesson 06 draws the last column. Each start is trained and measured as `make model` does it, about
50 s of one core; stories and number of steps are the same for all. A seed gives one start.

    python benchmarks/heads.py [--heads 1 2] [--seeds 0 1 2 3 4 5 6 7]
"""

import argparse
import sys
from pathlib import Path

import torch

from attention_course.language import stories
from attention_course.trained import answers

sys.path.append(str(Path(__file__).parent.parent / "model"))
from train_model import HELD_OUT, TRAINING, excess, trained


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(8)))
    given = parser.parse_args()
    torch.set_num_threads(1)
    told, held_out = stories(**TRAINING), stories(**HELD_OUT)
    two_people = [story for story in held_out if len(story.notes.people) == 2]
    where: dict[int, list[float]] = {heads: [] for heads in given.heads}
    for seed in given.seeds:
        for heads in given.heads:
            model = trained(told, heads, seed)
            right, pairs_only = answers(model, held_out), answers(model, two_people)
            where[heads].append(pairs_only["where"])
            shares = ", ".join(f"{kind} {share:.1%}" for kind, share in right.items())
            above = f"{excess(model, held_out):.4f} above the floor"
            print(f"{heads} heads, seed {seed}: {above}; {shares}", flush=True)
    print("answers to “where” with two people in the story, in percent:")
    for heads, shares_of in where.items():
        print(f"{heads}: {[round(100 * share) for share in shares_of]}")


if __name__ == "__main__":
    main()
