"""How many evaluations of a query are run in one task: as many as are due, but few of a query that was slow.

The limits are for one evaluation. Many are run together because that costs little more than one, as long as they are quick.
"""

from __future__ import annotations

from dataclasses import dataclass

_SHARE = 4      # a task is expected to take a quarter of the time that it has


@dataclass(slots=True)
class Pace:
    """What is known of one query; `most` None: nothing that would limit it."""

    most: int | None = None
    last: int = 1

    def at_once(self, due: int) -> int:
        """How many of `due` evaluations to run together."""
        self.last = due if self.most is None else min(due, self.most)
        return self.last

    def took(self, count: int, ms: float, limit_ms: int) -> None:
        """`count` evaluations together took so many ms."""
        fitting = int(count * limit_ms / _SHARE / max(ms, 1.0))
        if fitting < count:
            self.most = max(1, fitting)
        elif self.most is not None:
            self.most = min(fitting, 4 * max(count, self.most)) if count >= self.most else self.most

    def failed(self) -> bool:
        """The last task went over a limit: whether fewer evaluations may do better."""
        self.most, before = 1, self.last
        return before > 1
