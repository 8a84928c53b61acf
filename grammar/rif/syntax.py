"""The abstract syntax of RIF-Core documents, which both concrete syntaxes are read into.

It holds more than Core (functions, named arguments, negation ...), so that these are refused by name and not as misspellings.
Constants are terms already: prefixes and base are gone. Every part knows its place.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.ir.rules import Import
from engine.ir.spans import Span


@dataclass(frozen=True, slots=True)
class Var:
    """``?name``."""

    name: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Const:
    """A constant as its canonical N-Triples token."""

    token: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ListTerm:
    """``List(a b)``, or ``List(a | rest)``, which Core has not."""

    members: tuple[Term, ...]
    rest: Term | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Apply:
    """``op(args)``: an atom, or as a term the call of a function; `names` are those of named arguments."""

    op: Term
    args: tuple[Term, ...]
    names: tuple[str, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class External:
    """``External(call)``, a term or a formula."""

    call: Apply
    span: Span = field(compare=False, repr=False)


Term = Var | Const | ListTerm | Apply | External


@dataclass(frozen=True, slots=True)
class Frame:
    """``subject[slot -> value ...]``."""

    subject: Term
    slots: tuple[tuple[Term, Term], ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Pair:
    """``left # right``, ``left ## right`` or ``left = right``."""

    operator: str
    left: Term
    right: Term
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Connective:
    """``And(...)`` or ``Or(...)``."""

    word: str
    parts: tuple[Formula, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Quantified:
    """``Exists ?x ... (body)``."""

    variables: tuple[Var, ...]
    body: Formula
    span: Span = field(compare=False, repr=False)


FOREIGN = {**dict.fromkeys(("Naf", "Neg", "Not", "INeg"), "negation"), "Forall": "Forall in a formula",
           **dict.fromkeys(("Do", "Assert", "Retract", "Modify", "Execute", "New"), "an action"), "Dialect": "the choice of a dialect"}


@dataclass(frozen=True, slots=True)
class Foreign:
    """A construct of another dialect, one of FOREIGN."""

    name: str
    span: Span = field(compare=False, repr=False)

    @property
    def what(self) -> str:
        return f"{self.name} ({FOREIGN[self.name]})"


Formula = Apply | External | Frame | Pair | Connective | Quantified | Foreign


@dataclass(frozen=True, slots=True)
class Clause:
    """A rule or fact: ``Forall variables (head :- body)``; `body` None for a fact. `name` is its annotation's IRI."""

    variables: tuple[Var, ...]
    head: Formula
    body: Formula | None
    name: str | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Document:
    """The rules of all groups in order, what is imported, and Streaming RIF-Core's Window."""

    clauses: tuple[Clause, ...]
    imports: tuple[Import, ...]
    window_ms: int | None
    window_span: Span | None = None
