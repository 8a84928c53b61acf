"""``thalweg run`` of programs of LARS and DatalogMTL: files to facts, options, mistakes; no Spark is started."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.ir import strata
from engine.worker.database import connect
from server import demo, offline
from server.cli import main

Run = Callable[..., tuple[int, str, str]]

SHORT_STOP = """Speed_n(X) :- NotOnMap(X)
ShortStop(X) :- Speed_n(X), Boxminus[1,1]Speed_0(X), Boxminus[2,2]Speed_n(X)
"""
METEOR = "Speed_0(veh1)@3\nNotOnMap(veh1)@4\nSpeed_n(veh1)@2\nSpeed_n(veh2)@[1,3)\n"
FROST = """PREFIX ex: <http://ex.org/>
FROM STREAM <http://ex.org/readings>
FROM <http://ex.org/places>
ex:Frost(P) :- ex:in(S,P), Boxminus[0,2]ex:below(S,0)
"""
LARS = """PREFIX ex: <http://ex.org/>
FROM STREAM ex:readings
START AT 0
ex:Hot(S)  <- [2 sec] diamond ex:celsius(S, V), V > 90.
ex:Warm(S) <- [1 sec] box ex:Hot(S), not ex:Muted(S).
"""
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    monkeypatch.chdir(tmp_path)

    def write(name: str, text: str) -> None:
        (tmp_path / name).write_text(text, encoding="utf-8")
    return write


@pytest.fixture
def run(write: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]) -> Run:
    """The command ``run`` with these arguments, after these files are written: status, output, complaints."""
    def run(arguments: str, **files: str) -> tuple[int, str, str]:
        for name, text in files.items():
            write(name.replace("_", "."), text)
        try:
            status = main(["run", *arguments.split()])
        except SystemExit as ended:
            status = int(str(ended.code))
        return status, *capsys.readouterr()
    return run


def test_facts_as_meteor_publishes_them(run: Run) -> None:
    """In any order; what was derived is coalesced and sorted, one a line, and what is about a derived predicate is with it."""
    shown = run("p.dmtl --facts f.txt --format facts", p_dmtl=SHORT_STOP, f_txt=METEOR)
    assert shown == (0, "ShortStop(veh1)@4\nSpeed_n(veh1)@2\nSpeed_n(veh1)@4\nSpeed_n(veh2)@[1,3)\n", "")
    assert run("p.dmtl --facts f.txt --format facts --derived ShortStop") == (0, "ShortStop(veh1)@4\n", "")
    first, second = METEOR.splitlines(keepends=True)[:2], METEOR.splitlines(keepends=True)[2:]
    assert run("p.datalogmtl --facts a.txt --facts b.txt --format facts", p_datalogmtl=SHORT_STOP, a_txt="".join(first),
               b_txt="".join(second)) == shown


def test_facts_that_no_rule_reads_for_their_number_of_terms_are_told(run: Run) -> None:
    status, shown, told = run("p.dmtl --facts f.txt --format facts", p_dmtl="A(X) :- Diamondminus[1,1]B(X)",
                              f_txt="B(a,b)@1\nB(a)@1\nZ@2\n")
    assert (status, shown) == (0, "A(a)@2\n")
    assert told == "warning: No rule reads the facts of B with 2 terms; the rules have it with 1.\n"


def test_derived_between_and_behind_the_facts(run: Run) -> None:
    program = "A(X) :- Diamondminus[1,1]B(X)\nC(X) :- Diamondminus[0,inf)A(X), not D(X)"
    assert run("p.dmtl --facts f.txt --format facts", p_dmtl=program, f_txt="B(a)@1\nB(b)@5\nD(b)@[0,8)\n")[1] == (
        "A(a)@2\nA(b)@6\nC(a)@[2,inf)\nC(b)@[8,inf)\n")
    assert run("p.dmtl --facts f.txt --format facts --until 5000")[1] == "A(a)@2\nC(a)@[2,5]\n"


def test_a_recursion_without_end_is_shown_as_far_as_the_facts_go(run: Run) -> None:
    files = {"p_dmtl": "A(X) :- Diamondminus[1,1]A(X)", "f_txt": "A(a)@1\nB(a)@3.5\n"}
    status, shown, told = run("p.dmtl --facts f.txt --format facts", **files)
    assert (status, shown) == (0, "A(a)@1\nA(a)@2\nA(a)@3\n")
    assert told == ("warning: The rules go on deriving for ever: what is shown ends with the facts, at 3.5 (3500 ms). "
                    "--until TIME shows more.\n")
    assert run("p.dmtl --facts f.txt --format facts --until 4000") == (0, "A(a)@1\nA(a)@2\nA(a)@3\nA(a)@4\n", "")
    ending = "A(X) :- Diamondminus[1,1]A(X), C(X)"
    assert run("p.dmtl --facts f.txt --format facts", p_dmtl=ending, f_txt="A(a)@1\nC(a)@[0,3]\nC(a)@[4,5]\n") == (
        0, "A(a)@1\nA(a)@2\nA(a)@3\nA(a)@4\nA(a)@5\n", "")


def test_prefixes_and_the_unit_of_a_program_hold_in_its_facts(run: Run) -> None:
    program = "PREFIX ex: <http://ex.org/>\nUNIT 1 h\nex:P(X) :- Boxminus[0,2]ex:q(X,1)"
    shown = run("p.dmtl --facts f.txt --format facts", p_dmtl=program, f_txt="ex:q(ex:a,1)@[3,6.5)\n")
    assert shown == (0, "<http://ex.org/P>(<http://ex.org/a>)@[5,6.5)\n", "")
    assert run("p.dmtl --facts f.txt --format facts --derived http://ex.org/P") == shown


def test_streams_and_graphs_of_rdf(run: Run) -> None:
    stream = "".join(f'{at}\t<http://ex.org/s> <http://ex.org/below> "0"^^<{INTEGER}> .\n' for at in (1000, 2000, 3000))
    files = {"s_tsv": stream, "g_ttl": "<http://ex.org/s> <http://ex.org/in> <http://ex.org/quay> ."}
    program = FROST.replace("Boxminus[0,2]", "Diamondminus[0,0.5]")
    expected = "".join(f"<http://ex.org/Frost>(<http://ex.org/quay>)@[{n},{n}.5]\n" for n in (1, 2, 3))
    for options in ("--stream s.tsv --graph g.ttl", "--stream http://ex.org/readings=s.tsv --graph http://ex.org/places=g.ttl"):
        assert run(f"p.dmtl {options} --format facts", p_dmtl=program, **files) == (0, expected, "")
    status, _, told = run("p.dmtl --stream http://ex.org/other=s.tsv")
    assert status == 1 and "the program does not name this source; it names http://ex.org/readings" in told


def test_lars_over_a_stream(run: Run) -> None:
    """What holds is told in granules, up to the one of the last item."""
    def item(at: int, link: str, value: str) -> str:
        return f"{at}\t<http://ex.org/s1> <{link}> {value} .\n"

    stream = item(1200, "http://ex.org/celsius", f'"95"^^<{INTEGER}>') + item(
        3000, "http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "<http://ex.org/Muted>") + item(
        9000, "http://ex.org/celsius", f'"5"^^<{INTEGER}>')
    expected = "<http://ex.org/Hot>(<http://ex.org/s1>)@[1,3]\n<http://ex.org/Warm>(<http://ex.org/s1>)@2\n"
    assert run("p.lars --stream s.tsv --format facts", p_lars=LARS, s_tsv=stream) == (0, expected, "")
    facts = "ex:celsius(ex:s1,95)@1\nex:Muted(ex:s1)@3\n"
    assert run("p.lars --facts f.txt --format facts --until 9000", f_txt=facts) == (0, expected, "")
    assert run("p.lars --format facts", p_lars=LARS + "@1 ex:celsius(ex:s1, 95). @3 ex:Muted(ex:s1).") == (0, expected, "")
    assert run("p.lars --format facts --derived http://ex.org/Warm")[1] == expected.splitlines(keepends=True)[1]


def test_lars_holds_what_became_known_late_and_counts_tuples(run: Run) -> None:
    program = "START AT 0\n@T seen(X) <- [3] @T p(X), alarm.\nlast(X) <- [2 #] diamond p(X).\n"
    facts = "p(a)@1\np(b)@2\nalarm@3\np(c)@5\n"
    assert run("p.lars --facts f.txt --format facts", p_lars=program, f_txt=facts) == (
        0, "last(a)@[1,2]\nlast(b)@[2,4]\nlast(c)@5\nseen(a)@1\nseen(b)@2\n", "")


def test_one_json_object_a_fact(run: Run) -> None:
    status, shown, _ = run("p.dmtl --facts f.txt", p_dmtl="Q(X) :- Boxminus[0,1]P(X)\nR :- Diamondminus(0,inf)P(X)", f_txt="P(a)@[1,3)\n")
    found = [json.loads(line) for line in shown.splitlines()]
    assert status == 0 and found == [
        {"predicate": "Q", "terms": ['"a"'], "from": 2000, "to": 3000, "fromIncluded": True, "toIncluded": False},
        {"predicate": "R", "terms": [], "from": 1000, "to": None, "fromIncluded": False, "toIncluded": False}]
    _, shown, _ = run("p.lars", p_lars="q(X) <- p(X). @2 p(a).")
    assert json.loads(shown) == {"predicate": "q", "terms": ['"a"'], "from": 2000, "to": 3000, "fromIncluded": True, "toIncluded": False}


def test_the_plan_with_what_it_has_to_keep(run: Run) -> None:
    status, shown, _ = run("p.dmtl --explain logical", p_dmtl=SHORT_STOP)
    assert status == 0 and "Scan(new) NotOnMap/1" in shown and shown.endswith(
        "memory\n  window 2s: what ended before is forgotten\n  history none\n"
        "  bound none: an operator has a punctual interval, so it depends on how dense time stamps are\n")
    shown = run("p.dmtl --explain logical", p_dmtl="A(X) :- Diamondminus[1,inf)B(X), C(X)")[1]
    assert "history B: that it held once is kept for ever" in shown and "facts, whatever the stream, for 100 constants" in shown
    assert "bound none: there is no theorem about negation" in run("p.dmtl --explain logical", p_dmtl="A(X) :- B(X), not C(X)")[1]
    assert "Box [0s,1s]" in run("p.lars --explain logical", p_lars=LARS)[1]


@pytest.mark.parametrize(("arguments", "complaint"), [
    ("p.dmtl --format csv", "--format csv goes with queries; a rule program has jsonl and facts"),
    ("p.dmtl --rules rdfs", "--rules goes with queries"),
    ("p.dmtl --explain spark", "--explain spark goes with queries; a rule program has logical"),
    ("p.dmtl q.rq", "p.dmtl is a rule program: it runs alone"),
    ("q.rq p.dmtl", "p.dmtl is a rule program: it runs alone"),
    ("q.rq --facts f.txt", "--facts goes with a rule program (.lars, .dmtl, .datalogmtl), and here is a query"),
    ("q.rq --derived P", "--derived goes with a rule program"),
    ("q.rq --until 0", "--until goes with a rule program"),
    ("q.rq --format facts", "--format facts goes with a rule program")])
def test_options_that_do_not_go_together(run: Run, arguments: str, complaint: str) -> None:
    status, shown, told = run(arguments, p_dmtl=SHORT_STOP, q_rq="", f_txt="")
    assert (status, shown) == (2, "") and complaint in told


@pytest.mark.parametrize(("arguments", "files", "complaint"), [
    ("p.dmtl", {"p_dmtl": "A(X) :- B(X)\nA(X) :- Boxplus[1,2]B(X)"}, "line 2, column 9: The rule for A (line 2) is not forward"),
    ("p.lars", {"p_lars": "q(X) <- [3] [2] diamond p(X)."}, "line 1, column 13: Nested windows are not plain LARS."),
    ("p.dmtl --facts f.txt", {"f_txt": "A(a)@1\nA(a)@[2,1]\n"}, "f.txt: "),
    ("p.dmtl --facts f.txt", {"f_txt": "A(a)@1\nA(a)@[2,1]\n"}, "line 2, column "),
    ("p.dmtl --facts f.txt", {"f_txt": "A(X) :- B(X)\n"}, "Here stand facts only"),
    ("p.dmtl --facts none.txt", {}, "There is no file none.txt."),
    ("none.lars", {}, "There is no file none.lars."),
    ("p.dmtl --stream none.trig", {}, "There is no file none.trig."),
    ("p.dmtl --derived Stop,ShortStop", {}, "no rule derives Stop; there are ShortStop, Speed_n."),
    ("p.dmtl --derived ,", {}, "--derived names no predicate; there are ShortStop, Speed_n."),
    ("p.lars --facts f.txt", {"p_lars": "q(X) <- p(X).", "f_txt": "p(a)@[3,inf)\n"}, "A fact of p has a begin or an end only"),
    ("p.dmtl --facts f.txt", {"p_dmtl": "A(Y) :- A(X), Y = X + 1", "f_txt": "A(1)@1\n"}, "after 1000 rounds"),
    ("p.lars --facts f.txt", {"p_lars": "q(X) <- p(X).", "f_txt": "p(a)@1\np(a)@[3,inf)\n"}, "f.txt: A fact of p has a begin or an end"),
    ("p.lars --facts f.txt", {"p_lars": "q(X) <- p(X).", "f_txt": "p(a)@1\np(a)@[3,inf)\n"}, "line 2, column 1: A fact of p"),
    ("p.lars --facts f.txt", {"p_lars": "q(X) <- p(X).", "f_txt": "p(_:b)@(-inf, 3]\n"}, "line 1, column 1: A fact of p"),
    ("p.lars --facts f.txt", {"p_lars": "q(X) <- p(X).", "f_txt": "@1 p(a).\n"}, "events in a file of facts are written p(a)@1"),
    ("p.lars --facts f.txt", {"p_lars": "q(X) <- p(X).", "f_txt": "diamond[0,1]p(a)@1\n"}, "line 1, column "),
    ("p.lars --facts f.txt", {"p_lars": "q(X) <- p(X).", "f_txt": "q(a) <- p(a)\n"}, "rules belong to the program")])
def test_mistakes(run: Run, arguments: str, files: dict[str, str], complaint: str) -> None:
    status, shown, told = run(arguments, **{"p_dmtl": SHORT_STOP, **files})
    assert (status, shown) == (1, "") and complaint in told and "Traceback" not in told


def test_the_rule_that_derives_for_ever_is_told_by_its_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strata, "MOST_ROUNDS", 40)      # `test_mistakes` has the thousand
    status, shown, told = run("p.dmtl --facts f.txt", p_dmtl="% first\nB(X) :- A(X)\nA(Y) :- B(X), Y = X + 1", f_txt="A(1)@1\n")
    assert (status, shown) == (1, "") and "after 40 rounds" in told and "Traceback" not in told
    assert "by a rule without a name (line 3):" in told


def test_facts_of_lars_are_explained_in_its_own_notation(run: Run) -> None:
    for fact in ("@1 p(a).", "p(a) <- q(a)", "Diamondminus[0,1]p(a)@1", "p(a)@[1,inf)", "p(a) q", "<-"):
        told = run("p.lars --facts f.txt", p_lars="q(X) <- p(X).", f_txt=fact + "\n")[2]
        said = told.replace(fact, "").replace("here stands Diamondminus", "")
        assert not any(word in said for word in ("Diamond", "Box", ":-", "A(a)")), told


@pytest.mark.parametrize(("arguments", "name", "body", "place"), [
    ("bad.dmtl", "bad.dmtl", b"A(X) :- B(X)\nA(\xe9)", "byte 16 (line 2)"), ("bad.rq", "bad.rq", b"SELECT \xe9", "byte 8 (line 1)"),
    ("p.dmtl --facts bad.txt", "bad.txt", b"B(a)@1\nB(\xe9)@2", "byte 10 (line 2)"),
    ("p.dmtl --stream bad.nt", "bad.nt", b'1\t<http://a> <http://b> "\xe9" .\n', "byte 26 (line 1)"),
    ("p.dmtl --stream bad.trig", "bad.trig", b'<http://a> <http://b> "\xe9" .\n', "byte 24 (line 1)"),
    ("p.dmtl --graph bad.ttl", "bad.ttl", b'\n<http://a> <http://b> "\xe9" .\n', "byte 25 (line 2)"),
    ("p.dmtl --graph bad.jsonld", "bad.jsonld", b'{"@id": "\xe9"}', "byte 10 (line 1)")])
def test_a_file_that_is_not_utf8_is_named_with_the_byte(run: Run, tmp_path: Path, arguments: str, name: str, body: bytes,
                                                        place: str) -> None:
    (tmp_path / name).write_bytes(body)
    status, shown, told = run(arguments, p_dmtl=SHORT_STOP)
    assert (status, shown, told) == (1, "", f"thalweg: {name}: this is not UTF-8: {place} is 0xE9.\n")


@pytest.mark.parametrize("rule", ["C(X,Y) :- A(X), A(Y)", "C(X,Y,Z) :- A(X), A(Y), A(Z)"])
def test_a_product_that_is_too_large_is_an_error(run: Run, monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    """In DuckDB, and behind it."""
    monkeypatch.setenv("THALWEG_WORKER_MEMORY", "50MB")
    status, shown, told = run("p.dmtl --facts f.txt", p_dmtl=rule, f_txt="".join(f"A(a{number})@1\n" for number in range(1_500)))
    assert (status, shown) == (1, "") and told.endswith("the limit workerMemory is set by THALWEG_WORKER_MEMORY\n"), told
    assert told.startswith("thalweg: the evaluation needs more memory than a worker has") and told.count("\n") == 1, told


def test_the_help_names_what_programs_take(run: Run) -> None:
    status, shown, _ = run("--help")
    assert status == 0 and all(word in shown for word in ("--facts", "--derived", "--until", ".lars", ".dmtl"))


ROOT = Path(__file__).parents[2]


def test_the_examples_of_the_documents(run: Run) -> None:
    """Run as the pages say, they give the facts that stand there."""
    page = (ROOT / "docs" / "datalogmtl.md").read_text(encoding="utf-8")
    examples = re.findall(r"```datalogmtl\n(.*?)```\n+```facts\n(.*?)```\n+```derived\n(.*?)```", page, re.DOTALL)
    for program, facts, derived in examples:
        assert run("p.dmtl --facts f.txt --format facts", p_dmtl=program, f_txt=facts) == (0, derived, "")
    page = (ROOT / "docs" / "lars.md").read_text(encoding="utf-8")
    derived, = re.findall(r"```derived\n(.*?)```", page, re.DOTALL)
    programs = re.findall(r"```lars\n(.*?)```", page, re.DOTALL)
    assert len(examples) == 3 and run("p.lars --format facts", p_lars=programs[0]) == (0, derived, "")
    answers = re.findall(r"```lars\n.*?```\n\n```answers\n(.*?)```", page, re.DOTALL)[1]
    status, shown, _ = run("p.lars --format jsonl", p_lars=programs[1])
    facts = [json.loads(line) for line in shown.splitlines()]
    found = {k: {fact["predicate"] for fact in facts if fact["from"] <= 1000 * k < fact["to"]} for k in range(4)}
    expected = {int(k): {name.partition("(")[0] for name in names.split()} for k, names in re.findall(r"(\d+): (.*)", answers)}
    assert status == 0 and found == expected


@pytest.mark.parametrize("name, wanted", [("weather-warnings.lars", {"Calm", "Gust", "Stormy", "Watched"}),
                                          ("weather-fog.dmtl", {"Cool", "Damp", "MaybeFog"})])
def test_the_examples_of_the_console_have_answers_on_the_demo(run: Run, name: str, wanted: set[str]) -> None:
    """Within its first minute."""
    lines = [f"{1_700_000_000_000 + 1000 * second}\t{' '.join(triple)} .\n"
             for second in range(60) for item in demo.items(second) for triple in item.triples]
    status, shown, told = run(f"{demo.EXAMPLES / name} --stream {demo.STREAM_IRI}=weather.tsv --format facts", weather_tsv="".join(lines))
    assert (status, told) == (0, "")
    assert set(re.findall(r"^<http://example.org/(\w+)>", shown, re.MULTILINE)) == wanted


def test_the_example_of_the_readme(run: Run) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    script = text.partition("<!-- tour: programs -->\n```bash\n")[2].partition("\n```")[0]
    expected = text.partition("<!-- tour: derived -->\n```text\n")[2].partition("\n```")[0]
    files, command, commands = script.partition(".venv/bin/thalweg")
    subprocess.run(["bash", "-euc", files], check=True)
    shown = [run(line.partition(" run ")[2])[1] for line in (command + commands).splitlines()]
    assert "".join(shown).rstrip() == expected


def test_an_interrupt_within_a_statement_of_duckdb_is_one() -> None:
    """DuckDB makes an error of its own of it."""
    @offline.told
    def work() -> None:
        connect().execute("SELECT count(*) FROM range(1_000_000_000) a, range(1_000_000) b WHERE a.range + b.range > 5")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            work()
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
