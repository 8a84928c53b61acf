"""Rules -> plans: a rule's body over what is known and what is new, once for each atom that may be new (semi-naive evaluation); once for
all the atoms of a star, about the subjects of what is new.

Atoms of all predicates are rows of one relation ``s p o``: where the predicate is not a property, ``p`` is a mark that is no IRI.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from engine.ir.expressions import Call, variables_of
from engine.ir.rules import TRIPLE, Assign, Atom, Formula, Negation, Rule, Table, Test, atoms, rule_variables, tokens_of
from engine.ir.substitution import with_constants
from engine.ir.terms import RDF_TYPE, Constant, Term, Variable
from engine.plan import nodes
from engine.plan.nodes import ClosedSource, FreshSource, KnownSource, Plan, Scan, Source, StarSource

NOTHING = Constant('""')
_STAR = 3   # so many atoms about one subject, or more, are joined at once: below it a step for each costs no more


@dataclass(frozen=True, slots=True)
class Step:
    """One way to apply a rule: each solution of `plan` gives the row `head`. There are some only where one of the shapes `new` is among
    the new rows, and each of `known` among those known. `ends` are those by which known rows stand beside new ones: ``os`` where
    the object of a new one is the subject of the other."""

    rule: Rule
    plan: Plan
    head: tuple[Term, ...]
    new: tuple[Shape, ...] = ()
    known: tuple[Shape, ...] = ()
    ends: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Shape:
    """What rows an atom can match, roughly: their properties or marks, for rdf:type their classes (None: any), whether subject and
    object are different terms, and whether the object is a literal."""

    properties: frozenset[str] | None
    classes: frozenset[str] | None
    differs: bool
    literal: bool

    def in_(self, seen: Seen) -> bool:
        """Whether some row seen may be matched."""
        among = seen if self.properties is None else self.properties & seen.keys()
        return any(self._fits(property_, seen[property_]) for property_ in among)

    def _fits(self, property_: str, rows: tuple[set[str], bool, bool]) -> bool:
        classes, differ, literals = rows
        if property_ == RDF_TYPE and self.classes is not None and self.classes.isdisjoint(classes):
            return False
        return (differ or not self.differs) and (literals or not self.literal)


Seen = dict[str, tuple[set[str], bool, bool]]
"""Of some rows: by property or mark, the classes (of rdf:type), whether a subject differs from its object, and whether some object is a
literal."""


def row_of(atom: Atom) -> tuple[Term, ...]:
    """The terms of the row that stands for an atom: subject, mark or property, object, and what is beyond the second term."""
    if atom.predicate == TRIPLE:
        return atom.terms
    first, second = (*atom.terms, NOTHING, NOTHING)[:2]
    return first, Constant(f"_:{len(atom.terms)} {atom.predicate}"), second, *atom.terms[2:]


def width(rules: Sequence[Rule]) -> int:
    """How many terms beyond the third some atom has."""
    formulas = [f.body if isinstance(f, Negation) else f for rule in rules for f in (rule.head, *rule.body)]
    return max((len(row_of(f)) - 3 for f in formulas if isinstance(f, Atom)), default=0)


def steps(rule: Rule, closed: ClosedSource) -> Iterator[Step]:
    """The ways to apply a rule in a round: one atom of its body, or one of a star, is new, the others are known."""
    rule = with_constants(rule)
    assert isinstance(rule.head, Atom)
    sight, stars = sight_of(rule, closed), _stars(rule)
    for star in stars:
        found = StarSource(closed, tuple(sorted({p.token for atom in star if isinstance(p := atom.terms[1], Constant)})))
        plan = _body(nodes.Unit(), frozenset(), rule.body, lambda atom: found if atom in star else _known(atom, star, closed), sight)
        ends = _ends(star, [atom for f in rule.body for atom in atoms(f)])
        yield Step(rule, plan, row_of(rule.head), tuple(_shape(atom, rule) for atom in star), shapes(rule), ends)
    for number, formula in enumerate(rule.body):
        if isinstance(formula, Atom) and not any(formula in star for star in stars):
            rest = [*rule.body[:number], *rule.body[number + 1:]]
            first = _scan(formula, FreshSource(closed), sight)
            plan = _body(first, rule_variables(formula), rest, lambda atom: _known(atom, [formula], closed), sight)
            known = tuple(_shape(f, rule) for f in rest if isinstance(f, Atom))
            ends = _ends([formula], [atom for f in rest for atom in atoms(f)])
            yield Step(rule, plan, row_of(rule.head), (_shape(formula, rule),), known, ends)


def _known(atom: Atom, new: Sequence[Atom], closed: ClosedSource) -> KnownSource:
    """What an atom is looked for in, where one of `new` is: they share a subject or object, or it may be anywhere."""
    return KnownSource(closed, all(_shared_ends(other, atom) for other in new))


def _ends(new: Sequence[Atom], others: Sequence[Atom]) -> frozenset[str]:
    """Where the rows of `others` stand beside a row of `new`: one pair of ends for each two atoms that share some."""
    shared = [[_shared_ends(first, other) for first in new] for other in others]
    return frozenset(pairs[0] for found in shared if all(found) for pairs in found)


def _shared_ends(first: Atom, second: Atom) -> list[str]:
    """The ends that are the same variable in both atoms: ``os``, the object of the first and the subject of the second."""
    ends = [dict(zip("spo", row_of(atom))) for atom in (first, second)]
    return [one + two for two in "so" for one in "so" if ends[0][one] == ends[1][two] and isinstance(ends[0][one], Variable)]


def _stars(rule: Rule) -> list[list[Atom]]:
    """Atoms of a rule's body that give properties to one variable, where they are many."""
    found: dict[Variable, list[Atom]] = {}
    for formula in rule.body:
        if isinstance(formula, Atom) and formula.predicate == TRIPLE:
            subject, property_, _ = formula.terms
            if isinstance(subject, Variable) and isinstance(property_, Constant):
                found.setdefault(subject, []).append(formula)
    return [arms for arms in found.values() if len(arms) >= _STAR]


def shapes(rule: Rule) -> tuple[Shape, ...]:
    """What rows the atoms of a rule's body can match."""
    return tuple(_shape(formula, rule) for formula in rule.body if isinstance(formula, Atom))


def properties_read(rules: Sequence[Rule]) -> frozenset[str] | None:
    """The properties and marks of all rows that rules can use; None: any."""
    found: set[str] = set()
    for rule, atom in ((rule, atom) for rule in rules for formula in rule.body for atom in atoms(formula)):
        properties = tokens_of(row_of(atom)[1], rule)
        if properties is None:
            return None
        found |= properties
    return frozenset(found)


def _shape(atom: Atom, rule: Rule) -> Shape:
    subject, property_, object_, *_ = row_of(atom)
    properties = tokens_of(property_, rule)
    classes = tokens_of(object_, rule) if properties == frozenset((RDF_TYPE,)) else None
    apart = (Call("!", (Call("SAMETERM", pair),)) for pair in ((subject, object_), (object_, subject)))
    literal = Test(Call("ISLITERAL", (object_,))) in rule.body
    return Shape(properties, classes, any(Test(test) in rule.body for test in apart), literal)


def axiom(rule: Rule, closed: ClosedSource) -> Step:
    """A rule whose body has no atom: it holds from the start."""
    assert isinstance(rule.head, Atom)
    return Step(rule, whole(rule, closed), row_of(rule.head))


def is_axiom(rule: Rule) -> bool:
    """Whether a rule derives its head from nothing."""
    return isinstance(rule.head, Atom) and not any(isinstance(f, Atom) for f in rule.body)


def whole(rule: Rule, closed: ClosedSource) -> Plan:
    """The body over all that is known."""
    return _body(nodes.Unit(), frozenset(), rule.body, lambda _: KnownSource(closed), sight_of(rule, closed))


def sight_of(rule: Rule, closed: ClosedSource) -> int:
    """The bit of those rows of a closure with views (ViewSource) that a rule sees: the first one without a Window, else its view's."""
    lengths = closed.view_lengths
    if not lengths:
        return 0
    return 2 << lengths.index(rule.window_ms) if rule.window_ms in lengths else 1


def all_sights(closed: ClosedSource) -> int:
    """The bits of what every rule sees, and the query: what is derived, and the background."""
    return (2 << len(closed.view_lengths)) - 1


def _body(plan: Plan, bound: frozenset[Variable], formulas: Sequence[Formula], source: Callable[[Atom], Source], sight: int) -> Plan:
    """Join what is left, tests as soon as their variables are bound, then what shares most variables with what is there."""
    waiting = list(formulas)
    while waiting:
        formula = max(waiting, key=lambda f: _rank(f, bound))
        waiting.remove(formula)
        match formula:
            case Atom():
                plan = nodes.joined(plan, _scan(formula, source(formula), sight))
            case Table(variables=variables, rows=rows):
                plan = nodes.joined(plan, nodes.Values(variables, rows))
            case Test(condition=condition):
                plan = nodes.Filter(plan, condition)
            case Assign():
                plan = _assigned(plan, formula, bound)
            case Negation(body=Atom() as body):
                plan = nodes.Minus(plan, _scan(body, source(body), sight))
            case _:
                raise ValueError(f"not in a rule without time: {type(formula).__name__}")
        bound |= rule_variables(formula) | ({formula.variable} if isinstance(formula, Assign) else frozenset())
    return plan


def _rank(formula: Formula, bound: frozenset[Variable]) -> tuple[int, int]:
    """What comes first: a test that can be made, then what shares variables; what still lacks some comes last."""
    match formula:
        case Test(condition=read) | Assign(expression=read):
            return (3 if variables_of(read) <= bound else 0), 0
        case Negation():
            return (3 if rule_variables(formula) <= bound else 0), 0
    shared = len(rule_variables(formula) & bound)
    return (2 if shared else 1), shared


def _scan(atom: Atom, source: Source, sight: int) -> Plan:
    subject, property_, object_, *rest = row_of(atom)
    scan = Scan(source, subject, property_, object_, rest=tuple(rest), sight=sight)
    return nodes.Filter(scan, Call("ISIRI", (property_,))) if isinstance(property_, Variable) else scan


def _assigned(plan: Plan, formula: Assign, bound: frozenset[Variable]) -> Plan:
    """An error makes the body false, and so does another value than the one that is bound already."""
    if formula.variable not in bound:
        return nodes.Filter(nodes.Extend(plan, formula.variable, formula.expression), Call("BOUND", (formula.variable,)))
    same = Variable(f".same{formula.variable.name}")
    return nodes.Filter(nodes.Extend(plan, same, formula.expression), Call("SAMETERM", (same, formula.variable)))
