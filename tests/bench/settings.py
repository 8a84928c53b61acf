"""What a run of the benchmarks is asked to do, and where it happens."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.live import ServerProcess


@dataclass(frozen=True, slots=True)
class Settings:
    """`quick` shortens everything to a check that it works. `rate` is in triples per second; `find` looks for the
    greatest one. `shapes` are those to measure (none: all), `static` is the size of the static graph."""

    quick: bool = False
    rate: int = 30_000
    seconds: int | None = None
    find: bool = False
    server: tuple[str, ...] = ()
    keep: Path | None = None
    shapes: tuple[str, ...] = ()
    static: int | None = None

    def duration(self, usual: int, quick: int) -> int:
        """Seconds to measure for."""
        return self.seconds or (quick if self.quick else usual)


@contextmanager
def running_server(settings: Settings, environment: Mapping[str, str] | None = None) -> Iterator[ServerProcess]:
    """A ready server on an empty data folder (below `keep`, if that is given), stopped at the end."""
    if settings.keep is not None:
        settings.keep.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="thalweg-bench-", dir=settings.keep))
    try:
        with ServerProcess(folder / "data", settings.server, environment) as server:
            yield server
    finally:
        if settings.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
