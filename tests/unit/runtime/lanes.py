"""A lane for tests: what is evaluated there has ended when the test says so, or when the pump waits for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.execution.due import Answer, Due, failures
from engine.limits import Postponed
from engine.runtime.threads import Lane, Task
from engine.runtime.verdicts import Decide
from tests.unit.runtime.reference_executor import ReferenceExecutor


class ImpatientExecutor(ReferenceExecutor):
    """Postpones the evaluations of the queries `slow`, by epoch, after so many of them; they stay in the lane if it `keeps` them there.
    `hurried` are the epochs that were evaluated with patience."""

    def __init__(self, **slow: int) -> None:
        super().__init__()
        self.slow, self.keeps = slow, False
        self.hurried: set[str] = set()

    def evaluate(self, dues: Sequence[Due]) -> list[Answer]:
        found: list[Answer] = []
        for due in dues:
            if due.patience_ms is not None:
                self.hurried.add(due.query)
            most = self.slow.get(due.query) if due.patience_ms is not None else None
            answers = super().evaluate([due])
            found += answers if most is None else [*answers[:most], *failures(due, Postponed("it is slow", self.keeps))[most:]]
        return found


class Beside:
    """Evaluates as the pump does; each task takes `ms`."""

    def __init__(self, executor: ReferenceExecutor, ms: float = 60_000) -> None:
        self.executor, self.ms = executor, ms

    def evaluate(self, due: Due, given_up: Callable[[], bool]) -> tuple[list[Answer], float]:
        return self.executor.evaluate([due]), self.ms


class HeldLane(Lane):
    """Evaluates nothing before `let_go`; `begun` are the evaluations that came here, by epoch and time, `waited` the epochs that the pump
    waited for."""

    def __init__(self, executor: ReferenceExecutor, beside: Beside | None = None, decide: Decide = lambda *given: 0) -> None:
        super().__init__(executor, (beside or Beside(executor)).evaluate, decide, lambda: None)
        self.begun: list[tuple[str, int]] = []
        self.waited: list[str] = []

    def begin(self, task: Task) -> None:
        self._tasks[task.due.query] = task
        self.begun += [(task.due.query, tick) for tick in task.due.ticks]

    def let_go(self) -> None:
        for task in self._tasks.values():
            if not task.ended.is_set():
                self._work(task)

    def wait(self, epoch: str) -> Task:
        self.waited.append(epoch)
        if not self._tasks[epoch].ended.is_set():
            self._work(self._tasks[epoch])
        return super().wait(epoch)
