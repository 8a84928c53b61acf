"""Triples of the parse tree: ``;`` and ``,``, blank nodes, collections and paths spelt out (SPARQL 1.1 sections 4.2, 18.2.2)."""

from __future__ import annotations

from typing import Any

from engine.ir.patterns import (Alternative, Inverse, Link, NegatedSet, Path, PathPattern, Repeat, Sequence, TriplePattern)
from engine.ir.spans import DiagnosticError, Span
from engine.ir.terms import RDF, Constant, Term, Variable
from grammar.terms import Names
from grammar.tree import Leaf, Node

_FIRST, _REST, _NIL = (Constant(f"<{RDF}{name}>") for name in ("first", "rest", "nil"))
MAX_PARTS = 200
_REPEATS = {"?": (0, 1), "*": (0, None), "+": (1, None)}


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
        self._names = names
        self._labels = labels
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
                    self.triples.append(TriplePattern(subject, self._names.term(verb), object_, span))
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
        span = self._names.text.span(node.start, node.end)
        for index, item in enumerate(node.items):
            self.triples.append(TriplePattern(cells[index], _FIRST, self._term(item), span))
            after = cells[index + 1] if index + 1 < len(cells) else _NIL
            self.triples.append(TriplePattern(cells[index], _REST, after, span))
        return cells[0]

    def _connect(self, subject: Term, path: Path, object_: Term, span: Span) -> None:
        """Section 18.2.2.4: sequences and inverses of plain links are triples."""
        match path:
            case Link(predicate=predicate):
                self.triples.append(TriplePattern(subject, predicate, object_, span))
            case Inverse(path=inner):
                self._connect(object_, inner, subject, span)
            case Sequence(first=first, second=second):
                middle = self._labels.fresh("p")
                self._connect(subject, first, middle, span)
                self._connect(middle, second, object_, span)
            case _:
                self.paths.append(PathPattern(subject, path, object_, span))

    def _path(self, item: Leaf | Node) -> Path:
        if isinstance(item, Leaf):
            return Link(self._iri(item))
        if len(item.all("part") if isinstance(item.get("part"), list) else ()) > MAX_PARTS:
            raise DiagnosticError(self._names.text.error(f"A path has more than {MAX_PARTS} parts.", item.start, item.end,
                                                         code="nesting-too-deep", hint="use ?p with VALUES ?p { ... }"))
        match item.name:
            case "PathAlternative":
                return _fold(Alternative, [self._path(part) for part in item.all("part")])
            case "PathSequence":
                return _fold(Sequence, [self._path(part) for part in item.all("part")])
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


def _fold(kind: type[Sequence] | type[Alternative], parts: list[Path]) -> Path:
    result = parts[0]
    for part in parts[1:]:
        result = kind(result, part)
    return result
