"""What users upload, at the pump: static graphs with a Parquet file of each version, so that the log need not be read again, and rule sets
as texts with the rules that were read in them.

A file is on disk, whole, before the result log names it. One that cannot be read at a start is set aside: the graph is lost until it is
put again. A text that is not understood (any more) is a rule set that nobody can use."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine.facts import FACTS
from engine.files import remove, whole_file
from engine.ir.rules import RuleSet
from engine.ir.spans import Diagnostic, DiagnosticError
from engine.ir.strata import unstratified
from engine.ir.windows import rule_windows
from engine.runtime.data_folder import SetAside
from engine.runtime.rows import Control, facts_of, short_name
from engine.timeline import LONGEST_MS

_LOG = logging.getLogger(__name__)
ParseRules = Callable[[str, str, str], RuleSet]
"""(text, media type, name) -> rules; DiagnosticError has everything that is wrong with the text, each at its place."""


class GraphStore:
    """`tables` by IRI in the columns of FACTS, `versions` the position of the record that set each, `counts` how many there were.
    `lost` has the graphs whose files cannot be used, with the reason."""

    def __init__(self, folder: Path | None, aside: SetAside | None = None) -> None:
        """`folder` None keeps nothing on disk (a replay)."""
        self.lost: dict[str, str] = {}
        self._aside = aside or SetAside((folder or Path()).parent / "set-aside")
        self.tables: dict[str, pa.Table] = {}
        self.versions: dict[str, int] = {}
        self.counts: dict[str, int] = {}
        self._folder = folder
        self._stale: list[Path] = []
        self._unwritten: dict[int, pa.Table] = {}

    def apply(self, control: Control, segment: pa.Table) -> dict[str, Any] | None:
        """Take over the version whose rows `segment` begins with. Gives what the result log must know of it; None if it is a removal."""
        iri = control.stream
        self.lost.pop(iri, None)
        if iri in self.versions:
            self._stale.append(self._file(self.versions.pop(iri)))
        if control.payload.get("removed", False):
            self.tables.pop(iri, None)
            self.counts.pop(iri, None)
            return None
        self.tables[iri] = static_facts(segment.filter(pc.equal(segment["position"], control.position)))
        self.versions[iri] = control.position
        self.counts[iri] = self.counts.get(iri, 0) + 1
        self._unwritten[control.position] = self.tables[iri]
        return {"version": control.position, "count": self.counts[iri], "triples": self.tables[iri].num_rows}

    def restore(self, definitions: Mapping[str, Mapping[str, Any]]) -> None:
        for iri, definition in definitions.items():
            self.counts[iri] = definition["count"]
            path = self._file(definition["version"])
            try:
                self.tables[iri] = pq.read_table(path).select(FACTS.names).cast(FACTS)
                self.versions[iri] = definition["version"]
            except (pa.ArrowException, OSError, KeyError) as error:
                self.lost[iri] = f"the file {path} of the graph <{iri}> cannot be read: {error}"
                self._aside.move(path, self.lost[iri])

    def save(self) -> None:
        """Write the files of new versions: on disk when this returns, which the result log must wait for. May be tried again."""
        for version, table in list(self._unwritten.items()):
            if self._folder is not None:
                path = self._file(version)
                with whole_file(path, path.with_suffix(".part")) as sink:
                    pq.write_table(table, sink)
            del self._unwritten[version]

    def committed(self) -> None:
        for path in self._stale:
            remove(path)
        self._stale.clear()

    def _file(self, version: int) -> Path:
        return (self._folder or Path()) / f"{version:016d}.parquet"


def static_facts(rows: pa.Table) -> pa.Table:
    """The facts of a version from its rows in the log: without a position."""
    facts = facts_of(rows)
    return facts.set_column(0, facts.schema.field(0), pa.array(np.zeros(facts.num_rows, np.int64))).combine_chunks()


def graph_mark(iri: str, count: int) -> str:
    """What the blank nodes of a graph's `count`-th version are marked with."""
    return f"g{short_name(iri)}.{count}"


@dataclass(frozen=True, slots=True)
class StoredRules:
    """A version of a rule set; `version` is the position of the record that set it. A text that is
    not understood (any more) has no rules, and nobody can use it: `lost` says why."""

    media: str
    text: str
    version: int
    rules: RuleSet
    lost: str | None = None


class RuleStore:
    """`stored`: rule sets by name. Those that are `given` are there from the start, in no log."""

    def __init__(self, parse: ParseRules) -> None:
        self.given: Mapping[str, RuleSet] = {}
        self.stored: dict[str, StoredRules] = {}
        self.parse = parse

    @property
    def sets(self) -> dict[str, RuleSet]:
        return {**self.given, **understood(self.stored)}

    @property
    def lost(self) -> dict[str, str]:
        """Why rule sets are lost, by name: whoever uses them fails."""
        return {name: rules.lost for name, rules in self.stored.items() if rules.lost is not None}

    def apply(self, control: Control) -> dict[str, Any] | None:
        """Take over the version of a record. Gives what the result log must know of it; None if it is a removal."""
        if control.payload["text"] is None:
            self.stored.pop(control.stream, None)
            return None
        definition = {**control.payload, "version": control.position}
        self.restore({control.stream: definition})
        return definition

    def restore(self, definitions: Mapping[str, Mapping[str, Any]]) -> None:
        self.stored |= stored_rules(self.parse, definitions)


def stored_rules(parse: ParseRules, definitions: Mapping[str, Mapping[str, Any]]) -> dict[str, StoredRules]:
    """Rule sets that were accepted once, by name."""
    found: dict[str, StoredRules] = {}
    for name, definition in definitions.items():
        media, text, version = definition["media"], definition["text"], definition["version"]
        try:
            found[name] = StoredRules(media, text, version, parse(text, media, name))
        except Exception as error:  # accepted by an earlier version; whatever a parser raises is this rule set's failure
            _LOG.exception("the rule set %r is not understood", name)
            found[name] = StoredRules(media, text, version, RuleSet(name, ()), f"the rule set {name!r} is not understood: {error}")
    return found


def understood(stored: Mapping[str, StoredRules]) -> dict[str, RuleSet]:
    return {name: found.rules for name, found in stored.items() if found.lost is None}


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
