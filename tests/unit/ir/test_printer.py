"""The printer: statements read back to an equal IR, rules in their notation, intervals from their encoded form."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from engine.ir.expressions import Call
from engine.ir.notation import duration, instant, interval
from engine.ir.patterns import BGP, TriplePattern
from engine.ir.printer import show, show_window
from engine.ir.rules import (TRIPLE, Assign, At, Atom, BoxMinus, BoxPlus, DiamondMinus, Fact, Falsum, Negation, Rule, RuleSet,
                             Test as Condition, WindowFormula)
from engine.ir.statement import Statement, TimeWindow, TupleWindow
from engine.ir.terms import RDF_TYPE, Constant, OneOf, Variable
from engine.timeline import ALWAYS, MAX, Interval, interval as encode, operator
from grammar import parse
from tests.unit.ir.maker import statements

X, Y = Variable("x"), Variable("y")


@given(statements())
def test_what_is_printed_reads_back(statement: Statement) -> None:
    text = show(statement)
    assert replace(parse(text), text="") == statement, text
    assert show(parse(text)) == text


@pytest.mark.parametrize(("ms", "text"), [
    (0, "0s"), (1, "1ms"), (1_000, "1s"), (1_500, "1500ms"), (90_000, "90s"), (60_000, "1m"), (7_200_000, "2h"),
    (172_800_000, "2d")])
def test_durations_have_one_spelling(ms: int, text: str) -> None:
    assert duration(ms) == text


@pytest.mark.parametrize(("ms", "text"), [
    (0, "1970-01-01T00:00:00Z"), (1_714_521_600_123, "2024-05-01T00:00:00.123Z"), (-1, "1969-12-31T23:59:59.999Z"),
    (-62_135_596_800_000, "0001-01-01T00:00:00Z")])
def test_instants(ms: int, text: str) -> None:
    assert instant(ms) == text


@pytest.mark.parametrize(("encoded", "text"), [
    (encode(0, 5, closed_end=False), "[0,5)"), (encode(0, 5), "[0,5]"), (encode(0, 5, closed_start=False), "(0,5]"),
    (encode(-3, 5, closed_start=False, closed_end=False), "(-3,5)"), (ALWAYS, "(-inf,+inf)"), (Interval(8, MAX), "[4,+inf)")])
def test_intervals_are_printed_from_their_encoded_form(encoded: Interval, text: str) -> None:
    assert interval(encoded) == text


def test_distances_are_durations() -> None:
    assert interval(operator(0, 5_000, closed_end=False), duration) == "[0s,5s)"


def test_windows() -> None:
    assert show_window(TimeWindow(10_000, 2_000)) == "[RANGE 10s STEP 2s]"
    assert show_window(TimeWindow(3_600_000, 60_000, 3_600_000)) == "[FROM NOW-2h TO NOW-1h STEP 1m]"
    assert show_window(TupleWindow(7, "items")) == "[ITEMS 7]"


def test_rules_in_their_notation() -> None:
    hot = Atom(TRIPLE, (X, Constant(RDF_TYPE), Constant("<hot>")))
    reading = Atom(TRIPLE, (X, Constant("<value>"), Y))
    body = (DiamondMinus(operator(0, 5_000, closed_end=False), reading), Negation(Atom("off", (X,))),
            Condition(Call(">", (Y, Constant('"30"^^<http://www.w3.org/2001/XMLSchema#integer>')))))
    assert show(Rule(hot, body, "r1", origin=("prp-dom",))) == (
        "r1: [?x a <hot>] <- diamond-minus[0s,5s) [?x <value> ?y], not off(?x), ?y > 30 .  # prp-dom")
    assert show(Rule(Falsum(), (BoxMinus(operator(1, 2), hot),))) == "false <- box-minus[1ms,2ms] [?x a <hot>] ."
    assert show(Rule(BoxPlus(operator(0, 60_000), hot), (At(Y, hot),), window_ms=10_000)) == (
        "box-plus[0s,1m] [?x a <hot>] <- @?y [?x a <hot>] window 10s .")
    assert show(Rule(At(Y, hot), (WindowFormula("tuple", 3, hot), Assign(Y, Call("+", (X, Y)))))) == (
        "@?y [?x a <hot>] <- window[3 tuples] [?x a <hot>], ?y := ?x + ?y .")


def test_rule_sets_tell_their_timeline_and_facts() -> None:
    on = Fact(Atom("on", ()), Interval(*_encoded(1_000, 2_000)))
    rules = RuleSet("alarms", (Rule(Atom("off", ()), (Negation(Atom("on", ())),)),), (on,), 1_000, 0)
    assert show(rules) == ("rules alarms granularity 1s start at 1970-01-01T00:00:00Z\n"
                           "on() during [1000,2000) .\n"
                           "off() <- not on() .\n")


def _encoded(start: int, end: int) -> tuple[int, int]:
    found = encode(start, end, closed_end=False)
    assert found is not None
    return found.lo, found.hi


def test_base_is_printed_where_a_function_needs_it() -> None:
    statement = parse("BASE <http://ex.org/> SELECT (IRI(?x) AS ?y) { ?x <p> 1 }")
    text = show(statement)
    assert text.startswith("BASE <http://ex.org/>\nSELECT (IRI(?x) AS ?y)\n")
    assert parse(text).query == statement.query


def test_what_passes_have_rewritten_is_printed_too() -> None:
    pattern = BGP((TriplePattern(X, Constant(RDF_TYPE), OneOf(("<a>", "<b>"))), TriplePattern(X, Variable(".p"), Y)))
    assert show(pattern) == "{\n  ?x a (<a> | <b>) .\n  ?x ?.p ?y .\n}\n"
