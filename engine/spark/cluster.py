"""What is found out about a cluster before it is used: how many cores it has, and whether its executors see what the driver writes."""

import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from engine.spark.launch import SparkStartError
from engine.spark.settings import SparkSettings, parallelism

START_S = 120.0     # until executors have come
_STEADY_S = 2.0     # as many of them for so long: no more are awaited
_LOOK_S = 0.2
_SPREAD_S = 0.5     # how long a task of the look keeps its core, so that each core has one


def joined(spark: SparkSession, settings: SparkSettings, work: Path, say: Callable[[str], None]) -> tuple[SparkSettings, int]:
    """The settings with the slots that are there, and the cores of an executor. Raises SparkStartError where there are too few, or where an
    executor does not see `work`."""
    executors, cores = _awaited(spark, say)
    if cores < 2:
        raise SparkStartError(f"the cluster {settings.master} gave {cores} cores within {START_S:g} s; two are needed: one is taken by the "
                              "task whose worker has the tables that stay")
    say(f"{executors} executor(s) with {cores} cores")
    _check_seen(spark, work, cores)
    settings = replace(settings, slots=cores)
    for name, value in parallelism(settings).items():
        spark.conf.set(name, value)
    return settings, max(1, cores // executors)


def _awaited(spark: SparkSession, say: Callable[[str], None]) -> tuple[int, int]:
    """How many executors there are, and their cores, once no more come."""
    store = spark.sparkContext._jsc.sc().statusStore()
    say("waiting for the executors of the cluster")
    began = since = time.monotonic()
    found = (0, 0)
    while time.monotonic() - began < START_S and (not found[0] or time.monotonic() - since < _STEADY_S):
        time.sleep(_LOOK_S)
        there = store.executorList(True)
        known = [each for each in map(there.apply, range(there.size())) if each.id() != "driver"]
        now = len(known), sum(each.totalCores() for each in known)
        if now != found:
            found, since = now, time.monotonic()
    return found


def _check_seen(spark: SparkSession, work: Path, cores: int) -> None:
    """Whether all executors read what is written here."""
    seen = work / "seen-by-executors"
    seen.write_text(token := secrets.token_hex(8), encoding="utf-8")
    try:
        look = partial(_look, str(seen), token)
        blind = spark.sparkContext.parallelize(range(cores), cores).mapPartitions(look).collect()
    finally:
        seen.unlink()
    if blind:
        raise SparkStartError(f"executors on {', '.join(sorted(set(blind)))} do not see {work}: on a cluster the data folder, or the one "
                              "that THALWEG_SHARED names, must be on a file system that all share, at the same path")


def _look(path: str, token: str, _: Iterable[int]) -> Iterator[str]:
    """Runs in a worker: its host, if it does not see the file."""
    import socket
    import time
    time.sleep(_SPREAD_S)
    try:
        with open(path, encoding="utf-8") as file:
            if file.read() == token:
                return
    except OSError:
        pass
    yield socket.gethostname()
