"""What Spark's start takes from a cache: the JVM half of GraphFrames, and an archive of the classes that it loads.

GraphFrames are fetched once by Ivy through ``spark.jars.packages``. Resolving costs Ivy one to two seconds at each start even when nothing
is missing, and needs the network; a jar that is already there is put on the class path directly. In local mode that also saves Spark a
copy of its 73 MB per start.

The archive (the JVM's class data sharing) is made once per installation: the JVM's start takes half the time with it and the warm-up two
thirds (docs/decisions.md, "Spark's start"). The JVM checks it against its class path and leaves it unused where it does not fit:
so a wrong one costs time, never answers.
"""

from __future__ import annotations

import hashlib
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark

from engine.spark.java import Java
from engine.spark.settings import SparkSettings

# Ivy's own default looks into ~/.m2 first, where Maven leaves entries without their jar: such a one would fail the start.
_IVY_SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""


def cached_jar(settings: SparkSettings) -> Path | None:
    """The jar of `settings.graphframes` as Ivy's retrieve names it, if it is there and whole."""
    group, artifact, version = settings.graphframes.split(":")
    jar = settings.ivy / "jars" / f"{group}_{artifact}-{version}.jar"
    # The directory of a zip file stands at its end: a file cut short is none.
    return jar if jar.is_file() and zipfile.is_zipfile(jar) else None


def use_jar(settings: SparkSettings, jar: Path) -> dict[str, str]:
    """The entries that put a jar of the cache on the class path (on a cluster: send it to the executors too)."""
    return {"spark.driver.extraClassPath": str(jar)} if settings.local else {"spark.jars": jar.as_uri()}


def fetch_jar(settings: SparkSettings) -> dict[str, str]:
    """The entries that make Spark fetch the jar at its start; writes Ivy's settings into the cache folder."""
    settings.ivy.mkdir(parents=True, exist_ok=True)
    ivy_settings = settings.ivy / "ivysettings.xml"
    ivy_settings.write_text(_IVY_SETTINGS, encoding="utf-8")
    defaults = {"spark.jars.packages": settings.graphframes, "spark.jars.ivy": str(settings.ivy)}
    # Whoever names repositories or Ivy settings of their own (a mirror) means these.
    own = "spark.jars.ivySettings" in settings.extra or "spark.jars.repositories" in settings.extra
    return defaults if own else defaults | {"spark.jars.ivySettings": str(ivy_settings)}


@contextmanager
def download_shown(settings: SparkSettings, say: Callable[[str], None], every_s: float = 2.0) -> Iterator[None]:
    """While the body runs, tell how much of the jar has arrived."""
    done = threading.Event()

    def watch() -> None:
        told = 0
        while not done.wait(every_s):
            arrived = sum(part.stat().st_size for part in settings.ivy.glob("cache/**/*.part") if part.is_file()) // 1_000_000
            if arrived > told:
                told = arrived
                say(f"fetching GraphFrames: {arrived} MB")

    thread = threading.Thread(target=watch, name="spark-download", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


KEPT = 3     # archives of classes
_QUIET = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"


def archive_path(settings: SparkSettings, java: Java, entries: Mapping[str, str]) -> Path:
    """Where the archive for this Java, this Spark and this class path is or would be."""
    parts = [java.version, str(java.home), pyspark.__version__, pyspark.__file__, entries.get("spark.driver.extraClassPath", "")]
    name = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return settings.cache.expanduser() / "classes" / f"{name}.jsa"


def use_archive(path: Path) -> str:
    """The JVM's options that use the archive; none where it has not been made."""
    return f'"-XX:SharedArchiveFile={path}" {_QUIET}' if path.is_file() else ""


def make_options(path: Path) -> str:
    """The JVM's options that write an archive when the JVM ends, to a name that `finish` makes the real one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return f'"-XX:ArchiveClassesAtExit={_unfinished(path)}" {_QUIET}'


def finish(path: Path) -> bool:
    """Put a written archive in its place and drop old ones; False where the JVM wrote none."""
    unfinished = _unfinished(path)
    if not unfinished.is_file():
        return False
    unfinished.replace(path)
    archives = sorted(path.parent.glob("*.jsa"), key=lambda archive: archive.stat().st_mtime, reverse=True)
    for old in archives[KEPT:]:
        old.unlink(missing_ok=True)
    return True


def _unfinished(path: Path) -> Path:
    return path.with_suffix(".part")
