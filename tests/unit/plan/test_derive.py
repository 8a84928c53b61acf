"""Rules as steps of a round, and which of them there are rows for."""

from __future__ import annotations

from engine.ir.rules import TRIPLE, Atom, Rule
from engine.ir.terms import Constant, Variable
from engine.plan.derive import Seen, steps
from engine.plan.nodes import ClosedSource, MergedSource, WindowSource

X, Y, Z = map(Variable, "xyz")
P, Q = Constant("<p>"), Constant("<q>")
JOINED = Rule(Atom(TRIPLE, (X, Q, Z)), (Atom(TRIPLE, (X, P, Y)), Atom(TRIPLE, (Y, Q, Z))))


def test_each_atom_may_be_new_and_the_others_must_be_known() -> None:
    first, second = steps(JOINED, ClosedSource("c", MergedSource((WindowSource(0),))))
    rows: Seen = {"<p>": (set(), True)}
    assert first.new is not None and second.new is not None
    assert first.new.in_(rows) and not second.new.in_(rows)
    assert [shape.in_(rows) for shape in first.known] == [False] and [shape.in_(rows) for shape in second.known] == [True]
