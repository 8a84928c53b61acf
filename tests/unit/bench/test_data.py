"""The streams of static/examples: what their generators expect is what the reference evaluator finds, by the files as they are."""

from __future__ import annotations

from pathlib import Path

import pyoxigraph
import pytest

from engine.compiler import BUILT_IN_RULES
from engine.functions.terms import iri, split
from engine.ir.terms import literal
from engine.records import End, Event, GraphVersion, Record, Register
from engine.reference import streams
from engine.reference.solutions import Row
from engine.reference.streams import Evaluation
from engine.rewrite.owl2rl import RULES_OF
from grammar import parse
from tests.bench.data import BEGIN_MS, DECIMAL, STREAMS, Item, main, stream, timed
from tests.bench.join import milliseconds
from tests.bench.offers import OFFER_PRICE, TRIPLES, Offers
from tests.bench.posts import DISCUSSES, Posts
from tests.bench.winds import HURRICANE, OBSERVED_WEATHER, Winds

EXAMPLES = Path(__file__).parents[3] / "static" / "examples"


def evaluated(file: str, items: list[Item], graphs: dict[str, str], replaced: tuple[str, str] = ("", "")) -> list[Evaluation]:
    """What the reference evaluator makes of an example over these items."""
    text = (EXAMPLES / file).read_text("utf-8").replace(*replaced)
    records: list[Record] = []
    for name, graph in graphs.items():
        quads = pyoxigraph.parse(path=EXAMPLES / graph, format=pyoxigraph.RdfFormat.TURTLE)
        records.append(GraphVersion(len(records) + 1, name, tuple((str(q.subject), str(q.predicate), str(q.object)) for q in quads)))
    source, = parse(text).streams
    records.append(Register(len(records) + 1, "q", text, len(records) + 1))
    for body, (t, _) in zip(timed(items), items, strict=True):
        triples = pyoxigraph.parse(b"".join(line.partition(b"\t")[2] for line in body.splitlines(True)), pyoxigraph.RdfFormat.N_TRIPLES)
        told = tuple((str(q.subject), str(q.predicate), str(q.object)) for q in triples)
        records.append(Event(len(records) + 1, source.stream, t, None, told, t))
    return streams.run([*records, End(len(records) + 1)], parse, built_in={**BUILT_IN_RULES, **RULES_OF})["q"]


def times(row: Row) -> tuple[int, int]:
    """From when until when a row of stream P holds (ms)."""
    begin, end = (milliseconds(split(row[name]).lexical) for name in ("from", "until"))
    return begin, end


EXPECTED = {1: 11, 5: 12, 60: 13}


@pytest.mark.parametrize("seconds", EXPECTED)
def test_offers(seconds: int) -> None:
    offers = Offers(size=30, seconds=15)
    found = evaluated("offers.rifps", list(offers.items()), {}, ("Window 10 s", f"Window {seconds} s"))
    rows = {(row["s"], row["p"], row["o"], *times(row)) for evaluation in found for row in evaluation.result.bag()}
    expected = offers.expected(seconds * 1000)
    assert rows == {(iri(product), iri(OFFER_PRICE), literal(price, DECIMAL), begin, end) for product, price, begin, end in expected}
    assert {e.at for e in found if e.result.bag()} == {begin for _, _, begin, _ in expected}
    assert len(expected) == EXPECTED[seconds]


def test_a_second_offer_at_a_price_counts_if_it_lasts_longer() -> None:
    class Same(Offers):
        __slots__ = ()

        def product(self, number: int) -> str:
            return f"http://example.org/{number % 2}"

        def price(self, number: int) -> str:
            return "7.00"

    offers = Same(size=24, seconds=12)
    rows = {(row["s"], *times(row)) for evaluation in evaluated("offers.rifps", list(offers.items()), {})
            for row in evaluation.result.bag()}
    assert rows == {(iri(product), begin, end) for product, _, begin, end in offers.expected(10_000)}


def test_winds_of_a_hurricane() -> None:
    winds = Winds(size=40)
    found = evaluated("hurricane.rifps", list(winds.items()), {"http://example.org/graphs/hurricanes": "hurricane-graph.ttl"},
                      ("Window 10 s", "Window 2 s"))
    rows = {(row["s"], row["p"], row["o"], *times(row)) for evaluation in found for row in evaluation.result.bag()}
    assert rows == {(iri(observation), iri(OBSERVED_WEATHER), iri(HURRICANE), begin, end)
                    for observation, begin, end in winds.expected(2_000)}
    assert 0 < len(rows) < len(winds.expected(20_000)) < 40


def test_discussions() -> None:
    posts = Posts(size=40, per_second=4)
    found = evaluated("discussions.rq", list(posts.items()), {"http://example.org/graphs/discussions": "discussions-graph.ttl"})
    shown = {e.at: {(row["s"], row["o"]) for row in e.result.bag() if row["p"] == iri(DISCUSSES)} for e in found}
    expected = {at: {(iri(post), iri(other)) for post, other in pairs} for at, pairs in posts.expected().items()}
    assert {at: pairs for at, pairs in shown.items() if pairs} == {at: pairs for at, pairs in expected.items() if pairs}
    assert max(map(len, expected.values())) > 40


def test_sizes() -> None:
    """1.1 million triples in 100 s of event time; the same each time, another with another seed."""
    assert sum(len(triples) for _, triples in Offers(size=500, seconds=5).items()) == 500 * TRIPLES
    assert (Offers().size * TRIPLES, Offers().seconds) == (1_100_000, 100)
    for name in STREAMS:
        items = list(stream(name)(size=300).items())
        assert items == list(stream(name)(size=300).items()) != list(stream(name)(size=300, seed=2).items())
        times = [t for t, _ in items]
        assert times == sorted(set(times)) and times[0] >= BEGIN_MS


def test_a_stream_is_written(tmp_path: Path) -> None:
    assert main(["offers", str(tmp_path / "offers.nt"), "--size", "20"]) == 0
    assert (tmp_path / "offers.nt").read_bytes() == b"".join(timed(Offers(size=20).items()))
