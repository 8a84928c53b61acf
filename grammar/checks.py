"""What must hold of a whole query, so that those who walk it need not care."""

from __future__ import annotations

from typing import Any

from engine.ir.expressions import Aggregate, Call, Exists
from engine.ir.patterns import Alternative, Inverse, Repeat, Sequence, TriplePattern
from engine.ir.spans import Diagnostic, Span
from engine.ir.statement import Query
from engine.ir.terms import Constant, Variable

MAX_DEPTH = 250

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


def _hint(node: Any) -> str:
    if isinstance(node, (Call, Exists, Aggregate)):
        return "a long || of comparisons is shorter as ?x IN (...)"
    if isinstance(node, (Alternative, Sequence, Inverse, Repeat)):
        return "a long path alternative is shorter as ?p with VALUES ?p { ... }"
    return "a long UNION is often shorter with VALUES"
