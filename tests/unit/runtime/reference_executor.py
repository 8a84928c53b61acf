"""An executor in memory: the reference evaluator behind the interface of engine.execution.executor, for tests without Spark."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path

import pyarrow as pa

from engine.compiler import Catalog, compile_statement
from engine.execution.compiled import Form
from engine.execution.content import StreamContent
from engine.execution.due import ENDS, Answer, Due, ProgramPosition
from engine.execution.plan_job import PlanJob
from engine.execution.program_steps import TimedPrograms, behind, state_at, taken_on
from engine.facts import FACTS
from engine.functions.context import Context
from engine.ir.rules import RuleSet
from engine.ir.stages import divide
from engine.ir.statement import Program, Statement, TimedProgram
from engine.ir.windows import with_rule_windows
from engine.limits import Cancelled, LimitExceeded
from engine.plan.timed import StagedPlan
from engine.records import Event, Triple
from engine.reference.content import History, content_of, dataset_at, held_at, window_bounds, window_events
from engine.reference.dataset import EMPTY, Graph
from engine.reference.program import ProgramState
from engine.reference.sparql import Result, evaluate
from engine.rewrite.owl2rl import RULES_OF
from engine.timeline import closes
from engine.worker.bundles import Found
from engine.worker.timed_task import StagedStep, advance
from tests import interval_runs


@dataclass(frozen=True)
class ReferenceCompiled:
    """A statement that needs no compiling, with the rule sets that it may name; those with a time of their own are evaluated as in a
    worker, by the plan `staged`, where there is one."""

    statement: Statement
    identity: str = ""
    rules: Mapping[str, RuleSet] = field(default_factory=dict)
    staged: StagedPlan | None = None

    @classmethod
    def of(cls, statement: Statement, identity: str, graphs: Mapping[str, pa.Table], rules: Mapping[str, RuleSet]) -> ReferenceCompiled:
        """A statement with the plan of its timed rules."""
        staged = None
        if divide(rules[source.name] for source in statement.rules if source.name in rules).is_timed:
            graphs = {g.iri: graphs.get(g.iri, FACTS.empty_table()) for g in (*statement.graphs, *statement.reasoning_graphs)}
            streams = dict.fromkeys((source.stream for source in statement.streams), "event")
            staged = compile_statement(statement, Catalog(streams, graphs, rules, mixed_time=True), identity, "logical").staged
        return cls(statement, identity, rules, staged)

    @cached_property
    def plan(self) -> object:
        """The plan of a program with a time of its own, the only one that is evaluated by a plan here, beside `staged`."""
        if self.staged is not None:
            return None
        graphs = {graph.iri: FACTS.empty_table() for graph in self.statement.graphs}
        catalog = Catalog(dict.fromkeys((source.stream for source in self.statement.streams), "event"), graphs, mixed_time=True)
        return compile_statement(self.statement, catalog).plan

    def tree(self) -> None:
        return None

    def explain(self, stage: str = "spark", form: Form = "plain") -> str:
        return f"{stage}: {self.statement.text}"


class ReferenceExecutor:
    """`failing` names epochs whose evaluation fails; `calls` counts evaluations. `over` has by epoch the evaluation time from which on one
    goes over a limit, `tried` what was evaluated, by epoch and time, `cancelled` epochs that are removed. Programs with a time of their own
    are evaluated as in a worker; `states` is the folder for what they hold."""

    def __init__(self, states: Path | None = None) -> None:
        self.failing: set[str] = set()
        self.over: dict[str, int] = {}
        self.tried: list[tuple[str, int]] = []
        self.cancelled: set[str] = set()
        self.calls = 0
        self.choices: dict[str, tuple[str, str]] = {}
        self.programs = TimedPrograms(states or Path(tempfile.gettempdir()) / f"thalweg-states-{secrets.token_hex(4)}")

    def evaluate(self, dues: Sequence[Due]) -> list[Answer]:
        self.calls += 1
        return [answer for due in dues for answer in self._answers(due)]

    def cancel(self, query: str) -> None:
        self.cancelled.add(query)

    def forget(self, query: str) -> None:
        self.choices.pop(query, None)
        self.programs.forget(query)

    def bring_ahead(self, queries: Collection[str], patience_ms: int) -> None:
        """It keeps nothing."""

    def retain(self, states: Mapping[str, ProgramPosition | None]) -> None:
        self.programs.retain(states)

    def _answers(self, due: Due) -> list[Answer]:
        if due.query in self.failing:
            return [Answer(due.query, tick, None, ValueError("it was told to fail")) for tick in due.ticks]
        if due.query in self.cancelled:
            return [Answer(due.query, tick, None, Cancelled("it is removed")) for tick in due.ticks]
        self.choices[due.query] = ("local", "recompute")
        self.tried += [(due.query, tick) for tick in due.ticks]
        statement = due.compiled.statement
        if isinstance(statement.query, TimedProgram):
            return [self._advanced(due)]
        history = History()
        for iri, content in due.streams.items():
            for event in _events(iri, content, due.since):
                history.add(event)
        if isinstance(due.compiled, ReferenceCompiled) and due.compiled.staged is not None:
            return self._staged(due, statement, history)
        return [self._answer(due, statement, history, tick) for tick in _counting(due, statement, history)]

    def _staged(self, due: Due, statement: Statement, history: History) -> list[Answer]:
        [due], failed = taken_on([due], self.programs, _run)
        rows = due.derived.to_pylist() if due.derived is not None else []
        found = []
        for tick in due.ticks:
            held = Graph((row["s"], row["p"], row["o"]) for row in rows if row["first"] <= tick <= row["last"])
            found.append(replace(self._answer(due, statement, history, tick, held), state=state_at(due, tick)))
        return [*found, *behind(due, found), *failed.get(due.query, [])]

    def _advanced(self, due: Due) -> Answer:
        tick = due.ticks[-1]
        if tick >= self.over.get(due.query, tick + 1):
            return Answer(due.query, tick, None, LimitExceeded.of("evaluation_ms", due.limits.evaluation_ms, "it took longer"))
        job = self.programs.job(due)
        assert job.step is not None
        try:
            return self.programs.answer(due, advance(interval_runs.connection(), job.step, job.own))
        except Exception as failure:
            return Answer(due.query, tick, None, failure)

    def _answer(self, due: Due, statement: Statement, history: History, tick: int, held: Graph | None = None) -> Answer:
        if tick >= self.over.get(due.query, tick + 1):
            return Answer(due.query, tick, None, LimitExceeded.of("evaluation_ms", due.limits.evaluation_ms, "it took longer"))
        return Answer(due.query, tick, _relation(due, statement, history, tick, held))


def as_table(result: Result) -> pa.Table:
    """A reference result in the shape of an executor's answer."""
    if result.form == "ASK":
        return pa.table({"_": pa.nulls(int(result.boolean), pa.string())})
    names = result.variables if result.form == "SELECT" else ("s", "p", "o")
    return pa.table({name: pa.array([row.get(name) for row in result.bag()], pa.string()) for name in names})


def _counting(due: Due, statement: Statement, history: History) -> list[int]:
    """The evaluation times that count: all, or as `Due.look` says."""
    look = due.look
    if look is None or not isinstance(due.compiled, ReferenceCompiled):
        return list(due.ticks)
    graphs, rules, on_change = {iri: _graph(table) for iri, table in due.graphs.items()}, due.compiled.rules, statement.on_change
    statement = with_rule_windows(statement, rules)
    begin = due.ticks[0] - 1 if look.before is None else look.before
    grids = {tick for step, start in look.grids for tick in closes(begin, due.ticks[-1], step, start)}
    found, before = list[int](), look.before
    for tick in sorted({*due.ticks, *grids}):
        def held(at: int) -> Graph:
            return held_at(statement, at, on_change, history, graphs, rules)
        sure = tick in due.ticks and tick not in look.unsure
        if sure or held(tick).triples != (EMPTY if before is None else held(before)).triples:
            found.append(tick)
        before = tick
    return found


def _run(jobs: list[PlanJob]) -> None:
    """Steps of chains of programs, as a worker makes them."""
    for job in jobs:
        assert isinstance(job.step, StagedStep)
        try:
            job.answer = Found(advance(interval_runs.connection(), job.step, job.own))
        except Exception as failure:  # as in a worker
            job.answer = failure


def _relation(due: Due, statement: Statement, history: History, tick: int, held: Graph | None) -> pa.Table:
    on_change = statement.on_change
    rules = due.compiled.rules if isinstance(due.compiled, ReferenceCompiled) else {}
    statement = with_rule_windows(statement, rules)
    pairs = {s: window_events(s, tick, history, statement, on_change) for s in statement.windows}
    graphs = {iri: _graph(table) for iri, table in due.graphs.items()}
    if isinstance(statement.query, Program):
        events = dict.fromkeys(event for found in pairs.values() for event, _ in found)
        return _begun(statement, tick - 1, events, {triple for graph in graphs.values() for triple in graph.triples})
    contents = {source: content_of(found) for source, found in pairs.items()}
    held = held_at(statement, tick, on_change, history, graphs, rules) if held is None else held
    dataset = dataset_at(statement, contents, graphs, window_bounds(statement, tick, on_change), rules, held)
    return as_table(evaluate(statement.query, dataset, Context(tick - on_change, due.compiled.identity)))


def _begun(statement: Statement, at: int, events: Iterable[Event], static: Iterable[Triple]) -> pa.Table:
    """What a rule program reports to begin at an instant, and when it ends."""
    state = ProgramState()
    begun, _ = state.step(statement, at, events, static, RULES_OF)
    ends = pa.array([end for _, end in sorted(state.pending.items())], pa.int64())
    return as_table(begun).append_column(ENDS, ends)


def _events(iri: str, content: StreamContent, since: int) -> list[Event]:
    rows = content.after(since).to_pylist()
    items = groupby(rows, key=lambda row: (row["position"], row["t"], row["g"]))
    return [Event(position, iri, t, g, tuple((r["s"], r["p"], r["o"]) for r in group), 0) for (position, t, g), group in items]


def _graph(table: pa.Table) -> Graph:
    return Graph(zip(*(table[name].to_pylist() for name in "spo"), strict=True))


def contents_of(contents: Mapping[str, StreamContent]) -> dict[str, int]:
    """Rows kept per stream."""
    return {iri: content.rows for iri, content in contents.items()}
