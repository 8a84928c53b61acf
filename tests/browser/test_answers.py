"""The answers of a query: table, chart, true and false, triples, changes, gaps; bounded, and never as HTML."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser import canned
from tests.browser.canned import START_MS, iri, literal, rsp, select
from tests.browser.page import Page
from tests.browser.standin import Standin

HOSTILE = ["<img src=x onerror=\"document.title='owned'\">", "<script>document.title='owned'</script>",
           "\"><svg onload=alert(1)>", "&lt;b&gt;"]


def follow(page: Page, standin: Standin, text: str = canned.STATIONS_TEXT, form: str = "SELECT", **change: Any) -> None:
    """Open the page of a query `q` and wait until it follows the feed."""
    standin.queries["q"] = canned.query("q", text, form, **change)
    page.open("#/queries/q")
    page.until(lambda: standin.feed("q").listeners, "a follower of the feed")


def test_a_row_with_window_number_prefixes_and_types(page: Page, standin: Standin) -> None:
    follow(page, standin)
    sky = {"type": "literal", "value": "grau", "xml:lang": "de"}
    place = {"type": "literal", "value": "POINT(1 2)", "datatype": "http://www.opengis.net/ont/geosparql#wktLiteral"}
    row = [iri(canned.SYSTEM + "System_KSEA"), literal("8.05E1", "double"), sky, literal("true", "boolean"), None, place]
    standin.emit("q", "result", select(7, START_MS, ["station", "t", "sky", "wet", "nothing", "place"], [row]), "e1-7")
    page.shows(".evaluation .seq", "#7")
    assert page.text(".evaluation .window") == "2025-03-20 05:03:50 → 05:04:00"
    assert page.text(".evaluation .count") == "1 row"
    assert page.texts(".answers tbody td") == ["ssw:System_KSEA", "80.5", "grau@de", "true", "–",
                                               "POINT(1 2)<http://www.opengis.net/ont/geosparql#wktLiteral>"]
    assert page.find("td.iri").get_attribute("title") == canned.SYSTEM + "System_KSEA"
    assert page.find("td.number").get_attribute("title") == f'"8.05E1"^^<{canned.XSD}double>'
    assert page.find("td.number").value_of_css_property("text-align") == "right"
    assert page.texts(".answers thead th")[:2] == ["stationIRI", "tdouble"]
    page.state("live")


def test_latest_and_history(page: Page, standin: Standin) -> None:
    follow(page, standin)
    for seq in range(1, 4):
        standin.emit("q", "result", canned.stations(seq, START_MS + 2000 * seq), f"e1-{seq}")
    page.until(lambda: page.texts(".evaluation .seq") == ["#3"], "only the newest evaluation")
    page.press("History")
    page.until(lambda: page.texts(".evaluation .seq") == ["#3", "#2", "#1"], "all evaluations, newest first")
    page.press("Held")
    standin.emit("q", "result", canned.stations(4, START_MS + 8000), "e1-4")
    page.press("Moving")
    page.until(lambda: page.texts(".evaluation .seq")[0] == "#4", "what came meanwhile")


def test_the_chart_draws_a_line_per_group(page: Page, standin: Standin) -> None:
    follow(page, standin)
    for seq in range(1, 30):
        standin.emit("q", "result", canned.stations(seq, START_MS + 2000 * seq), f"e1-{seq}")
    page.until(lambda: len(page.all(".chart path.line")) == 5, "five lines")
    assert page.texts(".legend .name")[0] == "ssw:System_KBFI"
    assert "from 2025-03-20 05:04:02" in page.find("svg.chart").get_attribute("aria-label")
    page.choose(".choice:nth-of-type(1) select", "readings")
    page.until(lambda: page.find("svg.chart").get_attribute("aria-label").startswith("readings"), "the other column")
    page.find(".legend button").click()
    page.until(lambda: len(page.all(".chart path.line")) == 4, "one line hidden")
    assert page.find(".legend button").get_attribute("aria-pressed") == "false"
    page.js("document.querySelector('svg.chart').focus()")
    page.keys("\ue012")
    page.until(lambda: page.text(".moment") == "2025-03-20 05:04:56", "the moment before the last")


@pytest.mark.parametrize("mode", ["Latest", "History"])
def test_the_table_is_capped_and_says_so(page: Page, standin: Standin, mode: str) -> None:
    follow(page, standin)
    page.press(mode)
    for seq in (1, 2):
        rows = [[iri(f"http://example.org/s{i}"), literal(i, "integer")] for i in range(700)]
        standin.emit("q", "result", select(seq, START_MS + seq, ["s", "n"], rows), f"e1-{seq}")
    of = {"Latest": "700", "History": "1,400"}[mode]
    page.shows(".total", f"Showing the first 500 of {of} rows · 2 evaluations received")
    assert len(page.all(".answers td.iri")) == 500


def test_memory_is_bounded(page: Page, standin: Standin) -> None:
    follow(page, standin)
    for seq in range(1, 406):
        standin.emit("q", "result", select(seq, START_MS + 1000 * seq, ["n"], [[literal(seq, "integer")]]), f"e1-{seq}")
    page.shows(".total", "405 evaluations received, 300 kept")
    page.press("History")
    page.until(lambda: len(page.all(".evaluation")) == 300, "the newest 300 evaluations")


def test_literals_and_names_are_never_html(page: Page, standin: Standin) -> None:
    rows = [[literal(text), literal(text) | {"xml:lang": "en"}, iri(f"http://e.x/{text}"), {"type": "bnode", "value": text},
             literal(text, "integer"), literal(text) | {"datatype": f"http://e.x/{text}"}] for text in HOSTILE]
    variables = ["plain", HOSTILE[0], "iri", "blank", "number", "typed"]
    follow(page, standin, text=f"PREFIX e: <http://e.x/> # {HOSTILE[0]}\nSELECT * WHERE {{ ?s ?p \"{HOSTILE[1]}\" }}")
    standin.emit("q", "result", select(1, START_MS, variables, rows), "e1-1")
    standin.queries["q"].update(state="failed", lastError=HOSTILE[1])
    problem = {"detail": HOSTILE[1]}
    standin.emit("q", "status", {"state": "failed", "previous": "running", "reason": HOSTILE[0], "problem": problem})
    page.until(lambda: len(page.all(".answers td")) == 24, "the table")
    assert page.texts(".answers td.text")[0] == HOSTILE[0]
    page.shows(".notice.bad", HOSTILE[1])
    page.click("[data-tab=text]")
    page.shows(".code", HOSTILE[0])
    assert page.all("main img, main script, main svg[onload], main b:not(.legend b)") == []
    assert "owned" not in page.driver.title


def test_ask_shows_true_and_false_over_time(page: Page, standin: Standin) -> None:
    follow(page, standin, "ASK FROM STREAM <s> [RANGE 10s] WHERE { ?s ?p ?o }", "ASK")
    for seq, truth in enumerate((True, True, False), 1):
        standin.emit("q", "result", {"head": {}, "boolean": truth, "rsp": rsp(seq, START_MS + 1000 * seq)}, f"e1-{seq}")
    page.until(lambda: page.texts(".evaluation .truth") == ["false", "true", "true"], "three answers")
    assert [rect.get_attribute("class") for rect in page.all(".strip rect")] == ["truth true", "truth true", "truth false"]
    assert page.find("svg.strip").get_attribute("aria-label") == "false since 2025-03-20 05:04:03"


@pytest.mark.parametrize("form", ["nquads", "jsonld"])
def test_construct_shows_triples(page: Page, standin: Standin, form: str) -> None:
    follow(page, standin, "PREFIX ex: <http://example.org/>\nCONSTRUCT { ?s a ex:Hot } WHERE { ?s ?p ?o }", "CONSTRUCT")
    assert standin.feed("q").connections[0]["graph-format"] == "nquads"
    text = ('<http://example.org/a> <http://example.org/p> "zwei \\"x\\" \\u00e4"@de <http://example.org/g> .\n'
            f'_:b0 <http://example.org/n> "12"^^<{canned.XSD}integer> <http://example.org/g> .\n')
    nodes = [{"@id": "ex:a", "ex:p": {"@value": 'zwei "x" ä', "@language": "de"}}, {"@id": "_:b0", "http://example.org/n": [12]}]
    data = {"nquads": {"format": "application/n-quads", "text": text},
            "jsonld": {"@context": {"ex": "http://example.org/"}, "@id": "http://example.org/g", "@graph": nodes}}[form]
    standin.emit("q", "graph", {"rsp": rsp(1, START_MS), **data}, "e1-1")
    page.until(lambda: page.texts(".answers tbody td") == ["ex:a", "ex:p", 'zwei "x" ä@de', "_:b0", "ex:n", "12"], "two triples")
    assert page.text(".evaluation .count") == "2 triples"


def test_delta_mode_shows_what_came_and_went(page: Page, standin: Standin) -> None:
    follow(page, standin)
    page.press("Changes")
    page.until(lambda: [c.get("mode") for c in standin.feed("q").connections][-1] == "delta", "a feed of changes")
    page.press("History")
    added, removed = (select(0, START_MS, ["s"], [[iri(f"http://example.org/{name}")]]) for name in ("new", "old"))
    standin.emit("q", "delta", {"rsp": rsp(1, START_MS), "addedResults": added, "removedResults": removed}, "e1-1")
    page.shows(".evaluation .count", "1 added, 1 removed")
    assert page.texts("tr.added td") == ["+added", "<http://example.org/new>"]
    assert page.texts("tr.removed td") == ["−removed", "<http://example.org/old>"]


def test_istream_is_shown_as_the_query_says(page: Page, standin: Standin) -> None:
    follow(page, standin, output="istream")
    assert "mode" not in standin.feed("q").connections[0]
    assert page.find(".segmented [aria-pressed=true]").text == "ISTREAM"


def test_a_gap_is_told(page: Page, standin: Standin) -> None:
    follow(page, standin)
    standin.emit("q", "result", canned.stations(1, START_MS), "e1-1")
    standin.emit("q", "gap", {"requested": "e1-1", "oldestId": "e1-9", "reason": "slow-consumer", "dropped": 7})
    standin.emit("q", "snapshot", {**canned.stations(9, START_MS + 9000), "chunk": 0, "last": True}, "e1-9")
    page.press("History")
    page.until(lambda: page.texts(".evaluation .seq") == ["#9", "#1"], "both sides of the gap")
    assert page.texts(".gap td") == ["7 answers were not shown: this page was too slow for the feed"]


def test_a_snapshot_in_chunks_is_one_evaluation(page: Page, standin: Standin) -> None:
    follow(page, standin)
    for chunk, names in enumerate((["A", "B"], ["C"])):
        data = {**canned.stations(5, START_MS, names), "chunk": chunk, "last": chunk == 1}
        standin.emit("q", "snapshot", data, "e1-5" if chunk else None)
    page.shows(".evaluation .count", "3 rows")
    assert page.texts(".evaluation .badge") == ["snapshot"]
    page.shows(".total", "1 evaluation received")


def test_what_the_server_adds_is_shown(page: Page, standin: Standin) -> None:
    follow(page, standin)
    data = canned.stations(1, START_MS)
    data["rsp"].update(late=2, inconsistencies=["disjoint: ex:a"], truncated=True)
    standin.emit("q", "result", data, "e1-1")
    badges = ["2 late", "truncated by the server", "1 inconsistency"]
    page.until(lambda: page.texts(".evaluation .badge") == badges, "the badges")


def test_an_empty_window_and_no_answer_yet_are_explained(page: Page, standin: Standin) -> None:
    follow(page, standin)
    page.shows(".live .empty", "No answer yet. One appears here when a window closes")
    standin.emit("q", "result", select(1, START_MS, ["s"], []), "e1-1")
    page.shows(".answers td.empty", "Nothing matched in this window.")


def test_export_and_curl(page: Page, standin: Standin, downloads: Any) -> None:
    follow(page, standin)
    row = [literal('a "b", c'), literal("=1+1"), literal("-4.5", "decimal"), None]
    standin.emit("q", "result", select(1, START_MS, ["text", "formula", "n", "none"], [row]), "e1-1")
    page.shows(".evaluation .seq", "#1")
    page.click("[data-tab=use]")
    assert page.texts(".command code") == [f"curl -N {page.base}queries/q/results -H 'Accept: text/event-stream'",
                                           f"curl {page.base}queries/q/results -H 'Accept: text/csv'"]
    page.press("Export as CSV")
    page.until(lambda: (downloads / "q-page.csv").exists(), "the exported file")
    assert (downloads / "q-page.csv").read_bytes().decode() == (
        '#,at,change,text,formula,n,none\r\n1,2025-03-20T05:04:00.000Z,,"a ""b"", c",\'=1+1,-4.5,\r\n')
    page.press("CSV")
    page.until(lambda: (downloads / "q.csv").exists(), "the latest result as a file")
    assert any(request.headers.get("Accept") == "text/csv" for request in standin.requests)


def test_a_page_that_is_opened_late_shows_the_past(page: Page, standin: Standin) -> None:
    standin.queries["q"] = canned.query("q", canned.STATIONS_TEXT)
    for seq in range(1, 251):
        standin.emit("q", "result", canned.stations(seq, START_MS + 2000 * seq), f"e1-{seq}")
    page.open("#/queries/q")
    page.shows(".total", "121 evaluations received")
    page.press("History")
    page.until(lambda: page.texts(".evaluation .seq")[:3] == ["#250", "#249", "#248"], "the past after the newest")
    assert page.texts(".evaluation .badge") == ["snapshot"]
    standin.emit("q", "result", canned.stations(251, START_MS + 502_000), "e1-251")
    page.until(lambda: page.texts(".evaluation .seq")[:2] == ["#251", "#250"], "what comes new")


def test_a_past_that_is_too_long_is_shortened(page: Page, standin: Standin) -> None:
    standin.queries["q"] = canned.query("q", canned.STATIONS_TEXT, report="change")
    for seq in range(1, 301):
        standin.emit("q", "result", canned.stations(seq, START_MS + 100 * seq), f"e1-{seq}")
    page.open("#/queries/q")
    page.shows(".total", "11 evaluations received")
    page.press("History")
    page.until(lambda: page.texts(".evaluation .seq") == [f"#{seq}" for seq in range(300, 289, -1)], "the last second")


def begun(seq: int, close_ms: int, *subjects: str) -> dict[str, Any]:
    """A result of stream P of a rule program."""
    rows = select(seq, close_ms, ["s"], [[iri(f"http://example.org/{name}")] for name in subjects])
    return {"rsp": {**rows.pop("rsp"), "stream": "p"}, "addedResults": rows, "removedResults": {"head": {}, "results": {"bindings": []}}}


def test_a_rule_program_has_streams_and_a_past(page: Page, standin: Standin) -> None:
    text = "Document(Prefix(ex <http://example.org/>) Window 3 s)"
    standin.queries["q"] = canned.query("q", text, "PROGRAM", output="istream", report="change")
    standin.queries["q"]["progress"]["resultLatencyMs"] = 20_800 * 86_400_000
    for seq, name in enumerate(("a", "b"), 1):
        standin.emit("q", "delta", begun(seq, START_MS + seq, name), f"e1-{seq}")
    page.open("#/queries/q")
    page.until(lambda: page.texts(".evaluation .seq") == ["#2", "#1"], "what was logged before")
    assert page.texts("tr.added td") == ["+added", "ex:b", "+added", "ex:a"]
    assert page.texts(".segmented[aria-label^=What] button")[:3] == ["Begins", "Ceases", "Both"]
    assert "Latency–" in page.text(".facts"), "an age of 20,800 days tells nothing"
    standin.emit("q", "delta", begun(3, START_MS + 3, "c"), "e1-3")
    page.until(lambda: page.texts(".evaluation .seq") == ["#3", "#2", "#1"], "what comes new")
    page.press("Ceases")
    page.until(lambda: standin.feed("q").connections[-1].get("stream") == "n", "a feed of what ceases")
    assert all("mode" not in connection for connection in standin.feed("q").connections)
    page.click("[data-tab=use]")
    assert page.texts(".command code")[0] == f"curl -N '{page.base}queries/q/results?stream=pn' -H 'Accept: text/event-stream'"


def test_large_results_come_in_chunks_and_are_kept_in_part(page: Page, standin: Standin) -> None:
    follow(page, standin)
    for chunk in range(3):
        rows = [[literal(i, "integer")] for i in range(9000)]
        data = {**select(1, START_MS, ["n"], rows), "chunk": chunk, "last": chunk == 2}
        standin.emit("q", "result", data, "e1-1" if chunk == 2 else None)
    page.shows(".total", "Showing the first 500 of 27,000 rows · 1 evaluation received")
    assert page.text(".evaluation .count") == "27,000 rows"
