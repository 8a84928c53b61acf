"""The rules with a time of their own that queries use, taken on before those are evaluated: one job for all queries. What they derive
says at which times a query is evaluated (`Due.look`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from engine.execution.due import Answer, Due, ProgramPosition, failures
from engine.execution.plan_job import PlanJob
from engine.execution.program_steps import TimedPrograms
from engine.limits import LimitExceeded, Postponed
from engine.timeline import MIN
from engine.worker.bundles import Found, QueryFailed


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
    jobs = []
    for due in dues:
        step, own = programs.stages(due)
        rows = sum(table.num_rows for table in own.values()) + (due.state or ProgramPosition()).held
        jobs.append(PlanJob(due, due.evaluation, "local", str, frozenset(own), rows, own=own, step=step))
    run(jobs)
    return [_stepped(due, job.answer, programs, run) for due, job in zip(dues, jobs)]


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
