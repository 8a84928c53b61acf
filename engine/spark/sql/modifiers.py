"""Nodes with one input as SQL: BIND, groups, projection, DISTINCT, ORDER BY, LIMIT."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.ir.expressions import Aggregate as AggregateCall
from engine.ir.terms import Constant, Variable
from engine.plan import nodes
from engine.spark.sql.lower import encode
from engine.spark.sql.relation import Relation, columns, key_condition, padded

if TYPE_CHECKING:
    from engine.spark.sql.emit import Emitter

INTEGER_SUFFIX = '"^^<http://www.w3.org/2001/XMLSchema#integer>'


def filtered(emitter: Emitter, plan: nodes.Filter) -> Relation:
    """The rows whose condition is true."""
    relation = emitter.timed_for(plan.condition, emitter.relation(plan.input))
    where = emitter.lowering.condition(plan.condition, emitter.spelling(relation))
    return replace(relation, name=emitter.add(f"SELECT * FROM {relation.name} WHERE {where}"))


def extend(emitter: Emitter, plan: nodes.Extend) -> Relation:
    """BIND: an error leaves the variable null."""
    relation = emitter.timed_for(plan.expression, emitter.relation(plan.input))
    below: nodes.Plan = plan.input
    while isinstance(below, nodes.Extend):
        below = below.input
    value = emitter.lowering.value(plan.expression, emitter.spelling(relation, emitter.relation(below).variables))
    name = emitter.add(f"SELECT *, {value} AS {emitter.name(plan.variable)} FROM {relation.name}")
    certain = isinstance(plan.expression, Constant) or plan.expression in relation.certain
    return replace(relation, name=name, variables=(*relation.variables, plan.variable),
                   certain=relation.certain | ({plan.variable} if certain else set()))


def aggregate(emitter: Emitter, plan: nodes.Aggregate) -> Relation:
    """Groups per evaluation time; counts in SQL, other aggregates by engine/functions over a list."""
    relation = emitter.relation(plan.input)
    keys = [emitter.name(v) for v in plan.keys if v in relation.variables]
    missing = [v for v in plan.keys if v not in relation.variables]
    calls = [f"{_aggregated(emitter, call, relation)} AS {emitter.name(v)}" for v, call in plan.aggregates]
    calls += [f"CAST(NULL AS STRING) AS {emitter.name(v)}" for v in missing]
    variables = (*plan.keys, *(v for v, _ in plan.aggregates))
    counted = frozenset(v for v, call in plan.aggregates if call.function == "COUNT")
    result = Relation("", relation.keys, relation.spine, variables, counted | (frozenset(plan.keys) & relation.certain))
    rows = f"(SELECT *, 1 AS here FROM {relation.name})"
    if not plan.implicit:
        by = [*relation.keys, *keys]
        grouping = f" GROUP BY {', '.join(by)}" if by else " HAVING count(here) > 0"
        return replace(result, name=emitter.add(f"SELECT {', '.join([*by, *calls]) or '1 AS u'} FROM {rows} AS r{grouping}"))
    if not relation.keys:
        return replace(result, name=emitter.add(f"SELECT {', '.join(calls)} FROM {rows} AS r"))
    held = [f"a.{k}" for k in relation.keys]
    same = " AND ".join(key_condition(relation.keys, relation.keys))
    listed = ", ".join(relation.keys)
    return replace(result, name=emitter.add(
        f"SELECT {', '.join([*held, *calls])} FROM (SELECT DISTINCT {listed} FROM {relation.spine}) a LEFT JOIN {rows} b "
        f"ON {same} GROUP BY {', '.join(held)}"))


def _aggregated(emitter: Emitter, call: AggregateCall, relation: Relation) -> str:
    argument = call.expression
    column = None
    if argument is not None:
        assert isinstance(argument, Variable)
        column = emitter.name(argument) if argument in relation.variables else "CAST(NULL AS STRING)"
    if call.function == "COUNT":
        if column is None and call.distinct:
            visible = (v for v in relation.variables if v.visible and v not in relation.booleans)
            cells = ", ".join(f"coalesce({emitter.name(v)}, '')" for v in visible) or "''"
            column = f"CASE WHEN here IS NOT NULL THEN concat_ws(chr(1), {cells}) END"
        counted = f"count({'DISTINCT ' if call.distinct else ''}{column or 'here'})"
        return f"concat('\"', CAST({counted} AS STRING), '{INTEGER_SUFFIX}')"
    code = encode((call.function, call.distinct, call.separator))
    return emitter.dialect.aggregate(code, emitter.dialect.collect(str(column), "here"))


def project(emitter: Emitter, plan: nodes.Project) -> Relation:
    """The named variables, and the rank of an ordered relation."""
    relation, variables = emitter.relation(plan.input), plan.variables
    kept = replace(relation, variables=variables, certain=relation.certain & frozenset(variables),
                   typed=relation.typed & frozenset(variables), booleans=relation.booleans & frozenset(variables))
    listed = padded(relation, kept, emitter.name) + (["ord"] if relation.ordered else [])
    return replace(kept, name=emitter.add(f"SELECT {', '.join(listed)} FROM {relation.name}"))


def distinct(emitter: Emitter, plan: nodes.Distinct) -> Relation:
    """Each solution once, at its first rank."""
    relation = emitter.relation(plan.input)
    listed = columns(relation, emitter.name, order=False)
    if not relation.ordered:
        return replace(relation, name=emitter.add(f"SELECT DISTINCT {', '.join(listed)} FROM {relation.name}"))
    by = f" GROUP BY {', '.join(listed)}" if listed != ["1 AS u"] else ""
    return replace(relation, name=emitter.add(f"SELECT {', '.join(listed)}, min(ord) AS ord FROM {relation.name}{by}"))


def order(emitter: Emitter, plan: nodes.Order) -> Relation:
    """A rank by the conditions' keys, equal for ties."""
    relation = emitter.relation(plan.input)
    keys, order = [], []
    for number, (condition, descending) in enumerate(plan.conditions):
        assert isinstance(condition, Variable)
        column = emitter.name(condition) if condition in relation.variables else "CAST(NULL AS STRING)"
        keys.append(f"{emitter.dialect.order_key(column)} AS k{number}")
        order.append(f"k{number}{' DESC' if descending else ''}")
    partition = f"PARTITION BY {', '.join(relation.keys)} " if relation.keys else ""
    listed = ", ".join(columns(relation, emitter.name, order=False))
    keyed = emitter.add(f"SELECT {listed}, {', '.join(keys)} FROM {relation.name}")
    ranked = emitter.add(f"SELECT *, dense_rank() OVER ({partition}ORDER BY {', '.join(order)}) AS ord FROM {keyed}")
    return replace(relation, name=ranked, ordered=True)


def slice_(emitter: Emitter, plan: nodes.Slice) -> Relation:
    """LIMIT and OFFSET per evaluation time; ties, and rows without ORDER BY, in canonical row order."""
    relation = emitter.relation(plan.input)
    canonical = [f"{emitter.name(v)} NULLS FIRST" for v in sorted(relation.variables) if v not in relation.booleans]
    order = (["ord"] if relation.ordered else []) + canonical or ["1"]
    partition = f"PARTITION BY {', '.join(relation.keys)} " if relation.keys else ""
    listed = ", ".join(columns(relation, emitter.name, order=False))
    ranked = f"SELECT {listed}, row_number() OVER ({partition}ORDER BY {', '.join(order)}) AS ord FROM {relation.name}"
    limit = f" AND ord <= {plan.offset + plan.limit}" if plan.limit is not None else ""
    kept = f"SELECT * FROM ({ranked}) AS ranked WHERE ord > {plan.offset}{limit}"
    return replace(relation, ordered=True, name=emitter.add(kept))
