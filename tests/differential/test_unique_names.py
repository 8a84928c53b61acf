"""Closures under the rules that matter while the names of a query are unique, against those under all rules: random schemas, each with the
contents of many windows, by representatives and by the rules of equality. Where a name is not unique they say so; else what is asked of
them is the same, and so is what is inconsistent.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import duckdb
import pytest

from engine.ir.rules import NOT_UNIQUE, TRIPLE, Rule
from engine.ir.terms import RDF_TYPE
from engine.rewrite.owl2rl import OWL2RL
from engine.rewrite.partial import compile_rules
from engine.rewrite.reflexive import without_reflexive
from engine.rewrite.relevance import ANYTHING, Goal, relevant
from engine.rewrite.rule_text import iri
from engine.rewrite.unique_names import under_unique_names, while_unequal
from tests.differential.test_equality import CASES, axiom, content
from tests.unit.rewrite.test_equality import OWN, closures, own_rules
from tests.unit.rewrite.test_owl2rl_random import CLASSES, LITERALS, PROPERTIES, THINGS, written

FEW, MANY = 6, 200
_HAS_VALUE = iri("hasValue")


def test_some(database: duckdb.DuckDBPyConnection) -> None:
    seen: Counter[str] = Counter()
    for seed in range(FEW):
        seen += agree(database, seed)
    assert min(seen["unique"], seen["not unique"]) > CASES / 2, seen


def test_some_while_no_term_is_equal_to_another(database: duckdb.DuckDBPyConnection) -> None:
    seen: Counter[str] = Counter()
    for seed in range(FEW):
        seen += agree(database, seed, whole=True)
    assert min(seen["unique"], seen["not unique"]) > CASES / 4, seen


@pytest.mark.soak
@pytest.mark.parametrize("part", range(2))
def test_more(database: duckdb.DuckDBPyConnection, part: int) -> None:
    for seed in range(FEW + part, FEW + 50, 2):
        agree(database, seed)
        agree(database, seed, whole=True)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_ten_thousand(database: duckdb.DuckDBPyConnection) -> None:
    for seed in range(FEW, FEW + MANY):
        agree(database, seed)


def agree(database: duckdb.DuckDBPyConnection, seed: int, whole: bool = False) -> Counter[str]:
    """How many windows had unique names, and how many had not; of all terms where the `whole` closure is to be the same."""
    random = Random(seed)
    axioms = [made for made in (axiom(random) for _ in range(random.randrange(7))) if not _has_value(made)]
    background = [*written(axioms), *content(random, 4)]
    goals = [ANYTHING] if whole else asked(random)
    compiled = compile_rules(OWL2RL, background)
    facts = tuple(Rule(fact.atom, (), name="schema", role="built-in") for fact in compiled.facts)
    own = own_rules(random.sample(OWN, random.randrange(3)))
    rules = relevant([*without_reflexive(compiled.rules, goals), *facts, *own], goals)
    less = while_unequal(rules) if whole else under_unique_names(rules, goals)
    seen: Counter[str] = Counter()
    if less is None:
        return seen
    windows = {tick: content(random, 6) for tick in range(1, CASES + 1)}
    *_, shown, findings = closures(database, rules, background, windows, False)
    for by_representatives in (False,) if whole else (False, True):
        *_, found, told = closures(database, rules, background, windows, by_representatives, less)
        for tick in windows:
            words = of(told, tick)
            if any(NOT_UNIQUE in word for word in words):
                seen["not unique"] += 1
                continue
            seen["unique"] += 1
            assert matching(found, tick, goals) == matching(shown, tick, goals), (seed, tick, by_representatives)
            assert words == of(findings, tick), (seed, tick, by_representatives)
    return seen


def asked(random: Random) -> list[Goal]:
    """What a query may ask, of names that it has."""
    one, other = random.sample(PROPERTIES, 2)
    return random.choice(([(TRIPLE, (None, one, None))], [(TRIPLE, (None, RDF_TYPE, random.choice(CLASSES)))],
                          [(TRIPLE, (random.choice(THINGS), one, None)), (TRIPLE, (None, other, random.choice([*THINGS, *LITERALS])))],
                          [(TRIPLE, (None, one, None)), (TRIPLE, (None, RDF_TYPE, random.choice(CLASSES)))]))


def matching(facts: list[Any], tick: int, goals: list[Goal]) -> list[Any]:
    """The triples at T that match a goal."""
    return [fact for fact in facts if fact[0] == tick
            and any(all(token in (None, term) for token, term in zip(terms, fact[1:4])) for _, terms in goals)
            and fact[2][0] == "<" and fact[1][0] != '"']


def of(findings: list[Any], tick: int) -> list[Any]:
    """What is inconsistent at T."""
    return [word for word in findings if f"'lo': {2 * tick - 1}," in word]


def _has_value(made: tuple[object, ...]) -> bool:
    """Whether an axiom brings a literal that may be in no fact."""
    return isinstance(made[1], list) and any(pair[0] == _HAS_VALUE for pair in made[1])
