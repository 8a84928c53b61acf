"""The examples of docs/datalogmtl.md mean what it says, its refusals are refused as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.ir.printer_facts import print_facts
from engine.ir.rules import Atom, Fact, atoms
from engine.ir.spans import DiagnosticError
from engine.ir.terms import Constant
from engine.reference.temporal import evaluate
from grammar.datalogmtl.parse import parse_datalogmtl, parse_facts
from grammar.rule_text import MAX_LENGTH, MAX_NESTING

PAGE = (Path(__file__).parents[3] / "docs" / "datalogmtl.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```datalogmtl\n(.*?)```\n+```facts\n(.*?)```\n+```derived\n(.*?)```", PAGE, re.DOTALL)
REFUSED = re.findall(r"^\| `(.*?)` \| `(rule[\w-]*)`", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("program", "facts", "expected"), EXAMPLES)
def test_examples(program: str, facts: str, expected: str) -> None:
    rules = parse_datalogmtl(program, "example")
    heads = {atom.predicate if atom.predicate != "triple" else str(atom.terms[2]) for rule in rules.rules for atom in atoms(rule.head)}
    found = [Fact(Atom(name, tuple(map(Constant, terms))), when)
             for (name, terms), intervals in evaluate(rules, parse_facts(facts)).facts.items() for when in intervals]
    shown = [fact for fact in found if (fact.atom.predicate if fact.atom.predicate != "triple" else str(fact.atom.terms[2])) in heads]
    assert print_facts(shown, rules.unit_ms) == expected


@pytest.mark.parametrize(("text", "code"), REFUSED)
def test_refusals(text: str, code: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        parse_datalogmtl(text, "refused")
    assert [d.code for d in caught.value.diagnostics] == [code]


def test_there_are_examples_and_refusals() -> None:
    assert len(EXAMPLES) == PAGE.count("```datalogmtl") == 3 and len(REFUSED) >= 12


def test_the_refusal_in_full() -> None:
    shown, = re.findall(r"```\n(line .*?)\n```", PAGE, re.DOTALL)
    with pytest.raises(DiagnosticError) as caught:
        parse_datalogmtl(shown.splitlines()[1], "refused")
    assert [d.render() for d in caught.value.diagnostics] == [shown]


def test_limits_are_those_of_the_code() -> None:
    assert f"{MAX_LENGTH:,}" in PAGE and f"{MAX_NESTING} deep" in PAGE
