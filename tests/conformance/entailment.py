"""Tests of SPARQL 1.1 Entailment Regimes, from an ``entailment_index.json`` and the manifests beside its queries.

A case that is tagged RDFS is run under `rdfs`, one for the RL profile (or tagged RDFS and OWL's RDF-based semantics) under `owl2rl`,
the data being the closure of the case's own: once by general rules, once by rules partially evaluated against it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyoxigraph

from engine.functions.expressions import Context
from engine.ir.rules import RuleSet
from engine.ir.spans import DiagnosticError
from engine.ir.statement import Statement
from engine.records import Triple
from engine.reference.closure import closure
from engine.reference.dataset import Dataset, Graph
from engine.reference.sparql import Result, evaluate
from engine.rewrite.owl2rl import BUILT_IN
from engine.rewrite.partial import compile_rules
from grammar import parse
from tests.conformance.datasets import read_triples
from tests.conformance.executors import Answer
from tests.conformance.outcomes import Outcome, Verdict, refusal
from tests.conformance.results import difference, read_result

BASE = "http://example.org/"
TESTS = "http://www.w3.org/2001/sw/DataAccess/tests/test-"
_FILES = f"""PREFIX mf: <{TESTS}manifest#> PREFIX qt: <{TESTS}query#>
SELECT * {{ ?test mf:action [ qt:query ?query ; qt:data ?data ] ; mf:result ?result }}"""

_REFLEXIVE = "it asks for rdfs6 or rdfs10 (each property, each class, is below itself), which `rdfs` leaves out"
EXCEPTIONS: dict[str, str] = {
    **{f"{case} under rdfs": _REFLEXIVE for case in ("rdfs05", "rdfs11", "paper-sparqldl-Q1-rdfs", "sparqldl-02", "sparqldl-03")},
    "simple1 under owl2rl": "its query describes a class that the data does not have: no rule makes up new terms",
}
"""By case and rule set: what the published answer has that no rule derives. An answer that is right all the same counts as passed."""

Entailed = Callable[[Statement, Sequence[Triple], RuleSet], Result]
"""The answer of a query over data under rules."""


def general(statement: Statement, data: Sequence[Triple], rules: RuleSet) -> Result:
    """Over the closure by rules that meet the schema in the data."""
    return evaluate(statement.query, Dataset(closure(Graph(data), rules)[0]), Context(0))


def compiled(statement: Statement, data: Sequence[Triple], rules: RuleSet) -> Result:
    """Over the closure by rules partially evaluated against the data's own schema."""
    return general(statement, data, compile_rules(rules, data))


READINGS: dict[str, Entailed] = {"general rules": general, "partially evaluated rules": compiled}


@dataclass(frozen=True, slots=True)
class _Case:
    name: str
    query: Path
    data: tuple[Path, ...]
    result: Path


def run(folder: Path, answer: Answer, only: str = "") -> Iterator[Outcome]:
    """An outcome for each case and rule set that serves one of its regimes; one for each case that none serves."""
    index = json.loads((folder / "entailment_index.json").read_text("utf-8"))
    files = {case.name: case for manifest in sorted(folder.rglob("manifest*.ttl")) for case in _cases(manifest)}
    for record in index:
        served = rule_sets(record)
        if not served and only in record["id"]:
            yield Outcome(record["id"], Verdict.SKIPPED, _unserved(record))
        for name in served:
            case = f"{record['id']} under {name}"
            if only in case:
                yield _excepted(_judge(case, files[record["id"]], BUILT_IN[name], READINGS))


def rule_sets(record: Mapping[str, Any]) -> tuple[str, ...]:
    """The built-in rule sets that serve a case's regimes."""
    rdfs, owl = "RDFS" in record["regimes"], "OWL-RDF-Based" in record["regimes"]
    return ("rdfs",) * rdfs + ("owl2rl",) * ("RL" in record["profiles"] or rdfs and owl)


def _unserved(record: Mapping[str, Any]) -> str:
    if "RIF" in record["regimes"]:
        return "its rules are a RIF document, which this suite does not read yet"
    profiles = f" ({', '.join(record['profiles'])})" if record["profiles"] else ""
    return f"it asks for {', '.join(record['regimes'])}{profiles}; here are RDFS and OWL 2 RL"


def _excepted(outcome: Outcome) -> Outcome:
    reason = EXCEPTIONS.get(outcome.case)
    return outcome if outcome.verdict is not Verdict.FAILED or reason is None else Outcome(outcome.case, Verdict.SKIPPED, reason)


def _judge(name: str, case: _Case, rules: RuleSet, readings: Mapping[str, Entailed]) -> Outcome:
    try:
        statement = parse(f"BASE <{BASE}>\n{case.query.read_text('utf-8')}")
        data = [triple for n, path in enumerate(case.data) for triple in read_triples(path, BASE, f"f{n}")]
        expected = read_result(case.result, statement.form, BASE)
        for reading, answer in readings.items():
            wrong = difference(answer(statement, data, rules), expected)
            if wrong is not None:
                return Outcome(name, Verdict.FAILED, f"{reading}: {wrong}")
    except DiagnosticError as error:
        return Outcome(name, Verdict.FAILED, refusal(error))
    return Outcome(name, Verdict.PASSED)


def _cases(manifest: Path) -> Iterator[_Case]:
    store = pyoxigraph.Store()
    store.load(manifest.read_bytes(), pyoxigraph.RdfFormat.TURTLE, base_iri=BASE)
    found: dict[str, list[dict[str, Path]]] = {}
    for row in store.query(_FILES):  # type: ignore[union-attr]
        paths = {name: manifest.parent / row[name].value.removeprefix(BASE) for name in ("query", "data", "result")}
        found.setdefault(row["test"].value.rpartition("#")[2], []).append(paths)
    for name, files in found.items():
        yield _Case(name, files[0]["query"], tuple(sorted({f["data"] for f in files})), files[0]["result"])
