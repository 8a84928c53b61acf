"""Chains of timed rules run in DuckDB, in one step or in many, beside what the reference evaluation sees at each evaluation time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count

import pyarrow as pa

from engine.compiler import staged
from engine.ir.rules import RuleSet
from engine.plan.timed import Look, StagedPlan
from engine.records import Event, Triple
from engine.reference.dataset import Graph
from engine.reference.mixed import seen_at
from engine.rewrite.relevance import ANYTHING
from engine.worker.staged import StagedState
from tests.interval_runs import connection

_NUMBERS = count()
COLUMNS = pa.schema([("s", pa.string()), ("p", pa.string()), ("o", pa.string()), ("t", pa.int64())])


def planned(sets: Sequence[RuleSet], static: Graph) -> StagedPlan:
    """The chain of rule sets that have a time of their own."""
    plan = staged(sets, {"g": sorted(static.triples)}, [ANYTHING])
    assert plan is not None
    return plan


def table(triples: Iterable[tuple[Triple, int]]) -> pa.Table:
    """Triples with their times."""
    rows = [(*triple, t) for triple, t in triples]
    return pa.table([list(cells) for cells in zip(*rows)] if rows else [[]] * 4, schema=COLUMNS)


def run(sets: Sequence[RuleSet], events: Sequence[Event], static: Graph, steps: Sequence[Sequence[int]], on_change: bool = False,
        resumed: bool = False) -> dict[int, set[Triple]]:
    """What is seen at the evaluation times of some steps; with `resumed` each step goes on in new tables."""
    plan = planned(sets, static)
    state = StagedState(connection(), plan, f"h{next(_NUMBERS)}_")
    found: dict[int, set[Triple]] = {}
    before = None
    for ticks in steps:
        given = table((triple, e.t) for e in events if (before is None or e.t >= before) and e.t < ticks[-1] for triple in e.triples)
        always = table((triple, 0) for triple in static.triples) if before is None else table([])
        rows = state.advance(given, always, ticks, on_change).to_pylist()
        for tick in ticks:
            found[tick] = {(row["s"], row["p"], row["o"]) for row in rows if row["first"] <= tick <= row["last"]}
        before = ticks[-1]
        if resumed:
            kept = state.snapshot()
            state.drop()
            state = StagedState(connection(), plan, f"h{next(_NUMBERS)}_")
            state.restore(kept)
    state.drop()
    return found


def assert_like_the_oracle(sets: Sequence[RuleSet], events: Sequence[Event], static: Graph, ticks: Sequence[int],
                           cuts: Sequence[int] = (), on_change: bool = False) -> None:
    """In one step, in one for each evaluation time, in steps up to `cuts`, and gone on with from what is written."""
    expected = {tick: set(seen_at(tick, on_change, sets, events, static).triples) for tick in ticks}
    ends = [0, *(n for n in sorted({*cuts}) if 0 < n < len(ticks)), len(ticks)]
    some = [ticks[begin:end] for begin, end in zip(ends, ends[1:])]
    for steps in ([ticks], [[tick] for tick in ticks], some):
        assert run(sets, events, static, steps, on_change) == expected
    assert run(sets, events, static, some, on_change, resumed=True) == expected


def assert_looks_like_the_oracle(sets: Sequence[RuleSet], events: Sequence[Event], static: Graph, ticks: Sequence[int],
                                 cuts: Sequence[int] = (), grid: tuple[int, int] | None = None) -> None:
    """Evaluation times that nothing is sure of are found, in steps up to `cuts` (numbers of times), where the oracle sees something else
    than before: on a grid, of which `ticks` are all times, or on change. And no change that time alone brings about comes before it is
    announced."""
    on_change = grid is None
    expected = {tick: set(seen_at(tick, on_change, sets, events, static).triples) for tick in ticks}
    before = dict(zip(ticks[1:], ticks))
    changes = [tick for tick in ticks[grid is not None:] if expected[tick] != (expected[before[tick]] if tick in before else set())]
    ends = [0, *(n for n in sorted({*cuts}) if 0 < n < len(ticks)), len(ticks)]
    plan = planned(sets, static)
    state, found = StagedState(connection(), plan, f"h{next(_NUMBERS)}_"), list[int]()
    for begin, end in zip(ends, ends[1:]):
        step = ticks[begin:end] if grid is None else ticks[end - 1:end]
        look = Look(ticks[begin - 1] if begin else ticks[0] if grid else None, frozenset(step), () if grid is None else (grid,))
        past = state.tick
        given = table((triple, e.t) for e in events if past <= e.t < step[-1] for triple in e.triples)
        always = table((triple, 0) for triple in static.triples) if not begin else table([])
        rows = state.advance(given, always, step, on_change, look).to_pylist()
        found += state.ticks
        for tick in state.ticks:
            assert {(row["s"], row["p"], row["o"]) for row in rows if row["first"] <= tick <= row["last"]} == expected[tick]
        kept, upcoming = state.snapshot(), state.upcoming()
        state.drop()
        state = StagedState(connection(), plan, f"h{next(_NUMBERS)}_")
        state.restore(kept)
        coming = min((e.t for e in events if e.t >= step[-1]), default=ticks[-1])
        alone = [tick for tick in changes if step[-1] < tick <= coming]
        assert on_change or not alone or upcoming is not None and 2 * alone[0] - 1 >= upcoming
    state.drop()
    assert found == changes
