"""What the engine tells about a live query: the query resource of docs/http-api.md, section 2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.ir.statement import AllWindow, NowWindow, Program, Select, Statement, StreamSource, TimeWindow, TupleWindow
from engine.runtime.append import Source
from engine.runtime.pump import Pump
from engine.runtime.query import LiveQuery
from engine.runtime.resources import QueryInfo, iso
from engine.runtime.streams import duration_text
from engine.timeline import MIN


def query_info(query: LiveQuery, pump: Pump, sources: Mapping[str, Source], base_url: str, measured: Mapping[str, Any]) -> QueryInfo:
    """The resource of a query; `sources` are the streams at the end of the log, `measured` figures that only live runs have."""
    statement, definition = query.statement, query.definition
    return QueryInfo(
        name=query.name, iri=f"{base_url}/queries/{query.name}", form=statement.form, dialect=statement.dialect, text=definition.text,
        output=statement.output, report="change" if query.ticker.timetable.on_change else statement.report, streams=query.streams,
        graphs=tuple(sorted(query.graphs)), rules=tuple(rule.name for rule in statement.rules),
        windows=tuple(window_json(source, sources, pump) for source in statement.streams), variables=variables(statement),
        state=_state(query, pump), epoch=definition.epoch, since_ms=definition.registered_ms, restarts=definition.restarts,
        error=query.error, progress=progress(query, pump, sources, measured), options=dict(definition.options),
        makes=_makes(query, pump))


def window_json(source: StreamSource, sources: Mapping[str, Source], pump: Pump) -> dict[str, Any]:
    """A window as the query resource shows it; one on the stream of a query names the query."""
    found: dict[str, Any] = {"stream": source.stream}
    if source.name is not None:
        found["name"] = source.name
    match source.window:
        case TimeWindow(range_ms=length, step_ms=step, delay_ms=delay):
            found |= {"range": duration_text(length), "step": duration_text(step)} | ({"delay": duration_text(delay)} if delay else {})
        case TupleWindow(count=count, unit=unit):
            found[unit] = count
        case NowWindow():
            found["now"] = True
        case AllWindow():
            found["all"] = True
    if source.stream in sources:
        found["time"] = "arrival" if sources[source.stream].arrival else "event"
    elif (maker := pump.queries.makers.get(source.stream)) is not None:
        found["query"] = maker.name
    return found


def _makes(query: LiveQuery, pump: Pump) -> dict[str, Any] | None:
    if query.makes is None:
        return None
    return {"stream": query.makes, "usedBy": sorted(reader.name for reader in pump.queries.readers(query.makes))}


def variables(statement: Statement) -> tuple[str, ...]:
    """The columns of a SELECT or a rule program; s, p, o of a graph; none of ASK."""
    if isinstance(statement.query, (Select, Program)):
        return tuple(variable.name for variable in statement.query.variables)
    return () if statement.form == "ASK" else ("s", "p", "o")


def _state(query: LiveQuery, pump: Pump) -> str:
    """``idle`` is a running query all of whose streams are idle."""
    states = [pump.kept.states.get(stream) for stream in query.streams]
    idle = query.state == "running" and all(state is not None and state.idle for state in states)
    return "idle" if idle else query.state


def progress(query: LiveQuery, pump: Pump, sources: Mapping[str, Source], measured: Mapping[str, Any]) -> dict[str, Any]:
    """How far a query is: the member ``progress`` of its resource. It has no lag where nothing has been evaluated, or all is idle."""
    states = [pump.kept.states[stream] for stream in query.streams if stream in pump.kept.states]
    watermark, pushed = query.reached, pump.queries.pushed(query)
    ends = [sources[stream].watermark for stream in pushed if stream in sources and not sources[stream].idle]
    return {"lastEventId": f"{query.definition.epoch}-{query.seq}" if query.seq else None,
            "watermark": iso(watermark), "watermarkLagMs": max(0, min(ends) - watermark) if ends and watermark > MIN else None,
            "stateRows": sum(pump.kept.contents[stream].rows for stream in query.streams if stream in pump.kept.contents),
            "lateItems": sum(state.late for state in states), "resultLatencyMs": None, "lastResultAt": None,
            "inputRowsPerSecond": 0.0, **measured}
