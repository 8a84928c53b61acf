"""The programs of Laser's successor (laser-plus-plus): a stream each, and all that a program has derived at each time point.

Their texts are rewritten as ours: ``q(X) := [$, 3] [D] a(X) && b(X)``, one rule a line, is ``q(X) <- [3] diamond a(X), b(X).``; the
constants of a stream are written in quotes, or as numbers. A second is a granule; the time line begins where the stream says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.ir.rules import Fact, RuleSet, atoms
from engine.ir.spans import DiagnosticError
from engine.reference.formulas import Ground, ground
from grammar.lars.parse import parse_lars
from tests.conformance.executors import Answer
from tests.conformance.outcomes import Outcome, Verdict, refusal

SECOND = 1000
UNABLE = "this executor does not evaluate rule programs with a time of their own"
_OPERATORS = {r"\[\$,\s*(\d+)\]": r"[\1] ", r"\[D\]": "diamond ", r"\[B\]": "box ", r"\[@,\s*(\w+)\]": r"@\1 ", ":=": "<-", "&&": ","}
_ATOM = re.compile(r"\w+\([^()]*\)")


@dataclass(frozen=True, slots=True)
class Case:
    """A program, what its stream brings, and by time point in seconds what it has derived."""

    name: str
    program: RuleSet
    events: tuple[Fact, ...]
    expected: Mapping[int, frozenset[Ground]]


def run(folder: Path, answer: Answer, only: str = "") -> Iterator[Outcome]:
    """One outcome per program: whole facts are compared, at every time point."""
    for record in json.loads((folder / "cases.json").read_text("utf-8")):
        name = f"{record['suite']}.{record['name']}"
        if only not in name:
            continue
        if answer.model is None:
            yield Outcome(name, Verdict.SKIPPED, UNABLE)
            continue
        try:
            case = read(name, record)
        except DiagnosticError as error:
            yield Outcome(name, Verdict.FAILED, refusal(error))
            continue
        wrong = next(_differences(case, answer), None)
        yield Outcome(name, Verdict.FAILED if wrong else Verdict.PASSED, wrong or "")


def _differences(case: Case, answer: Answer) -> Iterator[str]:
    assert answer.model is not None
    derived = {atom.predicate for rule in case.program.rules for atom in atoms(rule.head)}
    last = answer.model(case.program, case.events, max(case.expected) * SECOND) if answer.at_once else None
    for second, expected in case.expected.items():
        model = last or answer.model(case.program, case.events, second * SECOND)
        found = frozenset(atom for atom in model.at(2 * second * SECOND) if atom[0] in derived)
        if found != expected:
            yield f"at {second}: missing {sorted(expected - found)}, too many {sorted(found - expected)}"


def read(name: str, record: Mapping[str, Any]) -> Case:
    """A record of ``cases.json``. Raises DiagnosticError."""
    begin = int(record["stream"].split()[0])
    program = parse_lars(f"START AT {begin}\n" + as_lars(record["rules"]), name)
    expected = {int(time): _atoms(line.partition("->")[2]) for time, line in record["expected"].items()}
    return Case(name, program, parse_lars(stream_as_facts(record["stream"]), name).facts, expected)


def as_lars(rules: str) -> str:
    """Their rules in our notation."""
    for pattern, ours in _OPERATORS.items():
        rules = re.sub(pattern, ours, rules)
    return "\n".join(f"{line}." for line in rules.strip().splitlines())


def stream_as_facts(stream: str) -> str:
    """``1 14 1 : a(x), b(y)``, where begin and end of the time line stand before the first time point, as ``@1 a("x"). @1 b("y").``"""
    facts = []
    for line in stream.strip().splitlines():
        times, _, items = line.partition(":")
        facts += [f"@{times.split()[-1]} {_quoted(atom)}." for atom in _ATOM.findall(items)]
    return "\n".join(facts)


def _atoms(text: str) -> frozenset[Ground]:
    facts = [f"{_quoted(atom)}." for atom in _ATOM.findall(text)]
    return frozenset(ground(fact.atom, {}) for fact in parse_lars("\n".join(facts), "expected").facts) if facts else frozenset()


def _quoted(atom: str) -> str:
    """With all that is no number in quotes: what stands in a stream is no variable, whatever its case."""
    predicate, _, inner = atom.rstrip(")").partition("(")
    terms = [term.strip() for term in inner.split(",")]
    return f"{predicate}({', '.join(term if re.fullmatch(r'-?[0-9.]+', term) else json.dumps(term) for term in terms)})"
