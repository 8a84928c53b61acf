"""Graph problems in plans: chains of patterns with free predicates, and how a problem is solved by the number of edges, as measured.

docs/decisions.md, "Graph operators", has the figures behind LIMITS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.plan import nodes
from engine.plan.nodes import Plan

Problem = Literal["components", "strong components", "reachability", "chains"]
Way = Literal["task", "sql", "graphframes"]
WAYS: tuple[Way, ...] = ("task", "sql", "graphframes")
WORDS: dict[Way, str] = {"task": "in one task", "sql": "in rounds of Spark SQL", "graphframes": "by GraphFrames"}

# Up to so many edges one task is quickest (more were not measured); above, where its memory may not hold them, the second way is taken.
LIMITS: dict[Problem, tuple[int, Way]] = {
    "components": (1_000_000, "graphframes"),
    "strong components": (1_000_000, "graphframes"),
    "reachability": (1_000_000, "sql"),
    "chains": (0, "sql"),   # a join of Spark SQL at any size: GraphFrames' motif finding is one as well
}


@dataclass(frozen=True, slots=True)
class Chosen:
    """How a problem was solved, and for how many edges (None: they were not counted)."""

    problem: Problem
    edges: int | None
    way: Way


def choose(problem: Problem, edges: float, loaded: bool = True) -> Way:
    """The way for a graph of so many edges; without GraphFrames `loaded` their twin in SQL."""
    most, above = LIMITS[problem]
    if edges <= most:
        return "task"
    return above if loaded or above != "graphframes" else "sql"


def growing(problem: Problem) -> str:
    """The ways of a problem as the graph grows, in words."""
    most, above = LIMITS[problem]
    return f"{WORDS['task']} up to {most} edges, {WORDS[above]} above"


def with_chains(plan: Plan) -> Plan:
    """The plan with joins of scans that make a chain as Chain nodes; what several nodes share they share still."""
    done: dict[int, Plan] = {}

    def again(plan: Plan) -> Plan:
        if id(plan) not in done:
            made = nodes.with_below(plan, again)
            done[id(plan)] = _linked(made) if isinstance(made, nodes.Join) else made
        return done[id(plan)]

    return again(plan)


def _linked(join: nodes.Join) -> Plan:
    """Two chains of scans as one, where one ends in the node that the other begins with, and they share nothing else."""
    one, other = _chain(join.left), _chain(join.right)
    for first, second in ((one, other), (other, one)):
        if first and second and first[-1].object == second[0].subject and first[0].source == second[0].source:
            if len(nodes.scan_variables(*first, *second)) == 2 * (len(first) + len(second)) + 1:
                return nodes.Chain((*first, *second))
    return join


def _chain(plan: Plan) -> tuple[nodes.Scan, ...]:
    match plan:
        case nodes.Chain(scans=scans):
            return scans
        case nodes.Scan(graph=None, rest=()) if len(nodes.scan_variables(plan)) == 3:
            return (plan,)
    return ()
