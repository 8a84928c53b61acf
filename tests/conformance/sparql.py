"""W3C SPARQL 1.1 query evaluation tests (``index.json`` beside the manifests' files).

Each test runs twice: its data once as the content of a window, once as a static graph. Tests with several graphs are left out:
both readings make sense for the single-graph tests only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyoxigraph

from engine.ir.spans import DiagnosticError
from engine.ir.statement import GraphSource, Statement, StreamSource, TimeWindow
from engine.records import End, Event, GraphVersion, Record, Register, Triple
from grammar import parse
from tests.case_files import scoped
from tests.conformance.executors import QUERY, Answer
from tests.conformance.outcomes import Outcome, Verdict, refusal
from tests.conformance.results import difference, read_result

STREAM, GRAPH, CLOCK = "http://example.org/stream", "http://example.org/graph", "http://example.org/clock"
WINDOW = TimeWindow(1000, 1000)
# A named window that no test looks at: it makes a query tick that has no data of its own in a window.
TICKING = StreamSource(CLOCK, WINDOW, CLOCK)


def run(folder: Path, answer: Answer, only: str = "") -> Iterator[Outcome]:
    """Two outcomes per single-graph test of the index, in its order."""
    for record in json.loads((folder / "index.json").read_text("utf-8")):
        if record["single_default_graph"]:
            for reading in ("window", "graph"):
                case = f"{record['folder']}/{record['id']} as {reading}"
                if only in case:
                    yield _test(folder, record, reading, case, answer)


def _test(folder: Path, record: Mapping[str, Any], reading: str, case: str, answer: Answer) -> Outcome:
    text = (folder / record["query"]).read_text("utf-8")
    triples = tuple(triple for path in record["data"] for triple in read_triples(folder / path))
    try:
        statement, log = over_window(parse(text), triples) if reading == "window" else over_graph(parse(text), triples)
        answers = answer(statement, log)
    except DiagnosticError as error:
        return Outcome(case, Verdict.SKIPPED, refusal(error))
    expected = read_result(folder / record["result"], record["form"])
    if [at for at, _ in answers] != [1000]:
        return Outcome(case, Verdict.FAILED, f"expected one evaluation at 1000, got {[at for at, _ in answers]}")
    wrong = difference(answers[0][1], expected)
    return Outcome(case, Verdict.PASSED) if wrong is None else Outcome(case, Verdict.FAILED, wrong)


def over_window(statement: Statement, triples: tuple[Triple, ...]) -> tuple[Statement, list[Record]]:
    """The statement registered over an unnamed window, and a log with the triples as one item inside it."""
    sources = (StreamSource(STREAM, WINDOW),) if triples else (StreamSource(STREAM, WINDOW), TICKING)
    event = Event(2, STREAM, 500, None, scoped(triples, "i2"), 500) if triples else _tick(2)
    return replace(statement, registered=True, streams=sources), [Register(1, QUERY, statement.text, 1), event, End(3)]


def over_graph(statement: Statement, triples: tuple[Triple, ...]) -> tuple[Statement, list[Record]]:
    """The statement registered over a static graph, and a log with the triples as that graph."""
    log = [GraphVersion(1, GRAPH, scoped(triples, "g1")), Register(2, QUERY, statement.text, 2), _tick(3), End(4)]
    return replace(statement, registered=True, streams=(TICKING,), graphs=(GraphSource(GRAPH),)), log


def _tick(position: int) -> Event:
    return Event(position, CLOCK, 500, None, (("<http://example.org/tick>", "<http://example.org/tick>", '"tick"'),), 500)


def read_triples(path: Path) -> Iterator[Triple]:
    """The triples of a file in any RDF syntax; relative IRIs stay under a made-up base, as in the queries."""
    for quad in pyoxigraph.parse(path=str(path), base_iri="http://example.org/"):
        yield str(quad.subject), str(quad.predicate), str(quad.object)
