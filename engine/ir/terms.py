"""Terms: variables, constants as canonical N-Triples tokens, lists of admitted constants; strings as canonical N-Triples writes them
(RDF 1.2 N-Triples, section 3; so does the parser of streams); and IRI references resolved against a base (RFC 3986 section 5.2).
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Variable:
    """A variable by its name without mark. Names that start with ``_:`` are a pattern's blank nodes: never projected by ``*``;
    names that start with ``.`` are the compiler's own."""

    name: str

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a variable needs a name")

    @property
    def visible(self) -> bool:
        """Whether ``SELECT *`` shows it."""
        return not self.name.startswith(("_:", "."))


@dataclass(frozen=True, slots=True, order=True)
class Constant:
    """An RDF term as its canonical N-Triples token: ``<iri>``, ``_:b``, ``"lex"``, ``"lex"@en``, ``"lex"^^<datatype>``."""

    token: str

    def __post_init__(self) -> None:
        if not self.token or self.token[0] not in '<_"':
            raise ValueError(f"not an N-Triples token: {self.token!r}")


@dataclass(frozen=True, slots=True)
class OneOf:
    """In a triple pattern: any of these constants, not bound to a variable (what a class hierarchy unfolds to)."""

    tokens: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.tokens or list(self.tokens) != sorted(set(self.tokens)):
            raise ValueError("OneOf needs sorted, distinct tokens")


Term = Variable | Constant
PatternTerm = Variable | Constant | OneOf

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
XSD = "http://www.w3.org/2001/XMLSchema#"
RDF_TYPE = f"<{RDF}type>"
SAME_AS = "<http://www.w3.org/2002/07/owl#sameAs>"

LETTERS = ("A-Za-z\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u02FF\u0370-\u037D\u037F-\u1FFF\u200C-\u200D\u2070-\u218F\u2C00-\u2FEF"
           "\u3001-\uD7FF\uF900-\uFDCF\uFDF0-\uFFFD\U00010000-\U000EFFFF")
WORD = f"{LETTERS}_0-9\u00B7\u0300-\u036F\u203F-\u2040"
"""Characters of names as a class of `re` has them: what a name begins with in SPARQL (PN_CHARS_BASE), in XML 1.0 (5th edition, section 2.3)
beside ``_`` and ``:``; and what may follow, in XML beside ``-``, ``.`` and ``:``."""


def one_of(tokens: frozenset[str] | set[str]) -> Constant | OneOf:
    """The one spelling of "any of these": a single token is a plain constant."""
    ordered = tuple(sorted(tokens))
    return Constant(ordered[0]) if len(ordered) == 1 else OneOf(ordered)


_NEEDS_ESCAPE = re.compile("[\x00-\x1f\"\\\\\x7f\ufffe\uffff]")
_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_ESCAPED = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_LANGUAGE = re.compile("[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")
_UNESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r"}


def quote(text: str) -> str:
    """The string with its quotes; it is also the token of the xsd:string."""
    if _NEEDS_ESCAPE.search(text) is not None:
        text = _NEEDS_ESCAPE.sub(_escape, text)
    return f'"{text}"'


def literal(lexical: str, datatype: str | None = None, lang: str | None = None) -> str:
    """The token of a literal; `datatype` is an IRI without brackets, `lang` a language tag in any case."""
    if lang:
        return f"{quote(lexical)}@{lang.lower()}"
    return quote(lexical) if datatype in (None, "", f"{XSD}string") else f"{quote(lexical)}^^<{datatype}>"


def is_language_tag(text: str) -> bool:
    """Whether a text is well-formed as RDF and XML have language tags (RFC 4646 section 2.1, roughly): subtags of one to eight letters,
    later ones with digits too. A literal has no other, whichever way it comes."""
    return _LANGUAGE.fullmatch(text) is not None


def unescape(text: str) -> str:
    """Undo the escapes of a string given without its quotes (any of N-Triples, canonical or not); what is no character of
    Unicode becomes U+FFFD."""
    return _ESCAPED.sub(_unescape, text) if "\\" in text else text


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    return _ESCAPES.get(char) or f"\\u{ord(char):04X}"


def _unescape(match: re.Match[str]) -> str:
    short, long, char = match.groups()
    if char is not None:
        return _UNESCAPES.get(char, char)
    code = int(short or long, 16)
    return chr(code) if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else "\ufffd"


_PARTS = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)


def resolve(reference: str, base: str) -> str:
    """The IRI that a reference means where `base` is the base IRI; both without brackets. A reference with a scheme is no relative one and
    stays as it is: SPARQL 1.1 section 4.1.1.1 forbids normalization."""
    scheme, authority, path, query, fragment = _split(reference)
    if scheme is not None:
        return reference
    scheme, base_authority, base_path, base_query, _ = _split(base)
    if authority is not None:
        path = _without_dots(path)
    elif not path:
        authority, path = base_authority, base_path
        query = base_query if query is None else query
    else:
        authority = base_authority
        path = _without_dots(path if path.startswith("/") else _merged(base_authority, base_path, path))
    return "".join((f"{scheme}:" if scheme is not None else "", f"//{authority}" if authority is not None else "", path,
                    f"?{query}" if query is not None else "", f"#{fragment}" if fragment is not None else ""))


def _split(iri: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    match = _PARTS.fullmatch(iri)
    assert match is not None    # every part is optional
    return match[1], match[2], match[3], match[4], match[5]


def _merged(authority: str | None, base_path: str, path: str) -> str:
    if authority is not None and not base_path:
        return "/" + path
    return base_path[:base_path.rfind("/") + 1] + path


def _without_dots(path: str) -> str:
    """Remove ``.`` and ``..`` segments (section 5.2.4); a path without a leading slash (``urn:a:b``) has none."""
    if not path.startswith("/"):
        return path
    kept: list[str] = []
    segments = path.split("/")
    for index, segment in enumerate(segments):
        if segment not in (".", ".."):
            kept.append(segment)
            continue
        if segment == ".." and len(kept) > 1:
            kept.pop()
        if index == len(segments) - 1:
            kept.append("")
    return "/".join(kept)
