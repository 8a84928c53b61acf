"""The answers of a query: table, chart, true and false, triples, changes, gaps; bounded, and never as HTML."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser import canned
from tests.browser.canned import START_MS, iri, literal, reported, rsp, select
from tests.browser.page import Page
from tests.browser.standin import Standin
from tests.browser.wire import Refused, Reply

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
    data["rsp"].update(inconsistencies=["disjoint: ex:a"], inconsistenciesFound=200, truncated=True)
    standin.emit("q", "result", data, "e1-1")
    badges = ["truncated by the server", "200 inconsistencies"]
    page.until(lambda: page.texts(".evaluation .badge") == badges, "the badges")


def test_an_empty_window_and_no_answer_yet_are_explained(page: Page, standin: Standin) -> None:
    follow(page, standin)
    page.shows(".live .empty", "No answer yet. One appears here when a window closes")
    standin.emit("q", "result", select(1, START_MS, ["s"], []), "e1-1")
    page.shows(".answers td.empty", "Nothing matched in this window.")


def test_a_query_that_waits_for_a_later_item_says_so(page: Page, standin: Standin) -> None:
    at, stamped = "2025-03-20T05:04:01Z", "2025-03-20T05:04:04Z"
    query = canned.query("q", canned.STATIONS_TEXT)
    waits = {"at": at, "for": [{"stream": "http://ex.org/s", "stamped": stamped}]}
    standin.queries["q"] = {**query, "state": "idle", "progress": {**query["progress"], "waits": waits}}
    page.open("#/queries/q")
    page.shows("main", "05:04:04 or later")
    assert page.js("return [...document.querySelectorAll('main [title]')].some((e) => e.title.includes(arguments[0]))",
                   f"?watermark={at}")


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
    page.press("History")
    page.press("Begins")
    page.until(lambda: page.texts(".evaluation .seq") == ["#2", "#1"], "what was logged before")
    assert page.texts("tr.added td") == ["+added", "ex:b", "+added", "ex:a"]
    assert page.texts(".segmented[aria-label^='What the feed'] button") == ["Begins", "Ceases", "Both", "Holds"]
    assert "Latency–" in page.text(".facts"), "an age of 20,800 days tells nothing"
    standin.emit("q", "delta", begun(3, START_MS + 3, "c"), "e1-3")
    page.until(lambda: page.texts(".evaluation .seq") == ["#3", "#2", "#1"], "what comes new")
    page.press("Ceases")
    page.until(lambda: standin.feed("q").connections[-1].get("stream") == "n", "a feed of what ceases")
    assert all("mode" not in connection for connection in standin.feed("q").connections)
    page.click("[data-tab=use]")
    assert page.texts(".command code")[0] == f"curl -N '{page.base}queries/q/results?stream=pn' -H 'Accept: text/event-stream'"


def facts(page: Page) -> list[str]:
    """The list of facts as it is read, a text a row."""
    return page.js("return [...document.querySelectorAll('.facts-list tbody tr')]"
                   ".map(row => [...row.querySelectorAll('td')].map(cell => cell.textContent).join(' | '))")


def test_a_rule_program_says_from_when_and_until_when_its_facts_hold(page: Page, standin: Standin) -> None:
    standin.queries["q"] = canned.query("q", canned.LARS_TEXT, "PROGRAM", dialect="lars", output="istream", report="change")
    standin.queries["q"]["progress"]["watermark"] = None
    t = START_MS
    standin.emit("q", "delta", reported("p", 1, t, ("a", t, t + 2000), ("b", t, t + 9000)), "e1-1")
    page.open("#/queries/q")
    page.until(lambda: facts(page) == ["ex:a a ex:Hot | 2025-03-20 05:04:00 | 2025-03-20 05:04:02 | 2 s | holds",
                                       "ex:b a ex:Hot | 2025-03-20 05:04:00 | 2025-03-20 05:04:09 | 9 s | holds"], "what was logged before")
    assert page.text(".total") == "2 of 2 facts hold at 2025-03-20 05:04:00 · reported since 2025-03-20 05:04:00"
    assert standin.feed("q").connections[-1]["stream"] == "pn"
    assert "FormLARS program" in page.text(".facts") and page.text("#sidebar .entries .under") == "LARS program · no answer yet"
    assert not any(box.is_displayed() for box in page.all(".segmented[aria-label^='What the feed']")), "the list needs both streams"
    standin.emit("q", "delta", reported("p", 2, t + 1000, ("a", t + 1000, t + 3000), ("c", t + 5000, None)), "e1-2")
    page.until(lambda: facts(page)[0].endswith("05:04:03 | 3 s | holds") and facts(page)[2].startswith("ex:c a"), "one fact, prolonged")
    assert [row.rpartition(" | ")[2] for row in facts(page)] == ["holds", "holds", "to come"]
    assert facts(page)[2].endswith("2025-03-20 05:04:05 | goes on | – | to come")
    standin.emit("q", "progress", {"watermark": canned.iso(t + 6000)})
    page.until(lambda: [row[:4] for row in facts(page)] == ["ex:c", "ex:b", "ex:a"], "what holds now before what has ended")
    assert [row.rpartition(" | ")[2] for row in facts(page)] == ["holds", "holds", "ended"]
    standin.emit("q", "delta", reported("n", 3, t + 7000, ("c", t + 5000, t + 7000)), "e1-3")
    page.until(lambda: facts(page)[1].endswith("05:04:05 | 2025-03-20 05:04:07 | 2 s | ended"), "an end that was not known when it began")
    page.press("History")
    assert page.texts(".evaluation .count") == ["1 ceased", "2 begun", "2 begun"]
    page.press("Ceases")
    page.until(lambda: standin.feed("q").connections[-1]["stream"] == "n", "a feed of what ceases")
    page.press("Facts")
    page.until(lambda: standin.feed("q").connections[-1]["stream"] == "pn", "both streams")
    standin.emit("q", "gap", {"requested": "e1-3", "oldestId": "e1-9", "reason": "slow-consumer", "dropped": 5})
    page.shows(".total", "1 of 3 facts holds at 2025-03-20 05:04:07 · reported since 2025-03-20 05:04:00 · some reports were missed")
    standin.emit("q", "gap", {"requested": "e1-9", "oldestId": "e2-1", "reason": "new-run", "dropped": None})
    page.until(lambda: facts(page) == [] and "missed" not in page.text(".total"), "nothing of the program before")


def test_a_feed_of_all_that_holds_begins_with_it(page: Page, standin: Standin) -> None:
    standin.queries["q"] = canned.query("q", canned.LARS_TEXT, "PROGRAM", dialect="lars", output="istream", report="change")
    page.open("#/queries/q")
    page.press("History")
    page.press("Holds")
    page.until(lambda: standin.feed("q").connections[-1].get("mode") == "full", "a feed of all that holds")
    assert "stream" not in standin.feed("q").connections[-1]
    for seq, names in enumerate((("a",), ("a", "b")), 1):
        rows = select(seq, START_MS + 1000 * seq, ["s"], [[iri(f"http://example.org/{name}")] for name in names])
        standin.emit("q", "result", rows, f"e1-{seq}")
    page.until(lambda: page.texts(".evaluation .count") == ["2 rows", "1 row"], "each time all that holds")
    page.press("Facts")
    page.until(lambda: standin.feed("q").connections[-1].get("stream") == "pn", "what began and ceased, from which the list is made")


def test_a_fact_of_any_predicate_is_read_as_an_atom(page: Page, standin: Standin) -> None:
    standin.queries["q"] = canned.query("q", canned.LARS_TEXT, "PROGRAM", dialect="lars", output="istream", report="change")
    none = {"head": {}, "results": {"bindings": []}}
    terms = [literal("near"), iri("http://example.org/a"), literal(3, "integer"), literal(canned.iso(START_MS), "dateTime")]
    columns = ["s", "p", "o", "atom", "a1", "a2", "a3", "from", "until"]
    rows = select(1, START_MS, columns, [[None, None, None, *terms[:3], None, terms[3], None]])
    standin.emit("q", "delta", {"rsp": {**rows.pop("rsp"), "stream": "p"}, "addedResults": rows, "removedResults": none}, "e1-1")
    page.open("#/queries/q")
    page.until(lambda: facts(page) == ["near(ex:a, 3) | 2025-03-20 05:04:00 | goes on | – | holds"], "the atom")
    page.size(400, 800)
    assert page.find(".facts-list .fact .number").text == "3", "on a narrow page too"


def test_large_results_come_in_chunks_and_are_kept_in_part(page: Page, standin: Standin) -> None:
    follow(page, standin)
    for chunk in range(3):
        rows = [[literal(i, "integer")] for i in range(9000)]
        data = {**select(1, START_MS, ["n"], rows), "chunk": chunk, "last": chunk == 2}
        standin.emit("q", "result", data, "e1-1" if chunk == 2 else None)
    page.shows(".total", "Showing the first 500 of 27,000 rows · 1 evaluation received")
    assert page.text(".evaluation .count") == "27,000 rows"


def empty_graph(seq: int, close_ms: int) -> dict[str, Any]:
    """What the server sends of a graph without triples: one quad in the default graph says when it was made."""
    text = (f'<http://localhost/queries/q/results/e1-{seq}> <http://www.w3.org/ns/prov#generatedAtTime> '
            f'"{canned.iso(close_ms)}"^^<{canned.XSD}dateTime> .\n')
    return {"rsp": rsp(seq, close_ms), "format": "application/n-quads", "text": text}


def test_an_empty_construct_is_not_one_triple(page: Page, standin: Standin) -> None:
    follow(page, standin, "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }", "CONSTRUCT")
    standin.emit("q", "graph", empty_graph(1, START_MS), "e1-1")
    page.shows(".evaluation .count", "0 triples")
    assert page.texts(".answers td") == ["No triple was made in this window."]
    assert page.text(".total") == "0 triples · 1 evaluation received"
    page.press("Changes")
    page.until(lambda: standin.feed("q").connections[-1].get("mode") == "delta", "a feed of changes")
    page.press("History")
    graph = empty_graph(2, START_MS + 2000)
    part = {name: graph[name] for name in ("format", "text")}
    standin.emit("q", "delta", {"rsp": graph["rsp"], "added": part, "removed": part}, "e1-2")
    page.shows(".evaluation .count", "0 added, 0 removed")
    page.shows(".answers td.empty", "Nothing has changed.")


@pytest.mark.parametrize(("output", "some", "none"), [("istream", "2 new", "Nothing new."), ("dstream", "2 gone", "Nothing gone.")])
def test_changes_without_rows_are_not_an_empty_window(page: Page, standin: Standin, output: str, some: str, none: str) -> None:
    follow(page, standin, output=output)
    full, empty = select(1, START_MS, ["s"], [[literal("a")], [literal("b")]]), select(1, START_MS, ["s"], [])
    for seq, rows in ((1, full), (2, empty)):
        added, removed = (rows, empty) if output == "istream" else (empty, rows)
        standin.emit("q", "delta", {"rsp": rsp(seq, START_MS + 2000 * seq), "addedResults": added, "removedResults": removed}, f"e1-{seq}")
    page.until(lambda: page.texts(".evaluation .count") == ["0" + some[1:], some], "both evaluations")
    assert page.texts(".answers td.empty") == [none]
    assert page.text(".total") == "2 rows · 2 evaluations received"


def test_counts_of_changes_are_of_all_rows_that_came(page: Page, standin: Standin) -> None:
    """A page keeps 20,000 rows of an evaluation; what it says is what the server sent."""
    follow(page, standin, output="istream")
    rows = [[literal(i, "integer")] for i in range(12_000)]
    for chunk in range(2):
        data = {"rsp": rsp(1, START_MS), "addedResults": select(1, START_MS, ["n"], rows), "removedResults": select(1, START_MS, ["n"], [])}
        standin.emit("q", "delta", {**data, "chunk": chunk, "last": chunk == 1}, "e1-1" if chunk else None)
    page.shows(".evaluation .count", "24,000 new")


def test_what_was_cut_at_a_limit_is_not_counted_as_the_whole(page: Page, standin: Standin) -> None:
    follow(page, standin)
    data = canned.stations(1, START_MS)
    data["rsp"].update(truncated=True, limit=5)
    standin.emit("q", "result", data, "e1-1")
    page.shows(".evaluation .count", "first 5 rows")
    assert page.texts(".evaluation .badge") == ["truncated by the server at 5 rows"]


HELD = """
const cell = [...document.querySelectorAll('.answers td.iri')].find(e => e.textContent === arguments[0]);
const button = [...document.querySelectorAll('.answers tr')].find(e => e.textContent.includes(arguments[1])).querySelector('button');
getSelection().selectAllChildren(cell);
button.focus({preventScroll: true});
"""
STILL = """
return [String(getSelection()), document.activeElement.tagName, document.activeElement.closest('tr')?.querySelector('td').textContent]
"""


@pytest.mark.parametrize("mode", ["Latest", "History"])
def test_new_results_update_rows_in_place(page: Page, standin: Standin, mode: str) -> None:
    """Selection, focus and place survive two results, though the rows come in another order and some have gone."""
    follow(page, standin)
    page.press(mode)
    names = [f"K{n:03}" for n in range(80)]
    standin.emit("q", "result", canned.stations(1, START_MS, names), "e1-1")
    page.until(lambda: len(page.all(".answers td.iri")) == 80, "the first result")
    page.js("document.querySelector('.scroll.table').scrollTop = 600")
    page.js(HELD, "ssw:System_K030", "System_K033")
    place = page.js("return document.activeElement.getBoundingClientRect().top")
    for seq, left in ((2, [*reversed(names[10:])]), (3, ["KNEW", *names[20:]])):
        standin.emit("q", "result", canned.stations(seq, START_MS + 2000 * seq, left), f"e1-{seq}")
        page.until(lambda seq=seq: f"#{seq}" in page.texts(".evaluation .seq"), "the next result")
        assert page.js(STILL) == ["ssw:System_K030", "BUTTON", "ssw:System_K033"]
    if mode == "Latest":
        assert page.texts(".answers td.iri")[:2] == ["ssw:System_KNEW", "ssw:System_K020"] and len(page.all(".answers td.iri")) == 61
        assert page.texts(".answers td.number")[:2] == [row["mean"]["value"] for row in canned.stations(
            3, START_MS, ["KNEW"])["results"]["bindings"]] + [page.texts(".answers td.number")[1]]
    else:
        assert abs(page.js("return document.activeElement.getBoundingClientRect().top") - place) < 2, "the rows have not moved"
    page.js("document.activeElement.click()")
    page.until(lambda: page.all("dialog .tree"), "the proof of the row that has the focus")
    asked = [request for request in standin.requests if "/why" in request.path][-1]
    assert (asked.path, asked.parameters["row"]) == {
        "Latest": ("/queries/q/results/e1-3/why", "14"), "History": ("/queries/q/results/e1-1/why", "33")}[mode]
    page.press("Close", "dialog")


def test_legend_and_figures_keep_the_focus_and_the_selection(page: Page, standin: Standin) -> None:
    follow(page, standin)
    standin.emit("q", "result", canned.stations(1, START_MS), "e1-1")
    page.until(lambda: len(page.all(".legend button")) == 5, "the legend")
    page.js("document.querySelectorAll('.legend button')[2].focus();"
            "getSelection().selectAllChildren([...document.querySelectorAll('.facts dd')].find(e => e.textContent.includes('10 s')))")
    for seq in (2, 3):
        standin.emit("q", "progress", {"watermark": canned.iso(START_MS + 2000 * seq)})
        standin.emit("q", "result", canned.stations(seq, START_MS + 2000 * seq), f"e1-{seq}")
        page.shows(".evaluation .seq", f"#{seq}")
        page.until(lambda seq=seq: f"05:04:0{2 * seq}" in page.text(".moment"), "the chart of it")
        assert page.js("return document.activeElement.querySelector('.name')?.textContent") == "ssw:System_KRNT"
        assert page.js("return String(getSelection())") == "weather 10 s every 2 s"


def test_the_moment_that_the_chart_points_at_stays(page: Page, standin: Standin) -> None:
    follow(page, standin)
    for seq in range(1, 6):
        standin.emit("q", "result", canned.stations(seq, START_MS + 2000 * seq), f"e1-{seq}")
    page.shows(".moment", "05:04:10")
    page.js("document.querySelector('svg.chart').focus()")
    page.keys("\ue012", "\ue012")
    page.until(lambda: page.text(".moment").endswith("05:04:06"), "two before the last")
    standin.emit("q", "result", canned.stations(6, START_MS + 12_000), "e1-6")
    page.shows(".evaluation .seq", "#6")
    page.until(lambda: "to 2025-03-20 05:04:12" in page.find("svg.chart").get_attribute("aria-label"), "the new result in the chart")
    assert page.text(".moment").endswith("05:04:06")


def segments(page: Page) -> list[str]:
    """The paths of the chart's lines as letters: M begins a stretch, L goes on with it."""
    return page.js("return [...document.querySelectorAll('.canvas path.line')].map(e => e.getAttribute('d').replace(/[^ML]/g, ''))")


def test_lines_break_where_there_was_no_answer(page: Page, standin: Standin) -> None:
    """A group that was missing once, a time without evaluations, and answers that the feed has left out."""
    follow(page, standin)
    for seq, names, second in ((1, "AB", 2), (2, "AB", 4), (3, "A", 6), (4, "AB", 8), (5, "AB", 60), (6, "AB", 62)):
        standin.emit("q", "result", canned.stations(seq, START_MS + 1000 * second, names), f"e1-{seq}")
    page.until(lambda: segments(page) == ["MLLLML", "MLMML"], "lines that break")
    assert page.texts(".legend b")[1] != "–"
    page.js("document.querySelector('svg.chart').focus()")
    page.keys(*["\ue012"] * 3)
    page.until(lambda: page.text(".moment").endswith("05:04:06"), "the moment without an answer of B")
    assert page.texts(".legend b")[1] == "–", "a value of another time is not the value of this one"
    standin.emit("q", "gap", {"requested": "e1-6", "oldestId": "e1-7", "reason": "slow-consumer", "dropped": 1})
    standin.emit("q", "result", canned.stations(8, START_MS + 64_000, "AB"), "e1-8")
    page.until(lambda: segments(page) == ["MLLLMLM", "MLMMLM"], "the gap in the lines")


@pytest.mark.parametrize(("output", "sign"), [("istream", "added"), ("dstream", "removed")])
def test_what_is_new_or_gone_is_drawn_as_dots(page: Page, standin: Standin, output: str, sign: str) -> None:
    follow(page, standin, output=output)
    empty = {"head": {"vars": ["n"]}, "results": {"bindings": []}}
    for seq in range(1, 4):
        data = {"rsp": rsp(seq, START_MS + 2000 * seq), "addedResults": empty, "removedResults": empty}
        standin.emit("q", "delta", {**data, f"{sign}Results": select(seq, START_MS, ["n"], [[literal(seq, "integer")]])}, f"e1-{seq}")
    page.until(lambda: len(page.all(".canvas circle.point")) == 3, "a dot for each")
    assert segments(page) == []


def test_the_strip_says_nothing_of_times_without_an_answer(page: Page, standin: Standin) -> None:
    follow(page, standin, "ASK FROM STREAM <s> [RANGE 10s STEP 2s] WHERE { ?s ?p ?o }", "ASK")
    for seq, second in enumerate((0, 2, 40), 1):
        standin.emit("q", "result", {"head": {}, "boolean": True, "rsp": rsp(seq, START_MS + 1000 * second)}, f"e1-{seq}")
    page.until(lambda: len(page.all(".strip rect")) == 3, "three answers")
    widths = page.js("return [...document.querySelectorAll('.strip rect')].map(e => Number(e.getAttribute('width')))")
    assert max(widths) < 1.1 * min(widths), "each is drawn for a step"
    assert page.find("svg.strip").get_attribute("aria-label") == "true at least since 2025-03-20 05:04:40"


@pytest.mark.parametrize(("change", "text"), [
    ({"state": "starting"}, "the query is being started."), ({"state": "restarting"}, "the query is being started again."),
    ({"state": "failed"}, "No answer was given before the query failed."), ({"report": "change"}, "when the answer changes"),
    ({"state": "finished"}, "before the query's streams ended")])
def test_why_there_is_no_answer_yet(page: Page, standin: Standin, change: dict[str, Any], text: str) -> None:
    follow(page, standin, **change)
    page.shows(".live .empty", text)


def test_a_past_that_cannot_be_read_is_told(page: Page, standin: Standin) -> None:
    """The chart is not merely shorter."""
    standin.queries["q"] = canned.query("q", canned.STATIONS_TEXT)
    standin.answers["past"] = Reply(503, Refused(503, "rate-limited", "Too many readers.").body, "application/problem+json")
    standin.emit("q", "result", canned.stations(9, START_MS), "e1-9")
    page.open("#/queries/q")
    page.shows(".toast", "The answers of before could not be read: Too many readers.")


def test_an_empty_graph_of_a_one_shot_query(page: Page, standin: Standin) -> None:
    standin.answers["sparql"] = Reply(200, "", "text/turtle")
    page.open("#/sparql").press("Run")
    page.shows("main .empty", "The graph is empty: no triple was made.")
