"""Documents of the abstract syntax as RIF/XML: what is written in presentation syntax, told again in the other syntax."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from engine.functions.terms import split
from engine.ir.builtins import RIF
from engine.ir.terms import RDF
from grammar.rif.presentation import Parser
from grammar.rif.syntax import (Apply, Clause, Connective, Const, Document, External, Formula, Frame, ListTerm, Pair, Quantified, Term,
                                Var)
from grammar.rule_text import Report
from grammar.rif.xml import EXTENSION

_PAIRS = {"=": ("Equal", "left", "right"), "#": ("Member", "instance", "class"), "##": ("Subclass", "sub", "super")}


def as_xml(text: str, name: str) -> str:
    """A document in presentation syntax as RIF/XML."""
    return written(Parser(Report(text), name, None).document_())


def written(document: Document) -> str:
    """The document as RIF/XML, each element without children on a line."""
    parts = []
    for imp in document.imports:
        profile = _leaf("profile", imp.profile) if imp.profile else ""
        parts.append(_element("directive", _element("Import", _leaf("location", imp.iri) + profile)))
    if document.window_ms is not None:
        parts.append(f'<Window xmlns="{EXTENSION}">{document.window_ms} ms</Window>\n')
    parts.append(_element("payload", _element("Group", "".join(_element("sentence", _clause(c)) for c in document.clauses))))
    return f'<Document xmlns="{RIF}">\n{"".join(parts)}</Document>\n'


def _clause(clause: Clause) -> str:
    name = _element("id", f"<Const type={quoteattr(RIF + 'iri')}>{escape(clause.name)}</Const>\n") if clause.name else ""
    if clause.body is None:
        inner = _formula(clause.head, "" if clause.variables else name)
    else:
        sides = _element("if", _formula(clause.body)) + _element("then", _formula(clause.head))
        inner = _element("Implies", ("" if clause.variables else name) + sides)
    return _element("Forall", name + _declared(clause.variables) + _element("formula", inner)) if clause.variables else inner


def _declared(variables: tuple[Var, ...]) -> str:
    return "".join(_element("declare", _leaf("Var", v.name)) for v in variables)


def _formula(formula: Formula, name: str = "") -> str:
    match formula:
        case Connective(word, parts):
            return _element(word, name + "".join(_element("formula", _formula(part)) for part in parts))
        case Quantified(variables, body):
            return _element("Exists", name + _declared(variables) + _element("formula", _formula(body)))
        case Frame(subject, slots):
            told = "".join(f'<slot ordered="yes">\n{_term(slot)}{_term(value)}</slot>\n' for slot, value in slots)
            return _element("Frame", name + _element("object", _term(subject)) + told)
        case Pair(operator, left, right):
            word, first, second = _PAIRS[operator]
            return _element(word, name + _element(first, _term(left)) + _element(second, _term(right)))
        case Apply():
            return _applied("Atom", formula, name)
        case External(call):
            return _element("External", name + _element("content", _applied("Atom", call)))
    raise TypeError(f"not of Core: {formula}")


def _applied(word: str, call: Apply, name: str = "") -> str:
    args = f'<args ordered="yes">\n{"".join(map(_term, call.args))}</args>\n' if call.args else ""
    return _element(word, name + _element("op", _term(call.op)) + args)


def _term(term: Term) -> str:
    match term:
        case Var(name):
            return _leaf("Var", name)
        case Const(token):
            return _constant(token)
        case ListTerm(members):
            return _element("List", f'<items ordered="yes">\n{"".join(map(_term, members))}</items>\n')
        case External(call):
            return _element("External", _element("content", _applied("Expr", call)))
    raise TypeError(f"not of Core: {term}")


def _constant(token: str) -> str:
    parsed = split(token)
    if parsed.kind == "iri":
        return f"<Const type={quoteattr(RIF + 'iri')}>{escape(parsed.lexical)}</Const>\n"
    if parsed.lang:
        return f"<Const type={quoteattr(RDF + 'PlainLiteral')}>{escape(parsed.lexical)}@{parsed.lang}</Const>\n"
    return f"<Const type={quoteattr(parsed.datatype)}>{escape(parsed.lexical)}</Const>\n"


def _leaf(name: str, text: str) -> str:
    return f"<{name}>{escape(text)}</{name}>\n"


def _element(name: str, inner: str) -> str:
    return f"<{name}>\n{inner}</{name}>\n"
