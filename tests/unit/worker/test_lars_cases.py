"""The published laserpp cases over interval relations: step by step, at every time point, and at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.functions.terms import integer
from engine.ir.rules import At, Atom, DiamondMinus, Fact, Rule, RuleSet, WindowFormula, atoms
from engine.ir.terms import Constant
from engine.sql.tree import Tree
from engine.timeline import MAX, Interval
from engine.worker.program import ProgramState
from grammar.rule_sets import parse_rules
from tests.interval_runs import Run, assert_like_the_oracle, horizon
from tests.unit.reference.test_lars import CASES, SECOND, atom, event, rules, shown, stream


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_laserpp(case: dict[str, str | dict[str, str]]) -> None:
    assert isinstance(case["expected"], dict) and isinstance(case["rules"], str) and isinstance(case["stream"], str)
    begin = int(case["stream"].split()[0])
    program = RuleSet("laser", rules(case["rules"]), granularity_ms=SECOND, start_at_ms=begin * SECOND)
    heads = {found.predicate for rule in program.rules for found in atoms(rule.head)}
    facts = stream(case["stream"])
    run = Run(program, facts)
    for time, line in case["expected"].items():
        run.to(int(time) * SECOND)
        point = 2 * int(time) * SECOND
        held = run.model(horizon(program, facts, int(time) * SECOND)) if int(time) >= begin else {}
        assert {a for a, when in held.items() if a[0] in heads and any(point in i for i in when)} == shown(line), f"at {time}"
    last = max(map(int, case["expected"])) * SECOND
    assert_like_the_oracle(program, facts, last, (last // 2,))


def program(text: str) -> RuleSet:
    return RuleSet("test", rules(text), granularity_ms=SECOND, start_at_ms=0)


def agree(text: str, *facts: Fact, until: int = 10) -> None:
    assert_like_the_oracle(program(text), facts, until * SECOND, [k * SECOND for k in range(until)])


def test_at_in_bodies_and_heads() -> None:
    agree("q(T) := [$, 2] [@, T] p(x)", *event("p(x)", 1, 4))
    agree("[@, T] q(x) := [$, 3] [@, T] p(x) && r(x)\ns(x) := [$, 5] [D] q(x)\nu(T) := [$, 5] [@, T] q(x)",
          *event("p(x)", 2), *event("r(x)", 4))
    agree("[@, 6] q(x) := p(x)\ns(x) := q(x)", *event("p(x)", 2), *event("p(x)", 8))


def test_box_from_the_start_and_over_what_is_derived() -> None:
    agree("q(x) := [$, 3] [B] p(x)", *event("p(x)", 0, 1, 2, 3, 6))
    agree("q(X) := [$, 2] [D] p(X)\nz(X) := [$, 1] [B] q(X)", *event("p(a)", 0))


def test_windows_of_tuples() -> None:
    one, all_ = WindowFormula("tuple", 2, DiamondMinus(Interval(0, MAX), atom("p(X)"))), Interval(0, MAX)
    two = WindowFormula("tuple", 3, DiamondMinus(all_, Atom("p", (Constant('"b"'),))))
    late = WindowFormula("tuple", 2, At(Constant(integer(2)), atom("p(X)")))
    made = RuleSet("test", (Rule(atom("q(X)"), (one,)), Rule(atom("s(X)"), (two, atom("p(X)"))), Rule(atom("u(X)"), (late,))),
                   granularity_ms=SECOND, start_at_ms=0)
    facts = [*event("p(a)", 1), *event("p(c)", 2), *event("p(b)", 2), *event("n(d)", 3), *event("p(d)", 4, 5)]
    assert_like_the_oracle(made, facts, 7 * SECOND, [k * SECOND for k in range(7)])
    lasting = Fact(atom("p(x)", fact=True), Interval(2000, 5999))
    assert_like_the_oracle(made, [lasting, *event("n(y)", 2)], 4 * SECOND, [0, SECOND])


def test_the_first_event_begins_the_timeline() -> None:
    made = RuleSet("test", rules("q(X) := [$, 2] [B] p(X)\nr(X) := s(X)"), granularity_ms=SECOND)
    always = Fact(atom("s(x)", fact=True), Interval(-(1 << 62), MAX))
    assert_like_the_oracle(made, [always, *event("p(a)", 3, 4, 6)], 9 * SECOND, [k * SECOND for k in range(9)])


def test_a_head_at_a_fixed_instant_is_placed_once() -> None:
    """However often its body holds: before the instant the row waits for it, after it it is known late, and is one row either way."""
    text = "[@, 5] v(X) := u(X)\nw(X) := v(X)\nz(X) := [$, 40] [D] v(X)"
    facts = [*event("u(a)", *range(1, 30)), *event("u(b)", 8, 9, 20), *event("u(c)", 3)]
    agree(text, *facts, until=32)
    run = Run(program(text), facts)
    [late] = [name for name, about in run.late.items() if about == "v/1"]
    for second in range(32):
        run.to(second * SECOND)
        rows = [run.state.sizes[name].rows for name in ("v/1", late)]
        assert rows == [0 if second == 0 else 1 if second < 3 else 2 if second < 6 else 0, int(second >= 8)], second
    assert sorted(str(row["a1"]) for row in run.told["v/1"]) == ['"a"', '"c"'], "each is told of once"


@pytest.mark.parametrize("head", ["q(X)", "@5 q(X)"])
@pytest.mark.parametrize("body", ["[2 sec] diamond p(X), r(X)", "[3 sec] box p(X), r(X)", "[2 sec] @T p(X), r(X), not s(X)",
                                  "[5 #] diamond p(X), r(X)"])
def test_ten_equal_rules_cost_as_one(head: str, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to the names of their variables: the same relations, derivations and windows, the same statements, run as often."""
    ran: list[object] = []
    statement = ProgramState._statement

    def counted(self: ProgramState, key: object, make: Callable[[], Tree]) -> Any:
        ran.append(key)
        return statement(self, key, make)

    monkeypatch.setattr(ProgramState, "_statement", counted)
    facts = [*event("p(a)", 1, 2, 3, 4, 5), *event("p(b)", 2, 4), *event("r(a)", 2, 4), *event("r(b)", 5)]
    costs = []
    for count in (1, 10):
        text = "START AT 0\n" + "".join(f"{head} <- {body}.\n".replace("X", f"X{n}").replace("T ", f"T{n} ") for n in range(count))
        run = Run(parse_rules(text, "text/x-lars", "r"), facts)
        ran.clear()
        for second in range(12):
            run.to(second * SECOND)
        relations = run.plan.relations
        costs.append((len(relations), sum(len(relation.derivations) for relation in relations), len(run.plan.windows), len(set(ran)),
                      len(ran), run.most, run.told))
    assert costs[0] == costs[1] and costs[0][-1]["q/1"]
