"""Rules over facts with intervals in normal form: what a plan of interval relations is made of (engine/plan/intervals.py).

A rule of a normal form says one thing: an operator over one atom (``q(x) <- diamond-minus[0s,5s] p(x)``), a conjunction of atoms, tests,
assignments and tables, an atom without what is negated (``q(x) <- p(x), not n(x)``), or where an atom holds by its instant
(``@t q(x) <- p(x, t)``). What is nested gets predicates of its own, whose names begin with a full stop, which no document can write.
Formulas, and rules, that are equal but for the names of their variables are one (Wałęga et al., "Stream reasoning with DatalogMTL",
definition 5 and proposition 6; LARS windows become distances of the operators inside).

>>> from engine.ir.printer import show_group
>>> from engine.ir.notation import show_rule
>>> from engine.timeline import operator
>>> nested = BoxMinus(operator(0, 2), DiamondMinus(operator(0, 1), Atom("p", (Variable("x"),))))
>>> both = (nested, Atom("r", (Variable("x"),)))
>>> for rule in normal_form(RuleSet("", (Rule(Atom("q", (Variable("x"),)), both),))).rules:
...     print(show_rule(rule, show_group))
.diamond 1(?.1) <- diamond-minus[0s,1ms] p(?.1) .
.box 2(?.1) <- box-minus[0s,2ms] .diamond 1(?.1) .
q(?.1) <- .box 2(?.1), r(?.1) .

Rules that say only that one relation holds where another does (subclasses, subproperties) come without those that others imply: a hierarchy
has all its ancestors, and an interval relation needs its parents only.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.ir.rules import (ALWAYS_HELD, Assign, At, Atom, BoxMinus, BoxPlus, DiamondMinus, Falsum, Formula, Head, Negation, Rule, RuleSet,
                             Table, Test, WindowFormula, rule_variables, variables_in)
from engine.ir.spans import Diagnostic, DiagnosticError
from engine.ir.strata import reachable
from engine.ir.substitution import mapped
from engine.ir.terms import Constant, Term, Variable
from engine.timeline import Interval


@dataclass(frozen=True, slots=True)
class NormalForm:
    """The rules; `checks` are the predicates that stand for rules with head ``false``, with these rules."""

    rules: tuple[Rule, ...]
    checks: tuple[tuple[str, Rule], ...] = ()


def normal_form(program: RuleSet) -> NormalForm:
    """The normal form of a program. Raises DiagnosticError for what no plan of interval relations evaluates."""
    made = _Normaliser(program.granularity_ms)
    for rule in without_implied_copies(program.rules):
        made.add(rule)
    return NormalForm(tuple(made.rules.values()), tuple(made.checks))


class _Normaliser:
    def __init__(self, granularity_ms: int) -> None:
        self.granule = 2 * granularity_ms
        self.rules: dict[tuple[Head, tuple[Formula, ...]], Rule] = {}
        self.checks: list[tuple[str, Rule]] = []
        self.known: dict[tuple[object, ...], str] = {}
        self.rule: Rule | None = None

    def add(self, rule: Rule) -> None:
        """Add what a rule becomes, unless it is there."""
        self.rule = rule
        if rule.window_ms is not None:
            raise self.refusal("a window of Streaming RIF-Core is not known to interval relations")
        body, head = rule.body, rule.head
        if isinstance(head, Falsum):
            bound = sorted({v for formula in body for v in rule_variables(formula)})
            head = Atom(f".false {len(self.checks) + 1}", tuple(bound))
            self.checks.append((head.predicate, rule))
        if not any(isinstance(part, (Atom, DiamondMinus, BoxMinus, At, WindowFormula)) for part in body):
            body = (Atom(ALWAYS_HELD, ()), *body)
        match head:
            case Atom():
                self.plain(head, body)
            case BoxPlus(distance=distance, body=atom):
                self.put(atom, (DiamondMinus(distance, self.one("head", _in_order(atom), body)),))
            case At(body=Atom()):
                self.put(head, (self.one("head", _in_order(head), body),))
            case _:
                raise self.refusal("no head of this form")

    def one(self, kind: str, variables: tuple[Variable, ...], body: tuple[Formula, ...]) -> Atom:
        """An atom that holds of these variables where a body does."""
        if len(body) == 1 and isinstance(body[0], Atom):
            return body[0]
        names = _names((*variables, *_in_order(*body)))
        key = tuple(names[v] for v in variables), tuple(_renamed(part, names) for part in body)
        if key not in self.known:
            self.known[key] = f".{kind} {len(self.known) + 1}"
            self.plain(Atom(self.known[key], variables), body)
        return Atom(self.known[key], variables)

    def plain(self, head: Atom, body: tuple[Formula, ...]) -> None:
        """Rules for an atom as head."""
        negated = [part for part in body if isinstance(part, Negation)]
        positive = tuple(part for part in body if not isinstance(part, Negation))
        if negated:
            without = tuple(Negation(self.flat(part.body)) for part in negated)
            self.put(head, (self.one("held", _in_order(head, *without), positive), *without))
        elif len(body) == 1 and isinstance(body[0], (DiamondMinus, BoxMinus, At, WindowFormula)):
            self.put(head, (self.single(body[0]),))
        else:
            self.put(head, tuple(part if isinstance(part, (Test, Assign, Table)) else self.flat(part) for part in body))

    def flat(self, formula: Formula) -> Atom:
        """An atom that holds where a formula does."""
        single = formula if isinstance(formula, Atom) else self.single(formula)
        if isinstance(single, Atom):
            return single
        variables = _in_order(single)
        names = _names(variables)
        key = (_renamed(single, names),)
        if key not in self.known:
            kind = {DiamondMinus: "diamond", BoxMinus: "box", At: "at"}.get(type(single), "window")
            self.known[key] = f".{kind} {len(self.known) + 1}"
            self.put(Atom(self.known[key], variables), (single,))
        return Atom(self.known[key], variables)

    def single(self, formula: Formula) -> Formula:
        """A formula with what is inside its operator flattened; a window of time is left around ``@`` only."""
        match formula:
            case DiamondMinus(body=body) | BoxMinus(body=body) | At(body=body):
                return replace(formula, body=self.flat(body))
            case WindowFormula(unit="time", size=size, body=body):
                return self.in_window(size * self.granule, formula, body)
            case WindowFormula(body=Atom() as body):
                return replace(formula, body=DiamondMinus(Interval(0, 0), body))
            case WindowFormula(body=DiamondMinus(body=Atom()) | BoxMinus(body=Atom()) | At(body=Atom())):
                return formula
            case WindowFormula():
                raise self.refusal("a window of tuples is around one operator over one atom")
        raise self.refusal("'not', a test or an assignment does not stand inside an operator")

    def in_window(self, length: int, window: WindowFormula, body: Formula) -> Formula:
        """What a window of time sees of a formula: a distance that ends where the window does."""
        match body:
            case Atom():
                return body
            case DiamondMinus(distance=distance, body=Atom()) | BoxMinus(distance=distance, body=Atom()) if distance.lo <= length:
                return replace(body, distance=Interval(distance.lo, min(distance.hi, length)))
            case At(body=Atom()):
                return window
        raise self.refusal("a window is around one operator over one atom, whose distance begins inside it")

    def put(self, head: Head, body: tuple[Formula, ...]) -> None:
        """A rule in normal form; its variables are numbered by their places."""
        names = _names(_in_order(head, *body))
        found = Rule(_renamed(head, names), tuple(_renamed(part, names) for part in body), self.rule.name if self.rule else None,
                     span=self.rule.span if self.rule else None)
        self.rules.setdefault((found.head, found.body), found)

    def refusal(self, message: str) -> DiagnosticError:
        """An error at the rule at hand."""
        span = self.rule.span if self.rule else None
        return DiagnosticError(Diagnostic("unsupported-in-streaming", f"The rule cannot be evaluated: {message}.", span))


def _in_order(*parts: Formula | Head) -> tuple[Variable, ...]:
    """The variables of some parts, each once, as they come."""
    return tuple(dict.fromkeys(v for part in parts for v in variables_in(part)))


def _names(variables: Iterable[Variable]) -> dict[Variable, Variable]:
    return {v: Variable(f".{number}") for number, v in enumerate(dict.fromkeys(variables), 1)}


def _renamed(part: Any, names: Mapping[Variable, Variable]) -> Any:
    """A formula or head with other names for its variables."""
    return mapped(part, lambda term: names.get(term, term) if isinstance(term, Variable) else term)


Shape = tuple[str, tuple[Term | int, ...]]
"""An atom with numbers in the place of its variables."""


def without_implied_copies(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """The rules without each ``p(x) <- r(x)`` for which ``p(x) <- q(x)`` and ``q(x) <- r(x)`` stay, through any number of relations."""
    above: dict[Shape, set[Shape]] = {}
    for rule in rules:
        if (copy := _copy(rule)) is not None:
            above.setdefault(copy[1], set()).add(copy[0])
    kept = []
    for rule in rules:
        if (copy := _copy(rule)) is not None:
            head, body = copy
            above[body].discard(head)
            if head != body and head in reachable([body], lambda shape: above.get(shape, ())):
                continue
            above[body].add(head)
        kept.append(rule)
    return tuple(kept)


def _copy(rule: Rule) -> tuple[Shape, Shape] | None:
    """Head and body of a rule that copies one relation into another."""
    if not isinstance(rule.head, Atom) or len(rule.body) != 1 or not isinstance(body := rule.body[0], Atom) or rule.window_ms is not None:
        return None
    places: dict[Variable, int] = {}
    head = rule.head.predicate, tuple(_term(term, places) for term in rule.head.terms)
    count = len(places)
    found = body.predicate, tuple(_term(term, places) for term in body.terms)
    distinct = sum(isinstance(term, Variable) for term in body.terms)
    return (head, found) if len(places) == count == distinct else None


def _term(term: Term, places: dict[Variable, int]) -> Term | int:
    return term if isinstance(term, Constant) else places.setdefault(term, len(places))
