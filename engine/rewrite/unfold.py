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
from engine.ir.statement import Ask, Construct, Describe, Select, Statement
from engine.ir.terms import RDF_TYPE, Constant, PatternTerm, Term, Variable, one_of
from engine.rewrite.context import Context

BACKGROUND = "urn:thalweg:background"


def unfold(statement: Statement, context: Context) -> Statement:
    """Every triple pattern becomes the distinct union of itself and the rule bodies that derive it."""
    if context.rules is None:
        return statement
    query = statement.query
    pattern = _Unfolder(context).rewrite(query.pattern, inner=False)
    match query:
        case Select() | Construct() | Ask() | Describe():
            return replace(statement, query=replace(query, pattern=pattern))


@dataclass
class _Unfolder:
    context: Context

    def rewrite(self, pattern: Pattern, inner: bool) -> Pattern:
        """`inner` is inside WINDOW or GRAPH, where the background's own facts do not show (design: "Entailment of a query")."""
        match pattern:
            case BGP(triples=triples):
                return self._bgp(pattern, triples, inner)
            case WindowPattern() | GraphPattern():
                return replace(pattern, pattern=self.rewrite(pattern.pattern, True))
            case LeftJoin(condition=condition):
                changed = None if condition is None else self._expression(condition, inner)
                return replace(pattern, left=self.rewrite(pattern.left, inner), right=self.rewrite(pattern.right, inner), condition=changed)
            case Join() | Union() | Minus():
                return replace(pattern, left=self.rewrite(pattern.left, inner), right=self.rewrite(pattern.right, inner))
            case Filter(condition=condition):
                return replace(pattern, pattern=self.rewrite(pattern.pattern, inner), condition=self._expression(condition, inner))
            case Extend(expression=expression):
                return replace(pattern, pattern=self.rewrite(pattern.pattern, inner), expression=self._expression(expression, inner))
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


def alternatives(triple: TriplePattern, rules: RuleSet) -> list[Pattern]:
    """The pattern itself and the rule bodies that derive it; bodies that differ in one constant become one `OneOf`."""
    lists: dict[tuple[object, ...], set[str]] = defaultdict(set)
    tables: dict[tuple[object, ...], list[tuple[Constant, ...]]] = defaultdict(list)
    origins: dict[tuple[object, ...], set[str]] = defaultdict(set)
    for rule in rules.rules:
        assert isinstance(rule.head, Atom) and isinstance(rule.body[0], Atom)
        unified = _unify(triple.terms, rule.head.terms)
        if unified is None:
            continue
        renaming, bound = unified
        body = tuple(_renamed(t, renaming, triple) for t in rule.body[0].terms)
        hole = 2 if body[1] == Constant(RDF_TYPE) and isinstance(body[2], Constant) else 1
        shape = tuple(None if i == hole else t for i, t in enumerate(body))
        key = (shape, hole, tuple(sorted(bound)), len(rule.body) > 1)
        origins[key].update(rule.origin)
        constant = body[hole]
        assert isinstance(constant, Constant)
        if bound:
            tables[key].append((constant, *(bound[v] for v in sorted(bound))))
        else:
            lists[key].add(constant.token)
    return _branches(triple, lists, tables, origins)


def _branches(triple: TriplePattern, lists: dict[tuple[object, ...], set[str]],
              tables: dict[tuple[object, ...], list[tuple[Constant, ...]]], origins: dict[tuple[object, ...], set[str]]) -> list[Pattern]:
    own: Pattern = BGP((triple,), triple.span)
    result: list[Pattern] = []
    for key, tokens in lists.items():
        shape, hole, _, guarded = key
        terms = list(shape)  # type: ignore[call-overload]
        if not guarded and isinstance(triple.terms[hole], Constant) and _same_but(triple.terms, terms, hole):  # type: ignore[index, arg-type]
            terms[hole] = one_of({*tokens, triple.terms[hole].token})  # type: ignore[index, union-attr]
            own = BGP((_made(terms, triple, origins[key]),), triple.span)
            continue
        terms[hole] = one_of(tokens)  # type: ignore[index]
        result.append(_guarded(BGP((_made(terms, triple, origins[key]),), triple.span), terms, bool(guarded)))
    for number, (key, rows) in enumerate(tables.items()):
        shape, hole, names, guarded = key
        terms = list(shape)  # type: ignore[call-overload]
        fresh = Variable(f".rule{number}")
        terms[hole] = fresh  # type: ignore[index]
        body = _guarded(BGP((_made(terms, triple, origins[key]),), triple.span), terms, bool(guarded))
        result.append(Join(body, Values((fresh, *names), tuple(sorted(set(rows))))))  # type: ignore[misc]
    return [own, *result]


def _same_but(terms: tuple[PatternTerm, ...], shape: list[PatternTerm | None], hole: int) -> bool:
    return all(i == hole or terms[i] == shape[i] for i in range(3))


def _guarded(pattern: Pattern, terms: list[PatternTerm], guarded: bool) -> Pattern:
    """rdfs3 gives no type to a literal."""
    if not guarded or not isinstance(terms[2], Variable):
        return pattern
    return Filter(ex.Call("!", (ex.Call("ISLITERAL", (terms[2],)),)), pattern)


def _made(terms: list[PatternTerm], triple: TriplePattern, origin: set[str]) -> TriplePattern:
    return TriplePattern(terms[0], terms[1], terms[2], triple.span, tuple(sorted(origin)))


def _unify(pattern: tuple[PatternTerm, ...], head: tuple[Term, ...]) -> tuple[dict[Variable, PatternTerm], dict[Variable, Constant]] | None:
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


def _renamed(term: Term, renaming: dict[Variable, PatternTerm], triple: TriplePattern) -> PatternTerm:
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
