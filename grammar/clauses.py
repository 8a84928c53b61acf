"""The clauses that RSP-QL and C-SPARQL add to SPARQL, in pyparsing (docs/sparql.md has the grammar).

`read_clause` reads one at an offset and returns its parts by name and the offset behind it. Every terminal is a `Leaf`, so
that parts know their place; a mistake raises ClauseError with its place, what was expected, and a hint where one is known.
"""

import re
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from pyparsing import CaselessKeyword, Literal, MatchFirst, Opt, ParseBaseException, ParserElement, Regex, ZeroOrMore

from engine.ir.printer import RESERVED
from grammar.durations import SPELT_OUT, UNITS, DurationError, instant, milliseconds
from grammar.text import IRI_REFERENCE, PREFIXED_NAME, Leaf

FORMS = frozenset(("SELECT", "CONSTRUCT", "ASK", "DESCRIBE"))


@dataclass(eq=False)
class ClauseError(Exception):
    """A mistake in a clause at `place`."""

    message: str
    place: int
    length: int
    hint: str | None = None

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause: its parts by name, and the offset behind it. An amount that is in `errors` has a value too, so that the rest is read."""

    parts: dict[str, Any]
    end: int
    errors: tuple[ClauseError, ...] = ()

    def get(self, part: str) -> Any:
        return self.parts.get(part)


def _leaf(kind: str) -> Callable[[str, int, Any], Leaf]:
    return lambda text, place, found: Leaf(kind, found[0], place, place + len(found[0]))


def _word(word: str) -> ParserElement:
    return CaselessKeyword(word).set_name(word).set_parse_action(_leaf("word"))


def _mark(mark: str) -> ParserElement:
    return Literal(mark).set_parse_action(_leaf("mark"))


def _terminal(pattern: str, kind: str, readable: str) -> ParserElement:
    return Regex(pattern, re.IGNORECASE).set_parse_action(_leaf(kind)).set_name(readable)


@dataclass(frozen=True, slots=True)
class Amount:
    """A duration or instant in ms, or a count."""

    value: int
    start: int
    end: int


_WRONG: ContextVar[dict[int, ClauseError]] = ContextVar("wrong amounts of the clause that is read, by place")


def _amount(pattern: str, read: Any, readable: str) -> ParserElement:
    def convert(_text: str, place: int, found: Any) -> Amount:
        end = place + len(found[0])
        try:
            return Amount(read(found[0]), place, end)
        except DurationError as error:
            _WRONG.get()[place] = ClauseError(error.message, place, len(found[0].split()[0]), error.hint)
            return Amount(1, place, end)

    return Regex(pattern).set_parse_action(convert).set_name(readable)


def _positive(written: str) -> int:
    value = milliseconds(written)
    if value <= 0:
        raise DurationError("A window's RANGE and STEP must be longer than nothing.", "RANGE 10s STEP 2s")
    return value


def _count(written: str) -> int:
    value = int(written) if written.isdigit() and len(written) < 10 else 0
    if value <= 0:
        raise DurationError(f"Expected a count of at least 1, found '{written}'.", "[TRIPLES 100]")
    return value


def _unquoted(written: str) -> int:
    return instant(re.split(r"\^\^", written)[0].strip("\"'"))


_SOME = r"[^\s\[\]{}(),]+"
IRI = _terminal(f"{IRI_REFERENCE}|{PREFIXED_NAME}", "iri", "an IRI")
_NO_WORD = f"(?!(?:{'|'.join(sorted(RESERVED))})(?![\\w.-]))"
NAME = _terminal(f"{IRI_REFERENCE}|{PREFIXED_NAME}|{_NO_WORD}\\w(?:[\\w.-]*[\\w-])?", "name", "a name")
_SPACED = rf"[0-9.]+[ \t]+(?:{'|'.join((*UNITS, *SPELT_OUT))})\b|{_SOME}"       # 10 seconds: the unit belongs to what is wrong
DURATION = _amount(_SPACED, _positive, "a duration such as 10s or PT10S")
DISTANCE = _amount(_SPACED, milliseconds, "a duration such as 10s or PT10S")
COUNT = _amount(_SOME, _count, "a count")
DATE_TIME = _amount(rf"\"[^\"\n]*\"(?:\^\^{_SOME})?|'[^'\n]*'(?:\^\^{_SOME})?|{_SOME}", _unquoted, "an xsd:dateTime")
R2S = MatchFirst([_word("RSTREAM"), _word("ISTREAM"), _word("DSTREAM")]).set_name("RSTREAM, ISTREAM or DSTREAM")

_unit = _word("TRIPLES") | _word("ITEMS") | _word("ITEM")
_tuples = Opt(_word("RANGE")) + _unit("unit") - COUNT("count") - Opt(_word("STEP") - COUNT("hop"))
_time = _word("RANGE") - DURATION("range") - Opt((_word("STEP") | _word("SLIDE")) - DURATION("step") | _word("TUMBLING"))
_past = (_word("FROM") - _word("NOW") - _mark("-") - DISTANCE("begin") - _word("TO") - _word("NOW")
         - Opt(_mark("-") - DISTANCE("finish")) - _word("STEP") - DURATION("step"))
_extent = MatchFirst([_tuples, _time, _past, _word("NOW")("now"), _word("ALL")("all")]).set_name(
    "RANGE, TRIPLES, ITEMS, FROM NOW, NOW or ALL")
_window = _mark("[") - _extent - _mark("]")

_named = _word("NAMED")("named") - MatchFirst([
    _word("WINDOW") - IRI("window") - _word("ON") - Opt(_word("STREAM")) - IRI("stream") - _window,
    _word("STREAM") - IRI("stream") - _window,
    IRI("graph"),
]).set_name("WINDOW, STREAM or an IRI")
_from = _word("FROM") - MatchFirst([_named, _word("STREAM") - IRI("stream") - _window, IRI("graph")]).set_name("STREAM, NAMED or an IRI")
_using = _word("USING") - MatchFirst([
    _word("RULES") - NAME("rule*") - ZeroOrMore(_mark(",") - NAME("rule*")),
    _word("GRAPH") - IRI("reasoning"),
]).set_name("RULES or GRAPH")
SOURCE = _from | _using
_report = MatchFirst([
    (_word("COMPUTE") | _word("COMPUTED")) - _word("EVERY") - DURATION("every"),
    _word("REPORT") - MatchFirst([_word("ON") - _word("CHANGE")("report*"), _word("FULL")("report*")]).set_name(
        "ON CHANGE or FULL"),
    _word("START") - _word("AT") - DATE_TIME("start"),
])
_what = MatchFirst([_word("QUERY"), _word("STREAM"), R2S]).set_name("QUERY, STREAM, RSTREAM, ISTREAM or DSTREAM")
REGISTER = (_word("REGISTER") - _what("what") - Opt(NAME("name")) - ZeroOrMore(_report) - Opt(_word("AS")))
STREAM_PATTERN = _word("STREAM") - IRI("stream") - _window


def read_clause(element: ParserElement, text: str, place: int) -> Clause:
    """A clause: SOURCE (``FROM ...``, ``USING ...``), REGISTER (``REGISTER ... AS``), or STREAM_PATTERN (``STREAM iri [window]``)."""
    rest, wrong = text[place:], dict[int, ClauseError]()
    token = _WRONG.set(wrong)
    try:
        results = element.parse_with_tabs().parse_string(rest)
    except ParseBaseException as error:
        found = next(iter(wrong.values()), None)     # what stands behind a wrong amount is often a part of it
        if found is None:
            raise ClauseError(f"{error.msg}", place + error.loc, 0) from None
        raise _shifted(found, place) from None
    finally:
        _WRONG.reset(token)
    parts = {name: _shifted(value, place) for name, value in results.as_dict().items()}
    errors = tuple(_shifted(error, place) for error in wrong.values())
    return Clause(parts, place + max(leaf.end for leaf in results.as_list()), errors)


def _shifted(value: Any, by: int) -> Any:
    if isinstance(value, ClauseError):
        return replace(value, place=value.place + by)
    if isinstance(value, (Leaf, Amount)):
        return replace(value, start=value.start + by, end=value.end + by)
    return [_shifted(item, by) for item in value]
