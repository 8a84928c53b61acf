"""The time module against exact definitions over rationals."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import timeline as tm
from engine.timeline import ALWAYS, MAX, MIN, Interval

#   fact   ----[=========)-------      operator [a, b] looks back from t:   t-b ..... t-a ... t
ms = st.integers(-50, 50)
ends = st.booleans()


@st.composite
def facts(draw: st.DrawFn) -> tuple[int, int, bool, bool]:
    start, length = draw(ms), draw(st.integers(0, 30))
    closed = draw(ends), draw(ends)
    return (start, start + length, *(closed if length else (True, True)))


@st.composite
def operators(draw: st.DrawFn) -> tuple[int, int, bool, bool]:
    start, length = draw(st.integers(0, 20)), draw(st.integers(0, 20))
    closed = draw(ends), draw(ends)
    return (start, start + length, *(closed if length else (True, True)))


def encode(parts: tuple[int, int, bool, bool]) -> Interval:
    found = tm.interval(parts[0], parts[1], closed_start=parts[2], closed_end=parts[3])
    assert found is not None
    return found


def encode_operator(parts: tuple[int, int, bool, bool]) -> Interval:
    return tm.operator(parts[0], parts[1], closed_start=parts[2], closed_end=parts[3])


def decode(interval: Interval) -> tuple[Fraction, bool, Fraction, bool]:
    """(start, closed, end, closed) of an encoded interval."""
    lo, hi = interval.lo, interval.hi
    return Fraction(lo // 2), lo % 2 == 0, Fraction(hi + hi % 2) / 2, hi % 2 == 0


@given(facts(), operators())
def test_diamond_minus_is_the_sum_of_intervals(fact, op):
    """t is in it iff some s in the fact and d in the operator have t = s + d: ends add, closed iff both are."""
    start, start_closed, end, end_closed = decode(tm.diamond_minus(encode(fact), encode_operator(op)))
    assert (start, end) == (fact[0] + op[0], fact[1] + op[1])
    assert start_closed == (fact[2] and op[2])
    assert end_closed == (fact[3] and op[3])


@given(facts(), operators())
def test_box_minus_holds_where_all_the_past_does(fact, op):
    """t is in it iff t - d is in the fact for every d of the operator; an end stays closed if either helps."""
    found = tm.box_minus(encode(fact), encode_operator(op))
    start, end = fact[0] + op[1], fact[1] + op[0]
    start_closed, end_closed = fact[2] or not op[3], fact[3] or not op[2]
    if start > end or (start == end and not (start_closed and end_closed)):
        assert found is None
    else:
        assert found is not None
        assert decode(found) == (start, start_closed, end, end_closed)


@given(st.lists(facts(), max_size=6))
def test_coalescing_keeps_every_point_and_leaves_gaps(parts):
    intervals = [encode(p) for p in parts]
    merged = tm.coalesce(intervals)
    assert all(a.hi + 1 < b.lo for a, b in zip(merged, merged[1:]))
    for point in range(-120, 220):
        assert any(point in i for i in intervals) == any(point in i for i in merged)


@given(facts(), operators(), st.integers(-80, 80))
def test_where_an_operator_looks_from_a_point(fact, op, point):
    fact, op = encode(fact), encode_operator(op)
    looked, boxed = tm.looked_back(point, op), tm.box_minus(fact, op)
    assert (fact.lo <= looked.lo and looked.hi <= fact.hi) == (boxed is not None and point in boxed)
    origin = tm.reached_from(point, op, fact)
    assert (origin is not None) == (point in tm.diamond_minus(fact, op))
    assert origin is None or origin in fact and point in tm.diamond_minus(Interval(origin, origin), op)


def test_half_open_neighbours_become_one():
    left = tm.interval(0, 5, closed_end=False)
    right = tm.interval(5, 9)
    assert tm.coalesce([left, right]) == [Interval(0, 18)]
    assert tm.coalesce([tm.granule(0, 1000), tm.granule(1, 1000)]) == [Interval(0, 3999)]


@given(facts(), facts())
def test_intersection_is_common_points(first, second):
    a, b = encode(first), encode(second)
    common = tm.intersect(a, b)
    for point in range(-110, 170):
        assert (point in a and point in b) == (common is not None and point in common)


@given(operators())
def test_infinite_ends_stay_infinite(op):
    encoded = encode_operator(op)
    assert tm.diamond_minus(ALWAYS, encoded) == ALWAYS
    assert tm.box_minus(ALWAYS, encoded) == ALWAYS
    assert tm.add(MAX, -5) == MAX and tm.add(MIN, 5) == MIN and tm.add(3, MAX) == MAX


@given(facts(), ms)
def test_looking_back_for_ever(fact, start):
    """diamond-minus[a,inf): from the fact on, for ever; box-minus[a,inf): only where the fact has no beginning."""
    begun, distance = encode(fact), abs(start)
    endless = tm.operator(distance, None)
    assert endless == Interval(2 * distance, MAX)
    assert tm.diamond_minus(begun, endless) == Interval(begun.lo + 2 * distance, MAX)
    assert tm.box_minus(begun, endless) is None
    assert tm.box_minus(Interval(begun.lo, MAX), endless) is None
    assert tm.box_minus(Interval(MIN, begun.hi), endless) == Interval(MIN, begun.hi + 2 * distance)


def test_ends_without_bound():
    assert tm.interval(None, None) == ALWAYS
    assert tm.interval(3, None, closed_start=False, closed_end=False) == Interval(7, MAX)
    assert tm.interval(None, 3, closed_end=False) == Interval(MIN, 5)


@given(ms, st.integers(1, 40), st.integers(1, 15), st.integers(-20, 20), st.integers(0, 10))
def test_an_event_is_valid_where_the_last_closed_window_holds_it(t, length, step, start, delay):
    #      C - delay - range <= t < C - delay          last close C <= T
    #   ---[=================)-----delay-----|C-----|T
    valid = tm.event_validity(t, length, step, start, delay)
    for tick in range(-160, 220):
        close = max(c for c in range(start - 40 * step - 400, tick + 1) if (c - start) % step == 0 and c <= tick)
        held = close - delay - length <= t < close - delay
        assert held == (valid is not None and tm.evaluation_point(tick) in valid)


@given(ms, st.integers(1, 15), st.integers(-20, 20))
def test_closes_are_on_the_grid(t, step, start):
    first, last = tm.first_close_after(t, step, start), tm.last_close_by(t, step, start)
    assert (first - start) % step == 0 and (last - start) % step == 0
    assert last <= t < first and first - last == step
    assert list(tm.closes(t, t + 3 * step, step, start)) == [first, first + step, first + 2 * step]


@pytest.mark.parametrize("start,end", [(3, 2), (-1, 4)])
def test_wrong_operators_are_refused(start, end):
    with pytest.raises(ValueError):
        tm.operator(start, end)


def test_empty_intervals_cannot_be_built():
    for closed in product((True, False), repeat=2):
        if closed != (True, True):
            assert tm.interval(4, 4, closed_start=closed[0], closed_end=closed[1]) is None
    with pytest.raises(ValueError):
        Interval(1, 0)
