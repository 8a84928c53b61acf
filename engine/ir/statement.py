"""A registered statement: its windows, sources, reporting and query form."""

from dataclasses import dataclass, field
from typing import Literal

from engine.ir.patterns import BGP, Pattern, TriplePattern
from engine.ir.rules import RuleSet
from engine.ir.spans import Placed
from engine.ir.terms import Term, Variable


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """``[RANGE range STEP step]``: at a close C the events with ``C - delay - range <= t < C - delay`` (all in ms). `delay` is the b of
    ``[FROM NOW-a TO NOW-b]``, whose range is a - b."""

    range_ms: int
    step_ms: int
    delay_ms: int = 0

    def __post_init__(self) -> None:
        if self.range_ms <= 0 or self.step_ms <= 0 or self.delay_ms < 0:
            raise ValueError("a window needs a positive RANGE and STEP")


@dataclass(frozen=True, slots=True)
class TupleWindow:
    """``[TRIPLES n]`` or ``[ITEMS n]``: the last n distinct (triple, t), or items, before T in the order (t, canonical token)."""

    count: int
    unit: Literal["triples", "items"]

    def __post_init__(self) -> None:
        if self.count <= 0:
            raise ValueError("a tuple window needs a positive count")


@dataclass(frozen=True, slots=True)
class NowWindow:
    """``[NOW]``: the events of the latest instant before T."""


@dataclass(frozen=True, slots=True)
class AllWindow:
    """``[ALL]``: every event since registration."""


@dataclass(frozen=True, slots=True)
class Instants:
    """Each event at its own instant, and nothing else there: how a rule program with a time of its own sees a stream."""


Window = TimeWindow | TupleWindow | NowWindow | AllWindow | Instants


@dataclass(frozen=True, slots=True)
class StreamSource(Placed):
    """A window on a stream: into the default graph where `name` is None, else the named window `name` (an IRI, no brackets)."""

    stream: str
    window: Window
    name: str | None = None


@dataclass(frozen=True, slots=True)
class GraphSource(Placed):
    """``FROM iri`` or ``FROM NAMED iri``: a static graph of the catalog."""

    iri: str
    named: bool = False


@dataclass(frozen=True, slots=True)
class RuleSource(Placed):
    """A rule set named by ``USING RULES``."""

    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """SELECT; `pattern` is a Project, Distinct, or Slice on top (ORDER BY below the Project)."""

    pattern: Pattern
    variables: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Construct:
    """CONSTRUCT; blank nodes of the template are Variables ``_:label``, fresh in each solution."""

    template: tuple[TriplePattern, ...]
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class Ask:
    """ASK: whether the pattern has a solution."""

    pattern: Pattern


@dataclass(frozen=True, slots=True)
class Describe:
    """DESCRIBE of IRIs, and of what variables of the pattern are bound to."""

    terms: tuple[Term, ...]
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class Program:
    """A rule program as a query of its own: the facts that its rules derive, each with the time during which it holds. What follows from
    its streams and graphs under the entailment `profile` (an IRI of engine/ir/rules.py) is there for the written rules to use, as are the
    classes of members by ``##``, but is no answer. `variables` are the columns of a fact and ``from until`` at the end."""

    rules: RuleSet
    profile: str | None
    variables: tuple[Variable, ...]

    @property
    def pattern(self) -> Pattern:
        """It has none: what it asks is in its rules."""
        return BGP(())


@dataclass(frozen=True, slots=True)
class TimedProgram(Program):
    """A rule program with a time of its own: its rules look back in time, or count in granules. All events are there for it, each at its
    instant; a fact is told when it begins (stream P) and when it ceases (stream N), not how long it will last."""

    @property
    def grain_ms(self) -> int:
        """What happens at a point t is final once the watermark is at t + this many ms."""
        return self.rules.granularity_ms or 1


SparqlQuery = Select | Construct | Ask | Describe
Query = SparqlQuery | Program

# The graphs that stand for what a statement knows beside its streams, and for what of it is there to reason with only; the compiler
# alone writes them into patterns.
BACKGROUND = "urn:thalweg:background"
REASONING = "urn:thalweg:reasoning"
BEHIND = frozenset((BACKGROUND, REASONING))

# What the names of windows begin with that a STREAM block makes for itself.
OWN_WINDOW = "urn:window:"

Output = Literal["rstream", "istream", "dstream"]
Report = Literal["close", "change", "full"]


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of the grammar in docs/sparql.md. Durations and times in ms; IRIs without brackets. `registered` is False for a plain
    SPARQL query. `dialect` is what the grammar calls the language of the text, to be shown. `report` "close" evaluates at window closes or
    every `compute_every_ms`. `timed_rules`: some of the rule sets have a time of their own, and see the whole streams. `rule_windows` are
    those through which rules with a Window of their own see the streams: for each such Window one beside each of `streams`
    (engine/ir/windows.py)."""

    query: Query
    text: str = field(repr=False)
    name: str | None = None
    kind: Literal["query", "stream"] = "query"
    registered: bool = True
    dialect: str = "sparql"
    output: Output = "rstream"
    report: Report = "close"
    compute_every_ms: int | None = None
    start_at_ms: int = 0
    streams: tuple[StreamSource, ...] = ()
    graphs: tuple[GraphSource, ...] = ()
    rules: tuple[RuleSource, ...] = ()
    reasoning_graphs: tuple[GraphSource, ...] = ()
    rule_windows: tuple[StreamSource, ...] = ()
    timed_rules: bool = False

    @property
    def windows(self) -> tuple[StreamSource, ...]:
        """All windows that something is seen through."""
        return self.streams + self.rule_windows

    @property
    def on_change(self) -> bool:
        """Whether it is evaluated once per distinct event time: REPORT ON CHANGE, or nothing else says when."""
        timed = any(isinstance(source.window, TimeWindow) for source in self.streams)
        return self.report == "change" or (not timed and self.compute_every_ms is None)

    @property
    def expires(self) -> bool:
        """Whether something may be reported because an event leaves a window, without any other that comes."""
        return self.on_change and (self.output == "dstream" or isinstance(self.query, Program))

    @property
    def may_be_empty(self) -> bool:
        """Whether all its windows may be empty at an evaluation time after its first."""
        windows = [source.window for source in self.streams]
        if self.on_change:
            return self.expires or all(isinstance(window, TimeWindow) and window.delay_ms for window in windows)
        return all(isinstance(window, TimeWindow) for window in windows)

    @property
    def is_timed(self) -> bool:
        """Whether it is a rule program with a time of its own."""
        return isinstance(self.query, TimedProgram)

    @property
    def keeps_state(self) -> bool:
        """Whether what it has derived cannot be had again from what its windows show."""
        return self.is_timed or self.timed_rules

    @property
    def form(self) -> str:
        """``SELECT``, ``CONSTRUCT``, ``ASK``, ``DESCRIBE`` or ``PROGRAM``."""
        return "PROGRAM" if isinstance(self.query, Program) else type(self.query).__name__.upper()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its answer: the variables of a SELECT or a rule program; s, p, o of a graph; none of ASK."""
        if isinstance(self.query, (Select, Program)):
            return tuple(variable.name for variable in self.query.variables)
        return () if isinstance(self.query, Ask) else ("s", "p", "o")
