"""What the evaluation of a logged result saw, read back from the logs. Nothing is taken from
another time: where an item may be missing, or a version has been replaced, that is said instead."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from engine.compiler import BUILT_IN_RULES, triples as triples_of
from engine.functions.datetimes import parse_moment
from engine.grouping import by_key
from engine.ir.programs import needed_since
from engine.ir.rules import RuleSet
from engine.ir.stages import divide
from engine.ir.statement import NowWindow, Statement, TimedProgram, TimeWindow, TupleWindow, Window
from engine.output import triples_in
from engine.plan.timed import StagedPlan, seen_since
from engine.records import Event, Triple
from engine.runtime.errors import EngineError
from engine.runtime.log import LogFolder
from engine.runtime.registered import Registered
from engine.runtime.resources import ResultEvent
from engine.runtime.results import ResultLog
from engine.runtime.ticks import Timetable
from engine.runtime.view import Snapshot, View
from engine.timeline import MAX, MIN

_ID = re.compile(r"q(\d{1,18})c(\d{1,18})-(\d{1,18})")
_PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Evidence:
    """The result, and what it was made from: `events` are the items that its windows may show, `graphs` the static graphs by IRI,
    `rules` the rule sets by name, `makers` by stream the queries that make some of them. Items before `cut_ms` may be missing: rules with
    a time of their own do not look at them."""

    statement: Statement
    event: ResultEvent
    events: tuple[Event, ...]
    graphs: Mapping[str, tuple[Triple, ...]]
    rules: Mapping[str, RuleSet]
    makers: Mapping[str, str]
    cut_ms: int | None = None


def evidence_of(results: ResultLog, folder: LogFolder, view: View, query: Registered, result_id: str) -> Evidence:
    event = _result(results, query, result_id)
    position = results.positions(query.name, event.seq, event.seq).get(event.seq)
    seen = view.seen(query)
    since = query.definition.since if seen is None else seen.definition.since
    if position is None or position < since:
        raise _gone("The query has been restarted since." if position is not None else "It was logged by an earlier version.")
    graphs, rules = _graphs(view.snapshot, query, position), _rules(view.snapshot, query, position)
    makers = {iri: maker.name for iri, maker in view.snapshot.queries.makers.items() if iri in query.streams}
    table = query.timetable
    if isinstance(program := query.statement.query, TimedProgram):
        needed = needed_since(program, _begun(event))
        events, cut = _of_timed(results, folder, program, query.streams, makers, needed, event.tick, since, position)
        return Evidence(query.statement, event, tuple(events), graphs, rules, makers, cut)
    first = event.tick
    if event.stream == "n":     # what ceases now may have begun so long before
        first -= max((source.window.range_ms for source in query.statement.streams if isinstance(source.window, TimeWindow)), default=0)
    looked = _looked_since(query, view, rules, event.tick)
    if looked is not None:      # its rules see the streams through no window
        table = Timetable.of(replace(query.statement, rule_windows=()))
    newest, last = folder.expired()
    if looked is not None and last > since and newest >= looked:
        raise _gone("Items that its rules look at are no longer in the input log.")
    rules_from = MAX if looked is None else looked
    pushed = [stream for stream in table.streams if stream not in makers]
    events = list(_pushed(folder, table, pushed, first, event.tick, since, position, rules_from))
    for stream, maker in makers.items():
        events += _made(results, stream, maker, min(rules_from, _begin(table, stream, first)), event.tick, since, position)
    cut = None
    if looked is not None and looked > MIN:
        older = chain(_logged(folder, dict.fromkeys(pushed, MIN), looked, since, position),
                      *(_made(results, stream, maker, MIN, looked, since, position) for stream, maker in makers.items()))
        cut = looked if last > since or next(older, None) is not None else None
    return Evidence(query.statement, event, tuple(events), graphs, rules, makers, cut)


def _result(results: ResultLog, query: Registered, result_id: str) -> ResultEvent:
    parts = _ID.fullmatch(result_id)
    if parts is None or int(parts[1]) != query.definition.number or int(parts[2]) > query.definition.generation:
        raise _unknown(query, result_id)
    seq, bounds = int(parts[3]), results.bounds(query.name)
    if int(parts[2]) < query.definition.generation:
        raise _gone(f"The query began anew as {query.epoch}.")
    if bounds.epoch != query.epoch or seq > bounds.newest or seq < 1:
        raise _unknown(query, result_id)
    event = next(iter(results.read(query.name, seq - 1, 1)), None)
    if event is None or event.id != result_id:
        raise _gone(f"The results that are kept begin with {query.epoch}-{bounds.oldest}.")
    return event


def _graphs(pump: Snapshot, query: Registered, position: int) -> dict[str, tuple[Triple, ...]]:
    found: dict[str, tuple[Triple, ...]] = {}
    for iri in query.graphs:
        if pump.versions.get(iri, position + 1) > position:
            raise _gone(f"The graph <{iri}> has been replaced since.")
        found[iri] = tuple(triples_of(pump.graphs[iri]))
    return found


def _rules(pump: Snapshot, query: Registered, position: int) -> dict[str, RuleSet]:
    found: dict[str, RuleSet] = {}
    for name in query.rules:
        stored = pump.rules.get(name)
        if name not in BUILT_IN_RULES and (stored is None or stored.version > position):
            raise _gone(f"The rule set {name!r} has been replaced since.")
        found[name] = BUILT_IN_RULES[name] if stored is None else stored.rules
    return found


# --- items

def _begin(table: Timetable, stream: str, tick: int) -> int:
    """The time before which no window on a stream shows anything at `tick`; MIN where that is not known."""
    return min(table.content(window, tick)[0] if isinstance(window, TimeWindow) else MIN
               for name, window in table.windows if name == stream)


def _begun(event: ResultEvent) -> int:
    """When the first fact of a program's result began, in ms."""
    rows = orjson.loads(event.payload)["results"]["bindings"] if event.stream == "n" else []
    begins = (parse_moment("dateTime", row["from"]["value"]) for row in rows)
    return min((int(begin.instant * 1_000) for begin in begins if begin is not None), default=event.at_ms)


def _of_timed(results: ResultLog, folder: LogFolder, program: TimedProgram, streams: Iterable[str], makers: Mapping[str, str],
              needed: int | None, tick: int, since: int, position: int) -> tuple[list[Event], int | None]:
    """The items that a program with a time of its own saw, from the time `needed` on if not all; and that time where there may have been
    others before. On a timeline of granules that begins with the first item all that are left are read, for that one."""
    first = MIN if needed is None else needed
    newest, last = folder.expired()
    if last > since and newest >= first:
        raise _gone("Items that its rules look at are no longer in the input log.")
    begin = MIN if program.rules.granularity_ms and program.rules.start_at_ms is None else first
    pushed = [stream for stream in streams if stream not in makers]
    events = list(_logged(folder, dict.fromkeys(pushed, begin), tick, since, position, newest))
    for stream, maker in makers.items():
        events += _made(results, stream, maker, first, tick, since, position)
    return events, first if first > MIN and (last > since or makers or begin > MIN) else None


def _looked_since(query: Registered, view: View, rules: Mapping[str, RuleSet], tick: int) -> int | None:
    """The time from which on the rules with a time of their own that a query uses look at items for what it sees at T, MIN where at all;
    None of a query without such rules."""
    if not divide(rules.values()).is_timed:
        return None
    seen = view.seen(query)
    plan: StagedPlan | None = None if seen is None else getattr(seen.compiled, "staged", None)
    since = None if plan is None else seen_since(plan, tick)
    return MIN if since is None else since


def _pushed(folder: LogFolder, table: Timetable, streams: list[str], first: int, tick: int, since: int, position: int,
            rules_from: int = MAX) -> Iterator[Event]:
    """Items of pushed streams that windows show from `first` to `tick`, or since `rules_from`."""
    needed = {stream: min(rules_from, _begin(table, stream, first)) for stream in streams}
    newest, last = folder.expired()
    seen = by_key((event.stream, event) for event in _logged(folder, needed, tick, since, position, newest))
    for stream, window in table.windows:
        if stream in needed and last > since and not _whole(table, window, first, newest, seen.get(stream, [])):
            raise _gone(f"Items that its window on <{stream}> showed are no longer in the input log.")
    for events in seen.values():
        yield from events


def _whole(table: Timetable, window: Window, tick: int, newest: int, events: list[Event]) -> bool:
    """Whether all that a window shows at `tick` is later than `newest`, the last time of what was deleted."""
    later = [event for event in events if event.t > newest]
    match window:
        case TimeWindow():
            return table.content(window, tick)[0] > newest
        case TupleWindow(count=count, unit="triples"):
            return len({(event.t, triple) for event in later for triple in event.triples}) >= count
        case TupleWindow(count=count):
            return len({(event.t, event.graph, frozenset(event.triples)) for event in later}) >= count
        case NowWindow():
            return bool(later)
    return False


def _logged(folder: LogFolder, begins: Mapping[str, int], until: int, since: int, position: int, expired: int = MIN) -> Iterator[Event]:
    """The items of pushed streams from `begins[stream]` to before `until`, from the input log; files that end by `expired` are left out."""
    for rows in folder.history({stream: max(begin, expired + 1) for stream, begin in begins.items()}, position):
        for event in events_of(rows.filter(pc.less(rows["t"], until))):
            if event.position > since and event.t >= begins.get(event.stream, until):
                yield event


def events_of(rows: pa.Table) -> Iterator[Event]:
    """The items of rows of the log, in order; one without triples shows nothing."""
    rows = rows.filter(pc.is_valid(rows["s"]))
    triples: dict[int, list[Triple]] = defaultdict(list)
    heads: dict[int, tuple[str, int, str | None, int]] = {}
    columns = (rows[name].to_pylist() for name in ("position", "stream", "t", "g", "watermark", "s", "p", "o"))
    for position, stream, t, graph, watermark, s, p, o in zip(*columns, strict=True):
        heads[position] = stream, t, graph, watermark
        triples[position].append((s, p, o))
    for position, (stream, t, graph, watermark) in heads.items():
        yield Event(position, stream, t, graph, tuple(triples[position]), watermark)


def _made(results: ResultLog, stream: str, maker: str, begin: int, tick: int, since: int, position: int) -> Iterator[Event]:
    bounds = results.bounds(maker)
    oldest = next(iter(results.read(maker, bounds.oldest - 1, 1)), None)
    if oldest is not None and oldest.at_ms > begin and not (oldest.seq == 1 and str(bounds.epoch).endswith("c1")):
        raise _gone(f"Results of {maker!r}, whose stream it reads, are no longer kept.")
    after = results.seq_at(maker, begin) if begin > MIN else bounds.oldest - 1
    while page := results.read(maker, after, _PAGE):
        after = page[-1].seq
        positions = results.positions(maker, page[0].seq, after)
        for event in page:
            seen = positions.get(event.seq)
            if event.at_ms >= tick:
                return
            if seen is None or event.meta.get("truncated"):
                raise _gone(f"Not all that {maker!r}, whose stream it reads, gave is known.")
            if event.logged and since < seen <= position:
                yield Event(seen, stream, event.at_ms, None, triples_in(event.payload), event.at_ms)


def _unknown(query: Registered, result_id: str) -> EngineError:
    return EngineError("no-such-result", 404, f"The query {query.name!r} has no result {result_id!r}.", {"id": result_id})


def _gone(why: str) -> EngineError:
    return EngineError("no-longer-kept", 410, f"What the result was made from is no longer kept. {why}")
