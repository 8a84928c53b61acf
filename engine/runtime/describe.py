"""What the engine tells about a query or stream: the resources of docs/http-api.md, sections 1 and 2."""

from collections.abc import Mapping
from typing import Any

from engine.ir.statement import AllWindow, NowWindow, Statement, StreamSource, TimedProgram, TimeWindow, TupleWindow
from engine.plan.memory import SHOWN, Memory, memory
from engine.plan.timed import StagedPlan
from engine.rewrite.temporal import normal_form
from engine.runtime.kept import StreamState
from engine.runtime.registered import Registered
from engine.runtime.resources import QueryInfo, StreamInfo, iso
from engine.runtime.streams import PROV_TIME, duration_text
from engine.runtime.ticks import query_watermark
from engine.runtime.topics import Reading
from engine.runtime.view import Seen, View
from engine.timeline import MIN


def query_info(query: Registered, view: View, base_url: str, now_ms: int) -> QueryInfo:
    statement, seen = query.statement, view.seen(query)
    definition = query.definition if seen is None else seen.definition
    return QueryInfo(
        name=query.name, iri=f"{base_url}/queries/{query.name}", form=statement.form, dialect=statement.dialect, text=definition.text,
        output=statement.output, report="change" if query.timetable.on_change else statement.report, streams=query.streams,
        graphs=tuple(sorted(query.graphs)), rules=tuple(rule.name for rule in statement.rules),
        windows=tuple(window_json(source, view) for source in statement.streams), variables=statement.columns,
        state=view.state(query), epoch=definition.epoch, since_ms=definition.registered_ms, restarts=definition.restarts,
        error=view.error(query), progress=progress(query, view, now_ms),
        options=dict(definition.options), media=definition.media,
        makes=None if query.makes is None else {"stream": query.makes, "usedBy": _users(query.makes, view)})


def held_facts(statement: Statement, seen: Seen | None) -> dict[str, Any]:
    """Of a program with a time of its own the facts that it holds, and the bound that its text has for them (engine/plan/memory.py), for
    `SHOWN` constants and steps of a second; of a query the same of each stage of the timed rules that it uses, and nothing of others."""
    query = statement.query
    held = seen.program.held if seen is not None and seen.program is not None else 0
    if isinstance(query, TimedProgram):
        return {"factsHeld": held, **_needs(memory(normal_form(query.rules).rules, query.rules.granularity_ms))}
    if not statement.timed_rules:
        return {}
    plan: StagedPlan | None = getattr(seen.compiled, "staged", None) if seen is not None else None
    stages = () if plan is None else plan.stages
    by_stage = seen.program.stages if seen is not None and seen.program is not None else ()
    return {"factsHeld": held, "stages": [
        {"timeline": str(stage.timeline), "after": [place + 1 for place in stage.reads],
         "factsHeld": by_stage[number] if number < len(by_stage) else 0, **_needs(stage.memory)} for number, stage in enumerate(stages)]}


def _needs(found: Memory) -> dict[str, Any]:
    bound = found.bound(SHOWN, 1_000)
    shown = None if bound is None else {"facts": bound.facts, "log10": round(bound.log10, 1), "constants": SHOWN}
    return {"bound": shown, "streamIndependent": found.stream_independent, "windowMs": found.window_ms, "history": list(found.history)}


def window_json(source: StreamSource, view: View) -> dict[str, Any]:
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
    if source.stream in view.sources:
        found["time"] = "arrival" if view.sources[source.stream].arrival else "event"
    elif (maker := view.catalogue.queries.makers.get(source.stream)) is not None:
        found["query"] = maker.name
    return found


def progress(query: Registered, view: View, now_ms: int) -> dict[str, Any]:
    """How far a query is: the member ``progress`` of its resource. It has no lag where nothing has been evaluated, or it is idle."""
    seen, snapshot = view.seen(query), view.snapshot
    states = [snapshot.streams[stream] for stream in query.streams if stream in snapshot.streams]
    watermark, origins = view.reached(query), view.origins(query)
    has_lag = watermark > MIN and origins and view.state(query) != "idle"
    logged = query_watermark([(source.watermark, source.idle) for source in origins])
    return {"lastEventId": f"{query.epoch}-{seen.seq}" if seen is not None and seen.seq else None,
            "watermark": iso(watermark), "watermarkLagMs": max(0, logged - watermark) if has_lag else None,
            "stateRows": sum(chunk.table.num_rows for stream in query.streams for chunk in snapshot.chunks.get(stream, ())),
            "lateItems": sum(state.late for state in states), "waits": waits(query, view),
            "slow": seen is not None and seen.beside, **snapshot.measured.query(query.name, query.streams, now_ms)}


def waits(query: Registered, view: View) -> dict[str, Any] | None:
    """What the next evaluation waits for where it sees something already: its time, and for each stream of event time that has not come
    so far the least time stamp of an item that closes the window (``?watermark=`` with the time itself does too). None where it waits
    for nothing, or for the clock."""
    seen = view.seen(query)
    if seen is None or seen.next_tick is None or view.standing(query) != "running":
        return None
    found: dict[str, int] = {}
    for at, streams in view.catalogue.queries.awaited([(query, seen.next_tick)]):
        sources = [view.sources[stream] for stream in streams if stream in view.sources]
        active = [source for source in sources if not source.idle] or sources
        for source in active:
            if not source.arrival and source.watermark < at:
                found[source.iri] = max(found.get(source.iri, MIN), at + source.lateness_ms)
    if not found:
        return None
    return {"at": iso(seen.next_tick), "for": [{"stream": stream, "stamped": iso(time)} for stream, time in sorted(found.items())]}


def made_info(query: Registered, iri: str, view: View, now_ms: int) -> StreamInfo:
    """A stream that a query makes: nothing of its descriptor can be set."""
    kept = view.snapshot.streams.get(iri, StreamState()) if view.seen(query) is not None else StreamState()
    state = {"items": kept.items, "late": 0, "deadLetters": 0, "watermark": iso(kept.watermark), "idle": kept.idle,
             "itemsPerSecond": view.snapshot.measured.stream(iri, now_ms)}
    descriptor = {"iri": iri, "timestampPredicate": PROV_TIME, "time": view.catalogue.times[iri],
                  "source": {"type": "query", "query": query.name}}
    return StreamInfo(query.name, iri, descriptor, state, tuple(_users(iri, view)))


def stream_info(name: str, descriptor: Mapping[str, Any], view: View, now_ms: int, reading: Reading = Reading()) -> StreamInfo:
    """A stream that is pushed to, or is read from a topic, as `reading` tells."""
    source = view.sources.get(descriptor["iri"])
    state: dict[str, Any] = {"items": 0, "late": 0, "deadLetters": 0, "watermark": None, "itemsPerSecond": 0.0}
    if source is not None:
        state |= {"items": source.items, "late": source.late, "deadLetters": source.refused + source.late * source.keep_late,
                  "watermark": iso(source.watermark), "idle": source.idle,
                  "itemsPerSecond": view.snapshot.measured.stream(source.iri, now_ms)}
    if source is not None and source.topic is not None:
        kept = view.snapshot.streams.get(source.iri, StreamState())
        parts = {str(number): {"offset": one.offset, "watermark": iso(one.watermark), "silent": one.silent}
                 for number, one in sorted(source.partitions.items())}
        state |= {"topic": reading.state, "behind": reading.behind, "error": reading.error, "lost": kept.lost, "partitions": parts}
    return StreamInfo(name, descriptor["iri"], dict(descriptor), state, tuple(_users(descriptor["iri"], view)))


def _users(iri: str, view: View) -> list[str]:
    return sorted(query.name for query in view.catalogue.queries.readers(iri))
