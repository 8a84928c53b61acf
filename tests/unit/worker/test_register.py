"""Rows that statements read by a name, after interrupts at any moment."""

from __future__ import annotations

import random
import threading
import time

import duckdb
import pyarrow as pa
import pytest

from engine.worker import database
from engine.worker.database import register


def test_a_view_that_was_left_is_replaced() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TEMP VIEW given AS SELECT 1 AS a")
    register(connection, "given", pa.table({"a": [2]}))
    assert connection.execute("SELECT * FROM given").fetchall() == [(2,)]


def test_a_view_that_could_not_be_made_is_made_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    connection, rows, views = duckdb.connect(), pa.table({"a": [1]}), dict[str, database.Given]()

    def interrupted(*_: object) -> None:
        raise duckdb.InterruptException("now")

    with monkeypatch.context() as patched:
        patched.setattr(database, "register", interrupted)
        with pytest.raises(duckdb.InterruptException), database.registered(connection, "given", rows, views):
            pass
    for more in (1, 2):
        with database.registered(connection, "given", pa.table({"a": [more]}), views):
            assert connection.execute("SELECT * FROM given").fetchall() == [(more,)]
        assert connection.execute("SELECT count(*) FROM given").fetchall() == [(0,)]
    with database.registered(connection, "given", pa.table({"a": ["x"], "b": [2]}), views):
        assert connection.execute("SELECT * FROM given").fetchall() == [("x", 2)]


def test_after_interrupts_rows_are_read_again() -> None:
    connection, ended = duckdb.connect(config={"threads": 2}), threading.Event()

    def interrupt() -> None:
        chance = random.Random(1)
        while not ended.wait(chance.random() * 0.002):
            connection.interrupt()

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    try:
        for number in range(200):
            try:
                register(connection, "given", pa.table({"a": list(range(2_000))}))
                connection.execute("CREATE OR REPLACE TABLE kept AS SELECT * FROM given")
                connection.unregister("given")
            except duckdb.Error:    # an interrupt, or that something is not there because of one
                time.sleep(0)
    finally:
        ended.set()
        interrupting.join()
    register(connection, "given", pa.table({"a": [number]}))
    assert connection.execute("SELECT * FROM given").fetchall() == [(number,)]


def test_a_name_that_is_a_table_is_an_error() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TEMP TABLE given AS SELECT 1 AS a")
    with pytest.raises(duckdb.Error):
        register(connection, "given", pa.table({"a": [2]}))
