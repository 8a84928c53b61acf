"""``python -m tests.bench [NAMES] [--json FILE] [--quick]``: run benchmarks one after the other, print a table, write JSON.

Exit status 1 if a target was missed, 2 if a benchmark could not be run.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tests.bench import (bsbm, bulk, change, closure, commands, compiling, equality, exchange, executors, join, large, lars, latency,
                         maintenance, many, plan, report, shapes, start, step, timed, topics)
from tests.bench.figures import Figure
from tests.bench.settings import Settings

Bench = Callable[[Settings], tuple[list[Figure], dict[str, Any]]]
BENCHES: dict[str, Bench] = {
    "start": start.run, "latency": latency.run, "step": step.run, "join": join.run, "many": many.run, "plan": plan.run, "bsbm": bsbm.run,
    "bulk": bulk.run, "closure": closure.run, "maintenance": maintenance.run, "change": change.run, "commands": commands.run,
    "compiling": compiling.run, "equality": equality.run, "lars": lars.run, "timed": timed.run, "shapes": shapes.run, "cliff": shapes.cliff,
    "kafka": topics.run, "large": large.run, "executors": executors.run, "exchange": exchange.run}


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parse(arguments)
    settings = Settings(given.quick, given.rate, given.seconds, given.find, tuple(given.server), given.keep,
                        tuple(given.shape), given.static)
    results: dict[str, list[Figure]] = {}
    document: dict[str, Any] = {"at": _now(), "machine": report.machine(), "quick": given.quick, "benchmarks": {}}
    failed = False
    for name in given.names or BENCHES:
        print(f"==> {name}: {(sys.modules[BENCHES[name].__module__].__doc__ or '').splitlines()[0]}", flush=True)
        load, began = os.getloadavg()[0], time.monotonic()
        try:
            results[name], details = BENCHES[name](settings)
        except Exception as error:
            traceback.print_exc()
            document["benchmarks"][name] = {"error": str(error)}
            failed = True
            continue
        document["benchmarks"][name] = {"figures": [figure.as_json() for figure in results[name]], "details": details,
                                        "seconds": round(time.monotonic() - began, 1), "loadBefore": load}
        print(report.table({name: results[name]}), flush=True)
    if len(results) > 1:
        print("\n" + report.table(results))
    report.write(given.json, document)
    print(f"written to {given.json}")
    return 2 if failed else int(any(figure.met is False for figures in results.values() for figure in figures))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.bench", description="Benchmarks of a running server, over HTTP, and of planning.")
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help=f"which, of {', '.join(BENCHES)} (default: all)")
    add("--json", type=Path, default=Path("bench-results.json"), metavar="FILE", help="where the results go (default: %(default)s)")
    add("--quick", action="store_true", help="seconds instead of minutes: to see that it works")
    add("--rate", type=int, default=30_000, metavar="N", help="join, shapes: triples per second (default: %(default)s)")
    add("--find", action="store_true", help="join: look for the greatest rate that is sustained")
    add("--seconds", type=int, metavar="S", help="how long each measurement takes")
    add("--shape", action="append", default=[], metavar="NAME", help="shapes: only this shape of query (again for more)")
    add("--static", type=int, metavar="N", help="shapes: triples of the static graph, thousands (default: 1,000,000)")
    add("--server", action="append", default=[], metavar="OPTION", help="an option for `thalweg serve` (again for more)")
    add("--keep", type=Path, metavar="DIR", help="keep the data folders and the server's log in DIR")
    given = parser.parse_args(arguments)
    if unknown := set(given.names) - set(BENCHES):
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}")
    return given


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


if __name__ == "__main__":
    sys.exit(main())
