"""The logical plan: relational operators over solutions, as a closed set of frozen nodes.

A plan says *what* is joined; `engine/spark` says how. Every relation carries the evaluation time beside its variables, so that all
due evaluations of a batch are one plan (docs/architecture.md, "Plans").
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.ir.expressions import Aggregate as AggregateCall
from engine.ir.expressions import Expression
from engine.ir.terms import Constant, PatternTerm, Term, Variable


@dataclass(frozen=True, slots=True)
class WindowSource:
    """The content of the statement's window number `index`."""

    index: int


@dataclass(frozen=True, slots=True)
class StaticSource:
    """A static graph of the catalog, by IRI; valid at all times."""

    iri: str


@dataclass(frozen=True, slots=True)
class MergedSource:
    """The RDF merge of several sources: the default graph, or all named graphs."""

    parts: tuple[WindowSource | StaticSource, ...]


Source = WindowSource | StaticSource | MergedSource


@dataclass(frozen=True, slots=True)
class Unit:
    """The single empty solution."""


@dataclass(frozen=True, slots=True)
class Scan:
    """The matches of one triple pattern; `graph` restricts or binds the graph name, None does not look at it."""

    source: Source
    subject: PatternTerm
    predicate: PatternTerm
    object: PatternTerm
    graph: Term | None = None
    origin: tuple[str, ...] = ()

    @property
    def terms(self) -> tuple[PatternTerm, PatternTerm, PatternTerm]:
        return self.subject, self.predicate, self.object


@dataclass(frozen=True, slots=True)
class Nodes:
    """All subjects and objects of a source, bound to `variable`: the ends of zero-length paths."""

    source: Source
    variable: Variable
    graph: Term | None = None


@dataclass(frozen=True, slots=True)
class Star:
    """Scans of one source that share their subject variable: answered by one group-by on the subject."""

    scans: tuple[Scan, ...]

    def __post_init__(self) -> None:
        first = self.scans[0]
        if any(s.source != first.source or s.subject != first.subject or s.graph != first.graph for s in self.scans):
            raise ValueError("the scans of a star share source, graph and subject")


@dataclass(frozen=True, slots=True)
class Join:
    left: Plan
    right: Plan


@dataclass(frozen=True, slots=True)
class LeftJoin:
    left: Plan
    right: Plan
    condition: Expression | None


@dataclass(frozen=True, slots=True)
class Minus:
    """SPARQL's MINUS; variables in `ignored` do not count as shared (they are substituted inside EXISTS)."""

    left: Plan
    right: Plan
    ignored: frozenset[Variable] = frozenset()


@dataclass(frozen=True, slots=True)
class Filter:
    input: Plan
    condition: Expression


@dataclass(frozen=True, slots=True)
class Extend:
    input: Plan
    variable: Variable
    expression: Expression


@dataclass(frozen=True, slots=True)
class Union:
    left: Plan
    right: Plan


@dataclass(frozen=True, slots=True)
class Values:
    variables: tuple[Variable, ...]
    rows: tuple[tuple[Constant | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One row per group of `keys` and evaluation time; `implicit` gives a row even for no input."""

    input: Plan
    keys: tuple[Variable, ...]
    aggregates: tuple[tuple[Variable, AggregateCall], ...]
    implicit: bool


@dataclass(frozen=True, slots=True)
class Project:
    input: Plan
    variables: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Distinct:
    input: Plan


@dataclass(frozen=True, slots=True)
class Order:
    input: Plan
    conditions: tuple[tuple[Expression, bool], ...]


@dataclass(frozen=True, slots=True)
class Slice:
    input: Plan
    offset: int
    limit: int | None


@dataclass(frozen=True, slots=True)
class Seed:
    """Inside EXISTS: the distinct values of `variables` in the outer solutions, substituted into the pattern."""

    outer: Plan
    variables: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """`input` with a truth value `variable`: whether `inner`, seeded by `seed`, has a solution for the row's values."""

    input: Plan
    inner: Plan
    variable: Variable
    seed: Seed


Plan = (Unit | Scan | Nodes | Star | Join | LeftJoin | Minus | Filter | Extend | Union | Values | Aggregate | Project | Distinct
        | Order | Slice | Seed | Mark)


def inputs(plan: Plan) -> tuple[Plan, ...]:
    """The plans directly below, in order."""
    match plan:
        case Unit() | Scan() | Nodes() | Values():
            return ()
        case Star(scans=scans):
            return scans
        case Join() | LeftJoin() | Minus() | Union():
            return plan.left, plan.right
        case Mark():
            return plan.input, plan.inner
        case Seed():
            return ()
    return (plan.input,)


def sources(plan: Plan) -> frozenset[Source]:
    """Every source that the plan reads, merged ones included as such."""
    own: frozenset[Source] = frozenset((plan.source,)) if isinstance(plan, (Scan, Nodes)) else frozenset()
    return own.union(*(sources(below) for below in inputs(plan)))
