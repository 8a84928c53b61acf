"""Whether what a program derives ends with its facts, or goes on for ever through recursion in time: ``p(x) <- diamond-minus[1s,1s] p(x)``.

A cycle of rules that moves on in time comes to an end where it needs an atom from outside that does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import fields

from engine.ir.strata import components
from engine.plan import intervals as plan
from engine.timeline import MAX, Interval

AT_ONCE = 1     # from this distance on (in points) what is derived does not touch what it is derived from


def goes_on(program: plan.Program, lasting: Collection[str]) -> bool:
    """Whether rules may derive something new at ever later points; facts that hold for ever are in the relations `lasting` only."""
    lasts = set(lasting)
    for stratum in program.strata:
        own = {relation.name for relation in stratum.relations}
        bodies = [(relation.name, derivation.input) for relation in stratum.relations for derivation in relation.derivations
                  if derivation.part == "new"]
        if stratum.recursive and _moves_on(bodies, own, lasts):
            return True
        before = -1
        while before != len(lasts):
            before = len(lasts)
            lasts |= {name for name, node in bodies if _lasts(node, lasts)}
    return False


def longest(program: plan.Program) -> int:
    """The greatest distance (in points) that is bounded: how far back a step reads."""
    found = [distance for relation in program.relations for derivation in relation.derivations for distance in _distances(derivation.input)]
    return max((end for distance in found for end in (distance.lo, distance.hi) if end != MAX), default=0)


def _moves_on(bodies: list[tuple[str, plan.Node]], own: set[str], lasts: set[str]) -> bool:
    """Whether a cycle of these bodies needs nothing that ends, and leads to later points that do not touch the earlier ones."""
    needs: dict[str, list[str]] = {name: [] for name in sorted(own)}
    moving: set[tuple[str, str]] = set()
    for name, node in bodies:
        read = {scan.relation for scan in _positive(node)}
        if read - own - lasts or isinstance(node, plan.RunOn) and node.distance.lo <= AT_ONCE:
            continue
        for asked in read & own:
            needs[name].append(asked)
            if any(distance.hi for distance in _distances(node)):
                moving.add((name, asked))
    return any(name in group and asked in group for group in components(needs) for name, asked in moving)


def _lasts(node: plan.Node, lasts: set[str]) -> bool:
    """Whether a row of a node may hold for ever."""
    match node:
        case plan.Scan(relation=relation):
            return relation in lasts
        case plan.Join(left=left, right=right):
            return _lasts(left, lasts) and _lasts(right, lasts)
        case plan.RunOn(input=inner, guard=guard):
            return guard is None or _lasts(guard, lasts)
        case plan.Shift(input=inner, distance=distance) | plan.Recall(input=inner, distance=distance):
            return distance.hi == MAX or _lasts(inner, lasts)
        case plan.Values():
            return True
    return _lasts(node.input, lasts)


def _nodes(node: plan.Node) -> Iterator[plan.Node]:
    """A node and those under it."""
    yield node
    for field in fields(node):
        child = getattr(node, field.name)
        if isinstance(child, plan.NODES):
            yield from _nodes(child)


def _positive(node: plan.Node) -> Iterator[plan.Scan]:
    """The scans of what must hold; those of an AntiJoin's negated atoms stand in a tuple."""
    return (found for found in _nodes(node) if isinstance(found, plan.Scan))


def _distances(node: plan.Node) -> Iterator[Interval]:
    """The distances by which a node moves rows."""
    for found in _nodes(node):
        if isinstance(found, (plan.Shift, plan.Box, plan.LateBox, plan.Recall, plan.RunOn)):
            yield found.distance
        elif isinstance(found, plan.At):
            yield Interval(0, found.window)
