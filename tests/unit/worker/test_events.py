"""Windows of tuples over facts that last: each granule is an event, taken in when a step comes to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.plan import intervals as plan
from engine.timeline import MAX, MIN
from engine.worker.events import Events, State
from engine.worker.program import Snapshot
from engine.worker.state_file import read_state, write_state
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


def granules(rows: list[dict[str, object]]) -> list[tuple[str, int, int]]:
    """An instant and the granules during which it is seen."""
    return [(str(row["a2"]).split('"')[1], int(str(row["lo"])) // SECOND, (int(str(row["hi"])) + 1) // SECOND - 1) for row in rows]


def test_a_fact_that_always_holds_is_in_every_window_and_counts_in_none() -> None:
    """With events at 1 and 2 the last two begin at 1; with another at 4 they begin at 2."""
    events = Events(plan.Program((), SECOND, 0, (WINDOW,)))
    given = [("p/1", table_of([('"a"', MIN, MAX)], 1)), ("q/1", table_of([('"b"', k * SECOND, k * SECOND) for k in (1, 2, 4)], 1)),
             ("q/1", table_of([('"c"', MIN, MAX)], 1))]
    [(_, rows)] = events.advance(given, -1, 6 * SECOND - 1, 0)
    assert granules(rows.to_pylist()) == [("0", 0, 1), ("1", 1, 3), ("2", 2, 5), ("3", 3, 5), ("4", 4, 5), ("5", 5, 5)]
    later = Events(plan.Program((), SECOND, 0, (WINDOW,)))
    later.state = events.state
    [(_, rows)] = later.advance([], 6 * SECOND - 1, 7 * SECOND - 1, 0)
    assert granules(rows.to_pylist()) == [("2", 6, 6), ("3", 6, 6), ("4", 6, 6), ("5", 6, 6), ("6", 6, 6)]


@pytest.mark.parametrize(("size", "box", "found"), [(2, MAX, [2]), (3, MAX, []), (3, SECOND, [2]), (1, MAX, [1, 2, 4]), (1, 0, [1, 2, 4])])
def test_a_box_in_a_window_of_tuples(size: int, box: int, found: list[int]) -> None:
    """p at 1, 2 and 4, something else at 0; of one tuple the box is about the present point."""
    window = plan.TupleWindow("boxed", "p", 1, size, box)
    events = Events(plan.Program((), SECOND, 0, (window,)))
    given = [("p/1", table_of([('"a"', k * SECOND, k * SECOND) for k in (1, 2, 4)], 1)), ("q/0", table_of([(0, 0)], 0))]
    [(_, rows)] = events.advance(given, -1, 6 * SECOND - 1, 0)
    assert [row["lo"] // SECOND for row in rows.to_pylist()] == found


def test_what_always_holds_is_in_the_file_of_a_state(tmp_path: Path) -> None:
    events: State = (((1, ("p", ('"a"',))),), ((1, 3, ("q", ())),), (("p", ('"b"',)), ("z", ())))
    write_state(str(tmp_path / "state"), Snapshot({}, 5, 0, (), events))
    assert read_state(str(tmp_path / "state")).events == events
