"""Closures of the tasks of a bundle."""

from __future__ import annotations

from engine.sql.closing import Closing
from engine.worker.bundles import Found, Task, run_bundled, run_bundles
from engine.worker.database import close, connect


def test_a_closure_is_made_once_and_goes_when_it_is_not_needed_any_more() -> None:
    connection = connect()
    connection.execute("CREATE SEQUENCE made")

    def task(*names: str) -> Task:
        closings = tuple(Closing(name, "SELECT nextval('made') AS number", (), "", "") for name in names)
        there = "(SELECT count(*) FROM duckdb_tables() WHERE table_name LIKE '%_all')"
        return Task(f"SELECT number, {there} AS there FROM {names[0]}_all", frozenset(), 1, closings)

    tasks = [task("b"), task("a", "b"), task("c"), task("b")]
    found = run_bundled(tasks, {}, 1, frozenset(), lambda bundles: run_bundles(bundles, connection))
    rows = [one.table.to_pylist() for one in found if isinstance(one, Found)]
    assert rows == [[{"number": 2, "there": 1}], [{"number": 1, "there": 2}], [{"number": 3, "there": 1}], [{"number": 2, "there": 1}]]
    assert not connection.execute("SELECT * FROM duckdb_tables()").fetchall()
    close(connection)
