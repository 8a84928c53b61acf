"""An ill-formed language tag comes in by no way: bodies of every RDF format, SPARQL, both syntaxes of rules, functions."""

from __future__ import annotations

import json
from collections.abc import Callable
from xml.sax.saxutils import quoteattr

import pytest

from engine.functions.context import Context, ExpressionError
from engine.functions.expressions import evaluate
from engine.ir.builtins import FUNC
from engine.ir.expressions import Call
from engine.ir.spans import DiagnosticError
from engine.ir.terms import RDF, XSD, Constant, is_language_tag, quote
from grammar import parse
from grammar.rif.parse import parse_rules
from server.formats import media
from server.formats.items import Reader
from server.formats.reading import read_graph, read_items
from server.limits import Limits
from server.problems import Problem

GOOD = ("en", "EN", "de-CH-1996", "x-a1")
BAD = ("toolonglanguage", "en-toolongsubtag", "en'", "en' OR 1=1 --", "en\" <x", "en-", "-en", "1n", "en_GB", "\u00e9n", "e n",
       "en\x00")
XML = f'<rdf:RDF xmlns:rdf="{RDF}"><rdf:Description rdf:about="urn:s" xmlns:e="urn:"><e:p xml:lang=%s>a</e:p></rdf:Description></rdf:RDF>'
RIF = "http://www.w3.org/2007/rif#"
FACT = (f'<Document xmlns="{RIF}"><payload><Group><sentence><Frame><object><Const type="{RIF}iri">urn:s</Const></object>'
        f'<slot ordered="yes"><Const type="{RIF}iri">urn:p</Const>%s</slot></Frame></sentence></Group></payload></Document>')

DOORS: dict[str, Callable[[str], object]] = {
    "Turtle": lambda tag: read_graph(f'<urn:s> <urn:p> "a"@{tag} .'.encode(), media.TURTLE, Limits()),
    "N-Triples": lambda tag: read_items(f'<urn:s> <urn:p> "a"@{tag} .\n'.encode() * 100, media.NTRIPLES, Reader()),
    "RDF/XML": lambda tag: read_graph((XML % quoteattr(tag)).encode(), media.RDFXML, Limits()),
    "JSON-LD": lambda tag: read_graph(json.dumps({"@id": "urn:s", "urn:p": {"@value": "a", "@language": tag}}).encode(), media.JSONLD,
                                      Limits()),
    "JSON-LD's context": lambda tag: read_items(json.dumps({"@context": {"@language": tag}, "@id": "urn:s", "urn:p": "a"}).encode(),
                                                media.JSONLD, Reader()),
    "JSON lines": lambda tag: read_items(json.dumps({"@id": "urn:s", "urn:p": {"@value": "a", "@language": tag}}).encode(), media.JSONL,
                                         Reader()),
    "JSON-LD, an escaped key": lambda tag: json_ld('{"@id": "urn:s", "urn:p": {"@value": "a", "@l\\u0061nguage": %s}}' % json.dumps(tag)),
    "JSON-LD, another name": lambda tag: json_ld({"@context": {"l": "@language"}, "@id": "urn:s", "urn:p": {"@value": "a", "l": tag}}),
    "JSON-LD, a name of a name": lambda tag: json_ld({"@context": [{"m": {"@id": "@language"}}, {"l": "m"}], "@id": "urn:s",
                                                      "urn:p": [{"@value": "a", "l": tag}]}),
    "JSON-LD, a scoped name": lambda tag: json_ld({"@context": {"k": {"@id": "urn:k", "@context": {"l": "@language"}}}, "@id": "urn:s",
                                                   "k": {"@id": "urn:o", "urn:p": {"@value": "a", "l": tag}}}),
    "JSON-LD, of a term": lambda tag: json_ld({"@context": {"p": {"@id": "urn:p", "@language": tag}}, "@id": "urn:s", "p": "a"}),
    "JSON-LD, a language map": lambda tag: json_ld({"@context": {"p": {"@id": "urn:p", "@container": ["@language", "@set"]}},
                                                    "@id": "urn:s", "p": {"@none": "b", tag: ["a"]}}),
    "JSON-LD, beside a long number": lambda tag: json_ld('{"@id": "urn:s", "urn:q": %s, "urn:p": {"@value": "a", "@language": %s}}'
                                                         % ("1" * 5_000, json.dumps(tag))),
    "JSON lines, another name": lambda tag: read_items(json.dumps({"@context": {"l": "@language"}, "@id": "urn:s", "urn:p": {
        "@value": "a", "l": tag}}).encode(), media.JSONL, Reader()),
    "SPARQL": lambda tag: parse(f'SELECT * FROM STREAM <urn:s> [RANGE 1s STEP 1s] WHERE {{ ?s ?p "a"@{tag} }}'),
    "RIF": lambda tag: parse_rules(f'Document( Group( <urn:s>[<urn:p> -> "a"@{tag}] ) )', "text/x-rif-ps", "r"),
    "RIF, a plain literal": lambda tag: parse_rules(f'Document( Group( <urn:s>[<urn:p> -> {quote(f"a@{tag}")}^^rdf:PlainLiteral] ) )',
                                                    "text/x-rif-ps", "r"),
    "RIF/XML": lambda tag: parse_rules(FACT % f"<Const xml:lang={quoteattr(tag)}>a</Const>", "application/rif+xml", "r"),
    "STRLANG": lambda tag: called("STRLANG", quote("a"), quote(tag)),
    "RIF's function": lambda tag: called(f"<{FUNC}PlainLiteral-from-string-lang>", quote("a"), quote(tag)),
    "RIF's function of a plain literal": lambda tag: called(f"<{FUNC}lang-from-PlainLiteral>", f"{quote(f'a@{tag}')}^^<{RDF}PlainLiteral>"),
}


def json_ld(body: object) -> object:
    """The triples of a graph; what is left out silently is not among them."""
    found = read_graph((body if isinstance(body, str) else json.dumps(body)).encode(), media.JSONLD, Limits())
    assert any("@" in triple[2] for triple in found)
    return found


def called(function: str, *tokens: str) -> str:
    return evaluate(Call(function, tuple(map(Constant, tokens))), {}, Context(0))


@pytest.mark.parametrize("tag", BAD)
@pytest.mark.parametrize("door", DOORS)
def test_an_ill_formed_language_tag_is_refused(door: str, tag: str) -> None:
    assert not is_language_tag(tag)
    with pytest.raises((Problem, DiagnosticError, ExpressionError)):
        DOORS[door](tag)


@pytest.mark.parametrize("tag", GOOD)
@pytest.mark.parametrize("door", DOORS)
def test_a_language_tag_is_taken(door: str, tag: str) -> None:
    assert is_language_tag(tag)
    assert DOORS[door](tag)


def test_a_tag_in_a_text_is_no_tag() -> None:
    text = json.dumps({"@id": "urn:s", "urn:p": '"@language": "not a tag"'}).encode()
    assert read_graph(text, media.JSONLD, Limits())
    for body in ({"@context": {"l": "@language"}, "@id": "urn:s", "urn:p": {"@value": "a", "l": "en"}, "urn:q": "@language"},
                 {"@context": {"p": {"@id": "urn:p", "@container": "@language"}}, "@id": "urn:s", "p": {"@none": "a"}}):
        assert read_graph(json.dumps(body).encode(), media.JSONLD, Limits())
    assert called("STRLEN", quote("a@toolonglanguage")) == f'"17"^^<{XSD}integer>'
