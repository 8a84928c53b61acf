"""Evaluations under their limits, so that whoever reads the log agrees on which failed: a verdict is in the log before anything else
becomes of the evaluation, and what has one is not tried again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from engine.execution.due import Answer, Due
from engine.limits import LimitExceeded
from engine.records import Verdict
from engine.runtime.ahead import Ahead
from engine.runtime.batch import Executor
from engine.sql.sources import needed

Decide = Callable[[str, str, int, LimitExceeded], int]
"""Record in the input log that the evaluation of a query (name, epoch) at a T failed by a limit; its position, once it is on disk."""


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
        tried, decided = [], dict[str, Answer]()
        for due in dues:
            to_try, known = self.known(due)
            if known is not None:
                decided[due.query] = known
            if to_try.ticks:
                tried.append(to_try)
        found: dict[str, list[Answer]] = {due.query: [] for due in dues}
        for answer in self._executor.evaluate(tried) if tried else ():
            found[answer.query].append(answer)
        return [answer for due in dues for answer in (*found[due.query], *((decided[due.query],) if due.query in decided else ()))]

    def log(self, answers: Sequence[Answer], names: Mapping[str, str]) -> None:
        """Log which evaluations failed by a limit, each query's first failure; `names` are the queries' by epoch."""
        first_bad = {answer.query: answer for answer in reversed(answers) if answer.error is not None}
        for epoch, answer in first_bad.items():
            if isinstance(error := answer.error, LimitExceeded) and self._ahead.verdict(epoch, (answer.tick,)) is None:
                position = self._decide(names[epoch], epoch, answer.tick, error)
                self._ahead.add(Verdict(position, names[epoch], epoch, answer.tick, error.limit, error.detail))


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
