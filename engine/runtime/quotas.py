"""How much there may be of what clients register, together. Decided against the catalogue at the log's end, as all commands are."""

from __future__ import annotations

from typing import Any

from engine.runtime.catalogue import Catalogue
from engine.runtime.errors import EngineError
from engine.runtime.settings import Settings


def check_stream(catalogue: Catalogue, settings: Settings) -> None:
    """Refuse one more stream than there may be."""
    count = len(catalogue.streams)
    _check("quota-streams", "streams", count, count + 1, settings.max_streams)


def check_graph(catalogue: Catalogue, settings: Settings, iri: str, triples: int) -> None:
    """Refuse a static graph, or a version of it with so many triples, that makes too many."""
    _check("quota-graphs", "static graphs", len(catalogue.graphs), len(catalogue.graphs.keys() | {iri}), settings.max_graphs)
    sizes = {other: version.triples for other, version in catalogue.graphs.items()}
    _check("quota-graphs", "triples in all static graphs together", sum(sizes.values()), sum({**sizes, iri: triples}.values()),
           settings.max_graph_triples)


def check_rules(catalogue: Catalogue, settings: Settings, name: str, text: str) -> None:
    """Refuse a rule set, or a version of it, that makes too many or too much text."""
    _check("quota-rules", "rule sets", len(catalogue.rules), len(catalogue.rules.keys() | {name}), settings.max_rule_sets)
    sizes = {other: len(stored.text) for other, stored in catalogue.rules.items()}
    _check("quota-rules", "characters in all rule sets together", sum(sizes.values()), sum({**sizes, name: len(text)}.values()),
           settings.max_rule_text)


def usage(catalogue: Catalogue, settings: Settings) -> dict[str, Any]:
    """How much there is, and how much there may be."""
    found = {"streams": (len(catalogue.streams), settings.max_streams), "queries": (len(catalogue.queries), settings.max_queries),
             "graphs": (len(catalogue.graphs), settings.max_graphs),
             "graphTriples": (sum(version.triples for version in catalogue.graphs.values()), settings.max_graph_triples),
             "ruleSets": (len(catalogue.rules), settings.max_rule_sets),
             "ruleText": (sum(len(stored.text) for stored in catalogue.rules.values()), settings.max_rule_text)}
    return {name: {"current": current, "limit": limit} for name, (current, limit) in found.items()}


def _check(slug: str, what: str, current: int, wanted: int, limit: int) -> None:
    """Refuse what grows beyond a limit. What does not grow is allowed, though there may be too much already: the limit was lowered."""
    if wanted > max(limit, current):
        raise EngineError(slug, 429, f"There may be {limit} {what}; this would make {wanted}.", {"limit": limit, "current": wanted})
