"""What shards have of a closure that they make together, and what they send each other."""

from __future__ import annotations

import pytest

from engine.ir.expressions import Call
from engine.ir.rules import TRIPLE, Assign, Atom, Falsum, Formula, Head, Rule, Table
from engine.ir.terms import RDF_TYPE, Constant, Variable
from engine.plan import exchange as module
from engine.plan.exchange import exchange
from engine.plan.nodes import Exchange

TYPE = Constant(RDF_TYPE)


def triple(text: str) -> Atom:
    """``?x p ?y``; ``a C`` is rdf:type."""
    terms = [Variable(word[1:]) if word[0] == "?" else TYPE if word == "a" else Constant(f"<{word}>") for word in text.split()]
    return Atom(TRIPLE, tuple(terms))


def rule(head: str, *body: str | Formula) -> Rule:
    made: Head = triple(head) if head else Falsum()
    return Rule(made, tuple(triple(part) if isinstance(part, str) else part for part in body))


def of(*rules: Rule) -> tuple[str, str] | None:
    """The properties by object and what is sent, as words."""
    found = exchange(rules)
    return None if found is None else (" ".join(sorted(token[1:-1] for token in found.by_object)), " ".join(sorted(
        " ".join(sorted(token[1:-1] for token in classes or properties or ("<any>",))) for properties, classes in found.sent)))


@pytest.mark.parametrize(("rules", "expected"), [
    ([rule("?x a C", "?x a D"), rule("?x q ?y", "?x p ?y"), rule("?x a C", "?x p ?y")], ("", "")),
    ([rule("?x a C", "?x a D", "?x p ?y", "?x q ?z")], ("", "")),
    ([rule("?y a C", "?x p ?y")], ("p", "")),
    ([rule("?y q ?x", "?x p ?y")], ("p", "")),
    ([rule("?x a C", "?x p ?y", "?y a D")], ("p", "C")),
    ([rule("?x p ?z", "?x p ?y", "?y p ?z")], ("p", "p")),
    ([rule("?y same ?z", "?x p ?y", "?x p ?z")], ("", "same")),
    ([rule("?x near c", "?x p ?y"), rule("?x a C", "?y near ?x", "?x a D")], ("near", "near")),
    ([rule("?x q ?y", "?x p ?y"), rule("?x a C", "?x q ?y", "?y a D")], ("p q", "C")),
    ([rule("", "?x a C", "?x a D"), rule("", "?x p ?y", "?y a D")], ("p", "")),
], ids=str)
def test_what_is_shared_out(rules: list[Rule], expected: tuple[str, str]) -> None:
    assert of(*rules) == expected


@pytest.mark.parametrize("body", [
    ("?x p ?y", "?y p ?z", "?z p ?w"), ("?x p ?y", "?z q ?w"), ("?x p c", "a p b"), ("?x ?p ?y", "?y a C"), ("?x a ?c", "?c q ?d"),
    ("?x p ?y", Assign(Variable("z"), Call("STR", (Variable("y"),))))], ids=str)
def test_what_has_no_key_is_made_by_one(body: tuple[str | Formula, ...]) -> None:
    assert of(rule("?x q d", *body)) is None


def test_what_is_long_to_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many classes all are sent; many properties are not shared out by object."""
    some = Table((Variable("c"),), tuple((Constant(f"<c{number}>"),) for number in range(3)))
    classes = rule("?x a ?c", some, "?x p ?y", "?y a D")
    ranges = rule("?y a C", Table((Variable("p"),), some.rows), "?x ?p ?y")
    assert of(classes) == ("p", "c0 c1 c2") and of(ranges) == ("c0 c1 c2", "")
    monkeypatch.setattr(module, "MOST_SENT", 2)
    assert exchange([classes]) == Exchange(frozenset({"<p>"}), ((frozenset({RDF_TYPE}), None),))
    monkeypatch.setattr(module, "MOST_BY_OBJECT", 2)
    assert of(ranges) is None
