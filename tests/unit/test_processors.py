"""How many processors count as there: those that the process is bound to, within the quota of its control group."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine import processors as module
from engine.spark.settings import SparkSettings

BOUND = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str, quotas: dict[str, str]) -> int:
    """With these quotas (``cpu.max``), by control group."""
    for group, quota in quotas.items():
        (tmp_path / group).mkdir(parents=True, exist_ok=True)
        (tmp_path / group / "cpu.max").write_text(quota)
    (tmp_path / "own").write_text(own)
    monkeypatch.setattr(module, "CGROUPS", tmp_path)
    monkeypatch.setattr(module, "OWN_CGROUP", tmp_path / "own")
    return module.processors.__wrapped__()


@pytest.mark.parametrize(("own", "quotas", "expected"), [
    ("0::/\n", {}, BOUND),
    ("0::/\n", {".": "max 100000\n"}, BOUND),
    ("0::/a/b\n", {"a": "100000 100000\n", "a/b": "max 100000\n"}, 1),
    ("0::/a/b\n", {"a/b": "50000 100000\n"}, 1),
    ("0::/a\n", {"a": "6400000 100000\n"}, min(BOUND, 64)),
    ("0::/a\n", {"other": "100000 100000\n"}, BOUND),
    ("4:cpu:/a\n", {"a": "100000 100000\n"}, BOUND),      # version 1
    ("0::/a\n", {"a": "nonsense"}, BOUND)])
def test_the_quota_of_a_control_group_counts(
        own: str, quotas: dict[str, str], expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert counted(tmp_path, monkeypatch, own, quotas) == expected


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux binds processes to processors")
def test_a_process_that_is_bound_to_one_processor_has_one() -> None:
    text = ("import os; os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1]); from engine.spark.settings import SparkSettings; "
            "print(SparkSettings().partitions)")
    assert subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout == "1\n"


@pytest.mark.parametrize(("master", "slots", "partitions"), [
    ("local", None, 1), ("local[3]", None, 3), ("local[7,2]", None, 7), ("local[*]", None, module.processors()),
    ("spark://h:7077", None, 1), ("spark://h:7077", 8, 7)])
def test_as_many_tasks_run_side_by_side_as_a_master_has_threads(master: str, slots: int | None, partitions: int) -> None:
    """On a cluster one core is the resident task's."""
    assert SparkSettings(master, slots=slots).partitions == partitions


@pytest.mark.parametrize(("master", "slots", "shards", "partitions", "beside"), [
    ("local[3]", None, 1, 3, 0), ("local[3]", None, 2, 3, 2), ("spark://h:7077", 8, 2, 4, 2), ("spark://h:7077", 7, 2, 5, 0)])
def test_shards_beside_the_pump_leave_a_cluster_half_of_its_slots(
        master: str, slots: int | None, shards: int, partitions: int, beside: int) -> None:
    settings = SparkSettings(master, slots=slots, shards=shards)
    assert (settings.partitions, settings.shards_beside) == (partitions, beside)
