"""Why a fact of rules with time: from the rules and what was given to the proofs of a fact at a point, or during an interval."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.functions.expressions import Context
from engine.grouping import by_key
from engine.ir.notation import date_time_ms
from engine.ir.programs import look_back
from engine.ir.rules import TRIPLE, Atom, Rule, RuleSet
from engine.ir.statement import Program, Statement, TimedProgram, TimeWindow
from engine.ir.strata import Known, heads, predicate_of, reachable
from engine.ir.terms import Constant, unescape
from engine.records import Event, Triple
from engine.reference.formulas import Ground, Row, as_fact, point_of
from engine.timeline import ALWAYS, MAX, MIN, Interval, granule, instant
from engine.why import timed
from engine.why.dataset import stated
from engine.why.dense import Dense
from engine.why.granular import Granular
from engine.why.streamed import Instance, Streamed
from engine.why.index import Given
from engine.why.trees import STEPS, Asserted, Budget, Proof, Source, Stated, Static, Step, Streamed as OnStream, depth, taken


@dataclass(frozen=True, slots=True)
class Proved:
    """The proofs of a fact during an interval; `more` where there are others, or the search for them was given up. Without proofs `held`
    says when the fact holds, if it ever does."""

    during: Interval
    proofs: tuple[Proof, ...]
    more: bool
    held: tuple[Interval, ...] = ()


def explain_fact(program: RuleSet, given: Sequence[Given], fact: Ground, when: Interval | None, most: int = 1,
                 until_ms: int | None = None) -> Proved:
    """At most `most` proofs that a fact holds during all of an interval; of None, at the first point at which it does. `given` are the
    facts of the input beside those of the program. Raises TooMuchError, strata.Unstratified, growth.Unending, ValueError."""
    rules = asked(program.rules, fact)
    facts: list[Given] = [*((own, Stated(program.name, own.atom.span)) for own in program.facts), *given]
    ends = [end for f, _ in facts for end in (f.interval.lo, f.interval.hi) if end not in (MIN, MAX)]
    wanted = [] if when is None else [end for end in (when.lo, when.hi) if end not in (MIN, MAX)]
    until = max([*ends, *wanted, *([] if until_ms is None else [instant(until_ms)])], default=0)
    budget, length = Budget(STEPS), 2 * program.granularity_ms
    timeline = RuleSet(program.name, rules, (), program.granularity_ms, program.start_at_ms)
    search = (Granular(timeline, facts, until // length, Context(until // 2), budget) if length
              else Dense(rules, facts, until, Context(until // 2), budget))
    held = search.during(fact)
    when = when or _first(held, length)
    if when is None or not any(one.lo <= when.lo and when.hi <= one.hi for one in held):
        return Proved(when or ALWAYS, (), False, held)
    return Proved(when, *taken(map(_together, search.whole(fact, when)), most, budget))


def explain_told(statement: Statement, row: Row, events: Sequence[Event], graphs: Mapping[str, Iterable[Triple]], makers: Mapping[str, str],
                 most: int = 1, first_ms: int | None = None) -> Proved:
    """At most `most` proofs of a row of stream P or N of a program with a time of its own: that the fact holds where it begins. `first_ms`
    says that there may have been items before that time, which are not among the `events`. Raises as explain_fact does."""
    program = statement.query
    assert isinstance(program, TimedProgram)
    begin, fact, length = moment_of(row["from"]), fact_of(program, row), 2 * program.rules.granularity_ms
    rules = asked(program.rules.rules, fact)
    back = look_back(rules, program.rules.granularity_ms)
    since = MIN if back is None else instant(begin) - back - length
    given: list[Given] = [(own, Stated(program.rules.name, own.atom.span)) for own in program.rules.facts]
    given += [(as_fact((TRIPLE, triple), ALWAYS), Static(iri)) for iri in dict.fromkeys(source.iri for source in statement.graphs)
              for triple in graphs.get(iri, ())]
    given += [(as_fact((TRIPLE, triple), point_of(event.t)), OnStream(event.stream, (event.t,), makers.get(event.stream)))
              for event in events if since <= instant(event.t) <= instant(begin) + length for triple in event.triples]
    budget = Budget(STEPS)
    if not length:
        search = Dense(rules, given, instant(begin) + 1, Context(begin), budget)
        for point in (instant(begin), instant(begin) + 1):
            if search.round_of(goal := search.goal(fact, point)) is not None:
                return Proved(Interval(point, point), *taken(search.proofs(goal), most, budget))
        return Proved(point_of(begin), (), False)
    k, starts = instant(begin) // length, [event.t for event in events] + ([] if first_ms is None else [first_ms])
    start_ms = min(starts, default=begin) if program.rules.start_at_ms is None else program.rules.start_at_ms
    own = [fact.interval.lo // 2 for fact in program.rules.facts if fact.interval != ALWAYS and program.rules.start_at_ms is None]
    timeline = RuleSet(program.rules.name, rules, (), program.rules.granularity_ms, min([start_ms, *own]))
    granular = Granular(timeline, given, k, Context(begin), budget, None if back is None else since // length)
    return Proved(granular.granules(k, k), *taken(granular.proofs(granular.goal(fact, instant(begin))), most, budget))


def asked(rules: Iterable[Rule], fact: Ground) -> tuple[Rule, ...]:
    """The rules that a fact may follow by, in their order."""
    listed = list(rules)
    known = Known(head for rule in listed for head in heads(rule))
    predicate, terms = fact
    needs = by_key((head, need) for rule in listed for head in heads(rule) for need, _ in known.needs(rule))
    wanted = reachable(known.meeting(predicate_of(Atom(predicate, tuple(map(Constant, terms))))), lambda head: needs.get(head, ()))
    return tuple(rule for rule in listed if wanted.intersection(heads(rule)))


def explain_reported(statement: Statement, row: Row, events: Sequence[Event], graphs: Mapping[str, Iterable[Triple]],
                     profiles: Mapping[str, RuleSet], makers: Mapping[str, str], most: int = 1) -> Proved:
    """At most `most` proofs of a row of stream P or N of a Streaming RIF-Core program: by the items that had come when the fact began.
    Raises TooMuchError, growth.Unending."""
    program = statement.query
    assert isinstance(program, Program)
    begin, end = moment_of(row["from"]), moment_of(row["until"]) if "until" in row else MAX
    fact = fact_of(program, row)
    given = _streamed(statement, [event for event in events if event.t <= begin], makers)
    for iri in dict.fromkeys(source.iri for source in statement.graphs):
        for triple in graphs.get(iri, ()):
            given.setdefault(Instance((TRIPLE, triple), MIN, MAX), []).append((ALWAYS, Static(iri)))
    for atom, source in stated([program.rules]):
        given.setdefault(Instance(atom, MIN, MAX), []).append((ALWAYS, source))
    leaves = {one: tuple(_leaf(one, when, tuple(source for point, source in sources if point == when))
                         for when in dict.fromkeys(point for point, _ in sources)) for one, sources in given.items()}
    background = profiles[program.profile].rules if program.profile else ()
    budget = Budget(STEPS)
    goal = Instance(fact, begin, end)
    search = Streamed([*program.rules.rules, *background], leaves, Context(begin), budget)
    return Proved(goal.during, *taken(search.reported(goal, program.rules.written), most, budget))


def _streamed(statement: Statement, events: Iterable[Event], makers: Mapping[str, str]) -> dict[Instance, list[tuple[Interval, Source]]]:
    lengths = {s.stream: s.window.range_ms for s in statement.streams if isinstance(s.window, TimeWindow)}
    found = by_key((Instance((TRIPLE, triple), event.t, event.t + lengths[event.stream]),
                    (point_of(event.t), OnStream(event.stream, (event.t,), makers.get(event.stream))))
                   for event in events for triple in event.triples)
    return {instance: list(dict.fromkeys(sources)) for instance, sources in found.items()}


def _leaf(one: Instance, when: Interval, sources: tuple[Source, ...]) -> Proof:
    leaf = Asserted(one.fact, sources, during=when)
    return leaf if when == ALWAYS else timed.window(leaf, one.end - one.begin, one.during)


def fact_of(program: Program, row: Row) -> Ground:
    if "atom" not in row:
        return TRIPLE, (row["s"], row["p"], row["o"])
    names = [v.name for v in program.variables if v.name in row and v.name not in ("atom", "from", "until")]
    predicate = row["atom"] if row["atom"].startswith("<") else unescape(row["atom"][1:-1])
    return predicate, tuple(row[name] for name in names)


def moment_of(token: str) -> int:
    """The instant in ms of an xsd:dateTime that an answer has."""
    found = date_time_ms(token[1:token.rindex('"')])
    assert found is not None
    return found


def _first(held: Sequence[Interval], length: int) -> Interval | None:
    """The first point at which a fact holds, or granule, where these have so many points."""
    if not held:
        return None
    return ALWAYS if held[0] == ALWAYS else granule(held[0].lo // length, length // 2) if length else Interval(held[0].lo, held[0].lo)


def _together(pieces: tuple[Proof, ...]) -> Proof:
    """One tree of several that hold one after the other."""
    if len(pieces) == 1:
        return pieces[0]
    when = timed.joined(pieces)
    return Step("pieces", "one after the other", pieces, 1 + depth(pieces), timed.size(pieces), when, when)
