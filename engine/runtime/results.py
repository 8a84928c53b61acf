"""The result log and all else that must outlive the process, in one SQLite file (WAL).

The pump writes all that a batch changes in one transaction. A power cut may undo the last ones
(``synchronous=NORMAL``): the input log then gives the same results with the same ids again."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate, zip_longest
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from engine.ipc import is_packed_table, pack, pack_text, unpack
from engine.runtime.database import Database
from engine.runtime.errors import EngineError
from engine.runtime.resources import Bounds, DeadLetter, ResultEvent, ResultKind

_RESULT = "query, epoch, seq, tick, at, kind, output, payload, relation, meta"
_RETAIN_MS = 60_000


@dataclass(frozen=True, slots=True)
class Retention:
    """How much of each query's results is kept, whichever limit is met first."""

    count: int = 100_000
    age_ms: int = 3_600_000
    size: int = 256 << 20


@dataclass(slots=True)
class _New:
    """What was logged for a query since its retention was last looked at."""

    since_ms: int
    count: int = 0
    size: int = 0


@dataclass(slots=True)
class Changes:
    """What one batch of the pump changes, written together. States are JSON values; a None removes. `queries` have a definition (None: it
    is as it was written last) and a state. `descriptors` are of streams that came or went, in order: name, IRI, descriptor. `made` are
    facts of streams that queries make, `gone` such streams that are no more. `positions`: by result, how far
    into the log its evaluation saw; the last results may have none."""

    position: int
    results: list[ResultEvent] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    queries: dict[str, tuple[dict[str, Any] | None, dict[str, Any]] | None] = field(default_factory=dict)
    relations: dict[str, pa.Table | None] = field(default_factory=dict)
    graphs: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    rules: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    descriptors: list[tuple[str, str, dict[str, Any] | None]] = field(default_factory=list)
    streams: dict[str, dict[str, Any]] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    made: list[tuple[str, pa.Table]] = field(default_factory=list)
    letters: list[tuple[str, int, list[dict[str, Any]]]] = field(default_factory=list)
    receipts: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    meta: dict[str, Any] = field(default_factory=dict)

    def seen(self, results: int, position: int) -> None:
        """The records up to a position have been seen, and there are so many results."""
        self.positions += [position] * (results - len(self.positions))


class ResultLog(Database):
    def __init__(self, path: Path | None, retention: Retention = Retention(), letters: int = 1_000, keys: int = 100_000) -> None:
        super().__init__(path)
        self._retention = retention
        self._letters, self._keys = letters, keys
        self._new: dict[str, _New] = {}

    # --- what the pump writes

    def commit(self, changes: Changes, now_ms: int) -> None:
        """Write the changes of a batch and the position it reached, all or nothing."""
        with self._writing() as db:
            for iri in changes.gone:
                db.execute("delete from stream_states where iri = ?", (iri,))
                db.execute("delete from made where stream = ?", (iri,))
            self._write_descriptors(db, changes)
            self._write_definitions(db, changes)
            self._write_receipts(db, changes, now_ms)
            self._write_made(db, changes)
            db.executemany(f"insert into results ({_RESULT}, bytes, logged, position) values (?,?,?,?,?,?,?,?,?,?,?,?,?)",
                           [(r.query, r.epoch, r.seq, r.tick, r.at_ms, r.kind, r.output, pack_text(r.logged), r.logged_relation,
                             json.dumps(r.meta), r.size, now_ms, position)
                            for r, position in zip_longest(changes.results, changes.positions)
                            if _stays(r, changes)])
            meta = {**changes.meta, "position": changes.position}
            db.executemany("insert or replace into meta values (?,?)", [(name, json.dumps(value)) for name, value in meta.items()])
        for result in changes.results:
            new = self._new.setdefault(result.query, _New(now_ms))
            new.count += 1
            new.size += result.size

    def retain(self, now_ms: int) -> None:
        """Delete what is beyond the limits, of queries with many new results or not looked at for long: a look costs more the more is kept.
        Apart from `commit`, so that no result waits for it."""
        kept = self._retention
        due = [query for query, new in self._new.items()
               if new.count * 16 >= min(kept.count, 4096) or new.size * 16 >= kept.size or now_ms - new.since_ms >= _RETAIN_MS]
        if not due:
            return
        with suppress(EngineError):     # on a full disk they stay a while longer
            with self._writing() as db:
                for query in due:
                    self._retain(db, query, now_ms)
            for query in due:
                del self._new[query]

    @staticmethod
    def _write_descriptors(db: sqlite3.Connection, changes: Changes) -> None:
        for name, iri, descriptor in changes.descriptors:
            if descriptor is not None:
                db.execute("insert or replace into streams values (?,?,?)", (name, iri, json.dumps(descriptor)))
                continue
            db.execute("delete from streams where name = ?", (name,))
            for table, column in (("stream_states", "iri"), ("letters", "stream"), ("receipts", "stream")):
                db.execute(f"delete from {table} where {column} = ?", (iri,))

    def _write_definitions(self, db: sqlite3.Connection, changes: Changes) -> None:
        for name, query in changes.queries.items():
            if query is None:
                db.execute("delete from queries where name = ?", (name,))
                db.execute("delete from results where query = ?", (name,))
                db.execute("insert or replace into removed values (?,?)", (name, changes.position))
            elif query[0] is not None:
                db.execute("delete from removed where name = ?", (name,))
                db.execute("insert into queries (name, definition, state) values (?,?,?) on conflict (name) do update "
                           "set definition = excluded.definition, state = excluded.state",
                           (name, json.dumps(query[0]), json.dumps(query[1])))
                db.execute("delete from results where query = ? and epoch != ?", (name, query[0]["epoch"]))
        db.executemany("update queries set state = ? where name = ?",
                       [(json.dumps(query[1]), name) for name, query in changes.queries.items() if query is not None and query[0] is None])
        for name, relation in changes.relations.items():
            db.execute("update queries set relation = ? where name = ?", (None if relation is None else pack(relation), name))
        for table, key, definitions in (("graphs", "iri", changes.graphs), ("rules", "name", changes.rules)):
            db.executemany(f"delete from {table} where {key} = ?", [(name,) for name in definitions])
            db.executemany(f"insert into {table} values (?,?)",
                           [(name, json.dumps(definition)) for name, definition in definitions.items() if definition is not None])
        db.executemany("insert or replace into stream_states values (?,?)",
                       [(iri, json.dumps(state)) for iri, state in changes.streams.items()])
        for stream, position, letters in changes.letters:
            db.executemany("insert or replace into letters (stream, position, number, reason, t, content, more) values (?,?,?,?,?,?,?)",
                           [(stream, position, number, letter["reason"], letter["t"], letter["text"], letter.get("more", 0))
                            for number, letter in enumerate(letters)])
            db.execute("delete from letters where stream = ? and position < (select position from letters where stream = ? "
                       "order by position desc limit 1 offset ?)", (stream, stream, self._letters))

    def _write_receipts(self, db: sqlite3.Connection, changes: Changes, now_ms: int) -> None:
        """Keep the answers to pushes with a key; of those whose time is over, or that are too many, nothing."""
        db.executemany("insert or replace into receipts values (?,?,?,?)",
                       [(stream, payload["key"], payload["until"], json.dumps(payload)) for stream, payload in changes.receipts])
        for stream in {stream for stream, _ in changes.receipts}:
            found = db.execute("select until from receipts where stream = ? order by until desc limit 1 offset ?", (stream, self._keys))
            db.execute("delete from receipts where stream = ? and until <= ?", (stream, max([now_ms - 1, *(row[0] for row in found)])))

    @staticmethod
    def _write_made(db: sqlite3.Connection, changes: Changes) -> None:
        """Keep the new facts of streams that queries make, and of the older ones what a window may still see."""
        db.executemany("insert into made values (?,?,?,?)", [(iri, facts["position"][0].as_py(), pc.max(facts["t"]).as_py(), pack(facts))
                                                             for iri, facts in changes.made])
        db.executemany("delete from made where stream = ? and newest < ?",
                       [(iri, state["kept_from"]) for iri, state in changes.streams.items() if "kept_from" in state])

    def _retain(self, db: sqlite3.Connection, query: str, now_ms: int) -> None:
        """Delete a query's oldest results beyond the limits; the newest one always stays."""
        kept = self._retention
        newest, count, size = db.execute("select max(id), count(*), sum(bytes) from results where query = ?", (query,)).fetchone()
        if newest is None:
            return
        db.execute("delete from results where query = ? and logged < ? and id < ?", (query, now_ms - kept.age_ms, newest))
        if count > kept.count:
            db.execute("delete from results where query = ? and id <= (select id from results where query = ? order by id desc "
                       "limit 1 offset ?)", (query, query, kept.count))
        if size > kept.size:
            total, keep = 0, newest
            for row, bytes_ in db.execute("select id, bytes from results where query = ? order by id desc", (query,)):
                total += bytes_
                if total > kept.size:
                    break
                keep = row
            db.execute("delete from results where query = ? and id < ?", (query, keep))

    # --- definitions

    def streams(self) -> list[tuple[str, str, dict[str, Any]]]:
        """(name, IRI, descriptor) of each stream."""
        return [(name, iri, json.loads(text)) for name, iri, text in self._read("select name, iri, descriptor from streams order by name")]

    def stream_states(self) -> dict[str, dict[str, Any]]:
        """What the pump knew of each stream at `position`."""
        return {iri: json.loads(text) for iri, text in self._read("select iri, state from stream_states")}

    def made(self, iri: str) -> list[pa.Table]:
        """The kept facts of a stream that a query makes, in order."""
        return [unpack(data) for data, in self._read("select facts from made where stream = ? order by position", (iri,))]

    def queries(self) -> list[tuple[dict[str, Any], dict[str, Any], pa.Table | None]]:
        """(definition, state, last relation) of each query: where nothing else is kept, the relation that its last result has."""
        logged = ("select relation from results where query = name and epoch = json_extract(definition, '$.epoch') "
                  "order by id desc limit 1")
        rows = self._read(f"select definition, state, coalesce(relation, ({logged})) from queries order by name")
        return [(json.loads(definition), json.loads(state), None if relation is None or not is_packed_table(relation) else unpack(relation))
                for definition, state, relation in rows]

    def relation(self, query: str) -> tuple[str, int, pa.Table | None] | None:
        """The epoch of a query, its last seq, and the relation that it keeps from one evaluation to the next."""
        rows = self._read("select json_extract(definition, '$.epoch'), json_extract(state, '$.seq'), relation from queries where name = ?",
                          (query,))
        return next(((epoch, seq, None if kept is None else unpack(kept)) for epoch, seq, kept in rows), None)

    def was_removed(self, query: str) -> bool:
        """Whether there was a query of this name, and there is none now."""
        return bool(list(self._read("select 1 from removed where name = ?", (query,))))

    def graphs(self) -> dict[str, dict[str, Any]]:
        return {iri: json.loads(text) for iri, text in self._read("select iri, definition from graphs order by iri")}

    def rules(self) -> dict[str, dict[str, Any]]:
        return {name: json.loads(text) for name, text in self._read("select name, definition from rules order by name")}

    def receipts(self, now_ms: int) -> list[tuple[str, str]]:
        """(stream, JSON) of the answers to pushes that are still kept; the others are deleted."""
        with suppress(EngineError), self._writing() as db:     # on a full disk they stay a while longer
            db.execute("delete from receipts where until < ?", (now_ms,))
        return list(self._read("select stream, receipt from receipts where until >= ? order by until", (now_ms,)))

    def letters(self, stream: str, limit: int = 100) -> list[DeadLetter]:
        """The latest dead letters of a stream, newest first."""
        return [DeadLetter(*row) for row in self._read("select stream, position, reason, t, content, more from letters where stream = ? "
                                                       "order by position desc, number desc limit ?", (stream, limit))]

    # --- results

    def latest(self, query: str, output: str | None = None) -> ResultEvent | None:
        """The last logged result of a query's current epoch, or the last one with that output operator."""
        where = "where query = ? and output = coalesce(?, output) order by id desc limit 1"
        return next(iter(self._results(where, (query, output))), None)

    def read(self, query: str, after_seq: int, limit: int = 1_000, size: int | None = None) -> list[ResultEvent]:
        """Results with a greater seq than `after_seq`, in order, of `size` bytes together (or one that is larger)."""
        if size is not None:
            sizes = self._read("select bytes from results where query = ? and seq > ? order by seq limit ?", (query, after_seq, limit))
            within = sum(total <= size for total in accumulate(bytes_ for bytes_, in sizes))
            limit = max(1, within)
        return self._results("where query = ? and seq > ? order by seq limit ?", (query, after_seq, limit))

    def before(self, query: str, seq: int) -> ResultEvent | None:
        """The result just before `seq`, None where it is not kept."""
        where = "where query = ? and seq < ? order by seq desc limit 1"
        return next(iter(self._results(where, (query, seq))), None)

    def positions(self, query: str, first_seq: int, last_seq: int) -> dict[int, int | None]:
        """By seq: the position in the input log up to which the evaluation of a result saw; None where that is not known."""
        return dict(self._read("select seq, position from results where query = ? and seq between ? and ?", (query, first_seq, last_seq)))

    def items(self, query: str, after_seq: int, limit: int) -> list[ResultEvent]:
        """The last `limit` results with a seq greater than `after_seq` that have a triple, in order."""
        where = "where query = ? and seq > ? and length(payload) > 0 order by seq desc limit ?"
        return self._results(where, (query, after_seq, limit))[::-1]

    def bounds(self, query: str) -> Bounds:
        """The oldest and the newest seq that are kept, 0 for none."""
        rows = list(self._read("select epoch, min(seq), max(seq) from results where query = ? group by epoch", (query,)))
        return Bounds(*rows[-1]) if rows else Bounds(None, 0, 0)

    def seq_at(self, query: str, at_ms: int) -> int:
        """The greatest seq of a result before the time `at_ms`; what to read after for `since=<time>`."""
        rows = list(self._read("select max(seq) from results where query = ? and at < ?", (query, at_ms)))
        return rows[0][0] or max(0, self.bounds(query).oldest - 1)

    def _results(self, where: str, values: Sequence[Any]) -> list[ResultEvent]:
        return [ResultEvent(query, epoch, seq, tick, at, cast(ResultKind, kind), output, payload, relation, json.loads(meta))
                for query, epoch, seq, tick, at, kind, output, payload, relation, meta
                in self._read(f"select {_RESULT} from results {where}", values)]


def _stays(result: ResultEvent, changes: Changes) -> bool:
    """Whether a result's query is still there, in the same generation, at the end of its batch."""
    query = changes.queries.get(result.query, (None, {}))
    return query is not None and (query[0] is None or bool(query[0]["epoch"] == result.epoch))
