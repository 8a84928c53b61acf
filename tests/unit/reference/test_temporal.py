"""Rules on dense time: each operator, and random programs against a point-wise evaluation of what the operators say.

A cell is a doubled integer: even ones are instants, odd ones the open stretch between two. Ends of facts and of operators are whole
numbers, so the truth of a formula is the same all over a cell, and a cell is judged by one rational point of it.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product

import pytest
from hypothesis import given, strategies as st

from engine.functions.terms import integer
from engine.ir.expressions import Call
from engine.ir.rules import (TRIPLE, Assign, At, Atom, BoxMinus, BoxPlus, DiamondMinus, Fact, Falsum, Formula, Head, Negation, Rule,
                             RuleSet, Test as Condition, WindowFormula, rule_variables)
from engine.ir.strata import Unstratified
from engine.ir.terms import Constant, Variable
from engine.reference.temporal import evaluate
from engine.timeline import ALWAYS, MAX, MIN, Interval, interval, operator

X, Y = Variable("x"), Variable("y")
A, B = Constant("<a>"), Constant("<b>")
HORIZON = 12                    # ms: the model is compared up to here
LOWEST = -1                     # the cell that stands for everything before the first event
CELLS = range(LOWEST, 2 * HORIZON + 1)

Truth = dict[tuple[str, str], set[int]]


def p(term: Variable | Constant = X, name: str = "p") -> Atom:
    return Atom(name, (term,))


def held(start: int, end: int, **ends: bool) -> Interval:
    found = interval(start, end, **ends)
    assert found is not None
    return found


def intervals(rules: list[Rule], *facts: tuple[str, str, Interval], until: int | None = None) -> dict[str, list[Interval]]:
    """The intervals of each unary atom, as ``p(a)``."""
    given_facts = [Fact(Atom(name, (Constant(f"<{term}>"),)), when) for name, term, when in facts]
    found = evaluate(RuleSet("test", tuple(rules)), given_facts, until)
    return {f"{name}({','.join(t.strip('<>') for t in terms)})": list(when) for (name, terms), when in found.facts.items()}


# --- the point-wise evaluation ----------------------------------------------------------------------------------------------------


def meets(cell: int, low: Fraction, high: Fraction, closed_low: bool, closed_high: bool) -> bool:
    """Whether a cell shares a point with the stretch from `low` to `high`."""
    start, end = (Fraction(cell, 2),) * 2 if cell % 2 == 0 else (Fraction(cell - 1, 2), Fraction(cell + 1, 2))
    closed = cell % 2 == 0
    begin, stop = max(start, low), min(end, high)
    if begin < stop:
        return True
    return begin == stop and (start < begin or closed) and (low < begin or closed_low) and (begin < end or closed) and (
        begin < high or closed_high)


@cache
def looked_at(cell: int, distance: Interval) -> tuple[int, ...]:
    """The cells that hold a point which lies `distance` before the cell's own; those before LOWEST are like it."""
    point = Fraction(cell, 2)
    low, high = point - (distance.hi + 1) // 2, point - distance.lo // 2
    closed_low, closed_high = distance.hi % 2 == 0, distance.lo % 2 == 0
    return tuple(max(other, LOWEST) for other in range(2 * LOWEST - 4 * HORIZON, cell + 1)
                 if meets(other, low, high, closed_low, closed_high))


def true_at(formula: Formula, row: dict[str, str], cell: int, truth: Truth) -> bool:
    match formula:
        case Atom(predicate=name, terms=(term,)):
            return cell in truth[name, row[term.name] if isinstance(term, Variable) else term.token]
        case DiamondMinus(distance=distance, body=body):
            return any(true_at(body, row, other, truth) for other in looked_at(cell, distance))
        case BoxMinus(distance=distance, body=body):
            return all(true_at(body, row, other, truth) for other in looked_at(cell, distance))
        case Negation(body=body):
            return not true_at(body, row, cell, truth)
    raise AssertionError(formula)


def pointwise(layers: list[list[Rule]], facts: list[Fact]) -> Truth:
    """The least model on CELLS: rules are tried for every binding at every cell until nothing new comes."""
    truth: Truth = {(name, term): set() for name in "pqrs" for term in ("<a>", "<b>")}
    for fact in facts:
        term = fact.atom.terms[0]
        assert isinstance(term, Constant)
        truth[fact.atom.predicate, term.token] |= {cell for cell in CELLS if cell in fact.interval}
    for layer in layers:
        while any([derive(rule, truth) for rule in layer]):
            pass
    return truth


def derive(rule: Rule, truth: Truth) -> bool:
    new = False
    names = sorted({v.name for formula in (*rule.body, rule.head) for v in rule_variables(formula)})
    for tokens in product(("<a>", "<b>"), repeat=len(names)):
        row = dict(zip(names, tokens, strict=True))
        cells = {cell for cell in CELLS if all(true_at(formula, row, cell, truth) for formula in rule.body)}
        atom = rule.head.body if isinstance(rule.head, BoxPlus) else rule.head
        assert isinstance(atom, Atom)
        term = atom.terms[0]
        if isinstance(rule.head, BoxPlus):
            cells = {other for other in CELLS if cells & set(looked_at(other, rule.head.distance))}
        reached = truth[atom.predicate, row[term.name] if isinstance(term, Variable) else term.token]
        new |= not cells <= reached
        reached |= cells
    return new


# --- random programs --------------------------------------------------------------------------------------------------------------

DISTANCES = st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans(), st.booleans()).map(
    lambda d: (min(d[:2]), max(d[:2]), d[2], d[3])).filter(lambda d: d[0] < d[1] or d[2] and d[3]).map(
    lambda d: operator(d[0], d[1], closed_start=d[2], closed_end=d[3]))
FACTS = st.lists(st.builds(
    lambda name, term, start, length, first, last: Fact(
        Atom(name, (term,)), held(start, start + length, closed_start=first or not length, closed_end=last or not length)),
    st.sampled_from("pq"), st.sampled_from([A, B]), st.integers(0, 6), st.integers(0, 4), st.booleans(), st.booleans()), max_size=5)


def formulas(names: str, negated: str) -> st.SearchStrategy[Formula]:
    """Formulas about `names`, with ``not`` about those of `negated` only."""
    atoms: st.SearchStrategy[Formula] = st.builds(p, st.sampled_from([X, A]), st.sampled_from(names))
    leaves = st.one_of(atoms, *([st.builds(lambda n: Negation(p(X, n)), st.sampled_from(negated))] if negated else []))
    return st.recursive(leaves, lambda inner: st.one_of(st.builds(DiamondMinus, DISTANCES, inner),
                                                        st.builds(BoxMinus, DISTANCES, inner)), max_leaves=2)


def rules_for(name: str, names: str, negated: str) -> st.SearchStrategy[list[Rule]]:
    """Rules for `name`; each body begins with an atom that binds ?x."""
    heads: st.SearchStrategy[Head] = st.one_of(st.just(p(X, name)), st.builds(BoxPlus, DISTANCES, st.just(p(X, name))))
    bodies = st.tuples(st.builds(p, st.just(X), st.sampled_from(names)), st.lists(formulas(names, negated), max_size=2))
    return st.lists(st.builds(lambda head, body: Rule(head, (body[0], *body[1])), heads, bodies), min_size=1, max_size=2)


@given(rules_for("r", "pqr", "pq"), rules_for("s", "pqrs", "pqr"), FACTS)
def test_intervals_equal_points(first: list[Rule], second: list[Rule], facts: list[Fact]) -> None:
    found = evaluate(RuleSet("test", (*second, *first)), facts, HORIZON)
    truth = pointwise([first, second], facts)
    for (name, term), cells in truth.items():
        known = found.facts.get((name, (term,)), ())
        assert {cell for cell in CELLS if any(cell in i for i in known)} == cells, (name, term)


ENDS = list(product((False, True), repeat=2))
OPERATORS = [operator(a, b, closed_start=first, closed_end=last) for a in range(3) for b in range(a, 4) for first, last in ENDS
             if a < b or first and last]


@pytest.mark.parametrize(("first", "last"), ENDS)
def test_every_operator_on_every_kind_of_fact(first: bool, last: bool) -> None:
    facts = [Fact(p(A), held(2, 5, closed_start=first, closed_end=last)), Fact(p(B), held(3, 3)), Fact(p(B), held(4, 5))]
    for distance in OPERATORS:
        for rule in (Rule(p(name="r"), (DiamondMinus(distance, p()),)), Rule(p(name="r"), (BoxMinus(distance, p()),)),
                     Rule(BoxPlus(distance, p(name="r")), (p(),))):
            found, truth = evaluate(RuleSet("test", (rule,)), facts, HORIZON), pointwise([[rule]], facts)
            for term in ("<a>", "<b>"):
                cells = {cell for cell in CELLS if any(cell in i for i in found.facts.get(("r", (term,)), ()))}
                assert cells == truth["r", term], (rule, term)


# --- one by one -------------------------------------------------------------------------------------------------------------------


def test_diamond_minus() -> None:
    rules = [Rule(p(name="r"), (DiamondMinus(operator(1, 2), p()),))]
    assert intervals(rules, ("p", "a", held(3, 4)))["r(a)"] == [held(4, 6)]


def test_box_minus_needs_the_whole_stretch() -> None:
    rules = [Rule(p(name="r"), (BoxMinus(operator(0, 2), p()),))]
    found = intervals(rules, ("p", "a", held(0, 2, closed_end=False)), ("p", "a", held(2, 3)), ("p", "b", held(0, 1)))
    assert found["r(a)"] == [held(2, 3)]
    assert "r(b)" not in found


def test_box_plus_in_the_head_and_recursion_up_to_the_horizon() -> None:
    rules = [Rule(BoxPlus(operator(2, 2), p()), (p(),))]
    assert intervals(rules, ("p", "a", held(0, 0)), until=5)["p(a)"] == [held(0, 0), held(2, 2), held(4, 4)]


def test_window_of_streaming_rif_core() -> None:
    """Events are valid [t, t + 10); the head gets the intersection, static facts are always there."""
    rules = [Rule(Atom("hot", (X,)), (p(), p(name="q"), p(name="known")), window_ms=10)]
    found = intervals(rules, ("p", "a", held(1, 1)), ("q", "a", held(4, 4)), ("known", "a", ALWAYS))
    assert found["hot(a)"] == [held(4, 11, closed_end=False)]


def test_at_binds_and_tests_the_instant() -> None:
    rules = [Rule(Atom("when", (X, Y)), (At(Y, p()),)), Rule(Atom("three", (X,)), (At(Constant(integer(3)), p()),)),
             Rule(At(Constant(integer(7)), Atom("moved", (X,))), (p(),))]
    found = intervals(rules, ("p", "a", held(3, 3)), ("p", "b", held(4, 4)))
    assert found["three(a)"] == [held(3, 3)] and "three(b)" not in found
    assert found["moved(a)"] == found["moved(b)"] == [held(7, 7)]
    assert [when for name, when in found.items() if name.startswith("when(b")] == [[held(4, 4)]]


def test_negation_is_of_the_moment() -> None:
    rules = [Rule(p(name="r"), (p(name="q"), Negation(p())))]
    assert intervals(rules, ("q", "a", held(0, 9)), ("p", "a", held(2, 3, closed_end=False)))["r(a)"] == [
        held(0, 2, closed_end=False), held(3, 9)]


def test_comparisons_and_assignments() -> None:
    value = Variable("v")
    rules = [Rule(Atom("double", (value,)), (Atom("n", (X,)), Assign(value, Call("*", (X, Constant(integer(2))))),
                                             Condition(Call(">", (value, Constant(integer(3)))))))]
    given_facts = [Fact(Atom("n", (Constant(token),)), held(0, 1)) for token in (integer(1), integer(2), '"two"')]
    found = evaluate(RuleSet("test", tuple(rules)), given_facts)
    assert [terms for name, terms in found.facts if name == "double"] == [(integer(4),)]


def test_triples_join() -> None:
    knows, met = Constant("<knows>"), Constant("<met>")
    rule = Rule(Atom(TRIPLE, (X, met, Variable("z"))), (Atom(TRIPLE, (X, knows, Y)), Atom(TRIPLE, (Y, knows, Variable("z")))))
    facts = [Fact(Atom(TRIPLE, (A, knows, B)), held(0, 5)), Fact(Atom(TRIPLE, (B, knows, A)), held(3, 9))]
    found = evaluate(RuleSet("test", (rule,)), facts)
    assert found.facts[TRIPLE, ("<a>", "<met>", "<a>")] == (held(3, 5),)


def test_inconsistencies_name_rule_bindings_and_time() -> None:
    rule = Rule(Falsum(), (p(), p(name="q")), name="clash")
    found = evaluate(RuleSet("test", (rule,)), [Fact(p(A), held(0, 5)), Fact(p(A, "q"), held(3, 9)), Fact(p(B), held(0, 9))])
    assert [(i.rule, i.row, i.intervals) for i in found.inconsistencies] == [("clash", {"x": "<a>"}, (held(3, 5),))]


def test_a_predicate_of_no_arguments() -> None:
    rules = [Rule(Atom("alarm", ()), (p(),))]
    assert intervals(rules, ("p", "a", held(0, 1)), ("p", "b", held(1, 2)))["alarm()"] == [held(0, 2)]


def test_a_cycle_through_negation_is_named() -> None:
    rules = (Rule(p(name="r"), (p(), Negation(p(name="s")))), Rule(p(name="s"), (p(name="r"),)))
    with pytest.raises(Unstratified) as caught:
        evaluate(RuleSet("test", rules))
    assert caught.value.cycle == ("r", "s", "r")


@pytest.mark.parametrize("rule", [Rule(p(Y), (p(),)), Rule(p(name="r"), (Negation(p()),)), Rule(p(), (Condition(Call(">", (Y, X))),))])
def test_unsafe_rules_are_refused(rule: Rule) -> None:
    with pytest.raises(ValueError, match=r"unsafe rule: nothing binds \?"):
        evaluate(RuleSet("test", (rule,)), [Fact(p(A), held(0, 1)), Fact(p(A, "q"), Interval(MIN, MAX))])


def test_a_lars_window_needs_granules() -> None:
    with pytest.raises(ValueError, match="granularity"):
        evaluate(RuleSet("test", (Rule(p(name="r"), (WindowFormula("time", 3, p()),)),)), [Fact(p(A), held(0, 1))])
