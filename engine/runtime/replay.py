"""Recorded streams through one query at full speed, without server, clock or Structured Streaming (``thalweg run``).

The recording is the whole truth: items are taken in the order of their time stamps, so that nothing is late, and at its end the query
is evaluated up to the last close that still sees an event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pyarrow as pa

from engine.compiler import Catalog, Compiled, compile_statement
from engine.ir.spans import Diagnostic, DiagnosticError
from engine.ir.statement import RuleSource, Statement
from engine.records import End, GraphVersion, Record, Register, Triple
from engine.runtime.batch import Executor, Limits
from engine.runtime.pump import Pump
from engine.runtime.resources import Item, ResultEvent
from engine.runtime.results import ResultLog, Retention
from engine.runtime.rows import ROWS, encode, graph_table, item_rows, own_blank_nodes, prepare, short_name
from engine.spark.settings import SparkSettings

_NAME = "query"
_BATCH_ROWS = 200_000
_NO_LIMIT = 1 << 60


def replay(statement: Statement, streams: Mapping[str, Sequence[Item]], graphs: Mapping[str, Sequence[Triple]], rules: Sequence[str] = (),
           settings: SparkSettings | None = None) -> Iterator[ResultEvent]:
    """`run` on a Spark of its own, started when the statement has compiled and stopped at the end."""
    statement = with_rules(statement, rules)
    compile_replay(statement, streams, _tables(graphs))
    with spark_executor(settings) as executor:
        yield from run(statement, streams, graphs, executor)


def explain(statement: Statement, streams: Iterable[str], graphs: Mapping[str, Sequence[Triple]], rules: Sequence[str], stage: str) -> str:
    """The statement at a stage of the compiler."""
    return compile_replay(with_rules(statement, rules), streams, _tables(graphs)).explain(stage)


def with_rules(statement: Statement, rules: Sequence[str]) -> Statement:
    """The statement with further rule sets."""
    named = {rule.name for rule in statement.rules}
    return replace(statement, rules=(*statement.rules, *(RuleSource(name) for name in rules if name not in named)))


@contextmanager
def spark_executor(settings: SparkSettings | None = None) -> Iterator[Executor]:
    """An executor on a Spark started for it."""
    from engine.spark.executor import Executor as SparkExecutor
    from engine.spark.session import start_session
    session = start_session(settings)
    try:
        yield SparkExecutor(session)
    finally:
        session.stop()


def compile_replay(statement: Statement, streams: Iterable[str], graphs: Mapping[str, pa.Table]) -> Compiled:
    """Compile for a recording: all streams have event time, a window may be as long as it likes."""
    catalog = Catalog(dict.fromkeys(streams, "event"), graphs, max_range_ms=_NO_LIMIT, mixed_time=True)
    return compile_statement(statement, catalog, identity=_NAME)


def run(statement: Statement, streams: Mapping[str, Sequence[Item]], graphs: Mapping[str, Sequence[Triple]], executor: Executor, *,
        batch_rows: int = _BATCH_ROWS) -> Iterator[ResultEvent]:
    """The results of a statement over recorded items by stream IRI and static graphs by IRI, in order of their evaluation times."""
    if not statement.streams:
        raise DiagnosticError(Diagnostic("window-unbounded", "A replay needs a stream: FROM STREAM <iri> [RANGE 10s STEP 2s]."))
    results = ResultLog(None, Retention(count=1))
    pump = Pump(executor, results, lambda text: statement, lambda text, name, tables: compile_replay(statement, streams, tables),
                limits=Limits(rows=_NO_LIMIT, tail=1))
    try:
        for table in log(statement.text, streams, graphs, batch_rows):
            yield from pump.process(table).results
            failed = pump.queries[_NAME].cause if _NAME in pump.queries else None
            if failed is not None:
                raise failed
    finally:
        results.close()


def log(text: str, streams: Mapping[str, Sequence[Item]], graphs: Mapping[str, Sequence[Triple]], batch_rows: int) -> Iterator[pa.Table]:
    """The input log of a replay, in batches of about `batch_rows` rows: graphs, registration, items by time, end."""
    head: list[Record] = [GraphVersion(position, iri, tuple(own_blank_nodes(triples, f"g{short_name(iri)}")))
                          for position, (iri, triples) in enumerate(graphs.items(), 1)]
    position = len(head) + 1
    yield encode([*head, Register(position, _NAME, text, position)])
    for table in _items(streams, position + 1, batch_rows):
        position = table["position"][-1].as_py()
        yield table
    yield encode([End(position + 1)])


def _items(streams: Mapping[str, Sequence[Item]], position: int, batch_rows: int) -> Iterator[pa.Table]:
    """Items of all streams by time, those of one instant in the order of the streams; each moves its stream's watermark to its time."""
    order = sorted(((item.t_ms or 0, number, place) for number, items in enumerate(streams.values()) for place, item in enumerate(items)))
    names, contents = list(streams), list(streams.values())
    batch: list[tuple[str, Item]] = []
    rows, before = 0, Counter[str]()
    for _, number, place in order:
        batch.append((names[number], contents[number][place]))
        rows += len(batch[-1][1].triples) or 1
        if rows >= batch_rows:
            yield _table(batch, position, before)
            position, batch, rows = position + len(batch), [], 0
    if batch:
        yield _table(batch, position, before)


def _table(batch: Sequence[tuple[str, Item]], position: int, before: Counter[str]) -> pa.Table:
    """Rows of the log for items of several streams: each stream's in one go, then put in order. `before` counts items per stream."""
    positions = np.arange(position, position + len(batch))
    parts = [ROWS.empty_table()]
    for stream in dict.fromkeys(name for name, _ in batch):
        mine = np.fromiter((name == stream for name, _ in batch), np.bool_, len(batch))
        prepared = prepare([(item.t_ms, item.graph, item.triples) for name, item in batch if name == stream])
        parts.append(item_rows(prepared, stream, np.ones(prepared.items, np.bool_), positions[mine], prepared.times, prepared.times,
                               before[stream]))
        before[stream] += prepared.items
    table = pa.concat_tables(parts)
    return table if len(parts) <= 2 else table.sort_by([("position", "ascending"), ("row", "ascending")])


def _tables(graphs: Mapping[str, Sequence[Triple]]) -> dict[str, pa.Table]:
    return {iri: graph_table(triples) for iri, triples in graphs.items()}
