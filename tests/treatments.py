"""The ways in which every case is run; all must give one answer (a treatment is a row of TREATMENTS).

A treatment takes cases, runs the records of their input logs in its own way and gives, for each case and query, what was logged: the
label ``at`` and the bag of rows (variable name -> token; a graph is rows ``s p o``, ASK is one empty row or none), in order.
"""

from __future__ import annotations

import atexit
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pytest

from engine.compiler import BUILT_IN_RULES
from engine.execution import content
from engine.execution.own_process import OwnProcess, own_process
from engine.facts import FACTS
from engine.ir.spans import DiagnosticError
from engine.records import GraphVersion, Record, Register, RulesVersion
from engine.reference import streams
from engine.rewrite import PASSES
from engine.rewrite.owl2rl import RULES_OF
from engine.runtime.registered import read_statement
from engine.worker import bundles
from engine.worker.shares import Shares
from tests import sparks
from tests.bags import ordered_alike, same_bag
from tests.beside import OTHER, beside
from tests.case_files import Answers, Case, find_cases, parse, parse_rules
from tests.case_rows import show_row
from tests.conformance.executors import graphs_of
from tests.merged import case_of, ends, merge, split


@dataclass(frozen=True, slots=True)
class Treatment:
    """`run` evaluates a log; `refusal` says why a case cannot be run this way. `planned`: by plans, not by the reference evaluator. On
    `spark` all cases run together, once, and each by itself where that fails.

    `concerns` tells the cases for which this way differs from the others. `in_steps` is as in `merge`: no matter where nothing is kept
    from one evaluation to the next.
    """

    name: str
    run: Callable[[Sequence[Record]], Answers]
    shuffle: int | None = None
    refusal: Callable[[Case], str | None] = lambda case: None
    planned: bool = False
    spark: bool = False
    concerns: Callable[[Case], bool] = lambda case: True
    in_steps: bool = False

    def alone(self, case: Case) -> Answers:
        """The answers of a case run by itself."""
        return {name: [] for name in case.streams_of_results} | self.run(case.records(self.shuffle))

    def answers(self, case: Case) -> Answers:
        """The answers of a case, on Spark out of a run of all cases that this treatment does not refuse. Where a query of that fails only
        its case does."""
        together = _together(self) if self.spark else {}
        return together[case.name] if case.name in together else self.alone(case)


@lru_cache(maxsize=None)
def _together(treatment: Treatment) -> dict[str, Answers]:
    """The answers of the cases that can be run together, and do not fail so. What fails is left out: the case is run by itself, and tells
    its own error."""
    found: dict[str, Answers] = {}
    runnable = [case for case in find_cases() if treatment.concerns(case) and treatment.refusal(case) is None]
    for alike in filter(None, ([c for c in runnable if ends(c)], [c for c in runnable if not ends(c)])):
        try:
            found |= split(treatment.run(merge(alike, treatment.shuffle, treatment.in_steps)), alike)
        except sparks.QueriesFailed as failed:
            broken = {case_of(query, alike).name for query in failed.errors}
            whole = split(sparks.answers(failed.results, ()), alike)
            found |= {name: answers for name, answers in whole.items() if name not in broken}
        except Exception:   # of none is known whose fault it is
            logging.getLogger(__name__).exception("cases could not be run together: %s", treatment.name)
    return found


def reference(records: Iterable[Record]) -> Answers:
    """What the reference evaluator logs."""
    return {query: [(evaluation.at, evaluation.result.bag()) for evaluation in evaluations]
            for query, evaluations in streams.run(records, parse, parse_rules, {**BUILT_IN_RULES, **RULES_OF}).items()}


def spark(name: str, *, shuffle: int | None = None, concerns: Callable[[Case], bool] = lambda case: True, **how: Any) -> Treatment:
    """The pump on Spark, run as `sparks.pumped` says."""
    def run(records: Sequence[Record]) -> Answers:
        return sparks.answers(sparks.pumped(records, parse, read_rules=parse_rules, **how), registered(records))
    return Treatment(name, run, shuffle, refused, True, True, concerns, how.get("strategy") == "recompute" and "batches" not in how)


def process(name: str, *, shuffle: int | None = None, others: int = 0, written_rows: int = bundles.WRITTEN_ROWS, threads: int = 1,
            shards: int = 1, concerns: Callable[[Case], bool] = lambda case: True, **how: Any) -> Treatment:
    """The pump in this process, each case by itself, run as `sparks.pumped` says, beside so many other queries; answers of so many rows are
    written where they are found. A second thread of DuckDB's costs small statements a tenth more. Where there are several shards, what can
    be evaluated in them is."""
    def run(records: Sequence[Record]) -> Answers:
        queries = registered(records)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(bundles, "WRITTEN_ROWS", written_rows)
            patched.setattr(content, "Shares", _shares)
            try:
                results = sparks.pumped(beside(records, others), parse, tasks=_own_process(threads, shards), read_rules=parse_rules, **how)
            except sparks.QueriesFailed as failed:
                if failed.errors.keys() & set(queries):
                    raise
                results = failed.results
        return {query: logged for query, logged in sparks.answers(results, queries).items() if OTHER not in query}
    return Treatment(name, run, shuffle, refused, True, concerns=concerns)


@lru_cache(maxsize=None)
def _own_process(threads: int, shards: int) -> OwnProcess:
    """One for all cases, as a worker of Spark's is: to make a database takes longer than most cases."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(own_process(threads, shards))


@lru_cache(maxsize=None)
def _shares(shards: int) -> Shares:
    """One for all cases, for the same reason."""
    found = Shares(shards)
    atexit.register(found.close)
    return found


def registered(records: Iterable[Record]) -> list[str]:
    """The queries of a log."""
    return sorted({record.query for record in records if isinstance(record, Register)})


@lru_cache(maxsize=None)
def _refused(texts: tuple[str, ...], rules: tuple[tuple[str, str, str], ...]) -> str | None:
    sets = {name: parse_rules(text, media, name) for name, media, text in rules}
    for text in texts:
        try:
            statement = parse(text)
            tables = {graph.iri: FACTS.empty_table() for graph in statement.graphs + statement.reasoning_graphs}
            sparks.compile_query(statement, "refused", tables, {**BUILT_IN_RULES, **sets})
        except DiagnosticError as error:
            return error.diagnostics[0].message
    return None


def refused(case: Case) -> str | None:
    """Why the compiler refuses a query of a case that says it may."""
    rules = tuple((name, *case.rule_text(file)) for name, file in case.rules.items())
    return _refused(tuple(case.queries.values()), rules) if case.may_refuse else None


@lru_cache(maxsize=1)
def _cases() -> dict[str, Case]:
    return {case.name: case for case in find_cases()}


@lru_cache(maxsize=None)
def _compiled(name: str, without: frozenset[str] = frozenset()) -> list[sparks.Compiled]:
    """The queries of a case, compiled without some passes; not those whose text a compiler refuses."""
    records = _cases()[name].records()
    sets = {r.name: parse_rules(r.text, r.media, r.name) for r in records if isinstance(r, RulesVersion) and r.text is not None}
    found = []
    for record in records:
        if isinstance(record, Register):
            with suppress(DiagnosticError):
                statement = read_statement(record.text, record.media, parse, parse_rules)
                found.append(sparks.compile_query(statement, record.query, graphs_of(records), BUILT_IN_RULES | sets, without))
    return found


def is_maintained(case: Case) -> bool:
    """Cases with a query whose closures have intervals: tasks keep these, Spark SQL makes them anew at each evaluation."""
    return has_rules(case) and any(compiled.keeps_closures for compiled in _compiled(case.name) if not compiled.timed)


def is_divided(case: Case) -> bool:
    """Cases with a query that shards evaluate together, in some form; any other one of them evaluates as if there were no others."""
    return any(form is not None and form.in_shards is not None
               for compiled in _compiled(case.name) for form in (compiled, compiled.under_unique_names))


def is_shuffled(case: Case) -> bool:
    """Cases whose records may arrive in another order."""
    return list(case.records(1)) != list(case.records())


def has_rules(case: Case) -> bool:
    """Cases whose rules go through the passes of engine.rewrite."""
    return any("USING RULES" in text.upper() for text in case.queries.values()) or bool(case.media)


def differs(case: Case, without: str) -> bool:
    """Whether a case has other plans without a pass; with several versions of a graph or rule set that is taken to be so."""
    if not has_rules(case):
        return False
    versions = [(type(r), r.graph if isinstance(r, GraphVersion) else r.name) for r in case.records()
                if isinstance(r, GraphVersion | RulesVersion)]
    return len(set(versions)) < len(versions) or _plans(case.name) != _plans(case.name, frozenset((without,)))


def _plans(name: str, without: frozenset[str] = frozenset()) -> list[object]:
    """All of the plans of a case that passes may change: that of a stream which mentions the schema, too."""
    return [(compiled.rewritten, compiled.plan, compiled.goal, compiled.equality, compiled.general.plan, compiled.general.goal,
             compiled.under_unique_names and compiled.under_unique_names.plan) for compiled in _compiled(name, without)]


def has_graph_problem(case: Case) -> bool:
    """The case with a path that repeats; each such problem takes seconds in rounds and on GraphX."""
    return case.name == "patterns/closure"


TREATMENTS = (
    Treatment("reference", reference),
    Treatment("reference, shuffled arrival", reference, shuffle=1, concerns=is_shuffled),
    spark("sql, recompute, one batch", executor="sql", strategy="recompute"),
    spark("sql, recompute, many batches", executor="sql", strategy="recompute", batches=3, concerns=is_maintained),
    spark("local, incremental, many batches", executor="local", strategy="incremental", batches=4),
    spark("sql, graph problems in rounds", executor="sql", strategy="recompute", graphs="sql", concerns=has_graph_problem),
    spark("sql, graph problems by GraphFrames", executor="sql", strategy="recompute", graphs="graphframes", concerns=has_graph_problem),
    spark("as planned, stopped and resumed, workers killed between batches", batches=5, resumed=True, killed=True),
    process("own process, recompute, one batch", strategy="recompute"),
    process("own process, recompute, many batches", strategy="recompute", batches=4, written_rows=1, threads=2),
    process("own process, incremental, many batches", strategy="incremental", batches=4, threads=2),
    process("own process, as planned, shuffled arrival", shuffle=1, concerns=is_shuffled),
    process("own process, as planned, stopped and resumed", batches=5, resumed=True),
    process("own process, beside twenty others", others=20, batches=4),
    process("own process, recompute, 7 shards", strategy="recompute", written_rows=1, shards=7, concerns=is_divided),
    process("own process, incremental, many batches, 2 shards", strategy="incremental", batches=4, shards=2,
            concerns=lambda case: is_divided(case) or is_maintained(case)),
    process("own process, as planned, stopped and resumed, 3 shards", batches=5, resumed=True, shards=3),
)

# By the pass that is left out. Which cases have other plans without it is known once these are compiled: `differs`.
WITHOUT = {name: process(f"own process, without {name}", without=frozenset((name,))) for name in PASSES}


def parameters(cases: Iterable[Case], chosen: Callable[[Treatment], bool]) -> list[object]:
    """Every case under every treatment that is `chosen`, for ``pytest.mark.parametrize``: a case after the other, so that what is written
    for its statements once serves all treatments."""
    found = list(cases)
    return [pytest.param(case, treatment, id=f"{case.name}-{treatment.name}", marks=pytest.mark.spark if treatment.spark else ())
            for case in found for treatment in TREATMENTS if chosen(treatment) and treatment.concerns(case)]


def by_spark_sql(treatment: Treatment) -> bool:
    """Whether each plan is one of Spark SQL."""
    return treatment.spark and treatment.name.startswith("sql, ")


def check(case: Case, treatment: Treatment, config: pytest.Config) -> None:
    """A case gives what is expected, under one treatment; with ``--update`` the first one says what that is."""
    answers = treatment.alone(case) if config.getoption("--separately") else treatment.answers(case)
    if config.getoption("--update") and treatment is TREATMENTS[0]:
        case.write(answers)
    expected = case.expected()
    assert {query: [at for at, _ in logged] for query, logged in answers.items()} == \
        {query: [at for at, _ in logged] for query, logged in expected.items()}
    same = ordered_alike if case.ordered else same_bag
    for query, logged in answers.items():
        for (at, bag), (_, right) in zip(logged, expected[query], strict=True):
            assert same(bag, right), "\n".join([
                f"{query} at {at}: expected", *sorted(show_row(row, case.prefixes) for row in right),
                "but got", *sorted(show_row(row, case.prefixes) for row in bag)])


def run_case(case: Case, treatment: Treatment, request: pytest.FixtureRequest) -> None:
    """The test of a case under a treatment: skipped where it is refused, expected to fail where a limit is known."""
    reason = treatment.refusal(case)
    if reason is not None:
        pytest.skip(reason)
    if treatment.planned and case.limit is not None:
        request.applymarker(pytest.mark.xfail(reason=case.limit, strict=True))
    check(case, treatment, request.config)
