"""Closures in one task, in Spark SQL and by GraphFrames: equal results on random graphs, all in one disjoint union."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from engine.plan.graphs import WORDS, Chosen, Way
from engine.spark.executor import Executor
from engine.spark.graphs import Graphs
from engine.spark.session import Session
from tests.differential.generator import Case
from tests.differential.plans import due
from tests.sparks import needs_graphframes

Row = tuple[Any, ...]
WITHIN = ("g",)


def random_edges() -> list[tuple[int | None, str, str]]:
    """Edges of 60 small graphs, loops and cycles among them; the name of one graph is null."""
    chance = random.Random(11)
    rows = set()
    for graph in range(60):
        nodes = [f"<http://example.org/{chance.randrange(1000)}>" for _ in range(chance.randint(1, 9))]
        rows |= {(graph or None, chance.choice(nodes), chance.choice(nodes)) for _ in range(chance.randint(1, 14))}
    return sorted(rows, key=str)


EDGES = random_edges()
GRAPHS = sorted({g for g, *_ in EDGES}, key=lambda g: g or 0)


def begun(edge: tuple[str, str]) -> bool:
    """Whether an edge is among those that closures from some edges begin with."""
    return edge[0][-2] in "13579"


def closure(edges: set[tuple[str, str]], base: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """By its definition: rules applied until nothing changes."""
    longer = base | {(x, z) for x, y in base for y2, z in edges if y == y2}
    return base if longer == base else closure(edges, longer)


@pytest.fixture(scope="module")
def edges(spark_session: Session) -> DataFrame:
    g, x, y = zip(*EDGES)
    return spark_session.spark.createDataFrame(pa.table({"g": pa.array(g, pa.int64()), "x": x, "y": y})).localCheckpoint()


def some(frame: DataFrame) -> DataFrame:
    return frame.where("substr(x, -2, 1) IN ('1', '3', '5', '7', '9')")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("way", WORDS)
@pytest.mark.parametrize("seeded", [False, True])
def test_all_ways_give_one_answer(spark_session: Session, edges: DataFrame, seeded: bool, way: Way) -> None:
    if way == "graphframes":
        needs_graphframes(spark_session)
    found, chosen = Graphs(spark_session, way).reach(edges, some(edges) if seeded else None, WITHIN)
    assert chosen == Chosen("reachability", len(EDGES), way)
    of = {g: {(x, y) for named, x, y in EDGES if named == g} for g in GRAPHS}
    assert rows(found) == sorted(((g, *pair) for g in GRAPHS for pair in closure(of[g], set(filter(begun, of[g])) if seeded else of[g])),
                                 key=str)


@pytest.mark.parametrize("way", WORDS)
def test_no_edges(spark_session: Session, edges: DataFrame, way: Way) -> None:
    if way == "graphframes":
        needs_graphframes(spark_session)
    assert rows(Graphs(spark_session, way).reach(edges.where("x = ''").localCheckpoint(), None, ("g",))[0]) == []


def test_small_graphs_are_done_in_one_task(spark_session: Session, edges: DataFrame) -> None:
    """Without names of graphs: all edges are of one."""
    one = edges.select("x", "y").distinct()
    found, chosen = Graphs(spark_session).reach(one)
    assert (chosen.problem, chosen.edges, chosen.way) == ("reachability", one.count(), "task")
    of = {(x, y) for _, x, y in EDGES}
    assert rows(found) == sorted(closure(of, of), key=str)


@pytest.mark.parametrize("way", [None, *WORDS])
def test_an_executor_tells_how_it_answered(spark_session: Session, way: Way | None) -> None:
    if way == "graphframes":
        needs_graphframes(spark_session)
    executor = Executor(spark_session, force_executor="sql", force_graphs=way)
    case = Case("SELECT ?y { <http://e/a> <http://e/p>+ ?y }", (":a :p :b .", ":b :p :c .", ":c :p :b ."), {})
    try:
        answer, = executor.evaluate([due(f"told by {way}", case, "windows")])
        assert answer.error is None and answer.table is not None
        assert sorted(answer.table["y"].to_pylist()) == ["<http://e/b>", "<http://e/c>"]
        assert executor.graph_choices == {f"told by {way}": (Chosen("reachability", 3, way or "task"),)}
    finally:
        executor.forget(f"told by {way}")
        executor.close()
    assert not executor.graph_choices


@pytest.mark.parametrize("way", WORDS)
def test_a_query_says_how_its_paths_are_closed(spark_session: Session, way: Way) -> None:
    """One without paths goes on where it is quickest."""
    if way == "graphframes":
        needs_graphframes(spark_session)
    executor = Executor(spark_session)
    facts = (":a :p :b .", ":b :p :c .", ":c :p :b .")
    cases = {f"path by {way}": Case("SELECT ?y { <http://e/a> <http://e/p>+ ?y }", facts, {}),
             f"none by {way}": Case("SELECT ?y { <http://e/a> <http://e/p> ?y }", facts, {})}
    dues = [replace(due(name, case, "windows"), paths=way) for name, case in cases.items()]
    try:
        path, none = executor.evaluate(dues)
        assert path.table is not None and none.table is not None, (path.error, none.error)
        assert sorted(path.table["y"].to_pylist()) == ["<http://e/b>", "<http://e/c>"] and none.table.num_rows == 1
        by_path, by_none = (executor.ran[name] for name in cases)
        assert by_none.executor == "local" and by_path.executor == ("local" if way == "task" else "sql")
        assert executor.graph_choices == ({} if way == "task" else {f"path by {way}": (Chosen("reachability", 3, way),)})
        assert way == "task" or WORDS[way] in by_path.why
    finally:
        for name in cases:
            executor.forget(name)
        executor.close()


def rows(found: DataFrame) -> list[Row]:
    return sorted((tuple(row.values()) for row in found.toArrow().to_pylist()), key=str)
