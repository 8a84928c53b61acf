"""LUBM(1): fourteen queries under OWL 2 RL, registered together, over one window that holds all triples; answers are sets of texts."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import pyoxigraph
from pyoxigraph import RdfFormat

from engine.functions.terms import split
from engine.ir.statement import Statement
from engine.records import Event, GraphVersion, Record, Register, Triple
from engine.reference.sparql import Result
from grammar import parse
from tests.conformance.executors import Answer
from tests.conformance.outcomes import Outcome, Verdict

STREAM, ONTOLOGY = "http://lubm.example/stream", "http://lubm.example/ontology"
SOURCES = f"FROM STREAM <{STREAM}> [RANGE 10s] FROM <{ONTOLOGY}> USING RULES owl2rl "
CLOSE = 10_000


def run(folder: Path, answer: Answer, only: str = "") -> Iterator[Outcome]:
    """One outcome per query."""
    names = [f"q{number}" for number in range(1, 1 + len(list((folder / "queries").glob("q*.rq")))) if only in f"q{number}"]
    statements = {name: statement(folder / "queries" / f"{name}.rq") for name in names}
    found = answer.together({s.text: s for s in statements.values()}, records(folder, statements))
    for name in names:
        expected = answers(folder / "answers" / f"answers_query{name[1:]}.csv")
        rows = {at: rows_of(result) for at, result in found[name]}.get(CLOSE, set())
        if rows == expected:
            yield Outcome(name, Verdict.PASSED)
        else:
            yield Outcome(name, Verdict.FAILED, f"missing {sorted(expected - rows)[:3]}, too many {sorted(rows - expected)[:3]}")


def statement(path: Path) -> Statement:
    """A query of the benchmark over the window, under OWL 2 RL with the ontology in the background."""
    return parse(re.sub(r"\bWHERE\b", f"{SOURCES}WHERE", path.read_text("utf-8"), count=1))


def records(folder: Path, statements: dict[str, Statement]) -> list[Record]:
    """The ontology, the registrations, the data as one item, and an item that closes the window."""
    with gzip.open(folder / "lubm1-seed0.nt.gz") as file:
        data = tokens(file.read(), RdfFormat.N_TRIPLES)
    head: list[Record] = [GraphVersion(1, ONTOLOGY, tokens((folder / "ontology" / "univ-bench.ttl").read_bytes(), RdfFormat.TURTLE))]
    head += [Register(number, name, s.text, number) for number, (name, s) in enumerate(statements.items(), 2)]
    position = len(head) + 1
    return [*head, Event(position, STREAM, CLOSE - 1, None, data, CLOSE - 1),
            Event(position + 1, STREAM, CLOSE, None, (("<urn:a>", "<urn:b>", "<urn:c>"),), CLOSE)]


def tokens(text: bytes, syntax: RdfFormat) -> tuple[Triple, ...]:
    """The triples of a document."""
    return tuple((str(q.subject), str(q.predicate), str(q.object)) for q in pyoxigraph.parse(text, syntax, base_iri=ONTOLOGY))


def answers(path: Path) -> set[tuple[str, ...]]:
    """The rows of a file of published answers, without its head."""
    text = path.read_text("utf-8")
    return set() if text.startswith("NO ANSWERS") else {tuple(row) for row in list(csv.reader(text.splitlines()))[1:] if row}


def rows_of(result: Result) -> set[tuple[str, ...]]:
    """The rows as texts: IRIs, and lexical forms of literals, in the order of the variables."""
    return {tuple(_text(row.get(name, "")) for name in result.variables) for row in result.rows}


def _text(token: str) -> str:
    return split(token).lexical if token else ""
