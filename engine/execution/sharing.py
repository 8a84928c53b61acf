"""Which queries can share what their patterns find: those whose patterns differ in constants, filters and windows only."""

from __future__ import annotations

from collections import Counter

from engine.execution.compiled import Compiled
from engine.plan.nodes import KeptSource, Plan, sources


class Sharing:
    """Counts the queries that would read each general relation (engine/plan/kept.py), as they are evaluated."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[Plan, frozenset[str]]] = {}     # by query: its plan, and the names of the relations
        self._users = Counter[str]()

    def users(self, query: str, compiled: Compiled) -> int:
        """How many queries would read each of the general relations of this one, itself included."""
        known = self._read.get(query)
        if known is None or known[0] is not compiled.plan:
            self.forget(query)
            names = frozenset(source.name for source in sources(compiled.shared) if isinstance(source, KeptSource)
                              ) if compiled.shared is not None else frozenset()
            self._users.update(names)
            known = self._read[query] = compiled.plan, names
        return min((self._users[name] for name in known[1]), default=0)

    def forget(self, query: str) -> None:
        """A query is gone."""
        known = self._read.pop(query, None)
        if known is not None:
            self._users.subtract(known[1])
            self._users = +self._users
