"""substitute(pattern, solution) of SPARQL 1.1 section 18.6: what EXISTS means.

The specification replaces "every occurrence of a variable" and is silent where a term cannot stand in its place. There:
a variable that a sub-SELECT does not project is another variable and stays; BIND to a bound variable, and a VALUES column of one,
keep the rows that agree with it; a GROUP BY key that is bound is no key any more (all rows agree on it).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from engine.ir.expressions import Call, Exists, Expression, with_parts
from engine.ir.patterns import (BGP, Extend, Filter, GraphPattern, Group, PathPattern, Pattern, Project, TriplePattern, Values,
                                WindowPattern, rebuilt)
from engine.ir.terms import XSD, Constant, Term, Variable

TRUE = Constant(f'"true"^^<{XSD}boolean>')

Row = Mapping[str, str]


def substitute(pattern: Pattern, row: Row) -> Pattern:
    """`pattern` with the variables that `row` binds replaced by their terms."""
    visible = row
    match pattern:
        case BGP(triples=triples):
            return BGP(tuple(_triple(triple, row) for triple in triples))
        case PathPattern():
            return PathPattern(bound(pattern.subject, row), pattern.path, bound(pattern.object, row))
        case Values():
            return _values(pattern, row)
        case GraphPattern() | WindowPattern():
            pattern = replace(pattern, name=bound(pattern.name, row))
        case Group(keys=keys):
            pattern = replace(pattern, keys=tuple(key for key in keys if key.name not in row))
        case Project(variables=variables):
            visible = {v.name: row[v.name] for v in variables if v.name in row}
            pattern = replace(pattern, variables=tuple(v for v in variables if v.name not in row))
        case Extend(variable=variable) if variable.name in row:
            fresh = Variable(f".same.{variable.name}")
            agrees = Call("||", (Call("!", (Call("BOUND", (fresh,)),)), Call("SAMETERM", (fresh, Constant(row[variable.name])))))
            return Filter(agrees, substitute(replace(pattern, variable=fresh), row))
    return rebuilt(pattern, lambda inner: substitute(inner, visible), lambda own: expression(own, row))


def expression(node: Expression, row: Row) -> Expression:
    """`node` with bound variables replaced; ``BOUND(?x)`` of a replaced variable is true."""
    match node:
        case Variable():
            return bound(node, row)
        case Call(function="BOUND", args=(Variable(name=name),)) if name in row:
            return TRUE
        case Exists(pattern=pattern):
            return replace(node, pattern=substitute(pattern, row))
    return with_parts(node, lambda part: expression(part, row))


def _values(pattern: Values, row: Row) -> Values:
    columns = [(i, v) for i, v in enumerate(pattern.variables) if v.name not in row]
    agreeing = [cells for cells in pattern.rows
                if all(cell is None or row.get(v.name, cell.token) == cell.token for v, cell in zip(pattern.variables, cells))]
    return Values(tuple(v for _, v in columns), tuple(tuple(cells[i] for i, _ in columns) for cells in agreeing))


def bound(term: Term, row: Row) -> Term:
    """A term, or what the row binds it to."""
    return Constant(row[term.name]) if isinstance(term, Variable) and term.name in row else term


def _triple(triple: TriplePattern, row: Row) -> TriplePattern:
    subject, predicate, object_ = (bound(term, row) if isinstance(term, Variable) else term for term in triple.terms)
    return TriplePattern(subject, predicate, object_)
