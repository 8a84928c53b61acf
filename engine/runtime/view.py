"""What one request sees: the catalogue at the end of the log and the last snapshot of the pump, taken once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from engine.compiler import BUILT_IN_RULES, Catalog
from engine.runtime.source import Source
from engine.runtime.catalogue import Catalogue
from engine.runtime.errors import not_found
from engine.runtime.registered import Registered
from engine.runtime.resources import GraphInfo, RuleSetInfo
from engine.runtime.snapshot import Seen, Snapshot
from engine.runtime.settings import Settings
from engine.timeline import MIN

BUILT_IN = "built-in"
"""The version of a rule set that is built in."""
_ABOUT = {"rdfs": "The RDFS entailment rules rdfs2, 3, 5, 6, 7, 9, 10 and 11: domain, range, sub-property, sub-class.",
          "owl2rl": "The OWL 2 RL/RDF rules (OWL 2 Profiles, section 4.3)."}


@dataclass(frozen=True, slots=True)
class View:
    """`catalogue` says what there is, `snapshot` how far the pump is with it; `sources` are the pushed streams at the end of the log,
    by IRI."""

    catalogue: Catalogue
    snapshot: Snapshot
    sources: Mapping[str, Source]

    def at(self, catalogue: Catalogue) -> View:
        """With another end of the log."""
        return replace(self, catalogue=catalogue)

    # --- queries

    def seen(self, query: Registered) -> Seen | None:
        """The query at the pump; None where the pump has not come to its registration."""
        seen = self.snapshot.queries.get(query.name)
        return seen if seen is not None and seen.epoch == query.epoch else None

    def standing(self, query: Registered) -> str:
        """``running``, ``paused`` or ``failed``, as it will be when the pump has come to the end of the log, if nothing fails till then."""
        seen = self.seen(query)
        if seen is None and self._passed_over(query):
            return "failed"
        return query.wish if seen is None or query.changed > self.snapshot.position else seen.state

    def error(self, query: Registered) -> str | None:
        """Why a query has failed, if it has."""
        seen = self.seen(query)
        if self.standing(query) != "failed":
            return None
        if seen is not None:
            return seen.error
        reason = next((trouble.reason for trouble in self.snapshot.troubles
                       if trouble.kind == "record" and trouble.name == str(query.registered)), "it is no longer known why")
        return f"Its registration could not be carried out: {reason}."

    def _passed_over(self, query: Registered) -> bool:
        """Whether the pump has gone past the registration without the query: the record was set aside."""
        known = self.snapshot.queries.get(query.name)
        return query.registered <= self.snapshot.position and (known is None or known.definition.order < query.definition.order)

    def state(self, query: Registered) -> str:
        """The state to show: of a query that the pump has not come to ``starting``, of one that is to go on after a failure
        ``restarting``, of a running one all of whose streams are idle, and of which nothing is left to evaluate, ``idle``."""
        seen, standing = self.seen(query), self.standing(query)
        if standing != "running":
            return standing
        if seen is None:
            return "starting"
        if seen.state == "failed":
            return "restarting"
        states = [self.snapshot.streams.get(stream) for stream in query.streams]
        asleep = all(state is not None and state.idle for state in states) and all(source.idle for source in self.origins(query))
        return "idle" if asleep and not seen.behind else "running"

    def origins(self, query: Registered) -> list[Source]:
        """The pushed streams, at the end of the log, that everything it sees comes from."""
        return [self.sources[stream] for stream in self.catalogue.queries.pushed(query) if stream in self.sources]

    def reached(self, query: Registered) -> int:
        """The watermark up to which its results are committed."""
        seen = self.seen(query)
        return MIN if seen is None else seen.reached

    # --- graphs

    def graph(self, iri: str) -> tuple[GraphInfo, pa.Table]:
        """A static graph with its facts. One that the pump has is the pump's, which may have come to a later version meanwhile."""
        version = self.catalogue.graphs.get(iri)
        facts = None if version is None else version.facts if version.facts is not None else self.snapshot.graphs.get(iri)
        if version is None or facts is None:
            raise not_found("graph", iri)
        position = version.position if version.facts is not None else self.snapshot.versions[iri]
        users = sorted(query.name for query in self.catalogue.queries.values() if iri in query.graphs)
        return GraphInfo(iri, facts.num_rows, str(position), tuple(users)), facts

    @property
    def graphs(self) -> dict[str, pa.Table]:
        """The facts of all static graphs."""
        found = {iri: self.snapshot.graphs.get(iri) if version.facts is None else version.facts
                 for iri, version in self.catalogue.graphs.items()}
        return {iri: facts for iri, facts in found.items() if facts is not None}

    # --- rule sets

    def rule_set(self, name: str) -> RuleSetInfo:
        """A rule set with its text."""
        users = tuple(sorted(query.name for query in self.catalogue.queries.values() if name in query.rules))
        if (stored := self.catalogue.rules.get(name)) is not None:
            return RuleSetInfo(name, False, None, stored.media, len(stored.rules.rules) + len(stored.rules.facts), str(stored.version),
                               users, stored.text)
        if name in BUILT_IN_RULES:
            return RuleSetInfo(name, True, _ABOUT.get(name), None, None, BUILT_IN, users)
        raise not_found("rules", name)

    # --- what a statement may name

    def names(self, settings: Settings, mixed_time: bool) -> Catalog:
        """All that a statement may name."""
        return Catalog(self.catalogue.times, self.graphs, self.catalogue.rule_sets, settings.max_window_ms, settings.window_steps,
                       settings.window_items, mixed_time)
