"""owl:sameAs by representatives: against its rules, applied as they stand, and against the reference evaluator, over random ontologies with
data; which rules allow it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from engine.execution.compiled import Compiled, Equality, constants_table
from engine.execution.due import Due
from engine.execution.executor import Executor
from engine.ir.rules import TRIPLE, Rule
from engine.ir.substitution import mapped
from engine.ir.terms import RDF_TYPE, SAME_AS, XSD, Constant, Term
from engine.plan.nodes import ClosedSource, StaticSource, WindowSource
from engine.records import Triple
from engine.rewrite.equality import derives_equality, obstacle
from engine.rewrite.owl2rl import OWL2RL, RDFS
from engine.rewrite.partial import compile_rules
from engine.rewrite.reflexive import without_reflexive
from engine.rewrite.rule_text import OWL, iri
from engine.runtime.rows import graph_table as facts_of
from engine.sql.dialect import DUCKDB
from engine.sql.fixpoint import closure_text
from engine.sql.lower import Lowering
from engine.sql.sources import graph_table
from engine.worker import bundles, equality
from engine.worker.closures import close
from engine.worker.database import connect, register
from tests.differential.plans import in_process
from tests.unit.rewrite.test_owl2rl_random import CLASSES, DATA, LITERALS, PROPERTIES, SCHEMA, THINGS, written
from tests.unit.rewrite.under_rules import E, PLACES, STREAM, TICK, Data, compiled, content_of_stream, evaluated, tables, text
from tests.unit.rewrite.under_rules import written as written_rules

BLANKS = ("_:b0", "_:b1")
PATTERNS = ("?x ?p ?y", "?x owl:sameAs ?y", "?x :p0 ?y", ":a :p0 ?y", "?x a ?c", ":b ?p ?y", "?x :p0 ?y . ?y :p1 ?z",
            "?x a :C0 FILTER(?x != :a)",
            "{ SELECT ?x (COUNT(*) AS ?n) WHERE { ?x :p0 ?y } GROUP BY ?x }", "{ SELECT DISTINCT ?y WHERE { ?x ?p ?y } }",
            "?x :p0 ?y OPTIONAL { ?y a ?c }", "?x :p1 ?y FILTER NOT EXISTS { ?y :p0 ?x }", "?x :p0+ ?y", "?x ?p \"1\"^^xsd:integer")

thing = st.sampled_from((*THINGS, *THINGS, *BLANKS))
equal = st.tuples(st.sampled_from((*THINGS, *THINGS, *BLANKS, *CLASSES[:2], *PROPERTIES[:2])), st.just(SAME_AS),
                  st.sampled_from((*THINGS, *THINGS, *BLANKS, *CLASSES[:2], *PROPERTIES[:2], *LITERALS[:3])))
data = st.lists(st.one_of(DATA, equal, equal, st.tuples(thing, st.sampled_from(PROPERTIES), thing)), max_size=6)


MAKING = st.one_of(
    st.tuples(st.sampled_from(PROPERTIES), st.just(RDF_TYPE),
              st.sampled_from([iri("FunctionalProperty"), iri("InverseFunctionalProperty")])),
    st.tuples(st.sampled_from(CLASSES), st.just(iri("hasKey")), st.sampled_from(PROPERTIES).map(lambda p: (p,))),
    st.tuples(st.sampled_from(PROPERTIES), st.just(iri("rdfs:subPropertyOf")), st.just(SAME_AS)))
"""Schema by which terms become equal."""
OWN = ("?x p0 ?y, ?y p0 ?z => ?x p1 ?z", "?x p0 ?y, literal ?y => ?x sameAs ?y", "?x p1 ?y, resource ?y => ?y p2 ?x",
       "?x p0 ?y, ?x p1 ?z, ?y != ?z => ?y sameAs ?z", "?x p0 ?y, ?y p1 ?z => r(?x ?z)", "r(?x ?y), ?x p2 ?z => ?y p2 ?z",
       "?x ?p ?y, ?p p2 ?y => ?x p0 ?x",
       "?x sameAs ?y, ?x p0 ?z => ?y p1 ?z", "?x p2 ?y, ?x p1 ?y => false", "?x p0 ?y, ?z p0 ?y, ?x != ?z => false")
"""Rules beside those of OWL 2 RL, with r an atom that is no triple."""


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    with in_process() as made:
        yield made


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect(threads=1) as made:
        yield made


@given(st.lists(st.one_of(SCHEMA, MAKING), max_size=4), st.lists(st.sampled_from(OWN), max_size=3, unique=True), st.booleans(),
       data, data, data)
def test_closures_are_those_of_the_rules(database: duckdb.DuckDBPyConnection, schema: list[object], own: list[str], reflexive: bool,
                                         behind: list[object], first: list[object], second: list[object]) -> None:
    """Of a graph, and at two T of a window beside it; with what is inconsistent."""
    background = [*written(schema), *written(behind)]
    compiled_rules = compile_rules(OWL2RL, background)
    facts = tuple(Rule(fact.atom, (), name="schema", role="built-in") for fact in compiled_rules.facts)
    rules = (*compiled_rules.rules, *facts, *own_rules(own))
    if not reflexive:
        rules = without_reflexive(rules, [(TRIPLE, (None, PROPERTIES[0], None))])
    assert obstacle(rules) == ""
    windows = {tick: list(written(part)) for tick, part in ((1, first), (2, second))}
    by_representatives, by_rules = (closures(database, rules, background, windows, way) for way in (True, False))
    assert by_representatives == by_rules


def own_rules(lines: Sequence[str]) -> list[Rule]:
    """Rules of one's own, which may speak of owl:sameAs."""
    def term(found: Term) -> Term:
        return Constant(SAME_AS) if found == Constant(f"<{E}sameAs>") else found
    return [replace(rule, head=mapped(rule.head, term), body=tuple(mapped(part, term) for part in rule.body), role="written")
            for rule in written_rules(lines)["own"].rules]


def closures(database: duckdb.DuckDBPyConnection, rules: Sequence[Rule], behind: Sequence[Triple], windows: dict[int, list[Triple]],
             by_representatives: bool, of_windows: Sequence[Rule] | None = None) -> list[list[Any]]:
    """The facts of a graph's closure, and by T those of a window's beside it, which may be under less rules; what is inconsistent in
    each."""
    static = ClosedSource("behind", (StaticSource("behind"),), None, tuple(rules), by_representatives)
    window = ClosedSource("window", (WindowSource(0),), static, tuple(of_windows or rules), by_representatives)
    contents = [facts_of(dict.fromkeys(found)).append_column("tick", pa.array([tick] * len(dict.fromkeys(found)), pa.int64()))
                for tick, found in windows.items()]
    given_rows = {graph_table("behind"): facts_of(dict.fromkeys(behind)), "content": pa.concat_tables(contents)}
    times = ", ".join(f"({tick})" for tick in windows)
    ticks = f"ticks AS (SELECT CAST(tick AS BIGINT) AS tick FROM (VALUES {times}) AS t(tick))"
    texts = [closure_text(source, DUCKDB, Lowering(DUCKDB, "q", 0)) for source in (static, window)]
    constants = {name: constants_table(rows) for made in texts for name, rows in made.constants.items()}
    found: list[list[Any]] = []
    for name, table in (given_rows | constants).items():
        register(database, name, table)
    try:
        for made in texts:
            closing = made.ready([ticks, "x0 AS (SELECT * FROM content)"])
            findings = close(database, closing) if closing.equality is None else equality.close(database, closing, closing.equality)
            columns = ", ".join(made.identity)  # the typed columns of a literal may be left to Python, by some ways to derive it
            found += [sorted(database.execute(f"SELECT {columns} FROM {closing.all}").fetchall(), key=repr),
                      sorted(map(repr, findings.to_pylist())) if findings is not None else []]
    finally:
        for made in texts:
            bundles.drop(database, made.name, by_representatives=by_representatives)
        for name in given_rows | constants:
            database.unregister(name)
    return found


@pytest.mark.parametrize(("axioms", "derived"), [
    ([], False),
    ([(PROPERTIES[0], iri("rdfs:subPropertyOf"), PROPERTIES[1])], False),
    ([(PROPERTIES[0], RDF_TYPE, iri("FunctionalProperty"))], True),
    ([(PROPERTIES[0], iri("rdfs:subPropertyOf"), SAME_AS)], True),
    ([(CLASSES[0], iri("hasKey"), (PROPERTIES[0],))], True)])
def test_schema_by_which_rules_may_derive_equality(axioms: list[tuple[object, ...]], derived: bool) -> None:
    assert derives_equality(compile_rules(OWL2RL, list(written(axioms))).rules) is derived


@settings(max_examples=15)  # to compile a query takes a second; tests/differential/test_equality.py has many cases
@given(st.lists(SCHEMA, max_size=3), st.booleans(), data, data, data, st.sampled_from(PATTERNS), st.sampled_from(sorted(PLACES)))
def test_answers_are_those_of_the_rules(executor: Executor, schema: list[object], streamed: bool, items: list[object], shown: list[object],
                                        behind: list[object], pattern: str, place: str) -> None:
    schemas, *others = (tuple(written(part)) for part in (schema, items, shown, behind))
    given_data = Data((others[0] + (schemas if streamed else ()),), others[1], others[2] + (() if streamed else schemas))
    query = f"PREFIX owl: <{OWL}> PREFIX xsd: <{XSD}> {text(place, pattern, ['owl2rl'])}"
    by_rules = compiled(query, given_data, {})
    if content_of_stream(given_data).mentions(by_rules.schema_words):
        by_rules = by_rules.general
    made = by_rules.by_representatives
    assert made is not None
    assert evaluated(executor, made, given_data) == evaluated(executor, without_equality(by_rules), given_data)


def without_equality(made: Compiled) -> Compiled:
    """The query with the rules of equality applied as they stand."""
    return replace(made, equality=Equality("that is left out"), schema_words=frozenset())


SAFE = ("?x p0 ?y, ?y p1 ?z => ?x p2 ?z", "?x p0 ?y, resource ?y => ?y p1 ?x", "?x p0 ?y, ?x p0 ?z, ?y != ?z => ?z sameAs ?y",
        "?x p0 ?y, ?x p1 ?y, ?x != ?y => false", "?x ?p ?y, ?p != ?q, ?x ?q ?y => ?x ?p ?y")
UNSAFE = ("?x p0 ?y, ?x p0 ?z, ?y != ?z => ?y p1 ?z", "?x p0 ?y, ?x p0 ?z, ?y != ?z => ?x sameAs ?x",
          "?x p0 ?y, ?k := value(?y) => ?x p1 ?k", "?x p0 ?y, ?y != ?x => ?x p1 ?y", " => r(p0 p1)")


@pytest.mark.parametrize("line", SAFE)
def test_rules_that_keep_to_what_is_equal_allow_it(line: str) -> None:
    assert obstacle((*OWL2RL.rules, *own_rules([line]))) == ""


@pytest.mark.parametrize("line", UNSAFE)
def test_rules_that_may_tell_equal_terms_apart_do_not(line: str) -> None:
    assert obstacle((*OWL2RL.rules, *own_rules([line]))) == "r0 may tell equal terms apart"


def test_without_the_rules_of_equality_there_is_nothing_to_tell() -> None:
    assert obstacle(RDFS.rules) is None
    assert obstacle([rule for rule in OWL2RL.rules if rule.name != "eq-trans"]) is None


def test_it_is_told_why(executor: Executor) -> None:
    named = written_rules(["?x p0 ?y => ?y p1 ?x"]) | written_rules(["?x p0 ?y, ?y != ?x => ?x p1 ?y"], "apart")
    data = Data((((THINGS[0], SAME_AS, THINGS[1]),), ((THINGS[1], PROPERTIES[0], THINGS[2]),)), ((THINGS[0], SAME_AS, THINGS[2]),))

    def asked(*rules: str) -> Compiled:
        return compiled(text("default with FROM", ":a :p1 ?y", rules), data, named)

    def ran(made: Compiled) -> str:
        executor.evaluate([Due("q", made, (TICK,), -1, {STREAM: content_of_stream(data)}, tables(data))])
        return executor.ran["q"].why

    assert "-- owl:sameAs: by representatives where there are statements of it: 1 in static graphs; " in asked("owl2rl", "own").explain()
    assert ran(asked("owl2rl", "own")).startswith("owl:sameAs by representatives: 2 statements of it in streams and graphs; ")
    assert "-- owl:sameAs: by its rules: r0 may tell equal terms apart\n" in asked("owl2rl", "apart").explain()
    assert "representatives" not in ran(asked("owl2rl", "apart"))
    assert "owl:sameAs" not in asked("own").explain() + ran(asked("own"))


def test_closures_are_kept_while_the_rules_of_equality_derive_little() -> None:
    def ran(size: int) -> tuple[str, str]:
        names = [f"<{E}n{number}>" for number in range(size)]
        data = Data((tuple((one, SAME_AS, other) for one, other in zip(names, names[1:])),))
        made = compiled(text("default", ":n0 owl:sameAs ?y", ["owl2rl"], f"PREFIX owl: <{OWL}> SELECT *"), data, {})
        keeping.evaluate([Due("q", made, (TICK,), -1, {STREAM: content_of_stream(data)}, {})])
        return keeping.choices["q"][1], keeping.ran["q"].why

    with in_process("incremental") as keeping:
        assert ran(3) == ("recompute", "its closures are kept: 100% of its windows is new at an evaluation")    # the first is made anew
        why = "of 29 statements of it in streams and graphs its rules would derive some 27000 facts"
        assert ran(30) == ("recompute", f"owl:sameAs by representatives: {why}")
