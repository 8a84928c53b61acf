"""Temporal LUBM: what is held of a stream beside what a materialisation of the whole timeline has, for programs without and with recursion.

LUBM(1) with intervals of validity over 300 seconds (tests/temporal_lubm.py). The paper passes slices of half a second, and tells the most
facts in memory (Wałęga et al., "Stream reasoning with DatalogMTL", table 2): about 40 times fewer than the materialisation has.
"""

from __future__ import annotations

import time
from typing import Any

from engine.ir.rules import TRIPLE
from engine.worker.tables import table_of
from tests.bench.figures import Figure, holds, plain
from tests.bench.settings import Settings
from tests.temporal_lubm import PROGRAMS, collected, facts, heads, program, slices, state

SLICE_MS = 2_000


def run(settings: Settings) -> tuple[list[Figure], dict[str, Any]]:
    """Facts in all and held at most, seconds, and whether both ways give the same."""
    figures: list[Figure] = []
    details: dict[str, Any] = {}
    given = facts(10 if settings.quick else 1)
    for name in PROGRAMS:
        found = measure(name, given)
        figures += [plain(f"{name}, facts of the whole timeline", found["facts"], "facts"),
                    plain(f"{name}, facts held at most", found["held"], "facts"),
                    plain(f"{name}, times fewer", found["facts"] / found["held"], "times"),
                    plain(f"{name}, whole timeline", found["whole s"], "s"),
                    plain(f"{name}, in slices of {SLICE_MS / 1000:g} s", found["sliced s"], "s"),
                    holds(f"{name}, both ways the same", found["same"], "yes")]
        details[name] = found
    return figures, details


def measure(name: str, given: Any, slice_ms: int = SLICE_MS) -> dict[str, Any]:
    """One program over the facts as a whole and as a stream."""
    parts = list(slices(given, slice_ms))
    rows = [(*triple, when.lo, when.hi) for triple, when in given]
    whole, began = state(program(name)), time.perf_counter()
    all_at_once = whole.advance({f"{TRIPLE}/3": table_of(rows, 3)}, parts[-1][1]).new
    whole_s = time.perf_counter() - began
    stream, began, held, told = state(program(name)), time.perf_counter(), 0, []
    for facts_of, until in parts:
        told.append(stream.advance(facts_of, until).new)
        held = max(held, stream.held)
    sliced_s = time.perf_counter() - began
    asked = heads(name)
    expected = collected([all_at_once], asked)
    return {"facts": sum(table.num_rows for table in all_at_once.values()), "held": held, "whole s": round(whole_s, 2),
            "sliced s": round(sliced_s, 2), "steps": len(parts), "answers": sum(map(len, expected.values())),
            "same": collected(told, asked) == expected}
