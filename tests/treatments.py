"""The ways in which every case is run; all must give one answer (a treatment is a row of TREATMENTS).

A treatment takes a case, runs the records of its input log in its own way and gives, for each query, what it logged: the label
``at`` and the bag of rows (variable name -> token; a graph is rows ``s p o``, ASK is one empty row or none), in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from engine.records import Record, Register
from engine.reference import streams
from grammar import parse
from tests import sparks
from tests.case_files import Answers, Case


@dataclass(frozen=True, slots=True)
class Treatment:
    """`run` evaluates a case; `skip` gives the reason why a case cannot be run this way; `spark`: it needs Spark."""

    name: str
    run: Callable[[Case], Answers]
    skip: Callable[[Case], str | None] = lambda case: None
    spark: bool = False


def reference(records: Iterable[Record]) -> Answers:
    """What the reference evaluator logs."""
    return {query: [(evaluation.at, evaluation.result.bag()) for evaluation in evaluations]
            for query, evaluations in streams.run(records, parse).items()}


def spark(name: str, *, shuffle: int | None = None, **how: Any) -> Treatment:
    """The pump on Spark, run as `sparks.pumped` says."""
    def run(case: Case) -> Answers:
        records = case.records(shuffle=shuffle)
        queries = sorted({record.query for record in records if isinstance(record, Register)})
        return sparks.answers(sparks.pumped(records, parse, **how), queries)
    return Treatment(name, run, spark=True)


TREATMENTS = (
    Treatment("reference", lambda case: reference(case.records())),
    Treatment("reference, shuffled arrival", lambda case: reference(case.records(shuffle=1))),
    spark("sql, recompute, one batch", executor="sql", strategy="recompute"),
    spark("local, recompute, one batch", executor="local", strategy="recompute"),
    spark("local, recompute, many batches", executor="local", strategy="recompute", batches=4),
    spark("sql, incremental, many batches", executor="sql", strategy="incremental", batches=3),
    spark("local, incremental, many batches", executor="local", strategy="incremental", batches=4),
    spark("as planned, shuffled arrival", shuffle=1),
    spark("as planned, stopped and resumed", batches=3, resumed=True),
)


def parameters(cases: Iterable[Case]) -> list[object]:
    """Every case under every treatment, for ``pytest.mark.parametrize``."""
    found = list(cases)
    return [pytest.param(case, treatment, id=f"{case.name}-{treatment.name}", marks=pytest.mark.spark if treatment.spark else ())
            for treatment in TREATMENTS for case in found]
