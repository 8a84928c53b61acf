"""The input log as Arrow: one row per triple of an item, one or more rows for every other record (engine/records.py).

`position` numbers the records without a gap, `row` the rows of one record from 0. `record` says which kind it is; `stream` is the IRI of
a stream or graph, or the name of a query or rule set; `payload` is JSON. Items and graphs fill the columns of FACTS.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2s
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.facts import FACTS
from engine.functions.typed import typed_columns
from engine.records import Triple, Verdict


class Kind(IntEnum):
    """The kinds of record. REFUSED (items that were late, ahead or broken), KEY (the answer to a push), OFFSETS (how far a topic is read)
    and NOTE decide no result."""

    EVENT = 0
    MARK = 1
    IDLE = 2
    REGISTER = 3
    UNREGISTER = 4
    PAUSE = 5
    RESUME = 6
    GRAPH = 7
    END = 8
    REFUSED = 9
    KEY = 10
    NOTE = 11
    RULES = 12
    STREAM = 13
    VERDICT = 14
    OFFSETS = 15


_CONTENT = FACTS.names[2:]      # without position and time
ROWS = pa.schema([("position", pa.int64()), ("row", pa.int32()), ("record", pa.int8()), ("stream", pa.string()), ("t", pa.int64()),
                  *(FACTS.field(name) for name in _CONTENT),
                  ("watermark", pa.int64()), ("payload", pa.string())])


UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Control:
    """A record that is not an item, as read back from the log; the triples of a graph are rows of the same position."""

    position: int
    kind: Kind
    stream: str
    watermark: int | None
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Prepared:
    """Items made ready to append: `table` has columns item (index), row, g s p o and typed columns; `times`, `stamped` (which have a time
    stamp; None: all) and `scopes` (the ms whose blank nodes they share, `Item.scope_ms`; None: their own) have one entry per item, and so
    have `names` (what makes the blank nodes of an item its own; None: its number in the stream)."""

    table: pa.Table
    times: np.typing.NDArray[np.int64]
    stamped: np.typing.NDArray[np.bool_] | None = None
    scopes: np.typing.NDArray[np.int64] | None = None
    names: pa.Array | None = None

    @property
    def items(self) -> int:
        return len(self.times)


def prepare(items: Sequence[tuple[int | None, str | None, Sequence[Triple]]], scopes: Sequence[int | None] = ()) -> Prepared:
    """Turn items (time, graph, triples) into columns; `scopes` are those of all items, or there are none."""
    return prepare_table(item_table(items, scopes))


def item_table(items: Sequence[tuple[int | None, str | None, Sequence[Triple]]], scopes: Sequence[int | None] = ()) -> pa.Table:
    """The same in the columns of `prepare_table`; an item without triples keeps one row of nulls."""
    triples = [triple for _, _, content in items for triple in content or ((None, None, None),)]
    terms = zip(*triples, strict=True) if triples else ((), (), ())
    sizes = np.fromiter((len(content) or 1 for _, _, content in items), np.int32, len(items))
    item = np.repeat(np.arange(len(items), dtype=np.int32), sizes)
    firsts = {"t": pa.array([t for t, _, _ in items], pa.int64()), "g": pa.array([graph for _, graph, _ in items], pa.string())}
    if scopes and None not in scopes:
        firsts["scope"] = pa.array(scopes, pa.int64())
    return pa.table({"item": item, **{name: column.take(pa.array(item)) for name, column in firsts.items()},
                     **{name: pa.array(column, pa.string()) for name, column in zip("spo", terms)}})


def prepare_table(table: pa.Table) -> Prepared:
    """The same from a table with columns item (ascending from 0, no gap), t, g, s, p, o and, where there are any, scope (ms)."""
    item = table["item"].to_numpy().astype(np.int32)
    firsts = table.select([name for name in ("t", "scope") if name in table.column_names])
    row = np.zeros(len(item), np.int64)
    if not one_each(item):
        starts = np.flatnonzero(np.diff(item, prepend=-1))
        row = np.arange(len(item)) - np.repeat(starts, np.diff(starts, append=len(item)))
        firsts = firsts.take(pa.array(starts))
    times = firsts["t"]
    stamped = None if not times.null_count else np.asarray(times.is_valid())
    scopes = firsts["scope"].to_numpy() if "scope" in table.column_names else None
    kind, number, micros = typed_columns(table["o"])
    facts = pa.table({"item": pa.array(item), "row": pa.array(row.astype(np.int32)),
                      **{name: table[name] for name in "gspo"},
                      "kind": kind, "number": number, "micros": micros})
    return Prepared(facts, times.fill_null(0).to_numpy().astype(np.int64), stamped, scopes)


def graph_table(triples: Iterable[Triple]) -> pa.Table:
    """A static graph in the columns of FACTS."""
    return facts_of(graph_rows(0, "", tuple(triples))).combine_chunks()


def item_rows(prepared: Prepared, stream: str, taken: np.typing.NDArray[np.bool_], positions: np.typing.NDArray[np.int64],
              times: np.typing.NDArray[np.int64], watermarks: np.typing.NDArray[np.int64], before: int = 0) -> pa.Table:
    """Rows of the log for the taken items; the arrays have one entry per item.

    Blank nodes become the item's own, ``_:i<stream>.<number>.<label>``: `before` items of the stream came before these. The number
    is not the position, for what else is in the log may depend on the clock. Those of a scope become ``_:t<stream>.<ms>.<label>``, those of
    items that have names ``_:k<stream>.<name>.<label>``.
    """
    item = prepared.table["item"].to_numpy()
    table = prepared.table
    if not taken.all():
        keep = taken[item]
        table, item = table.filter(pa.array(keep)), item[keep]
    count, place = table.num_rows, pa.array(positions[item])
    if prepared.scopes is not None:
        letter, numbers = "t", pa.array(prepared.scopes)
    elif prepared.names is not None:
        letter, numbers = "k", prepared.names
    else:
        letter, numbers = "i", pa.array(before + np.cumsum(taken))
    number = numbers.take(pa.array(item))
    g, s, o = (_own(table[name], number, f"_:{letter}{short_name(stream)}.") for name in ("g", "s", "o"))
    return pa.table([place, table["row"], _repeat(int(Kind.EVENT), count, pa.int8()), _repeat(stream, count, pa.string()),
                     pa.array(times[item]), g, s, table["p"], o, table["kind"], table["number"], table["micros"],
                     pa.array(watermarks[item]), pa.nulls(count, pa.string())], schema=ROWS)


def control_rows(*records: Control) -> pa.Table:
    count = len(records)
    columns: dict[str, Any] = {name: pa.nulls(count, ROWS.field(name).type) for name in ("t", *_CONTENT)}
    columns |= {"position": [r.position for r in records], "row": [0] * count, "record": [int(r.kind) for r in records],
                "stream": [r.stream for r in records], "watermark": [r.watermark for r in records],
                "payload": [json.dumps(r.payload) if r.payload else None for r in records]}
    return pa.table([pa.array(columns[name], ROWS.field(name).type) if isinstance(columns[name], list) else columns[name]
                     for name in ROWS.names], schema=ROWS)


def graph_rows(position: int, graph: str, triples: Sequence[Triple] | None) -> pa.Table:
    """Rows of the log for a version of a static graph, blank nodes as they are; None removes it."""
    head = control_rows(Control(position, Kind.GRAPH, graph, None, {"removed": triples is None}))
    if not triples:
        return head
    table = prepare([(0, None, triples)]).table
    count, columns = table.num_rows, {name: table[name] for name in _CONTENT}
    columns |= {"position": _repeat(position, count, pa.int64()), "row": pa.array(np.arange(1, count + 1, dtype=np.int32)),
                "record": _repeat(int(Kind.GRAPH), count, pa.int8()), "stream": _repeat(graph, count, pa.string()),
                "t": _repeat(0, count, pa.int64()), "watermark": pa.nulls(count, pa.int64()), "payload": pa.nulls(count, pa.string())}
    return pa.concat_tables([head, pa.table([columns[name] for name in ROWS.names], schema=ROWS)])


def at_position(rows: pa.Table, position: int) -> pa.Table:
    return rows.set_column(0, ROWS.field(0), _repeat(position, rows.num_rows, pa.int64()))


def own_blank_nodes(triples: Iterable[Triple], mark: str) -> list[Triple]:
    """Triples whose blank nodes ``_:x`` are now ``_:<mark>.x``."""
    def own(token: str) -> str:
        return f"_:{mark}.{token[2:]}" if token.startswith("_:") else token
    return [(own(s), p, own(o)) for s, p, o in triples]


def short_name(iri: str) -> str:
    """Eight letters and digits that stand for an IRI in blank node labels."""
    return blake2s(iri.encode(), digest_size=4).hexdigest()


def controls(table: pa.Table) -> list[Control]:
    """The records of a part of the log that are not items, in order. One that cannot be read is a NOTE that says why (`UNREADABLE`)."""
    rows = table.filter(pc.and_(pc.not_equal(table["record"], int(Kind.EVENT)), pc.equal(table["row"], 0)))
    columns = [rows[name].to_pylist() for name in ("position", "record", "stream", "watermark", "payload")]
    return [_control(*values) for values in zip(*columns, strict=True)]


def _control(position: int, kind: int, stream: str, watermark: int | None, payload: str | None) -> Control:
    try:
        read = json.loads(payload) if payload else {}
        if not isinstance(read, dict):
            raise ValueError("the payload is no JSON object")
        return Control(position, Kind(kind), stream, watermark, read)
    except ValueError as error:
        return Control(position, Kind.NOTE, stream, watermark, {UNREADABLE: f"{error}"})


def verdict_payload(verdict: Verdict) -> dict[str, Any]:
    return {"epoch": verdict.epoch, "tick": verdict.tick, "limit": verdict.limit, "detail": verdict.detail}


def verdicts(found: Iterable[Control]) -> Iterator[Verdict]:
    for control in found:
        if control.kind is Kind.VERDICT:
            payload = control.payload
            yield Verdict(control.position, control.stream, payload["epoch"], payload["tick"], payload["limit"], payload["detail"])


def facts_of(table: pa.Table) -> pa.Table:
    """The triples of rows of items or graphs, in the columns of FACTS."""
    if table["s"].null_count:
        table = table.filter(pc.is_valid(table["s"]))
    return table.select(FACTS.names)


def where(table: pa.Table, column: str, value: int | str) -> pa.Table:
    """The rows with that value, not copied where all have it."""
    same = pc.equal(table[column], value)
    return table if pc.all(same, min_count=0).as_py() else table.filter(same)


def in_order(table: pa.Table) -> pa.Table:
    """The rows sorted by (position, row). What is in order already is not copied, such as the rows of each file."""
    position, row = table["position"].to_numpy(), table["row"].to_numpy()
    step = np.diff(position)
    cuts = np.flatnonzero((step < 0) | ((step == 0) & (np.diff(row) <= 0))) + 1
    if not len(cuts):
        return table
    begins, ends = np.concatenate([[0], cuts]), np.concatenate([cuts, [len(position)]])
    order = np.argsort(position[begins])
    if (position[begins][order][1:] <= position[ends - 1][order][:-1]).any():
        return table.take(pa.array(np.lexsort((row, position))))
    return pa.concat_tables([table.slice(begins[run], ends[run] - begins[run]) for run in order])


def one_each(item: np.typing.NDArray[Any]) -> bool:
    """Whether every row is an item of its own, given the number of each row's item (ascending from 0, no gap)."""
    return bool(len(item)) and int(item[-1]) == len(item) - 1


def _own(column: pa.ChunkedArray, number: pa.Array | pa.ChunkedArray, mark: str) -> pa.ChunkedArray:
    """Blank nodes ``_:x`` become ``<mark><number>.x``."""
    blank = pc.fill_null(pc.starts_with(column, "_:"), False)
    if not pc.any(blank).as_py():
        return column
    mine = pc.binary_join_element_wise(mark, pc.cast(number, pa.string()), "")
    return pc.if_else(blank, pc.binary_join_element_wise(mine, pc.utf8_slice_codeunits(column, 2), "."), column)


def _repeat(value: Any, count: int, kind: pa.DataType) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind), count)
