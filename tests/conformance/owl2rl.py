"""OWL 2 test cases of the RL profile, from every ``*.json`` of a folder: a list of records with the premise and the conclusion as RDF/XML.

A case counts once: what its types ask must hold of the closure that the oracle makes in two ways (general rules, rules partially
evaluated against the premise), and of those that the executor shows of the premise as a static graph and as the content of a window.
All closures must be the same, and found inconsistent by the same rules.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from grammar import parse
from tests.conformance.executors import Answer, Evaluation
from tests.conformance.outcomes import Outcome, Verdict
from tests.conformance.readings import Question, ask

BASE = "http://example.org/"
KINDS = ("PositiveEntailmentTest", "NegativeEntailmentTest", "InconsistencyTest", "ConsistencyTest")
EVERYTHING = parse("SELECT ?s ?p ?o WHERE { ?s ?p ?o }")

Closed = tuple[frozenset[Triple], frozenset[str] | None]
"""The closure of a premise, and the names of the rules that found it inconsistent (None: not told)."""
Entail = Callable[[Sequence[Triple]], Closed]


def general(premise: Sequence[Triple]) -> Closed:
    """By rules that meet the schema in the data."""
    return _closed(premise, OWL2RL)


def compiled(premise: Sequence[Triple]) -> Closed:
    """By rules partially evaluated against the premise's own schema."""
    return _closed(premise, compile_rules(OWL2RL, premise))


READINGS: dict[str, Entail] = {"general rules": general, "partially evaluated rules": compiled}


def run(folder: Path, answer: Answer, only: str = "") -> Iterator[Outcome]:
    """One outcome per case, files and cases in their order."""
    records = [record for path in sorted(folder.glob("*.json")) for record in json.loads(path.read_text("utf-8")) if only in record["id"]]
    premises = {record["id"]: tuple(read_ontology(record["rdfXmlPremiseOntology"])) for record in records if _kinds(record)}
    asked = ask(answer, {case: Question(EVERYTHING, premise, ("owl2rl",)) for case, premise in premises.items()})
    for record in records:
        case = record["id"]
        if case not in premises:
            yield Outcome(case, Verdict.SKIPPED, f"it asks for nothing that can be run: {', '.join(record['types'])}")
        elif isinstance(told := asked[case], str):
            yield Outcome(case, Verdict.FAILED, told)
        else:
            yield judge(record, by_oracle(premises[case]) | {reading: _shown(evaluation) for reading, evaluation in told.items()})


def by_oracle(premise: Sequence[Triple]) -> dict[str, Closed]:
    """The closures of a premise by READINGS."""
    return {name: entail(premise) for name, entail in READINGS.items()}


def _kinds(record: Mapping[str, Any]) -> list[str]:
    return [kind for kind in KINDS if kind in record["types"]]


def judge(record: Mapping[str, Any], found: Mapping[str, Closed]) -> Outcome:
    """What became of a case, given the closures by the readings that made them."""
    for reading, closed in found.items():
        for kind in _kinds(record):
            wrong = _wrong(kind, record, closed)
            if wrong is not None:
                return Outcome(record["id"], Verdict.FAILED, f"{reading}: {wrong}")
    (first, one), *others = found.items()
    for reading, (triples, fired) in others:
        odd, rules = one[0] ^ triples, one[1] ^ fired if one[1] is not None and fired is not None else frozenset[str]()
        if odd or rules:
            return Outcome(record["id"], Verdict.FAILED, f"{first} and {reading} differ in {sorted(odd)[:5]}, {sorted(rules)}")
    return Outcome(record["id"], Verdict.PASSED)


def _wrong(kind: str, record: Mapping[str, Any], closed: Closed) -> str | None:
    triples, fired = closed
    if kind == "InconsistencyTest":
        return "not found inconsistent" if fired == frozenset() else None
    if kind == "ConsistencyTest":
        return f"found inconsistent by {', '.join(sorted(fired))}" if fired else None
    positive = kind == "PositiveEntailmentTest"
    conclusion = read_ontology(record["rdfXmlConclusionOntology" if positive else "rdfXmlNonConclusionOntology"])
    if entails(triples, conclusion) is positive:
        return None
    return f"does not entail {conclusion}" if positive else f"entails {conclusion}"


def entails(triples: Iterable[Triple], conclusion: Sequence[Triple]) -> bool:
    """Whether the conclusion is a part of the graph, its blank nodes being any terms of it."""
    body = tuple(Atom(TRIPLE, tuple(map(_pattern, triple))) for triple in conclusion)
    _, matches = closure(Graph(triples), RuleSet("conclusion", (Rule(Falsum(), body),)))
    return bool(matches)


def read_ontology(text: str) -> list[Triple]:
    """The triples of an RDF/XML document."""
    quads = pyoxigraph.parse(text.encode(), pyoxigraph.RdfFormat.RDF_XML, base_iri=BASE)
    return [(str(q.subject), str(q.predicate), str(q.object)) for q in quads]


def _pattern(token: str) -> Term:
    return Variable(token) if token.startswith("_:") else Constant(token)


def _closed(premise: Sequence[Triple], rules: RuleSet) -> Closed:
    graph, inconsistencies = closure(Graph(premise), rules)
    return graph.triples, frozenset(i.rule for i in inconsistencies)


def _shown(evaluation: Evaluation) -> Closed:
    fired = evaluation.inconsistencies
    return (frozenset((row["s"], row["p"], row["o"]) for row in evaluation.result.rows),
            None if fired is None else frozenset(text.partition(":")[0] for text in fired))
