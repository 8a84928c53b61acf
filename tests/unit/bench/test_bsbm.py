"""How the BSBM benchmark judges what a feed brought: nothing wrong goes unseen."""

from __future__ import annotations

import json

import pytest

from grammar import parse
from tests.bench.bsbm import EXAMPLE, WINDOWS_S, program, wrong_rows
from tests.bench.data import DATE_TIME, DECIMAL, stamp
from tests.bench.feed import Event
from tests.bench.offers import OFFER_PRICE, Offers, Row

OFFERS = Offers(size=40, seconds=20)
EXPECTED = sorted(OFFERS.expected(10_000))


def event(at_ms: int, rows: list[Row], name: str = "delta") -> Event:
    """An event of the feed as the server writes it."""
    def time(ms: int) -> dict[str, str]:
        return {"type": "literal", "datatype": DATE_TIME, "value": stamp(ms)}

    bindings = [{"s": {"type": "uri", "value": product}, "p": {"type": "uri", "value": OFFER_PRICE},
                 "o": {"type": "literal", "datatype": DECIMAL, "value": price}, "from": time(begin), "until": time(end)}
                for product, price, begin, end in rows]
    return Event(name, None, json.dumps({"rsp": {"at": stamp(at_ms)}, "addedResults": {"results": {"bindings": bindings}}}).encode(), 0.0)


def events(rows: list[Row]) -> list[Event]:
    return [event(row[2], [row]) for row in rows]


def test_what_is_expected_is_not_wrong() -> None:
    assert wrong_rows([event(0, [], "hello"), *events(EXPECTED)], set(EXPECTED)) == []


@pytest.mark.parametrize(("rows", "complaint"), [
    (EXPECTED[1:], "missing"), ([*EXPECTED, EXPECTED[0]], "came twice"),
    ([(*EXPECTED[0][:3], EXPECTED[0][3] + 1), *EXPECTED[1:]], "not expected"), ([], "missing")])
def test_what_is_wrong_is_told(rows: list[Row], complaint: str) -> None:
    assert any(complaint in line for line in wrong_rows(events(rows), set(EXPECTED)))


def test_rows_come_when_they_begin() -> None:
    late = [event(EXPECTED[0][2] + 1, [EXPECTED[0]]), *events(EXPECTED[1:])]
    found, = wrong_rows(late, set(EXPECTED))
    assert found.startswith("reported at")


def test_what_a_feed_leaves_out_is_no_answer() -> None:
    with pytest.raises(RuntimeError, match="gap"):
        wrong_rows([event(0, [], "gap")], set())


def test_the_windows_differ_in_nothing_else() -> None:
    texts = {program(seconds).replace(f"Window {seconds} s", "") for seconds in WINDOWS_S}
    assert texts == {EXAMPLE.read_text("utf-8").replace("Window 10 s", "")}
    assert [parse(program(seconds)).streams[0].window.range_ms for seconds in WINDOWS_S] == [s * 1000 for s in WINDOWS_S]
