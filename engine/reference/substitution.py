"""substitute(pattern, solution) of SPARQL 1.1 section 18.6: what EXISTS means.

The specification replaces "every occurrence of a variable" and is silent where a term cannot stand in its place. There:
a variable that a sub-SELECT does not project is another variable and stays; BIND to a bound variable, and a VALUES column of one,
keep the rows that agree with it; a GROUP BY key that is bound is no key any more (all rows agree on it).
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.ir.expressions import Aggregate, Call, Exists, Expression
from engine.ir.patterns import (BGP, Distinct, Extend, Filter, GraphPattern, Group, Join, LeftJoin, Minus, OrderBy, PathPattern,
                                Pattern, Project, Slice, TriplePattern, Union, Values, WindowPattern)
from engine.ir.terms import XSD, Constant, PatternTerm, Term, Variable

TRUE = Constant(f'"true"^^<{XSD}boolean>')

Row = Mapping[str, str]


def substitute(pattern: Pattern, row: Row) -> Pattern:
    """`pattern` with the variables that `row` binds replaced by their terms."""
    match pattern:
        case BGP(triples=triples):
            return BGP(tuple(_triple(triple, row) for triple in triples))
        case PathPattern():
            return PathPattern(_term(pattern.subject, row), pattern.path, _term(pattern.object, row))
        case Join() | Union() | Minus():
            return type(pattern)(substitute(pattern.left, row), substitute(pattern.right, row))
        case LeftJoin():
            condition = None if pattern.condition is None else expression(pattern.condition, row)
            return LeftJoin(substitute(pattern.left, row), substitute(pattern.right, row), condition)
        case Filter():
            return Filter(expression(pattern.condition, row), substitute(pattern.pattern, row))
        case GraphPattern() | WindowPattern():
            return type(pattern)(_term(pattern.name, row), substitute(pattern.pattern, row))
        case Extend():
            return _extend(pattern, row)
        case Values():
            return _values(pattern, row)
        case Group():
            return _group(pattern, row)
        case Project(variables=variables):
            visible = {v.name: row[v.name] for v in variables if v.name in row}
            return Project(substitute(pattern.pattern, visible), tuple(v for v in variables if v.name not in row))
        case Distinct():
            return Distinct(substitute(pattern.pattern, row))
        case OrderBy():
            conditions = tuple((expression(e, row), descending) for e, descending in pattern.conditions)
            return OrderBy(substitute(pattern.pattern, row), conditions)
        case Slice():
            return Slice(substitute(pattern.pattern, row), pattern.offset, pattern.limit)


def expression(node: Expression, row: Row) -> Expression:
    """`node` with bound variables replaced; ``BOUND(?x)`` of a replaced variable is true."""
    match node:
        case Variable():
            return _term(node, row)
        case Call(function="BOUND", args=(Variable(name=name),)) if name in row:
            return TRUE
        case Call(function=function, args=args):
            return Call(function, tuple(expression(a, row) for a in args), node.span)
        case Exists(pattern=pattern, negated=negated):
            return Exists(substitute(pattern, row), negated, node.span)
        case Aggregate(expression=inner) if inner is not None:
            return Aggregate(node.function, expression(inner, row), node.distinct, node.separator, node.span)
    return node


def _extend(pattern: Extend, row: Row) -> Pattern:
    inner, value = substitute(pattern.pattern, row), expression(pattern.expression, row)
    token = row.get(pattern.variable.name)
    if token is None:
        return Extend(inner, pattern.variable, value)
    fresh = Variable(f".same.{pattern.variable.name}")
    agrees = Call("||", (Call("!", (Call("BOUND", (fresh,)),)), Call("SAMETERM", (fresh, Constant(token)))))
    return Filter(agrees, Extend(inner, fresh, value))


def _values(pattern: Values, row: Row) -> Values:
    columns = [(i, v) for i, v in enumerate(pattern.variables) if v.name not in row]
    agreeing = [cells for cells in pattern.rows
                if all(cell is None or row.get(v.name, cell.token) == cell.token for v, cell in zip(pattern.variables, cells))]
    return Values(tuple(v for _, v in columns), tuple(tuple(cells[i] for i, _ in columns) for cells in agreeing))


def _group(pattern: Group, row: Row) -> Group:
    aggregates = tuple((v, Aggregate(a.function, None if a.expression is None else expression(a.expression, row),
                                     a.distinct, a.separator, a.span)) for v, a in pattern.aggregates)
    keys = tuple(k for k in pattern.keys if k.name not in row)
    return Group(substitute(pattern.pattern, row), keys, aggregates, pattern.implicit)


def _term(term: Term, row: Row) -> Term:
    return Constant(row[term.name]) if isinstance(term, Variable) and term.name in row else term


def _triple(triple: TriplePattern, row: Row) -> TriplePattern:
    return TriplePattern(_place(triple.subject, row), _place(triple.predicate, row), _place(triple.object, row))


def _place(term: PatternTerm, row: Row) -> PatternTerm:
    return _term(term, row) if isinstance(term, Variable) else term
