"""Closures under random rules: what DuckDB finds in rounds is the least model that the reference evaluator finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import duckdb
import pytest
from hypothesis import assume, given, strategies as st

from engine.functions.expressions import Context
from engine.ir import rules as ir, strata as growth
from engine.ir.expressions import Call
from engine.ir.rules import TRIPLE, Assign, Atom, Fact, Formula, Negation, Rule, RuleSet, Table, rule_variables
from engine.ir.spans import Span
from engine.ir.strata import Unstratified, strata
from engine.ir.terms import XSD, Constant, Term, Variable, literal
from engine.plan.nodes import ClosedSource, StaticSource, WindowSource
from engine.records import Triple
from engine.reference import temporal
from engine.reference.program import instances
from engine.runtime.rows import graph_table as facts_of
from engine.sql.dialect import DUCKDB
from engine.sql.fixpoint import closure_text
from engine.sql.lower import Lowering
from engine.sql.sources import graph_table
from engine.timeline import ALWAYS, granule
from engine.why.ranks import Ranked
from engine.worker.closures import close
from engine.worker.functions import register_duckdb

E = "http://ex.org/"
TICKS = "ticks AS (SELECT CAST(tick AS BIGINT) AS tick FROM (VALUES (1), (2)) AS t(tick))"
X, Y, Z = (Variable(name) for name in "xyz")
ITEMS = tuple(Constant(token) for token in (f"<{E}a>", f"<{E}b>", "_:n", literal("1", f"{XSD}integer"), literal("t")))
PROPERTIES = tuple(Constant(f"<{E}{name}>") for name in "pq")
MARKS = ((f"<{E}zero>", 0), (f"<{E}one>", 1), (f"<{E}two>", 2), (f"<{E}four>", 4))

terms: st.SearchStrategy[Term] = st.sampled_from((X, Y, Z, X, Y, Z, X, Y, Z, *ITEMS[:3]))
triple_atoms = st.builds(lambda s, p, o: Atom(TRIPLE, (s, p, o)), terms, st.sampled_from((*PROPERTIES, *PROPERTIES, Z)), terms)
atoms = triple_atoms | st.sampled_from(MARKS).flatmap(lambda mark: st.builds(
    lambda cells: Atom(mark[0], tuple(cells)), st.lists(terms, min_size=mark[1], max_size=mark[1])))
tests = st.builds(lambda name, a, b: ir.Test(Call(name, (a, b))), st.sampled_from(("=", "!=", "<", "SAMETERM")), terms, terms)
tables = st.lists(st.tuples(st.sampled_from(ITEMS), st.sampled_from(ITEMS)), min_size=1, max_size=3, unique=True).map(
    lambda rows: Table((X, Y), tuple(rows)))
assigns = st.builds(lambda v, read: Assign(v, Call("STR", (read,))), st.sampled_from((X, Y, Z)), st.sampled_from((X, Y, Z)))
triples = st.tuples(st.sampled_from(ITEMS[:3]), st.sampled_from(PROPERTIES), st.sampled_from(ITEMS)).map(
    lambda terms: tuple(term.token for term in terms))


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    """A safe rule: what is tested, denied or in the head is bound by an atom."""
    positive = draw(st.lists(atoms, min_size=1, max_size=3))
    bound = frozenset[Variable]().union(*map(rule_variables, positive))
    more: list[Formula] = draw(st.lists(tests | tables, max_size=2)) + draw(st.lists(atoms.map(Negation), max_size=1))
    body = [*positive, *(f for f in more if isinstance(f, Table) or _read(f) <= bound)]
    assigned = draw(st.none() | assigns)
    if assigned is not None and _read(assigned) <= bound:
        body.append(assigned)
        bound |= {assigned.variable}
    head = draw(atoms.filter(lambda atom: rule_variables(atom) <= bound))
    return Rule(head, tuple(draw(st.permutations(body))))


def _read(formula: Formula) -> frozenset[Variable]:
    match formula:
        case ir.Test(condition=Call(args=args)) | Assign(expression=Call(args=args)):
            return frozenset(a for a in args if isinstance(a, Variable))
    return rule_variables(formula)


@cache
def connection() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect(":memory:", config={"threads": 1})
    register_duckdb(made)
    return made


@pytest.fixture(scope="module", autouse=True)
def closed() -> Iterator[None]:
    yield
    connection().close()
    connection.cache_clear()


@given(st.lists(rules(), min_size=1, max_size=4), st.lists(triples, max_size=6), st.lists(triples, max_size=6))
def test_least_models(program: list[Rule], behind: list[Triple], streamed: list[Triple]) -> None:
    """Without negation, in one go and on top of a closed background; with negation in one go."""
    try:
        assume(len(strata(program)) <= 3)
    except Unstratified:
        assume(False)
    found = least_model(program, [*behind, *streamed])
    assume(len(found) < 400)
    own = ClosedSource("own", (StaticSource("all"),), rules=tuple(program))
    assert rows(own, {"all": [*behind, *streamed]}) == found
    if not any(isinstance(formula, Negation) for rule in program for formula in rule.body):
        background = ClosedSource("behind", (StaticSource("behind"),), rules=tuple(program))
        window = ClosedSource("window", (WindowSource(0),), background, rules=tuple(program))
        before = least_model(program, behind)
        assert rows(background, {"behind": behind}) == before
        for tick in (1, 2):
            visible = found if tick == 1 else before
            assert rows(window, {}, {1: streamed}, tick) == {row for row in visible if row not in before}


def test_rules_that_derive_for_ever_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "MOST_ROUNDS", 20)
    longer = Assign(Y, Call("CONCAT", (Call("STR", (X,)), Constant(literal("!")))))
    program = [Rule(Atom(TRIPLE, (Z, PROPERTIES[1], X)), (Atom(TRIPLE, (Z, PROPERTIES[0], X)),)),
               Rule(Atom(TRIPLE, (Z, PROPERTIES[0], Y)), (Atom(TRIPLE, (Z, PROPERTIES[0], X)), longer), name="longer")]
    facts = [(ITEMS[0].token, PROPERTIES[0].token, literal("t"))]
    for run in (lambda: least_model(program, facts),
                lambda: rows(ClosedSource("own", (StaticSource("all"),), rules=tuple(program)), {"all": facts}),
                lambda: Ranked([(TRIPLE, fact) for fact in facts], program, Context(0)),
                lambda: instances(program, {((TRIPLE, fact), 0): 1 for fact in facts}, Context(0)),
                lambda: temporal.evaluate(RuleSet("r", tuple(program), granularity_ms=1000), [
                    Fact(Atom(TRIPLE, tuple(map(Constant, fact))), granule(0, 1000)) for fact in facts], 0)):
        with pytest.raises(growth.Unending, match="after 20 rounds the rules still derive something new, by longer:"):
            run()


def test_endless_rules_without_names_are_told_by_their_lines() -> None:
    made = Assign(Y, Call("CONCAT", (Call("STR", (X,)), Constant(literal("!")))))
    rule = Rule(Atom("p", (Y,)), (Atom("p", (X,)), made), span=Span("one\ntwo\n", 4, 7))
    assert growth.endless([rule]) == ("a rule without a name (line 2)",)
    assert growth.endless([replace(rule, span=None)]) == ("a rule without a name",)


def least_model(program: list[Rule], facts: list[Triple]) -> set[tuple[str, tuple[str, ...]]]:
    """Every atom that holds: predicate and terms."""
    given = [Fact(Atom(TRIPLE, tuple(map(Constant, triple))), ALWAYS) for triple in facts]
    return set(temporal.evaluate(RuleSet("r", tuple(program)), given).facts)


def rows(source: ClosedSource, graphs: dict[str, list[Triple]], window: dict[int, list[Triple]] | None = None,
         tick: int | None = None) -> set[tuple[str, tuple[str, ...]]]:
    """What the closure holds, computed in DuckDB; the window's content by tick."""
    prefix = [TICKS]
    for iri, content in graphs.items():
        connection().register(graph_table(iri), facts_of(content))
    if window is not None:
        connection().register("content", facts_of(window[1]))
        prefix.append("x0 AS (SELECT CAST(1 AS BIGINT) AS tick, * FROM content)")
    text = closure_text(source, DUCKDB, Lowering(DUCKDB, "q", 0))
    connection().execute(f"DROP TABLE IF EXISTS {source.name}_all")
    close(connection(), text.ready(prefix))
    further = [c for c in text.identity if c.startswith("x")]
    times = "" if tick is None else f" WHERE tick = {tick}"
    found = connection().execute(f"SELECT {', '.join(['s', 'p', 'o', *further])} FROM {source.name}_all{times}").fetchall()
    return {_atom(row) for row in found}


def _atom(row: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    subject, mark, object_, *rest = row
    if not mark.startswith("_:"):
        return TRIPLE, (subject, mark, object_)
    arity, _, predicate = mark[2:].partition(" ")
    return predicate, (subject, object_, *rest)[:int(arity)]
