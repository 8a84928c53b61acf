"""Streams that live in Kafka: what a descriptor says of a topic, the records that were read of it, and which of their items are taken.

A topic is read by Spark (engine/spark/topic.py), and what it brings is appended to the input log as a push is. With the items stands the
offset that each partition goes on at, in the same file: so each record is taken once, whatever ends in between, and results are a function
of the log as they are of any other.

Each partition has a watermark of its own, by its own items. That of the stream is the least of those that are not silent. So which items
are late does not depend on how the partitions were read side by side.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.facts import FACTS
from engine.runtime.resources import Rejection
from engine.runtime.rows import Prepared, short_name
from engine.timeline import MIN

RECORDS = pa.schema([("partition", pa.int32()), ("offset", pa.int64()), ("item", pa.int32()), ("scope", pa.int64()),
                     *(FACTS.field(name) for name in FACTS.names[1:]), ("reason", pa.string()), ("text", pa.string())])
"""What tasks make of records: a row for each triple of each `item` of a record; one with `item` -1 for a record without, with the `reason`
and the beginning of its `text` where it could not be read."""
FORMATS = ("application/n-triples", "application/n-quads", "application/trig", "text/turtle", "application/ld+json",
           "text/x-timed-ntriples", "application/rdf+xml", "application/jsonl")
MOST_BYTES = 256 << 20
"""Of a table of records at the driver; of what has more, fewer records are read at once."""
MISSING = ""
"""In place of the id of a topic that was not there when it was first asked for: all its records are new."""
MOST_LOST = 100     # ranges of lost records that are told of at once; all are counted
ReadRecords = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.Table]]
"""Runs in tasks: rows of partition, offset, timestamp (ms) and value in, `RECORDS` out. It can be pickled."""
ReaderOf = Callable[["Topic"], ReadRecords]
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_SERVERS = re.compile(r"[A-Za-z0-9._\[\]:-]+:[0-9]{1,5}(,[A-Za-z0-9._\[\]:-]+:[0-9]{1,5})*")
_MOST_PARTITIONS = 1_000
_MOST_OFFSET = 1 << 62
_MEMBERS = frozenset(("type", "bootstrapServers", "topic", "format", "startingOffsets", "timestamp"))


def servers_of(text: str) -> str:
    """Bootstrap servers, ``host:port,host:port``; ValueError if they are none."""
    if not _SERVERS.fullmatch(text):
        raise ValueError(f"{text[:100]!r} are no bootstrap servers: HOST:PORT[,HOST:PORT...]")
    return text


@dataclass(frozen=True, slots=True, eq=False)
class Topic:
    """Where the records of a stream are. `start` is ``earliest``, ``latest``, or the offset by partition. `by_record`: items have the time
    stamps of their records. It is equal to itself only: a stream that is made anew has another."""

    servers: str
    name: str
    format: str
    start: str | Mapping[int, int]
    by_record: bool
    event_time: bool
    predicate: str

    @classmethod
    def of(cls, descriptor: Mapping[str, Any]) -> Topic | None:
        """That of a stream's descriptor; None for a stream that is pushed to."""
        given = descriptor["source"]
        if given["type"] != "kafka":
            return None
        start = given["startingOffsets"]
        return cls(given["bootstrapServers"], given["topic"], given["format"],
                   start if isinstance(start, str) else {int(partition): offset for partition, offset in start.items()},
                   given["timestamp"] == "record", descriptor["time"] == "event", descriptor["timestampPredicate"])


def described(given: Mapping[str, Any], event_time: bool, allowed: Iterable[str]) -> dict[str, Any]:
    """The member ``source`` of a descriptor in one spelling; ValueError says what is wrong. Only servers that are `allowed` are asked."""
    if unknown := sorted(given.keys() - _MEMBERS):
        raise ValueError(f"there is no member {unknown[0]!r}; there are {', '.join(sorted(_MEMBERS))}")
    servers, topic = _servers(given.get("bootstrapServers"), tuple(allowed)), _topic(given.get("topic"))
    if (form := given.get("format", FORMATS[0])) not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}")
    if (stamp := given.get("timestamp", "item")) not in ("item", "record"):
        raise ValueError("timestamp must be item or record")
    if stamp == "record" and not event_time:
        raise ValueError('timestamp is of a stream with "time": "event"; of one of arrival the server stamps the items')
    return {"type": "kafka", "bootstrapServers": servers, "topic": topic, "format": form, "timestamp": stamp,
            "startingOffsets": _start(given.get("startingOffsets", "latest"))}


def described_sink(given: object, allowed: Iterable[str]) -> dict[str, Any]:
    """The option ``sink`` of a query in one spelling: the topic that its results go to. ValueError says what is wrong."""
    if not isinstance(given, Mapping) or given.get("type") != "kafka" or not given.keys() <= {"type", "bootstrapServers", "topic", "mode"}:
        raise ValueError('a sink is {"type": "kafka", "topic": ...}, with bootstrapServers and mode, full or delta, where they are needed')
    if given.get("mode", "full") not in ("full", "delta"):
        raise ValueError("mode must be full or delta")
    return {"type": "kafka", "bootstrapServers": _servers(given.get("bootstrapServers"), tuple(allowed)),
            "topic": _topic(given.get("topic")), **({"mode": given["mode"]} if "mode" in given else {})}


def _topic(given: object) -> str:
    if not isinstance(given, str) or not _TOPIC.fullmatch(given) or given in (".", "..") or given.startswith("__"):
        raise ValueError("topic must be the name of a topic: up to 249 letters, digits, '.', '_' and '-', none of Kafka's own (__...)")
    return given


def _servers(given: object, allowed: tuple[str, ...]) -> str:
    if not allowed:
        raise ValueError("this server reads no Kafka; it does where it is started with --kafka HOST:PORT")
    if given is None and len(allowed) == 1:
        return allowed[0]
    if given not in allowed:
        raise ValueError("bootstrapServers must be servers that this server was started with (--kafka)")
    return str(given)


def _start(given: object) -> str | dict[str, int]:
    if given in ("earliest", "latest"):
        return str(given)
    if isinstance(given, dict) and 0 < len(given) <= _MOST_PARTITIONS and all(
            re.fullmatch("0|[1-9][0-9]{0,5}", str(partition)) and isinstance(offset, int) and not isinstance(offset, bool)
            and 0 <= offset < _MOST_OFFSET for partition, offset in given.items()):
        return {str(partition): offset for partition, offset in sorted(given.items(), key=lambda entry: int(entry[0]))}
    raise ValueError('startingOffsets must be "earliest", "latest", or an offset for each partition: {"0": 120, "1": 0}')


@dataclass(frozen=True, slots=True)
class Reading:
    """What a stream's resource tells of its feed: ``starting``, ``reading``, or ``waiting`` where it has failed with `error`, and is begun
    again; `behind` is how many records are not read yet."""

    state: str = "starting"
    behind: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Partition:
    """How far a partition is read: the `offset` of the next record, and the watermark of its items. Not in the log: the wall time of its
    last record, or since when it is read, and whether it is `silent`, and holds the others back no more."""

    offset: int
    watermark: int = MIN
    active_ms: int = 0
    silent: bool = False

    def to_json(self) -> list[int | None]:
        return [self.offset, None if self.watermark == MIN else self.watermark]


def partitions_of(payload: Mapping[str, Any], now_ms: int) -> dict[int, Partition]:
    """The inverse of `to_json`, by partition. Raises ValueError, TypeError or KeyError for what cannot have been written."""
    found = {}
    for number, (offset, watermark) in payload.items():
        if not isinstance(offset, int) or not (watermark is None or isinstance(watermark, int)):
            raise ValueError(f"{number} is not at an offset")
        found[int(number)] = Partition(offset, MIN if watermark is None else watermark, now_ms)
    return found


@dataclass(frozen=True, slots=True)
class Lost:
    """The records of a partition at offsets `first` to `last` are no longer in the topic."""

    partition: int
    first: int
    last: int

    @property
    def text(self) -> str:
        return f"records {self.first} to {self.last} of partition {self.partition} are no longer in the topic"


@dataclass(frozen=True, slots=True)
class Records:
    """What was read at once of the topic with the id `identity`. `partitions` has that of each item of `items`; `begins` the offset from
    which on each partition was read, `following` where it goes on."""

    identity: str
    items: Prepared
    partitions: np.typing.NDArray[np.int32]
    begins: Mapping[int, int]
    following: Mapping[int, int]
    rejected: tuple[Rejection, ...] = ()
    lost: tuple[Lost, ...] = ()


def offsets_of(table: pa.Table) -> dict[int, np.typing.NDArray[np.int64]]:
    """The offsets of the records in a table (`RECORDS`), ascending, by partition."""
    partitions, offsets = table["partition"].to_numpy(), table["offset"].to_numpy()
    return {int(number): np.unique(offsets[partitions == number]) for number in np.unique(partitions)}


def no_records(identity: str, begins: Mapping[int, int], following: Mapping[int, int], rejected: tuple[Rejection, ...] = (),
               lost: tuple[Lost, ...] = ()) -> Records:
    """That partitions go on elsewhere, without a record that was read."""
    return replace(records_of(identity, RECORDS.empty_table(), begins, lost), following=following, rejected=rejected)


def records_of(identity: str, table: pa.Table, begins: Mapping[int, int], lost: tuple[Lost, ...] = ()) -> Records:
    """What tasks have made of records (`RECORDS`), in any order, read from the offsets `begins` on; there may be none."""
    if not _is_sorted(*(table[name].to_numpy() for name in ("partition", "offset", "item"))):
        table = table.sort_by([(name, "ascending") for name in ("partition", "offset", "item")])
    following = {**begins, **{number: int(offsets[-1]) + 1 for number, offsets in offsets_of(table).items()}}
    none = pc.equal(table["item"], -1)
    bad = table.filter(pc.and_(none, pc.is_valid(table["reason"])))
    rejected = tuple(Rejection(f"{reason} (partition {partition}, offset {offset})", text=text) for partition, offset, reason, text in
                     zip(*(bad[name].to_pylist() for name in ("partition", "offset", "reason", "text")), strict=True))
    rows = table.filter(pc.invert(none)) if pc.any(none, min_count=0).as_py() else table
    places = [rows[name].to_numpy() for name in ("partition", "offset", "item")]
    begin = np.flatnonzero(np.any([np.diff(column, prepend=-1) != 0 for column in places], axis=0))
    sizes = np.diff(begin, append=rows.num_rows)
    item = np.repeat(np.arange(len(begin), dtype=np.int32), sizes)
    firsts = rows.select(["partition", "offset", "item", "t", "scope"]).take(pa.array(begin))
    facts = pa.table({"item": item, "row": (np.arange(rows.num_rows) - np.repeat(begin, sizes)).astype(np.int32),
                      **{name: rows[name] for name in ("g", "s", "p", "o", "kind", "number", "micros")}})
    times = firsts["t"]
    scoped = firsts.num_rows and not firsts["scope"].null_count
    place = (pc.cast(firsts[name], pa.string()) for name in ("partition", "offset", "item"))
    own = pc.binary_join_element_wise(short_name(identity), *place, ".")
    prepared = Prepared(facts, times.fill_null(0).to_numpy(), None if not times.null_count else np.asarray(times.is_valid()),
                        firsts["scope"].to_numpy() if scoped else None, own)
    return Records(identity, prepared, firsts["partition"].to_numpy(), dict(begins), following, rejected, lost)


def _is_sorted(*columns: np.typing.NDArray[np.int64]) -> bool:
    """Whether rows are in the order of the first column, then the second..."""
    before = np.zeros(max(0, len(columns[0]) - 1), np.bool_)     # whether a row is known to stand behind the one before it
    for column in columns:
        step = np.diff(column)
        if (~before & (step < 0)).any():
            return False
        before |= step > 0
    return True


class MovedError(RuntimeError):
    """What was read does not begin where the stream goes on: it is read again from there."""

    def __init__(self) -> None:
        super().__init__("the stream goes on elsewhere than what was read begins")


def reach(records: Records, known: Mapping[int, Partition], ahead: np.typing.NDArray[np.bool_], lateness_ms: int,
          now_ms: int) -> tuple[np.typing.NDArray[np.bool_], dict[int, Partition]]:
    """Move the partitions on by records that follow what is `known` of them; MovedError if they do not. Which items are older than the
    watermark of their own partition, and the partitions behind the records. Items that are `ahead` of the clock move nothing."""
    if any(number in known and known[number].offset != offset for number, offset in records.begins.items()):
        raise MovedError
    found, times = dict(known), records.items.times
    late = np.zeros(len(times), np.bool_)
    for number, offset in records.following.items():
        before = known.get(number, Partition(0))
        own = records.partitions == number
        reached = np.maximum.accumulate(np.concatenate([[before.watermark], np.where(ahead[own], MIN, times[own] - lateness_ms)]))
        late[own] = times[own] < reached[:-1]
        came = number not in known or offset != before.offset
        found[number] = Partition(offset, int(reached[-1]), now_ms) if came else before
    return late, found


def hushed(known: Mapping[int, Partition], at_end: Iterable[int], now_ms: int, idle_ms: int) -> dict[int, Partition]:
    """The partitions once those `at_end`, of which nothing is left to be read, are silent if nothing came for `idle_ms` of reading."""
    ended = set(at_end)
    return {number: replace(one, silent=one.silent or number in ended and now_ms - one.active_ms >= idle_ms)
            for number, one in known.items()}


def watermark_of(partitions: Mapping[int, Partition]) -> int:
    """Up to when the stream is complete: the least watermark of the partitions that are not silent; the greatest, where all are."""
    speaking = [one.watermark for one in partitions.values() if not one.silent]
    return min(speaking) if speaking else max((one.watermark for one in partitions.values()), default=MIN)
