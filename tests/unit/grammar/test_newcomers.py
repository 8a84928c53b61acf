"""What newcomers write: each mistake is told at its place with a hint that helps; several in one text are all told."""

from __future__ import annotations

import pytest

from engine.ir.spans import Diagnostic, DiagnosticError
from grammar import parse, rule_sets
from grammar.rif.parse import parse_rules

PS, XML = "text/x-rif-ps", "application/rif+xml"

# The place is between the guillemets; then a part of the hint.
SPARQL = [
    ("SELECT * FROM STREAM <s> [RANGE «10» seconds] { ?s ?p ?o }", "write 10s"),
    ("SELECT * FROM STREAM <s> [RANGE «10» minutes] { ?s ?p ?o }", "write 10m"),
    ("SELECT * FROM STREAM <s> [RANGE 10s STEP «2» sec] { ?s ?p ?o }", "write 2s"),
    ("REGISTER QUERY q COMPUTE EVERY «10» hours AS SELECT * { ?s ?p ?o }", "write 10h"),
    ("SELECT * FROM STREAM <s> [FROM NOW-«10» hours TO NOW STEP 1h] { ?s ?p ?o }", "write 10h"),
    ("SELECT * FROM STREAM <s> [RANGE «10»] { ?s ?p ?o }", "10s for seconds"),
    ("SELECT * FROM STREAM <s> [«10»s] { ?s ?p ?o }", "[RANGE 10s], or [TRIPLES 10]"),
    ("SELECT * FROM STREAM <s> [«ROWS» 10] { ?s ?p ?o }", "[TRIPLES 10] or [ITEMS 10]"),
    ("SELECT * FROM STREAM <s> [«LAST» 10] { ?s ?p ?o }", "[TRIPLES 10] or [ITEMS 10]"),
    ("SELECT * FROM STREAM <s> [TRIPLES«]» { ?s ?p ?o }", "[TRIPLES 100]"),
    ("SELECT * FROM STREAM <s> [«STEP» 2s RANGE 10s] { ?s ?p ?o }", "[RANGE 10s STEP 2s]"),
    ("SELECT * FROM STREAM <s> [RANGE 10s«,» STEP 2s] { ?s ?p ?o }", "no comma"),
    ("SELECT * FROM STREAM <s> «{» ?s ?p ?o }", "[RANGE 10s STEP 2s]"),
    ("SELECT * FROM <s> «[»RANGE 10s] { ?s ?p ?o }", "FROM STREAM <iri> [RANGE 10s STEP 2s]"),
    ("SELECT * FROM STREAM <s> [NOW] USING «rdfs» { ?s ?p ?o }", "USING RULES rdfs"),
    ("REGISTER «AS» SELECT * { ?s ?p ?o }", "REGISTER QUERY name AS"),
    ("REGISTER «hot» AS SELECT * { ?s ?p ?o }", "REGISTER QUERY name AS"),
    ("SELECT * { ?s ?p ?o FILTER «?o» > 30 }", "FILTER(?o > 30)"),
    ("SELECT * { ?s ?p ?o FILTER NOT «?o» }", "FILTER(!?o)"),
    ("SELECT * { ?s ?p ?o FILTER NOT EXISTS «?s» <q> ?r }", "EXISTS { ... }"),
    ("SELECT * { ?s ?p ?o OPTIONAL «?s» <q> ?r }", "OPTIONAL { ... }"),
    ("SELECT * { ?s ?p ?o MINUS «?s» <q> ?r }", "MINUS { ... }"),
    ("ASK «?s» ?p ?o", "ASK { ... }"),
    ("CONSTRUCT «?s» <p> ?o WHERE { ?s ?p ?o }", "CONSTRUCT { ... }"),
    ("SELECT * { ?s ?p ?o BIND «?o» AS ?x }", "BIND(?o AS ?name)"),
    ("SELECT * { ?s ?p ?o } LIMIT «?x»", "LIMIT 10"),
    ("SELECT * { ?s ?p ?o } LIMIT«»", "LIMIT 10"),
    ("SELECT * { ?s ?p ?o } ORDER «?s»", "ORDER BY ?s"),
    ("SELECT * { ?s ?p ?o } ORDER BY DESC «?s»", "DESC(?s)"),
    ("SELECT ?s { ?s ?p ?o } GROUP «?s»", "GROUP BY ?s"),
    ("SELECT ?s { ?s ?p ?o } GROUP BY ?s HAVING «?s» > 1", "HAVING("),
    ("SELECT ?s { ?s ?p ?o } GROUP BY ?s HAVING COUNT(?s) «>» 1", "HAVING("),
    ("SELECT * { ?s «temp» ?o }", "prefix:temp"),
    ("SELECT * { ?s <p> «temp» }", '"temp"'),
    ("SELECT * { FILTER(?x = «yes») }", '"yes"'),
    ("SELECT ?s { «s» ?p ?o }", "?s"),
    ("SELECT «s» { ?s ?p ?o }", "?s"),
    ("SELECT «{» ?s ?p ?o }", "SELECT *"),
    ("SELECT * { FILTER(?o =«>» 30) }", ">="),
    ("SELECT * { FILTER(?o «<>» 30) }", "!="),
    ("SELECT * { FILTER(?o > 30«,»5) }", "30.5"),
    ("PREFIX «ex» <http://ex.org/> SELECT * { ?s ex:p ?o }", "PREFIX ex: <"),
    ("PREFIX ex: «http:»//ex.org/ SELECT * { ?s ex:p ?o }", "angle brackets"),
    ("«@prefix» ex: <http://ex.org/> . SELECT * { ?s ex:p ?o }", "PREFIX ex: <"),
    ("PREFIX ex: <http://ex.org/> «.» SELECT * { ?s ex:p ?o }", "no '.'"),
    ("SELECT * { ?s ?p ?o }«;»", "no ';'"),
    ("«q»(X) <- [5 sec] diamond p(X) .", "text/x-lars"),
    ("«q»(X):-Boxminus[1,1]p(X)", "text/x-datalogmtl"),
    ("SELECT * { ?s <p> «“»abc” }", "straight quotes"),
    ("SELECT * { ?s ?p ?o .\n ?s «<»http://ex.org/q ?r }", "an IRI ends with >"),
    ("SELECT ?s (COUNT(?o) AS ?n) { ?s ?p ?o }", "add ?s to GROUP BY"),
]


def refused(text: str, media: str | None = None) -> tuple[Diagnostic, ...]:
    with pytest.raises(DiagnosticError) as caught:
        parse(text) if media is None else parse_rules(text, media, "test")
    return caught.value.diagnostics


def check(marked: str, hint: str, media: str | None = None) -> Diagnostic:
    """The only diagnostic is about the part between « and », where there is one, and hints at `hint`."""
    text = marked.replace("«", "").replace("»", "")
    found = refused(text, media)
    assert len(found) == 1, "\n".join(one.render() for one in found)
    assert found[0].hint is not None and hint in found[0].hint, found[0].render()
    if "«" in marked:
        place, span = (marked.index("«"), marked.index("»") - 1), found[0].span
        assert span is not None and (span.start, span.end) == place, found[0].render()
    return found[0]


@pytest.mark.parametrize(("marked", "hint"), SPARQL, ids=[marked for marked, _ in SPARQL])
def test_mistakes_in_queries(marked: str, hint: str) -> None:
    check(marked, hint)


@pytest.mark.parametrize("text", ["SELECT * { ?s <p> True }", "SELECT * { FILTER(TRUE) }",
                                  "REGISTER QUERY AS SELECT * FROM STREAM <s> [NOW] { ?s ?p ?o }",
                                  "REGISTER QUERY q SELECT * FROM STREAM <s> [NOW] { ?s ?p ?o }"])
def test_what_is_no_mistake(text: str) -> None:
    parse(text)


# All the places between guillemets are told, in this order.
SEVERAL = [
    "SELECT * FROM STREAM <s> [RANGE «10secs» STEP «2»] FROM STREAM <t> [RANGE «5»] { ?s «foaf:»name ?o }",
    "SELECT * FROM STREAM <s> [RANGE «10» seconds STEP «2» seconds] WHERE { ?s <p> ?o FILTER «?o» > 3 }",
    "SELECT * FROM STREAM <s> «{» ?s «ex:»p ?o }",
    "SELECT * FROM STREAM <s> [«10»s] FROM STREAM <t> [«ROWS» 5] { ?s ?p «temp» }",
    "REGISTER «q» AS SELECT * FROM STREAM <s> [RANGE «10»] { ?s ?p ?o FILTER(?o > 3 «}»",
    "REGISTER QUERY q COMPUTE EVERY «5» AS SELECT * FROM STREAM <s> [TRIPLES «0»] { ?s «ex:»p ?o }",
    "SELECT * { STREAM <s> [RANGE «10»] { ?s «ex:»p ?o } STREAM <t> «{» ?s «foaf:»p ?o } }",
    "SELECT * FROM NAMED WINDOW <w> ON <s> «{» WINDOW <w> { ?s «ex:»p ?o } }",
    "SELECT * FROM STREAM <s> [NOW]«,» FROM STREAM <t> [RANGE «3»] { ?s ?p ?o }",
]


@pytest.mark.parametrize("marked", SEVERAL)
def test_several_mistakes_of_one_text_are_all_told(marked: str) -> None:
    pieces, places, at = marked.replace("»", "«").split("«"), list[tuple[int, int]](), 0
    for number, piece in enumerate(pieces):
        if number % 2:
            places.append((at, at + len(piece)))
        at += len(piece)
    found = refused("".join(pieces))
    assert [(one.span.start, one.span.end) for one in found if one.span] == places, "\n".join(one.render() for one in found)


RULES = [
    ("Document(Group(Forall ?x ?y (<a:p>(?x) :- And(<a:q>(?x ?y) ?y «>» 3))))", "External(pred:numeric-greater-than(?y 3))"),
    ("Document(Group(Forall ?x ?y (<a:p>(?x) :- And(<a:q>(?x ?y) ?y «>=» 3))))", "External(pred:numeric-greater-than-or-equal(?y 3))"),
    ("Document(Group(Forall ?x ?y (<a:p>(?x) :- And(<a:q>(?x ?y) ?y «<» 3))))", "External(pred:numeric-less-than(?y 3))"),
    ("Document(Group(Forall ?x ?y (<a:p>(?x) :- And(<a:q>(?x ?y) ?y «!=» 3))))", "External(pred:numeric-not-equal(?y 3))"),
    ("Document(Group(Forall ?x ?y (<a:p>(?x) :- And(<a:q>(?x ?y) ?x = ?y «*» 3))))", "External(func:numeric-multiply(?y 3))"),
    ("Document(Group(<a:p>(1) «<-» <a:q>(1)))", "head :- body"),
    ("Document(Group(<a:p>(1) :- <a:q>(1)«.»))", "without dots"),
    ("Document(Group(<a:p>(1«,» 2)))", "without commas"),
    ("Document(Group(<a:p>(«'»a')))", "double quotes"),
    ("Document(Group(Forall ?x «<a:p>»(?x) :- <a:q>(?x)))", "Forall ?x ( head :- body )"),
    ("Document(Group(<a:p>(1) :- <a:q>(1) «and» <a:r>(1)))", "And( ... )"),
    ("Document(Group(<a:p>(1) :- «not» <a:q>(1)))", "not in RIF-Core"),
    # a bracket that is missing
    ("Document(\n Group(\n  Forall ?x «(»<a:p>(?x) :- <a:q>(?x)\n  Forall ?x (<a:r>(?x) :- <a:p>(?x))\n))",
     "add ')' before the Forall of line 4"),
    ("Document(\n Group(\n  Forall ?x (<a:p>«(»?x :- <a:q>(?x))\n  Forall ?x (<a:r>(?x) :- <a:p>(?x))\n))",
     "add ')' before the :- of line 3"),
    ("Document(\n Prefix«(»ex <http://ex.org/>\n Group(\n  ex:p(1)\n))", "add ')' before the Group of line 3"),
    ("Document(\n Group(\n  Forall ?x «(»<a:p>(?x) :- And(<a:q>(?x)\n   <a:r>(?x)\n  )\n  Forall ?x (<a:r>(?x) :- <a:p>(?x))\n))",
     "add ')' before the Forall of line 6"),
    ("Document(\n Group(\n  Forall ?x (<a:p>(?x) :- <a:q>(?x))\n)«»", "is missing here or before"),
]


@pytest.mark.parametrize(("marked", "hint"), RULES)
def test_mistakes_in_rules(marked: str, hint: str) -> None:
    check(marked, hint, PS)


GROUP = '<Document xmlns="http://www.w3.org/2007/rif#">\n<payload>\n<Group>\n%s\n</Group>\n</payload>\n</Document>'


@pytest.mark.parametrize(("marked", "message"), [
    (GROUP % "<sentence>\n<And>\n<formula>«</And>»\n</sentence>", "Expected </formula> for the <formula> of line 6, found </And>."),
    (GROUP % "<sentence>" "«</Group>»", "Expected </sentence> for the <sentence> of line 4, found </Group>.")])
def test_an_element_that_is_not_closed_is_named(marked: str, message: str) -> None:
    marked = marked.replace("«</Group>»\n</Group>", "\n«</Group>»")
    text = marked.replace("«", "").replace("»", "")
    found = refused(text, XML)[0]
    assert found.message == message
    assert found.span is not None and (found.span.start, found.span.end) == (marked.index("«"), marked.index("»") - 1)


def test_an_element_that_is_open_at_the_end_is_named() -> None:
    text = GROUP.partition("\n</payload>")[0] % ""
    assert refused(text, XML)[0].message == "The text ends before the <payload> of line 2 is closed."


@pytest.mark.parametrize("media", rule_sets.RULE_SET_TYPES)
@pytest.mark.parametrize("text", ["", "\ufeff \n"])
def test_an_empty_text_is_no_rule_set(media: str, text: str) -> None:
    with pytest.raises(DiagnosticError, match="The text is empty"):
        rule_sets.parse_rules(text, media, "none")
