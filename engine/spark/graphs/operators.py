"""The closure: it finds its way by the number of edges, or goes the way that it is told to."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from engine.plan.graphs import Chosen, Way, choose
from engine.spark.graphs import rounds, task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from engine.spark.graphs.rounds import Within
    from engine.spark.session import Session


class Solver(Protocol):
    """What each way offers."""

    def reach(self, edges: DataFrame, base: DataFrame | None, within: Within) -> DataFrame: ...


class Graphs:
    """Closures on a session. `force` takes the choice away, for tests and benchmarks. Every answer comes with how it was found.
    Without GraphFrames their twin in SQL does what they would."""

    def __init__(self, session: Session, force: Way | None = None) -> None:
        self._session = session
        self._force = force
        self._told = False

    def reach(self, edges: DataFrame, base: DataFrame | None = None, within: Within = ()) -> tuple[DataFrame, Chosen]:
        """The pairs ``x y`` that begin as in `base` (None: with any edge) and go on along edges, each once."""
        edges, chosen = self._choose(edges)
        return _solver(chosen.way).reach(edges, base, within), chosen

    def _choose(self, edges: DataFrame) -> tuple[DataFrame, Chosen]:
        edges = edges.localCheckpoint(eager=False)
        count, loaded = edges.count(), self._session.graphframes
        way = self._force or choose(count)
        if way == "graphframes" and not loaded:
            self._tell()
            way = "sql"
        return edges, Chosen("reachability", count, way)

    def _tell(self) -> None:
        if not self._told:
            logging.getLogger(__name__).warning("reachability by the twin in Spark SQL: GraphFrames not loaded (%s)",
                                                self._session.graphframes_reason)
            self._told = True


def _solver(way: Way) -> Solver:
    if way == "graphframes":
        from engine.spark.graphs import frames
        return frames
    return task if way == "task" else rounds
