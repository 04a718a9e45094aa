"""How long the explorer takes on one thread: what a page waits for when a head is changed.

    python benchmarks/explorer.py

Times are those of the processor, so that a busy machine does not count; the median of 20.
"""

import json
import time
from collections.abc import Callable
from statistics import median

import torch
from IPython.utils.capture import capture_output

from attention_course.explorer import explore_story
from attention_course.explorer.live import to_page
from attention_course.explorer.reading import Change, read
from attention_course.trained import begin, course_model

ROUNDS = 20
STORIES = {
    "11 words": "Tom is in the gym . he sees a bat",
    "46 words": "Tom has two cakes . Lucy has a hat . she wears it outside . he's inside . where "
    "is Lucy ? she's outside . what does Lucy do ? she wears her hat . who is he ? Tom . where is "
    "Tom ?",
}


def milliseconds(act: Callable[[], object]) -> float:
    """Return the median of the processor's time for one act, the first one left out."""
    times = []
    for _ in range(ROUNDS + 1):
        start = time.process_time()
        act()
        times.append(1000 * (time.process_time() - start))
    return median(times[1:])


def main() -> None:
    """Print a line for each story."""
    torch.set_num_threads(1)
    model = course_model()
    for name, story in STORIES.items():
        words = begin(story)
        half = len(words) // 2

        def answer(words: list[str] = words, half: int = half) -> str:
            return json.dumps(to_page(read(model, words, Change(0, 0, half, words))))

        def display(story: str = story) -> None:
            with capture_output():
                explore_story(model, story)

        print(
            f"{name}: a change is answered in {milliseconds(answer):.0f} ms, "
            f"in {len(answer()) / 1000:.0f} kB; the cell takes {milliseconds(display):.0f} ms"
        )


if __name__ == "__main__":
    main()
