"""What is found out about a cluster: how many cores it has; before it is used, whether its executors have the packages and see what the
driver writes."""

import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from engine.spark.launch import SparkStartError
from engine.spark.packages import fits
from engine.spark.settings import SparkSettings, parallelism
from engine.worker.look import look

START_S = 120.0     # until there are enough executors
_STEADY_S = 2.0     # no executor has come for so long: no more are awaited
_LOOK_S = 0.2


def await_executors(spark: SparkSession, settings: SparkSettings, work: Path, say: Callable[[str], None]) -> tuple[SparkSettings, int]:
    """The settings with the slots that are there, and the mean number of cores of an executor. Raises SparkStartError where there are too
    few cores, or where an executor lacks packages or does not share `work`."""
    say("waiting for the executors of the cluster")
    shards = settings.shards or 1
    executors, cores = _counted(spark.sparkContext._jsc.sc().statusStore(), shards + 1)
    if cores <= shards:
        taken = f"{shards} shards (THALWEG_SHARDS) take a core each" if shards > 1 else "the windows of queries take one"
        raise SparkStartError(f"the cluster {settings.master} gave {cores} cores within {START_S:g} s; {shards + 1} are needed: {taken}, "
                              "and other tasks need one")
    say(f"{executors} executors with {cores} cores in all")
    _check_executors(spark, settings, work, cores)
    settings = replace(settings, slots=cores)
    for name, value in {**parallelism(settings.partitions), **settings.extra}.items():
        if name in parallelism(1):
            spark.conf.set(name, value)
    return settings, max(1, cores // executors)


def executors_in(store: Any, active_only: bool = True) -> list[Any]:
    """The executors that Spark's `store` of statuses knows: those that are there, or also those that were."""
    known = store.executorList(active_only)
    return [each for each in map(known.apply, range(known.size())) if each.id() != "driver"]


def _counted(store: Any, least: int) -> tuple[int, int]:
    """How many executors there are, and their cores, once these are `least` and no more come."""
    began = since = time.monotonic()
    found = (0, 0)
    while time.monotonic() - began < START_S and (found[1] < least or time.monotonic() - since < _STEADY_S):
        time.sleep(_LOOK_S)
        known = executors_in(store)
        now = len(known), sum(each.totalCores() for each in known)
        if now != found:
            found, since = now, time.monotonic()
    return found


def _check_executors(spark: SparkSession, settings: SparkSettings, work: Path, cores: int) -> None:
    """Raises SparkStartError where an executor lacks packages, cannot read what is written in `work`, or cannot write there itself."""
    seen = work / "seen-by-executors"
    seen.write_text(token := secrets.token_hex(8), encoding="utf-8")
    try:
        there = partial(look, str(seen), token)
        found = spark.sparkContext.parallelize(range(cores), cores).mapPartitions(there).collect()
    except (PySparkException, Py4JError) as failure:
        unpack = f", or cannot unpack {settings.executor_env} (THALWEG_EXECUTOR_ENV)" if settings.executor_env else ""
        python = f"{settings.worker_python}, THALWEG_WORKER_PYTHON"
        raise SparkStartError(f"executors cannot run Python ({python}){unpack}: {failure}") from failure
    finally:
        for left in work.glob(f"{seen.name}*"):
            left.unlink(missing_ok=True)
    if lacking := ", ".join(sorted({f"{host} ({missing})" for host, missing in found if missing is not None})):
        if settings.executor_env:
            raise SparkStartError(f"executors cannot import the packages of {settings.executor_env} (THALWEG_EXECUTOR_ENV): {lacking}; "
                                  f"their Python ({settings.worker_python}, THALWEG_WORKER_PYTHON) must be {fits()}")
        raise SparkStartError(f"executors lack packages: {lacking}; `thalweg executor-env FILE.tar.gz` makes an archive of them, which "
                              "THALWEG_EXECUTOR_ENV=FILE.tar.gz gives to executors")
    if blind := sorted({host for host, missing in found if missing is None}):
        raise SparkStartError(f"executors on {', '.join(blind)} do not see {work}, or may not write there: on a cluster the "
                              "data folder, or that of THALWEG_CLUSTER_FOLDER, must be on a file system that all share, at the same path")
