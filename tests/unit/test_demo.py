"""The demo's data: the same for the same seed, valid, and its queries have answers on it."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pyoxigraph
import pytest

from grammar import parse
from server import demo


def dataset(seconds: range, *, with_background: bool) -> pyoxigraph.Store:
    """The demo's items as one graph in an independent store."""
    store = pyoxigraph.Store()
    triples = [triple for second in seconds for item in demo.items(second) for triple in item.triples]
    text = "\n".join(" ".join(triple) + " ." for triple in [*triples, *(demo.background() if with_background else [])])
    store.load(text.encode(), format=pyoxigraph.RdfFormat.N_TRIPLES)
    return store


def test_the_same_seed_gives_the_same_weather() -> None:
    assert demo.items(7) == demo.items(7)
    assert demo.items(7, seed=1) != demo.items(7, seed=2)
    assert demo.items(7) != demo.items(8)


def test_each_second_has_an_item_per_station_without_time() -> None:
    found = demo.items(0)
    assert len(found) == len(demo.STATIONS) >= 4
    assert all(item.t_ms is None and len(item.triples) == 8 * len(demo.PROPERTIES) for item in found)


def test_tokens_are_canonical() -> None:
    """What the store writes back is what the demo wrote."""
    triples = {triple for item in demo.items(3) for triple in item.triples}
    store = dataset(range(3, 4), with_background=False)
    assert {(str(quad.subject), str(quad.predicate), str(quad.object)) for quad in store} == triples


@pytest.mark.parametrize("name", list(demo.PROPERTIES))
def test_values_stay_in_their_bounds(name: str) -> None:
    _, _, least, greatest = demo.PROPERTIES[name]
    readings = [demo.value(station, name, second) for station in demo.STATIONS for second in range(500)]
    assert least <= min(readings) < max(readings) <= greatest


def test_gusts_come_now_and_then() -> None:
    """The query of gusts is to show something within the first seconds, and not everything."""
    gusts = [second for second in range(60) for station in demo.STATIONS if demo.value(station, "WindSpeed", second) > 16]
    assert gusts and gusts[0] < 10 and len(gusts) < 150


@pytest.mark.parametrize("name", demo.QUERIES)
def test_queries_parse(name: str) -> None:
    statement = parse((demo.EXAMPLES / f"{name}.rq").read_text(encoding="utf-8"))
    assert statement.name == name
    assert [source.stream for source in statement.streams] == [demo.STREAM_IRI]


def test_one_query_needs_the_classes() -> None:
    """Its WHERE clause has no answer on the items and the graph as they are: only the rules give it some."""
    text = (demo.EXAMPLES / "weather-coast.rq").read_text(encoding="utf-8")
    plain = re.sub(r"REGISTER QUERY \S+ AS|FROM STREAM .*|FROM <.*|USING RULES .*", "", text)
    assert len(list(dataset(range(3), with_background=True).query(plain))) == 0
    assert [rules.name for rules in parse(text).rules] == ["rdfs"]


def test_averages_have_answers_on_a_second() -> None:
    text = (demo.EXAMPLES / "weather-averages.rq").read_text(encoding="utf-8")
    plain = re.sub(r"REGISTER QUERY \S+ AS|FROM STREAM .*", "", text)
    rows = list(dataset(range(1), with_background=False).query(plain))
    assert len(rows) == len(demo.STATIONS)
    assert all(Decimal(row["temperature"].value) < 50 and row["readings"].value == "1" for row in rows)


def test_the_texts_are_shipped(repository: Path) -> None:
    assert demo.EXAMPLES == repository / "static" / "examples"
    assert all(subject.startswith("<http") for subject, _, _ in demo.background())
