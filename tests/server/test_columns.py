"""Bulk pushes read in columns are the items that the careful way reads."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.runtime.resources import Item
from server.formats import columns, media
from server.formats.columns import read_columns
from server.formats.items import Reader, own_blank_nodes
from server.formats.reading import read_items
from server.limits import Limits
from server.problems import Problem
from tests.server.fake_engine import items_of

PROV = Reader().predicate
EVENT = Reader(event_time=True)
IRIS = ["<http://a>", "<http://a/b?c=d&e#f>", "<urn:x:1>", "<http://a:80/%20>", "<mailto:a@b>"]
ODD_IRIS = ["<http://a/é>", "<http://[::1]/>", "<http://a/%zz>", "<http://a:x/>", "<a>", "<http://a/ b>", "<http://a|b>", "<http://a//:x>"]
XSD = "http://www.w3.org/2001/XMLSchema#"
LITERALS = ['"x"', '""', '"a b <http://g> ."', '"é"', '"x"@en', f'"1"^^<{XSD}integer>', f'"2026-11-21T05:00:00Z"^^<{XSD}dateTime>']
ODD_LITERALS = ['"a\\"b\\n"', f'"x"^^<{XSD}string>', '"x"@EN', '"x"@en-GB', '"\\u0041"', '"\x7f"', '"\uffff"', '"\x85"', '"x"^^<http://d>',
                '"x"^^<d>', '"x', '<<( <http://a> <http://b> <http://c> )>>', '"x"@123', '"x"@en--ltr', '"\x01"', "'x'"]
BLANKS = ["_:a", "_:b1"]


@pytest.fixture(autouse=True)
def every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "SMALL", 0)


def bodies(seed: int, kind: str) -> str:
    """A body of a few lines, mostly plain."""
    chance = random.Random(seed)
    strange = chance.choice([0.0, 0.0, 0.05])

    def pick(plain: list[str], odd: list[str]) -> str:
        return chance.choice(odd if chance.random() < strange else plain)

    lines = []
    graphs = ["<http://g/1>", "<http://g/2>", "_:g"]
    for _ in range(chance.randint(1, 30)):
        triple = (f"{pick([*IRIS, *BLANKS], ODD_IRIS)} {pick(IRIS, [*ODD_IRIS, *BLANKS])} "
                  f"{pick([*IRIS, *BLANKS, *LITERALS], [*ODD_IRIS, *ODD_LITERALS])}")
        if kind == media.TIMED:
            lines.append(f"{pick(['1', '22', '-3'], ['x', '', ' 5', '1.5', '9' * 20])}\t{triple} .")
        else:
            lines.append(f"{triple} {chance.choice(graphs)} .")
    if kind == media.NQUADS:
        for graph in graphs:
            for _ in range(chance.choice([1] * 9 + [0, 2])):
                stamp = pick([f'"2026-11-21T05:00:0{chance.randint(0, 9)}Z"^^<{XSD}dateTime>'], ['"soon"', "<http://a>"])
                lines.insert(chance.randint(0, len(lines)), f"{graph} {pick([f'<{PROV}>'], IRIS)} {stamp} .")
    odd = ["", "# comment", "  ", "oops"]
    if chance.random() < strange:
        lines.insert(chance.randint(0, len(lines)), chance.choice(odd))
    return chance.choice(["\n", "\n", "\r\n"]).join(lines) + chance.choice(["", "\n"])


def known(items: list[Item]) -> list[tuple[int | None, str | None, frozenset[object]]]:
    """Items without regard to the order of triples and the names of blank nodes."""
    renamed = [(item.t_ms, *own_blank_nodes(item.graph, item.triples)) for item in items]
    return [(t, graph, frozenset(triples)) for t, graph, triples in renamed]


@pytest.mark.parametrize("kind", [media.NQUADS, media.TIMED])
@given(seed=st.integers(0, 1 << 40))
def test_columns_are_the_items(kind: str, seed: int) -> None:
    text = bodies(seed, kind).encode()
    reader = random.Random(seed).choice([EVENT, Reader(), replace(EVENT, timestamp_ms=5), replace(EVENT, limits=Limits(item_triples=6))])
    table = read_columns(text, kind, reader)
    try:
        expected = read_items(text, kind, reader).items
    except Problem:
        assert table is None
    else:
        assert table is None or known(items_of(table)) == known(expected)


@pytest.mark.parametrize("kind", [media.NQUADS, media.TIMED])
def test_plain_bodies_are_read_in_columns(kind: str) -> None:
    stamp = f'"2026-11-21T05:00:00Z"^^<{XSD}dateTime>'
    plain = {media.NQUADS: f"_:g <{PROV}> {stamp} .\n" + "".join(f"{IRIS[0]} {i} {o} _:g .\n" for i in IRIS for o in LITERALS),
             media.TIMED: "".join(f"7\t{IRIS[0]} {i} {o} .\n" for i in IRIS for o in [*LITERALS, ODD_LITERALS[0], ODD_LITERALS[2]])}
    table = read_columns(plain[kind].encode(), kind, EVENT)
    assert table is not None
    assert known(items_of(table)) == known(read_items(plain[kind].encode(), kind, EVENT).items)
