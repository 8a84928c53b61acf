"""The offers of the Berlin SPARQL Benchmark as a stream, and what the rule of static/examples/offers.rifps derives from them.

Eleven triples an offer, a pure function of its number and a seed. Nine offers of ten are told at once; of the others the price comes up
to twelve seconds later, so that windows of different lengths have different answers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tests.bench.data import BEGIN_MS, DATE, DATE_TIME, DECIMAL, INTEGER, TYPE, Item, spread, stamp

BSBM = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/"
INSTANCES = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/instances/"
DC = "http://purl.org/dc/elements/1.1/"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
OFFER_PRICE = f"{BSBM}offerPrice"
TRIPLES = 11
STEP_MS = 100
LIMIT = 5000

Row = tuple[str, str, int, int]
"""Product, price, and from when until when (ms) it is on offer."""


@dataclass(frozen=True, slots=True)
class Offers:
    """`size` offers, spread evenly over the instants of `seconds`."""

    size: int = 100_000
    seconds: int = 100
    seed: int = 1

    def items(self) -> Iterator[Item]:
        """All that is told, by time."""
        told: dict[int, list[str]] = defaultdict(list)
        for number in range(self.size):
            price, *others = self._triples(number)
            told[self.told_ms(number)] += others
            told[self.price_ms(number)].append(price)
        yield from sorted(told.items())

    def told_ms(self, number: int) -> int:
        """When an offer is told, but for its price."""
        return BEGIN_MS + number * self.seconds * 1000 // self.size // STEP_MS * STEP_MS

    def price_ms(self, number: int) -> int:
        """When its price is told, within the stream."""
        mixed = spread(number, self.seed)
        late = 0 if mixed % 10 else (mixed // 10 % 120 + 1) * STEP_MS
        return min(self.told_ms(number) + late, BEGIN_MS + self.seconds * 1000 - STEP_MS)

    def price(self, number: int) -> str:
        """A decimal of two places below 10,000."""
        cents = (spread(number, self.seed + 1) >> 8) % 1_000_000
        return f"{cents // 100}.{cents % 100:02}"

    def product(self, number: int) -> str:
        """The IRI of the product that is offered: each has several offers."""
        chosen = number * 7919 % max(1, self.size // 5)
        return f"{INSTANCES}dataFromProducer{chosen // 50}/Product{chosen}"

    def expected(self, window_ms: int) -> set[Row]:
        """Stream P of the rule under a window: an offer of the same price counts where it lasts longer than what was told before."""
        found: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
        for number in range(self.size):
            begin, end = self.price_ms(number), self.told_ms(number) + window_ms
            if begin < end and float(self.price(number)) < LIMIT:
                found[self.product(number), self.price(number)].append((begin, -end))
        rows: set[Row] = set()
        for (product, price), instances in found.items():
            until = 0
            for begin, end in sorted(instances):
                if -end > until:
                    until = -end
                    rows.add((product, price, begin, until))
        return rows

    def _triples(self, number: int) -> list[str]:
        vendor = f"{INSTANCES}dataFromVendor{number // 2000}/"
        day = 1 + number % 28
        told = {f"{BSBM}price": f'"{self.price(number)}"^^<{DECIMAL}>', TYPE: f"<{BSBM}Offer>",
                f"{BSBM}product": f"<{self.product(number)}>", f"{BSBM}vendor": f"<{vendor}Vendor{number // 2000}>",
                f"{BSBM}validFrom": f'"{stamp(BEGIN_MS - day * 86_400_000)}"^^<{DATE_TIME}>',
                f"{BSBM}validTo": f'"{stamp(BEGIN_MS + day * 86_400_000)}"^^<{DATE_TIME}>',
                f"{BSBM}deliveryDays": f'"{1 + number % 21}"^^<{INTEGER}>',
                f"{BSBM}offerWebpage": f"<http://vendor{number // 2000}.example/Offer{number}/>",
                f"{DC}publisher": f"<{vendor}Vendor{number // 2000}>", f"{DC}date": f'"2025-12-{day:02}"^^<{DATE}>',
                LABEL: f'"offer {number}"'}
        return [f"<{vendor}Offer{number}> <{property_}> {value} ." for property_, value in told.items()]
