"""What a command has compiled is not compiled again in the thread of the pump's owner."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from engine.runtime import catalogue
from engine.runtime.catalogue import Planned
from tests.unit.runtime.test_engine import EVENTS, Running

G = "http://ex.org/tbox"
SUB, LABEL = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>", "<http://www.w3.org/2000/01/rdf-schema#label>"
TEXT = (f"REGISTER QUERY q AS SELECT ?s FROM STREAM <http://ex.org/s> [RANGE 2s STEP 1s] FROM <{G}> USING RULES rdfs, own "
        "WHERE { ?s a <http://ex.org/B> }")
OWN = "Prefix(ex <http://ex.org/>) Group ( Forall ?x ( ex:q(?x) :- ex:p(?x) ) )"
A, B, C = "<http://ex.org/A>", "<http://ex.org/B>", "<http://ex.org/C>"


def test_what_is_registered_and_changed_is_compiled_in_the_thread_of_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Running(tmp_path) as running:
        engine, by, make = running.engine, list[str](), running.backend.compile

        def compiled(*given: object) -> object:
            by.append(threading.current_thread().name)
            return make(*given)

        monkeypatch.setattr(running.backend, "compile", compiled)
        engine.put_stream("s", EVENTS)
        engine.put_graph(G, [(A, SUB, B)])
        engine.put_rules("own", "text/x-rif-ps", f"Document({OWN})")
        engine.register(TEXT)
        engine.put_graph(G, [(A, SUB, B), (C, SUB, B)])
        engine.put_rules("own", "text/x-rif-ps", f"Document({OWN.replace('ex:p', 'ex:r')})")
        running.until(lambda: engine.graph(G)[0].triples == 2 and engine.query("q").state in ("running", "idle"))
        assert by == [threading.current_thread().name] * 3
        assert not running.machine.planned._plans       # the pump has taken all of them

    with Running(tmp_path) as running:      # after a start the pump compiles
        running.until(lambda: running.engine.query("q").state in ("running", "idle"))
        assert "subClassOf" in str(running.engine.graph(G)[1])


def test_plans_that_nobody_takes_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "MOST_WAITING", 2)
    plans = Planned()
    for number in range(3):
        plans.hand((number,), f"plan {number}")
    assert [plans.take((number,)) for number in range(3)] == [None, "plan 1", "plan 2"]
    assert plans.take((1,)) is None
