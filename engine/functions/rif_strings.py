"""RIF's built-ins on strings, plain literals and lists (RIF-DTB 2nd edition, sections 4.7, 4.10 and 4.11): of strings XPath's functions, as
SPARQL has them. A list is one term (engine/ir/lists.py).

Places in a list count from 0, negative ones from the end (-1 is the last member); one outside of the list is an error. Members are compared
by value (`rif_values.identical`).
"""

from collections.abc import Callable, Iterable, Iterator
from urllib.parse import quote

from engine.functions import arithmetic, strings
from engine.functions.context import ExpressionError
from engine.functions.rif_values import identical, plain, text, value, whole_number, written
from engine.functions.terms import integer, split, string
from engine.ir import lists
from engine.ir.terms import is_language_tag, literal

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


def _escaped(kept: str) -> Callable[[str], str]:
    """fn:iri-to-uri or fn:escape-html-uri: percent-encode all characters but those `kept`."""
    return lambda token: string(quote(text(token), safe=kept, errors="surrogatepass"))


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


def members(token: str) -> tuple[str, ...]:
    """The members of a list argument. Raises ExpressionError."""
    found = lists.read(token)
    if found is None:
        raise ExpressionError("not a list")
    return found


def _placed(token: str, written: str) -> tuple[tuple[str, ...], int]:
    """The members of a list argument, and a place among them, counted from 0."""
    found, place = members(token), whole_number(written)
    place += len(found) if place < 0 else 0
    if not 0 <= place < len(found):
        raise ExpressionError("no such place in the list")
    return found, place


def get(token: str, place: str) -> str:
    found, at = _placed(token, place)
    return found[at]


def sublist(token: str, start: str, stop: str | None = None) -> str:
    """func:sublist: from `start` up to, but without, `stop`; a stop behind the end is the end."""
    found, first = _placed(token, start)
    last = len(found) if stop is None else min(whole_number(stop), len(found))
    return lists.write(found[first:last + len(found) if last < 0 else last])


def insert_before(token: str, place: str, member: str) -> str:
    found, at = _placed(token, place)
    return lists.write((*found[:at], member, *found[at:]))


def remove(token: str, place: str) -> str:
    found, at = _placed(token, place)
    return lists.write((*found[:at], *found[at + 1:]))


def index_of(token: str, member: str) -> str:
    """func:index-of: the list of the places at which the member stands."""
    return lists.write(integer(place) for place, found in enumerate(members(token)) if identical(found, member))


def contains(token: str, member: str) -> bool:
    return any(identical(found, member) for found in members(token))


def _all_members(*tokens: str) -> Iterator[str]:
    return (member for token in tokens for member in members(token))


def _distinct(found: Iterable[str]) -> str:
    """The list without the later ones of equal members."""
    first: dict[str, str] = {}
    for member in found:
        first.setdefault(value(member), member)
    return lists.write(first.values())


def _chosen(first: str, second: str, wanted: bool) -> str:
    kept = {value(member) for member in members(second)}
    return _distinct(member for member in members(first) if (value(member) in kept) is wanted)


FUNCTIONS: dict[str, Callable[..., str | bool]] = {
    "compare": compare, "concat": concat, "string-join": string_join, "substring": substring,
    "string-length": of_strings(strings.strlen), "upper-case": of_strings(strings.ucase), "lower-case": of_strings(strings.lcase),
    "encode-for-uri": of_strings(strings.encode_for_uri), "iri-to-uri": _escaped(_URI),
    "escape-html-uri": _escaped(_PRINTABLE),
    "substring-before": of_strings(strings.strbefore), "substring-after": of_strings(strings.strafter),
    "replace": of_strings(strings.replace),
    "PlainLiteral-from-string-lang": plain_from, "string-from-PlainLiteral": lambda token: string(plain(token)[0]),
    "lang-from-PlainLiteral": lambda token: string(plain(token)[1]), "PlainLiteral-compare": plain_compare,
    "PlainLiteral-length": lambda token: integer(len(plain(token)[0])),
    "make-list": lambda *tokens: lists.write(tokens), "count": lambda token: integer(len(members(token))), "get": get,
    "sublist": sublist, "append": lambda token, *more: lists.write((*members(token), *more)),
    "concatenate": lambda *tokens: lists.write(_all_members(*tokens)),
    "insert-before": insert_before, "remove": remove, "reverse": lambda token: lists.write(members(token)[::-1]),
    "index-of": index_of, "union": lambda *tokens: _distinct(_all_members(*tokens)),
    "distinct-values": lambda token: _distinct(members(token)),
    "intersect": lambda first, second: _chosen(first, second, True), "except": lambda first, second: _chosen(first, second, False),
}
PREDICATES: dict[str, Callable[..., str | bool]] = {
    "contains": of_strings(strings.contains), "starts-with": of_strings(strings.strstarts), "ends-with": of_strings(strings.strends),
    "matches": of_strings(strings.matches), "matches-language-range": matches_language_range, "iri-string": iri_string,
    "is-list": lambda token: lists.read(token) is not None, "list-contains": contains,
}
