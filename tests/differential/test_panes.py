"""Aggregates, and first solutions, by panes against those of whole windows: random streams whose facts come late, at the edges of panes,
and sometimes twice."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from engine.execution.content import StreamContent
from engine.execution.due import Due
from engine.execution.executor import Executor
from engine.execution.own_process import own_process
from engine.records import Event
from engine.runtime.rows import facts_of
from engine.sql.panes import IN_WINDOW
from engine.timeline import MIN
from engine.worker import database, panes, resident
from tests.differential.test_kept import R, S, E, compiled, rows
from tests.encoded import encode
from tests.examples import rotated, many

XSD = "http://www.w3.org/2001/XMLSchema#"
WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE 6s STEP 2s]"
TWO = f"{WINDOW} FROM NAMED WINDOW :v ON :r [RANGE 9s STEP 2s]"
STAR = "WINDOW :w { ?s :p ?a ; :q ?b }"
QUERIES = {
    "count": f"SELECT (COUNT(*) AS ?n) (COUNT(?a) AS ?m) {WINDOW} WHERE {{ {STAR} }}",
    "by group": f"SELECT ?b (COUNT(*) AS ?n) (SUM(?a) AS ?x) (AVG(?a) AS ?y) {WINDOW} WHERE {{ {STAR} }} GROUP BY ?b",
    "extremes": f"SELECT ?b (MIN(?a) AS ?x) (MAX(?a) AS ?y) (MAX(?s) AS ?z) (SAMPLE(?a) AS ?w) {WINDOW} WHERE {{ {STAR} }} GROUP BY ?b",
    "in a sub-query": f"SELECT ?s ?m {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?m ; :q ?b {{ SELECT (MAX(?a) AS ?m) "
                      f"WHERE {{ ?s :p ?a ; :q ?b }} }} }} }}",
    "two windows": f"SELECT ?b (COUNT(*) AS ?n) (MIN(?c) AS ?x) {TWO} WHERE {{ {STAR} WINDOW :v {{ ?s :p ?c ; :q ?d }} }} GROUP BY ?b",
    "moved window": f"SELECT ?b (SUM(?a) AS ?x) FROM NAMED WINDOW :w ON :s [FROM NOW-9s TO NOW-3s STEP 2s] WHERE {{ {STAR} }} GROUP BY ?b",
    "many groups": f"SELECT ?s (COUNT(*) AS ?n) {WINDOW} WHERE {{ {STAR} }} GROUP BY ?s",
    "nothing binds the key": f"SELECT ?z (COUNT(*) AS ?n) {WINDOW} WHERE {{ {STAR} }} GROUP BY ?z",
    "first": f"SELECT ?s ?a {WINDOW} WHERE {{ {STAR} }} ORDER BY DESC(?a) ?s LIMIT 2",
    "first texts": f"SELECT ?s ?a {WINDOW} WHERE {{ {STAR} }} ORDER BY ?b ?a LIMIT 1 OFFSET 1",
    "first of two windows": f"SELECT ?b ?c {TWO} WHERE {{ {STAR} WINDOW :v {{ ?s :p ?c ; :q ?d }} }} ORDER BY ?c DESC(?b) LIMIT 2",
    "latest of each": f"SELECT ?s ?b ?a {WINDOW} WHERE {{ {STAR} {{ SELECT ?b (MAX(?c) AS ?a) WHERE {{ WINDOW :w {{ ?t :p ?c ; :q ?b }} }} "
                      f"GROUP BY ?b }} }}",
    "one of each": f"SELECT ?b (COUNT(DISTINCT ?a) AS ?n) (SUM(DISTINCT ?a) AS ?x) {WINDOW} WHERE {{ {STAR} }} GROUP BY ?b",
    "texts": f"SELECT (GROUP_CONCAT(?b) AS ?x) (COUNT(*) AS ?n) {WINDOW} WHERE {{ {STAR} }}",
}
NEVER = {"one of each", "texts"}


def events(chance: random.Random, begin: int, position: int, known: list[str], again: float) -> Iterator[tuple[str, Event]]:
    """Some seconds of two streams, of which so many in one are `again` about known subjects."""
    for number in range(chance.randint(0, 12)):
        subject = chance.choice(known) if known and chance.random() < again else f"<{E}n{position}_{number}>"
        known.append(subject)
        value = f'"{chance.randint(-3, 9)}"^^<{XSD}integer>' if chance.random() < 0.6 else f'"{chance.randint(0, 99) / 8}"^^<{XSD}decimal>'
        triples = ((subject, f"<{E}p>", value), (subject, f"<{E}q>", f'"{chance.choice("abc")}"'))
        late = -3_000 if chance.random() < 0.2 else 0
        time = max(0, begin + chance.choice((chance.randint(late, 2_000), 187 * chance.randint(0, 10), 0)))
        yield chance.choice((S, S, R)), Event(position + number, S, time, None, triples[:chance.choice((1, 2, 2, 2))], 0)


@pytest.mark.soak
@pytest.mark.parametrize(("name", "seed"), [*rotated(QUERIES, range(3)), *((name, 3) for name in QUERIES)])
def test_panes_give_what_windows_hold(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resident, "_FEW", 40)
    monkeypatch.setattr(resident, "_MANY", 30 if seed == 1 else 0)
    monkeypatch.setattr(panes, "FEWER", 0 if name != "many groups" else 1)
    monkeypatch.setattr(panes, "UNUSED", 3)
    chance = random.Random(f"{name} {seed}")
    contents, known = {S: StreamContent(), R: StreamContent()}, list[str]()
    read, position, whole = 0, 1, panes.fill

    def fill(*given: Any) -> dict[str, int]:
        nonlocal read
        found = whole(*given)
        read += sum(until - first for first, until in zip(*[iter(found.values())] * 2))
        return found

    changed = database.changed_rows

    def interrupted(*given: Any) -> int:
        count = changed(*given)
        if seed == 3 and chance.random() < 0.1:
            raise RuntimeError("what was asked for is done, and not what comes after it")
        return count

    monkeypatch.setattr(resident, "fill", fill)
    monkeypatch.setattr(panes, "changed_rows", interrupted)
    with own_process(1) as keeping, own_process(1) as plain:
        ways = {"incremental": Executor(keeping, force_strategy="incremental"),
                "recompute": Executor(plain, force_strategy="recompute", forgets=False)}
        queries = {strategy: [compiled(QUERIES[one], one) for one in dict.fromkeys((name, "count"))] for strategy in ways}
        step = since = 0
        while step < many(16, 24):
            for stream, content in contents.items():
                made = [event for to, event in events(chance, step * 2_000, position, known, 0.1 * (seed % 2)) if to == stream]
                position += 20
                if made:
                    content.append(facts_of(encode(made)))
                content.evict((step - 7) * 2_000 if chance.random() < 0.9 else MIN)
            if chance.random() < 0.05:
                resident._held(keeping._connections[0]).clear()     # the worker is another one
            since = position if chance.random() < 0.03 else since
            ticks = tuple(2_000 * (step + more) for more in range(chance.choice((1, 1, 1, 3))))
            asked = [number for number in range(len(queries["recompute"])) if number == 0 or chance.random() < 0.3]
            found = {}
            for strategy, executor in ways.items():
                dues = [Due(f"q{number}", query, ticks, since, {iri: contents[iri] for iri in
                        {source.stream for source in query.statement.streams}}, {}) for number in asked
                        for query in [queries[strategy][number]]]
                found[strategy] = executor.evaluate(dues)
            for one, other in zip(found["incremental"], found["recompute"], strict=True):
                assert seed == 3 and "what was asked" in str(one.error) or rows(one) == rows(other), (name, seed, step, one.tick)
            step += len(ticks) + (5 if chance.random() < 0.1 else 0)
        for executor in ways.values():
            executor.close()
    assert seed % 2 or name in NEVER or name == "many groups" or read, "panes were read"


def test_panes_are_filled_once() -> None:
    """What an evaluation adds to panes are those that are over since the one before it."""
    content, subject = StreamContent(), 0
    with own_process(1) as tasks:
        executor = Executor(tasks, force_strategy="incremental")
        query = compiled(QUERIES["by group"], "q")
        for step in range(1, 16):
            made = []
            for number in range(2_000):
                subject += 1
                made.append(Event(subject, S, (step - 1) * 2_000 + number, None, (
                    (f"<{E}n{subject}>", f"<{E}p>", f'"{number}"^^<{XSD}integer>'), (f"<{E}n{subject}>", f"<{E}q>", '"a"')), 0))
            content.append(facts_of(encode(made)))
            content.evict((step - 6) * 2_000)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(resident, "_MANY", 100)
                [answer] = executor.evaluate([Due("q", query, (step * 2_000,), -1, {S: content}, {})])
            assert answer.error is None
            [kept] = resident._kept(tasks._connections[0]).values()
            [filled] = kept.panes.values()
            assert filled.until == step * 2_000 // 187
            assert filled.rows <= 4 * IN_WINDOW, "panes that no window shows go with the solutions in them"
        executor.close()


@pytest.mark.parametrize("range_s", [6, 30, 600, 3_000])
def test_panes_serve_windows_of_any_length(range_s: int) -> None:
    """Today's times, in milliseconds, have more than 32 bits; the numbers of wide panes have not."""
    content, begin_ms, step_ms = StreamContent(), 1_795_000_000_000 // (range_s * 1_000) * range_s * 1_000, range_s * 100
    text = QUERIES["by group"].replace(WINDOW, f"FROM NAMED WINDOW :w ON :s [RANGE {range_s}s STEP {step_ms}ms]")
    with own_process(1) as keeping, own_process(1) as plain, pytest.MonkeyPatch.context() as patch:
        for module, name, value in ((resident, "_FEW", 40), (resident, "_MANY", 0), (panes, "FEWER", 0)):
            patch.setattr(module, name, value)
        ways = [(Executor(keeping, force_strategy="incremental"), compiled(text, "q")),
                (Executor(plain, force_strategy="recompute", forgets=False), compiled(text, "q"))]
        for step in range(1, 16):
            made = [Event(step * 100 + number, S, begin_ms + (step - 1) * step_ms + number * step_ms // 50, None, (
                (f"<{E}n{step}_{number}>", f"<{E}p>", f'"{number}"^^<{XSD}integer>'), (f"<{E}n{step}_{number}>", f"<{E}q>", '"a"')), 0)
                for number in range(50)]
            content.append(facts_of(encode(made)))
            kept, anew = (executor.evaluate([Due("q", query, (begin_ms + step * step_ms,), -1, {S: content}, {})])[0]
                          for executor, query in ways)
            assert kept.error is None and anew.error is None and rows(kept) == rows(anew), step
        assert sum(table.rows for one in resident._kept(keeping._connections[0]).values() for table in one.panes.values())
