"""How much clients may register together: refused with the limit and what there would be, counted at the log's end, shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.ir.rules import RuleSet
from engine.runtime.catalogue import Catalogue, check_growth
from engine.runtime.errors import EngineError
from engine.runtime.settings import Settings
from engine.runtime.stores import StoredRules
from tests.unit.runtime.test_engine import Running, running

__all__ = ["running"]
TRIPLES = [("<http://a>", "<http://b>", f'"{number}"') for number in range(5)]


def refused(slug: str, call: object, *given: object, **more: object) -> tuple[int, int]:
    """(limit, current) of the refusal."""
    with pytest.raises(EngineError) as error:
        call(*given, **more)  # type: ignore[operator]
    assert (error.value.slug, error.value.status) == (slug, 429)
    return error.value.extra["limit"], error.value.extra["current"]


def test_streams(running: Running) -> None:  # noqa: F811
    engine = running.engine
    engine.settings = replace(engine.settings, max_streams=2)
    for name in ("a", "b"):
        engine.put_stream(name, {})
    assert refused("quota-streams", engine.put_stream, "c", {}) == (2, 3)
    assert not engine.put_stream("b", {})[1]     # the same again is no further one
    engine.delete_stream("a")
    assert engine.put_stream("c", {})[1]
    assert engine.info()["quotas"]["streams"] == {"current": 2, "limit": 2}


def test_graphs_and_their_triples(running: Running) -> None:  # noqa: F811
    engine = running.engine
    engine.settings = replace(engine.settings, max_graphs=2, max_graph_triples=8)
    engine.put_graph("http://g/1", TRIPLES)
    assert refused("quota-graphs", engine.put_graph, "http://g/2", TRIPLES) == (8, 10)
    engine.put_graph("http://g/2", TRIPLES[:3])
    assert refused("quota-graphs", engine.put_graph, "http://g/3", TRIPLES[:1]) == (2, 3)
    assert refused("quota-graphs", engine.put_graph, "http://g/2", TRIPLES[3:], replace=False) == (8, 10)
    engine.put_graph("http://g/1", TRIPLES[:4])
    assert engine.info()["quotas"]["graphTriples"] == {"current": 7, "limit": 8}


def set_rules(catalogue: Catalogue, settings: Settings, name: str, text: str) -> None:
    """Set a rule set, if it may be."""
    check_growth(catalogue, catalogue.with_rules(name, StoredRules("text/x-rif-ps", text, 2, RuleSet(name, ()))), settings)


def test_rule_sets_and_their_text() -> None:
    catalogue = Catalogue(rules={"a": StoredRules("text/x-rif-ps", "x" * 60, 1, RuleSet("a", ()))})
    settings = Settings(max_rule_sets=2, max_rule_text=100)
    set_rules(catalogue, settings, "a", "x" * 100)
    set_rules(catalogue, settings, "b", "x" * 40)
    assert refused("quota-rules", set_rules, catalogue, settings, "b", "x" * 41) == (100, 101)
    assert refused("quota-rules", set_rules, catalogue, replace(settings, max_rule_sets=1), "b", "") == (1, 2)


def test_what_is_over_a_limit_already_may_shrink_and_stay_but_not_grow(running: Running) -> None:  # noqa: F811
    engine = running.engine
    for iri in ("http://g/1", "http://g/2"):
        engine.put_graph(iri, TRIPLES)
    engine.settings = replace(engine.settings, max_graphs=1, max_graph_triples=4, max_streams=0, max_rule_sets=0, max_rule_text=10)
    engine.put_graph("http://g/1", TRIPLES[:4])
    engine.put_graph("http://g/1", [*TRIPLES[:3], TRIPLES[4]])
    assert refused("quota-graphs", engine.put_graph, "http://g/1", TRIPLES) == (4, 10)
    assert refused("quota-graphs", engine.put_graph, "http://g/3", []) == (1, 3)
    assert refused("quota-streams", engine.put_stream, "a", {}) == (0, 1)
    catalogue = Catalogue(rules={"a": StoredRules("text/x-rif-ps", "x" * 60, 1, RuleSet("a", ()))})
    set_rules(catalogue, engine.settings, "a", "x" * 60)
    assert refused("quota-rules", set_rules, catalogue, engine.settings, "a", "x" * 61) == (10, 61)


def test_bounds_are_shown(running: Running) -> None:  # noqa: F811
    shown = running.engine.info()
    assert shown["engineLimits"]["tail_bytes"] == 8 << 20 and shown["engineLimits"]["command_wait_s"] == 30.0
    assert set(shown["quotas"]) == {"streams", "queries", "graphs", "graphTriples", "ruleSets", "ruleText", "topics"}


def test_streams_and_sinks_of_topics(running: Running) -> None:  # noqa: F811
    engine = running.engine
    engine.settings = replace(engine.settings, max_topics=2, kafka={"broker:9092": None})
    source, sink = {"type": "kafka", "topic": "t"}, {"type": "kafka", "topic": "u"}
    engine.put_stream("a", {"source": source})
    engine.register("SELECT ?s FROM STREAM <http://s/a> [RANGE 1s STEP 1s] WHERE { ?s ?p ?o }".replace(
        "http://s/a", engine.stream("a").iri), "q", {"sink": sink})
    assert refused("quota-streams", engine.put_stream, "b", {"source": source}) == (2, 3)
    assert engine.put_stream("b", {})[1] and engine.info()["quotas"]["topics"] == {"current": 2, "limit": 2}
    assert engine.query("q").options["sink"] == {"type": "kafka", "bootstrapServers": "broker:9092", "topic": "u"}
    assert engine.stream("a").state["topic"] == "waiting" and "--kafka" in engine.stream("a").state["error"]


@pytest.mark.parametrize("sink", [{}, {"type": "kafka"}, {"type": "kafka", "topic": "a b"}, {"type": "kafka", "topic": "t", "acks": "0"},
                                  {"type": "kafka", "topic": "t", "bootstrapServers": "inside:22"}, [], "kafka",
                                  {"type": "kafka", "topic": "t", "mode": "some"}])
def test_a_wrong_sink_is_told(running: Running, sink: object) -> None:  # noqa: F811
    engine = running.engine
    engine.settings = replace(engine.settings, kafka={"broker:9092": None})
    engine.put_stream("a", {})
    text = f"SELECT ?s FROM STREAM <{engine.stream('a').iri}> [RANGE 1s STEP 1s] WHERE {{ ?s ?p ?o }}"
    with pytest.raises(EngineError, match="sink: ") as refusal:
        engine.register(text, "q", {"sink": sink})
    assert (refusal.value.slug, refusal.value.status) == ("unknown-parameter", 422)
