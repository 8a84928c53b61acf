"""The middle of the pump: what is due, evaluated and logged, in a batch or the lane (threads.py).

Of a query in the lane nothing more is due until it has come back, and its ticker stands where it stood. No later state of it is written
meanwhile: whoever takes up the result log evaluates it again."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby, takewhile
from typing import Any

import pyarrow as pa

from engine.execution.content import StreamContent
from engine.execution.due import Answer, Due
from engine.limits import Cancelled, LimitExceeded, Postponed
from engine.output import first_rows, payloads_together
from engine.plan.graphs import way_of
from engine.runtime.barriers import Barriers
from engine.runtime.batch import EvaluatorDownError
from engine.runtime.query import LiveQuery, Payloads
from engine.runtime.registered import Queries, made_facts
from engine.runtime.resources import ResultEvent
from engine.runtime.rows import Control, Kind
from engine.runtime.threads import Lane, Task
from engine.runtime.ticks import Mark
from engine.runtime.verdicts import Decide, Verdicts

_LOG = logging.getLogger(__name__)
Made = dict[str, list[tuple[int, pa.Table]]]


class Evaluations(Barriers):
    def __init__(self, *given: Any, alive: Callable[[], bool], decide: Decide, stands: Callable[[str], bool], lane: Lane | None) -> None:
        """`given` as Barriers has it, the others as Pump has them."""
        super().__init__(*given)
        self._alive, self._stands, self._lane = alive, stands, lane
        self._verdicts = Verdicts(self.executor, self.ahead, decide)
        self._slow: dict[str, int] = {}     # by epoch: how many evaluations of a slow query the lane takes at a time
        self._staying: set[str] = set()     # epochs of those that are for the lane, however quick they are there
        self._marks: dict[str, Mark] = {}    # by epoch: where its ticker stood before what it gave last
        self._at = 0    # the position of the last record that was seen when all that was due had been evaluated

    # --- what is due

    def _evaluate(self, position: int) -> None:
        """Evaluate all that is due. What a level of queries makes is there, all of it, before the next level is looked at."""
        for level in self.queries.levels():
            made: Made = {}
            while dues := self._dues(level):
                self._log_all(dues, made)
            for query in level:
                if query.makes is not None and query.state == "running":
                    self._make(query, query.makes, made.get(query.name, []), position)

    def bring_ahead(self) -> None:
        ready = [query.definition.epoch for query in self.queries.values() if query.state == "running" and not self.is_beside(query)]
        self.executor.bring_ahead([epoch for epoch in ready if epoch not in self._slow], self._limits.patience_ms)

    def _dues(self, level: Sequence[LiveQuery], *, here: bool = False) -> list[Due]:
        """What is due of a level, at most `ticks` of a query at a time. What takes longer than `patience_ms` goes to the lane, where there
        is one, unless it must be done `here`, no other query runs, or the query makes a stream, whose readers wait for it."""
        dues, watermarks = [], dict[tuple[str, ...], int]()
        others_wait = not here and self._lane is not None and sum(query.state == "running" for query in self.queries.values()) > 1
        for query in level:
            if query.state != "running" or query.compiled is None or self.is_beside(query):
                continue
            watermark = self.watermark(query, watermarks)
            if query.ticker.passes(watermark) or self._is_removed(query, self.queries):
                continue
            while query.ticker.floor < watermark:
                self._marks[query.definition.epoch] = query.ticker.mark()
                if ticks := query.ticker.due(watermark, self._slow.get(query.definition.epoch, self._limits.ticks)):
                    dues.append(self._due(query, ticks, self._limits.patience_ms if others_wait and query.makes is None else None))
                    break
        return dues

    def _is_removed(self, query: LiveQuery, queries: Queries[LiveQuery]) -> bool:
        """Whether nobody will see what it finds: the log says further on that it is removed, and so are those of `queries` that read it."""
        return not self._stands(query.definition.epoch) and not any(self._stands(one.definition.epoch) for one in queries.dependents(query))

    def _pause_ahead(self, position: int) -> None:
        for name in self.ahead.pauses(position):
            if name in self.queries and self.queries[name].state == "running":
                if self.queries[name].definition.epoch in self._slow:   # after a start nothing is evaluated before
                    self._settle([self.queries[name]])
                self._change_state(self.queries[name], Control(position, Kind.PAUSE, name, None, {}))

    def _due(self, query: LiveQuery, ticks: Sequence[int], patience_ms: int | None) -> Due:
        self._outcome.ticks += len(ticks)
        contents = {stream: self.kept.contents[stream] for stream in query.streams}
        graphs = {iri: self.store.tables[iri] for iri in query.graphs if iri in self.store.tables}
        limits = self._limits.evaluation.own(query.definition.options.get("limits", {}))
        shown = self._limits.rows if query.shows_answers and query.statement.form == "SELECT" else None
        said = query.definition.options.get("graphs")
        paths = self._limits.paths if said is None else way_of(said)
        return Due(query.definition.epoch, query.compiled, tuple(ticks), query.definition.since, contents, graphs,  # type: ignore[arg-type]
                   limits, patience_ms, query.program, look=query.ticker.look, shown=shown, paths=paths)

    def _log_all(self, dues: Sequence[Due], made: Made, *, here: bool = False) -> None:
        """Evaluate, all queries in one call, and log the answers; of slow queries begin it in the lane, unless it must be done `here`."""
        if self._lane is not None and not here:
            dues = [due for due in dues if due.query not in self._slow or not self._begin_beside(self._lane, due)]
        if not dues:
            return
        began = time.perf_counter()
        answers = self._verdicts.evaluate(dues)
        self._outcome.evaluate_ms += (time.perf_counter() - began) * 1000
        self._log_answers(self._without_postponed(answers), made)

    def _log_answers(self, answers: Sequence[Answer], made: Made) -> None:
        queries = {query.definition.epoch: query for query in self.queries.values()}
        self._verdicts.log(answers, {epoch: query.name for epoch, query in queries.items()})
        if failures := [answer.error for answer in answers if answer.error is not None and not isinstance(answer.error, LimitExceeded)]:
            if not self._alive():
                raise EvaluatorDownError(f"the evaluator is down: {failures[0]}") from failures[0]
        ready = payloads_together({
            (answer.query, answer.tick): (query.statement.form, first_rows(answer.table, self._limits.rows)) for answer in answers
            if answer.table is not None and answer.written is None and answer.reported
            and (query := queries[answer.query]).shows_answers and query.state == "running"})
        for epoch, found in groupby(answers, lambda answer: answer.query):
            self._log(queries[epoch], list(found), made, ready)

    def _log(self, query: LiveQuery, answers: Sequence[Answer], made: Made, ready: Payloads) -> None:
        """Log the answers up to the first failure, which ends the query."""
        if query.state != "running":
            return
        good = list(takewhile(lambda answer: answer.error is None and (answer.table is not None or not answer.reported), answers))
        logged, failure = self._written(query, good, ready)
        for event, shown in logged:
            self._outcome.results.append(event)
            if query.makes is not None and shown.num_rows:
                made.setdefault(query.name, []).append((event.at_ms, shown))
        if failure is not None:
            _LOG.error("an answer of the query %r cannot be written", query.name, exc_info=failure)
            self._fail(query, failure)
        elif len(good) < len(answers):
            bad = answers[len(good)]
            if isinstance(bad.error, Cancelled) and self._is_removed(query, self.queries):
                return
            self._fail(query, bad.error or RuntimeError("the executor gave no table"))

    def _written(self, query: LiveQuery, answers: Sequence[Answer], ready: Payloads
                 ) -> tuple[list[tuple[ResultEvent, pa.Table]], Exception | None]:
        """The results up to the first answer that cannot be written, and why: however the log is cut, those before it are there."""
        before = query.relation, query.relation_changed, query.relation_logged, query.seq, query.program
        try:
            return query.log(answers, self._limits.rows, ready), None
        except Exception as failure:  # the query's own, not the pump's
            query.relation, query.relation_changed, query.relation_logged, query.seq, query.program = before
            if len(answers) == 1:
                return [], failure
        found: list[tuple[ResultEvent, pa.Table]] = []
        for answer in answers:
            written, failed = self._written(query, [answer], ready)
            found += written
            if failed is not None:
                return found, failed
        return found, None

    def _make(self, query: LiveQuery, stream: str, results: Sequence[tuple[int, pa.Table]], position: int) -> None:
        """Results become items of the stream that the query makes. Its watermark is the last evaluation time that is done; it is idle while
        all streams are that the query reads."""
        users = self._users(stream)
        if results:
            try:
                facts = made_facts(results, position)
            except Exception as failure:  # the query's own, not the pump's
                self._fail(query, failure)
                return
            times = self.kept.make(stream, facts, len(results), bool(users))
            self._outcome.count(stream, facts.num_rows, len(results))
            for reader in users:
                reader.ticker.see(stream, times)
            if users:
                self._changes.made.append((stream, facts))
        self.kept.states[stream].advance(query.ticker.evaluated)
        self.kept.states[stream].idle = self.kept.all_idle(query.streams)

    def _users(self, stream: str) -> list[LiveQuery]:
        return [query for query in self.queries.readers(stream) if query.state != "failed"]

    # --- the lane beside the pump

    def is_beside(self, query: LiveQuery) -> bool:
        return self._lane is not None and query.definition.epoch in self._lane

    def _without_postponed(self, answers: Sequence[Answer]) -> list[Answer]:
        """The answers before one that is postponed; what is due of its query from there on goes to the lane."""
        kept: list[Answer] = []
        for epoch, found in groupby(answers, lambda answer: answer.query):
            of_query = list(found)
            good = list(takewhile(lambda answer: answer.error is None, of_query))
            reason = None if len(good) == len(of_query) else of_query[len(good)].error
            if not isinstance(reason, Postponed):
                kept += of_query
                continue
            self._slow[epoch] = 1
            if reason.stays:
                self._staying.add(epoch)
            ticker = self._of_epoch(epoch).ticker
            ticker.back(self._marks[epoch])
            if good:
                ticker.due(good[-1].tick, self._limits.ticks)
            kept += good
        return kept

    def _begin_beside(self, lane: Lane, due: Due) -> bool:
        """Begin the evaluations of a slow query in the lane; whether that was done."""
        to_try, known = self._verdicts.known(due)
        if not to_try.ticks:
            return False
        ticker = self._of_epoch(due.query).ticker
        floor = ticker.floor
        ticker.back(self._marks[due.query])
        fixed = {iri: StreamContent(content.chunks, content.kinds) for iri, content in due.streams.items()}
        lane.begin(Task(self._of_epoch(due.query).name, replace(to_try, streams=fixed, patience_ms=None), floor, known))
        return True

    def _take_back(self) -> None:
        for task in self._lane.take_ended() if self._lane is not None else ():
            self._log_task(task)
        self._changes.seen(len(self._outcome.results), self._at)

    def _log_task(self, task: Task) -> None:
        """Log the answers of the lane. What it saw is what was there at every position since it began."""
        query, limits = self._of_epoch(task.due.query), self._limits
        query.ticker.due(task.floor, limits.ticks)
        if task.verdict is not None:
            self.ahead.add(task.verdict)
        if task.ms * 2 < limits.patience_ms and task.due.query not in self._staying:
            self._slow.pop(task.due.query, None)
        else:
            quick = task.ms * 4 < task.due.limits.evaluation_ms
            most = self._slow.get(task.due.query, 1)
            self._slow[task.due.query] = min(most * 2, limits.ticks) if quick else max(1, most // 2)
        self._log_answers(task.answers if task.decided is None else [*task.answers, task.decided], {})

    def _settle(self, queries: Sequence[LiveQuery]) -> None:
        """Wait for the lane with some queries, and evaluate what else is due of them, before they see something else."""
        late = [query for query in queries if query.state == "running" and query.makes is None]
        for query in late:
            if self._lane is not None and query.definition.epoch in self._lane:
                self._log_task(self._lane.wait(query.definition.epoch))
        while dues := self._dues(late, here=True):
            self._log_all(dues, {}, here=True)
        self._changes.seen(len(self._outcome.results), self._at)

    def _settle_late(self, position: int) -> None:
        """Wait for queries that are behind a verdict on them, which is forgotten after `position`, and for those whose streams have come
        to more rows than windows may hold: what they have not seen must be kept."""
        for verdict in self.ahead.verdicts(position):
            self._settle([query for query in self.queries.values() if query.definition.epoch == verdict.epoch])
        for query in [query for query in self.queries.values() if self.is_beside(query)]:
            if sum(self.kept.contents[stream].rows for stream in query.streams) > self._limits.evaluation.state_rows:
                self._settle([query])

    def _fail(self, query: LiveQuery, error: BaseException, producer: str | None = None) -> None:
        if producer is not None:    # what was due before its producer failed
            self._settle([query])
        if query.state != "failed":
            super()._fail(query, error, producer)

    def _forget_epoch(self, epoch: str) -> None:
        self._slow.pop(epoch, None)
        self._staying.discard(epoch)
        self._marks.pop(epoch, None)
        if self._lane is not None:
            self._lane.forget(epoch)
        else:
            super()._forget_epoch(epoch)

    def _of_epoch(self, epoch: str) -> LiveQuery:
        return next(query for query in self.queries.values() if query.definition.epoch == epoch)
