"""LUBM(1) under OWL 2 RL, fourteen queries registered together: over one window that holds all triples, against the published answers
(sets of texts) and within SECONDS; then over successive windows (lubm_windows.py).
"""

from __future__ import annotations

import csv
import gzip
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyoxigraph
from pyoxigraph import RdfFormat

from engine.functions.terms import split
from engine.ir.statement import Statement
from engine.records import Event, GraphVersion, Record, Register, Triple
from engine.reference.sparql import Result
from grammar import parse
from tests.conformance import lubm_windows
from tests.conformance.executors import Answer
from tests.conformance.outcomes import Outcome, Verdict

STREAM, ONTOLOGY = "http://lubm.example/stream", "http://lubm.example/ontology"
SOURCES = f"FROM STREAM <{STREAM}> [RANGE 10s] FROM <{ONTOLOGY}> USING RULES owl2rl"
CLOSE = 10_000
SECONDS = 60


def run(folder: Path, answer: Answer, only: str = "") -> Iterator[Outcome]:
    """One outcome per query, one for the time that all take with the closure, one per window."""
    found = {name: text for name, text in texts(folder).items() if only in name}
    if found:
        yield from over_all(folder, answer, found)
    yield from lubm_windows.run(folder, answer, only)


def over_all(folder: Path, answer: Answer, asked: Mapping[str, str]) -> Iterator[Outcome]:
    """The queries over one window with all triples."""
    statements = {name: statement(text) for name, text in asked.items()}
    log = records(folder, statements)
    began = time.perf_counter()
    found = answer.together({s.text: s for s in statements.values()}, log)
    taken = time.perf_counter() - began
    for name in asked:
        expected = answers(folder / "answers" / f"answers_query{name[1:]}.csv")
        rows = {at: rows_of(result) for at, result in found[name]}.get(CLOSE, set())
        if rows == expected:
            yield Outcome(name, Verdict.PASSED)
        else:
            yield Outcome(name, Verdict.FAILED, f"missing {sorted(expected - rows)[:3]}, too many {sorted(rows - expected)[:3]}")
    verdict = Verdict.PASSED if taken <= SECONDS else Verdict.FAILED
    yield Outcome(f"within {SECONDS} s", verdict, f"{taken:.1f} s from the log to the answers")


def texts(folder: Path) -> dict[str, str]:
    """The queries of the benchmark by name."""
    count = len(list((folder / "queries").glob("q*.rq")))
    return {f"q{number}": (folder / "queries" / f"q{number}.rq").read_text("utf-8") for number in range(1, 1 + count)}


def statement(text: str) -> Statement:
    """A query over the window, under OWL 2 RL with the ontology in the background."""
    return parse(re.sub(r"\bWHERE\b", f"{SOURCES} WHERE", text, count=1))


def records(folder: Path, statements: Mapping[str, Statement]) -> list[Record]:
    """The ontology, the registrations, the data as one item, and an item that closes the window."""
    head: list[Record] = [GraphVersion(1, ONTOLOGY, ontology(folder))]
    head += [Register(number, name, s.text, number) for number, (name, s) in enumerate(statements.items(), 2)]
    position = len(head) + 1
    return [*head, Event(position, STREAM, CLOSE - 1, None, data(folder), CLOSE - 1),
            Event(position + 1, STREAM, CLOSE, None, (("<urn:a>", "<urn:b>", "<urn:c>"),), CLOSE)]


def ontology(folder: Path) -> tuple[Triple, ...]:
    """The triples of the benchmark's ontology."""
    return _tokens(read((folder / "ontology" / "univ-bench.ttl").read_bytes(), RdfFormat.TURTLE))


def data(folder: Path) -> tuple[Triple, ...]:
    """The triples of the university, in the order of the file."""
    with gzip.open(folder / "lubm1-seed0.nt.gz") as file:
        return _tokens(read(file.read()))


def read(text: bytes, syntax: RdfFormat = RdfFormat.N_TRIPLES) -> Iterator[pyoxigraph.Quad]:
    """The triples of a document."""
    return pyoxigraph.parse(text, syntax, base_iri=ONTOLOGY)


def _tokens(quads: Iterator[pyoxigraph.Quad]) -> tuple[Triple, ...]:
    return tuple((str(q.subject), str(q.predicate), str(q.object)) for q in quads)


def answers(path: Path) -> set[tuple[str, ...]]:
    """The rows of a file of published answers, without its head."""
    text = path.read_text("utf-8")
    return set() if text.startswith("NO ANSWERS") else {tuple(row) for row in list(csv.reader(text.splitlines()))[1:] if row}


def rows_of(result: Result) -> set[tuple[str, ...]]:
    """The rows as texts: IRIs, and lexical forms of literals, in the order of the variables."""
    return {tuple(_text(row.get(name, "")) for name in result.variables) for row in result.rows}


def _text(token: str) -> str:
    return split(token).lexical if token else ""
