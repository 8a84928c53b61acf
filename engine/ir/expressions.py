"""Expressions of SPARQL and of rules: variables, constants, calls, EXISTS, aggregates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.ir.spans import Span
from engine.ir.terms import Constant, Variable

if TYPE_CHECKING:
    from engine.ir.patterns import Pattern


@dataclass(frozen=True, slots=True)
class Call:
    """A function applied to expressions. `function` is the upper-case SPARQL 1.1 name (``REGEX``, ``STRLEN``, ``IF``, ``COALESCE``,
    ``BOUND``, ``IN``, ``NOT IN``; ``IRI`` and ``ISIRI`` also for URI), an operator (``|| && ! = != < > <= >= + - * /``, unary ``U+ U-``),
    or ``<iri>`` for a cast or an extension function. ``IN``'s first argument is the tested one; ``IRI`` has the BASE of the text as its
    second, where there is one."""

    function: str
    args: tuple[Expression, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Exists:
    """EXISTS / NOT EXISTS (SPARQL 1.1 section 18.6, substitution)."""

    pattern: Pattern
    negated: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """COUNT, SUM, MIN, MAX, AVG, SAMPLE or GROUP_CONCAT; `expression` None is ``COUNT(*)``."""

    function: str
    expression: Expression | None
    distinct: bool = False
    separator: str = " "
    span: Span | None = field(default=None, compare=False, repr=False)


Expression = Variable | Constant | Call | Exists | Aggregate


def conj(*parts: Expression) -> Expression:
    """The one spelling of a conjunction: flat, left to right, ``true`` for none."""
    flat = [p for part in parts for p in conjuncts(part)]
    if not flat:
        return Constant('"true"^^<http://www.w3.org/2001/XMLSchema#boolean>')
    result = flat[0]
    for part in flat[1:]:
        result = Call("&&", (result, part))
    return result


def conjuncts(expression: Expression) -> Iterator[Expression]:
    """The parts of a conjunction, left to right."""
    if isinstance(expression, Call) and expression.function == "&&":
        for arg in expression.args:
            yield from conjuncts(arg)
    else:
        yield expression


def variables_of(expression: Expression) -> frozenset[Variable]:
    """Variables an expression reads; those inside EXISTS patterns are not counted."""
    match expression:
        case Variable():
            return frozenset((expression,))
        case Call(args=args):
            return frozenset().union(*(variables_of(a) for a in args))
        case Aggregate(expression=inner) if inner is not None:
            return variables_of(inner)
    return frozenset()


def is_iri(expression: Expression) -> bool:
    """Whether an expression is an IRI as it stands."""
    return isinstance(expression, Constant) and expression.token.startswith("<")


def exists_in(expression: Expression) -> Iterator[Exists]:
    """The EXISTS tests of an expression, left to right."""
    match expression:
        case Exists():
            yield expression
        case Call(args=args):
            for arg in args:
                yield from exists_in(arg)
        case Aggregate(expression=inner) if inner is not None:
            yield from exists_in(inner)
