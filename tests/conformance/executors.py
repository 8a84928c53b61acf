"""The evaluators that the suites can be run on. An executor is a context manager that gives an `Answer`.

An `Answer` takes statements by their text and the records of an input log (static graphs, registrations, events, the end) and gives
what is logged of each query: (at, result) in order. It raises DiagnosticError where the statement is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa

from engine.compiler import BUILT_IN_RULES
from engine.ir.statement import Ask, Select, Statement
from engine.records import GraphVersion, Record, Register
from engine.reference import streams
from engine.reference.sparql import Result
from engine.runtime.rows import graph_table

QUERY = "test"

Logged = list[tuple[int, Result]]


@dataclass(frozen=True, slots=True)
class Answer:
    """Evaluates queries over the records of an input log; called for one statement, registered as QUERY."""

    together: Callable[[Mapping[str, Statement], Sequence[Record]], dict[str, Logged]]

    def __call__(self, statement: Statement, records: Sequence[Record]) -> Logged:
        return self.together({statement.text: statement}, records)[QUERY]


@contextmanager
def reference() -> Iterator[Answer]:
    """The reference evaluator."""
    def together(statements: Mapping[str, Statement], records: Sequence[Record]) -> dict[str, Logged]:
        found = streams.run(records, statements.__getitem__, built_in=BUILT_IN_RULES)
        return {query: [(e.at, e.result) for e in evaluations] for query, evaluations in found.items()}

    yield Answer(together)


@contextmanager
def on_spark(executor: str | None = None) -> Iterator[Answer]:
    """The pump on Spark, every plan on the executor that is named, or on the one that the planner takes."""
    from tests import sparks

    def together(statements: Mapping[str, Statement], records: Sequence[Record]) -> dict[str, Logged]:
        graphs, registered = graphs_of(records), {r.query: statements[r.text] for r in records if isinstance(r, Register)}
        for query, statement in registered.items():
            sparks.compiler(statements.__getitem__)(statement.text, query, graphs, BUILT_IN_RULES)
        events = sparks.pumped(_from_one(records), statements.__getitem__, executor=executor)
        return {query: [(at, result_of(registered[query], rows)) for at, rows in logged]
                for query, logged in sparks.answers(events, list(registered)).items()}

    yield Answer(together)


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
