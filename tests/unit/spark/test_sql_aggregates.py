"""Aggregates and order in SQL are those of engine/functions, for groups of every kind of value, on DuckDB."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from itertools import product

import duckdb
import pyarrow as pa
import pytest

from engine.functions.aggregates import aggregate
from engine.functions.compare import order_key
from engine.functions.typed import ANY_KIND, Kinds, typed, typed_columns
from engine.ir.expressions import Aggregate
from engine.sql.dialect import DUCKDB, UNDECIDED
from engine.sql.functions.comparisons import order_keys, rough_key
from engine.worker.database import parsed
from tests.unit.spark.gathering import ALWAYS, POOLS, V, gathered
from tests.unit.spark.samples import TOKENS, lit

Tokens = Sequence[str | None]


def show(database: duckdb.DuckDBPyConnection, tokens: Tokens) -> None:
    """Make tokens the table ``rows``."""
    column = pa.array(tokens, pa.string())
    kinds, numbers, micros = typed_columns(column)
    database.register("rows", pa.table({"c": column, "c_k": kinds, "c_n": numbers, "c_m": micros, "here": pa.array([1] * len(tokens))}))


def by_sql(database: duckdb.DuckDBPyConnection, call: Aggregate, possible: Kinds = ANY_KIND) -> str | None:
    """The aggregate's answer over ``rows`` of possible kinds; "undecided" where the text ends the plan."""
    try:
        found = database.execute(parsed(database, text(call, possible))).fetchall()
    except duckdb.Error as error:
        assert UNDECIDED in str(error)
        return "undecided"
    return str(found[0][0]) if found[0][0] is not None else None


@cache
def text(call: Aggregate, possible: Kinds) -> str:
    made = gathered(DUCKDB, call, "a0", possible)
    listed = ", ".join(f"{sql} AS {name}" for name, sql in made.columns.items())
    return f"SELECT {made.token} FROM (SELECT {listed} FROM rows) AS g"


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("function", ["COUNT", "SAMPLE", "GROUP_CONCAT", "SUM", "AVG", "MIN", "MAX"])
def test_aggregates(database: duckdb.DuckDBPyConnection, pool: str, distinct: bool, function: str) -> None:
    chance = random.Random(f"{pool}{distinct}{function}")
    call = Aggregate(function, V, distinct, '; "')
    undecided = 0
    for _ in range(25):
        group = chance.choices(POOLS[pool], k=chance.choice((0, 1, 2, 3, 5, 12)))
        show(database, group)
        found = by_sql(database, call)
        undecided += found == "undecided"
        assert found in ("undecided", aggregate(function, group, distinct, '; "')), group
        own = frozenset(typed(token)[0] for token in group if token is not None)
        for possible in (own, own | frozenset(chance.sample(sorted(ANY_KIND), 2))):
            assert by_sql(database, call, possible) == found, (group, possible)
    if function in ALWAYS.get(pool, ()):
        assert not undecided or distinct and function in ("SUM", "AVG")


def test_a_missing_value_spoils_a_sum(database: duckdb.DuckDBPyConnection) -> None:
    show(database, [lit("1", "integer"), None])
    for function in ("SUM", "AVG", "MIN", "MAX", "GROUP_CONCAT"):
        assert by_sql(database, Aggregate(function, V)) is None
    assert by_sql(database, Aggregate("SAMPLE", V)) == lit("1", "integer")


def test_order(database: duckdb.DuckDBPyConnection) -> None:
    chance = random.Random(5)
    pool = [t for t in TOKENS if t is None or typed_columns(pa.array([t]))[0][0].as_py() in (1, 2, 3, 4, 6, 7, 8, 9, 10, 11)]
    everything = chance.sample(pool, len(pool)) + chance.sample(pool, 20)
    for direction, possible in product(("", " DESC"), (ANY_KIND, *map(frozenset, ((1, 3, 6), (6,), (2, 7, 10), (4, 11))))):
        tokens = [token for token in everything if token is None or typed(token)[0] in possible]
        column = pa.array(tokens, pa.string())
        kinds, numbers, micros = typed_columns(column)
        database.register("rows", pa.table({"c": column, "c_k": kinds, "c_n": numbers, "c_m": micros}))
        keys = [f"{sql} AS k{n}" for n, sql in enumerate(order_keys(DUCKDB, "c", possible))]
        rank = f"dense_rank() OVER (ORDER BY {', '.join(f'k{n}{direction}' for n in range(len(keys)))})"
        found = database.execute(f"SELECT c, {rank} FROM (SELECT c, {', '.join(keys)} FROM rows)").fetchall()
        ranks = {key: place for place, key in enumerate(sorted({order_key(t) for t in tokens}, reverse=bool(direction)), 1)}
        assert [(c, ranks[order_key(c)]) for c, _ in found] == found
        rough = rough_key(DUCKDB, "c", possible)
        assert (rough is None) == (not possible & {6, 7, 8, 9})
        if rough is not None:
            ranked = f"(SELECT {rough} AS r, {rank} AS place FROM (SELECT *, {', '.join(keys)} FROM rows) AS k)"
            against = ("<", ">") if not direction else ("<", "<")
            assert database.execute(f"SELECT count(*), max(a.r) FROM {ranked} a JOIN {ranked} b "
                                    f"ON a.place {against[0]} b.place AND a.r {against[1]} b.r").fetchall() == [(0, None)]
