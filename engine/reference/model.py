"""What an evaluation of rules finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.reference.formulas import Ground, Row
from engine.timeline import Interval

Intervals = tuple[Interval, ...]


@dataclass(frozen=True, slots=True)
class Inconsistency:
    """A rule with head ``false`` fired: its name, the bindings, and when."""

    rule: str
    row: Row
    intervals: Intervals


@dataclass(frozen=True, slots=True)
class Model:
    """What holds: coalesced intervals by ground atom (predicate, tokens), input included; and what is inconsistent."""

    facts: Mapping[Ground, Intervals]
    inconsistencies: tuple[Inconsistency, ...] = ()

    def at(self, point: int) -> set[Ground]:
        """The atoms that hold at a point."""
        return {atom for atom, intervals in self.facts.items() if any(point in i for i in intervals)}
