"""An engine without Spark: the surface of engine.runtime.service.Engine, everything in memory, answers given by the test.

Queries are not evaluated: `answer` logs a result as the pump would. A text with ``SYNTAX`` in it is refused with a place.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from engine.ir.spans import Diagnostic, DiagnosticError, Span
from engine.ir.statement import GraphSource
from engine.records import Triple
from engine.runtime.errors import EngineError, conflict, not_found
from engine.runtime.holding import Held, held_of
from engine.output import payload
from engine.runtime.resources import (RESULT_KINDS, DeadLetter, GraphInfo, Item, Listener, Notice, OneShot, QueryInfo, Receipt, Rejection,
                                      ResultEvent, RuleSetInfo, StreamInfo, TailEvent, TailPart)
from engine.runtime.results import Changes, ResultLog
from engine.runtime.settings import Settings
from engine.runtime.streams import check_name, describe
from tests.clocks import ManualClock

BASE = "http://localhost:8175"
Check = Callable[[Any], None] | None
NOW = 1_763_701_440_000


class FakeEngine:
    """See the module."""

    def __init__(self) -> None:
        self.clock, self.settings = ManualClock(NOW), Settings()
        self.ready = True
        self.state = "running"
        self.progress = "ready"
        self.results = ResultLog(None)
        self.data_sets: list[tuple[tuple[str, bool], ...]] = []
        self.pushes: list[tuple[str, list[Item], int | None, str | None]] = []
        self._streams: dict[str, StreamInfo] = {}
        self._events: dict[str, list[TailEvent]] = {}
        self._letters: dict[str, list[DeadLetter]] = {}
        self._receipts: dict[tuple[str, str], Receipt] = {}
        self._digests: dict[tuple[str, str], str | None] = {}
        self._queries: dict[str, QueryInfo] = {}
        self._removed: set[str] = set()
        self._seq: dict[str, int] = {}
        self._graphs: dict[str, list[Triple]] = {}
        self._rules: dict[str, RuleSetInfo] = {}
        self._listeners: list[Listener] = []
        self._lock = threading.RLock()
        self._number = 0

    def start(self) -> None:
        """Nothing to start."""

    def stop(self) -> None:
        self.state, self.ready = "stopping", False

    # --- streams

    def put_stream(self, name: str, descriptor: dict[str, Any], check: Check = None) -> tuple[StreamInfo, bool]:
        check_name(name)
        described = describe(name, descriptor, BASE)
        _ask(check, self._streams.get(name))
        if name in self._streams:
            if self._streams[name].descriptor != described:
                raise conflict(f"The stream {name!r} has another descriptor.", name=name)
            return self._streams[name], False
        state = {"items": 0, "late": 0, "deadLetters": 0, "watermark": None}
        self._streams[name] = StreamInfo(name, described["iri"], described, state, ())
        self._events[name], self._letters[name] = [], []
        return self._streams[name], True

    def streams(self) -> list[StreamInfo]:
        return list(self._streams.values())

    def stream(self, name: str) -> StreamInfo:
        if name not in self._streams:
            raise not_found("stream", name)
        users = tuple(q.name for q in self._queries.values() if self._streams[name].iri in q.streams)
        return replace(self._streams[name], used_by=users, state={**self._streams[name].state, "items": len(self._events[name])})

    def delete_stream(self, name: str, force: bool = False, check: Check = None) -> None:
        _ask(check, self.stream(name))
        if self.stream(name).used_by and not force:
            raise EngineError("in-use", 409, f"Queries use the stream {name!r}.", {"usedBy": list(self.stream(name).used_by)})
        del self._streams[name]

    def push(self, name: str, items: Sequence[Item], *, watermark_ms: int | None = None, idempotency_key: str | None = None,
             rejected: Sequence[Rejection] = (), skip: bool = False, digest: str | None = None) -> Receipt:
        self.stream(name)
        if idempotency_key and (name, idempotency_key) in self._receipts:
            if self._digests[name, idempotency_key] != digest:
                raise EngineError("idempotency-key-reused", 422, "The key was used for another request.")
            return replace(self._receipts[name, idempotency_key], repeated=True)
        self.pushes.append((name, list(items), watermark_ms, idempotency_key))
        first = sum(map(len, self._events.values())) + 1
        for number, item in enumerate(items):
            self._events[name].append(TailEvent(first + number, NOW if item.t_ms is None else item.t_ms, item.graph, item.triples))
        self._letters[name] += [DeadLetter(name, first, r.reason, None, r.text or "") for r in rejected]
        receipt = Receipt(len(items), 0, len(rejected), str(first), str(first + len(items) - 1), watermark_ms,
                          tuple({"detail": r.reason, "place": r.place} for r in rejected))
        if idempotency_key:
            self._receipts[name, idempotency_key], self._digests[name, idempotency_key] = receipt, digest
        return receipt

    def forget(self) -> None:
        """Forget all items and dead letters."""
        self.pushes.clear()
        for kept in (*self._events.values(), *self._letters.values()):
            kept.clear()  # type: ignore[attr-defined]

    def push_table(self, name: str, table: pa.Table, **wishes: Any) -> Receipt:
        return self.push(name, items_of(table), **wishes)

    def tail(self, name: str, limit: int = 100, since: int = 0) -> list[TailEvent]:
        self.stream(name)
        return [event for event in self._events[name] if event.position > since][-limit:]

    def tail_part(self, name: str, limit: int = 100, since: int = 0) -> TailPart:
        after = [event for event in self._events[self.stream(name).name] if event.position > since]
        return TailPart(after[-limit:], len(after) <= limit)

    def dead_letters(self, name: str) -> list[DeadLetter]:
        self.stream(name)
        return self._letters[name]

    # --- graphs and rules

    def put_graph(self, iri: str, triples: Sequence[Triple], replace: bool = True, check: Check = None) -> tuple[GraphInfo, bool]:
        created = iri not in self._graphs
        _ask(check, None if created else self._graph_info(iri))
        before = [] if replace or created else self._graphs[iri]
        self._graphs[iri] = list(dict.fromkeys([*before, *triples]))
        return self._graph_info(iri), created

    def graphs(self) -> list[GraphInfo]:
        return [self._graph_info(iri) for iri in self._graphs]

    def graph(self, iri: str) -> tuple[GraphInfo, list[Triple]]:
        if iri not in self._graphs:
            raise not_found("graph", iri)
        return self._graph_info(iri), self._graphs[iri]

    def delete_graph(self, iri: str, check: Check = None) -> None:
        _ask(check, self.graph(iri)[0])
        del self._graphs[iri]

    def rule_sets(self) -> list[RuleSetInfo]:
        return [RuleSetInfo("rdfs", True, "The RDFS entailment rules.", None, None, "built-in"), *self._rules.values()]

    def rule_set(self, name: str) -> RuleSetInfo:
        return next((info for info in self.rule_sets() if info.name == name), None) or self._no_rules(name)

    def put_rules(self, name: str, media: str, text: str, check: Check = None) -> tuple[RuleSetInfo, bool]:
        check_name(name)
        self._writable(name)
        _ask(check, self._rules.get(name))
        clauses, created = self.check_rules(media, text), name not in self._rules
        self._rules[name] = RuleSetInfo(name, False, None, media, clauses, hashlib.sha256(text.encode()).hexdigest()[:16], (), text)
        return self._rules[name], created

    def check_rules(self, media: str, text: str) -> int:
        if "SYNTAX" in text:
            raise DiagnosticError(Diagnostic("rule-syntax", "Expected a rule.", Span(text, text.index("SYNTAX"), len(text))))
        return 1

    def delete_rules(self, name: str, check: Check = None) -> None:
        self._writable(name)
        _ask(check, self.rule_set(name))
        if self.rule_set(name).used_by:
            raise EngineError("in-use", 409, "It is in use.", {"usedBy": list(self.rule_set(name).used_by)})
        del self._rules[name]

    def use_rules(self, name: str, *queries: str) -> None:
        """Let queries use a rule set."""
        self._rules[name] = replace(self._rules[name], used_by=queries)

    @staticmethod
    def _no_rules(name: str) -> RuleSetInfo:
        raise not_found("rules", name)

    @staticmethod
    def _writable(name: str) -> None:
        if name == "rdfs":
            raise EngineError("method-not-allowed", 405, "It is built in.", {"allowed": ["GET", "HEAD"]})

    def _graph_info(self, iri: str) -> GraphInfo:
        return GraphInfo(iri, len(self._graphs[iri]), hashlib.sha256(repr(self._graphs[iri]).encode()).hexdigest()[:16])

    # --- queries

    def register(self, text: str, name: str | None = None, options: dict[str, Any] | None = None,
                 check: Check = None) -> tuple[QueryInfo, bool]:
        form, written = _parse(text)
        name = check_name(name or written or f"query{len(self._queries) + 1}")
        _ask(check, self._queries.get(name))
        if name in self._queries:
            if self._queries[name].text == text:
                return self._queries[name], False
            raise conflict(f"The query {name!r} has another text.", name=name)
        streams = tuple(re.findall(r"(?i)FROM\s+STREAM\s+<([^>]*)>", text))
        for iri in streams:
            if iri not in {s.iri for s in self._streams.values()}:
                raise EngineError("unknown-stream", 422, f"There is no stream <{iri}>.", {"stream": iri})
        self._number += 1
        output = next((word.lower() for word in ("ISTREAM", "DSTREAM") if word in text.upper()), "rstream")
        variables = tuple(dict.fromkeys(re.findall(r"[?$](\w+)", text)))
        info = QueryInfo(name, f"{BASE}/queries/{name}", form, "csparql", text, output, "close", streams, (), (),
                         ({"stream": "http://ex.org/temps", "range": "PT10S", "step": "PT2S"},), variables,
                         "running", f"q{self._number}c1", NOW, 0, None, {"watermarkLagMs": 0}, dict(options or {}))
        self._queries[name], self._seq[name] = info, 0
        self._removed.discard(name)
        return info, True

    def queries(self) -> list[QueryInfo]:
        return list(self._queries.values())

    def evidence(self, name: str, result_id: str) -> None:
        """Nothing is kept of what results were made from."""
        self.query(name)
        raise EngineError("no-such-result", 404, f"There is no result {result_id!r}.")

    def query(self, name: str) -> QueryInfo:
        if name in self._removed:
            raise EngineError("query-removed", 410, f"The query {name!r} was removed.", {"name": name})
        if name not in self._queries:
            raise not_found("query", name)
        return self._queries[name]

    def delete_query(self, name: str, force: bool = False, check: Check = None) -> None:
        _ask(check, self.query(name))
        del self._queries[name]
        self._removed.add(name)
        self.results.commit(Changes(0, queries={name: None}), NOW)
        self.tell(Notice("removed", name))

    def patch_query(self, name: str, state: str, resume: str = "now", force: bool = False, check: Check = None) -> QueryInfo:
        info = self.query(name)
        _ask(check, info)
        if state not in ("paused", "running"):
            raise EngineError("bad-transition", 409, f"A query cannot be made {state!r}.", {"state": info.state})
        self._queries[name] = replace(info, state=state)
        self.tell(Notice("status", name, data={"state": state, "previous": info.state, "reason": "request"}))
        return self._queries[name]

    def restart_query(self, name: str, reset: bool = False, force: bool = False, check: Check = None) -> QueryInfo:
        info = self.query(name)
        _ask(check, info)
        if reset:
            self.new_epoch(name)
        self._queries[name] = replace(self._queries[name], restarts=info.restarts + 1)
        return self._queries[name]

    def explain(self, text: str, stage: str = "spark", media: str | None = None) -> dict[str, Any]:
        form, _ = _parse(text)
        return {"stage": stage, "plan": f"{stage} plan of a {form}", "estimate": {"rows": 1}, "warnings": self.warnings(text)}

    def warnings(self, text: str, media: str | None = None) -> list[Diagnostic]:
        at = text.find("DOUBT")
        return [Diagnostic("unknown-word", "Nothing has it.", Span(text, at, at + 5))] if at >= 0 else []

    def held(self, name: str) -> Held:
        info = self.query(name)
        return held_of(None, str(info.epoch), info.variables, False, 1_000)

    def plan(self, name: str, stage: str = "spark") -> str:
        return f"{stage} plan of {self.query(name).name}"

    def plan_nodes(self, name: str) -> dict[str, Any]:
        return {"query": self.query(name).name, "nodes": []}

    def stats(self, name: str) -> dict[str, Any]:
        return {"query": self.query(name).name, "batches": []}

    def sparql(self, text: str, timeout_s: float = 10.0, graphs: Sequence[GraphSource] = ()) -> OneShot:
        self.data_sets.append(tuple((source.iri, source.named) for source in graphs))
        form, _ = _parse(text)
        if form in ("CONSTRUCT", "DESCRIBE"):
            return OneShot(form, pa.table({"s": ["<http://a>"], "p": ["<http://b>"], "o": ['"é"']}))
        if form == "ASK":
            return OneShot(form, pa.table({"_": pa.nulls(1, pa.string())}))
        return OneShot(form, rows(s=["<http://a>", "_:b"], o=['"1"^^<http://www.w3.org/2001/XMLSchema#integer>', None]))

    # --- what a test does in place of the pump

    def health(self) -> tuple[bool, dict[str, Any]]:
        return self.ready, {"degraded": []}

    def sinks(self) -> dict[str, tuple[str, Any]]:
        return {}

    def topic_writer(self, servers: str, topic: str, transactions: str) -> Any:
        raise EngineError("internal", 500, "There are no brokers here.")

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def tell_when(self, name: str, at_ms: int) -> Callable[[], object]:
        """Nothing is told by itself here."""
        self.query(name)
        return lambda: None

    def tell(self, notice: Notice) -> None:
        """Notify the listeners, as the pump does after its commit."""
        for listener in list(self._listeners):
            listener(notice)

    def new_epoch(self, name: str) -> None:
        """A new generation: older results are gone."""
        info = self._queries[name]
        head, _, generation = (info.epoch or "q0c0").rpartition("c")
        self._queries[name], self._seq[name] = replace(info, epoch=f"{head}c{int(generation) + 1}"), 0
        self.results.commit(Changes(0, queries={name: ({"name": name, "epoch": self._queries[name].epoch}, {})}), NOW)
        self.tell(Notice("epoch", name, data={"epoch": self._queries[name].epoch}))

    def progress_of(self, name: str, **progress: Any) -> None:
        """Set what a query knows of its progress, telling nobody."""
        self._queries[name] = replace(self._queries[name], progress=progress)

    def answer(self, name: str, table: pa.Table, at_ms: int | None = None, relation: pa.Table | None = None) -> ResultEvent:
        """Log the next result of a query and tell of it."""
        with self._lock:
            info = self._queries[name]
            self._seq[name] += 1
            at = NOW + self._seq[name] * 1000 if at_ms is None else at_ms
            event = ResultEvent(name, info.epoch or "", self._seq[name], at, at, RESULT_KINDS[info.form], info.output,
                                payload(info.form, table), None if relation is None else payload(info.form, relation),
                                {"windows": [{"stream": "http://ex.org/temps", "open": at - 10_000, "close": at}], "rows": table.num_rows})
            self.results.commit(Changes(0, results=[event]), NOW)
        self.tell(Notice("result", name, event))
        return event


def _ask(check: Check, info: Any) -> None:
    """Let a command's condition look at what there is."""
    if check is not None:
        check(info)


def rows(**columns: Sequence[str | None]) -> pa.Table:
    """A table of tokens."""
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})


def items_of(table: pa.Table) -> list[Item]:
    """The items of a table with columns item, t, g, s, p, o."""
    found: dict[int, Item] = {}
    for row in table.to_pylist():
        before = found.get(row["item"], Item(row["t"], row["g"], (), row.get("scope")))
        found[row["item"]] = replace(before, triples=(*before.triples, (row["s"], row["p"], row["o"])))
    assert list(found) == list(range(len(found)))
    return list(found.values())


def _parse(text: str) -> tuple[str, str | None]:
    """The query form and the registered name; a place for ``SYNTAX``."""
    at = text.find("SYNTAX")
    form = re.search(r"(?i)\b(SELECT|CONSTRUCT|ASK|DESCRIBE)\b", text)
    if at >= 0 or form is None:
        span = Span(text, max(at, 0), max(at, 0) + 6)
        raise DiagnosticError(Diagnostic("query-syntax", "Expected something else.", span, hint="Write it otherwise."))
    named = re.search(r"(?i)REGISTER\s+(?:QUERY|STREAM)\s+(?!AS\b)(\w+)", text)
    return form[1].upper(), named[1] if named else None
