"""How a command is carried out: what is slow first, against a view; then, on the log writer's thread, what decides, and its record.

A command is answered when its record is on disk. No lock is held, and nobody waits for the pump.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from types import MappingProxyType
from typing import Any, TypeVar

import pyarrow as pa

from engine.compiler import Catalog
from engine.runtime.append import Appender
from engine.runtime.clock import Clock
from engine.runtime.errors import unavailable
from engine.runtime.machine import Machine
from engine.runtime.planned import plan_key
from engine.runtime.query import Compiled
from engine.runtime.results import ResultLog
from engine.runtime.settings import Settings
from engine.runtime.view import View

Reply = TypeVar("Reply")
Info = TypeVar("Info")
Rows = list[pa.Table]
Decision = Callable[[Appender, View, int], tuple[Rows, Reply]]
"""Checks a command against the end of the log, appends its records there, and replies; at a time in ms."""
Check = Callable[[Info | None], None] | None
"""Refuses a command by raising, after a look at what it is to change (None: nothing is there)."""
NO_PLANS: Mapping[str, Compiled] = MappingProxyType({})
_TRIES, _FREE_TRIES = 20, 2


class StaleError(Exception):
    """What was prepared was prepared for something else."""


class Commands:
    """What all parts of the engine's surface share (service.py)."""

    def __init__(self, settings: Settings, clock: Clock, machine: Machine) -> None:
        self.settings = settings
        self.clock = clock
        self._machine = machine
        self._turn = threading.Lock()

    @property
    def results(self) -> ResultLog:
        return self._machine.results

    def _view(self) -> View:
        """What there is now; 503 where the engine does not run."""
        return self._machine.view

    def _names(self, options: Mapping[str, Any], view: View) -> Catalog:
        """What a statement may name."""
        return view.names(self.settings, bool(options.get("mixedTime", False)))

    def _hand(self, plans: Mapping[str, Compiled], end: Appender) -> None:
        """Give the pump these plans of queries, by name, as they are from the end of the log on."""
        graphs = {iri: version.position for iri, version in end.catalogue.graphs.items()}
        for name, compiled in plans.items():
            query = end.catalogue.queries[name]
            self._machine.planned.hand(plan_key(query.definition, query.statement, graphs, end.catalogue.rules), compiled)

    def _write(self, decide: Decision[Reply], plans: Mapping[str, Compiled] = NO_PLANS) -> tuple[Reply, View]:
        """Decide a command and append its records: its reply, and the view just after it. The pump is handed the `plans` for what they
        say."""
        self._machine.check_running()

        def decided(end: Appender, now: int) -> tuple[Rows, tuple[Reply, View]]:
            snapshot = self._machine.view.snapshot
            rows, reply = decide(end, View(end.catalogue, snapshot, end.sources), now)
            if rows:
                self._hand(plans, end)
            return rows, (reply, View(end.catalogue, snapshot, end.sources))

        try:
            written = self._machine.writer.call(decided, self.settings.command_wait_s, soon=True)
        except BaseException:
            self._machine.planned.drop(plans)
            raise
        self._machine.end_removed()
        return written

    def _write_prepared(self, prepare: Callable[[View], Decision[Reply]], plans: Mapping[str, Compiled] = NO_PLANS) -> tuple[Reply, View]:
        """`prepare` something slow, `plans` perhaps, then decide; again where the decision finds that too much has changed meanwhile
        (`StaleError`)."""
        for number in range(_TRIES):
            with self._turn if number >= _FREE_TRIES else nullcontext():    # who lost often waits for the others who did, not for luck
                try:
                    return self._write(prepare(self._view()), plans)
                except StaleError:
                    continue
        raise unavailable("engine-overloaded", "What the command depends on changes faster than it can be prepared.", 1)
