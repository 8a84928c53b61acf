"""One program said in several languages (tests/cases/languages): at each second of a stream the same holds.

Rules of LARS and DatalogMTL are evaluated here, by the reference evaluator and by their plans. What a query of C-SPARQL and what the
programs answer where they are registered stands in ``expected.csv``, which tests/test_cases.py proves under every treatment.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import datetime

import pytest

from engine.ir.programs import fits, heads_of, last_told_at, timed_statement
from engine.ir.rules import TRIPLE, Atom, Fact, RuleSet
from engine.ir.statement import TimedProgram
from engine.ir.terms import Constant
from engine.records import Triple
from engine.reference.formulas import Model
from engine.reference.temporal import evaluate
from engine.runtime import programs
from engine.timeline import ALWAYS, MAX, MIN, Interval, instant
from grammar.rule_sets import parse_rules
from tests.case_files import Case, Item, find_cases, read_events, read_graph
from tests.case_rows import Row

SECOND = 1_000                                  # ms: a granule, and the STEP of the queries
LANGUAGES = ("lars", "dmtl", "rif", "csparql")
MEDIA = {"lars": "text/x-lars", "dmtl": "text/x-datalogmtl"}
CASES = [case for case in find_cases() if case.name.startswith("languages/")]

Holds = dict[int, set[Triple]]
"""The triples that hold at an instant, in ms; those of the properties that the case asks for."""


def expected(case: Case) -> Holds:
    """The one answer: lines ``ms Turtle``."""
    return {item.t: set(item.triples) for item in read_events(case.folder / "expected.holds", case.prefixes)}


def until_ms(case: Case) -> int:
    """The last second that is compared: by default long after all windows are empty."""
    last = max(item.t for item in stream(case))
    return int(json.loads((case.folder / "case.json").read_text("utf-8")).get("until", last + 20 * SECOND))


def stream(case: Case) -> list[Item]:
    """The recorded stream."""
    return read_events(case.folder / "s.events", case.prefixes)


def asked(case: Case, found: dict[int, Iterable[Triple]]) -> Holds:
    """What is compared of what holds at each second."""
    properties = {p for triples in expected(case).values() for _, p, _ in triples}
    chosen = {ms: {triple for triple in triples if triple[1] in properties} for ms, triples in found.items() if ms <= until_ms(case)}
    return {ms: triples for ms, triples in chosen.items() if triples}


def seconds(case: Case) -> range:
    return range(0, until_ms(case) + 1, SECOND)


def by_reference(case: Case, program: RuleSet) -> Holds:
    """What a program derives, by the reference evaluator."""
    found = model(case, program, until_ms(case))
    return asked(case, {ms: [_triple(terms) for name, terms in found.at(instant(ms)) if name == TRIPLE] for ms in seconds(case)})


def model(case: Case, program: RuleSet, until: int) -> Model:
    given = [Fact(Atom(TRIPLE, tuple(map(Constant, triple))), Interval(instant(item.t), instant(item.t)))
             for item in stream(case) for triple in item.triples]
    background = [Fact(Atom(TRIPLE, tuple(map(Constant, triple))), ALWAYS) for triple in static(case)]
    return evaluate(program, given + background, until)


def by_plan(case: Case, program: RuleSet, size: int | None = None) -> Holds:
    """The same by its plan, in steps of `size` facts."""
    given = programs.as_given((), [(triple, item.t) for item in stream(case) for triple in item.triples], static(case))
    held = programs.run(program, given, until_ms(case), size=size).held
    return asked(case, {ms: [_triple(str(term.token) for term in atom.terms if isinstance(term, Constant)) for atom, times in held.items()
                             if any(instant(ms) in when for when in times)] for ms in seconds(case)})


def static(case: Case) -> list[Triple]:
    return [triple for file in case.graphs.values() for triple in read_graph(case.folder / file, case.prefixes)]


def of_query(case: Case, answers: list[tuple[int, list[Row]]]) -> Holds:
    """An evaluation at T sees the second before T as its last."""
    return asked(case, {at - SECOND: [(row["s"], row["p"], row["o"]) for row in rows] for at, rows in answers})


def of_program(case: Case, answers: list[tuple[int, list[Row]]]) -> Holds:
    """What is told to hold from an instant until another."""
    told = [row for _, rows in answers for row in rows]
    return asked(case, {ms: [(row["s"], row["p"], row["o"]) for row in told if _ms(row["from"]) <= ms < _ms(row["until"])]
                        for ms in seconds(case)})


def _triple(terms: Iterable[str]) -> Triple:
    subject, link, object_ = terms
    return subject, link, object_


def _row(row: Row) -> Triple:
    return row["s"], row["p"], row["o"]


def _ms(token: str) -> int:
    return round(datetime.fromisoformat(token.split('"')[1].replace("Z", "+00:00")).timestamp() * 1_000)


EVALUATED: dict[str, Callable[[Case, RuleSet], Holds]] = {
    "reference": by_reference, "plan": by_plan, "plan, step by step": lambda case, program: by_plan(case, program, 1)}


def test_there_are_ten() -> None:
    """Each in every language that can say it, and the reason where one cannot."""
    assert len(CASES) >= 10
    for case in CASES:
        there = set(LANGUAGES) & set(case.queries)
        unsaid = json.loads((case.folder / "case.json").read_text("utf-8")).get("unsaid", {})
        assert there | set(unsaid) == set(LANGUAGES) and not there & set(unsaid), case.name
        assert len(there) > 1 and all(unsaid.values())


@pytest.mark.parametrize("way", EVALUATED)
@pytest.mark.parametrize("language", MEDIA)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.folder.name)
def test_rules(case: Case, language: str, way: str) -> None:
    if language not in case.queries:
        return
    program = parse_rules(case.queries[language], MEDIA[language], case.folder.name)
    assert EVALUATED[way](case, program) == expected(case)


@pytest.mark.parametrize("language", ["rif", "csparql"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.folder.name)
def test_queries(case: Case, language: str) -> None:
    """What tests/test_cases.py expects of them is what the others give."""
    if language not in case.queries:
        return
    of = of_query if "REGISTER" in case.queries[language] else of_program
    assert of(case, case.expected()[language]) == expected(case)


@pytest.mark.parametrize("language", MEDIA)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.folder.name)
def test_registered_programs(case: Case, language: str) -> None:
    """What tests/test_cases.py expects of them is when the facts of the model begin and cease, of which `test_rules` knows at which
    seconds they hold."""
    if language not in case.queries:
        return
    program = parse_rules(case.queries[language], MEDIA[language], case.folder.name)
    statement = timed_statement(program, case.queries[language], MEDIA[language])
    assert isinstance(statement.query, TimedProgram)
    grain, last = statement.query.grain_ms, last_told_at(statement.query, max(item.t for item in stream(case)))
    heads = [atom for atom in heads_of(program) if atom.predicate == TRIPLE]
    derived = [(_triple(terms), when) for (name, terms), times in model(case, program, last + SECOND).facts.items()
               if name == TRIPLE and any(fits(terms, head) for head in heads) for when in times]
    begun = [(triple, when.lo // 2) for triple, when in derived if MIN < when.lo]
    ceased = [(triple, when.lo // 2, (when.hi + 1) // 2) for triple, when in derived if MIN < when.lo and when.hi < MAX]
    answers = case.expected()
    told = [(_row(row), _ms(row["from"])) for _, rows in answers[language] for row in rows]
    over = [(_row(row), _ms(row["from"]), _ms(row["until"])) for _, rows in answers[f"{language}/n"] for row in rows]
    assert sorted(told) == sorted(one for one in begun if one[-1] + grain <= last)
    assert sorted(over) == sorted(one for one in ceased if one[-1] + grain <= last)
