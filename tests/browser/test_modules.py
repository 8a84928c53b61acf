"""The small modules of the console by themselves, run in the browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.chrome.webdriver import WebDriver

from tests.browser.page import Page
from tests.browser.standin import Standin

XSD = "http://www.w3.org/2001/XMLSchema#"


@pytest.fixture(scope="module")
def loaded(browser: WebDriver) -> Iterator[Page]:
    """One page for all tests here: the modules keep no state."""
    with Standin() as server:
        yield Page(browser, server.base).open("#/")
        browser.get("about:blank")


def test_tokens_cover_the_text_and_know_the_kinds(loaded: Page) -> None:
    text = 'SELECT ?a WHERE { ?a <http://e.x/#p> "it\'s # not" ; e:b.c 1.5 . } # <end>\n"""x\n"y"""@de'
    found = loaded.module("lib/highlight.js", "return m.tokens(a[0])", text)
    assert "".join(token["text"] for token in found) == text
    kinds = {token["text"]: token["type"] for token in found}
    assert kinds["SELECT"] == "keyword" and kinds["?a"] == "variable" and kinds["<http://e.x/#p>"] == "iri"
    assert kinds['"it\'s # not"'] == "string" and kinds["e:b.c"] == "name" and kinds["1.5"] == "number"
    assert kinds["# <end>"] == "comment" and kinds['"""x\n"y"""'] == "string" and kinds["@de"] == "lang"


KINDS = [
    ("lars", "% it's [5 #]\nPREFIX ex: <http://e.x/>\nSTART AT 5\n@T ex:Hot(S) <- [2 sec] @T t(S, V), V > 1.5, not [5 #] box on. from(a).",
     {"% it's [5 #]": "comment", "PREFIX": "keyword", "START": "keyword", "AT": "keyword", "T": "variable", "ex:Hot": "name",
      "2 sec": "duration", "t": "name", "V": "variable", "1.5": "number", "not": "keyword", "box": "keyword", "on": "name",
      "from": "name", "a": "word", "<http://e.x/>": "iri"}),
    ("datalogmtl", "UNIT 1 h\nAlarm :- Boxminus[0,1.5)<->[0,inf)Hot(X,b), Z = X + 1, On\nBoxplus[1,2]Hot(X):-On\nHot(a)@[1,2)",
     {"UNIT": "keyword", "1 h": "duration", "Alarm": "name", "Boxminus": "keyword", "<->": "keyword", "1.5": "number",
      "inf": "number", "Hot": "name", "X": "variable", "b": "word", "Z": "variable", "On": "name", ":-": "mark"}),
    ("rif", 'Document(Prefix(ex <http://e.x/>) Window 10 s (* # no *) Group(?x # ex:C :- ex:p(?x)) External(pred:matches("a" 1)))',
     {"Document": "keyword", "Prefix": "keyword", "10 s": "duration", "(* # no *)": "comment", "?x": "variable", "ex:C": "name",
      "#": "mark", ":-": "mark", "External": "keyword", "pred:matches": "function", '"a"': "string"}),
    ("rifxml", '<?xml version="1.0"?><Const type="a&lt;b">a = "b" &amp; c</Const><!-- x --><Group/>',
     {'<?xml version="1.0"?>': "comment", "<Const": "keyword", "type": "name", '"a&lt;b"': "string", "&amp;": "number",
      "</Const": "keyword", "<!-- x -->": "comment", "/>": "keyword"}),
]


@pytest.mark.parametrize("language, text, wanted", KINDS, ids=[language for language, _, _ in KINDS])
def test_tokens_of_programs_cover_the_text_and_know_the_kinds(loaded: Page, language: str, text: str, wanted: dict[str, str]) -> None:
    found = loaded.module("lib/highlight.js", "return m.tokens(a[0], a[1])", text, language)
    assert "".join(token["text"] for token in found) == text
    assert {token["text"]: token["type"] for token in found if token["text"] in wanted} == wanted
    assert loaded.module("lib/languages.js", "return m.languageOf(a[0])", text) == language


@pytest.mark.parametrize("text, language", [
    ("", "sparql"), ("PREFIX a: <http://a/>\n", "sparql"), ("# not <- here\nSELECT * WHERE { ?s a ?o FILTER(?a<-1) }", "sparql"),
    ("PREFIX a: <http://a/> REGISTER QUERY box AS SELECT * WHERE {}", "sparql"), ("ASK {}", "sparql"), ("{ ?s ?p ?o }", "sparql"),
    ("\ufeff  Document(Group())", "rif"), ("(* a note *) Document()", "rif"), ("<?xml version='1.0'?>\n<Document/>", "rifxml"),
    ("GRANULARITY 1 sec\nq(X) :- p(X).", "lars"), ("PREFIX a: <http://a/>\nSTART AT 0\nq(X) :- p(X).", "lars"),
    ("q(X) ← p(X).", "lars"), ("q(X) :- [2] diamond p(X).", "lars"), ("% note\n@5 p(a).", "lars"), ("q(X) :- @T p(X), T > 3.", "lars"),
    ("<http://e.x/p>(X) <- q(X).", "lars"), ("<http://e.x/p>(X,Y) :- q(X,Y)", "datalogmtl"),
    ("UNIT 1 h\nA :- B", "datalogmtl"), ("FROM STREAM <http://s>\nA(X) :- B(X)", "datalogmtl"), ("A(a)@[1,3)\nB(b)@2", "datalogmtl"),
    ("A(X) :- SOMETIME[-2,-1]B(X)", "datalogmtl"), ("A(X):-<->[0,2]B(X)", "datalogmtl"), ('A(X) :- B(X,"<- box a")', "datalogmtl"),
    ("FROM STREAM <http://s>\n", "datalogmtl"),
])
def test_the_language_of_a_text(loaded: Page, text: str, language: str) -> None:
    assert loaded.module("lib/languages.js", "return m.languageOf(a[0])", text) == language


def test_the_texts_of_the_documents_are_in_their_languages(loaded: Page) -> None:
    """What the pages of the languages show, and the examples of the console."""
    root = Path(__file__).resolve().parents[2]
    blocks = [("rifxml" if kind == "xml" else kind, text) for page in ("lars", "datalogmtl", "rules") for kind, text in re.findall(
        r"```(lars|datalogmtl|rif|xml)\n(.*?)```", (root / "docs" / f"{page}.md").read_text(), re.DOTALL)]
    endings = {".rq": "sparql", ".rifps": "rif", ".lars": "lars", ".dmtl": "datalogmtl"}
    blocks += [(endings[path.suffix], path.read_text()) for path in (root / "static" / "examples").iterdir() if path.suffix in endings]
    assert len(blocks) > 15
    found = loaded.module("lib/languages.js", "return a[0].map(m.languageOf)", [text for _, text in blocks])
    assert found == [language for language, _ in blocks]


def test_facts_that_are_reported_again_are_one(loaded: Page) -> None:
    """In whatever order streams P and N are read; what has ended longest is forgotten first."""
    found = loaded.module("lib/holding.js", """
        const time = (ms) => ms === null ? null : ({type: 'literal', value: new Date(ms).toISOString()});
        const told = (stream, s, from, until) => ({stream, vars: ['s', 'p', 'o', 'from', 'until'], rows: [
          {terms: [...[s, 'p', 'o'].map(value => ({type: 'uri', value})), time(from), time(until)]}]});
        const news = [told('p', 'x', 0, 10), told('p', 'x', 5, 15), told('n', 'x', 0, 10), told('p', 'x', 20, 30), told('p', 'y', 1, null),
                      told('n', 'y', 1, 9), told('p', 'x', 15, 16), told('p', 'z', 3, null)];
        const show = (list) => { const h = new m.Holding(); list.forEach(one => h.add(one));
          return h.at(7).map(f => [f.triple[0].value, f.from, f.until, f.standing]); };
        const many = new m.Holding();
        for (let i = 0; i < 5001; i += 1) many.add(told('p', 's' + i, i, i + 1));
        return [show(news), show([...news.slice(0, 4), ...news.slice(6), ...news.slice(4, 6)]), many.size, many.at(0).at(-1).from]""")
    facts = [["z", 3, None, "holds"], ["y", 1, 9, "holds"], ["x", 0, 16, "holds"], ["x", 20, 30, "ahead"]]
    assert found == [facts, facts, 2500, 2501]


@pytest.mark.parametrize("text, prefixes", [
    ("PREFIX a: <http://a/> prefix : <http://b#>\nSELECT", [["a", "http://a/"], ["", "http://b#"]]),
    ("@prefix a: <http://a/> .", [["a", "http://a/"]]),
    ("# PREFIX a: <http://a/>\nSELECT 'PREFIX b: <http://b/>'", []),
    ("PREFIX a: <http://1/> PREFIX a: <http://2/>", [["a", "http://2/"]]),
])
def test_prefixes_of_a_text(loaded: Page, text: str, prefixes: list[list[str]]) -> None:
    assert loaded.module("lib/highlight.js", "return m.prefixesOf(a[0])", text) == prefixes


@pytest.mark.parametrize("text, name", [
    ("REGISTER QUERY hot AS SELECT", "hot"), ("PREFIX a: <b>\nregister stream s1 COMPUTE EVERY 1s AS", "s1"),
    ("SELECT * WHERE {}", ""),
    ("# REGISTER QUERY no AS\nREGISTER QUERY yes AS", "yes"),
])
def test_the_name_that_a_text_registers(loaded: Page, text: str, name: str) -> None:
    assert loaded.module("lib/highlight.js", "return m.nameOf(a[0])", text) == name


@pytest.mark.parametrize("iri, shown", [
    ("http://e.x/a/b", "ab:b"), ("http://e.x/a", "e:a"), ("http://e.x/a/b/c", "<http://e.x/a/b/c>"),
    ("http://e.x/", "<http://e.x/>"),
    ("http://e.x/a b", "<http://e.x/a b>"), (XSD + "integer", "xsd:integer"), ("http://e.x/a.", "<http://e.x/a.>"),
])
def test_iris_are_shortened_by_the_longest_prefix_that_fits(loaded: Page, iri: str, shown: str) -> None:
    prefixes = [["e", "http://e.x/"], ["ab", "http://e.x/a/"]]
    assert loaded.module("lib/terms.js", "return m.shorten(a[0], m.displayPrefixes(a[1]))", iri, prefixes) == shown


def test_quads_of_a_text(loaded: Page) -> None:
    text = ('<http://e.x/a> <http://e.x/b> "tab\\there \\U0001F321"@en-GB .\n\n_:b1 <http://e.x/b>  _:b2  <http://g> .\n'
            'nonsense\n<http://e.x/a> <http://e.x/b> "1"^^<' + XSD + 'integer> .\n')
    found = loaded.module("lib/terms.js", "return m.parseQuads(a[0]).map(t => t[2])", text.replace(" <http://g>", ""))
    assert found == [{"type": "literal", "value": "tab\there 🌡", "xml:lang": "en-GB"}, {"type": "bnode", "value": "b2"},
                     {"type": "literal", "value": "1", "datatype": XSD + "integer"}]
    named = loaded.module("lib/terms.js", "return m.parseQuads(a[0]).map(t => t[2].value)", text)
    assert named == ["b2"], "what stands in the default graph is about the named one"


@pytest.mark.parametrize("text, ms", [
    ("PT10S", 10_000), ("P1DT2H3M4.5S", 93_784_500), ("PT0S", 0), ("P", None), ("10s", None), (None, None),
])
def test_durations(loaded: Page, text: str | None, ms: int | None) -> None:
    assert loaded.module("lib/format.js", "return m.isoDuration(a[0])", text) == ms


@pytest.mark.parametrize("ms, text", [
    (40, "40 ms"), (2100, "2.1 s"), (60_000, "1 min"), (9_000_000, "2.5 h"), (0, "0 ms"), (864e5, "1 d"),
])
def test_lengths_of_time(loaded: Page, ms: float, text: str) -> None:
    assert loaded.module("lib/format.js", "return m.duration(a[0])", ms) == text


def test_round_values_for_an_axis(loaded: Page) -> None:
    assert loaded.module("lib/chart.js", "return m.ticks(8.3, 24.9)") == [10, 15, 20]
    assert loaded.module("lib/chart.js", "return m.ticks(-0.02, 0.02)") == pytest.approx([-0.02, -0.01, 0, 0.01, 0.02])


def test_rows_are_bounded_and_replaced_not_doubled(loaded: Page) -> None:
    sizes = loaded.module("lib/results.js", """
        const r = new m.Results();
        const entry = (seq, size) => ({seq, at: seq, size, rows: Array(size).fill({sign: '', terms: []}), last: true});
        for (let seq = 1; seq <= 50; seq += 1) r.add(entry(seq, 1000));
        r.add(entry(50, 1000));
        return [r.rows, r.list.length, r.received, r.latest.seq]""")
    assert sizes == [20_000, 20, 50, 50]


def test_lines_take_the_mean_of_a_group_and_leave_out_what_is_no_number(loaded: Page) -> None:
    number = {"type": "literal", "datatype": XSD + "double"}
    rows = [[{"type": "uri", "value": "http://e.x/a"}, {**number, "value": value}] for value in ("1", "3", "NaN")]
    entries = [{"at": 5, "vars": ["s", "v"], "rows": [{"sign": "", "terms": row} for row in rows]}]
    found = loaded.module("lib/series.js", "return m.lines(a[0], 'v', 's', [['e', 'http://e.x/']])", entries)
    assert found == {"lines": [{"name": "e:a", "points": [{"at": 5, "value": 2}]}], "groups": 1, "averaged": True}


@pytest.mark.parametrize("word, quoted", [("http://a/b", "http://a/b"), ("a b", "'a b'"), ("it's", "'it'\\''s'")])
def test_words_for_the_shell(loaded: Page, word: str, quoted: str) -> None:
    assert loaded.module("views/connect.js", "return m.quoted(a[0])", word) == quoted


@pytest.mark.parametrize("place, start", [((1, 1), 0), ((2, 3), 6), ((2, 99), 7), ((9, 1), 9), ((3, 1), 8)])
def test_places_in_a_text(loaded: Page, place: tuple[int, int], start: int) -> None:
    assert loaded.module("lib/editor.js", "return m.offset('abc\\ndef\\nx', a[0], a[1])", *place) == start
