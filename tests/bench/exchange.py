"""What 4 to 64 executors would carry of one query, W1's AVG by sensor over RANGE 10 s STEP 1 s: simulated with measured constants.

Measured in this process: what the driver does for a row (share it out by its hash, pack it), and evaluations in 1, 2, 4 and 8 shards,
fitted as ``once + shard * shards + row * rows``. Simulated is each evaluation: what has come until then is shared out and sent over the
driver's network, every shard takes in its share, and the last one is waited for. Executors differ from evaluation to evaluation as those
that were measured did. How the driver reads, parses and logs the stream is not a part of it: Kafka's records are parsed by executors.
"""

from __future__ import annotations

import itertools
import random
import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.execution.executor import Executor
from engine.ipc import pack
from engine.worker.shares import Shares
from tests.bench.change import RARE, Measured, Observed, constructs, evaluations
from tests.bench.figures import Figure, percentile, plain
from tests.bench.settings import Settings

EXECUTORS, MEASURED = (4, 8, 16, 32, 64), (1, 2, 4, 8)
RATE = 1_000_000        # triples/s
NETWORK = 1.25e9        # bytes/s that the driver can send: ten gigabits
_CONSTRUCT = "AVG by sensor, HAVING"
_SHARES, _STEPS, _TIMES = (0.02, 0.1, 0.2), 5, 3
_SECONDS = 120          # of stream that are simulated
_MOST = 64_000_000      # triples/s
_LATE_MS = 1_000        # what an answer may be late for a rate to count as carried, at the 99th percentile


@dataclass(frozen=True, slots=True)
class Constants:
    """Milliseconds: of the driver for a row by the number of shards, of an evaluation once, in each shard, and for each row that is new;
    how much shards differ from evaluation to evaluation (standard deviation of the logarithm); bytes of a packed row."""

    driver_row: Mapping[int, float]
    once: float
    shard: float
    row: float
    differ: float
    row_bytes: float


def run(settings: Settings) -> tuple[list[Figure], dict[str, Any]]:
    """The constants, and the lags and greatest rates by the number of executors."""
    constants = measured(100_000 if settings.quick else 1_000_000)
    figures = [*(plain(f"the driver: share out among {shards}, and pack", ms * 1e6, "ns/row")
                 for shards, ms in constants.driver_row.items()),
               plain("an evaluation: once", constants.once, "ms"), plain("an evaluation: in each shard", constants.shard, "ms"),
               plain("an evaluation: a new row", constants.row * 1e6, "ns/row"), plain("a packed row", constants.row_bytes, "bytes")]
    for executors in EXECUTORS:
        late = simulated(constants, executors, RATE)
        figures += [plain(f"{executors} executors, {RATE:,} triples/s: behind T, p50", percentile(late, 50), "ms"),
                    plain(f"{executors} executors, {RATE:,} triples/s: behind T, p99", percentile(late, 99), "ms"),
                    plain(f"{executors} executors: greatest rate", greatest(constants, executors) / 1e6, "M triples/s")]
    return figures, asdict(constants)


# --- measured


def measured(size: int) -> Constants:
    """The constants of windows of so many triples."""
    data = Observed("star", size)
    of_driver = {shards: _of_driver(data, shards) for shards in sorted({*MEASURED, *EXECUTORS})}
    driver_row = {shards: ms for shards, (ms, _) in of_driver.items()}
    found, counts = [], []
    for shards, share in itertools.product(MEASURED, _SHARES):
        steps = _evaluations(data, share, shards)
        counts.append((1, shards, size * share))
        found.append((statistics.median(steps), steps))
    typical = np.array([median - driver_row[shards] * rows for (median, _), (_, shards, rows) in zip(found, counts)])
    once, shard, row = np.linalg.lstsq(np.array(counts, float), typical, rcond=None)[0]
    logs = [np.log(one / median) for median, steps in found for one in steps]
    return Constants(driver_row, max(0.0, once), max(0.0, shard), row, float(np.std(logs)), of_driver[1][1])


def _of_driver(data: Observed, count: int) -> tuple[float, float]:
    """Milliseconds of the driver for a row that is shared out among so many, and bytes of a packed one."""
    rows, shares, took, size = data.facts("one", 0, data.range_ms // 10), Shares(count), [], 0
    for _ in range(_TIMES):
        began = time.perf_counter()
        size = sum(len(pack(share)) for share in (shares.of(rows, "s") if count > 1 else [rows]))
        took.append((time.perf_counter() - began) * 1000)
    shares.close()
    return min(took) / rows.num_rows, size / rows.num_rows


def _evaluations(data: Observed, share: float, shards: int) -> list[float]:
    """Milliseconds of evaluations after the first, the shards' one after another on one thread."""
    with tempfile.TemporaryDirectory() as folder:
        tasks = Measured(Path(folder), 1, shards)
        executor = Executor(tasks)
        took = [tasks.took()[0] for _ in evaluations(constructs(RARE)[_CONSTRUCT], data, share, _STEPS)(executor)]
        executor.close()
        tasks.close()
    return took[1:]


# --- simulated


def simulated(constants: Constants, executors: int, rate: float, seed: int = 1) -> list[float]:
    """How many ms after its T each answer is there, of a stream of so many triples/s with an evaluation each second."""
    draw, free, late, seen = random.Random(seed), 0.0, list[float](), 0.0
    for tick in range(1, _SECONDS + 1):
        begun = max(free, tick * 1000.0)
        until = min(begun // 1000, _SECONDS)    # what has come meanwhile is taken in too
        rows, seen = (until - seen) * rate if until > seen else 0.0, max(seen, until)
        each = rows / executors
        sent = rows * constants.driver_row[executors] + rows * constants.row_bytes / NETWORK * 1000
        slowest = max((constants.shard + constants.row * draw.gauss(each, each ** 0.5)) * draw.lognormvariate(0, constants.differ)
                      for _ in range(executors))
        free = begun + sent + slowest + constants.once
        late.append(free - tick * 1000)
    return late


def greatest(constants: Constants, executors: int) -> float:
    """The greatest rate (triples/s) at which answers are not late, to one part in a hundred."""
    low, high = 0.0, float(_MOST)
    while high - low > 0.01 * high:
        middle = (low + high) / 2
        if percentile(simulated(constants, executors, middle), 99) <= _LATE_MS:
            low = middle
        else:
            high = middle
    return low
