"""Which rules matter while the names of a query are unique: no property or class that it asks for is owl:sameAs another term; and which
rules matter while no two terms are owl:sameAs.

The rules of equality let a fact follow from one of any property (eq-rep-p), and the class of a thing from any class (eq-rep-o), so that
under them all other rules matter, whatever a query asks. They do so only where a name is equal to another term, which is rare. So rules
are followed back from what is asked (relevance.py) as if names were unique, and a rule with head ``false`` finds where one is not: what was
derived without the others does not count then. It misses none: up to the first step that needs an equal name the rules that are left derive
all that is asked, and owl:sameAs is always asked.

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
from engine.ir.rules import NOT_UNIQUE, TRIPLE, Assign, Atom, Falsum, Rule, Table, Test, atoms, tokens_of
from engine.ir.terms import RDF_TYPE, XSD, Constant, Term, Variable
from engine.rewrite.equality import RULES
from engine.rewrite.relevance import Goal, relevant
from engine.rewrite.schema import SAME

_NAME, _OTHER, _VALUE = Variable("name"), Variable("other"), Variable("value")
_EQUAL: Goal = (TRIPLE, (None, SAME, None))
_VALUES = "literal-value"


def under_unique_names(rules: Sequence[Rule], goals: Iterable[Goal]) -> tuple[Rule, ...] | None:
    """The rules by which a goal may follow while names are unique, and the one that finds where they are not. None where no rule would be
    left out, or where rules may bring literals of their own: which of these are equal may depend on any rule."""
    if any(map(_brings_literals, rules)):
        return None
    names: set[str] = set()

    def passed_over(rule: Rule, head: Atom, goal: Sequence[str | None]) -> bool:
        name = _replaced_name(rule, head, goal)
        if name is not None:
            names.add(name)
        return name is not None

    # Every literal stands in a given fact: the rule that finds their values, of which there is one, needs no derived ones.
    short = {replace(rule, body=()): rule for rule in rules if _reads_literals(rule)}
    found = relevant([replace(rule, body=()) if _reads_literals(rule) else rule for rule in rules], [_EQUAL, *goals], passed_over)
    kept = tuple(short.get(rule, rule) for rule in found)
    if kept == tuple(rules):
        return None
    listed = Table((_NAME,), tuple((Constant(name),) for name in sorted(names)))
    body = listed, Atom(TRIPLE, (_NAME, Constant(SAME), _OTHER)), _differ(_NAME, _OTHER)
    return *kept, *([Rule(Falsum(), body, NOT_UNIQUE, role="built-in")] if names else [])


def while_unequal(rules: Sequence[Rule]) -> tuple[Rule, ...] | None:
    """The rules that matter while no term is owl:sameAs another, and those that find where one may be. They miss none: up to the first step
    that needs two equal terms they derive the same as all rules. None where there are no rules of equality, or where others than these ask
    for the values of literals."""
    if not any(rule.is_built_in(*RULES) for rule in rules):
        return None
    others = [rule for rule in rules if not rule.is_built_in(*RULES, "dt-eq")]
    if any(atom.predicate == _VALUES for rule in others for part in rule.body for atom in atoms(part)):
        return None
    checks = [Rule(Falsum(), (Atom(TRIPLE, (_NAME, Constant(SAME), _OTHER)), _differ(_NAME, _OTHER)), NOT_UNIQUE, role="built-in")]
    values = [rule for rule in rules if _reads_literals(rule)]
    if values:
        # A string has the value of no other string; of other literals with its value, such as an xsd:token, the value tells.
        # Whether it is one is asked before its value is computed, which is the last part of the rule.
        found = Atom(_VALUES, (_VALUE, _NAME))
        typed = [replace(rule, body=(*rule.body[:-1], Test(Call("!", (_is_string(rule.head.terms[1]),))), rule.body[-1]))
                 for rule in values if isinstance(rule.head, Atom)]
        checks += [*typed, Rule(Falsum(), (found, Atom(_VALUES, (_VALUE, _OTHER)), _differ(_NAME, _OTHER)), NOT_UNIQUE, role="built-in"),
                   Rule(Falsum(), (found, Test(_is_string(_VALUE)), _differ(_VALUE, _NAME)), NOT_UNIQUE, role="built-in")]
    return *others, *checks


def _differ(one: Variable, other: Variable) -> Test:
    return Test(Call("!", (Call("SAMETERM", (one, other)),)))


def _is_string(term: Term) -> Call:
    return Call("SAMETERM", (Call("DATATYPE", (term,)), Constant(f"<{XSD}string>")))


def _replaced_name(rule: Rule, head: Atom, goal: Sequence[str | None]) -> str | None:
    """The property or class of a goal that a rule derives only from an equal term; None if it needs none."""
    place = 1 if rule.is_built_in("eq-rep-p") else 2 if rule.is_built_in("eq-rep-o") and goal[1] == RDF_TYPE else None
    return None if place is None or isinstance(head.terms[place], Constant) else goal[place]


def _reads_literals(rule: Rule) -> bool:
    """Whether it is the rule that finds the values of all literals."""
    return rule.is_built_in("dt-eq") and isinstance(rule.head, Atom) and rule.head.predicate == _VALUES


def _brings_literals(rule: Rule) -> bool:
    """Whether a rule may derive facts of literals that other rules find in no fact: it makes them, names them, or sees what is in no window
    of others."""
    if isinstance(rule.head, Falsum) or _reads_literals(rule):
        return False
    made = {part.variable for part in rule.body if isinstance(part, Assign) and not isinstance(part.expression, Variable)}
    terms = {term for atom in atoms(rule.head) for term in atom.terms}
    named = {token for term in terms for token in tokens_of(term, rule) or ()}
    return rule.window_ms is not None or not made.isdisjoint(terms) or any(token[0] == '"' for token in named)
