"""The dataset of a statement: which windows and graphs its patterns look at (RSP-QL, section "RSP-QL dataset")."""

from __future__ import annotations

from dataclasses import dataclass

from engine.ir.statement import BEHIND, OWN_WINDOW, Statement, StreamSource, TimeWindow
from engine.plan.nodes import ClosedSource, MergedSource, RestSource, Source, StaticSource, TimedSource, WindowSource


@dataclass(frozen=True, slots=True)
class Dataset:
    """The sources of a statement: its default graph, its named windows and its named graphs (by IRI); `streams` are its windows. `views`
    has by the number of a window the lengths of rules' own windows on its stream, each with the number of that window."""

    streams: tuple[StreamSource, ...]
    default: Source
    windows: dict[str, Source]
    graphs: dict[str, Source]
    views: dict[int, dict[int, int]]

    def graph(self, iri: str) -> Source | None:
        """What GRAPH <iri> reads: a named graph, or a named window as the graph that it shows."""
        return self.graphs.get(iri) or self.windows.get(iri)

    def named(self) -> list[tuple[str, Source]]:
        """What GRAPH ?g ranges over."""
        graphs: list[tuple[str, Source]] = [(iri, source) for iri, source in self.graphs.items() if iri not in BEHIND]
        return graphs + [(iri, source) for iri, source in self.named_windows() if iri not in self.graphs]

    def named_windows(self) -> list[tuple[str, Source]]:
        """What WINDOW ?w ranges over."""
        return [(iri, source) for iri, source in self.windows.items() if not iri.startswith(OWN_WINDOW)]

    def everything(self) -> MergedSource:
        """All that the statement reads, as one graph."""
        sources = (self.default, *self.windows.values(), *(g for iri, g in self.graphs.items() if iri not in BEHIND))
        parts = [part for source in sources for part in (source.parts if isinstance(source, MergedSource) else (source,))]
        read = WindowSource, StaticSource, TimedSource, ClosedSource, RestSource
        return MergedSource(tuple(part for part in parts if isinstance(part, read)))


def dataset(statement: Statement, timed: TimedSource | None = None) -> Dataset:
    """The dataset of a statement, with what rule sets with a time of their own derive in the default graph. Without any FROM, a plain query
    sees the graphs given to it as unnamed sources."""
    default: list[WindowSource | StaticSource | TimedSource] = [] if timed is None else [timed]
    windows: dict[str, Source] = {}
    for index, stream in enumerate(statement.streams):
        if stream.name is None:
            default.append(WindowSource(index))
        else:
            windows[stream.name] = WindowSource(index)
    default += [StaticSource(g.iri) for g in statement.graphs if not g.named]
    graphs: dict[str, Source] = {g.iri: StaticSource(g.iri) for g in statement.graphs if g.named}
    views: dict[int, dict[int, int]] = {}
    for number, source in enumerate(statement.rule_windows if timed is None else ()):
        assert isinstance(source.window, TimeWindow)
        count = len(statement.streams)
        views.setdefault(number % count, {})[source.window.range_ms] = count + number
    return Dataset(statement.streams, default[0] if len(default) == 1 else MergedSource(tuple(default)), windows, graphs, views)
