"""Programs with a time of their own at the driver, and chains of them that queries use: the step that an evaluation takes, what it gives,
and the files of their states.

What a program holds is a value (`ProgramPosition`) that goes into an evaluation and comes out of it. Whoever logs the answers keeps it
with them; the file that it names is needed until another one has been kept. Queries with the same chain, which stand at the same position
and are due at the same times, take it on together: one makes the step, and its file is the state of all.
"""

import json
import secrets
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from engine.execution.compiled import Compiled
from engine.execution.due import Answer, Due, ProgramPosition, failures
from engine.execution.plan_job import PlanJob
from engine.grouping import by_key
from engine.limits import Cancelled, LimitExceeded, Postponed
from engine.plan.timed import TimedPlan
from engine.sql.sources import graph_table, stream_table
from engine.timeline import MIN
from engine.worker.bundles import Found, QueryFailed
from engine.worker.timed_task import ABOUT, StagedStep, TimedStep, packed_plan

_SUFFIX = ".arrow"


class TimedPrograms:
    """The files are in `folder`, which on a cluster every executor sees."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._token = secrets.token_hex(4)      # workers may outlive an executor
        self._plans: dict[str, tuple[Compiled, bytes]] = {}

    @property
    def marks(self) -> frozenset[str]:
        """What tells the programs that go on here from all others of a worker."""
        return frozenset(map(self._mark, list(self._plans)))

    def job(self, due: Due) -> PlanJob:
        """The step that takes a program, or the chain of programs that a query needs, on to the last T that is due, as it is run."""
        before, after, chain = due.state or ProgramPosition(), _after(due), due.compiled.staged
        streams, graphs = _tables(due, due.graphs if chain is None else chain.graphs)
        at = before.until if chain is None else due.new_from_ms if before.number else MIN
        common = (self._mark(due.query), self._plan(due), before.number, at, str(self.folder / before.file), str(self.folder / after.file),
                  tuple(streams), tuple(graphs), due.limits.state_rows)
        step = (TimedStep(*common, after.until) if chain is None
                else StagedStep(*common, due.ticks, due.compiled.statement.on_change, due.look))
        own = streams | graphs
        rows = sum(table.num_rows for table in own.values()) + before.held
        return PlanJob(due, due.evaluation, "local", str, frozenset(own), rows, own=own, step=step)

    def same(self, due: Due) -> Hashable:
        """What is equal for queries whose chains take the same step."""
        state, chain = due.state or ProgramPosition(), due.compiled.staged
        assert chain is not None
        graphs = () if state.number else tuple((iri, id(due.graphs[iri])) for iri in chain.graphs)
        streams = frozenset((iri, id(content)) for iri, content in due.streams.items())
        return (chain.name, graphs, streams, due.evaluation, due.look, due.new_from_ms, state.number, state.file, due.limits,
                due.patience_ms)

    def led(self, dues: Sequence[Due]) -> Due:
        """Of queries that take the same step the one that makes it: the one whose file they go on from, so that the worker which has that
        state goes on. The others have no state of their own."""
        first = next((due for due in dues if due.state is not None and _query_of(due.state.file) == due.query), dues[0])
        for due in dues:
            if due is not first:
                self._plans.pop(due.query, None)
        return first

    def seen(self, due: Due, table: pa.Table) -> Due:
        """The evaluations that count, with what a query's chain of programs derives, from what a task gave."""
        about = json.loads(table.schema.metadata[ABOUT])
        held = tuple(about["held"])
        reached = replace(_after(due), next=about["next"], held=sum(held), stages=held)
        return replace(due, ticks=tuple(about["ticks"]), look=None, derived=table.replace_schema_metadata(None), reached=reached)

    def answer(self, due: Due, table: pa.Table) -> Answer:
        """The answer at the last T that is due, from what a task gave (`timed_task.advance`)."""
        about = json.loads(table.schema.metadata[ABOUT])
        state = replace(_after(due), next=about["next"], held=about["held"])
        return Answer(due.query, due.ticks[-1], table.replace_schema_metadata(None), state=state)

    def forget(self, query: str) -> None:
        """A query is gone, or goes on in another way: workers drop its state, which its file still has."""
        self._plans.pop(query, None)

    def retain(self, states: Mapping[str, ProgramPosition | None]) -> None:
        """Remove the files that nothing goes on from: `states` are those that are kept, by query. One that is being written stays."""
        if not self.folder.is_dir():
            return
        needed = {state.file.removesuffix(_SUFFIX) for state in states.values() if state is not None}
        for path in self.folder.glob(f"*{_SUFFIX}"):
            query, number, until = path.name.rsplit("-", 2)
            if f"{query}-{number}-{until.partition('.')[0]}" in needed:
                continue
            if query not in states or (state := states[query]) is not None and int(number) < state.number:
                path.unlink(missing_ok=True)

    def _plan(self, due: Due) -> bytes:
        known = self._plans.get(due.query)
        if known is None or known[0] is not due.compiled:
            own = due.compiled.plan
            plan = own if isinstance(own, TimedPlan) else due.compiled.staged
            assert plan is not None
            known = self._plans[due.query] = due.compiled, packed_plan(plan)
        return known[1]

    def _mark(self, query: str) -> str:
        return f"{self._token}-{query}"


def _after(due: Due) -> ProgramPosition:
    """The position behind the last T that is due."""
    number, until = (due.state or ProgramPosition()).number + 1, 2 * due.ticks[-1] - 1
    return ProgramPosition(number, until, file=f"{due.query}-{number}-{until}{_SUFFIX}")


def _query_of(file: str) -> str:
    """The query that made a file of a state."""
    return file.rsplit("-", 2)[0]


def _tables(due: Due, graphs: Iterable[str]) -> tuple[dict[str, pa.Table], dict[str, pa.Table]]:
    """What is new on the streams, and, where nothing is held yet, the static graphs, by names of tables, which no plan reads."""
    streams = {f"{stream_table(iri)}_{due.query}": content.between(due.new_from_ms, due.ticks[-1], due.since)
               for iri, content in due.streams.items()}
    begins = due.state is None or not due.state.number
    return streams, {f"{graph_table(iri)}_{due.query}": due.graphs[iri] for iri in graphs} if begins else {}


def taken_on(dues: Sequence[Due], programs: TimedPrograms,
             run: Callable[[list[PlanJob]], None]) -> tuple[list[Due], dict[str, list[Answer]]]:
    """The evaluations that count, with what the rules derive, and by query the failures behind them; `run` runs jobs of `local`."""
    found, failed = list(dues), dict[str, list[Answer]]()
    numbers = [number for number, due in enumerate(dues) if due.compiled.staged is not None and due.ticks and due.derived is None]
    for number, (due, failure) in zip(numbers, _steps([dues[number] for number in numbers], programs, run)):
        found[number] = due
        if failure:
            failed[due.query] = failure
    return found, failed


def behind(due: Due, answers: Sequence[Answer]) -> list[Answer]:
    """How far the rules of a query are, where no answer to its evaluations says that."""
    if due.reached is None or answers and (answers[-1].error is not None or answers[-1].state is not None):
        return []
    return [Answer(due.query, _tick(due.reached), None, state=due.reached, reported=False)]


def state_at(due: Due, tick: int) -> ProgramPosition | None:
    """Where the rules of a query are once it is evaluated at T, if that is the last to which they were taken on."""
    return due.reached if due.reached is not None and _tick(due.reached) == tick else None


def _tick(position: ProgramPosition) -> int:
    return (position.until + 1) // 2


def _steps(dues: list[Due], programs: TimedPrograms, run: Callable[[list[PlanJob]], None]) -> list[tuple[Due, list[Answer]]]:
    groups = [(programs.led(group), group) for group in by_key((programs.same(due), due) for due in dues).values()]
    jobs = [programs.job(first) for first, _ in groups]
    run(jobs)
    found = dict[str, tuple[Due, list[Answer]]]()
    for (first, group), job in zip(groups, jobs):
        others = [due for due in group if due is not first]
        if isinstance(job.answer, Cancelled) and others:    # the query is removed, the others are not
            found |= zip((due.query for due in others), _steps(others, programs, run))
            others = []
        stepped, failed = found[first.query] = _stepped(first, job.answer, programs, run)
        for due in others:
            found[due.query] = (replace(due, ticks=stepped.ticks, look=stepped.look, derived=stepped.derived, reached=stepped.reached),
                                [replace(answer, query=due.query) for answer in failed])
    return [found[due.query] for due in dues]


def _stepped(due: Due, answer: object, programs: TimedPrograms, run: Callable[[list[PlanJob]], None]) -> tuple[Due, list[Answer]]:
    """The evaluations with what a step gave. Limits are for one evaluation: what goes over one is done again in halves, down to that."""
    if isinstance(answer, Found):
        return programs.seen(due, answer.table), []
    if isinstance(answer, LimitExceeded) and (parts := _halves(due)) is not None:
        if due.patience_ms is not None:
            return replace(due, ticks=()), failures(due, Postponed(str(answer)))
        [(first, failure)] = _steps([parts[0]], programs, run)
        if failure:
            return first, failure
        [(second, failure)] = _steps([replace(parts[1], state=first.reached)], programs, run)
        if second.derived is None:
            return first, failure
        return replace(second, ticks=first.ticks + second.ticks, derived=pa.concat_tables([first.derived, second.derived]),
                       state=due.state), failure
    return replace(due, ticks=()), failures(due, answer if isinstance(answer, BaseException) else QueryFailed("no answer"))


def _halves(due: Due) -> tuple[Due, Due] | None:
    """The evaluations in two parts; None where there is but one."""
    if len(due.ticks) > 1:
        half = len(due.ticks) // 2
        return replace(due, ticks=due.ticks[:half]), replace(due, ticks=due.ticks[half:])
    if due.look is None or not due.look.grids:
        return None
    begin = max(due.new_from_ms, MIN if due.look.before is None else due.look.before)
    middle = due.until((begin + due.ticks[-1]) // 2 + 1)
    return (middle, due) if middle.ticks and begin < middle.ticks[-1] < due.ticks[-1] else None
