"""RIF/XML as a tree of elements with places, read so that no document can make the reader fetch, expand or nest without bounds.

W3C's own documents name their namespaces by entities. So a DOCTYPE may declare entities that are plain text; one with markup or other
entities in it, one that stands outside of the document, and parameter entities are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from xml.sax import SAXParseException
from xml.sax.handler import ContentHandler, feature_namespaces
from xml.sax.xmlreader import Locator

from defusedxml import DefusedXmlException
from defusedxml.expatreader import DefusedExpatParser

from engine.ir.spans import Span
from grammar.rule_text import MAX_LENGTH, Report

XML = "http://www.w3.org/XML/1998/namespace"
MAX_DEPTH = 256
_MOST_ENTITIES = 64
_LONGEST_ENTITY = 256
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(slots=True)
class Element:
    """An element: its namespace and local name, its attributes by (namespace, name), its children and the text between them."""

    namespace: str
    name: str
    attributes: dict[tuple[str, str], str]
    span: Span
    children: list[Element] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class _EntityRefused(Exception):
    pass


class _Parser(DefusedExpatParser):  # type: ignore[misc]    # it carries no types
    """Takes entities that are plain text; whatever else a DOCTYPE can do is refused as by defusedxml."""

    entities = 0

    def defused_entity_decl(self, name: str, is_parameter_entity: int, value: str | None, base: Any, sysid: Any, pubid: Any,
                            notation_name: Any) -> None:
        self.entities += 1
        if is_parameter_entity or value is None or any(c in value for c in "&%<") or len(value) > _LONGEST_ENTITY:
            raise _EntityRefused(f"The entity '{name}' is not plain text of at most {_LONGEST_ENTITY} characters.")
        if self.entities > _MOST_ENTITIES:
            raise _EntityRefused(f"The DOCTYPE declares more than {_MOST_ENTITIES} entities.")


class _Builder(ContentHandler):
    def __init__(self, report: Report, at: Locator) -> None:
        super().__init__()
        self.report, self._at = report, at
        self.root: Element | None = None
        self._open: list[Element] = []
        self._length = 0
        self._lines = [0, *(match.end() for match in _LINE_END.finditer(report.text))]

    def place(self, line: int | None, column: int | None) -> int:
        """The offset of a line (from 1) and column (from 0)."""
        start = self._lines[min((line or 1), len(self._lines)) - 1]
        return min(start + (column or 0), len(self.report.text))

    def ill_formed(self, message: str, place: int) -> tuple[str, Span]:
        """What to say where the text is no XML, and of which place: an element that was not closed is named with its line."""
        opened = self._open[-1] if self._open else None
        if opened is not None and message == "mismatched tag":
            place = max(self.report.text.rfind("<", 0, place + 1), 0)
            end = self.report.text.find(">", place) + 1 or len(self.report.text)
            found = self.report.text[place:end][:40]
            return (f"Expected </{opened.name}> for the <{opened.name}> of line {opened.span.line}, found {found}.",
                    self.report.span(place, end))
        if opened is not None and message == "no element found":
            return f"The text ends before the <{opened.name}> of line {opened.span.line} is closed.", self.report.span(place, place)
        return f"The XML is not well-formed: {message}.", self.report.span(place, place)

    def _span(self) -> Span:
        start = self.place(self._at.getLineNumber(), self._at.getColumnNumber())
        end = self.report.text.find(">", start) + 1
        return self.report.span(start, end or start)

    def startElementNS(self, name: tuple[str | None, str], qname: str | None, attrs: Any) -> None:
        attributes = {(namespace or "", local): value for (namespace, local), value in attrs.items()}
        element = Element(name[0] or "", name[1], attributes, self._span())
        self._count(sum(map(len, attributes.values())))
        if len(self._open) >= MAX_DEPTH:
            self.report.refuse(f"Elements are nested more than {MAX_DEPTH} deep.", element.span, code="nesting-too-deep")
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)

    def endElementNS(self, name: tuple[str | None, str], qname: str | None) -> None:
        element = self._open.pop()
        element.span = self.report.span(element.span.start, max(element.span.end, self._span().end))

    def characters(self, content: str) -> None:
        self._count(len(content))
        if self._open:
            self._open[-1].pieces.append(content)

    def _count(self, length: int) -> None:
        self._length += length
        if self._length > 2 * MAX_LENGTH:
            self.report.refuse("With its entities the document is too long.", self._span(), code="body-too-large")


def read(report: Report) -> Element:
    """The root element of a text. Raises Stop."""
    parser = _Parser()
    builder = _Builder(report, parser)
    parser.setFeature(feature_namespaces, True)
    parser.setContentHandler(builder)
    try:
        parser.feed(report.text)
        parser.close()
    except SAXParseException as error:
        place = builder.place(error.getLineNumber(), error.getColumnNumber())
        report.refuse(*builder.ill_formed(error.getMessage(), place))
    except (_EntityRefused, DefusedXmlException) as error:
        place = report.text.find("<!DOCTYPE")
        message = str(error) if isinstance(error, _EntityRefused) else "The document refers to something outside of it."
        report.refuse(message, report.span(max(place, 0), max(place, 0) + 9), hint="write the text itself where the entity stands")
    if builder.root is None:
        report.refuse("The text holds no element.", report.span(0, 0))
    return builder.root
