"""The answers of the benchmark's questions against a store that holds exactly what was pushed of each window."""

from __future__ import annotations

import json
import re

import pyoxigraph
import pytest

from tests.bench.hashing import Bag, bag_of, bag_of_bindings
from tests.bench.observations import BENCH, DECIMAL, Observations
from tests.bench.questions import GRAPH, RANGE_S, Numbers, mean, rows_by_time, shapes

BEGIN, SECONDS, STATIC = 1_700_000_000_000, 13, 1_000
KNOWN = shapes(STATIC)


@pytest.mark.parametrize("name", KNOWN)
def test_answers_are_what_a_store_finds_in_what_was_pushed(name: str) -> None:
    shape, data = KNOWN[name], Observations(BEGIN, 300, seed=3)
    found = shape.answers(Numbers(data, SECONDS))
    assert list(found) == list(range(1, SECONDS + 1))
    lines = {stream: b"".join(body(data, ms, ms + 250) for ms in range(0, SECONDS * 1000, 250)).decode().splitlines()
             for stream, body in shape.bodies.items()}
    text = re.sub(r"FROM (STREAM|NAMED)[^\n]*", "", shape.text(name).replace("ISTREAM", "")).replace("WINDOW", "GRAPH")
    text = re.sub(r"REGISTER QUERY \w+ AS", "", text)
    range_s = 1 if name == "new" else RANGE_S
    for at in (2, 9, 11, 13):
        expected = _rows(lines, shape.graph, text, BEGIN + (at - range_s) * 1000, BEGIN + at * 1000, shape.ranked)
        assert expected.rows, "a question with no answer tells nothing"
        if name == "avg":       # the store's decimals have fewer digits
            assert found[at].rows == expected.rows
        else:
            assert found[at] == expected


def test_a_mean_is_rounded_to_eighteen_digits() -> None:
    assert [mean(tenths, 3).split("\x1f")[0] for tenths in (607, 609, 600)] == ["20.233333333333333333", "20.3", "20"]


def test_a_row_is_seen_while_all_of_its_triples_are() -> None:
    """[T - 10 s, T)."""
    told = [(999, 1_000, 7), (1_000, 1_000, 5), (0, 11_000, 3)]
    assert rows_by_time(told, 12) == {1: Bag(), **dict.fromkeys(range(2, 11), bag_of([7, 5])), 11: bag_of([5]), 12: Bag()}


def _rows(lines: dict[str, list[str]], graph: bytes | None, text: str, from_ms: int, until_ms: int, ranked: bool) -> Bag:
    """What a store finds that holds each stream's triples of [from, until)."""
    store = pyoxigraph.Store()
    for stream, given in lines.items():
        inside = "\n".join(triple for t, _, triple in (line.partition("\t") for line in given) if t and from_ms <= int(t) < until_ms)
        to = pyoxigraph.NamedNode(f"{BENCH}{stream}") if len(lines) > 1 else None
        store.load(inside.encode(), format=pyoxigraph.RdfFormat.N_TRIPLES, to_graph=to)
    if graph is not None:
        store.load(graph, format=pyoxigraph.RdfFormat.N_TRIPLES, to_graph=pyoxigraph.NamedNode(GRAPH))
    found = json.loads(store.query(text).serialize(format=pyoxigraph.QueryResultsFormat.JSON))
    for row in found["results"]["bindings"]:
        for term in row.values():       # the store writes 21.0 as 21
            if term.get("datatype") == DECIMAL and "." not in term["value"]:
                term["value"] += ".0"
    return bag_of_bindings(found["head"]["vars"], found["results"]["bindings"], ranked=ranked)
