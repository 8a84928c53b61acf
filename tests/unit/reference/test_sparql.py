"""The reference evaluator on hand-made algebra: joins, paths, EXISTS, aggregates, graphs, windows, query forms."""

from __future__ import annotations

import pytest

from engine.functions.expressions import Context
from engine.ir.expressions import Aggregate, Call, Exists
from engine.ir.patterns import (BGP, Alternative, Distinct, Extend, Filter, GraphPattern, Group, Inverse, Join, LeftJoin, Link,
                                Minus, NegatedSet, OrderBy, Path, PathPattern, Pattern, Project, Repeat, Sequence, Slice,
                                TriplePattern, Union, Values, WindowPattern)
from engine.ir.statement import Ask, Construct, Describe, Select
from engine.ir.terms import XSD, Constant, OneOf, PatternTerm, Variable
from engine.reference.dataset import Content, Dataset, Graph
from engine.reference.sparql import evaluate
from tests.bags import Row, same_bag


def term(text: str) -> PatternTerm:
    """``?x`` a variable, a number an integer, else an IRI."""
    if text.startswith("?"):
        return Variable(text[1:])
    return Constant(number(text) if text.isdigit() else f"<{text}>")


def number(text: str) -> str:
    return f'"{text}"^^<{XSD}integer>'


def bgp(*triples: str) -> BGP:
    return BGP(tuple(TriplePattern(*map(term, triple.split())) for triple in triples))


def graph(*triples: str) -> Graph:
    return Graph((_token(s), _token(p), _token(o)) for s, p, o in (triple.split() for triple in triples))


def _token(text: str) -> str:
    return text if text.startswith("_:") else number(text) if text.isdigit() else f"<{text}>"


DATA = graph("a p b", "b p c", "c p a", "a q 1", "b q 2", "d q 2", "x r y")
CONTEXT = Context(1000, "test")


def rows(pattern: Pattern, data: Graph | Dataset = DATA) -> list[Row]:
    """Solutions without brackets and datatypes, to be read."""
    dataset = data if isinstance(data, Dataset) else Dataset(data)
    found = evaluate(Select(pattern, ()), dataset, CONTEXT).rows
    return [{name: token.split("^^")[0].strip('<>"') for name, token in row.items()} for row in found]


def test_a_variable_that_occurs_twice_must_agree() -> None:
    assert rows(bgp("?x p ?x"), graph("a p a", "a p b")) == [{"x": "a"}]


def test_one_of_admits_each_of_its_terms_without_binding() -> None:
    pattern = BGP((TriplePattern(Variable("x"), Constant("<q>"), OneOf((number("1"), number("2")))),))
    assert same_bag(rows(pattern), [{"x": "a"}, {"x": "b"}, {"x": "d"}])


def test_optional_keeps_rows_whose_condition_fails() -> None:
    condition = Call(">", (Variable("v"), Constant(number("1"))))
    assert same_bag(rows(LeftJoin(bgp("?x p ?y"), bgp("?x q ?v"), condition)),
                    [{"x": "a", "y": "b"}, {"x": "b", "y": "c", "v": "2"}, {"x": "c", "y": "a"}])


def test_minus_needs_a_shared_variable() -> None:
    assert len(rows(Minus(bgp("?x p ?y"), bgp("?a q ?b")))) == 3
    assert rows(Minus(bgp("?x p ?y"), bgp("?x q ?b"))) == [{"x": "c", "y": "a"}]


def test_join_where_some_rows_leave_the_shared_variable_unbound() -> None:
    values = Values((Variable("x"), Variable("w")), ((Constant("<a>"), Constant("<one>")), (None, Constant("<any>"))))
    assert same_bag(rows(Join(bgp("?x q ?v"), values)), [{"x": "a", "v": "1", "w": "one"}, {"x": "a", "v": "1", "w": "any"},
                                                         {"x": "b", "v": "2", "w": "any"}, {"x": "d", "v": "2", "w": "any"}])


P, Q, R = (Link(Constant(f"<{name}>")) for name in "pqr")


@pytest.mark.parametrize(("subject", "path", "object_", "expected"), [
    ("a", Repeat(P, 1, None), "?y", ["b", "c", "a"]),
    ("a", Repeat(P, 0, None), "?y", ["a", "b", "c"]),
    ("a", Repeat(P, 0, 1), "?y", ["a", "b"]),
    ("?y", Repeat(P, 1, None), "a", ["a", "b", "c"]),
    ("absent", Repeat(P, 0, None), "?y", ["absent"]),
    ("?y", Repeat(P, 0, 1), "absent", ["absent"]),
    ("absent", Repeat(P, 1, None), "?y", []),
    ("?y", Inverse(P), "a", ["b"]),
    ("a", Sequence(P, Alternative(P, P)), "?y", ["c", "c"]),
    ("?y", Sequence(P, Q), "2", ["a"]),
    ("a", NegatedSet((P.predicate,), ()), "?y", ["1"]),
    ("a", NegatedSet((), (P.predicate,)), "?y", []),
    ("y", NegatedSet((P.predicate,), (P.predicate,)), "?y", ["x"]),
    ("?y", Repeat(P, 1, None), "?y", ["a", "b", "c"]),
])
def test_paths(subject: str, path: Path, object_: str, expected: list[str]) -> None:
    found = rows(PathPattern(term(subject), path, term(object_)))  # type: ignore[arg-type]
    assert sorted(row["y"] for row in found) == sorted(expected)


def test_zero_length_paths_between_two_variables_start_at_every_node() -> None:
    assert len(rows(PathPattern(Variable("x"), Repeat(R, 0, 1), Variable("y")))) == len(DATA.nodes) + 1


def test_a_zero_length_path_to_a_fresh_variable_stays_in_the_graph() -> None:
    """``absent p*/q* ?y`` joins on a variable, and a variable's nodes are those of the graph."""
    absent, path = Constant("<absent>"), Sequence(Repeat(P, 0, None), Repeat(Q, 0, None))
    assert rows(PathPattern(absent, path, Variable("y"))) == []
    assert rows(PathPattern(absent, path, absent)) == [{}]


def exists(pattern: Pattern, negated: bool = False) -> Exists:
    return Exists(pattern, negated)


def test_exists_substitutes_into_filters_of_the_pattern() -> None:
    inner = Filter(Call("=", (Variable("v"), Variable("w"))), bgp("?y q ?w"))
    outer = bgp("?x p ?y", "?x q ?v")
    assert rows(Filter(exists(inner), outer)) == []
    assert same_bag(rows(Filter(exists(inner, negated=True), outer)),
                    [{"x": "a", "y": "b", "v": "1"}, {"x": "b", "y": "c", "v": "2"}])


def test_exists_sees_nothing_of_variables_that_a_sub_select_hides() -> None:
    hidden = Project(bgp("?z q ?x"), (Variable("z"),))
    assert len(rows(Filter(exists(hidden), bgp("?x p ?y")))) == 3
    shown = Project(bgp("?x q ?z"), (Variable("x"),))
    assert same_bag(rows(Filter(exists(shown), bgp("?x p ?y"))), [{"x": "a", "y": "b"}, {"x": "b", "y": "c"}])


def test_exists_with_bind_to_an_outer_variable_asks_for_agreement() -> None:
    bind = exists(Extend(bgp("?s q ?w"), Variable("v"), Variable("w")))
    assert len(rows(Filter(bind, Extend(bgp("?x p b"), Variable("v"), Constant(number("2")))))) == 1
    assert rows(Filter(bind, Extend(bgp("?x p b"), Variable("v"), Constant(number("7"))))) == []


def test_exists_with_values_of_an_outer_variable() -> None:
    values = Values((Variable("x"),), ((Constant("<b>"),), (Constant("<zz>"),)))
    assert rows(Filter(exists(values), bgp("?x p ?y"))) == [{"x": "b", "y": "c"}]


def test_exists_by_substitution_leaves_minus_without_the_variable() -> None:
    """SPARQL 1.1 section 18.6 to the letter: ?x is a term on both sides of MINUS, so nothing is shared and nothing removed."""
    inner = Minus(bgp("?x p ?y"), bgp("?x q ?v"))
    assert len(rows(Filter(exists(inner), bgp("?x q ?any")))) == 2


def test_groups() -> None:
    group = Group(bgp("?x q ?v"), (Variable("v"),), ((Variable("n"), Aggregate("COUNT", None)),))
    assert same_bag(rows(group), [{"v": "1", "n": "1"}, {"v": "2", "n": "2"}])


def test_a_group_of_nothing() -> None:
    count = ((Variable("n"), Aggregate("COUNT", None)),)
    assert rows(Group(bgp("?x nothing ?v"), (), count, implicit=True)) == [{"n": "0"}]
    assert rows(Group(bgp("?x nothing ?v"), (Variable("v"),), count)) == []


def test_count_distinct_of_rows_does_not_see_blank_nodes_of_the_pattern() -> None:
    triples = (TriplePattern(Variable("_:b"), Constant("<q>"), Variable("v")),)
    aggregates = ((Variable("n"), Aggregate("COUNT", None)), (Variable("d"), Aggregate("COUNT", None, distinct=True)))
    assert rows(Group(BGP(triples), (), aggregates, implicit=True)) == [{"n": "3", "d": "2"}]


def test_an_error_in_an_aggregate_leaves_it_unbound() -> None:
    total = Aggregate("SUM", Variable("v"))
    assert rows(Group(Union(bgp("?x q ?v"), bgp("?x p ?v")), (), ((Variable("n"), total),), implicit=True)) == [{}]


def test_limit_without_order_takes_the_canonical_order() -> None:
    project = Project(bgp("?x q ?v"), (Variable("v"), Variable("x")))
    assert rows(Slice(project, 0, 2)) == [{"v": "1", "x": "a"}, {"v": "2", "x": "b"}]
    assert rows(Slice(project, 2, 2)) == [{"v": "2", "x": "d"}]


def test_ties_of_order_by_are_broken_by_the_projected_row() -> None:
    ordered = OrderBy(bgp("?x q ?v"), ((Variable("v"), True),))
    assert [row["x"] for row in rows(Project(ordered, (Variable("x"),)))] == ["b", "d", "a"]
    assert rows(Slice(Distinct(Project(ordered, (Variable("v"),))), 1, 1)) == [{"v": "1"}]


def test_graph_with_a_variable_joins_the_name() -> None:
    dataset = Dataset(DATA, {"<g1>": graph("s p o"), "<g2>": graph("g2 p g2")})
    assert same_bag(rows(GraphPattern(Variable("g"), bgp("?s p ?o")), dataset),
                    [{"g": "g1", "s": "s", "o": "o"}, {"g": "g2", "s": "g2", "o": "g2"}])
    assert rows(GraphPattern(Variable("g"), bgp("?g p ?o")), dataset) == [{"g": "g2", "o": "g2"}]
    assert rows(GraphPattern(Constant("<g3>"), BGP(())), dataset) == []


def test_graphs_inside_a_window_are_its_items() -> None:
    items = {"<i1>": graph("s v 1"), "<i2>": graph("s v 2")}
    window = Content(graph("s v 1", "s v 2", "s v 3"), items)
    dataset = Dataset(DATA, {"<g>": graph("s v 9")}, {"<w>": window})
    assert len(rows(WindowPattern(Constant("<w>"), bgp("s v ?v")), dataset)) == 3
    assert same_bag(rows(WindowPattern(Variable("w"), GraphPattern(Variable("g"), bgp("s v ?v"))), dataset),
                    [{"w": "w", "g": "i1", "v": "1"}, {"w": "w", "g": "i2", "v": "2"}])
    assert same_bag(rows(GraphPattern(Variable("g"), bgp("s v ?v")), dataset),
                    [{"g": "g", "v": "9"}, {"g": "w", "v": "1"}, {"g": "w", "v": "2"}, {"g": "w", "v": "3"}])


def test_construct_makes_fresh_blank_nodes_for_each_solution_and_drops_what_is_not_rdf() -> None:
    node, x, v = Variable("_:n"), Variable("x"), Variable("v")
    template = (TriplePattern(node, Constant("<of>"), x), TriplePattern(node, Constant("<val>"), v),
                TriplePattern(v, Constant("<literal>"), x), TriplePattern(x, Constant("<u>"), Variable("unbound")))
    result = evaluate(Construct(template, bgp("?x q ?v")), Dataset(DATA), CONTEXT)
    assert len(result.triples) == 6
    assert len({s for s, _, _ in result.triples}) == 3
    assert result == evaluate(Construct(template, bgp("?x q ?v")), Dataset(DATA), CONTEXT)


def test_ask() -> None:
    assert evaluate(Ask(bgp("a p ?y")), Dataset(DATA), CONTEXT).boolean
    assert not evaluate(Ask(bgp("a p a")), Dataset(DATA), CONTEXT).boolean


def test_describe_follows_blank_nodes_and_reifications() -> None:
    rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    data = graph("a p _:1", "_:1 q _:2", "_:2 q 3", "z p a",
                 f"stmt {rdf}subject a", f"stmt {rdf}predicate p", f"stmt {rdf}object _:1")
    described = evaluate(Describe((Constant("<a>"),), BGP(())), Dataset(data), CONTEXT).triples
    assert described == data.triples - graph("z p a").triples
