"""Whether terms that are owl:sameAs one another may stand for each other while rules are applied: one of them in all facts.

That asks for the rules of equality themselves, and that every other rule derives of equal terms what it derives of the one that stands for
them. What a rule names stays, and so does every literal, and IRIs stand for IRIs, blank nodes for blank nodes: so atoms, tables, tests of
the kind of a term and comparisons of values are safe. That terms differ is no longer seen once they are one; what follows from
that alone must then be that they are the same.

>>> x, y, z, property_, same = *map(Variable, "xyz"), Constant("<p>"), Constant(SAME)
>>> body = Atom(TRIPLE, (z, property_, x)), Atom(TRIPLE, (z, property_, y)), Test(Call("!", (Call("SAMETERM", (x, y)),)))
>>> _is_safe(Rule(Atom(TRIPLE, (x, same, y)), body)), _is_safe(Rule(Atom(TRIPLE, (x, property_, y)), body))
(True, False)
"""

from collections.abc import Iterable, Sequence

from engine.ir.expressions import Call, Expression, conjuncts
from engine.ir.rules import TRIPLE, Assign, Atom, Falsum, Formula, Rule, Table, Test, tokens_of
from engine.ir.substitution import mapped
from engine.ir.terms import Constant, Term, Variable
from engine.rewrite.owl2rl import BUILT_IN
from engine.rewrite.schema import SAME

RULES = frozenset(("eq-sym", "eq-trans", "eq-rep-s", "eq-rep-p", "eq-rep-o"))
"""The rules of equality that replace terms; eq-ref is no matter."""
_NAMES = frozenset(rule.name for one in BUILT_IN.values() for rule in one.rules if rule.name is not None)
_OF_VALUES = ("=", "<", ">", "<=", ">=")
_OF_KINDS = ("ISIRI", "ISBLANK", "ISLITERAL")


def obstacle(rules: Sequence[Rule]) -> str | None:
    """Why the rules of equality are applied as they stand; empty where equal terms may stand for each other, None where there are none."""
    if not all(any(rule.is_built_in(name) for rule in rules) for name in RULES):
        return None
    unsafe = next((rule for rule in rules if not _is_safe(rule)), None)
    return "" if unsafe is None else f"{unsafe.name or 'a rule without a name'} may tell equal terms apart"


def derives_equality(rules: Iterable[Rule]) -> bool:
    """Whether other rules than those of equality, and of the values of literals, may derive that terms are the same."""
    return any(isinstance(rule.head, Atom) and rule.head.predicate == TRIPLE and SAME in (tokens_of(rule.head.terms[1], rule) or ())
               and not rule.is_built_in(*RULES, "eq-ref", "dt-eq") for rule in rules)


def _is_safe(rule: Rule) -> bool:
    """Whether a rule derives of representatives what it derives of the terms that they stand for. Those of OWL 2 RL and RDFS do: they test
    the values of literals, and what list-agree says of two terms leads to their being the same only."""
    if isinstance(rule.head, Falsum) or rule.is_built_in(*_NAMES):
        return True     # what is inconsistent is looked for among all terms
    if not isinstance(rule.head, Atom) or rule.window_ms is not None:
        return False
    if rule.head.predicate != TRIPLE and not any(isinstance(part, Atom) for part in rule.body):
        return False    # it holds of the very terms that it names
    return all(_is_safe_part(part, rule) for part in rule.body)


def _is_safe_part(part: Formula, rule: Rule) -> bool:
    match part:
        case Atom() | Table():
            return True
        case Test(condition=condition):
            return all(_is_safe_test(one) or _follows_anyway(one, rule) for one in conjuncts(condition))
        case Assign(expression=Variable()):
            return True
    return False


def _is_safe_test(condition: Expression) -> bool:
    """Whether what is true of some terms is true of those that stand for them: other values than those of literals have no order."""
    match condition:
        case Call("!", (Call(function, (Variable(),)),)) | Call(function, (Variable(),)):
            return function in _OF_KINDS
        case Call(function, (Variable() | Constant(), Variable() | Constant())):
            return function == "SAMETERM" or function in _OF_VALUES
    return False


def _follows_anyway(condition: Expression, rule: Rule) -> bool:
    """Whether a test says that two terms differ, and of one term the head says that it is itself, or what the body says."""
    match condition:
        case Call("!", (Call("SAMETERM" | "=", (Variable() as one, Variable() as other)),)) | Call(
                "!=", (Variable() as one, Variable() as other)):
            def merged(term: Term) -> Term:
                return one if term == other else term
            same = [Atom(TRIPLE, (first, Constant(SAME), second)) for first, second in ((one, other), (other, one))]
            head = mapped(rule.head, merged)
            return rule.head in same or any(isinstance(part, Atom) and mapped(part, merged) == head for part in rule.body)
    return False
