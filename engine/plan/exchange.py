"""Closures that shards make together, each about the subjects of its share.

A rule finds all that follows in the shard where all the facts are that its body can match with one value of its *key*, a variable that
each atom has as subject or object. So a fact is in the shard of its subject, and in that of its object too where the object is such a key.
What a shard derives another may have to have: where all atoms of the body stand in that shard, too, it derives the same itself; else it is
sent what was derived, and goes on from there, until no shard has anything to send. Facts that a shard has beyond its share do no harm, as
all are true; whoever reads the closure reads each shard's share (data parallel evaluation by a discriminating variable: Ganguly,
Silberschatz and Tsur, "A Framework for the Parallel Processing of Datalog Queries", 1990).

>>> from engine.ir.rules import TRIPLE
>>> x, y, c, d = Variable("x"), Variable("y"), Constant("<C>"), Constant("<D>")
>>> some = Rule(Atom(TRIPLE, (x, Constant(RDF_TYPE), c)), (Atom(TRIPLE, (x, Constant("<p>"), y)), Atom(TRIPLE, (y, Constant(RDF_TYPE), d))))
>>> found = exchange([some])
>>> sorted(found.by_object), [sorted(classes) for _, classes in found.sent]
(['<p>'], [['<C>']])
"""

from collections.abc import Sequence
from dataclasses import replace

from engine.ir.rules import Assign, Atom, Formula, Rule, Table, Test, tokens_of
from engine.ir.strata import makes
from engine.ir.substitution import with_constants
from engine.ir.terms import RDF_TYPE, Constant, Term, Variable
from engine.plan.derive import row_of
from engine.plan.nodes import ClosedSource, Exchange, ValiditySource

MOST_BY_OBJECT = 1_000  # of so many properties, listed in texts, facts may be in the shards of their objects
MOST_SENT = 1_000       # what rules derive is told by so many properties or classes; of more all are sent

_Ends = dict[Variable, frozenset[str] | None]
"""The variables at the ends of an atom. Of an object: the properties that the atom may have (None: any); of a subject: none."""


def divided(closed: ClosedSource) -> ClosedSource | None:
    """The closure as shards make it together; None where its rules allow no key, or where its facts have no intervals. One of static
    graphs each shard makes for itself."""
    if closed.is_static:
        return closed
    if closed.by_representatives or closed.view_lengths or not all(isinstance(part, ValiditySource) for part in closed.base):
        return None
    made = exchange(closed.rules)
    if made is None:
        return None
    facts = [part for part in closed.base if isinstance(part, ValiditySource)]
    base = [replace(part, key="s") for part in facts]
    if made.by_object:
        base += [replace(part, key="o", by_object=made.by_object) for part in facts]
    return replace(closed, name=f"{closed.name}_shared", base=tuple(base), exchange=made)


def exchange(rules: Sequence[Rule]) -> Exchange | None:
    """What shards have of facts, and send each other, under some rules; None where a rule has no key, has `not`, or makes terms: that may
    go on for ever."""
    rules = [with_constants(rule) for rule in rules]
    by_object: set[str] = set()
    for rule in rules:
        if rule.window_ms is not None or not all(map(_is_finite, rule.body)):
            return None
        ends = [_ends(part, rule) for part in rule.body if isinstance(part, Atom)]
        if len(ends) > 1:
            key = _key(ends)
            if key is None:
                return None
            by_object |= key
    heads = [(rule, row_of(rule.head)) for rule in rules if isinstance(rule.head, Atom) and any(isinstance(f, Atom) for f in rule.body)]
    sent: dict[int, tuple[frozenset[str] | None, frozenset[str] | None]] = {}
    before = -1
    while before < len(by_object) + len(sent):
        before = len(by_object) + len(sent)
        for number, (rule, (subject, property_, object_, *_)) in enumerate(heads):
            properties = tokens_of(property_, rule)
            needed = [subject, *([object_] if properties is None or properties & by_object else [])]
            found = [_needed_to_derive(term, rule) for term in needed]
            if None in found:
                classes = tokens_of(object_, rule) if properties == frozenset((RDF_TYPE,)) else None
                sent[number] = _few(properties), _few(classes)
            else:
                by_object = by_object.union(*(properties for properties in found if properties is not None))
    return Exchange(frozenset(by_object), tuple(dict.fromkeys(sent.values()))) if len(by_object) <= MOST_BY_OBJECT else None


def _few(tokens: frozenset[str] | None) -> frozenset[str] | None:
    return tokens if tokens is not None and len(tokens) <= MOST_SENT else None


def _is_finite(part: Formula) -> bool:
    return isinstance(part, (Atom, Table, Test)) or isinstance(part, Assign) and not makes(part)


def _ends(atom: Atom, rule: Rule) -> _Ends:
    subject, property_, object_, *_ = row_of(atom)
    found: _Ends = {object_: tokens_of(property_, rule)} if isinstance(object_, Variable) else {}
    return found | {subject: frozenset()} if isinstance(subject, Variable) else found


def _key(ends: Sequence[_Ends]) -> frozenset[str] | None:
    """The properties whose facts are needed by object so that the atoms of a body meet: of the variable for which they are fewest. None
    where there is no such variable."""
    found = [properties for variable in ends[0] if (properties := _needed_by_object(variable, ends)) is not None]
    return min(found, key=lambda properties: (len(properties), sorted(properties)), default=None)


def _needed_to_derive(term: Term, rule: Rule) -> frozenset[str] | None:
    """The properties whose facts are needed by object so that the shard of what a term of the head stands for has the whole body; None
    where it has not."""
    if isinstance(term, Constant):
        return None
    return _needed_by_object(term, [_ends(part, rule) for part in rule.body if isinstance(part, Atom)])


def _needed_by_object(variable: Variable, ends: Sequence[_Ends]) -> frozenset[str] | None:
    found = [atom.get(variable) for atom in ends]
    # Those of a class are not told apart by it: that would be most of what there is.
    if any(properties is None or RDF_TYPE in properties for properties in found):
        return None
    return frozenset().union(*(properties for properties in found if properties is not None))
