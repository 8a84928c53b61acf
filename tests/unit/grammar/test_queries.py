"""Query forms, grouping, aggregates and modifiers: text to algebra (SPARQL 1.1 sections 18.2.4 and 18.2.5)."""

from __future__ import annotations

from engine.ir.expressions import Aggregate, Call
from engine.ir.patterns import BGP, Distinct, Extend, Filter, Group, Join, OrderBy, Project, Slice, Values
from engine.ir.printer import show
from engine.ir.statement import Construct, Describe, Query, Select
from engine.ir.terms import Variable
from grammar import parse


def names(*written: str) -> tuple[Variable, ...]:
    return tuple(Variable(name) for name in written)


def select(text: str) -> Select:
    query = parse(text).query
    assert isinstance(query, Select)
    return query


def test_modifiers_stand_in_the_order_of_the_specification() -> None:
    query = select("SELECT DISTINCT ?x (?y + 1 AS ?z) { ?x ?p ?y } ORDER BY DESC(?z) ?x LIMIT 5 OFFSET 2")
    slice_ = query.pattern
    assert isinstance(slice_, Slice) and (slice_.offset, slice_.limit) == (2, 5)
    assert isinstance(slice_.pattern, Distinct) and isinstance(slice_.pattern.pattern, Project)
    order = slice_.pattern.pattern.pattern
    assert isinstance(order, OrderBy) and order.conditions == ((Variable("z"), True), (Variable("x"), False))
    assert isinstance(order.pattern, Extend) and isinstance(order.pattern.pattern, BGP)
    assert query.variables == names("x", "z")


def test_select_star_shows_variables_in_the_order_of_the_text() -> None:
    text = """SELECT * { ?c <p> ?a . [] <q> _:n . BIND(1 AS ?z) GRAPH ?g { ?b <p>/<q> ?c }
                         { SELECT ?y { ?hidden <p> ?y } } MINUS { ?m <p> 1 } }"""
    assert select(text).variables == names("c", "a", "z", "g", "b", "y")


def test_grouping() -> None:
    query = select("""SELECT ?k (COUNT(DISTINCT ?v) AS ?n) (?n / SUM(?v) AS ?r) { ?k ?p ?v }
                      GROUP BY ?k (STR(?p) AS ?t) STRLEN(?v) HAVING (COUNT(DISTINCT ?v) > 1)
                      ORDER BY MAX(?v) VALUES ?k { <a> }""")
    count = Aggregate("COUNT", Variable("v"), True)
    total, most = Aggregate("SUM", Variable("v")), Aggregate("MAX", Variable("v"))
    project = query.pattern
    assert isinstance(project, Project) and isinstance(project.pattern, OrderBy)
    assert project.pattern.conditions == ((Variable(".agg2"), False),)
    second = project.pattern.pattern
    assert isinstance(second, Extend) and second.expression == Call("/", (Variable("n"), Variable(".agg1")))
    first = second.pattern
    assert isinstance(first, Extend) and first.expression == Variable(".agg0")
    joined = first.pattern
    assert isinstance(joined, Join) and isinstance(joined.right, Values) and isinstance(joined.left, Filter)
    group = joined.left.pattern
    assert isinstance(group, Group) and not group.implicit
    assert group.keys == names("k", "t", ".key2")
    assert group.aggregates == ((Variable(".agg0"), count), (Variable(".agg1"), total), (Variable(".agg2"), most))
    key = group.pattern
    assert isinstance(key, Extend) and (key.variable, key.expression) == (Variable(".key2"), Call("STRLEN", names("v")))


def test_an_aggregate_without_group_by_makes_one_group() -> None:
    query = select("SELECT (GROUP_CONCAT(?x; SEPARATOR=', ') AS ?all) (COUNT(*) AS ?n) { ?x ?p ?o }")
    assert isinstance(query.pattern, Project)
    group = query.pattern.pattern
    while isinstance(group, Extend):
        group = group.pattern
    assert isinstance(group, Group) and group.implicit and group.keys == ()
    aggregates = [aggregate for _, aggregate in group.aggregates]
    assert aggregates == [Aggregate("GROUP_CONCAT", Variable("x"), False, ", "), Aggregate("COUNT", None)]


def test_having_may_name_an_expression_of_select() -> None:
    by_name = select("SELECT ?k (AVG(?v) AS ?a) { ?k ?p ?v } GROUP BY ?k HAVING(?a > 1 && ?k != <x>)")
    spelt_out = select("SELECT ?k (AVG(?v) AS ?a) { ?k ?p ?v } GROUP BY ?k HAVING(AVG(?v) > 1 && ?k != <x>)")
    assert by_name == spelt_out


def test_sub_queries_hide_what_they_do_not_select() -> None:
    query = select("SELECT * { { SELECT ?x (COUNT(?y) AS ?n) { ?x ?p ?y } GROUP BY ?x LIMIT 3 } ?x <q> ?z }")
    assert query.variables == names("x", "n", "z")
    assert isinstance(query.pattern, Project) and isinstance(query.pattern.pattern, Join)
    assert isinstance(query.pattern.pattern.left, Slice)


def construct(text: str) -> Construct:
    query: Query = parse(text).query
    assert isinstance(query, Construct)
    return query


def test_a_template_has_blank_nodes_of_its_own() -> None:
    query = construct("CONSTRUCT { _:a <p> ?x . [] <q> _:new } WHERE { _:a <p> ?x }")
    assert isinstance(query.pattern, BGP)
    in_where = query.pattern.triples[0].subject
    in_template = {term for triple in query.template for term in triple.terms if isinstance(term, Variable) and not term.visible}
    assert len(in_template) == 3 and in_where not in in_template
    assert Variable("_:new") in in_template


def test_construct_where() -> None:
    query = construct("CONSTRUCT WHERE { ?s <p> _:b . ?s <q> ?o } LIMIT 1")
    assert isinstance(query.pattern, Slice) and isinstance(query.pattern.pattern, BGP)
    assert len(query.template) == 2 and query.template[0].object != query.pattern.pattern.triples[0].object


def test_describe() -> None:
    query = parse("DESCRIBE ?x <http://ex.org/a> { ?x ?p ?y }").query
    assert isinstance(query, Describe) and len(query.terms) == 2
    query = parse("DESCRIBE * { ?x ?p ?y }").query
    assert isinstance(query, Describe) and query.terms == names("x", "p", "y")
    assert parse("DESCRIBE <x>").query == Describe(parse("DESCRIBE <x> {}").query.terms, BGP(()))  # type: ignore[union-attr]


def test_ask_keeps_its_modifiers() -> None:
    printed = show(parse("ASK { ?x ?p ?y } GROUP BY ?x HAVING (COUNT(?y) > 1)"))
    assert printed.splitlines()[-2:] == ["GROUP BY ?x", "HAVING (COUNT(?y) > 1)"]
