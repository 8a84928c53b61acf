"""How a client cuts its items into bodies decides nothing: same log, same answers, same late counts, in each format of many items."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from random import Random
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from engine.records import End
from engine.runtime.append import Appender
from engine.runtime.pump import Pump
from engine.runtime.results import ResultLog
from engine.runtime.rows import Kind, prepare, prepare_table
from engine.runtime.streams import Source
from grammar import parse as read
from server.formats import columns, media
from server.formats.columns import read_columns
from server.formats.items import Reader
from server.formats.reading import read_items
from tests.encoded import encode
from tests.unit.runtime.reference_executor import ReferenceCompiled, ReferenceExecutor
from tests.unit.runtime.test_pump import shown

STREAM, NOW = "http://ex.org/s", 2_000_000
READER = Reader(event_time=True)
GENERATED = f"<{READER.predicate}>"
TEXTS = [f"REGISTER QUERY {name} AS SELECT {head} FROM STREAM <{STREAM}> {window} WHERE {{ ?a <http://p> ?b {more} }}"
         for name, head, window, more in (
             ("items", "*", "[ITEMS 3]", ""), ("joined", "*", "[RANGE 20ms STEP 10ms]", "; <http://q> ?c"),
             ("one", "(SAMPLE(?b) AS ?v) (COUNT(*) AS ?n)", "[RANGE 30ms STEP 15ms]", ""))]
parse = cache(read)      # the same texts in each log
Item = tuple[int, Sequence[str]]
"""A time stamp (ms), and triples in N-Triples without their dots."""


def dated(ms: int) -> str:
    return f'"1970-01-01T00:16:{40 + ms // 1000:02}.{ms % 1000:03}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'


def graphs(items: Sequence[tuple[int, Item]], inside: str) -> str:
    return "".join(inside.format(g=f"_:g{number}" if number % 2 else f"<http://g/{number}>", p=GENERATED, stamp=dated(ms),
                                 triples=" . ".join(triples)) for number, (ms, triples) in items)


def quads(items: Sequence[tuple[int, Item]]) -> str:
    return "".join(graphs([(number, (ms, triples))], "{g} {p} {stamp} .\n")
                   + "".join(graphs([(number, (ms, [triple]))], "{triples} {g} .\n") for triple in triples)
                   for number, (ms, triples) in items)


def timed(items: Sequence[tuple[int, Item]]) -> str:
    return "".join(f"{1_000_000 + ms}\t{triple} .\n" for _, (ms, triples) in items for triple in triples)


def json_ld(items: Sequence[tuple[int, Item]]) -> list[str]:
    """JSON-LD as expanded documents: one a line, or the elements of an array."""
    found = []
    for _, (ms, triples) in items:
        nodes = []
        for triple in triples:
            s, p, o = (term.strip("<>") for term in triple.split(" "))
            nodes.append(f'{{"@id": "{s}", "{p}": {{"@id": "{o}"}}}}')
        stamp = f'{{"@value": {dated(ms).split("^")[0]}, "@type": "http://www.w3.org/2001/XMLSchema#dateTime"}}'
        found.append(f'{{"{READER.predicate}": {stamp}, "@id": "http://g/x", "@graph": [{", ".join(nodes)}]}}')
    return found


BODIES = {media.TIMED: timed, media.NQUADS: quads, media.TRIG: lambda items: graphs(items, "{g} {{ {triples} . }} {g} {p} {stamp} .\n"),
          media.JSONL: lambda items: "\n".join(json_ld(items)), media.JSONLD: lambda items: f"[{', '.join(json_ld(items))}]"}

nodes = st.sampled_from(["<http://x>", "<http://y>", "_:a", "_:z", "_:b0"])
triples = st.builds(lambda s, p, o: f"{s} {p} {o}", nodes, st.sampled_from(["<http://p>", "<http://q>"]), nodes)
contents = st.lists(st.tuples(st.integers(0, 60), st.lists(triples, min_size=1, max_size=3, unique=True)), min_size=1, max_size=12)


def pushed(kind: str, bodies: Sequence[Sequence[tuple[int, Item]]], seed: int) -> tuple[pa.Table, Source]:
    """The log of these pushes, and the stream at its end; which bodies are read in columns is up to chance."""
    chance = Random(seed)
    end = Appender(sources={STREAM: Source(STREAM, arrival=False, lateness_ms=10)})
    rows = [table for text in TEXTS for table in end.command(Kind.REGISTER, parse(text).name or "", {"text": text})[0]]
    for body in bodies:
        text = BODIES[kind](body).encode()
        with patch.object(columns, "SMALL", chance.choice([0, 1 << 30])):
            table = read_columns(text, kind, READER)
        if table is not None:
            prepared = prepare_table(table)
        else:
            items = read_items(text, kind, READER).items
            prepared = prepare([(item.t_ms, item.graph, item.triples) for item in items], [item.scope_ms for item in items])
        rows += end.push(STREAM, prepared, NOW)[0]
    return pa.concat_tables([*rows, encode([End(end.position)])]), end.sources[STREAM]


def taken(log: pa.Table) -> list[dict[str, object]]:
    """The items of a log, numbered among themselves."""
    events = [row for row in log.to_pylist() if row["record"] == Kind.EVENT]
    numbers = {position: number for number, position in enumerate(dict.fromkeys(row["position"] for row in events))}
    return [{**row, "position": numbers[row["position"]]} for row in events]


def answers(log: pa.Table) -> list[tuple[object, ...]]:
    pump = Pump(ReferenceExecutor(), ResultLog(None), parse,
                lambda statement, name, graphs, rules: ReferenceCompiled(statement, name, rules))
    return [shown(event) for event in pump.process(log).results]


@pytest.mark.parametrize("kind", BODIES)
@given(items=contents, cuts=st.sets(st.integers(1, 11)), seed=st.integers(0, 1 << 30))
def test_cuts_of_bodies_decide_nothing(kind: str, items: list[Item], cuts: set[int], seed: int) -> None:
    if kind == media.TIMED:
        items = [(ms, [triple]) for ms, triples in items for triple in triples]
    numbered = list(enumerate(items))
    places = [0, *sorted(cut for cut in cuts if cut < len(items)), len(items)]
    log, end = pushed(kind, [numbered], seed)
    cut_log, cut_end = pushed(kind, [numbered[begin:stop] for begin, stop in zip(places, places[1:])], seed + 1)
    assert taken(cut_log) == taken(log)
    assert (cut_end.items, cut_end.late, cut_end.watermark) == (end.items, end.late, end.watermark)
    assert answers(cut_log) == answers(log)


@pytest.mark.parametrize("bodies", [1, 3])
def test_a_line_is_late_or_not_whatever_body_it_comes_in(bodies: int) -> None:
    lines: list[tuple[int, Item]] = [(0, (100, ["<http://s1> <http://p> <http://o>"])), (1, (5000, ["<http://s2> <http://p> <http://o>"])),
                                     (2, (100, ["<http://s3> <http://p> <http://o>"]))]
    _, end = pushed(media.TIMED, [lines] if bodies == 1 else [[line] for line in lines], 0)
    assert (end.items, end.late) == (2, 1)


def test_labels_in_timed_lines_are_scoped_by_stream_and_time() -> None:
    triple = "_:b <http://p> <http://o>"
    log, _ = pushed(media.TIMED, [[(0, (1, [triple])), (1, (1, [triple]))], [(2, (1, [triple])), (3, (2, [triple]))]], 0)
    subjects = [row["s"] for row in taken(log)]
    assert len(set(subjects[:3])) == 1 and subjects[3] != subjects[0]
    end = Appender(sources={iri: Source(iri, arrival=False) for iri in ("http://a", "http://b")})
    item = read_items(b"1\t_:b <http://p> <http://o> .", media.TIMED, READER).items[0]
    mine, other = (end.push(iri, prepare([(1, None, item.triples)], [item.scope_ms]), NOW)[0][0]["s"][0].as_py() for iri in end.sources)
    assert mine != other
