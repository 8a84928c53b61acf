"""Closures that shards make together (engine/plan/exchange.py): each is sent what all have found, and takes its share of it, until none
has anything to send.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from engine.execution.plan_job import PlanJob
from engine.limits import Cancelled, LimitExceeded
from engine.sql.closing import Closing
from engine.worker.bundles import Found, ShareStep, Task
from engine.worker.exchange import ShareLost

MOST_LOST = 3   # so often a closure is begun since workers ended; then it fails

Run = Callable[[list[Task], Mapping[str, pa.Table]], Sequence[Found | Exception]]
"""What tasks give, beside tables of their own."""


@dataclass(slots=True)
class _Making:
    """A closure for some jobs, the first of which asks for it: the number of the next exchange, what is sent in it, the time it took, and
    how often it was lost."""

    closing: Closing
    jobs: list[PlanJob]
    number: int = 0
    sent: pa.Table | None = None
    ms: float = 0.0
    lost: int = 0

    @property
    def table(self) -> str:
        """The name of what is sent."""
        return f"{self.closing.name}_received"

    def task(self) -> Task:
        """Of the first job, within its limits. All exchanges together have its patience."""
        job = self.jobs[0]
        patience = None if job.due.patience_ms is None else max(1, job.due.patience_ms - int(self.ms))
        received = "" if self.sent is None else self.table
        static = tuple(closing for closing in job.closings if closing.static)
        return Task("", job.tables | ({received} if received else set()), job.cost, static, job.due.query, job.due.limits,
                    patience, ShareStep(self.closing, self.number, received), in_shards=True)

    def take(self, answer: Found | Exception) -> bool:
        """Note what its task gave; whether there is more to do."""
        if isinstance(answer, Found):
            self.ms += answer.ms
            limit = self.jobs[0].due.limits.evaluation_ms
            if self.ms <= limit:
                self.number, self.sent = self.number + 1, answer.table
                return len(answer.table) > 0
            answer = LimitExceeded.of("evaluation_ms", limit, "the evaluation took longer")
        first = self.jobs[0]
        if isinstance(answer, ShareLost) and self.lost + 1 < MOST_LOST:
            self.lost += 1
        else:
            for job in self.jobs:
                if job is first or not isinstance(answer, Cancelled) and _bounds(job) == _bounds(first):
                    job.answer = answer
            self.jobs = [job for job in self.jobs if job.answer is None]    # they may have more time, or room
        self.number, self.sent, self.ms = 0, None, 0.0
        return bool(self.jobs)


def _bounds(job: PlanJob) -> tuple[object, object]:
    return job.due.limits, job.due.patience_ms


@dataclass(frozen=True, slots=True)
class Exchanged:
    """How many exchanges made each closure, by name, and how many ms that took, by the query that asked for it."""

    numbers: Mapping[str, int]
    ms: Mapping[str, float]


def alike(jobs: Sequence[PlanJob]) -> list[list[PlanJob]]:
    """The jobs in groups in which closures of one name are the same: others are for other evaluation times, or begin elsewhere in the
    log."""
    groups: list[tuple[dict[str, Closing], list[PlanJob]]] = []
    for job in jobs:
        closings = {closing.name: closing for closing in job.closings}
        for known, group in groups:
            if all(known.get(name, closing) == closing for name, closing in closings.items()):
                known |= closings
                group.append(job)
                break
        else:
            groups.append((closings, [job]))
    return [group for _, group in groups]


def exchange(jobs: Sequence[PlanJob], run: Run) -> Exchanged:
    """Let shards make the closures of some jobs that are `alike`; a job whose closure cannot be made has the reason as its answer then."""
    makings: dict[str, _Making] = {}
    for job in jobs:
        for closing in job.closings:
            if closing.exchange is not None:
                makings.setdefault(closing.name, _Making(closing, [])).jobs.append(job)
    waiting = [*makings.values()]
    while waiting:
        tables = {making.table: making.sent for making in waiting if making.sent is not None}
        answers = run([making.task() for making in waiting], tables)
        waiting = [making for making, answer in zip(waiting, answers, strict=True) if making.take(answer)]
    ms: dict[str, float] = {}
    for making in makings.values():
        for job in making.jobs[:1]:
            ms[job.due.query] = ms.get(job.due.query, 0.0) + making.ms
    return Exchanged({name: making.number - 1 for name, making in makings.items()}, ms)
