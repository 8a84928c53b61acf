"""Facts on a timeline of granules, those of LARS's programs: written as DatalogMTL's are, without its operators."""

from __future__ import annotations

from collections.abc import Iterator

from engine.ir.rules import Fact
from engine.timeline import MAX, MIN, Interval
from grammar.datalogmtl.forward import Metric
from grammar.datalogmtl.reader import Reader
from grammar.scanner import Token


class GranuleReader(Reader):
    """Reads facts; the times are numbers of granules."""

    begins = "a fact such as p(a)@5"
    goes_on = "'@' or the end of the line"
    of_facts = "write when it holds: p(a)@[1,2]; rules belong to the program"

    def hint(self, token: Token) -> str | None:
        match token.text:
            case "@":
                return "events in a file of facts are written p(a)@1, and what holds longer p(a)@[1,2]"
            case "<-" | "\u2190" | ":-":
                return "rules belong to the program"
        return super().hint(token)

    def _fact_of(self, metric: Metric, interval: Interval | None, start: int) -> Iterator[Fact]:
        if interval is not None and is_half_open(interval):
            name = metric.span.text.partition("(")[0]
            self.report.error(f"A fact of {name} has a begin or an end only; on a timeline of granules one holds always, or has both.",
                              self.span(start), hint="write p(a)@[1,2], or p(a) for what holds always")
            return
        yield from super()._fact_of(metric, interval, start)


def is_half_open(interval: Interval) -> bool:
    """Whether it has a begin or an end only."""
    return (interval.lo == MIN) != (interval.hi == MAX)
