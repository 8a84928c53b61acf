"""How the JVMs of tests run: they live for minutes, and run hundreds of different plans over a few rows each."""

from __future__ import annotations

import os

# Only the quick compiler takes half the processor time of a start and warm-up. With it the JVM reserves 48 MB for code unless it is told
# otherwise, which hundreds of plans fill: what was compiled is then thrown away and compiled again. A collector that does nothing beside
# the work takes half the time of the usual one.
OPTIONS = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC -XX:NewSize=256m -XX:MetaspaceSize=256m"


def use_options() -> None:
    """Let the drivers that this process and those below it start have them, unless others are given."""
    os.environ.setdefault("THALWEG_JAVA_OPTIONS", OPTIONS)
