"""Rubrics and reference solutions on a GPU, which this machine may not have: a pretend one."""

from pathlib import Path

import pytest
import torch
from nightly import few
from pretend_gpu import GPU, pretend_gpu

from autograde.course.lesson_files import read_measured
from autograde.course.lessons import lessons
from autograde.grading.running.reference import load, right_key
from autograde.rubric.judge import judge
from autograde.rubric.panel import advice, to_display
from autograde.rubric.session import PRACTICE_SEED

ROOT = Path(__file__).resolve().parent.parent


def test_the_pretended_gpu_keeps_its_tensors_apart() -> None:
    with pretend_gpu():
        x = torch.randn(2, 2).to(GPU)
        assert (x @ x.mT).device == torch.ones(2, device=GPU).device == GPU
        assert x.cpu().device == torch.device("cpu")
        with pytest.raises(RuntimeError, match="two devices"):
            _ = x + torch.ones(2, 2)
        generator = torch.Generator(GPU)
        assert torch.rand(2, generator=generator, device=GPU).device == generator.device == GPU
        with pytest.raises(RuntimeError, match="generator of another device"):
            torch.rand(2, generator=generator)


@pytest.mark.parametrize("name", few(lessons(ROOT).keys(), "02_causal_mask"))
def test_the_solutions_pass_their_rubrics_on_a_gpu(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lesson = lessons(ROOT)[name]
    exercises, on_cpu, measured = lesson.exercises, load(lesson), read_measured(lesson)
    keys = {e.name: right_key(on_cpu, e, PRACTICE_SEED, measured[e.name]) for e in exercises}
    monkeypatch.setenv("AUTOGRADE_DEVICE", GPU.type)
    with pretend_gpu():
        on_gpu = load(lesson)
        recordings = {e.name: on_gpu.record(e.name, PRACTICE_SEED) for e in exercises}
    for exercise, recording in recordings.items():
        verdict = judge(recording, keys[exercise])
        if exercise == "count_parameters":  # the pretend GPU parts a shared weight in two
            assert not recording.stopped
        else:
            assert verdict.passed, to_display(verdict, advice(verdict, named=False))["text/plain"]
