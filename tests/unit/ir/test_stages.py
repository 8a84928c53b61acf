"""Rule sets by their timelines, and the stages in which they are evaluated."""

from __future__ import annotations

import pytest

from engine.ir.rules import RuleSet
from engine.ir.stages import DENSE, MixedTimelines, Placed, Timeline, divide, stages, timeline_of
from grammar.datalogmtl.parse import parse_datalogmtl
from grammar.lars.parse import parse_lars
from grammar.rif.parse import parse_rules

PREFIX = "PREFIX ex: <http://ex.org/>\n"


def lars(text: str, name: str = "lars") -> RuleSet:
    return parse_lars(PREFIX + text, name)


def dense(text: str, name: str = "dense") -> RuleSet:
    return parse_datalogmtl(PREFIX + text, name)


def rif(text: str, head: str = "") -> RuleSet:
    return parse_rules(f"Document( Prefix(ex <http://ex.org/>) {head} Group( {text} ) )", "text/x-rif-ps", "rif")


COPY = "Forall ?x ?y ( ?x[ex:b -> ?y] :- ?x[ex:a -> ?y] )"


def placed(*sets: RuleSet) -> list[Placed]:
    division = divide(sets)
    return [*(Placed(rule, None, one.name) for one in division.plain for rule in one.rules), *division.timed]


def test_a_rule_set_is_timed_by_granules_operators_instants_or_facts_with_times() -> None:
    assert timeline_of(lars("ex:b(X, Y) <- ex:a(X, Y).")) == Timeline(1000)
    assert timeline_of(lars("GRANULARITY 2 sec START AT 3\nex:b(X, Y) <- ex:a(X, Y).")) == Timeline(2000, 6000)
    assert timeline_of(dense("ex:b(X,Y) :- Diamondminus[0,1]ex:a(X,Y)")) == DENSE
    assert timeline_of(dense("ex:b(X,Y) :- ex:a(X,Y)\nex:a(c,d)@3")) == DENSE
    assert timeline_of(dense("ex:b(X,Y) :- ex:a(X,Y), not ex:c(X,Y)\nex:a(c,d)")) is None
    assert timeline_of(rif(COPY)) is None


def test_rules_with_a_window_have_a_time_where_other_sets_have_one() -> None:
    windowed = rif(COPY, "Window 2 s")
    assert not divide([windowed, rif(COPY)]).is_timed
    division = divide([windowed, dense("ex:c(X,Y) :- Diamondminus[0,1]ex:b(X,Y)\nex:b(s,t)\nex:b(s,u)@4")])
    assert [(one.timeline, one.rule.window_ms) for one in division.timed] == [(DENSE, 2000), (DENSE, None)]
    assert [(one.name, len(one.rules), len(one.facts)) for one in division.plain] == [("dense", 0, 1)] and len(division.facts) == 1


def test_stages_follow_what_depends_on_what() -> None:
    chain = placed(lars("ex:c(X, Y) <- [2 sec] diamond ex:b(X, Y)."), dense("ex:d(X,Y) :- Boxminus[0,1]ex:c(X,Y)"),
                   rif(COPY), dense("ex:a2(X,Y) :- Diamondminus[0,1]ex:a1(X,Y)"))
    found = stages(chain)
    assert [(stage.timeline, len(stage.rules), len(stage.timed), stage.reads) for stage in found] == [
        (DENSE, 2, 1, ()), (Timeline(1000), 1, 1, (0,)), (DENSE, 1, 1, (1,))]


def test_a_rule_without_time_that_no_timed_rule_needs_is_in_no_stage() -> None:
    [stage] = stages(placed(rif(COPY), dense("ex:d(X,Y) :- Diamondminus[0,1]ex:a(X,Y)")))
    assert len(stage.rules) == 1


def test_rules_that_wait_for_different_granules_stand_in_different_stages() -> None:
    slow = lars("GRANULARITY 5 sec\nex:c(X, Y) <- diamond ex:a(X, Y).", "slow")
    after = dense("ex:p(X,Y) :- Diamondminus[0,1]ex:b(X,Y)\nex:q(X,Y) :- Diamondminus[0,1]ex:c(X,Y)")
    found = stages(placed(lars("ex:b(X, Y) <- [1 sec] diamond ex:a(X, Y)."), slow, after))
    assert [(stage.timeline.granularity_ms, stage.reads) for stage in found] == [(1000, ()), (5000, ()), (0, (0,)), (0, (1,))]


def test_a_rule_without_time_in_a_cycle_with_granules_is_on_them() -> None:
    [stage] = stages(placed(lars("ex:a(X, Y) <- [1 sec] diamond ex:b(X, Y)."), rif(COPY)))
    assert stage.timeline == Timeline(1000) and len(stage.rules) == 2 and len(stage.timed) == 1


def test_rules_of_two_timelines_that_need_each_other_are_refused_by_name() -> None:
    with pytest.raises(MixedTimelines, match=r"the rule for http://ex.org/b \(line 2\) of lars is on granules of 1000 ms and the rule for "
                                             r"http://ex.org/a \(line 2\) of dense is on dense time"):
        stages(placed(lars("ex:b(X, Y) <- [1 sec] diamond ex:a(X, Y)."), dense("ex:a(X,Y) :- Diamondminus[1,1]ex:b(X,Y)")))


def test_a_timed_rule_that_says_nothing_is_left_out() -> None:
    division = divide([dense("ex:p(X,ex:o) :- ex:p(X,ex:o)\nex:q(X,Y) :- Diamondminus[0,1]ex:q(X,Y)")])
    assert [one.rule.head.terms[1].token for one in division.timed] == ["<http://ex.org/q>"]   # type: ignore[union-attr]
