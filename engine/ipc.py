"""Arrow tables as bytes: the stream format of Arrow IPC, compressed, for what is kept or handed to another process."""

from __future__ import annotations

from typing import cast

import pyarrow as pa

_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")  # tokens repeat


def pack(table: pa.Table) -> bytes:
    """A table as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_OPTIONS) as writer:
        writer.write_table(table)
    return cast(bytes, sink.getvalue().to_pybytes())


def unpack(data: bytes) -> pa.Table:
    """The table that `pack` was given."""
    return pa.ipc.open_stream(data).read_all()
