"""Nodes with one input as SQL: BIND, groups, projection, DISTINCT, ORDER BY, LIMIT."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.ir.expressions import Aggregate as AggregateCall
from engine.ir.terms import Constant, Variable
from engine.plan import nodes
from engine.sql.codes import write_aggregate
from engine.sql.functions.aggregates import Gathered, by_function, count, extreme, group_concat, number_of, sample, total
from engine.sql.functions.order import order_keys
from engine.sql.functions.values import NULL_STRING
from engine.sql.relation import COMPANIONS, Relation, columns, key_condition, padded

if TYPE_CHECKING:
    from engine.sql.emit import Emitter


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
    spelling = emitter.spelling(relation, emitter.relation(below).variables)
    column = emitter.name(plan.variable)
    added = [f"{emitter.lowering.value(plan.expression, spelling)} AS {column}"]
    companions = emitter.lowering.companions(plan.expression, spelling) if plan.variable in emitter.typed else None
    added += [f"{sql} AS {column}{suffix}" for sql, suffix in zip(companions or (), COMPANIONS)]
    certain = isinstance(plan.expression, Constant) or plan.expression in relation.certain
    return replace(relation, name=emitter.add(f"SELECT *, {', '.join(added)} FROM {relation.name}"),
                   variables=(*relation.variables, plan.variable), certain=relation.certain | ({plan.variable} if certain else set()),
                   typed=relation.typed | ({plan.variable} if companions else set()))


def aggregate(emitter: Emitter, plan: nodes.Aggregate) -> Relation:
    """Groups per evaluation time: what is gathered of each, and the tokens made of it."""
    relation = emitter.relation(plan.input)
    keys = [emitter.name(v) for v in plan.keys if v in relation.variables]
    missing = [v for v in plan.keys if v not in relation.variables]
    found = {v: _gathered(emitter, call, relation, f"a{number}") for number, (v, call) in enumerate(plan.aggregates)}
    grouped, held = _groups(emitter, plan, relation, keys, [f"{sql} AS {name}" for g in found.values() for name, sql in g.columns.items()])
    counted = frozenset(v for v, call in plan.aggregates if call.function == "COUNT")
    typed = counted & emitter.typed if emitter.lowering.quick else frozenset()
    made = [*held, *keys]
    for variable, gathered in found.items():
        made.append(f"{gathered.token} AS {emitter.name(variable)}")
        if variable in typed:
            made += [f"{sql} AS {emitter.name(variable)}{suffix}" for sql, suffix in zip(number_of(str(gathered.count)), COMPANIONS)]
    made += [f"{NULL_STRING} AS {emitter.name(v)}" for v in missing]
    name = emitter.add(f"SELECT {', '.join(made) or '1 AS u'} FROM {grouped}")
    variables = (*plan.keys, *found)
    return Relation(name, relation.keys, relation.spine, variables, counted | (frozenset(plan.keys) & relation.certain), typed)


def _groups(emitter: Emitter, plan: nodes.Aggregate, relation: Relation, keys: list[str], gathered: list[str]) -> tuple[str, list[str]]:
    """The relation of groups, and its key columns; without GROUP BY there is one group even where there are no rows."""
    rows = f"(SELECT *, 1 AS here FROM {relation.name})"
    if not plan.implicit:
        by = [*relation.keys, *keys]
        grouping = f" GROUP BY {', '.join(by)}" if by else " HAVING count(here) > 0"
        return emitter.add(f"SELECT {', '.join([*by, *gathered]) or '1 AS u'} FROM {rows} AS r{grouping}"), list(relation.keys)
    if not relation.keys:
        return emitter.add(f"SELECT {', '.join(gathered)} FROM {rows} AS r"), []
    held = [f"a.{k}" for k in relation.keys]
    same = " AND ".join(key_condition(relation.keys, relation.keys))
    return emitter.add(
        f"SELECT {', '.join([*held, *gathered])} FROM (SELECT DISTINCT {', '.join(relation.keys)} FROM {relation.spine}) a "
        f"LEFT JOIN {rows} b ON {same} GROUP BY {', '.join(held)}"), list(relation.keys)


def _gathered(emitter: Emitter, call: AggregateCall, relation: Relation, name: str) -> Gathered:
    argument, dialect = call.expression, emitter.dialect
    column = NULL_STRING
    if argument is not None:
        assert isinstance(argument, Variable)
        column = emitter.name(argument) if argument in relation.variables else column
    typed = argument in relation.typed and emitter.lowering.quick
    match call.function:
        case "COUNT":
            return count(dialect, call, _counted(emitter, call, relation, column), name)
        case "SAMPLE":
            return sample(dialect, call, column, name)
        case "GROUP_CONCAT":
            return group_concat(dialect, call, column, name)
        case "SUM" | "AVG" if typed:
            at = "tick" if "tick" in relation.keys else None
            return total(dialect, call, column, name, lambda operator, tokens: emitter.lowering.apply(operator, tokens, at))
        case "MIN" | "MAX" if typed:
            return extreme(dialect, call, column, name)
    return by_function(dialect, write_aggregate(call.function, call.distinct, call.separator), column, name)


def _counted(emitter: Emitter, call: AggregateCall, relation: Relation, column: str) -> str:
    """What COUNT counts where it is not null: rows, solutions or values."""
    if call.expression is not None:
        return column
    if not call.distinct:
        return "here"
    visible = (v for v in relation.variables if v.visible and v not in relation.booleans)
    cells = ", ".join(f"coalesce({emitter.name(v)}, '')" for v in visible) or "''"
    return f"CASE WHEN here IS NOT NULL THEN concat_ws(chr(1), {cells}) END"


def project(emitter: Emitter, plan: nodes.Project) -> Relation:
    """The named variables, and the rank of an ordered relation."""
    relation, variables = emitter.relation(plan.input), plan.variables
    kept = replace(relation, variables=variables, certain=relation.certain & frozenset(variables),
                   typed=relation.typed & frozenset(variables), booleans=relation.booleans & frozenset(variables))
    listed = padded(relation, kept, emitter.name) + (["ord"] if relation.ordered else [])
    return replace(kept, name=emitter.add(f"SELECT {', '.join(listed)} FROM {relation.name}"))


def distinct(emitter: Emitter, plan: nodes.Distinct) -> Relation:
    """Each solution once, at its first rank."""
    relation = replace(emitter.relation(plan.input), typed=frozenset())  # one token may have been computed with and without doubt
    listed = columns(relation, emitter.name, order=False)
    if not relation.ordered:
        return replace(relation, name=emitter.add(f"SELECT DISTINCT {', '.join(listed)} FROM {relation.name}"))
    by = f" GROUP BY {', '.join(listed)}" if listed != ["1 AS u"] else " HAVING count(*) > 0"
    return replace(relation, name=emitter.add(f"SELECT {', '.join(listed)}, min(ord) AS ord FROM {relation.name}{by}"))


def order(emitter: Emitter, plan: nodes.Order) -> Relation:
    """A rank by the conditions' keys, equal for ties."""
    relation = emitter.relation(plan.input)
    keys, order = [], []
    for number, (condition, descending) in enumerate(plan.conditions):
        assert isinstance(condition, Variable)
        column = emitter.name(condition) if condition in relation.variables else NULL_STRING
        made = order_keys(emitter.dialect, column) if condition in relation.typed else [emitter.dialect.order_key(column)]
        for place, sql in enumerate(made):
            keys.append(f"{sql} AS k{number}_{place}")
            order.append(f"k{number}_{place}{' DESC' if descending else ''}")
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
