"""A rule program as a plan: one lasting closure over the streams that it imports, beside the closure of its graphs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from engine.ir.rules import Rule
from engine.ir.statement import Program, Statement
from engine.plan.nodes import ClosedSource, Instances, MergedSource, StaticSource, WindowSource


def program_plan(statement: Statement, rules: Sequence[Rule]) -> Instances:
    """The plan of a program under `rules`, of which those that are written are its own."""
    program = statement.query
    assert isinstance(program, Program)
    windows = MergedSource(tuple(map(WindowSource, range(len(statement.streams)))))
    static = MergedSource(tuple(StaticSource(graph.iri) for graph in statement.graphs))
    background = ClosedSource(_name(static, rules), static, static=True, rules=tuple(rules))
    name = _name(windows, background, rules, statement.streams)
    return Instances(ClosedSource(name, windows, background, lasting=True, rules=tuple(rules), shown="written"), program.variables)


def _name(*parts: object) -> str:
    return "c_" + hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
