"""The data of the join benchmark (W1) and its oracle: observations of 100 sensors, three triples each, a pure function of a seed.

Everything follows from the number of the observation: its time (evenly spread), sensor, and value (multiplicative hash, so that about
half of the values pass the filter). The oracle knows the bag of answers of a window from prefix sums of the row hashes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from tests.bench.hashing import MASK, Bag, iri_text, literal_text, row_hash

DECIMAL = "http://www.w3.org/2001/XMLSchema#decimal"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
BENCH = "http://bench.example/"
SENSORS = 100
THRESHOLD = 20
TRIPLES = 3
_VALUES = 401
_SPREAD = 2_654_435_761

QUERY = """PREFIX b: <http://bench.example/>
REGISTER QUERY {name} AS
SELECT ?o ?s ?v
FROM STREAM <{stream}> [RANGE 10s STEP 1s]
WHERE {{ ?o a b:Observation ; b:sensor ?s ; b:value ?v . FILTER (?v > 20) }}"""


@dataclass(frozen=True, slots=True)
class Observations:
    """`per_second` observations in each second from `begin_ms` on, evenly spread over its milliseconds."""

    begin_ms: int
    per_second: int
    seed: int = 1
    sensors: int = SENSORS

    def numbers(self, from_ms: int, until_ms: int) -> range:
        """The numbers of the observations with from <= t < until, both counted from `begin_ms`."""
        return range(-(-from_ms * self.per_second // 1000), -(-until_ms * self.per_second // 1000))

    def time_ms(self, number: int) -> int:
        """When an observation was made."""
        return self.begin_ms + number * 1000 // self.per_second

    def value(self, number: int) -> str:
        """Its value: a decimal of one place from 0.0 to 40.0."""
        tenths = self.tenths(number)
        return f"{tenths // 10}.{tenths % 10}"

    def tenths(self, number: int) -> int:
        """Ten times its value."""
        return ((number + self.seed) * _SPREAD & 0xFFFFFFFF) * _VALUES >> 32

    def body(self, from_ms: int, until_ms: int) -> bytes:
        """A push in ``text/x-timed-ntriples`` with the observations between two times (from `begin_ms`)."""
        return "".join(self._lines(from_ms, until_ms)).encode()

    def _lines(self, from_ms: int, until_ms: int) -> Iterator[str]:
        for number in self.numbers(from_ms, until_ms):
            head = f"{self.time_ms(number)}\t<{BENCH}o/{self.seed}/{number}> <"
            yield (f"{head}{TYPE}> <{BENCH}Observation> .\n{head}{BENCH}sensor> <{BENCH}s/{number % self.sensors}> .\n"
                   f'{head}{BENCH}value> "{self.value(number)}"^^<{DECIMAL}> .\n')

    def answer_hash(self, number: int) -> int | None:
        """The hash of the answer row that an observation gives while it is in the window; None where the filter drops it."""
        value = self.value(number)
        if float(value) <= THRESHOLD:
            return None
        return row_hash((iri_text(f"{BENCH}o/{self.seed}/{number}"), iri_text(f"{BENCH}s/{number % self.sensors}"),
                         literal_text(value, DECIMAL)))


class Oracle:
    """The bags of answers of all windows up to `until_ms` (from the beginning)."""

    def __init__(self, observations: Observations, until_ms: int, range_ms: int = 10_000) -> None:
        self._observations, self._range_ms = observations, range_ms
        hashes = [observations.answer_hash(number) for number in observations.numbers(0, until_ms)]
        self._rows = list(accumulate((h is not None for h in hashes), initial=0))
        self._totals = list(accumulate((h or 0 for h in hashes), lambda a, b: a + b & MASK, initial=0))

    def at(self, tick_ms: int) -> Bag:
        """The answers at the evaluation time T: those of the observations with T - range <= t < T."""
        until = tick_ms - self._observations.begin_ms
        numbers = self._observations.numbers(max(0, until - self._range_ms), until)
        return self._prefix(numbers.stop) - self._prefix(numbers.start)

    def _prefix(self, count: int) -> Bag:
        return Bag(self._rows[count], self._totals[count])
