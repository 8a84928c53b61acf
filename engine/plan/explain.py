"""The one printer of logical plans: an indented tree with sources, origins and estimated rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from engine.ir.expressions import Aggregate, Call, Exists, Expression
from engine.ir.terms import Constant, OneOf, PatternTerm, Variable
from engine.plan import explain_intervals, nodes
from engine.plan.graphs import WORDS, choose
from engine.plan.nodes import BoundsSource, MergedSource, Plan, Source, StaticSource, WindowSource, inputs, scans_of
from engine.plan.order import Estimate
from engine.plan.timed import TimedPlan


def explain_plan(plan: Plan, estimate: Estimate) -> str:
    """The plan as text, one node a line."""
    if isinstance(plan, TimedPlan):
        return explain_intervals.explain(plan.program)
    return "\n".join(f"{'  ' * depth}{label}" for depth, label in _lines(plan, estimate, 0))


def plan_tree(plan: Plan, estimate: Estimate) -> dict[str, Any]:
    """The plan as nested ``{"label", "inputs"}`` for the plan picture."""
    if isinstance(plan, TimedPlan):
        return explain_intervals.tree(plan.program)
    return {"node": type(plan).__name__, "label": _label(plan, estimate), "inputs": [plan_tree(p, estimate) for p in inputs(plan)]}


def _lines(plan: Plan, estimate: Estimate, depth: int) -> Iterator[tuple[int, str]]:
    yield depth, _label(plan, estimate)
    for below in inputs(plan):
        yield from _lines(below, estimate, depth + 1)


def _label(plan: Plan, estimate: Estimate) -> str:
    match plan:
        case nodes.Scan(source=source, graph=graph, origin=origin):
            of = f" GRAPH {_term(graph)}" if graph else ""
            through = f"  -- {', '.join(origin)}" if origin else ""
            return f"Scan {_source(source)}{of} {' '.join(map(_term, plan.terms))}  ~{estimate.rows(plan):.0f} rows{through}"
        case nodes.Star(scans=scans):
            return f"Star on {_term(scans[0].subject)} ({len(scans)} patterns)"
        case nodes.Sample(source=source, variables=variables):
            return f"Sample of {' '.join(map(_term, variables))}, kept as {source.name}"
        case nodes.Begun(source=source):
            return f"Begun in the {_source(source)}"
        case nodes.Nodes(source=source, variable=variable):
            return f"Nodes {_source(source)} {_term(variable)}"
        case nodes.Reach(step=step, first=first, last=last, seed=seed):
            begin = f"from what binds {_term(first)}" if seed else "all pairs"
            edges = max((estimate.rows(scan) for scan in scans_of(step)), default=0.0)
            return f"Reach {_term(first)} to {_term(last)}, {begin}, {WORDS[choose('reachability', edges)]}  ~{edges:.0f} edges"
        case nodes.Chain(scans=scans):
            return f"Chain from {_term(scans[0].subject)} to {_term(scans[-1].object)} ({len(scans)} patterns), by motif finding"
        case nodes.Otherwise():
            return "LeftJoin with a condition: what passes, and the left rows of which nothing does"
        case nodes.Lookup(table=table, keys=keys):
            return f"Lookup {_term(table.variable)} by {' '.join(map(_term, keys))}"
        case nodes.Stamps(source=source, terms=terms):
            return f"Stamps {_source(source)} of {'triples' if terms else 'items'}"
        case nodes.WindowTimes(opens=opens):
            return f"WindowTimes: when windows {'open' if opens else 'close'}"
        case nodes.Filter(condition=condition):
            return f"Filter {show(condition)}"
        case nodes.Extend(variable=variable, expression=expression):
            return f"Extend {_term(variable)} := {show(expression)}"
        case nodes.Values(variables=variables, rows=rows):
            return f"Values {' '.join(map(_term, variables))} ({len(rows)} rows)"
        case nodes.Aggregate(keys=keys, aggregates=aggregates):
            return f"Aggregate by [{' '.join(map(_term, keys))}] {', '.join(f'{_term(v)} := {show(a)}' for v, a in aggregates)}"
        case nodes.Project(variables=variables) | nodes.Seed(variables=variables):
            return f"{type(plan).__name__} {' '.join(map(_term, variables))}".rstrip()
        case nodes.Order(conditions=conditions):
            return f"Order {', '.join(show(c) + (' DESC' if d else '') for c, d in conditions)}"
        case nodes.Slice(offset=offset, limit=limit):
            return f"Slice offset {offset} limit {limit}"
        case nodes.Mark(variable=variable, seed=seed):
            return f"Mark {_term(variable)} := EXISTS, by {' '.join(map(_term, seed.variables)) or 'nothing'}"
    return type(plan).__name__


def _source(source: Source) -> str:
    match source:
        case WindowSource(index=index):
            return f"window {index}"
        case StaticSource(iri=iri):
            return f"graph <{iri}>"
        case nodes.TimedSource():
            return "what timed rules derive"
        case MergedSource(parts=parts):
            return _listed(parts)
        case nodes.KeptSource(name=name):
            return f"what is kept as {name}"
        case BoundsSource(index=index):
            return f"bounds of window {index}"
        case nodes.ValiditySource(index=index):
            return f"window {index} by intervals"
        case nodes.ViewSource(index=index):
            return f"window {index} for rules with a Window"
        case nodes.ItemsSource(index=index):
            return f"each item of window {index}"
        case nodes.ClosedSource(base=base, rules=rules):
            return f"closure of {_listed(base)} under {len(rules)} rules"
        case nodes.RestSource(closed=closed, hidden=hidden):
            return f"{_source(closed)} without the {_source(hidden)}"
        case nodes.AtomsSource(parts=parts):
            return f"atoms of the {_listed(parts)}"
        case nodes.KnownSource(closed=closed, beside=beside):
            return f"known{' beside the new' if beside else ''} of the {_source(closed)}"
        case nodes.FreshSource(closed=closed):
            return f"new of the {_source(closed)}"
        case nodes.StarSource(closed=closed):
            return f"known of the {_source(closed)} about a subject of something new"


def _listed(sources: Iterable[Source]) -> str:
    return f"({' + '.join(map(_source, sources)) or 'nothing'})"


def _term(term: PatternTerm | None) -> str:
    match term:
        case Variable(name=name):
            return f"?{name}"
        case Constant(token=token):
            return token
        case OneOf(tokens=tokens):
            return f"[{' '.join(tokens[:5])}{' ...' if len(tokens) > 5 else ''}]"
    return "-"


def show(expression: Expression) -> str:
    """An expression in prefix notation, as EXPLAIN shows it."""
    match expression:
        case Variable() | Constant():
            return _term(expression)
        case Call(function=function, args=(left, right)) if not function[0].isalpha():
            return f"({show(left)} {function} {show(right)})"
        case Call(function=function, args=args):
            return f"{function}({', '.join(map(show, args))})"
        case Aggregate(function=function, expression=inner, distinct=distinct):
            return f"{function}({'DISTINCT ' if distinct else ''}{show(inner) if inner is not None else '*'})"
        case Exists(negated=negated):
            return "NOT EXISTS" if negated else "EXISTS"
