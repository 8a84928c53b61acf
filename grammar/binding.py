"""What each part of a body needs bound, and what binds: the order in which equalities give variables their values."""

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TypeVar

from engine.grouping import by_key
from engine.ir.expressions import Expression, variables_of
from engine.ir.rules import Assign, Formula
from engine.ir.spans import Span
from engine.ir.terms import Variable

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class Equality:
    """``left = right``: a test, or where a side is a variable that nothing else binds, its value."""

    left: Expression
    right: Expression
    span: Span | None = field(default=None, compare=False)

    @property
    def variables(self) -> frozenset[Variable]:
        return variables_of(self.left) | variables_of(self.right)


def bind(waiting: Mapping[int, Part], variables: Callable[[Part], Iterable[Variable]],
         ready: Callable[[Part, Set[Variable]], tuple[Formula, ...] | None], bound: set[Variable]) -> dict[int, tuple[Formula, ...]]:
    """What parts of a body become, by their places, in the order in which they can: each time the first of the text that is `ready` with
    what is bound. Those that never are, are left out. What Assign binds is added to `bound`."""
    asking = by_key((variable, place) for place, part in waiting.items() for variable in variables(part))
    found: dict[int, tuple[Formula, ...]] = {}
    to_try = sorted(waiting)
    while to_try:
        place = heappop(to_try)
        made = ready(waiting[place], bound) if place not in found else None
        if made is None:
            continue
        found[place] = made
        for formula in made:
            if isinstance(formula, Assign):
                bound.add(formula.variable)
                for other in asking.get(formula.variable, ()):
                    heappush(to_try, other)
    return found


def assigned(left: Expression, right: Expression, bound: Set[Variable]) -> tuple[Formula, ...] | None:
    """The side that is a variable and not bound, assigned to the other, which is."""
    for side, other in ((left, right), (right, left)):
        if isinstance(side, Variable) and side not in bound and variables_of(other) <= bound:
            return (Assign(side, other),)
    return None
