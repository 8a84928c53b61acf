"""What the passes make of the rules of a query, as EXPLAIN shows it: the rules before and after each, with counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.ir.notation import show_rule
from engine.ir.printer import show_group
from engine.ir.rules import Rule

MOST_ROWS = 5


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass by its name, and the rules that it left; `note` says what else it did."""

    name: str
    rules: tuple[Rule, ...]
    note: str = ""


def show_passes(passes: Sequence[Pass]) -> str:
    """One heading for each pass with its rules below, where they are others than before; comments of SPARQL, so that a query may follow.
    ``# partial: 13 rules -> 1 rule``"""
    lines: list[str] = []
    before: tuple[Rule, ...] | None = None
    for step in passes:
        counted = _count(step.rules) if before is None else f"{_count(before)} -> {_count(step.rules)}"
        lines.append(f"# {step.name}: {counted}{f', {step.note}' if step.note else ''}")
        if step.rules != before:
            rules, facts = _apart(step.rules)
            lines += [f"#   {show_rule(rule, show_group, MOST_ROWS)}" for rule in (*rules, *facts[:MOST_ROWS])]
            lines += [f"#   ... {len(facts)} facts in all"] if len(facts) > MOST_ROWS else []
        before = step.rules
    return "\n".join(lines) + "\n" if lines else ""


def _apart(rules: Sequence[Rule]) -> tuple[list[Rule], list[Rule]]:
    """The rules, and those without a body: facts."""
    return [rule for rule in rules if rule.body], [rule for rule in rules if not rule.body]


def _count(rules: Sequence[Rule]) -> str:
    counted = [(len(found), word) for found, word in zip(_apart(rules), ("rule", "fact"))]
    return " and ".join(f"{number} {word}{'' if number == 1 else 's'}" for number, word in counted if number or word == "rule")
