"""The ways in which every case is run; all must give one answer (a treatment is a row of TREATMENTS).

A treatment takes cases, runs the records of their input logs in its own way and gives, for each case and query, what was logged: the
label ``at`` and the bag of rows (variable name -> token; a graph is rows ``s p o``, ASK is one empty row or none), in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pytest

from engine.compiler import BUILT_IN_RULES
from engine.facts import FACTS
from engine.ir.spans import DiagnosticError
from engine.records import Record, Register
from engine.reference import streams
from engine.rewrite.profiles import RULES_OF
from grammar import parse
from grammar.rule_sets import parse_rules
from tests import sparks
from tests.case_files import Answers, Case, find_cases
from tests.merged import ends, merge, split


@dataclass(frozen=True, slots=True)
class Treatment:
    """`run` evaluates a log; `refusal` says why a case cannot be run this way. On `spark` all cases run together, once.

    `concerns` tells the cases for which this way differs from the others.
    """

    name: str
    run: Callable[[Sequence[Record]], Answers]
    shuffle: int | None = None
    refusal: Callable[[Case], str | None] = lambda case: None
    spark: bool = False
    concerns: Callable[[Case], bool] = lambda case: True

    def alone(self, case: Case) -> Answers:
        """The answers of a case run by itself."""
        return {name: [] for name in case.streams_of_results} | self.run(case.records(self.shuffle))

    def answers(self, case: Case) -> Answers:
        """The answers of a case, on Spark out of a run of all cases that this treatment does not refuse."""
        return _together(self)[case.name] if self.spark else self.alone(case)


@lru_cache(maxsize=None)
def _together(treatment: Treatment) -> dict[str, Answers]:
    found: dict[str, Answers] = {}
    runnable = [case for case in find_cases() if treatment.concerns(case) and treatment.refusal(case) is None]
    for alike in filter(None, ([c for c in runnable if ends(c)], [c for c in runnable if not ends(c)])):
        found |= split(treatment.run(merge(alike, treatment.shuffle)), alike)
    return found


def reference(records: Iterable[Record]) -> Answers:
    """What the reference evaluator logs."""
    return {query: [(evaluation.at, evaluation.result.bag()) for evaluation in evaluations]
            for query, evaluations in streams.run(records, parse, parse_rules, {**BUILT_IN_RULES, **RULES_OF}).items()}


def spark(name: str, *, shuffle: int | None = None, concerns: Callable[[Case], bool] = lambda case: True, **how: Any) -> Treatment:
    """The pump on Spark, run as `sparks.pumped` says."""
    def run(records: Sequence[Record]) -> Answers:
        queries = sorted({record.query for record in records if isinstance(record, Register)})
        return sparks.answers(sparks.pumped(records, parse, **how), queries)
    return Treatment(name, run, shuffle, refused, True, concerns)


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


def has_graph_problem(case: Case) -> bool:
    """Cases with a path that repeats and with chains for motif finding; each such problem takes seconds in rounds and on GraphX."""
    return case.name in ("patterns/chains", "patterns/closure")


TREATMENTS = (
    Treatment("reference", reference),
    Treatment("reference, shuffled arrival", reference, shuffle=1),
    spark("sql, recompute, one batch", executor="sql", strategy="recompute"),
    spark("local, recompute, one batch", executor="local", strategy="recompute"),
    spark("local, recompute, many batches", executor="local", strategy="recompute", batches=4),
    spark("sql, incremental, many batches", executor="sql", strategy="incremental", batches=3),
    spark("local, incremental, many batches", executor="local", strategy="incremental", batches=4),
    spark("sql, graph problems in rounds", executor="sql", strategy="recompute", graphs="sql", concerns=has_graph_problem),
    spark("sql, graph problems by GraphFrames", executor="sql", strategy="recompute", graphs="graphframes", concerns=has_graph_problem),
    spark("as planned, shuffled arrival", shuffle=1),
    spark("as planned, stopped and resumed", batches=3, resumed=True),
)


def parameters(cases: Iterable[Case]) -> list[object]:
    """Every case under every treatment, for ``pytest.mark.parametrize``."""
    found = list(cases)
    return [pytest.param(case, treatment, id=f"{case.name}-{treatment.name}", marks=pytest.mark.spark if treatment.spark else ())
            for treatment in TREATMENTS for case in found if treatment.concerns(case)]
