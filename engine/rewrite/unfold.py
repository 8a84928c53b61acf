"""Rules that are not recursive are unfolded into the query, per triple pattern, as a distinct union: nothing derived is ever stored.

What a pattern looks at decides (docs/architecture.md, "Entailment of a query"): a window or named graph is seen together with the
background, and what that entails alone is hidden. Static graphs are known, so most of the tests against them are made here.

``{ ?x a :Pet }`` under two sub-classes becomes ``{ ?x a (:Pet | :Cat | :Dog) }``; a rule with several atoms becomes a sub-SELECT
DISTINCT of a join.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from engine.ir import expressions as ex
from engine.ir.patterns import (BGP, Alternative, Distinct, Filter, GraphPattern, Inverse, Join, Link, Path, PathPattern, Pattern, Project,
                                Repeat, TriplePattern, Union, WindowPattern, rebuilt)
from engine.ir.rules import TRIPLE, Atom, Rule
from engine.ir.statement import BACKGROUND, REASONING, Describe, Program, Statement
from engine.ir.terms import Constant, OneOf, Term, Variable
from engine.records import Triple
from engine.rewrite.alternatives import Asked, NotUnfolded, Resolution
from engine.rewrite.branches import Branches, Statics, as_atom
from engine.rewrite.tables import Rows

RulesFor = Callable[[Iterable[str]], tuple[Rule, ...]]
"""The rules to apply, by the IRIs of the static graphs whose schema counts."""


def unfold(statement: Statement, program: RulesFor, content: Callable[[Iterable[str]], Sequence[Triple]]) -> Statement:
    """The statement with its rules unfolded; `content` gives the triples of static graphs. The graphs BACKGROUND and REASONING
    are then the FROM and USING ones together, and the USING ones. Raises NotUnfolded, with the reason."""
    if isinstance(statement.query, (Describe, Program)):
        raise NotUnfolded("all that follows is asked for")
    unfolder = _Unfolder(statement, program, content)
    return replace(statement, query=replace(statement.query, pattern=unfolder.rewrite(statement.query.pattern, unfolder.default)))


@dataclass(frozen=True, slots=True)
class _Place:
    """What a pattern looks at: under which rules, beside which static triples; what they entail by the rules `hidden` does not show."""

    rules: Resolution
    background: str
    behind: Statics
    hidden: Resolution | None
    window: bool = False
    item: bool = False
    own: Resolution | None = None   # of the default graph without the graphs to reason with

    def branches(self, pattern: TriplePattern | PathPattern) -> Branches:
        """What writes the alternatives of a pattern here."""
        return Branches(self.background, self._may_be_behind, pattern.span, self.hidden is not None and self.hidden is not self.rules)

    def hides(self, atom: Atom) -> Asked | None:
        """What of an atom is hidden here, None if certainly nothing is."""
        asked = self.hidden.ask(atom) if self.hidden is not None else None
        return asked if asked is not None and self.behind.may_entail(asked) else None

    def _may_be_behind(self, atom: Atom, columns: tuple[Variable, ...], rows: Rows) -> bool:
        found = self.behind.may_hold(atom, columns, rows)
        if found and self.item:
            raise NotUnfolded("rules join single items with static graphs")
        return found


class _Unfolder:
    """Rewrites the patterns of one statement."""

    def __init__(self, statement: Statement, program: RulesFor, content: Callable[[Iterable[str]], Sequence[Triple]]) -> None:
        self._program, self._content = program, content
        self._windows = {source.name for source in statement.streams if source.name is not None}
        self._named = {source.iri for source in statement.graphs if source.named}
        shown = [source.iri for source in statement.graphs if not source.named]
        reasoning = [source.iri for source in statement.reasoning_graphs]
        self._all = (*shown, *reasoning)
        rules = Resolution(program(self._all))
        self.inner = _Place(rules, BACKGROUND, Statics(content(self._all)), rules, window=True)
        self.default = _Place(rules, REASONING, Statics(()), None)
        if reasoning:
            hidden = rules if program(reasoning) == program(self._all) else Resolution(program(reasoning))
            self.default = _Place(rules, REASONING, Statics(content(reasoning)), hidden, own=Resolution(program(shown)))

    def rewrite(self, pattern: Pattern, place: _Place) -> Pattern:
        """A pattern with its triple patterns unfolded."""
        match pattern:
            case BGP(triples=triples):
                return self._bgp(pattern, triples, place)
            case PathPattern():
                return self._path(pattern, place)
            case WindowPattern():
                place = self.inner
            case GraphPattern():
                place = self._graph(pattern.name, place)
        return rebuilt(pattern, lambda inner: self.rewrite(inner, place), lambda expression: self._expression(expression, place))

    def _expression(self, expression: ex.Expression, place: _Place) -> ex.Expression:
        if isinstance(expression, ex.Exists):
            return replace(expression, pattern=self.rewrite(expression.pattern, place))
        return ex.with_parts(expression, lambda part: self._expression(part, place))

    def _graph(self, name: Term, place: _Place) -> _Place:
        """Inside a window GRAPH is an item. The schema of a named graph counts there, so those that differ from the rest have rules of
        their own."""
        if place.window:
            return replace(self.inner, item=True)
        iris = self._named if isinstance(name, Variable) else {name.token[1:-1]} & self._named
        programs = {self._program((*self._all, iri)) for iri in iris}
        if isinstance(name, Variable) and self._windows:
            programs.add(self._program(self._all))
        if len(programs) > 1:
            raise NotUnfolded("named graphs have schemas of their own")
        rules = Resolution(*programs) if programs - {self._program(self._all)} else self.inner.rules
        return replace(self.inner, window=False, rules=rules)

    def _bgp(self, pattern: BGP, triples: tuple[TriplePattern, ...], place: _Place) -> Pattern:
        """Patterns that stay one triple pattern stay together; each other one becomes a union joined to them."""
        plain: list[TriplePattern] = []
        unfolded: list[Pattern] = []
        for triple in triples:
            found, hidden = place.branches(triple).pattern(place.rules.ask(as_atom(triple))), place.hides(as_atom(triple))
            if hidden is not None:
                found = self._without(hidden, found, triple, place)
            if isinstance(found, BGP):
                plain += found.triples
            else:
                unfolded.append(found)
        together = [BGP(tuple(plain), span=pattern.span)] if plain or not unfolded else []
        return reduce(Join, [*together, *unfolded])

    @staticmethod
    def _without(hidden: Asked, found: Pattern, triple: TriplePattern, place: _Place) -> Pattern:
        """What holds, without what the static graphs entail by themselves; of the default graph with what it entails by itself."""
        branches = Branches("", lambda atom, columns, rows: False, triple.span)
        behind = GraphPattern(Constant(f"<{place.background}>"), branches.pattern(hidden))
        left: Pattern = Filter(ex.Exists(behind, negated=True), found)
        if place.own is None:
            return left
        return Distinct(Project(Union(left, branches.pattern(place.own.ask(as_atom(triple)))), hidden.visible))

    def _path(self, pattern: PathPattern, place: _Place) -> Pattern:
        """A path whose links stay what they are, or become alternatives where no one counts its solutions."""
        return replace(pattern, path=self._steps(pattern, pattern.path, place, False))

    def _steps(self, pattern: PathPattern, path: Path, place: _Place, as_set: bool) -> Path:
        match path:
            case Link(predicate=predicate):
                links = self._links(pattern, predicate, place)
                if len(links) == 1 and links[0] == predicate:
                    return path
                if as_set:
                    steps: list[Path] = [Link(link) for link in links]
                    return reduce(Alternative, steps)
            case Inverse(path=inner):
                return Inverse(self._steps(pattern, inner, place, as_set))
            case Repeat(path=inner, least=1):
                return replace(path, path=self._steps(pattern, inner, place, True))
        raise NotUnfolded("a path asks for more than one property")

    def _links(self, pattern: PathPattern, predicate: Constant, place: _Place) -> list[Constant]:
        """The properties whose triples are those of a property."""
        atom = Atom(TRIPLE, (Variable(".from"), predicate, Variable(".to")))
        found = place.branches(pattern).pattern(place.rules.ask(atom))
        if not isinstance(found, BGP) or place.hides(atom) is not None or (found.triples[0].subject, found.triples[0].object) != (
                atom.terms[0], atom.terms[2]):
            raise NotUnfolded("a path is of a property that follows in several ways")
        alone = found.triples[0]
        match alone.predicate:
            case OneOf(tokens=tokens):
                return [Constant(token) for token in tokens]
            case Constant():
                return [alone.predicate]
        raise NotUnfolded("a path is of any property")
