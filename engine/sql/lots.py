"""The relations under a plan that serves many queries of one shape: each evaluation of each has a number in the place of its time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.functions.typed import typed
from engine.grouping import by_key
from engine.ir.statement import StreamSource
from engine.plan.nodes import Given, KeptSource, Source
from engine.plan.shape import PARAMETERS, Row, Shape
from engine.sql.dialect import DUCKDB
from engine.sql.kept import KeptView
from engine.sql.relation import COMPANIONS
from engine.sql.sources import Evaluation, shown, source_name, token_columns

_BETWEEN = chr(1)


@dataclass(frozen=True, slots=True)
class Lot:
    """An evaluation at `tick` of one of the queries; `evaluation` is that of its batch."""

    tick: int
    evaluation: Evaluation
    streams: Sequence[StreamSource]
    shape: Shape


Shown = Mapping[KeptSource, Sequence[str]]
"""What the lots see of each kept relation (sources.shown)."""


def shown_to(sources: Sequence[Source], lots: Sequence[Lot]) -> Shown:
    """What the lots see of the kept relations among some sources."""
    return {source: [shown(source, lot.streams, lot.tick, lot.evaluation) for lot in lots]
            for source in sources if isinstance(source, KeptSource)}


def lot_texts(given: Sequence[Given], lots: Sequence[Lot], see: Shown, views: Mapping[tuple[str, str], KeptView]) -> list[str]:
    """The common table expressions under a plan over `given`; the lots are numbered by their places. Some of what they `see` is in
    `views`, by relation and what is shown of it."""
    texts = [f"ticks AS ({_rows_of({'tick': ('BIGINT', range(len(lots)))})})"]
    columns = by_key((one.name, column) for one in given for column in one.columns)
    texts += [_given_text(name, list(dict.fromkeys(listed)), lots) for name, listed in columns.items()]
    return texts + [_kept_text(source, seen, views) for source, seen in see.items()]


def _given_text(name: str, columns: Sequence[str], lots: Sequence[Lot]) -> str:
    """Constants, or inline data, with their typed companions."""
    rows = [(number, row) for number, lot in enumerate(lots) for row in _given_rows(name, columns, lot.shape)]
    found: dict[str, tuple[str, Iterable[object]]] = {"tick": ("BIGINT", [number for number, _ in rows])}
    for place, column in enumerate(columns):
        tokens = [None if (cell := row[place]) is None else cell.token for _, row in rows]
        found[column] = "STRING", tokens
        values = [(None, None, None) if token is None else typed(token) for token in tokens]
        for part, (suffix, (_, kind)) in enumerate(COMPANIONS.items()):
            found[f"{column}{suffix}"] = kind, [value[part] for value in values]
    return f"{name} AS ({_rows_of(found)})"


def _given_rows(name: str, columns: Sequence[str], shape: Shape) -> Sequence[Row]:
    if name == PARAMETERS:
        return [tuple(shape.constants[int(column[1:])] for column in columns)]
    return shape.tables[int(name.removeprefix(PARAMETERS))]


def _rows_of(columns: Mapping[str, tuple[str, Iterable[object]]]) -> str:
    """Rows of columns, the first of them `tick`, each with its type, as one literal a column: to parse and bind a literal for each cell
    takes ten times as long. No token is empty, and none has the character between them."""
    cells: list[str] = []
    casts: list[str] = []
    for name, (kind, given) in columns.items():
        texts = ["" if value is None else str(int(value) if isinstance(value, bool) else value) for value in given]
        if casts and len(set(texts)) == 1:      # the same in every row
            casts.append(f"CAST({DUCKDB.quote(texts[0]) if texts[0] else 'NULL'} AS {kind}) AS {name}")
        else:
            cells.append(f"unnest(string_split({DUCKDB.quote(_BETWEEN.join(texts))}, chr({ord(_BETWEEN)}))) AS {name}")
            casts.append(f"CAST(nullif({name}, '') AS {kind}) AS {name}")
    return f"SELECT {', '.join(casts)} FROM (SELECT {', '.join(cells)})"


def _kept_text(source: KeptSource, see: Sequence[str], views: Mapping[tuple[str, str], KeptView]) -> str:
    """What of a kept relation is seen at each evaluation: windows that show the same are read once."""
    columns = [name for variable in source.variables for name in token_columns(source, variable)]
    listed, numbers = ", ".join(columns) or "u", dict[str, int]()
    seen = [numbers.setdefault(rows, len(numbers)) for rows in see]
    parts = []
    for rows, number in numbers.items():
        view = views.get((source.name, rows))
        parts.append(f"SELECT {number} AS view, {listed} FROM {rows if view is None else view.name}")
    cells = ", ".join(f"v.{column}" for column in columns) or "v.u"
    lots_of = _rows_of({"tick": ("BIGINT", range(len(seen))), "view": ("INTEGER", seen)})
    return (f"{source_name(source)} AS (SELECT l.tick, {cells} FROM ({' UNION ALL '.join(parts)}) AS v "
            f"JOIN ({lots_of}) AS l ON l.view = v.view)")
