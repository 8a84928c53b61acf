"""Whoever is told what happens: results, states, progress."""

from __future__ import annotations

import logging
from collections.abc import Callable

from engine.runtime.resources import Listener, Notice

_LOG = logging.getLogger(__name__)


class Listeners:
    """Called from the engine's threads, one notice after another."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every notice, until the function returned is called."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)
        return unsubscribe

    def notify(self, notice: Notice) -> None:
        """Tell every listener."""
        for listener in list(self._listeners):
            try:
                listener(notice)
            except Exception:  # a listener's fault must not stop the pump
                _LOG.exception("a listener failed")
