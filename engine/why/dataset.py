"""The dataset of a query at an evaluation time, as proofs need it: each of its graphs with who asserted what, and with its prover.

docs/architecture.md, "Entailment of a query", says what each graph is; entailment.py is the same for answers. Closures are made when
they are first looked at.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial

from engine.functions.expressions import Context
from engine.grouping import by_key
from engine.ir.rules import TRIPLE, Atom, Rule, RuleSet
from engine.ir.statement import GraphSource, Statement, StreamSource, TimeWindow
from engine.ir.terms import Variable
from engine.records import Event, Triple
from engine.reference.content import History, close_of, content_of, window_bounds, window_events
from engine.reference.dataset import EMPTY, Content, Dataset, Graph
from engine.reference.formulas import Ground, ground
from engine.timeline import Interval, instant
from engine.why.matches import Name
from engine.why.proofs import Prover, RuleView, ViewProver
from engine.why.ranks import Ranked
from engine.why.trees import Budget, Proof, Source, Stated, Static, Streamed

Given = dict[Ground, tuple[Source, ...]]
Pairs = list[tuple[Event, Triple]]


class ShownGraph(Graph):
    """One graph of the dataset: all that `joint` has and `hidden` has not, and of what both have the part that `own` has. Closures are made
    when a pattern first asks for something; `own` where what it asks for is in both."""

    def __init__(self, times: Mapping[Triple, int], joint: Callable[[], Prover], hidden: Callable[[], Ranked] | None,
                 own: Callable[[], Prover] | None) -> None:
        self.times = times
        self._indexes = {}
        self._joint, self._hidden, self._own = cache(joint), cache(hidden) if hidden else None, cache(own) if own else None

    @cached_property
    def triples(self) -> frozenset[Triple]:  # type: ignore[override]
        sure, unsure = self._parts
        return sure.triples | frozenset(filter(self._is_own, unsure.triples))

    def match(self, subject: str | None, predicate: str | None, object_: str | None) -> Iterable[Triple]:
        """The triples with these terms; None matches any."""
        sure, unsure = self._parts
        there = sure.match(subject, predicate, object_)
        perhaps = unsure.match(subject, predicate, object_) if unsure else ()
        return [*there, *filter(self._is_own, perhaps)] if perhaps else there

    def proofs(self, triple: Triple) -> Iterator[Proof]:
        """Proofs of a triple that is shown, the shortest first."""
        return self._prover(triple).proofs((TRIPLE, triple))

    def depth(self, triple: Triple) -> int:
        """The rules on the longest branch of a triple's shortest proof."""
        return self._prover(triple).known.rank[TRIPLE, triple]

    def _prover(self, triple: Triple) -> Prover:
        return self._own() if self._own is not None and triple in self._parts[1].triples else self._joint()

    def _is_own(self, triple: Triple) -> bool:
        return self._own is not None and (TRIPLE, triple) in self._own().known.rank

    @cached_property
    def _parts(self) -> tuple[Graph, Graph]:
        """What is shown in any case, and what `hidden` has too."""
        found = self._joint().known.graph()
        if self._hidden is None:
            return found, EMPTY
        rank = self._hidden().rank
        unsure = [triple for triple in found.triples if (TRIPLE, triple) in rank]
        return Graph(found.triples.difference(unsure)), Graph(unsure)


class World:
    """The graphs of a query at the evaluation time `tick`, under `rules`; `makers` are the queries behind streams that are made."""

    def __init__(self, statement: Statement, tick: int, history: History, graphs: Mapping[str, Graph], rules: Sequence[Rule],
                 facts: Iterable[tuple[Ground, Source]], makers: Mapping[str, str], context: Context, budget: Budget,
                 held: Given | None = None) -> None:
        """`held` is what rule sets with a time of their own derive."""
        self._statement, self._graphs, self._makers = statement, graphs, makers
        self._rules, self._context, self._budget = rules, context, budget
        self._facts = _merged([{fact: (source,)} for fact, source in facts])
        self._held: Given = dict(held or {})
        on_change = statement.on_change
        pairs = {source: window_events(source, tick, history, statement, on_change) for source in statement.streams}
        self._views = {source: self._view(source, tick, history) for source in statement.rule_windows}
        self._background = static(graphs, (g for g in statement.graphs if not g.named))
        self._reasoning = static(graphs, statement.reasoning_graphs)
        self.shown: dict[Name, ShownGraph] = {}
        default = [found for source, found in pairs.items() if source.name is None]
        self._show((), [self._streamed(source, found) for source, found in pairs.items() if source.name is None], default)
        named = {f"<{g.iri}>": self._named(g) for g in statement.graphs if g.named}
        windows = {f"<{source.name}>": self._window(source, found) for source, found in pairs.items() if source.name is not None}
        self.dataset = Dataset(self.shown[()], named, windows, window_bounds(statement, tick, on_change))

    def _named(self, source: GraphSource) -> Graph:
        name = ("graph", f"<{source.iri}>")
        self._show(name, [static(self._graphs, [source])], [])
        return self.shown[name]

    def _window(self, source: StreamSource, pairs: Pairs) -> Content:
        name = f"<{source.name}>"
        self._show(("window", name), [self._streamed(source, pairs)], [pairs])
        items = by_key((event.graph, (event, triple)) for event, triple in pairs if event.graph is not None)
        for item, found in items.items():
            self._show(("item", name, item), [self._streamed(source, found)], [found])
        return Content(self.shown["window", name], {item: self.shown["item", name, item] for item in items})

    def _show(self, name: Name, parts: list[Given], pairs: list[Pairs]) -> None:
        """The default graph: windows and FROM graphs, and what follows from them by the graphs to reason with. Any other: its closure
        together with all static graphs, less what these entail alone."""
        times = content_of(pair for found in pairs for pair in found).graph.times
        given = _merged([*parts, *([] if name else [self._background, self._held])])
        through = [source for source in self._views if name == (() if source.name is None else ("window", f"<{source.name}>"))]
        own = partial(self._prover, given, through, {} if name else self._background)
        if not self._statement.rules or not (name or self._reasoning):
            self.shown[name] = ShownGraph(times, own, None, None)
            return
        beside = _merged([self._background, self._reasoning])
        joint = partial(self._prover, _merged([given, beside]), through, beside)
        hidden = (lambda: self._alone) if name else lambda: self._prover(self._reasoning).known
        self.shown[name] = ShownGraph(times, joint, hidden, None if name else own)

    @cached_property
    def _alone(self) -> Ranked:
        return self._prover(_merged([self._background, self._reasoning])).known

    def _prover(self, given: Given, through: Sequence[StreamSource] = (), beside: Given | None = None) -> Prover:
        """Of what is given; rules with a Window of their own see the streams `through` it, and what stands `beside`."""
        facts = _merged([given, self._facts])
        if not through:
            return Prover(facts, self._rules, self._context, self._budget)
        views: list[RuleView] = []
        for length in dict.fromkeys(self._views[source].length_ms for source in through):
            same = [self._views[source] for source in through if self._views[source].length_ms == length]
            views.append(RuleView(length, _merged([*(view.given for view in same), beside or {}, self._facts]), same[0].over))
        return ViewProver(facts, views, self._rules, self._context, self._budget)

    def _view(self, source: StreamSource, tick: int, history: History) -> RuleView:
        window = source.window
        assert isinstance(window, TimeWindow)
        end = close_of(window, tick, self._statement, self._statement.on_change)
        pairs = window_events(source, tick, history, self._statement, self._statement.on_change)
        return RuleView(window.range_ms, self._streamed(source, pairs), Interval(instant(end - window.range_ms), instant(end) - 1))

    def _streamed(self, source: StreamSource, pairs: Pairs) -> Given:
        times: dict[Triple, set[int]] = defaultdict(set)
        for event, triple in pairs:
            times[triple].add(event.t)
        maker = self._makers.get(source.stream)
        return {(TRIPLE, triple): (Streamed(source.stream, tuple(sorted(found)), maker),) for triple, found in times.items()}


def stated(rule_sets: Iterable[RuleSet]) -> Iterator[tuple[Ground, Source]]:
    return ((ground(fact.atom, {}), Stated(rules.name, fact.atom.span)) for rules in rule_sets for fact in rules.facts)


def static(graphs: Mapping[str, Graph], sources: Iterable[GraphSource]) -> Given:
    """The triples of static graphs."""
    return _merged({(TRIPLE, triple): (Static(source.iri),)
                    for triple in graphs.get(source.iri, EMPTY).triples} for source in sources)


def lean(rules: Sequence[Rule]) -> list[Rule]:
    """The rules without those that apply to every triple whatever it is, such as eq-ref: few proofs need them, and they derive the most."""
    return [rule for rule in rules if not _universal(rule)]


def _universal(rule: Rule) -> bool:
    asked = [part for part in rule.body if isinstance(part, Atom)]
    return (len(asked) == 1 and asked[0].predicate == TRIPLE and len(set(asked[0].terms)) == 3
            and all(isinstance(term, Variable) for term in asked[0].terms))


def _merged(parts: Iterable[Mapping[Ground, tuple[Source, ...]]]) -> Given:
    merged: Given = {}
    for part in parts:
        for fact, sources in part.items():
            merged[fact] = tuple(dict.fromkeys((*merged[fact], *sources))) if fact in merged else sources
    return merged
