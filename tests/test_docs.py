"""The documents keep up with the code: what they name exists, and what they print can be run as printed."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.doc_tables import TABLES, marked

if TYPE_CHECKING:
    from engine.execution.compiled import Compiled

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md"))]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def snippet(name: str) -> str:
    """The block of the README that follows ``<!-- tour: name -->``."""
    found = re.search(rf"<!-- tour: {name} -->\n```(?:bash|text)\n(.*?)\n```", README, re.DOTALL)
    assert found, f"README.md has no block {name!r}"
    return found[1]


def run_bash(script: str, folder: Path, within_s: int = 60) -> str:
    """Run a block as a user would paste it; returns its standard output, fails with what it wrote."""
    done = subprocess.run(["bash", "-e"], input=script, capture_output=True, text=True, cwd=folder, timeout=within_s, check=False)
    assert done.returncode == 0, f"{script}\n--- wrote\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_that_are_named_exist(document: Path) -> None:
    """Every path of the source tree in backticks or as a link."""
    text = document.read_text(encoding="utf-8")
    places = r"(?:engine|server|grammar|static|tests|docs|\.ci)/[\w./-]*"
    named = set(re.findall(rf"`({places})`", text)) | set(re.findall(r"\]\(((?!https?:|#)[^)#]+)", text))
    missing = sorted(name for name in named if not (ROOT / name).exists() and not (document.parent / name).exists())
    assert not missing


def test_promises_name_their_tests() -> None:
    """Each row of SECURITY.md's tables names tests, and each of them is there."""
    rows = [line for line in (ROOT / "SECURITY.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    for row in (row for row in rows if not row.startswith(("| promise |", "| --- |"))):
        named = re.findall(r"`(tests/[\w/]+\.py)(?:::(test_\w+))?`", row)
        assert named, row
        for path, test in named:
            assert f"def {test}(" in (ROOT / path).read_text(encoding="utf-8") if test else (ROOT / path).is_file(), (path, test)


def test_sections_that_the_code_names_exist() -> None:
    """Every section of a document that a comment or docstring names by title or number, also across lines."""
    named = set[tuple[str, str]]()
    for path in (path for folder in ("engine", "grammar", "server", "tests") for path in (ROOT / folder).rglob("*.py")):
        text = re.sub(r"\s*\n\s*(?:# )?", " ", path.read_text(encoding="utf-8"))
        for document, words, numbers in re.findall(r'(docs/[\w-]+\.md), (?:((?:(?:, | and )?"[^"\n]+")+)|sections? ([\d, and]+))', text):
            named |= {(document, word) for word in [*re.findall(r'"([^"]+)"', words), *(f"{n}." for n in re.findall(r"\d+", numbers))]}
    headings = {path: re.findall(r"^#+ (.*)$", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE) for path, _ in named}
    assert named
    assert not sorted((path, word) for path, word in named
                      if not any(re.sub(r"^\d+\. ", "", title) == word or title.startswith(f"{word} ") for title in headings[path]))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_that_are_named_exist(document: Path) -> None:
    """Every `make` target and every option of ``thalweg``."""
    text = document.read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", text)) <= targets
    options = set(re.findall(r"`(--[a-z-]+)", text))
    assert options <= known_options(), "an option that thalweg does not have"


@lru_cache
def known_options() -> set[str]:
    helps = (subprocess.run([sys.executable, "-m", "server", command, "--help"], capture_output=True, text=True, cwd=ROOT,
                            timeout=60, check=True).stdout for command in ("serve", "run", "why"))
    return {option for text in helps for option in re.findall(r"(--[a-z-]+)", text)} | {"--update"}


@pytest.mark.parametrize(("document", "name"), list(TABLES), ids=lambda value: str(value))
def test_tables_that_follow_from_the_code(document: str, name: str) -> None:
    """Where this fails: `python -m tests.doc_tables`."""
    assert marked((ROOT / document).read_text(encoding="utf-8"), name)[0] == TABLES[document, name]() + "\n"


def test_environment_variables_are_those_of_the_code() -> None:
    from engine.spark.settings import VARIABLES

    settings = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(THALWEG_[A-Z_]+)`", settings, re.MULTILINE)) == set(VARIABLES.values())
    assert set(re.findall(r"`(THALWEG_[A-Z_]+)`", README)) <= set(VARIABLES.values())


def test_routes_are_those_of_the_server() -> None:
    """Every route and method of the table of docs/http-api.md is served, and no other."""
    from server.app import create_app

    table = (ROOT / "docs/http-api.md").read_text(encoding="utf-8").partition("### ")[0]
    written = {(method, re.sub(r"\{(\w+)\}", "<>", path)) for method, path in re.findall(r"`([A-Z]+) (/[\w/{}-]*)`", table)}
    pages = {"/", "/static/<>", "/favicon.ico"}
    rules = [(method, re.sub(r"<[^>]*>", "<>", rule.rule))
             for rule in create_app(None).url_map.iter_rules() for method in rule.methods or ()]
    served = {rule for rule in rules if rule[0] not in ("HEAD", "OPTIONS") and rule[1] not in pages} | {("GET", "/events")}
    assert written - served == set() and served - written == set()


def test_parameters_of_a_feed_are_written() -> None:
    from server.feeds.options import PARAMETERS

    section = (ROOT / "docs/http-api.md").read_text(encoding="utf-8").partition("## 3. ")[2].partition("## 4. ")[0]
    assert all(f"`{name}`" in section for name in PARAMETERS)


def test_documents_that_the_code_names_exist() -> None:
    for path in sorted(path for package in ("engine", "grammar", "server", "tests") for path in (ROOT / package).rglob("*.py")):
        for name in re.findall(r"docs/[\w-]+\.md", path.read_text(encoding="utf-8")):
            assert (ROOT / name).exists(), f"{path.relative_to(ROOT)} names {name}"


def test_versions_are_pinned_once() -> None:
    """Every requirement of setup.cfg names one version."""
    import configparser

    config = configparser.ConfigParser(interpolation=None)
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    lines = config["options"]["install_requires"].splitlines() + config["options.extras_require"]["dev"].splitlines()
    wanted = [line for line in lines if line and not line.startswith("#")]
    assert len(wanted) > 20
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+(; python_version (<|>=) \"3\.\d+\")?", line) for line in wanted)


@pytest.mark.parametrize(("head", "window", "clause"), [
    ("REGISTER QUERY q COMPUTE EVERY 5s AS SELECT *", "[RANGE 10s STEP 2s]", "{ ?s ?p ?o }"),
    ("REGISTER STREAM q COMPUTED EVERY 5s AS CONSTRUCT { ?s ?p ?o }", "[RANGE 10s TUMBLING]", "WHERE { ?s ?p ?o }"),
    ("REGISTER RSTREAM <http://ex.org/out> AS SELECT *", "[RANGE PT10S SLIDE PT2S]", "{ ?s ?p ?o MINUS { ?o ?p ?s } }"),
    ("REGISTER QUERY q REPORT ON CHANGE AS ASK", "[TRIPLES 100]", "{ ?s ?p ?o FILTER NOT EXISTS { ?o ?p ?s } }"),
    ("REGISTER QUERY q REPORT FULL AS SELECT ISTREAM *", "[ITEMS 10]", "{ ?s <http://ex.org/p>/<http://ex.org/q>? ?o }"),
    ('REGISTER QUERY q START AT "2026-01-01T00:00:00Z"^^xsd:dateTime AS DSTREAM SELECT *', "[FROM NOW-20s TO NOW-10s STEP 2s]",
     "{ GRAPH ?g { ?s ?p ?o } OPTIONAL { ?o ?q 1 } } ORDER BY ?s LIMIT 3"),
    ("REGISTER QUERY q AS SELECT ?s (COUNT(*) AS ?n)", "[NOW]", "{ { ?s ?p ?o } UNION { VALUES ?s { 1 } } } GROUP BY ?s HAVING (?n > 1)"),
])
def test_the_dialect_table_of_the_readme(head: str, window: str, clause: str) -> None:
    """What the table lists goes through all stages."""
    assert compiled(f"{head} FROM STREAM <http://ex.org/s> {window} {clause}").explain("spark")


@pytest.mark.parametrize(("text", "code"), [
    ("REGISTER QUERY q AS SELECT * FROM STREAM <http://ex.org/s> [ALL] { ?s ?p ?o }", "window-unbounded"),
    ("REGISTER QUERY q AS SELECT * FROM STREAM <http://ex.org/s> [NOW] { SERVICE <http://ex.org/e> { ?s ?p ?o } }", "service-disabled"),
    ("REGISTER QUERY q AS SELECT * FROM STREAM <http://ex.org/s> [ITEMS 9 STEP 2] { ?s ?p ?o }", "step-not-supported"),
    ("REGISTER QUERY q AS SELECT (<http://ex.org/a>(DISTINCT ?o) AS ?x) FROM STREAM <http://ex.org/s> [NOW] { ?s ?p ?o }",
     "query-syntax"),
    ("REGISTER QUERY q AS SELECT * FROM STREAM <http://ex.org/s> [NOW] { <<( ?s ?p ?o )>> ?q ?r }", "query-syntax"),
    ("INSERT DATA { <http://ex.org/a> <http://ex.org/b> 1 }", "update-not-supported"),
])
def test_what_the_readme_says_is_refused(text: str, code: str) -> None:
    from engine.ir.spans import DiagnosticError

    with pytest.raises(DiagnosticError) as refused:
        compiled(text)
    assert {diagnostic.code for diagnostic in refused.value.diagnostics} == {code}
    assert all(diagnostic.span is not None for diagnostic in refused.value.diagnostics)


def test_graphframes_are_chosen_only_where_that_is_said() -> None:
    """At any size the graph problems of plans go another way by themselves: a change here is one for the documents."""
    from engine.plan.graphs import choose

    source = (ROOT / "engine/spark/executor.py").read_text(encoding="utf-8")
    assert set(re.findall(r"self\._graphs\.(\w+)\(", source)) == {"reach"}
    assert {choose(10.0**power) for power in range(13)} == {"task", "sql"}
    assert "GraphFrames" not in (ROOT / "setup.cfg").read_text(encoding="utf-8").split("[options]")[0]


def compiled(text: str) -> Compiled:
    from engine.compiler import Catalog, compile_statement
    from grammar import parse

    prefix = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
    return compile_statement(parse(prefix + text), Catalog({"http://ex.org/s": "event"}, {}), "q")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server as the README starts it, but for its port and folder: ``host:port``."""
    folder = tmp_path_factory.mktemp("served")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = (folder / "log").open("wb")
    process = subprocess.Popen([sys.executable, "-m", "server", "serve", "--port", str(port), "--data", str(folder / "data")],
                               stdout=log, stderr=log, cwd=ROOT, stdin=subprocess.DEVNULL)
    try:
        wait_ready(f"http://127.0.0.1:{port}/health/ready", process, folder / "log")
        yield f"localhost:{port}"
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0, (folder / "log").read_text(encoding="utf-8")[-3000:]
    finally:
        process.kill()
        process.wait()
        log.close()


def wait_ready(url: str, process: subprocess.Popen[bytes], log: Path, within_s: float = 120) -> None:
    """Ask until the answer is 200; fails with the log when the process ends or the time is over."""
    until = time.monotonic() + within_s
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    pytest.fail(f"not ready: {log.read_text(encoding='utf-8')[-3000:]}")


@pytest.mark.spark
def test_the_tour_of_the_readme(server: str, tmp_path: Path) -> None:
    """The very lines of the README, with the port of the test's server; what comes back is what the README says."""
    run_bash(snippet("files"), tmp_path)
    commands = snippet("commands")
    assert commands.count("localhost:8175") == len(commands.splitlines()) == 6
    strict = commands.replace("curl ", "curl --fail-with-body -sS --max-time 60 ")
    output = run_bash(strict.replace("localhost:8175", server), tmp_path, within_s=150)
    assert "event: hello" in output and "event: result" in output
    assert '"boiler room"' in output
    assert output.replace("\r", "").rstrip().endswith("name,celsius\nboiler room,31.5")


def test_the_proof_of_the_readme(tmp_path: Path) -> None:
    """``thalweg why``: the tree that the README shows."""
    run_bash(snippet("files"), tmp_path)
    run_bash(snippet("replay").partition(".venv/bin")[0], tmp_path)
    script = snippet("why").replace(".venv/bin/thalweg", f"{sys.executable} -m server")
    found = run_bash(f"export PYTHONPATH={ROOT}\n{script}", tmp_path, within_s=150)
    assert found.rstrip() == snippet("proof")


def test_the_replay_of_the_readme(tmp_path: Path) -> None:
    """``thalweg run``: one line per evaluation time, of which those with the item over 30 degrees have the answer."""
    import json

    run_bash(snippet("files"), tmp_path)
    script = snippet("replay").replace(".venv/bin/thalweg", f"{sys.executable} -m server")
    lines = run_bash(f"export PYTHONPATH={ROOT}\n{script}", tmp_path, within_s=150).splitlines()
    found = [(line["at"], len(line["results"]["results"]["bindings"])) for line in map(json.loads, lines)]
    # Events at 1 s and 2.5 s, a window of a minute: evaluated each second, up to the last close that sees an event.
    assert found == [(at, 1) for at in range(2000, 62000, 1000)] + [(62000, 0)]
