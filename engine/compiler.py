"""The one list of stages that a statement goes through, from its parsed form to the text that Spark runs.

``parsed -> validated -> rewritten -> logical -> spark``; the same words are the levels of EXPLAIN, the tabs of the console and the
folders of tests/golden.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pyarrow as pa

from engine.ir.statement import BACKGROUND, Statement
from engine.plan.build import Builder, dataset
from engine.plan.nodes import MergedSource, Plan, StaticSource
from engine.plan.order import Estimate
from engine.records import Triple
from engine.rewrite import PASSES, rdfs
from engine.rewrite.context import Context
from engine.rewrite.validate import Catalog, validate
from engine.spark.compiled import STAGES, Compiled
from engine.spark.content import merge_estimates, table_estimate


def compile_statement(statement: Statement, catalog: Catalog, identity: str = "", until: str = "spark") -> Compiled:
    """Take a parsed statement through STAGES; DiagnosticError carries everything that is wrong with it.

    `identity` seeds RAND, UUID and blank nodes: the query's name. `until` "logical" leaves the texts for Spark to first use.
    """
    validated = validate(statement, catalog)
    context = rewrite_context(validated, catalog)
    rewritten = validated
    for rewrite in PASSES:
        rewritten = rewrite(rewritten, context)
    estimate = static_estimate(validated, catalog)
    data = dataset(rewritten)
    background = (*(g.iri for g in statement.graphs if not g.named), *(g.iri for g in statement.reasoning_graphs))
    if statement.rules:
        data.graphs[BACKGROUND] = MergedSource(tuple(map(StaticSource, background)))

    def build(live: Estimate) -> Plan:
        return Builder(data, live).build(rewritten.query)

    identity = identity or hashlib.sha256(statement.text.encode()).hexdigest()[:12]
    compiled = Compiled(validated, rewritten, build(estimate), identity, estimate, build)
    if until == "spark":
        compiled.text("local")
        compiled.text("sql")
    return compiled


def rewrite_context(statement: Statement, catalog: Catalog) -> Context:
    """The rules that the statement names, evaluated against its static graphs."""
    if not statement.rules:
        return Context()
    shown = [t for g in statement.graphs if not g.named for t in triples(catalog.graphs[g.iri])]
    tbox = shown + [t for g in statement.reasoning_graphs for t in triples(catalog.graphs[g.iri])]
    rules = rdfs.compile_rdfs(tbox)
    visible = replace(rules, facts=rdfs.compile_rdfs(shown).facts)
    return Context(visible, rdfs.apply(rules, tbox))


def triples(table: pa.Table) -> list[Triple]:
    """The triples of a static graph's facts."""
    return list(zip(*(table[c].to_pylist() for c in "spo")))


def static_estimate(statement: Statement, catalog: Catalog) -> Estimate:
    """Counts of the static graphs; streams count as they come (Compiled.adapt)."""
    return merge_estimates(table_estimate(catalog.graphs[g.iri]) for g in statement.graphs) if statement.graphs else Estimate()


__all__ = ["STAGES", "Catalog", "Compiled", "compile_statement"]
