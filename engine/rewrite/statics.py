"""Whether static graphs may hold an atom: what is certain not to be there needs no look at run time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from engine.ir.rules import TRIPLE, Atom
from engine.ir.terms import RDF_TYPE, Constant, Term, Variable
from engine.records import Triple
from engine.rewrite.alternatives import Asked, Shape
from engine.rewrite.tables import Rows


class Statics:
    """The properties of some triples, and the classes of rdf:type."""

    def __init__(self, triples: Iterable[Triple]) -> None:
        self._objects: dict[str, set[str]] = defaultdict(set)
        for _, p, o in triples:
            self._objects[p].add(o if p == RDF_TYPE else "")

    def may_hold(self, atom: Atom, columns: tuple[Variable, ...] = (), rows: Rows = frozenset([()])) -> bool:
        """Whether some triple may match the atom in one of the rows."""
        if atom.predicate != TRIPLE or not self._objects:
            return False
        properties, classes = _tokens(atom.terms[1], columns, rows), _tokens(atom.terms[2], columns, rows)
        found = self._objects.keys() if properties is None else self._objects.keys() & properties
        return any(p != RDF_TYPE or classes is None or not self._objects[p].isdisjoint(classes) for p in found)

    def may_entail(self, asked: Asked) -> bool:
        """Whether some triples may be enough for an alternative."""
        return (any(self._single(shape, rows) for shape, rows in asked.single.items())
                or any(all(map(self.may_entail, body.positive)) for body in asked.bodies))

    def _single(self, shape: Shape, rows: Rows) -> bool:
        return self.may_hold(shape.atom, shape.columns, rows)


def _tokens(term: Term, columns: tuple[Variable, ...], rows: Rows) -> set[str] | None:
    """What a term may be; None: anything."""
    if isinstance(term, Constant):
        return {term.token}
    return {row[columns.index(term)] for row in rows} if term in columns else None
