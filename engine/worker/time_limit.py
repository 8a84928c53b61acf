"""The time of the tasks at hand, for loops in Python, which no interrupt of DuckDB ends."""

from __future__ import annotations

import threading
import time

_ends_at: dict[int, float] = {}     # by thread


def end_at(moment: float | None = None) -> None:
    """Let the task of this thread have time up to a moment of the monotonic clock, in seconds; None: it is done."""
    if moment is None:
        _ends_at.pop(threading.get_ident(), None)
    else:
        _ends_at[threading.get_ident()] = moment


def check_time() -> None:
    """Raise TimeoutError where the time of the task at hand is over; in a thread of DuckDB's, which works for any task, where that of all
    is."""
    moment = _ends_at.get(threading.get_ident())
    if moment is None:
        moment = max(list(_ends_at.values()), default=float("inf"))
    if time.monotonic() > moment:
        raise TimeoutError("the time of the task is over")


def is_overdue(grace_s: float) -> bool:
    """Whether a task goes on so many seconds after its time."""
    return any(time.monotonic() > moment + grace_s for moment in list(_ends_at.values()))
