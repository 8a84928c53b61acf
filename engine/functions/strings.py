"""Functions on strings (SPARQL 1.1 section 17.4.3), on tokens."""

import math
import operator
from collections.abc import Callable
from urllib.parse import quote

from engine.functions.context import ExpressionError
from engine.functions.numeric import round_double, to_double
from engine.functions.regexes import regex
from engine.functions.terms import integer, numeric_value, simple_text, string, text_of
from engine.ir.terms import literal


def strlen(text: str) -> str:
    """STRLEN: code points."""
    return integer(len(text_of(text)[0]))


def substr(source: str, start: str, length: str | None = None) -> str:
    """SUBSTR as fn:substring: the code points p, counted from 1, with round(start) <= p < round(start) + round(length)."""
    text, tag = text_of(source)
    first = round_double(to_double(numeric_value(start).value))
    end = math.inf if length is None else first + round_double(to_double(numeric_value(length).value))
    if not first < end:
        return literal("", lang=tag)
    low = 0 if first < 1 else min(len(text), int(first) - 1) if first != math.inf else len(text)
    high = len(text) if end > len(text) else max(low, int(end) - 1)
    return literal(text[low:high], lang=tag)


def _cased(change: Callable[[str], str]) -> Callable[[str], str]:
    """UCASE or LCASE by Unicode's full case mapping."""
    def changed(source: str) -> str:
        text, tag = text_of(source)
        return literal(change(text), lang=tag)
    return changed


ucase, lcase = _cased(str.upper), _cased(str.lower)


def compatible(first: str, second: str) -> tuple[str, str, str]:
    """Both texts and the first's tag, where the arguments are compatible (section 17.4.3.1.2). Raises ExpressionError."""
    text, tag = text_of(first)
    other, other_tag = text_of(second)
    if other_tag and other_tag != tag:
        raise ExpressionError("strings of incompatible languages")
    return text, other, tag


def _tested(test: Callable[[str, str], bool]) -> Callable[[str, str], bool]:
    """STRSTARTS, STRENDS or CONTAINS."""
    def holds(text: str, part: str) -> bool:
        one, two, _ = compatible(text, part)
        return test(one, two)
    return holds


strstarts, strends = _tested(str.startswith), _tested(str.endswith)
contains = _tested(operator.contains)


def strbefore(text: str, mark: str) -> str:
    """STRBEFORE: keeps the tag where there is a match, else the simple empty string."""
    one, two, tag = compatible(text, mark)
    before, found, _ = one.partition(two) if two else ("", True, "")
    return literal(before, lang=tag) if found else '""'


def strafter(text: str, mark: str) -> str:
    """STRAFTER: keeps the tag where there is a match, else the simple empty string."""
    one, two, tag = compatible(text, mark)
    _, found, after = one.partition(two) if two else ("", True, one)
    return literal(after, lang=tag) if found else '""'


def concat(*parts: str) -> str:
    """CONCAT: with the tag that all parts share, if they do."""
    pairs = [text_of(part) for part in parts]
    tags = {tag for _, tag in pairs}
    return literal("".join(text for text, _ in pairs), lang=tags.pop() if len(tags) == 1 else None)


def encode_for_uri(text: str) -> str:
    """ENCODE_FOR_URI: percent-encodes the UTF-8 of all but RFC 3986's unreserved characters."""
    return string(quote(text_of(text)[0], safe="~", errors="surrogatepass"))


def langmatches(tag: str, wanted: str) -> bool:
    """LANGMATCHES by basic filtering (RFC 4647 section 3.3.1)."""
    found, pattern = simple_text(tag).lower(), simple_text(wanted).lower()
    return bool(found) and (pattern in ("*", found) or found.startswith(pattern + "-"))


def matches(text: str, pattern: str, flags: str = '""') -> bool:
    return regex(simple_text(pattern), simple_text(flags)).matches(text_of(text)[0])


def replace(source: str, pattern: str, replacement: str, flags: str = '""') -> str:
    text, tag = text_of(source)
    return literal(regex(simple_text(pattern), simple_text(flags)).replace(text, simple_text(replacement)), lang=tag)
