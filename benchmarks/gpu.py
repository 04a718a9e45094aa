"""The lessons on a GPU: every rubric, every stored output, and what attention costs there.

    python benchmarks/gpu.py > docs/gpu.md        (or: make gpu)

It needs torch with CUDA, nbval, and what the lessons import. It takes about four minutes.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from autograde.course.cells import named_cells
from autograde.course.lesson_files import read_measured, read_text
from autograde.course.lessons import Lesson, lessons
from autograde.grading.running.reference import load, right_key
from autograde.rubric.judge import judge
from autograde.rubric.session import PRACTICE_SEED

ROOT = Path(__file__).resolve().parent.parent
SEEDS = (PRACTICE_SEED, 5, 77)
HEADS, SIZE, BLOCK = 8, 64, 512
LENGTHS = [2**power for power in range(10, 18)]
LONGEST_TILED = 32_768
"""Beyond it a loop of Python over tiles takes seconds."""
KERNELS = (
    SDPBackend.CUDNN_ATTENTION,
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH,
)
NBVAL = ("--nbval", f"--nbval-sanitize-with={ROOT / 'tests' / 'sanitize.cfg'}")
PYTEST = (
    "-q",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "-o",
    "addopts=",
    "-o",
    "filterwarnings=",
)


def rubrics(lesson: Lesson) -> Iterator[str]:
    """Name the exercises whose reference on the GPU is not right by the key made on the CPU."""
    measured = read_measured(lesson)
    for seed in SEEDS:
        os.environ["AUTOGRADE_DEVICE"] = "cpu"
        on_cpu = load(lesson)
        keys = {e.name: right_key(on_cpu, e, seed, measured[e.name]) for e in lesson.exercises}
        os.environ["AUTOGRADE_DEVICE"] = "cuda"
        on_gpu = load(lesson)
        for name, key in keys.items():
            if not judge(on_gpu.record(name, seed), key).passed:
                yield f"{name} (seed {seed})"


def executed_again(lesson: Lesson) -> str:
    """Run the solution on the GPU; return pytest's summary and the cells whose output differs."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *PYTEST, *NBVAL, lesson.solution_notebook],
        capture_output=True, text=True, check=False,
        env={**os.environ, "AUTOGRADE_DEVICE": "cuda", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    lines = done.stdout.splitlines() or done.stderr.splitlines() or ["nothing was run"]
    differ = [
        line.partition("::")[2].split(" - ")[0] for line in lines if line.startswith("FAILED")
    ]
    return ", ".join([lines[-1].strip(" ="), *differ])


def graded(lesson: Lesson) -> list[str]:
    """Grade a right submission where the lesson runs on the GPU, as its student would.

    Return a line for each exercise. Each answer fails unless the lesson's device is the GPU.
    """
    answers = named_cells(read_text(lesson))
    submitted = nbformat.read(lesson.released_notebook, as_version=4)
    for name, cell in named_cells(submitted).items():
        if name in {exercise.name for exercise in lesson.exercises}:
            cell.source = f"{answers[name].source}\nassert device.type == 'cuda'"
    with TemporaryDirectory() as folder:
        path = Path(folder) / lesson.released_notebook.name
        nbformat.write(submitted, path)
        done = subprocess.run(
            [sys.executable, "-c", "from autograde.cli import main; main()", "self", path],
            capture_output=True, text=True, check=False, cwd=ROOT,
            env={**os.environ, "AUTOGRADE_DEVICE": "cuda"},
        )  # fmt: skip
    if done.returncode:
        return [done.stderr]
    said = done.stdout.splitlines()
    return [line for line in said if line.partition(":")[0] in lesson.worth]


def matrix(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention by the whole matrix of scores. q, k, v: (1, h, n, d)."""
    scores = q @ k.mT / SIZE**0.5  # (1, h, n, n)
    future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    return torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1) @ v


def tiles(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The same, tile by tile: Dao et al., FlashAttention, algorithm 1, forward pass."""
    parts = []
    for start in range(0, q.shape[-2], BLOCK):
        rows = q[..., start : start + BLOCK, :]  # (1, h, B, d)
        largest = torch.full((*rows.shape[:-1], 1), float("-inf"), device=q.device)
        total, out = torch.zeros_like(largest), torch.zeros(rows.shape, device=q.device)
        for first in range(0, start + BLOCK, BLOCK):
            scores = (rows @ k[..., first : first + BLOCK, :].mT).float() / SIZE**0.5
            if first == start:
                future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
                scores = scores.masked_fill(future, float("-inf"))
            now = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))
            weights, shrink = torch.exp(scores - now), torch.exp(largest - now)
            total = total * shrink + weights.sum(dim=-1, keepdim=True)
            out = out * shrink + (weights.to(v.dtype) @ v[..., first : first + BLOCK, :]).float()
            largest = now
        parts.append((out / total).to(q.dtype))
    return torch.cat(parts, dim=-2)


def pytorch(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The kernel that PyTorch chooses."""
    return scaled_dot_product_attention(q, k, v, is_causal=True)


def only(backend: SDPBackend, **options: Tensor) -> Callable[..., Tensor]:
    """Return PyTorch's attention by one kernel, or not at all."""

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        with sdpa_kernel(backend):
            return scaled_dot_product_attention(q, k, v, is_causal=not options, **options)

    return attend


def measure(call: Callable[..., Tensor], *args: Tensor) -> tuple[float, float]:
    """Return the median milliseconds of five calls, and the most MiB that one of them held."""
    call(*args)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before, times = torch.cuda.memory_allocated(), []
    for _ in range(5):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call(*args)
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return sorted(times)[2], (torch.cuda.max_memory_allocated() - before) / 2**20


def cost(call: Callable[..., Tensor], *args: Tensor) -> str:
    """Return what a call costs, or why it cannot be had."""
    try:
        return "{:.3g} ms, {:,.0f} MiB".format(*measure(call, *args))
    except torch.cuda.OutOfMemoryError:
        return "out of memory"
    except RuntimeError as error:
        if "No available kernel" not in str(error):
            raise
        return "no such kernel"
    finally:
        torch.cuda.empty_cache()


def row(*cells: object) -> None:
    """Print a row of a table."""
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def attention_table(dtype: torch.dtype) -> None:
    """Print what causal attention costs by each way and length."""
    heads = [
        "n",
        "the matrix",
        f"tiles of {BLOCK}, a Python loop",
        "PyTorch",
        "FlashAttention alone",
    ]
    row(*heads)
    row(*("---" for _ in heads))
    for n in LENGTHS:
        qkv = [torch.randn(1, HEADS, n, SIZE, device="cuda", dtype=dtype) for _ in range(3)]
        tiled = cost(tiles, *qkv) if n <= LONGEST_TILED else "not tried"
        flash = cost(only(SDPBackend.FLASH_ATTENTION), *qkv)
        row(f"{n:,}", cost(matrix, *qkv), tiled, cost(pytorch, *qkv), flash)


def masks_table() -> None:
    """Print which kernels take a mask of their own, at n = 4,096."""
    n = 4096
    row("kernel", "bf16, is_causal", "bf16, attn_mask", "float32, is_causal")
    row("---", "---", "---", "---")
    mask = torch.ones(n, n, dtype=torch.bool, device="cuda").tril()
    for backend in KERNELS:
        full = [torch.randn(1, HEADS, n, SIZE, device="cuda") for _ in range(3)]
        half = [one.bfloat16() for one in full]
        masked = only(backend, attn_mask=mask)
        costs = cost(only(backend), *half), cost(masked, *half), cost(only(backend), *full)
        row(backend.name, *costs)


def bandwidth_table() -> None:
    """Print how fast weights are read by one step of decoding, for batches of one and more."""
    weights = torch.randn(8192, 65536, device="cuda", dtype=torch.bfloat16)
    row("sequences", "one step", "weights read per second")
    row("---", "---", "---")
    for batch in (1, 8, 64, 256):
        x = torch.randn(batch, 8192, device="cuda", dtype=torch.bfloat16)
        ms, _ = measure(torch.matmul, x, weights)
        row(batch, f"{ms:.3g} ms", f"{weights.numel() * 2 / ms / 1e9:.2f} TB")


def main() -> None:
    """Print the report as Markdown."""
    torch.set_num_threads(1)
    asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    driver = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    print("# The lessons on a GPU\n\n`make gpu` wrote this page.\n")
    versions = f"torch {torch.__version__}, Python {sys.version.split()[0]}"
    print(
        f"{torch.cuda.get_device_name()}, driver {driver}, {versions}, {date.today():%d %B %Y}.\n"
    )
    print("## Rubrics and stored outputs\n")
    print(
        f"Each reference is recorded on the GPU on {len(SEEDS)} seeds and judged by keys made on "
        "the CPU.\nThen each notebook in `solutions/` runs on the GPU, and nbval compares what "
        "its cells print\nwith what is stored.\n"
    )
    found = lessons(ROOT).values()
    with ThreadPoolExecutor(len(found)) as pool:
        again = [pool.submit(executed_again, lesson) for lesson in found]
        wrong = {lesson.name: [*rubrics(lesson)] for lesson in found}
    row("lesson", "references that fail", "nbval")
    row("---", "---", "---")
    for lesson, run in zip(found, again, strict=True):
        row(lesson.name, ", ".join(wrong[lesson.name]) or "none", run.result())
    print("\n## A right submission of lesson 05, graded by its student on the GPU\n")
    for line in graded(lessons(ROOT)["05_causal_attention"]):
        print(f"- {line}")
    print(f"\n## Causal attention, {HEADS} heads of {SIZE}, forward pass\n")
    print("The median time of five calls, and the most memory beyond inputs that one held.\n")
    for dtype in (torch.bfloat16, torch.float32):
        print(f"### {str(dtype).removeprefix('torch.')}\n")
        attention_table(dtype)
        print()
    print("### Which kernels take what, n = 4,096\n")
    masks_table()
    print("\n## One step of decoding: a matrix of 1 GiB in bf16 times one vector per sequence\n")
    bandwidth_table()


if __name__ == "__main__":
    main()
