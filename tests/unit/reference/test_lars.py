"""LARS programs: the published laserpp cases at each time point, and what they leave open."""

from __future__ import annotations

import json
import re

import pytest

from engine.functions.terms import integer, string
from engine.ir.rules import At, Atom, BoxMinus, DiamondMinus, Fact, Formula, Negation, Rule, RuleSet, WindowFormula, atoms
from engine.ir.terms import Constant, Term, Variable
from engine.reference.temporal import evaluate
from engine.timeline import ALWAYS, MAX, Interval, granule, operator
from tests.shared import DATA, shared

SECOND = 1000
CASES = json.loads((DATA / "laserpp-lars" / "cases.json").read_text()) if (DATA / "laserpp-lars").is_dir() else []

_ATOM = re.compile(r"(\w+)\(([^()]*)\)")


def term(text: str) -> Term:
    text = text.strip()
    if re.fullmatch(r"[A-Z]\w*", text):
        return Variable(text)
    return Constant(integer(int(text)) if text.isdigit() else string(text))


def atom(text: str, fact: bool = False) -> Atom:
    found = _ATOM.fullmatch(text.strip())
    assert found is not None, text
    terms = [term(t) for t in found[2].split(",") if t.strip()]
    return Atom(found[1], tuple(Constant(string(t.name)) if fact and isinstance(t, Variable) else t for t in terms))


def formula(text: str) -> Formula:
    """``[$, 3] [D] a(X)``: a window, then an operator, then an atom."""
    text = text.strip()
    if text.startswith("not "):
        return Negation(formula(text[4:]))
    window = re.match(r"\[\$,\s*(\d+)\]\s*", text)
    size = int(window[1]) if window else None
    rest = text[window.end():] if window else text
    distance = Interval(0, MAX) if size is None else operator(0, size * SECOND)
    if rest.startswith("[D]"):
        return DiamondMinus(distance, atom(rest[3:]))
    if rest.startswith("[B]"):
        return BoxMinus(distance, atom(rest[3:]))
    at = re.match(r"\[@,\s*(\w+)\]\s*", rest)
    inner: Formula = At(term(at[1]), atom(rest[at.end():])) if at else atom(rest)
    return inner if size is None else WindowFormula("time", size, inner)


def rules(text: str) -> tuple[Rule, ...]:
    found = []
    for line in text.strip().splitlines():
        head, body = line.split(":=")
        parsed = formula(head)
        assert isinstance(parsed, Atom | At)
        found.append(Rule(parsed, tuple(formula(part) for part in body.split("&&"))))
    return tuple(found)


def stream(text: str) -> list[Fact]:
    """``1 14 1 : a(x), b(y)``: the first line tells begin and end of the timeline before its own items."""
    facts = []
    for line in text.strip().splitlines():
        when, _, items = line.partition(":")
        if when.strip():
            facts += [Fact(atom(found[0], fact=True), granule(int(when.split()[-1]), SECOND)) for found in _ATOM.finditer(items)]
    return facts


def shown(text: str) -> set[tuple[str, tuple[str, ...]]]:
    found = (atom(match[0], fact=True) for match in _ATOM.finditer(text.partition("->")[2]))
    return {(a.predicate, tuple(t.token for t in a.terms if isinstance(t, Constant))) for a in found}


def test_the_published_cases_are_there() -> None:
    assert len(json.loads(shared("laserpp-lars", "cases.json").read_text())) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_laserpp(case: dict[str, str | dict[str, str]]) -> None:
    assert isinstance(case["expected"], dict) and isinstance(case["rules"], str) and isinstance(case["stream"], str)
    begin = int(case["stream"].split()[0])
    program = RuleSet("laser", rules(case["rules"]), granularity_ms=SECOND, start_at_ms=begin * SECOND)
    heads = {found.predicate for rule in program.rules for found in atoms(rule.head)}
    for time, line in case["expected"].items():
        model = evaluate(program, stream(case["stream"]), int(time) * SECOND)
        assert {a for a in model.at(2 * int(time) * SECOND) if a[0] in heads} == shown(line), f"at {time}"


def model(text: str, *facts: Fact, until: int = 10, start: int = 0) -> dict[str, list[int]]:
    """The granules at which each atom holds, as ``a(1)`` -> [1, 2]."""
    program = RuleSet("test", rules(text), granularity_ms=SECOND, start_at_ms=start * SECOND)
    found = evaluate(program, facts, until * SECOND)
    return {f"{predicate}({','.join(t.split('^')[0].strip(chr(34)) for t in terms)})":
            [k for k in range(until + 1) if any(2 * k * SECOND in i for i in intervals)]
            for (predicate, terms), intervals in found.facts.items()}


def event(text: str, *points: int) -> list[Fact]:
    return [Fact(atom(text, fact=True), granule(k, SECOND)) for k in points]


def test_at_in_a_window_binds_every_point_of_it() -> None:
    found = model("q(T) := [$, 2] [@, T] p(x)", *event("p(x)", 1, 4))
    assert found["q(1)"] == [1, 2, 3]
    assert found["q(4)"] == [4, 5, 6]


def test_a_head_of_the_past_is_known_from_its_derivation_on() -> None:
    """At 4 s the window finds p at 2 s and marks it; a look back from 3 s has not seen the mark, one from 4 s has."""
    found = model("[@, T] q(x) := [$, 3] [@, T] p(x) && r(x)\ns(x) := [$, 5] [D] q(x)", *event("p(x)", 2), *event("r(x)", 4))
    assert found["q(x)"] == [2]
    assert found["s(x)"] == [4, 5, 6, 7]


def test_heads_of_the_future_hold_when_their_time_comes() -> None:
    found = model("[@, 6] q(x) := p(x)\ns(x) := q(x)", *event("p(x)", 2), until=7)
    assert found["q(x)"] == [6] and found["s(x)"] == [6]


def test_box_takes_points_before_the_start_to_be_like_the_first() -> None:
    """A window of 3 points back from 1 s and 2 s reaches below the start at 1 s."""
    assert model("q(x) := [$, 3] [B] p(x)", *event("p(x)", 1, 2, 3, 4, 6), start=1)["q(x)"] == [1, 2, 3, 4]
    assert model("q(x) := [$, 1] [B] p(x)", *event("p(x)", 2, 3), start=1)["q(x)"] == [3]


def test_tuple_windows_hold_the_last_atoms_in_the_order_of_time_and_token() -> None:
    window = WindowFormula("tuple", 2, DiamondMinus(Interval(0, MAX), atom("p(X)")))
    program = RuleSet("test", (Rule(atom("q(X)"), (window,)),), granularity_ms=SECOND)
    facts = [*event("p(a)", 1), *event("p(c)", 2), *event("p(b)", 2), *event("p(d)", 4)]
    found = evaluate(program, facts, 4 * SECOND)
    at = {k: sorted(terms[0].strip('"') for name, terms in found.at(2 * k * SECOND) if name == "q") for k in range(1, 5)}
    assert at == {1: ["a"], 2: ["b", "c"], 3: ["b", "c"], 4: ["c", "d"]}


def test_negation_is_of_the_moment() -> None:
    found = model("q(X) := p(X) && not [$, 2] [D] r(X)", *event("p(x)", 1, 2, 3, 4, 5, 6), *event("r(x)", 2))
    assert found["q(x)"] == [1, 5, 6]


def test_static_facts_hold_at_every_point() -> None:
    facts = [Fact(atom("r(x)", fact=True), ALWAYS), *event("p(x)", 3)]
    assert model("q(X) := p(X) && r(X)", *facts)["q(x)"] == [3]
