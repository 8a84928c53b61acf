"""Records of topics, as tasks read them: in columns or one by one, the items are those of a push; what cannot be read is told."""

from __future__ import annotations

import pickle
import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from engine.runtime.rows import prepare
from engine.runtime.topics import RECORDS, Topic, records_of
from server.formats import records
from server.formats.items import Reader
from server.formats.media import JSONL, JSONLD, NQUADS, NTRIPLES, TIMED, TRIG, TURTLE
from server.formats.reading import read_items
from server.formats.records import read_records, reader_of
from server.limits import Limits
from tests.server.test_columns import IRIS, LITERALS, ODD_IRIS, ODD_LITERALS, XSD

PROV = Reader().predicate
STAMP = f'"2026-11-21T05:00:00Z"^^<{XSD}dateTime>'


def batch(values: list[bytes | None], stamps: list[int] | None = None) -> pa.RecordBatch:
    count = len(values)
    return pa.RecordBatch.from_arrays([pa.array([0] * count, pa.int32()), pa.array(range(7, 7 + count), pa.int64()),
                                       pa.array(stamps or [1_000] * count, pa.int64()), pa.array(values, pa.binary())],
                                      ["partition", "offset", "timestamp", "value"])


def read(values: list[bytes | None], media: str = NTRIPLES, by_record: bool = True, stamps: list[int] | None = None,
         **reader: Any) -> pa.Table:
    table = pa.concat_tables(read_records(iter([batch(values, stamps)]), media, Reader(event_time=True, skip=True, **reader), by_record))
    assert table.schema == RECORDS
    return table


def values_of(seed: int) -> list[bytes]:
    """Values of N-Triples, mostly plain, some with a time stamp in them."""
    chance = random.Random(seed)
    strange, stamped = chance.choice([0.0, 0.0, 0.1]), chance.random() < 0.7

    def pick(plain: list[str], odd: list[str]) -> str:
        return chance.choice(odd if chance.random() < strange else plain)

    found = []
    for _ in range(chance.randint(1, 6)):
        lines = [f"{pick(IRIS, [*ODD_IRIS, '_:a'])} {pick(IRIS, ODD_IRIS)} {pick([*IRIS, *LITERALS], [*ODD_LITERALS, '_:a'])} ."
                 for _ in range(chance.randint(0 if strange else 1, 4))]
        if stamped and chance.random() >= strange:
            lines.insert(chance.randint(0, len(lines)), f"<http://a> <{PROV}> {STAMP} .")
        found.append((chance.choice(["\n", "\r\n"]).join(lines) + chance.choice(["", "\n", "\n\n"])).encode())
    return found


@given(st.integers(0, 1 << 32), st.booleans(), st.booleans())
def test_in_columns_or_one_by_one_the_rows_are_the_same(seed: int, by_record: bool, event_time: bool) -> None:
    reader, values = Reader(event_time=event_time, skip=True), batch([*values_of(seed)])
    found = records._in_columns(values, reader, by_record)
    if found is not None:
        careful = records._one_by_one(values, NTRIPLES, reader, by_record)
        if not (by_record or event_time):   # no stamp counts: the server gives it
            careful = careful.set_column(careful.schema.get_field_index("t"), RECORDS.field("t"), pa.nulls(careful.num_rows, pa.int64()))
        assert found.sort_by([(name, "ascending") for name in ("offset", "s", "p", "o")]) == careful.sort_by(
            [(name, "ascending") for name in ("offset", "s", "p", "o")])


def test_plain_records_are_read_in_columns() -> None:
    plain = b'<http://a> <http://b> "1" .\n<http://a> <http://c> <http://d> .'
    assert records._in_columns(batch([plain, plain]), Reader(event_time=True), True) is not None
    stamped = plain + f"\n<http://a> <{PROV}> {STAMP} .".encode()
    found = records._in_columns(batch([stamped, stamped]), Reader(event_time=True), False)
    assert found is not None and found.num_rows == 4 and set(found["t"].to_pylist()) == {1_795_237_200_000}


@pytest.mark.parametrize(("media", "value"), [
    (TRIG, b"<http://g> { <http://a> <http://b> 1 . } <http://h> { <http://a> <http://b> 2 . }"),
    (NQUADS, b"<http://a> <http://b> _:x <http://g> .\n<http://a> <http://b> _:x <http://h> .\n"),
    (TURTLE, b"<http://a> <http://b> 1, 2 ; <http://c> [] ."), (TIMED, b"5\t<http://a> <http://b> _:x .\n6\t<http://a> <http://b> _:x .\n"),
    (JSONLD, b'{"@id": "http://a", "http://b": [1, 2]}'),
    (JSONL, b'{"@id": "http://a", "http://b": 1}\n{"@id": "http://a", "http://b": 2}\n')])
def test_items_are_those_of_a_push(media: str, value: bytes) -> None:
    pushed = read_items(value, media, Reader(timestamp_ms=1_000))
    expected = prepare([(item.t_ms, item.graph, item.triples) for item in pushed.items], [item.scope_ms for item in pushed.items])
    found = records_of("id", read([value, value], media), {0: 7})
    own = found.items.table.slice(0, expected.table.num_rows)
    assert own.select(["item", "row", *"gspo"]) == expected.table.select(["item", "row", *"gspo"])
    assert found.items.items == 2 * len(pushed.items) and set(found.items.times) == {1_000} and found.following == {0: 9}
    assert (found.items.scopes is None) == (expected.scopes is None)


def test_what_cannot_be_read_is_left_out_with_its_place_and_reason() -> None:
    good = b'<http://a> <http://b> "1" .'
    found = records_of("id", read([good, b"oops", None, b"", b"\xff\xfe", good]), {0: 7})
    assert found.items.items == 2 and found.following == {0: 13}
    assert [one.reason.partition("(")[2] for one in found.rejected] == ["partition 0, offset 8)", "partition 0, offset 11)"]
    assert all(one.reason.startswith("rdf-syntax: ") for one in found.rejected) and found.rejected[0].text == "oops"


def test_a_record_without_a_time_stamp_is_left_out() -> None:
    good = b'<http://a> <http://b> "1" .'
    assert [one.reason for one in records_of("id", read([good, good], stamps=[5, -1]), {0: 7}).rejected] == [
        "missing-timestamp: The record has no time stamp within the years 1 to 9999. (partition 0, offset 8)"]
    bare, = records_of("id", read([good], by_record=False), {0: 7}).rejected
    assert bare.reason.startswith("missing-timestamp: The item has no time stamp")


def test_what_is_too_large_is_left_out() -> None:
    good = b'<http://a> <http://b> "1" .'
    limits = Limits(push_body=100, item_triples=1)
    found = records_of("id", read([good, good * 5, good + b"\n" + good.replace(b"1", b"2")], limits=limits), {0: 7})
    assert [one.reason.partition(":")[0] for one in found.rejected] == ["body-too-large", "too-many-triples"] and found.items.items == 1


def test_nothing_read_is_nothing() -> None:
    found = records_of("id", RECORDS.empty_table(), {0: 3})
    assert found.items.items == 0 and found.following == {0: 3}


def test_what_reads_can_be_sent_to_a_task() -> None:
    topic = Topic("h:1", "t", NTRIPLES, "latest", True, True, PROV)
    read = pickle.loads(pickle.dumps(reader_of(topic, Limits())))
    table, = read(iter([batch([b'<http://a> <http://b> "1" .'])]))
    assert table["s"].to_pylist() == ["<http://a>"]
