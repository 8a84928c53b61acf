"""Rule programs -> plans: one lasting closure over the streams that a program imports, beside the closure of its graphs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.ir.rules import Rule, RuleSet
from engine.ir.statement import Program, Statement
from engine.plan.nodes import ClosedSource, Instances, MergedSource, StaticSource, WindowSource
from engine.records import Triple
from engine.rewrite.profiles import RULES_OF
from engine.rewrite.programs import Programs


def program_plan(statement: Statement, graphs: Mapping[str, Sequence[Triple]], general: bool) -> Instances:
    """The plan of a program over its static `graphs` (IRI -> triples), under its own rules and those of its profile; with `general` these
    meet the schema in the data."""
    program = statement.query
    assert isinstance(program, Program)
    own = tuple(replace(rule, name=rule.name or f"rule {number}") for number, rule in enumerate(program.rules.rules, 1))
    behind = RULES_OF[program.profile].rules if program.profile else ()
    both = RuleSet("program", (*own, *behind), program.rules.facts)
    rules: tuple[Rule, ...] = Programs(both, graphs, general or not behind)(graphs)
    windows = MergedSource(tuple(map(WindowSource, range(len(statement.streams)))))
    static = MergedSource(tuple(map(StaticSource, sorted(graphs))))
    background = ClosedSource(_name(static, rules), static, static=True, rules=rules)
    shown = frozenset(str(rule.name) for rule in own) - {rule.name for rule in behind}
    name = _name(windows, background, rules, statement.streams, sorted(shown))
    return Instances(ClosedSource(name, windows, background, lasting=True, rules=rules, shown=shown), program.variables)


def _name(*parts: object) -> str:
    return "c_" + hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
