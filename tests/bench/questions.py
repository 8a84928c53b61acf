"""One question of each shape over observations (W1's), with the text that is pushed for it and its answers, known by brute force.

Every answer is counted by the number of its observation: when its oldest and newest triples come says which evaluations see it. What is
aggregated is summed in tenths by second and sensor, for a window is ten whole seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from heapq import nsmallest

import numpy as np

from engine.functions.numeric import divide_decimals
from tests.bench.hashing import MASK, Bag, bag_of, iri_text, literal_text, row_hash
from tests.bench.observations import BENCH, DECIMAL, SENSORS, THRESHOLD, TYPE, Observations

RANGE_S = 10
APART_MS = 1_500
"""How much later the second stream tells of an observation."""
ROOMS = 1_000
GRAPH = f"{BENCH}rooms"
_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
_W1 = "?o a b:Observation ; b:sensor ?s ; b:value ?v"
_MOST = "{ SELECT ?s (MAX(?w) AS ?v) WHERE { ?p b:sensor ?s ; b:value ?w } GROUP BY ?s }"
_HIGH = 300         # tenths
Bodies = Callable[[Observations, int, int], bytes]
"""What is pushed of some observations between two times (ms from the beginning)."""
Answers = dict[int, Bag]
"""The answers by evaluation: T in seconds from the beginning."""
Told = tuple[int, int, int]
"""When the oldest and the newest triple of an answer come (ms from the beginning), and the hash of its row."""


def rows_by_time(told: Iterable[Told], seconds: int, range_s: int = RANGE_S) -> Answers:
    """The bag of the rows that each evaluation sees: those with T - range <= oldest and newest < T."""
    rows, totals = [0] * (seconds + 2), [0] * (seconds + 2)
    for oldest, newest, number in told:
        seen_from, until = newest // 1000 + 1, min(oldest // 1000 + range_s, seconds) + 1
        if seen_from < until:
            rows[seen_from] += 1
            rows[until] -= 1
            totals[seen_from] += number
            totals[until] -= number
    found, bag = {}, Bag()
    for at in range(1, seconds + 1):
        bag = Bag(bag.rows + rows[at], bag.total + totals[at] & MASK)
        found[at] = bag
    return found


@dataclass(frozen=True, slots=True)
class Numbers:
    """The observations whose time is within so many seconds, by number: time, sensor and value."""

    data: Observations
    seconds: int

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """Number, ms from the beginning, tenths."""
        for number in self.data.numbers(0, self.seconds * 1000):
            yield number, self.data.time_ms(number) - self.data.begin_ms, self.data.tenths(number)

    def row(self, number: int, *more: str | None) -> int:
        """The hash of the row of an observation: it, its sensor, its value, and more."""
        return row_hash((self.item(number), sensor(number), literal_text(self.data.value(number), DECIMAL), *more))

    def item(self, number: int) -> str:
        return iri_text(f"{BENCH}o/{self.data.seed}/{number}")


def sensor(number: int) -> str:
    """The sensor of an observation, as a term's text."""
    return iri_text(f"{BENCH}s/{number % SENSORS}")


# --- answers


def _all_rows(numbers: Numbers) -> Answers:
    return rows_by_time(_passing(numbers), numbers.seconds)


def _passing(numbers: Numbers) -> Iterator[Told]:
    return ((t, t, numbers.row(number)) for number, t, tenths in numbers if tenths > THRESHOLD * 10)


def _new_rows(numbers: Numbers) -> Answers:
    return rows_by_time(_passing(numbers), numbers.seconds, 1)


def _count(numbers: Numbers) -> Answers:
    counted = rows_by_time(((t, t, 0) for _, t, tenths in numbers if tenths > THRESHOLD * 10), numbers.seconds)
    return {at: bag_of([row_hash((literal_text(str(bag.rows), _INTEGER),))]) for at, bag in counted.items()}


def averages(numbers: Numbers, range_s: int = RANGE_S) -> Answers:
    """Those of AVG by sensor, with HAVING, over the last so many seconds."""
    sums, counts = (np.zeros((numbers.seconds, SENSORS), np.int64) for _ in range(2))
    for number, t, tenths in numbers:
        if tenths > THRESHOLD * 10:
            sums[t // 1000, number % SENSORS] += tenths
            counts[t // 1000, number % SENSORS] += 1
    found = {}
    for at in range(1, numbers.seconds + 1):
        window = slice(max(0, at - range_s), at)
        pairs = zip(sums[window].sum(axis=0).tolist(), counts[window].sum(axis=0).tolist())
        found[at] = bag_of(row_hash((sensor(k), mean(total, count))) for k, (total, count) in enumerate(pairs) if total > _HIGH * count)
    return found


def mean(tenths: int, count: int) -> str:
    """The text of a mean that is not zero."""
    return literal_text(f"{divide_decimals(Decimal(tenths) / 10, count):f}".rstrip("0").rstrip("."), DECIMAL)


def _optional(numbers: Numbers) -> Answers:
    def told() -> Iterator[Told]:
        for number, t, tenths in numbers:
            if tenths > THRESHOLD * 10:
                value = literal_text(numbers.data.value(number), DECIMAL)
                yield t, t, row_hash((numbers.item(number), sensor(number), value if tenths > _HIGH else None))
    return rows_by_time(told(), numbers.seconds)


def _not_exists(numbers: Numbers) -> Answers:
    return rows_by_time(((t, t, numbers.row(number)) for number, t, tenths in numbers if tenths <= THRESHOLD * 10), numbers.seconds)


def _greatest(numbers: Numbers) -> Answers:
    """By second and sensor the greatest value and the rows that have it."""
    known: list[dict[int, tuple[int, Bag]]] = [{} for _ in range(numbers.seconds)]
    for number, t, tenths in numbers:
        best, bag = known[t // 1000].get(number % SENSORS, (-1, Bag()))
        if tenths >= best:
            known[t // 1000][number % SENSORS] = tenths, (bag if tenths == best else Bag()) + bag_of([numbers.row(number)])
    found = {}
    for at in range(1, numbers.seconds + 1):
        together: dict[int, tuple[int, Bag]] = {}
        for second in known[max(0, at - RANGE_S):at]:
            for key, (value, bag) in second.items():
                best, rows = together.get(key, (-1, Bag()))
                if value >= best:
                    together[key] = value, (rows if value == best else Bag()) + bag
        found[at] = sum((bag for _, bag in together.values()), Bag())
    return found


def _first_ten(numbers: Numbers) -> Answers:
    """The rows of a second that may be among the first ten are its own first ten."""
    ranked: list[list[tuple[int, str, int]]] = [[] for _ in range(numbers.seconds)]
    for number, t, tenths in numbers:
        if tenths > THRESHOLD * 10:
            ranked[t // 1000].append((-tenths, numbers.item(number), number))
    best = [nsmallest(10, second) for second in ranked]
    found = {}
    for at in range(1, numbers.seconds + 1):
        window = [one for second in best[max(0, at - RANGE_S):at] for one in second]
        found[at] = bag_of(numbers.row(number, str(place)) for place, (_, _, number) in enumerate(nsmallest(10, window)))
    return found


def _path(numbers: Numbers) -> Answers:
    def told() -> Iterator[Told]:
        times = {number: (t, tenths) for number, t, tenths in numbers}
        for number, (t, _) in times.items():
            far = before(numbers.data, before(numbers.data, number))
            if far >= 0 and times[far][1] > THRESHOLD * 10:
                value = literal_text(numbers.data.value(far), DECIMAL)
                yield times[far][0], t, row_hash((numbers.item(number), numbers.item(far), value))
    return rows_by_time(told(), numbers.seconds)


def before(data: Observations, number: int) -> int:
    """The observation that one names as that before it: up to four seconds old; below zero it is never made."""
    return number - 1 - number * 7_919 % (4 * data.per_second)


def _two_streams(numbers: Numbers) -> Answers:
    return rows_by_time(((t, t + APART_MS, numbers.row(number, literal_text(str(number % 7), _INTEGER)))
                         for number, t, tenths in numbers if tenths > THRESHOLD * 10), numbers.seconds)


def _with_static(numbers: Numbers) -> Answers:
    return rows_by_time(((t, t, row_hash((numbers.item(number), iri_text(f"{BENCH}room/{number % ROOMS}"))))
                         for number, t, tenths in numbers if tenths > THRESHOLD * 10), numbers.seconds)


# --- what is pushed


def _path_body(data: Observations, from_ms: int, until_ms: int) -> bytes:
    lines = []
    for number in data.numbers(from_ms, until_ms):
        head = f"{data.time_ms(number)}\t<{BENCH}o/{data.seed}/{number}> <{BENCH}"
        lines.append(f"{head}after> <{BENCH}o/{data.seed}/{before(data, number)}> .\n{head}sensor> <{BENCH}s/{number % SENSORS}> .\n"
                     f'{head}value> "{data.value(number)}"^^<{DECIMAL}> .\n')
    return "".join(lines).encode()


def _own_body(data: Observations, from_ms: int, until_ms: int) -> bytes:
    """Sensor and value, without the type."""
    kept = [line for line in data.body(from_ms, until_ms).split(b"\n") if TYPE.encode() not in line]
    return b"\n".join(kept)


def _check_body(data: Observations, from_ms: int, until_ms: int) -> bytes:
    """What the second stream tells, a triple of each observation, later."""
    numbers = data.numbers(max(0, from_ms - APART_MS), max(0, until_ms - APART_MS))
    return "".join(f'{data.time_ms(number) + APART_MS}\t<{BENCH}o/{data.seed}/{number}> <{BENCH}check> "{number % 7}"^^<{_INTEGER}> .\n'
                   for number in numbers).encode()


def _room_body(size: int) -> Bodies:
    """As W1's, but the sensors are `size`, each of which the static graph knows."""
    return lambda data, from_ms, until_ms: replace(data, sensors=size).body(from_ms, until_ms)


def rooms(size: int) -> bytes:
    """The static graph: the room of each sensor. `size` is a multiple of ROOMS."""
    return "".join(f"<{BENCH}s/{number}> <{BENCH}room> <{BENCH}room/{number % ROOMS}> .\n" for number in range(size)).encode()


# --- the shapes


@dataclass(frozen=True, slots=True)
class Shape:
    """A question: what it selects from where (sources of data follow FROM), what is pushed to each of its streams, and its
    answers; `ranked`: their order counts."""

    select: str
    where: str
    answers: Callable[[Numbers], Answers]
    bodies: Mapping[str, Bodies] = field(default_factory=lambda: {"one": Observations.body})
    graph: bytes | None = None
    mode: str = "full"
    ranked: bool = False

    def text(self, name: str) -> str:
        """The statement."""
        sources = [f"FROM NAMED WINDOW b:{stream} ON <{stream_iri(name, stream)}> [RANGE {RANGE_S}s STEP 1s]" for stream in self.bodies]
        if len(sources) == 1:
            sources = [f"FROM STREAM <{stream_iri(name, stream)}> [RANGE {RANGE_S}s STEP 1s]" for stream in self.bodies]
        sources += [f"FROM NAMED <{GRAPH}>"] if self.graph is not None else []
        return f"PREFIX b: <{BENCH}>\nREGISTER QUERY {name} AS\n{self.select.replace('FROM', ' '.join(sources), 1)}\n{self.where}"


def stream_iri(name: str, stream: str) -> str:
    """The stream of a question."""
    return f"{BENCH}{name}/{stream}"


def shapes(static: int) -> dict[str, Shape]:
    """All of them by name; `static` triples are in the static graph."""
    high = f"FILTER (?v > {THRESHOLD})"
    w1 = f"WHERE {{ {_W1} {high} }}"
    return {
        "rows": Shape("SELECT ?o ?s ?v FROM", w1, _all_rows),
        "count": Shape("SELECT (COUNT(*) AS ?n) FROM", w1, _count),
        "avg": Shape("SELECT ?s (AVG(?v) AS ?mean) FROM", f"{w1} GROUP BY ?s HAVING (AVG(?v) > {_HIGH // 10})", averages),
        "optional": Shape("SELECT ?o ?s ?w FROM",
                          f"WHERE {{ {_W1} {high} OPTIONAL {{ ?o b:value ?w FILTER (?w > {_HIGH // 10}) }} }}", _optional),
        "notexists": Shape("SELECT ?o ?s ?v FROM",
                           f"WHERE {{ {_W1} FILTER NOT EXISTS {{ ?o b:value ?w FILTER (?w > {THRESHOLD}) }} }}", _not_exists),
        "max": Shape("SELECT ?o ?s ?v FROM", f"WHERE {{ {_W1} {_MOST} }}", _greatest),
        "order": Shape("SELECT ?o ?s ?v FROM", f"{w1} ORDER BY DESC(?v) ?o LIMIT 10", _first_ten, ranked=True),
        "new": Shape("SELECT ISTREAM ?o ?s ?v FROM", w1, _new_rows, mode="delta"),
        "path": Shape("SELECT ?o ?far ?v FROM", f"WHERE {{ ?o b:after ?m . ?m b:after ?far . ?far b:value ?v {high} }}", _path,
                      {"one": _path_body}),
        "streams": Shape("SELECT ?o ?s ?v ?c FROM",
                         f"WHERE {{ WINDOW b:one {{ ?o b:sensor ?s ; b:value ?v {high} }} WINDOW b:two {{ ?o b:check ?c }} }}",
                         _two_streams, {"one": _own_body, "two": _check_body}),
        "static": Shape("SELECT ?o ?r FROM", f"WHERE {{ {_W1} {high} GRAPH <{GRAPH}> {{ ?s b:room ?r }} }}", _with_static,
                        {"one": _room_body(static)}, rooms(static)),
    }
