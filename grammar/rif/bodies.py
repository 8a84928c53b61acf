"""Conjunctions in a safe order (RIF-Core section 6.1): each conjunct finds bound what it needs, or is reported.

An atom or frame binds its variables. ``=`` binds a variable to the other side, ``pred:iri-string`` one of its arguments to the other
(the binding patterns of DTB); all other built-ins need all their arguments.
"""

from collections.abc import Iterator, Set

from engine.ir.builtins import IDENTICAL, IRI_STRING
from engine.ir.expressions import Call, Expression, variables_of
from engine.ir.rules import Assign, Atom, Formula, Test
from engine.ir.terms import Constant, Variable
from grammar.binding import Equality, assigned, bind

Conjunct = Atom | Equality | Test | Assign      # a Test is an external predicate


def in_order(conjuncts: tuple[Conjunct, ...], asked: Set[Variable]) -> tuple[tuple[Formula, ...], Set[Variable]]:
    """The atoms in the order of the text, then everything else as soon as its variables are bound (an Assign binds a new variable); and
    which of their variables, and of those that are `asked` for, nothing binds."""
    atoms = [c for c in conjuncts if isinstance(c, Atom)]
    bound = {v for atom in atoms for v in variables(atom)}
    found = bind({place: c for place, c in enumerate(conjuncts) if not isinstance(c, Atom)}, variables, _ready, bound)
    body = (*atoms, *(formula for made in found.values() for formula in made))
    return body, {*asked, *(v for conjunct in conjuncts for v in variables(conjunct))} - bound


def variables(conjunct: Conjunct) -> Iterator[Variable]:
    """The variables of a conjunct, left to right as far as it is a call."""
    match conjunct:
        case Atom(terms=terms):
            yield from (t for t in terms if isinstance(t, Variable))
        case Equality():
            yield from sorted(conjunct.variables)
        case Test(call):
            yield from sorted(variables_of(call))
        case Assign(variable, expression):
            yield variable
            yield from sorted(variables_of(expression))


def _ready(conjunct: Conjunct, bound: Set[Variable]) -> tuple[Formula, ...] | None:
    """What a conjunct becomes where these variables are bound; None where it has to wait."""
    match conjunct:
        case Assign(left, right) | Equality(left, right):
            if variables_of(left) | variables_of(right) <= bound:
                # With an IRI SPARQL's = is the same, and known to SQL.
                iri = any(isinstance(side, Constant) and side.token[0] == "<" for side in (left, right))
                return (Test(Call("=" if iri else IDENTICAL, (left, right))),)
            return assigned(left, right, bound)
        case Test(call) if variables_of(call) <= bound:
            return (conjunct,)
        case Test(Call(function=name, args=(first, second)) as call) if name == IRI_STRING:
            return _iri_string(call, first, second, bound)
        case Atom():
            return (conjunct,)
    return None


def _iri_string(call: Call, first: Expression, second: Expression, bound: Set[Variable]) -> tuple[Formula, ...] | None:
    for side, other, function in ((first, second, "IRI"), (second, first, "STR")):
        if isinstance(side, Variable) and side not in bound and variables_of(other) <= bound:
            return Assign(side, Call(function, (other,), span=call.span)), Test(call)
    return None
