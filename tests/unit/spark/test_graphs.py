"""Each graph operator in one task, in Spark SQL and by GraphFrames: equal results on random graphs, all in one disjoint union."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from engine.plan.graphs import WAYS, Chosen, Way
from engine.spark.executor import Executor
from engine.spark.graphs import plain
from engine.spark.graphs.operators import Graphs
from engine.spark.session import Session
from tests.differential.generator import Case
from tests.differential.plans import due
from tests.sparks import needs_graphframes

Row = tuple[Any, ...]
WITHIN = ("g",)


def random_edges() -> list[tuple[int | None, str, str, int]]:
    """Edges of 60 small graphs, loops, cycles and parallel edges among them; the name of one graph is null."""
    chance = random.Random(11)
    rows = []
    for graph in range(60):
        nodes = [f"<http://example.org/{chance.randrange(1000)}>" for _ in range(chance.randint(1, 9))]
        rows += [(graph or None, chance.choice(nodes), chance.choice(nodes), chance.randrange(8)) for _ in range(chance.randint(1, 14))]
    return rows


EDGES = random_edges()
GRAPHS = sorted({g for g, *_ in EDGES}, key=lambda g: g or 0)


def of(graph: int | None) -> list[tuple[str, str, int]]:
    return [(x, y, hi) for g, x, y, hi in EDGES if g == graph]


def pairs(graph: int | None) -> list[tuple[str, str]]:
    return [(x, y) for x, y, _ in of(graph)]


def begun(edge: tuple[str, ...]) -> bool:
    """Whether an edge is among those that closures from some edges begin with."""
    return edge[0][-2] in "13579"


@pytest.fixture(scope="module")
def edges(spark_session: Session) -> DataFrame:
    g, x, y, hi = zip(*EDGES)
    table = pa.table({"g": pa.array(g, pa.int64()), "x": x, "y": y, "hi": pa.array(hi, pa.int64())})
    return spark_session.spark.createDataFrame(table).localCheckpoint()


def unended(frame: DataFrame) -> DataFrame:
    return frame.select("g", "x", "y").distinct()


def some(frame: DataFrame) -> DataFrame:
    return frame.where("substr(x, -2, 1) IN ('1', '3', '5', '7', '9')")


OPERATIONS: dict[str, tuple[Callable[[Graphs, DataFrame], tuple[DataFrame, Chosen]], Callable[[int | None], Any]]] = {
    "components": (lambda graphs, e: graphs.components(e, WITHIN), lambda g: plain.components(pairs(g)).items()),
    "strong components": (lambda graphs, e: graphs.strong_components(e, WITHIN), lambda g: plain.strong_components(pairs(g)).items()),
    "all pairs": (lambda graphs, e: graphs.reach(unended(e), None, WITHIN),
                  lambda g: {(x, y) for x, y, _ in plain.widest(of(g), of(g))}),
    "pairs from some": (lambda graphs, e: graphs.reach(unended(e), unended(some(e)), WITHIN),
                        lambda g: {(x, y) for x, y, _ in plain.widest(of(g), filter(begun, of(g)))}),
    "ends from some": (lambda graphs, e: graphs.reach(e, some(e), WITHIN), lambda g: plain.widest(of(g), filter(begun, of(g)))),
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_all_ways_give_one_answer(spark_session: Session, edges: DataFrame, operation: str, way: Way) -> None:
    if way == "graphframes":
        needs_graphframes(spark_session)
    operate, expected = OPERATIONS[operation]
    found, chosen = operate(Graphs(spark_session, way), edges)
    assert chosen.way == way and chosen.edges
    assert rows(found) == sorted(((g, *row) for g in GRAPHS for row in expected(g)), key=str)


@pytest.mark.parametrize("way", ["sql", "graphframes"])
def test_chains(spark_session: Session, edges: DataFrame, way: Way) -> None:
    if way == "graphframes":
        needs_graphframes(spark_session)
    labelled = edges.where("g < 20").selectExpr("g", "x", "concat('p', hi) AS p", "y").distinct()
    found, chosen = Graphs(spark_session, way).chains(labelled, 3, WITHIN)
    assert chosen.way == way
    assert rows(found) == sorted(((g, a, p, b, q, c, r, d) for g in GRAPHS if g is not None and g < 20 for own in [named(g)]
                                  for a, p, b in own for b2, q, c in own if b == b2 for c2, r, d in own if c == c2), key=str)


def named(graph: int | None) -> set[tuple[str, str, str]]:
    return {(x, f"p{hi}", y) for x, y, hi in of(graph)}


@pytest.mark.parametrize("way", WAYS)
def test_no_edges(spark_session: Session, edges: DataFrame, way: Way) -> None:
    if way == "graphframes":
        needs_graphframes(spark_session)
    nothing = edges.where("x = ''").localCheckpoint()
    assert rows(Graphs(spark_session, way).reach(unended(nothing), None, ("g",))[0]) == []
    assert rows(Graphs(spark_session, way).components(unended(nothing).drop("g"))[0]) == []


def test_small_graphs_are_done_in_one_task(spark_session: Session, edges: DataFrame) -> None:
    """Without names of graphs: all edges are of one."""
    one = edges.select("x", "y").distinct()
    found, chosen = Graphs(spark_session).reach(one)
    assert (chosen.problem, chosen.edges, chosen.way) == ("reachability", one.count(), "task")
    ended = [(x, y, 0) for _, x, y, _ in EDGES]
    assert rows(found) == sorted(((x, y) for x, y, _ in plain.widest(ended, ended)), key=str)


@pytest.mark.parametrize("way", [None, *WAYS])
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


def rows(found: DataFrame) -> list[Row]:
    return sorted((tuple(row.values()) for row in found.toArrow().to_pylist()), key=str)
