"""The plan of rules with a time of their own: the program over interval relations, and what of its relations is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.ir.programs import heads_of, name_of
from engine.ir.rules import TRIPLE, Atom, Fact, RuleSet
from engine.ir.terms import Constant, Variable
from engine.plan import intervals
from engine.plan.derivations import Relations

Cell = str | int
"""A token, or the place (from 1 on) of a relation's term."""


@dataclass(frozen=True, slots=True)
class Told:
    """A relation whose rows are told: `cells` by column, where the rows have one of `asked` (tokens by place); where that is empty, all."""

    relation: str
    cells: tuple[tuple[str, Cell], ...]
    asked: tuple[tuple[tuple[int, str], ...], ...] = ()

    @property
    def is_triple(self) -> bool:
        """Whether its rows are triples, which are told where they are RDF."""
        return self.cells[0][0] == "s"


@dataclass(frozen=True, slots=True)
class TimedPlan:
    """A program with the facts of its own text. `columns` are those of its atoms."""

    program: intervals.Program
    facts: tuple[Fact, ...]
    told: tuple[Told, ...]
    columns: tuple[str, ...]


def told(rules: RuleSet) -> tuple[Told, ...]:
    """What heads of rules may derive, input about it included."""
    relations = Relations(rules.rules)
    by_relation: dict[str, list[Atom]] = {}
    for atom in heads_of(rules):
        by_relation.setdefault(relations.of(atom)[0], []).append(atom)
    found = []
    for name, heads in by_relation.items():
        asked = {tuple((place, term.token) for place, term in enumerate(relations.of(head)[1], 1) if isinstance(term, Constant))
                 for head in heads}
        found.append(Told(name, _cells(name, heads[0], relations), () if () in asked else tuple(sorted(asked))))
    return tuple(found)


def timed_plan(rules: RuleSet, program: intervals.Program, variables: Sequence[Variable]) -> TimedPlan:
    """The plan of `rules`, whose last two `variables` are the times."""
    return TimedPlan(program, rules.facts, told(rules), tuple(variable.name for variable in variables[:-2]))


def _cells(relation: str, head: Atom, relations: Relations) -> tuple[tuple[str, Cell], ...]:
    if head.predicate != TRIPLE:
        return ("atom", name_of(head.predicate)), *((f"a{place}", place) for place in range(1, len(head.terms) + 1))
    kept = len(relations.of(head)[1])
    if kept == 3:
        return ("s", 1), ("p", 2), ("o", 3)
    _, link, object_ = head.terms
    assert isinstance(link, Constant)
    if kept == 2:
        return ("s", 1), ("p", link.token), ("o", 2)
    assert isinstance(object_, Constant)
    return ("s", 1), ("p", link.token), ("o", object_.token)
