"""Broken DatalogMTL texts: rules, facts or diagnostics, never another exception, never more than two seconds of work."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.ir.spans import DiagnosticError
from grammar.datalogmtl.parse import parse_datalogmtl, parse_facts
from tests.unit.grammar.test_datalogmtl import BODIES, EX, FACTS, HEADS, SHORT_STOP
from tests.unit.grammar.test_rif_fuzz import LONGEST, assert_told, filled, mutated

_PIECES = ["(", ")", "[", "]", "{", "<", ">", '"', "'", "\\", "^^", "@", "@en", "#", "=",
           "!=", ":-", "<-", ",", ".", "\n", "\r", "\t", "%",
           "?x", "X", "a", "_", "_:b", "ex:p", "1", "1e9",
           "1e999", "1/3", "-", "+", "*", "/", "inf", "-inf", "\x00", "\u2028", "\U0001F600",
           "\ud800", "not ", "Boxminus[1,2]", "Boxplus(0,inf)", "Diamondminus[0,1]", "Diamondplus", "SOMETIME[-2,1)", "ALWAYS",
           "Since[1,2]", "UNTIL", "<->[0,1]", "[+]", "Top", "UNIT 1 h\n", f"PREFIX ex: <{EX}>\n", "FROM STREAM ", "triple(", "Z = X + 1",
           "A(X):-B(X)\n", "B(a)@[1,3)\n"]
TEXTS = [SHORT_STOP, "".join(f"A(X):-{body}, C(X)\n" for body, _ in BODIES), "".join(f"{head}:-B(X)\n" for head, _ in HEADS),
         "".join(f"{fact}\n" for fact, *_ in FACTS),
         f"PREFIX ex: <{EX}>\nUNIT 1 min\nFROM STREAM ex:s\n"
         "ex:hot(X) :- ex:at(X,ex:b), triple(X,P,\"x\"@en), Z = X * 2 + 1, Z > -3,\n  not A(X)\n"]


def check(text: str) -> bool:
    """Read one text as a program and as facts, whatever it is; whether it is either."""
    start, good = time.thread_time(), False
    for read in (lambda: parse_datalogmtl(text, "fuzz"), lambda: parse_facts(text)):
        try:
            read()
            good = True
        except DiagnosticError as error:
            assert_told(error, text)
    assert time.thread_time() - start < LONGEST, text[:2_000]
    return good


def fuzz(seed: int, count: int) -> None:
    """Some texts must still be programs, else they are broken beyond use."""
    rng, good = random.Random(seed), 0
    for number in range(count):
        text = mutated(rng, TEXTS, _PIECES)
        try:
            good += check(text)
        except Exception as error:
            raise AssertionError(f"text {number} of seed {seed}: {text!r}") from error
    assert 0 < good < count // 2


def test_300_broken_texts() -> None:
    fuzz(8175, 300)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_10_000_broken_texts(seed: int) -> None:
    fuzz(seed, 2_500)


@given(st.text())
def test_texts_of_any_characters(text: str) -> None:
    check(text)


@given(st.lists(st.sampled_from(_PIECES), max_size=30).map("".join))
def test_texts_of_any_pieces(text: str) -> None:
    check(text)


@pytest.mark.parametrize(("before", "piece", "after"), [
    ("", "A(X):-B(X)\n", ""), ("", "A(X):-B(X), not C(X)\n", ""), ("A(X):-B(X)", ",B(X)", ""), ("A(X):-", "Diamondminus[0,1]", "B(X)"),
    ("", "Boxplus[0,1]", "A(X):-B(X)"), ("A:-B", " Since[1,2]B", ""), ("", "B(a)@1\n", ""), ("", "B(a)@1 ", ""), ("B(", "a,", "a)@1"),
    ("A(X):-B(X),Z=", "X+", "1"), ("A(X):-B(X),Z=", "(", ""), ("A@", "1", ""), ("A@0.", "1", ""), ("A@[", "(", ""), ("", ".", ""),
    ("", ",", ""), ("", "A", ""), ("", "A-", "@1"), ("A(", "a-", "a)@1"), ("", "(", ""), ("", "<", ""), ("", "\"", ""), ("", "ex:", ""),
    ("", "UNIT 1 s\n", ""), ("", "PREFIX a: <b:>\n", ""), ("", "\n", "x"), ("A:-", "\n", "B"), ("A:-B", "\n,B", ""), ("", "%\n", ""),
    ("A(_:b", "1", ")@1"),
])
def test_64_kib_of_one_thing(before: str, piece: str, after: str) -> None:
    check(filled(before, piece, after))
