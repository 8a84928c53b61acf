"""What a second executor gives: one on a processor of its own, then two on one each, with the same work.

The work: W1's AVG and rows, and BSBM's star of ten patterns, which shards evaluate; LUBM five times as large, whose queries are spread over
shards (docs/scale.md); a closure of 4,400,000 triples, by Spark SQL. From the facts in the driver to the answers there: to read a stream
takes a driver and a client as long as to evaluate it takes an executor, and there are two processors. Wall time, and what each executor
did of it: processor time of its Python workers, or of Spark SQL that of all its processes, and the bytes that its tasks shuffled. The clock
of a task tells less: it goes on while the driver has the processor. Needs root (tests/cluster.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from engine.compiler import BUILT_IN_RULES, Catalog, compile_statement
from engine.execution.content import StreamContent
from engine.execution.due import Answer, Due
from engine.limits import EvaluationLimits
from engine.records import Event, Triple
from engine.runtime.rows import facts_of, graph_table
from engine.spark.executor import Executor
from engine.spark.session import Session, start_session
from engine.spark.settings import from_environment
from grammar import parse
from tests import sparks
from tests.bench.bulk import OFFERS, STAR
from tests.bench.change import RARE, Construct, Observed, constructs, evaluations
from tests.bench.data import BEGIN_MS
from tests.bench.figures import Figure, holds, plain
from tests.bench.offers import Offers
from tests.bench.settings import Settings
from tests.cluster import Cluster, cluster, inside, refusal
from tests.conformance import lubm
from tests.encoded import encode
from tests.live import cpu_seconds, descendants
from tests.shared import shared

_WINDOW, _NEW, _STEPS, _MEMORY = 3_600_000, 0.2, 6, "8GB"    # triples of W1, how much is new, evaluations, what workers may take
_TURNS = 4      # of the offers
_LUBM, _CLOSED = 5, 30      # universities
_BY_ROUNDS = 2_000_000      # rows: above it Spark SQL makes closures by rounds of jobs
_LIMITS = EvaluationLimits(evaluation_ms=3_600_000)


@dataclass(frozen=True, slots=True)
class Measured:
    """Some work: seconds until its last answer, what each executor did (seconds), the bytes that each shuffled, and what tells its answer
    from a wrong one."""

    wall_s: float
    seconds: tuple[float, ...]
    shuffled: tuple[float, ...]
    answer: object


Work = Callable[[Cluster, Settings], Measured]


def run(settings: Settings) -> tuple[list[Figure], dict[str, Any]]:
    """The figures of each work on one executor and on two."""
    if (reason := refusal()) is not None:
        raise RuntimeError(f"no cluster: {reason}")
    found: dict[str, list[Measured]] = {name: [] for name in settings.shapes or WORK}
    for executors in (1, 2):
        for name, measured in found.items():
            with cluster(executors, pinned=True) as beside:
                measured.append(WORK[name](beside, settings))
            print(f"  {name}, {executors} executors: {measured[-1].wall_s:.1f} s, of each {measured[-1].seconds} s", flush=True)
    return [figure for name, (one, two) in found.items() for figure in _figures(name, one, two)], {
        name: [[each.wall_s, each.seconds, each.shuffled] for each in measured] for name, measured in found.items()}


def _figures(name: str, one: Measured, two: Measured) -> list[Figure]:
    half, ratio = one.seconds[0] / 2, one.wall_s / two.wall_s
    figures = [plain(f"{name}: one executor", one.wall_s, "s"), plain(f"{name}: two executors", two.wall_s, "s"),
               plain(f"{name}: ratio", ratio, ""), holds(f"{name}: same answer", one.answer == two.answer, "yes"),
               *(plain(f"{name}: executor {number} of two did, of half of what one does", share / half, "")
                 for number, share in enumerate(two.seconds, 1))]
    if sum(two.shuffled):
        figures += [plain(f"{name}: executor {number} of two shuffled", share / 1e6, "MB") for number, share in enumerate(two.shuffled, 1)]
    return figures


def _seconds(beside: Cluster, begins: str) -> tuple[float, ...]:
    """Processor seconds so far of the processes of each executor whose names begin so."""
    return tuple(sum(cpu_seconds(pid, children=False) for pid in descendants(worker) if _name(pid).startswith(begins))
                 for worker in beside.workers)


def _name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            return file.read()
    except OSError:     # it has ended
        return ""


class _Timed:
    """An executor, and the seconds that its evaluations took."""

    def __init__(self, executor: Executor) -> None:
        self._executor, self.seconds = executor, list[float]()

    def evaluate(self, dues: Sequence[Due]) -> list[Answer]:
        """As the executor does."""
        began = time.perf_counter()
        found = self._executor.evaluate(dues)
        self.seconds.append(time.perf_counter() - began)
        return found


def _measured(answers: Callable[[_Timed, Settings], Iterator[object]], beside: Cluster, settings: Settings, *,
              by_sql: bool = False) -> Measured:
    """The evaluations after the first one, which finds no worker that has anything, and no code of Spark SQL's compiled."""
    processes = "" if by_sql else "python"
    with inside(beside):
        session = start_session(from_environment(worker_memory=_MEMORY))
        try:
            session.warm_up()
            executor = Executor(session, force_executor="sql", closed_rows=_BY_ROUNDS) if by_sql else Executor(session)
            timed = _Timed(executor)
            found = answers(timed, settings)
            first, before = next(found), (_seconds(beside, processes), _shuffled(session))
            rest, after = list(found), (_seconds(beside, processes), _shuffled(session))
            print(f"    {[round(one, 2) for one in timed.seconds]} s", flush=True)
            executor.close()
            return Measured(sum(timed.seconds[1:]), _since(before[0], after[0]), _since(before[1], after[1]), [first, *rest])
        finally:
            session.stop()


def _observations(construct: Construct, timed: _Timed, settings: Settings) -> Iterator[object]:
    """Evaluations of a star over a window of which a fifth is new at each: as much as a processor does in a second."""
    data = Observed("star", 30_000 if settings.quick else _WINDOW)
    return evaluations(construct, data, _NEW, _STEPS)(timed)     # type: ignore[arg-type]


def _offers(timed: _Timed, settings: Settings) -> Iterator[object]:
    """Evaluations of BSBM's star of ten patterns: at each all of the window is new."""
    data = Offers(size=10_000) if settings.quick else Offers()
    facts = facts_of(encode([Event(number, OFFERS, t, None, tuple(map(_triple, lines)), t)
                             for number, (t, lines) in enumerate(data.items(), 1)]))
    compiled = compile_statement(parse(STAR.format(data.seconds)), Catalog({OFFERS: "event"}, {}), "star")
    content, range_ms = StreamContent(), data.seconds * 1000
    for turn in range(_TURNS):
        begin, rows = BEGIN_MS + turn * range_ms, pc.add(facts["t"], turn * range_ms)
        content.evict(begin)
        content.append(facts.set_column(facts.column_names.index("t"), "t", rows))
        answer, = timed.evaluate([Due("star", compiled, (begin + range_ms,), 0, {OFFERS: content}, {})])
        assert answer.table is not None, answer.error
        yield sorted(map(str, answer.table.to_pylist()))


def _triple(line: str) -> Triple:
    subject, property_, value = line.removesuffix(" .").split(" ", 2)
    return subject, property_, value


def _since(before: Sequence[float], after: Sequence[float]) -> tuple[float, ...]:
    return tuple(last - first for first, last in zip(before, after, strict=True))


def _shuffled(session: Session) -> Sequence[float]:
    """The bytes that the tasks of each executor have shuffled, by Spark's own figures."""
    there = session.spark.sparkContext._jsc.sc().statusStore().executorList(True)
    found = [each for each in map(there.apply, range(there.size())) if each.id() != "driver"]
    return [each.totalShuffleRead() + each.totalShuffleWrite() for each in sorted(found, key=lambda each: each.id())]


def _universities(first: int, count: int, texts: Mapping[str, str], timed: _Timed, settings: Settings) -> Iterator[object]:
    """Queries under owl2rl over `first` universities, then over so many."""
    folder = shared("lubm")
    graphs = {lubm.ONTOLOGY: graph_table(lubm.ontology(folder))}
    facts = facts_of(encode([Event(1, lubm.STREAM, lubm.CLOSE - 1, None, lubm.data(folder), lubm.CLOSE - 1)]))
    compiled = {name: sparks.compile_query(lubm.statement(text), name, graphs, BUILT_IN_RULES) for name, text in texts.items()}
    for universities in (1, 1) if settings.quick else (first, count):
        content = StreamContent()
        content.append(_copies(facts, universities))
        found = timed.evaluate([Due(name, one, (lubm.CLOSE,), 0, {lubm.STREAM: content}, graphs, _LIMITS)
                                for name, one in compiled.items()])
        yield [(one.query, one.error, None if one.table is None else sorted(map(str, one.table.to_pylist()))[:1000]) for one in found]


def _copies(facts: pa.Table, count: int) -> pa.Table:
    """The facts of a university, and of others like it."""
    def named(number: int) -> pa.Table:
        table = facts
        for column in ("s", "o"):
            text = pc.replace_substring(facts[column], ".University0.edu", f".University{number}.edu")
            table = table.set_column(table.column_names.index(column), column, text)
        return table
    return pa.concat_tables([facts, *(named(1_000_000 + number) for number in range(1, count))]).combine_chunks()


def _lubm(timed: _Timed, settings: Settings) -> Iterator[object]:
    return _universities(_LUBM, _LUBM, lubm.texts(shared("lubm")), timed, settings)


def _closure(timed: _Timed, settings: Settings) -> Iterator[object]:
    return _universities(1, _CLOSED, {"all": "SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }"}, timed, settings)


WORK: dict[str, Work] = {
    "avg": partial(_measured, partial(_observations, constructs(RARE)["AVG by sensor, HAVING"])),
    "rows": partial(_measured, partial(_observations, constructs(RARE)["all rows"])), "offers": partial(_measured, _offers),
    "lubm": partial(_measured, _lubm), "closure": partial(_measured, _closure, by_sql=True)}
