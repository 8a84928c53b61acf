"""OWL 2 test cases of the RL profile, from every ``*.json`` of a folder: a list of records with the premise and the conclusion as RDF/XML.

A case counts once: what its types ask must hold of the closure in each of READINGS, and these must give the same closure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyoxigraph

from engine.ir.rules import TRIPLE, Atom, Falsum, Rule, RuleSet
from engine.ir.terms import Constant, Term, Variable
from engine.records import Triple
from engine.reference.closure import closure
from engine.reference.dataset import Graph
from engine.rewrite.owl2rl import OWL2RL
from engine.rewrite.partial import compile_rules
from tests.conformance.executors import Answer
from tests.conformance.outcomes import Outcome, Verdict

BASE = "http://example.org/"
KINDS = ("PositiveEntailmentTest", "NegativeEntailmentTest", "InconsistencyTest", "ConsistencyTest")

Closed = tuple[Graph, frozenset[str]]
Entail = Callable[[Sequence[Triple]], Closed]
"""The closure of a premise, and the names of the rules that found it inconsistent."""


def general(premise: Sequence[Triple]) -> Closed:
    """By rules that meet the schema in the data."""
    return _closed(premise, OWL2RL)


def compiled(premise: Sequence[Triple]) -> Closed:
    """By rules partially evaluated against the premise's own schema."""
    return _closed(premise, compile_rules(OWL2RL, premise))


READINGS: dict[str, Entail] = {"general rules": general, "partially evaluated rules": compiled}


def run(folder: Path, answer: Answer, only: str = "") -> Iterator[Outcome]:
    """One outcome per case, files and cases in their order."""
    for path in sorted(folder.glob("*.json")):
        for record in json.loads(path.read_text("utf-8")):
            if only in record["id"]:
                yield judge(record, READINGS)


def judge(record: Mapping[str, Any], readings: Mapping[str, Entail]) -> Outcome:
    """What became of a case."""
    case, kinds = record["id"], [kind for kind in KINDS if kind in record["types"]]
    if not kinds:
        return Outcome(case, Verdict.SKIPPED, f"it asks for nothing that can be run: {', '.join(record['types'])}")
    premise = read_ontology(record["rdfXmlPremiseOntology"])
    found = {name: entail(premise) for name, entail in readings.items()}
    for name, closed in found.items():
        for kind in kinds:
            wrong = _wrong(kind, record, closed)
            if wrong is not None:
                return Outcome(case, Verdict.FAILED, f"{name}: {wrong}")
    (first, one), *others = found.items()
    for name, other in others:
        odd = one[0].triples ^ other[0].triples
        if odd or one[1] != other[1]:
            return Outcome(case, Verdict.FAILED, f"{first} and {name} differ in {sorted(odd)[:5]}, {sorted(one[1] ^ other[1])}")
    return Outcome(case, Verdict.PASSED)


def _wrong(kind: str, record: Mapping[str, Any], closed: Closed) -> str | None:
    graph, fired = closed
    if kind == "InconsistencyTest":
        return None if fired else "not found inconsistent"
    if kind == "ConsistencyTest":
        return f"found inconsistent by {', '.join(sorted(fired))}" if fired else None
    positive = kind == "PositiveEntailmentTest"
    conclusion = read_ontology(record["rdfXmlConclusionOntology" if positive else "rdfXmlNonConclusionOntology"])
    if entails(graph, conclusion) is positive:
        return None
    return f"does not entail {conclusion}" if positive else f"entails {conclusion}"


def entails(graph: Graph, conclusion: Sequence[Triple]) -> bool:
    """Whether the conclusion is a part of the graph, its blank nodes being any terms of it."""
    body = tuple(Atom(TRIPLE, tuple(map(_pattern, triple))) for triple in conclusion)
    _, matches = closure(graph, RuleSet("conclusion", (Rule(Falsum(), body),)))
    return bool(matches)


def read_ontology(text: str) -> list[Triple]:
    """The triples of an RDF/XML document."""
    quads = pyoxigraph.parse(text.encode(), pyoxigraph.RdfFormat.RDF_XML, base_iri=BASE)
    return [(str(q.subject), str(q.predicate), str(q.object)) for q in quads]


def _pattern(token: str) -> Term:
    return Variable(token) if token.startswith("_:") else Constant(token)


def _closed(premise: Sequence[Triple], rules: RuleSet) -> Closed:
    graph, inconsistencies = closure(Graph(premise), rules)
    return graph, frozenset(i.rule for i in inconsistencies)
