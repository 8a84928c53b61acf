"""``GET /queries/{name}/results/{id}/why`` over an engine with the reference executor: proofs, and what is refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from flask.testing import FlaskClient

from engine.ir import strata as growth
from engine.runtime.log import LogFolder
from engine.runtime.resources import Item
from engine.runtime.service import Engine
from engine.timeline import MIN
from grammar.rule_sets import parse_rules
from server.app import create_app
from server.limits import Limits
from server.web import Site
from tests.server.conftest import problem
from tests.unit.runtime.test_engine import EVENTS, NOW, Running

EX = "http://ex.org/"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
SUB = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
SOURCES = "FROM STREAM <http://ex.org/s> [RANGE 2s STEP 1s]"
TEXT = f"REGISTER QUERY q AS SELECT ?x {SOURCES} USING RULES owl2rl USING GRAPH <http://ex.org/t> WHERE {{ ?x a <http://ex.org/Person> }}"
ALARMS = """Document( Prefix(ex <http://ex.org/>)
  Group(
    Forall ?x ( ?x[ex:alarm -> "high"] :- ?x[ex:value -> "1"] )
  ) )"""
RIF = "text/x-rif-ps"
TBOX = [("<http://ex.org/Student>", SUB, "<http://ex.org/Young>"), ("<http://ex.org/Young>", SUB, "<http://ex.org/Person>")]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with Running(tmp_path) as found:
        found.engine.put_stream("s", EVENTS)
        found.engine.put_graph("http://ex.org/t", TBOX)
        yield found


@pytest.fixture
def client(running: Running) -> FlaskClient:
    found: FlaskClient = create_app(running.engine, Site(running.engine, base_url="http://localhost:8175")).test_client()
    return found


def push(engine: Engine, t_ms: int, *triples: tuple[str, str, str]) -> None:
    engine.push("s", [Item(NOW + t_ms, None, triples)])


def student(name: str) -> tuple[str, str, str]:
    return f"<{EX}{name}>", TYPE, "<http://ex.org/Student>"


def uri(name: str) -> dict[str, str]:
    return {"type": "uri", "value": EX + name}


def node(found: dict[str, Any], *path: int) -> dict[str, Any]:
    """A premise of a premise."""
    for number in path:
        found = found["premises"][number]
    return found


def test_the_tree_of_an_answer(running: Running, client: FlaskClient) -> None:
    running.engine.register(TEXT)
    push(running.engine, 100, student("ann"))
    push(running.engine, 1_100, student("bob"))
    running.ticks(1)
    reply = client.get("/queries/q/results/q1c1-1/why?row=0&max=5")
    assert reply.status_code == 200, reply.text
    body = reply.get_json()
    assert (body["query"], body["result"], body["row"], body["at"]) == ("q", "q1c1-1", 0, "2023-11-14T22:13:21Z")
    assert body["answer"] == {"x": uri("ann")}
    assert body["window"] == [{"stream": "http://ex.org/s", "open": "2023-11-14T22:13:19Z", "close": "2023-11-14T22:13:21Z"}]
    proof = body["proofs"][0]
    assert proof["kind"] == "match" and proof["bindings"] == {"x": uri("ann")}
    step = node(proof, 0)
    assert step["kind"] == "derived" and step["rule"] == {"set": "owl2rl", "name": "cax-sco"}
    assert step["triple"]["object"] == uri("Person") and set(step["bindings"]) == {"c", "d", "x"}
    found = {leaf["triple"]["subject"]["value"] + " " + leaf["triple"]["object"]["value"]: leaf["sources"] for leaf in leaves(proof)}
    assert found == {"http://ex.org/ann http://ex.org/Student": [{"stream": "http://ex.org/s", "at": ["2023-11-14T22:13:20.100Z"]}],
                     "http://ex.org/Student http://ex.org/Young": [{"graph": "http://ex.org/t"}],
                     "http://ex.org/Young http://ex.org/Person": [{"graph": "http://ex.org/t"}]}
    assert len(body["proofs"]) > 1 and len({str(p) for p in body["proofs"]}) == len(body["proofs"])
    assert "There are more proofs." in client.get("/queries/q/results/q1c1-1/why", headers={"Accept": "text/plain"}).text


def leaves(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if found["kind"] == "asserted":
        yield found
    for part in found.get("premises", found.get("members", [])):
        yield from leaves(part)


def test_rules_of_a_text_have_a_line(running: Running, client: FlaskClient) -> None:
    running.engine.put_rules("alarms", RIF, ALARMS)
    running.engine.register(f"REGISTER QUERY q AS CONSTRUCT {{ ?x <http://ex.org/is> ?y }} {SOURCES} USING RULES alarms "
                            "WHERE { ?x <http://ex.org/alarm> ?y }")
    push(running.engine, 100, ("<http://ex.org/x>", "<http://ex.org/value>", '"1"'))
    push(running.engine, 1_100, ("<http://ex.org/x>", "<http://ex.org/value>", '"2"'))
    running.ticks(1)
    text = client.get("/queries/q/results/q1c1-1/why", headers={"Accept": "text/plain"})
    assert text.content_type == "text/plain; charset=utf-8"
    assert text.text == """q, result q1c1-1, row 0, at 2023-11-14T22:13:21Z
?s = <http://ex.org/x>
?p = <http://ex.org/is>
?o = "high"

proof 1
  <http://ex.org/x> <http://ex.org/alarm> "high"
      by rule 1 (alarms, line 3)
    <http://ex.org/x> <http://ex.org/value> "1"
        on the stream <http://ex.org/s> at 2023-11-14T22:13:20.100Z
"""
    step = node(client.get("/queries/q/results/q1c1-1/why").get_json()["proofs"][0], 0)
    assert step["rule"] == {"set": "alarms", "name": None, "number": 1, "line": 3}
    running.engine.put_rules("alarms", RIF, ALARMS.replace("high", "low"))
    assert "alarms" in problem(client.get("/queries/q/results/q1c1-1/why"), 410, "no-longer-kept")["detail"]


PROGRAM = """Document( Prefix(ex <http://ex.org/>)
  Import(<http://ex.org/s> <https://w3id.org/rsp/vocals#RDFStream>)
  Window 3 s
  Group( Forall ?x (?x[ex:c -> ex:yes] :- And(?x[ex:a -> ex:yes] ?x[ex:b -> ex:yes])) ) )"""


def yes(name: str) -> tuple[str, str, str]:
    return f"<{EX}x>", f"<{EX}{name}>", f"<{EX}yes>"


def test_what_a_rule_program_reports_is_proved(running: Running, client: FlaskClient) -> None:
    running.engine.register(PROGRAM, "q")
    for t_ms, name in ((1_000, "a"), (2_000, "b"), (9_000, "a"), (20_000, "a")):
        push(running.engine, t_ms, yes(name))
    running.ticks(2)
    body = client.get("/queries/q/results/q1c1-1/why").get_json()
    assert [proof["kind"] for proof in body["proofs"]] == ["match"] and body["more"] is False
    step = node(body["proofs"][0], 0)
    assert step["rule"] == {"set": "q", "name": None, "number": 1, "line": 4}
    assert step["during"] == {"from": "2023-11-14T22:13:22Z", "to": "2023-11-14T22:13:24Z", "fromIncluded": True, "toIncluded": False}
    assert [(part["kind"], part["operator"], part["text"]) for part in step["premises"]] == [("operator", "window", "window 3s")] * 2
    assert node(step, 0, 0)["sources"] == [{"stream": "http://ex.org/s", "at": ["2023-11-14T22:13:21Z"]}]
    assert node(step, 0)["during"]["to"] == "2023-11-14T22:13:24Z" and node(step, 1)["during"]["from"] == "2023-11-14T22:13:22Z"
    ceased = client.get("/queries/q/results/q1c1-2/why").get_json()
    assert ceased["proofs"] == body["proofs"] and ceased["at"] == "2023-11-14T22:13:24Z"
    assert "window 3s, during [2023-11-14T22:13:21Z, 2023-11-14T22:13:24Z)" in client.get(
        "/queries/q/results/q1c1-2/why", headers={"Accept": "text/plain"}).text


METRIC = """PREFIX ex: <http://ex.org/>
FROM STREAM ex:s
Steady(X) :- Boxminus[0,2]Alive(X), not Diamondminus[0,1]ex:off(X,X)
Boxplus[0,2]Alive(X) :- ex:beat(X,Y)
"""
GRANULES = """PREFIX ex: <http://ex.org/>
FROM STREAM ex:s
warm(X) <- [2] box ex:value(X, "1").
"""


class Timed(Running):
    """An engine that reads programs with a time of their own."""

    parse_rules = staticmethod(parse_rules)

    def register(self, text: str) -> None:
        self.engine.register(text, "q", {"media": "text/x-datalogmtl" if ":-" in text else "text/x-lars"})


@pytest.fixture
def timed(tmp_path: Path) -> Iterator[Timed]:
    with Timed(tmp_path) as found:
        found.engine.put_stream("s", EVENTS)
        yield found


def told(running: Running) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows that a program tells, by stream, each with the answer of its route."""
    client = create_app(running.engine, Site(running.engine, base_url="http://localhost:8175")).test_client()
    for event in running.engine.results.read("q", 0, 100):
        for row in range(len(orjson.loads(event.payload)["results"]["bindings"])):
            reply = client.get(f"/queries/q/results/{event.id}/why?row={row}")
            assert reply.status_code == 200, reply.text
            yield event.stream or "", reply.get_json()


def test_what_a_program_on_dense_time_tells_is_proved(timed: Timed) -> None:
    timed.register(METRIC)
    for t_ms in (1_000, 2_500, 20_000):
        push(timed.engine, t_ms, (f"<{EX}x>", f"<{EX}beat>", '"1"'))
    timed.until(lambda: timed.engine.results.bounds("q").newest >= 3)
    found = [(stream, node(body["proofs"][0], 0)) for stream, body in told(timed)]
    steady = [(stream, step) for stream, step in found if step["atom"]["predicate"] == "Steady"]
    assert [stream for stream, _ in steady] == ["p", "n"] and steady[0][1] == steady[1][1]
    step = steady[0][1]
    assert step["during"]["from"] == "2023-11-14T22:13:23Z" and step["rule"]["line"] == 3
    box, absent = step["premises"]
    assert (box["operator"], box["text"]) == ("box-minus", 'box-minus[0s,2s] Alive(<http://ex.org/x>)')
    assert absent["kind"] == "absent" and absent["text"].startswith("diamond-minus[0s,1s] [<http://ex.org/x> <http://ex.org/off>")
    assert {leaf["sources"][0]["at"][0] for leaf in leaves(step)} == {"2023-11-14T22:13:21Z"}


def test_what_a_program_on_granules_tells_is_proved(timed: Timed) -> None:
    timed.register(GRANULES)
    for t_ms in (1_000, 2_000, 3_000, 9_000):
        push(timed.engine, t_ms, (f"<{EX}x>", f"<{EX}value>", '"1"'))
    timed.until(lambda: timed.engine.results.bounds("q").newest >= 1)
    [(_, body), *_] = told(timed)
    step = node(body["proofs"][0], 0)
    assert step["during"] == {"from": "2023-11-14T22:13:21Z", "to": "2023-11-14T22:13:22Z", "fromIncluded": True, "toIncluded": False}
    assert step["premises"][0]["operator"] == "box-minus"


def test_rule_sets_with_a_time_of_their_own_are_proved(timed: Timed) -> None:
    timed.engine.put_rules("steady", "text/x-datalogmtl",
                           "PREFIX ex: <http://ex.org/>\nex:Steady(X) :- Boxminus[0,2]Diamondminus[0,1]ex:beat(X,Y)\n")
    timed.engine.register("REGISTER QUERY q AS SELECT ?x FROM STREAM <http://ex.org/s> [RANGE 1s STEP 1s] USING RULES steady "
                          "WHERE { ?x a <http://ex.org/Steady> }")
    for t_ms in (1_000, 1_900, 2_800, 3_600, 9_000):
        push(timed.engine, t_ms, (f"<{EX}x>", f"<{EX}beat>", '"1"'))
    timed.until(lambda: timed.engine.results.bounds("q").newest >= 4)
    client = create_app(timed.engine, Site(timed.engine)).test_client()
    [event] = [event for event in timed.engine.results.read("q", 0, 100) if orjson.loads(event.payload)["results"]["bindings"]]
    step = node(client.get(f"/queries/q/results/{event.id}/why").get_json()["proofs"][0], 0)
    assert step["rule"] == {"set": "steady", "name": None, "number": 1, "line": 2}
    [box] = step["premises"]
    assert box["operator"] == "box-minus" and [part["operator"] for part in box["premises"]] == ["diamond-minus"] * len(box["premises"])
    assert {at for leaf in leaves(box) for source in leaf["sources"] for at in source["at"]} <= {
        f"2023-11-14T22:13:{at}Z" for at in ("21", "21.900", "22.800", "23.600")}


def test_rules_with_a_window_of_their_own_are_proved(running: Running, client: FlaskClient) -> None:
    running.engine.put_rules("alarms", RIF, ALARMS.replace("  Group(", "  Window 5 s Group("))
    running.engine.register("REGISTER QUERY q AS SELECT ?x FROM STREAM <http://ex.org/s> [RANGE 1s STEP 1s] USING RULES alarms "
                            "WHERE { ?x <http://ex.org/alarm> ?y }")
    push(running.engine, 100, ("<http://ex.org/x>", "<http://ex.org/value>", '"1"'))
    push(running.engine, 2_100, ("<http://ex.org/x>", "<http://ex.org/value>", '"2"'))
    running.ticks(2)
    last = client.get("/queries/q/results/q1c1-2/why")
    assert last.status_code == 200, last.text
    step = node(last.get_json()["proofs"][0], 0, 0)
    assert (step["kind"], step["operator"], step["text"]) == ("operator", "window", "window 5s")
    assert step["over"] == {"from": "2023-11-14T22:13:17Z", "to": "2023-11-14T22:13:22Z", "fromIncluded": True, "toIncluded": False}
    assert node(step, 0)["sources"] == [{"stream": "http://ex.org/s", "at": ["2023-11-14T22:13:20.100Z"]}]


def test_a_search_through_rules_that_derive_for_ever_ends(running: Running, client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    count = "Forall ?x ?n ( ?x[ex:n -> External(func:numeric-add(?n 1))] :- And(?x[ex:n -> ?n] External(pred:numeric-less-than(?n 5))) )"
    prefixes = " ".join(f"Prefix({name[:4]} <http://www.w3.org/2007/rif-builtin-{name}#>)" for name in ("function", "predicate"))
    running.engine.put_rules("alarms", RIF, ALARMS.replace("Group(", f"{prefixes} Group( {count}"))
    running.engine.register(f"REGISTER QUERY q AS SELECT ?y {SOURCES} USING RULES alarms WHERE {{ ?x <http://ex.org/n> ?y }}")
    push(running.engine, 100, ("<http://ex.org/x>", "<http://ex.org/n>", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'))
    push(running.engine, 1_100)
    running.ticks(1)
    assert client.get("/queries/q/results/q1c1-1/why").status_code == 200
    monkeypatch.setattr(growth, "MOST_ROUNDS", 2)
    assert "after 2 rounds" in problem(client.get("/queries/q/results/q1c1-1/why"), 422, "not-explained")["detail"]


def test_what_is_refused(running: Running, client: FlaskClient) -> None:
    running.engine.register(TEXT)
    push(running.engine, 100, student("ann"))
    push(running.engine, 1_100, student("bob"))
    running.ticks(1)
    problem(client.get("/queries/none/results/q1c1-1/why"), 404, "no-such-query")
    for unknown in ("q1c1-99", "q1c1-0", "q1c2-1", "q9c1-1", "latest", "q1c1"):
        problem(client.get(f"/queries/q/results/{unknown}/why"), 404, "no-such-result")
    assert problem(client.get("/queries/q/results/q1c1-1/why?row=1"), 404, "no-such-result")["rows"] == 1
    for wrong in ("row=-1", "row=x", "max=0", "max=1000", "max=x", "mode=delta", "mode=none", "rows=1"):
        problem(client.get(f"/queries/q/results/q1c1-1/why?{wrong}"), 400, "unknown-parameter")
    problem(client.get("/queries/q/results/q1c1-1/why", headers={"Accept": "text/csv"}), 406, "not-acceptable")
    problem(client.post("/queries/q/results/q1c1-1/why"), 405)
    small = create_app(running.engine, Site(running.engine, Limits(why_triples=2))).test_client()
    assert problem(small.get("/queries/q/results/q1c1-1/why"), 422, "not-explained")["limit"] == 2
    running.engine.put_graph("http://ex.org/t", TBOX[:1])
    assert "<http://ex.org/t>" in problem(client.get("/queries/q/results/q1c1-1/why"), 410, "no-longer-kept")["detail"]
    running.engine.restart_query("q", reset=True)
    problem(client.get("/queries/q/results/q1c1-1/why"), 410, "no-longer-kept")
    running.engine.delete_query("q")
    problem(client.get("/queries/q/results/q1c1-1/why"), 410, "query-removed")


def test_an_older_result_is_explained_by_its_own_window_also_after_a_restart(tmp_path: Path) -> None:
    with Running(tmp_path) as running:
        running.engine.put_stream("s", EVENTS)
        running.engine.put_graph("http://ex.org/t", TBOX)
        running.engine.register(TEXT)
        for second, name in enumerate(("ann", "bob", "cy", "dee", "eve", "flo")):
            push(running.engine, 1_000 * second + 100, student(name), student("all"))
        running.ticks(5)
        expect_own_windows(running)
    with Running(tmp_path) as again:
        expect_own_windows(again)


def expect_own_windows(running: Running) -> None:
    client = create_app(running.engine, Site(running.engine)).test_client()
    for event in running.results():
        for row in range(3 if event.seq > 1 else 2):
            reply = client.get(f"/queries/q/results/{event.id}/why?row={row}").get_json()
            times = [at for leaf in leaves(reply["proofs"][0]) for source in leaf["sources"] for at in source.get("at", [])]
            assert within(reply["window"][0], times)
            assert len(times) == (1 if reply["answer"]["x"] != uri("all") else min(event.seq, 2))


def within(window: dict[str, str], times: list[str]) -> bool:
    """Whether there are times, all of the window."""
    begin, end, *found = map(datetime.fromisoformat, (window["open"], window["close"], *times))
    return bool(found) and all(begin <= at < end for at in found)


def without_the_first(path: Path) -> None:
    """The log without the items of the first 1.5 s."""
    folder = LogFolder(path / "log", path / "archive")
    rows = pa.concat_tables(folder.read(0))
    early = pc.less(rows["t"], NOW + 1_500).fill_null(False)
    cut = rows.filter(early)["position"][-1].as_py()
    for file in folder.files():
        file.path.unlink()
    for part in (rows.filter(pc.less_equal(rows["position"], cut)), rows.filter(pc.greater(rows["position"], cut))):
        folder._write(part, folder.archive_folder, "none")
    assert folder.expired() == (MIN, 0)
    os.utime(folder.files()[0].path, (0, 0))
    assert folder.expire(1.0, NOW + 1_000) == 0 and folder.expire(1.0, NOW + 2_000) == 1
    assert folder.expired() == (NOW + 1_100, cut)


def test_items_that_are_gone_are_said_to_be(tmp_path: Path) -> None:
    with Running(tmp_path) as running:
        running.engine.put_stream("s", EVENTS)
        running.engine.put_graph("http://ex.org/t", TBOX)
        running.engine.register(TEXT)
        for second in range(6):
            push(running.engine, 1_000 * second + 100, student(f"x{second}"))
        running.ticks(5)
    without_the_first(tmp_path)
    with Running(tmp_path) as running:
        client = create_app(running.engine, Site(running.engine)).test_client()
        found = [client.get(f"/queries/q/results/{event.id}/why") for event in running.results()]
        # The windows that close at 1, 2 and 3 s show items of the first 1.5 s; the one that closes at 4 s shows those from 2 s on.
        assert [reply.status_code for reply in found] == [410, 410, 410, 200, 200]
        assert "<http://ex.org/s>" in problem(found[0], 410, "no-longer-kept")["detail"]


def test_a_stream_that_a_query_makes_is_named_with_it(running: Running, client: FlaskClient) -> None:
    running.engine.register(f"REGISTER STREAM <http://ex.org/people> AS CONSTRUCT {{ ?x a <http://ex.org/Seen> }} {SOURCES} "
                            "WHERE { ?x a <http://ex.org/Student> }", "people")
    running.engine.register("REGISTER QUERY r AS SELECT ?x FROM STREAM <http://ex.org/people> [RANGE 2s STEP 1s] "
                            "WHERE { ?x a <http://ex.org/Seen> }")
    for second in range(6):
        push(running.engine, 1_000 * second + 100, student("ann"))
    running.ticks(3, "r")
    for event in running.results("r")[:3]:
        reply = client.get(f"/queries/r/results/{event.id}/why").get_json()
        (source,) = node(reply["proofs"][0], 0)["sources"]
        assert source["stream"] == "http://ex.org/people" and source["query"] == "people"
        assert within(reply["window"][0], source["at"])


def test_what_istream_adds(running: Running, client: FlaskClient) -> None:
    running.engine.register(f"REGISTER QUERY q AS SELECT ISTREAM ?x {SOURCES} WHERE {{ ?x a <http://ex.org/Student> }}")
    for second, name in enumerate(("zoe", "ann", "bob")):
        push(running.engine, 1_000 * second + 100, student(name))
    running.ticks(2)
    why: Callable[[str], Any] = lambda wish: client.get(f"/queries/q/results/q1c1-2/why?{wish}").get_json()["answer"]
    assert why("mode=delta") == {"x": uri("ann")} and {why(f"row={n}")["x"]["value"] for n in (0, 1)} == {EX + "ann", EX + "zoe"}
    problem(client.get("/queries/q/results/q1c1-2/why?mode=delta&row=1"), 404, "no-such-result")


def test_ask(running: Running, client: FlaskClient) -> None:
    running.engine.register(f"REGISTER QUERY q AS ASK {SOURCES} "
                            "WHERE { ?x a <http://ex.org/Student> MINUS { ?x a <http://ex.org/No> } }")
    push(running.engine, 100, student("ann"))
    push(running.engine, 1_100, ("<http://ex.org/x>", "<http://ex.org/y>", "<http://ex.org/z>"))
    push(running.engine, 9_100, student("ann"))
    running.ticks(2)
    proof = client.get("/queries/q/results/q1c1-1/why").get_json()["proofs"][0]
    assert [part["kind"] for part in proof["premises"]] == ["asserted", "absent"]
    last = running.results()[-1].id
    problem(client.get(f"/queries/q/results/{last}/why"), 404, "no-such-result")


@pytest.mark.parametrize(("text", "statuses"), [
    (METRIC.replace("Boxminus[0,2]", "Boxminus[0,1]"), ["p 410", "p 410", "n 410", "p 200", "p 200", "n 200"]),
    (GRANULES, ["p 410", "n 410", "p 200", "n 200"])])
def test_items_that_a_program_looks_at_may_be_gone(tmp_path: Path, text: str, statuses: list[str]) -> None:
    def beat(second: int) -> tuple[tuple[str, str, str], ...]:
        return (f"<{EX}x>", f"<{EX}beat>", '"1"'), (f"<{EX}x{second // 10}>", f"<{EX}value>", '"1"')

    with Timed(tmp_path) as running:
        running.engine.put_stream("s", EVENTS)
        running.register(text)
        for second in (0, 1, 2, 3, 20, 21, 22, 23, 24, 40):
            push(running.engine, 1_000 * second + 100, *beat(second))
        running.until(lambda: running.engine.results.bounds("q").newest >= len(statuses))
    without_the_first(tmp_path)
    with Timed(tmp_path) as running:
        client = create_app(running.engine, Site(running.engine)).test_client()
        found = [(event.stream, client.get(f"/queries/q/results/{event.id}/why")) for event in running.results("q")]
        assert [f"{stream} {reply.status_code}" for stream, reply in found] == statuses
        assert "rules look at" in problem(found[0][1], 410, "no-longer-kept")["detail"]


@pytest.mark.parametrize(("text", "media", "count"), [
    ("ex:Steady(X) :- Boxminus[0,1]Diamondminus[0,1.5]ex:beat(X,Y)", "text/x-datalogmtl", 3),
    ("ex:Steady(X) <- [3 sec] box ex:beat(X, Y).", "text/x-lars", 3),
    ("ex:Steady(X) <- [1 sec] box ex:beat(X, Y), not ex:Once(X).\nex:Once(X) <- [5 sec] diamond ex:value(X, Y).", "text/x-lars", 2),
    ("ex:Steady(X) :- Boxminus[0,1]Diamondminus[0,1.5]ex:beat(X,Y), Diamondminus[0,inf)ex:beat(X,Y)", "text/x-datalogmtl", 3)])
def test_a_proof_looks_at_items_that_its_rules_can_see(tmp_path: Path, text: str, media: str, count: int) -> None:
    """The others may be gone. What the rules say then, also on a timeline that began with one of these, is what it was."""
    with Timed(tmp_path) as running:
        running.engine.put_stream("s", EVENTS)
        running.engine.put_rules("steady", media, f"PREFIX ex: <http://ex.org/>\n{text}\n")
        running.engine.register("REGISTER QUERY q AS SELECT ?x FROM STREAM <http://ex.org/s> [RANGE 1s STEP 10s] USING RULES steady "
                                "WHERE { ?x a <http://ex.org/Steady> }")
        for second in (0, 1, 6, 7, 8, 9, 16, 17, 18, 19, 26, 27, 28, 29, 40):
            push(running.engine, 1_000 * second + 100, (f"<{EX}x>", f"<{EX}beat>", '"1"'),
                 *([(f"<{EX}x>", f"<{EX}value>", '"1"')] if second == 26 else []))
        running.until(lambda: running.engine.results.bounds("q").newest >= 3)
        found = [event for event in running.results("q") if orjson.loads(event.payload)["results"]["bindings"]]
        assert len(found) == count
        bounded, seen = "inf" not in text, running.engine.evidence("q", found[-1].id).events
        assert len(seen) <= 8 if bounded else len(seen) == 14
    without_the_first(tmp_path)
    with Timed(tmp_path) as running:
        client = create_app(running.engine, Site(running.engine)).test_client()
        replies = [client.get(f"/queries/q/results/{event.id}/why") for event in found]
        assert [reply.status_code for reply in replies] == [200 if bounded else 410] * count, [e.tick - NOW for e in found]
