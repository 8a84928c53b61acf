"""Queries over closures as rules: an answer is a fact like any other, derived by one more rule, and knows until when it holds.

What follows from rules without negation is monotone, and so is a basic graph pattern with filters over it; so the closure of the windows
has intervals (engine/execution/kept.py says whose idea that is), and so have the solutions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.ir.expressions import Call, Expression
from engine.ir.rules import TRIPLE, Atom, Rule, Test
from engine.ir.statement import Construct, Select, Statement
from engine.ir.terms import Constant, Variable
from engine.plan.derive import row_of
from engine.plan.entail import named
from engine.plan.kept import conjunction
from engine.plan.nodes import AtomsSource, ClosedSource, MergedSource, Plan, Project, Scan, Source

GOAL = "solution"


def goal_plan(statement: Statement, plan: Plan, default: Source, windows: str) -> Scan | None:
    """The solutions of a plan over a statement's default graph as atoms that its closure derives; None where they cannot be had so.

    `windows` tells the windows of the statement from those of others.
    """
    if not isinstance(statement.query, (Select, Construct)) or _fresh_blanks(statement.query):
        return None
    closed, parts = _streamed(default), conjunction(plan.input if isinstance(plan, Project) else plan)
    if closed is None or parts is None:
        return None
    scans, filters = parts
    if any(scan.source != default or not _plain(scan) for scan in scans):
        return None
    goal = _goal(scans, filters)
    assert isinstance(default, MergedSource) and isinstance(goal.head, Atom)
    background, shows = closed.background, len(default.parts) > 1
    if background is not None and shows:    # an answer may need nothing else
        background = named(replace(background, rules=(*background.rules, goal)), windows)
    own = named(replace(closed, background=background, rules=(*closed.rules, goal)), windows)
    subject, mark, object_, *rest = row_of(goal.head)
    return Scan(AtomsSource((own, background) if background is not None and shows else (own,)), subject, mark, object_, rest=tuple(rest))


def _streamed(default: Source) -> ClosedSource | None:
    """The closure of the windows, where the default graph is that and at most what it stands on, and it has intervals."""
    closed = default.parts[0] if isinstance(default, MergedSource) and default.parts else None
    if not isinstance(default, MergedSource) or not isinstance(closed, ClosedSource) or not closed.has_intervals:
        return None
    return closed if all(part == closed.background for part in default.parts[1:]) else None


def _plain(scan: Scan) -> bool:
    return scan.graph is None and all(isinstance(term, (Constant, Variable)) for term in scan.terms)


def _goal(scans: Sequence[Scan], filters: Sequence[Expression]) -> Rule:
    """Subjects of generalised RDF, which only rules see, are left out."""
    atoms = [Atom(TRIPLE, tuple(t for t in scan.terms if isinstance(t, (Constant, Variable)))) for scan in scans]
    variables = tuple(dict.fromkeys(t for atom in atoms for t in atom.terms if isinstance(t, Variable)))
    subjects = dict.fromkeys(atom.terms[0] for atom in atoms if isinstance(atom.terms[0], Variable))
    proper = [Test(Call("!", (Call("ISLITERAL", (subject,)),))) for subject in subjects]
    return Rule(Atom(GOAL, variables), (*atoms, *proper, *map(Test, filters)), GOAL, role="goal")


def _fresh_blanks(query: Select | Construct) -> bool:
    """Whether each solution makes blank nodes of its own."""
    return isinstance(query, Construct) and any(v.name.startswith("_:") for t in query.template for v in t.terms if isinstance(v, Variable))
