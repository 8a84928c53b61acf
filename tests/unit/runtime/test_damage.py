"""Files and texts that cannot be used at a start: set aside or failed by name, and everything else runs."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.ir.rules import RuleSet
from engine.ir.spans import Diagnostic, DiagnosticError
from engine.ir.statement import Statement
from engine.runtime.errors import EngineError
from engine.runtime.log import LogFolder
from engine.runtime.service import Engine
from grammar import parse
from grammar.rif.parse import parse_rules
from tests.unit.runtime.test_engine import EVENTS, NOW, P, S, TEXT, Running, item

OTHER = TEXT.replace("QUERY q", "QUERY other")
ON_GRAPH = ("REGISTER QUERY g AS SELECT ?s ?k FROM STREAM <http://ex.org/s> [RANGE 2s STEP 1s] FROM <http://ex.org/g> "
            "WHERE { ?s <http://ex.org/p> ?o . ?s <http://ex.org/kind> ?k }")
BY_RULES = ("REGISTER QUERY r AS SELECT ?s FROM STREAM <http://ex.org/s> [RANGE 2s STEP 1s] USING RULES mine "
            "WHERE { ?s <http://ex.org/hot> ?o }")
RULES = 'Document( Prefix(ex <http://ex.org/>) Group( Forall ?x ?y ( ?x[ex:hot -> ?y] :- ?x[ex:p -> ?y] ) ) )'


def log_files(folder: Path) -> list[Path]:
    return sorted((folder / "log").glob("*.parquet"))


def cut(path: Path, count: int = 100) -> None:
    """What a file system may leave of a file after a power cut."""
    path.write_bytes(path.read_bytes()[:-count])


def set_aside(folder: Path) -> list[str]:
    """The names of the files that were set aside."""
    return sorted(path.name for path in (folder / "set-aside").iterdir() if path.suffix != ".why")


def reasons(engine: Engine) -> dict[str, str]:
    """What is degraded, with its reason."""
    ready, body = engine.health()
    assert ready, body
    return {entry["name"]: entry["reason"] for entry in body["degraded"]}


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """The data folder of an engine that pushed three items to one query and was stopped."""
    with Running(tmp_path) as running:
        running.engine.put_stream("s", EVENTS)
        running.engine.register(TEXT)
        for number in range(3):
            running.engine.push("s", [item(NOW + number * 1_000 + 100, str(number))])
        running.ticks(2)
    return tmp_path


def unprocessed(folder: Path, count: int) -> list[Path]:
    """Files with items that were acknowledged and that the pump had no time for."""
    with Running(folder) as running:
        running.without_feed()
        before = set(log_files(folder))
        for number in range(3, 3 + count):
            running.engine.push("s", [item(NOW + number * 1_000 + 100, str(number))])
        found = sorted(set(log_files(folder)) - before)
    return found


def test_a_torn_newest_log_file_is_set_aside_and_the_log_goes_on(stopped: Path, caplog: pytest.LogCaptureFixture) -> None:
    newest = unprocessed(stopped, 3)[-1]
    cut(newest)
    first, last = int(newest.name[:16]), int(newest.name[17:33])
    with caplog.at_level(logging.ERROR), Running(stopped) as running:
        engine = running.engine
        assert any("lost" in record.message and newest.name in record.message for record in caplog.records)
        assert newest.name in " ".join(reasons(engine)) and set_aside(stopped) == [f"log-{newest.name}"]
        receipt = engine.push("s", [item(NOW + 9_100)])
        assert int(receipt.first_id or 0) > last >= first
        assert running.ticks(4)[:4] == [NOW + 1_000 * n for n in (1, 2, 3, 4)]
        engine.put_graph("http://ex.org/g", [])     # answered once the pump has come so far
        results = running.results()
    for _ in range(2):      # every replay agrees
        with Running(stopped) as again:
            assert again.results() == results and newest.name in " ".join(reasons(again.engine))


def test_a_torn_log_file_in_the_middle_leaves_the_others(stopped: Path) -> None:
    torn, *_ = unprocessed(stopped, 3)
    torn.write_bytes(b"nonsense")
    with Running(stopped) as running:
        assert running.ticks(4)[-1] == NOW + 5_000
        assert torn.name in " ".join(reasons(running.engine))


def test_a_missing_log_file_is_told(stopped: Path) -> None:
    missing, *_ = unprocessed(stopped, 3)
    missing.unlink()
    with Running(stopped) as running:
        assert running.ticks(4)[-1] == NOW + 5_000
        assert any("lost" in reason for reason in reasons(running.engine).values())


def test_a_torn_file_of_the_archive_is_set_aside(stopped: Path) -> None:
    with Running(stopped) as running:
        running.engine.push("s", [item(NOW + 3_100)])
        running.ticks(3)
        running.machine.folder.merge(running.machine.results.position, 1)
    for path in (stopped / "archive").glob("*.parquet"):
        cut(path)
    with Running(stopped) as again:
        again.engine.push("s", [item(NOW + 8_100)])
        again.ticks(4)
        assert "archive" in " ".join(reasons(again.engine))


def test_a_file_that_tears_while_the_engine_runs_is_set_aside(stopped: Path) -> None:
    with Running(stopped) as running:
        engine = running.engine
        running.backend.fed.clear()
        before = set(log_files(stopped))
        engine.push("s", [item(NOW + 3_100)])
        torn, = set(log_files(stopped)) - before
        torn.write_bytes(b"nonsense")
        engine.push("s", [item(NOW + 4_100)])
        running.backend.fed.set()
        assert running.ticks(4)[:4] == [NOW + 1_000 * n for n in (1, 2, 3, 4)]
        assert torn.name in " ".join(reasons(engine))


def test_merging_and_tidying_are_never_fatal(stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: object) -> None:
        raise OSError(28, "No space left on device")

    unprocessed(stopped, 2)
    monkeypatch.setattr(LogFolder, "merge", full)
    monkeypatch.setattr(LogFolder, "expire", full)
    with Running(stopped) as running:
        running.engine.push("s", [item(NOW + 9_100)])
        assert running.ticks(5)


def test_a_merge_that_fails_leaves_nothing_half_written(stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Running(stopped) as running:
        running.engine.push("s", [item(NOW + 3_100)])
        running.ticks(3)
        folder = running.machine.folder
        running.engine.push("s", [item(NOW + 3_200)])

        def full(*given: object) -> None:
            raise OSError(28, "No space left on device")
        with monkeypatch.context() as patched:
            patched.setattr("engine.runtime.log.os.fsync", full)
            with pytest.raises(OSError):
                folder.merge(1 << 40, 1)
        assert list((stopped / "staging").iterdir()) == [] and log_files(stopped)


def test_a_staging_file_that_cannot_be_removed_is_no_hindrance(stopped: Path) -> None:
    (stopped / "staging" / "log-0.parquet").mkdir()
    (stopped / "staging" / "log-0.parquet" / "x").write_text("x")
    with Running(stopped) as running:
        assert "log-0.parquet" in " ".join(reasons(running.engine))


@pytest.mark.parametrize("harm", [Path.unlink, cut, lambda path: path.write_bytes(b"")], ids=["missing", "torn", "empty"])
def test_a_lost_graph_fails_its_queries_until_it_is_put_again(stopped: Path, harm: Callable[[Path], Any]) -> None:
    with Running(stopped) as running:
        running.engine.put_graph("http://ex.org/g", [(S, "<http://ex.org/kind>", '"x"')])
        running.engine.register(ON_GRAPH)
        running.machine.folder.merge(running.machine.results.position, 1)
    harm(next((stopped / "graphs").glob("*.parquet")))
    with Running(stopped) as again:
        engine = again.engine
        assert engine.query("g").state == "failed" and "http://ex.org/g" in (engine.query("g").error or "")
        assert engine.query("q").state in ("running", "idle") and "q" not in reasons(engine)
        assert {"g", "http://ex.org/g"} <= set(reasons(engine))
        engine.put_graph("http://ex.org/g", [(S, "<http://ex.org/kind>", '"y"')])
        assert engine.query("g").state != "failed" and not {"g", "http://ex.org/g"} & set(reasons(engine))
        engine.push("s", [item(NOW + 10_100), item(NOW + 11_100)])
        assert again.ticks(1, "g")
    with Running(stopped) as once_more:
        assert once_more.engine.query("g").state != "failed"


def test_a_graph_file_is_on_disk_before_the_database_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    from engine.runtime import results

    fsync, commit = os.fsync, results.ResultLog.commit
    monkeypatch.setattr(os, "fsync", lambda descriptor: (events.append("fsync"), fsync(descriptor))[1])
    monkeypatch.setattr(results.ResultLog, "commit", lambda self, changes, now: (
        events.append("named" if changes.graphs else "commit"), commit(self, changes, now))[1])
    with Running(tmp_path) as running:
        events.clear()
        running.engine.put_graph("http://ex.org/g", [(S, P, '"x"')])
    before = events[:events.index("named")]
    assert before.count("fsync") >= 4      # the log's file and folder, the graph's file and folder


class Upgraded(Running):
    """An engine of a later version, which does not read the query q, and no rules."""

    def parse(self, text: str) -> Statement:
        if "QUERY q " in text:
            raise DiagnosticError(Diagnostic("query-syntax", "q is not understood any more"))
        return parse(text)

    def parse_rules(self, text: str, media: str, name: str) -> RuleSet:
        raise DiagnosticError(Diagnostic("rule-syntax", "rules are not understood any more"))


def test_a_text_that_no_longer_parses_fails_alone(stopped: Path) -> None:
    with Running(stopped) as running:
        running.engine.register(OTHER)
        running.engine.put_rules("mine", "text/x-rif-ps", RULES)
        running.engine.register(BY_RULES)
    with Upgraded(stopped) as again:
        engine = again.engine
        states = {info.name: info.state for info in engine.queries()}
        assert (states["q"], states["r"]) == ("failed", "failed") and states["other"] in ("running", "idle")
        assert "not understood" in (engine.query("q").error or "") and "not understood" in (engine.query("r").error or "")
        assert {"q", "r", "mine"} <= set(reasons(engine))
        engine.push("s", [item(NOW + 10_100), item(NOW + 11_100)])
        assert again.ticks(1, "other")
        engine.put_graph("http://ex.org/g", [(S, P, '"x"')])
        assert engine.query("q").text == TEXT
        engine.restart_query("q")
        assert engine.query("q").state == "failed"
    with Running(stopped) as back:
        assert back.engine.restart_query("q").state != "failed" and back.engine.restart_query("r").state != "failed"


def test_a_registration_that_waits_in_the_log_and_no_longer_parses_fails_alone(tmp_path: Path) -> None:
    with Running(tmp_path) as running:
        running.engine.put_stream("s", EVENTS)
        running.without_feed()
        for text in (TEXT, OTHER):
            running.machine.writer.call(lambda end, now: end.command(*registration(text, end.position)))
        running.machine.writer.call(lambda end, now: end.command(*rule_set()))
    with Upgraded(tmp_path) as again:
        assert {info.name: info.state for info in again.engine.queries()}["q"] == "failed"
        assert {"q", "mine"} <= set(reasons(again.engine))


def registration(text: str, position: int) -> tuple[Any, ...]:
    from engine.runtime.rows import Kind
    name = "q" if "QUERY q " in text else "other"
    return Kind.REGISTER, name, {"since": position, "text": text, "options": {}, "registered": NOW, "restarts": 0}


def rule_set() -> tuple[Any, ...]:
    from engine.runtime.rows import Kind
    return Kind.RULES, "mine", {"media": "text/x-rif-ps", "text": RULES}


def test_a_broken_database_is_told_clearly(stopped: Path) -> None:
    for name in ("thalweg.db", "thalweg.db-wal", "thalweg.db-shm"):
        (stopped / name).write_bytes(b"this is no database, however long it may be" * 1_000)
    running = Running(stopped)
    with pytest.raises(EngineError, match="thalweg.db"):
        running.engine.start()
    running.engine.stop()       # says nothing of its own


def test_a_start_that_fails_early_can_be_stopped(stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*given: object, **named: object) -> None:
        raise sqlite3.OperationalError("unable to open database file")
    monkeypatch.setattr("engine.runtime.machine.LogWriter", refused)
    running = Running(stopped)
    with pytest.raises(sqlite3.OperationalError):
        running.engine.start()
    running.engine.stop()
    monkeypatch.undo()
    with Running(stopped):
        pass        # the folder was not left locked


@pytest.fixture(autouse=True)
def rules_are_read() -> Iterator[None]:
    """The texts of this module are understood today."""
    assert parse(TEXT) and parse_rules(RULES, "text/x-rif-ps", "mine")
    yield


def test_a_broken_folder_of_checkpoints_is_set_aside(stopped: Path) -> None:
    (stopped / "checkpoints").write_bytes(b"no folder at all")
    with Running(stopped) as running:
        assert any("checkpoints" in name for name in reasons(running.engine)) and not (stopped / "checkpoints").exists()
