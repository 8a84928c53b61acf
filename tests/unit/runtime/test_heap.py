"""When what stays is kept from the collector: once queries have come or gone, and none does any more."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from engine.supervision.heap import REST_S, Heap


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_it_is_frozen_once_queries_have_come_and_none_does_any_more() -> None:
    clock = [0.0]
    heap = Heap(lambda: clock[0])
    assert not heap.holds(100)
    clock[0] = REST_S - 1
    assert not heap.holds(101)      # another came
    clock[0] += REST_S
    before = gc.get_freeze_count()
    assert heap.holds(101) and gc.get_freeze_count() > before
    assert not heap.holds(101)
    clock[0] += 10 * REST_S
    assert not heap.holds(105)      # too few to walk all for
    clock[0] += REST_S
    assert not heap.holds(105)


def test_what_is_gone_is_collected() -> None:
    class Ring:
        alive = 0

        def __init__(self) -> None:
            self.own = self
            Ring.alive += 1

        def __del__(self) -> None:
            Ring.alive -= 1

    clock = [0.0]
    heap = Heap(lambda: clock[0])
    heap.holds(50)
    held = [Ring() for _ in range(3)]
    clock[0] += REST_S
    assert heap.holds(50)
    held.clear()
    gc.collect()
    assert Ring.alive == 3          # frozen
    heap.holds(1)
    clock[0] += REST_S
    assert heap.holds(1) and Ring.alive == 0
