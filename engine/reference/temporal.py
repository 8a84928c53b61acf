"""Rules over facts with intervals, naively: the oracle of every rule language (docs/architecture.md, "Rules and entailment").

Programs with a granularity are LARS (granules.py); the others are evaluated here, on dense time: each rule on all facts until nothing new
comes, stratum by stratum. Formulas are sets of solutions, each with the (coalesced) intervals during which it holds; the operators act as
in docs/architecture.md, "Temporal operators".
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from engine.functions.expressions import Context
from engine.functions.terms import integer, number_of
from engine.ir.rules import (Assign, At, Atom, BoxMinus, BoxPlus, DiamondMinus, Fact, Falsum, Formula, Head, Negation, Rule, RuleSet, Table,
                             Test, WindowFormula, relation_of)
from engine.ir.strata import rounds
from engine.ir.terms import Term, Variable
from engine.reference.formulas import (Ground, Inconsistency, Intervals, Model, Row, computed, ground, headed, layers, point_of, shapes,
                                       unify, value_of)
from engine.reference.granules import Granules
from engine.timeline import ALWAYS, MIN, Interval, box_minus, coalesce, common, complement, diamond_minus, instant, intersect, interval

__all__ = ["Model", "evaluate"]


def evaluate(program: RuleSet, facts: Iterable[Fact] = (), until_ms: int | None = None, context: Context | None = None) -> Model:
    """The least model of a program and the facts of its input: what holds when, up to the instant `until_ms`. Programs with a granularity
    are LARS (granules.py) and need `until_ms`, as do those that reach into the future again and again; the others are dense time
    (intervals.py). Raises strata.Unstratified, and ValueError for a rule that is not safe."""
    context = context or Context(until_ms or 0)
    if not program.granularity_ms:
        return evaluate_intervals(program, facts, until_ms, context)
    if until_ms is None:
        raise ValueError("a program with a granularity is evaluated up to an instant")
    return Granules(program, facts, context).run(until_ms // program.granularity_ms)


@dataclass(slots=True)
class Store:
    """The facts so far; `events` are the punctual facts of the input: what Streaming RIF-Core's Window stretches."""

    facts: dict[Ground, Intervals] = field(default_factory=dict)
    events: dict[Ground, Intervals] = field(default_factory=dict)
    about: dict[tuple[str, str | None], list[Ground]] = field(default_factory=dict)
    """The atoms that patterns about something meet (rules.relation_of)."""

    def add(self, atom: Ground, intervals: Iterable[Interval]) -> bool:
        """Add what an atom holds during; whether that is new."""
        if atom not in self.facts:
            for key in shapes(*atom):
                self.about.setdefault(key, []).append(atom)
        before = self.facts.get(atom, ())
        after = tuple(coalesce([*before, *intervals]))
        self.facts[atom] = after
        return after != before

    def intervals(self, atom: Ground, window_ms: int | None) -> Intervals:
        """When an atom holds for a rule; with a window every event of instant t holds during [t, t + window)."""
        if window_ms is None or atom not in self.events:
            return self.facts[atom]
        stretched = (interval(e.lo // 2, e.lo // 2 + window_ms, closed_end=False) for e in self.events[atom])
        return tuple(coalesce([*self.facts[atom], *(i for i in stretched if i is not None)]))


def evaluate_intervals(program: RuleSet, facts: Iterable[Fact], until_ms: int | None, context: Context,
                       derived: Iterable[Fact] = ()) -> Model:
    """The least model of a program on dense time, up to the instant `until_ms`. What is `derived` by others is there and is no event.
    Raises Unending."""
    horizon = ALWAYS if until_ms is None else Interval(MIN, instant(until_ms))
    store = Store()
    for fact in derived:
        store.add(ground(fact.atom, {}), [fact.interval])
    for fact in (*program.facts, *facts):
        atom = ground(fact.atom, {})
        store.add(atom, [fact.interval])
        if fact.interval.lo == fact.interval.hi:
            store.events[atom] = (*store.events.get(atom, ()), fact.interval)
    inconsistencies: list[Inconsistency] = []
    for layer, unending in layers(program.rules):
        derivation = Derivation(store, context, horizon)
        for _ in rounds(unending):
            if not any([derivation.apply(rule, body) for rule, body in layer]):
                break
        inconsistencies += [i for rule, body in layer if isinstance(rule.head, Falsum) for i in derivation.inconsistencies(rule, body)]
    return Model(dict(sorted(store.facts.items())), tuple(inconsistencies))


Solutions = list[tuple[Row, Intervals]]
V = TypeVar("V")


class DenseTime(ABC, Generic[V]):
    """What formulas mean on dense time; a view says how facts are seen. Proofs on dense time (engine/why/dense.py) stand on it, too."""

    context: Context

    @abstractmethod
    def _atom(self, pattern: Atom, row: Row, view: V) -> Solutions:
        """The extensions of `row` by the facts that match, each with when these hold."""

    def _under_not(self, view: V) -> V:
        """How what stands under ``not`` is seen."""
        return view

    def solve(self, formula: Formula, row: Row, view: V) -> Solutions:
        """The extensions of `row` that satisfy a formula, each with its intervals."""
        match formula:
            case Atom():
                return self._atom(formula, row, view)
            case DiamondMinus(distance=distance, body=body):
                return [(r, tuple(coalesce(diamond_minus(i, distance) for i in held))) for r, held in self._merged(body, row, view)]
            case BoxMinus(distance=distance, body=body):
                boxed = ((r, [box_minus(i, distance) for i in held]) for r, held in self._merged(body, row, view))
                return [(r, kept) for r, held in boxed if (kept := tuple(i for i in held if i is not None))]
            case At(instant=term, body=body):
                return [pair for r, held in self._merged(body, row, view) for pair in at_instants(term, r, held)]
            case Negation(body=body):
                without = complement(i for _, held in self.solve(body, row, self._under_not(view)) for i in held)
                return [(row, without)] if without else []
            case Test() | Assign() | Table():
                return [(extended, (ALWAYS,)) for extended in computed(formula, row, self.context)]
            case WindowFormula():
                raise ValueError("a window in a formula needs a program with a granularity")

    def _merged(self, formula: Formula, row: Row, view: V) -> Solutions:
        """Solutions with the union of their intervals: box-minus is of coalesced facts."""
        merged: dict[frozenset[tuple[str, str]], list[Interval]] = {}
        for extended, held in self.solve(formula, row, view):
            merged.setdefault(frozenset(extended.items()), []).extend(held)
        return [(dict(key), tuple(coalesce(held))) for key, held in merged.items()]


class Derivation(DenseTime[int | None]):
    """Applies rules to a store of facts, which they see through their Windows."""

    def __init__(self, store: Store, context: Context, horizon: Interval) -> None:
        self.store = store
        self.context = context
        self.horizon = horizon

    def apply(self, rule: Rule, body: Sequence[Formula]) -> bool:
        """Add what a rule derives; whether anything is new."""
        if isinstance(rule.head, Falsum):
            return False
        new = False
        for row, intervals in self.solutions(rule, body):
            inside = [i for r in reached(rule.head, row, intervals) if (i := intersect(r, self.horizon)) is not None]
            new |= bool(inside) and self.store.add(ground(headed(rule.head), row), inside)
        return new

    def inconsistencies(self, rule: Rule, body: Sequence[Formula]) -> Iterable[Inconsistency]:
        """Where the body of a rule with head ``false`` holds."""
        for row, intervals in self.solutions(rule, body):
            yield Inconsistency(rule.name or "", row, intervals)

    def solutions(self, rule: Rule, body: Sequence[Formula]) -> Solutions:
        """The solutions of the body of a rule, in a safe order, within the horizon."""
        solutions: Solutions = [({}, (self.horizon,))]
        for formula in body:
            solutions = [(extended, both) for row, held in solutions for extended, found in self.solve(formula, row, rule.window_ms)
                         if (both := common(held, found))]
        return solutions

    def _atom(self, pattern: Atom, row: Row, view: int | None) -> Solutions:
        return [(extended, self.store.intervals(atom, view)) for atom in self.store.about.get(relation_of(pattern), ())
                if (extended := unify(pattern, atom, row)) is not None]


def reached(head: Head, row: Row, held: Intervals) -> Iterable[Interval]:
    """When the atom of a head holds, where its body does during `held`."""
    match head:
        case BoxPlus(distance=distance):
            return [diamond_minus(when, distance) for when in held]
        case At(instant=term):
            ms = number_of(value_of(term, row))
            return () if ms is None else (point_of(ms),)
    return held


def at_instants(term: Term, row: Row, held: Intervals) -> Iterable[tuple[Row, Intervals]]:
    """``@x`` on dense time: the instants of milliseconds; a variable ranges over punctual facts only."""
    if isinstance(term, Variable) and term.name not in row:
        if any(i.lo != i.hi for i in held):
            raise ValueError(f"@?{term.name} of a fact with a duration has endless instants")
        return [({**row, term.name: integer(i.lo // 2)}, (i,)) for i in held if i.lo % 2 == 0]
    ms = number_of(value_of(term, row))
    hit = ms is not None and any(instant(ms) in i for i in held)
    return [(row, (point_of(ms),))] if hit and ms is not None else []
