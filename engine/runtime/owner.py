"""One thread owns the engine's state; everyone else hands it functions to run, in order."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from engine.runtime.errors import unavailable
from engine.supervision.worker import Worker

Result = TypeVar("Result")


class Owner:
    """A thread that runs commands one after another. A command must not call the owner again."""

    def __init__(self, on_failure: Callable[[BaseException], None] | None = None) -> None:
        self._commands: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._closed = False
        self._lock = threading.Lock()
        self.worker = Worker("owner", self._run, on_failure)
        self.worker.start()

    def submit(self, command: Callable[[], Result]) -> Future[Result]:
        """Queue a command."""
        reply: Future[Result] = Future()
        with self._lock:
            if self._closed:
                raise unavailable("shutting-down", "The engine is stopping.")
            self._commands.put((command, reply))
        return reply

    def call(self, command: Callable[[], Result], timeout_s: float | None = None) -> Result:
        """Run a command and give its result, or raise what it raised; 503 if it does not come in time."""
        reply = self.submit(command)
        try:
            return reply.result(timeout_s)
        except TimeoutError:
            if reply.done():
                raise
            raise unavailable("engine-overloaded", f"The engine did not answer within {timeout_s:g} s.") from None

    def stop(self, within_s: float | None = None) -> bool:
        """Run what waits, then end; whether it has ended in time."""
        with self._lock:
            self._closed = True
            self._commands.put(None)
        return self.worker.join(within_s)

    def _run(self) -> None:
        while (entry := self._commands.get()) is not None:
            with self.worker.busy():
                try:
                    self._carry_out(*entry)
                except BaseException as failure:  # the thread's, which is looked after; whoever asked must not wait for ever
                    if not entry[1].done():
                        entry[1].set_exception(failure)
                    raise

    def _carry_out(self, command: Callable[[], Any], reply: Future[Any]) -> None:
        try:
            reply.set_result(command())
        except BaseException as failure:  # handed to whoever asked
            reply.set_exception(failure)
