"""What must hold of a whole query, so that those who walk it need not care."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from engine.ir.expressions import Aggregate, Call, Exists
from engine.ir.patterns import Alternative, Inverse, OrderBy, PathPattern, Repeat, Sequence, TriplePattern, Values
from engine.ir.spans import Diagnostic, Span
from engine.ir.statement import Construct, Query
from engine.ir.terms import Constant, Variable

MAX_DEPTH = 250
MAX_PATTERNS = 200      # each is a relation of the SQL text, with a column for each variable so far
MAX_TEMPLATE = 1_000
MAX_VARIABLES = 500
MAX_ORDER = 50
MAX_CELLS = 20_000      # of VALUES; 64 KiB have fewer rows of one column

TEXT_LIMITS = {"depth": MAX_DEPTH, "patterns": MAX_PATTERNS, "template_triples": MAX_TEMPLATE, "variables": MAX_VARIABLES,
               "order_conditions": MAX_ORDER, "values_cells": MAX_CELLS}

_LEAVES = (TriplePattern, Variable, Constant, Span, str, int)


def too_deep(query: Query) -> Diagnostic | None:
    """A query so deep that walking it could exhaust the stack: long chains of operators or UNIONs lean to one side."""
    span: Span | None = None
    stack: list[tuple[Any, int, Span | None]] = [(query, 1, None)]
    while stack:
        node, depth, span = stack.pop()
        span = getattr(node, "span", None) or span
        if depth > MAX_DEPTH:
            return Diagnostic("nesting-too-deep", f"More than {MAX_DEPTH} operators or groups hang on one another.", span,
                              hint=_hint(node))
        for name in node.__dataclass_fields__:
            value = getattr(node, name)
            for child in value if isinstance(value, tuple) else (value,):
                if isinstance(child, tuple):    # ORDER BY and aggregates: pairs
                    stack.extend((part, depth + 1, span) for part in child if part is not None and not isinstance(part, _LEAVES))
                elif child is not None and not isinstance(child, _LEAVES):
                    stack.append((child, depth + 1, span))
    return None


def too_large(query: Query) -> Diagnostic | None:
    """A query of more parts than can be planned and run in a short time."""
    patterns = cells = 0
    variables: set[Variable] = set()
    stack: list[Any] = [query]
    while stack:
        node = stack.pop()
        if isinstance(node, (TriplePattern, PathPattern)):
            patterns += 1
        elif isinstance(node, Variable):
            variables.add(node)
        span = getattr(node, "span", None)
        if patterns > MAX_PATTERNS:
            return _too_many("triple patterns and paths", MAX_PATTERNS, span)
        if len(variables) > MAX_VARIABLES:
            return _too_many("variables", MAX_VARIABLES, getattr(query.pattern, "span", None))
        match node:
            case Construct(template=template, pattern=pattern):
                if len(template) > MAX_TEMPLATE:
                    return _too_many("triples in its template", MAX_TEMPLATE, template[MAX_TEMPLATE].span)
                stack.append(pattern)
                continue
            case OrderBy(conditions=conditions) if len(conditions) > MAX_ORDER:
                return _too_many("conditions in ORDER BY", MAX_ORDER, span)
            case Values(variables=columns, rows=rows):
                variables.update(columns)
                cells += len(rows) * len(columns)
                if cells > MAX_CELLS:
                    return _too_many("cells in VALUES", MAX_CELLS, span)
                continue
        stack.extend(reversed(list(_inside(node))))
    return None


def _inside(node: Any) -> Iterator[Any]:
    """What a node of the IR is made of, in order."""
    if isinstance(node, tuple):
        yield from node
    elif not isinstance(node, (Variable, Constant, Span, str, int)) and node is not None:
        yield from (getattr(node, name) for name in node.__dataclass_fields__)


def _too_many(what: str, most: int, span: Span | None) -> Diagnostic:
    return Diagnostic("query-too-large", f"The query has more {what} than it may have: the limit is {most}.", span)


def _hint(node: Any) -> str:
    if isinstance(node, (Call, Exists, Aggregate)):
        return "a long || of comparisons is shorter as ?x IN (...)"
    if isinstance(node, (Alternative, Sequence, Inverse, Repeat)):
        return "a long path alternative is shorter as ?p with VALUES ?p { ... }"
    return "a long UNION is often shorter with VALUES"
