"""Random programs of temporal rules over a small domain, with facts: for whoever compares two ways to evaluate them.

Ends of intervals are halves of a second, as 0.5 and 1 in the notation of engine/ir/printer_facts.py.
"""

from __future__ import annotations

from hypothesis import strategies as st

from engine.ir.rules import Atom, BoxMinus, BoxPlus, DiamondMinus, Fact, Formula, Head, Negation, Rule, RuleSet, rule_variables
from engine.ir.terms import Constant, Variable
from engine.timeline import Interval, interval, operator

HALF = 500                                                  # ms
GIVEN = {"A": 1, "B": 1, "E": 2, "N": 0}                    # predicates of facts, by arity
DERIVED = {"P": 1, "Q": 1, "R": 2, "Z": 0}
ARITIES = GIVEN | DERIVED
CONSTANTS = tuple(Constant(f'"{name}"') for name in "ab")
VARIABLES = Variable("X"), Variable("Y")

Program = tuple[RuleSet, tuple[Fact, ...]]


@st.composite
def ends(draw: st.DrawFn, most: int, longest: int, punctual: bool) -> tuple[int, int, bool, bool]:
    """Two ends in ms, the first up to `most` halves of a second, the second `longest` later; and whether they are closed."""
    low = draw(st.integers(0, most))
    length = draw(st.integers(0 if punctual else 1, longest))
    first, last = (draw(st.booleans()), draw(st.booleans())) if length else (True, True)
    return low * HALF, (low + length) * HALF, first, last


@st.composite
def distances(draw: st.DrawFn, punctual: bool = True, unbounded: bool = True) -> Interval:
    """The interval of an operator."""
    low, high, first, last = draw(ends(2, 3, punctual))
    endless = unbounded and draw(st.integers(0, 9)) == 0
    return operator(low, None if endless else high, closed_start=first, closed_end=last)


@st.composite
def facts(draw: st.DrawFn, punctual: bool = True) -> Fact:
    """A fact between 0 s and 7 s."""
    low, high, first, last = draw(ends(6, 8, punctual))
    when = interval(low, high, closed_start=first, closed_end=last)
    assert when is not None
    name = draw(st.sampled_from(sorted(GIVEN)))
    return Fact(Atom(name, tuple(draw(st.sampled_from(CONSTANTS)) for _ in range(GIVEN[name]))), when)


@st.composite
def atoms(draw: st.DrawFn, arities: dict[str, int], variables: tuple[Variable, ...] = VARIABLES) -> Atom:
    """An atom about one of the predicates; one term in five is a constant."""
    name = draw(st.sampled_from(sorted(arities)))
    one = st.integers(0, 4).flatmap(lambda n: st.sampled_from(variables if n and variables else CONSTANTS))
    return Atom(name, tuple(draw(one) for _ in range(arities[name])))


@st.composite
def rules(draw: st.DrawFn, punctual: bool, unbounded: bool, negation: bool, nested: bool) -> Rule:
    """A rule that is safe and forward-propagating; under ``not`` stands what facts are about."""
    spans = distances(punctual, unbounded)
    body: list[Formula] = []
    for _ in range(draw(st.sampled_from([1, 1, 2, 2, 3]))):
        part: Formula = draw(atoms(draw(st.sampled_from([GIVEN, GIVEN, DERIVED]))))
        for _ in range(draw(st.integers(0, 2 if nested else 1))):
            part = draw(st.sampled_from([DiamondMinus, DiamondMinus, BoxMinus]))(draw(spans), part)
        body.append(part)
    bound = tuple(sorted({v for part in body for v in rule_variables(part)}))
    if negation and draw(st.booleans()):
        body.append(Negation(draw(atoms(GIVEN, bound))))
    head: Head = draw(atoms(DERIVED, bound))
    if draw(st.integers(0, 2)) == 0:
        assert isinstance(head, Atom)
        head = BoxPlus(draw(spans), head)
    return Rule(head, tuple(body))


def programs(*, punctual: bool = True, unbounded: bool = True, negation: bool = False, nested: bool = True) -> st.SearchStrategy[Program]:
    """Rule sets with facts for them. Without `punctual` every interval, of facts and operators, has a length."""
    return st.tuples(st.lists(rules(punctual, unbounded, negation, nested), min_size=2, max_size=5).map(
        lambda found: RuleSet("random", tuple(found))), st.lists(facts(punctual), min_size=4, max_size=10).map(tuple))
