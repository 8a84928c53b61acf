"""What stands further on in the input log and counts before the pump comes there.

A verdict says which evaluation failed by a limit: it is not tried again. A start with all queries paused pauses them where the pump
stood then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.records import Verdict
from engine.runtime.rows import Control, Kind, verdicts

START = "start"     # member of a PAUSE's payload: the position after which it counts


class Ahead:
    """Such records beyond the pump's position."""

    def __init__(self) -> None:
        self._verdicts: dict[tuple[str, int], Verdict] = {}
        self._pauses: dict[str, tuple[int, int]] = {}

    def note(self, found: Sequence[Control]) -> None:
        """Take in records that the pump has not processed."""
        for verdict in verdicts(found):
            self.add(verdict)
        for control in found:
            if control.kind is Kind.PAUSE and START in control.payload:
                self._pauses[control.stream] = control.payload[START], control.position

    def add(self, verdict: Verdict) -> None:
        """Take in a verdict."""
        self._verdicts[verdict.epoch, verdict.tick] = verdict

    def verdict(self, epoch: str, ticks: Sequence[int], looked: bool = False) -> Verdict | None:
        """The verdict about one of the evaluations of a query, at ascending times; or, where it is `looked` for others, about one up to the
        last of these: those before are done."""
        if not self._verdicts:
            return None
        if looked:
            found = [verdict for (of, tick), verdict in self._verdicts.items() if of == epoch and tick <= ticks[-1]]
            return min(found, key=lambda verdict: verdict.tick, default=None)
        return next((self._verdicts[epoch, tick] for tick in ticks if (epoch, tick) in self._verdicts), None)

    def verdicts(self, position: int) -> list[Verdict]:
        """The verdicts that stand up to a position."""
        return [verdict for verdict in self._verdicts.values() if verdict.position <= position]

    def pauses(self, position: int) -> Iterator[str]:
        """Queries that are paused when the record at a position is processed."""
        return (query for query, (start, end) in list(self._pauses.items()) if start < position <= end)

    @property
    def cuts(self) -> list[int]:
        """Positions before which a batch must be cut."""
        return [start + 1 for start, _ in self._pauses.values()]

    def reach(self, position: int) -> None:
        """Forget what stands up to the end of a batch."""
        self._verdicts = {key: verdict for key, verdict in self._verdicts.items() if verdict.position > position}
        self._pauses = {name: span for name, span in self._pauses.items() if span[1] > position}
