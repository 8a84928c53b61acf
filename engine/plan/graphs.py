"""How a graph problem is solved: in one task, by Spark SQL in rounds, or by GraphFrames; by the number of edges, as measured.

docs/decisions.md, "Graph operators", has the figures behind LIMITS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
