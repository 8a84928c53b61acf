"""Waiting for a condition with a deadline, for what nobody tells."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

DEADLINE_S = 90
"""Long enough for a machine that has much else to do: only what never happens takes so long."""
_PAUSE_S = 0.005


def wait_until(condition: Callable[[], Any], seconds: float = 30, complaint: Callable[[], str] = lambda: "waited in vain",
               pause_s: float = _PAUSE_S) -> None:
    """Return when `condition` holds, which is asked again after each pause; AssertionError with the complaint after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, complaint()
        time.sleep(pause_s)
