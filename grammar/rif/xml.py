"""RIF/XML (RIF-Core section 5; RIF-BLD section 4 where Core refers to it) as the abstract syntax."""

from typing import NoReturn

from engine.ir.builtins import RIF
from engine.ir.rules import Import
from engine.ir.terms import XSD
from grammar.rif import constants
from grammar.rif.elements import XML, Element, read
from grammar.rif.presentation import UNITS, window_ms
from grammar.rif.syntax import (FOREIGN, Apply, Clause, Connective, Const, Document, External, Foreign, Formula, Frame, ListTerm, Pair,
                                Quantified, Term, Var)
from grammar.rule_text import Report

EXTENSION = "urn:thalweg:rif"
"""The namespace of ``<Window>10 s</Window>``, which stands between the directives and the payload of a Document."""

_PAIRS = {"Equal": ("=", "left", "right"), "Member": ("#", "instance", "class"), "Subclass": ("##", "sub", "super")}
_SPACES = " \t\r\n"


class Parser:
    """Reads a document; `document` is what its local constants belong to."""

    def __init__(self, report: Report, document: str) -> None:
        self.report, self.document = report, document
        self.base: str | None = None

    def document_(self) -> Document:
        root = read(self.report)
        self._is(root, "Document")
        self.base = root.attributes.get((XML, "base"))
        imports: list[Import] = []
        clauses: list[Clause] = []
        window = window_span = None
        for child in _content(root):
            if child.namespace == EXTENSION and child.name == "Window":
                window, window_span = self._window(child), child.span
            elif self._known(child) == "directive":
                imports.append(self._import(self._only(child, "Import")))
            elif child.name == "payload":
                self._group(self._only(child, "Group"), clauses)
            else:
                self._unexpected(child, "directive or payload")
        return Document(tuple(clauses), tuple(imports), window, window_span)

    def _known(self, element: Element) -> str:
        """The local name of an element of RIF."""
        if element.namespace != RIF:
            self._fail(f"<{element.name}> is not in RIF's namespace {RIF}.", element, 'write xmlns="http://www.w3.org/2007/rif#"')
        return element.name

    def _is(self, element: Element, name: str) -> None:
        if self._known(element) != name:
            self._unexpected(element, name)

    def _unexpected(self, element: Element, expected: str) -> NoReturn:
        self._fail(f"Expected {expected}, found <{element.name}>.", element)

    def _fail(self, message: str, element: Element, hint: str | None = None) -> NoReturn:
        end = min(element.span.end, self.report.text.find(">", element.span.start) + 1 or element.span.end)
        self.report.refuse(message, self.report.span(element.span.start, end), hint)

    def _only(self, element: Element, *names: str) -> Element:
        """The one child, which is one of these (any where none is named)."""
        children = _content(element)
        if len(children) != 1:
            self._fail(f"<{element.name}> holds one element, found {len(children)}.", element)
        if names and self._known(children[0]) not in names:
            self._unexpected(children[0], " or ".join(names))
        return children[0]

    def _role(self, element: Element, name: str) -> Element:
        found = [child for child in _content(element) if self._known(child) == name]
        if len(found) != 1:
            self._fail(f"<{element.name}> needs one <{name}>, found {len(found)}.", element)
        return found[0]

    def _import(self, element: Element) -> Import:
        location, profile = self._role(element, "location"), [c for c in _content(element) if c.name == "profile"]
        return Import(self._iri(location), self._iri(profile[0]) if profile else None, span=element.span)

    def _iri(self, element: Element) -> str:
        return constants.checked(self.report, element.span, constants.iri, element.text.strip(_SPACES), self.base)[1:-1]

    def _window(self, element: Element) -> int | None:
        text = element.text.strip(_SPACES)
        unit = text.lstrip("0123456789.").strip(_SPACES)
        if unit not in UNITS:
            self._fail("Expected a number and ms, s, m or h.", element, f'<Window xmlns="{EXTENSION}">10 s</Window>')
        return window_ms(self.report, text[:-len(unit)].strip(_SPACES), unit, element.span)

    def _group(self, element: Element, clauses: list[Clause]) -> None:
        for child in _content(element):
            self._is(child, "sentence")
            sentence = self._only(child)
            if self._known(sentence) == "Group":
                self._group(sentence, clauses)
            else:
                clauses.append(self._rule(sentence))

    def _rule(self, element: Element) -> Clause:
        if element.name != "Forall":
            head, body = self._clause(element)
            return Clause((), head, body, self._name(element), element.span)
        variables, inner = self._quantified(element)
        head, body = self._clause(inner)
        return Clause(variables, head, body, self._name(inner) or self._name(element), element.span)

    def _clause(self, element: Element) -> tuple[Formula, Formula | None]:
        if self._known(element) != "Implies":
            return self.formula(element), None
        return self.formula(self._only(self._role(element, "then"))), self.formula(self._only(self._role(element, "if")))

    def _name(self, element: Element) -> str | None:
        """The IRI by which an element's annotation names it."""
        for child in element.children:
            if child.namespace == RIF and child.name == "id":
                return self._constant(self._only(child, "Const")).token[1:-1]
        return None

    def _quantified(self, element: Element) -> tuple[tuple[Var, ...], Element]:
        variables = tuple(self._variable(self._only(child, "Var")) for child in _content(element) if self._known(child) == "declare")
        if not variables:
            self._fail(f"<{element.name}> declares no variable.", element)
        return variables, self._only(self._role(element, "formula"))

    def formula(self, element: Element) -> Formula:
        """A formula of a body or head; what may stand where is checked later, for both syntaxes."""
        name = self._known(element)
        if name in ("And", "Or"):
            for child in _content(element):
                self._is(child, "formula")
            return Connective(name, tuple(self.formula(self._only(child)) for child in _content(element)), element.span)
        if name == "Exists":
            variables, inner = self._quantified(element)
            return Quantified(variables, self.formula(inner), element.span)
        if name in FOREIGN:
            return Foreign(name, element.span)
        if name in _PAIRS:
            operator, left, right = _PAIRS[name]
            return Pair(operator, self.term(self._only(self._role(element, left))), self.term(self._only(self._role(element, right))),
                        element.span)
        if name == "Frame":
            return self._frame(element)
        if name == "Atom":
            return self._apply(element)
        if name == "External":
            return External(self._apply(self._only(self._role(element, "content"), "Atom", "Expr")), element.span)
        self._unexpected(element, "a formula")

    def _frame(self, element: Element) -> Frame:
        slots: list[tuple[Term, Term]] = []
        for child in _content(element):
            if self._known(child) == "slot":
                pair = _content(child)
                if len(pair) != 2:
                    self._fail(f"<slot> holds two terms, found {len(pair)}.", child)
                slots.append((self.term(pair[0]), self.term(pair[1])))
            elif child.name != "object":
                self._unexpected(child, "object or slot")
        return Frame(self.term(self._only(self._role(element, "object"))), tuple(slots), element.span)

    def _apply(self, element: Element) -> Apply:
        args: list[Term] = []
        names: list[str] = []
        for child in _content(element):
            match self._known(child):
                case "args":
                    args += map(self.term, _content(child))
                case "slot" if len(_content(child)) == 2:
                    names.append(_content(child)[0].text.strip(_SPACES))
                    args.append(self.term(_content(child)[1]))
                case "op":
                    pass
                case _:
                    self._unexpected(child, "op or args")
        return Apply(self.term(self._only(self._role(element, "op"))), tuple(args), tuple(names), element.span)

    def term(self, element: Element) -> Term:
        match self._known(element):
            case "Var":
                return self._variable(element)
            case "Const":
                return self._constant(element)
            case "List":
                return self._list(element)
            case "External":
                return External(self._apply(self._only(self._role(element, "content"), "Expr", "Atom")), element.span)
            case "Expr":
                return self._apply(element)
        self._unexpected(element, "a term")

    def _variable(self, element: Element) -> Var:
        name = element.text.strip(_SPACES)
        if not name or not all(c.isalnum() or c in "_-." for c in name):
            self._fail("A variable needs a name of letters, digits, '_', '-' and '.'.", element)
        return Var(name, element.span)

    def _constant(self, element: Element) -> Const:
        space = element.attributes.get(("", "type"), f"{XSD}string")
        tag = element.attributes.get((XML, "lang"))
        if tag:
            return Const(constants.checked(self.report, element.span, constants.plain, element.text, tag), element.span)
        verbatim = space in (f"{XSD}string", f"{XSD}normalizedString") or not space.startswith((XSD, f"{RIF}iri"))
        text = element.text if verbatim else element.text.strip(_SPACES)
        token = constants.checked(self.report, element.span, constants.typed, text, space, self.document, self.base)
        return Const(token, element.span)

    def _list(self, element: Element) -> ListTerm:
        members: list[Term] = []
        rest: Term | None = None
        for child in _content(element):
            if self._known(child) == "items":
                members += map(self.term, _content(child))
            elif child.name == "rest":
                rest = self.term(self._only(child))
            else:
                members.append(self.term(child))
        return ListTerm(tuple(members), rest, element.span)


def _content(element: Element) -> list[Element]:
    """The children that are no annotation."""
    return [child for child in element.children if child.namespace != RIF or child.name not in ("id", "meta")]
