"""Threads for the work of requests, a few for each kind of work, so that slow calls hold up none but their like.

| kind | what | threads |
| --- | --- | --- |
| quick | reads of resources, pushes | `quick_threads` |
| catalogue | registrations, changes of streams, queries, graphs and rules | `catalogue_threads` |
| one-shot | `/sparql`, `/explain` | `one_shots_at_once` |
| bulk | large bodies, also such that become large when they are decompressed; graphs | `large_uploads_at_once` |
| proofs | `/queries/{name}/results/{id}/why` | `proofs_at_once` |
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, TypeVar

from server.limits import Limits
from server.problems import Problem

Kind = Literal["quick", "catalogue", "one-shot", "bulk", "proofs"]
Result = TypeVar("Result")


class Pool:
    """The threads of one kind of work, and a bound on what waits for them."""

    def __init__(self, kind: Kind, threads: int, waiting: int) -> None:
        self.kind, self.most = kind, threads + waiting
        self.busy = 0
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"thalweg-{kind}")

    async def run(self, work: Callable[[], Result]) -> Result:
        """Do blocking work beside the loop; `engine-overloaded` where too much waits already."""
        if self.busy >= self.most:
            raise Problem("engine-overloaded", f"{self.busy} requests of this kind ({self.kind}) are being worked on or wait.",
                          extra={"limit": self.most, "current": self.busy})
        self.busy += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self.busy -= 1

    def close(self) -> None:
        """Take no more work."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def pools(limits: Limits) -> dict[Kind, Pool]:
    """The pools of a server."""
    threads: dict[Kind, int] = {"quick": limits.quick_threads, "catalogue": limits.catalogue_threads, "one-shot": limits.one_shots_at_once,
                                "bulk": limits.large_uploads_at_once, "proofs": limits.proofs_at_once}
    return {kind: Pool(kind, count, limits.waiting_requests) for kind, count in threads.items()}
