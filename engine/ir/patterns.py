"""Graph patterns: the SPARQL 1.1 algebra (section 18.2) with windows, as a closed set of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from engine.ir.expressions import Aggregate, Expression, exists_in
from engine.ir.spans import Placed, Span
from engine.ir.terms import Constant, PatternTerm, Term, Variable


@dataclass(frozen=True, slots=True)
class TriplePattern(Placed):
    """``s p o``; `origin` names the passes and rules it came through (``("rdfs9",)``)."""

    subject: PatternTerm
    predicate: PatternTerm
    object: PatternTerm
    origin: tuple[str, ...] = field(default=(), compare=False)

    @property
    def terms(self) -> tuple[PatternTerm, PatternTerm, PatternTerm]:
        """Subject, predicate and object."""
        return self.subject, self.predicate, self.object


@dataclass(frozen=True, slots=True)
class Link:
    """A path of one predicate."""

    predicate: Constant


@dataclass(frozen=True, slots=True)
class Inverse:
    """``^path``."""

    path: Path


@dataclass(frozen=True, slots=True)
class Sequence:
    """``first/second``."""

    first: Path
    second: Path


@dataclass(frozen=True, slots=True)
class Alternative:
    """``first|second``."""

    first: Path
    second: Path


@dataclass(frozen=True, slots=True)
class Repeat:
    """``path?`` (0, 1), ``path*`` (0, None) or ``path+`` (1, None)."""

    path: Path
    least: int
    most: int | None

    def __post_init__(self) -> None:
        if (self.least, self.most) not in ((0, 1), (0, None), (1, None)):
            raise ValueError("a path repeats ?, * or +")


@dataclass(frozen=True, slots=True)
class NegatedSet:
    """``!(p | ^q)``: any predicate but these, forwards and backwards."""

    forward: tuple[Constant, ...]
    backward: tuple[Constant, ...]


Path = Link | Inverse | Sequence | Alternative | Repeat | NegatedSet


@dataclass(frozen=True, slots=True)
class PathPattern(Placed):
    """A property path between two terms that is not a plain sequence or inverse of links (section 18.2.2.4)."""

    subject: Term
    path: Path
    object: Term


@dataclass(frozen=True, slots=True)
class BGP(Placed):
    """A basic graph pattern; the empty one has the single empty solution."""

    triples: tuple[TriplePattern, ...]


@dataclass(frozen=True, slots=True)
class Join(Placed):
    """Two groups one after the other (SPARQL 1.1 section 18.2.2.6)."""

    left: Pattern
    right: Pattern


@dataclass(frozen=True, slots=True)
class LeftJoin(Placed):
    """OPTIONAL; `condition` None is true."""

    left: Pattern
    right: Pattern
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class Union(Placed):
    """``{ } UNION { }``."""

    left: Pattern
    right: Pattern


@dataclass(frozen=True, slots=True)
class Minus(Placed):
    """``MINUS { }``: solutions of `left` that no solution of `right` with a shared variable is compatible with (section 8.3)."""

    left: Pattern
    right: Pattern


@dataclass(frozen=True, slots=True)
class Filter(Placed):
    """FILTER, and HAVING over a Group."""

    condition: Expression
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class Extend(Placed):
    """BIND, and expressions of SELECT and GROUP BY: an error leaves the variable unbound."""

    pattern: Pattern
    variable: Variable
    expression: Expression


@dataclass(frozen=True, slots=True)
class Values(Placed):
    """Inline data; None is UNDEF."""

    variables: tuple[Variable, ...]
    rows: tuple[tuple[Constant | None, ...], ...]

    def __post_init__(self) -> None:
        if any(len(row) != len(self.variables) for row in self.rows):
            raise ValueError("a VALUES row has another length than its variables")


@dataclass(frozen=True, slots=True)
class GraphPattern(Placed):
    """``GRAPH name { }``. Inside a window, the graphs are the window's items (by graph name)."""

    name: Term
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class WindowPattern(Placed):
    """``WINDOW w { }``: the content of a named window; a variable ranges over all named windows."""

    name: Term
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class Group(Placed):
    """GROUP BY: `keys` are variables of `pattern` (key expressions are Extends below). `implicit` is an aggregate query without
    GROUP BY: one group even of nothing."""

    pattern: Pattern
    keys: tuple[Variable, ...]
    aggregates: tuple[tuple[Variable, Aggregate], ...]
    implicit: bool = False


@dataclass(frozen=True, slots=True)
class Project(Placed):
    """The variables of a SELECT level."""

    pattern: Pattern
    variables: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Distinct(Placed):
    """DISTINCT, and REDUCED, which we evaluate the same way."""

    pattern: Pattern


@dataclass(frozen=True, slots=True)
class OrderBy(Placed):
    """Conditions are (expression, descending)."""

    pattern: Pattern
    conditions: tuple[tuple[Expression, bool], ...]


@dataclass(frozen=True, slots=True)
class Slice(Placed):
    """OFFSET and LIMIT; `limit` None is no limit."""

    pattern: Pattern
    offset: int = 0
    limit: int | None = None


Pattern = (BGP | PathPattern | Join | LeftJoin | Union | Minus | Filter | Extend | Values | GraphPattern | WindowPattern
           | Group | Project | Distinct | OrderBy | Slice)


def children(pattern: Pattern) -> tuple[Pattern, ...]:
    """The patterns directly inside, in order (those of EXISTS not included)."""
    match pattern:
        case Join() | LeftJoin() | Union() | Minus():
            return (pattern.left, pattern.right)
        case BGP() | PathPattern() | Values():
            return ()
    return (pattern.pattern,)


def expressions(pattern: Pattern) -> tuple[Expression, ...]:
    """The expressions of a pattern itself, not of those inside."""
    match pattern:
        case Filter(condition=condition):
            return (condition,)
        case Extend(expression=expression):
            return (expression,)
        case LeftJoin(condition=condition) if condition is not None:
            return (condition,)
        case Group(aggregates=aggregates):
            return tuple(call for _, call in aggregates)
        case OrderBy(conditions=conditions):
            return tuple(condition for condition, _ in conditions)
    return ()


def walk(pattern: Pattern) -> Iterator[Pattern]:
    """A pattern and all inside it, from the top, those of EXISTS included."""
    yield pattern
    for inner in (*(test.pattern for expression in expressions(pattern) for test in exists_in(expression)), *children(pattern)):
        yield from walk(inner)


def inside(node: Any) -> Iterator[Any]:
    """What a node of a query's IR is made of, in order; nothing is looked for in terms."""
    if isinstance(node, tuple):
        yield from node
    elif not isinstance(node, (Variable, Constant, Span, str, int)) and node is not None:
        yield from (getattr(node, name) for name in node.__dataclass_fields__)


def rebuilt(pattern: Pattern, again: Callable[[Pattern], Pattern], expression: Callable[[Expression], Expression]) -> Pattern:
    """A pattern with `again` of each of those directly inside, and `expression` of each of its own expressions."""
    made: dict[str, Any] = {name: again(getattr(pattern, name)) for name in ("left", "right", "pattern") if hasattr(pattern, name)}
    match pattern:
        case Filter(condition=condition) | LeftJoin(condition=condition) if condition is not None:
            made["condition"] = expression(condition)
        case Extend():
            made["expression"] = expression(pattern.expression)
        case Group(aggregates=aggregates):
            made["aggregates"] = tuple((variable, expression(call)) for variable, call in aggregates)
        case OrderBy(conditions=conditions):
            made["conditions"] = tuple((expression(condition), descending) for condition, descending in conditions)
    return replace(pattern, **made)


def scope(pattern: Pattern) -> frozenset[Variable]:
    """Variables in scope of a pattern (SPARQL 1.1 section 18.2.1): those that may be bound in its solutions."""
    match pattern:
        case BGP(triples=triples):
            return frozenset(t for triple in triples for t in triple.terms if isinstance(t, Variable))
        case PathPattern(subject=subject, object=object_):
            return frozenset(t for t in (subject, object_) if isinstance(t, Variable))
        case Join() | LeftJoin() | Union():
            return scope(pattern.left) | scope(pattern.right)
        case Minus(left=left):
            return scope(left)
        case Extend(pattern=inner, variable=variable):
            return scope(inner) | {variable}
        case Values(variables=variables) | Project(variables=variables):
            return frozenset(variables)
        case GraphPattern(name=name, pattern=inner) | WindowPattern(name=name, pattern=inner):
            return scope(inner) | ({name} if isinstance(name, Variable) else set())
        case Group(keys=keys, aggregates=aggregates):
            return frozenset(keys) | {variable for variable, _ in aggregates}
    return scope(pattern.pattern)
