"""A rule program as a plan: the facts that begin in a closure of the streams that it imports, beside the closure of its graphs."""

from __future__ import annotations

from collections.abc import Sequence

from engine.ir.rules import Rule
from engine.ir.statement import Program, Statement
from engine.plan.entail import closure
from engine.plan.nodes import Begun, StaticSource, WindowSource


def program_plan(statement: Statement, rules: Sequence[Rule], windows: str) -> Begun:
    """The plan of a program under `rules`, of which those that are written are its own; `windows` is as for `closure`."""
    program = statement.query
    assert isinstance(program, Program)
    static = closure([StaticSource(graph.iri) for graph in statement.graphs], None, tuple(rules), statement.streams, windows)
    streamed = closure(list(map(WindowSource, range(len(statement.streams)))), static, tuple(rules), statement.streams, windows)
    assert streamed.has_intervals
    return Begun(streamed, "written", program.variables)
