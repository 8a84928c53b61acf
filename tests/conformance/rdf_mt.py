"""W3C's tests of RDF 1.1 Semantics, from the ``manifest.ttl`` of a folder, under `rdfs` and under `owl2rl`; what has another answer there
has its reason in EXCEPTIONS.

A test asks whether a graph entails another one, or whether it is inconsistent. Its own regime (simple, RDF or RDFS, with datatypes) is
weaker than either rule set or not much stronger: so this says what of the semantics the rules keep, and what they leave out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyoxigraph

from engine.ir.rules import RuleSet
from engine.records import Triple
from engine.reference.closure import closure
from engine.reference.dataset import Graph
from engine.rewrite.owl2rl import BUILT_IN
from engine.rewrite.partial import compile_rules
from tests.conformance.datasets import read_triples
from tests.conformance.executors import Answer
from tests.conformance.outcomes import Outcome, Verdict
from tests.conformance.owl2rl import entails

BASE = "http://example.org/"
_TESTS = """PREFIX mf: <http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#>
PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
SELECT ?test ?kind ?regime ?action ?result {
  ?test a ?kind ; mf:entailmentRegime ?regime ; mf:action ?action ; mf:result ?result . ?list rdf:first ?test }"""


@dataclass(frozen=True, slots=True)
class Test:
    """`positive` tests hold if `premise` entails `conclusion`, or is inconsistent (None); the others if not."""

    name: str
    regime: str
    positive: bool
    premise: Path
    conclusion: Path | None


_FORMS = "the conclusion writes a value in another lexical form than the data: no rule makes up terms"
_ILL = "a literal without a value is inconsistent by itself (section 7.1), which dt-not-type asks only of literals whose type follows"
_FALSE = "no rule of RDFS has the head false (section 9.2.1)"
_CONTAINERS = "it asks for rdfs12, or for axiomatic triples about rdf:_1, which both rule sets leave out"
_EXTENSIONAL = "it holds in OWL: scm-dom1 and scm-rng1 hand domains and ranges up to what is above them"

EXCEPTIONS: dict[str, str] = {f"{test} under {name}": reason for names, reason, tests in (
    ("owl2rl rdfs", _FORMS, "datatypes-semantic-equivalence-within-type-1 datatypes-semantic-equivalence-within-type-2 "
     "datatypes-semantic-equivalence-between-datatypes double-infinity double-round-same float-infinity float-round-same"),
    ("owl2rl rdfs", _ILL, "datatypes-non-well-formed-literal-2 xmlsch-02-whitespace-facet-2 xmlsch-02-whitespace-facet-4"),
    ("rdfs", _FALSE, "datatypes-range-clash datatypes-test010 rdfs-entailment-test001 rdfs-entailment-test002"),
    ("owl2rl", "rdf:langString is no datatype of OWL 2 RL (OWL 2 Profiles section 4.2)", "rdfs-entailment-test002"),
    ("owl2rl rdfs", "rdfD1 would give the literal a blank node", "literal-type"),
    ("owl2rl rdfs", _CONTAINERS, "rdfms-seq-representation-test002 rdfms-seq-representation-test003 rdfms-seq-representation-test004"),
    ("owl2rl", _EXTENSIONAL, "rdfs-domain-and-range-intensionality-domain rdfs-domain-and-range-intensionality-range"),
) for test in tests.split() for name in names.split()}
"""By test and rule set: why the answer there is another one (sections of RDF 1.1 Semantics). A test that passes all the same counts."""

READINGS: dict[str, Callable[[RuleSet, Sequence[Triple]], RuleSet]] = {
    "general rules": lambda rules, premise: rules, "partially evaluated rules": compile_rules}


def run(folder: Path, answer: Answer, only: str = "") -> Iterator[Outcome]:
    """An outcome for each approved test and rule set."""
    for test in read_tests(folder):
        for name, rules in sorted(BUILT_IN.items()):
            case = f"{test.name} under {name}"
            if only in case:
                yield excepted(judge(case, test, rules))


def read_tests(folder: Path) -> list[Test]:
    """The tests that the manifest lists, by name."""
    store = pyoxigraph.Store()
    store.load((folder / "manifest.ttl").read_bytes(), pyoxigraph.RdfFormat.TURTLE, base_iri=BASE)

    def path(term: pyoxigraph.NamedNode) -> Path:
        return folder / term.value.removeprefix(BASE)

    return [Test(row["test"].value.rpartition("#")[2], row["regime"].value, row["kind"].value.endswith("#PositiveEntailmentTest"),
                 path(row["action"]), path(row["result"]) if isinstance(row["result"], pyoxigraph.NamedNode) else None)
            for row in sorted(store.query(_TESTS), key=str)]  # type: ignore[union-attr, arg-type]


def judge(case: str, test: Test, rules: RuleSet) -> Outcome:
    """What became of a test under a rule set."""
    premise = list(read_triples(test.premise, BASE, "p"))
    for reading, ready in READINGS.items():
        graph, found = closure(Graph(premise), ready(rules, premise))
        wrong = _wrong(test, (graph, frozenset(i.rule for i in found)))
        if wrong is not None:
            return Outcome(case, Verdict.FAILED, f"{reading}: {wrong} ({test.regime})")
    return Outcome(case, Verdict.PASSED)


def excepted(outcome: Outcome) -> Outcome:
    """Skipped with its reason, if the outcome is no news."""
    reason = EXCEPTIONS.get(outcome.case)
    return outcome if outcome.verdict is not Verdict.FAILED or reason is None else Outcome(outcome.case, Verdict.SKIPPED, reason)


def _wrong(test: Test, closed: tuple[Graph, frozenset[str]]) -> str | None:
    """What is not as the test says; what is inconsistent entails everything."""
    graph, fired = closed
    holds = bool(fired)
    if test.conclusion is not None:
        holds = holds or entails(graph.triples, list(read_triples(test.conclusion, BASE, "c")))
    if holds is test.positive:
        return None
    what = "inconsistent" if fired else "consistent" if test.conclusion is None else "entailed" if holds else "not entailed"
    return f"it is {what}"
