"""The dataset of a statement: which windows and graphs its patterns look at (RSP-QL, section "RSP-QL dataset"), and of one that uses rules
closures in their place (docs/architecture.md, "Entailment of a query"); what is asked of such closures.

The background is the FROM graphs together with the USING GRAPH ones, which count for what follows from them but are not answers
themselves. A window, an item of it or a named graph is its closure together with the background, without what that entails alone.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.facts import pieces
from engine.ir.expressions import Call, Expression
from engine.ir.rules import TRIPLE, Atom, Negation, Rule, Table, Test
from engine.ir.statement import BEHIND, OWN_WINDOW, Construct, Program, Select, Statement, StreamSource, TimeWindow
from engine.ir.terms import Constant, Variable
from engine.plan.derive import is_axiom, row_of
from engine.plan.kept import conjunction
from engine.plan.nodes import (AtomsSource, Base, Begun, ClosedSource, ItemsSource, MergedSource, Plan, Project, RestSource, Scan, Source,
                               StaticSource, TimedSource, ValiditySource, ViewSource, WindowSource, leaf_sources)


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


RulesOf = Callable[[Iterable[str]], tuple[Rule, ...]]
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
        for text in _spelled(rule):
            found.update(text.encode())
    return replace(closed, name=f"c_{found.hexdigest()[:16]}")


def _spelled(rule: Rule) -> Iterator[str]:
    """What tells a rule from others, in pieces. There may be 100,000 axioms, or rows of its tables: the `repr` of a term takes long, that
    of all rows keeps Python from other threads."""
    yield f"\n{(rule.name, rule.role, rule.window_ms)!r}"
    for part in (rule.head, *rule.body):
        match part:
            case Table(variables=variables, rows=rows):
                yield f"\n {variables!r}"
                yield from (repr([[constant.token for constant in row] for row in some]) for some in pieces(rows))
            case Atom(predicate=predicate, terms=terms):
                yield f"\n {(predicate, [term.token if isinstance(term, Constant) else term for term in terms])!r}"
            case _:
                yield f"\n {part!r}"


def entailed(data: Dataset, reasoning: tuple[StaticSource, ...], program: RulesOf, windows: str, alone: bool = True) -> Dataset:
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


def program_plan(statement: Statement, rules: Sequence[Rule], windows: str) -> Begun:
    """The plan of a program under `rules`, of which those that are written are its own; `windows` is as for `closure`."""
    program = statement.query
    assert isinstance(program, Program)
    static = closure([StaticSource(graph.iri) for graph in statement.graphs], None, tuple(rules), statement.streams, windows)
    streamed = closure(list(map(WindowSource, range(len(statement.streams)))), static, tuple(rules), statement.streams, windows)
    assert streamed.has_intervals
    return Begun(streamed, "written", program.variables)


GOAL = "solution"


def goal_plan(statement: Statement, plan: Plan, default: Source, windows: str) -> Scan | None:
    """The solutions of a plan over a statement's default graph as atoms that its closure derives, by one more rule; None where they cannot
    be had so. What follows without negation is monotone, and so is a basic graph pattern with filters over it: as the closure has intervals
    (engine/execution/kept.py), so have the solutions. `windows` is as for `closure`."""
    if not isinstance(statement.query, (Select, Construct)) or _fresh_blanks(statement.query):
        return None
    closed, parts = _streamed(default), conjunction(plan.input if isinstance(plan, Project) else plan)
    if closed is None or parts is None:
        return None
    scans, filters = parts
    if any(scan.source != default or not _plain(scan) for scan in scans):
        return None
    goal = _goal(scans, filters)
    assert isinstance(default, MergedSource) and isinstance(goal.head, Atom)
    background, shows = closed.background, len(default.parts) > 1
    if background is not None and shows:    # an answer may need nothing else
        background = named(replace(background, rules=(*background.rules, goal)), windows)
    own = named(replace(closed, background=background, rules=(*closed.rules, goal)), windows)
    subject, mark, object_, *rest = row_of(goal.head)
    return Scan(AtomsSource((own, background) if background is not None and shows else (own,)), subject, mark, object_, rest=tuple(rest))


def _streamed(default: Source) -> ClosedSource | None:
    """The closure of the windows, where the default graph is that and at most what it stands on, and it has intervals."""
    match default:
        case MergedSource(parts=(ClosedSource(has_intervals=True) as closed, *rest)) if all(part == closed.background for part in rest):
            return closed
    return None


def _plain(scan: Scan) -> bool:
    return scan.graph is None and all(isinstance(term, (Constant, Variable)) for term in scan.terms)


def _goal(scans: Sequence[Scan], filters: Sequence[Expression]) -> Rule:
    """Subjects of generalised RDF, which only rules see, are left out."""
    atoms = [Atom(TRIPLE, tuple(t for t in scan.terms if isinstance(t, (Constant, Variable)))) for scan in scans]
    variables = tuple(dict.fromkeys(t for atom in atoms for t in atom.terms if isinstance(t, Variable)))
    subjects = dict.fromkeys(atom.terms[0] for atom in atoms if isinstance(atom.terms[0], Variable))
    proper = [Test(Call("!", (Call("ISLITERAL", (subject,)),))) for subject in subjects]
    return Rule(Atom(GOAL, variables), (*atoms, *proper, *map(Test, filters)), GOAL, role="goal")


def _fresh_blanks(query: Select | Construct) -> bool:
    """Whether each solution makes blank nodes of its own."""
    return isinstance(query, Construct) and any(v.name.startswith("_:") for t in query.template for v in t.terms if isinstance(v, Variable))
