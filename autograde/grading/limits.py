"""How much of the grader one submission may use."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What one submission may use of the grader's time and memory. Seconds are wall time."""

    cell_seconds: int = 30
    notebook_seconds: int = 300
    cell_output_bytes: int = 8_000_000
