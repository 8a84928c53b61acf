"""Small pieces of syntax trees (sqlglot). Values are literals; names of columns and tables are Thalweg's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce

from sqlglot import exp

Tree = exp.Expr
Value = str | exp.Expr
"""A column by its name, or a tree."""


column, text = exp.column, exp.Literal.string


def number(value: int) -> exp.Expr:
    return exp.Neg(this=exp.Literal.number(-value)) if value < 0 else exp.Literal.number(value)


def flag(value: bool) -> exp.Boolean:
    return exp.Boolean(this=value)


def parameter(name: str) -> exp.Placeholder:
    """What changes from one execution to the next."""
    return exp.Placeholder(this=name)


def select(*columns: Value) -> exp.Select:
    """A SELECT of columns and of trees with names."""
    return exp.Select(expressions=[_tree(c) for c in columns])


def plus(value: Value, distance: int) -> exp.Expr:
    """A sum; `distance` may be negative."""
    if not distance:
        return _tree(value)
    operation = exp.Sub if distance < 0 else exp.Add
    return operation(this=_tree(value), expression=number(abs(distance)))


greatest, least = partial(exp.func, "greatest"), partial(exp.func, "least")


def _compared(kind: type[exp.Expr]) -> Callable[[Value, Value], exp.Expr]:
    return lambda left, right: kind(this=_tree(left), expression=_tree(right))


above, below, equal, at_most, at_least = map(_compared, (exp.GT, exp.LT, exp.EQ, exp.LTE, exp.GTE))


def same(names: Iterable[str], left: str, right: str) -> list[exp.Expr]:
    """That two tables agree in some columns."""
    return [equal(column(name, left), column(name, right)) for name in names]


def both(*conditions: exp.Expr) -> exp.Expr:
    return exp.and_(*conditions, wrap=False) if conditions else flag(True)


def when(condition: exp.Expr, then: exp.Expr, otherwise: exp.Expr) -> exp.Case:
    return exp.Case(ifs=[exp.If(this=condition, true=then)], default=otherwise)


def union_all(queries: Sequence[exp.Query]) -> exp.Query:
    """The rows of one or more queries."""
    return reduce(lambda one, two: exp.union(one, two, distinct=False), queries)


def running_max(value: str, keys: Sequence[str], order: Sequence[exp.Ordered]) -> exp.Window:
    """The greatest value of the rows before, among those of the same keys."""
    return exp.Window(this=exp.Max(this=column(value)), partition_by=[column(key) for key in keys], order=exp.Order(expressions=order),
                      spec=exp.WindowSpec(kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end=number(1), end_side="PRECEDING"))


def ascending(name: str) -> exp.Ordered:
    return exp.Ordered(this=column(name), nulls_first=False)


def last_end(keys: Sequence[str]) -> exp.Expr:
    """The greatest end of all rows of the same keys, as ``last``."""
    return exp.Window(this=exp.Max(this=column("hi")), partition_by=[column(key) for key in keys]).as_("last")


def begins() -> exp.Expr:
    """That a row touches none of those before it, whose greatest end is ``before``."""
    return exp.or_(exp.Is(this=column("before"), expression=exp.null()), above("lo", plus("before", 1)))


def end_of_run(keys: Sequence[str]) -> exp.Expr:
    """Of rows that begin a run where the run ends, as ``hi``: with what is before the next one, or with the ``last``."""
    following = exp.Window(this=exp.Lead(this=column("before")), partition_by=[column(key) for key in keys],
                           order=exp.Order(expressions=[ascending("lo")]))
    return exp.func("coalesce", following, column("last")).as_("hi")


def written(tree: exp.Expr) -> str:
    """The text of a statement for DuckDB. The tree is of no use afterwards: sqlglot changes it as it writes, unless it copies all of it."""
    return tree.sql(dialect="duckdb", copy=False)


def parameters(tree: exp.Expr) -> frozenset[str]:
    """The names of the parameters of a statement."""
    return frozenset(str(found.this) for found in tree.find_all(exp.Placeholder))


def _tree(value: Value) -> exp.Expr:
    return column(value) if isinstance(value, str) else value.copy() if value.parent else value
