"""Tests of SPARQL 1.1 Entailment Regimes, from an ``entailment_index.json`` and the manifests beside its queries.

A case that is tagged RDFS is run under `rdfs`, one for the RL profile (or tagged RDFS and OWL's RDF-based semantics) under `owl2rl`.
Its data is closed by the oracle in two ways (general rules, rules partially evaluated against it), and by the executor as a static graph
and as the content of a window. A case of RIF is run under the document that its data names, if that is in a folder beside this one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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
from tests.conformance.readings import Question, Told, ask
from tests.conformance.results import Expected, difference, read_result
from tests.conformance.rif import DIRECT, premise
from tests.conformance.rif_cases import Case as RifCase

BASE = "http://example.org/"
TESTS = "http://www.w3.org/2001/sw/DataAccess/tests/test-"
USED_WITH = "<http://www.w3.org/2007/rif#usedWithProfile>"
_FILES = f"""PREFIX mf: <{TESTS}manifest#> PREFIX qt: <{TESTS}query#>
SELECT * {{ ?test mf:action [ qt:query ?query ; qt:data ?data ] ; mf:result ?result }}"""

_USED = "it asks that what is used as a property or class is one, and so below itself (rdfs6, rdfs10); `rdfs` says so of the schema"
EXCEPTIONS: dict[str, str] = {
    **{f"{case} under rdfs": _USED for case in ("sparqldl-02", "sparqldl-03")},
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


@dataclass(frozen=True, slots=True)
class _Asked:
    """A case as a question, the rules that the oracle closes its data under, and the published answer."""

    question: Question
    rules: RuleSet
    expected: Expected
    direct: bool = False


def run(folder: Path, answer: Answer, only: str = "") -> Iterator[Outcome]:
    """An outcome for each case and rule set that serves one of its regimes; one for each case that none serves."""
    index = json.loads((folder / "entailment_index.json").read_text("utf-8"))
    files = {case.name: case for manifest in sorted(folder.rglob("manifest*.ttl")) for case in _cases(manifest)}
    found: dict[str, _Asked | Outcome] = {}
    for record in index:
        for case, prepare in _prepared(folder, record, files).items():
            if only in case:
                found[case] = _tried(case, prepare)
    asked = {case: one for case, one in found.items() if isinstance(one, _Asked)}
    told = ask(answer, {case: one.question for case, one in asked.items()})
    for case, one in found.items():
        yield one if isinstance(one, Outcome) else _excepted(_judge(case, one, told[case]))


def _prepared(folder: Path, record: Mapping[str, Any], files: Mapping[str, _Case]) -> dict[str, Callable[[], _Asked | Outcome]]:
    """What is to be made of a case, by the name of each outcome."""
    name = record["id"]
    if "RIF" in record["regimes"]:
        return {f"{name} under rif": partial(_under_document, folder, f"{name} under rif", files[name])}
    if served := rule_sets(record):
        return {f"{name} under {rules}": partial(_asked, files[name], rules) for rules in served}
    return {name: partial(Outcome, name, Verdict.SKIPPED, _unserved(record))}


def _tried(case: str, prepare: Callable[[], _Asked | Outcome]) -> _Asked | Outcome:
    try:
        return prepare()
    except DiagnosticError as error:
        return Outcome(case, Verdict.FAILED, refusal(error))


def _asked(case: _Case, rules: str) -> _Asked:
    statement, data, expected = _read(case)
    return _Asked(Question(statement, data, (rules,)), BUILT_IN[rules], expected)


def _under_document(folder: Path, name: str, case: _Case) -> _Asked | Outcome:
    """The case under the RIF document that its data names. What this imports under a profile is data under the rules of that."""
    statement, data, expected = _read(case)
    document = next(s.rpartition("/")[2].rstrip(">") for s, p, _ in data if p == USED_WITH)
    path = next(iter(sorted(folder.resolve().parent.rglob(document))), None)
    if path is None:
        return Outcome(name, Verdict.SKIPPED, f"its rules are {document}, which is not at hand")
    found = premise(RifCase("PositiveEntailmentTest", path.parent))
    return _Asked(Question(statement, (*data, *found.triples), (), found.program), found.program, expected, found.direct)


def _read(case: _Case) -> tuple[Statement, tuple[Triple, ...], Expected]:
    statement = parse(f"BASE <{BASE}>\n{case.query.read_text('utf-8')}")
    data = tuple(triple for n, path in enumerate(case.data) for triple in read_triples(path, BASE, f"f{n}"))
    return statement, data, read_result(case.result, statement.form, BASE)


def rule_sets(record: Mapping[str, Any]) -> tuple[str, ...]:
    """The built-in rule sets that serve a case's regimes."""
    rdfs, owl = "RDFS" in record["regimes"], "OWL-RDF-Based" in record["regimes"]
    return ("rdfs",) * rdfs + ("owl2rl",) * ("RL" in record["profiles"] or rdfs and owl)


def _unserved(record: Mapping[str, Any]) -> str:
    profiles = f" ({', '.join(record['profiles'])})" if record["profiles"] else ""
    return f"it asks for {', '.join(record['regimes'])}{profiles}; here are RDFS and OWL 2 RL"


def _excepted(outcome: Outcome) -> Outcome:
    reason = EXCEPTIONS.get(outcome.case)
    return outcome if outcome.verdict is not Verdict.FAILED or reason is None else Outcome(outcome.case, Verdict.SKIPPED, reason)


def _judge(name: str, asked: _Asked, told: Told | str) -> Outcome:
    if isinstance(told, str):
        return Outcome(name, Verdict.FAILED, told)
    statement, data = asked.question.statement, asked.question.data
    found = {reading: answer(statement, data, asked.rules) for reading, answer in READINGS.items()}
    for reading, result in (found | {reading: evaluation.result for reading, evaluation in told.items()}).items():
        wrong = difference(result, asked.expected)
        if wrong is not None:
            return Outcome(name, Verdict.FAILED, f"{reading}: {wrong}")
    return Outcome(name, Verdict.SKIPPED, DIRECT) if asked.direct else Outcome(name, Verdict.PASSED)


def _cases(manifest: Path) -> Iterator[_Case]:
    store = pyoxigraph.Store()
    store.load(manifest.read_bytes(), pyoxigraph.RdfFormat.TURTLE, base_iri=BASE)
    found: dict[str, list[dict[str, Path]]] = {}
    for row in store.query(_FILES):  # type: ignore[union-attr]
        paths = {name: manifest.parent / row[name].value.removeprefix(BASE) for name in ("query", "data", "result")}
        found.setdefault(row["test"].value.rpartition("#")[2], []).append(paths)
    for name, files in found.items():
        yield _Case(name, files[0]["query"], tuple(sorted({f["data"] for f in files})), files[0]["result"])
