"""Groups, paths, blank nodes, expressions: text to algebra (SPARQL 1.1 section 18.2). Patterns are compared as printed."""

from __future__ import annotations

import pytest

from engine.ir.expressions import Call, Exists
from engine.ir.patterns import BGP, Filter, Join, LeftJoin, PathPattern, Pattern, Project
from engine.ir.printer import show
from engine.ir.statement import Select
from engine.ir.terms import XSD, Constant, Variable
from grammar import parse


def where(text: str) -> Pattern:
    """The pattern of ``SELECT *`` over a group."""
    query = parse(f"PREFIX : <e#> SELECT * {{ {text} }}").query
    assert isinstance(query, Select) and isinstance(query.pattern, Project)
    return query.pattern.pattern


def expression(text: str) -> object:
    pattern = where(f"FILTER({text})")
    assert isinstance(pattern, Filter)
    return pattern.condition


def lines(text: str) -> list[str]:
    """The elements of a group as the printer writes them."""
    return [line.strip() for line in show(where(text)).splitlines()[1:-1]]


@pytest.mark.parametrize(("text", "printed"), [
    ("?s :p 1, 2 ; :q 'a'@EN ; . ?t a :C", ["?s <e#p> 1 .", "?s <e#p> 2 .", '?s <e#q> "a"@en .', "?t a <e#C> ."]),
    ("[] :p [ :q ?x ; :r _:n ]", ["_:b1 <e#q> ?x .", "_:b1 <e#r> _:n .", "_:b0 <e#p> _:b1 ."]),
    ("[ :p 1 ] .", ["_:b0 <e#p> 1 ."]),
    ("[ :p 1 ] :q 2", ["_:b0 <e#p> 1 .", "_:b0 <e#q> 2 ."]),
    ("_:b0 :p []", ["_:b0 <e#p> _:b1 ."]),
    ("?s :p ()", ["?s <e#p> <http://www.w3.org/1999/02/22-rdf-syntax-ns#nil> ."]),
    ("FILTER(?x) ?s ?p ?o FILTER(?y) ?s ?p ?q", ["?s ?p ?o .", "?s ?p ?q .", "FILTER(?x && ?y)"]),
    ("{ ?s ?p ?o } { } { { ?s ?p ?q } }", ["?s ?p ?o .", "{", "?s ?p ?q .", "}"]),
    ("VALUES (?x ?y) { (1 UNDEF) (UNDEF :a) }", ["VALUES (?x ?y) {", "(1 UNDEF)", "(UNDEF <e#a>)", "}"]),
    ("VALUES ?x { true '''a\"b''' }", ["VALUES (?x) {", "(true)", '("a\\"b")', "}"]),
    ("?s :a/:b ?o", ["?s <e#a> _:p0 .", "_:p0 <e#b> ?o ."]),
    ("?s ^(:a/^:b) ?o", ["?o <e#a> _:p0 .", "?s <e#b> _:p0 ."]),
    ("?s :a*/:b ?o . ?s :c ?d", ["_:p0 <e#b> ?o .", "?s <e#c> ?d .", "?s <e#a>* _:p0 ."]),
    ("?s (:a|^:b)+ ?o", ["?s (<e#a>|^<e#b>)+ ?o ."]),
    ("?s !(:a|^:b|a) ?o", ["?s !(<e#a>|a|^<e#b>) ?o ."]),
    ("?s !^:a ?o", ["?s !^<e#a> ?o ."]),
])
def test_groups(text: str, printed: list[str]) -> None:
    assert lines(text) == printed


def test_collections_are_lists() -> None:
    assert len(lines("(1 [ :p (2) ]) :q ?x")) == 8
    pattern = where("(1 (2)) :p ?x")
    assert isinstance(pattern, BGP)
    subjects = {triple.subject for triple in pattern.triples}
    assert len(subjects) == 3 and all(isinstance(s, Variable) and not s.visible for s in subjects)


def test_a_filter_of_optional_is_its_condition_and_one_deeper_is_not() -> None:
    outer = where("?s :p ?x OPTIONAL { ?s :q ?y FILTER(?x > 1) }")
    inner = where("?s :p ?x OPTIONAL { { ?s :q ?y FILTER(?x > 1) } }")
    assert isinstance(outer, LeftJoin) and isinstance(outer.right, BGP) and isinstance(outer.condition, Call)
    assert isinstance(inner, LeftJoin) and isinstance(inner.right, Filter) and inner.condition is None


def test_paths_join_the_triples_of_their_block() -> None:
    pattern = where("?s :p* ?o . ?s :q ?r")
    assert isinstance(pattern, Join) and isinstance(pattern.left, BGP) and isinstance(pattern.right, PathPattern)


def integer(lexical: str) -> Constant:
    return Constant(f'"{lexical}"^^<{XSD}integer>')


X, ONE, TWO = Variable("x"), integer("1"), integer("2")


@pytest.mark.parametrize(("text", "expected"), [
    ("1 + 2 * ?x", Call("+", (ONE, Call("*", (TWO, X))))),
    ("1 - 2 - ?x", Call("-", (Call("-", (ONE, TWO)), X))),
    ("?x-1", Call("-", (X, ONE))),
    ("?x -1", Call("-", (X, ONE))),
    ("-1", integer("-1")), ("+01", integer("+01")), ("- 1", Call("U-", (ONE,))), ("-?x", Call("U-", (X,))),
    ("1*-1", Call("*", (ONE, integer("-1")))),
    ("!?x || ?x && 1 = 2", Call("||", (Call("!", (X,)), Call("&&", (X, Call("=", (ONE, TWO))))))),
    ("?x && (1 && 2)", Call("&&", (Call("&&", (X, ONE)), TWO))),
    ("?x || (1 || 2)", Call("||", (X, Call("||", (ONE, TWO))))),
    ("?x IN (1, 2)", Call("IN", (X, ONE, TWO))), ("?x not  in ()", Call("NOT IN", (X,))),
    ("?x < 1 = true || 1", None),
    ("URI(?x)", Call("IRI", (X,))), ("isuri(?x)", Call("ISIRI", (X,))), ("concat()", Call("CONCAT", ())),
    ("SUBSTR(?x, 1, 2)", Call("SUBSTR", (X, ONE, TWO))), ("BNODE()", Call("BNODE", ())), ("coalesce(?x)", Call("COALESCE", (X,))),
    ("<http://f>(1)", Call("<http://f>", (ONE,))), (":f()", Call("<e#f>", ())),
    ("1.5e0", Constant(f'"1.5e0"^^<{XSD}double>')), (".5", Constant(f'".5"^^<{XSD}decimal>')),
    ("'a\\tb\\'\\\"'", Constant('"a\\tb\'\\""')), ('"x"^^:t', Constant('"x"^^<e#t>')),
    (f"'x'^^<{XSD}string>", Constant('"x"')), ("TRUE", Constant(f'"true"^^<{XSD}boolean>')),
    ("nOt ExIsTs {}", Exists(BGP(()), True)),
])
def test_expressions(text: str, expected: object) -> None:
    if expected is None:
        with pytest.raises(Exception, match="Expected an operator or"):
            expression(text)
    else:
        assert expression(text) == expected


def test_comparisons_do_not_chain_but_brackets_help() -> None:
    assert expression("(?x < 1) = true") == Call("=", (Call("<", (X, ONE)), Constant(f'"true"^^<{XSD}boolean>')))


def test_iri_function_has_the_base_with_it() -> None:
    query = parse("BASE <http://b/c> SELECT * { FILTER(IRI('d')) ?s <../e> ?o }").query
    assert "BASE <http://b/c>" in show(parse("BASE <http://b/c> SELECT * { FILTER(IRI('d')) }"))
    assert isinstance(query, Select)
    assert "<http://b/e>" in show(query)
