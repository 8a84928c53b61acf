"""Where ``thalweg run`` and ``why`` evaluate: small work in their own process, without Spark; the output says which, and why."""

from __future__ import annotations

import io
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from engine.runtime import place
from server import offline
from server.__main__ import INTERRUPTED
from server.cli import main
from tests.unit.runtime.reference_executor import ReferenceExecutor
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
READING = "%d\t<http://ex.org/s%d> <http://ex.org/value> \"%d\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n"
QUERY = """PREFIX ex: <http://ex.org/>
REGISTER QUERY high AS SELECT ?s ?v FROM STREAM ex:s [RANGE 10s STEP 5s] %s WHERE { ?s ex:value ?v FILTER(?v > 3) }"""
FILES = {
    "high.rq": QUERY % "",
    "s.tsv": "".join(READING % (1000 * n, n, n) for n in range(10)),
    "ruled.rq": QUERY.replace("?s ex:value ?v FILTER(?v > 3)", "?s ex:doubtful ?v") % "USING RULES r",
    "r.rifps": """Document( Prefix(ex <http://ex.org/>)
      Group( Forall ?s ?v ( ?s[ex:doubtful -> ?v] :- ?s[ex:value -> ?v] ) ) )""",
    "timed.rq": QUERY.replace("?s ex:value ?v FILTER(?v > 3)", "?s a ex:Seen") .replace("?s ?v FROM", "?s FROM") % "USING RULES t",
    "t.dmtl": "<http://ex.org/Seen>(X) :- Diamondminus[0,5] <http://ex.org/value>(X, V) .",
}
LINES = """import json, sys
from server.cli import main
def imported(): return sorted({name.partition(".")[0] for name in sys.modules} & {"pyspark", "py4j", "flask", "uvicorn"})
print("|", json.dumps([imported(), 0]), file=sys.stderr)
for line in sys.argv[1:]:
    status = main(line.split())
    print("|", json.dumps([imported(), status]), file=sys.stderr)"""
COMMANDS = ["run high.rq", "run ruled.rq --rules r=r.rifps", "run high.rq --explain spark", "why high.rq --at 10000",
            "why ruled.rq --rules r=r.rifps --at 10000"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files, in the folder in which the command runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("THALWEG_MASTER", raising=False)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def in_shell(arguments: Sequence[str], **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": str(ROOT)}, **more)


def test_no_spark_is_imported(folder: Path) -> None:
    """Neither with the commands nor by one of them."""
    found = in_shell(["-c", LINES, *(f"{command} --stream s.tsv" for command in COMMANDS)])
    told = [json.loads(line[2:]) for line in found.stderr.splitlines() if line.startswith("| ")]
    assert dict(zip(["", *COMMANDS], told, strict=True)) == dict.fromkeys(["", *COMMANDS], [[], 0]), found.stderr


def test_ten_lines_take_no_time(folder: Path) -> None:
    """2 s from the shell on an idle machine, here in time of the processor, with room for the weather."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = in_shell(["-m", "server", "run", "high.rq", "--stream", "s.tsv"])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert [len(json.loads(line)["results"]["results"]["bindings"]) for line in found.stdout.splitlines()] == [1, 6, 5]
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 5


def test_the_output_says_where_and_why(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "high.rq", "--stream", "s.tsv"]) == 0
    found = capsys.readouterr()
    assert {json.loads(line)["executor"] for line in found.out.splitlines()} == {"process"}
    assert found.err == (f"thalweg: evaluated in this process (10 triples; Spark is started for more than {place.PROCESS_TRIPLES}, "
                         "or with --master)\n")
    for form in ("csv", "table"):
        assert main(["run", "high.rq", "--stream", "s.tsv", "--format", form]) == 0
        found = capsys.readouterr()
        assert "process" not in found.out and found.err.startswith("thalweg: evaluated in this process (")
    assert main(["why", "high.rq", "--stream", "s.tsv", "--at", "10000", "--format", "json"]) == 0
    found = capsys.readouterr()
    assert json.loads(found.out)["executor"] == "process" and found.err.startswith("thalweg: evaluated in this process (")


def test_rules_with_a_time_of_their_own(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "timed.rq", "--rules", "t=t.dmtl", "--stream", "s.tsv"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["at"] for line in lines[:2]] == [5000, 10000] and lines[0]["results"]["results"]["bindings"]


def test_a_master_or_much_input_takes_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    found = place.choose(3, environment={})
    assert found.spark is None and found.name == "process" and "3 triples" in found.why
    assert place.choose(place.PROCESS_TRIPLES, environment={}).spark is None
    found = place.choose(place.PROCESS_TRIPLES + 1, environment={})
    assert found.spark is not None and found.spark.master == "local[*]" and found.name == "spark"
    assert str(found) == f"Spark on local[*] ({place.PROCESS_TRIPLES + 1} triples are more than {place.PROCESS_TRIPLES})"
    found = place.choose(0, "local[3]", {"THALWEG_MASTER": "local[4]"})
    assert str(found) == "Spark on local[3] (--master is given)"
    assert str(place.choose(0, None, {"THALWEG_MASTER": "local[4]"})) == "Spark on local[4] (THALWEG_MASTER is set)"


def test_the_place_that_is_chosen_is_where_it_runs(
        folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[place.Place] = []

    def executor_at(wanted: place.Place) -> Any:
        asked.append(wanted)
        return nullcontext(ReferenceExecutor())
    monkeypatch.setattr("engine.runtime.replay.executor_at", executor_at)
    assert main(["run", "high.rq", "--stream", "s.tsv", "--master", "local[3]"]) == 0
    found = capsys.readouterr()
    assert asked[0].spark is not None and asked[0].spark.master == "local[3]"
    assert found.err == "thalweg: evaluated by Spark on local[3] (--master is given)\n"
    assert {json.loads(line)["executor"] for line in found.out.splitlines()} == {"spark"}
    monkeypatch.setattr(place, "PROCESS_TRIPLES", 9)
    assert main(["run", "high.rq", "--stream", "s.tsv"]) == 0
    assert capsys.readouterr().err == "thalweg: evaluated by Spark on local[*] (10 triples are more than 9)\n"


@pytest.mark.parametrize("command", ["run", "why", "serve"])
@pytest.mark.parametrize("master", ["", "here", "local[]", "local[0]", "local[-1]", "spark://host", "localhost:7077", "http://host:7077"])
def test_a_master_that_is_none(command: str, master: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, *(["q.rq"] if command != "serve" else []), "--master", master])
    assert ended.value.code == 2 and "expected a Spark master" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [
    ["run", "t.dmtl", "--master", "local"], ["why", "t.dmtl", "--fact", "P(a)@3", "--master", "local"],
    ["why", "--url", "http://localhost:1", "--name", "q", "--master", "local"]])
def test_a_master_where_spark_has_no_part(folder: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert "--master goes with queries" in (told := capsys.readouterr().err) or "--url goes with --name" in told


class Endless(io.StringIO):
    """A text that goes on for ever."""

    def read(self, size: int | None = -1) -> str:
        assert size is not None and size >= 0, "this would never end"
        return "x" * size


def test_standard_input_that_does_not_end(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", Endless())
    assert main(["run", "-", "--stream", "s.tsv"]) == 1
    assert capsys.readouterr().err == (f"thalweg: standard input: a text that is no file has at most {offline.MOST_PIPED} "
                                       "characters.\n")
    assert main(["run", "/dev/zero"]) == 1
    assert "/dev/zero: a text that is no file has at most" in capsys.readouterr().err


def test_a_query_from_standard_input(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(FILES["high.rq"]))
    assert main(["run", "-", "--stream", "s.tsv", "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("at,s,v\r\n5000,")


def test_a_recording_that_grows_while_it_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fstat

    def fstat(file: int) -> os.stat_result:
        found = real(file)
        with (folder / "s.tsv").open("a") as more:
            more.write(READING % (99_000, 99, 99))
        return found
    monkeypatch.setattr(offline.os, "fstat", fstat)     # type: ignore[attr-defined]
    assert len(offline.read_stream(Path("s.tsv"))) == 10


PRODUCT = "SELECT (COUNT(*) AS ?n) FROM STREAM ex:s [RANGE 10s STEP 5s] WHERE { ?a ex:value ?x . ?b ex:value ?y . ?c ex:value ?z }"
REGEX = PRODUCT.replace("(COUNT(*) AS ?n)", "?a").replace("?z }", "?z FILTER REGEX(CONCAT(STR(?x), STR(?y), STR(?z)), 'a.*b') }")


def test_an_interrupt_while_modules_are_imported_is_no_traceback() -> None:
    """The first of them ask for a second of the machine; what comes before is Python's own start."""
    with subprocess.Popen([sys.executable, "-X", "importtime", "-m", "server", "serve"], text=True, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}) as process:
        assert process.stderr is not None
        try:
            next(line for line in process.stderr if "engine.ir" in line)
            process.send_signal(signal.SIGINT)
            told = [line for line in process.stderr if not line.startswith("import time:")]
            assert (process.wait(60), told) == (INTERRUPTED, ["thalweg: interrupted\n"])
        finally:
            process.kill()


@pytest.mark.parametrize("text", [PRODUCT, REGEX], ids=["DuckDB", "a function of ours"])
def test_an_interrupt_ends_it(folder: Path, text: str, tmp_path: Path) -> None:
    (folder / "long.rq").write_text(f"PREFIX ex: <http://ex.org/> REGISTER QUERY long AS {text}")
    (folder / "many.tsv").write_text("".join(READING % (n, n, n) for n in range(5_000)))
    (scratch := tmp_path / "scratch").mkdir()
    process = subprocess.Popen([sys.executable, "-m", "server", "run", "long.rq", "--stream", "many.tsv"], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(scratch)})
    assert process.stdout is not None and process.stderr is not None
    try:
        assert process.stderr.readline().startswith("thalweg: evaluated in this process (")
        assert process.poll() is None
        wait_until(lambda: _processor_seconds(process.pid) > 4, 60)     # it evaluates: to begin takes a second and a half
        assert list(scratch.iterdir())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (INTERRUPTED, "", "thalweg: interrupted\n")
    assert not list(scratch.iterdir())


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
