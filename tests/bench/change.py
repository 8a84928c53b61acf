"""What an evaluation takes by the share of its windows that has changed, for each construct, inside the task that evaluates it.

Windows of a million triples, no Spark: the tasks run in this process, as those of `thalweg run` do. Each construct is evaluated as the
planner chooses and by the other strategy; beside them pyoxigraph, whose store is kept: it takes in what came, forgets what went, and is
asked the same. All must agree. The constructs are those of `shapes`; where an answer would be as large as its window the filter is such
that a few thousand rows pass it. `wide` has these with half of the window in the answer.
"""

from __future__ import annotations

import gc
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyoxigraph

from engine.compiler import Catalog, compile_statement
from engine.execution.choices import StrategyName
from engine.execution.content import StreamContent
from engine.execution.due import Due
from engine.execution.executor import Executor
from engine.execution.own_process import OwnProcess
from engine.facts import FACTS
from engine.functions.typed import typed_columns
from engine.worker.bundles import Found, Tables, Task
from grammar import parse
from tests.bench.figures import Figure, at_most, plain
from tests.bench.maintenance import Edges, by_executor, by_store
from tests.bench.observations import BENCH, DECIMAL, SENSORS, TYPE
from tests.bench.settings import Settings

SIZE = 1_000_000
SHARES = (0.001, 0.01, 0.1)
STEPS, OF_STORE = 9, 3      # evaluations after the first
APART = 0.15                # how much later the second stream tells of an observation, in windows
AWAY = 0.4                  # how far back an observation names another, in windows
RARE, HALF = "39.8", "20"
GRAPH = f"{BENCH}rooms"
ROOMS = 1_000
TARGETS = {0.001: 20, 0.01: 60}     # ms
TARGETS_OF_CLOSURE = {0.001: 60, 0.01: 200}
_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
_W1 = "?o a b:Observation ; b:sensor ?s ; b:value ?v"
_NUMBER = re.compile(r'"([^"]*)"\^\^<http://www\.w3\.org/2001/XMLSchema#(?:decimal|integer)>')
Rows = frozenset[tuple[Any, ...]]
Times = np.typing.NDArray[np.float64]
"""Of the clock, and of processors."""
Step = tuple[Times, Rows]
"""Milliseconds of an evaluation, and its answer."""


@dataclass(frozen=True, slots=True)
class Construct:
    """What is selected where, over the streams of a kind of data (`Observed`); `ranked`: the order of its rows counts."""

    select: str
    where: str
    data: str = "star"
    ranked: bool = False


def constructs(few: str) -> dict[str, Construct]:
    """Those whose answers grow with the number of values above `few`, and the others."""
    rare, often = f"FILTER (?v > {few})", f"FILTER (?v > {HALF})"
    higher = f"?o b:value ?w FILTER (?w > {float(few) + 0.1:.1f})"
    most = "{ SELECT ?s (MAX(?w) AS ?v) WHERE { ?p b:sensor ?s ; b:value ?w } GROUP BY ?s }"
    found = {
        "all rows": Construct("SELECT ?o ?s ?v", f"{{ {_W1} {rare} }}"),
        "COUNT(*)": Construct("SELECT (COUNT(*) AS ?n)", f"{{ {_W1} {often} }}"),
        "AVG by sensor, HAVING": Construct("SELECT ?s (AVG(?v) AS ?mean)",
                                           f"{{ {_W1} {often} }} GROUP BY ?s HAVING (AVG(?v) > 30)"),
        "OPTIONAL": Construct("SELECT ?o ?s ?w", f"{{ {_W1} {rare} OPTIONAL {{ {higher} }} }}"),
        "NOT EXISTS": Construct("SELECT ?o ?s ?v", f"{{ {_W1} {rare} FILTER NOT EXISTS {{ {higher} }} }}"),
        "sub-query with MAX": Construct("SELECT ?o ?s ?v", f"{{ {_W1} {most} }}"),
        "ORDER BY LIMIT 10": Construct("SELECT ?o ?s ?v", f"{{ {_W1} {often} }} ORDER BY DESC(?v) ?o LIMIT 10", ranked=True),
        "ISTREAM": Construct("SELECT ISTREAM ?o ?s ?v", f"{{ {_W1} {rare} }}"),
        "two-hop path": Construct("SELECT ?o ?far ?v", f"{{ ?o b:after ?m . ?m b:after ?far . ?far b:value ?v {rare} }}", "path"),
        "two streams": Construct("SELECT ?o ?s ?v ?c",
                                 f"{{ WINDOW b:one {{ ?o b:sensor ?s ; b:value ?v {rare} }} WINDOW b:two {{ ?o b:check ?c }} }}",
                                 "streams"),
        "static graph": Construct("SELECT ?o ?r", f"{{ {_W1} {rare} GRAPH <{GRAPH}> {{ ?s b:room ?r }} }}", "static"),
    }
    return found if few != HALF else {name: one for name, one in found.items() if rare in one.where and name != "ISTREAM" and (
        "COUNT" not in name and "AVG" not in name and "ORDER" not in name)}


# --- data


@dataclass(frozen=True, slots=True)
class Observed:
    """Observations, of which a window has three triples each and `size` in all; they come at times in proportion to their numbers."""

    kind: str
    size: int

    @property
    def count(self) -> int:
        """The observations in a window."""
        return self.size // 3

    @property
    def range_ms(self) -> int:
        return self.count * 3

    @property
    def streams(self) -> tuple[str, ...]:
        return ("one", "two") if self.kind == "streams" else ("one",)

    @lru_cache(maxsize=4)   # the first windows
    def facts(self, stream: str, from_ms: int, until_ms: int) -> pa.Table:
        """The facts of a stream between two times."""
        late = int(APART * self.range_ms) // 3 * 3 if stream == "two" else 0
        numbers = np.arange(-(-max(0, from_ms - late) // 3), -(-max(0, until_ms - late) // 3))
        items = _joined(f"<{BENCH}o/", numbers, ">")
        value = (numbers * 2_654_435_761 & 0xFFFFFFFF) * 401 >> 32
        values = _joined('"', pa.array(value // 10).cast(pa.string()), ".", pa.array(value % 10).cast(pa.string()), f'"^^<{DECIMAL}>')
        sensors = _joined(f"<{BENCH}s/", numbers % (self.size if self.kind == "static" else SENSORS), ">")
        told = {"sensor": sensors, "value": values}
        if self.kind == "path":
            reach = int(AWAY * self.count)
            told["after"] = _joined(f"<{BENCH}o/", numbers - 1 - numbers * 7_919 % reach, ">")
        elif stream == "two":
            told = {"check": _joined('"', numbers % 7, f'"^^<{_INTEGER}>')}
        elif self.kind != "streams":
            told["type"] = pa.array([f"<{BENCH}Observation>"] * len(numbers))
        order = np.arange(len(numbers) * len(told)).reshape(len(told), -1).T.ravel()
        properties = np.repeat([f"<{TYPE}>" if name == "type" else f"<{BENCH}{name}>" for name in told], len(numbers))
        objects = pa.concat_arrays(list(told.values())).take(pa.array(order))
        kind, number, micros = typed_columns(objects)
        place = np.repeat(numbers, len(told))
        return pa.table([place + 1, place * 3 + late, pa.nulls(len(order), pa.string()), pc.take(items, np.repeat(np.arange(len(numbers)),
                        len(told))), pa.array(properties[order]), objects, kind, number, micros], names=FACTS.names).cast(FACTS)

    def rooms(self) -> pa.Table:
        """The static graph: the room of each sensor."""
        numbers = np.arange(self.size)
        rooms = _joined(f"<{BENCH}room/", numbers % ROOMS, ">")
        kind, number, micros = typed_columns(rooms)
        zeros = np.zeros(self.size, np.int64)
        return pa.table([zeros, zeros, pa.nulls(self.size, pa.string()), _joined(f"<{BENCH}s/", numbers, ">"),
                         pa.array([f"<{BENCH}room>"] * self.size), rooms, kind, number, micros], names=FACTS.names).cast(FACTS)

    def ticks(self, share: float, steps: int) -> list[int]:
        """Evaluation times, the first one with a full window; `share` of it is new at each."""
        step = self.step_ms(share)
        first = -(-self.range_ms // step)
        return [number * step for number in range(first, first + steps + 1)]

    def step_ms(self, share: float) -> int:
        return max(3, round(self.count * share) * 3)

    def moves(self, share: float, steps: int) -> Iterator[tuple[int, int, int]]:
        """Each T, and the times before which all had come and gone at the T before it."""
        come = gone = 0
        for tick in self.ticks(share, steps):
            yield tick, come, gone
            come, gone = tick, tick - self.range_ms


def _joined(*parts: Any) -> pa.Array:
    texts = [pa.scalar(part) if isinstance(part, str) else pa.array(part).cast(pa.string()) for part in parts]
    return pc.binary_join_element_wise(*texts, "")


# --- ways


def _clocks() -> Times:
    return np.array([time.perf_counter(), time.process_time()])


class Measured(OwnProcess):
    """Tasks in this process, and the milliseconds that they took from their bundle to their answers: of the clock, and of processors."""

    def __init__(self, work: Path, threads: int | None = None, shards: int = 1) -> None:
        super().__init__(work, threads, shards)
        self._ms = np.zeros(2)

    def run(self, tasks: Sequence[Task], tables: Tables, alive: frozenset[str] | None, *,
            may_stay: bool = False) -> list[Found | Exception]:
        began = _clocks()
        try:
            return super().run(tasks, tables, alive, may_stay=may_stay)
        finally:
            self._ms += (_clocks() - began) * 1000

    def took(self) -> Times:
        """What was taken since this was asked last."""
        ms, self._ms = self._ms, np.zeros(2)
        return ms


Evaluate = Callable[[Executor], Iterator[Rows]]


def by_tasks(evaluate: Evaluate, strategy: StrategyName | None) -> tuple[list[Step], str]:
    """The steps of an executor that runs its tasks here, and the strategy that it took last."""
    with tempfile.TemporaryDirectory() as folder:
        tasks = Measured(Path(folder))
        executor = Executor(tasks, force_strategy=strategy)
        try:
            found = [(tasks.took(), rows) for rows in evaluate(executor)]
            return found, next(iter(executor.choices.values()), ("local", strategy or ""))[1]
        finally:
            executor.close()
            tasks.close()


def evaluations(construct: Construct, data: Observed, share: float, steps: int) -> Evaluate:
    """Evaluates a construct at each T."""
    iris = {stream: f"{BENCH}{stream}" for stream in data.streams}
    window = f"[RANGE {data.range_ms}ms STEP {data.step_ms(share)}ms]"
    from_ = " ".join(f"FROM NAMED WINDOW b:{stream} ON <{iri}> {window}" if len(iris) > 1 else f"FROM STREAM <{iri}> {window}"
                     for stream, iri in iris.items())
    graphs = {GRAPH: data.rooms()} if data.kind == "static" else {}
    named = f" FROM NAMED <{GRAPH}>" if graphs else ""
    text = f"PREFIX b: <{BENCH}> REGISTER QUERY q AS {construct.select} {from_}{named} WHERE {construct.where}"

    def evaluate(executor: Executor) -> Iterator[Rows]:
        compiled = compile_statement(parse(text), Catalog(dict.fromkeys(iris.values(), "event"), graphs), "q")
        contents = {iri: StreamContent() for iri in iris.values()}
        for tick, come, _ in data.moves(share, steps):
            for stream, iri in iris.items():
                contents[iri].append(data.facts(stream, max(come, tick - data.range_ms), tick))
                contents[iri].evict(tick - data.range_ms)
            answer, = executor.evaluate([Due("q", compiled, (tick,), 0, contents, graphs)])
            assert answer.table is not None, answer.error
            yield _rows(zip(*(column.to_pylist() for column in answer.table.columns)), construct.ranked)

    return evaluate


def by_kept_store(asked: dict[str, Construct], data: Observed, share: float, steps: int) -> dict[str, list[Step]]:
    """The steps of pyoxigraph's store for several constructs over the same data: to each belongs the time of the store's changes."""
    store, found = pyoxigraph.Store(), dict[str, list[Step]]({name: [] for name in asked})
    if data.kind == "static":
        store.bulk_load(_lines(data.rooms(), GRAPH), format=pyoxigraph.RdfFormat.N_QUADS)
    for tick, come, gone in data.moves(share, steps):
        ms = np.zeros(2)
        for stream in data.streams:
            graph = f"{BENCH}{stream}" if len(data.streams) > 1 else ""
            came = _lines(data.facts(stream, max(come, tick - data.range_ms), tick), graph)
            went = list(pyoxigraph.parse(_lines(data.facts(stream, gone, tick - data.range_ms), graph), format=pyoxigraph.RdfFormat.N_QUADS)
                        ) if come else []
            fresh = list(pyoxigraph.parse(came, format=pyoxigraph.RdfFormat.N_QUADS)) if come else []
            began = _clocks()
            if not come:
                store.bulk_load(came, format=pyoxigraph.RdfFormat.N_QUADS)
            store.extend(fresh)
            for quad in went:
                store.remove(quad)
            ms += (_clocks() - began) * 1000
        for name, construct in asked.items():
            where = construct.where.replace("WINDOW", "GRAPH")
            began = _clocks()
            answers = store.query(f"PREFIX b: <{BENCH}> {construct.select.replace('ISTREAM', '')} WHERE {where}")
            rows = list(answers)    # type: ignore[arg-type]
            took = ms + (_clocks() - began) * 1000
            tokens = ([None if cell is None else str(cell) for cell in row] for row in rows)
            found[name].append((took, _rows(tokens, construct.ranked)))
    return found


def _lines(facts: pa.Table, graph: str) -> bytes:
    ends = f" <{graph}> .\n" if graph else " .\n"
    return b"".join(f"{s} {p} {o}{ends}".encode() for s, p, o in zip(*(facts[name].to_pylist() for name in "spo")))


def _rows(rows: Any, ranked: bool) -> Rows:
    """Answers that can be compared: of a number its value, of a mean as far as both have it."""
    def cell(token: str | None) -> Any:
        number = _NUMBER.fullmatch(token or "")
        return token if number is None else round(float(number[1]), 9)
    found = [tuple(map(cell, row)) for row in rows]
    return frozenset((n, *row) for n, row in enumerate(found)) if ranked else frozenset(found)


# --- the benchmark


def run(settings: Settings) -> tuple[list[Figure], dict[str, Any]]:
    """The figures of the benchmark, and details."""
    size, shares = (30_000, SHARES[1:2]) if settings.quick else (SIZE, SHARES)
    table = [{"construct": name, "share": share, **row} for share in shares for name, row in _measured(size, share, constructs(RARE))]
    wide = [{"construct": name, "share": share, **row} for share in shares[:1] for name, row in _measured(size, share, constructs(HALF))]
    for share in shares:
        table.append({"construct": "closure", "share": share, **_closure(size, share)})
    return _figures(table), {"change": table, "wide": wide}


def _measured(size: int, share: float, asked: dict[str, Construct]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Medians in ms of the evaluations after the first of each construct, by way."""
    for kind in dict.fromkeys(construct.data for construct in asked.values()):
        data = Observed(kind, size)
        own = {name: construct for name, construct in asked.items() if construct.data == kind}
        peers = by_kept_store(own, data, share, OF_STORE)
        for name, construct in own.items():
            yield name, _both(evaluations(construct, data, share, STEPS), evaluations(construct, data, share, OF_STORE), peers[name])


def _closure(size: int, share: float) -> dict[str, Any]:
    edges, changed = Edges(size), max(1, int(size * share))
    peer = list[Step]()
    runs = by_store(edges, changed)
    began = _clocks()
    for rows in runs:
        peer.append(((_clocks() - began) * 1000, rows))   # type: ignore[arg-type]
        began = _clocks()

    def evaluate(executor: Executor) -> Iterator[Rows]:
        return by_executor(executor, edges, changed)    # type: ignore[return-value]
    return _both(evaluate, evaluate, peer)


def _both(evaluate: Evaluate, shorter: Evaluate, peer: list[Step]) -> dict[str, Any]:
    """The strategy that the planner chooses, and the other one for as many evaluations as the store."""
    planned, choice = by_tasks(evaluate, None)
    other: StrategyName = "recompute" if choice == "incremental" else "incremental"
    forced, _ = by_tasks(shorter, other)
    for number, ((_, found), (_, again), (_, known)) in enumerate(zip(planned, forced, peer)):
        assert found == again == known, (number, len(found), len(again), len(known), list(found - known)[:3], list(known - found)[:3])
    row = {"answers": len(planned[-1][1]), "choice": choice, "firstMs": round(planned[0][0][0])}
    for way, steps in ((choice, planned), (other, forced), ("pyoxigraph", peer)):
        row[way], row[f"{way}Cpu"] = (round(float(ms), 1) for ms in np.median([ms for ms, _ in steps[1:]], axis=0))
    gc.collect()
    print("   ", row, flush=True)
    return row


def _figures(table: list[dict[str, Any]]) -> list[Figure]:
    figures = []
    for row in table:
        about = f"{row['construct']}, {row['share']:.1%} changed"
        target = (TARGETS_OF_CLOSURE if row["construct"] == "closure" else TARGETS).get(row["share"])
        taken = row[row["choice"]]
        figures.append(plain(about, taken, "ms") if target is None else at_most(about, taken, "ms", target))
        peer, regret = taken / row["pyoxigraph"], taken / min(row["incremental"], row["recompute"])
        figures.append(Figure(f"the same / pyoxigraph, {about}", round(peer, 2), "ratio", "<= 3", peer <= 3))
        figures.append(Figure(f"planner's choice / better of both, {about}", round(regret, 2), "ratio", "<= 1.15", regret <= 1.15))
    return figures
