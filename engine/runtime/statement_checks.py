"""What is told of a statement by what there is now: warnings that a valid one may never answer,
what it would need, and whether all items that a window of a one-shot query shows are kept.
Estimates decide no result: what is registered is held to the limits of its evaluations."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from engine.execution.content import StreamContent, merge_estimates, table_estimate
from engine.functions.context import ExpressionError
from engine.functions.library import FUNCTIONS, OF_RULES
from engine.functions.regexes import regex
from engine.functions.terms import simple_text
from engine.ir import expressions as ex, patterns as ir
from engine.ir.expressions import variables_of
from engine.ir.notation import duration
from engine.ir.printer import show_window
from engine.ir.rules import TRIPLE, RuleSet, atoms
from engine.ir.spans import Diagnostic, Span
from engine.ir.statement import Construct, NowWindow, Program, Select, Statement, StreamSource, TimeWindow, TupleWindow
from engine.ir.terms import RDF, RDF_TYPE, Constant, Variable
from engine.plan.nodes import Scan, StaticSource
from engine.plan.order import Estimate
from engine.plan.variables import variables_among
from engine.runtime.errors import EngineError
from engine.runtime.kept import StreamState
from engine.runtime.resources import iso
from engine.runtime.settings import Settings
from engine.runtime.view import Seen, Snapshot, View
from engine.sql.sources import Evaluation, bounds
from engine.timeline import MAX

_MOST = 20      # after so many there is no point in more
_STANDARD = (f"<{RDF}", "<http://www.w3.org/2000/01/rdf-schema#", "<http://www.w3.org/2002/07/owl#", "<http://www.w3.org/2001/XMLSchema#")
_CASTS = "casts are xsd:integer, xsd:decimal, xsd:double, xsd:float, xsd:string, xsd:boolean and xsd:dateTime"
# Functions that are there for variables without a value.
_OF_UNBOUND = frozenset(("BOUND", "COALESCE"))
_FLAGS = {"REGEX": 2, "REPLACE": 3}     # the place of the flags, behind that of the pattern, 1
_Part = tuple[frozenset[Variable], tuple[ir.TriplePattern, ...]]
"""Something that is joined: its variables and, where there are, triple patterns."""


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
    everything = frozenset().union(*(ir.scope(pattern) for pattern in ir.walk(query.pattern)))
    for pattern in ir.walk(query.pattern):
        if isinstance(pattern, ir.Project):
            yield from _unselected(statement, pattern.variables, ir.scope(pattern.pattern))
        if isinstance(pattern, ir.Filter):
            for part in ex.conjuncts(pattern.condition):
                if any(isinstance(call, ex.Call) and call.function in _OF_UNBOUND for call in ex.walk(part)):
                    continue
                for variable in sorted(ex.variables_of(part) - everything):
                    yield Diagnostic("unbound-variable", f"No pattern binds ?{variable.name}: this condition is never true.",
                                     getattr(part, "span", None) or _place(statement, variable))


def _unselected(statement: Statement, variables: Sequence[Variable], known: frozenset[Variable]) -> Iterator[Diagnostic]:
    for variable in variables:
        if variable not in known and not variable.name.startswith("_:"):
            yield Diagnostic("unbound-variable", f"No pattern binds ?{variable.name}: it never has a value.", _place(statement, variable))


def _place(statement: Statement, variable: Variable) -> Span | None:
    found = re.search(rf"[?$]{re.escape(variable.name)}(?!\w)", statement.text)
    return Span(statement.text, found.start(), found.end()) if found else None


def _functions(statement: Statement) -> Iterator[Diagnostic]:
    expressions = (expression for pattern in ir.walk(statement.query.pattern) for expression in ir.expressions(pattern))
    for call in (part for expression in expressions for part in ex.walk(expression) if isinstance(part, ex.Call)):
        if call.function.startswith("<") and call.function not in FUNCTIONS and call.function not in OF_RULES:
            message = f"No function {call.function} is known: a call of it is always an error."
            yield Diagnostic("unknown-function", message, call.span, hint=_CASTS)
        if call.function in _FLAGS and (wrong := _wrong_pattern(call)):
            yield Diagnostic("bad-pattern", f"{call.function} is always an error here: {wrong}.", call.span)


def _wrong_pattern(call: ex.Call) -> str | None:
    """What is wrong with the pattern and flags of a call where both are constant."""
    given = [arg.token for arg in (call.args[1], *call.args[_FLAGS[call.function]:]) if isinstance(arg, Constant)]
    try:
        if len(given) == 1 + len(call.args[_FLAGS[call.function]:]):
            # Also builds the automaton of a pattern that always needs it.
            if regex(*map(simple_text, given)).matches("") and call.function == "REPLACE":
                return "the pattern to replace matches the empty string"
    except ExpressionError as error:
        return str(error)
    return None


def _words(statement: Statement, graphs: Mapping[str, pa.Table], rules: Mapping[str, RuleSet],
           shown: frozenset[str]) -> Iterator[Diagnostic]:
    """Properties and classes that neither the graphs, the heads of the rules, nor the streams have."""
    asked: dict[str, tuple[str, Span | None]] = {}
    for pattern in ir.walk(statement.query.pattern):
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


@dataclass(frozen=True, slots=True)
class Needs:
    """`rows` that the windows hold together, and the rows of the largest Cartesian `product`, 0 where there is none."""

    rows: int
    product: int

    def to_json(self) -> dict[str, int]:
        """As ``/explain`` shows them."""
        return {"windowRows": self.rows, "productRows": self.product}

    def check(self, settings: Settings) -> None:
        """422 ``over-limit`` where one of them is more than it may be."""
        for limit, most, actual, what in (
                ("state_rows", settings.evaluation.state_rows, self.rows, "Its windows would hold {0} triples, as its streams come now"),
                ("product_rows", settings.product_rows, self.product, "Patterns that share no variable would give {0} rows to look at")):
            if actual > most:
                raise EngineError("over-limit", 422, f"{what.format(actual)}; the limit {limit} is {most}.",
                                  {"limit": limit, "most": most, "actual": actual})


def needs_of(statement: Statement, view: View, now_ms: int) -> Needs:
    """What a statement would need if all goes on as in the last ten seconds."""
    rows = {source: _rows(source, view, now_ms) for source in statement.windows}
    query = statement.query
    products = [] if isinstance(query, Program) else [parts for parts in _products(query.pattern) if len(parts) > 1]
    if not products:
        return Needs(sum(rows.values()), 0)
    graphs = view.graphs
    estimate = merge_estimates([*(_scaled(view.snapshot.content(source.stream).estimate(), count) for source, count in rows.items()),
                                *(table_estimate(graphs[graph.iri]) for graph in statement.graphs if graph.iri in graphs)])
    return Needs(sum(rows.values()), max(math.prod(int(_least(part, estimate)) for part in parts) for parts in products))


def _rows(source: StreamSource, view: View, now_ms: int) -> int:
    """The triples that a window will hold: rate by RANGE. Of a stream that is silent what is kept of it."""
    kept = view.snapshot.content(source.stream).rows
    match source.window:
        case TimeWindow(range_ms=length):
            return int(view.snapshot.measured.rows(source.stream, now_ms) * length / 1000) or kept
        case TupleWindow(count=count):
            return min(count, kept)
    return kept


def _scaled(estimate: Estimate, rows: int) -> Estimate:
    share = rows / estimate.total if estimate.total else 0.0
    return Estimate(rows, {p: int(count * share) for p, count in estimate.predicates.items()},
                    {c: int(count * share) for c, count in estimate.classes.items()})


def _products(pattern: ir.Pattern) -> Iterator[list[tuple[ir.TriplePattern, ...]]]:
    """Of a pattern, and of each one within that is a relation of its own: the triple patterns in groups that share no variable."""
    groups, inside = list[_Part](), list[ir.Pattern]()
    for variables, triples in _parts(pattern, inside):
        for group in [group for group in groups if not group[0].isdisjoint(variables)]:
            groups.remove(group)
            variables, triples = variables | group[0], triples + group[1]
        groups.append((variables, triples))
    yield [triples for _, triples in groups if triples]
    for inner in inside:
        yield from _products(inner)


def _parts(pattern: ir.Pattern, inside: list[ir.Pattern], graph: frozenset[Variable] = frozenset()) -> Iterator[_Part]:
    """What is joined in a pattern, within the graph or window of a name; `inside` gets the patterns that are a relation of their own before
    they are joined, as the parts are taken."""
    match pattern:
        case ir.BGP(triples=triples):
            yield from ((ir.scope(ir.BGP((triple,))) | graph, (triple,)) for triple in triples)
        case ir.Join(left=left, right=right) | ir.LeftJoin(left=left, right=right):
            yield from _parts(left, inside, graph)
            yield from _parts(right, inside, graph)
        case ir.Filter(pattern=inner):
            yield from _parts(inner, inside, graph)
        case ir.Extend(pattern=inner, variable=variable, expression=expression):
            yield from _parts(inner, inside, graph)
            yield frozenset(variables_of(expression)) | {variable}, ()
        case ir.GraphPattern(name=name, pattern=inner) | ir.WindowPattern(name=name, pattern=inner):
            yield from _parts(inner, inside, graph | frozenset(variables_among(name)))
        case _:
            yield ir.scope(pattern) | graph, ()
            inside += ir.children(pattern)


def _least(triples: Sequence[ir.TriplePattern], estimate: Estimate) -> float:
    """The rows of the smallest of some connected triple patterns."""
    return min(estimate.rows(Scan(StaticSource(""), t.subject, t.predicate, t.object)) for t in triples)


def check_kept(source: StreamSource, content: StreamContent, state: StreamState | None, evaluation: Evaluation,
               readers: Sequence[Seen]) -> None:
    """Refuse a window that shows items which are not kept, 422 ``window-not-kept``. `content` and `state` are the stream's (None where
    nothing was ever pushed), `readers` the queries that read it."""
    if state is None or content.items == state.items:
        return
    kept_from = max(state.kept_from, state.whole_from)
    low, high = bounds(source.window, evaluation.ticks[0], evaluation)
    match source.window:
        case TimeWindow():
            whole = low >= kept_from
        case TupleWindow(count=count, unit=unit):
            whole = _count(content, kept_from, high, unit) >= count
        case NowWindow():
            whole = content.between(kept_from, high, -1).num_rows > 0
        case _:
            whole = False
    if not whole:
        raise _not_kept(source, low, high, kept_from, readers)


def _count(content: StreamContent, low: int, high: int, unit: str) -> int:
    keys = ["t", "s", "p", "o"] if unit == "triples" else ["t"]     # equal items of one time are one item
    return int(content.between(low, high, -1).group_by(keys).aggregate([]).num_rows)


def _not_kept(source: StreamSource, low: int, high: int, kept_from: int, readers: Sequence[Seen]) -> EngineError:
    kept = {query.name: " ".join(show_window(window) for stream, window in query.timetable.windows if stream == source.stream)
            for query in readers if query.state != "failed"}
    detail = f"Not all items that this window on <{source.stream}> shows are kept"
    if not kept or kept_from >= MAX:
        detail += ": no registered query reads the stream."
    else:
        if isinstance(source.window, TimeWindow):
            detail += (f". It has STEP {duration(source.window.step_ms)}: its last close was at {_time(high)}, so it shows the items from "
                       f"{_time(low)} on")
        detail += f"; they are kept from {_time(kept_from)} on, for {', '.join(sorted(kept))}."
    hint = "Register a query with this window."
    if kept:
        hint = f"Ask with a window that a registered query has, {' or '.join(dict.fromkeys(kept.values()))}, or register one with this."
    return EngineError("window-not-kept", 422, detail, {"stream": source.stream, "hint": hint, "kept": kept})


def _time(ms: int) -> str:
    return iso(ms) or f"{ms} ms"
