"""LUBM's data as a stream of items, one for each subject, in successive windows: the closure that a query shows in each of them, and the
answers of all fourteen, against the closure that another implementation makes of the window's content with the ontology.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyoxigraph

from engine.ir.statement import Statement
from engine.records import End, Event, GraphVersion, Record, Register, Triple
from engine.reference.sparql import Result
from grammar import parse
from tests.conformance import lubm
from tests.conformance.executors import Answer
from tests.conformance.outcomes import Outcome, Verdict
from tests.conformance.reasoner import closures

WINDOWS = 20
EVERYTHING = "everything"

Item = tuple[Triple, ...]


def run(folder: Path, answer: Answer, only: str = "", count: int = WINDOWS, part: slice = slice(None)) -> Iterator[Outcome]:
    """One outcome per window of this part of the data."""
    names = {number: f"window {number} of {count}" for number in range(1, count + 1) if only in f"window {number} of {count}"}
    if not names:
        return
    ontology, contents = lubm.ontology(folder), windows(lubm.data(folder)[part], count)
    texts = lubm.texts(folder)
    statements = {name: lubm.statement(text) for name, text in texts.items()}
    statements[EVERYTHING] = parse(f"SELECT ?s ?p ?o {lubm.SOURCES} WHERE {{ ?s ?p ?o }}")
    found = {query: dict(logged) for query, logged in answer.together(
        {s.text: s for s in statements.values()}, _records(ontology, statements, contents)).items()}
    graphs = {number: [*ontology, *(triple for item in contents[number - 1] for triple in item)] for number in names}
    for (number, name), expected in zip(names.items(), closures(list(graphs.values()), os.cpu_count() or 1)):
        wrong = _wrong({query: logged.get(number * lubm.CLOSE) for query, logged in found.items()}, expected, texts)
        yield Outcome(name, Verdict.FAILED if wrong else Verdict.PASSED, wrong or "")


def windows(triples: Sequence[Triple], count: int) -> list[list[Item]]:
    """The items of each window, in the order in which their subjects come up; windows have about as many triples as each other."""
    items: dict[str, list[Triple]] = {}
    for triple in triples:
        items.setdefault(triple[0], []).append(triple)
    contents: list[list[Item]] = [[] for _ in range(count)]
    before = 0
    for item in items.values():
        contents[before * count // len(triples)].append(tuple(item))
        before += len(item)
    return contents


def _records(ontology: tuple[Triple, ...], statements: Mapping[str, Statement], contents: Sequence[Sequence[Item]]) -> list[Record]:
    log: list[Record] = [GraphVersion(1, lubm.ONTOLOGY, ontology)]
    log += [Register(number, name, s.text, number) for number, (name, s) in enumerate(statements.items(), 2)]
    for number, items in enumerate(contents):
        for place, item in enumerate(items):
            time = number * lubm.CLOSE + place
            log.append(Event(len(log) + 1, lubm.STREAM, time, None, item, time))
    return [*log, End(len(log) + 1)]


def _wrong(found: Mapping[str, Result | None], expected: frozenset[Triple], texts: Mapping[str, str]) -> str | None:
    """What is wrong with the answers of a window, given the closure of its content."""
    if missing := [query for query, result in found.items() if result is None]:
        return f"no evaluation of {', '.join(missing)}"
    rows = [(row["s"], row["p"], row["o"]) for row in found[EVERYTHING].rows]  # type: ignore[union-attr]
    if set(rows) != expected or len(rows) != len(expected):
        return (f"of {len(expected)} triples {len(expected.difference(rows))} are missing, {sorted(expected.difference(rows))[:3]}; "
                f"{len(set(rows) - expected)} are too many, {sorted(set(rows) - expected)[:3]}")
    store = pyoxigraph.Store()
    store.extend(lubm.read("".join(f"{s} {p} {o} .\n" for s, p, o in expected).encode()))
    for query, text in texts.items():
        solutions = store.query(text)
        right = {tuple(row[variable].value for variable in solutions.variables) for row in solutions}  # type: ignore[union-attr]
        if lubm.rows_of(found[query]) != right:  # type: ignore[arg-type]
            return f"{query}: {len(right)} answers expected, got {len(found[query].rows)}"  # type: ignore[union-attr]
    return None
