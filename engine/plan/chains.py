"""Path-shaped patterns with free predicates (``?a ?p ?b . ?b ?q ?c``) as one node: what motif finding can answer."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, get_args

from engine.ir.terms import Variable
from engine.plan import nodes
from engine.plan.nodes import Plan


def with_chains(plan: Plan) -> Plan:
    """The plan with joins of scans that make a chain as Chain nodes; what several nodes share they share still."""
    done: dict[int, Plan] = {}

    def again(plan: Plan) -> Plan:
        if id(plan) not in done:
            below = {field.name: value for field in fields(plan) if isinstance(value := getattr(plan, field.name), get_args(Plan))}
            found: dict[str, Any] = {name: again(value) for name, value in below.items()}
            changed = any(found[name] is not below[name] for name in below)
            made = replace(plan, **found) if changed else plan
            done[id(plan)] = _linked(made) if isinstance(made, nodes.Join) else made
        return done[id(plan)]

    return again(plan)


def _linked(join: nodes.Join) -> Plan:
    """Two chains of scans as one, where one ends in the node that the other begins with, and they share nothing else."""
    one, other = _chain(join.left), _chain(join.right)
    for first, second in ((one, other), (other, one)):
        if first and second and first[-1].object == second[0].subject and first[0].source == second[0].source:
            if len(_variables(first) | _variables(second)) == 2 * (len(first) + len(second)) + 1:
                return nodes.Chain((*first, *second))
    return join


def _chain(plan: Plan) -> tuple[nodes.Scan, ...]:
    match plan:
        case nodes.Chain(scans=scans):
            return scans
        case nodes.Scan(graph=None, rest=()) if len(_variables((plan,))) == 3:
            return (plan,)
    return ()


def _variables(scans: tuple[nodes.Scan, ...]) -> set[Variable]:
    return {term for scan in scans for term in scan.terms if isinstance(term, Variable)}
