"""The built-ins of RIF Datatypes and Built-Ins (RIF-DTB 2nd edition, section 4): names, kinds, numbers of arguments.

What they compute is in engine/functions/library.py, which has a function for each name here.
"""

import re
from dataclasses import dataclass
from typing import Literal

from engine.ir.terms import LETTERS, RDF, WORD, XSD

RIF = "http://www.w3.org/2007/rif#"
FUNC = "http://www.w3.org/2007/rif-builtin-function#"
PRED = "http://www.w3.org/2007/rif-builtin-predicate#"

IDENTICAL = f"<{RIF}identical>"
"""RIF's ``=``: the same value (DTB has no name for it)."""
IRI_STRING = f"<{PRED}iri-string>"
MAKE_LIST = f"<{FUNC}make-list>"


@dataclass(frozen=True, slots=True)
class Builtin:
    """A built-in by its IRI in brackets; it takes `least` to `most` arguments (None: any number)."""

    iri: str
    kind: Literal["function", "predicate"]
    least: int
    most: int | None
    group: str

    @property
    def short(self) -> str:
        """The name as documents write it: ``func:numeric-add``, ``xs:integer``."""
        for prefix, namespace in (("func", FUNC), ("pred", PRED), ("xs", XSD), ("rdf", RDF), ("rif", RIF)):
            if self.iri[1:-1].startswith(namespace):
                return f"{prefix}:{self.iri[1 + len(namespace):-1]}"
        return self.iri


INTEGERS = ("integer", "long", "int", "short", "byte", "nonNegativeInteger", "positiveInteger", "unsignedLong", "unsignedInt",
            "unsignedShort", "unsignedByte", "nonPositiveInteger", "negativeInteger")
STRINGS = {name: re.compile(form) for name, form in {
    "normalizedString": r"[^\t\n\r]*", "token": r"(?:[^\t\n\r ]+(?: [^\t\n\r ]+)*)?",
    "language": "[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*",
    "Name": f"[{LETTERS}_:][{WORD}.:-]*", "NCName": f"[{LETTERS}_][{WORD}.-]*", "NMTOKEN": f"[{WORD}.:-]+"}.items()}
"""The types derived from xsd:string, with their lexical forms (XSD 1.1 part 2, sections 3.4.1 to 3.4.7)."""
DATATYPES = {
    **{name: XSD + name for name in (
        "anyURI", "base64Binary", "boolean", "date", "dateTime", "dateTimeStamp", "double", "float", "hexBinary", "decimal",
        *INTEGERS, "string", *STRINGS, "time", "dayTimeDuration", "yearMonthDuration")},
    "PlainLiteral": RDF + "PlainLiteral", "XMLLiteral": RDF + "XMLLiteral",
}
"""DTB's datatypes (section 2.2): local name -> IRI."""

_COMPARED = ("equal", "not-equal", "less-than", "less-than-or-equal", "greater-than", "greater-than-or-equal")
_ORDERED = _COMPARED[2:]

_FUNCTIONS: dict[str, list[tuple[str, int, int | None]]] = {
    "numbers": [(f"numeric-{name}", 2, 2) for name in ("add", "subtract", "multiply", "divide", "integer-divide", "mod", "integer-mod")],
    "booleans": [("not", 1, 1)],
    "strings": [
        ("compare", 2, 2), ("concat", 2, None), ("string-join", 2, None), ("substring", 2, 3), ("string-length", 1, 1),
        ("upper-case", 1, 1), ("lower-case", 1, 1), ("encode-for-uri", 1, 1), ("iri-to-uri", 1, 1), ("escape-html-uri", 1, 1),
        ("substring-before", 2, 2), ("substring-after", 2, 2), ("replace", 3, 4)],
    "dates, times and durations": [
        *((f"{field}-from-dateTime", 1, 1) for field in ("year", "month", "day", "hours", "minutes", "seconds", "timezone")),
        *((f"{field}-from-date", 1, 1) for field in ("year", "month", "day", "timezone")),
        *((f"{field}-from-time", 1, 1) for field in ("hours", "minutes", "seconds", "timezone")),
        *((f"{field}-from-duration", 1, 1) for field in ("years", "months", "days", "hours", "minutes", "seconds")),
        *((f"subtract-{form}s", 2, 2) for form in ("dateTime", "date", "time")),
        *((f"{operation}-{form}Durations", 2, 2) for form in ("yearMonth", "dayTime") for operation in ("add", "subtract")),
        *((f"{operation}-{form}Duration", 2, 2) for form in ("yearMonth", "dayTime") for operation in ("multiply", "divide")),
        *((f"divide-{form}Duration-by-{form}Duration", 2, 2) for form in ("yearMonth", "dayTime")),
        *((f"{start}-{duration}Duration-{link}-{form}", 2, 2) for start, link in (("add", "to"), ("subtract", "from"))
          for duration, form in (("yearMonth", "dateTime"), ("yearMonth", "date"), ("dayTime", "dateTime"), ("dayTime", "date"),
                                 ("dayTime", "time")))],
    "plain literals": [
        ("PlainLiteral-from-string-lang", 2, 2), ("string-from-PlainLiteral", 1, 1), ("lang-from-PlainLiteral", 1, 1),
        ("PlainLiteral-compare", 2, 2), ("PlainLiteral-length", 1, 1)],
    "lists": [
        ("make-list", 0, None), ("count", 1, 1), ("get", 2, 2), ("sublist", 2, 3), ("append", 1, None), ("concatenate", 0, None),
        ("insert-before", 3, 3), ("remove", 2, 2), ("reverse", 1, 1), ("index-of", 2, 2), ("union", 0, None),
        ("distinct-values", 1, 1), ("intersect", 2, 2), ("except", 2, 2)],
}
_PREDICATES: dict[str, list[tuple[str, int, int | None]]] = {
    "guards": [(f"is-literal-{negated}{name}", 1, 1) for negated in ("", "not-") for name in DATATYPES],
    "identity": [("literal-not-identical", 2, 2), ("iri-string", 2, 2)],
    "numbers": [(f"numeric-{name}", 2, 2) for name in _COMPARED],
    "booleans": [(f"boolean-{name}", 2, 2) for name in ("equal", "less-than", "greater-than")],
    "strings": [("contains", 2, 2), ("starts-with", 2, 2), ("ends-with", 2, 2), ("matches", 2, 3)],
    "dates, times and durations": [
        *((f"{form}-{name}", 2, 2) for form in ("dateTime", "date", "time") for name in _COMPARED),
        ("duration-equal", 2, 2), ("duration-not-equal", 2, 2),
        *((f"{form}Duration-{name}", 2, 2) for form in ("dayTime", "yearMonth") for name in _ORDERED)],
    "plain literals": [("matches-language-range", 2, 2)],
    "XML literals": [("XMLLiteral-equal", 2, 2), ("XMLLiteral-not-equal", 2, 2)],
    "lists": [("is-list", 1, 1), ("list-contains", 2, 2)],
}


def _table() -> dict[str, Builtin]:
    found = [Builtin(f"<{iri}>", "function", 1, 1, "casts") for iri in DATATYPES.values()]
    found += [Builtin(f"<{FUNC}{name}>", "function", least, most, group)
              for group, rows in _FUNCTIONS.items() for name, least, most in rows]
    found += [Builtin(f"<{PRED}{name}>", "predicate", least, most, group)
              for group, rows in _PREDICATES.items() for name, least, most in rows]
    return {builtin.iri: builtin for builtin in found}


BUILTINS: dict[str, Builtin] = _table()
"""Every built-in by its IRI in brackets, which is its `Call.function`."""
