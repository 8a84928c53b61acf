"""Warnings about a statement that is valid and may never answer: what no pattern binds, what nothing has, what no window shows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from engine.functions.library import FUNCTIONS, OF_RULES
from engine.ir import expressions as ex, patterns as ir
from engine.ir.notation import duration
from engine.ir.rules import TRIPLE, RuleSet, atoms
from engine.ir.spans import Diagnostic, Span
from engine.ir.statement import Construct, Program, Select, Statement, TimeWindow
from engine.ir.terms import RDF, RDF_TYPE, Constant, Variable
from engine.runtime.snapshot import Snapshot

_MOST = 20      # after so many there is no point in more
_STANDARD = (f"<{RDF}", "<http://www.w3.org/2000/01/rdf-schema#", "<http://www.w3.org/2002/07/owl#", "<http://www.w3.org/2001/XMLSchema#")
_CASTS = "casts are xsd:integer, xsd:decimal, xsd:double, xsd:float, xsd:string, xsd:boolean and xsd:dateTime"
# Functions that are there for variables without a value.
_OF_UNBOUND = frozenset(("BOUND", "COALESCE"))


def statement_warnings(statement: Statement, graphs: Mapping[str, pa.Table], rules: Mapping[str, RuleSet],
                       shown: frozenset[str] | None) -> list[Diagnostic]:
    """The warnings, in the order of the text. `graphs` and `rules` are those of the catalogue by name; `shown` the properties and classes
    on its streams so far, None where a stream has shown nothing yet."""
    found = [*_steps(statement), *_unbound(statement), *_functions(statement)]
    if shown is not None and not isinstance(statement.query, Program):
        found += _words(statement, graphs, rules, shown)
    return sorted(found, key=lambda one: one.span.start if one.span else 0)[:_MOST]


def shown_by(snapshot: Snapshot, statement: Statement) -> frozenset[str] | None:
    """The properties and classes that the streams of a statement have shown lately; None where one has shown nothing that is known."""
    found: set[str] = set()
    for stream in {source.stream for source in statement.streams}:
        tail = snapshot.tails.get(stream)
        if tail is None:
            return None
        for table in tail.tables:
            found |= words_of(table)
        for chunk in snapshot.chunks.get(stream, ()):
            found |= {*chunk.estimate.predicates, *chunk.estimate.classes}
    return frozenset(found)


def words_of(table: pa.Table) -> set[str]:
    """The properties of triples, and the classes of the members among them."""
    classes = table.filter(pc.equal(table["p"], RDF_TYPE))["o"]
    return {token for column in (table["p"], classes) for token in pc.unique(column).to_pylist() if token is not None}


def _steps(statement: Statement) -> Iterator[Diagnostic]:
    for source in statement.streams:
        window = source.window
        if isinstance(window, TimeWindow) and window.step_ms > window.range_ms and not statement.on_change:
            step, length, gap = map(duration, (window.step_ms, window.range_ms, window.step_ms - window.range_ms))
            message = f"STEP {step} is longer than RANGE {length}: items of {gap} in each step are in no window."
            yield Diagnostic("step-over-range", message, source.span)


def _unbound(statement: Statement) -> Iterator[Diagnostic]:
    """Variables that are selected, or constructed, and bound by no pattern; and conditions about such ones, which are never true."""
    query = statement.query
    known = ir.scope(query.pattern)
    if isinstance(query, Select):
        yield from _unselected(statement, query.variables, known)
    if isinstance(query, Construct):
        for triple in query.template:
            for term in triple.terms:
                if isinstance(term, Variable) and not term.name.startswith("_:") and term not in known:
                    yield Diagnostic("unbound-variable", f"No pattern binds ?{term.name}: this triple is never made.", triple.span)
    everything = frozenset().union(*(ir.scope(pattern) for pattern in _patterns(query.pattern)))
    for pattern in _patterns(query.pattern):
        if isinstance(pattern, ir.Project):
            yield from _unselected(statement, pattern.variables, ir.scope(pattern.pattern))
        if isinstance(pattern, ir.Filter):
            for part in ex.conjuncts(pattern.condition):
                if any(call.function in _OF_UNBOUND for call in _calls(part)):
                    continue
                for variable in sorted(ex.variables_of(part) - everything):
                    yield Diagnostic("unbound-variable", f"No pattern binds ?{variable.name}: this condition is never true.",
                                     getattr(part, "span", None) or _place(statement, variable))


def _unselected(statement: Statement, variables: Sequence[Variable], known: frozenset[Variable]) -> Iterator[Diagnostic]:
    for variable in variables:
        if variable not in known and not variable.name.startswith("_:"):
            yield Diagnostic("unbound-variable", f"No pattern binds ?{variable.name}: it never has a value.", _place(statement, variable))


def _place(statement: Statement, variable: Variable) -> Span | None:
    """Where a variable first stands in the text."""
    found = re.search(rf"[?$]{re.escape(variable.name)}(?!\w)", statement.text)
    return Span(statement.text, found.start(), found.end()) if found else None


def _functions(statement: Statement) -> Iterator[Diagnostic]:
    for pattern in _patterns(statement.query.pattern):
        for expression in ir.expressions(pattern):
            for call in _calls(expression):
                if call.function.startswith("<") and call.function not in FUNCTIONS and call.function not in OF_RULES:
                    message = f"No function {call.function} is known: a call of it is always an error."
                    yield Diagnostic("unknown-function", message, call.span, hint=_CASTS)


def _words(statement: Statement, graphs: Mapping[str, pa.Table], rules: Mapping[str, RuleSet],
           shown: frozenset[str]) -> Iterator[Diagnostic]:
    """Properties and classes that neither the graphs, the heads of the rules, nor the streams have."""
    asked: dict[str, tuple[str, Span | None]] = {}
    for pattern in _patterns(statement.query.pattern):
        for triple in pattern.triples if isinstance(pattern, ir.BGP) else ():
            word, kind = (triple.object, "class") if triple.predicate == Constant(RDF_TYPE) else (triple.predicate, "property")
            if isinstance(word, Constant) and word.token.startswith("<") and not word.token.startswith(_STANDARD):
                asked.setdefault(word.token, (kind, triple.span))
    open_ = set(asked) - shown
    for source in (*statement.graphs, *statement.reasoning_graphs):
        if open_ and source.iri in graphs:
            open_ -= _mentioned(graphs[source.iri], open_)
    for name in {source.name for source in statement.rules} & set(rules):
        heads = _heads(rules[name])
        if heads is None:
            return
        open_ -= heads
    places = ["its streams lately"] * bool(statement.streams) + ["its graphs"] * bool(statement.graphs or statement.reasoning_graphs)
    places += ["its rules"] * bool(statement.rules)
    for token in sorted(open_):
        kind, span = asked[token]
        yield Diagnostic("unknown-word", f"Nothing has the {kind} {token}: not {', not '.join(places) or 'the data'}.", span)


def _mentioned(table: pa.Table, words: Iterable[str]) -> set[str]:
    """Those of the words that occur in a graph, in any place."""
    wanted = pa.array(sorted(words), pa.string())
    columns = (table[name].cast(pa.string()) for name in "spo")
    return {token for column in columns for token in pc.unique(column.filter(pc.is_in(column, value_set=wanted))).to_pylist()}


def _heads(rules: RuleSet) -> set[str] | None:
    """The properties and classes that written rules derive; None where one may derive any."""
    found = {term.token for fact in rules.facts for term in fact.atom.terms if isinstance(term, Constant)}
    for rule in rules.rules:
        for atom in atoms(rule.head):
            if rule.role == "built-in" or atom.predicate != TRIPLE:
                continue
            word = atom.terms[2] if atom.terms[1] == Constant(RDF_TYPE) else atom.terms[1]
            if not isinstance(word, Constant):
                return None
            found.add(word.token)
    return found


def _patterns(pattern: ir.Pattern) -> Iterator[ir.Pattern]:
    """A pattern with all below it, those of EXISTS included."""
    waiting = [pattern]
    while waiting:
        found = waiting.pop()
        yield found
        waiting += ir.children(found)
        waiting += [test.pattern for expression in ir.expressions(found) for test in ex.exists_in(expression)]


def _calls(expression: ex.Expression) -> Iterator[ex.Call]:
    waiting: list[ex.Expression] = [expression]
    while waiting:
        match waiting.pop():
            case ex.Call(args=args) as call:
                yield call
                waiting += args
            case ex.Aggregate(expression=inner) if inner is not None:
                waiting.append(inner)
