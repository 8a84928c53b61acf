"""What is decided once, when something is appended: positions, stamps, lateness, watermarks,
idleness, whose blank nodes these are; and the end of the log, made again at a start.

The log forks the `Appender` for each group of commands, and adopts it when the group is on disk."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.ir.statement import Statement
from engine.runtime.batch import sound_watermark
from engine.runtime.catalogue import Catalogue, GraphVersion
from engine.runtime.errors import EngineError, not_found
from engine.runtime.log import LogFolder
from engine.runtime.registered import Definition, FixedQueries, Registered, kept_statement
from engine.runtime.resources import Receipt, Rejection
from engine.runtime.results import ResultLog
from engine.runtime.rows import Control, Kind, Prepared, at_position, control_rows, controls, graph_rows, item_rows
from engine.runtime.settings import Settings
from engine.runtime.stores import ParseRules, StoredRules, static_facts, stored_rules
from engine.runtime.streams import (Admission, KeptKeys, KeptReceipt, LetterLimits, Source, Terms, admit, admit_records, ahead_errors,
                                    kept_receipt, receipt_payload, refusal, repeated)
from engine.runtime.ticks import Timetable
from engine.runtime.topics import MOST_LOST, MovedError, Records, Topic, hushed, watermark_of
from engine.timeline import MAX, MIN

_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class Appender:
    """The end of the log. `letters` bounds what is kept of items that are refused."""

    position: int = 1
    sources: dict[str, Source] = field(default_factory=dict)
    keys: KeptKeys = field(default_factory=KeptKeys)
    catalogue: Catalogue = field(default_factory=Catalogue)
    letters: LetterLimits = LetterLimits()

    def fork(self) -> Appender:
        """A copy to decide on; `adopt` makes it real."""
        return Appender(self.position, dict(self.sources), self.keys.fork(), self.catalogue, self.letters)

    def adopt(self, fork: Appender) -> None:
        self.position, self.sources, self.catalogue = fork.position, fork.sources, fork.catalogue
        self.keys.adopt(fork.keys)

    def source(self, stream: str) -> Source:
        if stream not in self.sources:
            raise not_found("stream", stream)
        return self.sources[stream]

    def take(self, count: int = 1) -> int:
        """Take `count` new positions; gives the first."""
        first, self.position = self.position, self.position + count
        return first

    def push(self, stream: str, prepared: Prepared, now_ms: int, terms: Terms = Terms()) -> tuple[list[pa.Table], Receipt]:
        """Append items in order. One older than the watermark before it is late. A watermark pushed along comes last, unless all was
        refused."""
        source = self.source(stream)
        if terms.key is not None and (known := self.keys.get(stream, terms.key)) is not None:
            return [], repeated(known, terms)
        before = self._done() if source.idle else {}
        admission, rejected = admit(self._woken(source, before), prepared, now_ms, self.letters.most), terms.rejected
        told = ahead_errors(admission, now_ms, self.letters.most)
        if admission.ahead and not terms.skip:
            raise EngineError("timestamp-ahead", 422, f"Items are stamped more than {source.ahead_ms} ms ahead of the server's clock; "
                              "nothing was taken.", {"limit": source.ahead_ms, "errors": list(told)})
        first = self.position
        rows = self._append(stream, prepared, admission, rejected, now_ms, before)
        receipt = Receipt(admission.accepted, admission.late, admission.ahead + len(rejected), str(first) if admission.accepted else None,
                          str(first + admission.accepted - 1) if admission.accepted else None, None,
                          tuple({"detail": r.reason, "place": r.place} for r in rejected[:self.letters.most]) + told)
        if terms.watermark_ms is not None and not receipt.refused:
            if terms.watermark_ms > now_ms + source.ahead_ms:
                raise EngineError("watermark-ahead", 422, f"The watermark is more than {source.ahead_ms} ms ahead of the server's clock.",
                                  {"limit": source.ahead_ms})
            rows += self.mark(stream, terms.watermark_ms, now_ms)
        if (reached := self.sources[stream].watermark) != MIN:
            receipt = replace(receipt, watermark_ms=reached)
        if terms.key is not None:
            kept = KeptReceipt(terms.key, receipt, now_ms + source.retention_ms, terms.digest)
            self.keys.add(stream, kept)
            control = Control(self.take(), Kind.KEY, stream, None, receipt_payload(kept))
            rows.append(control_rows(control))
        return rows, receipt

    def _append(self, stream: str, prepared: Prepared, admission: Admission, rejected: Sequence[Rejection], now_ms: int,
                before: Mapping[str, int]) -> list[pa.Table]:
        """The items that are taken, and a record of those that are not."""
        source = self.sources[stream]
        first, rows = self.take(admission.accepted), []
        if admission.accepted:
            positions = first + np.cumsum(admission.taken) - 1
            rows.append(item_rows(prepared, stream, admission.taken, positions, admission.times, admission.watermarks, source.items))
        asleep = source.idle and not admission.accepted
        source = replace(source, watermark=source.watermark if asleep else admission.watermark, active_ms=now_ms, idle=asleep,
                         items=source.items + admission.accepted, late=source.late + admission.late,
                         refused=source.refused + admission.ahead + len(rejected))
        self.sources[stream] = source
        rows += self._settle(before)
        if admission.late or admission.ahead or rejected:
            payload = refusal(source, prepared, admission, rejected, self.letters)
            rows.append(control_rows(Control(self.take(), Kind.REFUSED, stream, None, payload)))
        return rows

    def records(self, stream: str, topic: Topic, found: Records, now_ms: int) -> tuple[list[pa.Table], None]:
        """Append what was read of a topic, and where it goes on; MovedError where that is not what follows. The stream's watermark moves
        behind its items, which are late by that of their own partition."""
        source = self.sources.get(stream)
        if source is None or source.topic is not topic:
            raise MovedError
        before = self._done() if source.idle else {}
        admission, partitions = admit_records(self._woken(source, before), found, now_ms)
        rows = self._append(stream, found.items, admission, found.rejected, now_ms, before)
        self.sources[stream] = source = replace(self.sources[stream], partitions=partitions, topic_id=found.identity)
        if not (source.arrival or source.idle) and (watermark := watermark_of(source.partitions)) > source.watermark:
            rows += self.mark(stream, watermark, now_ms)
        payload = {"topic": found.identity, "partitions": {str(number): source.partitions[number].to_json() for number in found.following},
                   "lost": [[lost.partition, lost.first, lost.last] for lost in found.lost[:MOST_LOST]],
                   "count": sum(lost.last - lost.first + 1 for lost in found.lost)}
        return [*rows, control_rows(Control(self.take(), Kind.OFFSETS, stream, None, payload))], None

    def hush(self, stream: str, topic: Topic, at_end: Iterable[int], now_ms: int) -> tuple[list[pa.Table], None]:
        """Nothing is left to be read of these partitions: those that had nothing for the stream's idle time hold the others back no more,
        and where all are silent the stream is idle."""
        source = self.sources.get(stream)
        if source is None or source.topic is not topic or source.arrival or source.idle:
            return [], None
        partitions = hushed(source.partitions, at_end, now_ms, source.idle_ms)
        self.sources[stream] = replace(source, partitions=partitions)
        watermark = max(watermark_of(partitions), source.watermark)
        if all(one.silent for one in partitions.values()):
            self.sources[stream] = replace(self.sources[stream], idle=True, watermark=watermark)
            moved = watermark if watermark > source.watermark else None
            return [control_rows(Control(self.take(), Kind.IDLE, stream, moved, {}))], None
        return self.mark(stream, watermark, now_ms), None

    def mark(self, stream: str, watermark_ms: int, now_ms: int) -> list[pa.Table]:
        """Move a stream's watermark on; nothing is appended where it is there already and the stream is not idle."""
        source = self.source(stream)
        if watermark_ms <= source.watermark and not source.idle:
            return []
        before = self._done() if source.idle else {}
        source = self._woken(source, before)
        source = replace(source, watermark=max(source.watermark, watermark_ms), idle=False, active_ms=now_ms)
        self.sources[stream] = source
        return [control_rows(Control(self.take(), Kind.MARK, stream, source.watermark, {})), *self._settle(before)]

    def _done(self) -> dict[str, int]:
        """The last evaluation time that each query may have done, by epoch."""
        known = {iri: (source.watermark, source.idle) for iri, source in self.sources.items()}
        return self.catalogue.done(lambda iri: known.get(iri, (MIN, False)))

    def _woken(self, source: Source, done: Mapping[str, int]) -> Source:
        """A stream as it is when it comes back: while it was idle, what is read together with it was evaluated without it, so that its
        watermark is the last evaluation time of a query that it comes to, if that is later."""
        if not source.idle:
            return source
        return replace(source, watermark=max(source.watermark, self.catalogue.used(source.iri, done)))

    def _settle(self, before: Mapping[str, int]) -> list[pa.Table]:
        """What queries had done `before` a stream came back, or a query went, is not to be found any more where less is due now: the
        streams that are idle still, and come to such a query, get it as their watermark."""
        if not before:
            return []
        after, rows = self._done(), []
        fell = {epoch: at for epoch, at in before.items() if after.get(epoch, MAX) < at}
        for iri, source in self.sources.items() if fell else ():
            if source.idle and (used := self.catalogue.used(iri, fell)) > source.watermark:
                self.sources[iri] = replace(source, watermark=used)
                rows.append(control_rows(Control(self.take(), Kind.IDLE, iri, used, {})))
        return rows

    def clock_marks(self, streams: Iterable[str], now_ms: int) -> list[pa.Table]:
        """Clock marks for arrival streams: no item will get a stamp before the mark."""
        rows: list[pa.Table] = []
        for stream in streams:
            if stream in self.sources and self.sources[stream].arrival:
                rows += self.mark(stream, now_ms, now_ms)
        return rows

    def silent(self, now_ms: int) -> list[str]:
        """Event streams that have been silent for their idle time and are not declared idle yet; of those that are read from topics `hush`
        tells."""
        return [s.iri for s in self.sources.values() if s.falls_silent and now_ms - s.active_ms >= s.idle_ms]

    def next_silence(self) -> int | None:
        """The earliest wall time at which `silent` may name another stream."""
        return min((s.active_ms + s.idle_ms for s in self.sources.values() if s.falls_silent), default=None)

    def declare_idle(self, now_ms: int) -> list[pa.Table]:
        rows = []
        for stream in self.silent(now_ms):
            self.sources[stream] = replace(self.sources[stream], idle=True)
            rows.append(control_rows(Control(self.take(), Kind.IDLE, stream, None, {})))
        return rows

    def stay_awake(self, now_ms: int) -> tuple[list[pa.Table], None]:
        """Count silence from now on: nobody could push before."""
        self.sources = {iri: replace(source, active_ms=now_ms) for iri, source in self.sources.items()}
        return [], None

    def read_again(self, stream: str, now_ms: int) -> tuple[list[pa.Table], None]:
        """Count the silence of a topic's partitions from now on: they could not be read before."""
        if (source := self.sources.get(stream)) is not None:
            partitions = {number: replace(one, active_ms=now_ms) for number, one in source.partitions.items()}
            self.sources[stream] = replace(source, partitions=partitions)
        return [], None

    def put_stream(self, name: str, descriptor: dict[str, Any], now_ms: int) -> list[pa.Table]:
        self.sources[descriptor["iri"]] = Source.of(descriptor, {}, now_ms)
        self.catalogue = self.catalogue.with_stream(name, descriptor)
        return [control_rows(Control(self.take(), Kind.STREAM, descriptor["iri"], None, {"name": name, "descriptor": descriptor}))]

    def remove_stream(self, name: str) -> list[pa.Table]:
        iri = self.catalogue.streams[name]["iri"]
        self.sources.pop(iri, None)
        self.keys.drop(iri)
        self.catalogue = self.catalogue.with_stream(name, None)
        return [control_rows(Control(self.take(), Kind.STREAM, iri, None, {"name": name, "descriptor": None}))]

    def command(self, kind: Kind, name: str, payload: dict[str, Any]) -> tuple[list[pa.Table], int]:
        """A record that changes nothing here; the reply is its position."""
        position = self.take()
        return [control_rows(Control(position, kind, name, None, payload))], position

    def register(self, name: str, payload: dict[str, Any], statement: Statement) -> list[pa.Table]:
        """Register or replace a query; its record has the generation, so that the pump agrees."""
        position, before = self.position, self._done() if name in self.catalogue.queries else {}
        payload = {"since": position, **payload}
        self.catalogue = self.catalogue.with_query(name, payload, position, statement)
        definition = self.catalogue.queries[name].definition
        payload |= {"number": definition.number, "generation": definition.generation}
        return [*self.command(Kind.REGISTER, name, payload)[0], *self._settle(before)]

    def change(self, kind: Kind, name: str, payload: dict[str, Any]) -> list[pa.Table]:
        """The end of a query, a pause or a resumption."""
        before = self._done() if kind is Kind.UNREGISTER else {}
        self.catalogue = self.catalogue.with_change(kind, name, self.position)
        return [*self.command(kind, name, payload)[0], *self._settle(before)]

    def rules(self, name: str, stored: StoredRules | None) -> list[pa.Table]:
        """A new version of a rule set, or its removal (None)."""
        position = self.position
        self.catalogue = self.catalogue.with_rules(name, None if stored is None else replace(stored, version=position))
        payload = {"media": "", "text": None} if stored is None else {"media": stored.media, "text": stored.text}
        return self.command(Kind.RULES, name, payload)[0]

    def graph(self, iri: str, version: tuple[pa.Table, pa.Table] | None) -> list[pa.Table]:
        """A new version of a static graph, by its rows (`rows.graph_rows`, at any position) and its facts, or its removal (None)."""
        position = self.take()
        rows, facts = (graph_rows(position, iri, None), None) if version is None else version
        self.catalogue = self.catalogue.with_graph(iri, facts, position)
        return [at_position(rows, position)]

    def reached(self, position: int) -> tuple[list[pa.Table], None]:
        self.catalogue = self.catalogue.reached(position)
        return [], None

    def follow(self, stream: str, watermark: int | None, control: Control | None, now_ms: int) -> None:
        """Take in one record of a stream that is on disk already; `control` is None for an item. Raises ValueError where the pump does."""
        if control is not None and control.kind is Kind.STREAM:
            self.sources.pop(stream, None)
            self.keys.drop(stream)
            if (descriptor := control.payload["descriptor"]) is not None:
                self.sources[stream] = Source.of(descriptor, {}, now_ms)
            return
        if stream in self.sources:
            self.sources[stream] = self.sources[stream].after(sound_watermark(watermark), control, now_ms)
        if control is not None and control.kind is Kind.KEY:
            self.keys.add(stream, kept_receipt(control.payload))


@dataclass(frozen=True, slots=True)
class Recovery:
    """Reads texts that were accepted once; one that cannot be read any more stands for nothing, the pump says what is wrong with it."""

    parse: Callable[[str], Statement]
    parse_rules: ParseRules

    def end(self, results: ResultLog, folder: LogFolder, now_ms: int, settings: Settings) -> Appender:
        states = results.stream_states()
        end = Appender(results.position + 1, keys=KeptKeys(settings.idempotency_keys), catalogue=self.catalogue(results),
                       letters=LetterLimits(settings.push_letters, settings.letter_text))
        for _, iri, descriptor in results.streams():
            end.sources[iri] = Source.of(descriptor, states.get(iri, {}), now_ms)
        for stream, text in results.receipts(now_ms):
            end.keys.add(stream, kept_receipt(json.loads(text)))
        for table in folder.recover(results.position):
            self.follow(end, table, now_ms)
        end.position = folder.holes.after(end.position - 1)
        return end

    def catalogue(self, results: ResultLog) -> Catalogue:
        rules = stored_rules(self.parse_rules, results.rules())
        graphs = {iri: GraphVersion(found["version"], found["count"], found["triples"]) for iri, found in results.graphs().items()}
        found = Catalogue({name: {**descriptor, "iri": iri} for name, iri, descriptor in results.streams()}, graphs=graphs, rules=rules,
                          numbers=results.meta("numbers", 0))
        queries: dict[str, Registered] = {}
        for value, state, _ in results.queries():
            definition = Definition.from_json(value)
            statement = kept_statement(definition.text, definition.media, self.parse, self.parse_rules, found.rule_sets)[0]
            wish = "paused" if state["state"] == "paused" else "running"
            queries[definition.name] = Registered(definition, statement, Timetable.of(statement), wish, results.position, results.position)
        return replace(found, queries=FixedQueries(queries))

    def follow(self, end: Appender, table: pa.Table, now_ms: int) -> None:
        """Take in rows that are on disk already, in order."""
        table = table.filter(pc.greater_equal(table["position"], end.position))
        if not table.num_rows:
            return
        end.position = pc.max(table["position"]).as_py() + 1
        events = table.filter(pc.and_(pc.equal(table["record"], int(Kind.EVENT)), pc.equal(table["row"], 0)))
        steps: list[tuple[int, str, int | None, Control | None]] = [
            (position, stream, watermark, None) for position, stream, watermark in
            zip(events["position"].to_pylist(), events["stream"].to_pylist(), events["watermark"].to_pylist(), strict=True)]
        steps += [(control.position, control.stream, control.watermark, control) for control in controls(table)]
        for position, stream, watermark, control in sorted(steps, key=lambda step: step[0]):
            try:
                end.follow(stream, watermark, control, now_ms)
                if control is not None:
                    end.catalogue = self._step(end.catalogue, control, table)
            except Exception:  # one record must not keep the server from starting; the pump sets it aside
                _LOG.exception("the record at %s, of %s, cannot be applied to the end of the log", position, stream)

    def _step(self, known: Catalogue, control: Control, table: pa.Table) -> Catalogue:
        name, payload, position = control.stream, control.payload, control.position
        match control.kind:
            case Kind.STREAM:
                return known.with_stream(payload["name"], payload["descriptor"])
            case Kind.REGISTER:
                statement, _ = kept_statement(payload["text"], payload.get("media"), self.parse, self.parse_rules, known.rule_sets)
                return known.with_query(name, payload, position, statement)
            case Kind.UNREGISTER | Kind.PAUSE | Kind.RESUME if name in known.queries:
                return known.with_change(control.kind, name, position)
            case Kind.GRAPH:
                rows = table.filter(pc.equal(table["position"], position))
                return known.with_graph(name, None if payload.get("removed", False) else static_facts(rows), position)
            case Kind.RULES if payload["text"] is None:
                return known.with_rules(name, None)
            case Kind.RULES:
                return known.with_rules(name, stored_rules(self.parse_rules, {name: {**payload, "version": position}})[name])
        return known
