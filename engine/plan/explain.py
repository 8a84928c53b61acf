"""The printers of plans, of both kinds: an indented tree, and the same as nested nodes."""

from collections.abc import Iterable, Iterator
from typing import Any

from engine.ir.expressions import Aggregate, Call, Exists, Expression
from engine.ir.notation import Expressions, duration, interval as show_interval, term as show_term
from engine.ir.printer import show_group
from engine.ir.terms import Constant, OneOf, PatternTerm, Variable
from engine.plan import intervals, nodes
from engine.plan.analyses import shared
from engine.plan.graphs import WORDS, choose
from engine.plan.memory import describe
from engine.plan.nodes import BoundsSource, MergedSource, Plan, Source, StaticSource, WindowSource, inputs, scans_of
from engine.plan.order import Estimate
from engine.plan.timed import StagedPlan, TimedPlan

Tree = dict[str, Any]
"""A node with those below it: ``{"node", "label", "inputs"}``."""


def explain_plan(plan: Plan, estimate: Estimate) -> str:
    """The plan as text, one node a line, with sources, origins and estimated rows."""
    return explain_program(plan.program) if isinstance(plan, TimedPlan) else "\n".join(_lines(plan_tree(plan, estimate)))


def plan_tree(plan: Plan, estimate: Estimate) -> Tree:
    """The plan for the plan picture."""
    if isinstance(plan, TimedPlan):
        return program_tree(plan.program)
    return {"node": type(plan).__name__, "label": _label(plan, estimate), "inputs": [plan_tree(p, estimate) for p in inputs(plan)]}


def explain_staged(plan: StagedPlan) -> str:
    """A chain of programs as text: each stage with its timeline, what it reads, its plan and what it has to keep."""
    lines = []
    for number, stage in enumerate(plan.stages, 1):
        reads = f", after {', '.join(str(place + 1) for place in stage.reads)}" if stage.reads else ""
        lines.append(f"-- timed rules, stage {number}, on {stage.timeline}{reads}\n")
        lines += explain_program(stage.program), describe(stage.memory)
    return "".join(lines)


def explain_program(program: intervals.Program) -> str:
    """A plan over interval relations: these by stratum, each with how it is derived. What is read since the last round is not told, it is
    as what is new."""
    lines = []
    _, same = shared(program)
    for number, stratum in enumerate(program.strata, 1):
        lines.append(_stratum(number, stratum))
        for relation in stratum.relations:
            if relation.name in same:
                lines.append(f"  {relation.name} (as {same[relation.name]}: one table has both)")
                continue
            lines.append(f"  {relation.name}{'' if relation.derivations else ' (input)'}")
            for derivation in relation.derivations:
                if derivation.part == "new":
                    lines.append(f"    ({', '.join(map(show_term, derivation.terms))}) <-")
                    lines += [f"      {line}" for line in _lines(_node_tree(derivation.input))]
    return "\n".join(lines) + "\n"


def program_tree(program: intervals.Program) -> Tree:
    """The same as a tree: strata, their relations, how each is derived."""
    return {"node": "Program", "label": f"Program of {len(program.relations)} relations", "inputs": [
        {"node": "Stratum", "label": _stratum(number, stratum), "inputs": [
            {"node": "Relation", "label": relation.name, "inputs": [_node_tree(d.input) for d in relation.derivations if d.part == "new"]}
            for relation in stratum.relations]}
        for number, stratum in enumerate(program.strata, 1)]}


def _stratum(number: int, stratum: intervals.Stratum) -> str:
    return f"stratum {number}{', in rounds' if stratum.recursive else ''}"


def _node_tree(node: intervals.Node) -> Tree:
    return {"node": type(node).__name__, "label": _headline(node), "inputs": list(map(_node_tree, intervals.children(node)))}


def _lines(tree: Tree) -> Iterator[str]:
    yield tree["label"]
    for below in tree["inputs"]:
        yield from (f"  {line}" for line in _lines(below))


def _headline(node: intervals.Node) -> str:
    match node:
        case intervals.Scan(relation=relation, terms=terms, part=part, whole=whole):
            return f"Scan({part}{' whole' if whole else ''}) {relation} ({', '.join(map(show_term, terms))})"
        case intervals.Shift() | intervals.Box() | intervals.LateBox() | intervals.Recall() | intervals.RunOn():
            return f"{type(node).__name__} {show_interval(node.distance, duration)}"
        case intervals.At(instant=instant, window=window):
            return f"At {show_term(instant)}{f', for {window} granules' if window else ''}"
        case intervals.Place(instant=instant, late=late):
            return f"Place {show_term(instant)}{', known late' if late else ''}"
        case intervals.Filter(condition=condition):
            return f"Filter {Expressions(show_group).show(condition)}"
        case intervals.Extend(variable=variable, expression=expression):
            return f"Extend {show_term(variable)} := {Expressions(show_group).show(expression)}"
        case intervals.Values(rows=rows):
            return f"Values, {len(rows)} rows"
    return type(node).__name__


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
        case nodes.Gather():
            return "Gather what all shards find"
        case nodes.Begun(source=source):
            return f"Begun in the {_source(source)}"
        case nodes.Nodes(source=source, variable=variable):
            return f"Nodes {_source(source)} {_term(variable)}"
        case nodes.Reach(step=step, first=first, last=last, seed=seed):
            begin = f"from what binds {_term(first)}" if seed else "all pairs"
            edges = max((estimate.rows(scan) for scan in scans_of(step)), default=0.0)
            return f"Reach {_term(first)} to {_term(last)}, {begin}, {WORDS[choose(edges)]}  ~{edges:.0f} edges"
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
        case nodes.ShareSource(source=shared):
            return f"each shard's share of the {_source(shared)}"
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
