"""Commands on rule sets."""

from __future__ import annotations

from dataclasses import replace

from engine.compiler import BUILT_IN_RULES
from engine.ir.rules import RuleSet
from engine.ir.spans import DiagnosticError
from engine.ir.stages import timeline_of
from engine.ir.windows import rule_windows
from engine.runtime.append import Appender
from engine.runtime.commands import Check, Decision, Rows, StaleError
from engine.runtime.errors import EngineError, in_use
from engine.runtime.query import Compiled
from engine.runtime.query_commands import QueryCommands
from engine.runtime.quotas import check_rules
from engine.runtime.resources import RuleSetInfo
from engine.runtime.rule_store import StoredRules, checked
from engine.runtime.streams import check_name
from engine.runtime.view import View


class RuleCommands(QueryCommands):
    """What may be done with rule sets. Those that are built in can only be read."""

    def put_rules(self, name: str, media: str, text: str, check: Check[RuleSetInfo] = None) -> tuple[RuleSetInfo, bool]:
        """Set a rule set, or replace it: the queries that use it are planned anew. The same text again is no change."""
        _check_writable(check_name(name))
        rules = checked(self._parse_rules(text, media, name), self.settings.max_window_ms)
        plans = dict[str, Compiled]()

        def prepare(view: View) -> Decision[bool]:
            before = view.catalogue.rules.get(name)
            same = before is not None and (before.media, before.text) == (media, text)
            basis = _basis(name, view)
            plans.clear()
            if not same:
                plans.update(self._plans(name, rules, view))

            def decide(end: Appender, view: View, now: int) -> tuple[Rows, bool]:
                if check is not None:
                    check(view.rule_set(name) if name in view.catalogue.rules else None)
                if _basis(name, view) != basis:
                    raise StaleError
                if not same:
                    check_rules(view.catalogue, self.settings, name, text)
                return [] if same else end.rules(name, StoredRules(media, text, 0, rules)), before is None

            return decide

        created, view = self._write_prepared(prepare, plans)
        return view.rule_set(name), created

    def check_rules(self, media: str, text: str) -> int:
        """Whether a text is a rule set, as `put_rules` reads it; the number of its rules and facts. Nothing is set, and whether queries
        could be planned with it is not looked at."""
        rules = checked(self._parse_rules(text, media, "rules"), self.settings.max_window_ms)
        return len(rules.rules) + len(rules.facts)

    def rule_sets(self) -> list[RuleSetInfo]:
        """All rule sets, the built-in ones first."""
        view = self._view()
        return [view.rule_set(name) for name in view.catalogue.rule_sets]

    def rule_set(self, name: str) -> RuleSetInfo:
        """A rule set with its text."""
        return self._view().rule_set(name)

    def delete_rules(self, name: str, check: Check[RuleSetInfo] = None) -> None:
        """Remove a rule set that no query uses."""
        _check_writable(name)

        def decide(end: Appender, view: View, now: int) -> tuple[Rows, None]:
            info = view.rule_set(name)
            if check is not None:
                check(info)
            if info.used_by:
                raise in_use(f"the rule set {name!r}", info.used_by)
            return end.rules(name, None), None

        self._write(decide)

    def _plans(self, name: str, rules: RuleSet, view: View) -> dict[str, Compiled]:
        """The plans with new rules of the queries that use them, by name. Refuses rules with which one that runs could not be planned."""
        plans = {}
        for query in view.catalogue.queries.values():
            if name not in query.rules or view.standing(query) == "failed":
                continue
            if (old := view.catalogue.rule_sets.get(name)) is not None and rule_windows([rules]) != rule_windows([old]):
                raise EngineError("in-use", 409, f"The query {query.name!r} uses these rules with another Window: what they have to see is "
                                  "not kept.", {"usedBy": [query.name]})
            if query.statement.timed_rules or timeline_of(rules) is not None:
                raise EngineError("in-use", 409, f"The query {query.name!r} uses these rules with a time of their own: what was derived "
                                  "cannot be taken back.", {"usedBy": [query.name]})
            names = self._names(query.definition.options, view)
            try:
                found = self._machine.backend.compile(query.statement, query.name, replace(names, rules={**names.rules, name: rules}))
            except (DiagnosticError, ValueError) as error:
                reason = error.diagnostics[0].message if isinstance(error, DiagnosticError) else str(error)
                raise EngineError("in-use", 409, f"The query {query.name!r} cannot be planned with these rules: {reason}",
                                  {"usedBy": [query.name]}) from error
            plans[query.name] = found
        return plans


def _basis(name: str, view: View) -> list[object]:
    """What plans with other rules under this name depend on."""
    stored = view.catalogue.rules.get(name)
    users = [query for query in view.catalogue.queries.values() if name in query.rules]
    return [stored and stored.version, *((query.epoch, view.catalogue.basis(query.statement)) for query in users)]


def _check_writable(name: str) -> None:
    if name in BUILT_IN_RULES:
        raise EngineError("method-not-allowed", 405, f"The rule set {name!r} is built in; it can only be read.",
                          {"name": name, "allowed": ["GET", "HEAD"]})
