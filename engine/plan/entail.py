"""The dataset of a query that uses rules: closures in the place of windows and graphs (docs/architecture.md, "Entailment of a query").

The background is the FROM graphs together with the USING GRAPH ones, which count for what follows from them but are not answers
themselves. A window, an item of it or a named graph is its closure together with the background, without what that entails alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from engine.ir.rules import Rule
from engine.plan.dataset import Dataset
from engine.plan.derive import is_axiom
from engine.plan.nodes import ClosedSource, MergedSource, Source, StaticSource, TimedSource, WindowSource, leaf_sources

Program = Callable[[Iterable[str]], tuple[Rule, ...]]
"""The rules to apply, by the IRIs of the static graphs whose schema counts."""


def entailed(data: Dataset, reasoning: tuple[StaticSource, ...], program: Program, windows: str,
             alone: bool = True) -> Dataset:
    """`data` under the rules that `program` has for static graphs; `windows` tells the windows of the statement from
    those of others: the names of closures follow from what they are. Without `alone` no pattern can
    match what the `reasoning` graphs entail by themselves."""
    def closed(base: Source, background: ClosedSource | None = None, hidden: ClosedSource | None = None) -> ClosedSource:
        assert isinstance(base, (WindowSource, StaticSource, TimedSource, MergedSource))
        leaves = leaf_sources(base) + (leaf_sources(background) if background is not None else ())
        static = all(isinstance(leaf, StaticSource) for leaf in leaf_sources(base))
        rules = program(leaf.iri for leaf in leaves if isinstance(leaf, StaticSource))
        text = repr(("" if static else windows, base, background, hidden, rules))
        name = "c_" + hashlib.sha256(text.encode()).hexdigest()[:16]
        return ClosedSource(name, base, background, hidden, static, views=_views(base, data.views), rules=rules)

    parts = data.default.parts if isinstance(data.default, MergedSource) else (data.default,)
    shown = tuple(part for part in parts if isinstance(part, StaticSource))
    streamed = MergedSource(tuple(part for part in parts if isinstance(part, (WindowSource, TimedSource))))
    unseen = closed(MergedSource(reasoning)) if reasoning and alone else None
    own_facts = bool(shown) or any(map(is_axiom, program(())))
    background = closed(MergedSource((*shown, *reasoning)), hidden=unseen) if own_facts or reasoning else None
    default: list[ClosedSource] = [closed(streamed, background)] if streamed.parts else []
    default += [background] if background is not None and own_facts else []
    if reasoning and alone:   # what the default graph entails by itself shows, even where the background alone entails it too
        own = closed(MergedSource(shown)) if own_facts else None
        default += [closed(streamed, own)] if streamed.parts else []
        default += [own] if own is not None else []
    named: dict[str, Source] = {}
    for iri, graph in data.graphs.items():
        leaves = graph.parts if isinstance(graph, MergedSource) else (graph,)
        named[iri] = closed(MergedSource((*leaves, *shown, *reasoning)), hidden=background)
    shows: dict[str, Source] = {name: closed(window, background) for name, window in data.windows.items()}
    return replace(data, default=MergedSource(tuple(default)), windows=shows, graphs=named)


def _views(base: Source, views: Mapping[int, Mapping[int, int]]) -> tuple[tuple[int, MergedSource], ...]:
    """What rules with a Window of their own see in place of the windows in `base`, by its length."""
    own = [views.get(leaf.index, {}) for leaf in leaf_sources(base) if isinstance(leaf, WindowSource)]
    lengths = sorted({length for found in own for length in found})
    return tuple((length, MergedSource(tuple(WindowSource(found[length]) for found in own))) for length in lengths)


def of_items(source: Source) -> Source:
    """The closures of a window's items, each by itself, a graph like others to every rule."""
    if not isinstance(source, ClosedSource):
        return source
    return replace(source, name=f"i{source.name[1:]}", items=True, views=())
