"""Which rules may derive for ever."""

from __future__ import annotations

import pytest

from engine.ir.expressions import Call
from engine.ir.rules import TRIPLE, Assign, Atom, Rule, Table
from engine.ir.strata import endless
from engine.ir.terms import Constant, Variable

N, M, P, Q, X, Y = map(Variable, "nmpqxy")
COUNT, NEXT, NAME, LABEL = (Constant(f"<http://ex.org/{name}>") for name in ("count", "next", "name", "label"))
SUM = Assign(M, Call("+", (N, Constant('"1"^^<http://www.w3.org/2001/XMLSchema#integer>'))))
ONCE = Rule(Atom(TRIPLE, (X, NEXT, M)), (Atom(TRIPLE, (X, COUNT, N)), SUM), name="once")
ANY = Rule(Atom(TRIPLE, (X, Q, Y)), (Atom(TRIPLE, (X, P, Y)), Atom("below", (P, Q))), name="any")


def below(*pairs: tuple[Constant, Constant]) -> Rule:
    """rdfs7 for properties that are known."""
    return Rule(ANY.head, (Table((P, Q), pairs), ANY.body[0]), name="below")


@pytest.mark.parametrize(("others", "named"), [
    ((), ()),
    ((below((NAME, LABEL)),), ()),
    ((below((NAME, LABEL), (NEXT, LABEL)),), ()),
    ((below((NAME, LABEL), (NEXT, COUNT)),), ("once",)),
    ((below((NEXT, NAME)), below((NAME, COUNT))), ("once",)),
    ((ANY,), ("once",)),
])
def test_a_rule_that_computes_returns_by_the_properties_of_the_others(others: tuple[Rule, ...], named: tuple[str, ...]) -> None:
    assert endless((ONCE, *others)) == named
