"""Which plans shards can evaluate, by which keys, and how facts are shared out."""

from __future__ import annotations

import pyarrow as pa
import pytest

from engine.compiler import Catalog, compile_statement
from engine.plan.nodes import Gather, StaticSource, WindowSource, leaf_sources, scans_of, walk
from engine.runtime.rows import graph_table
from engine.worker.shares import Shares
from grammar.statement import parse

S, G = "http://ex.org/s", "http://ex.org/g"
TIME, TRIPLES = "[RANGE 6s STEP 2s]", "[TRIPLES 5]"


def keys(where: str, window: str = TIME, select: str = "*", rest: str = "") -> tuple[int, set[str]] | None:
    """How many parts shards evaluate, and the keys of the patterns; None where they evaluate none."""
    text = f"PREFIX : <http://ex.org/> REGISTER QUERY q AS SELECT {select} FROM STREAM :s {window} FROM NAMED :g WHERE {{ {where} }} {rest}"
    plan = compile_statement(parse(text), Catalog({S: "event"}, {G: graph_table([])}), "q").in_shards
    if plan is None:
        return None
    leaves = (leaf for scan in scans_of(plan.plan) for leaf in leaf_sources(scan.source))
    return (sum(isinstance(node, Gather) for node in walk(plan.plan)),
            {leaf.key for leaf in leaves if isinstance(leaf, (WindowSource, StaticSource))})


@pytest.mark.parametrize(("where", "expected"), [
    ("?s :p ?a ; :q ?b", (1, {"s"})),
    ("?a :next ?b . ?b :next ?c", (1, {"s", "o"})),
    ("?s :p ?a . GRAPH :g { ?s :kind ?k }", (1, {"s"})),
    ("?s :p ?a ; :q ?k . GRAPH :g { ?k :label ?l . ?l :of ?m }", (1, {"s", ""})),
    ("?s :p ?a OPTIONAL { ?s :q ?b } FILTER NOT EXISTS { ?s :next ?c }", (1, {"s"})),
    ("{ ?s :p ?a } UNION { ?t :q ?b }", (2, {"s"})),
])
def test_patterns_that_have_a_variable_in_common(where: str, expected: tuple[int, set[str]]) -> None:
    assert keys(where) == expected


@pytest.mark.parametrize(("where", "window"), [("?s :p ?a ; :q ?b", TRIPLES), (":a :p :b", TIME), ("?s :next+ ?o", TIME)])
def test_what_cannot_be_shared_out(where: str, window: str) -> None:
    assert keys(where, window) is None


def test_what_is_gathered_is_above_the_parts() -> None:
    assert keys("?s :p ?a ; :q ?b", select="?b (AVG(?a) AS ?n)", rest="GROUP BY ?b") == (1, {"s"})
    assert keys("?s :p ?m { SELECT (MAX(?a) AS ?m) WHERE { ?s :p ?a ; :q ?b } }", select="?s ?m") == (2, {"s"})


def test_each_row_is_in_one_shard_and_equal_terms_in_the_same() -> None:
    table = pa.table({"s": [f"<{n % 7}>" for n in range(50)], "o": [f"<{n % 5}>" for n in range(50)]})
    shares = Shares(3)
    subjects, objects = (shares.of(table, key) for key in ("s", "o"))
    assert sorted(pa.concat_tables(subjects).to_pylist(), key=str) == sorted(table.to_pylist(), key=str)
    homes = [{token: shard for shard, rows in enumerate(parts) for token in rows[key].to_pylist()}
             for key, parts in (("s", subjects), ("o", objects))]
    assert all(homes[1][token] == shard for token, shard in homes[0].items() if token in homes[1])
    assert sum(len(set(rows["s"].to_pylist())) for rows in subjects) == 7, "no subject is in two"
    assert [rows.num_rows for rows in shares.of(table.slice(0, 0), "s")] == [0, 0, 0]
    shares.close()
