"""What a query sees of rule sets with a time of their own, as a chain of programs over interval relations: what one derives, the later ones
that need it are given."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from engine.ir.programs import look_back
from engine.ir.rules import TRIPLE, Atom, Fact, Rule, RuleSet, atoms
from engine.ir.spans import Diagnostic, DiagnosticError
from engine.ir.stages import Stage, Timeline
from engine.ir.strata import Unstratified
from engine.ir.terms import Constant, Term
from engine.plan import derivations, intervals
from engine.plan.explain_intervals import explain
from engine.plan.memory import Memory, describe, memory
from engine.records import Triple

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
        """What its rules have to keep."""
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


def explain_staged(plan: StagedPlan) -> str:
    """The chain as text: each stage with its timeline, what it reads, its plan and what it has to keep."""
    lines = []
    for number, stage in enumerate(plan.stages, 1):
        reads = f", after {', '.join(str(place + 1) for place in stage.reads)}" if stage.reads else ""
        lines.append(f"-- timed rules, stage {number}, on {stage.timeline}{reads}\n")
        lines += explain(stage.program), describe(stage.memory)
    return "".join(lines)


def _stage(stage: Stage, program: RuleSet, normal: Sequence[Rule]) -> PlannedStage:
    try:
        made = derivations.build(program, normal)
    except Unstratified as error:
        raise DiagnosticError(Diagnostic("rules-unsafe", f"The rules cannot be stratified: {error}.", error.rule.span)) from error
    relations = derivations.Relations(normal)
    derived = [atom for rule in stage.rules for atom in atoms(rule.head)]
    shown = [atom for rule in stage.timed for atom in atoms(rule.head) if atom.predicate == TRIPLE]
    return PlannedStage(made, stage.timeline, stage.reads, _heads(relations, derived), _heads(relations, shown), tuple(normal))


def _heads(relations: derivations.Relations, derived: Iterable[Atom]) -> Heads:
    found: dict[str, dict[tuple[Term, ...], None]] = {}
    for atom in derived:
        name, terms = relations.of(atom)
        found.setdefault(name, {})[terms] = None
    return tuple((name, tuple(terms)) for name, terms in found.items())
