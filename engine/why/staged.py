"""Proofs of what rule sets with a time of their own derive that a query sees at T: stage by stage, as engine/reference/mixed.py says it.

What a stage takes from another is proved there, down to what the streams brought and the graphs have. Built-in rules are shown as they
stand, with what of the schema they were applied to.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from engine.functions.expressions import Context
from engine.ir.rules import TRIPLE, Atom, Fact, Rule, RuleSet, Table
from engine.ir.stages import Division, Stage, stages
from engine.records import Event, Triple
from engine.reference.closure import is_rdf
from engine.reference.dataset import Graph
from engine.reference.formulas import Ground, as_fact, ground, point_of
from engine.reference.mixed import Origin, clipped, is_head, is_of_schema, plain_rules
from engine.timeline import ALWAYS, MIN, Interval, granule, instant, intersect
from engine.why import timed
from engine.why.dense import Dense, Moment
from engine.why.granular import Granular
from engine.why.proofs import Prover
from engine.why.index import Given
from engine.why.trees import Budget, Derived, Proof, Proven, Source, Stated, Step, Streamed, depth

Static = Mapping[Ground, tuple[Source, ...]]


class Staged:
    """The stages of the rule sets of a query at its evaluation time."""

    def __init__(self, division: Division, sets: Sequence[RuleSet], events: Iterable[Event], makers: Mapping[str, str], static: Static,
                 tick: int, on_change: bool, budget: Budget, cut_ms: int | None = None) -> None:
        """Of events before `cut_ms` those that there were may be missing: a timeline that began with one of them begins there."""
        self._budget, self._cut_ms = budget, cut_ms
        graph = Graph((s, p, o) for predicate, terms in static if predicate == TRIPLE for s, p, o in [terms])
        rules, always, self._origins = plain_rules(division, graph)
        plain = [rule for one in division.plain for rule in one.rules if rule.role == "built-in"]
        self._schema = Prover(static, plain, Context(tick), budget)
        self._streamed: list[Given] = [
            (as_fact((TRIPLE, triple), point_of(event.t)), Streamed(event.stream, (event.t,), makers.get(event.stream)))
            for event in events if event.t < tick for triple in event.triples]
        self._stated: list[Given] = [(fact, _stated(fact, sets)) for fact in division.facts]
        self._always: list[Given] = [(as_fact(atom, ALWAYS), source) for atom, sources in static.items() for source in sources]
        self._always += [(fact, self._said(fact, sets)) for fact in always]
        now = 2 * tick - (2 if on_change else 1)
        self._shown: dict[Ground, list[Source]] = {}
        for given, source in self._stated:
            if now in given.interval:
                self._shown.setdefault(ground(given.atom, {}), []).append(source)
        self._ends: list[int] = []
        self._made: list[tuple[Stage, Dense | Granular | None]] = []
        for stage in stages([*rules, *division.timed]):
            end = stage.timeline.ended(min((self._ends[place] for place in stage.reads), default=tick))
            self._made.append((stage, self._search(stage, end)))
            self._ends.append(end)
            point = now if end == tick and not stage.timeline.granularity_ms else 2 * end - 1
            for fact, held in self._held(len(self._made) - 1, stage.timed):
                if any(point in when for when in held):
                    self._shown.setdefault(fact, []).append(Proven(partial(self._shown_at, len(self._made) - 1, fact, point)))
        self._hidden = frozenset(graph.triples)

    def given(self) -> dict[Ground, tuple[Source, ...]]:
        """What the query sees of it."""
        return {fact: tuple(sources) for fact, sources in self._shown.items()
                if fact[0] == TRIPLE and is_rdf(_triple(fact)) and _triple(fact) not in self._hidden}

    def _shown_at(self, place: int, fact: Ground, point: int, _: int) -> Iterator[Proof]:
        return self._proofs(place, fact, point)

    def _search(self, stage: Stage, end: int) -> Dense | Granular | None:
        derived = [(as_fact(fact, when), Proven(partial(self._proofs, place, fact)))
                   for place in stage.reads for fact, held in self._held(place, self._made[place][0].rules) for when in held]
        length, start = stage.timeline.granularity_ms, stage.timeline.start_at_ms
        if start is None and length and self._cut_ms is not None:
            start = -(-self._cut_ms // length) * length
        if not length:
            return Dense(stage.rules, [*self._streamed, *self._always], instant(end), Context(end), self._budget, [*self._stated, *derived])
        last = granule(end // length - 1, length).hi
        inputs = [*self._streamed, *_clipped(self._stated, MIN, last)]
        if start is None and not inputs:
            return None
        first = min((fact.interval.lo for fact, _ in inputs), default=0) // (2 * length) if start is None else start // length
        taken = [(fact, Proven(partial(self._in_granule, source, fact.interval, length)) if isinstance(source, Proven) else source)
                 for fact, source in _clipped(derived, granule(first, length).lo, last)]
        program = RuleSet("stage", stage.rules, (), length, start)
        return Granular(program, [*inputs, *self._always], end // length - 1, Context(end), self._budget, derived=taken)

    def _held(self, place: int, rules: Sequence[Rule]) -> Iterator[tuple[Ground, tuple[Interval, ...]]]:
        """What a stage has of what some rules may derive."""
        search = self._made[place][1]
        if search is None:
            return
        for fact in search.all():
            if is_head(fact, rules):
                yield fact, search.final(fact)

    def _proofs(self, place: int, fact: Ground, point: int) -> Iterator[Proof]:
        """The trees of a fact in a stage, at a point of its timeline."""
        search = self._made[place][1]
        assert search is not None
        found = search.trees(Moment(fact, point), frozenset()) if isinstance(search, Dense) else search.trees(
            search.goal(fact, point), frozenset())
        return map(self._as_written, found)

    @staticmethod
    def _in_granule(source: Proven, when: Interval, length: int, k: int) -> Iterator[Proof]:
        """What holds at some time of a granule holds in it."""
        here = granule(k, length)
        both = intersect(here, when)
        assert both is not None
        for tree in source.proofs(both.lo):
            if timed.during(tree).lo <= here.lo and here.hi <= timed.during(tree).hi:
                yield tree
            else:
                yield Step("window", "granule", (tree,), 1 + tree.depth, 1 + tree.size, here, both)

    def _as_written(self, proof: Proof) -> Proof:
        """A tree in which built-in rules are those of their set, and not those that were made for a schema."""
        if not isinstance(proof, (Step, Derived)):
            return proof
        premises = tuple(map(self._as_written, proof.premises))
        if isinstance(proof, Derived) and (origin := self._origins.get(proof.rule)) is not None:
            return self._with_schema(proof, premises, origin)
        return replace(proof, premises=premises)

    def _with_schema(self, proof: Derived, premises: tuple[Proof, ...], origin: Origin) -> Derived:
        rule, row = origin[0], {**origin[1], **proof.row}
        rest, found = iter(premises), list[Proof]()
        for part in rule.body:
            if is_of_schema(part):
                found += [next(self._schema.proofs(ground(part, row)))] if isinstance(part, Atom) else []
            elif not isinstance(part, Table):
                found += [premise for premise in [next(rest, None)] if premise is not None]
        return replace(proof, rule=rule, row=row, premises=tuple(found), depth=1 + depth(found), size=timed.size(found))

    def _said(self, fact: Fact, sets: Sequence[RuleSet]) -> Source:
        """Who says what holds always: a rule set, or the schema by a built-in rule."""
        if any(fact in one.facts for one in sets):
            return _stated(fact, sets)
        return Proven(lambda _: self._schema.proofs(ground(fact.atom, {})))


def _stated(fact: Fact, sets: Sequence[RuleSet]) -> Stated:
    return next(Stated(one.name, own.atom.span) for one in sets for own in one.facts if own == fact)


def _clipped(given: Iterable[Given], first: int, last: int) -> list[Given]:
    return [(inside, source) for fact, source in given for inside in clipped([fact], first, last)]


def _triple(fact: Ground) -> Triple:
    return fact[1][0], fact[1][1], fact[1][2]
