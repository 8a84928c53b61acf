"""Recorded streams through queries at full speed, without server, clock or Structured Streaming (``thalweg run``).

The recording is the whole truth: items are taken in the order of their time stamps, so that nothing is late, and at its end each query
is evaluated up to the last close that still sees an event. Queries may read what others make."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.compiler import BUILT_IN_RULES, Catalog, Compiled, compile_statement
from engine.ir.rules import RuleSet
from engine.ir.spans import Diagnostic, DiagnosticError
from engine.ir.statement import RuleSource, Statement
from engine.output import triples_in
from engine.records import Event, Triple
from engine.runtime.batch import Executor, Limits
from engine.runtime.evidence import Evidence, events_of
from engine.runtime.place import Place, choose, executor_at, triples_of
from engine.runtime.pump import Pump
from engine.runtime.registered import Definition, Queries, Registered, check_sources, given_name, own_iri
from engine.runtime.resources import Recording, ResultEvent
from engine.runtime.results import ResultLog, Retention
from engine.runtime.rows import (ROWS, Control, Kind, control_rows, graph_rows, graph_table, item_rows, item_table, own_blank_nodes,
                                 prepare_table, short_name)
from engine.runtime.statement_checks import statement_warnings, words_of
from engine.runtime.ticks import Timetable

_BATCH_ROWS = 200_000
_NO_LIMIT = 1 << 60
NO_RULES: Mapping[str, RuleSet] = {}
_REMEDIES = {"unknown-stream": "Give its recording: --stream {}=FILE", "no-such-graph": "Nothing is fetched: give it with --graph {}=FILE",
             "no-such-rules": "Give it with --rules {}=FILE"}
# What the server calls itself unless it is told otherwise: a text reads the same stream here and there.
_BASE_URL = "http://localhost:8175"


def named(statements: Sequence[Statement]) -> dict[str, Statement]:
    """Statements by the names that they give themselves, ``query`` and ``query-2`` where they give none."""
    found: dict[str, Statement] = {}
    for number, statement in enumerate(statements, 1):
        name = given_name(statement) or ("query" if number == 1 else f"query-{number}")
        if name in found:
            raise ValueError(f"Two queries have the name {name!r}.")
        found[name] = statement
    return found


def replay(queries: Mapping[str, Statement], streams: Mapping[str, Recording], graphs: Mapping[str, Sequence[Triple]],
           rules: Sequence[str] = (), rule_sets: Mapping[str, RuleSet] = NO_RULES, place: Place | None = None) -> Iterator[ResultEvent]:
    """`run` at a place (None: the one for what there is), where something is started when the statements have compiled. `rules` are
    further rule sets of each statement, by names that are built in or in `rule_sets`."""
    queries = with_rules(queries, rules)
    tables = _tables(graphs)
    for name, statement in queries.items():
        compile_replay(statement, name, {*streams, *made(queries)}, tables, rule_sets)
    with executor_at(place or choose(triples_of(streams, graphs))) as executor:
        yield from run(queries, streams, graphs, executor, rule_sets)


def explain(queries: Mapping[str, Statement], streams: Iterable[str], graphs: Mapping[str, Sequence[Triple]], rules: Sequence[str],
            stage: str, rule_sets: Mapping[str, RuleSet] = NO_RULES) -> dict[str, str]:
    queries = with_rules(queries, rules)
    known = {*streams, *made(queries)}
    return {name: compile_replay(statement, name, known, _tables(graphs), rule_sets).explain(stage) for name, statement in queries.items()}


def warnings(queries: Mapping[str, Statement], graphs: Mapping[str, Sequence[Triple]], rules: Sequence[str],
             rule_sets: Mapping[str, RuleSet], streams: Mapping[str, Recording] | None = None) -> list[tuple[str, Diagnostic]]:
    """What may keep valid statements from ever answering, with their names; by `streams` too where they are given."""
    tables, known = _tables(graphs), {**BUILT_IN_RULES, **rule_sets}
    shown = None if streams is None else {
        iri: set[str]().union(*map(words_of, _in_columns(recording))) for iri, recording in streams.items()}

    def of(statement: Statement) -> list[Diagnostic]:
        read = {source.stream for source in statement.streams}
        words = frozenset[str]().union(*(shown[iri] for iri in read)) if shown is not None and read <= set(shown) else None
        return statement_warnings(statement, tables, known, words)
    return [(name, found) for name, statement in with_rules(queries, rules).items() for found in of(statement)]


def with_rules(queries: Mapping[str, Statement], rules: Sequence[str]) -> dict[str, Statement]:
    def more(statement: Statement) -> Statement:
        known = {rule.name for rule in statement.rules}
        return replace(statement, rules=(*statement.rules, *(RuleSource(name) for name in rules if name not in known)))
    return {name: more(statement) for name, statement in queries.items()}


def made(queries: Mapping[str, Statement]) -> list[str]:
    """The IRIs of the streams that the queries make. Raises DiagnosticError where one reads what it cannot."""
    live = Queries[Registered]()
    for name, statement in queries.items():
        definition = Definition(name, statement.text, 0, 1, 0, stream=own_iri(statement, _own(name)))
        live[name] = Registered(definition, statement, Timetable.of(statement), "running", 0, 0)
    for name, query in live.items():
        check_sources(query.statement, name, query.makes, live, _BASE_URL)
    return list(live.makers)


def compile_replay(statement: Statement, name: str, streams: Iterable[str], graphs: Mapping[str, pa.Table],
                   rule_sets: Mapping[str, RuleSet] = NO_RULES) -> Compiled:
    """Compile for a recording: all streams have event time, a window may be as long as it likes."""
    known = {**BUILT_IN_RULES, **rule_sets}
    catalog = Catalog(dict.fromkeys(streams, "event"), graphs, known, max_range_ms=_NO_LIMIT, max_steps=_NO_LIMIT, max_items=_NO_LIMIT,
                      mixed_time=True, remedies=_REMEDIES)
    return compile_statement(statement, catalog, identity=name)


def run(queries: Mapping[str, Statement], streams: Mapping[str, Recording], graphs: Mapping[str, Sequence[Triple]],
        executor: Executor, rule_sets: Mapping[str, RuleSet] = NO_RULES, *, batch_rows: int = _BATCH_ROWS) -> Iterator[ResultEvent]:
    """The results over recorded items and static graphs by IRI; those of one query in order."""
    if not all(statement.streams for statement in queries.values()):
        raise DiagnosticError(Diagnostic("window-unbounded", "A replay needs a stream: FROM STREAM <iri> [RANGE 10s STEP 2s]."))
    known, texts = {*streams, *made(queries)}, {statement.text: statement for statement in queries.values()}
    results = ResultLog(None, Retention(count=1))
    pump = Pump(executor, results, texts.__getitem__,
                lambda statement, name, tables, _: compile_replay(statement, name, known, tables, rule_sets),
                limits=Limits(rows=_NO_LIMIT, tail=1))
    pump.rule_store.given = rule_sets
    try:
        for table in log(queries, streams, graphs, batch_rows):
            yield from sorted(pump.process(table).results, key=lambda event: event.at_ms)
            results.retain(0)
            for failed in (query for query in pump.queries.values() if query.cause is not None and query.failed_with is None):
                raise failed.cause or RuntimeError(failed.error)
    finally:
        results.close()


def log(queries: Mapping[str, Statement], streams: Mapping[str, Recording], graphs: Mapping[str, Sequence[Triple]],
        batch_rows: int) -> Iterator[pa.Table]:
    """The input log of a replay, in batches of about `batch_rows` rows: graphs, registrations, items by time, end."""
    head = [graph_rows(position, iri, own_blank_nodes(triples, f"g{short_name(iri)}"))
            for position, (iri, triples) in enumerate(graphs.items(), 1)]
    registered = [Control(position, Kind.REGISTER, name, None, {"text": statement.text, "since": position, "stream": _own(name)})
                  for position, (name, statement) in enumerate(queries.items(), len(head) + 1)]
    yield pa.concat_tables([*head, control_rows(*registered)]).combine_chunks()
    position = len(head) + len(registered)
    for table in _items(streams, position + 1, batch_rows):
        position = table["position"][-1].as_py()
        yield table
    yield control_rows(Control(position + 1, Kind.END, "", None, {}))


def recorded_evidence(queries: Mapping[str, Statement], streams: Mapping[str, Recording], graphs: Mapping[str, Sequence[Triple]],
                      executor: Executor, rule_sets: Mapping[str, RuleSet], name: str, at_ms: int,
                      ceased: bool = False) -> Evidence:
    """What the evaluation of a query at the time `at_ms` of a replay saw; `ceased` is about stream N of a rule program. Raises ValueError
    where it has no result then."""
    results = list(run(queries, streams, graphs, executor, rule_sets))
    found = next((event for event in results if event.query == name and event.at_ms == at_ms and (event.stream == "n" or not ceased)), None)
    if found is None:
        times = [str(event.at_ms) for event in results if event.query == name]
        some = f"{', '.join(times[:5])}{', ...' if len(times) > 5 else ''}" if times else "none at all"
        raise ValueError(f"The query {name!r} has no result at {at_ms} ms; it has {some}.")
    statement, reads = queries[name], {source.stream for source in queries[name].streams}
    items = [event for table in log(queries, streams, graphs, _BATCH_ROWS)
             for event in events_of(table.filter(pc.equal(table["record"], int(Kind.EVENT)))) if event.stream in reads]
    makers = {iri: maker for maker, query in queries.items() if (iri := own_iri(query, _own(maker))) in reads and iri is not None}
    items += [Event(0, iri, event.at_ms, None, triples_in(event.payload), event.at_ms)
              for iri, maker in makers.items() for event in results if event.query == maker and event.logged]
    static = {iri: tuple(own_blank_nodes(triples, f"g{short_name(iri)}")) for iri, triples in graphs.items()}
    return Evidence(statement, found, tuple(items), static, {**BUILT_IN_RULES, **rule_sets}, makers)


def _own(name: str) -> str:
    return f"{_BASE_URL}/queries/{name}"


def _items(streams: Mapping[str, Recording], position: int, batch_rows: int) -> Iterator[pa.Table]:
    """Items of all streams by time, those of one instant in the order of the streams; each moves its stream's watermark to its time."""
    parts = [_Part.of(stream, table) for stream, recording in streams.items() for table in _in_columns(recording)]
    if not parts:
        return
    order = np.argsort(np.concatenate([part.times for part in parts]), kind="stable")
    number = np.repeat(np.arange(len(parts)), [len(part.times) for part in parts])
    place = np.concatenate([np.arange(len(part.times)) for part in parts])
    rows = np.cumsum(np.concatenate([part.sizes for part in parts])[order])
    first, before = 0, Counter[str]()
    while first < len(order):
        end = int(np.searchsorted(rows, batch_rows + (rows[first - 1] if first else 0))) + 1
        chosen = order[first:end]
        tables = [ROWS.empty_table()]
        for mine, part in ((number[chosen] == at, parts[at]) for at in np.unique(number[chosen])):
            prepared = prepare_table(part.taken(place[chosen[mine]]))
            tables.append(item_rows(prepared, part.stream, np.ones(prepared.items, np.bool_), position + np.flatnonzero(mine),
                                    prepared.times, prepared.times, before[part.stream]))
            before[part.stream] += prepared.items
        table = pa.concat_tables(tables)
        yield table if len(tables) <= 2 else table.sort_by([("position", "ascending"), ("row", "ascending")])
        position, first = position + len(chosen), end


@dataclass(frozen=True, slots=True)
class _Part:
    """Items of a stream in columns: of each its time, the number of its first row, and how many it has."""

    stream: str
    table: pa.Table
    times: np.typing.NDArray[np.int64]
    firsts: np.typing.NDArray[np.int64]
    sizes: np.typing.NDArray[np.int64]

    @classmethod
    def of(cls, stream: str, table: pa.Table) -> Self:
        firsts = np.flatnonzero(np.diff(table["item"].to_numpy(), prepend=-1))
        times = table["t"].fill_null(0).to_numpy()
        return cls(stream, table, times if len(firsts) == len(times) else times[firsts], firsts, np.diff(firsts, append=table.num_rows))

    def taken(self, places: np.typing.NDArray[np.int64]) -> pa.Table:
        """Some of the items, numbered from 0. Those that stand together are not copied."""
        sizes = self.sizes[places]
        item = np.repeat(np.arange(len(places), dtype=np.int32), sizes)
        rows = np.arange(len(item)) + (self.firsts[places] - np.cumsum(sizes) + sizes)[item]
        together = rows[-1] - rows[0] + 1 == len(rows) and bool(np.all(np.diff(places) > 0))
        table = self.table.slice(rows[0], len(rows)) if together else self.table.take(pa.array(rows))
        return table.set_column(0, "item", pa.array(item))


def _in_columns(recording: Recording) -> Iterator[pa.Table]:
    """A recording as tables; items that share blank nodes, and those that do not, are in tables of their own."""
    for scoped, run in groupby(recording, lambda part: None if isinstance(part, pa.Table) else part.scope_ms is not None):
        if scoped is None:
            yield from run
        else:
            items = list(run)
            yield item_table([(item.t_ms, item.graph, item.triples) for item in items], [item.scope_ms for item in items])


def _tables(graphs: Mapping[str, Sequence[Triple]]) -> dict[str, pa.Table]:
    return {iri: graph_table(triples) for iri, triples in graphs.items()}
