"""Plan nodes over interval relations: rows of terms with the points ``lo`` to ``hi`` during which they hold.

A relation holds the atoms of one predicate (and arity), *coalesced*: no two rows of the same terms overlap or touch. A program is
evaluated in steps; a step takes in what holds from a point W + 1 on and makes all points up to `until` final. What is derived lies at or
after what it is derived from, so what ended before W is not looked at again (engine/worker/program.py).

A `Scan` reads of a relation ``all`` rows, what is ``new`` in the step, or what is new since the last ``round``; of the latter two the new
points only, unless it reads rows `whole`. ``later`` are the points behind those of the step before, new or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Literal

from engine.ir.expressions import Expression
from engine.ir.rules import Rule, Table
from engine.ir.terms import Term, Variable
from engine.timeline import Interval

Part = Literal["all", "new", "round", "later"]
Values = Table


@dataclass(frozen=True, slots=True)
class Scan:
    """The rows of a relation that match `terms`."""

    relation: str
    terms: tuple[Term, ...]
    part: Part = "all"
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Clip:
    """What lies in the step: for operators that need to know what does not hold, or that give a row for each point."""

    input: Node


@dataclass(frozen=True, slots=True)
class Join:
    """Rows that agree, where both hold."""

    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class RunOn:
    """A join whose rows hold on to the end of `guard` (for ever without one) where they are long enough for what is derived from them, by
    `distance`, to touch them: "holds from now on" is one step."""

    input: Node
    guard: Node | None
    distance: Interval


@dataclass(frozen=True, slots=True)
class AntiJoin:
    """Rows where none of `without` holds."""

    input: Node
    without: tuple[Scan, ...]


@dataclass(frozen=True, slots=True)
class Shift:
    """Where a row held at some point of a distance ago: diamond-minus, or box-plus of a head."""

    input: Node
    distance: Interval


@dataclass(frozen=True, slots=True)
class Box:
    """Where a (coalesced) row held at all points of a distance ago. `from_start`: before the timeline it is as at its first point."""

    input: Node
    distance: Interval
    from_start: bool


@dataclass(frozen=True, slots=True)
class LateBox:
    """A box over the rows of a relation and those of `late`, which became known late, with the `instant` that each is about: from where
    it is known that the atom held at all points of a distance ago."""

    input: Scan
    late: Scan
    instant: Term
    distance: Interval


@dataclass(frozen=True, slots=True)
class At:
    """Rows with the instants at which they hold, each for so many granules (`window`) from its own on."""

    input: Node
    instant: Term
    window: int


@dataclass(frozen=True, slots=True)
class Recall:
    """Of rows that say from when to when it is known that something held at an `instant`: where this lies within a distance ago."""

    input: Node
    instant: Term
    distance: Interval


@dataclass(frozen=True, slots=True)
class Place:
    """A head ``@instant``: what holds at the granule that a row names. `late`: what lies before the row, which is known from then on and is
    kept for as long as an operator (`keep`, points) can look back at it."""

    input: Node
    instant: Term
    late: bool
    keep: int = 0


@dataclass(frozen=True, slots=True)
class Filter:
    """Rows for which a condition is true."""

    input: Node
    condition: Expression


@dataclass(frozen=True, slots=True)
class Extend:
    """Rows with the value of an expression, where it has one."""

    input: Node
    variable: Variable
    expression: Expression


Node = Scan | Clip | Join | RunOn | AntiJoin | Shift | Box | LateBox | At | Recall | Place | Filter | Extend | Values
NODES = Scan, Clip, Join, RunOn, AntiJoin, Shift, Box, LateBox, At, Recall, Place, Filter, Extend, Values


@dataclass(frozen=True, slots=True)
class Derivation:
    """Rows for a relation, by rule number `rule`, of what is new in `delta`. One of ``later`` parts gives what all those of a conjunction
    for ``new`` ones do: where most of what is held is new, one join costs less than one for each atom."""

    terms: tuple[Term, ...]
    input: Node
    delta: str
    part: Part
    rule: int


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of so many terms; `derivations` for a step's first round and for the later ones. What ended is kept for `keep` points.
    `shown`: it is a predicate of the program, not an auxiliary one."""

    name: str
    arity: int
    derivations: tuple[Derivation, ...] = ()
    keep: int = 0
    shown: bool = True


@dataclass(frozen=True, slots=True)
class Stratum:
    """Relations that depend on each other, in the order in which a round takes them; all they read else is complete. A `recursive` one
    takes rounds until nothing new comes; rules named `endless` may find something new for ever (engine/ir/strata.py)."""

    relations: tuple[Relation, ...]
    recursive: bool
    endless: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TupleWindow:
    """A relation of the last `size` atoms of the input, with their granules: here those of `predicate`. With `box` (points) of the atoms
    that were among them at each granule for so long, or since the oldest of them."""

    relation: str
    predicate: str
    arity: int
    size: int
    box: int | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """A program of rules as a plan; `granule` is the length of a granule in points, 0 for dense time. `checks` are the relations of rules
    with head ``false``, `late` those of atoms that became known late, by the relation that they belong to."""

    strata: tuple[Stratum, ...]
    granule: int
    start_ms: int | None
    windows: tuple[TupleWindow, ...] = ()
    late: tuple[tuple[str, str], ...] = ()
    checks: tuple[tuple[str, Rule], ...] = ()

    @property
    def relations(self) -> tuple[Relation, ...]:
        return tuple(relation for stratum in self.strata for relation in stratum.relations)


def children(node: Node) -> tuple[Node, ...]:
    """The nodes right under a node, left to right; of an AntiJoin also what is taken away."""
    if isinstance(node, Values):
        return ()
    parts = [getattr(node, field.name) for field in fields(node)]
    return tuple(child for part in parts for child in (part if isinstance(part, tuple) else (part,)) if isinstance(child, NODES))


def walk(node: Node) -> Iterator[Node]:
    """A node and all under it, from the top, left to right."""
    yield node
    for child in children(node):
        yield from walk(child)


def scans(node: Node) -> Iterator[Scan]:
    """The scans of a node, left to right."""
    return (found for found in walk(node) if isinstance(found, Scan))


def variables(node: Node) -> tuple[Variable, ...]:
    """The variables that a node binds, in order."""
    found: tuple[Term, ...]
    match node:
        case Scan(terms=terms):
            found = terms
        case Join(left=left, right=right):
            found = (*variables(left), *variables(right))
        case RunOn(input=inner, guard=guard):
            found = (*variables(inner), *(variables(guard) if guard else ()))
        case At(input=inner, instant=instant):
            found = (*variables(inner), instant)
        case Extend(input=inner, variable=variable):
            found = (*variables(inner), variable)
        case Values(variables=listed):
            found = listed
        case _:
            found = variables(node.input)
    return tuple(dict.fromkeys(v for v in found if isinstance(v, Variable)))
