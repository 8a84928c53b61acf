"""Tokens: escapes as the stream parser writes them, and taking them apart."""

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.functions import terms
from engine.ir.terms import XSD, literal

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(TEXTS)
def test_a_string_is_escaped_as_pyoxigraph_does(text: str) -> None:
    assert terms.string(text) == str(ox.Literal(text))


def test_every_character_of_the_basic_plane_is_escaped_as_pyoxigraph_does() -> None:
    for start in range(0, 0x10000, 0x100):
        text = "".join(chr(code) for code in range(start, start + 0x100) if not 0xD800 <= code < 0xE000)
        assert terms.string(text) == str(ox.Literal(text))


@given(TEXTS, st.sampled_from([(None, None), (XSD + "date", None), (None, "en"), (None, "en-GB"), (XSD + "string", None)]))
def test_split_takes_apart_what_literal_made(text: str, suffix: tuple[str | None, str | None]) -> None:
    datatype, lang = suffix
    parsed = terms.split(literal(text, datatype, lang))
    assert parsed.kind == "literal" and parsed.lexical == text
    assert parsed.lang == (lang or "").lower()
    assert parsed.datatype == (terms.RDF_LANG_STRING if lang else datatype or terms.XSD_STRING)


@pytest.mark.parametrize("made, token", [
    (terms.iri("http://a/é"), "<http://a/é>"),
    (terms.blank("b0"), "_:b0"),
    (literal("a", terms.XSD_STRING), '"a"'),
    (literal("a", lang="EN-us"), '"a"@en-us'),
    (literal("a\\b\n", XSD + "x"), f'"a\\\\b\\n"^^<{XSD}x>'),
    (terms.boolean(True), f'"true"^^<{XSD}boolean>'),
    (terms.integer(-7), f'"-7"^^<{XSD}integer>'),
])
def test_tokens(made: str, token: str) -> None:
    assert made == token


def test_split_of_iri_and_blank_node() -> None:
    assert terms.split("<http://a>") == ("iri", "http://a", "", "")
    assert terms.split("_:x") == ("blank", "x", "", "")


def test_escapes_that_are_not_canonical_are_read() -> None:
    assert terms.split('"\\u00E9\\U0001F600\\\'"').lexical == "é😀'"
