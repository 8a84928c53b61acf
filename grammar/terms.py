"""Terms of a statement: IRIs resolved against prefixes and base (RFC 3986 section 5), literals as canonical N-Triples tokens."""

from __future__ import annotations

import re

from engine.ir.spans import Diagnostic
from engine.ir.terms import RDF, RDFS, XSD, Constant, Variable, is_language_tag, quote, resolve
from grammar.text import Text
from grammar.tree import Leaf, Node

_STRING_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_UNESCAPED = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", "\\": "\\", '"': '"', "'": "'"}
_LOCAL_ESCAPE = re.compile(r"\\(.)")
MAX_ERRORS = 20
WELL_KNOWN = {
    "rdf": RDF, "rdfs": RDFS, "xsd": XSD, "owl": "http://www.w3.org/2002/07/owl#",
    "foaf": "http://xmlns.com/foaf/0.1/", "prov": "http://www.w3.org/ns/prov#", "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://www.w3.org/ns/ssn/", "geo": "http://www.opengis.net/ont/geosparql#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "dc": "http://purl.org/dc/elements/1.1/", "dcterms": "http://purl.org/dc/terms/", "schema": "https://schema.org/",
}


def literal(lexical: str, datatype: str | None = None, language: str | None = None) -> Constant:
    """The token of a literal; xsd:string has no suffix, language tags are in lower case as the stream parser writes them."""
    if language:
        return Constant(f"{quote(lexical)}@{language.lower()}")
    suffix = f"^^<{datatype}>" if datatype and datatype != f"{XSD}string" else ""
    return Constant(quote(lexical) + suffix)


def string_value(written: str) -> str:
    """The value of a string as written, with its quotes of any kind."""
    inner = written[3:-3] if written[:3] in ('"""', "'''") and len(written) >= 6 else written[1:-1]
    return _STRING_ESCAPE.sub(lambda m: _UNESCAPED.get(m[1], m[1]), inner)


class Names:
    """Prefixes and base of a statement; what cannot be resolved goes to `errors`, each unknown prefix once."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.base: str | None = None
        self.prefixes: dict[str, str] = {}
        self.errors: list[Diagnostic] = []
        self._complained: set[str] = set()

    def declare(self, declarations: list[Node]) -> None:
        """Take the BASE and PREFIX declarations of a prologue, in order."""
        for declaration in declarations:
            iri = self.iri(declaration.parts["iri"])
            if declaration.name == "Base":
                self.base = iri
            else:
                prefix = declaration.get("prefix")
                self.prefixes[prefix.text if prefix else ""] = iri

    def iri(self, leaf: Leaf) -> str:
        """The IRI of a leaf, without brackets. A relative one is left as written where there is no BASE."""
        if leaf.kind == "a":
            return f"{RDF}type"
        if leaf.text[0] == "<":
            reference = leaf.text[1:-1]
            return resolve(reference, self.base) if self.base is not None else reference
        prefix, _, local = leaf.text.partition(":")
        if prefix not in self.prefixes:
            self._unknown_prefix(prefix, leaf)
            return leaf.text
        return self.prefixes[prefix] + _LOCAL_ESCAPE.sub(r"\1", local)

    def term(self, item: Leaf | Node) -> Variable | Constant:
        """A variable, IRI or literal. Blank nodes and collections are the caller's."""
        if isinstance(item, Node):
            return self._string_literal(item)
        match item.kind:
            case "variable":
                return Variable(item.text[1:])
            case "iri" | "pname" | "a":
                return Constant(f"<{self.iri(item)}>")
            case "nil":
                return Constant(f"<{RDF}nil>")
            case "boolean":
                return literal(item.text.lower(), f"{XSD}boolean")
            case "integer" | "decimal" | "double":
                return literal(item.text, XSD + item.kind)
            case "string":
                return literal(string_value(item.text))
        raise ValueError(f"no term: {item.kind}")

    def _string_literal(self, node: Node) -> Constant:
        datatype = node.get("datatype")
        language = node.get("lang")
        if language and not is_language_tag(language.text[1:]):
            self.error(f"{language.text} is no language tag.", language.start, language.end, hint="subtags have at most eight characters")
        return literal(string_value(node.parts["string"].text), self.iri(datatype) if datatype else None,
                       language.text[1:] if language else None)

    def error(self, message: str, start: int, end: int, *, code: str = "query-syntax", note: str | None = None,
              hint: str | None = None) -> None:
        """Note a mistake; after MAX_ERRORS there is no point in more."""
        if len(self.errors) < MAX_ERRORS:
            self.errors.append(self.text.error(message, start, end, code=code, note=note, hint=hint))

    def _unknown_prefix(self, prefix: str, leaf: Leaf) -> None:
        if prefix in self._complained:
            return
        self._complained.add(prefix)
        iri = WELL_KNOWN.get(prefix, "http://...")
        self.error(f"Unknown prefix '{prefix}:'.", leaf.start, leaf.start + len(prefix) + 1,
                   hint=f"declare it: PREFIX {prefix}: <{iri}>")
