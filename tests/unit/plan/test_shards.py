"""Which plans shards can evaluate, by which keys, and how facts are shared out."""

from __future__ import annotations

import pyarrow as pa
import pytest

from engine.compiler import Catalog, compile_statement
from engine.plan.nodes import Exchange, Gather, StaticSource, WindowSource, leaf_sources, scans_of, walk
from engine.runtime.rows import graph_table
from engine.sql.sources import AT_HOME
from engine.worker.bundles import know_share
from engine.worker.database import connect
from engine.worker.shares import Shares
from grammar.rif.parse import parse_rules
from grammar.statement import parse

S, G = "http://ex.org/s", "http://ex.org/g"
TIME, TRIPLES = "[RANGE 6s STEP 2s]", "[TRIPLES 5]"
P = "<http://ex.org/p>"


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


@pytest.mark.parametrize(("where", "parts"), [("?s :p ?a ; :q ?b", 1), ("?a :p ?b . ?b :p ?c", 2), ("?s :p ?a OPTIONAL { ?t :q ?s }", 2),
                                              ("?s :p+ ?a", None), ("?s a :C FILTER NOT EXISTS { ?s :p ?a }", 1)])
def test_over_closures_patterns_are_shared_out_by_their_subjects(where: str, parts: int | None) -> None:
    """What has none in common is gathered, each pattern by itself."""
    rule = f"Forall ?x ?y ?z ( ?x[{P} -> ?z] :- And( ?x[{P} -> ?y] ?y[{P} -> ?z] ) )"
    rules = parse_rules(f"Document( Group( {rule} ) )", "text/x-rif-ps", "own")
    text = f"PREFIX : <http://ex.org/> REGISTER QUERY q AS SELECT * FROM STREAM :s {TIME} USING RULES own WHERE {{ {where} }}"
    made = compile_statement(parse(text), Catalog({S: "event"}, {}, {"own": rules}), "q")
    shared = made.in_shards
    found = None if shared is None else sum(isinstance(node, Gather) for node in walk(shared.plan))
    assert made.closures and found == parts
    assert shared is None or {closed.exchange for closed in shared.closures} == {Exchange(frozenset({P}), ((frozenset({P}), None),))}


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
    with connect(threads=1) as worker:
        for shard, rows in enumerate(subjects):
            know_share(worker, shard, 3)
            asked = worker.execute(f"SELECT token FROM (SELECT unnest(?) AS token) WHERE {AT_HOME}(token)", [sorted(homes[0])]).fetchall()
            assert {token for token, in asked} == set(rows["s"].to_pylist()), "a worker tells what the driver gives it"
    shares.close()


def test_what_is_brought_has_some_properties_and_is_not_there_by_subject() -> None:
    table = pa.table({column: [f"<{column}{n % many}>" for n in range(200)] for column, many in (("s", 37), ("p", 3), ("o", 23))})
    shares = Shares(3)
    subjects, objects = (shares.of(table, key) for key in ("s", "o"))
    by_object = shares.of(table, "o", frozenset(("<p0>", "<p2>")))
    for at_home, by_hash, found in zip(subjects, objects, by_object, strict=True):
        here = at_home.to_pylist()
        wanted = [row for row in by_hash.to_pylist() if row["p"] != "<p1>" and row not in here]
        assert wanted and found.to_pylist() == wanted
    assert [rows.num_rows for rows in shares.of(table, "o", frozenset(("<none>",)))] == [0, 0, 0]
    shares.close()
