"""The only time arithmetic in the system: points, intervals, temporal operators, windows.

Time is integer milliseconds since the epoch, UTC. A *point* is a doubled integer: the instant t is ``2t``, just before it
``2t - 1``, just after it ``2t + 1``; an interval with open or closed ends is then a closed interval of points (docs/architecture.md,
"Time", "Windows", "Temporal operators"). Static facts hold during ``ALWAYS``; sums with ``MIN`` and ``MAX`` saturate.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MIN = -(1 << 62)
MAX = 1 << 62
# What may come from outside: durations up to 1,000 years, time stamps of the years 1 to 9999, which can be written as dates. Sums of a few
# of them, doubled or in microseconds, stay far within 64 bits.
LONGEST_MS = 1_000 * 366 * 86_400_000
EARLIEST_MS, LATEST_MS = -62_135_596_800_000, 253_402_300_799_999
# The step under REPORT ON CHANGE: every instant is a close.
ON_CHANGE_STEP = 1
EPOCH, CYCLE_DAYS = 719_163, 146_097    # of 1970-01-01 the ordinal; of 400 years the days, after which the calendar is the same

Range = tuple[int, int]
Ms = TypeVar("Ms", int, "npt.NDArray[np.int64]")


def is_moment(ms: int) -> bool:
    """Whether a time stamp is one that may come from outside."""
    return EARLIEST_MS <= ms <= LATEST_MS


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """The points from `lo` to `hi`, both included; never empty (the functions below give None instead)."""

    lo: int
    hi: int

    def __post_init__(self) -> None:
        if self.lo > self.hi:
            raise ValueError(f"empty interval [{self.lo}, {self.hi}]")

    def __contains__(self, point: int) -> bool:
        return self.lo <= point <= self.hi


ALWAYS = Interval(MIN, MAX)


def add(point: int, distance: int) -> int:
    """Sum of a point and a distance, saturating: an infinite end stays infinite."""
    if point in (MIN, MAX):
        return point
    if distance in (MIN, MAX):
        return distance
    return max(MIN, min(MAX, point + distance))


def instant(ms: int) -> int:
    """The point of the instant `ms`."""
    return 2 * ms


def interval(start_ms: int | None, end_ms: int | None, *, closed_start: bool = True, closed_end: bool = True) -> Interval | None:
    """Encode an interval of milliseconds; None where it is empty. ``[a, b)`` is ``closed_end=False``; an end of None is infinite."""
    return _proper(MIN if start_ms is None else 2 * start_ms + (not closed_start), MAX if end_ms is None else 2 * end_ms - (not closed_end))


def operator(start_ms: int, end_ms: int | None, *, closed_start: bool = True, closed_end: bool = True) -> Interval:
    """Encode the distances of a temporal operator such as diamond-minus[a,b]: like the ends of a fact."""
    found = interval(start_ms, end_ms, closed_start=closed_start, closed_end=closed_end)
    if found is None or found.lo < 0:
        raise ValueError(f"not an interval of distances: {start_ms} to {end_ms}")
    return found


def granule(index: int, length_ms: int) -> Interval:
    """Point `index` of a discrete timeline of granularity `length_ms`; neighbouring granules coalesce."""
    return Interval(2 * index * length_ms, 2 * (index + 1) * length_ms - 1)


def intersect(first: Interval, second: Interval) -> Interval | None:
    """The points common to both, or None."""
    return _proper(max(first.lo, second.lo), min(first.hi, second.hi))


def coalesce(intervals: Iterable[Interval]) -> list[Interval]:
    """The fewest disjoint intervals with the same points, in order; ``[a, b)`` and ``[b, c]`` become one."""
    return [Interval(lo, end - 1) for lo, end in merge((one.lo, one.hi + 1) for one in intervals)]


def merge(ranges: Iterable[Range]) -> list[Range]:
    """The fewest disjoint half-open ranges with the same members, in order."""
    merged: list[Range] = []
    for begin, end in sorted(ranges):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((begin, end))
    return merged


def common(first: Iterable[Interval], second: Sequence[Interval]) -> tuple[Interval, ...]:
    """The points that are in some interval of both, coalesced."""
    return tuple(coalesce(both for one in first for other in second if (both := intersect(one, other)) is not None))


def complement(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """The points that are in none of the intervals."""
    gaps, start = [], MIN
    for held in coalesce(intervals):
        if start < held.lo:
            gaps.append(Interval(start, held.lo - 1))
        start = held.hi + 1
    return tuple([*gaps, Interval(start, MAX)] if start <= MAX else gaps)


def diamond_minus(fact: Interval, op: Interval) -> Interval:
    """Where "held at some point between op.lo and op.hi ago" is true of `fact`; head box-plus gives the same interval."""
    lo = add(fact.lo, op.lo)
    hi = add(fact.hi, op.hi)
    return Interval(lo if lo in (MIN, MAX) else lo - (_odd(fact.lo) and _odd(op.lo)),
                    hi if hi in (MIN, MAX) else hi + (_odd(fact.hi) and _odd(op.hi)))


def box_minus(fact: Interval, op: Interval) -> Interval | None:
    """Where "held at all points between op.lo and op.hi ago" is true of the *coalesced* `fact`; None where nowhere."""
    if op.hi == MAX and fact.lo != MIN:
        return None     # what began at some time does not reach back for ever
    lo = add(fact.lo, op.hi)
    hi = add(fact.hi, op.lo)
    return _proper(lo if lo in (MIN, MAX) else lo + (not _odd(fact.lo) and _odd(op.hi)),
                   hi if hi in (MIN, MAX) else hi - (not _odd(fact.hi) and _odd(op.lo)))


def looked_back(point: int, op: Interval) -> Interval:
    """The points at which a fact must hold so that "held at all points between op.lo and op.hi ago" is true at `point`."""
    odd = _odd(point)
    return Interval(add(point, -op.hi) - (odd and _odd(op.hi) and op.hi != MAX), add(point, -op.lo) + (odd and _odd(op.lo)))


def reached_from(point: int, op: Interval, fact: Interval) -> int | None:
    """The latest point of `fact` from which diamond-minus (or head box-plus) alone reaches `point`; None where there is none."""
    last = min(fact.hi, add(point, -op.lo) + 1)
    return next((p for p in range(last, max(fact.lo, last - 3) - 1, -1) if point in diamond_minus(Interval(p, p), op)), None)


def first_close_after(ms: Ms, step_ms: int, start_ms: int = 0) -> Ms:
    """The first close ``start + k * step`` strictly after the instant `ms` (k any integer); of an array, one for each."""
    return start_ms + ((ms - start_ms) // step_ms + 1) * step_ms


def last_close_by(ms: int, step_ms: int, start_ms: int = 0) -> int:
    """The last close ``start + k * step`` at or before the instant `ms`."""
    return start_ms + (ms - start_ms) // step_ms * step_ms


def event_validity(ms: int, range_ms: int, step_ms: int, start_ms: int = 0, delay_ms: int = 0) -> Interval | None:
    """When an event stamped `ms` is in the last closed content of ``[RANGE range STEP step]``.

    An evaluation at T looks at the point ``2T - 1``. None where no close sees the event (STEP > RANGE). `delay_ms` is the b of
    ``[FROM NOW-a TO NOW-b]``, whose content at C is ``C - a <= t < C - b``.
    """
    first = first_close_after(ms + delay_ms, step_ms, start_ms)
    last = last_close_by(ms + delay_ms + range_ms, step_ms, start_ms)
    return Interval(2 * first - 1, 2 * (last + step_ms) - 2) if last >= first else None


def content(tick_ms: int, range_ms: int, step_ms: int, start_ms: int = 0, delay_ms: int = 0) -> tuple[int, int]:
    """What such a window shows at T: events with ``first <= t < second``, those of its last close at or before T."""
    end = last_close_by(tick_ms, step_ms, start_ms) - delay_ms
    return end - range_ms, end


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to a date of the proleptic Gregorian calendar, of any year (there is a year 0). ValueError where there is no
    such date."""
    cycles, base = divmod(year - 1, 400)
    return date(base + 1, month, day).toordinal() - EPOCH + cycles * CYCLE_DAYS


def evaluation_point(tick_ms: int) -> int:
    """The point that an evaluation at T looks at: just before T."""
    return 2 * tick_ms - 1


def closes(after_ms: int, until_ms: int, step_ms: int, start_ms: int = 0) -> Iterator[int]:
    """The closes C with ``after < C <= until``, in order."""
    return iter(range(first_close_after(after_ms, step_ms, start_ms), until_ms + 1, step_ms))


def _proper(lo: int, hi: int) -> Interval | None:
    return Interval(lo, hi) if lo <= hi else None


def _odd(value: int) -> bool:
    return bool(value & 1)
