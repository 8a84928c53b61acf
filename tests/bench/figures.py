"""Numbers out of measurements: percentiles, trends, and the figures that are reported."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. `target` says what it should be; `met` whether it is (None: there is no target)."""

    name: str
    value: float
    unit: str
    target: str = ""
    met: bool | None = None

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "value": None if math.isnan(self.value) else self.value}


@dataclass(frozen=True, slots=True)
class Trend:
    """How lags develop. The median of the second quarter is compared with that of the last: the first is warm-up."""

    slope_ms_per_s: float
    second_quarter_ms: float
    last_quarter_ms: float

    @property
    def growing(self) -> bool:
        """Whether the lag grows: by a quarter and at least 250 ms, with a slope upwards."""
        growth = self.last_quarter_ms - self.second_quarter_ms
        return growth > max(250.0, 0.25 * self.second_quarter_ms) and self.slope_ms_per_s > 0


def at_most(name: str, value: float, unit: str, limit: float) -> Figure:
    """A figure that should be `limit` or less."""
    return Figure(name, round(float(value), 1), unit, f"<= {limit:g}", bool(value <= limit))


def at_least(name: str, value: float, unit: str, limit: float) -> Figure:
    """A figure that should be `limit` or more."""
    return Figure(name, round(float(value), 1), unit, f">= {limit:g}", bool(value >= limit))


def holds(name: str, truth: bool, target: str) -> Figure:
    """A figure that is yes (1) or no (0), and should be yes."""
    return Figure(name, float(truth), "yes/no", target, bool(truth))


def plain(name: str, value: float, unit: str) -> Figure:
    """A figure without a target."""
    return Figure(name, round(float(value), 1), unit)


def percentile(values: Sequence[float], percent: float) -> float:
    """The percentile with linear interpolation; nan of nothing."""
    return float(np.percentile(values, percent)) if len(values) else float("nan")


def trend(lags_ms: Sequence[float], interval_s: float = 1.0) -> Trend:
    """The trend of lags measured every `interval_s`; the slope is a least-squares fit from the second quarter on."""
    values = np.asarray(lags_ms, np.float64)
    quarter = len(values) // 4
    if quarter == 0:
        return Trend(0.0, float("nan"), float("nan"))
    settled = values[quarter:]
    slope = np.polyfit(np.arange(len(settled)) * interval_s, settled, 1)[0] if len(settled) > 1 else 0.0
    return Trend(float(slope), float(np.median(values[quarter:2 * quarter])), float(np.median(values[-quarter:])))


def spread(name: str, values: Sequence[float], p50: float | None = None, p95: float | None = None) -> list[Figure]:
    """Median, 95th percentile and maximum of times in ms, with the targets that are given."""
    found = []
    for percent, limit in ((50, p50), (95, p95)):
        value = percentile(values, percent)
        title = f"{name}, p{percent}"
        found.append(plain(title, value, "ms") if limit is None else at_most(title, value, "ms", limit))
    return [*found, plain(f"{name}, max", max(values, default=float("nan")), "ms")]
