"""The engine as the server sees it. Every method may be called from any thread: commands are answered when their record is on
disk (commands.py), reads see the end of the log and the pump's last snapshot (view.py)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace as changed
from itertools import repeat
from typing import TYPE_CHECKING, Any

from engine.execution.compiled import Compiled
from engine.execution.due import Due
from engine.execution.plan_job import users_of
from engine.ir.spans import Diagnostic
from engine.ir.statement import GraphSource, Statement, TimedProgram
from engine.limits import LimitExceeded
from engine.runtime.backend import Backend
from engine.runtime.catalogue import usage
from engine.runtime.clock import Clock
from engine.runtime.describe import held_facts
from engine.runtime.errors import EngineError, unavailable
from engine.runtime.evidence import Evidence, evidence_of
from engine.runtime.holding import Held, held_of
from engine.runtime.machine import Machine
from engine.runtime.registered import Registered, own_iri
from engine.runtime.resources import DEFAULT_GRAPH, Listener, OneShot
from engine.runtime.settings import Settings
from engine.runtime.statement_checks import check_kept, needs_of, shown_by, statement_warnings
from engine.runtime.stores import ParseRules, reads_no_rules
from engine.runtime.topics import ReaderOf
from engine.runtime.upload_commands import UploadCommands
from engine.runtime.view import View
from engine.timeline import MIN

if TYPE_CHECKING:
    from engine.spark.topic import TopicWriter


class Engine(UploadCommands):
    """Continuous queries over streams. Errors are EngineError (a problem slug with status) and DiagnosticError (places in a text)."""

    def __init__(self, settings: Settings, parse: Callable[[str], Statement], clock: Clock | None = None,
                 backend: Backend | None = None, parse_rules: ParseRules = reads_no_rules, reader_of: ReaderOf | None = None) -> None:
        super().__init__(Machine(settings, parse, parse_rules, clock or Clock(), backend or Backend(settings), reader_of))

    # --- life

    def start(self) -> None:
        """Open the data folder and begin to start Spark; `ready` tells when it is done."""
        self._machine.start()

    def stop(self) -> None:
        self._machine.stop()

    @property
    def ready(self) -> bool:
        """Whether commands are taken and questions answered; also while the evaluator is started again."""
        return self._machine.state in ("running", "restarting")

    @property
    def state(self) -> str:
        return self._machine.state

    @property
    def progress(self) -> str:
        """What start-up is doing, or why the engine failed."""
        return self._machine.progress

    def health(self) -> tuple[bool, dict[str, Any]]:
        """Whether the engine does its work, and what ``/health/ready`` tells beside that."""
        return self._machine.health()

    def info(self) -> dict[str, Any]:
        return {"backlog": self._machine.backlog if self.ready else None, "reserveBytes": self._machine.reserve,
                "watch": {"silenceSeconds": self.settings.silence_s, "stallSeconds": self.settings.stall_s,
                          "restartsInARow": self.settings.restarts_in_a_row},
                "engineLimits": self.settings.bounds(),
                "quotas": usage(self._machine.view.catalogue, self.settings) if self.ready else None,
                "totals": dict(self._machine.snapshot.measured.totals), **self._machine.backend.describe()}

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with each notice, from engine threads, until the returned function is called."""
        return self._machine.listeners.subscribe(listener)

    def tell_when(self, name: str, at_ms: int) -> Callable[[], object]:
        """See that a notice tells when a query's progress is past a time, even if nothing comes on its arrival streams. Ends when the
        returned function is called."""
        view = self._machine.view
        # Progress soon after the last notice is not told (Meters.news): one mark may not be enough.
        times = (at_ms + later for later in (1, 1_000, 5_000, 30_000))
        return self._machine.timer.ask(view.catalogue.queries.awaited(zip(repeat(self._query(name, view)), times)))

    # --- topics

    def sinks(self) -> dict[str, tuple[str, Mapping[str, Any]]]:
        """The queries whose results go to a topic: their generation, and the option ``sink``."""
        queries = self._machine.view.catalogue.queries
        return {query.name: (query.epoch, query.definition.options["sink"]) for query in queries.values()
                if "sink" in query.definition.options}

    def topic_writer(self, servers: str, topic: str, transactions: str) -> TopicWriter:
        """What writes to a topic, in transactions of that id; it ends with Spark. Raises EngineError while there is none, and what the
        client of the brokers does."""
        self._machine.check_evaluating()
        return self._machine.backend.topic_writer(servers, topic, transactions)

    # --- plans

    def explain(self, text: str, stage: str = "logical", media: str | None = None) -> dict[str, Any]:
        """What would become of a text, with its plan at `stage`. Nothing is registered."""
        view = self._machine.view
        statement = _with_data(self._statement(text, media), view)
        name = self._query_name(statement, None, view) if statement.registered else ""
        compiled = self._compile(statement, name, {}, view, own_iri(statement, f"{self.settings.base_url}/queries/{name}"))
        return {"stage": stage, "plan": compiled.explain(stage), "form": statement.form, "vars": list(statement.columns),
                "nodes": compiled.tree(), "streams": _sources(statement, view), "warnings": _warnings(statement, view),
                "estimate": needs_of(statement, view, self.clock.now_ms()).to_json()}

    def warnings(self, text: str, media: str | None = None) -> list[Diagnostic]:
        view = self._machine.view
        return _warnings(_with_data(self._statement(text, media), view), view)

    def plan(self, name: str, stage: str = "logical") -> str:
        view = self._machine.view
        query = self._query(name, view)
        if stage != "logical":
            return self._compiled(query, view).explain(stage)
        ran = view.snapshot.ran.get(query.epoch)
        shown = self._compiled(query, view).explain(stage, "plain" if ran is None else ran.form)
        stages = held_facts(query.statement, view.seen(query)).get("stages", ())
        shown += "".join(f"-- stage {number} holds {stage['factsHeld']} facts now\n" for number, stage in enumerate(stages, 1))
        return shown if ran is None else f"{shown.rstrip()}\n{ran.text(users_of(view.snapshot.ran.values()))}"

    def plan_nodes(self, name: str) -> dict[str, Any]:
        """The plan as nested nodes, with executor, strategy and graph problems of the last evaluation."""
        view = self._machine.view
        query = self._query(name, view)
        problems = [{"problem": chosen.problem, "edges": chosen.edges, "way": chosen.way}
                    for chosen in view.snapshot.graph_choices.get(query.epoch, ())]
        return {"query": name, **_chosen(query, view), "graphs": problems, "streams": _sources(query.statement, view),
                "plan": self._compiled(query, view).tree()}

    def stats(self, name: str) -> dict[str, Any]:
        view = self._machine.view
        query = self._query(name, view)
        info, bounds, seen = self._info(query, view), self.results.bounds(name), view.seen(query)
        kept = {"oldest": bounds.oldest, "newest": bounds.newest} if bounds.epoch == query.epoch else {"oldest": 0, "newest": 0}
        return {"query": name, "state": info.state, "progress": info.progress, **_chosen(query, view),
                "results": {"epoch": query.epoch, **kept, "logged": 0 if seen is None else seen.seq},
                **held_facts(query.statement, seen),
                "backlog": self._machine.backlog, "batches": list(view.snapshot.measured.batches)}

    def _compiled(self, query: Registered, view: View) -> Compiled:
        """The query as the pump has compiled it, or as it will."""
        seen = view.seen(query)
        if seen is None and view.standing(query) != "failed":
            return self._compile(query.statement, query.name, query.definition.options, view, query.definition.stream)
        if seen is None or seen.compiled is None:
            raise EngineError("query-failed", 409, f"The query {query.name!r} has no plan: {view.error(query)}")
        return seen.compiled

    def evidence(self, name: str, result_id: str) -> Evidence:
        """What the evaluation of a result saw: 404 ``no-such-result``, 410 ``no-longer-kept`` where some of it is no longer there."""
        view = self._machine.view
        return evidence_of(self.results, self._machine.folder, view, self._query(name, view), result_id)

    def held(self, name: str) -> Held:
        """What a rule program has told to hold and not to cease, up to its last committed result."""
        query = self._query(name, self._machine.view)
        return held_of(self.results.relation(name), query.epoch, query.statement.columns,
                       isinstance(query.statement.query, TimedProgram), self.settings.max_result_rows)

    # --- one-shot queries

    def sparql(self, text: str, timeout_s: float | None = None, graphs: Sequence[GraphSource] = ()) -> OneShot:
        """Evaluate a query once: over static graphs (`graphs`, else those that it names, else all of them) and the windows it names, as
        they are now. The time counts from here, so that reading and compiling the text are part of it."""
        self._machine.check_evaluating()
        timeout_s = timeout_s or self.settings.one_shot_timeout_s
        deadline = time.monotonic() + timeout_s
        statement = self._machine.parse(text)
        if statement.streams:
            self._machine.catch_up()
        view = self._machine.view
        snapshot = view.snapshot
        statement = changed(statement, graphs=tuple(graphs)) if graphs else _with_data(statement, view)
        _check_in_time(deadline, timeout_s)
        compiled = self._compile(statement, "", {"mixedTime": True}, view, asked_once=True)
        left_s = _check_in_time(deadline, timeout_s)
        streams = {source.stream for source in statement.streams}
        contents = {stream: snapshot.content(stream) for stream in streams}
        reached = [snapshot.streams[stream].watermark for stream in streams if stream in snapshot.streams]
        reached += [query.reached for stream in streams for query in snapshot.queries.readers(stream)]  # that of an idle one stands still
        tick = max(reached, default=MIN) + 1 if streams else self.clock.now_ms()
        limits = changed(self.settings.evaluation, evaluation_ms=math.ceil(left_s * 1000))
        due = Due("one-shot", compiled, (max(tick, 0),), -1, contents, view.graphs, limits, paths=self.settings.paths)
        for source in statement.streams:
            check_kept(source, contents[source.stream], snapshot.streams.get(source.stream), due.evaluation,
                       snapshot.queries.readers(source.stream))
        try:
            answer = self._machine.backend.one_shot(due, left_s)
        except TimeoutError as late:
            raise EngineError("query-timeout", 503, f"The query was cancelled: {late}.") from late
        if answer.error is not None and not self._machine.backend.alive():
            raise unavailable("engine-restarting", "Spark has ended while it evaluated the query; it is started again.", 5)
        if isinstance(answer.error, LimitExceeded):
            if answer.error.limit == "evaluation_ms":
                raise EngineError("query-timeout", 503, f"The query was cancelled: no answer within {left_s:g} s.")
            raise EngineError("over-limit", 422, f"{answer.error.detail}.", {"limit": answer.error.limit})
        if answer.error is not None or answer.table is None:
            raise EngineError("internal", 500, f"The query failed: {answer.error}")
        return OneShot(statement.form, answer.table)


def _check_in_time(deadline: float, timeout_s: float) -> float:
    """The seconds until a time of the monotonic clock; 503 if there are none."""
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise EngineError("query-timeout", 503, f"The query was cancelled before it was evaluated: it had {timeout_s:g} s.")
    return left_s


def _with_data(statement: Statement, view: View) -> Statement:
    """A plain query that names no data reads the default graph of the catalog, and every other graph by its name."""
    if statement.registered or statement.streams or statement.graphs:
        return statement
    return changed(statement, graphs=tuple(GraphSource(iri, named=iri != DEFAULT_GRAPH) for iri in sorted(view.graphs)))


def _warnings(statement: Statement, view: View) -> list[Diagnostic]:
    return statement_warnings(statement, view.graphs, view.catalogue.rule_sets, shown_by(view.snapshot, statement))


def _sources(statement: Statement, view: View) -> list[dict[str, str | None]]:
    makers = view.catalogue.queries.makers
    return [{"iri": iri, "query": makers[iri].name if iri in makers else None}
            for iri in dict.fromkeys(source.stream for source in statement.streams)]


def _chosen(query: Registered, view: View) -> dict[str, Any]:
    """Executor and strategy of a query's last evaluation, where the executor has a choice, and how it `ran`."""
    executor, strategy = view.snapshot.choices.get(query.epoch, (None, None))
    ran = view.snapshot.ran.get(query.epoch)
    return {"executor": executor, "strategy": strategy, "ran": None if ran is None else ran.to_json(users_of(view.snapshot.ran.values()))}
