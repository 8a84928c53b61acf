"""Evaluations that fail by a limit, so that whoever reads the log agrees on which did.

A verdict is in the log before anything else becomes of the evaluation, and what has one is not tried again. It stands behind the records
that made the evaluation due, so that what stands further on in the log counts before the pump comes there (`Ahead`). An evaluation that
ends the evaluator fails so too (`Suspects`)."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from engine.execution.due import Answer, Due, ProgramPosition, after
from engine.limits import Cancelled, LimitExceeded, Postponed
from engine.records import Verdict
from engine.runtime.batch import Beside, EvaluatorDownError, Executor
from engine.runtime.rows import Control, Kind, verdicts
from engine.sql.sources import needed

_LOG = logging.getLogger(__name__)
START = "start"     # member of a PAUSE's payload: the position after which it counts
Decide = Callable[[str, str, int, LimitExceeded], int]
"""Record in the input log that the evaluation of a query (name, epoch) at a T failed by a limit; its position, once it is on disk."""
MOST_DEATHS = 2
MOST_DEATHS_BESIDE = 3      # where others were evaluated at the same time


class Ahead:
    """Such records beyond the pump's position."""

    def __init__(self) -> None:
        self._verdicts: dict[tuple[str, int], Verdict] = {}
        self._pauses: dict[str, tuple[int, int]] = {}

    def note(self, found: Sequence[Control]) -> None:
        for verdict in verdicts(found):
            self.add(verdict)
        for control in found:
            if control.kind is Kind.PAUSE and START in control.payload:
                self._pauses[control.stream] = control.payload[START], control.position

    def add(self, verdict: Verdict) -> None:
        self._verdicts[verdict.epoch, verdict.tick] = verdict

    def verdict(self, epoch: str, ticks: Sequence[int], looked: bool = False) -> Verdict | None:
        """The verdict about one of the evaluations of a query, at ascending times; or, where it is `looked` for others, about one up to the
        last of these: those before are done."""
        if not self._verdicts:
            return None
        if looked:
            found = [verdict for (of, tick), verdict in self._verdicts.items() if of == epoch and tick <= ticks[-1]]
            return min(found, key=lambda verdict: verdict.tick, default=None)
        return next((self._verdicts[epoch, tick] for tick in ticks if (epoch, tick) in self._verdicts), None)

    def verdicts(self, position: int) -> list[Verdict]:
        return [verdict for verdict in self._verdicts.values() if verdict.position <= position]

    def pauses(self, position: int) -> Iterator[str]:
        """Queries that are paused when the record at a position is processed."""
        return (query for query, (start, end) in list(self._pauses.items()) if start < position <= end)

    @property
    def cuts(self) -> list[int]:
        """Positions before which a batch must be cut."""
        return [start + 1 for start, _ in self._pauses.values()]

    def reach(self, position: int) -> None:
        self._verdicts = {key: verdict for key, verdict in self._verdicts.items() if verdict.position > position}
        self._pauses = {name: span for name, span in self._pauses.items() if span[1] > position}


class Verdicts:
    """What `executor` finds, beside what the log has decided (`ahead`)."""

    def __init__(self, executor: Executor, ahead: Ahead, decide: Decide) -> None:
        self._executor, self._ahead, self._decide = executor, ahead, decide

    def known(self, due: Due) -> tuple[Due, Answer | None]:
        """What is to be tried of some evaluations, and the failure that follows, where it is known."""
        if (over := _over_state(due)) is not None:
            return replace(due, ticks=()), Answer(due.query, due.ticks[0], None, over)
        if (verdict := self._ahead.verdict(due.query, due.ticks, looked=due.look is not None)) is None:
            return due, None
        failure = Answer(due.query, verdict.tick, None, LimitExceeded(verdict.limit, verdict.detail))
        return due.until(verdict.tick), failure

    def evaluate(self, dues: Sequence[Due]) -> list[Answer]:
        """The answers, in the order of `dues`; an evaluation of which the log says that it failed by a limit is not tried."""
        looked = [self.known(due) for due in dues]
        tried = [to_try for to_try, _ in looked if to_try.ticks]
        found = self._executor.evaluate(tried) if tried else []
        return _in_order([*found, *(known for _, known in looked if known is not None)], dues)

    def log(self, answers: Sequence[Answer], names: Mapping[str, str]) -> None:
        """Log which evaluations failed by a limit, each query's first failure; `names` are the queries' by epoch."""
        first_bad = {answer.query: answer for answer in reversed(answers) if answer.error is not None}
        for epoch, answer in first_bad.items():
            if isinstance(error := answer.error, LimitExceeded) and self._ahead.verdict(epoch, (answer.tick,)) is None:
                position = self._decide(names[epoch], epoch, answer.tick, error)
                self._ahead.add(Verdict(position, names[epoch], epoch, answer.tick, error.limit, error.detail))


def _in_order(answers: Iterable[Answer], dues: Sequence[Due]) -> list[Answer]:
    """The answers of each query together, in the order of `dues`."""
    places = {due.query: place for place, due in enumerate(dues)}
    return sorted(answers, key=lambda answer: places[answer.query])


def _over_state(due: Due) -> LimitExceeded | None:
    """Where the windows of a query hold too many rows at the first T that is due. What others keep of its streams does not count."""
    most = due.limits.state_rows
    if sum(content.rows for content in due.streams.values()) <= most:
        return None
    first = replace(due, ticks=due.ticks[:1])
    ranges = {iri: (due.new_from_ms, due.ticks[0]) for iri in due.streams} if due.compiled.statement.is_timed else \
        needed(first.compiled.statement.windows, first.evaluation)
    rows = sum(due.streams[iri].between(low, high, due.since).num_rows for iri, (low, high) in ranges.items())
    return LimitExceeded.of("state_rows", most, f"its windows hold {rows} rows") if rows > most else None


class Suspects:
    """An executor that is watched. `deaths` by query outlive it; `blamed` tells whether its end now would be an evaluation's doing."""

    def __init__(self, executor: Executor, deaths: dict[str, int], alive: Callable[[], bool], blamed: Callable[[], bool]) -> None:
        self._executor, self._deaths = executor, deaths
        self._alive, self._blamed = alive, blamed
        self._beside: set[str] = set()      # what is evaluated beside this executor now

    def __getattr__(self, name: str) -> Any:
        """What the executor tells of its evaluations; {} where it does not."""
        if name not in ("choices", "ran", "graph_choices"):
            raise AttributeError(name)
        return getattr(self._executor, name, {})

    def evaluate(self, dues: Sequence[Due]) -> list[Answer]:
        """The answers, in the order of `dues`: those of suspects up to the first failure."""
        suspects = [due for due in dues if due.query in self._deaths]
        others = [due for due in dues if due.query not in self._deaths]
        found = self._tried(others) if others else []
        return _in_order([*found, *(answer for due in suspects for answer in self._alone(due))], dues)

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

    def watched(self, beside: Beside) -> Beside:
        """What evaluates beside this executor, watched too: where the evaluator ends, all that was evaluated there is suspected."""
        def evaluate(due: Due, given_up: Callable[[], bool]) -> tuple[list[Answer], float]:
            self._beside.add(due.query)
            died = True
            try:
                found = beside(due, given_up)
                died = _may_have_died(found[0])
                return found
            finally:
                if died and not given_up():     # what is given up is ended from outside
                    self._note_death([due.query])
                self._beside.discard(due.query)

        return evaluate

    def _note_death(self, queries: Collection[str]) -> bool:
        """Count an end of the evaluator, if there was one."""
        if self._alive() or not self._blamed():
            return False
        for query in queries:
            self._deaths[query] = self._deaths.get(query, 0) + 1
        return True


def _may_have_died(answers: Sequence[Answer]) -> bool:
    """Whether some answer is missing for a reason that the end of the evaluator may be."""
    return any(answer.error is not None and not isinstance(answer.error, (LimitExceeded, Cancelled, Postponed)) for answer in answers)
