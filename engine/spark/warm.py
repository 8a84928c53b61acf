"""Tiny jobs that make the first real answer quick: the JVM compiles what it has run, a Python worker exists once one was used."""

import importlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import SparkSession

from ..facts import FACTS
from .workers import run_in_pool

ROUNDS = 3


def warm_up(spark: SparkSession, say: Callable[[str], None]) -> None:
    """Run each kind of small job that answers are made of, `ROUNDS` times over."""
    facts = _facts(64)
    for number in range(ROUNDS):
        say(f"warming up, round {number + 1} of {ROUNDS}")
        frame = spark.createDataFrame(facts)
        frame.createOrReplaceTempView("warm_up")
        try:
            spark.sql(_STAR).toArrow()
            spark.sql(_JOIN).toArrow()
            run_in_pool(spark, _load, [b"", b""], None)
        finally:
            spark.catalog.dropTempView("warm_up")


_STAR = """select t, s, max(case when p = '<p0>' then number end) a, count(*) n from warm_up where p in ('<p0>', '<p1>')
           group by t, s having max(case when p = '<p0>' then number end) > 3 order by t, s"""
_JOIN = """select a.t, a.s, b.o from warm_up a join warm_up b on a.t = b.t and a.s = b.s
           left join warm_up c on c.s = b.o where a.p = '<p0>' and b.p = '<p1>' and c.s is null"""


def _facts(rows: int) -> pa.Table:
    numbers = range(rows)
    return pa.table({
        "position": list(numbers), "t": [i // 8 for i in numbers], "g": pa.nulls(rows, pa.string()),
        "s": [f"<s{i % 8}>" for i in numbers], "p": [f"<p{i % 4}>" for i in numbers], "o": [f'"{i}"' for i in numbers],
        "kind": [0] * rows, "number": [float(i) for i in numbers], "micros": pa.nulls(rows, pa.int64()),
    }, schema=FACTS)


def _load(bundles: Iterable[bytes]) -> Iterator[bytes]:
    """Runs in a Python worker: imports what runs bundles there."""
    importlib.import_module("engine.worker.bundles")
    yield from bundles


def exercise(spark: SparkSession, folder: Path, say: Callable[[str], None]) -> None:
    """The warm-up and one micro-batch of a file stream: what a server's first minute uses, for the archive of classes."""
    warm_up(spark, say)
    landing = folder / "landing"
    landing.mkdir(parents=True)
    parquet.write_table(_facts(8), landing / "one.parquet")
    frame = spark.readStream.schema(spark.createDataFrame(_facts(1)).schema).parquet(str(landing))
    query = (frame.writeStream.foreachBatch(lambda batch, number: batch.toArrow() and None)
             .option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start())
    query.awaitTermination(60)
    query.stop()
