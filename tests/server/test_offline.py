"""``thalweg run`` without Spark: files, graphs, plans, mistakes, and how answers are written."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from engine import output
from engine.runtime.resources import RESULT_KINDS, Item, ResultEvent
from server import offline
from server.cli import main
from tests.server.fake_engine import rows

QUERY = """PREFIX : <http://ex.org/>
REGISTER QUERY hot AS SELECT ?s ?t FROM STREAM <http://ex.org/temps> [RANGE 4s STEP 2s] %s WHERE { ?s a :Sensor ; :temp ?t }"""
TBOX = "@prefix : <http://ex.org/> . :Thermo <http://www.w3.org/2000/01/rdf-schema#subClassOf> :Sensor ."
STAMP = '"1970-01-01T00:00:05Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
TRIG = f"<http://g> {{ <http://a> <http://b> <http://c> }} <http://g> <http://www.w3.org/ns/prov#generatedAtTime> {STAMP} ."
ITEM = Item(5000, "<http://g>", (("<http://a>", "<http://b>", "<http://c>"),))


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Write a file into the folder in which the command runs; its name."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, data: str | bytes) -> str:
        (tmp_path / name).write_bytes(data if isinstance(data, bytes) else data.encode())
        return name
    return write


@pytest.mark.parametrize(("name", "data", "graph"), [
    ("s.trig", TRIG, True), ("s.trigs.gz", gzip.compress(TRIG.encode()), True), ("s.TRIG", TRIG, True),
    ("s.nq", f"<http://g> <http://www.w3.org/ns/prov#generatedAtTime> {STAMP} .\n<http://a> <http://b> <http://c> <http://g> .\n", True),
    ("s.jsonl", '{"@id":"http://g","http://www.w3.org/ns/prov#generatedAtTime":"1970-01-01T00:00:05","@graph":{"@id":"http://a",'
                '"http://b":{"@id":"http://c"}}}', True),
    ("s.tsv", "5000\t<http://a> <http://b> <http://c> .", False), ("s.nt", "5000\t<http://a> <http://b> <http://c> .", False)])
def test_recorded_streams_of_any_format(write: Callable[..., str], name: str, data: str | bytes, graph: bool) -> None:
    assert offline.read_stream(Path(write(name, data))) == [ITEM if graph else Item(5000, None, ITEM.triples, 5000)]


def test_plans_need_no_stream_and_take_graphs_as_background(write: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    write("q.rq", QUERY % "")
    write("t.ttl", TBOX)
    assert main(["run", "q.rq", "--graph", "t.ttl", "--rules", "rdfs", "--explain", "rewritten"]) == 0
    shown = capsys.readouterr().out
    assert "USING RULES rdfs" in shown and "Thermo" in shown
    write("q.rq", QUERY % "FROM <http://ex.org/tbox>")
    assert main(["run", "q.rq", "--graph", "t.ttl", "--explain", "logical"]) == 0
    assert main(["run", "q.rq", "--graph", "http://ex.org/tbox=t.ttl", "--explain", "logical"]) == 0


RULES = """Document( Prefix(ex <http://ex.org/>)
  Group( Forall ?x ?t ( ?x[ex:celsius -> ?t] :- ?x[ex:temp -> ?t] ) ) )"""


def test_rule_sets_come_from_files(write: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    write("r.rifps", RULES)
    for clause in ("", "USING RULES mine"):  # all queries use it, or those that say so
        write("q.rq", QUERY % clause)
        assert main(["run", "q.rq", "--rules", "mine=r.rifps", "--explain", "rewritten"]) == 0
        assert "# mine: 1 rule" in capsys.readouterr().out
    for name, text, complaint in (("mine=r.rifps", RULES.replace(":-", "<-"), "line 2"), ("mine=none.rif", "", "none.rif"),
                                  ("mine=q.rq", "", "the rule language is not known"), ("rdfs=r.rifps", RULES, "rdfs is built in"),
                                  ("1a=r.rifps", RULES, "is not a name"), ("other", RULES, "No rule set is named 'other'")):
        write("r.rifps", text)
        assert main(["run", "q.rq", "--rules", name, "--explain", "logical"]) == 1
        written = capsys.readouterr()
        assert complaint in written.err and not written.out and "Traceback" not in written.err


@pytest.mark.parametrize(("query", "arguments", "complaint"), [
    ("SELECT", [], "line 1, column 7"), (QUERY % "", [], "No --stream for http://ex.org/temps"),
    (QUERY % "", ["--stream", "http://ex.org/temps=none.trig"], "There is no file none.trig"),
    (QUERY % "", ["--stream", "none"], "There is no file none"), (QUERY % "", ["--stream", "q.rq"], "the format is not known"),
    (QUERY % "", ["--stream", "bad.trig"], "bad.trig: "), (QUERY % "", ["--graph", "t.ttl"], "names no graph for it"),
    (QUERY % "FROM <http://ex.org/x>", ["--stream", "s.trig"], "http://ex.org/x"),
    (QUERY % "FROM STREAM <http://ex.org/b> [NOW]", ["--stream", "s.trig"], "write IRI=FILE"),
    (QUERY % "USING RULES none", ["--stream", "s.trig"], "none"), (None, [], "There is no file q.rq."),
    (QUERY % "", ["--stream", "http://ex.org/temps=/dev/null"], "/dev/null is not a regular file"),
    (QUERY % "", ["--stream", "."], ". is not a regular file")])
def test_mistakes_are_told_in_words(write: Callable[..., str], capsys: pytest.CaptureFixture[str], query: str | None, arguments: list[str],
                                    complaint: str) -> None:
    for name, text in (("s.trig", TRIG), ("bad.trig", "<http://g> {\n<http://a>"), ("t.ttl", TBOX)):
        write(name, text)
    if query is not None:
        write("q.rq", query)
    assert main(["run", "q.rq", *arguments]) == 1
    written = capsys.readouterr()
    assert complaint in written.err and not written.out and "Traceback" not in written.err


def test_files_and_iris_may_hold_equals_signs(write: Callable[..., str]) -> None:
    write("a=b.trig", TRIG)
    assert offline.named_file("http://ex.org/?x=1=a=b.trig") == ("http://ex.org/?x=1", Path("a=b.trig"))
    assert offline.named_file("a=b.trig") == (None, Path("a=b.trig"))


def event(form: str, table: pa.Table, at_ms: int = 2000) -> ResultEvent:
    return ResultEvent("q", "e", 1, at_ms, at_ms, RESULT_KINDS[form], "rstream", output.payload(form, table))


TABLE = rows(s=["<http://a>", "_:b"], t=['"1,5"@de', None])
GRAPH = rows(s=["<http://a>"], p=["<http://b>"], o=['"a b"'])


def written(form: str, *events: ResultEvent) -> str:
    out = io.StringIO()
    offline._write(iter(events), form, out, False, "process")
    return out.getvalue()


def test_answers_as_lines_of_json() -> None:
    lines: list[Any] = [json.loads(line) for line in written("jsonl", event("SELECT", TABLE), event("ASK", GRAPH), event(
        "CONSTRUCT", GRAPH)).splitlines()]
    assert lines[0]["at"] == 2000 and lines[0]["results"]["results"]["bindings"][1] == {"s": {"type": "bnode", "value": "b"}}
    assert lines[1] == {"at": 2000, "results": {"head": {}, "boolean": True}, "executor": "process"}
    assert lines[2] == {"at": 2000, "graph": '<http://a> <http://b> "a b" .\n', "executor": "process"}


def test_answers_as_csv_with_one_header() -> None:
    assert written("csv", event("SELECT", TABLE), event("SELECT", TABLE.slice(0, 1), 4000)) == (
        'at,s,t\r\n2000,http://a,"1,5"\r\n2000,_:b,\r\n4000,http://a,"1,5"\r\n')
    assert written("csv", event("CONSTRUCT", GRAPH)) == 'at,subject,predicate,object\r\n2000,<http://a>,<http://b>,"""a b"""\r\n'


def test_answers_as_tables() -> None:
    assert written("table", event("SELECT", TABLE)).splitlines() == [
        "at 1970-01-01T00:00:02Z (2 rows)", "  ?s          ?t", "  ----------  --------", '  <http://a>  "1,5"@de', "  _:b", ""]
    assert "true" in written("table", event("ASK", GRAPH))


MADE = """PREFIX : <http://ex.org/>
REGISTER STREAM :warm AS CONSTRUCT { ?s a :Warm } FROM STREAM <http://ex.org/temps> [RANGE 2s] WHERE { ?s :temp ?t }"""


def test_queries_that_read_each_other(write: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    reader = QUERY.replace("REGISTER QUERY hot", "REGISTER QUERY reader").replace("<http://ex.org/temps>", ":warm") % ""
    files = [write("reader.rq", reader), write("warm.rq", MADE)]
    assert main(["run", *files, "--explain", "logical"]) == 0
    shown = capsys.readouterr().out
    assert "# reader" in shown and "# warm" in shown
    assert main(["run", *files]) == 1 and "No --stream for http://ex.org/temps" in capsys.readouterr().err
    assert main(["run", files[0], "--explain", "logical"]) == 0
    write("warm.rq", MADE.replace("<http://ex.org/temps>", ":warm"))
    assert main(["run", *files, "--explain", "logical"]) == 1
    assert "line 2, column 63: 'warm' reads the stream of 'warm'" in capsys.readouterr().err


def test_answers_of_several_queries_say_whose_they_are() -> None:
    def several(form: str) -> str:
        out = io.StringIO()
        offline._write(iter([event("SELECT", TABLE.slice(0, 1)), replace(event("ASK", GRAPH), query="r")]), form, out, True, "process")
        return out.getvalue()
    assert [json.loads(line)["query"] for line in several("jsonl").splitlines()] == ["q", "r"]
    assert several("csv") == 'query,at,s,t\r\nq,2000,http://a,"1,5"\r\nquery,at,answer\r\nr,2000,true\r\n'
    assert "r at 1970-01-01T00:00:02Z (1 rows)" in several("table")


INCONSISTENT = replace(event("SELECT", TABLE), meta={"inconsistencies": ["cax-dw: ?x = <http://a>", "cax-dw: ?x = <http://b>"]})


def test_answers_tell_what_is_inconsistent(capsys: pytest.CaptureFixture[str]) -> None:
    """As the live feed does: a member of the line, lines of the table, standard error beside CSV."""
    line = json.loads(written("jsonl", INCONSISTENT))
    assert line["inconsistencies"] == ["cax-dw: ?x = <http://a>", "cax-dw: ?x = <http://b>"]
    assert "inconsistencies" not in json.loads(written("jsonl", event("SELECT", TABLE)))
    assert "  inconsistent: cax-dw: ?x = <http://b>\n" in written("table", INCONSISTENT)
    assert written("csv", INCONSISTENT) == written("csv", event("SELECT", TABLE))
    assert "at 2000: inconsistent: cax-dw: ?x = <http://a>\n" in capsys.readouterr().err


@pytest.mark.parametrize(("query", "arguments", "complaint"), [
    (QUERY % "", ["--stream", "http://ex.org/temp=s.trig"], "--stream http://ex.org/temp=s.trig: no query reads this stream; "
     "they read http://ex.org/temps"),
    (QUERY % "", ["--stream", "http://ex.org/temps=s.trig", "--stream", "http://ex.org/other=s.trig"], "no query reads this stream"),
    (QUERY % "FROM <http://ex.org/g>", ["--graph", "http://ex.org/h=t.ttl"], "--graph http://ex.org/h=t.ttl: no query names this graph; "
     "they name http://ex.org/g"),
    (QUERY % "", ["--graph", "http://ex.org/h=t.ttl"], "no query names this graph; they name none"),
    (QUERY % "", ["--rules", "mine=r.rifps", "--rules", "mine=r.rifps"], "--rules mine=r.rifps: there is a rule set mine already")])
@pytest.mark.parametrize("more", [[], ["--explain", "logical"]])
def test_files_that_no_query_reads_are_refused(write: Callable[..., str], capsys: pytest.CaptureFixture[str], query: str,
                                               arguments: list[str], complaint: str, more: list[str]) -> None:
    for name, text in (("q.rq", query), ("s.trig", TRIG), ("t.ttl", TBOX), ("r.rifps", RULES)):
        write(name, text)
    assert main(["run", "q.rq", *arguments, *more]) == 1
    found = capsys.readouterr()
    assert complaint in found.err and not found.out and "Traceback" not in found.err


def test_a_recording_of_a_stream_that_a_query_makes_is_refused(write: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    files = [write("warm.rq", MADE), write("s.trig", TRIG)]
    assert main(["run", files[0], "--stream", "http://ex.org/temps=s.trig", "--stream", "http://ex.org/warm=s.trig"]) == 1
    assert "no query reads this stream" in capsys.readouterr().err


@pytest.mark.parametrize(("clause", "hint"), [
    ("FROM <http://ex.org/x>", "--graph http://ex.org/x=FILE"), ("USING GRAPH <http://ex.org/x>", "--graph http://ex.org/x=FILE"),
    ("USING RULES none", "--rules none=FILE")])
def test_hints_name_options_where_there_is_no_server(write: Callable[..., str], capsys: pytest.CaptureFixture[str], clause: str,
                                                     hint: str) -> None:
    write("s.trig", TRIG)
    write("q.rq", QUERY % clause)
    for more in (["--stream", "s.trig"], ["--explain", "logical"]):
        assert main(["run", "q.rq", *more]) == 1
        found = capsys.readouterr().err
        assert hint in found and "PUT" not in found, found


def test_the_exit_status_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "settings.md").read_text("utf-8")
    section = text[text.index("## Exit status"):]
    for status in ("`0`", "`1`", "`2`"):
        assert status in section.partition("\n## ")[0]


def test_warnings_are_told_and_refuse_nothing(write: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    write("q.rq", (QUERY % "").replace("?s ?t FROM", "?s ?x FROM").replace("RANGE 4s STEP 2s", "RANGE 2s STEP 4s"))
    assert main(["run", "q.rq", "--explain", "logical"]) == 0
    found = capsys.readouterr()
    assert found.out and "warning: line 2, column 33: No pattern binds ?x" in found.err and "STEP 4s is longer than RANGE 2s" in found.err
    write("q.rq", QUERY % "")
    assert main(["run", "q.rq", "--explain", "logical"]) == 0 and not capsys.readouterr().err


def test_warnings_count_what_the_recordings_show() -> None:
    from engine.runtime.replay import warnings
    from grammar import parse

    def told(*predicates: str) -> list[str]:
        items = [Item(5000, None, tuple(("<http://a>", f"<http://ex.org/{name}>", "<http://c>") for name in predicates))]
        return [one.code for _, one in warnings({"hot": parse(text)}, {}, [], {}, {"http://ex.org/temps": items})]
    text = (QUERY % "").replace("a :Sensor ; ", "")
    assert told("temp") == [] and told("humidity") == ["unknown-word"]


class Short(io.RawIOBase):
    """A file that takes two MiB at a time at most, as a system takes 2 GiB."""

    def __init__(self) -> None:
        self.written = b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.written += bytes(data[:2 << 20])
        return min(len(data), 2 << 20)


def test_an_answer_of_any_size_is_written_whole_to_an_unbuffered_output() -> None:
    file, long = Short(), "x" * (5 << 20)
    event = ResultEvent("q", "e", 1, 0, 0, RESULT_KINDS["SELECT"], "rstream", output.payload("SELECT", rows(a=[f'"{long}"'])))
    out = io.TextIOWrapper(file, "utf-8", write_through=True)   # type: ignore[type-var]
    offline._write(iter([event]), "jsonl", out, False, "process")
    [row] = json.loads(file.written)["results"]["results"]["bindings"]
    assert row["a"]["value"] == long
