"""A SELECT level of the algebra as the clauses it was written with: SPARQL 1.1 sections 18.2.4 and 18.2.5 backwards."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.ir.expressions import Aggregate, Expression
from engine.ir.patterns import Distinct, Extend, Filter, Group, Join, OrderBy, Pattern, Project, Slice, Values
from engine.ir.terms import Variable


@dataclass(slots=True)
class Level:
    """The clauses of one level. `keys` have an expression where GROUP BY computes them; `extends` are in the order of SELECT."""

    where: Pattern
    variables: tuple[Variable, ...] = ()
    distinct: bool = False
    extends: tuple[tuple[Variable, Expression], ...] = ()
    keys: tuple[tuple[Variable, Expression | None], ...] = ()
    aggregates: tuple[tuple[Variable, Aggregate], ...] = ()
    having: Expression | None = None
    orders: tuple[tuple[Expression, bool], ...] = ()
    values: Values | None = None
    sliced: bool = False
    offset: int = 0
    limit: int | None = None


def take_apart(pattern: Pattern, *, projects: bool) -> Level:
    """The level of a pattern; `projects` tells a SELECT from ASK, CONSTRUCT and DESCRIBE, whose expressions can only be BINDs."""
    level = Level(pattern)
    if not projects and _is_sub_select(pattern):
        return level
    if isinstance(pattern, Slice):
        level.sliced, level.offset, level.limit = True, pattern.offset, pattern.limit
        pattern = pattern.pattern
    if isinstance(pattern, Distinct):
        level.distinct = True
        pattern = pattern.pattern
    if isinstance(pattern, Project):
        level.variables = pattern.variables
        pattern = pattern.pattern
    if isinstance(pattern, OrderBy):
        level.orders = pattern.conditions
        pattern = pattern.pattern
    if projects:
        level.extends, pattern = _peel(pattern, level.variables)
    grouped = _grouped(pattern, level)
    level.where = pattern if grouped is None else grouped
    return level


def _grouped(pattern: Pattern, level: Level) -> Pattern | None:
    """Read VALUES, HAVING and GROUP BY into `level`; the pattern below the group, or None where there is no group."""
    values = having = None
    if isinstance(pattern, Join) and isinstance(pattern.right, Values):
        values = pattern.right
        pattern = pattern.left
    if isinstance(pattern, Filter):
        having = pattern.condition
        pattern = pattern.pattern
    if not isinstance(pattern, Group):
        return None
    level.values, level.having, level.aggregates = values, having, pattern.aggregates
    computed, below = _peel(pattern.pattern, pattern.keys)
    expressions = dict(computed)
    level.keys = tuple((key, expressions.get(key)) for key in pattern.keys)
    return below


def _peel(pattern: Pattern, order: Sequence[Variable]) -> tuple[tuple[tuple[Variable, Expression], ...], Pattern]:
    """The Extends on top whose variables stand in `order`, in that order; and the pattern below them."""
    found: list[tuple[Variable, Expression]] = []
    bound = len(order)
    while isinstance(pattern, Extend) and pattern.variable in order[:bound]:
        bound = list(order).index(pattern.variable)
        found.append((pattern.variable, pattern.expression))
        pattern = pattern.pattern
    return tuple(reversed(found)), pattern


def _is_sub_select(pattern: Pattern) -> bool:
    """Whether a whole WHERE is a sub-query, whose modifiers are its own."""
    if isinstance(pattern, Slice):
        pattern = pattern.pattern
    if isinstance(pattern, Distinct):
        pattern = pattern.pattern
    return isinstance(pattern, Project)
