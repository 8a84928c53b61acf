"""DESCRIBE as a plan: the concise bounded description of each resource (W3C member submission "CBD", 2005)."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from engine.ir import expressions as ex
from engine.ir.terms import RDF, Constant, Term, Variable
from engine.plan import nodes
from engine.plan.nodes import Plan, Source
from engine.plan.variables import plan_variables

TRIPLE = (Variable(".s"), Variable(".p"), Variable(".o"))


def description(terms: tuple[Term, ...], solutions: Plan, source: Source, fresh: Callable[[str], Variable]) -> Plan:
    """The triples (`TRIPLE`) about the resources that `terms` name: theirs, and those of what a description goes on to."""
    subject = TRIPLE[0]
    bound = [t for t in terms if isinstance(t, Variable) and t in plan_variables(solutions)]
    named = [nodes.Values((subject,), tuple((t,) for t in terms if isinstance(t, Constant)))]
    asked: Plan = reduce(nodes.Union, [*named, *(_renamed(solutions, v, subject) for v in bound)])
    near, far = fresh("described"), fresh("described")
    step = _onward(source, near, far, fresh)
    reached = nodes.Reach(step, (near, far), subject, fresh("described"), None, asked)
    further = _renamed(reached, reached.last, subject)
    resources = nodes.Distinct(nodes.Union(nodes.Project(asked, (subject,)), further))
    return nodes.Project(nodes.Join(resources, nodes.Scan(source, *TRIPLE)), TRIPLE)


def _renamed(plan: Plan, variable: Variable, to: Variable) -> Plan:
    known = nodes.Filter(nodes.Project(plan, (variable,)), ex.Call("BOUND", (variable,)))
    return nodes.Project(nodes.Extend(known, to, variable), (to,)) if variable != to else known


def _onward(source: Source, near: Variable, far: Variable, fresh: Callable[[str], Variable]) -> Plan:
    """What the description of a resource goes on to: its blank objects, and the reifications of its triples."""
    predicate, object_ = fresh("described"), fresh("described")
    blank = nodes.Filter(nodes.Scan(source, near, predicate, far), ex.Call("ISBLANK", (far,)))
    reified: Plan = nodes.Scan(source, near, predicate, object_)
    for place, term in (("subject", near), ("predicate", predicate), ("object", object_)):
        reified = nodes.Join(reified, nodes.Scan(source, far, Constant(f"<{RDF}{place}>"), term))
    return nodes.Union(nodes.Project(blank, (near, far)), nodes.Project(reified, (near, far)))
