"""Rule sets from the log's rows to the engine's commands: versions, what they do to queries, recovery, refusals."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.ir.rules import TRIPLE, Atom, Falsum, Import, Negation, Rule, RuleSet
from engine.ir.spans import DiagnosticError, Span
from engine.ir.terms import Constant, Variable
from engine.records import Mark, Record, Register, RulesVersion
from engine.runtime import replay
from engine.runtime.errors import EngineError
from engine.runtime.pump import Pump
from engine.runtime.resources import Item
from engine.runtime.results import Changes, ResultLog
from engine.runtime.rows import Control, Kind, controls
from engine.runtime.stores import checked, reads_no_rules
from grammar import parse
from grammar.rule_sets import parse_rules
from tests.encoded import encode
from tests.sparks import compile_query
from tests.unit.runtime.reference_executor import ReferenceExecutor
from tests.unit.runtime.test_engine import EVENTS, NOW, P, Running, S

RIF = "text/x-rif-ps"
TEXT = """REGISTER QUERY q AS SELECT ?x ?o FROM STREAM <http://ex.org/s> [RANGE 2s STEP 1s] USING RULES alarms
          WHERE { ?x <http://ex.org/alarm> ?o }"""


def alarm(value: str) -> str:
    """A rule set in presentation syntax: what has the value 1 has this alarm."""
    return f"""Document( Prefix(ex <http://ex.org/>)
      Group( Forall ?x ( ?x[ex:alarm -> "{value}"] :- ?x[ex:p -> "1"] ) ) )"""


def item(t_ms: int) -> Item:
    return Item(t_ms, None, ((S, P, '"1"'),))


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with Running(tmp_path) as found:
        found.engine.put_stream("s", EVENTS)
        yield found


def refused(call: Callable[[], object], slug: str) -> EngineError:
    with pytest.raises(EngineError) as caught:
        call()
    assert caught.value.slug == slug
    return caught.value


def alarms(running: Running, count: int) -> list[list[str]]:
    """The alarms of each of the first `count` results."""
    running.ticks(count)
    return [[row["o"]["value"] for row in json.loads(event.payload)["results"]["bindings"]] for event in running.results()]


# --- records, results, pump

def test_rows_of_a_rule_set_read_back() -> None:
    records: list[Record] = [RulesVersion(1, "r", RIF, "text \u00e9\n"), Mark(2, "s", 5), RulesVersion(3, "r", "", None)]
    found = controls(encode(records))
    assert [found[0], found[2]] == [Control(1, Kind.RULES, "r", None, {"media": RIF, "text": "text \u00e9\n"}),
                                    Control(3, Kind.RULES, "r", None, {"media": "", "text": None})]


def test_definitions_of_rule_sets_outlive_the_process(tmp_path: Path) -> None:
    log = ResultLog(tmp_path / "db")
    log.commit(Changes(1, rules={"a": {"media": RIF, "text": "x", "version": 1}, "b": {"media": RIF, "text": "y", "version": 2}}), 0)
    log.commit(Changes(3, rules={"a": None, "b": {"media": RIF, "text": "z", "version": 3}}), 0)
    log.close()
    log = ResultLog(tmp_path / "db")
    assert log.rules() == {"b": {"media": RIF, "text": "z", "version": 3}}
    log.close()


def pump_with(*records: Record) -> tuple[Pump, list[str]]:
    """A pump after these records, with the reasons of the `status` notices that it gave."""
    pump = Pump(ReferenceExecutor(), ResultLog(None), parse, compile_query, parse_rules=parse_rules)
    outcome = pump.process(encode(records))
    return pump, [notice.data["reason"] for notice in outcome.notices if notice.kind == "status"]


def test_a_change_is_told_to_the_queries_that_use_the_rule_set() -> None:
    other = TEXT.replace("QUERY q", "QUERY other").replace("USING RULES alarms", "")
    pump, reasons = pump_with(RulesVersion(1, "alarms", RIF, alarm("low")), Register(2, "q", TEXT, 2), Register(3, "other", other, 3),
                              RulesVersion(4, "alarms", RIF, alarm("high")))
    assert reasons == ["registered", "registered", "rules alarms changed"]
    assert pump.rule_store.stored["alarms"].version == 4 and pump.queries["q"].state == "running"


def test_a_query_whose_rules_are_removed_fails_alone_and_comes_back_with_them() -> None:
    pump, reasons = pump_with(RulesVersion(1, "alarms", RIF, alarm("low")), Register(2, "q", TEXT, 2), RulesVersion(3, "alarms", "", None))
    assert pump.queries["q"].state == "failed" and "No rule set is named 'alarms'" in str(pump.queries["q"].error)
    assert reasons == ["registered", "failure"] and pump.rule_store.sets == {}


# --- what a rule set may say

X = Variable("x")


def triple(value: str) -> Atom:
    return Atom(TRIPLE, (X, Constant(f"<{value}>"), Constant('"1"')))


def test_rules_that_depend_on_their_own_negation_are_refused() -> None:
    with pytest.raises(DiagnosticError) as caught:
        checked(RuleSet("r", (Rule(triple("a"), (triple("b"), Negation(triple("c")))), Rule(triple("c"), (triple("a"),)))))
    assert [d.code for d in caught.value.diagnostics] == ["rules-unsafe"] and "<a>" in caught.value.diagnostics[0].message
    fine = RuleSet("r", (Rule(Falsum(), (triple("a"), Negation(triple("c")))), Rule(triple("c"), (triple("b"),))))
    assert checked(fine) is fine


def test_what_would_have_to_be_imported_is_refused_at_its_place() -> None:
    with pytest.raises(DiagnosticError) as caught:
        checked(RuleSet("r", (), imports=(Import("http://ex.org/other", span=Span("Import(<http://ex.org/other>)", 7, 28)),)))
    assert caught.value.diagnostics[0].span is not None and caught.value.diagnostics[0].span.column == 8


def test_an_engine_without_a_parser_of_rules_reads_none() -> None:
    with pytest.raises(DiagnosticError, match="text/x-lars"):
        reads_no_rules("", "text/x-lars", "r")


# --- commands

def test_a_rule_set_is_replaced_under_a_running_query(running: Running) -> None:
    engine = running.engine
    info, created = engine.put_rules("alarms", RIF, alarm("low"))
    assert created and (info.media, info.clauses, info.used_by, info.built_in) == (RIF, 1, (), False)
    assert engine.put_rules("alarms", RIF, alarm("low")) == (info, False)
    assert engine.register(TEXT)[0].rules == ("alarms",)
    engine.push("s", [item(NOW + 500), item(NOW + 1_500)])
    assert alarms(running, 1) == [["low"]]
    changed, created = engine.put_rules("alarms", RIF, alarm("high"))
    assert not created and changed.etag != info.etag and changed.used_by == ("q",)
    engine.push("s", [item(NOW + 2_500)])
    assert alarms(running, 2) == [["low"], ["high"]]
    assert "rules alarms changed" in [n.data["reason"] for n in running.notices if n.kind == "status"]


def test_rule_sets_are_there_again_after_a_restart(tmp_path: Path) -> None:
    with Running(tmp_path) as before:
        before.engine.put_stream("s", EVENTS)
        for value in ("low", "high"):
            info, _ = before.engine.put_rules("alarms", RIF, alarm(value))
        before.engine.put_rules("gone", RIF, alarm("low"))
        before.engine.delete_rules("gone")
        before.engine.register(TEXT)
        before.engine.push("s", [item(NOW + 500)])
    with Running(tmp_path) as after:
        assert after.engine.rule_set("alarms").etag == info.etag and after.engine.rule_set("alarms").text == alarm("high")
        refused(lambda: after.engine.rule_set("gone"), "no-such-rules")
        after.engine.push("s", [item(NOW + 1_500)])
        assert alarms(after, 1) == [["high"]]


def test_what_is_not_done_with_rule_sets(running: Running) -> None:
    engine = running.engine
    with pytest.raises(DiagnosticError, match="No rule set is named 'alarms'"):
        engine.register(TEXT)
    engine.put_rules("alarms", RIF, alarm("low"))
    engine.register(TEXT)
    assert refused(lambda: engine.delete_rules("alarms"), "in-use").extra == {"usedBy": ["q"]}
    for call in (lambda: engine.put_rules("rdfs", RIF, alarm("low")), lambda: engine.delete_rules("rdfs")):
        assert refused(call, "method-not-allowed").status == 405
    refused(lambda: engine.put_rules("1a", RIF, alarm("low")), "bad-name")
    refused(lambda: engine.delete_rules("none"), "no-such-rules")
    with pytest.raises(DiagnosticError) as caught:
        engine.put_rules("alarms", RIF, alarm("low").replace(":-", "<-"))
    assert caught.value.diagnostics[0].span is not None and caught.value.diagnostics[0].span.line == 2
    assert engine.rule_set("alarms").text == alarm("low")
    engine.delete_query("q")
    engine.delete_rules("alarms")
    assert all(info.built_in for info in engine.rule_sets())


def test_rules_with_which_a_query_could_not_be_planned_are_refused(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = running.engine
    engine.put_rules("alarms", RIF, alarm("low"))
    engine.register(TEXT)
    monkeypatch.setattr(running.backend, "compile", lambda *_: (_ for _ in ()).throw(ValueError("a cycle through negation")))
    assert "a cycle through negation" in refused(lambda: engine.put_rules("alarms", RIF, alarm("high")), "in-use").detail
    assert engine.rule_set("alarms").text == alarm("low")


def test_one_shot_queries_and_plans_use_rule_sets(running: Running) -> None:
    engine = running.engine
    engine.put_graph("http://ex.org/g", [(S, P, '"1"')])
    text = "SELECT ?o FROM <http://ex.org/g> USING RULES alarms WHERE { ?x <http://ex.org/alarm> ?o }"
    with pytest.raises(DiagnosticError, match="alarms"):
        engine.sparql(text)
    engine.put_rules("alarms", RIF, alarm("low"))
    table = engine.sparql(text).table
    assert table is not None and table.to_pylist() == [{"o": '"low"'}]


# --- replays

def test_a_replay_compiles_with_the_rule_sets_that_it_is_given() -> None:
    sets = {"alarms": parse_rules(alarm("low"), RIF, "alarms")}
    streams = {"http://ex.org/s": [item(500)]}
    queries = {"q": parse(TEXT.replace("USING RULES alarms", ""))}
    assert "Scan window 0 ?x <http://ex.org/p> \"1\"" in replay.explain(queries, streams, {}, ["alarms"], "logical", sets)["q"]
    with pytest.raises(DiagnosticError, match="alarms"):
        replay.explain(queries, streams, {}, ["alarms"], "logical")
    with pytest.raises(DiagnosticError, match="other"):
        next(replay.replay(queries, streams, {}, ["other"], sets))


def windowed(window: str) -> str:
    """The rule set `alarm` with a Window in line 2."""
    return alarm("1").replace("\n      Group", f"\n  Window {window} Group")


def test_a_window_of_rules_is_held_to_the_limits_of_a_query_s(tmp_path: Path) -> None:
    with Running(tmp_path, max_window_ms=60_000, window_steps=20) as running:
        engine = running.engine
        engine.put_stream("s", EVENTS)
        with pytest.raises(DiagnosticError) as caught:
            engine.put_rules("alarms", RIF, windowed("61 s"))
        [found] = caught.value.diagnostics
        assert (found.code, found.message) == ("window-unbounded", "The Window is 61000 ms; the limit is 60000 ms.")
        assert found.span is not None and found.span.source[found.span.start:found.span.end] == "Window 61 s"
        engine.put_rules("alarms", RIF, windowed("60 s"))
        with pytest.raises(DiagnosticError) as caught:
            engine.register(TEXT)
        [found] = caught.value.diagnostics
        assert (found.code, found.message) == ("over-limit", "A Window of the rules, 60000 ms, has 60 evaluation times of this query; the "
                                               "limit window_steps is 20.")
        for window in ("[RANGE 9s STEP 3s]", "[TRIPLES 10]"):
            engine.register(TEXT.replace("[RANGE 2s STEP 1s]", window), options={"replace": True})


def test_the_window_of_a_rif_xml_document_has_its_place() -> None:
    text = """<Document xmlns="http://www.w3.org/2007/rif#">
      <Window xmlns="urn:thalweg:rif">10 s</Window><payload><Group/></payload></Document>"""
    found = parse_rules(text, "application/rif+xml", "r").window_span
    assert found is not None and found.line == 2


# --- rule sets with a time of their own

LARS = "text/x-lars"
HOT = """PREFIX ex: <http://ex.org/>
ex:alarm(X, V) <- [1 sec] diamond ex:p(X, V)."""
LONG = """REGISTER QUERY q AS SELECT ?x ?o FROM STREAM <http://ex.org/s> [RANGE 2s STEP 1s] FROM <http://ex.org/g> USING RULES alarms
          WHERE { ?x <http://ex.org/alarm> ?o }"""


def test_a_query_sees_what_rules_with_a_time_of_their_own_derive(running: Running) -> None:
    """The window misses the first item at the second evaluation; the rules have it still, and at the third no more."""
    engine = running.engine
    info, created = engine.put_rules("alarms", LARS, HOT)
    assert created and (info.media, info.clauses) == (LARS, 1)
    engine.register(TEXT.replace("RANGE 2s", "RANGE 1s"))
    engine.push("s", [item(NOW + 500), item(NOW + 3_500)])
    assert alarms(running, 3) == [["1"], ["1"], []]


def test_a_text_without_register_uses_such_rules_too(running: Running) -> None:
    """It is registered under the name that it is given; asked once it has no stream to see."""
    engine, text = running.engine, TEXT.replace("RANGE 2s", "RANGE 1s").partition(" AS ")[2]
    engine.put_rules("alarms", LARS, HOT)
    assert engine.register(text, "q")[1]
    engine.push("s", [item(NOW + 500), item(NOW + 3_500)])
    assert alarms(running, 3) == [["1"], ["1"], []]


def test_what_was_derived_with_time_is_not_taken_back(running: Running) -> None:
    """Neither by another version of such rules, nor by such rules in the place of others."""
    engine = running.engine
    engine.put_graph("http://ex.org/g", [(S, P, '"0"')])
    engine.put_rules("alarms", LARS, HOT)
    engine.register(LONG)
    assert engine.put_rules("alarms", LARS, HOT)[1] is False
    taken = "uses these rules with a time of their own: what was derived cannot be taken back."
    assert taken in refused(lambda: engine.put_rules("alarms", LARS, HOT.replace("1 sec", "2 sec")), "in-use").detail
    refused(lambda: engine.put_rules("alarms", RIF, alarm("low")), "in-use")
    refused(lambda: engine.put_graph("http://ex.org/g", [(S, P, '"2"')]), "in-use")
    engine.delete_query("q")
    assert engine.put_rules("alarms", RIF, alarm("low"))[0].media == RIF
    engine.register(TEXT)
    assert "without a time of their own" in refused(lambda: engine.put_rules("alarms", LARS, HOT), "in-use").detail
    engine.put_rules("alarms", RIF, alarm("high"))
