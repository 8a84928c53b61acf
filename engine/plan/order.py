"""The order in which the scans of a basic graph pattern are joined: fewest estimated rows first, always connected.

The estimates are live counts of triples per predicate, and per class for rdf:type, as the streams and graphs have them now.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine.ir.terms import RDF_TYPE, Constant, OneOf, PatternTerm, Variable
from engine.plan.nodes import Scan, scan_variables


@dataclass(frozen=True, slots=True)
class Estimate:
    """Live counts: triples in all, by predicate token, and by class token of rdf:type."""

    total: int = 1000
    predicates: Mapping[str, int] = field(default_factory=dict)
    classes: Mapping[str, int] = field(default_factory=dict)

    def rows(self, scan: Scan) -> float:
        """Expected matches of a scan; a bound subject or object divides by ten."""
        predicates, objects = _tokens(scan.predicate), _tokens(scan.object)
        if predicates == (RDF_TYPE,) and objects and self.classes:
            return float(sum(self.classes.get(token, 0) for token in objects))
        rows = float(self.total)
        if predicates:
            rows = float(sum(self.predicates.get(token, 0) for token in predicates)) if self.predicates else rows / 10
        bound = (not isinstance(scan.subject, Variable)) + (not isinstance(scan.object, Variable))
        return rows / (1, 10, 100)[bound]


def join_order(scans: Sequence[Scan], estimate: Estimate) -> list[tuple[Scan, ...]]:
    """Groups of scans in join order; a group of several is a Star (same subject variable). Greedy: the cheapest group first, then always
    the cheapest group that shares a variable with what is joined; an unconnected group (a Cartesian product in the query itself) comes
    last."""
    groups: dict[PatternTerm | int, list[Scan]] = {}
    for number, scan in enumerate(scans):
        starred = isinstance(scan.subject, Variable) and isinstance(scan.predicate, Constant)
        groups.setdefault(scan.subject if starred else number, []).append(scan)
    sorted_ = [tuple(sorted(group, key=estimate.rows)) for group in groups.values()]
    waiting = [(estimate.rows(group[0]), scan_variables(*group), group) for group in sorted_]
    ordered: list[tuple[Scan, ...]] = []
    bound: set[Variable] = set()
    while waiting:
        place = min(range(len(waiting)), key=lambda n: (bool(bound) and bound.isdisjoint(waiting[n][1]), waiting[n][0]))
        _, variables, best = waiting.pop(place)
        ordered.append(best)
        bound.update(variables)
    return ordered


def _tokens(term: PatternTerm) -> tuple[str, ...]:
    match term:
        case Constant(token=token):
            return (token,)
        case OneOf(tokens=tokens):
            return tokens
    return ()
