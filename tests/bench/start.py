"""From the start of the process to ``/health/ready``, with warm caches: the first start, which may fill them, is not counted."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench.figures import Figure, at_most, plain
from tests.bench.settings import Settings
from tests.live import ServerProcess


def run(settings: Settings) -> tuple[list[Figure], dict[str, Any]]:
    """The figures of the benchmark, and details."""
    runs = 1 if settings.quick else 3
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder:
        first, *rest = [_start(settings, Path(folder) / f"data-{number}") for number in range(runs + 1)]
    return [at_most("start to ready, slowest", max(rest), "s", 30), plain("start to ready, quickest", min(rest), "s"),
            plain("start to ready, first", first, "s")], {"seconds": [first, *rest]}


def _start(settings: Settings, data: Path) -> float:
    server = ServerProcess(data, settings.server)
    began = time.monotonic()
    server.start()
    server.wait_ready()
    seconds = time.monotonic() - began
    server.stop()
    return seconds
