"""The pure parts of the benchmarks: percentiles and trends."""

from __future__ import annotations

import math

import pytest

from tests.bench import report
from tests.bench.figures import at_most, holds, percentile, plain, spread, trend


def test_a_steady_lag_does_not_grow() -> None:
    found = trend([900.0, 700.0] + [300.0, 310.0] * 20)
    assert not found.growing
    assert found.second_quarter_ms == found.last_quarter_ms == 305
    assert abs(found.slope_ms_per_s) < 1


def test_a_lag_that_grows_is_found() -> None:
    found = trend([100.0 + 50 * second for second in range(60)])
    assert found.growing
    assert found.slope_ms_per_s == pytest.approx(50)


def test_the_warm_up_is_no_trend_and_one_late_answer_neither() -> None:
    assert not trend([5000.0] * 10 + [300.0] * 30).growing
    assert not trend([300.0] * 39 + [9000.0]).growing


def test_a_slope_counts_the_interval() -> None:
    assert trend([10.0 * number for number in range(40)], interval_s=2.0).slope_ms_per_s == pytest.approx(5)


def test_nothing_measured_is_not_a_number() -> None:
    assert math.isnan(percentile([], 50))
    assert not at_most("nothing", percentile([], 50), "ms", 400).met
    assert not trend([1.0]).growing


def test_the_spread_with_targets() -> None:
    p50, p95, most = spread("lag", [float(value) for value in range(101)], p50=40)
    assert (p50.value, p50.met, p95.value, p95.met, most.value) == (50, False, 95, None, 100)


def test_the_table_is_aligned_markdown() -> None:
    text = report.table({"one": [at_most("slow", 1234.56, "ms", 400), holds("right", True, "yes")], "two": [plain("rows", 7, "rows")]})
    assert text.splitlines() == [
        "| benchmark | figure |   value | unit   | target | met |",
        "| --------- | ------ | ------- | ------ | ------ | --- |",
        "| one       | slow   | 1,234.6 | ms     | <= 400 | NO  |",
        "| one       | right  |     yes | yes/no | yes    | yes |",
        "| two       | rows   |       7 | rows   |        |     |"]
