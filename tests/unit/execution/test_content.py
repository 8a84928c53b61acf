"""The facts of a stream: large chunks lie in files, which may fail."""

from __future__ import annotations

import gc
import os
import tempfile
from typing import Any

import pyarrow as pa
import pytest

from engine.execution.content import StreamContent
from engine.facts import FACTS

ROWS = 20_000


def facts(first: int, rows: int = ROWS) -> pa.Table:
    """One fact a position, which is its time too."""
    numbers = range(first, first + rows)
    cells: dict[str, Any] = {name: [None] * rows for name in FACTS.names}
    cells |= {"position": numbers, "t": numbers, "g": [""] * rows, "s": [f"<s{n}>" for n in numbers], "p": ["<p>"] * rows,
              "o": [f'"{n}"' for n in numbers], "kind": [0] * rows}
    return pa.table(cells, schema=FACTS)


def test_large_chunks_take_no_memory() -> None:
    content, before, descriptors = StreamContent(), pa.total_allocated_bytes(), len(os.listdir("/proc/self/fd"))
    for number in range(10):
        content.append(facts(number * ROWS))
    gc.collect()
    assert pa.total_allocated_bytes() - before < content.rows
    assert len(os.listdir("/proc/self/fd")) <= descriptors
    assert content.added_after(0).equals(pa.concat_tables([facts(number * ROWS) for number in range(10)]))


def test_what_is_read_stays_when_chunks_go() -> None:
    content = StreamContent()
    content.append(facts(0))
    shown = content.between(0, ROWS, -1)
    content.evict(0)
    assert shown.equals(facts(0))
    content.evict(ROWS * 3 // 4)        # a chunk of which half is dead is made anew
    assert content.rows == ROWS // 4 and content.oldest == ROWS * 3 // 4
    content.evict(ROWS)
    assert content.rows == 0 and shown.equals(facts(0))


def test_the_chunks_that_a_window_overlaps_are_a_content_of_their_own() -> None:
    content = StreamContent()
    for number in range(3):
        content.append(facts(number * 10, 10))
    for low, high, first, rows in ((10, 20, 10, 10), (9, 11, 0, 20), (0, 30, 0, 30), (30, 40, 0, 0)):
        found = content.overlapping(low, high)
        assert found.rows == rows and found.token != content.token
        assert found.added_after(0).equals(facts(first, rows)) and found.between(low, high, -1).equals(content.between(low, high, -1))


def test_facts_are_counted_by_time_and_by_property() -> None:
    content = StreamContent()
    for first in (0, 100, 200):
        content.append(facts(first, 100))
    assert [content.count_between(*times) for times in ((0, 300), (50, 250), (100, 200), (110, 120), (300, 400))] == [300, 200, 100, 10, 0]
    assert content.count(frozenset(("<p>", "<q>"))) == 300 and content.count(frozenset(("<q>",))) == 0


def test_a_full_disk_keeps_them_in_memory(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def full(**_options: object) -> None:
        raise OSError(28, "No space left on device")

    content = StreamContent()
    monkeypatch.setattr(tempfile, "NamedTemporaryFile", full)
    content.append(facts(0))
    assert content.added_after(0).equals(facts(0))
    assert "20000 facts stay in memory" in caplog.text
