"""Unfold closed rules into the query, per triple pattern, as a distinct union: nothing derived is ever stored.

>>> from engine.rewrite.rdfs import compile_rdfs, SUB_CLASS
>>> from engine.ir.terms import RDF_TYPE
>>> rules = compile_rdfs([("<Dog>", SUB_CLASS, "<Animal>"), ("<Cat>", SUB_CLASS, "<Animal>")])
>>> pattern = TriplePattern(Variable("x"), Constant(RDF_TYPE), Constant("<Animal>"))
>>> [branch.triples[0].object.tokens for branch in alternatives(pattern, rules)]
[('<Animal>', '<Cat>', '<Dog>')]
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

from engine.ir import expressions as ex
from engine.ir.patterns import (BGP, Distinct, Extend, Filter, GraphPattern, Group, Join, LeftJoin, Minus, OrderBy, Pattern,
                                Project, Slice, TriplePattern, Union, Values, WindowPattern)
from engine.ir.rules import Atom, RuleSet
from engine.ir.statement import BACKGROUND, Ask, Construct, Describe, Select, Statement
from engine.ir.terms import RDF_TYPE, Constant, PatternTerm, Term, Variable, one_of
from engine.rewrite.context import Context

_HOLE = Variable(".hole")


def unfold(statement: Statement, context: Context) -> Statement:
    """Every triple pattern becomes the distinct union of itself and the rule bodies that derive it."""
    if context.rules is None:
        return statement
    query = statement.query
    pattern = _Unfolder(context).rewrite(query.pattern, inner=False)
    match query:
        case Select() | Construct() | Ask() | Describe():
            return replace(statement, query=replace(query, pattern=pattern))
    return statement


@dataclass
class _Unfolder:
    context: Context

    def rewrite(self, pattern: Pattern, inner: bool) -> Pattern:
        """`inner` is inside WINDOW or GRAPH, where the background's own facts do not show (docs/architecture.md, "Entailment of a
        query")."""
        match pattern:
            case BGP(triples=triples):
                return self._bgp(pattern, triples, inner)
            case WindowPattern() | GraphPattern():
                return replace(pattern, pattern=self.rewrite(pattern.pattern, True))
            case Join() | LeftJoin() | Union() | Minus():
                both = replace(pattern, left=self.rewrite(pattern.left, inner), right=self.rewrite(pattern.right, inner))
                if isinstance(both, LeftJoin) and both.condition is not None:
                    return replace(both, condition=self._expression(both.condition, inner))
                return both
            case Filter():
                below = self.rewrite(pattern.pattern, inner)
                return replace(pattern, pattern=below, condition=self._expression(pattern.condition, inner))
            case Extend():
                below = self.rewrite(pattern.pattern, inner)
                return replace(pattern, pattern=below, expression=self._expression(pattern.expression, inner))
            case Group() | Project() | Distinct() | OrderBy() | Slice():
                return replace(pattern, pattern=self.rewrite(pattern.pattern, inner))
        return pattern

    def _expression(self, expression: ex.Expression, inner: bool) -> ex.Expression:
        match expression:
            case ex.Exists():
                return replace(expression, pattern=self.rewrite(expression.pattern, inner))
            case ex.Call():
                return replace(expression, args=tuple(self._expression(a, inner) for a in expression.args))
        return expression

    def _bgp(self, pattern: BGP, triples: tuple[TriplePattern, ...], inner: bool) -> Pattern:
        """Patterns that no rule touches stay together; each other one becomes a union joined to them."""
        assert self.context.rules is not None
        plain: list[TriplePattern] = []
        unfolded: list[Pattern] = []
        for triple in triples:
            branches = alternatives(triple, self.context.rules)
            hidden = inner and self._in_background(triple)
            derived = _derived_facts(triple, self.context.rules) if not inner else None
            if len(branches) == 1 and isinstance(branches[0], BGP) and not hidden and derived is None \
                    and branches[0].triples[0].terms == triple.terms:
                plain.append(triple)
            else:
                unfolded.append(self._union(triple, [*branches, *([derived] if derived else [])], hidden))
        result: Pattern | None = BGP(tuple(plain), pattern.span) if plain or not unfolded else None
        for part in unfolded:
            result = part if result is None else Join(result, part)
        assert result is not None
        return result

    def _union(self, triple: TriplePattern, branches: list[Pattern], hidden: bool) -> Pattern:
        union = branches[0]
        for branch in branches[1:]:
            union = Union(union, branch)
        variables = tuple(dict.fromkeys(t for t in triple.terms if isinstance(t, Variable)))
        result: Pattern = Distinct(Project(union, variables)) if variables else Distinct(Project(union, ()))
        if hidden:
            background = GraphPattern(Constant(f"<{BACKGROUND}>"), result)
            result = Filter(ex.Exists(background, negated=True), result)
        return result

    def _in_background(self, triple: TriplePattern) -> bool:
        return any(all(not isinstance(term, Constant) or term.token == token for term, token in zip(triple.terms, fact))
                   for fact in self.context.background)


@dataclass(frozen=True, slots=True)
class _Shape:
    """Rule bodies that differ in the constant at place `hole` only. `bound` are pattern variables that the heads bind to constants,
    `guarded` bodies give no type to a literal."""

    terms: tuple[PatternTerm, ...]
    hole: int
    bound: tuple[Variable, ...]
    guarded: bool

    def filled(self, term: PatternTerm, triple: TriplePattern, origin: set[str]) -> TriplePattern:
        """The body with `term` in its hole."""
        s, p, o = (term if place == self.hole else t for place, t in enumerate(self.terms))
        return TriplePattern(s, p, o, triple.span, tuple(sorted(origin)))

    def pattern(self, made: TriplePattern) -> Pattern:
        """The body as a pattern."""
        below = BGP((made,), made.span)
        if not self.guarded or not isinstance(made.object, Variable):
            return below
        return Filter(ex.Call("!", (ex.Call("ISLITERAL", (made.object,)),)), below)


def alternatives(triple: TriplePattern, rules: RuleSet) -> list[Pattern]:
    """The pattern itself and the rule bodies that derive it; bodies that differ in one constant become one `OneOf`."""
    rows: dict[_Shape, set[tuple[Constant, ...]]] = defaultdict(set)
    origins: dict[_Shape, set[str]] = defaultdict(set)
    for rule in rules.rules:
        assert isinstance(rule.head, Atom) and isinstance(rule.body[0], Atom)
        unified = _unify(triple.terms, rule.head.terms)
        if unified is None:
            continue
        renaming, bound = unified
        body = tuple(_renamed(t, renaming) for t in rule.body[0].terms)
        hole = 2 if body[1] == Constant(RDF_TYPE) and isinstance(body[2], Constant) else 1
        constant = body[hole]
        assert isinstance(constant, Constant)
        shape = _Shape(tuple(_HOLE if i == hole else t for i, t in enumerate(body)), hole, tuple(sorted(bound)), len(rule.body) > 1)
        rows[shape].add((constant, *(bound[v] for v in shape.bound)))
        origins[shape].update(rule.origin)
    own = triple
    branches: list[Pattern] = []
    for number, (shape, constants) in enumerate(rows.items()):
        given = triple.terms[shape.hole]
        if shape.bound:
            fresh = Variable(f".rule{number}")
            table = Values((fresh, *shape.bound), tuple(sorted(constants)))
            branches.append(Join(shape.pattern(shape.filled(fresh, triple, origins[shape])), table))
        elif not shape.guarded and isinstance(given, Constant) and shape.filled(given, triple, set()).terms == triple.terms:
            own = shape.filled(one_of({given.token, *(c.token for c, in constants)}), triple, origins[shape])
        else:
            branches.append(shape.pattern(shape.filled(one_of({c.token for c, in constants}), triple, origins[shape])))
    return [BGP((own,), triple.span), *branches]


Unified = tuple[dict[Variable, PatternTerm], dict[Variable, Constant]]


def _unify(pattern: tuple[PatternTerm, ...], head: tuple[Term, ...]) -> Unified | None:
    """Rule variables -> pattern terms, and pattern variables that the head binds to constants; None where they differ."""
    renaming: dict[Variable, PatternTerm] = {}
    bound: dict[Variable, Constant] = {}
    for wanted, given in zip(pattern, head):
        if isinstance(given, Variable):
            renaming[given] = wanted
        elif isinstance(wanted, Variable):
            if bound.setdefault(wanted, given) != given:
                return None
        elif wanted != given:
            return None
    if set(bound) & set(renaming.values()):
        return None
    return renaming, bound


def _renamed(term: Term, renaming: dict[Variable, PatternTerm]) -> PatternTerm:
    if isinstance(term, Constant):
        return term
    return renaming.get(term, Variable(f".any_{term.name}"))


def _derived_facts(triple: TriplePattern, rules: RuleSet) -> Values | None:
    """Consequences of the TBox alone (rdfs5, rdfs11) that match the pattern."""
    variables = tuple(dict.fromkeys(t for t in triple.terms if isinstance(t, Variable)))
    rows = set()
    for fact in rules.facts:
        bindings: dict[Variable, Constant] = {}
        for term, value in zip(triple.terms, fact.atom.terms):
            assert isinstance(value, Constant)
            if isinstance(term, Variable) and bindings.setdefault(term, value) == value or term == value:
                continue
            break
        else:
            rows.add(tuple(bindings[v] for v in variables))
    return Values(variables, tuple(sorted(rows))) if rows else None
