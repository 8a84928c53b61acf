"""Solution mappings and the operations of SPARQL 1.1 section 18.5 on bags of them; and substitute(pattern, solution) of section 18.6, what
EXISTS means.

The specification replaces "every occurrence of a variable" and is silent where a term cannot stand in its place. There:
a variable that a sub-SELECT does not project is another variable and stays; BIND to a bound variable, and a VALUES column of one,
keep the rows that agree with it; a GROUP BY key that is bound is no key any more (all rows agree on it).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from engine.grouping import by_key
from engine.ir.expressions import Call, Exists, Expression, with_parts
from engine.ir.patterns import (BGP, Extend, Filter, GraphPattern, Group, PathPattern, Pattern, Project, TriplePattern, Values,
                                WindowPattern, rebuilt)
from engine.ir.terms import XSD, Constant, Term, Variable

Row = dict[str, str]
Bag = list[Row]


def compatible(left: Row, right: Row) -> bool:
    """Whether two solutions agree on every variable that both bind."""
    if len(right) < len(left):
        left, right = right, left
    return all(right.get(name, token) == token for name, token in left.items())


def join(left: Bag, right: Bag) -> Bag:
    """Join(left, right)."""
    partners = _partners(left, right)
    return [{**a, **b} for a in left for b in partners(a)]


def left_join(left: Bag, right: Bag, condition: Callable[[Row], bool]) -> Bag:
    """LeftJoin(left, right, condition): the condition sees the merged row; a row without such a partner stays as it is."""
    partners = _partners(left, right)
    result: Bag = []
    for a in left:
        merged = [m for m in ({**a, **b} for b in partners(a)) if condition(m)]
        result += merged or [a]
    return result


def minus(left: Bag, right: Bag) -> Bag:
    """Minus(left, right): rows without a compatible partner that shares a variable with them."""
    partners = _partners(left, right)
    return [a for a in left if all(a.keys().isdisjoint(b) for b in partners(a))]


def distinct(bag: Bag) -> Bag:
    """The first of each set of equal rows, order kept."""
    return list({frozenset(row.items()): row for row in reversed(bag)}.values())[::-1]


def _partners(left: Bag, right: Bag) -> Callable[[Row], Iterator[Row]]:
    """From a row of `left` to its compatible rows of `right`, in order; hashed on what every row of both sides binds."""
    keys = sorted(_always_bound(left) & _always_bound(right))
    index = by_key((tuple(row[k] for k in keys), row) for row in right)

    def partners(row: Row) -> Iterator[Row]:
        return (b for b in index.get(tuple(row[k] for k in keys), ()) if compatible(row, b))

    return partners


def _always_bound(bag: Bag) -> set[str]:
    return set.intersection(*(set(row) for row in bag)) if bag else set()


TRUE = Constant(f'"true"^^<{XSD}boolean>')


def substitute(pattern: Pattern, row: Mapping[str, str]) -> Pattern:
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


def expression(node: Expression, row: Mapping[str, str]) -> Expression:
    """`node` with bound variables replaced; ``BOUND(?x)`` of a replaced variable is true."""
    match node:
        case Variable():
            return bound(node, row)
        case Call(function="BOUND", args=(Variable(name=name),)) if name in row:
            return TRUE
        case Exists(pattern=pattern):
            return replace(node, pattern=substitute(pattern, row))
    return with_parts(node, lambda part: expression(part, row))


def _values(pattern: Values, row: Mapping[str, str]) -> Values:
    columns = [(i, v) for i, v in enumerate(pattern.variables) if v.name not in row]
    agreeing = [cells for cells in pattern.rows
                if all(cell is None or row.get(v.name, cell.token) == cell.token for v, cell in zip(pattern.variables, cells))]
    return Values(tuple(v for _, v in columns), tuple(tuple(cells[i] for i, _ in columns) for cells in agreeing))


def bound(term: Term, row: Mapping[str, str]) -> Term:
    """A term, or what the row binds it to."""
    return Constant(row[term.name]) if isinstance(term, Variable) and term.name in row else term


def _triple(triple: TriplePattern, row: Mapping[str, str]) -> TriplePattern:
    subject, predicate, object_ = (bound(term, row) if isinstance(term, Variable) else term for term in triple.terms)
    return TriplePattern(subject, predicate, object_)
