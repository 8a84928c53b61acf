"""Whatever names, IRIs, literals and language tags a document has, the SQL of its plans is that of harmless ones: it has the same tokens,
and so parses to the same tree, with each word in one literal."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
import sqlglot
from sqlglot.tokens import TokenType

from engine.ir.terms import quote
from tests.differential.hostile import Words, case, compiled, harmless, hostile, in_xml, statements

GLOT = {"local": "duckdb", "sql": "spark"}
DIGEST = re.compile(r"_[0-9a-f]{16}|(?<=_star_)[0-9a-f]{8}")


def words_and_texts(seed: int, folder: Path) -> Iterator[tuple[tuple[Words, Words], tuple[str, str], tuple[str, str]]]:
    """The words of a seed, and statement by statement the SQL of both kinds: for one dialect, the other one's turn is with the next."""
    bad = hostile(Random(seed))
    both = bad, harmless(bad)
    kinds = [("local" if seed % 2 else "sql", bool(seed // 2 % 2))]
    made = [list(statements(compiled(case(Random(f"case {seed}"), words), words), folder, kinds)) for words in both]
    for one, other in zip(*made, strict=True):
        yield both, one, other


Shape = tuple[tuple[Any, ...], str]
PARSED: set[tuple[str, Shape]] = set()
"""What is known to be one statement, by dialect."""


@lru_cache(maxsize=4096)
def read(dialect: str, text: str) -> tuple[Shape, tuple[str, ...]]:
    """What a parser sees of a statement, which can be parsed, without digests in names and without the texts of literals; these, in order.
    A tree is made of tokens, of whether they touch, and of nothing else."""
    tokens = sqlglot.Dialect.get_or_raise(GLOT[dialect]).tokenize(text)
    ends = [-1, *(token.end + 1 for token in tokens)]
    kinds = tuple((token.token_type, token.start == end, *token.comments) for token, end in zip(tokens, ends))
    words = "\0".join("" if token.token_type is TokenType.STRING else token.text for token in tokens)
    shape = kinds, _nameless(words)
    if (dialect, shape) not in PARSED:
        [parsed] = sqlglot.Dialect.get_or_raise(GLOT[dialect]).parser().parse(tokens, text)
        assert parsed is not None, text
        PARSED.add((dialect, shape))
    return shape, tuple(token.text for token in tokens if token.token_type is TokenType.STRING)


def same(bad: str, good: str, words: tuple[Words, Words]) -> bool:
    """Whether a literal is what another becomes with hostile words in place of harmless ones: a text, or a call in JSON."""
    if bad == good or any(_nameless(bad) == _nameless(_with(good, words, form)) for form in FORMS):
        return True
    try:
        return _same_json(json.loads(bad), json.loads(good), words)
    except ValueError:
        return False


def _same_json(bad: Any, good: Any, words: tuple[Words, Words]) -> bool:
    if isinstance(good, list) and isinstance(bad, list):
        return len(bad) == len(good) and all(_same_json(b, g, words) for b, g in zip(bad, good))
    if isinstance(good, str) and isinstance(bad, str):
        return any(_nameless(bad) == _nameless(_with(good, words, form)) for form in FORMS)
    return isinstance(good, int) and isinstance(bad, int) or bad is good is None   # a place in the text


def _with(good: str, words: tuple[Words, Words], form: Callable[[str], str]) -> str:
    bad_words, good_words = words
    others = {form(one): form(other) for one, other in zip(_all(good_words), _all(bad_words))}
    found = "|".join(map(re.escape, sorted(others, key=len, reverse=True)))
    return re.sub(found, lambda match: others[match[0]], good)


def _all(words: Words) -> tuple[str, ...]:
    return *words.iri, *words.text, words.name


def _nameless(text: str) -> str:
    return DIGEST.sub("_", text)


def _escaped(word: str) -> str:
    return quote(word)[1:-1]


FORMS: list[Callable[[str], str]] = [str, _escaped, str.lower, in_xml, lambda word: _escaped(in_xml(word))]
"""How a word may stand in a literal: as it is, or as a token has it, in lower case, from a document of XML."""


def check(seed: int, folder: Path) -> int:
    """How many statements of a seed have hostile words in them."""
    count = 0
    for words, (dialect, bad), (other, good) in words_and_texts(seed, folder):
        if bad == good:
            continue
        (shape, literals), (expected, plain) = read(dialect, bad), read(other, good)
        assert dialect == other and shape == expected, (seed, bad, good)
        assert len(literals) == len(plain)
        assert all(same(one, two, words) for one, two in zip(literals, plain)), (seed, literals, plain)
        count += 1
    return count


def test_hostile_words_are_literals(tmp_path: Path) -> None:
    assert sum(check(seed, tmp_path) for seed in range(1, 201)) > 700


@pytest.mark.long
@pytest.mark.timeout(4 * 3600)
def test_many_hostile_words_are_literals(tmp_path: Path) -> None:
    assert sum(check(seed, tmp_path) for seed in range(201, 10_201)) > 35_000
