"""Terms and triples of the parse tree: IRIs resolved against prefixes and base (RFC 3986 section 5), literals as canonical N-Triples
tokens; ``;`` and ``,``, blank nodes, collections and paths spelt out (SPARQL 1.1 sections 4.2, 18.2.2)."""

import re
from functools import reduce
from typing import Any

from engine.ir import terms
from engine.ir.patterns import Alternative, Inverse, Link, NegatedSet, Path, PathPattern, Repeat, Sequence, TriplePattern
from engine.ir.spans import Diagnostic, DiagnosticError, Span
from engine.ir.terms import RDF, RDFS, XSD, Constant, Term, Variable, is_language_tag, resolve, unescape
from grammar.text import Leaf, Node, Text

_LOCAL_ESCAPE = re.compile(r"\\(.)")
MAX_ERRORS = 20
WELL_KNOWN = {"rdf": RDF, "rdfs": RDFS, "xsd": XSD, "owl": "http://www.w3.org/2002/07/owl#", "foaf": "http://xmlns.com/foaf/0.1/",
              "prov": "http://www.w3.org/ns/prov#", "sosa": "http://www.w3.org/ns/sosa/", "ssn": "http://www.w3.org/ns/ssn/",
              "geo": "http://www.opengis.net/ont/geosparql#", "skos": "http://www.w3.org/2004/02/skos/core#",
              "dc": "http://purl.org/dc/elements/1.1/", "dcterms": "http://purl.org/dc/terms/", "schema": "https://schema.org/"}
_FIRST, _REST, _NIL = (Constant(f"<{RDF}{name}>") for name in ("first", "rest", "nil"))
MAX_PARTS = 200
_REPEATS = {"?": (0, 1), "*": (0, None), "+": (1, None)}


def literal(lexical: str, datatype: str | None = None, language: str | None = None) -> Constant:
    """A literal as a term; xsd:string has no suffix, language tags are in lower case as the stream parser writes them."""
    return Constant(terms.literal(lexical, datatype, language))


def string_value(written: str) -> str:
    """The value of a string as written, with its quotes of any kind."""
    inner = written[3:-3] if written[:3] in ('"""', "'''") and len(written) >= 6 else written[1:-1]
    return unescape(inner)


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
            if prefix not in self._complained:
                self._complained.add(prefix)
                self.error(f"Unknown prefix '{prefix}:'.", leaf.start, leaf.start + len(prefix) + 1,
                           hint=f"declare it: PREFIX {prefix}: <{WELL_KNOWN.get(prefix, 'http://...')}>")
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

    def span(self, item: Any) -> Span:
        return self.text.span(item.start, item.end)

    def error(self, message: str, start: int, end: int, *, code: str = "query-syntax", note: str | None = None,
              hint: str | None = None) -> None:
        """Note a mistake; after MAX_ERRORS there is no point in more."""
        if len(self.errors) < MAX_ERRORS:
            self.errors.append(self.text.error(message, start, end, code=code, note=note, hint=hint))


class Labels:
    """Blank nodes of a statement as variables ``_:label``; those without a label get one that the text does not use."""

    def __init__(self, written: set[str]) -> None:
        self._written = written
        self._counts = {"b": 0, "p": 0}

    def fresh(self, kind: str) -> Variable:
        """A new variable: kind ``b`` for ``[]`` and collections, ``p`` for the middle of a path."""
        while True:
            name = f"_:{kind}{self._counts[kind]}"
            self._counts[kind] += 1
            if name not in self._written:
                return Variable(name)


class Block:
    """The triples and paths of one basic graph pattern, or of one template."""

    def __init__(self, names: Names, labels: Labels, renamed: dict[str, Variable] | None = None) -> None:
        self._names, self._labels = names, labels
        self._renamed = renamed or {}
        self.triples: list[TriplePattern] = []
        self.paths: list[PathPattern] = []
        self.used: dict[str, Leaf] = {}     # labels of blank nodes, with their first place

    def add(self, node: Node) -> None:
        """One subject with its properties."""
        subject = self._term(node.items[0])
        self._properties(subject, node.items[1:], node.start)

    def _properties(self, subject: Term, items: tuple[Any, ...], start: int) -> None:
        verb: Any = None
        first = True
        for item in items:
            if item == ";":
                verb = None
            elif item == ",":
                continue
            elif verb is None:
                verb = item
            else:
                object_ = self._term(item)
                span = self._names.text.span(start if first else verb.start, item.end)
                first = False
                if isinstance(verb, Leaf):
                    self.triples.append(TriplePattern(subject, self._names.term(verb), object_, span=span))
                else:
                    self._connect(subject, self._path(verb), object_, span)

    def _term(self, item: Leaf | Node) -> Term:
        if isinstance(item, Node) and item.name == "Properties":
            node = self._labels.fresh("b")
            self._properties(node, item.items, item.start)
            return node
        if isinstance(item, Node) and item.name == "Collection":
            return self._collection(item)
        if isinstance(item, Leaf) and item.kind == "anon":
            return self._labels.fresh("b")
        if isinstance(item, Leaf) and item.kind == "blank":
            self.used.setdefault(item.text, item)
            return self._renamed.get(item.text) or Variable(item.text)
        return self._names.term(item)

    def _collection(self, node: Node) -> Term:
        cells = [self._labels.fresh("b") for _ in node.items]
        span = self._names.span(node)
        following: list[Term] = [*cells[1:], _NIL]
        for cell, after, item in zip(cells, following, node.items):
            self.triples.append(TriplePattern(cell, _FIRST, self._term(item), span=span))
            self.triples.append(TriplePattern(cell, _REST, after, span=span))
        return cells[0]

    def _connect(self, subject: Term, path: Path, object_: Term, span: Span) -> None:
        """Section 18.2.2.4: sequences and inverses of plain links are triples."""
        match path:
            case Link(predicate=predicate):
                self.triples.append(TriplePattern(subject, predicate, object_, span=span))
            case Inverse(path=inner):
                self._connect(object_, inner, subject, span)
            case Sequence(first=first, second=second):
                middle = self._labels.fresh("p")
                self._connect(subject, first, middle, span)
                self._connect(middle, second, object_, span)
            case _:
                self.paths.append(PathPattern(subject, path, object_, span=span))

    def _path(self, item: Leaf | Node) -> Path:
        if isinstance(item, Leaf):
            return Link(self._iri(item))
        if len(item.all("part") if isinstance(item.get("part"), list) else ()) > MAX_PARTS:
            raise DiagnosticError(self._names.text.error(f"A path has more than {MAX_PARTS} parts.", item.start, item.end,
                                                         code="nesting-too-deep", hint="use ?p with VALUES ?p { ... }"))
        match item.name:
            case "PathAlternative":
                return reduce(Alternative, map(self._path, item.all("part")))
            case "PathSequence":
                return reduce(Sequence, map(self._path, item.all("part")))
            case "PathEltOrInverse":
                return Inverse(self._path(item.parts["part"]))
            case "PathElt":
                path = self._path(item.parts["part"])
                repeat = item.get("mod")
                return Repeat(path, *_REPEATS[repeat]) if repeat else path
            case "PathNegatedPropertySet":
                return self._negated(item)
        self._names.error("DISTINCT(...) is no path of SPARQL 1.1.", item.start, item.end)
        return Link(_NIL)

    def _negated(self, node: Node) -> NegatedSet:
        forward = tuple(self._iri(part) for part in node.all("part") if isinstance(part, Leaf))
        backward = tuple(self._iri(part.items[-1]) for part in node.all("part") if isinstance(part, Node))
        return NegatedSet(forward, backward)

    def _iri(self, item: Leaf) -> Constant:
        return Constant(f"<{self._names.iri(item)}>")
