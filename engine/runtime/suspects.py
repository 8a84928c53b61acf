"""Who ended the evaluator: queries in whose evaluation it died are evaluated alone afterwards, one time after another.

One that it does not outlive even then, twice in all, has failed by a limit; its verdict is recorded before the evaluator is started
again. So memory that one query wants, or a task of it that does not end, costs the others a restart or two, and not the server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.limits import Cancelled, LimitExceeded, Postponed
from engine.runtime.batch import BesideExecutor, EvaluatorDownError, Executor
from engine.spark.due import Answer, Due

MOST_DEATHS = 2


class Suspects:
    """An executor that is watched. `deaths` by query outlive it; `blamed` tells whether its end now would be an evaluation's doing."""

    def __init__(self, executor: Executor, deaths: dict[str, int], alive: Callable[[], bool], blamed: Callable[[], bool]) -> None:
        self._executor, self._deaths = executor, deaths
        self._alive, self._blamed = alive, blamed

    @property
    def choices(self) -> Mapping[str, Any]:
        """The executor's."""
        return getattr(self._executor, "choices", {})

    @property
    def graph_choices(self) -> Mapping[str, Any]:
        """The executor's."""
        return getattr(self._executor, "graph_choices", {})

    def evaluate(self, dues: Sequence[Due]) -> list[Answer]:
        """The answers, in the order of `dues`: those of suspects up to the first failure."""
        suspects = [due for due in dues if due.query in self._deaths]
        if not suspects:
            return self._tried(dues)
        found: dict[str, list[Answer]] = {due.query: [] for due in dues}
        if others := [due for due in dues if due.query not in self._deaths]:
            for answer in self._tried(others):
                found[answer.query].append(answer)
        for due in suspects:
            found[due.query] = self._alone(due)
        return [answer for due in dues for answer in found[due.query]]

    def forget(self, query: str) -> None:
        self._deaths.pop(query, None)
        self._executor.forget(query)

    def cancel(self, query: str) -> None:
        self._executor.cancel(query)

    def _alone(self, due: Due) -> list[Answer]:
        found: list[Answer] = []
        for tick in due.ticks:
            if not self._alive():
                return [*found, Answer(due.query, tick, None, EvaluatorDownError("the evaluator has ended"))]
            found += self._tried([replace(due, ticks=(tick,), patience_ms=None)])    # to end it is known to be of no use
            if found[-1].error is not None:
                return found
        del self._deaths[due.query]
        return found

    def _tried(self, dues: Sequence[Due]) -> list[Answer]:
        """The answers; if the evaluator ends meanwhile, all these queries are suspects."""
        try:
            answers = self._executor.evaluate(dues)
        except Exception:   # any of Spark's and Py4J's
            self._note_death(dues)
            raise
        if _may_have_died(answers):
            self._note_death(dues)
            if len(dues) == len(dues[0].ticks) == 1 and (count := self._deaths.get(dues[0].query, 0)) >= MOST_DEATHS:
                return [Answer(dues[0].query, dues[0].ticks[0], None, LimitExceeded(
                    "worker_deaths", f"its evaluation ended the evaluator {count} times: by memory, or a task that does not end"))]
        return answers

    def watch(self, beside: BesideExecutor) -> BesideExecutor:
        """What evaluates beside this executor, watched too."""
        return _WatchedBeside(beside, self._note_death)

    def _note_death(self, dues: Sequence[Due]) -> None:
        if not self._alive() and self._blamed():
            for due in dues:
                self._deaths[due.query] = self._deaths.get(due.query, 0) + 1


@dataclass(frozen=True, slots=True)
class _WatchedBeside:
    beside: BesideExecutor
    note_death: Callable[[Sequence[Due]], None]

    def evaluate(self, due: Due, given_up: Callable[[], bool]) -> tuple[list[Answer], float]:
        try:
            found = self.beside.evaluate(due, given_up)
        except Exception:   # as above
            self.note_death([due])
            raise
        if _may_have_died(found[0]):
            self.note_death([due])
        return found


def _may_have_died(answers: Sequence[Answer]) -> bool:
    """Whether some answer is missing for a reason that the end of the evaluator may be."""
    return any(answer.error is not None and not isinstance(answer.error, (LimitExceeded, Cancelled, Postponed)) for answer in answers)
