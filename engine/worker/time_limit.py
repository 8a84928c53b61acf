"""The time of the task at hand, for loops in Python, which no interrupt of DuckDB ends."""

from __future__ import annotations

import time

_ends_at = [float("inf")]


def end_at(moment: float = float("inf")) -> None:
    """Let the task at hand have time up to a moment of the monotonic clock, in seconds."""
    _ends_at[0] = moment


def check_time() -> None:
    """Raise TimeoutError where the time of the task at hand is over."""
    if time.monotonic() > _ends_at[0]:
        raise TimeoutError("the time of the task is over")
