"""Queries with the same rules with a time of their own take them on together, and each goes on where another one goes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.compiler import Catalog, compile_statement
from engine.execution import own_process
from engine.execution.compiled import Compiled
from engine.execution.content import StreamContent
from engine.execution.due import Answer, Due, ProgramPosition
from engine.execution.executor import Executor
from engine.limits import EvaluationLimits, LimitExceeded
from engine.records import Event
from engine.runtime.rows import facts_of
from engine.worker import bundles
from engine.worker.timed_task import StagedStep
from grammar import parse
from grammar.rule_sets import parse_rules
from tests.differential.test_kept import rows
from tests.encoded import encode

E, S = "http://ex.org/", "http://ex.org/s"
RULES = {"alarm": parse_rules(f"PREFIX ex: <{E}>\nex:Hot(X) :- Diamondminus[0,3]ex:high(X,Y)\n"
                              "ex:Calm(X) :- Diamondminus[0,5]ex:high(X,Y), not ex:Hot(X)", "text/x-datalogmtl", "alarm")}
QUERY = "SELECT ?x ?class FROM STREAM :s [RANGE 9s STEP {step}s] USING RULES alarm WHERE {{ ?x a ?class }}"


class Queries:
    """Some queries over one stream, each with how far its rules are; what they answered, by query."""

    def __init__(self, folder: Path, steps: Mapping[str, int]) -> None:
        catalog = Catalog({S: "event"}, {}, RULES)
        self.compiled: dict[str, Compiled] = {name: compile_statement(parse(f"PREFIX : <{E}> {QUERY.format(step=step)}"), catalog, name)
                                              for name, step in steps.items()}
        self.content, self.limits = StreamContent(), dict[str, EvaluationLimits]()
        self.states: dict[str, ProgramPosition | None] = dict.fromkeys(steps)
        self.tasks = own_process.OwnProcess(folder, 1)
        self.executor = Executor(self.tasks, states=folder / "states")
        self.found: dict[str, list[object]] = {name: [] for name in steps}

    def evaluate(self, second: int, names: Sequence[str]) -> list[Answer]:
        self.content.append(facts_of(encode([Event(second, S, second * 1_000 - 500, None,
                                                   ((f"<{E}x{second % 4}>", f"<{E}high>", '"1"'),), 0)])))
        self.content.evict((second - 9) * 1_000)
        dues = [Due(name, self.compiled[name], (second * 1_000,), 0, {S: self.content}, {}, self.limits.get(name, EvaluationLimits()),
                    state=self.states[name]) for name in names]
        answers = self.executor.evaluate(dues)
        for answer in answers:
            self.states[answer.query] = answer.state or self.states[answer.query]
            self.found[answer.query].append(answer.error or rows(answer))
        self.executor.retain(self.states)
        return answers

    def close(self) -> None:
        self.executor.close()
        self.tasks.close()


@pytest.fixture
def stepped(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The queries whose rules were taken on, by evaluation."""
    found: list[list[str]] = []
    run = bundles.run_in_shards

    def watched(tasks: Sequence[Any], *others: Any) -> Any:
        if made := [task.query for task in tasks if isinstance(task.step, StagedStep)]:
            found.append(made)
        return run(tasks, *others)

    monkeypatch.setattr(own_process, "run_in_shards", watched)
    return found


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Queries]:
    made = Queries(tmp_path / "alone", {"one": 1})
    yield made
    made.close()


def test_one_step_is_made_for_all(tmp_path: Path, stepped: list[list[str]], alone: Queries) -> None:
    """Until one of them goes: the others go on from its state."""
    together = Queries(tmp_path / "together", {"a": 1, "b": 1, "c": 2, "d": 1})
    for second in range(1, 13):
        names = [name for name in together.states if name != "c" or second % 2 == 0]
        answers = together.evaluate(second, names)
        assert all(answer.error is None for answer in answers)
        leads = "a" if second < 5 else "b"
        assert sorted(stepped.pop()) == [leads, *({"c"} & set(names))], second
        assert {state.file for name, state in together.states.items() if name != "c" and state is not None} == {
            f"{leads}-{second}-{2_000 * second - 1}.arrow"}
        assert {path.name.split("-")[0] for path in (tmp_path / "together" / "states").iterdir()} <= {*"abc"}
        alone.evaluate(second, ["one"])
        if second == 4:
            del together.states["a"]
            together.executor.forget("a")
    stepped.clear()
    assert together.found["b"] == together.found["d"] == alone.found["one"]
    assert together.found["c"] == alone.found["one"][1::2] and together.found["a"] == alone.found["one"][:4]
    held = [path.name for path in (tmp_path / "together" / "states").iterdir()]
    assert {name.rsplit("-", 1)[0] for name in held} == {"b-12", "c-6"}, "what nothing goes on from is removed"
    together.close()


def test_one_that_was_cancelled_leaves_the_others_alone(tmp_path: Path, stepped: list[list[str]], alone: Queries) -> None:
    together = Queries(tmp_path / "together", {"a": 1, "b": 1})
    for second in range(1, 4):
        if second == 3:
            together.executor.cancel("a")
        found = {answer.query: answer for answer in together.evaluate(second, ["a", "b"])}
        alone.evaluate(second, ["one"])
        assert (found["a"].error is None) is (second < 3) and found["b"].error is None
    assert together.found["b"] == alone.found["one"]
    together.close()


def test_limits_are_each_querys_own(tmp_path: Path, stepped: list[list[str]]) -> None:
    """Another limit, another step; and a step that fails fails for all that share it."""
    together = Queries(tmp_path / "together", {"a": 1, "b": 1, "c": 1})
    few = replace(EvaluationLimits(), state_rows=1)
    together.limits = {"b": few, "c": few}
    answers = [together.evaluate(second, ["a", "b", "c"]) for second in (1, 2, 3)][-1]
    assert sorted(stepped[0]) == ["a", "b"]
    errors = {answer.query: answer.error for answer in answers}
    assert errors["a"] is None
    assert all(isinstance(error, LimitExceeded) and error.limit == "state_rows" for name, error in errors.items() if name != "a")
    together.close()
