"""Refused rule documents: each mistake with its code, its place, what is said of it and how to write it instead."""

from __future__ import annotations

import pytest

from engine.ir.spans import Diagnostic, DiagnosticError
from grammar.rif.parse import parse_rules
from grammar.rule_sets import parse_rules as parse_any
from grammar.rule_text import MAX_LENGTH
from tests.rif_documents import link, parse_condition

PS, XML = "text/x-rif-ps", "application/rif+xml"
OWL_DIRECT = "http://www.w3.org/ns/entailment/OWL-Direct"


def refused(text: str, media: str = PS) -> tuple[Diagnostic, ...]:
    with pytest.raises(DiagnosticError) as error:
        parse_rules(text, media, "test")
    return error.value.diagnostics


def in_group(rule: str) -> str:
    return f"Document(Prefix(ex <http://ex.org/>)\n Group(\n  {rule}\n))"


def check(marked: str, code: str, message: str, hint: str | None) -> None:
    """The first diagnostic is about the part between « and »."""
    start, end = marked.index("«"), marked.index("»") - 1
    text = marked.replace("«", "").replace("»", "")
    found = refused(text)[0]
    assert found.code == code, found.render()
    assert found.span is not None
    assert (found.span.source, found.span.start, found.span.end) == (text, start, end), found.render()
    assert message in found.message, found.render()
    assert hint is None or (found.hint is not None and hint in found.hint), found.render()
    assert found.span.snippet() in found.render()


UNSAFE = [
    # a head variable that the body has not
    ("Forall ?x ?y (ex:p(?x «?y») :- ex:q(?x))", "y"),
    # a universal fact
    ("Forall ?x (ex:p(«?x»))", "x"),
    # a built-in that binds nothing
    ("Forall ?x (ex:p(?x) :- And(ex:q(?x) Exists ?y (External(pred:numeric-less-than(?x «?y»)))))", "y"),
    # equality of two variables that are both unbound
    ("Forall ?x ?y (ex:p(?x) :- And(ex:q(?x) «?y» = ?y))", "y"),
    # a function of an unbound variable
    ("Forall ?x ?y (ex:p(?y) :- And(?y = External(func:numeric-add(«?x» 1))))", "x"),
    # one alternative of an Or
    ("Forall ?x (ex:p(«?x») :- Or(ex:q(?x) ex:r(1)))", "x"),
    # iri-string with both sides unbound
    ("Forall ?x ?y (ex:p(1) :- External(pred:iri-string(«?x» ?y)))", "x"),
    # a variable of a function in an atom of the body
    ("Forall ?x (ex:p(1) :- ex:q(External(func:numeric-add(«?x» 1))))", "x"),
    # a variable of a function in the head
    ("Forall ?x ?y (ex:p(External(func:numeric-add(«?y» 1))) :- ex:q(?x))", "y"),
    # a variable of Exists that hides the bound one
    ("Forall ?x (ex:p(?x) :- And(ex:q(?x) Exists ?x (External(pred:is-list(«?x»)))))", "x"),
    # a frame's subject in the head
    ("Forall ?s ?o («?s»[ex:p -> ?o] :- ex:q(?o))", "s"),
    # equalities in a ring
    ("Forall ?x ?y (ex:p(1) :- And(«?x» = External(func:not(?y)) ?y = External(func:not(?x))))", "x"),
]


@pytest.mark.parametrize(("rule", "variable"), UNSAFE, ids=[rule for rule, _ in UNSAFE])
def test_rules_that_are_not_safe(rule: str, variable: str) -> None:
    marked = in_group(rule)
    start = marked.index("«")
    found = {(d.code, d.span.start if d.span else -1): d for d in refused(marked.replace("«", "").replace("»", ""))}
    assert ("rules-unsafe", start) in found, list(found)
    assert f"?{variable}:" in found["rules-unsafe", start].message


NOT_CORE = [
    ("«ex:p(a -> 1)»", "An argument by name", "name them by place"),
    ("«ex:a = ex:b»", "Equality in a head", None),
    ("«ex:a # ex:C»", "Membership ('#') in a head", "ex:a[rdf:type -> ex:C]"),
    ("«ex:C ## ex:D»", "Subclass ('##') in a head", None),
    ("ex:p(«ex:f(1)»)", "A function term", "External(func:...(...))"),
    ("ex:p(1) :- ex:q(«ex:f(ex:g(1))»)", "A function term", None),
    ("Forall ?x (ex:p(?x) :- And(ex:q(?x) «Naf ex:r(?x)»))", "Naf (negation)", None),
    ("Forall ?x (ex:p(?x) :- And(ex:q(?x) «Not (ex:r(?x))»))", "Not (negation)", None),
    ("«Or(ex:p(1) ex:p(2))» :- ex:q(1)", "Or in a head", None),
    ("«Exists ?x (ex:p(?x))» :- ex:q(1)", "Exists in a head", None),
    ("«External(pred:is-list(1))» :- ex:q(1)", "An external atom in a head", None),
    ("Forall ?p ?x («?p»(?x) :- ex:q(?x ?p))", "A variable as predicate", None),
    ("Forall ?x (ex:p(«List(?x)») :- ex:q(?x))", "A list with variables", "func:make-list"),
    ("ex:p(«List(1 | 2)»)", "A list with a rest", None),
    ("If ex:q(1) Then «Do(Assert(ex:p(1)))»", "Do (an action)", None),
    ("ex:p(1) :- «Forall ?x (ex:q(?x))»", "Forall (Forall in a formula)", None),
]


@pytest.mark.parametrize(("rule", "message", "hint"), NOT_CORE, ids=[rule for rule, _, _ in NOT_CORE])
def test_what_is_not_in_core_is_named(rule: str, message: str, hint: str | None) -> None:
    marked = in_group(rule)
    if "Naf ex" in rule:      # its formula has no brackets of its own
        marked = in_group(rule.replace("«Naf ex:r(?x)»", "«Naf» ex:r(?x)"))
    check(marked, "rif-feature-not-core", f"{message}", hint)


SYNTAX = [
    ("«Documnt»(Group())", "Expected Document", "did you mean Document?"),
    ("Document(«Grup»())", "Expected Base, Prefix, Import, Window, Group or ')'", "rules stand in a group"),
    ("Document(Group(«Foral» ?x (<a:p>(?x))))", "Expected a formula", "did you mean Forall?"),
    ("Document(Group(<a:p>(1«,» 2)))", "has no place", "without commas"),
    ("Document(Group(<a:p>(1)) «Group»())", "Expected ')'", None),
    ("Document(Group(«p»(1)))", "Expected a term", "_p"),
    ("Document(Group(<a:p>(1) :- «:-» <a:q>(1)))", "Expected a formula", None),
    ("Document(Group(<a:p> «<a:q>»(1)))", "Expected '(', '[', '=', '#' or '##'", "a formula is"),
    ("Document(Group(<a:s>[<a:p> «<a:o>»]))", "Expected '->'", None),
    ("Document(Group(«ex:»p(1)))", "Unknown prefix 'ex:'", "Prefix(ex <http://...>)"),
    ("Document(Group(<a:p>(«<relative>»)))", "no absolute IRI, and there is no Base", None),
    ("Document(Group(<a:p>(«\"x\"»^^xs:integer)))", "'x' is no xs:integer", None),
    ("Document(Group(<a:p>(\"300\"^^xs:positiveInteger «\"0\"»^^xs:positiveInteger)))", "'0' is no xs:positiveInteger", None),
    ("Document(Group(<a:p>(«\"x\"»^^rdf:PlainLiteral)))", "no rdf:PlainLiteral", None),
    ("Document(Group(<a:p>(«\"»x)))", "never closed", "close it with"),
    ("Document«(»Group()", "never closed", "add ')'"),
    ("Document(Group[«)»", "Expected ']' for the '['", None),
    ("Document(Group(<a:p>(«?x»)))", "?x is free", "Forall ?x"),
    ("Document(Group(Forall «(»<a:p>(1))))", "Expected a variable", None),
    ("Document(Group(<a:p>(External(«func:ad»(1 2)))))", "There is no built-in", None),
    ("Document(Group(<a:p>(«External(func:numeric-add(1))»)))", "func:numeric-add takes 2 arguments, found 1", None),
    ("Document(Group(<a:p>(1) :- «External(func:numeric-add(1 2))»))", "func:numeric-add is a function, here stands a predicate", None),
    ("Document(Group(<a:p>(«External(pred:is-list(1))»)))", "pred:is-list is a predicate, here stands a function", None),
    ("Document(Group(«\"p\"»(1)))", "A literal is no predicate", None),
    ("Document(Window 10 «days» Group())", "Expected ms, s, m or h", "Window 10 s"),
    ("Document(«Window 0 s» Group())", "whole number of milliseconds", None),
    ("Document(«Window 0.5 ms» Group())", "whole number of milliseconds", None),
    ("Document(«Window 1e999999999 s» Group())", "whole number of milliseconds", None),
    ("Document(Group()) «Document»()", "Expected the end of the text", None),
    ("Document(Group(<a:p>(1) «<a:p>(1 2)»))", "<a:p> is a predicate of 2 arguments here, and a predicate of 1 argument elsewhere", None),
    ("Document(Group(<a:p>(1) «<a:s>[<a:p> -> 1]»))", "<a:p> is an individual here", "its own name"),
    ("Document(Prefix(«ex:» <a:b>))", "Expected a prefix without colon", "Prefix(ex <http://...>)"),
]


@pytest.mark.parametrize(("marked", "message", "hint"), SYNTAX, ids=[row[0] for row in SYNTAX])
def test_mistakes(marked: str, message: str, hint: str | None) -> None:
    check(marked, "rule-syntax", message, hint)


def test_all_mistakes_are_told_in_the_order_of_the_text() -> None:
    found = refused("Document(Import(<http://ex.org/g> <" + OWL_DIRECT + ">) Group(\nForall ?x (<a:p>(?x ?y))\na:q(1)\n<a:r>(<a:f>(1))))")
    assert [d.code for d in found] == ["rif-import-rejected", "rules-unsafe", "rule-syntax", "rule-syntax", "rif-feature-not-core"]
    assert [d.span.line for d in found if d.span] == [1, 2, 2, 3, 4]


def test_imports_that_are_refused_name_the_profile() -> None:
    direct, = refused(f"Document(Import(<http://ex.org/g> <{OWL_DIRECT}>))")
    assert direct.code == "rif-import-rejected" and "OWL-Direct" in direct.message and "owl-profile/RL" in (direct.hint or "")
    other, = refused("Document(Import(<http://ex.org/g> <http://ex.org/profile>))")
    assert "<http://ex.org/profile> is no profile" in other.message


def test_a_symbol_has_one_context_in_all_documents_together() -> None:
    main = parse_rules("Document(Import(<http://ex.org/b>) Group(<a:p>(1)))", PS, "main")
    agrees = parse_rules("Document(Import(<http://ex.org/b>) Group(<a:p>(2) <a:q>(1)))", PS, "b")
    assert [fact.atom.predicate for fact in link(main, {"http://ex.org/b": agrees}).facts] == ["<a:p>", "<a:p>", "<a:q>"]
    other = parse_rules("Document(Group(<a:p>[<a:q> -> 1]))", PS, "b")
    with pytest.raises(DiagnosticError, match="<a:p> is an individual here, and a predicate of 1 argument elsewhere"):
        link(main, {"http://ex.org/b": other})


def test_local_constants_are_the_document_s_own() -> None:
    first, second = (parse_rules("Document(Group(<a:p>(_x)))", PS, name) for name in ("a", "b"))
    assert first.facts != second.facts


@pytest.mark.parametrize(("text", "code"), [
    ("Document(Group(<a:p>(" + "List(" * 80 + ")" * 80 + ")))", "nesting-too-deep"),
    ("Document(Group(<a:p>() :- And(" + "Or(<a:q>() <a:r>())" * 11 + ")))", "body-too-large"),
    ("(" * MAX_LENGTH + " ", "body-too-large"),
    ("Document(Group(<a:p>('\ud800')))", "rule-syntax"),
    ("", "rule-syntax"),
])
def test_limits(text: str, code: str) -> None:
    assert [d.code for d in refused(text)] == [code]


# ---------------------------------------------------------------------- RIF/XML


RIF_XML = '<Document xmlns="http://www.w3.org/2007/rif#">\n<payload><Group><sentence>\n%s</sentence></Group></payload></Document>'
P = '<op><Const type="http://www.w3.org/2007/rif#iri">a:p</Const></op>'

WRONG_XML = [
    ("<Document", "The XML is not well-formed", 1),
    ("<Document/>", "<Document> is not in RIF's namespace", 1),
    (RIF_XML % "<Atom/>", "<Atom> needs one <op>, found 0", 3),
    (RIF_XML % f"<Atom>{P}<args><Wert/></args></Atom>", "Expected a term, found <Wert>", 3),
    (RIF_XML % f"<Atom>{P}<args><Var>x</Var></args></Atom>", "?x is free", 3),
    (RIF_XML % f"<Atom>{P}<args><Var>x y</Var></args></Atom>", "A variable needs a name", 3),
    (RIF_XML % "<Frame><object><Var>x</Var></object><slot><Var>x</Var></slot></Frame>", "<slot> holds two terms, found 1", 3),
    (RIF_XML % "<Forall><formula/></Forall>", "<Forall> declares no variable", 3),
    (RIF_XML % "<Naf><formula/></Naf>", "Naf (negation) is not in RIF-Core", 3),
    (RIF_XML % "<b:Atom xmlns:b='urn:b'/>", "<Atom> is not in RIF's namespace", 3),
    ('<Group xmlns="http://www.w3.org/2007/rif#"/>', "Expected Document, found <Group>", 1),
    ('<Document xmlns="http://www.w3.org/2007/rif#"><Window xmlns="urn:thalweg:rif">10 days</Window></Document>', "Expected a number", 1),
    ('<Document xmlns="http://www.w3.org/2007/rif#">' + "<a>" * 300 + "</a>" * 300 + "</Document>", "more than 256 deep", 1),
]


@pytest.mark.parametrize(("text", "message", "line"), WRONG_XML, ids=[message for _, message, _ in WRONG_XML])
def test_mistakes_in_xml(text: str, message: str, line: int) -> None:
    found = refused(text, XML)[0]
    assert message in found.message, found.render()
    assert found.span is not None and found.span.line == line


HARMFUL = [
    '<!ENTITY a "&b;">', '<!ENTITY a "<Var>x</Var>">', '<!ENTITY a SYSTEM "file:///etc/passwd">', '<!ENTITY % a "b">',
    '<!ENTITY a PUBLIC "-//x" "http://ex.org/x">', f'<!ENTITY a "{"x" * 300}">', '<!ENTITY a "&#38;b;">',
    *("".join(f'<!ENTITY a{n} "x">' for n in range(count)) for count in (65,)),
    '<!NOTATION n SYSTEM "n"><!ENTITY a SYSTEM "x" NDATA n>',
]


@pytest.mark.parametrize("declarations", HARMFUL, ids=range(len(HARMFUL)))
def test_entities_are_plain_text_or_refused(declarations: str) -> None:
    found = refused(f"<!DOCTYPE Document [{declarations}]><Document xmlns='http://www.w3.org/2007/rif#'/>", XML)
    assert len(found) == 1
    assert any(words in found[0].message for words in ("The entity", "entities", "outside of it")), found[0].render()


def test_an_outer_dtd_is_never_read() -> None:
    found, = refused("<!DOCTYPE Document SYSTEM 'file:///nowhere.dtd'><Document xmlns='http://www.w3.org/2007/rif#'/>", XML)
    assert "outside of it" in found.message


def test_entities_do_not_blow_up() -> None:
    text = f'<!DOCTYPE Document [<!ENTITY a "{"x" * 250}">]><Document xmlns="http://www.w3.org/2007/rif#">{"&a;" * 300_000}</Document>'
    assert [d.code for d in refused(text, XML)] == ["body-too-large"]


def test_entities_that_are_plain_text_are_taken() -> None:
    text = '<!DOCTYPE Document [<!ENTITY rif "http://www.w3.org/2007/rif#">]><Document xmlns="&rif;"/>'
    assert parse_rules(text, XML, "x").rules == ()


# ---------------------------------------------------------------------- conditions


def test_a_condition_is_closed_and_has_its_alternatives() -> None:
    bodies = parse_condition("Or(Exists ?x (ex:p(?x)) ex:a[ex:b -> 1])", PS, prefixes={"ex": "http://ex.org/"})
    assert [len(body) for body in bodies] == [1, 1]
    with pytest.raises(DiagnosticError, match=r"\?x is free"):
        parse_condition("<a:p>(?x)", PS)
    with pytest.raises(DiagnosticError, match="Expected the end of the text"):
        parse_condition("<a:p>(1) <a:q>(2)", PS)


def test_another_media_type_is_no_rule_document() -> None:
    with pytest.raises(ValueError, match="text/plain"):
        parse_any("", "text/plain", "x")
