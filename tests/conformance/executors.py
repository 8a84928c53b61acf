"""The evaluators that the suites can be run on. An executor is a context manager that gives an `Answer`.

An `Answer` takes one statement and the records of an input log (static graphs, the registration of ``QUERY``, events, the end)
and gives what is logged: (at, result) in order. It raises DiagnosticError where the statement is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

import pyarrow as pa

from engine.compiler import BUILT_IN_RULES
from engine.ir.statement import Ask, Select, Statement
from engine.records import GraphVersion, Record, Register
from engine.reference import streams
from engine.reference.sparql import Result
from engine.runtime.rows import graph_table

QUERY = "test"

Answer = Callable[[Statement, Sequence[Record]], list[tuple[int, Result]]]


@contextmanager
def reference() -> Iterator[Answer]:
    """The reference evaluator."""
    yield lambda statement, records: [(e.at, e.result) for e in streams.run(records, lambda text: statement)[QUERY]]


@contextmanager
def on_spark(executor: str | None = None) -> Iterator[Answer]:
    """The pump on Spark, every plan on the executor that is named, or on the one that the planner takes."""
    from tests import sparks

    def answer(statement: Statement, records: Sequence[Record]) -> list[tuple[int, Result]]:
        sparks.compiler(lambda text: statement)(statement.text, QUERY, graphs_of(records), BUILT_IN_RULES)
        logged = sparks.answers(sparks.pumped(_from_one(records), lambda text: statement, executor=executor), [QUERY])[QUERY]
        return [(at, result_of(statement, rows)) for at, rows in logged]

    yield answer


def graphs_of(records: Sequence[Record]) -> dict[str, pa.Table]:
    """The static graphs that the records put."""
    return {r.graph: graph_table(r.triples) for r in records if isinstance(r, GraphVersion) and r.triples is not None}


def _from_one(records: Sequence[Record]) -> list[Record]:
    """The records with positions from 1, as an input log has them."""
    shift = 1 - records[0].position
    return [replace(r, position=r.position + shift, **({"since": r.since + shift} if isinstance(r, Register) else {})) for r in records]


def result_of(statement: Statement, rows: list[dict[str, str]]) -> Result:
    """The rows of an answer as the reference evaluator gives them."""
    match statement.query:
        case Select(variables=variables):
            return Result("SELECT", tuple(v.name for v in variables), tuple(rows))
        case Ask():
            return Result("ASK", boolean=bool(rows))
    return Result("CONSTRUCT", triples=frozenset((row["s"], row["p"], row["o"]) for row in rows))


EXECUTORS: dict[str, Callable[[], AbstractContextManager[Answer]]] = {
    "spark": on_spark, "reference": reference, "sql": lambda: on_spark("sql"), "local": lambda: on_spark("local")}
