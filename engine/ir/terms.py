"""Terms: variables, constants as canonical N-Triples tokens, and lists of admitted constants."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Variable:
    """A variable by its name without mark. Names that start with ``_:`` are a pattern's blank nodes: never projected by ``*``;
    names that start with ``.`` are the compiler's own."""

    name: str

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a variable needs a name")

    @property
    def visible(self) -> bool:
        """Whether ``SELECT *`` shows it."""
        return not self.name.startswith(("_:", "."))


@dataclass(frozen=True, slots=True, order=True)
class Constant:
    """An RDF term as its canonical N-Triples token: ``<iri>``, ``_:b``, ``"lex"``, ``"lex"@en``, ``"lex"^^<datatype>``."""

    token: str

    def __post_init__(self) -> None:
        if not self.token or self.token[0] not in '<_"':
            raise ValueError(f"not an N-Triples token: {self.token!r}")


@dataclass(frozen=True, slots=True)
class OneOf:
    """In a triple pattern: any of these constants, not bound to a variable (what a class hierarchy unfolds to)."""

    tokens: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.tokens or list(self.tokens) != sorted(set(self.tokens)):
            raise ValueError("OneOf needs sorted, distinct tokens")


Term = Variable | Constant
PatternTerm = Variable | Constant | OneOf

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
XSD = "http://www.w3.org/2001/XMLSchema#"
RDF_TYPE = f"<{RDF}type>"


def one_of(tokens: frozenset[str] | set[str]) -> Constant | OneOf:
    """The one spelling of "any of these": a single token is a plain constant."""
    ordered = tuple(sorted(tokens))
    return Constant(ordered[0]) if len(ordered) == 1 else OneOf(ordered)
