"""What the evaluators of rules share: matching atoms, safe orders, values of terms, what holds in the end."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from engine.functions.expressions import Context, ExpressionError, evaluate, test
from engine.ir.expressions import variables_of
from engine.ir.rules import (TRIPLE, Assign, At, Atom, BoxMinus, BoxPlus, DiamondMinus, Fact, Formula, Head, Negation, Rule, Table, Test,
                             WindowFormula, atoms, rule_variables)
from engine.ir.strata import endless, strata
from engine.ir.terms import Constant, Term
from engine.timeline import Interval, instant

Ground = tuple[str, tuple[str, ...]]
Row = dict[str, str]


def in_safe_order(body: Iterable[Formula]) -> list[Formula]:
    """The formulas of a body such that each finds bound what it cannot bind itself. Raises ValueError where there is none."""
    return _in_order(body, set(), lambda ready, bound: ready[0])


def in_quick_order(body: Iterable[Formula], known: Iterable[str] = ()) -> list[Formula]:
    """A safe order of a body (`needs`) in which few rows come up: tests at once, then what is bound most. The variables `known`
    are bound before. Raises ValueError where there is none."""
    return _in_order(body, set(known), lambda ready, bound: max(ready, key=lambda formula: _bound_part(formula, bound)))


@lru_cache(maxsize=128)
def layers(rules: tuple[Rule, ...], order: Callable[[Iterable[Formula]], list[Formula]] = in_safe_order
           ) -> list[tuple[list[tuple[Rule, list[Formula]]], Sequence[str]]]:
    """Rules layer by layer (strata.strata), each with its body in order, and what may derive for ever: the same rules are evaluated time
    after time."""
    return [([(rule, order(rule.body)) for rule in layer], endless(layer)) for layer in strata(rules)]


def _in_order(body: Iterable[Formula], bound: set[str], choose: Callable[[list[Formula], set[str]], Formula]) -> list[Formula]:
    waiting, found = [(formula, needs(formula)) for formula in body], list[Formula]()
    while waiting:
        ready = [formula for formula, needed in waiting if needed <= bound]
        if not ready:
            missing = sorted(set().union(*(needed for _, needed in waiting)) - bound)
            raise ValueError(f"unsafe rule: nothing binds {', '.join('?' + name for name in missing)}")
        chosen = choose(ready, bound) if len(ready) > 1 else ready[0]
        del waiting[next(place for place, (formula, _) in enumerate(waiting) if formula is chosen)]
        found.append(chosen)
        if not waiting:
            break
        bound |= {v.name for v in rule_variables(chosen)} | ({chosen.variable.name} if isinstance(chosen, Assign) else set())
    return found


def _bound_part(formula: Formula, bound: set[str]) -> float:
    """How much of a formula's atom is bound."""
    match formula:
        case Atom(terms=terms):
            return sum(isinstance(t, Constant) or t.name in bound for t in terms) / max(len(terms), 1)
        case DiamondMinus() | BoxMinus() | At() | WindowFormula():
            return min(map(lambda atom: _bound_part(atom, bound), atoms(formula)), default=1)
        case Table(variables=variables):
            return sum(v.name in bound for v in variables) / max(len(variables), 1)
        case Negation() | Test() | Assign():
            return 2
    return 0


def needs(formula: Formula) -> set[str]:
    """The variables that must be bound before a formula can be looked at."""
    match formula:
        case Atom() | Table():
            return set()
        case Negation(body=body):
            return {v.name for v in rule_variables(body)} | needs(body)
        case Test(condition=expression) | Assign(expression=expression):
            return {v.name for v in variables_of(expression)}
        case DiamondMinus(body=body) | BoxMinus(body=body) | At(body=body) | WindowFormula(body=body):
            return needs(body)
    return set()


def unify(pattern: Atom, atom: Ground, row: Row) -> Row | None:
    """`row` extended so that the pattern becomes the ground atom, or None."""
    predicate, terms = atom
    if pattern.predicate != predicate or len(pattern.terms) != len(terms):
        return None
    for term, token in zip(pattern.terms, terms):   # most differ in a constant: those cost no copy
        if isinstance(term, Constant) and term.token != token:
            return None
    extended = dict(row)
    for term, token in zip(pattern.terms, terms):
        if not isinstance(term, Constant) and extended.setdefault(term.name, token) != token:
            return None
    return extended


def shapes(predicate: str, terms: Sequence[str]) -> list[tuple[str, str | None]]:
    """What the patterns that meet an atom may be about (rules.relation_of)."""
    return [(predicate, None), *([(predicate, terms[1])] if predicate == TRIPLE else [])]


def ground(atom: Atom, row: Mapping[str, str]) -> Ground:
    """The atom with its variables replaced. Raises ValueError where one is not bound."""
    return atom.predicate, tuple(value_of(term, row) for term in atom.terms)


def headed(head: Head) -> Atom:
    """The atom of a head."""
    atom = head.body if isinstance(head, (BoxPlus, At)) else head
    if not isinstance(atom, Atom):
        raise ValueError(f"not a head: {head}")
    return atom


def as_fact(atom: Ground, when: Interval) -> Fact:
    """A ground atom that holds during an interval."""
    return Fact(Atom(atom[0], tuple(map(Constant, atom[1]))), when)


def point_of(ms: int) -> Interval:
    """The interval of one instant."""
    return Interval(instant(ms), instant(ms))


def value_of(term: Term, row: Mapping[str, str]) -> str:
    """The token of a term in a row."""
    if isinstance(term, Constant):
        return term.token
    if term.name not in row:
        raise ValueError(f"unsafe rule: nothing binds ?{term.name}")
    return row[term.name]


def assigned(formula: Assign, row: Row, context: Context) -> Row | None:
    """`row` with the variable bound to the value; None for an error, or where it is bound to another term already."""
    try:
        value = evaluate(formula.expression, row, context)
    except ExpressionError:
        return None
    return {**row, formula.variable.name: value} if row.get(formula.variable.name, value) == value else None


def computed(formula: Test | Assign | Table, row: Row, context: Context) -> list[Row]:
    """The extensions of `row` under which what speaks of no fact is true."""
    match formula:
        case Test(condition=condition):
            return [row] if test(condition, row, context) else []
        case Assign():
            extended = assigned(formula, row, context)
            return [] if extended is None else [extended]
    return joined(formula, row)


def joined(table: Table, row: Row) -> list[Row]:
    """`row` extended by each row of the table that agrees with it."""
    found = ({**row, **{v.name: c.token for v, c in zip(table.variables, cells)}} for cells in table.rows)
    return [extended for extended in found if all(extended[name] == token for name, token in row.items())]


Intervals = tuple[Interval, ...]


@dataclass(frozen=True, slots=True)
class Inconsistency:
    """A rule with head ``false`` fired: its name, the bindings, and when."""

    rule: str
    row: Row
    intervals: Intervals


@dataclass(frozen=True, slots=True)
class Model:
    """What holds: coalesced intervals by ground atom (predicate, tokens), input included; and what is inconsistent."""

    facts: Mapping[Ground, Intervals]
    inconsistencies: tuple[Inconsistency, ...] = ()

    def at(self, point: int) -> set[Ground]:
        """The atoms that hold at a point."""
        return {atom for atom, intervals in self.facts.items() if any(point in i for i in intervals)}
