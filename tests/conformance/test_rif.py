"""W3C's RIF cases, as ``python -m tests.conformance rif`` runs them, and the runner itself on cases made here."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.conformance import rif
from tests.conformance.executors import Answer, in_this_process, reference
from tests.conformance.outcomes import Outcome, Verdict
from tests.shared import shared
from tests.unit.grammar.rif_xml import as_xml

PREMISE = "Document(Prefix(ex <http://ex.org/>) %s Group(Forall ?x (ex:p(?x) :- ex:q(?x)) ex:q(1) Forall ?x (?x # ex:C :- ex:p(?x))))"
RULES = PREMISE.replace(" Forall ?x (?x # ex:C :- ex:p(?x))", "")


def outcomes(folder: Path) -> list[Outcome]:
    with reference() as answer:
        return list(rif.run(folder, answer))


def made(folder: Path, kind: str, **files: str) -> Outcome:
    """The outcome of one case; files by role, ``__`` before their ending."""
    case = folder / kind / "Case"
    case.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (case / f"Case-{name.replace('__', '.')}").write_text(text)
    found, = outcomes(folder)
    return found


@pytest.mark.parametrize("executor", [reference, in_this_process])
def test_w3c_cases(executor: Callable[[], AbstractContextManager[Answer]]) -> None:
    """All but one, which OWL-Direct is for."""
    with executor() as answer:
        found = list(rif.run(shared("w3c-rif-core"), answer))
    assert [o for o in found if o.verdict is Verdict.FAILED] == []
    assert [(o.case, o.reason) for o in found if o.verdict is Verdict.SKIPPED] == [
        ("PositiveEntailmentTest/Modeling_Brain_Anatomy", rif.DIRECT)]
    assert len(found) == 17 + 3 + 3 + 6


@pytest.mark.parametrize(("goal", "follows"), [
    ("ex:p(1)", True), ("ex:p(2)", False), ("Exists ?x (And(ex:p(?x) ex:q(?x)))", True), ("Or(ex:p(2) ex:q(1))", True),
    ("And(ex:p(1) External(pred:is-literal-string(1)))", False),
])
def test_entailments(tmp_path: Path, goal: str, follows: bool) -> None:
    kinds = {"PositiveEntailmentTest": ("conclusion__rifps", follows), "NegativeEntailmentTest": ("nonconclusion__rifps", not follows)}
    for kind, (role, passes) in kinds.items():
        found = made(tmp_path / kind, kind, premise__rifps=RULES % "", **{role: goal})
        assert found.verdict is (Verdict.PASSED if passes else Verdict.FAILED), found


def test_both_syntaxes_must_say_the_same(tmp_path: Path) -> None:
    text = RULES % ""
    found = made(tmp_path / "a", "PositiveEntailmentTest", premise__rifps=text, premise__rif=as_xml(text, "x"), conclusion__rifps="ex:p(1)")
    assert found.verdict is Verdict.PASSED
    other = as_xml(text.replace("ex:q(1)", "ex:q(2)"), "x")
    found = made(tmp_path / "b", "PositiveEntailmentTest", premise__rifps=text, premise__rif=other, conclusion__rifps="ex:p(1)")
    assert (found.verdict, found.reason) == (Verdict.FAILED, "RIF/XML and presentation syntax give different rules")


@pytest.mark.parametrize(("profile", "goal", "follows"), [
    ("Simple", "ex:p # rdf:Property", False), ("RDF", "ex:p # rdf:Property", True), ("RDF", "ex:a # ex:D", False),
    ("RDFS", "ex:a # ex:D", True), ("RDFS", "ex:p # rdf:Property", True), ("OWL-RDF-Based", "ex:b[ex:p -> ex:a]", True),
    ("RDFS", "ex:b[ex:p -> ex:a]", False), ("Simple", "ex:seen(ex:a)", True), ("Simple", "Exists ?x (ex:b[ex:q -> ?x])", True),
])
def test_graphs_are_combined_under_their_profile(tmp_path: Path, profile: str, goal: str, follows: bool) -> None:
    document = ("Document(Prefix(ex <http://ex.org/>) Import(<http://ex.org/Case-import001> <http://www.w3.org/ns/entailment/%s>) "
                "Group(Forall ?x ?y (ex:seen(?x) :- ?x[ex:p -> ?y])))")
    graph = ("@prefix ex: <http://ex.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . ex:a a ex:C ; ex:p ex:b . "
             "ex:C rdfs:subClassOf ex:D . ex:b ex:q [] . ex:p a <http://www.w3.org/2002/07/owl#SymmetricProperty> .")
    found = made(tmp_path, "PositiveEntailmentTest", premise__rifps=document % profile, import001__ttl=graph, conclusion__rifps=goal)
    assert found.verdict is (Verdict.PASSED if follows else Verdict.FAILED), found


@pytest.mark.parametrize(("kind", "text", "verdict"), [
    ("PositiveSyntaxTest", RULES % "", Verdict.PASSED), ("PositiveSyntaxTest", PREMISE % "", Verdict.FAILED),
    ("NegativeSyntaxTest", PREMISE % "", Verdict.PASSED), ("NegativeSyntaxTest", RULES % "", Verdict.FAILED),
    ("ImportRejectionTest", RULES % "Import(<http://ex.org/g> <http://www.w3.org/ns/entailment/OWL-Direct>)", Verdict.PASSED),
    ("ImportRejectionTest", RULES % "", Verdict.FAILED), ("ImportRejectionTest", RULES % "Import(<http://ex.org/none>)", Verdict.FAILED),
])
def test_refusals(tmp_path: Path, kind: str, text: str, verdict: Verdict) -> None:
    assert made(tmp_path, kind, input__rifps=text).verdict is verdict
