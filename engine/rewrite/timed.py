"""Rule sets with a time of their own in a query, as rules in stages (engine/ir/stages.py), beside what is applied in closures.

Rules without time are part of them where timed rules need them: built-in ones partially evaluated against the schema in the static graphs,
with a rule for each property and class, so that it is plain which depends on which. Those that speak of any property or class, as equality
does, are for closures only. What a timed rule derives that nothing asked for needs goes.

>>> from engine.ir.printer import show_group
>>> from engine.ir.notation import show_rule
>>> from engine.ir.rules import DiamondMinus
>>> p, q = (Atom(TRIPLE, (Variable("x"), Constant(name), Variable("y"))) for name in ("<p>", "<q>"))
>>> for rule in without_windows([Rule(q, (p,), window_ms=2000)]):
...     print(show_rule(rule, show_group))
.within 2000 <p>(?x, ?y) <- [?x <p> ?y] .
.within 2000 <p>(?x, ?y) <- diamond-minus[0s,2s) .event(?x, <p>, ?y) .
[?x <q> ?y] <- .within 2000 <p>(?x, ?y) .
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from engine.ir.rules import EVENT, TRIPLE, Atom, DiamondMinus, Fact, Falsum, Formula, Negation, Rule, RuleSet, Table, atoms, rule_variables
from engine.ir.spans import Diagnostic, DiagnosticError
from engine.ir.stages import Division, MixedTimelines, Placed, Stage, stages
from engine.ir.strata import unstratified
from engine.ir.substitution import with_constants
from engine.ir.terms import RDF_TYPE, Constant, Variable
from engine.records import Triple
from engine.rewrite.partial import compile_rules
from engine.rewrite.relevance import ANYTHING, Goal, goals_of_rules, relevant
from engine.timeline import operator

MOST_RULES = 2_000
"""Rules for data that the timed rules of one query may need; each is a relation's."""


@dataclass(frozen=True, slots=True)
class TimedRules:
    """The stages, and facts beside the events and the static graphs: those that hold for a time, and those that hold always."""

    stages: tuple[Stage, ...]
    facts: tuple[Fact, ...]
    always: tuple[Fact, ...]


def timed_rules(division: Division, static: Sequence[Triple], goals: Iterable[Goal]) -> TimedRules:
    """What is evaluated of the timed rules of a query that asks for `goals`. Raises DiagnosticError."""
    _check_shared(division)
    timed = _asked(division, goals)
    built_in_of = [tuple(dict.fromkeys(rule for rule in one.rules if rule.role == "built-in")) for one in division.plain]
    compiled = [compile_rules(RuleSet(one.name, rules), static) for one, rules in zip(division.plain, built_in_of)]
    built_in = [rule for one in compiled for rule in one.rules if not isinstance(rule.head, Falsum)]
    own = [(rule, one.name) for one in division.plain for rule in one.rules
           if rule.role != "built-in" and not isinstance(rule.head, Falsum)]
    useful = relevant([*(rule for rule in built_in if _is_closable(rule)), *(rule for rule, _ in own)],
                      goals_of_rules(placed.rule for placed in timed))
    closed = [made for rule in useful for made in (_closed(rule) if rule.role == "built-in" else (rule,))]
    if len(closed) > MOST_RULES:
        raise DiagnosticError(Diagnostic("query-too-large", f"The rules with a time of their own need {len(closed)} rules of the ontology; "
                                         f"{MOST_RULES} are allowed.", hint="name the classes and properties that they need more narrowly"))
    names = dict(own)
    placed = [*(Placed(rule, None, names.get(rule, "")) for rule in dict.fromkeys(closed)), *timed]
    if unsafe := unstratified(one.rule for one in placed):
        raise DiagnosticError(unsafe)
    try:
        made = stages(placed)
    except MixedTimelines as error:
        raise DiagnosticError(Diagnostic(
            "rules-unsafe", f"These rule sets cannot be used together: {error}.", error.span,
            hint="rules that depend on each other stand on dense time together, or on granules of one length")) from error
    always = (*(fact for one in division.plain for fact in one.facts), *(fact for one in compiled for fact in one.facts))
    return TimedRules(made, division.facts, tuple(dict.fromkeys(always)))


def stage_program(stage: Stage) -> RuleSet:
    """The rules of a stage as a program of its own."""
    line = stage.timeline
    return RuleSet("stage", tuple(without_windows(stage.rules)), (), line.granularity_ms, line.start_at_ms)


def without_windows(rules: Iterable[Rule]) -> Iterator[Rule]:
    """Rules with a Window of their own as such that look back at the events of the streams (EVENT)."""
    made: dict[str, None] = {}
    for rule in rules:
        body: list[Formula] = []
        for part in rule.body:
            positive = part.body if isinstance(part, Negation) else part
            if rule.window_ms is None or not isinstance(positive, Atom) or positive.predicate != TRIPLE:
                body.append(part)
                continue
            within, ways = _within(positive, rule.window_ms)
            body.append(Negation(within) if isinstance(part, Negation) else within)
            if within.predicate not in made:
                made[within.predicate] = None
                yield from ways
        yield replace(rule, body=tuple(body), window_ms=None)


def _within(atom: Atom, window_ms: int) -> tuple[Atom, tuple[Rule, Rule]]:
    """The atom that an atom becomes for rules with a Window, and the rules by which that holds."""
    subject, link, object_ = atom.terms
    fixed = [term.token for term in (link, object_) if isinstance(term, Constant)][:2 if link == Constant(RDF_TYPE) else 1]
    fixed = fixed if isinstance(link, Constant) else []
    name = " ".join([f".within {window_ms}", *fixed])
    x, y, z = (Variable(v) for v in "xyz")
    asked = (x, link if fixed else y, object_ if len(fixed) == 2 else z if not fixed else y)
    free = tuple(term for term in asked if isinstance(term, Variable))
    head = Atom(name, free)
    ways = (Rule(head, (Atom(TRIPLE, asked),)), Rule(head, (DiamondMinus(operator(0, window_ms, closed_end=False), Atom(EVENT, asked)),)))
    terms = {0: (subject, link, object_), 1: (subject, object_), 2: (subject,)}[len(fixed)]
    return Atom(name, terms), ways


def _asked(division: Division, goals: Iterable[Goal]) -> list[Placed]:
    """The timed rules by which something may follow that is asked for, by general rules: a stream may bring schema."""
    plain = [rule for one in division.plain for rule in one.rules]
    goals = list(goals)
    if any(isinstance(rule.head, Falsum) for rule in plain):
        goals.append(ANYTHING)
    kept = set(relevant([*plain, *(placed.rule for placed in division.timed)], goals))
    return [placed for placed in division.timed if placed.rule in kept]


def _check_shared(division: Division) -> None:
    """Refuse rules without time that ask for atoms of other predicates than triples that timed rules derive: closures do not have them."""
    heads = {(atom.predicate, len(atom.terms)) for placed in division.timed for atom in atoms(placed.rule.head)}
    heads |= {(fact.atom.predicate, len(fact.atom.terms)) for fact in division.facts}
    for one in division.plain:
        for rule in one.rules:
            for atom in (atom for part in rule.body for atom in atoms(part)):
                if atom.predicate != TRIPLE and (atom.predicate, len(atom.terms)) in heads:
                    raise DiagnosticError(Diagnostic(
                        "rules-unsafe", f"A rule of {one.name} asks for {atom.predicate}, which rules with a time of their own derive.",
                        atom.span or rule.span, hint="between rules with and without a time of their own only triples are shared"))


def _is_closable(rule: Rule) -> bool:
    """Whether a rule is about properties and classes that it names, or that its table does."""
    named = {v for part in rule.body if isinstance(part, Table) for v in part.variables}
    return _open(rule) <= named


def _open(rule: Rule) -> set[Variable]:
    """The variables that stand for a property, or for a class."""
    found = set[Variable]()
    for atom in (atom for part in (rule.head, *rule.body) for atom in atoms(part) if atom.predicate == TRIPLE):
        _, link, object_ = atom.terms
        found |= {term for term in (link, *((object_,) if link == Constant(RDF_TYPE) else ())) if isinstance(term, Variable)}
    return found


def _closed(rule: Rule) -> Iterator[Rule]:
    """A rule for each row of its table, where that names properties or classes."""
    table = next((part for part in rule.body if isinstance(part, Table)), None)
    if table is None or not _open(rule) or rule_variables(table).isdisjoint(_open(rule)):
        yield rule
        return
    for row in table.rows:
        one = replace(table, rows=(row,))
        yield with_constants(replace(rule, body=tuple(one if part is table else part for part in rule.body)))
