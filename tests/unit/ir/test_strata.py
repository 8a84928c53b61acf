"""Layers of rules: as few as can be, found in a time that grows with the rules, or the cycle that forbids them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.ir.rules import TRIPLE, Atom, Negation, Rule
from engine.ir.strata import Unstratified, strata
from engine.ir.terms import RDF_TYPE, Constant, Variable

X, C, P = Variable("X"), Variable("C"), Variable("P")


def rule(head: str, *body: str) -> Rule:
    """``not`` is a minus before the name."""
    return Rule(Atom(head, ()), tuple(Negation(Atom(p[1:], ())) if p[0] == "-" else Atom(p, ()) for p in body))


def a(class_: str | Variable, link: str | Variable = RDF_TYPE) -> Atom:
    return Atom(TRIPLE, (X, Constant(link) if isinstance(link, str) else link, Constant(class_) if isinstance(class_, str) else class_))


def test_the_fewest_layers() -> None:
    rules = [rule("c", "-b"), rule("b", "-a", "x"), rule("a", "x"), rule("d", "c", "-a"), rule("e", "d"), rule("d", "e")]
    assert strata(rules) == [[rules[2]], [rules[1]], [rules[0], *rules[3:]]]


LITERALS = st.sampled_from(["a", "b", "c", "d", "-a", "-b", "-e", "f", "x"])


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.lists(LITERALS, max_size=3)), max_size=8))
def test_layers_are_those_of_the_definition(texts: list[tuple[str, list[str]]]) -> None:
    """A rule is not below what it needs, and above what it negates; all as low as that allows."""
    level = {head: 0 for head, _ in texts}
    for _ in range(len(level) + 1):
        for head, body in texts:
            level[head] = max([level[head], *(level[p.strip("-")] + (p[0] == "-") for p in body if p.strip("-") in level)])
    rules = [rule(head, *body) for head, body in texts]
    if max(level.values(), default=0) > len(level):
        with pytest.raises(Unstratified):
            strata(rules)
    else:
        used = sorted(set(level.values()))
        assert strata(rules) == [[r for r, (head, _) in zip(rules, texts) if level[head] == number] for number in used]


def test_classes_are_told_apart() -> None:
    """Not A is no cycle for B; a variable class or property meets both."""
    assert len(strata([Rule(a("<B>"), (a("<C>"), Negation(a("<A>")))), Rule(a("<A>"), (a("<D>"),))])) == 2
    for head in (a(C), a(X, P)):
        with pytest.raises(Unstratified) as caught:
            strata([Rule(a("<B>"), (a("<C>"), Negation(head)))])
        assert caught.value.cycle == ("<B>", "<B>")
        with pytest.raises(Unstratified):
            strata([Rule(head, (a("<C>"), Negation(a("<A>"))))])
    assert len(strata([Rule(a("<B>"), (a("<C>"), Negation(a("<A>", "<p>"))))])) == 1


def test_thousands_of_rules() -> None:
    start = time.thread_time()
    names = [f"p{number}" for number in range(4_000)]
    chain = [rule(head, f"-{below}") for below, head in zip(names, names[1:])]
    assert len(strata(chain)) == len(chain)
    with pytest.raises(Unstratified) as caught:
        strata([*chain, rule(names[0], names[-1])])
    assert len(caught.value.cycle) == len(names) + 1 and len(str(caught.value)) < 200
    with pytest.raises(Unstratified):
        strata([r for name in names for r in (rule(name, f"-q{name}"), rule(f"q{name}", f"-{name}"))])
    assert time.thread_time() - start < 20
