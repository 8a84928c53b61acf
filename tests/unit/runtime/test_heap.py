"""When what stays is kept from the collector: once queries have come or gone, and none does any more."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from engine.supervision import LONG_S, NEVER, OLD, REST_S, YOUNG, Heap, filling


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


def test_it_is_frozen_once_plans_were_made_and_none_is_any_more() -> None:
    clock = [0.0]
    heap = Heap(lambda: clock[0])
    assert not heap.settle(100, 100)
    clock[0] = REST_S - 1
    assert not heap.settle(101, 101)        # another came
    clock[0] += REST_S
    before = gc.get_freeze_count()
    assert heap.settle(101, 101) and gc.get_freeze_count() > before
    assert not heap.settle(101, 101)
    clock[0] += 10 * REST_S
    assert not heap.settle(109, 101)        # too few to walk all for
    clock[0] += REST_S
    assert not heap.settle(109, 101)
    assert not heap.settle(201, 101)        # each was planned anew
    clock[0] += REST_S
    assert heap.settle(201, 101)


def test_the_youngest_are_walked_seldom_while_it_is_there() -> None:
    before = gc.get_threshold()
    heap = Heap()
    assert gc.get_threshold() == (YOUNG, *before[1:])
    heap.thaw()
    assert gc.get_threshold() == before


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

    def frozen(plans: int) -> list[Ring]:
        held = [Ring() for _ in range(3)]
        heap.settle(plans, 0)
        clock[0] += REST_S
        assert heap.settle(plans, 0)
        return held

    frozen(50).clear()
    gc.collect()
    assert Ring.alive == 3          # the collector does not see them
    frozen(100).clear()
    assert Ring.alive == 3          # the first are gone
    heap.thaw()
    gc.collect()
    assert Ring.alive == 0


def test_nothing_old_is_walked_while_statements_are_compiled_and_what_took_long_is_frozen() -> None:
    clock = [0.0]
    heap = Heap(lambda: clock[0])
    heap.settle(100, 100)
    frozen = gc.get_freeze_count()
    with filling(lambda: clock[0]):
        with filling(lambda: clock[0]):
            assert gc.get_threshold() == (YOUNG, OLD, NEVER)
        assert gc.get_threshold() == (YOUNG, OLD, NEVER)
        clock[0] += REST_S
        assert not heap.settle(100, 100)
        assert gc.get_freeze_count() == frozen
        clock[0] += LONG_S
    assert gc.get_threshold() == (YOUNG, OLD, OLD)
    assert gc.get_freeze_count() > frozen
    assert not heap.settle(100, 100)        # what was frozen may be garbage once the statement is gone
    clock[0] += REST_S
    assert heap.settle(100, 100)
    heap.thaw()
