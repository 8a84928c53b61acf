"""Records of Kafka topics: what runs in Spark's tasks, values in, rows of items out (`engine.runtime.topics.RECORDS`).

A value is read as the body of a push is. N-Triples in the plain form (columns.py) are read in columns, those of all records of a batch
together; a test holds the two ways equal."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyoxigraph import RdfFormat

from engine.functions.typed import typed_columns
from engine.runtime.resources import Item
from engine.runtime.rows import item_table
from engine.runtime.topics import RECORDS, ReadRecords, Topic
from engine.timeline import is_moment
from server.formats.columns import split_lines
from server.formats.items import Reader
from server.formats.media import NTRIPLES
from server.formats.reading import read_items
from server.formats.values import stamp_ms
from server.limits import Limits
from server.problems import Problem

_TEXT = 4_096       # bytes of a value that are told of with a reason
_TEXTS = 100        # values of a batch of which that is told
_NO_STAMP = "missing-timestamp: The record has no time stamp within the years 1 to 9999."


def reader_of(topic: Topic, limits: Limits) -> ReadRecords:
    """What reads the records of a topic in tasks."""
    reader = Reader(topic.predicate, None, topic.event_time, True, limits)
    return partial(read_records, media=topic.format, reader=reader, by_record=topic.by_record)


def read_records(batches: Iterator[pa.RecordBatch], media: str, reader: Reader, by_record: bool) -> Iterator[pa.Table]:
    """The items of records (partition, offset, timestamp, value), with the time stamps of the records if `by_record`. A record that cannot
    be read, or an item of it, is left out with its reason."""
    for batch in batches:
        table = _in_columns(batch, reader, by_record) if media == NTRIPLES else None
        yield _one_by_one(batch, media, reader, by_record) if table is None else table


@dataclass(slots=True)
class _Found:
    """What was found in records: the items with the record of each and its number there, and the reasons for what was left out."""

    items: list[Item] = field(default_factory=list)
    records: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    without: list[tuple[int, str | None, str | None]] = field(default_factory=list)

    def add(self, record: int, items: list[Item]) -> None:
        self.items += items
        self.records += [record] * len(items)
        self.numbers += range(len(items))

    def leave_out(self, record: int, reason: str | None, value: bytes | None) -> None:
        told = value is not None and len(self.without) < _TEXTS
        self.without.append((record, reason, value[:_TEXT].decode("utf-8", "replace") if value is not None and told else None))


def _one_by_one(batch: pa.RecordBatch, media: str, reader: Reader, by_record: bool) -> pa.Table:
    found = _Found()
    for record, (stamp, value) in enumerate(zip(batch["timestamp"].to_pylist(), batch["value"].to_pylist(), strict=True)):
        if value is None or not value.strip():
            found.leave_out(record, None, None)
        elif by_record and not _is_stamp(stamp):
            found.leave_out(record, _NO_STAMP, value)
        else:
            _read(found, record, value, media, replace(reader, timestamp_ms=stamp) if by_record else reader)
    return _table(batch, found)


def _is_stamp(ms: int | None) -> bool:
    return ms is not None and ms >= 0 and is_moment(ms)


def _read(found: _Found, record: int, value: bytes, media: str, reader: Reader) -> None:
    limit = reader.limits.push_body
    try:
        if len(value) > limit:
            raise Problem("body-too-large", f"The record has more than {limit} bytes.")
        reading = read_items(value, media, reader)
    except Problem as problem:
        found.leave_out(record, f"{problem.slug}: {problem.detail}", value)
        return
    found.add(record, reading.items)
    for number, left_out in enumerate(reading.problems[:reader.limits.push_errors]):
        found.leave_out(record, f"{left_out.slug}: {left_out.detail}", None if number else value)
    if not reading.items and not reading.problems:
        found.leave_out(record, None, None)


def _table(batch: pa.RecordBatch, found: _Found) -> pa.Table:
    rows = item_table([(item.t_ms, item.graph, item.triples) for item in found.items])
    of_item = rows["item"].to_numpy()
    numbers, records = np.array(found.numbers, np.int32), np.array(found.records, np.int64)
    scopes = pa.array([item.scope_ms for item in found.items], pa.int64())
    whole = _rows(batch, records[of_item], numbers[of_item], rows["t"], scopes.take(pa.array(of_item)), *(rows[name] for name in "gspo"))
    if not found.without:
        return whole
    places, reasons, texts = (list(column) for column in zip(*found.without, strict=True))
    none = np.array(places, np.int64)
    left_out = {name: pa.nulls(len(none), RECORDS.field(name).type) for name in RECORDS.names}
    left_out |= {name: batch[name].take(pa.array(none)) for name in ("partition", "offset")}
    left_out |= {"item": pa.array(np.full(len(none), -1, np.int32)), "reason": pa.array(reasons, pa.string()),
                 "text": pa.array(texts, pa.string())}
    return pa.concat_tables([whole, pa.table([left_out[name] for name in RECORDS.names], schema=RECORDS)])


def _rows(batch: pa.RecordBatch, record: np.typing.NDArray[np.int64], item: np.typing.NDArray[np.int32], t: pa.Array, scope: pa.Array,
          g: pa.Array, s: pa.Array, p: pa.Array, o: pa.Array) -> pa.Table:
    place, nothing = pa.array(record), pa.nulls(len(record), pa.string())
    return pa.table([batch["partition"].take(place), batch["offset"].take(place), pa.array(item), scope, t, g, s, p, o, *typed_columns(o),
                     nothing, nothing], schema=RECORDS)


def _in_columns(batch: pa.RecordBatch, reader: Reader, by_record: bool) -> pa.Table | None:
    """N-Triples of all records together; None where anything is not simply fine."""
    stamps, values = batch["timestamp"], batch["value"]
    if not batch.num_rows or values.null_count or by_record and not all(map(_is_stamp, pc.min_max(stamps).as_py().values())):
        return None
    try:
        parts = pc.split_pattern(values.cast(pa.large_string()), "\n")
        lines, record = parts.flatten(), pc.list_parent_indices(parts)
        filled = pc.greater(pc.binary_length(lines), 0)
        lines, record = lines.filter(filled), record.filter(filled).to_numpy()
        rows = split_lines(lines, RdfFormat.N_TRIPLES, named=False)
    except (pa.ArrowInvalid, SyntaxError, Problem):
        return None
    if rows is None or any(pc.any(pc.starts_with(rows[name], "_:")).as_py() for name in "so"):
        return None
    record = record[rows["line"].to_numpy()]
    times = stamps if by_record else pa.nulls(len(values), pa.int64())
    if reader.event_time:
        is_stamp = pc.equal(rows["p"], f"<{reader.predicate}>")
        if not by_record:
            found = [stamp_ms(token) for token in rows["o"].filter(is_stamp).to_pylist()]
            one_each = np.array_equal(record[np.asarray(is_stamp)], np.arange(len(values)))
            if not one_each or not all(ms is not None and is_moment(ms) for ms in found):
                return None
            times = pa.array(found, pa.int64())
        rows, record = rows.filter(pc.invert(is_stamp)), record[~np.asarray(is_stamp)]
    if not _within_caps(rows, record, len(values), reader.limits):
        return None
    count, terms = len(record), [rows[name].cast(pa.string()) for name in "spo"]
    return _rows(batch, record, np.zeros(count, np.int32), times.take(pa.array(record)), pa.nulls(count, pa.int64()),
                 pa.nulls(count, pa.string()), *terms)


def _within_caps(rows: pa.Table, record: np.typing.NDArray[np.int64], records: int, limits: Limits) -> bool:
    """Whether each record has an item, and none is larger than an item may be."""
    size = np.sum([pc.binary_length(rows[name]).to_numpy() for name in "spo"], axis=0) + 5
    triples, sizes = np.bincount(record, minlength=records), np.bincount(record, size, records)
    return bool(triples.min(initial=1) > 0 and triples.max(initial=0) <= limits.item_triples and sizes.max(initial=0) <= limits.item_bytes
                and (pc.max(pc.binary_length(rows["o"])).as_py() or 0) <= limits.literal)
