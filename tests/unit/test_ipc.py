"""Tables in files: whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from engine.ipc import read_file, write_file

ROWS = pa.table({"s": [f"<urn:{n}>" for n in range(1_000)], "n": [None, *range(999)]})


def batches(fails: bool) -> Iterator[pa.RecordBatch]:
    yield from ROWS.to_batches(max_chunksize=300)
    if fails:
        raise MemoryError("no more")


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = str(tmp_path / "1-1.arrow")
    for _ in range(2):
        write_file(pa.RecordBatchReader.from_batches(ROWS.schema, batches(False)), path)
        assert read_file(path).equals(ROWS)
    write_file(pa.RecordBatchReader.from_batches(ROWS.schema, []), path)
    assert read_file(path).equals(ROWS.slice(0, 0))


def test_of_what_fails_nothing_is_left(tmp_path: Path) -> None:
    path = tmp_path / "1-1.arrow"
    for before in ([], ROWS.to_batches()):
        if before:
            write_file(pa.RecordBatchReader.from_batches(ROWS.schema, before), str(path))
        with pytest.raises(MemoryError):
            write_file(pa.RecordBatchReader.from_batches(ROWS.schema, batches(True)), str(path))
        assert list(tmp_path.iterdir()) == ([path] if before else [])
    assert read_file(str(path)).equals(ROWS)


def test_a_file_that_is_cut_off_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "1-1.arrow"
    write_file(pa.RecordBatchReader.from_batches(ROWS.schema, batches(False)), str(path))
    whole = path.read_bytes()
    for size in range(0, len(whole), 97):
        path.write_bytes(whole[:size])
        with pytest.raises((OSError, pa.ArrowException)):
            read_file(str(path))
