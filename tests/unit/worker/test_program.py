"""Programs over interval relations, one by one: each operator, what recursion does, and what is held."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from engine.ir.rules import TRIPLE, Atom, BoxMinus, BoxPlus, DiamondMinus, Fact, Negation, Rule, RuleSet
from engine.ir.terms import RDF_TYPE, Constant, Variable
from engine.sql.steps import Statements
from engine.timeline import MAX, MIN, Interval, coalesce, interval, operator
from engine.worker import program
from engine.worker.program import ProgramState, merged
from engine.worker.tables import tables
from tests.interval_runs import Run, assert_like_the_oracle, connection, merges_of, planned

X, A = Variable("x"), Constant("<a>")


def p(name: str = "p", term: Variable | Constant = X) -> Atom:
    return Atom(name, (term,))


def during(start: int, end: int, name: str = "p", term: Constant = A) -> Fact:
    held = interval(start, end)
    assert held is not None
    return Fact(p(name, term), held)


@pytest.mark.parametrize("arity", [0, 1, 2])
def test_pieces_are_coalesced_as_the_timeline_says(arity: int) -> None:
    """With the marks of the first piece; terms without a new piece are left out."""
    chance = random.Random(arity)
    names = [f"a{place}" for place in range(1, arity + 1)]
    for _ in range(200):
        pieces = list[dict[str, Any]]()
        for _ in range(chance.randint(1, 12)):
            lo = chance.choice([MIN, *range(20)])
            hi = MAX if chance.random() < 0.1 else max(lo, 0) + chance.randint(0, 5)
            held = chance.random() < 0.4
            seen, taken = (chance.choice([lo - 1, hi]) if held else lo - 1 for _ in range(2))
            points = {"lo": lo, "hi": hi, "seen": seen, "taken": taken, "held": held}
            pieces.append({name: f"<{chance.choice('xyz')}>" for name in names} | points)
        pieces[0]["held"] = False
        groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        for piece in pieces:
            groups.setdefault(tuple(piece[name] for name in names), []).append(piece)
        expected = []
        changed = {terms: of for terms, of in groups.items() if not all(piece["held"] for piece in of)}
        for terms, of in changed.items():
            for run in coalesce(Interval(piece["lo"], piece["hi"]) for piece in of):
                first = max((piece["seen"], piece["taken"]) for piece in of if piece["lo"] == run.lo)
                expected.append((*terms, run.lo, run.hi, *first))
        table, cut = pa.Table.from_pylist(pieces), chance.randrange(len(pieces))
        rows, replaces = merged(pa.concat_tables([table.slice(cut), table.slice(0, cut)]))
        assert sorted(tuple(row.values()) for row in rows.to_pylist()) == sorted(expected)
        assert replaces == any(piece["held"] for of in changed.values() for piece in of)


@pytest.mark.parametrize("most", [0, 256])
def test_rows_of_large_and_of_small_relations_are_merged(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "_READ_WHOLE", most)
    rules = (Rule(p("q"), (DiamondMinus(operator(0, 3), p()),)), Rule(p("q"), (DiamondMinus(operator(1, 1), p("q")), p("g"))))
    facts = [during(start, start + 1, "p", Constant(f"<{name}>")) for name in "abc" for start in (1, 5, 6, 14)] + [during(0, 30, "g")]
    assert_like_the_oracle(RuleSet("", rules), facts, 30, (2, 3, 5, 8, 14, 15, 21))
    run = Run(RuleSet("", rules), facts)
    for until in (5, 20):
        run.to(until)
    assert any(key[3] for key in run.state._prepared if isinstance(key, tuple) and len(key) == 4) == (most == 0)


def test_rows_that_take_more_than_a_worker_has_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THALWEG_WORKER_MEMORY", "1kB")
    run = Run(RuleSet("", (Rule(p("q"), (p(),)),)), [during(1, 1, "p", Constant(f"<{number}>")) for number in range(1_000)])
    with pytest.raises(MemoryError, match="more than 4 rows of"):
        run.to(2)
    assert not any(view.rows.num_rows for view in run.state.views.values())


def test_operators() -> None:
    rules = (Rule(p("d"), (DiamondMinus(operator(1, 2), p()),)), Rule(p("b"), (BoxMinus(operator(0, 2), p()),)),
             Rule(BoxPlus(operator(1, 1), p("h")), (p(), DiamondMinus(operator(0, 1), p()))))
    assert_like_the_oracle(RuleSet("", rules), [during(1, 4), during(7, 7), during(12, 16)], 20, range(20))


def test_negation() -> None:
    rules = (Rule(p("r"), (p("q"), Negation(p()), Negation(p("n")))),)
    assert_like_the_oracle(RuleSet("", rules), [during(0, 9, "q"), during(2, 3), during(5, 5), during(5, 6, "n")], 12, (1, 2, 4, 5, 8))


def test_negation_of_one_class_is_no_cycle_for_rules_that_derive_another() -> None:
    def member(class_: str) -> Atom:
        return Atom(TRIPLE, (X, Constant(RDF_TYPE), Constant(class_)))

    rules = RuleSet("", (Rule(member("<warm>"), (member("<hot>"), Negation(member("<muted>")))), Rule(member("<hot>"), (p(),))))
    facts = tables([during(0, 9), Fact(Atom(TRIPLE, (A, Constant(RDF_TYPE), Constant("<muted>"))), Interval(4, 6))])
    run = ProgramState(connection(), Statements(planned(rules)), prefix="classes")
    ended = run.advance(facts, 20).ended[f"triple {RDF_TYPE} <warm>/1"].to_pylist()
    assert sorted(tuple(row.values()) for row in ended) == [("<a>", 0, 3), ("<a>", 7, 18)]
    run.drop()


def alike() -> RuleSet:
    """q and r are derived alike, and what reads them too."""
    rules = [Rule(p(name), (DiamondMinus(operator(0, 2), p()),)) for name in ("q", "r")]
    rules += [Rule(p(f"{name}{name}"), (p(name), Negation(p("n")))) for name in ("q", "r")]
    return RuleSet("", tuple(rules))


def test_relations_that_are_derived_alike_are_one() -> None:
    run = Run(alike(), [during(1, 4), during(3, 3, "n")])
    run.to(10)
    assert run.state.same == {"r/1": "q/1", "rr/1": "qq/1"}
    model = run.model(Interval(0, 20))
    assert model["rr", ("<a>",)] == model["qq", ("<a>",)] == (Interval(2, 5), Interval(7, 12))


def test_ten_rules_that_are_alike_cost_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = [Rule(p(f"q{number}"), (DiamondMinus(operator(0, 2), p()),)) for number in range(10)]
    cost = []
    for many in (1, 10):
        merges = merges_of(monkeypatch)
        run = Run(RuleSet("", tuple(rules[:many])), [during(1, 4)])
        run.to(3)
        run.to(10)
        assert len(run.model(Interval(0, 20))) == 1 + many
        cost.append((merges(), run.most, len(run.state._prepared)))
    assert cost[0] == cost[1]


def test_facts_for_one_of_two_relations_that_are_derived_alike() -> None:
    """They go on apart, through a snapshot too."""
    facts = [during(1, 4), during(8, 9, "r"), during(14, 14, "r"), during(15, 17), during(16, 16, "n")]
    for name in ("q", "r"):
        given = [Fact(p(name, fact.atom.terms[0]), fact.interval) if fact.atom.predicate == "r" else fact for fact in facts]
        assert_like_the_oracle(alike(), given, 22, (2, 3, 4, 5, 7, 8, 9, 11, 14, 16))


def test_recursion_through_time() -> None:
    rules = (Rule(p(), (DiamondMinus(operator(1, 1), p()),)), Rule(p("on"), (DiamondMinus(operator(0, 1), p("on")), p("g"))))
    assert_like_the_oracle(RuleSet("", rules), [during(1, 1), during(2, 2, "on"), during(0, 8, "g")], 10, (3, 5, 6))


def test_what_is_held_does_not_grow() -> None:
    run = Run(RuleSet("", (Rule(p("d"), (DiamondMinus(operator(0, 5), p()),)),)), [during(t, t) for t in range(0, 2000, 10)])
    for t in range(0, 2000, 20):
        run.to(t)
        assert run.state.views and not any(view.rows.num_rows for view in run.state.views.values())
    assert run.most <= 4
    assert Interval(0, 10) in run.found["d", ("<a>",)] and MAX not in [i.hi for i in run.found["d", ("<a>",)]]


def test_holds_from_now_on_is_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that touch what is derived from them go on at once: to the end of what stands beside them, or for ever."""
    hour = 3_600_000
    on = Rule(p("on"), (DiamondMinus(operator(0, 1), p("on")), p("g")))
    ever = Rule(p("ever"), (DiamondMinus(operator(0, 1000), p("ever")),))
    run = Run(RuleSet("", (on, ever, Rule(p("on"), (p(),)), Rule(p("ever"), (p(),)))), [during(1, 1), during(0, hour, "g")])
    merges = merges_of(monkeypatch)
    run.to(2 * hour)
    assert run.model(Interval(0, 4 * hour))["on", ("<a>",)] == (Interval(2, 2 * hour),)
    assert run.model(Interval(0, 4 * hour))["ever", ("<a>",)] == (Interval(2, 4 * hour),)
    assert 0 < merges() < 20


def test_holds_on_like_the_oracle() -> None:
    on = Rule(p("on"), (DiamondMinus(operator(1, 2), p("on")), p("g"), p("k")))
    ahead = Rule(BoxPlus(operator(0, 1, closed_end=False), p("h")), (p("h"), p("g")))
    not_yet = Rule(p("u"), (DiamondMinus(operator(0, 1), p("u")), p("g"), Negation(p("q"))))
    facts = [during(1, 1, "on"), during(0, 5, "g"), during(7, 9, "g"), during(0, 8, "k"), during(2, 2, "h"),
             during(1, 1, "u"), during(4, 4, "q")]
    assert_like_the_oracle(RuleSet("", (on, ahead, not_yet)), facts, 12, (2, 3, 4, 7))


def held(rules: tuple[Rule, ...], facts: list[Fact], until: int, cuts: tuple[int, ...]) -> dict[str, list[Interval]]:
    """What a program of unary predicates derives, in steps; it is what the reference evaluator says."""
    assert_like_the_oracle(RuleSet("", rules), facts, until, cuts)
    run = Run(RuleSet("", rules), facts)
    for cut in (*cuts, until):
        run.to(cut)
    return {f"{name}({terms[0]})": list(when) for (name, terms), when in run.model(Interval(0, 2 * until)).items() if name == "d"}


def test_fractional_time_stamps_are_exact() -> None:
    """A at 2.5 s, B at 1.9 s: one second after B is 2.9 s."""
    both = Rule(p("d"), (p("a"), DiamondMinus(operator(1000, 1000), p("b"))))
    assert held((both,), [during(1900, 1900, "b"), during(2500, 2500, "a")], 4000, (2000, 2600)) == {}
    assert held((both,), [during(1900, 1900, "b"), during(2900, 2900, "a")], 4000, (2000,)) == {"d(<a>)": [Interval(5800, 5800)]}


def test_facts_with_intervals() -> None:
    assert held((Rule(p("d"), (BoxMinus(operator(0, 2), p()),)),), [during(1, 9)], 20, (2, 5)) == {"d(<a>)": [Interval(6, 18)]}


def test_nested_operators_and_unbounded_looks_back() -> None:
    nested = Rule(p("d"), (BoxMinus(operator(0, 2), DiamondMinus(operator(0, 3), p())),))
    assert held((nested,), [during(1, 1), during(4, 4)], 20, (2, 5)) == {"d(<a>)": [Interval(6, 14)]}
    ever = Rule(p("d"), (DiamondMinus(Interval(0, MAX), p()),))
    assert held((ever,), [during(3, 3)], 20, (2, 5, 9)) == {"d(<a>)": [Interval(6, 40)]}


def test_what_is_derived_between_the_points_of_the_input() -> None:
    rule, b = Rule(p("d"), (DiamondMinus(operator(1, 1), p()),)), Constant("<b>")
    assert held((rule,), [during(1, 1), during(5, 5, term=b)], 9, (1, 5)) == {"d(<a>)": [Interval(4, 4)], "d(<b>)": [Interval(12, 12)]}


def test_rows_beyond_a_step_wait_for_theirs() -> None:
    """A rule that reaches further each time makes one row a step, not endless ones."""
    run = Run(RuleSet("", (Rule(BoxPlus(operator(10, 10), p()), (p(),)),)), [during(0, 0)])
    for until in (5, 10, 40, 45):
        run.to(until)
        assert run.state.held <= 4
    assert run.model(Interval(0, 90))["p", ("<a>",)] == tuple(Interval(t, t) for t in range(0, 91, 20))
