"""Temporal Datalog: rules over facts with intervals, the one language behind every rule front end (docs/architecture.md,
"Rules and entailment").

A triple is the atom ``Atom(TRIPLE, (s, p, o))``; any other predicate has any arity, 0 included. Entailment profiles are those under which
rule documents import RDF graphs (RIF RDF and OWL Compatibility, section 5.1.1).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from engine.ir.expressions import Expression, variables_of
from engine.ir.spans import Placed, Span
from engine.ir.terms import Constant, Term, Variable
from engine.timeline import Interval

_ENTAILMENT = "http://www.w3.org/ns/entailment/"

SIMPLE, RDF_PROFILE, RDFS_PROFILE = f"{_ENTAILMENT}Simple", f"{_ENTAILMENT}RDF", f"{_ENTAILMENT}RDFS"
OWL_RL = "http://www.w3.org/ns/owl-profile/RL"
OWL_RDF_BASED, OWL_DIRECT = f"{_ENTAILMENT}OWL-RDF-Based", f"{_ENTAILMENT}OWL-Direct"
STREAM = "https://w3id.org/rsp/vocals#RDFStream"
"""The import is an RDF stream (the class of the W3C RSP group's vocabulary VoCaLS), not a graph."""

RANKS = {SIMPLE: 0, RDF_PROFILE: 1, RDFS_PROFILE: 2, OWL_RL: 3, OWL_RDF_BASED: 3}
"""Profiles by strength: the strongest one of a document holds for all its graphs. OWL-RDF-Based is taken as far as OWL 2 RL's rules go."""


TRIPLE = "triple"
OF_SUBCLASSES = "rif:subclass", "rif:member"
"""The names of the rules that say what ``##`` means (RIF-BLD, section 3.2); they stand in each rule set that asks for subclasses."""
NOT_UNIQUE = ".not-unique"
"""The name of the rule that finds where a name of a query is equal to another term (engine/rewrite/unique_names.py)."""
ALWAYS_HELD = ".always"
"""A predicate without terms that holds at every point: the body of a rule that asks for no atom."""
EVENT = ".event"
"""The triples that streams bring, at their instants and nothing else, for rules that tell them from what is derived."""
Role = Literal["written", "built-in", "goal"]
"""Where a rule comes from: a document, Thalweg itself, or what a query asks. No document can write it, as it can any name."""


@dataclass(frozen=True, slots=True)
class Atom(Placed):
    """``predicate(terms)``."""

    predicate: str
    terms: tuple[Term, ...]

    def __post_init__(self) -> None:
        if self.predicate == TRIPLE and len(self.terms) != 3:
            raise ValueError("a triple has three terms")


@dataclass(frozen=True, slots=True)
class DiamondMinus:
    """``body`` held at some point between `distance.lo` and `distance.hi` ago (encoded by timeline.operator)."""

    distance: Interval
    body: Formula


@dataclass(frozen=True, slots=True)
class BoxMinus:
    """``body`` held at all points between `distance.lo` and `distance.hi` ago."""

    distance: Interval
    body: Formula


@dataclass(frozen=True, slots=True)
class At:
    """``@x body``: binds or tests the instant, an xsd:integer of granules (`RuleSet.granularity_ms`)."""

    instant: Term
    body: Formula


@dataclass(frozen=True, slots=True)
class WindowFormula:
    """A LARS window around `body`: the last `size` granules, or tuples, of the stream; operators inside see only these."""

    unit: Literal["time", "tuple"]
    size: int
    body: Formula


@dataclass(frozen=True, slots=True)
class Negation:
    """Stratified ``not``."""

    body: Formula


@dataclass(frozen=True, slots=True)
class Test:
    """A comparison or built-in that must be true; an error is false."""

    condition: Expression


@dataclass(frozen=True, slots=True)
class Assign:
    """Binds `variable` to the value of `expression`; an error makes the body false."""

    variable: Variable
    expression: Expression


@dataclass(frozen=True, slots=True)
class Table:
    """A relation of constants: binds `variables` to each of `rows`, or tests them."""

    variables: tuple[Variable, ...]
    rows: tuple[tuple[Constant, ...], ...]


Formula = Atom | DiamondMinus | BoxMinus | At | WindowFormula | Negation | Test | Assign | Table


@dataclass(frozen=True, slots=True)
class BoxPlus:
    """In a head: holds at all points between `distance.lo` and `distance.hi` from now."""

    distance: Interval
    body: Atom


@dataclass(frozen=True, slots=True)
class Falsum:
    """The head ``false``: an inconsistency, reported beside the answers."""


Head = Atom | BoxPlus | At | Falsum


@dataclass(frozen=True, slots=True)
class Rule(Placed):
    """``head <- body``; a conjunction holds where all its parts do. `window_ms` is Streaming RIF-Core's Window: it stretches
    each event of the input over the time from its instant on. `name` is for people: any document may write any; what a rule is to
    Thalweg stands in `role`."""

    head: Head
    body: tuple[Formula, ...]
    name: str | None = None
    window_ms: int | None = None
    origin: tuple[str, ...] = field(default=(), compare=False)
    role: Role = "written"

    def is_built_in(self, *names: str) -> bool:
        """Whether it is one of these rules of Thalweg's own; a document's rule of the same name is none."""
        return self.role == "built-in" and self.name in names


@dataclass(frozen=True, slots=True)
class Fact:
    """A ground atom valid during `interval`."""

    atom: Atom
    interval: Interval

    def __post_init__(self) -> None:
        if not all(isinstance(t, Constant) for t in self.atom.terms):
            raise ValueError("a fact is ground")


@dataclass(frozen=True, slots=True)
class Import(Placed):
    """Another document of a rule set: a rule set (no `profile`), or an RDF graph or stream taken under an entailment profile."""

    iri: str
    profile: str | None = None


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Rules with the timeline they speak of; `granularity_ms` 0 is dense time (every point counts). `unit_ms` is what 1 means where
    the text writes a time as a number; all times here are ms. At `window_span` stands their Window."""

    name: str
    rules: tuple[Rule, ...]
    facts: tuple[Fact, ...] = ()
    granularity_ms: int = 0
    start_at_ms: int | None = None
    imports: tuple[Import, ...] = ()
    unit_ms: int = 1_000
    window_span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def written(self) -> tuple[Rule, ...]:
        """The rules that stand in the text."""
        return tuple(rule for rule in self.rules if not rule.is_built_in(*OF_SUBCLASSES))


def is_auxiliary(predicate: str) -> bool:
    """Whether a predicate was made by a rewriting: no document can write one that begins so."""
    return predicate.startswith(".")


def relation_of(atom: Atom) -> tuple[str, str | None]:
    """The predicate of an atom, and of a triple the property, if that is known."""
    link = atom.terms[1] if atom.predicate == TRIPLE else None
    return atom.predicate, link.token if isinstance(link, Constant) else None


def tokens_of(term: Term, rule: Rule) -> frozenset[str] | None:
    """What a term of a rule can be, by its tables; None: anything."""
    if isinstance(term, Constant):
        return frozenset((term.token,))
    for table in rule.body:
        if isinstance(table, Table) and term in table.variables:
            return frozenset(row[table.variables.index(term)].token for row in table.rows)
    return None


def nested(part: Formula | Head) -> Iterator[Formula | Head]:
    """A formula or head and what it stands around, from outside to inside."""
    inner: Formula | Head | None = part
    while inner is not None:
        yield inner
        inner = getattr(inner, "body", None)


def atoms(formula: Formula | Head) -> Iterator[Atom]:
    """The atoms inside a formula or head."""
    return (inner for inner in nested(formula) if isinstance(inner, Atom))


def variables_in(part: Formula | Head) -> Iterator[Variable]:
    """The variables of a formula or head as they come, each as often as it stands there; those that an expression reads by their names."""
    for inner in nested(part):
        match inner:
            case Atom(terms=terms):
                yield from (term for term in terms if isinstance(term, Variable))
            case Test(condition=condition):
                yield from sorted(variables_of(condition))
            case Assign(variable=variable, expression=expression):
                yield from (*sorted(variables_of(expression)), variable)
            case Table(variables=variables):
                yield from variables
            case At(instant=Variable() as instant):
                yield instant


def rule_variables(formula: Formula | Head) -> frozenset[Variable]:
    """Variables of the atoms, instants and tables inside a formula or head."""
    if isinstance(formula, Atom):       # most are
        return frozenset(term for term in formula.terms if isinstance(term, Variable))
    computes = any(isinstance(inner, (Test, Assign)) for inner in nested(formula))
    return frozenset() if computes else frozenset(variables_in(formula))
