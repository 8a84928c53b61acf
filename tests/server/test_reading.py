"""RDF bodies to items: every format, time stamps, caps, and broken text with its place."""

from __future__ import annotations

import gzip
import io
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.ir.notation import date_time_ms
from engine.runtime.resources import Item
from server.formats import media
from server.formats.bodies import gunzip, read_body
from server.formats.items import Reader
from server.formats.reading import read_graph, read_items
from server.formats.values import stamp_ms
from server.limits import Limits
from server.problems import Problem
from tests.shared import shared_files, shared

LIMITS = Limits()
READER = Reader()
EVENT = Reader(event_time=True)
STAMP = '"2026-11-21T05:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
STAMP_MS = 1_795_237_200_000
PROV = "http://www.w3.org/ns/prov#generatedAtTime"
ONE = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
ABC = ("<http://a>", "<http://b>", ONE)


def items(text: str | bytes, kind: str, reader: Reader = READER) -> list[Item]:
    return read_items(text if isinstance(text, bytes) else text.encode(), kind, reader).items


def refused(text: str | bytes, kind: str, reader: Reader = READER) -> Problem:
    with pytest.raises(Problem) as caught:
        items(text, kind, reader)
    return caught.value


SAME_ITEM = {
    media.TRIG: f"<http://g> {{ <http://a> <http://b> 1 }} <http://g> <{PROV}> {STAMP} .",
    "stamp inside": f"<http://g> {{ <http://a> <http://b> 1 . <http://g> <{PROV}> {STAMP} }}",
    media.NQUADS: f"<http://g> <{PROV}> {STAMP} .\n<http://a> <http://b> {ONE} <http://g> .\n",
    media.JSONLD: '{"@context": {"at": {"@id": "%s", "@type": "http://www.w3.org/2001/XMLSchema#dateTime"}}, "@id": "http://g", '
                  '"at": "2026-11-21T05:00:00Z", "@graph": [{"@id": "http://a", "http://b": 1}]}' % PROV,
    media.JSONL: '\n{"@id": "http://g", "%s": "2026-11-21T06:00:00+01:00", "@graph": {"@id": "http://a", "http://b": 1}}\n' % PROV,
}


@pytest.mark.parametrize("kind", SAME_ITEM)
def test_an_item_is_a_named_graph_with_a_time_stamp_in_any_format(kind: str) -> None:
    assert items(SAME_ITEM[kind], kind if "/" in kind else media.TRIG, EVENT) == [Item(STAMP_MS, "<http://g>", (ABC,))]


def test_plain_triples_are_one_item() -> None:
    turtle = f'<http://a> <http://b> 1 ; <http://c> [ <http://d> "x"@EN, "\\u00e9\\n" ] ; <{PROV}> {STAMP} .'
    expected = ABC, ("_:b0", "<http://d>", '"x"@en'), ("_:b0", "<http://d>", '"é\\n"'), ("<http://a>", "<http://c>", "_:b0")
    found = items(turtle, media.TURTLE, EVENT)
    assert [(item.t_ms, item.graph, set(item.triples)) for item in found] == [(STAMP_MS, None, set(expected))]
    assert items(turtle, media.TURTLE) == items(turtle, media.TURTLE), "blank nodes have the same names each time"
    assert items("", media.TURTLE) == items("# nothing\n", media.NTRIPLES) == []
    xml = ('<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://"><rdf:Description rdf:about="http://a">'
           '<b rdf:datatype="http://www.w3.org/2001/XMLSchema#integer">1</b></rdf:Description></rdf:RDF>')
    assert items(xml, media.RDFXML) == [Item(None, None, (ABC,))]


def test_where_the_server_stamps_only_a_stamp_about_the_graph_is_taken_out() -> None:
    kept = items(f"<http://a> <http://b> 1 ; <{PROV}> {STAMP} .", media.TURTLE)
    assert len(kept[0].triples) == 2 and kept[0].t_ms is None


def test_the_time_stamp_of_the_request_wins_over_the_item() -> None:
    assert [item.t_ms for item in items(SAME_ITEM[media.TRIG], media.TRIG, replace(EVENT, timestamp_ms=7))] == [7]


def test_the_descriptor_names_the_predicate() -> None:
    reader = replace(EVENT, predicate="http://ex.org/at")
    assert items(f"_:g {{ <http://a> <http://b> 1 }} _:g <http://ex.org/at> {STAMP} .", media.TRIG, reader)[0].t_ms == STAMP_MS
    assert refused(SAME_ITEM[media.TRIG], media.TRIG, reader).slug == "missing-timestamp"


def test_items_without_or_with_two_time_stamps_are_refused_with_their_name() -> None:
    missing = refused("<http://g> { <http://a> <http://b> 1 }", media.TRIG, EVENT)
    assert (missing.slug, missing.errors[0]["item"]) == ("missing-timestamp", "<http://g>")
    two = SAME_ITEM[media.TRIG] + f' <http://g> <{PROV}> {STAMP.replace("2026", "2027")} .'
    assert "2 different" in refused(two, media.TRIG, EVENT).detail
    assert "not an xsd:dateTime" in refused(SAME_ITEM[media.TRIG].replace("T05", "X05"), media.TRIG, EVENT).detail


def test_a_json_array_holds_items_whose_numbers_keep_their_digits() -> None:
    found = items('[\n{"@id": "http://a", "http://b": 1},\n {"@id": "http://a", "http://b": 12345678901234567890}]', media.JSONLD)
    assert [item.triples[0][2] for item in found] == [ONE, '"12345678901234567890"^^<http://www.w3.org/2001/XMLSchema#integer>']
    broken = refused('[{"@id": "http://a", "http://b": 1},\n\n {"@id": "http://a", "@type": {}}]', media.JSONLD)
    assert (broken.slug, broken.errors[0]["item"], broken.errors[0]["location"]) == ("rdf-syntax", "[1]", {"line": 3})


def test_timed_lines_are_one_item_each() -> None:
    found = items(f"5\t<http://a> <http://b> {ONE} .\n7\t<http://a> <http://b> _:x .\n\n5\t<http://c> <http://b> _:x .", media.TIMED, EVENT)
    assert found == [Item(5, None, (ABC,), 5), Item(7, None, (("<http://a>", "<http://b>", "_:x"),), 7),
                     Item(5, None, (("<http://c>", "<http://b>", "_:x"),), 5)]


def test_a_line_ends_with_a_line_feed_in_timed_lines_too() -> None:
    """A CR alone ends a line of N-Triples: two triples after one time, none after the next."""
    body = "1\t<http://a> <http://b> <http://c> .\r<http://d> <http://e> <http://f> .\n2\t# nothing\n"
    assert refused(body, media.TIMED).errors[0]["location"]["line"] == 1


def test_what_has_no_end_is_not_said_to_be_the_end_of_the_file() -> None:
    rest = "\n" + "<http://a> <http://b> <http://c> .\n" * 2
    for bad in ('<http://a> <http://b> "x', '"', '<http://a> <http://b> "x\\u12'):
        problem = refused(bad + rest, media.NQUADS)
        assert problem.detail == problem.errors[0]["detail"] == "What begins here has no end."
        assert problem.errors[0]["location"]["line"] == 1
    left_out = read_items(f"<http://a> <http://b{rest}".encode(), media.NQUADS, Reader(skip=True)).problems
    assert [problem.detail for problem in left_out] == ["What begins here has no end."]


@pytest.mark.parametrize(("bad", "shown"), [("\x01", "\\x01"), ("\u202e", "\\u202e"), ("<http://\x07>", "\\x07"), ("<http://c\n", "\\n")])
def test_what_cannot_be_seen_is_written_out(bad: str, shown: str) -> None:
    problem = refused(f"<http://a> <http://b> {bad} .\n<http://a> <http://b> <http://c> .\n", media.NQUADS)
    assert f"'{shown}'" in problem.detail and problem.detail.isprintable()
    row, carets = problem.errors[0]["snippet"].split("\n")
    assert row.isprintable() and "^" in carets


def test_skip_leaves_bad_items_out_and_says_which() -> None:
    reading = read_items(b'{"@id":"http://a","http://b":1}\n{"@id":\n{"@context":"http://x","@id":"http://a","http://b":1}\n'
                         b'{"@id":"http://a","http://b":1}', media.JSONL, replace(READER, skip=True))
    assert len(reading.items) == 2
    assert [(p.slug, p.errors[0]["location"]["line"]) for p in reading.problems] == [("rdf-syntax", 2), ("remote-context-disabled", 3)]
    lines = read_items(f"<http://a> <http://b> {ONE} <http://g> .\noops\n<http://a> <http://c> {ONE} <http://g> .".encode(), media.NQUADS,
                       replace(READER, skip=True))
    assert ([len(item.triples) for item in lines.items], [p.errors[0]["location"]["line"] for p in lines.problems]) == ([2], [2])
    timed = read_items(f"1\t<http://a> <http://b> {ONE} .\nx\ty\n2\t<http://a> <http://b> .".encode(), media.TIMED,
                       replace(READER, skip=True))
    assert ([item.t_ms for item in timed.items], [p.errors[0]["location"]["line"] for p in timed.problems]) == ([1], [2, 3])


BROKEN = [
    (media.TURTLE, "<http://a> <http://b>\n  .", 2, 3), (media.TRIG, "<http://g> {\n<http://a> <http://b> 1 .\n", 3, None),
    (media.NTRIPLES, f"<http://a> <http://b> {ONE} .\n<http://a> <b> {ONE} .", 2, 12),
    (media.NQUADS, f"<http://a> <http://b> {ONE} .\n\n<http://a> <http://b> \"x .", 3, 23),
    (media.JSONLD, '{"@id": "http://a",\n "http://b": }', 2, 14), (media.JSONL, '{"@id": "http://a"}\n{"@id": }\n', 2, 9),
    (media.TIMED, f"1\t<http://a> <http://b> {ONE} .\n2\t<http://a> <http://b> .", 2, None),
    (media.TIMED, "1 <http://a> <http://b> <http://c> .", 1, 1),
    (media.RDFXML, '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\n <a></b></rdf:RDF>', 2, None),
]


@pytest.mark.parametrize(("kind", "text", "line", "column"), BROKEN)
def test_broken_text_has_its_line(kind: str, text: str, line: int, column: int | None) -> None:
    problem = refused(text, kind)
    assert (problem.slug, problem.status) == ("rdf-syntax", 400)
    place = problem.errors[0]["location"]
    assert place["line"] == line and (column is None or place["column"] == column)
    assert "^" in problem.errors[0]["snippet"]


SAMPLES = {kind: text for kind, text in SAME_ITEM.items() if "/" in kind} | {
    media.TURTLE: f'@prefix e: <http://e/> .\ne:a e:b 1, "x"@en, """y\n"z""" ; e:c [ e:d ( 1 2 ) ] .\n# end\n<http://s> <{PROV}> {STAMP} .',
    media.NTRIPLES: f'<http://a> <http://b> {ONE} .\n_:x <http://b> "\\u00e9\\n"@en-gb .\n',
    media.TIMED: f"5\t<http://a> <http://b> {ONE} .\n7\t<http://a> <http://b> _:x .\n",
    media.RDFXML: '<?xml version="1.0"?>\n<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">\n'
                  '<rdf:Description rdf:about="http://a"><e:b>1</e:b></rdf:Description>\n</rdf:RDF>',
}


def broken(chance: random.Random, sample: str) -> bytes:
    """A sample of a format after one to four cuts, insertions or splices."""
    text = bytearray(sample.encode())
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(text) + 1)
        match chance.randrange(4):
            case 0:
                text[place:place + chance.randint(1, 12)] = b""
            case 1:
                text[place:place] = bytes(chance.choices(b'<>"\'[](){}@^\\.;,:#_\t\n\x00\xff{}1a ', k=chance.randint(1, 4)))
            case 2:
                other = chance.choice(list(SAMPLES.values())).encode()
                start = chance.randrange(len(other))
                text[place:place] = other[start:start + chance.randint(1, 30)]
            case _:
                del text[place:]
    return bytes(text)


@pytest.mark.parametrize("kind", SAMPLES)
@given(seed=st.integers(0, 1 << 32))
def test_mutated_bodies_are_items_or_problems(kind: str, seed: int) -> None:
    text = broken(random.Random(seed), SAMPLES[kind])
    for reader in (READER, replace(EVENT, skip=True)):
        try:
            found = read_items(text, kind, reader)
        except Problem as problem:
            assert problem.slug in ("rdf-syntax", "nesting-too-deep", "remote-context-disabled", "missing-timestamp"), problem
            if problem.slug == "rdf-syntax" and kind in (media.TURTLE, media.TRIG, media.NTRIPLES, media.NQUADS, media.TIMED):
                assert problem.errors[0].get("location", {}).get("line") or "RDF 1.2" in problem.detail
        else:
            assert all(token[0] in '<_"' for item in found.items for triple in item.triples for token in triple)


def test_rdf_1_2_terms_are_refused_by_name() -> None:
    for text in ("<http://a> <http://b> <<( <http://a> <http://b> 1 )>> .", '<http://a> <http://b> "x"@en--ltr .'):
        assert "RDF 1.2" in refused(text, media.TURTLE).detail


def test_doctypes_are_refused_before_parsing() -> None:
    for text in ('<!DOCTYPE a [<!ENTITY b "c">]><a/>', "<!-- <!doctype --><a/>", '<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE a><a/>'):
        encoded = text.encode("utf-16") if "UTF-16" in text else text.encode()
        assert "DOCTYPE" in refused(encoded, media.RDFXML).detail


def test_remote_contexts_are_refused() -> None:
    for text in ('{"@context": "http://schema.org/", "@id": "http://a"}', '{"@context": ["http://x"], "@id": "http://a", "http://b": 1}',
                 '{"@context": {"@import": "http://x"}, "@id": "http://a", "http://b": 1}',
                 '{"@context": {"x": {"@id": "http://x/p", "@context": "http://foo"}}, "@id": "http://a", "x": {"http://b": 1}}'):
        assert refused(text, media.JSONLD).slug == "remote-context-disabled"
        assert refused(f"[{text}]", media.JSONLD).slug == "remote-context-disabled"


DEEP = 200_000


@pytest.mark.parametrize(("kind", "text"), [
    (media.JSONLD, '{"http://a":' * DEEP + "1" + "}" * DEEP), (media.JSONLD, "[" * DEEP), (media.JSONL, '{"http://a":' * 3000),
    (media.JSONL, "\n" + '{"http://a":[' * 60 + "1" + "]}" * 60), (media.TURTLE, "<http://a> <http://b> " + "[ <http://b> " * DEEP),
    (media.TURTLE, '<http://a> <http://b> "]]]]" , ' + "(" * 65), (media.TRIG, "<http://g> { <http://a> <http://b> " + "<<( " * DEEP),
    (media.NTRIPLES, "<http://a> <http://b> " + "<<( <http://a> <http://b> " * DEEP), (media.RDFXML, "<a>" * DEEP)])
def test_deep_nesting_is_refused_and_harms_nobody(kind: str, text: str) -> None:
    problem = refused(text, kind)
    assert (problem.slug, problem.status) == ("nesting-too-deep", 413)
    assert problem.extra["limit"] == LIMITS.nesting


def test_brackets_in_strings_iris_and_comments_do_not_nest() -> None:
    text = ('<http://a> <http://b> "' + "[" * 100 + '" , \'\'\'(\n' + "(" * 99 + "''' , 1 . # " + "{" * 100
            + "\n<http://a> <http://x/" + "(" * 99 + "> 1 .")
    assert len(items(text, media.TURTLE)[0].triples) == 4


def test_caps_on_triples_items_and_literals() -> None:
    few = replace(READER, limits=Limits(item_triples=2, item_bytes=200, literal=50))
    assert refused("<http://a> <http://b> 1, 2, 3 .", media.TURTLE, few).slug == "too-many-triples"
    long = refused('<http://g> { <http://a> <http://b> "%s" }' % ("x" * 60), media.TRIG, few)
    assert (long.slug, long.extra["limit"]) == ("item-too-large", 50)
    large = refused('<http://g> { <http://a/%s> <http://b> 1 }' % ("x" * 300), media.TRIG, few)
    assert (large.slug, large.extra["limit"]) == ("item-too-large", 200)
    line = refused('{"@id": "http://a", "http://b": 1}\n{"@id": "http://a/%s"}' % ("x" * 300), media.JSONL, few)
    assert (line.slug, line.errors[0]["location"]) == ("item-too-large", {"line": 2})


def test_gzip_is_capped_while_it_is_decompressed() -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    with pytest.raises(Problem) as caught:
        gunzip(io.BytesIO(bomb), 1 << 20, 1 << 20)
    assert caught.value.slug == "body-too-large" and caught.value.extra["actual"] < 3 << 20
    twice = gzip.compress(b"a" * 10) + gzip.compress(b"b")
    assert read_body(io.BytesIO(twice), "gzip", 1000, 1000) == b"a" * 10 + b"b"
    assert read_body(io.BytesIO(b"abc"), None, 3) == b"abc"
    for wrong, encoding in ((b"abc", "gzip"), (gzip.compress(b"abc")[:-9], "gzip"), (b"abc", "br")):
        with pytest.raises(Problem):
            read_body(io.BytesIO(wrong), encoding, 1000)
    with pytest.raises(Problem):
        read_body(io.BytesIO(b"abcd"), "identity", 3)


def test_a_graph_is_a_set_of_triples_without_a_name() -> None:
    assert read_graph(b"<http://a> <http://b> 1, 1 .", media.TURTLE, LIMITS) == [ABC]
    with pytest.raises(Problem) as caught:
        read_graph(b"<http://g> { <http://a> <http://b> 1 }", media.TRIG, LIMITS)
    assert "<http://g>" in caught.value.detail


@pytest.mark.parametrize(("text", "ms"), [
    ("1970-01-01T00:00:00Z", 0), ("1970-01-01T00:00:00", 0), ("1970-01-01T01:00:00.0019+01:00", 1), ("1969-12-31T24:00:00", 0),
    ("2019-04-30T09:51:01", 1_556_617_861_000), ("0001-01-01T00:00:00Z", -62_135_596_800_000),
    ("0000-12-31T00:00:00Z", -62_135_683_200_000),
    ("-0001-01-01T00:00:00Z", -62_198_755_200_000), ("12000-01-01T00:00:00Z", 316_516_204_800_000), ("2020-02-30T00:00:00Z", None),
    ("2020-01-01T25:00:00Z", None), ("2020-01-01", None), ("2020-01-01T00:00:00+15:00", None), ("2020-01-01T24:00:01Z", None), ("x", None)])
def test_date_times(text: str, ms: int | None) -> None:
    assert date_time_ms(text) == ms
    assert stamp_ms(f'"{text}"^^<http://www.w3.org/2001/XMLSchema#dateTime>') == stamp_ms(f'"{text}"') == ms
    assert stamp_ms(f"<{text}>") is stamp_ms(f'"{text}"@en') is stamp_ms(f'"{text}"^^<http://x>') is None


@pytest.mark.parametrize("path", shared_files("*.trigs.gz", "rspqlstar-usecase", "reification"), ids=lambda path: path.name)
def test_the_health_streams_can_be_read(path: object) -> None:
    from pathlib import Path
    with open(Path(str(path)), "rb") as file:
        found = items(gunzip(file, 1 << 28, 1 << 28), media.TRIG, EVENT)
    times = [item.t_ms for item in found]
    assert len(found) == 3600 and times == sorted(times) and all(3 <= len(item.triples) <= 20 for item in found)  # type: ignore[type-var]


def test_the_health_streams_are_there() -> None:
    assert shared("rspqlstar-usecase", "reification").is_dir()
