"""A time limit on a block of code that somebody else can end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def deadline(seconds: float, end: Callable[[], object]) -> Iterator[None]:
    """Call `end`, in a thread of its own, if the block has not ended after so many seconds."""
    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
