"""Rule programs with a time of their own as continuous queries, from scratch at every watermark: the oracle of their streams P and N.

What holds is the model of the program over all events that the query may see. At a watermark all points before it are final, of a
timeline of granules all granules that have ended. A fact begins where its coalesced interval does, and ceases where that ends. What a rule
marks with an instant that is past (LARS) the rules know from then on; it is not told, for its time has been told of already.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from engine.functions.expressions import Context
from engine.ir.programs import fits, heads_of, name_of
from engine.ir.rules import TRIPLE, Atom, Fact, RuleSet
from engine.ir.statement import TimedProgram
from engine.ir.terms import Constant
from engine.records import Event, Triple
from engine.reference.formulas import Ground
from engine.reference.granules import Granules
from engine.reference.model import Intervals
from engine.reference.program import moment
from engine.reference.sparql import Result
from engine.reference.temporal import evaluate
from engine.timeline import ALWAYS, MAX, MIN, Interval, coalesce, granule, instant

Instance = tuple[Ground, int]
"""A fact and the point from which on it holds."""


@dataclass
class TimedState:
    """Up to which watermark (ms) a program has been told of, and which facts were told to begin."""

    done: int = MIN
    told: frozenset[Instance] = field(default_factory=frozenset)

    def advance(self, program: TimedProgram, watermark: int, events: Iterable[Event],
                static: Iterable[Triple]) -> Iterator[tuple[int, Result, bool]]:
        """What is told when the watermark comes to `watermark`: (time in ms, rows, whether they cease), given the events before it and
        the triples of the program's graphs."""
        grain = program.grain_ms
        reach = watermark // grain * grain
        if reach <= self.done:
            return
        held = model(program.rules, reach, [event for event in events if event.t < reach], static)
        shown = {atom: intervals for atom, intervals in held.items() if _is_told(program, atom)}
        begun: dict[int, list[tuple[Ground, Interval]]] = {}
        ceased: dict[int, list[tuple[Ground, Interval]]] = {}
        for atom, intervals in shown.items():
            for when in intervals:
                begun.setdefault(when.lo // 2, []).append((atom, when))
                ceased.setdefault((when.hi + 1) // 2, []).append((atom, when))
        before, self.done = self.done, reach
        for at in sorted({*begun, *ceased}):
            if not before < at + grain <= reach:
                continue
            if first := [(atom, when) for atom, when in begun.get(at, ()) if when.lo > MIN]:
                self.told |= {(atom, when.lo) for atom, when in first}
                yield at, _rows(program, first, False), False
            if last := [(atom, when) for atom, when in ceased.get(at, ()) if (atom, when.lo) in self.told]:
                yield at, _rows(program, last, True), True


def model(rules: RuleSet, reach_ms: int, events: Iterable[Event], static: Iterable[Triple]) -> Mapping[Ground, Intervals]:
    """What holds when, as far as events before `reach_ms` and nothing else say it."""
    facts = [Fact(_triple(triple), ALWAYS) for triple in static]
    facts += [Fact(_triple(triple), Interval(instant(event.t), instant(event.t))) for event in events for triple in event.triples]
    if not rules.granularity_ms:
        return evaluate(rules, facts, reach_ms).facts
    if rules.start_at_ms is None and all(fact.interval == ALWAYS for fact in (*rules.facts, *facts)):
        return {}       # the timeline has not begun
    granules = Granules(rules, facts, Context(reach_ms))
    length, last = rules.granularity_ms, reach_ms // rules.granularity_ms - 1
    granules.run(last)
    found = {atom: coalesce(granule(k, length) for k, known in points.items() if known <= k) for atom, points in granules.known.items()}
    always = {atom: [Interval(granule(granules.start, length).lo, MAX)] for atom in granules.always}
    return {atom: tuple(intervals) for atom, intervals in (found | always).items()}


def _triple(triple: Triple) -> Atom:
    return Atom(TRIPLE, tuple(map(Constant, triple)))


def _is_told(program: TimedProgram, atom: Ground) -> bool:
    """Whether an atom is one that a head of the program may give; a triple must be RDF (engine/reference/closure.py)."""
    predicate, terms = atom
    if predicate == TRIPLE and (terms[0][0] == '"' or terms[1][0] != "<"):
        return False
    return any(head.predicate == predicate and fits(terms, head) for head in heads_of(program.rules))


def _rows(program: TimedProgram, found: Iterable[tuple[Ground, Interval]], ceased: bool) -> Result:
    rows = []
    for (predicate, terms), when in sorted(found):
        places = dict(zip("spo", terms)) if predicate == TRIPLE else {
            "atom": name_of(predicate), **{f"a{number}": term for number, term in enumerate(terms, 1)}}
        rows.append(places | {"from": moment(when.lo // 2)} | ({"until": moment((when.hi + 1) // 2)} if ceased else {}))
    return Result("SELECT", tuple(v.name for v in program.variables), tuple(rows))
