"""The logical plan: relational operators over solutions, as a closed set of frozen nodes.

A plan says *what* is joined; `engine/sql` says how. Every relation carries the evaluation time beside its variables, so that all
due evaluations of a batch are one plan (docs/architecture.md, "Plans").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from engine.ir.expressions import Aggregate as AggregateCall, Expression
from engine.ir.rules import Role, Rule
from engine.ir.terms import Constant, PatternTerm, Term, Variable
from engine.plan.timed import TimedPlan


Key = Literal["", "s", "o"]
"""The column by which facts are shared out among shards (engine/plan/shards.py): each has those with the subjects, or objects, of its
share; every shard has all of them where there is none."""
KEYS: tuple[Key, ...] = ("", "s", "o")


@dataclass(frozen=True, slots=True)
class WindowSource:
    """The content of the statement's window number `index`; in a shard what it has of that by the `key`."""

    index: int
    key: Key = ""


@dataclass(frozen=True, slots=True)
class ValiditySource:
    """The facts of the stream of window number `index`, a window of time, with the points between which it shows them; in a shard what it
    has of that by the `key`. With `by_object`, only facts with these properties whose subject is in another shard's share."""

    index: int
    key: Key = ""
    by_object: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ViewSource:
    """What rules with a Window of `length_ms` see in place of windows: the content of window number `index`."""

    index: int
    length_ms: int


@dataclass(frozen=True, slots=True)
class ItemsSource:
    """The content of window number `index`, each item a graph of its own."""

    index: int


@dataclass(frozen=True, slots=True)
class StaticSource:
    """A static graph of the catalog, by IRI, valid at all times; in a shard what it has of that by the `key`."""

    iri: str
    key: Key = ""


@dataclass(frozen=True, slots=True)
class TimedSource:
    """What rule sets with a time of their own derive, as it is seen at each evaluation time (engine/plan/timed.py); `name` tells it from
    that of all other queries."""

    name: str


@dataclass(frozen=True, slots=True)
class MergedSource:
    """The RDF merge of several sources: the default graph, or all named graphs."""

    parts: tuple[WindowSource | StaticSource | TimedSource | ClosedSource | RestSource | ShareSource, ...]

    @property
    def is_disjoint(self) -> bool:
        """Whether no triple is in two parts: those of one part, or a closure and what it stands on."""
        match tuple(part.source if isinstance(part, ShareSource) else part for part in self.parts):
            case (ClosedSource(background=background), ClosedSource() as other) | (
                    ClosedSource(background=background), RestSource(closed=other)):
                return background == other
        return len(self.parts) < 2


Base = WindowSource | ValiditySource | ViewSource | ItemsSource | StaticSource | TimedSource
"""What a closure may start from."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """How shards make a closure together (engine/plan/exchange.py). A shard is to have all facts with a subject of its share, and of the
    properties `by_object` those with an object of its share. What is like one of the `sent`, pairs of properties and of classes for
    rdf:type (None: any), is sent to all, and each takes what it is to have; the rest they derive themselves."""

    by_object: frozenset[str]
    sent: tuple[tuple[frozenset[str] | None, frozenset[str] | None], ...]


@dataclass(frozen=True, slots=True)
class ClosedSource:
    """What `base` entails by `rules` beyond what `background`, closed itself, holds already (without one: all of it); `name` tells it from
    all others. What the base is made of says when its facts hold: at all times those of graphs, at each T those of windows, and between the
    points of their facts those of `ValiditySource`; of items each holds in its own graph. `by_representatives`: while it is computed one of
    the terms that are owl:sameAs each other stands for all. With an `exchange` shards make it together."""

    name: str
    base: tuple[Base, ...]
    background: ClosedSource | None = None
    rules: tuple[Rule, ...] = field(default=(), compare=False, repr=False)
    by_representatives: bool = False
    exchange: Exchange | None = field(default=None, compare=False, repr=False)

    @property
    def is_static(self) -> bool:
        """Whether its facts hold at all times."""
        return all(isinstance(part, StaticSource) for part in self.base)

    @property
    def has_intervals(self) -> bool:
        """Whether its facts hold between points of their own."""
        return any(isinstance(part, ValiditySource) for part in self.base)

    @property
    def has_items(self) -> bool:
        """Whether each item of a window is closed by itself."""
        return any(isinstance(part, ItemsSource) for part in self.base)

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that say of which T, and of which item, a fact is."""
        return (() if self.is_static or self.has_intervals else ("tick",)) + (("g",) if self.has_items else ())

    @property
    def view_lengths(self) -> tuple[int, ...]:
        """The lengths in ms of the Windows of rules that see something of their own."""
        return tuple(sorted({part.length_ms for part in self.base if isinstance(part, ViewSource)}))


@dataclass(frozen=True, slots=True)
class RestSource:
    """What a closure shows and another does not: `hidden` is what is known without it."""

    closed: ClosedSource
    hidden: ClosedSource


@dataclass(frozen=True, slots=True)
class ShareSource:
    """The facts of a closure with subjects of a shard's share."""

    source: ClosedSource | RestSource


@dataclass(frozen=True, slots=True)
class AtomsSource:
    """All that closures hold at T, atoms of other predicates than triples too."""

    parts: tuple[ClosedSource, ...]


@dataclass(frozen=True, slots=True)
class KnownSource:
    """What is known so far while `closed` is computed, its background included. Of what it has kept those `beside` what is new will do:
    rows with a subject or object that something new has as one of them."""

    closed: ClosedSource
    beside: bool = False


@dataclass(frozen=True, slots=True)
class FreshSource:
    """What the last round found while `closed` is computed."""

    closed: ClosedSource


@dataclass(frozen=True, slots=True)
class StarSource:
    """Of what is known while `closed` is computed the triples of some `properties` with a subject of which the last round found one.
    A property is known by its place among them, too (engine/sql/emit.py)."""

    closed: ClosedSource
    properties: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BoundsSource:
    """When window number `index` opens and closes, at each evaluation time."""

    index: int


@dataclass(frozen=True, slots=True)
class KeptSource:
    """The solutions of `scans` with `filters`, kept with the times of their oldest and newest facts of each window; at T those that the
    statement's `windows` show. The scans count their windows among these, `streams` are the IRIs of what they read, with the keys by which
    shards have it; `name` follows from scans, filters and streams. Of the variables `typed` ones the typed columns are read."""

    name: str
    scans: tuple[Scan, ...] = field(compare=False, repr=False)
    filters: tuple[Expression, ...] = field(compare=False, repr=False)
    streams: tuple[tuple[str, Key], ...]
    windows: tuple[int, ...]
    typed: frozenset[Variable] = frozenset()

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Every variable of the scans, in the order in which they come."""
        return scan_variables(*self.scans)

    @property
    def objects(self) -> dict[Variable, int]:
        """The variables that have typed columns, each with the number of a scan that has it as object: what is a subject or a property,
        too, has no value."""
        found, others = dict[Variable, int](), {term for scan in self.scans for term in (scan.subject, scan.predicate)}
        for number, scan in enumerate(self.scans):
            if isinstance(scan.object, Variable) and scan.object not in others:
                found.setdefault(scan.object, number)
        return found


Source = (Base | MergedSource | ClosedSource | RestSource | ShareSource | AtomsSource | KnownSource | FreshSource | StarSource
          | BoundsSource | KeptSource)


@dataclass(frozen=True, slots=True)
class Unit:
    """The single empty solution."""


@dataclass(frozen=True, slots=True)
class Scan:
    """The matches of one triple pattern; `graph` restricts or binds the graph name, None does not look at it. While rules are applied, an
    atom of another predicate is a row too: `rest` are its terms from the third on. In a closure with views only rows whose `sight` has a
    bit of this one are read."""

    source: Source
    subject: PatternTerm
    predicate: PatternTerm
    object: PatternTerm
    graph: Term | None = None
    origin: tuple[str, ...] = ()
    rest: tuple[Term, ...] = ()
    sight: int = 0

    @property
    def terms(self) -> tuple[PatternTerm, PatternTerm, PatternTerm]:
        return self.subject, self.predicate, self.object


@dataclass(frozen=True, slots=True)
class Sample:
    """What is kept in `source` and seen at T, its variables under other names, in their order."""

    source: KeptSource
    variables: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Nodes:
    """All subjects and objects of a source, bound to `variable`: the ends of zero-length paths."""

    source: Source
    variable: Variable
    graph: Term | None = None


@dataclass(frozen=True, slots=True)
class Reach:
    """The transitive closure of the pairs `ends` of `step`, within each graph, as a set of pairs (`first`, `last`). It is extended at
    `last`. With a `seed`, a plan with the variable `first`, it starts from the values that `first` has there; the seed is part of what the
    closure is joined with, so it takes nothing from an answer."""

    step: Plan
    ends: tuple[Variable, Variable]
    first: Variable
    last: Variable
    graph: Variable | None = None
    seed: Plan | None = None


@dataclass(frozen=True, slots=True)
class Stamps:
    """The latest time stamp of each triple (`terms`) of a source as `variable`; without terms, of each of its items (`graph`)."""

    source: Source
    variable: Variable
    terms: tuple[Variable, ...]
    graph: Term | None = None


@dataclass(frozen=True, slots=True)
class WindowTimes:
    """When the windows open (or close) as `variable`, by the `name` of the window; `windows` are (name token, index)."""

    windows: tuple[tuple[str, int], ...]
    opens: bool
    name: Variable
    variable: Variable


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
    """The pairs of compatible solutions (section 18.5)."""

    left: Plan
    right: Plan


@dataclass(frozen=True, slots=True)
class LeftJoin:
    """OPTIONAL without a condition."""

    left: Plan
    right: Plan


@dataclass(frozen=True, slots=True)
class Otherwise:
    """OPTIONAL with a condition: the rows of `matched` (`left` joined and filtered), and the rows of `left` that are in none. `rebound` are
    the variables of `left` that the join may have bound: what they were before is in another variable of `left`."""

    left: Plan
    matched: Plan
    rebound: frozenset[Variable] = frozenset()


@dataclass(frozen=True, slots=True)
class Lookup:
    """Each row with what `table` has for the values of `keys`, if all are bound: at most one row."""

    input: Plan
    table: Stamps | WindowTimes
    keys: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Minus:
    """SPARQL's MINUS; variables in `ignored` must agree, but do not count as shared: those that EXISTS substitutes, the name of the
    graph around."""

    left: Plan
    right: Plan
    ignored: frozenset[Variable] = frozenset()


@dataclass(frozen=True, slots=True)
class Filter:
    """The solutions for which `condition` is true; an error is not (section 17.2)."""

    input: Plan
    condition: Expression


@dataclass(frozen=True, slots=True)
class Extend:
    """`variable` bound to the value of `expression`, unbound where that is an error (BIND; section 18.5, Extend)."""

    input: Plan
    variable: Variable
    expression: Expression


@dataclass(frozen=True, slots=True)
class Union:
    """The solutions of both, as a bag."""

    left: Plan
    right: Plan


@dataclass(frozen=True, slots=True)
class Values:
    """Inline data: a cell for each of `variables` in each row, None for UNDEF."""

    variables: tuple[Variable, ...]
    rows: tuple[tuple[Constant | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Given:
    """What queries of one shape differ in (engine/plan/shape.py): relation `name` has rows for each of their evaluations, `columns` those
    of the variables, whose values have these kinds (engine/functions/typed.py)."""

    name: str
    variables: tuple[Variable, ...]
    columns: tuple[str, ...]
    certain: frozenset[Variable]
    kinds: tuple[frozenset[int], ...]


@dataclass(frozen=True, slots=True)
class Gather:
    """The solutions that all shards have, each of which evaluates `input` over its share of the facts."""

    input: Plan


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One row per group of `keys` and evaluation time; `implicit` gives a row even for no input."""

    input: Plan
    keys: tuple[Variable, ...]
    aggregates: tuple[tuple[Variable, AggregateCall], ...]
    implicit: bool


@dataclass(frozen=True, slots=True)
class Project:
    """The solutions with these variables only, as a bag."""

    input: Plan
    variables: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Distinct:
    """Each solution once."""

    input: Plan


@dataclass(frozen=True, slots=True)
class Order:
    """The solutions ranked by (condition, descending), the first condition first; ties have one rank (section 15.1)."""

    input: Plan
    conditions: tuple[tuple[Expression, bool], ...]


@dataclass(frozen=True, slots=True)
class Slice:
    """At most `limit` solutions (None: all) after the first `offset`, of each evaluation time; where queries of one shape have limits of
    their `own`, `limit` is an upper bound."""

    input: Plan
    offset: int
    limit: int | None
    own: Given | None = None


@dataclass(frozen=True, slots=True)
class Seed:
    """Inside EXISTS: the distinct values of `variables` in the outer solutions, substituted into the pattern."""

    outer: Plan
    variables: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """`input` with a truth value `variable`: whether `inner`, seeded by `seed`, has a solution for the row's values. One that is not
    `seeded` binds the variables of the seed by itself, and so does `input`."""

    input: Plan
    inner: Plan
    variable: Variable
    seed: Seed
    seeded: bool = True


@dataclass(frozen=True, slots=True)
class Begun:
    """The facts that rules of a `role` derive in a closure with intervals and that begin at T, each with its end; without those that an
    earlier row says hold as long."""

    source: ClosedSource
    role: Role
    variables: tuple[Variable, ...]


Plan = (Unit | Begun | TimedPlan | Scan | Sample | Nodes | Reach | Stamps | WindowTimes | Star | Join | LeftJoin | Otherwise
        | Lookup | Minus | Filter | Extend | Union | Values | Given | Gather | Aggregate | Project | Distinct | Order | Slice | Seed | Mark)


def inputs(plan: Plan) -> tuple[Plan, ...]:
    """The plans directly below, in order; one that stands below as well as beside (a seed, the left of Otherwise) once."""
    match plan:
        case Unit() | Begun() | TimedPlan() | Scan() | Sample() | Nodes() | Values() | Given() | Seed() | Stamps() | WindowTimes():
            return ()
        case Star(scans=scans):
            return scans
        case Reach(step=step):
            return (step,)
        case Join() | LeftJoin() | Minus() | Union():
            return plan.left, plan.right
        case Otherwise(matched=matched):
            return (matched,)
        case Lookup():
            return plan.input, plan.table
        case Slice(own=Given() as own):
            return plan.input, own
        case Mark():
            return plan.input, plan.inner
    return (plan.input,)


def walk(plan: Plan) -> Iterator[Plan]:
    """A plan and all below it."""
    yield plan
    for below in inputs(plan):
        yield from walk(below)


def scans_of(plan: Plan) -> Iterator[Scan]:
    return (below for below in walk(plan) if isinstance(below, Scan))


def scan_variables(*scans: Scan) -> tuple[Variable, ...]:
    """The variables of triple patterns and their graphs, in the order in which they come."""
    return tuple(dict.fromkeys(t for scan in scans for t in (*scan.terms, scan.graph) if isinstance(t, Variable)))


def joined(left: Plan, right: Plan) -> Plan:
    """The join of two plans; one of them where the other is the empty solution."""
    if isinstance(left, Unit):
        return right
    return left if isinstance(right, Unit) else Join(left, right)


def leaf_sources(source: Source) -> tuple[Base, ...]:
    """The windows and graphs that a source is made of, those of a closure's background included, and what timed rules derive."""
    match source:
        case MergedSource(parts=parts) | AtomsSource(parts=parts):
            return tuple(leaf for part in parts for leaf in leaf_sources(part))
        case ClosedSource(base=base, background=background):
            return (*base, *(leaf_sources(background) if background is not None else ()))
        case RestSource(closed=closed, hidden=hidden):
            return (*leaf_sources(closed), *leaf_sources(hidden))
        case ShareSource(source=shared):
            return leaf_sources(shared)
    return (source,) if isinstance(source, get_args(Base)) else ()


def own_leaves(source: Source) -> tuple[Base, ...]:
    """The windows and graphs that a source is made of, without those of closures."""
    match source:
        case MergedSource(parts=parts):
            return tuple(leaf for part in parts for leaf in own_leaves(part))
        case ClosedSource() | RestSource() | ShareSource() | AtomsSource():
            return ()
    return leaf_sources(source)


def windows_of(sources: Iterable[Source]) -> tuple[int, ...]:
    """The numbers of the windows that sources are made of."""
    numbers = (getattr(leaf, "index", None) for source in sources for leaf in leaf_sources(source))
    return tuple(sorted({number for number in numbers if number is not None}))


def closures(sources: Iterable[Source]) -> list[ClosedSource]:
    """The closures that sources are made of, each after those that it needs."""
    found: dict[ClosedSource, None] = {}
    for source in sources:
        match source:
            case MergedSource(parts=parts) | AtomsSource(parts=parts):
                found |= dict.fromkeys(closures(parts))
            case RestSource(closed=closed, hidden=hidden):
                found |= dict.fromkeys(closures((hidden, closed)))
            case ShareSource(source=shared):
                found |= dict.fromkeys(closures((shared,)))
            case ClosedSource(background=background):
                found |= dict.fromkeys([*closures([background] if background is not None else []), source])
    return list(found)


def sources(plan: Plan) -> frozenset[Source]:
    """Every source that the plan reads, merged ones included as such."""
    own: frozenset[Source] = frozenset((plan.source,)) if isinstance(plan, (Scan, Sample, Nodes, Stamps, Begun)) else frozenset()
    return own.union(*(sources(below) for below in inputs(plan)))


def with_below(plan: Plan, again: Callable[[Plan], Plan]) -> Plan:
    """The plan over what `again` makes of the plans in its fields; itself where that is what they are."""
    before = {own.name: value for own in fields(plan) if isinstance(value := getattr(plan, own.name), get_args(Plan))}
    found: dict[str, Any] = {name: again(value) for name, value in before.items()}
    return replace(plan, **found) if any(found[name] is not before[name] for name in before) else plan


def with_names(plan: Plan, name: Callable[[ClosedSource], str]) -> Plan:
    """The plan with other names for its closures."""
    return with_closures(plan, lambda closed: replace(closed, name=name(closed)))


def with_representatives(plan: Plan) -> Plan:
    """The plan with closures that are computed by representatives. Which terms are equal changes from T to T, so each T is closed by
    itself."""
    def changed(closed: ClosedSource) -> ClosedSource:
        base = tuple(WindowSource(part.index) if isinstance(part, ValiditySource) else part for part in closed.base)
        return replace(closed, name=f"{closed.name}_same", base=base, by_representatives=True)
    return with_closures(plan, changed)


def with_closures(plan: Plan, change: Callable[[ClosedSource], ClosedSource]) -> Plan:
    """The plan with other closures, each given over its changed background; what several nodes share they share still."""
    done: dict[int, tuple[Any, Any]] = {}
    kinds = {*get_args(Plan), *get_args(Source)}

    def again(part: Any) -> Any:
        if isinstance(part, tuple):
            return tuple(map(again, part))
        if type(part) not in kinds:
            return part
        if id(part) not in done:
            made = replace(part, **{own.name: again(getattr(part, own.name)) for own in fields(part)})
            done[id(part)] = part, change(made) if isinstance(part, ClosedSource) else made
        return done[id(part)][1]

    changed: Plan = again(plan)
    return changed
