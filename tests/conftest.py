"""What all tests share: one Spark session, started when the first test asks for it."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.jvm import use_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from engine.spark.session import Session

use_options()

# Tests start hundreds of processes of Python. Where the environment forbids to write bytecode, each would compile the engine again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Thousands of tests make a few small files each, databases among them: a memory file system takes a sixth less time for the cases.
_IN_MEMORY = Path("/dev/shm")
_ROOM = 2 << 30     # bytes; a whole run takes some 100 MB
if ("TMPDIR" not in os.environ and _IN_MEMORY.is_dir() and os.access(_IN_MEMORY, os.W_OK) and shutil.disk_usage(_IN_MEMORY).free > _ROOM
        and not os.statvfs(_IN_MEMORY).f_flag & os.ST_NOEXEC):     # some tests make scripts
    os.environ["TMPDIR"], tempfile.tempdir = str(_IN_MEMORY), None

# All that tests import and keep is walked at each full collection of garbage: by Python's own thresholds that is a twentieth of their time.
gc.set_threshold(50_000)

# Of those that use the shared Spark, in the order in which they begin: each takes a quarter of a minute and more.
_LONG = ("test_cases_by_spark_sql.py", "test_cases_on_spark.py", "test_kill.py", "test_plans.py", "test_limits.py", "test_sql_functions.py",
         "test_stress.py", "test_rounds.py", "test_sql_aggregates.py", "test_beside.py", "test_states.py")

# Two slow cores: a deadline per example would fail by the weather. The same examples each time: a red build is to be repeatable.
settings.register_profile("thalweg", deadline=None, derandomize=True, max_examples=50,
                          suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", parent=settings.get_profile("thalweg"), derandomize=False, max_examples=2000)
settings.load_profile(os.environ.get("THALWEG_HYPOTHESIS", "thalweg"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite the expectations of tests/cases; review the difference")
    parser.addoption("--separately", action="store_true", help="run each case of tests/cases by itself on Spark (slow)")


@pytest.fixture(scope="session")
def spark_session() -> Session:
    """The one Spark of the test run (local[2], UI off), as `engine.spark.session.Session`; the one that the treatments use."""
    from tests.sparks import shared_session

    return shared_session()


@pytest.fixture
def spark(spark_session: Session) -> SparkSession:
    """PySpark's session of the shared Spark; drop the views you make."""
    return spark_session.spark


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the source tree."""
    return Path(__file__).resolve().parents[1]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that uses the shared Spark, and run these last: the quick ones tell first. Of these the longest files come first, so
    that no process has one of them left when the others have done. Those of the browser, which mostly waits, are spread among the others:
    two of them side by side leave a third of two cores idle."""
    for item in items:
        if {"spark", "spark_session"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.spark)

    files = list(dict.fromkeys(item.path for item in items))
    browser = [path for path in files if path.parent.name == "browser"]
    others = [path for path in files if path not in browser]
    spread = {path: number * len(others) / len(browser) for number, path in enumerate(browser)}
    order = spread | {path: float(number) for number, path in enumerate(others)}

    def place(item: pytest.Item) -> tuple[bool, int, float]:
        first = _LONG.index(item.path.name) if item.path.name in _LONG else len(_LONG)
        return item.get_closest_marker("spark") is not None, first, order[item.path]

    items.sort(key=place)
