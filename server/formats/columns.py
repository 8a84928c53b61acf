"""Bulk pushes in columns: N-Quads and timed N-Triples line by line in Arrow, a few times as fast as through Python objects.

Lines in the plain form that nearly all data has (canonical terms, ASCII IRIs, no escapes) are recognised by one regular expression
each and cut at their spaces; other lines go through pyoxigraph. Whatever is not simply fine gives None: the careful way (reading.py)
then finds the same items, or the error and its place. A test holds the two equal.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyoxigraph import RdfFormat, parse

from engine.processors import processors
from engine.runtime.rows import one_each
from engine.timeline import is_moment
from server.formats.bodies import check_lines
from server.formats.items import Reader, tokens
from server.formats.reading import has_odd_line_ends
from server.formats.media import NQUADS, TIMED
from server.formats.values import stamp_ms
from server.problems import Problem

SMALL = 64 * 1024
_PIECE_LINES = 1 << 14
# A subset of RFC 3987: whatever matches is a valid absolute IRI, and its token is canonical.
_PATH = r"A-Za-z0-9._~!$&'()*+,;=@"
_IRI = (rf"<[A-Za-z][A-Za-z0-9+.-]*:(?://[A-Za-z0-9._~!$&'()*+,;=-]*(?::[0-9]{{1,5}})?(?:[/?](?:[{_PATH}:/?-]|%[0-9A-Fa-f]{{2}})*)?"
        rf"|[{_PATH}-](?:[{_PATH}:/-]|%[0-9A-Fa-f]{{2}})*)(?:#(?:[{_PATH}:/?-]|%[0-9A-Fa-f]{{2}})*)?>")
_BLANK = "_:[A-Za-z0-9]+"
_DATATYPE = r"\^\^<http://www\.w3\.org/2001/XMLSchema#(?:integer|decimal|double|float|boolean|dateTime|date|time|long|int)>"
_LITERAL = rf'"[^"\\\x00-\x1f\x7f-\x{{9f}}\x{{ffff}}\x{{fffe}}]*"(?:@[a-z]{{2,3}}|{_DATATYPE})?'
_TRIPLE = rf"(?:{_IRI}|{_BLANK}) {_IRI} (?:{_IRI}|{_BLANK}|{_LITERAL})"
_PLAIN = rf"^{_TRIPLE} \.\r?\n?$"
_NAMED = rf"^{_TRIPLE} (?:{_IRI}|{_BLANK}) \.\r?\n?$"
_TIME = r"^-?[0-9]{1,15}$"


def read_columns(body: bytes, media: str, reader: Reader) -> pa.Table | None:
    """The items as a table for `engine.runtime.rows.prepare_table`, or None (see the module)."""
    if media not in (NQUADS, TIMED) or reader.skip or len(body) < SMALL:
        return None
    check_lines(body, media, reader.limits.push_triples)
    try:
        lines = _lines(body).cast(pa.large_string())
        blank = pc.less_equal(pc.binary_length(lines), 1)
        lines = lines.filter(pc.invert(blank)) if blank.true_count else lines
        if media == NQUADS:
            table = _quads(lines, reader)
        else:
            table = None if has_odd_line_ends(body) else _timed_pieces(lines, reader)
    except (pa.ArrowInvalid, SyntaxError, Problem):
        return None
    return table if table is not None and _within_caps(table, reader) else None


def _timed_pieces(lines: pa.Array, reader: Reader) -> pa.Table | None:
    """The items of many lines: pieces are read side by side (Arrow needs no lock of Python's), in memory that was used before."""
    if len(lines) <= _PIECE_LINES:
        return _timed(lines, reader, 0)
    with ThreadPoolExecutor(processors()) as pool:
        read = [pool.submit(_timed, lines.slice(first, _PIECE_LINES), reader, first) for first in range(0, len(lines), _PIECE_LINES)]
        found = [table for piece in read if (table := piece.result()) is not None]
    return pa.concat_tables(found) if len(found) == len(read) else None


def _timed(lines: pa.Array, reader: Reader, first: int) -> pa.Table | None:
    """The items of lines, the first of which has this number."""
    parts = pc.split_pattern(lines, "\t", max_splits=1)
    if len(parts.values) != 2 * len(lines) or pc.min(pc.list_value_length(parts)).as_py() != 2:
        return None
    flat = parts.flatten()
    texts, rest = flat.take(_every(flat, 0)), flat.take(_every(flat, 1))
    if pc.min(pc.match_substring_regex(texts, _TIME)).as_py() is not True:
        return None
    times = texts.cast(pa.int64())
    ends = pc.min_max(times).as_py()
    if not is_moment(ends["min"]) or not is_moment(ends["max"]):
        return None
    rows = split_lines(rest, RdfFormat.N_TRIPLES, named=False)
    if rows is None:
        return None
    t = times if reader.timestamp_ms is None else pa.repeat(reader.timestamp_ms, len(times))
    return _table(rows["line"].to_numpy() + first, t, rows, times)


def _quads(lines: pa.Array, reader: Reader) -> pa.Table | None:
    rows = split_lines(lines, RdfFormat.N_QUADS, named=True)
    if rows is None:
        return None
    loose = pc.is_null(rows["g"])
    stamps, rows = rows.filter(loose), rows.filter(pc.invert(loose))
    predicate = f"<{reader.predicate}>"
    if (not rows.num_rows or pc.any(pc.equal(rows["p"], predicate)).as_py() is True
            or pc.min(pc.equal(stamps["p"], predicate)).as_py() is False):
        return None
    encoded = rows["g"].combine_chunks().dictionary_encode()
    times = _stamps(encoded.dictionary, stamps, reader)
    if times is None:
        return None
    item = encoded.indices.to_numpy()
    return _table(item, times.take(pa.array(item)), rows)


def _stamps(graphs: pa.Array, stamps: pa.Table, reader: Reader) -> pa.Array | None:
    """The time stamp of each graph; None where one is missing, doubled, or no dateTime, or is about something else."""
    place = pc.index_in(stamps["s"], graphs)
    if place.null_count or len(pc.unique(place)) != len(place):
        return None
    if reader.timestamp_ms is not None:
        return pa.repeat(pa.scalar(reader.timestamp_ms, pa.int64()), len(graphs))
    found: list[int | None] = [None] * len(graphs)
    for graph, token in zip(place.to_pylist(), stamps["o"].to_pylist()):
        stamp = found[graph] = stamp_ms(token)
        if stamp is None or not is_moment(stamp):
            return None
    return None if reader.event_time and None in found else pa.array(found, pa.int64())


def split_lines(lines: pa.Array, format_: RdfFormat, named: bool) -> pa.Table | None:
    """The terms of each line with its number, column `line`; `g` is null for the default graph."""
    numbers = np.arange(len(lines))
    plain = pc.match_substring_regex(lines, _PLAIN)
    inside = pc.match_substring_regex(lines, _NAMED) if named else pa.repeat(False, len(lines))
    parts = [_cut(lines, numbers, plain, False), _cut(lines, numbers, inside, True)]
    rest = pc.invert(pc.or_(plain, inside))
    if rest.true_count:
        if rest.true_count > len(lines) // 4:
            return None
        odd = lines.filter(rest).to_pylist()
        found = list(tokens(parse("".join(line if line.endswith("\n") else line + "\n" for line in odd).encode(), format_)))
        if len(found) != len(odd):
            return None
        columns = [pa.array(column, pa.large_string()) for column in zip(*((*triple, graph) for graph, triple in found))]
        parts.append(_rows(numbers, rest, *columns))
    merged = pa.concat_tables([part for part in parts if part.num_rows]).combine_chunks()
    line = merged["line"].to_numpy()
    return merged if np.all(np.diff(line) > 0) else merged.take(pa.array(np.argsort(line, kind="stable")))


def _rows(numbers: np.typing.NDArray[np.int64], mask: pa.Array, *terms: pa.Array) -> pa.Table:
    return pa.table([numbers[mask.to_numpy(zero_copy_only=False)], *terms], ["line", *"spog"])


def _cut(lines: pa.Array, numbers: np.typing.NDArray[np.int64], mask: pa.Array, named: bool) -> pa.Table:
    """Cut lines that match at their spaces; only a literal holds further ones, and it stands in the middle."""
    lines = lines if mask.true_count == len(mask) else lines.filter(mask)
    head = pc.split_pattern(lines, " ", max_splits=2).flatten()
    s, p, rest = (head.take(_every(head, place, 3)) for place in range(3))
    tail = pc.split_pattern(rest, " ", max_splits=2 if named else 1, reverse=True).flatten()
    width = 3 if named else 2
    o = tail.take(_every(tail, 0, width))
    g = tail.take(_every(tail, 1, width)) if named else pa.nulls(len(o), pa.large_string())
    return _rows(numbers, mask, s, p, o, g)


def _table(item: np.typing.NDArray[np.int64], t: pa.Array, rows: pa.Table, scope: pa.Array | None = None) -> pa.Table:
    table = pa.table({"item": item.astype(np.int32), "t": t.cast(pa.int64()),
                      **{name: rows[name].cast(pa.string()) for name in "gspo"}, **({} if scope is None else {"scope": scope})})
    return table if np.all(np.diff(item) >= 0) else table.take(pa.array(np.argsort(item, kind="stable")))


def _within_caps(table: pa.Table, reader: Reader) -> bool:
    limits = reader.limits
    item = table["item"].to_numpy()
    size = np.sum([pc.binary_length(table[name]).to_numpy() for name in "spo"], axis=0) + 5
    triples, sizes = (np.ones(1), size) if one_each(item) else (np.bincount(item), np.bincount(item, size))
    return bool(triples.max(initial=0) <= limits.item_triples and sizes.max(initial=0) <= limits.item_bytes
                and (pc.max(pc.binary_length(table["o"])).as_py() or 0) <= limits.literal)


def _every(flat: pa.Array, start: int, width: int = 2) -> pa.Array:
    return pa.array(np.arange(start, len(flat), width))


def _lines(body: bytes) -> pa.Array:
    """The lines of `body`, line ends included, without copying it."""
    ends = np.flatnonzero(np.frombuffer(body, np.uint8) == 10) + 1
    offsets = np.concatenate([[0], ends, [len(body)] if not len(ends) or ends[-1] != len(body) else []]).astype(np.int64)
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(body)])
