"""Proofs of answers: every row of every case, and of random streams, has one whose steps and leaves hold."""

from __future__ import annotations

import pytest

from engine.functions.expressions import Context, test as is_true
from engine.ir.programs import needed_since
from engine.ir.rules import Atom, Test as Condition
from engine.ir.statement import Program, TimedProgram, TimeWindow
from engine.reference.formulas import Row, ground
from engine.timeline import ALWAYS, Interval, instant, intersect
from engine.why.explain import Case as Seen, explain
from engine.why.programs import explain_reported, explain_told, fact_of, moment_of
from engine.why.trees import Asserted, Derived, Holds, Proof, Step, Streamed
from tests.case_files import Case, find_cases
from tests.proofs import asserted, check, watched
from tests.treatments import reference


@pytest.mark.parametrize("case", find_cases(), ids=lambda case: case.name)
def test_every_row_of_every_case(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    records = case.records()
    for seen in watched(monkeypatch, lambda: reference(records)):
        for row in seen.evaluation.relation.bag():
            if isinstance(seen.case.statement.query, TimedProgram):
                check_told(seen.case, row)
                continue
            if isinstance(seen.case.statement.query, Program):
                check_reported(seen.case, row)
                continue
            found = explain(seen.case, row, most=3)
            assert found.proofs, f"no proof of {row} at {seen.evaluation.at}"
            for proof in found.proofs:
                check(proof, seen.case)


def check_told(case: Seen, row: Row) -> None:
    """Every row of a program with a time of its own has a proof where the fact begins, also by the items alone that its rules look at."""
    query = case.statement.query
    assert isinstance(query, TimedProgram)
    begin = moment_of(row["from"])
    graphs = {iri: graph.triples for iri, graph in case.graphs.items()}
    since = needed_since(query, begin)
    some = [event for event in case.events if since is None or event.t >= since]
    for events, first_ms in ((case.events, None), (some, since)):
        found = explain_told(case.statement, row, events, graphs, {}, most=2, first_ms=first_ms)
        assert found.proofs, f"no proof of {row}"
        for proof in found.proofs:
            assert isinstance(proof, (Derived, Asserted)) and proof.fact == fact_of(query, row) and proof.during is not None
            assert instant(begin) in proof.during or instant(begin) + 1 in proof.during


def check_reported(case: Seen, row: Row) -> None:
    """Every row of streams P and N has a proof, during exactly the time that the row says."""
    query = case.statement.query
    assert isinstance(query, Program)
    graphs = {iri: graph.triples for iri, graph in case.graphs.items()}
    found = explain_reported(case.statement, row, case.events, graphs, case.rules, {}, most=3)
    assert found.proofs, f"no proof of {row}"
    for proof in found.proofs:
        assert isinstance(proof, Derived) and proof.fact == fact_of(query, row) and proof.rule in query.rules.written
        assert proof.during is not None and proof.during.lo == instant(moment_of(row["from"]))
        assert proof.during.hi == (ALWAYS.hi if "until" not in row else instant(moment_of(row["until"])) - 1)
        check_instance(proof, case, query)


def check_instance(proof: Proof, case: Seen, query: Program) -> None:
    """Assert that a fact holds from the latest begin of what its rule uses to the earliest end."""
    match proof:
        case Asserted(fact=fact, sources=sources):
            assert proof.during == ALWAYS and all(fact in {ground(f.atom, {}) for f in query.rules.facts} or asserted(fact, s, case)
                                                  for s in sources)
        case Step(operator="window", premises=(Asserted() as event,)):
            for source in event.sources:
                assert isinstance(source, Streamed)
                [t] = source.times
                [length] = {s.window.range_ms for s in case.statement.streams if isinstance(s.window, TimeWindow)}
                assert any(e.stream == source.stream and e.t == t and event.fact[1] in e.triples for e in case.events)
                assert event.during == Interval(2 * t, 2 * t) and proof.during == Interval(2 * t, 2 * (t + length) - 1)
        case Derived(rule=rule, row=row, premises=premises):
            used = [part for part in rule.body if isinstance(part, (Atom, Condition))]
            assert isinstance(rule.head, Atom) and ground(rule.head, row) == proof.fact and len(used) == len(premises)
            common: Interval | None = ALWAYS
            for part, premise in zip(used, premises):
                if isinstance(part, Condition):
                    assert isinstance(premise, Holds) and is_true(part.condition, row, Context(case.at_ms))
                    continue
                fact = premise.premises[0] if isinstance(premise, Step) else premise
                assert isinstance(fact, (Asserted, Derived)) and fact.fact == ground(part, row) and common is not None
                common = intersect(common, premise.during or ALWAYS)    # type: ignore[union-attr]
                check_instance(premise, case, query)
            assert proof.during == common
        case _:
            raise AssertionError(proof)
