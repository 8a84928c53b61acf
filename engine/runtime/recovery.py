"""The end of the log, made again at start: what the result log has, and the records beyond its position."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from engine.ir.rule_windows import with_rule_windows
from engine.ir.rules import RuleSet
from engine.ir.statement import Statement
from engine.runtime.append import Appender
from engine.runtime.catalogue import Catalogue, GraphVersion
from engine.runtime.log import LogFolder
from engine.runtime.pushes import KeptKeys, LetterLimits, receipt_of
from engine.runtime.query import unreadable
from engine.runtime.registered import Definition, FixedQueries, Registered, read_statement
from engine.runtime.results import ResultLog
from engine.runtime.rows import Control, Kind, controls
from engine.runtime.settings import Settings
from engine.runtime.stores import ParseRules, StoredRules, static_facts, stored_rules
from engine.runtime.streams import Source
from engine.runtime.ticks import Timetable

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Recovery:
    """Reads texts that were accepted once; one that cannot be read any more stands for nothing, the pump says what is wrong with it."""

    parse: Callable[[str], Statement]
    parse_rules: ParseRules

    def end(self, results: ResultLog, folder: LogFolder, now_ms: int, settings: Settings) -> Appender:
        """The end of the log: the streams as the result log has them, and what came after."""
        states = results.stream_states()
        end = Appender(results.position + 1, keys=KeptKeys(settings.idempotency_keys), catalogue=self.catalogue(results),
                       letters=LetterLimits(settings.push_letters, settings.letter_text))
        for _, iri, descriptor in results.streams():
            end.sources[iri] = Source.of(descriptor, states.get(iri, {}), now_ms)
        for stream, text in results.receipts(now_ms):
            end.keys.add(stream, receipt_of(text))
        for table in folder.recover(results.position):
            end.follow(table, now_ms)
            end.catalogue = self.follow(end.catalogue, table)
        end.position = folder.holes.after(end.position - 1)
        return end

    def catalogue(self, results: ResultLog) -> Catalogue:
        """As the result log has it, at its position."""
        rules = {name: self.rules(name, definition) for name, definition in results.rules().items()}
        graphs = {iri: GraphVersion(found["version"], found["count"], found["triples"]) for iri, found in results.graphs().items()}
        found = Catalogue({name: {**descriptor, "iri": iri} for name, iri, descriptor in results.streams()}, graphs=graphs, rules=rules,
                          numbers=results.meta("numbers", 0))
        queries: dict[str, Registered] = {}
        for value, state, _ in results.queries():
            definition = Definition.from_json(value)
            statement = self.statement(definition.text, definition.media, found.rule_sets)
            wish = "paused" if state["state"] == "paused" else "running"
            queries[definition.name] = Registered(definition, statement, Timetable.of(statement), wish, results.position, results.position)
        return replace(found, queries=FixedQueries(queries))

    def follow(self, catalogue: Catalogue, table: pa.Table) -> Catalogue:
        """After the records of `table`, rows of the log in order."""
        for control in controls(table):
            try:
                catalogue = self._step(catalogue, control, table)
            except Exception:  # one record must not keep the server from starting; the pump sets it aside
                _LOG.exception("the record at %s, of %s, cannot be applied to the catalogue", control.position, control.stream)
        return catalogue

    def _step(self, known: Catalogue, control: Control, table: pa.Table) -> Catalogue:
        name, payload, position = control.stream, control.payload, control.position
        match control.kind:
            case Kind.STREAM:
                return known.with_stream(payload["name"], payload["descriptor"])
            case Kind.REGISTER:
                return known.with_query(name, payload, position, self.statement(payload["text"], payload.get("media"), known.rule_sets))
            case Kind.UNREGISTER if name in known.queries:
                return known.without_query(name, position)
            case Kind.PAUSE | Kind.RESUME if name in known.queries:
                return known.with_wish(name, "paused" if control.kind is Kind.PAUSE else "running", position)
            case Kind.GRAPH:
                rows = table.filter(pc.equal(table["position"], position))
                return known.with_graph(name, None if payload.get("removed", False) else static_facts(rows), position)
            case Kind.RULES:
                stored = None if payload["text"] is None else self.rules(name, {**payload, "version": position})
                return known.with_rules(name, stored)
        return known

    def statement(self, text: str, media: str | None, rules: Mapping[str, RuleSet]) -> Statement:
        """A statement with the windows of its rules."""
        try:
            return with_rule_windows(read_statement(text, media, self.parse, self.parse_rules), rules)
        except Exception:  # whatever a parser raises: the query is there, and can be removed or replaced
            return unreadable(text)

    def rules(self, name: str, definition: Mapping[str, Any]) -> StoredRules:
        """A rule set as the result log or a record has it."""
        return stored_rules(self.parse_rules, name, definition)[0]
