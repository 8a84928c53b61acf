"""The one Spark of a test run, and the pump on it: records in, logged answers out, as treatments and conformance runs want them."""

from __future__ import annotations

import atexit
import json
import os
import random
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyoxigraph
import pytest

from engine.compiler import Catalog, Compiled, compile_statement
from engine.execution.executor import Executor
from engine.execution.own_process import OwnProcess
from engine.functions.terms import iri
from engine.ir.rules import RuleSet
from engine.ir.statement import Statement
from engine.ir.terms import literal
from engine.records import Record
from engine.runtime.pump import Pump
from engine.runtime.resources import ResultEvent
from engine.runtime.results import ResultLog
from engine.runtime.stores import ParseRules
from engine.spark.executor import Executor as SparkExecutor
from engine.spark.session import Session, start_session
from engine.spark.settings import from_environment
from grammar.rule_sets import parse_rules
from tests.cluster import WORKERS
from tests.encoded import encode

# Hundreds of different plans over a few rows each: compiling each costs far more than running it. Every join and aggregate takes a page
# of 16 MB by default, and a broadcast relation keeps it: the JVM would spend a quarter of its time on garbage collection.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN", "spark.buffer.pageSize": "64k"}

Row = dict[str, str]
Answers = dict[str, list[tuple[int, list[Row]]]]


@lru_cache(maxsize=1)
def shared_session() -> Session:
    """Started when first asked for, stopped when the process ends. Its heap starts large: each time that it grows is a full collection."""
    settings = from_environment(extra=INTERPRETED, master=os.environ.get("THALWEG_MASTER", "local[2]"))
    session = start_session(replace(settings, java_options=f"{settings.java_options} -Xms1500m -XX:NewSize=640m"))
    atexit.register(session.stop)
    return session


def needs_graphframes(session: Session) -> None:
    """Skip a test where the JVM half of GraphFrames could not be loaded; in CI that is a failure."""
    if not session.graphframes:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"GraphFrames not loaded: {session.graphframes_reason}")


def compile_query(statement: Statement, name: str, graphs: Mapping[str, pa.Table], rules: Mapping[str, RuleSet],
                  without: frozenset[str] = frozenset()) -> Compiled:
    """Compiles against the graphs and rule sets at hand, without some passes; every stream that the statement names exists. Texts are
    made when they are used: a test has one executor."""
    catalog = Catalog({s.stream: "event" for s in statement.streams}, graphs, rules)
    return compile_statement(statement, catalog, name, "logical", without=without)


class QueriesFailed(AssertionError):
    """Queries, by name, that failed in a run, and the results of all."""

    def __init__(self, results: list[ResultEvent], errors: dict[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {error}" for name, error in errors.items()))
        self.results, self.errors = results, errors


def pumped(records: Sequence[Record], parse: Callable[[str], Statement], *, executor: str | None = None, strategy: str | None = None,
           graphs: str | None = None, batches: int = 1, resumed: bool = False, tasks: OwnProcess | None = None,
           read_rules: ParseRules = parse_rules, closed_rows: int | None = None, without: frozenset[str] = frozenset(),
           killed: bool = False) -> list[ResultEvent]:
    """Run records through the pump in so many batches; `resumed` stops it after every other one and goes on from what was written,
    `killed` ends all worker processes of Spark between them. On the shared Spark, unless `tasks` are given to run in this process.
    `closed_rows` as Executor has it, `without` as compile_statement. Raises QueriesFailed in the end."""
    if graphs == "graphframes":
        needs_graphframes(shared_session())

    def made(states: Path) -> Executor:
        if tasks is not None:
            return Executor(tasks, force_strategy=strategy, shard_rows=0, states=states)  # type: ignore[arg-type]
        return SparkExecutor(shared_session(), force_executor=executor, force_strategy=strategy,  # type: ignore[arg-type]
                             force_graphs=graphs, closed_rows=closed_rows, states=states)  # type: ignore[arg-type]

    table = encode(records)
    last = records[-1].position
    cuts = sorted(random.Random(batches).sample(range(1, last), min(batches - 1, last - 1)))
    found: list[ResultEvent] = []
    failed: dict[str, str] = {}
    ended: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        pump: Pump | None = None
        results: ResultLog | None = None
        for number, (begin, end) in enumerate(zip([0, *cuts], [*cuts, last])):
            if pump is None or resumed and number % 2 == 0:
                if results is not None:
                    results.close()
                results = ResultLog(Path(folder) / "results.db")
                pump = Pump(made(Path(folder) / "programs"), results, parse, partial(compile_query, without=without),
                            parse_rules=read_rules, graph_folder=Path(folder),
                            history=lambda needed, position: [table.filter(pc.and_(pc.less_equal(table["position"], position),
                                                                                   pc.equal(table["record"], 0)))])
                pump.restore()
            inside = pc.and_(pc.greater(table["position"], begin), pc.less_equal(table["position"], end))
            found += pump.process(table.filter(inside)).results
            failed |= {q.name: str(q.error) for q in pump.queries.values() if q.state == "failed"}
            ended += [worker for jvm in executors(shared_session()) for worker in workers(jvm) if _end(worker)] if killed else []
        assert results is not None
        results.close()
    assert ended or not killed, "there was no worker to end"
    if failed:
        raise QueriesFailed(found, failed)
    return found


def _end(process: int) -> bool:
    """Kill a process; whether it was there."""
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def jvm_pid(session: Session) -> int:
    return session._process.pid


def executors(session: Session) -> list[int]:
    """The JVMs that run tasks: the session's own, or on a cluster the children of its workers."""
    return [jvm_pid(session)] if session.settings.local else [executor for each in executors_of_cluster() for executor in each]


def executors_of_cluster() -> list[list[int]]:
    """The executors' JVMs, by worker (tests/cluster.py)."""
    return [[child for child in children(int(worker)) if _is_java(child)] for worker in os.environ[WORKERS].split(",")]


def _is_java(process: int) -> bool:
    """Whether it is a process of Java; one that has ended has no command."""
    try:
        return b"java" in Path(f"/proc/{process}/cmdline").read_bytes().partition(b"\0")[0]
    except OSError:
        return False


def workers(jvm: int) -> list[int]:
    """The Python processes that Spark's daemon has forked: grandchildren of the JVM."""
    return [worker for daemon in children(jvm) for worker in children(daemon)]


def children(parent: int) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdecimal() and int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(folder.name))
        except OSError:
            continue    # it has ended
    return found


def answers(events: Sequence[ResultEvent], queries: Sequence[str]) -> Answers:
    """Logged results by query, in order: (at, rows). What of a rule program ceases (stream N) is told from the rest by ``/n``."""
    found: Answers = {query: [] for query in queries}
    both = {event.query for event in events if event.output == "dstream"} & {event.query for event in events if event.output == "istream"}
    for event in sorted(events, key=lambda e: (e.query, e.epoch, e.seq)):
        ceased = event.query in both and event.output == "dstream"
        found.setdefault(f"{event.query}/n" if ceased else event.query, []).append((event.at_ms, rows(event)))
    return found


def rows(event: ResultEvent) -> list[Row]:
    """The rows of a logged result; ASK is one empty row or none, a graph rows s p o."""
    if event.kind == "graph":
        quads = pyoxigraph.parse(event.payload, pyoxigraph.RdfFormat.N_TRIPLES)
        return [dict(zip("spo", (str(q.subject), str(q.predicate), str(q.object)))) for q in quads]
    document = json.loads(event.payload)
    if "boolean" in document:
        return [{}] if document["boolean"] else []
    return [{name: _token(term) for name, term in row.items()} for row in document["results"]["bindings"]]


def _token(term: dict[str, Any]) -> str:
    if term["type"] == "uri":
        return iri(term["value"])
    if term["type"] == "bnode":
        return f"_:{term['value']}"
    return literal(term["value"], term.get("datatype"), term.get("xml:lang"))
