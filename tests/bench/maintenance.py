"""Keeping a closure up to date (Barbieri et al., "Incremental Reasoning on Streams and Rich Background Knowledge", figure 7): trees of one
transitive property in a sliding window, of which a share changes at each evaluation.

`incremental` and `recompute` are the executor's strategies, `planned` is what it takes by itself: its regret is that of the strategy it
takes, and how far `planned` is from the same strategy forced shows what two runs differ by. `dred` (delete and rederive) is written
out here in SQL, for comparison only. Beside them pyoxigraph, whose store is kept: it takes in what came, forgets what went, and answers the
same question by a property path. All must agree at each evaluation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyoxigraph

from engine.compiler import Catalog, compile_statement
from engine.execution.content import StreamContent
from engine.execution.due import Due
from engine.execution.executor import Executor
from engine.facts import FACTS
from engine.functions.typed import Kind
from engine.runtime.rows import graph_table
from engine.spark.executor import Executor as SparkExecutor
from engine.spark.session import Session, start_session
from engine.spark.settings import from_environment
from grammar import parse
from tests.bench.figures import Figure, plain
from tests.bench.settings import Settings

SPACE = "http://example.org/isin/"
STREAM, TBOX, PROPERTY = f"{SPACE}stream", f"{SPACE}tbox", f"<{SPACE}isIn>"
TRANSITIVE = (PROPERTY, "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "<http://www.w3.org/2002/07/owl#TransitiveProperty>")
SIZES = (10_000, 100_000, 1_000_000)
SHARES = (0.001, 0.01, 0.05, 0.13, 0.25, 0.5)
FAN, DEPTH = 3, 3
TREE = sum(FAN ** level for level in range(1, DEPTH + 1))
ASKED = 100         # the roots that are asked for
RANGE_MS = 1_000_000
STEPS = 5
STEPS_OF_SMALL = 15     # of windows below the largest: their evaluations take little longer than a Spark job, whose time varies

Pairs = frozenset[str]


@dataclass(frozen=True, slots=True)
class Edges:
    """A stream of `size` edges a window, their trees mixed within a twentieth of it; edge `number` comes at a time in proportion."""

    size: int

    def facts(self, first: int, last: int) -> pa.Table:
        """The edges of numbers `first` to `last` (excluded), positions from 1 on."""
        numbers = np.arange(first, last)
        block = max(TREE, self.size // 20 // TREE * TREE)
        place = numbers // block * block + (numbers % block * 7_919) % block if block % 7_919 else numbers
        tree, within = np.divmod(place, TREE)
        child = within + 1
        parent = (child - 1) // FAN
        rows = {"position": numbers + 1, "t": numbers * RANGE_MS // self.size, "g": pa.nulls(len(numbers), pa.string()),
                "s": _names(tree, child), "p": pa.array([PROPERTY] * len(numbers)), "o": _names(tree, parent),
                "kind": np.full(len(numbers), int(Kind.IRI)), "number": pa.nulls(len(numbers)), "micros": pa.nulls(len(numbers))}
        return pa.table(rows).cast(FACTS)


def _names(tree: Any, node: Any) -> pa.Array:
    """Nodes as tokens; every tree's root is one of `ASKED`, so that something is known of each."""
    return pa.array([f"<{SPACE}root{t % ASKED}>" if n == 0 else f"<{SPACE}t{t}n{n}>" for t, n in zip(tree, node)])


def question(step_ms: int) -> str:
    """What is in one of the roots."""
    return (f"REGISTER QUERY inside AS SELECT ?x FROM STREAM <{STREAM}> [RANGE {RANGE_MS}ms STEP {step_ms}ms] USING RULES owl2rl "
            f"USING GRAPH <{TBOX}> WHERE {{ ?x {PROPERTY} <{SPACE}root7> }}")


def run(settings: Settings) -> tuple[list[Figure], dict[str, Any]]:
    """The figures of the benchmark, and details."""
    sizes, shares = (SIZES[:1], SHARES[1:3]) if settings.quick else (SIZES, SHARES)
    session = start_session(from_environment())
    table: list[dict[str, Any]] = []
    try:
        _measured(session, SIZES[0], SHARES[2])     # the JVM compiles what has run
        for size in sizes:
            for share in shares:
                table.append(_measured(session, size, share))
                print("   ", table[-1], flush=True)
    finally:
        session.stop()
    return _figures(table), {"maintenance": table}


def _measured(session: Session, size: int, share: float) -> dict[str, Any]:
    """Medians in ms of the evaluations after the first, by way."""
    edges, changed = Edges(size), max(1, int(size * share))
    chosen: dict[Any, str] = {}
    ways: dict[str, Callable[[Edges, int], Iterator[Pairs]]] = {
        name: lambda e, c, s=strategy: by_executor(SparkExecutor(session, force_strategy=s), e, c, chosen)  # type: ignore[misc]
        for name, strategy in (("incremental", "incremental"), ("recompute", "recompute"), ("planned", None))}
    ways |= {"dred": _by_dred, "pyoxigraph": by_store}
    taken: dict[str, list[float]] = {}
    answers: dict[str, list[Pairs]] = {}
    for name, way in ways.items():
        taken[name], answers[name] = [], []
        runs, began = way(edges, changed), time.perf_counter()
        for found in runs:
            taken[name].append((time.perf_counter() - began) * 1000)
            answers[name].append(found)
            began = time.perf_counter()
    assert all(found == answers["pyoxigraph"] for found in answers.values()), {name: [len(f) for f in a] for name, a in answers.items()}
    return {"size": size, "share": share, "answers": len(answers["dred"][-1]), "firstMs": round(taken["incremental"][0]),
            "choice": chosen[None], **{name: round(float(np.median(times[1:])), 1) for name, times in taken.items()}}


def by_executor(executor: Executor, edges: Edges, changed: int, chosen: dict[Any, str] | None = None) -> Iterator[Pairs]:
    """The answers of evaluations by an executor, which ends with them; `chosen` gets the strategy that it took last."""
    chosen = {} if chosen is None else chosen
    graphs = {TBOX: graph_table((TRANSITIVE,))}
    compiled = compile_statement(parse(question(_step(edges, changed))), Catalog({STREAM: "event"}, graphs), "inside")
    strategy, content = executor._choices.force_strategy, StreamContent()
    try:
        before = 0
        for tick, gone, come in _windows(edges, changed):
            content.append(edges.facts(max(before, gone), come))
            content.evict(tick - RANGE_MS)
            before = come
            answer, = executor.evaluate([Due("inside", compiled, (tick,), 0, {STREAM: content}, graphs)])
            assert answer.table is not None, answer.error
            chosen[strategy] = executor.choices["inside"][1]
            yield frozenset(answer.table["x"].to_pylist())
    finally:
        executor.close()


def by_store(edges: Edges, changed: int) -> Iterator[Pairs]:
    store, ask = pyoxigraph.Store(), f"SELECT DISTINCT ?x {{ ?x {PROPERTY}+ <{SPACE}root7> }}"
    for came, went in _changes(edges, changed):
        store.bulk_extend(_quads(came)) if not len(went) else store.extend(_quads(came))
        for quad in _quads(went):
            store.remove(quad)
        yield frozenset(f"<{row['x'].value}>" for row in store.query(ask))  # type: ignore[union-attr]


def _changes(edges: Edges, changed: int) -> Iterator[tuple[pa.Table, pa.Table]]:
    """What comes into and goes out of the window at each evaluation."""
    before: tuple[int, int] | None = None
    for _, gone, come in _windows(edges, changed):
        first, last = before or (gone, gone)
        yield edges.facts(last, come), edges.facts(first, gone)
        before = gone, come


def _step(edges: Edges, changed: int) -> int:
    return max(1, changed * RANGE_MS // edges.size)


def _windows(edges: Edges, changed: int) -> Iterator[tuple[int, int, int]]:
    """Each evaluation time T (ms), the number of the first edge that is still there, and of the first one that is still to come."""
    step = _step(edges, changed)
    steps = STEPS if edges.size == SIZES[-1] else STEPS_OF_SMALL
    for number in range(-(-RANGE_MS // step), -(-RANGE_MS // step) + steps + 1):
        tick = number * step
        yield tick, -(-(tick - RANGE_MS) * edges.size // RANGE_MS), -(-tick * edges.size // RANGE_MS)


def _quads(table: pa.Table) -> list[pyoxigraph.Quad]:
    node, property_ = pyoxigraph.NamedNode, pyoxigraph.NamedNode(PROPERTY[1:-1])
    return [pyoxigraph.Quad(node(s[1:-1]), property_, node(o[1:-1])) for s, o in zip(table["s"].to_pylist(), table["o"].to_pylist())]


def _by_dred(edges: Edges, changed: int) -> Iterator[Pairs]:
    """Delete and rederive (Gupta, Mumick, Subrahmanian 1993; in the form of Volz et al. that the paper compares with)."""
    db = duckdb.connect(":memory:", config={"threads": 1})
    db.execute("CREATE TABLE edge (x VARCHAR, y VARCHAR); CREATE TABLE pair (x VARCHAR, y VARCHAR)")
    for came, went in _changes(edges, changed):
        _delete(db, went.select(["s", "o"]).rename_columns(["x", "y"]))
        _insert(db, came.select(["s", "o"]).rename_columns(["x", "y"]))
        yield frozenset(x for x, in db.execute(f"SELECT x FROM pair WHERE y = '<{SPACE}root7>'").fetchall())
    db.close()


def _delete(db: duckdb.DuckDBPyConnection, went: pa.Table) -> None:
    db.register("went", went)
    db.execute("DELETE FROM edge USING went WHERE edge.x = went.x AND edge.y = went.y")
    db.execute("CREATE OR REPLACE TABLE over AS SELECT DISTINCT x, y FROM went")
    db.execute("CREATE OR REPLACE TABLE new AS SELECT * FROM over")
    while db.execute("SELECT 1 FROM new LIMIT 1").fetchone():      # what may have stood on what went
        db.execute("""CREATE OR REPLACE TABLE new AS SELECT DISTINCT f.x, f.y FROM (
            SELECT p.x, n.y FROM pair p JOIN new n ON p.y = n.x UNION SELECT n.x, p.y FROM new n JOIN pair p ON n.y = p.x) f
            WHERE NOT EXISTS (SELECT 1 FROM over o WHERE o.x = f.x AND o.y = f.y)""")
        db.execute("INSERT INTO over SELECT * FROM new")
    db.execute("DELETE FROM pair USING over WHERE pair.x = over.x AND pair.y = over.y")
    again = db.execute("""SELECT DISTINCT o.x, o.y FROM over o WHERE EXISTS (SELECT 1 FROM edge e WHERE e.x = o.x AND e.y = o.y)
        OR EXISTS (SELECT 1 FROM pair a JOIN pair b ON a.y = b.x WHERE a.x = o.x AND b.y = o.y)""").to_arrow_table()
    db.unregister("went")
    _derive(db, again)


def _insert(db: duckdb.DuckDBPyConnection, came: pa.Table) -> None:
    db.register("came", came)
    db.execute("INSERT INTO edge SELECT * FROM came")
    db.unregister("came")
    _derive(db, came)


def _derive(db: duckdb.DuckDBPyConnection, fresh: pa.Table) -> None:
    db.register("fresh", fresh)
    db.execute("CREATE OR REPLACE TABLE new AS SELECT DISTINCT * FROM fresh f "
               "WHERE NOT EXISTS (SELECT 1 FROM pair p WHERE p.x = f.x AND p.y = f.y)")
    db.unregister("fresh")
    while db.execute("SELECT 1 FROM new LIMIT 1").fetchone():
        db.execute("INSERT INTO pair SELECT * FROM new")
        db.execute("""CREATE OR REPLACE TABLE new AS SELECT DISTINCT f.x, f.y FROM (
            SELECT p.x, n.y FROM pair p JOIN new n ON p.y = n.x UNION SELECT n.x, p.y FROM new n JOIN pair p ON n.y = p.x) f
            WHERE NOT EXISTS (SELECT 1 FROM pair p WHERE p.x = f.x AND p.y = f.y)""")


def _figures(table: list[dict[str, Any]]) -> list[Figure]:
    figures = []
    for row in table:
        about = f"{row['size']:,} triples, {row['share']:.1%} changed"
        figures.append(plain(f"incremental, {about}", row["incremental"], "ms"))
        best, ratio = min(row["incremental"], row["recompute"]), row["recompute"] / row["incremental"]
        if row["size"] == SIZES[-1] and row["share"] <= 0.01:
            figures.append(Figure(f"recompute / incremental, {about}", round(ratio, 1), "ratio", ">= 10", ratio >= 10))
            peer = row["incremental"] / row["pyoxigraph"]
            figures.append(Figure(f"incremental / pyoxigraph, {about}", round(peer, 2), "ratio", "<= 3", peer <= 3))
        regret = row[row["choice"]] / best
        figures.append(Figure(f"planner's choice / better of both, {about}", round(regret, 2), "ratio", "<= 1.2", regret <= 1.2))
        figures.append(plain(f"planned / the same forced, {about}", round(row["planned"] / row[row["choice"]], 2), "ratio"))
    return figures
