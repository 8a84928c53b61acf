"""RIF's built-ins on strings and plain literals (RIF-DTB 2nd edition, sections 4.7 and 4.10): XPath's functions, as SPARQL has them."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from engine.functions import arithmetic, strings
from engine.functions.errors import ExpressionError
from engine.functions.rif_casts import written
from engine.functions.rif_values import plain, text
from engine.functions.terms import integer, literal, split, string
from engine.ir.quoting import is_language_tag

_ONE = integer(1)
# What fn:iri-to-uri leaves as it is: all of ASCII but < > " space { } | \ ^ and `.
_URI = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '<>"{}|\\^`')
_PRINTABLE = "".join(map(chr, range(0x20, 0x7F)))


def of_strings(apply: Callable[..., str | bool]) -> Callable[..., str | bool]:
    """A function of SPARQL whose arguments are strings of any string type."""
    return lambda *args: apply(*(string(text(arg)) for arg in args))


def compare(first: str, second: str) -> str:
    """fn:compare by code points: -1, 0 or 1."""
    one, two = text(first), text(second)
    return integer((one > two) - (one < two))


def concat(*parts: str) -> str:
    """fn:concat: of any literals, which are cast to strings."""
    return string("".join(split(written(part)).lexical for part in parts))


def string_join(*parts: str) -> str:
    """fn:string-join: the last argument stands between the others."""
    *joined, separator = map(text, parts)
    return string(separator.join(joined))


def substring(source: str, start: str, length: str | None = None) -> str:
    """func:substring: fn:substring, but the first character is at 0, as the approved case Builtins_String has it."""
    from_one = arithmetic.add(start, _ONE)
    return strings.substr(string(text(source)), from_one, *(() if length is None else (length,)))


def iri_to_uri(token: str) -> str:
    """fn:iri-to-uri."""
    return string(quote(text(token), safe=_URI, errors="surrogatepass"))


def escape_html_uri(token: str) -> str:
    """fn:escape-html-uri: what is not printable ASCII is percent-encoded."""
    return string(quote(text(token), safe=_PRINTABLE, errors="surrogatepass"))


def iri_string(iri: str, characters: str) -> bool:
    """pred:iri-string: an IRI and its characters."""
    return iri[0] == "<" and iri[1:-1] == text(characters)


def plain_from(characters: str, tag: str) -> str:
    """func:PlainLiteral-from-string-lang."""
    language = text(tag)
    if language and not is_language_tag(language):
        raise ExpressionError("not a language tag")
    return literal(text(characters), lang=language)


def plain_compare(first: str, second: str) -> str:
    """func:PlainLiteral-compare: of one language only."""
    (one, tag), (two, other) = plain(first), plain(second)
    if tag != other:
        raise ExpressionError("plain literals of different languages")
    return integer((one > two) - (one < two))


def matches_language_range(token: str, wanted: str) -> bool:
    """pred:matches-language-range: extended filtering (RFC 4647, section 3.3.2) of a literal with a tag."""
    tags, ranges = plain(token)[1].lower().split("-"), text(wanted).lower().split("-")
    if not tags[0] or ranges[0] not in ("*", tags[0]):
        return False
    tags = tags[1:]
    for part in ranges[1:]:
        if part == "*":
            continue
        while tags and tags[0] != part:
            if len(tags[0]) == 1:
                return False
            tags.pop(0)
        if not tags:
            return False
        tags.pop(0)
    return True


FUNCTIONS: dict[str, Callable[..., str | bool]] = {
    "compare": compare, "concat": concat, "string-join": string_join, "substring": substring,
    "string-length": of_strings(strings.strlen), "upper-case": of_strings(strings.ucase), "lower-case": of_strings(strings.lcase),
    "encode-for-uri": of_strings(strings.encode_for_uri), "iri-to-uri": iri_to_uri, "escape-html-uri": escape_html_uri,
    "substring-before": of_strings(strings.strbefore), "substring-after": of_strings(strings.strafter),
    "replace": of_strings(strings.replace),
    "PlainLiteral-from-string-lang": plain_from, "string-from-PlainLiteral": lambda token: string(plain(token)[0]),
    "lang-from-PlainLiteral": lambda token: string(plain(token)[1]), "PlainLiteral-compare": plain_compare,
    "PlainLiteral-length": lambda token: integer(len(plain(token)[0])),
}
PREDICATES: dict[str, Callable[..., str | bool]] = {
    "contains": of_strings(strings.contains), "starts-with": of_strings(strings.strstarts), "ends-with": of_strings(strings.strends),
    "matches": of_strings(strings.matches), "matches-language-range": matches_language_range, "iri-string": iri_string,
}
