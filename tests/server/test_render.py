"""Large results are cut into chunks at the ends of rows, whatever stands in their strings."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.output import select_json
from engine.runtime.resources import ResultEvent
from server.feeds.options import Variant
from server.feeds.frames import cut_rows, full_frames, result_frames

PARTS = st.lists(st.sampled_from(['"', "}", "{", ",", ":", "[", "\\", "x", '"}},{"', "}},{", "é"]), max_size=8).map("".join)
ROWS = st.lists(st.dictionaries(st.sampled_from(["a", "b"]), PARTS, min_size=0), min_size=1, max_size=30)


@given(ROWS, st.integers(1, 300))
@example([{"a": "}},{"}, {"a": "}},{"}, {"b": "\\"}], 1)
def test_pieces_are_whole_rows(rows: list[dict[str, str]], cap: int) -> None:
    text = json.dumps([{name: {"type": "literal", "value": value} for name, value in row.items()} for row in rows],
                      separators=(",", ":"), ensure_ascii=False).encode()[1:-1]
    pieces = list(cut_rows(text, cap))
    assert b",".join(pieces) == text
    assert [row for piece in pieces for row in json.loads(b"[" + piece + b"]")] == json.loads(b"[" + text + b"]")


@given(st.integers(100, 2_000))
def test_pieces_keep_the_cap(cap: int) -> None:
    row = b'{"a":{"type":"literal","value":"some text"}}'
    pieces = list(cut_rows(b",".join([row] * 200), cap))
    assert all(cap - len(row) <= len(piece) + 1 <= cap + 1 for piece in pieces[:-1]) and len(pieces[-1]) <= cap


def test_the_chunks_of_an_event_add_up() -> None:
    table = pa.table({"o": [f"<http://x/{i}>" for i in range(1_000)], "v": [f'"{i}"' if i % 3 else None for i in range(1_000)]})
    payload = select_json(table)
    event = ResultEvent("q", "q1c1", 1, 1_000, 1_000, "result", "rstream", payload)
    chunks = [json.loads(frame.data) for frame in full_frames(event, payload, Variant("full"), 4_096)]
    assert len(chunks) > 10 and [chunk["last"] for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert sum((chunk["results"]["bindings"] for chunk in chunks), []) == json.loads(payload)["results"]["bindings"]
    assert all(chunk["head"] == {"vars": ["o", "v"]} for chunk in chunks)


@pytest.mark.parametrize(("output", "shown", "other"), [("istream", "addedResults", "removedResults"),
                                                        ("dstream", "removedResults", "addedResults")])
@pytest.mark.parametrize("rows", [0, 1, 1_000])
def test_what_a_stream_operator_gave_is_a_difference(output: str, shown: str, other: str, rows: int) -> None:
    texts = [f'"\\"é}}}},{{\\\\ {i}"@de' if i % 3 else None for i in range(rows)]
    table = pa.table({"o": [f"<http://x/{i}>" for i in range(rows)], "v": texts},
                     schema=pa.schema([("o", pa.string()), ("v", pa.string())]))
    payload = select_json(table)
    event = ResultEvent("q", "q1c1", 1, 1_000, 1_000, "result", output, payload)
    frames = result_frames(event, None, Variant("delta"), 4_096)
    chunks = [json.loads(frame.data) for frame in frames]
    assert sum((chunk[shown]["results"]["bindings"] for chunk in chunks), []) == json.loads(payload)["results"]["bindings"]
    assert all(chunk[name]["head"] == {"vars": ["o", "v"]} for chunk in chunks for name in (shown, other))
    assert not any(chunk[other]["results"]["bindings"] for chunk in chunks) and all(chunk["rsp"]["seq"] == 1 for chunk in chunks)
    assert [frame.id for frame in frames] == [None] * (len(frames) - 1) + ["q1c1-1"]
    if rows == 1_000:
        assert [(chunk["chunk"], chunk["last"]) for chunk in chunks] == [(n, n == len(chunks) - 1) for n in range(len(chunks))]
    else:
        assert len(chunks) == 1 and "chunk" not in chunks[0]
