"""Who ended the evaluator: queries in whose evaluation it died are evaluated alone afterwards, one time after another.

If the evaluator ends again then, the second time in all, the query has failed by a limit; its verdict is recorded before the evaluator
is started again. Where other queries were evaluated beside it, one of them may have been the cause: then the third end counts. So memory
that one query wants, or a task of it that does not end, costs the others a restart or two, and not the server.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.execution.due import Answer, Due, ProgramPosition, after
from engine.limits import Cancelled, LimitExceeded, Postponed
from engine.runtime.batch import BesideExecutor, EvaluatorDownError, Executor

_LOG = logging.getLogger(__name__)
MOST_DEATHS = 2
MOST_DEATHS_BESIDE = 3      # where others were evaluated at the same time


class Suspects:
    """An executor that is watched. `deaths` by query outlive it; `blamed` tells whether its end now would be an evaluation's doing."""

    def __init__(self, executor: Executor, deaths: dict[str, int], alive: Callable[[], bool], blamed: Callable[[], bool]) -> None:
        self._executor, self._deaths = executor, deaths
        self._alive, self._blamed = alive, blamed
        self._beside: set[str] = set()      # what is evaluated beside this executor now

    @property
    def choices(self) -> Mapping[str, Any]:
        """The executor's."""
        return getattr(self._executor, "choices", {})

    @property
    def ran(self) -> Mapping[str, Any]:
        """The executor's."""
        return getattr(self._executor, "ran", {})

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

    def retain(self, states: Mapping[str, ProgramPosition | None]) -> None:
        self._executor.retain(states)

    def bring_ahead(self, queries: Collection[str], patience_ms: int) -> None:
        """As the executor does, of what is not suspected."""
        queries = [query for query in queries if query not in self._deaths]
        try:
            self._executor.bring_ahead(queries, patience_ms)
        except Exception:   # any of Spark's and Py4J's; it is done again where it is evaluated
            _LOG.warning("what has come could not be brought to workers ahead", exc_info=True)
        self._note_death(queries)

    def cancel(self, query: str) -> None:
        self._executor.cancel(query)

    def _alone(self, due: Due) -> list[Answer]:
        found: list[Answer] = []
        for tick in due.ticks:
            if not self._alive():
                return [*found, Answer(due.query, tick, None, EvaluatorDownError("the evaluator has ended"))]
            found += self._tried([after(replace(due, ticks=(tick,), patience_ms=None), found)])     # to end it is known to be of no use
            if found[-1].error is not None:
                return found
        del self._deaths[due.query]
        return found

    def _tried(self, dues: Sequence[Due]) -> list[Answer]:
        """The answers; if the evaluator ends meanwhile, all these queries are suspects."""
        most = MOST_DEATHS_BESIDE if self._beside else MOST_DEATHS
        try:
            answers = self._executor.evaluate(dues)
        except Exception:   # any of Spark's and Py4J's
            if failed := self._failed(dues, most):
                return failed
            raise
        return (_may_have_died(answers) and self._failed(dues, most)) or answers

    def _failed(self, dues: Sequence[Due], most: int) -> list[Answer]:
        """Note an end of the evaluator, if there was one; the failure of a query that was evaluated alone when it came to so many."""
        died = self._note_death([due.query for due in dues])
        if not died or not len(dues) == len(dues[0].ticks) == 1 or self._deaths[dues[0].query] < most:
            return []
        error = LimitExceeded("worker_deaths", f"its evaluation ended the evaluator {self._deaths[dues[0].query]} times: by memory, or a "
                              "task that does not end")
        return [Answer(dues[0].query, dues[0].ticks[0], None, error)]

    def watch(self, beside: BesideExecutor) -> BesideExecutor:
        """What evaluates beside this executor, watched too."""
        return _WatchedBeside(beside, self._note_death, self._beside)

    def _note_death(self, queries: Collection[str]) -> bool:
        """Count an end of the evaluator, if there was one."""
        if self._alive() or not self._blamed():
            return False
        for query in queries:
            self._deaths[query] = self._deaths.get(query, 0) + 1
        return True


@dataclass(frozen=True, slots=True)
class _WatchedBeside:
    beside: BesideExecutor
    note_death: Callable[[Collection[str]], bool]
    running: set[str]

    def evaluate(self, due: Due, given_up: Callable[[], bool]) -> tuple[list[Answer], float]:
        self.running.add(due.query)
        died = True
        try:
            found = self.beside.evaluate(due, given_up)
            died = _may_have_died(found[0])
            return found
        finally:
            if died and not given_up():     # what is given up is ended from outside
                self.note_death([due.query])
            self.running.discard(due.query)


def _may_have_died(answers: Sequence[Answer]) -> bool:
    """Whether some answer is missing for a reason that the end of the evaluator may be."""
    return any(answer.error is not None and not isinstance(answer.error, (LimitExceeded, Cancelled, Postponed)) for answer in answers)
