"""Who ended the evaluator: queries in whose evaluation it died are evaluated alone afterwards, one time after another.

One that it does not outlive even then, twice in all, has failed by a limit; its verdict is recorded before the evaluator is started
again. So memory that one query wants, or a task of it that does not end, costs the others a restart or two, and not the server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from engine.limits import Cancelled, LimitExceeded
from engine.runtime.batch import EvaluatorDownError, Executor
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
            found += self._tried([replace(due, ticks=(tick,))])
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
        if any(answer.error is not None and not isinstance(answer.error, (LimitExceeded, Cancelled)) for answer in answers):
            self._note_death(dues)
            if len(dues) == len(dues[0].ticks) == 1 and (count := self._deaths.get(dues[0].query, 0)) >= MOST_DEATHS:
                return [Answer(dues[0].query, dues[0].ticks[0], None, LimitExceeded(
                    "worker_deaths", f"its evaluation ended the evaluator {count} times: by memory, or a task that does not end"))]
        return answers

    def _note_death(self, dues: Sequence[Due]) -> None:
        if not self._alive() and self._blamed():
            for due in dues:
                self._deaths[due.query] = self._deaths.get(due.query, 0) + 1
