"""Nodes with one input as SQL: BIND, groups, projection, DISTINCT, ORDER BY, LIMIT."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

from engine.ir.expressions import Aggregate as AggregateCall
from engine.ir.expressions import Expression
from engine.ir.terms import Constant, Variable
from engine.plan import nodes
from engine.sql import leaves
from engine.sql.calls import Columns
from engine.sql.codes import write_aggregate
from engine.sql.functions.aggregates import Gathered, by_function, count, extreme, group_concat, number_of, sample, total
from engine.sql.functions.arithmetic import arithmetic_in
from engine.sql.functions.comparisons import heap, order_keys, rough_key
from engine.sql.functions.values import INTEGER, NULL_STRING
from engine.sql.panes import FirstPanes, GatheredPanes
from engine.sql.relation import COMPANIONS, Relation, columns, key_condition, padded

if TYPE_CHECKING:
    from engine.sql.emit import Emitter


MOST_FIRST = 10_000     # of so many rows a heap finds the first ones quicker than sorting does


def gather(emitter: Emitter, plan: nodes.Gather) -> Relation:
    """The rows that all shards have."""
    return _each(emitter, plan, lambda shard, below: shard.relation(below))


def _each(emitter: Emitter, plan: nodes.Plan, find: Callable[[Emitter, nodes.Plan], Relation]) -> Relation:
    """What is found of the rows of a plan: where shards have them of those of each shard, and gathered."""
    if not isinstance(plan, nodes.Gather):
        return find(emitter, plan)
    shard = emitter.shard()
    relation = shard.timed(find(shard, plan.input))
    return emitter.gathered(shard, relation, columns(relation, emitter.name))


def filtered(emitter: Emitter, plan: nodes.Filter) -> Relation:
    """The rows whose condition is true."""
    relation = emitter.timed_for(plan.condition, emitter.relation(plan.input))
    name, spelling = _in_steps(emitter, relation.name, plan.condition, emitter.spelling(relation))
    where = emitter.lowering.condition(plan.condition, spelling)
    return replace(relation, name=emitter.add(f"SELECT * FROM {name} WHERE {where}"))


def extend(emitter: Emitter, plan: nodes.Extend) -> Relation:
    """BIND: an error leaves the variable null."""
    relation = emitter.timed_for(plan.expression, emitter.relation(plan.input))
    below: nodes.Plan = plan.input
    while isinstance(below, nodes.Extend):
        below = below.input
    name, spelling = _in_steps(emitter, relation.name, plan.expression, emitter.spelling(relation, emitter.relation(below).variables))
    column = emitter.name(plan.variable)
    added = [f"{emitter.lowering.value(plan.expression, spelling)} AS {column}"]
    companions = emitter.lowering.companions(plan.expression, spelling) if plan.variable in emitter.typed else None
    added += [] if companions is None else [f"{sql} AS {column}{suffix}" for sql, suffix in zip(companions[0], COMPANIONS)]
    certain = isinstance(plan.expression, Constant) or plan.expression in relation.certain
    return replace(relation, name=emitter.add(f"SELECT *, {', '.join(added)} FROM {name}"),
                   variables=(*relation.variables, plan.variable), certain=relation.certain | ({plan.variable} if certain else set()),
                   typed={**relation.typed, **({} if companions is None else {plan.variable: companions[1]})})


def _in_steps(emitter: Emitter, name: str, expression: Expression, spelling: Columns) -> tuple[str, Columns]:
    """A relation that has the values of arithmetic in columns of their own: a text repeats its operands for each case, and so does their
    evaluation."""
    for number, call in enumerate(arithmetic_in(expression) if emitter.dialect.steps else ()):
        value = emitter.lowering.typed(call, spelling)
        if value is not None:
            column = emitter.fresh_column("e", number)
            name = emitter.add(f"SELECT *, {value.kind} AS {column}_k, {value.number} AS {column}_n FROM {name}")
            spelling = replace(spelling, steps={**spelling.steps, call: replace(value, kind=f"{column}_k", number=f"{column}_n")})
    return name, spelling


def aggregate(emitter: Emitter, plan: nodes.Aggregate) -> Relation:
    """Groups per evaluation time: what is gathered of each, and the tokens made of it."""
    relation, found, columns = _by_shards(emitter, plan) or _by_panes(emitter, plan) or _by_rows(emitter, plan)
    keys = [emitter.name(v) for v in plan.keys if v in relation.variables]
    missing = [v for v in plan.keys if v not in relation.variables]
    grouped, held = _groups(emitter, plan, relation, keys, [f"{sql} AS {name}" for name, sql in columns.items()])
    counted = frozenset(v for v, call in plan.aggregates if call.function == "COUNT")
    certain = counted | frozenset(v for v, gathered in found.items() if gathered.certain and not plan.implicit)
    typed = {v: frozenset((INTEGER,)) for v in counted & emitter.typed} if emitter.lowering.quick else {}
    made = [*held, *keys]
    for variable, gathered in found.items():
        made.append(f"{gathered.token} AS {emitter.name(variable)}")
        if variable in typed:
            made += [f"{sql} AS {emitter.name(variable)}{suffix}" for sql, suffix in zip(number_of(str(gathered.count)), COMPANIONS)]
    made += [f"{NULL_STRING} AS {emitter.name(v)}" for v in missing]
    name = emitter.add(f"SELECT {', '.join(made) or '1 AS u'} FROM {grouped}")
    variables = (*plan.keys, *found)
    return Relation(name, relation.keys, relation.spine, variables, certain | (frozenset(plan.keys) & relation.certain), typed)


def _all_gathered(emitter: Emitter, plan: nodes.Aggregate, relation: Relation) -> dict[Variable, Gathered]:
    return {v: _gathered(emitter, call, relation, f"a{number}") for number, (v, call) in enumerate(plan.aggregates)}


def _by_rows(emitter: Emitter, plan: nodes.Aggregate) -> tuple[Relation, dict[Variable, Gathered], dict[str, str]]:
    """The rows of the groups, what is gathered of them, and the aggregates by name that gather it."""
    relation = emitter.relation(plan.input)
    found = _all_gathered(emitter, plan, relation)
    return relation, found, {name: sql for gathered in found.values() for name, sql in gathered.columns.items()}


def _by_panes(emitter: Emitter, plan: nodes.Aggregate) -> tuple[Relation, dict[Variable, Gathered], dict[str, str]] | None:
    """The same where the rows are what a kept relation has, which panes have gathered already; None where they cannot."""
    if not emitter.by_panes or not isinstance(plan.input, nodes.Sample):
        return None
    source, listed, relation = leaves.sampled(emitter, plan.input)
    found = _all_gathered(emitter, plan, relation)
    if (merged := _merged(found)) is None:
        return None
    keys = tuple(emitter.name(v) for v in plan.keys if v in relation.variables)
    columns = tuple((name, sql) for gathered in found.values() for name, sql in gathered.columns.items())
    return replace(relation, name=emitter.read_panes(GatheredPanes(source, listed, keys, columns))), found, merged


def _by_shards(emitter: Emitter, plan: nodes.Aggregate) -> tuple[Relation, dict[Variable, Gathered], dict[str, str]] | None:
    """The same where shards have the rows: each gathers what it has where that can be merged."""
    if not isinstance(plan.input, nodes.Gather):
        return None
    shard, below = emitter.shard(), replace(plan, input=plan.input.input, implicit=False)
    relation, found, made = _by_panes(shard, below) or _by_rows(shard, below)
    relation = shard.timed(relation)
    if (merged := _merged(found)) is None:
        return emitter.gathered(shard, relation, columns(relation, emitter.name)), found, made
    keys = [emitter.name(v) for v in plan.keys if v in relation.variables]
    groups, held = _groups(shard, below, relation, keys, [f"{sql} AS {name}" for name, sql in made.items()])
    return emitter.gathered(shard, replace(relation, name=groups), [*held, *keys, *made]), found, merged


def _merged(found: Mapping[Variable, Gathered]) -> dict[str, str] | None:
    """The columns of groups over those of their parts, None where these do not give them."""
    merged: dict[str, str] = {}
    for gathered in found.values():
        if (own := gathered.merged()) is None:
            return None
        merged |= own
    return merged


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
    certain = argument in relation.certain
    kinds = relation.typed.get(argument) if isinstance(argument, Variable) and emitter.lowering.quick else None
    match call.function:
        case "COUNT":
            return count(call, _counted(emitter, call, relation, column), name)
        case "SAMPLE":
            return sample(column, name, certain)
        case "GROUP_CONCAT":
            return group_concat(dialect, call, column, name)
        case "SUM" | "AVG" if kinds is not None:
            at = "tick" if "tick" in relation.keys else None
            return total(dialect, call, column, name, kinds, lambda operator, tokens: emitter.lowering.apply(operator, tokens, at))
        case "MIN" | "MAX" if kinds is not None:
            return extreme(dialect, call, column, name, kinds, certain)
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
                   typed={v: kinds for v, kinds in relation.typed.items() if v in variables},
                   booleans=relation.booleans & frozenset(variables))
    listed = padded(relation, kept, emitter.name) + (["ord"] if relation.ordered else [])
    return replace(kept, name=emitter.add(f"SELECT {', '.join(listed)} FROM {relation.name}"))


def distinct(emitter: Emitter, plan: nodes.Distinct) -> Relation:
    """Each solution once, at its first rank."""
    if isinstance(plan.input, nodes.Gather):
        return _each_once(emitter, _each(emitter, plan.input, lambda shard, below: _each_once(shard, shard.relation(below))))
    return _each_once(emitter, emitter.relation(plan.input))


def _each_once(emitter: Emitter, relation: Relation) -> Relation:
    relation = replace(relation, typed={})  # one token may have been computed with and without doubt
    listed = columns(relation, emitter.name, order=False)
    if not relation.ordered:
        return replace(relation, name=emitter.add(f"SELECT DISTINCT {', '.join(listed)} FROM {relation.name}"))
    by = f" GROUP BY {', '.join(listed)}" if listed != ["1 AS u"] else " HAVING count(*) > 0"
    return replace(relation, name=emitter.add(f"SELECT {', '.join(listed)}, min(ord) AS ord FROM {relation.name}{by}"))


def order(emitter: Emitter, plan: nodes.Order) -> Relation:
    """A rank by the conditions' keys, equal for ties."""
    most = emitter.most.get(id(plan))
    relation = _each(emitter, plan.input, lambda each, below: _few(each, replace(plan, input=below), most))
    keys = _keys(emitter, relation, plan.conditions)
    partition = f"PARTITION BY {', '.join(relation.keys)} " if relation.keys else ""
    listed = ", ".join(columns(relation, emitter.name, order=False))
    keyed = emitter.add(f"SELECT {listed}, {', '.join(f'{sql} AS {name}' for name, sql, _ in keys)} FROM {relation.name}")
    order = ", ".join(f"{name}{' DESC' if descending else ''}" for name, _, descending in keys)
    ranked = emitter.add(f"SELECT *, dense_rank() OVER ({partition}ORDER BY {order}) AS ord FROM {keyed}")
    return replace(relation, name=ranked, ordered=True)


def _few(emitter: Emitter, plan: nodes.Order, most: int | None) -> Relation:
    """The rows that may be among the first `most`."""
    relation = (None if most is None else _first_by_panes(emitter, plan, most)) or emitter.relation(plan.input)
    if most is not None and (typed := _typed_conditions(relation, plan)):
        relation = _first(emitter, relation, typed, most)
    return relation


def _typed_conditions(relation: Relation, plan: nodes.Order) -> list[tuple[Expression, bool]]:
    """The first conditions, as far as SQL decides them."""
    return list(takewhile(lambda condition: condition[0] in relation.typed, plan.conditions))


def _first_by_panes(emitter: Emitter, plan: nodes.Order, most: int) -> Relation | None:
    """Where the rows are what a kept relation has: the first `most` of each pane and some others; None where no pane can tell."""
    if not emitter.by_panes or not isinstance(plan.input, nodes.Sample):
        return None
    source, listed, relation = leaves.sampled(emitter, plan.input)
    if not (typed := _typed_conditions(relation, plan)):
        return None
    key, descending = _number_key(emitter, relation, typed) or (_sort_key(emitter, relation, typed), False)
    return replace(relation, name=emitter.read_panes(FirstPanes(source, listed, key, descending, most)))


def _keys(emitter: Emitter, relation: Relation, conditions: Sequence[tuple[Expression, bool]]) -> list[tuple[str, str, bool]]:
    """The columns that rows are ranked by: name, text, and whether they descend."""
    found = []
    for number, (condition, descending) in enumerate(conditions):
        assert isinstance(condition, Variable)
        column = emitter.name(condition) if condition in relation.variables else NULL_STRING
        kinds = relation.typed.get(condition)
        made = [emitter.dialect.order_key(column)] if kinds is None else order_keys(emitter.dialect, column, kinds)
        found += [(f"k{number}_{place}", sql, descending) for place, sql in enumerate(made)]
    return found


def _first(emitter: Emitter, relation: Relation, conditions: Sequence[tuple[Expression, bool]], most: int) -> Relation:
    """Of the rows of each evaluation time the first `most` by the first conditions, and those that have the last one's keys: a heap finds
    them, so that few rows have to be ranked by all. A heap of numbers is much quicker than one of keys, and leaves few to it."""
    if (rough := _number_key(emitter, relation, conditions)) is not None:
        relation = _first_by(emitter, relation, *rough, most)
    return _first_by(emitter, relation, _sort_key(emitter, relation, conditions), False, most)


def _number_key(emitter: Emitter, relation: Relation, conditions: Sequence[tuple[Expression, bool]]) -> tuple[str, bool] | None:
    """A number that rows are ordered by but for ties, and whether it descends; None where the first condition has no numbers."""
    condition, descending = conditions[0]
    assert isinstance(condition, Variable)
    key = rough_key(emitter.dialect, emitter.name(condition), relation.typed[condition])
    return None if key is None else (key, descending)


def _sort_key(emitter: Emitter, relation: Relation, conditions: Sequence[tuple[Expression, bool]]) -> str:
    """The key of all conditions; it ascends."""
    return emitter.dialect.sort_key([(sql, down) for _, sql, down in _keys(emitter, relation, conditions)])


def _first_by(emitter: Emitter, relation: Relation, key: str, descending: bool, most: int) -> Relation:
    """The same by one key."""
    by, (firsts, is_first) = relation.keys, heap("sort_key", descending, most)
    keyed = emitter.add(f"SELECT *, {key} AS sort_key FROM {relation.name}")
    grouped = f" GROUP BY {', '.join(by)}" if by else ""
    first = emitter.add(f"SELECT {', '.join([*by, firsts])} FROM {keyed}{grouped}")
    same = " AND ".join(f"k.{name} IS NOT DISTINCT FROM f.{name}" for name in by) or "TRUE"
    listed = ", ".join(columns(relation, emitter.name, "k"))
    few = emitter.add(f"SELECT {listed} FROM {keyed} k JOIN {first} f ON {same} WHERE {is_first}")
    return replace(relation, name=few)


def slice_(emitter: Emitter, plan: nodes.Slice) -> Relation:
    """LIMIT and OFFSET per evaluation time; ties, and rows without ORDER BY, in canonical row order."""
    ordered: nodes.Plan = plan.input
    while isinstance(ordered, nodes.Project):
        ordered = ordered.input
    if plan.limit is not None and 0 < plan.offset + plan.limit <= MOST_FIRST and emitter.dialect.heaps:
        emitter.most[id(ordered)] = plan.offset + plan.limit
    if isinstance(plan.input, nodes.Gather) and plan.limit is not None:
        first = plan.offset + plan.limit
        relation = _each(emitter, plan.input, lambda shard, below: replace(_sliced(shard, shard.relation(below), 0, first), ordered=False))
    else:
        relation = emitter.relation(plan.input) if plan.own is None else emitter.timed(emitter.relation(plan.input))
    made = _sliced(emitter, relation, plan.offset, plan.limit)
    if plan.own is not None:
        own = f"{made.name} AS k JOIN {plan.own.name} o ON k.tick = o.tick WHERE k.ord <= {plan.offset} + o.{plan.own.columns[0]}_n"
        made = replace(made, name=emitter.add(f"SELECT k.* FROM {own}"))
    return made


def _sliced(emitter: Emitter, relation: Relation, offset: int, limit: int | None) -> Relation:
    """At most so many rows of each evaluation time after the first ones."""
    canonical = [f"{emitter.name(v)} NULLS FIRST" for v in sorted(relation.variables) if v not in relation.booleans]
    order = (["ord"] if relation.ordered else []) + canonical or ["1"]
    partition = f"PARTITION BY {', '.join(relation.keys)} " if relation.keys else ""
    listed = ", ".join(columns(relation, emitter.name, order=False))
    ranked = f"SELECT {listed}, row_number() OVER ({partition}ORDER BY {', '.join(order)}) AS ord FROM {relation.name}"
    until = f" AND ord <= {offset + limit}" if limit is not None else ""
    kept = f"SELECT * FROM ({ranked}) AS ranked WHERE ord > {offset}{until}"
    return replace(relation, ordered=True, name=emitter.add(kept))
