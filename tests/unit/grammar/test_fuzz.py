"""Broken texts: a parse and a plan, or diagnostics, never another exception, never more than two seconds of work for either."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import pytest

from engine.compiler import Catalog, compile_statement
from engine.ir.printer import show
from engine.ir.spans import DiagnosticError
from engine.ir.statement import Statement
from engine.runtime.rows import graph_table
from engine.runtime.statement_checks import statement_warnings
from grammar import parse
from tests.case_files import CASES
from tests.shared import shared
from tests.unit.grammar.corpus import community_texts, dialect_texts, evaluation_texts, syntax_texts
from tests.unit.grammar.test_rif_fuzz import LONGEST, assert_told

EMPTY = graph_table([])
_PIECES = ["{", "}", "(", ")", "[", "]", "<", ">", "'", '"', '"""', "\\", "\\u00e9", "\\uD800", "#", ".", ";", ",", "?x", "$",
           ":", "a:b", "_:a", "@en", "^^", "|", "||", "&&", "!", "*", "/", "+", "-", "0", "1e9", "10s", "PT1S", "\x00",
           "\u2028", "\U0001F600", "\ud800", "SELECT", "WHERE", "FROM", "STREAM", "WINDOW", "REGISTER", "[RANGE 1s]",
           "NOT EXISTS", "COUNT", "AS", "a", "\n", "\t"]


def mutated(rng: random.Random, texts: list[str], others: list[str]) -> str:
    """One of the texts after one to four cuts, copies, insertions, or splices with it or one of the others."""
    text = rng.choice(texts)
    for _ in range(rng.randint(1, 4)):
        at = max(rng.randrange(len(text) + 1), rng.randrange(len(text) + 1))    # rather in the body than in the prologue
        length = rng.choice((1, 1, 2, 5, 20, 200))
        match rng.choice((0, 0, 1, 1, 1, 2, 2, 3, 4, 4, 5)):
            case 0:
                text = text[:at] + text[at + length:]
            case 1:
                text = text[:at] + rng.choice(_PIECES) + text[at:]
            case 2:
                text = text[:at] + rng.choice(_PIECES) + text[at + length:]
            case 3:
                text = text[:at] + text[at:at + length] * rng.choice((2, 3, 50)) + text[at + length:]
            case 4:
                other = rng.choice(texts if rng.random() < 0.8 else others)
                start = rng.randrange(len(other) + 1)
                text = text[:at] + other[start:start + length] + text[at:]
            case _:
                words = text.split(" ")
                rng.shuffle(words)
                text = " ".join(words) if rng.random() < 0.1 else text.swapcase()
    return text[:70_000]


def check(text: str) -> bool:
    """Parse one text, whatever it is, and compile what is valid; whether it is."""
    start = time.thread_time()
    try:
        statement = parse(text)
    except DiagnosticError as error:
        assert time.thread_time() - start < LONGEST, text[:2_000]
        assert_told(error, text)
        return False
    assert time.thread_time() - start < LONGEST, text[:2_000]
    compiled(statement)
    assert time.thread_time() - start < 2 * LONGEST, text[:2_000]
    _read_back(show(statement))
    return True


def _read_back(printed: str) -> None:
    """What was printed may be longer than what was written, so long that only the limits speak against it."""
    try:
        assert show(parse(printed)) == printed
    except DiagnosticError as error:
        assert {diagnostic.code for diagnostic in error.diagnostics} <= {"body-too-large", "query-too-large", "nesting-too-deep"}, printed


def compiled(statement: Statement) -> None:
    """Plan a statement over streams and graphs that are all there, and look for what may be doubtful: a plan, or diagnostics."""
    graphs = {source.iri: EMPTY for source in (*statement.graphs, *statement.reasoning_graphs)}
    catalog = Catalog({source.stream: "event" for source in statement.streams}, graphs, max_range_ms=1 << 60, mixed_time=True)
    statement_warnings(statement, graphs, catalog.rules, frozenset())
    try:
        compile_statement(statement, catalog, identity="q").explain("spark")
    except DiagnosticError as error:
        assert error.diagnostics


@cache
def corpus() -> dict[str, list[str]]:
    """Valid texts by language: statements over streams (C-SPARQL and RSP-QL), and plain SPARQL."""
    shared("rsp-ql-cg")
    cases = [path.read_text("utf-8") for path in sorted(CASES.rglob("*.rq"))]
    return {"streams": [*community_texts().values(), *dialect_texts().values(), *cases],
            "SPARQL": [*evaluation_texts().values(), *(text for text, _ in syntax_texts().values())]}


def fuzz(language: str, seed: int, count: int) -> None:
    """Mutations of one language's texts, some with a piece of the other's; a few must still be valid, else they are broken beyond use."""
    rng, languages, good = random.Random(seed), corpus(), 0
    texts = languages[language]
    others = [text for other, found in languages.items() if other != language for text in found]
    for number in range(count):
        text = mutated(rng, texts, others)
        try:
            good += check(text)
        except Exception as error:
            raise AssertionError(f"text {number} of seed {seed}: {text!r}") from error
    assert good > count // 50


@pytest.mark.parametrize("language", ["streams", "SPARQL"])
def test_200_broken_texts(language: str) -> None:
    fuzz(language, 8175, 200)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("language", ["streams", "SPARQL"])
def test_10000_broken_texts(language: str) -> None:
    fuzz(language, 20240501, 10_000)


def filled(before: str, piece: str, after: str) -> str:
    """64 KiB of one piece."""
    return before + piece * ((65_000 - len(before) - len(after)) // len(piece)) + after


@pytest.mark.parametrize(("before", "piece", "after"), [
    ("SELECT * {FILTER(1", "+1", ")}"), ("SELECT * {FILTER(?x IN (1", ",1", "))}"), ("SELECT * {", "{?s ?p ?o} UNION ", "{}}"),
    ("SELECT * {VALUES ?x {", "1 ", "}}"), ("SELECT * {", "?s ?p ?o.", "}"), ("SELECT * {?s ?p 1", ",1", "}"),
    ("SELECT * {?s <p>", "/<p>", " ?o}"), ("SELECT * {?s ?p ", "(", "}"), ("SELECT * {?s ?p ", "[<p> ", "}"),
    ("SELECT * {?s ?p ", "<", "}"), ('SELECT * {?s ?p "', "\\", '"}'), ("SELECT * {?s ?p a:a", ".", "}"),
    ("SELECT * {", "{}", "}"), ("SELECT * {", "'''", "}"), ("SELECT * ", "FROM <a> ", "{}"),
    ("SELECT * {", "a:b a:c a:d . ", "}"), ("SELECT * {", "STREAM <w> [NOW] {} ", "}"), ("SELECT ", "(COUNT(?x) AS ?y)", "{}"),
    ("", "REGISTER ", ""), ("", "PREFIX : <a> ", "SELECT * {}"), ("SELECT * {?s ?p ", "1", "}"), ("SELECT * {} LIMIT ", "1", ""),
    ("SELECT * FROM STREAM <s> [RANGE ", "1", "s] {}"), ("SELECT * {FILTER(", "!", "1)}"), ("SELECT * {FILTER(", "IF(1,2,", ")}"),
    ("SELECT * {FILTER(", "<f>(", ")}"), ("SELECT * {", "OPTIONAL{", ""), ("SELECT * {", "SELECT * {", ""),
    ("SELECT * {", "[].", "}"),
])
def test_64_kib_of_one_thing(before: str, piece: str, after: str) -> None:
    check(filled(before, piece, after))


@pytest.mark.parametrize(("before", "opening", "inside", "closing", "after"), [
    ("SELECT * { FILTER(", "(", "1", ")", ") }"), ("SELECT * { FILTER(", "IF(1, 2, ", "3", ")", ") }"),
    ("SELECT * ", "{", "?s ?p ?o", "}", ""),
    ("SELECT * {", "?s ?p ?o OPTIONAL {", "", "}", "}"), ("SELECT * {", "FILTER NOT EXISTS {", "", "}", "}"),
    ("SELECT * {", "{} UNION {", "", "}", "}"), ("SELECT * { ?s ?p ", "(", "1", ")", "}"),
    ("SELECT * { ?s ", "(", "<p>", ")*", " ?o }"),
    ("SELECT * {", "GRAPH ?g {", "", "}", "}"), ("SELECT * { ?s ?p ", "[ ?q ", "1", "]", "}"),
    ("SELECT * { FILTER(", "!(", "1", ")", ") }"),
])
def test_brackets_nest_to_the_limit(before: str, opening: str, inside: str, closing: str, after: str) -> None:
    statement = parse(before + opening * 62 + inside + closing * 62 + after)
    assert show(parse(show(statement))) == show(statement)


def test_threads_do_not_disturb_one_another() -> None:
    texts = list(dialect_texts().values()) or [f"SELECT * {{ ?s ?p {number} }}" for number in range(16)]
    alone = [show(parse(text)) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda text: show(parse(text)), texts * 4)) == alone * 4
