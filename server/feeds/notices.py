"""What the engine has told and the feeds have not been told yet: bounded, and the engine never waits.

Beyond the bound results are left out, for the result log has them, and of everything else each query's newest of a kind is kept.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import replace

from engine.runtime.resources import Notice
from server.limits import Limits


class Notices:
    """A queue from the engine's threads to the thread that writes events."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._waiting: deque[Notice | None] = deque()
        self._bytes = 0
        self._beyond: dict[tuple[str, str | None], Notice] = {}
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return len(self._waiting) + len(self._beyond)

    def put(self, notice: Notice | None) -> None:
        """Take a notice; None ends the thread that reads them."""
        with self._changed:
            if notice is not None and (self._beyond or len(self._waiting) >= self._limits.notices_waiting
                                       or self._bytes + _size(notice) > self._limits.notices_bytes and self._waiting):
                key = (notice.kind, notice.query)
                self._beyond.pop(key, None)     # the newest comes last, as it was told
                self._beyond[key] = replace(notice, event=None)
            else:
                self._waiting.append(notice)
                self._bytes += _size(notice)
            self._changed.notify()

    def get(self) -> Notice | None:
        """The next one, once there is one. A result without its event, and perhaps some before it, must be read from the result log."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._beyond)
            if self._waiting and (self._waiting[0] is not None or not self._beyond):
                notice = self._waiting.popleft()
                self._bytes -= _size(notice)
                return notice
            return self._beyond.pop(next(iter(self._beyond)))


def _size(notice: Notice | None) -> int:
    return 0 if notice is None or notice.event is None else notice.event.size
