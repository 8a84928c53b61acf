"""Compiled statements on their way from the commands that made them to the pump: what takes long is compiled once, and not in the thread
of its owner. A statement that is not here, as after a start, the pump compiles itself."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from engine.ir.statement import Statement
from engine.runtime.query import Compiled
from engine.runtime.registered import Definition
from engine.runtime.rule_store import StoredRules

MOST_WAITING = 1_024
Key = tuple[object, ...]


def plan_key(definition: Definition, statement: Statement, graphs: Mapping[str, int], rules: Mapping[str, StoredRules]) -> Key:
    """All that the compiled form of a registered statement depends on: its name and text, and the versions of the graphs and rule sets
    that it uses (None: it is built in, or not there)."""
    iris = sorted({source.iri for source in (*statement.graphs, *statement.reasoning_graphs)})
    sets = [(source.name, rules[source.name].version if source.name in rules else None) for source in statement.rules]
    return (definition.name, definition.media, definition.text, tuple((iri, graphs.get(iri)) for iri in iris), tuple(sets))


class Planned:
    """The last plan of each query that the pump has not taken. Used by any thread. What nobody takes goes when there is too much."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._plans: dict[object, tuple[Key, Compiled]] = {}

    def hand(self, key: Key, compiled: Compiled) -> None:
        """For the pump, when it comes to the record. The caller must not use it afterwards."""
        with self._lock:
            self._plans[key[0]] = key, compiled
            while len(self._plans) > MOST_WAITING:
                del self._plans[next(iter(self._plans))]

    def take(self, key: Key) -> Compiled | None:
        """What was handed over, once."""
        with self._lock:
            known, compiled = self._plans.get(key[0], (None, None))
            if known != key:
                return None
            del self._plans[key[0]]
            return compiled

    def drop(self, names: Iterable[str]) -> None:
        """The records of these queries were not written: the next ones have their positions."""
        with self._lock:
            for name in names:
                self._plans.pop(name, None)
