"""Each rule of OWL 2 RL/RDF by its name: what it needs, and what it then gives, alone and among all, in both ways of running it."""

from __future__ import annotations

import doctest

import pyoxigraph
import pytest

from engine.ir import rules as rules_ir
from engine.ir.expressions import Call
from engine.ir.notation import show_rule
from engine.ir.rules import TRIPLE, Atom, DiamondMinus, Negation, Rule, RuleSet
from engine.ir.terms import RDF_TYPE, XSD, Constant, Variable
from engine.records import Triple
from engine.reference.closure import closure
from engine.reference.dataset import Graph
from engine.rewrite import partial, rule_text
from engine.rewrite.owl2rl import OWL2RL, RULES, W3C_TABLES
from engine.rewrite.partial import compile_rules
from engine.rewrite.rule_text import PREFIXES, iri, rule_table
from engine.timeline import Interval
from tests.conformance.owl2rl import entails

FALSE = "false"
CASES: dict[str, tuple[str, str]] = {
    "eq-ref": (":a :p :b .", ":a owl:sameAs :a . :p owl:sameAs :p . :b owl:sameAs :b ."),
    "eq-sym": (":a owl:sameAs :b .", ":b owl:sameAs :a ."),
    "eq-trans": (":a owl:sameAs :b . :b owl:sameAs :c .", ":a owl:sameAs :c ."),
    "eq-rep-s": (":a owl:sameAs :b . :a :p :c .", ":b :p :c ."),
    "eq-rep-p": (":p owl:sameAs :q . :a :p :c .", ":a :q :c ."),
    "eq-rep-o": (":c owl:sameAs :d . :a :p :c .", ":a :p :d ."),
    "eq-diff1": (":a owl:sameAs :b ; owl:differentFrom :b .", FALSE),
    "eq-diff2": ("[] a owl:AllDifferent ; owl:members (:a :b :c) . :a owl:sameAs :c .", FALSE),
    "eq-diff3": ("[] a owl:AllDifferent ; owl:distinctMembers (:a :b :c) . :b owl:sameAs :c .", FALSE),
    "prp-ap": ("", "rdfs:label a owl:AnnotationProperty . owl:versionInfo a owl:AnnotationProperty ."),
    "prp-dom": (":p rdfs:domain :C . :a :p :b .", ":a a :C ."),
    "prp-rng": (":p rdfs:range :C . :a :p :b .", ":b a :C ."),
    "prp-fp": (":p a owl:FunctionalProperty . :a :p :b , :c .", ":b owl:sameAs :c ."),
    "prp-ifp": (":p a owl:InverseFunctionalProperty . :a :p :c . :b :p :c .", ":a owl:sameAs :b ."),
    "prp-irp": (":p a owl:IrreflexiveProperty . :a :p :a .", FALSE),
    "prp-symp": (":p a owl:SymmetricProperty . :a :p :b .", ":b :p :a ."),
    "prp-asyp": (":p a owl:AsymmetricProperty . :a :p :b . :b :p :a .", FALSE),
    "prp-trp": (":p a owl:TransitiveProperty . :a :p :b . :b :p :c .", ":a :p :c ."),
    "prp-spo1": (":p rdfs:subPropertyOf :q . :a :p :b .", ":a :q :b ."),
    "prp-spo2": (":p owl:propertyChainAxiom (:q :r :s) . :a :q :b . :b :r :c . :c :s :d .", ":a :p :d ."),
    "prp-eqp1": (":p owl:equivalentProperty :q . :a :p :b .", ":a :q :b ."),
    "prp-eqp2": (":p owl:equivalentProperty :q . :a :q :b .", ":a :p :b ."),
    "prp-pdw": (":p owl:propertyDisjointWith :q . :a :p :b ; :q :b .", FALSE),
    "prp-adp": ("[] a owl:AllDisjointProperties ; owl:members (:p :q :r) . :a :p :b ; :r :b .", FALSE),
    "prp-inv1": (":p owl:inverseOf :q . :a :p :b .", ":b :q :a ."),
    "prp-inv2": (":p owl:inverseOf :q . :a :q :b .", ":b :p :a ."),
    "prp-key": (":C owl:hasKey (:p :q) . :a a :C ; :p 1 ; :q :x . :b a :C ; :p 1 ; :q :x .", ":a owl:sameAs :b ."),
    "prp-npa1": ("[] owl:sourceIndividual :a ; owl:assertionProperty :p ; owl:targetIndividual :b . :a :p :b .", FALSE),
    "prp-npa2": ("[] owl:sourceIndividual :a ; owl:assertionProperty :p ; owl:targetValue 5 . :a :p 5 .", FALSE),
    "cls-thing": ("", "owl:Thing a owl:Class ."),
    "cls-nothing1": ("", "owl:Nothing a owl:Class ."),
    "cls-nothing2": (":a a owl:Nothing .", FALSE),
    "cls-int1": (":C owl:intersectionOf (:D :E :F) . :a a :D , :E , :F .", ":a a :C ."),
    "cls-int2": (":C owl:intersectionOf (:D :E) . :a a :C .", ":a a :D , :E ."),
    "cls-uni": (":C owl:unionOf (:D :E) . :a a :E .", ":a a :C ."),
    "cls-com": (":C owl:complementOf :D . :a a :C , :D .", FALSE),
    "cls-svf1": (":C owl:someValuesFrom :D ; owl:onProperty :p . :a :p :b . :b a :D .", ":a a :C ."),
    "cls-svf2": (":C owl:someValuesFrom owl:Thing ; owl:onProperty :p . :a :p 7 .", ":a a :C ."),
    "cls-avf": (":C owl:allValuesFrom :D ; owl:onProperty :p . :a a :C ; :p :b .", ":b a :D ."),
    "cls-hv1": (":C owl:hasValue :v ; owl:onProperty :p . :a a :C .", ":a :p :v ."),
    "cls-hv2": (":C owl:hasValue :v ; owl:onProperty :p . :a :p :v .", ":a a :C ."),
    "cls-maxc1": (":C owl:maxCardinality 0 ; owl:onProperty :p . :a a :C ; :p :b .", FALSE),
    "cls-maxc2": (":C owl:maxCardinality '1'^^xsd:nonNegativeInteger ; owl:onProperty :p . :a a :C ; :p :b , :c .", ":b owl:sameAs :c ."),
    "cls-maxqc1": (":C owl:maxQualifiedCardinality 0 ; owl:onProperty :p ; owl:onClass :D . :a a :C ; :p :b . :b a :D .", FALSE),
    "cls-maxqc2": (":C owl:maxQualifiedCardinality 0 ; owl:onProperty :p ; owl:onClass owl:Thing . :a a :C ; :p :b .", FALSE),
    "cls-maxqc3": (":C owl:maxQualifiedCardinality 1 ; owl:onProperty :p ; owl:onClass :D . :a a :C ; :p :b , :c . :b a :D . :c a :D .",
                   ":b owl:sameAs :c ."),
    "cls-maxqc4": (":C owl:maxQualifiedCardinality 1 ; owl:onProperty :p ; owl:onClass owl:Thing . :a a :C ; :p :b , :c .",
                   ":b owl:sameAs :c ."),
    "cls-oo": (":C owl:oneOf (:a :b) .", ":a a :C . :b a :C ."),
    "cax-sco": (":C rdfs:subClassOf :D . :a a :C .", ":a a :D ."),
    "cax-eqc1": (":C owl:equivalentClass :D . :a a :C .", ":a a :D ."),
    "cax-eqc2": (":C owl:equivalentClass :D . :a a :D .", ":a a :C ."),
    "cax-dw": (":C owl:disjointWith :D . :a a :C , :D .", FALSE),
    "cax-adc": ("[] a owl:AllDisjointClasses ; owl:members (:C :D :E) . :a a :C , :E .", FALSE),
    "dt-type1": ("", "xsd:integer a rdfs:Datatype . rdfs:Literal a rdfs:Datatype ."),
    "dt-type2": (":C owl:someValuesFrom xsd:byte ; owl:onProperty :p . :a :p 7 .", ":a a :C ."),
    "dt-eq": (":a :p 1 . :b :q '1.0'^^xsd:decimal .", ":a :p '1.0'^^xsd:decimal . :b :q 1 ."),
    "dt-diff": (":p a owl:FunctionalProperty . :a :p 1 , 2 .", FALSE),
    "dt-not-type": (":p rdfs:range xsd:byte . :a :p 300 .", FALSE),
    "scm-cls": (":C a owl:Class .", ":C rdfs:subClassOf :C , owl:Thing ; owl:equivalentClass :C . owl:Nothing rdfs:subClassOf :C ."),
    "scm-sco": (":C rdfs:subClassOf :D . :D rdfs:subClassOf :E .", ":C rdfs:subClassOf :E ."),
    "scm-eqc1": (":C owl:equivalentClass :D .", ":C rdfs:subClassOf :D . :D rdfs:subClassOf :C ."),
    "scm-eqc2": (":C rdfs:subClassOf :D . :D rdfs:subClassOf :C .", ":C owl:equivalentClass :D ."),
    "scm-op": (":p a owl:ObjectProperty .", ":p rdfs:subPropertyOf :p ; owl:equivalentProperty :p ."),
    "scm-dp": (":p a owl:DatatypeProperty .", ":p rdfs:subPropertyOf :p ; owl:equivalentProperty :p ."),
    "scm-spo": (":p rdfs:subPropertyOf :q . :q rdfs:subPropertyOf :r .", ":p rdfs:subPropertyOf :r ."),
    "scm-eqp1": (":p owl:equivalentProperty :q .", ":p rdfs:subPropertyOf :q . :q rdfs:subPropertyOf :p ."),
    "scm-eqp2": (":p rdfs:subPropertyOf :q . :q rdfs:subPropertyOf :p .", ":p owl:equivalentProperty :q ."),
    "scm-dom1": (":p rdfs:domain :C . :C rdfs:subClassOf :D .", ":p rdfs:domain :D ."),
    "scm-dom2": (":q rdfs:domain :C . :p rdfs:subPropertyOf :q .", ":p rdfs:domain :C ."),
    "scm-rng1": (":p rdfs:range :C . :C rdfs:subClassOf :D .", ":p rdfs:range :D ."),
    "scm-rng2": (":q rdfs:range :C . :p rdfs:subPropertyOf :q .", ":p rdfs:range :C ."),
    "scm-hv": (":C owl:hasValue :v ; owl:onProperty :p . :D owl:hasValue :v ; owl:onProperty :q . :p rdfs:subPropertyOf :q .",
               ":C rdfs:subClassOf :D ."),
    "scm-svf1": (":C owl:someValuesFrom :Y ; owl:onProperty :p . :D owl:someValuesFrom :Z ; owl:onProperty :p . :Y rdfs:subClassOf :Z .",
                 ":C rdfs:subClassOf :D ."),
    "scm-svf2": (":C owl:someValuesFrom :Y ; owl:onProperty :p . :D owl:someValuesFrom :Y ; owl:onProperty :q . :p rdfs:subPropertyOf :q .",
                 ":C rdfs:subClassOf :D ."),
    "scm-avf1": (":C owl:allValuesFrom :Y ; owl:onProperty :p . :D owl:allValuesFrom :Z ; owl:onProperty :p . :Y rdfs:subClassOf :Z .",
                 ":C rdfs:subClassOf :D ."),
    "scm-avf2": (":C owl:allValuesFrom :Y ; owl:onProperty :p . :D owl:allValuesFrom :Y ; owl:onProperty :q . :p rdfs:subPropertyOf :q .",
                 ":D rdfs:subClassOf :C ."),
    "scm-int": (":C owl:intersectionOf (:D :E) .", ":C rdfs:subClassOf :D , :E ."),
    "scm-uni": (":C owl:unionOf (:D :E) .", ":D rdfs:subClassOf :C . :E rdfs:subClassOf :C ."),
}
# dt-* speak of literals, which other rules must bring there, or show what follows.
COMPANY = {"dt-type2": ("dt-eq", "cls-svf1"), "dt-eq": ("eq-rep-o",), "dt-diff": ("prp-fp",), "dt-not-type": ("prp-rng",)}
LISTS = tuple(r for r in OWL2RL.rules if isinstance(r.head, Atom) and r.head.predicate.startswith("list-"))


def triples(text: str) -> list[Triple]:
    prefixes = "".join(f"@prefix {name or 'owl'}: <{iri}> .\n" for name, iri in PREFIXES.items()) + "@prefix : <http://ex.org/> .\n"
    return [(str(q.subject), str(q.predicate), str(q.object)) for q in pyoxigraph.parse(prefixes + text, pyoxigraph.RdfFormat.TURTLE)]


def follows(premise: str, conclusion: str, rules: RuleSet) -> set[str]:
    """The rules by which an inconsistency was found, or the name of the rule set where the conclusion follows."""
    graph, inconsistencies = closure(Graph(triples(premise)), rules)
    if conclusion == FALSE:
        return {i.rule for i in inconsistencies}
    return {rules.name} if entails(graph.triples, triples(conclusion)) else set()


def test_every_rule_of_the_tables_is_here() -> None:
    assert set(RULES) == set(CASES)
    assert {number: len(rule_table(text, {"ANNOTATIONS": (), "DATATYPES": (), "ZERO": (), "ONE": ()}))
            for number, text in W3C_TABLES.items()} == {4: 9, 5: 20, 6: 19, 7: 5, 8: 5, 9: 20}


@pytest.mark.parametrize("name", CASES)
def test_a_rule_fires(name: str) -> None:
    company = tuple(rule for other in COMPANY.get(name, ()) for rule in RULES[other])
    assert name in follows(*CASES[name], RuleSet(name, (*RULES[name], *company, *LISTS)))
    assert name not in follows(*CASES[name], RuleSet(name, (*company, *LISTS)))


@pytest.mark.parametrize("name", CASES)
def test_what_it_gives_follows_from_all_rules(name: str) -> None:
    premise, conclusion = CASES[name]
    assert follows(premise, conclusion, OWL2RL) >= {name if conclusion == FALSE else "owl2rl"}
    assert follows(premise, conclusion, compile_rules(OWL2RL, triples(premise))) >= {name if conclusion == FALSE else "owl2rl"}


@pytest.mark.parametrize("module", [partial, rule_text])
def test_the_examples_of_the_docstrings_hold(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.attempted and not result.failed


def test_a_line_that_is_no_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="no rule"):
        rule_table("scm-sco  ?c rdfs:subClassOf ?d", {})


def test_rules_of_the_user_keep_what_partial_evaluation_does_not_read() -> None:
    """Negation and tests of values: the schema's part becomes a table, all else stays."""
    x, c, n = Variable("x"), Variable("c"), Variable("n")
    type_, sub = Constant(RDF_TYPE), Constant(iri("rdfs:subClassOf"))
    old = Atom(TRIPLE, (x, type_, Constant("<http://ex.org/Old>")))
    limit = rules_ir.Test(Call(">", (n, Constant(f'"5"^^<{XSD}integer>'))))
    rules = RuleSet("mine", (
        Rule(Atom(TRIPLE, (x, type_, c)), (Atom(TRIPLE, (c, sub, Constant("<http://ex.org/D>"))), Atom("near", (x,)), Negation(old)), "n"),
        Rule(Atom("deep", (c,)), (Atom(TRIPLE, (c, Constant(iri("hasValue")), n)), limit), "d"),
        Rule(Atom("was", (x,)), (DiamondMinus(Interval(0, 2000), old),), "w")))
    compiled = compile_rules(rules, triples(":C rdfs:subClassOf :D . :R owl:hasValue 9 ."))
    shown = [show_rule(rule, str).replace("http://ex.org/", "") for rule in compiled.rules]
    assert shown == ["n: [?x a ?c] <- (?c) in {(<C>)}, near(?x), not [?x a <Old>] .",
                     "d: deep(?c) <- (?c ?n) in {(<R> 9)}, ?n > 5 .",
                     "w: was(?x) <- diamond-minus[0s,1s] [?x a <Old>] ."]
    assert not compiled.facts
