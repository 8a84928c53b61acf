"""Rules as steps of a round, and which of them there are rows for."""

from __future__ import annotations

from engine.ir import rules as ir
from engine.ir.expressions import Call
from engine.ir.rules import TRIPLE, Atom, Rule, Table
from engine.ir.terms import Constant, Variable
from engine.plan.derive import Seen, steps
from engine.plan.nodes import ClosedSource, KnownSource, StarSource, WindowSource, sources

X, Y, Z = map(Variable, "xyz")
P, Q = Constant("<p>"), Constant("<q>")
JOINED = Rule(Atom(TRIPLE, (X, Q, Z)), (Atom(TRIPLE, (X, P, Y)), Atom(TRIPLE, (Y, Q, Z))))


def test_each_atom_may_be_new_and_the_others_must_be_known() -> None:
    first, second = steps(JOINED, ClosedSource("c", (WindowSource(0),)))
    rows: Seen = {"<p>": (set(), True, False)}
    assert [[shape.in_(rows) for shape in step.new] for step in (first, second)] == [[True], [False]]
    assert [shape.in_(rows) for shape in first.known] == [False] and [shape.in_(rows) for shape in second.known] == [True]


def test_the_atoms_of_a_star_are_joined_at_once() -> None:
    arms = tuple(Atom(TRIPLE, (X, Constant(f"<p{number}>"), Variable(f"v{number}"))) for number in range(3))
    rule = Rule(Atom(TRIPLE, (X, Q, Z)), (*arms, Atom(TRIPLE, (Y, P, X)), Atom(TRIPLE, (X, Constant("<p0>"), Z))))
    star, other = steps(rule, ClosedSource("c", (WindowSource(0),)))
    read = set(sources(star.plan))
    assert {type(source) for source in read} == {StarSource, KnownSource}
    assert [source.properties for source in read if isinstance(source, StarSource)] == [("<p0>", "<p1>", "<p2>")]
    assert (len(star.new), len(star.known), len(other.new), len(other.known)) == (4, 5, 1, 4)


def test_a_step_about_literals_waits_for_one() -> None:
    rule = Rule(Atom(TRIPLE, (X, Q, Y)), (Atom(TRIPLE, (X, P, Y)), ir.Test(Call("ISLITERAL", (Y,)))))
    [step] = steps(rule, ClosedSource("c", (WindowSource(0),)))
    assert [step.new[0].in_({"<p>": (set(), False, literal)}) for literal in (False, True)] == [False, True]


def test_a_table_of_one_row_is_read_into_the_rule() -> None:
    v = Variable("v")
    [one], [two] = (steps(Rule(Atom(TRIPLE, (X, Q, Y)), (Table((v,), rows), Atom(TRIPLE, (X, v, Y)))),
                          ClosedSource("c", (WindowSource(0),))) for rows in (((P,),), ((P,), (Q,))))
    assert not any(isinstance(part, Table) for part in one.rule.body) and any(isinstance(part, Table) for part in two.rule.body)
    assert one.new[0].in_({"<p>": (set(), False, False)}) and not one.new[0].in_({"<q>": (set(), False, False)})
