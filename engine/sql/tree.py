"""Small pieces of syntax trees (sqlglot). Values are literals; names of columns and tables are Thalweg's own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from sqlglot import exp

Tree = exp.Expr
Value = str | exp.Expr
"""A column by its name, or a tree."""


def column(name: str, table: str | None = None) -> exp.Column:
    """A column."""
    return exp.column(name, table)


def number(value: int) -> exp.Expr:
    """An integer literal."""
    return exp.Neg(this=exp.Literal.number(-value)) if value < 0 else exp.Literal.number(value)


def text(value: str) -> exp.Literal:
    """A string literal of any text."""
    return exp.Literal.string(value)


def flag(value: bool) -> exp.Boolean:
    """TRUE or FALSE."""
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


def greatest(*values: exp.Expr) -> exp.Expr:
    """The greatest of some values."""
    return exp.func("greatest", *values)


def least(*values: exp.Expr) -> exp.Expr:
    """The least of some values."""
    return exp.func("least", *values)


def above(left: Value, right: Value) -> exp.Expr:
    """``left > right``."""
    return exp.GT(this=_tree(left), expression=_tree(right))


def below(left: Value, right: Value) -> exp.Expr:
    """``left < right``."""
    return exp.LT(this=_tree(left), expression=_tree(right))


def both(*conditions: exp.Expr) -> exp.Expr:
    """A conjunction."""
    return exp.and_(*conditions, wrap=False) if conditions else flag(True)


def when(condition: exp.Expr, then: exp.Expr, otherwise: exp.Expr) -> exp.Case:
    """``CASE WHEN condition THEN then ELSE otherwise END``."""
    return exp.Case(ifs=[exp.If(this=condition, true=then)], default=otherwise)


def union_all(queries: Sequence[exp.Query]) -> exp.Query:
    """The rows of one or more queries."""
    return reduce(lambda one, two: exp.union(one, two, distinct=False), queries)


def written(tree: exp.Expr) -> str:
    """The text of a statement for DuckDB. The tree is of no use afterwards: sqlglot changes it as it writes, unless it copies all of it."""
    return tree.sql(dialect="duckdb", copy=False)


def parameters(tree: exp.Expr) -> frozenset[str]:
    """The names of the parameters of a statement."""
    return frozenset(str(found.this) for found in tree.find_all(exp.Placeholder))


def _tree(value: Value) -> exp.Expr:
    return column(value) if isinstance(value, str) else value.copy() if value.parent else value
