"""Arrow tables and texts as bytes, compressed, for what is kept or handed to another process: tables in Arrow IPC."""

import os
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import cast

import pyarrow as pa

from engine.files import whole_file

# Tokens repeat. Columns are not shared out among threads: with them a small table takes seven times as long, and a large one no less.
_WRITE = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_READ = pa.ipc.IpcReadOptions(use_threads=False)
_CODEC = pa.Codec("zstd", compression_level=1)
_SIZE = struct.Struct("<cQ")    # no text begins with this byte; then the size of the text
_MARK = b"\0"
_SMALL = 4_096      # bytes: less is not worth it
PACKED, SIZE = "packed", "size"
_TABLE = b"\xff" * 4     # a table as bytes begins with these


def pack(table: pa.Table) -> bytes:
    """A table as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_WRITE) as writer:
        writer.write_table(table)
    return cast(bytes, sink.getvalue().to_pybytes())


def unpack(data: bytes | pa.Buffer) -> pa.Table:
    """The table that `pack` was given."""
    return pa.ipc.open_stream(data, options=_READ).read_all()


def pack_each(read: Callable[[Iterator[pa.RecordBatch]], Iterable[pa.Table]],
              batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What `read` makes of some batches, each table as one value beside its size: for Spark, which would take it apart row by row."""
    for table in read(batches):
        yield pa.RecordBatch.from_arrays([pa.array([pack(table)], pa.binary()), pa.array([table.nbytes], pa.int64())], [PACKED, SIZE])


def packed_schema() -> str:
    """The columns that `pack_each` gives, as Spark writes them."""
    return f"{PACKED} binary, {SIZE} long"


def unpack_each(table: pa.Table) -> list[pa.Table]:
    """The tables that `pack_each` was given."""
    return [unpack(data.as_buffer()) for data in table[PACKED]]


def write_file(rows: pa.RecordBatchReader, path: str) -> None:
    """Write all rows to a file, in the file format of Arrow IPC. It is there whole or not at all; a crash of the machine may lose it."""
    staged = Path(f"{path}.{os.getpid()}")   # a worker that was given up may still write beside the one that follows it
    with rows, whole_file(Path(path), staged, synced=False) as sink, pa.ipc.new_file(sink, rows.schema, options=_WRITE) as writer:
        for batch in rows:
            writer.write_batch(batch)


def read_file(path: str) -> pa.Table:
    """The table of such a file. Raises OSError, or pa.ArrowException where a part of it is missing."""
    with pa.OSFile(path) as source:
        return pa.ipc.open_file(source, options=_READ).read_all()


def is_packed_table(data: bytes) -> bool:
    """Whether `pack` gave these bytes: no text of UTF-8 begins so, nor one that is packed."""
    return data.startswith(_TABLE)


def pack_text(text: bytes) -> bytes:
    """A text that begins with no NUL, compressed unless it is small or already compressed: answers as SPARQL JSON take a tenth of their
    size and less."""
    return text if len(text) < _SMALL or text.startswith(_MARK) else joined([compressed(text)])


def compressed(part: bytes) -> tuple[int, bytes]:
    """A part of a text for `joined`: its size, and its bytes."""
    return len(part), cast(bytes, _CODEC.compress(part, asbytes=True))


def joined(parts: Iterable[tuple[int, bytes]]) -> bytes:
    """A packed text from its parts, which may have been compressed side by side."""
    sizes, texts = zip(*parts)
    return b"".join((_SIZE.pack(_MARK, sum(sizes)), *texts))


def part_of(packed: bytes) -> tuple[int, bytes]:
    """The text that `joined` gave as a part of another."""
    return size_of(packed), packed[_SIZE.size:]


def size_of(data: bytes) -> int:
    """How many bytes a text has that may be packed, or a packed table."""
    return int(_SIZE.unpack_from(data)[1]) if data.startswith(_MARK) else len(data)


def unpack_text(data: bytes) -> bytes:
    """The text that `pack_text` was given."""
    if not data.startswith(_MARK):
        return data
    return cast(bytes, _CODEC.decompress(memoryview(data)[_SIZE.size:], _SIZE.unpack_from(data)[1], asbytes=True))
