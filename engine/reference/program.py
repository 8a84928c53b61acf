"""Rule programs as continuous queries, from scratch at every instant, or watermark: the oracle of their streams P and N.

Without a time of its own (Streaming RIF-Core) a program derives fact instances: a fact with the instant from which on it holds, of its
justification the latest (Windowed Continuous Datalog: Monks et al., "Continuous Deductive Reasoning over Streamed RDF Data", definitions
"Fact Instance", "Time-Annotated Justification"). It ends where the last of its justifications does, each with the first of its facts: the
greatest least end. What holds longer by an earlier instance is not reported again.

With a time of its own what holds is the model of the program over all events that the query may see. At a watermark all points before it
are final, of a timeline of granules all granules that have ended. A fact begins where its coalesced interval does, and ceases where that
ends. What a rule marks with an instant that is past (LARS) the rules know from then on; it is not told, for its time has been told of.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from engine.functions import dates
from engine.functions.expressions import Context
from engine.ir.programs import fits, heads_of, name_of
from engine.ir.rules import TRIPLE, Assign, Atom, Formula, Rule, RuleSet, Table, Test
from engine.ir.statement import Program, Statement, TimedProgram, TimeWindow
from engine.ir.strata import endless, rounds
from engine.records import Event, Triple
from engine.reference.closure import is_rdf
from engine.reference.formulas import Ground, Intervals, Row, as_fact, computed, ground, in_safe_order, point_of, unify
from engine.reference.granules import Granules
from engine.reference.sparql import Result
from engine.reference.temporal import evaluate
from engine.timeline import ALWAYS, MAX, MIN, Interval

Instance = tuple[Ground, int]
"""A fact and the instant in ms from which on it holds, MIN where it always does."""


def instances(rules: Sequence[Rule], facts: Mapping[Instance, int], context: Context) -> dict[Instance, int]:
    """The instances that follow from `facts`, these included, each with the instant at which it ends. Raises Unending."""
    known = dict(facts)
    for _ in rounds(endless(rules)):
        better: dict[Instance, int] = {}
        for instance, end in (found for rule in rules for found in derived(rule, known, context)):
            if end > max(known.get(instance, MIN), better.get(instance, MIN)):
                better[instance] = end
        if not better:
            break
        known |= better
    return known


def derived(rule: Rule, known: Mapping[Instance, int], context: Context) -> Iterator[tuple[Instance, int]]:
    """What one rule derives from known instances: from the latest begin of what it uses to the earliest end."""
    if not isinstance(rule.head, Atom):
        return
    solutions: list[tuple[Row, int, int]] = [({}, MIN, MAX)]
    for formula in in_safe_order(rule.body):
        solutions = [(extended, max(begin, from_), min(end, until)) for row, begin, end in solutions
                     for extended, from_, until in _solve(formula, row, known, context) if max(begin, from_) < min(end, until)]
    for row, begin, end in solutions:
        yield (ground(rule.head, row), begin), end


def _solve(formula: Formula, row: Row, known: Mapping[Instance, int], context: Context) -> Iterator[tuple[Row, int, int]]:
    match formula:
        case Atom():
            for (atom, begin), end in known.items():
                if (extended := unify(formula, atom, row)) is not None:
                    yield extended, begin, end
        case Test() | Assign() | Table():
            yield from ((extended, MIN, MAX) for extended in computed(formula, row, context))
        case _:
            raise ValueError(f"a program has no {type(formula).__name__}")


@dataclass
class ProgramState:
    """What a program has reported that still holds: rows by instance, with their ends."""

    pending: dict[Instance, int] = field(default_factory=dict)

    def step(self, statement: Statement, at: int, events: Iterable[Event], static: Iterable[Triple],
             profiles: Mapping[str, RuleSet]) -> tuple[Result, Result]:
        """Streams P and N at the instant `at` (ms), given the events that its windows see, the triples of its graphs, and the rules of
        entailment profiles by IRI."""
        program = statement.query
        assert isinstance(program, Program)
        lengths = {s.stream: s.window.range_ms for s in statement.streams if isinstance(s.window, TimeWindow)}
        facts: dict[Instance, int] = {((TRIPLE, triple), MIN): MAX for triple in static}
        facts |= {(ground(fact.atom, {}), MIN): MAX for fact in program.rules.facts}
        for event in events:
            for triple in event.triples:
                facts[(TRIPLE, triple), event.t] = event.t + lengths[event.stream]
        background = profiles[program.profile].rules if program.profile else ()
        context = Context(at)
        known = instances([*program.rules.rules, *background], facts, context)
        own: dict[Instance, int] = {}
        for instance, end in (found for rule in program.rules.written for found in derived(rule, known, context)):
            own[instance] = max(end, own.get(instance, MIN))
        before: dict[Ground, int] = {}
        for (atom, begin), end in own.items():
            if begin < at:
                before[atom] = max(before.get(atom, MIN), end)
        new = {(atom, begin): end for (atom, begin), end in own.items() if begin == at and _shown(atom) and end > before.get(atom, MIN)}
        ended = [(instance, end) for instance, end in self.pending.items() if end == at]
        self.pending = {i: end for i, end in (self.pending | new).items() if end > at}
        return _rows(program, new.items()), _rows(program, ended)


def _shown(atom: Ground) -> bool:
    """Whether an atom is an answer: a triple must be RDF (engine/reference/closure.py)."""
    predicate, terms = atom
    return predicate != TRIPLE or is_rdf((terms[0], terms[1], terms[2]))


def _rows(program: Program, found: Iterable[tuple[Instance, int | None]]) -> Result:
    """Facts with the instants from when to when they hold; None and MAX: it is not told until when."""
    rows = []
    for ((predicate, terms), begin), end in sorted(found, key=lambda one: one[0]):
        row = dict(zip("spo", terms)) if predicate == TRIPLE else {
            "atom": name_of(predicate), **{f"a{number}": term for number, term in enumerate(terms, 1)}}
        rows.append(row | {"from": dates.at(begin)} | ({"until": dates.at(end)} if end is not None and end < MAX else {}))
    return Result("SELECT", tuple(v.name for v in program.variables), tuple(rows))


Begun = tuple[Ground, int]
"""A fact and the point from which on it holds."""


@dataclass
class TimedState:
    """Up to which watermark (ms) a program has been told of, and which facts were told to begin."""

    done: int = MIN
    told: frozenset[Begun] = field(default_factory=frozenset)

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
                yield at, _rows(program, [((atom, when.lo // 2), None) for atom, when in first]), False
            if last := [(atom, when) for atom, when in ceased.get(at, ()) if (atom, when.lo) in self.told]:
                yield at, _rows(program, [((atom, when.lo // 2), (when.hi + 1) // 2) for atom, when in last]), True


def model(rules: RuleSet, reach_ms: int, events: Iterable[Event], static: Iterable[Triple]) -> Mapping[Ground, Intervals]:
    """What holds when, as far as events before `reach_ms` and nothing else say it."""
    facts = [as_fact((TRIPLE, triple), ALWAYS) for triple in static]
    facts += [as_fact((TRIPLE, triple), point_of(event.t)) for event in events for triple in event.triples]
    if not rules.granularity_ms:
        return evaluate(rules, facts, reach_ms).facts
    if rules.start_at_ms is None and all(fact.interval == ALWAYS for fact in (*rules.facts, *facts)):
        return {}       # the timeline has not begun
    granules = Granules(rules, facts, Context(reach_ms))
    granules.run(reach_ms // rules.granularity_ms - 1)
    return granules.final()


def _is_told(program: TimedProgram, atom: Ground) -> bool:
    """Whether an atom is one that a head of the program may give; a triple must be RDF (engine/reference/closure.py)."""
    predicate, terms = atom
    return _shown(atom) and any(head.predicate == predicate and fits(terms, head) for head in heads_of(program.rules))
