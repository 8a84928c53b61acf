"""Terms, paths, expressions, durations and intervals as text; what printer.py and rule_printer.py are made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from engine.ir.expressions import Aggregate, Call, Exists, Expression
from engine.ir.patterns import Alternative, Inverse, Link, NegatedSet, Path, Repeat, Sequence
from engine.ir.terms import RDF_TYPE, XSD, Constant, OneOf, PatternTerm, Variable
from engine.timeline import MAX, MIN, Interval

if TYPE_CHECKING:
    from engine.ir.patterns import Pattern

UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))

_PLAIN = {"integer": r"[+-]?[0-9]+", "decimal": r"[+-]?[0-9]*\.[0-9]+", "boolean": "true|false",
          "double": r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)[eE][+-]?[0-9]+"}
_TYPED = re.compile(rf'"([^"\\]*)"\^\^<{re.escape(XSD)}(\w+)>')
_STRENGTH = {"||": 1, "&&": 2, "=": 3, "!=": 3, "<": 3, ">": 3, "<=": 3, ">=": 3, "IN": 3, "NOT IN": 3, "+": 4, "-": 4, "*": 5,
             "/": 5}
_UNARY = {"!": "!", "U+": "+", "U-": "-"}
_OPERAND, _PRIMARY = 6, 7


def duration(ms: int) -> str:
    """The shortest spelling in one unit: ``10s``, ``1500ms``, ``2h``; the canonical form of a duration."""
    if ms == 0:
        return "0s"
    return next(f"{ms // size}{unit}" for unit, size in UNITS if ms % size == 0)


def instant(ms: int) -> str:
    """An xsd:dateTime in UTC of the years 1 to 9999: ``2024-05-01T00:00:00Z``."""
    moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=ms)
    fraction = f".{ms % 1000:03d}" if ms % 1000 else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z".rjust(len("2024-05-01T00:00:00Z") + len(fraction), "0")


def interval(encoded: Interval, point: Callable[[int], str] = str) -> str:
    """An encoded interval with its brackets: ``[0,5)``; `point` prints a time in ms, an end without bound is infinite."""
    if encoded.lo == MIN:
        begin = "(-inf"
    else:
        begin = f"({point((encoded.lo - 1) // 2)}" if encoded.lo % 2 else f"[{point(encoded.lo // 2)}"
    if encoded.hi == MAX:
        end = "+inf)"
    else:
        end = f"{point((encoded.hi + 1) // 2)})" if encoded.hi % 2 else f"{point(encoded.hi // 2)}]"
    return f"{begin},{end}"


def term(item: PatternTerm) -> str:
    """A term as SPARQL writes it; the compiler's own variables as ``?.name``, OneOf as ``(<a> | <b>)``."""
    match item:
        case Variable(name=name):
            return name if name.startswith("_:") else f"?{name}"
        case OneOf(tokens=tokens):
            return f"({' | '.join(tokens)})"
    typed = _TYPED.fullmatch(item.token)
    if typed is not None and re.fullmatch(_PLAIN.get(typed[2], "(?!)"), typed[1]):
        return typed[1]
    return item.token


def predicate(item: PatternTerm) -> str:
    """A term in predicate position: rdf:type is ``a``."""
    return "a" if isinstance(item, Constant) and item.token == RDF_TYPE else term(item)


def path(item: Path) -> str:
    """A property path; brackets only where it would read back otherwise."""
    return _path(item, 0)


def _path(item: Path, strength: int) -> str:
    match item:
        case Link(predicate=link):
            return predicate(link)
        case NegatedSet(forward=forward, backward=backward):
            parts = [predicate(iri) for iri in forward] + [f"^{predicate(iri)}" for iri in backward]
            return f"!{parts[0]}" if len(parts) == 1 else f"!({'|'.join(parts)})"
        case Alternative(first=first, second=second):
            text, own = f"{_path(first, 1)}|{_path(second, 2)}", 1
        case Sequence(first=first, second=second):
            text, own = f"{_path(first, 2)}/{_path(second, 3)}", 2
        case Inverse(path=inner):
            text, own = f"^{_path(inner, 4)}", 3
        case Repeat(path=inner, least=least, most=most):
            mark = "?" if most == 1 else "+" if least else "*"
            text, own = f"{_path(inner, 5)}{mark}", 4
    return text if own >= strength else f"({text})"


class Expressions:
    """Prints expressions. `named` is text that stands for a variable (an aggregate's); `group` prints a group with braces."""

    def __init__(self, group: Callable[[Pattern], str], named: Mapping[Variable, str] | None = None) -> None:
        self._group = group
        self._named = named or {}

    def show(self, item: Expression, strength: int = 0) -> str:
        """The expression, in brackets where it binds less than `strength`."""
        match item:
            case Variable() | Constant():
                return self._named.get(item) or term(item) if isinstance(item, Variable) else term(item)
            case Exists(pattern=pattern, negated=negated):
                return f"{'NOT ' if negated else ''}EXISTS {self._group(pattern)}"
            case Aggregate():
                return self._aggregate(item)
            case Call():
                text, own = self._call(item)
                return text if own >= strength else f"({text})"

    def _call(self, call: Call) -> tuple[str, int]:
        function, args = call.function, call.args
        if function in _UNARY and len(args) == 1:
            operand = self.show(args[0], _PRIMARY)
            if operand[0] in "0123456789.+-":   # -1 would be a number, not the minus of one
                operand = f"({operand})"
            return f"{_UNARY[function]}{operand}", _OPERAND
        own = _STRENGTH.get(function)
        if function == "IRI":
            args = args[:1]     # the second is the text's BASE, which the statement prints
        if own is None:
            return f"{function}({', '.join(self.show(arg) for arg in args)})", _PRIMARY
        left = self.show(args[0], own + (own == 3))
        if function.endswith("IN"):
            return f"{left} {function} ({', '.join(self.show(arg) for arg in args[1:])})", own
        return f"{left} {function} {self.show(args[1], own + 1)}", own

    def _aggregate(self, item: Aggregate) -> str:
        inner = "*" if item.expression is None else self.show(item.expression)
        separator = ""
        if item.function == "GROUP_CONCAT" and item.separator != " ":
            separator = f"; SEPARATOR = {quoted(item.separator)}"
        return f"{item.function}({'DISTINCT ' if item.distinct else ''}{inner}{separator})"


def quoted(text: str) -> str:
    """A string of SPARQL."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"' + "".join(escapes.get(c) or (f"\\u{ord(c):04X}" if c < " " else c) for c in text) + '"'
