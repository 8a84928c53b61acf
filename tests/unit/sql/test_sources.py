"""The relations at the bottom of a plan, run in DuckDB."""

from __future__ import annotations

import duckdb
import pytest

from engine.ir.statement import StreamSource, TimeWindow
from engine.plan.nodes import ValiditySource
from engine.sql.dialect import DUCKDB
from engine.sql.sources import Evaluation, source_texts, stream_table

S = "http://ex.org/s"


@pytest.mark.parametrize(("ticks", "asks_ends", "expected"), [
    ((6_000,), False, [(11_999, 11_999)]),
    ((6_000,), True, [(3_999, 15_998), (7_999, 19_998), (11_999, 23_998)]),
    ((6_000, 8_000), False, [(11_999, 15_998), (11_999, 15_999), (15_999, 15_999)])])
def test_facts_are_cut_to_the_evaluation_times(ticks: tuple[int, ...], asks_ends: bool, expected: list[tuple[int, int]]) -> None:
    """A triple that comes each second, in a window of 6 s that slides by 2 s."""
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE {stream_table(S)} AS SELECT t, t // 1000 + 1 AS position, 'a' AS s, 'b' AS p, 'c' AS o, "
                           "CAST(1 AS TINYINT) AS kind, CAST(NULL AS DOUBLE) AS number, CAST(NULL AS BIGINT) AS micros "
                           "FROM range(0, 8000, 1000) AS r(t)")
        streams, evaluation = [StreamSource(S, TimeWindow(6_000, 2_000))], Evaluation(ticks, 0, False, 0, asks_ends)
        texts = source_texts([ValiditySource(0)], streams, evaluation, DUCKDB)
        found = connection.execute(f"WITH {', '.join(texts)} SELECT DISTINCT lo, hi FROM v0 ORDER BY lo, hi").fetchall()
    assert found == expected
