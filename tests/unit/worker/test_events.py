"""Windows of tuples over facts that last: each granule is an event, taken in when a step comes to it."""

from __future__ import annotations

import pytest

from engine.plan import intervals as plan
from engine.timeline import MAX, MIN
from engine.worker.events import Events
from engine.worker.tables import table_of

SECOND = 2_000      # points
WINDOW = plan.TupleWindow(".last 2 p/1", "p", 1, 2)


def rows_of_steps(hi: int) -> list[list[dict[str, object]]]:
    """What three steps give of two granules each, where "a" holds from the second one up to a point."""
    events = Events(plan.Program((), SECOND, 0, (WINDOW,)))
    found = []
    for step in range(3):
        given = [("p/1", table_of([('"a"', SECOND, hi)], 1))] if step == 0 else []
        [(_, rows)] = events.advance(given, 2 * step * SECOND - 1, 2 * (step + 1) * SECOND - 1, 0)
        found.append(rows.to_pylist())
        assert events.held <= 3
    return found


def test_a_fact_that_holds_for_ever_is_an_event_of_each_granule_that_a_step_has() -> None:
    assert rows_of_steps(MAX) == rows_of_steps(10 * SECOND - 1)
    assert [[(row["a2"], row["lo"]) for row in rows] for rows in rows_of_steps(MAX)][1] == [
        ('"1"^^<http://www.w3.org/2001/XMLSchema#integer>', 2 * SECOND), ('"2"^^<http://www.w3.org/2001/XMLSchema#integer>', 2 * SECOND),
        ('"3"^^<http://www.w3.org/2001/XMLSchema#integer>', 3 * SECOND)]


def test_a_fact_that_always_holds_is_refused_where_a_window_would_have_to_show_it() -> None:
    events = Events(plan.Program((), SECOND, 0, (WINDOW,)))
    with pytest.raises(ValueError, match="a fact of p holds always"):
        events.advance([("p/1", table_of([('"a"', MIN, MAX)], 1))], -1, 2 * SECOND - 1, 0)
    assert events.advance([("q/1", table_of([('"a"', MIN, MAX)], 1))], -1, 2 * SECOND - 1, 0)[0][1].num_rows == 0
