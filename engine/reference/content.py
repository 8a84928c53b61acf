"""What each window of a query holds at an evaluation time (docs/architecture.md, "Windows")."""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import reduce

from engine.ir.rules import RuleSet
from engine.ir.stages import divide
from engine.ir.statement import AllWindow, GraphSource, Instants, NowWindow, Statement, StreamSource, TimeWindow, TupleWindow
from engine.ir.windows import window_names
from engine.records import Event, Triple
from engine.reference.dataset import EMPTY, Content, Dataset, Graph
from engine.reference.entailment import closing, entail
from engine.reference.mixed import seen_at
from engine.timeline import last_close_by


class History:
    """The events of each stream that one query may see, by time; those of one instant by arrival."""

    def __init__(self) -> None:
        self._events: dict[str, list[Event]] = defaultdict(list)

    def add(self, event: Event) -> None:
        insort(self._events[event.stream], event, key=lambda e: e.t)

    def between(self, stream: str, first_ms: int | None, end_ms: int) -> list[Event]:
        """The events with ``first <= t < end``; all before `end` where `first` is None."""
        events = self._events[stream]
        start = 0 if first_ms is None else bisect_left(events, first_ms, key=lambda e: e.t)
        return events[start:bisect_left(events, end_ms, key=lambda e: e.t)]

    def earliest(self, stream: str) -> int | None:
        """The time of the first event of a stream, None where there is none."""
        events = self._events[stream]
        return events[0].t if events else None


def close_of(window: TimeWindow, tick: int, statement: Statement, on_change: bool) -> int:
    """The close whose content an evaluation at `tick` sees: the last one, or `tick` itself where STEP is ignored."""
    return tick if on_change else last_close_by(tick, window.step_ms, statement.start_at_ms)


def window_events(source: StreamSource, tick: int, history: History, statement: Statement, on_change: bool) -> list[tuple[Event, Triple]]:
    """The (event, triple) pairs inside one window at `tick`."""
    match source.window:
        case TimeWindow() as window:
            end = close_of(window, tick, statement, on_change) - window.delay_ms
            return _pairs(history.between(source.stream, end - window.range_ms, end))
        case TupleWindow(count=count, unit="triples"):
            return _last_triples(history.between(source.stream, None, tick), count)
        case TupleWindow(count=count):
            return _last_items(history.between(source.stream, None, tick), count)
        case NowWindow():
            events = history.between(source.stream, None, tick)
            return _pairs(e for e in events if e.t == events[-1].t)
        case AllWindow() | Instants():
            return _pairs(history.between(source.stream, None, tick))


def window_bounds(statement: Statement, tick: int, on_change: bool) -> dict[str, tuple[int | None, int]]:
    """When the windows open (None for one that time does not bound) and close, in ms, by name: the half-open interval that they show,
    or for REPORT ON CHANGE the one open on the left that ends at the instant reported."""
    found: dict[str, tuple[int | None, int]] = {}
    shift = 1 if on_change else 0
    for name, index in window_names(statement.streams):
        match statement.streams[index].window:
            case TimeWindow() as window:
                end = close_of(window, tick, statement, on_change) - window.delay_ms - shift
                found[name] = end - window.range_ms, end
            case _:
                found[name] = None, tick - shift
    return found


def dataset_at(statement: Statement, contents: Mapping[StreamSource, Content], graphs: Mapping[str, Graph],
               bounds: Mapping[str, tuple[int | None, int]], rules: Mapping[str, RuleSet], held: Graph = EMPTY) -> Dataset:
    """The dataset of a query: FROM graphs and unnamed windows merged, the others by name, with entailment if it uses some of `rules`;
    `held` is what those with a time of their own derive."""
    background = _merge(statement.graphs, graphs)
    default = background
    for source in statement.streams:
        if source.name is None:
            default |= contents[source].graph
    named = {f"<{g.iri}>": graphs.get(g.iri, EMPTY) for g in statement.graphs if g.named}
    windows = {f"<{source.name}>": contents[source] for source in statement.streams if source.name is not None}
    dataset = Dataset(default | held, named, windows, bounds)
    if not statement.rules:
        return dataset
    division = divide(rules_of(statement, rules))
    used = {one.name: one for one in division.plain} if division.is_timed else rules
    close = closing([source.name for source in statement.rules if source.name in used or not division.is_timed], used)
    views: dict[str | None, dict[int, Graph]] = defaultdict(dict)
    for source in () if division.is_timed else statement.rule_windows:
        assert isinstance(source.window, TimeWindow)
        seen = views[None if source.name is None else f"<{source.name}>"]
        seen[source.window.range_ms] = seen.get(source.window.range_ms, EMPTY) | contents[source].graph
    return entail(dataset, background, _merge(statement.reasoning_graphs, graphs), close, views)


def rules_of(statement: Statement, rules: Mapping[str, RuleSet]) -> list[RuleSet]:
    """The rule sets that a statement names, of those that there are."""
    return [rules[source.name] for source in statement.rules if source.name in rules]


def held_at(statement: Statement, tick: int, on_change: bool, history: History, graphs: Mapping[str, Graph],
            rules: Mapping[str, RuleSet]) -> Graph:
    """What the rule sets with a time of their own derive that holds at an evaluation time: they see the whole streams."""
    events = [event for stream in dict.fromkeys(source.stream for source in statement.streams)
              for event in history.between(stream, None, tick)]
    static = _merge((*statement.graphs, *statement.reasoning_graphs), graphs)
    return seen_at(tick, on_change, rules_of(statement, rules), events, static)


def content_of(pairs: Iterable[tuple[Event, Triple]]) -> Content:
    """The set of all triples, and the named graphs of the items."""
    everything: list[tuple[Triple, int]] = []
    items: dict[str, list[tuple[Triple, int]]] = defaultdict(list)
    for event, triple in pairs:
        everything.append((triple, event.t))
        if event.graph is not None:
            items[event.graph].append((triple, event.t))
    return Content(_graph(everything), {name: _graph(found) for name, found in items.items()})


def _graph(stamped: Iterable[tuple[Triple, int]]) -> Graph:
    times: dict[Triple, int] = {}
    for triple, t in stamped:
        times[triple] = max(t, times.get(triple, t))
    return Graph(times, times)


def _merge(sources: Iterable[GraphSource], graphs: Mapping[str, Graph]) -> Graph:
    """The graphs of sources without a name."""
    return reduce(Graph.__or__, (graphs.get(source.iri, EMPTY) for source in sources if not source.named), EMPTY)


def _pairs(events: Iterable[Event]) -> list[tuple[Event, Triple]]:
    return [(event, triple) for event in events for triple in event.triples]


def _last_triples(events: Iterable[Event], count: int) -> list[tuple[Event, Triple]]:
    """The last distinct (t, triple) in the order (t, canonical token); a triple keeps every item that carried it at that t."""
    pairs = _pairs(events)
    last = set(sorted({(event.t, triple) for event, triple in pairs})[-count:])
    return [(event, triple) for event, triple in pairs if (event.t, triple) in last]


def _last_items(events: Iterable[Event], count: int) -> list[tuple[Event, Triple]]:
    """The last distinct items in the order (t, tokens of their triples, graph name)."""
    distinct = {(event.t, tuple(sorted(set(event.triples))), event.graph or ""): event for event in events}
    return _pairs(distinct[key] for key in sorted(distinct)[-count:])
