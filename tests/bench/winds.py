"""Observations of wind as a stream, and what the hurricane rule of static/examples/hurricane.rifps derives from them.

Twenty stations observe once a second. One value of eight comes up to fifteen seconds after its observation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tests.bench.data import BEGIN_MS, DECIMAL, TYPE, Item, spread

SSN = "http://purl.oclc.org/NET/ssnx/ssn#"
EXT = "http://www.semsorgrid4env.eu/ontologies/SsnExtension.owl#"
OBSERVED_WEATHER = f"{EXT}observedWeatherType"
HURRICANE = "http://dbpedia.org/class/yago/Hurricane111467018"
PROPERTIES = tuple(f"http://purl.oclc.org/NET/ssnx/cf/cf-property#{name}" for name in ("wind_speed", "air_temperature"))
STATIONS = 20
LEAST_WIND = 75
"""Of a hurricane in static/examples/hurricane-graph.ttl (a weaker storm was none)."""
_OURS = "http://example.org/weather/"


@dataclass(frozen=True, slots=True)
class Winds:
    """`size` observations, STATIONS of them a second."""

    size: int = 2_000
    seed: int = 1

    def items(self) -> Iterator[Item]:
        """All that is told, by time."""
        told: dict[int, list[str]] = defaultdict(list)
        for number in range(self.size):
            told[self.told_ms(number)] += self._triples(number)
            told[self.value_ms(number)].append(f'<{_OURS}value/{number}> <{EXT}hasQuantityValue> "{self.value(number)}"^^<{DECIMAL}> .')
        yield from sorted(told.items())

    def told_ms(self, number: int) -> int:
        """When an observation is told."""
        return BEGIN_MS + number // STATIONS * 1000 + number % STATIONS * 10

    def value_ms(self, number: int) -> int:
        """When its value comes."""
        mixed = spread(number, self.seed)
        return self.told_ms(number) + (0 if mixed % 8 else (1 + mixed // 8 % 15) * 1000)

    def value(self, number: int) -> str:
        """A decimal of one place up to 200."""
        tenths = spread(number, self.seed + 1) % 2001
        return f"{tenths // 10}.{tenths % 10}"

    def expected(self, window_ms: int) -> set[tuple[str, int, int]]:
        """The observations of a hurricane, each with from when until when (ms) it counts."""
        found = {(f"{_OURS}observation/{number}", self.value_ms(number), self.told_ms(number) + window_ms) for number in range(self.size)
                 if self.property(number) == PROPERTIES[0] and float(self.value(number)) > LEAST_WIND}
        return {row for row in found if row[1] < row[2]}

    def property(self, number: int) -> str:
        """What is observed: wind three times of four."""
        return PROPERTIES[spread(number, self.seed + 2) % 4 == 0]

    def _triples(self, number: int) -> list[str]:
        observation, result, value = (f"<{_OURS}{name}/{number}>" for name in ("observation", "result", "value"))
        return [f"{observation} <{TYPE}> <{SSN}Observation> .", f"{observation} <{SSN}observedProperty> <{self.property(number)}> .",
                f"{observation} <{SSN}observedBy> <{_OURS}station/{number % STATIONS}> .",
                f"{observation} <{SSN}observationResult> {result} .", f"{result} <{SSN}hasValue> {value} ."]
