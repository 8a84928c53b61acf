"""Queries that are not divided among shards are spread over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from engine.compiler import BUILT_IN_RULES, Catalog, compile_statement
from engine.execution import own_process
from engine.execution.content import StreamContent
from engine.execution.due import Due
from engine.execution.executor import Executor
from engine.execution.homes import Homes
from engine.ipc import pack_text
from engine.limits import EvaluationLimits, LimitExceeded
from engine.records import Event, Triple
from engine.runtime.rows import facts_of, graph_table
from engine.worker import bundles
from engine.worker.bundles import Found, Shown, Task, Written
from engine.worker.resident import Followed
from grammar import parse
from tests.encoded import encode

E, S, G = "http://ex.org/", "http://ex.org/s", "http://ex.org/g"
SCHEMA: list[Triple] = [(f"<{E}p>", "<http://www.w3.org/2000/01/rdf-schema#subPropertyOf>", f"<{E}v>"),
                        (f"<{E}q>", "<http://www.w3.org/2000/01/rdf-schema#subPropertyOf>", f"<{E}w>")]
PLAIN = "SELECT ?x ?a FROM STREAM :s [RANGE 6s STEP {step}s] WHERE {{ ?x :p ?a }}"
CLOSED = "SELECT ?x ?a FROM STREAM :s [RANGE 6s STEP {step}s] USING RULES owl2rl FROM :g WHERE {{ ?x :{property} ?a }}"


def test_queries_stay_where_they_are_and_those_with_something_in_common_are_together() -> None:
    homes = Homes(2)
    assert [homes.of(name, frozenset({name})) for name in "abcd"] == [0, 1, 0, 1]
    assert homes.of("e", frozenset({"d", "e"})) == 1 == homes.of("e", frozenset({"d", "e"}))
    homes.forget("b")
    homes.forget("d")
    homes.forget("e")
    assert homes.of("f", frozenset({"f"})) == homes.of("g", frozenset({"g"})) == 1, "where fewest are"
    assert homes.of("a", frozenset({"f"})) == 1, "it needs something else than before"


def test_what_shards_have_written_counts_as_much_as_it_took_before() -> None:
    task = Task("", frozenset(), 1, limits=EvaluationLimits(evaluation_bytes=100), shown=Shown(("x",), 10), in_shards=True)
    written = [Found(pa.table({}), written=Written(5_000, pack_text(b""), 80)), Found(pa.table({"x": pa.array([], pa.string())}))]
    assert isinstance(bundles._together(task, written), Found)
    over = bundles._together(task, [written[0], written[0]])
    assert isinstance(over, LimitExceeded) and over.limit == "evaluation_bytes"


class Shards:
    """What the workers of two shards were given: the queries of tasks, and of each followed table whether all of it, by evaluation."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.queries: list[dict[int, list[str]]] = []
        self.whole: list[tuple[int, str]] = []
        run, step = bundles.run_in_shards, Followed.step

        def watched(tasks: Sequence[Task], tables: Mapping[str, Any], shards: int, *others: Any) -> list[Found | Exception]:
            self.queries.append({shard: [task.query for task in tasks if shard in task.shards(shards)] for shard in range(shards)})
            return run(tasks, tables, shards, *others)

        def stepped(table: Any, whole: bool, shard: int = 0) -> Any:
            found = step(table, whole, shard)
            if not found.after:
                self.whole.append((shard, table.token))
            return found

        monkeypatch.setattr(own_process, "run_in_shards", watched)
        monkeypatch.setattr(Followed, "step", stepped)


def test_closures_are_spread_and_tables_are_brought_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the queries of two shards are evaluated by turns."""
    shards, content = Shards(monkeypatch), StreamContent()
    graphs = {G: graph_table(SCHEMA)}
    texts = {"plain": PLAIN.format(step=2), "v": CLOSED.format(step=2, property="v"), "w": CLOSED.format(step=3, property="w"),
             "more": CLOSED.format(step=2, property="v")}
    catalog = Catalog({S: "event"}, graphs, BUILT_IN_RULES)
    compiled = {name: compile_statement(parse(f"PREFIX : <{E}> {text}"), catalog, name) for name, text in texts.items()}
    tasks = own_process.OwnProcess(tmp_path, 1, shards=2)
    executor = Executor(tasks)
    for second in range(1, 9):
        triples: tuple[Triple, ...] = ((f"<{E}x{second}>", f"<{E}p>", f'"{second}"'), (f"<{E}x{second}>", f"<{E}q>", f'"{second}"'))
        content.append(facts_of(encode([Event(second, S, second * 1_000 - 1, None, triples, 0)])))
        content.evict((second - 6) * 1_000)
        names = [name for name in texts if second % (3 if name == "w" else 2) == 0]
        for name, answer in zip(names, executor.evaluate([Due(name, compiled[name], (second * 1_000,), 0, {S: content}, graphs)
                                                          for name in names]), strict=True):
            assert answer.table is not None and answer.table.num_rows == min(second, 6), (name, second, answer.error)
    assert {name: executor.ran[name].home for name in texts} == {"plain": 1, "v": 1, "w": 2, "more": 1}
    assert executor.ran["w"].why.startswith("its closures are made anew: 12 rows are soon evaluated anew")
    executor.close()
    tasks.close()
    assert shards.queries[0] == {0: ["plain", "v", "more"], 1: []}, "those that ask the same share a closure"
    assert shards.queries[1] == {0: [], 1: ["w"]}
    assert len(shards.whole) == len(set(shards.whole)) > 2
