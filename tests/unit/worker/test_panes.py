"""Tables of panes: what is filled, forgotten, and left for those who read side by side."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from engine.sql.panes import PaneText
from engine.worker import database, panes
from engine.worker.panes import PaneStep, PaneTable, cut, fill

GROUPS = "pane, v, count(*) AS n, min(first0) AS first0, min(born) AS born"
ROWS = "(SELECT *, last0 // 10 AS pane FROM k WHERE {}) GROUP BY pane, v"
TEXT = PaneText("p", "k", 10, f"CREATE OR REPLACE TABLE p AS SELECT {GROUPS} FROM {ROWS.format('FALSE')}",
                f"INSERT INTO p SELECT {GROUPS} FROM {ROWS.format('last0 >= $from * 10 AND last0 < $until * 10')}",
                "SELECT pane, min(first0), min(born) FROM p WHERE pane >= $from GROUP BY pane")
SOLUTIONS = 1_000_000


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    opened = database.connect()
    opened.execute("CREATE TABLE k AS SELECT range AS first0, range AS last0, range AS born, range % 3 AS v FROM range(1000)")
    yield opened
    database.close(opened)


def asked(low: int, high: int, since: int = -1) -> PaneStep:
    return PaneStep(TEXT, (((low, high),),), since)


def counted(connection: duckdb.DuckDBPyConnection, given: dict[str, int]) -> int:
    [(found,)] = connection.execute(f"SELECT coalesce(sum(n), 0) FROM p WHERE pane >= {given['p_0_from']} AND pane < {given['p_0_until']}"
                                    ).fetchall()
    return int(found)


def test_the_panes_that_a_window_shows_whole_are_read(connection: duckdb.DuckDBPyConnection) -> None:
    tables = dict[str, PaneTable]()
    assert fill(connection, tables, asked(205, 508), SOLUTIONS, 1) == {"p_0_from": 21, "p_0_until": 50}
    assert fill(connection, tables, asked(405, 800), SOLUTIONS, 2) == {"p_0_from": 41, "p_0_until": 80}
    assert counted(connection, {"p_0_from": 41, "p_0_until": 80}) == 390
    assert fill(connection, tables, asked(405, 800, 555), SOLUTIONS, 2) == {"p_0_from": 56, "p_0_until": 80}, "after a registration"


def test_what_others_read_stays(connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where panes turn out not to serve."""
    tables = dict[str, PaneTable]()
    first = fill(connection, tables, asked(0, 500), SOLUTIONS, 1)
    monkeypatch.setattr(panes, "FEWER", SOLUTIONS)
    second = fill(connection, tables, asked(0, 600), SOLUTIONS, 1)
    assert counted(connection, second) == 0
    assert counted(connection, first) == 500
    fill(connection, tables, asked(0, 700), SOLUTIONS, 2)
    assert connection.execute("SELECT count(*) FROM p").fetchall() == [(0,)], "with the next batch they go"


def test_nothing_is_read_where_a_solution_may_be_kept_twice(connection: duckdb.DuckDBPyConnection) -> None:
    tables = dict[str, PaneTable]()
    fill(connection, tables, asked(0, 500), SOLUTIONS, 1)
    assert counted(connection, fill(connection, tables, asked(0, 500), None, 1)) == 0


def test_panes_that_no_window_shows_are_not_remembered(connection: duckdb.DuckDBPyConnection) -> None:
    tables = dict[str, PaneTable]()
    for time in range(1_000, 100_000, 100):
        fill(connection, tables, asked(time - 320, time), SOLUTIONS, 1)
    assert len(tables["p"].least) <= 2 * panes.MOST_PANES


def test_late_solutions_are_no_more_rows(connection: duckdb.DuckDBPyConnection) -> None:
    tables = dict[str, PaneTable]()
    for _ in range(20):
        fill(connection, tables, asked(0, 1_000), SOLUTIONS, 1)
        cut(connection, tables, 505)
    assert tables["p"].rows == 150
    assert connection.execute("SELECT count(*) FROM p").fetchall() == [(150,)]


def test_tables_that_nobody_asks_for_go(connection: duckdb.DuckDBPyConnection) -> None:
    tables = {"other": PaneTable(TEXT)}
    fill(connection, tables, asked(0, 500), SOLUTIONS, panes.UNUSED + 1)
    assert tables.keys() == {"p"}
