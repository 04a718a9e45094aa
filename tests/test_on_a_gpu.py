"""Rubrics and reference solutions on a GPU, which this machine may not have: a pretend one."""

from pathlib import Path

import pytest
import torch
from pretend_gpu import GPU, pretend_gpu

from autograde.course import lessons
from autograde.grading.running.reference import Program, load
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


def errors(program: Program, exercise: str) -> list[tuple[str, str | None]]:
    """Return each line of a rubric, and what its calls raise."""
    recording = program.record(exercise, PRACTICE_SEED)
    assert not recording.stopped, recording.stopped
    return [
        (line.name, case.outcome.error and case.outcome.message)
        for line in recording.lines
        for case in line.cases
    ]


@pytest.mark.parametrize("name", lessons(ROOT))
def test_the_solutions_pass_their_rubrics_on_a_gpu(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lesson = lessons(ROOT)[name]
    on_cpu = load(lesson)
    expected = {exercise.name: errors(on_cpu, exercise.name) for exercise in lesson.exercises}
    monkeypatch.setenv("AUTOGRADE_DEVICE", GPU.type)
    with pretend_gpu():
        on_gpu = load(lesson)
        for exercise, found in expected.items():
            assert errors(on_gpu, exercise) == found
