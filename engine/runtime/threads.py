"""The thread that owns the pump, to which everyone else hands functions to run, in order; and the one that watches whether the engine does
its work: the evaluator is asked all the time, the pump must move, and no thread may fail or hang."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Event
from typing import Any, TypeVar

from engine.runtime.batch import EvaluatorDownError
from engine.runtime.errors import unavailable
from engine.runtime.settings import Settings
from engine.supervision import ANY_NUMBER, Worker, troubles

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


class StalledError(RuntimeError):
    """Records wait, and nothing brings them to the pump."""


@dataclass(frozen=True, slots=True)
class Sight:
    """The engine at a glance; `life` numbers the starts of its evaluator. The pump was `idle` just before it was at `position`."""

    running: bool
    life: int
    position: int
    backlog: int
    idle: bool


class Watch:
    """Looks once in `watch_s`. `broken` is told of an evaluator that has to be started again: one that has not answered for `silence_s`,
    or whose feed brings nothing for `stall_s` though records wait."""

    def __init__(self, settings: Settings, sight: Callable[[], Sight], alive: Callable[[], bool],
                 broken: Callable[[int, BaseException], None], now: Callable[[], float] = time.monotonic) -> None:
        self.worker = Worker("evaluator-watch", self._run, most=ANY_NUMBER)
        self._settings, self._sight, self._alive, self._broken = settings, sight, alive, broken
        self._now = now
        self._closing = Event()
        self._life = -1
        self._position = -1
        self._moved = now()
        self._silent_since: float | None = None

    def stop(self) -> None:
        self._closing.set()
        self.worker.join()

    def reasons(self, workers: Sequence[Worker]) -> list[str]:
        """Why the engine does not do its work."""
        found = troubles(workers, self._settings.stall_s)
        now, sight = self._now(), self._sight()
        if (since := self._silent_since) is not None:
            found.append(f"Spark has not answered for {now - since:.0f} s")
        if sight.running and sight.backlog and sight.position == self._position and now - self._moved > self._settings.stall_s:
            found.append(f"{sight.backlog} records wait, and none has been processed for {now - self._moved:.0f} s")
        return found

    def _run(self) -> None:
        while not self._closing.wait(self._settings.watch_s):
            self._look()

    def _look(self) -> None:
        sight, now = self._sight(), self._now()
        if not sight.running or sight.life != self._life:
            self._life, self._silent_since, self._moved = sight.life, None, now
            return
        if not sight.backlog or sight.position != self._position:
            self._position, self._moved = sight.position, now
        if self._alive():
            self._silent_since = None
        elif self._silent_since is None:
            self._silent_since = now
        elif now - self._silent_since >= self._settings.silence_s:
            self._broken(sight.life, EvaluatorDownError(f"Spark has not answered for {now - self._silent_since:.0f} s"))
        if now - self._moved > self._settings.stall_s and sight.idle:
            self._broken(sight.life, StalledError(f"{sight.backlog} records wait, and the feed brings none"))
