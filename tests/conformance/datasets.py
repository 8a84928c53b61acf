"""The dataset of a SPARQL test, read in two ways: as the contents of windows, and as static graphs.

In a window test the default graph is the content of an unnamed window, a named graph that of a window of the same name, and every
``GRAPH`` that names one of them, or has a variable, is read as ``WINDOW``.

Where no window has data a clock makes the query tick: an unnamed window that is empty again at the last evaluation, the one that counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pyoxigraph

from engine.ir.patterns import GraphPattern, WindowPattern
from engine.ir.statement import GraphSource, Statement, StreamSource, TimeWindow
from engine.ir.terms import Constant
from engine.records import End, Event, GraphVersion, Mark, Record, Register, Triple
from tests.case_files import scoped
from tests.conformance.executors import QUERY
from tests.conformance.suite import EvaluationTest

STREAM, GRAPH, CLOCK = "http://example.org/stream", "http://example.org/graph", "http://example.org/clock"
WINDOW = TimeWindow(1000, 1000)


@dataclass(frozen=True, slots=True)
class Run:
    """A statement to register, the log to run it over, and the times of its evaluations; the last one gives the answer."""

    statement: Statement
    log: list[Record]
    times: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Dataset:
    """The triples of the default graph, and of each named graph by IRI."""

    default: tuple[Triple, ...]
    named: dict[str, tuple[Triple, ...]]


def dataset(test: EvaluationTest, statement: Statement) -> Dataset:
    """What the query's FROM and FROM NAMED say, where there are any (SPARQL 1.1 section 13.2), else the files of the test."""
    if not statement.graphs:
        return Dataset(_merged(test, test.default), {iri: _merged(test, (path,), iri) for iri, path in test.named.items()})
    default = tuple(_file(test, g.iri) for g in statement.graphs if not g.named)
    return Dataset(_merged(test, default), {g.iri: _merged(test, (_file(test, g.iri),)) for g in statement.graphs if g.named})


def over_windows(statement: Statement, data: Dataset) -> Run:
    """The statement over an unnamed window and named ones, each graph being one item of a stream of its own."""
    contents = {None: data.default, **data.named}
    filled = [(iri or STREAM, triples) for iri, triples in contents.items() if triples]
    query = _read_as_windows(statement.query, frozenset(data.named))
    sources = tuple(StreamSource(iri or STREAM, WINDOW, iri) for iri in contents)
    over = replace(statement, query=query, registered=True, streams=sources, graphs=())
    log: list[Record] = [Register(1, QUERY, statement.text, 1)]
    log += [Event(n, iri, 500, None, scoped(triples, f"i{n}"), 500) for n, (iri, triples) in enumerate(filled, 2)]
    return Run(over, [*log, End(len(log) + 1)], (1000,)) if filled else _ticking(over, log)


def over_graphs(statement: Statement, data: Dataset) -> Run:
    """The statement over static graphs."""
    contents = {GRAPH: data.default, **data.named}
    sources = tuple(GraphSource(iri, named=iri != GRAPH) for iri in contents)
    log: list[Record] = [GraphVersion(n, iri, scoped(triples, f"g{n}")) for n, (iri, triples) in enumerate(contents.items(), 1)]
    log += [Register(len(log) + 1, QUERY, statement.text, len(log) + 1)]
    return _ticking(replace(statement, registered=True, streams=(), graphs=sources), log)


def _ticking(statement: Statement, log: list[Record]) -> Run:
    n = len(log)
    tick = Event(n + 1, CLOCK, 500, None, (("<http://example.org/tick>", "<http://example.org/tick>", '"tick"'),), 500)
    streams = (*statement.streams, StreamSource(CLOCK, WINDOW))
    marks = [Mark(n + i, s, 2000) for i, s in enumerate(dict.fromkeys(source.stream for source in streams), 2)]
    return Run(replace(statement, streams=streams), [*log, tick, *marks, End(n + 2 + len(marks))], (1000, 2000))


def _read_as_windows(node: Any, named: frozenset[str]) -> Any:
    """The query with each GRAPH that may reach one of the named graphs as WINDOW, those inside EXISTS too."""
    if isinstance(node, tuple):
        return tuple(_read_as_windows(part, named) for part in node)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    changed = {f.name: _read_as_windows(getattr(node, f.name), named) for f in fields(node) if f.name != "span"}
    if isinstance(node, GraphPattern) and (not isinstance(node.name, Constant) or node.name.token[1:-1] in named):
        return WindowPattern(**changed, span=node.span) if named else node
    return replace(node, **changed)


def _file(test: EvaluationTest, iri: str) -> Path:
    path = test.file(iri)
    if path is None:
        raise FileNotFoundError(f"no file for <{iri}>, which FROM names")
    return path


def _merged(test: EvaluationTest, files: tuple[Path, ...], base: str | None = None) -> tuple[Triple, ...]:
    """The RDF merge of files: the blank nodes of each are its own. `base`: where it is not the file's place in the folder."""
    return tuple(triple for n, path in enumerate(files) for triple in read_triples(path, base or test.iri(path), f"f{n}"))


def read_triples(path: Path, base: str, mark: str) -> Iterator[Triple]:
    """The triples of a file in any RDF syntax; blank nodes are numbered by appearance, behind `mark`."""
    numbers: dict[str, str] = {}
    for quad in pyoxigraph.parse(path=str(path), base_iri=base):
        s, p, o = (numbers.setdefault(token, f"_:{mark}n{len(numbers)}") if token.startswith("_:") else token
                   for token in map(str, (quad.subject, quad.predicate, quad.object)))
        yield s, p, o
