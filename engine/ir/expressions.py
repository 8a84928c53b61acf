"""Expressions of SPARQL and of rules: variables, constants, calls, EXISTS, aggregates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from engine.ir.spans import Placed
from engine.ir.terms import Constant, Variable

if TYPE_CHECKING:
    from engine.ir.patterns import Pattern


@dataclass(frozen=True, slots=True)
class Call(Placed):
    """A function applied to expressions. `function` is the upper-case SPARQL 1.1 name (``REGEX``, ``STRLEN``, ``IF``, ``COALESCE``,
    ``BOUND``, ``IN``, ``NOT IN``; ``IRI`` and ``ISIRI`` also for URI), an operator (``|| && ! = != < > <= >= + - * /``, unary ``U+ U-``),
    or ``<iri>`` for a cast or an extension function. ``IN``'s first argument is the tested one; ``IRI`` has the BASE of the text as its
    second, where there is one."""

    function: str
    args: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Exists(Placed):
    """EXISTS / NOT EXISTS (SPARQL 1.1 section 18.6, substitution)."""

    pattern: Pattern
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Aggregate(Placed):
    """COUNT, SUM, MIN, MAX, AVG, SAMPLE or GROUP_CONCAT; `expression` None is ``COUNT(*)``."""

    function: str
    expression: Expression | None
    distinct: bool = False
    separator: str = " "


Expression = Variable | Constant | Call | Exists | Aggregate


def conj(*parts: Expression) -> Expression:
    """The one spelling of a conjunction: flat, left to right, ``true`` for none."""
    flat = [p for part in parts for p in conjuncts(part)]
    if not flat:
        return Constant('"true"^^<http://www.w3.org/2001/XMLSchema#boolean>')
    return reduce(lambda before, part: Call("&&", (before, part)), flat)


def conjuncts(expression: Expression) -> Iterator[Expression]:
    """The parts of a conjunction, left to right."""
    return operands("&&", expression)


def operands(word: str, expression: Expression) -> Iterator[Expression]:
    """The parts of a chain of ``&&`` or ``||``, left to right, without recursion on it: it leans to the left."""
    waiting = [expression]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Call) and part.function == word:
            waiting.extend(reversed(part.args))
        else:
            yield part


def walk(expression: Expression) -> Iterator[Expression]:
    """An expression and all those inside it, inner ones first, left to right; those of EXISTS patterns are not counted."""
    waiting, found = [expression], list[Expression]()
    while waiting:
        found.append(part := waiting.pop())
        match part:
            case Call(args=args):
                waiting += args
            case Aggregate(expression=inner) if inner is not None:
                waiting.append(inner)
    return reversed(found)


def with_parts(expression: Expression, again: Callable[[Expression], Expression]) -> Expression:
    """An expression with `again` of each of those right inside it; itself where there are none."""
    match expression:
        case Call(args=args):
            return replace(expression, args=tuple(map(again, args)))
        case Aggregate(expression=inner) if inner is not None:
            return replace(expression, expression=again(inner))
    return expression


def variables_of(expression: Expression) -> frozenset[Variable]:
    """Variables an expression reads; those inside EXISTS patterns are not counted."""
    return frozenset(part for part in walk(expression) if isinstance(part, Variable))


def is_iri(expression: Expression) -> bool:
    """Whether an expression is an IRI as it stands."""
    return isinstance(expression, Constant) and expression.token.startswith("<")


def exists_in(expression: Expression) -> Iterator[Exists]:
    """The EXISTS tests of an expression, left to right."""
    return (part for part in walk(expression) if isinstance(part, Exists))
