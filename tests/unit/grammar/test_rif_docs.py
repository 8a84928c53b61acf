"""The examples of docs/rules.md are read, its refusals are refused as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.ir.spans import DiagnosticError
from grammar.rif.parse import parse_rules
from grammar.rule_text import MAX_LENGTH, MAX_NESTING
from grammar.rif.translate import MOST_CONJUNCTS

PAGE = (Path(__file__).parents[3] / "docs" / "rules.md").read_text(encoding="utf-8")
EXAMPLES = [(kind, text) for kind, text in re.findall(r"```(rif|xml)\n(.*?)```", PAGE, re.DOTALL)]
REFUSED = re.findall(r"^\| `(.*?)` \| `(rif-feature-not-core|rules-unsafe|rule-syntax)`", PAGE, re.MULTILINE)
MEDIA = {"rif": "text/x-rif-ps", "xml": "application/rif+xml"}


def wrapped(rule: str) -> str:
    return f"Document(Prefix(ex <http://ex.org/>) Group(\n  {rule}\n))"


@pytest.mark.parametrize(("kind", "text"), EXAMPLES)
def test_examples_are_read(kind: str, text: str) -> None:
    parse_rules(text, MEDIA[kind], "example")


def test_there_are_examples_of_both_syntaxes() -> None:
    assert {kind for kind, _ in EXAMPLES} == set(MEDIA) and len(REFUSED) >= 10


@pytest.mark.parametrize(("rule", "code"), REFUSED)
def test_refusals(rule: str, code: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        parse_rules(wrapped(rule), MEDIA["rif"], "refused")
    assert [d.code for d in caught.value.diagnostics] == [code]


def test_the_refusal_in_full() -> None:
    shown, = re.findall(r"```\n(line .*?)\n```", PAGE, re.DOTALL)
    rule = shown.splitlines()[1].strip()
    with pytest.raises(DiagnosticError) as caught:
        parse_rules(f"Document(Prefix(ex <http://ex.org/>)\n Group(\n  {rule}\n))", MEDIA["rif"], "refused")
    assert [d.render() for d in caught.value.diagnostics] == [shown]


def test_limits_are_those_of_the_code() -> None:
    for limit in (MAX_LENGTH, MOST_CONJUNCTS):
        assert f"{limit:,}" in PAGE
    assert f"brackets nest {MAX_NESTING} deep" in PAGE
