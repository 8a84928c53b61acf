"""Closures of paths as graph problems in plans: how one is solved by the number of edges, as measured.

docs/decisions.md, "Graph operators", has the figures behind MOST_IN_A_TASK.
"""

from dataclasses import dataclass
from typing import Literal, get_args

Way = Literal["task", "sql", "graphframes"]
WAYS: tuple[Way, ...] = get_args(Way)
AUTO = "auto"
"""Said in place of a way: `choose` decides."""
WORDS: dict[Way, str] = {"task": "in one task", "sql": "in rounds of Spark SQL", "graphframes": "by GraphFrames"}

# Up to so many edges one task is quickest (more were not measured); above, its memory may not hold them.
MOST_IN_A_TASK = 1_000_000


@dataclass(frozen=True, slots=True)
class Chosen:
    """How a problem was solved, and for how many edges."""

    problem: Literal["reachability"]
    edges: int
    way: Way


def way_of(said: str) -> Way | None:
    """The way that an option says; None for `AUTO`."""
    return next((way for way in WAYS if way == said), None)


def choose(edges: float) -> Way:
    """The way for a graph of so many edges."""
    return "task" if edges <= MOST_IN_A_TASK else "sql"


def growing() -> str:
    """The ways as the graph grows, in words."""
    return f"{WORDS['task']} up to {MOST_IN_A_TASK} edges, {WORDS['sql']} above"
