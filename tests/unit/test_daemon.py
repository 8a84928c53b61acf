"""The process that Spark forks its Python workers from."""

from __future__ import annotations

import importlib
import io
import socket
import sys
import threading
import time
import zipfile
import zipimport
from pathlib import Path
from typing import BinaryIO

import pytest

from engine.spark.daemon import acknowledging, keep_archives


def test_archives_are_not_read_again_for_each_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "some.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("module_of_the_archive.py", "value = 1")
    monkeypatch.setattr(zipimport.zipimporter, "invalidate_caches", zipimport.zipimporter.invalidate_caches)
    monkeypatch.syspath_prepend(archive)
    keep_archives()
    assert importlib.import_module("module_of_the_archive").value == 1
    known = sys.path_importer_cache[str(archive)]
    archive.unlink()
    importlib.invalidate_caches()
    assert sys.path_importer_cache[str(archive)] is known
    assert not known.is_package("module_of_the_archive"), "a module that it does not know raises an error"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux puts acknowledgements off so")
def test_a_connection_does_not_wait_for_an_acknowledgement() -> None:
    """Spark writes a task in small pieces and reads what a worker answers: with Nagle's algorithm each piece behind the first waits."""
    def answer(infile: BinaryIO, outfile: BinaryIO) -> None:
        for _ in range(30):
            assert infile.read(12) == b"abcdefghijkl"
            outfile.write(b"done")
            outfile.flush()

    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as spark:
        worker, _ = server.accept()
        with worker, worker.makefile("rb", 0) as raw, worker.makefile("wb") as outfile:
            infile = io.BufferedReader(raw)     # type: ignore[type-var]
            task = threading.Thread(target=acknowledging(answer), args=(infile, outfile))
            task.start()
            began = time.monotonic()
            for _ in range(30):
                for piece in (b"abcd", b"efgh", b"ijkl"):
                    spark.sendall(piece)
                assert spark.recv(4) == b"done"
            took = time.monotonic() - began
            task.join(30)
        assert took < 30 * 0.02, "each of thirty would wait for 40 ms"
