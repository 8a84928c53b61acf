"""Compiled statements on their way from the commands that made them to the pump: what takes long is compiled once, and not in the thread
of its owner. A statement that is not here, as after a start, the pump compiles itself."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from engine.ir.statement import Statement
from engine.runtime.query import Compiled
from engine.runtime.registered import Definition
from engine.runtime.rule_store import StoredRules

MOST_WAITING = 1_024
Key = tuple[object, ...]


def plan_key(definition: Definition, statement: Statement, graphs: Mapping[str, int], rules: Mapping[str, StoredRules]) -> Key:
    """All that the compiled form of a registered statement depends on: its name and text, and the versions of the graphs and rule sets
    that it uses (None: it is built in, or not there)."""
    names = sorted({source.iri for source in (*statement.graphs, *statement.reasoning_graphs)})
    sets = [(source.name, stored and stored.version) for source in statement.rules for stored in [rules.get(source.name)]]
    return (definition.name, definition.media, definition.text, tuple((iri, graphs.get(iri)) for iri in names), tuple(sets))


class Planned:
    """Used by any thread. What nobody takes goes when there is too much."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._plans: dict[Key, Compiled] = {}

    def hand(self, key: Key, compiled: Compiled) -> None:
        """For the pump, when it comes to the record; the giver does not use it any more."""
        with self._lock:
            self._plans[key] = compiled
            while len(self._plans) > MOST_WAITING:
                del self._plans[next(iter(self._plans))]

    def take(self, key: Key) -> Compiled | None:
        """What was handed over, once."""
        with self._lock:
            return self._plans.pop(key, None)
