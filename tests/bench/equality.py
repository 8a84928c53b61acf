"""owl:sameAs: evaluations of queries under owl2rl over cliques and over LUBM(1) with equal individuals, by representatives and by rules.

Each evaluation is one of its own, in this process, from the window's facts to the answer; times are medians of those after the first. By
rules cliques are so small that they take seconds. Both ways stand side by side, so that their ratio does not depend on the machine.
"""

from __future__ import annotations

import gzip
import random
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from engine.compiler import BUILT_IN_RULES, Catalog, compile_statement
from engine.execution.content import StreamContent
from engine.execution.due import Due
from engine.execution.executor import Executor
from engine.execution.own_process import own_process
from engine.records import Event, Triple
from engine.rewrite.schema import SAME
from engine.runtime.rows import facts_of, graph_table
from grammar import parse
from tests.bench.figures import Figure, at_most, holds, plain
from tests.bench.settings import Settings
from tests.conformance.datasets import read_triples
from tests.encoded import encode
from tests.shared import shared

E = "http://example.org/"
STREAM, TBOX, TICK = f"{E}stream", f"{E}tbox", 10_000
BY_RULES = 200      # larger cliques are evaluated by representatives only: by rules one of 400 takes a minute
PAIRS = 5_000
REPEATS = 3
ASKED = {"values of one": "SELECT ?b {from_} WHERE {{ :n0 :badge ?b }}",
         "number of all": "SELECT (COUNT(*) AS ?n) {from_} WHERE {{ ?x :badge ?b }}"}
LUBM = """SELECT (COUNT(*) AS ?n) {from_} WHERE {{ ?x a ub:Student ; ub:takesCourse ?c . ?t ub:teacherOf ?c }}"""
_UB = "http://www.lehigh.edu/~zhp2/2004/0401/univ-bench.owl#"


def run(settings: Settings) -> tuple[list[Figure], dict[str, Any]]:
    """The figures of the benchmark, and details."""
    figures: list[Figure] = []
    details: dict[str, Any] = {}
    with own_process() as tasks:
        executor = Executor(tasks)
        for size in (100, 200) if settings.quick else (100, 200, 400, 2_000):
            for name, query in ASKED.items():
                figures += _compared(executor, f"{name}, a clique of {size:,}", query, clique(size), (), size <= BY_RULES, details)
        if not settings.quick:
            ontology = tuple(read_triples(shared("lubm", "ontology", "univ-bench.ttl"), "http://example.org/", "c"))
            figures += _compared(executor, f"LUBM(1) with {PAIRS:,} pairs", LUBM, university(PAIRS), ontology, True, details)
            figures += _compared(executor, "LUBM(1) without any", LUBM, university(0), ontology, True, details)
        executor.close()
    return figures, details


def clique(size: int) -> list[Triple]:
    """So many individuals that are one, each said to be the same as the next, and each with a triple of its own."""
    names = [f"<{E}n{number}>" for number in range(size)]
    return [*((one, SAME, other) for one, other in zip(names, names[1:])), *((n, f"<{E}badge>", f'"{k}"') for k, n in enumerate(names))]


def university(pairs: int) -> list[Triple]:
    """LUBM(1), with other names for so many of its individuals."""
    text = gzip.decompress(shared("lubm", "lubm1-seed0.nt.gz").read_bytes()).decode()
    triples = [tuple(line[:-2].split(" ", 2)) for line in text.splitlines() if line.endswith(" .")]
    named = sorted({triple[0] for triple in triples if triple[0].startswith("<")})
    chosen = random.Random(pairs).sample(named, pairs)
    return [*triples, *((name, SAME, f"<{E}alias{number}>") for number, name in enumerate(chosen))]  # type: ignore[list-item]


def _compared(executor: Executor, name: str, query: str, triples: Sequence[Triple], tbox: Sequence[Triple], by_rules: bool,
              details: dict[str, Any]) -> Iterator[Figure]:
    """Seconds of an evaluation, by representatives and where that ends soon by rules."""
    text = f"PREFIX : <{E}> PREFIX ub: <{_UB}> " + query.format(
        from_=f"FROM STREAM :stream [RANGE 10s STEP 10s] USING RULES owl2rl {'FROM :tbox' if tbox else ''}")
    content = StreamContent()
    content.append(facts_of(encode([Event(1, STREAM, 500, None, tuple(triples), 500)])))
    seconds, answers = _evaluated(executor, text, content, tbox, frozenset())
    details[name] = {"seconds": seconds}
    found = statistics.median(seconds[1:])
    if any(triple[1] == SAME for triple in triples):
        yield at_most(f"{name}, by representatives", found, "s", 1)
    else:   # there is nothing to be represented: the rules are applied as they are without
        yield plain(name, found, "s")
    if by_rules:
        old, expected = _evaluated(executor, text, content, tbox, frozenset(("equality",)), 2)
        details[name]["by rules"] = old
        yield plain(f"{name}, by rules", min(old), "s")
        yield plain(f"{name}, by rules / by representatives", min(old) / found, "ratio")
        yield holds(f"{name}, both ways agree", answers == expected, "yes")


def _evaluated(executor: Executor, text: str, content: StreamContent, tbox: Sequence[Triple], without: frozenset[str],
               times: int = REPEATS + 1) -> tuple[list[float], Counter[tuple[object, ...]]]:
    graphs = {TBOX: graph_table(tuple(tbox))} if tbox else {}
    made = compile_statement(parse(text), Catalog({STREAM: "event"}, graphs, BUILT_IN_RULES), "q", without=without)
    seconds, found = [], Counter[tuple[object, ...]]()
    for _ in range(times):
        began = time.perf_counter()
        answer, = executor.evaluate([Due("q", made, (TICK,), -1, {STREAM: content}, graphs)])
        seconds.append(round(time.perf_counter() - began, 3))
        if answer.error is not None:
            raise answer.error
        assert answer.table is not None
        found = Counter(tuple(row.values()) for row in answer.table.to_pylist())
    executor.forget("q")
    return seconds, found
