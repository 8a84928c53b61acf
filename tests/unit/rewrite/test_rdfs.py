"""The closed RDFS rules against naive forward chaining, on random schemas with cycles, and how patterns unfold."""

from __future__ import annotations

import doctest

from hypothesis import given
from hypothesis import strategies as st

from engine.ir.patterns import BGP, TriplePattern
from engine.ir.terms import RDF_TYPE, Constant, Variable
from engine.records import Triple
from engine.reference.dataset import Graph
from engine.reference.rdfs import closure as naive_closure
from engine.rewrite import PASSES, rdfs, unfold

CLASSES, PROPERTIES, THINGS = [f"<C{i}>" for i in range(4)], [f"<p{i}>" for i in range(3)], ["<a>", "<b>", '"literal"']
schema = st.one_of(
    st.tuples(st.sampled_from(CLASSES), st.just(rdfs.SUB_CLASS), st.sampled_from(CLASSES)),
    st.tuples(st.sampled_from(PROPERTIES), st.just(rdfs.SUB_PROPERTY), st.sampled_from([*PROPERTIES, RDF_TYPE])),
    st.tuples(st.sampled_from(PROPERTIES), st.sampled_from([rdfs.DOMAIN, rdfs.RANGE]), st.sampled_from(CLASSES)))
facts = st.one_of(
    st.tuples(st.sampled_from(THINGS[:2]), st.just(RDF_TYPE), st.sampled_from(CLASSES)),
    st.tuples(st.sampled_from(THINGS[:2]), st.sampled_from(PROPERTIES), st.sampled_from([*THINGS, *CLASSES])))


@given(st.lists(schema, max_size=6), st.lists(facts, max_size=4))
def test_one_pass_of_the_closed_rules_is_the_closure(tbox: list[Triple], data: list[Triple]) -> None:
    closed = rdfs.apply(rdfs.compile_rdfs(tbox), [*tbox, *data])
    assert closed == frozenset(naive_closure(Graph({*tbox, *data})).triples)


def test_a_cycle_makes_its_classes_equal() -> None:
    rules = rdfs.compile_rdfs([("<A>", rdfs.SUB_CLASS, "<B>"), ("<B>", rdfs.SUB_CLASS, "<A>")])
    pattern = TriplePattern(Variable("x"), Constant(RDF_TYPE), Constant("<A>"))
    own, *rest = unfold.alternatives(pattern, rules)
    assert isinstance(own, BGP) and own.triples[0].object.tokens == ("<A>", "<B>")  # type: ignore[union-attr]
    assert own.triples[0].origin == ("rdfs9",) and not rest


def test_the_example_of_the_docstring_holds() -> None:
    assert doctest.testmod(unfold).failed == 0


def test_every_pass_is_listed() -> None:
    assert [step.__module__ for step in PASSES] == ["engine.rewrite.unfold"]
