"""Payloads and bag differences: Arrow against plain Python."""

from __future__ import annotations

import json
from collections import Counter

import pyarrow as pa
import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import output
from engine.functions.terms import split
from engine.ipc import size_of, unpack_text
from engine.output import boolean_json, difference, first_rows, packed_json, payload, payloads, payloads_together, select_json

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
tokens = st.one_of(
    st.builds(lambda x: str(pyoxigraph.Literal(x)), text), st.builds(lambda x: str(pyoxigraph.Literal(x, language="en-gb")), text),
    st.builds(lambda x, d: str(pyoxigraph.Literal(x, datatype=pyoxigraph.NamedNode(d))), text,
              st.sampled_from(["http://www.w3.org/2001/XMLSchema#integer", "http://ex.org/d"])),
    st.sampled_from(["<http://ex.org/é>", "<urn:x>", "_:b1", "_:i12.x"]), st.none())
rows = st.lists(st.tuples(tokens, tokens), max_size=12)


def term_json(token: str) -> dict[str, str]:
    parsed = split(token)
    if parsed.kind == "literal":
        found = {"type": "literal", "value": parsed.lexical}
        if parsed.lang:
            return {**found, "xml:lang": parsed.lang}
        plain = parsed.datatype == "http://www.w3.org/2001/XMLSchema#string"
        return found if plain else {**found, "datatype": parsed.datatype}
    return {"type": "uri" if parsed.kind == "iri" else "bnode", "value": parsed.lexical}


def table(content: list[tuple[str | None, str | None]]) -> pa.Table:
    return pa.table({"a": pa.array([a for a, _ in content], pa.string()), "é \"": pa.array([b for _, b in content], pa.string())})


@given(rows, st.integers(1, 3))
def test_select_json(content: list[tuple[str | None, str | None]], chunks: int) -> None:
    whole = pa.concat_tables([table(content)] * chunks)
    document = json.loads(select_json(whole))
    assert document["head"] == {"vars": ["a", 'é "']}
    expected = [{name: term_json(token) for name, token in zip(("a", 'é "'), row, strict=True) if token} for row in content] * chunks
    assert document["results"]["bindings"] == expected
    assert b"\n" not in select_json(whole)


@given(rows, st.integers(1, 4), st.integers(1, 3))
def test_what_is_written_by_several_threads_is_the_same(content: list[tuple[str | None, str | None]], piece: int, chunks: int) -> None:
    whole = pa.concat_tables([table([*content, (None, "<urn:x>")])] * chunks)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(output, "_PIECE", piece)
        packed = packed_json(whole, 2)
    assert unpack_text(packed) == select_json(whole) and size_of(packed) == len(select_json(whole))


@given(rows)
def test_few_rows_are_written_as_many_are(content: list[tuple[str | None, str | None]]) -> None:
    few = select_json(table(content))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(output, "_FEW", 0)
        assert few == select_json(table(content))


@given(rows)
def test_payloads_are_what_pyoxigraph_writes(content: list[tuple[str | None, str | None]]) -> None:
    """Byte for byte, up to the ways in which JSON writes a character."""
    ours = select_json(table(content).rename_columns(["a", "b"]))
    theirs = pyoxigraph.parse_query_results(ours, pyoxigraph.QueryResultsFormat.JSON).serialize(format=pyoxigraph.QueryResultsFormat.JSON)
    assert json.dumps(json.loads(ours)) == json.dumps(json.loads(theirs))
    triples = [("<http://ex.org/s>", "<urn:p>", token) for _, token in content if token]
    written = payload("CONSTRUCT", pa.table({name: [t[n] for t in triples] for n, name in enumerate("spo")}, schema=pa.schema(
        [(name, pa.string()) for name in "spo"])))
    quads = pyoxigraph.parse(written, pyoxigraph.RdfFormat.N_TRIPLES, lenient=True)
    assert written == pyoxigraph.serialize((q.triple for q in quads), format=pyoxigraph.RdfFormat.N_TRIPLES)


def test_many_rows_of_fresh_values_are_written_without_a_dictionary() -> None:
    values = [f'"{i}"^^<http://www.w3.org/2001/XMLSchema#integer>' for i in range(6_000)]
    bindings = json.loads(select_json(pa.table({"n": values})))["results"]["bindings"]
    assert [int(row["n"]["value"]) for row in bindings] == list(range(6_000))


def test_many_rows_of_fresh_values_of_several_kinds_are_written() -> None:
    rows: list[tuple[str | None, str | None]] = [(f"<http://ex.org/{n}>", [f'"{n}"', f"<http://ex.org/o{n}>", f"_:b{n}", None][n % 4])
                                                 for n in range(6_000)]
    whole = table(rows)
    for content in (whole, pa.concat_tables([whole.slice(0, 2_500), whole.slice(2_500)])):
        written = json.loads(payload("SELECT", content))["results"]["bindings"]
        parts = [json.loads(payload("SELECT", whole.slice(start, 500)))["results"]["bindings"] for start in range(0, 6_000, 500)]
        assert written == [row for part in parts for row in part]


@pytest.mark.parametrize(("form", "content", "expected"), [
    ("ASK", pa.table({"_": pa.nulls(1, pa.string())}), b'{"head":{},"boolean":true}'),
    ("ASK", pa.table({"_": pa.nulls(0, pa.string())}), b'{"head":{},"boolean":false}'),
    ("CONSTRUCT", pa.table({"s": ["<a>"], "p": ["<b>"], "o": ['"c\\n"']}), b'<a> <b> "c\\n" .\n'),
    ("CONSTRUCT", pa.table({"s": pa.array([], pa.string()), "p": pa.array([], pa.string()), "o": pa.array([], pa.string())}), b""),
    ("SELECT", pa.table({}), b'{"head":{"vars":[]},"results":{"bindings":[]}}')])
def test_payloads_by_form(form: str, content: pa.Table, expected: bytes) -> None:
    assert payload(form, content) == expected
    assert boolean_json(False) != payload("CONSTRUCT", pa.table({"s": ["<a>"], "p": ["<b>"], "o": ["<c>"]}))


@given(st.lists(rows, max_size=4), st.sampled_from(("SELECT", "ASK")))
def test_payloads_are_those_of_each(contents: list[list[tuple[str | None, str | None]]], form: str) -> None:
    tables = [table(content) for content in contents]
    assert payloads(form, tables) == [payload(form, each) for each in tables]


def test_payloads_of_graphs_and_of_nothing() -> None:
    triples = pa.table({"s": ["<a>", "<b>", "<c>"], "p": ["<p>"] * 3, "o": ['"1"', "_:x", "<o>"]})
    parts = [triples.slice(0, 2), triples.slice(2, 0), triples.slice(2)]
    assert payloads("CONSTRUCT", parts) == [b'<a> <p> "1" .\n<b> <p> _:x .\n', b"", b"<c> <p> <o> .\n"]
    assert payloads("CONSTRUCT", []) == payloads("SELECT", []) == payloads("ASK", []) == []


@given(rows, rows)
def test_difference_is_that_of_bags(new: list[tuple[str | None, str | None]], old: list[tuple[str | None, str | None]]) -> None:
    old = old + new[:2]
    found = difference(table(new), table(old))
    assert Counter(zip(*(found[i].to_pylist() for i in range(2)), strict=True)) == Counter(new) - Counter(old)
    assert found.column_names == table(new).column_names


def test_solutions_without_variables_are_counted() -> None:
    def rows(count: int) -> pa.Table:
        return pa.table({"_": pa.nulls(count)}).select([])

    assert [difference(rows(new), rows(old)).num_rows for new, old in ((3, 1), (1, 3), (2, 0), (0, 2), (2, 2))] == [2, 0, 2, 0, 0]
    assert payload("SELECT", rows(2)) == b'{"head":{"vars":[]},"results":{"bindings":[{},{}]}}'


def test_a_limit_makes_no_rows() -> None:
    """One solution without variables is one."""
    assert first_rows(pa.table({"a": ["x"]}).select([]), 5).num_rows == 1
    assert first_rows(pa.table({"a": ["x", "y"]}), 1).num_rows == 1


def test_payloads_of_many_queries_are_written_together() -> None:
    def of(**columns: list[str | None]) -> pa.Table:
        return pa.table({name: pa.array(column, pa.string()) for name, column in columns.items()})

    relations = {"a": ("SELECT", of(x=['"1"', None])), "b": ("SELECT", of(x=["<i>"])), "c": ("SELECT", of(x=[])),
                 "d": ("SELECT", of(x=['"1"'], y=["_:b"])), "e": ("CONSTRUCT", of(s=["<a>"], p=["<p>"], o=["<o>"])),
                 "f": ("CONSTRUCT", of(s=[], p=[], o=[])), "g": ("ASK", of(_=[None]))}
    found = payloads_together(relations)
    assert found == {name: payload(*relations[name]) for name in "abcef"}    # the others have nobody beside them
    assert payloads_together({}) == {} == payloads_together({"a": relations["a"], "x": ("SELECT", pa.table({"x": [1]}))})
