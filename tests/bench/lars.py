"""Rules over interval relations in one DuckDB: Laser's micro-benchmarks on replay, ShortStop, and what is held as a stream goes on.

The micro-benchmarks (Bazoobandi et al., "Expressive stream reasoning with Laser", section 6) are written anew: 200 and 800 atoms a second,
400 seconds, windows of 1 to 80 s; what a program derives is read as deltas and counted. A replay takes `CHUNK` seconds a step; the first
`CHECKED` ones are compared with the reference evaluator in the unit tests, not here. ShortStop (Wałęga et al., "Stream reasoning with
DatalogMTL", section 7) is compared with a brute force.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from engine.functions.terms import integer
from engine.ir.rules import Atom, BoxMinus, DiamondMinus, Formula, Rule, RuleSet
from engine.ir.terms import Variable
from engine.plan.derivations import build
from engine.rewrite.temporal import normal_form
from engine.sql.steps import Statements
from engine.timeline import operator
from engine.worker.functions import register_duckdb
from engine.worker.program import ProgramState
from tests.bench.figures import Figure, plain
from tests.bench.settings import Settings

SECOND = 1000
RATES, WINDOWS, STEPS, CHUNK = (200, 800), (1, 20, 80), 400, 50
MICROSECONDS_TARGET = 20
X, Y, Z = Variable("x"), Variable("y"), Variable("z")
NAMES = np.array([integer(n) for n in range(20_000)], dtype=object)


def diamond(window: int, name: str = "p", *terms: Variable) -> Formula:
    """A window of so many seconds around diamond."""
    return DiamondMinus(operator(0, window * SECOND), Atom(name, terms or (X,)))


PROGRAMS: dict[str, Callable[[int], tuple[Rule, ...]]] = {
    "diamond": lambda n: (Rule(Atom("q", (X,)), (diamond(n),)),),
    "box": lambda n: (Rule(Atom("q", (X,)), (BoxMinus(operator(0, n * SECOND), Atom("p", (X,))),)),),
    "join": lambda n: (Rule(Atom("q", (X, Y, Z)), (diamond(n, "e", X, Y), diamond(n, "f", Y, Z))),),
    "ten rules": lambda n: tuple(Rule(Atom(f"q{k}", (X,)), (diamond(n),)) for k in range(10)),
    "ten windows": lambda n: tuple(Rule(Atom(f"q{k}", (X,)), (diamond(n + k),)) for k in range(10)),
}
PUBLISHED = frozenset(PROGRAMS) - {"ten windows"}   # ten rules that are alike share one table; with windows of their own they share nothing


def run(settings: Settings) -> tuple[list[Figure], dict[str, Any]]:
    """Microseconds per atom, seconds of ShortStop, rows held."""
    figures: list[Figure] = []
    details: dict[str, Any] = {}
    for name in PROGRAMS:
        for rate in RATES:
            for window in WINDOWS:
                found = micro(name, rate, window, STEPS // 10 if settings.quick else STEPS)
                label = f"{name}, {rate} atoms/s, window {window} s"
                figures.append(at_most(label, found["us per atom"], "us per atom", MICROSECONDS_TARGET) if name in PUBLISHED else
                               plain(label, found["us per atom"], "us per atom"))
                details[label] = found
    for vehicles, seconds_target in ((120, 2), (400, 5)):
        found = short_stops(vehicles, 20 if settings.quick else 200)
        figures.append(at_most(f"ShortStop, {found['facts']:,} facts", found["seconds"], "s", seconds_target))
        details[f"ShortStop {vehicles}"] = found
    for count in (10_000, 100_000) if settings.quick else (10_000, 100_000, 1_000_000):
        found = short_stops(120, count // 120, check=False)
        figures.append(plain(f"ShortStop, rows held at most over {count:,} facts", found["held"], "rows"))
        details[f"held {count}"] = found
    return figures, details


def at_most(name: str, value: float, unit: str, target: float) -> Figure:
    """A figure that should not be greater."""
    return Figure(name, round(value, 2), unit, f"<= {target} {unit}", value <= target)


def state(program: RuleSet, shown: list[str]) -> ProgramState:
    """A program in a database of its own."""
    connection = duckdb.connect(":memory:", config={"threads": 1})
    register_duckdb(connection)
    made = normal_form(program)
    return ProgramState(connection, Statements(build(program, made.rules)), shown)


def micro(name: str, rate: int, window: int, steps: int) -> dict[str, float]:
    """Microseconds (wall, processor) per atom of a replay, result rows, and rows held at most."""
    rules = PROGRAMS[name](window)
    heads = sorted({f"{rule.head.predicate}/{len(rule.head.terms)}" for rule in rules if isinstance(rule.head, Atom)})
    kept = state(RuleSet("bench", rules, granularity_ms=SECOND, start_at_ms=0), heads)
    chunks = list(atoms(name, rate, steps))
    began, before, results, held = time.perf_counter(), time.process_time(), 0, 0
    for until, facts in chunks:
        results += sum(table.num_rows for table in kept.advance(facts, until).new.values())
        held = max(held, kept.held)
    many = rate * steps / 1e6
    return {"us per atom": (time.perf_counter() - began) / many, "us of CPU per atom": (time.process_time() - before) / many,
            "results": results, "held": held}


def atoms(name: str, rate: int, steps: int) -> Iterator[tuple[int, dict[str, pa.Table]]]:
    """The chunks of a stream, each with the last point of its step."""
    random = np.random.default_rng(7)
    for first in range(0, steps, CHUNK):
        seconds = np.repeat(np.arange(first, min(first + CHUNK, steps)), rate)
        points = {"lo": seconds * 2 * SECOND, "hi": (seconds + 1) * 2 * SECOND - 1}
        until = min(first + CHUNK, steps) * 2 * SECOND - 1
        if name != "join":
            yield until, {"p/1": pa.table({"a1": NAMES[random.integers(0, 1000, len(seconds))], **points})}
            continue
        sides = {}
        for relation, part in (("e/2", 0), ("f/2", 1)):
            of = {end: values[part::2] for end, values in points.items()}
            one, other = random.integers(0, 1000, len(of["lo"])), random.integers(0, 20_000, len(of["lo"]))
            first_, second = (one, other) if relation == "e/2" else (other, one)
            sides[relation] = pa.table({"a1": NAMES[first_], "a2": NAMES[second], **of})
        yield until, sides


def short_stop_rules() -> tuple[Rule, ...]:
    """The paper's five rules; a unit of time is a second."""
    def ago(seconds: int, name: str) -> Formula:
        return DiamondMinus(operator(seconds * SECOND, seconds * SECOND), Atom(name, (X,)))

    stops = [Rule(Atom("short", (X,)), (Atom("moves", (X,)), *(ago(k, "stands") for k in range(1, length + 1)), ago(length + 1, "moves")))
             for length in range(1, 5)]
    return (Rule(Atom("moves", (X,)), (Atom("absent", (X,)),)), *stops)


def short_stops(vehicles: int, seconds: int, check: bool = True) -> dict[str, float]:
    """Vehicles that stand now and then, on dense time; what is found is compared with a brute force."""
    random = np.random.default_rng(3)
    stands = np.repeat(random.random((seconds // 2 + 1, vehicles)) < 0.4, 2, axis=0)[:seconds] ^ (random.random((seconds, vehicles)) < 0.1)
    absent = ~stands & (random.random((seconds, vehicles)) < 0.1)
    kept = state(RuleSet("bench", short_stop_rules()), ["short/1"])
    began, before, held, found = time.perf_counter(), time.process_time(), 0, set[tuple[int, str]]()
    for first in range(0, seconds, CHUNK):
        last = min(first + CHUNK, seconds)
        facts = {}
        for name, which in (("stands/1", stands), ("absent/1", absent), ("moves/1", ~stands & ~absent)):
            when, who = np.nonzero(which[first:last])
            points = (when + first) * 2 * SECOND
            facts[name] = pa.table({"a1": NAMES[who], "lo": points, "hi": points})
        told = kept.advance(facts, (last - 1) * 2 * SECOND)
        held = max(held, kept.held)
        for table in told.new.values():
            found.update(zip(table["lo"].to_pylist(), table["a1"].to_pylist()))
    spent = {"facts": seconds * vehicles, "seconds": time.perf_counter() - began, "seconds of CPU": time.process_time() - before,
             "held": held, "results": len(found)}
    if check and found != brute_force(stands):
        raise AssertionError("not the short stops of the brute force")
    return spent


def brute_force(stands: np.ndarray[Any, np.dtype[np.bool_]]) -> set[tuple[int, str]]:
    """Vehicles that stood for one to four seconds, at the second in which they moved again; before, they moved."""
    found = set()
    for vehicle in range(stands.shape[1]):
        stood, moved_before = 0, False
        for second, still in enumerate(stands[:, vehicle]):
            if still:
                stood += 1
                continue
            if moved_before and 1 <= stood <= 4:
                found.add((second * 2 * SECOND, str(NAMES[vehicle])))
            stood, moved_before = 0, True
    return found
