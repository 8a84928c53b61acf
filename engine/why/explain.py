"""Why an answer: the proofs of one row of a query's result at its evaluation time T.

A proof is a match of the query's pattern that gives the row, with a tree for each triple of it (proofs.py), down to what is in a
window at T or in a static graph. What is not there (MINUS, NOT EXISTS, OPTIONAL) is a leaf that says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice

from engine.functions.expressions import Context
from engine.ir.expressions import exists_in
from engine.ir.patterns import Extend, Filter, Group, LeftJoin, Minus, Pattern, Slice, TriplePattern, children
from engine.ir.rules import Rule, RuleSet
from engine.ir.stages import Division, divide
from engine.ir.statement import Ask, Construct, Describe, Select, Statement
from engine.ir.terms import Constant
from engine.ir.windows import with_rule_windows
from engine.records import Event, Triple
from engine.reference.algebra import bind
from engine.reference.content import History
from engine.reference.dataset import Graph
from engine.reference.solutions import Row
from engine.reference.sparql import concise_bounded_description
from engine.why.dataset import World, lean, stated, static
from engine.why.matches import Chosen, Gathered, Name, Needs, Support, Trace, Tracer
from engine.why.staged import Staged
from engine.why.trees import STEPS, Absent, Budget, Holds, Lazy, Proof, choices, depth, shortest, taken

_MATCHES_SORTED = 1_000
_MEMBERS = 10


@dataclass(frozen=True, slots=True)
class Case:
    """A query's evaluation at T: what it saw. `events` are all that its windows may show, IRIs have no brackets; `makers` are the queries
    that make some of its streams; of items before `cut_ms` those that came may be missing; `query` is its name, from which blank nodes and
    random numbers derive."""

    statement: Statement
    tick: int
    at_ms: int
    query: str
    events: Sequence[Event]
    graphs: Mapping[str, Graph]
    rules: Mapping[str, RuleSet] = field(default_factory=dict)
    makers: Mapping[str, str] = field(default_factory=dict)
    cut_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """A solution of a pattern with the proofs of what it rests on."""

    row: Row
    premises: tuple[Node, ...]
    depth: int
    size: int


@dataclass(frozen=True, slots=True)
class Members:
    """The solutions that an aggregate was made of: how many, and some of them."""

    text: str
    count: int
    shown: tuple[Match, ...]
    depth: int
    size: int


Node = Proof | Match | Members


class UnexplainedError(Exception):
    """A kind of query or rules of which nothing is proved here."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The proofs that were found; `more` where there are others, or the search for them was given up."""

    proofs: tuple[Match, ...]
    more: bool


def explain(case: Case, row: Row, most: int = 1, members: int = _MEMBERS) -> Explanation:
    """At most `most` proofs of a row, the shortest first: ``{}`` of ASK, ``s p o`` of CONSTRUCT and DESCRIBE; no proofs of a row that is
    not in the result. Of the rows of an aggregate `members` are shown. Raises TooMuchError where no proof is found in so many steps,
    or it is too deep to be shown, UnexplainedError for rules with time."""
    used = [case.rules[source.name] for source in case.statement.rules if source.name in case.rules]
    division = divide(used)
    # A rule that came of several (rdfs7+rdfs9) saves steps to those who need no proof.
    rules = [rule for rule in dict.fromkeys(rule for one in division.plain for rule in one.rules) if len(rule.origin) < 2]
    case = replace(case, statement=replace(case.statement, rule_windows=()) if division.is_timed
                   else with_rule_windows(case.statement, case.rules))
    few, query = lean(rules), case.statement.query
    if len(few) < len(rules) and not isinstance(query, Describe) and _only_adds(query.pattern):
        found = _search(case, few, used, division, row, most, members)
        if found.proofs:
            return found
    return _search(case, rules, used, division, row, most, members)


def _search(case: Case, rules: Sequence[Rule], used: Sequence[RuleSet], division: Division,
            row: Row, most: int, members: int) -> Explanation:
    history, budget = History(), Budget(STEPS)
    for event in case.events:
        history.add(event)
    context = Context(case.at_ms, case.query)
    held = _staged(case, division, used, budget).given() if division.is_timed else None
    world = World(case.statement, case.tick, history, case.graphs, rules, stated(division.plain), case.makers, context, budget, held)
    finder = _Finder(world, Tracer(world.dataset, context, budget), members)
    traces = _traces(case.statement, finder.tracer, world.shown, row)
    return Explanation(*taken(finder.proofs(traces), most, budget))


def _staged(case: Case, division: Division, used: Sequence[RuleSet], budget: Budget) -> Staged:
    statement = case.statement
    reads = {source.stream for source in statement.streams}
    graphs = (g for g in (*statement.graphs, *statement.reasoning_graphs) if not g.named)
    events = [event for event in case.events if event.stream in reads]
    return Staged(division, used, events, case.makers, static(case.graphs, graphs), case.tick, statement.on_change, budget, case.cut_ms)


class _Finder:
    """Makes proofs of the traces of a row."""

    def __init__(self, world: World, tracer: Tracer, members: int) -> None:
        self._world, self.tracer, self._members = world, tracer, members

    def proofs(self, traces: Iterator[Trace]) -> Iterator[Match]:
        """All proofs by these matches, the shortest first as far as the first thousand matches go."""
        first = list(islice(traces, _MATCHES_SORTED))
        yield from shortest((self._bound(trace), self._of(trace)) for trace in first)
        yield from chain.from_iterable(map(self._of, traces))

    def _bound(self, trace: Trace) -> int:
        return max((self._world.shown[need.place].depth(need.triple) for need in trace.supports if isinstance(need, Needs)), default=0)

    def _of(self, trace: Trace) -> Iterator[Match]:
        for premises in choices([Lazy(self._nodes(support)) for support in trace.supports]):
            inner = premises[0] if len(premises) == 1 else None
            if isinstance(inner, Match) and inner.row.items() >= trace.row.items():
                premises = inner.premises
            yield Match(trace.row, premises, depth(premises), 1 + sum(p.size for p in premises))

    def _nodes(self, support: Support) -> Iterator[Node]:
        match support:
            case Needs(triple=triple, place=place):
                return self._world.shown[place].proofs(triple)
            case Chosen(traces=traces):
                return self.proofs(traces())
            case Gathered(text=text, traces=members):
                shown = tuple(next(self._of(trace)) for trace in members[:self._members])
                return iter([Members(text, len(members), shown, depth(shown), 1 + sum(m.size for m in shown))])
            case Holds() | Absent():
                return iter([support])


# --- the forms of queries

def _traces(statement: Statement, tracer: Tracer, shown: Mapping[Name, Graph], row: Row) -> Iterator[Trace]:
    """The matches by which a query's result has a row."""
    query = statement.query
    match query:
        case Select(pattern=pattern):
            return (trace for trace in tracer.traces(pattern, None, row) if trace.row == row)
        case Ask(pattern=pattern):
            return tracer.traces(pattern)
        case Construct(template=template, pattern=pattern):
            return _constructed(template, pattern, tracer, (row["s"], row["p"], row["o"]))
        case Describe():
            return _described(query, tracer, shown, (row["s"], row["p"], row["o"]))
    raise UnexplainedError("What a rule program gives is not explained.")


def _constructed(template: Sequence[TriplePattern], pattern: Pattern, tracer: Tracer, wanted: Triple) -> Iterator[Trace]:
    """The solutions whose instance of the template has the triple. A blank node of the template is taken for that of any solution that
    gives the other terms: its name is the evaluator's own."""
    for triple in template:
        bound = bind(triple.terms, wanted, {})
        if bound is None or any(name.startswith("_:") and not token.startswith("_:") for name, token in bound.items()):
            continue
        own = {name: token for name, token in bound.items() if not name.startswith("_:")}
        yield from (trace for trace in tracer.traces(pattern, None, own)
                    if all(trace.row.get(name) == token for name, token in own.items()))


def _described(query: Describe, tracer: Tracer, shown: Mapping[Name, Graph], wanted: Triple) -> Iterator[Trace]:
    """The triple itself, for each resource that was asked for in whose description it is."""
    everything = Graph(triple for graph in tracer.dataset.graphs() for triple in graph.triples)
    there = next((name for name, graph in shown.items() if name[:1] != ("item",) and wanted in graph.triples), None)
    if there is None:
        return
    described: dict[str, bool] = {}
    fixed = [Trace({}, ())] if any(isinstance(term, Constant) for term in query.terms) else []
    for trace in chain(fixed, tracer.traces(query.pattern)):
        for term in query.terms:
            resource = term.token if isinstance(term, Constant) and not trace.row else trace.row.get(getattr(term, "name", ""))
            if resource is None:
                continue
            if resource not in described:
                described[resource] = wanted in concise_bounded_description(everything, {resource})
            if described[resource]:
                yield Trace(trace.row, (Needs(wanted, there), Holds(f"it describes {resource}"), *trace.supports))


def _only_adds(pattern: Pattern) -> bool:
    """Whether more triples never mean fewer solutions, so that a proof from some of them is one."""
    match pattern:
        case Minus() | LeftJoin() | Group() | Slice():
            return False
        case Filter(condition=condition) | Extend(expression=condition) if any(exists_in(condition)):
            return False
    return all(map(_only_adds, children(pattern)))
