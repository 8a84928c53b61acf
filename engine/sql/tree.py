"""Small pieces of syntax trees (sqlglot). Values are literals; names of columns and tables are Thalweg's own.

Nodes are made by their constructors: sqlglot's builders parse each name and copy all that they are given, which takes most of the time of
making a statement. A tree that is part of another one already is copied.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce

from sqlglot import exp

Tree = exp.Expr
Value = str | exp.Expr
"""A column by its name, or a tree."""


text = exp.Literal.string


def column(name: str, table: str | None = None) -> exp.Column:
    return exp.Column(this=exp.to_identifier(name), table=exp.to_identifier(table))


def number(value: int) -> exp.Expr:
    return exp.Neg(this=exp.Literal.number(-value)) if value < 0 else exp.Literal.number(value)


def flag(value: bool) -> exp.Boolean:
    return exp.Boolean(this=value)


def parameter(name: str) -> exp.Placeholder:
    """What changes from one execution to the next."""
    return exp.Placeholder(this=name)


def bigint(value: exp.Expr) -> exp.Cast:
    return exp.Cast(this=value, to=exp.DataType.build(exp.DType.BIGINT))


def table_of(name: str) -> exp.Table:
    return exp.Table(this=exp.to_identifier(name))


def aliased(source: str | exp.Expr, name: str) -> exp.Expr:
    """A table, or a query for one, by another name."""
    alias = exp.TableAlias(this=exp.to_identifier(name))
    if isinstance(source, str):
        return exp.Table(this=exp.to_identifier(source), alias=alias)
    return exp.Subquery(this=_tree(source), alias=alias)


def select(*columns: Value, source: str | exp.Expr | None = None, joined: exp.Expr | None = None, on: Sequence[exp.Expr] = (),
           where: Sequence[exp.Expr] = ()) -> exp.Select:
    """A SELECT of columns and of trees with names, from a table or a subquery, perhaps `joined` with another one."""
    made = exp.Select(expressions=[_tree(c) for c in columns])
    if source is not None:
        made.set("from_", exp.From(this=table_of(source) if isinstance(source, str) else _tree(source)))
    if joined is not None:
        made.set("joins", [exp.Join(this=joined, on=both(*on))])
    if where:
        made.set("where", exp.Where(this=both(*where)))
    return made


def with_first(query: exp.Query, named: Mapping[str, exp.Query]) -> exp.Query:
    """A query that reads others by their names."""
    query.set("with_", exp.With(expressions=[exp.CTE(this=_tree(one), alias=exp.TableAlias(this=exp.to_identifier(name)))
                                             for name, one in named.items()]))
    return query


def insert(table: str, columns: Sequence[str], rows: exp.Query) -> exp.Insert:
    into = exp.Schema(this=table_of(table), expressions=[exp.to_identifier(name) for name in columns])
    return exp.Insert(this=into, expression=rows)


def delete(table: str, where: exp.Expr) -> exp.Delete:
    return exp.Delete(this=table_of(table), where=exp.Where(this=where))


def update(table: str, name: str, value: Value, where: Sequence[exp.Expr]) -> exp.Update:
    return exp.Update(this=table_of(table), expressions=[equal(name, value)], where=exp.Where(this=both(*where)))


def plus(value: Value, distance: int) -> exp.Expr:
    """A sum; `distance` may be negative."""
    if not distance:
        return _tree(value)
    operation = exp.Sub if distance < 0 else exp.Add
    return operation(this=_tree(value), expression=number(abs(distance)))


def greatest(first: exp.Expr, *others: exp.Expr) -> exp.Expr:
    return exp.Greatest(this=_tree(first), expressions=[*map(_tree, others)], ignore_nulls=True)


def least(first: exp.Expr, *others: exp.Expr) -> exp.Expr:
    return exp.Least(this=_tree(first), expressions=[*map(_tree, others)], ignore_nulls=True)


def first_known(first: exp.Expr, *others: exp.Expr) -> exp.Expr:
    """The first value that is not NULL."""
    return exp.Coalesce(this=_tree(first), expressions=[*map(_tree, others)])


def _comparison(kind: type[exp.Binary]) -> Callable[[Value, Value], exp.Expr]:
    return lambda left, right: kind(this=_tree(left), expression=_tree(right))


above, below, equal, at_most, at_least = map(_comparison, (exp.GT, exp.LT, exp.EQ, exp.LTE, exp.GTE))


def same(names: Iterable[str], left: str, right: str) -> list[exp.Expr]:
    """That two tables agree in some columns."""
    return [equal(column(name, left), column(name, right)) for name in names]


def both(*conditions: exp.Expr) -> exp.Expr:
    return exp.and_(*map(_tree, conditions), copy=False, wrap=False) if conditions else flag(True)


def when(condition: exp.Expr, then: exp.Expr, otherwise: exp.Expr) -> exp.Case:
    return exp.Case(ifs=[exp.If(this=_tree(condition), true=_tree(then))], default=_tree(otherwise))


def union_all(queries: Sequence[exp.Query]) -> exp.Query:
    """The rows of one or more queries."""
    return reduce(lambda one, two: exp.Union(this=_tree(one), expression=_tree(two), distinct=False), queries)


def running_max(value: str, keys: Sequence[str], order: Sequence[exp.Ordered]) -> exp.Window:
    """The greatest value of the rows before, among those of the same keys."""
    return exp.Window(this=exp.Max(this=column(value)), partition_by=[column(key) for key in keys], order=exp.Order(expressions=order),
                      spec=exp.WindowSpec(kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end=number(1), end_side="PRECEDING"))


def ascending(name: str) -> exp.Ordered:
    return exp.Ordered(this=column(name), nulls_first=False)


def written(tree: exp.Expr) -> str:
    """The text of a statement for DuckDB. The tree is of no use afterwards: sqlglot changes it as it writes, unless it copies all of it."""
    return tree.sql(dialect="duckdb", copy=False)


def parameters(tree: exp.Expr) -> frozenset[str]:
    """The names of the parameters of a statement."""
    return frozenset(str(found.this) for found in tree.find_all(exp.Placeholder))


def _tree(value: Value) -> exp.Expr:
    return column(value) if isinstance(value, str) else value.copy() if value.parent else value
