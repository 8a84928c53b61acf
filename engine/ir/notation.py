"""Terms, paths, expressions, durations, intervals and rules as text: ``[?x a <c>] <- diamond-minus[0s,5s] [?x <p> ?y], not q(?y) .``"""

import re
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timezone
from functools import lru_cache

from engine.ir.expressions import Aggregate, Call, Exists, Expression, walk
from engine.ir.patterns import Alternative, Inverse, Link, NegatedSet, Path, Pattern, Repeat, Sequence
from engine.ir.rules import (TRIPLE, Assign, At, Atom, BoxMinus, BoxPlus, DiamondMinus, Falsum, Formula, Head, Negation, Rule, RuleSet,
                             Table, Test, WindowFormula)
from engine.ir.terms import RDF_TYPE, XSD, Constant, OneOf, PatternTerm, Term, Variable, quote
from engine.timeline import MAX, MIN, Interval, days_from_civil

UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))

_PLAIN = {"integer": r"[+-]?[0-9]+", "decimal": r"[+-]?[0-9]*\.[0-9]+", "boolean": "true|false",
          "double": r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)[eE][+-]?[0-9]+"}
NUMBERS = {"integer": r"[+-]?[0-9]+", "decimal": r"[+-]?[0-9]+\.[0-9]+", "double": r"[+-]?[0-9]+(?:\.[0-9]+)?[eE][+-]?[0-9]+",
           "boolean": "true|false"}
"""What stands without quotes in languages of rules, by the local names of its XSD types."""
_TYPED = re.compile(rf'"([^"\\]*)"\^\^<{re.escape(XSD)}(\w+)>')
STRENGTH = {"||": 1, "&&": 2, "=": 3, "!=": 3, "<": 3, ">": 3, "<=": 3, ">=": 3, "IN": 3, "NOT IN": 3, "+": 4, "-": 4, "*": 5, "/": 5}
"""How strongly binary operators bind (SPARQL 1.1 grammar, rules 110 to 117)."""
_UNARY = {"!": "!", "U+": "+", "U-": "-"}
_OPERAND, _PRIMARY = 6, 7
_DATE_TIME = re.compile(r"(-?\d{4,9})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)?", re.ASCII)
_DAY_MS = 86_400_000


def duration(ms: int) -> str:
    """The shortest spelling in one unit: ``10s``, ``1500ms``, ``2h``; the canonical form of a duration."""
    if ms == 0:
        return "0s"
    return next(f"{ms // size}{unit}" for unit, size in UNITS if ms % size == 0)


@lru_cache(maxsize=4_096)   # many results have one T
def instant(ms: int) -> str:
    """An xsd:dateTime in UTC of the years 1 to 9999: ``2024-05-01T00:00:00Z``."""
    whole, rest = divmod(ms, 1000)
    text = datetime.fromtimestamp(whole, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    return f"{text}.{rest:03d}Z" if rest else f"{text}Z"


def date_time_ms(text: str) -> int | None:
    """Milliseconds since the epoch of an xsd:dateTime, UTC where it has no zone; digits beyond ms are cut off; None where it is none. Years
    0 and beyond four digits follow the proleptic Gregorian calendar (XSD 1.1, section 3.3.7)."""
    found = _DATE_TIME.fullmatch(text.strip())
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    try:
        days = days_from_civil(year, month, day)
    except ValueError:
        return None
    if minute > 59 or second > 59 or hour > 24 or (hour == 24 and (minute or second or (found[7] or "0").strip("0"))):
        return None
    offset = _offset_minutes(found[8])
    if offset is None:
        return None
    ms = int((found[7] or "0").ljust(3, "0")[:3])
    return days * _DAY_MS + ((hour * 60 + minute - offset) * 60 + second) * 1000 + ms


def _offset_minutes(zone: str | None) -> int | None:
    if zone is None or zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    if minutes > 59 or hours > 14 or (hours == 14 and minutes):
        return None
    return (hours * 60 + minutes) * (-1 if zone[0] == "-" else 1)


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
    return bare(item.token, _PLAIN)


def bare(token: str, forms: Mapping[str, str]) -> str:
    """A token as it stands in a text; one with a lexical form of `forms` (patterns by the local name of its type) is that form alone."""
    typed = _TYPED.fullmatch(token)
    return typed[1] if typed is not None and re.fullmatch(forms.get(typed[2], "(?!)"), typed[1]) else token


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
    """Prints expressions. `named` is text that stands for a term (an aggregate's variable); `group` prints a group with braces."""

    def __init__(self, group: Callable[[Pattern], str], named: Mapping[Term, str] | None = None) -> None:
        self._group = group
        self._named = named or {}

    def show(self, item: Expression, strength: int = 0) -> str:
        """The expression, in brackets where it binds less than `strength`."""
        match item:
            case Variable() | Constant():
                return self._named.get(item) or term(item)
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
        own = STRENGTH.get(function)
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
            separator = f"; SEPARATOR = {quote(item.separator)}"
        return f"{item.function}({'DISTINCT ' if item.distinct else ''}{inner}{separator})"


def arithmetic(expression: Expression, operators: Collection[str], written: Callable[[Term], str]) -> str:
    """An expression with its terms as a language writes them. Raises ValueError where there is more in it than these operators."""
    inside = list(walk(expression))
    if any(part.function not in operators if isinstance(part, Call) else not isinstance(part, (Variable, Constant)) for part in inside):
        raise ValueError(f"not in this language: {expression}")
    named = {part: written(part) for part in inside if isinstance(part, (Variable, Constant))}
    return Expressions(lambda pattern: "", named).show(expression)


_OPERATORS = {DiamondMinus: "diamond-minus", BoxMinus: "box-minus", BoxPlus: "box-plus"}
ShowGroup = Callable[[Pattern], str]


def show_rule(rule: Rule, group: ShowGroup, most_rows: int | None = None) -> str:
    """One rule on one line, with its name before it and its origin behind it; of a table with more than `most_rows` rows, so many."""
    name = f"{rule.name}: " if rule.name else ""
    window = f" window {duration(rule.window_ms)}" if rule.window_ms is not None else ""
    body = ", ".join(_table(part, most_rows) if isinstance(part, Table) else show_formula(part, group) for part in rule.body)
    origin = f"  # {', '.join(rule.origin)}" if rule.origin else ""
    return f"{name}{show_formula(rule.head, group)}{f' <- {body}' if body else ''}{window} .{origin}"


def show_rule_set(rules: RuleSet, group: ShowGroup) -> str:
    """A header with the timeline, then facts with the interval during which they hold, in ms (``p(1) during [1000,2000) .``), then rules,
    one a line."""
    granularity = f" granularity {duration(rules.granularity_ms)}" if rules.granularity_ms else ""
    start = f" start at {instant(rules.start_at_ms)}" if rules.start_at_ms is not None else ""
    lines = [f"rules {rules.name}{granularity}{start}"]
    lines += [f"{show_atom(fact.atom)} during {interval(fact.interval)} ." for fact in rules.facts]
    lines += [show_rule(rule, group) for rule in rules.rules]
    return "\n".join(lines) + "\n"


def show_atom(atom: Atom) -> str:
    """``[s p o]`` for a triple, ``name(terms)`` for any other atom."""
    if atom.predicate == TRIPLE:
        subject, link, object_ = atom.terms
        return f"[{term(subject)} {predicate(link)} {term(object_)}]"
    return f"{atom.predicate}({', '.join(map(term, atom.terms))})"


def name_and_terms(atom: Atom) -> tuple[str, tuple[Term, ...]]:
    """An atom as languages of predicates write it: a triple with a known property, or class, by that as ``<p>(s, o)``, ``<C>(s)``."""
    if atom.predicate == TRIPLE:
        subject, link, object_ = atom.terms
        if link == Constant(RDF_TYPE) and isinstance(object_, Constant) and object_.token[0] == "<":
            return object_.token, (subject,)
        if isinstance(link, Constant) and link.token[0] == "<":
            return link.token, (subject, object_)
    return atom.predicate, atom.terms


def show_formula(formula: Formula | Head, group: ShowGroup) -> str:
    """A part of a body, or a head."""
    match formula:
        case Atom():
            return show_atom(formula)
        case DiamondMinus(distance=distance, body=body) | BoxMinus(distance=distance, body=body) | BoxPlus(distance=distance, body=body):
            return f"{_OPERATORS[type(formula)]}{interval(distance, duration)} {show_formula(body, group)}"
        case At(instant=moment, body=body):
            return f"@{term(moment)} {show_formula(body, group)}"
        case WindowFormula(unit=unit, size=size, body=body):
            return f"window[{size} {'granules' if unit == 'time' else 'tuples'}] {show_formula(body, group)}"
        case Negation(body=body):
            return f"not {show_formula(body, group)}"
        case Test(condition=condition):
            return Expressions(group).show(condition)
        case Assign(variable=variable, expression=expression):
            return f"{term(variable)} := {Expressions(group).show(expression)}"
        case Table():
            return _table(formula, None)
        case Falsum():
            return "false"


def _table(table: Table, most_rows: int | None) -> str:
    listed = [f"({' '.join(map(term, row))})" for row in table.rows[:most_rows]]
    more = [f"... {len(table.rows)} in all"] if len(listed) < len(table.rows) else []
    return f"({' '.join(map(term, table.variables))}) in {{{' '.join(listed + more)}}}"
