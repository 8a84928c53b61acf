"""The ways in which every case is run; all must give one answer (a treatment is a row of TREATMENTS).

A treatment takes a case, runs the records of its input log in its own way and gives, for each query, what it logged: the label
``at`` and the bag of rows (variable name -> token; a graph is rows ``s p o``, ASK is one empty row or none), in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pytest

from engine.records import Record
from engine.reference import streams
from grammar import parse
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


TREATMENTS = (
    Treatment("reference", lambda case: reference(case.records())),
    Treatment("reference, shuffled arrival", lambda case: reference(case.records(shuffle=1))),
)


def parameters(cases: Iterable[Case]) -> list[object]:
    """Every case under every treatment, for ``pytest.mark.parametrize``."""
    found = list(cases)
    return [pytest.param(case, treatment, id=f"{case.name}-{treatment.name}", marks=pytest.mark.spark if treatment.spark else ())
            for treatment in TREATMENTS for case in found]
