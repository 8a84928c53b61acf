"""How many evaluations of a query are run in one task: as many as are due, but few of a query that was slow.

The limits are for one evaluation. Many are run together because that costs little more than one, as long as they are quick.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from engine.execution.due import Answer, Due, after, failures
from engine.limits import LimitExceeded, Postponed

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


class Paces:
    """What is known of all queries, and evaluation by that. `at_once` evaluates dues in one go, `drop` forgets what was kept for a query
    whose evaluation failed, `fitting` says how many evaluations memory has room for. `known` is shared with an executor beside this one."""

    def __init__(self, at_once: Callable[[Sequence[Due]], list[Answer]], drop: Callable[[str], None],
                 fitting: Callable[[Due], int], known: dict[str, Pace] | None = None) -> None:
        self.known: dict[str, Pace] = {} if known is None else known
        self._at_once, self._drop, self._fitting = at_once, drop, fitting

    def evaluate(self, dues: Sequence[Due]) -> list[Answer]:
        """One Answer per due tick, in the order of `dues`."""
        if all(self._together(due) == len(due.ticks) for due in dues):
            answers = self._at_once(dues)
        else:
            answers = self._step_by_step(dues)
        return self._slowly(dues, answers)

    def took(self, due: Due, ms: float) -> None:
        """The evaluations of `due` together took so many ms."""
        self._of(due).took(len(due.ticks), ms, min(due.limits.evaluation_ms, due.patience_ms or due.limits.evaluation_ms))

    def forget(self, query: str) -> None:
        self.known.pop(query, None)

    def _together(self, due: Due) -> int:
        """How many of its evaluations to run together."""
        return self._of(due).at_once(min(len(due.ticks), max(1, self._fitting(due))))

    def _of(self, due: Due) -> Pace:
        return self.known.setdefault(due.query, Pace())

    def _step_by_step(self, dues: Sequence[Due]) -> list[Answer]:
        """Of queries that are slow a few evaluation times after another, until the patience with them is over."""
        began = time.monotonic()
        found = {due.query: list[Answer]() for due in dues}
        left = {due.query: due for due in dues}
        while left:
            parts = [replace(due, ticks=due.ticks[:self._together(due)]) for due in left.values()]
            for answer in self._at_once(parts):
                found[answer.query].append(answer)
            over_ms = (time.monotonic() - began) * 1000
            for part in parts:
                rest = left[part.query].ticks[len(part.ticks):]
                if rest and part.patience_ms is not None and over_ms > part.patience_ms and found[part.query][-1].error is None:
                    found[part.query] += failures(replace(part, ticks=rest), Postponed("others have waited long enough"))
                    del left[part.query]
                elif rest and found[part.query][-1].error is None:
                    left[part.query] = after(replace(left[part.query], ticks=rest), found[part.query])
                else:
                    del left[part.query]
        return [answer for due in dues for answer in found[due.query]]

    def _slowly(self, dues: Sequence[Due], answers: list[Answer]) -> list[Answer]:
        """Evaluations that went over a limit together are tried again one by one: the limits are for each. Where others wait, that is
        postponed."""
        first_bad = {answer.query: answer.tick for answer in reversed(answers) if isinstance(answer.error, LimitExceeded)}
        again = []
        for due in dues:
            tried = next((tick for tick in due.ticks if tick == first_bad.get(due.query)), None)
            if tried is None or not self._of(due).failed():
                continue
            if due.patience_ms is not None:
                answers = [replace(answer, table=None, error=Postponed(str(answer.error)))
                           if answer.query == due.query and answer.tick >= tried else answer for answer in answers]
            else:
                before = [answer for answer in answers if answer.tick < tried]
                again.append(after(replace(due, ticks=tuple(tick for tick in due.ticks if tick >= tried)), before))
        if not again:
            return answers
        for due in again:
            self._drop(due.query)
        redone = {due.query for due in again}
        kept = [answer for answer in answers if answer.query not in redone or answer.tick < first_bad[answer.query]]
        return sorted([*kept, *self._slowly(again, self._step_by_step(again))],
                      key=lambda answer: [due.query for due in dues].index(answer.query))
