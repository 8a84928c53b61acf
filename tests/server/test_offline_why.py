"""``thalweg why``: recorded streams with the reference executor, a server's results, and mistakes."""

from __future__ import annotations

import argparse
import io
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from werkzeug.serving import make_server

from engine.why.explain import Explanation
from server import offline_why
from server.app import create_app
from server.cli import _parser, main
from server.web import Site
from tests.unit.runtime.reference_executor import ReferenceExecutor
from tests.unit.runtime.test_engine import EVENTS, NOW, TEXT, Running, item

QUERY = """PREFIX : <http://ex.org/>
REGISTER QUERY hot AS SELECT ?s ?t FROM STREAM <http://ex.org/temps> [RANGE 4s STEP 2s] USING RULES rdfs
WHERE { ?s a :Sensor ; :temp ?t FILTER(?t > 3) }"""
MADE = """PREFIX : <http://ex.org/>
REGISTER STREAM <http://ex.org/hots> AS CONSTRUCT { ?s :hot ?t } FROM STREAM <http://ex.org/temps> [RANGE 4s STEP 2s]
WHERE { ?s :temp ?t }"""
READER = """PREFIX : <http://ex.org/>
REGISTER QUERY reader AS SELECT ?s FROM STREAM <http://ex.org/hots> [RANGE 4s STEP 2s] WHERE { ?s :hot ?t }"""
STREAM = '500\t<http://ex.org/a> <http://ex.org/temp> "5"^^<http://www.w3.org/2001/XMLSchema#integer> .\n' \
         '500\t<http://ex.org/a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://ex.org/Thermo> .\n' \
         '1500\t<http://ex.org/a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://ex.org/Thermo> .\n'
TBOX = "@prefix : <http://ex.org/> . :Thermo <http://www.w3.org/2000/01/rdf-schema#subClassOf> :Sensor ."
FILES = {"q.rq": QUERY, "m.rq": MADE, "r.rq": READER, "s.tsv": STREAM, "t.ttl": TBOX}
TREE = """hot, result q1c1-1, row 0, at 1970-01-01T00:00:02Z
?s = <http://ex.org/a>
?t = "5"^^<http://www.w3.org/2001/XMLSchema#integer>

proof 1
  <http://ex.org/a> a <http://ex.org/Sensor>
      by rdfs9 (rdfs)
    <http://ex.org/Thermo> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <http://ex.org/Sensor>
        in the graph <%s>
    <http://ex.org/a> a <http://ex.org/Thermo>
        on the stream <http://ex.org/temps> at 1970-01-01T00:00:00.500Z, 1970-01-01T00:00:01.500Z
  <http://ex.org/a> <http://ex.org/temp> "5"^^<http://www.w3.org/2001/XMLSchema#integer>
      on the stream <http://ex.org/temps> at 1970-01-01T00:00:00.500Z
  5 > 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files, in the folder in which the command runs."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def proved(*arguments: str) -> tuple[int, str]:
    out = io.StringIO()
    given: argparse.Namespace = _parser().parse_args(["why", *arguments])
    return offline_why.prove(given, out, lambda place: nullcontext(ReferenceExecutor())), out.getvalue()


def test_a_row_of_a_replay(folder: Path) -> None:
    found = proved("q.rq", "--stream", "s.tsv", "--graph", "t.ttl", "--at", "2000")
    assert found == (0, TREE % (folder / "t.ttl").as_uri())
    status, text = proved("q.rq", "--stream", "s.tsv", "--graph", "t.ttl", "--at", "1970-01-01T00:00:02Z", "--format", "json", "--max", "9")
    body = json.loads(text)
    assert status == 0 and body["answer"]["t"]["value"] == "5" and len(body["proofs"]) == 1 and body["more"] is False


def test_streams_that_queries_make(folder: Path) -> None:
    status, text = proved("m.rq", "r.rq", "--stream", "s.tsv", "--at", "4000", "--name", "reader")
    assert status == 0
    assert "on the stream <http://ex.org/hots> at 1970-01-01T00:00:02Z, made by the query hots" in text


@pytest.mark.parametrize(("arguments", "complaint"), [
    (["--at", "1"], "no result at 1 ms; it has 2000, 4000"), (["--at", "2000", "--row", "1"], "no-such-result"),
    (["--at", "2000", "--name", "other"], "--name must be one of hot"), (["--at", "2000", "--mode", "delta"], "ISTREAM"),
    (["--at", "2000", "--stream", "none"], "There is no file none")])
def test_mistakes_are_told_in_words(folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str) -> None:
    assert proved("q.rq", "--stream", "s.tsv", "--graph", "t.ttl", *arguments) == (1, "")
    assert complaint in capsys.readouterr().err


def test_no_server_is_blamed_where_none_runs(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.why.explain", lambda case, row, most: Explanation((), False))
    assert proved("q.rq", "--stream", "s.tsv", "--graph", "t.ttl", "--at", "2000") == (1, "")
    told = capsys.readouterr().err
    assert "one of the two evaluations is wrong" in told and "server" not in told


@pytest.mark.parametrize("arguments", [
    ["why"], ["why", "q.rq"], ["why", "q.rq", "--at", "1", "--result", "q1c1-1"], ["why", "--url", "http://localhost:1"],
    ["why", "q.rq", "--url", "http://localhost:1", "--name", "q"]])
def test_what_does_not_go_together(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2 and "--url" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--row", "-1"], ["--max", "0"], ["--at", "soon"]])
def test_values_that_are_none(arguments: list[str]) -> None:
    with pytest.raises(SystemExit):
        main(["why", "q.rq", *arguments])


@contextmanager
def serving(running: Running) -> Iterator[str]:
    """The URL of a server around an engine."""
    server = make_server("127.0.0.1", 0, create_app(running.engine, Site(running.engine)), threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """The URL of a server with one result of the query ``q``."""
    with Running(tmp_path) as running:
        running.engine.put_stream("s", EVENTS)
        running.engine.register(TEXT)
        running.engine.push("s", [item(NOW + 100), item(NOW + 1_100, "2")])
        running.ticks(1)
        with serving(running) as url:
            yield url


def test_a_triple_with_a_blank_node_of_the_template(folder: Path) -> None:
    """Whose name is not that of the evaluation that looks for proofs."""
    Path("b.rq").write_text(MADE.replace("?s :hot ?t", "?s :hot _:h . _:h :is ?t"))
    for row, shown in ((0, 'a> <http://ex.org/temp> "5"'), (1, 'a> <http://ex.org/temp> "5"')):
        assert main(["why", "b.rq", "--stream", "http://ex.org/temps=s.tsv", "--at", "2000", "--row", str(row)]) == 0
        assert proved("b.rq", "--stream", "http://ex.org/temps=s.tsv", "--at", "2000", "--row", str(row))[1].count(shown) == 1


def test_a_server_is_asked(served: str, capsys: pytest.CaptureFixture[str]) -> None:
    read: Callable[[], Any] = lambda: capsys.readouterr()
    assert main(["why", "--url", served, "--name", "q"]) == 0
    assert "on the stream <http://ex.org/s> at 2023-11-14T22:13:20.100Z" in read().out
    assert main(["why", "--url", served, "--name", "q", "--result", "q1c1-1", "--format", "json"]) == 0
    assert json.loads(read().out)["result"] == "q1c1-1"
    assert main(["why", "--url", served, "--name", "q", "--row", "5"]) == 1
    assert read().err.startswith("404 no-such-result")
    assert main(["why", "--url", "http://127.0.0.1:1", "--name", "q"]) == 1
    assert "does not answer" in read().err


def test_a_query_that_the_server_does_not_have_is_named(served: str, capsys: pytest.CaptureFixture[str]) -> None:
    for more in ([], ["--result", "q1c1-1"], ["--format", "json"]):
        assert main(["why", "--url", served, "--name", "nope", *more]) == 1
        found = capsys.readouterr()
        assert not found.out and "no-such-query" in found.err and "nope" in found.err
    httpd = f"{served}queries/q"
    assert main(["why", "--url", httpd, "--name", "q"]) == 1 and "not-found" in capsys.readouterr().err


@pytest.mark.parametrize("url", ["localhost:8175", "nowhere", "http://[", "http://127.0.0.1:notaport", "ftp://127.0.0.1:1/x"])
def test_a_url_that_is_none_is_told_in_words(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "--url", url, "--name", "q"]) == 1
    found = capsys.readouterr().err
    assert url in found and "does not answer" in found


def test_a_query_without_a_result_yet_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Running(tmp_path) as running:
        running.engine.put_stream("s", EVENTS)
        running.engine.register(TEXT)
        with serving(running) as url:
            assert main(["why", "--url", url, "--name", "q"]) == 1
        assert "has no result yet" in capsys.readouterr().err


def test_a_row_of_a_rule_program(folder: Path) -> None:
    (folder / "p.rifps").write_text("""Document( Prefix(ex <http://ex.org/>)
  Import(<http://ex.org/temps> <https://w3id.org/rsp/vocals#RDFStream>) Window 3 s
  Group( Forall ?x (?x[ex:is -> "hot"] :- ?x[ex:temp -> 5]) ) )""")
    for more in (["--at", "500"], ["--at", "3500", "--ceased"]):
        status, text = proved("p.rifps", "--stream", "s.tsv", *more)
        assert status == 0 and 'http://ex.org/is> "hot", during [1970-01-01T00:00:00.500Z, 1970-01-01T00:00:03.500Z)' in text
        assert "    window 3s, during" in text
    assert proved("p.rifps", "--stream", "s.tsv", "--at", "500", "--ceased")[0] == 1


# --- rule programs with a time of their own

PROGRAMS = {
    "flags.dmtl": """Flag(X,Z) :- Monit(X,Z), Boxminus[0,4]Diamondminus[0,2]Signal(Z)
Boxplus[0,3]Monit(X,Z) :- Flag(Y,Z), Connect(X,Y)
""",
    "data.txt": "Connect(m,n)\nMonit(n,s1)@[0,6]\nSignal(s1)@0\nSignal(s1)@2\nSignal(s1)@4\nSignal(s1)@5.5\n",
    "heat.lars": """START AT 0
warm(V) <- [2] box temp(V), not [1] diamond cold.
<http://ex.org/hot>(X) <- [1] @T <http://ex.org/temp>(X, "5"^^<http://www.w3.org/2001/XMLSchema#integer>).
@0 temp(20). @1 temp(20). @2 temp(20). @4 cold.
"""}


@pytest.fixture
def programs(folder: Path) -> Path:
    for name, text in PROGRAMS.items():
        (folder / name).write_text(text)
    return folder


def why(*arguments: str) -> int:
    return main(["why", *arguments])


def test_a_fact_of_a_program_on_dense_time(programs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert why("flags.dmtl", "--facts", "data.txt", "--fact", "Flag(m,s1)@4") == 0
    text = capsys.readouterr().out
    assert text.startswith('flags: Flag("m" "s1"), at 4\n\nproof 1\n  Flag("m" "s1"), ')
    assert "box-plus[0s,3s] Monit" in text and "box-minus[0s,4s] diamond-minus[0s,2s] Signal" in text
    assert 'Signal("s1"), at 2\n' in text and "in the file data.txt" in text
    assert why("flags.dmtl", "--facts", "data.txt", "--fact", "Flag(m,s1)@[4,7.5]", "--format", "json", "--max", "2") == 0
    body = json.loads(capsys.readouterr().out)
    assert body["program"] == "flags" and body["during"] == {"from": 4000, "to": 7500, "fromIncluded": True, "toIncluded": True}
    assert body["proofs"][0]["kind"] in ("derived", "operator")


def test_a_fact_of_a_program_on_granules(programs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert why("heat.lars", "--fact", "warm(20)") == 0
    assert capsys.readouterr().out == """heat: warm("20"^^<http://www.w3.org/2001/XMLSchema#integer>), at 0

proof 1
  warm("20"^^<http://www.w3.org/2001/XMLSchema#integer>), at 0
      by rule 1 (heat, line 2)
    box-minus[0s,2s] temp(20), at 0
      temp("20"^^<http://www.w3.org/2001/XMLSchema#integer>), at 0
          stated in the rules heat, line 4
    nothing matches diamond-minus[0s,1s] cold(), at 0
"""
    assert why("heat.lars", "--fact", "<http://ex.org/hot>(<http://ex.org/a>)@1", "--stream", "s.tsv") == 0
    text = capsys.readouterr().out
    assert "window[1 granules] @0 [" in text and "on the stream <file://" in text


def test_what_does_not_hold_has_no_proof(programs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert why("flags.dmtl", "--facts", "data.txt", "--fact", "Flag(m,s1)@8") == 1
    assert capsys.readouterr().err == "thalweg: Flag(m,s1)@8 does not hold. Flag(m,s1) holds at [4,7.5].\n"
    assert why("heat.lars", "--fact", "warm(20)@[1,3]") == 1
    assert capsys.readouterr().err == "thalweg: warm(20)@[1,3] does not hold. warm(20) holds at [0,2].\n"
    assert why("heat.lars", "--fact", "warm(21)") == 1
    assert capsys.readouterr().err == "thalweg: warm(21) does not hold. warm(21) never does.\n"


def test_what_goes_with_a_program(programs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, complaint in ((["flags.dmtl"], "--fact"), (["flags.dmtl", "--fact", "p", "--at", "1"], "--at goes with queries"),
                                 (["flags.dmtl", "heat.lars", "--fact", "p"], "alone"), (["q.rq", "--at", "1", "--fact", "p"], "--fact")):
        assert why(*arguments) == 2 and complaint in capsys.readouterr().err
    assert why("flags.dmtl", "--fact", "p@1 q@2") == 1
