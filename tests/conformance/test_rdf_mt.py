"""W3C's tests of RDF 1.1 Semantics, as ``python -m tests.conformance rdf-mt`` runs them, and that the runner can fail."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from engine.ir.rules import RuleSet
from engine.rewrite.owl2rl import BUILT_IN
from tests.conformance import rdf_mt
from tests.conformance.executors import reference
from tests.conformance.outcomes import Verdict
from tests.shared import shared

HEAD = """@prefix mf: <http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#> .
<> mf:entries ( <#case> ) .
<#case> a mf:%s ; mf:entailmentRegime "RDFS" ; mf:action <premise.ttl> ; mf:result %s ."""
PREMISE = "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . <a:x> a <a:C> . <a:C> rdfs:subClassOf <a:D> ."


def test_rdf_semantics() -> None:
    """48 tests under two rule sets: 61 have their answer, the others a reason."""
    with reference() as answer:
        outcomes = list(rdf_mt.run(shared("w3c-rdf-mt"), answer))
    counts = Counter(outcome.verdict for outcome in outcomes)
    assert [o for o in outcomes if o.verdict is Verdict.FAILED] == []
    assert {o.case for o in outcomes if o.verdict is Verdict.SKIPPED} == set(rdf_mt.EXCEPTIONS)
    assert (len(outcomes), counts[Verdict.PASSED]) == (96, 61)


def test_without_rules_less_holds() -> None:
    nothing = RuleSet("nothing", ())
    failed = {test.name for test in rdf_mt.read_tests(shared("w3c-rdf-mt"))
              if rdf_mt.judge(test.name, test, nothing).verdict is Verdict.FAILED}
    assert {"rdfs-no-cycles-in-subClassOf-test001", "rdfs-subPropertyOf-semantics-test001"} & failed
    assert failed > {case.partition(" ")[0] for case in rdf_mt.EXCEPTIONS if case.endswith(" rdfs")}


@pytest.mark.parametrize(("kind", "conclusion", "verdict"), [
    ("PositiveEntailmentTest", "<a:x> a <a:D> .", "passed"), ("NegativeEntailmentTest", "<a:x> a <a:D> .", "failed"),
    ("PositiveEntailmentTest", "<a:x> a <a:E> .", "failed"), ("NegativeEntailmentTest", "<a:x> a <a:E> .", "passed"),
    ("PositiveEntailmentTest", "<a:x> a _:b . _:c a _:b .", "passed"), ("PositiveEntailmentTest", None, "failed"),
    ("NegativeEntailmentTest", None, "passed")])
def test_every_kind_is_judged(tmp_path: Path, kind: str, conclusion: str | None, verdict: str) -> None:
    (tmp_path / "manifest.ttl").write_text(HEAD % (kind, "false" if conclusion is None else "<conclusion.ttl>"))
    (tmp_path / "premise.ttl").write_text(PREMISE)
    (tmp_path / "conclusion.ttl").write_text(conclusion or "")
    with reference() as answer:
        found = {outcome.case: outcome.verdict.value for outcome in rdf_mt.run(tmp_path, answer)}
    assert found == {f"case under {name}": verdict for name in BUILT_IN}
