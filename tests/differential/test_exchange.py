"""Closures that shards make together, against those that one database makes, over random streams and rules."""

from __future__ import annotations

import random

import pytest

from engine.compiler import BUILT_IN_RULES, Catalog, compile_statement
from engine.execution.compiled import Compiled
from engine.execution.content import StreamContent
from engine.execution.due import Due
from engine.execution.executor import Executor
from engine.execution.own_process import own_process
from engine.ir.rules import RuleSet
from engine.runtime.rows import facts_of
from engine.timeline import MIN
from grammar.rif.parse import parse_rules
from grammar.statement import parse
from tests.differential.test_kept import E, G, R, S, events, rows
from tests.differential.test_kept_closures import QUERIES, RULES, SCHEMA, TYPE, USING
from tests.encoded import encode
from tests.examples import many, rotated

PROPERTIES, CLASSES = ("next", "p", "q", "v", "made", "far"), ("Thing", "Other", "n1")


def atom(chance: random.Random, subject: str, objects: str) -> str:
    """A frame about a variable, whose object is one of some variables or a class."""
    if chance.random() < 0.3:
        return f"?{subject}[{TYPE} -> <{E}{chance.choice(CLASSES)}>]"
    return f"?{subject}[<{E}{chance.choice(PROPERTIES)}> -> ?{chance.choice(objects)}]"


def random_rules(seed: int) -> RuleSet:
    """Rules of one to three atoms that share a variable, and some that say what is inconsistent."""
    chance, rules = random.Random(f"rules {seed}"), []
    for _ in range(chance.randint(3, 8)):
        body = [chance.choice((atom(chance, "x", "yz"), f"?{chance.choice('yz')}[<{E}{chance.choice(PROPERTIES)}> -> ?x]"))
                for _ in range(chance.randint(1, 3))]
        ends = sorted({letter for part in body for letter in "xyz" if f"?{letter}" in part})
        head = atom(chance, chance.choice(ends), "".join(ends))
        rules.append(f"Forall ?x ?y ?z ( {head} :- And( {' '.join(body)} ) )")
    return parse_rules(f"Document( Group( {' '.join(rules)} ) )", "text/x-rif-ps", "random")


def compiled(text: str, rules: dict[str, RuleSet]) -> Compiled:
    catalog = Catalog({S: "event", R: "event"}, {G: SCHEMA}, rules)
    return compile_statement(parse(f"PREFIX : <{E}> REGISTER QUERY q AS {text}"), catalog, "q")


def in_shards_as_in_one(text: str, rules: dict[str, RuleSet], seed: str, steps: int) -> int:
    """Evaluate a query by shards, those of the pump or those beside it, and by one database; how often shards did it together."""
    chance, query, position, together = random.Random(seed), compiled(text, rules), 1, 0
    contents = {source.stream: StreamContent() for source in query.statement.streams}
    with own_process(1) as one, own_process(1, chance.choice((2, 3, 7))) as several:
        whole, shards = Executor(one, force_strategy="recompute"), Executor(several, force_strategy="recompute", shard_rows=0)
        either = shards, shards.beside()
        for step in range(steps):
            for stream, content in contents.items():
                if made := [event for to, event in events(chance, step * 2_000, position) if to == stream]:
                    content.append(facts_of(encode(made)))
                position += 20
                content.evict((step - 6) * 2_000 if chance.random() < 0.9 else MIN)
            ticks = tuple(2_000 * (step + more) for more in range(chance.choice((1, 1, 2, 4))))
            expected, found = (executor.evaluate([Due("q", query, ticks, -1, contents, {G: SCHEMA})])
                               for executor in (whole, chance.choice(either)))
            for first, second in zip(expected, found, strict=True):
                assert first.error is None and second.error is None, (first.error, second.error)
                assert rows(first) == rows(second), (text, seed, step, first.tick)
                assert first.inconsistencies == second.inconsistencies
            together += shards.ran["q"].shards > 1
        whole.close()
        shards.close()
    return together


@pytest.mark.soak
@pytest.mark.parametrize(("name", "using"), rotated(QUERIES, USING))
def test_queries_over_closures_of_shards(name: str, using: str) -> None:
    text = QUERIES[name] % using if "%s" in QUERIES[name] else QUERIES[name]
    in_shards_as_in_one(text, dict(RULES), f"{name} {using}", many(6, 9))


@pytest.mark.soak
@pytest.mark.parametrize("seeds", [range(part, 120, 4) for part in range(4)], ids=str)
def test_random_rules_in_shards(seeds: range) -> None:
    together = 0
    for seed in seeds:
        graph = "USING GRAPH :g" if seed % 2 else ""
        text = f"SELECT ?s ?p ?o FROM STREAM :s [RANGE 6s STEP 2s] USING RULES random {graph} WHERE {{ ?s ?p ?o }}"
        together += in_shards_as_in_one(text, {**BUILT_IN_RULES, "random": random_rules(seed)}, str(seed), 5)
    assert together > 4 * len(seeds), "most closures are made together"
