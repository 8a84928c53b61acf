"""Which rules matter while the names of a query are unique: no property or class that it asks for is owl:sameAs another term.

The rules of equality let a fact follow from one of any property (eq-rep-p), and the class of a thing from any class (eq-rep-o), so that
under them all other rules matter, whatever a query asks. They do so only where a name is equal to another term, which is rare. So rules
are followed back from what is asked (relevance.py) as if names were unique, and a rule with head ``false`` finds where one is not: what was
derived without the others does not count then. Until the first step that needs an equal name, the rules that are left derive all that is
asked, and that terms are equal is asked always: so that rule misses none.

>>> from engine.ir.notation import show_rule
>>> from engine.rewrite.owl2rl import OWL2RL
>>> of_sub_properties = Table((Variable("p"), Variable("q")), ((Constant("<a>"), Constant("<b>")), (Constant("<c>"), Constant("<d>"))))
>>> x, y, p, q = map(Variable, "xypq")
>>> equal = [rule for rule in OWL2RL.rules if rule.is_built_in("eq-sym", "eq-rep-p")]
>>> rules = [Rule(Atom(TRIPLE, (x, q, y)), (of_sub_properties, Atom(TRIPLE, (x, p, y)))), *equal]
>>> found = under_unique_names(rules, [(TRIPLE, (None, "<b>", None))])
>>> print(show_rule(found[0], str), [rule.name for rule in found[1:]])
[?x ?q ?y] <- (?p ?q) in {(<a> <b>)}, [?x ?p ?y] . ['eq-sym', '.not-unique']
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from engine.ir.expressions import Call
from engine.ir.rules import NOT_UNIQUE, TRIPLE, Assign, Atom, Falsum, Formula, Rule, Table, Test, atoms
from engine.ir.terms import RDF_TYPE, Constant, Term, Variable
from engine.rewrite.relevance import Goal, relevant
from engine.rewrite.schema import SAME

_NAME, _OTHER = Variable("name"), Variable("other")
_EQUAL: Goal = (TRIPLE, (None, SAME, None))
_VALUES = "literal-value"


def under_unique_names(rules: Sequence[Rule], goals: Iterable[Goal]) -> tuple[Rule, ...] | None:
    """The rules by which a goal may follow while names are unique, and the one that finds where they are not. None where these are all
    rules, and where rules may make literals: which are equal depends on all of them then."""
    if any(map(_makes_literals, rules)):
        return None
    names: set[str] = set()

    def needs_equal_name(rule: Rule, head: Atom, goal: Sequence[str | None]) -> bool:
        name = _replaced_name(rule, head, goal)
        names.update(() if name is None else (name,))
        return name is not None

    # Every literal is in a fact that is given: the rules for their values read all of these, and ask for none to be derived.
    short = {replace(rule, body=()): rule for rule in rules if _reads_literals(rule)}
    found = relevant([replace(rule, body=()) if _reads_literals(rule) else rule for rule in rules], [_EQUAL, *goals], needs_equal_name)
    kept = tuple(short.get(rule, rule) for rule in found)
    if kept == tuple(rules):
        return None
    listed = Table((_NAME,), tuple((Constant(name),) for name in sorted(names)))
    body = listed, Atom(TRIPLE, (_NAME, Constant(SAME), _OTHER)), Test(Call("!", (Call("SAMETERM", (_NAME, _OTHER)),)))
    return *kept, *([Rule(Falsum(), body, NOT_UNIQUE, role="built-in")] if names else [])


def _replaced_name(rule: Rule, head: Atom, goal: Sequence[str | None]) -> str | None:
    """The property or class of a goal which a rule says of something since it says so of an equal one."""
    if len(goal) != 3 or head.predicate != TRIPLE:
        return None
    for place in (1, 2) if goal[1] == RDF_TYPE else (1,):
        term, name = head.terms[place], goal[place]
        if name is not None and isinstance(term, Variable) and any(_is_other(part, term, rule) for part in rule.body):
            return name
    return None


def _is_other(part: Formula, term: Variable, rule: Rule) -> bool:
    """Whether a part of a rule's body says that a term is equal to another."""
    match part:
        case Atom(terms=(first, Constant(token), second)) if token == SAME and term in (first, second):
            apart = Call("SAMETERM", (first, second)), Call("SAMETERM", (second, first))
            return any(Test(Call("!", (one,))) in rule.body for one in apart)
    return False


def _reads_literals(rule: Rule) -> bool:
    """Whether it is the rule that finds the values of all literals."""
    return rule.is_built_in("dt-eq") and isinstance(rule.head, Atom) and rule.head.predicate == _VALUES


def _makes_literals(rule: Rule) -> bool:
    """Whether a rule may derive facts of literals that are in no fact that it reads."""
    if isinstance(rule.head, Falsum) or _reads_literals(rule):
        return False
    terms = {term for atom in atoms(rule.head) for term in atom.terms}
    made = [part.variable for part in rule.body if isinstance(part, Assign)]
    for table in (part for part in rule.body if isinstance(part, Table)):
        places = [place for place, v in enumerate(table.variables) if v in terms]
        made += [table.variables[place] for place in places if any(_is_literal(row[place]) for row in table.rows)]
    return any(_is_literal(term) or term in made for term in terms)


def _is_literal(term: Term) -> bool:
    return isinstance(term, Constant) and term.token[0] == '"'
