"""The relations at the bottom of a plan's text: evaluation times, window contents, merged graphs.

They are written anew for each evaluation (times change), the plan's body above them is not. A window's content at T is drawn from
the stream's facts by time (``open <= t < end``) or by rank (tuple windows), never by position alone.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from engine.ir.statement import NowWindow, StreamSource, TimeWindow, TupleWindow, Window
from engine.plan.derive import NOTHING, width
from engine.plan.nodes import (AtomsSource, Base, BoundsSource, ClosedSource, FreshSource, ItemsSource, KeptSource, Key, KnownSource,
                               MergedSource, RestSource, ShareSource, Source, StarSource, StaticSource, TimedSource, ValiditySource,
                               ViewSource, WindowSource, own_leaves)
from engine.ir.terms import Variable
from engine.sql.dialect import Dialect, fixed
from engine.timeline import MIN, ON_CHANGE_STEP, content, evaluation_point

MOST_NAMES = 4_096
TRIPLE_COLUMNS = "s, p, o, kind, number, micros"
AT_HOME = "at_home"     # a macro of each worker (engine/worker/bundles.py): whether what has this token is in its shard's share


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What varies between evaluations of one query: its ticks T and the position after which it sees events; `asks_ends` where answers
    say until when facts hold. With `named` numbers a text over kept relations has parameters for T and for the ends of its windows, and is
    the same each time (`numbers_of` gives them): to parse it takes up to a fifth of a small evaluation."""

    ticks: tuple[int, ...]
    since: int
    on_change: bool
    start_at_ms: int
    asks_ends: bool
    named: bool = False

    def number(self, name: str, value: int) -> str:
        """A number in a text."""
        return f"${name}" if self.named else str(value)


def numbers_of(streams: Sequence[StreamSource], evaluation: Evaluation) -> dict[str, int]:
    """The named numbers of an evaluation."""
    found = dict[str, int]()
    for number, tick in enumerate(evaluation.ticks):
        found[f"t{number}"] = tick
        for index, source in enumerate(streams):
            found |= {f"{end}{index}_{number}": time for end, time in zip(("low", "high"), bounds(source.window, tick, evaluation))}
    return found


@lru_cache(maxsize=MOST_NAMES)
def stream_table(iri: str, key: Key = "", by_object: frozenset[str] = frozenset()) -> str:
    """Name of the relation with a stream's facts, or what a shard has of them by a key; with `by_object`, what it is brought
    of these properties (ValiditySource). It is derived from the IRIs, and never contains them."""
    suffix = f"_{hashlib.sha256(' '.join(sorted(by_object)).encode()).hexdigest()[:16]}" if by_object else ""
    return f"s_{hashlib.sha256(iri.encode()).hexdigest()[:16]}{key and f'_{key}'}{suffix}"


@lru_cache(maxsize=MOST_NAMES)
def graph_table(iri: str, key: Key = "") -> str:
    """Name of the relation with a static graph's triples, or what a shard has of them."""
    return f"g_{hashlib.sha256(iri.encode()).hexdigest()[:16]}{key and f'_{key}'}"


def source_name(source: Source) -> str:
    """Name of a source's relation in the plan text."""
    match source:
        case WindowSource(index=index, key=key):
            return f"x{index}{key}"
        case ViewSource(index=index) | ItemsSource(index=index):
            return f"x{index}"
        case ValiditySource(index=index, key=key):
            return f"v{index}{key}"
        case StaticSource(iri=iri, key=key):
            return graph_table(iri, key)
        case RestSource(closed=closed, hidden=hidden):
            return f"{closed.name}_rest_{hidden.name}"
        case ShareSource(source=shared):
            return f"{source_name(shared)}_share"
        case AtomsSource(parts=(first, *_)):
            return f"{first.name}_atoms"
        case TimedSource(name=name):
            return name
        case BoundsSource(index=index):
            return f"b{index}"
        case KeptSource(name=name, windows=windows, typed=typed):
            digest = hashlib.sha256(" ".join((*map(str, windows), *sorted(v.name for v in typed))).encode()).hexdigest()[:8]
            return f"{name}_{digest}"
        case ClosedSource(name=name):
            return name
        case KnownSource(closed=closed, beside=beside):
            return f"{closed.name}_{'beside' if beside else 'known'}"
        case FreshSource(closed=closed):
            return f"{closed.name}_new"
        case StarSource(closed=closed, properties=properties):
            return f"{closed.name}_star_{hashlib.sha256(' '.join(properties).encode()).hexdigest()[:8]}"
    return "m_" + hashlib.sha256(" ".join(map(source_name, source.parts)).encode()).hexdigest()[:16]


def bounds(window: Window, tick: int, evaluation: Evaluation) -> tuple[int, int]:
    """The times ``open <= t < end`` that a window shows at T; tuple windows show the last of them (docs/architecture.md, "Windows")."""
    if not isinstance(window, TimeWindow):
        return MIN, tick
    step = ON_CHANGE_STEP if evaluation.on_change else window.step_ms
    return content(tick, window.range_ms, step, evaluation.start_at_ms, window.delay_ms)


def needed(streams: Sequence[StreamSource], evaluation: Evaluation) -> dict[str, tuple[int, int]]:
    """By stream IRI, the range of event times ``[low, high)`` that these ticks may see."""
    found: dict[str, tuple[int, int]] = {}
    for source in streams:
        for tick in (evaluation.ticks[0], evaluation.ticks[-1]):
            low, high = bounds(source.window, tick, evaluation)
            before = found.get(source.stream, (low, high))
            found[source.stream] = min(low, before[0]), max(high, before[1])
    return found


def source_texts(sources: Sequence[Source], streams: Sequence[StreamSource], evaluation: Evaluation, dialect: Dialect,
                 new: Mapping[str, str] | None = None) -> list[str]:
    """The common table expressions that a plan's body stands on. With `new` tables (stream IRI -> name) closures with intervals start
    from these facts, also from those that no T shows yet."""
    ticks = ", ".join(f"({evaluation.number(f't{number}', tick)})" for number, tick in enumerate(evaluation.ticks))
    texts = [f"ticks AS (SELECT CAST(tick AS BIGINT) AS tick FROM (VALUES {ticks}) AS t(tick))"]
    leaves = dict.fromkeys(leaf for source in sources for leaf in own_leaves(source))
    for window in sorted({_window(leaf) for leaf in leaves if isinstance(leaf, (WindowSource, ViewSource, ItemsSource))}, key=source_name):
        texts += _window_texts(window, streams[window.index], evaluation, dialect)
    for leaf in leaves:
        if isinstance(leaf, ValiditySource):
            texts.append(_validity_text(leaf, streams[leaf.index], evaluation, new))
        elif isinstance(leaf, TimedSource):
            texts.append(_timed_text(leaf))
    texts += [_bounds_text(source, streams[source.index].window, evaluation) for source in sources if isinstance(source, BoundsSource)]
    texts += [_kept_text(source, streams, evaluation) for source in sources if isinstance(source, KeptSource)]
    return texts + list(dict.fromkeys(text for source in sources for text in _combined_texts(source, evaluation)))


def _window(leaf: WindowSource | ViewSource | ItemsSource) -> WindowSource:
    """The window whose content a leaf looks at."""
    return leaf if isinstance(leaf, WindowSource) else WindowSource(leaf.index)


def _combined_texts(source: Source, evaluation: Evaluation) -> list[str]:
    """What stands on windows and graphs: merged sources, and what of closures can be seen."""
    match source:
        case MergedSource(parts=parts):
            below = [text for part in parts for text in _combined_texts(part, evaluation)]
            return [*below, _merged_text(source)]
        case ClosedSource():
            return [f"{source.name} AS ({_visible(source, evaluation)})"]
        case RestSource(closed=closed, hidden=hidden):
            known = f"SELECT 1 FROM {closure_table(hidden.name)} h WHERE h.s = c.s AND h.p = c.p AND h.o = c.o"
            return [f"{source_name(source)} AS ({_visible(closed, evaluation)} AND NOT EXISTS ({known}))"]
        case ShareSource(source=shared):
            share = f"SELECT * FROM {source_name(shared)} WHERE {AT_HOME}(s)"
            return [*_combined_texts(shared, evaluation), f"{source_name(source)} AS ({share})"]
        case AtomsSource():
            return [f"{source_name(source)} AS ({_atoms(source, evaluation)})"]
    return []


def _visible(source: ClosedSource, evaluation: Evaluation) -> str:
    """The triples of a closure, without what only its rules need."""
    times, rows = _rows_at_ticks(source, evaluation)
    graph = "c.g" if source.has_items else "CAST(NULL AS STRING) AS g"
    listed = ", ".join(f"c.{column}" for column in TRIPLE_COLUMNS.split(", "))
    distinct, sight = ("DISTINCT ", "(c.sight & 1) <> 0 AND ") if source.view_lengths else ("", "")
    return f"SELECT {distinct}{times}{graph}, {listed} FROM {rows}{sight}substr(c.s, 1, 1) <> '\"' AND substr(c.p, 1, 1) = '<'"


def _rows_at_ticks(source: ClosedSource, evaluation: Evaluation) -> tuple[str, str]:
    """The column of T, and FROM and WHERE up to one more condition. With intervals a fact may have several rows: one for each begin from
    which it holds longer."""
    table = closure_table(source.name)
    if not source.has_intervals:
        return "" if source.is_static else "c.tick, ", f"{table} c WHERE "
    if len(evaluation.ticks) == 1:
        [tick] = evaluation.ticks
        point = evaluation_point(tick)
        return f"CAST({tick} AS BIGINT) AS tick, ", f"{table} c WHERE c.lo <= {point} AND c.hi >= {point} AND "
    return "k.tick, ", f"{table} c JOIN ticks k ON c.lo <= 2 * k.tick - 1 AND c.hi >= 2 * k.tick - 1 WHERE "


def _atoms(source: AtomsSource, evaluation: Evaluation) -> str:
    widest, texts = max(width(part.rules) for part in source.parts), []
    for part in source.parts:
        times, rows = _rows_at_ticks(part, evaluation)
        if part.is_static:
            times, rows = "k.tick, ", f"{closure_table(part.name)} c CROSS JOIN ticks k WHERE "
        own = width(part.rules)
        further = [f"c.x{n + 3}" if n < own else f"{fixed(NOTHING.token)} AS x{n + 3}" for n in range(widest)]
        listed = [f"c.{column}" for column in TRIPLE_COLUMNS.split(", ")]
        texts.append(f"SELECT {times}{', '.join([*listed, *further])} FROM {rows}substr(c.p, 1, 1) = '_'")
    return " UNION ALL ".join(texts)


def closure_table(name: str) -> str:
    """Name of the relation with all that a closure holds, what is not a triple included."""
    return f"{name}_all"


def timed_table(source: TimedSource) -> str:
    """Name of the relation with what timed rules derive: rows ``s p o`` with their typed columns, ``first`` and ``last``."""
    return f"{source.name}_rows"


def _timed_text(source: TimedSource) -> str:
    return (f"{source.name} AS (SELECT DISTINCT k.tick, CAST(NULL AS STRING) AS g, CAST(NULL AS BIGINT) AS t, "
            f"{', '.join(f'f.{column}' for column in TRIPLE_COLUMNS.split(', '))} FROM {timed_table(source)} f "
            f"JOIN ticks k ON k.tick >= f.first AND k.tick <= f.last)")


def _kept_text(source: KeptSource, streams: Sequence[StreamSource], evaluation: Evaluation) -> str:
    """What of a kept relation is seen at each T."""
    listed = [name for variable in source.variables for name in token_columns(source, variable)]
    texts = [f"SELECT CAST({evaluation.number(f't{number}', tick)} AS BIGINT) AS tick, {', '.join(listed) or 'u'} "
             f"FROM {shown(source, streams, tick, evaluation)}" for number, tick in enumerate(evaluation.ticks)]
    return f"{source_name(source)} AS ({' UNION ALL '.join(texts)})"


def shown(source: KeptSource, streams: Sequence[StreamSource], tick: int, evaluation: Evaluation) -> str:
    """The solutions of a kept relation that the windows show at T: a call of the macro of its name that a worker makes (sql/kept.py)."""
    return f"{source.name}({', '.join([*window_ends(source.windows, streams, tick, evaluation), str(evaluation.since)])})"


def window_ends(windows: Sequence[int], streams: Sequence[StreamSource], tick: int, evaluation: Evaluation) -> list[str]:
    """The ends of some windows at T, as a text has them."""
    number = evaluation.ticks.index(tick)
    return [evaluation.number(f"{end}{index}_{number}", time) for index in windows
            for end, time in zip(("low", "high"), bounds(streams[index].window, tick, evaluation))]


def token_columns(source: KeptSource, variable: Variable) -> list[str]:
    """The columns of a variable of a kept relation that are read."""
    return [variable.name, *(f"{variable.name}{suffix}" for suffix in ("_k", "_n", "_m") if variable in source.typed)]


def _validity_text(leaf: ValiditySource, source: StreamSource, evaluation: Evaluation, new: Mapping[str, str] | None) -> str:
    """The facts that a window shows at some T (of `new` ones from the first T on), with the points between which it does. Where no others
    count these are cut at the first and the last T: so a triple that came more than once is one fact where there is one T."""
    assert isinstance(source.window, TimeWindow)
    step, start = (ON_CHANGE_STEP, 0) if evaluation.on_change else (source.window.step_ms, evaluation.start_at_ms)
    first, last = closes(source.window, step, start)
    table = stream_table(source.stream, leaf.key, leaf.by_object) if new is None else new[source.stream]
    points = f"2 * {first} - 1 AS lo, 2 * ({last} + {step}) - 2 AS hi"
    facts = f"SELECT {points}, {TRIPLE_COLUMNS} FROM {table} WHERE position > {evaluation.since}"
    earliest, latest = evaluation_point(evaluation.ticks[0]), evaluation_point(evaluation.ticks[-1])
    shown, held = f"lo <= hi AND hi >= {earliest}", "lo, hi"
    if new is None:
        shown += f" AND lo <= {latest}"
        if not evaluation.asks_ends:
            held = (f"CAST({earliest} AS BIGINT) AS lo, CAST({earliest} AS BIGINT) AS hi" if earliest == latest
                    else f"greatest(lo, {earliest}) AS lo, least(hi, {latest}) AS hi")
    return f"{source_name(leaf)} AS (SELECT {held}, {TRIPLE_COLUMNS} FROM ({facts}) AS f WHERE {shown})"


def _bounds_text(source: BoundsSource, window: Window, evaluation: Evaluation) -> str:
    """What WINDOW_OPEN and WINDOW_CLOSE say, in ms: of a tuple window only when it closes. A REPORT ON CHANGE evaluation at T is about
    the instant before T, which its window includes."""
    shift = 1 if evaluation.on_change else 0
    rows = []
    for tick in evaluation.ticks:
        low, high = bounds(window, tick, evaluation)
        opens = str(low - shift) if isinstance(window, TimeWindow) else "NULL"
        rows.append(f"({tick}, {opens}, {high - shift})")
    columns = ", ".join(f"CAST({column} AS BIGINT) AS {column}" for column in ("tick", "low", "high"))
    return f"{source_name(source)} AS (SELECT {columns} FROM (VALUES {', '.join(rows)}) AS t(tick, low, high))"


def _window_texts(leaf: WindowSource, source: StreamSource, evaluation: Evaluation, dialect: Dialect) -> list[str]:
    table, name = stream_table(source.stream, leaf.key), source_name(leaf)
    if isinstance(source.window, TupleWindow) and source.window.unit == "items":
        table = _with_item(table, dialect)
    rows = [(tick, *bounds(source.window, tick, evaluation)) for tick in evaluation.ticks]
    if len(rows) == 1:
        tick, low, high = rows[0]
        seen = (f"SELECT CAST({tick} AS BIGINT) AS tick, f.* FROM {table} f "
                f"WHERE f.t >= {low} AND f.t < {high} AND f.position > {evaluation.since}")
        texts = []
    else:
        listed = ", ".join(str(row) for row in rows)
        texts = [f"w_{name} AS (SELECT CAST(tick AS BIGINT) AS tick, CAST(low AS BIGINT) AS low, CAST(high AS BIGINT) AS high "
                 f"FROM (VALUES {listed}) AS t(tick, low, high))"]
        facts, test = f"{table} f", "f.t >= w.low AND f.t < w.high"
        if dialect.name == "sql" and isinstance(source.window, TimeWindow) and not evaluation.on_change:
            facts, test = _at_closes(table, source.window, evaluation, rows[0][2], rows[-1][2]), "f.end = w.high"
        seen = f"SELECT w.tick, f.* FROM {facts} JOIN w_{name} w ON {test} WHERE f.position > {evaluation.since}"
    ranked = _ranked(source.window)
    if ranked:
        rank, limit = ranked
        placed = f"SELECT v.*, dense_rank() OVER (PARTITION BY tick ORDER BY {rank}) AS place FROM ({seen}) AS v"
        seen = f"SELECT * FROM ({placed}) AS r WHERE place <= {limit}"
    return [*texts, f"{name} AS (SELECT tick, g, t, {TRIPLE_COLUMNS} FROM ({seen}) AS seen)"]


def _ranked(window: Window) -> tuple[str, int] | None:
    """Newest first: the order of a tuple window, and how many places it shows."""
    match window:
        case TupleWindow(count=count, unit="triples"):
            return "t DESC, s DESC, p DESC, o DESC", count
        case TupleWindow(count=count, unit="items"):
            return "t DESC, item DESC, coalesce(g, '') DESC", count
        case NowWindow():
            return "t DESC", 1
    return None


def closes(window: TimeWindow, step_ms: int, start_ms: int) -> tuple[str, str]:
    """SQL of the first and last close that see an event at `t` (timeline.event_validity); % rounds towards zero, hence twice."""
    def floor(ms: str) -> str:
        return f"({ms} - ((({ms} - {start_ms}) % {step_ms}) + {step_ms}) % {step_ms})"
    entered, left = (f"(t + CAST({shift} AS BIGINT))" for shift in (window.delay_ms, window.delay_ms + window.range_ms))
    return f"({floor(entered)} + {step_ms})", floor(left)


def _at_closes(table: str, window: TimeWindow, evaluation: Evaluation, first_end: int, last_end: int) -> str:
    """Spark joins ranges by nested loops: there a fact is repeated for each due close that sees it, and joined by equality."""
    first, last = closes(window, window.step_ms, evaluation.start_at_ms)
    first, last = f"greatest({first}, {first_end + window.delay_ms})", f"least({last}, {last_end + window.delay_ms})"
    times = f"CASE WHEN {first} <= {last} THEN sequence({first}, {last}, CAST({window.step_ms} AS BIGINT)) END"
    return f"(SELECT e.*, close - {window.delay_ms} AS end FROM (SELECT f.*, explode({times}) AS close FROM {table} f) AS e) AS f"


def _with_item(table: str, dialect: Dialect) -> str:
    """The facts with the place of their item among all by canonical text: equal items are one, items of one time stand in this order."""
    text = dialect.sorted_text("concat_ws(chr(1), s, p, o)")
    texts = f"SELECT position AS place_of, t AS time_of, {text} AS item_text FROM {table} GROUP BY position, t"
    items = f"SELECT place_of, time_of, dense_rank() OVER (ORDER BY item_text) AS item FROM ({texts}) AS texts"
    return f"(SELECT f.*, i.item FROM {table} f JOIN ({items}) AS i ON f.position = i.place_of AND f.t = i.time_of)"


def _merged_text(source: MergedSource) -> str:
    parts = []
    for part in source.parts:
        shown = part.source if isinstance(part, ShareSource) else part
        closed = shown.closed if isinstance(shown, RestSource) else shown
        if isinstance(part, (WindowSource, TimedSource)) or isinstance(closed, ClosedSource) and not closed.is_static:
            parts.append(f"SELECT tick, {TRIPLE_COLUMNS} FROM {source_name(part)}")
        else:
            parts.append(f"SELECT k.tick, {TRIPLE_COLUMNS} FROM {source_name(part)} f CROSS JOIN ticks k")
    nothing = ("SELECT tick, '' AS s, '' AS p, '' AS o, CAST(0 AS TINYINT) AS kind, CAST(0 AS DOUBLE) AS number, "
               "CAST(0 AS BIGINT) AS micros FROM ticks WHERE FALSE")
    return f"{source_name(source)} AS ({(' UNION ALL ' if source.is_disjoint else ' UNION ').join(parts or [nothing])})"


def tables(leaves: Sequence[Base], streams: Sequence[StreamSource]) -> set[str]:
    """The names of the relations with the facts of windows and graphs."""
    found = set[str]()
    for leaf in leaves:
        match leaf:
            case StaticSource(iri=iri, key=key):
                found.add(graph_table(iri, key))
            case WindowSource(index=index, key=key):
                found.add(stream_table(streams[index].stream, key))
            case ValiditySource(index=index, key=key, by_object=by_object):
                found.add(stream_table(streams[index].stream, key, by_object))
            case ViewSource(index=index) | ItemsSource(index=index):
                found.add(stream_table(streams[index].stream))
    return found
