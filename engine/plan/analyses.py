"""What follows from the text of a program over interval relations: which relations are one, whether it ends, when it has news."""

from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from engine.ir.strata import components
from engine.plan import intervals as plan
from engine.timeline import MAX, Interval


def shared(program: plan.Program) -> tuple[plan.Program, dict[str, str]]:
    """The program with one relation for all those that are derived alike, and by which relation each of the others is read: ``q1(x) <-
    diamond-minus[0s,5s] p(x)`` and ``q2(x) <- diamond-minus[0s,5s] p(x)`` hold the same rows, as long as no fact of the one or the other
    comes in besides (engine/worker/program.py). Recursive relations, and those of atoms that become known late, stay as they are. What
    reads relations that are one may itself be one."""
    of: dict[str, str] = {}
    made: dict[Hashable, str] = {}
    late = {name for pair in program.late for name in pair}
    strata = []
    for stratum in program.strata:
        relations = [replace(r, derivations=tuple(replace(d, input=_renamed(d.input, of), delta=of.get(d.delta, d.delta))
                                                  for d in r.derivations)) for r in stratum.relations]
        if not stratum.recursive:
            for relation in relations:
                if relation.derivations and relation.name not in late:
                    key = relation.arity, relation.keep, frozenset((d.terms, d.input, d.delta, d.part) for d in relation.derivations)
                    first = made.setdefault(key, relation.name)
                    if first != relation.name:
                        of[relation.name] = first
        left = tuple(relation for relation in relations if relation.name not in of)
        if left:
            strata.append(replace(stratum, relations=left))
    return replace(program, strata=tuple(strata)), of


def _renamed(node: Any, names: Mapping[str, str]) -> Any:
    if isinstance(node, plan.Scan):
        return replace(node, relation=names.get(node.relation, node.relation))
    if isinstance(node, tuple):
        return tuple(_renamed(part, names) for part in node)
    if isinstance(node, plan.NODES):
        return replace(node, **{field.name: _renamed(getattr(node, field.name), names) for field in fields(node)})
    return node


AT_ONCE = 1     # from this distance on (in points) what is derived does not touch what it is derived from


def goes_on(program: plan.Program, lasting: Collection[str]) -> bool:
    """Whether rules may derive something new at ever later points, through recursion in time: ``p(x) <- diamond-minus[1s,1s] p(x)``. A
    cycle of rules that moves on in time comes to an end where it needs an atom from outside that does; facts that hold for ever are in the
    relations `lasting` only."""
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


def _positive(node: plan.Node) -> Iterator[plan.Scan]:
    """The scans of what must hold."""
    if isinstance(node, plan.Scan):
        yield node
    for child in (node.input,) if isinstance(node, plan.AntiJoin) else plan.children(node):
        yield from _positive(child)


def _distances(node: plan.Node) -> Iterator[Interval]:
    for found in plan.walk(node):
        if isinstance(found, (plan.Shift, plan.Box, plan.LateBox, plan.Recall, plan.RunOn)):
            yield found.distance
        elif isinstance(found, plan.At):
            yield Interval(0, found.window)


@dataclass(frozen=True, slots=True)
class Watched:
    """What the rows of a relation say of when a program has something new to tell though nothing comes. A row that begins behind the step,
    or ends there, says so. One that ends with the step may do so only because more is not known yet: what stands beside something negated,
    and the last atoms of a stream. It goes on until a row of another relation begins or ends, so it says nothing by itself; a box over it
    begins once it has held long enough. `is_open`: one that ends with the step says nothing. `boxes` are how long (in points) it must have
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
        for box in plan.walk(node):
            if isinstance(box, plan.Box) and box.distance.hi != MAX:
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
