"""What an atom unfolds to, as a pattern of the query: a distinct union of scans and of joins of such unions.

What is certain not to be in static graphs needs no look at run time.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from engine.ir import expressions as ex
from engine.ir.patterns import BGP, Distinct, Extend, Filter, GraphPattern, Join, Pattern, Project, TriplePattern, Union, Values
from engine.ir.rules import TRIPLE, Assign, Atom, Formula, Negation, Test, rule_variables, variables_in
from engine.ir.spans import Span
from engine.ir.substitution import replaced_in, value
from engine.ir.terms import RDF_TYPE, Constant, PatternTerm, Term, Variable, one_of
from engine.records import Triple
from engine.rewrite.alternatives import Asked, Body, Shape
from engine.rewrite.tables import Choices, Rows


class Statics:
    """The properties of some triples, and the classes of rdf:type."""

    def __init__(self, triples: Iterable[Triple]) -> None:
        self._objects: dict[str, set[str]] = defaultdict(set)
        for _, p, o in triples:
            self._objects[p].add(o if p == RDF_TYPE else "")

    def may_hold(self, atom: Atom, columns: tuple[Variable, ...] = (), rows: Rows = frozenset([()])) -> bool:
        """Whether some triple may match the atom in one of the rows."""
        if atom.predicate != TRIPLE or not self._objects:
            return False
        properties, classes = _tokens(atom.terms[1], columns, rows), _tokens(atom.terms[2], columns, rows)
        found = self._objects.keys() if properties is None else self._objects.keys() & properties
        return any(p != RDF_TYPE or classes is None or not self._objects[p].isdisjoint(classes) for p in found)

    def may_entail(self, asked: Asked) -> bool:
        """Whether some triples may be enough for an alternative."""
        return (any(self._single(shape, rows) for shape, rows in asked.single.items())
                or any(all(map(self.may_entail, body.positive)) for body in asked.bodies))

    def _single(self, shape: Shape, rows: Rows) -> bool:
        return self.may_hold(shape.atom, shape.columns, rows)


def _tokens(term: Term, columns: tuple[Variable, ...], rows: Rows) -> set[str] | None:
    """What a term may be; None: anything."""
    if isinstance(term, Constant):
        return {term.token}
    return {row[columns.index(term)] for row in rows} if term in columns else None


BehindTest = Callable[[Atom, tuple[Variable, ...], Rows], bool]


@dataclass(frozen=True, slots=True)
class Branches:
    """Writes patterns over the graph at hand; where `behind` says that it may, a triple inside a join may also come from the graph
    `background`; with `everywhere`, any triple."""

    background: str
    behind: BehindTest
    span: Span | None = None
    everywhere: bool = False

    def plain(self, asked: Asked) -> TriplePattern | None:
        """The atom as one triple pattern, if it unfolds to no more than that (a hierarchy included)."""
        if asked.bodies or len(asked.single) != 1 or asked.atom.predicate != TRIPLE:
            return None
        (shape, rows), = asked.single.items()
        return _triple(shape, rows, asked.visible, self.span, asked.origins[shape]) if not shape.tests and not shape.equal else None

    def pattern(self, asked: Asked, joined: bool = False) -> Pattern:
        """The solutions of an atom, each once. `joined`: it is part of a join, whose parts may be of either graph and any term."""
        plain = self.plain(asked)
        if plain is not None and not self._may_be_behind(*next(iter(asked.single.items())), joined):
            return BGP((plain,), span=self.span)
        branches = list(self._all(asked, joined))
        return Distinct(Project(reduce(Union, branches), asked.visible)) if branches else Values(asked.visible, ())

    def _all(self, asked: Asked, joined: bool) -> Iterator[Pattern]:
        for shape, rows in asked.single.items():
            if shape.atom.predicate == TRIPLE:
                branch = self._single(shape, rows, asked, joined)
                yield branch if joined else self._shown(branch, asked, shape.atom)
        for body in asked.bodies:
            yield self._body(body) if joined else self._shown(self._body(body), asked, None)

    def _single(self, shape: Shape, rows: Rows, asked: Asked, joined: bool) -> Pattern:
        origins = asked.origins[shape]
        shape, rows = _with_constants(shape, rows, asked.visible)
        triple = _triple(shape, rows, asked.visible, self.span, origins)
        subject, property_, object_ = shape.atom.terms
        own = BGP((triple or TriplePattern(subject, property_, object_, span=self.span, origin=tuple(sorted(origins))),), span=self.span)
        behind = self._may_be_behind(shape, rows, joined)
        branch: Pattern = Union(own, GraphPattern(Constant(f"<{self.background}>"), own)) if behind else own
        if triple is None and shape.columns:
            branch = Join(branch, _values(Choices(shape.columns, rows)))
        return _equal(_tested(branch, shape.tests), shape.equal)

    def _may_be_behind(self, shape: Shape, rows: Rows, joined: bool) -> bool:
        return (joined or self.everywhere) and self.behind(shape.atom, shape.columns, rows)

    def _body(self, body: Body) -> Pattern:
        """Scans that stand for themselves together, then what unfolds, then what is computed, denied and tested."""
        literals = [part for part in body.parts if isinstance(part, (Atom, Negation))]
        unfolded = [self.pattern(asked, True) for part, asked in zip(literals, body.atoms) if isinstance(part, Atom)]
        triples = tuple(triple for part in unfolded if isinstance(part, BGP) for triple in part.triples)
        parts: list[Pattern] = [BGP(triples, span=self.span)] if triples else []
        parts += [part for part in unfolded if not isinstance(part, BGP)]
        if body.choices.columns:
            parts.append(_values(body.choices))
        found = reduce(Join, parts) if parts else BGP(())
        bound = {v for part in literals if isinstance(part, Atom) for v in rule_variables(part)} | set(body.choices.columns)
        denied = {id(part): asked for part, asked in zip(literals, body.atoms) if isinstance(part, Negation)}
        waiting = [part for part in body.parts if not isinstance(part, Atom)]
        while waiting:
            ready = next((part for part in waiting if _read(part) <= bound), waiting[0])
            waiting.remove(ready)
            match ready:
                case Assign(variable=variable, expression=expression):
                    found = _assigned(found, variable, expression, variable in bound)
                    bound.add(variable)
                case Test():
                    found = _tested(found, (ready,))
                case Negation():
                    found = Filter(ex.Exists(self.pattern(denied[id(ready)], True), negated=True), found)
        return _equal(found, body.equal)

    def _shown(self, branch: Pattern, asked: Asked, atom: Atom | None) -> Pattern:
        """Without what is not RDF: rules may derive triples of a literal or through a blank node. `atom` is the triple of the data that
        the branch scans."""
        subject, property_, _ = asked.atom.terms
        of = atom.terms if atom is not None else (None, None, None)
        tests: list[ex.Expression] = []
        if isinstance(subject, Variable) and of[0] != subject:
            tests.append(ex.Call("!", (ex.Call("ISLITERAL", (subject,)),)))
        if isinstance(property_, Variable) and of[1] != property_:
            tests.append(ex.Call("ISIRI", (property_,)))
        return Filter(ex.conj(*tests), branch) if tests else branch


def _with_constants(shape: Shape, rows: Rows, visible: Sequence[Variable]) -> tuple[Shape, Rows]:
    """A shape beside a table in which a variable that can be one constant only is that constant."""
    choices = Choices(shape.columns, rows)
    single = choices.fixed(visible)
    left = choices.only([v for v in shape.columns if v not in single])
    atom = replace(shape.atom, terms=tuple(value(term, single) for term in shape.atom.terms))
    tests = tuple(Test(replaced_in(test.condition, single)) for test in shape.tests)
    return Shape(atom, tests, left.columns, shape.equal), left.rows


def _triple(shape: Shape, rows: Rows, visible: Sequence[Variable], span: Span | None, origin: set[str]) -> TriplePattern | None:
    """A shape as one triple pattern: without a table, or with a list of constants that binds nothing."""
    terms: tuple[PatternTerm, ...] = shape.atom.terms
    if shape.columns:
        column, *more = shape.columns
        used = [t for t in terms if t == column]
        if more or column in visible or len(used) != 1 or any(column in ex.variables_of(test.condition) for test in shape.tests):
            return None
        terms = tuple(one_of({token for token, in rows}) if t == column else t for t in terms)
    subject, property_, object_ = terms
    return TriplePattern(subject, property_, object_, span=span, origin=tuple(sorted(origin)))


def _values(choices: Choices) -> Values:
    return Values(choices.columns, tuple(tuple(map(Constant, row)) for row in sorted(choices.rows)))


def _tested(pattern: Pattern, tests: Sequence[Test]) -> Pattern:
    return Filter(ex.conj(*(test.condition for test in tests)), pattern) if tests else pattern


def _equal(pattern: Pattern, equal: Sequence[tuple[Variable, Variable]]) -> Pattern:
    for variable, same in equal:
        pattern = Extend(pattern, variable, same)
    return pattern


def _assigned(pattern: Pattern, variable: Variable, expression: ex.Expression, bound: bool) -> Pattern:
    """An error makes the body false, and so does another value than the one that is bound already."""
    if not bound:
        return Filter(ex.Call("BOUND", (variable,)), Extend(pattern, variable, expression))
    same = Variable(f"{variable.name}=")
    return Filter(ex.Call("SAMETERM", (same, variable)), Extend(pattern, same, expression))


def _read(part: Formula) -> set[Variable]:
    return set(ex.variables_of(part.expression) if isinstance(part, Assign) else variables_in(part))


def as_atom(triple: TriplePattern) -> Atom:
    """A triple pattern of a query as an atom. Raises ValueError for one with a list of constants."""
    terms: list[Term] = []
    for term in triple.terms:
        if not isinstance(term, (Variable, Constant)):
            raise ValueError("a pattern that is unfolded already")
        terms.append(term)
    return Atom(TRIPLE, tuple(terms), span=triple.span)
