"""Where the plans of a replay are evaluated: in this process, or on a Spark that is started for it; and why."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from engine.execution.executor import Executor
from engine.execution.own_process import own_process
from engine.records import Triple
from engine.runtime.resources import Recording
from engine.spark.settings import VARIABLES, SparkSettings, from_environment

PlaceName = Literal["process", "spark"]

PROCESS_TRIPLES = 10_000_000
"""Up to so many triples it is this process. It was quicker wherever both were measured (docs/decisions.md, "Small work")."""


@dataclass(frozen=True, slots=True)
class Place:
    """`spark` is what the Spark is started with, None for this process; `why` says so in words."""

    spark: SparkSettings | None
    why: str

    @property
    def name(self) -> PlaceName:
        return "process" if self.spark is None else "spark"

    def __str__(self) -> str:
        return f"{'this process' if self.spark is None else f'Spark on {self.spark.master}'} ({self.why})"


def choose(triples: int, master: str | None = None, environment: Mapping[str, str] | None = None) -> Place:
    """The place for so many triples of streams and static graphs. Who names a `master`, or the environment does, gets Spark."""
    known = os.environ if environment is None else environment
    settings = from_environment(known, master=master)
    if master is not None:
        return Place(settings, "--master is given")
    if VARIABLES["master"] in known:
        return Place(settings, f"{VARIABLES['master']} is set")
    if triples > PROCESS_TRIPLES:
        return Place(settings, f"{triples} triples are more than {PROCESS_TRIPLES}")
    return Place(None, f"{triples} triples; Spark is started for more than {PROCESS_TRIPLES}, or with --master")


def triples_of(streams: Mapping[str, Recording], graphs: Mapping[str, Sequence[Triple]]) -> int:
    recorded = (part for recording in streams.values() for part in recording)
    return sum(part.num_rows if isinstance(part, pa.Table) else len(part.triples) for part in recorded) + sum(map(len, graphs.values()))


@contextmanager
def executor_at(place: Place) -> Iterator[Executor]:
    """An executor there, which ends with the block; Spark is imported only where it is used."""
    if place.spark is None:
        with own_process() as tasks:
            yield Executor(tasks)
        return
    from engine.spark.executor import Executor as SparkExecutor
    from engine.spark.session import start_session
    session = start_session(place.spark)
    try:
        yield SparkExecutor(session)
    finally:
        session.stop()
