"""The Python functions that plans call, the same for both executors: tokens in, tokens out, None for unbound or an error.

``tw_eval`` (an expression's value), ``tw_test`` (its effective boolean value), ``tw_key`` (ORDER BY key), ``tw_agg`` (an aggregate
over a group's tokens, '' for an error). They run engine/functions, as the reference evaluator does. What they are to do comes as text
of the plan: it is data (sql/codes.py), never code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from engine.functions.aggregates import aggregate
from engine.functions.compare import order_key
from engine.functions.context import Context, ExpressionError, row_key
from engine.functions.expressions import compile_term, compile_truth
from engine.sql.calls import is_volatile
from engine.sql.codes import read_aggregate, read_call
from engine.worker.guard import check_time

if TYPE_CHECKING:
    import duckdb

RowFunction = Callable[[int, Sequence[str | None]], Any]


_read_call = lru_cache(maxsize=4096)(read_call)
_read_aggregate = lru_cache(maxsize=4096)(read_aggregate)


@lru_cache(maxsize=4096)
def row_function(code: str, truth: bool) -> RowFunction:
    """The compiled expression of `code` as a function of (tick, tokens)."""
    call = _read_call(code)
    names, solution, identity, label_offset = call.names, call.solution, call.identity, call.label_offset
    compiled: Callable[..., Any] = compile_truth(call.expression) if truth else compile_term(call.expression)

    def apply(tick: int, tokens: Sequence[str | None]) -> Any:
        row = {name: token for name, token in zip(names, tokens) if token is not None}
        own = row_key({name: row[name] for name in solution if name in row}) if solution else ""
        try:
            return compiled(row, Context(tick + label_offset, identity, own))
        except ExpressionError:
            return None

    return apply


def over_rows(code: str, ticks: Iterable[int], rows: Iterable[Sequence[str | None]], truth: bool) -> list[Any]:
    """The function of `code` for each row, called once for equal rows; the tick counts only where the expression depends on it."""
    apply, timed = row_function(code, truth), is_volatile(_read_call(code).expression)
    known: dict[tuple[Any, ...], Any] = {}
    found = []
    for tick, tokens in zip(ticks, rows):
        key = (tick, *tokens) if timed else tuple(tokens)
        if key not in known:
            check_time()
            known[key] = apply(tick, tokens)
        found.append(known[key])
    return found


def aggregate_tokens(code: str, tokens: Sequence[str]) -> str | None:
    """The aggregate that `code` names over the tokens of one group."""
    check_time()
    call = _read_aggregate(code)
    return aggregate(call.function, [t or None for t in tokens], call.distinct, call.separator)


def register_duckdb(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the functions known to a DuckDB connection (vectorised: Arrow arrays in and out)."""
    import pyarrow as pa

    def called(truth: bool) -> Callable[[Any, Any, Any], Any]:
        def vector(codes: Any, ticks: Any, tokens: Any) -> Any:
            found = over_rows(codes[0].as_py(), ticks.to_pylist(), tokens.to_pylist(), truth) if len(codes) else []
            return pa.array(found, pa.bool_() if truth else pa.string())
        return vector

    def keys(tokens: Any) -> Any:
        encoded = tokens.dictionary_encode(null_encoding="encode")
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        return pa.array([order_key(t) for t in encoded.dictionary.to_pylist()], pa.string()).take(encoded.indices)

    def aggregates(codes: Any, groups: Any) -> Any:
        return pa.array([aggregate_tokens(c, g or ()) for c, g in zip(codes.to_pylist(), groups.to_pylist())], pa.string())

    make: Any = connection.create_function
    for name, function, arguments, result in (
            ("tw_eval", called(False), ["VARCHAR", "BIGINT", "VARCHAR[]"], "VARCHAR"),
            ("tw_test", called(True), ["VARCHAR", "BIGINT", "VARCHAR[]"], "BOOLEAN"),
            ("tw_key", keys, ["VARCHAR"], "VARCHAR"),
            ("tw_agg", aggregates, ["VARCHAR", "VARCHAR[]"], "VARCHAR")):
        make(name, function, arguments, result, type="arrow", null_handling="special")
