"""SPARQL test suites: evaluation tests of an ``index.json``, each with its data in windows and as static graphs, and syntax tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from engine.ir.patterns import Distinct, OrderBy, Project, Slice
from engine.ir.spans import DiagnosticError
from engine.ir.statement import Select, Statement
from engine.ir.terms import Variable
from grammar import parse
from tests.conformance.datasets import dataset, over_graphs, over_windows
from tests.conformance.exceptions import EXCEPTIONS
from tests.conformance.executors import Answer
from tests.conformance.outcomes import Outcome, Verdict, refusal
from tests.conformance.results import difference, read_result
from tests.conformance.suite import EvaluationTest, SyntaxTest, evaluation_tests, syntax_tests

# SPARQL 1.1 Federated Query (SERVICE) and SPARQL 1.1 Update.
_OTHER_SPECIFICATIONS = frozenset(("service-disabled", "update-not-supported"))
READINGS = {"window": over_windows, "graph": over_graphs}


def run(folder: Path, answer: Answer, only: str = "") -> Iterator[Outcome]:
    """Two outcomes per evaluation test of the index, in its order; then one per syntax test."""
    for test in evaluation_tests(folder):
        for reading in READINGS:
            case = f"{test.case} as {reading}"
            if only in case:
                yield _excepted(test.case, _evaluate(test, reading, case, answer))
    for syntax in syntax_tests(folder):
        if only in syntax.case:
            yield _excepted(syntax.case, _parse(syntax))


def _excepted(test: str, outcome: Outcome) -> Outcome:
    reason = EXCEPTIONS.get(test)
    if outcome.verdict is not Verdict.FAILED or reason is None:
        return outcome
    return Outcome(outcome.case, Verdict.SKIPPED, reason)


def _refused(case: str, error: DiagnosticError) -> Outcome:
    other = all(d.code in _OTHER_SPECIFICATIONS for d in error.diagnostics)
    return Outcome(case, Verdict.SKIPPED if other else Verdict.FAILED, refusal(error))


def _parse(test: SyntaxTest) -> Outcome:
    """A refusal must say where."""
    try:
        parse(test.query.read_text("utf-8"))
    except DiagnosticError as error:
        if test.positive:
            return _refused(test.case, error)
        if any(d.span is None for d in error.diagnostics):
            return Outcome(test.case, Verdict.FAILED, f"{refusal(error)} (without a position)")
        return Outcome(test.case, Verdict.PASSED)
    return Outcome(test.case, Verdict.PASSED) if test.positive else Outcome(test.case, Verdict.FAILED, "accepted, must be refused")


def _evaluate(test: EvaluationTest, reading: str, case: str, answer: Answer) -> Outcome:
    text = test.text()
    try:
        statement = parse(text)
        set_up = READINGS[reading](statement, dataset(test, statement))
        answers = answer(set_up.statement, set_up.log)
        expected = read_result(test.result, test.form or statement.form, test.iri(test.result))
    except DiagnosticError as error:
        return _refused(case, error)
    except (OSError, SyntaxError) as error:
        return Outcome(case, Verdict.FAILED, f"unreadable: {error}")
    times = tuple(at for at, _ in answers)
    if times != set_up.times:
        return Outcome(case, Verdict.FAILED, f"expected evaluations at {set_up.times}, got {times}")
    lax = test.lax or re.search(r"\bREDUCED\b", text, re.IGNORECASE) is not None
    wrong = difference(answers[-1][1], expected, sort_keys(statement), lax=lax)
    return Outcome(case, Verdict.PASSED) if wrong is None else Outcome(case, Verdict.FAILED, wrong)


def sort_keys(statement: Statement) -> list[str]:
    """The variables by which the answers are ordered first, as far as they are part of the answers."""
    if not isinstance(statement.query, Select):
        return []
    pattern = statement.query.pattern
    while isinstance(pattern, (Slice, Distinct, Project)):
        pattern = pattern.pattern
    keys: list[str] = []
    for condition, _ in pattern.conditions if isinstance(pattern, OrderBy) else ():
        if not isinstance(condition, Variable) or condition not in statement.query.variables:
            break
        keys.append(condition.name)
    return keys
