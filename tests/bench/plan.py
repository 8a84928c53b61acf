"""Planning: a query of ten patterns from text to plan, and what planning an evaluation costs as evaluations go by.

Spark runs in this process. What Spark plans itself (analysis, optimisation, physical plan) is read from its own tracker.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from pyspark.sql.classic.dataframe import DataFrame

from engine.execution.due import Due
from engine.execution.plan_job import ExecutorName
from engine.ir.terms import RDF_TYPE, XSD, literal
from engine.records import Event, Register
from engine.runtime.pump import Pump
from engine.runtime.results import ResultLog
from engine.spark.executor import Executor
from engine.spark.session import Session, start_session
from engine.spark.settings import from_environment
from grammar import parse
from tests.bench.figures import Figure, at_most, plain
from tests.bench.observations import BENCH
from tests.bench.settings import Settings
from tests.encoded import encode
from tests.sparks import compile_query

STREAM = f"{BENCH}plans"
TEN_PATTERNS = f"""PREFIX b: <{BENCH}>
REGISTER QUERY ten AS
SELECT ?order ?item ?place (COUNT(?line) AS ?lines) (SUM(?price * ?amount) AS ?sum)
FROM STREAM <{STREAM}> [RANGE 10s STEP 1s]
WHERE {{
  ?order a b:Order ; b:customer ?customer ; b:line ?line .
  ?line b:item ?item ; b:amount ?amount .
  ?item b:price ?price ; b:maker ?maker .
  ?customer b:place ?place . ?maker b:place ?place .
  OPTIONAL {{ ?item b:rating ?rating FILTER (?rating > 2) }}
  FILTER (?price > 3 && ?amount < 90)
}}
GROUP BY ?order ?item ?place"""
TIMES, WARM = 40, 20
EXECUTORS: tuple[ExecutorName, ...] = ("sql", "local")
GROWTH = 1.2


def run(settings: Settings) -> tuple[list[Figure], dict[str, Any]]:
    """The figures of the benchmark, and details."""
    block = 50 if settings.quick else 100       # the second so many evaluations and the last ones are compared; Spark SQL takes 1 s for one
    evaluations = max(3 * block, settings.duration(6 * block, 3 * block))
    session = start_session(from_environment())
    try:
        texts = [_from_text(session, number) for number in range(TIMES)]
        figures = [plain("ten patterns, from text to Spark's plan, the first of a session", texts[0], "ms"),
                   at_most(f"after {WARM} of them, median", float(np.median(texts[WARM:])), "ms", 300)]
        details: dict[str, Any] = {"tenPatternsMs": texts}
        for executor in EXECUTORS:
            planned = _evaluations(session, executor, TEN_PATTERNS, evaluations)
            second, last = float(np.median(planned[block:2 * block])), float(np.median(planned[-block:]))
            figures += [plain(f"planning an evaluation on {executor}, second {block}, median", second, "ms"),
                        Figure(f"last {block} of {len(planned)} / second {block}, {executor}", round(last / second, 2), "ratio",
                               f"<= {GROWTH}", last <= GROWTH * second)]
            details[f"{executor}PlanningMs"] = planned
    finally:
        session.stop()
    return figures, details


def _from_text(session: Session, number: int) -> float:
    """Milliseconds from a text to Spark's physical plan of it; each text is another one, so that nothing is found again."""
    text = TEN_PATTERNS.replace("> 3", f"> 3.{number}")
    began = time.perf_counter()
    compile_query(parse(text), "ten", {}, {})
    return (time.perf_counter() - began) * 1000 + _evaluations(session, "sql", text, 1)[0]


def _evaluations(session: Session, executor: ExecutorName, text: str, count: int) -> list[float]:
    """What planning took in each of so many evaluations in ms: the executor's text, and Spark's own phases for its jobs."""
    folder = Path(tempfile.mkdtemp(prefix="thalweg-plans-"))
    results = ResultLog(folder / "results.db")
    executing = Executor(session, force_executor=executor, force_strategy="recompute")
    pump = Pump(executing, results, parse, compile_query, graph_folder=folder)
    pump.restore()
    pump.process(encode([Register(1, "ten", text, 1)]))
    planned: list[float] = []
    try:
        second = 0
        while len(planned) < count:
            with _timed() as spent:
                done = pump.process(encode([_item(second)]))
            if done.results:
                planned.append(sum(spent))
            assert pump.queries["ten"].state != "failed", pump.queries["ten"].error
            second += 1
    finally:
        executing.close()
        results.close()
        shutil.rmtree(folder)
    return planned


def _item(second: int) -> Event:
    """One order with one line a second; items and makers come again, so that every pattern finds something."""
    name = {part: f"<{BENCH}{part}/{second % around}>" for part, around in
            (("order", 1 << 40), ("customer", 7), ("line", 1 << 40), ("item", 5), ("maker", 3), ("place", 2))}
    triples = [("order", "customer", name["customer"]), ("order", "line", name["line"]), ("line", "item", name["item"]),
               ("line", "amount", _number(second % 80)), ("item", "price", _number(4 + second % 5)), ("item", "maker", name["maker"]),
               ("item", "rating", _number(second % 5)), ("customer", "place", name["place"]), ("maker", "place", name["place"])]
    facts = [(name["order"], RDF_TYPE, f"<{BENCH}Order>"), *((name[s], f"<{BENCH}{p}>", o) for s, p, o in triples)]
    return Event(second + 2, STREAM, second * 1000, None, tuple(facts), second * 1000)


def _number(value: int) -> str:
    return literal(str(value), f"{XSD}integer")


@contextmanager
def _timed() -> Iterator[list[float]]:
    """Milliseconds of each piece of planning that happens meanwhile."""
    spent: list[float] = []
    make_job, to_arrow = Executor._job, DataFrame.toArrow

    def job(self: Executor, due: Due) -> object:
        began = time.perf_counter()
        made = make_job(self, due)
        spent.append((time.perf_counter() - began) * 1000)
        return made

    def fetched(self: DataFrame) -> pa.Table:
        table = to_arrow(self)
        phases = self._jdf.queryExecution().tracker().phases().values().iterator()
        while phases.hasNext():
            spent.append(phases.next().durationMs())
        return table

    with patch.object(Executor, "_job", job), patch.object(DataFrame, "toArrow", fetched):
        yield spent
