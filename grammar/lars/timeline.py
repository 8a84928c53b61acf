"""The timeline of a LARS program: its granularity and start, the sizes of windows, the instants of ``@``."""

from dataclasses import dataclass
from typing import Literal

from engine.ir.spans import Span
from engine.ir.terms import XSD, Constant, Term, Variable
from engine.timeline import LONGEST_MS, is_moment
from grammar.datalog.bodies import BodyReader
from grammar.durations import DurationError, amount, instant
from grammar.terms import literal

DEFAULT_GRANULARITY_MS = 1_000
MOST_TUPLES = 1_000_000
A_WINDOW = "a window is written [10 sec], [3] (granules) or [5 #] (tuples)"
_A_START = 'START AT "2024-05-01T00:00:00Z", or START AT 5 for a granule'


@dataclass(frozen=True, slots=True)
class Window:
    """A window as written, its size in granules or tuples."""

    unit: Literal["time", "tuple"]
    size: int
    span: Span


class TimelineReader(BodyReader):
    """Reads ``GRANULARITY 1 sec`` and ``START AT "2024-05-01T00:00:00Z"`` or ``START AT 5``, then windows and instants by them."""

    directives = ("PREFIX", "FROM", "GRANULARITY", "START")
    granularity_ms = DEFAULT_GRANULARITY_MS
    _start: tuple[int, bool, Span] | None = None

    def directive(self, word: str, start: int) -> None:
        if word == "GRANULARITY":
            self._granularity()
        else:
            self._start_at()

    def start_at_ms(self) -> int | None:
        """The first instant of the timeline: the begin of the granule that START AT names or whose instant it gives."""
        if self._start is None:
            return None
        value, is_granule, span = self._start
        granule = value if is_granule else value // self.granularity_ms
        self.check_moment(granule, span)
        return granule * self.granularity_ms

    def window(self) -> Window:
        """``[10 sec]``, ``[3]`` or ``[5 #]``; stops at the mistakes after which its size is not known."""
        start = self.next().start
        if self.at("]"):
            self.next()
            self.refuse("A window has a size.", A_WINDOW, self.span(start))
        if self.at("-"):
            while not self.at("]", ".") and self.token.kind != "eof":
                self.next()
            self.take("]")
            self.refuse("A window is not negative.", A_WINDOW, self.span(start))
        tuples = self.take("#") is not None
        number = self.expect_kind("number", "a count of tuples" if tuples else "the size of a window")
        tuples = tuples or self.take("#") is not None
        unit = self.next().text if self.token.kind == "word" and not tuples else None
        self.expect("]", A_WINDOW)
        span = self.span(start)
        if tuples:
            return Window("tuple", self._count_of(number.text, span, 1, MOST_TUPLES, "tuples"), span)
        if unit is None:
            return Window("time", self._count_of(number.text, span, 0, LONGEST_MS // self.granularity_ms, "granules"), span)
        return Window("time", self._granules(number.text, unit, span), span)

    def instant(self) -> Term:
        """What stands behind ``@``: a variable, or the number of a granule."""
        start = self.token.start
        granule = self.integer()
        if granule is not None:
            self.check_moment(granule, self.span(start))
            return literal(str(granule), f"{XSD}integer")
        if not self.starts_term():
            self.fail("a variable or the number of a granule", "@T p(X), or @5 p(X)")
        term = self.term()
        if isinstance(term, Variable):
            return term
        self.report.error(f"@ takes a variable or the number of a granule, found {self.span(start).text}.", self.span(start),
                          hint="@T p(X), or @5 p(X)")
        return Constant('""')

    def check_moment(self, granule: int, span: Span) -> None:
        """Report a granule that is not within the time that there is."""
        if not is_moment(granule * self.granularity_ms):
            self.report.error(f"Granule {granule} is not within the years 1 to 9999.", span, hint="granules count from 1970")

    def _granularity(self) -> None:
        start = self.token.start
        number = self.expect_kind("number", "the length of a granule, such as 1 sec")
        if self.token.kind != "word" or self.at_directive():
            self.fail("a unit: ms, sec, min, h or d", f"GRANULARITY {number.text} sec")
        length = self._duration(number.text, self.next().text, self.span(start))
        if length == 0:
            self.report.error("A granule is longer than nothing.", self.span(start), hint="GRANULARITY 1 sec")
        self.granularity_ms = length or DEFAULT_GRANULARITY_MS

    def _start_at(self) -> None:
        if self.token.word != "AT":
            self.fail("AT", _A_START)
        self.next()
        start = self.token.start
        if self.token.kind != "string":
            granule = self.integer()
            if granule is None:
                self.fail("an xsd:dateTime in quotes or the number of a granule", _A_START)
            self._start = granule, True, self.span(start)
            return
        term = self.term()
        assert isinstance(term, Constant)
        lexical, _, datatype = term.token[1:].rpartition('"')
        span = self.span(start)
        try:
            if datatype not in ("", f"^^<{XSD}dateTime>"):
                raise DurationError(f"{span.text} is not an xsd:dateTime.", 'START AT "2024-05-01T00:00:00Z"')
            self._start = instant(lexical), False, span
        except DurationError as error:
            self.report.error(error.message, span, hint=error.hint)

    def _granules(self, number: str, unit: str, span: Span) -> int:
        """The size of a time window in granules; it must be a whole number of them."""
        length = self._duration(number, unit, span) or 0
        if length % self.granularity_ms:
            self.report.error(f"{span.text} is no whole number of granules of {self.granularity_ms} ms.", span,
                              hint="declare a finer one before the rules, such as GRANULARITY 100 ms")
        return length // self.granularity_ms

    def _duration(self, number: str, unit: str, span: Span) -> int | None:
        try:
            return amount(number, unit)
        except DurationError as error:
            self.report.error(error.message, span, hint=error.hint)
            return None

    def _count_of(self, number: str, span: Span, least: int, most: int, what: str) -> int:
        if not number.isdecimal() or len(number) > 15 or not least <= int(number) <= most:
            self.report.error(f"A window of {what} has {least} to {most} of them.", span, hint=A_WINDOW)
            return least
        return int(number)
