"""No text within the bound of 64 KiB keeps the compiler busy or exhausts its stack: a plan or diagnostics, soon."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from engine.compiler import BUILT_IN_RULES, Catalog, compile_statement
from engine.ir.rules import RuleSet
from engine.ir.spans import DiagnosticError
from grammar import parse
from grammar.statement import TEXT_LIMITS
from grammar.rif.parse import parse_rules
from grammar.text import MAX_LENGTH

PAGE = (Path(__file__).parents[2] / "docs/sparql.md").read_text()
MOST_SECONDS = 10.0     # none takes more than 0.6 s on an idle machine; before, many took minutes
STREAM = "http://e/s"
WINDOW = f"FROM STREAM <{STREAM}> [RANGE 10s STEP 1s]"


def query(body: str, select: str = "SELECT *", clauses: str = WINDOW) -> str:
    return f"PREFIX : <http://e/> REGISTER QUERY q AS {select} {clauses} WHERE {{ {body} }}"


def patterns(count: int) -> str:
    return " . ".join(f"?a{i} :p ?b{i}" for i in range(count))


def named(count: int, ranges: str) -> str:
    clauses = " ".join(f"FROM NAMED WINDOW :w{i} ON <{STREAM}> [RANGE {i + 1}s STEP 1s]" for i in range(count))
    return query(ranges, clauses=clauses)


REFUSED = {
    "parentheses": query("?s ?p ?o FILTER(" + "(" * 20_000 + "?o" + ")" * 20_000 + " > 3)"),
    "arms": query(":s " + " ; ".join(f":p ?o{i}" for i in range(5_000))),
    "equal arms": query(":s " + " ; ".join(":p ?o" for _ in range(6_000))),
    "objects": query(":s :p " + " , ".join(f"?o{i}" for i in range(5_000))),
    "chained patterns": query(" . ".join(f"?a{i} :p ?a{i + 1}" for i in range(1_500))),
    "unconnected patterns": query(patterns(400)),
    "many unconnected patterns": query(patterns(1_500)),
    "path": query("?s " + "/".join([":a"] * 15_000) + " ?o"),
    "path of alternatives": query("?s " + "|".join([":a"] * 15_000) + " ?o"),
    "nested OPTIONAL": query("?s ?p ?o " + "OPTIONAL { ?s ?p ?o " * 2_000 + "}" * 2_000),
    "OPTIONAL after OPTIONAL": query("?s ?p ?o " + " ".join(f"OPTIONAL {{ ?s :p ?o{i} }}" for i in range(1_500))),
    "UNION": query("{ ?s ?p ?o } UNION " * 2_500 + "{ ?s ?p ?o }"),
    "sub-selects": query("{ SELECT ?s { " * 2_000 + "?s ?p ?o" + " } }" * 2_000),
    "columns of VALUES": query("VALUES (" + " ".join(f"?x{i}" for i in range(3_000)) + ") { (" + "1 " * 3_000 + ") }"),
    "disjunction": query("?s ?p ?o FILTER(" + " || ".join(f"?o = {i}" for i in range(3_000)) + ")"),
    "signs": query("?s ?p ?o FILTER(" + "!" * 50_000 + "?o)"),
    "template": query("?s ?p ?o", "CONSTRUCT { " + " . ".join(f"?s :p{i} ?o" for i in range(3_000)) + " }"),
    "ORDER BY": query("?s ?p ?o") + " ORDER BY " + "?o " * 9_000,
    "windows that range": named(100, "WINDOW ?w { ?s ?p ?o WINDOW ?v { ?s ?p ?o WINDOW ?u { ?s ?p ?o } } }"),
}
PLANNED = {
    "as many patterns as there may be": query(patterns(200)),
    "as many arms as there may be": query("?s " + " ; ".join(f":p{i} ?o{i}" for i in range(200))),
    "as many OPTIONAL as there may be": query("?s ?p ?o " + " ".join(f"OPTIONAL {{ ?s :p ?o{i} }}" for i in range(180))),
    "paths": query(" . ".join(f"?a{i} (:p/:q)* ?a{i + 1}" for i in range(60))),
    "rows of VALUES": query("VALUES ?x { " + " ".join(map(str, range(9_000))) + " } ?s ?p ?x"),
    "members of IN": query("?s ?p ?o FILTER(?o IN (" + ", ".join(map(str, range(9_000))) + "))"),
    "arguments": query("?s ?p ?o BIND(CONCAT(" + ",".join(["?o"] * 15_000) + ") AS ?c)"),
    "windows": named(100, "WINDOW ?w { ?s ?p ?o } WINDOW ?v { ?s ?p ?o }"),
}
RULES = {
    "nested And": "?x[e:p->1] :- " + "And(" * 8_000 + "?x[e:q->1]" + ")" * 8_000,
    "nested Or": "?x[e:p->1] :- " + "Or(" * 8_000 + "?x[e:q->1]" + ")" * 8_000,
    "nested Exists": "Forall ?x (?x[e:p->1] :- " + "".join(f"Exists ?y{i} (" for i in range(3_000)) + "?x[e:q->1]" + ")" * 3_001,
    "products of Or": "Forall ?x (?x[e:p->1] :- And(" + "Or(?x[e:q->1] ?x[e:r->1]) " * 1_000 + "))",
    "equal rules": "Forall ?x (?x[e:p->1] :- ?x[e:q->1]) " * 1_600,
    "rules on rules": " ".join(f"Forall ?x (?x[e:p{i}->1] :- ?x[e:p{i + 1}->1])" for i in range(1_100)),
    "as many rules on rules as there may be": " ".join(f"Forall ?x (?x[e:p{i}->1] :- ?x[e:p{i + 1}->1])" for i in range(500)),
    "facts": " ".join(f"e:a[e:p->{i}]" for i in range(3_500)),
    "slots": "e:a[" + " ".join(f"e:p->{i}" for i in range(6_000)) + "]",
}


def compiled_in(text: str, rules: dict[str, RuleSet] | None = None) -> float:
    """The seconds that it takes to compile a text, or to refuse it."""
    assert len(text) <= MAX_LENGTH
    began = time.perf_counter()
    try:
        compile_statement(parse(text), Catalog({STREAM: "event"}, {}, {**BUILT_IN_RULES, **(rules or {})}))
    finally:
        seconds = time.perf_counter() - began
    return seconds


@pytest.mark.parametrize("name", REFUSED)
def test_a_large_text_is_refused_soon(name: str) -> None:
    began = time.perf_counter()
    with pytest.raises(DiagnosticError) as refused:
        compiled_in(REFUSED[name])
    assert time.perf_counter() - began < MOST_SECONDS
    codes = {diagnostic.code for diagnostic in refused.value.diagnostics}
    assert codes <= {"query-too-large", "nesting-too-deep", "query-syntax"}
    if "query-too-large" in codes:
        assert "the limit is" in str(refused.value) or "more than" in str(refused.value)


@pytest.mark.parametrize("name", PLANNED)
def test_a_large_text_is_planned_soon(name: str) -> None:
    assert compiled_in(PLANNED[name]) < MOST_SECONDS


@pytest.mark.parametrize("name", RULES)
def test_a_large_set_of_rules_is_compiled_or_refused_soon(name: str) -> None:
    text = f"Document(Prefix(e <http://e/>) Group({RULES[name]}))"
    began = time.perf_counter()
    try:
        rules = parse_rules(text, "text/x-rif-ps", "user")
        compiled_in(query("?s :p0 ?o ; :p ?q", clauses=f"{WINDOW} USING RULES user"), {"user": rules})
    except DiagnosticError as refused:
        assert {diagnostic.code for diagnostic in refused.diagnostics} <= {"query-too-large", "nesting-too-deep", "query-syntax",
                                                                           "rule-syntax", "rules-unsafe", "body-too-large"}
    assert time.perf_counter() - began < MOST_SECONDS


def test_the_bounds_of_texts_are_told() -> None:
    assert TEXT_LIMITS["patterns"] == 200 and f"{TEXT_LIMITS['values_cells']:,} cells of VALUES" in PAGE
