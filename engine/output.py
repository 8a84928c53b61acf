"""From answers to what is logged: bag differences between evaluations, and payloads written by Arrow column by column.

A payload of SELECT and ASK is a SPARQL 1.1 Results JSON document on one line; of CONSTRUCT and DESCRIBE N-Triples.
"""

import json
import logging
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.grouping import by_key
from engine.ipc import compressed, joined, part_of, unpack_text
from engine.records import Triple

Key = TypeVar("Key", bound=Hashable)
Part: TypeAlias = str | pa.ChunkedArray | pa.Array
_LOG = logging.getLogger(__name__)
_SIGN = "sign"
_END = b"]}}"
_SMALL = 1_000      # rows: results with more gain little from being written together
_TOGETHER = 128     # results, so that Arrow's memory for them has a bound: some 0.5 KB a row
_SHORT = 200    # characters: of so short tokens the texts of the last ones are remembered
_PIECE = 16_384     # rows: the text of so many takes little memory, which is used again
_FEW = 256      # rows: 0.05 ms for 50 rows of two columns, 0.34 by Arrow's functions


def difference(new: pa.Table, old: pa.Table) -> pa.Table:
    """The bag `new` minus the bag `old`; same columns. Row order is that of first appearance."""
    if not old.num_rows or not new.num_rows:
        return new
    if not new.num_columns:     # solutions without variables: all are equal
        return pa.table({"_": pa.nulls(max(0, new.num_rows - old.num_rows))}).select([])
    names = [f"c{i}" for i in range(new.num_columns)]
    parts = [table.rename_columns(names).append_column(_SIGN, pa.repeat(pa.scalar(sign, pa.int64()), table.num_rows))
             for table, sign in ((new, 1), (old, -1))]
    counted = pa.concat_tables(parts).group_by(names, use_threads=False).aggregate([(_SIGN, "sum")])
    left = counted.filter(pc.greater(counted[f"{_SIGN}_sum"], 0))
    copies = left[f"{_SIGN}_sum"].to_pylist()
    if max(copies, default=1) > 1:
        left = left.take(pa.array([row for row, count in enumerate(copies) for _ in range(count)], pa.int64()))
    return left.select(names).rename_columns(new.column_names)


def first_rows(table: pa.Table, most: int) -> pa.Table:
    """At most so many rows. (Arrow gives a slice of a table without columns as many rows as were asked for.)"""
    return table if table.num_rows <= most else table.slice(0, most)


def select_json(table: pa.Table) -> bytes:
    """SPARQL Results JSON of a table with one column of tokens per variable (null: unbound)."""
    return _select_json([table])[0]


def packed_json(table: pa.Table, threads: int) -> bytes:
    """`select_json` of rows with columns as `pack_text` gives it; some rows at a time, which several threads write and compress."""
    return together_json(table.column_names, [(table.num_rows, packed_bindings(table, threads))])


def packed_bindings(table: pa.Table, threads: int) -> bytes:
    """The bindings of such a document."""
    def part(first: int) -> tuple[int, bytes]:
        rows = table.slice(first, _PIECE)
        [lines] = _cut(_bindings(rows), [rows])
        return compressed(bytes(lines[:-1] if first + _PIECE >= table.num_rows else lines))

    with ThreadPoolExecutor(threads) as pool:
        return joined(pool.map(part, range(0, max(1, table.num_rows), _PIECE)))


def together_json(variables: Sequence[str], parts: Sequence[tuple[int, bytes]], most: int | None = None) -> bytes:
    """The document, packed, of at most so many solutions of parts, each with how many it has and what `packed_bindings` gives of them."""
    texts, left = [compressed(_head(variables))], sum(rows for rows, _ in parts) if most is None else most
    for rows, packed in parts:
        if not rows or not left:
            continue
        if rows > left:
            few = json.loads(b"[%b]" % unpack_text(packed))[:left]
            packed = joined([compressed(json.dumps(few, separators=(",", ":"), ensure_ascii=False).encode()[1:-1])])
        texts += [compressed(b",")] if len(texts) > 1 else []
        texts.append(part_of(packed))
        left -= min(left, rows)
    return joined([*texts, compressed(_END)])


def boolean_json(value: bool) -> bytes:
    """SPARQL Results JSON of ASK."""
    return b'{"head":{},"boolean":' + (b"true}" if value else b"false}")


def triples_in(payload: bytes) -> tuple[Triple, ...]:
    """The triples of N-Triples as `payload` writes them: only the object may have spaces in it."""
    lines = (line[:-2].split(" ", 2) for line in payload.decode().splitlines())
    return tuple((s, p, o) for s, p, o in lines)


def bindings(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table of tokens as the bindings of SPARQL Results JSON."""
    found: list[dict[str, Any]] = json.loads(select_json(table))["results"]["bindings"]
    return found


def payload(form: str, table: pa.Table) -> bytes:
    """The payload of a relation for a query form (Statement.form)."""
    return payloads(form, [table])[0]


def payloads(form: str, tables: Sequence[pa.Table]) -> list[bytes]:
    """The payloads of relations with the same columns: each step of Arrow is done once for all of them."""
    if form in ("SELECT", "PROGRAM"):
        return _select_json(tables)
    return [boolean_json(table.num_rows > 0) for table in tables] if form == "ASK" else _ntriples(tables)


def payloads_together(relations: Mapping[Key, tuple[str, pa.Table]]) -> dict[Key, bytes]:
    """The payloads of relations of several queries, with their forms: each step is done once for all of one form and schema, as far as
    they are small. Large ones are left out, and such as have no other beside them or cannot be written together."""
    alike = by_key(((form, table.schema), key) for key, (form, table) in relations.items() if table.num_rows <= _SMALL)
    found: dict[Key, bytes] = {}
    for (form, _), keys in alike.items():
        for first in range(0, len(keys), _TOGETHER):
            some = keys[first:first + _TOGETHER]
            if len(some) > 1:
                try:
                    found |= zip(some, payloads(form, [relations[key][1] for key in some]), strict=True)
                except Exception:   # whose fault it is shows where each is written by itself
                    _LOG.warning("%d results are written one by one", len(some), exc_info=True)
    return found


def _parts(column: pa.ChunkedArray | pa.Array) -> list[Part]:
    """The parts of each token's JSON object (SPARQL Results JSON), for a caller who joins them with more: each pass over a long column
    costs. Nulls stay. Escapes of N-Triples within literals are JSON's too, so the text is taken as it is."""
    column = _large(column)
    first = pc.binary_slice(column.cast(pa.large_binary()), 0, 1)
    kinds = {value.as_py() for value in pc.unique(first)}
    parts = {b"<": lambda iris: ['{"type":"uri","value":"', _inside(iris, 1, -1), '"}'],
             b"_": lambda blank: ['{"type":"bnode","value":"', _inside(blank, 2, 1 << 40), '"}'], b'"': _literals}
    present = [kind for kind in parts if kind in kinds]
    if len(present) == 1 and None not in kinds:
        return parts[present[0]](column)
    result = pa.chunked_array([pa.nulls(len(column), pa.large_string())])
    for kind in present:
        mask = _one(pc.fill_null(pc.equal(first, pa.scalar(kind, pa.large_binary())), False))    # Arrow takes no mask in chunks
        result = pc.replace_with_mask(result, mask, _one(_join(parts[kind](column.filter(mask)))))
    return [result]


def _select_json(tables: Sequence[pa.Table]) -> list[bytes]:
    if not tables:
        return []
    before = _head(tables[0].column_names)
    bindings: list[bytes] | list[memoryview]
    if tables[0].num_columns and sum(table.num_rows for table in tables) < _FEW:
        bindings = [_few_bindings(table) for table in tables]
    elif tables[0].num_columns:
        bindings = _cut(_bindings(pa.concat_tables(tables)), tables)
    else:
        bindings = [b"{}," * table.num_rows for table in tables]
    return [b"".join((before, memoryview(rows)[:-1], _END)) for rows in bindings]


def _head(variables: Sequence[str]) -> bytes:
    """What stands before the bindings."""
    head = json.dumps({"vars": variables}, separators=(",", ":"), ensure_ascii=False)
    return b'{"head":' + head.encode() + b',"results":{"bindings":['


def _few_bindings(table: pa.Table) -> bytes:
    """The same as `_bindings` for few rows, where what Arrow's functions cost each time is more."""
    columns = []
    for name in table.column_names:
        mark = json.dumps(name, ensure_ascii=False) + ":"
        columns.append([None if token is None else mark + (_short_term(token) if len(token) <= _SHORT else json_term(token))
                        for token in table[name].to_pylist()])
    return "".join(f"{{{','.join(cell for cell in row if cell is not None)}}}," for row in zip(*columns)).encode()


def json_term(token: str) -> str:
    """The JSON object of a token: what N-Triples escapes JSON does in the same way."""
    if token[0] == "<":
        return f'{{"type":"uri","value":"{token[1:-1]}"}}'
    if token[0] == "_":
        return f'{{"type":"bnode","value":"{token[2:]}"}}'
    lexical, _, suffix = token.rpartition('"')
    return f'{{"type":"literal","value":{lexical}{_literal_end(suffix)}'


_short_term = lru_cache(maxsize=10_000)(json_term)


def _bindings(table: pa.Table) -> pa.ChunkedArray:
    """Each solution as JSON, with a comma after it."""
    cells = {json.dumps(name, ensure_ascii=False) + ":": _cells(table[name]) for name in table.column_names}
    if not any(table[name].null_count for name in table.column_names):
        row = [part for mark, parts in cells.items() for part in (f",{mark}", *parts)]
        return _join(["{" + row[0][1:], *row[1:], "},"])
    # Arrow 26 loses the rows in which all texts are null when it is told to skip nulls; so each cell brings its own comma.
    parts = [pc.fill_null(_join([f",{mark}", *parts]), "") for mark, parts in cells.items()]
    return _join(["{", _inside(_join(parts), 1, 1 << 40), "},"])


def _ntriples(tables: Sequence[pa.Table]) -> list[bytes]:
    if not tables:
        return []
    whole = pa.concat_tables(tables)
    return [bytes(lines) for lines in
            _cut(pc.binary_join_element_wise(*(_large(whole[name]) for name in ("s", "p", "o")), _text(".\n"), _text(" ")), tables)]


def _cells(column: pa.ChunkedArray) -> list[Part]:
    """The parts of each token's JSON; a column of few distinct values is written once per value."""
    sample = column.slice(0, 2048)
    if len(column) > 4096 and pc.count_distinct(sample).as_py() > 1024:
        return _parts(column)
    coded = _one(_one(column).dictionary_encode())
    return [pa.chunked_array([_one(_join(_parts(coded.dictionary))).take(coded.indices)])]


def _one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column in one piece."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _literals(column: pa.ChunkedArray) -> list[Part]:
    """Cut each literal at its closing quotation mark: what is after it is a datatype, a language, or nothing."""
    parts = pc.split_pattern(column, '"', max_splits=1, reverse=True)
    lexical, suffix = pc.list_element(parts, 0), pc.list_element(parts, 1)
    coded = _one(_one(suffix).dictionary_encode())
    ends = pa.array([_literal_end(text) for text in coded.dictionary.to_pylist()], pa.large_string()).take(coded.indices)
    return ['{"type":"literal","value":', lexical, ends]


def _literal_end(suffix: str) -> str:
    if suffix.startswith("^^"):
        return f'","datatype":{json.dumps(suffix[3:-1], ensure_ascii=False)}}}'
    return f'","xml:lang":{json.dumps(suffix[1:])}}}' if suffix else '"}'


def _inside(column: pa.ChunkedArray, start: int, stop: int) -> pa.ChunkedArray:
    """Without the marks around it, which are ASCII: a slice of bytes."""
    return pc.binary_slice(column.cast(pa.large_binary()), start, stop).cast(pa.large_string())


def _join(parts: Sequence[Part]) -> pa.ChunkedArray | pa.Array:
    """The texts of columns and constants one behind another, in one pass; null where one of them is."""
    return pc.binary_join_element_wise(*(_text(part) if isinstance(part, str) else part for part in parts), _text(""))


def _large(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    return column.cast(pa.large_string())


def _text(value: str) -> pa.Scalar:
    return pa.scalar(value, pa.large_string())


def _cut(lines: pa.ChunkedArray, tables: Sequence[pa.Table]) -> list[memoryview]:
    """The lines of each table in one: Arrow keeps the texts of an array one after another. Not copied: they may be long."""
    flat = lines.combine_chunks()
    flat = pa.concat_arrays(flat.chunks) if isinstance(flat, pa.ChunkedArray) else flat
    bounds = pa.Array.from_buffers(pa.int64(), len(flat) + 1, [None, flat.buffers()[1]], offset=flat.offset)
    rows = np.cumsum([0, *(table.num_rows for table in tables)])
    ends = bounds.to_numpy()[rows].tolist()
    data = memoryview(flat.buffers()[2] or b"")
    return [data[first:last] for first, last in zip(ends, ends[1:])]
