"""Queries under rules on the plan and on the reference evaluator: the same data in a window and in static graphs of each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.compiler import BUILT_IN_RULES, Catalog, Compiled, compile_statement
from engine.execution.content import StreamContent
from engine.execution.due import Due
from engine.functions.expressions import Context
from engine.ir.rules import Atom, RuleSet
from engine.ir.terms import Constant
from engine.records import Event, Triple
from engine.reference.content import History, content_of, dataset_at, window_bounds, window_events
from engine.reference.dataset import Graph
from engine.reference.sparql import evaluate
from engine.rewrite.rule_text import OWL, rule_table
from engine.runtime.rows import facts_of, graph_table
from engine.execution.executor import Executor
from grammar import parse
from tests.conformance.executors import result_of
from tests.encoded import encode

E = "http://ex.org/"
STREAM, TICK = f"{E}s", 1000
PLACES = {
    "default": ("FROM STREAM :s [RANGE 1s STEP 1s]", "{ %s }"),
    "default with FROM": ("FROM STREAM :s [RANGE 1s STEP 1s] FROM :shown", "{ %s }"),
    "default with USING": ("FROM STREAM :s [RANGE 1s STEP 1s] USING GRAPH :behind", "{ %s }"),
    "default with both": ("FROM STREAM :s [RANGE 1s STEP 1s] FROM :shown USING GRAPH :behind", "{ %s }"),
    "window": ("FROM NAMED WINDOW :w ON :s [RANGE 1s STEP 1s]", "{ WINDOW :w { %s } }"),
    "window with FROM": ("FROM NAMED WINDOW :w ON :s [RANGE 1s STEP 1s] FROM :shown", "{ WINDOW :w { %s } }"),
    "window with USING": ("FROM NAMED WINDOW :w ON :s [RANGE 1s STEP 1s] USING GRAPH :behind", "{ WINDOW ?w { %s } }"),
    "items with USING": ("FROM NAMED WINDOW :w ON :s [RANGE 1s STEP 1s] USING GRAPH :behind", "{ WINDOW :w { GRAPH ?g { %s } } }"),
    "graph with USING": ("FROM STREAM :s [RANGE 1s STEP 1s] FROM NAMED :shown USING GRAPH :behind", "{ GRAPH ?g { %s } }"),
}
"""Where a pattern looks: the sources, and what is around it. ``:shown`` and ``:behind`` are static graphs, ``:s`` is a stream."""


@dataclass(frozen=True)
class Data:
    """The triples of the stream's items (every other one a named graph), and of the static graphs."""

    items: tuple[tuple[Triple, ...], ...]
    shown: tuple[Triple, ...] = ()
    behind: tuple[Triple, ...] = ()

    @property
    def events(self) -> list[Event]:
        """The items, all inside the window that closes at TICK."""
        return [Event(n + 1, STREAM, 500, f"<{E}g{n}>" if n % 2 == 0 else None, item, 500) for n, item in enumerate(self.items)]


def text(place: str, pattern: str, names: Sequence[str], head: str = "SELECT *") -> str:
    """The query that asks a pattern in a place, under the rule sets of these names."""
    sources, around = PLACES[place]
    by, _, graphs = sources.partition(" USING GRAPH ")
    using = f"USING RULES {', '.join(names)}" + (f" USING GRAPH {graphs}" if graphs else "")
    return f"PREFIX : <{E}> {head} {by} {using} WHERE {around % pattern}"


Bag = Counter[tuple[tuple[str, str], ...]]


def compiled(query: str, data: Data, rules: Mapping[str, RuleSet]) -> Compiled:
    """The query, against the static graphs and rule sets."""
    return compile_statement(parse(query), Catalog({STREAM: "event"}, tables(data), {**BUILT_IN_RULES, **rules}), "q")


def planned(executor: Executor, query: str, data: Data, rules: Mapping[str, RuleSet]) -> Bag:
    """The answers of the plan, as a bag."""
    return evaluated(executor, compiled(query, data, rules), data)[0]


def evaluated(executor: Executor, made: Compiled, data: Data) -> tuple[Bag, tuple[str, ...]]:
    """The answers of a query, as a bag, and what is inconsistent."""
    answer, = executor.evaluate([Due("q", made, (TICK,), -1, {STREAM: content_of_stream(data)}, tables(data))])
    executor.forget("q")
    if answer.error is not None:
        raise answer.error
    assert answer.table is not None
    rows = [{name: value for name, value in row.items() if value is not None} for row in answer.table.to_pylist()]
    return Counter(tuple(sorted(row.items())) for row in result_of(made.statement, rows).bag()), answer.inconsistencies


def content_of_stream(data: Data) -> StreamContent:
    """The stream's items."""
    content = StreamContent()
    if data.items:
        content.append(facts_of(encode(data.events)))
    return content


def expected(query: str, data: Data, rules: Mapping[str, RuleSet]) -> Bag:
    """The answers of the reference evaluator."""
    statement, history = parse(query), History()
    for event in data.events:
        history.add(event)
    contents = {s: content_of(window_events(s, TICK, history, statement, False)) for s in statement.streams}
    graphs = {f"{E}shown": Graph(data.shown), f"{E}behind": Graph(data.behind)}
    bounds = window_bounds(statement, TICK, False)
    dataset = dataset_at(statement, contents, graphs, bounds, {**BUILT_IN_RULES, **rules})
    return Counter(tuple(sorted(row.items())) for row in evaluate(statement.query, dataset, Context(TICK, "q")).bag())


def written(lines: Sequence[str], name: str = "own") -> dict[str, RuleSet]:
    """Rules in the notation of the built-in tables; their bare names are those of this prefix."""
    found = rule_table("\n".join(f"r{n} {line}" for n, line in enumerate(lines)), {})
    rules = [replace(rule, head=_here(rule.head), body=tuple(map(_here, rule.body))) for listed in found.values() for rule in listed]
    return {name: RuleSet(name, tuple(rules))}


def _here(part: Any) -> Any:
    if not isinstance(part, Atom):
        return part
    return replace(part, terms=tuple(Constant(t.token.replace(OWL, E)) if isinstance(t, Constant) else t for t in part.terms))


def tables(data: Data) -> dict[str, object]:
    return {f"{E}shown": graph_table(tuple(dict.fromkeys(data.shown))), f"{E}behind": graph_table(tuple(dict.fromkeys(data.behind)))}
