"""How many processors there are for this process."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUP = Path("/proc/self/cgroup")


@lru_cache(maxsize=1)
def processors() -> int:
    """Those that this process is bound to (sched_getaffinity, as taskset sets it), at most the quota of its control group (cgroup v2, as
    containers have it). The JVM counts likewise."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(bound, _quota()))


def _quota() -> int:
    """The whole processors in the quota of the control group and of those that it is in, rounded up; very many where there is none."""
    found = 1 << 30
    with suppress(OSError, ValueError):     # another system, or another kind of control group
        path = next((line[3:].strip() for line in OWN_CGROUP.read_text().splitlines() if line.startswith("0::")), "")
        own = Path(path.lstrip("/"))
        for group in (own, *own.parents):
            with suppress(OSError, ValueError):
                quota, period = (CGROUPS / group / "cpu.max").read_text().split()
                found = min(found, -(-int(quota) // int(period)))   # "max" is no number
    return found
