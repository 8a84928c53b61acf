"""The result log: one transaction, ids, retention, definitions."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from engine.ipc import pack, pack_text
from engine.output import payload
from engine.runtime.resources import ResultEvent, ResultKind
from engine.runtime.results import Changes, ResultLog, Retention


def event(seq: int, query: str = "q", epoch: str = "q1c1", payload: bytes = b"{}", at: int | None = None) -> ResultEvent:
    return ResultEvent(query, epoch, seq, seq * 10, seq * 10 if at is None else at, "result", "rstream", payload, None, {"rows": seq})


def write(log: ResultLog, position: int, *events: ResultEvent, now: int = 0) -> None:
    log.commit(Changes(position, list(events)), now)
    log.retain(now)


@pytest.fixture(params=["file", "memory"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ResultLog]:
    found = ResultLog(tmp_path / "db" if request.param == "file" else None)
    yield found
    found.close()


def test_results_come_back_as_they_went_in(log: ResultLog) -> None:
    written = [event(seq) for seq in (1, 2, 3)]
    write(log, 7, *written)
    assert log.read("q", 0) == written and log.read("q", 1, 1) == written[1:2]
    assert log.latest("q") == written[2] and log.before("q", 3) == written[1]
    bounds = log.bounds("q")
    assert (log.position, bounds.epoch, bounds.oldest, bounds.newest) == (7, "q1c1", 1, 3)
    assert (log.seq_at("q", 20), log.seq_at("q", 0), log.seq_at("q", 99)) == (1, 0, 3)
    assert log.latest("other") is None and log.bounds("other").epoch is None


def test_large_results_are_compressed_and_counted_as_they_are(tmp_path: Path) -> None:
    log = ResultLog(tmp_path / "db", Retention(size=500_000))
    text = b'{"x":"a text that repeats"}' * 10_000
    write(log, 1, event(1, payload=text))
    [found] = log.read("q", 0)
    assert found.payload == text and len(found.logged) < 1_000 and found.size == len(text)
    assert (tmp_path / "db").stat().st_size + (tmp_path / "db-wal").stat().st_size < 300_000
    write(log, 2, event(2, payload=b'{"x":"another one!"}' * 15_000))
    assert [kept.seq for kept in log.read("q", 0)] == [2]
    log.close()


def test_small_results_and_those_of_an_earlier_version_are_read_as_they_are(log: ResultLog) -> None:
    small = [event(1, payload=b""), event(2, payload=b'{"boolean":true}')]
    write(log, 1, *small)
    large = event(3, payload=b'{"x":"a text that repeats"}' * 10_000)
    write(log, 2, large)
    with log._writing() as db:
        db.execute("update results set payload = ? where seq = 3", (large.payload,))
    assert log.read("q", 0) == [*small, large]


@pytest.mark.parametrize("kind, form", [("result", "SELECT"), ("graph", "CONSTRUCT"), ("boolean", "ASK")])
def test_a_relation_is_kept_as_a_table_and_shown_as_text(log: ResultLog, kind: ResultKind, form: str) -> None:
    table = pa.table({name: [f"<http://ex.org/{name}{n}>" for n in range(5_000)] for name in "spo"})
    write(log, 1, replace(event(1), kind=kind, logged_relation=pack(table)))
    [found] = log.read("q", 0)
    assert found.relation == found.full == payload(form, table) and len(found.logged_relation or b"") < 400_000


def test_relations_of_an_earlier_version_are_texts(log: ResultLog) -> None:
    text = b'{"x":"a text that repeats"}' * 10_000
    write(log, 1, replace(event(1), logged_relation=pack_text(text)), replace(event(2), logged_relation=b"<a> <b> <c> .\n"), event(3))
    assert [found.relation for found in log.read("q", 0)] == [text, b"<a> <b> <c> .\n", None]


def test_a_batch_is_written_whole_or_not_at_all(log: ResultLog) -> None:
    write(log, 1, event(1))
    with pytest.raises(sqlite3.IntegrityError):
        write(log, 2, event(2), event(1))
    assert log.position == 1 and len(log.read("q", 0)) == 1


def test_retention_by_count_age_and_size(tmp_path: Path) -> None:
    log = ResultLog(tmp_path / "count", Retention(count=3))
    for seq in range(1, 6):
        write(log, seq, event(seq))
    assert [e.seq for e in log.read("q", 0)] == [3, 4, 5]
    log.close()
    log = ResultLog(tmp_path / "age", Retention(count=16, age_ms=100))
    for seq in range(1, 4):
        write(log, seq, event(seq), now=seq * 90)
    assert [e.seq for e in log.read("q", 0)] == [2, 3]
    log.close()
    log = ResultLog(tmp_path / "size", Retention(size=100))
    for seq in range(1, 5):
        write(log, seq, event(seq, payload=b"x" * 40))
    assert [e.seq for e in log.read("q", 0)] == [3, 4]
    write(log, 9, event(9, payload=b"x" * 1000))
    assert [e.seq for e in log.read("q", 0)] == [9]
    log.close()


def test_definitions_states_and_relations(tmp_path: Path) -> None:
    log = ResultLog(tmp_path / "db")
    changes = Changes(5, descriptors=[("s", "http://ex.org/s", {"time": "event"})],
                      queries={"q": ({"name": "q", "epoch": "q1c1"}, {"seq": 1})}, relations={"q": pa.table({"a": ["<x>", None]})},
                      graphs={"http://ex.org/g": {"version": 3}}, streams={"http://ex.org/s": {"items": 2}}, meta={"numbers": 1})
    log.commit(changes, 0)
    log.close()
    log = ResultLog(tmp_path / "db")
    assert log.streams() == [("s", "http://ex.org/s", {"time": "event"})]
    (definition, state, relation), = log.queries()
    assert (definition["epoch"], state, relation.to_pydict() if relation else None) == ("q1c1", {"seq": 1}, {"a": ["<x>", None]})
    assert log.graphs() == {"http://ex.org/g": {"version": 3}} and log.meta("numbers") == 1
    log.commit(Changes(6, queries={"q": None}, graphs={"http://ex.org/g": None}), 0)
    assert log.queries() == [] and log.graphs() == {} and log.was_removed("q")
    log.commit(Changes(7, descriptors=[("s", "http://ex.org/s", None)]), 0)
    assert log.streams() == [] and log.stream_states() == {}
    log.close()


def test_the_relation_of_a_query_is_that_of_its_last_result(log: ResultLog) -> None:
    tables = [pa.table({"a": [f"<{n}>"]}) for n in range(4)]
    first = Changes(1, [replace(event(n), logged_relation=pack(tables[n])) for n in (1, 2)],
                    queries={"q": ({"name": "q", "epoch": "q1c1"}, {})}, relations={"q": None})
    log.commit(first, 0)
    assert log.queries()[0][2] == tables[2]
    log.commit(Changes(2, [replace(event(3), logged_relation=pack(tables[0]))], relations={"q": tables[3]}), 0)     # it was cut
    assert log.queries()[0][2] == tables[3]
    log.commit(Changes(3, queries={"q": ({"name": "q", "epoch": "q1c2"}, {})}, relations={"q": None}), 0)
    assert log.queries()[0][2] is None


def test_a_new_epoch_drops_the_results_of_the_old_one(log: ResultLog) -> None:
    write(log, 1, event(1))
    log.commit(Changes(2, [event(1, epoch="q1c2")], queries={"q": ({"name": "q", "epoch": "q1c2"}, {})}), 0)
    assert [e.id for e in log.read("q", 0)] == ["q1c2-1"] and not log.was_removed("q")


def test_letters_and_receipts(log: ResultLog) -> None:
    for position in range(1, 4):
        log.commit(Changes(position, letters=[("s", position, [{"reason": "late", "t": 5, "text": f"<a> {position}", "more": position}])],
                           receipts=[("s", {"key": str(position), "until": position * 10})]), 0)
    assert [(letter.position, letter.text) for letter in log.letters("s", 2)] == [(3, "<a> 3"), (2, "<a> 2")]
    assert [letter.more for letter in log.letters("s", 2)] == [3, 2]
    assert [stream for stream, _ in log.receipts(20)] == ["s", "s"]


def test_receipts_are_bounded_in_number_and_time() -> None:
    log = ResultLog(None, keys=2)
    for number, until in enumerate([50, 60, 70, 80]):
        changes = Changes(number)
        changes.receipts = [("s", {"key": str(number), "until": until}), ("other", {"key": "k", "until": 55})]
        log.commit(changes, 0)
    assert [json.loads(text)["key"] for _, text in log.receipts(0)] == ["k", "2", "3"]
    log.commit(Changes(9, receipts=[("s", {"key": "last", "until": 100})]), 75)
    assert [text for text in log._read("select key from receipts where stream = 's' order by until")] == [("3",), ("last",)]


def test_only_so_many_letters_are_kept(tmp_path: Path) -> None:
    log = ResultLog(tmp_path / "db", letters=2)
    for position in range(1, 6):
        log.commit(Changes(position, letters=[("s", position, [{"reason": "late", "t": None, "text": ""}])]), 0)
    assert [letter.position for letter in log.letters("s")] == [5, 4, 3]
    log.close()


def test_facts_of_made_streams_stay_while_a_window_may_see_them(log: ResultLog) -> None:
    def facts(position: int, *times: int) -> pa.Table:
        return pa.table({"position": [position] * len(times), "t": list(times)})
    log.commit(Changes(1, made=[("m", facts(1, 5, 7)), ("n", facts(1, 5))], streams={"m": {"kept_from": 7}}), 0)
    assert [table["t"].to_pylist() for table in log.made("m")] == [[5, 7]] and len(log.made("n")) == 1
    log.commit(Changes(2, made=[("m", facts(2, 9))], streams={"m": {"kept_from": 8}}), 0)
    assert [table["t"].to_pylist() for table in log.made("m")] == [[9]]
    log.commit(Changes(3, gone=["m", "n"], made=[("m", facts(3, 11))], streams={"m": {"kept_from": 0}}), 0)
    assert [table["t"].to_pylist() for table in log.made("m")] == [[11]]
    assert log.made("n") == [] and log.stream_states() == {"m": {"kept_from": 0}}


def test_a_file_of_an_earlier_version_has_no_counts_of_what_letters_left_out(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with sqlite3.connect(path) as old:
        old.execute("create table letters (stream text not null, position integer not null, number integer not null, reason text not null, "
                    "t integer, content text not null, primary key (stream, position, number)) without rowid")
        old.execute("insert into letters values ('s', 1, 0, 'late', 5, '<a>')")
    old.close()
    log = ResultLog(path)
    assert [(letter.text, letter.more) for letter in log.letters("s")] == [("<a>", 0)]
    log.close()


def test_results_are_read_in_pages_of_bytes(log: ResultLog) -> None:
    write(log, 1, *(event(number) for number in range(1, 6)))
    size = len(log.read("q", 0, 1)[0].payload)
    assert [e.seq for e in log.read("q", 0, 10, 2 * size)] == [1, 2]
    assert [e.seq for e in log.read("q", 2, 10, 1)] == [3]
    assert log.read("q", 5, 10, 1) == []
