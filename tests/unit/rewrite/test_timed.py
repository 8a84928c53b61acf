"""What is evaluated of rule sets with a time of their own beside an ontology: what they need, and nothing that nobody asked for."""

from __future__ import annotations

import doctest

import pytest

from engine.ir.notation import show_rule
from engine.ir.printer import show_group
from engine.ir.rules import RuleSet
from engine.ir.spans import DiagnosticError
from engine.ir.stages import divide
from engine.records import Triple
from engine.rewrite import timed
from engine.rewrite.owl2rl import BUILT_IN
from engine.rewrite.relevance import ANYTHING, Goal
from engine.rewrite.timed import TimedRules, stage_program, timed_rules
from tests.unit.reference.test_mixed import DENSE, EX, GRANULES, iri, rules

SUB = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
SCHEMA = [(iri("A0"), SUB, iri("A")), (iri("A00"), SUB, iri("A0")), (iri("B"), SUB, iri("B1")), (iri("Z0"), SUB, iri("Z"))]


def made(*sets: RuleSet, schema: list[Triple] = SCHEMA, goals: tuple[Goal, ...] = (ANYTHING,)) -> TimedRules:
    return timed_rules(divide(sets), schema, goals)


def texts(found: TimedRules) -> list[list[str]]:
    return [[show_rule(rule, show_group).partition("  #")[0].replace(f"<{EX}", "<") for rule in stage_program(stage).rules]
            for stage in found.stages]


def refused(*sets: RuleSet) -> str:
    with pytest.raises(DiagnosticError) as caught:
        made(*sets)
    return caught.value.diagnostics[0].message


def test_doctests() -> None:
    assert doctest.testmod(timed).failed == 0


def test_of_an_ontology_only_what_timed_rules_need_is_there_by_class() -> None:
    [[*stage]] = texts(made(BUILT_IN["owl2rl"], DENSE))
    assert {rule.partition(": ")[2] for rule in stage[:-1]} == {"[?x a <A>] <- [?x a <A00>] .", "[?x a <A>] <- [?x a <A0>] .",
                                                                "[?x a <A0>] <- [?x a <A00>] ."}
    assert len(texts(made(DENSE))[0]) == 1


def test_timed_rules_that_nothing_asked_for_needs_go() -> None:
    after = rules("lars", "ex:C(X) <- ex:B(X).\nex:D(X) <- ex:C(X).")
    asked: Goal = ("triple", (None, "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", iri("C")))
    assert [len(stage) for stage in texts(made(DENSE, after, goals=(asked,)))] == [1, 1]
    assert [len(stage) for stage in texts(made(DENSE, after))] == [1, 2]


def test_what_the_schema_says_by_itself_holds_always() -> None:
    said = {tuple(term.token for term in fact.atom.terms) for fact in made(BUILT_IN["rdfs"], DENSE).always}   # type: ignore[union-attr]
    assert (iri("A00"), SUB, iri("A")) in said


def test_two_timelines_that_need_each_other_are_refused() -> None:
    back = rules("dmtl", "ex:A(X) :- Diamondminus[1,1]ex:B(X)")
    assert "is on granules of 1000 ms" in refused(GRANULES, back)
    through = [(iri("B"), SUB, iri("B1"))]
    far = rules("dmtl", "ex:A(X) :- Diamondminus[1,1]ex:B1(X)")
    assert made(GRANULES, far).stages
    with pytest.raises(DiagnosticError, match="each needs what the other derives"):
        made(BUILT_IN["owl2rl"], GRANULES, far, schema=through)


def test_a_cycle_through_negation_and_the_ontology_is_refused() -> None:
    odd = rules("dmtl", "ex:B(X) :- Diamondminus[0,1]ex:A(X), not ex:B1(X)")
    assert made(odd).stages
    assert "The rules cannot be stratified" in refused(BUILT_IN["owl2rl"], odd)


def test_only_triples_are_shared_with_rules_without_time() -> None:
    atoms = rules("dmtl", "alarm(X) :- Diamondminus[0,1]ex:A(X)")
    reading = rules("rif", 'Group( Forall ?x ( ?x[ex:b -> "c"] :- "alarm"^^rif:local(?x) ) )')
    assert not made(atoms, reading).stages      # the rule asks for another atom, and the query for triples
    same = RuleSet("reads", tuple(type(rule)(rule.head, tuple(type(part)("alarm", part.terms) for part in rule.body))  # type: ignore
                                  for rule in reading.rules))
    assert refused(atoms, same) == "A rule of reads asks for alarm, which rules with a time of their own derive."
