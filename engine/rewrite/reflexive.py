"""What `eq-ref` says, that each term is owl:sameAs itself, is put into the rules that read owl:sameAs, where no query asks for it.

Else a closure has a row more for every term, and rules that join with it. A rule that reads ``?x owl:sameAs ?y`` gets a variant in which
both are one. Where that cannot be done for every rule, the rules stay as they are.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from engine.ir.expressions import Call
from engine.ir.rules import TRIPLE, Assign, Atom, Falsum, Formula, Rule, Table, Test, rule_variables, variables_in
from engine.ir.substitution import mapped
from engine.ir.terms import Constant, Term, Variable
from engine.rewrite.relevance import Goal
from engine.rewrite.schema import SAME

_EQUAL = Constant(SAME)
_REPLACED = ("eq-rep-s", "eq-rep-o")    # of a term that is itself they derive what eq-sym derives


class _Kept(Exception):
    """A rule needs the triples themselves."""


def without_reflexive(rules: Sequence[Rule], goals: Iterable[Goal]) -> tuple[Rule, ...]:
    """The rules without eq-ref, and variants of those that read what it derives; all as they are where that does not serve."""
    reflexive = [rule for rule in rules if rule.is_built_in("eq-ref") and _is_reflexive(rule.head)]
    if not reflexive or any(predicate == TRIPLE and terms[1] in (None, SAME) for predicate, terms in goals):
        return tuple(rules)
    found: dict[Rule, None] = {}
    try:
        for rule in rules:
            if rule not in reflexive:
                found |= dict.fromkeys((rule, *_variants(rule)))
    except _Kept:
        return tuple(rules)
    return tuple(found)


def _variants(rule: Rule) -> Iterator[Rule]:
    """What a rule says of terms that are themselves."""
    if rule.is_built_in("eq-rep-p") and rule.head == Atom(TRIPLE, tuple(map(Variable, "sqo"))):
        yield from _of_equality(rule)
        return
    for atom in rule.body:
        if not isinstance(atom, Atom) or atom.predicate != TRIPLE:
            if not isinstance(atom, (Test, Assign, Table, Atom)):
                raise _Kept
            continue
        if atom.terms[1] == _EQUAL:
            variant = _merged(rule, atom)
            if variant is not None:
                yield variant
                yield from _variants(variant)
        elif isinstance(atom.terms[1], Variable) and not _never_equality(rule, atom, atom.terms[1]):
            raise _Kept


def _of_equality(rule: Rule) -> Iterator[Rule]:
    """eq-rep-p, where it replaces owl:sameAs itself."""
    other, terms = Variable("q"), tuple(map(Variable, "spo"))
    same, apart = Atom(TRIPLE, (_EQUAL, _EQUAL, other)), Test(Call("!", (Call("SAMETERM", (_EQUAL, other)),)))
    for term in terms:
        yield replace(rule, head=Atom(TRIPLE, (term, other, term)), body=(same, apart, Atom(TRIPLE, terms)))


def _merged(rule: Rule, atom: Atom) -> Rule | None:
    """The rule where the two terms of an atom of equality are one; None where it says nothing then."""
    first, _, second = atom.terms
    if isinstance(second, Constant):
        first, second = second, first
    if isinstance(second, Constant):
        if first != second:
            return None
        raise _Kept     # whether such a term occurs is not known
    rest = [part for part in rule.body if part is not atom]
    if not isinstance(rule.head, (Atom, Falsum)):
        raise _Kept
    merged = [_with(part, second, first) for part in (rule.head, *rest)]
    if any(map(_is_false, merged)) or merged[0] in merged[1:] or _is_reflexive(merged[0]) or _apart(rest, first, second):
        return None
    bound = [any(term in rule_variables(part) for part in rest if isinstance(part, (Atom, Table))) for term in (first, second)]
    if not any(bound):
        raise _Kept     # nothing else says that such a term occurs
    both = Test(Call("SAMETERM", (first, second))) if all(bound) else Assign(second, first) if bound[0] else None
    if both is None:
        if isinstance(first, Constant):
            raise _Kept
        both = Assign(first, second)
    return replace(rule, body=(*rest, both))


def _apart(body: Sequence[Formula], first: Term, second: Term) -> bool:
    """Whether a table has no row in which two variables are the same."""
    tables = [part for part in body if isinstance(part, Table) and first in part.variables and second in part.variables]
    places = [(table, table.variables.index(first), table.variables.index(second)) for table in tables]
    return any(all(row[one] != row[other] for row in table.rows) for table, one, other in places)


def _never_equality(rule: Rule, atom: Atom, predicate: Variable) -> bool:
    """Whether an atom with any predicate needs no triple of a term with itself."""
    table = next((part for part in rule.body if isinstance(part, Table) and predicate in part.variables), None)
    if table is not None:
        place = table.variables.index(predicate)
        return all(row[place] != _EQUAL for row in table.rows)
    if rule.is_built_in(*_REPLACED):
        return True
    others = [part for part in (rule.head, *rule.body) if part is not atom]
    used = {v for part in others for v in variables_in(part)}
    object_ = atom.terms[2]     # a literal that occurs at all is the object of some other triple
    return not used.intersection(atom.terms[:2]) and Test(Call("ISLITERAL", (object_,))) in rule.body


def _is_reflexive(head: object) -> bool:
    return isinstance(head, Atom) and head.predicate == TRIPLE and head.terms[1] == _EQUAL and head.terms[0] == head.terms[2]


def _is_false(part: object) -> bool:
    """Whether a test says that a value is not itself."""
    match part:
        case Test(condition=Call(function="!", args=(Call(function="SAMETERM" | "=", args=(left, right)),))):
            return left == right
    return False


def _with(part: object, old: Variable, new: Term) -> object:
    """An atom or a test with another term for a variable."""
    return mapped(part, lambda term: new if term == old else term) if isinstance(part, (Atom, Test)) else part
