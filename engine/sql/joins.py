"""Nodes with two inputs as SQL: joins, OPTIONAL, MINUS, UNION, EXISTS."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.ir import expressions as ex
from engine.ir.expressions import Expression
from engine.ir.terms import Variable
from engine.plan import nodes
from engine.sql.calls import Columns, is_volatile
from engine.sql.relation import (COMPANIONS, Relation, columns, compatible, joined_columns, joined_variables, key_condition, kinds_of,
                                 padded, shared_variables)

if TYPE_CHECKING:
    from engine.sql.emit import Emitter


def _merged(emitter: Emitter, left: Relation, right: Relation) -> tuple[tuple[str, ...], str]:
    """Keys of a join in the order of its select list, and a relation that lists their values."""
    keys = (*left.keys, *(k for k in right.keys if k not in left.keys))
    for side in (left, right):
        if set(keys) == set(side.keys):
            return keys, side.spine
    seeded = right if "tick" in left.keys else left
    return keys, emitter.add(f"SELECT t.tick, a.* FROM {seeded.spine} a CROSS JOIN ticks t")


def _joined(word: str, left: Relation, right: Relation, select: list[str], conditions: list[str]) -> str:
    return f"SELECT {', '.join(select)} FROM {left.name} a {word} {right.name} b ON {' AND '.join(conditions) or 'TRUE'}"


def join(emitter: Emitter, plan: nodes.Join) -> Relation:
    """The compatible pairs of solutions."""
    left, right = emitter.relation(plan.left), emitter.relation(plan.right)
    conditions = key_condition(left.keys, right.keys) + compatible(left, right, emitter.name, shared_variables(left, right))
    if left.intervals and right.intervals:
        conditions.append("a.lo <= b.hi AND b.lo <= a.hi")
    select, typed = joined_columns(left, right, emitter.name)
    name = emitter.add(_joined("JOIN", left, right, select, conditions))
    keys, spine = _merged(emitter, left, right)
    variables = joined_variables(left, right)
    return Relation(name, keys, spine, variables, left.certain | right.certain, typed, left.booleans | right.booleans,
                    intervals=left.intervals or right.intervals)


def left_join(emitter: Emitter, plan: nodes.LeftJoin) -> Relation:
    return _left_joined(emitter, emitter.relation(plan.left), emitter.relation(plan.right), [])


def _left_joined(emitter: Emitter, left: Relation, right: Relation, tests: list[str]) -> Relation:
    if not set(right.keys) <= set(left.keys):
        left = emitter.timed(left)
    conditions = key_condition(left.keys, right.keys) + compatible(left, right, emitter.name, shared_variables(left, right)) + tests
    select, typed = joined_columns(left, replace(right, certain=frozenset()), emitter.name)   # a row of the right may be missing
    variables = joined_variables(left, right)
    result = Relation("", left.keys, left.spine, variables, left.certain, typed, left.booleans)
    return replace(result, name=emitter.add(_joined("LEFT JOIN", left, right, select, conditions)))


def _beside(emitter: Emitter, left: Relation, right: Relation, condition: Expression) -> str | None:
    """A filter as a condition of the join of `left` (a) and `right` (b); None where only the joined row can be tested."""
    read = ex.variables_of(condition)
    if is_volatile(condition) or any(v in right.variables and v not in left.certain for v in read if v in left.variables):
        return None

    def token(variable: Variable) -> str | None:
        side = "a" if variable in left.variables else "b" if variable in right.variables else None
        return side and f"{side}.{emitter.name(variable)}"

    typed = {v: kinds for v, kinds in right.typed.items() if v not in left.variables} | dict(left.typed)
    before = emitter.lowering.calls
    text = emitter.lowering.condition(condition, Columns(token, typed, left.booleans | right.booleans, None, ()))
    called = emitter.lowering.calls > before
    return None if emitter.dialect.name == "sql" and called else text    # Spark: no Python function in an outer join


def otherwise(emitter: Emitter, plan: nodes.Otherwise) -> Relation:
    """OPTIONAL with a filter: the joined rows that pass it, and the left rows that have none (LeftJoin, section 18.5)."""
    match plan.matched:
        case nodes.Filter(input=nodes.Join(left=left_plan, right=right_plan), condition=condition) if left_plan is plan.left:
            left, right = emitter.relation(left_plan), emitter.relation(right_plan)
            if not plan.rebound and (text := _beside(emitter, left, right, condition)):
                return _left_joined(emitter, left, right, [text])
    left, matched = emitter.relation(plan.left), emitter.relation(plan.matched)
    if not set(matched.keys) <= set(left.keys):
        left = emitter.timed(left)
    result = replace(matched, keys=left.keys, spine=left.spine, certain=left.certain, booleans=left.booleans,
                     typed={v: kinds_of(v, left, matched) for v in matched.typed if v in left.typed or v not in left.variables},
                     variables=tuple(v for v in matched.variables if v in left.booleans or v not in matched.booleans))
    same = key_condition(left.keys, matched.keys)
    same += [f"a.{emitter.name(v)} IS NOT DISTINCT FROM b.{emitter.name(v)}" for v in left.variables if v not in plan.rebound]
    alone = ", ".join(padded(left, result, emitter.name, "a"))
    listed = ", ".join(columns(result, emitter.name))
    return replace(result, name=emitter.add(
        f"SELECT {listed} FROM {matched.name} UNION ALL SELECT {alone} FROM {left.name} a "
        f"WHERE NOT EXISTS (SELECT 1 FROM {matched.name} b WHERE {' AND '.join(same) or 'TRUE'})"))


def lookup(emitter: Emitter, plan: nodes.Lookup) -> Relation:
    """What a table has for the values of its keys; nothing where one is unbound."""
    left, table = emitter.timed(emitter.relation(plan.input)), emitter.relation(plan.table)
    conditions = key_condition(left.keys, table.keys) + [
        f"a.{emitter.name(v)} = b.{emitter.name(v)}" if v in left.variables else "FALSE" for v in plan.keys]
    found = plan.table.variable
    select = [c for c in columns(left, emitter.name, "a") if c != "1 AS u"] + [f"b.{emitter.name(found)}"]
    if found in table.typed:
        select += [f"b.{emitter.name(found)}{suffix}" for suffix in COMPANIONS]
    name = emitter.add(_joined("LEFT JOIN", left, table, select, conditions))
    typed = {v: kinds for v, kinds in table.typed.items() if v == found}
    return replace(left, name=name, variables=(*left.variables, found), typed={**left.typed, **typed})


def minus(emitter: Emitter, plan: nodes.Minus) -> Relation:
    """Solutions without a compatible one that shares a variable (SPARQL 1.1 section 18.5)."""
    left, right = emitter.relation(plan.left), emitter.relation(plan.right)
    shared = [v for v in shared_variables(left, right) if v not in plan.ignored]
    if not shared:
        return left
    if not set(right.keys) <= set(left.keys):
        left = emitter.timed(left)
    overlap = " OR ".join(f"a.{emitter.name(v)} = b.{emitter.name(v)}" for v in shared)
    sure = any(v in left.certain and v in right.certain for v in shared)
    conditions = key_condition(left.keys, right.keys) + compatible(left, right, emitter.name, shared_variables(left, right))
    conditions += [] if sure else [f"({overlap})"]
    return replace(left, name=emitter.add(
        f"SELECT * FROM {left.name} a WHERE NOT EXISTS (SELECT 1 FROM {right.name} b WHERE {' AND '.join(conditions)})"))


def union(emitter: Emitter, plan: nodes.Union) -> Relation:
    """Both sides, null where one lacks a variable."""
    left, right = emitter.relation(plan.left), emitter.relation(plan.right)
    if set(left.keys) != set(right.keys):
        left, right = emitter.timed(left), emitter.timed(right)
    variables = joined_variables(left, right)
    typed = {v: kinds_of(v, left, right) for v in variables if all(v in r.typed for r in (left, right) if v in r.variables)}
    result = Relation("", left.keys, left.spine, variables, left.certain & right.certain, typed, left.booleans | right.booleans)
    sides = [f"SELECT {', '.join(padded(side, result, emitter.name))} FROM {side.name}" for side in (left, right)]
    return replace(result, name=emitter.add(" UNION ALL ".join(sides)))


def seed(emitter: Emitter, plan: nodes.Seed) -> Relation:
    """The distinct outer values, twice: as identity of the outer row (keys) and as the variables substituted inside."""
    outer = emitter.relation(plan.outer)
    identity = [emitter.fresh_column("d", number) for number in range(len(plan.variables))]
    select = [*outer.keys]
    for key, variable in zip(identity, plan.variables):
        select += [f"{emitter.name(variable)} AS {key}", emitter.name(variable)]
    name = emitter.add(f"SELECT DISTINCT {', '.join(select) or '1 AS u'} FROM {outer.name}")
    return Relation(name, (*outer.keys, *identity), name, plan.variables, outer.certain & frozenset(plan.variables))


def mark(emitter: Emitter, plan: nodes.Mark) -> Relation:
    """A truth value beside each row: whether the pattern has a solution for it."""
    outer, inner = emitter.relation(plan.input), emitter.relation(plan.inner)
    if "tick" in inner.keys and "tick" not in outer.keys:
        outer = emitter.timed(outer)
    conditions = key_condition(outer.keys, inner.keys)
    if plan.seeded:
        identity = emitter.relation(plan.seed).keys[-len(plan.seed.variables):]
        conditions += [f"a.{emitter.name(v)} IS NOT DISTINCT FROM b.{key}" for v, key in zip(plan.seed.variables, identity)]
    else:
        conditions += [f"a.{emitter.name(v)} = b.{emitter.name(v)}" for v in plan.seed.variables]
    truth = f"EXISTS (SELECT 1 FROM {inner.name} b WHERE {' AND '.join(conditions) or 'TRUE'})"
    name = emitter.add(f"SELECT a.*, {truth} AS {emitter.name(plan.variable)} FROM {outer.name} a")
    return replace(outer, name=name, variables=(*outer.variables, plan.variable), booleans=outer.booleans | {plan.variable})
