"""What is schema, what is made of it once, and what a compiled rule set looks like."""

from __future__ import annotations

import pytest

from engine.ir.rules import RuleSet, Table
from engine.ir.strata import reachable
from engine.ir.terms import RDF_TYPE
from engine.records import Triple
from engine.rewrite.owl2rl import OWL2RL, RDFS
from engine.rewrite.partial import compile_rules
from engine.rewrite.programs import schema_words
from engine.rewrite.rule_text import iri
from engine.rewrite.schema import FIRST, NIL, REST, SUB_CLASS, SUB_PROPERTY, members_of_lists, schema_vocabulary

DATA: list[Triple] = [("<a>", "<p>", "<b>"), ("<a>", RDF_TYPE, "<C>"), ("<a>", iri("sameAs"), "<b>"), ("<a>", "<p>", "_:d"),
                      ("_:d", FIRST, "<m>"), ("_:d", REST, NIL)]
INTERSECTION: list[Triple] = [("<C>", iri("intersectionOf"), "_:1"), ("_:1", FIRST, "<D>"), ("_:1", REST, "_:2"), ("_:2", FIRST, "<E>"),
                              ("_:2", REST, NIL)]


def tables(rules: RuleSet) -> dict[str, list[tuple[str, ...]]]:
    """The rows of the rules that have a table, by the rule's name (and number of columns, where it is there more than once)."""
    return {f"{rule.name}{len(part.variables)}": [tuple(cell.token for cell in row) for row in part.rows]
            for rule in rules.rules for part in rule.body if isinstance(part, Table)}


@pytest.mark.parametrize("schema", [
    [("<p>", iri("rdfs:domain"), "<C>")],
    INTERSECTION,
    [("<p>", RDF_TYPE, iri("FunctionalProperty"))],
    [("<sub>", SUB_PROPERTY, SUB_CLASS), ("<C>", "<sub>", "<D>")],
    [("<up>", iri("inverseOf"), SUB_CLASS), ("<D>", "<up>", "<C>")],
    [("<Trans>", SUB_CLASS, iri("TransitiveProperty")), ("<p>", RDF_TYPE, "<Trans>")],
    [("<is>", SUB_PROPERTY, RDF_TYPE), ("<p>", "<is>", iri("TransitiveProperty"))],
    [("<defines>", iri("rdfs:range"), iri("Class")), ("<x>", "<defines>", "<y>")],
    [("<C>", SUB_CLASS, "<D>"), ("<D>", iri("sameAs"), "<E>")],
])
def test_schema_is_told_from_data(schema: list[Triple]) -> None:
    assert schema_vocabulary([*DATA, *schema]) == frozenset(schema)


def test_lists_are_read_with_all_their_forms() -> None:
    assert members_of_lists(INTERSECTION) == {"_:1": [("<D>", "<E>")]}
    assert members_of_lists([*INTERSECTION, ("_:2", FIRST, "<F>")])["_:1"] == [("<D>", "<F>"), ("<D>", "<E>")]
    assert members_of_lists([*INTERSECTION[:-1], ("_:2", REST, "_:1")]) == {}
    cells = [t for n in range(5000) for t in ((f"_:{n}", FIRST, f"<m{n}>"), (f"_:{n}", REST, f"_:{n + 1}" if n < 4999 else NIL))]
    long = members_of_lists([("<C>", iri("oneOf"), "_:0"), *cells])
    assert len(long["_:0"][0]) == 5000


def test_tables_are_closed_and_data_stays_out() -> None:
    schema = [("<A>", SUB_CLASS, "<B>"), ("<B>", SUB_CLASS, "<A>"), ("<B>", SUB_CLASS, "<C>"), ("<p>", iri("rdfs:domain"), "<A>")]
    rows = tables(compile_rules(OWL2RL, [*schema, *DATA]))
    assert rows["cax-sco2"] == [("<A>", "<B>"), ("<A>", "<C>"), ("<B>", "<A>"), ("<B>", "<C>"), (iri("Nothing"), iri("Thing"))]
    assert rows["prp-dom2"] == [("<p>", "<A>"), ("<p>", "<B>"), ("<p>", "<C>")]
    assert not any("<a>" in row or "<m>" in row for found in rows.values() for row in found)


def test_rules_that_say_the_same_are_one() -> None:
    """cax-eqc1 and -2 after cax-sco, prp-inv2 after prp-inv1, cls-int2 after cax-sco; a rule without rows is gone."""
    compiled = compile_rules(OWL2RL, [("<A>", iri("equivalentClass"), "<B>"), ("<p>", iri("inverseOf"), "<p>"), *INTERSECTION])
    names = [rule.name for rule in compiled.rules if any(isinstance(part, Table) for part in rule.body)]
    assert names == ["cax-sco", "prp-inv1", "cls-int1", "dt-not-type", "dt-type2+eq-rep-s"]
    assert tables(compiled)["cls-int13"] == [("<D>", "<E>", "<C>")]


def test_one_rule_for_each_length_of_list() -> None:
    lists = [t for n in (1, 2, 2, 3) for t in written_list(n)]
    compiled = [rule for rule in compile_rules(OWL2RL, lists).rules if rule.name == "prp-spo2"]
    assert [(len(rule.body), len(next(p for p in rule.body if isinstance(p, Table)).rows)) for rule in compiled] == [
        (2, 1), (3, 1), (4, 1)]
    assert "prp-spo1" in {rule.name for rule in compile_rules(OWL2RL, [*lists, ("<p>", SUB_PROPERTY, "<q>")]).rules}


def written_list(length: int) -> list[Triple]:
    cells = [(f"_:{length}-{n}", FIRST, f"<q{n}>") for n in range(length)]
    rest = [(f"_:{length}-{n}", REST, f"_:{length}-{n + 1}" if n + 1 < length else NIL) for n in range(length)]
    return [(f"<p{length}>", iri("propertyChainAxiom"), f"_:{length}-0"), *cells, *rest]


def test_without_a_schema_the_axioms_are_left() -> None:
    compiled = compile_rules(OWL2RL, DATA)
    assert {rule.name for rule in compiled.rules} == {
        "eq-ref", "eq-sym", "eq-trans", "eq-rep-s", "eq-rep-p", "eq-rep-o", "eq-diff1", "cls-nothing2", "cax-sco",
        "dt-eq", "dt-diff", "dt-not-type", "dt-type2+eq-rep-s"}
    assert tables(compiled)["cax-sco2"] == [(iri("Nothing"), iri("Thing"))]
    facts = {tuple(term.token for term in fact.atom.terms) for fact in compiled.facts}  # type: ignore[union-attr]
    assert (iri("Thing"), RDF_TYPE, iri("Class")) in facts and (iri("rdfs:label"), RDF_TYPE, iri("AnnotationProperty")) in facts
    assert compile_rules(RDFS, DATA) == RuleSet("rdfs", ())


def test_a_long_chain_is_closed() -> None:
    chain = [(f"<C{n}>", SUB_CLASS, f"<C{n + 1}>") for n in range(300)]
    assert len(tables(compile_rules(RDFS, chain))["rdfs92"]) == 300 * 301 // 2
    edges = {"a": ["b"], "b": ["a", "c"]}
    assert [reachable(edges[node], lambda node: edges.get(node, ())) for node in "ab"] == [{"a", "b", "c"}, {"a", "b", "c"}]


@pytest.mark.parametrize(("schema", "more"), [
    ([], set()),
    ([("<Chain>", SUB_CLASS, iri("TransitiveProperty")), ("<d>", iri("rdfs:domain"), "<Chain>"), ("<e>", SUB_PROPERTY, "<d>")],
     {"<Chain>", "<d>", "<e>"}),
    ([("<Doc>", SUB_CLASS, iri("Ontology"))], set()),
])
def test_words_that_bring_schema_with_a_stream(schema: list[Triple], more: set[str]) -> None:
    """What no rule asks for is none: every document may say that it is an ontology."""
    assert schema_words(OWL2RL, schema) - schema_words(OWL2RL, []) == more
    assert iri("TransitiveProperty") in schema_words(OWL2RL, schema) and iri("Ontology") not in schema_words(OWL2RL, schema)
    assert schema_words(RDFS, []) == set(map(iri, ("rdfs:subClassOf", "rdfs:subPropertyOf", "rdfs:domain", "rdfs:range", "rdfs:Class",
                                                   "rdf:Property")))
