"""Temporal LUBM (tests/temporal_lubm.py): the stream in slices, the whole timeline at once, and the reference evaluation."""

from __future__ import annotations

import pytest

from engine.ir.rules import TRIPLE, Atom, Fact
from engine.ir.terms import Constant
from engine.reference.temporal import evaluate
from engine.timeline import Interval
from tests.bench.timed import measure
from tests.temporal_lubm import PROGRAMS, collected, facts, heads, program, slices, state

pytestmark = pytest.mark.soak

Held = dict[tuple[str, ...], list[Interval]]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_stream_in_slices_gives_what_the_whole_timeline_has(name: str) -> None:
    found = measure(name, facts(40), 30_000)
    assert found["same"] and found["answers"] > 100 and found["held"] < found["facts"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_small_part_is_what_the_reference_evaluation_says(name: str) -> None:
    given = facts(600)
    kept = state(program(name))
    told = [kept.advance(tables, until).new for tables, until in slices(given, 100_000)]
    listed = [Fact(Atom(TRIPLE, tuple(map(Constant, triple))), when) for triple, when in given]
    model = evaluate(program(name), listed)
    expected: Held = {}
    for (predicate, terms), when in model.facts.items():
        for relation in heads(name):
            fixed = relation.rpartition("/")[0].split(" ")[1:]
            if predicate == TRIPLE and list(terms[1:1 + len(fixed)]) == fixed:
                expected[relation, terms[0], *terms[1 + len(fixed):]] = list(when)
    assert collected(told, heads(name)) == expected and expected
