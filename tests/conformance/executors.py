"""The evaluators that the suites can be run on. An executor is a context manager that gives an `Answer`.

An `Answer` takes one statement and the records of an input log (static graphs, the registration of ``QUERY``, events, the end)
and gives what is logged: (at, result) in order. It raises DiagnosticError where the statement is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from engine.ir.statement import Statement
from engine.records import Record
from engine.reference import streams
from engine.reference.sparql import Result

QUERY = "test"

Answer = Callable[[Statement, Sequence[Record]], list[tuple[int, Result]]]


@contextmanager
def reference() -> Iterator[Answer]:
    """The reference evaluator."""
    yield lambda statement, records: [(e.at, e.result) for e in streams.run(records, lambda text: statement)[QUERY]]


EXECUTORS: dict[str, Callable[[], AbstractContextManager[Answer]]] = {"reference": reference}
