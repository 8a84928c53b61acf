"""Programs with a time of their own at the driver: the step that an evaluation takes, what it gives, and the files of their states.

What a program holds is a value (`ProgramPosition`) that goes into an evaluation and comes out of it. Whoever logs the answers keeps it
with them; the file that it names is needed until another one has been kept.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from engine.execution.compiled import Compiled
from engine.execution.due import Answer, Due, ProgramPosition
from engine.plan.timed import TimedPlan
from engine.sql.sources import graph_table, stream_table
from engine.timeline import MIN
from engine.worker.staged_task import StagedStep
from engine.worker.timed_task import ABOUT, TimedStep, packed_plan

_SUFFIX = ".arrow"


class TimedPrograms:
    """The files are in `folder`, which on a cluster every executor sees."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._token = secrets.token_hex(4)      # workers may outlive an executor
        self._plans: dict[str, tuple[Compiled, bytes]] = {}

    @property
    def marks(self) -> frozenset[str]:
        """What tells the programs that go on here from all others of a worker."""
        return frozenset(map(self._mark, list(self._plans)))

    def step(self, due: Due) -> tuple[TimedStep, dict[str, pa.Table]]:
        """The step that makes all points before the last T that is due final, and the tables that it reads."""
        before, after = due.state or ProgramPosition(), _after(due)
        streams, graphs = _tables(due, due.graphs)
        step = TimedStep(self._mark(due.query), self._plan(due), before.number, before.until, str(self.folder / before.file), after.until,
                         str(self.folder / after.file), tuple(streams), tuple(graphs), due.limits.state_rows)
        return step, streams | graphs

    def stages(self, due: Due) -> tuple[StagedStep, dict[str, pa.Table]]:
        """The step of the chain of programs that a query needs to the last T that is due, and the tables that it reads."""
        before, plan = due.state or ProgramPosition(), due.compiled.staged
        assert plan is not None
        streams, graphs = _tables(due, plan.graphs)
        step = StagedStep(self._mark(due.query), self._plan(due), before.number, due.new_from_ms if before.number else MIN,
                          str(self.folder / before.file), due.ticks, due.evaluation.on_change, str(self.folder / _after(due).file),
                          tuple(streams), tuple(graphs), due.limits.state_rows, due.look)
        return step, streams | graphs

    def seen(self, due: Due, table: pa.Table) -> Due:
        """The evaluations that count, with what a query's chain of programs derives, from what a task gave."""
        about = json.loads(table.schema.metadata[ABOUT])
        held = tuple(about["held"])
        reached = replace(_after(due), next=about["next"], held=sum(held), stages=held)
        return replace(due, ticks=tuple(about["ticks"]), look=None, derived=table.replace_schema_metadata(None), reached=reached)

    def answer(self, due: Due, table: pa.Table) -> Answer:
        """The answer at the last T that is due, from what a task gave (`labelled`)."""
        about = json.loads(table.schema.metadata[ABOUT])
        state = replace(_after(due), next=about["next"], held=about["held"])
        return Answer(due.query, due.ticks[-1], table.replace_schema_metadata(None), state=state)

    def forget(self, query: str) -> None:
        """A query is gone, or goes on in another way: workers drop its state, which its file still has."""
        self._plans.pop(query, None)

    def retain(self, states: Mapping[str, ProgramPosition | None]) -> None:
        """Remove the files that nothing goes on from: `states` are those that are kept, by query. One that is being written stays."""
        if not self.folder.is_dir():
            return
        for path in self.folder.glob(f"*{_SUFFIX}"):
            query, number, _ = path.name.rsplit("-", 2)
            if query not in states or (state := states[query]) is not None and int(number) < state.number:
                path.unlink(missing_ok=True)

    def _plan(self, due: Due) -> bytes:
        known = self._plans.get(due.query)
        if known is None or known[0] is not due.compiled:
            own = due.compiled.plan
            plan = own if isinstance(own, TimedPlan) else due.compiled.staged
            assert plan is not None
            known = self._plans[due.query] = due.compiled, packed_plan(plan)
        return known[1]

    def _mark(self, query: str) -> str:
        return f"{self._token}-{query}"


def _after(due: Due) -> ProgramPosition:
    """The position behind the last T that is due."""
    number, until = (due.state or ProgramPosition()).number + 1, 2 * due.ticks[-1] - 1
    return ProgramPosition(number, until, file=f"{due.query}-{number}-{until}{_SUFFIX}")


def _tables(due: Due, graphs: Iterable[str]) -> tuple[dict[str, pa.Table], dict[str, pa.Table]]:
    """What is new on the streams, and, where nothing is held yet, the static graphs, by names of tables, which no plan reads."""
    streams = {f"{stream_table(iri)}_{due.query}": content.between(due.new_from_ms, due.ticks[-1], due.since)
               for iri, content in due.streams.items()}
    begins = due.state is None or not due.state.number
    return streams, {f"{graph_table(iri)}_{due.query}": due.graphs[iri] for iri in graphs} if begins else {}
