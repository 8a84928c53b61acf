"""What must be kept of streams for queries that are still to be evaluated."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Need:
    """What may still be seen of a stream: events from `from_ms` on, and of the older ones the last `triples` and `items`."""

    from_ms: int
    triples: int = 0
    items: int = 0

    def join(self, other: Need) -> Need:
        """What serves both."""
        return Need(min(self.from_ms, other.from_ms), max(self.triples, other.triples), max(self.items, other.items))


KnownNeeds = dict[tuple[int, int], dict[str, Need]]
"""What is needed by the id of a timetable and a floor (`Ticker.needs`): found once for all queries of which both are the same."""
