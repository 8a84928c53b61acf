"""Unfolding as resolution: the ways in which an atom can hold, as atoms of the data and joins of such, found backwards through rules.

An atom that is asked for stands beside a table of the constants that its terms may be, so that a hierarchy of any size is one
alternative. Rules with one atom in their body lead from alternative to alternative until no new row comes, whether or not they are
recursive (of an equivalence, a symmetric property); rules with several atoms are joins of what their atoms unfold to, and must not come
back to themselves. An alternative whose rows another one has is left out.

>>> from engine.rewrite.partial import compile_rules
>>> from engine.rewrite.owl2rl import RDFS
>>> from engine.rewrite.rule_text import iri
>>> rules = compile_rules(RDFS, [("<Cat>", iri("rdfs:subClassOf"), "<Pet>"), ("<purrs>", iri("rdfs:domain"), "<Cat>")]).rules
>>> asked = Resolution(rules).ask(Atom(TRIPLE, (Variable("x"), Constant(RDF_TYPE), Constant("<Pet>"))))
>>> for shape, rows in asked.single.items():
...     print([term.name if isinstance(term, Variable) else "a" for term in shape.atom.terms], sorted(rows))
['x', 'a', '.0_0'] [('<Cat>',), ('<Pet>',)]
['x', '.0_0', '.0_1'] [('<purrs>',)]
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from engine.ir.expressions import walk
from engine.ir.rules import TRIPLE, Atom, Falsum, Formula, Negation, Rule, Table, Test, relation_of, rule_variables, variables_in
from engine.ir.substitution import replaced, replaced_in, value
from engine.ir.terms import RDF_TYPE, Constant, Term, Variable
from engine.rewrite.tables import Choices, Listed, Rows, joined, unify

MOST_ALTERNATIVES = 100
MOST_ROWS = 200_000
DEEPEST = 12


class NotUnfolded(Exception):
    """Why rules are not unfolded: closures are made instead."""


@dataclass(frozen=True, slots=True)
class Shape:
    """An atom of the data under tests; some of its variables have `columns` in a table. `equal` are variables asked for that are
    bound to another one."""

    atom: Atom
    tests: tuple[Test, ...] = ()
    columns: tuple[Variable, ...] = ()
    equal: tuple[tuple[Variable, Variable], ...] = ()


@dataclass(frozen=True, slots=True)
class Body:
    """A join: the parts of a rule's body, what each of its atoms unfolds to, and its table."""

    parts: tuple[Formula, ...]
    atoms: tuple[Asked, ...]
    choices: Choices
    equal: tuple[tuple[Variable, Variable], ...]
    origin: tuple[str, ...]

    @property
    def positive(self) -> list[Asked]:
        """What its atoms that must hold unfold to."""
        literals = [part for part in self.parts if isinstance(part, (Atom, Negation))]
        return [asked for part, asked in zip(literals, self.atoms) if isinstance(part, Atom)]


@dataclass(slots=True)
class Asked:
    """The ways in which an atom can hold: `single` alternatives by shape with their rows, the atom itself first, and `bodies`."""

    atom: Atom
    visible: tuple[Variable, ...]
    single: dict[Shape, Rows] = field(default_factory=dict)
    origins: dict[Shape, set[str]] = field(default_factory=lambda: defaultdict(set))
    bodies: list[Body] = field(default_factory=list)


class Resolution:
    """Unfolds atoms by some rules; raises NotUnfolded for rules that do not allow it."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._heads: dict[tuple[str, str | None], list[_Prepared]] = defaultdict(list)
        self._count = 0
        for rule in rules:
            if isinstance(rule.head, Falsum):
                raise NotUnfolded("what rules with head false find is looked for in closures")
            if not isinstance(rule.head, Atom) or rule.window_ms is not None:
                raise NotUnfolded("rules speak of time")
            if _comes_back(rule, rule.head):
                raise NotUnfolded(f"the rules are recursive through {_named(rule.head)}")
            self._heads[relation_of(rule.head)].append(_Prepared.of(rule, rule.head))

    def ask(self, atom: Atom, choices: Choices = Choices(), stack: tuple[object, ...] = ()) -> Asked:
        """The ways in which an atom can hold; `choices` are of its variables. `stack` is what leads here, by its form."""
        form = _form(atom, choices)
        if form in stack:
            raise NotUnfolded(f"the rules are recursive through {_named(atom)}")
        if len(stack) == DEEPEST:
            raise NotUnfolded(f"rules stand on rules more than {DEEPEST} deep")
        asked = Asked(atom, tuple(dict.fromkeys(t for t in atom.terms if isinstance(t, Variable))))
        level = len(stack)
        waiting = [_add(asked, atom, (), choices, (), (), level)]
        bodies: dict[_BodyKey, tuple[Rows, tuple[str, ...]]] = {}
        while waiting:
            found = waiting.pop(0)
            if found is None:
                continue
            shape, rows = found
            self._limit(len(rows))
            for rule in self._about(shape, rows):
                made = _resolved(shape, rows, rule, frozenset(asked.visible))
                if made is None:
                    continue
                parts, merged, equal = made
                origin = (*asked.origins[shape], *rule.origin)
                atoms = [part for part in parts if isinstance(part, Atom)]
                tests = [part for part in parts if isinstance(part, Test)]
                if len(atoms) == 1 and len(atoms) + len(tests) == len(parts):
                    waiting.append(_add(asked, atoms[0], tests, merged, equal, origin, level))
                else:
                    key = tuple(parts), merged.columns, equal
                    had, before = bodies.get(key, (frozenset(), ()))
                    bodies[key] = had | merged.rows, (*before, *origin)
        for (body, columns, equal), (allowed, origin) in bodies.items():
            parts, merged = _with_constants(list(body), Choices(columns, allowed), asked.visible)
            left = _without_implied(asked, parts, merged, level) if not equal else merged
            if left.rows:
                asked.bodies.append(self._body(parts, left, equal, origin, (*stack, form), level))
        return asked

    def _body(self, parts: Sequence[Formula], choices: Choices, equal: tuple[tuple[Variable, Variable], ...], origin: tuple[str, ...],
              stack: tuple[object, ...], level: int) -> Body:
        own = (v for part in parts for v in variables_in(part) if v.name.startswith(".rule:"))
        names = {v: Variable(f".{level}:{v.name.removeprefix('.rule:')}") for v in own}
        parts, choices = [replaced(part, names) for part in parts], choices.renamed(names)
        asked = []
        for part in parts:
            atom = part.body if isinstance(part, Negation) else part
            if isinstance(atom, Atom):
                self._limit(0)
                asked.append(self.ask(atom, choices.only(sorted(rule_variables(atom))), stack))
        return Body(tuple(parts), tuple(asked), choices, equal, tuple(dict.fromkeys(origin)))

    def _about(self, shape: Shape, rows: Rows) -> Iterator[_Prepared]:
        """The rules whose heads may be what a shape asks for."""
        predicate, property_ = relation_of(shape.atom)
        properties = {property_}
        if predicate == TRIPLE and property_ is None:
            place = shape.columns.index(link) if isinstance(link := shape.atom.terms[1], Variable) and link in shape.columns else None
            properties = {p for _, p in self._heads} if place is None else {row[place] for row in rows}
        for about in ((predicate, p) for p in sorted(properties - {None}, key=str)):
            yield from self._heads.get(about, ())
        yield from self._heads.get((predicate, None), ())

    def _limit(self, rows: int) -> None:
        self._count += 1
        if self._count > MOST_ALTERNATIVES:
            raise NotUnfolded(f"there are more than {MOST_ALTERNATIVES} alternatives")
        if rows > MOST_ROWS:
            raise NotUnfolded(f"there are more than {MOST_ROWS} constants in an alternative")


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A rule whose variables are its own, with its tables ready to be joined."""

    head: Atom
    parts: tuple[Formula, ...]
    tables: tuple[Listed, ...]
    origin: tuple[str, ...]

    @classmethod
    def of(cls, rule: Rule, head: Atom) -> _Prepared:
        own = {v: Variable(f".rule:{v.name}") for part in (head, *rule.body) for v in variables_in(part)}
        tables = tuple(Listed(tuple(own[v] for v in table.columns), table.rows) for table in map(
            Listed.of, (part for part in rule.body if isinstance(part, Table))))
        try:
            parts = tuple(replaced(part, own) for part in rule.body if not isinstance(part, Table))
        except ValueError:
            raise NotUnfolded("rules speak of time") from None
        renamed = replaced(head, own)
        assert isinstance(renamed, Atom)
        return cls(renamed, parts, tables, rule.origin or ((rule.name,) if rule.name else ()))


_BodyKey = tuple[tuple[Formula, ...], tuple[Variable, ...], tuple[tuple[Variable, Variable], ...]]
Resolved = tuple[list[Formula], Choices, tuple[tuple[Variable, Variable], ...]]


def _resolved(shape: Shape, rows: Rows, rule: _Prepared, visible: frozenset[Variable]) -> Resolved | None:
    """The parts of a rule's body in the place of an atom, the constants that both allow, and the variables that became equal."""
    bindings = unify(shape.atom.terms, rule.head.terms, visible)
    if bindings is None:
        return None
    choices = joined(Choices(shape.columns, rows), Listed((), ((),)), bindings)
    for table in rule.tables:
        choices = joined(choices, table, bindings)
    if not choices.rows:
        return None
    equal = list(shape.equal)
    for variable in sorted(visible & bindings.keys()):
        same = value(variable, bindings)
        if isinstance(same, Constant):
            choices = choices.with_value(variable, same.token)
        else:
            equal.append((variable, same))
    return [replaced(part, bindings) for part in (*rule.parts, *shape.tests)], choices, tuple(equal)


def _add(asked: Asked, atom: Atom, tests: Sequence[Test], choices: Choices, equal: tuple[tuple[Variable, Variable], ...],
         origin: Iterable[str], level: int) -> tuple[Shape, Rows] | None:
    """Note a single alternative: its shape with those rows that are new."""
    shape, rows = _normal(asked.visible, atom, tests, choices, equal, level)
    for other, had in asked.single.items():
        if (other.atom, other.columns, other.equal) == (shape.atom, shape.columns, shape.equal) and set(other.tests) <= set(shape.tests):
            rows -= had
    if not rows:
        return None
    asked.single[shape] = asked.single.get(shape, frozenset()) | rows
    asked.origins[shape].update(origin)
    return shape, rows


def _normal(visible: Sequence[Variable], atom: Atom, tests: Sequence[Test], choices: Choices,
            equal: tuple[tuple[Variable, Variable], ...], level: int) -> tuple[Shape, Rows]:
    """The one form of an alternative: the class or property that it names in a column, its other variables numbered."""
    terms = list(atom.terms)
    if atom.predicate == TRIPLE:
        place = 2 if terms[1] == Constant(RDF_TYPE) else 1
        constant = terms[place]
        if isinstance(constant, Constant):
            terms[place] = Variable(".rule:")
            choices = choices.with_value(Variable(".rule:"), constant.token)
    read = [part for test in tests for part in walk(test.condition)]
    used = list(dict.fromkeys(t for t in (*terms, *read) if isinstance(t, Variable)))
    numbered = {v: Variable(f".{level}_{n}") for n, v in enumerate(v for v in used if v not in visible)}
    kept = choices.only([*used, *visible]).renamed(numbered)
    order = sorted(range(len(kept.columns)), key=lambda place: kept.columns[place].name)
    rows = frozenset(tuple(row[place] for place in order) for row in kept.rows)
    named = tuple(numbered.get(t, t) if isinstance(t, Variable) else t for t in terms)
    under = {Test(replaced_in(test.condition, numbered)) for test in tests}
    return Shape(Atom(atom.predicate, named), tuple(sorted(under, key=repr)), tuple(kept.columns[place] for place in order), equal), rows


def _with_constants(parts: list[Formula], choices: Choices, visible: Sequence[Variable]) -> tuple[list[Formula], Choices]:
    """A join in which a variable that can be one constant only is that constant."""
    single = choices.fixed(visible)
    return [replaced(part, single) for part in parts], choices.only([v for v in choices.columns if v not in single])


def _without_implied(asked: Asked, parts: Sequence[Formula], choices: Choices, level: int) -> Choices:
    """The rows of a join without those for which one of its atoms is an alternative already."""
    for part in parts:
        if isinstance(part, Atom):
            columns = [v for v in choices.columns if v in rule_variables(part) or v in asked.visible]
            for row in choices.only(columns).rows if len(choices.rows) <= MOST_ALTERNATIVES else ():
                one = Choices(choices.only(columns).columns, frozenset([row]))
                shape, rows = _normal(asked.visible, part, (), one, (), level)
                covers = {v for v in asked.visible} <= {*rule_variables(part), *one.columns}
                if covers and rows <= asked.single.get(shape, frozenset()):
                    places = [choices.columns.index(v) for v in one.columns]
                    choices = Choices(choices.columns, frozenset(r for r in choices.rows if tuple(r[place] for place in places) != row))
    return choices


def _comes_back(rule: Rule, head: Atom) -> bool:
    """Whether an atom of a join asks for what its head is, or more: plainly recursive."""
    atoms = [part for part in rule.body if isinstance(part, Atom)]
    own = {v for part in (head, *rule.body) if part is head or isinstance(part, Table) for v in rule_variables(part)}
    return len(atoms) > 1 and any(
        atom.predicate == head.predicate and len(atom.terms) == len(head.terms)
        and all(a == h or isinstance(a, Variable) and a not in own for a, h in zip(atom.terms, head.terms)) for atom in atoms)


def _form(atom: Atom, choices: Choices) -> object:
    """What an atom asks, whatever its variables are called."""
    number: dict[Term, int] = {}
    terms = tuple(t.token if isinstance(t, Constant) else number.setdefault(t, len(number)) for t in atom.terms)
    order = sorted(range(len(choices.columns)), key=lambda place: number.get(choices.columns[place], -1))
    rows = frozenset(tuple(row[place] for place in order) for row in choices.rows)
    return atom.predicate, terms, tuple(number.get(choices.columns[place], -1) for place in order), rows


def _named(atom: Atom) -> str:
    if atom.predicate != TRIPLE:
        return atom.predicate
    return " ".join(term.token for term in atom.terms[1:] if isinstance(term, Constant)) or "any property"
