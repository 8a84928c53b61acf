"""The relations under a plan that serves many queries of one shape: each evaluation of each has a number in the place of its time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.functions.typed import typed
from engine.ir.statement import StreamSource
from engine.ir.terms import Constant
from engine.plan.nodes import Given, KeptSource, Source
from engine.plan.shape import PARAMETERS, Row, Shape
from engine.sql.dialect import DUCKDB
from engine.sql.functions.values import NULL_STRING, double
from engine.sql.relation import COMPANIONS
from engine.sql.sources import Evaluation, bounds, source_name, token_columns


@dataclass(frozen=True, slots=True)
class Lot:
    """An evaluation at `tick` of one of the queries; `evaluation` is that of its batch."""

    tick: int
    evaluation: Evaluation
    streams: Sequence[StreamSource]
    shape: Shape


def lot_texts(sources: Sequence[Source], given: Sequence[Given], lots: Sequence[Lot]) -> list[str]:
    """The common table expressions under a plan over `given`; the lots are numbered by their places."""
    numbers = ", ".join(f"({number})" for number in range(len(lots)))
    texts = [f"ticks AS (SELECT CAST(tick AS BIGINT) AS tick FROM (VALUES {numbers}) AS t(tick))"]
    texts += [_given_text(name, columns, lots) for name, columns in _relations(given).items()]
    return texts + [_kept_text(source, lots) for source in sources if isinstance(source, KeptSource)]


def _relations(given: Sequence[Given]) -> dict[str, list[str]]:
    """The columns of each relation."""
    found: dict[str, dict[str, None]] = {}
    for one in given:
        found.setdefault(one.name, {}).update(dict.fromkeys(one.columns))
    return {name: list(columns) for name, columns in found.items()}


def _given_text(name: str, columns: Sequence[str], lots: Sequence[Lot]) -> str:
    """Constants, or inline data, with their typed companions."""
    rows = [f"({number}, {', '.join(map(_cell, row))})" for number, lot in enumerate(lots) for row in _rows(name, columns, lot.shape)]
    listed = ["CAST(tick AS BIGINT) AS tick"]
    for column in columns:
        listed.append(f"CAST({column} AS STRING) AS {column}")
        listed += [f"CAST({column}{suffix} AS {kind}) AS {column}{suffix}" for suffix, (_, kind) in COMPANIONS.items()]
    names = ["tick", *(f"{column}{suffix}" for column in columns for suffix in ("", *COMPANIONS))]
    return f"{name} AS (SELECT {', '.join(listed)} FROM (VALUES {', '.join(rows)}) AS t({', '.join(names)}))"


def _rows(name: str, columns: Sequence[str], shape: Shape) -> Sequence[Row]:
    if name == PARAMETERS:
        return [tuple(shape.constants[int(column[1:])] for column in columns)]
    return shape.tables[int(name.removeprefix(PARAMETERS))]


def _cell(constant: Constant | None) -> str:
    """A token with its kind, number and micros."""
    if constant is None:
        return f"{NULL_STRING}, NULL, NULL, NULL"
    kind, number, micros = typed(constant.token)
    listed = str(int(kind)), "NULL" if number is None else double(number), "NULL" if micros is None else str(micros)
    return f"{DUCKDB.quote(constant.token)}, {', '.join(listed)}"


def _kept_text(source: KeptSource, lots: Sequence[Lot]) -> str:
    """What of a kept relation is seen at each evaluation: what windows show that are alike is found once."""
    columns = [name for variable in source.variables for name in token_columns(source, variable)]
    views: dict[str, int] = {}
    seen = []
    for number, lot in enumerate(lots):
        shown = [bounds(lot.streams[index].window, lot.tick, lot.evaluation) for index in source.windows]
        where = [f"first{place} >= {low} AND last{place} < {high}" for place, (low, high) in enumerate(shown)]
        where += [f"born > {lot.evaluation.since}"] if lot.evaluation.since else []
        seen.append(f"({number}, {views.setdefault(' AND '.join(where), len(views))})")
    found = " UNION ALL ".join(f"SELECT DISTINCT {number} AS view, {', '.join(columns) or '1 AS u'} FROM {source.name} WHERE {where}"
                               for where, number in views.items())
    listed = ", ".join(f"v.{column}" for column in columns) or "v.u"
    return (f"{source_name(source)} AS (SELECT CAST(l.tick AS BIGINT) AS tick, {listed} FROM ({found}) AS v "
            f"JOIN (VALUES {', '.join(seen)}) AS l(tick, view) ON l.view = v.view)")
