"""What the rules of equality would cost where they are applied as they stand: an estimate from the statements of owl:sameAs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pyarrow.compute as pc

from engine.execution.due import Due
from engine.ir.terms import SAME_AS
from engine.timeline import MAX, MIN
from engine.worker.equality import Classes

_ABOUT = 0.25   # the estimate stays while the number of statements differs by no more


class EqualTerms:
    """Estimates by query, with the number of statements that each was made from."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, int]] = {}

    def derived(self, due: Due, statements: int) -> int:
        """About how many facts these rules would derive for a query from so many statements: of n equal terms each pair, n times."""
        before, derived = self._known.get(due.query, (0, 0))
        if abs(statements - before) > _ABOUT * before:
            classes = Classes()
            classes.merge(((), one, other, False, False) for one, other in _pairs(due))
            sizes = Counter(rep for _, rep, _ in classes.rows())
            derived = sum(size ** 3 for size in sizes.values())
            self._known[due.query] = statements, derived
        return derived

    def forget(self, query: str) -> None:
        """A query is gone."""
        self._known.pop(query, None)


def _pairs(due: Due) -> Iterator[tuple[str, str]]:
    """What is said to be equal in the streams and graphs of a query."""
    for table in (*due.graphs.values(), *(content.between(MIN, MAX, -1) for content in due.streams.values())):
        found = table.filter(pc.equal(table["p"], SAME_AS))
        yield from zip(found["s"].to_pylist(), found["o"].to_pylist())
