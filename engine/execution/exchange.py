"""Closures that shards make together (engine/plan/exchange.py): each is brought what others have found for it, until none has anything to
send.
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
        job = self.jobs[0]
        received = "" if self.sent is None else self.table
        static = tuple(closing for closing in job.closings if closing.static)
        return Task("", job.tables | ({received} if received else set()), job.cost, static, job.due.query, job.due.limits,
                    job.due.patience_ms, ShareStep(self.closing, self.number, received), in_shards=True)

    def take(self, answer: Found | Exception) -> bool:
        """Note what its task gave; whether there is more to do."""
        if isinstance(answer, Found):
            self.ms += answer.ms
            limit = self.jobs[0].due.limits.evaluation_ms
            if self.ms <= limit:
                self.number, self.sent = self.number + 1, answer.table
                return len(answer.table) > 0
            answer = LimitExceeded.of("evaluation_ms", limit, "the evaluation took longer")
        if isinstance(answer, Cancelled):   # the others still ask for it
            self.jobs.pop(0).answer = answer
            self.number, self.sent = 0, None
            return bool(self.jobs)
        if isinstance(answer, ShareLost) and self.lost + 1 < MOST_LOST:
            self.lost += 1
            self.number, self.sent = 0, None
            return True
        for job in self.jobs:
            job.answer = answer
        self.jobs = []
        return False


@dataclass(frozen=True, slots=True)
class Exchanged:
    """How many exchanges made each closure, by name, and how many ms that took, by the query that asked for it."""

    numbers: Mapping[str, int]
    ms: Mapping[str, float]


def exchange(jobs: Sequence[PlanJob], run: Run) -> Exchanged:
    """Let shards make the closures of some jobs; a job whose closure cannot be made has the reason as its answer then."""
    makings: dict[str, _Making] = {}
    for job in jobs:
        for closing in job.closings:
            if closing.shared is not None:
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
