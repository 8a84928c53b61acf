"""What is told of how queries were evaluated is what was run: of the queries of the cases, alone and beside others that share parts."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.execution.executor import Executor
from engine.execution.own_process import OwnProcess, own_process
from engine.execution.plan_job import Ran, users_of
from engine.runtime.pump import Pump
from engine.runtime.results import ResultLog
from engine.worker.bundles import Task
from grammar import parse
from grammar.rule_sets import parse_rules
from tests.beside import beside
from tests.case_files import Case, find_cases
from tests.encoded import encode
from tests.sparks import compile_query
from tests.treatments import refused

CASES = [case for case in find_cases() if not case.may_refuse and case.limit is None and refused(case) is None and case.script is None][:50]


class Recorded:
    """Runs tasks as they are, and notes the last one of each query."""

    def __init__(self, tasks: OwnProcess) -> None:
        self._tasks, self.last = tasks, dict[str, Task]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tasks, name)

    def run(self, tasks: Sequence[Task], *given: Any, **named: Any) -> Any:
        for task in tasks:
            self.last |= {query: task for query in {task.query, *task.beside}}
        return self._tasks.run(tasks, *given, **named)


def run(case: Case, others: int, folder: Path, strategy: Any) -> tuple[Recorded, Executor, Pump]:
    with own_process() as tasks:
        recorded = Recorded(tasks)
        executor = Executor(recorded, force_strategy=strategy, states=folder / "programs")      # type: ignore[arg-type]
        results = ResultLog(folder / "results.db")
        pump = Pump(executor, results, parse, partial(compile_query), parse_rules=parse_rules, graph_folder=folder)
        pump.restore()
        pump.process(encode(beside(case.records(), others)))
        results.close()
    return recorded, executor, pump


def names(texts: Collection[str]) -> set[str]:
    """The kept relations that a plan or a statement names."""
    return {found for text in texts for found in re.findall(r"\bk_[0-9a-f]{16}\b", text)}


@pytest.mark.parametrize(("case", "others", "strategy"), [
    *(pytest.param(case, 0, "incremental", id=case.name) for case in CASES),
    *(pytest.param(case, 5, None, id=f"{case.name}-beside others") for case in CASES[::3])])
def test_what_is_told_is_what_ran(case: Case, others: int, strategy: str | None, tmp_path: Path) -> None:
    recorded, executor, pump = run(case, others, tmp_path, strategy)
    users, evaluated = users_of(executor.ran.values()), 0
    for query in pump.queries.values():
        epoch = query.definition.epoch
        if query.state != "running" or epoch not in recorded.last:
            continue
        ran, task = executor.ran[epoch], recorded.last[epoch]
        assert ran.executor == "local" and (ran.executor, ran.strategy) == executor.choices[epoch]
        assert query.compiled is not None
        told = query.compiled.explain("logical", ran.form)
        assert names([told]) == set(ran.relations) == names([task.text]) & set(ran.relations)
        assert set(ran.relations) <= {step.text.name for step in task.kept}
        assert ran.together == max(1, len(task.beside)) and (ran.form == "shared" or ran.together == 1)
        assert (ran.strategy == "incremental") >= bool(task.kept)
        shown = ran.text(users)
        assert all(f"-- kept: {name}, read by {users[name]} quer" in shown for name in ran.relations) and ran.why in shown
        evaluated += 1
    assert evaluated or not recorded.last


def test_relations_are_read_by_all_whose_patterns_are_alike(tmp_path: Path) -> None:
    case = next(case for case in CASES if case.name == "windows/basic" or len(case.queries) == 1 and not case.rules)
    _, executor, _ = run(case, 8, tmp_path, None)
    assert max(users_of(executor.ran.values()).values(), default=0) >= 4


def test_as_json_and_text() -> None:
    ran = Ran("local", "incremental", "shared", "they are alike", 120, ("k_1",), 3, 2.345)
    assert ran.to_json({"k_1": 7}) == {"why": "they are alike", "rows": 120, "ms": 2.3, "together": 3, "shards": 1, "shard": 1,
                                       "kept": [{"relation": "k_1", "users": 7}]}
    assert ran.text({"k_1": 7}) == ("-- ran: local, incremental: they are alike\n-- last: 120 rows in 2.3 ms, one statement for 3 queries\n"
                                    "-- kept: k_1, read by 7 queries\n")
