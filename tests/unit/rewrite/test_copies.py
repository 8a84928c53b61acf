"""Hierarchies lose the links to ancestors that their parents imply, and nothing else."""

from __future__ import annotations

from hypothesis import given, strategies as st

from engine.ir.rules import TRIPLE, Atom, DiamondMinus, Rule
from engine.ir.terms import RDF_TYPE, Constant, Variable
from engine.rewrite.temporal import without_implied_copies
from engine.timeline import operator

X, Y, Z = map(Variable, "xyz")


def is_a(name: str, variable: Variable = X) -> Atom:
    return Atom(TRIPLE, (variable, Constant(RDF_TYPE), Constant(f"<http://ex.org/{name}>")))


def link(above: str, below: str, variable: Variable = X) -> Rule:
    return Rule(is_a(above, variable), (is_a(below, variable),))


def test_ancestors_are_left_to_parents_whatever_the_names_of_variables() -> None:
    chain = (link("b", "a"), link("c", "b", Y), link("d", "c", Z))
    assert without_implied_copies((*chain, link("d", "a"), link("c", "a", Y))) == chain


def test_of_equivalent_classes_each_is_still_reached() -> None:
    rules = [link(above, below) for above in "abc" for below in "abc" if above != below]
    kept = without_implied_copies(rules)
    assert len(kept) < len(rules) and reached(kept) == reached(rules)


def test_other_rules_stay() -> None:
    joins = Rule(is_a("c"), (is_a("a"), is_a("b")))
    swapped = Rule(Atom("p", (X, Y)), (Atom("p", (Y, X)),))
    fewer = Rule(Atom("q", (X,)), (Atom("p", (X, Y)),))
    constant = Rule(Atom("q", (X,)), (Atom("p", (X, Constant('"1"'))),))
    same = Rule(Atom("q", (X,)), (Atom("p", (X, X)),))
    later = Rule(is_a("c"), (DiamondMinus(operator(0, 1), is_a("a")),))
    window = Rule(is_a("c"), (is_a("a"),), window_ms=5)
    rules = (link("b", "a"), link("c", "b"), joins, swapped, fewer, constant, same, later, window)
    assert without_implied_copies(rules) == rules


def test_a_rule_that_says_nothing_stays_so_that_its_head_is_a_relation() -> None:
    assert without_implied_copies((link("a", "a", Y),)) == (link("a", "a", Y),)


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=20))
def test_what_is_above_a_class_stays_above_it(links: list[tuple[str, str]]) -> None:
    rules = [link(above, below) for above, below in links]
    assert reached(without_implied_copies(rules)) == reached(rules)


def reached(rules: list[Rule] | tuple[Rule, ...]) -> set[tuple[str, str]]:
    """Pairs of a class and one above it."""
    pairs = {(rule.body[0].terms[2].token, rule.head.terms[2].token) for rule in rules}
    while True:
        more = pairs | {(below, top) for below, middle in pairs for again, top in pairs if middle == again}
        if more == pairs:
            return {pair for pair in pairs if pair[0] != pair[1]}
        pairs = more
