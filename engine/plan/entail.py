"""The dataset of a query that uses rules: closures in the place of windows and graphs (docs/architecture.md, "Entailment of a query").

The background is the FROM graphs together with the USING GRAPH ones, which count for what follows from them but are not answers
themselves. A window, an item of it or a named graph is its closure together with the background, without what that entails alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from engine.ir.rules import Atom, Negation, Rule, Table
from engine.ir.statement import StreamSource, TimeWindow
from engine.ir.terms import Constant
from engine.plan.dataset import Dataset
from engine.plan.derive import is_axiom
from engine.plan.nodes import (Base, ClosedSource, ItemsSource, MergedSource, RestSource, Source, StaticSource, TimedSource, ValiditySource,
                               ViewSource, WindowSource, leaf_sources)

Program = Callable[[Iterable[str]], tuple[Rule, ...]]
"""The rules to apply, by the IRIs of the static graphs whose schema counts."""


def closure(base: Sequence[Base], background: ClosedSource | None, rules: tuple[Rule, ...], streams: Sequence[StreamSource],
            windows: str) -> ClosedSource:
    """The closure of windows and graphs under `rules`. What follows without negation from facts in windows of time holds as long as these
    are all there, so that such a closure has intervals. `windows` tells the windows of the statement (`streams`) from those of others: the
    names of closures follow from what they are."""
    monotone = not any(isinstance(formula, Negation) for rule in rules for formula in rule.body)
    if monotone and all(isinstance(part, (WindowSource, ValiditySource)) and isinstance(streams[part.index].window, TimeWindow)
                        for part in base):
        base = [ValiditySource(part.index) for part in base if isinstance(part, (WindowSource, ValiditySource))]
    return named(ClosedSource("", tuple(base), background, rules), windows)


def named(closed: ClosedSource, windows: str) -> ClosedSource:
    """A closure with the name that follows from what it is."""
    behind = closed.background and closed.background.name
    found = hashlib.sha256(repr(("" if closed.is_static else windows, closed.base, behind)).encode())
    for rule in closed.rules:
        found.update(_spelled(rule).encode())
    return replace(closed, name=f"c_{found.hexdigest()[:16]}")


def _spelled(rule: Rule) -> str:
    """What tells a rule from others. There may be 100,000 axioms, or rows of its tables: the `repr` of a term takes long."""
    head, *body = (_spelled_part(part) for part in (rule.head, *rule.body))
    return f"\n{(head, body, rule.name, rule.role, rule.window_ms)!r}"


def _spelled_part(part: object) -> object:
    match part:
        case Table(variables=variables, rows=rows):
            return variables, [[constant.token for constant in row] for row in rows]
        case Atom(predicate=predicate, terms=terms):
            return predicate, [term.token if isinstance(term, Constant) else term for term in terms]
    return part


def entailed(data: Dataset, reasoning: tuple[StaticSource, ...], program: Program, windows: str,
             alone: bool = True) -> Dataset:
    """`data` under the rules that `program` has for static graphs; `windows` is as for `closure`. Without `alone` no pattern can
    match what the `reasoning` graphs entail by themselves."""
    def closed(base: Sequence[WindowSource | StaticSource | TimedSource], background: ClosedSource | None = None) -> ClosedSource:
        leaves: list[Base] = [*base, *(leaf_sources(background) if background is not None else ())]
        rules = program(leaf.iri for leaf in leaves if isinstance(leaf, StaticSource))
        return closure([*base, *_views(base, data.views)], background, rules, data.streams, windows)

    parts = data.default.parts if isinstance(data.default, MergedSource) else (data.default,)
    shown = [part for part in parts if isinstance(part, StaticSource)]
    streamed = [part for part in parts if isinstance(part, (WindowSource, TimedSource))]
    unseen = closed(reasoning) if reasoning and alone else None
    own_facts = bool(shown) or any(map(is_axiom, program(())))
    background = closed((*shown, *reasoning)) if own_facts or reasoning else None
    default: list[ClosedSource | RestSource] = [closed(streamed, background)] if streamed else []
    default += [_without(background, unseen)] if background is not None and own_facts else []
    if reasoning and alone:   # what the default graph entails by itself shows, even where the background alone entails it too
        own = closed(shown) if own_facts else None
        default += [closed(streamed, own)] if streamed else []
        default += [own] if own is not None else []
    named: dict[str, Source] = {}
    for iri, graph in data.graphs.items():
        leaves = [part for part in (graph.parts if isinstance(graph, MergedSource) else (graph,)) if isinstance(part, StaticSource)]
        named[iri] = _without(closed((*leaves, *shown, *reasoning)), background)
    shows: dict[str, Source] = {name: closed([window], background) for name, window in data.windows.items()
                                if isinstance(window, WindowSource)}
    return replace(data, default=MergedSource(tuple(default)), windows=shows, graphs=named)


def _without(closed: ClosedSource, hidden: ClosedSource | None) -> ClosedSource | RestSource:
    return closed if hidden is None else RestSource(closed, hidden)


def _views(base: Sequence[WindowSource | StaticSource | TimedSource], views: Mapping[int, Mapping[int, int]]) -> list[ViewSource]:
    """What rules with a Window of their own see in place of the windows in `base`."""
    return [ViewSource(number, length) for part in base if isinstance(part, WindowSource)
            for length, number in sorted(views.get(part.index, {}).items())]


def of_items(source: Source) -> Source:
    """The closures of a window's items, each by itself, a graph like others to every rule."""
    if not isinstance(source, ClosedSource):
        return source
    items = tuple(ItemsSource(part.index) for part in source.base if isinstance(part, (WindowSource, ValiditySource)))
    return replace(source, name=f"i{source.name[1:]}", base=items)
