"""Commands on rule sets, the last part of the engine's surface before service.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from engine.compiler import BUILT_IN_RULES
from engine.ir.rule_windows import rule_windows
from engine.ir.rules import RuleSet
from engine.ir.spans import DiagnosticError
from engine.ir.statement import Statement
from engine.runtime.clock import Clock
from engine.runtime.errors import EngineError, not_found
from engine.runtime.machine import Machine
from engine.runtime.query import LiveQuery
from engine.runtime.query_commands import QueryCommands
from engine.runtime.resources import RuleSetInfo
from engine.runtime.rows import Kind
from engine.runtime.rule_store import ParseRules, checked
from engine.runtime.settings import Settings
from engine.runtime.streams import check_name

BUILT_IN = "built-in"
"""The version of a rule set that is built in."""
_ABOUT = {"rdfs": "The RDFS entailment rules rdfs2, 3, 5, 6, 7, 9, 10 and 11: domain, range, sub-property, sub-class.",
          "owl2rl": "The OWL 2 RL/RDF rules (OWL 2 Profiles, section 4.3)."}


class RuleCommands(QueryCommands):
    """What may be done with rule sets. Those that are built in can only be read."""

    def __init__(self, settings: Settings, clock: Clock, machine: Machine, parse: Callable[[str], Statement],
                 parse_rules: ParseRules) -> None:
        super().__init__(settings, clock, machine, parse)
        self._parse_rules = parse_rules

    def put_rules(self, name: str, media: str, text: str) -> tuple[RuleSetInfo, bool]:
        """Set a rule set, or replace it: the queries that use it are planned anew. The same text again is no change."""
        _check_writable(check_name(name))
        rules = checked(self._parse_rules(text, media, name))
        with self._catalog:
            before = self._machine.pump.rule_store.stored.get(name)
            if before is None or (before.media, before.text) != (media, text):
                self._check_plans(name, rules)
                self._command(Kind.RULES, name, {"media": media, "text": text})
            return self.rule_set(name), before is None

    def rule_sets(self) -> list[RuleSetInfo]:
        """All rule sets, the built-in ones first."""
        return [self.rule_set(name) for name in self._machine.pump.rules]

    def rule_set(self, name: str) -> RuleSetInfo:
        """A rule set with its text."""
        pump = self._machine.pump
        users = tuple(sorted(query.name for query in self._reasoning_by(name)))
        if (stored := pump.rule_store.stored.get(name)) is not None:
            return RuleSetInfo(name, False, None, stored.media, len(stored.rules.rules) + len(stored.rules.facts), str(stored.version),
                               users, stored.text)
        if name in BUILT_IN_RULES:
            return RuleSetInfo(name, True, _ABOUT.get(name), None, None, BUILT_IN, users)
        raise not_found("rules", name)

    def delete_rules(self, name: str) -> None:
        """Remove a rule set that no query uses."""
        _check_writable(name)
        with self._catalog:
            if users := self.rule_set(name).used_by:
                raise EngineError("in-use", 409, f"Queries use the rule set {name!r}.", {"usedBy": list(users)})
            self._command(Kind.RULES, name, {"media": "", "text": None})

    def _reasoning_by(self, name: str) -> list[LiveQuery]:
        return [query for query in self._live() if name in query.rules]

    def _check_plans(self, name: str, rules: RuleSet) -> None:
        """Refuse new rules with which a query that runs could not be planned."""
        for query in self._reasoning_by(name):
            if query.state == "failed":
                continue
            if (old := self._machine.pump.rules.get(name)) is not None and rule_windows([rules]) != rule_windows([old]):
                raise EngineError("in-use", 409, f"The query {query.name!r} uses these rules with another Window: what they have to see is "
                                  "not kept.", {"usedBy": [query.name]})
            catalog = self._catalog_for(dict(query.definition.options))
            try:
                self.backend.compile(query.statement, query.name, replace(catalog, rules={**catalog.rules, name: rules}))
            except (DiagnosticError, ValueError) as error:
                reason = error.diagnostics[0].message if isinstance(error, DiagnosticError) else str(error)
                raise EngineError("in-use", 409, f"The query {query.name!r} cannot be planned with these rules: {reason}",
                                  {"usedBy": [query.name]}) from error


def _check_writable(name: str) -> None:
    if name in BUILT_IN_RULES:
        raise EngineError("method-not-allowed", 405, f"The rule set {name!r} is built in; it can only be read.",
                          {"name": name, "allowed": ["GET", "HEAD"]})
