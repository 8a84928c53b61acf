"""Broken rule documents, in both syntaxes: rules or a diagnostic, never another exception, never more than two seconds of work."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.ir.spans import DiagnosticError
from grammar.rif.parse import parse_rules
from tests.rif_documents import parse_condition
from tests.shared import shared_files

PS, XML = "text/x-rif-ps", "application/rif+xml"
ENDINGS = {".rifps": PS, ".rif": XML}
LONGEST = 2.0   # seconds of this thread: on a busy machine the clock on the wall says little
GOLDEN = Path(__file__).parents[2] / "golden" / "rif"
_PIECES = {
    PS: ["(", ")", "[", "]", "(*", "*)", "<", ">", '"', "\\", "\\uD800", "^^", "@en", "#", "##", "=", ":-", "->", "|", ",", "?x", "?y ",
         " ex:p", "_:a", "_a", "1", "1e9", "10 s", "-", "\x00", "\u2028", "\U0001F600", "\ud800", "Document", "Group(", "Forall ?x (",
         "Exists ?y (", "And(", "Or(", "External(", "List(", "If ", " Then ", "Import(", "Prefix(", "Window 1 s ", "Naf ", "\n", "\t"],
    XML: ["<", ">", "/>", "</", "&", "&rif;", '"', "'", "<!--", "-->", "<![CDATA[", "]]>", "<?x ?>", "<!DOCTYPE a []>", "<Var>x</Var>",
          "<And>", "</And>", "<formula>", "<Const>1</Const>", "<args>", "<List>", "<External>", "<Naf/>", 'type="x"', "xmlns=''", "\x00",
          "\ud800", "\U0001F600", "<meta/>", "<id/>", "1", "\n"],
}


def documents() -> dict[str, list[str]]:
    """The golden documents and those of W3C's cases, by syntax."""
    files = [*GOLDEN.iterdir(), *shared_files("*/*/*.rif*", "w3c-rif-core")]
    return {media: [path.read_text("utf-8-sig") for path in sorted(files) if path.suffix == ending] for ending, media in ENDINGS.items()}


def mutated(rng: random.Random, texts: list[str], pieces: list[str]) -> str:
    """One text after one to four cuts, copies, insertions or splices."""
    text = rng.choice(texts)
    for _ in range(rng.randint(1, 4)):
        at = max(rng.randrange(len(text) + 1), rng.randrange(len(text) + 1))    # rather in the rules than in the prologue
        length = rng.choice((1, 1, 2, 5, 20, 200))
        match rng.choice((0, 0, 1, 1, 1, 2, 2, 3, 4, 4)):
            case 0:
                text = text[:at] + text[at + length:]
            case 1:
                text = text[:at] + rng.choice(pieces) + text[at:]
            case 2:
                text = text[:at] + rng.choice(pieces) + text[at + length:]
            case 3:
                text = text[:at] + text[at:at + length] * rng.choice((2, 3, 50)) + text[at + length:]
            case _:
                other = rng.choice(texts)
                start = rng.randrange(len(other) + 1)
                text = text[:at] + other[start:start + length] + text[at:]
    return text[:70_000]


def assert_told(error: DiagnosticError, text: str) -> None:
    """Something is said of a text that is refused, all of it at places in it."""
    assert error.diagnostics and str(error)
    for diagnostic in error.diagnostics:
        assert diagnostic.span is None or 0 <= diagnostic.span.start <= diagnostic.span.end <= len(text)


def check(text: str, media: str) -> bool:
    """Read one text as document and as condition, whatever it is; whether it is a document."""
    start, good = time.thread_time(), False
    try:
        parse_rules(text, media, "fuzz")
        good = True
    except DiagnosticError as error:
        assert_told(error, text)
    try:
        parse_condition(text, media)
    except DiagnosticError as error:
        assert error.diagnostics
    assert time.thread_time() - start < LONGEST, text[:2_000]
    return good


def fuzz(media: str, seed: int, count: int) -> None:
    """Some texts must still be documents, else they are broken beyond use."""
    rng, texts, good = random.Random(seed), documents(), 0
    for number in range(count):
        text = mutated(rng, texts[media], _PIECES[media])
        try:
            good += check(text, media)
        except Exception as error:
            raise AssertionError(f"text {number} of seed {seed}: {text!r}") from error
    assert 0 < good < count // 2


@pytest.mark.parametrize("media", [PS, XML])
def test_200_broken_documents(media: str) -> None:
    fuzz(media, 8175, 200)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("media", [PS, XML])
def test_10000_broken_documents(media: str) -> None:
    fuzz(media, 20240501, 10_000)


@given(st.lists(st.sampled_from(_PIECES[PS]), max_size=40), st.booleans())
def test_any_row_of_pieces(pieces: list[str], wrapped: bool) -> None:
    text = " ".join(pieces)
    check(f"Document(Group(\n{text}\n))" if wrapped else text, PS)


@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    check(text, PS)
    check(text, XML)


def filled(before: str, piece: str, after: str) -> str:
    """64 KiB of one piece."""
    return before + piece * ((65_000 - len(before) - len(after)) // len(piece)) + after


@pytest.mark.parametrize(("before", "piece", "after"), [
    ("Document(Group(", "<a:p>(1) ", "))"), ("Document(Group(", "<a:s>[<a:p>->1] ", "))"), ("Document(Group(<a:p>(", "1 ", ")))"),
    ("Document(Group(<a:p>() :- And(", "<a:q>() ", ")))"), ("Document(Group(<a:p>() :- Or(", "<a:q>() ", ")))"),
    ("Document(Group(Forall ", "?x ", "(<a:p>(1))))"), ("Document(", "(* ", ""), ("Document(", "Prefix(a <b:>) ", "Group())"),
    ("Document(Group(", "ex:p(1) ", "))"), ("Document(Group(<a:p>(", "List() ", ")))"), ("Document(Group(<a:p>(\"", "\\", "\")))"),
    ("Document(Group(", "Forall ?x (<a:p>(?x) :- <a:q>(?x)) ", "))"), ("Document(Group(a", ".-", ":p()))"), ("", "a", ""), ("", "(", ""),
    ("", "?", ""), ("", "<", ""), ("", "\"", ""), ("Document(Group(<a:p>(\"", "a", "\"^^xs:Name)))"),
    ("Document(Group(<a:p>(\"", "a ", "\"^^xs:token)))"), ("Document(Group(<a:p>(\"", "AAAA", "=\"^^xs:base64Binary)))"),
    ("Document(Group(<a:p>(\"", "1", "\"^^xs:double)))"), ("Document(Group(<a:p>(\"P", "1D", "\"^^xs:dayTimeDuration)))"),
    ("Document(Group(<a:p>() :- And(", "?x = ?y ", ")))"), ("Document(Group(<a:p>(", "External(func:not(1)) ", ")))"),
])
def test_64_kib_of_one_thing(before: str, piece: str, after: str) -> None:
    check(filled(before, piece, after), PS)


@pytest.mark.parametrize(("opening", "inside", "closing"), [
    ("And(", "<a:q>()", ")"), ("Or(", "<a:q>()", ")"), ("Exists ?x (", "<a:q>(?x)", ")"),
    ("External(", "pred:is-list(1)", ")"), ("<a:q>(", "1", ")"),
])
def test_brackets_nest_to_the_limit(opening: str, inside: str, closing: str) -> None:
    for depth in (55, 63, 80):
        check(f"Document(Group(<a:p>() :- {opening * depth}{inside}{closing * depth}))", PS)


def test_equalities_in_a_long_chain_bind() -> None:
    names = [f"?x{n}" for n in range(2_000)]
    chain = [f"{b} = {a} " for a, b in zip(names, names[1:])]
    for links in (chain, chain[::-1], random.Random(1).sample(chain, len(chain))):
        assert check(f"Document(Group(Forall {' '.join(names)} (<a:p>({names[-1]}) :- And(<a:q>(?x0) {''.join(links)}))))", PS)


@pytest.mark.parametrize(("head", "body", "good"), [
    ("<a:p>(1) " * 3_000, "<a:q>(1) " * 3_000, False), ("<a:p>(External(func:not(1))) " * 100, "<a:q>(1) " * 100, True),
    ("<a:p>(1) " * 3_000, "<a:q>(1)", True), ("<a:p>(1)", "<a:q>(1) " * 3_000, True),
    ("<a:p>(1) ", "Or(<a:q>(1) <a:r>(1)) " * 1_000, False), ("<a:p>(1) ", "<a:q>(1) " * 3_000 + "Or(<a:q>(1) <a:r>(1)) " * 9, False),
])
def test_rules_that_unfold_stay_small(head: str, body: str, good: bool) -> None:
    assert check(f"Document(Group(And({head}) :- And({body})))", PS) is good
