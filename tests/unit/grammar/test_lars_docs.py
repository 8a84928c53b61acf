"""The examples of docs/lars.md give the answers beside them, its refusals are refused as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.ir.rules import Atom, atoms
from engine.ir.spans import DiagnosticError
from engine.reference.formulas import Ground, ground, unify
from engine.reference.temporal import evaluate
from grammar.lars.parse import parse_lars
from grammar.lars.timeline import MOST_TUPLES
from grammar.rule_sets import parse_rules
from grammar.rule_text import MAX_ATOMS, MAX_ERRORS, MAX_LENGTH, MAX_NESTING

PAGE = (Path(__file__).parents[3] / "docs" / "lars.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```lars\n(.*?)```\n\n```answers\n(.*?)```", PAGE, re.DOTALL)
REFUSED = re.findall(r"^\| `(.*?)` \| `(rules-unsafe|rule-syntax|nesting-too-deep)`", PAGE, re.MULTILINE)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == PAGE.count("```lars\n") >= 2 and len(REFUSED) >= 20


@pytest.mark.parametrize(("text", "answers"), EXAMPLES)
def test_examples_give_their_answers(text: str, answers: str) -> None:
    program = parse_lars(text, "example")
    heads = [atom for rule in program.rules for atom in atoms(rule.head)]
    expected = {int(k): set(listed.split()) for k, listed in (line.split(":", 1) for line in answers.splitlines())}
    for k in range(max(expected) + 1):
        at = k * program.granularity_ms
        facts = parse_lars("\n".join(f"{atom}." for atom in ["none", *expected.get(k, ())]), "answers").facts[1:]
        found = {atom for atom in evaluate(program, until_ms=at).at(2 * at) if any(matches(head, atom) for head in heads)}
        assert found == {ground(fact.atom, {}) for fact in facts}, f"at {k}"


def matches(head: Atom, atom: Ground) -> bool:
    """Whether it is an atom that a head may derive."""
    return unify(head, atom, {}) is not None


@pytest.mark.parametrize(("text", "code"), REFUSED)
def test_refusals(text: str, code: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        parse_lars(text, "refused")
    assert [d.code for d in caught.value.diagnostics] == [code], caught.value


def test_the_refusal_in_full() -> None:
    shown, = re.findall(r"```\n(line .*?)\n```", PAGE, re.DOTALL)
    with pytest.raises(DiagnosticError) as caught:
        parse_lars("p(1).\n" + shown.splitlines()[1], "refused")
    assert [d.render() for d in caught.value.diagnostics] == [shown]


def test_limits_are_those_of_the_code() -> None:
    said = f"at most {MAX_LENGTH:,} characters", f"1 to {MOST_TUPLES:,} tuples", f"up to {MAX_ERRORS}", f"more than {MAX_NESTING} operators"
    assert [part for part in said if part not in PAGE] == []


@pytest.mark.parametrize(("media", "arrow", "end"), [("text/x-lars", "<-", "."), ("text/x-datalogmtl", ":-", "")])
def test_a_body_has_a_bound(media: str, arrow: str, end: str) -> None:
    def body(count: int) -> str:
        return f"p(X) {arrow} {', '.join(['q(X)'] * count)}{end}"

    assert len(parse_rules(body(MAX_ATOMS), media, "p").rules[0].body) == MAX_ATOMS
    with pytest.raises(DiagnosticError) as refused:
        parse_rules(body(100 * MAX_ATOMS), media, "p")
    assert [(found.code, found.span.start) for found in refused.value.diagnostics if found.span] == [
        ("rule-too-long", len(body(MAX_ATOMS)) - len(end) + 2)]
