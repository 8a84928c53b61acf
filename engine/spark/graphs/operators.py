"""The graph operators: each finds its way by the number of edges, or goes the way that it is told to."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from engine.plan.graphs import Chosen, Problem, Way, choose
from engine.spark.graphs import rounds, task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from engine.spark.graphs.rounds import Within
    from engine.spark.session import Session


class Solver(Protocol):
    """What each way offers."""

    def components(self, edges: DataFrame, within: Within) -> DataFrame: ...

    def strong_components(self, edges: DataFrame, within: Within) -> DataFrame: ...

    def reach(self, edges: DataFrame, base: DataFrame | None, within: Within) -> DataFrame: ...


class Graphs:
    """Graph operators on a session. `force` takes the choice away, for tests and benchmarks. Every answer comes with how it was found.
    Without GraphFrames their twin in SQL does what they would."""

    def __init__(self, session: Session, force: Way | None = None) -> None:
        self._session = session
        self._force = force
        self._told = False

    def components(self, edges: DataFrame, within: Within = ()) -> tuple[DataFrame, Chosen]:
        """The weakly connected components of edges ``x y``: rows ``node component``, named by the least node."""
        edges, chosen = self._choose("components", edges)
        return _solver(chosen.way).components(edges, within), chosen

    def strong_components(self, edges: DataFrame, within: Within = ()) -> tuple[DataFrame, Chosen]:
        """The strongly connected components of edges ``x y``: rows ``node component``, named by the least node."""
        edges, chosen = self._choose("strong components", edges)
        return _solver(chosen.way).strong_components(edges, within), chosen

    def reach(self, edges: DataFrame, base: DataFrame | None = None, within: Within = ()) -> tuple[DataFrame, Chosen]:
        """The pairs ``x y`` that begin as in `base` (None: with any edge) and go on along edges, each once. Where edges have an end ``hi``
        (a point), pairs have the latest end among their paths; a path ends with its first edge to end."""
        edges, chosen = self._choose("reachability", edges)
        return _solver(chosen.way).reach(edges, base, within), chosen

    def chains(self, edges: DataFrame, length: int, within: Within = ()) -> tuple[DataFrame, Chosen]:
        """The paths of `length` edges ``x p y``: rows ``x0 p1 x1 p2 x2 ...``; without force a plan that has not run yet."""
        if self._force != "graphframes":
            return rounds.chains(edges, within, length), Chosen("chains", None, "sql")
        edges, chosen = self._choose("chains", edges)
        if chosen.way != "graphframes":
            return rounds.chains(edges, within, length), chosen
        from engine.spark.graphs import frames
        return frames.chains(edges, within, length), chosen

    def _choose(self, problem: Problem, edges: DataFrame) -> tuple[DataFrame, Chosen]:
        edges = edges.localCheckpoint(eager=False)
        count, loaded = edges.count(), self._session.graphframes
        way = self._force or choose(problem, count)
        if way == "graphframes" and not loaded:
            self._tell(problem)
            way = "sql"
        return edges, Chosen(problem, count, way)

    def _tell(self, problem: Problem) -> None:
        if not self._told:
            logging.getLogger(__name__).warning("%s by the twin in Spark SQL: GraphFrames not loaded (%s)", problem,
                                                self._session.graphframes_reason)
            self._told = True


def _solver(way: Way) -> Solver:
    if way == "graphframes":
        from engine.spark.graphs import frames
        return frames
    return task if way == "task" else rounds
