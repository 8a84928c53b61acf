"""What Spark is started with: the few things a user sets, and the configuration that follows from them.

Every entry of `configuration` is there for a reason that was measured (docs/decisions.md, "Spark's settings").
"""

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine.processors import processors
from engine.worker.guard import DEFAULT_MEMORY, MEMORY_VARIABLE

GRAPHFRAMES = "org.apache.sedona:sedona-spark-shaded-4.0_2.13:1.8.0"
KAFKA_CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"
MOST_SHARDS = 64
PROJECT = Path(__file__).resolve().parents[2]
LOGGING = Path(__file__).with_name("log4j2.properties")


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """`cache` keeps what is fetched once, `work` (None: a temporary folder) Spark's scratch files and spark.log. On a cluster the temporary
    folder is made in `shared`, which all executors see; `slots` are the cores that the cluster was found to have (None: it has not been
    asked). `shards` is how many workers share out the tables that stay in them (None: one).

    `executor_env` is an archive of packages (packages.py) for a cluster's executors; None: they have these.

    `worker_memory` is what DuckDB may take in each of Spark's workers, beyond which the plan fails that needs it (database.py).

    `graphframes` are the Maven coordinates of the JVM half of GraphFrames, "" to start without; `kafka_connector` those of Spark's
    connector for Kafka, which is wanted where `kafka` says so. `java_options` go to the driver's
    JVM; `worker_python` is the Python of Spark's workers, on a cluster the path that it has there; `extra` overrides any entry of
    `configuration`.
    """

    master: str = "local[*]"
    memory: str = "2g"
    worker_memory: str = DEFAULT_MEMORY
    cache: Path = Path("~/.cache/thalweg")
    work: Path | None = None
    shared: Path | None = None
    executor_env: Path | None = None
    slots: int | None = None
    shards: int | None = None
    graphframes: str = GRAPHFRAMES
    kafka_connector: str = KAFKA_CONNECTOR
    kafka: bool = False
    java_options: str = ""
    worker_python: str = sys.executable
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def local(self) -> bool:
        """Whether driver and executor are one JVM on this machine."""
        return self.master == "local" or self.master.startswith("local[")

    @property
    def partitions(self) -> int:
        """How many tasks run side by side: the threads of a local master (``local[*]``: all processors), or the cores of a cluster but for
        those of the tasks that do not end (workers.py)."""
        return _threads(self.master) or max(1, (self.slots or 0) - (self.shards or 1) - self.shards_beside)

    @property
    def shards_beside(self) -> int:
        """How many workers share out what is evaluated beside the pump: as many again, where there are several and a cluster keeps half of
        its slots for tasks that end; else none."""
        shards = self.shards or 1
        return shards if shards > 1 and (self.local or (self.slots or 0) >= 4 * shards) else 0

    @property
    def ivy(self) -> Path:
        """The folder in which Ivy keeps what it fetched: one of our own, so that no half-filled shared one gets in the way."""
        return self.cache.expanduser() / "ivy"


_UNPACKED = "thalweg-packages"   # the name of the folder on executors
_LOCAL = re.compile(r"local(?:\[([0-9]+|\*)(,[0-9]+)?\])?")
_MASTER = re.compile(r"local(\[([1-9][0-9]*|\*)(,[0-9]+)?\])?|spark://[^\s,/]+:[0-9]+(,[^\s,/]+:[0-9]+)*|k8s://\S+|yarn")


def master_of(text: str) -> str:
    """A Spark master. Raises ValueError where no Spark could be meant."""
    if not _MASTER.fullmatch(text):
        raise ValueError("expected a Spark master: local, local[2], local[*], spark://HOST:PORT, k8s://URL or yarn")
    return text


def shards_of(text: str) -> int:
    """A number of shards. Raises ValueError for any other text."""
    if not re.fullmatch(r"[1-9]\d{0,2}", text) or int(text) > MOST_SHARDS:
        raise ValueError(f"expected a number of shards, 1 to {MOST_SHARDS}")
    return int(text)


VARIABLES = {"master": "THALWEG_MASTER", "memory": "THALWEG_SPARK_MEMORY", "worker_memory": MEMORY_VARIABLE,
             "cache": "THALWEG_CACHE", "shared": "THALWEG_CLUSTER_FOLDER", "shards": "THALWEG_SHARDS",
             "executor_env": "THALWEG_EXECUTOR_ENV",
             "graphframes": "THALWEG_GRAPHFRAMES", "kafka_connector": "THALWEG_KAFKA_CONNECTOR",
             "java_options": "THALWEG_JAVA_OPTIONS", "worker_python": "THALWEG_WORKER_PYTHON"}


def from_environment(environment: Mapping[str, str] | None = None, **given: object) -> SparkSettings:
    """Settings from the environment's VARIABLES; what is `given` (and not None) wins."""
    known = os.environ if environment is None else environment
    values: dict[str, object] = {name: known[variable] for name, variable in VARIABLES.items() if variable in known}
    values |= {name: value for name, value in given.items() if value is not None}
    for name in ("cache", "shared", "executor_env"):    # an empty one is none
        if (path := values.pop(name, None)):
            values[name] = Path(str(path)).expanduser()
    if shards := values.pop("shards", None):
        values["shards"] = shards_of(str(shards))
    return SparkSettings(**values)  # type: ignore[arg-type]


def configuration(settings: SparkSettings, work: Path) -> dict[str, str]:
    """Spark's configuration, without the jars of GraphFrames. `work` is an existing folder."""
    java_options = f"{_JAVA_OPTIONS} -Dlog4j2.configurationFile={LOGGING.as_uri()} {settings.java_options}"
    entries = {
        "spark.master": _with_slots(settings.master, (settings.shards or 1) + settings.shards_beside),
        "spark.app.name": "thalweg",
        "spark.driver.memory": settings.memory,
        "spark.driver.maxResultSize": "512m",   # of a job; answers have limits of their own (engine/limits.py)
        "spark.driver.extraJavaOptions": java_options.strip(),
        "spark.local.dir": str(work / "local"),
        "spark.sql.warehouse.dir": str(work / "warehouse"),
        "spark.checkpoint.dir": str(work / "checkpoints"),
        "spark.cleaner.referenceTracking.cleanCheckpoints": "true",
        f"spark.executorEnv.{MEMORY_VARIABLE}": settings.worker_memory,
        "spark.executorEnv.GLIBC_TUNABLES": os.environ.get("GLIBC_TUNABLES", _MALLOC),
    }
    if settings.local:
        entries |= {"spark.sql.shuffle.partitions": str(settings.partitions), "spark.default.parallelism": str(settings.partitions)}
        entries |= _LOOPBACK | {"spark.python.daemon.module": "engine.spark.daemon", "spark.executorEnv.PYTHONPATH": str(PROJECT)}
    elif settings.executor_env is not None:     # unpacked by each executor in its own folder, where its Python starts
        entries |= {"spark.archives": f"{settings.executor_env.absolute().as_uri()}#{_UNPACKED}", "spark.executorEnv.PYTHONPATH": _UNPACKED}
    return entries | _SEMANTICS | _SPEED | _STREAMING | _QUIET | dict(settings.extra)


def parallelism(tasks: int) -> dict[str, str]:
    """The settings of a running session by which its jobs have at most so many tasks."""
    names = ("spark.sql.shuffle.partitions", "spark.sql.leafNodeDefaultParallelism", "spark.sql.files.maxPartitionNum")
    return dict.fromkeys(names, str(tasks))


def _threads(master: str) -> int | None:
    """The threads of a local master, None for another."""
    found = _LOCAL.fullmatch(master)
    return found and (processors() if found[1] == "*" else int(found[1] or 1))


def _with_slots(master: str, more: int) -> str:
    """A master with so many slots more where all slots are this process's, for the tasks that do not end (workers.py)."""
    found, threads = _LOCAL.fullmatch(master), _threads(master)
    return master if found is None or threads is None else f"local[{threads + more}{found[2] or ''}]"


# Forking a JVM of gigabytes to start the Python daemon or chmod is slow; VFORK does not copy page tables. A JVM without memory left
# collects garbage for minutes, and what it answers then is not to be trusted: it ends at once, and is started again.
# Nobody reads its counters, and to write them it would wake 20 times a second.
# The optimising compiler gets what runs ten times as often as it does by default: else it takes a seventh of a core for minutes beside a
# light load, whose work is done in workers (docs/decisions.md).
_JAVA_OPTIONS = ("-Djdk.lang.Process.launchMechanism=VFORK -Duser.timezone=UTC -XX:+ExitOnOutOfMemoryError -XX:-UsePerfData "
                 "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 -XX:Tier4CompileThreshold=150000 "
                 "-XX:Tier4BackEdgeThreshold=400000")

# For workers: memory that a small statement of DuckDB frees is kept at hand for the next. By default glibc keeps seven chunks of each size.
_MALLOC = "glibc.malloc.tcache_count=2000"

# What decides answers. Literals must reach SQL as they are: no ${...} in them is a variable.
_SEMANTICS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.runSQLOnFiles": "false",     # no text of a plan names a file
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.catalogImplementation": "in-memory",
}

# Small plans, many of them: what a job costs beside its work.
_SPEED = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.constraintPropagation.enabled": "false",     # it also fails for unions of checkpointed relations
    "spark.scheduler.mode": "FAIR",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
}

_STREAMING = {
    "spark.sql.streaming.checkpointFileManagerClass":
        "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager",
    "spark.sql.streaming.fileSource.log.cleanupDelay": "0s",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.stopTimeout": "10s",
}

# Nothing is shown by Spark itself; what it would retain for its pages only grows.
_QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
    "spark.sql.ui.retainedExecutions": "5",
    "spark.sql.streaming.ui.enabled": "false",
}

_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
