"""Rules with a time of their own as programs over interval relations: one for a rule set, a chain of them for what a query uses."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from engine.grouping import by_key
from engine.ir.programs import heads_of, look_back, name_of
from engine.ir.rules import TRIPLE, Atom, Fact, Rule, RuleSet, atoms
from engine.ir.stages import Stage, Timeline
from engine.ir.terms import Constant, Term, Variable
from engine.plan import intervals
from engine.plan.derivations import Relations, build
from engine.plan.memory import Memory, memory
from engine.records import Triple

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
    by_relation = by_key((relations.of(atom)[0], atom) for atom in heads_of(rules))
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


Heads = tuple[tuple[str, tuple[tuple[Term, ...], ...]], ...]
"""By relation the terms that heads of rules have there."""


@dataclass(frozen=True, slots=True)
class Look:
    """Evaluation times that count where the query does not see of the rules what it saw at the one before: those that are `unsure`, and
    those of the `grids` (step and start in ms) up to the last that is asked for. `before` is the one before the first of them; None where
    there was none."""

    before: int | None
    unsure: frozenset[int] = frozenset()
    grids: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """A program of the chain, the numbers of those before that it `reads`, the heads of all its rules and those whose atoms are shown."""

    program: intervals.Program
    timeline: Timeline
    reads: tuple[int, ...]
    heads: Heads
    shown: Heads
    rules: tuple[Rule, ...] = field(compare=False, repr=False)

    @property
    def memory(self) -> Memory:
        return memory(self.rules, self.timeline.granularity_ms)


@dataclass(frozen=True, slots=True)
class StagedPlan:
    """The chain, in order. `facts` hold for a time, `always` always, beside the triples of the `graphs` (IRIs), of which those that are
    `hidden` are not shown. `name` tells it from all others."""

    name: str
    stages: tuple[PlannedStage, ...]
    facts: tuple[Fact, ...]
    always: tuple[Fact, ...]
    graphs: tuple[str, ...]
    hidden: frozenset[Triple] = frozenset()

    def ends(self, tick: int) -> list[int]:
        """The time (ms) up to which each stage is final when T comes."""
        found: list[int] = []
        for stage in self.stages:
            found.append(stage.timeline.ended(min((found[place] for place in stage.reads), default=tick)))
        return found

    def points(self, tick: int, on_change: bool) -> list[int]:
        """The point at which each stage is seen at T: the last that is final, or at the instant that is reported."""
        now = 2 * tick - (2 if on_change else 1)
        return [now if end == tick and not stage.timeline.granularity_ms else 2 * end - 1
                for stage, end in zip(self.stages, self.ends(tick))]


def seen_since(plan: StagedPlan, tick: int) -> int | None:
    """The time in ms before which no event counts for what a query sees of the rules at T; None where all count. A stage on granules is
    seen at the last that has ended, and what it takes from others may be of any time in a granule."""
    found: list[int | None] = []
    for stage in plan.stages:
        own = look_back(stage.rules, stage.timeline.granularity_ms)
        below = [found[place] for place in stage.reads]
        found.append(None if own is None or None in below
                     else own // 2 + 2 * stage.timeline.granularity_ms + max((back for back in below if back is not None), default=0))
    return None if None in found else tick - 2 - max((back for back in found if back is not None), default=0)


def staged_plan(made: Sequence[tuple[Stage, RuleSet, Sequence[Rule]]], facts: Iterable[Fact], always: Iterable[Fact],
                graphs: Iterable[str], static: Iterable[Triple]) -> StagedPlan:
    """The plan of stages, each with its rules as a program and their normal form. Raises DiagnosticError."""
    stages = tuple(_stage(stage, program, rules) for stage, program, rules in made)
    listed, lasting = tuple(facts), tuple(always)
    shown = [atom for stage, _, _ in made for rule in stage.timed for atom in atoms(rule.head) if atom.predicate == TRIPLE]
    hidden = frozenset(triple for triple in static if any(is_instance(triple, head.terms) for head in shown))
    text = repr((stages, listed, lasting, sorted(hidden)))
    return StagedPlan("h_" + hashlib.sha256(text.encode()).hexdigest()[:16], stages, listed, lasting, tuple(graphs), hidden)


def is_instance(tokens: Sequence[str], terms: Sequence[Term]) -> bool:
    """Whether terms may stand for these tokens."""
    bound: dict[Term, str] = {}
    return all((term.token if isinstance(term, Constant) else bound.setdefault(term, token)) == token for term, token in zip(terms, tokens))


def _stage(stage: Stage, program: RuleSet, normal: Sequence[Rule]) -> PlannedStage:
    made, relations = build(program, normal), Relations(normal)
    derived = [atom for rule in stage.rules for atom in atoms(rule.head)]
    shown = [atom for rule in stage.timed for atom in atoms(rule.head) if atom.predicate == TRIPLE]
    return PlannedStage(made, stage.timeline, stage.reads, _heads(relations, derived), _heads(relations, shown), tuple(normal))


def _heads(relations: Relations, derived: Iterable[Atom]) -> Heads:
    found = by_key(map(relations.of, derived))
    return tuple((name, tuple(dict.fromkeys(terms))) for name, terms in found.items())
