"""The dataset of a query at an evaluation time, as proofs need it: each of its graphs with who asserted what, and with its prover.

docs/architecture.md, "Entailment of a query", says what each graph is; entailment.py is the same for answers. Closures are made when
they are first looked at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from engine.functions.expressions import Context
from engine.ir.rules import TRIPLE, Atom, Rule, RuleSet
from engine.ir.statement import GraphSource, Statement, StreamSource
from engine.ir.terms import Variable
from engine.records import Event, Triple
from engine.reference.content import History, content_of, window_bounds, window_events
from engine.reference.dataset import EMPTY, Content, Dataset, Graph
from engine.reference.formulas import Ground, ground
from engine.reference.why_matches import Name
from engine.reference.why_proofs import Budget, Proof, Prover, Source, Stated, Static, Streamed
from engine.reference.why_ranks import Ranked

Given = dict[Ground, tuple[Source, ...]]
Pairs = list[tuple[Event, Triple]]


class Later(Graph):
    """A graph that is made when it is first looked at."""

    def __init__(self, shown: ShownGraph) -> None:
        self._shown = shown
        self._indexes = {}
        self._nodes = None

    @cached_property
    def triples(self) -> frozenset[Triple]:  # type: ignore[override]
        return self._shown.triples()

    @cached_property
    def times(self) -> Mapping[Triple, int]:  # type: ignore[override]
        return self._shown.times


class ShownGraph:
    """One graph of the dataset: what is in it, and proofs of it."""

    def __init__(self, times: Mapping[Triple, int], provers: Iterator[tuple[Prover, Ranked | None]]) -> None:
        """`provers` are tried in order; what the closure beside one of them has is not shown because of it."""
        self.times = times
        self._provers = provers
        self._made: list[tuple[Prover, Ranked | None]] | None = None

    def triples(self) -> frozenset[Triple]:
        """All that is shown."""
        shown: set[Triple] = set()
        for prover, hidden in self._all():
            shown |= prover.known.graph().triples - (hidden.graph().triples if hidden is not None else frozenset())
        return frozenset(shown)

    def proofs(self, triple: Triple) -> Iterator[Proof]:
        """Proofs of a triple that is shown, the shortest first."""
        fact = TRIPLE, triple
        for prover, hidden in self._all():
            if fact in prover.known.rank and (hidden is None or fact not in hidden.rank):
                yield from prover.proofs(fact)
                return

    def depth(self, triple: Triple) -> int:
        """The rules on the longest branch of a triple's shortest proof."""
        fact = TRIPLE, triple
        return next((prover.known.rank[fact] for prover, hidden in self._all()
                     if fact in prover.known.rank and (hidden is None or fact not in hidden.rank)), 0)

    def _all(self) -> list[tuple[Prover, Ranked | None]]:
        if self._made is None:
            self._made = list(self._provers)
        return self._made


class World:
    """The graphs of a query at the evaluation time `tick`, under `rules`; `makers` are the queries behind streams that are made."""

    def __init__(self, statement: Statement, tick: int, history: History, graphs: Mapping[str, Graph], rules: Sequence[Rule],
                 facts: Iterable[tuple[Ground, Source]], makers: Mapping[str, str], context: Context, budget: Budget) -> None:
        self._statement, self._graphs, self._makers = statement, graphs, makers
        self._rules, self._context, self._budget = rules, context, budget
        self._facts = _merged([{fact: (source,)} for fact, source in facts])
        on_change = statement.on_change
        pairs = {source: window_events(source, tick, history, statement, on_change) for source in statement.streams}
        self._background = self._static(source for source in statement.graphs if not source.named)
        self._reasoning = self._static(statement.reasoning_graphs)
        self.shown: dict[Name, ShownGraph] = {}
        default = [found for source, found in pairs.items() if source.name is None]
        self._show((), [self._streamed(source, found) for source, found in pairs.items() if source.name is None], default)
        named = {f"<{g.iri}>": self._named(g) for g in statement.graphs if g.named}
        windows = {f"<{source.name}>": self._window(source, found) for source, found in pairs.items() if source.name is not None}
        self.dataset = Dataset(Later(self.shown[()]), named, windows, window_bounds(statement, tick, on_change))

    def _named(self, source: GraphSource) -> Graph:
        name = ("graph", f"<{source.iri}>")
        self._show(name, [self._static([source])], [])
        return Later(self.shown[name])

    def _window(self, source: StreamSource, pairs: Pairs) -> Content:
        name = f"<{source.name}>"
        self._show(("window", name), [self._streamed(source, pairs)], [pairs])
        items: dict[str, Pairs] = defaultdict(list)
        for event, triple in pairs:
            if event.graph is not None:
                items[event.graph].append((event, triple))
        for item, found in items.items():
            self._show(("item", name, item), [self._streamed(source, found)], [found])
        return Content(Later(self.shown["window", name]), {item: Later(self.shown["item", name, item]) for item in items})

    def _show(self, name: Name, parts: list[Given], pairs: list[Pairs]) -> None:
        times = content_of(pair for found in pairs for pair in found).graph.times
        own = _merged(parts)
        self.shown[name] = ShownGraph(times, self._default(own) if not name else self._beside(own))

    def _default(self, windows: Given) -> Iterator[tuple[Prover, Ranked | None]]:
        """The closure of windows and FROM graphs, and what follows from it by the graphs to reason with."""
        own = _merged([windows, self._background])
        yield self._prover(own), None
        if self._rules and self._reasoning:
            yield self._prover(_merged([own, self._reasoning])), self._prover(self._reasoning).known

    def _beside(self, own: Given) -> Iterator[tuple[Prover, Ranked | None]]:
        """The closure of a graph together with the background, less what that entails alone."""
        if not self._statement.rules:
            yield self._prover(own), None
            return
        background = _merged([self._background, self._reasoning])
        yield self._prover(_merged([own, background])), self._alone

    @cached_property
    def _alone(self) -> Ranked:
        return self._prover(_merged([self._background, self._reasoning])).known

    def _prover(self, given: Given) -> Prover:
        return Prover(_merged([given, self._facts]), self._rules, self._context, self._budget)

    def _static(self, sources: Iterable[GraphSource]) -> Given:
        return _merged([{(TRIPLE, triple): (Static(source.iri),) for triple in self._graphs.get(source.iri, EMPTY).triples}
                        for source in sources])

    def _streamed(self, source: StreamSource, pairs: Pairs) -> Given:
        times: dict[Triple, set[int]] = defaultdict(set)
        for event, triple in pairs:
            times[triple].add(event.t)
        maker = self._makers.get(source.stream)
        return {(TRIPLE, triple): (Streamed(source.stream, tuple(sorted(found)), maker),) for triple, found in times.items()}


def stated(rule_sets: Iterable[RuleSet]) -> Iterator[tuple[Ground, Source]]:
    """The facts of rule sets."""
    return ((ground(fact.atom, {}), Stated(rules.name, fact.atom.span)) for rules in rule_sets for fact in rules.facts)


def lean(rules: Sequence[Rule]) -> list[Rule]:
    """The rules without those that apply to every triple whatever it is, such as eq-ref: few proofs need them, and they derive the most."""
    return [rule for rule in rules if not _universal(rule)]


def _universal(rule: Rule) -> bool:
    asked = [part for part in rule.body if isinstance(part, Atom)]
    return (len(asked) == 1 and asked[0].predicate == TRIPLE and len(set(asked[0].terms)) == 3
            and all(isinstance(term, Variable) for term in asked[0].terms))


def _merged(parts: Iterable[Given]) -> Given:
    merged: Given = {}
    for part in parts:
        for fact, sources in part.items():
            merged[fact] = tuple(dict.fromkeys((*merged[fact], *sources))) if fact in merged else sources
    return merged
