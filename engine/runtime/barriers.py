"""The first half of the pump: the state that results depend on, and what the records that cut a batch (batch.py) do to it: registrations,
pauses, restarts, versions of graphs and rule sets. What was due before such a record is done when it comes here."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from engine.compiler import BUILT_IN_RULES
from engine.execution.compiled import Compiled
from engine.ir.rules import RuleSet
from engine.ir.statement import Statement
from engine.limits import LimitExceeded
from engine.runtime.batch import Compile, Executor, History, Limits, LostError, Outcome, ProducerFailedError
from engine.runtime.catalogue import Key, plan_key
from engine.runtime.data_folder import SetAside, Trouble
from engine.runtime.kept import KeptStreams
from engine.runtime.query import LiveQuery
from engine.runtime.registered import Definition, Queries, kept_statement, own_iri
from engine.runtime.resources import Notice
from engine.runtime.results import Changes
from engine.runtime.rows import Control, Kind
from engine.runtime.stores import GraphStore, ParseRules, RuleStore
from engine.runtime.streams import Source
from engine.runtime.verdicts import Ahead
from engine.timeline import MIN


class Barriers:
    """Queries, streams, graphs and rule sets, changed by the records that stand at barriers."""

    def __init__(self, executor: Executor, parse: Callable[[str], Statement], parse_rules: ParseRules, compile_query: Compile,
                 graph_folder: Path | None, limits: Limits, history: History, aside: SetAside | None = None,
                 planned: Callable[[Key], Compiled | None] = lambda key: None) -> None:
        self.executor = executor
        self._planned = planned
        self.queries = Queries[LiveQuery]()
        self.kept = KeptStreams(limits.tail, limits.tail_bytes)
        self.store = GraphStore(graph_folder, aside)
        self.rule_store = RuleStore(parse_rules)
        self._parse, self._compile, self._limits, self._history = parse, compile_query, limits, history
        self._numbers = 0
        self.plans = 0      # so many were made or dropped
        self._ended = False
        self.ahead = Ahead()
        self._outcome = Outcome()
        self._changes = Changes(0)

    @property
    def rules(self) -> Mapping[str, RuleSet]:
        return {**BUILT_IN_RULES, **self.rule_store.sets}

    def watermark(self, query: LiveQuery, known: dict[tuple[str, ...], int] | None = None) -> int:
        """The time up to which the query may be evaluated; while all its streams are idle, as far as those that read what it makes.
        `known` has, and gets, the watermarks of streams together, as they are now."""
        if self._ended:
            return query.ticker.last()
        known = {} if known is None else known
        if query.streams not in known:
            known[query.streams] = self.kept.watermark(query.streams)
        own = known[query.streams]
        if query.makes is None or not self.kept.all_idle(query.streams) or not self.queries.readers(query.makes):
            return own
        return max(own, self.queries.reaches(self.kept.reached)[query.name])

    def _apply(self, control: Control, segment: pa.Table) -> None:
        name = control.stream
        match control.kind:
            case Kind.REGISTER:
                self._register(control)
            case Kind.GRAPH:
                self._changes.graphs[name] = self.store.apply(control, segment)
                change = "changed" if name in self.store.tables else "removed"
                self._plan_anew(self.queries.using_graph(name), f"graph {name} {change}")
                self._revive(f"graph <{name}>", control.position)
            case Kind.RULES:
                self._changes.rules[name] = self.rule_store.apply(control)
                change = "changed" if name in self.rules else "removed"
                self._plan_anew(self.queries.using_rules(name), f"rules {name} {change}")
                self._revive(f"rules {name}", control.position)
            case Kind.STREAM:
                self._stream(control)
            case Kind.END:
                self._ended = True
            case Kind.UNREGISTER if name in self.queries:
                self._unregister(self.queries[name])
            case _ if name in self.queries:
                self._change_state(self.queries[name], control)

    def changed_by(self, control: Control) -> list[LiveQuery]:
        """The queries that see something else from the record at a barrier on, and those that read what they make."""
        match control.kind:
            case Kind.GRAPH:
                users = self.queries.using_graph(control.stream)
            case Kind.RULES:
                users = self.queries.using_rules(control.stream)
            case Kind.PAUSE | Kind.RESUME if control.stream in self.queries:
                users = [self.queries[control.stream]]
            case Kind.END:
                users = list(self.queries.values())
            case _:
                users = []
        return [query for user in users for query in (user, *self.queries.dependents(user))]

    def troubles(self) -> Iterator[Trouble]:
        yield from (Trouble("graph", iri, reason) for iri, reason in sorted(self.store.lost.items()))
        yield from (Trouble("rules", name, reason) for name, reason in sorted(self.rule_store.lost.items()))
        yield from (Trouble("query", query.name, query.error or "") for query in self.queries.values() if query.state == "failed")

    # --- registrations

    def _statement(self, text: str, media: str | None) -> tuple[Statement, Exception | None]:
        return kept_statement(text, media, self._parse, self.rule_store.parse, self.rules)

    def _register(self, control: Control) -> None:
        name, payload = control.stream, control.payload
        old = self.queries.get(name)
        statement, failure = self._statement(payload["text"], payload.get("media"))
        definition = Definition.of(name, payload, own_iri(statement, payload.get("stream")), old.definition if old else None, self._numbers)
        self._numbers = max(self._numbers, definition.number)
        query = LiveQuery(definition, statement, None, MIN)
        self._plan(query, failure)
        if old is not None:
            self._forget_epoch(old.definition.epoch)
            del self.queries[name]      # the new one is evaluated last
        self.queries[name] = query
        query.relation_changed = True   # there may be that of the query which it replaces
        if old is not None and old.makes is not None and old.makes != query.makes:
            self._forget(old.makes)
        query.ticker.skip(self._begin(query))
        if definition.since < control.position - 1:
            pushed = [stream for stream in query.streams if stream not in self.queries.makers]
            self.kept.refill(pushed, self._history(dict.fromkeys(pushed, MIN), control.position))
            self._see_again([query])
        self._outcome.notices.append(Notice("epoch", name, data={"epoch": definition.epoch, "replaced": old is not None}))
        self._status(query, None, "registered")
        self._restart_dependents(query, control.position)

    def _begin(self, query: LiveQuery) -> int:
        """The time after which a query is evaluated: its watermark, and no time at which the stream that it makes has been already."""
        made = self.kept.states.get(query.makes) if query.makes is not None else None
        return max(self.watermark(query), made.watermark if made is not None else MIN)

    def _unregister(self, query: LiveQuery) -> None:
        del self.queries[query.name]
        self.plans += 1
        self._changes.queries[query.name] = None
        self._forget_epoch(query.definition.epoch)
        if query.makes is not None:
            self._forget(query.makes)
        self._outcome.notices.append(Notice("removed", query.name, data={"epoch": query.definition.epoch}))

    def _stream(self, control: Control) -> None:
        """A pushed stream begins, or goes with all that was kept of it."""
        iri, descriptor, changes = control.stream, control.payload["descriptor"], self._changes
        if descriptor is not None:
            Source.of(descriptor, {}, 0)    # raises where the next start could not read it
        changes.descriptors.append((control.payload["name"], iri, descriptor))
        if descriptor is None:
            self._forget(iri)
            changes.letters = [entry for entry in changes.letters if entry[0] != iri]
            changes.receipts = [entry for entry in changes.receipts if entry[0] != iri]

    def _forget_epoch(self, epoch: str) -> None:
        """A generation of a query is not evaluated any more, or in another way."""
        self.executor.forget(epoch)

    def _forget(self, gone: str) -> None:
        """A stream has ended: what comes under its name from now on belongs to another stream."""
        self.kept.forget(gone)
        self._outcome.gone.add(gone)
        self._outcome.came.pop(gone, None)
        self._changes.gone.append(gone)
        self._changes.made = [(stream, facts) for stream, facts in self._changes.made if stream != gone]

    def _plan(self, query: LiveQuery, failure: Exception | None = None) -> None:
        """Compile, against the graphs and rule sets as they are now; a query whose text was not understood fails with that."""
        self.plans += 1
        lost = [(f"graph <{iri}>", self.store.lost[iri]) for iri in sorted(query.graphs) if iri in self.store.lost]
        lost += [(f"rules {name}", self.rule_store.lost[name]) for name in sorted(query.rules) if name in self.rule_store.lost]
        if failure is not None or lost:
            query.fail(failure or LostError(lost[0][1]), lost[0][0] if lost else None)
            return
        try:
            key = plan_key(query.definition, query.statement, self.store.versions, self.rule_store.stored)
            query.compiled = self._planned(key) or self._compile(query.statement, query.name, self.store.tables, self.rules)
        except Exception as error:  # whatever a compiler raises is this query's failure, not the pump's
            query.fail(error)

    # --- states

    def _change_state(self, query: LiveQuery, control: Control) -> None:
        before, watermark = query.state, self.watermark(query)
        if control.kind is Kind.PAUSE and query.state == "running":
            query.state = "paused"
            if query.makes is not None:
                self.kept.states[query.makes].idle = False
        elif control.kind is Kind.RESUME and query.state == "failed":
            self._restart(query, control.position)
            self._restart_dependents(query, control.position)
            return
        elif control.kind is Kind.RESUME and query.state == "paused":
            query.state = "running"
            if query.overrun or self.overruns(query):
                self._fail(query, LimitExceeded.of("state_rows", self._state_rows(query),
                                                   "while it was paused more rows came, all of which its rules have to see"))
                return
            query.ticker.skip(self._backlog_from(watermark) if control.payload["backlog"] else watermark)
        if query.state != before:
            self._status(query, before, control.kind.name.lower())

    def overruns(self, query: LiveQuery) -> bool:
        """Whether more rows have come since its rules were taken on than they may have to see at once."""
        contents, most = {stream: self.kept.contents[stream] for stream in query.streams}, self._state_rows(query)
        return sum(content.rows for content in contents.values()) > most and query.unseen(contents) > most

    def _state_rows(self, query: LiveQuery) -> int:
        return self._limits.evaluation.own(query.definition.options.get("limits", {})).state_rows

    def _restart(self, query: LiveQuery, position: int) -> None:
        query.statement, failure = self._statement(query.definition.text, query.definition.media)
        query.restart(self._begin(query), position)
        self._plan(query, failure)
        self._status(query, "failed", "failure" if query.state == "failed" else "resume")

    def _restart_dependents(self, query: LiveQuery, position: int) -> None:
        """What failed with a producer goes on with it."""
        if query.state != "running":
            return
        restarted = {query.name}
        for reader in self.queries.dependents(query):
            if reader.state == "failed" and reader.failed_with in restarted:
                self._restart(reader, position)
                restarted.add(reader.name)

    def _revive(self, lost: str, position: int) -> None:
        """What was lost is there again, or was given up: the queries that failed with it go on if they can."""
        for query in [query for query in self.queries.values() if query.state == "failed" and query.failed_with == lost]:
            self._restart(query, position)
            self._restart_dependents(query, position)

    def _fail(self, query: LiveQuery, error: BaseException, producer: str | None = None) -> None:
        """A query fails, and with it those that read what it makes: they would wait for ever."""
        before = query.state
        query.fail(error, producer)
        self._forget_epoch(query.definition.epoch)
        self._status(query, before, "failure")
        for reader in self.queries.readers(query.makes):
            if reader.state != "failed":
                self._fail(reader, ProducerFailedError(f"the query {query.name!r}, whose stream it reads, has failed"), query.name)

    def _status(self, query: LiveQuery, before: str | None, reason: str) -> None:
        data: dict[str, Any] = {"state": query.state, "previous": before, "reason": reason}
        if query.error is not None:
            data["problem"] = {"title": "The query failed", "detail": query.error}
        self._outcome.notices.append(Notice("status", query.name, data=data))

    def _backlog_from(self, watermark: int) -> int:
        return watermark - self._limits.backlog_ms if watermark > MIN else MIN

    # --- graphs and rule sets

    def _plan_anew(self, users: Iterable[LiveQuery], reason: str) -> None:
        """What these queries use has changed. One that cannot be planned any more fails, the others go on."""
        for query in users:
            if query.state == "failed":
                continue
            before = query.state
            self._forget_epoch(query.definition.epoch)
            self._plan(query)
            if query.state == "failed":
                query.state = before
                self._fail(query, query.cause or RuntimeError("the query could not be planned"))
                continue
            self._status(query, before, reason)

    def _see_again(self, queries: Sequence[LiveQuery]) -> None:
        for query in queries:
            for stream in query.streams:
                query.ticker.see(stream, self.kept.times(stream, query.definition.since))
