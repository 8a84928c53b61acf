"""The oracle of temporal rules beside MeTeoR, the reasoner of the language's authors, on random programs.

MeTeoR applies rules round after round without an end for recursion through time, so it is asked until what holds up to HORIZON stays
as it is: what follows there follows from what holds before.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings

from engine.ir.printer_facts import print_facts, show_metric_rule
from engine.ir.rules import Fact, Rule, RuleSet
from engine.reference.temporal import evaluate
from engine.rewrite.temporal import normal_form
from engine.timeline import MIN, Interval, instant, intersect, interval
from grammar.datalogmtl.parse import parse_datalogmtl, parse_facts
from tests.random_programs import DERIVED, Program, programs

HORIZON = 12_000        # ms
MOST_ROUNDS = 200

Held = dict[tuple[str, tuple[str, ...]], list[Interval]]


def in_meteor(rules: Iterable[Rule], facts: Iterable[Fact]) -> Held:
    """What holds up to HORIZON, by MeTeoR."""
    loader = pytest.importorskip("meteor_reasoner.utils.loader", reason="meteor-reasoner is not installed: pip install -e .[dev]")
    from meteor_reasoner.materialization.coalesce import coalescing_d
    from meteor_reasoner.materialization.materialize import materialize
    data = loader.load_dataset(print_facts(facts).splitlines())
    program = loader.load_program([_readable(show_metric_rule(rule)) for rule in rules])
    coalescing_d(data)
    before: Held = {}
    for _ in range(MOST_ROUNDS):
        with contextlib.redirect_stdout(io.StringIO()):
            finished = materialize(data, program, mode="naive", K=1)
        found = held(data)
        if finished or found == before:
            return found
        before = found
    raise AssertionError("MeTeoR goes on")


def _readable(rule: str) -> str:
    """Without the full stops in names that the normal form makes."""
    return re.sub(r"\?\.([0-9]+)", r"V\1", re.sub(r"\.([a-z]+) ([0-9]+)", r"normal\1\2", rule))


def held(data: Any) -> Held:
    """MeTeoR's facts up to HORIZON."""
    found: Held = {}
    for predicate, entities in data.items():
        for entity, intervals in entities.items():
            terms = tuple(term.name for term in entity if term.name != "nan")
            when = [cut for one in intervals if (cut := intersect(encoded(one), Interval(MIN, instant(HORIZON)))) is not None]
            if when:
                found[predicate, terms] = sorted(when)
    return found


def encoded(one: Any) -> Interval:
    low, high = (None if abs(Decimal(end)) == Decimal("inf") else int(Decimal(end) * 1_000) for end in (one.left_value, one.right_value))
    when = interval(low, high, closed_start=not one.left_open, closed_end=not one.right_open)
    assert when is not None
    return when


def in_the_oracle(rules: RuleSet, facts: Iterable[Fact]) -> Held:
    found = evaluate(rules, facts, HORIZON).facts
    cut = {atom: [i for one in when if (i := intersect(one, Interval(MIN, instant(HORIZON)))) is not None] for atom, when in found.items()}
    return {(name, tuple(token.strip('"') for token in terms)): when for (name, terms), when in cut.items() if when}


def agree(program: Program) -> None:
    rules, facts = program
    assert without_helpers(in_meteor(normal_form(rules).rules, facts)) == in_the_oracle(rules, facts)


def without_helpers(found: Held) -> Held:
    """Without the predicates of the normal form."""
    return {atom: when for atom, when in found.items() if not atom[0].startswith("normal")}


@given(programs(punctual=False))
def test_as_meteor(program: Program) -> None:
    agree(program)


@pytest.mark.long
@given(programs())
def test_as_meteor_with_points(program: Program) -> None:
    agree(program)


def test_random_programs_derive_something() -> None:
    """Of many drawn, so that the comparison compares something."""
    drawn: list[bool] = []

    @settings(max_examples=200, database=None)
    @given(programs(punctual=False))
    def draw(program: Program) -> None:
        rules, facts = program
        drawn.append(any(name in DERIVED for name, _ in in_the_oracle(rules, facts)))

    draw()
    assert sum(drawn) > len(drawn) / 4


def test_meteor_does_not_coalesce_between_nested_operators() -> None:
    """The one difference known: so it is given the normal form, where each operator has a rule of its own."""
    rules = parse_datalogmtl("C(X):-Boxminus[0,4]Diamondminus[0,2]A(X)", "test")
    facts = parse_facts("A(a)@[1,1.5]\nA(a)@[3,3.5]\nA(a)@[5,5.5]")
    nested, normal = in_meteor(rules.rules, facts), in_meteor(normal_form(rules).rules, facts)
    assert ("C", ("a",)) not in nested
    assert normal["C", ("a",)] == in_the_oracle(rules, facts)["C", ("a",)] == [Interval(10_000, 15_000)]


def test_programs_with_points_agree_too() -> None:
    rules = parse_datalogmtl("A(X):-Diamondminus[1,1]B(X)\nBoxplus[1,1]A(X):-A(X), C\nD(X):-A(X), Diamondminus[0,inf)E(X)", "test")
    facts = parse_facts("B(a)@1\nB(b)@2.5\nC@[0,7)\nE(a)@4\nE(b)@100")
    assert without_helpers(in_meteor(normal_form(rules).rules, facts)) == in_the_oracle(rules, facts)
