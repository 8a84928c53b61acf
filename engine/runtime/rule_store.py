"""The rule sets of users at the pump: their texts as they were uploaded, their versions, and the rules that were read in them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.ir.rules import RuleSet
from engine.ir.spans import Diagnostic, DiagnosticError
from engine.ir.strata import unstratified
from engine.ir.windows import rule_windows
from engine.runtime.rows import Control
from engine.timeline import LONGEST_MS

_LOG = logging.getLogger(__name__)
ParseRules = Callable[[str, str, str], RuleSet]
"""(text, media type, name) -> rules; DiagnosticError has everything that is wrong with the text, each at its place."""


@dataclass(frozen=True, slots=True)
class StoredRules:
    """A version of a rule set; `version` is the position of the record that set it. A text that is not `understood` (any more) has no
    rules, and nobody can use it."""

    media: str
    text: str
    version: int
    rules: RuleSet
    understood: bool = True


class RuleStore:
    """`stored` has the rule sets as they are now, by name; `lost` those of them whose texts are not understood (any more), with the
    reason: they have no rules, and whoever uses them fails. Those that are `given` are there from the start, and in no log."""

    def __init__(self, parse: ParseRules) -> None:
        self.given: Mapping[str, RuleSet] = {}
        self.lost: dict[str, str] = {}
        self.stored: dict[str, StoredRules] = {}
        self.parse = parse

    @property
    def sets(self) -> dict[str, RuleSet]:
        """The rules by the name of their set."""
        return {**self.given, **{name: stored.rules for name, stored in list(self.stored.items()) if name not in self.lost}}

    def apply(self, control: Control) -> dict[str, Any] | None:
        """Take over the version of a record. Gives what the result log must know of it; None if it is a removal."""
        if control.payload["text"] is None:
            self.lost.pop(control.stream, None)
            self.stored.pop(control.stream, None)
            return None
        definition = {**control.payload, "version": control.position}
        self._set(control.stream, definition)
        return definition

    def restore(self, definitions: Mapping[str, Mapping[str, Any]]) -> None:
        """Read the rule sets that the result log knows."""
        for name, definition in definitions.items():
            self._set(name, definition)

    def _set(self, name: str, definition: Mapping[str, Any]) -> None:
        self.lost.pop(name, None)
        self.stored[name], reason = stored_rules(self.parse, name, definition)
        if reason is not None:
            self.lost[name] = reason


def stored_rules(parse: ParseRules, name: str, definition: Mapping[str, Any]) -> tuple[StoredRules, str | None]:
    """A rule set that was accepted once, and why it is not understood, if it is not."""
    media, text, version = definition["media"], definition["text"], definition["version"]
    try:
        return StoredRules(media, text, version, parse(text, media, name)), None
    except Exception as error:  # accepted by an earlier version; whatever a parser raises is this rule set's failure
        _LOG.exception("the rule set %r is not understood", name)
        return StoredRules(media, text, version, RuleSet(name, ()), False), f"the rule set {name!r} is not understood: {error}"


def checked(rules: RuleSet, max_window_ms: int = LONGEST_MS) -> RuleSet:
    """The rule set itself; raises DiagnosticError where it cannot be stratified, imports what would have to be found elsewhere, or has a
    longer Window than a query may have."""
    found = [Diagnostic("unsupported-in-streaming", f"The import of <{imported.iri}> is not followed: rules come from the rule sets, "
                        "triples from the graphs, that a query names.", imported.span,
                        hint="USING RULES a, b takes rule sets together; USING GRAPH <iri> takes a graph to reason with.")
             for imported in rules.imports]
    if (length := max(rule_windows([rules]), default=0)) > max_window_ms:
        found.append(Diagnostic("window-unbounded", f"The Window is {length} ms; the limit is {max_window_ms} ms.", rules.window_span))
    if unsafe := unstratified(rules.rules):
        found.append(unsafe)
    if found:
        raise DiagnosticError(*found)
    return rules


def reads_no_rules(text: str, media: str, name: str) -> RuleSet:
    """The parser of an engine that was given none."""
    raise DiagnosticError(Diagnostic("unsupported-media-type", f"No rule language of type {media} is known here."))
