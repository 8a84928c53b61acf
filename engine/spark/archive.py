"""An archive of the classes that Spark loads at its start (the JVM's class data sharing), made once per installation.

Measured: the JVM's start takes half the time with it and the warm-up two thirds (docs/decisions.md, "Spark's start"). The JVM
checks the archive against its class path and leaves it unused where it does not fit; so a wrong one costs time, never answers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import pyspark

from .java import Java
from .settings import SparkSettings

KEPT = 3
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
