"""The published cases of entailment on the oracle, as ``python -m tests.conformance`` runs them, and that the runners can fail."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from engine.ir.rules import RuleSet
from engine.records import Triple
from engine.reference.closure import closure
from engine.reference.dataset import Graph
from engine.rewrite.owl2rl import OWL2RL
from tests.conformance import entailment, owl2rl, rif
from tests.conformance.executors import in_this_process, on_spark, reference
from tests.conformance.outcomes import Outcome, Verdict
from tests.shared import shared

CASES = ("w3c-owl2-rl", "rdfbased_sem_cases.json")


def test_owl2rl() -> None:
    """66 entailments of consistent premises, 21 inconsistencies, in both ways in which the oracle runs the rules."""
    records = json.loads(shared(*CASES).read_text("utf-8"))
    outcomes = [owl2rl.judge(record, owl2rl.by_oracle(premise(record))) for record in records]
    assert [o for o in outcomes if o.verdict is not Verdict.PASSED] == [] and len(outcomes) == 87
    assert Counter("InconsistencyTest" in record["types"] for record in records) == {False: 66, True: 21}


def premise(record: dict[str, Any]) -> list[Triple]:
    return owl2rl.read_ontology(record["rdfXmlPremiseOntology"])


def some(folder: Path, parts: Collection[str]) -> Path:
    """A suite of those of the W3C's cases whose names end so."""
    records = [record for record in json.loads(shared(*CASES).read_text("utf-8")) if record["id"].endswith(tuple(parts))]
    assert len(records) == len(parts)
    (folder / "cases.json").write_text(json.dumps(records))
    return folder


PARTS = ("eqdis-sameas-subst", "eqdis-different-irrflxv", "char-transitive-inst", "chain-def", "restrict-maxcard-inst-obj-one",
         "inv-inst", "ndis-alldisjointclasses-fw", "key-def")


def test_owl2rl_in_tasks(tmp_path: Path) -> None:
    """Some of them by the plans, as static graphs and as contents of windows."""
    with in_this_process() as answer:
        outcomes = list(owl2rl.run(some(tmp_path, PARTS), answer))
    assert [o for o in outcomes if o.verdict is not Verdict.PASSED] == [] and len(outcomes) == len(PARTS)


@pytest.mark.spark
@pytest.mark.parametrize("executor", ["local", "sql"])
def test_rules_on_spark(tmp_path: Path, executor: str) -> None:
    """A few cases of each suite in Spark jobs."""
    with on_spark(executor) as answer:
        found = [*owl2rl.run(some(tmp_path, PARTS[:2]), answer), *entailment.run(shared("w3c-sparql"), answer, "rif0"),
                 *rif.run(shared("w3c-rif-core"), answer, "Frame")]
    assert Counter(o.verdict for o in found) == {Verdict.PASSED: 2 + 2 + 2, Verdict.SKIPPED: 2}


def test_w3c_entailment_regimes() -> None:
    """Of the 40 cases that are tagged RDFS or RL, 39 have their answer, and two of RIF's; what the others ask for is named."""
    with reference() as answer:
        outcomes = list(entailment.run(shared("w3c-sparql"), answer))
    assert [o for o in outcomes if o.verdict is Verdict.FAILED] == []
    skipped = {o.case for o in outcomes if o.verdict is Verdict.SKIPPED}
    assert {case for case in skipped if " under " in case} == {*entailment.EXCEPTIONS, "rif01 under rif", "rif04 under rif"}
    passed = {o.case.partition(" under ")[0] for o in outcomes if o.verdict is Verdict.PASSED}
    assert len(passed) == 39 + 2 and Counter(o.verdict for o in outcomes)[Verdict.PASSED] == 68 + 2
    assert {case.partition(" ")[0] for case in entailment.EXCEPTIONS} - passed == {"simple1"}


def test_each_rule_that_a_case_needs_is_missed() -> None:
    """Without any rule hardly a case holds; without those about sameAs the cases about it fail, and say so."""
    def under(rules: RuleSet) -> owl2rl.Entail:
        def entail(premise: Sequence[Triple]) -> owl2rl.Closed:
            graph, found = closure(Graph(premise), rules)
            return graph.triples, frozenset(i.rule for i in found)
        return entail

    def judged(record: dict[str, Any], name: str, entail: owl2rl.Entail) -> Outcome:
        return owl2rl.judge(record, {name: entail(premise(record))})

    records = json.loads(shared(*CASES).read_text("utf-8"))
    none = [judged(record, "none", under(RuleSet("none", ()))) for record in records]
    assert all(o.verdict is Verdict.FAILED and o.reason.startswith("none: ") for o in none)
    some = under(RuleSet("some", tuple(r for r in OWL2RL.rules if not (r.name or "").startswith("eq-"))))
    failed = {r["id"] for r in records if judged(r, "some", some).verdict is Verdict.FAILED}
    assert {f"rdfbased-sem-eqdis-sameas-{part}" for part in ("rflxv", "subst", "sym", "trans")} <= failed < {r["id"] for r in records}


@pytest.mark.parametrize(("types", "conclusion", "verdict"), [
    (["ConsistencyTest"], None, "failed"), (["InconsistencyTest"], None, "passed"), (["ProfileIdentificationTest"], None, "skipped"),
    (["PositiveEntailmentTest"], "<rdf:Description rdf:about='urn:a'><rdf:type rdf:resource='urn:D'/></rdf:Description>", "passed"),
    (["PositiveEntailmentTest"], "<rdf:Description rdf:about='urn:a'><rdf:type rdf:resource='urn:E'/></rdf:Description>", "failed"),
    (["NegativeEntailmentTest"], "<rdf:Description rdf:about='urn:a'><rdf:type rdf:resource='urn:D'/></rdf:Description>", "failed"),
    (["NegativeEntailmentTest"], "<rdf:Description rdf:about='urn:a'><rdf:type rdf:resource='urn:E'/></rdf:Description>", "passed"),
    (["PositiveEntailmentTest"], "<rdf:Description rdf:nodeID='x'><rdf:type rdf:resource='urn:C'/></rdf:Description>", "passed"),
])
def test_every_kind_of_case_is_judged(tmp_path: Path, types: list[str], conclusion: str | None, verdict: str) -> None:
    head = ("<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:rdfs='http://www.w3.org/2000/01/rdf-schema#' "
            "xmlns:owl='http://www.w3.org/2002/07/owl#'>")
    premise = ("<rdf:Description rdf:about='urn:a'><rdf:type rdf:resource='urn:C'/></rdf:Description><rdf:Description rdf:about='urn:C'>"
               "<rdfs:subClassOf rdf:resource='urn:D'/><owl:disjointWith rdf:resource='urn:D'/></rdf:Description>")
    record = {"id": "case", "types": types, "rdfXmlPremiseOntology": f"{head}{premise}</rdf:RDF>"}
    for key in ("rdfXmlConclusionOntology", "rdfXmlNonConclusionOntology") if conclusion else ():
        record[key] = f"{head}{conclusion}</rdf:RDF>"
    (tmp_path / "cases.json").write_text(json.dumps([record]))
    with reference() as answer:
        assert [o.verdict.value for o in owl2rl.run(tmp_path, answer)] == [verdict]


def test_readings_that_differ_fail() -> None:
    record = next(r for r in json.loads(shared(*CASES).read_text("utf-8")) if "PositiveEntailmentTest" in r["types"])
    triples, fired = owl2rl.general(premise(record))
    assert owl2rl.judge(record, {"one": (triples, fired), "other": (triples, None)}).verdict is Verdict.PASSED
    outcome = owl2rl.judge(record, {"one": (triples, fired), "other": (triples, frozenset(("eq-diff1",)))})
    assert outcome.verdict is Verdict.FAILED and "eq-diff1" in outcome.reason
    outcome = owl2rl.judge(record, {"one": (triples, fired), "other": (triples | {("<urn:more>", "<urn:more>", "<urn:more>")}, fired)})
    assert outcome.verdict is Verdict.FAILED and outcome.reason.startswith("one and other differ in [('<urn:more>'")
