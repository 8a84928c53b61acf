"""The main job in the browser: add a stream, register a query, push RDF, see the answer; on the stand-in and on a real server."""

from __future__ import annotations

import os

from tests.browser.page import Page

NAME = f"page{os.getpid()}"
TEXT = """PREFIX ex: <http://example.org/>
REGISTER QUERY {name} AS
SELECT ?sensor (AVG(?value) AS ?temperature)
FROM STREAM <http://example.org/{name}> [RANGE 10s STEP 5s]
WHERE {{ ?sensor ex:temperature ?value }}
GROUP BY ?sensor
"""
ITEM = """PREFIX ex: <http://example.org/>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
ex:g{second} <http://www.w3.org/ns/prov#generatedAtTime> "2026-01-01T00:00:{second:02}Z"^^xsd:dateTime .
ex:g{second} {{ ex:s1 ex:temperature 20.5 . }}
"""


def test_stream_query_push_answer(any_page: Page) -> None:
    page = any_page.open("#/streams")
    page.write("input[name=name]", NAME)
    page.write("input[name=iri]", f"http://example.org/{NAME}")
    page.choose("select[name=time]", "event: each item carries its time stamp")
    page.press("Add the stream")
    page.shows("main h1", NAME)

    page.open("#/new")
    page.paste(TEXT.format(name=NAME))
    page.shows(".verdict", "valid")
    page.press("Register")
    page.shows("main h1", NAME)
    page.until(lambda: page.text(".pill .word") in ("live", "idle"), "the open feed")

    # The second item is far enough in the future of the first to close every window that holds it.
    for second in (1, 30):
        page.open(f"#/streams/{NAME}")
        page.paste(ITEM.format(second=second))
        page.press("Push")
        page.shows("main .verdict", "1 item accepted")

    page.open(f"#/queries/{NAME}")
    page.press("History")
    page.shows(".answers td.iri", "ex:s1")
    page.shows(".answers td.number", "20.5")
    page.shows(".evaluation .window", "→")

    page.press("Pause")
    page.state("paused")
    page.press("Resume")
    page.until(lambda: page.text(".pill .word") in ("live", "idle"), "the resumed query")

    page.press("Delete")
    page.press("Delete", "dialog")
    page.shows("main h1", "Overview")
    page.until(lambda: NAME not in page.texts("#sidebar a[href^='#/queries/'] .name"), "the query gone from the list")
    page.open(f"#/streams/{NAME}")
    page.press("Delete")
    page.press("Delete", "dialog")
    page.until(lambda: NAME not in page.texts("#sidebar .name"), "the stream gone from the list")
