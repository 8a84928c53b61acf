"""Checks of a statement against the catalog: every problem found at once, each at its place; nothing is changed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from engine.ir import patterns as ir
from engine.ir.rules import Rule, RuleSet
from engine.ir.spans import Diagnostic, DiagnosticError, Span
from engine.ir.stages import divide
from engine.ir.statement import AllWindow, Program, Statement, TimeWindow, TupleWindow
from engine.ir.strata import unstratified
from engine.ir.windows import WINDOW_FUNCTIONS, has_steps, time_calls, window_argument
from engine.limits import HOUR, WINDOW_ITEMS, WINDOW_STEPS
from engine.rewrite.owl2rl import BUILT_IN as BUILT_IN_RULES

MAX_RULES = 500     # what a rule leads to is looked for among all of them, several times
# How to come to what a text names and is not there; ``{}`` is its name. A replay has other ways (runtime/replay.py).
REMEDIES = {"unknown-stream": "Register the stream first: PUT /streams/NAME with its IRI.",
            "no-such-graph": "Nothing is fetched: load it with PUT /graphs?graph={}",
            "no-such-rules": "Put it there first: PUT /rules/{}"}


@dataclass(frozen=True, slots=True)
class Catalog:
    """What a statement may name: streams (IRI -> "event" or "arrival"), static graphs (IRI -> facts), rule sets; and the limits.
    `asked_once`: it is not evaluated continuously."""

    streams: Mapping[str, str] = field(default_factory=dict)
    graphs: Mapping[str, pa.Table] = field(default_factory=dict)
    rules: Mapping[str, RuleSet] = field(default_factory=lambda: dict(BUILT_IN_RULES))
    max_range_ms: int = HOUR
    max_steps: int = WINDOW_STEPS
    max_items: int = WINDOW_ITEMS
    mixed_time: bool = False
    asked_once: bool = False
    remedies: Mapping[str, str] = field(default_factory=lambda: REMEDIES)

    def remedy(self, code: str, name: str) -> str:
        """What to do where a text names what is not there."""
        return self.remedies[code].replace("{}", name)


def validate(statement: Statement, catalog: Catalog) -> Statement:
    """The statement itself; raises DiagnosticError with everything that is wrong with it."""
    found = [*_names(statement, catalog), *_windows(statement, catalog), *_forms(statement)]
    if found:
        raise DiagnosticError(*found)
    return statement


def _names(statement: Statement, catalog: Catalog) -> Iterator[Diagnostic]:
    for stream in statement.streams:
        if stream.stream not in catalog.streams:
            known = ", ".join(f"<{s}>" for s in sorted(catalog.streams)) or "none yet"
            yield Diagnostic("unknown-stream", f"No stream has the IRI <{stream.stream}>.", stream.span, note=f"Known streams: {known}.",
                             hint=catalog.remedy("unknown-stream", stream.stream))
    for graph in (*statement.graphs, *statement.reasoning_graphs):
        if graph.iri not in catalog.graphs:
            yield Diagnostic("no-such-graph", f"No static graph has the IRI <{graph.iri}>.", graph.span,
                             hint=catalog.remedy("no-such-graph", graph.iri))
    for rules in statement.rules:
        if rules.name not in catalog.rules:
            yield Diagnostic("no-such-rules", f"No rule set is named '{rules.name}'.", rules.span,
                             note=f"Known rule sets: {', '.join(sorted(catalog.rules))}.", hint=catalog.remedy("no-such-rules", rules.name))
    together = [catalog.rules[source.name] for source in statement.rules if source.name in catalog.rules]
    yield from _too_many_rules([*(rule for one in together for rule in one.rules)], statement.rules[0].span if statement.rules else None)
    if isinstance(statement.query, Program):
        yield from _too_many_rules(statement.query.rules.rules, None)
    plain = [rule for one in divide(together).plain for rule in one.rules]      # those with a time are looked at with what they need
    if len(together) > 1 and (unsafe := unstratified(plain)):
        yield replace(unsafe, span=statement.rules[0].span)
    if catalog.asked_once and divide(together).is_timed:
        yield Diagnostic("unsupported-in-streaming", "Rules with a time of their own see whole streams, from a registration on; a query "
                         "that is asked once has none.", statement.rules[0].span, hint="register the query")
    kinds = {catalog.streams[s.stream] for s in statement.streams if s.stream in catalog.streams}
    if len(kinds) > 1 and not catalog.mixed_time:
        yield Diagnostic("unsupported-in-streaming", "The query reads an arrival-time and an event-time stream together.",
                         statement.streams[0].span, hint="Set mixedTime: true at registration if their clocks agree.")


def _too_many_rules(rules: Sequence[Rule], span: Span | None) -> Iterator[Diagnostic]:
    if (count := sum(bool(rule.body) for rule in rules)) > MAX_RULES:
        yield Diagnostic("query-too-large", f"A query may reason by {MAX_RULES} rules; these are {count}.", span)


def _windows(statement: Statement, catalog: Catalog) -> Iterator[Diagnostic]:
    if statement.registered and not statement.streams:
        yield Diagnostic("window-unbounded", "A registered query needs a stream: FROM STREAM <iri> [RANGE 10s STEP 2s].",
                         statement.query.pattern.span)
    names: set[str] = set()
    for source in statement.rule_windows:
        assert isinstance(source.window, TimeWindow)
        length, step = source.window.range_ms, source.window.step_ms
        if length > catalog.max_range_ms:
            yield Diagnostic("window-unbounded", f"A Window of the rules is {length} ms; the limit is {catalog.max_range_ms} ms.",
                             statement.rules[0].span)
        elif has_steps(statement) and (times := _times_seen(statement, length, step)) > catalog.max_steps:
            yield Diagnostic("over-limit", f"A Window of the rules, {length} ms, has {times} evaluation times of this query; the limit "
                             f"window_steps is {catalog.max_steps}.", source.span,
                             hint="Give the query's window a longer STEP, or report ON CHANGE.")
    for stream in statement.streams:
        match stream.window:
            case TimeWindow(range_ms=length) if length > catalog.max_range_ms:
                yield Diagnostic("window-unbounded", f"RANGE is {length} ms; the limit is {catalog.max_range_ms} ms.", stream.span)
            case TimeWindow(range_ms=length, step_ms=step) if (times := _times_seen(statement, length, step)) > catalog.max_steps:
                yield Diagnostic("over-limit", f"RANGE {length} ms has {times} evaluation times; the limit window_steps is "
                                 f"{catalog.max_steps}.", stream.span, hint="Give the window a longer STEP, or report ON CHANGE.")
            case TupleWindow(count=count, unit=unit) if count > catalog.max_items:
                yield Diagnostic("over-limit", f"The window has {count} {unit}; the limit window_items is {catalog.max_items}.",
                                 stream.span)
            case AllWindow():
                yield Diagnostic("window-unbounded", "[ALL] keeps everything since registration, without a bound.", stream.span,
                                 hint="Give the window a RANGE, or a number of TRIPLES or ITEMS.")
        if stream.name is not None and stream.name in names:
            yield Diagnostic("query-syntax", f"Two windows are named <{stream.name}>.", stream.span)
        names.add(stream.name or "")


def _times_seen(statement: Statement, range_ms: int, step_ms: int) -> int:
    """At how many evaluation times a window sees an item, where it is not reported on change."""
    return 0 if statement.on_change else -(-range_ms // min(step_ms, statement.compute_every_ms or step_ms))


def _forms(statement: Statement) -> Iterator[Diagnostic]:
    if statement.kind == "stream" and statement.form not in ("CONSTRUCT", "DESCRIBE", "SELECT"):
        yield Diagnostic("query-syntax", "REGISTER STREAM needs CONSTRUCT or SELECT.", statement.query.pattern.span)
    expressions = [expression for pattern in ir.walk(statement.query.pattern) for expression in ir.expressions(pattern)]
    for call in (call for expression in expressions for call in time_calls(expression)):
        if call.function == "TIMESTAMP" and len(call.args) not in (1, 3):
            yield Diagnostic("query-syntax", "TIMESTAMP takes a triple, TIMESTAMP(?s, ?p, ?o), or the name of an item.", call.span)
        elif call.function in WINDOW_FUNCTIONS:
            try:
                window_argument(call, statement.streams)
            except DiagnosticError as error:
                yield from error.diagnostics
