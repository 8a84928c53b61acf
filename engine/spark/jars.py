"""Jars that Spark itself does not have: the JVM half of GraphFrames, and the connector for Kafka.

They are fetched once by Ivy through ``spark.jars.packages``. Resolving costs Ivy one to two seconds at each start even when nothing
is missing, and needs the network; jars that are already there are given to Spark directly. That of GraphFrames is put on the class path in
local mode, which saves Spark a copy of its 73 MB per start. Those of the connector are not: the archive of classes (java.py) holds for one
class path only.
"""

import threading
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from engine.spark.settings import SparkSettings

# Ivy's own default looks into ~/.m2 first, where Maven leaves entries without their jar: such a one would fail the start.
_IVY_SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""
# What the connector asks for and Spark has already.
_OF_SPARK = ("org.apache.hadoop:hadoop-client-api", "org.apache.hadoop:hadoop-client-runtime", "org.apache.spark:spark-tags_2.13",
             "org.lz4:lz4-java", "org.scala-lang:scala-library", "org.scala-lang.modules:scala-parallel-collections_2.13",
             "org.slf4j:slf4j-api", "org.xerial.snappy:snappy-java", "com.google.code.findbugs:jsr305")


def graphframes_jar(settings: SparkSettings) -> Path | None:
    """The jar of `settings.graphframes` as Ivy's retrieve names it, if it is there and whole."""
    return _newest(settings, "{}_{}-{}.jar".format(*settings.graphframes.split(":")))


def connector_jars(settings: SparkSettings) -> list[Path]:
    """The jars of `settings.kafka_connector`; none where one of them is missing."""
    group, artifact, version = settings.kafka_connector.split(":")
    names = (f"{group}_{artifact}-{version}.jar", f"org.apache.spark_spark-token-provider-kafka-0-10_2.13-{version}.jar",
             "org.apache.kafka_kafka-clients-*.jar", "org.apache.commons_commons-pool2-*.jar")
    found = [jar for name in names if (jar := _newest(settings, name)) is not None]
    return found if len(found) == len(names) else []


def _newest(settings: SparkSettings, name: str) -> Path | None:
    # The directory of a zip file stands at its end: a file cut short is none.
    whole = [jar for jar in (settings.ivy / "jars").glob(name) if zipfile.is_zipfile(jar)]
    return max(whole, key=lambda jar: jar.stat().st_mtime, default=None)


def missing(settings: SparkSettings) -> list[str]:
    """The coordinates of what is wanted and not there."""
    found = [settings.graphframes] if settings.graphframes and graphframes_jar(settings) is None else []
    return found + [settings.kafka_connector] * (settings.kafka and not connector_jars(settings))


def use_jars(settings: SparkSettings) -> dict[str, str]:
    """The entries that give Spark the jars that are there, on a cluster its executors too."""
    graphframes = graphframes_jar(settings) if settings.graphframes else None
    sent = connector_jars(settings) if settings.kafka else []
    if graphframes is not None and not settings.local:
        sent.append(graphframes)
    on_path = {"spark.driver.extraClassPath": str(graphframes)} if graphframes is not None and settings.local else {}
    return on_path | ({"spark.jars": ",".join(jar.as_uri() for jar in sent)} if sent else {})


def fetch_jars(settings: SparkSettings, coordinates: Sequence[str]) -> dict[str, str]:
    """The entries that make Spark fetch jars at its start; writes Ivy's settings into the cache folder."""
    settings.ivy.mkdir(parents=True, exist_ok=True)
    ivy_settings = settings.ivy / "ivysettings.xml"
    ivy_settings.write_text(_IVY_SETTINGS, encoding="utf-8")
    defaults = {"spark.jars.packages": ",".join(coordinates), "spark.jars.excludes": ",".join(_OF_SPARK),
                "spark.jars.ivy": str(settings.ivy)}
    # Whoever names repositories or Ivy settings of their own (a mirror) means these.
    own = "spark.jars.ivySettings" in settings.extra or "spark.jars.repositories" in settings.extra
    return defaults if own else defaults | {"spark.jars.ivySettings": str(ivy_settings)}


@contextmanager
def download_shown(settings: SparkSettings, say: Callable[[str], None], every_s: float = 2.0) -> Iterator[None]:
    """While the body runs, tell how much of the jars has arrived."""
    done = threading.Event()

    def watch() -> None:
        told = 0
        while not done.wait(every_s):
            arrived = sum(part.stat().st_size for part in settings.ivy.glob("cache/**/*.part") if part.is_file()) // 1_000_000
            if arrived > told:
                told = arrived
                say(f"fetching: {arrived} MB")

    thread = threading.Thread(target=watch, name="spark-download", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
