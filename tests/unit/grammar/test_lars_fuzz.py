"""Broken LARS programs: rules or diagnostics, never another exception, never more than two seconds of work."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.ir.printer_lars import show_lars
from engine.ir.spans import DiagnosticError
from grammar.lars.parse import parse_lars
from grammar.rule_text import MAX_ATOMS
from tests.unit.grammar.test_rif_fuzz import LONGEST, assert_told, filled, mutated
from tests.unit.ir.lars_maker import programs

PAGE = (Path(__file__).parents[3] / "docs" / "lars.md").read_text(encoding="utf-8")
TEXTS = re.findall(r"```lars\n(.*?)```", PAGE, re.DOTALL) + [
    "q(X) <- p(X), r(X).",
    "FROM STREAM <urn:s>\n@T q(X, 1.5, \"a\"@en) :- [3 #] @T p(X), not [10 sec] box r(X) and X >= 3, Y = X * (2 - X).",
    "START AT \"2024-05-01T00:00:00Z\" GRANULARITY 500 ms\na <- [1500 ms] diamond b, ?x = 3, c(?x). b. @5 c(3). a <- not d."]
PIECES = ["(", ")", "[", "]", "<", ">", "<-", ":-", ":=", "\u2190", "\u25c7", "\u25a1", "\u229e", ".", ",", ";", "&&", "|", "@", "@T ",
          "@5 ", "#", "%", "?", "?x", "$", "X", "_", "a", "ex:", "ex:p", ":-", "<urn:a>", '"', "'", "\\", "\\uD800", "^^", "@en", "=", "==",
          "!=", "<=", "<>", "+", "-", "*", "/", "0", "1e9", "1.", "10 sec", "99999999999999999999", "not ", " and ", "diamond ", "box ",
          "[3] ", "[5 #] ", "triple(", "count(", "PREFIX ex: <urn:>\n", "FROM STREAM ", "GRANULARITY 1 sec\n", "START AT ", "\x00",
          "\u2028", "\U0001F600", "\ud800", "\n", "\t", "{", "}"]


def check(text: str) -> bool:
    """Read one text, whatever it is; whether it is a program. What is one is printed and read again."""
    start = time.thread_time()
    try:
        rules = parse_lars(text, "fuzz")
    except DiagnosticError as error:
        assert time.thread_time() - start < LONGEST, text[:2_000]
        assert_told(error, text)
        return False
    assert time.thread_time() - start < LONGEST, text[:2_000]
    assert parse_lars(show_lars(rules), "fuzz") == rules
    return True


def fuzz(seed: int, count: int) -> None:
    """Some texts must still be programs, else they are broken beyond use."""
    rng, good = random.Random(seed), 0
    for number in range(count):
        text = mutated(rng, TEXTS, PIECES)
        try:
            good += check(text)
        except Exception as error:
            raise AssertionError(f"text {number} of seed {seed}: {text!r}") from error
    assert 0 < good < count // 2


def test_300_broken_programs() -> None:
    fuzz(8175, 300)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_10000_broken_programs() -> None:
    fuzz(20240501, 10_000)


@given(st.lists(st.sampled_from(PIECES), max_size=40), st.booleans())
def test_any_row_of_pieces(pieces: list[str], wrapped: bool) -> None:
    text = " ".join(pieces)
    check(f"q(X) <- p(X), {text}." if wrapped else text)


@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    check(text)


@given(programs(), st.randoms(use_true_random=False))
def test_any_program_with_a_piece_too_many_or_too_few(rules: object, rng: random.Random) -> None:
    check(mutated(rng, [show_lars(rules)], PIECES))      # type: ignore[arg-type]


@pytest.mark.parametrize(("before", "piece", "after"), [
    ("", "p(1). ", ""), ("", "p(X) <- q(X). ", ""), ("p <- ", "q(1), ", "q."), ("p(", "a, ", "a)."), ("p <- q(X), X = ", "(", ""),
    ("p <- q(X), X = 1", " + 1", "."), ("p <- q(X), X = ", "-", "1."), ("p <- ", "[3] ", "q."), ("p <- ", "not ", "q."),
    ("p <- ", "box ", "q."),
    ("", "PREFIX a: <urn:> ", "p."), ("", "FROM <urn:a> ", "p."), ("", "a.", ""), ("", "a-", ""), ("", "a:a", "."), ("", ":", ""),
    ("", "a", ""), ("", "1", ""), ("", "<", ""), ("", "<a:", ""), ("", '"', ""), ('p("', "\\", '").'), ("", "%", ""), ("", "@", ""),
    ("", "a@", ""), ("", "?", ""), ("", "[", ""), ("@", "1", " p."), ("p <- [", "1", "] q."), ("p <- [", "1", " sec] q."),
    ("", "\n", ""), ("", "p <- not p. ", ""), ("", "a:a <- not a:b(X), a:c(X). ", ""), ("p <- q(X)", ", X = X", "."), ("", "a.a:", ""),
    ("p :- [3 #] ", "p, [3 #] ", "p."), ("", "\\u0041", ""), ("", "p(?x, ", ""), ("a", ".b", ":c."),
])
def test_64_kib_of_one_thing(before: str, piece: str, after: str) -> None:
    check(filled(before, piece, after))


def test_equalities_in_a_long_chain_bind() -> None:
    chain = [f"X{n} = X{n - 1}" for n in range(1, MAX_ATOMS)]
    for links in (chain, chain[::-1], random.Random(1).sample(chain, len(chain))):
        assert check(f"p(X{MAX_ATOMS - 1}) <- q(X0), {', '.join(links)}.")
