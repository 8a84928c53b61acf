"""The health use case of RSPQLStarEngine: five streams in one query, against pyoxigraph on each window.

The query's answer at T is put together here from pyoxigraph's answers to each of its parts over the content of each window. As
published the query has no answer at any T: its filter on ?loc stands where ?home is not in scope (SPARQL 1.1 section 18.2.2). So it
runs a second time with that filter in the outer group, and without HAVING, which the first minute does not fulfil.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from fractions import Fraction
from pathlib import Path

import pyoxigraph

from engine.functions.terms import split
from engine.ir.spans import DiagnosticError
from engine.records import End, Event, GraphVersion, Record, Register
from grammar import parse
from tests.bags import Row
from tests.case_files import scoped
from tests.conformance.executors import QUERY, Answer
from tests.conformance.outcomes import Outcome, Verdict, refusal

BASE, GRAPH = "http://base/", "http://base/base-data"
GENERATED = "http://www.w3.org/ns/prov#generatedAtTime"
WINDOWS = {"activity": 300, "location": 300, "heart": 30, "breathing": 30, "oxygen": 30}  # seconds, in the order of w1 to w5
MINUTE = 60_000
TOLERANCE = 1e-9

Item = tuple[int, list[pyoxigraph.Quad]]


def run(folder: Path, answer: Answer, only: str = "") -> Iterator[Outcome]:
    """The first minute of each stream: one outcome per evaluation time and reading of the query."""
    streams = {name: read_items(folder / "reification" / f"{name}.trigs.gz") for name in WINDOWS}
    published = (folder / "reification" / "query.rspqlstar").read_text("utf-8").replace("FROM NAMED", f"FROM <{GRAPH}>\nFROM NAMED", 1)
    amended = re.sub(r"\s*HAVING.*", "", published).replace("FILTER(?loc != ?home)", "")
    amended = amended.replace("WHERE {", "WHERE {\n    FILTER(?loc != ?home)", 1)
    base = (folder / "base-data.ttl").read_bytes()
    for reading, text in (("published", published), ("amended", amended)):
        if only in reading:
            yield from _reading(reading, text, base, streams, answer)


def _reading(reading: str, text: str, base: bytes, streams: Mapping[str, Sequence[Item]], answer: Answer) -> Iterator[Outcome]:
    try:
        found = dict(answer(parse(text), list(_records(text, base, streams))))
    except DiagnosticError as error:
        yield Outcome(reading, Verdict.SKIPPED, refusal(error))
        return
    first, last = streams["activity"][0][0], max(items[-1][0] + 1000 * WINDOWS[name] for name, items in streams.items())
    for at in range(first // 10_000 * 10_000 + 10_000, last + 1, 10_000):
        case = f"{reading} at {datetime.fromtimestamp(at // 1000, timezone.utc):%H:%M:%S}"
        expected = answers_at(at, text, base, streams)
        if at not in found:
            yield Outcome(case, Verdict.FAILED, "no evaluation")
        elif _same(found[at].rows, expected):
            yield Outcome(case, Verdict.PASSED)
        else:
            yield Outcome(case, Verdict.FAILED, f"expected {expected}, got {found[at].rows}")
    for at in sorted(found.keys() - set(range(first, last + 1))):
        yield Outcome(f"{reading} at {at}", Verdict.FAILED, "no evaluation expected")


def answers_at(at: int, text: str, base: bytes, streams: Mapping[str, Sequence[Item]]) -> list[dict[str, object]]:
    """The groups at `at`: the join of pyoxigraph's solutions of the outer pattern and of each window's."""
    prologue = text[:text.index("REGISTER")]
    store = pyoxigraph.Store()
    store.load(base, pyoxigraph.RdfFormat.TURTLE, base_iri=BASE)
    outer = re.search(r"(\?person a foaf:Person.*?)WINDOW", text, re.DOTALL)
    assert outer is not None
    rows = _select(store, prologue, outer[1])
    for number, (name, seconds) in enumerate(WINDOWS.items(), 1):
        store = pyoxigraph.Store()
        for t, quads in streams[name]:
            if at - 1000 * seconds <= t < at:
                store.extend(quads)
        part = re.search(rf"WINDOW <w{number}>\s*\{{(.*?\}})\s*\}}\s*(WINDOW|\}})", text, re.DOTALL)
        assert part is not None
        solutions = _select(store, prologue, part[1])
        rows = [{**row, **solution} for row in rows for solution in solutions
                if all(row.get(name, token) == token for name, token in solution.items())]
    return _grouped([row for row in rows if row["loc"] != row["home"]])


def _grouped(rows: Sequence[Row]) -> list[dict[str, object]]:
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in ("activity", "hrMax", "brMin", "oxMin", "oxMax")), []).append(row)
    return [{"activity": key[0], **{f"avg{short.capitalize()}": sum(Fraction(split(row[short]).lexical) for row in group) / len(group)
                                    for short in ("hr", "br", "ox")}} for key, group in groups.items()]


def _same(found: Sequence[Row], expected: Sequence[Mapping[str, object]]) -> bool:
    """One group at most: there is one activity whose bounds are known."""
    if len(found) != len(expected) or not found:
        return len(found) == len(expected)
    return all(found[0].get(name) == value if isinstance(value, str) else
               name in found[0] and abs(Fraction(split(found[0][name]).lexical) - value) < TOLERANCE  # type: ignore[operator]
               for name, value in expected[0].items())


def _select(store: pyoxigraph.Store, prologue: str, pattern: str) -> list[dict[str, str]]:
    solutions = store.query(f"{prologue} SELECT * WHERE {{ {pattern} }}")
    assert isinstance(solutions, pyoxigraph.QuerySolutions)
    names = [v.value for v in solutions.variables]
    return [{name: str(solution[name]) for name in names if solution[name] is not None} for solution in solutions]


def read_items(path: Path) -> list[Item]:
    """The items of the first minute: (ms, quads), their time stamps taken off."""
    quads = list(pyoxigraph.parse(gzip.decompress(path.read_bytes()), pyoxigraph.RdfFormat.TRIG))
    times = {q.subject: q.object.value for q in quads if q.predicate.value == GENERATED}
    graphs: dict[object, list[pyoxigraph.Quad]] = {name: [] for name in times}
    for quad in quads:
        if quad.graph_name in graphs:
            graphs[quad.graph_name].append(quad)
    items = sorted(((_ms(times[name]), graph) for name, graph in graphs.items()), key=lambda item: item[0])
    return [item for item in items if item[0] < items[0][0] + MINUTE]


def _ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp() * 1000)


def _records(text: str, base: bytes, streams: Mapping[str, Sequence[Item]]) -> Iterator[Record]:
    """The base data, the registration, and the items of all streams by time."""
    quads = pyoxigraph.parse(base, pyoxigraph.RdfFormat.TURTLE, base_iri=BASE)
    yield GraphVersion(1, GRAPH, scoped([(str(q.subject), str(q.predicate), str(q.object)) for q in quads], "g1"))
    yield Register(2, QUERY, text, 2)
    position = 2
    for t, name, quads in sorted(((t, name, quads) for name, items in streams.items() for t, quads in items), key=lambda i: i[:2]):
        position += 1
        triples = scoped([(str(q.subject), str(q.predicate), str(q.object)) for q in quads], f"i{position}")
        yield Event(position, f"{BASE}s/{name}", t, f"_:i{position}.g", triples, t)
    yield End(position + 1)
