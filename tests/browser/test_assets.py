"""What the console is made of, read as text: nothing from elsewhere, no HTML made of text, colours one can read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from engine.ir.statement import Program
from grammar import parse
from grammar.rule_sets import BY_MEDIA, RULE_SET_EXTENSIONS, TIMED_EXTENSIONS, parse_rules
from server.demo import STREAM_IRI

STATIC = Path(__file__).resolve().parents[2] / "static"
MODULES = sorted(STATIC.rglob("*.js"))
EXAMPLES = sorted(path for path in (STATIC / "examples").iterdir() if path.suffix in (".rq", *RULE_SET_EXTENSIONS))
NAMESPACES = ("http://www.w3.org/", "http://example.org")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(STATIC)))
def test_modules_make_no_html_of_text_and_no_inline_style(path: Path) -> None:
    text = path.read_text()
    sinks = (r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|\.style\b|setAttribute\(\"style"
             "|createContextualFragment")
    assert not re.findall(sinks, text)
    assert text.startswith("/** "), "a module says what it is for"
    assert len(text.splitlines()) <= 250 and max(map(len, text.splitlines())) <= 130


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(STATIC)))
def test_modules_import_what_is_there(path: Path) -> None:
    for wanted in re.findall(r'^(?:import|export) .*? from "(.*?)";', path.read_text(), re.MULTILINE):
        assert wanted.startswith(".") and (path.parent / wanted).resolve().is_file(), wanted


def test_nothing_comes_from_elsewhere() -> None:
    for path in [*MODULES, *STATIC.glob("*.html"), *STATIC.glob("*.css")]:
        for address in re.findall(r"(?:https?:)?//[\w.-]+\.[a-z]{2,}[^\s\"'`]*", path.read_text()):
            assert address.startswith(NAMESPACES), f"{path.name}: {address}"
    assert "@import" not in (STATIC / "style.css").read_text() and "url(" not in (STATIC / "style.css").read_text()


def test_the_page_has_no_inline_script_or_style() -> None:
    page = (STATIC / "index.html").read_text()
    assert not re.findall(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", page)


def test_every_example_is_listed_once_and_there() -> None:
    listed = json.loads((STATIC / "examples/index.json").read_text())
    files = sorted(example["file"] for example in listed)
    assert files == sorted(path.name for path in EXAMPLES)
    assert all(example["title"] for example in listed)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_what_they_are_listed_as(path: Path) -> None:
    listed = {example["file"]: example["kind"] for example in json.loads((STATIC / "examples/index.json").read_text())}
    if path.suffix in TIMED_EXTENSIONS:
        rules = parse_rules(path.read_text(), TIMED_EXTENSIONS[path.suffix], "example")
        assert listed[path.name] == "program" and [imp.iri for imp in rules.imports] == [STREAM_IRI]
        return
    statement = parse(path.read_text())
    kind = "program" if isinstance(statement.query, Program) else "continuous" if statement.registered else "sparql"
    assert listed[path.name] == kind


def test_the_editor_knows_every_language_of_rules_and_the_ends_of_its_files() -> None:
    sent = set(re.findall(r'type: "(.*?)"', (STATIC / "lib/languages.js").read_text()))
    assert sent == {*BY_MEDIA, "application/sparql-query"}
    endings = re.search(r'ENDINGS = "(.*?)"', (STATIC / "views/rules.js").read_text())
    assert endings and {*endings[1].split(",")} == {*RULE_SET_EXTENSIONS}


def tokens(text: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", text))


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.1)."""
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_can_be_read(scheme: str) -> None:
    light, dark = (STATIC / "style.css").read_text().split("@media (prefers-color-scheme: dark)")
    colours = tokens(light) if scheme == "light" else {**tokens(light), **tokens(dark.split("\n}\n")[0])}
    pairs = [(text, back) for text in ("text", "soft", "accent", "bad", "good", "warn") for back in ("bg", "panel", "sunken")]
    pairs += [("on-accent", "accent"), ("accent-strong", "accent-tint"), ("quiet", "panel"), ("quiet", "quiet-tint"),
              ("soft", "quiet-tint"), ("wait", "panel")]
    pairs += [(tone, f"{tone}-tint") for tone in ("good", "warn", "bad", "wait")]
    pairs += [(f"t-{kind}", "panel") for kind in ("keyword", "iri", "name", "string", "number", "variable", "comment")]
    low = {pair: round(contrast(colours[pair[0]], colours[pair[1]]), 2) for pair in pairs}
    assert {pair: ratio for pair, ratio in low.items() if ratio < 4.5} == {}
    lines = {f"hue-{i}": round(contrast(colours[f"hue-{i}"], colours["panel"]), 2) for i in range(8)}
    assert {name: ratio for name, ratio in lines.items() if ratio < 3} == {}
