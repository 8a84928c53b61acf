"""When a program has something new to tell though nothing comes: by the rows that it holds.

A row that begins behind the step, or ends there, says so. One that ends with the step may do so only because more is not known yet: what
stands beside something negated, and the last atoms of a stream. It goes on until a row of another relation begins or ends, so it says
nothing by itself; a box over it begins once it has held long enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.plan import intervals as plan
from engine.timeline import MAX


@dataclass(frozen=True, slots=True)
class Watched:
    """What the rows of a relation say. `is_open`: one that ends with the step says nothing. `boxes` are how long (in points) it must have
    held for operators over it."""

    is_open: bool = False
    boxes: tuple[int, ...] = ()


def watched(program: plan.Program) -> dict[str, Watched]:
    """Every relation of a program."""
    inputs = {relation.name: [d.input for d in relation.derivations if d.part == "new"] for relation in program.relations}
    found = {window.relation for window in program.windows if window.box is None}
    before = -1
    while before != len(found):
        before = len(found)
        found |= {name for name, nodes in inputs.items() if any(_stays_open(node, found) for node in nodes)}
    found -= {name for name, nodes in inputs.items() if any(_counts_points(node) for node in nodes)}
    boxes: dict[str, set[int]] = {}
    for node in (node for nodes in inputs.values() for node in nodes):
        for box in _boxes(node):
            if box.distance.hi != MAX:
                for scan in plan.scans(box):
                    boxes.setdefault(scan.relation, set()).add(box.distance.hi)
    return {name: Watched(name in found, tuple(sorted(boxes.get(name, ())))) for name in inputs}


def late_boxed(program: plan.Program) -> frozenset[str]:
    """The relations of what became known late that a box looks at: while one has rows, the box may begin or end at any granule."""
    return frozenset(node.input.late.relation for relation in program.relations for derivation in relation.derivations
                     if isinstance(node := derivation.input, plan.Clip) and isinstance(node.input, plan.LateBox))


def _stays_open(node: plan.Node, known: set[str]) -> bool:
    """Whether rows of a node may end only because the step does."""
    match node:
        case plan.AntiJoin():
            return True
        case plan.Scan(relation=relation):
            return relation in known
        case plan.Join(left=left, right=right):
            return _stays_open(left, known) or _stays_open(right, known)
        case plan.RunOn(input=inner, guard=guard):
            return _stays_open(inner, known) or guard is not None and _stays_open(guard, known)
        case plan.Box(input=inner, distance=distance):
            return distance.lo == 0 and _stays_open(inner, known)
        case plan.Shift(input=inner, distance=distance):
            return distance.hi == 0 and _stays_open(inner, known)
        case plan.Recall(input=inner, distance=distance):
            return distance.hi == MAX and _stays_open(inner, known)
        case plan.Clip(input=inner) | plan.Filter(input=inner) | plan.Extend(input=inner):
            return _stays_open(inner, known)
    return False


def _counts_points(node: plan.Node) -> bool:
    """Whether a node gives a row for each point: the next one is new."""
    match node:
        case plan.At():
            return True
        case plan.Clip(input=inner) | plan.Filter(input=inner) | plan.Extend(input=inner):
            return _counts_points(inner)
    return False


def _boxes(node: plan.Node) -> Iterator[plan.Box]:
    match node:
        case plan.Box():
            yield node
            yield from _boxes(node.input)
        case plan.Join(left=left, right=right):
            yield from _boxes(left)
            yield from _boxes(right)
        case plan.Scan() | plan.Values():
            return
        case plan.RunOn(input=inner, guard=guard):
            yield from _boxes(inner)
            yield from _boxes(guard) if guard is not None else ()
        case _:
            yield from _boxes(node.input)
